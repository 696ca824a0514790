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
	r := &setReader{head: head{columns: set.Columns(), labels: set.Labels.All(), labeled: set.Labels != nil}}
	r.n, r.width = set.Dims()
	r.next, r.stop = iter.Pull2(func(yield func(*data.Matrix, error) bool) {
		err := set.Source().Each(context.Background(), 0, func(_ int, block *data.Matrix) error {
			if !yield(block, nil) {
				return io.EOF
			}
			return nil
		})
		if err != nil && err != io.EOF {
			yield(nil, err)
		}
	})
	return &setRows{&files{first: &r.head, current: &opened{r, source{}, r}, parts: make([]data.Part, 1), o: Options{Offset: set.Offset()}}, set}
}

// setRows reads the points of a set as files are read. It has the set's names of the points.
type setRows struct {
	Rows
	set *data.Dataset
}

// RowName implements Rows.
func (r *setRows) RowName(i int) string { return r.set.RowName(i) }

// A setReader reads the points of a set.
type setReader struct {
	head
	block *data.Matrix // the last block, and the first of its rows that is not yet delivered
	row   int
	next  func() (*data.Matrix, error, bool) // returns the next block
	stop  func()
}

// take calls do with the next rows, in parts, and returns their number. It returns io.EOF
// after the last row.
func (r *setReader) take(rows int, do func(done int, part *data.Matrix)) (taken int, err error) {
	for taken < rows {
		if r.block == nil || r.row == r.block.N {
			block, err, ok := r.next()
			if err != nil || !ok {
				return taken, cmp.Or(err, io.EOF)
			}
			r.block, r.row = block, 0
		}
		end := min(r.block.N, r.row+rows-taken)
		do(taken, r.block.Rows(r.row, end))
		taken, r.row = taken+end-r.row, end
	}
	return taken, nil
}

// read implements reader.
func (r *setReader) read(dst []float32) (int, error) {
	n, err := r.take(len(dst)/r.width, func(done int, part *data.Matrix) {
		part.CopyRows(dst[done*r.width:][:part.N*r.width], 0)
	})
	return n * r.width, err
}

// skip implements reader.
func (r *setReader) skip(rows int) (int, error) {
	return r.take(rows, func(int, *data.Matrix) {})
}

// Close implements io.Closer.
func (r *setReader) Close() error {
	r.stop()
	return nil
}
