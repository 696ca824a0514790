package neighbors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/device"
)

// approximated returns what the approximate search finds.
func approximated(t testing.TB, m *data.Matrix, k int) *Neighbors {
	t.Helper()
	nb := need(KNN(t.Context(), m, k, Options{Search: Approximate, Seed: 1}))(t)
	wellFormed(t, m, m, nb, true)
	return nb
}

// wellFormed checks that neighbours are distinct, in order, not the points
// themselves, and as far as they are said to be.
func wellFormed(t testing.TB, base, queries *data.Matrix, nb *Neighbors, own bool) {
	t.Helper()
	neighborOf := make([]int, base.N) // one more than the last point that has it as a neighbour
	for i := range nb.N {
		row := nb.Of(i)
		for e, j := range row {
			d2 := nb.Dist2[i*nb.K+e]
			if own && int(j) == i || neighborOf[j] == i+1 {
				t.Fatalf("point %d has neighbours %v", i, row)
			}
			neighborOf[j] = i + 1
			if want := dist2(queries.Row(i), base.Row(int(j)), math.Inf(1)); d2 != want {
				t.Fatalf("point %d is said to be at %g from %d, not %g", i, d2, j, want)
			}
			if e > 0 {
				if before := nb.Dist2[i*nb.K+e-1]; before > d2 || before == d2 && row[e-1] > j {
					t.Fatalf("the neighbours %v of point %d are not in order", row, i)
				}
			}
		}
	}
}

// recall is the share of neighbours that are at most as far as the farthest of as
// many nearest ones.
func recall(nb, nearest *Neighbors) float64 {
	found := 0
	for e, d2 := range nb.Dist2 {
		if d2 <= nearest.Dist2[e/nb.K*nb.K+nb.K-1] {
			found++
		}
	}
	return float64(found) / float64(len(nb.Dist2))
}

func exactly(t testing.TB, m *data.Matrix, k int) *Neighbors {
	t.Helper()
	return need(KNN(t.Context(), m, k, Options{Search: Exact}))(t)
}

// filled returns n points of d values that fill sets.
func filled(n, d int, fill func(i int, row []float32, r *rand.Rand)) *data.Matrix {
	m := data.NewMatrix(n, d)
	r := rand.New(rand.NewPCG(5, 7))
	for i := range n {
		fill(i, m.Row(i), r)
	}
	return m
}

// manifold are points of few dimensions, bent into many.
func manifold(n, d, intrinsic int) *data.Matrix {
	r := rand.New(rand.NewPCG(3, 1))
	wave := make([]float64, d*intrinsic)
	for i := range wave {
		wave[i] = r.NormFloat64()
	}
	return filled(n, d, func(_ int, row []float32, r *rand.Rand) {
		var at [16]float64
		for l := range intrinsic {
			at[l] = r.Float64()
		}
		for l := range row {
			phase := 0.
			for a, v := range at[:intrinsic] {
				phase += v * wave[l*intrinsic+a]
			}
			row[l] = float32(math.Sin(phase + float64(l)))
		}
	})
}

func normalRow(row []float32, r *rand.Rand) {
	for l := range row {
		row[l] = float32(r.NormFloat64())
	}
}

// hardSets are point sets that a search by neighbours' neighbours may find hard.
func hardSets(n int) map[string]*data.Matrix {
	centres := normal(40, 50, 9)
	return map[string]*data.Matrix{
		"blobs": filled(n, 50, func(_ int, row []float32, r *rand.Rand) {
			normalRow(row, r)
			for l, v := range centres.Row(r.IntN(centres.N)) {
				row[l] = 0.1*row[l] + v
			}
			for l := range row[10:] { // within a blob ten dimensions matter
				row[10+l] = centres.Row(0)[10+l] + 0.1*(row[10+l]-centres.Row(0)[10+l])
			}
		}),
		"manifold": manifold(n, 50, 10),
		"5-D": filled(n, 5, func(_ int, row []float32, r *rand.Rand) {
			for l := range row {
				row[l] = r.Float32()
			}
		}),
		"duplicates": filled(n, 20, func(i int, row []float32, r *rand.Rand) {
			copy(row, centres.Row(i%37))
		}),
		"few duplicates": filled(n, 20, func(i int, row []float32, r *rand.Rand) {
			normalRow(row[:6], rand.New(rand.NewPCG(1, uint64(i/3))))
		}),
		"constant": data.NewMatrix(n, 30),
		"outliers": filled(n, 30, func(i int, row []float32, r *rand.Rand) {
			normalRow(row[:8], r)
			if i%100 == 0 {
				for l := range row {
					row[l] *= 1e6
				}
			}
		}),
		"far from the origin": filled(n, 12, func(i int, row []float32, r *rand.Rand) {
			normalRow(row, r)
			for l := range row {
				row[l] = row[l] + 4096
			}
		}),
		"one huge": filled(n, 10, func(i int, row []float32, r *rand.Rand) {
			normalRow(row[:5], r)
			if i == 77 {
				row[3] = 1e25
			}
		}),
		"huge": filled(n, 10, func(i int, row []float32, r *rand.Rand) {
			normalRow(row, r)
			for l := range row {
				row[l] *= 1e30
			}
		}),
	}
}

func TestApproximateRecall(t *testing.T) {
	const n = 2000
	points := hardSets(n)
	points["wide"] = manifold(n/5, 2000, 8)
	for name, m := range points {
		t.Run(name, func(t *testing.T) {
			const k = 15
			nb := approximated(t, m, k)
			r := recall(nb, exactly(t, m, k))
			if !(r >= 0.97) {
				t.Errorf("recall %.4f", r)
			}
			estimate := need(EstimateRecall(t.Context(), m, nb, 3, Options{}))(t)
			if d := math.Abs(estimate.Share - r); d > 5*estimate.StdErr+1e-3 {
				t.Errorf("recall %.4f of all, estimated as %.4f ± %.4f", r, estimate.Share, estimate.StdErr)
			}
		})
	}
}

func TestApproximateManyNeighbours(t *testing.T) {
	m := manifold(1200, 30, 6)
	// The leaves of 611 points are as small as lists of 300 neighbours let them be.
	for _, n := range []int{611, 613} {
		approximated(t, normal(n, 30, 4), 300)
		approximated(t, data.NewMatrix(n, 30), 300)
	}
	for _, k := range []int{1, 50, 200} {
		if r := recall(approximated(t, m, k), exactly(t, m, k)); !(r >= 0.97) {
			t.Errorf("recall %.4f for k = %d", r, k)
		}
	}
}

// Where all points are compared the result is exact, ties included.
func TestApproximateAmongFewIsExact(t *testing.T) {
	for _, n := range []int{2, 3, 16, 17, 100, 255} {
		for _, k := range []int{1, 2, 15, n - 1} {
			if k >= n {
				continue
			}
			for _, m := range []*data.Matrix{normal(n, 9, uint64(n)), data.NewMatrix(n, 3)} {
				same(t, approximated(t, m, k), exactly(t, m, k))
			}
		}
	}
	{ // n−1 neighbours are all others
		n := 301
		m := normal(n, 20, 2)
		same(t, approximated(t, m, n-1), exactly(t, m, n-1))
	}
}

func TestApproximateSameBitsForAnyGOMAXPROCS(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	points := hardSets(3000)
	for _, name := range []string{"manifold", "few duplicates", "outliers"} {
		m := points[name]
		queries := m.Rows(0, 500)
		var first, found *Neighbors
		for _, procs := range []int{1, 7} {
			runtime.GOMAXPROCS(procs)
			nb := approximated(t, m, 10)
			x := need(NewIndex(t.Context(), m, Options{Search: Approximate}))(t)
			near := need(x.Search(t.Context(), queries, 10))(t)
			if first == nil {
				first, found = nb, near
			}
			same(t, nb, first)
			same(t, near, found)
		}
	}
}

func TestApproximateSeeds(t *testing.T) {
	m := manifold(5000, 30, 12)
	one := need(KNN(t.Context(), m, 10, Options{Search: Approximate, Seed: 1}))(t)
	two := need(KNN(t.Context(), m, 10, Options{Search: Approximate, Seed: 2}))(t)
	if slices.Equal(one.Index, two.Index) {
		t.Error("two seeds have the same result")
	}
}

func TestApproximateOfPermutedRows(t *testing.T) {
	m := manifold(5000, 40, 8)
	perm := rand.New(rand.NewPCG(1, 1)).Perm(m.N)
	shuffled := data.NewMatrix(m.N, m.D)
	for i, j := range perm {
		copy(shuffled.Row(i), m.Row(j))
	}
	if r := recall(approximated(t, shuffled, 15), exactly(t, shuffled, 15)); !(r >= 0.97) {
		t.Errorf("recall %.4f", r)
	}
}

func TestApproximateSearch(t *testing.T) {
	const n = 6000
	for name, m := range hardSets(n) {
		t.Run(name, func(t *testing.T) {
			base, queries := m.Rows(0, n-300), m.Rows(n-300, n)
			x := need(NewIndex(t.Context(), base, Options{Search: Approximate}))(t)
			rough := need(NewIndex(t.Context(), base, Options{Search: Approximate, Rough: true}))(t)
			for _, k := range []int{1, 15, 120} {
				near := need(x.Search(t.Context(), queries, k))(t)
				wellFormed(t, base, queries, near, false)
				nearest := need(Search(t.Context(), base, queries, k, Options{Search: Exact}))(t)
				least := 0.95
				if name == "few duplicates" {
					least = 0.93 // a point's edges lead to places a third as many
				}
				if r := recall(near, nearest); !(r >= least) {
					t.Errorf("k = %d: recall %.4f", k, r)
				}
				if r := recall(need(rough.Search(t.Context(), queries, k))(t), nearest); !(r >= least-0.07) {
					t.Errorf("k = %d: rough recall %.4f", k, r)
				}
				single := need(x.Search(t.Context(), queries.Rows(77, 78), k))(t)
				if !slices.Equal(single.Index, near.Of(77)) {
					t.Errorf("k = %d: a single query has other neighbours: %v, not %v", k, single.Index, near.Of(77))
				}
			}
		})
	}
}

// A search compares bytes unless they are too coarse, and keeps as many points as its base
// needs.
func TestApproximateSearchIsCalibrated(t *testing.T) {
	const n, k = 10_000, 15
	sets := hardSets(n)
	kinds := map[string]*data.Matrix{"manifold": sets["manifold"], "outliers": sets["outliers"]}
	kinds["scales"] = filled(n, 30, func(_ int, row []float32, r *rand.Rand) { // one column counts, by two values far apart
		normalRow(row[:8], r)
		row[20] = float32(1e5 * r.IntN(2))
	})
	kinds["noise"] = filled(n, 20, func(_ int, row []float32, r *rand.Rand) {
		for l := range row {
			row[l] = r.Float32()
		}
	})
	for name, m := range kinds {
		base, queries := m.Rows(0, n-500), m.Rows(n-500, n)
		nearest := need(Search(t.Context(), base, queries, k, Options{Search: Exact}))(t)
		for _, rough := range []bool{false, true} {
			x := need(NewIndex(t.Context(), base, Options{Search: Approximate, Rough: rough}))(t)
			if bytes := x.graph.quantization != nil; bytes != (name == "manifold" || name == "noise") {
				t.Errorf("%s: bytes are compared: %v", name, bytes)
			}
			least := leastKept
			if rough {
				least = leastRough
			}
			if more := x.graph.kept > least; more != (name == "noise") && name != "scales" { // of two clusters without edges between them
				t.Errorf("%s: %d points are kept, at least %d", name, x.graph.kept, least)
			}
			r := recall(need(x.Search(t.Context(), queries, k))(t), nearest)
			if least := map[bool]float64{false: 0.965, true: 0.94}[rough]; !(r >= least) {
				t.Errorf("%s, rough %v: recall %.4f", name, rough, r)
			}
		}
	}
}

// Bytes reach beyond the base: points outside its box, as of another batch, find as many of
// their neighbours as with float32; those very far away are searched exactly.
func TestApproximateSearchOutsideTheBase(t *testing.T) {
	const k = 15
	base := normal(6000, 20, 1)
	x := need(NewIndex(t.Context(), base, Options{Search: Approximate}))(t)
	if x.graph.quantization == nil {
		t.Fatal("bytes are not compared")
	}
	for _, tc := range []struct{ shift, least float32 }{{0, 0.95}, {6, 0.75}, {12, 0.6}, {30, 0.5}, {100, 0.5}, {1e5, 1}} {
		queries := normal(200, 20, 2)
		for i := range queries.N {
			queries.Row(i)[3] += tc.shift
			queries.Row(i)[7] -= tc.shift
		}
		nearest := need(Search(t.Context(), base, queries, k, Options{Search: Exact}))(t)
		r := recall(need(x.Search(t.Context(), queries, k))(t), nearest)
		t.Logf("shifted by %g: recall %.3f", tc.shift, r)
		if !(r >= float64(tc.least)) {
			t.Errorf("shifted by %g: recall %.3f, want %g", tc.shift, r, tc.least)
		}
	}
}

// Queries beyond the range of float32 are searched exactly, as are those for more
// neighbours than a walk finds.
func TestApproximateSearchFarAway(t *testing.T) {
	base := normal(3000, 12, 1)
	queries := normal(20, 12, 2)
	for l := range queries.X[:60] {
		queries.X[l] *= 1e30
	}
	for _, k := range []int{5, 3000} {
		near := need(Search(t.Context(), base, queries, k, Options{Search: Approximate}))(t)
		nearest := need(Search(t.Context(), base, queries, k, Options{Search: Exact}))(t)
		if k > 5 {
			same(t, near, nearest)
		} else {
			same(t, &Neighbors{N: 5, K: k, Index: near.Index[:5*k], Dist2: near.Dist2[:5*k]}, &Neighbors{N: 5, K: k, Index: nearest.Index[:5*k], Dist2: nearest.Dist2[:5*k]})
		}
	}
}

func TestSearchMethod(t *testing.T) {
	accelerator := device.New("cuda:0", struct{ device.Backend }{})
	for _, tc := range []struct {
		n, d, k          int
		want, wantDevice bool
	}{
		{10000, 50, 15, false, false},
		{70000, 50, 15, false, false},
		{100000, 784, 15, false, false},
		{100001, 50, 15, true, false},
		{1000000, 8, 15, false, false},
		{1000000, 9, 15, true, false},
		{150000, 50, 100, false, false},
		{170000, 50, 100, true, false},
		{250000, 50, 200, false, false},
		{350000, 50, 200, true, false},
		{100001, 30000, 1, true, false},
		{1000000, 784, 15, true, false},
		{1900000, 50, 15, true, false},
		{2200000, 50, 15, true, true},
		{2200000, 50, 30, true, false},
		{1000000, 50, 5, true, true},
		{10000000, 8, 15, false, false},
		{10000000, 784, 15, true, true},
		{1 << 31, 1 << 20, 1, true, true},
	} {
		for on, want := range map[*device.Device]bool{nil: tc.want, accelerator: tc.wantDevice} {
			if got := Auto.Approximates(on, tc.n, tc.d, tc.k); got != want {
				t.Errorf("auto, %d points of %d values, k = %d, on the CPU %t: approximate %v", tc.n, tc.d, tc.k, on == nil, got)
			}
			if Exact.Approximates(on, tc.n, tc.d, tc.k) || !Approximate.Approximates(on, tc.n, tc.d, tc.k) {
				t.Errorf("%v, %v", Exact, Approximate)
			}
		}
	}
	for _, word := range Auto.Words() {
		var s SearchMethod
		if err := s.UnmarshalText([]byte(word)); err != nil || fmt.Sprint(s) != word {
			t.Errorf("%q reads as %v: %v", word, s, err)
		}
	}
	if err := new(SearchMethod).UnmarshalText([]byte("fast")); err == nil {
		t.Error("fast is a method")
	}
}

// Distances do not depend on an offset of the points, nor does the recall of neighbours that
// are not the nearest.
func TestEstimateRecallOfPointsWithAnOffset(t *testing.T) {
	m := normal(300, 10, 1)
	m.Offset = slices.Repeat([]float64{1e8}, m.D)
	nb := &Neighbors{N: m.N, K: 1}
	for i := range m.N {
		j := (i + 1) % m.N
		nb.Index, nb.Dist2 = append(nb.Index, int32(j)), append(nb.Dist2, dist2(m.Row(i), m.Row(j), math.Inf(1)))
	}
	if r := need(EstimateRecall(t.Context(), m, nb, 1, Options{}))(t); r.Share > 0.05 {
		t.Errorf("the recall of random neighbours is %v", r.Share)
	}
}
