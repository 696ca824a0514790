package train

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/model"
	"cne/model/op"
)

// runOn returns a run whose parameters are on a device, full of such numbers.
func runOn(t *testing.T, d *device.Device, first float32) *run {
	t.Helper()
	logZType := tensor.Float64
	if !d.OnHost() {
		logZType = tensor.Float32
	}
	h := &hostEngine{settings: &settings{Options: Options{Optimizer: &SGD{Momentum: 0.9}, OptimizerZ: new(Adam)}, batches: 10, epochs: 5}}
	add := func(name string, dtype tensor.Dtype, n int) model.Parameter {
		p := model.Parameter{Name: name}
		var err error
		for _, a := range []**op.Array{&p.Value, &p.Grad} {
			*a, err = op.NewArray(d, dtype, n)
			must(t, err)
			must(t, (*a).Zero())
		}
		return p
	}
	h.params = []model.Parameter{add("w", tensor.Float32, 5)}
	h.paramZ = add(logZName, logZType, 1)
	must(t, errors.Join(h.Optimizer.Init(h.params), h.OptimizerZ.Init([]model.Parameter{h.paramZ})))
	for _, s := range h.arrays() {
		values := make([]float32, s.Value.Len())
		for i := range values {
			values[i] = first
			first++
		}
		a, err := op.ArrayOf(values, s.Value.Shape()...)
		must(t, err)
		must(t, copyArray(s.Value, a))
	}
	return &run{settings: h.settings, engine: h}
}

// stateOf returns all numbers of a run's state.
func stateOf(t *testing.T, f *run) (all []float64) {
	t.Helper()
	for _, s := range f.engine.arrays() {
		a, err := op.NewArray(nil, tensor.Float64)
		must(t, err)
		must(t, a.Resize(s.Value.Shape()))
		must(t, copyArray(a, s.Value))
		all = append(all, op.Data[float64](a)...)
	}
	return all
}

// goesOn saves a run on one device, and restores it on another, from memory and from
// a file.
func goesOn(t *testing.T, from, to *device.Device) {
	t.Helper()
	begun := runOn(t, from, 1)
	want := stateOf(t, begun)
	c := &Checkpoint{arrays: begun.engine.arrays()}
	copied, err := c.Clone()
	must(t, err)
	path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	must(t, c.WriteFile(path))
	read, err := ReadCheckpoint(path)
	must(t, err)
	for what, c := range map[string]*Checkpoint{"shared": c, "copied": copied, "read": read} {
		f := runOn(t, to, 100)
		if err := f.restore(c); err != nil {
			t.Fatal(what, err)
		}
		if got := stateOf(t, f); !slices.Equal(got, want) {
			t.Errorf("%s: state %v, want %v", what, got, want)
		}
		if z := f.engine.logZ(); z != want[5] { // after the five of w
			t.Errorf("%s: log Z is %g, want %g", what, z, want[5])
		}
	}
}

func TestCheckpointOfOneDevice(t *testing.T) { goesOn(t, device.CPU(), device.CPU()) }

// Only log Z may be of another type: the precision of a parameter is the run's.
func TestCheckpointOfAnotherType(t *testing.T) {
	c := &Checkpoint{arrays: runOn(t, device.CPU(), 1).engine.arrays()}
	for i, s := range c.arrays {
		if s.Value.Dtype() != tensor.Float64 {
			continue
		}
		single, err := op.NewArray(nil, tensor.Float32, s.Value.Shape()...)
		must(t, err)
		must(t, copyArray(single, s.Value))
		c.arrays[i].Value = single
	}
	f := runOn(t, device.CPU(), 100)
	must(t, f.restore(c))
	if got, want := stateOf(t, f), stateOf(t, runOn(t, device.CPU(), 1)); !slices.Equal(got, want) {
		t.Errorf("state %v, want %v", got, want)
	}
	double, err := op.NewArray(nil, tensor.Float64, 5)
	must(t, err)
	c.arrays[0].Value = double
	if err := f.restore(c); !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), "parameter.w: got float64 of shape [5]") {
		t.Errorf("error %v", err)
	}
}
