package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/quality"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// The toy data of Supp. D: three points, each the neighbour of the others.
var (
	toyHeads = []int32{0, 0, 1, 1, 2, 2}
	toyTails = []int32{1, 2, 0, 2, 0, 1}
)

// fitToy trains the three points with every edge in one batch.
func fitToy(t *testing.T, loss op.Loss, place train.Place, logZ float64, epochs int) []float64 {
	t.Helper()
	start := []float64{0, 0, 1, 0, 0.3, 0.8}
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
	if err != nil {
		t.Fatal(err)
	}
	_, err = train.Fit(context.Background(), m, toyHeads, toyTails, train.Options{
		Loss: loss, BatchSize: 6, Seed: 3, LogZ: logZ, FixZ: true,
		Phases: []train.Phase{{Epochs: epochs, LR: 0.01, Place: place, Negatives: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.Table()
}

// placeFor returns the place at which the loss's constant is Z̄·m·ξ with the
// true noise density: of the 11 rows that a head can draw from the batch of
// all six edges, 4 belong to each other point and 3 to itself, so that
// ξ = 4/33 where the uniform approximation takes 1/|X| = 1/9.
func placeFor(zBar float64) train.Place { return train.AtZBar(zBar * 9 * 4 / 33) }

// Theorem 1 and Corollary 2 of the paper: at the optimum of Neg-t-SNE on data
// that can be embedded perfectly, the partition function equals Z̄; above 6,
// which three points cannot reach, they all meet.
func TestToyPartitionFunctionIsZBar(t *testing.T) {
	for _, zBar := range []float64{0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 5.7} {
		y := fitToy(t, op.Neg, placeFor(zBar), 0, 20000)
		z, err := quality.PartitionFunction(y, 2)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(z/zBar-1) > 0.01 {
			t.Errorf("Z̄ = %g: partition function %.4f", zBar, z)
		}
	}
	for _, zBar := range []float64{6.5, 9} {
		y := fitToy(t, op.Neg, placeFor(zBar), 0, 20000)
		if z, err := quality.PartitionFunction(y, 2); err != nil || z < 5.98 {
			t.Errorf("Z̄ = %g: partition function %.4f, want 6 (%v)", zBar, z, err)
		}
	}
}

// Sec. 4 of the paper: NC-t-SNE with a fixed Z is Neg-t-SNE with Z̄ = Z; here
// c = m·Z and c = Z̄·m/|X|.
func TestNCWithFixedZTrainsAsNeg(t *testing.T) {
	const z = 0.3
	nc := fitToy(t, op.NC, train.Default(), math.Log(z), 500)
	neg := fitToy(t, op.Neg, train.AtZBar(9*z), 0, 500)
	for i := range nc {
		if math.Abs(nc[i]-neg[i]) > 1e-9 {
			t.Fatalf("coordinates %v, want %v", nc, neg)
		}
	}
}

// ring returns the edges of n points on a ring, each joined to the k next.
func ring(n, k int) (heads, tails []int32) {
	for i := range n {
		for j := 1; j <= k; j++ {
			o := (i + j) % n
			heads, tails = append(heads, int32(i), int32(o)), append(tails, int32(o), int32(i))
		}
	}
	return heads, tails
}

// fitRing trains 200 points on a ring and returns their coordinates.
func fitRing(t *testing.T, o train.Options, dtype string) []float64 {
	t.Helper()
	heads, tails := ring(200, 5)
	options := op.ContrastiveOptions{Loss: o.Loss, Clamp: 1e-10}
	if dtype == "float64" {
		m, err := model.NewEmbedding(model.InitNormal[float64](200, 2, 1, 5), 2, options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := train.Fit(context.Background(), m, heads, tails, o); err != nil {
			t.Fatal(err)
		}
		return m.Table()
	}
	m, err := model.NewEmbedding(model.InitNormal[float32](200, 2, 1, 5), 2, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Fit(context.Background(), m, heads, tails, o); err != nil {
		t.Fatal(err)
	}
	y := make([]float64, len(m.Table()))
	for i, v := range m.Table() {
		y[i] = float64(v)
	}
	return y
}

func phase(epochs int, place train.Place, m int) []train.Phase {
	return []train.Phase{{Epochs: epochs, LR: 0.5, Place: place, Negatives: m}}
}

// Sec. 5 of the paper: a smaller Z̄ gives a larger embedding, and so do more
// negatives (Sec. 6), which come closer to t-SNE.
func TestSmallerZBarAndMoreNegativesSpreadTheEmbedding(t *testing.T) {
	extent := func(o train.Options) float64 {
		o.BatchSize, o.Clip, o.Seed = 100, 4, 1
		var sum float64
		for _, v := range fitRing(t, o, "float64") {
			sum += v * v
		}
		return math.Sqrt(sum)
	}
	var last float64
	for _, z := range []float64{40000, 8000, 1600, 320} {
		got := extent(train.Options{Phases: phase(60, train.AtZBar(z), 5)})
		if got <= last {
			t.Errorf("Z̄ = %g: extent %.3g, not more than %.3g at five times that", z, got, last)
		}
		last = got
	}
	last = 0
	for _, m := range []int{1, 5, 50} {
		got := extent(train.Options{Loss: op.InfoNC, Phases: phase(60, train.Default(), m)})
		if got <= last {
			t.Errorf("m = %d: extent %.3g, not more than %.3g with fewer negatives", m, got, last)
		}
		last = got
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	heads, tails := randomEdges(3000, 40000)
	for _, size := range []int{256, 1 << 20} { // the larger is all edges: several pieces
		for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
			var want []float32
			var wantResult train.Result
			for _, procs := range []int{1, 2, 7} {
				runtime.GOMAXPROCS(procs)
				m, err := model.NewEmbedding(model.InitNormal[float32](3000, 2, 1, 5), 2, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
				if err != nil {
					t.Fatal(err)
				}
				got, err := train.Fit(context.Background(), m, heads, tails, train.Options{
					Loss: loss, BatchSize: size, Clip: 4, Seed: 9, Phases: phase(3, train.Default(), 5)})
				if err != nil {
					t.Fatal(err)
				}
				got.Elapsed = 0
				if want == nil {
					want, wantResult = m.Table(), got
				} else if !slices.Equal(m.Table(), want) || got != wantResult {
					t.Errorf("%v, b=%d: %d cores give other bits than one", loss, size, procs)
				}
			}
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	a := fitRing(t, train.Options{BatchSize: 64, Seed: 1, Phases: phase(2, train.Default(), 5)}, "float64")
	b := fitRing(t, train.Options{BatchSize: 64, Seed: 2, Phases: phase(2, train.Default(), 5)}, "float64")
	if slices.Equal(a, b) {
		t.Error("two seeds give one embedding")
	}
}

// Both precisions follow the same path for a while.
func TestFloat32FollowsFloat64(t *testing.T) {
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		o := train.Options{Loss: loss, BatchSize: 64, Clip: 4, Seed: 1, Phases: []train.Phase{{Epochs: 3, LR: 0.01, Place: train.Default(), Negatives: 5}}}
		single, double := fitRing(t, o, "float32"), fitRing(t, o, "float64")
		for i := range double {
			if math.Abs(single[i]-double[i]) > 1e-3 {
				t.Errorf("%v: coordinate %d is %g in float32 and %g in float64", loss, i, single[i], double[i])
				break
			}
		}
	}
}

// A batch may be larger than the edge list, its last one smaller than the
// others, and the negatives more than there are rows.
func TestBatchSizes(t *testing.T) {
	heads, tails := ring(20, 1) // 40 edges
	for _, size := range []int{2, 7, 13, 39, 40, 1000} {
		for _, m := range []int{1, 5, 77, 1000, train.Full} {
			var epochs int
			e, err := model.NewEmbedding(model.InitNormal[float64](20, 2, 1, 1), 2, op.ContrastiveOptions{Clamp: 1e-10})
			if err != nil {
				t.Fatal(err)
			}
			result, err := train.Fit(context.Background(), e, heads, tails, train.Options{
				BatchSize: size, Phases: phase(3, train.Default(), m),
				Hooks: []train.Hook{train.HookFunc(func(s *train.State) error { epochs++; return nil })},
			})
			if err != nil || result.Epochs != 3 || epochs != 3 || result.Edges != 40 {
				t.Errorf("b=%d m=%d: %+v after %d hooks, %v", size, m, result, epochs, err)
			}
			for _, v := range e.Table() {
				if math.IsNaN(v) {
					t.Fatalf("b=%d m=%d: NaN", size, m)
				}
			}
		}
	}
}

func TestSchedules(t *testing.T) {
	type epoch struct {
		phase int
		lr    float64
	}
	var got []epoch
	heads, tails := ring(20, 1)
	e, err := model.NewEmbedding(model.InitNormal[float64](20, 2, 1, 1), 2, op.ContrastiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = train.Fit(context.Background(), e, heads, tails, train.Options{
		Phases: []train.Phase{
			{Epochs: 2, LR: 1, Place: train.Default(), Negatives: 5},
			{Epochs: 4, LR: 2, Place: train.AtS(0), Negatives: 3},
			{Epochs: 2, LR: 3, Place: train.AtS(0), Negatives: 3, Anneal: train.Constant},
		},
		Hooks: []train.Hook{train.HookFunc(func(s *train.State) error {
			got = append(got, epoch{s.Phase, s.LR})
			return nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []epoch{{0, 1}, {0, 0.5}, {1, 2}, {1, 1.5}, {1, 1}, {1, 0.5}, {2, 3}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("phases and step sizes %v, want %v", got, want)
	}
}

// Sec. 5 of the paper and DESIGN §2: where a loss stands.
func TestSpectrum(t *testing.T) {
	p := train.Spectrum{N: 70000}
	for _, tc := range []struct {
		loss  op.Loss
		place train.Place
		m     int
		want  float64 // exp θ
	}{
		{op.Neg, train.Default(), 5, 1},
		{op.Neg, train.AtS(0), 5, 100. * 5 / 70000},
		{op.Neg, train.AtS(1), 5, 1}, // Z_umap·m/n² = 5/5
		{op.Neg, train.AtS(1), 10, 2},
		{op.Neg, train.AtS(0.5), 5, math.Sqrt(100. * 5 / 70000)},
		{op.Neg, train.AtZBar(8.13e6), 5, 8.13e6 * 5 / 4.9e9},
		{op.Neg, train.AtS(0).Exaggerated(), 5, 1},
		{op.Neg, train.AtS(1.5).Exaggerated(), 5, math.Exp(p.Theta(op.Neg, train.AtS(1.5), 5))},
		{op.InfoNC, train.Default(), 5, 1},
		{op.InfoNC, train.AtS(0), 5, 1},
		{op.InfoNC, train.AtS(1), 5, 4},
		{op.InfoNC, train.AtS(-0.5), 5, 0.5},
		{op.NC, train.Default(), 5, 1},
		{op.UMAP, train.Default(), 5, 1},
	} {
		if got := math.Exp(p.Theta(tc.loss, tc.place, tc.m)); math.Abs(got/tc.want-1) > 1e-12 {
			t.Errorf("%v at %+v, m=%d: %g, want %g", tc.loss, tc.place, tc.m, got, tc.want)
		}
	}
}

// The first third of the epochs at max(s, 1) is the same as two phases with
// one annealing.
func TestExaggerateEarly(t *testing.T) {
	lr := func(t int) float64 { return 0.5 * (1 - float64(t)/6) }
	together := fitRing(t, train.Options{BatchSize: 100, Phases: []train.Phase{
		{Epochs: 6, LR: 0.5, Place: train.AtS(0), ExaggerateEarly: true, Negatives: 5}}}, "float64")
	apart := fitRing(t, train.Options{BatchSize: 100, Phases: []train.Phase{
		{Epochs: 1, LR: lr(0), Place: train.AtS(1), Negatives: 5}, {Epochs: 1, LR: lr(1), Place: train.AtS(1), Negatives: 5},
		{Epochs: 1, LR: lr(2), Place: train.AtS(0), Negatives: 5}, {Epochs: 1, LR: lr(3), Place: train.AtS(0), Negatives: 5},
		{Epochs: 1, LR: lr(4), Place: train.AtS(0), Negatives: 5}, {Epochs: 1, LR: lr(5), Place: train.AtS(0), Negatives: 5},
	}}, "float64")
	if !slices.Equal(together, apart) {
		t.Errorf("early exaggeration in one phase differs from that in six")
	}
}

// A mean over the batch is reported per edge as a sum is, and its steps are
// shorter by the size of the batch.
func TestMeanLoss(t *testing.T) {
	heads, tails := ring(20, 1) // 40 edges
	fit := func(mean bool, lr float64) (train.Result, []float64) {
		e, err := model.NewEmbedding(model.InitNormal[float64](20, 2, 1, 1), 2, op.ContrastiveOptions{Mean: mean})
		if err != nil {
			t.Fatal(err)
		}
		result, err := train.Fit(context.Background(), e, heads, tails, train.Options{
			Mean: mean, BatchSize: 10, Phases: []train.Phase{{Epochs: 3, LR: lr, Place: train.Default(), Negatives: 5}}})
		if err != nil {
			t.Fatal(err)
		}
		return result, e.Table()
	}
	sum, want := fit(false, 0.1)
	mean, got := fit(true, 1)
	if math.Abs(sum.Loss-mean.Loss) > 1e-12 {
		t.Errorf("loss %g as a mean, %g as a sum", mean.Loss, sum.Loss)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("coordinate %d is %g with ten times the step on the mean, %g on the sum", i, got[i], want[i])
		}
	}
}

func TestCancelKeepsTheModel(t *testing.T) {
	heads, tails := ring(20, 1)
	e, err := model.NewEmbedding(model.InitNormal[float64](20, 2, 1, 1), 2, op.ContrastiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result, err := train.Fit(ctx, e, heads, tails, train.Options{
		Phases: phase(100, train.Default(), 5),
		Hooks: []train.Hook{train.HookFunc(func(s *train.State) error {
			if s.Epoch == 4 {
				cancel()
			}
			return nil
		})},
	})
	if !errors.Is(err, context.Canceled) || result.Epochs != 4 {
		t.Errorf("%+v, %v", result, err)
	}
	stop := errors.New("enough")
	result, err = train.Fit(context.Background(), e, heads, tails, train.Options{
		Phases: phase(100, train.Default(), 5),
		Hooks:  []train.Hook{train.EveryEpochs(3, train.HookFunc(func(s *train.State) error { return stop }))},
	})
	if !errors.Is(err, stop) || result.Epochs != 3 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestDivergenceIsReported(t *testing.T) {
	heads, tails := ring(200, 5)
	for name, tc := range map[string]struct {
		lr   float64
		want string
	}{
		"infinite": {math.MaxFloat32, "training diverged in epoch 1"},
		"far":      {1e7, "flown apart"},
	} {
		m, err := model.NewEmbedding(model.InitNormal[float32](200, 2, 1, 5), 2, op.ContrastiveOptions{Clamp: 1e-10})
		if err != nil {
			t.Fatal(err)
		}
		_, err = train.Fit(context.Background(), m, heads, tails, train.Options{
			Clip: 4, BatchSize: 64, Phases: []train.Phase{{Epochs: 5, LR: tc.lr, Place: train.Default(), Negatives: 5}}})
		var diverged *train.DivergedError
		if !errors.As(err, &diverged) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want a DivergedError with %q", name, err, tc.want)
		}
	}
	start := model.InitNormal[float64](200, 2, 1, 5)
	start[17] = math.NaN()
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = train.Fit(context.Background(), m, heads, tails, train.Options{Phases: phase(5, train.Default(), 5)})
	if err == nil || !strings.Contains(err.Error(), "epoch 1, batch 1: vm: input embedding is not finite in row 8") {
		t.Errorf("error %v does not name the row that is not finite", err)
	}
}

func TestBadOptions(t *testing.T) {
	good := phase(1, train.Default(), 5)
	with := func(change func(p *train.Phase)) []train.Phase {
		p := slices.Clone(good)
		change(&p[0])
		return p
	}
	for _, tc := range []struct {
		heads, tails []int32
		o            train.Options
		want         string
	}{
		{nil, nil, train.Options{Phases: good}, "no edges"},
		{[]int32{0}, nil, train.Options{Phases: good}, "1 heads but 0 tails"},
		{[]int32{0, 1}, []int32{1, 20}, train.Options{Phases: good}, "edge 1 goes from point 1 to point 20"},
		{[]int32{3}, []int32{3}, train.Options{Phases: good}, "edge 0 goes from point 3 to point 3"},
		{toyHeads, toyTails, train.Options{}, "no phases"},
		{toyHeads, toyTails, train.Options{Phases: good, BatchSize: 1}, "a batch of 1 edges"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Epochs = 0 })}, "0 epochs"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.LR = math.NaN() })}, "step size NaN"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Negatives = 0 })}, "0 negatives"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Place = train.AtS(1e4) })}, "place on the spectrum"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Place = train.AtZBar(-1) })}, "place on the spectrum"},
	} {
		m, err := model.NewEmbedding(model.InitNormal[float64](20, 2, 1, 1), 2, op.ContrastiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := train.Fit(context.Background(), m, tc.heads, tc.tails, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want one with %q", err, tc.want)
		}
	}
}

func ExampleFit() {
	// A ring of 30 points, each joined to its two neighbours.
	heads, tails := ring(30, 1)
	start := model.InitNormal[float32](30, 2, 1, 0)
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := train.Fit(context.Background(), m, heads, tails, train.Options{
		Loss:   op.Neg,
		Phases: []train.Phase{{Epochs: 200, LR: 1, Place: train.AtS(1), Negatives: 5}},
		Clip:   4,
	})
	fmt.Println(result.Epochs, result.Edges, err)
	// Output: 200 60 <nil>
}
