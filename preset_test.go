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
	o.Phases[1].LR = 2
	_, err = cne.Embed(t.Context(), m, o)
	must(t, err)
}
