package cne

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
)

// clusters returns points of well-separated clusters, point i in cluster i mod count, whose
// principal components cannot tell them apart, and their graph.
func clusters(t *testing.T, n, count int) *Neighborhood {
	t.Helper()
	points := data.NewMatrix(n, count)
	s := rng.New(1, rng.Init)
	for i := range n {
		for j := range count {
			points.Row(i)[j] = float32(0.3 * s.Normal())
		}
		points.Row(i)[i%count] += 10
	}
	nb, err := neighbors.KNN(t.Context(), points, 10, neighbors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := neighbors.FromNeighbors(nb)
	if err != nil {
		t.Fatal(err)
	}
	return &Neighborhood{Points: points, Input: points, Graph: g}
}

// A coarse start has the points of a cluster together and apart from others, each in a
// place of its own, and has the same bits on any number of cores.
func TestCoarseStart(t *testing.T) {
	const n, count = 3000, 6
	h := clusters(t, n, count)
	start, err := h.coarseStart(t.Context(), &Options{}, 2, 100)
	if err != nil {
		t.Fatal(err)
	}
	if start.N != n || start.D != 2 {
		t.Fatalf("positions [%d, %d]", start.N, start.D)
	}
	group := make([]int32, n)
	for i := range group {
		group[i] = int32(i % count)
	}
	centers, wrong := meansOf(start, group, count), 0
	places := map[[2]float32]bool{}
	for i := range n {
		row := start.Row(i)
		places[[2]float32{row[0], row[1]}] = true
		nearest, least := -1, math.Inf(1)
		for c := range count {
			center := centers.Row(c)
			if d := math.Hypot(float64(row[0]-center[0]), float64(row[1]-center[1])); d < least {
				nearest, least = c, d
			}
		}
		if nearest != i%count {
			wrong++
		}
	}
	if wrong > n/100 {
		t.Errorf("%d of %d points lie nearer to another cluster", wrong, n)
	}
	if len(places) != n {
		t.Errorf("%d points are in %d places", n, len(places))
	}
	procs := runtime.GOMAXPROCS(1)
	again, err := h.coarseStart(t.Context(), &Options{}, 2, 100)
	runtime.GOMAXPROCS(procs)
	if err != nil || !slices.Equal(again.X, start.X) {
		t.Errorf("other bits on one core, %v", err)
	}
}

// Where each group is a whole component of the graph, there is nothing to arrange.
func TestCoarseStartOfPairs(t *testing.T) {
	h := clusters(t, 300, 3)
	want, err := h.components(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	pairs := &neighbors.Graph{N: 300, Indptr: []int64{0}}
	for i := range 300 {
		pairs.Indices, pairs.Indptr = append(pairs.Indices, int32(i^1)), append(pairs.Indptr, int64(i+1))
	}
	h.Graph = pairs
	if got, err := h.coarseStart(t.Context(), &Options{}, 2, 10); err != nil || !slices.Equal(got.X, want.X) {
		t.Errorf("pairs do not start at their principal components: %v", err)
	}
}

func TestCoarseStartEnds(t *testing.T) {
	h := clusters(t, 600, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.coarseStart(ctx, &Options{}, 2, 50); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	for name, o := range map[string]Options{
		"network":  {CoarseStart: true, Hidden: []int{3}},
		"random":   {CoarseStart: true, RandomStart: true},
		"spectral": {CoarseStart: true, SpectralStart: true},
		"start":    {CoarseStart: true, Start: data.NewMatrix(600, 2)},
	} {
		if err := o.Check(600); !errors.Is(err, ErrOption) {
			t.Errorf("%s: %v, want ErrOption", name, err)
		}
	}
}
