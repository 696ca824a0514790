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

func nearTilesVector(dst []float32, found []uint16, x []float32, width int, rows *[4]int32, cols []int32, rowLimits *[4]float32, limits []float32, ahead []int32) {
	if current == isa.AVX512 {
		nearTilesAVX512(dst, found, x, width, &rows[0], cols, &rowLimits[0], limits, ahead)
	} else {
		nearTilesAVX2(dst, found, x, width, &rows[0], cols, &rowLimits[0], limits, ahead)
	}
}
