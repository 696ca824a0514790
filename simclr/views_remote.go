package simclr

import (
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"cne/data"
	"cne/internal/device"
	"cne/internal/rng"
	"cne/model/op"
)

const (
	// choiceWords is the size of a choice on an accelerator, in words of 32 bits.
	choiceWords = 12
	// viewThreads is the largest number of threads that make a view together.
	viewThreads = 256
	// tapBytes is how much shared memory they need for each pixel along a side,
	// for both sides together.
	tapBytes = 32
)

// RemoteViews makes views on an accelerator, in whose memory it keeps the bytes of
// all images. The views are those of Augmentation on the CPU: what is random about
// them is the same, and pixel values differ by rounding alone, by some 1e-6 unless
// the augmentation multiplies contrasts by much.
type RemoteViews struct {
	device        *device.Device
	augmentation  Augmentation
	seed          uint64
	height, width int
	rows          int // images of which there are views

	pixels   *device.Memory // of all images
	rowsOf   *op.Array      // int32 [rows]: which images these are
	settings *device.Memory // float64: what views_draw is told
	normal   *op.Array      // float32 [6]: means, reciprocals of standard deviations
	choices  *op.Array      // of the last views, [·, choiceWords]
}

// NewRemoteViews copies images to an accelerator. Views are made of those whose
// rows are named, or of all if rows is nil, with random numbers from the seed.
// Errors wrap ErrOption or ErrShape, or are a *device.MemoryError. Close gives the
// memory back.
func NewRemoteViews(d *device.Device, images *data.Images, rows []int32, a Augmentation, seed uint64) (v *RemoteViews, err error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := checkImages(images); err != nil {
		return nil, err
	}
	if rows == nil {
		rows = allRows(images.N)
	}
	for i, r := range rows {
		if r < 0 || int(r) >= images.N {
			return nil, fmt.Errorf("%w: row %d is image %d, but the images are numbered from 0 to %d", ErrShape, i, r, images.N-1)
		}
	}
	if len(rows) > math.MaxInt32/2 || images.H > math.MaxInt32/max(1, images.W) {
		return nil, fmt.Errorf("%w: %d images of %d×%d pixels are more, or larger, than views on an accelerator are made of", ErrShape, len(rows), images.H, images.W)
	}
	if most := (d.Properties().SharedPerBlock - 1024) / tapBytes; a.Size > most {
		return nil, fmt.Errorf("%w: Size is %d; on %s views have at most %d pixels a side", ErrOption, a.Size, d.Name(), most)
	}
	v = &RemoteViews{device: d, augmentation: a, seed: seed, height: images.H, width: images.W, rows: len(rows)}
	defer func() {
		if err != nil {
			v.Close()
			v = nil
		}
	}()
	if v.pixels, err = d.Alloc(len(images.Pixels)); err != nil {
		return v, err
	}
	if err = device.Upload(d, v.pixels.Pointer(), images.Pixels); err != nil {
		return v, err
	}
	settings := a.settings()
	if v.settings, err = d.Alloc(8 * len(settings)); err != nil {
		return v, err
	}
	if err = device.Upload(d, v.settings.Pointer(), settings); err != nil {
		return v, err
	}
	if v.rowsOf, err = op.NewArrayOn(d, tensor.Int32, len(rows)); err != nil {
		return v, err
	}
	if err = device.Upload(d, v.rowsOf.Pointer(), rows); err != nil {
		return v, err
	}
	if v.normal, err = op.NewArrayOn(d, tensor.Float32, 6); err != nil {
		return v, err
	}
	normal := make([]float32, 6)
	for c := range 3 {
		normal[c], normal[3+c] = a.Mean[c], 1/a.Std[c]
	}
	if err = device.Upload(d, v.normal.Pointer(), normal); err != nil {
		return v, err
	}
	v.choices, err = op.NewArrayOn(d, tensor.Int32, 0)
	return v, err
}

// settings returns what the kernel views_draw is told: the bounds of the share of
// the area and of the logarithm of the ratio, the ratio where there is only one
// (whose exponential the CPU computes, as a tie in rounding may hang on it) or 0, the
// bounds of the ratio, the probabilities of a mirror image, of other colours and of
// grey, and the bounds of the factors and of the shift of the hue.
func (a *Augmentation) settings() []float64 {
	logMin, logMax := math.Log(a.MinRatio), math.Log(a.MaxRatio)
	ratio := 0.
	if logMin == logMax {
		ratio = math.Exp(logMin)
	}
	s := []float64{a.MinScale, a.MaxScale, logMin, logMax, ratio, a.MinRatio, a.MaxRatio, a.Flip, a.Jitter, a.Grey}
	for _, x := range [...]float64{a.Brightness, a.Contrast, a.Saturation} {
		s = append(s, max(0, 1-x), 1+x)
	}
	return append(s, -a.Hue, a.Hue)
}

// Close gives the memory back.
func (v *RemoteViews) Close() {
	for _, m := range []*device.Memory{v.pixels, v.settings} {
		if m != nil {
			m.Free()
		}
	}
	for _, a := range []*op.Array{v.rowsOf, v.normal, v.choices} {
		if a != nil {
			a.Free()
		}
	}
}

// Launch writes the views of points, int32 [b], in an epoch (from 0) to dst, float32
// [b, 3, Size, Size]. Both are on the accelerator. Of n rows that views are made of,
// point p < n is view 0 of the p-th, and point n + p its view 1: that of ViewStream
// for its image. Points are trusted to be in range.
func (v *RemoteViews) Launch(dst, points *op.Array, epoch int) error {
	count := points.Len()
	if err := v.prepare(dst, count); err != nil || count == 0 {
		return err
	}
	key := rng.New(v.seed, rng.Views, uint64(epoch)).State()
	if err := v.device.Each("views_draw", count, v.choices.Arg(), points.Arg(), v.rowsOf.Arg(), device.Arg(v.settings.Pointer()),
		device.Int(count), device.Int(v.rows), device.Word(key), device.Int(v.height), device.Int(v.width)); err != nil {
		return err
	}
	return v.make(dst, count)
}

// LaunchPlain writes the images that index, int32 [b], names, among all of them and
// not the rows alone, to dst, float32 [b, 3, Size, Size], without augmentation: see
// PlainTo. Both are on the accelerator, and what is in index is trusted.
func (v *RemoteViews) LaunchPlain(dst, index *op.Array) error {
	count := index.Len()
	if err := v.prepare(dst, count); err != nil || count == 0 {
		return err
	}
	if err := v.device.Each("views_plain", count, v.choices.Arg(), index.Arg(), device.Int(count), device.Int(v.height), device.Int(v.width)); err != nil {
		return err
	}
	return v.make(dst, count)
}

// prepare checks the size of dst, and has memory for the choices.
func (v *RemoteViews) prepare(dst *op.Array, count int) error {
	size := v.augmentation.Size
	if dst.Len() != count*3*size*size {
		return fmt.Errorf("%w: the destination has %d values; %d views of %d×%d pixels have %d", ErrShape, dst.Len(), count, size, size, count*3*size*size)
	}
	return v.choices.Resize([]int{count, choiceWords})
}

// make makes the views that have been chosen.
func (v *RemoteViews) make(dst *op.Array, count int) error {
	size := v.augmentation.Size
	return v.device.Launch("views_make", device.Launch{Grid: count, Block: min(viewThreads, (size*size+31)/32*32), Shared: tapBytes * size},
		dst.Arg(), v.choices.Arg(), device.Arg(v.pixels.Pointer()), v.normal.Arg(), device.Int(v.height), device.Int(v.width), device.Int(size))
}
