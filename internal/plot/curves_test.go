package plot

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"cne/internal/rng"
)

// falling returns a series of n points of the curve 1/x.
func falling(name string, n int) Series {
	s := Series{Name: name}
	for i := range n {
		s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, 1/float64(i+1))
	}
	return s
}

// drawn returns what is drawn in the charts of c: lines and dots by colour, in
// the order of drawing.
func drawn(t *testing.T, c *Curves) (lines, dots map[color.Color][]vg.Path, boxes []vg.Rectangle) {
	t.Helper()
	l := layoutOf(t, c)
	canvas := new(recorder.Canvas)
	to := draw.NewCanvas(canvas, vg.Length(l.width), vg.Length(l.height))
	for _, f := range l.furniture {
		f(to)
	}
	lines, dots = make(map[color.Color][]vg.Path), make(map[color.Color][]vg.Path)
	var now color.Color
	for _, a := range canvas.Actions {
		switch a := a.(type) {
		case *recorder.SetColor:
			now = a.Color
		case *recorder.Stroke:
			lines[now] = append(lines[now], a.Path)
		case *recorder.Fill:
			dots[now] = append(dots[now], a.Path)
		}
	}
	// An axis is a line in ink that is longer than a tick; the two of a chart
	// follow each other.
	var axes []vg.Path
	for _, p := range lines[color.Color(ink)] {
		if math.Hypot(float64(p[1].Pos.X-p[0].Pos.X), float64(p[1].Pos.Y-p[0].Pos.Y)) > 2*tickLength {
			axes = append(axes, p)
		}
	}
	for i := 0; i+1 < len(axes); i += 2 {
		boxes = append(boxes, vg.Rectangle{Min: axes[i][0].Pos, Max: vg.Point{X: axes[i][1].Pos.X, Y: axes[i+1][1].Pos.Y}})
	}
	return lines, dots, boxes
}

// Lines stand where the axes say: ten times as far on a logarithmic one, and
// gaps where there is no number.
func TestCurvesPlace(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		logX, logY bool
		x, y       []float64
		shares     [][2]float64 // of the way from the first to the last point
		lines      []int        // lengths
	}{
		"linear": {false, false, []float64{0, 1, 4}, []float64{10, 20, 50}, [][2]float64{{0, 0}, {0.25, 0.25}, {1, 1}}, []int{3}},
		"logY":   {false, true, []float64{0, 1, 4}, []float64{1, 100, 1e4}, [][2]float64{{0, 0}, {0.25, 0.5}, {1, 1}}, []int{3}},
		"logX":   {true, false, []float64{0.01, 0.1, 10}, []float64{0, 1, 4}, [][2]float64{{0, 0}, {1. / 3, 0.25}, {1, 1}}, []int{3}},
		"both":   {true, true, []float64{1, 10, 1000}, []float64{1e-6, 1e-3, 1}, [][2]float64{{0, 0}, {1. / 3, 0.5}, {1, 1}}, []int{3}},
		"gap":    {false, false, []float64{0, 1, 2, 3, 4}, []float64{0, 1, nan, 3, 4}, [][2]float64{{0, 0}, {0.25, 0.25}, {0.75, 0.75}, {1, 1}}, []int{2, 2}},
		"huge":   {false, false, []float64{0, 1, 4}, []float64{-math.MaxFloat64, 0, math.MaxFloat64}, [][2]float64{{0, 0}, {0.25, 0.5}, {1, 1}}, []int{3}},
		"tiny":   {false, true, []float64{0, 1, 2}, []float64{1e-300, 1, 1e200}, [][2]float64{{0, 0}, {0.5, 0.6}, {1, 1}}, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, _, boxes := drawn(t, &Curves{Panels: []Panel{{LogX: tc.logX, LogY: tc.logY, Series: []Series{{X: tc.x, Y: tc.y}}}}})
			var points []vg.Point
			var lengths []int
			for _, p := range lines[color.Color(ClassColour(0))] {
				lengths = append(lengths, len(p))
				for _, c := range p {
					points = append(points, c.Pos)
				}
			}
			if !slices.Equal(lengths, tc.lines) || len(points) != len(tc.shares) || len(boxes) != 1 {
				t.Fatalf("lines of %v points, want %v", lengths, tc.lines)
			}
			first, last := points[0], points[len(points)-1]
			for i, p := range points {
				if p.X < boxes[0].Min.X || p.X > boxes[0].Max.X || p.Y < boxes[0].Min.Y || p.Y > boxes[0].Max.Y {
					t.Errorf("point %d at %v leaves the axes %v", i, p, boxes[0])
				}
				x, y := float64((p.X-first.X)/(last.X-first.X)), float64((p.Y-first.Y)/(last.Y-first.Y))
				if math.Abs(x-tc.shares[i][0]) > 1e-4 || math.Abs(y-tc.shares[i][1]) > 1e-4 {
					t.Errorf("point %d is at %v, %v of the way, want %v", i, x, y, tc.shares[i])
				}
			}
		})
	}
}

// The numbers at an axis stand in order at round values within it, with room for them.
func TestAxisTicks(t *testing.T) {
	numbers := func(log bool, values ...float64) string {
		t.Helper()
		a := gonum.New().X
		a.Min, a.Max = scaled(slices.Min(values), log), scaled(slices.Max(values), log)
		setAxis(&a, "", ticks{log: log, length: 160, horizontal: true})
		if !(a.Norm(scaled(values[0], log)) > 0 && a.Norm(a.Max) == 1) {
			t.Errorf("%v: from %v to %v", values, a.Min, a.Max)
		}
		var said []string
		before := a.Min
		all := a.Tick.Marker.Ticks(a.Min, a.Max)
		for _, tick := range all {
			if tick.Value < before || tick.Value > a.Max {
				t.Fatalf("%v: ticks %v leave the axis or are out of order", values, all)
			}
			before = tick.Value
			if tick.IsMinor() {
				continue
			}
			text := tick.Label
			if strings.ContainsAny(text, raised) {
				text = "1e" + strings.ReplaceAll(strings.TrimPrefix(lower.Replace(text), "10"), "−", "-")
			}
			if v, err := strconv.ParseFloat(text, 64); err != nil || len(all) > 1 && math.Abs(scaled(v, log)-tick.Value) > 1e-12*max(1, math.Abs(v)) {
				t.Fatalf("%v: %s stands at %v", values, tick.Label, tick.Value)
			}
			said = append(said, tick.Label)
		}
		if len(said) < 1 || len(said) > 8 {
			t.Errorf("%v: %d numbers", values, len(said))
		}
		return strings.Join(said, " ")
	}
	s := rng.New(3, rng.Init)
	for range 500 {
		low := 100 * s.Normal()
		numbers(false, low, low+math.Exp(4*s.Normal()))
		low = math.Exp(20 * s.Normal())
		numbers(true, low, low*(1+math.Exp(6*s.Normal())))
	}
	for _, v := range []float64{0, 1, -3, 1e300, 5e-324, 1e15 + 1} {
		numbers(false, v)
	}
	for _, v := range []float64{1, 10, 12345, 1e300, 1e308} {
		numbers(true, v)
		numbers(true, v, v*(1+1e-11))
		numbers(false, v, v*(1+1e-11))
	}
	for want, values := range map[string][]float64{
		"10⁴ 10⁵ 10⁶ 10⁷":       {1e4, 1e7},
		"10⁻² 10⁻¹ 10⁰ 10¹ 10²": {0.01, 100},
		"20 50 100 200":         {15, 300},
		"150 200 250 300":       {140, 310},
	} {
		if got := numbers(true, values...); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
}

// Series of one name have one colour and one entry in the legend; error
// bars lie about their lines.
func TestCurvesSeries(t *testing.T) {
	a, b, c := falling("a", 4), falling("b", 4), falling("", 4)
	b.Low, b.High = []float64{0.9, 0.4, 0.3, 0.2}, []float64{1.1, 0.6, 0.4, 0.3}
	a.Marker = true
	a.Low, a.High = b.Low, slices.Clone(b.High)
	a.High[2] = math.NaN()
	curves := &Curves{Panels: []Panel{
		{Series: []Series{a, c, b}},
		{Series: []Series{b, a}, Marks: []Mark{{X: 2, Name: "two"}}},
	}}
	lines, dots, boxes := drawn(t, curves)
	if len(boxes) != 2 {
		t.Fatalf("%d charts, want 2", len(boxes))
	}
	colourA, colourC, colourB := color.Color(ClassColour(0)), color.Color(ClassColour(1)), color.Color(ClassColour(2))
	// In each chart a line and three bars; one line in the legend.
	for what, n := range map[string][2]int{
		"lines of a": {len(lines[colourA]), 2*(1+3) + 1}, "dots of a": {len(dots[colourA]), 2*4 + 1},
		"lines of b": {len(lines[colourB]), 2*(1+4) + 1}, "lines of the series without a name": {len(lines[colourC]), 1},
	} {
		if n[0] != n[1] {
			t.Errorf("%d %s, want %d", n[0], what, n[1])
		}
	}
	// A single point shows as a dot, though no line goes through it.
	_, dots, _ = drawn(t, &Curves{Panels: []Panel{{Series: []Series{{X: []float64{1, 2, 3}, Y: []float64{math.NaN(), 5, math.NaN()}}}}}})
	if got := len(dots[colourA]); got != 1 {
		t.Errorf("%d dots, want 1", got)
	}
	svg := string(write(t, curves, SVG))
	for text, want := range map[string]int{">a</text>": 1, ">b</text>": 1, ">two</text>": 1} {
		if got := strings.Count(svg, text); got != want {
			t.Errorf("%q is %d times in the SVG, want %d", text, got, want)
		}
	}
}

func TestCurvesText(t *testing.T) {
	c := &Curves{
		Title: "runs <a> & \"b\" at Z̄ = 10",
		Panels: []Panel{{
			Title: strings.Repeat("long ", 100), XLabel: "Z̄", YLabel: "a Z̄ b", Series: []Series{falling("<script>\x00", 3)},
		}},
	}
	svg := write(t, c, SVG)
	must(t, wellFormed(svg))
	contains(t, svg, "runs &lt;a&gt; &amp; ", "Z = 10", "&lt;script&gt;", "…", ">Z</text>", ">a Z b</text>")
	plain := *c
	plain.Panels = slices.Clone(c.Panels)
	plain.Panels[0].XLabel = "Z"
	if bytes.Equal(write(t, c, PNG), write(t, &plain, PNG)) {
		t.Error("Z̄ looks like Z")
	}
	if !bytes.Equal(write(t, c, PNG), write(t, c, PNG)) || !bytes.Equal(svg, write(t, c, SVG)) {
		t.Error("two drawings differ")
	}
}

// Charts of a row have one height, and charts of a column one left edge.
func TestCurvesAligned(t *testing.T) {
	wide := falling("", 3)
	wide.Y = []float64{123456, 123457, 123458}
	_, _, boxes := drawn(t, &Curves{Panels: []Panel{
		{Title: "t", Series: []Series{falling("", 3)}},
		{Series: []Series{falling("", 3)}},
		{YLabel: "label", Series: []Series{wide}},
		{XLabel: "x", Series: []Series{falling("", 3)}, Marks: []Mark{{1, "m"}}},
	}})
	if len(boxes) != 4 {
		t.Fatalf("%d charts", len(boxes))
	}
	for i, other := range []int{2, 3} {
		if boxes[i].Min.X != boxes[other].Min.X || boxes[i].Max.X != boxes[other].Max.X {
			t.Errorf("%v is not above %v", boxes[i], boxes[other])
		}
	}
	for i := 0; i < 4; i += 2 {
		if boxes[i].Min.Y != boxes[i+1].Min.Y || boxes[i].Max.Y != boxes[i+1].Max.Y {
			t.Errorf("%v is not beside %v", boxes[i], boxes[i+1])
		}
	}
}
