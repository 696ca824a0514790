package op

import (
	"fmt"

	"cne/internal/errkind"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// MaxConvSize is the largest stride and padding of a Conv2d.
const MaxConvSize = 1 << 15

// Conv2d returns the convolution (strictly the cross-correlation, as in all deep
// learning) of images x [N, H, W, C] with weights [K, C, kh, kw], without a
// bias: [N, ⌊(H+2·pad−kh)/stride⌋+1, ⌊(W+2·pad−kw)/stride⌋+1, K]. Images are padded by
// pad rows and columns of zeros on each side; 1 ≤ stride, 0 ≤ pad.
//
// Channels come last in the images, so that all kernels work on vectors of channels;
// ChannelsLast converts from the layout of files and PyTorch. The weights are in
// PyTorch's layout.
//
// In float32, convolutions of 3×3 with stride 1 and padding 1 between multiples
// of 16 channels are computed by Winograd's minimal filtering, with a quarter of
// the multiplications; their errors are some 10⁻⁶ of the largest result. Those each
// window of which sees the whole image, such as 3×3 on 2×2 pixels, are dense layers
// between images and results, which leave the padding out. All others are computed by
// im2col, as much of it at a time as stays in the cache.
//
// With BFloat16 the factors of the products, and those of the gradients' products, are
// rounded to bfloat16 right before they are multiplied, in Winograd's method after its
// transforms; sums, transforms and results are float32. That needs channels in multiples
// of 16, without which a product stays one of float32 (of the first layer, whose images
// have three, that is the gradient of the images alone). Errors are some 0.3 % of a typical
// result, in Winograd's method 2 to 3 %. Processors without products of bfloat16
// (AVX512-BF16) compute the same much more slowly.
//
// An accelerator computes all products of a convolution with BFloat16 in bfloat16, whatever
// its channels, stores its result and the images' gradient in it, and may round the weights'
// gradient to it, too. See ResultDtype for what follows.
func Conv2d(x, weights *gorgonia.Node, stride, pad int, precision Precision) (*gorgonia.Node, error) {
	if precision == BFloat16 && x.Dtype() != tensor.Float32 {
		return nil, errkind.Errorf(ErrInput, "op: conv2d in bfloat16: got images of %v, want float32", x.Dtype())
	}
	if stride < 1 || pad < 0 || stride > MaxConvSize || pad > MaxConvSize {
		return nil, errkind.Errorf(ErrInput, "op: conv2d: got stride %d and padding %d, want a stride from 1 to %d and a padding from 0", stride, pad, MaxConvSize)
	}
	return apply(&conv2d{
		base:   base{name: fmt.Sprintf("conv2d_s%d_p%d%s", stride, pad, precision.suffix()), arity: 2, typ: hm.NewFnType(images, images, images)},
		stride: stride, pad: pad, precision: precision,
	}, x, weights)
}

type conv2d struct {
	base
	stride, pad int
	precision   Precision
	convolution
	onDevice deviceConv
}

func (o *conv2d) ResultShape(dst []int, in []*Array) ([]int, error) {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return nil, err
	}
	return append(dst, g.n, g.oh, g.ow, g.k), nil
}

func (o *conv2d) Run(dst *Array, in []*Array) error {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return err
	}
	o.convolution.run(g, o.precision, convResult, in[0], in[1], dst)
	return nil
}

func (o *conv2d) DiffWRT(int) []bool { return []bool{true, true} }

func (o *conv2d) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var out gorgonia.Nodes
	for i, of := range []convPart{convImages, convWeights} {
		n, err := apply(&convGrad{
			base: base{name: fmt.Sprintf("%s_grad_%d", o.name, i), arity: 3, typ: hm.NewFnType(images, images, images, images)},
			of:   of, stride: o.stride, pad: o.pad, precision: o.precision,
		}, in[0], in[1], grad)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// convGrad is the gradient with respect to one of the inputs. Its inputs are
// these two and the gradient that comes in.
type convGrad struct {
	base
	of          convPart // convImages or convWeights
	stride, pad int
	precision   Precision
	convolution
	onDevice deviceConv
}

func (o *convGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return nil, err
	}
	if y := in[2]; y.dims != 4 || y.shape != [MaxDims]int{g.n, g.oh, g.ow, g.k} {
		return nil, errkind.Errorf(ErrInput, "op: %s: got a gradient of shape %v, want [%d,%d,%d,%d]", o.name, y.Shape(), g.n, g.oh, g.ow, g.k)
	}
	return append(dst, in[o.of].Shape()...), nil
}

func (o *convGrad) Run(dst *Array, in []*Array) error {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return err
	}
	if o.of == convImages {
		o.convolution.run(g, o.precision, convImages, dst, in[1], in[2])
	} else {
		o.convolution.run(g, o.precision, convWeights, in[0], dst, in[2])
	}
	return nil
}

// A convPart is one of the three arrays of a convolution: the one that is computed,
// or whose gradient is, from the other two.
type convPart int

const (
	convImages convPart = iota
	convWeights
	convResult
)

// A convolution computes one part by the method that is fastest for its sizes.
type convolution struct {
	single im2col[float32]
	double im2col[float64]
	paired pairedIm2col
	tiles  winograd

	singleWhole wholeImages[float32]
	doubleWhole wholeImages[float64]
	pairedWhole pairedWhole
}

func (c *convolution) run(g windows, precision Precision, part convPart, images, weights, result *Array) {
	switch {
	case images.dtype == tensor.Float64 && g.whole():
		c.doubleWhole.run(&doubleWhole, g, part, images.f64, weights.f64, result.f64)
	case images.dtype == tensor.Float64:
		c.double.run(&doubleIm2col, g, part, images.f64, weights.f64, result.f64)
	case g.tiled():
		c.tiles.run(g, precision, part, images.f32, weights.f32, result.f32)
	case precision == BFloat16 && g.whole() && g.pairsWhole():
		c.pairedWhole.run(g, part, images.f32, weights.f32, result.f32)
	case precision == BFloat16 && g.pairs(part):
		c.paired.run(g, part, images.f32, weights.f32, result.f32)
	case g.whole():
		c.singleWhole.run(&singleWhole, g, part, images.f32, weights.f32, result.f32)
	default:
		c.single.run(&singleIm2col, g, part, images.f32, weights.f32, result.f32)
	}
}

// windows says how the windows of a convolution lie on its images.
type windows struct {
	n, h, w, c  int // the images
	k, kh, kw   int // the weights
	oh, ow      int // the result
	stride, pad int
}

func newWindows(x, weights *Array, stride, pad int) (windows, error) {
	if x.dims != 4 || weights.dims != 4 || x.shape[3] != weights.shape[1] || x.shape[3] == 0 || weights.Len() == 0 {
		return windows{}, errkind.Errorf(ErrInput, "op: conv2d: got shapes %v and %v, want images [N,H,W,C] and weights [K,C,kh,kw]", x.Shape(), weights.Shape())
	}
	g := windows{n: x.shape[0], h: x.shape[1], w: x.shape[2], c: x.shape[3],
		k: weights.shape[0], kh: weights.shape[2], kw: weights.shape[3], stride: stride, pad: pad}
	if g.h+2*pad < g.kh || g.w+2*pad < g.kw {
		return windows{}, errkind.Errorf(ErrInput, "op: conv2d: got windows of %d×%d, want no larger than images of %d×%d padded by %d", g.kh, g.kw, g.h, g.w, pad)
	}
	g.oh, g.ow = (g.h+2*pad-g.kh)/stride+1, (g.w+2*pad-g.kw)/stride+1
	return g, nil
}
