package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rundir"
)

// rowsIn returns the numbers in a file of rows.
func rowsIn(t *testing.T, path string) []int {
	t.Helper()
	lines := strings.Fields(readText(t, path))
	if lines[0] != "row" {
		t.Fatalf("%s begins with %q", path, lines[0])
	}
	rows := make([]int, len(lines)-1)
	for i, line := range lines[1:] {
		var err error
		rows[i], err = strconv.Atoi(line)
		must(t, err)
	}
	return rows
}

// The rows of an imbalanced run name the rows of the input, those that are held
// out included, and the labels are theirs.
func TestImbalance(t *testing.T) {
	t.Chdir(t.TempDir())
	writeClusters(t, "points.csv", 0, 300, animal)
	code, _, stderr := runCne(t.Context(), holdoutRun("--set", "data.imbalance=linear", "--set", "data.holdout=0.2", "--epochs", "2")...)
	if code != 0 || !strings.Contains(stderr, "points=159") || !strings.Contains(stderr, "held out points=40") {
		t.Fatal(code, stderr)
	}
	seen := make([]bool, 300)
	kept := make([]int, 3)
	for name, n := range map[string]int{"rows": 159, "holdout_rows": 40} {
		rows := rowsIn(t, "run/"+name+".csv")
		if len(rows) != n {
			t.Fatalf("%s.csv has %d rows, want %d", name, len(rows), n)
		}
		set, err := data.Open(t.Context(), []string{"run/" + map[string]string{"rows": "embedding", "holdout_rows": "holdout"}[name] + ".csv"}, data.Options{LabelColumn: rundir.LabelColumn})
		must(t, err)
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
	if kept[0] != 100 || kept[1] != 66 || kept[2] != 33 {
		t.Errorf("the classes keep %v points", kept)
	}
	if code, _, stderr := runCne(t.Context(), "train", "--resume", "run", "--set", "data.imbalance=null"); code != 1 || !strings.Contains(stderr, "data.imbalance linear, not null") {
		t.Error(code, stderr)
	}
	// Another run in the folder does not leave the rows of this one there.
	if code, _, stderr := runCne(t.Context(), holdoutRun("--epochs", "2", "--force")...); code != 0 {
		t.Fatal(code, stderr)
	}
	if _, err := os.Stat("run/rows.csv"); err == nil {
		t.Error("rows.csv is still there")
	}
}

func TestImbalanceRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeClusters(t, "points.csv", 0, 60, animal)
	code, stdout, stderr := runCne(t.Context(), append(holdoutRun("--set", "data.imbalance=linear", "--set", "data.label_column=null", "--set", "data.drop=[5]"), "--quiet")...)
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "data.imbalance: classes cannot be thinned out, for the points have no labels") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
