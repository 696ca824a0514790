package model

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/data"
	"cne/internal/device"
	"cne/internal/errkind"
	"cne/model/op"
	"cne/model/vm"
)

// A Device is where models are computed: see OpenDevice. A nil *Device is the CPU.
type Device = data.Device

// OpenDevice opens a device by name: cpu; cuda for the first of NVIDIA's GPUs,
// cuda:1 for the second; auto for the first GPU if one can be used, else the CPU.
// The device's Why says which it is, and why. A device that is not known or not available is an
// error that says what is missing, and wraps ErrDevice.
func OpenDevice(name string) (*Device, error) {
	d, err := device.Open(name)
	if err != nil {
		return nil, errkind.Errorf(ErrDevice, "%w", err)
	}
	return d, nil
}

// ErrDevice is wrapped by errors about devices that cannot be used.
var ErrDevice = errors.New("model: the device cannot be used")

// A MemoryError is the error of a device whose memory is too small.
type MemoryError = device.MemoryError

// deviceParams are an accelerator's copies of a model's arrays. A nil *deviceParams
// is the CPU, where the arrays themselves are used.
type deviceParams struct {
	device *Device
	copies map[*op.Array]*op.Array
	order  []*op.Array // of the model's own arrays, as they were copied
	stats  map[*op.BatchStats]*op.BatchStats
	stale  bool // the model's own arrays are: the copies have changed since
}

// newDeviceParams returns a deviceParams without copies, or nil for the CPU. It fails
// if an accelerator is to compute in another type than float32.
func newDeviceParams(d *Device, dtype tensor.Dtype) (*deviceParams, error) {
	if d.OnHost() {
		return nil, nil
	}
	if dtype != tensor.Float32 {
		return nil, errkind.Errorf(ErrInput, "model: accelerators compute in float32; take that, or device cpu")
	}
	return &deviceParams{device: d, copies: map[*op.Array]*op.Array{}, stats: map[*op.BatchStats]*op.BatchStats{}}, nil
}

// where returns the device: nil for the CPU.
func (p *deviceParams) where() *Device {
	if p == nil {
		return nil
	}
	return p.device
}

// on tells whether d is where the arrays are that are used.
func (p *deviceParams) on(d *Device) bool {
	return p.where() == d || p == nil && d.OnHost()
}

// of returns the copy of an array. The first call makes it.
func (p *deviceParams) of(a *op.Array) (*op.Array, error) {
	if p == nil {
		return a, nil
	}
	if c := p.copies[a]; c != nil {
		return c, nil
	}
	c, err := op.NewArray(p.device, a.Dtype())
	if err != nil {
		return nil, err
	}
	if err := op.Copy(c, a); err != nil {
		return nil, err
	}
	p.copies[a] = c
	p.order = append(p.order, a)
	return c, nil
}

// statsOf returns the copy of a normalisation's statistics. The first call makes it.
func (p *deviceParams) statsOf(s *op.BatchStats) (*op.BatchStats, error) {
	if p == nil {
		return s, nil
	}
	if c := p.stats[s]; c != nil {
		return c, nil
	}
	mean, err := p.of(s.Mean)
	if err != nil {
		return nil, err
	}
	variance, err := p.of(s.Var)
	if err != nil {
		return nil, err
	}
	p.stats[s] = &op.BatchStats{Mean: mean, Var: variance, Evaluate: s.Evaluate}
	return p.stats[s], nil
}

// pull brings the model's own arrays up to date.
func (p *deviceParams) pull() error {
	if p == nil || !p.stale {
		return nil
	}
	for _, a := range p.order {
		if err := op.Copy(a, p.copies[a]); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	p.stale = false
	return nil
}

// push brings the copies up to date.
func (p *deviceParams) push() error {
	if p == nil {
		return nil
	}
	for _, a := range p.order {
		if err := op.Copy(p.copies[a], a); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	p.stale = false
	return nil
}

// bind makes an input of a program read an array, or the copy of it.
func (p *deviceParams) bind(input, a *op.Array) error {
	c, err := p.of(a)
	if err != nil {
		return err
	}
	return input.View(c, 0, c.Shape()...)
}

// free gives the memory of the copies back.
func (p *deviceParams) free() {
	if p == nil {
		return
	}
	for _, c := range p.copies {
		c.Free()
	}
}

// A forward is a compiled forward pass.
type forward struct {
	on            *deviceParams // what the program reads
	program       *vm.Program   // nil before it is compiled
	input, output *op.Array
}

// newForward compiles the graph from x to y.
func newForward(on *deviceParams, x, y *gorgonia.Node) (forward, error) {
	p, err := vm.Compile(on.where(), y)
	if err != nil {
		return forward{}, fmt.Errorf("model: %w", err)
	}
	return forward{on, p, p.Input(x), p.Output(y)}, nil
}

// A placement says where a network is computed.
type placement struct {
	dtype    tensor.Dtype
	onDevice *deviceParams // nil on the CPU
	forward  forward
	compile  func(*deviceParams) (forward, error)
}

// UseDevice has the network computed on a device from now on, with what it has
// learnt so far. A new network is on the CPU (nil); an accelerator takes networks of
// float32 alone. After an error the network stays where it was.
func (p *placement) UseDevice(d *Device) error {
	if p.forward.program != nil && p.onDevice.on(d) {
		return nil
	}
	next, err := newDeviceParams(d, p.dtype)
	if err != nil {
		return err
	}
	if err := p.onDevice.pull(); err != nil {
		return err
	}
	f, err := p.compile(next)
	if err != nil {
		next.free()
		return err
	}
	p.onDevice.free()
	p.onDevice, p.forward = next, f
	return nil
}

// A DeviceModel is a model compiled for training on an accelerator, with copies there
// of what it learns. A step reads its batch from the inputs, and the program does not
// wait for it. Methods of the model itself (to embed, project or save) take into
// account what was learnt so far; the arrays of its own Parameters do so after Pull.
type DeviceModel struct {
	// Rows [r], Local [2b], Negatives [m, b] and Runs are those of a Batch, and
	// Images [r, 3, H, W]; Rows or Images are nil where the model takes none. Theta
	// is a scalar. Before a Step, make them views of arrays on the device.
	Rows, Local, Negatives, Runs, Theta, Images *op.Array
	// Loss and DTheta, scalars, are what a step leaves.
	Loss, DTheta *op.Array

	onDevice *deviceParams
	program  *vm.Program
	params   []Parameter
	before   func() // a step
	closed   func()
}

// Device returns where the model is.
func (m *DeviceModel) Device() *Device { return m.onDevice.device }

// Parameters returns the device's copies of the model's parameters, with the gradients
// that the last step left.
func (m *DeviceModel) Parameters() []Parameter { return m.params }

// Copy returns the device's copy of one of the model's own arrays, such as those of
// its state; nil if there is none.
func (m *DeviceModel) Copy(a *op.Array) *op.Array { return m.onDevice.copies[a] }

// Step computes the loss of the batch and its gradients.
func (m *DeviceModel) Step() error {
	if m.before != nil {
		m.before()
	}
	return m.program.Run()
}

// MarkStale says that the copies are about to change, the parameters by an optimiser
// or the state by a Step: what the model itself has is out of date from then on.
func (m *DeviceModel) MarkStale() { m.onDevice.stale = true }

// Diagnose runs the last Step again: see Model.Diagnose.
func (m *DeviceModel) Diagnose() error { return m.program.RunChecked() }

// Pull copies what was learnt so far to the model's own arrays.
func (m *DeviceModel) Pull() error { return m.onDevice.pull() }

// Push copies the model's own arrays to the device.
func (m *DeviceModel) Push() error { return m.onDevice.push() }

// Close does a Pull and gives back the memory of the steps. What a network needs to be
// used stays on the device.
func (m *DeviceModel) Close() error {
	err := m.Pull()
	if m.closed != nil {
		m.closed()
	}
	return errors.Join(err, m.program.Close())
}
