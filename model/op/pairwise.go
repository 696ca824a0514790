package op

import (
	"reflect"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// pairwise computes a function of two arrays of one shape, element by element.
type pairwise struct {
	base
	single    func(dst, a, b []float32)
	double    func(dst, a, b []float64)
	kernels   variants
	loop      parallel.Loop
	dst, a, b *Array
}

// newPairwise returns a pairwise for nodes of a type. The caller sets its functions.
func newPairwise(t hm.Type, kernels variants) *pairwise {
	o := &pairwise{base: base{name: kernels[0], arity: 2, typ: hm.NewFnType(t, t, t), id: newID()}, kernels: kernels}
	o.loop.Body = o.piece
	return o
}

// newReLUGrad returns the gradient of another operation's final ReLU, for nodes of a
// type. It takes the output y and the incoming gradient g: g where y is positive, else 0.
func newReLUGrad(t hm.Type) *pairwise {
	o := newPairwise(t, variants{"relu_grad", "relu_grad_4", "relu_grad_h1", "relu_grad_h4"})
	o.single, o.double = simd.MaskPositive[float32], simd.MaskPositive[float64]
	return o
}

// newSum returns the sum of two arrays.
func newSum(t hm.Type) *pairwise {
	o := newPairwise(t, variants{"sum", "sum_4", "sum_h1", "sum_h4"})
	o.single, o.double = sumTo[float32], sumTo[float64]
	return o
}

func sumTo[T Float](dst, a, b []T) {
	copy(dst, a)
	simd.Add(dst, b)
}

func (o *pairwise) ResultShape(dst []int, in []*Array) ([]int, error) {
	if !slices.Equal(in[0].Shape(), in[1].Shape()) {
		return nil, kind.Errorf(ErrInput, "op: %s: got shapes %v and %v, want two arrays of one shape", o.name, in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *pairwise) Run(dst *Array, in []*Array) error {
	o.dst, o.a, o.b = dst, in[0], in[1]
	o.loop.Run(dst.Len(), elementsPerPiece)
	return nil
}

func (o *pairwise) piece(_, lo, hi int) {
	if o.dst.dtype == tensor.Float64 {
		o.double(o.dst.f64[lo:hi], o.a.f64[lo:hi], o.b.f64[lo:hi])
	} else {
		o.single(o.dst.f32[lo:hi], o.a.f32[lo:hi], o.b.f32[lo:hi])
	}
}

// Launch implements Launcher.
func (o *pairwise) Launch(d *Device, dst *Array, in []*Array) error {
	return o.kernels.each(d, dst, in[0], in[1])
}

// typeOf returns the type of nodes with n dimensions.
func typeOf(n int) hm.Type { return gorgonia.TensorType{Dims: n, Of: real} }

// KernelOf returns a kernel that computes a node: its operation, if that is a kernel. For
// Gorgonia's own elementwise sum it returns an equivalent kernel. (Gorgonia uses this sum
// to add up the gradients of a node that is used more than once.) For other operations it
// returns nil.
func KernelOf(n *gorgonia.Node) Kernel {
	if k, ok := n.Op().(Kernel); ok {
		return k
	}
	if n.Op().Arity() == 2 && n.Dims() > 0 && (n.Dtype() == tensor.Float32 || n.Dtype() == tensor.Float64) && isSum(n) {
		return newSum(typeOf(n.Dims()))
	}
	return nil
}

// isSum reports whether a node's operation is Gorgonia's sum of two arrays. Gorgonia does
// not export its type, so the node is compared with such a sum.
func isSum(n *gorgonia.Node) bool {
	g := gorgonia.NewGraph()
	shape := slices.Repeat([]int{2}, n.Dims())
	a := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("a"))
	b := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("b"))
	sum, err := gorgonia.Add(a, b)
	return err == nil && reflect.TypeOf(sum.Op()) == reflect.TypeOf(n.Op()) && sum.Op().Hashcode() == n.Op().Hashcode()
}
