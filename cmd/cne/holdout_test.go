package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rundir"
)

// writeClusters writes n points of three classes, from the first row of the
// class cycle given by from on, without labels if kind is "".
func writeClusters(t *testing.T, path string, from, n int, kind func(i int) string) {
	t.Helper()
	var b strings.Builder
	for i := from; i < from+n; i++ {
		for j := range 4 {
			fmt.Fprintf(&b, "%g,", float64(i%3*(j%3)*20)+float64((i*7919+j*104729)%1000)/500)
		}
		fmt.Fprintf(&b, "%s\n", kind(i))
	}
	writeTestFile(t, path, b.String())
}

func animal(i int) string { return []string{"ant", "bee", "cat"}[i%3] }

func holdoutRun(more ...string) []string {
	return append([]string{"train", "--set", "data.path=points.csv", "--set", "data.label_column=5", "--set", "data.header=no", "--set", "graph.k=5",
		"--set", "train.batch_size=64", "--epochs", "20", "-o", "run"}, more...)
}

func heldMetrics(t *testing.T) map[string]any {
	t.Helper()
	held, ok := readMetrics(t, "run/metrics.json")["holdout"].(map[string]any)
	if !ok {
		t.Fatal("metrics.json has nothing of the held-out points")
	}
	return held
}

// Held-out points are not trained on, and land in their classes, by either
// model and from a share or a file.
func TestHoldout(t *testing.T) {
	for name, flags := range map[string][]string{
		"table, share": {"--set", "data.holdout=0.25"},
		"mlp, share":   {"--set", "data.holdout=0.25", "--set", "model.kind=mlp", "--set", "model.hidden=[20]", "--set", "train.lr=0.02"},
		"table, file":  {"--set", "data.holdout=held.csv"},
		"mlp, file":    {"--set", "data.holdout=held.csv", "--set", "model.kind=mlp", "--set", "model.hidden=[20]", "--set", "train.lr=0.02", "--set", "model.dtype=float64"},
		"mlp, pca":     {"--set", "data.holdout=held.csv", "--set", "model.kind=mlp", "--set", "model.hidden=[20]", "--set", "train.lr=0.02", "--set", "graph.pca=3", "--set", "model.input=pca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeClusters(t, "points.csv", 0, 240, animal)
			writeClusters(t, "held.csv", 240, 60, animal)
			code, stdout, stderr := runCne(t.Context(), holdoutRun(flags...)...)
			if code != 0 || !strings.Contains(stdout, "held out") || !strings.Contains(stderr, "held out points=60") {
				t.Fatal(code, stdout, stderr)
			}
			held := heldMetrics(t)
			if held["n"] != 60. || held["accuracy"].(float64) < 0.95 || held["knn_recall"].(float64) <= 0 {
				t.Errorf("metrics %v", held)
			}
			set, err := data.Open(t.Context(), []string{"run/holdout.csv"}, data.Options{LabelColumn: rundir.LabelColumn})
			if err != nil || set.Points.N != 60 || set.Points.D != 2 || len(set.Labels.Names) != 3 {
				t.Errorf("holdout.csv: %+v, %v", set, err)
			}
			if strings.Contains(name, "share") {
				rows, err := os.ReadFile("run/holdout_rows.csv")
				if err != nil || strings.Count(string(rows), "\n") != 61 || !strings.HasPrefix(string(rows), "row\n") {
					t.Errorf("holdout_rows.csv: %q, %v", rows, err)
				}
			}
			// cne plot draws the same picture again.
			want := readText(t, "run/embedding.png")
			if code, _, stderr := runCne(t.Context(), "plot", "run", "-o", "again.png"); code != 0 || readText(t, "again.png") != want {
				t.Errorf("cne plot draws another picture: %s", stderr)
			}
		})
	}
}

// A run that is interrupted places its held-out points too, and its model can
// place others.
func TestHoldoutOfInterruptedRun(t *testing.T) {
	for _, kind := range []string{"table", "mlp"} {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeClusters(t, "points.csv", 0, 240, animal)
			flags := []string{"--set", "data.holdout=0.25", "--set", "model.kind=" + kind, "--epochs", "1000000"}
			if kind == "table" {
				flags = append(flags, "--set", "model.keep_data=true")
			}
			cmd, stderr := program(t, holdoutRun(flags...)...)
			waitForRecords(t, 20)
			must(t, cmd.Process.Signal(os.Interrupt))
			if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "the embedding so far is in run/embedding.npy") {
				t.Fatal(err, stderr)
			}
			want := readText(t, "run/holdout.npy")
			var held strings.Builder
			points := strings.SplitAfter(readText(t, "points.csv"), "\n")
			for _, line := range strings.Fields(readText(t, "run/holdout_rows.csv"))[1:] {
				i, err := strconv.Atoi(line)
				must(t, err)
				held.WriteString(points[i])
			}
			writeTestFile(t, "held.csv", held.String())
			code, _, text := runCne(t.Context(), "project", "-m", "run", "held.csv", "--label-column", "5", "--header", "no", "-o", "again.npy")
			if code != 0 || readText(t, "again.npy") != want {
				t.Errorf("exit code %d, %s; or other positions", code, text)
			}
		})
	}
}

func TestHoldoutLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds, heldKinds func(i int) string
		flags            []string
		accuracy         bool
		warning          string
	}{
		"the same":   {animal, animal, nil, true, ""},
		"none known": {animal, func(i int) string { return []string{"dog", "eel"}[i%2] }, nil, false, "no label of the held-out points occurs among the training points"},
		"one new":    {animal, func(i int) string { return []string{"ant", "bee", "dog"}[i%3] }, nil, true, ""},
		"quantities": {func(i int) string { return fmt.Sprintf("%d.5", i) }, func(i int) string { return fmt.Sprintf("%d.5", i) }, nil, false, ""},
		"missing":    {animal, func(i int) string { return "" }, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeClusters(t, "points.csv", 0, 120, tc.kinds)
			writeClusters(t, "held.csv", 120, 30, tc.heldKinds)
			code, _, stderr := runCne(t.Context(), holdoutRun(append(tc.flags, "--set", "data.holdout=held.csv", "--epochs", "5")...)...)
			if code != 0 || tc.warning != "" && !strings.Contains(stderr, tc.warning) || tc.warning == "" && strings.Contains(stderr, "no label") {
				t.Fatal(code, stderr)
			}
			if _, ok := heldMetrics(t)["accuracy"]; ok != tc.accuracy {
				t.Errorf("metrics %v", heldMetrics(t))
			}
		})
	}
}

func TestHoldoutRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string // held.csv
		flags []string
		want  string
	}{
		"missing":        {"", []string{"--set", "data.holdout=nowhere.csv"}, "nowhere.csv: no such file or directory); check the path (data.holdout)"},
		"missing labels": {"1,2,3,4,ant\n", []string{"--set", "data.holdout=held.csv", "--set", "data.holdout_labels=nowhere.txt", "--set", "data.label_column=null", "--set", "data.drop=[5]"}, "(data.holdout_labels)"},
		"width":          {"1,2,3,ant\n", []string{"--set", "data.holdout=held.csv", "--set", "data.label_column=-1"}, "data.holdout: the points have 3 values, but those of data.path have 4"},
		"not a number":   {"1,2,3,4,ant\n1,nan,3,4,bee\n", []string{"--set", "data.holdout=held.csv"}, "held.csv"},
		"too many":       {"", []string{"--set", "data.holdout=0.97"}, "graph.k is 5, but the 4 points that data.holdout leaves do not have 5 neighbours each; hold fewer out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeClusters(t, "points.csv", 0, 120, animal)
			writeTestFile(t, "held.csv", tc.file)
			code, stdout, stderr := runCne(t.Context(), append(holdoutRun(tc.flags...), "--quiet")...)
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
		})
	}
}
