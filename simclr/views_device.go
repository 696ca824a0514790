package simclr

import (
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"cne/data"
	"cne/internal/device"
	"cne/internal/rng"
	"cne/model"
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

// DeviceViews makes views on an accelerator, in whose memory it keeps the bytes of
// all images. The views are those of Augmentation on the CPU: the random choices are
// the same, and pixel values differ by rounding, about 1e-6 unless the augmentation
// amplifies contrasts strongly.
type DeviceViews struct {
	device        *model.Device
	augmentation  Augmentation
	seed          uint64
	height, width int
	rows          int // images of which there are views

	pixels   *device.Memory // of all images
	rowsOf   *op.Array      // int32 [rows]: which images these are
	settings *device.Memory // float64: see Augmentation.settings
	normal   *op.Array      // float32 [6]: means, reciprocals of standard deviations
	choices  *op.Array      // of the last views, [·, choiceWords]
}

// NewDeviceViews copies images to an accelerator. Views are made of those whose
// rows are named, or of all if rows is nil, with random numbers from the seed.
// Errors wrap ErrOption or ErrShape, or are a *model.MemoryError. Close gives the
// memory back.
func NewDeviceViews(d *model.Device, images *data.Images, rows []int32, a Augmentation, seed uint64) (v *DeviceViews, err error) {
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
	v = &DeviceViews{device: d, augmentation: a, seed: seed, height: images.H, width: images.W, rows: len(rows)}
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
	if v.rowsOf, err = op.NewArray(d, tensor.Int32, len(rows)); err != nil {
		return v, err
	}
	if err = device.Upload(d, v.rowsOf.Pointer(), rows); err != nil {
		return v, err
	}
	if v.normal, err = op.NewArray(d, tensor.Float32, 6); err != nil {
		return v, err
	}
	normal := make([]float32, 6)
	for c := range 3 {
		normal[c], normal[3+c] = a.Mean[c], 1/a.Std[c]
	}
	if err = device.Upload(d, v.normal.Pointer(), normal); err != nil {
		return v, err
	}
	v.choices, err = op.NewArray(d, tensor.Int32, 0)
	return v, err
}

// settings returns the arguments of the kernel views_draw: the bounds of the share of
// the area and of the logarithm of the ratio; the ratio if only one is allowed, else 0
// (its exponential is the CPU's, since a tie in rounding may depend on it); the bounds
// of the ratio; the probabilities of a mirror image, of colour jitter and of grey; and
// the bounds of the factors and of the shift of the hue.
func (a *Augmentation) settings() []float64 {
	logMin, logMax := math.Log(a.MinRatio), math.Log(a.MaxRatio)
	ratio := 0.
	if logMin == logMax {
		ratio = math.Exp(logMin)
	}
	s := []float64{a.MinScale, a.MaxScale, logMin, logMax, ratio, a.MinRatio, a.MaxRatio, a.Flip, a.Jitter, a.Gray}
	for _, x := range [...]float64{a.Brightness, a.Contrast, a.Saturation} {
		s = append(s, max(0, 1-x), 1+x)
	}
	return append(s, -a.Hue, a.Hue)
}

// Close gives the memory back.
func (v *DeviceViews) Close() {
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
// [b, 3, Size, Size]. Both are on the accelerator. Of n rows, point p < n is view 0 of
// the p-th, and point n + p its view 1: that of ViewStream for its image. Points are
// not checked: they must be in range.
func (v *DeviceViews) Launch(dst, points *op.Array, epoch int) error {
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

// LaunchEval writes images without augmentation to dst, float32 [b, 3, Size, Size]: see
// EvalTo. index, int32 [b], numbers them among all images, not among the rows. Both are
// on the accelerator, and index is not checked.
func (v *DeviceViews) LaunchEval(dst, index *op.Array) error {
	count := index.Len()
	if err := v.prepare(dst, count); err != nil || count == 0 {
		return err
	}
	if err := v.device.Each("views_plain", count, v.choices.Arg(), index.Arg(), device.Int(count), device.Int(v.height), device.Int(v.width)); err != nil {
		return err
	}
	return v.make(dst, count)
}

// prepare checks the size of dst and allocates the choices.
func (v *DeviceViews) prepare(dst *op.Array, count int) error {
	size := v.augmentation.Size
	if dst.Len() != count*3*size*size {
		return fmt.Errorf("%w: the destination has %d values; %d views of %d×%d pixels have %d", ErrShape, dst.Len(), count, size, size, count*3*size*size)
	}
	return v.choices.Resize([]int{count, choiceWords})
}

// make makes the views that have been chosen.
func (v *DeviceViews) make(dst *op.Array, count int) error {
	size := v.augmentation.Size
	return v.device.Launch("views_make", device.Launch{Grid: count, Block: min(viewThreads, (size*size+31)/32*32), Shared: tapBytes * size},
		dst.Arg(), v.choices.Arg(), device.Arg(v.pixels.Pointer()), v.normal.Arg(), device.Int(v.height), device.Int(v.width), device.Int(size))
}
