package op

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// MaxConvSize is the largest stride and padding of a Conv2d.
const MaxConvSize = 1 << 15

// Conv2d returns the convolution (in fact the correlation, as everywhere in
// this field) of images x [N, C, H, W] with weights [K, C, kh, kw], without a
// bias: [N, K, ⌊(H+2·pad−kh)/stride⌋+1, ⌊(W+2·pad−kw)/stride⌋+1]. pad rows and
// columns of zeros are thought on each side of an image; 1 ≤ stride, 0 ≤ pad.
//
// Each image is one matrix product of the weights with the patches that the
// windows see, a few output rows at a time, so that the patches stay in cache.
func Conv2d(x, weights *gorgonia.Node, stride, pad int) (*gorgonia.Node, error) {
	if stride < 1 || pad < 0 || stride > MaxConvSize || pad > MaxConvSize {
		return nil, fmt.Errorf("op: conv2d cannot have stride %d and padding %d; the stride is from 1 to %d, the padding from 0", stride, pad, MaxConvSize)
	}
	o := &conv2d{base: base{name: fmt.Sprintf("conv2d_s%d_p%d", stride, pad), arity: 2, typ: hm.NewFnType(images, images, images)}, stride: stride, pad: pad}
	o.init()
	return gorgonia.ApplyOp(o, x, weights)
}

type conv2d struct {
	base
	stride, pad int
	single      convolution[float32]
	double      convolution[float64]
}

func (o *conv2d) init() {
	o.single.loop.Body = o.single.forwardPiece
	o.double.loop.Body = o.double.forwardPiece
}

func (o *conv2d) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *conv2d) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *conv2d) ResultShape(dst []int, in []*Array) ([]int, error) {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return nil, err
	}
	return append(dst, g.n, g.k, g.oh, g.ow), nil
}

func (o *conv2d) Run(dst *Array, in []*Array) error {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return err
	}
	if dst.dtype == tensor.Float64 {
		o.double.run(g, in[0].f64, in[1].f64, dst.f64)
	} else {
		o.single.run(g, in[0].f32, in[1].f32, dst.f32)
	}
	return nil
}

func (o *conv2d) DiffWRT(int) []bool { return []bool{true, true} }

func (o *conv2d) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var out gorgonia.Nodes
	for _, of := range []convInput{convImages, convWeights} {
		d := &convGrad{base: base{name: fmt.Sprintf("%s_grad_%d", o.name, of), arity: 3, typ: hm.NewFnType(images, images, images, images)},
			of: of, stride: o.stride, pad: o.pad}
		d.init()
		n, err := gorgonia.ApplyOp(d, in[0], in[1], grad)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// A convInput is one of a convolution's inputs.
type convInput int

const (
	convImages convInput = iota
	convWeights
)

// convGrad is the gradient with respect to one of the inputs. Its inputs are
// these two and the gradient that comes in.
type convGrad struct {
	base
	of          convInput
	stride, pad int
	single      convolution[float32]
	double      convolution[float64]
}

func (o *convGrad) init() {
	if o.of == convImages {
		o.single.loop.Body, o.double.loop.Body = o.single.imagesPiece, o.double.imagesPiece
	} else {
		o.single.loop.Body, o.double.loop.Body = o.single.weightsPiece, o.double.weightsPiece
	}
}

func (o *convGrad) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *convGrad) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) { return inferShape(o, s) }

func (o *convGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return nil, err
	}
	if y := in[2]; y.dims != 4 || y.shape != [MaxDims]int{g.n, g.k, g.oh, g.ow} {
		return nil, fmt.Errorf("op: %s takes a gradient [%d,%d,%d,%d], not of shape %v", o.name, g.n, g.k, g.oh, g.ow, y.Shape())
	}
	return append(dst, in[o.of].Shape()...), nil
}

func (o *convGrad) Run(dst *Array, in []*Array) error {
	g, err := newWindows(in[0], in[1], o.stride, o.pad)
	if err != nil {
		return err
	}
	if dst.dtype == tensor.Float64 {
		convGradTo(&o.double, g, o.of, in[0].f64, in[1].f64, in[2].f64, dst.f64)
	} else {
		convGradTo(&o.single, g, o.of, in[0].f32, in[1].f32, in[2].f32, dst.f32)
	}
	return nil
}

// convGradTo writes a gradient to dst.
func convGradTo[T Float](c *convolution[T], g windows, of convInput, x, w, y, dst []T) {
	if of == convImages {
		c.run(g, dst, w, y)
		return
	}
	pieces := g.pieces()
	for len(c.sums) < pieces {
		c.sums = append(c.sums, nil)
	}
	c.run(g, x, w, y)
	if pieces == 0 {
		clear(dst)
		return
	}
	copy(dst, c.sums[0])
	for _, sum := range c.sums[1:pieces] {
		simd.Add(dst, sum)
	}
}

// windows says how the windows of a convolution lie on its images.
type windows struct {
	n, c, h, w  int // the images
	k, kh, kw   int // the weights
	oh, ow      int // the result
	stride, pad int
}

func newWindows(x, weights *Array, stride, pad int) (windows, error) {
	if x.dims != 4 || weights.dims != 4 || x.shape[1] != weights.shape[1] || x.shape[1] == 0 || weights.Len() == 0 {
		return windows{}, fmt.Errorf("op: conv2d takes images [N,C,H,W] and weights [K,C,kh,kw], not shapes %v and %v", x.Shape(), weights.Shape())
	}
	g := windows{n: x.shape[0], c: x.shape[1], h: x.shape[2], w: x.shape[3],
		k: weights.shape[0], kh: weights.shape[2], kw: weights.shape[3], stride: stride, pad: pad}
	if g.h+2*pad < g.kh || g.w+2*pad < g.kw {
		return windows{}, fmt.Errorf("op: conv2d: windows of %d×%d do not fit images of %d×%d padded by %d", g.kh, g.kw, g.h, g.w, pad)
	}
	g.oh, g.ow = (g.h+2*pad-g.kh)/stride+1, (g.w+2*pad-g.kw)/stride+1
	return g, nil
}

// patch returns the number of values that a window sees.
func (g *windows) patch() int { return g.c * g.kh * g.kw }

// plain tells whether a window sees what lies under its position alone, so that
// the patches are the image itself.
func (g *windows) plain() bool { return g.kh == 1 && g.kw == 1 && g.stride == 1 && g.pad == 0 }

const (
	// patchElements bounds the patches that are laid out at a time, so that
	// they stay in the second-level cache.
	patchElements = 1 << 17
	// convPieces bounds the copies of the weights' gradient.
	convPieces = 16
)

// rows returns how many output rows are computed at a time.
func (g *windows) rows() int {
	if g.plain() {
		return g.oh
	}
	return min(g.oh, max(1, patchElements/(g.patch()*g.ow)))
}

// grain returns how many images make a piece.
func (g *windows) grain() int { return max(1, (g.n+convPieces-1)/convPieces) }

func (g *windows) pieces() int { return parallel.Pieces(g.n, g.grain()) }

// A convolution computes one of the three products of a convolution, image by
// image.
type convolution[T Float] struct {
	windows
	loop                    parallel.Loop
	images, weights, result []T
	sums                    [][]T // of the pieces: the weights' gradient
	scratch                 parallel.Pool[[]T]
}

// run goes over the images. One of the three arrays is what is computed of the
// others; result is that of the convolution, or its gradient.
func (c *convolution[T]) run(g windows, images, weights, result []T) {
	c.windows, c.images, c.weights, c.result = g, images, weights, result
	c.loop.Run(g.n, g.grain())
	c.images, c.weights, c.result = nil, nil, nil // are not held
}

// forwardPiece computes Y = W·P, where P [patch, oh·ow] are an image's patches.
func (c *convolution[T]) forwardPiece(_, lo, hi int) {
	c.overRows(lo, hi, func(image, first, rows int, patches []T, ld int) {
		c.layOut(patches, image, first, rows)
		y := c.result[image*c.k*c.oh*c.ow+first*c.ow:]
		p := c.patchesOr(patches, image)
		blas.GemmAlone(false, false, c.k, rows*c.ow, c.patch(), 1, c.weights, c.patch(), p, ld, 0, y, c.oh*c.ow)
	})
}

// weightsPiece adds up dW = dY·Pᵀ over the images of a piece.
func (c *convolution[T]) weightsPiece(piece, lo, hi int) {
	c.sums[piece] = grow(c.sums[piece], c.k*c.patch())
	sum, keep := c.sums[piece], T(0)
	c.overRows(lo, hi, func(image, first, rows int, patches []T, ld int) {
		c.layOut(patches, image, first, rows)
		y := c.result[image*c.k*c.oh*c.ow+first*c.ow:]
		p := c.patchesOr(patches, image)
		blas.GemmAlone(false, true, c.k, c.patch(), rows*c.ow, 1, y, c.oh*c.ow, p, ld, keep, sum, c.patch())
		keep = 1
	})
}

// imagesPiece computes dP = Wᵀ·dY and adds it up where the windows overlap.
func (c *convolution[T]) imagesPiece(_, lo, hi int) {
	size := c.c * c.h * c.w
	clear(c.images[lo*size : hi*size])
	c.overRows(lo, hi, func(image, first, rows int, patches []T, ld int) {
		y := c.result[image*c.k*c.oh*c.ow+first*c.ow:]
		p := c.patchesOr(patches, image)
		blas.GemmAlone(true, false, c.patch(), rows*c.ow, c.k, 1, c.weights, c.patch(), y, c.oh*c.ow, 0, p, ld)
		c.addUp(patches, image, first, rows)
	})
}

// overRows calls body for the output rows of some images, with memory for their
// patches [patch, ld], which has none if the image itself is what they are.
func (c *convolution[T]) overRows(lo, hi int, body func(image, first, rows int, patches []T, ld int)) {
	s := c.scratch.Get()
	defer c.scratch.Put(s)
	ld := c.rows() * c.ow
	if !c.plain() {
		*s = grow(*s, c.patch()*ld)
	}
	for image := lo; image < hi; image++ {
		for first := 0; first < c.oh; first += c.rows() {
			rows := min(c.rows(), c.oh-first)
			if c.plain() {
				body(image, first, rows, nil, ld)
			} else {
				body(image, first, rows, *s, ld)
			}
		}
	}
}

// patchesOr returns the patches, or the image if that is what they are.
func (c *convolution[T]) patchesOr(patches []T, image int) []T {
	if patches != nil {
		return patches
	}
	return c.images[image*c.c*c.h*c.w:]
}

// overlap calls body for each stretch of a patch row, [ow] of an output row, and
// the row of the image that it lies on: count elements from at on, in steps of
// stride through the image from source on. What of the row is outside the image
// lies before and behind; all of it if count is 0.
func (c *convolution[T]) overlap(image, first, rows int, body func(patch, at, count, source int)) {
	ld := c.rows() * c.ow
	for ch := range c.c {
		for r := range c.kh {
			for q := range c.kw {
				patch := ((ch*c.kh+r)*c.kw + q) * ld
				// Output columns [from, to) see columns of the image.
				from := max(0, (c.pad-q+c.stride-1)/c.stride)
				to := max(from, min(c.ow, (c.w-1+c.pad-q+c.stride)/c.stride))
				if c.w-1+c.pad-q < 0 {
					to = from
				}
				for row := range rows {
					y := (first+row)*c.stride + r - c.pad
					count := to - from
					if y < 0 || y >= c.h {
						count = 0
					}
					body(patch+row*c.ow, min(from, c.ow), count, ((image*c.c+ch)*c.h+y)*c.w+from*c.stride+q-c.pad)
				}
			}
		}
	}
}

// inPlace tells whether the result has the rows and columns of the images: a
// window's value at some position then lies as far from it in the image for all
// positions, so that whole blocks of rows can be moved.
func (c *convolution[T]) inPlace() bool { return c.stride == 1 && c.ow == c.w }

// blocks is overlap for convolutions in place: it calls body for all the rows of
// a patch row that lie on rows of the image. The elements of inner, which is all
// of them but a few at one end, lie on as many from source on; those of columns
// outside the image do so wrongly.
func (c *convolution[T]) blocks(patches []T, image, first, rows int, body func(block []T, shift int, inner []T, source int)) {
	ld := c.rows() * c.ow
	for ch := range c.c {
		plane := (image*c.c + ch) * c.h * c.w
		for r := range c.kh {
			from := min(max(first, c.pad-r), first+rows)
			to := max(from, min(first+rows, c.h+c.pad-r))
			for q := range c.kw {
				patch := patches[((ch*c.kh+r)*c.kw+q)*ld:][:rows*c.ow]
				clear(patch[:(from-first)*c.w])
				clear(patch[(to-first)*c.w:])
				block, shift := patch[(from-first)*c.w:(to-first)*c.w], q-c.pad
				source := plane + (from+r-c.pad)*c.w
				switch {
				case len(block) == 0:
				case shift >= c.w || -shift >= c.w:
					clear(block)
				case shift < 0:
					body(block, shift, block[-shift:], source)
				default:
					body(block, shift, block[:len(block)-shift], source+shift)
				}
			}
		}
	}
}

// clearOutside sets the columns of a block to zero that lie outside the image.
func (c *convolution[T]) clearOutside(block []T, shift int) {
	for at := 0; at < len(block); at += c.w {
		if shift < 0 {
			clear(block[at : at-shift])
		} else {
			clear(block[at+c.w-shift : at+c.w])
		}
	}
}

// layOut writes the patches of some output rows of an image.
func (c *convolution[T]) layOut(patches []T, image, first, rows int) {
	if patches == nil {
		return
	}
	if c.inPlace() {
		c.blocks(patches, image, first, rows, func(block []T, shift int, inner []T, source int) {
			copy(inner, c.images[source:])
			c.clearOutside(block, shift)
		})
		return
	}
	c.overlap(image, first, rows, func(patch, at, count, source int) {
		row := patches[patch:][:c.ow]
		if count == 0 {
			clear(row)
			return
		}
		clear(row[:at])
		clear(row[at+count:])
		if c.stride == 1 {
			copy(row[at:at+count], c.images[source:])
			return
		}
		for i := range count {
			row[at+i] = c.images[source+i*c.stride]
		}
	})
}

// addUp adds patches of some output rows to an image.
func (c *convolution[T]) addUp(patches []T, image, first, rows int) {
	if patches == nil {
		return
	}
	if c.inPlace() {
		c.blocks(patches, image, first, rows, func(block []T, shift int, inner []T, source int) {
			c.clearOutside(block, shift)
			simd.Add(c.images[source:], inner)
		})
		return
	}
	c.overlap(image, first, rows, func(patch, at, count, source int) {
		if count == 0 {
			return
		}
		row := patches[patch+at:][:count]
		if c.stride == 1 {
			simd.Add(c.images[source:], row)
			return
		}
		for i, v := range row {
			c.images[source+i*c.stride] += v
		}
	})
}
