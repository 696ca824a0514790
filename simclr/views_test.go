package simclr_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data/images"
	"cne/simclr"
)

// bare returns an augmentation that changes nothing but the size, and does not
// normalise either.
func bare(size int) simclr.Augmentation {
	return simclr.Augmentation{Size: size, MinScale: 1, MaxScale: 1, MinRatio: 1, MaxRatio: 1, Std: [3]float32{1, 1, 1}}
}

// rows returns the numbers 0 … n−1.
func rows(n int) []int32 {
	index := make([]int32, n)
	for i := range index {
		index[i] = int32(i)
	}
	return index
}

// intensities returns an image as [3, h, w] numbers in [0, 1].
func intensities(image []byte) []float32 {
	n := len(image) / 3
	out := make([]float32, 3*n)
	for i, b := range image {
		out[i%3*n+i/3] = float32(b) / 255
	}
	return out
}

// mirrored returns a view with its rows of that width reversed.
func mirrored(view []float32, width int) []float32 {
	out := slices.Clone(view)
	for i := 0; i < len(out); i += width {
		slices.Reverse(out[i : i+width])
	}
	return out
}

// Without random parts a view is the image, exactly.
func TestIdentity(t *testing.T) {
	images := noise(3, 32, 32)
	a := bare(32)
	jittered := a
	jittered.Jitter = 1 // by strengths of 0
	flipped := a
	flipped.Flip = 1
	got := make([]float32, 3*32*32)
	for i := range images.N {
		image := images.Image(i)
		want := intensities(image)
		for name, c := range map[string]struct {
			a    simclr.Augmentation
			want []float32
		}{
			"bare":     {a, want},
			"jittered": {jittered, want},
			"mirrored": {flipped, mirrored(want, 32)},
		} {
			must(t, c.a.ViewTo(got, image, 32, 32, simclr.ViewStream(1, 2, i, 0)))
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: the view of image %d is not the image", name, i)
			}
		}
		must(t, a.EvalTo(got, image, 32, 32))
		if !slices.Equal(got, want) {
			t.Errorf("image %d without augmentation is not the image", i)
		}
	}
}

func TestNormalisation(t *testing.T) {
	images := noise(1, 32, 32)
	a := simclr.Paper()
	got := make([]float32, 3*32*32)
	must(t, a.EvalTo(got, images.Pixels, 32, 32))
	for i, x := range intensities(images.Pixels) {
		c := i / 1024
		if want := (x - a.Mean[c]) / a.Std[c]; math.Abs(float64(got[i]-want)) > 1e-6 {
			t.Fatalf("value %d is %g, want %g", i, got[i], want)
		}
	}
}

// What Pillow 9.4 gives for floats: Image.fromarray(x, "F").resize((s, s),
// Image.BILINEAR), for smaller, larger and both.
func TestResizeAgainstPillow(t *testing.T) {
	for _, c := range []struct {
		h, w, size int
		want       []float64
	}{
		{5, 7, 4, []float64{0.1847806, 0.3692941, 0.4898432, 0.7446312, 0.4932151, 0.5001961, 0.3832811, 0.4933863, 0.4152194, 0.6362615, 0.5165098, 0.5028634, 0.3624183, 0.6534902, 0.4327059, 0.6678805}},
		{3, 2, 6, []float64{0, 0, 0.04836601, 0.09673203, 0.145098, 0.145098, 0.09901961, 0.09901961, 0.1535948, 0.2081699, 0.2627451, 0.2627451, 0.2970588, 0.2970588, 0.3640523, 0.4310458, 0.4980392, 0.4980392, 0.4950981, 0.4950981, 0.4908497, 0.4866013, 0.482353, 0.482353, 0.6931373, 0.6931373, 0.5339869, 0.3748366, 0.2156863, 0.2156863, 0.7921569, 0.7921569, 0.5555556, 0.3189543, 0.08235294, 0.08235294}},
		{20, 9, 3, []float64{0.4772457, 0.5023295, 0.5187301, 0.5324636, 0.4570462, 0.5453745, 0.4674334, 0.5154796, 0.4419558}},
		{1, 5, 3, []float64{0.06218488, 0.2901961, 0.5182073, 0.06218488, 0.2901961, 0.5182073, 0.06218488, 0.2901961, 0.5182073}},
	} {
		image := make([]byte, 0, 3*c.h*c.w)
		for y := range c.h {
			for x := range c.w {
				v := byte(x*37 + y*101 + x*y%7*19)
				image = append(image, v, 255-v, v)
			}
		}
		a := bare(c.size)
		got := make([]float32, 3*c.size*c.size)
		must(t, a.EvalTo(got, image, c.h, c.w))
		n := c.size * c.size
		for i, want := range c.want {
			for plane, want := range [...]float64{want, 1 - want, want} {
				if x := got[plane*n+i]; math.Abs(float64(x)-want) > 1e-6 {
					t.Fatalf("%d×%d to %d: plane %d value %d is %g, want %g", c.h, c.w, c.size, plane, i, x, want)
				}
			}
		}
	}
}

// Views show intensities between 0 and 1, for strengths that leave the range
// without clamps too.
func TestRange(t *testing.T) {
	images := noise(8, 32, 32)
	strong := simclr.Paper()
	strong.Jitter, strong.Brightness, strong.Contrast, strong.Saturation, strong.Hue = 1, 3, 3, 3, 0.5
	for name, a := range map[string]simclr.Augmentation{"paper": simclr.Paper(), "strong": strong} {
		dst := make([]float32, 8*3*1024)
		for epoch := range 30 {
			must(t, a.BatchTo(dst, images, rows(8), epoch, 0, 1))
			for i, x := range dst {
				c := i / 1024 % 3
				if v := x*a.Std[c] + a.Mean[c]; !(v > -1e-6 && v < 1+1e-6) {
					t.Fatalf("%s: intensity %g", name, v)
				}
			}
		}
	}
}

// A view does not depend on how and where it is drawn, and differs for other views, epochs,
// seeds and rows.
func TestStreams(t *testing.T) {
	images := noise(40, 32, 32)
	copy(images.Image(1), images.Image(0)) // so that only the row differs
	a := simclr.Paper()
	const n = 3 * 1024
	index := append(rows(40), 0, 7)
	var first []float32
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		dst := make([]float32, len(index)*n)
		err := a.BatchTo(dst, images, index, 3, 1, 9)
		runtime.GOMAXPROCS(old)
		must(t, err)
		if first == nil {
			first = dst
		}
		if !slices.Equal(first, dst) {
			t.Errorf("GOMAXPROCS %d: other views", procs)
		}
	}
	view := make([]float32, n)
	for i, row := range index {
		must(t, a.ViewTo(view, images.Image(int(row)), 32, 32, simclr.ViewStream(9, 3, int(row), 1)))
		if !slices.Equal(view, first[i*n:][:n]) {
			t.Errorf("item %d: the view of image %d differs when drawn by itself", i, row)
		}
	}
	if slices.Equal(first[:n], first[n:2*n]) {
		t.Error("equal images in different rows have equal views")
	}
	for name, s := range map[string]struct {
		epoch, view int
		seed        uint64
	}{"view": {3, 0, 9}, "epoch": {1, 1, 9}, "seed": {3, 1, 3}, "view and epoch exchanged": {1, 3, 9}} {
		dst := make([]float32, len(first))
		must(t, a.BatchTo(dst, images, index, s.epoch, s.view, s.seed))
		for i := range index {
			if slices.Equal(dst[i*n:][:n], first[i*n:][:n]) {
				t.Errorf("other %s: item %d has the same view", name, i)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	set := noise(2, 4, 4)
	nan, inf := math.NaN(), math.Inf(1)
	batch := func(change func(a *simclr.Augmentation)) func() error {
		return func() error {
			a := simclr.Paper()
			change(&a)
			return a.BatchTo(make([]float32, 3*32*32), set, rows(1), 0, 0, 1)
		}
	}
	paper := simclr.Paper()
	dst := make([]float32, 3*32*32)
	for _, c := range []struct {
		name string
		f    func() error
		kind error
		says string
	}{
		{"zero value", func() error { return new(simclr.Augmentation).Check() }, simclr.ErrOption, "views.size: got 0"},
		{"size", batch(func(a *simclr.Augmentation) { a.Size = 4097 }), simclr.ErrOption, "views.size: got 4097"},
		{"scale 0", batch(func(a *simclr.Augmentation) { a.MinScale = 0 }), simclr.ErrOption, "views.min_scale: got 0"},
		{"scale above 1", batch(func(a *simclr.Augmentation) { a.MaxScale = 1.1 }), simclr.ErrOption, "views.max_scale: got 1.1"},
		{"scales exchanged", batch(func(a *simclr.Augmentation) { a.MinScale, a.MaxScale = 1, .5 }), simclr.ErrOption, "views.min_scale: got 1 with views.max_scale 0.5"},
		{"scale NaN", batch(func(a *simclr.Augmentation) { a.MinScale = nan }), simclr.ErrOption, "views.min_scale: got NaN"},
		{"ratio", batch(func(a *simclr.Augmentation) { a.MinRatio = -1 }), simclr.ErrOption, "views.min_ratio: got -1"},
		{"ratio infinite", batch(func(a *simclr.Augmentation) { a.MaxRatio = inf }), simclr.ErrOption, "views.max_ratio: got +Inf"},
		{"flip", batch(func(a *simclr.Augmentation) { a.Flip = 1.5 }), simclr.ErrOption, "views.flip: got 1.5"},
		{"jitter", batch(func(a *simclr.Augmentation) { a.Jitter = nan }), simclr.ErrOption, "views.jitter: got NaN"},
		{"grey", batch(func(a *simclr.Augmentation) { a.Gray = -.1 }), simclr.ErrOption, "views.grey: got -0.1"},
		{"hue", batch(func(a *simclr.Augmentation) { a.Hue = .6 }), simclr.ErrOption, "views.hue: got 0.6"},
		{"contrast", batch(func(a *simclr.Augmentation) { a.Contrast = inf }), simclr.ErrOption, "views.contrast: got +Inf"},
		{"std", batch(func(a *simclr.Augmentation) { a.Std[1] = 0 }), simclr.ErrOption, "views.std: got 0"},
		{"mean", batch(func(a *simclr.Augmentation) { a.Mean[2] = float32(nan) }), simclr.ErrOption, "views.mean: got NaN"},
		{"destination of a batch", func() error { return paper.EvalBatchTo(dst, set, rows(2)) }, simclr.ErrShape, "destination: got 3072 values, want 6144, 2 views of 32×32 pixels"},
		{"row", func() error { return paper.BatchTo(dst, set, []int32{2}, 0, 0, 1) }, simclr.ErrShape, "row 0: got image 2, want 0 to 1"},
		{"negative row", func() error { return paper.BatchTo(dst, set, []int32{-1}, 0, 0, 1) }, simclr.ErrShape, "image -1"},
		{"bytes of images", func() error {
			return paper.EvalBatchTo(dst, &images.Set{C: 3, N: 2, H: 4, W: 5, Pixels: set.Pixels}, rows(1))
		}, simclr.ErrShape, "96 bytes"},
		{"number of images", func() error {
			return paper.EvalBatchTo(nil, &images.Set{C: 3, N: 3, H: 4, W: 4, Pixels: set.Pixels}, nil)
		}, simclr.ErrShape, "3 images"},
		{"half an image", func() error {
			return paper.EvalBatchTo(nil, &images.Set{C: 3, N: 1, H: 4, W: 4, Pixels: set.Pixels[:60]}, nil)
		}, simclr.ErrShape, "60 bytes"},
		{"images without rows", func() error { return paper.EvalBatchTo(nil, &images.Set{C: 3, N: 1, W: 4}, nil) }, simclr.ErrShape, "0×4"},
		{"grey images", func() error {
			return paper.EvalBatchTo(nil, &images.Set{C: 1, N: 3, H: 4, W: 4, Pixels: set.Pixels[:48]}, nil)
		}, simclr.ErrShape, "images: got 48 bytes for 3 images of 4×4 with 1 colours, want 3 colours"},
	} {
		err := c.f()
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v; it should be of the kind %q and say %q", c.name, err, c.kind, c.says)
		}
	}
	if err := paper.EvalBatchTo(nil, &images.Set{}, nil); err != nil {
		t.Errorf("no images at all: %v", err)
	}
	if err := paper.BatchTo(nil, set, nil, 0, 0, 1); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

// Images and views of any size and any strengths give numbers in range, the
// same every time, or an error.
func FuzzView(f *testing.F) {
	f.Add(1, 1, 32, uint64(1), 0.2, 1., 0.75, 4./3, 0.4, 0.1)
	f.Add(1, 50, 7, uint64(2), 0.2, 1., 0.75, 4./3, 0.4, 0.1)
	f.Add(50, 1, 7, uint64(3), 0.01, 0.02, 0.1, 10., 2., 0.5)
	f.Add(300, 211, 1, uint64(4), 0.2, 1., 1., 1., 0., 0.)
	f.Add(2, 3, 64, uint64(5), 1e-9, 1e-9, 1e-300, 1e300, 1e6, 0.5)
	f.Add(33, 32, 32, uint64(6), 1., 1., 3., 3., 1., 0.5)
	f.Fuzz(func(t *testing.T, h, w, size int, seed uint64, minScale, maxScale, minRatio, maxRatio, strength, hue float64) {
		if h < 1 || w < 1 || h > 400 || w > 400 || size > 128 {
			return
		}
		images := noise(1, h, w)
		a := bare(size)
		a.MinScale, a.MaxScale, a.MinRatio, a.MaxRatio = minScale, maxScale, minRatio, maxRatio
		a.Flip, a.Jitter, a.Gray = 0.5, 0.8, 0.2
		a.Brightness, a.Contrast, a.Saturation, a.Hue = strength, strength, strength, hue
		if err := a.Check(); err != nil {
			if !errors.Is(err, simclr.ErrOption) {
				t.Fatalf("the error %q is of no kind", err)
			}
			return
		}
		stream := simclr.ViewStream(seed, 0, 0, 0)
		view, again := make([]float32, 3*size*size), make([]float32, 3*size*size)
		for _, dst := range [][]float32{view, again} {
			must(t, a.ViewTo(dst, images.Pixels, h, w, stream))
		}
		for i, x := range view {
			if !(x > -1e-5 && x < 1+1e-5) {
				t.Fatalf("value %d is %g", i, x)
			}
		}
		if !slices.Equal(view, again) {
			t.Error("the same stream gave another view")
		}
		must(t, a.EvalTo(view, images.Pixels, h, w))
	})
}
