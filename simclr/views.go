package simclr

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/tensor"

	"cne/data/images"
	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/model"
	"cne/model/op"
)

// Kinds of errors of this package, for errors.Is.
var (
	// ErrOption is wrapped by errors about invalid options and arguments.
	ErrOption = errors.New("simclr: unusable option")
	// ErrShape is wrapped by errors about slices that do not fit the sizes of the images, and
	// rows out of range.
	ErrShape = errors.New("simclr: shapes do not agree")
)

// maxSize bounds the side of a view, in pixels.
const maxSize = 4096

// An Augmentation says how views are drawn. For the paper's use Paper; the zero value is
// invalid.
//
// The steps follow torchvision on float tensors, in this order: a random
// resized crop, a mirror image, colour jitter, a grey image, normalisation.
// All are computed in float32 on values in [0, 1]. Where torchvision is given
// PIL images, as in the paper, its steps round to 8 bits; these do not.
//
// The methods do not change an Augmentation; it may be used by many goroutines
// at a time.
type Augmentation struct {
	// Size is the width and height of a view in pixels.
	Size int `key:"size" in:"[1,4096]"`
	// WholeSize is the width and height in pixels of whole images when a network computes
	// their features; 0 means Size. Larger than Size is often better, because views magnify
	// parts of images (Touvron et al., 2019, 'Fixing the train-test resolution
	// discrepancy').
	WholeSize int `key:"whole_size,null" in:"[1,4096]"`

	// A view shows a rectangle of the image. Its share of the area is uniform in [MinScale,
	// MaxScale]; the logarithm of its ratio of width to height is uniform between log MinRatio
	// and log MaxRatio. If ten such rectangles do not fit into the image, it shows the largest
	// central one whose ratio is allowed.
	MinScale float64 `key:"min_scale" in:"(0,1]"`
	MaxScale float64 `key:"max_scale" in:"(0,1]"`
	MinRatio float64 `key:"min_ratio,library" in:"(0,inf)"`
	MaxRatio float64 `key:"max_ratio,library" in:"(0,inf)"`

	// Flip is the probability of a mirror image, left to right.
	Flip float64 `key:"flip" in:"[0,1]"`

	// Jitter is the probability that colours change: brightness, contrast and saturation by
	// factors, each uniform in [max(0, 1−x), 1+x] for the field x of that name. The hue
	// changes by a share of the colour circle, uniform in [−Hue, Hue]. The order of the
	// changes is drawn anew for every view.
	Jitter     float64 `key:"jitter" in:"[0,1]"`
	Brightness float64 `key:"brightness" in:"[0,1e6]"`
	Contrast   float64 `key:"contrast" in:"[0,1e6]"`
	Saturation float64 `key:"saturation" in:"[0,1e6]"`
	Hue        float64 `key:"hue" in:"[0,0.5]"`

	// Gray is the probability of a view without colours.
	Gray float64 `key:"grey" in:"[0,1]"`

	// Finally Mean is subtracted from each channel (red, green, blue) and the result divided
	// by Std.
	Mean [3]float32 `key:"mean,library" in:"[-1e6,1e6]"`
	Std  [3]float32 `key:"std,library" in:"[1e-6,1e6]"`
}

// Paper returns the augmentation of the paper's runs on CIFAR-10.
func Paper() Augmentation {
	return Augmentation{
		Size:     32,
		MinScale: 0.2, MaxScale: 1, MinRatio: 3. / 4, MaxRatio: 4. / 3,
		Flip:   0.5,
		Jitter: 0.8, Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1,
		Gray: 0.2,
		Mean: [3]float32{.4914, .4822, .4465}, Std: [3]float32{.2023, .1994, .2010},
	}
}

// Check returns an *option.Error that wraps ErrOption for the first field that is out of
// its range.
func (a *Augmentation) Check() error {
	if a == nil {
		return fmt.Errorf("%w: Augmentation: got nil", ErrOption)
	}
	var fault *option.Error
	fraction := func(least, most string, x, y float64) *option.Error {
		return &option.Error{Key: least, Got: fmt.Sprint(x), Other: "views." + most, OtherGot: fmt.Sprint(y),
			Want: "a number above 0 that is not larger"}
	}
	switch {
	case errors.As(option.Check(a), &fault):
	case a.Size == 0:
		fault = &option.Error{Key: "size", Got: "0", Want: fmt.Sprintf("a whole number from 1 to %d", maxSize)}
	case a.MinScale == 0 || a.MinScale > a.MaxScale:
		fault = fraction("min_scale", "max_scale", a.MinScale, a.MaxScale)
	case a.MinRatio == 0 || a.MinRatio > a.MaxRatio:
		fault = fraction("min_ratio", "max_ratio", a.MinRatio, a.MaxRatio)
	case slices.Min(a.Std[:]) == 0:
		fault = &option.Error{Key: "std", Got: "0", Want: "a number from 1e-6 to 1e6"}
	default:
		return nil
	}
	fault.Key, fault.Err = "views."+fault.Key, ErrOption
	return fault
}

// A Stream has the random numbers of a view: see ViewStream. Float64 draws from [0, 1),
// IntN from 0 … n−1, Normal from the standard normal distribution, Uint64 all 64 bits, and
// Perm a permutation of 0 … n−1. At returns the stream moved ahead, and State its state.
type Stream = rng.Stream

// ViewStream returns the random numbers of one view of one image (by its row
// among the images) in one epoch, counted from 0.
func ViewStream(seed uint64, epoch, image, view int) Stream {
	return rng.New(seed, rng.Views, uint64(epoch), uint64(image), uint64(view))
}

// whole returns the augmentation whose EvalBatchTo scales whole images to WholeSize.
func (a *Augmentation) whole() *Augmentation {
	whole := *a
	whole.Size, whole.WholeSize = cmp.Or(a.WholeSize, a.Size), 0
	return &whole
}

// checkImages fails as kind.Expect does, with ErrShape, if the images do not have three
// colours, or do not have the bytes that their sizes need.
func checkImages(m *images.Set) {
	kind.Expect(m != nil, ErrShape, "images: got none")
	whole := m.N == 0 && len(m.Pixels) == 0
	if m.C == 3 && m.N > 0 && m.H > 0 && m.W > 0 && m.H <= len(m.Pixels)/m.W {
		size := 3 * m.H * m.W
		whole = len(m.Pixels)%size == 0 && len(m.Pixels)/size == m.N
	}
	kind.Expect(whole, ErrShape,
		"images: got %d bytes for %d images of %d×%d with %d colours, want 3 colours", len(m.Pixels), m.N, m.H, m.W, m.C)
}

// rowsOf returns the given rows of images, or all if rows is nil. It fails as kind.Expect
// does, with ErrShape, if a row is out of range.
func rowsOf(m *images.Set, rows []int32) []int32 {
	if rows == nil {
		rows = selection.UpTo[int32](m.N)
	}
	for i, row := range rows {
		if row < 0 || int(row) >= m.N {
			kind.Check(fmt.Errorf("%w: row %d: got image %d, want 0 to %d", ErrShape, i, row, m.N-1))
		}
	}
	return rows
}

// grain is the number of views that one core draws at a time, about a third of
// a millisecond.
const grain = 16

// BatchTo writes a view of each image in rows index to dst, [len(index), 3, Size, Size],
// drawn from ViewStream(seed, epoch, index[i], view). It uses all cores. Errors wrap
// ErrOption or ErrShape.
func (a *Augmentation) BatchTo(dst []float32, images *images.Set, index []int32, epoch, view int, seed uint64) error {
	return a.each(dst, images, index, func(ws *workspace, dst []float32, i int) {
		a.view(ws, dst, images.Image(i), images.H, images.W, ViewStream(seed, epoch, i, view))
	})
}

// EvalBatchTo is BatchTo without augmentation: images are resized as views are (both sides
// to Size, unless they have that size) and normalised.
func (a *Augmentation) EvalBatchTo(dst []float32, images *images.Set, index []int32) error {
	return a.each(dst, images, index, func(ws *workspace, dst []float32, i int) {
		a.eval(ws, dst, images.Image(i), images.H, images.W)
	})
}

// each checks the arguments and calls write for every image of a batch, with its part
// of dst.
func (a *Augmentation) each(dst []float32, images *images.Set, index []int32, write func(ws *workspace, dst []float32, image int)) (err error) {
	defer kind.Catch(&err)
	kind.Check(a.Check())
	checkImages(images)
	rowsOf(images, index)
	size := 3 * a.Size * a.Size
	kind.Expect(len(dst) == len(index)*size, ErrShape, "destination: got %d values, want %d, %d views of %d×%d pixels",
		len(dst), len(index)*size, len(index), a.Size, a.Size)
	parallel.For(len(index), grain, func(_, lo, hi int) {
		ws := workspaces.Get().(*workspace)
		for i := lo; i < hi; i++ {
			write(ws, dst[i*size:(i+1)*size], int(index[i]))
		}
		workspaces.Put(ws)
	})
	return nil
}

// A workspace is the memory for one view at a time.
type workspace struct {
	across, down taps
	rows         []float32 // [3, height of the crop, Size]: resized in one direction
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// changes are the steps of colour jitter, by their numbers in choice.order.
var changes = [4]func(view []float32, strength float32){brighten, adjustContrast, saturate, shiftHue}

// view writes a view of an image of h×w×3 bytes (rows of red, green and blue) to dst,
// [3, Size, Size]. It is a function of the image and of the stream.
func (a *Augmentation) view(ws *workspace, dst []float32, image []byte, h, w int, stream Stream) {
	c := a.draw(h, w, &stream)
	ws.resample(dst, a.Size, image, w, c.crop, c.flip)
	if c.jitter {
		for _, step := range c.order {
			changes[step](dst, c.strengths[step])
		}
	}
	if c.gray {
		toGray(dst)
	}
	a.normalize(dst)
}

// eval writes a resized image to dst without augmentation.
func (a *Augmentation) eval(ws *workspace, dst []float32, image []byte, h, w int) {
	ws.resample(dst, a.Size, image, w, rectangle{w: w, h: h}, false)
	a.normalize(dst)
}

// normalize subtracts the means and divides by the standard deviations.
func (a *Augmentation) normalize(view []float32) {
	r, g, b := channels(view)
	for c, plane := range [...][]float32{r, g, b} {
		mean, scale := a.Mean[c], 1/a.Std[c]
		for i, x := range plane {
			plane[i] = (x - mean) * scale
		}
	}
}

// A choice is everything that is random about a view.
type choice struct {
	crop rectangle
	flip bool

	jitter bool
	order  [4]uint8 // of brightness 0, contrast 1, saturation 2, hue 3
	// strengths are the factors of brightness, contrast and saturation, and the hue's shift as
	// a share of the colour circle.
	strengths [4]float32

	gray bool
}

// A rectangle is a part of an image, in pixels from the top left.
type rectangle struct{ x, y, w, h int }

// draw chooses a view of an image of h×w pixels.
func (a *Augmentation) draw(h, w int, s *Stream) choice {
	c := choice{
		crop: a.drawCrop(h, w, s), flip: s.Float64() < a.Flip,
		jitter: s.Float64() < a.Jitter, order: [4]uint8{0, 1, 2, 3}, strengths: [4]float32{drawFactor(a.Brightness, s),
			drawFactor(a.Contrast, s), drawFactor(a.Saturation, s), float32(uniform(-a.Hue, a.Hue, s))},
		gray: s.Float64() < a.Gray,
	}
	for i := 3; i > 0; i-- {
		j := s.IntN(i + 1)
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
	return c
}

// uniform draws a number between lo and hi.
func uniform(lo, hi float64, s *Stream) float64 { return lo + float64((hi-lo)*s.Float64()) }

// drawFactor draws a factor for a strength of jitter.
func drawFactor(x float64, s *Stream) float32 { return float32(uniform(max(0, 1-x), 1+x, s)) }

// drawCrop chooses the part of an image of h×w pixels that a view shows, as
// torchvision's RandomResizedCrop does.
func (a *Augmentation) drawCrop(h, w int, s *Stream) rectangle {
	height, width := float64(h), float64(w)
	logMin, logMax := elementary.Log(a.MinRatio), elementary.Log(a.MaxRatio)
	for range 10 {
		area := height * width * uniform(a.MinScale, a.MaxScale, s)
		ratio := elementary.Exp(uniform(logMin, logMax, s))
		cw, ch := math.RoundToEven(math.Sqrt(area*ratio)), math.RoundToEven(math.Sqrt(area/ratio))
		if cw >= 1 && cw <= width && ch >= 1 && ch <= height {
			c := rectangle{w: int(cw), h: int(ch)}
			c.y, c.x = s.IntN(h-c.h+1), s.IntN(w-c.w+1)
			return c
		}
	}
	c := rectangle{w: w, h: h}
	if ratio := width / height; ratio < a.MinRatio {
		c.h = max(1, int(math.RoundToEven(width/a.MinRatio)))
	} else if ratio > a.MaxRatio {
		c.w = max(1, int(math.RoundToEven(height*a.MaxRatio)))
	}
	c.x, c.y = (w-c.w)/2, (h-c.h)/2
	return c
}

const (
	// choiceWords is the size of a choice on an accelerator, in words of 32 bits.
	choiceWords = 12
	// viewThreads is the largest number of threads for a view.
	viewThreads = 256
	// tapBytes is their shared memory for each pixel of a side, for both axes.
	tapBytes = 32
)

// DeviceViews makes views on an accelerator. The accelerator holds the bytes of all
// images. The views are Augmentation's: the random choices are the CPU's, and pixel
// values differ by rounding, about 1e-6 unless the augmentation amplifies contrasts
// strongly.
type DeviceViews struct {
	device        *model.Device
	augmentation  Augmentation
	seed          uint64
	height, width int
	rows          int // images with views

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
func NewDeviceViews(d *model.Device, images *images.Set, rows []int32, a Augmentation, seed uint64) (_ *DeviceViews, err error) {
	defer kind.Catch(&err)
	kind.Check(a.Check())
	checkImages(images)
	rows = rowsOf(images, rows)
	kind.Expect(len(rows) <= math.MaxInt32/2 && images.H <= math.MaxInt32/max(1, images.W), ErrShape,
		"images: got %d of %d×%d pixels, want fewer or smaller ones for views on an accelerator", len(rows), images.H, images.W)
	most := (d.Properties().SharedPerBlock - 1024) / tapBytes
	kind.Expect(a.Size <= most, ErrOption, "Size: got %d on %s, want at most %d", a.Size, d.Name(), most)
	v := &DeviceViews{device: d, augmentation: a, seed: seed, height: images.H, width: images.W, rows: len(rows)}
	defer kind.Undo(&err, v.Close)
	settings, normal := a.settings(), make([]float32, 6)
	for c := range 3 {
		normal[c], normal[3+c] = a.Mean[c], 1/a.Std[c]
	}
	v.memory = kind.Got(d.AllocPieces(len(images.Pixels), 4*len(rows), 8*len(settings), 4*len(normal)))
	for i, at := range []*device.Arg{&v.pixels, &v.images, &v.settings, &v.normal} {
		*at = device.Arg(v.memory.At(i))
	}
	kind.Check(device.Upload(d, v.memory.At(0), images.Pixels))
	kind.Check(device.Upload(d, v.memory.At(1), rows))
	kind.Check(device.Upload(d, v.memory.At(2), settings))
	kind.Check(device.Upload(d, v.memory.At(3), normal))
	v.choices = kind.Got(op.NewArray(d, tensor.Int32, 0))
	return v, nil
}

// settings returns the numbers of the kernel views_draw: the bounds of the area's share
// and of the logarithm of the ratio; the ratio if only one is allowed, else 0 (the CPU
// computes its exponential, because a tie in rounding may depend on it); the bounds of
// the ratio; the probabilities of a flip, of colour jitter and of grey; and the bounds of
// the factors and of the hue's shift.
func (a *Augmentation) settings() []float64 {
	logMin, logMax := elementary.Log(a.MinRatio), elementary.Log(a.MaxRatio)
	ratio := 0.
	if logMin == logMax {
		ratio = elementary.Exp(logMin)
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

// Launch writes the views of points, int32 [b], in an epoch (from 0) to dst, float32 [b, 3,
// Size, Size]; both are on the accelerator. With n rows, point p < n is view 0 of row p's
// image, and point n + p its view 1, as ViewStream draws them. Points are not checked: they
// must be in range.
func (v *DeviceViews) Launch(dst, points *op.Array, epoch int) error {
	count, key := points.Len(), rng.New(v.seed, rng.Views, uint64(epoch)).State()
	return v.launch(dst, count, "views_draw", points.Arg(), v.images, v.settings, device.Int(count), device.Int(v.rows), device.Word(key))
}

// LaunchEval writes images without augmentation to dst, float32 [b, 3, Size, Size]: see
// EvalBatchTo. index, int32 [b], numbers them among all images, not among the rows, and is
// not checked. Both are on the accelerator.
func (v *DeviceViews) LaunchEval(dst, index *op.Array) error {
	return v.launch(dst, index.Len(), "views_plain", index.Arg(), device.Int(index.Len()))
}

// launch makes views of the choices of a kernel, whose arguments come between the choices and
// the size of an image.
func (v *DeviceViews) launch(dst *op.Array, count int, kernel string, args ...device.Arg) (err error) {
	defer kind.Catch(&err)
	size, height, width := v.augmentation.Size, device.Int(v.height), device.Int(v.width)
	kind.Expect(dst.Len() == count*3*size*size, ErrShape, "destination: got %d values, want %d, %d views of %d×%d pixels", dst.Len(),
		count*3*size*size, count, size, size)
	if err := v.choices.Resize([]int{count, choiceWords}); err != nil || count == 0 {
		return err
	}
	args = append(append([]device.Arg{v.choices.Arg()}, args...), height, width)
	kind.Check(v.device.Each(kernel, count, args...))
	return v.device.Launch("views_make", device.Launch{Grid: count, Block: min(viewThreads, (size*size+31)/32*32), Shared: tapBytes * size},
		dst.Arg(), v.choices.Arg(), v.pixels, v.normal, height, width, device.Int(size))
}
