package model

import (
	"cmp"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model/op"
)

// An Embedding is a non-parametric embedding: a matrix with a row of coordinates for each
// point, learnt directly. T is the type of the computation. (A cne.Embedding is the result
// of a run with any model.)
//
// Its graph is
//
//	distinct rows of the batch → Gather by Local → (Normalize) → Contrastive
//
// and its gradient has only the batch's distinct rows. A step therefore costs nothing for
// other points. For a batch without Local the rows are gathered in the order of the
// endpoints. The gradients of repeats are then added to the first endpoint's gradient.
// Their order is the same as in the derivative of Gather.
type Embedding[T op.Float] struct {
	n, d        int
	objective   op.ContrastiveOptions
	table, grad *op.Array
	batch, ends batchProgram[T]  // for batches with and without Local
	last        *batchProgram[T] // the program of the last step
	onDevice    *deviceParams    // where it is trained; nil on the CPU
	repeats     []Repeat         // Batch.Repeats
}

// NewEmbedding returns a model of n = len(table)/d points that starts at the given
// coordinates [n, d]. It uses the memory of table, which the caller must not change. A
// metric of op.Cosine puts Normalize before the loss.
func NewEmbedding[T op.Float](table []T, d int, options op.ContrastiveOptions) (_ *Embedding[T], err error) {
	defer kind.Catch(&err)
	kind.Need(d >= 1 && len(table) != 0 && len(table)%d == 0, ErrInput,
		"model: table: got %d coordinates, want a multiple of %d", len(table), d)
	n := len(table) / d
	e := &Embedding[T]{n: n, d: d, objective: options}
	e.table = kind.Got(op.ArrayOf(table, n, d))
	e.grad = kind.Got(op.NewArray(nil, op.Dtype[T](), 0, d))
	e.ends.byEnds = true
	for _, p := range []*batchProgram[T]{&e.ends, &e.batch} {
		kind.Check(e.build(p, nil))
		e.last = p
	}
	return e, nil
}

// build makes the program of a batch.
func (e *Embedding[T]) build(p *batchProgram[T], on *deviceParams) (err error) {
	defer kind.Catch(&err)
	g := gorgonia.NewGraph()
	table := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(e.n, e.d), gorgonia.WithName("embedding"))
	rows := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("rows"))
	distinct := kind.Got(op.Gather(table, rows))
	kind.Check(p.compile(on.where(), g, rows, distinct, gorgonia.Nodes{distinct}, e.objective))
	on.bind(p.program.Input(table), e.table)
	return nil
}

// OnDevice compiles the model for training on an accelerator, and replaces an earlier
// DeviceModel. The earlier one must not be used any more. The type must be float32.
func (e *Embedding[T]) OnDevice(d *Device) (_ *DeviceModel, err error) {
	defer kind.Catch(&err)
	on := kind.Got(newDeviceParams(d, op.Dtype[T]()))
	kind.Check(e.onDevice.pull())
	p := new(batchProgram[T])
	kind.Check(e.build(p, on))
	m := kind.Got(p.deviceModel(on, e.Parameters()))
	e.onDevice = on
	m.closed = func() {
		on.free()
		e.onDevice = nil
	}
	return m, nil
}

// Objective implements Model.
func (e *Embedding[T]) Objective() op.ContrastiveOptions { return e.objective }

// Step implements Model.
func (e *Embedding[T]) Step(b *Batch, theta float64) (float64, error) {
	if err := checkRepeats(b); err != nil {
		return 0, err
	}
	e.repeats, e.last = b.Repeats, &e.batch
	if len(b.Local) == 0 {
		e.last = &e.ends
	}
	loss, err := e.last.step(b, theta)
	if err != nil {
		return 0, err
	}
	return loss, op.Share(e.grad, e.addRepeats(), len(b.Rows), e.d)
}

// addRepeats adds the gradients of repeats to the first endpoints' gradients. It returns
// the gradient [2b, d] of the last step.
func (e *Embedding[T]) addRepeats() []T {
	grad := op.Data[T](e.last.grads[0])
	for _, r := range e.repeats {
		again := grad[int(r.Again)*e.d:][:e.d]
		simd.Add(grad[int(r.First)*e.d:], again)
		clear(again)
	}
	return grad
}

// checkRepeats checks that the repeats of a batch are endpoints and in order.
func checkRepeats(b *Batch) error {
	if len(b.Local) > 0 && len(b.Repeats) > 0 {
		return kind.Errorf(ErrInput, "model: batch: got both Local and %d repeats, want one of them", len(b.Repeats))
	}
	before := int32(0)
	for i, r := range b.Repeats {
		_, again := slices.BinarySearchFunc(b.Repeats[:i], r.First, func(r Repeat, end int32) int { return cmp.Compare(r.Again, end) })
		if again || r.First < 0 || r.First >= r.Again || r.Again <= before || int(r.Again) >= len(b.Rows) || b.Rows[r.First] != b.Rows[r.Again] {
			return kind.Errorf(ErrInput,
				"model: repeat: got endpoint %d of %d for endpoint %d, want ascending order and the first endpoint of each point", r.Again, len(b.Rows), r.First)
		}
		before = r.Again
	}
	return nil
}

// DTheta implements Model.
func (e *Embedding[T]) DTheta() float64 { return e.last.DTheta() }

// Parameters implements Model: the coordinates.
func (e *Embedding[T]) Parameters() []Parameter {
	return []Parameter{{Name: "embedding", Value: e.table, Grad: e.grad, Sparse: true}}
}

// Diagnose implements Model.
func (e *Embedding[T]) Diagnose() error {
	if err := e.last.Diagnose(); err != nil {
		return err
	}
	e.addRepeats()
	return nil
}

// Points implements Model.
func (e *Embedding[T]) Points() (n, d int) { return e.n, e.d }

// EmbedTo implements Model.
func (e *Embedding[T]) EmbedTo(dst []float32) (err error) {
	defer kind.Catch(&err)
	kind.Need(len(dst) == e.n*e.d, ErrInput, "model: destination: got %d values, want %d points of %d", len(dst), e.n, e.d)
	kind.Check(e.onDevice.pull())
	selection.Convert(dst, op.Data[T](e.table))
	return nil
}

// Table returns the coordinates [n, d] themselves, not a copy. While the model is trained
// on a device, they are the coordinates at the last Pull.
func (e *Embedding[T]) Table() []T { return op.Data[T](e.table) }
