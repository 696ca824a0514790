package explorer

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/plot"
	"cne/internal/rng"
)

// normal returns n×d normally distributed numbers.
func normal(n, d int, scale, shift float64) *data.Matrix {
	s := rng.New(7, rng.Init)
	m := data.NewMatrix(n, d)
	for i := range m.X {
		m.X[i] = float32(shift + scale*s.Normal())
	}
	return m
}

func matrix(d int, x ...float32) *data.Matrix { return &data.Matrix{N: len(x) / d, D: d, X: x} }

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	must(t, p.Write(&b))
	return b.String()
}

// blockText returns the content of a block of a page.
func blockText(t testing.TB, html, id string) string {
	t.Helper()
	text, parts := "", 0
	for ; ; parts++ {
		of := id
		if parts > 0 {
			of += "." + strconv.Itoa(parts)
		}
		m := regexp.MustCompile(`<script type="[a-z/]*" id="data-`+regexp.QuoteMeta(of)+`">([^<]*)</script>`).FindAllStringSubmatch(html, -1)
		if len(m) == 0 && parts > 0 {
			return text
		}
		if len(m) != 1 {
			t.Fatalf("there are %d blocks %s", len(m), of)
		}
		if len(m[0][1]) > 1<<16+len(packed) && id != "about" {
			t.Errorf("%s has a text of %d bytes", of, len(m[0][1]))
		}
		text += m[0][1]
	}
}

func blockBytes(t testing.TB, html, id string) []byte {
	t.Helper()
	text, compressed := strings.CutPrefix(blockText(t, html, id), packed)
	b, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	if !compressed {
		return b
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	must(t, err)
	return b
}

func aboutOf(t testing.TB, html string) (a about) {
	t.Helper()
	must(t, json.Unmarshal([]byte(blockText(t, html, "about")), &a))
	return a
}

// What the browser computes of the blocks is the embedding again, to a ten-millionth of
// its size, wherever it lies and however large it is; other than two columns are what a
// picture shows of them.
func TestPositions(t *testing.T) {
	for name, tc := range map[string]struct {
		d            int
		scale, shift float64
		within       float64
	}{
		"common": {2, 10, 0, 2e-7}, "far off": {2, 1, 1000, 2e-7}, "large": {2, 1e30, 0, 2e-7}, "largest": {2, 3e37, 1e38, 2e-7}, "small": {2, 1e-30, 0, 2e-7},
		"no extent": {2, 0, 5, 1e-7}, "1 column": {1, 3, 1, 1e-6}, "3 columns": {3, 3, 1, 1e-6}, "8 columns": {8, 3, 1, 1e-6},
	} {
		m := normal(1000, tc.d, tc.scale, tc.shift)
		html := write(t, &Page{Views: []View{{Embedding: m}}})
		v := aboutOf(t, html).Views[0]
		want, note, err := (&plot.Scatter{Embedding: m}).Plane()
		must(t, err)
		p := positionsOf(v, blockBytes(t, html, "view-0"))
		if len(p) != 2*m.N || v.Note != note || (note == "") != (tc.d == 2) {
			t.Fatalf("%s: %d positions, note %q", name, len(p)/2, v.Note)
		}
		var most float64
		for i, x := range want {
			p := p[i]
			inside := math.Abs(p)*v.Unit <= v.Half[i%2]*(1+1e-6)
			if inside {
				most = max(most, math.Abs(p))
			}
			if got := v.Centre[i%2] + p*v.Unit; math.Abs(got-x) > tc.within*v.Unit || tc.d == 2 && x != float64(m.X[i]) {
				t.Fatalf("%s: number %d is %v, want %v", name, i, got, x)
			}
		}
		if tc.scale > 0 && math.Abs(most-1) > 1e-6 {
			t.Errorf("%s: positions reach to %v, want 1", name, most)
		}
		if v.Unit <= 0 || max(v.Half[0], v.Half[1]) > v.Unit {
			t.Errorf("%s: frame %+v", name, v)
		}
	}
}

func TestClassesAndValues(t *testing.T) {
	e := matrix(2, 0, 0, 1, 1, 2, 0, 3, 3)
	html := write(t, &Page{Views: []View{{Embedding: e}}, Colouring: plot.Colouring{Classes: []int32{5, -1, 2, 5}, ClassNames: []string{"", "", "two", "", "", ""}}})
	a := aboutOf(t, html)
	if len(a.Columns[0].Classes) != 2 || a.Columns[0].Classes[0].Name != "two" || a.Columns[0].Classes[1].Name != "5" || a.Columns[0].Classes[1].Number != 5 {
		t.Errorf("classes %+v", a.Columns[0].Classes)
	}
	c := plot.ClassColour(5)
	if want := fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B); a.Columns[0].Classes[1].Ink[0] != want {
		t.Errorf("class 5 is %s, in a picture %s", a.Columns[0].Classes[1].Ink[0], want)
	}
	if got := blockBytes(t, html, "column-0"); !bytes.Equal(got, []byte{1, 2, 0, 1}) {
		t.Errorf("indexes %v", got)
	}

	// The indexes get wider as classes get more; none counts as one more.
	for _, tc := range []struct{ classes, width int }{{255, 1}, {256, 2}, {65535, 2}, {65536, 4}} {
		n := tc.classes + 1
		classes := make([]int32, n)
		for i := range classes {
			classes[i] = int32(3*i) - 3 // the first has none
		}
		html := write(t, &Page{Views: []View{{Embedding: normal(n, 2, 1, 0)}}, Colouring: plot.Colouring{Classes: classes}})
		b := blockBytes(t, html, "column-0")
		if len(b) != tc.width*n {
			t.Fatalf("%d classes take %d bytes for %d points", tc.classes, len(b), n)
		}
		at := func(i int) int {
			v := 0
			for k := range tc.width {
				v |= int(b[i*tc.width+k]) << (8 * k)
			}
			return v
		}
		if at(0) != tc.classes || at(1) != 0 || at(n-1) != tc.classes-1 {
			t.Errorf("%d classes: indexes %d, %d, …, %d", tc.classes, at(0), at(1), at(n-1))
		}
	}

	html = write(t, &Page{Views: []View{{Embedding: e}}, Colouring: plot.Colouring{Values: []float64{1e300, math.NaN(), -0.1, 7}}})
	v := aboutOf(t, html).Columns[0].Values
	if v == nil || v.Low != -0.1 || v.High != 1e300 || len(v.Inks) != 256 || len(v.Ticks) < 2 {
		t.Errorf("values %+v", v)
	}
	nan := math.NaN()
	if a := aboutOf(t, write(t, &Page{Views: []View{{Embedding: e}}, Colouring: plot.Colouring{Values: []float64{nan, nan, nan, nan}}})); len(a.Columns) > 0 {
		t.Error("there is a scale of no values")
	}

	html = write(t, &Page{Views: []View{{Embedding: e}}, HeldOut: []bool{false, true, true, false}})
	if got := blockBytes(t, html, "held-out"); !aboutOf(t, html).HeldOut || !bytes.Equal(got, []byte{0b0110}) {
		t.Errorf("held out: %b", got)
	}
	if aboutOf(t, write(t, &Page{Views: []View{{Embedding: e}}, HeldOut: []bool{true, true, true, true}})).HeldOut {
		t.Error("all points are held out, and it shows")
	}
}

// Whatever a text contains, the page has the elements of one without it, and
// the text can be read back.
func TestTextsAreText(t *testing.T) {
	const evil = `"'</script><script>alert(1)</script><!--<b>&amp;&lt;{{.Title}}` + "\u2028`${x}"
	e := matrix(2, 0, 0, 1, 1)
	page := func(text string) string {
		return write(t, &Page{
			Title: text, Slider: text, Colouring: plot.Colouring{Classes: []int32{0, 1}, ClassNames: []string{text, text + "2"}}, Names: []string{text, "x"},
			Views: []View{{Name: text, Embedding: e, Facts: []Fact{{Name: text, Value: text}}}, {Name: text, Embedding: e}},
		})
	}
	html, harmless := page(evil), page("harmless")
	for _, mark := range []string{"<script", "</script>", "<!--", "<b>", "<title>", "</title>"} {
		if got, want := strings.Count(html, mark), strings.Count(harmless, mark); got != want {
			t.Errorf("%s occurs %d times, without such texts %d times", mark, got, want)
		}
	}
	a := aboutOf(t, html)
	for _, got := range []string{a.Title, a.Slider, a.Views[0].Name, a.Views[0].Facts[0][0], a.Views[0].Facts[0][1], a.Columns[0].Classes[0].Name} {
		if got != evil {
			t.Errorf("the text has become %q", got)
		}
	}
	if names := strings.Split(string(blockBytes(t, html, "names")), nameSeparator); len(names) != 2 || names[0] != evil {
		t.Errorf("names %q", names)
	}
	if got := aboutOf(t, page("a\x00\xff\nb")).Title; got != "a \uFFFD b" {
		t.Errorf("a title that cannot be shown is %q", got)
	}
	if got := aboutOf(t, write(t, &Page{Views: []View{{Embedding: e}}})).Title; got != "Embedding" {
		t.Errorf("without a title, it is %q", got)
	}
}

// The policy names what is inlined and lets nothing else in; nothing in the
// page points elsewhere.
func TestPolicy(t *testing.T) {
	html := write(t, &Page{Views: []View{{Embedding: matrix(2, 1, 2)}}})
	if n := strings.Count(html, "Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"); n != 1 {
		t.Errorf("%d policies", n)
	}
	for _, match := range regexp.MustCompile(`(?i)(https?:)?//[a-z][a-z0-9.-]+\.[a-z]+`).FindAllString(html, -1) {
		if match != "http://www.w3.org" { // the name space of SVG
			t.Errorf("the page names %s", match)
		}
	}
	for _, attribute := range []string{" style=", " onclick=", " src=", "<link rel=\"stylesheet", "@import", "url("} {
		if strings.Contains(html, attribute) {
			t.Errorf("the page contains %s", attribute)
		}
	}
	for _, name := range scripts {
		text, err := files.ReadFile(name)
		if err != nil || !strings.Contains(html, string(text)) {
			t.Errorf("%s is not part of the page (%v)", name, err)
		}
	}
	found, err := files.ReadDir(".")
	if err != nil || len(found) != len(scripts)+2 {
		t.Errorf("%d files are embedded, and %d scripts used (%v)", len(found), len(scripts), err)
	}
}

func TestRefusals(t *testing.T) {
	e := matrix(2, 0, 0, 1, 1, 2, 2)
	one := []View{{Name: "s = 1", Embedding: e}}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, tc := range map[string]struct {
		p    Page
		kind error
		text string
	}{
		"no views":       {Page{}, ErrInput, "views: got none"},
		"no embedding":   {Page{Views: []View{{Name: "x"}}}, ErrInput, `view "x": cannot draw the plot: points: got none`},
		"no points":      {Page{Views: []View{{Embedding: &data.Matrix{D: 2}}}}, ErrInput, "view 0"},
		"no columns":     {Page{Views: []View{{Embedding: &data.Matrix{N: 2}}}}, ErrInput, "embedding"},
		"torn":           {Page{Views: []View{{Embedding: &data.Matrix{N: 2, D: 2, X: []float32{1, 2, 3}}}}}, ErrInput, "3 numbers"},
		"NaN":            {Page{Views: []View{{Name: "a", Embedding: matrix(2, 0, 0, 1, nan)}}}, ErrNotFinite, `view "a": not a finite number: row 1`},
		"infinite":       {Page{Views: []View{one[0], {Embedding: matrix(2, 0, 0, 1, 2, inf, 0)}}}, ErrNotFinite, "view 1"},
		"other number":   {Page{Views: []View{one[0], {Name: "b", Embedding: matrix(2, 0, 0)}}}, ErrInput, `view "b": got 1 points, want 3 as in the first view`},
		"classes":        {Page{Views: one, Colouring: plot.Colouring{Classes: []int32{1}}}, ErrInput, `view "s = 1": cannot draw the plot: classes: got 1, want 3, one for each point`},
		"values":         {Page{Views: one, Colouring: plot.Colouring{Values: []float64{1, 2, 3, 4}}}, ErrInput, `view "s = 1": cannot draw the plot: values: got 4, want 3, one for each point`},
		"both":           {Page{Views: one, Colouring: plot.Colouring{Values: make([]float64, 3), Classes: make([]int32, 3)}}, ErrInput, "both"},
		"infinite value": {Page{Views: one, Colouring: plot.Colouring{Values: []float64{1, 2, math.Inf(-1)}}}, ErrNotFinite, "row 2"},
		"held out":       {Page{Views: one, HeldOut: []bool{true}}, ErrInput, "HeldOut: got 1, want 3"},
		"names":          {Page{Views: one, Names: []string{"a", "b"}}, ErrInput, "names: got 2, want 3, one for each point"},
		"images":         {Page{Views: one, Images: &images.Set{N: 2, H: 1, W: 1, C: 1, Pixels: []byte{1, 2}}}, ErrInput, "images: got 2, want 3, one for each point in order"},
		"torn images":    {Page{Views: one, Images: &images.Set{N: 3, H: 1, W: 1, C: 1, Pixels: []byte{1, 2}}}, ErrInput, "2 bytes"},
		"two colours":    {Page{Views: one, Images: &images.Set{N: 3, H: 1, W: 1, C: 2, Pixels: make([]byte, 6)}}, ErrInput, "2 values"},
		"empty column":   {Page{Views: one, Columns: []Column{{Name: "a"}}}, ErrInput, `column "a": got neither classes nor values`},
		"column of both": {Page{Views: one, Columns: []Column{{Name: "a", Colouring: plot.Colouring{Classes: make([]int32, 3), Values: make([]float64, 3)}}}}, ErrInput, `column "a"`},
		"long column":    {Page{Views: one, Columns: []Column{{Name: "a", Colouring: plot.Colouring{Classes: make([]int32, 4)}}}}, ErrInput, `column "a": cannot draw the plot: classes: got 4, want 3, one for each point`},
		"short column":   {Page{Views: one, Columns: []Column{{Name: "a", Colouring: plot.Colouring{Values: make([]float64, 1)}}}}, ErrInput, `column "a": cannot draw the plot: values: got 1, want 3, one for each point`},
		"infinite in it": {Page{Views: one, Columns: []Column{{Name: "a", Colouring: plot.Colouring{Values: []float64{0, math.Inf(1), 0}}}}}, ErrNotFinite, "row 1"},
	} {
		var b bytes.Buffer
		err := tc.p.Write(&b)
		if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.text) || b.Len() > 0 {
			t.Errorf("%s: %v, and %d bytes written", name, err, b.Len())
		}
	}
}

func TestSameBytes(t *testing.T) {
	p := &Page{Views: []View{{Embedding: normal(3000, 3, 1, 0)}}, Images: noise(3000, 9, 9, 3)}
	want := write(t, p)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if write(t, p) != want {
		t.Error("other bytes on one core")
	}
}

// The budgets: below 2 MB per embedding of 70 000 points, and below 15 MB for seven of
// MNIST with its images; the 10 000 images in the program take their share.
func TestBudgets(t *testing.T) {
	const n = 70_000
	classes := make([]int32, n)
	for i := range classes {
		classes[i] = int32(i % 10)
	}
	e := normal(n, 2, 5, 1)
	one := len(write(t, &Page{Views: []View{{Embedding: e}}, Colouring: plot.Colouring{Classes: classes}}))
	two := len(write(t, &Page{Views: []View{{Embedding: e}, {Embedding: e}}, Colouring: plot.Colouring{Classes: classes}}))
	if one > 1_000_000 {
		t.Errorf("an embedding of 70 000 points takes %d bytes", one)
	}
	more := two - one
	_, im := digits(t)
	// The 16 levels that all 70 000 get, since 10 000 may have more.
	size := 0
	for _, atlas := range (coding{levels: 16, shrink: 1}).encode(im, all(im.N)) {
		size += len(atlas)
	}
	if size*7 > levelBudget {
		t.Errorf("MNIST's images would take %d bytes, above the budget", 7*size)
	}
	if total := one + 6*more + (levelBudget+2)/3*4; total > 15_000_000 {
		t.Errorf("seven embeddings with images may take %d bytes", total)
	}
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// digits returns the data set of the program, as points and as images.
func digits(t testing.TB) (*data.Dataset, *images.Set) {
	t.Helper()
	ds, err := file.Builtin("mnist10k")
	must(t, err)
	im := &images.Set{N: ds.Points.N, H: 28, W: 28, C: 1, Pixels: make([]byte, len(ds.Points.X))}
	for i, v := range ds.Points.X {
		im.Pixels[i] = byte(v)
	}
	return ds, im
}

// noise returns images that no coding makes small.
func noise(n, h, w, c int) *images.Set {
	s := rng.New(3, rng.Sample)
	im := &images.Set{N: n, H: h, W: w, C: c, Pixels: make([]byte, n*h*w*c)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(s.Uint64())
	}
	return im
}

// Every picture is found where the page looks for it.
func TestImages(t *testing.T) {
	smooth := &images.Set{N: 1100, H: 12, W: 20, C: 3, Pixels: make([]byte, 1100*12*20*3)}
	for i := range smooth.N {
		for k := range smooth.Image(i) {
			y, x, c := k/60, k/3%20, k%3
			smooth.Image(i)[k] = byte(i%50*2 + 4*y + 3*x + 20*c)
		}
	}
	grey := &images.Set{N: 1100, H: 12, W: 20, C: 1, Pixels: make([]byte, 1100*12*20)}
	for i := range grey.Pixels {
		grey.Pixels[i] = smooth.Pixels[3*i]
	}
	large := &images.Set{N: 3, H: 400, W: 200, C: 1, Pixels: make([]byte, 3*400*200)}
	for i := range large.Pixels {
		large.Pixels[i] = byte(i / 80_000 * 60)
	}
	for name, tc := range map[string]struct {
		im            *images.Set
		format        string
		width, height int
		far           int // what a pixel may differ by
	}{
		"colour": {smooth, "image/jpeg", 20, 12, 24},
		"grey":   {grey, "image/png", 20, 12, 0},
		"large":  {large, "image/png", 40, 80, 0},
		"one":    {&images.Set{N: 1, H: 1, W: 1, C: 1, Pixels: []byte{77}}, "image/png", 1, 1, 0},
	} {
		e := data.NewMatrix(tc.im.N, 2)
		html := write(t, &Page{Views: []View{{Embedding: e}}, Images: tc.im})
		a := aboutOf(t, html).Images
		if a.Type != tc.format || a.Width != tc.width || a.Height != tc.height {
			t.Errorf("%s: %+v", name, a)
			continue
		}
		var atlas image.Image
		for i := range tc.im.N {
			if i%a.PerAtlas == 0 {
				b := bytes.NewReader(blockBytes(t, html, fmt.Sprintf("atlas-%d", i/a.PerAtlas)))
				var err error
				if a.Type == "image/png" {
					atlas, err = png.Decode(b)
				} else {
					atlas, err = jpeg.Decode(b)
				}
				must(t, err)
				if atlas.Bounds().Dy() > highestAtlas {
					t.Errorf("%s: an atlas is %d pixels high", name, atlas.Bounds().Dy())
				}
			}
			shrink := (tc.im.H + tc.height - 1) / tc.height
			for y := range tc.height {
				for x := range tc.width {
					r, g, b, _ := atlas.At(x, i%a.PerAtlas*a.TileHeight+y).RGBA()
					for k, got := range []uint32{r, g, b}[:tc.im.C] {
						want := int(tc.im.Image(i)[(y*shrink*tc.im.W+x*shrink)*tc.im.C+k])
						if d := int(got>>8) - want; d > tc.far || d < -tc.far {
							t.Fatalf("%s: image %d at %d, %d, colour %d: %d, want %d", name, i, x, y, k, got>>8, want)
						}
					}
				}
			}
		}
	}
}

// The more images there are and the more is in them, the coarser the coding;
// never is one above its budget while a coarser one is left.
func TestCodings(t *testing.T) {
	_, im := digits(t)
	if ways := codings(im); ways[0] != (coding{levels: 256, shrink: 1}) || ways[len(ways)-1] != (coding{quality: 20, shrink: 2}) {
		t.Errorf("codings of digits: %+v", ways)
	}
	if ways := codings(noise(1, 300, 100, 3)); ways[0] != (coding{quality: 85, shrink: 4}) {
		t.Errorf("codings of large images: %+v", ways)
	}
	var before float64
	for k, way := range codings(noise(1, 32, 32, 3)) {
		size := float64(len(way.encode(noise(64, 32, 32, 3), all(64))[0]))
		if k > 0 && way.quality != 85 && size >= before {
			t.Errorf("%+v is no smaller than the coding before it", way)
		}
		before = size
	}
	for n, want := range map[int]int{1: levelBudget, 70_000: levelBudget, 105_000: levelBudget * 3 / 2, 1_000_000: 4 * levelBudget} {
		if got := (coding{levels: 16}).budget(n); got != want {
			t.Errorf("%d pictures may take %d bytes, want %d", n, got, want)
		}
	}
	many := noise(30_000, 28, 28, 1)
	atlases, about := encodeImages(many)
	size := 0
	for _, a := range atlases {
		size += len(a)
	}
	if about.Type != "image/jpeg" || size > jpegBudget*11/10 {
		t.Errorf("noise takes %d bytes as %+v", size, about)
	}
}

// The scripts keep to ECMAScript 2020, which browsers of that year run.
func TestScriptsAreOfTheirYear(t *testing.T) {
	later := regexp.MustCompile(`\?\?=|\|\|=|&&=|\.at\(|\.replaceAll\(|Object\.hasOwn|\.findLast|this\.#|^\s*(static |async )?#[a-z]|structuredClone|\d_\d`)
	for _, name := range scripts {
		text, err := files.ReadFile(name)
		must(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if later.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, line)
			}
		}
	}
}
