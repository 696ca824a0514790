package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/internal/rng"
)

// writeKinds writes n points in two clusters with a name, a kind and an age.
func writeKinds(t *testing.T, path string, n int) {
	t.Helper()
	s := rng.New(1, rng.Init)
	var b strings.Builder
	b.WriteString("id,a,b,c,kind,age\n")
	for i := range n {
		at := float64(20 * (i % 2))
		age := fmt.Sprint(float64(i) / 4)
		if i == 3 {
			age = ""
		}
		fmt.Fprintf(&b, "<b>%d,%g,%g,%g,%s,%s\n", i, at+s.Normal(), at+s.Normal(), s.Normal(), []string{"ant", "bee"}[i%2], age)
	}
	writeTestFile(t, path, b.String())
}

// ofTable are the flags of a short run on such a table.
func ofTable(path, dir string, more ...string) []string {
	return append([]string{"train", path, "-o", dir, "--epochs", "3", "--set", "graph.k=5", "--set", "train.batch_size=64", "--set", "data.label_column=kind",
		"--set", "data.drop=[id, age]", "--set", "data.names=id", "--set", "output.plot=false"}, more...)
}

func succeed(t *testing.T, args ...string) string {
	t.Helper()
	_, stderr := mustRun(t, args...)
	return stderr
}

// A page has names and columns of the table that the points come from, in the order of its
// rows, also where some were held out or left out.
func TestAnnotations(t *testing.T) {
	t.Chdir(t.TempDir())
	writeKinds(t, "t.csv", 60)
	check := func(name string, p *htmlPage, row func(i int) int, columns ...string) {
		t.Helper()
		if len(p.names) != p.N {
			t.Fatalf("%s: %d names for %d points", name, len(p.names), p.N)
		}
		for i, got := range p.names {
			if k := row(i); got != fmt.Sprintf("<b>%d", k) || int(p.category[i]) != k%2 {
				t.Fatalf("%s: point %d is called %q and of class %d, but is row %d", name, i, got, p.category[i], k)
			}
		}
		var got []string
		for _, c := range p.Columns {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, columns) {
			t.Errorf("%s: columns %q", name, got)
		}
	}
	same := func(i int) int { return i }
	stderr := succeed(t, ofTable("t.csv", "run", "--html", "--set", "output.html_columns=[age]", "--set", "data.holdout=0.2", "--set", "model.keep_data=true")...)
	if !strings.Contains(stderr, "points without a value are grey") {
		t.Error("nothing is said of a missing value:", stderr)
	}
	check("held out", readPage(t, "run/embedding.html"), same, "label", "age")
	held, err := file.ReadColumns(t.Context(), []string{"run/holdout.csv"}, []string{"name"}, file.Options{})
	must(t, err)
	heldRows := strings.Fields(readText(t, "run/holdout_rows.csv"))[1:]
	for i, row := range heldRows {
		if held[0][i] != "<b>"+row {
			t.Fatalf("held-out point %d is called %q, but is row %s", i, held[0][i], row)
		}
	}
	must(t, os.Remove("run/embedding.html"))
	succeed(t, "plot", "run", "--html")
	check("plotted", readPage(t, "run/embedding.html"), same, "label", "age")
	succeed(t, "plot", "run", "--html", "--color", "kind", "--color", "t.csv:a", "-o", "other.html")
	check("other columns", readPage(t, "other.html"), same, "label", "kind", "a")

	succeed(t, ofTable("t.csv", "thin", "--html", "--set", "data.imbalance=linear")...)
	rows := strings.Fields(readText(t, "thin/rows.csv"))[1:]
	left := func(i int) (k int) { fmt.Sscan(rows[i], &k); return k }
	check("thinned out", readPage(t, "thin/embedding.html"), left, "label")
	succeed(t, "plot", "thin", "--html", "-o", "thin.html")
	check("thinned out and plotted", readPage(t, "thin.html"), left, "label")

	sweep := ofTable("t.csv", "sweep", "--html", "--set", "output.html_columns=[age]", "--s", "0,1")
	sweep[0] = "spectrum"
	succeed(t, sweep...)
	check("a spectrum", readPage(t, "sweep/explorer.html"), same, "label", "age")
	check("one of its embeddings", readPage(t, "sweep/s=0/embedding.html"), same, "label", "age")
	if !strings.HasPrefix(readText(t, "sweep/s=0/names.csv"), "name,row\n<b>0,0\n") {
		t.Error("an embedding of the spectrum has no names")
	}
}

// The texts of points label the regions of a page, by flag or by the run's configuration.
func TestAutoLabels(t *testing.T) {
	t.Chdir(t.TempDir())
	var points, texts strings.Builder
	points.WriteString("a,b,c\n")
	s := rng.New(1, rng.Init)
	for i := range 80 {
		fmt.Fprintf(&points, "%g,%g,%g\n", float64(40*(i%2))+s.Normal(), s.Normal(), s.Normal())
		fmt.Fprintf(&texts, "%s number %d\n", []string{"a distant galaxy", "the cheap burger"}[i%2], i)
	}
	writeTestFile(t, "t.csv", points.String())
	writeTestFile(t, "texts.txt", texts.String())
	check := func(path string, want bool) {
		t.Helper()
		about := readText(t, path)
		if got := strings.Contains(about, "galaxy") && strings.Contains(about, `"labels":[{"x":`); got != want {
			t.Errorf("%s: labels: %v, want %v", path, got, want)
		}
	}
	train := func(command, dir string, more ...string) {
		t.Helper()
		succeed(t, append([]string{command, "t.csv", "-o", dir, "--epochs", "30", "--set", "graph.k=5", "--set", "output.plot=false", "--names", "texts.txt"}, more...)...)
	}
	train("train", "run", "--html", "--auto-labels")
	check("run/embedding.html", true)
	succeed(t, "plot", "run", "--html", "-o", "again.html")
	check("again.html", true)
	train("train", "plain", "--html")
	check("plain/embedding.html", false)
	succeed(t, "plot", "plain", "--html", "--auto-labels", "-o", "plain.html")
	check("plain.html", true)
	succeed(t, "plot", "plain/embedding.npy", "--html", "--auto-labels", "--names", "texts.txt", "-o", "file.html")
	check("file.html", true)
	train("spectrum", "sweep", "--s", "0,1", "--set", "output.auto_labels=true")
	check("sweep/explorer.html", true)
}

// A run that starts from an earlier one leaves its points where they were, found by their
// names, and puts new ones among their neighbours.
func TestStartsFromARun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeKinds(t, "first.csv", 40)
	succeed(t, ofTable("first.csv", "first")...)
	// The same points backwards, and more.
	writeKinds(t, "all.csv", 50)
	lines := strings.Split(strings.TrimSpace(readText(t, "all.csv")), "\n")
	slices.Reverse(lines[1:])
	writeTestFile(t, "grown.csv", strings.Join(lines, "\n")+"\n")
	still := []string{"--set", "train.lr=1e-30", "--set", "model.init=first"}
	stderr := succeed(t, ofTable("grown.csv", "grown", still...)...)
	if !strings.Contains(stderr, "new points") {
		t.Error(stderr)
	}
	open := func(path string) *data.Matrix { return readPositions(t, path) }
	first, grown := open("first/embedding.npy"), open("grown/embedding.npy")
	for i := range 40 {
		if !slices.Equal(first.Row(i), grown.Row(49-i)) {
			t.Fatalf("point %d has moved from %v to %v", i, first.Row(i), grown.Row(49-i))
		}
	}
	near := func(i int) (nearest int) {
		least := math.Inf(1)
		for k := range 40 {
			if d := math.Hypot(float64(grown.Row(i)[0]-first.Row(k)[0]), float64(grown.Row(i)[1]-first.Row(k)[1])); d < least {
				nearest, least = k, d
			}
		}
		return nearest
	}
	for i := range 10 {
		if (49-i)%2 != near(i)%2 {
			t.Errorf("new point %d is in the other cluster", i)
		}
	}
	// An array has no names: its rows are the first of the points.
	succeed(t, append(ofTable("all.csv", "array"), "--set", "train.lr=1e-30", "--set", "model.init=first/embedding.npy")...)
	if array := open("array/embedding.npy"); !slices.Equal(array.X[:80], first.X) {
		t.Error("the first points have moved")
	}
	// Unless they are given.
	succeed(t, append(ofTable("grown.csv", "named"), "--set", "train.lr=1e-30", "--set", "model.init=first/embedding.npy", "--set", "model.init_names=first/names.csv:name")...)
	if !slices.Equal(open("named/embedding.npy").X, grown.X) {
		t.Error("with names it is another embedding")
	}
	mustFail(t, 1, "data.names: got no name that is in", ofTable("first.csv", "x", set("model.init=first", "data.names=kind")...)...)
	succeed(t, append(ofTable("first.csv", "random"), "--set", "model.init=random")...)

	// Once it has started, a run does without the earlier one, which may have moved.
	must(t, os.Rename("first", "moved"))
	succeed(t, "train", "--resume", "grown")
	succeed(t, "train", "--resume", "grown", "--epochs", "4", "--set", "model.init=moved")
	if c := readText(t, "grown/config.yaml"); !strings.Contains(c, "init: moved") {
		t.Error("the folder does not know where the earlier run is now")
	}
	for _, other := range []string{"pca", "random"} {
		mustFail(t, 1, "model.init moved, not "+other, "train", "--resume", "grown", "--set", "model.init="+other)
	}
}

// Names go with their points where rows are left out and others come from a file of their
// own, also from a file of names with a heading.
func TestNamesOfSomeRows(t *testing.T) {
	folderOf(t, 60, 3)
	writePoints(t, "held.csv", 9, 3)
	names := "name\n"
	for i := range 69 {
		names += fmt.Sprintf("p%d\n", i)
	}
	writeTestFile(t, "names.txt", names)
	for _, some := range []string{"data.imbalance=linear", "data.sample=40"} {
		mustRun(t, short(append(set(some, "data.holdout=held.csv", "data.names=names.txt", "data.label_column=kind"), "--html", "--force")...)...)
		rows := rowsIn(t, "run/"+map[bool]string{true: "rows.csv", false: "sample_rows.csv"}[exists("run/rows.csv")])
		var want []string
		for _, row := range append(rows, 60, 61, 62, 63, 64, 65, 66, 67, 68) {
			want = append(want, fmt.Sprintf("p%d", row))
		}
		if got := readPage(t, "run/embedding.html").names; !slices.Equal(got, want) {
			t.Errorf("%s: the names are %q, want %q", some, got, want)
		}
		for _, name := range []string{"run/embedding", "run/holdout"} {
			text, err := file.ReadColumns(t.Context(), []string{name + ".csv"}, []string{"name"}, file.Options{})
			must(t, err)
			if got := text[0]; len(got) < 9 || got[0][0] != 'p' {
				t.Errorf("%s: %s.csv has the names %q", some, name, got)
			}
		}
		mustRun(t, "plot", "run", "--html", "-o", "all.html")
		mustRun(t, "plot", "run/embedding.csv", "-o", "all.svg")
	}
}
