package neighbors

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"cne/data"
)

// The weights agree with umap-learn 0.5.3's fuzzy_simplicial_set of the same neighbours
// with n_neighbors = 4. Points 3 and 4 coincide.
func TestFuzzyGraphIsUMAPs(t *testing.T) {
	m := &data.Matrix{N: 7, D: 2, X: []float32{0, 0, 1, 0, 0, 2, 3, 3, 3, 3, 7, 1, 2.5, 0.5}}
	nb := need(KNN(t.Context(), m, 3, Options{}))(t)
	g := need(FuzzyGraph(nb))(t)
	must(t, g.Validate())
	want := [7][7]float64{
		{0, 1, 1, 0, 0, 0, 0.71232},
		{1, 0, 0.82420, 0, 0, 0, 1},
		{1, 0.82420, 0, 0, 0, 0, 0.27989},
		{0, 0, 0, 0, 1, 1, 1},
		{0, 0, 0, 1, 0, 1, 1},
		{0, 0, 0, 1, 1, 0, 0},
		{0.71232, 1, 0.27989, 1, 1, 0, 0},
	}
	for i := range want {
		for j := range want[i] {
			e, found := findEdge(g, i, int32(j))
			got := 0.
			if found {
				got = float64(g.Weights[e])
			}
			if math.Abs(got-want[i][j]) > 2e-4 {
				t.Errorf("the weight of %d → %d is %.5f, umap-learn's %.5f", i, j, got, want[i][j])
			}
		}
	}
}

// The weights are in (0, 1] and symmetric, and the edges are FromNeighbors'. A point's
// strengths have UMAP's sum, unless too many neighbours are equally near.
func TestFuzzyGraph(t *testing.T) {
	const n = 500
	spread := normal(n, 3, 1)
	for i := range 20 { // points that coincide, and some that are far from all
		copy(spread.Row(i), spread.Row(20))
		spread.Row(480 + i)[0] += 1e6 * float32(i+1)
	}
	for _, k := range []int{1, 2, 15, 40} {
		nb := need(KNN(t.Context(), spread, k, Options{}))(t)
		plain := need(FromNeighbors(nb))(t)
		g := need(FuzzyGraph(nb))(t)
		if !slices.Equal(g.Indptr, plain.Indptr) || !slices.Equal(g.Indices, plain.Indices) {
			t.Fatalf("k = %d: other edges than FromNeighbors'", k)
		}
		if err := g.Validate(); err != nil {
			t.Fatalf("k = %d: %v", k, err)
		}
		for i := range n {
			for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
				back, _ := findEdge(g, int(g.Indices[e]), int32(i))
				if g.Weights[e] > 1 || g.Weights[e] != g.Weights[back] {
					t.Fatalf("k = %d: %d → %d has the weight %v, the way back %v", k, i, g.Indices[e], g.Weights[e], g.Weights[back])
				}
			}
		}
		file := filepath.Join(t.TempDir(), "graph.npz")
		must(t, g.WriteNPZ(file))
		want := g.Weights
		if k == 1 { // and every weight 1, as without weights
			want = nil
		}
		if read, err := ReadFile(t.Context(), file); err != nil || !slices.Equal(read.Indices, g.Indices) || !slices.Equal(read.Weights, want) {
			t.Fatalf("k = %d: the graph comes back from its file as another, %v", k, err)
		}
		d, w := make([]float64, k), make([]float64, k)
		for i := 21; i < 480; i++ {
			for c, d2 := range nb.Dist2[i*k : (i+1)*k] {
				d[c] = math.Sqrt(d2)
			}
			strengths(w, d)
			sum := 0.
			for _, v := range w {
				sum += v
			}
			nearest := 0. // as near as the first
			for _, v := range d {
				if v == d[0] {
					nearest++
				}
			}
			if math.Abs(sum-max(nearest, math.Log2(float64(k+1)))) > 1e-4 {
				t.Fatalf("k = %d: the strengths of point %d have the sum %g", k, i, sum)
			}
		}
	}
}

func TestFuzzyGraphNeedsDistances(t *testing.T) {
	for name, dist2 := range map[string][]float64{
		"none": nil, "too few": {1}, "negative": {1, -1}, "infinite": {1, math.Inf(1)}, "no number": {math.NaN(), 1},
	} {
		if g, err := FuzzyGraph(&Neighbors{N: 2, K: 1, Index: []int32{1, 0}, Dist2: dist2}); !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: %v, %v; want ErrInvalidGraph", name, g, err)
		}
	}
	if _, err := FuzzyGraph(&Neighbors{N: 2, K: 1, Index: []int32{1, 5}, Dist2: []float64{1, 1}}); !errors.Is(err, ErrInvalidGraph) {
		t.Errorf("a neighbour that is no point: %v", err)
	}
}

// Edges between sparse points weigh less, in proportion to the radii; outliers and copies
// count as a quarter or four times the median. The power times the deviation of the radii's
// logarithms is at most 1.
func TestKeepDensity(t *testing.T) {
	nb := &Neighbors{N: 5, K: 1, Index: []int32{1, 0, 1, 2, 3}, Dist2: []float64{4, 4, 16, 1e30, 0}} // radii 1, 1, 2, 4, 1/4 of the median
	edges := [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}}
	radii := []float64{1, 1, 2, 4, 0.25}
	deviation := math.Log(2) * math.Sqrt((1+4+4)/5.-math.Pow((1+2-2)/5., 2))
	for _, power := range []float64{0, 0.5, 2, 4} {
		for name, graphOf := range map[string]func(*Neighbors) (*Graph, error){"equal": FromNeighbors, "fuzzy": FuzzyGraph} {
			before, g := need(graphOf(nb))(t), need(graphOf(nb))(t)
			must(t, g.KeepDensity(nb, power))
			must(t, g.Validate())
			for _, pair := range edges {
				i, j := pair[0], pair[1]
				e, _ := findEdge(g, i, int32(j))
				back, _ := findEdge(g, j, int32(i))
				want := float64(before.Weight(e)) * math.Pow(radii[i]*radii[j], -min(power, 1/deviation)/2)
				if got := float64(g.Weights[e]); math.Abs(got-want) > 1e-6*want || g.Weights[back] != g.Weights[e] {
					t.Errorf("%s, power %g: the edges of %d and %d weigh %g and %g, want %g", name, power, i, j, got, g.Weights[back], want)
				}
			}
		}
	}
	// A neighbour in another group counts as twice the median.
	groups := &Neighbors{N: 4, K: 3, Index: []int32{1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2}, Dist2: []float64{1, 1, 1e6, 1, 1, 1e6, 1, 1, 1e6, 1e6, 1e6, 1e6}}
	far := need(FromNeighbors(groups))(t)
	must(t, far.KeepDensity(groups, 2))
	for j, want := range []float64{1: 1, 2: 1, 3: math.Exp(-1 / math.Sqrt(0.75))} { // radii √2 and, as an outlier, 4√2
		if e, _ := findEdge(far, 0, int32(j)); want > 0 && math.Abs(float64(far.Weights[e])-want) > 1e-6 {
			t.Errorf("groups: the edge of 0 and %d weighs %g, want %g", j, far.Weights[e], want)
		}
	}
	copies := &Neighbors{N: 2, K: 1, Index: []int32{1, 0}, Dist2: []float64{0, 0}}
	g := need(FuzzyGraph(copies))(t)
	before := slices.Clone(g.Weights)
	if err := g.KeepDensity(copies, 2); err != nil || !slices.Equal(g.Weights, before) {
		t.Errorf("identical points: weights %v, error %v; want %v", g.Weights, err, before)
	}
	for name, other := range map[string]*Neighbors{"other points": nb, "no distances": {N: 2, K: 1, Index: []int32{1, 0}}} {
		if err := g.KeepDensity(other, 2); !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: got %v, want ErrInvalidGraph", name, err)
		}
	}
}

// findEdge returns where the edge from i to j stands in Indices, and whether there is one.
func findEdge(g *Graph, i int, j int32) (at int64, found bool) {
	in, found := slices.BinarySearch(g.Tails(i), j)
	return g.Indptr[i] + int64(in), found
}
