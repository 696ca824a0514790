package model

import (
	"errors"
	"fmt"

	"cne/data"
	"cne/internal/device"
	"cne/model/op"
	"cne/model/vm"
)

// A Device is where models are computed: see OpenDevice. A nil *Device is the CPU.
type Device = data.Device

// OpenDevice opens a device by name: cpu; cuda for the first of NVIDIA's GPUs,
// cuda:1 for the second; auto for the first GPU if one can be used, else the CPU.
// Its Why says which it is and why. A device that is not to be had is an error that
// says what is missing.
func OpenDevice(name string) (*Device, error) { return device.Open(name) }

// copies are the copies that an accelerator has of a model's arrays. Where there is
// none, they are the arrays themselves.
type copies struct {
	device *device.Device
	remote map[*op.Array]*op.Array
	order  []*op.Array // the model's own
	ahead  bool        // the copies have learnt what the model's own have not
}

func newCopies(d *device.Device) *copies {
	return &copies{device: d, remote: map[*op.Array]*op.Array{}}
}

// onHost tells whether the arrays are used where they are.
func (c *copies) onHost() bool { return c == nil }

// where returns the device.
func (c *copies) where() *device.Device {
	if c == nil {
		return device.CPU()
	}
	return c.device
}

// on tells whether the copies are on a device.
func (c *copies) on(d *device.Device) bool {
	return c.where() == d || c.onHost() && d.OnHost()
}

// at returns the copies for a program on a device: none on the CPU.
func (c *copies) at(d *device.Device) *copies {
	if d.OnHost() {
		return nil
	}
	return c
}

// of returns the copy of an array, which is made the first time.
func (c *copies) of(a *op.Array) (*op.Array, error) {
	if c.onHost() {
		return a, nil
	}
	if there := c.remote[a]; there != nil {
		return there, nil
	}
	there, err := op.NewArray(c.device, a.Dtype())
	if err != nil {
		return nil, err
	}
	if err := op.Copy(there, a); err != nil {
		return nil, err
	}
	c.remote[a] = there
	c.order = append(c.order, a)
	return there, nil
}

// pull brings the model's arrays up to date.
func (c *copies) pull() error {
	if c.onHost() || !c.ahead {
		return nil
	}
	for _, a := range c.order {
		if err := op.Copy(a, c.remote[a]); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	c.ahead = false
	return nil
}

// push brings the copies up to date.
func (c *copies) push() error {
	if c.onHost() {
		return nil
	}
	for _, a := range c.order {
		if err := op.Copy(c.remote[a], a); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	c.ahead = false
	return nil
}

// bind makes an input of a program read an array, or the copy of it.
func (c *copies) bind(input, a *op.Array) error {
	there, err := c.of(a)
	if err != nil {
		return err
	}
	return input.View(there, 0, there.Shape()...)
}

// free gives the copies back.
func (c *copies) free() {
	if c == nil {
		return
	}
	for _, there := range c.remote {
		there.Free()
	}
}

// A Replica is a model on an accelerator: its graph, compiled for it, with copies
// of what it learns. One step after the other is computed of the batch that lies in
// the inputs, without the program waiting for it. What the model computes (positions,
// representations, files) takes what was learnt so far into account; its parameters'
// own arrays do so after Pull.
type Replica struct {
	// Rows [r], Slots [2b], Negatives [m, b] and Runs are those of a Batch, and
	// Images [r, 3, H, W]; Rows or Images are nil where the model takes none. Theta
	// is a scalar. They are to be made views of arrays on the device.
	Rows, Slots, Negatives, Runs, Theta, Images *op.Array
	// Loss and DTheta, scalars, are what a step leaves.
	Loss, DTheta *op.Array

	copies  *copies
	program *vm.Program
	params  []Parameter
	before  func() // a step
	closed  func()
}

// A Remote is a model that can be trained on an accelerator.
type Remote interface {
	Model
	// Replicate makes a replica on an accelerator, in whose place an earlier one
	// must not be used any more. Only models that compute in float32 have one.
	Replicate(d *Device) (*Replica, error)
}

// Device returns where the replica is.
func (r *Replica) Device() *Device { return r.copies.device }

// Parameters returns the copies of the model's parameters, with the gradients that
// the last step left.
func (r *Replica) Parameters() []Parameter { return r.params }

// Copy returns the copy of one of the model's own arrays, such as those of its
// state; nil if there is none.
func (r *Replica) Copy(a *op.Array) *op.Array { return r.copies.remote[a] }

// Step computes the loss of the batch and its gradients.
func (r *Replica) Step() error {
	if r.before != nil {
		r.before()
	}
	return r.program.Run()
}

// Moved says that the parameters are about to be moved, or the state by a Step.
func (r *Replica) Moved() { r.copies.ahead = true }

// Diagnose runs the last Step again: see Model.Diagnose.
func (r *Replica) Diagnose() error { return r.program.RunChecked() }

// Pull gives the model what was learnt so far, and Push the replica what the model
// has learnt elsewhere.
func (r *Replica) Pull() error { return r.copies.pull() }

// Push is the inverse of Pull.
func (r *Replica) Push() error { return r.copies.push() }

// Close gives the memory of the steps back, after a Pull. What a network needs to be
// used stays on the device.
func (r *Replica) Close() error {
	err := r.Pull()
	if r.closed != nil {
		r.closed()
	}
	return errors.Join(err, r.program.Close())
}

// errFloat64 is the error of models that cannot be on an accelerator.
var errFloat64 = errors.New("model: accelerators compute in float32; take that, or device cpu")
