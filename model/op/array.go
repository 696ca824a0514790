package op

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
)

// A Float is a type that models compute in.
type Float interface{ float32 | float64 }

// MaxDims is the largest number of dimensions of an Array.
const MaxDims = 4

// An Array is an operand of a Kernel: a dense row-major block of float32, float64 or
// int32 numbers. Unlike a tensor.Dense it can change its shape within its capacity
// without allocating, for batches that differ in size. The zero value is an empty array
// without a type.
//
// The elements are in the program's memory or, if they are float32, int32 or bfloat16, in
// an accelerator's memory. Copy can read that memory, and Data cannot.
type Array struct {
	dtype tensor.Dtype
	dims  int
	shape [MaxDims]int

	f32 []float32
	f64 []float64
	i32 []int32

	on deviceMemory
}

// NewArray returns an array on a device; no dimensions make a scalar. On the CPU (nil)
// the dtype is tensor.Float32, Float64 or Int32, and the elements are 0. On an
// accelerator it is tensor.Float32, Int32 or DtypeBFloat16, and the elements are
// undefined.
func NewArray(d *Device, dtype tensor.Dtype, shape ...int) (*Array, error) {
	a := &Array{dtype: dtype}
	if !d.OnHost() {
		if dtype != tensor.Float32 && dtype != tensor.Int32 && dtype != DtypeBFloat16 {
			return nil, kind.Errorf(ErrInput, "op: array on %s: got type %v, want float32, int32 or bfloat16", d.Name(), dtype)
		}
		a.on.device = d
	}
	return a, a.Resize(shape)
}

// ArrayOf returns an array that shares the memory of data. The length of data must be the
// product of the dimensions.
func ArrayOf[T float32 | float64 | int32](data []T, shape ...int) (*Array, error) {
	a := &Array{dtype: dtypeOf[T]()}
	return a, Share(a, data, shape...)
}

// Dtype returns the type of the elements.
func (a *Array) Dtype() tensor.Dtype { return a.dtype }

// Shape returns the dimensions. The slice shares the array's memory and is
// valid until the next Resize.
func (a *Array) Shape() []int { return a.shape[:a.dims] }

// Len returns the number of elements: 1 for a scalar.
func (a *Array) Len() int { return tensor.ProdInts(a.Shape()) }

// Cap returns the array's capacity in elements.
func (a *Array) Cap() int { return cap(a.f32) + cap(a.f64) + cap(a.i32) + a.on.capacity/a.bytesEach() }

// Rows returns the first dimension; the array must not be a scalar.
func (a *Array) Rows() int { return a.shape[0] }

// Cols returns the number of elements of a row: the product of the dimensions
// after the first.
func (a *Array) Cols() int { return tensor.ProdInts(a.shape[1:max(1, a.dims)]) }

// Resize gives the array a new shape. It allocates only when the array's
// memory is too small; the elements are then undefined.
func (a *Array) Resize(shape []int) error {
	if len(shape) > MaxDims {
		return kind.Errorf(ErrInput, "op: shape: got %v, want at most %d dimensions", slices.Clone(shape), MaxDims)
	}
	for _, d := range shape {
		if d < 0 {
			return kind.Errorf(ErrInput, "op: shape: got %v, want no negative dimension", slices.Clone(shape))
		}
	}
	a.dims = copy(a.shape[:], shape)
	return a.hold(a.Len())
}

// hold lets the array have n elements.
func (a *Array) hold(n int) error {
	if a.on.device != nil {
		return a.on.grow(n * a.bytesEach())
	}
	switch a.dtype {
	case tensor.Float32:
		a.f32 = grow(a.f32, n)
	case tensor.Float64:
		a.f64 = grow(a.f64, n)
	case tensor.Int32:
		a.i32 = grow(a.i32, n)
	default:
		return kind.Errorf(ErrInput, "op: array: got type %v, want float32, float64 or int32", a.dtype)
	}
	return nil
}

// Reserve allocates memory for n elements, so Resize need not. The elements are
// undefined afterwards.
func (a *Array) Reserve(n int) error {
	if n <= a.Cap() {
		return nil
	}
	if err := a.hold(n); err != nil {
		return err
	}
	return a.hold(a.Len())
}

// Share makes a an array of the given shape that uses the memory of data, without a copy.
// Batches are handed to a program in this way. The type of data must be the array's, and
// its length the product of the dimensions.
func Share[T float32 | float64 | int32](a *Array, data []T, shape ...int) error {
	if dtype := dtypeOf[T](); a.dtype != dtype || len(shape) > MaxDims || tensor.ProdInts(shape) != len(data) {
		return shareError(a.dtype, dtype, len(data), slices.Clone(shape))
	}
	*slot[T](a) = data
	a.dims, a.on = copy(a.shape[:], shape), deviceMemory{}
	return nil
}

func shareError(want, got tensor.Dtype, n int, shape []int) error {
	switch {
	case want != got:
		return kind.Errorf(ErrInput, "op: array: got elements of %v, want %v", got, want)
	case len(shape) > MaxDims:
		return kind.Errorf(ErrInput, "op: shape: got %v, want at most %d dimensions", shape, MaxDims)
	}
	return kind.Errorf(ErrInput, "op: array: got %d elements, want as many as shape %v has", n, shape)
}

// slot returns the field of a that holds elements of type T.
func slot[T float32 | float64 | int32](a *Array) *[]T {
	var p any
	switch any(*new(T)).(type) {
	case float32:
		p = &a.f32
	case float64:
		p = &a.f64
	case int32:
		p = &a.i32
	}
	return p.(*[]T)
}

// Data returns the elements of an array of type T, row after row. It returns nil if the
// array has another type or is on an accelerator. The slice shares the array's memory.
func Data[T float32 | float64 | int32](a *Array) []T { return *slot[T](a) }

// Dtype returns the tensor type of T.
func Dtype[T Float]() tensor.Dtype { return dtypeOf[T]() }

func dtypeOf[T float32 | float64 | int32]() tensor.Dtype {
	switch any(*new(T)).(type) {
	case float32:
		return tensor.Float32
	case float64:
		return tensor.Float64
	}
	return tensor.Int32
}

// SetValue makes a share the memory of a Gorgonia value. The number of a scalar is copied
// instead.
func (a *Array) SetValue(v gorgonia.Value) error {
	if len(v.Shape()) > MaxDims {
		return kind.Errorf(ErrInput, "op: shape: got %v, want at most %d dimensions", v.Shape(), MaxDims)
	}
	if d, ok := v.(*tensor.Dense); ok && (!d.DataOrder().IsRowMajor() || !d.DataOrder().IsContiguous() || d.RequiresIterator()) {
		return kind.Errorf(ErrInput, "op: value: got shape %v with gaps or in another order, want a copy row after row in memory", v.Shape())
	}
	a.dtype = v.Dtype()
	a.dims, a.on = copy(a.shape[:], v.Shape()), deviceMemory{}
	if d, ok := v.(*tensor.Dense); ok {
		if e, ok := d.Engine().(*device.Engine); ok {
			a.f32, a.f64, a.i32 = nil, nil, nil
			a.on = deviceMemory{device: e.Device(), engine: e, at: Pointer(d.Uintptr()), capacity: int(d.MemSize())}
			return nil
		}
	}
	switch data := v.Data().(type) {
	case []float32:
		a.f32 = data
	case []float64:
		a.f64 = data
	case []int32:
		a.i32 = data
	case float32:
		a.f32 = append(a.f32[:0], data)
	case float64:
		a.f64 = append(a.f64[:0], data)
	case int32:
		a.i32 = append(a.i32[:0], data)
	default:
		return kind.Errorf(ErrInput, "op: array: got type %v, want float32, float64 or int32", v.Dtype())
	}
	return nil
}

// CopyValue gives the array the shape of a Gorgonia value and a copy of its
// elements. The dtypes must be equal.
func (a *Array) CopyValue(v gorgonia.Value) error {
	var from Array
	if err := from.SetValue(v); err != nil {
		return err
	}
	return Copy(a, &from)
}

// Value returns the array as a Gorgonia value. A scalar in the program's memory is
// copied. Any other value is a tensor.Dense that shares the array's memory and lifetime.
func (a *Array) Value() gorgonia.Value {
	if a.on.device != nil {
		return tensor.New(tensor.Of(a.dtype), tensor.WithShape(slices.Clone(a.Shape())...), tensor.WithEngine(a.on.toEngine()),
			tensor.FromMemory(uintptr(a.on.at), uintptr(a.Len()*a.bytesEach())))
	}
	if a.dims == 0 {
		switch a.dtype {
		case tensor.Float32:
			return gorgonia.NewF32(a.f32[0])
		case tensor.Float64:
			return gorgonia.NewF64(a.f64[0])
		default:
			return gorgonia.NewI32(a.i32[0])
		}
	}
	var backing any
	switch a.dtype {
	case tensor.Float32:
		backing = a.f32
	case tensor.Float64:
		backing = a.f64
	default:
		backing = a.i32
	}
	return tensor.New(tensor.WithShape(slices.Clone(a.Shape())...), tensor.WithBacking(backing))
}

// ErrInput is wrapped by errors about invalid options and words, and about shapes, row
// numbers and types that do not fit an operation.
var ErrInput = errors.New("op: bad input")

// A Kernel is an operation that writes its result to memory of the caller. All operations
// of this package are kernels.
type Kernel interface {
	gorgonia.Op

	// ResultShape appends the shape of the result to dst and returns it. It returns an error
	// if the operands do not fit; a gradient need not check what its operation has checked. It
	// does not allocate if dst has a capacity of MaxDims.
	ResultShape(dst []int, in []*Array) ([]int, error)

	// Run computes the result into dst, which has the dtype of the node and the shape of
	// ResultShape. It does not allocate in the steady state. dst must not overlap an input.
	Run(dst *Array, in []*Array) error
}

// A Recomputer is a kernel whose result a program may drop, to save memory, and compute
// again when it is next needed. This must take little time compared with the use of the
// result.
type Recomputer interface {
	Kernel

	// Recompute computes the result of the last Run from the same inputs, and
	// changes nothing else.
	Recompute(dst *Array, in []*Array) error

	// RecomputeOnDevice is Recompute on an accelerator: see Launcher.
	RecomputeOnDevice(d *Device, dst *Array, in []*Array) error
}

// The types in the signatures of operations. Indices are int32: no machine holds an
// embedding of more than 2³¹ points.
var (
	real    = hm.TypeVariable('a')
	vector  = gorgonia.TensorType{Dims: 1, Of: real}
	matrix  = gorgonia.TensorType{Dims: 2, Of: real}
	images  = gorgonia.TensorType{Dims: 4, Of: real}
	indices = gorgonia.TensorType{Dims: 1, Of: tensor.Int32}
	table   = gorgonia.TensorType{Dims: 2, Of: tensor.Int32}
)

// base implements the methods of gorgonia.Op that all operations of this package have
// in common. An operation embeds it.
type base struct {
	name  string
	types []hm.Type // of the operands and of the result
	// id distinguishes operations that have state, because Gorgonia merges nodes whose
	// operations have equal hashes. It is 0 for operations without state.
	id uint64
	// self is the operation that embeds this, once it has been applied.
	self Kernel
}

// newBase returns a base for an operation without state. The types are those of its operands
// and of its result.
func newBase(name string, types ...hm.Type) base { return base{name: name, types: types} }

// newStateful is newBase for an operation with state.
func newStateful(name string, types ...hm.Type) base {
	return base{name: name, types: types, id: newID()}
}

var lastID atomic.Uint64

func newID() uint64 { return lastID.Add(1) }

func (b *base) Arity() int            { return len(b.types) - 1 }
func (b *base) Type() hm.Type         { return hm.NewFnType(b.types...) }
func (b *base) ReturnsPtr() bool      { return true }
func (b *base) CallsExtern() bool     { return false }
func (b *base) OverwritesInput() int  { return -1 }
func (b *base) WriteHash(h hash.Hash) { fmt.Fprintf(h, "cne/%s/%d", b.name, b.id) }
func (b *base) String() string        { return b.name }

// Do implements gorgonia.Op by the kernel's Run.
func (b *base) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(b.self, v) }

// InferShape implements gorgonia.Op by the kernel's ResultShape.
func (b *base) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(b.self, s) }

// DiffWRT says that an operation with a derivative has it with respect to all operands.
func (b *base) DiffWRT(inputs int) []bool { return slices.Repeat([]bool{true}, inputs) }

// ResultShape returns the shape of the first operand, as most gradients have it.
func (b *base) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].Shape()...), nil
}

func (b *base) setSelf(k Kernel) { b.self = k }

// apply returns the result of an operation of this package on nodes.
func apply(o interface {
	Kernel
	setSelf(Kernel)
}, in ...*gorgonia.Node) (*gorgonia.Node, error) {
	o.setSelf(o)
	return gorgonia.ApplyOp(o, in...)
}

func (b *base) Hashcode() uint32 {
	h := fnv.New32a()
	b.WriteHash(h)
	return h.Sum32()
}

// do runs a kernel on Gorgonia's values.
func do(k Kernel, values []gorgonia.Value) (_ gorgonia.Value, err error) {
	defer kind.Catch(&err)
	in := make([]*Array, len(values))
	for i, v := range values {
		in[i] = new(Array)
		err := in[i].SetValue(v)
		kind.Checkf(err, "%w (input %d of %v)", err, i, k)
	}
	shape := kind.Got(k.ResultShape(nil, in))
	if in[0].on.device != nil {
		return doOnDevice(k, shape, in)
	}
	dst := kind.Got(NewArray(nil, in[0].Dtype(), shape...))
	err = k.Run(dst, in)
	return dst.Value(), err
}

// inferShape answers gorgonia.Op's InferShape from a kernel's ResultShape, so
// each operation states its shapes once.
func inferShape(k Kernel, sizes []gorgonia.DimSizer) (_ tensor.Shape, err error) {
	defer kind.Catch(&err)
	shapes := kind.Got(gorgonia.DimSizersToShapes(sizes))
	in := make([]*Array, len(shapes))
	for i, s := range shapes {
		kind.Need(len(s) <= MaxDims, ErrInput, "op: shape: got %v, want at most %d dimensions", s, MaxDims)
		in[i] = &Array{dims: len(s)}
		copy(in[i].shape[:], s)
	}
	shape := kind.Got(k.ResultShape(nil, in))
	if len(shape) == 0 {
		return tensor.ScalarShape(), nil
	}
	return tensor.Shape(shape), nil
}

// A rowwise is the base of an operation that computes the rows of its result independently:
// rows of a matrix, images, or elements of a vector.
type rowwise struct {
	base
	single, double rowsFunc
	loop           parallel.Loop
	dst            *Array
	in             []*Array
}

// A rowsFunc computes rows [lo, hi) of dst.
type rowsFunc func(dst *Array, in []*Array, lo, hi int)

func newRowwise(single, double rowsFunc, name string, types ...hm.Type) rowwise {
	return rowwise{base: newStateful(name, types...), single: single, double: double}
}

func (o *rowwise) Run(dst *Array, in []*Array) error {
	if o.dst, o.in = dst, in; o.loop.Body == nil {
		o.loop.Body = o.piece
	}
	o.loop.Run(dst.Rows(), max(1, elementsPerPiece/max(1, dst.Cols(), in[0].Cols())))
	o.dst, o.in = nil, nil // for the garbage collector
	return nil
}

func (o *rowwise) piece(_, lo, hi int) {
	if o.dst.dtype == tensor.Float64 {
		o.double(o.dst, o.in, lo, hi)
	} else {
		o.single(o.dst, o.in, lo, hi)
	}
}

// rowsIn returns rows [lo, hi) of an array.
func rowsIn[T Float](a *Array, lo, hi int) []T { return Data[T](a)[lo*a.Cols() : hi*a.Cols()] }

// elementsPerPiece is the number of elements of an elementwise operation that are worth
// another core.
const elementsPerPiece = 1 << 14

// itemsPerPiece returns the number of items per piece, given the elements of an item. It
// determines the order of sums.
func itemsPerPiece(elements int) int { return max(1, (1<<16)/max(1, elements)) }
