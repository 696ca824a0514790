package cne_test

import (
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
	"cne/model/op"
	"cne/train"
)

// Rates that are far too large are an error, not a map.
func TestTooLargeRateIsAnError(t *testing.T) {
	m, r := data.NewMatrix(1000, 3), rand.New(rand.NewPCG(1, 2))
	for i := range m.X {
		m.X[i] = float32(r.NormFloat64())
	}
	o := cne.Options{
		Loss: op.InfoNC, Negatives: train.All,
		Phases: []cne.Phase{{Epochs: 20, LR: 1, Negatives: 5}, {Epochs: 100, LR: 50}},
	}
	_, err := cne.Embed(t.Context(), m, o)
	if diverged := new(train.DivergedError); !errors.As(err, &diverged) || !errors.Is(err, train.ErrRose) || diverged.LR != 50 {
		t.Errorf("got %v, want the loss to have risen at rate 50", err)
	}
	o.Retries = cne.DefaultRetries
	e, err := cne.Embed(t.Context(), m, o)
	must(t, err)
	if e.Result.Retries == 0 || e.Description.Training.LR != e.Result.LR || e.Result.LR >= 50 {
		t.Errorf("%d retries, and new points are placed with the rate %g, want the last phase's", e.Result.Retries, e.Description.Training.LR)
	}
}

// A first phase that scatters the points does not hide that the last leaves them scattered.
func TestScatteredInTheFirstPhase(t *testing.T) {
	m, r := data.NewMatrix(178, 13), rand.New(rand.NewPCG(1, 2))
	for i := range m.X {
		m.X[i] = float32(r.NormFloat64())
	}
	for _, lr := range []float64{30, 100, 300, 1000} {
		_, err := cne.Embed(t.Context(), m, cne.PresetAuto.Apply(cne.Options{LR: lr}, m.N, nil))
		if !errors.As(err, new(*train.DivergedError)) {
			t.Errorf("rate %g: got %v, want a diverged run", lr, err)
		}
	}
}

// No phase of a preset has a larger rate than the one that is given.
func TestGivenRateLimitsPhases(t *testing.T) {
	for _, p := range []cne.Preset{cne.PresetAuto, cne.PresetTSNE, cne.PresetMillion} {
		for _, o := range []cne.Options{{LR: 0.01}, {LR: 0.01, Negatives: 7}} {
			for _, x := range p.Apply(o, 50000, nil).Phases {
				if x.LR > 0.01 {
					t.Errorf("%v: a phase has the rate %g", p, x.LR)
				}
			}
		}
	}
}

// Positions far from the spectrum and tiny rates do not pass without a word.
func TestDoubtfulMaps(t *testing.T) {
	m, r := data.NewMatrix(300, 3), rand.New(rand.NewPCG(1, 2))
	for i := range m.X {
		m.X[i] = float32(r.NormFloat64())
	}
	s, z := train.FromS, train.FromZBar
	for _, tc := range []struct {
		o    cne.Options
		want string
	}{
		{cne.Options{Spectrum: s(-1)}, ""},
		{cne.Options{Spectrum: s(2)}, ""},
		{cne.Options{Spectrum: z(0)}, ""},
		{cne.Options{Spectrum: s(-1.5)}, "s=-1.5"},
		{cne.Options{Spectrum: s(3)}, "s=3"},
		{cne.Options{Spectrum: z(1)}, "s=-3.42"},
		{cne.Options{Loss: op.InfoNC, Spectrum: s(3)}, "s=3"},
		{cne.Options{Loss: op.InfoNC, Spectrum: s(-0.1)}, "grows without end"},
		{cne.Options{Loss: op.InfoNC, Metric: op.Cosine, Spectrum: s(-0.1), Dim: 3}, ""},
		{cne.Options{Metric: op.Cosine}, "a map is a circle"},
		{cne.Options{LR: 0.01}, "train.lr is so small"},
		{cne.Options{Loss: op.InfoNC, Negatives: train.All, LR: 7}, ""},
		{cne.Options{Loss: op.InfoNC, Negatives: train.All, LR: 15}, "scatters most points"},
		{cne.Options{LR: 0.01, Optimizer: cne.Adam}, ""},
		{cne.Options{WeightDecay: 1, InitStd: 1e18, LR: 1}, "ended at one place"},
	} {
		var log strings.Builder
		tc.o.Epochs, tc.o.Log = 40, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		_, err := cne.Embed(t.Context(), m, tc.o)
		must(t, err)
		if got := log.String(); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: got %q, want %q", tc.o.Spectrum, got, tc.want)
		}
	}
}

// A spectrum warns once of what all its embeddings have in common.
func TestDoubtfulSpectrum(t *testing.T) {
	m, r := data.NewMatrix(100, 3), rand.New(rand.NewPCG(1, 2))
	for i := range m.X {
		m.X[i] = float32(r.NormFloat64())
	}
	var log strings.Builder
	o := cne.Options{Epochs: 20, LR: 0.001, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	_, err := cne.Spectrum(t.Context(), m, cne.PhasesAt(train.FromS(-2), train.FromS(0), train.FromS(3)), o)
	must(t, err)
	got := log.String()
	for text, want := range map[string]int{"train.lr is so small": 1, "s=-2": 1, "s=3": 1, "level": 3} {
		if strings.Count(got, text) != want {
			t.Errorf("%q: want it %d times in %s", text, want, got)
		}
	}
}

// The presets retry where the rates are theirs.
func TestPresetsRetry(t *testing.T) {
	for want, o := range map[int]cne.Options{3: {}, 0: {LR: 2}, 1: {Retries: 1}} {
		for _, p := range []cne.Preset{cne.PresetAuto, cne.PresetTSNE, cne.PresetUMAP, cne.PresetMillion, cne.PresetFast} {
			if got := p.Apply(o, 50000, nil).Retries; got != want {
				t.Errorf("%v: %d retries with rate %g, want %d", p, got, o.LR, want)
			}
		}
	}
}

// Groups without edges between them do not end as dots: they lie within some hundred units, and
// new points among them, also after saving. The paper's preset leaves them where training does.
func TestGroupsLieTogether(t *testing.T) {
	const n, groups = 600, 6
	m, fresh, r := data.NewMatrix(n, 5), data.NewMatrix(groups, 5), rand.New(rand.NewPCG(1, 2))
	for i := range n {
		for j := range m.D {
			m.Row(i)[j] = float32(r.NormFloat64())
		}
		m.Row(i)[i%groups%m.D] += 100 * float32(1+i%groups)
		copy(fresh.Row(i%groups), m.Row(i))
		fresh.Row(i % groups)[0] += 0.1
	}
	extent := func(m *data.Matrix) float64 { return float64(slices.Max(m.X) - slices.Min(m.X)) }
	e, err := cne.Embed(t.Context(), m, cne.PresetAuto.Apply(cne.Options{}, n, nil))
	must(t, err)
	if got := extent(e.Positions); got > 400 {
		t.Errorf("the map is %g wide", got)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must(t, e.SaveModel(path))
	loaded, err := cne.Load(path)
	must(t, err)
	points, err := loaded.Description.Preprocessing.Apply(t.Context(), m.Clone())
	must(t, err)
	must(t, loaded.UseTrainingPoints(points))
	loaded.Positions = e.Positions
	for name, e := range map[string]*cne.Embedding{"trained": e, "loaded": loaded} {
		placed, err := e.Project(t.Context(), fresh)
		must(t, err)
		for c := range groups {
			at, next := placed.Row(c), e.Positions.Row(n-groups+c)
			if d := math.Hypot(float64(at[0]-next[0]), float64(at[1]-next[1])); d > 20 {
				t.Errorf("%s: a new point of group %d is %g from the point next to it", name, c, d)
			}
		}
		if extent(placed) > 400 {
			t.Errorf("%s: new points are spread over %g", name, extent(placed))
		}
	}
}
