package cne_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
)

// line returns the neighborhood of n points in a row, each with an edge to the next,
// except where a new row begins.
func line(t *testing.T, n int, begin ...int) *cne.Neighborhood {
	t.Helper()
	g := &neighbors.Graph{N: n, Indptr: []int64{0}}
	points := data.NewMatrix(n, 2)
	for i := range n {
		if i > 0 && !slices.Contains(begin, i) {
			g.Indices = append(g.Indices, int32(i-1))
		}
		if i+1 < n && !slices.Contains(begin, i+1) {
			g.Indices = append(g.Indices, int32(i+1))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		points.Row(i)[0], points.Row(i)[1] = float32(i), float32(i%2)
	}
	must(t, g.Validate())
	return &cne.Neighborhood{Reduced: points, Scaled: points, Graph: g}
}

// A spectral start has the order of a row of points, where the principal components of
// points in disorder have none, and is as large as asked for.
func TestSpectralStart(t *testing.T) {
	const n = 400
	h := line(t, n)
	s := rng.New(1, rng.Init)
	for i := range h.Reduced.X {
		h.Reduced.X[i] = float32(s.Normal())
	}
	start := func(h *cne.Neighborhood, o cne.Options) []float32 {
		t.Helper()
		o.Init, o.LR = cne.InitSpectral, 1e-30
		o.Phases = []cne.Phase{{Epochs: 1}}
		return fit(t, h, o).Positions.X
	}
	x := start(h, cne.Options{InitStd: 3, Dim: 2})
	var mean, square float64
	for i := range n {
		mean += float64(x[2*i]) / n
	}
	for i := range n {
		square += (float64(x[2*i]) - mean) * (float64(x[2*i]) - mean) / n
		if i > 0 && (x[2*i] > x[2*i-2]) != (x[2] > x[0]) {
			t.Fatalf("point %d is out of order", i)
		}
	}
	if math.Abs(math.Sqrt(square)-3) > 1e-3 {
		t.Errorf("the standard deviation is %v", math.Sqrt(square))
	}
	// The components of a graph lie side by side, in the order of their principal components.
	x = start(line(t, n, n/2), cne.Options{Dim: 1})
	e := fit(t, line(t, n, n/2), cne.Options{Dim: 1, LR: 1e-30, Epochs: 1})
	if (e.Positions.X[0] < e.Positions.X[n-1]) != (slices.Max(x[:n/2]) < slices.Min(x[n/2:])) || (e.Positions.X[0] > e.Positions.X[n-1]) != (slices.Min(x[:n/2]) > slices.Max(x[n/2:])) {
		t.Errorf("the components are from %v to %v and from %v to %v", slices.Min(x[:n/2]), slices.Max(x[:n/2]), slices.Min(x[n/2:]), slices.Max(x[n/2:]))
	}
	for name, o := range map[string]cne.Options{
		"network":            {Init: cne.InitSpectral, Hidden: []int{3}},
		"start":              {Init: cne.InitSpectral, Start: data.NewMatrix(n, 2)},
		"unknown":            {Init: -1},
		"diffusion, network": {Init: cne.InitDiffusion, Hidden: []int{3}}, "diffusion, start": {Init: cne.InitDiffusion, Start: data.NewMatrix(n, 2)},
		"multilevel, network": {Init: cne.InitMultilevel, Hidden: []int{3}}, "multilevel, start": {Init: cne.InitMultilevel, Start: data.NewMatrix(n, 2)},
	} {
		if err := o.Check(n); !errors.Is(err, cne.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
