//go:build amd64 && !noasm

package blas

import "cne/internal/isa"

// vectorLanes returns how many columns of a tile one vector holds: a tile is
// one or two vectors wide, and so is a packed panel of B.
func vectorLanes() int {
	if current == isa.AVX512 {
		return 16
	}
	return 8
}

// tileRows returns the height of a tile.
func tileRows() int {
	if current == isa.AVX512 {
		return 12
	}
	return 6
}

// ones and zeros: a mask of n columns begins n words before the zeros.
var ones = func() (m [64]uint32) {
	for i := range 32 {
		m[i] = 0xffffffff
	}
	return m
}()

// mask returns a mask whose first n words, n ≤ 32, are set.
func mask(n int) *uint32 { return &ones[32-n] }

// A tileFunc is the inner loop for a tile of a certain size: see stubs_amd64.go.
type tileFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, mask *uint32)

// tiles512 and tiles2 hold the inner loops by rows − 1 and vectors − 1.
var (
	tiles512 = [12][2]tileFunc{
		{tile1x1AVX512, tile1x2AVX512},
		{tile2x1AVX512, tile2x2AVX512},
		{tile3x1AVX512, tile3x2AVX512},
		{tile4x1AVX512, tile4x2AVX512},
		{tile5x1AVX512, tile5x2AVX512},
		{tile6x1AVX512, tile6x2AVX512},
		{tile7x1AVX512, tile7x2AVX512},
		{tile8x1AVX512, tile8x2AVX512},
		{tile9x1AVX512, tile9x2AVX512},
		{tile10x1AVX512, tile10x2AVX512},
		{tile11x1AVX512, tile11x2AVX512},
		{tile12x1AVX512, tile12x2AVX512},
	}
	tiles2 = [6][2]tileFunc{
		{tile1x1AVX2, tile1x2AVX2},
		{tile2x1AVX2, tile2x2AVX2},
		{tile3x1AVX2, tile3x2AVX2},
		{tile4x1AVX2, tile4x2AVX2},
		{tile5x1AVX2, tile5x2AVX2},
		{tile6x1AVX2, tile6x2AVX2},
	}
)

// tile returns the inner loop for a tile of the given number of rows and
// vectors.
func tile(rows, vectors int) tileFunc {
	if current == isa.AVX512 {
		return tiles512[rows-1][vectors-1]
	}
	return tiles2[rows-1][vectors-1]
}
