package cne_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"cne"
	"cne/model"
)

// A network that has learnt a map places new points among their neighbours, as the map itself
// does, and does so again once it is loaded. The map keeps its positions.
func TestLearnNetwork(t *testing.T) {
	all := clusters(600, 30)
	train, test := all.Rows(0, 500), all.Rows(500, 600)
	e := embed(t, train, cne.Options{Epochs: 50})
	before, near := slices.Clone(e.Positions.X), nearest(t, all, 1)
	must(t, e.LearnNetwork(t.Context(), nil))
	if !slices.Equal(e.Positions.X, before) {
		t.Error("the map has moved")
	}
	got := project(t, e, test)
	if again := project(t, reloaded(t, e), test); !slices.Equal(again.X, got.X) {
		t.Error("the loaded network places points otherwise")
	}
	spread, far := 0.0, 0.0
	for i := range test.N {
		neighbor := int(near.Of(500 + i)[0])
		if neighbor >= 500 {
			continue
		}
		spread += squared(e.Positions.Row(i), e.Positions.Row(i+test.N))
		far += squared(got.Row(i), e.Positions.Row(neighbor))
	}
	if far > 0.02*spread {
		t.Errorf("new points are %.3g from their nearest neighbours, squared, and training points %.3g from others", far, spread)
	}
	if err := e.LearnNetwork(t.Context(), nil); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("learning twice: %v", err)
	}
	if err := e.UseTrainingPoints(train); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("training points for the network: %v", err)
	}
}

func squared(a, b []float32) (sum float64) {
	for j, v := range a {
		sum += float64(v-b[j]) * float64(v-b[j])
	}
	return sum
}

func TestLearnNetworkRefuses(t *testing.T) {
	x := points(t, 40)
	saved := filepath.Join(t.TempDir(), model.RunFile)
	must(t, embed(t, x, few(nil)).SaveModel(saved))
	without, err := cne.Load(saved)
	must(t, err)
	for name, c := range map[string]struct {
		e    *cne.Embedding
		want error
	}{
		"nothing":         {new(cne.Embedding), cne.ErrPoints},
		"network":         {embed(t, x, few(func(o *cne.Options) { o.Hidden = []int{3} })), cne.ErrPoints},
		"training points": {without, cne.ErrNoTrainingPoints},
		"few":             {embed(t, x.Rows(0, 8), few(func(o *cne.Options) { o.Neighbors = 2 })), cne.ErrPoints},
		"sparse":          {embed(t, sparse(60, 30), few(func(o *cne.Options) { o.Components = new(0) })), cne.ErrPoints},
	} {
		if err := c.e.LearnNetwork(t.Context(), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	prepared, err := without.Description.Preprocessing.Apply(t.Context(), x.Clone())
	must(t, errors.Join(err, without.UseTrainingPoints(prepared)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := without.LearnNetwork(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
	must(t, errors.Join(without.LearnNetwork(t.Context(), nil), without.UseDevice(nil)))
}
