package file

import (
	"io"
	"math"
	"strings"

	"cne/data"
	"cne/internal/kind"
)

// A csrReader reads the rows of a CSR matrix from an archive of scipy.sparse.save_npz. It
// reads the arrays indptr, indices and data in parallel.
type csrReader struct {
	n, width               int
	indptr, indices, value *arrayReader
	row                    int // rows read
	entries                int // values read
	// columns and raw are the last row as it is stored.
	columns []int32
	raw     []byte
}

// isSparse reports whether an archive holds a scipy.sparse matrix and no array of points.
func (z *npz) isSparse() bool {
	return z.find("images", "x", "X", "arr_0") == nil &&
		(z.find("format") != nil && z.find("shape") != nil || z.find("indptr") != nil && z.find("indices") != nil)
}

// openCSR begins to read the points that are a matrix of scipy.sparse.
func (z *npz) openCSR() reader {
	r := new(csrReader)
	r.begin(z)
	kind.Need(r.n > 0 && r.width > 0, data.ErrEmpty, "sparse matrix: got %d×%d, want at least one row and one column", r.n, r.width)
	held := &heldRows{head: head{in: r.value.in, n: r.n, width: r.width, isByte: r.value.isByte, exact: true, nonzeros: r.value.total}, load: r.readAll}
	held.sparse = held
	return held
}

// must fails unless ok, with an error that names the array.
func (r *arrayReader) must(ok bool, of error, format string, args ...any) {
	if !ok {
		kind.Check(inArray(r.member, errorf(of, format, args...)))
	}
}

// begin opens the arrays of a matrix and checks that they agree. It fails as kind.Need does.
func (r *csrReader) begin(z *npz) {
	var format, shape *arrayReader
	for _, a := range []struct {
		to                **arrayReader
		name, kinds, what string
	}{
		{&format, "format", "SU", "text"}, {&shape, "shape", "iu", "whole numbers"}, {&r.indptr, "indptr", "iu", "whole numbers"},
		{&r.indices, "indices", "iu", "whole numbers"}, {&r.value, "data", "buif", "numbers"},
	} {
		f := z.find(a.name)
		kind.Need(f != nil, data.ErrFormat,
			"arrays of a sparse matrix: got %s, want %s, too, as scipy.sparse.save_npz writes it", z.list(), a.name)
		*a.to = openArray(z, f, func(in *Input) *arrayReader {
			is := readNPYHeader(in)
			if a.to == &format && len(is.shape) == 0 {
				is.shape = []int{1}
			}
			kind.Need(len(is.shape) == 1, data.ErrShape, "shape: got %s, want one dimension", shapeText(is.shape))
			kind.Need(strings.IndexByte(a.kinds, is.kind) >= 0, data.ErrFormat, "values: got the type %c%d, want %s", is.kind, is.size, a.what)
			return newArrayReader(is, in)
		})
		(*a.to).member = f.Name
		if a.to == &format {
			is := strings.Join(kind.Got(format.allLabels()), ", ")
			kind.Need(is == "csr", data.ErrUnsupported, "format of the sparse matrix: got %.20q, want csr (m.tocsr())", is)
		}
	}
	shape.must(shape.total == 2, data.ErrShape, "entries: got %d, want 2", shape.total)
	dims := shape.take(2, nil)
	r.n, r.width = int(shape.integer(dims, 0)), int(shape.integer(dims, 1))
	shape.must(min(r.n, r.width) >= 0 && r.n < math.MaxInt && r.width <= math.MaxInt32, data.ErrFormat,
		"got %d×%d, want at most %d columns", r.n, r.width, math.MaxInt32)
	r.indptr.must(r.indptr.total-1 == r.n, data.ErrFormat, "entries: got %d, want %d, one more than rows", r.indptr.total, r.n+1)
	r.indices.must(r.indices.total == r.value.total, data.ErrFormat,
		"entries: got %d, want %d, one for each value", r.indices.total, r.value.total)
	first := r.indptr.integer(r.indptr.take(1, nil), 0)
	r.indptr.must(first == 0, data.ErrFormat, "entry 0: got %d, want 0", first)
}

// take appends the next count values, as they are stored, to to. to grows as values are
// read. It fails for fewer values.
func (r *arrayReader) take(count int, to []byte) []byte {
	for to = to[:0]; count > 0; {
		src, n, err := r.next(count)
		kind.Check(inArray(r.member, err))
		to, count = append(to, src[:n*r.size]...), count-n
	}
	return to
}

// next reads the next row; its columns may be unsorted and repeated. After the last row it
// returns false, and fails unless the arrays end there, too.
func (r *csrReader) next() bool {
	if r.row == r.n {
		r.indptr.must(r.entries == r.value.total, data.ErrFormat, "last entry: got %d, want %d, the number of values", r.entries, r.value.total)
		for _, a := range []*arrayReader{r.indptr, r.indices, r.value} {
			if _, _, err := a.next(1); err != io.EOF {
				kind.Check(inArray(a.member, err))
			}
		}
		return false
	}
	r.raw = r.indptr.take(1, r.raw)
	end := r.indptr.integer(r.raw, 0)
	if end < int64(r.entries) || end > int64(r.value.total) {
		r.indptr.must(false, data.ErrFormat, "entry %d (counted from 0): got %d, want %d (the entry before) to %d (the number of values)",
			r.row+1, end, r.entries, r.value.total)
	}
	count := int(end) - r.entries
	r.raw = r.indices.take(count, r.raw)
	r.columns = r.columns[:0]
	for i := range count {
		j := r.indices.integer(r.raw, i)
		if j < 0 || j >= int64(r.width) {
			r.indices.must(false, data.ErrFormat, "entry %d (counted from 0), in row %d: got column %d, want 0 to %d", r.entries+i, r.row+1, j, r.width-1)
		}
		r.columns = append(r.columns, int32(j))
	}
	r.raw = r.value.take(count, r.raw)
	r.row, r.entries = r.row+1, r.entries+count
	return true
}

// readAll reads the whole matrix. It fails as kind.Need does.
func (r *csrReader) readAll() *data.CSR {
	size := min(r.indices.in.trusted(r.indices.total), r.value.in.trusted(r.value.total))
	c := &data.CSR{Start: make([]int, 1, r.indptr.in.trusted(r.n)+1), Column: make([]int32, 0, size), Value: make([]float32, 0, size)}
	for r.next() {
		before := len(c.Value)
		c.Column = append(c.Column, r.columns...)
		c.Value = append(c.Value, make([]float32, len(r.columns))...)
		r.value.float32s(c.Value[before:], r.raw)
		c.Start = append(c.Start, len(c.Value))
	}
	c.Tidy()
	return c
}

// SparseRows reads a CSR matrix from an archive of scipy.sparse.save_npz of the given size in
// bytes. It calls begin with the numbers of rows and columns, and then row for each row i.
// Both may fail as kind.Need does; the slices are valid until row returns. Unlike Open it
// leaves entries as they are in the file: in their order, with zeros and duplicates.
func SparseRows(r io.ReaderAt, size int64, begin func(n, d int), row func(i int, columns []int32, values []float64)) (err error) {
	defer kind.Catch(&err)
	c := new(csrReader)
	c.begin(newNPZ(r, size))
	begin(c.n, c.width)
	var values []float64
	for c.next() {
		values = values[:0]
		for k := range c.columns {
			values = append(values, c.value.number(c.raw, k))
		}
		row(c.row-1, c.columns, values)
	}
	return nil
}
