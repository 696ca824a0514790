//go:build amd64 && !noasm

package blas

import "cne/internal/simd"

// ones and zeros: a mask of n columns begins n words before the zeros.
var ones = func() (m [64]uint32) {
	for i := range 32 {
		m[i] = 0xffffffff
	}
	return m
}()

// mask returns a mask whose first n words, n ≤ 32, are set.
func mask(n int) *uint32 { return &ones[32-n] }

// A tileFunc is the inner loop for a tile of a certain size, an aheadFunc one
// that prefetches meanwhile, a copyFunc packs rows of a certain width: see
// stubs_amd64.go.
type (
	tileFunc  func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32, floor float32, mask *uint32)
	aheadFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32, floor float32, mask *uint32, next *uintptr, lines int)
	copyFunc  func(dst *float32, dstStride int, src *float32, srcStride int, numbers *int32, k int, mask *uint32)
)

// kernels are the inner loops of an instruction set.
type kernels struct {
	height int          // the rows of the highest tile; lower ones are there too
	panel  int          // the columns of the widest tile
	tiles  [][]tileFunc // by rows − 1 and width class
	ahead  aheadFunc    // the largest tile
	copy   []copyFunc   // by width class
}

// classOf returns the width class of the narrowest tile for some columns:
// those of class c have 8<<c columns.
func classOf(columns int) int {
	switch {
	case columns > 16:
		return 2
	case columns > 8:
		return 1
	}
	return 0
}

// kernelsInUse returns the inner loops in use.
func kernelsInUse() *kernels {
	if current == simd.AVX512 {
		return &kernels512
	}
	return &kernels2
}

var kernels512 = kernels{height: 12, panel: 32, ahead: aheadAVX512,
	copy: []copyFunc{copyRows8AVX512, copyRows16AVX512, copyRows32AVX512},
	tiles: [][]tileFunc{
		{tile1x8AVX512, tile1x16AVX512, tile1x32AVX512},
		{tile2x8AVX512, tile2x16AVX512, tile2x32AVX512},
		{tile3x8AVX512, tile3x16AVX512, tile3x32AVX512},
		{tile4x8AVX512, tile4x16AVX512, tile4x32AVX512},
		{tile5x8AVX512, tile5x16AVX512, tile5x32AVX512},
		{tile6x8AVX512, tile6x16AVX512, tile6x32AVX512},
		{tile7x8AVX512, tile7x16AVX512, tile7x32AVX512},
		{tile8x8AVX512, tile8x16AVX512, tile8x32AVX512},
		{tile9x8AVX512, tile9x16AVX512, tile9x32AVX512},
		{tile10x8AVX512, tile10x16AVX512, tile10x32AVX512},
		{tile11x8AVX512, tile11x16AVX512, tile11x32AVX512},
		{tile12x8AVX512, tile12x16AVX512, tile12x32AVX512},
	}}

var kernels2 = kernels{height: 6, panel: 16, ahead: aheadAVX2,
	copy: []copyFunc{copyRows8AVX2, copyRows16AVX2},
	tiles: [][]tileFunc{
		{tile1x8AVX2, tile1x16AVX2},
		{tile2x8AVX2, tile2x16AVX2},
		{tile3x8AVX2, tile3x16AVX2},
		{tile4x8AVX2, tile4x16AVX2},
		{tile5x8AVX2, tile5x16AVX2},
		{tile6x8AVX2, tile6x16AVX2},
	}}
