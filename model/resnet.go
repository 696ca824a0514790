package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"

	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/internal/selection"
	"cne/model/op"
)

// ResNetOptions are the sizes of a ResNet. The zero value is the paper's
// network.
type ResNetOptions struct {
	// Small means a ResNet8 instead of a ResNet18: the first convolution is 4×4 with stride 2,
	// and three stages have a block each. It does little for each pixel, so it can be wide.
	Small bool `key:"small"`
	// Width is the number of channels of the first stage; each following stage has twice as
	// many. 0 means 64.
	Width int `key:"width" in:"[1,4096]"`
	// Hidden and Out are the widths of the projection head's two layers; 0
	// means 16·Width and 2·Width: 1024 and 128.
	Hidden int `key:"hidden,null" in:"[1,65536]"`
	Out    int `key:"out,null" in:"[1,65536]"`
}

// complete returns the options with the defaults filled in.
func (o ResNetOptions) complete() (ResNetOptions, error) {
	o.Width = cmp.Or(o.Width, 64)
	o.Hidden, o.Out = cmp.Or(o.Hidden, 16*o.Width), cmp.Or(o.Out, 2*o.Width)
	const most = 1 << 12
	if o.Width < 1 || o.Hidden < 1 || o.Out < 1 || o.Width > most || o.Hidden > 16*most || o.Out > 16*most {
		return o, kind.Errorf(ErrInput, "model: widths of a ResNet: got %d, %d and %d, want 1 to %d and twice 1 to %d", o.Width,
			o.Hidden, o.Out, most, 16*most)
	}
	return o, nil
}

// A ResNet is the network of the paper's SimCLR runs: a ResNet18 (He et al., 2016) for
// small images, whose first convolution is 3×3 with stride 1 and no pooling after it. A
// projection head of two linear layers with a ReLU between them follows. The
// representation of an image is the mean of the last stage over its pixels, 8·Width
// numbers (4·Width if it is small). The head maps it to Out numbers. T is the type of the computation.
//
// Parameters and running statistics have the names and shapes that PyTorch
// gives them: conv1.weight, layer2.0.shortcut.0.weight, bn1.running_mean. A
// ResNet must not be used by two goroutines at once.
type ResNet[T op.Float] struct {
	options    ResNetOptions
	parameters []Parameter // without gradients
	norms      []norm

	deviceUse
	head forward // for the output of the head; compiled when it is needed
}

// A norm is one of a ResNet's batch normalisations.
type norm struct {
	name  string
	stats *op.BatchStats
}

// A shape has the sizes of the parts of a ResNet that do not depend on its widths.
type shape struct {
	stem, stride int   // of the first convolution: its size and stride
	stages       []int // the strides of the first block of each stage
	blocks       int   // of a stage
}

// shapes are the shapes of networks that are small or not.
var shapes = map[bool]shape{false: {3, 1, []int{1, 2, 2, 2}, 2}, true: {4, 2, []int{1, 2, 2}, 1}}

// NewResNet returns a network with PyTorch's initial parameters, drawn with seed. The
// weights of convolutions are normally distributed with variance 2/fan-out (Kaiming's
// initialisation). Normalisations are the identity. Linear layers are uniformly
// distributed in ±1/√(width of the input).
func NewResNet[T op.Float](options ResNetOptions, seed uint64) (*ResNet[T], error) {
	return newResNet[T](options, &seed)
}

// newResNet is NewResNet; without a seed all parameters are 0.
func newResNet[T op.Float](options ResNetOptions, seed *uint64) (_ *ResNet[T], err error) {
	defer kind.Catch(&err)
	options = kind.Got(options.complete())
	n := &ResNet[T]{options: options}
	create := builder[T]{net: n, seed: seed, create: true}
	create.network(imageNode[T](8))
	n.deviceUse = deviceUse{dtype: op.Dtype[T](), compile: func(on *deviceParams) (forward, error) {
		return n.compileForward(on, false)
	}}
	return n, n.UseDevice(nil)
}

// imageNode returns the input of a new graph: images of size×size pixels.
func imageNode[T op.Float](size int) *gorgonia.Node {
	return gorgonia.NewTensor(gorgonia.NewGraph(), op.Dtype[T](), 4, gorgonia.WithShape(2, 3, size, size), gorgonia.WithName("images"))
}

// compileForward compiles a program for images of any size. It computes their
// representations, or the output of the head.
func (n *ResNet[T]) compileForward(on *deviceParams, head bool) (_ forward, err error) {
	defer kind.Catch(&err)
	x := imageNode[T](8)
	y, z, nodes := n.graph(on, x, op.Float32)
	return newForward(on, x, selection.If(head, z, y), nodes, n.parameters), nil
}

// Options returns the widths.
func (n *ResNet[T]) Options() ResNetOptions { return n.options }

// Width returns the width of the representation.
func (n *ResNet[T]) Width() int { return n.options.representation() }

// representation returns the width of the representation.
func (o ResNetOptions) representation() int { return o.Width << (len(shapes[o.Small].stages) - 1) }

// Parameters returns the parameters in PyTorch's order. The gradients are nil: see
// Convolutional.
func (n *ResNet[T]) Parameters() []Parameter { return n.parameters }

// Tensors returns the parameters and the running statistics of the normalisations by
// name. The arrays are not copies.
func (n *ResNet[T]) Tensors() map[string]*op.Array {
	all := map[string]*op.Array{}
	for _, p := range n.parameters {
		all[p.Name] = p.Value
	}
	for _, b := range n.norms {
		all[b.name+".running_mean"], all[b.name+".running_var"] = b.stats.Mean, b.stats.Var
	}
	return all
}

// graph adds the network to a graph, for a program that runs where the copies are, with
// convolutions in a precision: x [N, 3, H, W] are images, h [N, Width()] their
// representations and z [N, Out] the head's output for these. nodes are the parameters,
// in the order of Parameters. It fails as kind.Need does.
func (n *ResNet[T]) graph(on *deviceParams, x *gorgonia.Node, precision op.Precision) (h, z *gorgonia.Node, nodes gorgonia.Nodes) {
	b := builder[T]{net: n, on: on, precision: precision}
	h, z = b.network(x)
	return h, z, b.nodes
}

// Evaluate sets whether all batch normalisations use their running statistics and do not
// change them (true), or use the batch's statistics (false).
func (n *ResNet[T]) Evaluate(on bool) {
	for _, b := range n.norms {
		b.stats.Evaluate = on
		if n.onDevice != nil {
			n.onDevice.stats[b.stats].Evaluate = on
		}
	}
}

// RepresentTo writes the representations of images [N, 3, height, width] to dst [N,
// Width()]. Normalisations use the running statistics.
func (n *ResNet[T]) RepresentTo(dst, images []T, height, width int) error {
	return n.evaluate(&n.forward, n.Width(), dst, images, height, width)
}

// ProjectTo writes the head's output for images [N, 3, height, width] to dst [N, Out].
// Normalisations use the running statistics.
func (n *ResNet[T]) ProjectTo(dst, images []T, height, width int) error {
	if n.head.program == nil || n.head.on != n.onDevice {
		head, err := n.compileForward(n.onDevice, true)
		if err != nil {
			return err
		}
		n.head = head
	}
	return n.evaluate(&n.head, n.options.Out, dst, images, height, width)
}

// WithOutput returns a copy of the network on the CPU. Its head has out outputs, at least
// 1. If the width changes, the head's last layer, fc2, is initialised as by NewResNet
// with seed.
func (n *ResNet[T]) WithOutput(out int, seed uint64) (_ *ResNet[T], err error) {
	defer kind.Catch(&err)
	kind.Need(out >= 1, ErrInput, "model: width of the output: got %d, want 1 or more", out)
	kind.Check(n.onDevice.pull())
	options := n.options
	options.Out = out
	c := kind.Got(NewResNet[T](options, seed))
	from := n.Tensors()
	for name, to := range c.Tensors() {
		if out == n.options.Out || Module(name) != outputLayer {
			copy(op.Data[T](to), op.Data[T](from[name]))
		}
	}
	return c, nil
}

// Modules are PyTorch's names of the parts of a ResNet in order, starting at the image:
// stem, stages and the two layers of the head.
var Modules = []string{"conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "fc1", outputLayer}

// outputLayer is the last layer of the head.
const outputLayer = "fc2"

// Module returns the module (see Modules) that contains the named tensor.
func Module(name string) string {
	module, _, _ := strings.Cut(name, ".")
	return module
}

// evaluate runs a program of the network on images, with the running statistics, and
// copies its output: width values for each.
func (n *ResNet[T]) evaluate(f *forward, width int, dst, images []T, height, columns int) (err error) {
	defer kind.Catch(&err)
	size := 3 * height * columns
	kind.Need(size >= 1 && len(images)%size == 0 && len(dst) == len(images)/size*width, ErrInput,
		"model: got %d values for %d results, want images of 3×%d×%d and %d for each", len(images), len(dst), height, columns, width)
	if len(images) == 0 {
		return nil
	}
	batch := kind.Got(op.ArrayOf(images, len(images)/size, 3, height, columns))
	before := n.norms[0].stats.Evaluate
	n.Evaluate(true)
	defer n.Evaluate(before)
	y := kind.Got(f.run(batch))
	copy(dst, op.Data[T](y))
	return nil
}

// A builder adds a network to a graph. With create it also makes the network's
// parameters; without create, it uses the existing ones in order. Its methods fail as kind.Need
// does.
type builder[T op.Float] struct {
	net    *ResNet[T]
	on     *deviceParams // nil: the CPU
	seed   *uint64       // of the parameters that are made
	create bool
	graph  *gorgonia.ExprGraph
	nodes  gorgonia.Nodes
	norms  int

	precision op.Precision // of the convolutions
}

// network adds stem, stages and head.
func (b *builder[T]) network(x *gorgonia.Node) (h, z *gorgonia.Node) {
	b.graph = x.Graph()
	o := b.net.options
	shape := shapes[o.Small]
	h = kind.Got(op.ChannelsLast(x))
	h = b.batchNorm(b.convolve(h, "conv1", 3, o.Width, shape.stem, shape.stride), "bn1", o.Width, op.ReLUActivation)
	in := o.Width
	for stage, stride := range shape.stages {
		out := o.Width << stage
		for block := range shape.blocks {
			h = b.block(h, fmt.Sprintf("layer%d.%d", stage+1, block), in, out, stride)
			in, stride = out, 1
		}
	}
	h = kind.Got(op.GlobalAvgPool(h))
	z = b.linear(h, "fc1", in, o.Hidden, op.ReLUActivation)
	return h, b.linear(z, outputLayer, o.Hidden, o.Out, op.NoActivation)
}

// block adds two convolutions with a shortcut around them.
func (b *builder[T]) block(x *gorgonia.Node, name string, in, out, stride int) *gorgonia.Node {
	y := b.batchNorm(b.convolve(x, name+".conv1", in, out, 3, stride), name+".bn1", out, op.ReLUActivation)
	y = b.convolve(y, name+".conv2", out, out, 3, 1)
	scale, shift, stats := b.norm(name+".bn2", out)
	if stride != 1 || in != out {
		x = b.batchNorm(b.convolve(x, name+".shortcut.0", in, out, 1, stride), name+".shortcut.1", out, op.NoActivation)
	}
	return kind.Got(op.BatchNormAddReLU(y, scale, shift, x, stats))
}

func (b *builder[T]) convolve(x *gorgonia.Node, name string, in, out, size, stride int) *gorgonia.Node {
	deviation := math.Sqrt(2 / float64(out*size*size))
	w := b.parameter(name+".weight", func(s *rng.Stream) float64 { return deviation * s.Normal() }, out, in, size, size)
	return kind.Got(op.Conv2d(x, w, stride, (size-1)/2, b.precision))
}

func (b *builder[T]) batchNorm(x *gorgonia.Node, name string, channels int, act op.Activation) *gorgonia.Node {
	scale, shift, stats := b.norm(name, channels)
	return kind.Got(op.BatchNorm(x, scale, shift, stats, act))
}

// norm adds the parameters of a batch normalisation.
func (b *builder[T]) norm(name string, channels int) (scale, shift *gorgonia.Node, stats *op.BatchStats) {
	scale = b.parameter(name+".weight", func(*rng.Stream) float64 { return 1 }, channels)
	shift = b.parameter(name+".bias", func(*rng.Stream) float64 { return 0 }, channels)
	if b.create {
		b.net.norms = append(b.net.norms, norm{name, kind.Got(op.NewBatchStats(nil, op.Dtype[T](), channels))})
	}
	b.norms++
	return scale, shift, b.on.statsOf(b.net.norms[b.norms-1].stats)
}

func (b *builder[T]) linear(x *gorgonia.Node, name string, in, out int, act op.Activation) *gorgonia.Node {
	bound := 1 / math.Sqrt(float64(in))
	uniform := func(s *rng.Stream) float64 { return bound * (float64(2*s.Float64()) - 1) }
	w, bias := b.parameter(name+".weight", uniform, out, in), b.parameter(name+".bias", uniform, out)
	return kind.Got(op.Linear(x, w, bias, act))
}

// parameter adds a parameter's node, and makes the parameter if it is not there.
func (b *builder[T]) parameter(name string, start func(s *rng.Stream) float64, shape ...int) *gorgonia.Node {
	number := len(b.nodes)
	if b.create {
		a := kind.Got(op.NewArray(nil, op.Dtype[T](), shape...))
		if b.seed != nil {
			stream := rng.New(*b.seed, rng.Init, uint64(number))
			values := op.Data[T](a)
			for i := range values {
				values[i] = T(start(&stream))
			}
		}
		b.net.parameters = append(b.net.parameters, Parameter{Name: name, Value: a})
	}
	if p := b.net.parameters[number]; p.Name != name {
		kind.Check(fmt.Errorf("model: parameter %d: got %s, want %s", number, p.Name, name))
	}
	node := gorgonia.NewTensor(b.graph, op.Dtype[T](), len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	b.nodes = append(b.nodes, node)
	return node
}

// resNetStem is the tensor that identifies the state of a ResNet.
const resNetStem = "conv1.weight"

// Save writes the network to a safetensors file, atomically: the parameters and the
// running statistics, with the names and shapes that PyTorch gives them. The metadata
// holds d and a checksum.
func (n *ResNet[T]) Save(path string, d *Description) error {
	if err := n.onDevice.pull(); err != nil {
		return err
	}
	f := &safetensors.File{Tensors: map[string]safetensors.Tensor{}}
	for name, a := range n.Tensors() {
		f.Tensors[name] = tensorOf[T](a)
	}
	o := n.options
	return save(path, f, architecture{Kind: kindResNet, Widths: []int{o.Width, o.Hidden, o.Out}, DType: op.Dtype[T]().String()}, d)
}

// decodeResNet makes a network from a file's tensors. widths, if any, must agree with the
// tensors.
func decodeResNet(f *safetensors.File, widths []int) *ResNet[float32] {
	options := resNetOptionsOf(f)
	found := []int{options.Width, options.Hidden, options.Out}
	kind.Need(widths == nil || slices.Equal(widths, found), ErrFile, "widths: got %v, want %v as described", found, widths)
	n := kind.Got(newResNet[float32](options, nil))
	tensors := n.Tensors()
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		kind.Need(tensors[name] != nil || strings.HasSuffix(name, ".num_batches_tracked"), ErrFile,
			"tensor %q belongs to another architecture than the ResNet18 for small images", name)
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		to := tensors[name]
		from := resNetTensor(f, name, to.Shape()...)
		values := op.Data[float32](to)
		err := cmp.Or(copyNarrowed(values, from), checkFinite(values))
		kind.Need(err == nil, ErrFile, "tensor %q: %w", name, err)
		if strings.HasSuffix(name, "running_var") {
			least := slices.Min(values)
			kind.Need(least >= 0, ErrFile, "tensor %q: got a variance of %g, want 0 or more", name, least)
		}
	}
	return n
}

// copyNarrowed writes the elements of a tensor of F32 or F64 to dst.
func copyNarrowed(dst []float32, t safetensors.Tensor) error {
	if t.DType == safetensors.F32 {
		return safetensors.Copy(dst, t)
	}
	wide, err := t.Float64s()
	selection.Convert(dst, wide)
	return err
}

// resNetOptionsOf returns the network's widths from a file's tensors. A network with
// these widths is therefore not much larger than the file.
func resNetOptionsOf(f *safetensors.File) (o ResNetOptions) {
	for name, width := range map[string]*int{resNetStem: &o.Width, "fc1.weight": &o.Hidden, "fc2.weight": &o.Out} {
		if t := f.Tensors[name]; len(t.Shape) > 0 {
			*width = t.Shape[0]
		}
	}
	stem := f.Tensors[resNetStem].Shape
	o.Small = len(stem) == 4 && stem[3] == shapes[true].stem
	shape, width := shapes[o.Small], o.representation()
	last := fmt.Sprintf("layer%d.%d.conv2.weight", len(shape.stages), shape.blocks-1)
	resNetTensor(f, resNetStem, o.Width, 3, shape.stem, shape.stem)
	resNetTensor(f, last, width, width, 3, 3)
	resNetTensor(f, "fc1.weight", o.Hidden, width)
	resNetTensor(f, "fc2.weight", o.Out, o.Hidden)
	kind.Need(min(o.Width, o.Hidden, o.Out) > 0, ErrFile, "widths: got %d, %d and %d, want 1 or more", o.Width, o.Hidden, o.Out)
	return o
}

// resNetTensor returns a tensor of a file. The tensor must have the given shape and a
// known type.
func resNetTensor(f *safetensors.File, name string, shape ...int) safetensors.Tensor {
	t, ok := f.Tensors[name]
	kind.Need(ok, ErrFile, "it has no tensor %q; save the state of the whole module", name)
	kind.Need(t.DType == safetensors.F32 || t.DType == safetensors.F64, ErrFile, "tensor %q: got the type %s, want F32 or F64", name, t.DType)
	kind.Need(slices.Equal(t.Shape, shape), ErrFile, "tensor %q: got the shape %v, want %v", name, t.Shape, shape)
	return t
}
