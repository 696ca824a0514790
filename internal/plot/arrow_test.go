package plot

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// withOutliers returns 4000 points of a disk of radius 1, then numbers of points far to the
// left, right, below and above of it.
func withOutliers(counts [4]int) *data.Matrix {
	xy := disk(4000)
	for side, at := range [][2]float64{{-60, 3}, {50, 2}, {2, -70}, {-90, 100}} {
		xy = append(xy, slices.Repeat(at[:], counts[side])...)
	}
	m := data.NewMatrix(len(xy)/2, 2)
	for i, v := range xy {
		m.X[i] = float32(v)
	}
	return m
}

// textsOf returns the texts of an SVG, each once.
func textsOf(svg []byte) []string {
	var texts []string
	for _, part := range strings.Split(string(svg), "<text ")[1:] {
		_, part, _ = strings.Cut(part, ">")
		part, _, _ = strings.Cut(part, "<")
		texts = append(texts, strings.TrimSpace(part))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Outliers do not make the others small: they are outside, and counted at the side beyond
// which they are farthest.
func TestOutliers(t *testing.T) {
	counts := [4]int{2, 1, 5, 6}
	m := withOutliers(counts)
	without := &Scatter{Embedding: m.Rows(0, 4000)}
	scatter := &Scatter{Embedding: m}
	l, plain := layoutOf(t, scatter), layoutOf(t, without)
	if len(l.layers[0].x) != 4000 {
		t.Errorf("%d points are drawn", len(l.layers[0].x))
	}
	if got, want := slices.Max(l.layers[0].x)-slices.Min(l.layers[0].x), slices.Max(plain.layers[0].x)-slices.Min(plain.layers[0].x); got != want {
		t.Errorf("the others are %v wide, want %v as without outliers", got, want)
	}
	svg := write(t, scatter, SVG)
	for _, want := range []string{"2", "1", "5", "6"} {
		if !slices.Contains(textsOf(svg), want) {
			t.Errorf("the picture says %q, want %s among it", textsOf(svg), want)
		}
	}
	if bytes.Count(svg, []byte("h0")) != 4000 {
		t.Error("the SVG has other points")
	}
	if texts := textsOf(write(t, without, SVG)); len(texts) != 1 { // the scale bar's
		t.Errorf("without outliers the picture says %q", texts)
	}
	if !bytes.Equal(write(t, scatter, PNG), write(t, scatter, PNG)) {
		t.Error("two pictures differ")
	}

	// In the middle of each side is a dark triangle.
	img := decode(t, scatter)
	area := l.box
	for side, a := range arrowsOf(counts, area) {
		x, y := a.x-2.5*a.toX, a.y-2.5*a.toY
		dots := float64(img.Rect.Dx()) / l.width
		if c := img.NRGBAAt(int(x*dots), int((l.height-y)*dots)); c != ink {
			t.Errorf("side %d: got %v", side, c)
		}
		if b := a.box(); b.x0 < 0 || b.x1 > l.width || b.y0 < 0 || b.y1 > l.height {
			t.Errorf("the arrow of side %d is at %v", side, b)
		}
	}
}

// A point beyond a corner counts for the side that it is farther from.
func TestBeyond(t *testing.T) {
	b := bounds{-1, 1, -2, 2}
	for _, tc := range []struct {
		x, y float64
		want int
	}{{0, 0, -1}, {1, 2, -1}, {-1.1, 0, 0}, {1.1, 2, 1}, {0, -3, 2}, {0, 3, 3}, {3, 3, 1}, {3, 5, 3}, {-9, -3, 0}} {
		if got := b.beyond(tc.x, tc.y); got != tc.want {
			t.Errorf("%v, %v: got %d, want %d", tc.x, tc.y, got, tc.want)
		}
	}
}

// Also where points are drawn by density, along a line, in a strip and in a film, whose
// frames have one frame.
func TestOutliersElsewhere(t *testing.T) {
	far := withOutliers([4]int{0, 5, 0, 0})
	dense := data.NewMatrix(DenseFrom+2, 2)
	for i := range dense.X[:2*DenseFrom] {
		dense.X[i] = far.X[i%8000]
	}
	copy(dense.X[2*DenseFrom:], []float32{80, 0, 90, 1})
	line := data.NewMatrix(far.N, 1)
	for i := range line.X {
		line.X[i] = far.X[2*i]
	}
	strip := &Strip{Panels: []*Scatter{{Embedding: far}, {Embedding: far.Rows(0, 4001)}}}
	for _, tc := range []struct {
		name string
		svg  []byte
		want []string
	}{
		{"by density", write(t, &Scatter{Embedding: dense}, SVG), []string{"2"}},
		{"along a line", write(t, &Scatter{Embedding: line}, SVG), []string{"5"}},
		{"strip", write(t, strip, SVG), []string{"1", "5"}},
	} {
		for _, want := range tc.want {
			if texts := textsOf(tc.svg); !slices.Contains(texts, want) {
				t.Errorf("%s: the picture says %q, want %s among it", tc.name, texts, want)
			}
		}
	}
	if l := layoutOf(t, &Scatter{Embedding: line}); slices.Max(l.layers[0].y)-slices.Min(l.layers[0].y) < 20 {
		t.Error("along a line, the heights are lost")
	}
}

// A class outside has no name, and no name covers an arrow.
func TestNamesBesideArrows(t *testing.T) {
	m := withOutliers([4]int{0, 5, 0, 0})
	classes := make([]int32, m.N)
	for i := range classes {
		switch {
		case m.X[2*i] > 1:
			classes[i] = 2
		case m.X[2*i] > 0.8:
			classes[i] = 1
		}
	}
	s := &Scatter{Embedding: m, Colouring: Colouring{Classes: classes, ClassNames: []string{"most", "near the arrow", "outside"}}, NameClasses: true, Width: 5}
	l := layoutOf(t, s)
	xy, _, err := s.Plane()
	if err != nil {
		t.Fatal(err)
	}
	arrows := arrowsOf([4]int{0, 5, 0, 0}, l.box)
	taken := arrows[0].box()
	for _, n := range arrangeNames(s.medians(xy, func(x, y float64) (float64, float64) { return l.box.x1 - 5, l.height / 2 }, 1), l.box, taken) {
		if n.box().meets(taken) {
			t.Errorf("%q is on the arrow", n.text)
		}
	}
	// "outside" stands only in the legend, once.
	if n := strings.Count(string(write(t, s, SVG)), "outside"); n != 1 {
		t.Errorf("the name of a class outside occurs %d times", n)
	}
}
