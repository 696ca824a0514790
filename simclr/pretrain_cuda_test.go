//go:build cu

package simclr_test

import (
	"math"
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// Pretraining on a device sees the views, and draws the negatives, that it does on the
// CPU; its network represents images there, from then on, as that of the CPU does.
func TestPretrainingOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	images := patches(26, 10)
	for name, change := range map[string]func(p *simclr.Pretraining){
		"paper":                    func(*simclr.Pretraining) {},
		"all negatives, no decay":  func(p *simclr.Pretraining) { p.Negatives, p.SpareNorms = train.Full, true },
		"a learnt temperature":     func(p *simclr.Pretraining) { p.LearnTemperature, p.Seed = true, 5 },
		"NC with a learnt Z":       func(p *simclr.Pretraining) { p.Loss.Loss, p.LRZ = op.NC, 0.01 },
		"Euclidean, rows left out": func(p *simclr.Pretraining) { p.Loss = op.ContrastiveOptions{Clamp: 1e-10, Mean: true} },
	} {
		t.Run(name, func(t *testing.T) {
			p := small()
			// Of other seeds rounding decides whether some unit next to zero has a
			// gradient.
			p.Epochs, p.LR, p.Seed = 2, 0.02, 2
			change(&p)
			var losses [2][]float64
			var figures [2][]float64
			var views [2][]float32
			for i, on := range []*device.Device{device.CPU(), d} {
				q := p
				q.Device = on
				q.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
					losses[i] = append(losses[i], s.Loss)
					return nil
				})}
				rows := []int32{0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 20, 25}
				n, r := pretrain(t, q, images, rows)
				f, err := simclr.Features(t.Context(), n, &q.Augmentation, images, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range f.X {
					figures[i] = append(figures[i], float64(v))
				}
				figures[i] = append(figures[i], r.LogZ, n.Objective().Temperature)
				points, width := n.Points()
				views[i] = make([]float32, points*width)
				if err := n.EmbedTo(views[i]); err != nil {
					t.Fatal(err)
				}
			}
			for e, want := range losses[0] {
				if math.Abs(losses[1][e]-want) > 1e-4*math.Abs(want) {
					t.Errorf("epoch %d: loss %g, want %g", e+1, losses[1][e], want)
				}
			}
			for k, want := range figures[0] {
				if got := figures[1][k]; math.Abs(got-want) > 1e-3*max(1, math.Abs(want)) {
					t.Fatalf("number %d of the representations is %g, want %g", k, got, want)
				}
			}
			for k, want := range views[0] {
				if got := views[1][k]; math.Abs(float64(got-want)) > 2e-3 {
					t.Fatalf("number %d of the positions is %g, want %g", k, got, want)
				}
			}
		})
	}
}

// A pretraining on a device goes on from a checkpoint with the bits of one that never
// stopped.
func TestResumedPretrainingOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	images := patches(20, 8)
	p := small()
	p.Device = d
	n, r := pretrain(t, p, images, nil)
	want := state(n, r)

	var middle *train.Checkpoint
	p = small()
	p.Device = d
	p.Checkpoints = &train.Checkpoints{Epochs: 1, Save: func(c *train.Checkpoint) (err error) {
		if c.Progress.Epochs == 2 {
			middle, err = c.Clone()
		}
		return err
	}}
	pretrain(t, p, images, nil)
	p = small()
	p.Device, p.Resume = d, middle
	n, r = pretrain(t, p, images, nil)
	if got := state(n, r); !slices.Equal(got, want) {
		t.Error("the run that went on has learnt something else")
	}
}
