package data

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// An element describes how an array in a file stores one value.
type element struct {
	kind byte // 'u' unsigned integer, 'i' signed integer, 'f' IEEE 754
	size int  // bytes
	big  bool // the most significant byte comes first
}

func (e element) isByte() bool { return e.kind == 'u' && e.size == 1 }

// bits64 returns value i of b, without its meaning. The order of the bytes is
// a plain branch, which costs nothing because it always goes the same way.
func (e element) bits64(b []byte, i int) uint64 {
	b = b[i*e.size:]
	switch {
	case e.size == 1:
		return uint64(b[0])
	case e.size == 2 && e.big:
		return uint64(binary.BigEndian.Uint16(b))
	case e.size == 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case e.size == 4 && e.big:
		return uint64(binary.BigEndian.Uint32(b))
	case e.size == 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case e.big:
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// integer returns value i of b; the element is an integer.
func (e element) integer(b []byte, i int) int64 {
	u := e.bits64(b, i)
	if e.kind == 'u' {
		return int64(u) // no unsigned element is wider than a byte
	}
	shift := 64 - 8*e.size
	return int64(u<<shift) >> shift
}

// float returns value i of b; the element is IEEE 754.
func (e element) float(b []byte, i int) float64 {
	u := e.bits64(b, i)
	if e.size == 4 {
		return float64(math.Float32frombits(uint32(u)))
	}
	return math.Float64frombits(u)
}

// float32s converts the values in src.
func (e element) float32s(dst []float32, src []byte) {
	switch {
	case e.isByte():
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case e.kind == 'f' && e.size == 4 && !e.big:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case e.kind == 'f':
		for i := range dst {
			dst[i] = float32(e.float(src, i))
		}
	default:
		for i := range dst {
			dst[i] = float32(e.integer(src, i))
		}
	}
}

// text writes value i of b as a label.
func (e element) text(b []byte, i int) string {
	if e.kind == 'f' {
		return strconv.FormatFloat(e.float(b, i), 'g', -1, 8*e.size)
	}
	return strconv.FormatInt(e.integer(b, i), 10)
}

// An array is what the header of an IDX or npy file says about its body.
type array struct {
	element
	shape []int // each 0 or more; the product of all and the size fits an int
}

// newArray checks the shape found in a header.
func newArray(e element, shape []int) (array, error) {
	total := uint64(e.size)
	for _, n := range shape {
		hi, lo := bits.Mul64(total, uint64(n))
		if n < 0 || hi != 0 || lo > math.MaxInt64 {
			return array{}, errorf(ErrFormat, "the header claims the impossible shape %s; the file is damaged, write it again", shapeText(shape))
		}
		total = lo
	}
	return array{e, shape}, nil
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
	text := make([]string, len(shape))
	for i, n := range shape {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, "×")
}

// points returns the shape of an array of points, or says why it is none.
func (a array) points() (n, d int, err error) {
	switch len(a.shape) {
	case 0:
		return 0, 0, errorf(ErrShape, "the array is a single number; points need an array with a row for each")
	case 1:
		return 0, 0, errorf(ErrShape, "the array has the one dimension %d; if it holds labels, name the file as labels, if points of one value, reshape it to %d×1", a.shape[0], a.shape[0])
	}
	n, d = a.rows()
	if n == 0 || d == 0 {
		return 0, 0, errorf(ErrEmpty, "the array of shape %s holds no values; points need at least one row and one column", shapeText(a.shape))
	}
	return n, d, nil
}

// labels begins to read the body as labels.
func (a array) labels(s *source) (*body, error) {
	if len(a.shape) != 0 {
		if _, d := a.rows(); d == 1 {
			return newBody(a, s)
		}
	}
	return nil, errorf(ErrShape, "labels need an array of one dimension, but this one has the shape %s; are these the points?", shapeText(a.shape))
}
