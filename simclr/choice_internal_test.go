package simclr

import (
	"math"
	"testing"

	"cne/internal/rng"
)

// near reports a mean that is further from what is expected than five standard
// errors.
func near(t *testing.T, what string, sum, sum2 float64, n int, want float64) {
	t.Helper()
	mean := sum / float64(n)
	deviation := math.Sqrt(max(0, sum2/float64(n)-mean*mean) / float64(n))
	if math.Abs(mean-want) > 5*deviation+1e-12 {
		t.Errorf("%s is %.5g ± %.2g on average, want %.5g", what, mean, deviation, want)
	}
}

// moments accumulates what near takes.
type moments struct {
	sum, sum2 float64
	n         int
}

func (m *moments) add(x float64) { m.sum += x; m.sum2 += x * x; m.n++ }

// Every random part of a view against its definition.
func TestChoices(t *testing.T) {
	a := Paper()
	a.Brightness, a.Contrast, a.Saturation = 0.4, 0.3, 1.5
	a.Gray = 0.2
	const n = 40000
	share := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	var flip, jitter, grey, brightness, contrast, saturation, hue, hue2 moments
	var together [3]moments
	orders := map[[4]uint8]float64{}
	for i := range n {
		s := ViewStream(3, i%5, i/5, 1)
		c := a.draw(32, 32, &s)
		flip.add(share(c.flip))
		jitter.add(share(c.jitter))
		grey.add(share(c.gray))
		together[0].add(share(c.flip && c.jitter))
		together[1].add(share(c.flip && c.gray))
		together[2].add(share(c.jitter && c.gray))
		brightness.add(float64(c.strengths[0]))
		contrast.add(float64(c.strengths[1]))
		saturation.add(float64(c.strengths[2]))
		hue.add(float64(c.strengths[3]))
		hue2.add(float64(c.strengths[3]) * float64(c.strengths[3]))
		orders[c.order]++
		if c.strengths[0] < 0.6 || c.strengths[0] > 1.4 || c.strengths[1] < 0.7 || c.strengths[1] > 1.3 || c.strengths[2] < 0 || c.strengths[2] > 2.5 || c.strengths[3] < -0.1 || c.strengths[3] > 0.1 {
			t.Fatalf("out of range: %+v", c)
		}
	}
	for _, c := range []struct {
		what string
		m    moments
		want float64
	}{
		{"mirrored", flip, 0.5}, {"jittered", jitter, 0.8}, {"grey", grey, 0.2},
		{"mirrored and jittered", together[0], 0.4}, {"mirrored and grey", together[1], 0.1}, {"jittered and grey", together[2], 0.16},
		{"brightness", brightness, 1}, {"contrast", contrast, 1}, {"saturation", saturation, 1.25},
		{"hue", hue, 0}, {"hue²", hue2, 0.01 / 3},
	} {
		near(t, c.what, c.m.sum, c.m.sum2, c.m.n, c.want)
	}
	variance := brightness.sum2/n - (brightness.sum/n)*(brightness.sum/n)
	if want := 0.8 * 0.8 / 12; math.Abs(variance/want-1) > 0.03 {
		t.Errorf("the variance of brightness is %g, want %g", variance, want)
	}
	if len(orders) != 24 {
		t.Errorf("%d orders of the adjustments, want 24", len(orders))
	}
	var chi2 float64
	for _, count := range orders {
		chi2 += (count - n/24.) * (count - n/24.) / (n / 24.)
	}
	if chi2 > 49.7 { // 0.1 % point of chi-squared with 23 degrees of freedom
		t.Errorf("chi-squared of the orders is %.1f", chi2)
	}
}

// On an image so large that rounding does not matter, and with areas so small
// that all rectangles fit, the drawn areas and ratios have their distributions,
// and the corners are uniform.
func TestCropsThatFit(t *testing.T) {
	a := Paper()
	a.MinScale, a.MaxScale = 0.2, 0.6
	const h, w, n = 3000, 3000, 20000
	var area, area2, logRatio, logRatio2, x, y moments
	s := rng.New(1, rng.Views)
	for range n {
		c := a.drawCrop(h, w, &s)
		share, ratio := float64(c.w*c.h)/(h*w), math.Log(float64(c.w)/float64(c.h))
		area.add(share)
		area2.add(share * share)
		logRatio.add(ratio)
		logRatio2.add(ratio * ratio)
		x.add(float64(c.x) / float64(w-c.w))
		y.add(float64(c.y) / float64(h-c.h))
	}
	bound := math.Log(4. / 3)
	near(t, "area", area.sum, area.sum2, n, 0.4)
	near(t, "area²", area2.sum, area2.sum2, n, (0.6*0.6*0.6-0.2*0.2*0.2)/(3*0.4))
	near(t, "logarithm of the ratio", logRatio.sum, logRatio.sum2, n, 0)
	near(t, "its square", logRatio2.sum, logRatio2.sum2, n, bound*bound/3)
	near(t, "left edge", x.sum, x.sum2, n, 0.5)
	near(t, "top edge", y.sum, y.sum2, n, 0.5)
}

// On 32×32, large rectangles are often drawn anew, and corners are whole
// pixels: the rule is simulated here in the plainest way.
func TestCropsOfSmallImages(t *testing.T) {
	a := Paper()
	var got, want [4]moments
	add := func(m *[4]moments, x, y, w, h int) {
		if x < 0 || y < 0 || w < 1 || h < 1 || x+w > 32 || y+h > 32 {
			t.Fatalf("a crop of %d×%d at (%d, %d) is not inside", w, h, x, y)
		}
		m[0].add(float64(w * h))
		m[1].add(float64(w) / float64(h))
		m[2].add(float64(x))
		m[3].add(float64(y))
	}
	s, other := rng.New(1, rng.Views), rng.New(2, rng.Sample)
	for range 40000 {
		c := a.drawCrop(32, 32, &s)
		add(&got, c.x, c.y, c.w, c.h)
		tries := 0
		for ; tries < 10; tries++ {
			target := 1024 * (0.2 + 0.8*other.Float64())
			ratio := 3. / 4 * math.Pow(16./9, other.Float64())
			w, h := int(math.Sqrt(target*ratio)+0.5), int(math.Sqrt(target/ratio)+0.5)
			if w <= 32 && h <= 32 {
				add(&want, other.IntN(33-w), other.IntN(33-h), w, h)
				break
			}
		}
		if tries == 10 {
			add(&want, 0, 0, 32, 32)
		}
	}
	for i, what := range []string{"area", "ratio", "left edge", "top edge"} {
		m := want[i]
		mean := m.sum / float64(m.n)
		near(t, what, got[i].sum, got[i].sum2+float64(m.n)*(m.sum2/float64(m.n)-mean*mean), got[i].n, mean)
	}
}

// Where no rectangle can fit, the largest central one with an allowed ratio is
// taken.
func TestCentralCrop(t *testing.T) {
	for _, c := range []struct {
		h, w int
		want rectangle
	}{
		{10, 100, rectangle{x: 43, w: 13, h: 10}}, // 13.3 wide
		{100, 10, rectangle{y: 43, w: 10, h: 13}}, // 13.3 high
		{1, 9, rectangle{x: 4, w: 1, h: 1}},       // 1.3 wide
		{9, 1, rectangle{y: 4, w: 1, h: 1}},       // 1.3 high
		{6, 1000, rectangle{x: 496, w: 8, h: 6}},
		{1000, 6, rectangle{y: 496, w: 6, h: 8}},
		{2, 100, rectangle{x: 48, w: 3, h: 2}}, // 2.7 wide
		{100, 2, rectangle{y: 48, w: 2, h: 3}}, // 2.7 high
		{100, 100, rectangle{w: 100, h: 100}},  // an allowed ratio: all of it
		{90, 100, rectangle{w: 100, h: 90}},
		{1, 1, rectangle{w: 1, h: 1}},
	} {
		a := Paper()
		a.MinScale = 1
		s := rng.New(1, rng.Views)
		if got := a.drawCrop(c.h, c.w, &s); got != c.want {
			t.Errorf("%d×%d: %+v, want %+v", c.h, c.w, got, c.want)
		}
	}
}

// Once its workspace is large enough, a view needs no memory.
func TestViewsDoNotAllocate(t *testing.T) {
	a := Paper()
	image := make([]byte, 48*40*3)
	dst := make([]float32, 3*32*32)
	var ws workspace
	a.eval(&ws, dst, image, 48, 40) // of the largest part of the image
	epoch := 0
	if n := testing.AllocsPerRun(1000, func() {
		epoch++
		a.view(&ws, dst, image, 48, 40, ViewStream(1, epoch, 0, 0))
	}); n != 0 {
		t.Errorf("%g allocations per view", n)
	}
}
