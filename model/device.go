package model

import (
	"errors"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/model/op"
	"cne/model/vm"
)

// A Device runs models. OpenDevice opens one. A nil *Device is also the CPU, but Name,
// Reason and TF32 panic for it. Callers may use
//   - Name, such as "cpu" or "cuda:0";
//   - OnHost, which reports whether it is the CPU;
//   - Reason, a sentence that says which device it is and why OpenDevice chose it;
//   - Properties of an accelerator, such as the vendor's name and the driver's version;
//   - OnNote, which sets a function that gets sentences about how the device computes;
//   - TF32, a field: matrix products may round factors to 10 stored bits of mantissa, and
//     are then several times as fast. It is true unless set to false before the device is
//     used;
//   - Close, which releases the accelerator and all its memory.
//
// The other methods are for the packages of cne.
type Device = device.Device

// OpenDevice opens a device by name: "cpu"; "cuda" for NVIDIA's first GPU, "cuda:1" for
// the second; or "auto" for the first GPU if it can be used, otherwise the CPU.
// Device.Reason says which one it is and why. If a device is unknown or not available, the
// error wraps ErrDevice and says what is missing.
func OpenDevice(name string) (*Device, error) {
	d, err := device.Open(name)
	if err != nil {
		return nil, kind.Errorf(ErrDevice, "%w", err)
	}
	return d, nil
}

// ErrDevice is wrapped by errors about devices that cannot be used.
var ErrDevice = errors.New("model: the device cannot be used")

// A MemoryError reports that the memory of a device is too small. Device is its name, and
// Needed, Free and Total are in bytes. If Needed is 0, the need is not known, and For says
// what ran out of memory.
type MemoryError = device.MemoryError

// deviceParams are an accelerator's copies of a model's arrays. A nil *deviceParams is
// the CPU, which uses the arrays themselves.
type deviceParams struct {
	device *Device
	copies map[*op.Array]*op.Array
	order  []*op.Array // the model's own arrays, in the order of copying
	stats  map[*op.BatchStats]*op.BatchStats
	stale  bool // the model's own arrays are out of date: the copies have changed
}

// newDeviceParams returns deviceParams without copies, or nil for the CPU. Accelerators
// compute only in float32; another type is an error.
func newDeviceParams(d *Device, dtype tensor.Dtype) (*deviceParams, error) {
	if d.OnHost() {
		return nil, nil
	}
	if dtype != tensor.Float32 {
		return nil, kind.Errorf(ErrInput, "model: precision on an accelerator: got float64, want float32")
	}
	return &deviceParams{device: d, copies: map[*op.Array]*op.Array{}, stats: map[*op.BatchStats]*op.BatchStats{}}, nil
}

// where returns the device, or nil for the CPU.
func (p *deviceParams) where() *Device {
	if p == nil {
		return nil
	}
	return p.device
}

// on reports whether the arrays are on d.
func (p *deviceParams) on(d *Device) bool {
	return p.where() == d || p == nil && d.OnHost()
}

// of returns the device's copy of an array; the first call makes it. It fails as kind.Need
// does, and so do statsOf, bind and share.
func (p *deviceParams) of(a *op.Array) *op.Array {
	if p == nil {
		return a
	}
	if c := p.copies[a]; c != nil {
		return c
	}
	c := kind.Got(op.NewArray(p.device, a.Dtype()))
	kind.Check(op.Copy(c, a))
	p.copies[a] = c
	p.order = append(p.order, a)
	return c
}

// statsOf returns the copy of a BatchNorm's statistics. The first call makes it.
func (p *deviceParams) statsOf(s *op.BatchStats) *op.BatchStats {
	if p == nil {
		return s
	}
	if p.stats[s] == nil {
		p.stats[s] = &op.BatchStats{Mean: p.of(s.Mean), Var: p.of(s.Var), Evaluate: s.Evaluate}
	}
	return p.stats[s]
}

// pull updates the model's own arrays from the copies.
func (p *deviceParams) pull() error {
	if p == nil || !p.stale {
		return nil
	}
	for _, a := range p.order {
		if err := op.Copy(a, p.copies[a]); err != nil {
			return err
		}
	}
	p.stale = false
	return nil
}

// bind makes a program's input read an array, or its copy.
func (p *deviceParams) bind(input, a *op.Array) {
	c := p.of(a)
	kind.Check(input.View(c, 0, c.Shape()...))
}

// share makes the inputs of a program read the parameters, or their copies. A program
// without a ResNet's head has no inputs for its parameters.
func (p *deviceParams) share(program *vm.Program, nodes gorgonia.Nodes, parameters []Parameter) {
	for i, node := range nodes {
		if in := program.Input(node); in != nil {
			p.bind(in, parameters[i].Value)
		}
	}
}

// free releases the copies' memory.
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
	on            *deviceParams // the arrays that the program reads
	program       *vm.Program   // nil before it is compiled
	input, output *op.Array
}

// newForward compiles the graph from x to y, with the parameters in nodes. It fails as kind.Need
// does.
func newForward(on *deviceParams, x, y *gorgonia.Node, nodes gorgonia.Nodes, parameters []Parameter) forward {
	p := kind.Got(vm.Compile(on.where(), y))
	on.share(p, nodes, parameters)
	return forward{on, p, p.Input(x), p.Output(y)}
}

// run returns the output for x. Both arrays are in the program's memory; the output is
// valid until the next run.
func (f *forward) run(x *op.Array) (y *op.Array, err error) {
	if f.on == nil {
		err = f.input.View(x, 0, x.Shape()...)
	} else {
		err = op.Copy(f.input, x)
	}
	if err == nil {
		err = f.program.Run()
	}
	if y = f.output; err == nil && f.on != nil {
		if y, err = op.NewArray(nil, f.output.Dtype()); err == nil {
			err = op.Copy(y, f.output)
		}
	}
	if err != nil {
		return nil, err
	}
	return y, nil
}

// A deviceUse is the device that computes a network, and the network compiled for it.
type deviceUse struct {
	dtype    tensor.Dtype
	onDevice *deviceParams // nil on the CPU
	forward  forward
	compile  func(*deviceParams) (forward, error)
}

// UseDevice moves the network and its learnt parameters to a device. New networks are on
// the CPU; nil moves back to it. An accelerator takes only float32 networks. After an
// error the network stays where it was.
func (p *deviceUse) UseDevice(d *Device) (err error) {
	defer kind.Catch(&err)
	if p.forward.program != nil && p.onDevice.on(d) {
		return nil
	}
	next := kind.Got(newDeviceParams(d, p.dtype))
	kind.Check(p.onDevice.pull())
	f, err := p.compile(next)
	if err != nil {
		next.free()
		return err
	}
	p.onDevice.free()
	p.onDevice, p.forward = next, f
	return nil
}

// A DeviceModel is a model compiled for training on an accelerator, with copies of its
// parameters there. A step reads its batch from the inputs, without waiting for the
// device. The model's own methods (to embed, project or save) use the current parameters.
// The arrays of its own Parameters are up to date only after Pull.
type DeviceModel struct {
	// Rows [r], Local [2b], Negatives [m, b] and Layout are as in a Batch, and
	// Images [r, 3, H, W]; Rows or Images are nil where the model takes none. Theta
	// is a scalar. Before a Step, make them views of arrays on the device.
	Rows, Local, Negatives, Layout, Theta, Images *op.Array
	// Loss and DTheta, scalars, are the results of a step.
	Loss, DTheta *op.Array

	onDevice *deviceParams
	program  *vm.Program
	params   []Parameter
	before   func() // called before each step
	closed   func()
}

// Device returns the model's device.
func (m *DeviceModel) Device() *Device { return m.onDevice.device }

// Parameters returns the device's copies of the parameters, with the gradients of the
// last step.
func (m *DeviceModel) Parameters() []Parameter { return m.params }

// Copy returns the device's copy of one of the model's arrays, such as its state, or nil.
func (m *DeviceModel) Copy(a *op.Array) *op.Array { return m.onDevice.copies[a] }

// Step computes the loss of the batch and its gradients.
func (m *DeviceModel) Step() error {
	if m.before != nil {
		m.before()
	}
	return m.program.Run()
}

// MarkStale must be called before an optimiser changes the parameters, or a Step the
// state, on the device: it marks the model's own arrays as out of date.
func (m *DeviceModel) MarkStale() { m.onDevice.stale = true }

// Diagnose runs the last Step again, with checks: see Model.Diagnose.
func (m *DeviceModel) Diagnose() error { return m.program.RunChecked() }

// Pull copies what was learnt so far to the model's own arrays.
func (m *DeviceModel) Pull() error { return m.onDevice.pull() }

// Close does a Pull and releases the memory of the steps. A network's parameters stay on
// the device.
func (m *DeviceModel) Close() error {
	err := m.Pull()
	if m.closed != nil {
		m.closed()
	}
	return errors.Join(err, m.program.Close())
}
