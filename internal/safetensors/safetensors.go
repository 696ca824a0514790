// Package safetensors reads and writes files of named arrays in the
// safetensors format, which PyTorch, JAX and others share: weights,
// checkpoints and golden vectors are kept in it.
//
// A file is the length of its header (8 bytes, little-endian), the header
// (JSON: for each tensor its element type, shape and place; optionally a map
// of strings under "__metadata__"), and then the tensors' elements,
// little-endian and row-major, without gaps.
//
// What a tensor means (a layer's weights, an optimiser's state) is not this
// package's business, nor is any array library's type: it hands out plain
// slices.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// ErrFormat is wrapped by every error about bytes that are not a valid
// safetensors file, and by those about a File that no valid file can hold.
var ErrFormat = errors.New("not valid safetensors")

// ErrNoTensor is wrapped by the error for a name that a file does not hold.
var ErrNoTensor = errors.New("no such tensor")

// ErrDType is wrapped by the error for a tensor whose elements are of another
// type than the one asked for.
var ErrDType = errors.New("wrong element type")

// A DType is the type of a tensor's elements, as it stands in the file.
type DType string

// The element types that Tensor gives access to. Tensors of other types are
// read and written as raw bytes.
const (
	F64 DType = "F64" // float64
	F32 DType = "F32" // float32
	I64 DType = "I64" // int64
	I32 DType = "I32" // int32
	U8  DType = "U8"  // byte
)

// elementBits holds the width of every element type of the format's
// specification.
var elementBits = map[DType]int{
	"C64": 64, F64: 64, I64: 64, "U64": 64,
	F32: 32, I32: 32, "U32": 32,
	"F16": 16, "BF16": 16, "I16": 16, "U16": 16,
	U8: 8, "I8": 8, "BOOL": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}

// Bits returns the width of one element in bits, or 0 for a type that this
// package does not know.
func (d DType) Bits() int { return elementBits[d] }

// A Tensor is an array of any number of dimensions; none makes it a scalar.
type Tensor struct {
	DType DType
	Shape []int  // length of each dimension, slowest first
	Data  []byte // elements, little-endian, row-major
}

// New returns a tensor with a copy of the values, in row-major order. The
// product of the shape must be len(values); Write refuses the tensor
// otherwise. No shape makes a scalar of one value.
func New[T float32 | float64 | int32 | int64 | uint8](values []T, shape ...int) Tensor {
	t := Tensor{Shape: append([]int{}, shape...)}
	switch v := any(values).(type) {
	case []float64:
		t.DType, t.Data = F64, make([]byte, 8*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint64(t.Data[8*i:], math.Float64bits(x))
		}
	case []float32:
		t.DType, t.Data = F32, make([]byte, 4*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(x))
		}
	case []int64:
		t.DType, t.Data = I64, make([]byte, 8*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint64(t.Data[8*i:], uint64(x))
		}
	case []int32:
		t.DType, t.Data = I32, make([]byte, 4*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint32(t.Data[4*i:], uint32(x))
		}
	case []uint8:
		t.DType, t.Data = U8, append([]byte{}, v...)
	}
	return t
}

// Len returns the number of elements, the product of the shape.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Float64s returns a copy of the elements of an F64 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Float64s() ([]float64, error) {
	return decode(t, F64, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
}

// Float32s returns a copy of the elements of an F32 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Float32s() ([]float32, error) {
	return decode(t, F32, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
}

// Int64s returns a copy of the elements of an I64 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Int64s() ([]int64, error) {
	return decode(t, I64, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
}

// Int32s returns a copy of the elements of an I32 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Int32s() ([]int32, error) {
	return decode(t, I32, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// Uint8s returns a copy of the elements of a U8 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Uint8s() ([]uint8, error) {
	return decode(t, U8, func(b []byte) uint8 { return b[0] })
}

func decode[T any](t Tensor, want DType, element func([]byte) T) ([]T, error) {
	if t.DType != want {
		return nil, fmt.Errorf("%w: the tensor holds %s, not %s", ErrDType, t.DType, want)
	}
	width := want.Bits() / 8
	out := make([]T, len(t.Data)/width)
	for i := range out {
		out[i] = element(t.Data[i*width : (i+1)*width])
	}
	return out, nil
}

// check reports whether dtype, shape and number of bytes agree. The bytes of
// an unknown element type cannot be checked.
func check(dtype DType, shape []int, size int64) error {
	if dtype == "" {
		return errors.New("it has no dtype")
	}
	n := uint64(1)
	for i, d := range shape {
		if d < 0 {
			return fmt.Errorf("dimension %d of its shape %v is negative", i+1, shape)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64/64 {
			return fmt.Errorf("its shape %v has more elements than memory can", shape)
		}
		n = lo
	}
	width := uint64(dtype.Bits())
	if width == 0 {
		return nil
	}
	if n*width%8 != 0 {
		return fmt.Errorf("shape %v of %s does not fill whole bytes", shape, dtype)
	}
	if n*width/8 != uint64(size) {
		return fmt.Errorf("shape %v of %s takes %d bytes, but it has %d", shape, dtype, n*width/8, size)
	}
	return nil
}

// A File is the contents of one safetensors file.
type File struct {
	Metadata map[string]string // free text about the file; nil for none
	Tensors  map[string]Tensor // by name
}

// Tensor returns the tensor of that name. The error wraps ErrNoTensor if the
// file does not hold it.
func (f *File) Tensor(name string) (Tensor, error) {
	t, ok := f.Tensors[name]
	if !ok {
		return Tensor{}, fmt.Errorf("%w: %q is not among the file's %d tensors", ErrNoTensor, name, len(f.Tensors))
	}
	return t, nil
}
