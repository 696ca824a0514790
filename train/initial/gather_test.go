package initial

import (
	"math"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/train/quality"
)

// groupsApart returns rings of points and their graph, with means apart from each other.
func groupsApart(t *testing.T, sizes []int, apart float64) (*neighbors.Graph, *data.Matrix) {
	t.Helper()
	n := 0
	for _, size := range sizes {
		n += size
	}
	m, near := data.NewMatrix(n, 2), &neighbors.Neighbors{N: n, K: 2, Dist2: make([]float64, 2*n)}
	s, first := rng.New(1, rng.Init), 0
	for c, size := range sizes {
		x, y := apart*float64(c%4), apart*float64(c/4)
		for i := range size {
			m.Row(first + i)[0] = float32(x + 3*s.Normal())
			m.Row(first + i)[1] = float32(y + 3*s.Normal())
			near.Index = append(near.Index, int32(first+(i+1)%size), int32(first+(i+2)%size))
		}
		first += size
	}
	g, err := neighbors.FromNeighbors(near)
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

// Each component keeps its shape, and their means their arrangement. The scores of the
// embedding change by no more than is said.
func TestGather(t *testing.T) {
	sizes := []int{300, 250, 40, 200, 10, 300}
	g, m := groupsApart(t, sizes, 2000)
	before := m.Clone()
	if moved := Gather(g, m); moved != len(sizes) {
		t.Fatalf("%d components were moved", moved)
	}
	members, factor := connected(g.Indptr, g.Indices), 0.
	for c, nodes := range members {
		for _, i := range nodes[1:] {
			for j := range m.D {
				was, is := before.Row(int(i))[j]-before.Row(int(nodes[0]))[j], m.Row(int(i))[j]-m.Row(int(nodes[0]))[j]
				if math.Abs(float64(was-is)) > 2e-3 { // the rounding of positions far away
					t.Fatalf("component %d has another shape", c)
				}
			}
		}
		if c > 0 {
			a, _ := before.Moments(members[0])
			b, _ := before.Moments(nodes)
			p, _ := m.Moments(members[0])
			q, _ := m.Moments(nodes)
			of := math.Hypot(p[0]-q[0], p[1]-q[1]) / math.Hypot(a[0]-b[0], a[1]-b[1])
			if factor == 0 {
				factor = of
			}
			if math.Abs(of/factor-1) > 1e-3 || of > 0.1 {
				t.Errorf("the distance of component %d has the factor %g, others %g", c, of, factor)
			}
		}
	}
	z0, z1 := partition(t, before), partition(t, m)
	if z1 < z0 || z1 > 1.025*z0 {
		t.Errorf("the partition function was %g and is %g", z0, z1)
	}
	if moved := Gather(g, m); moved != 0 {
		t.Errorf("%d components were moved again", moved)
	}
}

func partition(t *testing.T, m *data.Matrix) float64 {
	z, err := quality.PartitionFunction(t.Context(), m.X, m.D)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// What is not far apart stays, as does a graph in one piece or in very many.
func TestGatherLeaves(t *testing.T) {
	for name, sizes := range map[string][]int{"near": {100, 100}, "one": {200}, "many": make([]int, mostGathered+1)} {
		apart := 30.
		if name == "many" {
			apart = 5000
			for c := range sizes {
				sizes[c] = 4
			}
		}
		g, m := groupsApart(t, sizes, apart)
		before := m.Clone()
		if moved := Gather(g, m); moved != 0 {
			t.Errorf("%s: %d components were moved", name, moved)
		}
		for i, v := range m.X {
			if v != before.X[i] {
				t.Fatalf("%s: coordinate %d was %v and is %v", name, i, before.X[i], v)
			}
		}
	}
}
