//go:build arm64 && !noasm

package blas

import "cne/internal/simd"

// kernelsOf returns the inner loops of an instruction set.
func kernelsOf(set simd.Set) *kernels {
	switch set {
	case simd.NEON:
		return &kernelsNEON
	}
	return &portable
}

var kernelsNEON = kernels{
	height: 12, panel: 8, lanes: 8, masked: false, doubles: doubleKernel{12, 4, doublesNEON},
	transpose: transpose8, sumStrip: sumStripNEON, addStrip: spreadStripNEON,
	tiles: [][]tileFunc{
		{tile1x8NEON},
		{tile2x8NEON},
		{tile3x8NEON},
		{tile4x8NEON},
		{tile5x8NEON},
		{tile6x8NEON},
		{tile7x8NEON},
		{tile8x8NEON},
		{tile9x8NEON},
		{tile10x8NEON},
		{tile11x8NEON},
		{tile12x8NEON},
	},
	sums:    []sumFunc{sum1NEON, sum2NEON, sum3NEON, sum4NEON, sum5NEON, sum6NEON, sum7NEON, sum8NEON},
	spreads: []spreadFunc{spread1NEON, spread2NEON, spread3NEON, spread4NEON, spread5NEON, spread6NEON, spread7NEON, spread8NEON},
}
