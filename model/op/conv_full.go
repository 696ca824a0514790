package op

import (
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// fullImageConv computes a convolution whose windows all cover the whole image, such as
// 3×3 on the 2×2 pixels at the end of a ResNet18. There the windows cover mostly padding,
// and patches would be larger than the images. Instead, the convolution is a dense layer
// from an image, a row of h·w·C numbers, to its result, a row of oh·ow·K numbers. The
// layer's matrix [h·w·C, oh·ow·K] holds, for each pixel and position, the window's
// weight by which the pixel contributes to the position.
type fullImageConv[T Float] struct {
	windows
	part                    convPart
	images, weights, result []T
	taps                    []int // for each pixel and position, the window's element that joins them
	scatter, collect        parallel.Loop
	memory                  *fullImageMemory[T]
}

// fullImageMemory is the memory that all pieces of a convolution share.
type fullImageMemory[T Float] struct {
	matrix []T // [h·w·C, oh·ow·K] or its gradient; turned for the gradient of the images in pairs
	// These hold pairs: the matrix or the result as a right factor, and the images or the
	// result as the left one.
	right, left []uint32
}

// All convolutions share the memory, since one runs at a time.
var (
	fullImage32 = parallel.Pool[fullImageMemory[float32]]{}
	fullImage64 = parallel.Pool[fullImageMemory[float64]]{}
)

// coversImage reports whether every window covers the whole image and padding around it.
func (g *windows) coversImage() bool {
	return !g.plain() && g.h+g.pad <= g.kh && g.w+g.pad <= g.kw && (g.oh-1)*g.stride <= g.pad && (g.ow-1)*g.stride <= g.pad
}

// inputs and outputs return the numbers of an image and of its result.
func (g *windows) inputs() int  { return g.h * g.w * g.c }
func (g *windows) outputs() int { return g.oh * g.ow * g.k }

func (c *fullImageConv[T]) run(memories *parallel.Pool[fullImageMemory[T]], g windows, part convPart, images, weights, result []T) {
	c.begin(memories.Get(), g, part, images, weights, result)
	in, out := c.inputs(), c.outputs()
	switch part {
	case convResult:
		c.scatter.Run(c.c, c.channels())
		blas.Gemm(false, false, c.n, out, in, 1, images, in, c.memory.matrix, out, 0, result, out)
	case convImages:
		c.scatter.Run(c.c, c.channels())
		blas.Gemm(false, true, c.n, in, out, 1, result, out, c.memory.matrix, out, 0, images, in)
	case convWeights:
		blas.Gemm(true, false, in, out, c.n, 1, images, in, result, out, 0, c.memory.matrix, out)
		c.collect.Run(c.c, c.channels())
	}
	c.end(memories)
}

func (c *fullImageConv[T]) begin(memory *fullImageMemory[T], g windows, part convPart, images, weights, result []T) {
	if c.scatter.Body == nil {
		c.scatter.Body, c.collect.Body = c.scatterChannels, c.collectChannels
	}
	if c.windows != g {
		c.taps = c.taps[:0]
		for p := range g.h * g.w {
			for q := range g.oh * g.ow {
				y, x := p/g.w-q/g.ow*g.stride+g.pad, p%g.w-q%g.ow*g.stride+g.pad
				c.taps = append(c.taps, y*g.kw+x)
			}
		}
	}
	c.memory = memory
	c.memory.matrix = grow(c.memory.matrix, g.inputs()*g.outputs())
	c.windows, c.part, c.images, c.weights, c.result = g, part, images, weights, result
}

func (c *fullImageConv[T]) end(memories *parallel.Pool[fullImageMemory[T]]) {
	memories.Put(c.memory)
	c.images, c.weights, c.result, c.memory = nil, nil, nil, nil // for the garbage collector
}

// channels returns the number of image channels per piece of the matrix that are worth
// another core.
func (c *fullImageConv[T]) channels() int { return max(1, arrangedAtOnce/(c.h*c.w*c.outputs())) }

// scatterChannels writes the rows of the matrix that belong to channels [lo, hi) of the images.
func (c *fullImageConv[T]) scatterChannels(_, lo, hi int) {
	taps, out := c.kh*c.kw, c.outputs()
	for channel := lo; channel < hi; channel++ {
		weights := c.weights[channel*taps:]
		for p := range c.h * c.w {
			row := c.memory.matrix[(p*c.c+channel)*out:][:out]
			for q := range c.oh * c.ow {
				at := c.taps[p*c.oh*c.ow+q]
				for k := range row[q*c.k : (q+1)*c.k] {
					row[q*c.k+k] = weights[k*c.c*taps+at]
				}
			}
		}
	}
}

// collectChannels adds up, for channels [lo, hi) of the images, the gradients of all
// elements of the matrix that hold the same weight.
func (c *fullImageConv[T]) collectChannels(_, lo, hi int) {
	taps, out := c.kh*c.kw, c.outputs()
	for channel := lo; channel < hi; channel++ {
		weights := c.weights[channel*taps:]
		for k := range c.k {
			clear(weights[k*c.c*taps:][:taps])
		}
		for p := range c.h * c.w {
			row := c.memory.matrix[(p*c.c+channel)*out:][:out]
			for q := range c.oh * c.ow {
				at := c.taps[p*c.oh*c.ow+q]
				for k, v := range row[q*c.k : (q+1)*c.k] {
					weights[k*c.c*taps+at] += v
				}
			}
		}
	}
}

// pairedFullImageConv is fullImageConv with products of bfloat16. They add up pairs: of the
// numbers of an image for the result, of the numbers of a result for the gradient of the
// images, and of images for the gradient of the weights.
type pairedFullImageConv struct {
	fullImageConv[float32]
	pairs, width      int // of the right factor
	form              blas.Panels
	pairRight, pairUp parallel.Loop
	multiply          parallel.Loop
}

// fullImageRows is the number of rows of a product's result in a piece.
const fullImageRows = 4 * productRows

// pairsFullImage reports whether a convolution of whole images is computed in bfloat16.
func (g *windows) pairsFullImage() bool { return g.c%16 == 0 && g.k%16 == 0 }

func (c *pairedFullImageConv) run(g windows, part convPart, images, weights, result []float32) {
	c.begin(fullImage32.Get(), g, part, images, weights, result)
	if c.multiply.Body == nil {
		c.pairRight.Body, c.pairUp.Body, c.multiply.Body = c.pairRightRows, c.pairUpRows, c.multiplyRows
		if part == convImages {
			c.scatter.Body = c.scatterTransposed
		}
	}
	in, out, m := c.inputs(), c.outputs(), c.memory
	rows, left := c.n, 0
	switch part {
	case convResult:
		c.pairs, c.width, left = in/2, out, c.n*in/2
		c.scatter.Run(c.c, c.channels())
	case convImages:
		c.pairs, c.width, left = out/2, in, c.n*out/2
		c.scatter.Run(c.k, max(1, arrangedAtOnce/(c.oh*c.ow*in)))
	case convWeights:
		c.pairs, c.width = (c.n+1)/2, out
		rows, left = in, c.pairs*in
	}
	c.form = blas.NewPanels[float32](c.pairs, c.width)
	m.right, m.left = grow(m.right, c.form.Len()), grow(m.left, left)
	c.pairRight.Run(c.pairs, max(1, arrangedAtOnce/c.width))
	c.pairUp.Run((c.n+1)/2, max(1, arrangedAtOnce/(in+out)))
	c.multiply.Run(rows, fullImageRows)
	if part == convWeights {
		c.collect.Run(c.c, c.channels())
	}
	c.end(&fullImage32)
}

// scatterTransposed writes the rows of the turned matrix [oh·ow·K, h·w·C] that belong to output
// channels [lo, hi).
func (c *pairedFullImageConv) scatterTransposed(_, lo, hi int) {
	taps, in := c.kh*c.kw, c.inputs()
	for k := lo; k < hi; k++ {
		weights := c.weights[k*c.c*taps:][:c.c*taps]
		for q := range c.oh * c.ow {
			row := c.memory.matrix[(q*c.k+k)*in:][:in]
			for p := range c.h * c.w {
				at := c.taps[p*c.oh*c.ow+q]
				for channel := range row[p*c.c : (p+1)*c.c] {
					row[p*c.c+channel] = weights[channel*taps+at]
				}
			}
		}
	}
}

// pairRightRows writes pairs [lo, hi) of rows of the right factor: of the matrix or, for the
// gradient of the weights, of the result's gradient.
func (c *pairedFullImageConv) pairRightRows(_, lo, hi int) {
	from := selection.If(c.part == convWeights, c.result, c.memory.matrix)
	for j := 0; j < c.width; j += c.form.Run(j) {
		at, stride := c.form.At(j)
		for i := lo; i < hi; i++ {
			pairRows(c.memory.right[at+i*stride:][:c.form.Run(j)], from, c.width, i, j)
		}
	}
}

// pairRows pairs, from column j on, row 2i of a matrix with the next, or with nothing if it
// is the last.
func pairRows(dst []uint32, from []float32, width, i, j int) {
	first := from[2*i*width+j:][:len(dst)]
	if (2*i+1)*width == len(from) {
		widen(dst, first)
		return
	}
	simd.PairRows(dst, first, from[(2*i+1)*width+j:][:len(dst)])
}

// pairUpRows writes the left factor's part of images 2·lo to 2·hi.
func (c *pairedFullImageConv) pairUpRows(_, lo, hi int) {
	in, out, left := c.inputs(), c.outputs(), c.memory.left
	first, end := 2*lo, min(2*hi, c.n)
	switch c.part {
	case convResult:
		simd.PairUp(left[first*in/2:end*in/2], c.images[first*in:end*in])
	case convImages:
		simd.PairUp(left[first*out/2:end*out/2], c.result[first*out:end*out])
	case convWeights:
		for i := lo; i < hi; i++ {
			pairRows(left[i*in:(i+1)*in], c.images, in, i, 0)
		}
	}
}

// multiplyRows computes rows [lo, hi) of the result of the product.
func (c *pairedFullImageConv) multiplyRows(_, lo, hi int) {
	in, out, m := c.inputs(), c.outputs(), c.memory
	switch c.part {
	case convResult:
		blas.MultiplyPairs(c.form, hi-lo, m.left[lo*in/2:], in/2, 1, m.right, false, c.result[lo*out:hi*out], out)
	case convImages:
		blas.MultiplyPairs(c.form, hi-lo, m.left[lo*out/2:], out/2, 1, m.right, false, c.images[lo*in:hi*in], in)
	case convWeights:
		left := m.left[min(lo, len(m.left)):] // a batch may have no images
		blas.MultiplyPairs(c.form, hi-lo, left, 1, in, m.right, false, m.matrix[lo*out:hi*out], out)
	}
}
