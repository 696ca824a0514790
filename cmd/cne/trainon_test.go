//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cne/internal/npy"
	"cne/train"
)

// someLines returns the heading of a text and some of the lines after it.
func someLines(text string, heading int, rows []int) string {
	lines := strings.SplitAfter(text, "\n")
	some := lines[:heading:heading]
	for _, i := range rows {
		some = append(some, lines[heading+i])
	}
	return strings.Join(some, "")
}

// A run on a sample equals, bit for bit, a run on a file of only these points; the others
// lie where cne project places them.
func TestTrainOn(t *testing.T) {
	const n, d = 150, 12
	const table, network = "model.keep_data=true", "model.kind=mlp"
	sizes := map[string]int{"|u1": 1, "<f4": 4, "<f8": 8}
	for name, x := range map[string]struct {
		kind, on string // of the array; "" for a table
		settings []string
	}{
		"table of text":         {"", "0.4", []string{table, "data.label_column=kind"}},
		"network, table":        {"", "60", []string{network, "data.label_column=kind", "model.hidden=[8]"}},
		"bytes":                 {"|u1", "60", []string{table, "graph.pca=4"}},
		"bytes, network":        {"|u1", "60", []string{network, "model.hidden=[8]", "data.labels=labels.txt"}},
		"float32":               {"<f4", "rows.csv", []string{table, "graph.pca=4", "data.labels=labels.txt"}},
		"float64 with offset":   {"<f8", "60", []string{table, "data.scale=standard"}},
		"components, correlate": {"<f4", "60", []string{network, "graph.pca=4", "model.input=pca", "graph.metric=cosine", "model.hidden=[8]"}},
	} {
		t.Run(name, func(t *testing.T) {
			pictured := x.kind == "" // others draw no other pictures
			t.Setenv("CNE_OUTPUT_PLOT", strconv.FormatBool(pictured))
			folderOf(t, n, d)
			input, some, heading := "points.csv", "some.csv", 1
			if x.kind != "" {
				input, some = "points.npy", "some.npy"
				writeRandom(t, input, x.kind, n, d)
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
			flags := append([]string{"train", "--epochs", "5"}, set(append(x.settings, "graph.k=5", "train.batch_size=64")...)...)
			stdout, _ := mustRun(t, append(flags, "-o", "run", input, "--set", "data.sample="+x.on)...)
			if !strings.Contains(stdout, "placed                90 points after training") {
				t.Errorf("%s", stdout)
			}
			took := rowsIn(t, "run/sample_rows.csv")
			if len(took) != 60 || !slices.IsSorted(took) {
				t.Fatal(took)
			}

			// The same rows as a file.
			writeTestFile(t, "labels.txt", someLines(labels.String(), 0, took))
			if x.kind == "" {
				writeTestFile(t, some, someLines(readText(t, input), heading, took))
			} else {
				content := npy.Head(128, x.kind, len(took), d)
				all := readText(t, input)[128:]
				for _, i := range took {
					content = append(content, all[i*d*sizes[x.kind]:(i+1)*d*sizes[x.kind]]...)
				}
				writeTestFile(t, some, string(content))
			}
			mustRun(t, append(flags, "-o", "alone", some)...)
			writeTestFile(t, "labels.txt", labels.String())
			same := map[string]string{"sample.npy": "embedding.npy", "sample.csv": "embedding.csv"}
			if pictured {
				same["embedding.png"] = "embedding.png"
			}
			for from, to := range same {
				sameFile(t, "run/"+from, "alone/"+to)
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
			want, got := readPositions(t, "all.npy"), readPositions(t, "run/embedding.npy")
			learnt := readPositions(t, "run/sample.npy")
			for k, i := range took {
				copy(want.Row(i), learnt.Row(k))
			}
			if got.N != n || !slices.Equal(got.X, want.X) {
				t.Error("embedding.npy is not what was learnt and what cne project places")
			}
			header, lines := linesOf(t, "run/embedding.csv")
			if labeled := x.kind == "" || slices.Contains(x.settings, "data.labels=labels.txt"); len(lines) != n || labeled != (header == "x,y,label\n") || labeled && !strings.Contains(lines[1], ",bee") {
				t.Errorf("embedding.csv has %d lines below %q", len(lines), header)
			}
			// Figures are of the training points.
			stdout, _ = mustRun(t, "evaluate", "run")
			if !strings.Contains(stdout, "60 points, ") || !strings.Contains(stdout, fmt.Sprintf("%.4f", a["knn_recall"])) {
				t.Errorf("cne evaluate: %s", stdout)
			}
			mustRun(t, "plot", "run", "-o", "all.png")
			mustRun(t, "plot", "run", "--html", "-o", "all.html")

			// A run that could not write all points resumes to the same files.
			before := filesOf(t, "run")
			for _, name := range []string{"embedding.npy", "embedding.csv", "metrics.json"} {
				_ = os.Remove("run/" + name)
			}
			must(t, os.Mkdir("run/embedding.csv", 0o777))
			mustFail(t, 1, "cannot write run/embedding.csv", "train", "--resume", "run")
			if exists("run/embedding.npy") {
				t.Error("it has written a part")
			}
			must(t, os.Remove("run/embedding.csv"))
			mustRun(t, "train", "--resume", "run")
			sameFiles(t, before, filesOf(t, "run"))
		})
	}
}

// Points are held out before the sample is drawn. Both are placed in the end, and a run
// that could not place them resumes to the same files.
func TestSampleWithHeldOut(t *testing.T) {
	const n, d = 150, 6
	for name, x := range map[string]struct {
		input, sample, holdout string
		learnt, rest, held     int
	}{
		"a share of an array":   {"points.npy", "60", "0.2", 60, 60, 30},
		"a share of a table":    {"points.csv", "0.5", "0.2", 60, 60, 30},
		"rows in a file":        {"points.npy", "rows.csv", "0.2", 49, 71, 30},
		"a file":                {"points.npy", "60", "more.npy", 60, 90, 20},
		"images of the program": {"builtin:mnist10k", "100", "0.99", 100, 0, 9900},
	} {
		t.Run(name, func(t *testing.T) {
			folderOf(t, n, d)
			writeRandom(t, "points.npy", "<f4", n, d)
			writeRandom(t, "more.npy", "<f4", 20, d)
			var listed strings.Builder
			for i := range 60 {
				fmt.Fprintln(&listed, i)
			}
			writeTestFile(t, "rows.csv", "row\n"+listed.String())
			flags := append([]string{"train", x.input, "--epochs", "3"}, set("graph.k=5", "train.batch_size=64", "model.kind=mlp", "model.hidden=[8]", "data.holdout="+x.holdout)...)
			if x.input == "points.csv" {
				flags = append(flags, "--set", "data.label_column=kind", "--set", "data.names=kind")
			}
			mustRun(t, append(flags, "-o", "run", "--set", "data.sample="+x.sample)...)
			learnt, all, held := readPositions(t, "run/sample.npy"), readPositions(t, "run/embedding.npy"), readPositions(t, "run/holdout.npy")
			if m := readMetrics(t, "run/metrics.json"); learnt.N != x.learnt || all.N != x.learnt+x.rest || held.N != x.held || m["holdout"].(map[string]any)["n"] != float64(x.held) {
				t.Fatalf("%d points were learnt, %d placed with them and %d held out: %v", learnt.N, all.N, held.N, m)
			}
			rows, out := rowsIn(t, "run/sample_rows.csv"), rowsIn(t, "run/holdout_rows.csv")
			if x.input == "points.npy" && x.holdout == "0.2" { // without labels
				mustRun(t, append(flags, "-o", "whole")...)
				sameFile(t, "run/holdout_rows.csv", "whole/holdout_rows.csv")
			}

			// The others are placed like new points.
			project := []string{"project", "--model", "run", x.input, "-o", "all.npy"}
			if x.input == "points.csv" {
				project = append(project, "--label-column", "kind")
			}
			mustRun(t, project...)
			_, lines := linesOf(t, "run/embedding.csv")
			want, at := readPositions(t, "all.npy"), 0
			for i := range want.N {
				k, known := slices.BinarySearch(rows, i)
				h, isOut := slices.BinarySearch(out, i)
				switch {
				case known && isOut:
					t.Fatalf("row %d was learnt and held out", i)
				case isOut && !slices.Equal(held.Row(h), want.Row(i)), known && !slices.Equal(all.Row(at), learnt.Row(k)), !known && !isOut && !slices.Equal(all.Row(at), want.Row(i)):
					t.Fatalf("row %d lies elsewhere", i)
				}
				if isOut {
					continue
				}
				if x.input == "points.csv" && !strings.HasSuffix(lines[at], ","+animal(i)+"\n") {
					t.Fatalf("row %d: %s", i, lines[at])
				}
				at++
			}
			mustRun(t, "evaluate", "run")
			mustRun(t, "plot", "run", "--html", "-o", "all.html")

			before := filesOf(t, "run")
			for _, name := range []string{"embedding.npy", "embedding.csv", "holdout.npy", "holdout_rows.csv", "metrics.json"} {
				must(t, os.Remove("run/"+name))
			}
			mustRun(t, "train", "--resume", "run")
			sameFiles(t, before, filesOf(t, "run"))
			mustFail(t, 1, "was begun with data.holdout", "train", "--resume", "run", "--set", "data.holdout=0.3")
		})
	}
}

// All points of a block may be held out.
func TestSampleHeldOutBlock(t *testing.T) {
	folderOf(t, 2, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // blocks of 1024 points
	writeRandom(t, "points.npy", "<f4", 1025, 2)
	mustRun(t, append([]string{"train", "points.npy", "--epochs", "1", "-o", "run"}, set("graph.k=3", "data.holdout=0.9", "data.sample=0.5", "output.plot=false")...)...)
	all, out := readPositions(t, "run/embedding.npy"), rowsIn(t, "run/holdout_rows.csv")
	if all.N+len(out) != 1025 || out[len(out)-1] != 1024 {
		t.Errorf("%d points are placed and %d held out, at last %d", all.N, len(out), out[len(out)-1])
	}
}

// A run that ends early keeps what it has learnt, and places the points that were held out.
func TestSampleWithHeldOutEndsEarly(t *testing.T) {
	folderOf(t, 60, 3)
	cmd, stderr := program(t, append([]string{"train", "points.csv", "-o", "run", "--epochs", "1000000"}, set("graph.k=5", "data.holdout=0.2", "data.sample=0.5", "data.label_column=kind", "data.names=kind", "output.html=true")...)...)
	waitForRecords(t, 1)
	must(t, cmd.Process.Signal(os.Interrupt))
	if err := waitWithin(t, cmd, 60); err == nil || !strings.Contains(stderr.String(), "the embedding so far is in run/sample.npy; \"cne train --resume run\" continues") {
		t.Errorf("%v: %s", err, stderr)
	}
	if learnt, held := readPositions(t, "run/sample.npy"), readPositions(t, "run/holdout.npy"); learnt.N != 24 || held.N != 12 || !exists("run/embedding.html") || exists("run/embedding.npy") {
		t.Errorf("%d points were learnt and %d held out", learnt.N, held.N)
	}
}

// A run that is killed or interrupted while it places the other points leaves nothing
// half-written, and resumes to the same files.
func TestTrainOnGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "points.npy", "<f4", 3000, 20)
	args := append([]string{"train", "--epochs", "3", "points.npy"}, set("graph.k=5", "data.sample=300", "output.csv=false")...)
	mustRun(t, append(args, "-o", "whole")...)
	for i, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		dir := fmt.Sprint("run", i)
		cmd, stderr := program(t, append(args, "-o", dir)...)
		// The model is written last before that.
		for deadline := time.Now().Add(time.Minute); !exists(dir + "/model.safetensors"); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the run does not come to an end")
			}
		}
		must(t, cmd.Process.Signal(signal))
		err := cmd.Wait()
		if placed := exists(dir + "/embedding.npy"); placed { // which is there as a whole or not at all
			sameFile(t, dir+"/embedding.npy", "whole/embedding.npy")
		} else if err != nil && signal == os.Interrupt && !strings.Contains(stderr.String(), "interrupted while the other points were placed; those trained on are in "+dir+"/sample.npy; \"cne train --resume "+dir+"\" continues") {
			t.Errorf("%s", stderr)
		}
		mustRun(t, "train", "--resume", dir)
		for _, name := range []string{"embedding.npy", "sample.npy", "sample_rows.csv", "model.safetensors"} {
			sameFile(t, dir+"/"+name, "whole/"+name)
		}
		if left, _ := filepath.Glob(dir + "/*.tmp"); left != nil {
			t.Errorf("%q are left", left)
		}
	}
}

// A run that is killed while a network learns the map goes on from there, to the
// same network.
func TestLearningGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeRandom(t, "points.npy", "<f4", 100, 20)
	args := append([]string{"train", "--epochs", "3", "--network", "points.npy"}, set("output.csv=false", "checkpoint.minutes=3e-4")...)
	mustRun(t, append(args, "-o", "whole")...)
	learning := func(dir string) {
		cmd, _ := program(t, append(args, "-o", dir)...)
		for deadline := time.Now().Add(time.Minute); !exists(dir + "/learning.safetensors"); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no network learns")
			}
		}
		must(t, cmd.Process.Kill())
		if cmd.Wait() == nil {
			t.Skip("the run has ended before it was killed")
		}
	}
	learning("run")
	if _, stderr := mustRun(t, "train", "--resume", "run"); !strings.Contains(stderr, "the network goes on learning the map") {
		t.Error(stderr)
	}
	sameFile(t, "run/model.safetensors", "whole/model.safetensors")
	if exists("run/learning.safetensors") {
		t.Error("the state of the learning is left")
	}
	// The state of another version's network does not count.
	learning("other")
	c, err := train.ReadCheckpoint("other/learning.safetensors")
	must(t, err)
	c.Progress.Total++
	must(t, c.WriteFile("other/learning.safetensors"))
	if _, stderr := mustRun(t, "train", "--resume", "other"); !strings.Contains(stderr, "it learns from the beginning") {
		t.Error(stderr)
	}
	sameFile(t, "other/model.safetensors", "whole/model.safetensors")
	// A longer run has another map, which is learnt from the beginning.
	learning("longer")
	if _, stderr := mustRun(t, "train", "--resume", "longer", "--epochs", "4"); !strings.Contains(stderr, "a network learns the map") {
		t.Error(stderr)
	}
}
