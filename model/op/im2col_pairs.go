package op

import (
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// pairedIm2col is im2col with products of bfloat16. What they add up are pairs of
// elements of a patch, of output channels for the gradient of the images, and of
// positions for that of the weights.
type pairedIm2col struct {
	im2col[float32] // of which the memory holds what is float32
	pairs           *pairsMemory
}

// pairsMemory is what all pieces of a convolution share.
type pairsMemory struct {
	right   []uint32 // the weights as a right factor
	scratch parallel.Pool[pairsScratch]
}

// A pairsScratch is the memory of one piece.
type pairsScratch struct{ pixels, patches, result []uint32 }

// All convolutions share the memory, since one runs at a time.
var pairsMemories = parallel.Pool[pairsMemory]{}

// pairs reports whether a part is computed in bfloat16.
func (g *windows) pairs(part convPart) bool {
	if part == convImages {
		return g.size()%16 == 0 && g.k%2 == 0
	}
	return g.k%16 == 0
}

// apart returns how far patches in float32 are from each other, which are converted to
// pairs in vectors.
func (g *windows) apart() int { return (g.size() + 15) / 16 * 16 }

func (c *pairedIm2col) run(g windows, part convPart, images, weights, result []float32) {
	c.memory, c.pairs = singleIm2col.Get(), pairsMemories.Get()
	c.windows, c.part, c.images, c.weights, c.result = g, part, images, weights, result
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
	singleIm2col.Put(c.memory)
	c.images, c.weights, c.result, c.memory, c.pairs = nil, nil, nil, nil, nil // for the garbage collector
}

// arrangePairs brings the weights into the form of a right factor: those of pairs [lo, hi)
// of elements of a patch or, for the gradient of the images, those of elements [lo, hi).
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

// gatherPairs returns the patches of some positions in pairs of elements, and how far they
// are from each other. q.pixels are those of the images from lo on, if their channels are
// pairs.
func (c *pairedIm2col) gatherPairs(s *im2colScratch[float32], q *pairsScratch, lo, first, count int) (patches []uint32, apart int) {
	if c.c%2 > 0 {
		c.gatherApart(s, first, count)
		q.patches = grow(q.patches, count*c.apart()/2)
		simd.PairUp(q.patches, s.patches)
		return q.patches, c.apart() / 2
	}
	channels, size := c.c/2, c.size()/2
	start := lo * c.h * c.w * channels
	if c.plain() {
		return q.pixels[first*channels-start:], channels
	}
	q.patches = grow(q.patches, count*size)
	c.overlap(first, count, channels, size, func(at, from, n int) {
		if from < 0 {
			clear(q.patches[at : at+n])
		} else {
			copy(q.patches[at:at+n], q.pixels[from-start:])
		}
	})
	return q.patches, size
}

// gatherApart writes the patches of some positions, in rows of whole vectors.
func (c *pairedIm2col) gatherApart(s *im2colScratch[float32], first, count int) {
	size, apart := c.size(), c.apart()
	s.patches = grow(s.patches, count*apart)
	if apart > size {
		for p := range count {
			clear(s.patches[p*apart+size : (p+1)*apart])
		}
	}
	c.overlap(first, count, c.c, apart, func(at, from, n int) {
		if from < 0 {
			clear(s.patches[at : at+n])
		} else {
			copy(s.patches[at:at+n], c.images[from:])
		}
	})
}

// pairPositions writes the patches of some positions and the gradient of the result there
// in pairs of positions, the latter as a right factor, and returns how far the former are
// apart. The last of an odd number is paired with nothing.
func (c *pairedIm2col) pairPositions(s *im2colScratch[float32], q *pairsScratch, result []float32, first, count int) (apart int) {
	even := (count + 1) / 2 * 2
	var patches []float32
	if c.plain() {
		patches, apart = c.images[first*c.c:], c.c
	} else {
		c.gatherApart(s, first, count)
		patches, apart = s.patches, c.apart()
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
			alone(q.result[at+count/2*stride:][:run], result[(count-1)*c.k+j:][:run])
		}
	}
	if even > count {
		alone(q.patches[count/2*apart:][:apart], patches[(count-1)*apart:][:apart])
	}
	return apart
}

// alone pairs each number with 0.
func alone(dst []uint32, x []float32) {
	for i, v := range x {
		dst[i] = simd.Pair(v, 0)
	}
}
