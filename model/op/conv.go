package op

import (
	"errors"
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/selection"
)

// MaxConvSize is the largest stride and padding of a Conv2d.
const MaxConvSize = 1 << 15

// Conv2d returns the convolution (strictly the cross-correlation, as in all deep
// learning) of images x [N, H, W, C] with weights [K, C, kh, kw], without a
// bias: [N, ⌊(H+2·pad−kh)/stride⌋+1, ⌊(W+2·pad−kw)/stride⌋+1, K]. Images are padded by
// pad rows and columns of zeros on each side; 1 ≤ stride, 0 ≤ pad.
//
// Channels are the last dimension of the images, so all kernels work on vectors of
// channels; ChannelsLast converts from the layout of files and PyTorch. The weights are
// in PyTorch's layout.
//
// In float32, 3×3 convolutions with stride 1, padding 1 and multiples of 16 channels use
// Winograd's minimal filtering. It takes a quarter of the multiplications; its errors are
// about 10⁻⁶ of the largest result. If all windows cover the whole image, such as 3×3 on
// 2×2 pixels, the convolution is a dense layer without the padding. All others use
// im2col, in blocks that fit the cache.
//
// With BFloat16 the factors of all products, also for gradients, are rounded to bfloat16
// before they are multiplied. Winograd's method rounds them after its transforms. Sums,
// transforms and results are float32. Products without multiples of 16 channels, and
// convolutions whose windows all cover the whole image, stay in float32. (In the first
// layer, with three channels, this is only the gradient of the images.) Errors are about 0.3 %
// of a typical result, and 2 to 3 % in Winograd's method. Processors without products of
// bfloat16 (AMX or AVX512-BF16) get such results, too, but much more slowly.
//
// An accelerator computes all products in bfloat16, with any number of channels. It
// stores the result and the images' gradient in bfloat16, and may also round the weights'
// gradient. See ResultDtype.
func Conv2d(x, weights *gorgonia.Node, stride, pad int, precision Precision) (_ *gorgonia.Node, err error) {
	defer kind.Catch(&err)
	kind.Need(precision != BFloat16 || x.Dtype() == tensor.Float32, ErrInput,
		"op: conv2d in bfloat16: got images of %v, want float32", x.Dtype())
	kind.Need(stride >= 1 && pad >= 0 && stride <= MaxConvSize && pad <= MaxConvSize, ErrInput,
		"op: conv2d: got stride %d and padding %d, want a stride from 1 to %d and a padding from 0", stride, pad, MaxConvSize)
	return apply(&conv2d{convPass{
		base: newBase(fmt.Sprintf("conv2d_s%d_p%d%s", stride, pad, precision.suffix()), images, images, images),
		of:   convResult, stride: stride, pad: pad, precision: precision,
	}}, x, weights)
}

type conv2d struct{ convPass }

func (o *conv2d) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var out gorgonia.Nodes
	for i, of := range []convPart{convImages, convWeights} {
		n, err := apply(&convPass{
			base: newBase(fmt.Sprintf("%s_grad_%d", o.name, i), images, images, images, images),
			of:   of, stride: o.stride, pad: o.pad, precision: o.precision,
		}, in[0], in[1], grad)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// A convPass computes one part of a convolution. Its inputs are the images, the weights
// and, for the gradient of one of them, the gradient of the result.
type convPass struct {
	base
	of          convPart
	stride, pad int
	precision   Precision
	convolution
	onDevice deviceConv
}

func (o *convPass) ResultShape(dst []int, in []*Array) ([]int, error) {
	if o.of != convResult {
		return append(dst, in[o.of].Shape()...), nil
	}
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	return append(dst, g.n, g.oh, g.ow, g.k), err
}

// operands returns the three arrays of the convolution, including dst.
func (o *convPass) operands(dst *Array, in []*Array) (images, weights, result *Array) {
	var arrays [3]*Array
	copy(arrays[:], in)
	arrays[o.of] = dst
	return arrays[convImages], arrays[convWeights], arrays[convResult]
}

func (o *convPass) Run(dst *Array, in []*Array) error {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return err
	}
	images, weights, result := o.operands(dst, in)
	o.convolution.run(g, o.precision, o.of, images, weights, result)
	return nil
}

// A convPart is one of the three arrays of a convolution. This array, or its gradient, is
// computed from the other two.
type convPart = device.ConvolutionPart

const (
	convImages  = device.ConvolutionImages
	convWeights = device.ConvolutionWeights
	convResult  = device.ConvolutionResult
)

// A convolution computes one part with the fastest method for its sizes.
type convolution struct {
	single im2col[float32]
	double im2col[float64]
	paired pairedIm2col
	tiles  winograd

	fullImage32 fullImageConv[float32]
	fullImage64 fullImageConv[float64]
}

func (c *convolution) run(g windows, precision Precision, part convPart, images, weights, result *Array) {
	switch {
	case images.dtype == tensor.Float64 && g.coversImage():
		c.fullImage64.run(&fullImage64, g, part, images.f64, weights.f64, result.f64)
	case images.dtype == tensor.Float64:
		c.double.run(&doubleIm2col, g, part, images.f64, weights.f64, result.f64)
	case g.usesWinograd():
		c.tiles.run(g, precision, part, images.f32, weights.f32, result.f32)
	case g.coversImage():
		c.fullImage32.run(&fullImage32, g, part, images.f32, weights.f32, result.f32)
	case precision == BFloat16 && g.usesPairs(part):
		c.paired.run(g, part, images.f32, weights.f32, result.f32)
	default:
		c.single.run(&singleIm2col, g, part, images.f32, weights.f32, result.f32)
	}
}

// windows describes the positions of a convolution's windows on its images.
type windows struct {
	n, h, w, c  int // the images
	k, kh, kw   int // the weights
	oh, ow      int // the result
	stride, pad int
}

func newWindows(x, weights *Array, stride, pad int) (windows, error) {
	if x.dims != 4 || weights.dims != 4 || x.shape[3] != weights.shape[1] || x.shape[3] == 0 || weights.Len() == 0 {
		return windows{}, kind.Errorf(ErrInput, "op: conv2d: got shapes %v and %v, want images [N,H,W,C] and weights [K,C,kh,kw]",
			x.Shape(), weights.Shape())
	}
	g := windows{n: x.shape[0], h: x.shape[1], w: x.shape[2], c: x.shape[3],
		k: weights.shape[0], kh: weights.shape[2], kw: weights.shape[3], stride: stride, pad: pad}
	if g.h+2*pad < g.kh || g.w+2*pad < g.kw {
		return windows{},
			kind.Errorf(ErrInput, "op: conv2d: got windows of %d×%d, want no larger than images of %d×%d padded by %d", g.kh, g.kw, g.h, g.w, pad)
	}
	g.oh, g.ow = (g.h+2*pad-g.kh)/stride+1, (g.w+2*pad-g.kw)/stride+1
	return g, nil
}

// deviceConv computes a part of a convolution on an accelerator: as a matrix product if
// windows are single pixels; otherwise with the device's library (cuDNN) or, if that does
// not support the convolution, by im2col as on the CPU.
type deviceConv struct {
	// channelsLast has the weights, or their gradient: [K, kh, kw, C].
	channelsLast scratch
	// These are used for bfloat16: copies of the weights, with channels last; copies of
	// images and of the result's gradient if they are float32; and a gradient that the caller
	// wants in float32.
	roundedWeights, roundedImages, roundedResult, computed rounded
}

// im2colBytes bounds the matrix of patches, unless the patches of one image are larger.
// It is small enough for the second-level cache and large enough to keep a GPU busy.
// Tests lower it.
var im2colBytes = 32 << 20

// Launch implements Launcher.
func (o *convPass) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	g := kind.Got(newWindows(in[0], in[1], o.stride, o.pad))
	images, weights, result := o.operands(dst, in)
	return o.onDevice.launch(d, g, o.precision, o.of, images, weights, result)
}

func (c *deviceConv) launch(d *Device, g windows, precision Precision, part convPart, images, weights, result *Array) error {
	half, taps := precision == BFloat16, g.kh*g.kw
	switch {
	case g.n == 0 && part == convWeights:
		return weights.Zero()
	case g.n == 0:
		return nil
	case !half && (images.half() || result.half()):
		return kind.Errorf(ErrInput, "op: conv2d in float32: got images of bfloat16, want float32")
	}
	last := c.lastChannels(d, g, half, part, weights)
	var wanted *Array // what is computed in bfloat16, and then widened
	if half {
		images, result, wanted = c.round(d, part, images, result)
	}
	err := device.ErrNoConvolution
	if !g.plain() {
		of := g.convolution(part, images, last, result)
		of.BFloat16 = half
		err = d.Convolve(of)
	}
	if errors.Is(err, device.ErrNoConvolution) {
		if half && part == convWeights { // only the device's library rounds the gradient of the weights
			last = c.weightsFor(d, g, weights)
		}
		err = g.multiply(d, part, images, last, result)
	}
	switch {
	case err != nil:
		return err
	case part == convWeights && last.half():
		return d.Each("transpose_widen", weights.Len(), weights.Arg(), last.Arg(), device.Int(taps), device.Int(g.c), device.Int(weights.Len()))
	case part == convWeights && taps > 1:
		return transposeEach(d, weights, last, taps, g.c)
	case wanted != nil:
		return launchConversion(d, wanted, c.computed.array)
	}
	return nil
}

// lastChannels returns the weights with channels last, rounded if half is set, or an array for
// their gradient.
func (c *deviceConv) lastChannels(d *Device, g windows, half bool, part convPart, weights *Array) (last *Array) {
	if half {
		last = c.roundedWeights.like(d, weights.Shape())
	} else {
		last = c.weightsFor(d, g, weights)
	}
	switch taps := g.kh * g.kw; {
	case part == convWeights || last == weights:
	case half:
		kind.Check(d.Each("transpose_round", last.Len(), last.Arg(), weights.Arg(), device.Int(g.c), device.Int(taps), device.Int(last.Len())))
	default:
		kind.Check(transposeEach(d, last, weights, g.c, taps))
	}
	return last
}

// round returns images and result in bfloat16: rounded, or for the one that is computed an
// array in its place. This is then wanted in float32.
func (c *deviceConv) round(d *Device, part convPart, images, result *Array) (halfImages, halfResult, wanted *Array) {
	halfOf := func(x *Array, of convPart, copied *rounded) *Array {
		if part == of && !x.half() {
			wanted = x
			return c.computed.like(d, x.Shape())
		}
		return copied.of(d, x)
	}
	halfImages = halfOf(images, convImages, &c.roundedImages)
	halfResult = halfOf(result, convResult, &c.roundedResult)
	return halfImages, halfResult, wanted
}

// weightsFor returns an array for the weights with channels last: the weights themselves
// if windows are single pixels.
func (c *deviceConv) weightsFor(d *Device, g windows, weights *Array) *Array {
	if g.kh*g.kw == 1 {
		return weights
	}
	return c.channelsLast.of(d, tensor.Float32, g.k, g.kh, g.kw, g.c)
}

// convolution describes the convolution to the device's library.
func (g *windows) convolution(part convPart, images, weights, result *Array) device.Convolution {
	return device.Convolution{
		Part: part, N: g.n, H: g.h, W: g.w, C: g.c, K: g.k, KH: g.kh, KW: g.kw, OH: g.oh, OW: g.ow, Stride: g.stride, Pad: g.pad,
		Images: images.Pointer(), Weights: weights.Pointer(), Result: result.Pointer(),
	}
}

// multiply computes a part by im2col, a few images at a time, or all at once if the
// images themselves are the patches. Images and result are of one type. So are the
// weights; their gradient is float32.
func (g *windows) multiply(d *Device, part convPart, images, weights, result *Array) error {
	half, from, to := images.half(), images.Pointer(), result.Pointer()
	if g.plain() {
		return g.multiplySome(d, part, half, half, g.n, from, weights.Pointer(), to, 0)
	}
	perImage := g.oh * g.ow * g.size()
	if max(perImage, g.h*g.w*g.c) > math.MaxInt32 {
		return fmt.Errorf("op: conv2d on %s: patches of one image of %d×%d: got %d numbers, want fewer than 2³¹", d.Name(), g.h, g.w, perImage)
	}
	size, each := images.bytesEach(), images.bytesEach()
	if part == convImages {
		size = elementSize // gradients of patches are added up in float32
	}
	some := min(g.n, max(1, im2colBytes/size/max(perImage, g.h*g.w*g.c)))
	return d.Scratch(some*perImage*size, func(patches Pointer) (err error) {
		defer kind.Catch(&err)
		for first := 0; first < g.n; first += some {
			count := min(some, g.n-first)
			from := from.At(first*g.h*g.w*g.c, each)
			if part != convImages {
				kind.Check(g.im2colKernel(d, &im2colKernels, half, patches, from, count*perImage))
			}
			beta := selection.If(part == convWeights && first > 0, 1, float32(0))
			kind.Check(g.multiplySome(d, part, half, false, count, patches, weights.Pointer(), to.At(first*g.oh*g.ow*g.k, each), beta))
			if part == convImages {
				kind.Check(g.im2colKernel(d, &col2imKernels, half, from, patches, count*g.h*g.w*g.c))
			}
		}
		return nil
	})
}

// multiplySome computes a part for some images from their patches (or, for the images'
// gradient, computes the patches' gradient). The previous values are added beta times.
// half reports whether factors and the result are bfloat16, halfPatches whether the
// patches' gradient is.
func (g *windows) multiplySome(d *Device, part convPart, half, halfPatches bool, images int,
	patches, weights, result Pointer, beta float32) error {
	rows, size := images*g.oh*g.ow, g.size()
	p := device.Product{Alpha: 1, Beta: beta, BFloat16: half}
	switch part {
	case convResult:
		p.TransB, p.M, p.N, p.K, p.RoundC = true, rows, g.k, size, half
		p.A, p.LDA, p.B, p.LDB, p.C, p.LDC = patches, size, weights, size, result, g.k
	case convImages:
		p.M, p.N, p.K, p.RoundC = rows, size, g.k, halfPatches
		p.A, p.LDA, p.B, p.LDB, p.C, p.LDC = result, g.k, weights, size, patches, size
	case convWeights:
		p.TransA, p.M, p.N, p.K = true, g.k, size, rows
		p.A, p.LDA, p.B, p.LDB, p.C, p.LDC = result, g.k, patches, size, weights, size
	}
	return d.Multiply(p)
}

var (
	im2colKernels = variants{"im2col_1", "im2col_4", "im2col_h1", "im2col_h4"}
	col2imKernels = variants{"col2im_1", "col2im_4", "col2im_h1", "col2im_h4"}
)

// im2colKernel runs im2col or col2im. n is the number of elements of dst.
func (g *windows) im2colKernel(d *Device, v *variants, half bool, dst, from Pointer, n int) error {
	width := selection.If(g.c%4 == 0 && dst%16 == 0 && from%16 == 0, 4, 1)
	return d.Each(v.of(half, width), n/width, Arg(dst), Arg(from), device.Int(n/width), device.Int(g.h), device.Int(g.w), device.Int(g.c),
		device.Int(g.kh), device.Int(g.kw), device.Int(g.oh), device.Int(g.ow), device.Int(g.stride), device.Int(g.pad))
}
