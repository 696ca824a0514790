package file

import (
	"context"
	"fmt"
	"io"
	"iter"

	"cne/data"
)

// Of returns the points of a set, wherever they are, as Rows; sparse ones become dense.
// The set must not be changed meanwhile.
func Of(set *data.Dataset) Rows {
	r := &setRows{set: set}
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

	next func() (*data.Matrix, error, bool) // the blocks of Stored
	stop func()
	left *data.Matrix // what is left of the last
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

// Skip implements Rows.
func (r *setRows) Skip(rows int) (int, error) {
	n, _ := r.set.Dims()
	r.to = min(n, rows)
	if r.set.Stored == nil {
		return r.to, nil
	}
	for left := r.to; left > 0; {
		if err := r.fetch(); err != nil {
			return 0, err
		}
		some := min(left, r.left.N)
		r.left = r.left.Rows(some, r.left.N)
		left -= some
	}
	return r.to, nil
}

// fetch has left hold some points of Stored; io.EOF tells that there are none.
func (r *setRows) fetch() error {
	for r.left == nil || r.left.N == 0 {
		block, err, ok := r.next()
		if !ok {
			return io.EOF
		}
		if err != nil {
			return err
		}
		r.left = block
	}
	return nil
}

// Next implements Rows.
func (r *setRows) Next(dst *data.Matrix) (int, error) {
	n, d := r.set.Dims()
	r.from = r.to
	if r.from == n {
		return 0, io.EOF
	}
	dst.Columns, dst.Offset = r.set.Columns(), r.set.Offset()
	if m := r.set.Points; r.set.Stored == nil {
		r.to = min(n, r.from+dst.N)
		m.CopyRows(dst.X[:(r.to-r.from)*d], r.from)
		return r.to - r.from, nil
	}
	for r.to < min(n, r.from+dst.N) {
		if err := r.fetch(); err != nil {
			return 0, err
		}
		some := min(r.left.N, dst.N-(r.to-r.from))
		copy(dst.X[(r.to-r.from)*d:], r.left.X[:some*d])
		r.left = r.left.Rows(some, r.left.N)
		r.to += some
	}
	return r.to - r.from, nil
}

// Labels implements Rows.
func (r *setRows) Labels() []string {
	l := r.set.Labels
	if l == nil {
		return nil
	}
	names := make([]string, r.to-r.from)
	for i, c := range l.Class[r.from:r.to] {
		names[i] = l.Names[c]
	}
	return names
}

// RowName implements Rows.
func (r *setRows) RowName(i int) string {
	row := fmt.Sprintf("row %d", r.set.Origin(i)+1)
	if r.set.Name == "" {
		return row
	}
	return r.set.Name + ": " + row
}

// Close implements Rows.
func (r *setRows) Close() error {
	if r.stop != nil {
		r.stop()
	}
	return nil
}
