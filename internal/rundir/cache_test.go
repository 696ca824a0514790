package rundir

import (
	"math"
	"testing"

	"cne"
	"cne/data"
	"cne/data/neighbors"
)

// A cache whose neighbours are not among the points is as good as none.
func TestCacheOutOfRange(t *testing.T) {
	const n, k = 20, 2
	dir := At(t.TempDir())
	for _, bad := range []int32{3, -1, n, math.MaxInt32, math.MinInt32} { // 3 is a point
		h := &cne.Neighborhood{Input: data.NewMatrix(n, 3), Nearest: &neighbors.Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}}
		h.Nearest.Index[17] = bad
		if err := dir.SaveCache("key", h); err != nil {
			t.Fatal(err)
		}
		found := &cne.Neighborhood{Input: h.Input}
		if ok := dir.LoadCache("key", found, false, k); ok != (bad == 3) || (found.Nearest != nil) != ok {
			t.Errorf("a cache with the neighbour %d: %t", bad, ok)
		}
	}
}
