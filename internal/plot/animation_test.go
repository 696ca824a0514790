package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// film decodes an animation as a viewer shows it: every frame laid over those
// before it.
func film(t *testing.T, a *Animation) (*gif.GIF, []*image.NRGBA) {
	t.Helper()
	var b bytes.Buffer
	must(t, a.Write(&b))
	g, err := gif.DecodeAll(&b)
	must(t, err)
	var shown []*image.NRGBA
	now := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	for _, img := range g.Image {
		draw.Draw(now, img.Bounds(), img, img.Bounds().Min, draw.Over)
		shown = append(shown, &image.NRGBA{Pix: slices.Clone(now.Pix), Stride: now.Stride, Rect: now.Rect})
	}
	return g, shown
}

// growing returns n embeddings, each so many times as large as the one before.
func growing(n, d int, factor float64) ([]Frame, []int32) {
	m, classes := clusters(3, 40, d)
	frames := make([]Frame, n)
	for i := range frames {
		e := data.NewMatrix(m.N, d)
		for k, v := range m.X {
			e.X[k] = v * float32(math.Pow(factor, float64(i)))
		}
		frames[i] = Frame{Embedding: e, Caption: fmt.Sprint("epoch ", i)}
	}
	return frames, classes
}

// What a viewer shows is each frame's own picture, except for colours between the colours
// of the palette.
func TestAnimationFrames(t *testing.T) {
	frames, classes := growing(4, 2, 2)
	a := &Animation{Scatter: Scatter{Classes: classes, Title: "run"}, Frames: frames}
	g, shown := film(t, a)
	if len(shown) != 4 || g.Config.Height != 600 || g.LoopCount != 0 {
		t.Fatalf("%d frames of %d pixels, played %d times", len(shown), g.Config.Height, g.LoopCount)
	}
	if want := []int{10, 10, 10, 200}; !slices.Equal(g.Delay, want) {
		t.Errorf("delays %v, want %v", g.Delay, want)
	}
	scatters, err := a.scatters()
	must(t, err)
	for i, s := range scatters {
		if want := "run, " + frames[i].Caption; s.Title != want {
			t.Errorf("frame %d has the title %q, want %q", i, s.Title, want)
		}
		s.DPI = frameDPI
		want := decode(t, &s)
		if want.Rect != shown[i].Rect {
			t.Fatalf("frame %d is %v, want %v", i, shown[i].Rect, want.Rect)
		}
		var worst int
		for k := range want.Pix {
			worst = max(worst, int(want.Pix[k])-int(shown[i].Pix[k]), int(shown[i].Pix[k])-int(want.Pix[k]))
		}
		if worst > 110 {
			t.Errorf("frame %d: a channel is off by %d", i, worst)
		}
		for c := range 3 {
			// The full colours of the points are in the palette.
			a, b := extent(want, ClassColour(c)), extent(shown[i], ClassColour(c))
			if !a.In(b) || !b.In(a.Inset(-1)) {
				t.Errorf("frame %d: class %d lies within %v, want %v", i, c, b, a)
			}
		}
	}
}

// With common axes, an embedding that grows looks so; with axes that follow, it
// grows less, and no point is ever outside of them.
func TestAnimationAxes(t *testing.T) {
	frames, _ := growing(30, 2, 1.2)
	widths := func(follow bool) []float64 {
		a := &Animation{Frames: frames, Follow: follow}
		scatters, err := a.scatters()
		must(t, err)
		var list []float64
		for i := range scatters {
			l := layoutOf(t, &scatters[i])
			x := l.layers[0].x
			list = append(list, slices.Max(x)-slices.Min(x))
			r := l.layers[0].diameter/2 - 1e-6
			if slices.Min(x)-r < l.box.Min.X.Points() || slices.Max(x)+r > l.box.Max.X.Points() {
				t.Errorf("frame %d leaves the box", i)
			}
		}
		return list
	}
	still, following := widths(false), widths(true)
	for i := range still[1:] {
		if ratio := still[i+1] / still[i]; math.Abs(ratio-1.2) > 1e-3 {
			t.Errorf("frame %d is %v times as wide as the one before", i+1, ratio)
		}
		if ratio := following[i+1] / following[i]; ratio < 0.9 || ratio > 1.25 {
			t.Errorf("with axes that follow, frame %d is %v times as wide as the one before", i+1, ratio)
		}
	}
	if still[0] > 3 || following[0] < 10*still[0] || math.Abs(still[29]/following[29]-1) > 0.5 {
		t.Errorf("frames are %v wide to %v wide, with axes that follow %v to %v", still[0], still[29], following[0], following[29])
	}

	// One frame far from the others moves the axes step by step.
	calm := slices.Repeat([]bounds{{0, 1, 0, 1}}, 40)
	calm[20].x1 = 100
	last := 1.
	for i, b := range smoothly(calm) {
		if step := math.Abs(b.x1 - last); step > 100./(2*followFrames+1)+1e-9 {
			t.Errorf("at frame %d the axis moves by %v", i, step)
		}
		last = b.x1
	}
	if last != 1 {
		t.Errorf("in the end the axis reaches to %v", last)
	}
}

func TestAnimationKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		d    int
		s    Scatter
		note string
	}{
		"line":    {1, Scatter{}, ""},
		"space":   {5, Scatter{}, "first 2 of 5 principal axes"},
		"values":  {2, Scatter{Values: make([]float64, 120)}, ""},
		"heldOut": {2, Scatter{HeldOut: append(make([]bool, 119), true)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tc.s.Values {
				tc.s.Values[i] = float64(i)
			}
			frames, _ := growing(3, tc.d, 2)
			a := &Animation{Scatter: tc.s, Frames: frames}
			g, shown := film(t, a)
			if len(g.Image) != 3 || bytes.Equal(shown[0].Pix, shown[2].Pix) {
				t.Errorf("%d frames, the last like the first: %v", len(g.Image), bytes.Equal(shown[0].Pix, shown[2].Pix))
			}
			scatters, err := a.scatters()
			if err != nil || !strings.HasPrefix(scatters[0].note, tc.note) {
				t.Errorf("note %q (%v)", scatters[0].note, err)
			}
		})
	}
}

// A frame like the one before takes next to nothing, and is still there.
func TestAnimationStill(t *testing.T) {
	frames, classes := growing(1, 2, 2)
	one := &Animation{Scatter: Scatter{Classes: classes}, Frames: frames}
	many := &Animation{Scatter: Scatter{Classes: classes}, Frames: slices.Repeat(frames, 10), FramesPerSecond: 25}
	var a, b bytes.Buffer
	must(t, errors.Join(one.Write(&a), many.Write(&b)))
	if b.Len() > a.Len()+10*64 {
		t.Errorf("10 frames take %d bytes, and one of them %d", b.Len(), a.Len())
	}
	slow, _ := film(t, &Animation{Scatter: Scatter{Classes: classes}, Frames: slices.Repeat(frames, 2), FramesPerSecond: 1e-6})
	if want := []int{65535, 65535}; !slices.Equal(slow.Delay, want) {
		t.Errorf("delays %v, want %v", slow.Delay, want)
	}
	g, _ := film(t, many)
	if len(g.Image) != 10 || g.Delay[0] != 4 {
		t.Errorf("%d frames with the delay %d", len(g.Image), g.Delay[0])
	}
	var again bytes.Buffer
	if err := many.Write(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("two drawings differ (%v)", err)
	}
}

func TestAnimationRefused(t *testing.T) {
	frames, _ := growing(2, 2, 2)
	other, _ := growing(2, 3, 2)
	bad := &data.Matrix{N: 1, D: 2, X: []float32{1, float32(math.NaN())}}
	for name, tc := range map[string]struct {
		a    Animation
		want error
		says string
	}{
		"none":      {Animation{}, ErrInput, "frames: got 0, want 1 to 1000"},
		"many":      {Animation{Frames: make([]Frame, 1001)}, ErrInput, "frames: got 1001, want 1 to 1000"},
		"fast":      {Animation{Frames: frames, FramesPerSecond: 51}, ErrInput, "FramesPerSecond: got 51, want a number up to 50, or 0 for the default"},
		"empty":     {Animation{Frames: append(slices.Clone(frames), Frame{})}, ErrInput, "frame 2 (counted from 0): cannot draw the plot: points: got none"},
		"sizes":     {Animation{Frames: []Frame{frames[0], other[0]}}, ErrInput, "frame 0 (counted from 0): got 120 points of 2 coordinates, want as many as in the last frame"},
		"NaN":       {Animation{Frames: []Frame{{Embedding: bad}}}, ErrNotFinite, "frame 0 (counted from 0): not a finite number: row 0"},
		"memory":    {Animation{Scatter: Scatter{DPI: 1200}, Frames: slices.Repeat(frames, 40)}, ErrInput, "80 frames of 5 × 5 inches at 1200 DPI: got 2.88e+09 pixels, want at most 1e+09"},
		"no room":   {Animation{Scatter: Scatter{Width: 0.1}, Frames: frames}, ErrInput, "size: got 0.254 × 12.7 cm, too small for points with legend, title and scale bar"},
		"no labels": {Animation{Scatter: Scatter{Classes: []int32{1}}, Frames: frames}, ErrInput, "classes: got 1, want 120, one for each point"},
	} {
		var b bytes.Buffer
		if err := tc.a.Write(&b); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || b.Len() > 0 {
			t.Errorf("%s: %v after %d bytes, want %q", name, err, b.Len(), tc.says)
		}
	}
	if err := (&Animation{Frames: frames}).Save(filepath.Join(t.TempDir(), "a.png")); !errors.Is(err, ErrFormat) {
		t.Errorf("a PNG: %v", err)
	}
	path := filepath.Join(t.TempDir(), "a.gif")
	must(t, (&Animation{Frames: frames}).Save(path))
	if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte("GIF89a")) {
		t.Errorf("%v", err)
	}
}

// Palettes hold all colours of the points, however many there are.
func TestQuantiser(t *testing.T) {
	for _, n := range []int{1, 10, 40, 41, 257} {
		colours := make([]color.NRGBA, n)
		for i := range colours {
			if colours[i] = ClassColour(i); n > len(classColours) {
				colours[i] = ValueColour(float64(i) / float64(n-1))
			}
		}
		q := newQuantiser([]layer{{colours: colours}})
		if len(q.palette) > 256 || len(q.palette) < n/4 {
			t.Errorf("%d colours make a palette of %d", n, len(q.palette))
		}
		for _, c := range append(colours, ink, color.NRGBA{0xff, 0xff, 0xff, 0xff}) {
			k := q.nearest(c)
			if got := q.palette[k].(color.NRGBA); k == unchanged || apart(got, c, eyes["normal"]) > 0.02 {
				t.Errorf("of %d colours, %v becomes %v", n, c, got)
			}
		}
	}
}

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
