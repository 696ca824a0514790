package train

import (
	"cmp"
	"fmt"
	"math"

	"cne/internal/device"
	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// Adam is the optimiser of Kingma and Ba (2015) as PyTorch defines it: in step t,
// with the clipped gradient g plus WeightDecay·w instead of g,
//
//	m ← Beta1·m + (1 − Beta1)·g
//	v ← Beta2·v + (1 − Beta2)·g²
//	w ← w − lr/(1 − Beta1ᵗ) · m/(√(v/(1 − Beta2ᵗ)) + Epsilon)
//
// Rows of a sparse parameter that have no gradient count as having one of 0.
type Adam struct {
	// Beta1 and Beta2 are in (0, 1); 0 means 0.9 and 0.999.
	Beta1, Beta2 float64
	// Epsilon is positive; 0 means 1e-8.
	Epsilon float64
	// WeightDecay is at least 0.
	WeightDecay float64

	targets []target
	state   []NamedArray
	steps   *op.Array // the number of steps taken, a single float64

	t    *target
	grad *op.Array
	step simd.Adam
	loop parallel.Loop
	plan plan
}

// Init implements Optimizer.
func (o *Adam) Init(params []model.Parameter) error {
	o.step = simd.Adam{WeightDecay: o.WeightDecay, Beta1: cmp.Or(o.Beta1, 0.9), Beta2: cmp.Or(o.Beta2, 0.999), Epsilon: cmp.Or(o.Epsilon, 1e-8)}
	if s := &o.step; !(s.Beta1 > 0 && s.Beta1 < 1) || !(s.Beta2 > 0 && s.Beta2 < 1) || !(s.Epsilon > 0) || !(s.WeightDecay >= 0) || math.IsInf(s.Epsilon+s.WeightDecay, 0) {
		return errkind.Errorf(ErrInput, "train: Adam: got betas %g and %g, epsilon %g and weight decay %g, want betas in (0, 1), a positive epsilon and a decay of at least 0", s.Beta1, s.Beta2, s.Epsilon, s.WeightDecay)
	}
	var err error
	if o.targets, o.state, err = newTargets(params, true, "adam.m", "adam.v"); err != nil {
		return err
	}
	if o.steps, err = op.ArrayOf([]float64{0}, 1); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	o.state = append(o.state, NamedArray{"adam.steps", o.steps})
	o.loop.Body = o.piece
	o.plan = plan{}
	return nil
}

// State implements Optimizer.
func (o *Adam) State() []NamedArray { return o.state }

// Step implements Optimizer.
func (o *Adam) Step(rows []int32, lr, clip float64) {
	o.begin(lr, clip)
	for i := range o.targets {
		o.t = &o.targets[i]
		o.t.checkRows(rows)
		o.grad = o.t.gradient(rows)
		o.loop.Run(o.t.Value.Len(), elementsPerPiece)
		o.t.forget(rows)
	}
}

// begin sets the numbers of the next step, and counts it.
func (o *Adam) begin(lr, clip float64) {
	steps := op.Data[float64](o.steps)
	steps[0]++
	o.step.Step = lr / (1 - math.Pow(o.step.Beta1, steps[0]))
	o.step.Scale = 1 / math.Sqrt(1-math.Pow(o.step.Beta2, steps[0]))
	o.step.Clip = bound(clip)
}

// numbers implements deviceOptimizer.
func (o *Adam) numbers(lr, clip float64) stepNumbers {
	o.begin(lr, clip)
	return stepNumbers{float32(o.step.Step), float32(o.step.Clip), float32(o.step.Scale)}
}

// launch implements deviceOptimizer.
func (o *Adam) launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error {
	return o.plan.launch(d, "adam_steps", o.targets, o.decay, rows, numbers, status,
		device.F32(1-o.step.Beta1), device.F32(o.step.Beta2), device.F32(1-o.step.Beta2), device.F32(o.step.Epsilon))
}

// decay returns the weight decay, which is that of all parameters.
func (o *Adam) decay(*target) float64 { return o.WeightDecay }

func (o *Adam) piece(_, lo, hi int) {
	if op.Data[float64](o.t.Value) != nil {
		adamPiece[float64](o, lo, hi)
	} else {
		adamPiece[float32](o, lo, hi)
	}
}

// adamPiece moves the elements [lo, hi) of a parameter.
func adamPiece[T op.Float](o *Adam, lo, hi int) {
	m, v := op.Data[T](o.t.memory[0]), op.Data[T](o.t.memory[1])
	simd.AdamStep(op.Data[T](o.t.Value)[lo:hi], op.Data[T](o.grad)[lo:hi], m[lo:hi], v[lo:hi], &o.step)
}
