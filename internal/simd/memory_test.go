package simd

import (
	"slices"
	"testing"

	"cne/internal/rng"
)

// ScatterWords writes what a plain loop writes, and no more.
func TestScatterWords(t *testing.T) {
	s := rng.New(1, rng.Sample)
	for _, n := range []int{0, 1, 5, 1000} {
		for _, buckets := range []int{1, 7, 256} {
			words, choice := make([]uint64, n), make([]uint8, n)
			var next, portable [256]int
			for i := range words {
				words[i], choice[i] = s.Uint64(), uint8(s.IntN(buckets))
				next[choice[i]]++
			}
			at := 1
			for c := range next {
				at, next[c] = at+next[c], at
			}
			portable = next
			const untouched = 42
			got, want := make([]uint64, n+2), make([]uint64, n+2)
			for i := range got {
				got[i], want[i] = untouched, untouched
			}
			ScatterWords(got, words, choice, &next)
			for i, c := range choice {
				want[portable[c]] = words[i]
				portable[c]++
			}
			if !slices.Equal(got, want) || next != portable || got[0] != untouched || got[n+1] != untouched {
				t.Errorf("%d words in %d buckets are placed otherwise", n, buckets)
			}
		}
	}
}

// HoldsWord finds each element of a list whatever bits of set it has, and nothing else.
func TestHoldsWord(t *testing.T) {
	forms(t, func(t *testing.T) {
		for n := range 23 {
			list := make([]uint64, n)
			for i := range list {
				list[i] = uint64(i)<<40 | 8 | uint64(i)&3
			}
			for i := range n + 1 {
				word := uint64(i)<<40 | 8 | 3
				if got, want := HoldsWord(list, word, 3), i < n && vectors() && current != NEON; got != want {
					t.Errorf("%d words: word %d is held: %v", n, i, got)
				}
				if HoldsWord(list, word^16, 3) || i < n && i&3 != 3 && HoldsWord(list, list[i], 3) {
					t.Errorf("%d words: holds what is not word %d", n, i)
				}
			}
		}
	})
}
