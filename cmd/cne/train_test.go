package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data/file"
	"cne/data/neighbors"
	"cne/train"
	"cne/train/quality"
)

// readRecords reads the records of a run's epochs.
func readRecords(t *testing.T, path string) (records []train.Record) {
	t.Helper()
	for line := range strings.Lines(readText(t, path)) {
		var r train.Record
		must(t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

func TestTrainWritesARun(t *testing.T) {
	for _, loss := range []string{"neg", "nc", "infonce", "umap"} {
		t.Run(loss, func(t *testing.T) {
			folderOf(t, 300, 6)
			stdout, _ := mustRun(t, short(set("loss.name="+loss, "output.snapshots=4", "output.plot=true")...)...)
			want := []string{"cache.safetensors", "checkpoint.safetensors", "config.yaml", "embedding.csv", "embedding.npy", "embedding.png",
				"graph.npz", "metrics.json", "metrics.jsonl", "model.safetensors", "snapshots/epoch-0004.npy", "snapshots/epoch-0008.npy"}
			if got := listFiles(t, "run"); !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
			m := readMetrics(t, "run/metrics.json")
			seconds := m["seconds"].(map[string]any)
			for key, of := range map[string]map[string]any{
				"knn_recall spearman partition_function kl accuracy loss n edges epochs seconds peak_rss_bytes seed version": m,
				"load pca graph start optimize total": seconds,
			} {
				for key := range strings.FieldsSeq(key) {
					if _, ok := of[key]; !ok {
						t.Errorf("metrics.json has no %s", key)
					}
				}
			}
			if _, ok := m["z"]; ok != (loss == "nc") {
				t.Errorf("metrics.json has z: %v", ok)
			}
			// Three clusters far apart stay apart, but for a point or two of the
			// 43 that are classified: which, depends on rounding.
			if a := m["accuracy"].(float64); a < 0.95 {
				t.Errorf("accuracy %g", a)
			}
			if !strings.Contains(stdout, filepath.FromSlash("run/embedding.png")) || !strings.Contains(stdout, "kNN recall") {
				t.Errorf("stdout names neither the picture nor the quality:\n%s", stdout)
			}
			if lines := readText(t, "run/metrics.jsonl"); strings.Count(lines, "\n") != 8 || strings.Contains(lines, "log_z") != (loss == "nc") {
				t.Errorf("metrics.jsonl:\n%s", lines)
			}
			// The last snapshot is the embedding, and the CSV holds it with labels.
			sameFile(t, "run/snapshots/epoch-0008.npy", "run/embedding.npy")
			csv, err := file.Read(t.Context(), []string{"run/embedding.csv"}, file.Options{LabelColumn: "label"})
			if err != nil || csv.Points.N != 300 || csv.Points.D != 2 || !slices.Equal(csv.Labels.Names, []string{"ant", "bee", "cat"}) {
				t.Errorf("embedding.csv: %v, %v", csv, err)
			}
			// The configuration in the folder gives the run again.
			mustRun(t, short("--config", "run/config.yaml", "--set", "loss.name="+loss, "-o", "again")...)
			sameFile(t, "again/embedding.npy", "run/embedding.npy")
		})
	}
}

func TestTrainOptions(t *testing.T) {
	folderOf(t, 60, 5)
	for name, settings := range map[string][]string{
		"float64":                       {"model.dtype=float64"},
		"cosine":                        {"loss.metric=cosine", "loss.name=infonce", "model.dim=4"},
		"one dimension":                 {"model.dim=1"},
		"more dimensions than the data": {"model.dim=9"},
		"random start":                  {"model.init=random"},
		"full":                          {"loss.negatives=full"},
		"PCA":                           {"graph.pca=3", "data.scale=standard"},
		"phases":                        {"train.phases=[{epochs: 3, z_bar: uniform}, {epochs: 4, s: 0}]", "train.epochs=7"},
		"early exaggeration":            {"loss.s=0", "train.early_exaggeration=true"},
		"fixed Z":                       {"loss.name=nc", "loss.learn_z=false", "loss.log_z=-2"},
		"mean":                          {"loss.scale=2"},
		"no quality":                    {"quality.recall=false", "quality.spearman_sample=0", "quality.partition=false", "quality.kl=false", "quality.accuracy=false"},
		"recall beyond the graph":       {"quality.k=20"},
		"no cache":                      {"graph.cache=false"},
		"nothing but npy":               {"output.csv=false", "output.plot=false"},
	} {
		mustRun(t, short(append(set(settings...), "--force")...)...)
		m := readPositions(t, "run/embedding.npy")
		var sum float64
		for _, v := range m.X {
			sum += math.Abs(float64(v))
		}
		if m.N != 60 || sum == 0 || math.IsNaN(sum) {
			t.Errorf("%s: %d points with coordinates of total size %g", name, m.N, sum)
		}
	}
	// A constant that was not learnt is not called so.
	for setting, want := range map[string]string{"loss.learn_z=true": "\nlearnt Z ", "train.lr_z=0": "\nfixed Z ", "loss.learn_z=false": "\nfixed Z "} {
		if stdout, _ := mustRun(t, short("--force", "--set", "loss.name=nc", "--set", setting)...); !strings.Contains(stdout, want) {
			t.Errorf("%s: %s\nhas no %q", setting, stdout, want)
		}
	}
	// There are no more principal components than points.
	writePoints(t, "points.csv", 30, 70)
	mustRun(t, short("--force")...)
}

// The cache is used when points and settings are the same, and only then; a
// damaged one is written anew. graph.npz is the graph of the run, or not there.
func TestTrainCache(t *testing.T) {
	folderOf(t, 80, 6)
	hit := func(flags ...string) bool {
		t.Helper()
		_, stderr := mustRun(t, short(append(flags, "--force", "--set", "output.plot=false")...)...)
		g, err := neighbors.ReadFile(t.Context(), "run/graph.npz")
		if there := !slices.Contains(flags, "graph.cache=false"); there != (err == nil) || there && float64(g.Edges()) != readMetrics(t, "run/metrics.json")["edges"] {
			t.Errorf("%q: the graph is that of another run (%v)", flags, err)
		}
		return strings.Contains(stderr, "come from the cache")
	}
	pca := set("graph.pca=4")
	if hit(pca...) {
		t.Error("a first run finds a cache")
	}
	first := readText(t, "run/embedding.npy")
	if !hit(pca...) {
		t.Error("the cache is not used")
	}
	if readText(t, "run/embedding.npy") != first {
		t.Error("the run from the cache gives another embedding")
	}
	if !hit(append(pca, "--seed", "5", "--set", "loss.name=umap")...) {
		t.Error("another seed and loss do without the cache")
	}
	if hit(set("graph.pca=3")...) || hit(set("graph.pca=4", "quality.k=16")...) || hit(set("graph.pca=4", "data.scale=standard")...) || hit(set("graph.k=9")...) {
		t.Error("the cache of other settings is used")
	}
	hit(set("graph.cache=false")...)
	hit(pca...)
	writePoints(t, "points.csv", 81, 6)
	if hit(pca...) {
		t.Error("the cache of other points is used")
	}
	must(t, os.Truncate("run/cache.safetensors", 1000))
	if hit(pca...) || !hit(pca...) {
		t.Error("a damaged cache is used, or not mended")
	}
}

// Accuracy counts only points with a label, and is left out for quantities.
func TestTrainLabels(t *testing.T) {
	folderOf(t, 90, 6)
	for name, tc := range map[string]struct {
		label    func(i int) string
		accuracy bool
	}{
		"all":        {func(i int) string { return fmt.Sprint(i % 3) }, true},
		"some":       {func(i int) string { return []string{fmt.Sprint(i % 3), "nan"}[i/3%2] }, true},
		"quantities": {func(i int) string { return fmt.Sprint(0.25 * float64(i)) }, false},
		"few":        {func(i int) string { return []string{"a", "nan"}[min(1, i/8)] }, false},
	} {
		var labels strings.Builder
		for i := range 90 {
			labels.WriteString(tc.label(i) + "\n")
		}
		writeTestFile(t, "labels.txt", labels.String())
		mustRun(t, append([]string{"train", "points.csv", "--epochs", "20", "-o", "run", "--force"}, set("data.drop=kind", "data.labels=labels.txt", "output.plot=false")...)...)
		a, ok := readMetrics(t, "run/metrics.json")["accuracy"]
		if ok != tc.accuracy || ok && a.(float64) < 0.9 {
			t.Errorf("%s: accuracy %v, present: %v", name, a, ok)
		}
	}
}

// The figures are correct for this embedding and these points.
func TestTrainMeasures(t *testing.T) {
	folderOf(t, 200, 6)
	mustRun(t, short(set("loss.name=nc", "data.scale=none", "quality.k=7")...)...)
	points, err := file.Read(t.Context(), []string{"points.csv"}, file.Options{LabelColumn: "kind"})
	must(t, err)
	embedding := readPositions(t, "run/embedding.npy")
	graph, err := neighbors.ReadFile(t.Context(), "run/graph.npz")
	must(t, err)
	f, err := quality.Measure(t.Context(), points.Points, embedding, quality.Options{K: 7, Graph: graph})
	must(t, err)
	records := readRecords(t, "run/metrics.jsonl")
	last := records[len(records)-1]
	m := readMetrics(t, "run/metrics.json")
	for key, want := range map[string]float64{
		"knn_recall": *f.KNNRecall, "partition_function": *f.PartitionFunction, "kl": *f.KL, "z": math.Exp(*last.LogZ) * 200 * 199, "loss": last.Loss, "n": 200, "epochs": 8, "seed": 0,
	} {
		if got := m[key].(float64); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %g, want %g", key, got, want)
		}
	}
}

// Each of the figures of section quality can be left out, and none needs another.
func TestTrainMeasuresWhatIsAsked(t *testing.T) {
	folderOf(t, 60, 5)
	rows := map[string]string{"knn_recall": "kNN recall", "spearman": "Spearman correlation", "partition_function": "partition function", "kl": "KL divergence", "accuracy": "kNN accuracy"}
	for asked, setting := range map[string]string{"knn_recall": "recall=true", "spearman": "spearman_sample=50", "partition_function": "partition=true", "kl": "kl=true", "accuracy": "accuracy=true"} {
		stdout, _ := mustRun(t, short(append(set("quality.recall=false", "quality.spearman_sample=0", "quality.partition=false", "quality.kl=false", "quality.accuracy=false",
			"quality."+setting), "--force")...)...)
		m := readMetrics(t, "run/metrics.json")
		for figure, row := range rows {
			_, there := m[figure]
			if printed := strings.Contains(stdout, row); there != (figure == asked) || printed != there {
				t.Errorf("%s: metrics.json has %s: %v, printed: %v", asked, figure, there, printed)
			}
		}
	}
}

// The program by itself trains on its built-in data.
func TestTrainOnBuiltinData(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, append([]string{"train", "--epochs", "1"}, set("quality.kl=false", "quality.partition=false", "quality.spearman_sample=0")...)...)
	if m := readMetrics(t, "runs/mnist10k/metrics.json"); m["n"] != 10000.0 || m["accuracy"].(float64) < 0.3 {
		t.Errorf("%v points, accuracy %v", m["n"], m["accuracy"])
	}
}

// Every few epochs, and after the last, partition function and divergence are
// those that metrics.json would have.
func TestMetricsEvery(t *testing.T) {
	for _, loss := range []string{"neg", "nc"} {
		folderOf(t, 300, 6)
		mustRun(t, short(set("loss.name="+loss, "output.metrics_every=5")...)...)
		var epochs, measured []int
		var last train.Record
		for _, r := range readRecords(t, "run/metrics.jsonl") {
			epochs = append(epochs, r.Epoch)
			if r.PartitionFunction != nil && r.KL != nil {
				measured = append(measured, r.Epoch)
			}
			if (r.Z != nil) != (loss == "nc") {
				t.Errorf("epoch %d of %s has the Z %v", r.Epoch, loss, r.Z)
			}
			last = r
		}
		if want := []int{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(epochs, want) || !slices.Equal(measured, []int{5, 8}) {
			t.Fatalf("records of epochs %v, measured %v", epochs, measured)
		}
		m := readMetrics(t, "run/metrics.json")
		if *last.PartitionFunction != m["partition_function"] || *last.KL != m["kl"] {
			t.Errorf("the last record has %v and %v, metrics.json %v and %v", *last.PartitionFunction, *last.KL, m["partition_function"], m["kl"])
		}
		if loss == "nc" && math.Abs(*last.Z/m["z"].(float64)-1) > 1e-12 {
			t.Errorf("the last record has the Z %v, metrics.json %v", *last.Z, m["z"])
		}
	}
}

// Arguments of cne train are data.path, whatever characters they contain.
func TestTrainTakesInputs(t *testing.T) {
	folderOf(t, 40, 3)
	odd := "[a], 'b' \"c\" #\\ é\u0085.csv"
	writePoints(t, odd, 30, 3)
	writeTestFile(t, "other.yaml", "data: {path: other.npy}\n")
	embed := func(args ...string) (embedding string) {
		t.Helper()
		dir := t.TempDir()
		mustRun(t, slices.Concat([]string{"train", "-o", dir, "--epochs", "3"}, args, set("data.label_column=kind", "graph.k=5", "train.batch_size=64"))...)
		return readText(t, filepath.Join(dir, "embedding.npy"))
	}
	one := embed(set("data.path=points.csv")...)
	if embed("points.csv") != one {
		t.Error("another embedding than with --set")
	}
	both := embed(set("data.path=" + `[points.csv, "` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\u0085", `\N`).Replace(odd) + `"]`)...)
	if embed("points.csv", odd) != both {
		t.Error("another embedding than with --set of two files")
	}
	if embed("points.csv", "-c", "other.yaml") != one {
		t.Error("a file comes before the arguments")
	}
	t.Setenv("CNE_DATA_PATH", "other.npy")
	if embed("points.csv") != one {
		t.Error("a variable comes before the arguments")
	}
	mustFail(t, exitUsage, `INPUT: data.path: got "[\xff.csv]", want text in UTF-8`, "train", "\xff.csv")
}

// An embedding may have any number of dimensions, fewer or more than the points have:
// it is trained, measured, drawn and used for new points.
func TestDimensions(t *testing.T) {
	const n, held, width = 90, 10, 6
	folderOf(t, n+held, width)
	for dim, tc := range map[int]struct{ header, note string }{
		1:  {"x,label\n", "one coordinate; height: density of points"},
		2:  {"x,y,label\n", ""},
		3:  {"x,y,z,label\n", "first 2 of 3 principal axes of the embedding"},
		10: {"x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,label\n", "first 2 of 10 principal axes of the embedding"},
		50: {"", "first 2 of 50 principal axes of the embedding"},
	} {
		for kind, flags := range map[string][]string{"table": set("model.keep_data=true"), "mlp": set("model.kind=mlp", "model.hidden=[8]")} {
			t.Run(fmt.Sprint(kind, dim), func(t *testing.T) {
				mustRun(t, short(slices.Concat(flags, set(fmt.Sprint("model.dim=", dim), "data.holdout=0.1"), []string{"--epochs", "2", "--force"})...)...)
				positions := func(path string, rows int) {
					t.Helper()
					m := readPositions(t, path)
					if m.N != rows || m.D != dim {
						t.Fatalf("%s: %d points of %d values, want %d of %d", path, m.N, m.D, rows, dim)
					}
					// Points may leave the range of a table's initial positions; none is
					// lost.
					for j := range dim {
						column := make([]float64, rows)
						for i := range rows {
							column[i] = float64(m.Row(i)[j])
						}
						if span := slices.Max(column) - slices.Min(column); !(span > 0) || math.IsInf(span, 0) {
							t.Errorf("%s: coordinate %d spans %g", path, j, span)
						}
					}
				}
				positions("run/embedding.npy", n)
				positions("run/holdout.npy", held)
				if header, _ := linesOf(t, "run/embedding.csv"); tc.header != "" && header != tc.header || strings.Count(header, ",") != dim {
					t.Errorf("embedding.csv begins with %q, want %q", header, tc.header)
				}
				m := readMetrics(t, "run/metrics.json")
				for _, of := range []map[string]any{m, m["holdout"].(map[string]any)} {
					if of["knn_recall"] == nil || of["accuracy"] == nil {
						t.Errorf("metrics.json lacks figures: %v", slices.Sorted(maps.Keys(of)))
					}
				}
				if z, kl := m["partition_function"].(float64), m["kl"].(float64); m["spearman"] == nil || !(z > 0 && z < n*(n-1)) || !(kl > -1 && kl < 100) {
					t.Errorf("partition function %g and divergence %g", z, kl)
				}
				mustRun(t, "project", "--model", "run", "points.csv", "--label-column", "kind", "-o", "new.npy", "--plot", "new.svg")
				positions("new.npy", n+held)
				mustRun(t, "plot", "run/embedding.csv", "-o", "run.svg")
				for path, points := range map[string]int{"new.svg": n + 2*(n+held), "run.svg": n} {
					svg := readText(t, path)
					if got := strings.Count(svg, "h0"); got != points {
						t.Errorf("%s has %d points, want %d", path, got, points)
					}
					texts := pictureTexts(svg)
					if at := slices.Index(texts, "map"); at > 0 { // the key, after the scale bar's length
						texts = texts[:at-1]
					}
					notes := slices.DeleteFunc(texts, func(s string) bool { return slices.Contains([]string{"ant", "bee", "cat"}, s) })
					// The variance along the axes is the embedding's own.
					if got, _, _ := strings.Cut(strings.Join(notes, "|"), ", "); len(notes) > 1 || got != tc.note {
						t.Errorf("%s says %q, want %q", path, notes, tc.note)
					}
				}
			})
		}
	}
}

// The log says when a phase that diverges begins again, and metrics.jsonl then lacks its first
// try. With a rate of one's own the run ends instead.
func TestPhasesBeginAgain(t *testing.T) {
	folderOf(t, 300, 6)
	tooFast := short(set("loss.name=infonc", "loss.negatives=5", "train.phases=[{epochs: 3, lr: 1}, {epochs: 5, lr: 1e6}]", "output.snapshots=4")...)
	mustFail(t, 1, "lower lr in phase 2 of train.phases", tooFast...)
	_, stderr := mustRun(t, append(tooFast, set("train.retries=10", "checkpoint.minutes=1e-9")...)...)
	if again := strings.Count(stderr, "begins again with a lower learning rate"); again < 2 {
		t.Errorf("begun again %d times, want 2 or more: %s", again, stderr)
	}
	records := readRecords(t, "run/metrics.jsonl")
	for i, r := range records {
		if r.Epoch != i+1 {
			t.Errorf("record %d is of epoch %d", i+1, r.Epoch)
		}
	}
	if last := records[len(records)-1]; len(records) != 8 || last.LR >= 1e6/9 {
		t.Errorf("%d records, and a rate of %g in the end, want 8 and a ninth of 1e6 or less", len(records), last.LR)
	}
	sameFile(t, "run/snapshots/epoch-0008.npy", "run/embedding.npy")
}
