package simclr

import (
	"cmp"
	"fmt"
	"math"

	"gorgonia.org/tensor"

	"cne/data/images"
	"cne/internal/device"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

const (
	// choiceWords is the size of a choice on an accelerator, in words of 32 bits.
	choiceWords = 12
	// viewThreads is the largest number of threads for a view.
	viewThreads = 256
	// tapBytes is their shared memory for each pixel of a side, for both axes.
	tapBytes = 32
)

// DeviceViews makes views on an accelerator, which holds the bytes of all images. The
// views are Augmentation's: the random choices are the CPU's, and pixel values differ
// by rounding, about 1e-6 unless the augmentation amplifies contrasts strongly.
type DeviceViews struct {
	device        *model.Device
	augmentation  Augmentation
	seed          uint64
	height, width int
	rows          int // images of which there are views

	memory   device.Pieces
	pixels   device.Arg // of all images
	images   device.Arg // int32 [rows]: which images these are
	settings device.Arg // float64: see Augmentation.settings
	normal   device.Arg // float32 [6]: means, reciprocals of standard deviations
	choices  *op.Array  // of the last views, [·, choiceWords]
}

// NewDeviceViews copies images to an accelerator. Views are made of the images that
// rows names (nil: all), with random numbers from seed. Errors wrap ErrOption or
// ErrShape, or are a *model.MemoryError. Close frees the memory.
func NewDeviceViews(d *model.Device, images *images.Set, rows []int32, a Augmentation, seed uint64) (v *DeviceViews, err error) {
	if err := cmp.Or(a.Check(), checkImages(images)); err != nil {
		return nil, err
	}
	if rows == nil {
		rows = allRows(images.N)
	}
	if err := checkRange(images, rows); err != nil {
		return nil, err
	}
	if len(rows) > math.MaxInt32/2 || images.H > math.MaxInt32/max(1, images.W) {
		return nil, fmt.Errorf("%w: images: got %d of %d×%d pixels, want fewer or smaller ones for views on an accelerator", ErrShape, len(rows), images.H, images.W)
	}
	if most := (d.Properties().SharedPerBlock - 1024) / tapBytes; a.Size > most {
		return nil, fmt.Errorf("%w: Size: got %d on %s, want at most %d", ErrOption, a.Size, d.Name(), most)
	}
	v = &DeviceViews{device: d, augmentation: a, seed: seed, height: images.H, width: images.W, rows: len(rows)}
	defer func() {
		if err != nil {
			v.Close()
			v = nil
		}
	}()
	settings, normal := a.settings(), make([]float32, 6)
	for c := range 3 {
		normal[c], normal[3+c] = a.Mean[c], 1/a.Std[c]
	}
	if v.memory, err = d.AllocPieces(len(images.Pixels), 4*len(rows), 8*len(settings), 4*len(normal)); err != nil {
		return v, err
	}
	for i, at := range []*device.Arg{&v.pixels, &v.images, &v.settings, &v.normal} {
		*at = device.Arg(v.memory.At(i))
	}
	if err := cmp.Or(
		device.Upload(d, v.memory.At(0), images.Pixels), device.Upload(d, v.memory.At(1), rows),
		device.Upload(d, v.memory.At(2), settings), device.Upload(d, v.memory.At(3), normal),
	); err != nil {
		return v, err
	}
	v.choices, err = op.NewArray(d, tensor.Int32, 0)
	return v, err
}

// settings returns the numbers of the kernel views_draw: the bounds of the area's share
// and of the logarithm of the ratio; the ratio if only one is allowed, else 0 (the CPU
// computes its exponential, on which a tie in rounding may depend); the bounds of the
// ratio; the probabilities of a flip, of colour jitter and of grey; and the bounds of
// the factors and of the hue's shift.
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

// Close frees the memory.
func (v *DeviceViews) Close() {
	v.memory.Free()
	if v.choices != nil {
		v.choices.Free()
	}
}

// Launch writes the views of points, int32 [b], in an epoch (from 0) to dst, float32
// [b, 3, Size, Size]; both are on the accelerator. Of n rows, point p < n is view 0 of
// row p's image, and point n + p its view 1, as ViewStream draws them. Points are not
// checked: they must be in range.
func (v *DeviceViews) Launch(dst, points *op.Array, epoch int) error {
	count := points.Len()
	if err := v.prepare(dst, count); err != nil || count == 0 {
		return err
	}
	key := rng.New(v.seed, rng.Views, uint64(epoch)).State()
	if err := v.device.Each("views_draw", count, v.choices.Arg(), points.Arg(), v.images, v.settings,
		device.Int(count), device.Int(v.rows), device.Word(key), device.Int(v.height), device.Int(v.width)); err != nil {
		return err
	}
	return v.make(dst, count)
}

// LaunchEval writes images without augmentation to dst, float32 [b, 3, Size, Size]: see
// EvalBatchTo. index, int32 [b], numbers them among all images, not among the rows, and is
// not checked. Both are on the accelerator.
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
		return fmt.Errorf("%w: destination: got %d values, want %d, %d views of %d×%d pixels", ErrShape, dst.Len(), count*3*size*size, count, size, size)
	}
	return v.choices.Resize([]int{count, choiceWords})
}

// make makes the views of the choices.
func (v *DeviceViews) make(dst *op.Array, count int) error {
	size := v.augmentation.Size
	return v.device.Launch("views_make", device.Launch{Grid: count, Block: min(viewThreads, (size*size+31)/32*32), Shared: tapBytes * size},
		dst.Arg(), v.choices.Arg(), v.pixels, v.normal, device.Int(v.height), device.Int(v.width), device.Int(size))
}
