package op

import (
	"reflect"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// KernelOf returns a kernel that computes a node: its operation, if that is one, or
// for Gorgonia's own elementwise sum, by which it adds up the gradients of a node that
// is used more than once, a kernel that does the same. It is nil for other operations.
func KernelOf(n *gorgonia.Node) Kernel {
	if k, ok := n.Op().(Kernel); ok {
		return k
	}
	if n.Op().Arity() == 2 && n.Dims() > 0 && (n.Dtype() == tensor.Float32 || n.Dtype() == tensor.Float64) && isSum(n) {
		return newSum(n.Dims())
	}
	return nil
}

// isSum reports whether a node's operation is Gorgonia's sum of two arrays, which has no
// exported type: it is compared with that of such a sum.
func isSum(n *gorgonia.Node) bool {
	g := gorgonia.NewGraph()
	shape := slices.Repeat([]int{2}, n.Dims())
	a := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("a"))
	b := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("b"))
	sum, err := gorgonia.Add(a, b)
	return err == nil && reflect.TypeOf(sum.Op()) == reflect.TypeOf(n.Op()) && sum.Op().Hashcode() == n.Op().Hashcode()
}

// sum adds two arrays of one shape.
type sum struct {
	base
	loop      parallel.Loop
	dst, a, b *Array
}

func newSum(dims int) *sum {
	t := typeOf(dims)
	o := &sum{base: base{name: "sum", arity: 2, typ: hm.NewFnType(t, t, t)}}
	o.loop.Body = o.piece
	return o
}

func (o *sum) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *sum) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *sum) ResultShape(dst []int, in []*Array) ([]int, error) {
	if !slices.Equal(in[0].Shape(), in[1].Shape()) {
		return nil, errkind.Errorf(ErrInput, "op: sum: got shapes %v and %v, want two arrays of one shape", in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *sum) Run(dst *Array, in []*Array) error {
	o.dst, o.a, o.b = dst, in[0], in[1]
	o.loop.Run(dst.Len(), elementsPerPiece)
	return nil
}

// Launch implements Launcher.
func (o *sum) Launch(d *Device, dst *Array, in []*Array) error {
	return sumKernels.each(d, dst, in[0], in[1])
}

var sumKernels = variants{"sum", "sum_4", "sum_h1", "sum_h4"}

func (o *sum) piece(_, lo, hi int) {
	if o.dst.dtype == tensor.Float64 {
		copy(o.dst.f64[lo:hi], o.a.f64[lo:hi])
		simd.Add(o.dst.f64[lo:hi], o.b.f64[lo:hi])
	} else {
		copy(o.dst.f32[lo:hi], o.a.f32[lo:hi])
		simd.Add(o.dst.f32[lo:hi], o.b.f32[lo:hi])
	}
}
