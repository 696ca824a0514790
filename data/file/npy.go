package file

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/npy"
)

const (
	// npyMaxHeader bounds the header's length. NumPy itself refuses headers
	// of more than 10 000 characters unless told otherwise.
	npyMaxHeader = 1 << 16
	// npyHeadSize is the offset of the values in files that WriteNPY writes, in bytes. It is
	// a multiple of 64, so the values can be mapped into memory, as NumPy recommends, and has
	// room for any two dimensions.
	npyHeadSize = 128
	// maxLabel is the largest number of characters of a label in an array.
	maxLabel = 1 << 12
)

// npyHeader reads NumPy's npy format, versions 1 to 3. It accepts arrays of bool (0 and
// 1), of integers of any width, and of float16, float32 or float64, in either order of
// bytes, and in C or Fortran order.
var npyHeader = arrayFormat(readNPYHeader)

// readNPYHeader reads the head of an npy file.
func readNPYHeader(s *Input) array {
	next := func(n int) []byte {
		b := make([]byte, n)
		_, err := s.full(b)
		kind.Need(err != errShort, data.ErrFormat, "the file ends within its npy header")
		return kind.Got(b, err)
	}
	begin := make([]byte, len(npy.Magic))
	n, err := s.full(begin)
	if err != errShort {
		kind.Check(err)
	}
	kind.Need(string(begin) == npy.Magic, data.ErrFormat, "first bytes: got %q, want %q of an npy file", begin[:n], npy.Magic)
	version := next(2)[0]
	kind.Need(version >= 1 && version <= 3, data.ErrUnsupported, "version of the npy format: got %d, want 1 to 3", version)
	size := uint32(binary.LittleEndian.Uint16(next(2)))
	if version > 1 {
		size |= uint32(binary.LittleEndian.Uint16(next(2))) << 16
	}
	kind.Need(size <= npyMaxHeader, data.ErrFormat, "npy header: got %d bytes, want at most %d", size, npyMaxHeader)
	text := next(int(size))
	header, err := npy.ParseHeader(string(text))
	kind.Need(err == nil, data.ErrFormat, "npy header %.80q: %w", text, err)
	a := newArray(npyType(header.Descr), header.Shape)
	a.fortran = header.Fortran
	return a
}

// npyWidths are the sizes in bytes of the values of a kind; for text, of a character.
var npyWidths = map[byte][]int{'b': {1}, 'u': {1, 2, 4, 8}, 'i': {1, 2, 4, 8}, 'f': {2, 4, 8}, 'S': {1}, 'U': {4}}

// npyType parses a type as NumPy writes it: the order of bytes, a letter for the kind,
// and the number of bytes of a value or of characters of a text.
func npyType(descr string) scalarType {
	kind.Need(!strings.HasPrefix(descr, "["), data.ErrUnsupported,
		"dtype: got the fields %.40q, want numbers; numpy.lib.recfunctions.structured_to_unstructured(x) converts them", descr)
	kind.Need(descr != "|O", data.ErrUnsupported,
		"dtype: got object, want numbers, or text for labels; numpy.array(x.tolist(), 'float32') or x.astype(str) converts it")
	known := func(ok bool) {
		kind.Need(ok, data.ErrUnsupported, "dtype: got %.40q, want bool or numbers of up to 64 bits, or text for labels; "+
			"x.astype('float32') or x.astype(str) converts it", descr)
	}
	known(len(descr) >= 3 && strings.IndexByte("<>|", descr[0]) >= 0)
	count, err := strconv.ParseUint(descr[2:], 10, 31)
	t := scalarType{descr[1], int(count), descr[0] == '>'}
	widths := npyWidths[t.kind]
	known(err == nil && count > 0 && widths != nil && (descr[0] != '|' || count == 1 || t.kind == 'S'))
	if t.isText() {
		kind.Need(count <= maxLabel, data.ErrUnsupported, "characters of a label: got %d, want at most %d", count, maxLabel)
		t.size *= widths[0]
	} else {
		known(slices.Contains(widths, t.size))
	}
	return t
}

// WriteNPY writes m as a float32 array of shape N×D in version 1.0 of NumPy's npy format.
// np.load and Read can read it. The error wraps data.ErrShape for an inconsistent matrix,
// or is w's.
func WriteNPY(w io.Writer, m *data.Matrix) error {
	if err := data.CheckDense(m); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, readBuffer)
	out.Write(npyHead(m.N, m.D))
	writeFloats(out, m.Relative(nil).X)
	// A bufio.Writer keeps the first error and returns it here.
	return out.Flush()
}

// npyHead returns the bytes before the values of a float32 array.
func npyHead(n, d int) []byte { return npy.Head(npyHeadSize, "<f4", n, d) }

func writeFloats(out *bufio.Writer, x []float32) {
	for part := range slices.Chunk(x, readBuffer/4) {
		_ = binary.Write(out, binary.LittleEndian, part) // out keeps the error
	}
}

// An NPYWriter writes a file like WriteNPY, for a number of rows that is known only at
// the end. Close writes the number into the header. Until then the header has no rows, so
// readers refuse an incomplete file.
type NPYWriter struct {
	w     io.WriteSeeker
	out   *bufio.Writer
	start int64 // position in w of the file's first byte
	n, d  int
}

// NewNPYWriter begins an npy file of rows of d values at w's current position. The error
// wraps data.ErrShape for d below 1, or is w's.
func NewNPYWriter(w io.WriteSeeker, d int) (_ *NPYWriter, err error) {
	defer kind.Catch(&err)
	kind.Need(d >= 1, data.ErrShape, "values per row: got %d, want at least 1", d)
	start, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("an array of unknown length needs a regular file (%w)", err)
	}
	p := &NPYWriter{w: w, out: bufio.NewWriterSize(w, readBuffer), start: start, d: d}
	kind.Got(p.out.Write(npyHead(0, d)))
	return p, nil
}

// Write adds the rows of m. The error wraps data.ErrShape for rows of another width, and
// data.ErrEmpty for no rows. Other errors are the file's, and every later call returns
// them.
func (p *NPYWriter) Write(m *data.Matrix) (err error) {
	defer kind.Catch(&err)
	checkWidth(m, p.d)
	writeFloats(p.out, m.Relative(nil).X)
	p.n += m.N
	// Without new bytes, Write returns the error of earlier ones.
	_, err = p.out.Write(nil)
	return err
}

// Close completes the file and leaves w's position at its end. The file is then the same
// as WriteNPY writes for the same rows. Close does not close w.
func (p *NPYWriter) Close() (err error) {
	defer kind.Catch(&err)
	kind.Check(p.out.Flush())
	kind.Got(p.w.Seek(p.start, io.SeekStart))
	kind.Got(p.w.Write(npyHead(p.n, p.d)))
	kind.Got(p.w.Seek(4*int64(p.n)*int64(p.d), io.SeekCurrent))
	return nil
}

// checkWidth fails as kind.Need does unless m has rows of d values.
func checkWidth(m *data.Matrix, d int) {
	kind.Check(data.CheckDense(m))
	kind.Need(m.D == d, data.ErrShape, "values per row: got %d, want %d as before", m.D, d)
}

const (
	// turnBytes is the number of bytes of an array in Fortran order that are transposed at a
	// time, but at least turnRows rows. Each piece of a column is a separate read.
	turnBytes = 1 << 22
	turnRows  = 64
	// turnColumns is the number of columns that are transposed together. They fill a line of
	// the processor's cache.
	turnColumns = 16
)

// A fortranReader transposes an array in Fortran order, stored column by column, into
// rows. If the source allows reading in any order, it reads some rows of all columns at a
// time. Otherwise it holds the whole array in memory.
type fortranReader struct {
	a     array
	s     *Input
	at    io.ReaderAt // the columns, one after the other; nil until it is read
	n, d  int
	order []int  // of each value of a row: its column; nil if these are in order
	rows  []byte // turned, and not yet delivered
	block []byte // memory for rows
	piece []byte // memory for pieces of columns
	done  int    // rows turned
}

// newFortranReader returns a reader of an array's values. The caller has checked the
// array's size against the file's size, if that is known.
func newFortranReader(a array, s *Input) *fortranReader {
	c := &fortranReader{a: a, s: s}
	c.n, c.d = a.rows()
	if s.at != nil {
		c.at = io.NewSectionReader(s.at, s.taken, int64(c.n)*int64(c.d)*int64(a.size))
	}
	return c
}

// full fills p with the next values in row order, like Input.full.
func (c *fortranReader) full(p []byte) (int, error) {
	if c.at == nil {
		if got, err := c.hold(); err != nil {
			return got, err
		}
	}
	filled := 0
	for filled < len(p) {
		if len(c.rows) == 0 {
			if err := c.turn(); err != nil {
				return filled, err
			}
		}
		n := copy(p[filled:], c.rows)
		filled, c.rows = filled+n, c.rows[n:]
	}
	return filled, nil
}

// pass skips n bytes of whole rows, before any row has been transposed.
func (c *fortranReader) pass(n int64) (int64, error) {
	if c.at == nil {
		if got, err := c.hold(); err != nil {
			return int64(got), err
		}
	}
	c.done += int(n / int64(c.d*c.a.size))
	return n, nil
}

// hold reads the whole array. Memory grows as values arrive.
func (c *fortranReader) hold() (int, error) {
	var all bytes.Buffer
	total := int64(c.n * c.d * c.a.size)
	n, err := all.ReadFrom(io.LimitReader(c.s.r, total))
	c.s.taken += n
	c.at = bytes.NewReader(all.Bytes())
	switch {
	case err != nil:
		return int(n), explain(err)
	case n < total:
		return int(n), errShort
	}
	return 0, nil
}

// turn makes the next rows from the columns.
func (c *fortranReader) turn() error {
	size := c.a.size
	if c.block == nil {
		most := max(turnRows, turnBytes/(c.d*size))
		c.block = make([]byte, min(c.n, most)*c.d*size)
		c.piece = make([]byte, turnColumns*min(c.n, most)*size)
		c.order = c.a.columnOrder()
	}
	count := min(c.n-c.done, len(c.block)/(c.d*size))
	for from := 0; from < c.d; from += turnColumns {
		columns := min(turnColumns, c.d-from)
		for k := range columns {
			column := from + k
			if c.order != nil {
				column = c.order[column]
			}
			start := (int64(column)*int64(c.n) + int64(c.done)) * int64(size)
			piece := c.piece[k*count*size : (k+1)*count*size]
			if n, err := c.at.ReadAt(piece, start); n < len(piece) {
				return explainShort(err)
			}
		}
		for k := range columns {
			to, piece := c.block[(from+k)*size:], c.piece[k*count*size:]
			for i := range count {
				copy(to[i*c.d*size:][:size], piece[i*size:])
			}
		}
	}
	c.rows = c.block[:count*c.d*size]
	c.done += count
	return nil
}

// atEnd returns nil if nothing follows the values, once all have been delivered.
func (c *fortranReader) atEnd() error {
	if rest := int64(c.n) * int64(c.d) * int64(c.a.size); c.s.at != nil && !c.s.sealed {
		if c.s.left() > rest {
			return errTrailing
		}
		return nil
	} else if c.s.at != nil {
		// The checksum needs the bytes in file order.
		if _, err := io.CopyN(io.Discard, c.s.r, rest); err != nil {
			return explain(err)
		}
	}
	return c.s.atEnd()
}

// columnOrder returns, for each value of a row in C order, its column in Fortran order. It
// returns nil if the two are the same.
func (a array) columnOrder() []int {
	if len(a.shape) <= 2 {
		return nil
	}
	_, d := a.rows()
	order := make([]int, d)
	for e := range order {
		rest, stride := e, d
		for _, n := range slices.Backward(a.shape[1:]) {
			stride /= n
			order[e] += rest % n * stride
			rest /= n
		}
	}
	return order
}
