package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cne/internal/rundir"
)

// evaluateRun runs cne evaluate and returns what it prints.
func evaluateRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runCne(t.Context(), append([]string{"evaluate"}, args...)...)
}

// A run is not measured by points, or a graph, that it was not trained on without
// anything being said, whether its metrics know them or its checkpoint alone.
func TestEvaluateKnowsThePoints(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "x.csv", 60, "", "01234", 0)
	writeTable(t, "first.csv", 60, "", "01234", 0)
	trainTable(t, "--set", "data.path=x.csv")
	if code, _, stderr := evaluateRun(t, "run"); code != 0 || strings.Contains(stderr, "measured by other") {
		t.Fatal(code, stderr)
	}
	const other = "the points of data.path (x.csv) are not those that the run in run was trained on; bring those back"
	for name, forget := range map[string]func() error{
		"metrics":    func() error { return os.Remove("run/checkpoint.safetensors") },
		"checkpoint": func() error { return os.Remove("run/" + rundir.MetricsFile) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			if err := forget(); err != nil {
				t.Fatal(err)
			}
			writeTable(t, "x.csv", 60, "", "43210", 0)
			for _, args := range [][]string{{"run"}, {"run", "run/embedding.npy"}, {"run/embedding.npy", "run"}} {
				if code, stdout, stderr := evaluateRun(t, args...); code != 1 || stdout != "" || !strings.Contains(stderr, other) {
					t.Errorf("%v: exit code %d, %q", args, code, stderr)
				}
			}
			// Who says what to measure by gets that, and a warning.
			for _, args := range [][]string{{"run", "--data", "x.csv"}, {"run", "--set", "data.path=x.csv", "--set", "data.scale=none"}} {
				if code, _, stderr := evaluateRun(t, args...); code != 0 || !strings.Contains(stderr, "a run is measured by other points than it was trained on") {
					t.Errorf("%v: exit code %d, %q", args, code, stderr)
				}
			}
			if code, _, stderr := evaluateRun(t, "run", "--data", "first.csv"); code != 0 || strings.Contains(stderr, "measured by other") {
				t.Errorf("exit code %d, %q", code, stderr)
			}
		})
	}
	t.Run("graph", func(t *testing.T) {
		trainTable(t, "--set", "data.path=first.csv", "-o", "a")
		trainTable(t, "--set", "data.path=first.csv", "--set", "graph.k=4", "-o", "b")
		writeTestFile(t, "graph.npz", fileText(t, "a/graph.npz"))
		trainTable(t, "--set", "data.path=first.csv", "--set", "graph.file=graph.npz", "-o", "c")
		if code, _, stderr := evaluateRun(t, "c"); code != 0 {
			t.Fatal(stderr)
		}
		writeTestFile(t, "graph.npz", fileText(t, "b/graph.npz"))
		if code, _, stderr := evaluateRun(t, "c"); code != 1 || !strings.Contains(stderr, "the edges of graph.file (graph.npz) are not those that the run in c was trained on") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
		if code, _, stderr := evaluateRun(t, "c", "--graph", "b/graph.npz"); code != 0 || !strings.Contains(stderr, "measured by other edges") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
	})
}

// The relative paths of a run are found from where it was at work.
func TestEvaluateFromAnotherFolder(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	writeTable(t, "x.csv", 60, "", "01234", 0)
	writeTable(t, "held.csv", 9, "", "01234", 0)
	writeTestFile(t, "labels.txt", strings.Repeat("a\nb\n", 30))
	flags := []string{"--set", "data.path=x.csv", "--set", "data.labels=labels.txt", "--set", "data.holdout=held.csv"}
	trainTable(t, flags...)
	trainTable(t, "--set", "data.path=x.csv", "--set", "graph.file=run/graph.npz", "-o", "own")
	elsewhere := t.TempDir()
	trainTable(t, append(flags, "-o", filepath.Join(elsewhere, "far"))...)
	code, want, stderr := evaluateRun(t, "run", "--json")
	if code != 0 {
		t.Fatal(stderr)
	}
	t.Chdir(elsewhere)
	for _, run := range []string{filepath.Join(work, "run"), filepath.Join(work, "own"), "far"} {
		code, got, stderr := evaluateRun(t, run, "--json")
		if code != 0 || !strings.Contains(got, "knn_recall") || strings.Contains(got, "accuracy\"") != strings.Contains(want, "accuracy\"") && !strings.HasSuffix(run, "own") {
			t.Errorf("%s: exit code %d, %q, %q", run, code, got, stderr)
		}
	}
	// What is in the current folder comes first, but has to be the run's.
	writeTable(t, "x.csv", 60, "", "43210", 0)
	if code, _, stderr := evaluateRun(t, "far"); code != 1 || !strings.Contains(stderr, "are not those that the run in far was trained on") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if err := os.Remove("x.csv"); err != nil {
		t.Fatal(err)
	}
	// A path that is given counts from there alone.
	if code, _, stderr := evaluateRun(t, "far", "--data", "x.csv"); code != 1 || !strings.Contains(stderr, "x.csv") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	// A run that was moved with its data finds them from where it is.
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(work, moved); err != nil {
		t.Fatal(err)
	}
	t.Chdir(moved)
	if code, _, stderr := evaluateRun(t, "run"); code != 0 {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
