//go:build amd64 && !noasm

package simd

func placeWords(order, words []uint64, choice []uint8, next []int) {
	placeWordsAMD64(order, words, choice, next)
}
