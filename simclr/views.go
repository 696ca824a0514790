package simclr

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"

	"cne/data/images"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// The kinds of error that this package returns, to be told apart with
// errors.Is.
var (
	// ErrOption: a field of an Augmentation, or an argument, has no meaning.
	ErrOption = errors.New("simclr: unusable option")
	// ErrShape: the length of a slice does not fit the sizes of the images, or a row
	// is out of range.
	ErrShape = errors.New("simclr: shapes do not agree")
)

// maxSize bounds the side of a view, in pixels.
const maxSize = 4096

// An Augmentation says how views are drawn. The zero value is not the paper's:
// use Paper.
//
// The steps are those of torchvision on float tensors, in this order: a random
// resized crop, a mirror image, colour jitter, a grey image, normalisation.
// All are computed in float32 on values in [0, 1]. Where torchvision is given
// PIL images, as in the paper, its steps round to 8 bits; these do not.
//
// The methods do not change an Augmentation; it may be used by many goroutines
// at a time.
type Augmentation struct {
	// Size is the width and height of a view in pixels, 1 … 4096.
	Size int
	// WholeSize is the width and height in pixels to which whole images are brought where a
	// network represents or places them (Features), likewise; 0 means Size. Larger than
	// Size is often better, since what a view cuts out of an image is magnified (Touvron
	// et al., 2019, 'Fixing the train-test resolution discrepancy').
	WholeSize int

	// A view shows a rectangle of the image, which has a share of its area drawn
	// uniformly from [MinScale, MaxScale], 0 < MinScale ≤ MaxScale ≤ 1, and a
	// ratio of width to height whose logarithm is uniform between those of
	// MinRatio and MaxRatio, 0 < MinRatio ≤ MaxRatio. If ten such rectangles do
	// not fit into the image, it shows the largest central one whose ratio is
	// allowed.
	MinScale, MaxScale, MinRatio, MaxRatio float64

	// Flip is the probability of a mirror image, left to right.
	Flip float64

	// Jitter is the probability that colours change: brightness, contrast and
	// saturation by factors, each uniform in [max(0, 1−x), 1+x] for the field x
	// of that name (x ≥ 0), and the hue by a share of the colour circle uniform
	// in [−Hue, Hue], 0 ≤ Hue ≤ 0.5; in an order drawn anew for every view.
	Jitter                                float64
	Brightness, Contrast, Saturation, Hue float64

	// Gray is the probability of a view without colours.
	Gray float64

	// Mean and Std, of red, green and blue, are subtracted and divided by in
	// the end. Std is positive.
	Mean, Std [3]float32
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

// Check returns an error that wraps ErrOption for the first field that is out
// of its range.
func (a *Augmentation) Check() error {
	if a == nil {
		return fmt.Errorf("%w: Augmentation: got nil", ErrOption)
	}
	if a.Size < 1 || a.Size > maxSize {
		return fmt.Errorf("%w: Size: got %d, want 1 to %d", ErrOption, a.Size, maxSize)
	}
	if a.WholeSize < 0 || a.WholeSize > maxSize {
		return fmt.Errorf("%w: WholeSize: got %d, want 1 to %d, or 0 for Size", ErrOption, a.WholeSize, maxSize)
	}
	// Written so that NaN fails, too.
	if !(a.MinScale > 0 && a.MinScale <= a.MaxScale && a.MaxScale <= 1) {
		return fmt.Errorf("%w: MinScale and MaxScale: got %g and %g, want 0 < MinScale ≤ MaxScale ≤ 1", ErrOption, a.MinScale, a.MaxScale)
	}
	if !(a.MinRatio > 0 && a.MinRatio <= a.MaxRatio && a.MaxRatio <= math.MaxFloat64) {
		return fmt.Errorf("%w: MinRatio and MaxRatio: got %g and %g, want 0 < MinRatio ≤ MaxRatio", ErrOption, a.MinRatio, a.MaxRatio)
	}
	for _, f := range [...]struct {
		name       string
		value, max float64
	}{
		{"Flip", a.Flip, 1}, {"Jitter", a.Jitter, 1}, {"Gray", a.Gray, 1}, {"Hue", a.Hue, 0.5},
		{"Brightness", a.Brightness, 1e6}, {"Contrast", a.Contrast, 1e6}, {"Saturation", a.Saturation, 1e6},
	} {
		if !(f.value >= 0 && f.value <= f.max) {
			return fmt.Errorf("%w: %s: got %g, want 0 to %g", ErrOption, f.name, f.value, f.max)
		}
	}
	for c, colour := range [...]string{"red", "green", "blue"} {
		if m, s := a.Mean[c], a.Std[c]; !(math.Abs(float64(m)) <= 1e6 && s >= 1e-6 && s <= 1e6) {
			return fmt.Errorf("%w: %s: got mean %g and standard deviation %g, want finite numbers and a deviation of at least 1e-6", ErrOption, colour, m, s)
		}
	}
	return nil
}

// A Stream gives the random numbers of a view: see ViewStream.
type Stream = rng.Stream

// ViewStream returns the random numbers of one view of one image (by its row
// among the images) in one epoch, counted from 0.
func ViewStream(seed uint64, epoch, image, view int) Stream {
	return rng.New(seed, rng.Views, uint64(epoch), uint64(image), uint64(view))
}

// ViewTo writes a view of an image of h×w×3 bytes (rows of red, green and blue)
// to dst, [3, Size, Size]. The view is a function of the image and of the
// stream, which should be that of ViewStream. Errors wrap ErrOption or
// ErrShape.
func (a *Augmentation) ViewTo(dst []float32, image []byte, h, w int, stream Stream) error {
	if err := a.checkImage(dst, image, h, w); err != nil {
		return err
	}
	ws := workspaces.Get().(*workspace)
	a.view(ws, dst, image, h, w, stream)
	workspaces.Put(ws)
	return nil
}

// whole returns the augmentation whose EvalTo brings whole images to WholeSize.
func (a *Augmentation) whole() *Augmentation {
	whole := *a
	whole.Size, whole.WholeSize = cmp.Or(a.WholeSize, a.Size), 0
	return &whole
}

// EvalTo writes an image of h×w×3 bytes to dst, [3, Size, Size], without
// augmentation: resized as views are (both sides to Size, unless it has that
// size) and normalised. Errors wrap ErrOption or ErrShape.
func (a *Augmentation) EvalTo(dst []float32, image []byte, h, w int) error {
	if err := a.checkImage(dst, image, h, w); err != nil {
		return err
	}
	ws := workspaces.Get().(*workspace)
	a.eval(ws, dst, image, h, w)
	workspaces.Put(ws)
	return nil
}

// checkImage checks the arguments of ViewTo and EvalTo.
func (a *Augmentation) checkImage(dst []float32, image []byte, h, w int) error {
	if err := a.Check(); err != nil {
		return err
	}
	if h < 1 || w < 1 || h > len(image)/3/w || len(image) != 3*h*w {
		return fmt.Errorf("%w: image: got %d bytes, want 3 for each of %d×%d pixels", ErrShape, len(image), h, w)
	}
	if want := 3 * a.Size * a.Size; len(dst) != want {
		return fmt.Errorf("%w: destination: got %d values, want %d, a view of %d×%d pixels", ErrShape, len(dst), want, a.Size, a.Size)
	}
	return nil
}

// checkImages returns an error that wraps ErrShape if the images are not of
// three colours, or not as many bytes as they say.
func checkImages(m *images.Set) error {
	if m == nil {
		return fmt.Errorf("%w: images: got none", ErrShape)
	}
	size := 0
	if m.C == 3 && m.N > 0 && m.H > 0 && m.W > 0 && m.H <= len(m.Pixels)/m.W {
		size = 3 * m.H * m.W
	}
	if m.N < 0 || size == 0 && m.N > 0 || m.N > 0 && (len(m.Pixels)%size != 0 || len(m.Pixels)/size != m.N) || m.N == 0 && len(m.Pixels) > 0 {
		return fmt.Errorf("%w: images: got %d bytes for %d images of %d×%d with %d colours, want 3 colours", ErrShape, len(m.Pixels), m.N, m.H, m.W, m.C)
	}
	return nil
}

// grain is the number of views that one core draws at a time, about a third of
// a millisecond.
const grain = 16

// BatchTo writes a view of each of the images whose rows index tells to dst,
// [len(index), 3, Size, Size]: that of ViewStream(seed, epoch, index[i], view)
// for the i-th. It uses all cores; the result is the same to the last bit
// whatever GOMAXPROCS is. Errors wrap ErrOption or ErrShape.
func (a *Augmentation) BatchTo(dst []float32, images *images.Set, index []int32, epoch, view int, seed uint64) error {
	return a.each(dst, images, index, func(ws *workspace, dst []float32, i int) {
		a.view(ws, dst, images.Image(i), images.H, images.W, ViewStream(seed, epoch, i, view))
	})
}

// EvalBatchTo is BatchTo without augmentation, as EvalTo is ViewTo.
func (a *Augmentation) EvalBatchTo(dst []float32, images *images.Set, index []int32) error {
	return a.each(dst, images, index, func(ws *workspace, dst []float32, i int) {
		a.eval(ws, dst, images.Image(i), images.H, images.W)
	})
}

// each checks the arguments and calls write for every image of a batch, with its part
// of dst.
func (a *Augmentation) each(dst []float32, images *images.Set, index []int32, write func(ws *workspace, dst []float32, image int)) error {
	if err := a.Check(); err != nil {
		return err
	}
	if err := checkImages(images); err != nil {
		return err
	}
	for i, row := range index {
		if row < 0 || int(row) >= images.N {
			return fmt.Errorf("%w: item %d of the batch: got image %d, want 0 to %d", ErrShape, i, row, images.N-1)
		}
	}
	size := 3 * a.Size * a.Size
	if len(dst) != len(index)*size {
		return fmt.Errorf("%w: destination: got %d values, want %d, %d views of %d×%d pixels", ErrShape, len(dst), len(index)*size, len(index), a.Size, a.Size)
	}
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

// view is ViewTo without the checks.
func (a *Augmentation) view(ws *workspace, dst []float32, image []byte, h, w int, stream Stream) {
	c := a.draw(h, w, &stream)
	ws.resample(dst, a.Size, image, w, c.crop, c.flip)
	if c.jitter {
		for _, step := range c.order {
			switch step {
			case 0:
				brighten(dst, c.brightness)
			case 1:
				adjustContrast(dst, c.contrast)
			case 2:
				saturate(dst, c.saturation)
			case 3:
				shiftHue(dst, c.hue)
			}
		}
	}
	if c.gray {
		toGray(dst)
	}
	a.normalize(dst)
}

// eval is EvalTo without the checks.
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

	jitter                           bool
	order                            [4]uint8 // of brightness 0, contrast 1, saturation 2, hue 3
	brightness, contrast, saturation float32  // factors
	hue                              float32  // share of the colour circle

	gray bool
}

// A rectangle is a part of an image, in pixels from the top left.
type rectangle struct{ x, y, w, h int }

// draw chooses a view of an image of h×w pixels.
func (a *Augmentation) draw(h, w int, s *Stream) choice {
	c := choice{
		crop:       a.drawCrop(h, w, s),
		flip:       s.Float64() < a.Flip,
		jitter:     s.Float64() < a.Jitter,
		order:      [4]uint8{0, 1, 2, 3},
		brightness: drawFactor(a.Brightness, s),
		contrast:   drawFactor(a.Contrast, s),
		saturation: drawFactor(a.Saturation, s),
		hue:        float32(uniform(-a.Hue, a.Hue, s)),
		gray:       s.Float64() < a.Gray,
	}
	for i := 3; i > 0; i-- {
		j := s.IntN(i + 1)
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
	return c
}

// uniform draws a number between lo and hi.
func uniform(lo, hi float64, s *Stream) float64 { return lo + (hi-lo)*s.Float64() }

// drawFactor draws a factor for a strength of jitter.
func drawFactor(x float64, s *Stream) float32 { return float32(uniform(max(0, 1-x), 1+x, s)) }

// drawCrop chooses the part of an image of h×w pixels that a view shows, as
// torchvision's RandomResizedCrop does.
func (a *Augmentation) drawCrop(h, w int, s *Stream) rectangle {
	height, width := float64(h), float64(w)
	logMin, logMax := math.Log(a.MinRatio), math.Log(a.MaxRatio)
	for range 10 {
		area := height * width * uniform(a.MinScale, a.MaxScale, s)
		ratio := math.Exp(uniform(logMin, logMax, s))
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
