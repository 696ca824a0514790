package file

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
)

// A scalarType is the type of an array's values in a file.
type scalarType struct {
	// kind is NumPy's letter: 'b' bool, 'u' unsigned integer, 'i' signed integer, 'f' IEEE
	// 754, 'S' text of bytes and 'U' text of 4-byte characters (both only for labels).
	kind byte
	size int  // bytes
	big  bool // the most significant byte comes first
}

func (t scalarType) String() string { return fmt.Sprintf("%c%d%t", t.kind, t.size, t.big) }

func (t scalarType) isByte() bool { return t.kind == 'u' && t.size == 1 }

func (t scalarType) isText() bool { return t.kind == 'S' || t.kind == 'U' }

// isFloat32 reports whether float32 holds every value of the type.
func (t scalarType) isFloat32() bool {
	return t.kind == 'f' && t.size == 4 || t.size <= 2
}

// bits64 returns the bits of value i of b. The branch on the order of bytes costs
// nothing, because it is always predicted.
func (t scalarType) bits64(b []byte, i int) (v uint64) {
	switch b = b[i*t.size:]; t.size {
	case 1:
		return uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	if t.big {
		v = bits.ReverseBytes64(v) >> (64 - 8*t.size)
	}
	return v
}

// isWide reports whether the type is uint64, which int64 cannot hold.
func (t scalarType) isWide() bool { return t.kind == 'u' && t.size == 8 }

// integer returns value i of b, of a type of bool or of integers that is not wide.
func (t scalarType) integer(b []byte, i int) int64 {
	u := t.bits64(b, i)
	switch t.kind {
	case 'b':
		return int64(min(u, 1))
	case 'u':
		return int64(u)
	}
	shift := 64 - 8*t.size
	return int64(u<<shift) >> shift
}

// float returns value i of b, of a type of IEEE 754.
func (t scalarType) float(b []byte, i int) float64 {
	u := t.bits64(b, i)
	switch t.size {
	case 2:
		return half(uint16(u))
	case 4:
		return float64(math.Float32frombits(uint32(u)))
	}
	return math.Float64frombits(u)
}

// half returns the value of a float16 from its bits: a sign, 5 bits of exponent, and 10
// bits of fraction.
func half(h uint16) float64 {
	sign, exponent, fraction := uint64(h>>15), uint64(h>>10&31), uint64(h&1023)
	if exponent == 0 { // subnormal, or zero
		return math.Copysign(float64(fraction)/(1<<24), 1-float64(2*float64(sign)))
	}
	if exponent == 31 { // infinite, or NaN
		exponent = 2047
	} else {
		exponent += 1023 - 15
	}
	return math.Float64frombits(sign<<63 | exponent<<52 | fraction<<42)
}

// number returns value i of b.
func (t scalarType) number(b []byte, i int) float64 { return t.minus(b, i, 0) }

// minus returns value i of b minus an offset.
func (t scalarType) minus(b []byte, i int, offset float64) float64 {
	switch {
	case t.kind == 'f':
		return t.float(b, i) - offset
	case t.isWide():
		return subtractUnsigned(t.bits64(b, i), offset)
	}
	return subtract(t.integer(b, i), offset)
}

// float32s converts the values in src.
func (t scalarType) float32s(dst []float32, src []byte) {
	switch {
	case t.isByte():
		selection.Convert(dst, src[:len(dst)])
	case t.kind == 'f' && t.size == 4 && !t.big:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case t.kind == 'i' && t.size == 4 && !t.big:
		for i := range dst {
			dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case t.kind == 'u' && t.size == 4 && !t.big:
		for i := range dst {
			dst[i] = float32(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case t.kind == 'f':
		for i := range dst {
			dst[i] = float32(t.float(src, i))
		}
	case t.isWide():
		for i := range dst {
			dst[i] = float32(t.bits64(src, i))
		}
	default:
		for i := range dst {
			dst[i] = float32(t.integer(src, i))
		}
	}
}

// label returns value i of b as a label. NaN is "".
func (t scalarType) label(b []byte, i int) (string, error) {
	switch {
	case t.kind == 'f':
		v := t.float(b, i)
		if math.IsNaN(v) {
			return "", nil
		}
		if !simd.IsFinite(v) {
			return "", errorf(data.ErrFormat, "got %v, want a finite number, or NaN for none", v)
		}
		return strconv.FormatFloat(v, 'g', -1, max(32, 8*t.size)), nil
	case t.kind == 'b':
		return selection.If(t.integer(b, i) == 0, "False", "True"), nil
	case t.kind == 'S':
		text := strings.TrimRight(string(b[i*t.size:(i+1)*t.size]), "\x00")
		if !utf8.ValidString(text) {
			return "", errorf(data.ErrFormat, "got %.40q, want UTF-8; convert the labels with np.char.decode(x, 'latin-1')", text)
		}
		return strings.TrimSpace(text), nil
	case t.kind == 'U':
		return t.characters(b[i*t.size : (i+1)*t.size])
	case t.isWide():
		return strconv.FormatUint(t.bits64(b, i), 10), nil
	}
	return strconv.FormatInt(t.integer(b, i), 10), nil
}

// characters returns a text of 4-byte characters, without the zeros that pad it.
func (t scalarType) characters(b []byte) (string, error) {
	character := scalarType{'u', 4, t.big}
	var text []byte
	for i := range len(b) / 4 {
		c := character.bits64(b, i)
		if c > unicode.MaxRune || !utf8.ValidRune(rune(c)) {
			return "", errorf(data.ErrFormat, "got the character %#x, want one of Unicode", c)
		}
		text = utf8.AppendRune(text, rune(c))
	}
	return strings.TrimSpace(strings.TrimRight(string(text), "\x00")), nil
}

// An array describes the values of an IDX or npy file, from its header.
type array struct {
	scalarType
	shape   []int // each 0 or more; the product of all and the size fits an int
	fortran bool  // the first index runs fastest
}

// newArray checks the shape found in a header.
func newArray(t scalarType, shape []int) array {
	total := uint64(t.size)
	for _, n := range shape {
		hi, lo := bits.Mul64(total, uint64(n))
		kind.Need(n >= 0 && hi == 0 && lo <= math.MaxInt64, data.ErrFormat, "shape: got %s, want one that fits into memory", shapeText(shape))
		total = lo
	}
	return array{scalarType: t, shape: shape}
}

// rows returns the number of points and of values in each.
func (a array) rows() (n, d int) {
	n, d = a.shape[0], 1
	for _, s := range a.shape[1:] {
		d *= s
	}
	return n, d
}

// shapeText writes a shape as 60000×28×28.
func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "()"
	}
	return strings.Join(selection.Map(shape, strconv.Itoa), "×")
}

// subtract returns a whole number minus an offset. If the offset is whole, too, the
// number is not rounded to float64 first.
func subtract(v int64, offset float64) float64 {
	if o := int64(offset); math.Abs(offset) < 1<<62 && float64(o) == offset {
		if d := v - o; (d > v) == (o < 0) {
			return float64(d)
		}
	}
	return float64(v) - offset
}

// subtractUnsigned is subtract for whole numbers from 0 to 2⁶⁴−1.
func subtractUnsigned(v uint64, offset float64) float64 {
	if offset >= 0 && offset < 1<<64 && offset == math.Trunc(offset) {
		o := uint64(offset)
		if v < o {
			return -float64(o - v)
		}
		return float64(v - o)
	}
	return float64(v) - offset
}

// arrayBuffer is the number of bytes of an array that are read at a time and then
// converted on all cores.
const arrayBuffer = 1 << 22

// castagnoli is the polynomial that processors have an instruction for, so a checksum
// takes less time than reading.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// valueBytes are the bytes of the values of an array, in C order.
type valueBytes interface {
	// full fills p. Otherwise it returns the number of bytes read and errShort or another
	// error.
	full(p []byte) (int, error)
	// pass skips n bytes of whole rows, before any row is read. Its results are as for full.
	pass(n int64) (int64, error)
	// atEnd returns nil if nothing follows.
	atEnd() error
}

// An arrayReader reads the values of an array piece by piece, once the header has
// been read.
type arrayReader struct {
	head
	array
	values valueBytes // in C order
	total  int        // values that the header announces
	done   int        // values read so far
	buf    []byte
}

// newArrayReader begins to read an array. It first checks that the input can hold the
// array, if the size of the input is known.
func newArrayReader(a array, in *Input) *arrayReader {
	n, d := a.rows()
	r := &arrayReader{array: a, total: n * d, values: in}
	if left := in.left(); left >= 0 && int64(r.total) > left/int64(a.size) {
		kind.Check(r.truncated(int(left) / a.size))
	}
	inOrder := !a.fortran || len(a.shape) < 2
	if !inOrder {
		r.values = newFortranReader(a, in)
	}
	r.head = head{in: in, n: n, width: d, shape: a.shape, dtype: a.String(), isByte: a.isByte(), exact: a.isFloat32(), finite: a.kind != 'f'}
	if r.isByte {
		r.head.bytes = r
	}
	switch {
	case inOrder && in.at != nil:
		r.storage = data.InFiles
	case inOrder && r.isByte:
		r.storage = data.AsBytes
	}
	return r
}

// An arrayFormat reads the header of a format that holds one array.
type arrayFormat func(in *Input) array

// open begins to read points: an array of two or more dimensions. Rows are flattened.
func (f arrayFormat) open(in *Input, _ *Options) reader {
	a := f(in)
	kind.Need(len(a.shape) > 0, data.ErrShape, "shape: got a single number, want a row for each point")
	n, d := a.rows()
	kind.Need(len(a.shape) > 1, data.ErrShape,
		"shape: got %d, want a row for each point; reshape points of one value to %[1]d×1, and one point to 1×%[1]d, or name the file as labels", n)
	kind.Need(!a.isText(), data.ErrUnsupported, "values: got text, want numbers; x.astype('float32') converts it")
	kind.Need(n > 0 && d > 0, data.ErrEmpty, "shape: got %s, want at least one row and one column", shapeText(a.shape))
	return newArrayReader(a, in)
}

// labels begins to read an array of labels.
func (f arrayFormat) labels(in *Input) *arrayReader {
	a := f(in)
	d := 0
	if len(a.shape) > 0 {
		_, d = a.rows()
	}
	kind.Need(d == 1, data.ErrShape, "labels: got an array of shape %s, want one dimension; are these the points?", shapeText(a.shape))
	return newArrayReader(a, in)
}

// next returns the bytes of the next values, at most limit of them, and their number.
// After the last value it returns io.EOF if the file ends there, too. The bytes are valid
// until the next call.
func (r *arrayReader) next(limit int) (src []byte, n int, err error) {
	if r.done == r.total {
		if err := r.values.atEnd(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	left := r.total - r.done
	if r.buf == nil {
		r.buf = make([]byte, min(r.total*r.size, readBuffer/r.size*r.size))
	} else if most := min(arrayBuffer, r.total/16*r.size) / r.size * r.size; len(r.buf) < most && left*r.size > most {
		r.buf = make([]byte, most) // some values have been read
	}
	n = min(limit, left, len(r.buf)/r.size)
	got, err := r.values.full(r.buf[:n*r.size])
	if err != nil {
		return nil, 0, r.short(err, got)
	}
	if r.summed {
		r.sum = crc32.Update(r.sum, castagnoli, r.buf[:got])
	}
	r.done += n
	return r.buf, n, nil
}

// short returns the error for values that ended after got bytes.
func (r *arrayReader) short(err error, got int) error {
	if err != errShort {
		return err
	}
	return r.truncated(r.done + got/r.size)
}

func (r *arrayReader) truncated(got int) error {
	return errorf(data.ErrFormat, "values: got %d, want %d (shape %s); the file is truncated", got, r.total, shapeText(r.array.shape))
}

// skip implements reader.
func (r *arrayReader) skip(rows int) (passed int, err error) {
	rows = min(rows, (r.total-r.done)/r.width)
	got, err := r.values.pass(int64(rows) * int64(r.width) * int64(r.size))
	if err != nil {
		return 0, r.short(err, int(got))
	}
	r.done += rows * r.width
	return rows, nil
}

// read implements reader.
func (r *arrayReader) read(dst []float32) (int, error) {
	return r.each(len(dst), func(filled int, src []byte, n int) { r.convertAll(r.scalarType, dst[filled:filled+n], src, r.done-n) })
}

// readBytes fills dst as read does, with values that are unsigned bytes.
func (r *arrayReader) readBytes(dst []byte) (int, error) {
	return r.each(len(dst), func(filled int, src []byte, n int) { copy(dst[filled:], src[:n]) })
}

// each passes up to want of the next values to put, in pieces, and returns their number.
// After the last value it returns io.EOF.
func (r *arrayReader) each(want int, put func(filled int, src []byte, n int)) (filled int, err error) {
	for filled < want || r.done == r.total {
		src, n, err := r.next(want - filled)
		if err != nil {
			return filled, err
		}
		put(filled, src, n)
		filled += n
	}
	return filled, nil
}

// allLabels reads all values as labels.
func (r *arrayReader) allLabels() ([]string, error) {
	labels := make([]string, 0, r.in.trusted(r.total))
	for {
		src, n, err := r.next(r.total)
		if err == io.EOF {
			return labels, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range n {
			label, err := r.label(src, i)
			if err != nil {
				return nil, fmt.Errorf("label %d: %w", len(labels)+1, err)
			}
			labels = append(labels, label)
		}
	}
}

// idxTypes are the types of values by their numbers in IDX. In all of them the most
// significant byte comes first.
var idxTypes = map[byte]scalarType{
	0x08: {'u', 1, true},
	0x09: {'i', 1, true},
	0x0b: {'i', 2, true},
	0x0c: {'i', 4, true},
	0x0d: {'f', 4, true},
	0x0e: {'f', 8, true},
}

// idxHeader reads the header of the IDX format (MNIST), of any element type.
var idxHeader = arrayFormat(readIDXHeader)

// readIDXHeader reads the head of an IDX file: two zero bytes, the type of the
// values, the number of dimensions, and four bytes for each of these.
func readIDXHeader(s *Input) array {
	var magic [4]byte
	n, err := s.full(magic[:])
	kind.Need(err != errShort, data.ErrFormat, "IDX header: got %d bytes, want 4 or more", n)
	kind.Check(err)
	e, ok := idxTypes[magic[2]]
	kind.Need(magic[0] == 0 && magic[1] == 0 && ok, data.ErrFormat,
		"IDX magic number: got % x, want 00 00, then 08, 09, 0b, 0c, 0d or 0e", magic)
	sizes, shape := make([]byte, 4*int(magic[3])), make([]int, magic[3])
	_, err = s.full(sizes)
	kind.Need(err != errShort, data.ErrFormat, "IDX header: got an early end, want the sizes of %d dimensions", len(shape))
	kind.Check(err)
	for i := range shape {
		shape[i] = int(binary.BigEndian.Uint32(sizes[4*i:]))
	}
	return newArray(e, shape)
}
