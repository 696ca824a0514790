package file

import (
	"cmp"
	"context"
	"io"
	"iter"

	"cne/data"
)

// Of returns the points of a set as Rows. Sparse points become dense. The set must not
// change while the Rows are in use.
func Of(set *data.Dataset) Rows {
	r := &setRows{set: set, left: set.Points, stop: func() {}}
	if set.Stored != nil {
		r.next, r.stop = iter.Pull2(func(yield func(*data.Matrix, error) bool) {
			if err := set.Stored.Each(context.Background(), 0, func(_ int, block *data.Matrix) error {
				if !yield(block, nil) {
					return io.EOF
				}
				return nil
			}); err != nil && err != io.EOF {
				yield(nil, err)
			}
		})
	}
	return r
}

type setRows struct {
	set      *data.Dataset
	from, to int // rows that the last call of Next has delivered

	left *data.Matrix // the rest of all points, or of a block of Stored
	next func() (*data.Matrix, error, bool)
	stop func()
}

// Width implements Rows.
func (r *setRows) Width() int {
	_, d := r.set.Dims()
	return d
}

// Columns implements Rows.
func (r *setRows) Columns() []string { return r.set.Columns() }

// Len implements Rows.
func (r *setRows) Len() (n int, known bool) {
	n, _ = r.set.Dims()
	return n, true
}

// Labeled implements Rows.
func (r *setRows) Labeled() bool { return r.set.Labels != nil }

// take calls do with blocks of the next rows, and returns their number.
func (r *setRows) take(rows int, do func(done int, block *data.Matrix)) (taken int, err error) {
	n, _ := r.set.Dims()
	r.from = r.to
	for end := r.from + min(rows, n-r.from); r.to < end; {
		if r.left == nil || r.left.N == 0 {
			block, err, ok := r.next()
			if err != nil || !ok {
				return 0, cmp.Or(err, io.EOF)
			}
			r.left = block
		}
		some := min(r.left.N, end-r.to)
		do(r.to-r.from, r.left.Rows(0, some))
		r.left = r.left.Rows(some, r.left.N)
		r.to += some
	}
	return r.to - r.from, nil
}

// Skip implements Rows.
func (r *setRows) Skip(rows int) (int, error) { return r.take(rows, func(int, *data.Matrix) {}) }

// Next implements Rows.
func (r *setRows) Next(dst *data.Matrix) (int, error) {
	dst.Columns, dst.Offset = r.set.Columns(), r.set.Offset()
	n, err := r.take(dst.N, func(done int, block *data.Matrix) {
		block.CopyRows(dst.X[done*dst.D:][:block.N*dst.D], 0)
	})
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Labels implements Rows.
func (r *setRows) Labels() (labels []string) {
	if l := r.set.Labels; l != nil {
		for _, c := range l.Class[r.from:r.to] {
			labels = append(labels, l.Names[c])
		}
	}
	return labels
}

// RowName implements Rows.
func (r *setRows) RowName(i int) string { return r.set.RowName(i) }

// Close implements Rows.
func (r *setRows) Close() error {
	r.stop()
	return nil
}
