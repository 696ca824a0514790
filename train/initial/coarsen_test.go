package initial

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/data/neighbors"
)

func TestCoarsen(t *testing.T) {
	// A path 0–1–2–3–4: 0 and 1 are a group, and 3 with its neighbours is another; and 5
	// without edges.
	g := &neighbors.Graph{
		N: 6, Indptr: []int64{0, 1, 3, 5, 7, 8, 8},
		Indices: []int32{1, 0, 2, 1, 3, 2, 4, 3},
		Weights: []float32{0.9, 0.9, 0.3, 0.3, 0.8, 0.8, 0.5, 0.5},
	}
	coarse, group := coarsen(g)
	if want := []int32{0, 0, 1, 1, 1, 2}; !slices.Equal(group, want) {
		t.Errorf("groups %v, want %v", group, want)
	}
	if coarse.N != 3 || !slices.Equal(coarse.Indptr, []int64{0, 1, 2, 2}) || !slices.Equal(coarse.Indices, []int32{1, 0}) {
		t.Errorf("the graph of the groups is %+v", coarse)
	}
	for _, w := range coarse.Weights {
		if math.Abs(float64(w)-0.3) > 1e-6 {
			t.Errorf("weights %v, want 0.3 each", coarse.Weights)
		}
	}
}

// The groups of any graph have the weight between them that the points have, their graph
// is valid and symmetric, and each has a point with all its neighbours.
func TestCoarsenKeepsWeight(t *testing.T) {
	const n = 5000
	nb := need(neighbors.KNN(t.Context(), normal(n, 3, 1), 10, neighbors.Options{}))(t)
	for name, graphOf := range map[string]func(*neighbors.Neighbors) (*neighbors.Graph, error){"equal": neighbors.FromNeighbors, "fuzzy": neighbors.FuzzyGraph} {
		g := need(graphOf(nb))(t)
		coarse, group := coarsen(g)
		if err := coarse.Validate(); err != nil || !coarse.Symmetric() {
			t.Fatalf("%s: symmetric: %t, %v", name, coarse.Symmetric(), err)
		}
		if coarse.N < n/200 || coarse.N > n/10 {
			t.Errorf("%s: %d groups of %d points", name, coarse.N, n)
		}
		members, between, total := make([]int, coarse.N), 0., 0.
		for i, c := range group {
			members[c]++
			for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
				if group[g.Indices[e]] != c {
					between += float64(g.Weight(e))
				}
			}
		}
		for _, w := range coarse.Weights {
			total += float64(w)
		}
		if math.Abs(total-between) > 1e-4*between {
			t.Errorf("%s: edges between groups weigh %g, those of their points %g", name, total, between)
		}
		if slices.Min(members) < 11 {
			t.Errorf("%s: a group of %d, fewer than a point and its ten neighbours", name, slices.Min(members))
		}
		procs := runtime.GOMAXPROCS(1)
		again, same := coarsen(g)
		runtime.GOMAXPROCS(procs)
		if !slices.Equal(same, group) || !slices.Equal(again.Indices, coarse.Indices) || !slices.Equal(again.Weights, coarse.Weights) {
			t.Errorf("%s: other bits on one core", name)
		}
	}
}
