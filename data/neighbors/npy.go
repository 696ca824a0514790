package neighbors

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"cne/internal/npy"
)

// This file reads and writes the .npy members of a CSR archive: NumPy's format
// 1.0 to 3.0, arrays of at most one dimension, streamed item by item. A
// general reader would have to trust the sizes in the header, or to copy.

// An array is an open member of an archive.
type array struct {
	io.Closer
	r     *bufio.Reader
	name  string
	kind  byte // NumPy's letter: b, i, u, f, c, S or U
	size  int  // bytes of an item
	order binary.ByteOrder
	dims  int
	most  int   // dimensions that are read
	shape []int // as long
	// fortran tells that the first of two dimensions runs fastest.
	fortran bool
	count   int64 // items
}

const (
	// maxHeader is far above what an array of one dimension needs.
	maxHeader = 1 << 16
)

// openArray opens a member and checks that its header and the archive's
// directory agree on its size.
func openArray(archive *zip.Reader, name string) (*array, error) {
	return openArrayOf(archive, name, 1)
}

// openArrayOf is openArray for up to so many dimensions.
func openArrayOf(archive *zip.Reader, name string, most int) (*array, error) {
	var member *zip.File
	for _, f := range archive.File {
		if f.Name == name {
			member = f
			break
		}
	}
	if member == nil {
		return nil, fmt.Errorf("%s is missing from the archive; write the file with scipy.sparse.save_npz", name)
	}
	rc, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be unpacked (%w); write the file with scipy.sparse.save_npz", name, err)
	}
	a := &array{Closer: rc, r: bufio.NewReaderSize(rc, 1<<16), name: name, most: most}
	if err := a.readHeader(member.UncompressedSize64); err != nil {
		rc.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func (a *array) readHeader(memberSize uint64) error {
	var start [12]byte
	prefix := start[:10]
	if _, err := io.ReadFull(a.r, prefix); err != nil {
		return fmt.Errorf("it is too short or cannot be unpacked (%w); copy or write the file again", err)
	}
	if string(prefix[:6]) != npy.Magic {
		return errors.New("not an array in NumPy's .npy format; write the file with scipy.sparse.save_npz")
	}
	length := uint64(binary.LittleEndian.Uint16(start[8:]))
	switch major := start[6]; major {
	case 1:
	case 2, 3:
		prefix = start[:12]
		if _, err := io.ReadFull(a.r, start[10:]); err != nil {
			return errors.New("its header is cut off; copy or write the file again")
		}
		length = uint64(binary.LittleEndian.Uint32(start[8:]))
	default:
		return fmt.Errorf("its .npy format is version %d, but only 1 to 3 can be read; write it with NumPy's np.save", major)
	}
	if length > maxHeader {
		return fmt.Errorf("its header claims to have %d bytes, but a plain array's has about a hundred; write the file again", length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(a.r, text); err != nil {
		return errors.New("its header is cut off; copy or write the file again")
	}
	// The order of storage does not matter for arrays of at most one dimension.
	header, err := npy.ParseHeader(string(text))
	if err != nil || strings.HasPrefix(header.Descr, "[") { // a list is that of a structured array
		return errHeader
	}
	if err := a.setType(header.Descr); err != nil {
		return err
	}
	a.dims = len(header.Shape)
	if a.dims > a.most {
		return fmt.Errorf("it has %d dimensions, but must have at most %d; write the file with scipy.sparse.save_npz", a.dims, a.most)
	}
	a.shape, a.fortran = header.Shape, header.Fortran
	need, over := uint64(a.size), uint64(0)
	a.count = 1
	for _, n := range a.shape {
		hi, lo := bits.Mul64(need, uint64(n))
		over |= hi | lo>>63
		need = lo
		a.count *= int64(n)
	}
	if have := memberSize - uint64(len(prefix)) - length; over != 0 || need != have || memberSize < uint64(len(prefix))+length {
		return fmt.Errorf("its header announces %d items of %d bytes, but that is not what the archive holds; copy or write the file again", a.count, a.size)
	}
	return nil
}

// setType understands a NumPy type such as <i4.
func (a *array) setType(descr string) error {
	unknown := fmt.Errorf("its items are of type %.20q, which cannot be read; convert them, for example with .astype(\"float32\")", descr)
	if len(descr) < 3 {
		return unknown
	}
	switch descr[0] {
	case '<', '|':
		a.order = binary.LittleEndian
	case '>':
		a.order = binary.BigEndian
	default:
		return unknown
	}
	a.kind = descr[1]
	for _, c := range descr[2:] {
		if c < '0' || c > '9' {
			return unknown
		}
	}
	size, err := strconv.Atoi(descr[2:])
	if err != nil {
		return unknown
	}
	a.size = size
	known := false
	switch a.kind {
	case 'b':
		known = size == 1
	case 'i', 'u':
		known = size == 1 || size == 2 || size == 4 || size == 8
	case 'f':
		known = size == 2 || size == 4 || size == 8
	case 'c':
		known = size == 8 || size == 16
	case 'S':
		known = size >= 1 && size <= maxHeader
	case 'U':
		known = size >= 1 && size <= maxHeader
		a.size *= 4
	}
	if !known {
		return unknown
	}
	return nil
}

// each passes the items' bytes to f in turn, until f returns an error. The
// bytes are f's only until it returns. After the last item it reads on to the
// end, where the archive's reader checks the size and the checksum.
func (a *array) each(f func(item []byte) error) error {
	item := make([]byte, a.size)
	for range a.count {
		if _, err := io.ReadFull(a.r, item); err != nil {
			return a.broken(err)
		}
		if err := f(item); err != nil {
			return err
		}
	}
	if _, err := a.r.ReadByte(); err != io.EOF {
		return a.broken(err)
	}
	return nil
}

func (a *array) broken(err error) error {
	return fmt.Errorf("%s cannot be unpacked (%w); copy or write the file again", a.name, err)
}

// openIntegers opens a one-dimensional array of integers.
func openIntegers(archive *zip.Reader, name string) (*array, error) {
	a, err := openArray(archive, name)
	if err != nil {
		return nil, err
	}
	if a.dims != 1 || a.kind != 'i' && a.kind != 'u' {
		a.Close()
		return nil, fmt.Errorf("%s is not a list of integers; write the file with scipy.sparse.save_npz", name)
	}
	return a, nil
}

// integer returns the value of an item of kind i or u, and whether it is from
// 0 to 2⁶³−1.
func (a *array) integer(item []byte) (int64, bool) {
	var v uint64
	var sign uint64
	switch a.size {
	case 1:
		v, sign = uint64(item[0]), 1<<7
	case 2:
		v, sign = uint64(a.order.Uint16(item)), 1<<15
	case 4:
		v, sign = uint64(a.order.Uint32(item)), 1<<31
	default:
		v, sign = a.order.Uint64(item), 1<<63
	}
	return int64(v), v <= math.MaxInt64 && (a.kind == 'u' || v&sign == 0)
}

// zeroTest returns a function that reports whether an item is the number
// zero, of either sign.
func (a *array) zeroTest() (func(item []byte) bool, error) {
	part := a.size // bytes that have a sign bit of their own
	switch a.kind {
	case 'b', 'i', 'u':
		part = 0
	case 'f':
	case 'c':
		part /= 2
	default:
		return nil, fmt.Errorf("%s holds no numbers; write the file with scipy.sparse.save_npz", a.name)
	}
	signAt := part - 1
	if a.order == binary.ByteOrder(binary.BigEndian) {
		signAt = 0
	}
	return func(item []byte) bool {
		for i, b := range item {
			if part > 0 && i%part == signAt {
				b &^= 1 << 7
			}
			if b != 0 {
				return false
			}
		}
		return true
	}, nil
}

// finite tells whether a number is neither NaN nor infinite: whether the exponent of
// a floating-point one, or of either part of a complex one, has a zero.
func (a *array) finite(item []byte) bool {
	size := a.size
	switch a.kind {
	case 'f':
	case 'c':
		size /= 2
	default:
		return true
	}
	exponent := map[int]uint16{2: 0x7c00, 4: 0x7f80, 8: 0x7ff0}[size]
	if exponent == 0 {
		return true // of no size that IEEE 754 interchanges
	}
	for part := 0; part < len(item); part += size {
		at := part + size - 2
		if a.order == binary.ByteOrder(binary.BigEndian) {
			at = part
		}
		if a.order.Uint16(item[at:])&exponent == exponent {
			return false
		}
	}
	return true
}

// weight returns the magnitude of a finite number other than zero as a float32 that is
// none either: those too large or small become the largest or least. Of a complex number,
// and of one of a size that IEEE 754 does not interchange, it is 1.
func (a *array) weight(item []byte) float32 {
	v := 1.
	switch {
	case a.kind == 'i' && a.size < 8:
		n, _ := a.integer(item)
		shift := 64 - 8*a.size
		v = float64(n << shift >> shift) // with its sign
	case a.kind == 'i', a.kind == 'u':
		n, _ := a.integer(item)
		v = float64(uint64(n))
		if a.kind == 'i' {
			v = float64(n)
		}
	case a.kind == 'f' && a.size == 2:
		v = halfValue(a.order.Uint16(item))
	case a.kind == 'f' && a.size == 4:
		v = float64(math.Float32frombits(a.order.Uint32(item)))
	case a.kind == 'f' && a.size == 8:
		v = math.Float64frombits(a.order.Uint64(item))
	}
	return float32(min(max(math.Abs(v), math.SmallestNonzeroFloat32), math.MaxFloat32))
}

// halfValue returns the value of a finite float16.
func halfValue(bits uint16) float64 {
	fraction, exponent := float64(bits&0x3ff)/1024, int(bits>>10&0x1f)
	if exponent == 0 {
		return math.Ldexp(fraction, -14)
	}
	return math.Ldexp(1+fraction, exponent-15)
}

var errHeader = errors.New("its header is not that of a plain .npy array; write the file with scipy.sparse.save_npz")

// writeArray adds a member with an array of the given type, in NumPy's notation,
// and shape, whose items are written by items. Errors of its writer come up when
// it is flushed.
func writeArray(z *zip.Writer, name, descr string, shape []int, items func(w *bufio.Writer)) error {
	member, err := z.CreateHeader(&zip.FileHeader{
		Name:   name,
		Method: zip.Deflate,
		// The earliest date that a zip file can hold, as NumPy writes.
		Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(member, 1<<16)
	w.Write(npy.Head(64, descr, shape...))
	items(w)
	return w.Flush()
}
