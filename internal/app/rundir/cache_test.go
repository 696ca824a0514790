package rundir

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/device"
	"cne/train"
)

// cacheAt returns the cache in a shared folder, or the cache of a run ("").
func cacheAt(dir *Dir, folder string) *Cache {
	return dir.Cache(slog.New(slog.DiscardHandler), configs.Cache{Keep: true, Folder: folder})
}

// A cache whose neighbours are not among the points is as good as none.
func TestCacheOutOfRange(t *testing.T) {
	const n, k = 20, 2
	dir := NewDir(t.TempDir())
	for _, bad := range []int32{3, -1, n, math.MaxInt32, math.MinInt32} { // 3 is a point
		h := &cne.Neighborhood{Scaled: data.NewMatrix(n, 3)}
		_ = os.Remove(dir.Path(CacheFile))
		cache := cacheAt(dir, "")
		if found, err := cache.Load(t.Context(), h, new(cne.Options), k); found || err != nil {
			t.Fatal(found, err)
		}
		h.Nearest = &neighbors.Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}
		h.Nearest.Index[17] = bad
		must(t, cache.Save(h))
		again := &cne.Neighborhood{Scaled: h.Scaled}
		ok, err := cacheAt(dir, "").Load(t.Context(), again, new(cne.Options), k)
		if err != nil || ok != (bad == 3) || (again.Nearest != nil) != ok {
			t.Errorf("a cache with the neighbour %d: %t, %v", bad, ok, err)
		}
	}
}

// Exact and approximate neighbours have different keys. Which ones an automatic search finds
// depends on the device, and a resumed run takes those that it has.
func TestCacheOnAnotherDevice(t *testing.T) {
	const n, k, d = 200_000, 3, 9
	points := &data.Matrix{N: n, D: d}
	accelerator := device.New("cuda:0", struct{ device.Backend }{})
	options := func(on *device.Device, search neighbors.SearchMethod) *cne.Options {
		return &cne.Options{Device: on, Search: search, Components: new(0)}
	}
	exact := keyOf("points", points, options(nil, neighbors.Exact), k)
	approximate := keyOf("points", points, options(nil, neighbors.Approximate), k)
	if exact == approximate {
		t.Fatalf("exact and approximate neighbours have the key %s", exact)
	}
	for _, c := range []struct {
		on     *device.Device
		search neighbors.SearchMethod
		want   string
	}{
		{nil, neighbors.Auto, approximate}, {accelerator, neighbors.Auto, exact}, {accelerator, neighbors.Approximate, approximate}, {accelerator, neighbors.Exact, exact},
	} {
		if got := keyOf("points", points, options(c.on, c.search), k); got != c.want {
			t.Errorf("%v, on the CPU %t: the key is %s, want %s", c.search, c.on == nil, got, c.want)
		}
	}
	keys := map[string]data.Metric{}
	for _, metric := range []data.Metric{"", data.Manhattan, data.Hamming} {
		key := keyOf("points", points, &cne.Options{GraphMetric: metric}, k)
		if other, same := keys[key]; same {
			t.Errorf("neighbours of the metrics %q and %q have one key", metric, other)
		}
		keys[key] = metric
	}
	points.X = make([]float32, n*d)
	h := &cne.Neighborhood{Scaled: points}
	for _, shared := range []string{"", t.TempDir()} {
		for from, to := range map[*device.Device]*device.Device{nil: accelerator, accelerator: nil} {
			dir := NewDir(t.TempDir())
			cache := cacheAt(dir, shared)
			if found, err := cache.Load(t.Context(), h, options(from, neighbors.Auto), k); found || err != nil {
				t.Fatal(found, err)
			}
			saved := *h
			saved.Nearest = &neighbors.Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}
			must(t, cache.Save(&saved))
			resumed := options(to, neighbors.Auto)
			resumed.Resume = new(train.Checkpoint)
			explicit := options(to, neighbors.Exact)
			if from == accelerator {
				explicit = options(to, neighbors.Approximate)
			}
			explicit.Resume = resumed.Resume
			for what, o := range map[string]*cne.Options{"a resumed run": resumed, "a resumed run with the other search": explicit, "a new run": options(to, neighbors.Auto)} {
				again, other := *h, cacheAt(dir, shared)
				found, err := other.Load(t.Context(), &again, o, k)
				other.Release()
				if err != nil || found != (o == resumed) {
					t.Errorf("%s, from the CPU %t, finds the neighbours: %t, %v", what, from == nil, found, err)
				}
			}
			if shared != "" {
				must(t, os.RemoveAll(shared))
			}
		}
	}
}

// If several runs begin at once, one finds what all need, and the others take it from the
// shared cache; one that gives up leaves the search to the next.
func TestSharedCache(t *testing.T) {
	const n, k, runs = 20, 2, 6
	folder := filepath.Join(t.TempDir(), "a", "cache")
	input := data.NewMatrix(n, 3)
	var begun, gaveUp atomic.Int32
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			h := &cne.Neighborhood{Scaled: input}
			cache := cacheAt(NewDir(t.TempDir()), folder)
			found, err := cache.Load(t.Context(), h, new(cne.Options), k)
			defer cache.Release()
			switch {
			case err != nil:
				t.Error(err)
			case found:
				if h.Nearest.Index[3] != 7 {
					t.Errorf("the neighbours %v", h.Nearest.Index)
				}
			case gaveUp.CompareAndSwap(0, 1): // the first ends with an error
			default:
				begun.Add(1)
				h.Nearest = &neighbors.Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}
				h.Nearest.Index[3] = 7
				if err := cache.Save(h); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 {
		t.Errorf("%d runs have found the neighbours, not one", begun.Load())
	}

	// Other points have another file, and whoever waits heeds its context.
	other := &cne.Neighborhood{Scaled: data.NewMatrix(n, 4)}
	first := cacheAt(NewDir(t.TempDir()), folder)
	if found, err := first.Load(t.Context(), other, new(cne.Options), k); err != nil || found {
		t.Fatalf("%t, %v", found, err)
	}
	defer first.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lookAgain)
	defer cancel()
	if found, err := cacheAt(NewDir(t.TempDir()), folder).Load(ctx, other, new(cne.Options), k); found || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%t, %v", found, err)
	}
	// A run that is only looked at waits for nothing and makes nothing.
	view := cacheAt(OpenReadOnly(t.TempDir()), filepath.Join(folder, "none"))
	if found, err := view.Load(t.Context(), other, new(cne.Options), k); found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	if missing := missingFolders(filepath.Join(folder, "none")); len(missing) != 1 {
		t.Errorf("%v are missing", missing)
	}
}

// Points have one key wherever they are kept, and another when a value or the scaling is
// another.
func TestPointsKey(t *testing.T) {
	const n, d = 40, 6
	folder, values := t.TempDir(), make([]byte, n*d)
	open := func(scaling data.Scaling) data.Source {
		t.Helper()
		path := filepath.Join(folder, "points.idx")
		must(t, os.WriteFile(path, append([]byte{0, 0, 8, 2, 0, 0, 0, n, 0, 0, 0, d}, values...), 0o666))
		set, err := file.Read(t.Context(), []string{path}, file.Options{StreamAbove: 3, StreamFrom: 1})
		if err == nil && scaling != "" {
			_, err = set.Scale(t.Context(), scaling)
		}
		if err != nil || set.Stored == nil {
			t.Fatal(err)
		}
		return set.Stored
	}
	keyOf := func(points data.Source) string {
		t.Helper()
		key, err := PointsKey(t.Context(), points)
		must(t, err)
		return key
	}
	for i := range values {
		values[i] = byte(7 * i)
	}
	points := open(data.ScaleUnit)
	want := keyOf(points)
	memory, err := data.Collect(t.Context(), points)
	must(t, err)
	if got := keyOf(memory); got != want {
		t.Errorf("points in memory have the key %s, not %s", got, want)
	}
	if keyOf(open("")) == want {
		t.Error("points that are scaled otherwise have the same key")
	}
	values[n*d-1]++
	if keyOf(open(data.ScaleUnit)) == want {
		t.Error("other points have the same key")
	}
}
