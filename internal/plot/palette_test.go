package plot

import (
	"image"
	"image/color"
	"math"
	"testing"

	"cne/data"
)

// A film of very many points shows each pixel nearly as a picture does.
func TestDenseAnimation(t *testing.T) {
	s := many(DenseFrom)
	half := data.NewMatrix(s.Embedding.N, 2)
	for i, v := range s.Embedding.X {
		half.X[i] = v * (0.5 + 0.5*float32(i%2))
	}
	a := &Animation{Scatter: *s, Frames: []Frame{{Embedding: half}, {Embedding: s.Embedding}}}
	_, frames := film(t, a)
	s.DPI = frameDPI
	want := decode(t, s)
	var sum, seen float64
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			c, w := frames[1].NRGBAAt(x, y), want.NRGBAAt(x, y)
			if w == (color.NRGBA{0xff, 0xff, 0xff, 0xff}) {
				if c != w {
					t.Fatalf("pixel %d, %d of the ground is %v", x, y, c)
				}
				continue
			}
			seen++
			for _, d := range []int{int(c.R) - int(w.R), int(c.G) - int(w.G), int(c.B) - int(w.B)} {
				sum += math.Abs(float64(d)) / 3
			}
		}
	}
	if mean := sum / seen; mean > 6 {
		t.Errorf("pixels differ by %.1f on average", mean)
	}
}

func TestAddMixtures(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 40, 40))
	for i := range 40 * 40 {
		img.SetRGBA(i%40, i/40, color.RGBA{uint8(6 * (i % 40)), uint8(6 * (i / 40)), 0x54, 0xff})
	}
	q := newQuantiser([]layer{{colours: []color.NRGBA{single}}})
	before := len(q.palette)
	q.addMixtures([]*image.RGBA{img})
	if before > 100 || len(q.palette) != 256 {
		t.Fatalf("%d colours, %d before", len(q.palette), before)
	}
	// 244 parts of a square of 240 are up to 16 or so wide.
	out := q.paletted(img)
	for y := range 40 {
		for x := range 40 {
			r, g, b, _ := out.At(x, y).RGBA()
			w := img.RGBAAt(x, y)
			for k, d := range []int{int(r>>8) - int(w.R), int(g>>8) - int(w.G), int(b>>8) - int(w.B)} {
				if d > 24 || d < -24 {
					t.Fatalf("pixel %d, %d: channel %d differs by %d", x, y, k, d)
				}
			}
		}
	}
	// One colour makes one part, and none is left over.
	q = newQuantiser([]layer{{colours: []color.NRGBA{single}}})
	q.addMixtures([]*image.RGBA{image.NewRGBA(image.Rect(0, 0, 3, 3))})
	if len(q.palette) != before+1 {
		t.Errorf("an image of one colour adds %d", len(q.palette)-before)
	}
}
