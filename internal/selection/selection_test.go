package selection

import (
	"math/rand/v2"
	"slices"
	"strconv"
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

func TestWhereAndCount(t *testing.T) {
	even := func(i int) bool { return i%2 == 0 }
	if got := Where(6, even); !slices.Equal(got, []int{0, 2, 4}) {
		t.Errorf("even numbers below 6: got %v", got)
	}
	if got := Where(0, even); got != nil {
		t.Errorf("even numbers below 0: got %v, want nil", got)
	}
	if got := Count(UpTo[int](5), even); got != 3 {
		t.Errorf("even numbers below 5: got %d, want 3", got)
	}
	if got := Pick([]string{"a", "b", "c"}, []int32{2, 0}); !slices.Equal(got, []string{"c", "a"}) {
		t.Errorf("rows 2 and 0: got %v", got)
	}
}

func TestLoops(t *testing.T) {
	if got := Map([]int{1, 2}, func(i int) string { return strconv.Itoa(2 * i) }); !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("Map: got %q", got)
	}
	if got := As[int32]([]float64{1.9, -1.9}); !slices.Equal(got, []int32{1, -1}) {
		t.Errorf("As: got %v", got)
	}
	counts := []int64{0, 2, 0, 3}
	if got := Sum(counts); got != 5 {
		t.Errorf("Sum: got %d", got)
	}
	if Accumulate(counts); !slices.Equal(counts, []int64{0, 2, 2, 5}) {
		t.Errorf("Accumulate: got %v", counts)
	}
	if Fill(counts[1:], 7); !slices.Equal(counts, []int64{0, 7, 7, 7}) {
		t.Errorf("Fill: got %v", counts)
	}
	Accumulate([]int(nil))
	if got := Set([]string{"a", "b", "a"}); len(got) != 2 || !got["a"] || got["c"] {
		t.Errorf("Set: got %v", got)
	}
}
