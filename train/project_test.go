package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// Training points around some corners of a cube, and a table of positions that separates
// them, too.
const (
	corners       = 4
	trainedPoints = 400
	trainedWidth  = 6
)

// clustered draws n points around the corners of a cube, point i in cluster i
// modulo their number.
func clustered(n, d int, scatter float64, seed uint64) *data.Matrix {
	s := rng.New(seed, rng.Sample)
	m := data.NewMatrix(n, d)
	for i := range n {
		for j := range d {
			m.Row(i)[j] = float32(10*float64(i%corners>>(j%2)&1) + scatter*s.Normal())
		}
	}
	return m
}

// projectorOptions are what a run leaves behind, for all losses.
func projectorOptions() map[string]model.FitInfo {
	all := map[string]model.FitInfo{}
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		logConst := 0.0
		if loss == op.NC {
			logConst = -4
		}
		all[loss.String()] = model.FitInfo{Objective: op.ContrastiveOptions{Loss: loss, Clamp: 1e-10, Scale: 1},
			LogConst: logConst, Negatives: 5, Neighbors: 10, LR: 1, Clip: 4}
	}
	for name, change := range map[string]func(t *model.FitInfo){
		"cosine":         func(t *model.FitInfo) { t.Objective.Metric, t.Objective.Temperature = op.Cosine, 0.5 },
		"mean":           func(t *model.FitInfo) { t.Objective.Mean = true },
		"no clip":        func(t *model.FitInfo) { t.Clip, t.LR = 0, 0.1 },
		"few neighbours": func(t *model.FitInfo) { t.Neighbors = 1 },
		"shared":         func(t *model.FitInfo) { t.Negatives = 40 },
		"shared infonce": func(t *model.FitInfo) { t.Negatives, t.Objective.Loss = 40, op.InfoNC },
		"shared umap":    func(t *model.FitInfo) { t.Negatives, t.Objective.Loss = 40, op.UMAP },
		"shared cosine": func(t *model.FitInfo) {
			t.Negatives, t.Objective.Loss, t.Objective.Metric, t.Objective.Temperature = 40, op.InfoNC, op.Cosine, 0.5
		},
	} {
		training := all[op.Neg.String()]
		change(&training)
		all[name] = training
	}
	return all
}

func newProjector(t testing.TB, d int, training model.FitInfo) *train.Projector {
	t.Helper()
	p, err := train.NewProjector(t.Context(), nil, clustered(trainedPoints, trainedWidth, 1, 1), clustered(trainedPoints, d, 0.5, 2).X, d, training)
	must(t, err)
	return p
}

func placeWith(t testing.TB, p model.Mapper, x *data.Matrix) *data.Matrix {
	t.Helper()
	_, d := p.Size()
	dst := data.NewMatrix(x.N, d)
	must(t, p.ProjectTo(dst.X, x.X))
	return dst
}

// New points come to lie in the cluster they belong to.
func TestProjectorPlacesPointsInTheirClusters(t *testing.T) {
	for name, training := range projectorOptions() {
		t.Run(name, func(t *testing.T) {
			for _, d := range []int{2, 3} {
				placed := placeWith(t, newProjector(t, d, training), clustered(200, trainedWidth, 1, 3))
				wrong := 0
				for i := range placed.N {
					row := placed.Row(i)
					for j, v := range row {
						if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
							t.Fatalf("point %d has position %v", i, row)
						}
						// The cosine leaves the length of a position open.
						if training.Objective.Metric != op.Cosine && math.Abs(float64(v)-10*float64(i%corners>>(j%2)&1)) > 5 {
							wrong++
							break
						}
					}
				}
				if wrong > 4 {
					t.Errorf("%d dimensions: %d of %d points are not in their cluster", d, wrong, placed.N)
				}
			}
		})
	}
}

// A training point gets its position, and a point next to it lands near by: nearer than the
// size of the cluster.
func TestProjectorPlacesTrainingPointsNearTheirPositions(t *testing.T) {
	training := projectorOptions()[op.Neg.String()]
	points := clustered(trainedPoints, trainedWidth, 0.01, 1)
	table := clustered(trainedPoints, 2, 0.05, 1)
	p, err := train.NewProjector(t.Context(), nil, points, table.X, 2, training)
	must(t, err)
	if placed := placeWith(t, p, points); !slices.Equal(placed.X, table.X) {
		t.Error("training points have other positions than in the table")
	}
	moved := points.Clone()
	for i := range moved.X {
		moved.X[i] += 1e-5
	}
	placed := placeWith(t, p, moved)
	for i := range placed.N {
		a, b := placed.Row(i), table.Row(i)
		if d := math.Hypot(float64(a[0]-b[0]), float64(a[1]-b[1])); d > 1.5 {
			t.Errorf("point %d comes to lie at %v, %g from its position %v", i, a, d, b)
		}
	}
}

// The position of a point has the same bits by itself and among others, wherever it
// stands, however many cores there are and however many others project.
func TestProjectorOneByOne(t *testing.T) {
	const n = 1030 // more than two blocks
	x := clustered(n, trainedWidth, 3, 4)
	for name, training := range projectorOptions() {
		t.Run(name, func(t *testing.T) {
			for _, d := range []int{1, 2, 5} {
				if d == 1 && training.Objective.Metric == op.Cosine {
					continue
				}
				p := newProjector(t, d, training)
				p.SetSteps(3)
				want := placeWith(t, p, x)
				for _, i := range []int{0, 1, 17, 511, 512, 1023, 1024, n - 1} {
					if got := placeWith(t, p, x.Rows(i, i+1)); !slices.Equal(got.X, want.Row(i)) {
						t.Errorf("point %d lies at %v alone, at %v among others", i, got.X, want.Row(i))
					}
				}
				s := rng.New(5, rng.Sample)
				order := s.Perm(n)
				permuted := data.NewMatrix(n, trainedWidth)
				for k, i := range order {
					copy(permuted.Row(k), x.Row(i))
				}
				got := placeWith(t, p, permuted)
				for k, i := range order {
					if !slices.Equal(got.Row(k), want.Row(i)) {
						t.Fatalf("point %d lies at %v in another order, at %v before", i, got.Row(k), want.Row(i))
					}
				}
				for _, procs := range []int{1, 7} {
					old := runtime.GOMAXPROCS(procs)
					got := placeWith(t, p, x)
					runtime.GOMAXPROCS(old)
					if !slices.Equal(got.X, want.X) {
						t.Errorf("GOMAXPROCS %d gives other positions", procs)
					}
				}
			}
		})
	}
	t.Run("together", func(t *testing.T) {
		p := newProjector(t, 2, projectorOptions()[op.Neg.String()])
		p.SetSteps(5)
		want := placeWith(t, p, x)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got := make([]float32, len(want.X))
				if err := p.ProjectTo(got, x.X); err != nil || !slices.Equal(got, want.X) {
					t.Errorf("beside others it gives other positions (%v)", err)
				}
			})
		}
		all.Wait()
	})
}

func TestProjectorStepsAndSeed(t *testing.T) {
	training := projectorOptions()[op.Neg.String()]
	x := clustered(20, trainedWidth, 1, 3)
	with := func(steps int, seed uint64) []float32 {
		training.Seed = seed
		p := newProjector(t, 2, training)
		p.SetSteps(steps)
		return placeWith(t, p, x).X
	}
	if slices.Equal(with(5, 1), with(5, 2)) || slices.Equal(with(5, 1), with(3, 1)) {
		t.Error("seed or steps change nothing")
	}
	if !slices.Equal(with(0, 1), with(0, 2)) {
		t.Error("points that do not move depend on the seed")
	}
}

// Without steps, a point lies at the neighbour that is most similar to the others. With the
// cosine metric, it keeps this neighbour's length.
func TestProjectorStart(t *testing.T) {
	training := projectorOptions()[op.Neg.String()]
	training.Neighbors = 3
	points, table := &data.Matrix{N: 5, D: 1, X: []float32{0, 2, 3, 100, 200}}, []float32{10, 0, 20, 0, 21, 1, 22, 0, 1000, 0}
	p, err := train.NewProjector(t.Context(), nil, points, table, 2, training)
	must(t, err)
	p.SetSteps(0)
	x := &data.Matrix{N: 1, D: 1, X: []float32{0.5}}
	if got := placeWith(t, p, x).X; !slices.Equal(got, []float32{20, 0}) {
		t.Errorf("the point starts at %v, want (20, 0)", got)
	}
	training.Objective.Metric, training.Objective.Temperature = op.Cosine, 0.5
	p, err = train.NewProjector(t.Context(), nil, points, table, 2, training)
	must(t, err)
	got := placeWith(t, p, x).X
	if length := math.Hypot(float64(got[0]), float64(got[1])); math.Abs(length-10) > 1e-4 {
		t.Errorf("the point at %v has the length %g, want 10, that of the first", got, length)
	}
}

func TestProjectorRefuses(t *testing.T) {
	good := projectorOptions()[op.Neg.String()]
	for name, tc := range map[string]struct {
		change func(points *data.Matrix, table *[]float32, d *int, t *model.FitInfo)
		want   string
	}{
		"no dimension":  {func(_ *data.Matrix, _ *[]float32, d *int, _ *model.FitInfo) { *d = 0 }, "in 0 dimensions"},
		"short table":   {func(_ *data.Matrix, x *[]float32, _ *int, _ *model.FitInfo) { *x = (*x)[1:] }, "positions: got 799 coordinates for 400 points in 2 dimensions"},
		"no points":     {func(m *data.Matrix, x *[]float32, _ *int, _ *model.FitInfo) { m.N, m.X, *x = 0, nil, nil }, "positions: got 0 coordinates for 0 points in 2 dimensions"},
		"no neighbours": {func(_ *data.Matrix, _ *[]float32, _ *int, t *model.FitInfo) { t.Neighbors = 0 }, "0 neighbours"},
		"no negatives":  {func(_ *data.Matrix, _ *[]float32, _ *int, t *model.FitInfo) { t.Negatives = -1 }, "-1 negatives"},
		"log const":     {func(_ *data.Matrix, _ *[]float32, _ *int, t *model.FitInfo) { t.LogConst = 1e9 }, "exp(1e+09)"},
		"loss":          {func(_ *data.Matrix, _ *[]float32, _ *int, t *model.FitInfo) { t.Objective.Loss = 77 }, "loss"},
		"NaN position":  {func(_ *data.Matrix, x *[]float32, _ *int, _ *model.FitInfo) { (*x)[5] = float32(math.NaN()) }, "coordinate 1 of position 2 (both counted from 0): got NaN"},
		"NaN":           {func(m *data.Matrix, _ *[]float32, _ *int, _ *model.FitInfo) { m.X[7] = float32(math.NaN()) }, "NaN"},
	} {
		points, table, d, training := clustered(trainedPoints, trainedWidth, 1, 1), clustered(trainedPoints, 2, 1, 2).X, 2, good
		tc.change(points, &table, &d, &training)
		if p, err := train.NewProjector(t.Context(), nil, points, table, d, training); err == nil || p != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	p := newProjector(t, 2, good)
	for _, tc := range []struct{ dst, x int }{{2, 5}, {2, 7}, {3, 6}, {2, 12}, {0, 6}} {
		if err := p.ProjectTo(make([]float32, tc.dst), make([]float32, tc.x)); err == nil {
			t.Errorf("%d values are taken for points and %d for their positions", tc.x, tc.dst)
		}
	}
	if err := p.ProjectTo(nil, nil); err != nil {
		t.Errorf("no points: %v", err)
	}
	bad := make([]float32, trainedWidth)
	bad[3] = float32(math.Inf(1))
	if err := p.ProjectTo(make([]float32, 2), bad); err == nil {
		t.Error("a point with an infinite value is placed")
	}
}

// benchmarkProjector calls run with a projector into a table of MNIST's size and, without
// -short, one of a million points, and with new points: 8 coordinates, bent into 50.
func benchmarkProjector(b *testing.B, run func(b *testing.B, p *train.Projector, x *data.Matrix)) {
	const d, placed = 50, 10000
	for _, n := range []int{60_000, 1_000_000} {
		if testing.Short() && n > 60_000 {
			continue
		}
		s := rng.New(1, rng.Sample)
		waves := make([]float64, 8*d)
		for i := range waves {
			waves[i] = s.Normal()
		}
		points, table := data.NewMatrix(n+placed, d), data.NewMatrix(n+placed, 2)
		for i := range points.N {
			var at [8]float64
			for a := range at {
				at[a] = s.Float64()
			}
			table.Row(i)[0], table.Row(i)[1] = float32(100*at[0]), float32(100*at[1])
			for j := range d {
				phase := float64(j)
				for a, v := range at {
					phase += v * waves[a*d+j]
				}
				points.Row(i)[j] = float32(math.Sin(phase))
			}
		}
		training := projectorOptions()[op.Neg.String()]
		training.Neighbors = 15
		p, err := train.NewProjector(b.Context(), nil, points.Rows(0, n), table.Rows(0, n).X, 2, training)
		must(b, err)
		x := points.Rows(n, n+placed)
		placeWith(b, p, x.Rows(0, 1))
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { run(b, p, x) })
	}
}

// BenchmarkProjector times 10 000 new points.
func BenchmarkProjector(b *testing.B) {
	benchmarkProjector(b, func(b *testing.B, p *train.Projector, x *data.Matrix) {
		for b.Loop() {
			placeWith(b, p, x)
		}
		b.ReportMetric(float64(x.N*b.N)/b.Elapsed().Seconds(), "points/s")
	})
}

// BenchmarkProjectorOne times new points one by one.
func BenchmarkProjectorOne(b *testing.B) {
	benchmarkProjector(b, func(b *testing.B, p *train.Projector, x *data.Matrix) {
		for i := 0; b.Loop(); i++ {
			placeWith(b, p, x.Rows(i%x.N, i%x.N+1))
		}
	})
}

// The search among the training points may take long to prepare.
func TestProjectorInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	points := clustered(trainedPoints, trainedWidth, 1, 1)
	if p, err := train.NewProjector(ctx, nil, points, clustered(trainedPoints, 2, 0.5, 2).X, 2, projectorOptions()[op.Neg.String()]); p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", p, err)
	}
}
