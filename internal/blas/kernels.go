package blas

import "cne/internal/simd"

// current is the instruction set in use: the best, except in tests.
var current = simd.Best()

// inUse returns the inner loops in use.
func inUse() *kernels { return kernelsOf(current) }

// ones and zeros: a mask of n columns begins n words before the zeros.
var ones = func() (m [64]uint32) {
	for i := range 32 {
		m[i] = 0xffffffff
	}
	return m
}()

// mask returns a mask whose first n words, n ≤ 32, are set.
func mask(n int) *uint32 { return &ones[32-n] }

// The inner loops: for a tile of a certain size, the same with prefetching, packing rows of a
// certain width, transposing 8 rows, loops over the elements of a sparse row, and for a tile
// in pairs. See the stubs of assembly.
type (
	tileFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32,
		floor float32, mask *uint32, number int)
	aheadFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32,
		floor float32, mask *uint32, next *uintptr, lines int)
	copyFunc      func(dst *float32, dstStride int, src *float32, srcStride int, numbers *int32, k int, mask *uint32, number int)
	transposeFunc func(dst *float32, dstStride int, src *float32, srcStride, k int)
	sumFunc       func(n int, col *uint16, val *float32, w *float32, stride int, bias *float32, floor float32, y *float32,
		mask *uint32, nextCol *uint16, nextVal *float32, number int)
	spreadFunc func(n int, col *uint16, val *float32, grad *float32, mask *uint32, dw *float32, stride int, nextCol *uint16,
		nextVal *float32, number int)
	stripFunc func(n int, col *int32, val *float32, strip *float64, y *float64)
	pairsFunc func(k int, a *uint32, rowStride, stepStride int, b *uint32, c *float32, ldc, add, number int)
)

// kernels are the inner loops of an instruction set. They all compute the same bits.
type kernels struct {
	height  int      // the rows of the highest tile; lower ones are there too
	panel   int      // the columns of the widest tile
	tile    tileFunc // by tileNumber
	masked  bool     // they use masks; others take all columns
	doubles doubleKernel

	// What is nil is done in Go.
	ahead              aheadFunc // the largest tile
	copy               copyFunc  // by copyNumber
	transpose          transposeFunc
	lanes              int        // of a vector of a sparse row's outputs
	sum                sumFunc    // by vectors − 1
	spread             spreadFunc // by vectors − 1
	sumStrip, addStrip stripFunc
	pairs              pairsFunc // by tileNumber
}

// copyNumber returns the number of the kernel for rows of a width class: the widest is 0.
func (k *kernels) copyNumber(class int) int { return classOf(k.panel) - class }

// tileNumber returns the number of the kernel for tiles of a width class.
func (k *kernels) tileNumber(rows, class int) int { return k.copyNumber(class)*k.height + rows - 1 }

// classOf returns the width class of the narrowest tile for some columns:
// tiles of class c have 8<<c columns.
func classOf(columns int) int {
	switch {
	case columns > 16:
		return 2
	case columns > 8:
		return 1
	}
	return 0
}
