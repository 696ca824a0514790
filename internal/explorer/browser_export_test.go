package explorer

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"cne/internal/plot"
)

// saving is held by the test whose folder the browser saves files in: it has only one.
var saving sync.Mutex

// saves has a tab save files, which the function that it returns reads once they are there.
func (b *tab) saves() (read func(name string) []byte) {
	b.t.Helper()
	saving.Lock()
	b.t.Cleanup(saving.Unlock)
	folder := b.t.TempDir()
	call(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})
	return func(name string) []byte {
		b.t.Helper()
		path := filepath.Join(folder, name)
		for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
			if got, err := os.ReadFile(path); err == nil {
				must(b.t, os.Remove(path))
				return got
			}
		}
		b.t.Fatalf("%s was not saved", name)
		return nil
	}
}

// told returns three groups with names, a column of values and some points held out.
func told() *Page {
	p := three()
	p.Names, p.HeldOut = make([]string, 30), make([]bool, 30)
	weight := make([]float64, 30)
	for i := range p.Names {
		p.Names[i], p.HeldOut[i], weight[i] = fmt.Sprint("point ", i), i%3 == 2, float64(i)/8
	}
	p.Names[0], weight[3] = "a \"quoted\", <b>long</b>\nname", math.NaN()
	p.Classes[6] = -1
	p.Columns = []Column{{Name: "weight, kg", Colouring: plot.Colouring{Values: weight}}}
	return p
}

// The selection is saved with all that the page knows of it: rows, names, labels, columns,
// and the place in the view that is shown, in its units.
func TestBrowserSavesSelection(t *testing.T) {
	t.Parallel()
	p := told()
	b := show(t, p, setting{}).ready()
	read := b.saves()
	b.after("key x", "cne.selection.length", "30")
	for view, name := range []string{"s=0", "s=1"} {
		b.after([]string{"key Home", "key Right"}[view], "cne.t", strconv.Itoa(view))
		b.after([]string{"click #download", "key e"}[view])
		got, err := csv.NewReader(bytes.NewReader(read("Three-groups-s-=-" + name[2:] + "-selection.csv"))).ReadAll()
		must(t, err)
		if len(got) != 31 || strings.Join(got[0], "|") != "row|name|label|weight, kg|held out|x|y" {
			t.Fatalf("%s: got %d lines after %q", name, len(got), got[0])
		}
		for i, fields := range got[1:] {
			label, weight := []string{"ant", "bee", "cat"}[i%3], strconv.FormatFloat(float64(i)/8, 'g', -1, 64)
			if i == 6 {
				label = ""
			}
			if i == 3 {
				weight = ""
			}
			want := []string{strconv.Itoa(i), p.Names[i], label, weight, strconv.FormatBool(i%3 == 2)}
			if strings.Join(fields[:5], "|") != strings.Join(want, "|") {
				t.Errorf("%s: got %q, want %q", name, fields[:5], want)
			}
			for k, want := range p.Views[view].Embedding.Row(i) {
				if x, err := strconv.ParseFloat(fields[5+k], 64); err != nil || math.Abs(x-float64(want)) > 1e-4 {
					t.Errorf("%s: row %d: coordinate %d is %s, want %v", name, i, k, fields[5+k], want)
				}
			}
		}
	}
}

// The view is saved as it is seen, in the screen's pixels or in four times as many, with the
// names on the map and the scale bar.
func TestBrowserSavesPNG(t *testing.T) {
	t.Parallel()
	for theme := range 2 {
		t.Run([]string{"light", "dark"}[theme], func(t *testing.T) {
			b := show(t, three(), setting{dark: theme == 1}).ready()
			read := b.saves()
			b.wheel(0, -100) // a part of the map
			b.after("wait", "cne.camera.zoom > 1.1", "true")
			size := get[[]float64](b, "(() => { const b = document.getElementById('stage').getBoundingClientRect(); return [b.width, b.height]; })()")
			for _, by := range []float64{1, 4} {
				before := b.pixel(1)
				b.after("click #save-open; click "+map[float64]string{1: "#save-png", 4: "#save-large"}[by]+"; away", "document.getElementById('save').hidden", "true")
				picture, err := png.Decode(bytes.NewReader(read(map[float64]string{1: "Three-groups-s-=-0.png", 4: "Three-groups-s-=-0-large.png"}[by])))
				must(t, err)
				if got, want := picture.Bounds().Size(), image.Pt(int(math.Round(size[0]*by)), int(math.Round(size[1]*by))); got != want {
					t.Errorf("×%v: got %v pixels, want %v", by, got, want)
				}
				for row := range 3 {
					at := get[[]float64](b, fmt.Sprintf("cne.place(%d)", row))
					if at[0] < 0 || at[1] < 0 || at[0] >= size[0] || at[1] >= size[1] {
						continue
					}
					r, g, bl, _ := picture.At(int(at[0]*by), int(at[1]*by)).RGBA()
					b.colour(fmt.Sprintf("×%v, theme %d", by, theme), row, fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, bl>>8))
				}
				if after := b.pixel(1); after != before {
					t.Errorf("×%v: afterwards row 1 is drawn in %s, not %s", by, after, before)
				}
			}
		})
	}
}

// The view is saved as vectors: a circle for each point, text as text.
func TestBrowserSavesSVG(t *testing.T) {
	t.Parallel()
	p := told()
	p.Title, p.ClassNames = `<A> & "B"`, []string{"<ant> & co", "bee", "cat"}
	b := show(t, p, setting{}).ready()
	read := b.saves()
	b.after("hover 4", "cne.hovered", "4")
	b.after("click #save-open; click #save-svg", "document.getElementById('save').hidden", "true")
	var got struct {
		Title  string `xml:"title"`
		Groups []struct {
			Circles []struct {
				X      float64 `xml:"cx,attr"`
				Y      float64 `xml:"cy,attr"`
				Fill   string  `xml:"fill,attr"`
				Stroke string  `xml:"stroke,attr"`
			} `xml:"circle"`
		} `xml:"g"`
		Marks []struct {
			Size string `xml:"font-size,attr"`
			Text string `xml:",chardata"`
		} `xml:"text"`
	}
	must(t, xml.Unmarshal(read("A-B-s-=-0.svg"), &got))
	if got.Title != p.Title || len(got.Groups) != 2 || len(got.Groups[0].Circles) != 20 || len(got.Groups[1].Circles) != 10 {
		t.Fatalf("got title %q and groups %v", got.Title, got.Groups)
	}
	for i := range 30 {
		at := get[[]float64](b, fmt.Sprintf("cne.place(%d)", i))
		kind, found := 0, false
		if i%3 == 2 {
			kind = 1
		}
		for _, c := range got.Groups[kind].Circles {
			if math.Hypot(c.X-at[0], c.Y-at[1]) < 0.02 {
				found = true
				if want := classInk(i%3, 0); kind == 1 && (c.Fill != want || c.Stroke == "") {
					t.Errorf("row %d has fill %q and rim %q, want %q", i, c.Fill, c.Stroke, want)
				}
			}
		}
		if !found {
			t.Errorf("row %d is missing", i)
		}
	}
	var texts []string
	for _, mark := range got.Marks {
		texts = append(texts, mark.Text)
		if mark.Size != "13" {
			t.Errorf("%q has the size %s, want 13 as on the page", mark.Text, mark.Size)
		}
	}
	if !slices.Contains(texts, "<ant> & co") || !slices.Contains(texts, "bee") || !slices.Contains(texts, "5") {
		t.Errorf("the texts are %q, which lack names or the scale", texts)
	}
}

// Too many points for an SVG are refused with the reason, until fewer are in sight.
func TestBrowserRefusesLargeSVG(t *testing.T) {
	t.Parallel()
	const n = 50_100
	p := &Page{Views: []View{{Embedding: normal(n, 2, 1, 0)}}}
	b := show(t, p, setting{}).ready()
	b.after("key v", "document.activeElement.id", "save-png", "document.getElementById('save-svg').disabled", "true")
	b.contains("#save-why", "up to 50\u202f000 points", "zoom in, or hide some")
	b.after("key Escape", "document.getElementById('save').hidden", "true")
	b.after("key +; key +; key v", "document.getElementById('save-svg').disabled", "false", "document.getElementById('save-why').hidden", "true")
}

// A link shows the same: place, zoom, slider, colours and hidden classes.
func TestBrowserLink(t *testing.T) {
	t.Parallel()
	p := told()
	p.ClassNames = []string{"ant, small", "bee&co", "cat"}
	p.Columns = append(p.Columns, Column{Name: "side=", Colouring: plot.Colouring{Classes: p.Classes, ClassNames: []string{"left", "left", "right"}}})
	b := show(t, p, setting{}).ready()
	b.expect("at the start", "location.hash", "")
	b.wheel(7, -300)
	b.after("key d; key Right", "cne.t", "1")
	b.after("click #classes li:nth-child(2) button; click #key li:nth-child(2) button", "cne.visible", "10")
	b.until("/hide=bee%26co/.test(location.hash) && /t=1/.test(location.hash) && /hide-points=held-out/.test(location.hash)")
	state := "JSON.stringify([cne.camera.x.toFixed(5), cne.camera.y.toFixed(5), cne.camera.zoom.toFixed(5), cne.t, cne.column, cne.visible])"
	want, fragment := get[string](b, state), get[string](b, "location.hash")
	b.run(chromedp.Navigate("about:blank"))
	b.forgive("about:blank")
	b.run(chromedp.Navigate(b.url + fragment))
	b.ready()
	b.expect("by the link", state, want)
	// A column by its name; what is not said is as at the start; nonsense is no matter.
	for _, other := range [][2]string{
		{"#color=side%3D&hide=right", `["side=",1,0,20]`},
		{"#color=weight%2C+kg", `["weight, kg",1,0,30]`},
		{"#zoom=-3&x=NaN&t=7&color=nothing&hide=nobody&%%%=2", `["label",1,0,30]`},
		{"#zoom=1e9&t=-1&x=1e9&hide-points=training", `["label",1,0,10]`},
		{"#color=weight%2C+kg&range=1..2&scale=quantile", `["weight, kg",1,0,9]`},
		{"#color=weight%2C+kg&range=2..x&scale=none", `["weight, kg",1,0,30]`},
		{"#", `["label",1,0,30]`},
	} {
		b.do(fmt.Sprintf("location.hash = %q", other[0]))
		b.expect(other[0], "JSON.stringify([cne.column, cne.camera.zoom, cne.t, cne.visible])", other[1])
	}
	// An address whose event comes after the page would write its own is not lost.
	b.after("do history.replaceState(null, '', '#zoom=3')", "location.hash", "#zoom=3")
	b.after("key +")
	get[bool](b, "new Promise((done) => setTimeout(() => done(true), 500))")
	b.after("do window.dispatchEvent(new HashChangeEvent('hashchange'))", "cne.camera.zoom", "3")
	b.after("do location.hash = '#color=weight%2C+kg&scale=quantile'", "cne.values.kind", "quantile")
	b.after("do location.hash = ''", "cne.column", "label")
	// Copied.
	b.after("key +")
	b.after("click #save-open; click #save-link", "document.getElementById('save').hidden || document.getElementById('save-why').textContent", map[bool]string{true: "true", false: "Copy the address of this page: it is the link."}[get[bool](b, "document.getElementById('save').hidden")])
	b.until("/zoom=1.3/.test(location.hash)")
}
