//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cne/internal/app/rundir"
)

// sweepOf is a sweep of short runs, with more of its file.
func sweepOf(t *testing.T, more string) {
	t.Helper()
	t.Setenv(mainVariable, "1")
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 6)
	writeTestFile(t, "s.yaml", "output: out\nset: {data.path: points.csv, data.label_column: kind, graph.k: 5, data.scale: none, quality.spearman_sample: 30}\n"+more)
}

// filesOf returns the files below a folder but for what tells times and memory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range listFiles(t, dir) {
		switch filepath.Base(name) {
		case "metrics.jsonl", "metrics.json", "report.csv", "report-by-seed.csv", "checkpoint.safetensors", "checkpoint.previous.safetensors":
			continue
		}
		found[name] = fileText(t, filepath.Join(dir, name))
	}
	return found
}

// modified returns when a file was written last.
func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.ModTime()
}

// sameFiles compares what two sweeps have made.
func sameFiles(t *testing.T, a, b map[string]string) {
	t.Helper()
	for name, text := range a {
		if other, ok := b[name]; !ok || other != text {
			t.Errorf("%s differs, or is missing", name)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d files and %d", len(a), len(b))
	}
}

// All runs are executed, share their cache, and are reported; the second call does
// nothing. A failed run is reported after the others are done, and tried again.
func TestSweep(t *testing.T) {
	sweepOf(t, "axes:\n  train.epochs: [2, 3]\n  train.lr: [1, 1.0e+30]\n  seed: [3, 4]")
	if out, _ := mustRun(t, "sweep", "s.yaml", "--count"); out != "8\n" {
		t.Errorf("--count prints %q", out)
	}
	code, stdout, stderr := runCne(t.Context(), "sweep", "s.yaml")
	if code != 1 || stdout != "out/report.csv\n" ||
		!strings.Contains(stderr, "cne: 4 of 8 runs have failed: 02 (train.epochs=2 train.lr=1.0e+30 seed=3): training diverged in epoch 1") {
		t.Fatalf("exit code %d, %q, %s", code, stdout, stderr)
	}
	if n := strings.Count(stderr, "come from the cache"); n != 7 {
		t.Errorf("%d runs take the neighbours from the cache: %s", n, stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(fileText(t, "out/report-by-seed.csv"))).ReadAll()
	must(t, err)
	column := slices.Index(rows[0], "knn_recall")
	if len(rows) != 5 || strings.Join(rows[0][:4], " ") != "run train.epochs train.lr seed" || strings.Join(rows[4][:4], " ") != "05 3 1 4" || column < 0 {
		t.Fatalf("%q", rows)
	}
	if m := rundir.ReadMetrics("out/05"); m.Epochs != 3 || m.Seed != 4 || rows[4][column] != strconv.FormatFloat(*m.KNNRecall, 'g', -1, 64) {
		t.Errorf("%+v, %q", m, rows[4])
	}
	before, at := filesOf(t, "out"), modified(t, "out/00/embedding.npy")
	if code, _, stderr = runCne(t.Context(), "sweep", "s.yaml"); code != 1 || strings.Count(stderr, "a run of the sweep") != 4 || modified(t, "out/00/embedding.npy") != at {
		t.Errorf("the second time: exit code %d, %s", code, stderr)
	}
	sameFiles(t, before, filesOf(t, "out"))

	// Runs by themselves, in any order and by several processes at once, give the same.
	must(t, os.Rename("out", "first"))
	var all []func() error
	for _, i := range []string{"5", "0", "4", "1"} {
		cmd, _ := program(t, "sweep", "s.yaml", "--only", i)
		all = append(all, cmd.Wait)
	}
	for _, wait := range all {
		must(t, wait())
	}
	if code, _, stderr := runCne(t.Context(), "sweep", "s.yaml", "--only", "2"); code != 1 || !strings.Contains(stderr, "cne: 1 of 1 runs have failed: 02 (train.epochs=2 train.lr=1.0e+30 seed=3): training diverged") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	mustRun(t, "sweep", "s.yaml", "--report")
	second, err := csv.NewReader(strings.NewReader(fileText(t, "out/report-by-seed.csv"))).ReadAll()
	if err != nil || !reflect.DeepEqual(second, rows) {
		t.Errorf("%q and %q, %v", rows, second, err)
	}
	after := filesOf(t, "out")
	for name := range before {
		if strings.HasPrefix(name, "03/") || strings.HasPrefix(name, "06/") || strings.HasPrefix(name, "07/") || strings.HasSuffix(name, ".lock") {
			delete(before, name)
			delete(after, name)
		}
	}
	sameFiles(t, before, after)
}

// A sweep that is interrupted or killed continues where it was.
func TestSweepGoesOn(t *testing.T) {
	sweepOf(t, "axes: {train.epochs: [400], seed: [1, 2]}")
	mustRun(t, "sweep", "s.yaml", "-q")
	want := filesOf(t, "out")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		must(t, os.RemoveAll("out"))
		cmd, stderr := program(t, "sweep", "s.yaml")
		deadline := time.Now().Add(60 * time.Second)
		for {
			records, _ := os.ReadFile("out/01/metrics.jsonl") // there is none yet
			if bytes.Count(records, []byte("\n")) >= 3 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the second run does not begin: %s", stderr)
			}
			time.Sleep(time.Millisecond)
		}
		must(t, cmd.Process.Signal(signal))
		if err := waitWithin(t, cmd, 60); err == nil || signal == os.Interrupt && !strings.HasSuffix(stderr.String(), "cne: interrupted; \"cne sweep s.yaml\" continues\n") {
			t.Fatalf("%v: %s", err, stderr)
		}
		// The run of a process that was killed may still be saving its state.
		for {
			code, stdout, stderr := runCne(t.Context(), "sweep", "s.yaml")
			if code != 0 {
				t.Fatalf("exit code %d, %s", code, stderr)
			}
			if stdout == "out/report.csv\n" {
				if !strings.Contains(stderr, "continuing") || strings.Contains(stderr, "run=00") {
					t.Errorf("it does not go on: %s", stderr)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s", stderr)
			}
			time.Sleep(10 * time.Millisecond)
		}
		sameFiles(t, want, filesOf(t, "out"))
	}
}

func TestSweepRefuses(t *testing.T) {
	sweepOf(t, "axes: {train.epochs: [2], seed: [1, 2]}")
	refused := func(code int, want string, args ...string) {
		t.Helper()
		got, _, stderr := runCne(t.Context(), append([]string{"sweep"}, args...)...)
		if got != code || !strings.Contains(stderr, want) {
			t.Errorf("cne sweep %q: exit code %d, %s, want %s", args, got, stderr, want)
		}
	}
	refused(2, "cne sweep: got 0 arguments, want one, the file that describes the runs")
	refused(2, "--only: got 2, want 0 to 1, the runs of s.yaml", "s.yaml", "--only", "2")
	refused(2, "--only: got -1", "s.yaml", "--only", "-1")
	refused(2, "got several", "s.yaml", "--only", "1", "--report")
	refused(1, "cannot read the configuration", "none.yaml")
	refused(1, "no run of the sweep in out has succeeded", "s.yaml", "--report")
	must(t, os.MkdirAll("other/00", 0o777))
	writeTestFile(t, "other/00/config.yaml", "mine: 1\n")
	writeTestFile(t, "o.yaml", "output: other\naxes: {seed: [1]}")
	refused(1, "other/00/config.yaml:1: mine: unknown key", "o.yaml")
	mustRun(t, "sweep", "s.yaml", "--only", "1", "-q")
	writeTestFile(t, "s.yaml", strings.Replace(fileText(t, "s.yaml"), "[2]", "[3]", 1))
	before := filesOf(t, "out")
	refused(1, "s.yaml: train.epochs: got 3 for run 01 in out, want 2 as before, or another output", "s.yaml")
	sameFiles(t, before, filesOf(t, "out"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := runCne(ctx, "sweep", "s.yaml"); code != 1 || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// Runs are titled by what they differ in, the seed last; files by their names, or paths if
// names are the same. Of a sweep's folder, what is no run is passed over.
func TestPlotRunsTitles(t *testing.T) {
	sweepOf(t, "axes:\n  seed: [3, 4]\n  loss.s: [0, 0.5]\n  train.epochs: [2]")
	mustRun(t, "sweep", "s.yaml", "-q")
	beside := []string{"out/00.done", "out/00.lock", "out/cache", "out/report-by-seed.csv", "out/report.csv"}
	for want, inputs := range map[string][]string{
		"s = 0, seed = 3|s = 0.5, seed = 3|s = 0, seed = 4": append([]string{"out/00", "out/01", "out/02"}, beside...),
		"s = 0|s = 0.5": {"out/00", "out/01"},
		"00|embedding":  {"out/00", "out/01/embedding.csv"},
		"out/00/embedding.csv|out/01/embedding.csv": {"out/00/embedding.csv", "out/01/embedding.csv"},
		"out/00|out/00": {"out/00", "out/00"},
	} {
		isTitle := func(s string) bool { return strings.Contains(want, s) && s != "0" }
		shown := plotTexts(t, append(inputs, "-o", "strip.svg")...)
		if got := strings.Join(slices.DeleteFunc(shown, func(s string) bool { return !isTitle(s) || s == "" }), "|"); got != want {
			t.Errorf("%q: got %q of %q, want %q", inputs, got, shown, want)
		}
	}
	if _, _, stderr := runCne(t.Context(), "plot", "out/00.done", "-o", "a.png"); stderr != "cne: out/00.done: the file is empty\n" {
		t.Error(stderr)
	}
	// A loss sets others, such as the initial positions' deviation.
	sweepOf(t, "axes:\n  loss.name: [neg, infonc]\n  seed: [3, 4]\n  train.epochs: [3]")
	mustRun(t, "sweep", "s.yaml", "-q")
	shown := plotTexts(t, "out/00", "out/01", "out/02", "out/03", "-o", "strip.svg")
	for _, want := range []string{"loss = neg, seed = 3", "loss = neg, seed = 4", "loss = infonc, seed = 3", "loss = infonc, seed = 4"} {
		if !slices.Contains(shown, want) {
			t.Errorf("got %q, want %q, too", shown, want)
		}
	}
}
