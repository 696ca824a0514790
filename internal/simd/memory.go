package simd

import "unsafe"

// PlaceWords writes each word to order where next says that the next of its choice
// goes: order[next[c]] = words[i] for c = choice[i], and next[c] grows by one. As many
// words must have room there, and there is a next for each choice. It is fast where the
// choices take turns: the lines of the cache that are written to soon are asked for.
func PlaceWords[T ~uint64](order, words []T, choice []uint8, next *[256]int) {
	if len(choice) == 0 {
		return
	}
	placeWords(uint64s(order), uint64s(words[:len(choice)]), choice, next[:])
}

func uint64s[T ~uint64](x []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func placeWordsPortable(order, words []uint64, choice []uint8, next []int) {
	words = words[:len(choice)]
	for i, c := range choice {
		at := next[c]
		next[c] = at + 1
		order[at] = words[i]
	}
}
