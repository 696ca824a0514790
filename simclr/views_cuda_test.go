//go:build cu

package simclr

import (
	"errors"
	"math"
	"testing"

	"gorgonia.org/tensor"

	"cne/data/images"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
	"cne/model/op"
)

// randomImages returns images of smooth colours with noise, among them some that
// are grey, black and white.
func randomImages(n, h, w int) *images.Set {
	m := &images.Set{N: n, H: h, W: w, C: 3}
	s := rng.New(3, rng.Sample)
	for i := range n {
		var slope [3]float64
		for c := range slope {
			slope[c] = s.Normal() * 3
		}
		for y := range h {
			for x := range w {
				for c := range 3 {
					v := 128 + slope[c]*float64(x-w/2)*16/float64(w) + slope[(c+1)%3]*float64(y-h/2)*16/float64(h) + 20*s.Normal()
					switch i % 8 {
					case 5:
						v = float64(8 * (x + y))
					case 6:
						v = 0
					case 7:
						v = 255
					}
					m.Pixels = append(m.Pixels, byte(min(max(v, 0), 255)))
				}
			}
		}
	}
	return m
}

func intsOn(t *testing.T, d *device.Device, values []int32) *op.Array {
	t.Helper()
	a, err := op.NewArray(d, tensor.Int32, len(values))
	must(t, err)
	t.Cleanup(a.Free)
	must(t, device.Upload(d, a.Pointer(), values))
	return a
}

// The choices are the CPU's, to every pixel of the crops and every bit of the factors.
func TestChoicesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	paper := Paper()
	with := func(f func(a *Augmentation)) Augmentation {
		a := paper
		f(&a)
		return a
	}
	for name, c := range map[string]struct {
		a           Augmentation
		h, w, views int
	}{
		"the paper's":        {paper, 32, 32, 40000},
		"large images":       {paper, 480, 640, 40000},
		"one pixel":          {paper, 1, 1, 100},
		"a column":           {paper, 100, 1, 1000},
		"a row":              {paper, 2, 900, 1000},
		"any ratio":          {with(func(a *Augmentation) { a.MinRatio, a.MaxRatio, a.MinScale = 1e-3, 1e4, 1e-6 }), 300, 200, 20000},
		"extreme ratios":     {with(func(a *Augmentation) { a.MinRatio, a.MaxRatio = 1e-320, math.MaxFloat64 }), 40, 30, 3000},
		"ratio one":          {with(func(a *Augmentation) { a.MinRatio, a.MaxRatio, a.MinScale, a.MaxScale = 1, 1, 0.25, 0.25 }), 3, 3, 500},
		"ratio two, one tie": {with(func(a *Augmentation) { a.MinRatio, a.MaxRatio, a.MinScale, a.MaxScale = 2, 2, 0.125, 0.125 }), 12, 3, 500},
		"nothing fits":       {with(func(a *Augmentation) { a.MinRatio, a.MaxRatio, a.MinScale = 2, 3, 1 }), 7, 7, 500},
		"all there is": {with(func(a *Augmentation) {
			a.Flip, a.Jitter, a.Gray, a.Hue, a.Contrast, a.Brightness = 1, 1, 1, 0.5, 3, 1e6
		}), 8, 9, 2000},
		"nothing": {with(func(a *Augmentation) { a.Flip, a.Jitter, a.Gray, a.Hue, a.Contrast, a.Saturation = 0, 0, 0, 0, 0, 0 }), 8, 9, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			const seed, epoch = 13, 321
			// All views are of one image; the kernels' arguments change its row in the stream.
			rows := make([]int32, c.views)
			for i := range rows {
				rows[i] = int32(i)
			}
			points := make([]int32, 0, c.views)
			for i := range c.views {
				points = append(points, int32(i+i%2*c.views))
			}
			m := &images.Set{N: 1, H: 1, W: 1, C: 3, Pixels: make([]byte, 3)}
			v, err := NewDeviceViews(d, m, []int32{0}, c.a, seed)
			must(t, err)
			defer v.Close()
			of, at := intsOn(t, d, rows), intsOn(t, d, points)
			must(t, v.choices.Resize([]int{c.views, choiceWords}))
			must(t, d.Each("views_draw", c.views, v.choices.Arg(), at.Arg(), of.Arg(), v.settings, device.Int(c.views), device.Int(c.views),
				device.Word(rng.New(seed, rng.Views, epoch).State()), device.Int(c.h), device.Int(c.w)))
			got := make([]uint32, c.views*choiceWords)
			must(t, device.Download(d, got, v.choices.Pointer()))
			for i := range c.views {
				g := got[i*choiceWords:][:choiceWords]
				drawn := choice{
					crop: rectangle{int(g[0]), int(g[1]), int(g[2]), int(g[3])},
					flip: g[4]&1 != 0, jitter: g[4]&2 != 0, gray: g[4]&4 != 0,
				}
				for k := range drawn.strengths {
					drawn.strengths[k] = math.Float32frombits(g[5+k])
				}
				for k := range drawn.order {
					drawn.order[k] = uint8(g[4] >> (8 + 2*k) & 3)
				}
				stream := ViewStream(seed, epoch, i, i%2)
				if want := c.a.draw(c.h, c.w, &stream); drawn != want || g[9] != uint32(i) {
					t.Fatalf("view %d: %+v of image %d, want %+v", i, drawn, g[9], want)
				}
			}
		})
	}
}

// Views are the CPU's, with and without augmentation, of images smaller and larger than
// a view.
func TestViewsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	paper := Paper()
	strong := paper
	strong.Flip, strong.Jitter, strong.Hue, strong.Gray = 1, 1, 0.5, 0
	strong.Brightness, strong.Contrast, strong.Saturation = 2, 2, 3
	grey := strong
	grey.Gray, grey.MinScale, grey.MinRatio, grey.MaxRatio = 1, 1e-4, 0.1, 10
	plain := Augmentation{MinScale: 1, MaxScale: 1, MinRatio: 1, MaxRatio: 1, Std: [3]float32{1, 1, 1}}
	for name, c := range map[string]struct {
		a                Augmentation
		size, h, w, rows int
		within           float64 // 0: 1e-5
	}{
		"the paper's":  {paper, 32, 32, 32, 24, 0},
		"enlarged":     {paper, 32, 9, 11, 8, 0},
		"reduced":      {paper, 5, 60, 41, 16, 0},
		"one pixel":    {paper, 8, 1, 1, 9, 0},
		"to one pixel": {paper, 1, 20, 30, 9, 0},
		"a row":        {paper, 6, 1, 50, 9, 0},
		// The mean for the contrast: the CPU adds up 4225 pixels in float32, in order.
		"large": {paper, 65, 70, 80, 4, 3e-5},
		// Factors up to 3 and 4, one after the other, amplify rounding.
		"strong":      {strong, 16, 20, 20, 24, 4e-5},
		"grey":        {grey, 13, 20, 24, 16, 4e-5},
		"not changed": {plain, 7, 7, 7, 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			within := c.within
			if within == 0 {
				within = 1e-5
			}
			a, m := c.a, randomImages(c.rows+3, c.h, c.w)
			a.Size = c.size
			rows := make([]int32, c.rows)
			for i := range rows {
				rows[i] = int32(m.N - 1 - i)
			}
			v, err := NewDeviceViews(d, m, rows, a, 99)
			must(t, err)
			defer v.Close()
			values := 3 * a.Size * a.Size
			got, want := make([]float32, 2*c.rows*values), make([]float32, 2*c.rows*values)
			dst, err := op.NewArray(d, tensor.Float32, 2*c.rows, 3, a.Size, a.Size)
			must(t, err)
			defer dst.Free()
			compare := func(what string) {
				t.Helper()
				must(t, device.Download(d, got, dst.Pointer()))
				for i, w := range want {
					if diff := math.Abs(float64(got[i] - w)); !(diff <= within) {
						t.Fatalf("%s: value %d of view %d is %g, want %g", what, i%values, i/values, got[i], w)
					}
				}
			}
			// In an order of their own, the second half views 1.
			var points, index []int32
			for i := range 2 * c.rows {
				p := (i*5 + 3) % c.rows
				points, index = append(points, int32(p+i/c.rows*c.rows)), append(index, rows[p])
			}
			for _, epoch := range []int{0, 7} {
				half := len(want) / 2
				for view := range 2 {
					must(t, a.BatchTo(want[view*half:(view+1)*half], m, index[view*c.rows:(view+1)*c.rows], epoch, view, 99))
				}
				must(t, v.Launch(dst, intsOn(t, d, points), epoch))
				compare("views")
			}
			must(t, a.EvalBatchTo(want, m, index))
			must(t, v.LaunchEval(dst, intsOn(t, d, index)))
			compare("plain images")
		})
	}
}

// Impossible views are refused, and memory is freed.
func TestDeviceViewsErrors(t *testing.T) {
	d := fakecuda.Open(t)
	a, m := Paper(), randomImages(2, 3, 4)
	large, none := a, a
	large.Size, none.Size = 4096, 0
	short := *m
	short.Pixels = short.Pixels[1:]
	before, pieces := fakecuda.Usage()
	for _, c := range []struct {
		m    *images.Set
		rows []int32
		a    Augmentation
		want error
	}{
		{m, nil, none, ErrOption}, {m, nil, large, nil}, {&short, nil, a, ErrShape}, {m, []int32{2}, a, ErrShape}, {m, []int32{-1}, a, ErrShape},
	} {
		v, err := NewDeviceViews(d, c.m, c.rows, c.a, 1)
		if !errors.Is(err, c.want) {
			t.Errorf("rows %v, size %d: %v, want %v", c.rows, c.a.Size, err, c.want)
		}
		if err == nil {
			v.Close()
		}
	}
	v, err := NewDeviceViews(d, m, nil, a, 1)
	must(t, err)
	points := intsOn(t, d, []int32{0, 2})
	dst, err := op.NewArray(d, tensor.Float32, 2, 3, 32, 31)
	must(t, err)
	if err := v.Launch(dst, points, 0); !errors.Is(err, ErrShape) {
		t.Errorf("a destination too small: %v", err)
	}
	if err := v.LaunchEval(dst, points); !errors.Is(err, ErrShape) {
		t.Errorf("a destination too small: %v", err)
	}
	v.Close()
	dst.Free()
	points.Free()
	if bytes, n := fakecuda.Usage(); fakecuda.InUse() && (bytes != before || n != pieces) {
		t.Errorf("%d bytes in %d pieces are still in use, of %d in %d before", bytes, n, before, pieces)
	}
}
