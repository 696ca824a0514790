package main

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/rng"
	"cne/train/quality"
)

// evaluated runs cne evaluate --json and returns what it prints.
func evaluated(t *testing.T, args ...string) *report.Evaluation {
	t.Helper()
	stdout, _ := mustRun(t, append([]string{"evaluate", "--json", "-q"}, args...)...)
	var e report.Evaluation
	must(t, json.Unmarshal([]byte(stdout), &e))
	return &e
}

// The command's figures of a run of NC-t-SNE equal the packages' figures of its
// embedding, points and graph, and, bit for bit, the figures that the run measured
// itself.
func TestEvaluateARun(t *testing.T) {
	folderOf(t, 200, 6)
	mustRun(t, short(set("loss.name=nc", "loss.negatives=7", "quality.k=8", "graph.pca=4", "device.name=cpu")...)...)
	before := listFiles(t, "run")
	e := evaluated(t, "run")
	if after := listFiles(t, "run"); !slices.Equal(before, after) {
		t.Errorf("the run folder had %v and has %v", before, after)
	}
	if e.Data != "points" || e.N != 200 || e.K != 8 || e.AccuracyK != 10 || len(e.Embeddings) != 1 {
		t.Errorf("%+v", e)
	}
	f := e.Embeddings[0]
	run := readMetrics(t, "run/metrics.json")
	for key, got := range map[string]*float64{
		"knn_recall": f.KNNRecall, "spearman": f.Spearman, "partition_function": f.PartitionFunction, "kl": f.KL, "accuracy": f.Accuracy,
	} {
		if got == nil || *got != run[key] {
			t.Errorf("%s is %v, but %v in metrics.json", key, got, run[key])
		}
	}
	if edges := run["edges"]; float64(e.Edges) != edges {
		t.Errorf("%d edges, but %v in metrics.json", e.Edges, edges)
	}

	input, err := file.Read(t.Context(), []string{"points.csv"}, file.Options{LabelColumn: "kind"})
	must(t, err)
	_, err = input.Scale(t.Context(), data.ScaleUnit)
	must(t, err)
	components, err := pca.Fit(t.Context(), input.Points, 4)
	must(t, err)
	points, err := components.Transform(t.Context(), input.Points)
	must(t, err)
	embedding := readPositions(t, "run/embedding.npy")
	graph, err := neighbors.ReadFile(t.Context(), "run/graph.npz")
	must(t, err)
	want, err := quality.Measure(t.Context(), points, embedding, quality.Options{K: 8, Graph: graph})
	must(t, err)
	if math.Abs(*f.Trustworthiness-*want.Trustworthiness) > 1e-12 || math.Abs(*f.KL-*want.KL) > 1e-12**want.KL {
		t.Errorf("trustworthiness %v, want %v; KL %v, want %v", *f.Trustworthiness, *want.Trustworthiness, *f.KL, *want.KL)
	}

	// The same without the folder: what it says is said by flags.
	g := evaluated(t, append(set("data.label_column=kind", "graph.k=5", "quality.k=8", "graph.pca=4", "device.name=cpu"), "run/embedding.npy", "--data", "points.csv")...).Embeddings[0]
	if *g.KNNRecall != *f.KNNRecall || *g.Trustworthiness != *f.Trustworthiness || *g.Accuracy != *f.Accuracy {
		t.Errorf("from flags %+v, from the folder %+v", g, f)
	}
	g = evaluated(t, "run/embedding.npy", "--config", "run/config.yaml").Embeddings[0]
	if *g.KL != *f.KL || *g.Spearman != *f.Spearman {
		t.Errorf("from the configuration %+v, from the folder %+v", g, f)
	}
	// A damaged cache is as good as none, and stays.
	writeTestFile(t, "run/cache.safetensors", "damaged")
	g = evaluated(t, "run").Embeddings[0]
	if *g.KNNRecall != *f.KNNRecall || readText(t, "run/cache.safetensors") != "damaged" {
		t.Errorf("without the cache %+v", g)
	}
}

// writeEmbedding writes n planar points drawn with a seed.
func writeEmbedding(t *testing.T, path string, n int, seed uint64, change func(m *data.Matrix)) {
	t.Helper()
	m := data.NewMatrix(n, 2)
	s := rng.New(seed, rng.Init)
	for i := range m.X {
		m.X[i] = float32(3 * s.Normal())
	}
	if change != nil {
		change(m)
	}
	makeArray(t, path, m)
}

// Motions, reflections and the order of the columns leave every figure; an
// embedding is entirely like itself.
func TestEvaluateInvariances(t *testing.T) {
	folderOf(t, 150, 5)
	writeEmbedding(t, "a.npy", 150, 1, nil)
	writeEmbedding(t, "b.npy", 150, 1, func(m *data.Matrix) {
		sin, cos := math.Sincos(1)
		for i := range m.N {
			x, y := float64(m.Row(i)[0]), float64(m.Row(i)[1])
			m.Row(i)[0], m.Row(i)[1] = float32(5+cos*x-sin*y), float32(-sin*x-cos*y)
		}
	})
	writeEmbedding(t, "other.npy", 150, 2, nil)
	e := evaluated(t, "a.npy", "b.npy", "other.npy", "--data", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--against", "a.npy")
	valuesOf := func(f report.EvaluatedFigures) map[string]float64 {
		values := map[string]float64{}
		for _, of := range quality.Table() {
			for prefix, figures := range map[string]*quality.Figures{"": &f.Figures, "against, ": f.Against} {
				if v, _ := of.Of(figures); v != nil {
					values[prefix+of.Key] = *v
				} else if prefix == "" {
					t.Errorf("%s is missing", of.Key)
				}
			}
		}
		return values
	}
	want, moved, other := valuesOf(e.Embeddings[0]), valuesOf(e.Embeddings[1]), valuesOf(e.Embeddings[2])
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if math.Abs(moved[name]-want[name]) > 1e-5*math.Abs(want[name]) {
			t.Errorf("%s: %v moved, want %v", name, moved[name], want[name])
		}
		if other[name] == want[name] {
			t.Errorf("%s: %v of two embeddings", name, other[name])
		}
	}
	if want["against, knn_recall"] != 1 || want["against, spearman"] != 1 {
		t.Errorf("an embedding is like itself by %v and %v", want["against, knn_recall"], want["against, spearman"])
	}
}

// Figures that need missing data, labels or more points are left out; the rest is
// measured.
func TestEvaluateWhatThereIs(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t) // of 24 points
	writePoints(t, "points.csv", 24, 4)
	writePoints(t, "plainpoints.csv", 24, 4)
	input, err := file.Read(t.Context(), []string{"points.csv"}, file.Options{LabelColumn: "kind"})
	must(t, err)
	nb, err := neighbors.KNN(t.Context(), input.Points, 3, neighbors.Options{})
	must(t, err)
	graph, err := neighbors.FromNeighbors(nb)
	must(t, err)
	must(t, graph.WriteNPZ("graph.npz"))
	keys := func(needs quality.Needs) string {
		var all []string
		for _, f := range quality.Table() {
			if f.Needs == needs || f.Needs&needs != 0 {
				all = append(all, f.Key)
			}
		}
		return strings.Join(all, " ")
	}
	ofData, ofPartition, ofGraph, ofLabels := keys(quality.NeedsPoints|quality.NeedsNeighbors), keys(quality.NeedsNone), keys(quality.NeedsGraph), keys(quality.NeedsLabels)
	const ofOther = "against"
	for args, want := range map[string]string{
		"a.npy --against e.v2.csv":                                 ofPartition + " " + ofOther,
		"e.v2.csv --against a.npy":                                 ofPartition + " " + ofLabels + " " + ofOther,
		"a.npy --against a.npy --labels labels.txt":                ofPartition + " " + ofLabels + " " + ofOther,
		"bare --graph graph.npz":                                   ofPartition + " " + ofGraph,
		"run --graph graph.npz":                                    ofPartition + " " + ofGraph + " " + ofLabels, // the table in the folder
		"plain.csv --data points.csv --set data.label_column=kind": ofData + " " + ofPartition + " " + ofGraph + " " + ofLabels,
		"a.npy --data plainpoints.csv --set data.drop=[kind]":      ofData + " " + ofPartition + " " + ofGraph,
		"a.npy --data plainpoints.csv --set data.drop=[kind] --labels half1.txt --labels half2.txt --graph graph.npz": ofData + " " + ofPartition + " " + ofGraph + " " + ofLabels,
		"a.npy --data points.csv --set data.label_column=kind --set quality.k=12":                                     strings.Replace(ofData, "trustworthiness", "", 1) + " " + ofPartition + " " + ofGraph + " " + ofLabels,
	} {
		stdout, _ := mustRun(t, slices.Concat([]string{"evaluate", "--json", "-q"}, set("quality.k=5", "graph.k=3"), strings.Fields(args))...)
		var e struct{ Embeddings []map[string]any }
		must(t, json.Unmarshal([]byte(stdout), &e))
		got := e.Embeddings[0]
		delete(got, "path")
		delete(got, "dim")
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(strings.FieldsSeq(want))) {
			t.Errorf("%q: figures %v, want %v", args, names, want)
		}
	}
}

func TestEvaluatePrintsATable(t *testing.T) {
	folderOf(t, 60, 4)
	mustRun(t, short()...)
	mustRun(t, short("--set", "loss.name=nc", "-o", "nc")...)
	writeEmbedding(t, "mine.npy", 60, 1, nil)
	stdout, _ := mustRun(t, "evaluate", "run", "nc", "mine.npy", "--against", "mine.npy", "-o", "report.json")
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "  ")
		names = append(names, name)
	}
	want := []string{"", "coordinates", "kNN recall (k = 15) ↑", "trustworthiness (k = 15) ↑", "Spearman correlation ↑", "density correlation (k = 15) ↑", "kNN accuracy (k = 10) ↑", "partition function",
		"KL divergence ↓"}
	var e report.Evaluation
	must(t, json.Unmarshal([]byte(readText(t, "report.json")), &e))
	want = append(want, "against mine.npy: kNN recall (k = 15)", "against mine.npy: Spearman", "against mine.npy: density correlation (k = 15)")
	if !slices.Equal(names[:len(names)-1], want) {
		t.Errorf("rows %q, want %q", names[:len(names)-1], want)
	}
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"run", "nc", "mine.npy"}) {
		t.Errorf("columns %q", got)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "60 points, ") || !strings.HasSuffix(last, " directed edges") {
		t.Errorf("the last line is %q", last)
	}
	if got := strings.Fields(lines[len(lines)-2]); got[len(got)-1] != "1.000" {
		t.Errorf("an embedding against itself: %q", lines[len(lines)-2])
	}
	if len(e.Embeddings) != 3 || e.Embeddings[2].Path != "mine.npy" {
		t.Errorf("report.json: %+v", e)
	}
	// Without data there is no graph.
	if stdout, _ := mustRun(t, "evaluate", "mine.npy", "--against", "run"); !strings.HasSuffix(stdout, "\n60 points\n") {
		t.Errorf("without data:\n%s", stdout)
	}
}

// Where the seed decides which points there are, another one is refused: figures of other
// points would look as good as right. Points that were held out are not among them.
func TestEvaluateKeepsToThePoints(t *testing.T) {
	folderOf(t, 60, 4)
	for name, setting := range map[string]string{"all": "data.holdout=null", "imbalanced": "data.imbalance=linear", "held": "data.holdout=0.2"} {
		for _, seed := range []string{"0", "1"} {
			mustRun(t, short("--set", setting, "--set", "output.plot=false", "--seed", seed, "-o", name+seed)...)
		}
		e, run := evaluated(t, name+"0", "--seed", "0"), readMetrics(t, name+"0/metrics.json")
		if f := e.Embeddings[0]; float64(e.N) != run["n"] || *f.KNNRecall != run["knn_recall"] || *f.KL != run["kl"] {
			t.Errorf("%s: %d points, %+v; metrics.json has %v", name, e.N, f, run)
		}
		for _, args := range [][]string{{name + "0", name + "1"}, {name + "0", "--seed", "1"}} {
			if name == "all" {
				mustRun(t, append([]string{"evaluate", "-q"}, args...)...)
			} else {
				mustFail(t, 1, "seed", append([]string{"evaluate", "-q"}, args...)...)
			}
		}
	}
	mustFail(t, 1, "embedding.npy: got 48 points, want 30 as in the data points.csv without the held-out points", "evaluate", "held0", "--set", "data.holdout=0.5")
}

// With many points, a run, cne evaluate and cne spectrum report the same estimates with
// standard errors; with quality.sample=0 there are no estimates.
func TestMoreThanExactPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("measures more than 100 000 points")
	}
	folderOf(t, quality.ExactPoints+1, 3)
	flags := append(set("train.batch_size=4096", "output.csv=false", "output.metrics_every=1", "quality.spearman_sample=100", "quality.sample=500"), "--epochs", "1")
	stdout, _ := mustRun(t, short(flags...)...)
	run := readMetrics(t, "run/metrics.json")
	rows := map[string]string{"knn_recall": "kNN recall", "spearman": "Spearman", "partition_function": "partition function", "kl": "KL divergence", "accuracy": "kNN accuracy"}
	for key, row := range rows {
		if v, ok := run[key+"_error"].(float64); !ok || !(v > 0) {
			t.Errorf("%s_error is %v", key, run[key+"_error"])
		}
		if !regexp.MustCompile(`(?m)^` + row + `.* ± `).MatchString(stdout) {
			t.Errorf("%s is printed without its error", key)
		}
	}
	if record := readMetrics(t, "run/metrics.jsonl"); record["partition_function"] != run["partition_function"] || record["kl"] != run["kl"] {
		t.Errorf("metrics.jsonl has %v, metrics.json %v", record, run)
	}

	f := evaluated(t, "run", "--against", "run").Embeddings[0]
	for key, got := range map[string]*float64{
		"knn_recall": f.KNNRecall, "partition_function": f.PartitionFunction, "kl": f.KL, "accuracy": f.Accuracy,
		"knn_recall_error": f.KNNRecallError, "partition_function_error": f.PartitionFunctionError, "kl_error": f.KLError, "accuracy_error": f.AccuracyError,
	} {
		if got == nil || *got != run[key] {
			t.Errorf("%s is %v, but %v in metrics.json", key, got, run[key])
		}
	}
	if f.TrustworthinessError == nil || f.Against.KNNRecallError == nil || *f.Against.KNNRecall != 1 {
		t.Errorf("%+v", f)
	}

	stdout, _ = mustRun(t, append(append([]string{"spectrum", "--s", "0", "--set", "graph.file=run/graph.npz"}, short(flags...)[1:]...), "--epochs", "2", "-o", "spectrum")...)
	table, err := csv.NewReader(strings.NewReader(readText(t, "spectrum/"+rundir.SpectrumTable))).ReadAll()
	must(t, err)
	for key := range rows {
		column := slices.Index(table[0], key+"_error")
		if column < 1 || table[0][column-1] != key {
			t.Fatalf("spectrum.csv has %v", table[0])
		}
		if v, err := strconv.ParseFloat(table[1][column], 64); err != nil || !(v > 0) {
			t.Errorf("%s_error is %q", key, table[1][column])
		}
	}
	if strings.Count(stdout, " ± ") != len(rows) {
		t.Errorf("printed: %s", stdout)
	}

	// All are counted.
	stdout, _ = mustRun(t, append(short(flags...), append(set("quality.sample=0", "quality.spearman_sample=0", "quality.kl=false", "quality.accuracy=false", "quality.partition=false", "output.metrics_every=0", "graph.file=run/graph.npz"), "-o", "exact")...)...)
	exact, share, off := readMetrics(t, "exact/metrics.json"), run["knn_recall"].(float64), run["knn_recall_error"].(float64)
	if exact["knn_recall_error"] != nil || strings.Contains(stdout, "±") || math.Abs(exact["knn_recall"].(float64)-share) > 4*off {
		t.Errorf("recall of all points %v ± %v, of a sample %v ± %v", exact["knn_recall"], exact["knn_recall_error"], share, off)
	}
}
