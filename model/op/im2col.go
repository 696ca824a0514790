package op

import (
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// im2col computes a convolution as matrix products: a row of the left matrix is the patch
// [kh, kw, C] of the image under the window at one position. The weights are first
// reordered to match.
type im2col[T Float] struct {
	windows
	part                    convPart
	images, weights, result []T
	loop, arrange           parallel.Loop
	form                    blas.Panels
	memory                  *im2colMemory[T]
}

// im2colMemory is the memory that all pieces of a convolution share.
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
	// im2colElements bounds the elements of the matrix of patches that exist at a time, so
	// they stay in the second-level cache.
	im2colElements = 1 << 18
	// convPieces bounds the copies of the weights' gradient.
	convPieces = 8
	// arrangedAtOnce is the number of weights that are worth another core.
	arrangedAtOnce = 1 << 14
)

// size returns the number of values in a window.
func (g *windows) size() int { return g.c * g.kh * g.kw }

// plain reports whether the windows are single pixels, so the matrix of patches is
// the images themselves.
func (g *windows) plain() bool { return g.kh == 1 && g.kw == 1 && g.stride == 1 && g.pad == 0 }

func (c *im2col[T]) run(memories *parallel.Pool[im2colMemory[T]], g windows, part convPart, images, weights, result []T) {
	c.begin(memories, g, part, images, weights, result)
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
	c.end(memories)
}

func (c *im2col[T]) begin(memories *parallel.Pool[im2colMemory[T]], g windows, part convPart, images, weights, result []T) {
	c.memory = memories.Get()
	c.windows, c.part, c.images, c.weights, c.result = g, part, images, weights, result
}

func (c *im2col[T]) end(memories *parallel.Pool[im2colMemory[T]]) {
	memories.Put(c.memory)
	c.images, c.weights, c.result, c.memory = nil, nil, nil, nil // for the garbage collector
}

// sumPieces adds up the pieces' copies to the gradient of the weights, for the given
// number of elements of a patch at a time.
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

// step returns the number of patches that exist at a time.
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
	if !c.plain() {
		gatherPatches(&c.windows, patches, c.images, c.c, c.size(), first, count)
	}
}

// gatherPatches is gather for images of channels elements per pixel; apart is the stride
// of patches.
func gatherPatches[E any](g *windows, patches, images []E, channels, apart, first, count int) {
	g.overlap(first, count, channels, apart, func(at, from, n int) {
		if from < 0 {
			clear(patches[at : at+n])
		} else {
			copy(patches[at:at+n], images[from:])
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

// overlap calls body for each run of n elements of the patches of some positions, with
// its offset in the patches, whose stride is apart, and in the images; from is −1 for
// padding.
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

// pairedIm2col is im2col with products of bfloat16. They add up pairs: of elements of a
// patch for the result, of output channels for the gradient of the images, and of
// positions for the gradient of the weights.
type pairedIm2col struct {
	im2col[float32] // its memory holds what is float32
	pairs           *pairsMemory
}

// pairsMemory is the memory that all pieces of a convolution share.
type pairsMemory struct {
	right   []uint32 // the weights as a right factor
	scratch parallel.Pool[pairsScratch]
}

// A pairsScratch is the memory of one piece.
type pairsScratch struct{ pixels, patches, result []uint32 }

// All convolutions share the memory, since one runs at a time.
var pairsMemories = parallel.Pool[pairsMemory]{}

// usesPairs reports whether a part is computed in bfloat16.
func (g *windows) usesPairs(part convPart) bool {
	if part == convImages {
		return g.size()%16 == 0 && g.k%2 == 0
	}
	return g.k%16 == 0
}

// gapsBetween returns the stride of patches in float32, in elements. It is a multiple of
// the vector length, because they are converted to pairs in vectors.
func (g *windows) gapsBetween() int { return (g.size() + 15) / 16 * 16 }

func (c *pairedIm2col) run(g windows, part convPart, images, weights, result []float32) {
	c.begin(&singleIm2col, g, part, images, weights, result)
	c.pairs = pairsMemories.Get()
	if c.loop.Body == nil {
		c.loop.Body, c.arrange.Body = c.piece, c.arrangePairs
		if part == convWeights {
			c.arrange.Body = c.arrangeRows
		}
	}
	elements := max(1, arrangedAtOnce/c.k)
	if part == convWeights {
		c.sumPieces(elements)
	} else {
		items := (c.size() + 1) / 2
		c.form = blas.NewPanels[float32](items, c.k)
		if part == convImages {
			items = c.size()
			c.form = blas.NewPanels[float32](c.k/2, items)
		}
		c.pairs.right = grow(c.pairs.right, c.form.Len())
		c.arrange.Run(items, elements)
		c.loop.Run(c.n, max(1, c.step()/(c.oh*c.ow)))
	}
	pairsMemories.Put(c.pairs)
	c.pairs = nil
	c.end(&singleIm2col)
}

// arrangePairs brings weights into the form of a right factor: the weights of pairs [lo, hi)
// of elements of a patch or, for the gradient of the images, of elements [lo, hi).
func (c *pairedIm2col) arrangePairs(_, lo, hi int) {
	taps := c.kh * c.kw
	weight := func(element, k int) float32 { return c.weights[(k*c.c+element%c.c)*taps+element/c.c] }
	for l := lo; l < hi; l++ {
		if c.part == convImages {
			at, stride := c.form.At(l)
			for k := 0; k < c.k; k += 2 {
				c.pairs.right[at+k/2*stride] = simd.Pair(weight(l, k), weight(l, k+1))
			}
			continue
		}
		for k := range c.k {
			second := float32(0)
			if 2*l+1 < c.size() {
				second = weight(2*l+1, k)
			}
			at, stride := c.form.At(k)
			c.pairs.right[at+l*stride] = simd.Pair(weight(2*l, k), second)
		}
	}
}

// piece computes the share of some images.
func (c *pairedIm2col) piece(piece, lo, hi int) {
	s, q := c.memory.scratch.Get(), c.pairs.scratch.Get()
	defer c.memory.scratch.Put(s)
	defer c.pairs.scratch.Put(q)
	positions, pixels := c.oh*c.ow, c.images[lo*c.h*c.w*c.c:hi*c.h*c.w*c.c]
	step := min((hi-lo)*positions, c.step())
	if c.part == convResult && c.c%2 == 0 {
		q.pixels = grow(q.pixels, len(pixels)/2)
		simd.PairUp(q.pixels, pixels)
	}
	if c.part == convImages && !c.plain() {
		clear(pixels)
	}
	for first := lo * positions; first < hi*positions; first += step {
		count := min(step, hi*positions-first)
		result := c.result[first*c.k : (first+count)*c.k]
		switch c.part {
		case convResult:
			patches, apart := c.gatherPairs(s, q, lo, first, count)
			blas.MultiplyPairs(c.form, count, patches, apart, 1, c.pairs.right, false, result, c.k)
		case convImages:
			q.result = grow(q.result, len(result)/2)
			simd.PairUp(q.result, result)
			var patches []float32
			if c.plain() {
				patches = c.images[first*c.c : (first+count)*c.c]
			} else {
				s.patches = grow(s.patches, count*c.size())
				patches = s.patches
			}
			blas.MultiplyPairs(c.form, count, q.result, c.k/2, 1, c.pairs.right, false, patches, c.size())
			c.col2im(patches, first, count)
		case convWeights:
			apart := c.pairPositions(s, q, result, first, count)
			form := blas.NewPanels[float32]((count+1)/2, c.k)
			blas.MultiplyPairs(form, c.size(), q.patches, 1, apart, q.result, first > lo*positions, c.memory.sums[piece], c.k)
		}
	}
}

// gatherPairs returns the patches of some positions in pairs of elements, and their
// stride. If the channels are pairs, q.pixels holds the images starting with number lo.
func (c *pairedIm2col) gatherPairs(s *im2colScratch[float32], q *pairsScratch, lo, first, count int) (patches []uint32, apart int) {
	if c.c%2 > 0 {
		c.gatherApart(s, first, count)
		q.patches = grow(q.patches, count*c.gapsBetween()/2)
		simd.PairUp(q.patches, s.patches)
		return q.patches, c.gapsBetween() / 2
	}
	channels, size := c.c/2, c.size()/2
	first -= lo * c.oh * c.ow // in q.pixels
	if c.plain() {
		return q.pixels[first*channels:], channels
	}
	q.patches = grow(q.patches, count*size)
	gatherPatches(&c.windows, q.patches, q.pixels, channels, size, first, count)
	return q.patches, size
}

// gatherApart writes the patches of some positions, in rows of whole vectors.
func (c *pairedIm2col) gatherApart(s *im2colScratch[float32], first, count int) {
	size, apart := c.size(), c.gapsBetween()
	s.patches = grow(s.patches, count*apart)
	if apart > size {
		for p := range count {
			clear(s.patches[p*apart+size : (p+1)*apart])
		}
	}
	gatherPatches(&c.windows, s.patches, c.images, c.c, apart, first, count)
}

// pairPositions writes the patches of some positions and the gradient of the result there
// in pairs of positions, and returns the stride of the patches. The gradient is a right
// factor. The last of an odd number of positions is paired with nothing.
func (c *pairedIm2col) pairPositions(s *im2colScratch[float32], q *pairsScratch, result []float32, first, count int) (apart int) {
	even := (count + 1) / 2 * 2
	var patches []float32
	if c.plain() {
		patches, apart = c.images[first*c.c:], c.c
	} else {
		c.gatherApart(s, first, count)
		patches, apart = s.patches, c.gapsBetween()
	}
	q.patches = grow(q.patches, even/2*apart)
	for i := 0; i+1 < count; i += 2 {
		simd.PairRows(q.patches[i/2*apart:][:apart], patches[i*apart:][:apart], patches[(i+1)*apart:][:apart])
	}
	form := blas.NewPanels[float32](even/2, c.k)
	q.result = grow(q.result, form.Len())
	for j := 0; j < c.k; j += form.Run(j) {
		at, stride := form.At(j)
		run := form.Run(j)
		for i := 0; i+1 < count; i += 2 {
			simd.PairRows(q.result[at+i/2*stride:][:run], result[i*c.k+j:][:run], result[(i+1)*c.k+j:][:run])
		}
		if even > count {
			widen(q.result[at+count/2*stride:][:run], result[(count-1)*c.k+j:][:run])
		}
	}
	if even > count {
		widen(q.patches[count/2*apart:][:apart], patches[(count-1)*apart:][:apart])
	}
	return apart
}

// widen pairs each number with 0.
func widen(dst []uint32, x []float32) {
	for i, v := range x {
		dst[i] = simd.Pair(v, 0)
	}
}
