package op

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"sync/atomic"

	"github.com/chewxy/hm"
	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/blas"
	"cne/internal/kind"
)

// ErrInput is wrapped by errors about invalid options and words, and about shapes, row
// numbers and types that do not fit an operation.
var ErrInput = errors.New("op: bad input")

// A Kernel is an operation that writes its result to memory of the caller. All operations
// of this package are kernels.
type Kernel interface {
	gorgonia.Op

	// ResultShape appends the shape of the result to dst and returns it. It returns an error
	// if the operands do not fit. It does not allocate if dst has a capacity of MaxDims.
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
	arity int
	typ   hm.Type
	// id distinguishes operations that have state, because Gorgonia merges nodes whose
	// operations have equal hashes. It is 0 for operations without state.
	id uint64
	// self is the operation that embeds this, once it has been applied.
	self Kernel
}

var lastID atomic.Uint64

func newID() uint64 { return lastID.Add(1) }

func (b *base) Arity() int            { return b.arity }
func (b *base) Type() hm.Type         { return b.typ }
func (b *base) ReturnsPtr() bool      { return true }
func (b *base) CallsExtern() bool     { return false }
func (b *base) OverwritesInput() int  { return -1 }
func (b *base) WriteHash(h hash.Hash) { fmt.Fprintf(h, "cne/%s/%d", b.name, b.id) }
func (b *base) String() string        { return b.name }

// Do implements gorgonia.Op by the kernel's Run.
func (b *base) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(b.self, v) }

// InferShape implements gorgonia.Op by the kernel's ResultShape.
func (b *base) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(b.self, s) }

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
func do(k Kernel, values []gorgonia.Value) (gorgonia.Value, error) {
	in := make([]*Array, len(values))
	for i, v := range values {
		in[i] = new(Array)
		if err := in[i].SetValue(v); err != nil {
			return nil, fmt.Errorf("%w (input %d of %v)", err, i, k)
		}
	}
	shape, err := k.ResultShape(nil, in)
	if err != nil {
		return nil, err
	}
	if in[0].on.device != nil {
		return doOnDevice(k, shape, in)
	}
	dst, err := NewArray(nil, in[0].Dtype(), shape...)
	if err != nil {
		return nil, err
	}
	if err := k.Run(dst, in); err != nil {
		return nil, err
	}
	return dst.Value(), nil
}

// inferShape answers gorgonia.Op's InferShape from a kernel's ResultShape, so
// each operation states its shapes once.
func inferShape(k Kernel, sizes []gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := gorgonia.DimSizersToShapes(sizes)
	if err != nil {
		return nil, err
	}
	in := make([]*Array, len(shapes))
	for i, s := range shapes {
		if len(s) > MaxDims {
			return nil, kind.Errorf(ErrInput, "op: shape: got %v, want at most %d dimensions", s, MaxDims)
		}
		in[i] = &Array{dims: len(s)}
		copy(in[i].shape[:], s)
	}
	shape, err := k.ResultShape(nil, in)
	if err != nil {
		return nil, err
	}
	if len(shape) == 0 {
		return tensor.ScalarShape(), nil
	}
	return tensor.Shape(shape), nil
}

// elementsPerPiece is the number of elements of an elementwise operation that are worth
// another core.
const elementsPerPiece = 1 << 14

// itemsPerPiece returns the number of items per piece, given the elements of an item. It
// determines the order of sums.
func itemsPerPiece(elements int) int { return max(1, (1<<16)/max(1, elements)) }

// Accelerate makes Gorgonia's own products of float32 matrices, such as gorgonia.Mul and
// its gradients, use package internal/blas instead of gonum. It sets gorgonia.Use for the
// whole process, so call it once, before any machine runs. The operations of this package
// do not need it.
func Accelerate() { gorgonia.Use(engine{}) }

// engine is gonum's implementation of BLAS, except for products of float32 matrices.
type engine struct{ gonum.Implementation }

// Sgemm computes C = alpha·op(A)·op(B) + beta·C, as gonum's does.
func (e engine) Sgemm(tA, tB gonumblas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	transA, okA := transposed(tA)
	transB, okB := transposed(tB)
	if !okA || !okB {
		e.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) // it panics as callers expect
		return
	}
	blas.Gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// transposed reports whether t transposes, and whether t is valid. For real matrices the
// conjugate transpose is the transpose.
func transposed(t gonumblas.Transpose) (yes, ok bool) {
	switch t {
	case gonumblas.NoTrans:
		return false, true
	case gonumblas.Trans, gonumblas.ConjTrans:
		return true, true
	}
	return false, false
}
