package data

import (
	"io"
	"math"
	"strings"

	"cne/internal/npy"
)

// A csrReader reads the rows of a matrix in compressed sparse rows from the archive in
// which scipy.sparse.save_npz keeps it: indptr, indices and data are arrays of their own,
// which are read side by side.
type csrReader struct {
	n, d                   int
	indptr, indices, value csrArray
	row                    int // rows read
	entries                int // values read
	one                    CSR // the row that read has read last
}

// A csrArray is an array of a csrReader, of which some values have been read ahead.
type csrArray struct {
	*arrayReader
	name   string
	closer io.Closer
	src    []byte // the last values read, of which at have been taken
	at, n  int
}

// isSparse tells whether an archive holds a matrix of scipy.sparse, and nothing that
// np.savez would have been given as points.
func (z *npz) isSparse() bool {
	return z.find("images", "x", "X", "arr_0") == nil &&
		(z.find("format") != nil && z.find("shape") != nil || z.find("indptr") != nil && z.find("indices") != nil)
}

// beginCSR begins to read a matrix of scipy.sparse.
func (z *npz) beginCSR() (*csrReader, error) {
	format, err := z.sparseFormat()
	if err != nil {
		return nil, err
	}
	if format != "csr" {
		return nil, errorf(ErrUnsupported, "the archive holds a sparse matrix in the format %.20q, and csr is read; save m.tocsr() with scipy.sparse.save_npz", format)
	}
	r := new(csrReader)
	if err := r.begin(z); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin opens the arrays of a matrix, and compares their lengths.
func (r *csrReader) begin(z *npz) (err error) {
	if r.n, r.d, err = z.sparseShape(); err != nil {
		return err
	}
	for _, a := range []struct {
		to       *csrArray
		name     string
		integers bool
	}{{&r.indptr, "indptr", true}, {&r.indices, "indices", true}, {&r.value, "data", false}} {
		if *a.to, err = z.openCSRArray(a.name, a.integers); err != nil {
			return err
		}
	}
	if got := r.indptr.total; got-1 != r.n {
		return errorf(ErrFormat, "the array indptr has %d entries, but a sparse matrix of %d rows has one more than rows; write the file again with scipy.sparse.save_npz", got, r.n)
	}
	if a, b := r.indices.total, r.value.total; a != b {
		return errorf(ErrFormat, "the array indices has %d entries, but data has %d, and each value has a column; write the file again with scipy.sparse.save_npz", a, b)
	}
	first, err := r.indptr.integer()
	if err == nil && first != 0 {
		err = errorf(ErrFormat, "the array indptr begins with %d instead of 0; write the file again with scipy.sparse.save_npz", first)
	}
	return err
}

// sparseFormat reads the array that says how a matrix is stored: a text of one to four
// bytes for each character.
func (z *npz) sparseFormat() (format string, err error) {
	f := z.find("format")
	if f == nil {
		return "", errorf(ErrFormat, "the archive holds indptr and indices, but no array format; write the file with scipy.sparse.save_npz")
	}
	const most = 1 << 10
	text := make([]byte, most)
	if err := z.read(f, func(s *byteSource) error {
		n, err := s.full(text)
		if err != nil && err != errShort {
			return err
		}
		text = text[:n]
		return nil
	}); err != nil {
		return "", err
	}
	const head = len(npy.Magic) + 4 // of version 1, which np.save writes
	noText := inArray(f.Name, errorf(ErrFormat, "it is no npy array of a short text; write the file with scipy.sparse.save_npz"))
	if len(text) < head || string(text[:len(npy.Magic)]) != npy.Magic || text[len(npy.Magic)] != 1 {
		return "", noText
	}
	end := head + int(text[head-2]) + int(text[head-1])<<8
	if end > len(text) {
		return "", noText
	}
	if h, err := npy.ParseHeader(string(text[head:end])); err != nil || !strings.ContainsAny(h.Descr, "SU") || len(h.Shape) > 1 {
		return "", noText
	}
	return strings.ReplaceAll(string(text[end:]), "\x00", ""), nil
}

// sparseShape reads the numbers of rows and columns.
func (z *npz) sparseShape() (n, d int, err error) {
	a, err := z.openCSRArray("shape", true)
	if err != nil {
		return 0, 0, err
	}
	defer a.closer.Close()
	if a.total != 2 {
		return 0, 0, errorf(ErrShape, "the array shape has %d entries, but points are the rows of a matrix, which has two dimensions", a.total)
	}
	var shape [2]int64
	for i := range shape {
		if shape[i], err = a.integer(); err != nil {
			return 0, 0, err
		}
	}
	if shape[0] < 0 || shape[1] < 0 || shape[0] >= math.MaxInt || shape[1] > math.MaxInt32 {
		return 0, 0, errorf(ErrFormat, "the array shape says that there are %d rows and %d columns, and up to %d columns are read; write the file again with scipy.sparse.save_npz", shape[0], shape[1], math.MaxInt32)
	}
	if shape[0] == 0 || shape[1] == 0 {
		return 0, 0, errorf(ErrEmpty, "the sparse matrix has %d rows and %d columns; points need at least one of each", shape[0], shape[1])
	}
	return int(shape[0]), int(shape[1]), nil
}

// openCSRArray begins to read one of the arrays of a sparse matrix.
func (z *npz) openCSRArray(name string, integers bool) (csrArray, error) {
	f := z.find(name)
	if f == nil {
		return csrArray{}, errorf(ErrFormat, "the archive holds a sparse matrix without an array %s, but %s; write the file with scipy.sparse.save_npz", name, z.list())
	}
	s, c, err := z.open(f)
	if err != nil {
		return csrArray{}, err
	}
	a := csrArray{name: f.Name, closer: c}
	head, err := npyHeader(s)
	if err == nil && len(head.shape) != 1 {
		err = errorf(ErrShape, "it has the shape %s, but is to have one dimension; write the file again with scipy.sparse.save_npz", shapeText(head.shape))
	}
	if err == nil && head.isText() {
		err = errorf(ErrUnsupported, "its values are texts, and those of a sparse matrix are numbers; convert it with m.astype('float32')")
	}
	if err == nil && integers && head.kind != 'i' && head.kind != 'u' {
		err = errorf(ErrFormat, "it holds no whole numbers; write the file again with scipy.sparse.save_npz")
	}
	if err == nil {
		a.arrayReader, err = newArrayReader(head, s)
	}
	if err != nil {
		c.Close()
		return csrArray{}, inArray(f.Name, err)
	}
	return a, nil
}

// more makes sure that a value has been read ahead. After the last one it returns io.EOF,
// if the array ends there, too.
func (a *csrArray) more() error {
	if a.at < a.n {
		return nil
	}
	var err error
	a.src, a.n, err = a.next(math.MaxInt)
	a.at = 0
	if err != nil && err != io.EOF {
		return inArray(a.name, err)
	}
	return err
}

// integer returns the next value, which must be there, of an array of whole numbers.
func (a *csrArray) integer() (int64, error) {
	if err := a.more(); err == io.EOF {
		return 0, inArray(a.name, errorf(ErrFormat, "it is empty; write the file again with scipy.sparse.save_npz"))
	} else if err != nil {
		return 0, err
	}
	a.at++
	return a.arrayReader.integer(a.src, a.at-1), nil
}

// next appends the next row to c, in any order and with columns that come twice; after
// the last row it returns io.EOF.
func (r *csrReader) next(c *CSR) error {
	if r.row == r.n {
		return r.end()
	}
	end, err := r.indptr.integer()
	if err != nil {
		return err
	}
	if end < int64(r.entries) || end > int64(r.value.total) {
		return inArray(r.indptr.name, errorf(ErrFormat, "entry %d (counted from 0) is %d, but it must be from %d, the one before it, to %d, the number of values; write the file again with scipy.sparse.save_npz",
			r.row+1, end, r.entries, r.value.total))
	}
	for left := int(end) - r.entries; left > 0; {
		if err := r.indices.more(); err != nil { // there are more, as the header says
			return err
		}
		if err := r.value.more(); err != nil {
			return err
		}
		n := min(left, r.indices.n-r.indices.at, r.value.n-r.value.at)
		for i := range n {
			j := r.indices.arrayReader.integer(r.indices.src, r.indices.at+i)
			if j < 0 || j >= int64(r.d) {
				return inArray(r.indices.name, errorf(ErrFormat, "entry %d (counted from 0), of row %d (counted from 1), is %d, but the columns are numbered from 0 to %d; write the file again with scipy.sparse.save_npz",
					r.entries+i, r.row+1, j, r.d-1))
			}
			c.Column = append(c.Column, int32(j))
		}
		at := len(c.Value)
		c.Value = append(c.Value, make([]float32, n)...)
		r.value.float32s(c.Value[at:], r.value.src[r.value.at*r.value.size:])
		r.indices.at, r.value.at = r.indices.at+n, r.value.at+n
		r.entries, left = r.entries+n, left-n
	}
	c.Start = append(c.Start, len(c.Value))
	r.row++
	return nil
}

// end returns io.EOF if the arrays end with the last row, as they should.
func (r *csrReader) end() error {
	if r.entries != r.value.total {
		return inArray(r.indptr.name, errorf(ErrFormat, "it ends with %d, but there are %d values; write the file again with scipy.sparse.save_npz", r.entries, r.value.total))
	}
	for _, a := range []*csrArray{&r.indptr, &r.indices, &r.value} {
		if err := a.more(); err != io.EOF {
			return err
		}
	}
	return io.EOF
}

// all returns the whole matrix.
func (r *csrReader) all() (*CSR, error) {
	room := min(r.indices.s.trusted(r.indices.total), r.value.s.trusted(r.value.total))
	c := &CSR{Start: make([]int, 1, 1+r.indptr.s.trusted(r.n)), Column: make([]int32, 0, room), Value: make([]float32, 0, room)}
	for {
		err := r.next(c)
		if err == io.EOF {
			c.order()
			return c, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// read implements valueReader, of dense rows.
func (r *csrReader) read(dst []float32) (int, error) {
	for filled := 0; ; filled += r.d {
		if len(dst)-filled < r.d && r.row < r.n {
			return filled, nil
		}
		r.one = CSR{append(r.one.Start[:0], 0), r.one.Column[:0], r.one.Value[:0]}
		if err := r.next(&r.one); err != nil {
			return filled, err
		}
		r.one.order()
		row := dst[filled : filled+r.d]
		clear(row)
		for k, j := range r.one.Column {
			row[j] = r.one.Value[k]
		}
	}
}

// skip implements valueReader.
func (r *csrReader) skip(rows int) (passed int, err error) {
	for ; passed < rows && r.row < r.n; passed++ {
		r.one = CSR{append(r.one.Start[:0], 0), r.one.Column[:0], r.one.Value[:0]}
		if err := r.next(&r.one); err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// step implements valueReader.
func (r *csrReader) step() int { return min(r.d, (r.n-r.row)*r.d) }

// room implements valueReader: the file's size says nothing of dense rows.
func (r *csrReader) room(int) int { return r.step() }

// takeLabels implements valueReader: there are none among the values.
func (r *csrReader) takeLabels() []string { return nil }

// relate implements valueReader. Sparse values are relative to no offset, which
// stream.relate has made sure of.
func (r *csrReader) relate(relation) {}

// Close closes the arrays.
func (r *csrReader) Close() error {
	for _, a := range []*csrArray{&r.indptr, &r.indices, &r.value} {
		if a.closer != nil {
			a.closer.Close() // of what was read to the end, if it was
		}
	}
	return nil
}

var _ valueReader = (*csrReader)(nil)
