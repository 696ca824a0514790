package train_test

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train"
)

// wholeRun has sampled epochs before and after steps of all pairs.
func wholeRun() (heads, tails []int32, o train.Options) {
	heads, tails = ring(200, 5)
	return heads, tails, train.Options{BatchSize: 300, Seed: 3, Clip: 4, Phases: []train.Phase{
		{Epochs: 2, LR: 0.5, Negatives: 5},
		{Epochs: 4, LR: 1, Negatives: train.All, Schedule: train.Constant},
		{Epochs: 2, LR: 0.1, Negatives: train.Full},
		{Epochs: 3, LR: 2, Negatives: train.All, Spectrum: train.FromS(0.5)},
	}}
}

func wholeTable(t testing.TB) *model.Embedding[float32] {
	return tableOf[float32](t, 200, 2, 5, op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10})
}

// The first step goes from the start, scaled by a power of two, against the gradient of
// t-SNE's loss, −Σ p·log q + (1/ρ)·log Σ q with p = w/Σw. Each point's gradient is
// divided by its edges' share of the weights.
func TestAllNegativesIsTSNE(t *testing.T) {
	heads, tails := ring(60, 4)
	for name, s := range map[string]float64{"t-SNE": 0, "s = 1": 1} {
		for _, weighted := range []string{"no", "symmetric", "other"} {
			o := train.Options{Phases: []train.Phase{{Epochs: 1, LR: 1e-3, Negatives: train.All, Spectrum: train.FromS(s)}}}
			w, total := make([]float64, len(heads)), 0.
			for k, i := range heads {
				switch w[k] = 1; weighted {
				case "symmetric":
					w[k] = 1 / float64(1+(i+tails[k])%7)
				case "other":
					w[k] = 1 / float64(1+(2*i+tails[k])%7)
				}
				o.Weights = append(o.Weights, float32(w[k]))
				total += w[k]
			}
			if weighted == "no" {
				o.Weights = nil
			}
			m := tableOf[float32](t, 60, 2, 5, op.ContrastiveOptions{Loss: op.InfoNC})
			for i, v := range m.Table() { // random positions would be best at a single place
				m.Table()[i] = v/10 + float32(math.Sin(2*math.Pi*float64(i/2)/60+math.Pi/2*float64(i%2)))
			}
			given := slices.Clone(m.Table())
			q := func(y []float64, i, j int32) float64 {
				return 1 / (1 + math.Pow(y[2*i]-y[2*j], 2) + math.Pow(y[2*i+1]-y[2*j+1], 2))
			}
			loss := func(y []float64) (l, z float64) {
				for k, i := range heads {
					l -= w[k] / total * math.Log(q(y, i, tails[k]))
				}
				for i := range int32(60) {
					for j := range int32(60) {
						if i != j {
							z += q(y, i, j)
						}
					}
				}
				return l + math.Log(z)/math.Pow(4, s), z
			}
			y, least := make([]float64, len(given)), math.Inf(1)
			for power := -10; power <= 10; power++ {
				scaled := make([]float64, len(given))
				for i, v := range given {
					scaled[i] = math.Ldexp(float64(v), power)
				}
				if l, _ := loss(scaled); l < least {
					y, least = scaled, l
				}
			}
			own := make([]float64, 60) // of edges in both directions
			for k, i := range heads {
				own[i] += w[k] / total / 2
				own[tails[k]] += w[k] / total / 2
			}
			result := trained(t, m, heads, tails, o)
			attraction, z := loss(y)
			if want := attraction + (1-1/math.Pow(4, s))*math.Log(z) - math.Log(total); math.Abs(result.Loss-want) > 1e-4 {
				t.Errorf("%s: loss %g, want the Kullback–Leibler divergence %g", name, result.Loss, want)
			}
			for c, v := range m.Table() {
				const h = 1e-5
				up, down := slices.Clone(y), slices.Clone(y)
				up[c] += h
				down[c] -= h
				a, _ := loss(up)
				b, _ := loss(down)
				// An edge and its reverse have their gradients of 2·w·q·Δ together.
				want := -1e-3 * (a - b) / (2 * h) / 4 / own[c/2]
				if s == 0 {
					want *= 1.95 // the first step of Nesterov's method
				}
				if got := float64(v) - y[c]; math.Abs(got-want) > 0.01*math.Abs(want)+2e-6 {
					t.Fatalf("%s, %s weights: coordinate %d moves by %g, want %g", name, weighted, c, got, want)
				}
			}
		}
	}
}

// The bits depend neither on the number of cores, nor on the order of the edges of steps of
// all pairs, nor on where the run was resumed.
func TestAllNegativesGiveTheSameBits(t *testing.T) {
	heads, tails, o := wholeRun()
	dir, saved := t.TempDir(), 0
	o.Checkpoints = &train.Checkpoints{Epochs: 1, Save: func(c *train.Checkpoint) error {
		saved++
		return c.WriteFile(filepath.Join(dir, strconv.Itoa(saved)))
	}}
	m := wholeTable(t)
	want := trained(t, m, heads, tails, o)
	for i := 1; i <= saved; i++ {
		_, _, o := wholeRun()
		o.Resume = readCheckpoint(t, filepath.Join(dir, strconv.Itoa(i)))
		again := wholeTable(t)
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + i%3))
			if got := trained(t, again, heads, tails, o); got.Loss != want.Loss || !slices.Equal(again.Table(), m.Table()) {
				t.Errorf("resumed after epoch %d: loss %g, want %g, or other positions", i, got.Loss, want.Loss)
			}
		}()
	}
	for _, o := range [][]train.Phase{o.Phases[1:2]} {
		a, b := wholeTable(t), wholeTable(t)
		trained(t, a, heads, tails, train.Options{Phases: o})
		backwards := func(x []int32) []int32 { y := slices.Clone(x); slices.Reverse(y); return y }
		trained(t, b, backwards(heads), backwards(tails), train.Options{Phases: o})
		for c, v := range a.Table() {
			if math.Abs(float64(v-b.Table()[c])) > 1e-5 {
				t.Fatalf("edges in another order: coordinate %d is %g, want %g", c, b.Table()[c], v)
			}
		}
	}
}

// Steps of all pairs reach a lower divergence than batches whose rows are all negatives.
func TestAllNegativesConverge(t *testing.T) {
	heads, tails, o := wholeRun()
	o.Phases = []train.Phase{{Epochs: 20, LR: 1, Negatives: 5}, {Epochs: 300, LR: 2, Negatives: train.All}}
	var losses []float64
	o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error { losses = append(losses, s.Loss); return nil })}
	trained(t, wholeTable(t), heads, tails, o)
	if last, first := losses[len(losses)-1], losses[20]; !(last < first-0.05) || !(last <= slices.Min(losses[20:])+1e-3) {
		t.Errorf("the divergence falls from %g to %g, with a minimum of %g", first, last, slices.Min(losses[20:]))
	}
}

func TestWhereAllNegativesCannotBe(t *testing.T) {
	heads, tails := ring(200, 5)
	all := []train.Phase{{Epochs: 1, LR: 1, Negatives: train.All}}
	euclidean := op.ContrastiveOptions{Loss: op.InfoNC}
	for want, tc := range map[string]struct {
		model        model.Model
		heads, tails []int32
		o            train.Options
	}{
		"negatives of phase 1: got all with loss.name neg, want full, or the loss infonc": {tableOf[float32](t, 200, 2, 1, op.ContrastiveOptions{}), heads, tails, train.Options{}},
		"got all with loss.metric cosine, want full":                                      {tableOf[float32](t, 200, 2, 1, op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine}), heads, tails, train.Options{}},
		"got all, want full, or the optimizer sgd":                                        {tableOf[float32](t, 200, 2, 1, euclidean), heads, tails, train.Options{Optimizer: &train.SGD{Momentum: 0.5}}},
		"of 3 dimensions, want float32, 2 dimensions and no network":                      {tableOf[float32](t, 200, 3, 1, euclidean), heads, tails, train.Options{}},
		"want float32, 2 dimensions and no network":                                       {tableOf[float64](t, 200, 2, 1, euclidean), heads, tails, train.Options{}},
	} {
		tc.o.Phases = all
		if _, err := train.Fit(context.Background(), tc.model, tc.heads, tc.tails, tc.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
