package explorer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cne/data/neighbors"
	"cne/internal/plot"
)

// near returns three groups where row 0 has the neighbours 3, 7 and 11, the rows from 1
// on the next two, and row 29, which was held out, none.
func near() *Page {
	p := three()
	p.Neighbors = &neighbors.Neighbors{N: 30, K: 3, Index: []int32{3, 7, 11}}
	p.Names, p.HeldOut = make([]string, 30), make([]bool, 30)
	for i := range 30 {
		p.Names[i] = fmt.Sprint("point ", i)
		if i > 0 && i < 29 {
			p.Neighbors.Index = append(p.Neighbors.Index, int32((i+1)%30), int32((i+2)%30), -1)
		}
	}
	p.Neighbors.Index = append(p.Neighbors.Index, -1, -1, -1)
	p.HeldOut[29] = true
	return p
}

// lineTo says whether the marks canvas has something on the way from a row to another.
func lineTo(from, to int) string {
	return fmt.Sprintf(`(() => {
	  const canvas = document.getElementById("marks"), ratio = canvas.width / canvas.clientWidth, a = cne.place(%d), b = cne.place(%d);
	  const [x, y] = [0, 1].map((k) => Math.round(ratio * (a[k] + b[k]) / 2) - 1);
	  return canvas.getContext("2d").getImageData(x, y, 3, 3).data.some((v, k) => k %% 4 === 3 && v > 100);
	})()`, from, to)
}

const panelShown = "document.getElementById('point').checkVisibility()"

func TestBrowserNeighbors(t *testing.T) {
	t.Parallel()
	b := show(t, near(), setting{height: 760}).ready()
	b.after("away", "cne.neighbors", "", lineTo(0, 7), "false", panelShown, "false")
	// Lines lead from the point under the pointer to its neighbours, which the tip lists.
	b.after("hover 0", "cne.neighbors", "3,7,11", lineTo(0, 7), "true", lineTo(0, 11), "true", lineTo(0, 8), "false", panelShown, "false")
	b.says("#tip-near", "point 3 row 3 point 7 row 7 point 11 row 11")
	b.expect("the colours of the list", `Array.from(document.querySelectorAll("#tip-near .dot"), (e) => e.style.background).join()`,
		get[string](b, fmt.Sprintf(`[%q, %q, %q].map((c) => { const e = document.createElement("i"); e.style.background = c; return e.style.background; }).join()`, classInk(0, 0), classInk(1, 0), classInk(2, 0))))
	// They move along with the slider.
	b.after("key Right", "cne.t", "1")
	b.after("hover 0", "cne.neighbors", "3,7,11", lineTo(0, 7), "true")
	b.after("key Home", "cne.t", "0")
	// Those of a hidden class are left out, and points that were held out have none.
	b.after("click #classes li:nth-child(2) button; hover 0", "cne.neighbors", "3,11", lineTo(0, 7), "false")
	b.after("click #all; hover 29", "cne.hovered", "29", "cne.neighbors", "", "document.getElementById('tip-near').checkVisibility()", "false")
	// A click opens a panel, which leads to the neighbours, also by keys.
	b.after("find row 0; key Enter", "cne.pinned", "0", panelShown, "true")
	b.do("document.getElementById('query-clear').click(); document.activeElement.blur()")
	b.says("#near", "point 3 row 3 point 7 row 7 point 11 row 11")
	b.says("#point-head", "ant row 0, training")
	b.says("#point-name", "point 0")
	b.expect("a short text is no stop of Tab", "document.getElementById('point-name').tabIndex", "-1")
	b.after("away", "cne.neighbors", "3,7,11")
	b.after("hover 4", "cne.neighbors", "5,6")
	b.after("away; click #near li:nth-child(2) button", "cne.pinned", "7", "cne.neighbors", "8,9")
	b.run(chromedp.Focus(chromedp.CSS("#near button")))
	camera := get[string](b, "JSON.stringify(cne.camera)")
	b.after("key Down", "document.activeElement.innerText.replace(/\\s+/g, ' ')", "point 9 row 9", "JSON.stringify(cne.camera)", camera)
	b.after("key Up; key End; key Enter", "cne.pinned", "9", "document.activeElement.innerText.replace(/\\s+/g, ' ')", "point 10 row 10")
	// A neighbour that is hidden is shown again.
	b.after("click #classes li:nth-child(2) button", "cne.visible", "20", "cne.neighbors", "11")
	b.after("click #near li:nth-child(1) button", "cne.pinned", "10", "cne.visible", "30")
	b.after("do document.activeElement.blur()")
	b.after("key Escape", panelShown, "false", "cne.pinned", "-1", "cne.neighbors", "")
	b.after("find row 29; key Enter", panelShown, "true", "document.getElementById('point-near').checkVisibility()", "false")
	b.after("click #point-clear", panelShown, "false", "cne.pinned", "-1", "document.activeElement.id", "points")
	// By Tab, what is in the panel is reached.
	b.after("find row 0; key Enter", panelShown, "true")
	b.run(chromedp.Focus(chromedp.CSS("#point-clear")), chromedp.KeyEvent(kb.Tab))
	b.expect("Tab", "document.activeElement.closest('ul').id", "near")
	// In another theme and coloured by something else, the panel follows.
	b.after("find row 0; key Enter; do document.activeElement.blur()")
	b.after("key t", "document.querySelector('#near .dot').style.background", get[string](b, fmt.Sprintf(`(() => { const e = document.createElement("i"); e.style.background = %q; return e.style.background; })()`, classInk(0, 1))))
}

// A page without neighbours, names, labels and images has nothing to put into a panel.
func TestBrowserPlainPoint(t *testing.T) {
	t.Parallel()
	b := show(t, &Page{Views: []View{{Embedding: normal(50, 2, 1, 0)}}}, setting{}).ready()
	width := get[int](b, "document.getElementById('stage').clientWidth")
	b.after("find row 3; key Enter", "cne.pinned", "3", panelShown, "false", "cne.neighbors", "", "document.getElementById('stage').clientWidth", fmt.Sprint(width))
}

func TestBrowserPointOnAPhone(t *testing.T) {
	t.Parallel()
	p := near()
	p.Images = noise(30, 8, 8, 3)
	b := show(t, p, setting{width: 390, height: 844, phone: true}).ready()
	x, y := b.at(0)
	for _, kind := range []input.DispatchTouchEventType{input.DispatchTouchEventTypeTouchStart, input.DispatchTouchEventTypeTouchEnd} {
		at := []*input.TouchPoint{{X: x, Y: y}}
		if kind == input.DispatchTouchEventTypeTouchEnd {
			at = []*input.TouchPoint{}
		}
		call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: at})
	}
	b.after("wait", "cne.pinned", "0", "cne.neighbors", "3,7,11", panelShown, "false", "document.getElementById('tip').checkVisibility()", "true")
	b.after("click #side-open", panelShown, "true",
		"Array.from(document.querySelectorAll('#near button, #point-clear')).filter((e) => !e.matches('.quiet') && e.offsetHeight < 36).length", "0",
		`(() => { const a = document.getElementById("point").getBoundingClientRect(), l = document.getElementById("legend").getBoundingClientRect(); return a.bottom <= l.top + 1 && document.getElementById("near").getBoundingClientRect().bottom <= a.bottom; })()`, "true")
	b.after("click #near li:nth-child(1) button", "cne.pinned", "3")
}

func TestBrowserThumbnails(t *testing.T) {
	t.Parallel()
	p := &Page{Views: []View{{Embedding: normal(5000, 2, 1, 0)}}, Colouring: plot.Colouring{Classes: make([]int32, 5000)}, Images: noise(5000, 8, 8, 1)}
	for i := range p.Classes {
		p.Classes[i] = int32(i % 3)
	}
	for i := range p.Images.Pixels {
		p.Images.Pixels[i] = byte(i / 64 % 256)
	}
	b := show(t, p, setting{}).ready()
	b.after("away", "cne.thumbnails", "")
	mark := func(row int) string {
		return fmt.Sprintf(`(() => {
		  const canvas = document.getElementById("marks"), ratio = canvas.width / canvas.clientWidth, [x, y] = cne.place(%d);
		  return Array.from(canvas.getContext("2d").getImageData(Math.round(ratio * x), Math.round(ratio * y), 1, 1).data).join();
		})()`, row)
	}
	const still = "new Promise((done) => setTimeout(() => done(true), 300))"
	// Zoomed in at a row in the middle.
	middle := get[int](b, "(() => { let best = 0, least = 1e9; const c = cne.camera; for (let i = 0; i < 5000; i++) { const [x, y] = cne.place(i), d = Math.hypot(x - 250, y - 250); if (d < least) { least = d; best = i; } } return best; })()")
	for range 6 {
		b.wheel(middle, -240)
		b.settle()
	}
	b.until("cne.thumbnails.length > 3")
	get[bool](b, still)
	rows := get[[]int](b, "cne.thumbnails")
	if len(rows) > 250 || !slices.IsSorted(rows) {
		t.Errorf("pictures of rows %v", rows)
	}
	// The pictures are the rows', lie where the rows lie, and do not overlap.
	const inSight = "cne.thumbnails.filter((row) => { const [x, y] = cne.place(row), s = document.getElementById('stage'); return x > 30 && y > 30 && x < s.clientWidth - 30 && y < s.clientHeight - 30; })"
	for _, row := range get[[]int](b, inSight)[:3] {
		grey := row % 256
		b.expect(fmt.Sprint("row ", row), mark(row), fmt.Sprintf("%d,%d,%d,255", grey, grey, grey))
	}
	b.expect("overlaps", `cne.thumbnails.some((a, k) => cne.thumbnails.slice(k + 1).some((b) => { const p = cne.place(a), q = cne.place(b); return Math.abs(p[0] - q[0]) < 20 && Math.abs(p[1] - q[1]) < 20; }))`, "false")
	// Where a picture is, it is pointed at; its frame has the colour of the class.
	row := get[[]int](b, inSight)[0]
	x, y := b.at(row)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, x+9, y-9)
	b.expect("at the corner of a picture", "cne.hovered", fmt.Sprint(row))
	// Moved a little, those that stay in sight are the same.
	before := get[[]int](b, inSight)
	b.after("key d")
	get[bool](b, still)
	after := get[[]int](b, inSight)
	kept := 0
	for _, row := range before {
		if slices.Contains(after, row) {
			kept++
		}
	}
	if kept < len(before)/2 {
		t.Errorf("of %d pictures %d are left after moving", len(before), kept)
	}
	// Those of a hidden class are not shown, and none where they are switched off, or zoomed out.
	b.after("click #classes li:nth-child(1) button", "cne.thumbnails.length > 0 && cne.thumbnails.every((row) => row % 3)", "true")
	b.after("click #settings-open; click #pictures", "cne.thumbnails", "")
	b.expect("switched off", mark(after[0]), "0,0,0,0")
	b.after("click #pictures", "cne.thumbnails.length > 0", "true")
	b.after("click #zoom-fit", "cne.thumbnails", "")
	// A page without images has no such setting.
	b = show(t, three(), setting{}).ready()
	b.after("click #settings-open", "document.getElementById('pictures').checkVisibility()", "false")
}

func TestBrowserLongTexts(t *testing.T) {
	t.Parallel()
	p := three()
	p.Names = slices.Repeat([]string{"other"}, 30)
	p.Names[4] = "First line\r\nsecond <b>bold</b> line\n" + strings.Repeat("a rather long line of words that has to wrap somewhere\n", 20) + "the end"
	b := show(t, p, setting{}).ready()
	b.after("hover 4", "document.getElementById('tip-name').innerText.startsWith('First line\\nsecond <b>bold</b> line\\na rather')", "true",
		"document.querySelectorAll('#tip-name *, #point-name *').length", "0",
		// Eight lines of it, on a page that it does not widen.
		`(() => { const e = document.getElementById("tip-name"), line = parseFloat(getComputedStyle(e).lineHeight); return e.scrollHeight > e.clientHeight && Math.round(e.clientHeight / line); })()`, "8")
	// One line where there is room for one, and found across line breaks.
	b.after("find line second", "cne.standing", "1", "document.querySelector('#found .what').textContent.startsWith('First line second <b>')", "true")
	b.after("key Enter", "cne.pinned", "4", "document.getElementById('said').textContent.includes('\\n')", "false")
	// The panel has all of it, to be scrolled to by keys and to be selected.
	b.after("do document.activeElement.blur()", "document.getElementById('point-name').textContent.endsWith('the end')", "true")
	b.run(chromedp.Focus(chromedp.CSS("#point-name")))
	b.after("key End", "(() => { const e = document.getElementById('point-name'); return e.scrollTop > 100 && e.clientHeight > 50; })()", "true", "cne.t", "0",
		"(() => { getSelection().selectAllChildren(document.getElementById('point-name')); return getSelection().toString().split('\\n').length; })()", "23")
}
