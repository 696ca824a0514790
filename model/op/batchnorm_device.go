package op

import (
	"fmt"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/errkind"
)

// deviceNorm is the state of a BatchNorm on an accelerator: see kernels/src/images.c.
type deviceNorm struct {
	floor   float64 // 0 with a ReLU, −∞ without
	state   *Array  // [normState, c]
	partial *Array  // [parts·2, c], sums over parts of the rows
}

// The rows of the state, as the kernels number them.
const (
	normSumG  = 9  // the gradient of the shift
	normSumGZ = 10 // that of the scale
	normState = 11
)

const (
	// normThreads is the number of threads of a block, and normBlocks the largest
	// number of blocks: as many as a large GPU runs at once.
	normThreads, normBlocks = 256, 384
	// normLanes is the largest number of threads that share a row.
	normLanes = 32
	// normRows is the smallest number of rows for a thread.
	normRows = 4
)

// A normLayout divides images among blocks and threads, only by their size.
type normLayout struct {
	rows, c              int
	fours, half          bool
	lanes, strips, parts int
}

// newNormLayout returns that of x and of other arrays of its shape and type.
func newNormLayout(x *Array, others ...*Array) (normLayout, error) {
	l := normLayout{rows: x.shape[0] * x.shape[1] * x.shape[2], c: x.shape[3], lanes: 1, half: x.half()}
	for _, a := range others {
		if a.half() != l.half {
			return l, errkind.Errorf(ErrInput, "op: a batch_norm takes arrays of one type, not of float32 and of bfloat16")
		}
	}
	groups := l.c
	if _, width := byFours("", "", l.c, append(others, x)...); width == 4 {
		groups, l.fours = l.c/4, true
	}
	for l.lanes < min(groups, normLanes) {
		l.lanes *= 2
	}
	l.strips = (groups + l.lanes - 1) / l.lanes
	rows := normRows * normThreads / l.lanes
	l.parts = max(1, min(normBlocks/l.strips, (l.rows+rows-1)/rows))
	return l, nil
}

// The kernels that see all images.
var (
	normMoments  = variants{"norm_moments_1", "norm_moments_4", "norm_moments_h1", "norm_moments_h4"}
	normApply    = variants{"norm_apply_1", "norm_apply_4", "norm_apply_h1", "norm_apply_h4"}
	normAdd      = variants{"norm_add_1", "norm_add_4", "norm_add_h1", "norm_add_h4"}
	normProducts = variants{"norm_products_1", "norm_products_4", "norm_products_h1", "norm_products_h4"}
	normGradient = variants{"norm_gradient_1", "norm_gradient_4", "norm_gradient_h1", "norm_gradient_h4"}
)

// launch runs one of some kernels, which take the layout as their last arguments.
func (l normLayout) launch(d *Device, v *variants, args ...Arg) error {
	kernel := v.ones
	switch {
	case l.half && l.fours:
		kernel = v.fourHalves
	case l.half:
		kernel = v.halves
	case l.fours:
		kernel = v.fours
	}
	args = append(args, device.Int(l.rows), device.Int(l.c), device.Int(l.lanes), device.Int(l.strips))
	return d.Launch(kernel, device.Launch{Grid: l.strips * l.parts, Block: normThreads}, args...)
}

// finish runs a kernel that adds up the parts' sums.
func (l normLayout) finish(d *Device, kernel string, args ...Arg) error {
	return d.Launch(kernel, device.Launch{Grid: (l.c + 31) / 32, Block: 1024}, args...)
}

// reserve makes room for the state and the parts' sums.
func (n *deviceNorm) reserve(d *Device, l normLayout) (err error) {
	if n.state == nil {
		if n.state, err = NewArray(d, tensor.Float32, normState, l.c); err != nil {
			return err
		}
		if n.partial, err = NewArray(d, tensor.Float32); err != nil {
			return err
		}
	}
	if n.state.Device() != d {
		return fmt.Errorf("op: a batch_norm that has run on %s cannot run on %s; make another", n.state.Device().Name(), d.Name())
	}
	return n.partial.Resize([]int{2 * l.parts, l.c})
}

// row returns the address of a row of the state.
func (n *deviceNorm) row(k int) Pointer {
	return n.state.Pointer().At(k*n.state.shape[1], elementSize)
}

// Launch implements Launcher.
func (o *batchNorm) Launch(d *Device, dst *Array, in []*Array) error {
	if err := o.prepare(d, in); err != nil {
		return err
	}
	return o.LaunchAgain(d, dst, in)
}

// prepare sets the state that forward passes need.
func (o *batchNorm) prepare(d *Device, in []*Array) error {
	x, scale, shift := in[0], in[1], in[2]
	mean, variance := o.stats.Mean, o.stats.Var
	if mean.Device() != d || variance.Device() != d {
		return fmt.Errorf("op: batch_norm runs on %s, and its statistics are on %s; NewBatchStats makes them there", d.Name(), mean.Device().Name())
	}
	if err := o.begin(x); err != nil {
		return err
	}
	l, err := newNormLayout(x)
	if err != nil {
		return err
	}
	if err := o.onDevice.reserve(d, l); err != nil {
		return err
	}
	state, partial, c := o.onDevice.state.Arg(), o.onDevice.partial.Arg(), device.Int(l.c)
	if o.evaluated {
		return d.Each("norm_running", l.c, state, mean.Arg(), variance.Arg(), scale.Arg(), shift.Arg(), c)
	}
	if err := l.launch(d, &normMoments, partial, state, x.Arg()); err != nil {
		return err
	}
	return l.finish(d, "norm_batch", state, mean.Arg(), variance.Arg(), partial, scale.Arg(), shift.Arg(), device.Int(l.parts), c, device.Int(l.rows))
}

// LaunchAgain implements Recomputer.
func (o *batchNorm) LaunchAgain(d *Device, dst *Array, in []*Array) error {
	l, err := newNormLayout(dst, in[0])
	if err != nil {
		return err
	}
	return l.launch(d, &normApply, dst.Arg(), in[0].Arg(), o.onDevice.state.Arg(), device.F32(o.onDevice.floor))
}

// Launch implements Launcher.
func (o *batchNormAdd) Launch(d *Device, dst *Array, in []*Array) error {
	if err := o.norm.prepare(d, in); err != nil {
		return err
	}
	l, err := newNormLayout(dst, in[0], in[3])
	if err != nil {
		return err
	}
	return l.launch(d, &normAdd, dst.Arg(), in[0].Arg(), in[3].Arg(), o.norm.onDevice.state.Arg(), device.F32(0))
}

// Launch implements Launcher.
func (o *batchNormDone) Launch(_ *Device, dst *Array, _ []*Array) error { return dst.Zero() }

// Launch implements Launcher.
func (o *batchNormGrad) Launch(d *Device, dst *Array, in []*Array) error {
	x, scale, g := in[0], in[1], in[2]
	n := &o.of.onDevice
	if n.state == nil || n.state.shape[1] != x.shape[3] {
		return errNotRun
	}
	evaluated := 0
	if o.of.evaluated {
		evaluated = 1
	}
	l, err := newNormLayout(x, g, dst)
	if err != nil {
		return err
	}
	if err := n.reserve(d, l); err != nil {
		return err
	}
	state, partial, floor := n.state.Arg(), n.partial.Arg(), device.F32(n.floor)
	if err := l.launch(d, &normProducts, partial, g.Arg(), x.Arg(), state, floor); err != nil {
		return err
	}
	if err := l.finish(d, "norm_blend", state, partial, scale.Arg(), device.Int(l.parts), device.Int(l.c), device.Int(l.rows), device.Int(evaluated)); err != nil {
		return err
	}
	return l.launch(d, &normGradient, dst.Arg(), g.Arg(), x.Arg(), state, floor)
}

// Launch implements Launcher.
func (o *batchNormSums) Launch(d *Device, dst *Array, _ []*Array) error {
	row := normSumG
	if o.scale {
		row = normSumGZ
	}
	return d.Copy(dst.Pointer(), o.of.onDevice.row(row), dst.Len()*elementSize)
}
