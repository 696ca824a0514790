//go:build cu

package simclr_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data/images"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// learnt is the result of a pretraining: the loss of each epoch, representations,
// positions, and log Z if there is one.
type learnt map[string][]float64

// learn runs a pretraining on some of the images, and then computes the features of all.
func learn(t *testing.T, p simclr.Pretraining, images *images.Set) learnt {
	t.Helper()
	all := learnt{}
	p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
		all["loss"] = append(all["loss"], s.Loss)
		return nil
	})}
	rows := []int32{0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 20, 25}
	n, r := pretrain(t, p, images, rows)
	f, err := simclr.Features(t.Context(), n, &p.Augmentation, images, nil, nil)
	must(t, err)
	for _, v := range f.X {
		all["representation"] = append(all["representation"], float64(v))
	}
	points, width := n.Points()
	positions := make([]float32, points*width)
	must(t, n.EmbedTo(positions))
	for _, v := range positions {
		all["position"] = append(all["position"], float64(v))
	}
	if r.LogZ != 0 {
		all["log Z"] = []float64{r.LogZ}
	}
	return all
}

// drift returns the root mean square of got − want, relative to the root mean square of
// want; infinity if a number is not finite.
func drift(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var far, size float64
	for i, w := range want {
		far += (got[i] - w) * (got[i] - w)
		size += w * w
	}
	if r := math.Sqrt(far / size); r < math.Inf(1) {
		return r
	}
	return math.Inf(1)
}

// median returns the median of an odd number of numbers.
func median(x []float64) float64 {
	return slices.Sorted(slices.Values(x))[len(x)/2]
}

// Pretraining on a device has the CPU's views and negatives, and its network then
// represents images as the CPU's does.
//
// The drift from rounding is measured: the CPU runs again, with views that differ in the
// last bit. In about one run out of twenty, on the CPU as well, rounding decides whether a
// unit next to zero has a gradient, and what follows differs in the third digit. So there
// are several pairs of runs of each kind, and their medians are compared.
func TestPretrainingOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	images := patches(26, 10)
	runs := 5
	switch {
	case fakecuda.Checked(): // which one run shows as well as several
		runs = 1
	case testing.Short():
		runs = 3
	}
	const (
		unit = 0x1p-24 // relative, of rounding to a float
		// An operation of the CPU is off by half a unit of the last place, and an approximate one
		// of a GPU by up to four. This factor covers only that and other orders of summation. It
		// does not cover other convolution algorithms (Winograd, Fourier transform), which cuDNN
		// may choose and whose errors are larger: where a GPU exceeds it, the ratios in the log,
		// with cuDNN and with CNE_LIBCUDNN=none, show whether that is why.
		coarser = 8
	)
	for name, change := range map[string]func(p *simclr.Pretraining){
		"paper":              func(*simclr.Pretraining) {},
		"all negatives":      func(p *simclr.Pretraining) { p.Negatives = train.Full },
		"NC with a learnt Z": func(p *simclr.Pretraining) { p.Loss.Loss, p.LRZ = op.NC, new(0.01) },
		"stages": func(p *simclr.Pretraining) {
			p.Epochs, p.WarmUp = 0, 0
			p.Loss = op.ContrastiveOptions{Clamp: 1e-10, Mean: true}
			p.Stages = []simclr.Stage{{Epochs: 1, LR: 0.02}, {Epochs: 1, LR: 0.02, Out: 2, Freeze: backbone}, {Epochs: 1, LR: 0.01}}
		},
		"Euclidean, rows left out": func(p *simclr.Pretraining) { p.Loss = op.ContrastiveOptions{Clamp: 1e-10, Mean: true} },
	} {
		t.Run(name, func(t *testing.T) {
			// The drift on the CPU, and the device's drift as a multiple of it.
			rounded, ratios := map[string][]float64{}, map[string][]float64{}
			for seed := range runs {
				p := small()
				p.Epochs, p.LR, p.Seed = 2, 0.02, uint64(seed)
				change(&p)
				want, rounding := learn(t, p, images), map[string]float64{}
				for channel := range 3 {
					moved := p
					std := &moved.Augmentation.Std[channel]
					*std = math.Nextafter32(*std, 0)
					for what, numbers := range learn(t, moved, images) {
						rounding[what] = max(rounding[what], drift(numbers, want[what]), unit)
					}
				}
				p.Device = d
				for what, numbers := range learn(t, p, images) {
					far := drift(numbers, want[what])
					rounded[what] = append(rounded[what], rounding[what])
					ratios[what] = append(ratios[what], far/rounding[what])
					if far > 0.05 {
						t.Errorf("seed %d: %s: the device differs by %.2g, which not even a unit next to zero explains", seed, what, far)
					}
				}
			}
			for what, ratio := range ratios {
				if m := median(rounded[what]); runs > 1 && m > 1e-3 {
					t.Errorf("%s: rounding changes the run by %.2g of itself: it can be compared with none", what, m)
				}
				t.Logf("%s: the device differs by %.2g times what rounding changes on the CPU, %.2g", what, ratio, rounded[what])
				if runs > 1 && !(median(ratio) <= coarser) {
					t.Errorf("%s: the device differs by %.2g times as much as rounding changes on the CPU, which is %.2g", what, ratio, rounded[what])
				}
			}
		})
	}
}

// On a device, too, frozen parameters keep their bits, and a run resumed between two
// stages, or within one, has the bits of an uninterrupted run.
func TestStagesOnDevice(t *testing.T) {
	for _, precision := range []op.Precision{op.Float32, op.BFloat16} {
		t.Run(precision.String(), func(t *testing.T) { testStagesOnDevice(t, precision) })
	}
}

func testStagesOnDevice(t *testing.T, precision op.Precision) {
	d := fakecuda.Open(t)
	images := patches(20, 8)
	staged := func() simclr.Pretraining {
		p := staged()
		p.Device, p.Precision = d, precision
		p.Network.Width = 3 // channels that are not even
		return p
	}
	p := staged()
	var saved []*train.Checkpoint
	p.Checkpoints = &train.Checkpoints{Epochs: 1, Save: func(c *train.Checkpoint) error {
		copied, err := c.Clone()
		saved = append(saved, copied)
		return err
	}}
	n, r := pretrain(t, p, images, nil)
	want := state(n, r)
	p.Checkpoints = nil
	for _, c := range saved {
		if c.Progress.Epochs < 3 {
			continue
		}
		p.Resume = c
		n, r := pretrain(t, p, images, nil)
		if got := state(n, r); !slices.Equal(got, want) {
			t.Errorf("the run that went on from %+v has learnt something else", c.Progress)
		}
	}
	// A run of only the first stage ends with the parameters that the second starts from.
	p = staged()
	p.Stages = p.Stages[:1]
	one, _ := pretrain(t, p, images, nil)
	p = staged()
	p.Stages = p.Stages[:2]
	two, _ := pretrain(t, p, images, nil)
	before := values(one)
	for name, learnt := range values(two) {
		frozen := model.Module(name) != "fc2" && !strings.Contains(name, "running")
		if frozen && !slices.Equal(learnt, before[name]) {
			t.Errorf("stage two moves %s, which is frozen", name)
		}
	}
}

// In bfloat16, too, a run on a device is reproducible to the bit, also when it is resumed;
// checkpoints of the other precision are refused. Its losses are as near to float32's as
// the CPU's in bfloat16: both round in each of 20 layers. A device's checkpoint can be
// resumed on the CPU.
func TestPretrainingInBFloat16OnDevice(t *testing.T) {
	for name, cuDNN := range map[string]bool{"cuDNN": true, "patches": false} {
		t.Run(name, func(t *testing.T) {
			fakecuda.Convolutions(t, cuDNN)
			d := fakecuda.Open(t)
			images := patches(16, 8)
			p := small()
			p.Network.Width, p.Epochs, p.Precision, p.Device = 8, 2, op.BFloat16, d
			var middle *train.Checkpoint
			p.Checkpoints = &train.Checkpoints{Epochs: 1, Save: func(c *train.Checkpoint) (err error) {
				if c.Progress.Epochs == 1 {
					middle, err = c.Clone()
				}
				return err
			}}
			n, r := pretrain(t, p, images, nil)
			want := state(n, r)
			if middle.Progress.Precision != "bf16" {
				t.Errorf("the checkpoint says that its precision is %q", middle.Progress.Precision)
			}
			p.Checkpoints = nil
			n, r = pretrain(t, p, images, nil)
			if !slices.Equal(state(n, r), want) {
				t.Error("the same run again has learnt something else")
			}
			p.Resume = middle
			n, r = pretrain(t, p, images, nil)
			if !slices.Equal(state(n, r), want) {
				t.Error("the run that went on has learnt something else")
			}
			if !cuDNN {
				return
			}
			p.Precision = op.Float32
			if _, _, err := p.Run(t.Context(), images, nil); !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), "precision of its run: got bf16") {
				t.Errorf("a checkpoint of bf16 in float32: error %v", err)
			}
			p.Precision, p.Device = op.BFloat16, nil
			_, elsewhere := pretrain(t, p, images, nil)
			p.Resume, p.Precision = nil, op.Float32
			_, exact := pretrain(t, p, images, nil)
			for where, loss := range map[string]float64{"on the device": r.Loss, "begun there and ended on the CPU": elsewhere.Loss} {
				if off := math.Abs(loss/exact.Loss - 1); off == 0 || off > 0.15 {
					t.Errorf("%s the loss is %g, and %g in float32", where, loss, exact.Loss)
				}
			}
		})
	}
}
