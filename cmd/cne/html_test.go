package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An htmlPage has the parts of a page that tests look at.
type htmlPage struct {
	Title string `json:"title"`
	N     int    `json:"n"`
	Views []struct {
		Facts  [][2]string `json:"facts"`
		Centre [2]float64  `json:"centre"`
		Low    [2]float64  `json:"low"`
		High   [2]float64  `json:"high"`
		Unit   float64     `json:"unit"`
	} `json:"views"`
	Columns []struct {
		Name    string `json:"name"`
		Classes []struct {
			Name string `json:"name"`
		} `json:"classes"`
	} `json:"columns"`
	HeldOut   bool `json:"heldOut"`
	Neighbors int  `json:"neighbors"`
	Images    *struct {
		Width  int `json:"width"`
		Height int `json:"height"`
	} `json:"images"`

	xy       []float64
	classes  int // of the first column
	category []byte
	names    []string
	held     []bool
	near     []int // n for none
}

// readPage reads the blocks of a page.
func readPage(t *testing.T, path string) *htmlPage {
	t.Helper()
	text := readText(t, path)
	block := func(id string) string {
		m := regexp.MustCompile(`id="data-` + id + `">([^<]*)<`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no block %s", path, id)
		}
		return m[1]
	}
	decode := func(id string) []byte {
		b, err := base64.StdEncoding.DecodeString(block(id))
		must(t, err)
		return b
	}
	p := &htmlPage{}
	must(t, json.Unmarshal([]byte(block("about")), p))
	// See frame in internal/explorer: whole numbers of 24 bits, in planes of bytes.
	b, view := decode("view-0"), p.Views[0]
	for n, i := len(b)/6, 0; i < n; i++ {
		for k := range 2 {
			at := 3*n*k + i
			whole := int(b[at]) | int(b[at+n])<<8 | int(b[at+2*n])<<16
			v := view.Low[k] + float64(whole)*(view.High[k]-view.Low[k])/0xffffff
			p.xy = append(p.xy, view.Centre[k]+v*view.Unit)
		}
	}
	if len(p.Columns) > 0 {
		p.classes = len(p.Columns[0].Classes)
		p.category = decode("column-0")
	}
	if strings.Contains(text, `id="data-names"`) {
		p.names = strings.Split(string(decode("names")), "\x1e")
	}
	if p.Neighbors > 0 { // of fewer than 256 points
		for _, row := range decode("neighbors") {
			p.near = append(p.near, int(row))
		}
	}
	if p.HeldOut {
		b := decode("held-out")
		for i := range p.N {
			p.held = append(p.held, b[i/8]>>(i%8)&1 == 1)
		}
	}
	return p
}

// writeIDX writes n images of 3×4 pixels in three kinds as an IDX file, and
// their labels.
func writeIDX(t *testing.T, n int) {
	t.Helper()
	images := append([]byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 4, 0, 0, 0, 3}, make([]byte, 12*n)...)
	var labels strings.Builder
	for i := range n {
		for k := range 12 {
			images[16+12*i+k] = byte(i%3*60 + k*(i%3) + (i*7+k*k)%11)
		}
		fmt.Fprintln(&labels, animal(i))
	}
	writeTestFile(t, "images.idx", string(images))
	writeTestFile(t, "labels.txt", labels.String())
}

func TestTrainWritesAPage(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(n int, flags ...string) *htmlPage {
		t.Helper()
		writeIDX(t, n)
		stdout, _ := mustRun(t, slices.Concat([]string{"train", "images.idx", "--html", "--epochs", "5", "-o", "run", "--force"}, set("data.labels=labels.txt", "graph.k=5", "train.batch_size=64", "output.plot=false"), flags)...)
		if !strings.Contains(stdout, filepath.FromSlash("run/embedding.html")) {
			t.Errorf("stdout does not name the page: %s", stdout)
		}
		return readPage(t, "run/embedding.html")
	}
	plot := func(flags ...string) (stderr string) {
		t.Helper()
		_, stderr = mustRun(t, append([]string{"plot", "run", "--html"}, flags...)...)
		return stderr
	}
	p := run(120)
	if p.Title != "images" || p.N != 120 || p.classes != 3 || p.HeldOut || p.Images == nil || p.Images.Width != 3 || p.Images.Height != 4 {
		t.Errorf("%+v", p)
	}
	if len(p.Views[0].Facts) != 5 || p.Views[0].Facts[0][0] != "kNN recall" {
		t.Errorf("facts %v", p.Views[0].Facts)
	}
	// cne plot makes the same again, but for the title.
	if stderr := plot("--title", "images", "-o", "again.html"); stderr != "" {
		t.Error(stderr)
	}
	sameFile(t, "again.html", "run/embedding.html")
	// A new run removes the page of the old one.
	mustRun(t, "train", "images.idx", "--set", "graph.k=5", "--epochs", "1", "-o", "run", "--force", "--html", "--html=false")
	if exists("run/embedding.html") {
		t.Error("the page of the run before is still there, or --html=false writes one")
	}
	mustFail(t, exitUsage, "cne: --html: output.html: got \"maybe\", want true or false; see \"cne train --help\"\n", "train", "--html=maybe")

	// A share held out: every row has the place, the class and the state of its image.
	p = run(120, "--set", "data.holdout=0.25")
	if p.N != 120 || p.Images == nil || !p.HeldOut {
		t.Fatalf("%+v", p)
	}
	train, held := readPositions(t, "run/embedding.npy"), readPositions(t, "run/holdout.npy")
	rows := rowsIn(t, "run/holdout_rows.csv")
	h, k := 0, 0
	for i := range 120 {
		m, at := train, &k
		if slices.Contains(rows, i) {
			m, at = held, &h
		}
		if p.held[i] != (m == held) || int(p.category[i]) != i%3 {
			t.Fatalf("row %d: held out %v, class %d", i, p.held[i], p.category[i])
		}
		for c, want := range m.Row(*at) {
			if d := p.xy[2*i+c] - float64(want); math.Abs(d) > 1e-5*p.Views[0].Unit {
				t.Fatalf("row %d lies elsewhere by %v", i, d)
			}
		}
		*at++
	}
	plot("--title", "images", "-o", "again.html")
	sameFile(t, "again.html", "run/embedding.html")
	for text, want := range map[string]string{"row\n1\n1\n": "entry 2", "row\n200\n": "entry 1", "x\n": "line 1", "row\n1\n2\n": "got 2 rows, want 30"} {
		writeTestFile(t, "run/holdout_rows.csv", text)
		mustFail(t, 1, want, "plot", "run", "--html")
	}
	must(t, os.Rename("images.idx", "held.idx"))
	if p := run(60, "--set", "data.holdout=held.idx"); p.N != 180 || p.Images == nil || !p.held[60] || p.held[59] {
		t.Errorf("a file held out: %+v", p)
	}

	// Images that are gone or changed are left out.
	run(60)
	must(t, os.Remove("images.idx"))
	if stderr := plot(); !strings.Contains(stderr, "the images of the points are left out") || readPage(t, "run/embedding.html").Images != nil {
		t.Errorf("images that are gone: %s", stderr)
	}
	writeIDX(t, 50)
	if stderr := plot(); !strings.Contains(stderr, "data.path: got 50 images, want 60 as in the embedding") {
		t.Errorf("too few images: %s", stderr)
	}
	if stderr := plot("--images", "none"); stderr != "" {
		t.Errorf("without images: %s", stderr)
	}
	writeTestFile(t, "run/config.yaml", strings.Replace(readText(t, "run/config.yaml"), "\nseed:", "\nsed:", 1))
	if stderr := plot("--images", "none"); !strings.Contains(stderr, "names and columns that the run has are left out") {
		t.Errorf("no configuration: %s", stderr)
	}
}

func TestPlotPage(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t)
	writeIDX(t, 24)
	for _, tc := range []struct {
		args, output, title string
		classes             int
		images              bool
	}{
		{"run --html --images none", "run/embedding.html", "run", 3, false},
		{"a.npy --html", "a.html", "a", 0, false},
		{"a.npy -o b.HTML --title Bees --labels labels.txt", "b.HTML", "Bees", 3, false},
		{"a.npy --html -o c.html --images images.idx", "c.html", "a", 0, true},
		{"ages.csv -o d.html", "d.html", "ages", 0, false},
	} {
		stdout, stderr := mustRun(t, append([]string{"plot"}, strings.Fields(tc.args)...)...)
		p := readPage(t, tc.output)
		if stdout != filepath.FromSlash(tc.output)+"\n" || stderr != "" || p.N != 24 || p.Title != tc.title || p.classes != tc.classes || (p.Images != nil) != tc.images {
			t.Errorf("cne plot %s: stdout %q, stderr %q, %+v", tc.args, stdout, stderr, p)
		}
	}
}
