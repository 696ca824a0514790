package simclr

import (
	"fmt"
	"maps"
	"slices"

	"cne/data"
	"cne/model"
	"cne/train"
)

// A Network is a ResNet in pretraining, as a model.Model: its points are the
// views 0 of the n images, and then, from n on, their views 1.
type Network struct {
	*model.Convolutional[float32]

	augmentation Augmentation
	seed         uint64
	images       *data.Images
	rows         []int32 // of the images that it is trained on
}

// network returns a new network for the images of some rows, with the edges
// between their views.
func (p *Pretraining) network(images *data.Images, rows []int32) (n *Network, heads, tails []int32, err error) {
	if images != nil && images.C != 3 {
		return nil, nil, nil, fmt.Errorf("%w: the images have %d values per pixel; pretraining takes images in three colours", ErrShape, images.C)
	}
	if err := checkImages(images); err != nil {
		return nil, nil, nil, err
	}
	if rows == nil {
		rows = allRows(images.N)
	}
	for i, r := range rows {
		if r < 0 || int(r) >= images.N {
			return nil, nil, nil, fmt.Errorf("%w: row %d of those to train on is image %d, but the images are numbered from 0 to %d", ErrShape, i, r, images.N-1)
		}
	}
	if err := p.Check(len(rows)); err != nil {
		return nil, nil, nil, err
	}
	resNet, err := model.NewResNet[float32](p.Network, p.Seed)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	m, err := model.NewConvolutional(resNet, 2*len(rows), p.Augmentation.Size, p.Loss, p.LearnTemperature)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	heads, tails = make([]int32, len(rows)), make([]int32, len(rows))
	for i := range rows {
		heads[i], tails[i] = int32(i), int32(len(rows)+i)
	}
	return &Network{Convolutional: m, augmentation: p.Augmentation, seed: p.Seed, images: images, rows: rows}, heads, tails, nil
}

// viewSource draws the views that a network is trained on: a train.DeviceImageSource.
type viewSource struct {
	*Network
	index []int32 // the images of half a batch
}

// Shape implements train.ImageSource.
func (s *viewSource) Shape() [3]int { return [3]int{3, s.augmentation.Size, s.augmentation.Size} }

// ImagesTo implements train.ImageSource: the first half of a batch's points are views
// 0, and the second views 1.
func (s *viewSource) ImagesTo(dst []float32, points []int32, epoch int) error {
	half, values := len(points)/2, len(dst)/2
	for view := range 2 {
		s.index = s.index[:0]
		for _, point := range points[view*half : (view+1)*half] {
			s.index = append(s.index, s.rows[int(point)-view*len(s.rows)])
		}
		if err := s.augmentation.BatchTo(dst[view*values:(view+1)*values], s.images, s.index, epoch, view, s.seed); err != nil {
			return err
		}
	}
	return nil
}

// ImagesOn implements train.DeviceImageSource.
func (s *viewSource) ImagesOn(d *model.Device) (train.DeviceImages, error) {
	return NewDeviceViews(d, s.images, s.rows, s.augmentation, s.seed)
}

// EmbedTo implements model.Model: what the head makes of the images as they are,
// in evaluation. It is the same for both views of an image.
func (n *Network) EmbedTo(dst []float32) error {
	points, d := n.Points()
	if len(dst) != points*d {
		return fmt.Errorf("%w: the destination has %d values; %d points of %d have %d", ErrShape, len(dst), points, d, points*d)
	}
	size := 3 * n.augmentation.Size * n.augmentation.Size
	block := make([]float32, min(featureBatch, len(n.rows))*size)
	for lo := 0; lo < len(n.rows); lo += featureBatch {
		hi := min(len(n.rows), lo+featureBatch)
		plain := block[:(hi-lo)*size]
		if err := n.augmentation.EvalBatchTo(plain, n.images, n.rows[lo:hi]); err != nil {
			return err
		}
		if err := n.ProjectTo(dst[lo*d:hi*d], plain); err != nil {
			return err
		}
	}
	copy(dst[len(n.rows)*d:], dst[:len(n.rows)*d])
	return nil
}

// State implements train.Stateful: the running statistics of the normalisations.
func (n *Network) State() []train.NamedArray {
	tensors := n.Tensors()
	for _, p := range n.Parameters() {
		delete(tensors, p.Name)
	}
	var slots []train.NamedArray
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		slots = append(slots, train.NamedArray{Name: name, Value: tensors[name]})
	}
	return slots
}

// Input says how images are prepared for networks that learn from views.
func (a *Augmentation) Input() *model.ImageInput {
	in := &model.ImageInput{Size: a.Size}
	for c := range 3 {
		in.Mean[c], in.Std[c] = float64(a.Mean[c]), float64(a.Std[c])
	}
	return in
}

// EvalTransform returns the augmentation without randomness that prepares images as in
// says. Its EvalTo is that of the augmentation whose Input is in.
func EvalTransform(in *model.ImageInput) Augmentation {
	a := Augmentation{Size: in.Size, MinScale: 1, MaxScale: 1, MinRatio: 1, MaxRatio: 1}
	for c := range 3 {
		a.Mean[c], a.Std[c] = float32(in.Mean[c]), float32(in.Std[c])
	}
	return a
}
