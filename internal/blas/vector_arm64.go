//go:build arm64 && !noasm

package blas

import "cne/internal/simd"

// kernelsOf returns the inner loops of an instruction set.
func kernelsOf(set simd.Set) *kernels {
	if set == simd.NEON {
		return &kernelsNEON
	}
	return &portable
}

var kernelsNEON = kernels{
	height: 12, panel: 8, lanes: 8, masked: false, doubles: doubleKernel{12, 4, doublesNEON},
	tile: tileNEON, transpose: transpose8, sum: sumNEON, spread: spreadNEON, sumStrip: sumStripNEON, addStrip: spreadStripNEON,
}
