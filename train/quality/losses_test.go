package quality

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/internal/simd"
)

// lossNaive is the definition: −log p over the edges plus m times the mean of
// −log(1−p) over the ordered pairs, p as a function of the similarity.
func lossNaive[T Float](heads, tails []int32, e []T, d, m int, clamp float64, p func(q float64) float64) float64 {
	n := len(e) / d
	of := func(i, j int) float64 {
		return p(1 / (1 + squaredDistance(e[i*d:(i+1)*d], e[j*d:(j+1)*d])))
	}
	var edges, pairs float64
	for k := range heads {
		edges -= math.Log(max(clamp, of(int(heads[k]), int(tails[k]))))
	}
	for i := range n {
		for j := range n {
			if i != j {
				pairs -= math.Log(max(clamp, 1-of(i, j)))
			}
		}
	}
	return edges/float64(len(heads)) + float64(m)*pairs/float64(n*(n-1))
}

func TestExpectedLosses(t *testing.T) {
	const z = 0.01
	for _, d := range []int{1, 2, 3, 50} {
		for _, n := range []int{2, 63, 64, 65, 700} {
			x := normal[float64](uint64(n), n, d, 3)
			single := make([]float32, len(x))
			for i, v := range x {
				single[i] = float32(v)
				x[i] = float64(single[i])
			}
			heads, tails := symmetric(nearestNaive(x, d, min(5, n-1)), min(5, n-1))
			const m, clamp = 7, 1e-10
			discriminators := []Discriminator{neg(1), neg(1e-4), nc(z, m), umap()}
			probabilities := []func(q float64) float64{
				func(q float64) float64 { return q / (q + 1) },
				func(q float64) float64 { return q / (q + 1e-4) },
				func(q float64) float64 { return q / z / (q/z + m) },
				func(q float64) float64 { return q },
			}
			losses := need(ExpectedLosses(t.Context(), heads, tails, x, d, m, clamp, discriminators, nil))(t)
			losses32 := need(ExpectedLosses(t.Context(), heads, tails, single, d, m, clamp, discriminators, nil))(t)
			for k, p := range probabilities {
				want := lossNaive(heads, tails, x, d, m, clamp, p)
				near(t, "float64", losses[k], want, 1e-10)
				near(t, "float32", losses32[k], want, 1e-5)
			}
		}
	}
}

// Pairs so far from each other that 1−p rounds to 1 in single precision have
// their part in the loss all the same.
func TestExpectedLossesOfDistantPairs(t *testing.T) {
	x := normal[float32](1, 300, 2, 1e5)
	heads, tails := symmetric(nearestNaive(x, 2, 1), 1)
	losses := need(ExpectedLosses(t.Context(), heads, tails, x, 2, 5, 0, []Discriminator{neg(1e3)}, nil))(t)
	positive := need(ExpectedLosses(t.Context(), heads, tails, x, 2, 1, 0, []Discriminator{neg(1e3)}, nil))(t)
	var sum float64
	for i := range 300 {
		for j := range i {
			sum += math.Log1p(1 / (1e3 * (1 + squaredDistance(x[2*i:2*i+2], x[2*j:2*j+2]))))
		}
	}
	if got := simd.InverseLogSum([]float32{1e10}, 1e3, 1e3, simd.BoundOf[float32](0)); !(got > 0.99e-13) {
		t.Errorf("a distant pair counts %g", got)
	}
	if difference := losses[0] - positive[0]; math.Abs(difference-4*sum/(300*299/2)) > 1e-14*losses[0] {
		t.Errorf("four negatives more add %g, want %g", difference, 4*sum/(300*299/2))
	}
}

// Constants beyond single precision, such as a diverged run's, have the loss that double
// precision gives.
func TestExpectedLossesOfExtremeConstants(t *testing.T) {
	x := normal[float32](1, 60, 2, 1)
	copy(x[2:4], x[:2]) // two points coincide
	heads, tails := symmetric(nearestNaive(x, 2, 3), 3)
	for _, c := range []float64{1e-50, 1e-30, 1e-19, 1e19, 1e30, 1e50} {
		losses := need(ExpectedLosses(t.Context(), heads, tails, x, 2, 5, 1e-10, []Discriminator{neg(1), neg(c)}, nil))(t)
		near(t, "Neg-t-SNE", losses[0], lossNaive(heads, tails, x, 2, 5, 1e-10, func(q float64) float64 { return q / (q + 1) }), 1e-5)
		var sum float64 // with the complement in a form that does not cancel
		for i := range 60 {
			for j := range i {
				w := c * (1 + squaredDistance(x[2*i:2*i+2], x[2*j:2*j+2]))
				sum += min(-math.Log(1e-10), math.Log1p(1/w))
			}
		}
		want := 5 * sum / (60 * 59 / 2)
		for e := range heads {
			i, j := 2*heads[e], 2*tails[e]
			want += min(-math.Log(1e-10), math.Log1p(c*(1+squaredDistance(x[i:i+2], x[j:j+2])))) / float64(len(heads))
		}
		near(t, "an extreme constant", losses[1], want, 1e-5)
	}
}

// Without a clamp, coinciding points have a finite loss for either type.
func TestExpectedLossesWithoutClamp(t *testing.T) {
	heads, tails := []int32{0, 1}, []int32{1, 0}
	for name, measure := range map[string]func() ([]float64, error){
		"float32": func() ([]float64, error) {
			return ExpectedLosses(t.Context(), heads, tails, make([]float32, 4), 2, 5, 0, []Discriminator{umap()}, nil)
		},
		"float64": func() ([]float64, error) {
			return ExpectedLosses(t.Context(), heads, tails, make([]float64, 4), 2, 5, 0, []Discriminator{umap()}, nil)
		},
	} {
		if losses, err := measure(); err != nil || !(losses[0] > 5*80 && losses[0] < 5*800) {
			t.Errorf("%s: %v, %v", name, losses, err)
		}
	}
}

// Equal points count with the clamp.
func TestExpectedLossesOfEqualPoints(t *testing.T) {
	same := make([]float32, 40)
	heads, tails := []int32{0, 1}, []int32{1, 0}
	for _, clamp := range []float64{1e-10, 1e-4} {
		losses := need(ExpectedLosses(t.Context(), heads, tails, same, 2, 5, clamp, []Discriminator{umap(), neg(1)}, nil))(t)
		near(t, "UMAP", losses[0], -5*math.Log(clamp), 1e-6)
		near(t, "Neg-t-SNE", losses[1], 6*math.Ln2, 1e-6)
		infonc := need(ExpectedInfoNC(t.Context(), heads, tails, same, 2, 5, 1, clamp, 2, 0, nil))(t)
		near(t, "InfoNC-t-SNE", infonc.Mean, math.Log(6), 1e-12)
		if infonc.Error != 0 {
			t.Errorf("an error of %g where all draws are equal", infonc.Error)
		}
	}
}

// The loss with the normalisation constant of the embedding is the least that
// NC-t-SNE has for it where the graph is a sample of its similarities: for
// points that coincide, all of them are equal.
func TestNCAtItsConstant(t *testing.T) {
	same := make([]float64, 2*30)
	heads, tails := symmetric(nearestNaive(same, 2, 29), 29) // all pairs
	z, _ := PartitionFunction(t.Context(), same, 2, nil)
	z /= 30 * 29
	losses := need(ExpectedLosses(t.Context(), heads, tails, same, 2, 5, 0, []Discriminator{nc(z/1.1, 5), nc(z, 5), nc(1.1*z, 5)}, nil))(t)
	if !(losses[1] < losses[0] && losses[1] < losses[2]) {
		t.Errorf("losses %v around the partition function; the one in the middle is the least", losses)
	}
}

func TestExpectedInfoNC(t *testing.T) {
	// Each of three points is at distance 1 of one and 3, or 2, of the other.
	line := []float64{0, 1, 3}
	q := func(a, b float64) float64 { return 1 / (1 + (a-b)*(a-b)) }
	heads, tails := []int32{0, 1, 2}, []int32{1, 0, 1}
	// With one negative it is one of two points.
	want := func(rho float64) float64 {
		var sum float64
		for e := range heads {
			h := line[heads[e]]
			positive := q(h, line[tails[e]])
			sum -= math.Log(positive)
			for j, v := range line {
				if j != int(heads[e]) {
					sum += math.Log(positive+q(h, v)) / 2 / rho
				}
			}
		}
		return sum / 3
	}
	for _, rho := range []float64{1, 4, 0.25} {
		got := need(ExpectedInfoNC(t.Context(), heads, tails, line, 1, 1, rho, 1e-10, 200000, 1, nil))(t)
		if !(math.Abs(got.Mean-want(rho)) < 4*got.Error) || !(got.Error > 0 && got.Error < 1e-3/rho) {
			t.Errorf("ρ = %g: %g ± %g, want %g", rho, got.Mean, got.Error, want(rho))
		}
	}

	// The error says how much repetitions differ.
	const n, repetitions = 300, 200
	x := normal[float32](2, n, 2, 5)
	h, u := symmetric(nearestNaive(x, 2, 5), 5)
	var sum, squares, claimed float64
	for r := range repetitions {
		e := need(ExpectedInfoNC(t.Context(), h, u, x, 2, 5, 1, 1e-10, 2, uint64(r), nil))(t)
		sum += e.Mean
		squares += e.Mean * e.Mean
		claimed += e.Error / repetitions
	}
	mean := sum / repetitions
	if spread := math.Sqrt(squares/repetitions - mean*mean); !(math.Abs(claimed/spread-1) < 0.2) {
		t.Errorf("the error is said to be %g, and is %g", claimed, spread)
	}
	sameBits(t, "InfoNC", func() (float64, error) {
		e, err := ExpectedInfoNC(t.Context(), slices.Repeat(h, 20), slices.Repeat(u, 20), x, 2, 5, 1, 1e-10, 2, 0, nil)
		return e.Mean + e.Error, err
	})
}

// losses returns what is invariant of an embedding of a graph.
func figures(t *testing.T, heads, tails []int32, x []float32, d int) []float64 {
	t.Helper()
	z := need(PartitionFunction(t.Context(), x, d, nil))(t)
	n := float64(len(x) / d)
	kl := need(KL(t.Context(), heads, tails, x, d, z, nil))(t)
	losses := need(ExpectedLosses(t.Context(), heads, tails, x, d, 5, 1e-10, []Discriminator{neg(1), neg(0.01), nc(z/n/(n-1), 5), umap()}, nil))(t)
	return append(losses, z, kl, need(ExpectedInfoNC(t.Context(), heads, tails, x, d, 5, 1, 1e-10, 2, 0, nil))(t).Mean)
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

	// Another order of the points changes nothing but the draws.
	y, order := permuted(x, 2, 5)
	place := make([]int32, n)
	for k, i := range order {
		place[i] = int32(k)
	}
	h, u := make([]int32, len(heads)), make([]int32, len(tails))
	for e := range heads {
		h[e], u[e] = place[heads[e]], place[tails[e]]
	}
	got := figures(t, h, u, y, 2)
	last := len(got) - 1
	for k := range got[:last] {
		near(t, "permuted", got[k], want[k], 1e-5)
	}
	near(t, "permuted, with other draws", got[last], want[last], 0.1)

	// Another scale is another embedding.
	larger := make([]float32, len(x))
	for i, v := range x {
		larger[i] = 2 * v
	}
	near(t, "partition function, scaled", figures(t, heads, tails, larger, 2)[4], partitionNaive(larger, 2), 1e-6)

	sameBits(t, "losses", func() (float64, error) {
		big := normal[float32](8, 5000, 3, 2)
		v, err := ExpectedLosses(t.Context(), heads, tails, big, 3, 5, 1e-10, []Discriminator{neg(1), umap()}, nil)
		if err != nil {
			return 0, err
		}
		return v[0] + v[1], nil
	})
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
		got, err := trustworthinessOf(tc.ranks, tc.k)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
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
	got, err := trustworthinessOf(ranks, k)
	near(t, "any points", got, 0.5, 0.01)
	if err != nil {
		t.Error(err)
	}
	sameBits(t, "trustworthiness", func() (float64, error) { return trustworthinessOf(ranks, k) })

	// An embedding that keeps one of the two coordinates, by the definition.
	x := normal[float64](4, 200, 2, 1)
	y := make([]float64, 200)
	for i := range y {
		y[i] = x[2*i]
	}
	got = need(trustworthinessOf(ranksNaive(x, 2, nearestNaive(y, 1, k), k), k))(t)
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
		return need(trustworthinessOf(ranksNaive(x, 20, nearestNaive(y, 2, k), k), k))(t)
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

func BenchmarkExpectedLosses(b *testing.B) {
	const n = 10000
	y := normal[float32](1, n, 2, 10)
	for b.Loop() {
		need(ExpectedLosses(b.Context(), []int32{0}, []int32{1}, y, 2, 5, 1e-10, []Discriminator{neg(1), nc(1e-3, 5), umap()}, nil))(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*(n-1)/2), "ns/pair")
}
