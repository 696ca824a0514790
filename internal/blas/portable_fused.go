//go:build arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64

package blas

// addSingle sets a tile to the product of k columns of a and packed rows of b.
func addSingle(sums *[4][4]float32, k int, a *float32, rowStride, stepStride int, b *float32) {
	for i := range sums {
		addRow(&sums[i], k, at(a, i*rowStride), stepStride, b)
	}
}
