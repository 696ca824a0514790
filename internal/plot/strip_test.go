package plot

import (
	"errors"
	"image"
	"maps"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// row returns a plot of points on a line of that length, in two classes.
func row(length float32, title string) *Scatter {
	m := data.NewMatrix(8, 2)
	classes := make([]int32, 8)
	for i := range m.N {
		m.X[2*i] = length * float32(i) / 7
		classes[i] = int32(i % 2)
	}
	return &Scatter{Embedding: m, Colouring: Colouring{Classes: classes, ClassNames: []string{"even", "odd"}}, Title: title}
}

func TestStripColumns(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 5: 5, 6: 3, 7: 4, 10: 5, 11: 4} {
		s := &Strip{}
		for range n {
			s.Panels = append(s.Panels, row(1, ""))
		}
		if got := s.columns(); got != want {
			t.Errorf("%d panels have %d columns, want %d", n, got, want)
		}
		s.Columns = 2
		if got := s.columns(); got != min(n, 2) {
			t.Errorf("%d panels in two columns have %d", n, got)
		}
	}
}

// Every panel has its title, its points and its scale bar, in its own part of
// the picture, and the legend comes once.
func TestStripLayout(t *testing.T) {
	s := &Strip{Panels: []*Scatter{row(1, "one"), row(40, "two"), row(7, "three")}, Columns: 2}
	l := layoutOf(t, s)
	if l.height != 2*stripSide || l.width <= 2*stripSide {
		t.Errorf("the picture is %v × %v points, want two rows of %v and room for the legend", l.width, l.height, stripSide)
	}
	if len(l.layers) != 3 {
		t.Fatalf("%d layers, want one per panel", len(l.layers))
	}
	for k, corner := range [][2]float64{{0, stripSide}, {stripSide, stripSide}, {0, 0}} {
		for i, x := range l.layers[k].x {
			if y := l.layers[k].y[i]; x < corner[0] || x > corner[0]+stripSide || y < corner[1] || y > corner[1]+stripSide {
				t.Errorf("panel %d: point %d is at %v, %v, outside its square with the corner %v", k, i, x, y, corner)
			}
		}
	}
	svg := string(write(t, s, SVG))
	if svg != string(write(t, s, SVG)) {
		t.Error("the same strip gives other bytes")
	}
	for text, want := range map[string]int{">one<": 1, ">two<": 1, ">three<": 1, ">even<": 1, ">odd<": 1, ">0.2<": 1, ">10<": 1, ">1<": 1} {
		if got := strings.Count(svg, text); got != want {
			t.Errorf("%s stands %d times in the picture, want %d", text, got, want)
		}
	}
}

// A strip of a given width has panels that are as high as wide, titles at its rim, letters,
// and gaps.
func TestStripGrid(t *testing.T) {
	s := &Strip{
		Title: "whole", Panels: []*Scatter{row(1, ""), row(40, ""), row(7, "")}, Columns: 3, Cells: []int{0, 2, 4},
		ColumnTitles: []string{"left", "middle", "right"}, RowTitles: []string{"upper", "lower"}, Letters: true, Width: 7,
	}
	l := layoutOf(t, s)
	side := (l.height - 2*titleHeight) / 2
	if l.width != 7*72 || side <= l.width/4 || titleHeight+3*side >= l.width-10 {
		t.Errorf("the picture is %v × %v points, want 7 inches with room for the legend", l.width, l.height)
	}
	for k, corner := range [][2]float64{{0, 1}, {2, 1}, {1, 0}} {
		left, bottom := titleHeight+corner[0]*side, corner[1]*side
		for i, x := range l.layers[k].x {
			if y := l.layers[k].y[i]; x < left || x > left+side || y < bottom || y > bottom+side {
				t.Errorf("panel %d: point %d is at %v, %v, outside its square with the corner %v, %v", k, i, x, y, left, bottom)
			}
		}
	}
	svg := string(write(t, s, SVG))
	for _, text := range []string{"whole", "left", "middle", "right", "upper", "lower", "a", "b", "c"} {
		if got := strings.Count(svg, ">"+text+"<"); got != 1 {
			t.Errorf("%s stands %d times in the picture", text, got)
		}
	}
	if pdf := write(t, s, PDF); len(pdf) == 0 {
		t.Error("the PDF is empty")
	}
	s.Width = 1
	if _, err := s.layout(); !errors.Is(err, ErrInput) {
		t.Errorf("one inch for three panels: %v", err)
	}
	for panel, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "bb"} {
		if got := letterOf(panel); got != want {
			t.Errorf("panel %d has the letter %q, want %q", panel, got, want)
		}
	}
}

// One colour means one value, and one class, in all panels.
// The legend below titles ends above the margin.
func TestStripLegendFits(t *testing.T) {
	m := &data.Matrix{N: 2, D: 2, X: []float32{0, 0, 1, 1}}
	s := &Strip{Panels: []*Scatter{{Embedding: m, Colouring: Colouring{Values: []float64{2, 1}}, Title: "one"}, {Embedding: m, Colouring: Colouring{Values: []float64{2, 2}}, Title: "two"}}}
	img := decode(t, s)
	size := img.Bounds().Max
	left := int(2 * stripSide / 72 * 200)
	if low := extent(crop(img, image.Rect(left, 0, size.X, size.Y)), ValueColour(0)); low.Empty() || low.Max.Y > size.Y-margin*200/72 {
		t.Errorf("the least value of the scale is at %v of %v", low, size)
	}
}

func TestStripColours(t *testing.T) {
	pair := func(a, b float64) *Scatter {
		return &Scatter{Embedding: &data.Matrix{N: 2, D: 2, X: []float32{0, 0, 1, 1}}, Colouring: Colouring{Values: []float64{a, b}}}
	}
	colours := func(l layer) map[float64]any { // by the place of the point
		seen := map[float64]any{}
		for i := range l.x {
			seen[l.x[i]] = l.colours[l.colour[i]]
		}
		return seen
	}
	at := func(s *Strip, panel int) (left, right any) {
		t.Helper()
		l := layoutOf(t, s)
		seen := colours(l.layers[panel])
		places := slices.Sorted(maps.Keys(seen))
		return seen[places[0]], seen[places[1]]
	}
	s := &Strip{Panels: []*Scatter{pair(0, 5), pair(5, 10)}}
	_, five := at(s, 0)
	same, ten := at(s, 1)
	if five != same || five == ten {
		t.Errorf("the value 5 is %v in one panel and %v in the other, 10 is %v", five, same, ten)
	}
	classes := func(a, b int32) *Scatter {
		return &Scatter{Embedding: pair(0, 0).Embedding, Colouring: Colouring{Classes: []int32{a, b}}}
	}
	s = &Strip{Panels: []*Scatter{classes(0, 1), classes(1, 2)}}
	_, one := at(s, 0)
	same, two := at(s, 1)
	if one != same || one == two {
		t.Errorf("class 1 is %v in one panel and %v in the other, class 2 is %v", one, same, two)
	}
}
