package initial

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
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// clusters returns points of well-separated clusters, point i in cluster i mod count, whose
// principal components cannot tell them apart, and their graph.
func clusters(t *testing.T, n, count int) (*data.Matrix, *neighbors.Graph) {
	t.Helper()
	points := data.NewMatrix(n, count)
	s := rng.New(1, rng.Init)
	for i := range n {
		for j := range count {
			points.Row(i)[j] = float32(0.3 * s.Normal())
		}
		points.Row(i)[i%count] += 10
	}
	nb := need(neighbors.KNN(t.Context(), points, 10, neighbors.Options{}))(t)
	return points, need(neighbors.FromNeighbors(nb))(t)
}

// embedGroups trains as long as is enough for few groups.
func embedGroups(ctx context.Context, g *neighbors.Graph, from *data.Matrix, first bool) (*data.Matrix, error) {
	std, epochs := 20., 4
	if first {
		std, epochs = 1, 20
	}
	table, err := Table[float32](from, 2, std, 0)
	if err != nil {
		return nil, err
	}
	m, err := model.NewEmbedding(table, 2, op.ContrastiveOptions{Loss: op.InfoNC, Temperature: 0.5, Clamp: 1e-10, Scale: 0.5})
	if err != nil {
		return nil, err
	}
	_, err = train.Fit(ctx, m, g.Heads(), g.Indices, train.Options{Phases: []train.Phase{
		{Epochs: epochs, LR: 1, Negatives: 5, Spectrum: train.FromS(1)}, {Epochs: 20, LR: 8, Negatives: 500, Spectrum: train.FromS(0)},
	}, Weights: g.Weights, Clip: 4})
	if err != nil {
		return nil, err
	}
	positions := data.NewMatrix(g.N, 2)
	return positions, m.EmbedTo(positions.X)
}

// A multilevel start has the points of a cluster together and apart from others, each in a
// place of its own, and has the same bits on any number of cores.
func TestMultilevel(t *testing.T) {
	const n, count = 3000, 6
	points, g := clusters(t, n, count)
	groupsUpTo(t, 100)
	start, err := Multilevel(t.Context(), g, points, 2, 0, embedGroups)
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
	if wrong > n/40 { // one of the groups of 60 to 70 points may lie elsewhere
		t.Errorf("%d of %d points lie nearer to another cluster", wrong, n)
	}
	if len(places) != n {
		t.Errorf("%d points are in %d places", n, len(places))
	}
	procs := runtime.GOMAXPROCS(1)
	again, err := Multilevel(t.Context(), g, points, 2, 0, embedGroups)
	runtime.GOMAXPROCS(procs)
	if err != nil || !slices.Equal(again.X, start.X) {
		t.Errorf("other bits on one core, %v", err)
	}
}

// Where each group is a whole component of the graph, nothing is embedded, and components
// lie side by side.
func TestMultilevelOfPairs(t *testing.T) {
	points, _ := clusters(t, 300, 3)
	groupsUpTo(t, 10)
	pairs := &neighbors.Graph{N: 300, Indptr: []int64{0}}
	for i := range 300 {
		pairs.Indices, pairs.Indptr = append(pairs.Indices, int32(i^1)), append(pairs.Indptr, int64(i+1))
	}
	got := need(Multilevel(t.Context(), pairs, points, 2, 0, embedGroups))(t)
	if s := strangers(t, got, connected(pairs.Indptr, pairs.Indices)); s > 0 {
		t.Errorf("%d points lie next to a point of another pair", s)
	}
}

func TestMultilevelEnds(t *testing.T) {
	points, g := clusters(t, 600, 3)
	groupsUpTo(t, 50)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Multilevel(ctx, g, points, 2, 0, embedGroups); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// groupsUpTo has a test put groups together until there are few.
func groupsUpTo(t *testing.T, few int) {
	before := fewGroups
	t.Cleanup(func() { fewGroups = before })
	fewGroups = few
}

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// normal returns n×d standard normal numbers.
func normal(n, d int, seed uint64) *data.Matrix {
	m, s := data.NewMatrix(n, d), rng.New(seed, rng.Init)
	for i := range m.X {
		m.X[i] = float32(s.Normal())
	}
	return m
}
