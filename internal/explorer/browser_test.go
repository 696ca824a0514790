package explorer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cne/data/images"
	"cne/internal/plot"
)

func TestBrowserThemes(t *testing.T) {
	t.Parallel()
	for theme, ground := range []string{"255,255,255", "18,20,24"} {
		b := show(t, three(), setting{dark: theme == 1}).ready()
		b.after("away", "cne.pixel(3, 3)", ground, "cne.visible", "30", "document.getElementById('loading')", "null",
			"document.documentElement.scrollHeight <= innerHeight", "true", "cne.theme", []string{"light", "dark"}[theme])
		b.says("#count", "30 points")
		for row := range 6 {
			b.colour("at the start", row, classInk(row%3, theme))
		}
		b.after("key t", "cne.pixel(3, 3)", []string{"18,20,24", "255,255,255"}[theme])
		b.colour("after T", 0, classInk(0, 1-theme))
		b.after("click #theme", "cne.theme", []string{"light", "dark"}[theme])
		// Should the system change its mind, it counts for those who have made no choice.
		b.do("localStorage.clear()")
		b.after("find row 0; key Enter")
		b.prefer(theme == 0)
		b.after("away", "cne.theme", []string{"dark", "light"}[theme], `"#" + getComputedStyle(document.querySelector("#point .dot")).backgroundColor.match(/\d+/g).map((v) => Number(v).toString(16).padStart(2, "0")).join("")`, classInk(0, 1-theme))
		b.colour("after the system", 0, classInk(0, 1-theme))
		// Text stands off from its ground, by the WCAG's measure: selection, settings and
		// what was found, too.
		b.after("key x; find row")
		b.after("do document.getElementById('settings-open').click()")
		b.expect("text of less than the contrast 4.5", `(() => {
		  const light = (c) => { const v = c.match(/\d+(\.\d+)?/g).slice(0, 3).map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
		  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
		  return Array.from(document.querySelectorAll("h1, h2, p, dt, dd, span, strong, small, button, input"), (e) => {
		    if (!e.innerText && !e.placeholder || !e.checkVisibility() || e.closest("[hidden], .bare")) return "";
		    const a = light(getComputedStyle(e).color), b = light(ground(e));
		    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5 ? e.outerHTML : "";
		  }).join("");
		})()`, "")
	}
}

// hurry lets the time of a page pass three times as fast.
const hurry = `
  const frame = requestAnimationFrame, wait = setTimeout;
  window.requestAnimationFrame = (f) => frame((now) => f(3 * now));
  window.setTimeout = (f, ms) => wait(f, ms / 3);`

// A grid has two sliders, for the view in a row and for the row; keys move both, and the
// points go straight from a view to that below.
func TestBrowserGrid(t *testing.T) {
	t.Parallel()
	p := three()
	p.Rows = 2
	views := p.Views
	p.Views = nil
	for row := range 2 {
		for k := range 2 {
			p.Views = append(p.Views, View{Name: fmt.Sprintf("s = %d, pull = 0.%d", k, row), Embedding: views[(k+row)%2].Embedding})
		}
	}
	b := show(t, p, setting{before: hurry}).ready()
	b.says("#view-name", "s = 0, pull = 0.0")
	b.says("#ticks", "0 1")
	x0, y0 := b.at(0)
	b.after("key Down", "cne.t", "2", "document.getElementById('rows').value", "1", "document.getElementById('slider').value", "0")
	b.says("#view-name", "s = 0, pull = 0.1")
	b.says("#row-name", "pull = 0.1")
	x2, y2 := b.at(0)
	if math.Hypot(x2-x0, y2-y0) < 100 {
		t.Errorf("row 0 stays at %v, %v", x2, y2)
	}
	b.after("key Right", "cne.t", "3")
	b.after("key Right", "cne.t", "3") // the row ends
	b.after("key Up", "cne.t", "1", "cne.views[1]", "s = 1, pull = 0.0")
	b.after("key Home", "cne.t", "0")
	b.after("key Up", "cne.t", "0")
	b.after("do const r = document.getElementById('rows'); r.value = 0.5; r.dispatchEvent(new Event('input'))", "cne.t", "0")
	b.says("#view-name", "s = 0, pull = 0.0 → pull = 0.1")
	if x1, y1 := b.at(0); math.Hypot(x1-(x0+x2)/2, y1-(y0+y2)/2) > 2 {
		t.Errorf("half-way row 0 is at %v, %v, between %v, %v and %v, %v", x1, y1, x0, y0, x2, y2)
	}
	b.after("do r.dispatchEvent(new Event('change'))", "cne.t", "2")
	b.do("document.getElementById('rows').focus()")
	b.after("key Left", "cne.t", "0")
	b.after("key Space", "cne.t", "1", "cne.playing", "false")
	b.after("key Down", "cne.t", "3")
	b.after("key Space", "cne.t", "3", "cne.playing", "false")
}

func TestBrowserSlider(t *testing.T) {
	t.Parallel()
	b := show(t, three(), setting{before: hurry}).ready()
	b.says("#view-name", "s = 0")
	b.says("#facts", "kNN recall 0.1 loss 7")
	x0, y0 := b.at(0)
	unit := get[float64](b, "cne.camera.perUnit")
	// A little at a time: the point is on its straight way.
	for range 9 {
		b.key("shift+Right")
	}
	b.after("key shift+Right", "cne.t.toFixed(3)", "0.500", fmt.Sprintf("Math.abs(cne.camera.perUnit ** 2 / (%v / 10) - 1) < 0.01", unit*unit), "true")
	xm, ym := b.at(0)
	b.colour("half-way", 0, classInk(0, 0))
	b.says("#view-name", "s = 0 → 1")
	b.after("key Right", "cne.t", "1")
	if x1, y1 := b.at(0); math.Hypot(x1-x0, y1-y0) < 100 || math.Hypot(xm-(x0+x1)/2, ym-(y0+y1)/2) > 2 {
		t.Errorf("row 0 went from %v, %v by %v, %v to %v, %v", x0, y0, xm, ym, x1, y1)
	}
	b.colour("in the second view", 0, classInk(0, 0))
	b.says("#facts", "kNN recall 0.2")
	b.says("#scale-text", "50")
	for _, step := range [][2]string{{"Home", "0"}, {"End", "2"}, {"Left", "1"}} {
		b.after("key "+step[0], "cne.t", step[1])
	}
	b.run(chromedp.Focus(chromedp.CSS("#slider"))) // of a slider, all arrows move it
	b.after("key Up", "cne.t", "2")
	b.after("key Down", "cne.t", "1")
	// With the mouse: the thumb from the middle to a quarter, and near a view.
	box := get[[]float64](b, "(() => { const b = document.getElementById('slider').getBoundingClientRect(); return [b.left, b.top + b.height / 2, b.width]; })()")
	b.drag(0, box[0]+box[2]/2, box[1], box[0]+box[2]/4, box[1])
	b.expect("dragged to a quarter", "Math.abs(cne.t - 0.5) < 0.05", "true")
	b.drag(0, box[0]+box[2]/4, box[1], box[0]+8, box[1])
	b.expect("dragged near a view", "cne.t", "0")
	// Played to the end, and again from the beginning.
	b.do("document.activeElement.blur()")
	b.after("key Space", "cne.playing", "true", "cne.t > 0.2 && cne.t < 2", "true", "cne.t === 2 && !cne.playing", "true")
	// In one step, since on a slow machine the view may be far by the next.
	if !get[bool](b, `(() => {
		const play = document.getElementById("play");
		play.click();
		const again = cne.t < 0.5 && cne.playing;
		play.click();
		return again && !cne.playing;
	})()`) {
		t.Error("played at the end, it does not begin again, or does not pause")
	}
}

// pictured is true once the tip shows a picture.
const pictured = "document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 1, 1).data[3] === 255"

func TestBrowserPointing(t *testing.T) {
	t.Parallel()
	p := three()
	p.Names, p.HeldOut = make([]string, 30), make([]bool, 30)
	p.Names[4], p.HeldOut[4] = "name-4", true
	p.Images = &images.Set{N: 30, H: 5, W: 4, C: 1, Pixels: make([]byte, 600)}
	for i := range p.Images.Pixels {
		p.Images.Pixels[i] = byte(i)
	}
	// While the picture of a row is decoded, there is no other in its place.
	b := show(t, p, setting{before: `
	  const decode = createImageBitmap;
	  window.createImageBitmap = async (blob) => {
	    const bitmap = await decode(blob);
	    await new Promise((done) => { window.finish = done; });
	    return bitmap;
	  };`}).ready()
	b.after("hover 4", "cne.hovered", "4", "Boolean(window.finish)", "true", pictured, "false")
	b.after("do finish()", pictured, "true")
	b.says("#tip", "bee name-4 row 4, held out")
	b.expect("the pixels of the image", "Array.from(document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 4, 5).data).filter((_, i) => i % 4 === 0).join(' ')",
		strings.Trim(fmt.Sprint(p.Images.Image(4)), "[]"))
	x, y := b.at(4)
	tip := func() []float64 {
		return get[[]float64](b, "(() => { const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })()")
	}
	if at := tip(); at[0] < x && x < at[2] && at[1] < y && y < at[3] {
		t.Error("the tip covers the point")
	}
	// A click keeps it; the slider takes it along; Escape lets it go.
	b.mouse(input.DispatchMouseEventTypeMousePressed, 0, x, y)
	b.mouse(input.DispatchMouseEventTypeMouseReleased, 0, x, y)
	b.after("away", "cne.pinned === 4 && cne.hovered === -1", "true")
	// The panel says the same, unless it is closed.
	b.after("away", "document.getElementById('tip').hidden", "true")
	b.after("key c", "document.getElementById('tip').hidden", "false")
	b.after("key Right", "cne.t", "1")
	b.settle() // the tip follows with the next frame
	x, y = b.at(4)
	if at := tip(); min(math.Abs(at[0]-x), math.Abs(at[2]-x)) > 30 || math.Abs((at[1]+at[3])/2-y) > 60 {
		t.Errorf("the tip at %v stayed behind the point at %v, %v", at, x, y)
	}
	b.after("key Escape", "cne.pinned", "-1", "document.getElementById('tip').hidden", "true")
}

func TestBrowserMovesAndZooms(t *testing.T) {
	t.Parallel()
	b := show(t, three(), setting{}).ready()
	x, y := b.at(7)
	scale := get[float64](b, "cne.camera.scale")
	b.wheel(7, -400)
	b.after("wait", "cne.camera.zoom > 1.5", "true",
		"Math.abs(document.getElementById('scale-bar').offsetWidth - document.getElementById('scale-text').textContent * cne.camera.perUnit) <= 1", "true")
	b.moved(7, x, y, 0, 0)
	b.drag(0, 300, 300, 360, 280)
	b.moved(7, x, y, 60, -20)
	b.after("key 0", "cne.camera.zoom", "1")
	b.moved(7, x, y, 0, 0)
	b.after("key +; click #zoom-in", fmt.Sprintf("Math.abs(cne.camera.scale / %v - 1.3 * 1.6) < 0.01", scale), "true")
	for key, by := range map[string][2]float64{"d": {-60, 0}, "a": {60, 0}, "w": {0, 60}, "s": {0, -60}, "Up": {0, 60}, "Down": {0, -60}} {
		x, y := b.at(7)
		b.after("key " + key)
		b.moved(7, x, y, by[0], by[1])
	}
	b.after("click #zoom-fit", "[cne.camera.zoom, cne.camera.x, cne.camera.y]", "1,0,0")
	// What was under the pointer no longer is when a key has moved the points.
	b.after("hover 7", "cne.hovered", "7")
	b.after("key d", "cne.hovered", "-1")
	// Pointing finds what is drawn there, whatever the window and its pixels are.
	for range 7 {
		b.key("shift+Right") // between two views
	}
	for _, to := range []struct {
		width, height int64
		ratio         float64
	}{{600, 420, 3}, {1300, 500, 1.5}} {
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: to.width, Height: to.height, DeviceScaleFactor: to.ratio})
		b.settle()
		b.do("cne.pixel(0, 0)") // draws: new pixels do not cause this here
		b.until(fmt.Sprintf("Math.abs(document.getElementById('points').width - document.getElementById('stage').clientWidth * %v) < 1", min(to.ratio, 2)))
		for row := range 3 {
			b.after(fmt.Sprint("hover ", row), "cne.hovered", fmt.Sprint(row))
			b.colour("resized", row, classInk(row, 0))
		}
	}
	// As deep as it goes, two points that are 1e-5 of the whole apart still are.
	b = show(t, &Page{Views: []View{{Embedding: matrix(2, 0, 0, 1, 1, 0.5, 0.5, 0.50001, 0.5)}}}, setting{}).ready()
	for range 30 {
		b.wheel(2, -240)
	}
	b.after("wait", "cne.camera.zoom", "4000", "Math.abs(cne.place(3)[0] - cne.place(2)[0] - 1e-5 * cne.camera.perUnit) <= 1 && cne.camera.perUnit > 1e6", "true")
}

func TestBrowserLegend(t *testing.T) {
	t.Parallel()
	b := show(t, three(), setting{}).ready()
	entry := func(k int) string { return fmt.Sprintf("#classes li:nth-child(%d) button", k+1) }
	b.says("#classes", "ant 10 bee 10 cat 10")
	b.after("click "+entry(1), "cne.visible", "20", "document.querySelector('"+entry(1)+"').ariaPressed", "false")
	b.after("away", "cne.standing", "null")
	if got := b.pixel(1); got != "#ffffff" {
		t.Errorf("a hidden bee is drawn in %s", got)
	}
	b.colour("without bees", 0, classInk(0, 0))
	b.says("#count", "20 of 30 points")
	b.after("hover 1", "cne.hovered", "-1")
	for _, visible := range []string{"10", "30"} {
		b.run(chromedp.Click(chromedp.CSS(entry(2))), chromedp.DoubleClick(chromedp.CSS(entry(2))))
		b.after("away", "cne.visible", visible)
		b.colour("cats", 2, classInk(2, 0))
	}
	nodes, err := chromedp.Run(b.ctx, chromedp.Nodes(chromedp.CSS(entry(0))))
	must(t, err)
	b.run(chromedp.MouseClickNode(nodes[0], chromedp.ButtonModifiers(chromedp.ModifierAlt)))
	b.after("Alt and a click", "cne.visible", "10")
	b.after("click #none", "cne.visible", "0")
	b.after("click #all", "cne.visible", "30")
	// By keys: down twice, then the space bar. The class that is focused stands out.
	b.run(chromedp.Focus(chromedp.CSS(entry(0))))
	b.after("key Down; key Down", "cne.standing", "10")
	b.after("key Space", "cne.visible", "20", "cne.playing", "false")
	b.after("key shift+Enter", "cne.visible", "10")
	// What was selected and is hidden is not exported.
	b.after("click #all")
	b.do("document.activeElement.blur()")
	b.after("away", "cne.standing", "null")
	b.after("key x", "cne.selection.length", "30")
	b.after("click "+entry(0), "cne.selection.length", "20")
}

func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	p := three()
	p.Names = make([]string, 30)
	for i := range p.Names {
		p.Names[i] = fmt.Sprintf("Item %c", 'a'+i%26)
	}
	b := show(t, p, setting{}).ready()
	const options = "Array.from(document.querySelectorAll('#found li'), (e) => e.innerText.replace(/\\s+/g, ' ').trim()).join('; ')"
	b.after("key /", "document.activeElement.id", "query")
	b.after("find BEE", "cne.standing", "10", options, "bee 10 points")
	b.colour("bees found", 1, classInk(1, 0))
	b.after(`do document.getElementById("query").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))`, "cne.pinned", "-1")
	for _, step := range [][2]string{{"Enter", "1"}, {"Enter", "4"}, {"shift+Enter", "1"}} {
		b.after("key "+step[0], "cne.pinned", step[1])
	}
	b.after("key Escape", "cne.standing", "null")
	b.after("find 17", options, "row 17 cat")
	b.after("key Down", "document.querySelector('#found [aria-selected=true]').innerText.startsWith('row 17')", "true")
	b.after("key Enter", "[cne.pinned, cne.standing]", "17,1", "document.getElementById('found').hidden && !document.getElementById('query').hasAttribute('aria-activedescendant')", "true")
	b.after("find item b", options, "“item b” in names 2 points; Item b bee; Item b ant", "cne.standing", "2")
	b.after("find nonsense", "cne.standing", "0", options, "Nothing found")
	b.after("find 30", "cne.standing", "0")
	// The search shows a chosen row even if it was hidden; zoomed in elsewhere, it is
	// brought into sight.
	b.after("click #classes li:nth-child(1) button; find #3; key Down; key Enter", "[cne.visible, cne.pinned]", "30,3")
	for range 12 {
		b.key("+")
	}
	b.after("find row 5; key Enter", "(() => { const [x, y] = cne.place(5), s = document.getElementById('stage'); return x >= 0 && y >= 0 && x <= s.clientWidth && y <= s.clientHeight; })()", "true")
}

func TestBrowserLasso(t *testing.T) {
	t.Parallel()
	b := show(t, three(), setting{}).ready()
	// around returns a square around a group.
	around := func(group int) []float64 {
		var x, y float64
		for i := group; i < 30; i += 3 {
			px, py := b.at(i)
			x, y = x+px/10, y+py/10
		}
		const r = 40
		return []float64{x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r, x - r, y - r + 5}
	}
	rows := func(groups ...int) string {
		var out []string
		for i := range 30 {
			if slices.Contains(groups, i%3) {
				out = append(out, strconv.Itoa(i))
			}
		}
		return strings.Join(out, ",")
	}
	camera := get[string](b, "JSON.stringify(cne.camera)")
	b.drag(int64(chromedp.ModifierShift), around(2)...)
	b.after("around the cats", "cne.selection", rows(2), "cne.standing", "10", "JSON.stringify(cne.camera)", camera)
	b.says("#selection-count", "10 points")
	b.drag(int64(chromedp.ModifierShift|chromedp.ModifierCtrl), around(0)...)
	b.after("with the ants", "cne.selection", rows(0, 2))
	b.says("#selection-classes", "ant 10 cat 10")
	// The button, and the slider, which takes the selection along.
	b.after("key Escape", "cne.selection", "null")
	b.after("click #lasso")
	b.drag(0, around(1)...)
	b.after("key End", "cne.t", "2", "cne.selection", rows(1))
	b.drag(0, 500, 60, 505, 60, 505, 65)
	b.after("around nothing", "cne.selection", "null")
	b.key("l")
	b.drag(0, 300, 300, 320, 300)
	b.after("dragged without the lasso", "cne.camera.x !== 0", "true")
	// Found by name, selected by key.
	b.after("key 0; find ant")
	b.do("document.activeElement.blur()")
	b.after("key x", "cne.selection", rows(0))
}

// Everything that can be used has a name and can be reached by keys.
func TestBrowserAccessibility(t *testing.T) {
	t.Parallel()
	p := three()
	p.Images = noise(30, 4, 4, 3)
	b := show(t, p, setting{}).ready()
	b.after("key x", `Array.from(document.querySelectorAll("button, input, canvas, dialog, [role]"), (e) => {
	  if (e.closest("[hidden], [aria-hidden=true], .unseen") || e.closest("#tip, .card button canvas") || e.matches("button canvas")) return "";
	  const labelled = e.getAttribute("aria-labelledby");
	  const name = e.getAttribute("aria-label") || (labelled && document.getElementById(labelled).textContent) || e.textContent.trim() || (e.labels && e.labels[0]?.textContent) || e.title;
	  return name || e.matches("[role=status], [role=search]") ? "" : e.outerHTML;
	}).join("")`, "")
	reached := map[string]bool{}
	b.do("document.activeElement.blur()")
	for range 60 {
		b.run(chromedp.KeyEvent(kb.Tab))
		reached[get[string](b, "document.activeElement.closest('[id]')?.id ?? ''")] = true
	}
	for _, id := range []string{"query", "lasso", "settings-open", "theme", "help-open", "side-open", "points", "zoom-in", "zoom-fit", "play", "slider", "all", "classes", "download", "selection-clear", "selection-images"} {
		if !reached[id] {
			t.Errorf("Tab does not reach #%s", id)
		}
	}
	b.do("document.activeElement.blur()")
	b.after("key ?", "document.getElementById('help').open", "true",
		"['Shift', 'Space', 'Home', 'Esc', 'L', 'X', 'E', 'N', 'T', '?'].filter((key) => !Array.from(document.querySelectorAll('#help kbd')).some((e) => e.textContent === key))", "")
	b.after("key Escape", "document.getElementById('help').open", "false", "cne.selection.length", "30")
}

func TestBrowserPhone(t *testing.T) {
	t.Parallel()
	p := three()
	p.Title = "A rather long title of an embedding that does not fit on a phone"
	b := show(t, p, setting{width: 360, height: 740, phone: true}).ready()
	const legend = "document.getElementById('side').checkVisibility()"
	b.after("opened", "document.documentElement.scrollWidth <= innerWidth && Array.from(document.querySelectorAll('header *, footer *')).every((e) => e.closest('[hidden], .icons, #facts') || e.getBoundingClientRect().right <= innerWidth + 1)", "true",
		"document.getElementById('stage').clientHeight > 400", "true", legend, "false")
	// touch puts fingers down at places, moves them, and lifts them in the end.
	touch := func(steps ...[]float64) {
		t.Helper()
		steps = append(steps, nil)
		for k, places := range steps {
			kind := input.DispatchTouchEventTypeTouchMove
			switch {
			case places == nil:
				kind = input.DispatchTouchEventTypeTouchEnd
			case k == 0 || len(places) > len(steps[k-1]):
				kind = input.DispatchTouchEventTypeTouchStart
			}
			at := []*input.TouchPoint{}
			for i := 0; i < len(places); i += 2 {
				id := float64(i)
				at = append(at, &input.TouchPoint{X: places[i], Y: places[i+1], ID: &id})
			}
			call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: at})
		}
		b.settle()
	}
	x, y := b.at(2)
	touch([]float64{x + 2, y - 1})
	b.after("tapped", "cne.pinned", "2", "(() => { const b = document.getElementById('tip').getBoundingClientRect(); return b.width > 0 && b.left >= 0 && b.right <= innerWidth; })()", "true")
	touch([]float64{150, 300}, []float64{150, 320}, []float64{150, 350})
	b.moved(2, x, y, 0, 50)
	touch([]float64{150, 300}, []float64{150, 300, 210, 300}, []float64{150, 300, 270, 300}, []float64{120, 300, 270, 300})
	b.after("pinched", "Math.abs(cne.camera.zoom - 2.5) < 0.05", "true", "cne.selection", "null")
	// A line drawn by a finger.
	b.after("click #zoom-fit; click #lasso")
	x, y = b.at(2)
	touch([]float64{x - 50, y - 50}, []float64{x + 50, y - 50}, []float64{x + 50, y + 50}, []float64{x - 50, y + 50})
	b.after("surrounded", "cne.selection?.length > 0 && cne.selection.every((row) => row % 3 === 2)", "true")
	b.after("click #selection-clear; click #side-close; click #side-open", legend, "true")
	b.after("click #classes li:nth-child(1) button", "cne.visible", "20")
	b.after("click #side-close", legend, "false")
}

// Pages at the edge of what there is.
func TestBrowserExtremes(t *testing.T) {
	t.Parallel()
	const evil = `"'</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"><!--`
	many := normal(3000, 2, 1, 0)
	classes, some, names := make([]int32, many.N), make([]int32, many.N), make([]string, 300)
	for i := range many.N {
		classes[i], some[i] = int32(i%300), int32(i%4)-1
	}
	for c := range names {
		names[c] = fmt.Sprintf("class %d of 300, whose name is rather long", c)
	}
	long := strings.Repeat("a name that is longer than whatever shows it ", 9)
	named := func(text string) *Page {
		p := three()
		p.Title, p.Slider, p.ClassNames, p.Names = text, text, []string{text, "bee", "cat"}, slices.Repeat([]string{text}, 30)
		for k := range p.Views {
			p.Views[k].Name = text
		}
		return p
	}
	markup := named(evil)
	for k := range markup.Views {
		markup.Views[k].Facts = []Fact{{Name: evil, Value: evil}}
	}
	heldOut := three()
	heldOut.HeldOut = make([]bool, 30)
	heldOut.HeldOut[3], heldOut.HeldOut[27] = true, true
	point := matrix(2, 3, 4)
	values := matrix(2, 0, 0, 1, 0, 2, 0, 3, 1)

	for name, tc := range map[string]struct {
		page *Page
		set  setting
		test func(b *tab)
	}{
		"one point": {&Page{Views: []View{{Embedding: point}}}, setting{}, func(b *tab) {
			b.colour("one point", 0, inkOf(plot.ClassColour(0))[0])
			b.after("hover 0", "cne.hovered", "0", "['foot', 'side'].some((id) => document.getElementById(id).checkVisibility())", "false")
			x, y := b.at(0)
			b.drag(int64(chromedp.ModifierShift), x-50, y-50, x+50, y-50, x, y+50)
			b.expect("surrounded", "cne.selection", "0")
			x, y = b.at(0) // elsewhere, since the panel of the selection has opened
			b.after("key Right", "cne.t", "0")
			b.moved(0, x, y, -60, 0) // arrows move, there being no other view
		}},
		"one point in two views": {&Page{Views: []View{{Embedding: point}, {Embedding: point}}}, setting{}, func(b *tab) {
			b.after("key Right", "cne.t", "1")
			b.colour("the second view", 0, inkOf(plot.ClassColour(0))[0])
			b.says("#view-name", "1")
		}},
		"300 classes": {&Page{Views: []View{{Embedding: many}}, Colouring: plot.Colouring{Classes: classes, ClassNames: names}}, setting{}, func(b *tab) {
			b.after("opened", "document.querySelectorAll('#classes button').length", "300", "document.getElementById('classes').scrollHeight > 2000 && document.documentElement.scrollHeight <= innerHeight", "true")
			b.run(chromedp.SendKeys(chromedp.CSS("#filter"), "class 29"))
			b.expect("filtered", "Array.from(document.querySelectorAll('#classes li')).filter((e) => e.checkVisibility()).length", "11")
			b.after("click #none", "cne.visible", "2890")
			b.after("click #all", "cne.visible", "3000")
		}},
		"some without class": {&Page{Views: []View{{Embedding: many}}, Colouring: plot.Colouring{Classes: some}}, setting{}, func(b *tab) {
			b.says("#classes", "0 750 1 750 2 750 no label 750")
			b.after("click #classes li:nth-child(4) button", "cne.visible", "2250")
		}},
		"long names":            {named(long), setting{}, fits},
		"long names on a phone": {named(long), setting{width: 360, height: 740, phone: true}, fits},
		"held out": {heldOut, setting{}, func(b *tab) {
			b.says("#key", "training 28 held out 2")
			b.colour("trained on, half as far from white", 0, "#8eafc1")
			b.colour("held out", 3, classInk(0, 0))
			b.after("click #key li:nth-child(1) button", "cne.visible", "2")
			b.after("click #classes li:nth-child(1) button", "cne.visible", "0")
			b.after("find row 0; key Enter", "[cne.visible, cne.pinned]", "30,0")
		}},
		"values": {&Page{Views: []View{{Embedding: values}}, Colouring: plot.Colouring{Values: []float64{1, 5.5, 10, math.NaN()}}}, setting{}, func(b *tab) {
			for row, at := range []float64{0, 0.5, 1} {
				b.colour("values", row, valueInk(at)[0])
			}
			b.colour("none", 3, inkOf(plot.UnlabeledColour())[0])
			b.after("hover 1", "cne.hovered", "1")
			b.says("#tip", "5.5 row 1")
			b.after("find 10", "cne.standing", "1")
		}},
		"small values": {&Page{Views: []View{{Embedding: matrix(2, 0, 0, 1, 0)}}, Colouring: plot.Colouring{Values: []float64{-1e-7, 2.1e-6}}}, setting{}, func(b *tab) {
			b.after("opened", `new Set(Array.from(document.querySelectorAll("#colours .marks span"), (e) => e.offsetHeight)).size`, "1",
				`document.querySelector("#colours .marks span:last-child").textContent`, "2e-6")
		}},
		"markup": {markup, setting{}, func(b *tab) {
			b.after("hover 0", "cne.hovered", "0")
			b.after("find script", fmt.Sprintf("['title', 'view-name', 'tip-label', 'tip-name', 'facts dt', 'classes .name', 'found .what'].filter((id) => document.querySelector('#' + id).textContent !== %q)", evil), "")
			// Even what somebody puts into the page is not run.
			b.after("do { const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s); }", "typeof window.hacked", "undefined")
			b.forgive("Content Security Policy")
		}},
		"no WebGL": {three(), setting{before: "HTMLCanvasElement.prototype.getContext = () => null;"}, func(b *tab) {
			b.until("document.body.classList.contains('no-points')")
			b.says("#loading", "This browser offers no WebGL 2. Another browser, or this one with its graphics acceleration on, shows the points.")
		}},
		"context lost": {three(), setting{}, func(b *tab) {
			b.do(`{
			  const canvas = document.getElementById("points"), loser = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
			  canvas.addEventListener("webglcontextlost", () => { window.lost = cne.drawn; });
			  loser.loseContext();
			  window.restore = () => loser.restoreContext();
			}`)
			b.until("window.lost")
			// What happens meanwhile counts afterwards.
			b.after("key t; click #classes li:nth-child(2) button", "cne.drawn === lost", "true")
			b.after("do restore()", "cne.drawn > lost", "true", "cne.pixel(3, 3)", "18,20,24", "cne.pixel(...cne.place(1)).slice(0, 3)", "18,20,24")
			b.colour("after a loss", 2, classInk(2, 1))
			b.forgive("CONTEXT_LOST")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := show(t, tc.page, tc.set)
			if name != "no WebGL" {
				b.ready()
			}
			tc.test(b)
		})
	}
}

// fits checks a page whose names are longer than whatever shows them.
func fits(b *tab) {
	b.after("find row 6; key Enter")
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), " "))
	b.after("found",
		`["tip-row", "point-row"].some((id) => { const r = document.getElementById(id).getBoundingClientRect(); return r.height > 0 && r.left >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; })`, "true",
		`(() => { const f = document.getElementById("found"); return !f.hidden && f.scrollWidth <= f.clientWidth; })()`, "true",
		`document.querySelector("#facts dd").getBoundingClientRect().right <= innerWidth`, "true",
		`(() => { const t = Array.from(document.querySelectorAll("#ticks span:not(.bare)"), (e) => e.getBoundingClientRect());
		  return t.length > 0 && t[0].left >= 0 && t.every((r, k) => r.right <= innerWidth && (k === 0 || r.left >= t[k - 1].right)); })()`, "true")
}
