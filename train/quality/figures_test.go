package quality

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/internal/safetensors"
)

// figures returns what is invariant of an embedding of a graph.
func figures(t *testing.T, heads, tails []int32, x []float32, d int) []float64 {
	t.Helper()
	z := need(PartitionFunction(t.Context(), x, d))(t)
	return []float64{z, need(klOf(t.Context(), heads, tails, x, d, z))(t)}
}

func TestMotionsAndReflectionsLeaveTheFigures(t *testing.T) {
	const n = 900
	x := normal[float32](3, n, 2, 4)
	heads, tails := symmetric(nearestNaive(x, 2, 5), 5)
	want := figures(t, heads, tails, x, 2)
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	turned := rotated(wide, 2)
	for name, f := range map[string]func(i int) float64{
		"rotated":   func(i int) float64 { return turned[i] },
		"reflected": func(i int) float64 { return wide[i] * float64(1-i%2*2) },
		"swapped":   func(i int) float64 { return wide[i^1] },
		"moved":     func(i int) float64 { return wide[i] + 3 },
	} {
		y := make([]float32, len(x))
		for i := range y {
			y[i] = float32(f(i))
		}
		for k, got := range figures(t, heads, tails, y, 2) {
			near(t, name, got, want[k], 1e-5)
		}
	}

	// Another order of the points changes nothing.
	y, order := permuted(x, 2, 5)
	place := make([]int32, n)
	for k, i := range order {
		place[i] = int32(k)
	}
	h, u := make([]int32, len(heads)), make([]int32, len(tails))
	for e := range heads {
		h[e], u[e] = place[heads[e]], place[tails[e]]
	}
	for k, got := range figures(t, h, u, y, 2) {
		near(t, "permuted", got, want[k], 1e-5)
	}

	// Another scale is another embedding.
	larger := make([]float32, len(x))
	for i, v := range x {
		larger[i] = 2 * v
	}
	near(t, "partition function, scaled", figures(t, heads, tails, larger, 2)[0], partitionNaive(larger, 2), 1e-6)

	big := normal[float32](8, 5000, 3, 2)
	sameBits(t, "partition function", func() (float64, error) { return PartitionFunction(t.Context(), big, 3) })
}

// ranksNaive returns the rank in x of each neighbour, equal distances in the
// order of the points.
func ranksNaive[T Float](x []T, d int, neighbours []int32, k int) []int32 {
	n := len(x) / d
	all := nearestNaive(x, d, n-1)
	ranks := make([]int32, len(neighbours))
	for e, j := range neighbours {
		ranks[e] = 1 + int32(slices.Index(all[e/k*(n-1):(e/k+1)*(n-1)], j))
	}
	return ranks
}

// trustworthinessNaive is the definition: what the k nearest of each of n points of the
// embedding y are too far down in the order of the points x, as a share of the most.
func trustworthinessNaive(x []float64, dx int, y []float64, dy, k int) float64 {
	n := len(x) / dx
	neighbours, all := nearestNaive(y, dy, k), nearestNaive(x, dx, n-1)
	var penalty float64
	for e, j := range neighbours {
		if rank := 1 + slices.Index(all[e/k*(n-1):(e/k+1)*(n-1)], j); rank > k {
			penalty += float64(rank - k)
		}
	}
	return 1 - 2*penalty/float64(n*k*(2*n-3*k-1))
}

func TestTrustworthiness(t *testing.T) {
	for name, tc := range map[string]struct {
		ranks []int32
		k     int
		want  float64
	}{
		// The largest penalty of n points: all others that are no neighbours,
		// the farthest first.
		"all near":     {[]int32{1, 2, 2, 1, 1, 2, 1, 2, 2, 1}, 2, 1},
		"order":        {[]int32{1, 1, 1}, 1, 1},
		"all farthest": {[]int32{2, 2, 2}, 1, 0},
		"one of three": {[]int32{2, 1, 1}, 1, 2. / 3},
		"five points":  {[]int32{4, 3, 1, 2, 1, 2, 3, 1, 1, 2}, 2, 1 - 2./(5*2*3)*(2+1+1)},
	} {
		got := trustworthinessOf(tc.ranks, tc.k)
		if math.Abs(got-tc.want) > 1e-15 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}

	// Any points: about one half.
	const n, k = 20000, 10
	s := rng.New(1, rng.Init)
	ranks := make([]int32, n*k)
	for e := range ranks {
		ranks[e] = int32(1 + s.IntN(n-1))
	}
	got := trustworthinessOf(ranks, k)
	near(t, "any points", got, 0.5, 0.01)
	sameBits(t, "trustworthiness", func() (float64, error) { return trustworthinessOf(ranks, k), nil })

	// An embedding that keeps one of the two coordinates, by the definition.
	x := normal[float64](4, 200, 2, 1)
	y := make([]float64, 200)
	for i := range y {
		y[i] = x[2*i]
	}
	got = trustworthinessOf(ranksNaive(x, 2, nearestNaive(y, 1, k), k), k)
	near(t, "one coordinate", got, trustworthinessNaive(x, 2, y, 1, k), 1e-14)
	if !(got > 0.7 && got < 0.95) {
		t.Errorf("one coordinate of two: %v; it is worse than both and better than none", got)
	}
}

// The golden points have the trustworthiness of the definition and, where the golden file
// brings values for some k, these.
func TestGoldenTrustworthiness(t *testing.T) {
	f := need(safetensors.ReadFile(filepath.Join("testdata", "metrics.safetensors")))(t)
	x, y := value(t, f, "X"), value(t, f, "Y")
	trustworthiness := func(k int) float64 {
		return trustworthinessOf(ranksNaive(x, 20, nearestNaive(y, 2, k), k), k)
	}
	for _, k := range []int{1, 3, 15, 100} {
		near(t, "trustworthiness by the definition", trustworthiness(k), trustworthinessNaive(x, 20, y, 2, k), 1e-12)
	}
	saved, ok := f.Tensors["trustworthiness_k"]
	if !ok {
		return
	}
	ks := need(saved.Int32s())(t)
	for i, want := range value(t, f, "trustworthiness") {
		near(t, "trustworthiness in the file", trustworthiness(int(ks[i])), want, 1e-12)
	}
}
