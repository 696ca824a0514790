//go:build amd64 && !noasm

package blas

import "cne/internal/simd"

// kernelsOf returns the inner loops of an instruction set.
func kernelsOf(set simd.Set) *kernels {
	switch set {
	case simd.AVX512:
		return &kernelsAVX512
	case simd.AVX2:
		return &kernelsAVX2
	}
	return &portable
}

var kernelsAVX512 = kernels{
	height: 12, panel: 32, lanes: 16, masked: true, doubles: doubleKernel{12, 16, doublesAVX512},
	tile: tileAVX512, ahead: aheadAVX512, copy: copyRowsAVX512, transpose: transpose8, pairs: pairsAVX512, amx: tilesAMX,
	sum: sumAVX512, spread: spreadAVX512, sumStrip: sumStripAVX512, addStrip: spreadStripAVX512,
}

var kernelsAVX2 = kernels{
	height: 6, panel: 16, lanes: 8, masked: true, doubles: doubleKernel{6, 8, doublesAVX2},
	tile: tileAVX2, ahead: aheadAVX2, copy: copyRowsAVX2, transpose: transpose8, whole: wholeAVX2,
	sum: sumAVX2, spread: spreadAVX2, sumStrip: sumStripAVX2, addStrip: spreadStripAVX2,
}
