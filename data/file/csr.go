package file

import (
	"io"
	"math"
	"slices"
	"strings"

	"cne/data"
)

// A csrReader reads the rows of a CSR matrix from an archive of scipy.sparse.save_npz. It
// reads the arrays indptr, indices and data in parallel.
type csrReader struct {
	head
	indptr, indices, value *arrayReader
	row                    int // rows read
	entries                int // values read
	// columns and raw are the last row as it is stored, and one is the row for read.
	columns []int32
	raw     []byte
	one     data.CSR
}

// isSparse reports whether an archive holds a scipy.sparse matrix and no array of points.
func (z *npz) isSparse() bool {
	return z.find("images", "x", "X", "arr_0") == nil &&
		(z.find("format") != nil && z.find("shape") != nil || z.find("indptr") != nil && z.find("indices") != nil)
}

// openCSR begins to read the points that are a matrix of scipy.sparse.
func (z *npz) openCSR() (reader, error) {
	r := new(csrReader)
	if err := r.begin(z); err != nil {
		return nil, err
	}
	switch {
	case r.n == 0 || r.width == 0:
		return nil, errorf(data.ErrEmpty, "sparse matrix: got %d×%d, want at least one row and one column", r.n, r.width)
	case r.value.array.kind == 'c':
		return nil, inArray(r.value.member, errorf(data.ErrUnsupported, "values: got complex numbers, want real ones, such as m.real.astype('float32')"))
	}
	r.in, r.sparse, r.isByte, r.exact, r.nonzeros = r.value.in, r, r.value.isByte, true, r.value.total
	return r, nil
}

// begin opens the arrays of a matrix and checks that they agree.
func (r *csrReader) begin(z *npz) (err error) {
	var format, shape *arrayReader
	for _, a := range []struct {
		to                **arrayReader
		name, kinds, what string
	}{
		{&format, "format", "SU", "text"}, {&shape, "shape", "iu", "whole numbers"}, {&r.indptr, "indptr", "iu", "whole numbers"},
		{&r.indices, "indices", "iu", "whole numbers"}, {&r.value, "data", "buifc", "numbers"},
	} {
		f := z.find(a.name)
		if f == nil {
			return errorf(data.ErrFormat, "arrays of a sparse matrix: got %s, want %s, too, as scipy.sparse.save_npz writes it", z.list(), a.name)
		}
		*a.to, err = openArray(z, f, func(in *Input) (*arrayReader, error) {
			is, err := readNPYHeader(in, true)
			if a.to == &format && len(is.shape) == 0 {
				is.shape = []int{1}
			}
			switch {
			case err != nil:
				return nil, err
			case len(is.shape) != 1:
				return nil, errorf(data.ErrShape, "shape: got %s, want one dimension", shapeText(is.shape))
			case strings.IndexByte(a.kinds, is.kind) < 0:
				return nil, errorf(data.ErrFormat, "values: got the type %c%d, want %s", is.kind, is.size, a.what)
			}
			return newArrayReader(is, in)
		})
		if err != nil {
			return err
		}
		(*a.to).member = f.Name
		if a.to == &format {
			texts, err := format.allLabels()
			if err != nil {
				return inArray(f.Name, err)
			}
			if is := strings.Join(texts, ", "); is != "csr" {
				return errorf(data.ErrUnsupported, "format of the sparse matrix: got %.20q, want csr (m.tocsr())", is)
			}
		}
	}
	if shape.total != 2 {
		return inArray(shape.member, errorf(data.ErrShape, "entries: got %d, want 2", shape.total))
	}
	dims, err := shape.take(2, nil)
	if err != nil {
		return err
	}
	r.n, r.width = int(shape.integer(dims, 0)), int(shape.integer(dims, 1))
	if r.n < 0 || r.width < 0 || r.n == math.MaxInt || r.width > math.MaxInt32 {
		return inArray(shape.member, errorf(data.ErrFormat, "got %d×%d, want at most %d columns", r.n, r.width, math.MaxInt32))
	}
	return r.check()
}

// check begins to read the arrays, and checks that they agree.
func (r *csrReader) check() error {
	switch {
	case r.indptr.total-1 != r.n:
		return inArray(r.indptr.member, errorf(data.ErrFormat, "entries: got %d, want %d, one more than rows", r.indptr.total, r.n+1))
	case r.indices.total != r.value.total:
		return inArray(r.indices.member, errorf(data.ErrFormat, "entries: got %d, want %d, one for each value", r.indices.total, r.value.total))
	}
	first, err := r.indptr.take(1, nil)
	if err == nil && r.indptr.integer(first, 0) != 0 {
		err = inArray(r.indptr.member, errorf(data.ErrFormat, "entry 0: got %d, want 0", r.indptr.integer(first, 0)))
	}
	return err
}

// take appends the next count values, as they are stored, to to. to grows as values are
// read. Fewer values are an error.
func (r *arrayReader) take(count int, to []byte) ([]byte, error) {
	for to = to[:0]; count > 0; {
		src, n, err := r.next(count)
		if err != nil {
			return nil, inArray(r.member, err)
		}
		to, count = append(to, src[:n*r.size]...), count-n
	}
	return to, nil
}

// next reads the next row; its columns may be unsorted and repeated. After the last row it
// returns io.EOF.
func (r *csrReader) next() error {
	if r.row == r.n {
		return r.end()
	}
	var err error
	if r.raw, err = r.indptr.take(1, r.raw); err != nil {
		return err
	}
	end := r.indptr.integer(r.raw, 0)
	if end < int64(r.entries) || end > int64(r.value.total) {
		return inArray(r.indptr.member, errorf(data.ErrFormat, "entry %d (counted from 0): got %d, want %d (the entry before) to %d (the number of values)",
			r.row+1, end, r.entries, r.value.total))
	}
	count := int(end) - r.entries
	if r.raw, err = r.indices.take(count, r.raw); err != nil {
		return err
	}
	r.columns = r.columns[:0]
	for i := range count {
		j := r.indices.bits64(r.raw, i) // negative numbers are large ones
		if j >= uint64(r.width) {
			return inArray(r.indices.member, errorf(data.ErrFormat, "entry %d (counted from 0), in row %d: got column %d, want 0 to %d",
				r.entries+i, r.row+1, r.indices.integer(r.raw, i), r.width-1))
		}
		r.columns = append(r.columns, int32(j))
	}
	r.raw, err = r.value.take(count, r.raw)
	r.row, r.entries = r.row+1, r.entries+count
	return err
}

// appendRow appends the last row to c.
func (r *csrReader) appendRow(c *data.CSR) {
	at := len(c.Value)
	c.Column = append(c.Column, r.columns...)
	c.Value = append(c.Value, make([]float32, len(r.columns))...)
	r.value.float32s(c.Value[at:], r.raw)
	c.Start = append(c.Start, len(c.Value))
}

// end returns io.EOF if the arrays end with the last row, as they should.
func (r *csrReader) end() error {
	if r.entries != r.value.total {
		return inArray(r.indptr.member, errorf(data.ErrFormat, "last entry: got %d, want %d, the number of values", r.entries, r.value.total))
	}
	for _, a := range []*arrayReader{r.indptr, r.indices, r.value} {
		if _, _, err := a.next(1); err != io.EOF {
			return inArray(a.member, err)
		}
	}
	return io.EOF
}

// readSparse implements sparseReader.
func (r *csrReader) readSparse(c *data.CSR, rows int) (int, error) {
	if r.row == 0 {
		room := min(r.indices.in.trusted(r.indices.total, false), r.value.in.trusted(r.value.total, false))
		c.Column, c.Value = slices.Grow(c.Column, room), slices.Grow(c.Value, room)
		c.Start = slices.Grow(c.Start, r.indptr.in.trusted(r.n, false))
	}
	for n := range rows {
		if err := r.next(); err != nil {
			return n, err
		}
		r.appendRow(c)
	}
	return rows, nil
}

// read implements reader, of dense rows.
func (r *csrReader) read(dst []float32) (int, error) {
	for filled := 0; ; filled += r.width {
		if len(dst)-filled < r.width && r.row < r.n {
			return filled, nil
		}
		if err := r.next(); err != nil {
			return filled, err
		}
		r.one = data.CSR{Start: append(r.one.Start[:0], 0), Column: r.one.Column[:0], Value: r.one.Value[:0]}
		r.appendRow(&r.one)
		r.one.Tidy()
		row := dst[filled : filled+r.width]
		clear(row)
		for k, j := range r.one.Column {
			row[j] = r.one.Value[k]
		}
	}
}

// skip implements reader.
func (r *csrReader) skip(rows int) (passed int, err error) {
	for ; passed < rows && r.row < r.n; passed++ {
		if err := r.next(); err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// A SparseFile is a CSR matrix in an archive of scipy.sparse.save_npz, read row by row.
// Unlike Open it leaves entries as they are in the file: in their order, with zeros and
// duplicates, and possibly complex.
type SparseFile struct {
	N, D   int // rows and columns
	r      *csrReader
	values []float64
}

// OpenSparseFile begins to read an archive of the given size in bytes.
func OpenSparseFile(r io.ReaderAt, size int64) (*SparseFile, error) {
	z, err := newNPZ(r, size)
	if err != nil {
		return nil, err
	}
	c := new(csrReader)
	if err := c.begin(z); err != nil {
		return nil, err
	}
	return &SparseFile{N: c.n, D: c.width, r: c}, nil
}

// Next returns the next row. A finite complex value becomes 0 if it is zero, else 1. The
// slices are valid until the next call. After the last row it returns io.EOF.
func (f *SparseFile) Next() (columns []int32, values []float64, err error) {
	if err := f.r.next(); err != nil {
		return nil, nil, err
	}
	f.values = f.values[:0]
	for i := range f.r.columns {
		f.values = append(f.values, f.r.value.number(f.r.raw, i))
	}
	return f.r.columns, f.values, nil
}
