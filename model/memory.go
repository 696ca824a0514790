package model

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
	"cne/model/vm"
)

// A BatchSize says how large the batches of a training are: so many Edges, whose ends
// are so many Distinct points, and as many Negatives for each head, drawn in runs or
// (more than 2·Edges−3) all other rows if they are Shared, else one by one.
type BatchSize struct {
	Edges, Distinct, Negatives int
	Shared                     bool
}

// Memory is what a model needs, in bytes.
type Memory struct {
	// Parameters is their number. Gradients, states of optimisers and checkpoints are
	// multiples of it.
	Parameters int64
	// Batch is what the program of a batch takes: results, gradients, and Scratch, what
	// its operations need beside them.
	Batch, Scratch int64
}

// EmbeddingMemory returns what an Embedding of n points in d dimensions needs.
func EmbeddingMemory[T op.Float](n, d int, size BatchSize, options op.ContrastiveOptions) (Memory, error) {
	e := &Embedding[T]{n: n, d: d, objective: options}
	b := new(batchProgram[T])
	g := gorgonia.NewGraph()
	table := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(n, d), gorgonia.WithName("embedding"))
	rows, distinct, err := e.distinct(g, table)
	if err != nil {
		return Memory{}, err
	}
	if err := b.compile(nil, g, rows, distinct, nil, gorgonia.Nodes{distinct}, options); err != nil {
		return Memory{}, err
	}
	return b.plan(int64(n)*int64(d), d, size, options, nil)
}

// ParametricMemory returns what a Parametric model of n points needs, whose network has
// layers of the widths: those of the points, of the hidden layers, and of the
// embedding.
func ParametricMemory[T op.Float](n int, widths []int, size BatchSize, options op.ContrastiveOptions) (Memory, error) {
	network := &MLP[T]{widths: widths, weights: make([]*op.Array, len(widths)-1)}
	g := gorgonia.NewGraph()
	all := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(n, widths[0]), gorgonia.WithName("points"))
	rows := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("rows"))
	distinct, nodes, err := network.layers(g, func(w, b *gorgonia.Node, act op.Activation) (*gorgonia.Node, error) {
		return op.LinearRows(all, rows, w, b, act)
	})
	if err != nil {
		return Memory{}, err
	}
	b := new(batchProgram[T])
	if err := b.compile(nil, g, rows, distinct, nil, nodes, options); err != nil {
		return Memory{}, err
	}
	parameters := int64(0)
	for l, in := range widths[:len(widths)-1] {
		parameters += int64(in+1) * int64(widths[l+1])
	}
	return b.plan(parameters, widths[len(widths)-1], size, options, nil)
}

// ConvolutionalMemory returns what a Convolutional model on images of size×size pixels
// needs, whose batches have size.Distinct of them, with convolutions in a precision.
func ConvolutionalMemory[T op.Float](network ResNetOptions, pixels int, size BatchSize, options op.ContrastiveOptions, precision op.Precision) (Memory, error) {
	n, parameters, err := shapesOfResNet[T](network)
	if err != nil {
		return Memory{}, err
	}
	c := &Convolutional[T]{ResNet: n, size: pixels, objective: options}
	b := new(batchProgram[T])
	x := c.imagesNode()
	_, z, nodes, err := n.graphOn(nil, x, precision)
	if err != nil {
		return Memory{}, err
	}
	if err := b.compile(nil, x.Graph(), nil, z, nil, nodes, options); err != nil {
		return Memory{}, err
	}
	return b.plan(parameters, n.options.Out, size, options, map[*op.Array][]int{
		b.program.Input(x): {size.Distinct, 3, pixels, pixels},
	})
}

// RepresentationMemory returns what it takes to represent so many images of size×size
// pixels at a time.
func RepresentationMemory[T op.Float](network ResNetOptions, pixels, images int) (Memory, error) {
	n, parameters, err := shapesOfResNet[T](network)
	if err != nil {
		return Memory{}, err
	}
	x := imageNode[T](8)
	y, _, _, err := n.Graph(x)
	if err != nil {
		return Memory{}, err
	}
	p, err := vm.Compile(nil, y)
	if err != nil {
		return Memory{}, err
	}
	plan, err := p.Plan(map[*op.Array][]int{p.Input(x): {images, 3, pixels, pixels}})
	return Memory{Parameters: parameters, Batch: plan.Arrays, Scratch: plan.Scratch}, err
}

// shapesOfResNet returns a network whose parameters have no elements, and how many there
// would be.
func shapesOfResNet[T op.Float](options ResNetOptions) (n *ResNet[T], parameters int64, err error) {
	if options, err = options.complete(); err != nil {
		return nil, 0, err
	}
	n = &ResNet[T]{options: options}
	b := builder[T]{net: n, create: true, shapes: true}
	if _, _, err := b.network(imageNode[T](8)); err != nil {
		return nil, 0, err
	}
	for _, p := range b.nodes {
		size := int64(1)
		for _, s := range p.Shape() {
			size *= int64(s)
		}
		parameters += size
	}
	return n, parameters, nil
}

// plan returns what a program needs for batches of a size, of a model with so many
// parameters and d dimensions.
func (p *batchProgram[T]) plan(parameters int64, d int, size BatchSize, options op.ContrastiveOptions, inputs map[*op.Array][]int) (Memory, error) {
	if inputs == nil {
		inputs = map[*op.Array][]int{}
	}
	if p.rows != nil {
		inputs[p.rows] = []int{size.Distinct}
	}
	inputs[p.local] = []int{2 * size.Edges}
	inputs[p.negatives] = []int{1, size.Edges} // their number changes no result's shape
	inputs[p.runs], inputs[p.theta] = []int{1}, nil
	plan, err := p.program.Plan(inputs)
	scratch := plan.Scratch + op.ContrastiveScratch(options, d, size.Edges, size.Negatives, !size.Shared, int(op.Dtype[T]().Size()))
	return Memory{Parameters: parameters, Batch: plan.Arrays, Scratch: scratch}, err
}
