package simclr_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"cne/model/op"
	"cne/train"
)

// In bfloat16, too, a seed makes one network on any number of cores, a run goes on from
// its checkpoints with the same bits, and checkpoints of the other precision are refused.
// The losses are near those of float32, as rounding by 2 to 3 % in each of 20 layers lets
// them be, and not the same.
func TestPretrainingInBFloat16(t *testing.T) {
	images := patches(16, 8)
	p := small()
	p.Network.Width, p.Epochs, p.Precision = 16, 2, op.BFloat16
	if !p.Precision.Native() {
		p.Network.Width = 8 // of which the deeper half is in bfloat16
	}
	saved, n, r := resumesAnywhere(t, p, images)
	for i, c := range saved {
		if c.Progress.Precision != "bf16" {
			t.Errorf("checkpoint %d says that its precision is %q", i, c.Progress.Precision)
		}
	}
	p.Resume = saved[len(saved)-1]
	p.Precision = op.Float32
	if _, _, err := p.Run(context.Background(), images, nil); !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), "its run are of bf16") {
		t.Errorf("a checkpoint of bf16 in float32: error %v", err)
	}
	p.Resume = nil
	_, exact := pretrain(t, p, images, nil)
	if off := math.Abs(r.Loss/exact.Loss - 1); off == 0 || off > 0.15 {
		t.Errorf("the loss is %g, and %g in float32", r.Loss, exact.Loss)
	}
	// What was trained in bfloat16 is used in float32.
	features := make([]float32, n.Width())
	must(t, n.RepresentTo(features, make([]float32, 3*8*8), 8, 8))
}
