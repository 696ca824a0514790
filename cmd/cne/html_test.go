package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rundir"
)

// An htmlPage is what a test wants to know of a page.
type htmlPage struct {
	Title string `json:"title"`
	N     int    `json:"n"`
	Views []struct {
		Facts  [][2]string `json:"facts"`
		Centre [2]float64  `json:"centre"`
		Unit   float64     `json:"unit"`
	} `json:"views"`
	Columns []struct {
		Name    string `json:"name"`
		Classes []struct {
			Name string `json:"name"`
		} `json:"classes"`
	} `json:"columns"`
	HeldOut bool `json:"heldOut"`
	Images  *struct {
		Width  int `json:"width"`
		Height int `json:"height"`
	} `json:"images"`

	xy       []float64
	classes  int // of the first column
	category []byte
	names    []string
	held     []bool
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
	for i, b := 0, decode("view-0"); i < len(b); i += 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		p.xy = append(p.xy, p.Views[0].Centre[i/4%2]+v*p.Views[0].Unit)
	}
	if len(p.Columns) > 0 {
		p.classes = len(p.Columns[0].Classes)
		p.category = decode("column-0")
	}
	if strings.Contains(text, `id="data-names"`) {
		p.names = strings.Split(string(decode("names")), "\n")
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
		fmt.Fprintln(&labels, []string{"ant", "bee", "cat"}[i%3])
	}
	must(t, os.WriteFile("images.idx", images, 0o666))
	writeTestFile(t, "labels.txt", labels.String())
}

func TestTrainWritesAPage(t *testing.T) {
	run := func(t *testing.T, flags ...string) string {
		t.Helper()
		code, stdout, stderr := runCne(t.Context(), append([]string{"train", "--set", "data.path=images.idx", "--set", "data.labels=labels.txt",
			"--set", "graph.k=5", "--set", "train.batch_size=64", "--html", "--epochs", "10", "-o", "run"}, flags...)...)
		if code != 0 || !strings.Contains(stdout, filepath.FromSlash("run/embedding.html")) {
			t.Fatal(code, stdout, stderr)
		}
		return stderr
	}
	t.Run("not wanted after all", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 60)
		if code, _, stderr := runCne(t.Context(), "train", "--set", "data.path=images.idx", "--set", "graph.k=5", "--epochs", "1", "--html", "--html=false", "-o", "run"); code != 0 {
			t.Fatal(stderr)
		}
		if slices.Contains(listFiles(t, "run"), "embedding.html") {
			t.Error("--html=false writes a page")
		}
		if code, _, stderr := runCne(t.Context(), "train", "--html=maybe"); code != exitUsage || stderr != "cne: --html: output.html is \"maybe\", but must be true or false; see \"cne train --help\"\n" {
			t.Error(code, stderr)
		}
	})
	t.Run("plain", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 120)
		run(t)
		p := readPage(t, "run/embedding.html")
		if p.Title != "images" || p.N != 120 || p.classes != 3 || p.HeldOut || p.Images == nil || p.Images.Width != 3 || p.Images.Height != 4 {
			t.Errorf("%+v", p)
		}
		if len(p.Views[0].Facts) != 5 || p.Views[0].Facts[0][0] != "kNN recall" {
			t.Errorf("facts %v", p.Views[0].Facts)
		}
		// cne plot makes the same again, but for the title.
		if code, stdout, stderr := runCne(t.Context(), "plot", "run", "--html", "--title", "images", "-o", "again.html"); code != 0 || stdout != "again.html\n" || stderr != "" {
			t.Fatal(code, stdout, stderr)
		}
		if readText(t, "again.html") != readText(t, "run/embedding.html") {
			t.Error("cne plot makes another page")
		}
		// A new run removes the page of the old one.
		if code, _, stderr := runCne(t.Context(), "train", "--set", "data.path=images.idx", "--set", "graph.k=5", "--epochs", "1", "-o", "run", "--force"); code != 0 {
			t.Fatal(stderr)
		}
		if slices.Contains(listFiles(t, "run"), "embedding.html") {
			t.Error("the page of the run before is still there")
		}
	})
	t.Run("without images", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 60)
		run(t, "--html=true", "--set", "output.html_images=false", "--set", "plot.title=Mine")
		if p := readPage(t, "run/embedding.html"); p.Images != nil || p.Title != "Mine" {
			t.Errorf("%+v", p)
		}
		if code, _, stderr := runCne(t.Context(), "plot", "run", "--html"); code != 0 || readPage(t, "run/embedding.html").Images != nil {
			t.Errorf("cne plot asks for images that the run did not want: %s", stderr)
		}
	})
	t.Run("a share held out", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 120)
		run(t, "--set", "data.holdout=0.25")
		p := readPage(t, "run/embedding.html")
		if p.N != 120 || p.Images == nil || !p.HeldOut {
			t.Fatalf("%+v", p)
		}
		// Every row has the place, the class and the state of its image.
		read := func(path string) *data.Dataset {
			set, err := data.Open(t.Context(), []string{path}, data.Options{LabelColumn: rundir.LabelColumn})
			must(t, err)
			return set
		}
		train, held := read("run/embedding.csv"), read("run/holdout.csv")
		rows, err := rundir.ReadRows("run/holdout_rows.csv", 120)
		must(t, err)
		h, k := 0, 0
		for i := range 120 {
			set, at := train, &k
			if slices.Contains(rows, i) {
				set, at = held, &h
			}
			if p.held[i] != (set == held) || int(p.category[i]) != i%3 {
				t.Fatalf("row %d: held out %v, class %d", i, p.held[i], p.category[i])
			}
			for c, want := range set.Points.Row(*at) {
				if d := p.xy[2*i+c] - float64(want); math.Abs(d) > 1e-5*p.Views[0].Unit {
					t.Fatalf("row %d lies elsewhere by %v", i, d)
				}
			}
			*at++
		}
		if code, _, stderr := runCne(t.Context(), "plot", "run", "--title", "images", "-o", "again.html"); code != 0 || readText(t, "again.html") != readText(t, "run/embedding.html") {
			t.Errorf("cne plot makes another page: %s", stderr)
		}
		for text, want := range map[string]string{
			"row\n1\n1\n": "line 3", "row\n200\n": "line 2", "x\n": "line 1", "row\n1\n2\n": "has 2 rows, but there are 30",
		} {
			writeTestFile(t, "run/holdout_rows.csv", text)
			if code, _, stderr := runCne(t.Context(), "plot", "run", "--html"); code != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "holdout_rows.csv") {
				t.Errorf("rows %q: exit code %d: %s", text, code, stderr)
			}
		}
	})
	t.Run("files held out", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 30)
		must(t, os.Rename("images.idx", "held.idx"))
		writeIDX(t, 60)
		run(t, "--set", "data.holdout=held.idx")
		if p := readPage(t, "run/embedding.html"); p.N != 90 || p.Images == nil || !p.held[60] || p.held[59] {
			t.Errorf("%+v", p)
		}
	})
	t.Run("images that are gone", func(t *testing.T) {
		t.Chdir(t.TempDir())
		writeIDX(t, 60)
		run(t)
		must(t, os.Remove("images.idx"))
		code, _, stderr := runCne(t.Context(), "plot", "run", "--html")
		if code != 0 || !strings.Contains(stderr, "the images of the points are left out") || readPage(t, "run/embedding.html").Images != nil {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		writeIDX(t, 50)
		if _, _, stderr := runCne(t.Context(), "plot", "run", "--html"); !strings.Contains(stderr, "data.path has 50 images now, but the embedding 60 points") {
			t.Errorf("too few images: %s", stderr)
		}
		if code, _, stderr := runCne(t.Context(), "plot", "run", "--html", "--images", "none"); code != 0 || stderr != "" {
			t.Errorf("without images: exit code %d: %s", code, stderr)
		}
		writeTestFile(t, "run/config.yaml", strings.Replace(readText(t, "run/config.yaml"), "\nseed:", "\nsed:", 1))
		if code, _, stderr := runCne(t.Context(), "plot", "run", "--html", "--images", "none"); code != 0 || !strings.Contains(stderr, "names and columns that the run has are left out") {
			t.Errorf("no configuration: exit code %d: %s", code, stderr)
		}
	})
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
		code, stdout, stderr := runCne(t.Context(), append([]string{"plot"}, strings.Fields(tc.args)...)...)
		if code != 0 || stdout != filepath.FromSlash(tc.output)+"\n" || stderr != "" {
			t.Errorf("cne plot %s: exit code %d, stdout %q, stderr %q", tc.args, code, stdout, stderr)
			continue
		}
		p := readPage(t, tc.output)
		if p.N != 24 || p.Title != tc.title || p.classes != tc.classes || (p.Images != nil) != tc.images {
			t.Errorf("cne plot %s: %+v", tc.args, p)
		}
	}
	before := listFiles(t, ".")
	const see = `; see "cne plot --help"`
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"a.npy --html -o a.png", 2, `--output is "a.png" and --html asks for a page; let it end in .html, or leave --html out` + see},
		{"a.npy --images images.idx", 2, "--images is given, but a picture shows no images; add --html, or an --output that ends in .html" + see},
		{"a.npy --html --width 10", 2, "--width is for pictures; a page fits itself to its window, leave the flag out" + see},
		{"a.npy -o x.html --point-size 3", 2, "--point-size is for pictures"},
		{"a.npy --html --images none.idx", 1, "--images: the images cannot be read (stat none.idx"},
		{"a.npy --html --images a.npy", 1, "--images: a.npy: "},
		{"a.npy --html --images builtin:mnist10k", 1, "--images names 10000 images, but the embedding has 24 points; give one per point, in the same order"},
		{"a.npy --html --images builtin:x", 1, `--images: there is no built-in data set "x"`},
		{"a.npy -o none/x.html", 1, "--output is none/x.html, but there is no folder none; make it, or choose another file"},
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"plot"}, strings.Fields(tc.args)...)...)
		if code != tc.code || stdout != "" || !strings.HasPrefix(stderr, "cne: "+tc.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("cne plot %s: exit code %d, stdout %q, stderr\n%swant %d and\ncne: %s", tc.args, code, stdout, stderr, tc.code, tc.want)
		}
	}
	if after := listFiles(t, "."); !slices.Equal(after, before) {
		t.Errorf("files are left: %v, before %v", after, before)
	}
}
