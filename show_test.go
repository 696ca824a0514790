package cne_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
	"cne/data/images"
	"cne/train/quality"
)

// shown is an embedding of four points in each corner of a square.
func shown() *cne.Embedding {
	return &cne.Embedding{Positions: &data.Matrix{N: 4, D: 2, X: []float32{0, 0, 3, 0, 0, 3, 3, 3}}}
}

func labels(of ...string) *data.Labels { return data.NewLabels(of) }

func picture(t *testing.T, e *cne.Embedding, o cne.PictureOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, e.WritePicture(&b, o))
	return b.Bytes()
}

func page(t *testing.T, e *cne.Embedding, o cne.PageOptions) string {
	t.Helper()
	var b strings.Builder
	must(t, e.WritePage(&b, o))
	return b.String()
}

// has reports a text that a document lacks.
func has(t *testing.T, what, document string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(document, text) {
			t.Errorf("%s lacks %q", what, text)
		}
	}
}

func TestWritePicture(t *testing.T) {
	e := shown()
	config, err := png.DecodeConfig(bytes.NewReader(picture(t, e, cne.PictureOptions{})))
	if err != nil || config.Width != 1000 || config.Height != 1000 {
		t.Errorf("by default: %d × %d, %v", config.Width, config.Height, err)
	}
	svg := func(o cne.PictureOptions) string {
		o.Format = "svg"
		return string(picture(t, e, o))
	}
	has(t, "classes", svg(cne.PictureOptions{Title: "Corners", Labels: labels("west", "east", "west", "east")}), ">Corners<", ">west<", ">east<")
	if text := svg(cne.PictureOptions{Labels: labels("west", "east", "west", "east"), NameClasses: true, Width: 9}); strings.Count(text, ">west<") < 2 {
		t.Error("the classes are not named")
	}
	has(t, "missing classes", svg(cne.PictureOptions{Labels: labels("west", "", "west", "NaN")}), ">west<", ">no label<")
	has(t, "values", svg(cne.PictureOptions{Labels: labels("0.5", "10", "20", "30")}), ">10<", ">30<")
	has(t, "missing values", svg(cne.PictureOptions{Labels: labels("0.5", "10.5", "", "30")}), ">no label<")
	if text := svg(cne.PictureOptions{Labels: labels("", "", "", "")}); strings.Contains(text, "no label") {
		t.Error("without any label, there is a legend")
	}
	has(t, "held out", svg(cne.PictureOptions{HeldOut: []bool{false, true, false, false}}), ">held out<", ">training<")
	has(t, "size", svg(cne.PictureOptions{Width: 3, Height: 2}), `width="216pt"`, `height="144pt"`)
	if svg(cne.PictureOptions{PointSize: 20}) == svg(cne.PictureOptions{}) {
		t.Error("the points have no size")
	}
	if !bytes.Equal(picture(t, e, cne.PictureOptions{}), picture(t, e, cne.PictureOptions{})) {
		t.Error("two pictures differ")
	}
}

// Panels have one legend, whether their points have the same labels or each its own.
func TestPanels(t *testing.T) {
	e, other := shown(), data.NewMatrix(3, 2)
	copy(other.X, []float32{1, 2, 0, 5})
	l := labels("west", "east", "west", "")
	draw := func(o cne.PictureOptions) string {
		o.Format = "svg"
		return string(picture(t, new(cne.Embedding), o))
	}
	one := cne.PicturePanel{Title: "one", Embedding: e.Positions, Labels: l}
	for name, second := range map[string]cne.PicturePanel{
		"the same labels": {Title: "two", Embedding: e.Positions, Labels: l},
		"its own labels":  {Title: "two", Embedding: other, Labels: labels("east", "west", "west")},
		"no labels":       {Title: "two", Embedding: other},
	} {
		text := draw(cne.PictureOptions{Panels: []cne.PicturePanel{one, second}})
		has(t, name, text, ">one<", ">two<")
		for _, class := range []string{">east<", ">west<", ">no label<"} {
			if strings.Count(text, class) != 1 {
				t.Errorf("%s: %q is there %d times", name, class, strings.Count(text, class))
			}
		}
	}
	row := cne.PictureOptions{Panels: []cne.PicturePanel{one, one}}
	wide := draw(row)
	if row.Columns = 1; draw(row) == wide {
		t.Error("Columns changes nothing")
	}
	for want, p := range map[string]cne.PicturePanel{"panel 1": {}, "panel 1 (counted from 0): labels: got 4, want 3": {Embedding: other, Labels: l}} {
		if err := e.WritePicture(io.Discard, cne.PictureOptions{Panels: []cne.PicturePanel{one, p}}); !errors.Is(err, cne.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestWritePage(t *testing.T) {
	e := shown()
	has(t, "by default, the page", page(t, e, cne.PageOptions{}), "<title>Embedding</title>")
	set := &images.Set{N: 4, H: 2, W: 2, C: 1, Pixels: make([]byte, 16), Names: []string{"a.png", "b.png", "c.png", "d.png"}}
	o := cne.PageOptions{
		Title:   "Corners & <edges>",
		Labels:  labels("west", "east", "west", ""),
		Columns: []cne.PageColumn{{"height", labels("0.5", "1.5", "nan", "7")}, {"kind", labels("soft", "hard", "soft", "soft")}},
		Images:  set,
		HeldOut: []bool{true, false, false, false},
		Facts:   []cne.Fact{{Name: "epochs", Value: "50"}},
	}
	html := page(t, e, o)
	has(t, "the page", html, "Corners &amp; &lt;edges&gt;", `"west"`, `"east"`, `"height"`, `"kind"`, `"hard"`, `["epochs","50"]`, `"heldOut":true`, `data-atlas-0`)
	has(t, "the page with images", html, base64.StdEncoding.EncodeToString([]byte("a.png\x1eb.png\x1ec.png\x1ed.png")))
	o.Names = []string{"p", "q", "r", "s"}
	has(t, "the page with names", page(t, e, o), base64.StdEncoding.EncodeToString([]byte("p\x1eq\x1er\x1es")))
	if again := page(t, e, o); again != page(t, e, o) {
		t.Error("two pages differ")
	}

	// Views come instead of the embedding, which may then have no positions.
	o = cne.PageOptions{Slider: "epoch", Facts: []cne.Fact{{Name: "elsewhere", Value: "1"}}}
	for epoch := range 3 {
		moved := data.NewMatrix(4, 2+epoch)
		copy(moved.X, []float32{0, 1, 5, 7, 2, 9, 1, 1})
		o.Views = append(o.Views, cne.PageView{Name: fmt.Sprint("epoch ", epoch), Embedding: moved, Facts: []cne.Fact{{Name: "loss", Value: fmt.Sprint(9 - epoch)}}})
	}
	html = page(t, new(cne.Embedding), o)
	has(t, "the page with a slider", html, `"slider":"epoch"`, `"epoch 0"`, `"epoch 2"`, `["loss","7"]`, "data-view-2")
	if strings.Contains(html, `"elsewhere"`) {
		t.Error("the facts of no view are shown")
	}
}

func TestFactsOfFigures(t *testing.T) {
	facts := cne.Facts(&quality.Figures{PartitionFunction: new(1234567.), KNNRecall: new(0.12345), KNNRecallError: new(0.0021), KL: new(2.)})
	var got []string
	for _, f := range facts {
		got = append(got, f.Name+" "+f.Value)
		if !strings.HasSuffix(f.Meaning, "better.") {
			t.Errorf("%s is explained by %q", f.Name, f.Meaning)
		}
	}
	if want := []string{"kNN recall 0.123 ± 0.002", "partition function 1.23e6", "KL divergence 2.000"}; !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if cne.Facts(nil) != nil || cne.Facts(new(quality.Figures)) != nil {
		t.Error("there are facts without figures")
	}
}

// A loaded network has no positions until it is given some.
func TestShowLoaded(t *testing.T) {
	m := points(t, 20)
	o := few(func(o *cne.Options) { o.Hidden = []int{8} })
	e := reloaded(t, embed(t, m, o))
	if err := e.WritePicture(io.Discard, cne.PictureOptions{}); !errors.Is(err, cne.ErrPoints) || !strings.Contains(err.Error(), "Project") {
		t.Errorf("a picture of a loaded network: %v", err)
	}
	e.Positions = project(t, e, m)
	if _, _, err := image.Decode(bytes.NewReader(picture(t, e, cne.PictureOptions{}))); err != nil {
		t.Error(err)
	}
}

// failing fails as a full disk does.
type failing struct{}

var errFull = errors.New("no space left")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestShowRefuses(t *testing.T) {
	nan := shown()
	nan.Positions.X[3] = float32(math.NaN())
	two := labels("a", "b")
	for _, tc := range []struct {
		name    string
		e       *cne.Embedding
		picture *cne.PictureOptions
		page    *cne.PageOptions
		is      error
		says    string
	}{
		{"no positions", new(cne.Embedding), &cne.PictureOptions{}, &cne.PageOptions{}, cne.ErrPoints, "Positions"},
		{"no points", &cne.Embedding{Positions: new(data.Matrix)}, &cne.PictureOptions{}, &cne.PageOptions{}, cne.ErrPoints, "Positions"},
		{"NaN", nan, &cne.PictureOptions{}, &cne.PageOptions{}, cne.ErrPoints, "row 1"},
		{"few labels", shown(), &cne.PictureOptions{Labels: two}, &cne.PageOptions{Labels: two}, cne.ErrOption, "Labels: labels: got 2, want 4"},
		{"class without a name", shown(), &cne.PictureOptions{Labels: &data.Labels{Class: make([]int32, 4)}}, nil, cne.ErrOption, "class of point 1"},
		{"few held out", shown(), &cne.PictureOptions{HeldOut: make([]bool, 3)}, &cne.PageOptions{HeldOut: make([]bool, 3)}, cne.ErrOption, "HeldOut: got 3, want 4"},
		{"format", shown(), &cne.PictureOptions{Format: "gif"}, nil, cne.ErrOption, "want png, svg or pdf"},
		{"width", shown(), &cne.PictureOptions{Width: 101}, nil, cne.ErrOption, "Width: got 101"},
		{"too narrow", shown(), &cne.PictureOptions{Width: 0.5}, nil, cne.ErrOption, "too small"},
		{"DPI", shown(), &cne.PictureOptions{DPI: -1}, nil, cne.ErrOption, "DPI"},
		{"names", shown(), nil, &cne.PageOptions{Names: []string{"a"}}, cne.ErrOption, "names: got 1, want 4"},
		{"images", shown(), nil, &cne.PageOptions{Images: &images.Set{N: 3}}, cne.ErrOption, "images: got 3, want 4"},
		{"column", shown(), nil, &cne.PageOptions{Columns: []cne.PageColumn{{"kind", two}}}, cne.ErrOption, `column "kind": labels: got 2, want 4`},
		{"empty column", shown(), nil, &cne.PageOptions{Columns: []cne.PageColumn{{"kind", nil}}}, cne.ErrOption, `column "kind"`},
		{"empty view", shown(), nil, &cne.PageOptions{Views: []cne.PageView{{Name: "a"}}}, cne.ErrOption, "view 0"},
		{"views of other points", shown(), nil, &cne.PageOptions{Views: []cne.PageView{{Embedding: shown().Positions}, {Name: "b", Embedding: data.NewMatrix(3, 2)}}}, cne.ErrOption, `view "b": got 3 points, want 4`},
	} {
		check := func(what string, err error, written int) {
			t.Helper()
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || written > 0 {
				t.Errorf("%s: %s: got %v and %d bytes, want %q", tc.name, what, err, written, tc.says)
			}
		}
		var b bytes.Buffer
		if tc.picture != nil {
			check("picture", tc.e.WritePicture(&b, *tc.picture), b.Len())
		}
		if tc.page != nil {
			check("page", tc.e.WritePage(&b, *tc.page), b.Len())
		}
	}
	for _, err := range []error{shown().WritePicture(failing{}, cne.PictureOptions{}), shown().WritePage(failing{}, cne.PageOptions{})} {
		if !errors.Is(err, errFull) || errors.Is(err, cne.ErrOption) {
			t.Errorf("on a full disk: %v", err)
		}
	}
}
