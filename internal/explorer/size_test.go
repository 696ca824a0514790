package explorer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"

	"cne/data"
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

// withOutliers returns 4000 points of a square, of class 0, of which the last are moved to places
// outside, of class 1.
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
	return &Page{Classes: classes, ClassNames: []string{"square", "outlier"}, Views: []View{{Embedding: m}}}
}

// The frame is that of 99 % of the points. Points outside lie where they are, in few bytes
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
	b.expect("of the others", shown, "◀ 2: 2 points to the left; show them; ▲ 1: 1 point above; show it")
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
	// Points that are hidden do not count, nor those of another view.
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

// A page of many points shows some of them while it moves and all of them at rest, which look
// alike.
func TestBrowserPace(t *testing.T) {
	t.Parallel()
	p := crowded(200_000)
	p.HeldOut = make([]bool, p.Views[0].Embedding.N)
	p.HeldOut[2] = true
	b := show(t, p, setting{before: `
	  const draw = WebGL2RenderingContext.prototype.drawElements;
	  window.counts = [0];
	  WebGL2RenderingContext.prototype.drawElements = function (mode, count, ...more) {
	    counts[counts.length - 1] += count;
	    draw.call(this, mode, count, ...more);
	  };
	  const read = WebGL2RenderingContext.prototype.readPixels;
	  window.pixels = (x, y) => { const out = new Uint8Array(4); read.call(document.getElementById("points").getContext("webgl2"), x, y, 1, 1, WebGL2RenderingContext.RGBA, WebGL2RenderingContext.UNSIGNED_BYTE, out); return out[0]; };
	`}).ready()
	b.until("cne.whole")
	b.mouse(input.DispatchMouseEventTypeMousePressed, 0, 400, 300)
	for i := range 10 {
		b.do("counts.push(0)")
		call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, Button: input.MouseButtonLeft, Buttons: 1, X: 400 + 4*float64(i), Y: 300})
		b.settle()
	}
	counts := get[[]int](b, "counts.slice(1)")
	if most := slices.Max(counts); most == 0 || most > 150_000 {
		t.Errorf("while it moves, pictures have %v points", counts)
	}
	b.mouse(input.DispatchMouseEventTypeMouseReleased, 0, 440, 300)
	b.after("at rest", "cne.whole", "true")
}
