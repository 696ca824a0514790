package plot

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // small heaps are collected less often
	m.Run()
}

// clusters returns Gaussian clusters of per points each, and their numbers.
func clusters(count, per, d int) (*data.Matrix, []int32) {
	s := rng.New(1, rng.Init)
	m := data.NewMatrix(count*per, d)
	classes := make([]int32, m.N)
	centre := make([]float64, d)
	for c := range count {
		for k := range centre {
			centre[k] = 30 * s.Float64()
		}
		for i := range per {
			classes[c*per+i] = int32(c)
			for k := range centre {
				m.Row(c*per + i)[k] = float32(centre[k] + 2*s.Normal())
			}
		}
	}
	return m, classes
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func points(xy ...float32) *data.Matrix { return &data.Matrix{N: len(xy) / 2, D: 2, X: xy} }

// A picture is a Scatter, a Strip or Curves.
type picture interface {
	Write(io.Writer, Format) error
	layout() (*layout, error)
}

func write(t testing.TB, p picture, format Format) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, p.Write(&b, format))
	return b.Bytes()
}

func layoutOf(t testing.TB, p picture) *layout {
	t.Helper()
	l, err := p.layout()
	must(t, err)
	return l
}

func decode(t testing.TB, s picture) *image.NRGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(write(t, s, PNG)))
	must(t, err)
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, image.Point{}, draw.Src)
	return out
}

// contains reports texts that a picture lacks.
func contains(t testing.TB, svg []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !bytes.Contains(svg, []byte(text)) {
			t.Errorf("the picture lacks %q", text)
		}
	}
}

// extent returns the bounds of the pixels of a colour.
func extent(img *image.NRGBA, c color.NRGBA) image.Rectangle {
	var r image.Rectangle
	for y := img.Rect.Min.Y; y < img.Rect.Max.Y; y++ {
		for x := img.Rect.Min.X; x < img.Rect.Max.X; x++ {
			if img.NRGBAAt(x, y) == c {
				r = r.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return r
}

func crop(img *image.NRGBA, r image.Rectangle) *image.NRGBA { return img.SubImage(r).(*image.NRGBA) }

// inBox returns the part of an image of 200 DPI that the points may fill.
// Elsewhere the rims of letters have every shade of grey.
func inBox(img *image.NRGBA, l *layout) *image.NRGBA {
	dots := func(x float64) int { return int(x / 72 * 200) }
	return crop(img, image.Rect(dots(l.box.x0), dots(l.height-l.box.y1), dots(l.box.x1), dots(l.height-l.box.y0)))
}

func TestSize(t *testing.T) {
	m, classes := clusters(3, 20, 2)
	panels := func(n int) []Panel {
		return slices.Repeat([]Panel{{Title: "t", XLabel: "x", YLabel: "y", Series: []Series{falling("", 5)}}}, n)
	}
	for name, tc := range map[string]struct {
		p    picture
		w, h int // a width of 0 is more than the height, by the legend
	}{
		"default":          {&Scatter{Embedding: m}, 1000, 1000},
		"legend":           {&Scatter{Embedding: m, Colouring: Colouring{Classes: classes}}, 0, 1000},
		"given":            {&Scatter{Embedding: m, Width: 4, Height: 3, DPI: 50, Colouring: Colouring{Classes: classes}}, 200, 150},
		"only height":      {&Scatter{Embedding: m, Height: 2, DPI: 100}, 500, 200},
		"single dimension": {&Scatter{Embedding: &data.Matrix{N: 3, D: 1, X: []float32{1, 2, 3}}}, 1000, 400},
		"one panel":        {&Curves{Panels: panels(1), DPI: 72}, 2*margin + panelWidth, 2*margin + 158},
		"two":              {&Curves{Panels: panels(2), DPI: 72}, 2*margin + 2*panelWidth + panelGap, 2*margin + 158},
		"four":             {&Curves{Panels: panels(4), DPI: 72}, 2*margin + 2*panelWidth + panelGap, 2*margin + 317 + panelGap},
		"five":             {&Curves{Panels: panels(5), DPI: 72}, 2*margin + 3*panelWidth + 2*panelGap, 2*margin + 317 + panelGap},
		"given curves":     {&Curves{Panels: panels(3), Width: 8, Height: 3, DPI: 50}, 400, 150},
		"strip":            {&Strip{Panels: []*Scatter{row(1, ""), row(2, "")}, DPI: 200}, 0, 480},
	} {
		if size := decode(t, tc.p).Rect.Size(); tc.w > 0 && size.X != tc.w || tc.w == 0 && size.X <= size.Y || size.Y != tc.h {
			t.Errorf("%s: %v, want %d×%d", name, size, tc.w, tc.h)
		}
	}
}

func TestEveryClassShows(t *testing.T) {
	m, classes := clusters(12, 50, 2)
	classes[0] = -1
	s := &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}, Alpha: 1, PointSize: 3}
	img := decode(t, s)
	l := layoutOf(t, s)
	edge := int(l.box.x1 / 72 * 200)
	legend := crop(img, image.Rect(edge, 0, img.Bounds().Max.X, img.Bounds().Max.Y))
	for c := range 12 {
		if extent(inBox(img, l), ClassColour(c)).Empty() {
			t.Errorf("class %d does not occur among the points", c)
		}
		if extent(legend, ClassColour(c)).Empty() {
			t.Errorf("class %d does not occur in the legend", c)
		}
	}
	if extent(inBox(img, l), unlabeled).Empty() {
		t.Error("the point without a class is missing")
	}
	for c := range 12 {
		contains(t, write(t, s, SVG), `<path stroke="`+hex(ClassColour(c)))
	}
}

// Points stay in their box, and legend and title outside of it.
func TestNothingOverlaps(t *testing.T) {
	m, classes := clusters(10, 100, 2)
	wide := data.NewMatrix(m.N, 2)
	tall := data.NewMatrix(m.N, 2)
	for i := range m.N {
		wide.Row(i)[0], wide.Row(i)[1] = 50*m.Row(i)[0], m.Row(i)[1]
		tall.Row(i)[0], tall.Row(i)[1] = m.Row(i)[0], 50*m.Row(i)[1]
	}
	values, held := make([]float64, m.N), make([]bool, m.N)
	for i := range values {
		values[i], held[i] = float64(i), i%7 == 0
	}
	for _, e := range []*data.Matrix{m, wide, tall} {
		for _, s := range []Scatter{
			{Colouring: Colouring{Classes: classes}, Title: "title"},
			{Colouring: Colouring{Classes: classes, ClassNames: []string{strings.Repeat("long name ", 30)}}},
			{Colouring: Colouring{Values: values}, PointSize: 20},
			{Width: 3, Height: 6},
			{Colouring: Colouring{Classes: classes}, HeldOut: held},
			{HeldOut: held, Width: 1.8, Height: 2},
		} {
			s.Embedding = e
			l := layoutOf(t, &s)
			for _, p := range l.layers {
				r := p.diameter/2 - 1e-9
				for i := range p.x {
					if p.x[i]-r < l.box.x0 || p.x[i]+r > l.box.x1 || p.y[i]-r < l.box.y0 || p.y[i]+r > l.box.y1 {
						t.Fatalf("point at %v, %v leaves the box %v", p.x[i], p.y[i], l.box)
					}
				}
			}
			// Without its points, the picture is white in the box, and at its edges.
			l.layers = nil
			var b bytes.Buffer
			must(t, l.writePNG(&b, 72))
			img, _ := png.Decode(&b)
			box := image.Rect(int(l.box.x0)+1, int(l.height-l.box.y1)+1, int(l.box.x1), int(l.height-l.box.y0))
			size := img.Bounds().Size()
			inner := image.Rect(4, 4, size.X-2, size.Y-2)
			for y := range size.Y {
				for x := range size.X {
					at := image.Pt(x, y)
					if r, g, b, _ := img.At(x, y).RGBA(); r+g+b != 3*0xffff && (at.In(box) || !at.In(inner)) {
						t.Fatalf("something is drawn at %v, at the edge or inside the box %v", at, box)
					}
				}
			}
		}
	}
}

// A circle stays one, and the scale bar tells its diameter.
func TestEqualAxesAndScaleBar(t *testing.T) {
	const n = 4000
	for _, radius := range []float64{1, 37, 4e5, 3e-4} {
		m := data.NewMatrix(n, 2)
		for i := range n {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / n)
			m.Row(i)[0], m.Row(i)[1] = float32(radius*cos), float32(radius*sin+1e-4*radius)
		}
		s := &Scatter{Embedding: m, Width: 7, Height: 4, Alpha: 1, PointSize: 3}
		img := decode(t, s)
		circle := extent(img, single)
		if d := circle.Dx() - circle.Dy(); d < -1 || d > 1 {
			t.Errorf("the circle measures %v", circle.Size())
		}
		bar := 0 // pixels from its left end, along its middle
		for x, y := 29, 200*(4*72-margin-4)/72; img.NRGBAAt(x, y) == ink; x++ {
			bar++
		}
		// Diameters run from centre to centre.
		length := 2 * radius * float64(bar) / (float64(circle.Dx()) - 3./72*200)
		mantissa, exponent := roundLength(length * 1.02)
		if want := decimal(mantissa, exponent); math.Abs(length/want-1) > 0.02 {
			t.Errorf("radius %v: the scale bar is %v long, which is not round", radius, length)
		}
		contains(t, write(t, s, SVG), ">"+Number(decimal(mantissa, exponent))+"</text>")
	}
}

func TestRoundLength(t *testing.T) {
	for limit, want := range map[float64]float64{
		1: 1, 0.999: 0.5, 1.99: 1, 2: 2, 4.9: 2, 5: 5, 9.99: 5, 10: 10, 0.1: 0.1, 0.3: 0.2, 0.05: 0.05,
		1e6: 1e6, 7e-9: 5e-9, 1e22: 1e22, 5e-324: 5e-324, math.MaxFloat64: 1e308,
	} {
		if m, e := roundLength(limit); decimal(m, e) != want {
			t.Errorf("roundLength(%v) = %v, want %v", limit, decimal(m, e), want)
		}
	}
	s := rng.New(1, rng.Init)
	for range 2000 {
		limit := math.Exp(50 * s.Normal())
		m, e := roundLength(limit)
		if got := decimal(m, e); got > limit || got < limit/2.5 {
			t.Errorf("roundLength(%v) = %v", limit, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -20: "-20", 0.05: "0.05", 500000: "500000", 5e6: "5e6", 1e-4: "0.0001", 2e-5: "2e-5", 1e100: "1e100", 1e-100: "1e-100", 2.5: "2.5",
	} {
		if got := Number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		low, high float64
		want      []float64
	}{
		"unit":       {0, 1, []float64{0, 0.5, 1}},
		"tenths":     {0.05, 0.55, []float64{0.2, 0.4}},
		"negative":   {-3, 3, []float64{-2, 0, 2}},
		"years":      {1990, 2021, []float64{1990, 2000, 2010, 2020}},
		"empty":      {2, 2, nil},
		"reversed":   {3, 2, nil},
		"too close":  {1e15, 1e15 + 1, nil},
		"overflow":   {-math.MaxFloat64, math.MaxFloat64, nil},
		"decimals":   {0.1, 0.4, []float64{0.1, 0.2, 0.3, 0.4}},
		"tiny":       {0, 5e-324, nil},
		"very large": {0, 3e300, []float64{0, 1e300, 2e300, 3e300}},
	} {
		if got := Ticks(tc.low, tc.high); !slices.Equal(got, tc.want) {
			t.Errorf("%s: Ticks(%v, %v) = %v, want %v", name, tc.low, tc.high, got, tc.want)
		}
	}
	s := rng.New(2, rng.Init)
	for range 500 {
		low := 100 * s.Normal()
		high := low + math.Exp(3*s.Normal())
		got := Ticks(low, high)
		if len(got) < 2 || len(got) > 6 || !slices.IsSorted(got) || got[0] < low || got[len(got)-1] > high {
			t.Errorf("ticks(%v, %v) = %v", low, high, got)
		}
	}
}

func TestSameBytes(t *testing.T) {
	m, classes := clusters(5, 300, 2)
	line, _ := clusters(5, 300, 1)
	held := make([]bool, m.N)
	for i := range 200 {
		held[7*i] = true
	}
	for _, e := range []*data.Matrix{m, line} {
		for _, format := range []Format{PNG, SVG} {
			s := &Scatter{Embedding: e, Colouring: Colouring{Classes: classes}, HeldOut: held, Title: "t"}
			a, b := write(t, s, format), write(t, s, format)
			if !bytes.Equal(a, b) {
				t.Errorf("%s: two drawings differ", format)
			}
			s.Seed = 1
			if bytes.Equal(a, write(t, s, format)) {
				t.Errorf("%s: another seed gives the same order", format)
			}
		}
	}
}

// Held-out points show above the others, in full colour and with a rim, and the
// others in a tint, however points are coloured.
func TestHeldOut(t *testing.T) {
	const n = 40
	m := data.NewMatrix(2*n, 2)
	held := make([]bool, m.N)
	classes, values := make([]int32, m.N), make([]float64, m.N)
	for i := range m.N {
		// Half of the held-out points lie upon others.
		m.Row(i)[0], m.Row(i)[1] = float32(i%n), float32(i%n%2+i/n*(i%n/20))
		held[i] = i < n
		classes[i], values[i] = 0, 1
	}
	for name, tc := range map[string]struct {
		s      Scatter
		colour color.NRGBA
	}{
		"classes":  {Scatter{Colouring: Colouring{Classes: classes}}, ClassColour(0)},
		"values":   {Scatter{Colouring: Colouring{Values: values}}, ValueColour(128. / 255)},
		"neither":  {Scatter{}, single},
		"no label": {Scatter{Colouring: Colouring{Classes: slices.Repeat([]int32{-1}, m.N)}}, unlabeled},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.s
			s.Embedding, s.HeldOut, s.Alpha, s.PointSize = m, held, 1, 4
			l := layoutOf(t, &s)
			if len(l.layers) != 2 || len(l.layers[0].x) != n || len(l.layers[1].x) != n {
				t.Fatalf("%d layers", len(l.layers))
			}
			below, above := l.layers[0], l.layers[1]
			if above.diameter <= below.diameter || above.outline <= 0 || above.alpha != 1 {
				t.Errorf("held-out points have the diameter %v, the others %v; outline %v, opacity %v", above.diameter, below.diameter, above.outline, above.alpha)
			}
			img := decode(t, &s)
			at := func(x, y float64) color.NRGBA {
				return img.NRGBAAt(int(x/72*200), int((l.height-y)/72*200))
			}
			for i := range above.x {
				x, y := above.x[i], above.y[i]
				if got := at(x, y); got != tc.colour {
					t.Fatalf("a held-out point is %v, want %v", got, tc.colour)
				}
				if got, want := at(x, y+above.diameter/2-above.outline/2), shade(tc.colour); apart(got, want, eyes["normal"]) > 0.1 {
					t.Fatalf("its rim is %v, want %v", got, want)
				}
			}
			tinted := 0
			for i := range below.x {
				if at(below.x[i], below.y[i]) == tint(tc.colour) {
					tinted++
				}
			}
			if tinted != n/2 && tc.colour != unlabeled { // whose tint is the same
				t.Errorf("%d other points show, want %d", tinted, n/2)
			}
			svg := write(t, &s, SVG)
			if err := wellFormed(svg); err != nil {
				t.Error(err)
			}
			contains(t, svg, ">training</text>", ">held out</text>")
			if got := bytes.Count(svg, []byte("h0")); got != 3*n { // with a rim each
				t.Errorf("%d dots in the SVG, want %d", got, 3*n)
			}
			rim := fmt.Sprintf(`<path stroke="%s" d="`, hex(shade(tc.colour)))
			fill := fmt.Sprintf(`<path stroke="%s" stroke-width="%s" d="`, hex(tc.colour), short(above.diameter-2*above.outline))
			last := bytes.LastIndex(svg, fmt.Appendf(nil, `<path stroke="%s" d="`, hex(tint(tc.colour))))
			if first := bytes.Index(svg, []byte(rim)); first < last || bytes.Index(svg, []byte(fill)) < first {
				t.Error("in the SVG, held-out points do not lie above the others, or not above their rims")
			}
		})
	}
}

// Points of one kind need not be told apart.
func TestHeldOutOfOneKind(t *testing.T) {
	m, classes := clusters(3, 20, 2)
	want := write(t, &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}}, SVG)
	for _, kind := range []bool{false, true} {
		s := &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}, HeldOut: slices.Repeat([]bool{kind}, m.N)}
		if !bytes.Equal(write(t, s, SVG), want) {
			t.Errorf("all held out is %v: the picture is another", kind)
		}
	}
}

// However many held-out points there are, they are larger than the others, and
// their rims do not blacken the picture.
func TestHeldOutSizes(t *testing.T) {
	const area = 340 * 320
	last := math.Inf(1)
	for _, n := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		s := &Scatter{Embedding: data.NewMatrix(60_000+n, 2), HeldOut: make([]bool, 60_000+n)}
		for i := range n {
			s.HeldOut[i] = true
		}
		layers := s.layers([]color.NRGBA{single}, area)
		below, above := layers[0], layers[1]
		if r := above.diameter / below.diameter; r < 1.29 || r > 3.01 {
			t.Errorf("%d held out: they are %.2f times as large as the others", n, r)
		}
		if rims := float64(n) * math.Pi * above.diameter * above.outline; rims > 0.051*area || above.outline > above.diameter/5 {
			t.Errorf("%d held out: rims of %.3f cover %.3f of the picture", n, above.outline, rims/area)
		}
		if above.outline > last || (above.outline == 0) != (n > 50_000) {
			t.Errorf("%d held out: rims are %.3f wide", n, above.outline)
		}
		last = above.outline
	}
}

func TestNoClassCoversAnother(t *testing.T) {
	const n = 2000
	m := data.NewMatrix(n, 2)
	classes := make([]int32, n)
	s := rng.New(1, rng.Init)
	for i := range n {
		if i < n/2 {
			m.Row(i)[0], m.Row(i)[1] = float32(s.Float64()), float32(s.Float64())
		} else {
			copy(m.Row(i), m.Row(i-n/2))
			classes[i] = 1
		}
	}
	count := func(seed uint64) (pixels [2]int) {
		img := decode(t, &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}, Alpha: 1, Seed: seed})
		for y := range img.Bounds().Dy() {
			for x := range 960 { // left of the legend
				for c := range pixels {
					if img.NRGBAAt(x, y) == ClassColour(c) {
						pixels[c]++
					}
				}
			}
		}
		return pixels
	}
	if p := count(1); float64(p[0]) < 0.4*float64(p[0]+p[1]) || float64(p[1]) < 0.4*float64(p[0]+p[1]) {
		t.Errorf("pixels of two classes at the same places: %v", p)
	}
	for i := range n / 2 {
		classes[i] = -1
	}
	only := &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}, Alpha: 1}
	l := layoutOf(t, only)
	if r := extent(inBox(decode(t, only), l), unlabeled); !r.Empty() {
		t.Errorf("points without a class cover others at %v", r)
	}
}

func TestBackground(t *testing.T) {
	s := &Scatter{Embedding: points(0, 0, 1, 1), Alpha: 0.5, PointSize: 50}
	img := decode(t, s)
	if got, want := img.NRGBAAt(0, 0), (color.NRGBA{255, 255, 255, 255}); got != want {
		t.Errorf("corner is %v, want %v", got, want)
	}
	if svg := write(t, s, SVG); !bytes.Contains(svg, []byte(`<rect width="100%" height="100%" fill="#ffffff"/>`)) {
		t.Error("no background in the SVG")
	}
	// The middle of the lower left point, at half opacity.
	mix := func(c uint8) uint8 { return uint8((int(c) + 255) / 2) }
	half := color.NRGBA{mix(single.R), mix(single.G), mix(single.B), 255}
	l, _ := s.layout()
	p := l.layers[0]
	i := slices.Index(p.x, slices.Min(p.x))
	got := img.NRGBAAt(int(p.x[i]/72*200), int((l.height-p.y[i])/72*200))
	for k, d := range []int{int(got.R) - int(half.R), int(got.G) - int(half.G), int(got.B) - int(half.B), int(got.A) - int(half.A)} {
		if d < -2 || d > 2 {
			t.Errorf("channel %d of a point is off by %d: %v, want %v", k, d, got, half)
		}
	}
}

// The area of a disc is right wherever it lies between the pixels.
func TestDiscArea(t *testing.T) {
	for _, r := range []float64{0.5, 1, 1.4, 3, 10} {
		for _, offset := range []float64{0, 0.3, 0.5, 0.77} {
			img := image.NewRGBA(image.Rect(0, 0, 30, 30))
			disc(img, 15+offset, 15+offset/2, r, color.NRGBA{0, 0, 0, 255}, 1)
			var area float64
			for i := 3; i < len(img.Pix); i += 4 {
				area += float64(img.Pix[i]) / 255
			}
			want := math.Pi * (r*r + 1./12) // a linear rim adds 1/12
			if math.Abs(area/want-1) > 0.15/r {
				t.Errorf("radius %v at %v: area %v, want %v", r, offset, area, want)
			}
		}
	}
	// Discs across or beyond the border do no harm.
	img := image.NewRGBA(image.Rect(0, 0, 4, 4))
	for _, at := range []float64{-100, -1, 0, 4, 100} {
		disc(img, at, at, 2, single, 1)
	}
}

func TestDegenerate(t *testing.T) {
	line := func(x ...float32) *data.Matrix { return &data.Matrix{N: len(x), D: 1, X: x} }
	nan := math.NaN()
	for name, s := range map[string]Scatter{
		"one point":         {Embedding: points(3, 4)},
		"one class":         {Embedding: points(3, 4), Colouring: Colouring{Classes: []int32{1 << 30}}},
		"no class":          {Embedding: points(3, 4), Colouring: Colouring{Classes: []int32{-1}}},
		"one value":         {Embedding: points(3, 4), Colouring: Colouring{Values: []float64{7}}},
		"no value":          {Embedding: points(3, 4), Colouring: Colouring{Values: []float64{nan}}},
		"some values":       {Embedding: points(3, 4, 5, 6), Colouring: Colouring{Values: []float64{nan, 2}}},
		"extreme values":    {Embedding: points(3, 4, 5, 6), Colouring: Colouring{Values: []float64{-math.MaxFloat64, math.MaxFloat64}}},
		"all equal":         {Embedding: points(3, 4, 3, 4, 3, 4)},
		"all on a vertical": {Embedding: points(3, 1, 3, 2, 3, 3)},
		"far apart":         {Embedding: points(-math.MaxFloat32, 0, math.MaxFloat32, 0)},
		"close together":    {Embedding: points(0, 0, math.SmallestNonzeroFloat32, 0)},
		"line":              {Embedding: line(1, 2, 3)},
		"line, equal":       {Embedding: line(2, 2)},
		"line, far apart":   {Embedding: line(-math.MaxFloat32, math.MaxFloat32)},
		"line, one point":   {Embedding: line(2)},
		"space, one point":  {Embedding: &data.Matrix{N: 1, D: 3, X: []float32{1, 2, 3}}},
		"space, all equal":  {Embedding: &data.Matrix{N: 2, D: 3, X: []float32{1, 2, 3, 1, 2, 3}}},
		"space, a line":     {Embedding: &data.Matrix{N: 3, D: 3, X: []float32{1, 2, 3, 2, 4, 6, 3, 6, 9}}},
		"space, far apart":  {Embedding: &data.Matrix{N: 2, D: 3, X: slices.Repeat([]float32{math.MaxFloat32, -math.MaxFloat32}, 3)}},
		"smallest":          {Embedding: points(1, 2), Width: 1, Height: 1, DPI: 10},
	} {
		t.Run(name, func(t *testing.T) {
			s.DPI = cmp.Or(s.DPI, 72)
			img := decode(t, &s)
			colours := map[color.NRGBA]bool{}
			for y := range img.Bounds().Dy() {
				for x := range img.Bounds().Dx() {
					colours[img.NRGBAAt(x, y)] = true
				}
			}
			if len(colours) < 3 {
				t.Errorf("only %d colours: points or scale bar are missing", len(colours))
			}
			svg := write(t, &s, SVG)
			if n := bytes.Count(svg, []byte("h0")); n != s.Embedding.N {
				t.Errorf("%d points in the SVG, want %d", n, s.Embedding.N)
			}
			if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
				t.Error("the SVG has a place that is not a number")
			}
		})
	}
}

func TestLegend(t *testing.T) {
	m, classes := clusters(41, 3, 2)
	if bytes.Contains(write(t, &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}}, SVG), []byte(">40</text>")) {
		t.Error("41 classes have a legend")
	}
	classes[len(classes)-1], classes[len(classes)-2], classes[len(classes)-3] = 0, 0, 0
	contains(t, write(t, &Scatter{Embedding: m, Colouring: Colouring{Classes: classes, ClassNames: []string{"zero & <one>", "", "two"}}}, SVG),
		">zero &amp; &lt;one&gt;</text>", ">two</text>", ">1</text>", ">3</text>", ">39</text>")
	values := make([]float64, m.N)
	for i := range values {
		values[i] = float64(i) / float64(m.N) // up to just below 1
	}
	contains(t, write(t, &Scatter{Embedding: m, Colouring: Colouring{Values: values}}, SVG), ">0</text>", ">0.2</text>", ">0.4</text>", ">0.6</text>", ">0.8</text>")
}

// The scale of dates has years, days, or times of a day.
func TestLegendOfDates(t *testing.T) {
	m := points(0, 0, 1, 1, 2, 0)
	for _, x := range []struct {
		low, high float64 // years
		want      []string
	}{
		{1950, 1999, []string{">1960</text>", ">1980</text>"}},
		{2024.01, 2024.81, []string{">2024-03-14</text>", ">2024-10-19</text>"}},
		{2024 + 2/365.2425, 2024 + 5/365.2425, []string{">2024-01-05 11:28</text>"}},
	} {
		values := []float64{x.low, x.high, math.NaN()}
		contains(t, write(t, &Scatter{Embedding: m, Colouring: Colouring{Values: values, Dates: true}}, SVG), x.want...)
		contains(t, write(t, &Strip{Panels: []*Scatter{{Embedding: m, Colouring: Colouring{Values: values, Dates: true}}}}, SVG), x.want...)
	}
}

// The legend explains grey points if there are any.
func TestLegendOfGreyPoints(t *testing.T) {
	m := points(0, 0, 1, 1, 2, 0)
	nan := math.NaN()
	for name, tc := range map[string]struct {
		s    Scatter
		want bool
	}{
		"classes":            {Scatter{Colouring: Colouring{Classes: []int32{0, 1, 1}}}, false},
		"some have none":     {Scatter{Colouring: Colouring{Classes: []int32{0, -1, 1}}}, true},
		"none has any":       {Scatter{Colouring: Colouring{Classes: []int32{-1, -1, -1}}}, false},
		"values":             {Scatter{Colouring: Colouring{Values: []float64{1, 2, 3}}}, false},
		"some have no value": {Scatter{Colouring: Colouring{Values: []float64{nan, 2, 3}}}, true},
		"no value at all":    {Scatter{Colouring: Colouring{Values: []float64{nan, nan, nan}}}, false},
		"little room":        {Scatter{Colouring: Colouring{Values: []float64{nan, 2, 3}}, Height: 1}, true},
	} {
		tc.s.Embedding = m
		if got := strings.Contains(string(write(t, &tc.s, SVG)), ">"+NoLabel+"</text>"); got != tc.want {
			t.Errorf("%s: the legend tells of points without a label: %v", name, got)
		}
		l := layoutOf(t, &tc.s)
		edge := int(l.box.x1 / 72 * 200)
		img := decode(t, &tc.s)
		grey := extent(crop(img, image.Rect(edge, 0, img.Bounds().Max.X, img.Bounds().Max.Y)), unlabeled)
		// Single pixels on the rims of letters may have that shade, too.
		if (grey.Dx() > 10) != tc.want || grey.Max.Y > img.Bounds().Max.Y-20 {
			t.Errorf("%s: the legend has grey at %v of %v", name, grey, img.Bounds().Max)
		}
	}
}

// shownTexts returns the texts of a picture in the order of drawing, the length
// of the scale bar left out.
func shownTexts(t *testing.T, s *Scatter) []string {
	t.Helper()
	parts := strings.Split(string(write(t, s, SVG)), "</text>")
	for i, part := range parts {
		parts[i] = part[strings.LastIndexByte(part, '>')+1:]
	}
	return parts[:len(parts)-2]
}

// Long names of classes are told apart by their ends.
func TestLongNames(t *testing.T) {
	m, classes := clusters(2, 20, 2)
	long := "k__Bacteria;p__Firmicutes;c__Bacilli;o__Lactobacillales;f__Lactobacillaceae;g__"
	got := shownTexts(t, &Scatter{Embedding: m, Colouring: Colouring{Classes: classes, ClassNames: []string{long + "Weissella", long + "Leuconostoc"}}})
	for i, end := range []string{"Weissella", "Leuconostoc"} {
		if !strings.HasPrefix(got[i], "k__Bacteria") || !strings.Contains(got[i], "…") || !strings.HasSuffix(got[i], end[2:]) {
			t.Errorf("got %q, want the beginning and %s", got[i], end)
		}
	}
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("title ", 50)
	const plane = "first 2 of 8 principal axes of the embedding, 25 % of its variance"
	for name, tc := range map[string]struct {
		d      int
		title  string
		note   string
		prefix string
		within string
	}{
		"plain":     {2, "a\tb\n", "", "a b", "a b"},
		"none":      {2, " ", "", "", ""},
		"note":      {8, "", plane, "", ""},
		"with note": {8, "T", plane, "T", "T"},
		"density":   {1, "T", "one coordinate; height: density of points", "T", "T"},
		"cut":       {2, long, "", "title title", "…"},
		"very long": {2, strings.Repeat("long ", 1_000_000), "", "long long", "…"},
		"marks":     {2, "e" + strings.Repeat("\u0301", 1_000_000), "", "e\u0301", "…"},
		"both long": {8, long, plane, "title title", "…"},
	} {
		// The corners of a cross: equal variance along all axes.
		m := data.NewMatrix(2*tc.d, tc.d)
		for i := range tc.d {
			m.Row(2 * i)[i], m.Row(2*i + 1)[i] = 1, -1
		}
		got := shownTexts(t, &Scatter{Embedding: m, Title: tc.title})
		var title, note string
		if tc.note != "" && len(got) > 0 {
			note, got = got[0], got[1:]
		}
		if len(got) > 0 {
			title = got[0]
		}
		if note != tc.note || len(got) > 1 || (title == "") != (tc.prefix == "") ||
			!strings.HasPrefix(title, tc.prefix) || !strings.Contains(title, tc.within) || titleStyle.Width(title) > 340 || len(title) > 4000 {
			t.Errorf("%s: title %q, note %q", name, title, note)
		}
	}
	// Title and note do not cover each other or the points.
	m, _ := clusters(2, 50, 3)
	heights := map[string]float64{}
	for _, s := range []*Scatter{{Embedding: m}, {Embedding: m, Title: "T"}} {
		l := layoutOf(t, s)
		heights[s.Title] = l.box.y1
	}
	if heights["T"] != heights[""]-titleHeight || heights[""] > defaultSide-margin-noteHeight {
		t.Errorf("the points reach up to %v", heights)
	}
}

// Points of more than two coordinates are drawn in the plane where they spread, wherever
// that lies.
func TestPrincipalPlane(t *testing.T) {
	const n = 60
	flat := points(make([]float32, 2*n)...)
	tilted := data.NewMatrix(n, 5)
	stream := rng.New(3, rng.Init)
	for i := range n {
		x, y := 10*stream.Normal(), 3*stream.Normal()
		flat.Row(i)[0], flat.Row(i)[1] = float32(x), float32(y)
		copy(tilted.Row(i), []float32{1000, float32(0.6 * x), float32(0.8 * x), float32(0.6 * y), float32(-0.8*y) + 7})
	}
	a, aNote, err1 := (&Scatter{Embedding: flat}).Plane()
	b, note, err2 := (&Scatter{Embedding: tilted}).Plane()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if want := "first 2 of 5 principal axes of the embedding, 100 % of its variance"; note != want || aNote != "" {
		t.Errorf("notes %q and %q, want none and %q", aNote, note, want)
	}
	for i := range n {
		for j := range i {
			da := math.Hypot(a[2*i]-a[2*j], a[2*i+1]-a[2*j+1])
			db := math.Hypot(b[2*i]-b[2*j], b[2*i+1]-b[2*j+1])
			if math.Abs(da-db) > 1e-3 {
				t.Fatalf("points %d and %d are %g apart, drawn %g apart", i, j, da, db)
			}
		}
	}
}

// Points of a single coordinate stand as high as they are dense.
func TestStanding(t *testing.T) {
	var x []float32
	for i := range 3000 { // two thirds in [0, 10), the rest in [10, 20)
		if x = append(x, float32(i%1000)/100); i >= 2000 {
			x[i] += 10
		}
	}
	s := &Scatter{Embedding: &data.Matrix{N: len(x), D: 1, X: x}}
	xy, _, err := s.Plane()
	must(t, err)
	var low, high float64 // highest points of either half
	for i, x := range x {
		if xy[2*i] != float64(x) || xy[2*i+1] < 0 {
			t.Fatalf("the point %g is drawn at %v", x, xy[2*i:2*i+2])
		}
		if x > 1 && x < 9 {
			high = max(high, xy[2*i+1])
		}
		if x > 11 && x < 19 {
			low = max(low, xy[2*i+1])
		}
	}
	if high < 4.7 || high > 5 || math.Abs(low/high-0.5) > 0.05 {
		t.Errorf("where points are twice as dense they reach %g, and %g elsewhere", high, low)
	}
}

// wellFormed parses a document to its end.
func wellFormed(svg []byte) error {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestSVG(t *testing.T) {
	m, classes := clusters(10, 2000, 2)
	s := &Scatter{Embedding: m, Colouring: Colouring{Classes: classes}}
	svg := write(t, s, SVG)
	if err := wellFormed(svg); err != nil {
		t.Error(err)
	}
	if n := bytes.Count(svg, []byte("h0")); 1000*n < 995*m.N || n > m.N {
		t.Errorf("%d points, want nearly all %d", n, m.N)
	}
	if per := len(svg) / m.N; per > 20 {
		t.Errorf("%d bytes per point", per)
	}
	// Every point is where the layout has it.
	l, _ := s.layout()
	want := map[string]int{}
	p := l.layers[0]
	for i := range p.x {
		want[short(p.x[i])+" "+short(l.height-p.y[i])]++
	}
	for _, path := range strings.Split(string(svg), ` d="`)[1:] {
		d, _, _ := strings.Cut(path, `"`)
		if !strings.Contains(d, "h0") {
			continue
		}
		for _, at := range strings.Split(d, "M")[1:] {
			want[strings.TrimSuffix(at, "h0")]--
		}
	}
	for at, n := range want {
		if n != 0 {
			t.Fatalf("place %s occurs %d times too few", at, n)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 10: "10", 100: "100", 1.5: "1.5", 1.25: "1.25", 1.256: "1.26", 0.004: "0", 0.9: "0.9"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), math.Inf(1)
	m := points(0, 0, 1, 1)
	of := func(s Series) []Panel { return []Panel{{Title: "loss", Series: []Series{s}}} }
	logY := func(s Series) []Panel { p := of(s); p[0].LogY = true; return p }
	dense := many(DenseFrom)
	dense.Width, dense.Height, dense.DPI = 100, 100, 1200
	for name, tc := range map[string]struct {
		p    picture
		is   error
		want string
	}{
		"no embedding":            {&Scatter{}, ErrInput, "points: got none"},
		"no points":               {&Scatter{Embedding: data.NewMatrix(0, 2)}, ErrInput, "points: got none"},
		"no coordinates":          {&Scatter{Embedding: &data.Matrix{N: 1}}, ErrInput, "embedding: got 0 numbers, want 1 points of 0 coordinates"},
		"too few numbers":         {&Scatter{Embedding: &data.Matrix{N: 3, D: 2, X: make([]float32, 4)}}, ErrInput, "embedding: got 4 numbers, want 3 points of 2 coordinates"},
		"NaN":                     {&Scatter{Embedding: points(0, 0, 0, nan)}, ErrNotFinite, "row 1 of the embedding (counted from 0): got NaN as coordinate 1"},
		"NaN beyond two":          {&Scatter{Embedding: &data.Matrix{N: 1, D: 3, X: []float32{1, 2, nan}}}, ErrNotFinite, "row 0 of the embedding (counted from 0): got NaN as coordinate 2"},
		"infinite":                {&Scatter{Embedding: points(float32(inf), 0)}, ErrNotFinite, "row 0 of the embedding"},
		"infinite value":          {&Scatter{Embedding: m, Colouring: Colouring{Values: []float64{1, inf}}}, ErrNotFinite, "row 1 (counted from 0): got the value +Inf"},
		"classes":                 {&Scatter{Embedding: m, Colouring: Colouring{Classes: make([]int32, 3)}}, ErrInput, "classes: got 3, want 2, one for each point"},
		"values":                  {&Scatter{Embedding: m, Colouring: Colouring{Values: make([]float64, 3)}}, ErrInput, "values: got 3, want 2, one for each point"},
		"held out":                {&Scatter{Embedding: m, HeldOut: make([]bool, 3)}, ErrInput, "HeldOut: got 3, want 2, one for each point"},
		"no room for key":         {&Scatter{Embedding: m, HeldOut: []bool{true, false}, Width: 1}, ErrInput, "size: got 2.54 × 12.7 cm, too small for points with legend, title and scale bar"},
		"both":                    {&Scatter{Embedding: m, Colouring: Colouring{Classes: make([]int32, 2), Values: make([]float64, 2)}}, ErrInput, "Classes and Values: got both, want one of them"},
		"width":                   {&Scatter{Embedding: m, Width: -1}, ErrInput, "Width: got -1, want a number up to 100, or 0 for the default"},
		"height":                  {&Scatter{Embedding: m, Height: math.NaN()}, ErrInput, "Height: got NaN, want a number up to 100, or 0 for the default"},
		"DPI":                     {&Scatter{Embedding: m, DPI: 5000}, ErrInput, "DPI: got 5000, want a number up to 1200, or 0 for the default"},
		"size":                    {&Scatter{Embedding: m, PointSize: inf}, ErrInput, "PointSize: got +Inf, want a number up to 100, or 0 for the default"},
		"alpha":                   {&Scatter{Embedding: m, Alpha: 1.5}, ErrInput, "Alpha: got 1.5, want a number up to 1, or 0 for the default"},
		"pixels":                  {&Scatter{Embedding: m, Width: 100, Height: 100, DPI: 300}, ErrInput, "pixels, want at most 2e+08"},
		"dense":                   {dense, ErrInput, "100 × 100 inches at 1200 DPI: got 1.44e+10 pixels, want at most 2e+08"},
		"no room":                 {&Scatter{Embedding: m, Colouring: Colouring{Classes: []int32{0, 1}}, Width: 0.7}, ErrInput, "size: got 1.78 × 12.7 cm, too small for points with legend, title and scale bar"},
		"curves, no panels":       {&Curves{}, ErrInput, "panels: got none"},
		"curves, no series":       {&Curves{Panels: []Panel{{Title: "loss"}}}, ErrInput, `points: got none`},
		"curves, no number":       {&Curves{Panels: of(Series{X: []float64{1}, Y: []float64{math.NaN()}})}, ErrInput, "points: got none"},
		"curves, NaN in X":        {&Curves{Panels: of(Series{X: []float64{math.NaN()}, Y: []float64{1}})}, ErrNotFinite, "NaN in X at point 0"},
		"curves, infinite Y":      {&Curves{Panels: of(Series{X: []float64{1}, Y: []float64{inf}})}, ErrNotFinite, "+Inf in Y"},
		"curves, zero on log":     {&Curves{Panels: logY(Series{X: []float64{1, 2}, Y: []float64{1, 0}})}, ErrInput, "series 1 (\"\"): got 0 in Y at point 1 (counted from 0), want a positive number on a logarithmic axis"},
		"curves, low on log":      {&Curves{Panels: logY(Series{X: []float64{1}, Y: []float64{1}, Low: []float64{-1}, High: []float64{2}})}, ErrInput, "-1 in Low"},
		"curves, too small":       {&Curves{Width: 1, Panels: of(falling("", 2))}, ErrInput, "size: got 2.54 × 6.29 cm, too small for 1 × 1 panels with numbers, titles and legend"},
		"curves, negative DPI":    {&Curves{DPI: -1, Panels: of(falling("", 2))}, ErrInput, "DPI: got -1, want a number up to 1200, or 0 for the default"},
		"curves, wide":            {&Curves{Width: 101, Panels: of(falling("", 2))}, ErrInput, "Width: got 101, want a number up to 100, or 0 for the default"},
		"curves, too many pixels": {&Curves{Width: 100, Height: 100, DPI: 1200, Panels: of(falling("", 2))}, ErrInput, "pixels, want at most 2e+08"},
		"strip, no panels":        {&Strip{}, ErrInput, ""},
		"strip, columns":          {&Strip{Panels: []*Scatter{row(1, "")}, Columns: -1}, ErrInput, ""},
		"strip, width":            {&Strip{Panels: []*Scatter{row(1, "")}, Width: 101}, ErrInput, ""},
		"strip, cells":            {&Strip{Panels: []*Scatter{row(1, ""), row(1, "")}, Cells: []int{2, 1}}, ErrInput, ""},
		"strip, too few cells":    {&Strip{Panels: []*Scatter{row(1, ""), row(1, "")}, Cells: []int{2}}, ErrInput, ""},
		"strip, resolution":       {&Strip{Panels: []*Scatter{row(1, "")}, DPI: 1201}, ErrInput, ""},
		"strip, missing number":   {&Strip{Panels: []*Scatter{{Embedding: &data.Matrix{N: 1, D: 2, X: []float32{1}}}}}, ErrInput, ""},
	} {
		format := PNG
		if tc.p == dense {
			format = SVG // whose points are an image
		}
		var b bytes.Buffer
		if err := tc.p.Write(&b, format); !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) || b.Len() > 0 {
			t.Errorf("%s: error %v after %d bytes, want one with %q", name, err, b.Len(), tc.want)
		}
	}
	for _, p := range []picture{&Scatter{Embedding: m}, &Strip{Panels: []*Scatter{row(1, "")}}} {
		if err := p.Write(io.Discard, "jpg"); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `got "jpg", want png, svg or pdf`) {
			t.Errorf("jpg: %v", err)
		}
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	s := &Curves{Panels: []Panel{{Series: []Series{{X: []float64{0, 1}, Y: []float64{1, 2}}}}}}
	for name, magic := range map[string]string{"a.png": "\x89PNG", "b.SVG": "<?xml", "c.pdf": "%PDF-"} {
		path := filepath.Join(dir, name)
		for range 2 { // the second time over the first
			must(t, s.Save(path))
		}
		if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), magic) {
			t.Errorf("%s: begins with %.5q, %v", name, b, err)
		}
	}
	for _, name := range []string{"d.gif", "plot", filepath.Join("no", "such.png")} {
		path := filepath.Join(dir, name)
		if err := s.Save(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not name it", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("files are left: %v", left)
	}
}

// Any text in title and names gives a well-formed document that shows it.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a<b>&\"'", "\x00\x1f\x7f", "\xff\xfe", "\ufffe\uffff", "日本語 ☃ é", "]]>", "a\nb", strings.Repeat("w", 1000), "%d %s", "\u202e\u2028"} {
		f.Add(s)
	}
	e := points(0, 0, 1, 1)
	f.Fuzz(func(t *testing.T, text string) {
		s := &Scatter{Embedding: e, Colouring: Colouring{Classes: []int32{0, 1}, ClassNames: []string{text}}, Title: text}
		if err := wellFormed(write(t, s, SVG)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		write(t, s, PDF)
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{DenseFrom - 1, 1_000_000} {
		s := many(n)
		for _, format := range []Format{PNG, SVG} {
			b.Run(fmt.Sprint(n, format), func(b *testing.B) {
				for b.Loop() {
					must(b, s.Write(io.Discard, format))
				}
			})
		}
	}
}
