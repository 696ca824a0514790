package simclr

import (
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// pixels returns random colours, [3, n], among them all that have only
// components of 0, ½ and 1.
func pixels(n int) []float32 {
	v := make([]float32, 3*n)
	s := rng.New(5, rng.Sample)
	for i := range v {
		v[i] = float32(s.Float64())
	}
	r, g, b := channels(v)
	for i := range 27 {
		r[i], g[i], b[i] = float32(i%3)/2, float32(i/3%3)/2, float32(i/9)/2
	}
	return v
}

// difference returns the largest difference of two views.
func difference(a, b []float32) float64 {
	var most float64
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

// adjusted returns a copy of a view after f.
func adjusted(view []float32, f func([]float32)) []float32 {
	v := slices.Clone(view)
	f(v)
	return v
}

// Factors of 1 and a hue of 0 change nothing at all.
func TestNeutralAdjustments(t *testing.T) {
	v := pixels(1000)
	for name, f := range map[string]func([]float32){
		"brightness": func(v []float32) { brighten(v, 1) },
		"contrast":   func(v []float32) { adjustContrast(v, 1) },
		"saturation": func(v []float32) { saturate(v, 1) },
		"hue":        func(v []float32) { shiftHue(v, 0) },
	} {
		if !slices.Equal(adjusted(v, f), v) {
			t.Errorf("%s: the neutral factor changes the view", name)
		}
	}
	if d := difference(adjusted(v, func(v []float32) { shiftHue(v, 1e-9) }), v); d > 3e-6 {
		t.Errorf("a hue of nearly 0 changes the view by %g", d)
	}
}

// The blends, written out in float64.
func TestBlends(t *testing.T) {
	const n = 1001 // no multiple of four
	v := pixels(n)
	r, g, b := channels(v)
	grey := make([]float64, n)
	var mean float64
	for i := range n {
		grey[i] = 0.2989*float64(r[i]) + 0.587*float64(g[i]) + 0.114*float64(b[i])
		mean += grey[i] / n
	}
	for name, adjust := range map[string]struct {
		f    func([]float32, float32)
		with func(pixel int) float64
	}{
		"brightness": {brighten, func(int) float64 { return 0 }},
		"contrast":   {adjustContrast, func(int) float64 { return mean }},
		"saturation": {saturate, func(i int) float64 { return grey[i] }},
	} {
		for _, factor := range []float32{0, 0.25, 0.6, 1, 1.4, 5} {
			got := adjusted(v, func(v []float32) { adjust.f(v, factor) })
			for i, x := range v {
				blend := float64(factor)*float64(x) + (1-float64(factor))*adjust.with(i%n)
				if want := min(1, max(0, blend)); math.Abs(float64(got[i])-want) > 1e-6 {
					t.Fatalf("%s by %g: value %d is %g, want %g", name, factor, i, got[i], want)
				}
			}
		}
	}
	got := adjusted(v, toGray)
	for i, x := range got {
		if math.Abs(float64(x)-grey[i%n]) > 1e-6 {
			t.Fatalf("grey: value %d is %g, want %g", i, x, grey[i%n])
		}
	}
	if r, g, b := channels(got); !slices.Equal(r, g) || !slices.Equal(r, b) {
		t.Error("the channels of a grey view differ")
	}
}

// The contrast of a grey image of one shade stays, but for the missing 0.0001
// of the weights.
func TestContrastOfConstant(t *testing.T) {
	for _, shade := range []float32{0, 0.3, 1} {
		v := slices.Repeat([]float32{shade}, 3*64)
		for _, factor := range []float32{0, 0.6, 1.4} {
			if d := difference(adjusted(v, func(v []float32) { adjustContrast(v, factor) }), v); d > 1.1e-4 {
				t.Errorf("shade %g, factor %g: changed by %g", shade, factor, d)
			}
		}
	}
}

// turned turns the hue of a colour by way of HSV, as textbooks and torchvision
// do.
func turned(r, g, b, share float64) [3]float64 {
	value, least := max(r, g, b), min(r, g, b)
	chroma := value - least
	if chroma == 0 {
		return [3]float64{r, g, b}
	}
	var hue float64
	switch value {
	case r:
		hue = (g - b) / chroma
	case g:
		hue = 2 + (b-r)/chroma
	default:
		hue = 4 + (r-g)/chroma
	}
	hue = math.Mod(hue/6+share+2, 1)
	saturation := chroma / value
	sixth, rest := math.Modf(hue * 6)
	p, q, t := value*(1-saturation), value*(1-saturation*rest), value*(1-saturation*(1-rest))
	return [...][3]float64{{value, t, p}, {q, value, p}, {p, value, t}, {p, q, value}, {t, p, value}, {value, p, q}}[int(sixth)%6]
}

func TestHueAgainstHSV(t *testing.T) {
	const n = 4000
	v := pixels(n)
	r, g, b := channels(v)
	for _, share := range []float32{-0.5, -1. / 3, -0.1, -0.0123, 1e-6, 0.05, 0.1, 1. / 6, 0.5} {
		got := adjusted(v, func(v []float32) { shiftHue(v, share) })
		for i := range n {
			want := turned(float64(r[i]), float64(g[i]), float64(b[i]), float64(share))
			for c := range 3 {
				if x := got[c*n+i]; math.Abs(float64(x)-want[c]) > 5e-6 || x < 0 || x > 1 {
					t.Fatalf("hue of (%g, %g, %g) turned by %g: component %d is %g, want %g", r[i], g[i], b[i], share, c, x, want[c])
				}
			}
		}
	}
}

// What Python's colorsys gives for hsv_to_rgb((h + share) % 1, s, v) with h, s,
// v of the first colour.
func TestHueAgainstColorsys(t *testing.T) {
	for _, c := range []struct {
		from  [3]float32
		share float32
		want  [3]float64
	}{
		{[3]float32{1, 0, 0}, 1. / 3, [3]float64{0, 1, 0}},
		{[3]float32{1, 0, 0}, -1. / 3, [3]float64{0, 0, 1}},
		{[3]float32{1, 0, 0}, 0.5, [3]float64{0, 1, 1}},
		{[3]float32{1, 1, 0}, 0.1, [3]float64{0.4, 1, 0}},
		{[3]float32{0.2, 0.4, 0.6}, 0.1, [3]float64{0.24, 0.2, 0.6}},
		{[3]float32{0.2, 0.4, 0.6}, -0.1, [3]float64{0.2, 0.6, 0.56}},
		{[3]float32{0.9, 0.5, 0.1}, 0.25, [3]float64{0.1, 0.9, 0.1}},
		{[3]float32{0.9, 0.1, 0.8}, 0.1, [3]float64{0.9, 0.1, 0.32}},
		{[3]float32{0.5, 0.5, 0.5}, 0.1, [3]float64{0.5, 0.5, 0.5}},
		{[3]float32{0.3, 0.9, 0.3}, -0.05, [3]float64{0.48, 0.9, 0.3}},
	} {
		v := c.from
		shiftHue(v[:], c.share)
		for i, x := range v {
			if math.Abs(float64(x)-c.want[i]) > 2e-6 {
				t.Errorf("%v turned by %g: %v, want %v", c.from, c.share, v, c.want)
				break
			}
		}
	}
}
