//go:build amd64 && !noasm

package simd

func placeWords(order, words []uint64, choice []uint8, next []int) {
	placeWordsAMD64(order, words, choice, next)
}

func fetchRows(table *byte, stride int, rows []int32) { fetchRowsAMD64(table, stride, rows) }
