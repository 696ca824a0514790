package explorer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"cne/data"
	"cne/internal/plot"
)

// valued returns a page of points in rows of ten, coloured by values.
func valued(values ...float64) *Page {
	e := data.NewMatrix(len(values), 2)
	for i := range values {
		e.Row(i)[0], e.Row(i)[1] = float32(i%10), -float32(i/10)
	}
	return &Page{Views: []View{{Embedding: e}}, Colouring: plot.Colouring{Values: values}}
}

// scale chooses a kind of scale by keys.
func (b *tab) scale(kind string) {
	b.t.Helper()
	b.run(chromedp.Focus(chromedp.CSS("#scale-kind")))
	b.after(map[string]string{"linear": "key Home", "log": "key Home; key Down", "quantile": "key End"}[kind], "cne.values.kind", kind)
	b.settle()
}

// Places of values on each scale, from 0 to 1.
func TestBrowserScales(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	log := func(v float64) float64 { return math.Log1p(v) / math.Log1p(1000) / 2 }
	columns := []struct {
		name   string
		values []float64
		places map[string][]float64
	}{
		{"positive", []float64{1, 2, 4, 1000, 1e4, nan}, map[string][]float64{"linear": {0, 0, 0, 0.1, 1}, "log": {0, 0.075, 0.15, 0.75, 1}, "quantile": {0, 0.25, 0.5, 0.75, 1}}},
		{"of both signs", []float64{-1000, -1, 0, 1, nan, 1000}, map[string][]float64{"linear": {0, 0.5, 0.5, 0.5, nan, 1}, "log": {0, 0.5 - log(1), 0.5, 0.5 + log(1), nan, 1}}},
		{"zeros", []float64{0, 0, 1, 1000}, map[string][]float64{"log": {0, 0, 2 * log(1), 1}}},
		{"negative", []float64{-1000, -1, -1000}, map[string][]float64{"log": {0, 1, 0}}},
		{"ties", []float64{5, 7, 5, 9, 5}, map[string][]float64{"quantile": {0, 2. / 3, 0, 1, 0}}},
		{"all equal", []float64{3, 3, nan, 3}, map[string][]float64{"linear": {0.5, 0.5}, "log": {0.5, 0.5}, "quantile": {0.5, 0.5, nan, 0.5}}},
		{"as large as can", []float64{-math.MaxFloat64, 0, math.MaxFloat64}, map[string][]float64{"linear": {0, 0.5, 1}, "log": {0, 0.5, 1}, "quantile": {0, 0.5, 1}}},
		{"as small as can", []float64{0, math.SmallestNonzeroFloat64}, map[string][]float64{"log": {0, 1}, "quantile": {0, 1}}},
		{"large and narrow", []float64{1.7e9, 1.7e9 + 500, 1.7e9 + 1000}, map[string][]float64{"linear": {0, 0.5, 1}, "log": {0, 0.5, 1}}},
	}
	p := valued(slices.Repeat([]float64{nan}, 6)...)
	p.Colouring = plot.Colouring{}
	for _, c := range columns {
		values := slices.Concat(c.values, slices.Repeat([]float64{nan}, 6-len(c.values)))
		p.Columns = append(p.Columns, Column{Name: c.name, Colouring: plot.Colouring{Values: values}})
	}
	b := show(t, p, setting{}).ready()
	for k, c := range columns {
		b.after(fmt.Sprint("choose ", k), "cne.column", c.name)
		known := len(c.values)
		for _, v := range c.values {
			if math.IsNaN(v) {
				known--
			}
		}
		for _, kind := range []string{"linear", "quantile", "log"} {
			b.scale(kind)
			for row, at := range c.places[kind] {
				want := inkOf(plot.UnlabeledColour())[0]
				if !math.IsNaN(at) {
					want = valueInk(at)[0]
				}
				b.colour(c.name+", "+kind, row, want)
			}
			b.expect(c.name+", "+kind+": all are in the histogram", "cne.values.bins.reduce((a, b) => a + b, 0)", fmt.Sprint(known))
			b.expect(c.name+", "+kind+": no mark lies over another, nor outside", `(() => {
			  const r = Array.from(document.querySelectorAll("#colours .marks span"), (e) => e.getBoundingClientRect()), box = document.getElementById("side").getBoundingClientRect();
			  return r.length > 0 && r.every((m, k) => m.left >= box.left && m.right <= box.right && (k === 0 || m.left > r[k - 1].right));
			})()`, "true")
		}
	}
}

func TestBrowserScaleMarks(t *testing.T) {
	t.Parallel()
	b := show(t, valued(0.001, 0.5, 3, 250, 1e6), setting{}).ready()
	b.scale("log")
	b.says("#colours .marks", "0.01 1 100 10000 1e6")
	b.scale("quantile")
	b.says("#colours .marks", "0.001 0.5 3 250 1e6")
	b.scale("linear")
	b.says("#colours .marks", "200000 600000 1e6")
	b.says("#range-text", "0.001 – 1e6")
}

// heavy returns n values; most of them are much smaller than the largest.
func heavy(n int) []float64 {
	z, values := normal(n, 1, 1, 0), make([]float64, n)
	for i := range values {
		values[i] = math.Exp(2 * float64(z.X[i]))
	}
	return values
}

// The scale begins as suits the values, and each column keeps what was chosen.
func TestBrowserScaleOfAColumn(t *testing.T) {
	t.Parallel()
	p := &Page{Views: []View{{Embedding: normal(2000, 2, 1, 0)}}, Columns: []Column{{Name: "heavy", Colouring: plot.Colouring{Values: heavy(2000)}}, {Name: "even", Colouring: plot.Colouring{Values: make([]float64, 2000)}}, {Name: "few", Colouring: plot.Colouring{Values: make([]float64, 2000)}}, {Name: "class", Colouring: plot.Colouring{Classes: make([]int32, 2000)}}}}
	for i := range 2000 {
		p.Columns[1].Values[i] = float64(i)
	}
	p.Columns[2].Values[7], p.Columns[2].Values[8] = -5, 5
	b := show(t, p, setting{}).ready()
	b.expect("heavy", "cne.values.kind", "log")
	b.after("choose 1", "cne.values.kind", "linear")
	b.after("choose 2", "cne.values.kind", "log") // all but two are 0
	b.after("choose 0")
	b.scale("quantile")
	b.expect("each bin of quantiles has as many", "Math.max(...cne.values.bins) - Math.min(...cne.values.bins)", "1")
	// A range ends with the choice of another column; a scale stays.
	b.do("document.activeElement.blur()")
	b.run(chromedp.Focus(chromedp.CSS("#range-high")))
	b.after("key Left; key Left", "cne.visible", "1981")
	b.after("choose 3", "cne.values", "null", "cne.visible", "2000", "document.getElementById('colours').checkVisibility()", "false")
	b.after("choose 0", "cne.values.kind", "quantile", "cne.values.range", "", "cne.visible", "2000", "document.getElementById('range-high').value", "200")
}

func TestBrowserRange(t *testing.T) {
	t.Parallel()
	values := make([]float64, 105)
	for i := range values {
		values[i] = float64(i)
		if i >= 100 {
			values[i] = math.NaN()
		}
	}
	p := valued(values...)
	p.Columns = []Column{{Name: "other", Colouring: plot.Colouring{Values: make([]float64, 105)}}}
	p.Views = append(p.Views, p.Views[0])
	b := show(t, p, setting{}).ready()
	b.says("#missing", "no label 5")
	const missing = "document.getElementById('missing').ariaPressed"
	// Those without a value are hidden by a click, like a class.
	b.after("click #missing", "cne.visible", "100", missing, "false")
	b.after("click #missing", "cne.visible", "105", missing, "true")
	// With the mouse, from the right end to the middle.
	box := get[[]float64](b, "(() => { const b = document.getElementById('colour-bar').getBoundingClientRect(); return [b.left, b.top + b.height / 2, b.width]; })()")
	b.drag(0, box[0]+box[2], box[1], box[0]+box[2]/2, box[1])
	b.expect("dragged to the middle", "Math.abs(cne.values.high - 49.5) < 1.5 && cne.values.low === 0", "true")
	high := get[float64](b, "cne.values.high")
	shown := int(high) + 1
	b.expect("rows with a value up to it", "cne.visible", fmt.Sprint(shown))
	b.says("#count", fmt.Sprintf("%d of 105 points", shown))
	b.says("#range-text", "0 – "+plot.Rounded(high))
	b.expect("for a screen reader", "document.getElementById('range-high').getAttribute('aria-valuetext')", plot.Rounded(high))
	for row, want := range map[int]string{0: valueInk(0)[0], shown / 2: valueInk(0.5)[0], shown - 1: valueInk(1)[0], shown: "#ffffff", 102: "#ffffff"} {
		b.colour("colours stretch to the range", row, want)
	}
	b.expect("those without a value", missing+" + document.getElementById('missing').disabled", "falsetrue")
	// By keys, which do nothing else.
	b.after("find row 20; key Enter", "cne.pinned", "20")
	camera := get[string](b, "JSON.stringify([cne.camera, cne.t])")
	b.run(chromedp.Focus(chromedp.CSS("#range-low")))
	b.after("key Right; key Right; key Up; key Right", "cne.values.low", "1.98", "cne.visible", fmt.Sprint(shown-2))
	b.after("key Escape", "cne.pinned", "-1", "JSON.stringify([cne.camera, cne.t])", camera)
	b.after("key End", "cne.values.low === cne.values.high", "true") // not beyond the other
	b.after("key Left; key Left; key Left", "cne.values.high - cne.values.low > 1 && cne.visible === Math.floor(cne.values.high) - Math.ceil(cne.values.low) + 1", "true", "cne.pinned", "-1")
	b.after("key Home", "cne.values.low", "0", "cne.visible", fmt.Sprint(shown))
	b.until("document.getElementById('range-low').getAttribute('aria-valuetext') === '0'")
	b.after("click #range-reset", "cne.visible", "105", "cne.values.range", "", "document.getElementById('range-high').value", "200",
		"document.getElementById('range-reset').checkVisibility()", "false", missing, "true", "document.activeElement.id", "range-low")
	// What search goes to is shown again.
	b.run(chromedp.Focus(chromedp.CSS("#range-high")))
	b.after("key Home", "cne.visible", "1")
	b.after("find row 60; key Enter", "cne.visible", "105", "cne.pinned", "60")
	b.run(chromedp.Focus(chromedp.CSS("#range-low")))
	b.after("key Right", "cne.visible", "99")
	b.after("choose 1", "cne.visible", "105", "document.getElementById('range-text').textContent", "0")
	b.after("choose 0", "cne.visible", "105")
}

// With many classes the legend shows the point's class.
func TestBrowserManyClasses(t *testing.T) {
	t.Parallel()
	p := valued(make([]float64, 60)...)
	p.Values, p.Classes = nil, make([]int32, 60)
	for i := range p.Classes {
		p.Classes[i] = int32(i % 30)
	}
	b := show(t, p, setting{}).ready()
	const at = "Array.from(document.querySelectorAll('#classes .at'), (e) => e.innerText.replace(/\\s+/g, ' ').trim()).join()"
	const inSight = "(() => { const r = document.querySelector('#classes .at').getBoundingClientRect(), box = document.getElementById('classes').getBoundingClientRect(); return r.top >= box.top - 1 && r.bottom <= box.bottom + 1; })()"
	b.after("away", at, "")
	b.after("hover 28", at, "28 2", inSight, "true", "document.getElementById('classes').scrollTop > 50", "true")
	b.after("hover 31", at, "1 2", inSight, "true")
	b.after("away", at, "")
	// And the other way round.
	b.run(chromedp.ScrollIntoView(chromedp.CSS("#classes li:nth-child(30)")))
	box := get[[]float64](b, "(() => { const r = document.querySelector('#classes li:nth-child(30)').getBoundingClientRect(); return [r.left + 20, r.top + r.height / 2]; })()")
	b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, box[0], box[1])
	b.expect("an entry pointed at", "cne.standing", "2")
	// Few classes are told apart by their colours.
	b = show(t, three(), setting{}).ready()
	b.after("hover 0", "cne.hovered", "0", at, "")
}

func TestBrowserMeanings(t *testing.T) {
	t.Parallel()
	const evil = "Recall <b>is</b> a share. Higher is better."
	explained := func() *Page {
		p := three()
		p.Views[0].Facts = []Fact{{"kNN recall", "0.1", evil}, {"loss", "7", ""}}
		return p
	}
	const card = "(() => { const c = document.getElementById('meaning'); return c.checkVisibility() && c.textContent; })()"
	const above = "(() => { const c = document.getElementById('meaning').getBoundingClientRect(), r = document.querySelector('#facts button').getBoundingClientRect(); return c.bottom <= r.top && c.left >= 0 && c.right <= innerWidth && c.top >= 0; })()"
	place := func(b *tab) (x, y float64) {
		r := get[[]float64](b, "(() => { const r = document.querySelector('#facts > div').getBoundingClientRect(); return [r.left + 10, r.top + r.height / 2]; })()")
		return r[0], r[1]
	}
	b := show(t, explained(), setting{}).ready()
	b.says("#facts", "kNN recall 0.1 loss 7")
	b.expect("one figure is explained", "document.querySelectorAll('#facts button').length", "1")
	b.after("away", card, "false")
	x, y := place(b)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, x, y)
	b.expect("pointed at", card, evil)
	b.expect("above the figure", above, "true")
	b.after("away", card, "false")
	b.run(chromedp.Focus(chromedp.CSS("#facts button")))
	b.expect("focused", card, evil)
	b.expect("for a screen reader", "document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent", evil)
	b.after("key Escape", card, "false")
	b.after("key Enter", card, evil)
	b.after("do document.activeElement.blur()", card, "false")

	b = show(t, explained(), setting{width: 390, height: 844, phone: true}).ready()
	touch := func(x, y float64) {
		call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}})
		call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
	}
	x, y = place(b)
	touch(x, y)
	b.expect("tapped", card, evil)
	b.expect("above the figure", above, "true")
	touch(200, 300)
	b.expect("tapped elsewhere", card, "false")
}

// Two figures are in sight, and a key or a button shows the others above the footer, which
// does not move the map.
func TestBrowserFigures(t *testing.T) {
	t.Parallel()
	p := three()
	p.Views[0].Facts = []Fact{{"recall", ".5", ""}, {"Spearman", ".6", ""}, {"accuracy", ".7", "A share."}, {"KL divergence", "8", ""}}
	for _, s := range []setting{{}, {width: 360, height: 640, phone: true}} {
		b := show(t, p, s).ready()
		const opened = "document.getElementById('more-facts').checkVisibility()"
		b.says("#facts", "recall .5 Spearman .6")
		b.expect("at first", opened, "false")
		stage := get[string](b, "JSON.stringify(document.getElementById('stage').getBoundingClientRect())")
		b.after("key f", opened, "true", "JSON.stringify(document.getElementById('stage').getBoundingClientRect())", stage)
		b.says("#more-facts", "accuracy .7 KL divergence 8")
		b.expect("in the window", "(() => { const r = document.getElementById('more-facts').getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && r.bottom <= document.getElementById('foot').getBoundingClientRect().top; })()", "true")
		b.after("key Escape", opened, "false")
		b.after("click #more summary", opened, "true")
		b.after("click #more summary", opened, "false")
	}
	b := show(t, three(), setting{}).ready()
	b.expect("of two figures, none is behind the key", "document.getElementById('more').hidden && document.querySelector('.figures').hidden", "true")
}

// Values that are dates are shown as such.
func TestBrowserDates(t *testing.T) {
	t.Parallel()
	l := data.NewLabels([]string{"2020-02-29", "2021-12-31", "2020-11-05 06:30", "2020-06-01"})
	p := valued(l.Value...)
	p.Dates = l.Dates()
	b := show(t, p, setting{}).ready()
	b.says("#range-text", "2020-02-29 – 2021-12-31")
	b.says("#colours .marks", "2020-02-29 2021-12-31")
	b.after("hover 0", "document.getElementById('tip-label').textContent", "2020-02-29")
	b.after("hover 2", "document.getElementById('tip-label').textContent", "2020-11-05 06:30")
}

func TestBrowserHint(t *testing.T) {
	t.Parallel()
	const shown = "document.getElementById('hint').checkVisibility()"
	const clear = `["zoom", "scale", "stage"].every((id) => { const a = document.getElementById("hint").getBoundingClientRect(), b = document.getElementById(id).getBoundingClientRect();
	  return a.left >= 0 && a.right <= innerWidth && (a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom <= a.top); })`
	for _, end := range []string{"key w", "click #hint-close", "find row 1"} {
		b := show(t, three(), setting{first: true}).ready()
		b.expect("at the first visit", shown, "true")
		b.expect("in words", "document.getElementById('hint').innerText.replace(/\\s+/g, ' ').trim()", "drag, wheel move, zoom / search Shift drag lasso ? all keys")
		b.expect("beside what is there", clear, "true")
		stage := get[string](b, "JSON.stringify(document.getElementById('stage').getBoundingClientRect())")
		b.after("hover 0", "cne.hovered", "0", shown, "true")
		b.after(end, shown, "false", "localStorage.getItem('cne-hint')", "seen", "JSON.stringify(document.getElementById('stage').getBoundingClientRect())", stage)
	}
	b := show(t, three(), setting{}).ready()
	b.expect("at the second", shown, "false")
	b = show(t, three(), setting{before: "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } });"}).ready()
	b.expect("without storage", shown, "true")
	b.after("key w", shown, "false")
	b = show(t, three(), setting{width: 360, height: 640, phone: true, first: true}).ready()
	b.expect("beside what is there", shown+" && "+clear, "true")
	if text := get[string](b, "document.getElementById('hint').innerText"); !strings.Contains(text, "pinch") || strings.Contains(text, "Shift") {
		t.Errorf("on a phone it says %q", text)
	}
	b.after("click #zoom-in", shown, "false")
}
