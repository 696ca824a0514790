package quality

import (
	"errors"
	"math"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train"
)

// An embedding that cannot be measured has diverged.
func TestHookOfDivergedRun(t *testing.T) {
	m := need(model.NewEmbedding([]float32{0, 0, 1, float32(math.Inf(1))}, 2, op.ContrastiveOptions{}))(t)
	hook := Hook(2, Options{})
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
