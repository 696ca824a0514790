package op

import (
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// im2col computes a convolution as matrix products: a row of the one matrix is the patch
// [kh, kw, C] of the image that the window sees at one position. The weights are brought
// into the same order first.
type im2col[T Float] struct {
	windows
	part                    convPart
	images, weights, result []T
	loop, arrange           parallel.Loop
	form                    blas.Panels
	memory                  *im2colMemory[T]
}

// im2colMemory is what all pieces of a convolution share.
type im2colMemory[T Float] struct {
	right   []T   // the weights as a right factor
	sums    [][]T // of the pieces: the weights' gradient [kh·kw·C, K]
	scratch parallel.Pool[im2colScratch[T]]
}

// An im2colScratch is the memory of one piece: some patches, and the gradient of
// the result at their positions as a right factor.
type im2colScratch[T Float] struct{ patches, result []T }

// All convolutions share the memory, since one runs at a time.
var (
	singleIm2col = parallel.Pool[im2colMemory[float32]]{}
	doubleIm2col = parallel.Pool[im2colMemory[float64]]{}
)

const (
	// im2colElements bounds how much of the matrix of patches there is at a time, so
	// that it stays in the second-level cache.
	im2colElements = 1 << 18
	// convPieces bounds the copies of the weights' gradient.
	convPieces = 8
	// arrangedAtOnce is from how many weights on another core is worth waking.
	arrangedAtOnce = 1 << 14
)

// size returns the number of values that a window sees.
func (g *windows) size() int { return g.c * g.kh * g.kw }

// plain reports whether the windows are single pixels, so that the matrix of patches is
// the images themselves.
func (g *windows) plain() bool { return g.kh == 1 && g.kw == 1 && g.stride == 1 && g.pad == 0 }

func (c *im2col[T]) run(memories *parallel.Pool[im2colMemory[T]], g windows, part convPart, images, weights, result []T) {
	c.memory = memories.Get()
	c.windows, c.part, c.images, c.weights, c.result = g, part, images, weights, result
	if c.loop.Body == nil {
		c.loop.Body, c.arrange.Body = c.piece, c.arrangeRows
	}
	elements := max(1, arrangedAtOnce/c.k)
	if part == convWeights {
		c.sumPieces(elements)
	} else {
		c.form = blas.NewPanels[T](c.size(), c.k)
		if part == convImages {
			c.form = blas.NewPanels[T](c.k, c.size())
		}
		c.memory.right = grow(c.memory.right, c.form.Len())
		c.arrange.Run(c.size(), elements)
		c.loop.Run(c.n, max(1, c.step()/(c.oh*c.ow)))
	}
	memories.Put(c.memory)
	c.images, c.weights, c.result, c.memory = nil, nil, nil, nil // for the garbage collector
}

// sumPieces computes the gradient of the weights: the pieces' copies, and from these so
// many elements of a patch at a time.
func (c *im2col[T]) sumPieces(elements int) {
	grain := max(1, (c.n+convPieces-1)/convPieces)
	c.memory.sums = grow(c.memory.sums, max(1, parallel.Pieces(c.n, grain)))
	for i := range c.memory.sums {
		c.memory.sums[i] = grow(c.memory.sums[i], c.size()*c.k)
	}
	clear(c.memory.sums[0])
	c.loop.Run(c.n, grain)
	c.arrange.Run(c.size(), elements)
}

// step returns how many patches there are at a time.
func (c *im2col[T]) step() int { return max(16, im2colElements/c.size()) }

// arrangeRows brings the weights of elements [lo, hi) of a patch into the form of
// a right factor or, if their gradient is computed, adds up its copies and brings
// that into the order of the weights.
func (c *im2col[T]) arrangeRows(_, lo, hi int) {
	for l := lo; l < hi; l++ {
		taps := c.kh * c.kw
		weights, next := c.weights[l%c.c*taps+l/c.c:], c.c*taps // of the output channels
		switch c.part {
		case convResult:
			for k := 0; k < c.k; k += c.form.Run(k) {
				at, stride := c.form.At(k)
				row := c.memory.right[at+l*stride:][:c.form.Run(k)]
				for i := range row {
					row[i] = weights[(k+i)*next]
				}
			}
		case convImages:
			at, stride := c.form.At(l)
			for k := range c.k {
				c.memory.right[at+k*stride] = weights[k*next]
			}
		case convWeights:
			row := c.memory.sums[0][l*c.k : (l+1)*c.k]
			for _, sum := range c.memory.sums[1:] {
				simd.Add(row, sum[l*c.k:(l+1)*c.k])
			}
			for k, v := range row {
				weights[k*next] = v
			}
		}
	}
}

// piece computes the share of some images.
func (c *im2col[T]) piece(piece, lo, hi int) {
	s := c.memory.scratch.Get()
	defer c.memory.scratch.Put(s)
	positions := c.oh * c.ow
	step := min((hi-lo)*positions, c.step())
	if !c.plain() {
		s.patches = grow(s.patches, step*c.size())
	}
	if c.part == convImages && !c.plain() {
		clear(c.images[lo*c.h*c.w*c.c : hi*c.h*c.w*c.c])
	}
	keep := T(0)
	for first := lo * positions; first < hi*positions; first += step {
		count := min(step, hi*positions-first)
		patches, result := s.patches, c.result[first*c.k:(first+count)*c.k]
		if c.plain() {
			patches = c.images[first*c.c : (first+count)*c.c]
		}
		switch c.part {
		case convResult:
			c.gather(patches, first, count)
			blas.MultiplyPanels(c.form, count, patches, c.size(), 1, c.memory.right, 0, result, c.k)
		case convImages:
			blas.MultiplyPanels(c.form, count, result, c.k, 1, c.memory.right, 0, patches, c.size())
			c.col2im(patches, first, count)
		case convWeights:
			c.gather(patches, first, count)
			form := blas.NewPanels[T](count, c.k)
			s.result = grow(s.result, form.Len())
			for j := 0; j < c.k; j += form.Run(j) {
				at, stride := form.At(j)
				for i := range count {
					copy(s.result[at+i*stride:][:form.Run(j)], result[i*c.k+j:])
				}
			}
			blas.MultiplyPanels(form, c.size(), patches, 1, c.size(), s.result, keep, c.memory.sums[piece], c.k)
			keep = 1
		}
	}
}

// gather writes the patches of some positions: im2col proper.
func (c *im2col[T]) gather(patches []T, first, count int) {
	if c.plain() {
		return
	}
	c.overlap(first, count, c.c, c.size(), func(at, from, n int) {
		if from < 0 {
			clear(patches[at : at+n])
		} else {
			copy(patches[at:at+n], c.images[from:])
		}
	})
}

// col2im adds the patches of some positions to their images.
func (c *im2col[T]) col2im(patches []T, first, count int) {
	if c.plain() {
		return
	}
	c.overlap(first, count, c.c, c.size(), func(at, from, n int) {
		if from >= 0 {
			simd.Add(c.images[from:from+n], patches[at:at+n])
		}
	})
}

// overlap calls body for each stretch of n elements of the patches of some positions,
// with its place in the patches, whose rows are apart, and in the images, which have some
// channels; from is −1 where it is padding.
func (g *windows) overlap(first, count, channels, apart int, body func(at, from, n int)) {
	for p := range count {
		image, y, x := (first+p)/(g.oh*g.ow), (first+p)/g.ow%g.oh*g.stride-g.pad, (first+p)%g.ow*g.stride-g.pad
		left := min(g.kw, max(0, -x))
		right := max(left, min(g.kw, g.w-x))
		at := p * apart
		for r := range g.kh {
			if y+r < 0 || y+r >= g.h || left == right {
				body(at, -1, g.kw*channels)
				at += g.kw * channels
				continue
			}
			if left > 0 {
				body(at, -1, left*channels)
			}
			body(at+left*channels, ((image*g.h+y+r)*g.w+x+left)*channels, (right-left)*channels)
			if right < g.kw {
				body(at+right*channels, -1, (g.kw-right)*channels)
			}
			at += g.kw * channels
		}
	}
}
