package neighbors

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"archive/zip"

	"cne/data"
	"cne/internal/rng"
)

// A matrix of the distances of the nearest neighbours gives the graph that these neighbours
// do, whatever its scale, and also between equal points, whose zeros it stores; its weights
// give weights.
func TestMatrixOfDistances(t *testing.T) {
	const n, d, k = 200, 4, 5
	points := data.NewMatrix(n, d)
	stream := rng.New(3, rng.Sample)
	for i := range points.X {
		points.X[i] = float32(stream.Float64())
	}
	copy(points.Row(7), points.Row(3))
	copy(points.Row(9), points.Row(3))
	set := &data.Dataset{Points: points}
	nb := need(KNN(t.Context(), points, k, Options{Search: Exact}))(t)
	want := need(FuzzyGraph(nb))(t)
	var indptr []int32
	var columns []int32
	var lengths, weights []float32
	for i := range n {
		indptr = append(indptr, int32(len(columns)))
		for c, j := range nb.Of(i) {
			length := math.Sqrt(nb.Dist2[i*k+c])
			columns, lengths, weights = append(columns, j), append(lengths, float32(length)), append(weights, float32(1.5*math.Exp(-length)))
		}
	}
	indptr = append(indptr, int32(len(columns)))
	write := func(values []float32, scale float32) string {
		scaled := slices.Clone(values)
		for e := range scaled {
			scaled[e] *= scale
		}
		path := filepath.Join(t.TempDir(), "g.npz")
		shape := member("<i8", "(2,)", []int64{n, n})
		must(t, os.WriteFile(path, zipped(map[string][]byte{
			"indptr.npy": member("<i4", "(201,)", indptr), "indices.npy": member("<i4", "(1000,)", columns), "data.npy": member("<f4", "(1000,)", scaled),
			"shape.npy": shape, "format.npy": csr()["format.npy"],
		}, zip.Store), 0o666))
		return path
	}
	for _, tc := range []struct {
		name      string
		path      string
		points    *data.Dataset
		k         int
		distances bool
		why       string
	}{
		{"distances", write(lengths, 1), set, math.MaxInt, true, "are larger for farther points"},
		{"cosine distances", write(lengths, 0.01), set, math.MaxInt, true, "are larger for farther points"},
		{"long, without points", write(lengths, 100), nil, math.MaxInt, true, "exceed 1"},
		{"weights above 1", write(weights, 1), set, math.MaxInt, false, "are smaller for farther points"},
		{"short, without points", write(lengths, 0.01), nil, math.MaxInt, false, "are at most 1"},
		{"two of five", write(lengths, 1), set, 2, true, "are larger for farther points"},
	} {
		got, most, err := ReadNearest(t.Context(), tc.path, tc.k, true, func(g *Graph) (bool, error) {
			are, why, err := AreDistances(t.Context(), g, tc.points, false)
			if are != tc.distances || why != tc.why {
				t.Errorf("%s: distances: %t, since they %s", tc.name, are, why)
			}
			return are, err
		})
		switch {
		case err != nil:
			t.Fatal(tc.name, err)
		case tc.distances && most != k || !tc.distances && most != 0:
			t.Errorf("%s: got %d neighbours", tc.name, most)
		case tc.distances && tc.k > k && !slices.Equal(got.Indices, want.Indices):
			t.Errorf("%s: got other edges", tc.name)
		case tc.k < k && got.Edges() >= want.Edges()/2:
			t.Errorf("%s: got %d edges", tc.name, got.Edges())
		}
		for e := range want.Weights {
			if tc.name == "distances" && math.Abs(float64(got.Weights[e]-want.Weights[e])) > 1e-5 {
				t.Fatalf("%s: weight %d: got %v, want %v", tc.name, e, got.Weights[e], want.Weights[e])
			}
		}
	}
	if _, at := findEdge(want, 3, 7); !at {
		t.Error("the equal points have no edge")
	}
}

// Searching and ranking a matrix of distances gives the same as the points themselves.
func TestPrecomputed(t *testing.T) {
	const n, d, k = 150, 12, 7
	points := data.NewMatrix(n, d)
	stream := rng.New(5, rng.Sample)
	for i := range points.X {
		points.X[i] = float32(stream.IntN(4)) // with ties
	}
	given := data.NewMatrix(n, n)
	given.Metric = data.Precomputed
	for i := range n {
		for j := range n {
			given.Row(i)[j] = float32(math.Sqrt(dist2(points.Row(i), points.Row(j), math.Inf(1))))
		}
	}
	want, got := need(KNN(t.Context(), points, k, Options{}))(t), need(KNN(t.Context(), given, k, Options{Search: Approximate}))(t)
	if !slices.Equal(got.Index, want.Index) || math.Abs(got.Dist2[9]-want.Dist2[9]) > 1e-5 {
		t.Errorf("got the neighbours %v, want %v", got.Index[:k], want.Index[:k])
	}
	ranks, wanted := need(Ranks(t.Context(), given, want.Index, k, Options{}))(t), need(Ranks(t.Context(), points, want.Index, k, Options{}))(t)
	if !slices.Equal(ranks, wanted) {
		t.Error("got other ranks")
	}
	some := []int{3, 77}
	found, wantedFound := need(Search(t.Context(), given, given.Take(some), k, Options{}))(t), need(Search(t.Context(), points, points.Take(some), k, Options{}))(t)
	if !slices.Equal(found.Index, wantedFound.Index) || found.Dist2[0] != 0 {
		t.Errorf("got %v for new points, want %v", found.Index, wantedFound.Index)
	}
	if compare := Compare(given, given); compare(2, 5, math.Inf(1)) != float64(given.At(2, 5)) {
		t.Error("got another distance")
	}
}
