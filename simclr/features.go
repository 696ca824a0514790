package simclr

import (
	"cmp"
	"context"
	"fmt"

	"cne/data"
	"cne/data/images"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
)

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
// images that pass a network at a time: plain are the prepared images of rows[lo:hi].
func (a *Augmentation) eachBlock(images *images.Set, rows []int32, each func(lo, hi int, plain []float32) error) error {
	size := 3 * a.Size * a.Size
	step := max(1, min(featureBatch, featurePixels/(a.Size*a.Size)))
	block := make([]float32, min(step, len(rows))*size)
	for lo := 0; lo < len(rows); lo += step {
		hi := min(lo+step, len(rows))
		plain := block[:(hi-lo)*size]
		if err := a.EvalBatchTo(plain, images, rows[lo:hi]); err != nil {
			return err
		}
		if err := each(lo, hi, plain); err != nil {
			return err
		}
	}
	return nil
}

// Features returns the representations of the images whose rows are given (nil: all), as a
// matrix [len(rows), e.Width()]. The images are prepared as by EvalBatchTo, without
// augmentation. progress, if not nil, is called after each step, with the number of images
// done; a step has at most 256 images, and fewer if they are larger than 64×64 pixels.
//
// Errors wrap ErrOption or ErrShape, ErrFeatures if a value is not finite, or come from ctx
// or e.
func Features(ctx context.Context, e Encoder, a *Augmentation, images *images.Set, rows []int32,
	progress func(done, all int)) (*data.Matrix, error) {
	if e == nil {
		return nil, fmt.Errorf("%w: encoder: got nil", ErrOption)
	}
	if err := cmp.Or(a.Check(), checkImages(images)); err != nil {
		return nil, err
	}
	a = a.whole()
	rows, err := rowsOf(images, rows)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: images: got none", ErrShape)
	}
	d := e.Width()
	m := data.NewMatrix(len(rows), d)
	err = a.eachBlock(images, rows, func(lo, hi int, plain []float32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := e.RepresentTo(m.Rows(lo, hi).X, plain, a.Size, a.Size)
		if err == nil && progress != nil {
			progress(hi, len(rows))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if at := simd.FirstNotFinite(m.X); at >= 0 {
		return nil, fmt.Errorf("%w: value %d of the representation of image %d (both counted from 0): got %v; training has diverged", ErrFeatures, at%d, rows[at/d], m.X[at])
	}
	return m, nil
}

// Pixels returns the pixels of the images whose rows are given (nil: all) as points
// [len(rows), H·W·C] in [0, 1], in the order of their bytes, for comparison with a
// network's features. Errors wrap ErrShape.
func Pixels(images *images.Set, rows []int32) (*data.Matrix, error) {
	if images == nil {
		return nil, fmt.Errorf("%w: images: got none", ErrShape)
	}
	rows, err := rowsOf(images, rows)
	if err != nil {
		return nil, err
	}
	d := images.H * images.W * images.C
	if d < 1 || len(rows) == 0 || len(images.Pixels) != images.N*d {
		return nil, fmt.Errorf("%w: images: got %d bytes, want %d images of %d×%d with %d colours", ErrShape, len(images.Pixels),
			images.N, images.H, images.W, images.C)
	}
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

// allRows returns the numbers 0 … n−1.
func allRows(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}
