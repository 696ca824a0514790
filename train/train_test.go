package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
	"cne/train/quality"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tableOf returns a table of n normally distributed points in d dimensions.
func tableOf[T op.Float](t testing.TB, n, d int, seed uint64, o op.ContrastiveOptions) *model.Embedding[T] {
	t.Helper()
	m, err := model.NewEmbedding(normal[T](n, d, seed), d, o)
	must(t, err)
	return m
}

// networkOf returns a network to d dimensions and the points that it takes.
func networkOf[T op.Float](t testing.TB, points []T, in int, hidden []int, d int, seed uint64, o op.ContrastiveOptions) *model.Parametric[T] {
	t.Helper()
	network, err := model.NewMLP[T](in, hidden, d, seed)
	must(t, err)
	m, err := model.NewParametric(network, points, o)
	must(t, err)
	return m
}

// trained fits a model and returns the result.
func trained(t testing.TB, m model.Model, heads, tails []int32, o train.Options) train.Result {
	t.Helper()
	result, err := train.Fit(t.Context(), m, heads, tails, o)
	must(t, err)
	return result
}

// The toy data of Supp. I: three points, each the neighbour of the others.
var (
	toyHeads = []int32{0, 0, 1, 1, 2, 2}
	toyTails = []int32{1, 2, 0, 2, 0, 1}
)

// fitToy trains the three points with every edge in one batch.
func fitToy(t *testing.T, loss op.Loss, place train.SpectrumParam, logZ float64, epochs int) []float64 {
	t.Helper()
	start := []float64{0, 0, 1, 0, 0.3, 0.8}
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
	must(t, err)
	trained(t, m, toyHeads, toyTails, train.Options{
		BatchSize: 6, Seed: 3, LogZ: logZ, FixZ: loss == op.NC,
		Phases: []train.Phase{{Epochs: epochs, LR: 0.01, Spectrum: place, Negatives: 5}},
	})
	return m.Table()
}

// placeFor returns the place where the loss's constant is Z̄·m·ξ with the true noise
// density: of the 11 rows that a head can draw from the batch of all six edges, 4 belong
// to each other point and 3 to itself, so ξ = 4/33 where the uniform approximation takes
// 1/|X| = 1/9.
func placeFor(zBar float64) train.SpectrumParam { return train.FromZBar(zBar * 9 * 4 / 33) }

// Theorem 1 and Corollary 2 of the paper: at the optimum of Neg-t-SNE on data
// that can be embedded perfectly, the partition function equals Z̄; above 6,
// which three points cannot reach, they all meet.
func TestToyPartitionFunctionIsZBar(t *testing.T) {
	for _, zBar := range []float64{0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 5.7} {
		y := fitToy(t, op.Neg, placeFor(zBar), 0, 12000)
		z, err := quality.PartitionFunction(t.Context(), y, 2)
		must(t, err)
		if math.Abs(z/zBar-1) > 0.01 {
			t.Errorf("Z̄ = %g: partition function %.4f", zBar, z)
		}
	}
	for _, zBar := range []float64{6.5, 9} {
		y := fitToy(t, op.Neg, placeFor(zBar), 0, 12000)
		if z, err := quality.PartitionFunction(t.Context(), y, 2); err != nil || z < 5.98 {
			t.Errorf("Z̄ = %g: partition function %.4f, want 6 (%v)", zBar, z, err)
		}
	}
}

// Sec. 4 of the paper: NC-t-SNE with a fixed Z is Neg-t-SNE with Z̄ = Z; here
// c = m·Z and c = Z̄·m/|X|.
func TestNCWithFixedZTrainsAsNeg(t *testing.T) {
	const z = 0.3
	nc := fitToy(t, op.NC, train.SpectrumParam{}, math.Log(z), 500)
	neg := fitToy(t, op.Neg, train.FromZBar(9*z), 0, 500)
	for i := range nc {
		if math.Abs(nc[i]-neg[i]) > 1e-9 {
			t.Fatalf("coordinates %v, want %v", nc, neg)
		}
	}
}

// The last batch is smaller and has fewer negatives: c follows their number.
func TestSmallLastBatch(t *testing.T) {
	const n, z = 500, 0.01
	heads, tails := randomEdges(n, 2000)
	fit := func(o op.ContrastiveOptions, place train.SpectrumParam) []float64 {
		m := tableOf[float64](t, n, 2, 5, o)
		options := train.Options{
			BatchSize: 999, // 2 edges are left over, which have 2 negatives
			Phases:    []train.Phase{{Epochs: 2, LR: 0.1, Spectrum: place, Negatives: 5}}}
		if o.Loss == op.NC {
			options.LogZ, options.FixZ = math.Log(z), true
		}
		trained(t, m, heads, tails, options)
		return m.Table()
	}
	nc := fit(op.ContrastiveOptions{Loss: op.NC}, train.SpectrumParam{})
	neg := fit(op.ContrastiveOptions{Loss: op.Neg}, train.FromZBar(z*n*n))
	for i := range nc {
		if math.Abs(nc[i]-neg[i]) > 1e-9 {
			t.Fatalf("coordinate %d is %g with NC at Z, %g with Neg at Z̄", i, nc[i], neg[i])
		}
	}
}

// With DropLast the edges left over in an epoch are not trained on, others in
// every epoch, and the loss is the mean over those that are.
func TestDropLast(t *testing.T) {
	heads, tails := ring(25, 2) // 100 edges
	for _, tc := range []struct {
		size    int
		drop    bool
		batches []int // of an epoch
	}{
		{30, true, []int{30, 30, 30}},
		{30, false, []int{30, 30, 30, 10}},
		{50, true, []int{50, 50}},
		{300, true, []int{100}},
	} {
		e := tableOf[float64](t, 25, 2, 5, op.ContrastiveOptions{})
		r := &recorder{Embedding: e}
		var watched [][3]int
		var sofar []float64
		result := trained(t, r, heads, tails, train.Options{
			BatchSize: tc.size, DropLast: tc.drop, Phases: phase(2, train.SpectrumParam{}, 5),
			OnBatch: func(epoch, done, batches int, loss float64) {
				watched, sofar = append(watched, [3]int{epoch, done, batches}), append(sofar, loss)
			}})
		count := len(tc.batches)
		for i, w := range watched {
			if want := [3]int{1 + i/count, 1 + i%count, count}; w != want {
				t.Errorf("%+v: watched %v, want %v", tc, w, want)
			}
		}
		if len(watched) != 2*count || sofar[len(sofar)-1] != result.Loss {
			t.Errorf("%+v: watched %d batches of %d; loss %g, at last %g", tc, len(watched), 2*count, result.Loss, sofar[len(sofar)-1])
		}
		if len(r.edges) != 2*count {
			t.Fatalf("%+v: %d batches", tc, len(r.edges))
		}
		var epochs [2][]int // edges in order
		for i, edges := range r.edges {
			if len(edges) != tc.batches[i%count] {
				t.Errorf("%+v: batch %d has %d edges", tc, i, len(edges))
			}
			epochs[i/count] = append(epochs[i/count], edges...)
		}
		var loss float64
		for _, l := range r.losses[count:] {
			loss += l
		}
		if want := loss / float64(len(epochs[1])); math.Abs(result.Loss-want) > 1e-12 || result.Edges != 100 {
			t.Errorf("%+v: loss %g of %d edges, want %g of 100", tc, result.Loss, result.Edges, want)
		}
		for i := range epochs {
			slices.Sort(epochs[i])
		}
		if all := len(epochs[0]) == 100; all != slices.Equal(epochs[0], epochs[1]) {
			t.Errorf("%+v: the same edges in both epochs: %v", tc, !all)
		}
	}
}

// An imageSource has images of one value: 10 times the epoch and the number of the batch;
// an epoch has four.
type imageSource struct {
	calls  [][2]int // epoch, batch
	points [][]int32
	steps  atomic.Int32 // that were taken
	ahead  int          // so many batches at most had images and were not trained on
	failAt [2]int
	err    error
}

func (s *imageSource) Shape() [3]int { return [3]int{1, 1, 1} }

func (s *imageSource) ImagesTo(dst []float32, points []int32, epoch int) error {
	call := [2]int{epoch, len(s.calls) % 4}
	s.calls, s.points = append(s.calls, call), append(s.points, slices.Clone(points))
	if s.err != nil && call == s.failAt {
		return s.err
	}
	for i := range dst {
		dst[i] = float32(10*epoch + call[1])
	}
	s.ahead = max(s.ahead, len(s.calls)-int(s.steps.Load()))
	return nil
}

// A source of images sees the points of every batch in order, before its step, and what
// it writes arrives there; its error ends the run.
func TestImages(t *testing.T) {
	heads, tails := ring(25, 2)
	fit := func(source *imageSource) (*recorder, error) {
		e := tableOf[float64](t, 25, 2, 5, op.ContrastiveOptions{})
		r := &recorder{Embedding: e, steps: &source.steps}
		_, err := train.Fit(context.Background(), r, heads, tails, train.Options{Images: source, BatchSize: 30, Phases: phase(3, train.SpectrumParam{}, 5)})
		return r, err
	}
	source := new(imageSource)
	r, err := fit(source)
	must(t, err)
	var want [][2]int
	var images []float32
	for epoch := range 3 {
		for batch := range 4 {
			want = append(want, [2]int{epoch, batch})
			images = append(images, float32(10*epoch+batch))
		}
	}
	if !slices.Equal(source.calls, want) || !slices.Equal(r.images, images) {
		t.Errorf("images made for %v and trained on %v", source.calls, r.images)
	}
	if !slices.EqualFunc(source.points, r.rows, slices.Equal) {
		t.Error("images are of other points than those of the batches")
	}
	if source.ahead > 3 {
		t.Errorf("the images of %d batches are kept ready at a time", source.ahead)
	}
	failing := &imageSource{failAt: [2]int{1, 2}, err: errors.New("no more")}
	r, err = fit(failing)
	if !errors.Is(err, failing.err) || len(r.images) != 6 {
		t.Errorf("error %v after %d batches, want one after 6", err, len(r.images))
	}
}

// recorder is a model that notes its batches and learns nothing.
type recorder struct {
	*model.Embedding[float64]
	negatives, runs   [][]int32
	logConsts, losses []float64
	edges             [][]int   // 25·head+tail
	images            []float32 // the first of each batch
	rows              [][]int32
	steps             *atomic.Int32 // counts the steps, unless it is nil
}

func (r *recorder) Step(b *model.Batch, logConst float64) (float64, error) {
	r.negatives = append(r.negatives, slices.Clone(b.Negatives))
	r.runs, r.rows = append(r.runs, slices.Clone(b.Layout)), append(r.rows, slices.Clone(b.Rows))
	r.logConsts = append(r.logConsts, logConst)
	var edges []int
	for i, slot := range b.Local[:b.Edges()] {
		edges = append(edges, int(25*b.Rows[slot]+b.Rows[b.Local[b.Edges()+i]]))
	}
	r.edges = append(r.edges, edges)
	if len(b.Images) > 0 {
		r.images = append(r.images, b.Images[0])
	}
	loss, err := r.Embedding.Step(b, logConst)
	r.losses = append(r.losses, loss)
	if r.steps != nil {
		r.steps.Add(1)
	}
	return loss, err
}

// Negatives are drawn anew for every batch, and for every seed.
func TestNegativesAreDrawnAnew(t *testing.T) {
	heads, tails := ring(40, 2) // 160 edges: 4 batches
	record := func(seed uint64, m int) *recorder {
		e := tableOf[float64](t, 40, 2, 5, op.ContrastiveOptions{})
		r := &recorder{Embedding: e}
		trained(t, r, heads, tails, train.Options{
			BatchSize: 40, Seed: seed, Phases: phase(3, train.FromZBar(80), m)})
		return r
	}
	all := append(record(1, 5).negatives, record(2, 5).negatives...)
	if len(all) != 24 {
		t.Fatalf("%d batches, want 24", len(all))
	}
	for i := range all {
		for j := range i {
			if slices.Equal(all[i], all[j]) {
				t.Errorf("batches %d and %d have the same negatives", i, j)
			}
		}
	}
	full := record(1, train.Full)
	if got := full.runs[0]; !slices.Equal(got, []int32{-1}) {
		t.Errorf("runs %v with full negatives, want [-1]", got)
	}
	if got, want := full.logConsts[0], math.Log(80*78/1600.); math.Abs(got-want) > 1e-12 {
		t.Errorf("θ = %g with full negatives, want %g", got, want)
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
func fitRing[T op.Float](t *testing.T, loss op.Loss, o train.Options) []float64 {
	t.Helper()
	heads, tails := ring(200, 5)
	m := tableOf[T](t, 200, 2, 5, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
	trained(t, m, heads, tails, o)
	y := make([]float64, len(m.Table()))
	for i, v := range m.Table() {
		y[i] = float64(v)
	}
	return y
}

func phase(epochs int, place train.SpectrumParam, m int) []train.Phase {
	return []train.Phase{{Epochs: epochs, LR: 0.5, Spectrum: place, Negatives: m}}
}

// Sec. 5 of the paper: a smaller Z̄ gives a larger embedding, and so do more
// negatives (Fig. S8, Sec. 7), which come closer to t-SNE.
func TestSmallerZBarAndMoreNegativesSpreadTheEmbedding(t *testing.T) {
	extent := func(loss op.Loss, o train.Options) float64 {
		o.BatchSize, o.Clip, o.Seed = 100, 4, 1
		var sum float64
		for _, v := range fitRing[float64](t, loss, o) {
			sum += v * v
		}
		return math.Sqrt(sum)
	}
	var last float64
	for _, z := range []float64{40000, 8000, 1600, 320} {
		got := extent(op.Neg, train.Options{Phases: phase(60, train.FromZBar(z), 5)})
		if got <= last {
			t.Errorf("Z̄ = %g: extent %.3g, not more than %.3g at five times that", z, got, last)
		}
		last = got
	}
	last = 0
	for _, m := range []int{1, 5, 50} {
		got := extent(op.InfoNC, train.Options{Phases: phase(60, train.SpectrumParam{}, m)})
		if got <= last {
			t.Errorf("m = %d: extent %.3g, not more than %.3g with fewer negatives", m, got, last)
		}
		last = got
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	heads, tails := randomEdges(2000, 30000)
	for _, tc := range []struct{ size, m int }{
		{256, 5}, {1 << 20, 5}, // all edges: several pieces
		{256, 100}, {256, train.Full}, {1000, train.Full},
	} {
		for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
			var want []float32
			var wantResult train.Result
			for _, procs := range []int{1, 7} {
				runtime.GOMAXPROCS(procs)
				m := tableOf[float32](t, 2000, 2, 5, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
				got := trained(t, m, heads, tails, train.Options{
					BatchSize: tc.size, Clip: 4, Seed: 9, Phases: phase(2, train.SpectrumParam{}, tc.m)})
				got.Elapsed = 0
				if want == nil {
					want, wantResult = m.Table(), got
				} else if !slices.Equal(m.Table(), want) || got != wantResult {
					t.Errorf("%v, b=%d, m=%d: %d cores give other bits than one", loss, tc.size, tc.m, procs)
				}
			}
		}
	}
}

// Networks and wide embeddings are contrasted with many others as tables in the
// plane are, and one run may pass from few negatives to all.
func TestManyNegatives(t *testing.T) {
	heads, tails := ring(200, 5)
	for _, d := range []int{1, 2, 3, 10} {
		for _, metric := range []op.Metric{op.Euclidean, op.Cosine} {
			if d == 1 && metric == op.Cosine {
				continue
			}
			o := op.ContrastiveOptions{Loss: op.InfoNC, Metric: metric, Clamp: 1e-10}
			table := tableOf[float32](t, 200, d, 5, o)
			points := make([]float32, 7*200) // on a ring, too
			for i := range 200 {
				for k := range 7 {
					points[7*i+k] = float32(math.Cos(2*math.Pi*float64(i)/200 + float64(k)))
				}
			}
			parametric := networkOf(t, points, 7, nil, d, 1, o)
			for name, m := range map[string]model.Model{"table": table, "network": parametric} {
				options := train.Options{BatchSize: 100, Clip: 4, Phases: []train.Phase{
					{Epochs: 2, LR: 0.01, Negatives: 5}, {Epochs: 2, LR: 0.01, Negatives: 60}, {Epochs: 8, LR: 0.01, Negatives: train.Full}}}
				if name == "network" {
					options.Optimizer = new(train.Adam)
				} else {
					for i := range options.Phases {
						options.Phases[i].LR = 0.3
					}
				}
				var losses []float64
				options.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
					losses = append(losses, s.Loss)
					return nil
				})}
				result := trained(t, m, heads, tails, options)
				if result.Negatives != 198 || !(result.Loss < losses[4]) {
					t.Errorf("%s, d=%d, %v: %d negatives, loss %g after %g", name, d, metric, result.Negatives, result.Loss, losses[4])
				}
			}
		}
	}
}

// A batch whose distinct points are updated in pieces, by several cores.
func TestSameBitsOfLargeBatches(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n = 30000
	heads, tails := randomEdges(n, 60000)
	var want []float32
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		m := tableOf[float32](t, n, 2, 5, op.ContrastiveOptions{Clamp: 1e-10})
		trained(t, m, heads, tails, train.Options{
			BatchSize: 60000, Clip: 4, Phases: phase(2, train.SpectrumParam{}, 5)})
		if want == nil {
			want = m.Table()
			moved := 0
			for i, v := range normal[float32](n, 2, 5) {
				if v != want[i] {
					moved++
				}
			}
			if moved < 2*n*9/10 {
				t.Errorf("%d of %d coordinates moved", moved, 2*n)
			}
		} else if !slices.Equal(m.Table(), want) {
			t.Errorf("%d cores give other bits than one", procs)
		}
	}
}

// With the points held nearly still, log Z goes to where its gradient
// vanishes, whatever it starts from.
func TestLogZConverges(t *testing.T) {
	heads, tails := ring(200, 5)
	for _, start := range []float64{-8, 0, 3} {
		m := tableOf[float64](t, 200, 2, 5, op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10})
		result := trained(t, m, heads, tails, train.Options{
			BatchSize: 200, LogZ: start, LRZ: 0.0005,
			Phases: []train.Phase{{Epochs: 300, LR: 1e-12, Schedule: train.Constant, Negatives: 5}}})
		// Where the expected gradient Σ 1−1/(1+cu) − Σ 1/(1+cu) is zero.
		if b := balance(t, m.Table(), heads, tails, 5*math.Exp(result.LogZ)); math.Abs(b) > 0.02 {
			t.Errorf("from %g to %g, where the gradient is %.3g per edge", start, result.LogZ, b)
		}
	}
}

// balance returns the derivative of NC's expected loss with respect to log Z,
// per edge, for negatives drawn uniformly from all points but the head.
func balance(t *testing.T, y []float64, heads, tails []int32, c float64) float64 {
	t.Helper()
	u := func(i, j int32) float64 {
		dx, dy := y[2*i]-y[2*j], y[2*i+1]-y[2*j+1]
		return 1 + dx*dx + dy*dy
	}
	n := int32(len(y) / 2)
	var sum float64
	for e, h := range heads {
		cu := c * u(h, tails[e])
		sum += cu / (1 + cu)
		for j := range n { // the head itself is among the endpoints too
			sum -= 5 / float64(n) / (1 + c*u(h, j))
		}
	}
	return sum / float64(len(heads))
}

func TestSeedsDiffer(t *testing.T) {
	a := fitRing[float64](t, op.Neg, train.Options{BatchSize: 64, Seed: 1, Phases: phase(2, train.SpectrumParam{}, 5)})
	b := fitRing[float64](t, op.Neg, train.Options{BatchSize: 64, Seed: 2, Phases: phase(2, train.SpectrumParam{}, 5)})
	if slices.Equal(a, b) {
		t.Error("two seeds give one embedding")
	}
}

// Both precisions follow the same path for a while.
func TestFloat32FollowsFloat64(t *testing.T) {
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		o := train.Options{BatchSize: 64, Clip: 4, Seed: 1, Phases: []train.Phase{{Epochs: 3, LR: 0.01, Spectrum: train.SpectrumParam{}, Negatives: 5}}}
		single, double := fitRing[float32](t, loss, o), fitRing[float64](t, loss, o)
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
			e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			result, err := train.Fit(context.Background(), e, heads, tails, train.Options{
				BatchSize: size, Phases: phase(3, train.SpectrumParam{}, m),
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
	e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{})
	trained(t, e, heads, tails, train.Options{
		Phases: []train.Phase{
			{Epochs: 2, LR: 1, Spectrum: train.SpectrumParam{}, Negatives: 5},
			{Epochs: 4, LR: 2, Spectrum: train.FromS(0), Negatives: 3},
			{Epochs: 2, LR: 3, Spectrum: train.FromS(0), Negatives: 3, Schedule: train.Constant},
		},
		Hooks: []train.Hook{train.HookFunc(func(s *train.State) error {
			got = append(got, epoch{s.Phase, s.LR})
			return nil
		})},
	})
	if want := []epoch{{0, 1}, {0, 0.5}, {1, 2}, {1, 1.5}, {1, 1}, {1, 0.5}, {2, 3}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("phases and learning rates %v, want %v", got, want)
	}
}

// Where a loss stands: as in the authors' program, with Z_tsne = 100·n and Z_umap = n²/5.
func TestNormalization(t *testing.T) {
	p := train.Normalization{N: 70000}
	for _, tc := range []struct {
		loss  op.Loss
		place train.SpectrumParam
		m     int
		want  float64 // exp θ
	}{
		{op.Neg, train.SpectrumParam{}, 5, 1},
		{op.Neg, train.FromS(0), 5, 100. * 5 / 70000},
		{op.Neg, train.FromS(1), 5, 1}, // Z_umap·m/n² = 5/5
		{op.Neg, train.FromS(1), 10, 2},
		{op.Neg, train.FromS(0.5), 5, math.Sqrt(100. * 5 / 70000)},
		{op.Neg, train.FromZBar(8.13e6), 5, 8.13e6 * 5 / 4.9e9},
		{op.Neg, train.FromZBar(0), 5, 1},
		{op.Neg, train.FromS(0).Exaggerated(), 5, 1},
		{op.Neg, train.FromS(1.5).Exaggerated(), 5, math.Exp(p.LogConst(op.Neg, train.FromS(1.5), 5))},
		{op.InfoNC, train.SpectrumParam{}, 5, 1},
		{op.InfoNC, train.FromS(0), 5, 1},
		{op.InfoNC, train.FromS(1), 5, 4},
		{op.InfoNC, train.FromS(-0.5), 5, 0.5},
		{op.NC, train.SpectrumParam{}, 5, 1},
		{op.UMAP, train.SpectrumParam{}, 5, 1},
	} {
		if got := math.Exp(p.LogConst(tc.loss, tc.place, tc.m)); math.Abs(got/tc.want-1) > 1e-12 {
			t.Errorf("%v at %+v, m=%d: %g, want %g", tc.loss, tc.place, tc.m, got, tc.want)
		}
	}
}

// The first third of the epochs at max(s, 1) is the same as two phases with
// one annealing.
func TestExaggerateEarly(t *testing.T) {
	lr := func(t int) float64 { return 0.5 * (1 - float64(t)/7) }
	together := fitRing[float64](t, op.Neg, train.Options{BatchSize: 100, Phases: []train.Phase{
		{Epochs: 7, LR: 0.5, Spectrum: train.FromS(0), ExaggerateEarly: true, Negatives: 5}}})
	var phases []train.Phase
	for epoch := range 7 {
		p := train.Phase{Epochs: 1, LR: lr(epoch), Spectrum: train.FromS(0), Negatives: 5}
		if epoch < 3 {
			p.Spectrum = train.FromS(1)
		}
		phases = append(phases, p)
	}
	apart := fitRing[float64](t, op.Neg, train.Options{BatchSize: 100, Phases: phases})
	if !slices.Equal(together, apart) {
		t.Errorf("early exaggeration in one phase differs from that in seven")
	}
}

// A mean over the batch is reported per edge as a sum is, and its steps are
// shorter by the size of the batch.
func TestMeanLoss(t *testing.T) {
	heads, tails := ring(20, 1) // 40 edges
	fit := func(mean bool, lr float64) (train.Result, []float64) {
		e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{Mean: mean})
		result := trained(t, e, heads, tails, train.Options{
			BatchSize: 10, Phases: []train.Phase{{Epochs: 3, LR: lr, Spectrum: train.SpectrumParam{}, Negatives: 5}}})
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
	e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	result, err := train.Fit(ctx, e, heads, tails, train.Options{
		Phases: phase(100, train.SpectrumParam{}, 5),
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
		Phases: phase(100, train.SpectrumParam{}, 5),
		Hooks:  []train.Hook{train.EveryEpochs(3, train.HookFunc(func(s *train.State) error { return stop }))},
	})
	if !errors.Is(err, stop) || result.Epochs != 3 {
		t.Errorf("%+v, %v", result, err)
	}
}

// A stateful is a table with a state that its steps set.
type stateful struct {
	*model.Embedding[float32]
	state *op.Array
	value float32
}

func (s *stateful) State() []train.NamedArray {
	return []train.NamedArray{{Name: "running_var", Value: s.state}}
}

func (s *stateful) Step(b *model.Batch, theta float64) (float64, error) {
	op.Data[float32](s.state)[0] = s.value
	return s.Embedding.Step(b, theta)
}

// What is not finite of the state ends a run after its epoch, and what the last step
// has made of the parameters ends it as well, though the losses are finite.
func TestDivergenceWithFiniteLoss(t *testing.T) {
	heads, tails := ring(100, 5)
	table := func() *model.Embedding[float32] {
		m := tableOf[float32](t, 100, 2, 5, op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5})
		return m
	}
	for value, want := range map[float32]string{1: "", float32(math.Inf(1)): "epoch 1 (running_var is not finite)", float32(math.NaN()): "epoch 1 (running_var is not finite)"} {
		state, err := op.ArrayOf([]float32{1}, 1)
		must(t, err)
		_, err = train.Fit(context.Background(), &stateful{table(), state, value}, heads, tails, train.Options{BatchSize: 64, Phases: phase(3, train.SpectrumParam{}, 5)})
		var diverged *train.DivergedError
		if (want == "") != (err == nil) || err != nil && (!errors.As(err, &diverged) || !strings.Contains(err.Error(), want)) {
			t.Errorf("with a state of %v the error is %v, want %q", value, err, want)
		}
	}
	// One batch, after whose step nothing computes a loss.
	_, err := train.Fit(context.Background(), table(), heads, tails, train.Options{
		BatchSize: len(heads), Phases: []train.Phase{{Epochs: 1, LR: 1e38, Negatives: 5}}})
	if diverged := new(train.DivergedError); !errors.As(err, &diverged) || diverged.Batch != 0 || !strings.Contains(err.Error(), "(embedding is not finite)") {
		t.Errorf("after the last step the error is %v", err)
	}
}

func TestDivergenceIsReported(t *testing.T) {
	heads, tails := ring(200, 5)
	for name, tc := range map[string]struct {
		lr   float64
		want string
	}{
		"infinite": {math.MaxFloat32, "the run diverged in epoch 1"},
		"far":      {1e7, "the points move ever farther apart"},
	} {
		m := tableOf[float32](t, 200, 2, 5, op.ContrastiveOptions{Clamp: 1e-10})
		_, err := train.Fit(context.Background(), m, heads, tails, train.Options{
			Clip: 4, BatchSize: 64, Phases: []train.Phase{{Epochs: 5, LR: tc.lr, Spectrum: train.SpectrumParam{}, Negatives: 5}}})
		var diverged *train.DivergedError
		if !errors.As(err, &diverged) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want a DivergedError with %q", name, err, tc.want)
		}
	}
	nc := tableOf[float32](t, 200, 2, 5, op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10})
	_, err := train.Fit(context.Background(), nc, heads, tails, train.Options{LRZ: 100, BatchSize: 64, Phases: phase(5, train.SpectrumParam{}, 5)})
	if !errors.Is(err, train.ErrLogZ) {
		t.Errorf("error %v, want ErrLogZ", err)
	}
	start := normal[float64](200, 2, 5)
	start[17] = math.NaN()
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{})
	must(t, err)
	_, err = train.Fit(context.Background(), m, heads, tails, train.Options{Phases: phase(5, train.SpectrumParam{}, 5)})
	if err == nil || !strings.Contains(err.Error(), "epoch 1, batch 1 (vm: input embedding is not finite in row 8") {
		t.Errorf("error %v does not name the row that is not finite", err)
	}
}

func TestBadOptions(t *testing.T) {
	good := phase(1, train.SpectrumParam{}, 5)
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
		{nil, nil, train.Options{Phases: good}, "a graph without edges"},
		{[]int32{0}, nil, train.Options{Phases: good}, "edges: got 1 heads and 0 tails, want as many of both"},
		{[]int32{0, 1}, []int32{1, 20}, train.Options{Phases: good}, "edge 1: got points 1 and 20, want two different ones below 20"},
		{[]int32{3}, []int32{3}, train.Options{Phases: good}, "edge 0: got points 3 and 3, want two different ones below 20"},
		{toyHeads, toyTails, train.Options{}, "train.phases: got none, want 1 or more"},
		{toyHeads, toyTails, train.Options{Phases: good, BatchSize: 1}, "train.batch_size: got 1, want a whole number of at least 2"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Epochs = 0 })}, "train.phases: epochs of phase 1: got 0, want 1 or more"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.LR = math.NaN() })}, "train.phases: lr of phase 1: got NaN, want a number above 0"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Negatives = 0 })}, "train.phases: negatives of phase 1: got 0, want 1 or more"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Spectrum = train.FromS(1e4) })}, "train.phases: s of phase 1: got 10000, want a number nearer to 0 <= s <= 1; the loss's constant is too large"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Spectrum = train.FromZBar(-1) })}, "train.phases: z_bar of phase 1: got -1, want a number above 0"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Spectrum = train.FromZBar(1e60) })}, "z_bar of phase 1: got 1e+60, want a number nearer to the square of the number of points; this is too large"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.Spectrum = train.SpectrumParam{S: new(0.), ZBar: new(1.)} })}, "z_bar of phase 1: got 1 with s 0, want one of them"},
		{toyHeads, toyTails, train.Options{Phases: append(with(func(p *train.Phase) { p.Epochs = math.MaxInt32 }), good...)}, "train.phases: epochs of phase 2: got 1, want at most 2147483647 in all"},
		{toyHeads, toyTails, train.Options{Phases: good, Clip: -4}, "train.clip: got -4, want a number of at least 0"},
		{toyHeads, toyTails, train.Options{Phases: good, Clip: math.NaN()}, "train.clip: got NaN, want"},
		{toyHeads, toyTails, train.Options{Phases: good, LRZ: -1}, "train.lr_z: got -1, want"},
		{toyHeads, toyTails, train.Options{Phases: good, LogZ: 1}, "loss.log_z: got 1 with loss.name neg, want 0"},
		{toyHeads, toyTails, train.Options{Phases: good, FixZ: true}, "loss.learn_z: got false with loss.name neg, want true"},
		{toyHeads, toyTails, train.Options{Phases: good, Sampling: 9}, "loss.sampling: got Sampling(9), want auto, singly or runs"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.WarmUp = 1 })}, "warm_up of phase 1: got 1 with epochs 1, want fewer"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.ExaggerateEarly = true })}, "early_exaggeration of phase 1: got true with s null"},
		{toyHeads, toyTails, train.Options{Phases: good, LogZ: 1000}, "loss.log_z: got 1000, want a number from -60 to 60"},
		{toyHeads, toyTails, train.Options{Phases: with(func(p *train.Phase) { p.LogZ = new(float64) })}, "log_z of phase 1: got 0 with loss.name neg, want the loss nc"},
	} {
		m := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{})
		if _, err := train.Fit(context.Background(), m, tc.heads, tc.tails, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want one with %q", err, tc.want)
		}
	}
}

func TestPlacesThatTheLossDoesNotHave(t *testing.T) {
	for loss, places := range map[op.Loss][]train.SpectrumParam{
		op.InfoNC: {train.FromZBar(3)},
		op.NC:     {train.FromZBar(3), train.FromS(0)},
		op.UMAP:   {train.FromZBar(3), train.FromS(0)},
	} {
		for _, place := range places {
			m := tableOf[float64](t, 3, 2, 1, op.ContrastiveOptions{Loss: loss})
			_, err := train.Fit(context.Background(), m, toyHeads, toyTails, train.Options{Phases: phase(1, place, 5)})
			if err == nil || !strings.Contains(err.Error(), " with loss.name "+loss.String()+", want ") {
				t.Errorf("%v at %v: error %v", loss, place, err)
			}
		}
	}
}

// More negatives than fit in memory are refused, not allocated.
func TestNegativesOfHugeBatches(t *testing.T) {
	heads, tails := randomEdges(1000, 100000)
	m := tableOf[float32](t, 1000, 2, 1, op.ContrastiveOptions{})
	_, err := train.Fit(context.Background(), m, heads, tails, train.Options{BatchSize: 1 << 20, Sampling: train.SamplePerHead, Phases: phase(1, train.SpectrumParam{}, 199997)})
	if err == nil || !strings.Contains(err.Error(), "negatives of phase 1: got 199997 with train.batch_size 100000, want fewer of either") {
		t.Errorf("error %v", err)
	}
}

func TestHooks(t *testing.T) {
	heads, tails := ring(20, 1)
	for _, loss := range []op.Loss{op.Neg, op.NC} {
		e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{Loss: loss})
		var lines bytes.Buffer
		var epochs []int
		var last []float32
		result := trained(t, e, heads, tails, train.Options{
			Phases: append(phase(2, train.SpectrumParam{}, 5), phase(3, train.SpectrumParam{}, 5)...),
			Hooks: []train.Hook{
				train.Records(&lines, loss == op.NC),
				train.EveryEpochs(2, train.Snapshots(func(epoch int, embedding []float32, d int) error {
					if d != 2 || len(embedding) != 40 || slices.Equal(embedding, last) {
						t.Errorf("epoch %d: a snapshot of %d numbers, the same as before: %v", epoch, len(embedding), slices.Equal(embedding, last))
					}
					epochs, last = append(epochs, epoch), slices.Clone(embedding)
					return nil
				})),
				train.EveryEpochs(0, train.HookFunc(func(*train.State) error { return nil })),
			},
		})
		if !slices.Equal(epochs, []int{2, 4}) {
			t.Errorf("snapshots after epochs %v", epochs)
		}
		decoder := json.NewDecoder(&lines)
		var r train.Record
		for epoch := 1; epoch <= 5; epoch++ {
			before := r.Seconds
			r = train.Record{}
			must(t, decoder.Decode(&r))
			if wantPhase := min(1, (epoch-1)/2); r.Epoch != epoch || r.Phase != wantPhase || r.Loss <= 0 || r.LR <= 0 ||
				r.EdgesPerSecond <= 0 || r.Seconds <= before || (r.LogZ != nil) != (loss == op.NC) {
				t.Errorf("record %d is %+v", epoch, r)
			}
		}
		if r.Loss != result.Loss || loss == op.NC && *r.LogZ != result.LogZ {
			t.Errorf("the last record, %+v, is not the result, %+v", r, result)
		}
		if decoder.More() {
			t.Error("more records than epochs")
		}
	}
}

// Figures reach the hooks after the one that measures them, in the epochs where it does,
// and take no time from the run.
func TestMeasure(t *testing.T) {
	heads, tails := ring(20, 1)
	graph := &neighbors.Graph{N: 20, Indptr: make([]int64, 21)}
	for i := range 20 {
		before, after := int32((i+19)%20), int32((i+1)%20)
		graph.Indices = append(graph.Indices, min(before, after), max(before, after))
		graph.Indptr[i+1] = int64(2 * (i + 1))
	}
	for _, loss := range []op.Loss{op.Neg, op.NC} {
		e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{Loss: loss})
		var measuring time.Duration
		var begun time.Time
		var wanted []string
		var lines bytes.Buffer
		start := time.Now()
		result := trained(t, e, heads, tails, train.Options{
			Phases: phase(5, train.SpectrumParam{}, 5),
			Hooks: []train.Hook{
				train.HookFunc(func(s *train.State) error { begun = time.Now(); return nil }),
				train.Measure(2, quality.Options{Graph: graph}),
				train.HookFunc(func(s *train.State) error {
					time.Sleep(10 * time.Millisecond)
					measuring += time.Since(begun)
					want := "nothing"
					if s.Epoch%2 == 0 || s.Epoch == 5 {
						x := make([]float32, 40)
						must(t, e.EmbedTo(x))
						f, err := quality.Measure(t.Context(), nil, &data.Matrix{N: 20, D: 2, X: x}, quality.Options{Graph: graph})
						must(t, err)
						want = fmt.Sprint(*f.PartitionFunction, *f.KL)
					}
					wanted = append(wanted, want)
					return nil
				}),
				train.Records(&lines, loss == op.NC),
			},
		})
		if whole := time.Since(start); result.Elapsed > whole-measuring {
			t.Errorf("the run says that it took %v, but of %v the hooks had %v", result.Elapsed, whole, measuring)
		}
		var got []string
		for line := range strings.Lines(lines.String()) {
			var r train.Record
			must(t, json.Unmarshal([]byte(line), &r))
			s := "nothing"
			if r.PartitionFunction != nil && r.KL != nil {
				s = fmt.Sprint(*r.PartitionFunction, *r.KL)
			}
			got = append(got, s)
			if loss == op.NC {
				if want := math.Exp(*r.LogZ) * 20 * 19; r.Z == nil || math.Abs(*r.Z/want-1) > 1e-12 {
					t.Errorf("log Z %v of 20 points gives Z %v", *r.LogZ, r.Z)
				}
			} else if strings.Contains(line, `"z"`) {
				t.Errorf("%s has a Z", line)
			}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("measured %q, want %q", got, wanted)
		}
	}
}

// A log Z whose exponential is too large is recorded all the same.
func TestRecordOfLargeZ(t *testing.T) {
	e := tableOf[float64](t, 20, 2, 1, op.ContrastiveOptions{Loss: op.NC})
	var line bytes.Buffer
	must(t, train.Records(&line, true).AfterEpoch(&train.State{Epoch: 3, LogZ: 800, Model: e}))
	if s := line.String(); !strings.Contains(s, `"log_z":800`) || strings.Contains(s, `"z"`) {
		t.Errorf("recorded %s", s)
	}
}

// An embedding that cannot be measured has diverged.
func TestMeasureOfDivergedRun(t *testing.T) {
	m, err := model.NewEmbedding([]float32{0, 0, 1, float32(math.Inf(1))}, 2, op.ContrastiveOptions{})
	must(t, err)
	hook := train.Measure(2, quality.Options{})
	state := train.State{Epoch: 1, Epochs: 9, LR: 0.5, Model: m}
	if err := hook.AfterEpoch(&state); err != nil {
		t.Errorf("in an epoch in which nothing is measured: %v", err)
	}
	var diverged *train.DivergedError
	for _, epoch := range []int{2, 9} {
		state.Epoch = epoch
		if err := hook.AfterEpoch(&state); !errors.As(err, &diverged) || diverged.Epoch != epoch || diverged.LR != 0.5 {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
}

func ExampleFit() {
	// A ring of 30 points, each joined to its two neighbours.
	heads, tails := ring(30, 1)
	start, err := initial.Random[float32](30, 2, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := train.Fit(context.Background(), m, heads, tails, train.Options{
		Phases: []train.Phase{{Epochs: 200, LR: 1, Spectrum: train.FromS(1), Negatives: 5}},
		Clip:   4,
	})
	fmt.Println(result.Epochs, result.Edges, err)
	// Output: 200 60 <nil>
}
