package plot

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// many returns a picture of n points in ten clusters; some have no label.
func many(n int) *Scatter {
	m, classes := clusters(10, (n+9)/10, 2)
	m.N, m.X, classes = n, m.X[:2*n], classes[:n]
	for i := 0; i < n; i += 7 {
		classes[i] = -1
	}
	return &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}}
}

// reversed returns the picture with its points in the reverse order.
func reversed(s *Scatter) *Scatter {
	r := *s
	r.Embedding = data.NewMatrix(s.Embedding.N, s.Embedding.D)
	for i := range r.Embedding.N {
		copy(r.Embedding.Row(i), s.Embedding.Row(s.Embedding.N-1-i))
	}
	r.Classes, r.Values, r.HeldOut = slices.Clone(s.Classes), slices.Clone(s.Values), slices.Clone(s.HeldOut)
	slices.Reverse(r.Classes)
	slices.Reverse(r.Values)
	slices.Reverse(r.HeldOut)
	return &r
}

func TestDensityWithoutOrder(t *testing.T) {
	classes := many(DenseFrom)
	values := &Scatter{Embedding: classes.Embedding, Colouring: Colouring{Values: make([]float64, DenseFrom)}}
	for i := range values.Values {
		values.Values[i] = float64(classes.Embedding.X[2*i])
		if i%5 == 0 {
			values.Values[i] = math.NaN()
		}
	}
	held := many(2*DenseFrom + 10)
	held.HeldOut = make([]bool, held.Embedding.N)
	for i := range held.HeldOut {
		held.HeldOut[i] = i > 5
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, s := range map[string]*Scatter{"classes": classes, "values": values, "single": {Embedding: classes.Embedding}, "held out": held} {
		s.DPI = 60
		format := PNG
		if name == "classes" { // the images in an SVG are made by the same means
			format = SVG
		}
		runtime.GOMAXPROCS(1)
		want := write(t, s, format)
		runtime.GOMAXPROCS(3)
		if !bytes.Equal(write(t, reversed(s), format), want) || !bytes.Equal(write(t, s, format), want) {
			t.Errorf("%s as %s: the cores or the order of the points change it", name, format)
		}
	}
}

// Every pixel is compared with discs that are added up one by one, and with ranks
// among the sorted sums.
func TestDensityPixels(t *testing.T) {
	const side, diameter, alone = 40, 3.7, 0.3
	stream := rng.New(5, rng.Sample)
	coloured := []color.NRGBA{{0xff, 0, 0, 0xff}, {0, 0xff, 0, 0xff}, {0x20, 0x40, 0x80, 0xff}, unlabeled}
	for _, continuous := range []bool{false, true} {
		l := layer{colours: coloured, diameter: diameter, alpha: alone, dense: true, continuous: continuous}
		for k := range 300 {
			// At places that need no rounding, most of them in one half.
			x := 4 + (float64(stream.IntN(128*(1+k%2)))+0.5)/8
			y := 4 + (float64(stream.IntN(256))+0.5)/8
			l.x, l.y, l.colour = append(l.x, x), append(l.y, y), append(l.colour, int32(k%3))
		}
		images := l.densities(1, side)
		if len(images) != 1 {
			t.Fatalf("%d images", len(images))
		}
		var covers, all []float64
		var means []color.NRGBA
		for j := range side {
			for i := range side {
				var sum [3]float64
				var level, cover float64
				for p := range l.x {
					d := math.Hypot(float64(i)+0.5-l.x[p], float64(j)+0.5-(side-l.y[p]))
					w := math.Round(256*max(0, min(1, diameter/2+0.5-d))) / 256
					c := coloured[l.colour[p]]
					cover += w
					level += w * float64(l.colour[p])
					for k, v := range []uint8{c.R, c.G, c.B} {
						sum[k] += w * float64(v)
					}
				}
				mean := color.NRGBA{}
				if cover > 0 {
					mean = color.NRGBA{uint8(math.Floor(sum[0]/cover + 0.5)), uint8(math.Floor(sum[1]/cover + 0.5)), uint8(math.Floor(sum[2]/cover + 0.5)), 0}
					if continuous {
						mean = coloured[int(math.Floor(level/cover+0.5))]
					}
				}
				covers, means = append(covers, cover), append(means, mean)
				// Sums of more than two discs are kept to a part in 256.
				rounded := cover
				if cover >= 2 {
					step := math.Exp2(math.Floor(math.Log2(cover)) - 8)
					rounded = math.Floor(cover/step) * step
				}
				all = append(all, rounded)
			}
		}
		most, dark := slices.Max(all), 0
		for k, cover := range all {
			below, most1 := 1., 1.
			for _, other := range all {
				if other >= 1 && other < cover {
					below++
				}
				if other >= 1 && other < most {
					most1++
				}
			}
			opacity := alone * cover
			if cover > 1 {
				opacity = min(1-math.Pow(1-alone, cover), alone+(1-alone)*below/most1)
			}
			got := images[0].NRGBAAt(k%side, k/side)
			want := means[k]
			if covers[k] == 0 {
				want = color.NRGBA{}
			} else {
				want.A = uint8(math.Round(255 * opacity))
			}
			if got != want {
				t.Fatalf("continuous %v: pixel %d, %d with %.3f discs is %v, want %v", continuous, k%side, k/side, covers[k], got, want)
			}
			if got.A > 220 {
				dark++
			}
		}
		if dark == 0 {
			t.Error("no pixel is dark")
		}
	}
}

func TestEqualised(t *testing.T) {
	// Levels of equally many pixels are equally far apart, however large they are.
	counts := make([]int, numLevels)
	levels := []uint64{50, 1000, 40_000, 5_000_000}
	for _, n := range levels {
		counts[levelOf(n*fullCover)] = 1_000_000
	}
	opacity := equalised(counts, 0.4)
	if !slices.IsSorted(opacity) || opacity[fullCover] != 102 || opacity[0] != 0 {
		t.Errorf("more points are less opaque, or a single disc has the opacity %d and none %d", opacity[fullCover], opacity[0])
	}
	for k, n := range levels {
		want := 255 * (0.4 + 0.6*float64(k)/3)
		if got := opacity[levelOf(n*fullCover)]; math.Abs(float64(got)-want) > 1 {
			t.Errorf("%d points have the opacity %d, want %.0f", n, got, want)
		}
	}
	// All points in one place are as dark as can be.
	counts = make([]int, numLevels)
	counts[levelOf(DenseFrom*fullCover)] = 3
	if got := equalised(counts, 0.4)[levelOf(DenseFrom*fullCover)]; got != 255 {
		t.Errorf("points in one place have the opacity %d", got)
	}
}

var embedded = regexp.MustCompile(`<image x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)" preserveAspectRatio="none" xlink:href="data:image/png;base64,([^"]+)"/>`)

// embeddedImages returns the images in an SVG and their places, in printer's points.
func embeddedImages(t *testing.T, svg []byte) (images []image.Image, places [][4]float64) {
	t.Helper()
	for _, match := range embedded.FindAllSubmatch(svg, -1) {
		var place [4]float64
		for k := range place {
			var err error
			if place[k], err = strconv.ParseFloat(string(match[k+1]), 64); err != nil {
				t.Fatal(err)
			}
		}
		file, err := base64.StdEncoding.DecodeString(string(match[5]))
		must(t, err)
		img, err := png.Decode(bytes.NewReader(file))
		must(t, err)
		images, places = append(images, img), append(places, place)
	}
	return images, places
}

// An SVG has the points as images where a PNG has them, and the rest as text.
func TestDensitySVG(t *testing.T) {
	s := many(DenseFrom)
	s.Title, s.DPI = "many points", 144
	svg := write(t, s, SVG)
	must(t, wellFormed(svg))
	if len(svg) > 3<<20 {
		t.Errorf("%d bytes", len(svg))
	}
	contains(t, svg, "many points", ">9<", ">"+NoLabel+"<")
	images, places := embeddedImages(t, svg)
	if len(images) != 2 {
		t.Fatalf("%d images, want that of the grey points and that of the others", len(images))
	}
	// Grey points lie below the others, and mix with none of them.
	for i, grey := 0, images[0].(*image.NRGBA).Pix; i < len(grey); i += 4 {
		if grey[i+3] > 0 && (grey[i] != unlabeled.R || grey[i+1] != unlabeled.G || grey[i+2] != unlabeled.B) {
			t.Fatalf("byte %d of the grey points is coloured", i)
		}
	}
	got := image.NewRGBA(decode(t, s).Rect)
	for k, img := range images {
		p := places[k]
		x, y := 2*p[0], 2*p[1]
		r := img.Bounds()
		if math.Abs(2*p[2]-float64(r.Dx())) > 1e-3 || math.Abs(2*p[3]-float64(r.Dy())) > 1e-3 || math.Abs(x-math.Round(x)) > 1e-3 {
			t.Fatalf("image %d of %v pixels is at %v", k, r, p)
		}
		above := img.(*image.NRGBA)
		above.Rect = r.Add(image.Pt(int(math.Round(x)), int(math.Round(y)))).Sub(r.Min)
		draw.Draw(got, above.Rect, above, above.Rect.Min, draw.Over)
	}
	want := decode(t, s)
	l := layoutOf(t, s)
	inside := image.Rect(int(2*l.box.x0), want.Rect.Dy()-int(2*l.box.y1), int(2*l.box.x1), want.Rect.Dy()-int(2*l.box.y0)).Inset(50) // without arrows
	seen := 0
	for y := inside.Min.Y; y < inside.Max.Y; y++ {
		for x := inside.Min.X; x < inside.Max.X; x++ {
			c, w := got.RGBAAt(x, y), want.NRGBAAt(x, y)
			if c.A > 0 {
				seen++
			}
			for k, v := range [][2]uint8{{c.R, w.R}, {c.G, w.G}, {c.B, w.B}} {
				if d := int(v[0]) + 0xff - int(c.A) - int(v[1]); d < -1 || d > 1 {
					t.Fatalf("pixel %d, %d: channel %d differs by %d", x, y, k, d)
				}
			}
		}
	}
	if seen < 1000 {
		t.Errorf("%d pixels are covered", seen)
	}
}

// Points are drawn one by one if they are fewer, or have a size that was asked for.
func TestDense(t *testing.T) {
	sized := many(DenseFrom)
	sized.PointSize = 1
	for name, c := range map[string]struct {
		s    *Scatter
		want int
	}{"many": {many(DenseFrom), 2}, "few": {many(DenseFrom - 1), 0}, "of a size": {sized, 0}} {
		images, _ := embeddedImages(t, write(t, c.s, SVG))
		if len(images) != c.want {
			t.Errorf("%s: %d images, want %d", name, len(images), c.want)
		}
	}
	// Held-out points that have rims are drawn one by one above the others.
	for _, c := range []struct {
		held  int
		dense bool
	}{{1000, false}, {2 * DenseFrom, true}} {
		s := &Scatter{Embedding: data.NewMatrix(DenseFrom+c.held, 2), HeldOut: make([]bool, DenseFrom+c.held)}
		for i := range s.Embedding.X {
			s.Embedding.X[i] = float32(i % 977)
		}
		for i := range c.held {
			s.HeldOut[i] = true
		}
		l := layoutOf(t, s)
		if below, above := l.layers[0], l.layers[1]; !below.dense || above.dense != c.dense || above.dense == (above.outline > 0) || above.dense && above.alpha == 1 {
			t.Errorf("%d held-out points: dense %v and %v, outline %v, alpha %v", c.held, below.dense, above.dense, above.outline, above.alpha)
		}
	}
}

func TestDenseStrip(t *testing.T) {
	strip := &Strip{Panels: []*Scatter{{Embedding: many(DenseFrom).Embedding}, {Embedding: many(DenseFrom).Embedding}}}
	images, places := embeddedImages(t, write(t, strip, SVG))
	if len(images) != 2 {
		t.Fatalf("%d images", len(images))
	}
	for k, p := range places {
		if left := stripSide * float64(k); p[0] < left || p[0]+p[2] > left+stripSide || p[1] < 0 || p[1]+p[3] > stripSide {
			t.Errorf("panel %d is at %v", k, p)
		}
	}
}
