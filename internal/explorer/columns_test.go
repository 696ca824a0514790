package explorer

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"cne/internal/plot"
	"cne/internal/rng"
)

// valueOf returns the value of row i of n, as the page reads it.
func valueOf(b []byte, c valueCoding, n, i int) float64 {
	if c.Distinct == 0 {
		whole := make([]byte, c.Width)
		for k := range whole {
			whole[k] = b[k*n+i]
		}
		if c.Width == 4 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(whole)))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(whole))
	}
	k := 0
	for j := range c.Width {
		k |= int(b[8*c.Distinct+i*c.Width+j]) << (8 * j)
	}
	if k == c.Distinct {
		return math.NaN()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
}

// Values come out of every coding as they are, and few bytes hold those that repeat.
func TestValueCodings(t *testing.T) {
	const n = 200_000
	s := rng.New(1, rng.Init)
	for name, tc := range map[string]struct {
		value           func(i int) float64
		distinct, width int
	}{
		"few":          {func(i int) float64 { return float64(i%7) / 10 }, 7, 1},
		"more":         {func(i int) float64 { return float64(i%300) / 10 }, 300, 2},
		"most":         {func(i int) float64 { return float64(i%65535) / 10 }, 65535, 2},
		"too many":     {func(i int) float64 { return float64(i%65536) / 10 }, 0, 8},
		"of float32":   {func(int) float64 { return float64(float32(s.Normal())) }, 0, 4},
		"of float64":   {func(int) float64 { return s.Normal() }, 0, 8},
		"the largest":  {func(i int) float64 { return math.MaxFloat64 / float64(i+1) }, 0, 8},
		"both zeros":   {func(i int) float64 { return math.Copysign(0, float64(i%2)-0.5) }, 1, 1},
		"almost none":  {func(i int) float64 { return []float64{5, math.NaN()}[min(i, 1)] }, 1, 1},
		"some missing": {func(i int) float64 { return []float64{s.Normal(), math.NaN()}[i%2] }, 0, 8},
	} {
		values := make([]float64, n)
		for i := range values {
			values[i] = tc.value(i)
		}
		about, b := encodeValues(values)
		if about.Distinct != tc.distinct || about.Width != tc.width {
			t.Errorf("%s: %+v, want %d distinct, width %d", name, about.valueCoding, tc.distinct, tc.width)
			continue
		}
		for i, want := range values {
			if got := valueOf(b, about.valueCoding, n, i); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%s: value %d is %v, want %v", name, i, got, want)
			}
		}
	}
}

// annotated returns a page of four points with two columns of classes, one of values, and
// names that would do harm as markup.
func annotated() *Page {
	const evil = `<img src=x onerror=alert(1)><script>alert(1)</script>`
	return &Page{
		Views:     []View{{Embedding: matrix(2, 0, 0, 10, 0, 0, 10, 10, 10)}},
		Colouring: plot.Colouring{Classes: []int32{0, 0, 1, 1}, ClassNames: []string{"cat", "dog"}},
		Columns: []Column{
			{Name: evil, Colouring: plot.Colouring{Classes: []int32{0, 1, -1, 1}, ClassNames: []string{evil, "tall"}}},
			{Name: "age", Colouring: plot.Colouring{Values: []float64{1, 34.5, math.NaN(), 80}}},
		},
		Names: []string{evil, "Ann", "Bob", "Zoë 😀"},
	}
}

func TestBrowserColumns(t *testing.T) {
	t.Parallel()
	b := show(t, annotated(), setting{width: 1000, height: 700}).ready()
	b.after("opened", "cne.column", "label", "Array.from(document.querySelectorAll('#column option'), (o) => o.textContent).join('|')", "label|"+annotated().Columns[0].Name+"|age")
	before := b.pixel(1)
	// What is hidden of one column is shown of another.
	b.after("click #classes li:first-child button")
	b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, 5, 5) // over no class, which would stand out
	b.expect("one class is hidden", "cne.visible", "2")
	b.after("choose 1", "cne.visible", "4", "document.querySelectorAll('img').length", "0")
	b.contains("#classes", "<script>alert(1)</script>", "tall", "no label")
	b.colour("row 1 is tall", 1, b.pixel(3))
	b.after("choose 2", "document.getElementById('legend-title').textContent + document.querySelectorAll('#classes li').length", "Values0")
	b.contains("#colours", "80", "no label")
	if b.pixel(1) == b.pixel(3) {
		t.Error("other values have the same colour")
	}
	b.after("key /; find 34.5", "cne.standing", "1", "document.querySelector('#found .what').textContent", "label 34.5")
	b.after("choose 0", "cne.standing", "0", "document.querySelector('#found').textContent", "Nothing found")
	b.after("key Escape; key Escape; key /; find Zo", "cne.standing", "1")
	b.after("key Enter", "cne.pinned", "3")
	b.settle()
	b.contains("#point", "dog", "Zoë 😀", "tall", "80")
	b.after("key Escape; key Escape; key Escape")
	b.settle()
	b.colour("as at first", 1, before)
}

// With many points, names and columns are compressed, and are read again.
func TestBrowserUnpacks(t *testing.T) {
	t.Parallel()
	const n = 17_000 // a byte for each is just enough to be compressed
	p := &Page{Views: []View{{Embedding: normal(n, 2, 1, 0)}}, Names: make([]string, n)}
	values, classes := make([]float64, n), make([]int32, n)
	for i := range values {
		values[i], classes[i], p.Names[i] = float64(i)+0.25, int32(i%3), fmt.Sprintf("s%05d", i)
	}
	p.Columns = []Column{{Name: "v", Colouring: plot.Colouring{Values: values}}, {Name: "c", Colouring: plot.Colouring{Classes: classes}}}
	html := write(t, p)
	for _, id := range []string{"names", "column-0", "column-1"} {
		if !strings.HasPrefix(blockText(t, html, id), packed) {
			t.Errorf("%s is not compressed", id)
		}
	}
	b := show(t, p, setting{}).ready()
	b.after("key /; find s16999", "cne.standing", "1")
	b.after("key Enter", "cne.pinned", "16999")
	b.settle()
	b.contains("#point", "16999.25", "s16999")
	const old = "delete window.DecompressionStream; window.addEventListener('unhandledrejection', (e) => e.preventDefault());"
	without := show(t, p, setting{before: old})
	without.until("document.getElementById('loading')?.textContent.includes('cannot unpack')")
	p.Columns = nil
	without = show(t, p, setting{before: old}).ready()
	without.until("document.getElementById('without').textContent.includes('cannot unpack')")
	without.expect("there are the points", "cne.visible", fmt.Sprint(n))
}
