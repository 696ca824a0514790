package cne_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"cne"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/train/initial"
	"cne/train/quality"
)

// TestFleet runs presets on data of different kinds. Every map keeps more neighbours than
// the first two principal components, and a map of preset tsne at least 0.9 of what auto
// keeps. bench/fleet has more kinds, sizes and presets.
func TestFleet(t *testing.T) {
	gauss := func(row []float32, s *rng.Stream) {
		for j := range row {
			row[j] += float32(s.Normal())
		}
	}
	far := func(groups int) func(i int, row []float32, s *rng.Stream) {
		return func(i int, row []float32, s *rng.Stream) { gauss(row, s); row[i%groups] += 30 }
	}
	for _, c := range []struct {
		kind    string
		n, d    int
		as      int // the presets are those of as many points
		of      func(i int, row []float32, s *rng.Stream)
		presets []cne.Preset
	}{
		{"noise, whose graph has hubs", 1500, 50, 3001, func(i int, row []float32, s *rng.Stream) { gauss(row, s) }, []cne.Preset{cne.PresetAuto, cne.PresetTSNE, cne.PresetUMAP}},
		{"linked rings", 1500, 3, 3001, func(i int, row []float32, s *rng.Stream) {
			gauss(row, s)
			turn := 2 * math.Pi * s.Float64()
			for j := range row {
				row[j] *= 0.02
			}
			row[0] += float32(float64(i%2) + math.Cos(turn))
			row[1+i%2] += float32(math.Sin(turn))
		}, []cne.Preset{cne.PresetAuto, cne.PresetTSNE}},
		{"one far point", 100, 5, 100, func(i int, row []float32, s *rng.Stream) { gauss(row, s); row[0] += float32(1e4 * (i / 99)) }, []cne.Preset{cne.PresetAuto, cne.PresetFast, cne.PresetUMAP}},
		{"two groups", 5000, 30, 20001, far(2), []cne.Preset{cne.PresetMillion}},
		{"many small groups", 1000, 40, 1000, far(40), []cne.Preset{cne.PresetPaper}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			points, s := data.NewMatrix(c.n, c.d), rng.New(1, rng.Sample)
			for i := range c.n {
				c.of(i, points.Row(i), &s)
			}
			kept := func(positions *data.Matrix) float64 {
				t.Helper()
				f, err := quality.Measure(t.Context(), points, positions, quality.Options{Sample: new(1000), Skip: ^quality.MetricRecall})
				must(t, err)
				return *f.KNNRecall
			}
			components, err := initial.Components(t.Context(), points, 2)
			must(t, err)
			least := kept(components)
			var auto float64
			for _, p := range c.presets {
				got := kept(embed(t, points, p.Apply(cne.Options{}, c.as, nil)).Positions)
				t.Logf("%s keeps %.3f of the neighbours, principal components %.3f", p, got, least)
				if p == cne.PresetAuto {
					auto = got
				}
				if got <= least || p == cne.PresetTSNE && got < 0.9*auto {
					t.Errorf("%s keeps %.3f of the neighbours, auto %.3f, principal components %.3f", p, got, auto, least)
				}
			}
		})
	}
}

// With Density the embedding keeps how dense the points are, and hardly fewer neighbours:
// the logarithms of the distances to the neighbours, before and after, are correlated.
func TestDensity(t *testing.T) {
	points, s := data.NewMatrix(900, 8), rng.New(1, rng.Sample)
	for i := range points.N {
		row, spread := points.Row(i), math.Exp(float64(i%3)) // three groups, the widest seven times the narrowest
		for j := range row {
			row[j] = float32(spread * s.Normal())
		}
		row[i%3] += 40
	}
	const k = 15
	radii := func(m *data.Matrix) []float64 {
		nb, err := neighbors.KNN(t.Context(), m, k, neighbors.Options{})
		must(t, err)
		r := make([]float64, m.N)
		for e, d2 := range nb.Dist2 {
			r[e/k] += math.Sqrt(d2) / k
		}
		for i := range r {
			r[i] = math.Log(r[i])
		}
		return r
	}
	before := radii(points)
	keeps := func(o cne.Options) (density, recall float64) {
		e := embed(t, points, cne.PresetAuto.Apply(o, points.N, func(key string) bool { return key == "graph.density" }))
		f, err := quality.Measure(t.Context(), points, e.Positions, quality.Options{Sample: new(points.N), Skip: ^quality.MetricRecall})
		must(t, err)
		return stat.Correlation(before, radii(e.Positions), nil), *f.KNNRecall
	}
	none, recall0 := keeps(cne.Options{})
	half, recall1 := keeps(cne.Options{Density: 1})
	whole, recall2 := keeps(cne.Options{Density: 2})
	t.Logf("correlation %.3f, %.3f, %.3f; recall %.3f, %.3f, %.3f", none, half, whole, recall0, recall1, recall2)
	if half < none+0.05 || whole < half || whole < 0.9 || min(recall1, recall2) < recall0-0.02 {
		t.Error("density 0, 1 and 2 do not keep ever more of the density, and the neighbours")
	}
}

// Groups that are 4, 16 and 64 times as spread out as the narrowest stay groups: none flows
// around the others.
func TestDensityOfUnequalGroups(t *testing.T) {
	points, s := data.NewMatrix(1600, 10), rng.New(3, rng.Sample)
	labels := make([]string, points.N)
	for i := range points.N {
		group := i % 4
		labels[i] = string(rune('0' + group))
		row := points.Row(i)
		for j := range row {
			row[j] = float32(math.Pow(4, float64(group-1)) * s.Normal())
		}
		row[group] += 2000
	}
	e := embed(t, points, cne.PresetAuto.Apply(cne.Options{}, points.N, func(string) bool { return false }))
	auto, err := quality.Measure(t.Context(), points, e.Positions, quality.Options{Labels: data.NewLabels(labels)})
	must(t, err)
	if *auto.Accuracy < 0.999 || *auto.KNNRecall < 0.3 || *auto.Spearman < 0.4 {
		t.Errorf("recall %.3f, accuracy %.4f, Spearman %.3f", *auto.KNNRecall, *auto.Accuracy, *auto.Spearman)
	}
}
