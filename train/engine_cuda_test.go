//go:build cu

package train_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A deviceRun is a short run to compare on the CPU and on a device.
type deviceRun struct {
	network bool // an MLP in place of a table
	loss    op.ContrastiveOptions
	adam    bool
	options train.Options
	// moved is the relative change of each coordinate of a network's points: up or down
	// at random, or all towards zero.
	moved       float32
	inDirection bool
}

const (
	devicePoints = 120
	deviceWidth  = 7 // of the points of a network
)

// model makes the run's model at its start.
func (r *deviceRun) model(t *testing.T) model.Model {
	t.Helper()
	if !r.network {
		return tableOf[float32](t, devicePoints, 2, 5, r.loss)
	}
	points, signs := normal[float32](devicePoints, deviceWidth, 6), normal[float32](devicePoints, deviceWidth, 7)
	for i, s := range signs {
		if r.inDirection {
			s = 1
		}
		points[i] *= 1 + r.moved*float32(math.Copysign(1, float64(s)))
	}
	return networkOf(t, points, deviceWidth, []int{9, 8}, 2, 1, r.loss)
}

// run returns the embedding and the epochs' losses.
func (r *deviceRun) fit(t *testing.T, d *device.Device, change func(o *train.Options)) ([]float32, []float64, train.Result, error) {
	t.Helper()
	m := r.model(t)
	o := r.options
	o.Device, o.Optimizer, o.OptimizerZ = d, new(train.SGD), new(train.SGD)
	if r.adam {
		o.Optimizer = new(train.Adam)
	}
	var losses []float64
	o.Hooks = append(slices.Clip(o.Hooks), train.HookFunc(func(s *train.State) error {
		losses = append(losses, s.Loss)
		return nil
	}))
	if change != nil {
		change(&o)
	}
	heads, tails := ring(devicePoints, 3)
	result, err := train.Fit(t.Context(), m, heads, tails, o)
	y := make([]float32, 2*devicePoints)
	if embed := m.EmbedTo(y); err == nil && embed != nil {
		t.Fatal(embed)
	}
	return y, losses, result, err
}

// deviceRuns cover all forms of steps on a device.
var deviceRuns = map[string]deviceRun{
	"table, Neg": {loss: op.ContrastiveOptions{Clamp: 1e-10},
		options: train.Options{BatchSize: 100, Clip: 4, Phases: []train.Phase{{Epochs: 4, LR: 0.1, Spectrum: train.FromS(0.5), Negatives: 5}}}},
	"table, whole epochs as batches": {loss: op.ContrastiveOptions{Clamp: 1e-10},
		options: train.Options{BatchSize: 100000, Clip: 4, Phases: []train.Phase{{Epochs: 4, LR: 0.1, Negatives: 5}}}},
	"table, UMAP": {loss: op.ContrastiveOptions{Loss: op.UMAP, Clamp: 1e-10},
		options: train.Options{BatchSize: 64, Clip: 4, Phases: []train.Phase{{Epochs: 3, LR: 0.1, Negatives: 5}}}},
	"table, InfoNC in runs": {loss: op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10, Scale: 0.5},
		options: train.Options{BatchSize: 64, Clip: 4, Sampling: train.SampleSharedRuns, Phases: []train.Phase{{Epochs: 3, LR: 0.1, Negatives: 40}}}},
	"table, NC with a learnt Z": {loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10},
		options: train.Options{BatchSize: 100, Clip: 4, LRZ: 0.01, Phases: []train.Phase{{Epochs: 4, LR: 0.1, Negatives: 5}}}},
	"table, NC whose Z starts again": {loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10},
		options: train.Options{BatchSize: 100, Clip: 4, LRZ: 0.01, LogZ: -1, Phases: []train.Phase{{Epochs: 2, LR: 0.1, Negatives: 5}, {Epochs: 2, LR: 0.1, Negatives: 5, LogZ: new(float64)}}}},
	"table, all negatives, mean": {loss: op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10, Mean: true},
		options: train.Options{BatchSize: 50, Phases: []train.Phase{{Epochs: 3, LR: 5, Negatives: train.Full}}}},
	"table, all pairs": {loss: op.ContrastiveOptions{Loss: op.InfoNC},
		options: train.Options{Phases: []train.Phase{{Epochs: 5, LR: 1, Negatives: train.All}}}},
	"table, all pairs between batches": {loss: op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10},
		options: train.Options{BatchSize: 100, Clip: 4, Weights: unequalWeights(), Phases: []train.Phase{
			{Epochs: 1, LR: 0.1, Negatives: 5}, {Epochs: 3, LR: 1, Negatives: train.All, Spectrum: train.FromS(0.5)}, {Epochs: 1, LR: 0.1, Negatives: 5}}}},
	"table, cosine, Adam": {loss: op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine}, adam: true,
		options: train.Options{BatchSize: 100, Phases: []train.Phase{{Epochs: 3, LR: 0.01, Negatives: 5}}}},
	"table, edges drawn by weight": {loss: op.ContrastiveOptions{Clamp: 1e-10},
		options: train.Options{BatchSize: 100, Clip: 4, Weights: unequalWeights(), Phases: []train.Phase{{Epochs: 4, LR: 0.1, Negatives: 5}}}},
	"table, epochs of drawn edges as batches": {loss: op.ContrastiveOptions{Clamp: 1e-10},
		options: train.Options{BatchSize: 100000, Clip: 4, Weights: unequalWeights(), Phases: []train.Phase{{Epochs: 4, LR: 0.1, Negatives: 5}}}},
	"network, edges drawn by weight": {network: true, loss: op.ContrastiveOptions{Clamp: 1e-10}, adam: true,
		options: train.Options{BatchSize: 100, Clip: 4, Weights: unequalWeights(), Phases: []train.Phase{{Epochs: 4, LR: 0.01, Negatives: 5}}}},
	"network": {network: true, loss: op.ContrastiveOptions{Clamp: 1e-10}, adam: true,
		options: train.Options{BatchSize: 100, Clip: 4, Phases: []train.Phase{{Epochs: 4, LR: 0.01, Negatives: 5, Schedule: train.Cosine, WarmUp: 1}}}},
	"network, two phases, batches dropped": {network: true, loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}, adam: true,
		options: train.Options{BatchSize: 130, DropLast: true, Phases: []train.Phase{{Epochs: 2, LR: 0.01, Negatives: 5}, {Epochs: 2, LR: 0.005, Negatives: 9}}}},
	"network, NC whose Z starts again": {network: true, loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}, adam: true,
		options: train.Options{BatchSize: 130, Phases: []train.Phase{{Epochs: 2, LR: 0.01, Negatives: 5}, {Epochs: 2, LR: 0.005, Negatives: 5, LogZ: new(float64)}}}},
}

// unequalWeights are weights of the runs' edges: some a hundred times as heavy as others.
func unequalWeights() []float32 {
	heads, _ := ring(devicePoints, 3)
	weights := make([]float32, len(heads))
	for e := range weights {
		weights[e] = float32(1+e%7) * []float32{0.1, 1, 1.5}[e%3]
	}
	return weights
}

// compareEmbeddings compares coordinates up to a translation, which losses do not
// determine: the gradient of a network's last bias is only rounding, and Adam turns that
// into whole steps.
func compareEmbeddings(t *testing.T, got, want []float32, within float64) {
	t.Helper()
	var mean [2]float64
	for i, v := range want {
		mean[i%2] += float64(got[i]-v) / devicePoints
	}
	if within == 0 {
		mean = [2]float64{}
	}
	for i, v := range want {
		if math.Abs(float64(got[i]-v)-mean[i%2]) > within {
			t.Fatalf("coordinate %d is %g, want %g", i, got[i], v)
		}
	}
}

// The same seed draws the same edges and negatives, so that a run on a device follows
// the CPU's as far as rounding allows. It gives the same bits in whatever order the
// device's threads run, and when it resumes from a checkpoint. A checkpoint also resumes
// on another device.
func TestRunsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, r := range deviceRuns {
		t.Run(name, func(t *testing.T) {
			want, wantLosses, wantResult, err := r.fit(t, device.CPU(), nil)
			must(t, err)
			got, losses, result, err := r.fit(t, d, nil)
			must(t, err)
			for i, l := range wantLosses {
				if math.Abs(losses[i]-l) > 1e-4*math.Abs(l) {
					t.Errorf("epoch %d: loss %g, want %g", i+1, losses[i], l)
				}
			}
			compareEmbeddings(t, got, want, 2e-3)
			if math.Abs(result.LogZ-wantResult.LogZ) > 1e-5 || result.LogConst != wantResult.LogConst && r.loss.Loss != op.NC || result.Negatives != wantResult.Negatives {
				t.Errorf("result %+v, want %+v", result, wantResult)
			}
			if testing.Short() {
				return
			}
			for _, order := range []uint64{fakecuda.Backwards, 2} {
				fakecuda.Order(t, order)
				if again, _, _, err := r.fit(t, d, nil); err != nil || !slices.Equal(again, got) {
					t.Errorf("another of two equal runs, with the threads in order %d, ends elsewhere (%v)", order, err)
				}
			}
			fakecuda.Order(t, fakecuda.Forwards)
			if strings.Contains(name, "phases") {
				return // the schedule is one of the others'
			}
			for _, where := range []struct {
				name        string
				first, next *device.Device
				within      float64
			}{{"on the device", d, d, 0}, {"from the CPU", device.CPU(), d, 2e-3}, {"on the CPU", d, device.CPU(), 2e-3}} {
				var c *train.Checkpoint
				stop := errors.New("stop")
				_, _, _, err := r.fit(t, where.first, func(o *train.Options) {
					o.Checkpoints = &train.Checkpoints{Epochs: 2, Save: func(now *train.Checkpoint) (err error) {
						c, err = now.Clone()
						return err
					}}
					o.Hooks = append(o.Hooks, train.HookFunc(func(s *train.State) error {
						if s.Epoch == 3 {
							return stop
						}
						return nil
					}))
				})
				if !errors.Is(err, stop) {
					t.Fatal(err)
				}
				resumed, _, _, err := r.fit(t, where.next, func(o *train.Options) { o.Resume = c })
				if err != nil {
					t.Fatalf("resumed %s: %v", where.name, err)
				}
				t.Run("resumed "+where.name, func(t *testing.T) { compareEmbeddings(t, resumed, got, where.within) })
			}
		})
	}
}

// With TF32 a network's run differs from the CPU's by the rounding of operands. The
// effect of one such rounding is measured on the CPU, with points that are off by as
// much: each up or down at random, as by rounding, or all towards zero, as by
// truncation, which does not average out. A step multiplies points, activations,
// weights and gradients of three layers, in three products forward and five backward
// with two roundings each: 16 at most.
func TestNetworkWithTF32OnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	r := deviceRuns["network"]
	fit := func(t *testing.T, on *device.Device, moved float64, inDirection bool) []float64 {
		t.Helper()
		of := r
		of.moved, of.inDirection = float32(moved), inDirection
		_, losses, _, err := of.fit(t, on, nil)
		must(t, err)
		return losses
	}
	drift := func(got, want []float64) (sum float64) {
		for i, w := range want {
			sum += (got[i]/w - 1) * (got[i]/w - 1)
		}
		return math.Sqrt(sum / float64(len(want)))
	}
	want := fit(t, device.CPU(), 0, false)
	fakecuda.TF32(t, d, func(t *testing.T, unit float64) {
		directions := []bool{false}
		if unit > 0x1p-11 { // more than rounding to the nearest number makes
			directions = append(directions, true)
		}
		var rounding float64
		for _, inDirection := range directions {
			for _, moved := range []float64{-unit, unit} {
				one := drift(fit(t, device.CPU(), moved, inDirection), want)
				t.Logf("points moved by %.2g, all in one direction %t: the losses are off by %.2g", moved, inDirection, one)
				rounding = max(rounding, one)
			}
		}
		got := fit(t, d, 0, false)
		far := drift(got, want)
		t.Logf("with TF32 they are off by %.2g, %.2g times as much", far, far/rounding)
		if rounding > 1e-2 {
			t.Fatalf("moved points change the losses by %.2g of themselves: the run can be compared with none", rounding)
		}
		if !(far <= 16*rounding) {
			t.Errorf("the losses %v of %v are off by %.2g, where one rounding makes %.2g", got, want, far, rounding)
		}
		if fakecuda.InUse() && far < rounding/16 {
			t.Errorf("the losses are off by only %.2g: nothing was rounded to TF32", far)
		}
	})
}

// A network's small batches run operation by operation a few times, and are then
// replayed.
func TestSmallBatchesAreReplayedOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	if !fakecuda.InUse() {
		t.Skip("a GPU does not count launches")
	}
	r := deviceRuns["network"]
	launches := func(epochs int) int {
		before := fakecuda.Launches()
		if _, _, _, err := r.fit(t, d, func(o *train.Options) {
			o.BatchSize, o.DropLast = 20, true // 36 batches
			o.Phases = []train.Phase{{Epochs: epochs, LR: 0.01, Negatives: 5}}
		}); err != nil {
			t.Fatal(err)
		}
		return fakecuda.Launches() - before
	}
	few, many := launches(10), launches(20)
	if most := 36 * 10; many-few > most {
		t.Errorf("10 epochs of 36 batches take %d launches, more than %d", many-few, most)
	}
}

// An epoch of a table, and of a network whose small batches are replayed, takes one copy to
// the device, of its control blocks, and one back, of its losses, log Z and the status.
func TestEpochsTakeOneCopyBackFromDevice(t *testing.T) {
	d := fakecuda.Open(t)
	if !fakecuda.InUse() {
		t.Skip("a GPU does not count copies")
	}
	for _, name := range []string{"table, Neg", "table, NC with a learnt Z", "network"} {
		r := deviceRuns[name]
		copies := func(epochs int) (up, down int) {
			upBefore, downBefore := fakecuda.Transfers()
			if _, _, _, err := r.fit(t, d, func(o *train.Options) {
				o.BatchSize = 100000 // so that a chunk is an epoch however slow the machine is
				o.Phases = []train.Phase{{Epochs: epochs, LR: 0.001, Negatives: 5}}
			}); err != nil {
				t.Fatal(err)
			}
			up, down = fakecuda.Transfers()
			return up - upBefore, down - downBefore
		}
		fewUp, fewDown := copies(3)
		manyUp, manyDown := copies(8)
		if manyUp-fewUp != 5 || manyDown-fewDown != 5 {
			t.Errorf("%s: 5 epochs take %d copies to the device and %d back, want 5 each", name, manyUp-fewUp, manyDown-fewDown)
		}
	}
}

// Two runs share a device, and each ends as if it were alone.
func TestTwoRunsOnOneDevice(t *testing.T) {
	d := fakecuda.Open(t)
	names := []string{"table, Neg", "network"}
	var alone, together [2][]float32
	for i, name := range names {
		r := deviceRuns[name]
		var err error
		alone[i], _, _, err = r.fit(t, d, nil)
		must(t, err)
	}
	var runs sync.WaitGroup
	for i, name := range names {
		r := deviceRuns[name]
		runs.Go(func() {
			var err error
			if together[i], _, _, err = r.fit(t, d, nil); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	for i, name := range names {
		if !slices.Equal(alone[i], together[i]) {
			t.Errorf("%s: ends elsewhere beside another run", name)
		}
	}
}

// A run that diverges on a device says where, and nothing moves afterwards.
func TestDivergenceOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, change := range map[string]func(o *train.Options){
		"table, UMAP": func(o *train.Options) { o.Clip, o.Phases = 0, []train.Phase{{Epochs: 9, LR: 1e30, Negatives: 5}} },
		"network":     func(o *train.Options) { o.Clip, o.Phases = 0, []train.Phase{{Epochs: 9, LR: 1e30, Negatives: 5}} },
	} {
		r := deviceRuns[name]
		_, _, _, errHost := r.fit(t, device.CPU(), change)
		_, _, _, err := r.fit(t, d, change)
		var want, got *train.DivergedError
		if !errors.As(errHost, &want) || !errors.As(err, &got) {
			t.Errorf("%s: %v, and on the CPU %v", name, err, errHost)
			continue
		}
		if got.Epoch != want.Epoch || got.Batch != want.Batch || got.Cause.Error() != want.Cause.Error() {
			t.Errorf("%s: %v, but on the CPU %v", name, err, errHost)
		}
	}
}

// Wherever memory runs out, a run ends with one sentence about it, frees its memory,
// and does not affect the next run.
func TestDeviceWithTooLittleMemory(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	for _, name := range []string{"table, Neg", "table, cosine, Adam", "network"} {
		r := deviceRuns[name]
		for _, unpooled := range []bool{true, false} {
			d, err := device.Open("cuda")
			must(t, err)
			d.TF32, d.Unpooled = false, unpooled
			want, _, _, err := r.fit(t, d, nil)
			must(t, err)
			failures := 0
			for more := int64(0); ; more += 3<<10 + more/2 {
				fresh, err := device.Open("cuda")
				must(t, err)
				fresh.TF32, fresh.Unpooled = false, unpooled
				used, _ := fakecuda.Usage()
				fakecuda.Memory(t, used+more)
				_, _, _, failed := r.fit(t, fresh, nil)
				fakecuda.Memory(t, 1<<30)
				full := new(device.MemoryError)
				if failed != nil && (!errors.As(failed, &full) || full.Needed == 0 || strings.Contains(failed.Error(), "\n") || !strings.Contains(failed.Error(), "cuda:0 has too little memory: ")) {
					t.Fatalf("%s: with %d bytes: %v", name, more, failed)
				}
				if failures%3 == 0 {
					if got, _, _, err := r.fit(t, fresh, nil); err != nil || !slices.Equal(got, want) {
						t.Fatalf("%s: after a run with %d bytes (%v), another ends elsewhere (%v)", name, more, failed, err)
					}
				}
				must(t, fresh.Close())
				if failed == nil {
					break
				}
				failures++
			}
			if failures < 5 {
				t.Errorf("%s: the memory was at an end only %d times", name, failures)
			}
			must(t, d.Close())
		}
	}
}

// A device that fails in mid-run ends the run with an error that says so; its last
// checkpoint can be resumed.
func TestDeviceIsLostInMidRun(t *testing.T) {
	d := fakecuda.Open(t)
	for name, r := range deviceRuns {
		if strings.Contains(name, "phases") {
			continue
		}
		d, err := device.Open(d.Name())
		must(t, err)
		d.TF32 = false
		path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
		whole, _, _, err := r.fit(t, d, nil)
		must(t, err)
		_, losses, result, err := r.fit(t, d, func(o *train.Options) {
			o.Checkpoints = &train.Checkpoints{Epochs: 1, Save: func(c *train.Checkpoint) error {
				if c.Progress.Epochs == 1 {
					fakecuda.Fail(t, 2, fakecuda.IllegalAddress)
				}
				return c.WriteFile(path)
			}}
		})
		if !errors.Is(err, device.ErrLost) || strings.Contains(err.Error(), "\n") || result.Epochs != 1 || len(losses) != 1 {
			t.Errorf("%s: error %v after %d epochs", name, err, result.Epochs)
		}
		if err := d.Synchronize(); !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: the device is used again: %v", name, err)
		}
		c := readCheckpoint(t, path)
		fakecuda.Fail(t, -1, 0)
		again, err := device.Open(d.Name())
		must(t, err)
		again.TF32 = false
		got, _, _, err := r.fit(t, again, func(o *train.Options) { o.Resume = c })
		if err != nil || !slices.Equal(got, whole) {
			t.Errorf("%s: the run that goes on ends elsewhere (%v)", name, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An interrupted run stops within a chunk of batches, and keeps what it has learnt.
// A phase that begins again on a device ends as if it had had its last rate from the start.
func TestPhaseBeginsAgainOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, r := range map[string]deviceRun{
		"table":   {loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}},
		"network": {network: true, adam: true, loss: op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10}},
	} {
		r.options = train.Options{BatchSize: 64, Seed: 3, Phases: []train.Phase{{Epochs: 2, LR: 0.01, Negatives: 5}, {Epochs: 3, LR: 1, Negatives: 5}}}
		var err error
		for err == nil {
			r.options.Phases[1].LR *= 3
			_, _, _, err = r.fit(t, d, nil)
		}
		got, _, result, err := r.fit(t, d, func(o *train.Options) {
			o.Retries = 10
			o.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) error {
				if c.Progress.FirstEdges != 64 { // of one batch, whatever the size of chunks
					t.Errorf("%s: the first loss is of %d edges", name, c.Progress.FirstEdges)
				}
				return nil
			}}
		})
		must(t, err)
		if result.Retries == 0 {
			t.Errorf("%s: no retries", name)
		}
		r.options.Phases[1].LR = result.LR
		want, _, _, err := r.fit(t, d, nil)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%s: another embedding than with the rate %g from the start", name, result.LR)
		}
	}
}

// A retry for which the device has no memory left ends the run with the device's error.
func TestRetryOnFullDevice(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	d := fakecuda.Open(t)
	d.Unpooled = true
	r := deviceRun{loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}}
	r.options = train.Options{BatchSize: 64, Seed: 3, Phases: []train.Phase{{Epochs: 4, LR: 1, Negatives: 5}}}
	var err error
	for !errors.Is(err, train.ErrRose) { // at the end of the phase
		r.options.Phases[0].LR *= 2
		if _, _, _, err = r.fit(t, d, nil); r.options.Phases[0].LR > 1e9 {
			t.Fatal(err)
		}
	}
	_, _, _, err = r.fit(t, d, func(o *train.Options) {
		o.Retries = 3
		o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
			if s.Epoch == 3 {
				fakecuda.Memory(t, 1)
			}
			return nil
		})}
	})
	if full := new(device.MemoryError); !errors.As(err, &full) || errors.As(err, new(*train.DivergedError)) {
		t.Errorf("error %v, want one about memory", err)
	}
}

// A run on a device resumes between any two batches to the bits of one that never stopped.
func TestResumeAnywhereOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, r := range map[string]deviceRun{
		"table, SGD":    {loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}},
		"table, Adam":   {adam: true, loss: op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10}},
		"network, Adam": {network: true, adam: true, loss: op.ContrastiveOptions{Loss: op.NC, Clamp: 1e-10}},
	} {
		r.options = train.Options{BatchSize: 64, Seed: 3, Phases: []train.Phase{{Epochs: 2, LR: 0.01, Negatives: 5}}}
		var saved []*train.Checkpoint
		want, _, _, err := r.fit(t, d, func(o *train.Options) {
			o.OptimizerZ = new(train.Adam)
			o.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error {
				copied, err := c.Clone()
				saved = append(saved, copied)
				return err
			}}
		})
		must(t, err)
		within := false
		for _, c := range saved {
			got, _, _, err := r.fit(t, d, func(o *train.Options) { o.OptimizerZ, o.Resume = new(train.Adam), c })
			must(t, err)
			within = within || c.Progress.Batches > 0
			if !slices.Equal(got, want) {
				t.Errorf("%s: another embedding from epoch %d and batch %d", name, c.Progress.Epochs, c.Progress.Batches)
			}
		}
		if !within {
			t.Errorf("%s: no checkpoint within an epoch", name)
		}
	}
}

func TestInterruptedOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	r := deviceRuns["table, Neg"]
	ctx, cancel := context.WithCancel(t.Context())
	m := r.model(t)
	o := r.options
	o.Device = d
	o.Phases = []train.Phase{{Epochs: 1000000, LR: 0.1, Negatives: 5}}
	o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
		if s.Epoch == 3 {
			cancel()
		}
		return nil
	})}
	var saved *train.Checkpoint
	o.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) (err error) {
		saved, err = c.Clone()
		return err
	}}
	heads, tails := ring(devicePoints, 3)
	result, err := train.Fit(ctx, m, heads, tails, o)
	if !errors.Is(err, context.Canceled) || result.Epochs != 3 || saved == nil || saved.Progress.Epochs != 3 {
		t.Fatalf("%v after %d epochs, checkpoint %v", err, result.Epochs, saved)
	}
	y := make([]float32, 2*devicePoints)
	if err := m.EmbedTo(y); err != nil || slices.Equal(y, normal[float32](devicePoints, 2, 5)) {
		t.Errorf("the model has learnt nothing (%v)", err)
	}
}

// Hundreds of steps need no more of the device's memory than ten: what a step leaves shows
// to the byte.
func TestNothingLeaksOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	heads, tails := ring(8, 1)
	const epochs = 200 // of two batches each
	m := tableOf[float32](t, 8, 2, 5, op.ContrastiveOptions{Metric: op.Cosine})
	before, _ := fakecuda.Usage()
	var inUse [2]int64
	var pieces [2]int
	trained(t, m, heads, tails, train.Options{
		Device: d, BatchSize: 8, Phases: []train.Phase{{Epochs: epochs, LR: 0.01, Negatives: 2}},
		Hooks: []train.Hook{train.HookFunc(func(s *train.State) error {
			switch s.Epoch {
			case 5:
				inUse[0], pieces[0] = fakecuda.Usage()
			case epochs:
				inUse[1], pieces[1] = fakecuda.Usage()
			}
			return nil
		})},
	})
	if inUse[1] > inUse[0] || pieces[1] > pieces[0] {
		t.Errorf("%d bytes in %d pieces after %d steps, %d in %d after 10", inUse[1], pieces[1], 2*epochs, inUse[0], pieces[0])
	}
	// The optimisers' state is freed by the garbage collector.
	var used, after int64
	for range 200 {
		runtime.GC()
		used, _ = d.Usage()
		if after, _ = fakecuda.Usage(); used == 0 && after <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("after the run %d bytes are in use, and %d allocated, of which %d were before", used, after, before)
}

// Runs that a device cannot compute are refused at the start.
func TestWhatDevicesDoNotTake(t *testing.T) {
	d := fakecuda.Open(t)
	heads, tails := ring(8, 1)
	double := tableOf[float64](t, 8, 2, 5, op.ContrastiveOptions{})
	single := tableOf[float32](t, 8, 2, 5, op.ContrastiveOptions{})
	for want, run := range map[string]struct {
		model   model.Model
		options train.Options
	}{
		"precision on an accelerator: got float64, want float32": {model: double},
		"images: got a source on the CPU, want one on cuda:0": {
			single, train.Options{Images: new(imageSource)}},
		"which does not run on cuda:0": {model: struct{ model.Model }{single}},
		"optimisers: got a *train_test.noOptimizer and a *train.SGD, which do not run on cuda:0": {single, train.Options{Optimizer: new(noOptimizer)}},
	} {
		o := run.options
		o.Device, o.Phases = d, []train.Phase{{Epochs: 1, LR: 1, Negatives: 1}}
		if _, err := train.Fit(t.Context(), run.model, heads, tails, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// noOptimizer is an optimiser only for the CPU.
type noOptimizer struct{}

func (*noOptimizer) Init([]model.Parameter) error   { return nil }
func (*noOptimizer) Step([]int32, float64, float64) {}
func (*noOptimizer) State() []train.NamedArray      { return nil }
