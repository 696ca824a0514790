package quality

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/safetensors"
)

// normal draws n×d coordinates with standard deviation scale.
func normal[T Float](seed uint64, n, d int, scale float64) []T {
	s := rng.New(seed, rng.Init)
	x := make([]T, n*d)
	for i := range x {
		x[i] = T(scale * s.Normal())
	}
	return x
}

func matrix(x []float32, d int) *data.Matrix { return &data.Matrix{N: len(x) / d, D: d, X: x} }

// permuted returns the rows of x in another order, and that order.
func permuted[T any](x []T, d int, seed uint64) ([]T, []int) {
	s := rng.New(seed, rng.Shuffle)
	order := s.Perm(len(x) / d)
	out := make([]T, 0, len(x))
	for _, i := range order {
		out = append(out, x[i*d:(i+1)*d]...)
	}
	return out, order
}

// rotated returns planar points turned by an angle in radians.
func rotated(x []float64, angle float64) []float64 {
	out := make([]float64, len(x))
	s, c := math.Sincos(angle)
	for i := 0; i < len(x); i += 2 {
		out[i], out[i+1] = c*x[i]-s*x[i+1], s*x[i]+c*x[i+1]
	}
	return out
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(math.Abs(want), 1e-300)) {
		t.Errorf("%s: got %.17g, want %.17g (relative %.2g, at most %.2g)", what, got, want, math.Abs(got/want-1), tolerance)
	}
}

// sameBits calls metric with several numbers of processors.
func sameBits(t *testing.T, what string, metric func() (float64, error)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first float64
	for i, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		v, err := metric()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if i == 0 {
			first = v
		} else if v != first {
			t.Errorf("%s: %v on %d processors, %v on 1", what, v, procs, first)
		}
	}
}

func value(t *testing.T, f *safetensors.File, name string) []float64 {
	t.Helper()
	saved := need(f.Tensor(name))(t)
	return need(saved.Float64s())(t)
}

// nearestNaive returns the k nearest other points of each point.
func nearestNaive[T Float](x []T, d, k int) []int32 {
	n := len(x) / d
	var out []int32
	for i := range n {
		others := make([]int32, 0, n)
		for j := range n {
			if j != i {
				others = append(others, int32(j))
			}
		}
		distance := func(j int32) float64 { return squaredDistance(x[i*d:(i+1)*d], x[int(j)*d:(int(j)+1)*d]) }
		slices.SortStableFunc(others, func(a, b int32) int { return cmp.Compare(distance(a), distance(b)) })
		out = append(out, others[:k]...)
	}
	return out
}

func symmetric(neighbours []int32, k int) (heads, tails []int32) {
	edges := map[[2]int32]bool{}
	for e, j := range neighbours {
		i := int32(e / k)
		edges[[2]int32{i, j}] = true
		edges[[2]int32{j, i}] = true
	}
	for e := range edges {
		heads, tails = append(heads, e[0]), append(tails, e[1])
	}
	return heads, tails
}

// The golden values were computed by NumPy, SciPy and scikit-learn.
func TestGolden(t *testing.T) {
	f := need(safetensors.ReadFile(filepath.Join("testdata", "metrics.safetensors")))(t)
	const k, tolerance = 15, 1e-9
	x, y := value(t, f, "X"), value(t, f, "Y")
	inData := need(f.Tensors["knn_x"].Int32s())(t)

	z := need(PartitionFunction(t.Context(), y, 2))(t)
	near(t, "partition function", z, value(t, f, "partition")[0], tolerance)

	single := make([]float32, len(y))
	for i, v := range y {
		single[i] = float32(v)
	}
	near(t, "partition function in float32", need(PartitionFunction(t.Context(), single, 2))(t), value(t, f, "partition")[0], 1e-6)

	heads, tails := symmetric(inData, k)
	if want, _ := f.Tensors["edges"].Int32s(); len(heads) != int(want[0]) {
		t.Fatalf("%d edges, want %d", len(heads), want[0])
	}
	near(t, "KL", need(klOf(t.Context(), heads, tails, y, 2, z))(t), value(t, f, "kl")[0], tolerance)

	if got := nearestNaive(x, 20, k); !slices.Equal(got, inData) {
		// The order within a row may differ; the sets may not.
		for i := range 300 {
			a, b := slices.Sorted(slices.Values(got[i*k:(i+1)*k])), slices.Sorted(slices.Values(inData[i*k:(i+1)*k]))
			if !slices.Equal(a, b) {
				t.Fatalf("the neighbours of point %d are %v, in the file %v", i, a, b)
			}
		}
	}
	near(t, "recall", need(knnRecall(inData, nearestNaive(y, 2, k), k, 300))(t), value(t, f, "knn_recall")[0], tolerance)

	// Rounding the coordinates to float32 swaps the ranks of a few pairs.
	x32 := make([]float32, len(x))
	for i, v := range x {
		x32[i] = float32(v)
	}
	rho := need(spearman(t.Context(), matrix(x32, 20), matrix(single, 2), 300, 0))(t)
	near(t, "Spearman", rho.Mean, value(t, f, "spearman")[0], 1e-5)
}

func partitionNaive[T Float](e []T, d int) float64 {
	var sum float64
	for i := 0; i < len(e); i += d {
		for j := 0; j < len(e); j += d {
			if i != j {
				var s float64
				for k := range d {
					diff := float64(e[i+k]) - float64(e[j+k])
					s += diff * diff
				}
				sum += 1 / (1 + s)
			}
		}
	}
	return sum
}

func TestPartitionFunction(t *testing.T) {
	for _, d := range []int{1, 2, 3, 6, 50} {
		for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 300, 1500} {
			x := normal[float64](uint64(n), n, d, 2)
			got := need(PartitionFunction(t.Context(), x, d))(t)
			near(t, "float64", got, partitionNaive(x, d), 1e-12)
			y := normal[float32](uint64(n), n, d, 2)
			got = need(PartitionFunction(t.Context(), y, d))(t)
			near(t, "float32", got, partitionNaive(y, d), 1e-6)
		}
	}
}

func TestPartitionFunctionProperties(t *testing.T) {
	const n = 700
	same := make([]float32, 2*n)
	for i := range same {
		same[i] = 3.25
	}
	if z, err := PartitionFunction(t.Context(), same, 2); err != nil || z != n*(n-1) {
		t.Errorf("coinciding points: %v, %v; want n(n−1) = %d", z, err, n*(n-1))
	}

	x := normal[float64](1, n, 2, 3)
	want, _ := PartitionFunction(t.Context(), x, 2)
	shuffled, _ := permuted(x, 2, 5)
	moved := make([]float64, len(x))
	wide := make([]float64, len(x))
	for i := range x {
		moved[i], wide[i] = x[i]+100, 2*x[i]
	}
	for name, other := range map[string][]float64{"permuted": shuffled, "rotated": rotated(x, 1), "moved": moved} {
		got, _ := PartitionFunction(t.Context(), other, 2)
		near(t, name, got, want, 1e-11)
	}
	if z, _ := PartitionFunction(t.Context(), wide, 2); z >= want {
		t.Errorf("twice as large: %v, not below %v", z, want)
	}
	// Far out, 1/(1+d²) is 1/d²: ten times the size, a hundredth of the sum.
	far, farther := []float64{0, 1e6, 3e6}, []float64{0, 1e7, 3e7}
	a, _ := PartitionFunction(t.Context(), far, 1)
	b, _ := PartitionFunction(t.Context(), farther, 1)
	near(t, "far", a, 100*b, 1e-9)

	y := normal[float32](1, 5000, 2, 3)
	sameBits(t, "d=2", func() (float64, error) { return PartitionFunction(t.Context(), y, 2) })
	sameBits(t, "d=5", func() (float64, error) { return PartitionFunction(t.Context(), y, 5) })
}

func TestSimilarities(t *testing.T) {
	lattice := make([]float32, 4000)
	for i := range lattice {
		lattice[i] = float32(i%7) / 3
	}
	for name, c := range map[string][]float32{
		"narrow":  normal[float32](1, 4000, 1, 0.01),
		"medium":  normal[float32](2, 4000, 1, 5),
		"wide":    normal[float32](3, 4000, 1, 1e4),
		"huge":    normal[float32](4, 4000, 1, 1e18),
		"lattice": lattice,
		"equal":   slices.Repeat([]float32{float32(math.Sqrt2 / 2)}, 4000), // every term rounds alike
	} {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 127, 128, 129, 255, 511, 2000} {
			for _, at := range []float32{0, 1.5} {
				xs, ys := c[:n], c[2000:2000+n]
				var want float64
				for j := range xs {
					dx, dy := float64(at)-float64(xs[j]), float64(at)-float64(ys[j])
					want += 1 / (1 + dx*dx + dy*dy)
				}
				e := []float32{at, at}
				for j := range xs {
					e = append(e, xs[j], ys[j])
				}
				near(t, name+", in use", similarityTerms(e, n+1, 2, false)(0, 1, n+1, nil), want, 1e-6)
			}
		}
	}
}

func TestKL(t *testing.T) {
	// Four points, by hand: q is 1/2 on both edges.
	e := []float64{0, 1, 5, 6}
	z, _ := PartitionFunction(t.Context(), e, 1)
	got := need(klOf(t.Context(), []int32{0, 1, 2, 3}, []int32{1, 0, 3, 2}, e, 1, z))(t)
	near(t, "by hand", got, math.Log(0.25/(0.5/z)), 1e-14)

	const n = 400
	x := normal[float64](7, n, 2, 2)
	heads, tails := symmetric(nearestNaive(x, 2, 5), 5)
	z, _ = PartitionFunction(t.Context(), x, 2)
	want, _ := klOf(t.Context(), heads, tails, x, 2, z)
	if !(want > 0) {
		t.Errorf("KL = %v; it is positive unless the embedding is perfect", want)
	}
	slices.Reverse(heads)
	slices.Reverse(tails)
	got, _ = klOf(t.Context(), heads, tails, rotated(x, 2), 2, z)
	near(t, "rotated, edges reversed", got, want, 1e-12)
	sameBits(t, "KL", func() (float64, error) {
		big := normal[float32](8, n, 3, 1)
		h, u := slices.Repeat(heads, 20), slices.Repeat(tails, 20)
		return klOf(t.Context(), h, u, big, 3, 1000)
	})
}

func TestKNNRecall(t *testing.T) {
	for name, tc := range map[string]struct {
		x, y      []int32
		k, points int
		want      float64
	}{
		"all":             {[]int32{1, 2, 0, 2, 0, 1}, []int32{2, 1, 2, 0, 1, 0}, 2, 3, 1},
		"none":            {[]int32{1, 2, 3, 0}, []int32{2, 3, 0, 1}, 1, 4, 0},
		"half":            {[]int32{1, 2, 3, 0}, []int32{1, 2, 0, 1}, 1, 4, 0.5},
		"duplicate":       {[]int32{1, 2, 0, 2, 0, 1}, []int32{1, 1, 2, 2, 0, 0}, 2, 3, 0.5},
		"not the last's":  {[]int32{1, 1, 0}, []int32{1, 0, 1}, 1, 3, 1. / 3},
		"of others, all":  {[]int32{7, 2, 0, 9}, []int32{2, 7, 9, 0}, 2, 10, 1},
		"of others, half": {[]int32{7, 2, 0, 9}, []int32{2, 3, 9, 1}, 2, 10, 0.5},
		"of others, none": {[]int32{3}, []int32{4}, 1, 5, 0},
		"of fewer others": {[]int32{0, 1, 1, 0}, []int32{0, 1, 0, 0}, 1, 2, 0.75},
	} {
		if got, err := knnRecall(tc.x, tc.y, tc.k, tc.points); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
	const n, k = 20000, 3
	s := rng.New(1, rng.Init)
	x, y := make([]int32, n*k), make([]int32, n*k)
	for i := range x {
		x[i], y[i] = int32(s.IntN(n)), int32(s.IntN(n))
		if i%4 == 0 {
			y[i] = x[i]
		}
	}
	got, _ := knnRecall(x, y, k, n)
	near(t, "a quarter agrees", got, 0.25, 0.01)
	sameBits(t, "recall", func() (float64, error) { return knnRecall(x, y, k, n) })
}

// spearmanNaive follows the textbook: mean ranks, then Pearson's correlation.
func spearmanNaive[T Float](a []T, da int, b []T, db int) float64 {
	ranks := func(x []T, d int) []float64 {
		var v []float64
		for i := 0; i < len(x); i += d {
			for j := i + d; j < len(x); j += d {
				v = append(v, squaredDistance(x[i:i+d], x[j:j+d]))
			}
		}
		out := make([]float64, len(v))
		for p := range v {
			for q := range v {
				switch {
				case v[q] < v[p]:
					out[p]++
				case v[q] == v[p]:
					out[p] += 0.5
				}
			}
		}
		return out
	}
	p, q := ranks(a, da), ranks(b, db)
	mean := float64(len(p)) / 2
	var xx, yy, xy float64
	for i := range p {
		xx += (p[i] - mean) * (p[i] - mean)
		yy += (q[i] - mean) * (q[i] - mean)
		xy += (p[i] - mean) * (q[i] - mean)
	}
	return xy / math.Sqrt(xx*yy)
}

// spearmanOf is the correlation over all points.
func spearmanOf(t *testing.T, x []float32, dx int, y []float32, dy int) float64 {
	t.Helper()
	e := need(spearman(t.Context(), matrix(x, dx), matrix(y, dy), len(x), 0))(t)
	if !e.Exact || e.Error != 0 {
		t.Errorf("all points give %+v", e)
	}
	return e.Mean
}

func TestSpearmanNaive(t *testing.T) {
	grid := make([]float32, 2*60) // few different distances
	bits := make([]float32, 40*60)
	for i := range grid {
		grid[i] = float32(i * i % 5)
	}
	s := rng.New(5, rng.Init)
	for i := range bits {
		bits[i] = float32(s.IntN(2))
	}
	duplicates := normal[float32](1, 60, 2, 1)
	copy(duplicates[40:], duplicates[:40])
	for _, d := range []int{1, 2, 7, 8, 9, 16, 17, 40} {
		x := normal[float32](2, 60, d, 1)
		for name, y := range map[string][]float32{"random": normal[float32](3, 60, 2, 1), "grid": grid, "duplicates": duplicates} {
			want := spearmanNaive(x, d, y, 2)
			if a, b := spearmanOf(t, x, d, y, 2), spearmanOf(t, y, 2, x, d); math.Abs(a-want) > 1e-5 || math.Abs(a-b) > 1e-12 {
				t.Errorf("%s, %d: %v, and the other way round %v; want %v", name, d, a, b, want)
			}
		}
	}
	near(t, "bits", spearmanOf(t, bits, 40, grid, 2), spearmanNaive(bits, 40, grid, 2), 1e-12)
}

// Whatever the size of the values, and where some distances are tiny beside others.
func TestSpearmanOfAnyScale(t *testing.T) {
	const n, d = 60, 30
	y := normal[float32](3, n, 2, 1)
	for _, scale := range []float32{1e-37, 1e-20, 1, 1e18, 1e37} {
		x := normal[float32](2, n, d, 1)
		for i := range x {
			x[i] *= scale
		}
		for _, outlier := range []float32{x[0], 3e38} {
			x[0] = outlier
			if got, want := spearmanOf(t, x, d, y, 2), spearmanNaive(x, d, y, 2); math.Abs(got-want) > 1e-5 {
				t.Errorf("times %g, with %g: %v, want %v", scale, outlier, got, want)
			}
		}
	}
}

func TestSpearmanProperties(t *testing.T) {
	line := []float32{0, 1, 3}     // distances 1, 3, 2
	reversed := []float32{0, 3, 1} // distances 3, 1, 2
	if rho := spearmanOf(t, line, 1, reversed, 1); math.Abs(rho+1) > 1e-15 {
		t.Errorf("reversed order: %v; want −1", rho)
	}
	const n = 500
	x := normal[float32](1, n, 2, 1)
	y := normal[float32](2, n, 3, 1)
	for i := range n { // related, but not the same
		y[3*i] += 2 * x[2*i]
	}
	want := spearmanOf(t, x, 2, y, 3)
	if want < 0.1 || want > 0.95 {
		t.Fatalf("rho = %v", want)
	}
	scaled := make([]float32, len(x))
	for i := range x {
		scaled[i] = 8 * x[i]
	}
	if rho := spearmanOf(t, x, 2, scaled, 2); math.Abs(rho-1) > 1e-15 {
		t.Errorf("with itself, scaled: %v, want 1", rho)
	}
	if rho := spearmanOf(t, scaled, 2, y, 3); rho != want {
		t.Errorf("scaled: %v, want %v", rho, want)
	}
	px, _ := permuted(x, 2, 9)
	py, _ := permuted(y, 3, 9)
	near(t, "permuted", spearmanOf(t, px, 2, py, 3), want, 1e-12)
}

// The standard error is the deviation of samples, of whatever share of the points: of points
// that are alike, in clusters, and with an outlier.
func TestSpearmanSample(t *testing.T) {
	const n, repetitions = 500, 60
	for name, change := range map[string]func(x []float32, i int){
		"alike":    func([]float32, int) {},
		"clusters": func(x []float32, i int) { x[0] += float32(20 * (i % 5)) },
		"outlier": func(x []float32, i int) {
			if i == 0 {
				x[0] = 1000
			}
		},
	} {
		x := matrix(normal[float32](1, n, 3, 1), 3)
		y := matrix(normal[float32](2, n, 2, 1), 2)
		for i := range n {
			change(x.Row(i), i)
			y.Row(i)[0] += x.Row(i)[0]
		}
		all := spearmanOf(t, x.X, 3, y.X, 2)
		for _, sample := range []int{60, 250} {
			var off, squares, claimed float64
			for seed := range uint64(repetitions) {
				e := need(spearman(t.Context(), x, y, sample, seed))(t)
				off += (e.Mean - all) / repetitions
				squares += (e.Mean - all) * (e.Mean - all) / repetitions
				claimed += e.Error / repetitions
			}
			if spread := math.Sqrt(squares); math.Abs(claimed/spread-1) > 0.25 || math.Abs(off) > spread/2 {
				t.Errorf("%s, %d points: %g off, spread %g, said to be %g", name, sample, off, spread, claimed)
			}
		}
		sameBits(t, "Spearman", func() (float64, error) {
			e, err := spearman(t.Context(), x, y, 300, 1)
			return e.Mean + e.Error, err
		})
	}
}

func TestRanks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50, 1000, 5000} {
		s := rng.New(uint64(n), rng.Init)
		for name, of := range map[string]func(i int) uint32{
			"random":     func(int) uint32 { return uint32(s.Uint64()) },
			"equal":      func(int) uint32 { return 7 },
			"two values": func(i int) uint32 { return uint32(i%2) * math.MaxUint32 },
			"sorted":     func(i int) uint32 { return uint32(i) },
			"geometric":  func(i int) uint32 { return 1 << (i % 32) },
		} {
			values := make([]uint32, n)
			for i := range values {
				values[i] = of(i)
			}
			r, sorted := rank(slices.Clone(values)), slices.Sorted(slices.Values(values))
			for p, v := range values {
				first, _ := slices.BinarySearch(sorted, v)
				end := len(sorted)
				if v < math.MaxUint32 {
					end, _ = slices.BinarySearch(sorted, v+1)
				}
				if r.twice[p] != uint32(first+1+end) {
					t.Fatalf("%s, n = %d: twice the rank of %v is %d, want %d", name, n, v, r.twice[p], first+1+end)
				}
			}
			for k := 1; k < n; k++ {
				if values[r.order[k-1]] > values[r.order[k]] {
					t.Fatalf("%s, n = %d: %v before %v", name, n, values[r.order[k-1]], values[r.order[k]])
				}
			}
		}
	}
}

// Distances that differ by rounding errors have the same rank.
func TestEqualDistances(t *testing.T) {
	const n, d = 40, 300
	x, y := data.NewMatrix(n, d), normal[float32](3, n, 2, 1)
	for i := range n { // unit vectors of different entries
		for k := range i%7 + 1 {
			x.Row(i)[7*i+k] = float32(1 / math.Sqrt(float64(i%7+1)))
		}
	}
	if e, err := spearman(t.Context(), x, matrix(y, 2), n, 0); !errors.Is(err, ErrUndefined) {
		t.Errorf("%v, %v", e, err)
	}
	x.Row(0)[0] = 0.99
	spearmanOf(t, x.X, d, y, 2)
}

func TestVote(t *testing.T) {
	class := []int32{5, 5, 9, 9, 7}
	for name, tc := range map[string]struct {
		rows []int32
		want int32
	}{
		"one":              {[]int32{4}, 7},
		"majority":         {[]int32{4, 2, 3}, 9},
		"tie, nearest":     {[]int32{2, 0, 1, 3}, 9},
		"tie, all single":  {[]int32{4, 0, 2}, 7},
		"later majority":   {[]int32{4, 0, 2, 3}, 9},
		"tie of the later": {[]int32{4, 0, 2, 1, 3}, 5},
	} {
		if got := vote(tc.rows, class); got != tc.want {
			t.Errorf("%s: class %d, want %d", name, got, tc.want)
		}
	}
}

func TestKNNAccuracy(t *testing.T) {
	const n, k = 5000, 10 // more than one block of training points
	for _, d := range []int{1, 2, 3} {
		x := normal[float32](uint64(d), n, d, 1)
		for i := range x { // a grid: many equal distances
			x[i] = float32(math.Round(float64(4 * x[i])))
		}
		classes := make([]int32, n)
		s := rng.New(3, rng.Init)
		for i := range classes {
			classes[i] = int32(x[i*d]/3) - 2
			if s.IntN(4) == 0 {
				classes[i] = int32(s.IntN(5))
			}
		}
		got := need(knnAccuracy(t.Context(), matrix(x, d), classes, k, 0.02, 1, nil))(t)

		split := rng.New(1, rng.Split)
		order := split.Perm(n)
		test, train := order[:n/50], slices.Sorted(slices.Values(order[n/50:]))
		right := 0
		for _, i := range test {
			distances := make([]float64, n)
			for j := range distances {
				distances[j] = squaredDistance(x[i*d:(i+1)*d], x[j*d:(j+1)*d])
			}
			sorted := slices.Clone(train)
			slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
			var rows []int32
			for _, j := range sorted[:k] {
				rows = append(rows, int32(j))
			}
			if vote(rows, classes) == classes[i] {
				right++
			}
		}
		if want := float64(right) / float64(len(test)); got != want {
			t.Errorf("d=%d: %v, want %v", d, got, want)
		}
		sameBits(t, "accuracy", func() (float64, error) {
			return knnAccuracy(t.Context(), matrix(x, d), classes, k, 0.02, 1, nil)
		})
	}
}

// Holding out some rows of one matrix is splitAccuracy.
func TestHeldOutAccuracy(t *testing.T) {
	const n, k, d = 3000, 7, 2
	x := normal[float32](1, n, d, 1)
	for i := range x {
		x[i] = float32(math.Round(float64(4 * x[i])))
	}
	classes := make([]int32, n)
	for i := range classes {
		classes[i] = int32(x[i*d]/3) - 2
	}
	all := matrix(x, d)
	want := need(knnAccuracy(t.Context(), all, classes, k, 0.1, 1, nil))(t)
	stream := rng.New(1, rng.Split)
	order := stream.Perm(n)
	held := data.NewMatrix(0, d)
	train := data.NewMatrix(0, d)
	var heldClasses, trainClasses []int32
	for _, i := range order[:n/10] {
		held.X, heldClasses = append(held.X, all.Row(i)...), append(heldClasses, classes[i])
		held.N++
	}
	for _, i := range slices.Sorted(slices.Values(order[n/10:])) {
		train.X, trainClasses = append(train.X, all.Row(i)...), append(trainClasses, classes[i])
		train.N++
	}
	got, err := HeldOutAccuracy(t.Context(), train, trainClasses, held, heldClasses, k, nil)
	if err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	sameBits(t, "accuracy", func() (float64, error) {
		return HeldOutAccuracy(t.Context(), train, trainClasses, held, heldClasses, k, nil)
	})

	for i := range heldClasses { // a class that nobody has taught
		heldClasses[i] = 99
	}
	if got, err := HeldOutAccuracy(t.Context(), train, trainClasses, held, heldClasses, k, nil); err != nil || got != 0 {
		t.Errorf("unknown classes: %v, %v; want 0", got, err)
	}
}

func TestKNNAccuracySeparated(t *testing.T) {
	x := normal[float32](1, 700, 2, 1)
	classes := make([]int32, 700)
	for i := range classes {
		classes[i] = int32(i%3) - 1
		x[2*i] += 100 * float32(classes[i])
	}
	for _, seed := range []uint64{1, 2} {
		if acc, err := knnAccuracy(t.Context(), matrix(x, 2), classes, 10, 1./7, seed, nil); err != nil || acc != 1 {
			t.Errorf("separated classes: %v, %v; want 1", acc, err)
		}
	}
	s := rng.New(5, rng.Shuffle)
	for i, j := range s.Perm(700) {
		classes[i] = int32(j % 3)
	}
	if acc, _ := knnAccuracy(t.Context(), matrix(x, 2), classes, 10, 0.5, 1, nil); acc < 0.2 || acc > 0.47 {
		t.Errorf("random classes: %v, want about 1/3", acc)
	}
}

func TestRefusals(t *testing.T) {
	nan := float32(math.NaN())
	three := []float32{0, 0, 1, 0, 0, 2}
	m := matrix(three, 2)
	for name, tc := range map[string]struct {
		err, is error
		want    string
	}{
		"partition: width":                    {errorOf(PartitionFunction(t.Context(), three, 4)), ErrInput, "embedding: got 6 values, want points of 4"},
		"partition: width 0":                  {errorOf(PartitionFunction(t.Context(), three, 0)), ErrInput, "points of 0 coordinates"},
		"partition: NaN":                      {errorOf(PartitionFunction(t.Context(), []float32{1, 2, 3, nan}, 2)), ErrNotFinite, "point 1 of the embedding (counted from 0): got NaN as coordinate 1"},
		"partition: infinite":                 {errorOf(PartitionFunction(t.Context(), []float64{1, math.Inf(-1)}, 1)), ErrNotFinite, "-Inf"},
		"recall: range":                       {errorOf(knnRecall([]int32{1, 0}, []int32{1, 2}, 1, 2)), ErrInput, "point 1 (counted from 0): got 2"},
		"recall: empty":                       {errorOf(knnRecall(nil, nil, 5, 1)), ErrUndefined, "no points"},
		"Spearman: collapsed":                 {errorOf(spearman(t.Context(), m, matrix(make([]float32, 3), 1), 10, 1)), ErrUndefined, "all distances are equal"},
		"held-out accuracy: width":            {errorOf(HeldOutAccuracy(t.Context(), m, []int32{1, 2, 3}, matrix(three, 3), []int32{1, 2}, 1, nil)), ErrInput, "held-out points: got 3 coordinates, want 2"},
		"held-out accuracy: training classes": {errorOf(HeldOutAccuracy(t.Context(), m, nil, m, []int32{1, 2, 3}, 1, nil)), ErrInput, "classes: got 0, want one for each of the 3 points of the training"},
		"held-out accuracy: held-out classes": {errorOf(HeldOutAccuracy(t.Context(), m, []int32{1, 2, 3}, m, nil, 1, nil)), ErrInput, "classes: got 0, want one for each of the 3 points of the held-out"},
		"held-out accuracy: k":                {errorOf(HeldOutAccuracy(t.Context(), m, []int32{1, 2, 3}, m, []int32{1, 2, 3}, 4, nil)), ErrInput, "neighbours: got 4, want 1 to 3"},
		"held-out accuracy: none":             {errorOf(HeldOutAccuracy(t.Context(), m, []int32{1, 2, 3}, data.NewMatrix(0, 2), nil, 1, nil)), ErrUndefined, "no points"},
		"held-out accuracy: NaN":              {errorOf(HeldOutAccuracy(t.Context(), m, []int32{1, 2, 3}, matrix([]float32{nan, 1}, 2), []int32{1}, 1, nil)), ErrNotFinite, "point 0 of the held-out points' embedding"},
	} {
		if !errors.Is(tc.err, tc.is) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, tc.err, tc.want)
		}
	}
}

func BenchmarkPartitionFunction(b *testing.B) {
	n := 20000
	if testing.Short() {
		n = 2000
	}
	y := normal[float32](1, n, 2, 10)
	pairs := float64(n) * float64(n-1) / 2
	b.Run("float32", func(b *testing.B) {
		for b.Loop() {
			PartitionFunction(b.Context(), y, 2)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pairs, "ns/pair")
	})
	for _, d := range []int{1, 10, 50} {
		y := normal[float32](1, 5000, d, 3)
		b.Run(fmt.Sprintf("float32, d=%d", d), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				PartitionFunction(b.Context(), y, d)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(5000*4999/2), "ns/pair")
		})
	}
	z := normal[float64](1, n, 2, 10)
	b.Run("float64", func(b *testing.B) {
		for b.Loop() {
			PartitionFunction(b.Context(), z, 2)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pairs, "ns/pair")
	})
}

func BenchmarkSimilarities(b *testing.B) {
	of := similarityTerms(normal[float32](1, tileColumns, 2, 10), tileColumns, 2, false)
	for b.Loop() {
		of(0, 1, tileColumns, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tileColumns, "ns/pair")
}

func BenchmarkSpearman(b *testing.B) {
	for _, d := range []int{2, 50, 784} {
		b.Run(fmt.Sprintf("d=%d", d), func(b *testing.B) {
			x, y := matrix(normal[float32](1, DefaultSpearmanSample, d, 1), d), matrix(normal[float32](2, DefaultSpearmanSample, 2, 1), 2)
			b.ReportAllocs()
			for b.Loop() {
				spearman(b.Context(), x, y, DefaultSpearmanSample, 0)
			}
		})
	}
}

func BenchmarkKNNAccuracy(b *testing.B) {
	x := matrix(normal[float32](1, 70000, 2, 1), 2)
	classes := make([]int32, 70000)
	for b.Loop() {
		knnAccuracy(b.Context(), x, classes, 10, 1./7, 0, nil)
	}
}
