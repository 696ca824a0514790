package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/configs"
	"cne/data"
	"cne/internal/app/rundir"
	"cne/train/quality"
)

// shortSpectrum is the command line of a spectrum that takes a moment.
func shortSpectrum(more ...string) []string {
	return append([]string{"spectrum", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--epochs", "12", "-o", "run"}, more...)
}

// stopsOf reads the figures of a spectrum's embeddings.
func stopsOf(t *testing.T) (figures rundir.SpectrumMetrics) {
	t.Helper()
	must(t, json.Unmarshal([]byte(readText(t, "run/spectrum.json")), &figures))
	return figures
}

func TestSpectrumWritesAllItPromises(t *testing.T) {
	for name, tt := range map[string]struct {
		flags, folders []string
		axis           string
	}{
		"s":       {[]string{"--s", "1, -0.5,0"}, []string{"s=-0.5", "s=0", "s=1"}, "s"},
		"default": {nil, []string{"s=-0.5", "s=0", "s=0.5", "s=1", "s=1.5"}, "s"},
		"zbar":    {[]string{"--zbar", "1e3,100"}, []string{"zbar=100", "zbar=1000"}, "zbar"},
		"m":       {[]string{"--m", "full,2", "--set", "loss.name=nc"}, []string{"m=2", "m=full"}, "m"},
		"grid":    {[]string{"--s", "0,1", "--pull", "0.2,0"}, []string{"s=0,pull=0", "s=1,pull=0", "s=0,pull=0.2", "s=1,pull=0.2"}, "s"},
		"infonce": {[]string{"--s", "0,1", "--set", "loss.name=infonce"}, []string{"s=0", "s=1"}, "s"},
		"network": {[]string{"--s", "0,1", "--set", "model.kind=mlp", "--set", "model.hidden=[8]"}, []string{"s=0", "s=1"}, "s"},
		"one":     {[]string{"--s", "0.5"}, []string{"s=0.5"}, "s"},
		"alone":   {[]string{"--s", "0,1", "--set", "train.phases=[{epochs: 12}]"}, []string{"s=0", "s=1"}, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			folderOf(t, 90, 6)
			stdout, _ := mustRun(t, shortSpectrum(tt.flags...)...)
			if found, _ := filepath.Glob("run/*=*"); len(found) != len(tt.folders) {
				t.Fatalf("folders %v, want %v", found, tt.folders)
			}
			for _, file := range []string{rundir.SpectrumStrip, rundir.SpectrumCurves, rundir.SpectrumExplorer, "config.yaml"} {
				if readText(t, "run/"+file) == "" {
					t.Errorf("%s is empty", file)
				}
			}
			figures := stopsOf(t)
			if figures.Axis != tt.axis || len(figures.Stops) != len(tt.folders) || figures.N != 90 {
				t.Fatalf("spectrum.json is of the axis %s, %d embeddings and %d points", figures.Axis, len(figures.Stops), figures.N)
			}
			rows, err := csv.NewReader(strings.NewReader(readText(t, "run/spectrum.csv"))).ReadAll()
			if err != nil || len(rows) != len(tt.folders)+1 {
				t.Fatalf("spectrum.csv has %d rows (%v), want a heading and %d", len(rows), err, len(tt.folders))
			}
			for i, m := range figures.Stops {
				if m.Folder != tt.folders[i] || rows[i+1][0] != m.Value {
					t.Errorf("embedding %d is %s in spectrum.json and %s in the table, want %s", i, m.Folder, rows[i+1][0], tt.folders[i])
				}
				if !strings.Contains(stdout, m.Value) {
					t.Errorf("the table on stdout lacks %s:\n%s", m.Value, stdout)
				}
				// The figures are correct for the embedding in the folder.
				e := readPositions(t, filepath.Join("run", m.Folder, "embedding.npy"))
				z, err := quality.PartitionFunction(t.Context(), e.X, e.D)
				must(t, err)
				if m.PartitionFunction == nil || math.Abs(z/(*m.PartitionFunction)-1) > 1e-6 {
					t.Errorf("%s: partition function %v in spectrum.json, %v of the embedding", m.Folder, m.PartitionFunction, z)
				}
				if (m.Scale == nil) != (i == 0) {
					t.Errorf("%s: scale to the previous embedding %v", m.Folder, m.Scale)
				}
			}
		})
	}
}

// An embedding of a spectrum equals the embedding of a run with the configuration next to
// it, except for its orientation, which is aligned to its neighbour.
func TestSpectrumIsMadeOfRuns(t *testing.T) {
	folderOf(t, 90, 6)
	mustRun(t, shortSpectrum("--s", "0,1,2")...)
	var previous *data.Matrix
	for i, folder := range []string{"s=0", "s=1", "s=2"} {
		mustRun(t, "train", "--config", filepath.Join("run", folder, "config.yaml"), "-o", folder)
		want := readPositions(t, filepath.Join(folder, "embedding.npy"))
		got := readPositions(t, filepath.Join("run", folder, "embedding.npy"))
		if i == 0 {
			if !slices.Equal(got.X, want.X) {
				t.Errorf("%s: other bits than those of its run", folder)
			}
		} else {
			scale, disparity, err := quality.Align(want, got, false)
			if err != nil || math.Abs(scale-1) > 1e-5 || disparity > 1e-9 {
				t.Errorf("%s: its run is of scale %v and disparity %v to it (%v)", folder, scale, disparity, err)
			}
			again := &data.Matrix{N: got.N, D: got.D, X: slices.Clone(got.X)}
			_, _, err = quality.Align(again, previous, false)
			must(t, err)
			for k, v := range again.X {
				if math.Abs(float64(v-got.X[k])) > 1e-3 {
					t.Fatalf("%s is not aligned to the embedding before it: coordinate %d moves from %v to %v", folder, k, got.X[k], v)
				}
			}
		}
		previous = got
	}
}

// The embeddings of a grid are those of their runs, too; the folder knows both axes.
func TestGridIsMadeOfRuns(t *testing.T) {
	folderOf(t, 90, 6)
	mustRun(t, shortSpectrum("--s", "0,1", "--pull", "0,0.3")...)
	for _, folder := range []string{"s=0,pull=0.3", "s=1,pull=0.3"} {
		mustRun(t, "train", "--config", filepath.Join("run", folder, "config.yaml"), "-o", folder)
		scale, disparity, err := quality.Align(readPositions(t, filepath.Join(folder, "embedding.npy")), readPositions(t, filepath.Join("run", folder, "embedding.npy")), false)
		if err != nil || math.Abs(scale-1) > 1e-5 || disparity > 1e-9 {
			t.Errorf("%s: its run is of scale %v and disparity %v to it (%v)", folder, scale, disparity, err)
		}
	}
	mustFail(t, 1, `was begun with "cne spectrum --s 0,1 --pull 0,0.3", not "cne spectrum --s 0,1 --pull 0"`,
		"spectrum", "--resume", "run", "--s", "0,1", "--pull", "0")
	mustFail(t, 2, `--pull: got "-1", want a number`, "spectrum", "points.csv", "--pull", "0,-1")
	mustFail(t, 1, "model.kind mlp", shortSpectrum("--pull", "0,1", "--set", "model.kind=mlp", "--force")...)
	if page := readText(t, "run/explorer.html"); !strings.Contains(page, `"rows":2`) {
		t.Error("the page has one row")
	}
}

// With more attraction the embedding shrinks: the partition function rises with
// Z̄ (Section 5 and Figure 1i of the paper; Corollary 2: Neg-t-SNE's similarities
// are normalised to Z̄).
func TestPaperPartitionFunctionRisesWithZBar(t *testing.T) {
	if testing.Short() {
		t.Skip("embeds real images")
	}
	t.Chdir(t.TempDir())
	mustRun(t, "spectrum", "--zbar", "1e5,1e6,1e7,1e8,1e9", "--epochs", "12", "--set", "quality.spearman_sample=0", "-o", "run")
	figures := stopsOf(t)
	for i, m := range figures.Stops[1:] {
		if before := *figures.Stops[i].PartitionFunction; *m.PartitionFunction < 1.5*before {
			t.Errorf("the partition function is %.3g at Z̄ = %s and %.3g at %s", before, figures.Stops[i].Value, *m.PartitionFunction, m.Value)
		}
	}
}

// Each embedding of thinned-out images knows their rows.
func TestSpectrumOfSomeImages(t *testing.T) {
	t.Chdir(t.TempDir())
	writeIDX(t, 120)
	mustRun(t, append(set("data.labels=labels.txt", "data.imbalance=linear", "graph.k=5"), "spectrum", "images.idx", "--epochs", "3", "--s", "0", "-o", "run")...)
	sameFile(t, "run/s=0/rows.csv", "run/rows.csv")
	plot := []string{"plot", "--html", "run/s=0", "--log-format", "json"}
	if _, stderr := mustRun(t, plot...); stderr != "" || readPage(t, "run/s=0/embedding.html").Images == nil {
		t.Errorf("the page has no images: %q", stderr)
	}
	// Warnings about images are logged in the chosen format.
	writeIDX(t, 30)
	if _, stderr := mustRun(t, plot...); !strings.HasPrefix(stderr, `{"time":`) {
		t.Errorf("stderr %q", stderr)
	}
}

// Cosines are of the angles at the origin, which an alignment must not move.
func TestSpectrumKeepsAngles(t *testing.T) {
	folderOf(t, 90, 6)
	mustRun(t, shortSpectrum("--s", "0,1", "--set", "loss.metric=cosine")...)
	mustRun(t, "train", "--config", "run/s=1/config.yaml", "-o", "single")
	got, want := readPositions(t, "run/s=1/embedding.npy"), readPositions(t, "single/embedding.npy")
	cosine := func(m *data.Matrix, i int) float64 {
		x, y := m.Row(0), m.Row(i)
		dot := float64(x[0])*float64(y[0]) + float64(x[1])*float64(y[1])
		return dot / math.Hypot(float64(x[0]), float64(x[1])) / math.Hypot(float64(y[0]), float64(y[1]))
	}
	for i := 1; i < got.N; i++ {
		if a, b := cosine(got, i), cosine(want, i); math.Abs(a-b) > 1e-5 {
			t.Fatalf("the cosine of points 0 and %d is %v, but %v in the run", i, a, b)
		}
	}
}

// With Z̄ as the axis, it stands in the table once.
func TestSpectrumTableOfZBar(t *testing.T) {
	folderOf(t, 60, 3)
	for flag, want := range map[string]string{"--zbar": "zbar,partition_function,", "--s": "s,z_bar,partition_function,"} {
		stdout, _ := mustRun(t, shortSpectrum(flag, "2", "--force")...)
		if table := readText(t, "run/spectrum.csv"); !strings.HasPrefix(table, want) {
			t.Errorf("%s: spectrum.csv begins with %.60q, want %q", flag, table, want)
		}
		if !strings.Contains(stdout, "1 embedding of 60 points in ") {
			t.Errorf("%s: it prints %q", flag, stdout)
		}
	}
}

// However many cores there are, the bits are the same.
func TestSpectrumOnManyCores(t *testing.T) {
	folderOf(t, 60, 3)
	var want []float32
	for i, cores := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		mustRun(t, shortSpectrum("--s", "0,0.5,1", "--force")...)
		got := readPositions(t, "run/s=1/embedding.npy").X
		if i > 0 && !slices.Equal(got, want) {
			t.Errorf("%d cores give other bits than one", cores)
		}
		want = got
	}
}

// A spectrum that is interrupted anywhere and resumed gives the files of an uninterrupted
// one; so does a spectrum that has lost all but its checkpoints.
func TestSpectrumGoesOn(t *testing.T) {
	folderOf(t, 60, 3)
	flags := func(dir string) []string { // long enough to be interrupted
		return shortSpectrum("--s", "0,1,2", "--epochs", "200", "-o", dir, "--set", "checkpoint.minutes=1e-9")
	}
	mustRun(t, flags("whole")...)
	compare := func(t *testing.T) {
		t.Helper()
		for _, file := range []string{rundir.SpectrumTable, "s=0/embedding.npy", "s=1/embedding.npy", "s=2/embedding.csv", "s=2/embedding.npy"} {
			sameFile(t, "run/"+file, "whole/"+file)
		}
	}
	for _, file := range []string{"checkpoint.safetensors", "s=0/checkpoint.safetensors", "s=2/checkpoint.safetensors"} {
		t.Run(file, func(t *testing.T) {
			must(t, os.RemoveAll("run"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for ctx.Err() == nil {
					if exists("run/" + file) {
						cancel()
					}
					time.Sleep(time.Millisecond)
				}
			}()
			code, stdout, stderr := runCne(ctx, flags("run")...)
			if code != exitFailure || stdout != "" || !strings.Contains(stderr, "cne: interrupted ") || !strings.Contains(stderr, `; "cne spectrum --resume run" continues`) {
				t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			mustRun(t, "spectrum", "--resume", "run")
			compare(t)
		})
	}
	t.Run("only checkpoints", func(t *testing.T) {
		for _, file := range []string{rundir.SpectrumTable, rundir.SpectrumFigures, "s=0/embedding.npy", "s=1/metrics.json", "s=2/embedding.csv"} {
			must(t, os.Remove(filepath.Join("run", file)))
		}
		mustRun(t, "spectrum", "--resume", "run", "--s", "0,1,2")
		compare(t)
	})
}

func TestSpectrumNamesItsFolder(t *testing.T) {
	for path, want := range map[string]string{"": "runs/spectrum-mnist10k", "data/points.npy": "runs/spectrum-points"} {
		var from configs.Sources
		if path != "" {
			from.Settings = []configs.Setting{{Source: "--set data.path", Key: "data.path", Value: path}}
		}
		c, _, err := configs.Spectrum.Load(&from)
		must(t, err)
		if c.Output.Dir != want {
			t.Errorf("the folder for %q is %s, want %s", path, c.Output.Dir, want)
		}
	}
}
