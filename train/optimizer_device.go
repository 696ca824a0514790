package train

import (
	"fmt"
	"math"
	"slices"

	"cne/internal/device"
	"cne/model/op"
)

// stepNumbers are the numbers of a step: its size, the gradient's clip bound, and
// others that depend on the optimiser.
type stepNumbers [8]float32

// A deviceOptimizer is an Optimizer that can also step parameters on a device, in float32, if
// they were there at Init.
type deviceOptimizer interface {
	Optimizer
	// numbers returns the numbers of the next step, of that size and clip bound, and
	// counts it as taken.
	numbers(lr, clip float64) stepNumbers
	// launch takes the step whose numbers are at a device address: see Step. rows are
	// the batch's distinct points (int32, on the device), or nil if no gradient is
	// sparse. Nothing moves if the int32 at status is not 0.
	launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error
}

var (
	_ deviceOptimizer = (*SGD)(nil)
	_ deviceOptimizer = (*Adam)(nil)
)

const (
	// elementsPerShare is the number of a parameter's elements that a block updates,
	// with threadsPerShare threads.
	elementsPerShare = 1024
	threadsPerShare  = 256
	// wordsPerShare is the number of words in the plan for them.
	wordsPerShare = 8
)

// A plan lets one launch update all parameters whose rows all move. It lists, share by
// share, where a parameter, its gradient and the optimiser's state are on the device: see
// kernels/src/optimisers.c.
type plan struct {
	words     []int64
	addresses []device.Pointer // of the arrays for which words were made
	seen      []device.Pointer // of the arrays of this launch
	there     *device.Memory   // words, on the device
}

// launch runs a kernel that updates the targets whose rows all move; others are its
// last arguments. decay returns a target's weight decay.
func (p *plan) launch(d *device.Device, kernel string, targets []target, decay func(*target) float64,
	rows *op.Array, numbers, status device.Pointer, others ...device.Arg) error {
	p.seen = p.seen[:0]
	for i := range targets {
		t := &targets[i]
		if t.Sparse && t.dense == nil {
			continue
		}
		gradient := t.Grad
		if t.dense != nil {
			gradient = t.dense
			if err := t.launchRows(d, "place_rows", t.dense, rows, device.Arg(status)); err != nil {
				return err
			}
		}
		p.seen = append(p.seen, t.Value.Pointer(), gradient.Pointer())
		for _, a := range t.memory {
			p.seen = append(p.seen, a.Pointer())
		}
	}
	if p.there == nil || p.there.Device() != d || !slices.Equal(p.seen, p.addresses) {
		if err := p.make(d, targets, decay); err != nil {
			return err
		}
	}
	if len(p.words) == 0 {
		return nil
	}
	args := [device.MaxArgs]device.Arg{device.Arg(p.addresses[0]), device.Arg(p.there.Pointer()), device.Arg(numbers), device.Arg(status)}
	n := 4 + copy(args[4:], others)
	return d.Launch(kernel, device.Launch{Grid: len(p.words) / wordsPerShare, Block: threadsPerShare}, args[:n]...)
}

// make makes and uploads the plan for the arrays in seen.
func (p *plan) make(d *device.Device, targets []target, decay func(*target) float64) error {
	p.words, p.addresses = p.words[:0], append(p.addresses[:0], p.seen...)
	at := 0 // in addresses
	for i := range targets {
		t := &targets[i]
		if t.Sparse && t.dense == nil {
			continue
		}
		if n := t.Grad.Len(); t.dense == nil && n != t.Value.Len() {
			return fmt.Errorf("train: a gradient of %d elements for %s, which has %d", n, t.Name, t.Value.Len())
		}
		var share [wordsPerShare]int64
		arrays := 2 + len(t.memory)
		for k, a := range p.addresses[at : at+arrays] {
			share[k] = (int64(a) - int64(p.addresses[0])) / 4
		}
		at += arrays
		share[5] = int64(math.Float32bits(float32(decay(t))))
		if t.dense != nil {
			share[6] = 1
		}
		for left := t.Value.Len(); left > 0; left -= elementsPerShare {
			share[4] = int64(min(left, elementsPerShare))
			p.words = append(p.words, share[:]...)
			for k := range arrays {
				share[k] += elementsPerShare
			}
		}
	}
	there, err := d.Alloc(8 * len(p.words))
	if err != nil {
		return err
	}
	if p.there != nil {
		p.there.Free()
	}
	p.there = there
	return device.Upload(d, there.Pointer(), p.words)
}

// launchRows runs a kernel on the rows of a sparse gradient. Its last arguments are
// others and the number of lanes (see device.Lanes).
func (t *target) launchRows(d *device.Device, kernel string, to, rows *op.Array, others ...device.Arg) error {
	if rows == nil || rows.Len() != t.Grad.Rows() {
		n := 0
		if rows != nil {
			n = rows.Len()
		}
		return fmt.Errorf("train: %d rows of %s for a gradient of %d", n, t.Name, t.Grad.Rows())
	}
	n, cols := t.Grad.Rows(), t.Grad.Cols()
	lanes := device.Lanes(cols)
	args := [device.MaxArgs]device.Arg{to.Arg(), t.Grad.Arg(), rows.Arg(), device.Int(n), device.Int(cols)}
	k := 5 + copy(args[5:], others)
	args[k] = device.Int(lanes)
	return d.Each(kernel, n<<lanes, args[:k+1]...)
}
