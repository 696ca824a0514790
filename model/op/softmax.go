package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/tensor"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// valuesPerSoftmax is the approximate number of values of the rows that a core takes at a time.
const valuesPerSoftmax = 1 << 14

// A softmax replaces the rows of an array by their softmax.
type softmax struct {
	loop parallel.Loop
	x    *Array
}

func (s *softmax) run(x *Array) {
	if s.x = x; s.loop.Body == nil {
		s.loop.Body = s.piece
	}
	s.loop.Run(x.Rows(), 1+valuesPerSoftmax/max(1, x.Cols()))
}

func (s *softmax) piece(_, lo, hi int) {
	d := s.x.Cols()
	if s.x.dtype == tensor.Float64 {
		simd.SoftmaxRows(s.x.f64[lo*d:hi*d], d)
	} else {
		simd.SoftmaxRows(s.x.f32[lo*d:hi*d], d)
	}
}

// softmaxGrad is the gradient of another operation's final softmax. It takes the output y [n, d]
// and the incoming gradient g: y·(g − Σ y·g), with the sum over a row.
type softmaxGrad struct {
	base
	loop      parallel.Loop
	dst, y, g *Array
}

func newSoftmaxGrad() *softmaxGrad {
	o := &softmaxGrad{base: base{name: "softmax_grad", arity: 2, typ: hm.NewFnType(matrix, matrix, matrix), id: newID()}}
	o.loop.Body = o.piece
	return o
}

func (o *softmaxGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].Shape()...), nil
}

func (o *softmaxGrad) Run(dst *Array, in []*Array) error {
	o.dst, o.y, o.g = dst, in[0], in[1]
	o.loop.Run(dst.Rows(), 1+valuesPerSoftmax/max(1, dst.Cols()))
	return nil
}

func (o *softmaxGrad) piece(_, lo, hi int) {
	d := o.dst.Cols()
	for i := lo * d; i < hi*d; i += d {
		if o.dst.dtype == tensor.Float64 {
			simd.SoftmaxGrad(o.dst.f64[i:i+d], o.y.f64[i:i+d], o.g.f64[i:i+d])
		} else {
			simd.SoftmaxGrad(o.dst.f32[i:i+d], o.y.f32[i:i+d], o.g.f32[i:i+d])
		}
	}
}
