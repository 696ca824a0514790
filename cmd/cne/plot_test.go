package main

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// makeEmbeddings writes the files for the tests of cne plot below the current folder: 24
// points each.
func makeEmbeddings(t *testing.T) {
	t.Helper()
	const n = 24
	m := data.NewMatrix(n, 2)
	names := make([]string, n)
	var noLabels, kinds, both, headerless, ages strings.Builder
	fmt.Fprintln(&noLabels, "x,y")
	fmt.Fprintln(&kinds, "id,x,y,kind")
	fmt.Fprintln(&both, "x,y,label,kind")
	fmt.Fprintln(&ages, "x,y,label")
	for i := range n {
		x, y := i%5, i*i%7
		m.Row(i)[0], m.Row(i)[1] = float32(x), float32(y)
		names[i] = []string{"ant", "bee", "cat"}[i%3]
		fmt.Fprintf(&noLabels, "%d,%d\n", x, y)
		fmt.Fprintf(&kinds, "p%d,%d,%d,%s\n", i, x, y, names[i])
		fmt.Fprintf(&both, "%d,%d,%d,%s\n", x, y, i%2, names[i])
		fmt.Fprintf(&headerless, "%d,%d,%s\n", x, y, names[i])
		age := fmt.Sprint(20 + 2*i)
		if i == 7 {
			age = ""
		}
		fmt.Fprintf(&ages, "%d,%d,%s\n", x, y, age)
	}
	labels := data.NewLabels(names)
	npy := func(w io.Writer) error { return file.WriteNPY(w, m) }
	csv := func(w io.Writer) error { return file.WriteCSV(w, m, labels, nil) }
	writeMatrix(t, "run/embedding.npy", npy)
	writeMatrix(t, "run/embedding.csv", csv)
	writeMatrix(t, "bare/embedding.npy", npy)
	writeMatrix(t, "e.v2.csv", csv)
	writeMatrix(t, "a.npy", npy)
	writeTestFile(t, "plain.csv", noLabels.String())
	writeTestFile(t, "kinds.csv", kinds.String())
	writeTestFile(t, "both.csv", both.String())
	writeTestFile(t, "headerless.csv", headerless.String())
	writeTestFile(t, "ages.csv", ages.String())
	writeTestFile(t, "labels.txt", strings.Join(names, "\n"))
	writeTestFile(t, "numbers.txt", strings.Repeat("4\n5\n6\n7\n", n/4))
	writeTestFile(t, "half1.txt", strings.Join(names[:n/2], "\n"))
	writeTestFile(t, "half2.txt", strings.Join(names[n/2:], "\n"))
	writeTestFile(t, "short.txt", "1\n2\n")
	writeTestFile(t, "table.png", noLabels.String())
	must(t, os.Mkdir("folder", 0o777))
}

// pictureTexts returns the texts of an SVG: note, title and legend, but not the
// length of the scale bar, which is the last.
func pictureTexts(svg string) []string {
	shown := strings.Split(svg, "</text>")
	for i, s := range shown {
		shown[i] = s[strings.LastIndexByte(s, '>')+1:]
	}
	return shown[:len(shown)-2]
}

func TestPlot(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t)
	words := []string{"ant", "bee", "cat"}
	const density = "one coordinate; height: density of points"
	for _, tc := range []struct {
		args   string
		output string
		text   []string // in an SVG, as well as the length of the scale bar
	}{
		{"run", "run/embedding.png", nil},
		{"run/", "run/embedding.png", nil},
		{"bare", "bare/embedding.png", nil},
		{"run/embedding.npy", "run/embedding.png", nil},
		{"e.v2.csv", "e.v2.png", nil},
		{"a.npy -o A.PNG", "A.PNG", nil},
		{"table.png", "table.png.png", nil}, // only endings of points are taken off
		{"run -o run.svg", "run.svg", words},
		{"bare -o bare.svg", "bare.svg", nil},
		{"e.v2.csv -o e.svg", "e.svg", words},
		{"plain.csv -o p.svg", "p.svg", nil},
		{"plain.csv -o p.svg --title Bees", "p.svg", []string{"Bees"}},
		{"plain.csv -o p.svg --labels labels.txt", "p.svg", words},
		{"plain.csv -o p.svg --labels half1.txt --labels half2.txt", "p.svg", words},
		{"plain.csv -o p.svg --labels numbers.txt", "p.svg", []string{"4", "5", "6", "7"}},
		{"kinds.csv -o k.svg --drop id --label-column kind", "k.svg", words},
		{"kinds.csv -o k.svg --drop 1 --label-column -1", "k.svg", words},
		{"kinds.csv -o k.svg --drop id --labels kind", "k.svg", words},
		{"kinds.csv -o k.svg --drop id --labels kinds.csv:kind", "k.svg", words},
		{"kinds.csv -o k.svg --drop id --drop kind", "k.svg", nil},
		{"both.csv -o b.svg --drop kind", "b.svg", []string{"0", "1"}},
		{"both.csv -o b.svg --label-column kind", "b.svg", words},
		{"both.csv -o b.svg --label-column kind --drop label", "b.svg", words},
		{"both.csv -o b.svg --label-column label --drop kind", "b.svg", []string{"0", "1"}},
		{"both.csv -o b.svg --label-column 3 --drop kind", "b.svg", []string{"0", "1"}},
		{"both.csv -o b.svg --drop label --drop kind", "b.svg", nil},
		{"both.csv -o b.svg --drop kind --labels labels.txt", "b.svg", words},
		{"e.v2.csv -o e.svg --labels numbers.txt", "e.svg", []string{"4", "5", "6", "7"}},
		{"headerless.csv -o h.svg --label-column 3", "h.svg", words},
		{"headerless.csv -o h.svg --drop 3", "h.svg", nil},
		{"headerless.csv -o h.svg --drop 1 --drop 3", "h.svg", []string{density}},
		{"ages.csv -o g.svg", "g.svg", []string{"20", "40", "60", "no label"}},
		{"both.csv -o b.svg --label-column kind --drop label --drop 1", "b.svg", append([]string{density}, words...)},
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"plot"}, strings.Fields(tc.args)...)...)
		if want := filepath.FromSlash(tc.output) + "\n"; code != 0 || stdout != want || stderr != "" {
			t.Errorf("cne plot %s: exit code %d, stdout %q, stderr %q; want %q on stdout", tc.args, code, stdout, stderr, want)
			continue
		}
		content, err := os.ReadFile(tc.output)
		if err != nil {
			t.Error(err)
			continue
		}
		if strings.HasSuffix(tc.output, ".svg") {
			if got := pictureTexts(string(content)); !slices.Equal(got, tc.text) {
				t.Errorf("cne plot %s: the picture says %q, want %q", tc.args, got, tc.text)
			}
			if got := strings.Count(string(content), "h0"); got != 24 {
				t.Errorf("cne plot %s: %d points are drawn", tc.args, got)
			}
		} else if _, err := png.Decode(bytes.NewReader(content)); err != nil {
			t.Errorf("cne plot %s: %v", tc.args, err)
		}
		if err := os.Remove(tc.output); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob("*/.cne*"); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestPlotSize(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t)
	for _, size := range [][2]string{{"10.16", "5.08"}, {"101.6mm", "2in"}, {"4 in", "5.08cm"}} {
		mustRun(t, "plot", "a.npy", "--width", size[0], "--height", size[1], "--point-size", "8")
		f, err := os.Open("a.png")
		must(t, err)
		c, err := png.DecodeConfig(f)
		f.Close()
		if err != nil || c.Width != 4*200 || c.Height != 2*200 {
			t.Errorf("%v: %d×%d pixels (%v), want 4 × 2 inches of 200 pixels", size, c.Width, c.Height, err)
		}
	}
}

// Runs stand in the rows and columns of two keys, in the order of the values, with a gap for
// a missing run.
func TestPlotGrid(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	for _, run := range []string{"1 10", "1 2", "0 2"} {
		s, seed, _ := strings.Cut(run, " ")
		mustRun(t, "train", "points.csv", "-q", "--drop-text", "--epochs", "2", "--set", "loss.name=neg", "--s", s, "--seed", seed, "-o", "runs/"+s+"-"+seed)
	}
	args := []string{"runs/1-10", "runs/1-2", "runs/0-2", "--grid", "loss.s,seed", "--width", "150mm", "-o", "grid.svg"}
	texts := plotTexts(t, append(args, "--title", "Whole", "--letters")...)
	for _, want := range []string{"Whole", "s = 0", "s = 1", "seed = 2", "seed = 10", "a", "b", "c"} {
		if at := slices.Index(texts, want); at < 0 || slices.Contains(texts[at+1:], want) {
			t.Errorf("the picture does not say %q once: %q", want, texts)
		}
	}
	if slices.Index(texts, "seed = 2") > slices.Index(texts, "seed = 10") {
		t.Errorf("the columns are not in the order of their numbers: %q", texts)
	}
	code, _, stderr := runCne(t.Context(), "plot", "runs/1-10", "runs/1-2", "runs/0-2", "--grid", "loss.s,graph.k", "-o", "x.png")
	if want := "got runs/1-10 and runs/1-2 with the same loss.s and graph.k"; code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d: %s, want %q", code, stderr, want)
	}
}

// Several inputs are drawn side by side, with one legend of all their classes.
func TestPlotStrip(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	write("one.csv", "x,y,label\n0,0,ant\n1,2,bee\n3,1,ant\n")
	write("two.csv", "x,y,label\n0,0,cat\n10,20,bee\n5,5,cat\n7,1,bee\n")
	write("bare.csv", "x,y\n0,0\n1,1\n")
	code, stdout, stderr := runCne(t.Context(), "plot", "one.csv", "two.csv", "bare.csv", "-o", "strip.svg", "--columns", "2")
	if code != 0 || stdout != "strip.svg\n" {
		t.Fatalf("exit code %d, stdout %q: %s", code, stdout, stderr)
	}
	picture, err := os.ReadFile("strip.svg")
	must(t, err)
	for _, text := range []string{">one<", ">two<", ">bare<", ">ant<", ">bee<", ">cat<", ">no label<"} {
		if got := strings.Count(string(picture), text); got != 1 {
			t.Errorf("%s stands %d times in the picture", text, got)
		}
	}
	if code, _, stderr := runCne(t.Context(), "plot", "one.csv", "two.csv", "-o", "strip.png", "--title", "A", "--title", "B"); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
