package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rundir"
)

// An embedding may have any number of dimensions, fewer or more than the
// points: it is trained, measured, drawn and used for new points.
func TestDimensions(t *testing.T) {
	const n, held, width = 90, 10, 6
	for _, tc := range []struct {
		dim    int
		header string   // of embedding.csv
		text   []string // in the picture, beside the length of the scale bar
	}{
		{1, "x,label", []string{"one coordinate; height: density of points"}},
		{2, "x,y,label", nil},
		{3, "x,y,z,label", []string{"first 2 of 3 principal axes of the embedding"}},
		{10, "x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,label", []string{"first 2 of 10 principal axes of the embedding"}},
		{50, "", []string{"first 2 of 50 principal axes of the embedding"}},
	} {
		for _, kind := range []string{"table", "mlp"} {
			t.Run(fmt.Sprintf("%s, %d", kind, tc.dim), func(t *testing.T) {
				t.Chdir(t.TempDir())
				writePoints(t, "points.csv", n+held, width)
				run := func(args ...string) (stdout string) {
					t.Helper()
					code, stdout, stderr := runCne(t.Context(), args...)
					if code != 0 {
						t.Fatalf("cne %v: exit code %d: %s", args, code, stderr)
					}
					return stdout
				}
				flags := short("--epochs", "2", "--set", fmt.Sprintf("model.dim=%d", tc.dim), "--set", "model.kind="+kind,
					"--set", fmt.Sprintf("data.holdout=%g", float64(held)/(n+held)))
				if kind == "table" {
					flags = append(flags, "--set", "model.keep_data=true")
				} else {
					flags = append(flags, "--set", "model.hidden=[8]")
				}
				run(flags...)

				positions := func(path string, rows int) {
					t.Helper()
					f, err := os.Open(path)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					set, err := data.ReadNPY(f)
					if err != nil || set.Points.N != rows || set.Points.D != tc.dim {
						t.Fatalf("%s: %v (%v), want %d points of %d values", path, set, err, rows, tc.dim)
					}
					// Points can leave the space in which a table starts, and
					// none is lost.
					for j := range tc.dim {
						lowest, highest := math.Inf(1), math.Inf(-1)
						for i := range rows {
							v := float64(set.Points.Row(i)[j])
							lowest, highest = min(lowest, v), max(highest, v)
						}
						if !(highest > lowest) || math.IsInf(highest-lowest, 0) {
							t.Errorf("%s: coordinate %d lies in [%g, %g]", path, j, lowest, highest)
						}
					}
				}
				positions("run/embedding.npy", n)
				positions("run/holdout.npy", held)
				table, err := os.ReadFile("run/embedding.csv")
				if header, _, _ := strings.Cut(string(table), "\n"); err != nil || tc.header != "" && header != tc.header || strings.Count(header, ",") != tc.dim {
					t.Errorf("embedding.csv begins with %q (%v), want %q", header, err, tc.header)
				}

				text, err := os.ReadFile("run/metrics.json")
				if err != nil {
					t.Fatal(err)
				}
				var m rundir.Metrics
				if err := json.Unmarshal(text, &m); err != nil {
					t.Fatal(err)
				}
				if m.KNNRecall == nil || m.Spearman == nil || m.PartitionFunction == nil || m.KL == nil || m.Accuracy == nil ||
					m.Holdout == nil || m.Holdout.KNNRecall == nil || m.Holdout.Accuracy == nil {
					t.Errorf("metrics.json lacks figures: %s", text)
				} else if z := *m.PartitionFunction; !(z > 0 && z < n*(n-1)) || !(*m.KL > -1 && *m.KL < 100) {
					t.Errorf("partition function %g and divergence %g", z, *m.KL)
				}

				picture, err := os.ReadFile("run/embedding.png")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
					t.Error(err)
				}
				run("project", "--model", "run", "points.csv", "--label-column", "kind", "-o", "new.npy", "--plot", "new.svg")
				positions("new.npy", n+held)
				run("plot", "run/embedding.csv", "-o", "run.svg")
				for path, points := range map[string]int{"new.svg": n + held, "run.svg": n} {
					svg, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if got := strings.Count(string(svg), "h0"); got != points {
						t.Errorf("%s has %d points, want %d", path, got, points)
					}
					var notes []string
					for _, s := range pictureTexts(string(svg)) {
						// The variance along the axes is the embedding's own.
						if s, _, _ = strings.Cut(s, ", "); !slices.Contains([]string{"ant", "bee", "cat"}, s) {
							notes = append(notes, s)
						}
					}
					if !slices.Equal(notes, tc.text) {
						t.Errorf("%s says %q, want %q", path, notes, tc.text)
					}
				}
			})
		}
	}
}
