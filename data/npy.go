package data

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	npyMagic = "\x93NUMPY"
	// npyMaxHeader bounds the header's length. NumPy itself refuses headers
	// of more than 10 000 characters unless told otherwise.
	npyMaxHeader = 1 << 16
	// npyHeadSize is where the values begin in files we write. It is a multiple
	// of 64, so that they can be mapped into memory, as NumPy wants it, and has
	// room for any two numbers.
	npyHeadSize = 128
)

// npyTypes are the types that ReadNPY accepts, as NumPy writes them.
var npyTypes = map[string]scalarType{
	"<f4": {'f', 4, false},
	"<f8": {'f', 8, false},
	"|u1": {'u', 1, false},
	"<i4": {'i', 4, false},
	"<i8": {'i', 8, false},
}

// ReadNPY reads points from a file in NumPy's npy format, version 1 to 3:
// an array of two or more dimensions (rows are flattened) of float32,
// float64, uint8, int32 or int64, little-endian and in C order, plain or
// compressed with gzip. Values become float32. The dataset has no name and no
// labels. Other types and orders give ErrUnsupported, damage gives ErrFormat,
// an array of one dimension ErrShape.
func ReadNPY(r io.Reader) (*Dataset, error) { return readArrayPoints(r, formatNPY) }

// npyHeader reads the head of an npy file.
func npyHeader(s *byteSource) (array, error) {
	var fixed [8]byte
	n, err := s.full(fixed[:])
	if err != nil && err != errShort {
		return array{}, err
	}
	if n < len(npyMagic) || string(fixed[:len(npyMagic)]) != npyMagic {
		return array{}, errorf(ErrFormat, "the file does not begin with \\x93NUMPY, so it is no npy file; write it with np.save")
	}
	truncated := errorf(ErrFormat, "the file ends within its header; it is truncated, write it again with np.save")
	if err == errShort {
		return array{}, truncated
	}
	length := make([]byte, 2)
	switch version := fixed[6]; version {
	case 1:
	case 2, 3:
		length = make([]byte, 4)
	default:
		return array{}, errorf(ErrUnsupported, "the file has version %d of the npy format, and 1 to 3 are known; write it again with np.save", version)
	}
	if _, err := s.full(length); err == errShort {
		return array{}, truncated
	} else if err != nil {
		return array{}, err
	}
	size := uint64(binary.LittleEndian.Uint16(length))
	if len(length) == 4 {
		size = uint64(binary.LittleEndian.Uint32(length))
	}
	if size > npyMaxHeader {
		return array{}, errorf(ErrFormat, "the npy header claims to be %d bytes long, more than the %d of any array of numbers; write the file again with np.save", size, npyMaxHeader)
	}
	text := make([]byte, size)
	if _, err := s.full(text); err == errShort {
		return array{}, truncated
	} else if err != nil {
		return array{}, err
	}
	return parseNPYHeader(string(text))
}

// parseNPYHeader reads the Python dictionary in a header, for example
// {'descr': '<f4', 'fortran_order': False, 'shape': (70000, 784), }.
func parseNPYHeader(text string) (array, error) {
	p := npyParser{rest: text}
	fields, err := p.dict()
	if err != nil {
		return array{}, errorf(ErrFormat, "the npy header %.80q cannot be understood (%w); write the file again with np.save", text, err)
	}
	e, ok := npyTypes[fields.descr]
	if !ok {
		return array{}, errorf(ErrUnsupported, "the array has the dtype %.40q; float32, float64, uint8, int32 and int64 in little-endian order are read: convert it with np.ascontiguousarray(x).astype('float32'), or images with .astype('uint8')", fields.descr)
	}
	if fields.fortran {
		return array{}, errorf(ErrUnsupported, "the array is stored in Fortran order (column by column); convert it with np.ascontiguousarray(x)")
	}
	return newArray(e, fields.shape)
}

type npyFields struct {
	descr   string
	fortran bool
	shape   []int
}

// An npyParser reads the literals that occur in npy headers, from the front
// of rest.
type npyParser struct{ rest string }

// skip passes over white space and then over token, if that comes next.
func (p *npyParser) skip(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *npyParser) dict() (f npyFields, err error) {
	if !p.skip("{") {
		return f, fmt.Errorf("it is no dictionary")
	}
	seen := make(map[string]bool)
	for !p.skip("}") {
		key, err := p.quoted()
		if err != nil {
			return f, err
		}
		if seen[key] {
			return f, fmt.Errorf("the key %q occurs twice", key)
		}
		seen[key] = true
		if !p.skip(":") {
			return f, fmt.Errorf("there is no colon after %q", key)
		}
		switch key {
		case "descr":
			f.descr, err = p.descr()
		case "fortran_order":
			f.fortran, err = p.boolean()
		case "shape":
			f.shape, err = p.tuple()
		default:
			err = fmt.Errorf("the key %q is unknown", key)
		}
		if err != nil {
			return f, err
		}
		if !p.skip(",") {
			if !p.skip("}") {
				return f, fmt.Errorf("there is no closing brace")
			}
			break
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return f, fmt.Errorf("the key %q is missing", key)
		}
	}
	if strings.TrimRight(p.rest, " \t\r\n\x00") != "" {
		return f, fmt.Errorf("something follows the dictionary")
	}
	return f, nil
}

// quoted reads a string in single or double quotes, without escapes.
func (p *npyParser) quoted() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.skip(quote) {
			text, rest, ok := strings.Cut(p.rest, quote)
			if !ok {
				return "", fmt.Errorf("a quotation mark is not closed")
			}
			p.rest = rest
			return text, nil
		}
	}
	return "", fmt.Errorf("a string is missing")
}

// descr reads the type. That of a structured array is a list, of which the
// beginning is enough to refuse it.
func (p *npyParser) descr() (string, error) {
	if !p.skip("[") {
		return p.quoted()
	}
	depth := 1
	for i, c := range p.rest {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			list := "[" + p.rest[:i+1]
			p.rest = p.rest[i+1:]
			return list, nil
		}
	}
	return "", fmt.Errorf("a list is not closed")
}

func (p *npyParser) boolean() (bool, error) {
	if p.skip("True") {
		return true, nil
	}
	if p.skip("False") {
		return false, nil
	}
	return false, fmt.Errorf("fortran_order is neither True nor False")
}

func (p *npyParser) tuple() ([]int, error) {
	if !p.skip("(") {
		return nil, fmt.Errorf("shape is no tuple")
	}
	shape := []int{}
	for !p.skip(")") {
		p.skip("") // white space
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.Atoi(p.rest[:digits])
		if err != nil {
			return nil, fmt.Errorf("shape holds something other than sizes")
		}
		p.rest = p.rest[digits:]
		p.skip("L") // Python 2 marked long integers so
		shape = append(shape, n)
		if !p.skip(",") {
			if !p.skip(")") {
				return nil, fmt.Errorf("shape is not closed")
			}
			break
		}
	}
	return shape, nil
}

// WriteNPY writes m as a float32 array of shape N×D in version 1.0 of
// NumPy's npy format, which np.load and ReadNPY read. The error is that of w,
// or of a matrix whose fields contradict each other.
func WriteNPY(w io.Writer, m *Matrix) error {
	if err := m.check(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, readBuffer)
	out.Write(npyHead(m.N, m.D))
	writeFloats(out, m.X)
	// A bufio.Writer keeps the first error and returns it here.
	return out.Flush()
}

// npyHead returns all that stands before the values of a float32 array: the
// magic number, the version, the length of the header and the header, filled
// up with spaces.
func npyHead(n, d int) []byte {
	head := make([]byte, 0, npyHeadSize)
	head = append(head, npyMagic...)
	head = append(head, 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(npyHeadSize-len(head)-2))
	head = fmt.Appendf(head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", n, d)
	for len(head) < npyHeadSize-1 {
		head = append(head, ' ')
	}
	return append(head, '\n')
}

func writeFloats(out *bufio.Writer, x []float32) {
	var b [4]byte
	for _, v := range x {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
		out.Write(b[:])
	}
}

// An NPYWriter writes a file as WriteNPY does when the number of rows is known
// only in the end: Close writes it into the header. Until then the header says
// that there are no rows, so that readers refuse a file that was never
// completed.
type NPYWriter struct {
	w     io.WriteSeeker
	out   *bufio.Writer
	start int64 // where in w the file begins
	n, d  int
}

// NewNPYWriter begins an npy file of rows of d values at w's current position.
// A d below 1 gives ErrShape; other errors are those of w.
func NewNPYWriter(w io.WriteSeeker, d int) (*NPYWriter, error) {
	if d < 1 {
		return nil, errorf(ErrShape, "an array with rows of %d values cannot be written; a row needs at least one", d)
	}
	start, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("an array of unknown length needs a file in which one can go back (%w); write to a regular file", err)
	}
	p := &NPYWriter{w: w, out: bufio.NewWriterSize(w, readBuffer), start: start, d: d}
	_, err = p.out.Write(npyHead(0, d))
	return p, err
}

// Write adds the rows of m. Rows of another width give ErrShape, no rows
// ErrEmpty; other errors are those of the file, and last.
func (p *NPYWriter) Write(m *Matrix) error {
	if err := m.checkWidth(p.d); err != nil {
		return err
	}
	writeFloats(p.out, m.X)
	p.n += m.N
	// Without new bytes, Write returns the error of earlier ones.
	_, err := p.out.Write(nil)
	return err
}

// N returns the number of rows written so far.
func (p *NPYWriter) N() int { return p.n }

// Close completes the file, which is then what WriteNPY writes for the same
// rows, and leaves w's position at its end. It does not close w.
func (p *NPYWriter) Close() error {
	if err := p.out.Flush(); err != nil {
		return err
	}
	if _, err := p.w.Seek(p.start, io.SeekStart); err != nil {
		return err
	}
	if _, err := p.w.Write(npyHead(p.n, p.d)); err != nil {
		return err
	}
	_, err := p.w.Seek(4*int64(p.n)*int64(p.d), io.SeekCurrent)
	return err
}
