package quality_test

import (
	"errors"
	"math"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// An embedding that cannot be measured has diverged.
func TestHookOfDivergedRun(t *testing.T) {
	m, err := model.NewEmbedding([]float32{0, 0, 1, float32(math.Inf(1))}, 2, op.ContrastiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hook := quality.Hook(2, quality.Options{})
	state := train.State{Epoch: 1, Epochs: 9, LR: 0.5, Model: m}
	if err := hook.AfterEpoch(&state); err != nil {
		t.Errorf("in an epoch in which nothing is measured: %v", err)
	}
	var diverged *train.DivergedError
	for _, epoch := range []int{2, 9} {
		state.Epoch = epoch
		if err := hook.AfterEpoch(&state); !errors.As(err, &diverged) || diverged.Epoch != epoch || diverged.LR != 0.5 {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
}
