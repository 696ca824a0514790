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

// FetchRows asks the processor to bring the beginnings of rows of x, [n, d], into the
// caches near the core, and does not wait for them. It is a hint: where the processor
// cannot be asked, nothing happens.
func FetchRows[T Float](x []T, d int, rows []int32) {
	if len(x) > 0 {
		fetchRows((*byte)(unsafe.Pointer(unsafe.SliceData(x))), d*int(unsafe.Sizeof(x[0])), rows)
	}
}
