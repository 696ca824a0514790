package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/data"
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
	code, _, stderr := runCne(t.Context(), args...)
	if code != 0 {
		t.Fatalf("%q: %s", args, stderr)
	}
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
	stderr := succeed(t, ofTable("t.csv", "run", "--html", "--set", "output.html_color=[age]", "--set", "data.holdout=0.2", "--set", "model.keep_data=true", "--set", "output.parquet=true")...)
	if !strings.Contains(stderr, "points without a value are grey") {
		t.Error("nothing is said of a missing value:", stderr)
	}
	check("held out", readPage(t, "run/embedding.html"), same, "label", "age")
	held, err := data.OpenColumns(t.Context(), []string{"run/holdout.parquet"}, []string{"name"}, data.Options{})
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

	sweep := ofTable("t.csv", "sweep", "--html", "--set", "output.html_color=[age]", "--s", "0,1")
	sweep[0] = "spectrum"
	succeed(t, sweep...)
	check("a spectrum", readPage(t, "sweep/explorer.html"), same, "label", "age")
	check("one of its embeddings", readPage(t, "sweep/s=0/embedding.html"), same, "label", "age")
	if !strings.HasPrefix(readText(t, "sweep/s=0/names.csv"), "name,row\n<b>0,0\n") {
		t.Error("an embedding of the spectrum has no names")
	}
}

func TestAnnotationFaults(t *testing.T) {
	t.Chdir(t.TempDir())
	writeKinds(t, "t.csv", 30)
	writeTestFile(t, "short.txt", "a\nb\n")
	writeTestFile(t, "latin.txt", strings.Repeat("\xe9\n", 30))
	writeTestFile(t, "inf.txt", strings.Repeat("1\n", 29)+"inf\n")
	writeTestFile(t, "none.txt", strings.Repeat("\n", 30))
	for name, tc := range map[string]struct {
		args []string
		text string
	}{
		"no such column":    {[]string{"--set", "output.html_color=[size]"}, `output.html_color: "size" is no file, and is not found as a column`},
		"no such name":      {[]string{"--set", "data.names=nme"}, `data.names: "nme" is no file`},
		"too few":           {[]string{"--set", "data.names=short.txt"}, `"short.txt" has 2 rows for 30 points`},
		"not UTF-8":         {[]string{"--set", "data.names=latin.txt"}, "line 1 (counted from 1) is not UTF-8"},
		"infinite":          {[]string{"--set", "output.html_color=inf.txt"}, `"inf" is inf for point 30`},
		"no values":         {[]string{"--set", "output.html_color=none.txt"}, `"none" has no value for any point`},
		"several":           {[]string{"--set", "output.html_color=t.csv"}, "is a table of 6 columns; name one of them as t.csv:COLUMN"},
		"twice":             {[]string{"--set", "output.html_color=[age, age]"}, `"age" is given twice`},
		"no start":          {[]string{"--set", "model.init=pac"}, `model.init`},
		"start of an mlp":   {[]string{"--set", "model.kind=mlp", "--set", "model.init=t.csv"}, "only a table starts"},
		"names of no start": {[]string{"--set", "model.init_names=short.txt"}, "model.init_names"},
		"another width":     {[]string{"--set", "model.init=t.csv:a"}, "model.init"},
	} {
		code, _, stderr := runCne(t.Context(), ofTable("t.csv", "run", tc.args...)...)
		if code == 0 || !strings.Contains(stderr, tc.text) || strings.Count(stderr, "cne: ") != 1 {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
		if _, err := os.Stat("run/embedding.npy"); err == nil {
			t.Errorf("%s: there is an embedding", name)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		text string
	}{
		"a picture": {[]string{"plot", "t.csv", "--names", "id"}, "--names and --color are for pages"},
		"curves":    {[]string{"plot", "t.csv", "--metrics", "--class-names"}, "--class-names is for pictures of embeddings"},
	} {
		if code, _, stderr := runCne(t.Context(), tc.args...); code != exitUsage || !strings.Contains(stderr, tc.text) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
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
	open := func(path string) *data.Matrix {
		set, err := data.Open(t.Context(), []string{path}, data.Options{})
		must(t, err)
		return set.Points
	}
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
	for name, tc := range map[string]struct {
		args []string
		text string
	}{
		"fewer points":  {ofTable("first.csv", "x", "--set", "model.init=grown/embedding.npy"), "has 50 points, but there are 40"},
		"other names":   {append(ofTable("first.csv", "x", "--set", "model.init=first"), "--set", "data.names=kind"), "no name of data.names"},
		"another width": {ofTable("first.csv", "x", "--set", "model.init=first", "--set", "model.dim=3"), "has 2 coordinates, but model.dim is 3"},
		"no embedding":  {ofTable("first.csv", "x", "--set", "model.init=."), "neither embedding.csv nor embedding.npy"},
	} {
		if code, _, stderr := runCne(t.Context(), tc.args...); code != 1 || !strings.Contains(stderr, tc.text) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
	succeed(t, append(ofTable("first.csv", "spectral"), "--set", "model.init=spectral")...)

	// Once it has started, a run does without the earlier one, which may have moved.
	must(t, os.Rename("first", "moved"))
	succeed(t, "train", "--resume", "grown")
	succeed(t, "train", "--resume", "grown", "--epochs", "4", "--set", "model.init=moved")
	if c := readText(t, "grown/config.yaml"); !strings.Contains(c, "init: moved") {
		t.Error("the folder does not know where the earlier run is now")
	}
	for _, other := range []string{"pca", "spectral"} {
		if code, _, stderr := runCne(t.Context(), "train", "--resume", "grown", "--set", "model.init="+other); code != 1 || !strings.Contains(stderr, "model.init moved, not "+other) {
			t.Errorf("exit %d, %s", code, stderr)
		}
	}
}

// The check of a configuration finds files and columns that are not there, and reads no
// more of the others than it needs.
func TestCheckOfColumns(t *testing.T) {
	t.Chdir(t.TempDir())
	writeKinds(t, "t.csv", 30)
	writeTestFile(t, "names.txt", "a\n") // too few, which shows when they are read
	x := data.NewMatrix(30, 2)
	for i := range x.X {
		x.X[i] = float32(i)
	}
	makeArray(t, "x.npy", x)
	for name, tc := range map[string]struct {
		settings string
		text     string // "" if it is right
	}{
		"columns and files":     {"data.names=id output.html_color=[age,names.txt,t.csv:2]", ""},
		"no such column":        {"output.html_color=[age,size]", `output.html_color: "size" is no file, and is not found as a column: t.csv: there is no column "size"`},
		"no such name":          {"data.names=nme", `data.names: "nme" is no file, and is not found as a column`},
		"no such file":          {"data.names=missing.txt", `data.names: "missing.txt" is no file`},
		"no column of a file":   {"data.names=t.csv:nme", `data.names: t.csv: there is no column "nme"`},
		"a column of an array":  {"data.names=x.npy:a", `data.names: x.npy: this is an array, which has no column "a"`},
		"an array":              {"data.path=x.npy data.drop=[] data.label_column=null data.names=age", `x.npy: this is an array, which has no column "age"`},
		"points of the program": {"data.path=builtin:mnist10k data.drop=[] data.label_column=null data.names=age", `data.names: there is no file "age", and the points come from no table`},
		"points not there yet":  {"data.path=later.csv data.names=nme", ""},
		"no start":              {"model.init=nowhere", `model.init is "nowhere", but must be pca, spectral, coarse, random, or the run folder or file`},
		"names of a start":      {"model.init=t.csv data.names=id model.init_names=nme", `model.init_names: "nme" is no file, and is not found as a column`},
		"a start by names":      {"model.init=t.csv data.names=id model.init_names=id", ""},
	} {
		args := []string{"config", "--check", "--set", "data.path=t.csv", "--set", "data.label_column=kind", "--set", "data.drop=[id,age]", "--set", "graph.k=5"}
		for _, s := range strings.Fields(tc.settings) {
			args = append(args, "--set", s)
		}
		code, _, stderr := runCne(t.Context(), args...)
		if tc.text == "" && code != 0 || tc.text != "" && (code != 1 || !strings.Contains(stderr, tc.text) || strings.Count(stderr, "\n") != 1) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
}
