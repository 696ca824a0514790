package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// writeTable writes n points of five columns as a table. The columns come in the
// given order of 0 to 4, each with a number added, below names if there are any.
func writeTable(t *testing.T, path string, n int, names string, order string, by float64) {
	t.Helper()
	s := rng.New(1, rng.Init)
	var b bytes.Buffer
	if names != "" {
		b.WriteString(names + "\n")
	}
	for range n {
		var row [5]float64
		for j := range row {
			row[j] = by + math.Round(1024*float64(j+1)*s.Normal())/1024
		}
		for k, j := range []byte(order) {
			if k > 0 {
				b.WriteByte(',')
			}
			if j < '0' {
				b.WriteString("text")
				continue
			}
			fmt.Fprintf(&b, "%.17g", row[j-'0'])
		}
		b.WriteByte('\n')
	}
	writeTestFile(t, path, b.String())
}

func trainTable(t *testing.T, flags ...string) (stderr string) {
	t.Helper()
	code, _, stderr := runCne(t.Context(), append([]string{"train", "--set", "data.scale=standard", "--set", "graph.k=5", "--epochs", "3", "-o", "run", "--force"}, flags...)...)
	if code != 0 {
		t.Fatal(code, stderr)
	}
	return stderr
}

// A model knows the columns of its points by their names.
func TestProjectColumnsByName(t *testing.T) {
	for name, flags := range map[string][]string{"table": aTable(), "mlp": aNetwork(), "mlp of pca": aNetwork("--set", "graph.pca=3", "--set", "model.input=pca")} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeTable(t, "a.csv", 60, "a,b,c,d,e", "01234", 0)
			writeTable(t, "back.csv", 60, "e,d,c,b,a", "43210", 0)
			writeTable(t, "more.csv", 60, "id,e,d,c,b,kind,a", "04321#0", 0)
			writeTable(t, "unnamed.csv", 60, "", "01234", 0)
			writeTable(t, "other.csv", 60, "v,w,x,y,z", "01234", 0)
			writeTable(t, "less.csv", 60, "e,d,b", "431", 0)
			trainTable(t, append(flags, "--set", "data.path=a.csv")...)
			want := place(t, "want.csv", "a.csv")
			for _, input := range []string{"back.csv", "more.csv", "unnamed.csv"} {
				code, _, stderr := runCne(t.Context(), "project", "--model", "run", "-o", "got.csv", input)
				if code != 0 || readText(t, "got.csv") != want {
					t.Errorf("%s is placed elsewhere: %s", input, stderr)
				}
				said := map[string]string{"more.csv": `columns="id, kind"`, "unnamed.csv": "have no names"}[input]
				if !strings.Contains(stderr, said) || said == "" && strings.Contains(stderr, "columns") {
					t.Errorf("%s: the log says %q", input, stderr)
				}
			}
			for input, fault := range map[string]string{
				"other.csv": `other.csv: of the 5 columns that were trained on, 5 are missing: "a", "b", "c" and 2 more`,
				"less.csv":  `less.csv: of the 5 columns that were trained on, 2 are missing: "a", "c"; there are "e", "d", "b"`,
			} {
				if code, _, stderr := runCne(t.Context(), "project", "--model", "run", "-o", "no.csv", input); code != 1 || !strings.Contains(stderr, fault) {
					t.Errorf("%s: exit code %d, %q", input, code, stderr)
				}
			}
		})
	}
}

// So do points that are held out.
func TestHoldoutColumnsByName(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "a.csv", 60, "a,b,c,d,e", "01234", 0)
	writeTable(t, "back.csv", 40, "e,d,c,b,a,f", "432100", 0)
	writeTable(t, "other.csv", 40, "v,w,x,y,z", "01234", 0)
	network := aNetwork("--set", "data.path=a.csv")
	trainTable(t, append(network, "--set", "data.holdout=a.csv")...)
	want := readText(t, "run/holdout.csv")
	stderr := trainTable(t, append(network, "--set", "data.holdout=back.csv")...)
	if got := readText(t, "run/holdout.csv"); !strings.HasPrefix(want, got) || !strings.Contains(stderr, "columns=f") {
		t.Errorf("the points are placed elsewhere: %s", stderr)
	}
	code, _, stderr := runCne(t.Context(), "train", "--set", "data.path=a.csv", "--set", "data.holdout=other.csv", "-o", "other")
	if code != 1 || !strings.Contains(stderr, "data.holdout: other.csv: of the 5 columns that were trained on, 5 are missing") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// A run far from zero is the run near it, and so are its new points.
func TestTrainFarFromZero(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "near.csv", 80, "a,b,c,d,e", "01234", 0)
	writeTable(t, "far.csv", 80, "a,b,c,d,e", "01234", 1e8)
	writeTable(t, "few.csv", 2, "a,b,c,d,e", "01234", 1e8)
	for name, flags := range map[string][]string{"table": aTable(), "mlp": aNetwork(), "share": aNetwork("--set", "data.holdout=0.2")} {
		t.Run(name, func(t *testing.T) {
			stderr := trainTable(t, append(flags, "--set", "data.path=near.csv")...)
			if strings.Contains(stderr, "relative") {
				t.Errorf("the log says %q", stderr)
			}
			graph := readText(t, "run/graph.npz")
			stderr = trainTable(t, append(flags, "--set", "data.path=far.csv")...)
			if readText(t, "run/graph.npz") != graph {
				t.Error("the graph is another")
			}
			if !strings.Contains(stderr, `are read relative to a value in their middle`) || !strings.Contains(stderr, `columns="a, b, c and 2 more"`) {
				t.Errorf("the log says %q", stderr)
			}
			place(t, "all.npy", "far.csv")
			place(t, "few.npy", "few.csv")
			all, few := readPositions(t, "all.npy"), readPositions(t, "few.npy")
			for i, v := range few.X {
				if math.Abs(float64(v-all.X[i])) > 1e-4*max(1, math.Abs(float64(v))) {
					t.Errorf("coordinate %d is %v among two, %v among all", i, v, all.X[i])
				}
			}
			if name != "mlp" {
				return
			}
			trainTable(t, append(flags, "--set", "data.path=far.csv", "--set", "data.holdout=few.csv")...)
			held, err := data.Open(context.Background(), []string{"run/holdout.npy"}, data.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range held.Points.X {
				if math.Abs(float64(v-all.X[i])) > 1e-4 {
					t.Errorf("coordinate %d held out is %v, want %v", i, v, all.X[i])
				}
			}
		})
	}
}

// A header of numbers is said to be taken for one.
func TestTrainCountingHeader(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "a.csv", 60, "0,1,2,3,4", "01234", 0)
	if stderr := trainTable(t, "--set", "data.path=a.csv"); !strings.Contains(stderr, "is taken for column names") {
		t.Errorf("the log says %q", stderr)
	}
	if stderr := trainTable(t, "--set", "data.path=a.csv", "--set", "data.header=yes"); strings.Contains(stderr, "is taken for column names") {
		t.Errorf("the log says %q", stderr)
	}
}
