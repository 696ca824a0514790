package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/figures"
	"cne/internal/rng"
	"cne/train/quality"
)

// evaluated runs cne evaluate --json and returns what it prints.
func evaluated(t *testing.T, args ...string) *figures.Evaluation {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), append([]string{"evaluate", "--json", "-q"}, args...)...)
	if code != 0 {
		t.Fatalf("cne evaluate %q: exit code %d: %s", args, code, stderr)
	}
	var e figures.Evaluation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	return &e
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// All that the command says of a run of NC-t-SNE is what the packages say of its
// embedding, its points and its graph; what the run has measured itself is the
// same to the last bit, on the CPU, where all of this is computed.
func TestEvaluateARun(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 200, 6)
	if code, _, stderr := runCne(t.Context(), short("--set", "loss.name=nc", "--set", "loss.negatives=7", "--set", "quality.k=8", "--set", "graph.pca=4", "--set", "device.name=cpu")...); code != 0 {
		t.Fatal(stderr)
	}
	before := listFiles(t, "run")
	e := evaluated(t, "run")
	if after := listFiles(t, "run"); !slices.Equal(before, after) {
		t.Errorf("the run folder had %v and has %v", before, after)
	}
	if e.Data != "points" || e.N != 200 || e.K != 8 || e.AccuracyK != 10 || e.Negatives != 7 || e.ZBar != nil || e.Rho != 1 || len(e.Embeddings) != 1 {
		t.Errorf("%+v", e)
	}
	f := e.Embeddings[0]
	run := readMetrics(t, "run/metrics.json")
	for key, got := range map[string]*float64{
		"knn_recall": f.KNNRecall, "spearman": f.Spearman, "partition_function": f.PartitionFunction, "kl": f.KL, "accuracy": f.Accuracy, "z": f.Losses.LearntZ,
	} {
		if got == nil || *got != run[key] {
			t.Errorf("%s is %v, but %v in metrics.json", key, got, run[key])
		}
	}
	if edges := run["edges"]; float64(e.Edges) != edges {
		t.Errorf("%d edges, but %v in metrics.json", e.Edges, edges)
	}

	set, err := data.Open(t.Context(), []string{"points.csv"}, data.Options{LabelColumn: "kind"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Scale(t.Context(), data.ScaleUnit); err != nil {
		t.Fatal(err)
	}
	pca, err := data.FitPCA(t.Context(), set.Points, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := pca.Transform(t.Context(), set.Points, nil)
	if err != nil {
		t.Fatal(err)
	}
	embedding, err := data.Open(t.Context(), []string{"run/embedding.npy"}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := neighbors.KNN(t.Context(), embedding.Points, 8, neighbors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := neighbors.Ranks(t.Context(), points, found.Index, 8, neighbors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trust, err := quality.Trustworthiness(ranks, 8)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := neighbors.ReadNPZ(t.Context(), "run/graph.npz")
	if err != nil {
		t.Fatal(err)
	}
	heads, tails := graph.EdgeList()
	pairs := 200. * 199
	losses, err := quality.ExpectedLosses(t.Context(), heads, tails, embedding.Points.X, 2, 7, 1e-10, []quality.Discriminator{quality.Neg(1), quality.UMAP(), quality.NC(*f.PartitionFunction/pairs, 7), quality.NC(run["z"].(float64)/pairs, 7)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		got  *float64
		want float64
	}{
		"trustworthiness": {f.Trustworthiness, trust},
		"Neg":             {&f.Losses.Neg, losses[0]},
		"UMAP":            {&f.Losses.UMAP, losses[1]},
		"NC":              {f.Losses.NC, losses[2]},
		"NC, learnt":      {f.Losses.NCLearntZ, losses[3]},
	} {
		if v.got == nil || math.Abs(*v.got-v.want) > 1e-12*v.want {
			t.Errorf("%s is %v, want %v", name, v.got, v.want)
		}
	}
	infonc, err := quality.ExpectedInfoNC(t.Context(), heads, tails, embedding.Points.X, 2, 7, 1, 1e-10, 50, 9, nil)
	if err != nil {
		t.Fatal(err)
	}
	if both := math.Hypot(infonc.Error, f.Losses.InfoNCError); !(math.Abs(infonc.Mean-f.Losses.InfoNC) < 5*both && f.Losses.InfoNCError < infonc.Error) {
		t.Errorf("InfoNC is %v ± %v, want %v ± %v", f.Losses.InfoNC, f.Losses.InfoNCError, infonc.Mean, infonc.Error)
	}

	// The same without the folder: what it says is said by flags.
	flags := []string{"run/embedding.npy", "--data", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--set", "quality.k=8", "--set", "graph.pca=4", "--set", "device.name=cpu", "--m", "7"}
	g := evaluated(t, flags...).Embeddings[0]
	if *g.KNNRecall != *f.KNNRecall || *g.Trustworthiness != *f.Trustworthiness || g.Losses.Neg != f.Losses.Neg || g.Losses.InfoNC != f.Losses.InfoNC || *g.Accuracy != *f.Accuracy {
		t.Errorf("from flags %+v, from the folder %+v", g, f)
	}
	g = evaluated(t, "run/embedding.npy", "--config", "run/config.yaml").Embeddings[0]
	if *g.KL != *f.KL || *g.Spearman != *f.Spearman || g.Losses.NCLearntZ != nil {
		t.Errorf("from the configuration %+v, from the folder %+v", g, f)
	}
	// A damaged cache is as good as none, and stays.
	writeTestFile(t, "run/cache.safetensors", "damaged")
	g = evaluated(t, "run").Embeddings[0]
	if *g.KNNRecall != *f.KNNRecall || fileText(t, "run/cache.safetensors") != "damaged" {
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
	writeMatrix(t, path, func(w io.Writer) error { return data.WriteNPY(w, m) })
}

func TestEvaluateConstants(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 100, 4)
	base := []string{"a.npy", "--data", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5"}
	writeEmbedding(t, "a.npy", 100, 1, nil)
	zBar := func(s float64) float64 { return math.Pow(100*100, 1-s) * math.Pow(100*100/5, s) }
	for _, tc := range []struct {
		flags     []string
		zBar, rho float64 // 0: none
		negatives int
	}{
		{nil, 0, 1, 5},
		{[]string{"--s", "0"}, zBar(0), 1, 5},
		{[]string{"--s", "1"}, zBar(1), 4, 5},
		{[]string{"--s", "-0.5", "--m", "20"}, zBar(-0.5), 0.5, 20},
		{[]string{"--zbar", "3e4"}, 3e4, 1, 5},
		{[]string{"--set", "loss.s=1"}, zBar(1), 1, 5},
		{[]string{"--set", "loss.z_bar=123"}, 123, 1, 5},
		{[]string{"--set", "loss.z_bar=uniform"}, 0, 1, 5},
		{[]string{"--set", "loss.s=1", "--zbar", "3e4"}, 3e4, 1, 5},
		{[]string{"--set", "loss.name=infonce", "--set", "loss.s=1"}, 0, 4, 5},
		{[]string{"--set", "loss.name=umap", "--set", "loss.negatives=9"}, 0, 1, 9},
		{[]string{"--set", "loss.negatives=full", "--set", "train.batch_size=11"}, 0, 1, 20},
	} {
		e := evaluated(t, append(slices.Clone(base), tc.flags...)...)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*b }
		if (e.ZBar == nil) != (tc.zBar == 0) || e.ZBar != nil && !near(*e.ZBar, tc.zBar) || !near(e.Rho, tc.rho) || e.Negatives != tc.negatives {
			t.Errorf("%q: Z̄ %v, ρ %v and %d negatives, want %v, %v and %d", tc.flags, e.ZBar, e.Rho, e.Negatives, tc.zBar, tc.rho, tc.negatives)
		}
		l := e.Embeddings[0].Losses
		if (l.NegZBar == nil) != (tc.zBar == 0) || l.NC == nil || l.NCLearntZ != nil {
			t.Errorf("%q: losses %+v", tc.flags, l)
		}
	}
	// c = Z̄·m/n² is 1 for this Z̄.
	if e := evaluated(t, append(slices.Clone(base), "--zbar", "2000")...); math.Abs(*e.Embeddings[0].Losses.NegZBar-e.Embeddings[0].Losses.Neg) > 1e-9 {
		t.Errorf("with c = 1 the losses of Neg-t-SNE are %+v", e.Embeddings[0].Losses)
	}
}

// Motions, reflections and the order of the columns leave every figure; an
// embedding is entirely like itself.
func TestEvaluateInvariances(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 150, 5)
	writeEmbedding(t, "a.npy", 150, 1, nil)
	writeEmbedding(t, "b.npy", 150, 1, func(m *data.Matrix) {
		sin, cos := math.Sincos(1)
		for i := range m.N {
			x, y := float64(m.Row(i)[0]), float64(m.Row(i)[1])
			m.Row(i)[0], m.Row(i)[1] = float32(5+cos*x-sin*y), float32(-sin*x-cos*y)
		}
	})
	writeEmbedding(t, "other.npy", 150, 2, nil)
	e := evaluated(t, "a.npy", "b.npy", "other.npy", "--data", "points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--s", "0.5", "--against", "a.npy")
	valuesOf := func(f figures.EvaluatedFigures) map[string]float64 {
		return map[string]float64{
			"recall": *f.KNNRecall, "trustworthiness": *f.Trustworthiness, "Spearman": *f.Spearman, "accuracy": *f.Accuracy,
			"partition function": *f.PartitionFunction, "KL": *f.KL, "Neg": f.Losses.Neg, "Neg, Z̄": *f.Losses.NegZBar, "NC": *f.Losses.NC,
			"InfoNC": f.Losses.InfoNC, "UMAP": f.Losses.UMAP, "against, recall": f.Against.KNNRecall, "against, Spearman": *f.Against.Spearman,
		}
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
	if want["against, recall"] != 1 || want["against, Spearman"] != 1 {
		t.Errorf("an embedding is like itself by %v and %v", want["against, recall"], want["against, Spearman"])
	}
}

// What has no data, or no labels, or too few points, is left out and the rest
// is measured.
func TestEvaluateWhatThereIs(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t) // of 24 points
	writePoints(t, "points.csv", 24, 4)
	writePoints(t, "plainpoints.csv", 24, 4)
	graph, err := neighbors.FromNeighbors(mustKNN(t, "points.csv", 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.WriteNPZ("graph.npz"); err != nil {
		t.Fatal(err)
	}
	few := []string{"--set", "quality.k=5", "--set", "graph.k=3"}
	const (
		ofData, ofPartition, ofGraph, ofLabels, ofOther = "knn_recall trustworthiness spearman", "partition_function", "kl losses", "accuracy", "against"
	)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"a.npy", "--against", "e.v2.csv"}, ofPartition + " " + ofOther},
		{[]string{"e.v2.csv", "--against", "a.npy"}, ofPartition + " " + ofLabels + " " + ofOther},
		{[]string{"a.npy", "--against", "a.npy", "--labels", "labels.txt"}, ofPartition + " " + ofLabels + " " + ofOther},
		{[]string{"bare", "--graph", "graph.npz"}, ofPartition + " " + ofGraph},
		{[]string{"run", "--graph", "graph.npz"}, ofPartition + " " + ofGraph + " " + ofLabels}, // the table in the folder
		{[]string{"plain.csv", "--data", "points.csv", "--set", "data.label_column=kind"}, ofData + " " + ofPartition + " " + ofGraph + " " + ofLabels},
		{[]string{"a.npy", "--data", "plainpoints.csv", "--set", "data.drop=[kind]"}, ofData + " " + ofPartition + " " + ofGraph},
		{[]string{"a.npy", "--data", "plainpoints.csv", "--set", "data.drop=[kind]", "--labels", "half1.txt", "--labels", "half2.txt", "--graph", "graph.npz"}, ofData + " " + ofPartition + " " + ofGraph + " " + ofLabels},
		{[]string{"a.npy", "--data", "points.csv", "--set", "data.label_column=kind", "--set", "quality.k=12"}, "knn_recall spearman " + ofPartition + " " + ofGraph + " " + ofLabels},
	} {
		code, stdout, stderr := runCne(t.Context(), append(append([]string{"evaluate", "--json", "-q"}, few...), tc.args...)...)
		if code != 0 {
			t.Fatalf("%q: %s", tc.args, stderr)
		}
		var e struct{ Embeddings []map[string]any }
		if err := json.Unmarshal([]byte(stdout), &e); err != nil {
			t.Fatal(err)
		}
		got := e.Embeddings[0]
		delete(got, "path")
		delete(got, "dim")
		names := slices.Sorted(maps.Keys(got))
		want := strings.Fields(tc.want)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("%q: figures %v, want %v", tc.args, names, want)
		}
	}
}

// mustKNN returns the neighbours of the points of writePoints.
func mustKNN(t *testing.T, path string, k int) *neighbors.Neighbors {
	t.Helper()
	set, err := data.Open(t.Context(), []string{path}, data.Options{LabelColumn: "kind"})
	if err != nil {
		t.Fatal(err)
	}
	nb, err := neighbors.KNN(t.Context(), set.Points, k, neighbors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return nb
}

// Points that were held out are not among those of the embedding.
func TestEvaluateAHoldoutRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeClusters(t, "points.csv", 0, 240, animal)
	if code, _, stderr := runCne(t.Context(), holdoutRun("--set", "data.holdout=0.25", "--set", "quality.accuracy=false", "--set", "quality.spearman=0")...); code != 0 {
		t.Fatal(stderr)
	}
	e := evaluated(t, "run")
	run := readMetrics(t, "run/metrics.json")
	if f := e.Embeddings[0]; e.N != 180 || *f.KNNRecall != run["knn_recall"] || *f.KL != run["kl"] || f.Accuracy == nil || f.Spearman == nil {
		t.Errorf("%d points, %+v; metrics.json has %v", e.N, e.Embeddings[0], run)
	}
	code, _, stderr := runCne(t.Context(), "evaluate", "run", "--set", "data.holdout=0.5")
	if code != 1 || !strings.Contains(stderr, "embedding.npy has 180 points, but the data points.csv have 120 once data.holdout has taken its share") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestEvaluatePrintsATable(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 4)
	if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := runCne(t.Context(), short("--set", "loss.name=nc", "-o", "nc")...); code != 0 {
		t.Fatal(stderr)
	}
	writeEmbedding(t, "mine.npy", 60, 1, nil)
	code, stdout, stderr := runCne(t.Context(), "evaluate", "run", "nc", "mine.npy", "--s", "0.5", "--against", "mine.npy", "-o", "figures.json")
	if code != 0 {
		t.Fatal(stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "  ")
		names = append(names, name)
	}
	want := []string{"", "coordinates", "kNN recall (k = 15)", "trustworthiness (k = 15)", "Spearman correlation", "kNN accuracy (k = 10)", "partition function",
		"KL divergence", "Neg-t-SNE loss, c = 1", "Neg-t-SNE loss, Z̄ = 2078", "NC-t-SNE loss, Z = partition function", "NC-t-SNE loss, learnt Z",
		"InfoNC-t-SNE loss, ρ = 2", "UMAP loss", "against mine.npy: kNN recall (k = 15)", "against mine.npy: Spearman"}
	if !slices.Equal(names[:len(names)-1], want) {
		t.Errorf("rows %q, want %q", names[:len(names)-1], want)
	}
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"run", "nc", "mine.npy"}) {
		t.Errorf("columns %q", got)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "60 points, ") || !strings.HasSuffix(last, " directed edges, 5 negatives per edge") {
		t.Errorf("the last line is %q", last)
	}
	if got := strings.Fields(lines[len(lines)-2]); got[len(got)-1] != "1.000" {
		t.Errorf("an embedding against itself: %q", lines[len(lines)-2])
	}
	var e figures.Evaluation
	if err := json.Unmarshal([]byte(fileText(t, "figures.json")), &e); err != nil || len(e.Embeddings) != 3 || e.Embeddings[2].Path != "mine.npy" || e.Embeddings[1].Losses.NCLearntZ == nil {
		t.Errorf("figures.json: %v, %+v", err, e)
	}
	if _, stdout, _ := runCne(t.Context(), "evaluate", "run", "--m", "1"); !strings.HasSuffix(stdout, ", 1 negative per edge\n") {
		t.Errorf("with one negative:\n%s", stdout)
	}
	// Without data there is no graph.
	code, stdout, _ = runCne(t.Context(), "evaluate", "mine.npy", "--against", "run")
	if code != 0 || !strings.HasSuffix(stdout, "\n60 points\n") || strings.Contains(stdout, "loss") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

// Where the seed decides which points there are, another one is refused: figures
// of other points would look as good as right.
func TestEvaluateKeepsToThePoints(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 4)
	for _, tt := range []struct {
		name, set string
		refused   bool
	}{
		{"all", "data.holdout=null", false},
		{"imbalanced", "data.imbalance=linear", true},
		{"held", "data.holdout=0.2", true},
	} {
		for _, seed := range []string{"0", "1"} {
			if code, _, stderr := runCne(t.Context(), short("--set", tt.set, "--seed", seed, "-o", tt.name+seed)...); code != 0 {
				t.Fatal(stderr)
			}
		}
		if code, _, stderr := runCne(t.Context(), "evaluate", "-q", tt.name+"0", "--seed", "0"); code != 0 {
			t.Errorf("%s with its own seed: %s", tt.name, stderr)
		}
		for _, args := range [][]string{{tt.name + "0", tt.name + "1"}, {tt.name + "0", "--seed", "1"}} {
			code, _, stderr := runCne(t.Context(), append([]string{"evaluate", "-q"}, args...)...)
			if (code == 1 && strings.Contains(stderr, "seed")) != tt.refused {
				t.Errorf("%v: exit code %d: %s", args, code, stderr)
			}
		}
	}
}

func TestEvaluateBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	makeEmbeddings(t) // of 24 points
	writePoints(t, "points.csv", 24, 4)
	writePoints(t, "more.csv", 30, 4)
	writeEmbedding(t, "e30.npy", 30, 1, nil)
	writeEmbedding(t, "nan.npy", 24, 1, func(m *data.Matrix) { m.Row(7)[1] = float32(math.NaN()) })
	writeTestFile(t, "graph.npz", "no archive")
	graph, err := neighbors.FromNeighbors(mustKNN(t, "more.csv", 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.WriteNPZ("graph30.npz"); err != nil {
		t.Fatal(err)
	}
	quick := []string{"--set", "data.path=points.csv", "--set", "graph.k=3", "--set", "quality.k=3", "--epochs", "2", "-q"}
	for folder, more := range map[string][]string{"one": nil, "raw": {"--set", "data.scale=none"}} {
		if code, _, stderr := runCne(t.Context(), append(append(append([]string{"train"}, quick...), "--set", "data.label_column=kind", "-o", folder), more...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	writeTestFile(t, "single.csv", "x,y\n1,2\n")
	for _, folder := range []string{"spoilt", "images"} {
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeTestFile(t, "spoilt/config.yaml", fileText(t, "one/config.yaml"))
	writeTestFile(t, "spoilt/embedding.npy", fileText(t, "one/embedding.npy"))
	writeTestFile(t, "spoilt/metrics.json", "{")
	writeTestFile(t, "images/config.yaml", strings.Replace(fileText(t, "one/config.yaml"), "cne train --config", "cne simclr pretrain --config", 1))
	withData := "--data points.csv --set data.label_column=kind --set quality.k=3"
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "cne evaluate needs an argument: the file with the embedding, or the run folder"},
		{"a.npy", 1, "nothing says what points a.npy shows; name them with --data, or give --against or --graph"},
		{"a.npy --s 1 --zbar 2 " + withData, 2, "--s and --zbar are both given"},
		{"a.npy --s NaN " + withData, 2, "--s is NaN, but must be a finite number"},
		{"a.npy --s 1000 " + withData, 2, "--s is 1000, too far out on the spectrum; give a number from -100 to 100"},
		{"a.npy --zbar 0 " + withData, 2, "--zbar is 0, but must be a number above 0"},
		{"a.npy --zbar 1e300 " + withData, 2, "--zbar is 1e+300, but must be a number above 0 and at most 1e+100"},
		{"single.csv --against single.csv", 1, "single.csv has a single point, which has no neighbours; give an embedding of more"},
		{"a.npy --m 0 " + withData, 2, "--m is 0, but must be at least 1"},
		{"a.npy -o figures.txt " + withData, 2, `--output is "figures.txt", but must end in .json`},
		{"a.npy -o none/figures.json " + withData, 1, "there is no folder none"},
		{"nosuch.npy " + withData, 1, "the embedding cannot be read"},
		{"folder " + withData, 1, "the folder folder holds neither embedding.csv nor embedding.npy"},
		{"nan.npy " + withData, 1, "nan.npy"},
		{"nan.npy " + withData, 1, "NaN"},
		{"e30.npy " + withData, 1, "e30.npy has 30 points, but the data points.csv have 24; give an embedding of these points, or their data with --data"},
		{"a.npy e30.npy " + withData, 1, "e30.npy has 30 points, but a.npy has 24; give embeddings of the same points"},
		{"a.npy --against e30.npy", 1, "e30.npy has 30 points, but a.npy has 24"},
		{"a.npy --against nosuch.npy", 1, "nosuch.npy"},
		{"a.npy --data nosuch.csv --set quality.k=3", 1, "stat nosuch.csv: no such file or directory); check the path (data.path)"},
		{"a.npy --labels nosuch.txt --set data.drop=[kind] --data points.csv --set quality.k=3", 1, "nosuch.txt: no such file or directory (data.labels)"},
		{"a.npy --labels short.txt --set data.drop=[kind] --data points.csv --set quality.k=3", 1, "2 labels"},
		{"a.npy --against a.npy --labels short.txt --set quality.k=3", 1, "2 labels"},
		{"a.npy --data builtin:nosuch --set quality.k=3", 1, "nosuch"},
		{"a.npy --graph graph.npz --set quality.k=3", 1, "graph.file cannot be used"},
		{"a.npy --graph graph30.npz --set quality.k=3", 1, "graph.file graph30.npz has 30 points, but the data have 24"},
		{"a.npy --graph graph30.npz " + withData, 1, "graph.file graph30.npz has 30 points, but the data have 24"},
		{"a.npy --against a.npy --set quality.k=24", 1, "the 24 points of a.npy do not have 24 neighbours each; set quality.k below 24"},
		{"a.npy --set graph.k=24 " + withData, 1, "set graph.k and quality.k below 24"},
		{"a.npy --config nosuch.yaml", 1, "cannot read the configuration"},
		{"one raw", 1, `the run in raw has data.scale none, but that in one has unit; evaluate embeddings of the same points, or say which with --data`},
		{"spoilt", 1, "metrics.json is not what a run writes"},
		{"images", 1, `the run in images is one of "cne simclr pretrain"`},
	} {
		code, stdout, stderr := runCne(t.Context(), append([]string{"evaluate", "-q"}, strings.Fields(tc.args)...)...)
		if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("cne evaluate %s: exit code %d, stdout %q, stderr\n%s want code %d and %q", tc.args, code, stdout, stderr, tc.code, tc.want)
		}
	}
	// With --data the runs' own are not compared.
	if e := evaluated(t, "one", "raw", "--data", "points.csv"); len(e.Embeddings) != 2 {
		t.Errorf("%+v", e)
	}
	// An input is not written over.
	writeMatrix(t, "points.json", func(w io.Writer) error {
		_, err := fmt.Fprint(w, fileText(t, filepath.FromSlash("labels.txt")))
		return err
	})
	code, _, stderr := runCne(t.Context(), "evaluate", "a.npy", "--against", "a.npy", "--labels", "points.json", "-o", "points.json")
	if code != 1 || !strings.Contains(stderr, "points.json would be replaced by the results") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
