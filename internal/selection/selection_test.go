package selection

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSmallest(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	for _, n := range []int{1, 2, 3, 10, 62, 1000} {
		for range 50 {
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = uint64(r.IntN(5))<<32 | uint64(i)
			}
			if r.IntN(3) == 0 {
				slices.Sort(keys)
			}
			sorted := slices.Sorted(slices.Values(keys))
			k := 1 + r.IntN(n)
			last := Smallest(keys, k)
			slices.Sort(keys[:k])
			if last != sorted[k-1] || !slices.Equal(keys[:k], sorted[:k]) {
				t.Fatalf("the %d smallest of %d keys are wrong", k, n)
			}
			slices.Sort(keys)
			if !slices.Equal(keys, sorted) {
				t.Fatal("keys were lost")
			}
		}
	}
}
