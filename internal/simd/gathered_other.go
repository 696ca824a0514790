//go:build !amd64 || noasm

package simd

func nearRowsVector(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32) {
	panic("simd: no vector form")
}

func projectRowsVector(dst, x, from, along []float32, cols []int32) {
	panic("simd: no vector form")
}

func nearTilesVector(dst []float32, found []uint16, x []float32, width int, rows *[4]int32, cols []int32, rowLimits *[4]float32, limits []float32, ahead []int32) {
	panic("simd: no vector form")
}

// Go has no way to ask for memory ahead.
func fetchRows(x *byte, stride, lines int, rows []int32) {}
