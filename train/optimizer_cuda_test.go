//go:build cu

package train_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// copyTo returns a copy of an array on a device.
func copyTo(t *testing.T, d *device.Device, a *op.Array) *op.Array {
	t.Helper()
	to, err := op.NewArray(d, a.Dtype())
	if err == nil {
		err = op.Copy(to, a)
	}
	must(t, err)
	return to
}

// A deviceStep has an optimiser and its parameters twice: on the CPU and on a device.
type deviceStep struct {
	device                *device.Device
	here, there           train.DeviceOptimizer
	params, deviceParams  []model.Parameter
	rows, numbers, status *op.Array // status is on the device
	deviceRows            *op.Array
	deviceNumbers         *op.Array
}

// newDeviceStep makes parameters of several sizes. One takes several shares of a launch,
// and one is sparse.
func newDeviceStep(t *testing.T, d *device.Device, optimizer func() train.Optimizer) *deviceStep {
	t.Helper()
	s := &deviceStep{device: d, here: train.OnDevice(optimizer()), there: train.OnDevice(optimizer())}
	add := func(name string, sparse bool, gradRows int, shape ...int) {
		n := 1
		for _, v := range shape {
			n *= v
		}
		value := make([]float32, n)
		noise(value, uint64(len(name)))
		p := model.Parameter{Name: name, Value: arrayOf(t, value, shape...), Sparse: sparse}
		gradShape := slices.Clone(shape)
		gradShape[0] = gradRows
		p.Grad = arrayOf(t, make([]float32, n/shape[0]*gradRows), gradShape...)
		s.params = append(s.params, p)
		p.Value, p.Grad = copyTo(t, d, p.Value), copyTo(t, d, p.Grad)
		s.deviceParams = append(s.deviceParams, p)
	}
	add("bias", false, 5, 5)
	add("table", true, 4, 60, 3)
	add("weights", false, 41, 41, 77)
	add("a number", false, 1, 1)
	initOptimizer(t, s.here, s.params...)
	initOptimizer(t, s.there, s.deviceParams...)
	var err error
	s.rows, err = op.ArrayOf([]int32{7, 0, 59, 23}, 4)
	must(t, err)
	s.deviceRows = copyTo(t, d, s.rows)
	s.numbers, s.status = arrayOf(t, make([]float32, 8), 8), copyTo(t, d, arrayOf(t, make([]float32, 1), 1))
	s.deviceNumbers = copyTo(t, d, s.numbers)
	return s
}

// take takes a step on both, with new gradients.
func (s *deviceStep) take(t *testing.T, step int, clip float64) {
	t.Helper()
	rows := op.Data[int32](s.rows)
	rows[step%4] = int32(30 + step) // as in no step before
	for i, p := range s.params {
		noise(op.Data[float32](p.Grad), uint64(100*step+i))
		s.copy(t, s.deviceParams[i].Grad, p.Grad)
	}
	s.copy(t, s.deviceRows, s.rows)
	lr := 0.1 / float64(1+step)
	s.here.Step(rows, lr, clip)
	s.launch(t, lr, clip)
}

func (s *deviceStep) launch(t *testing.T, lr, clip float64) {
	t.Helper()
	numbers := s.there.Numbers(lr, clip)
	copy(op.Data[float32](s.numbers), numbers[:])
	s.copy(t, s.deviceNumbers, s.numbers)
	must(t, s.there.Launch(s.device, s.deviceRows, s.deviceNumbers.Pointer(), s.status.Pointer()))
}

func (s *deviceStep) copy(t *testing.T, to, from *op.Array) {
	t.Helper()
	must(t, op.Copy(to, from))
}

// compare compares the parameters and the optimisers' state.
func (s *deviceStep) compare(t *testing.T, what string) {
	t.Helper()
	for i, p := range s.params {
		equalFloats(t, what+", "+p.Name, copyTo(t, device.CPU(), s.deviceParams[i].Value), p.Value)
	}
	a, b := s.here.State(), s.there.State()
	if len(a) != len(b) {
		t.Fatalf("%d and %d arrays of state", len(a), len(b))
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			t.Fatalf("state %s and %s", a[i].Name, b[i].Name)
		}
		if a[i].Value.Len() > 1 && b[i].Value.Device().OnHost() {
			t.Errorf("%s is not on the device", b[i].Name)
		}
		equalFloats(t, what+", "+a[i].Name, copyTo(t, device.CPU(), b[i].Value), a[i].Value)
	}
}

func equalFloats(t *testing.T, what string, got, want *op.Array) {
	t.Helper()
	for i, w := range op.Data[float32](want) {
		if g := op.Data[float32](got)[i]; math.Abs(float64(g-w)) > 2e-6*(1+math.Abs(float64(w))) || g != g {
			t.Fatalf("%s: element %d is %g, want %g", what, i, g, w)
		}
	}
	if !slices.Equal(op.Data[int32](got), op.Data[int32](want)) || !slices.Equal(op.Data[float64](got), op.Data[float64](want)) {
		t.Fatalf("%s differs", what)
	}
}

// Steps on a device are the CPU's, for every optimiser, also after its state moves to a
// new optimiser.
func TestStepOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	all := map[string]func() train.Optimizer{
		"sgd, spared": func() train.Optimizer {
			return &train.SGD{Momentum: 0.9, WeightDecay: 0.1}
		},
	}
	for name, optimizer := range optimizers {
		all[name] = optimizer
	}
	for name, optimizer := range all {
		t.Run(name, func(t *testing.T) {
			for _, clip := range []float64{0, 0.5} {
				s := newDeviceStep(t, d, optimizer)
				for step := range 6 {
					s.take(t, step, clip)
					s.compare(t, fmt.Sprintf("clip %g, step %d", clip, step))
				}
				// The state moves to a new optimiser.
				next := train.OnDevice(optimizer())
				initOptimizer(t, next, s.deviceParams...)
				for i, to := range next.State() {
					s.copy(t, to.Value, s.there.State()[i].Value)
				}
				s.there = next
				for step := 6; step < 9; step++ {
					s.take(t, step, clip)
					s.compare(t, fmt.Sprintf("clip %g, step %d", clip, step))
				}
			}
		})
	}
}

// Once a batch has failed, nothing moves.
func TestStepAfterFailureOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, optimizer := range optimizers {
		t.Run(name, func(t *testing.T) {
			s := newDeviceStep(t, d, optimizer)
			s.take(t, 0, 0)
			s.compare(t, "before")
			failed, err := op.ArrayOf([]int32{3}, 1)
			must(t, err)
			s.status = copyTo(t, d, failed)
			s.launch(t, 0.1, 0)
			for i, p := range s.params {
				equalFloats(t, p.Name, copyTo(t, device.CPU(), s.deviceParams[i].Value), p.Value)
			}
			a, b := s.here.State(), s.there.State()
			for i := range a {
				if a[i].Value.Dtype() == tensor.Float32 {
					equalFloats(t, a[i].Name, copyTo(t, device.CPU(), b[i].Value), a[i].Value)
				}
			}
		})
	}
}

// A step can be captured and replayed with other numbers. A gradient that moves in
// memory is found there.
func TestStepOnDeviceIsCaptured(t *testing.T) {
	d := fakecuda.Open(t)
	for name, optimizer := range optimizers {
		t.Run(name, func(t *testing.T) {
			s := newDeviceStep(t, d, optimizer)
			s.take(t, 0, 0.5)
			must(t, s.deviceParams[2].Grad.Reserve(2*41*77))
			s.take(t, 1, 0.5)
			s.compare(t, "moved")
			replay, err := d.Capture(func() error {
				return s.there.Launch(d, s.deviceRows, s.deviceNumbers.Pointer(), s.status.Pointer())
			})
			must(t, err)
			s.here.Step(op.Data[int32](s.rows), 0.02, 0.7)
			numbers := s.there.Numbers(0.02, 0.7)
			copy(op.Data[float32](s.numbers), numbers[:])
			s.copy(t, s.deviceNumbers, s.numbers)
			must(t, replay.Run())
			s.compare(t, "replayed")
			must(t, replay.Close())
		})
	}
}

func TestLaunchRefusesOtherRowsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, optimizer := range optimizers {
		s := newDeviceStep(t, d, optimizer)
		for _, rows := range []*op.Array{nil, copyTo(t, d, arrayOf(t, []float32{0, 0}, 2))} {
			err := s.there.Launch(d, rows, s.deviceNumbers.Pointer(), s.status.Pointer())
			if err == nil || !strings.Contains(err.Error(), "rows of table for a gradient of 4") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}
