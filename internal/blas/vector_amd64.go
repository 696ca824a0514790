//go:build amd64 && !noasm

package blas

import (
	"math"
	"unsafe"

	"cne/internal/simd"
)

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

// A pairsFunc is the inner loop of a product in pairs for a tile of a certain size.
type pairsFunc func(k int, a *uint32, rowStride, stepStride int, b *uint32, c *float32, ldc, add int)

// pairsTiles has the tiles by rows − 1 and columns / 32.
var pairsTiles = [...][2]pairsFunc{
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
}

// pairVectors reports whether there are inner loops for right factors of a form.
func pairVectors(p Panels) bool {
	return BFloat16() && p.width == kernels512.panel
}

func multiplyPairs(p Panels, m int, a []uint32, rowStride, stepStride int, b []uint32, add bool, c []float32, ldc int) {
	adds := 0
	if add {
		adds = 1
	}
	for j := 0; j < p.n; j += p.width {
		width := min(p.width, p.n-j)
		for i := 0; i < m; i += len(pairsTiles) {
			rows := min(len(pairsTiles), m-i)
			pairsTiles[rows-1][width/32](p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, adds)
		}
	}
}

func sumStripVector(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	sum := sumStripAVX2
	if current == simd.AVX512 {
		sum = sumStripAVX512
	}
	sum(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
}

func spreadStripVector(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	spread := spreadStripAVX2
	if current == simd.AVX512 {
		spread = spreadStripAVX512
	}
	spread(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
}

func panelWidth() int { return kernelsInUse().panel }

func multiplyPanels(p Panels, m int, a []float32, rowStride, stepStride int, b []float32, beta float32, c []float32, ldc int) {
	kernels := kernelsInUse()
	floor := float32(math.Inf(-1))
	for j := 0; j < p.n; j += p.width {
		width := min(p.width, p.n-j)
		class, columns := classOf(width), mask(width)
		for i := 0; i < m; i += kernels.height {
			rows := min(kernels.height, m-i)
			kernels.tiles[rows-1][class](p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, 1, beta, nil, floor, columns)
		}
	}
}
