package train_test

import (
	"math"
	"strings"
	"testing"

	"cne/model/op"
	"cne/train"
)

// recordNC fits NC-t-SNE to 40 points, 4 batches an epoch, and returns the log Z of
// each batch, with the last one after them.
func recordNC(t *testing.T, o train.Options) []float64 {
	t.Helper()
	heads, tails := ring(40, 2)
	e := tableOf[float64](t, 40, 2, 5, op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10})
	r := &recorder{Embedding: e}
	o.BatchSize = 40
	result := trained(t, r, heads, tails, o)
	return append(r.logConsts, result.LogZ)
}

// log Z starts again in the phases that say where, and goes on in the others.
func TestLogZStartsAgain(t *testing.T) {
	first, again := -8., 2.
	phases := []train.Phase{
		{Epochs: 1, LR: 0.1, Negatives: 5, LogZ: &first}, {Epochs: 2, LR: 0.1, Negatives: 5}, {Epochs: 1, LR: 0.1, Negatives: 5, LogZ: &again},
	}
	got := recordNC(t, train.Options{Phases: phases, LogZ: 1, LRZ: 0.001})
	if got[0] != first || got[12] != again {
		t.Errorf("log Z is %g in the first batch and %g in that of the last phase, want %g and %g", got[0], got[12], first, again)
	}
	for i := 1; i < len(got); i++ {
		if step := math.Abs(got[i] - got[i-1]); i != 12 && (step == 0 || step > 1) {
			t.Errorf("log Z goes from %g to %g in batch %d", got[i-1], got[i], i-1)
		}
	}
	for i, z := range recordNC(t, train.Options{Phases: phases, LogZ: 1, FixZ: true}) {
		if want := map[bool]float64{true: first, false: again}[i < 12]; z != want {
			t.Errorf("a fixed log Z is %g in batch %d, want %g", z, i, want)
		}
	}
}

// Where log Z starts again, so does its momentum. This far below the optimum every
// gradient is clipped, so that the two phases take the same steps.
func TestMomentumOfLogZStartsAgain(t *testing.T) {
	z := -15.
	got := recordNC(t, train.Options{
		Phases: []train.Phase{{Epochs: 2, LR: 1e-9, Negatives: 5, LogZ: &z}, {Epochs: 2, LR: 1e-9, Negatives: 5, LogZ: &z}},
		LRZ:    1. / 64, Clip: 4, OptimizerZ: &train.SGD{Momentum: 0.5},
	})
	want := z
	step := 0.
	for i := range 8 {
		if got[i] != want || got[8+i] != want {
			t.Fatalf("log Z is %g in batch %d of the first phase and %g of the second, want %g", got[i], i, got[8+i], want)
		}
		step = step/2 + 4./64
		want += step
	}
}

func TestWhereLogZCannotStart(t *testing.T) {
	for _, z := range []float64{-61, 1000, math.NaN()} {
		m := tableOf[float64](t, 3, 2, 1, op.ContrastiveOptions{Loss: op.NC})
		_, err := train.Fit(t.Context(), m, toyHeads, toyTails, train.Options{Phases: []train.Phase{{Epochs: 1, LR: 1, Negatives: 5}, {Epochs: 1, LR: 1, Negatives: 5, LogZ: &z}}})
		if err == nil || !strings.Contains(err.Error(), "train.phases: log_z of phase 2: got") {
			t.Errorf("log Z = %g: error %v", z, err)
		}
	}
}
