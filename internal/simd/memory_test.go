package simd

import (
	"slices"
	"strconv"
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

// InsertWord does what sorting does, and changes nothing where the word is held.
func TestInsertWord(t *testing.T) {
	forms(t, func(t *testing.T) {
		for n := range 270 {
			s := rng.New(uint64(n), rng.Sample)
			for range 30 {
				list := make([]uint64, n+1)
				for i := range list {
					list[i] = uint64(s.IntN(4*n+4))<<40 | uint64(s.IntN(4))
				}
				slices.Sort(list)
				list[n] = 1<<63 - 1
				word := uint64(s.IntN(4*n+4))<<40 | 3
				held := slices.ContainsFunc(list, func(e uint64) bool { return e|3 == word })
				want := list
				if !held {
					want = append(slices.Clone(list[:n]), word)
					slices.Sort(want)
				}
				room := append(slices.Clone(list), 42)
				if got := InsertWord(room[:n+1], word, 3); got == held || !slices.Equal(room[:n+1], want) || room[n+1] != 42 {
					t.Fatalf("%x in %x: %v, %x", word, list, got, room)
				}
			}
		}
	})
}

// BenchmarkInsertWord inserts words at random places of lists of each length.
func BenchmarkInsertWord(b *testing.B) {
	for _, n := range []int{16, 30, 100, 500, 2000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, list, shares := rng.New(1, rng.Sample), make([]uint64, n), make([]float64, 1<<14)
			for i := range shares {
				shares[i] = s.Float64()
			}
			for i := range b.N {
				if i%(2*n) == 0 {
					for e := range list {
						list[e] = uint64(e+1) * (1 << 61 / uint64(n))
					}
				}
				word := uint64(shares[i%len(shares)]*float64(list[n-1])) &^ 3
				InsertWord(list, word|3, 3)
			}
		})
	}
}
