package cne_test

import (
	"errors"
	"math/rand/v2"
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
