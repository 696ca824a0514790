//go:build arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64 || amd64.v3

package blas

// addSingle and addDouble are addRows for the packed rows of a tile.
func addSingle(sums *[4][4]float32, k int, a *float32, rowStride, stepStride int, b *float32) {
	addRows(sums, k, a, rowStride, stepStride, b, 32)
}

func addDouble(sums *[4][4]float64, k int, a, b *float64) { addRows(sums, k, a, 8, 32, b, 32) }
