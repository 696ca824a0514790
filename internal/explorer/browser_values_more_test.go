package explorer

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"cne/internal/plot"
)

// A range only by the mouse, with another kind of scale, and with points that were held
// out.
func TestBrowserRangeAndOthers(t *testing.T) {
	t.Parallel()
	values := make([]float64, 40)
	for i := range values {
		values[i] = float64(i)
	}
	p := valued(values...)
	b := show(t, p, setting{width: 1000, height: 640}).ready()
	bar := get[[]float64](b, "(() => { const b = document.getElementById('colour-bar').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]; })()")
	// The ends meet, but do not change places, and part again.
	b.drag(0, bar[0], bar[2], bar[0]+bar[1]+30, bar[2])
	b.expect("to the other end", "[cne.visible, cne.values.low, cne.values.high]", "1,39,39")
	b.drag(0, bar[0]+bar[1], bar[2], bar[0]+bar[1]/2, bar[2])
	b.expect("and back", "cne.visible", "20")
	b.colour("the lowest shown", 20, valueInk(0)[0])
	// Another kind of scale shows the same rows, and its thumb is where the value lies.
	for _, kind := range []string{"log", "quantile", "linear"} {
		b.scale(kind)
		at := map[string]float64{"log": 0.8, "quantile": 0.5, "linear": 0.5}[kind]
		b.expect(kind, fmt.Sprintf("cne.visible + ' ' + (Math.abs(document.getElementById('range-low').value / 200 - %v) < 0.05)", at), "20 true")
		b.colour(kind, 39, valueInk(1)[0])
	}
	// Points that were held out are hidden as well as those outside, and neither are selected.
	p.HeldOut = make([]bool, 40)
	p.HeldOut[30] = true
	b = show(t, p, setting{width: 1000, height: 640}).ready()
	b.run(chromedp.Focus(chromedp.CSS("#range-high")))
	b.after("key Left; click #key li:nth-child(2) button", "cne.visible", "38")
	b.says("#count", "38 of 40 points")
	b.do("document.activeElement.blur()")
	b.after("key x", "cne.selection.length", "38", "cne.selection.includes(39) || cne.selection.includes(30)", "false")
	b.after("click #range-reset", "cne.visible", "39", "cne.selection.length", "38")
}

// Many columns, such as genes, are found by their names.
func TestBrowserColumnSearch(t *testing.T) {
	t.Parallel()
	p := three()
	for k := range 12 {
		values := make([]float64, 30)
		for i := range values {
			values[i] = float64(i % (k + 2))
		}
		p.Columns = append(p.Columns, Column{Name: fmt.Sprintf("GENE%d", k+1), Colouring: plot.Colouring{Values: values}})
	}
	b := show(t, p, setting{}).ready()
	b.until("!document.getElementById('column-search').disabled")
	b.expect("there is a search", "document.getElementById('column-search').checkVisibility()", "true")
	b.expect("with all columns", "document.getElementById('column-names').children.length", "13")
	search := func(text string) {
		b.run(chromedp.Focus(chromedp.CSS("#column-search")), chromedp.SendKeys(chromedp.CSS("#column-search"), text+"\n"))
	}
	search("gene2")
	b.after("key Escape", "cne.column", "GENE2", "document.getElementById('column').value", "2")
	search("ene12")
	b.after("key Escape", "cne.column", "GENE12", "document.getElementById('column-search').value", "")
	search("nothing")
	b.expect("no such column", "cne.column + ' ' + document.getElementById('column-search').value", "GENE12 nothing")
	few := show(t, three(), setting{}).ready()
	few.expect("few columns need none", "document.getElementById('column-search').hidden", "true")
}
