package plot

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"cne/data"
)

// places returns points in so many places, with their classes.
func places(n, classes int) (*data.Matrix, []int32) {
	m, c := data.NewMatrix(n, 2), make([]int32, n)
	for i := range n {
		k := i % classes
		m.Row(i)[0], m.Row(i)[1] = float32(k%9)+float32(i%7)/20, float32(k/9)+float32(i%11)/20
		c[i] = int32(k)
	}
	return m, c
}

// No two names meet, none leaves the area, and the larger class is nearer to its place.
func TestPlaceNames(t *testing.T) {
	area := bounds{0, 300, 0, 200}
	var names []named
	for k := range 200 {
		names = append(names, named{text: fmt.Sprint(k), atX: float64(37 * k % 310), atY: float64(53 * k % 220), width: float64(10 + k%50), class: k, count: 200 - k})
	}
	placed := arrangeNames(names, area)
	if len(placed) < 30 || len(placed) == len(names) {
		t.Errorf("%d of %d names have a place", len(placed), len(names))
	}
	for i, a := range placed {
		b := bounds{a.x - a.width/2, a.x + a.width/2, a.y - shortestRow/2, a.y + shortestRow/2}
		if b.x0 < area.x0-1e-9 || b.x1 > area.x1+1e-9 || b.y0 < area.y0-1e-9 || b.y1 > area.y1+1e-9 {
			t.Errorf("name %d leaves the picture: %+v", i, a)
		}
		for _, c := range placed[:i] {
			if c.box().meets(a.box()) {
				t.Errorf("%q and %q meet", a.text, c.text)
			}
		}
	}
	if first := placed[0]; first.text != "0" || first.x != 5 || first.lead {
		t.Errorf("the first is %+v", first)
	}
	if got := arrangeNames([]named{{text: "wide", width: 301}}, area); got != nil {
		t.Errorf("a name wider than the picture is at %+v", got)
	}
}

func TestNameClasses(t *testing.T) {
	m, c := places(800, 20)
	c[0], c[1] = 20, -1 // a class of one point, and a point of none
	names := make([]string, 22)
	for k := range names {
		names[k] = fmt.Sprintf("class-%c", 'a'+k)
	}
	names[3], names[4], names[5], names[20] = "", strings.Repeat("long ", 50), "<b>零&\x00", "single"
	for k := range c {
		if c[k] >= 0 && c[k]%2 == 0 && c[k] < 20 && k%3 == 0 {
			c[k] = 1 // so that sizes differ
		}
	}
	draw := func(p picture, f Format) string { return string(write(t, p, f)) }
	plain := &Scatter{Embedding: m, Colouring: Colouring{Classes: c, ClassNames: names}}
	with := *plain
	with.NameClasses = true
	svg, without := draw(&with, SVG), draw(plain, SVG)
	for _, name := range []string{"class-b", "single"} {
		// In the legend, in the picture, and around that as its halo.
		if got, want := strings.Count(svg, ">"+name+"<"), strings.Count(without, ">"+name+"<")+1+haloSteps; got != want {
			t.Errorf("%q is written %d times, want %d", name, got, want)
		}
	}
	if strings.Contains(svg, "<b>") {
		t.Error("a name is markup")
	}
	for _, f := range []Format{PNG, SVG} {
		if first := draw(&with, f); draw(&with, f) != first {
			t.Errorf("%s: other bytes the second time", f)
		}
		none := with
		none.ClassNames = nil
		if draw(&none, f) != draw(&Scatter{Embedding: m, Colouring: Colouring{Classes: c}}, f) {
			t.Errorf("%s: classes without names have some", f)
		}
	}
	if a, _, err := image.Decode(strings.NewReader(draw(&with, PNG))); err != nil || a.Bounds().Empty() {
		t.Errorf("no picture: %v", err)
	}
	strip := &Strip{Panels: []*Scatter{&with, plain}}
	if n := strings.Count(draw(strip, SVG), ">class-b<"); n != 2+haloSteps {
		t.Errorf("in a strip it is written %d times", n)
	}
	// Very many classes are drawn quickly, too.
	many := make([]int32, len(c))
	manyNames := make([]string, len(c))
	for i := range many {
		many[i], manyNames[i] = int32(i), fmt.Sprint("point ", i)
	}
	draw(&Scatter{Embedding: m, Colouring: Colouring{Classes: many, ClassNames: manyNames}, NameClasses: true}, SVG)
}

// Names are next to classes that they would hide, without a line, and above larger ones.
func TestNamesOfSmallClasses(t *testing.T) {
	area := bounds{0, 300, 0, 300}
	placed := arrangeNames([]named{
		{text: "large", width: 60, atX: 150, atY: 200, w: 40, h: 40},
		{text: "small", width: 60, atX: 150, atY: 60, w: 5, h: 5},
		{text: "next to it", width: 60, atX: 165, atY: 60, w: 5, h: 5},
	}, area)
	if len(placed) != 3 || placed[0].x != 150 || placed[0].y != 200 {
		t.Fatalf("got %+v", placed)
	}
	for _, n := range placed[1:] {
		for _, x := range []float64{150, 165} {
			if n.box().meets(bounds{x - 5, x + 5, 55, 65}) {
				t.Errorf("%s at %v, %v hides the class at %v", n.text, n.x, n.y, x)
			}
		}
		if n.lead {
			t.Errorf("a line leads to %s at %v, %v", n.text, n.x, n.y)
		}
	}
}
