package cne_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// points returns the coordinates of two rings.
func points(t *testing.T, n int) *data.Matrix {
	t.Helper()
	m, err := data.FromMat(rings(n))
	must(t, err)
	return m
}

func embed(t *testing.T, m *data.Matrix, o cne.Options) *cne.Embedding {
	t.Helper()
	e, err := cne.Embed(t.Context(), m, o)
	must(t, err)
	return e
}

// project places points.
func project(t *testing.T, e *cne.Embedding, m *data.Matrix) *data.Matrix {
	t.Helper()
	positions, err := e.Project(t.Context(), m)
	must(t, err)
	return positions
}

// prepare returns the neighbourhood of points.
func prepare(t *testing.T, m *data.Matrix, o cne.Options) *cne.Neighborhood {
	t.Helper()
	h, err := cne.Prepare(t.Context(), &data.Dataset{Points: m.Clone()}, o)
	must(t, err)
	return h
}

// fit embeds a neighbourhood.
func fit(t *testing.T, h *cne.Neighborhood, o cne.Options) *cne.Embedding {
	t.Helper()
	e, err := h.Fit(t.Context(), o)
	must(t, err)
	return e
}

// reloaded returns an embedding that was saved and loaded.
func reloaded(t *testing.T, e *cne.Embedding) *cne.Embedding {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e.safetensors")
	must(t, e.Save(path))
	loaded, err := cne.Load(path)
	must(t, err)
	return loaded
}

// nearest returns the neighbours of points.
func nearest(t *testing.T, m *data.Matrix, k int) *neighbors.Neighbors {
	t.Helper()
	found, err := neighbors.KNN(t.Context(), m, k, neighbors.Options{})
	must(t, err)
	return found
}

// spectrum returns the embeddings of a spectrum.
func spectrum(t *testing.T, m *data.Matrix, last []cne.Phase, o cne.Options) []*cne.Embedding {
	t.Helper()
	all, err := cne.Spectrum(t.Context(), m, last, o)
	must(t, err)
	return all
}

// written returns the path of a file with points.
func written(t *testing.T, m *data.Matrix) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "points.npy")
	var b bytes.Buffer
	must(t, file.WriteNPY(&b, m))
	must(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// same reports numbers that differ.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Error(what)
	}
}

// few are options of a short run.
func few(change func(*cne.Options)) cne.Options {
	o := cne.Options{Epochs: 4, Neighbors: 5}
	if change != nil {
		change(&o)
	}
	return o
}

// What stands for a default is that default.
func TestZeroValueIsTheDefaultRun(t *testing.T) {
	m := points(t, 60)
	want := embed(t, m, cne.Options{
		Scaling: data.ScaleAuto, Components: new(cne.AutoComponents), Neighbors: cne.DefaultNeighbors, Dim: cne.DefaultDim, InitStd: 1,
		Loss: op.Neg, Temperature: 0.5, Negatives: cne.DefaultNegatives, Scale: 1, Clamp: new(cne.DefaultClamp),
		Epochs: cne.DefaultTableEpochs, BatchSize: cne.DefaultBatchSize, Optimizer: cne.SGD, LR: cne.DefaultTableLR, LRZ: new(0.001), Clip: new(float64(cne.DefaultClip)),
	})
	if got := embed(t, m, cne.Options{}); !slices.Equal(got.Positions.X, want.Positions.X) || got.Result.Epochs != 750 {
		t.Error("the zero value embeds otherwise")
	}
}

// Embedding, saving, loading and projecting go together, for each kind of model, and
// nothing changes the caller's points.
func TestRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*cne.Options){
		"table":               nil,
		"float64 table":       func(o *cne.Options) { o.Float64 = true },
		"cosine table":        func(o *cne.Options) { o.Loss, o.Metric, o.Dim = op.InfoNC, op.Cosine, 3 },
		"network":             func(o *cne.Options) { o.Hidden = []int{8} },
		"linear network":      func(o *cne.Options) { o.Hidden = []int{} },
		"float64 network":     func(o *cne.Options) { o.Hidden, o.Float64 = []int{8}, true },
		"network of PCA":      func(o *cne.Options) { o.Hidden, o.OnComponents, o.Components = []int{8}, true, new(2) },
		"table by components": func(o *cne.Options) { o.Components, o.Scaling = new(2), data.ScaleStandard },
		"random start":        func(o *cne.Options) { o.Init, o.InitStd = cne.InitRandom, 0.1 },
	} {
		t.Run(name, func(t *testing.T) {
			m := points(t, 40)
			before := slices.Clone(m.X)
			e := embed(t, m, few(change))
			loaded := reloaded(t, e)
			same(t, "the loaded embedding places points elsewhere", project(t, loaded, m.Rows(3, 20)).X, project(t, e, m.Rows(3, 20)).X)
			reloaded(t, loaded)
			same(t, "the points have changed", m.X, before)
		})
	}
}

func TestReduces(t *testing.T) {
	auto := new(cne.AutoComponents)
	network := cne.Options{GraphMetric: data.Cosine, Hidden: []int{4}, Components: auto}
	onComponents := network
	onComponents.OnComponents = true
	for _, tc := range []struct {
		o          cne.Options
		n, d, want int
	}{
		{cne.Options{}, 1000, 784, 50},
		{cne.Options{}, 1000, 50, 0},
		{cne.Options{}, 30, 51, 30},
		{cne.Options{Components: new(0)}, 1000, 784, 0},
		{cne.Options{Components: new(7)}, 1000, 784, 7},
		{cne.Options{GraphMetric: data.Cosine}, 1000, 1024, 50},
		{cne.Options{Components: auto}, 20000, 784, 0},
		{cne.Options{Components: auto}, 30000, 784, 50},
		{cne.Options{GraphMetric: data.Cosine, Components: auto}, 100000, 1024, 0},
		{cne.Options{GraphMetric: data.Correlation, Components: auto}, 100000, 1024, 0},
		{cne.Options{GraphMetric: data.Cosine, Components: auto}, 100000, 1025, 50},
		{cne.Options{GraphMetric: data.Cosine, Components: new(50)}, 1000, 1024, 50},
		{network, 1000, 784, 0},
		{onComponents, 1000, 784, 50},
	} {
		if got := tc.o.Reduces(tc.n, tc.d); got != tc.want {
			t.Errorf("%s, %v components, %d×%d: %d, want %d", tc.o.GraphMetric, tc.o.Components, tc.n, tc.d, got, tc.want)
		}
	}
}

// Auto takes components of points that noise makes equally far from each other, for all metrics
// that have them, and of no others.
func TestComponentsOfNoise(t *testing.T) {
	const n, d = 300, 200
	points := func(noise float64) *data.Matrix {
		stream := rng.New(3, rng.Rows, 0)
		m := data.NewMatrix(n, d)
		for i := range m.X {
			m.X[i] = float32(5 + float64(i/d%4*(i%3)) + noise*stream.Normal())
		}
		return m
	}
	for _, metric := range []data.Metric{data.Euclidean, data.Cosine, data.Correlation, data.Manhattan} {
		for _, components := range []int{cne.AutoComponents, 0} {
			for noise, want := range map[float64]bool{0.3: false, 6: components != 0 && metric != data.Manhattan} {
				var log strings.Builder
				o := cne.Options{GraphMetric: metric, Components: &components, Log: slog.New(slog.NewTextHandler(&log, nil))}
				h, err := cne.Prepare(t.Context(), &data.Dataset{Points: points(noise)}, o)
				must(t, err)
				if got := h.PCA != nil; got != want || want && h.Reduced.D != cne.DefaultComponents {
					t.Errorf("%s, graph.pca %d, noise %v: components: %v, want %v", metric, components, noise, got, want)
				}
				if got := strings.Contains(log.String(), "hardly nearer"); got != want || strings.Contains(log.String(), "WARN") {
					t.Errorf("%s, graph.pca %d, noise %v: the log is %s", metric, components, noise, log.String())
				}
			}
		}
	}
}

// What auto has chosen is logged, with the share of the variance that components hold.
func TestLogOfChoices(t *testing.T) {
	m := data.NewMatrix(200, 4)
	for i := range m.X {
		m.X[i] = float32(math.Sin(float64(i * i)))
	}
	for name, tc := range map[string]struct {
		change func(o *cne.Options, m *data.Matrix)
		want   []string
	}{
		"all components": {func(*cne.Options, *data.Matrix) {}, []string{`msg="data.scale: divided all values by `}},
		"two components": {func(o *cne.Options, _ *data.Matrix) { o.Components = new(2) }, []string{
			`level=WARN msg="the 2 principal components hold 5`, " % of the variance; graph.pca: 0 searches neighbours among the points themselves"}},
		"most components": {func(o *cne.Options, _ *data.Matrix) { o.Components = new(3) }, []string{`level=INFO msg="the 3 principal components hold `}},
		"a table": {func(_ *cne.Options, m *data.Matrix) {
			m.Columns = []string{"mass", "sex", "bill", "wing"}
			for i := range m.N {
				m.X[4*i] *= 400
			}
		}, []string{`msg="data.scale: standardised 4 columns, whose spreads differ 4`, `-fold; data.scale: unit keeps them"`}},
	} {
		var log strings.Builder
		o, m := few(nil), m.Clone()
		tc.change(&o, m)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		embed(t, m, o)
		for _, want := range tc.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log is\n%s, want %s", name, log.String(), want)
			}
		}
	}
}

// A start, neighbours and a graph of one's own are taken.
func TestOwnParts(t *testing.T) {
	m := points(t, 30)
	start := data.NewMatrix(m.N, 2)
	for i := range start.X {
		start.X[i] = float32(i%7) + 1 // no zero, which any step would move
	}
	still := embed(t, m, few(func(o *cne.Options) { o.Init, o.Start, o.Epochs, o.LR = cne.InitGiven, start, 1, 1e-20 }))
	same(t, "the table does not start where it should", still.Positions.X, start.X)
	nearest := nearest(t, m, 3)
	graph, err := neighbors.FromNeighbors(nearest)
	must(t, err)
	e := embed(t, m, few(func(o *cne.Options) { o.Graph = graph }))
	if e.Neighborhood.Graph != graph || e.Neighborhood.Nearest != nil || e.Result.Edges != graph.Edges() {
		t.Error("the graph is another")
	}
	kept := &cache{nearest: nearest}
	o := few(func(o *cne.Options) { o.Neighbors, o.Cache = 3, kept })
	if h := prepare(t, m, o); !slices.Equal(h.Graph.Indices, graph.Indices) || !slices.Equal(h.Nearest.Index, nearest.Index) || kept.saved != nil {
		t.Error("the neighbours were looked for again")
	}
	o.MinNeighbors = 7
	if h := prepare(t, m, o); h.Nearest.K != 7 || kept.saved != h {
		t.Error("too few neighbours were taken from the cache, or more not kept")
	}
}

// A cache of neighbours.
type cache struct {
	nearest *neighbors.Neighbors
	saved   *cne.Neighborhood
}

func (c *cache) Load(_ context.Context, h *cne.Neighborhood, _ *cne.Options, k int) (bool, error) {
	if c.nearest.K < k {
		return false, nil
	}
	h.Nearest = c.nearest
	return true, nil
}

func (c *cache) Save(h *cne.Neighborhood) error {
	c.saved = h
	return nil
}

// The embeddings of a spectrum equal embeddings of separate runs, also if edges are drawn by
// their weights.
func TestSpectrumIsSeparateRuns(t *testing.T) {
	m := points(t, 300)
	o := few(func(o *cne.Options) { o.Epochs = 6 })
	last := []cne.Phase{{Spectrum: train.FromZBar(1e3)}, {Spectrum: train.FromZBar(1e4), Negatives: 3}}
	for _, o.SampleEdges = range []bool{true, false} {
		spectrum := spectrum(t, m, last, o)
		each, shared := o.SpectrumOptions(last)
		if shared != 1 || each[0].Phases[0].Epochs != 2 || each[0].Phases[1].Epochs != 4 {
			t.Errorf("%d phases are shared; the phases are %+v", shared, each[0].Phases)
		}
		for i := range each {
			same(t, fmt.Sprintf("embedding %d differs from a separate run", i), embed(t, m, each[i]).Positions.X, spectrum[i].Positions.X)
		}
	}
	if _, err := cne.Spectrum(t.Context(), m, last, few(func(o *cne.Options) { o.Division = &cne.Division{Trained: []int{1, 2, 3}} })); !errors.Is(err, cne.ErrOption) {
		t.Errorf("with a sample the error is %v", err)
	}
	var failed *cne.SpectrumError
	if _, err := cne.Spectrum(t.Context(), m, []cne.Phase{{}, {Negatives: -7}}, o); !errors.As(err, &failed) || failed.Index != 1 || !errors.Is(err, cne.ErrOption) {
		t.Errorf("the error is %v", err)
	}
}

// An embedding of a spectrum starts log Z again where its own phase says, else where the
// last of the options' does.
func TestLogZOfASpectrum(t *testing.T) {
	z, own := -1., 0.
	o := cne.Options{Loss: op.NC, Phases: []cne.Phase{{Epochs: 1}, {Epochs: 2, LogZ: &z}}}
	each, _ := o.SpectrumOptions([]cne.Phase{{Negatives: 3}, {LogZ: &own}})
	if got := each[0].Phases[1].LogZ; got == nil || *got != z {
		t.Errorf("the first embedding starts log Z at %v", got)
	}
	if got := each[1].Phases[1].LogZ; got != &own {
		t.Errorf("the second embedding starts log Z at %v", got)
	}
}

// Neighbours are found by the metric, and new points are normalised as in training: a
// network gives its training points their positions again, at any length.
func TestGraphMetric(t *testing.T) {
	m := data.NewMatrix(200, 6)
	stream := rng.New(5, rng.Sample)
	for i := range m.N {
		length := math.Exp(4 * stream.Float64())
		for j, row := 0, m.Row(i); j < m.D; j++ {
			row[j] = float32(length * stream.Float64())
		}
	}
	for _, metric := range []data.Metric{data.Cosine, data.Correlation} {
		o := few(func(o *cne.Options) { o.GraphMetric, o.Hidden = metric, []int{8} })
		e := embed(t, m, o)
		unit := m.Clone()
		for i := range unit.N {
			row := unit.Row(i)
			mean, squares := 0., 0.
			for _, v := range row {
				mean += float64(v) / float64(len(row))
			}
			if metric == data.Cosine {
				mean = 0
			}
			for _, v := range row {
				squares += math.Pow(float64(v)-mean, 2)
			}
			for j, v := range row {
				row[j] = float32((float64(v) - mean) / math.Sqrt(squares))
			}
		}
		want := nearest(t, unit, o.Neighbors)
		if same := sameElements(e.Neighborhood.Nearest.Index, want.Index); same < 0.99 { // ties in seven digits may differ
			t.Errorf("%s: of the neighbours %.3f are right", metric, same)
		}
		longer := m.Clone()
		for i := range longer.X {
			longer.X[i] *= 4
		}
		for i, v := range project(t, e, longer).X {
			if math.Abs(float64(v-e.Positions.X[i])) > 1e-4 {
				t.Fatalf("%s: coordinate %d of the run's own points is %v, not %v", metric, i, v, e.Positions.X[i])
			}
		}
		zero := m.Rows(0, 3).Clone()
		clear(zero.Row(1))
		var bad *cne.PointError
		if _, err := e.Project(t.Context(), zero); !errors.As(err, &bad) || bad.Row != 1 || !errors.Is(err, cne.ErrPoints) {
			t.Errorf("%s: a point of zeros gives %v", metric, err)
		}
		if _, err := cne.Embed(t.Context(), data.NewMatrix(30, 3), o); !errors.Is(err, cne.ErrPoints) || !errors.Is(err, data.ErrDirection) {
			t.Errorf("%s: points of zeros give %v", metric, err)
		}
	}
	if _, err := cne.Embed(t.Context(), m, cne.Options{GraphMetric: "taxi"}); !errors.Is(err, cne.ErrOption) {
		t.Errorf("an unknown metric gives %v", err)
	}
}

// The distances of manhattan, hamming, jaccard and haversine are between the points
// themselves, of training and new ones, and after Load.
func TestDirectMetrics(t *testing.T) {
	stream := rng.New(5, rng.Sample)
	for _, metric := range []data.Metric{data.Manhattan, data.Hamming, data.Jaccard, data.Haversine} {
		m := data.NewMatrix(150, 40)
		if metric == data.Haversine {
			m = data.NewMatrix(150, 2)
			m.Offset = []float64{48, 11}
		}
		for i := range m.X {
			if m.X[i] = float32(stream.Normal()); metric != data.Haversine && metric != data.Manhattan {
				m.X[i] = float32(3 * stream.IntN(2+i%3))
			}
		}
		for name, hidden := range map[string][]int{"table": nil, "network": {8}} {
			o := few(func(o *cne.Options) { o.GraphMetric, o.Hidden, o.Components = metric, hidden, new(cne.AutoComponents) })
			e := embed(t, m, o)
			prepared := m.Clone()
			for i := range prepared.X {
				if metric == data.Jaccard {
					prepared.X[i] = min(1, prepared.X[i])
				}
			}
			if metric == data.Haversine {
				for i := range prepared.X {
					prepared.X[i] /= data.HaversineUnit
				}
				prepared.Offset = []float64{48. / data.HaversineUnit, 11. / data.HaversineUnit}
			}
			prepared.Metric = metric
			if !slices.Equal(e.Neighborhood.Nearest.Index, nearest(t, prepared, e.Neighborhood.Nearest.K).Index) {
				t.Errorf("%s: neighbours differ", metric)
			}
			positions := project(t, e, m).X
			for i, v := range positions {
				if math.Abs(float64(v-e.Positions.X[i])) > 1e-4 {
					t.Fatalf("%s, %s: coordinate %d of the run's own points is %v, not %v", metric, name, i, v, e.Positions.X[i])
				}
			}
			path, others := filepath.Join(t.TempDir(), "model.safetensors"), m.Clone()
			for i := range others.X {
				others.X[i] = m.X[(i+7*m.D)%len(m.X)]
			}
			others.X[3] += 0.5
			must(t, e.Save(path))
			again, err := cne.Load(path)
			must(t, err)
			same(t, string(metric)+": a loaded model places points elsewhere", project(t, again, others).X, project(t, e, others).X)
			o.Components = new(2)
			if _, err := cne.Embed(t.Context(), m, o); !errors.Is(err, cne.ErrOption) {
				t.Errorf("%s: components give %v", metric, err)
			}
		}
	}
	bad := data.NewMatrix(40, 2)
	bad.X[6] = 90.5
	var point *data.DirectionError
	if _, err := cne.Embed(t.Context(), bad, cne.Options{GraphMetric: data.Haversine}); !errors.As(err, &point) || !slices.Equal(point.Rows, []int{3}) {
		t.Errorf("a latitude beyond the pole gives %v", err)
	}
	if _, err := cne.Embed(t.Context(), data.NewMatrix(40, 3), cne.Options{GraphMetric: data.Haversine}); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("points on a sphere of three values give %v", err)
	}
}

// sameElements returns the share of places in which two slices have the same.
func sameElements(a, b []int32) float64 {
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(len(a))
}

// A spectrum whose runs are interrupted continues from their states to the same results.
func TestSpectrumGoesOn(t *testing.T) {
	m := points(t, 300)
	o := few(func(o *cne.Options) { o.Epochs = 6 })
	last := cne.PhasesAt(train.FromZBar(1e3), train.FromZBar(1e4))
	want := spectrum(t, m, last, o)
	var mutex sync.Mutex
	kept := map[int]*train.Checkpoint{}
	enough := errors.New("enough")
	limit := 0 // of epochs that a process gets to
	o.SpectrumCheckpoints = &cne.SpectrumCheckpoints{
		Epochs: 1,
		Save: func(run int, c *train.Checkpoint) (err error) {
			mutex.Lock()
			defer mutex.Unlock()
			if kept[run], err = c.Clone(); err == nil && c.Progress.Epochs == limit {
				err = enough
			}
			return err
		},
		Resume: func(run int) (*train.Checkpoint, error) {
			mutex.Lock()
			defer mutex.Unlock()
			return kept[run], nil
		},
	}
	for limit = 1; limit <= 5; limit++ {
		if limit == 2 {
			continue // the end of the shared phase, where the others begin
		}
		if _, err := cne.Spectrum(t.Context(), m, last, o); !errors.Is(err, enough) {
			t.Fatalf("up to epoch %d: %v", limit, err)
		}
	}
	limit = 0 // none
	got := spectrum(t, m, last, o)
	for i := range want {
		if !slices.Equal(got[i].Positions.X, want[i].Positions.X) || got[i].Result.Epochs != want[i].Result.Epochs || got[i].Result.Loss != want[i].Result.Loss {
			t.Errorf("embedding %d differs from the one of a spectrum that nothing changed", i)
		}
	}
	broken := errors.New("broken")
	o.SpectrumCheckpoints.Resume = func(int) (*train.Checkpoint, error) { return nil, broken }
	if _, err := cne.Spectrum(t.Context(), m, last, o); !errors.Is(err, broken) {
		t.Errorf("states that cannot be read give %v", err)
	}
}

// An interrupted run returns what it has learnt, and continues from its last checkpoint
// to the same end.
func TestInterruptedRunGoesOn(t *testing.T) {
	m := points(t, 50)
	want := embed(t, m, few(nil))
	var kept *train.Checkpoint
	ctx, cancel := context.WithCancel(t.Context())
	o := few(func(o *cne.Options) {
		o.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) (err error) {
			kept, err = c.Clone()
			return err
		}}
		o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
			if s.Epoch == 2 {
				cancel()
			}
			return nil
		})}
	})
	e, err := cne.Embed(ctx, m, o)
	if !errors.Is(err, context.Canceled) || e == nil || e.Result.Epochs != 2 || kept == nil {
		t.Fatalf("%v; the embedding is %v", err, e)
	}
	same(t, "the run that went on ends elsewhere", embed(t, m, few(func(o *cne.Options) { o.Resume = kept })).Positions.X, want.Positions.X)
	if e, err := cne.Embed(ctx, m, few(nil)); !errors.Is(err, context.Canceled) || e != nil {
		t.Errorf("before it began: %v, %v", e, err)
	}
}

// Bad input is an error that says so, and never a panic.
func TestBadInput(t *testing.T) {
	m := points(t, 20)
	nan := &data.Matrix{N: 40, D: 3, X: slices.Clone(m.X)}
	nan.X[17] = float32(math.NaN())
	for name, x := range map[string]struct {
		points *data.Matrix
		change func(*cne.Options)
		cause  error
	}{
		"no points":             {nil, nil, cne.ErrPoints},
		"empty":                 {new(data.Matrix), nil, cne.ErrPoints},
		"sizes that do not fit": {&data.Matrix{N: 40, D: 3, X: m.X[:7]}, nil, cne.ErrPoints},
		"NaN":                   {nan, nil, cne.ErrPoints},
		"too few points":        {m.Rows(0, 5), nil, cne.ErrPoints},
		"one point":             {m.Rows(0, 1), nil, cne.ErrPoints},
		"unknown scaling":       {m, func(o *cne.Options) { o.Scaling = "large" }, cne.ErrOption},
		"unknown loss":          {m, func(o *cne.Options) { o.Loss = 17 }, cne.ErrOption},
		"unknown metric":        {m, func(o *cne.Options) { o.Metric = -1 }, cne.ErrOption},
		"temperature":           {m, func(o *cne.Options) { o.Temperature = math.NaN() }, cne.ErrOption},
		"scale":                 {m, func(o *cne.Options) { o.Scale = -1 }, cne.ErrOption},
		"momentum":              {m, func(o *cne.Options) { o.Momentum = 7 }, cne.ErrOption},
		"standard deviation":    {m, func(o *cne.Options) { o.InitStd = -1 }, cne.ErrOption},
		"too many dimensions":   {m, func(o *cne.Options) { o.Dim = math.MaxInt / 2 }, cne.ErrOption},
		"hook":                  {m, func(o *cne.Options) { o.Hooks = []train.Hook{nil} }, cne.ErrOption},
		"no way to save":        {m, func(o *cne.Options) { o.Checkpoints = new(train.Checkpoints) }, cne.ErrOption},
		"another's checkpoint":  {m, func(o *cne.Options) { o.Resume = new(train.Checkpoint) }, train.ErrCheckpoint},
		"equal points":          {data.NewMatrix(40, 3), func(o *cne.Options) { o.Hidden = []int{4} }, cne.ErrEqualPoints},
		"neighbours":            {m, func(o *cne.Options) { o.Neighbors = -3 }, cne.ErrOption},
		"components":            {m, func(o *cne.Options) { o.Components = new(-2) }, cne.ErrOption},
		"dimensions":            {m, func(o *cne.Options) { o.Dim = -2 }, cne.ErrOption},
		"unknown optimiser":     {m, func(o *cne.Options) { o.Optimizer = 3 }, cne.ErrOption},
		"Adam with momentum":    {m, func(o *cne.Options) { o.Optimizer, o.Momentum = cne.Adam, 0.9 }, cne.ErrOption},
		"a table of PCA":        {m, func(o *cne.Options) { o.OnComponents = true }, cne.ErrOption},
		"epochs":                {m, func(o *cne.Options) { o.Epochs = -1 }, cne.ErrOption},
		"negatives":             {m, func(o *cne.Options) { o.Negatives = -2 }, cne.ErrOption},
		"clamp":                 {m, func(o *cne.Options) { o.Clamp = new(2.) }, cne.ErrOption},
		"clip":                  {m, func(o *cne.Options) { o.Clip = new(math.NaN()) }, cne.ErrOption},
		"place":                 {m, func(o *cne.Options) { o.Loss, o.Spectrum = op.UMAP, train.FromS(1) }, cne.ErrOption},
		"start of another size": {m, func(o *cne.Options) { o.Init, o.Start = cne.InitGiven, data.NewMatrix(3, 2) }, cne.ErrOption},
		"start at one place":    {m, func(o *cne.Options) { o.Init, o.Start = cne.InitGiven, data.NewMatrix(40, 2) }, cne.ErrOption},
		"start of no number": {m, func(o *cne.Options) {
			o.Init, o.Start = cne.InitGiven, data.NewMatrix(40, 2)
			o.Start.X[3] = float32(math.Inf(1))
		}, cne.ErrOption},
		"graph of others":     {m, func(o *cne.Options) { o.Graph = &neighbors.Graph{N: 3, Indptr: make([]int64, 4)} }, cne.ErrOption},
		"graph without edges": {m, func(o *cne.Options) { o.Graph = &neighbors.Graph{N: 40, Indptr: make([]int64, 41)} }, cne.ErrOption},
		"width of a layer":    {m, func(o *cne.Options) { o.Hidden = []int{0} }, cne.ErrOption},
	} {
		if e, err := cne.Embed(t.Context(), x.points, few(x.change)); e != nil || !errors.Is(err, x.cause) {
			t.Errorf("%s: the error is %v, the embedding %v", name, err, e)
		}
	}

	e := embed(t, m, few(nil))
	for name, p := range map[string]*data.Matrix{"none": nil, "width": data.NewMatrix(2, 5), "NaN": nan} {
		if _, err := e.Project(t.Context(), p); !errors.Is(err, cne.ErrPoints) {
			t.Errorf("projecting %s: the error is %v", name, err)
		}
	}
	var bad *cne.PointError
	if _, err := e.Project(t.Context(), nan); !errors.As(err, &bad) || bad.Row != 5 {
		t.Errorf("the error is %v", err)
	}
	skipping := func(b *cne.ProjectedBlock) error {
		if b.Bad != 1 || !math.IsNaN(float64(b.Positions.Row(5)[0])) || math.IsNaN(float64(b.Positions.Row(6)[0])) {
			t.Errorf("%d points are skipped", b.Bad)
		}
		return nil
	}
	must(t, e.ProjectRows(t.Context(), file.Of(&data.Dataset{Points: nan}), cne.Projection{SkipBad: true}, skipping))
	if _, err := cne.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was loaded")
	}
}

// Parts that do not fit together are errors, too.
func TestBadParts(t *testing.T) {
	m, ctx := points(t, 20), t.Context()
	h := prepare(t, m, few(nil))
	e := fit(t, h, few(nil))
	fit := func(h *cne.Neighborhood, change func(*cne.Options)) error {
		_, err := h.Fit(ctx, few(change))
		return err
	}
	fitModel := func(m cne.Trainable) error {
		_, err := h.FitModel(ctx, m, few(nil))
		return err
	}
	place := func(e *cne.Embedding, points *data.Matrix) error {
		_, err := e.Project(ctx, points)
		return err
	}
	small, err := model.NewEmbedding(make([]float32, 20), 2, e.Description.Training.Objective)
	must(t, err)
	void := new(cne.Embedding)
	for name, x := range map[string]struct{ got, want error }{
		"nothing to fit":                {fit(new(cne.Neighborhood), nil), cne.ErrPoints},
		"no neighbourhood":              {fit(nil, nil), cne.ErrPoints},
		"towards of another size":       {fit(h, func(o *cne.Options) { o.Pull, o.Towards = 1, data.NewMatrix(3, 2) }), cne.ErrOption},
		"towards without a pull":        {fit(h, func(o *cne.Options) { o.Towards = data.NewMatrix(h.Graph.N, 2) }), cne.ErrOption},
		"start of another size":         {fit(h, func(o *cne.Options) { o.Init, o.Start = cne.InitGiven, data.NewMatrix(3, 2) }), cne.ErrOption},
		"another graph":                 {fit(h, func(o *cne.Options) { o.Graph = new(neighbors.Graph) }), cne.ErrOption},
		"a network of a table's":        {fit(h, func(o *cne.Options) { o.Hidden = []int{3} }), cne.ErrOption},
		"no model":                      {fitModel(nil), cne.ErrOption},
		"model of another size":         {fitModel(small), cne.ErrOption},
		"no points":                     {place(e, nil), cne.ErrPoints},
		"points that do not fit":        {place(e, &data.Matrix{N: 40, D: 3}), cne.ErrPoints},
		"no training points":            {e.UseTrainingPoints(nil), cne.ErrPoints},
		"training points without value": {e.UseTrainingPoints(&data.Matrix{N: 40, D: 3}), cne.ErrPoints},
		"sparse training points":        {e.UseTrainingPoints(sparsePoints(t, 40)), cne.ErrPoints},
		"nothing to save":               {void.Save(filepath.Join(t.TempDir(), "e")), cne.ErrPoints},
		"no model to save":              {void.SaveModel(filepath.Join(t.TempDir(), "e")), cne.ErrPoints},
		"nothing to project by":         {place(void, m), cne.ErrPoints},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("%s: the error is %v", name, x.got)
		}
	}
	for _, bad := range []int32{-1, 40, math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 40, len(h.Graph.Indices) - 1} {
			broken := *h.Graph
			broken.Indices = slices.Clone(broken.Indices)
			broken.Indices[at] = bad
			if _, err := cne.Embed(ctx, m, few(func(o *cne.Options) { o.Graph = &broken })); !errors.Is(err, neighbors.ErrInvalidGraph) {
				t.Errorf("%d at %d of the graph: %v", bad, at, err)
			}
		}
	}
	if d := void.Dim(); d != 0 {
		t.Errorf("nothing has %d dimensions", d)
	}
	if place(e, m) != nil {
		t.Error("the embedding is no longer what it was")
	}
}

// An interrupted spectrum returns its embeddings as far as they were trained.
func TestInterruptedSpectrum(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	o := few(func(o *cne.Options) {
		o.Epochs = 6
		o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
			if s.Epoch == 4 { // two of them are shared
				cancel(errors.New("enough"))
			}
			return nil
		})}
	})
	spectrum, err := cne.Spectrum(ctx, points(t, 300), cne.PhasesAt(train.FromZBar(1e3), train.FromZBar(1e4)), o)
	if !errors.Is(err, context.Canceled) || len(spectrum) != 2 {
		t.Fatalf("%v: %v", spectrum, err)
	}
	most := 0
	for _, e := range spectrum {
		if e != nil {
			most = max(most, e.Result.Epochs)
		}
	}
	if most != 4 {
		t.Errorf("the furthest embedding has learnt for %d epochs", most)
	}
	o.Hooks = nil
	if none, err := cne.Spectrum(ctx, points(t, 300), cne.PhasesAt(train.SpectrumParam{}), o); !errors.Is(err, context.Canceled) || none != nil {
		t.Errorf("before it began: %v, %v", none, err)
	}
	for name, change := range map[string]func(*cne.Options){
		"resumed": func(o *cne.Options) { o.Resume = new(train.Checkpoint) },
		"saved": func(o *cne.Options) {
			o.Checkpoints = &train.Checkpoints{Save: func(*train.Checkpoint) error { return nil }}
		},
	} {
		if _, err := cne.Spectrum(t.Context(), points(t, 20), cne.PhasesAt(train.SpectrumParam{}), few(change)); !errors.Is(err, cne.ErrOption) {
			t.Errorf("a spectrum that is %s: the error is %v", name, err)
		}
	}
}

// Phases take what they leave open from the options.
func TestPhasesInherit(t *testing.T) {
	o := cne.Options{LR: 0.25, Negatives: 7, Phases: []cne.Phase{{Epochs: 2}, {Epochs: 3, LR: 0.5, Negatives: train.Full}}}
	got := o.FitOptions().Phases
	want := []train.Phase{{Epochs: 2, LR: 0.25, Negatives: 7}, {Epochs: 3, LR: 0.5, Negatives: train.Full}}
	if !reflect.DeepEqual(got, want) || o.Phases[0].LR != 0 {
		t.Errorf("the phases are %+v", got)
	}
}

// An embedding without a network that was saved without its training points says so, and
// takes them.
func TestTableWithoutItsPoints(t *testing.T) {
	m := points(t, 30)
	h := prepare(t, m, few(nil))
	e := fit(t, h, few(nil))
	table, err := model.NewEmbedding(e.Positions.X, 2, e.Description.Training.Objective)
	must(t, err)
	path := filepath.Join(t.TempDir(), "e.safetensors")
	must(t, table.Save(path, &e.Description))
	loaded, err := cne.Load(path)
	must(t, err)
	if _, err := loaded.Project(t.Context(), m); !errors.Is(err, cne.ErrNoTrainingPoints) {
		t.Errorf("the error is %v", err)
	}
	if err := loaded.UseTrainingPoints(m.Rows(0, 3)); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("the error is %v", err)
	}
	must(t, loaded.UseTrainingPoints(h.Reduced))
	network := embed(t, m, few(func(o *cne.Options) { o.Hidden = []int{5} }))
	if err := network.UseTrainingPoints(h.Reduced); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("training points for a network give %v", err)
	}
	must(t, e.Save(path))
	loaded, err = cne.Load(path)
	must(t, err)
	must(t, loaded.SaveModel(path))
	bare, err := cne.Load(path)
	must(t, err)
	if !loaded.HasTrainingPoints() || bare.HasTrainingPoints() || new(cne.Embedding).HasTrainingPoints() {
		t.Errorf("there are training points: %t after Save, %t after SaveModel, %t in an empty embedding", loaded.HasTrainingPoints(), bare.HasTrainingPoints(), new(cne.Embedding).HasTrainingPoints())
	}
	same(t, "the points are placed elsewhere", project(t, loaded, m.Rows(0, 4)).X, project(t, e, m.Rows(0, 4)).X)
}

// Points far from zero have the neighbours that they have near it, and new ones are
// placed where they are placed there.
func TestFarFromZero(t *testing.T) {
	s := rng.New(1, rng.Init)
	near, far := make([][]float64, 150), make([][]float64, 150)
	for i := range near {
		for j := range 3 {
			v := math.Round(5*1024*s.Normal()) / 1024 // exact in either place
			near[i], far[i] = append(near[i], v), append(far[i], v+1e8*float64(j-1))
		}
	}
	matrix := func(rows [][]float64) *data.Matrix {
		m, err := data.FromRows(rows)
		must(t, err)
		return m
	}
	for _, scaling := range []data.Scaling{data.ScaleNone, data.ScaleUnit, data.ScaleStandard} {
		for name, hidden := range map[string][]int{"table": nil, "network": {8}} {
			t.Run(string(scaling)+" "+name, func(t *testing.T) {
				o := few(func(o *cne.Options) { o.Scaling, o.Hidden = scaling, hidden })
				a, b := embed(t, matrix(near), o), embed(t, matrix(far), o)
				if !slices.Equal(a.Neighborhood.Graph.Indices, b.Neighborhood.Graph.Indices) {
					t.Fatal("the graph is another")
				}
				loaded := reloaded(t, b)
				whole := project(t, loaded, matrix(far))
				// A few have no offset of their own, or another.
				for i, v := range project(t, loaded, matrix(far[:3])).X {
					if math.Abs(float64(v-whole.X[i])) > 1e-3 {
						t.Errorf("coordinate %d is %v among few and %v among all", i, v, whole.X[i])
					}
				}
			})
		}
	}
}

// Points whose columns have names are projected by them, with and without a network, also
// after saving and loading.
func TestProjectByName(t *testing.T) {
	m := points(t, 40)
	m.Columns = make([]string, m.D)
	for j := range m.Columns {
		m.Columns[j] = string(rune('a' + j))
	}
	for name, o := range map[string]cne.Options{
		"table": few(nil), "network": few(func(o *cne.Options) { o.Hidden = []int{8} }),
		"network of PCA": few(func(o *cne.Options) { o.Hidden, o.OnComponents, o.Components = []int{8}, true, new(2) }),
	} {
		t.Run(name, func(t *testing.T) {
			e := reloaded(t, embed(t, m, o))
			want := project(t, e, m)
			// Reversed, after an unknown column.
			back := data.NewMatrix(m.N, m.D+1)
			back.Columns = []string{"other"}
			for j := range m.D {
				back.Columns = append(back.Columns, m.Columns[m.D-1-j])
			}
			for i := range m.N {
				back.Row(i)[0] = float32(math.NaN()) // takes no part
				for j, v := range m.Row(i) {
					back.Row(i)[m.D-j] = v
				}
			}
			for name, points := range map[string]*data.Matrix{"in another order": back, "without names": {N: m.N, D: m.D, X: m.X}} {
				same(t, "points "+name+" are placed elsewhere", project(t, e, points).X, want.X)
			}
			back.Columns[1] = "unknown"
			if _, err := e.Project(t.Context(), back); !errors.Is(err, cne.ErrPoints) || !errors.Is(err, data.ErrShape) {
				t.Errorf("a column is missing, but the error is %v", err)
			}
		})
	}
}

// Points that stay in their file become what they become in memory.
func TestPrepareFromFiles(t *testing.T) {
	m := data.NewMatrix(60, 12)
	stream := rng.New(3, rng.Init)
	for i := range m.X {
		m.X[i] = float32(stream.Normal())
	}
	path := written(t, m)
	for _, o := range []cne.Options{{Components: new(4)}, {Components: new(0)}, {Components: new(4), Hidden: []int{5}}, {Components: new(4), Hidden: []int{5}, OnComponents: true}} {
		o.Neighbors = 5
		want := prepare(t, m, o)
		set, err := file.Read(t.Context(), []string{path}, file.Options{StreamAbove: 4, StreamFrom: 1})
		if err != nil || set.Stored == nil {
			t.Fatal(set, err)
		}
		got, err := cne.Prepare(t.Context(), set, o)
		must(t, err)
		if !reflect.DeepEqual(got.Reduced.X, want.Reduced.X) || !reflect.DeepEqual(got.Graph, want.Graph) || !reflect.DeepEqual(got.PCA, want.PCA) ||
			!reflect.DeepEqual(got.Scaled, want.Scaled) || !reflect.DeepEqual(got.Preprocessing, want.Preprocessing) || set.Stored != nil {
			t.Errorf("%+v: the neighbourhoods differ", o)
		}
	}
	if _, err := cne.Prepare(t.Context(), new(data.Dataset), cne.Options{}); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("no points: %v", err)
	}
}

// Below their least numbers of points, presets have the values of PresetAuto.
func TestPresetFor(t *testing.T) {
	for _, tc := range []struct {
		p     cne.Preset
		least int
	}{{cne.PresetTSNE, 3000}, {cne.PresetMillion, 20000}} {
		for _, n := range []int{tc.least - 1, tc.least} {
			same := reflect.DeepEqual(tc.p.Apply(cne.Options{}, n, nil), cne.PresetAuto.Apply(cne.Options{}, n, nil))
			if few := n < tc.least; same != few || few != (tc.p.For(n) == cne.PresetAuto) {
				t.Errorf("%s for %d points: the values of auto: %v, For: %s", tc.p, n, same, tc.p.For(n))
			}
		}
	}
}
