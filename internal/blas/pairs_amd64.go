//go:build amd64 && !noasm

package blas

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
