package op

import (
	"cne/internal/blas"
	"cne/internal/simd"
)

// Winograd's method in bfloat16: the transforms compute in float32 and write what they
// compute in pairs, of channels for the convolution, and of tiles for the gradient of the
// weights.

// setPairs makes room for the transforms of the tiles of a block.
func (c *winograd) setPairs(b *winogradBlock) {
	b.pairedV = grow(b.pairedV, simd.WinogradPoints*c.imageStride(b))
	if c.part == convWeights {
		b.pairedM = grow(b.pairedM, simd.WinogradPoints*c.resultStride(b))
	} else {
		b.m = grow(b.m, simd.WinogradPoints*c.resultStride(b))
	}
}

// transformPairs transforms the weights of some pairs of input channels.
func (c *winograd) transformPairs(_, lo, hi int) {
	b := winogradBlocks.Get()
	defer winogradBlocks.Put(b)
	for j := 0; j < c.out; j += 16 {
		at, stride := c.form.At(j)
		for i := 2 * lo; i < 2*hi; i++ {
			c.collect(b, i, j)
			simd.WinogradWeightsHalf(c.memory.pairs, simd.WinogradGrid(at+i/2*stride, c.weightStride()),
				b.taps[:], simd.Grid{Row: 48, Pixel: 16}, 16, simd.Half(i%2))
		}
	}
}

// scatterPairs transforms pixels and gradients of tiles [lo, hi) of a block, whose pairs
// are whole but for the last one of the block.
func (c *winograd) scatterPairs(b *winogradBlock, lo, hi int) {
	form := blas.NewPanels[float32]((b.tiles+1)/2, c.out)
	for t := lo; t < hi; t++ {
		half := simd.Half(t % 2)
		place, from := c.pixels(b.first + t)
		simd.WinogradImageHalf(b.pairedV, simd.WinogradGrid(t/2*row(c.in), c.imageStride(b)), c.images, from, c.in, &c.seesAt[place], half)
		_, first := c.place(b.first+t, c.out)
		for j := 0; j < c.out; j += form.Run(j) {
			at, stride := form.At(j)
			simd.WinogradGradientHalf(b.pairedM, simd.WinogradGrid(at+t/2*stride, c.resultStride(b)),
				c.result, simd.Grid{At: first + j, Row: c.w * c.out, Pixel: c.out}, form.Run(j), &c.writesAt[place], half)
		}
	}
}

// sumPairs adds the products of points [lo, hi) of the tiles to a gradient.
func (c *winograd) sumPairs(b *winogradBlock, sum []float32, lo, hi int) {
	form := blas.NewPanels[float32]((b.tiles+1)/2, c.out)
	for p := lo; p < hi; p++ {
		blas.MultiplyPairs(form, c.in, b.pairedV[p*c.imageStride(b):], 1, row(c.in), b.pairedM[p*c.resultStride(b):],
			true, sum[p*c.weightStride():], c.out)
	}
}
