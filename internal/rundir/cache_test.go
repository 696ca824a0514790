package rundir

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
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
		if err := dir.Cache("").Save("key", h); err != nil {
			t.Fatal(err)
		}
		found := &cne.Neighborhood{Input: h.Input}
		x, err := dir.Cache("").Load(t.Context(), "key", found, false, k, nil)
		if ok := x.Found; err != nil || ok != (bad == 3) || (found.Nearest != nil) != ok {
			t.Errorf("a cache with the neighbour %d: %t, %v", bad, ok, err)
		}
	}
}

// Of runs that begin at once one finds what all need, and the others take it from the
// cache that they share; one that gives up leaves the search to the next.
func TestSharedCache(t *testing.T) {
	const n, k, runs = 20, 2, 6
	folder := filepath.Join(t.TempDir(), "a", "cache")
	input := data.NewMatrix(n, 3)
	var begun, gaveUp atomic.Int32
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			h := &cne.Neighborhood{Input: input}
			cache := At(t.TempDir()).Cache(folder)
			x, err := cache.Load(t.Context(), "key", h, false, k, func() {})
			defer x.Release()
			switch {
			case err != nil:
				t.Error(err)
			case x.Found:
				if h.Nearest.Index[3] != 7 {
					t.Errorf("the neighbours %v", h.Nearest.Index)
				}
			case gaveUp.CompareAndSwap(0, 1): // the first ends with an error
			default:
				begun.Add(1)
				h.Nearest = &neighbors.Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}
				h.Nearest.Index[3] = 7
				if err := cache.Save("key", h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 {
		t.Errorf("%d runs have found the neighbours, not one", begun.Load())
	}

	// Another key is another file, and whoever waits heeds its context.
	cache := At(t.TempDir()).Cache(folder)
	first, err := cache.Load(t.Context(), "other", &cne.Neighborhood{Input: input}, false, k, nil)
	if err != nil || first.Found {
		t.Fatalf("%+v, %v", first, err)
	}
	defer first.Release()
	ctx, cancel := context.WithCancel(t.Context())
	if x, err := cache.Load(ctx, "other", &cne.Neighborhood{Input: input}, false, k, cancel); x.Found || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", x, err)
	}
	// A run that is only looked at waits for nothing and makes nothing.
	view := View(t.TempDir()).Cache(filepath.Join(folder, "none"))
	if x, err := view.Load(t.Context(), "key", &cne.Neighborhood{Input: input}, false, k, nil); x.Found || err != nil {
		t.Errorf("%+v, %v", x, err)
	}
	if missing := missingFolders(filepath.Join(folder, "none")); len(missing) != 1 {
		t.Errorf("%v are missing", missing)
	}
}
