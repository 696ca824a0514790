package explorer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/png"
	"math"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"cne/data"
	"cne/internal/plot"
)

// positionsOf returns what positionsOf in data.js does.
func positionsOf(v aboutView, b []byte) []float64 {
	n := len(b) / 6
	if max(v.High[0]-v.Low[0], v.High[1]-v.Low[1]) > coarsest {
		n = len(b) / 8
		out := make([]float64, 2*n)
		for i := range out {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return out
	}
	out := make([]float64, 2*n)
	for i := range out {
		plane := b[i%2*3*n+i/2:]
		step := int(plane[0]) | int(plane[n])<<8 | int(plane[2*n])<<16
		out[i] = v.Low[i%2] + (v.High[i%2]-v.Low[i%2])*float64(step)/(1<<24-1)
	}
	return out
}

// withOutliers returns 4000 points of a square, of class 0. The last points are moved to
// places outside, of class 1.
func withOutliers(places ...float32) *Page {
	m := data.NewMatrix(4000, 2)
	for i := range m.N {
		m.X[2*i], m.X[2*i+1] = float32(i%64)/32-1, float32(i/64)/31.5-1
	}
	copy(m.X[len(m.X)-len(places):], places)
	classes := make([]int32, m.N)
	for i := m.N - len(places)/2; i < m.N; i++ {
		classes[i] = 1
	}
	return &Page{Colouring: plot.Colouring{Classes: classes, ClassNames: []string{"square", "outlier"}}, Views: []View{{Embedding: m}}}
}

// The frame shows 99 % of the points. Points outside lie where they are, in few bytes
// unless they are far.
func TestOutliers(t *testing.T) {
	for name, tc := range map[string]struct {
		far      float32
		perPoint int
		within   float64
	}{"near": {5, 6, 5e-7}, "far": {100, 8, 1e-5}, "farther than can be": {3e38, 8, 1e33}} {
		p := withOutliers(tc.far, 0, 0, -tc.far, tc.far, 0.5)
		html := write(t, p)
		v := aboutOf(t, html).Views[0]
		b := blockBytes(t, html, "view-0")
		if len(b) != tc.perPoint*4000 {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if math.Abs(v.Unit-1) > 0.02 || math.Abs(v.Centre[0]) > 0.02 || math.Abs(v.Centre[1]) > 0.02 {
			t.Errorf("%s: frame %+v", name, v)
		}
		for i, x := range positionsOf(v, b) {
			if want := float64(p.Views[0].Embedding.X[i]); math.Abs(v.Centre[i%2]+v.Unit*x-want) > tc.within && want < 1e18 && want > -1e18 {
				t.Fatalf("%s: number %d is %v, want %v", name, i, v.Centre[i%2]+v.Unit*x, want)
			}
		}
		if v.High[0] < 1 || v.Low[1] > -1 || math.Abs(v.Low[0]+1) > 0.1 {
			t.Errorf("%s: box from %v to %v", name, v.Low, v.High)
		}
	}
}

// A million points of ten classes take less than 9 bytes each, so that five take less than 45 MB.
func TestPageSize(t *testing.T) {
	const n = 200_000
	if got := float64(len(write(t, gaussians(n)))-len(write(t, gaussians(10)))) / n; got > 8.8 {
		t.Errorf("a point takes %.2f bytes", got)
	}
}

// What the browser reads is what was written, in either coding.
func TestBrowserPositions(t *testing.T) {
	t.Parallel()
	for _, far := range []float32{5, 100} {
		p := withOutliers(far, 0)
		b := show(t, p, setting{}).ready()
		for _, row := range []int{0, 63, 2017, 3999} {
			b.expect("places", fmt.Sprintf(`(() => { const a = cne.place(0), p = cne.place(%d), u = cne.camera.perUnit;
			  return Math.abs(p[0] - a[0] - u * %v) < 0.01 && Math.abs(a[1] - p[1] - u * %v) < 0.01; })()`, row,
				p.Views[0].Embedding.X[2*row]-p.Views[0].Embedding.X[0], p.Views[0].Embedding.X[2*row+1]-p.Views[0].Embedding.X[1]), "true")
		}
	}
}

const inSight = `(row) => { const [x, y] = cne.place(row), s = document.getElementById("stage"); return x > 0 && y > 0 && x < s.clientWidth && y < s.clientHeight; }`

// Buttons at the edges tell of points outside and bring them into sight.
func TestBrowserOutside(t *testing.T) {
	t.Parallel()
	p := withOutliers(12, 0, 14, 0.5, 0, 7, -30, 0, -31, 0)
	p.Views = append(p.Views, View{Embedding: withOutliers().Views[0].Embedding})
	b := show(t, p, setting{}).ready()
	shown := `Array.from(document.querySelectorAll(".outside:not([hidden])"), (e) => e.textContent + ": " + e.getAttribute("aria-label")).join("; ")`
	const all = "◀ 2: 2 points to the left; show them; 2 ▶: 2 points to the right; show them; ▲ 1: 1 point above; show it"
	b.after("away", shown, all)
	// The square fills the window.
	b.expect("framed", "Math.abs((cne.place(63)[0] - cne.place(0)[0]) * 1.016 / (2 * cne.camera.scale) - 1) < 0.05 && 2 * cne.camera.scale > 0.8 * document.getElementById('stage').clientHeight", "true")
	b.after("click #outside-right", "cne.camera.zoom < 0.3", "true", "[3995, 3996, 0, 63, 2000].every("+inSight+")", "true", "[3998, 3999].some("+inSight+")", "false", "document.activeElement.id", "points")
	b.expect("of the others", shown, "◀ 2: 2 points to the left; show them")
	// What is there can be pointed at.
	b.after("hover 3996", "cne.hovered", "3996")
	b.colour("an outlier", 3996, classInk(1, 0))
	b.after("away; click #outside-left", "[3995, 3996, 3997, 3998, 3999, 0].every("+inSight+")", "true", shown, "")
	b.after("hover 3999", "cne.hovered", "3999")
	b.after("away; key 0", shown, all)
	// By keys, and away where most points are out of sight anyway.
	b.after("do document.getElementById('outside-above').focus()")
	b.after("key Enter", "("+inSight+")(3997)", "true")
	b.after("key 0; key +; key +", shown, "")
	b.after("key 0", shown, all)
	// Points that are hidden do not count, nor points of another view.
	b.after("click #classes li:nth-child(2) button", "cne.visible", "3995", shown, "")
	b.after("click #classes li:nth-child(2) button", shown, all)
	b.after("key Right", "cne.t", "1", shown, "")
	b.after("key Left", "cne.t", "0", shown, all)
	// Panned as far as they lie.
	for range 6 {
		b.drag(0, 500, 300, 50, 300)
	}
	b.after("panned", "[3995, 3996].some("+inSight+")", "true")
}

func TestBrowserOutsidePhone(t *testing.T) {
	t.Parallel()
	b := show(t, withOutliers(12, 0, 0, 12, -12, 0, 0, -12), setting{width: 360, height: 740, phone: true}).ready()
	b.after("opened", `document.querySelectorAll(".outside:not([hidden])").length`, "4", `Array.from(document.querySelectorAll(".outside"), (e) => {
	  const r = e.getBoundingClientRect(), s = document.getElementById("stage").getBoundingClientRect();
	  const free = ["zoom", "scale"].every((id) => { const o = document.getElementById(id).getBoundingClientRect(); return r.right <= o.left || r.left >= o.right || r.bottom <= o.top || r.top >= o.bottom; });
	  return free && r.height >= 36 && r.left >= s.left && r.right <= s.right && r.top >= s.top && r.bottom <= s.bottom;
	}).join()`, "true,true,true,true")
}

// drawCounter counts the points that each drawing to the screen or out of sight is asked for.
const drawCounter = `
  const draw = WebGL2RenderingContext.prototype.drawElements;
  window.asked = 0;
  WebGL2RenderingContext.prototype.drawElements = function (mode, count, ...more) {
    asked += count;
    draw.call(this, mode, count, ...more);
  };`

// screen returns the mean of the red channel around a place of the stage as it is seen.
func (b *tab) screen(x, y float64) float64 {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{})
	must(b.t, err)
	im, err := png.Decode(bytes.NewReader(r.Data))
	must(b.t, err)
	sum := 0.0
	for i := range 400 {
		red, _, _, _ := im.At(int(x)+i%20-10, int(y)+i/20-10).RGBA()
		sum += float64(red>>8) / 400
	}
	return sum
}

// A page of many points shows some of them, as strong together as all, while its picture
// changes, and all of them at rest.
func TestBrowserPace(t *testing.T) {
	t.Parallel()
	const more = 200_000
	p := crowded(more)
	n := p.Views[0].Embedding.N
	p.Views = append(p.Views, p.Views[0])
	p.Views[1].Name = "again"
	p.HeldOut = make([]bool, n)
	p.HeldOut[2] = true
	b := show(t, p, setting{before: drawCounter}).ready()
	b.after("at first", "cne.whole", "true")
	x, y := b.at(0)
	ground, full := 255.0, b.screen(x, y)
	if all := get[float64](b, fmt.Sprintf("cne.pixel(%v, %v)[0]", 3, 3)); all != ground {
		t.Errorf("the ground is drawn in red %v", all)
	}
	for _, tc := range []struct {
		what, key string
		dx        float64
		far       float64 // by how much what is seen may differ
	}{
		{"moved", "d", -60, 12},
		{"morphing", "shift+Right", 0, 0.7 * (ground - full)},
	} {
		b.do("asked = 0")
		b.key(tc.key)
		b.settle()
		got := b.screen(x+tc.dx, y)
		if get[bool](b, "cne.whole") {
			t.Logf("%s: drawn whole before it was looked at", tc.what)
		} else if math.Abs(got-full) > tc.far {
			t.Errorf("%s: the busiest place is seen in red %.0f, at rest %.0f", tc.what, got, full)
		}
		b.after(tc.what, "cne.whole", "true")
		if asked := get[int](b, "asked"); asked < n || asked > 2*n {
			t.Errorf("%s: %d points of %d were drawn until all were seen", tc.what, asked, n)
		}
		if got := b.screen(x+tc.dx, y); math.Abs(got-full) > 3 {
			t.Errorf("%s and at rest: the busiest place is seen in red %.0f, want %.0f", tc.what, got, full)
		}
		b.key("0")
		b.after("key Home", "cne.t", "0", "cne.whole", "true")
	}
	// Hovering draws no points again.
	b.do("asked = 0")
	b.after("hover 2", "cne.hovered >= 0", "true", "asked", "0", "cne.whole", "true")
	// While pictures change all the time, none has more points than there is time for.
	b.do(`asked = 0; window.most = 0; window.pictures = cne.drawn;
	  window.moving = setInterval(() => { most = Math.max(most, asked / Math.max(1, cne.drawn - pictures)); document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true })); }, 20);`)
	b.until("cne.drawn > pictures + 20")
	b.do("clearInterval(moving)")
	if most := get[float64](b, "most"); most > float64(n)/2 {
		t.Errorf("pictures that change have %.0f points each", most)
	}
	b.after("at rest", "cne.whole", "true")
}
