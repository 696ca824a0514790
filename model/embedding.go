package model

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
	"cne/model/vm"
)

// An Embedding is the non-parametric model: a table with a row of coordinates
// for each point, which are learnt directly. T is the type it computes in.
//
// Its graph is
//
//	rows of the table → Gather by slot → (Normalize) → Contrastive
//
// and its gradient is that of the batch's distinct rows alone, so that a step
// costs nothing for the points that it does not touch.
type Embedding[T op.Float] struct {
	n, d      int
	objective op.ContrastiveOptions
	table     *op.Array
	program   *vm.Program

	rows, slots, negatives, theta *op.Array
	thetaValue                    []T
	loss, grad, dTheta            *op.Array
}

// NewEmbedding returns a model of n = len(table)/d points that starts at the
// given coordinates, [n, d], whose memory it takes over. A metric of
// op.Cosine puts Normalize before the loss.
func NewEmbedding[T op.Float](table []T, d int, options op.ContrastiveOptions) (*Embedding[T], error) {
	if d < 1 || len(table) == 0 || len(table)%d != 0 {
		return nil, fmt.Errorf("model: %d coordinates are no table of points with %d dimensions", len(table), d)
	}
	n := len(table) / d
	e := &Embedding[T]{n: n, d: d, objective: options}
	var err error
	if e.table, err = op.ArrayOf(table, n, d); err != nil {
		return nil, err
	}
	if err := e.build(options); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return e, nil
}

func (e *Embedding[T]) build(options op.ContrastiveOptions) error {
	// The sizes of a batch are those of a smallest one: a program takes any.
	const b, m = 1, 1
	dtype := op.Dtype[T]()
	g := gorgonia.NewGraph()
	table := gorgonia.NewMatrix(g, dtype, gorgonia.WithShape(e.n, e.d), gorgonia.WithName("embedding"))
	rows := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2*b), gorgonia.WithName("rows"))
	slots := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2*b), gorgonia.WithName("slots"))
	negatives := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(m, b), gorgonia.WithName("negatives"))
	theta := gorgonia.NewScalar(g, dtype, gorgonia.WithName("theta"))

	distinct, err := op.Gather(table, rows)
	if err != nil {
		return err
	}
	features, err := op.Gather(distinct, slots)
	if err != nil {
		return err
	}
	if options.Metric == op.Cosine {
		if features, err = op.Normalize(features); err != nil {
			return err
		}
	}
	loss, err := op.Contrastive(features, negatives, theta, options)
	if err != nil {
		return err
	}
	one := g.AddNode(gorgonia.NewConstant(T(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{one}, gorgonia.Nodes{distinct, theta})
	if err != nil {
		return err
	}
	if e.program, err = vm.Compile(loss, grads[0], grads[1]); err != nil {
		return err
	}
	if err := op.Share(e.program.Input(table), op.Data[T](e.table), e.n, e.d); err != nil {
		return err
	}
	e.rows, e.slots = e.program.Input(rows), e.program.Input(slots)
	e.negatives, e.theta = e.program.Input(negatives), e.program.Input(theta)
	e.thetaValue = make([]T, 1)
	if err := op.Share(e.theta, e.thetaValue); err != nil {
		return err
	}
	e.loss, e.grad, e.dTheta = e.program.Output(loss), e.program.Output(grads[0]), e.program.Output(grads[1])
	return nil
}

// Objective implements Model.
func (e *Embedding[T]) Objective() op.ContrastiveOptions { return e.objective }

// Step implements Model.
func (e *Embedding[T]) Step(b *Batch, theta float64) (float64, error) {
	edges := b.Edges()
	if edges == 0 || len(b.Slots) != 2*edges || len(b.Negatives)%edges != 0 {
		return 0, fmt.Errorf("model: %d slots and %d negatives are no batch", len(b.Slots), len(b.Negatives))
	}
	if err := errors.Join(
		op.Share(e.rows, b.Rows, len(b.Rows)),
		op.Share(e.slots, b.Slots, len(b.Slots)),
		op.Share(e.negatives, b.Negatives, len(b.Negatives)/edges, edges),
	); err != nil {
		return 0, err
	}
	e.thetaValue[0] = T(theta)
	if err := e.program.Run(); err != nil {
		return 0, err
	}
	return float64(op.Data[T](e.loss)[0]), nil
}

// DTheta implements Model.
func (e *Embedding[T]) DTheta() float64 { return float64(op.Data[T](e.dTheta)[0]) }

// Parameters implements Model: the table alone.
func (e *Embedding[T]) Parameters() []Parameter {
	return []Parameter{{Name: "embedding", Value: e.table, Grad: e.grad, Sparse: true}}
}

// Diagnose implements Model.
func (e *Embedding[T]) Diagnose() error { return e.program.RunChecked() }

// Points implements Model.
func (e *Embedding[T]) Points() (n, d int) { return e.n, e.d }

// EmbedTo implements Model.
func (e *Embedding[T]) EmbedTo(dst []float32) {
	for i, v := range op.Data[T](e.table) {
		dst[i] = float32(v)
	}
}

// Table returns the coordinates [n, d] themselves, not a copy.
func (e *Embedding[T]) Table() []T { return op.Data[T](e.table) }
