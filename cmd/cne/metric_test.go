package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"cne/internal/rng"
	"cne/internal/rundir"
)

// writeDirections makes a table of points in four classes, each around a direction of
// its own, of lengths that differ by orders of magnitude, and names of the classes.
func writeDirections(t *testing.T, path string, n int, extra string) {
	t.Helper()
	stream := rng.New(7, rng.Sample)
	var b strings.Builder
	const width = 5
	b.WriteString("a,b,c,d,e,kind\n")
	for i := range n {
		class, length := i%4, math.Exp(8*stream.Float64()-4)
		for j := range width {
			v := 0.6 * stream.Float64()
			if j == class {
				v++
			}
			fmt.Fprintf(&b, "%.5g,", length*v)
		}
		fmt.Fprintf(&b, "k%d\n", class)
	}
	b.WriteString(extra)
	writeTestFile(t, path, b.String())
}

// By cosine and correlation, points of one direction are neighbours whatever their
// length; the saved model, the hold-out and cne evaluate do the same to new points.
func TestGraphMetric(t *testing.T) {
	t.Chdir(t.TempDir())
	writeDirections(t, "points.csv", 400, "")
	writeDirections(t, "new.csv", 40, "0,0,0,0,0,k0\n")
	flags := []string{"train", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=10", "--epochs", "30", "--set", "data.holdout=0.1", "--force"}
	accuracy := map[string]float64{}
	for _, metric := range []string{"euclidean", "cosine", "correlation"} {
		for _, kind := range []string{"table", "mlp"} {
			run := metric + "-" + kind
			more := []string{"--set", "graph.metric=" + metric, "--set", "model.kind=" + kind, "--set", "model.hidden=[20]", "-o", run}
			if kind == "table" {
				more = append(more, "--set", "model.keep_data=true")
			}
			if code, _, stderr := runCne(t.Context(), append(flags, more...)...); code != 0 {
				t.Fatalf("%s: %s", run, stderr)
			}
			m := rundir.ReadMetrics(run)
			accuracy[run] = *m.Holdout.Accuracy
			if code, _, stderr := runCne(t.Context(), "evaluate", run, "-o", run+".json"); code != 0 {
				t.Fatalf("%s: %s", run, stderr)
			}
			project := []string{"project", "--model", run, "new.csv", "--drop", "kind", "-o", run + ".positions.csv"}
			code, _, stderr := runCne(t.Context(), project...)
			if metric == "euclidean" {
				if code != 0 {
					t.Fatalf("%s: %s", run, stderr)
				}
				continue
			}
			if code != exitFailure || !strings.Contains(stderr, "new.csv: row 41: ") || !strings.Contains(stderr, "--skip-bad") {
				t.Errorf("%s: a point of zeros gives exit code %d and %q", run, code, stderr)
			}
			if code, _, stderr := runCne(t.Context(), append(project, "--skip-bad")...); code != 0 {
				t.Fatalf("%s: %s", run, stderr)
			}
			lines := strings.Split(strings.TrimSpace(readText(t, run+".positions.csv")), "\n")
			for i, line := range lines[1:] {
				if isNaN := strings.Contains(line, "NaN"); isNaN != (i == 40) {
					t.Errorf("%s: the position of point %d is %s", run, i, line)
				}
			}
		}
	}
	for _, run := range []string{"cosine-table", "correlation-table"} {
		if accuracy[run] < 0.95 {
			t.Errorf("the accuracy of held-out points is %.3f with %s", accuracy[run], run)
		}
	}
}

func TestGraphMetricRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeDirections(t, "zeros.csv", 60, "0,0,0,0,0,k0\n0,0,0,0,0,k1\n")
	writeDirections(t, "equal.csv", 60, "2,2,2,2,2,k0\n")
	for name, tt := range map[string]struct{ file, metric, want string }{
		"zeros":          {"zeros.csv", "cosine", "zeros.csv: row 61 and zeros.csv: row 62 of 62 points: points of which all values are 0 have no direction; leave them out, or take the euclidean metric (graph.metric)"},
		"equal values":   {"equal.csv", "correlation", "equal.csv: row 61 of 61 points: points of which all values are equal correlate with none; leave them out"},
		"unknown metric": {"equal.csv", "manhattan", `graph.metric is "manhattan", but must be euclidean, cosine or correlation`},
	} {
		code, _, stderr := runCne(t.Context(), "train", tt.file, "--set", "data.label_column=kind", "--set", "graph.metric="+tt.metric, "-o", "run")
		if code == 0 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d and %q, want %q", name, code, stderr, tt.want)
		}
	}
	if files, err := filepath.Glob("run/*"); err != nil || len(files) > 0 {
		t.Errorf("files %v are left behind", files)
	}
}
