package explorer

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/data/images"
	"cne/internal/plot"
	"cne/internal/rng"
)

// crowded returns a page of very many points: in the left square (row 0 is its middle)
// four times as many as in the right one (row 1), all of class 0. Some points of class 1
// are in the left square; row 2 is the first. Rows 3 and 4 and some more are the corners
// of the frame.
func crowded(more int) *Page {
	const n = 50_000
	r := rng.New(3, rng.Sample)
	m := data.NewMatrix(n+more, 2)
	classes := make([]int32, m.N)
	for i := range m.N {
		x := -0.5
		if i%5 == 4 {
			x = 0.5
		}
		m.X[2*i], m.X[2*i+1] = float32(x+0.2*r.Float64()-0.1), float32(0.2*r.Float64()-0.1)
		if i%1000 == 2 {
			classes[i] = 1
		}
	}
	copy(m.X, []float32{-0.5, 0, 0.5, 0, -0.45, 0.05})
	for i := 3; i+1 < m.N; i += 300 {
		copy(m.X[2*i:], []float32{-1, -1, 1, 1})
	}
	return &Page{Colouring: plot.Colouring{Classes: classes}, Views: []View{{Name: "only", Embedding: m}}}
}

// red returns the mean of the red channel around a row, in one picture.
func (b *tab) red(row int) float64 {
	b.t.Helper()
	return get[float64](b, fmt.Sprintf(`(() => {
	  const [x, y] = cne.place(%d), canvas = document.getElementById("points"), gl = canvas.getContext("webgl2"), ratio = canvas.width / canvas.clientWidth;
	  const pixel = new Uint8Array(4);
	  let sum = 0;
	  cne.pixel(x, y); // draws, and what is drawn can be read until this returns
	  for (let i = -3; i < 3; i += 2) for (let j = -3; j < 3; j += 2) {
	    gl.readPixels(Math.floor((x + 5 * i + 2) * ratio), canvas.height - 1 - Math.floor((y + 5 * j + 2) * ratio), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
	    sum += pixel[0];
	  }
	  return sum / 9;
	})()`, row))
}

// Where very many points cover each other, the picture still tells how many
// there are; of fewer, all such places look the same.
func TestBrowserCrowds(t *testing.T) {
	t.Parallel()
	b := show(t, crowded(0), setting{}).ready()
	left, right := b.red(0), b.red(1)
	ink := float64(plot.ClassColour(0).R)
	if left > ink+40 {
		t.Errorf("the busiest place is drawn in red %.0f, want about %.0f", left, ink)
	}
	if right < left+12 || right > (ink+255)/2 {
		t.Errorf("a quarter of the points is drawn in red %.0f, four times as many in %.0f", right, left)
	}

	few := show(t, crowded(-1), setting{}).ready()
	if l, r := few.red(0), few.red(1); math.Abs(l-r) > 3 {
		t.Errorf("fewer points are drawn in red %.0f and %.0f", l, r)
	}

	// Points are as strong as what remains visible lets them be.
	b.after("click #classes li:nth-child(1) button")
	b.settle()
	want := plot.ClassColour(1)
	blue := get[[]int](b, "cne.pixel(...cne.place(2))")[2]
	// Seen through as a single one is (opacity above).
	if limit := 255 - 0.55*float64(255-int(want.B)); float64(blue) > limit {
		t.Errorf("a point of %v that is left alone is drawn in blue %d, want at most %.0f", want, blue, limit)
	}

	// From near by, all points are as they are by themselves.
	b.after("click #classes li:nth-child(1) button")
	for range 5 {
		b.wheel(1, -300)
	}
	b.settle()
	b.colour("near by", 1, inkOf(plot.ClassColour(0))[0])
}

// 30 000 points with the images of MNIST's 10 000, three times.
func TestBrowserLarge(t *testing.T) {
	t.Parallel()
	ds, few := digits(t)
	im := &images.Set{N: 3 * few.N, H: few.H, W: few.W, C: 1, Pixels: bytes.Repeat(few.Pixels, 3)}
	p := &Page{Colouring: plot.Colouring{Classes: slices.Repeat(ds.Labels.Class, 3), ClassNames: ds.Labels.Names}, Images: im, Slider: "s"}
	for k := range 2 {
		p.Views = append(p.Views, View{Embedding: normal(im.N, 2, float64(k+1), 0)})
	}
	b := show(t, p, setting{}).ready()
	b.after("key End", "cne.visible", "30000", "cne.t", "1")
	b.after("hover 29999", "cne.hovered >= 0", "true", pictured, "true")
	row := get[int](b, "cne.hovered")
	for i, v := range get[[]int](b, "Array.from(document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 28, 28).data).filter((_, i) => i % 4 === 0)") {
		if d := v - int(im.Image(row)[i]); d > 9 || d < -9 { // 16 levels
			t.Fatalf("the image of row %d differs by %d at byte %d", row, d, i)
		}
	}
}
