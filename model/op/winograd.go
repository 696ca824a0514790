package op

import (
	"math"

	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// winograd computes a 3×3 convolution with stride 1 and padding 1 by Winograd's minimal
// filtering F(4×4, 3×3): see package simd. The gradient with respect to the images is
// also such a convolution: of the result's gradient with the weights, rotated by 180° and
// with their channels exchanged. The gradient with respect to the weights is the sum over
// the tiles of products of transformed images and transformed gradients, transformed
// back.
//
// In bfloat16 the transforms compute in float32 and write pairs: of channels for the
// convolution, and of tiles for the gradient of the weights.
//
// Blocks of tiles are transformed, multiplied and transformed back while they are in the
// cache. If there are few tiles with many channels, all cores work on one block, in three
// steps.
type winograd struct {
	// The convolution's images [n, h, w, in] and result [n, h, w, out].
	n, h, w, in, out  int
	images, result    []float32
	weights           []float32 // [K, C, 3, 3], or their gradient
	turned            bool      // out is C, not K
	part              convPart
	paired            bool // products are of bfloat16
	tilesY, tilesX    int
	seesAt, writesAt  []simd.Inside // for each position of a tile: its pixels, its results
	form              blas.Panels   // of the transformed weights
	memory            *winogradMemory
	sums              int // number of copies of the weights' gradient
	grain             int // tiles of a block
	transform, blocks parallel.Loop
	scatter, multiply parallel.Loop
	gather, finish    parallel.Loop
}

// winogradMemory is the memory that all pieces of a convolution share.
type winogradMemory struct {
	u     []float32     // transformed weights, [36] of [in, out], or sums of their gradients
	pairs []uint32      // transformed weights in pairs of input channels, [36] of [in/2, out]
	block winogradBlock // shared by all cores; their own blocks are small
}

// A winogradBlock is a run of tiles with their transforms.
type winogradBlock struct {
	first, tiles int
	v            []float32 // of the images, [36] of [tiles, in]
	m            []float32 // of the result, [36] of [tiles, out], or of its gradient, [36] right factors
	// These are v in pairs of channels or, for the gradient of the weights, v and m in pairs
	// of tiles.
	pairedV, pairedM []uint32
	taps             [9 * 16]float32
	weights          [simd.WinogradPoints * 16]float32 // transformed, of 16 output channels
}

// All convolutions share the memory, since one runs at a time.
var (
	winogradMemories = parallel.Pool[winogradMemory]{}
	winogradBlocks   = parallel.Pool[winogradBlock]{}
)

const (
	// winogradElements bounds the elements of a block's transforms, so they stay in the
	// second-level cache. A block has at least fewestTiles tiles.
	winogradElements = 3 << 17
	fewestTiles      = 24
	// productRows divides the number of tiles of a block. Products are computed this many
	// rows at a time.
	productRows = 12
	// sharedTiles is the number of tiles in a block that all cores share.
	sharedTiles = 192
	// Each core has its own block only if there are at least manyBlocks blocks and at most
	// fewWeights weights.
	manyBlocks, fewWeights = 8, 128 * 128
	// padding keeps the values of different points of a tile from competing for the same few
	// sets of the cache.
	padding = 16
)

// usesWinograd reports whether Winograd's method is used. It saves no multiplications for
// images of up to 2×2 pixels.
func (g *windows) usesWinograd() bool {
	return g.h*g.w > 4 && g.kh == 3 && g.kw == 3 && g.stride == 1 && g.pad == 1 && g.c%16 == 0 && g.k%16 == 0
}

func (c *winograd) run(g windows, precision Precision, part convPart, images, weights, result []float32) {
	c.part, c.paired = part, precision == BFloat16
	c.prepare(g.h, g.w)
	c.n, c.weights = g.n, weights
	c.images, c.result, c.in, c.out, c.turned = images, result, g.c, g.k, false
	if part == convImages {
		c.images, c.result, c.in, c.out, c.turned = result, images, g.k, g.c, true
	}
	c.memory = winogradMemories.Get()
	var shared bool
	c.grain, shared = c.grainOf(c.tiles())
	if part == convWeights {
		c.sumWeights(shared)
	} else {
		c.convolve(shared)
	}
	winogradMemories.Put(c.memory)
	c.images, c.result, c.weights, c.memory = nil, nil, nil, nil // for the garbage collector
}

// grainOf returns the number of tiles in a block, and whether all cores work on one
// block.
func (c *winograd) grainOf(tiles int) (grain int, shared bool) {
	grain = max(fewestTiles, winogradElements/simd.WinogradPoints/(c.in+c.out)/productRows*productRows)
	if c.in*c.out > fewWeights || tiles < manyBlocks*grain {
		return sharedTiles, true
	}
	return grain, false
}

// prepare finds which elements of the tiles are inside the images, and sets the
// bodies of the loops: a convolution always computes the same part, in the same precision.
func (c *winograd) prepare(h, w int) {
	if c.transform.Body == nil {
		c.transform.Body, c.finish.Body = c.transformWeights, c.finishWeights
		c.blocks.Body, c.scatter.Body, c.multiply.Body, c.gather.Body = c.convolveBlock, c.scatterShared, c.multiplyShared, c.gatherShared
		if c.part == convWeights {
			c.blocks.Body, c.scatter.Body, c.multiply.Body = c.sumBlocks, c.scatterBothShared, c.sumShared
		}
	}
	if c.h == h && c.w == w {
		return
	}
	c.h, c.w, c.tilesY, c.tilesX = h, w, (h+3)/4, (w+3)/4
	c.seesAt, c.writesAt = make([]simd.Inside, c.tilesY*c.tilesX), make([]simd.Inside, c.tilesY*c.tilesX)
	for t := range c.seesAt {
		y, x := t/c.tilesX*4, t%c.tilesX*4
		for i := range 36 {
			if r, q := y+i/6-1, x+i%6-1; r >= 0 && r < h && q >= 0 && q < w {
				c.seesAt[t][i] = math.MaxUint32
			}
		}
		for i := range 16 {
			if y+i/4 < h && x+i%4 < w {
				c.writesAt[t][i] = math.MaxUint32
			}
		}
	}
}

func (c *winograd) tiles() int { return c.n * c.tilesY * c.tilesX }

// convolve computes the result.
func (c *winograd) convolve(shared bool) {
	size := simd.WinogradPoints * c.weightStride()
	if c.paired {
		c.form = blas.NewPairPanels(c.in/2, c.out)
		c.memory.pairs = grow(c.memory.pairs, size)
		c.transform.Run(c.in, 2*itemsPerPiece(18*c.out)) // whole pairs
	} else {
		c.form = blas.NewPanels[float32](c.in, c.out)
		c.memory.u = grow(c.memory.u, size)
		c.transform.Run(c.in, itemsPerPiece(9*c.out))
	}
	if !shared {
		c.blocks.Run(c.tiles(), c.grain)
		return
	}
	c.eachShared(func() {
		c.scatter.Run(c.memory.block.tiles, fewestTiles/4)
		c.multiply.Run(simd.WinogradPoints, 1)
		c.gather.Run(c.memory.block.tiles, fewestTiles/4)
	})
}

// eachShared calls body for each block that all cores share.
func (c *winograd) eachShared(body func()) {
	for first := 0; first < c.tiles(); first += c.grain {
		c.setBlock(&c.memory.block, first, min(c.tiles(), first+c.grain))
		body()
	}
}

// weightStride returns the distance between the transformed weights of two
// points.
func (c *winograd) weightStride() int {
	if c.paired && !c.pairsTiles() {
		return c.in/2*c.out + padding
	}
	return c.in*c.out + padding
}

// transformWeights transforms the weights of some input channels.
func (c *winograd) transformWeights(_, lo, hi int) {
	b := winogradBlocks.Get()
	defer winogradBlocks.Put(b)
	// For some input channels, the weights of 16 output channels are in few lines of the
	// cache; the weights of all output channels would be in too many.
	for j := 0; j < c.out; j += 16 {
		at, stride := c.form.At(j)
		for i := lo; i < hi; i++ {
			c.collect(b, i, j)
			taps := simd.Grid{Row: 48, Pixel: 16}
			switch {
			case c.paired:
				simd.WinogradWeightsHalf(c.memory.pairs, simd.WinogradGrid(at+i/2*stride, c.weightStride()), b.taps[:], taps, 16, simd.Half(i%2))
			case stride >= 16:
				simd.WinogradWeights(c.memory.u, simd.WinogradGrid(at+i*stride, c.weightStride()), b.taps[:], taps, 16)
			default: // panels of fewer columns
				simd.WinogradWeights(b.weights[:], simd.WinogradGrid(0, 16), b.taps[:], taps, 16)
				for first, run := 0, 0; first < 16; first += run {
					run = c.form.Run(j + first)
					at, stride := c.form.At(j + first)
					for p := range simd.WinogradPoints {
						copy(c.memory.u[p*c.weightStride()+at+i*stride:][:run], b.weights[16*p+first:])
					}
				}
			}
		}
	}
}

// collect writes the weights between an input channel and 16 output channels to the taps.
func (c *winograd) collect(b *winogradBlock, in, out int) {
	for lane := range 16 {
		taps := c.tapsOf(in, out+lane)
		if c.turned {
			for tap := range taps {
				b.taps[16*tap+lane] = taps[8-tap]
			}
		} else {
			for tap, w := range taps {
				b.taps[16*tap+lane] = w
			}
		}
	}
}

// tapsOf returns the nine weights between an input and an output channel.
func (c *winograd) tapsOf(in, out int) *[9]float32 {
	if c.turned {
		return (*[9]float32)(c.weights[(in*c.out+out)*9:])
	}
	return (*[9]float32)(c.weights[(out*c.in+in)*9:])
}

// setBlock allocates memory for the transforms of tiles [first, end).
func (c *winograd) setBlock(b *winogradBlock, first, end int) {
	b.first, b.tiles = first, end-first
	ofImages, ofResult := simd.WinogradPoints*c.imageStride(b), simd.WinogradPoints*c.resultStride(b)
	if c.paired {
		b.pairedV = grow(b.pairedV, ofImages)
	} else {
		b.v = grow(b.v, ofImages)
	}
	if c.pairsTiles() {
		b.pairedM = grow(b.pairedM, ofResult)
	} else {
		b.m = grow(b.m, ofResult)
	}
}

// pairsTiles reports whether the transforms are pairs of tiles, as for the gradient of the
// weights in bfloat16.
func (c *winograd) pairsTiles() bool { return c.paired && c.part == convWeights }

// row returns the distance between the transforms of two tiles of some channels. Rows
// a large power of two apart would evict each other from the cache.
func row(channels int) int {
	if channels%128 == 0 {
		return channels + padding
	}
	return channels
}

// imageStride and resultStride return the distances between the transforms of a
// block of two points.
func (c *winograd) imageStride(b *winogradBlock) int {
	switch {
	case !c.paired:
		return b.tiles*row(c.in) + padding
	case c.pairsTiles():
		return (b.tiles+1)/2*row(c.in) + padding
	}
	return b.tiles*row(c.in/2) + padding
}

func (c *winograd) resultStride(b *winogradBlock) int {
	if c.pairsTiles() {
		return (b.tiles+1)/2*row(c.out) + padding
	}
	return b.tiles*row(c.out) + padding
}

// address returns the index of a tile in its image, and that of its first result in images
// with the given channels.
func (c *winograd) address(tile, channels int) (index, first int) {
	perImage := c.tilesY * c.tilesX
	index = tile % perImage
	return index, ((tile/perImage*c.h+index/c.tilesX*4)*c.w + index%c.tilesX*4) * channels
}

// scatterImages transforms the pixels of tiles [lo, hi) of a block.
func (c *winograd) scatterImages(b *winogradBlock, lo, hi int) {
	for t := lo; t < hi; t++ {
		index, at := c.address(b.first+t, c.in)
		from := simd.Grid{At: at - (c.w+1)*c.in, Row: c.w * c.in, Pixel: c.in}
		switch {
		case !c.paired:
			simd.WinogradImage(b.v, simd.WinogradGrid(t*row(c.in), c.imageStride(b)), c.images, from, c.in, &c.seesAt[index])
		case c.pairsTiles():
			simd.WinogradImageHalf(b.pairedV, simd.WinogradGrid(t/2*row(c.in), c.imageStride(b)), c.images, from, c.in,
				&c.seesAt[index], simd.Half(t%2))
		default:
			simd.WinogradImagePairs(b.pairedV, simd.WinogradGrid(t*row(c.in/2), c.imageStride(b)), c.images, from, c.in, &c.seesAt[index])
		}
	}
}

// multiplyPoints computes the products of points [lo, hi) of the tiles.
func (c *winograd) multiplyPoints(b *winogradBlock, lo, hi int) {
	for p := lo; p < hi; p++ {
		if c.paired {
			blas.MultiplyPairs(c.form, b.tiles, b.pairedV[p*c.imageStride(b):], row(c.in/2), 1, c.memory.pairs[p*c.weightStride():],
				false, b.m[p*c.resultStride(b):], row(c.out))
			continue
		}
		blas.MultiplyPanels(c.form, b.tiles, b.v[p*c.imageStride(b):], row(c.in), 1, c.memory.u[p*c.weightStride():],
			0, b.m[p*c.resultStride(b):], row(c.out))
	}
}

// gatherResults transforms tiles [lo, hi) of a block back.
func (c *winograd) gatherResults(b *winogradBlock, lo, hi int) {
	for t := lo; t < hi; t++ {
		index, at := c.address(b.first+t, c.out)
		simd.WinogradResult(c.result, simd.Grid{At: at, Row: c.w * c.out, Pixel: c.out},
			b.m, simd.WinogradGrid(t*row(c.out), c.resultStride(b)), c.out, &c.writesAt[index])
	}
}

func (c *winograd) convolveBlock(_, lo, hi int) {
	b := winogradBlocks.Get()
	defer winogradBlocks.Put(b)
	c.setBlock(b, lo, hi)
	c.scatterImages(b, 0, b.tiles)
	c.multiplyPoints(b, 0, simd.WinogradPoints)
	c.gatherResults(b, 0, b.tiles)
}

func (c *winograd) scatterShared(_, lo, hi int)  { c.scatterImages(&c.memory.block, lo, hi) }
func (c *winograd) multiplyShared(_, lo, hi int) { c.multiplyPoints(&c.memory.block, lo, hi) }
func (c *winograd) gatherShared(_, lo, hi int)   { c.gatherResults(&c.memory.block, lo, hi) }

// sumWeights computes the gradient of the weights.
func (c *winograd) sumWeights(shared bool) {
	size := simd.WinogradPoints * c.weightStride()
	perSum := c.tiles()
	if !shared {
		perSum = (perSum + convPieces*c.grain - 1) / (convPieces * c.grain) * c.grain
	}
	c.sums = max(1, parallel.Pieces(c.tiles(), perSum))
	c.memory.u = grow(c.memory.u, c.sums*size)
	if shared {
		clear(c.memory.u)
		c.eachShared(func() {
			c.scatter.Run(c.memory.block.tiles, fewestTiles/4)
			c.multiply.Run(simd.WinogradPoints, 1)
		})
	} else {
		c.blocks.Run(c.tiles(), perSum)
	}
	c.finish.Run(c.in, itemsPerPiece(9*c.out))
}

// sumBlocks adds up products of tiles [lo, hi) in a copy of the gradient.
func (c *winograd) sumBlocks(piece, lo, hi int) {
	b := winogradBlocks.Get()
	defer winogradBlocks.Put(b)
	size := simd.WinogradPoints * c.weightStride()
	sum := c.memory.u[piece*size : (piece+1)*size]
	clear(sum)
	for first := lo; first < hi; first += c.grain {
		c.setBlock(b, first, min(hi, first+c.grain))
		c.scatterBoth(b, 0, b.tiles)
		c.sumPoints(b, sum, 0, simd.WinogradPoints)
	}
}

// gradients returns the form of a block's transformed gradients, a right factor.
func (c *winograd) gradients(b *winogradBlock) blas.Panels {
	if c.paired {
		return blas.NewPairPanels((b.tiles+1)/2, c.out)
	}
	return blas.NewPanels[float32](b.tiles, c.out)
}

// scatterBoth transforms pixels and gradients of tiles [lo, hi) of a block. Their pairs
// are complete, except for the block's last.
func (c *winograd) scatterBoth(b *winogradBlock, lo, hi int) {
	c.scatterImages(b, lo, hi)
	form := c.gradients(b)
	for t := lo; t < hi; t++ {
		index, first := c.address(b.first+t, c.out)
		for j := 0; j < c.out; j += form.Run(j) {
			at, stride := form.At(j)
			from := simd.Grid{At: first + j, Row: c.w * c.out, Pixel: c.out}
			if c.paired {
				simd.WinogradGradientHalf(b.pairedM, simd.WinogradGrid(at+t/2*stride, c.resultStride(b)), c.result, from, form.Run(j),
					&c.writesAt[index], simd.Half(t%2))
			} else {
				simd.WinogradGradient(b.m, simd.WinogradGrid(at+t*stride, c.resultStride(b)), c.result, from, form.Run(j), &c.writesAt[index])
			}
		}
	}
}

// sumPoints adds the products of points [lo, hi) of the tiles to a gradient.
func (c *winograd) sumPoints(b *winogradBlock, sum []float32, lo, hi int) {
	form := c.gradients(b)
	for p := lo; p < hi; p++ {
		v, m, to := p*c.imageStride(b), p*c.resultStride(b), sum[p*c.weightStride():]
		if c.paired {
			blas.MultiplyPairs(form, c.in, b.pairedV[v:], 1, row(c.in), b.pairedM[m:], true, to, c.out)
		} else {
			blas.MultiplyPanels(form, c.in, b.v[v:], 1, row(c.in), b.m[m:], 1, to, c.out)
		}
	}
}

func (c *winograd) scatterBothShared(_, lo, hi int) { c.scatterBoth(&c.memory.block, lo, hi) }
func (c *winograd) sumShared(_, lo, hi int)         { c.sumPoints(&c.memory.block, c.memory.u, lo, hi) }

// finishWeights adds up the copies of the gradient of some input channels, and
// transforms it back.
func (c *winograd) finishWeights(_, lo, hi int) {
	b := winogradBlocks.Get()
	defer winogradBlocks.Put(b)
	size, u := simd.WinogradPoints*c.weightStride(), c.memory.u
	for p := range simd.WinogradPoints {
		first, end := p*c.weightStride()+lo*c.out, p*c.weightStride()+hi*c.out
		for s := 1; s < c.sums; s++ {
			simd.Add(u[first:end], u[s*size+first:s*size+end])
		}
	}
	for j := 0; j < c.out; j += 16 {
		for i := lo; i < hi; i++ {
			simd.WinogradWeightsGradient(b.taps[:], simd.Grid{Row: 48, Pixel: 16}, u, simd.WinogradGrid(i*c.out+j, c.weightStride()), 16)
			for lane := range 16 {
				taps := c.tapsOf(i, j+lane)
				for tap := range taps {
					taps[tap] = b.taps[16*tap+lane]
				}
			}
		}
	}
}
