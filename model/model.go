package model

import (
	"errors"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model/op"
	"cne/model/vm"
)

// A Batch is a batch of b edges of the symmetric kNN graph, which joins two points if
// either is among the k nearest neighbours of the other. It is given by its distinct
// points or, without Local, by the endpoints of its edges.
type Batch struct {
	// Rows are the distinct points of the edges, each once; without Local, the 2b endpoints:
	// first the b heads, then the b tails.
	Rows []int32
	// Local [2b] has the position in Rows of each endpoint: first the b heads, then the b
	// tails. Only an Embedding on the CPU takes batches without Local. They are faster if
	// hardly any point occurs twice.
	Local []int32
	// If Local is nil, Repeats lists the endpoints whose point occurred before, in order.
	Repeats []Repeat
	// Negatives [m, b] has the negatives of each edge, as numbers of endpoints (0 … 2b−1).
	// Negative j of edge i is Negatives[j·b+i].
	Negatives []int32
	// Layout describes the negatives of the edges; nil means Negatives.
	Layout op.NegativeLayout
	// Images [len(Rows), 3, H, W] are the input of a model of images for Rows; other
	// models do not read them.
	Images []float32
}

// A Repeat pairs two endpoints: Again has the same point as First, its first occurrence.
// The gradient of the point is in First's row, and Again's row is 0.
type Repeat struct{ First, Again int32 }

// Edges returns b, the number of edges of the batch.
func (b *Batch) Edges() int {
	if len(b.Local) == 0 {
		return len(b.Rows) / 2
	}
	return len(b.Local) / 2
}

// A Parameter is an array that a model learns, with its gradient.
type Parameter struct {
	// Name identifies the parameter in files and messages.
	Name string
	// Value holds all of the parameter.
	Value *op.Array
	// Grad is the gradient of the last Step. It has the shape of Value or, if Sparse, a row
	// for each of the last batch's Rows, in their order.
	Grad   *op.Array
	Sparse bool
}

// A Model is a model that can be trained.
type Model interface {
	// Objective returns the loss that Step computes.
	Objective() op.ContrastiveOptions
	// Step computes the loss of a batch and its gradients. theta is the
	// logarithm of the loss's constant: see op.Contrastive.
	Step(b *Batch, theta float64) (loss float64, err error)
	// DTheta returns the derivative of the last Step's loss with respect to
	// theta.
	DTheta() float64
	// Parameters returns the parameters. The arrays stay the same as long as the model
	// exists.
	Parameters() []Parameter
	// Diagnose runs the last Step again and returns an error that names the
	// first operation whose result is not finite, or nil.
	Diagnose() error
	// EmbedTo writes the embedding of all n training points to dst [n, d].
	EmbedTo(dst []float32) error
	// Points returns n, the number of training points, and d, the width of
	// the embedding.
	Points() (n, d int)
}

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
}

// compile completes a graph and compiles it for a device. distinct [r, d] are the
// positions of the batch's distinct points and rows the input with their rows, or nil. The
// loss is differentiated with respect to wrt.
func (p *batchProgram[T]) compile(d *Device, g *gorgonia.ExprGraph, rows, distinct *gorgonia.Node, wrt gorgonia.Nodes,
	options op.ContrastiveOptions) (err error) {
	defer kind.Catch(&err)
	// The smallest sizes of a batch; a program takes any.
	const b, m = 1, 1
	local := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2*b), gorgonia.WithName("local"))
	negatives := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(m, b), gorgonia.WithName("negatives"))
	layout := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(1), gorgonia.WithName("layout"))
	theta := gorgonia.NewScalar(g, op.Dtype[T](), gorgonia.WithName("theta"))

	features, err := distinct, error(nil)
	if !p.byEnds {
		features = kind.Got(op.Gather(distinct, local))
	}
	if options.Metric == op.Cosine {
		features = kind.Got(op.Normalize(features))
	}
	loss := kind.Got(op.Contrastive(features, negatives, layout, theta, options))
	one := g.AddNode(gorgonia.NewConstant(T(1)))
	grads := kind.Got(gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{one}, append(gorgonia.Nodes{theta}, wrt...)))
	p.program = kind.Got(vm.Compile(d, append(gorgonia.Nodes{loss}, grads...)...))
	if rows != nil {
		p.rows = p.program.Input(rows)
	}
	if !p.byEnds {
		p.local = p.program.Input(local)
	}
	p.negatives, p.layout, p.theta = p.program.Input(negatives), p.program.Input(layout), p.program.Input(theta)
	if d.OnHost() {
		p.thetaValue = make([]T, 1)
		kind.Check(op.Share(p.theta, p.thetaValue))
	}
	p.loss, p.dTheta = p.program.Output(loss), p.program.Output(grads[0])
	p.grads = selection.Map(grads[1:], p.program.Output)
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
	ends := selection.If(p.byEnds, b.Rows, b.Local)
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
	err = p.program.Run()
	return float64(op.Data[T](p.loss)[0]), err
}

// DTheta implements Model.
func (p *batchProgram[T]) DTheta() float64 { return float64(op.Data[T](p.dTheta)[0]) }

// Diagnose implements Model.
func (p *batchProgram[T]) Diagnose() error { return p.program.RunChecked() }

// deviceModel returns the model of this program, with copies of its parameters.
func (p *batchProgram[T]) deviceModel(on *deviceParams, params []Parameter) (_ *DeviceModel, err error) {
	defer kind.Catch(&err)
	kind.Need(on != nil, ErrInput, "model: device: got the CPU, want an accelerator")
	m := &DeviceModel{
		Rows: p.rows, Local: p.local, Negatives: p.negatives, Layout: p.layout, Theta: p.theta,
		Loss: p.loss, DTheta: p.dTheta, onDevice: on, program: p.program,
	}
	for i, own := range params {
		m.params = append(m.params, Parameter{Name: own.Name, Value: on.of(own.Value), Grad: p.grads[i], Sparse: own.Sparse})
	}
	return m, nil
}
