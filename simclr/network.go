package simclr

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"cne/data"
	"cne/data/images"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A Network is a ResNet in pretraining, as a model.Model of n images: point i < n is view
// 0 of image i, and point n+i its view 1.
type Network struct {
	*model.Convolutional[float32]

	augmentation Augmentation
	views        int // of an image, in a batch
	seed         uint64
	images       *images.Set
	rows         []int32 // of the images that it is trained on
}

// prepare checks the options and the images of some rows, and returns the rows. nil means
// all rows. It fails as kind.Need does.
func (p *Pretraining) prepare(images *images.Set, rows []int32) []int32 {
	kind.Expect(images != nil, ErrShape, "images: got none")
	kind.Expect(images.C == 3, ErrShape, "images: got %d values per pixel, want 3", images.C)
	checkImages(images)
	kind.Expect(images.H*images.W != 1, ErrShape, "images: got a single pixel each, want more")
	rows = rowsOf(images, rows)
	kind.Check(p.Check(len(rows)))
	if p.From != nil {
		same := func(what string, have, wanted int) {
			kind.Expect(wanted == 0 || wanted == have, ErrOption, "network to begin with: got %s %d, want %d", what, have, wanted)
		}
		has := p.From.Options()
		same("Network.Width", has.Width, p.Network.Width)
		same("Network.Hidden", has.Hidden, p.Network.Hidden)
	}
	return rows
}

// edges returns the edges between the two views of n images.
func edges(n int) (heads, tails []int32) {
	heads, tails = make([]int32, n), make([]int32, n)
	for i := range n {
		heads[i], tails[i] = int32(i), int32(n+i)
	}
	return heads, tails
}

// stage returns the initial network of stage i for the images of the given rows: the
// network of the stage before, with the stage's output; if before is nil, From or a new one.
func (p *Pretraining) stage(stages []Stage, i int, before *Network, images *images.Set, rows []int32) (_ *Network, err error) {
	defer kind.Catch(&err)
	s, loss := stages[i], p.Loss
	// The streams of new outputs differ from the streams of a new network.
	stream := rng.New(p.Seed, rng.Init, 0, uint64(i))
	var net *model.ResNet[float32]
	switch {
	case before != nil:
		loss = before.Objective()
		net = kind.Got(before.WithOutput(s.Out, stream.Uint64()))
		kind.Check(before.UseDevice(nil)) // what it takes on a device is free for the next
	case p.From != nil:
		net, err = p.From.WithOutput(s.Out, stream.Uint64())
	default:
		widths := p.Network
		widths.Out = s.Out
		net, err = model.NewResNet[float32](widths, p.Seed)
	}
	kind.Expect(err == nil, ErrOption, "%w", err)
	augmentation := p.Augmentation
	augmentation.Size = s.Size
	m, err := model.NewConvolutional(net, 2*len(rows), s.Size, loss, s.frozen(), p.Precision)
	kind.Expect(err == nil, ErrOption, "%w", err)
	return &Network{Convolutional: m, augmentation: augmentation, views: p.views(), seed: p.Seed, images: images, rows: rows}, nil
}

// viewSource draws the views that a network is trained on: a train.DeviceImageSource.
type viewSource struct {
	*Network
	index []int32 // the images of a batch
}

// Shape implements train.ImageSource: each of the two points of an image stands for half of
// its views.
func (s *viewSource) Shape() [3]int {
	return [3]int{3 * s.views / 2, s.augmentation.Size, s.augmentation.Size}
}

// ImagesTo implements train.ImageSource: the first half of a batch's points are its images, and
// dst is [views, images, 3, Size, Size].
func (s *viewSource) ImagesTo(dst []float32, points []int32, epoch int) error {
	s.index = s.index[:0]
	for _, point := range points[:len(points)/2] {
		s.index = append(s.index, s.rows[point])
	}
	values := len(dst) / s.views
	for view := range s.views {
		if err := s.augmentation.BatchTo(dst[view*values:(view+1)*values], s.images, s.index, epoch, view, s.seed); err != nil {
			return err
		}
	}
	return nil
}

// Step implements model.Model. If there are more than two views, each is a head, and its
// tails are the other views.
func (n *Network) Step(b *model.Batch, theta float64) (float64, error) {
	if n.views == 2 {
		return n.Convolutional.Step(b, theta)
	}
	images := b.Edges()
	edges := n.views * images
	all := model.Batch{Rows: make([]int32, edges), Local: make([]int32, 2*edges), Images: b.Images,
		Layout: op.NegativeLayout{op.AllNegatives, int32(images)}}
	for i := range edges {
		all.Local[i], all.Local[edges+i] = int32(i), int32((i+images)%edges)
	}
	return n.Convolutional.Step(&all, theta)
}

// ImagesOn implements train.DeviceImageSource.
func (s *viewSource) ImagesOn(d *model.Device) (train.DeviceImages, error) {
	return NewDeviceViews(d, s.images, s.rows, s.augmentation, s.seed)
}

// EmbedTo implements model.Model. It writes the head's output for whole images, at the
// size of views, with running statistics. The output is the same for both views of an
// image.
func (n *Network) EmbedTo(dst []float32) (err error) {
	defer kind.Catch(&err)
	points, d := n.Points()
	kind.Expect(len(dst) == points*d, ErrShape, "destination: got %d values, want %d points of %d", len(dst), points, d)
	n.augmentation.eachBlock(n.images, n.rows, func(lo, hi int, plain []float32) {
		kind.Check(n.ProjectTo(dst[lo*d:hi*d], plain))
	})
	copy(dst[len(n.rows)*d:], dst[:len(n.rows)*d])
	return nil
}

// State implements train.Stateful: the running statistics of the normalisations, and
// the parameters that are frozen.
func (n *Network) State() []train.NamedArray {
	tensors := n.Tensors()
	for _, p := range n.Parameters() {
		delete(tensors, p.Name)
	}
	return selection.Map(slices.Sorted(maps.Keys(tensors)), func(name string) train.NamedArray {
		return train.NamedArray{Name: name, Value: tensors[name]}
	})
}

// Input returns how whole images are prepared for networks that learn from views.
func (a *Augmentation) Input() *model.ImageInput {
	in := &model.ImageInput{Size: a.whole().Size}
	for c := range 3 {
		in.Mean[c], in.Std[c] = float64(a.Mean[c]), float64(a.Std[c])
	}
	return in
}

// EvalTransform returns an augmentation without randomness that prepares images as input
// says. Features are the same with any augmentation whose Input equals input.
func EvalTransform(input *model.ImageInput) Augmentation {
	a := Augmentation{Size: input.Size, MinScale: 1, MaxScale: 1, MinRatio: 1, MaxRatio: 1}
	for c := range 3 {
		a.Mean[c], a.Std[c] = float32(input.Mean[c]), float32(input.Std[c])
	}
	return a
}

// An Encoder represents images as points. *model.ResNet[float32] is one.
type Encoder interface {
	// RepresentTo writes the representations [N, Width()] of images [N, 3, height, width] to
	// dst. It must not change anything that a later call, or training, depends on.
	RepresentTo(dst, images []float32, height, width int) error
	// Width is the number of values of a representation.
	Width() int
}

// A Projection represents images by the outputs of a network's head, such as positions in
// the plane, instead of its inputs.
type Projection struct{ *model.ResNet[float32] }

// RepresentTo implements Encoder: see model.ResNet.ProjectTo.
func (p Projection) RepresentTo(dst, images []float32, height, width int) error {
	return p.ProjectTo(dst, images, height, width)
}

// Width implements Encoder: it is the width of the head's output.
func (p Projection) Width() int { return p.Options().Out }

const (
	// featureBatch is the largest number of whole images that pass a network at a time.
	// featurePixels is the largest number of their pixels, unless a single image has more.
	featureBatch  = 256
	featurePixels = featureBatch * 64 * 64
)

// eachBlock prepares the images of some rows as EvalBatchTo does, and calls each for the
// images that pass a network at a time: plain are the prepared images of rows[lo:hi]. It
// fails as kind.Need does.
func (a *Augmentation) eachBlock(images *images.Set, rows []int32, each func(lo, hi int, plain []float32)) {
	size := 3 * a.Size * a.Size
	step := max(1, min(featureBatch, featurePixels/(a.Size*a.Size)))
	block := make([]float32, min(step, len(rows))*size)
	for lo := 0; lo < len(rows); lo += step {
		hi := min(lo+step, len(rows))
		plain := block[:(hi-lo)*size]
		kind.Check(a.EvalBatchTo(plain, images, rows[lo:hi]))
		each(lo, hi, plain)
	}
}

// Features returns the representations of the images whose rows are given (nil: all), as a
// matrix [len(rows), e.Width()]. The images are prepared as by EvalBatchTo, without
// augmentation. progress, if not nil, is called after each step, with the number of images
// done; a step has at most 256 images, and fewer if they are larger than 64×64 pixels.
//
// Errors wrap ErrOption or ErrShape, ErrFeatures if a value is not finite, or come from ctx
// or e.
func Features(ctx context.Context, e Encoder, a *Augmentation, images *images.Set, rows []int32,
	progress func(done, all int)) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	kind.Expect(e != nil, ErrOption, "encoder: got nil")
	kind.Check(a.Check())
	checkImages(images)
	a = a.whole()
	rows = rowsOf(images, rows)
	kind.Expect(len(rows) > 0, ErrShape, "images: got none")
	d := e.Width()
	m := data.NewMatrix(len(rows), d)
	a.eachBlock(images, rows, func(lo, hi int, plain []float32) {
		kind.Check(ctx.Err())
		kind.Check(e.RepresentTo(m.Rows(lo, hi).X, plain, a.Size, a.Size))
		if progress != nil {
			progress(hi, len(rows))
		}
	})
	if at := simd.FirstNotFinite(m.X); at >= 0 {
		return nil, fmt.Errorf("%w: value %d of the representation of image %d (both counted from 0): got %v; training has diverged",
			ErrFeatures, at%d, rows[at/d], m.X[at])
	}
	return m, nil
}

// Pixels returns the pixels of the images whose rows are given (nil: all) as points
// [len(rows), H·W·C] in [0, 1], in the order of their bytes, for comparison with a
// network's features. Errors wrap ErrShape.
func Pixels(images *images.Set, rows []int32) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	kind.Expect(images != nil, ErrShape, "images: got none")
	rows = rowsOf(images, rows)
	d := images.H * images.W * images.C
	kind.Expect(d >= 1 && len(rows) > 0 && len(images.Pixels) == images.N*d, ErrShape,
		"images: got %d bytes, want %d images of %d×%d with %d colours", len(images.Pixels), images.N, images.H, images.W, images.C)
	m := data.NewMatrix(len(rows), d)
	parallel.For(len(rows), max(1, 1<<16/d), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			to := m.Row(i)
			for j, b := range images.Image(int(rows[i])) {
				to[j] = float32(b) / 255
			}
		}
	})
	return m, nil
}
