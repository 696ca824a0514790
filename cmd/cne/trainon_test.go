//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cne/data"
	"cne/internal/npy"
	"cne/internal/rng"
)

// writeTypedArray writes points as an array of a type: |u1, <f4 or <f8, the last of which is far
// from zero. Those of rows alone are written, or all for nil.
func writeTypedArray(t *testing.T, path, kind string, n, d int, rows []int) {
	t.Helper()
	if rows == nil {
		for i := range n {
			rows = append(rows, i)
		}
	}
	var b bytes.Buffer
	b.Write(npy.Head(128, kind, len(rows), d))
	for _, i := range rows {
		s := rng.New(7, rng.Sample, uint64(i))
		for j := range d {
			v := 5*s.Normal() + 30*float64(i%3*(j%3)) + 40
			var err error
			switch kind {
			case "|u1":
				err = b.WriteByte(byte(min(255, max(0, v))))
			case "<f4":
				err = binary.Write(&b, binary.LittleEndian, float32(v))
			default:
				err = binary.Write(&b, binary.LittleEndian, 1e8+v/1000)
			}
			must(t, err)
		}
	}
	must(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// positionsIn reads an array of positions.
func positionsIn(t *testing.T, path string) *data.Matrix {
	t.Helper()
	set, err := data.Open(t.Context(), []string{path}, data.Options{})
	must(t, err)
	return set.Points
}

// listedRows reads a list of rows.
func listedRows(t *testing.T, path string) (rows []int) {
	t.Helper()
	for _, line := range strings.Fields(fileText(t, path))[1:] {
		i, err := strconv.Atoi(line)
		must(t, err)
		rows = append(rows, i)
	}
	return rows
}

// someLines returns lines of text, with the first one if there is a heading.
func someLines(text string, heading int, rows []int) string {
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	for i := range heading {
		b.WriteString(lines[i])
	}
	for _, i := range rows {
		b.WriteString(lines[heading+i])
	}
	return b.String()
}

// A run on some of the points is, for these, the run on a file that holds them alone, bit
// for bit; the others lie where cne project places them.
func TestTrainOn(t *testing.T) {
	const n, d = 150, 12
	table, network := "model.keep_data=true", "model.kind=mlp"
	for name, x := range map[string]struct {
		kind  string // of the array; "" for a table
		model string
		set   []string
	}{
		"table of text":         {"", table, []string{"data.train_on=0.4", "data.label_column=kind"}},
		"network, table":        {"", network, []string{"data.train_on=60", "data.label_column=kind", "model.hidden=[8]"}},
		"bytes":                 {"|u1", table, []string{"data.train_on=60", "graph.pca=4"}},
		"bytes, network":        {"|u1", network, []string{"data.train_on=60", "model.hidden=[8]", "data.labels=labels.txt"}},
		"float32":               {"<f4", table, []string{"data.train_on=rows.csv", "graph.pca=4", "data.labels=labels.txt"}},
		"float64 with offset":   {"<f8", table, []string{"data.train_on=60", "data.scale=standard"}},
		"components, correlate": {"<f4", network, []string{"data.train_on=60", "graph.pca=4", "model.input=pca", "graph.metric=cosine", "model.hidden=[8]", "output.parquet=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			input := "points.npy"
			if x.kind == "" {
				input = "points.csv"
				writePoints(t, input, n, d)
			} else {
				writeTypedArray(t, input, x.kind, n, d, nil)
			}
			var labels, rows strings.Builder
			for i := range n {
				fmt.Fprintln(&labels, animal(i))
				if i%5 > 2 {
					fmt.Fprintln(&rows, i)
				}
			}
			writeTestFile(t, "labels.txt", labels.String())
			writeTestFile(t, "rows.csv", "row\n"+rows.String())
			common := []string{"train", "--epochs", "5", "--set", "graph.k=5", "--set", "train.batch_size=64", "--set", x.model}
			flags := common
			for _, s := range x.set {
				flags = append(flags, "--set", s)
			}
			stdout, _ := mustRun(t, slices.Concat(flags, []string{"-o", "run", input})...)
			if !strings.Contains(stdout, "placed                90 points by those trained on") {
				t.Errorf("%s", stdout)
			}
			took := listedRows(t, "run/sample_rows.csv")
			if len(took) != 60 || !slices.IsSorted(took) {
				t.Fatal(took)
			}

			// The same rows as a file.
			alone := common
			for _, s := range x.set {
				switch {
				case strings.HasPrefix(s, "data.train_on"):
				case strings.HasPrefix(s, "data.labels"):
					writeTestFile(t, "some.txt", someLines(labels.String(), 0, took))
					alone = append(alone, "--set", "data.labels=some.txt")
				default:
					alone = append(alone, "--set", s)
				}
			}
			some := "some.npy"
			if x.kind == "" {
				some = "some.csv"
				writeTestFile(t, some, someLines(fileText(t, input), 1, took))
			} else {
				writeTypedArray(t, some, x.kind, n, d, took)
			}
			mustRun(t, slices.Concat(alone, []string{"-o", "alone", some})...)
			for from, to := range map[string]string{"sample.npy": "embedding.npy", "sample.csv": "embedding.csv", "embedding.png": "embedding.png"} {
				if fileText(t, "run/"+from) != fileText(t, "alone/"+to) {
					t.Errorf("%s is not that of the rows alone", from)
				}
			}
			a, b := readMetrics(t, "run/metrics.json"), readMetrics(t, "alone/metrics.json")
			for _, name := range []string{"knn_recall", "kl", "partition_function", "points_key", "graph_key", "n", "loss", "accuracy"} {
				if a[name] != b[name] {
					t.Errorf("%s is %v, of the rows alone %v", name, a[name], b[name])
				}
			}
			if a["placed"] != 90. {
				t.Errorf("placed: %v", a["placed"])
			}

			// All others by cne project, in the order of the input.
			mustRun(t, "project", "--model", "run", input, "-o", "all.npy")
			want, got := positionsIn(t, "all.npy"), positionsIn(t, "run/embedding.npy")
			learnt := positionsIn(t, "run/sample.npy")
			for k, i := range took {
				copy(want.Row(i), learnt.Row(k))
			}
			if got.N != n || !slices.Equal(got.X, want.X) {
				t.Error("embedding.npy is not what was learnt and what cne project places")
			}
			csv, lines := fileText(t, "run/embedding.csv"), 1+n
			if strings.Count(csv, "\n") != lines {
				t.Errorf("embedding.csv: %.200s", csv)
			}
			if labeled := x.kind == "" || slices.Contains(x.set, "data.labels=labels.txt"); labeled != strings.HasPrefix(csv, "x,y,label\n") || labeled && !strings.Contains(strings.Split(csv, "\n")[2], ",bee") {
				t.Errorf("embedding.csv: %.200s", csv)
			}
			if slices.Contains(x.set, "output.parquet=true") {
				if p := positionsIn(t, "run/embedding.parquet"); !slices.Equal(p.X, got.X) {
					t.Error("embedding.parquet has other positions")
				}
			}
			// Figures are those of the points that were trained on.
			stdout, _ = mustRun(t, "evaluate", "run")
			if !strings.Contains(stdout, "60 points, ") || !strings.Contains(stdout, fmt.Sprintf("%.4f", a["knn_recall"])) {
				t.Errorf("cne evaluate: %s", stdout)
			}
			mustRun(t, "plot", "run", "-o", "all.png")
			mustRun(t, "plot", "run", "--html", "-o", "all.html")

			// A run that could not write all points goes on to the same files.
			before := filesOf(t, "run")
			for _, name := range []string{"embedding.npy", "embedding.csv", "embedding.parquet", "metrics.json"} {
				_ = os.Remove("run/" + name)
			}
			must(t, os.Mkdir("run/embedding.csv", 0o777))
			if code, _, stderr := runCne(t.Context(), "train", "--resume", "run"); code != 1 || !strings.Contains(stderr, "cannot write the embedding into run") || !strings.Contains(stderr, `"cne train --resume run" goes on`) {
				t.Errorf("%d, %s", code, stderr)
			}
			if _, err := os.Stat("run/embedding.npy"); err == nil {
				t.Error("it has written a part")
			}
			must(t, os.Remove("run/embedding.csv"))
			mustRun(t, "train", "--resume", "run")
			sameFiles(t, before, filesOf(t, "run"))
		})
	}
}

// A run that is killed or interrupted while it places the other points leaves nothing
// half-written, and goes on to the same files.
func TestTrainOnGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTypedArray(t, "points.npy", "<f4", 3000, 20, nil)
	args := []string{"train", "--epochs", "3", "--set", "graph.k=5", "--set", "data.train_on=300", "--set", "output.csv=false", "points.npy"}
	mustRun(t, append(args, "-o", "whole")...)
	for i, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		dir := fmt.Sprint("run", i)
		cmd, stderr := program(t, append(args, "-o", dir)...)
		deadline := time.Now().Add(60 * time.Second)
		for { // the model is written last before that
			if _, err := os.Stat(dir + "/model.safetensors"); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the run does not come to an end")
			}
			time.Sleep(time.Millisecond)
		}
		must(t, cmd.Process.Signal(signal))
		err := cmd.Wait()
		_, placing := os.Stat(dir + "/embedding.npy") // which is there as a whole or not at all
		if err == nil {
			t.Log("it was faster than the signal")
		} else if placing == nil && fileText(t, dir+"/embedding.npy") != fileText(t, "whole/embedding.npy") {
			t.Error("it has written a part")
		}
		if err != nil && placing != nil && signal == os.Interrupt && !strings.Contains(stderr.String(), "interrupted while the other points were placed; those trained on are in "+dir+"/sample.npy; \"cne train --resume "+dir+"\" goes on") {
			t.Errorf("%s", stderr)
		}
		mustRun(t, "train", "--resume", dir)
		for _, name := range []string{"embedding.npy", "sample.npy", "sample_rows.csv", "model.safetensors"} {
			if fileText(t, dir+"/"+name) != fileText(t, "whole/"+name) {
				t.Errorf("%s differs", name)
			}
		}
		for _, name := range listFiles(t, dir) {
			if strings.HasSuffix(name, ".tmp") {
				t.Errorf("%s is left", name)
			}
		}
	}
}

func TestTrainOnRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 6)
	for name, text := range map[string]string{"twice.txt": "1\n1\n", "falling.txt": "row\n5\n3\n", "outside.txt": "1\n60\n", "words.txt": "a\nb\n", "few.txt": "1\n2\n", "empty.txt": ""} {
		writeTestFile(t, name, text)
	}
	nan := data.NewMatrix(50, 3)
	for i := range nan.X {
		nan.X[i] = float32(i * i % 97)
	}
	nan.Row(41)[1] = float32(math.NaN())
	var b bytes.Buffer
	must(t, data.WriteNPY(&b, nan))
	must(t, os.WriteFile("nan.npy", b.Bytes(), 0o666))
	must(t, syscall.Mkfifo("pipe.npy", 0o666))
	for _, x := range []struct {
		want string
		args []string
	}{
		{"data.train_on is 61, but there are 60 points; train on fewer, or set it to null for all", []string{"--set", "data.train_on=61"}},
		{"data.train_on: twice.txt: entry 2 (counted from 1) is row 1, as the one before; give each row once", []string{"--set", "data.train_on=twice.txt", "--set", "graph.k=1", "--set", "quality.k=1"}},
		{"data.train_on: falling.txt: entry 2 (counted from 1) is row 3, behind row 5; sort the rows in ascending order", []string{"--set", "data.train_on=falling.txt", "--set", "graph.k=1", "--set", "quality.k=1"}},
		{"data.train_on: outside.txt: entry 2 (counted from 1) is row 60, but rows are numbered from 0 to 59", []string{"--set", "data.train_on=outside.txt", "--set", "graph.k=1", "--set", "quality.k=1"}},
		{"data.train_on: words.txt: line 2 (counted from 1) is \"b\", but must be a row of data.path, counted from 0", []string{"--set", "data.train_on=words.txt"}},
		{"data.train_on: empty.txt", []string{"--set", "data.train_on=empty.txt"}},
		{"stat none.txt: no such file or directory); check the path (data.train_on)", []string{"--set", "data.train_on=none.txt"}},
		{"graph.k is 15, but the 2 points of data.train_on do not have 15 neighbours each; train on more, or set it below 2", []string{"--set", "data.train_on=few.txt"}},
		{"graph.k is 15, but the 12 points of data.train_on do not have 15 neighbours each; train on more, or set it below 12", []string{"--set", "data.train_on=0.2"}},
		{"nan.npy: row 42, column 2 (counted from 1) is NaN", []string{"nan.npy", "--set", "data.train_on=20", "--set", "data.label_column=null"}},
		{"pipe.npy: some of the points are read before the others, for which a pipe cannot be read again; give files", []string{"pipe.npy", "--set", "data.train_on=20", "--set", "data.label_column=null"}},
	} {
		args := append([]string{"train", "points.csv", "--set", "data.label_column=kind", "-o", "run"}, x.args...)
		if !strings.HasPrefix(x.args[0], "--") {
			args = slices.Delete(args, 1, 2)
		}
		code, _, stderr := runCne(t.Context(), args...)
		if code != 1 || !strings.Contains(stderr, x.want) || strings.Count(stderr, "\n") > 3 {
			t.Errorf("%q: exit code %d, %s\nwant %s", x.args, code, stderr, x.want)
		}
		if _, err := os.Stat("run"); err == nil {
			t.Errorf("%q: it has begun a run", x.args)
		}
	}
	if code, _, stderr := runCne(t.Context(), "spectrum", "points.csv", "--set", "data.label_column=kind", "--set", "data.train_on=40"); code != 2 || !strings.Contains(stderr, "data.train_on has the other points placed at the end, which cne spectrum does not") {
		t.Errorf("%d, %s", code, stderr)
	}
	// What a run is resumed with are the same points of as many.
	mustRun(t, "train", "points.csv", "--set", "data.label_column=kind", "-o", "run", "--epochs", "2", "--set", "graph.k=5", "--set", "data.train_on=40")
	if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--set", "data.train_on=41"); code != 1 || !strings.Contains(stderr, "was begun with data.train_on 40, not 41") {
		t.Errorf("%d, %s", code, stderr)
	}
	f, err := os.OpenFile("points.csv", os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("1,2,3,4,5,6,ant\n")
	must(t, err)
	must(t, f.Close())
	if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--epochs", "3"); code != 1 || !strings.Contains(stderr, "a run can only be resumed on the same data") {
		t.Errorf("%d, %s", code, stderr)
	}
}
