package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// reluGrad is the gradient of a ReLU with which another operation ends. It takes the
// output y and the incoming gradient g, of the same shape: g where y is positive, else 0.
type reluGrad struct {
	base
	loop parallel.Loop
	y, g *Array
	dst  *Array
}

// newReLUGrad returns one for nodes of a type.
func newReLUGrad(t hm.Type) *reluGrad {
	o := &reluGrad{base: base{name: "relu_grad", arity: 2, typ: hm.NewFnType(t, t, t), id: newID()}}
	o.loop.Body = o.piece
	return o
}

func (o *reluGrad) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *reluGrad) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *reluGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].Len() != in[1].Len() {
		return nil, errkind.Errorf(ErrInput, "op: relu_grad: got shapes %v and %v, want two arrays of one shape", in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *reluGrad) Run(dst *Array, in []*Array) error {
	o.dst, o.y, o.g = dst, in[0], in[1]
	o.loop.Run(dst.Len(), elementsPerPiece)
	return nil
}

// Launch implements Launcher.
func (o *reluGrad) Launch(d *Device, dst *Array, in []*Array) error {
	return reluGradKernels.each(d, dst, in[0], in[1])
}

func (o *reluGrad) piece(_, lo, hi int) {
	if o.dst.dtype == tensor.Float64 {
		simd.MaskPositive(o.dst.f64[lo:hi], o.y.f64[lo:hi], o.g.f64[lo:hi])
	} else {
		simd.MaskPositive(o.dst.f32[lo:hi], o.y.f32[lo:hi], o.g.f32[lo:hi])
	}
}

var reluGradKernels = variants{"relu_grad", "relu_grad_4", "relu_grad_h1", "relu_grad_h4"}

// typeOf returns the type of nodes with n dimensions.
func typeOf(n int) hm.Type { return gorgonia.TensorType{Dims: n, Of: real} }
