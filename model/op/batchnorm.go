package op

import (
	"errors"
	"fmt"
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/parallel"
	"cne/internal/simd"
)

const (
	// normEpsilon is added to the variances that BatchNorm divides by, and
	// normMomentum is the share of a batch in the running statistics: both as
	// in PyTorch.
	normEpsilon  = 1e-5
	normMomentum = 0.1
)

// BatchStats are the running statistics of one layer of batch normalisation,
// and which statistics it uses. They belong to that layer alone. Between runs
// the caller may read, save and set them.
type BatchStats struct {
	// Mean and Var [c] are the running mean and the running unbiased variance
	// of each channel. Each run in training moves them a tenth of the way to
	// those of its batch.
	Mean, Var *Array
	// Evaluate makes the layer use Mean and Var and leave them as they are,
	// instead of the statistics of the batch.
	Evaluate bool
}

// NewBatchStats returns the statistics of a layer of the given number of
// channels before its first run: means of 0 and variances of 1. The dtype,
// tensor.Float32 or Float64, is that of the layer's input.
func NewBatchStats(dtype tensor.Dtype, channels int) (*BatchStats, error) {
	if dtype != tensor.Float32 && dtype != tensor.Float64 {
		return nil, fmt.Errorf("op: no batch statistics of %v; float32 and float64 are known", dtype)
	}
	s := new(BatchStats)
	var err error
	if s.Mean, err = NewArray(dtype, channels); err != nil {
		return nil, err
	}
	if s.Var, err = NewArray(dtype, channels); err != nil {
		return nil, err
	}
	for i := range s.Var.f32 {
		s.Var.f32[i] = 1
	}
	for i := range s.Var.f64 {
		s.Var.f64[i] = 1
	}
	return s, nil
}

// BatchNorm returns scale·(x−mean)/√(variance+1e-5) + shift for images x
// [n, c, h, w], with scale and shift [c] per channel (Ioffe and Szegedy, 2015).
// In training, mean and biased variance are those of the channel over the batch,
// of which it needs at least two values; the gradients go through them. In
// evaluation they are the running ones. See BatchStats for the two.
//
// The gradient nodes read what the last run left, so that a graph must not run
// on two machines at once, and a change between training and evaluation must
// not come between the two passes of a step.
func BatchNorm(x, scale, shift *gorgonia.Node, stats *BatchStats) (*gorgonia.Node, error) {
	if stats == nil || stats.Mean == nil || stats.Var == nil {
		return nil, errors.New("op: batch_norm needs batch statistics; NewBatchStats makes them")
	}
	if stats.Mean.dtype != x.Dtype() || stats.Var.dtype != x.Dtype() {
		return nil, fmt.Errorf("op: batch_norm of %v has statistics of %v and %v; they must be of one type", x.Dtype(), stats.Mean.dtype, stats.Var.dtype)
	}
	o := &batchNorm{
		base:  base{name: "batch_norm", arity: 3, typ: hm.NewFnType(images, vector, vector, images), id: newID()},
		stats: stats,
	}
	o.loop.Body = o.channels
	y, err := gorgonia.ApplyOp(o, x, scale, shift)
	if err != nil {
		return nil, err
	}
	// It is made here, and not with the gradient, to run soon after y.
	o.done, err = gorgonia.ApplyOp(&batchNormDone{base{name: "batch_norm_done", arity: 1, typ: hm.NewFnType(images, real), id: o.id}}, y)
	return y, err
}

type batchNorm struct {
	base
	stats *BatchStats
	done  *gorgonia.Node // what batchNormDone gives

	// What the last run used: for each channel the mean and 1/√(variance+ε),
	// and whether these are the running ones.
	mean, inverse []float64
	evaluated     bool

	loop parallel.Loop
	dst  *Array
	in   [3]*Array
}

func (o *batchNorm) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *batchNorm) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *batchNorm) ResultShape(dst []int, in []*Array) ([]int, error) {
	x, scale, shift := in[0], in[1], in[2]
	if x.dims != 4 || scale.dims != 1 || shift.dims != 1 || scale.shape[0] != x.shape[1] || shift.shape[0] != x.shape[1] {
		return nil, fmt.Errorf("op: batch_norm takes images [n,c,h,w], a scale [c] and a shift [c], not shapes %v, %v and %v", x.Shape(), scale.Shape(), shift.Shape())
	}
	if mean, variance := o.stats.Mean, o.stats.Var; mean.dims != 1 || variance.dims != 1 || mean.shape[0] != x.shape[1] || variance.shape[0] != x.shape[1] {
		return nil, fmt.Errorf("op: batch_norm of %d channels has statistics of shapes %v and %v; they must have a number for each channel", x.shape[1], mean.Shape(), variance.Shape())
	}
	return append(dst, x.Shape()...), nil
}

func (o *batchNorm) Run(dst *Array, in []*Array) error {
	x := in[0]
	o.evaluated = o.stats.Evaluate
	if n := x.shape[0] * x.shape[2] * x.shape[3]; n < 2 && !o.evaluated {
		return fmt.Errorf("op: batch_norm in training needs at least two values of a channel, but images of shape %v have %d; take a larger batch", x.Shape(), n)
	}
	channels := x.shape[1]
	o.mean, o.inverse = grow(o.mean, channels), grow(o.inverse, channels)
	o.dst = dst
	copy(o.in[:], in)
	o.loop.Run(channels, channelGrain(x))
	return nil
}

// channelGrain is how many channels of images make it worth to wake another
// core. What is done to one channel is done at one time, so that of the sweeps
// over it all but the first find it in the cache.
func channelGrain(x *Array) int {
	return max(1, elementsPerPiece/max(1, x.shape[0]*x.shape[2]*x.shape[3]))
}

// channelOf says where a channel's numbers are, from that of its first plane
// on, which comes first.
func channelOf(x *Array, channel int) (first int, c simd.Channel) {
	size := x.shape[2] * x.shape[3]
	return channel * size, simd.Channel{Images: x.shape[0], Size: size, Stride: x.shape[1] * size}
}

func (o *batchNorm) channels(_, lo, hi int) {
	x, scale, shift := o.in[0], o.in[1], o.in[2]
	if x.Len() == 0 {
		return
	}
	for c := lo; c < hi; c++ {
		if x.dtype == tensor.Float64 {
			normaliseChannel(o, c, o.dst.f64, x.f64, scale.f64[c], shift.f64[c], o.stats.Mean.f64, o.stats.Var.f64)
		} else {
			normaliseChannel(o, c, o.dst.f32, x.f32, scale.f32[c], shift.f32[c], o.stats.Mean.f32, o.stats.Var.f32)
		}
	}
}

func normaliseChannel[T Float](o *batchNorm, channel int, dst, x []T, scale, shift T, means, variances []T) {
	first, c := channelOf(o.in[0], channel)
	dst, x = dst[first:], x[first:]
	mean, variance := float64(means[channel]), float64(variances[channel])
	if !o.evaluated {
		// Moments about one of the values: in a channel that is far from 0 they
		// do not cancel, and the squares are at most n+1 times the scatter.
		n, pivot := float64(c.Images*c.Size), x[0]
		sum, squares := simd.ChannelMoments(x, c, pivot)
		scatter := squares - sum/n*sum
		means[channel] = T((1-normMomentum)*mean + normMomentum*(float64(pivot)+sum/n))
		variances[channel] = T((1-normMomentum)*variance + normMomentum*scatter/(n-1))
		mean, variance = float64(pivot)+sum/n, scatter/n
	}
	inverse := 1 / math.Sqrt(variance+normEpsilon)
	o.mean[channel], o.inverse[channel] = mean, inverse
	// Differences from the mean, as it is rounded, are exact where it counts:
	// in a channel that is far from 0.
	factor, pivot := float64(scale)*inverse, T(mean)
	simd.ChannelScale(dst, x, c, pivot, T(factor), T(float64(shift)-factor*(mean-float64(pivot))))
}

func (o *batchNorm) DiffWRT(int) []bool { return []bool{true, true, true} }

func (o *batchNorm) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	g := &batchNormGrad{
		base: base{name: "batch_norm_grad", arity: 4, typ: hm.NewFnType(images, vector, images, real, images), id: newID()}, of: o}
	g.loop.Body = g.channels
	dx, err := gorgonia.ApplyOp(g, in[0], in[1], grad, o.done)
	if err != nil {
		return nil, err
	}
	out := gorgonia.Nodes{dx, nil, nil}
	for i, sums := range []*[]float64{&g.dScale, &g.dShift} {
		s := &batchNormSums{
			base: base{name: [...]string{"batch_norm_grad_scale", "batch_norm_grad_shift"}[i], arity: 2, typ: hm.NewFnType(vector, images, vector), id: g.id}, sums: sums}
		if out[1+i], err = gorgonia.ApplyOp(s, in[1+i], dx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// batchNormDone is a scalar that is there once its input is: the gradient,
// which needs the layer to have run, waits for it rather than for the layer's
// output, whose memory is then free for others.
type batchNormDone struct{ base }

func (o *batchNormDone) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *batchNormDone) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *batchNormDone) ResultShape(dst []int, _ []*Array) ([]int, error) { return dst, nil }

func (o *batchNormDone) Run(dst *Array, _ []*Array) error {
	clear(dst.f32)
	clear(dst.f64)
	return nil
}

// DiffWRT is here since Gorgonia differentiates no graph with a node at the end
// of a branch whose operation does not have it.
func (o *batchNormDone) DiffWRT(int) []bool { return []bool{false} }

func (o *batchNormDone) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return nil, errors.New("op: batch_norm_done has no gradient")
}

// batchNormGrad is the gradient with respect to the images. Its inputs are the
// images, the scale, the gradient that comes in, and that the layer is done. It
// leaves the gradients of scale and shift, which it finds on the way.
type batchNormGrad struct {
	base
	of *batchNorm

	dScale, dShift []float64

	loop        parallel.Loop
	dst         *Array
	x, scale, g *Array
}

func (o *batchNormGrad) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *batchNormGrad) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *batchNormGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	if x, g := in[0], in[2]; g.dims != 4 || g.shape != x.shape {
		return nil, fmt.Errorf("op: batch_norm_grad takes images and a gradient of their shape, not shapes %v and %v", x.Shape(), g.Shape())
	}
	return append(dst, in[0].Shape()...), nil
}

func (o *batchNormGrad) Run(dst *Array, in []*Array) error {
	channels := in[0].shape[1]
	if len(o.of.mean) != channels {
		return errors.New("op: the gradient of a batch_norm was asked for before it was run")
	}
	o.dScale, o.dShift = grow(o.dScale, channels), grow(o.dShift, channels)
	o.dst, o.x, o.scale, o.g = dst, in[0], in[1], in[2]
	o.loop.Run(channels, channelGrain(o.x))
	return nil
}

func (o *batchNormGrad) channels(_, lo, hi int) {
	if o.x.Len() == 0 {
		clear(o.dScale[lo:hi])
		clear(o.dShift[lo:hi])
		return
	}
	for c := lo; c < hi; c++ {
		if o.dst.dtype == tensor.Float64 {
			normaliseGradChannel(o, c, o.dst.f64, o.x.f64, o.g.f64, float64(o.scale.f64[c]))
		} else {
			normaliseGradChannel(o, c, o.dst.f32, o.x.f32, o.g.f32, float64(o.scale.f32[c]))
		}
	}
}

// normaliseGradChannel computes, with z = (x−mean)/√(variance+ε),
// scale/√(variance+ε)·(g − Σg/n − z·Σgz/n) in training, and without the sums in
// evaluation.
func normaliseGradChannel[T Float](o *batchNormGrad, channel int, dst, x, g []T, scale float64) {
	first, c := channelOf(o.x, channel)
	dst, x, g = dst[first:], x[first:], g[first:]
	mean, inverse := o.of.mean[channel], o.of.inverse[channel]
	pivot := T(mean)
	sum, products := simd.ChannelProducts(g, x, c, pivot)
	products = inverse * (products - (mean-float64(pivot))*sum) // Σ gz
	o.dScale[channel], o.dShift[channel] = products, sum
	factor := scale * inverse
	if o.of.evaluated {
		simd.ChannelScale(dst, g, c, 0, T(factor), 0)
		return
	}
	n := float64(c.Images * c.Size)
	ofX := -factor * inverse * products / n
	simd.ChannelBlend(dst, g, x, c, pivot, T(factor), T(ofX), T(-factor*sum/n-ofX*(mean-float64(pivot))))
}

// batchNormSums is the gradient of scale or shift. Its inputs are that vector,
// for its shape, and the gradient of the images, so that it runs after it.
type batchNormSums struct {
	base
	sums *[]float64
}

func (o *batchNormSums) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *batchNormSums) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *batchNormSums) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[0]), nil
}

func (o *batchNormSums) Run(dst *Array, _ []*Array) error {
	copy(dst.f64, *o.sums)
	for i := range dst.f32 {
		dst.f32[i] = float32((*o.sums)[i])
	}
	return nil
}
