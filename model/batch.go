package model

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/model/op"
	"cne/model/vm"
)

// ErrInput is wrapped by errors about widths, sizes and values that are invalid or do not
// fit the model.
var ErrInput = errors.New("model: bad input")

// A batchProgram is the part of a graph that all models have in common: from the
// positions of a batch's distinct points to the loss and its gradients.
type batchProgram[T op.Float] struct {
	program *vm.Program

	// byEnds reports whether batches are given by their endpoints, without Local.
	byEnds bool
	// rows is nil if the graph does not look up its points by number, local is nil if byEnds,
	// and thetaValue is nil on an accelerator.
	rows, local, negatives, layout, theta *op.Array
	thetaValue                            []T
	loss, dTheta                          *op.Array
	grads                                 []*op.Array // with respect to the argument wrt of compile
	lossNode                              *gorgonia.Node
}

// compile completes a graph and compiles it for a device. distinct [r, d] are the
// positions of the batch's distinct points and rows the input with their rows, or nil. The
// loss is differentiated with respect to wrt.
func (p *batchProgram[T]) compile(d *Device, g *gorgonia.ExprGraph, rows, distinct *gorgonia.Node, wrt gorgonia.Nodes,
	options op.ContrastiveOptions) error {
	// The smallest sizes of a batch; a program takes any.
	const b, m = 1, 1
	local := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2*b), gorgonia.WithName("local"))
	negatives := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(m, b), gorgonia.WithName("negatives"))
	layout := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(1), gorgonia.WithName("layout"))
	theta := gorgonia.NewScalar(g, op.Dtype[T](), gorgonia.WithName("theta"))

	features, err := distinct, error(nil)
	if !p.byEnds {
		if features, err = op.Gather(distinct, local); err != nil {
			return err
		}
	}
	if options.Metric == op.Cosine {
		if features, err = op.Normalize(features); err != nil {
			return err
		}
	}
	loss, err := op.Contrastive(features, negatives, layout, theta, options)
	if err != nil {
		return err
	}
	one := g.AddNode(gorgonia.NewConstant(T(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{one}, append(gorgonia.Nodes{theta}, wrt...))
	if err != nil {
		return err
	}
	if p.program, err = vm.Compile(d, append(gorgonia.Nodes{loss}, grads...)...); err != nil {
		return err
	}
	if rows != nil {
		p.rows = p.program.Input(rows)
	}
	if !p.byEnds {
		p.local = p.program.Input(local)
	}
	p.negatives, p.layout, p.theta = p.program.Input(negatives), p.program.Input(layout), p.program.Input(theta)
	if d.OnHost() {
		p.thetaValue = make([]T, 1)
		if err := op.Share(p.theta, p.thetaValue); err != nil {
			return err
		}
	}
	p.lossNode = loss
	p.loss, p.dTheta = p.program.Output(loss), p.program.Output(grads[0])
	for _, n := range grads[1:] {
		p.grads = append(p.grads, p.program.Output(n))
	}
	return nil
}

// constant makes an input read an array that never changes, or a copy of it on an
// accelerator.
func (p *batchProgram[T]) constant(input, a *op.Array) error {
	if p.program.Device().OnHost() {
		return input.View(a, 0, a.Shape()...)
	}
	return op.Copy(input, a)
}

// step computes the loss of a batch and its gradients.
func (p *batchProgram[T]) step(b *Batch, theta float64) (float64, error) {
	edges := b.Edges()
	ends := b.Local
	if p.byEnds {
		ends = b.Rows
	}
	if !p.byEnds && len(b.Local) == 0 && len(b.Rows) > 0 {
		return 0, kind.Errorf(ErrInput, "model: batch: got no Local, which only a table on the CPU does without")
	}
	if edges == 0 || len(ends) != 2*edges || len(b.Negatives)%edges != 0 {
		return 0, kind.Errorf(ErrInput,
			"model: batch: got the rows of %d endpoints and %d negatives, want an even number of endpoints and as many negatives for each head", len(ends), len(b.Negatives))
	}
	layout := b.Layout
	if len(layout) == 0 {
		layout = op.NegativeLayout{op.ListedNegatives}
	}
	err := errors.Join(op.Share(p.negatives, b.Negatives, len(b.Negatives)/edges, edges), op.Share(p.layout, layout, len(layout)))
	if p.rows != nil {
		err = errors.Join(err, op.Share(p.rows, b.Rows, len(b.Rows)))
	}
	if !p.byEnds {
		err = errors.Join(err, op.Share(p.local, b.Local, len(b.Local)))
	}
	if err != nil {
		return 0, err
	}
	p.thetaValue[0] = T(theta)
	if err := p.program.Run(); err != nil {
		return 0, err
	}
	return float64(op.Data[T](p.loss)[0]), nil
}

func (p *batchProgram[T]) dThetaValue() float64 { return float64(op.Data[T](p.dTheta)[0]) }

// deviceModel returns the model of this program, with copies of its parameters.
func (p *batchProgram[T]) deviceModel(on *deviceParams, params []Parameter) (*DeviceModel, error) {
	if on == nil {
		return nil, kind.Errorf(ErrInput, "model: device: got the CPU, want an accelerator")
	}
	m := &DeviceModel{
		Rows: p.rows, Local: p.local, Negatives: p.negatives, Layout: p.layout, Theta: p.theta,
		Loss: p.loss, DTheta: p.dTheta, onDevice: on, program: p.program,
	}
	for i, own := range params {
		c, err := on.of(own.Value)
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		m.params = append(m.params, Parameter{Name: own.Name, Value: c, Grad: p.grads[i], Sparse: own.Sparse})
	}
	return m, nil
}
