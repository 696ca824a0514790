package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// An Optimizer moves parameters against their gradients. *SGD, *Adam and *Muon are
// optimisers. *Muon and the optimisers of other packages run only on the CPU.
type Optimizer interface {
	// Init makes a new state for parameters. Arrays with the shape of a parameter are on
	// the parameter's device. It returns an error if the optimiser's options are invalid.
	Init(params []model.Parameter) error
	// Step takes a step with the learning rate lr against the gradients of the model's last
	// step. Their elements are first clipped to ±clip; 0 means no bound. rows are the batch's
	// Rows: row i of a sparse gradient belongs to row rows[i] of the parameter. In batches of
	// at most 8192 rows a point may occur more than once: its gradient is then in its first
	// row, and its other rows are 0.
	Step(rows []int32, lr, clip float64)
	// State returns the optimiser's state between steps. The arrays are not copies. A
	// checkpoint is restored by writing to them.
	State() []NamedArray
}

// A NamedArray is an array of a run's state with a unique name.
type NamedArray struct {
	Name  string
	Value *op.Array
}

const (
	// rowsPerPiece and elementsPerPiece are the numbers of rows, and of elements of a dense
	// parameter, that are worth another core.
	rowsPerPiece     = 8192
	elementsPerPiece = 1 << 13
)

// A target is a parameter as an optimiser sees it.
type target struct {
	model.Parameter
	// dense is the gradient of the whole parameter if Grad is sparse but the optimiser
	// moves all rows; it is zero between two steps.
	dense *op.Array
	// memory are the arrays of the optimiser's state for it, of the same shape.
	memory []*op.Array
}

// A stepper has what Adam and SGD share: the parameters and, during a step, one of them with the
// rows of its sparse gradient or the gradient of all its elements.
type stepper struct {
	targets []target
	state   []NamedArray
	t       *target
	rows    []int32
	grad    *op.Array
	loop    parallel.Loop
	plan    plan
}

// restart makes new targets of parameters, with an array of state under each name, and gives the
// loop its body. whole reports whether rows without a gradient move, too.
func (s *stepper) restart(params []model.Parameter, whole bool, body func(piece, lo, hi int), names ...string) (err error) {
	defer kind.Catch(&err)
	s.targets, s.state, s.plan, s.loop.Body = nil, nil, plan{}, body
	for _, p := range params {
		t := target{Parameter: p}
		for _, name := range names {
			a := kind.Got(zerosLike(p.Value))
			t.memory = append(t.memory, a)
			s.state = append(s.state, NamedArray{name + "." + p.Name, a})
		}
		if p.Sparse && whole {
			t.dense = kind.Got(zerosLike(p.Value))
		}
		s.targets = append(s.targets, t)
	}
	return nil
}

// State implements Optimizer.
func (s *stepper) State() []NamedArray { return s.state }

// step runs the loop over the elements of each parameter or, with byRows, over the rows of its
// gradient if that is sparse.
func (s *stepper) step(rows []int32, byRows bool) {
	s.rows = rows
	for i := range s.targets {
		s.t = &s.targets[i]
		s.t.checkRows(rows)
		if s.t.Sparse && byRows {
			s.loop.Run(s.t.Grad.Rows(), rowsPerPiece)
			continue
		}
		s.grad = s.t.gradient(rows)
		s.loop.Run(s.t.Value.Len(), elementsPerPiece)
		s.t.forget(rows)
	}
}

// zerosLike returns an array of zeros with the type, shape and device of a.
func zerosLike(a *op.Array) (*op.Array, error) {
	zeros, err := op.NewArray(a.Device(), a.Dtype(), a.Shape()...)
	if err == nil {
		err = zeros.Zero()
	}
	if err != nil {
		return nil, err
	}
	return zeros, nil
}

// checkRows panics if the rows do not fit a sparse gradient: the kernels write to them
// unchecked.
func (t *target) checkRows(rows []int32) {
	if n := t.Value.Rows(); t.Sparse && (len(rows) != t.Grad.Rows() || len(rows) > 0 && simd.MaxUint32(rows) >= uint32(n)) {
		panic(fmt.Sprintf("train: %d rows of %s, which has %d, for a gradient of %d", len(rows), t.Name, n, t.Grad.Rows()))
	}
}

// gradient returns the gradient of the whole parameter.
func (t *target) gradient(rows []int32) *op.Array {
	if t.dense == nil {
		return t.Grad
	}
	d := t.Grad.Cols()
	if g := op.Data[float64](t.dense); g != nil {
		simd.ScatterRows(g, op.Data[float64](t.Grad), d, rows)
	} else {
		simd.ScatterRows(op.Data[float32](t.dense), op.Data[float32](t.Grad), d, rows)
	}
	return t.dense
}

// forget makes the dense gradient zero again.
func (t *target) forget(rows []int32) {
	if t.dense == nil {
		return
	}
	d := t.Grad.Cols()
	for _, r := range rows {
		at := int(r) * d
		if g := op.Data[float64](t.dense); g != nil {
			clear(g[at : at+d])
		} else {
			clear(op.Data[float32](t.dense)[at : at+d])
		}
	}
}

// bound returns the clip bound for the kernels: +Inf if clip is 0.
func bound(clip float64) float64 { return cmp.Or(clip, math.Inf(1)) }

// Adam is the optimiser of Kingma and Ba (2015) with PyTorch's defaults β₁ = 0.9, β₂ =
// 0.999 and ε = 1e-8. In step t, g is the clipped gradient plus WeightDecay·w:
//
//	m ← β₁·m + (1 − β₁)·g
//	v ← β₂·v + (1 − β₂)·g²
//	w ← w − lr/(1 − β₁ᵗ) · m/(√(v/(1 − β₂ᵗ)) + ε)
//
// In a sparse gradient, missing rows count as 0.
type Adam struct {
	// WeightDecay is at least 0.
	WeightDecay float64

	stepper
	steps   *op.Array // the number of steps taken, a single float64
	factors simd.Adam
}

// Init implements Optimizer.
func (o *Adam) Init(params []model.Parameter) (err error) {
	defer kind.Catch(&err)
	kind.Check(checkDecay(o.WeightDecay))
	o.factors = simd.Adam{WeightDecay: o.WeightDecay, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	kind.Check(o.restart(params, true, o.piece, "adam.m", "adam.v"))
	o.steps = kind.Got(op.ArrayOf([]float64{0}, 1))
	o.state = append(o.state, NamedArray{"adam.steps", o.steps})
	return nil
}

// checkDecay returns an error unless a weight decay is finite and at least 0.
func checkDecay(decay float64) error {
	if !(decay >= 0) || math.IsInf(decay, 0) {
		return kind.Errorf(ErrInput, "train: weight decay: got %g, want a finite number of at least 0", decay)
	}
	return nil
}

// Step implements Optimizer.
func (o *Adam) Step(rows []int32, lr, clip float64) {
	o.took(1)
	o.begin(0, lr, clip)
	o.step(rows, false)
}

// begin sets the factors of the step that is so many after the last one counted.
func (o *Adam) begin(ahead int, lr, clip float64) {
	t := op.Data[float64](o.steps)[0] + float64(ahead)
	o.factors.Step = lr / (1 - elementary.Pow(o.factors.Beta1, t))
	o.factors.Scale = 1 / math.Sqrt(1-elementary.Pow(o.factors.Beta2, t))
	o.factors.Clip = bound(clip)
}

// took implements deviceOptimizer.
func (o *Adam) took(steps int) { op.Data[float64](o.steps)[0] += float64(steps) }

// numbers implements deviceOptimizer.
func (o *Adam) numbers(ahead int, lr, clip float64) stepNumbers {
	o.begin(ahead, lr, clip)
	return stepNumbers{float32(o.factors.Step), float32(o.factors.Clip), float32(o.factors.Scale)}
}

// launch implements deviceOptimizer.
func (o *Adam) launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error {
	return o.plan.launch(d, "adam_steps", o.targets, o.WeightDecay, rows, numbers, status,
		device.F32(1-o.factors.Beta1), device.F32(o.factors.Beta2), device.F32(1-o.factors.Beta2), device.F32(o.factors.Epsilon))
}

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
	simd.AdamStep(op.Data[T](o.t.Value)[lo:hi], op.Data[T](o.grad)[lo:hi], m[lo:hi], v[lo:hi], &o.factors)
}

// SGD is stochastic gradient descent as PyTorch defines it. With g the clipped gradient
// plus WeightDecay·w:
//
//	buf ← Momentum·buf + g
//	w ← w − lr·buf
//
// The zero value is w ← w − lr·g. It leaves rows without a gradient in a sparse gradient
// untouched; with Momentum or WeightDecay all rows move.
type SGD struct {
	// Momentum is in [0, 1], WeightDecay is at least 0.
	Momentum, WeightDecay float64

	stepper
	factors simd.Momentum
}

// Init implements Optimizer.
func (o *SGD) Init(params []model.Parameter) (err error) {
	defer kind.Catch(&err)
	kind.Need(o.Momentum >= 0 && o.Momentum <= 1, ErrInput, "train: momentum: got %g, want 0 to 1", o.Momentum)
	kind.Check(checkDecay(o.WeightDecay))
	var names []string
	if !o.plain() {
		names = []string{"sgd.momentum"}
	}
	err = o.restart(params, !o.plain(), o.piece, names...)
	if o.Momentum == 0 {
		o.state = nil // buf is the gradient of the last step, so it need not be kept
	}
	return err
}

// plain reports whether only the gradient moves a parameter.
func (o *SGD) plain() bool { return o.Momentum == 0 && o.WeightDecay == 0 }

// Step implements Optimizer.
func (o *SGD) Step(rows []int32, lr, clip float64) {
	o.factors = simd.Momentum{Step: lr, Clip: bound(clip), Momentum: o.Momentum, WeightDecay: o.WeightDecay}
	o.step(rows, o.plain())
}

// took implements deviceOptimizer.
func (o *SGD) took(int) {}

// numbers implements deviceOptimizer.
func (o *SGD) numbers(_ int, lr, clip float64) stepNumbers {
	return stepNumbers{float32(lr), float32(bound(clip)), 1}
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
	if o.Momentum == 0 {
		return o.plan.launch(d, "sgd_steps", o.targets, o.WeightDecay, rows, numbers, status)
	}
	return o.plan.launch(d, "momentum_steps", o.targets, o.WeightDecay, rows, numbers, status,
		device.F32(o.Momentum), device.F32(0), device.F32(1))
}

func (o *SGD) piece(_, lo, hi int) {
	if op.Data[float64](o.t.Value) != nil {
		momentumPiece[float64](o, lo, hi)
	} else {
		momentumPiece[float32](o, lo, hi)
	}
}

// momentumPiece updates the elements [lo, hi) of a parameter, or the rows of rows [lo,
// hi) of its sparse gradient.
func momentumPiece[T op.Float](o *SGD, lo, hi int) {
	w := op.Data[T](o.t.Value)
	switch {
	case o.t.Sparse && o.plain():
		d := o.t.Grad.Cols()
		simd.DescendRows(w, op.Data[T](o.t.Grad)[lo*d:hi*d], d, o.rows[lo:hi], T(o.factors.Step), T(o.factors.Clip))
	case o.plain():
		simd.Descend(w[lo:hi], op.Data[T](o.grad)[lo:hi], T(o.factors.Step), T(o.factors.Clip))
	default:
		simd.MomentumStep(w[lo:hi], op.Data[T](o.grad)[lo:hi], op.Data[T](o.t.memory[0])[lo:hi], &o.factors)
	}
}

// stepNumbers are the factors of a step: the learning rate, the gradient's clip bound,
// and others that depend on the optimiser.
type stepNumbers [8]float32

// A deviceOptimizer is an Optimizer that can also step parameters on a device, in
// float32, if they were on the device at Init.
type deviceOptimizer interface {
	Optimizer
	// numbers returns the factors for a learning rate and clip bound of a step that is so many
	// after the last one counted, from 1.
	numbers(ahead int, lr, clip float64) stepNumbers
	// took counts steps that were taken.
	took(steps int)
	// launch takes the step with the factors at a device address: see Step. rows are the
	// batch's distinct points (int32, on the device), or nil if no gradient is sparse.
	// Nothing changes if the int32 at status is not 0.
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

// A plan lets one launch update all parameters without sparse gradients. It lists for
// each share the device addresses of a parameter, its gradient and the optimiser's state:
// see kernels/src/optimisers.c.
type plan struct {
	words     []int64
	addresses []device.Pointer // of the arrays in words
	seen      []device.Pointer // of the arrays of this launch
	there     *device.Memory   // words, on the device
}

// launch runs a kernel that updates the targets whose rows all move; others are the
// kernel's last arguments. decay is the weight decay.
func (p *plan) launch(d *device.Device, kernel string, targets []target, decay float64,
	rows *op.Array, numbers, status device.Pointer, others ...device.Arg) (err error) {
	defer kind.Catch(&err)
	p.seen = p.seen[:0]
	for i := range targets {
		t := &targets[i]
		if t.Sparse && t.dense == nil {
			continue
		}
		gradient := t.Grad
		if t.dense != nil {
			gradient = t.dense
			kind.Check(t.launchRows(d, "place_rows", t.dense, rows, device.Arg(status)))
		}
		p.seen = append(p.seen, t.Value.Pointer(), gradient.Pointer())
		for _, a := range t.memory {
			p.seen = append(p.seen, a.Pointer())
		}
	}
	if p.there == nil || p.there.Device() != d || !slices.Equal(p.seen, p.addresses) {
		kind.Check(p.make(d, targets, decay))
	}
	if len(p.words) == 0 {
		return nil
	}
	args := [device.MaxArgs]device.Arg{device.Arg(p.addresses[0]), device.Arg(p.there.Pointer()), device.Arg(numbers), device.Arg(status)}
	n := 4 + copy(args[4:], others)
	return d.Launch(kernel, device.Launch{Grid: len(p.words) / wordsPerShare, Block: threadsPerShare}, args[:n]...)
}

// make makes and uploads the plan for the arrays in seen.
func (p *plan) make(d *device.Device, targets []target, decay float64) error {
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
		share[5] = int64(math.Float32bits(float32(decay)))
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
