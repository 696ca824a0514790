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
// It is computed by matrix products of the weights with the patches that the
// windows see: those of a few output rows of an image, or of a few small images,
// at a time, so that the patches stay in cache.
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
	convPieces = 8
	// fewPositions is how many positions of windows are too few for a product
	// that reads all the weights: small images are taken together.
	fewPositions = 256
)

// rows returns how many output rows are computed at a time.
func (g *windows) rows() int {
	if g.plain() {
		return g.oh
	}
	return min(g.oh, max(1, patchElements/(g.patch()*g.ow)))
}

// together returns how many of some images are computed at a time.
func (g *windows) together(images int) int {
	if g.plain() {
		return 1
	}
	return min(images, max(1, fewPositions/(g.oh*g.ow)))
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
	scratch                 parallel.Pool[convScratch[T]]
}

// run goes over the images. One of the three arrays is what is computed of the
// others; result is that of the convolution, or its gradient.
func (c *convolution[T]) run(g windows, images, weights, result []T) {
	c.windows, c.images, c.weights, c.result = g, images, weights, result
	c.loop.Run(g.n, g.grain())
	c.images, c.weights, c.result = nil, nil, nil // are not held
}

// A convScratch is the memory for a step of a convolution.
type convScratch[T Float] struct {
	patches, result []T
	step            convStep[T]
}

// A convStep is what a convolution computes at a time: output rows [first,
// first+rows) of an image, or all of several images.
type convStep[T Float] struct {
	image, images, first, rows int
	// patches [patch, ld] and result [k, resultLD] have a column for each
	// position of a window, of which there are so many. The result is that of
	// the convolution itself unless the step has memory of its own for it; the
	// patches are the image itself if it has that form.
	patches, result         []T
	ld, resultLD, positions int
	own                     bool
}

// forwardPiece computes Y = W·P, where P [patch, positions] are the patches.
func (c *convolution[T]) forwardPiece(_, lo, hi int) {
	c.steps(lo, hi, func(s *convStep[T]) {
		c.layOut(s)
		blas.GemmAlone(false, false, c.k, s.positions, c.patch(), 1, c.weights, c.patch(), s.patches, s.ld, 0, s.result, s.resultLD)
		c.eachResult(s, func(ofImages, ofStep []T) { copy(ofImages, ofStep) })
	})
}

// weightsPiece adds up dW = dY·Pᵀ over the images of a piece.
func (c *convolution[T]) weightsPiece(piece, lo, hi int) {
	c.sums[piece] = grow(c.sums[piece], c.k*c.patch())
	sum, keep := c.sums[piece], T(0)
	c.steps(lo, hi, func(s *convStep[T]) {
		c.layOut(s)
		c.eachResult(s, func(ofImages, ofStep []T) { copy(ofStep, ofImages) })
		blas.GemmAlone(false, true, c.k, c.patch(), s.positions, 1, s.result, s.resultLD, s.patches, s.ld, keep, sum, c.patch())
		keep = 1
	})
}

// imagesPiece computes dP = Wᵀ·dY and adds it up where the windows overlap.
func (c *convolution[T]) imagesPiece(_, lo, hi int) {
	size := c.c * c.h * c.w
	clear(c.images[lo*size : hi*size])
	c.steps(lo, hi, func(s *convStep[T]) {
		c.eachResult(s, func(ofImages, ofStep []T) { copy(ofStep, ofImages) })
		blas.GemmAlone(true, false, c.patch(), s.positions, c.k, 1, c.weights, c.patch(), s.result, s.resultLD, 0, s.patches, s.ld)
		c.addUp(s)
	})
}

// steps calls body for all that is to be computed of some images.
func (c *convolution[T]) steps(lo, hi int, body func(s *convStep[T])) {
	memory := c.scratch.Get()
	defer c.scratch.Put(memory)
	positions := c.oh * c.ow
	together := c.together(hi - lo)
	step := convStep[T]{rows: c.rows(), own: together > 1}
	if step.own {
		step.rows = c.oh
	}
	step.ld = together * step.rows * c.ow
	if !c.plain() {
		memory.patches = grow(memory.patches, c.patch()*step.ld)
	}
	if step.own {
		memory.result = grow(memory.result, c.k*step.ld)
	}
	for image := lo; image < hi; image += together {
		step.image, step.images = image, min(together, hi-image)
		for first := 0; first < c.oh; first += step.rows {
			s := &memory.step
			*s = step
			s.first, s.rows = first, min(step.rows, c.oh-first)
			s.positions = s.images * s.rows * c.ow
			s.patches, s.result, s.resultLD = memory.patches, memory.result, s.ld
			if c.plain() {
				s.patches = c.images[image*c.c*positions+first*c.ow:]
				s.ld = positions
			}
			if !s.own {
				s.result, s.resultLD = c.result[image*c.k*positions+first*c.ow:], positions
			}
			body(s)
		}
	}
}

// eachResult calls body for the parts of the result that a step has memory of
// its own for.
func (c *convolution[T]) eachResult(s *convStep[T], body func(ofImages, ofStep []T)) {
	if !s.own {
		return
	}
	positions := c.oh * c.ow
	for i := range s.images {
		for k := range c.k {
			body(c.result[((s.image+i)*c.k+k)*positions:][:positions], s.result[k*s.ld+i*positions:][:positions])
		}
	}
}

// overlap calls body for each stretch of a patch row, [ow] of an output row, and
// the row of the image that it lies on: count elements from at on, in steps of
// stride through the image from source on. What of the row is outside the image
// lies before and behind; all of it if count is 0.
func (c *convolution[T]) overlap(ld, image, first, rows int, body func(patch, at, count, source int)) {
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
func (c *convolution[T]) blocks(patches []T, ld, image, first, rows int, body func(block []T, shift int, inner []T, source int)) {
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

// layOut writes the patches of a step.
func (c *convolution[T]) layOut(s *convStep[T]) {
	if c.plain() {
		return
	}
	for i := range s.images {
		c.layOutImage(s.patches[i*s.rows*c.ow:], s.ld, s.image+i, s.first, s.rows)
	}
}

// layOutImage writes the patches of some output rows of an image.
func (c *convolution[T]) layOutImage(patches []T, ld, image, first, rows int) {
	if c.inPlace() {
		c.blocks(patches, ld, image, first, rows, func(block []T, shift int, inner []T, source int) {
			copy(inner, c.images[source:])
			c.clearOutside(block, shift)
		})
		return
	}
	c.overlap(ld, image, first, rows, func(patch, at, count, source int) {
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

// addUp adds the patches of a step to its images.
func (c *convolution[T]) addUp(s *convStep[T]) {
	if c.plain() {
		return
	}
	for i := range s.images {
		c.addUpImage(s.patches[i*s.rows*c.ow:], s.ld, s.image+i, s.first, s.rows)
	}
}

// addUpImage adds patches of some output rows to an image.
func (c *convolution[T]) addUpImage(patches []T, ld, image, first, rows int) {
	if c.inPlace() {
		c.blocks(patches, ld, image, first, rows, func(block []T, shift int, inner []T, source int) {
			c.clearOutside(block, shift)
			simd.Add(c.images[source:], inner)
		})
		return
	}
	c.overlap(ld, image, first, rows, func(patch, at, count, source int) {
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
