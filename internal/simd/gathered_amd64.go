//go:build amd64 && !noasm

package simd

import "cne/internal/isa"

func nearRowsVector(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32) {
	if current == isa.AVX512 {
		nearRowsAVX512(dst, found, x, row, cols, limit, limits)
	} else {
		nearRowsAVX2(dst, found, x, row, cols, limit, limits)
	}
}

func projectRowsVector(dst, x, from, along []float32, cols []int32) {
	if current == isa.AVX512 {
		projectRowsAVX512(dst, x, from, along, cols)
	} else {
		projectRowsAVX2(dst, x, from, along, cols)
	}
}
