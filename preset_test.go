package cne_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"cne"
	"cne/data"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// kindsOfPoints make n points of kinds that differ in what makes steps unstable.
var kindsOfPoints = map[string]func(n int, r *rand.Rand) *data.Matrix{
	// The graph of noise has hubs.
	"noise": func(n int, r *rand.Rand) *data.Matrix { return gaussians(n, 50, 1, r) },
	"sphere": func(n int, r *rand.Rand) *data.Matrix {
		m := gaussians(n, 3, 1, r)
		for i := range n {
			p := m.Row(i)
			length := float32(math.Sqrt(float64(p[0]*p[0] + p[1]*p[1] + p[2]*p[2])))
			for j := range p {
				p[j] /= length
			}
		}
		return m
	},
	"heavy tails": func(n int, r *rand.Rand) *data.Matrix {
		m := gaussians(n, 10, 1, r)
		for i := range n {
			scale := float32(1 / max(0.05, r.Float64()))
			for j := range m.Row(i) {
				m.Row(i)[j] *= scale
			}
		}
		return m
	},
	// The graph of groups that are far apart has no edges between them.
	"groups": func(n int, r *rand.Rand) *data.Matrix { return gaussians(n, 20, 5, r) },
}

// gaussians returns points of unit variance in groups that are far apart, of which each has
// a quarter more points than the next.
func gaussians(n, d, groups int, r *rand.Rand) *data.Matrix {
	m := data.NewMatrix(n, d)
	for i := range n {
		group := min(groups-1, int(math.Log1p(r.Float64()*(math.Pow(1.25, float64(groups))-1))/math.Log(1.25)))
		for j := range d {
			m.Row(i)[j] = float32(r.NormFloat64())
		}
		m.Row(i)[group%d] += float32(40 * group)
	}
	return m
}

// recallOf returns the share of the neighbours that a preset's map keeps.
func recallOf(t *testing.T, p cne.Preset, points *data.Matrix) float64 {
	t.Helper()
	e, err := cne.Embed(t.Context(), points, p.Apply(cne.Options{}, points.N, nil))
	must(t, err)
	f, err := quality.Measure(t.Context(), points, e.Positions, quality.Options{K: 15, Neighbors: e.Neighborhood.Nearest})
	must(t, err)
	return *f.KNNRecall
}

// PresetTSNE keeps neighbours from its least number of points on. PresetAuto keeps the
// given shares.
func TestTSNEKeepsNeighbors(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains four embeddings of 3000 points")
	}
	for name, auto := range map[string]float64{"noise": 0.15, "sphere": 0.785, "heavy tails": 0.27, "groups": 0.27} {
		m := kindsOfPoints[name](3000, rand.New(rand.NewPCG(1, 2)))
		if tsne := recallOf(t, cne.PresetTSNE, m); !(tsne >= 0.93*auto) {
			t.Errorf("%s: it keeps %.4f of the neighbours, auto %.4f", name, tsne, auto)
		}
	}
}

// Groups without edges between them stay maps of their points: they neither collapse nor fly
// apart.
func TestMillionKeepsGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("it embeds 20 000 points")
	}
	m := kindsOfPoints["groups"](20000, rand.New(rand.NewPCG(1, 2)))
	if recall := recallOf(t, cne.PresetMillion, m); !(recall >= 0.1) {
		t.Errorf("it keeps %.4f of the neighbours", recall)
	}
}

// Rates that are far too large are an error, not a map.
func TestTooLargeRateIsAnError(t *testing.T) {
	m := kindsOfPoints["sphere"](1000, rand.New(rand.NewPCG(1, 2)))
	o := cne.Options{
		Loss: op.InfoNC, Negatives: train.All,
		Phases: []cne.Phase{{Epochs: 20, LR: 1, Negatives: 5}, {Epochs: 100, LR: 50}},
	}
	_, err := cne.Embed(t.Context(), m, o)
	if diverged := new(train.DivergedError); !errors.As(err, &diverged) || !errors.Is(err, train.ErrRose) || diverged.LR != 50 {
		t.Errorf("got %v, want the loss to have risen at rate 50", err)
	}
	o.Phases[1].LR = 2
	_, err = cne.Embed(t.Context(), m, o)
	must(t, err)
}
