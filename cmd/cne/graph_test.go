package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data/neighbors"
	"cne/internal/app/rundir"
	"cne/internal/rng"
)

// A run on approximate neighbours and its evaluation tell how good they are, also when they
// come from the cache; exact ones are then searched anew.
func TestApproximateGraph(t *testing.T) {
	folderOf(t, 700, 12)
	train := func(search string) (stdout, stderr string, m rundir.Metrics) {
		t.Helper()
		stdout, stderr = mustRun(t, append(short("--epochs", "2", "--force"), set("graph.search="+search, "quality.k=5", "output.plot=false")...)...)
		return stdout, stderr, rundir.ReadMetrics("run")
	}
	for range 2 { // the second time from the cache
		stdout, stderr, m := train("approximate")
		if m.Recall == nil || !(m.Recall.Share > 0.9 && m.Recall.Share <= 1) {
			t.Fatalf("metrics.json says %+v", m.Recall)
		}
		if !strings.Contains(stdout, "approximate neighbours: "+m.Recall.String()) {
			t.Errorf("the run does not tell how good the graph is: %s", stdout)
		}
		if cached := strings.Contains(stderr, "come from the cache"); !cached && !strings.Contains(stderr, "approximate, on the CPU") {
			t.Errorf("the search is not announced: %s", stderr)
		}
	}
	if e := evaluated(t, "run"); e.Recall == nil || !(e.Recall.Share > 0.9) {
		t.Errorf("the evaluation says %+v", e.Recall)
	}
	if stdout, _ := mustRun(t, "evaluate", "run"); !strings.Contains(stdout, "approximate neighbours: 0.9") && !strings.Contains(stdout, "approximate neighbours: 1.0") {
		t.Errorf("evaluate prints %s", stdout)
	}
	stdout, stderr, m := train("exact")
	if m.Recall != nil || strings.Contains(stdout, "approximate") || strings.Contains(stderr, "come from the cache") {
		t.Errorf("after an exact search there are %+v, %s%s", m.Recall, stdout, stderr)
	}
}

// The weights of a graph of one's own take no part, which is said of unequal ones, unless
// edges are to be drawn by them.
func TestGraphWeights(t *testing.T) {
	folderOf(t, 60, 5)
	train := func(dir string, settings ...string) (embedding, stderr string) {
		t.Helper()
		_, stderr = mustRun(t, append(short("--epochs", "3", "-o", dir), set(append(settings, "output.plot=false")...)...)...)
		return readText(t, dir+"/embedding.npy"), stderr
	}
	want, _ := train("run")
	g, err := neighbors.ReadFile(t.Context(), "run/graph.npz")
	must(t, err)
	g.Weights = make([]float32, g.Edges())
	const warning = "warning: graph.file has edges of different weights, which count as equal"
	for name, weight := range map[string]func(e int) float32{
		"ones":    func(int) float32 { return 1 },
		"halves":  func(int) float32 { return 0.5 },
		"unequal": func(e int) float32 { return float32(e%1001+1) / 1001 },
	} {
		for e := range g.Weights {
			g.Weights[e] = weight(e)
		}
		must(t, g.WriteNPZ(name+".npz"))
		unequal := name == "unequal"
		got, stderr := train("own-"+name, "graph.file="+name+".npz")
		if got != want || strings.Contains(stderr, warning) != unequal {
			t.Errorf("%s: the embedding is another: %t, %q", name, got != want, stderr)
		}
		got, stderr = train("drawn-"+name, "graph.file="+name+".npz", "graph.weighted_sampling=true")
		if (got != want) != unequal || strings.Contains(stderr, "equal weights") == unequal {
			t.Errorf("%s: drawn by weight, the embedding is another: %t, %q", name, got != want, stderr)
		}
		if _, stderr := mustRun(t, "evaluate", "run/embedding.npy", "--graph", name+".npz"); strings.Contains(stderr, warning) != unequal {
			t.Errorf("%s: cne evaluate says %q", name, stderr)
		}
	}
	umap, _ := train("umap", "graph.weighted_sampling=true")
	if again, _ := train("again", "graph.weighted_sampling=true", "graph.file=umap/graph.npz"); umap == want || umap != again {
		t.Errorf("drawn by UMAP's weights: as without them: %t, or otherwise than by those of the run's graph.npz", umap == want)
	}
	dense, _ := train("dense", "graph.density=2")
	again, stderr := train("dense-again", "graph.weighted_sampling=true", "graph.file=dense/graph.npz", "graph.density=1")
	if dense == want || dense != again || !strings.Contains(stderr, "graph.density has no effect on graph.file") {
		t.Errorf("with the points' density: as without: %t, or otherwise than by the weights of the run's graph.npz: %q", dense == want, stderr)
	}
}

// writeDirections makes a table of points in four classes, each around a direction of
// its own, of lengths that differ by orders of magnitude, and names of the classes.
func writeDirections(t *testing.T, path string, n int, extra string) {
	t.Helper()
	stream := rng.New(7, rng.Sample)
	var b strings.Builder
	b.WriteString("a,b,c,d,e,kind\n")
	for i := range n {
		class, length := i%4, math.Exp(8*stream.Float64()-4)
		for j := range 5 {
			v := 0.6 * stream.Float64()
			if j == class {
				v++
			}
			fmt.Fprintf(&b, "%.5g,", length*v)
		}
		fmt.Fprintf(&b, "k%d\n", class)
	}
	writeTestFile(t, path, b.String()+extra)
}

// By cosine and correlation, points of one direction are neighbours whatever their
// length; the saved model, the hold-out and cne evaluate normalise new points in the same
// way.
func TestGraphMetric(t *testing.T) {
	t.Chdir(t.TempDir())
	writeDirections(t, "points.csv", 300, "")
	writeDirections(t, "new.csv", 40, "0,0,0,0,0,k0\n")
	for _, metric := range []string{"euclidean", "cosine", "correlation"} {
		for kind, flags := range map[string][]string{"table": set("model.keep_data=true"), "mlp": set("model.kind=mlp", "model.hidden=[20]")} {
			run := metric + "-" + kind
			mustRun(t, short(slices.Concat(flags, set("graph.metric="+metric, "graph.k=10", "data.holdout=0.1", "output.plot=false", "train.batch_size=1024"), []string{"--epochs", "20", "-o", run})...)...)
			if a := *rundir.ReadMetrics(run).Holdout.Accuracy; metric != "euclidean" && kind == "table" && a < 0.95 {
				t.Errorf("the accuracy of held-out points is %.3f with %s", a, run)
			}
			mustRun(t, "evaluate", run, "-o", run+".json")
			project := []string{"project", "--model", run, "new.csv", "--drop", "kind", "-o", run + ".csv"}
			if metric == "euclidean" {
				mustRun(t, project...)
				continue
			}
			mustFail(t, exitFailure, "new.csv:42: ", project...)
			mustRun(t, append(project, "--skip-bad")...)
			_, lines := linesOf(t, run+".csv")
			for i, line := range lines {
				if isNaN := strings.Contains(line, "NaN"); isNaN != (i == 40) {
					t.Errorf("%s: the position of point %d is %s", run, i, line)
				}
			}
		}
	}
}
