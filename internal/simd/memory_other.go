//go:build !amd64 || noasm

package simd

func placeWords(order, words []uint64, choice []uint8, next []int) {
	placeWordsPortable(order, words, choice, next)
}
