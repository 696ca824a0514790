package model

import (
	"cmp"

	"gorgonia.org/gorgonia"

	"cne/internal/kind"
	"cne/model/op"
)

// A Convolutional model embeds images through a ResNet, and learns its weights. Its
// points are images, such as random views of photographs. They come with every batch
// (Batch.Images).
//
// Its graph is
//
//	images of the batch → ResNet → Gather by Local → (Normalize (→ ScaleByTemperature)) → Contrastive
//
// The network can be used during and after training. Computing representations between
// two steps does not affect training.
type Convolutional[T op.Float] struct {
	*ResNet[T]
	n, size   int
	objective op.ContrastiveOptions
	params    []Parameter
	batchProgram[T]
	images    *op.Array
	converted []T

	frozen    func(name string) bool
	precision op.Precision
}

// NewConvolutional returns a model of n points that are images of size×size pixels,
// embedded by a network. A metric of op.Cosine puts Normalize before the loss.
//
// frozen reports whether the parameter with a name is not learnt; nil means that all are
// learnt. Gradients of frozen parameters, and values needed only for these, are not
// computed. Frozen or not, normalisations use the batch's statistics and update the
// running ones, as in PyTorch for parameters with requires_grad=False.
//
// precision is the precision of the convolutions in training: see op.Conv2d.
// Representations are computed in T. op.BFloat16 needs float32.
func NewConvolutional[T op.Float](network *ResNet[T], n, size int, options op.ContrastiveOptions,
	frozen func(name string) bool, precision op.Precision) (_ *Convolutional[T], err error) {
	defer kind.Catch(&err)
	kind.Need(n >= 1 && size >= 1, ErrInput, "model: images: got %d of %d×%d pixels, want 1 or more of each", n, size, size)
	options.Temperature = cmp.Or(options.Temperature, 0.5)
	c := &Convolutional[T]{ResNet: network, n: n, size: size, objective: options, frozen: frozen, precision: precision}
	for _, p := range network.parameters {
		if c.learns(p.Name) {
			c.params = append(c.params, p)
		}
	}
	kind.Need(len(c.params) != 0, ErrInput, "model: frozen parameters: got all, want some to be learnt")
	c.images = kind.Got(c.build(nil, &c.batchProgram))
	for i := range c.params {
		c.params[i].Grad = c.grads[i]
	}
	return c, nil
}

// build makes the program of a batch and returns its input of images.
func (c *Convolutional[T]) build(on *deviceParams, b *batchProgram[T]) (images *op.Array, err error) {
	defer kind.Catch(&err)
	x := imageNode[T](c.size)
	g := x.Graph()
	_, z, nodes := c.graph(on, x, c.precision)
	var wrt gorgonia.Nodes
	for i, node := range nodes {
		if c.learns(c.parameters[i].Name) {
			wrt = append(wrt, node)
		}
	}
	kind.Check(b.compile(on.where(), g, nil, z, wrt, c.objective))
	on.share(b.program, nodes, c.ResNet.parameters)
	return b.program.Input(x), nil
}

// Precision returns the precision of the convolutions in training.
func (c *Convolutional[T]) Precision() op.Precision { return c.precision }

// learns reports whether a parameter of the network is learnt.
func (c *Convolutional[T]) learns(name string) bool { return c.frozen == nil || !c.frozen(name) }

// OnDevice compiles the model for training on an accelerator, and replaces an earlier
// DeviceModel. The earlier one must not be used any more. The network then also runs on
// the accelerator. The type must be float32.
func (c *Convolutional[T]) OnDevice(d *Device) (_ *DeviceModel, err error) {
	defer kind.Catch(&err)
	kind.Check(c.UseDevice(d))
	b := new(batchProgram[T])
	images := kind.Got(c.build(c.onDevice, b))
	m := kind.Got(b.deviceModel(c.onDevice, c.params))
	m.Images = images
	m.before = func() { c.Evaluate(false) }
	return m, nil
}

// Objective implements Model.
func (c *Convolutional[T]) Objective() op.ContrastiveOptions { return c.objective }

// Step implements Model.
func (c *Convolutional[T]) Step(b *Batch, theta float64) (float64, error) {
	if len(b.Images) != len(b.Rows)*3*c.size*c.size {
		return 0, kind.Errorf(ErrInput, "model: images: got %d values, want %d images of 3×%d×%d", len(b.Images), len(b.Rows), c.size, c.size)
	}
	if err := op.Share(c.images, inType(&c.converted, b.Images), len(b.Rows), 3, c.size, c.size); err != nil {
		return 0, err
	}
	c.Evaluate(false)
	return c.step(b, theta)
}

// ProjectTo writes the positions [N, Out] of images [N, 3, size, size] to dst.
// Normalisations use the running statistics.
func (c *Convolutional[T]) ProjectTo(dst, images []T) error {
	return c.ResNet.ProjectTo(dst, images, c.size, c.size)
}

// Parameters implements Model: the learnt parameters of the network, with gradients.
func (c *Convolutional[T]) Parameters() []Parameter { return c.params }

// Points implements Model.
func (c *Convolutional[T]) Points() (n, d int) { return c.n, c.options.Out }
