//go:build !amd64 || noasm

package blas

func pairVectors(Panels) bool { return false }

func multiplyPairs(Panels, int, []uint32, int, int, []uint32, bool, []float32, int) {
	panic("blas: no vector form")
}
