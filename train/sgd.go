package train

import (
	"fmt"
	"math"

	"cne/internal/device"
	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// SGD is stochastic gradient descent as PyTorch defines it: with the clipped
// gradient g plus WeightDecay·w instead of g,
//
//	buf ← Momentum·buf + (1 − Dampening)·g   (buf ← g in the first step)
//	w ← w − lr·buf, or w − lr·(g + Momentum·buf) with Nesterov
//
// The zero value is w ← w − lr·g; with it alone, the rows of a sparse parameter that
// have no gradient do not move and are left untouched.
type SGD struct {
	// Momentum and Dampening are in [0, 1], WeightDecay is at least 0.
	// Dampening needs a Momentum.
	Momentum, Dampening, WeightDecay float64
	// Nesterov needs a Momentum and no Dampening.
	Nesterov bool
	// NoDecay reports whether a parameter has no weight decay; nil means that all have.
	NoDecay func(p *model.Parameter) bool

	targets []target
	state   []NamedArray
	begun   *op.Array // 1 after the first step

	t    *target
	rows []int32
	grad *op.Array
	step simd.Momentum
	loop parallel.Loop
	plan plan
}

// Init implements Optimizer.
func (o *SGD) Init(params []model.Parameter) error {
	if !(o.Momentum >= 0 && o.Momentum <= 1) || !(o.Dampening >= 0 && o.Dampening <= 1) || !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 0) {
		return errkind.Errorf(ErrInput, "train: SGD: got momentum %g, dampening %g and weight decay %g, want the first two in [0, 1] and a decay of at least 0", o.Momentum, o.Dampening, o.WeightDecay)
	}
	if o.Dampening != 0 && o.Momentum == 0 {
		return errkind.Errorf(ErrInput, "train: dampening of SGD without momentum: got %g, want 0", o.Dampening)
	}
	if o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
		return errkind.Errorf(ErrInput, "train: Nesterov's SGD: got momentum %g and dampening %g, want a positive momentum and 0", o.Momentum, o.Dampening)
	}
	var names []string
	if !o.plain() {
		names = []string{"sgd.momentum"}
	}
	var err error
	if o.targets, o.state, err = newTargets(params, !o.plain(), names...); err != nil {
		return err
	}
	if o.begun, err = op.ArrayOf([]int32{0}, 1); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if o.Momentum == 0 {
		o.state = nil // buf is the gradient of the last step and need not be kept
	} else {
		o.state = append(o.state, NamedArray{"sgd.begun", o.begun})
	}
	o.loop.Body = o.piece
	o.plan = plan{}
	return nil
}

// plain reports whether only the gradient moves a parameter.
func (o *SGD) plain() bool { return o.Momentum == 0 && o.WeightDecay == 0 }

// State implements Optimizer.
func (o *SGD) State() []NamedArray { return o.state }

// Step implements Optimizer.
func (o *SGD) Step(rows []int32, lr, clip float64) {
	o.rows = rows
	o.begin(lr, clip)
	for i := range o.targets {
		o.t = &o.targets[i]
		o.t.checkRows(rows)
		o.step.WeightDecay = o.decay(o.t)
		if o.t.Sparse && o.plain() {
			o.loop.Run(o.t.Grad.Rows(), rowsPerPiece)
			continue
		}
		o.grad = o.t.gradient(rows)
		o.loop.Run(o.t.Value.Len(), elementsPerPiece)
		o.t.forget(rows)
	}
}

// begin sets the numbers of the next step that all parameters share, and counts it.
func (o *SGD) begin(lr, clip float64) {
	o.step = simd.Momentum{Step: lr, Clip: bound(clip), Momentum: o.Momentum, Dampening: o.Dampening, Nesterov: o.Nesterov}
	begun := op.Data[int32](o.begun)
	if begun[0] == 0 {
		o.step.Dampening = 0
		begun[0] = 1
	}
}

// decay returns a parameter's weight decay.
func (o *SGD) decay(t *target) float64 {
	if o.NoDecay != nil && o.NoDecay(&t.Parameter) {
		return 0
	}
	return o.WeightDecay
}

// numbers implements deviceOptimizer.
func (o *SGD) numbers(lr, clip float64) stepNumbers {
	o.begin(lr, clip)
	return stepNumbers{float32(lr), float32(o.step.Clip), float32(1 - o.step.Dampening)}
}

// launch implements deviceOptimizer.
func (o *SGD) launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error {
	for i := range o.targets {
		if t := &o.targets[i]; t.Sparse && o.plain() {
			if err := t.launchRows(d, "sgd_rows", t.Value, rows, device.Arg(numbers), device.Arg(status)); err != nil {
				return err
			}
		}
	}
	switch {
	case o.Momentum == 0:
		return o.plan.launch(d, "sgd_steps", o.targets, o.decay, rows, numbers, status)
	case o.Nesterov:
		return o.plan.launch(d, "momentum_steps", o.targets, o.decay, rows, numbers, status,
			device.F32(o.Momentum), device.F32(1), device.F32(o.Momentum))
	}
	return o.plan.launch(d, "momentum_steps", o.targets, o.decay, rows, numbers, status,
		device.F32(o.Momentum), device.F32(0), device.F32(1))
}

func (o *SGD) piece(_, lo, hi int) {
	if op.Data[float64](o.t.Value) != nil {
		momentumPiece[float64](o, lo, hi)
	} else {
		momentumPiece[float32](o, lo, hi)
	}
}

// momentumPiece moves the elements [lo, hi) of a parameter, or the rows to which the
// rows [lo, hi) of its sparse gradient belong.
func momentumPiece[T op.Float](o *SGD, lo, hi int) {
	w := op.Data[T](o.t.Value)
	switch {
	case o.t.Sparse && o.plain():
		d := o.t.Grad.Cols()
		simd.DescendRows(w, op.Data[T](o.t.Grad)[lo*d:hi*d], d, o.rows[lo:hi], T(o.step.Step), T(o.step.Clip))
	case o.plain():
		simd.Descend(w[lo:hi], op.Data[T](o.grad)[lo:hi], T(o.step.Step), T(o.step.Clip))
	default:
		simd.MomentumStep(w[lo:hi], op.Data[T](o.grad)[lo:hi], op.Data[T](o.t.memory[0])[lo:hi], &o.step)
	}
}
