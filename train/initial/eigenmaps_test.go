package initial

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"cne/data/neighbors"
	"cne/internal/rng"
)

// edges makes the rows of a graph of edges, each in both directions.
func edges(n int, pairs [][2]int) *neighbors.Graph {
	rows := make([][]int32, n)
	for _, p := range pairs {
		rows[p[0]] = append(rows[p[0]], int32(p[1]))
		rows[p[1]] = append(rows[p[1]], int32(p[0]))
	}
	g := &neighbors.Graph{N: n, Indptr: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		g.Indices = append(g.Indices, slices.Compact(row)...)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// sheet returns a grid of rows×columns nodes, each with an edge to those at most two steps
// away, with its nodes in random order.
func sheet(rows, columns int, seed uint64) *neighbors.Graph {
	s := rng.New(seed, rng.Init)
	number := s.Perm(rows * columns)
	var pairs [][2]int
	for i := range rows {
		for j := range columns {
			for _, step := range [][2]int{{0, 1}, {1, 0}, {1, 1}, {1, -1}, {0, 2}, {2, 0}} {
				if k, l := i+step[0], j+step[1]; k < rows && l >= 0 && l < columns {
					pairs = append(pairs, [2]int{number[i*columns+j], number[k*columns+l]})
				}
			}
		}
	}
	return edges(rows*columns, pairs)
}

// exact returns the eigenvalues of D^(−1/2)·A·D^(−1/2), descending, and the functions
// D^(−1/2)·u, by a dense decomposition.
func exact(g *neighbors.Graph) ([]float64, *mat.Dense) {
	n := g.N
	a := mat.NewSymDense(n, nil)
	degree := func(i int) float64 { return float64(len(g.Tails(i))) }
	for i := range n {
		for _, j := range g.Tails(i) {
			a.SetSym(i, int(j), 1/math.Sqrt(degree(i)*degree(int(j))))
		}
	}
	var eigen mat.EigenSym
	eigen.Factorize(a, true)
	var u mat.Dense
	eigen.VectorsTo(&u)
	values := eigen.Values(nil)
	slices.Reverse(values)
	f := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			f.Set(i, j, u.At(i, n-1-j)/math.Sqrt(degree(i)))
		}
	}
	return values, f
}

// The eigenmaps equal a dense decomposition's, whether the graph is made smaller on the
// way (as all with more than 256 nodes are) or not.
func TestAgainstDense(t *testing.T) {
	for _, size := range [][2]int{{3, 5}, {9, 14}, {17, 25}, {8, 60}, {21, 23}} {
		g := sheet(size[0], size[1], 1)
		const d = 3
		m, _, err := eigenmaps(t.Context(), g, d)
		if err != nil {
			t.Fatal(err)
		}
		values, f := exact(g)
		n := g.N
		for j := range d {
			if values[j+1]-values[j+2] < 1e-4 || values[j]-values[j+1] < 1e-4 {
				continue // a vector by itself has no meaning
			}
			sign, worst := 0., 0.
			for i := range n {
				sign += float64(m.X[i*d+j]) * f.At(i, j+1)
			}
			for i := range n {
				worst = max(worst, math.Abs(float64(m.X[i*d+j])-math.Copysign(f.At(i, j+1), sign*f.At(i, j+1))))
			}
			largest := mat.Max(f.ColView(j + 1))
			if worst > 2e-3*math.Abs(largest) {
				t.Errorf("%v: function %d differs by %v of %v", size, j, worst, largest)
			}
		}
	}
}

// A path of equal steps has the cosines as its eigenmaps: in order along the path.
func TestPath(t *testing.T) {
	const n = 3000
	var pairs [][2]int
	for i := range n - 1 {
		pairs = append(pairs, [2]int{i, i + 1})
	}
	g := edges(n, pairs)
	m, _, err := eigenmaps(t.Context(), g, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.X[0] < m.X[n-1] {
		for i := range m.X {
			m.X[i] = -m.X[i]
		}
	}
	for i := range n {
		if want := float64(m.X[0]) * math.Cos(math.Pi*float64(i)/(n-1)); math.Abs(float64(m.X[i])-want) > 0.02*float64(m.X[0]) {
			t.Fatalf("node %d of %d is at %v, want %v", i, n, m.X[i]/m.X[0], want/float64(m.X[0]))
		}
	}
}

func TestComponents(t *testing.T) {
	// A triangle, an edge, a single node, and a sheet.
	g := sheet(20, 30, 2)
	pairs := [][2]int{{0, 4}, {4, 2}, {2, 0}, {1, 5}}
	for i := range 600 {
		for _, j := range g.Tails(i) {
			pairs = append(pairs, [2]int{6 + i, 6 + int(j)})
		}
	}
	whole := edges(606, pairs)
	m, members, err := eigenmaps(t.Context(), whole, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(members) != 4 || !slices.Equal(members[0], []int32{0, 2, 4}) || !slices.Equal(members[1], []int32{1, 5}) || !slices.Equal(members[2], []int32{3}) || len(members[3]) != 600 {
		t.Errorf("components %v, ...", members[:min(3, len(members))])
	}
	alone, _, err := eigenmaps(t.Context(), g, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.X[12:], alone.X) {
		t.Error("a component is another beside others")
	}
	if m.X[2] != -m.X[10] || m.X[3] != 0 || m.X[11] != 0 || m.X[2] == 0 || m.X[6] != 0 || m.X[7] != 0 {
		t.Errorf("the edge has %v and %v, the single node %v", m.X[2:4], m.X[10:12], m.X[6:8])
	}
}

// Edges in one direction count as edges in both.
func TestOneDirection(t *testing.T) {
	g := sheet(12, 13, 3)
	want, _, err := eigenmaps(t.Context(), g, 2)
	if err != nil {
		t.Fatal(err)
	}
	one := &neighbors.Graph{N: g.N, Indptr: []int64{0}}
	for i := range g.N {
		for _, j := range g.Tails(i) {
			if int(j) > i {
				one.Indices = append(one.Indices, j)
			}
		}
		one.Indptr = append(one.Indptr, int64(len(one.Indices)))
	}
	got, _, err := eigenmaps(t.Context(), one, 2)
	if err != nil || !slices.Equal(got.X, want.X) {
		t.Errorf("other eigenmaps (%v)", err)
	}
}

// No graph is too small or too regular, and all values are finite.
func TestExtremes(t *testing.T) {
	complete := func(n int) (pairs [][2]int) {
		for i := range n {
			for j := range i {
				pairs = append(pairs, [2]int{i, j})
			}
		}
		return pairs
	}
	star := func(n int) (pairs [][2]int) {
		for i := 1; i < n; i++ {
			pairs = append(pairs, [2]int{0, i})
		}
		return pairs
	}
	for name, tc := range map[string]struct {
		n, d  int
		pairs [][2]int
	}{
		"no node": {0, 2, nil}, "one node": {1, 2, nil}, "no edges": {5, 2, nil}, "two nodes": {2, 2, complete(2)},
		"complete": {400, 2, complete(400)}, "star": {1000, 2, star(1000)}, "most": {300, MostEigenmaps, star(300)}, "wide": {500, MostEigenmaps, complete(500)},
	} {
		g := edges(tc.n, tc.pairs)
		m, _, err := eigenmaps(t.Context(), g, tc.d)
		if err != nil || len(m.X) != tc.n*tc.d {
			t.Errorf("%s: %d values, %v", name, len(m.X), err)
			continue
		}
		if i := slices.IndexFunc(m.X, func(v float32) bool { return v-v != 0 }); i >= 0 {
			t.Errorf("%s: value %d is %v", name, i, m.X[i])
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := sheet(40, 50, 1)
	if _, _, err := eigenmaps(ctx, g, 2); err != context.Canceled {
		t.Errorf("without time: %v", err)
	}
}

func TestSameBits(t *testing.T) {
	g := sheet(90, 110, 4)
	want, _, err := eigenmaps(t.Context(), g, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	got, _, err := eigenmaps(t.Context(), g, 2)
	if err != nil || !slices.Equal(got.X, want.X) {
		t.Errorf("other bits on one core (%v)", err)
	}
}

func BenchmarkEigenmaps(b *testing.B) {
	sides := []int{265, 1000}
	if testing.Short() {
		sides = []int{60}
	}
	for _, side := range sides {
		g := sheet(side, side, 1)
		b.Run(fmt.Sprint(side*side), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := eigenmaps(b.Context(), g, 2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
