package op

import (
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// ReLU returns the elements of x, of any shape, with 0 in place of negative
// ones: the ReLU of a layer that is not Linear. A NaN stays one. The derivative
// at 0 is 0.
func ReLU(x *gorgonia.Node) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(newReLU("relu", 1, x), x)
}

// AddReLU returns ReLU(a+b) of two nodes of one shape, in one sweep: the end
// of a residual block.
func AddReLU(a, b *gorgonia.Node) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(newReLU("add_relu", 2, a), a, b)
}

// typeOf returns the type of nodes with n dimensions.
func typeOf(n int) hm.Type {
	if n == 0 {
		return real
	}
	return gorgonia.TensorType{Dims: n, Of: real}
}

// relu is the ReLU of its input, or of the sum of its two.
type relu struct {
	base
	loop parallel.Loop
	dst  *Array
	a, b *Array // b is nil if there is one input
}

func newReLU(name string, arity int, x *gorgonia.Node) *relu {
	t := typeOf(x.Dims())
	types := []hm.Type{t, t, t}[:arity+1]
	o := &relu{base: base{name: name, arity: arity, typ: hm.NewFnType(types...), id: newID()}}
	o.loop.Body = o.piece
	return o
}

func (o *relu) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *relu) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *relu) ResultShape(dst []int, in []*Array) ([]int, error) {
	if o.arity == 2 && !slices.Equal(in[0].Shape(), in[1].Shape()) {
		return nil, errkind.Errorf(ErrInput, "op: %s takes two arrays of one shape, not shapes %v and %v", o.name, in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *relu) Run(dst *Array, in []*Array) error {
	o.dst, o.a, o.b = dst, in[0], nil
	if o.arity == 2 {
		o.b = in[1]
	}
	o.loop.Run(dst.Len(), elementsPerPiece)
	return nil
}

// Launch implements Launcher.
func (o *relu) Launch(d *Device, dst *Array, in []*Array) error {
	if o.arity == 2 {
		return addReLUKernels.each(d, dst, in[0], in[1])
	}
	return reluKernels.each(d, dst, in[0])
}

var (
	reluKernels     = variants{"relu", "relu_4", "relu_h1", "relu_h4"}
	addReLUKernels  = variants{"add_relu", "add_relu_4", "add_relu_h1", "add_relu_h4"}
	reluGradKernels = variants{"relu_grad", "relu_grad_4", "relu_grad_h1", "relu_grad_h4"}
)

// each runs one of the kernels on the elements of arrays of one size.
func (v *variants) each(d *Device, dst *Array, in ...*Array) error {
	n := dst.Len()
	kernel, width, err := v.of(n, append(in, dst)...)
	if err != nil {
		return err
	}
	args := []Arg{dst.Arg()}
	for _, a := range in {
		args = append(args, a.Arg())
	}
	return d.Each(kernel, n/width, append(args, device.Int(n))...)
}

// byFours returns which of two kernels takes n elements of arrays, and how many of
// them at a time: four need a multiple of four, and addresses that are multiples of
// 16 bytes.
func byFours(fours, ones string, n int, arrays ...*Array) (kernel string, width int) {
	for _, a := range arrays {
		if a.Pointer()%16 != 0 {
			return ones, 1
		}
	}
	if n%4 != 0 {
		return ones, 1
	}
	return fours, 4
}

func (o *relu) piece(_, lo, hi int) {
	switch double := o.dst.dtype == tensor.Float64; {
	case double && o.b != nil:
		simd.AddReLU(o.dst.f64[lo:hi], o.a.f64[lo:hi], o.b.f64[lo:hi])
	case double:
		simd.ReLU(o.dst.f64[lo:hi], o.a.f64[lo:hi])
	case o.b != nil:
		simd.AddReLU(o.dst.f32[lo:hi], o.a.f32[lo:hi], o.b.f32[lo:hi])
	default:
		simd.ReLU(o.dst.f32[lo:hi], o.a.f32[lo:hi])
	}
}

func (o *relu) DiffWRT(int) []bool { return []bool{true, true}[:o.arity] }

func (o *relu) SymDiff(_ gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := gorgonia.ApplyOp(newReLUGrad(typeOf(out.Dims())), out, grad)
	return gorgonia.Nodes{n, n}[:o.arity], err
}

// reluGrad takes the output y of a ReLU and the incoming gradient g, of the same shape:
// g where y is positive, else 0.
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
		return nil, errkind.Errorf(ErrInput, "op: relu_grad takes two arrays of one shape, not shapes %v and %v", in[0].Shape(), in[1].Shape())
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
