package simclr

import (
	"fmt"
	"image"
	"image/png"
	"io"

	"cne/data/images"
)

// maxPixels bounds the memory for a grid, at 4 bytes each.
const maxPixels = 100_000_000

// Grid writes a PNG of some of the images, to see what the augmentation does: a row for
// each, with the image as prepared by EvalBatchTo and its views 0 … views−1 of an epoch,
// before normalisation. Every pixel of a view is a square of zoom×zoom, zoom ≥ 1; white
// lines of 2·zoom separate the views. Errors wrap ErrOption or ErrShape, or are w's.
func (a *Augmentation) Grid(w io.Writer, images *images.Set, index []int32, views, epoch int, seed uint64, zoom int) error {
	if err := a.Check(); err != nil {
		return err
	}
	if len(index) == 0 || views < 0 || zoom < 1 {
		return fmt.Errorf("%w: grid: got %d images with %d views each, magnified %d times, want at least 1, 0 and 1", ErrOption,
			len(index), views, zoom)
	}
	cell := float64(zoom) * float64(a.Size+2)
	if pixels := cell * cell * float64(len(index)) * float64(views+1); pixels > maxPixels {
		return fmt.Errorf("%w: grid of %d images with %d views each: got %.3g pixels, want at most %.3g", ErrOption, len(index),
			views, pixels, float64(maxPixels))
	}
	n := 3 * a.Size * a.Size
	column := make([]float32, len(index)*n)
	step, gap := zoom*(a.Size+2), 2*zoom
	canvas := image.NewRGBA(image.Rect(0, 0, (views+1)*step-gap, len(index)*step-gap))
	for i := range canvas.Pix {
		canvas.Pix[i] = 0xff
	}
	for c := range views + 1 {
		var err error
		if c == 0 {
			err = a.EvalBatchTo(column, images, index)
		} else {
			err = a.BatchTo(column, images, index, epoch, c-1, seed)
		}
		if err != nil {
			return err
		}
		for row := range index {
			a.paint(canvas, c*step, row*step, zoom, column[row*n:][:n])
		}
	}
	return png.Encode(w, canvas)
}

// paint draws a normalised view with its top left corner at (x, y).
func (a *Augmentation) paint(canvas *image.RGBA, x, y, zoom int, view []float32) {
	r, g, b := channels(view)
	for i := range zoom * a.Size {
		for j := range zoom * a.Size {
			pixel := canvas.Pix[canvas.PixOffset(x+j, y+i):][:3]
			k := i/zoom*a.Size + j/zoom
			for c, v := range [...]float32{r[k], g[k], b[k]} {
				pixel[c] = byte(float32(255*unit(float32(v*a.Std[c])+a.Mean[c])) + 0.5)
			}
		}
	}
}
