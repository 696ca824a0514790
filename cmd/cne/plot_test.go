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
)

// writeMatrix writes a file with data.WriteNPY or data.WriteCSV.
func writeMatrix(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, path, b.String())
}

// makeEmbeddings writes, below the current folder, the files from which the
// tests of cne plot take theirs: 24 points each.
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
	npy := func(w io.Writer) error { return data.WriteNPY(w, m) }
	csv := func(w io.Writer) error { return data.WriteCSV(w, m, labels, nil) }
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
	if err := os.Mkdir("folder", 0o777); err != nil {
		t.Fatal(err)
	}
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
		text   []string // in an SVG, beside the length of the scale bar
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
	if code, _, stderr := runCne(t.Context(), "plot", "a.npy", "--width", "10.16", "--height", "5.08", "--point-size", "8"); code != 0 {
		t.Fatal(stderr)
	}
	f, err := os.Open("a.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := png.DecodeConfig(f)
	if err != nil || c.Width != 4*200 || c.Height != 2*200 {
		t.Errorf("%d×%d pixels (%v), want 4 × 2 inches of 200 pixels", c.Width, c.Height, err)
	}
}

func TestPlotBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t)
	writeTestFile(t, "nan.csv", "x,y\n1,2\n3,NaN\n")
	writeTestFile(t, "ragged.csv", "x,y\n1,2\n3\n")
	writeTestFile(t, "empty.csv", "")
	writeTestFile(t, "labels.csv", "label\na\nb\n")
	writeTestFile(t, "truncated.npy", "\x93NUMPY\x01\x00\x10\x00{")
	if err := os.Mkdir("folder.png", 0o777); err != nil {
		t.Fatal(err)
	}
	before := listFiles(t, ".")
	const (
		one = "cne plot needs an argument: the file with the embedding, or the run folder"
		see = `; see "cne plot --help"`
	)
	for _, tc := range []struct {
		args string
		code int
		want string // of stderr
	}{
		{"", 2, one + see},
		{"a.npy b.npy", 2, `2 embeddings need --output, the file for their picture` + see},
		{"a.npy -o a.jpg", 2, `--output is "a.jpg", but must end in .png, .svg or .html` + see},
		{"a.npy -o folder", 2, `--output is "folder", but must end in .png, .svg or .html` + see},
		{"a.npy --width 101", 2, "--width is 101, but must be a number from 0 to 100" + see},
		{"a.npy --height -1", 2, "--height is -1, but must be a number from 0 to 100" + see},
		{"a.npy --height nan", 2, "--height is NaN, but must be a number from 0 to 100" + see},
		{"a.npy --point-size 1e9", 2, "--point-size is 1e+09, but must be a number from 0 to 100" + see},
		{"plain.csv --labels labels.txt --label-column kind", 2, "--labels and --label-column are both given; labels can come from one of them" + see},
		{"a.npy --width 1", 1, "a.png: cannot draw the plot: 1 × 12.7 cm leave too little room for the points beside legend, title and scale bar; make the picture wider and higher"},
		{"none.npy", 1, "the embedding cannot be read (stat none.npy: no such file or directory); check the path"},
		{"folder", 1, "the folder folder holds neither embedding.csv nor embedding.npy; name the folder of a finished run, or a file"},
		{"table.png -o table.png", 1, "table.png would be replaced by the results (--output); choose another file"},
		{"a.npy -o none/a.png", 1, "--output is none/a.png, but there is no folder none; make it, or choose another file"},
		{"a.npy -o folder.png", 1, "--output is folder.png, which is not a regular file; choose another"},
		{"a.npy --log-format xml", 2, `invalid argument "xml" for "--log-format" flag: it must be text or json` + see},
		{"a.npy --label-column kind", 1, "a.npy: a label column or columns to take or drop are set, but this is an array"},
		{"a.npy --labels none.txt", 1, "open none.txt: "},
		{"a.npy --labels short.txt", 1, "there are 2 labels for 24 points (short.txt: 2)"},
		{"kinds.csv", 1, `kinds.csv: line 2, column 1 ("id"), both counted from 1: "p0" is not a number; name this column as label column or drop it`},
		{"plain.csv --label-column kind", 1, `plain.csv: there is no column "kind"; the columns are ["x" "y"]`},
		{"plain.csv --drop 3", 1, "plain.csv: there is no column 3; the table has 2 columns"},
		{"both.csv --drop kind --drop x --drop y", 1, "both.csv: no column is left for the points"},
		{"labels.csv", 1, "labels.csv: no column is left for the points"},
		{"nan.csv", 1, "nan.csv: line 3, column 2 (\"y\"), both counted from 1: \"NaN\" is not finite"},
		{"ragged.csv", 1, "ragged.csv: line 3 (counted from 1) has 1 field, but line 1 has 2"},
		{"empty.csv", 1, "empty.csv: the file is empty"},
		{"truncated.npy", 1, "truncated.npy: the file ends within its header"},
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

// Several inputs are drawn beside each other, with a legend of the classes of
// all of them, in which each has one colour.
func TestPlotStrip(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("one.csv", "x,y,label\n0,0,ant\n1,2,bee\n3,1,ant\n")
	write("two.csv", "x,y,label\n0,0,cat\n10,20,bee\n5,5,cat\n7,1,bee\n")
	write("bare.csv", "x,y\n0,0\n1,1\n")
	code, stdout, stderr := runCne(t.Context(), "plot", "one.csv", "two.csv", "bare.csv", "-o", "strip.svg", "--columns", "2")
	if code != 0 || stdout != "strip.svg\n" {
		t.Fatalf("exit code %d, stdout %q: %s", code, stdout, stderr)
	}
	picture, err := os.ReadFile("strip.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{">one<", ">two<", ">bare<", ">ant<", ">bee<", ">cat<", ">no label<"} {
		if got := strings.Count(string(picture), text); got != 1 {
			t.Errorf("%s stands %d times in the picture", text, got)
		}
	}
	if code, _, stderr := runCne(t.Context(), "plot", "one.csv", "two.csv", "-o", "strip.png", "--title", "A", "--title", "B"); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"one.csv two.csv", exitUsage, "2 embeddings need --output"},
		{"one.csv two.csv -o strip.png --title A", exitUsage, "--title is given 1 times for 2 embeddings"},
		{"one.csv -o strip.png --title A --title B", exitUsage, "--title is given 2 times for one picture"},
		{"one.csv two.csv -o strip.png --width 20", exitUsage, "--width and --height are about a single embedding"},
		{"one.csv two.csv -o strip.png --columns -1", exitUsage, "--columns is -1"},
		{"one.csv --columns 2", exitUsage, "--columns is about several embeddings"},
		{"one.csv two.csv -o two.csv", exitUsage, "must end in .png or .svg"},
		{"one.csv none.csv -o other.png", exitFailure, "the embedding cannot be read"},
		{"--animate one.csv two.csv", exitUsage, "takes one argument"},
	} {
		code, _, stderr := runCne(t.Context(), append([]string{"plot"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("cne plot %s: exit code %d: %s; want code %d and %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
	if _, err := os.Stat("other.png"); err == nil {
		t.Error("a picture is left of a command that failed")
	}
}
