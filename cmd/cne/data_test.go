package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/points"
	"cne/internal/app/rundir"
	"cne/internal/npy"
	"cne/internal/rng"
)

// aNetwork returns the flags of a run that trains a small network.
func aNetwork(more ...string) []string {
	return append(set("model.kind=mlp", "model.hidden=[20, 10]"), more...)
}

// aTable returns the flags of a run that trains a table and keeps its points.
func aTable(more ...string) []string { return append(set("model.keep_data=true"), more...) }

// withLabels opens a table that a run has written.
func withLabels(t *testing.T, path string) *data.Dataset {
	t.Helper()
	set, err := file.Read(t.Context(), []string{path}, file.Options{LabelColumn: file.LabelColumn})
	must(t, err)
	return set
}

// writeTable writes n points of five columns as a table. The columns come in the
// given order of 0 to 4, each with a number added, below names if there are any.
func writeTable(t *testing.T, path string, n int, names string, order string, by float64) {
	t.Helper()
	s := rng.New(1, rng.Init)
	var b strings.Builder
	if names != "" {
		b.WriteString(names + "\n")
	}
	for range n {
		row := map[rune]string{'#': "text"}
		for j := range 5 {
			row[rune('0'+j)] = fmt.Sprintf("%.17g", by+math.Round(1024*float64(j+1)*s.Normal())/1024)
		}
		var fields []string
		for _, j := range order {
			fields = append(fields, row[j])
		}
		b.WriteString(strings.Join(fields, ",") + "\n")
	}
	writeTestFile(t, path, b.String())
}

func trainTable(t *testing.T, flags ...string) (stderr string) {
	t.Helper()
	_, stderr = mustRun(t, append([]string{"train", "--set", "data.scale=standard", "--set", "graph.k=5", "--set", "output.plot=false", "--epochs", "3", "-o", "run", "--force"}, flags...)...)
	return stderr
}

// A model knows the columns of its points by their names.
func TestProjectColumnsByName(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "a.csv", 60, "a,b,c,d,e", "01234", 0)
	writeTable(t, "back.csv", 60, "e,d,c,b,a", "43210", 0)
	writeTable(t, "more.csv", 60, "id,e,d,c,b,kind,a", "04321#0", 0)
	writeTable(t, "unnamed.csv", 60, "", "01234", 0)
	writeTable(t, "other.csv", 60, "v,w,x,y,z", "01234", 0)
	writeTable(t, "less.csv", 60, "e,d,b", "431", 0)
	for name, flags := range map[string][]string{"table": aTable(), "mlp": aNetwork(), "mlp of pca": aNetwork(set("graph.pca=3", "model.input=pca")...)} {
		trainTable(t, append(flags, "--set", "data.path=a.csv")...)
		mustRun(t, "project", "--model", "run", "-o", "want.csv", "a.csv")
		for input, said := range map[string]string{"back.csv": "", "more.csv": `columns="id, kind"`, "unnamed.csv": "have no names"} {
			_, stderr := mustRun(t, "project", "--model", "run", "-o", "got.csv", input)
			sameFile(t, "got.csv", "want.csv")
			if !strings.Contains(stderr, said) || said == "" && strings.Contains(stderr, "columns") {
				t.Errorf("%s, %s: the log says %q", name, input, stderr)
			}
		}
		mustFail(t, 1, `want the 5 of training; missing: "a", "b", "c" and 2 more`, "project", "--model", "run", "-o", "no.csv", "other.csv")
		mustFail(t, 1, `less.csv: columns: got "e", "d", "b", want the 5 of training; missing: "a", "c"`, "project", "--model", "run", "-o", "no.csv", "less.csv")
	}
	// So do points that are held out.
	network := aNetwork("--set", "data.path=a.csv")
	trainTable(t, append(network, "--set", "data.holdout=a.csv")...)
	want := readText(t, "run/holdout.csv")
	writeTable(t, "back.csv", 40, "e,d,c,b,a,f", "432100", 0)
	stderr := trainTable(t, append(network, "--set", "data.holdout=back.csv")...)
	if got := readText(t, "run/holdout.csv"); !strings.HasPrefix(want, got) || !strings.Contains(stderr, "columns=f") {
		t.Errorf("the points are placed elsewhere: %s", stderr)
	}
	// A header of numbers is said to be taken for one.
	writeTable(t, "a.csv", 60, "0,1,2,3,4", "01234", 0)
	for header, said := range map[string]bool{"auto": true, "yes": false} {
		if stderr := trainTable(t, set("data.path=a.csv", "data.header="+header)...); strings.Contains(stderr, "are taken for column names") != said {
			t.Errorf("header %s: the log says %q", header, stderr)
		}
	}
}

// A run far from zero is the run near it, and so are its new points.
func TestTrainFarFromZero(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "near.csv", 80, "a,b,c,d,e", "01234", 0)
	writeTable(t, "far.csv", 80, "a,b,c,d,e", "01234", 1e8)
	writeTable(t, "few.csv", 2, "a,b,c,d,e", "01234", 1e8)
	near := func(what string, got, want *data.Matrix) {
		t.Helper()
		for i, v := range got.X {
			if math.Abs(float64(v-want.X[i])) > 1e-4*max(1, math.Abs(float64(v))) {
				t.Errorf("%s: coordinate %d is %v, among all %v", what, i, v, want.X[i])
			}
		}
	}
	for name, flags := range map[string][]string{"table": aTable(), "mlp": aNetwork(), "share": aNetwork("--set", "data.holdout=0.2")} {
		if stderr := trainTable(t, append(flags, "--set", "data.path=near.csv")...); strings.Contains(stderr, "relative") {
			t.Errorf("the log says %q", stderr)
		}
		graph := readText(t, "run/graph.npz")
		stderr := trainTable(t, append(flags, "--set", "data.path=far.csv")...)
		if readText(t, "run/graph.npz") != graph {
			t.Errorf("%s: the graph is another", name)
		}
		if !strings.Contains(stderr, `are read relative to a value in their middle`) || !strings.Contains(stderr, `columns="a, b, c and 2 more"`) {
			t.Errorf("the log says %q", stderr)
		}
		mustRun(t, "project", "--model", "run", "-o", "all.npy", "far.csv")
		mustRun(t, "project", "--model", "run", "-o", "few.npy", "few.csv")
		all := readPositions(t, "all.npy")
		near(name, readPositions(t, "few.npy"), all)
		if name == "mlp" {
			trainTable(t, append(flags, set("data.path=far.csv", "data.holdout=few.csv")...)...)
			near("held out", readPositions(t, "run/holdout.npy"), all)
		}
	}
}

// splitPoints writes points in three clusters: the first ones into points.csv and the
// others into held.csv, with labels of their own.
func splitPoints(t *testing.T, first, others int, kinds, heldKinds func(i int) string) {
	t.Helper()
	folderOf(t, first+others, 5)
	header, rows := linesOf(t, "points.csv")
	for i, row := range rows {
		kind := kinds
		if i >= first {
			kind = heldKinds
		}
		rows[i] = row[:strings.LastIndexByte(row, ',')+1] + kind(i) + "\n"
	}
	writeTestFile(t, "points.csv", header+strings.Join(rows[:first], ""))
	writeTestFile(t, "held.csv", header+strings.Join(rows[first:], ""))
}

func heldMetrics(t *testing.T) map[string]any {
	t.Helper()
	held, ok := readMetrics(t, "run/metrics.json")["holdout"].(map[string]any)
	if !ok {
		t.Fatal("metrics.json has nothing of the held-out points")
	}
	return held
}

// Held-out points are not trained on, and land in their classes, by either model and from a
// share or a file. cne project gives them the positions that the run writes.
func TestHoldout(t *testing.T) {
	splitPoints(t, 240, 60, animal, animal)
	network := []string{"model.kind=mlp", "model.hidden=[20]", "train.lr=0.02"}
	for name, settings := range map[string][]string{
		"table, share":     {"data.holdout=0.2"},
		"mlp, share":       append(network, "data.holdout=0.2"),
		"table":            {"model.keep_data=true"},
		"table, NC":        {"model.keep_data=true", "loss.name=nc", "seed=5"},
		"table of float64": {"model.keep_data=true", "model.dtype=float64", "graph.pca=3"},
		"table, mean":      {"model.keep_data=true"},
		"table, cosine":    {"model.keep_data=true", "loss.metric=cosine", "loss.name=infonce", "model.dim=3"},
		"mlp":              append(network, "model.dtype=float64"),
		"mlp, pca":         append(network, "graph.pca=3", "model.input=pca"),
	} {
		share := strings.Contains(name, "share")
		if !share {
			settings = append(settings, "data.holdout=held.csv")
		}
		stdout, stderr := mustRun(t, append(short("--force", "--epochs", "20", "--set", fmt.Sprint("output.plot=", share)), set(settings...)...)...)
		n := map[bool]int{true: 48, false: 60}[share]
		if !strings.Contains(stdout, "held out") || !strings.Contains(stderr, fmt.Sprint("held out points=", n)) {
			t.Errorf("%s: %s%s", name, stdout, stderr)
		}
		held := heldMetrics(t)
		if clear := name != "table, mean" && name != "table, cosine"; held["n"] != float64(n) || clear && held["accuracy"].(float64) < 0.95 || held["knn_recall"].(float64) <= 0 {
			t.Errorf("%s: metrics %v", name, held)
		}
		if set := withLabels(t, "run/holdout.csv"); set.Points.N != n || len(set.Labels.Names) != 3 {
			t.Errorf("%s: holdout.csv: %+v", name, set)
		}
		if share {
			if rows := rowsIn(t, "run/holdout_rows.csv"); len(rows) != n {
				t.Errorf("%s: %d rows", name, len(rows))
			}
			mustRun(t, "plot", "run", "-o", "again.png") // draws the same picture again
			sameFile(t, "again.png", "run/embedding.png")
			continue
		}
		mustRun(t, "project", "-m", "run", "held.csv", "--label-column", "kind", "-o", "held.npy")
		sameFile(t, "held.npy", "run/holdout.npy")
		mustRun(t, "project", "-m", "run", "held.csv", "--label-column", "kind", "-o", "out.csv")
		sameFile(t, "out.csv", "run/holdout.csv")
	}
}

// A run that is interrupted places its held-out points too, and its model can place others.
func TestHoldoutOfInterruptedRun(t *testing.T) {
	for kind, flags := range map[string][]string{"table": aTable(), "mlp": aNetwork()} {
		folderOf(t, 240, 5)
		cmd, stderr := program(t, append(short("--epochs", "1000000", "--set", "data.holdout=0.25"), flags...)...)
		waitForRecords(t, 20)
		must(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "the embedding so far is in run/embedding.npy") {
			t.Fatal(kind, err, stderr)
		}
		header, rows := linesOf(t, "points.csv")
		for _, i := range rowsIn(t, "run/holdout_rows.csv") {
			header += rows[i]
		}
		writeTestFile(t, "held.csv", header)
		mustRun(t, "project", "-m", "run", "held.csv", "--label-column", "kind", "-o", "again.npy")
		sameFile(t, "again.npy", "run/holdout.npy")
	}
}

func TestHoldoutLabels(t *testing.T) {
	half := func(i int) string { return fmt.Sprint(i, ".5") }
	for name, tc := range map[string]struct {
		kinds, heldKinds func(i int) string
		accuracy         bool
		warning          string
	}{
		"none known": {animal, func(i int) string { return []string{"dog", "eel"}[i%2] }, false, "no label of the held-out points occurs among the training points"},
		"one new":    {animal, func(i int) string { return []string{"ant", "bee", "dog"}[i%3] }, true, ""},
		"quantities": {half, half, false, ""},
		"missing":    {animal, func(i int) string { return "" }, false, ""},
	} {
		splitPoints(t, 120, 30, tc.kinds, tc.heldKinds)
		_, stderr := mustRun(t, short(set("data.holdout=held.csv", "output.plot=false")...)...)
		if !strings.Contains(stderr, tc.warning) || tc.warning == "" && strings.Contains(stderr, "no label") {
			t.Errorf("%s: %s", name, stderr)
		}
		if _, ok := heldMetrics(t)["accuracy"]; ok != tc.accuracy {
			t.Errorf("%s: metrics %v", name, heldMetrics(t))
		}
	}
}

// The rows of an imbalanced run name the rows of the input, those that are held
// out included, and the labels are theirs.
func TestImbalance(t *testing.T) {
	folderOf(t, 300, 5)
	_, stderr := mustRun(t, short(set("data.imbalance=linear", "data.holdout=0.2", "output.plot=false")...)...)
	if !strings.Contains(stderr, "points=159") || !strings.Contains(stderr, "held out points=40") {
		t.Fatal(stderr)
	}
	seen := make([]bool, 300)
	kept := make([]int, 3)
	for rowsFile, table := range map[string]string{"rows": "embedding", "holdout_rows": "holdout"} {
		rows := rowsIn(t, "run/"+rowsFile+".csv")
		set := withLabels(t, "run/"+table+".csv")
		if len(rows) != map[string]int{"embedding": 159, "holdout": 40}[table] {
			t.Fatalf("%s.csv has %d rows", rowsFile, len(rows))
		}
		for i, row := range rows {
			if seen[row] {
				t.Fatalf("row %d is there twice", row)
			}
			seen[row] = true
			kept[row%3]++
			if got := set.Labels.Names[set.Labels.Class[i]]; got != animal(row) {
				t.Fatalf("row %d is labelled %s, want %s", row, got, animal(row))
			}
		}
	}
	if !slices.Equal(kept, []int{100, 66, 33}) {
		t.Errorf("the classes keep %v points", kept)
	}
	mustFail(t, 1, "data.imbalance linear, not null", "train", "--resume", "run", "--set", "data.imbalance=null")
	// Another run in the folder does not leave the rows of this one there.
	mustRun(t, short("--force", "--set", "output.plot=false")...)
	if exists("run/rows.csv") {
		t.Error("rows.csv is still there")
	}
}

// write10X writes a folder of 10x with cells of three kinds, from the first one
// given by from on, whose kinds they are by turns. Genes 0 to 29 tell them
// apart, and ten more are in every cell.
func write10X(t *testing.T, folder string, from, cells int) {
	t.Helper()
	var entries, barcodes, features, kinds strings.Builder
	n := 0
	for i := range cells {
		for g := range 40 {
			draw := ((from+i)*7919 + g*104729) % 1000
			v := 1 + draw%5
			switch {
			case g >= 30:
			case g%3 == (from+i)%3 && draw < 800:
				v += 4
			case draw >= 200:
				continue
			}
			n++
			fmt.Fprintf(&entries, "%d %d %d\n", g+1, i+1, v)
		}
		fmt.Fprintf(&barcodes, "cell-%d\n", from+i)
		fmt.Fprintln(&kinds, animal(from+i))
	}
	for g := range 40 {
		fmt.Fprintf(&features, "ENSG%d\tgene%d\tGene Expression\n", g, g)
	}
	writeTestFile(t, folder+"/matrix.mtx", fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer general\n%%\n40 %d %d\n%s", cells, n, entries.String()))
	writeTestFile(t, folder+"/barcodes.tsv", barcodes.String())
	writeTestFile(t, folder+"/features.tsv", features.String())
	writeTestFile(t, folder+".txt", kinds.String())
}

// Counts become points, and so do those that are held out, by either model; new
// ones are placed as they are.
func TestCounts(t *testing.T) {
	t.Chdir(t.TempDir())
	write10X(t, "cells", 0, 180)
	write10X(t, "held", 180, 60)
	held := set("data.holdout=held", "data.holdout_labels=held.txt")
	mlp := slices.Concat(held, set("model.kind=mlp", "model.hidden=[20]", "train.lr=0.02"))
	for name, flags := range map[string][]string{
		"table":          append(held, "--set", "model.keep_data=true"),
		"mlp":            mlp,
		"mlp, PCA":       append(mlp, set("model.input=pca", "graph.pca=10", "data.scale=standard")...),
		"table, a share": set("data.holdout=0.2", "data.imbalance=linear"),
	} {
		_, stderr := mustRun(t, slices.Concat([]string{"train", "cells", "--epochs", "20", "-o", "run", "--force"}, flags,
			set("data.labels=cells.txt", "data.genes=20", "graph.k=5", "train.batch_size=64", "output.plot=false"))...)
		if !strings.Contains(stderr, "made points from the counts genes=20 of=40 median_library_size=") || !strings.Contains(stderr, "width=20") {
			t.Errorf("%s: %s", name, stderr)
		}
		if held := heldMetrics(t); held["accuracy"].(float64) < 0.9 {
			t.Errorf("%s: metrics %v", name, held)
		}
		if strings.Contains(name, "share") {
			if rows := len(rowsIn(t, "run/rows.csv")) + len(rowsIn(t, "run/holdout_rows.csv")); rows != 60+40+20 {
				t.Errorf("%d rows", rows)
			}
			continue
		}
		if stdout, _ := mustRun(t, "project", "-m", "run", "held", "-o", "again.npy"); !strings.Contains(stdout, "60 points placed") {
			t.Errorf("%s: %s", name, stdout)
		}
		sameFile(t, "again.npy", "run/holdout.npy")
		// The file by itself has no names, and the same genes.
		mustRun(t, "project", "-m", "run", "held/matrix.mtx", "-o", "file.npy")
		sameFile(t, "file.npy", "run/holdout.npy")
	}
}

// writeRandom writes an array of random numbers: bytes (|u1), float32 from 0 to 1 (<f4), or
// float64 far from zero (<f8).
func writeRandom(t *testing.T, path, dtype string, shape ...int) {
	t.Helper()
	size := 1
	for _, d := range shape {
		size *= d
	}
	content := npy.Head(128, dtype, shape...)
	stream := rand.New(rand.NewPCG(1, 2))
	for range size {
		switch dtype {
		case "|u1":
			content = append(content, byte(stream.Uint32()))
		case "<f4":
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(stream.Float32()))
		default:
			content = binary.LittleEndian.AppendUint64(content, math.Float64bits(1e8+stream.Float64()))
		}
	}
	writeTestFile(t, path, string(content))
}

// A run whose points stay in their file, or are kept as bytes, ends with the same bits as
// one that reads them into memory.
func TestStoredRun(t *testing.T) {
	t.Chdir(t.TempDir())
	const n, d = 300, 24
	writeRandom(t, "bytes.npy", "|u1", n, d)
	content := readText(t, "bytes.npy")
	first := len(content) - n*d
	writeTestFile(t, "bytes.npy", content[:first]+"\xff"+content[first+1:]) // both are divided by the largest value
	makeArray(t, "floats.npy", readPositions(t, "bytes.npy"))
	for _, kind := range []string{"bytes", "floats"} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write([]byte(readText(t, kind+".npy")))
		must(t, err)
		must(t, z.Close())
		writeTestFile(t, kind+".npy.gz", packed.String())
	}
	for name, settings := range map[string][]string{
		"table":   {"data.holdout=0.2"},
		"cosine":  {"graph.metric=cosine", "data.scale=standard", "model.keep_data=true"},
		"network": {"model.kind=mlp", "model.input=pca", "data.holdout=0.2"},
	} {
		var want map[string]string
		for _, input := range []string{"floats.npy.gz", "floats.npy", "bytes.npy", "bytes.npy.gz"} {
			run := name + "-" + input
			mustRun(t, append([]string{"train", input, "-o", run, "--quiet", "--epochs", "2"}, set(append(settings, "graph.pca=5", "graph.k=5", "output.plot=false")...)...)...)
			got := map[string]string{"points": rundir.ReadMetrics(run).PointsKey}
			for _, file := range []string{"embedding.npy", "holdout.npy", "training_points.safetensors"} {
				if path := filepath.Join(run, file); exists(path) {
					got[file] = readText(t, path)
				}
			}
			if want == nil {
				want = got
			}
			for what := range want {
				if got[what] == "" || got[what] != want[what] {
					t.Errorf("%s: %s differs from that of points in memory", run, what)
				}
			}
		}
	}
}

// If a file changes before its components are computed, the run ends without writing
// anything, and the error names no key.
func TestStoredInputChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "bytes.npy", "|u1", 200000, 24) // too large to be read into memory
	c, _, err := configs.Train.Load(&configs.Sources{Settings: []configs.Setting{
		{Source: "test", Key: "data.path", Value: "bytes.npy"}, {Source: "test", Key: "graph.pca", Value: "5"}, {Source: "test", Key: "data.holdout", Value: "0.2"},
	}})
	must(t, err)
	reading := c.ReadOptions(&c.Data)
	reading.StreamFrom = 1
	set, err := file.Read(t.Context(), c.Data.Path, reading)
	must(t, err)
	in := &points.Inputs{Config: c}
	in.Points, in.Held, _, err = set.Split(0.2, 0)
	must(t, err)
	must(t, os.Chtimes("bytes.npy", time.Time{}, time.Unix(1e9, 0)))
	dir, err := rundir.Open("run", false)
	must(t, err)
	o := c.Options()
	if _, err = in.Prepare(t.Context(), &o, dir); !errors.Is(err, data.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
	if files, err := os.ReadDir("run"); err != nil && !errors.Is(err, os.ErrNotExist) || len(files) > 0 {
		t.Errorf("the run has left %v (%v)", files, err)
	}
}

var shellWord = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\S+`)

// Each remedy that a message about the columns of a table names is enough.
func TestRemediesOfTables(t *testing.T) {
	t.Chdir(t.TempDir())
	number := func(i int) string { return fmt.Sprint(i * i % 17) }
	class := func(i int) string { return []string{"ant", "bee", "none of them"}[i%3] }
	column := map[string]func(i int) string{
		"number": number, "class": class,
		"name":     func(i int) string { return fmt.Sprint("point ", i) },
		"serial":   func(i int) string { return fmt.Sprintf("%xf%d", i, i) },
		"share":    func(i int) string { return fmt.Sprint(i, "%") },
		"weight":   func(i int) string { return fmt.Sprint(i, ".5 kg") },
		"when":     func(i int) string { return fmt.Sprintf("2024-01-%02d", 1+i%28) },
		"sign":     func(i int) string { return map[bool]string{true: "-", false: number(i)}[i%7 == 0] },
		"gap":      func(i int) string { return map[bool]string{false: number(i)}[i%5 == 0] },
		"no class": func(i int) string { return map[bool]string{false: class(i)}[i%5 == 0] },
		"umlaut":   func(i int) string { return fmt.Sprint("Zo\xeb", i) },
		"one":      func(int) string { return "all alike" },
		"empty":    func(int) string { return "" },
		"story":    func(i int) string { return fmt.Sprint("It was the best of ", i, " times") },
	}
	var wide []string
	for k := range 14 {
		name := fmt.Sprint("a column of classes with a long name ", k)
		wide, column[name] = append(wide, name), class
	}
	for k, names := range [][]string{
		{"number", "class"}, {"number", "name"}, {"number", "serial", "class"}, {"number", "share"}, {"number", "weight", "name"},
		{"number", "when"}, {"sign", "number"}, {"sign", "gap", "class", "name"}, {"number", "no class", "class"}, {"gap", "no class", "class"},
		{"class", "no class"}, {"class", "name", "when"}, {"number", "umlaut"}, {"umlaut", "class", "sign"}, {"one", "number"},
		slices.Concat(wide, []string{"number"}), wide, {"class", "name", "story"}, {"story"}, {"sign", "class", "no class"}, {"number", "empty", "class", "sign"},
	} {
		rows := [][]string{names}
		for i := range 60 {
			var row []string
			for _, name := range names {
				row = append(row, column[name](i))
			}
			rows = append(rows, row)
		}
		file := fmt.Sprint(k, ".csv")
		var text strings.Builder
		must(t, csv.NewWriter(&text).WriteAll(rows))
		writeTestFile(t, file, text.String())
		train := []string{"train", file, "--epochs", "1", "-q", "-o", "run", "--force", "--set", "graph.k=5"}
		code, _, message := runCne(t.Context(), train...)
		if strings.Contains(message, "points are numbers, such as") {
			if k != 17 && k != 18 || code != 1 {
				t.Errorf("%q: exit code %d, %s", names, code, message)
			}
			continue
		}
		_, advice, found := strings.Cut(strings.TrimSpace(message), "for instance ")
		if code != 1 || !found {
			t.Errorf("%q: exit code %d, %s", names, code, message)
		}
		for remedy := range strings.SplitSeq(advice, ", or ") {
			var flags []string
			for _, word := range shellWord.FindAllString(remedy, -1) {
				if text, err := strconv.Unquote(word); err == nil && word[0] == '"' {
					word = text
				}
				flags = append(flags, strings.Trim(word, "'"))
			}
			if code, _, stderr := runCne(t.Context(), slices.Concat(train, flags)...); code != 0 {
				t.Errorf("%q with %q: exit code %d, %s", names, flags, code, stderr)
			}
		}
	}
}
