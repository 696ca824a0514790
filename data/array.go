package data

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// A scalarType is how an array in a file stores one value.
type scalarType struct {
	kind byte // 'u' unsigned integer, 'i' signed integer, 'f' IEEE 754
	size int  // bytes
	big  bool // the most significant byte comes first
}

func (t scalarType) isByte() bool { return t.kind == 'u' && t.size == 1 }

// isFloat32 tells whether float32 holds every value of the type.
func (t scalarType) isFloat32() bool {
	return t.kind == 'f' && t.size == 4 || t.kind != 'f' && t.size <= 2
}

// bits64 returns value i of b, without its meaning. The order of the bytes is
// a plain branch, which costs nothing because it always goes the same way.
func (t scalarType) bits64(b []byte, i int) uint64 {
	b = b[i*t.size:]
	switch {
	case t.size == 1:
		return uint64(b[0])
	case t.size == 2 && t.big:
		return uint64(binary.BigEndian.Uint16(b))
	case t.size == 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case t.size == 4 && t.big:
		return uint64(binary.BigEndian.Uint32(b))
	case t.size == 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case t.big:
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// integer returns value i of b, of a type of integers.
func (t scalarType) integer(b []byte, i int) int64 {
	u := t.bits64(b, i)
	if t.kind == 'u' {
		return int64(u) // no unsigned type is wider than a byte
	}
	shift := 64 - 8*t.size
	return int64(u<<shift) >> shift
}

// float returns value i of b, of a type of IEEE 754.
func (t scalarType) float(b []byte, i int) float64 {
	u := t.bits64(b, i)
	if t.size == 4 {
		return float64(math.Float32frombits(uint32(u)))
	}
	return math.Float64frombits(u)
}

// less returns the difference of value i of b and an offset.
func (t scalarType) less(b []byte, i int, offset float64) float64 {
	if t.kind == 'f' {
		return t.float(b, i) - offset
	}
	return less(t.integer(b, i), offset)
}

// float32s converts the values in src.
func (t scalarType) float32s(dst []float32, src []byte) {
	switch {
	case t.isByte():
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case t.kind == 'f' && t.size == 4 && !t.big:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case t.kind == 'f':
		for i := range dst {
			dst[i] = float32(t.float(src, i))
		}
	default:
		for i := range dst {
			dst[i] = float32(t.integer(src, i))
		}
	}
}

// text writes value i of b as a label.
func (t scalarType) text(b []byte, i int) string {
	if t.kind == 'f' {
		return strconv.FormatFloat(t.float(b, i), 'g', -1, 8*t.size)
	}
	return strconv.FormatInt(t.integer(b, i), 10)
}

// An array is what the header of an IDX or npy file says about its values.
type array struct {
	scalarType
	shape []int // each 0 or more; the product of all and the size fits an int
}

// newArray checks the shape found in a header.
func newArray(t scalarType, shape []int) (array, error) {
	total := uint64(t.size)
	for _, n := range shape {
		hi, lo := bits.Mul64(total, uint64(n))
		if n < 0 || hi != 0 || lo > math.MaxInt64 {
			return array{}, errorf(ErrFormat, "the header claims the impossible shape %s; the file is damaged, write it again", shapeText(shape))
		}
		total = lo
	}
	return array{t, shape}, nil
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

// labels begins to read the values as labels.
func (a array) labels(s *byteSource) (*arrayReader, error) {
	if len(a.shape) != 0 {
		if _, d := a.rows(); d == 1 {
			return newArrayReader(a, s)
		}
	}
	return nil, errorf(ErrShape, "labels need an array of one dimension, but this one has the shape %s; are these the points?", shapeText(a.shape))
}
