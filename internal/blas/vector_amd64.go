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
	ahead:     aheadAVX512,
	copy:      []copyFunc{copyRows8AVX512, copyRows16AVX512, copyRows32AVX512},
	transpose: transpose8, sumStrip: sumStripAVX512, addStrip: spreadStripAVX512,
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
	},
	sums: []sumFunc{sum1AVX512, sum2AVX512, sum3AVX512, sum4AVX512, sum5AVX512, sum6AVX512, sum7AVX512, sum8AVX512},
	spreads: []spreadFunc{spread1AVX512, spread2AVX512, spread3AVX512, spread4AVX512, spread5AVX512, spread6AVX512,
		spread7AVX512, spread8AVX512},
	pairs: [][2]pairsFunc{
		{pairs1x16AVX512, pairs1x32AVX512},
		{pairs2x16AVX512, pairs2x32AVX512},
		{pairs3x16AVX512, pairs3x32AVX512},
		{pairs4x16AVX512, pairs4x32AVX512},
		{pairs5x16AVX512, pairs5x32AVX512},
		{pairs6x16AVX512, pairs6x32AVX512},
		{pairs7x16AVX512, pairs7x32AVX512},
		{pairs8x16AVX512, pairs8x32AVX512},
		{pairs9x16AVX512, pairs9x32AVX512},
		{pairs10x16AVX512, pairs10x32AVX512},
		{pairs11x16AVX512, pairs11x32AVX512},
		{pairs12x16AVX512, pairs12x32AVX512},
	},
}

var kernelsAVX2 = kernels{
	height: 6, panel: 16, lanes: 8, masked: true, doubles: doubleKernel{6, 8, doublesAVX2},
	ahead:     aheadAVX2,
	copy:      []copyFunc{copyRows8AVX2, copyRows16AVX2},
	transpose: transpose8, sumStrip: sumStripAVX2, addStrip: spreadStripAVX2,
	tiles: [][]tileFunc{
		{tile1x8AVX2, tile1x16AVX2},
		{tile2x8AVX2, tile2x16AVX2},
		{tile3x8AVX2, tile3x16AVX2},
		{tile4x8AVX2, tile4x16AVX2},
		{tile5x8AVX2, tile5x16AVX2},
		{tile6x8AVX2, tile6x16AVX2},
	},
	sums:    []sumFunc{sum1AVX2, sum2AVX2, sum3AVX2, sum4AVX2, sum5AVX2, sum6AVX2, sum7AVX2, sum8AVX2},
	spreads: []spreadFunc{spread1AVX2, spread2AVX2, spread3AVX2, spread4AVX2, spread5AVX2, spread6AVX2, spread7AVX2, spread8AVX2},
}
