package op

import (
	"cne/internal/blas"
	"cne/internal/parallel"
)

// fullImageConv computes a convolution whose windows all cover the whole image, such as
// 3×3 on the 2×2 pixels at the end of a ResNet18. There the windows cover mostly padding,
// and patches would be larger than the images. Instead, the convolution is a dense layer
// from an image, a row of h·w·C numbers, to its result, a row of oh·ow·K numbers. The
// layer's matrix [h·w·C, oh·ow·K] holds, for each pixel and position, the window's
// weight by which the pixel contributes to the position.
type fullImageConv[T Float] struct {
	windows
	images, weights, result []T
	taps                    []int // for each pixel and position, the window's element that joins them
	matrix                  []T   // [h·w·C, oh·ow·K] or its gradient
	scatter, collect        parallel.Loop
}

// All convolutions share the memory of the matrix, since one runs at a time.
var (
	fullImage32 = parallel.Pool[[]float32]{}
	fullImage64 = parallel.Pool[[]float64]{}
)

// coversImage reports whether every window covers the whole image and padding around it.
func (g *windows) coversImage() bool {
	return !g.plain() && g.h+g.pad <= g.kh && g.w+g.pad <= g.kw && (g.oh-1)*g.stride <= g.pad && (g.ow-1)*g.stride <= g.pad
}

// inputs and outputs return the numbers of an image and of its result.
func (g *windows) inputs() int  { return g.h * g.w * g.c }
func (g *windows) outputs() int { return g.oh * g.ow * g.k }

func (c *fullImageConv[T]) run(memories *parallel.Pool[[]T], g windows, part convPart, images, weights, result []T) {
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
	in, out, memory := g.inputs(), g.outputs(), memories.Get()
	*memory = grow(*memory, in*out)
	c.windows, c.images, c.weights, c.result, c.matrix = g, images, weights, result, *memory
	switch part {
	case convResult:
		c.scatter.Run(c.c, c.channels())
		blas.Gemm(false, false, c.n, out, in, 1, images, in, c.matrix, out, 0, result, out)
	case convImages:
		c.scatter.Run(c.c, c.channels())
		blas.Gemm(false, true, c.n, in, out, 1, result, out, c.matrix, out, 0, images, in)
	case convWeights:
		blas.Gemm(true, false, in, out, c.n, 1, images, in, result, out, 0, c.matrix, out)
		c.collect.Run(c.c, c.channels())
	}
	memories.Put(memory)
	c.images, c.weights, c.result, c.matrix = nil, nil, nil, nil // for the garbage collector
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
			row := c.matrix[(p*c.c+channel)*out:][:out]
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
			row := c.matrix[(p*c.c+channel)*out:][:out]
			for q := range c.oh * c.ow {
				at := c.taps[p*c.oh*c.ow+q]
				for k, v := range row[q*c.k : (q+1)*c.k] {
					weights[k*c.c*taps+at] += v
				}
			}
		}
	}
}
