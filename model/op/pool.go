package op

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// GlobalAvgPool returns the means of the planes of images x [n, c, h, w]:
// [n, c]. A plane has at least one element.
func GlobalAvgPool(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := &globalAvgPool{base: base{name: "global_avg_pool", arity: 1, typ: hm.NewFnType(images, matrix), id: newID()}}
	o.loop.Body = o.planes
	return gorgonia.ApplyOp(o, x)
}

type globalAvgPool struct {
	base
	loop   parallel.Loop
	dst, x *Array
}

func (o *globalAvgPool) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *globalAvgPool) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *globalAvgPool) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 4 || in[0].shape[2]*in[0].shape[3] == 0 {
		return nil, fmt.Errorf("op: global_avg_pool takes images [n,c,h,w] of one pixel or more, not shape %v", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *globalAvgPool) Run(dst *Array, in []*Array) error {
	o.dst, o.x = dst, in[0]
	o.loop.Run(dst.Len(), planeGrain(o.x))
	return nil
}

// planeGrain is how many planes of images make it worth to wake another core.
func planeGrain(x *Array) int { return max(1, elementsPerPiece/(x.shape[2]*x.shape[3])) }

func (o *globalAvgPool) planes(_, lo, hi int) {
	size := o.x.shape[2] * o.x.shape[3]
	if o.dst.dtype == tensor.Float64 {
		meansOf(o.dst.f64[lo:hi], o.x.f64[lo*size:hi*size], size)
	} else {
		meansOf(o.dst.f32[lo:hi], o.x.f32[lo*size:hi*size], size)
	}
}

func meansOf[T Float](dst, x []T, size int) {
	plane := simd.Channel{Images: 1, Size: size}
	for i := range dst {
		sum, _ := simd.ChannelMoments(x[i*size:], plane, 0)
		dst[i] = T(sum / float64(size))
	}
}

func (o *globalAvgPool) DiffWRT(int) []bool { return []bool{true} }

func (o *globalAvgPool) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	g := &globalAvgPoolGrad{base: base{name: "global_avg_pool_grad", arity: 2, typ: hm.NewFnType(images, matrix, images), id: newID()}}
	g.loop.Body = g.planes
	n, err := gorgonia.ApplyOp(g, in[0], grad)
	return gorgonia.Nodes{n}, err
}

// globalAvgPoolGrad spreads the gradient of each mean over its plane. Its inputs
// are the images, for their shape, and the gradient that comes in.
type globalAvgPoolGrad struct {
	base
	loop   parallel.Loop
	dst, g *Array
}

func (o *globalAvgPoolGrad) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *globalAvgPoolGrad) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *globalAvgPoolGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	if x, g := in[0], in[1]; g.dims != 2 || g.shape[0] != x.shape[0] || g.shape[1] != x.shape[1] {
		return nil, fmt.Errorf("op: global_avg_pool_grad takes images [n,c,h,w] and gradients [n,c], not shapes %v and %v", x.Shape(), g.Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *globalAvgPoolGrad) Run(dst *Array, in []*Array) error {
	o.dst, o.g = dst, in[1]
	o.loop.Run(o.g.Len(), planeGrain(dst))
	return nil
}

func (o *globalAvgPoolGrad) planes(_, lo, hi int) {
	size := o.dst.shape[2] * o.dst.shape[3]
	if o.dst.dtype == tensor.Float64 {
		spreadMeans(o.dst.f64[lo*size:hi*size], o.g.f64[lo:hi], size)
	} else {
		spreadMeans(o.dst.f32[lo*size:hi*size], o.g.f32[lo:hi], size)
	}
}

func spreadMeans[T Float](dst, g []T, size int) {
	for i, v := range g {
		share := v / T(size)
		plane := dst[i*size : (i+1)*size]
		for j := range plane {
			plane[j] = share
		}
	}
}
