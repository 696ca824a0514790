package neighbors

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestGoldenGraph(t *testing.T) {
	nb := need(KNN(t.Context(), goldenPoints(t), 15, Options{}))(t)
	g := need(FromNeighbors(nb))(t)
	want := make([]int16, 6194*2)
	readTestdata(t, "sknn_6194x2.i16", want)
	heads, tails := g.EdgeList()
	if g.Edges() != 6194 || len(heads) != 6194 || len(tails) != 6194 {
		t.Fatalf("%d edges, listed as %d heads and %d tails, want 6194", g.Edges(), len(heads), len(tails))
	}
	for e := range heads {
		if heads[e] != int32(want[2*e]) || tails[e] != int32(want[2*e+1]) {
			t.Fatalf("edge %d is %d→%d, want %d→%d", e, heads[e], tails[e], want[2*e], want[2*e+1])
		}
	}
}

// The graph has the edges that its definition says, and keeps its promises.
func TestFromNeighbors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{0, 0}, {1, 0}, {2, 1}, {5, 0}, {9, 8}, {50, 3}, {200, 15}, {5000, 4}} {
		n, k := size[0], size[1]
		nb := newNeighbors(n, k)
		edges := map[[2]int32]bool{}
		for e := range nb.Index {
			i := e / k
			j := (i + 1 + r.IntN(n-1)) % n // may repeat, is never i
			nb.Index[e] = int32(j)
			edges[[2]int32{int32(i), int32(j)}] = true
			edges[[2]int32{int32(j), int32(i)}] = true
		}
		g, err := FromNeighbors(nb)
		if err != nil {
			t.Fatalf("n=%d, k=%d: %v", n, k, err)
		}
		if err := g.Validate(); err != nil {
			t.Errorf("n=%d, k=%d: %v", n, k, err)
		}
		if !g.Symmetric() {
			t.Errorf("n=%d, k=%d: the graph is not symmetric", n, k)
		}
		heads, tails := g.EdgeList()
		if len(heads) != len(edges) || g.Edges() != len(edges) {
			t.Errorf("n=%d, k=%d: %d edges, want %d", n, k, len(heads), len(edges))
		}
		for e := range heads {
			if !edges[[2]int32{heads[e], tails[e]}] {
				t.Errorf("n=%d, k=%d: edge %d→%d is not wanted", n, k, heads[e], tails[e])
			}
		}
		if len(tails) > 0 {
			tails[0] = -1
			if g.Validate() != nil {
				t.Error("to change the list of edges changed the graph")
			}
		}
	}
}

func TestFromNeighborsRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		nb   Neighbors
		want string
	}{
		{"short", Neighbors{N: 3, K: 2, Index: make([]int32, 5)}, "Index: got 5 entries, want 2 for each of 3 points"},
		{"no k", Neighbors{N: 3, Index: make([]int32, 3)}, "Index: got 3 entries, want 0 for each of 3 points"},
		{"negative", Neighbors{N: -1, K: -1, Index: make([]int32, 1)}, "neighbours: got -1 for each of -1 points"},
		{"out of range", Neighbors{N: 2, K: 1, Index: []int32{1, 2}}, "neighbour 0 of point 1 (both counted from 0): got 2, want 0 to 1"},
		{"below 0", Neighbors{N: 2, K: 1, Index: []int32{-1, 0}}, "neighbour 0 of point 0 (both counted from 0): got -1, want 0 to 1"},
		{"self", Neighbors{N: 2, K: 1, Index: []int32{1, 1}}, "point 1 (counted from 0): got itself as a neighbour"},
	} {
		_, err := FromNeighbors(&tc.nb)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrInvalidGraph) {
			t.Errorf("%s: error %v, want an ErrInvalidGraph with %q", tc.name, err, tc.want)
		}
	}
	if _, err := FromNeighbors(nil); !errors.Is(err, ErrInvalidGraph) {
		t.Errorf("no neighbours: error %v, want an ErrInvalidGraph", err)
	}
}

func TestNearest(t *testing.T) {
	nb := &Neighbors{N: 2, K: 3, Index: []int32{1, 2, 3, 4, 5, 6}, Dist2: []float64{1, 2, 3, 4, 5, 6}}
	for _, tc := range []struct {
		k     int
		index []int32
	}{
		{1, []int32{1, 4}},
		{2, []int32{1, 2, 4, 5}},
		{3, nb.Index},
		{4, nb.Index},
		{0, []int32{}},
		{-1, []int32{}},
	} {
		got := nb.Nearest(tc.k)
		if !slices.Equal(got.Index, tc.index) || len(got.Dist2) != len(got.Index) || got.N != 2 || got.K != len(got.Index)/2 {
			t.Errorf("the %d nearest are %+v, want %d", tc.k, got, tc.index)
		}
	}
	nb.Dist2 = nil // released by a caller
	if got := nb.Nearest(2); !slices.Equal(got.Index, []int32{1, 2, 4, 5}) || got.Dist2 != nil {
		t.Errorf("without distances the nearest are %+v", got)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		g    Graph
		want string // empty: valid
	}{
		{"empty", Graph{Indptr: []int64{0}}, ""},
		{"no edges", Graph{N: 2, Indptr: []int64{0, 0, 0}}, ""},
		{"directed", Graph{N: 3, Indptr: []int64{0, 2, 2, 3}, Indices: []int32{1, 2, 0}}, ""},
		{"zero value", Graph{}, "Indptr: got 0 entries, want 1"},
		{"negative N", Graph{N: -1}, "N: got -1, want 0 to 2147483647"},
		{"short indptr", Graph{N: 2, Indptr: []int64{0, 0}}, "Indptr: got 2 entries, want 3"},
		{"late start", Graph{N: 1, Indptr: []int64{1, 1}, Indices: []int32{0}}, "indptr: got 1 first, want 0"},
		{"falling", Graph{N: 3, Indptr: []int64{0, 2, 1, 2}, Indices: []int32{1, 2}}, "indptr: got 2, then 1 at row 1 (counted from 0), want no decrease"},
		{"beyond the end", Graph{N: 2, Indptr: []int64{0, 1 << 40, 1 << 40}, Indices: []int32{1}}, "indptr: got 1099511627776 last, want 1, the number of indices"},
		{"out of range", Graph{N: 2, Indptr: []int64{0, 1, 1}, Indices: []int32{2}}, "row 0: got an edge to point 2, want 0 to 1"},
		{"below 0", Graph{N: 2, Indptr: []int64{0, 1, 1}, Indices: []int32{-1}}, "row 0: got an edge to point -1, want 0 to 1"},
		{"self loop", Graph{N: 2, Indptr: []int64{0, 0, 1}, Indices: []int32{1}}, "row 1: got an edge to itself"},
		{"twice", Graph{N: 2, Indptr: []int64{0, 2, 2}, Indices: []int32{1, 1}}, "row 0: got the edge to point 1 twice"},
		{"unsorted", Graph{N: 3, Indptr: []int64{0, 2, 2, 2}, Indices: []int32{2, 1}}, "row 0: got point 1 after point 2, want ascending order"},
	} {
		err := tc.g.Validate()
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrInvalidGraph)):
			t.Errorf("%s: error %v, want an ErrInvalidGraph with %q", tc.name, err, tc.want)
		}
	}
}

func TestSymmetric(t *testing.T) {
	for _, tc := range []struct {
		name    string
		indptr  []int64
		indices []int32
		want    bool
	}{
		{"no edges", []int64{0, 0, 0}, nil, true},
		{"both directions", []int64{0, 1, 2}, []int32{1, 0}, true},
		{"one direction", []int64{0, 1, 1}, []int32{1}, false},
		{"the other direction", []int64{0, 0, 1}, []int32{0}, false},
		{"a cycle", []int64{0, 1, 2, 3}, []int32{1, 2, 0}, false},
		{"a triangle", []int64{0, 2, 4, 6}, []int32{1, 2, 0, 2, 0, 1}, true},
		{"a triangle less an edge", []int64{0, 2, 4, 5}, []int32{1, 2, 0, 2, 0}, false},
	} {
		g := Graph{N: len(tc.indptr) - 1, Indptr: tc.indptr, Indices: tc.indices}
		if err := g.Validate(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got := g.Symmetric(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTailsCannotGrowIntoTheNextRow(t *testing.T) {
	g := Graph{N: 2, Indptr: []int64{0, 1, 2}, Indices: []int32{1, 0}}
	_ = append(g.Tails(0), 7)
	if !slices.Equal(g.Indices, []int32{1, 0}) {
		t.Error("appending to a row's tails overwrote the next row")
	}
}

func BenchmarkFromNeighbors(b *testing.B) {
	nb := newNeighbors(70000, 15)
	r := rand.New(rand.NewPCG(1, 2))
	for e := range nb.Index {
		nb.Index[e] = int32((e/15 + 1 + r.IntN(nb.N-1)) % nb.N)
	}
	for b.Loop() {
		need(FromNeighbors(nb))(b)
	}
}
