// Package safetensors reads and writes files of named arrays in the
// safetensors format, which PyTorch, JAX and others share: weights,
// checkpoints and golden vectors are kept in it.
//
// A file is the length of its header (8 bytes, little-endian), the header
// (JSON: for each tensor its element type, shape and place; optionally a map
// of strings under "__metadata__"), and then the tensors' elements,
// little-endian and row-major, without gaps.
//
// A file may be sealed: its metadata then have its kind and version, and a checksum, so a
// damaged file is refused.
//
// The package does not know what a tensor means (a layer's weights, an optimiser's
// state), and depends on no array library: it returns plain slices.
package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"unsafe"

	"cne/internal/kind"
	"cne/internal/simd"
	"cne/internal/text"
)

// ErrFormat is wrapped by every error about bytes that are not a valid safetensors file,
// and about a File that no valid file can hold.
var ErrFormat = errors.New("not valid safetensors")

// ErrNoTensor is wrapped by the error for a name that a file does not hold.
var ErrNoTensor = errors.New("no such tensor")

// ErrDType is wrapped by the error for a tensor whose elements have another type than the
// requested one.
var ErrDType = errors.New("wrong element type")

// ErrLength is wrapped by the error for a tensor of another number of elements than the
// requested one.
var ErrLength = errors.New("wrong number of elements")

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

// New returns a tensor with the values, in row-major order. It may share their memory, so
// they must not change before it is written. The product of the shape must be len(values);
// Write refuses the tensor otherwise. No shape makes a scalar of one value.
func New[T element](values []T, shape ...int) Tensor {
	t := Tensor{DType: dtypeOf[T](), Shape: append([]int{}, shape...)}
	size := t.DType.Bits() / 8 * len(values)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		t.Data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), size)
	} else { // encoding numbers into a buffer of their size does not fail
		t.Data, _ = binary.Append(make([]byte, 0, size), binary.LittleEndian, values)
	}
	return t
}

// Float64s returns a copy of the elements of an F64 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Float64s() ([]float64, error) { return values[float64](t) }

// Float32s returns a copy of the elements of an F32 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Float32s() ([]float32, error) { return values[float32](t) }

// Int32s returns a copy of the elements of an I32 tensor. The error wraps
// ErrDType if it is of another type.
func (t Tensor) Int32s() ([]int32, error) { return values[int32](t) }

func values[T element](t Tensor) ([]T, error) {
	out := make([]T, len(t.Data)/(dtypeOf[T]().Bits()/8))
	return out, Copy(out, t)
}

// Copy writes the elements of a tensor to dst, in row-major order, without allocating
// memory. The error wraps ErrDType if they are not of dst's type, and ErrLength if there
// are not len(dst) of them; dst is then left as it is.
func Copy[T element](dst []T, t Tensor) error {
	want := dtypeOf[T]()
	if t.DType != want {
		return fmt.Errorf("%w: got %s, want %q", ErrDType, text.Quote(string(t.DType)), want)
	}
	if width := want.Bits() / 8; len(t.Data) != width*len(dst) {
		return fmt.Errorf("%w: got %d, want %d", ErrLength, len(t.Data)/width, len(dst))
	}
	_, err := binary.Decode(t.Data, binary.LittleEndian, dst)
	return err
}

// element is a type that a tensor can be made of, and read as.
type element interface {
	float32 | float64 | int32 | int64 | uint8
}

func dtypeOf[T element]() DType {
	switch any(*new(T)).(type) {
	case float64:
		return F64
	case float32:
		return F32
	case int64:
		return I64
	case int32:
		return I32
	}
	return U8
}

// maxRank is the greatest number of dimensions. The format has no bound, but
// neither NumPy nor PyTorch allows more.
const maxRank = 64

// check fails, as kind.Need does, unless dtype, shape and number of bytes of a tensor agree.
// The bytes of an unknown element type cannot be checked.
func check(name string, dtype DType, shape []int, size int64) {
	must := func(ok bool, format string, args ...any) {
		if !ok {
			need(false, "tensor %s: "+format, append([]any{text.Quote(name)}, args...)...)
		}
	}
	must(dtype != "", "got no dtype")
	must(len(shape) <= maxRank, "got %d dimensions, want at most %d", len(shape), maxRank)
	n := uint64(1)
	for _, d := range shape {
		must(d >= 0, "shape: got %v, want no negative dimension", shape)
		hi, lo := bits.Mul64(n, uint64(d))
		must(hi == 0 && lo <= math.MaxInt64/64, "shape: got %v, too large for memory", shape)
		n = lo
	}
	if width := uint64(dtype.Bits()); width > 0 {
		must(n*width%8 == 0, "shape: got %v of %s, want whole bytes", shape, dtype)
		must(n*width/8 == uint64(size), "shape %v of %s: got %d bytes, want %d", shape, dtype, size, n*width/8)
	}
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
		return Tensor{}, fmt.Errorf("%w: %s is not among the file's %d tensors", ErrNoTensor, text.Quote(name), len(f.Tensors))
	}
	return t, nil
}

// PutValue stores a struct as JSON in the metadata, under a key. Slices of numbers become
// tensors of one dimension instead, because a header is limited and slow to read: their
// names are the key and the names of the fields in JSON, joined by dots. Fields with such
// slices must have names, and options that omit them when they are empty.
func (f *File) PutValue(key string, v any) error {
	rest := f.putNumbers(key, reflect.ValueOf(v))
	encoded, err := json.Marshal(rest.Interface())
	if err != nil {
		return fmt.Errorf("%s cannot be saved: %w", key, err)
	}
	f.Metadata[key] = string(encoded)
	return nil
}

// putNumbers returns a copy of v whose slices of numbers are nil, and makes tensors of them.
func (f *File) putNumbers(name string, v reflect.Value) reflect.Value {
	rest := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		rest.Set(reflect.New(v.Type().Elem()))
		rest.Elem().Set(f.putNumbers(name, v.Elem()))
	case v.Kind() == reflect.Struct:
		rest.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rest.Field(i).Set(f.putNumbers(name+"."+fieldName(v.Type().Field(i)), v.Field(i)))
			}
		}
	default:
		switch x := v.Interface().(type) {
		case []float64:
			putNumbers(f, name, x)
		case []float32:
			putNumbers(f, name, x)
		case []int32:
			putNumbers(f, name, x)
		default:
			rest.Set(v)
		}
	}
	return rest
}

func putNumbers[T element](f *File, name string, x []T) {
	if len(x) > 0 && !strings.HasSuffix(name, ".-") {
		f.Tensors[name] = New(x, len(x))
	}
}

// fieldName returns the name of a field in JSON; "-" if it has none.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Value reads what PutValue has stored into the struct to which v points, and takes its
// tensors out of the file. Unknown fields are errors.
func (f *File) Value(key string, v any) (err error) {
	defer kind.Catch(&err)
	d := json.NewDecoder(strings.NewReader(f.Metadata[key]))
	d.DisallowUnknownFields()
	kind.Check(kind.Named(key, d.Decode(v)))
	f.numbers(key, reflect.ValueOf(v).Elem())
	return nil
}

// numbers fills the slices of numbers of v for which there are tensors. It fails as kind.Need
// does.
func (f *File) numbers(name string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		f.numbers(name, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.numbers(name+"."+fieldName(v.Type().Field(i)), v.Field(i))
			}
		}
	}
	t, ok := f.Tensors[name]
	if !ok || v.Kind() != reflect.Slice {
		return
	}
	delete(f.Tensors, name)
	var err error
	switch x := v.Addr().Interface().(type) {
	case *[]float64:
		*x, err = t.Float64s()
		err = cmp.Or(err, checkFinite(*x))
	case *[]float32:
		*x, err = t.Float32s()
		err = cmp.Or(err, checkFinite(*x))
	case *[]int32:
		*x, err = t.Int32s()
	default:
		err = fmt.Errorf("%w: got %s, want text", ErrDType, t.DType)
	}
	kind.Check(kind.Named("tensor "+text.Quote(name), err))
}

// checkFinite refuses numbers that JSON cannot hold.
func checkFinite[T float32 | float64](x []T) error {
	if i := simd.FirstNotFinite(x); i >= 0 {
		return fmt.Errorf("value %d: got %v, want a finite number", i, x[i])
	}
	return nil
}
