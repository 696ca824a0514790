package explorer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"cne/data"
	"cne/internal/plot"
)

// namedSorted is the names on the map.
const namedSorted = "cne.names.map((n) => n.text).sort().join(' ')"

// tidy is "" if no two names overlap and all are in the stage.
const tidy = `(() => {
  const stage = document.getElementById("stage"), boxes = cne.names.map((n) => n.box);
  return cne.names.filter(({ box: a }, k) => a[0] < 0 || a[1] < 0 || a[2] > stage.clientWidth || a[3] > stage.clientHeight ||
    boxes.some((b, l) => l < k && a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3])).map((n) => n.text).join();
})()`

// written reports whether the first name is drawn in the ink of the theme.
const written = `(() => {
  const [x0, y0, x1, y1] = cne.names[0].box.map(Math.round);
  const { data } = document.getElementById("marks").getContext("2d").getImageData(x0, y0, x1 - x0, y1 - y0);
  const ink = cne.theme === "dark" ? (c) => c > 180 : (c) => c < 90;
  let n = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 250 && ink(data[i]) && ink(data[i + 1]) && ink(data[i + 2])) n++;
  return n >= 8;
})()`

// centred is how far a name is from the middle of a group of three, in pixels.
func centred(name string, group int) string {
	return fmt.Sprintf(`(() => {
	  const n = cne.names.find((n) => n.text === %q), rows = Array.from({ length: 10 }, (_, k) => cne.place(3 * k + %d));
	  const mean = (k) => rows.reduce((sum, p) => sum + p[k], 0) / 10;
	  return Math.hypot((n.box[0] + n.box[2]) / 2 - mean(0), (n.box[1] + n.box[3]) / 2 - mean(1));
	})()`, name, group)
}

func TestBrowserClassNames(t *testing.T) {
	t.Parallel()
	p := three()
	values := make([]float64, 30)
	p.Columns = []Column{{Name: "value", Colouring: plot.Colouring{Values: values}}, {Name: "alone", Colouring: plot.Colouring{Classes: make([]int32, 30)}}, {Name: "two", Colouring: plot.Colouring{Classes: make([]int32, 30), ClassNames: []string{"one", "other"}}}}
	p.Columns[2].Classes[7] = 1
	for dark := range 2 {
		b := show(t, p, setting{dark: dark == 1}).ready()
		b.expect("the classes", namedSorted, "ant bee cat")
		b.expect("without overlaps, in the stage", tidy, "")
		b.expect("drawn", written, "true")
		for g, name := range p.ClassNames {
			b.expect(name+" at its place", centred(name, g)+" < 25", "true")
		}
		if dark == 1 {
			continue
		}
		// They move with the points.
		for range 5 {
			b.key("shift+Right")
		}
		b.after("key shift+Right", "cne.t.toFixed(2)", "0.30")
		for g, name := range p.ClassNames {
			b.expect(name+" on its way", centred(name, g)+" < 25", "true")
		}
		b.after("key Right", "cne.t", "1", namedSorted, "ant bee cat", centred("ant", 0)+" < 25", "true")
		b.settle() // t is 1 before the names of its last frame are drawn
		x := get[float64](b, "cne.names.find((n) => n.text === 'ant').x")
		b.after("key d", fmt.Sprintf("Math.abs(cne.names.find((n) => n.text === 'ant').x - %v) < 0.01", x-60), "true")
		b.after("key 0")
		// What is hidden, and what is out of sight, has no name.
		b.after("click #classes li:nth-child(2) button", namedSorted, "ant cat")
		b.after("click #all", namedSorted, "ant bee cat")
		for range 2 {
			b.wheel(2, -240)
		}
		b.after("zoomed in", namedSorted, "cat")
		b.after("key 0", namedSorted, "ant bee cat")
		// The name of the class that is pointed at stands out.
		b.run(chromedp.Focus(chromedp.CSS("#classes li:nth-child(1) button")))
		b.after("key Down", "cne.names.filter((n) => n.alpha === 1).map((n) => n.text)", "bee", "cne.names.length", "3")
		b.do("document.activeElement.blur()")
		b.after("away", "cne.names.every((n) => n.alpha === 1)", "true")
		// The key and the setting.
		b.after("key m", "cne.names.length", "0", "document.getElementById('naming').value", "none")
		b.after("key m", "cne.names.length", "3", "document.getElementById('naming').value", "classes")
		b.after("key o", "document.getElementById('naming').checkVisibility() && document.getElementById('naming').labels[0].textContent", "Names on the map")
		b.after("do { const c = document.getElementById('naming'); c.value = 'none'; c.dispatchEvent(new Event('change')); }", "cne.names.length", "0")
		b.after("key m", "cne.names.length", "3")
		b.after("key ?", "Array.from(document.querySelectorAll('#help kbd')).some((e) => e.textContent === 'M')", "true")
		b.after("key Escape")
		// Other columns.
		b.after("choose 1", "cne.names.length", "0")
		b.after("choose 2", "cne.names.length", "0")
		b.after("choose 3", namedSorted, "one other")
	}
}

func TestBrowserManyNames(t *testing.T) {
	t.Parallel()
	// A field of 30 × 20 classes, 20 of them larger than the others.
	const n = 1800
	m, classes, names := data.NewMatrix(n, 2), make([]int32, n), make([]string, 600)
	for i := range n {
		c := i % 600
		if i >= 1200 {
			c = 305 + i%20
		}
		classes[i] = int32(c)
		m.Row(i)[0], m.Row(i)[1] = float32(c%30)+0.1*float32(i%3), float32(c/30)
	}
	for c := range names {
		names[c] = fmt.Sprintf("class %d, whose name is rather long for a map of this kind", c)
	}
	b := show(t, &Page{Views: []View{{Embedding: m}}, Colouring: plot.Colouring{Classes: classes, ClassNames: names}}, setting{}).ready()
	before := get[int](b, "cne.names.length")
	if before < 10 || before > 60 {
		t.Errorf("there are %d names, want 10 to 60", before)
	}
	b.expect("without overlaps, in the stage", tidy, "")
	b.expect("the largest first", "cne.names.filter((n) => /^class 3(0[5-9]|1\\d|2[0-4]),/.test(n.text)).length >= 2", "true")
	first := get[string](b, namedSorted)
	// Zoomed in, there is room for more of those in sight.
	share := func() float64 {
		return get[float64](b, `cne.names.length / Array.from({ length: 600 }, (_, i) => cne.place(i)).filter(([x, y]) => x > 0 && y > 0 && x < document.getElementById("stage").clientWidth && y < document.getElementById("stage").clientHeight).length`)
	}
	all := share()
	for range 4 {
		b.after("key +")
	}
	b.expect("zoomed in, without overlaps", tidy, "")
	if zoomed := share(); zoomed < 1.5*all {
		t.Errorf("zoomed in, %v of the classes in sight have a name, before %v", zoomed, all)
	}
	// While the camera moves, what stays well in sight keeps its name.
	const middle = "cne.names.filter((n) => n.x > 150 && n.x < 400 && n.y > 100 && n.y < 400).map((n) => n.text).sort().join('; ')"
	was := get[string](b, middle)
	for range 2 {
		b.after("key d; key w; key a; key s", middle, was)
	}
	b.after("key 0", namedSorted, first, "cne.names.length <= 60", "true")
}

// The name of a class that is smaller than it is next to the class, and next to others, also
// on a phone.
func TestBrowserNamesOfSmallClasses(t *testing.T) {
	t.Parallel()
	names := []string{"CD4 naive T cells", "NK", "CD16 monocytes", "Megakaryocytes", "Plasma cells", "Dendritic cells"}
	middles := [][2]float64{{-8, 6}, {8, 6}, {0, 1}, {2.5, 1}, {-8, -6}, {8, -6}}
	const each = 120
	m, classes, noise := data.NewMatrix(each*len(names), 2), make([]int32, each*len(names)), normal(each*len(names), 2, 1, 3)
	for i := range classes {
		c := i % len(names)
		size := 0.06
		if c == 0 {
			size = 1
		}
		classes[i] = int32(c)
		for k := range 2 {
			m.Row(i)[k] = float32(middles[c][k] + size*float64(noise.Row(i)[k]))
		}
	}
	for _, s := range []setting{{}, {width: 360, height: 740, phone: true}} {
		b := show(t, &Page{Views: []View{{Embedding: m}}, Colouring: plot.Colouring{Classes: classes, ClassNames: names}}, s).ready()
		b.expect("all have a name", "cne.names.length", "6")
		b.expect("without overlaps, in the stage", tidy, "")
		b.expect("no name hides a small class", fmt.Sprintf(`(() => {
		  const middles = %d, all = Array.from({ length: middles }, (_, c) => Array.from({ length: %d }, (_, i) => cne.place(i * middles + c)));
		  return all.flatMap((places, c) => cne.names.filter(({ box: [x0, y0, x1, y1] }) => c && places.filter(([x, y]) => x > x0 && x < x1 && y > y0 && y < y1).length > places.length / 4)
		    .map((n) => n.text + " hides " + c)).join();
		})()`, len(names), each), "")
		b.expect("near it", `Math.max(...cne.names.map(({ x, y, box: [x0, y0, x1, y1] }) => Math.hypot(Math.max(0, x0 - x, x - x1), Math.max(0, y0 - y, y - y1)))) < 30`, "true")
	}
}

// topical returns three groups of 100 points whose texts have words of their own.
func topical() *Page {
	m, names := data.NewMatrix(300, 2), make([]string, 300)
	topics := [][]string{{"Galaxy telescope", "galaxies and a telescope", "Galaxy of stars"}, {"the McDonald burger", "McDonald burgers, cheap", "a burger"}, {"Straße in Köln", "die Straße", "Köln, Straßen"}}
	corners := [][2]float64{{-10, -8}, {10, -8}, {0, 8}}
	noise := normal(300, 2, 1, 0)
	for i := range names {
		g := i % 3
		for k := range 2 {
			m.Row(i)[k] = float32(corners[g][k]) + noise.Row(i)[k]
		}
		names[i] = topics[g][i/3%3] + " common word" + strings.Repeat(" thing", i%2)
	}
	return &Page{Views: []View{{Embedding: m}}, Names: names, AutoLabels: true}
}

func TestBrowserAutoLabels(t *testing.T) {
	t.Parallel()
	p := topical()
	b := show(t, p, setting{}).ready()
	b.until("cne.names.length > 2")
	const texts = "cne.names.map((n) => n.text).sort().join('; ')"
	got := get[string](b, texts)
	for _, word := range []string{"Galaxy", "burger", "McDonald", "Köln"} {
		if !strings.Contains(got, word) {
			t.Errorf("the labels are %q, which lack %q", got, word)
		}
	}
	b.expect("common words", "/common|thing/.test("+texts+")", "false")
	b.expect("labels", "cne.names.length", "3")
	b.expect("at their places", "cne.names.every((n) => Math.min(...[0, 1, 2].map((g) => Math.hypot(n.x - cne.place(g)[0], n.y - cne.place(g)[1]))) < 80)", "true")
	b.expect("tidy", tidy, "")
	b.expect("drawn", written, "true")
	b.after("key m", "cne.names.length", "0")
	b.after("key m", texts, got)
	// With classes there is a choice.
	p.Classes = make([]int32, 300)
	for i := range p.Classes {
		p.Classes[i] = int32(i % 3 / 2)
	}
	p.Views = append(p.Views, View{Embedding: p.Views[0].Embedding})
	b = show(t, p, setting{}).ready()
	b.expect("automatic at first", texts, got)
	choose := func(kind string) string {
		return "do { const c = document.getElementById('naming'); c.value = '" + kind + "'; c.dispatchEvent(new Event('change')); }"
	}
	b.after(choose("classes"), texts, "0; 1")
	b.after("key m", texts, "")
	b.after("key m", texts, "0; 1")
	b.after(choose("automatic"), texts, got)
	// The names of one view disappear before the names of the next appear.
	for range 9 {
		b.key("shift+Right")
	}
	b.after("key shift+Right", "cne.t.toFixed(2)", "0.50", "cne.names.length", "0")
	b.after("key Right", "cne.t", "1", texts, got)
}

// Names are text, whatever they look like.
func TestBrowserNamesAreText(t *testing.T) {
	t.Parallel()
	const evil = `<img src=x onerror="window.hacked=1">`
	p := three()
	p.ClassNames = []string{evil, "</script>", strings.Repeat("long ", 20) + strings.Repeat("x", 90)}
	b := show(t, p, setting{width: 360, height: 740, phone: true}).ready()
	b.expect("named", "cne.names.length", "3")
	b.expect("tidy", tidy, "")
	b.expect("text", fmt.Sprintf("cne.names.some((n) => n.text === %q) && typeof window.hacked", evil), "undefined")
	// A single point, and points at one place.
	for _, p := range []*Page{
		{Views: []View{{Embedding: matrix(2, 3, 4)}}, Colouring: plot.Colouring{Classes: []int32{0}}, Names: []string{"a point"}, AutoLabels: true},
		{Views: []View{{Embedding: matrix(2, 3, 4, 3, 4)}}, Colouring: plot.Colouring{Classes: []int32{0, 1}}},
	} {
		b := show(t, p, setting{}).ready()
		b.expect("names", "cne.names.length", fmt.Sprint(2*len(p.Classes)-2)) // of two, one is below the place and one above
	}
}
