package model

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/model/op"
)

// DefaultHidden are the widths of the hidden layers of the paper's network.
var DefaultHidden = []int{100, 100, 100}

const (
	// rowsPerBlock is the number of points that a device projects at a time.
	rowsPerBlock = 4096
	// rowsPerPiece is the number of points that a core projects at a time.
	rowsPerPiece = 96
)

// An MLP is a network of linear layers with activations between them, ReLU but in those that
// NewLandmarkMLP makes. It maps points to positions. T is the type of the computation. Any
// number of goroutines may project points at once, unless the network is being trained or moved
// to another device.
type MLP[T op.Float] struct {
	widths []int           // in, hidden …, out
	acts   []op.Activation // of each layer
	// parameters are a weight [out, in] and a bias [out] for each layer, without gradients.
	// They have the names of a torch.nn.Sequential whose every second module is an activation.
	parameters []Parameter
	// frozen reports whether chain, the network ready for the CPU, is kept.
	frozen  bool
	chain   *hostChain[T]
	running sync.Mutex // guards the program of a device

	deviceUse
}

// NewMLP returns a network for points with in values and positions with out values. Nil
// hidden widths mean DefaultHidden; an empty list makes a single linear layer. Weights
// and biases are drawn with seed from the uniform distribution on ±1/√(width of the
// layer's input). This is the Kaiming initialisation of PyTorch's Linear.
func NewMLP[T op.Float](in int, hidden []int, out int, seed uint64) (_ *MLP[T], err error) {
	defer kind.Catch(&err)
	if hidden == nil {
		hidden = DefaultHidden
	}
	n := kind.Got(newMLP[T](slices.Concat([]int{in}, hidden, []int{out})))
	for l := range len(n.widths) - 1 {
		bound := 1 / math.Sqrt(float64(n.widths[l]))
		stream := rng.New(seed, rng.Init, uint64(l))
		for _, p := range n.parameters[2*l : 2*l+2] {
			drawUniform(op.Data[T](p.Value), bound, &stream)
		}
	}
	return n, nil
}

// drawUniform draws values from ±bound.
func drawUniform[T op.Float](values []T, bound float64, stream *rng.Stream) {
	for i := range values {
		values[i] = T(bound * (float64(2*stream.Float64()) - 1))
	}
}

// newMLP returns a network with ReLU between the layers whose parameters are zero.
func newMLP[T op.Float](widths []int) (*MLP[T], error) {
	size := 0
	for i, w := range widths {
		if w < 1 {
			return nil, kind.Errorf(ErrInput, "model: width of a layer: got %d, want 1 or more", w)
		}
		if i > 0 && (w > math.MaxInt32/widths[i-1] || w*widths[i-1] > math.MaxInt32-size) {
			return nil, kind.Errorf(ErrInput, "model: widths of the layers: got %v, want fewer weights", widths)
		}
		if i > 0 {
			size += w * widths[i-1]
		}
	}
	n := &MLP[T]{widths: widths, acts: slices.Repeat([]op.Activation{op.ReLUActivation}, len(widths)-1)}
	n.acts[len(n.acts)-1] = op.NoActivation
	dtype := op.Dtype[T]()
	for l := range len(widths) - 1 {
		w, errW := op.NewArray(nil, dtype, widths[l+1], widths[l])
		b, errB := op.NewArray(nil, dtype, widths[l+1])
		if err := errors.Join(errW, errB); err != nil {
			return nil, err
		}
		name := strconv.Itoa(2 * l)
		n.parameters = append(n.parameters, Parameter{Name: name + ".weight", Value: w}, Parameter{Name: name + ".bias", Value: b})
	}
	n.deviceUse = deviceUse{dtype: dtype, compile: n.compileForward}
	return n, nil
}

// hasLandmarks reports whether the network ends in landmarks, as NewLandmarkMLP makes it.
func (n *MLP[T]) hasLandmarks() bool { return n.acts[len(n.acts)-1] == densest }

// Freeze ends the training of the network: ProjectTo then keeps what it otherwise prepares
// for each call. A further Step of a Parametric model ends this.
func (n *MLP[T]) Freeze() {
	n.chain = n.ready()
	n.frozen = true
}

// ready returns the network as it is now, ready for the CPU, or nil if it is on a device.
func (n *MLP[T]) ready() *hostChain[T] {
	if n.chain != nil || n.onDevice != nil {
		return n.chain
	}
	c, widths := new(hostChain[T]), n.widths
	if last := len(n.acts) - 1; n.hasLandmarks() {
		widths = widths[:last+1]
		c.modes = newModes(n.layer(last))
	}
	c.layers = blas.NewChain(widths, func(l int) (weights, bias []T, then blas.Activation) {
		weights, bias = n.layer(l)
		return weights, bias, n.acts[l]
	})
	return c
}

// UseDevice moves the network to a device, as ResNet.UseDevice does. Networks of landmarks stay
// on the CPU.
func (n *MLP[T]) UseDevice(d *Device) error {
	if n.hasLandmarks() {
		if !d.OnHost() {
			d.Note("the network of landmarks runs on the CPU: the GPU has no kernel for its softmax")
		}
		return nil
	}
	err := n.deviceUse.UseDevice(d)
	if n.chain = nil; n.frozen {
		n.Freeze()
	}
	return err
}

// OnHost reports whether the network is on the CPU.
func (n *MLP[T]) OnHost() bool { return n.onDevice == nil }

// compileForward makes the program for ProjectTo on a device.
func (n *MLP[T]) compileForward(on *deviceParams) (_ forward, err error) {
	defer kind.Catch(&err)
	if on == nil {
		return forward{}, nil // the chain computes
	}
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(1, n.widths[0]), gorgonia.WithName("x"))
	y, nodes := n.layersAfter(g, x)
	return newForward(on, x, y, nodes, n.parameters), nil
}

// layersAfter is layers for points in a matrix of the graph.
func (n *MLP[T]) layersAfter(g *gorgonia.ExprGraph, x *gorgonia.Node) (*gorgonia.Node, gorgonia.Nodes) {
	return n.layers(g, func(w, b *gorgonia.Node, act op.Activation) (*gorgonia.Node, error) { return op.Linear(x, w, b, act) })
}

// layers adds the network to a graph and returns its output and the nodes of its
// parameters. first adds the first layer. It fails as kind.Need does.
func (n *MLP[T]) layers(g *gorgonia.ExprGraph,
	first func(w, b *gorgonia.Node, act op.Activation) (*gorgonia.Node, error)) (y *gorgonia.Node, nodes gorgonia.Nodes) {
	for l := range len(n.widths) - 1 {
		for _, p := range n.parameters[2*l : 2*l+2] {
			shape := slices.Clone(p.Value.Shape())
			nodes = append(nodes, gorgonia.NewTensor(g, op.Dtype[T](), len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(p.Name)))
		}
		act := selection.If(n.acts[l] == densest, op.NoActivation, n.acts[l])
		if w, b := nodes[2*l], nodes[2*l+1]; l == 0 {
			y = kind.Got(first(w, b, act))
		} else {
			y = kind.Got(op.Linear(y, w, b, act))
		}
	}
	return y, nodes
}

// Size returns the numbers of values of a point and of its position.
func (n *MLP[T]) Size() (in, out int) { return n.widths[0], n.widths[len(n.widths)-1] }

// Widths returns the widths of all layers, from the input to the output.
func (n *MLP[T]) Widths() []int { return slices.Clone(n.widths) }

// ProjectTo writes the positions [r, out] of the points x [r, in] to dst. The position of
// a point is, bit for bit, independent of the other points.
func (n *MLP[T]) ProjectTo(dst, x []float32) error {
	in, out := n.Size()
	rows := len(x) / in
	if len(x) != rows*in || len(dst) != rows*out {
		return kind.Errorf(ErrInput, "model: got %d values for %d results, want a multiple of %d for as many times %d", len(x), len(dst), in, out)
	}
	return project(n, n.ready(), dst, x)
}

// inType returns x itself if its type is T. Otherwise it returns the values as T in the
// buffer.
func inType[T, From op.Float](buffer *[]T, x []From) []T {
	if same, ok := any(x).([]T); ok {
		return same
	}
	*buffer = slices.Grow((*buffer)[:0], len(x))[:len(x)]
	selection.Convert(*buffer, x)
	return *buffer
}

// ProjectMatrixTo is ProjectTo for a matrix, which may be sparse.
func (n *MLP[T]) ProjectMatrixTo(dst []float32, points *data.Matrix) error {
	in, out := n.Size()
	if points.CSR == nil {
		return n.ProjectTo(dst, points.X)
	}
	if points.D != in || len(dst) != points.N*out {
		return kind.Errorf(ErrInput, "model: points: got %d values each for %d results, want %d for %d points of %d", points.D,
			len(dst), in, points.N, out)
	}
	rows := rowsPerBlock
	if n.onDevice == nil { // where blocks have one size
		rows = min(rows, max(64, denseValues/in))
	}
	chain, block := n.ready(), make([]float32, min(rows, points.N)*in)
	for lo := 0; lo < points.N; lo += rows {
		hi := min(points.N, lo+rows)
		points.CopyRows(block[:(hi-lo)*in], lo)
		if err := project(n, chain, dst[lo*out:hi*out], block[:(hi-lo)*in]); err != nil {
			return err
		}
	}
	return nil
}

// denseValues is the approximate number of values of sparse points that are made dense at
// a time.
const denseValues = 1 << 22

// project is ProjectTo for values of any type, by a chain or, if it is nil, on the device.
func project[T, From op.Float](n *MLP[T], chain *hostChain[T], dst []float32, x []From) error {
	in, out := n.Size()
	rows := len(x) / in
	if chain == nil {
		return projectOnDevice(n, dst, x)
	}
	if rows <= rowsPerPiece {
		runChain(chain, dst, x)
		return nil
	}
	parallel.For(rows, rowsPerPiece, func(_, lo, hi int) { runChain(chain, dst[lo*out:hi*out], x[lo*in:hi*in]) })
	return nil
}

func runChain[T, From op.Float](chain *hostChain[T], dst []float32, x []From) {
	var converted []T
	own := inType(&converted, x)
	if same, ok := any(dst).([]T); ok {
		chain.run(same, own)
		return
	}
	y := make([]T, len(dst))
	chain.run(y, own)
	selection.Convert(dst, y)
}

// projectOnDevice is project on an accelerator. All blocks have one size, so the bits of a
// point do not depend on the others in its block.
func projectOnDevice[T, From op.Float](n *MLP[T], dst []float32, x []From) (err error) {
	defer kind.Catch(&err)
	n.running.Lock()
	defer n.running.Unlock()
	in, out := n.Size()
	full := make([]T, rowsPerBlock*in)
	for len(x) > 0 {
		count := min(len(x), len(full))
		selection.Convert(full, x[:count])
		clear(full[count:])
		y := kind.Got(n.forward.run(kind.Got(op.ArrayOf(full, rowsPerBlock, in))))
		results := count / in * out
		selection.Convert(dst, op.Data[T](y)[:results])
		dst, x = dst[results:], x[count:]
	}
	return nil
}

// A Parametric model embeds its training points through a network, and learns its
// weights.
//
// Its graph is
//
//	distinct points of the batch → network → Gather by Local → (Normalize) → Contrastive
//
// so a point passes through the network once, however many edges of the batch it has. The
// first layer skips zeros if the points are mostly zeros, such as images on a black
// background. The network can be used during and after training.
type Parametric[T op.Float] struct {
	n       int
	network *MLP[T]
	points  []T
	// sparse holds the points, instead of the field points, if they are sparse. held is their
	// form for the first layer. Otherwise both are nil.
	sparse    *data.Matrix
	held      *op.Sparse
	objective op.ContrastiveOptions
	params    []Parameter
	batchProgram[T]
}

// NewParametric returns a model of the points [n, in], embedded by a network. The points
// must not change from then on. A metric of op.Cosine puts Normalize before the loss.
func NewParametric[T op.Float](network *MLP[T], points []T, options op.ContrastiveOptions) (_ *Parametric[T], err error) {
	defer kind.Catch(&err)
	kind.Need(network != nil, ErrInput, "model: network: got nil")
	in, _ := network.Size()
	n := len(points) / in
	kind.Need(n != 0 && len(points) == n*in, ErrInput, "model: points: got %d values, want a positive multiple of %d", len(points), in)
	p := &Parametric[T]{n: n, network: network, points: points, objective: options}
	return p, p.begin()
}

// NewSparseParametric is NewParametric of sparse points of at most MaxSparseWidth values.
// The first layer uses the sparse form. The points must not change from then on.
func NewSparseParametric(network *MLP[float32], points *data.Matrix, options op.ContrastiveOptions) (_ *Parametric[float32], err error) {
	defer kind.Catch(&err)
	kind.Need(network != nil, ErrInput, "model: network: got nil")
	in, _ := network.Size()
	kind.Need(points != nil && points.CSR != nil && points.N >= 1 && points.D == in, ErrInput,
		"model: points: want sparse ones of %d values", in)
	kind.Need(in <= MaxSparseWidth, ErrInput,
		"model: sparse points: got %d values each, want at most %d; give their principal components, or make them dense", in, MaxSparseWidth)
	held := kind.Got(op.SparseOf(points.CSR.Start, points.CSR.Column, points.CSR.Value, in))
	p := &Parametric[float32]{n: points.N, network: network, sparse: points, held: held, objective: options}
	return p, p.begin()
}

// MaxSparseWidth is the largest width of sparse points for a network.
const MaxSparseWidth = op.MaxSparseWidth

// begin makes the program for training, and lists the parameters.
func (p *Parametric[T]) begin() error {
	if err := p.build(&p.batchProgram, nil); err != nil {
		return err
	}
	p.params = slices.Clone(p.network.parameters)
	for i, grad := range p.grads {
		p.params[i].Grad = grad
	}
	return nil
}

// build makes the program of a batch.
func (p *Parametric[T]) build(b *batchProgram[T], on *deviceParams) (err error) {
	defer kind.Catch(&err)
	in, _ := p.network.Size()
	// On an accelerator, skipping zeros of dense points would not pay off. Sparse points stay
	// sparse.
	sparse := p.held
	if sparse != nil && on != nil {
		kind.Check(sparse.CheckDevice(on.where()))
	}
	if x, ok := any(p.points).([]float32); ok && on == nil && sparse == nil {
		sparse = op.NewSparse(x, in)
	}
	g := gorgonia.NewGraph()
	all := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(p.n, in), gorgonia.WithName("points"))
	rows := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(2), gorgonia.WithName("rows"))
	distinct, nodes := p.network.layers(g, func(w, b *gorgonia.Node, act op.Activation) (*gorgonia.Node, error) {
		if sparse != nil {
			return op.LinearOfSparse(sparse, rows, w, b, act)
		}
		return op.LinearRows(all, rows, w, b, act)
	})
	kind.Check(b.compile(on.where(), g, rows, distinct, nodes, p.objective))
	if sparse == nil {
		points := kind.Got(op.ArrayOf(p.points, p.n, in))
		kind.Check(b.constant(b.program.Input(all), points))
	}
	on.share(b.program, nodes, p.network.parameters)
	return nil
}

// OnDevice compiles the model for training on an accelerator, and replaces an earlier
// DeviceModel. The earlier one must not be used any more. The network then also runs on
// the accelerator. The type must be float32.
func (p *Parametric[T]) OnDevice(d *Device) (_ *DeviceModel, err error) {
	defer kind.Catch(&err)
	kind.Check(p.network.UseDevice(d))
	b := new(batchProgram[T])
	kind.Check(p.build(b, p.network.onDevice))
	return b.deviceModel(p.network.onDevice, p.params)
}

// Objective implements Model.
func (p *Parametric[T]) Objective() op.ContrastiveOptions { return p.objective }

// Step implements Model.
func (p *Parametric[T]) Step(b *Batch, theta float64) (float64, error) {
	p.network.frozen, p.network.chain = false, nil
	return p.step(b, theta)
}

// Parameters implements Model: weights and biases, layer by layer.
func (p *Parametric[T]) Parameters() []Parameter { return p.params }

// Points implements Model.
func (p *Parametric[T]) Points() (n, d int) {
	_, d = p.network.Size()
	return p.n, d
}

// EmbedTo implements Model.
func (p *Parametric[T]) EmbedTo(dst []float32) error {
	if _, out := p.network.Size(); len(dst) != p.n*out {
		return kind.Errorf(ErrInput, "model: destination: got %d values, want %d points of %d", len(dst), p.n, out)
	}
	if p.sparse != nil {
		return p.network.ProjectMatrixTo(dst, p.sparse)
	}
	return project(p.network, p.network.ready(), dst, p.points)
}

// Save writes the network: see MLP.Save.
func (p *Parametric[T]) Save(path string, d *Description) error { return p.network.Save(path, d) }

// Network returns the network that the model trains.
func (p *Parametric[T]) Network() *MLP[T] { return p.network }
