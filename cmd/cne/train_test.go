package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/internal/rundir"
	"cne/train/quality"
)

// writePoints writes a CSV file of n points in three clusters, with labels.
func writePoints(t *testing.T, path string, n, d int) {
	t.Helper()
	var b strings.Builder
	for j := range d {
		fmt.Fprintf(&b, "f%d,", j)
	}
	b.WriteString("kind\n")
	s := rng.New(1, rng.Sample)
	for i := range n {
		for j := range d {
			fmt.Fprintf(&b, "%g,", s.Normal()+10*float64(i%3*(j%3)))
		}
		fmt.Fprintf(&b, "%s\n", []string{"ant", "bee", "cat"}[i%3])
	}
	writeTestFile(t, path, b.String())
}

// short are the flags of a quick run on such a file.
func short(more ...string) []string {
	return append([]string{"train", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5",
		"--set", "train.batch_size=64", "--epochs", "8", "-o", "run"}, more...)
}

func readMetrics(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTrainWritesARun(t *testing.T) {
	for _, loss := range []string{"neg", "nc", "infonce", "umap"} {
		t.Run(loss, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 300, 6)
			code, stdout, stderr := runCne(t.Context(), short("--set", "loss.name="+loss, "--set", "output.snapshots=4", "--set", "output.parquet=true")...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			want := []string{"cache.safetensors", "checkpoint.safetensors", "config.yaml", "embedding.csv", "embedding.npy", "embedding.parquet", "embedding.png",
				"graph.npz", "metrics.json", "metrics.jsonl", "model.safetensors", "snapshots/epoch-0004.npy", "snapshots/epoch-0008.npy"}
			if got := listFiles(t, "run"); !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
			m := readMetrics(t, "run/metrics.json")
			for _, key := range []string{"knn_recall", "spearman", "partition_function", "kl", "accuracy", "loss", "n", "edges",
				"epochs", "seconds", "peak_rss_bytes", "seed", "version"} {
				if _, ok := m[key]; !ok {
					t.Errorf("metrics.json has no %s", key)
				}
			}
			if _, ok := m["z"]; ok != (loss == "nc") {
				t.Errorf("metrics.json has z: %v", ok)
			}
			for _, key := range []string{"load", "pca", "graph", "start", "optimize", "total"} {
				if _, ok := m["seconds"].(map[string]any)[key].(float64); !ok {
					t.Errorf("metrics.json has no seconds.%s", key)
				}
			}
			// Three clusters far apart stay apart, but for a point or two of the
			// 43 that are classified: which, depends on rounding.
			if a := m["accuracy"].(float64); a < 0.95 {
				t.Errorf("accuracy %g", a)
			}
			if !strings.Contains(stdout, filepath.FromSlash("run/embedding.png")) || !strings.Contains(stdout, "kNN recall") {
				t.Errorf("stdout names neither the picture nor the quality:\n%s", stdout)
			}
			lines, err := os.ReadFile("run/metrics.jsonl")
			if err != nil || strings.Count(string(lines), "\n") != 8 || strings.Contains(string(lines), "log_z") != (loss == "nc") {
				t.Errorf("metrics.jsonl (%v):\n%s", err, lines)
			}
			// The last snapshot is the embedding, and the CSV holds it with labels.
			snapshot, err1 := os.ReadFile("run/snapshots/epoch-0008.npy")
			embedding, err2 := os.ReadFile("run/embedding.npy")
			if err1 != nil || err2 != nil || !slices.Equal(snapshot, embedding) {
				t.Errorf("the last snapshot is not the embedding (%v, %v)", err1, err2)
			}
			set, err := data.Open(t.Context(), []string{"run/embedding.csv"}, data.Options{LabelColumn: "label"})
			if err != nil || set.Points.N != 300 || set.Points.D != 2 || !slices.Equal(set.Labels.Names, []string{"ant", "bee", "cat"}) {
				t.Errorf("embedding.csv: %v, %v", set, err)
			}
			// The configuration in the folder gives the run again.
			again := append(short("--config", "run/config.yaml", "--set", "loss.name="+loss), "-o", "again")
			if code, _, stderr := runCne(t.Context(), again...); code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			repeated, err := os.ReadFile("again/embedding.npy")
			if err != nil || !slices.Equal(repeated, embedding) {
				t.Errorf("the run from its config.yaml gives another embedding (%v)", err)
			}
		})
	}
}

func TestTrainOptions(t *testing.T) {
	for name, flags := range map[string][]string{
		"float64":                       {"--set", "model.dtype=float64"},
		"cosine":                        {"--set", "loss.metric=cosine", "--set", "loss.name=infonce", "--set", "model.dim=4"},
		"one dimension":                 {"--set", "model.dim=1"},
		"more dimensions than the data": {"--set", "model.dim=9"},
		"random start":                  {"--set", "model.init=random"},
		"full":                          {"--set", "loss.negatives=full"},
		"PCA":                           {"--set", "graph.pca=3", "--set", "data.scale=standard"},
		"phases":                        {"--set", "train.phases=[{epochs: 3, z_bar: uniform}, {epochs: 4, s: 0}]", "--set", "train.epochs=7"},
		"early exaggeration":            {"--set", "loss.s=0", "--set", "train.early_exaggeration=third"},
		"fixed Z":                       {"--set", "loss.name=nc", "--set", "loss.learn_z=false", "--set", "loss.log_z=-2"},
		"mean":                          {"--set", "loss.reduction=mean", "--set", "loss.scale=2"},
		"no quality":                    {"--set", "quality.recall=false", "--set", "quality.spearman=0", "--set", "quality.partition=false", "--set", "quality.kl=false", "--set", "quality.accuracy=false"},
		"recall beyond the graph":       {"--set", "quality.k=20"},
		"no cache":                      {"--set", "graph.cache=false"},
		"nothing but npy":               {"--set", "output.csv=false", "--set", "output.plot=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 60, 5)
			code, _, stderr := runCne(t.Context(), short(flags...)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			f, err := os.Open("run/embedding.npy")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			set, err := data.ReadNPY(f)
			if err != nil {
				t.Fatal(err)
			}
			var sum float64
			for _, v := range set.Points.X {
				sum += math.Abs(float64(v))
			}
			if set.Points.N != 60 || sum == 0 || math.IsNaN(sum) {
				t.Errorf("%d points with coordinates of total size %g", set.Points.N, sum)
			}
		})
	}
}

// The cache is used when points and settings are the same, and only then; a
// damaged one is written anew.
func TestTrainCache(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 80, 6)
	hit := func(flags ...string) bool {
		t.Helper()
		code, _, stderr := runCne(t.Context(), short(append(flags, "--force")...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		return strings.Contains(stderr, "come from the cache")
	}
	pca := []string{"--set", "graph.pca=4"}
	if hit(pca...) {
		t.Error("a first run finds a cache")
	}
	first, err := os.ReadFile("run/embedding.npy")
	if err != nil {
		t.Fatal(err)
	}
	if !hit(pca...) {
		t.Error("the cache is not used")
	}
	if second, err := os.ReadFile("run/embedding.npy"); err != nil || !slices.Equal(first, second) {
		t.Errorf("the run from the cache gives another embedding (%v)", err)
	}
	if !hit(append(pca, "--seed", "5", "--set", "loss.name=umap")...) {
		t.Error("another seed and loss do without the cache")
	}
	if hit("--set", "graph.pca=3") || hit(append(pca, "--set", "quality.k=16")...) || hit(append(pca, "--set", "data.scale=standard")...) {
		t.Error("the cache of other settings is used")
	}
	hit(pca...)
	writePoints(t, "points.csv", 81, 6)
	if hit(pca...) {
		t.Error("the cache of other points is used")
	}
	if err := os.Truncate("run/cache.safetensors", 1000); err != nil {
		t.Fatal(err)
	}
	if hit(pca...) || !hit(pca...) {
		t.Error("a damaged cache is used, or not mended")
	}
}

// Accuracy is that of the points with a label, and there is none for
// quantities.
func TestTrainLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		label    func(i int) string
		accuracy bool
	}{
		"all":        {func(i int) string { return fmt.Sprint(i % 3) }, true},
		"some":       {func(i int) string { return []string{fmt.Sprint(i % 3), "nan"}[i/3%2] }, true},
		"quantities": {func(i int) string { return fmt.Sprint(0.25 * float64(i)) }, false},
		"few":        {func(i int) string { return []string{"a", "nan"}[min(1, i/8)] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 90, 6)
			var labels strings.Builder
			for i := range 90 {
				labels.WriteString(tc.label(i) + "\n")
			}
			writeTestFile(t, "labels.txt", labels.String())
			code, _, stderr := runCne(t.Context(), "train", "--set", "data.path=points.csv", "--set", "data.drop=kind",
				"--set", "data.labels=labels.txt", "--epochs", "20", "-o", "run")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			a, ok := readMetrics(t, "run/metrics.json")["accuracy"]
			if ok != tc.accuracy || ok && a.(float64) < 0.9 {
				t.Errorf("accuracy %v, present: %v", a, ok)
			}
		})
	}
}

func TestTrainOnOwnGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	ring := &neighbors.Graph{N: 40, Indptr: []int64{0}}
	for i := range 40 {
		near := []int32{int32((i + 1) % 40), int32((i + 39) % 40)}
		slices.Sort(near)
		ring.Indices = append(ring.Indices, near...)
		ring.Indptr = append(ring.Indptr, int64(len(ring.Indices)))
	}
	if err := ring.WriteNPZ("ring.npz"); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runCne(t.Context(), short("--set", "graph.file=ring.npz")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if m := readMetrics(t, "run/metrics.json"); m["edges"] != 80.0 || m["knn_recall"] == nil || m["kl"] == nil {
		t.Errorf("%v edges, recall %v and divergence %v", m["edges"], m["knn_recall"], m["kl"])
	}
	writePoints(t, "points.csv", 41, 3)
	if code, _, stderr := runCne(t.Context(), short("--set", "graph.file=ring.npz", "-o", "other")...); code != 1 || !strings.Contains(stderr, "ring.npz has 40 points, but the data have 41") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestTrainIsInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 300, 6)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once training is under way
		for ctx.Err() == nil {
			if lines, err := os.ReadFile("run/metrics.jsonl"); err == nil && len(lines) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, stderr := runCne(ctx, short("--epochs", "1000000")...)
	if code != 1 || !strings.Contains(stderr, "cne: interrupted after epoch ") || !strings.Contains(stderr, "the embedding so far is in "+filepath.Join("run", "embedding.npy")) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if files := listFiles(t, "run"); slices.Contains(files, "metrics.json") || !slices.Contains(files, "embedding.png") {
		t.Errorf("files %v", files)
	}
}

func TestTrainBadInput(t *testing.T) {
	rows := func(change func(lines []string) []string) string {
		var lines []string
		for i := range 30 {
			lines = append(lines, fmt.Sprintf("%d,%d,%d", i, i*i%7, i*3%11))
		}
		return strings.Join(change(lines), "\n") + "\n"
	}
	replace := func(i int, line string) func([]string) []string {
		return func(lines []string) []string { lines[i] = line; return lines }
	}
	same := func(lines []string) []string { return lines }
	for name, tc := range map[string]struct {
		csv   string // of points.csv
		files map[string]string
		flags []string
		want  string // part of the message
	}{
		"missing file":        {rows(same), nil, []string{"--set", "data.path=nowhere.npy"}, "nowhere.npy"},
		"missing labels":      {rows(same), nil, []string{"--set", "data.labels=nowhere.txt"}, "(data.labels)"},
		"missing graph":       {rows(same), nil, []string{"--set", "graph.file=nowhere.npz"}, "graph.file cannot be used"},
		"sample":              {rows(same), nil, []string{"--set", "quality.spearman=2"}, "quality.spearman"},
		"missing folder":      {rows(same), nil, []string{"--set", "data.path=nowhere"}, "check the path (data.path)"},
		"unknown builtin":     {rows(same), nil, []string{"--set", "data.path=builtin:mnist"}, "mnist10k"},
		"builtin and file":    {rows(same), nil, []string{"--set", "data.path=['builtin:mnist10k', 'points.csv']"}, "goes with no other file"},
		"ragged row":          {rows(replace(4, "1,2")), nil, nil, "line 5"},
		"not a number":        {rows(replace(4, "1,two,3")), nil, nil, "two"},
		"NaN":                 {rows(replace(4, "1,NaN,3")), nil, nil, "line 5, column 2"},
		"infinite":            {rows(replace(4, "1,2,Inf")), nil, nil, "line 5, column 3"},
		"a single point":      {rows(func(l []string) []string { return l[:1] }), nil, nil, "there is a single point, which has no neighbours; give more points"},
		"too few points":      {rows(func(l []string) []string { return l[:12] }), nil, nil, "12 points do not have 15 neighbours each"},
		"labels":              {rows(same), map[string]string{"labels.txt": "1\n2\n3\n"}, []string{"--set", "data.labels=labels.txt"}, "3 labels"},
		"label column":        {rows(same), nil, []string{"--set", "data.label_column=kind"}, "kind"},
		"wrong magic":         {rows(same), map[string]string{"a.npy": "not an array at all"}, []string{"--set", "data.path=a.npy"}, "a.npy"},
		"unknown key":         {rows(same), nil, []string{"--set", "train.epoch=3"}, "train.epochs"},
		"range":               {rows(same), nil, []string{"--set", "train.lr=-1"}, "train.lr"},
		"graph":               {rows(same), map[string]string{"g.npz": "PK nonsense"}, []string{"--set", "graph.file=g.npz"}, "g.npz"},
		"output is a file":    {rows(same), map[string]string{"run": "x"}, nil, "the run folder run is a file"},
		"output below a file": {rows(same), map[string]string{"x": "x"}, []string{"-o", "x/run"}, "choose another output.dir"},
		"divergence":          {rows(same), nil, []string{"--set", "train.lr=1e30"}, "lower train.lr"},
		"late divergence":     {rows(same), nil, []string{"--set", "train.lr=1e6"}, "training diverged in epoch"},
		"place":               {rows(same), nil, []string{"--set", "loss.s=1e5"}, "loss.s cannot be used: the run stands at s = 100000, too far out on the spectrum"},
		"z_bar":               {rows(same), nil, []string{"--set", "loss.z_bar=1e60"}, "loss.z_bar cannot be used: the run stands at Z̄ = 1e+60, too far out on the spectrum"},
		"log_z":               {rows(same), nil, []string{"--set", "loss.name=nc", "--set", "loss.log_z=1000"}, "loss.log_z is 1000, but must be a number from -60 to 60"},
		"lr_z":                {rows(same), nil, []string{"--set", "loss.name=nc", "--set", "train.lr_z=1000", "--set", "train.clip=0"}, "lower train.lr_z"},
		"full":                {rows(same), nil, []string{"--set", "model.dim=2000000000"}, "model.dim is 2000000000, but must be at most 65536"},
		"init_std":            {rows(same), nil, []string{"--set", "model.init_std=1e-300"}, "model.init_std is 1e-300, but must be"},
		"temperature":         {rows(same), nil, []string{"--set", "loss.metric=cosine", "--set", "loss.temperature=1e-40"}, "loss.temperature is 1e-40, but must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeTestFile(t, "points.csv", tc.csv)
			for path, text := range tc.files {
				writeTestFile(t, path, text)
			}
			args := append([]string{"train", "--set", "data.path=points.csv", "--epochs", "3", "-o", "run", "--quiet"}, tc.flags...)
			code, stdout, stderr := runCne(t.Context(), args...)
			wantCode := exitFailure
			if strings.HasPrefix(stderr, "cne: --") { // the value of a flag is wrong by itself
				wantCode = exitUsage
			}
			if code != wantCode || stdout != "" || !strings.HasPrefix(stderr, "cne: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, nothing, and one line with %q", code, stdout, stderr, wantCode, tc.want)
			}
			// Nothing is left that would be in the way of the next run.
			if info, err := os.Stat("run"); err == nil && info.IsDir() {
				for _, name := range listFiles(t, "run") {
					if name != rundir.CacheFile && name != rundir.GraphFile {
						t.Errorf("%s was left", name)
					}
				}
			}
		})
	}
}

// There are no more principal components than points.
func TestTrainOnFewWidePoints(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 30, 70)
	if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
		t.Fatal(stderr)
	}
}

func TestTrainIsInterruptedBeforeTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 300, 6)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, stderr := runCne(ctx, short()...)
	if code != 1 || !strings.HasSuffix(stderr, "cne: interrupted while the points were read; nothing was written\n") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat("run"); err == nil {
		t.Error("there is a run folder")
	}
}

// An earlier run is replaced only once the new one can begin, and never if the
// new one reads its files.
func TestTrainForceIsCareful(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
		t.Fatal(stderr)
	}
	content := func() map[string]string {
		t.Helper()
		files := map[string]string{}
		for _, name := range listFiles(t, "run") {
			text, err := os.ReadFile(filepath.Join("run", name))
			if err != nil {
				t.Fatal(err)
			}
			if name != rundir.CacheFile {
				files[name] = string(text)
			}
		}
		return files
	}
	want := content()
	for name, flags := range map[string][]string{
		"missing graph":       {"--set", "graph.file=nowhere.npz"},
		"out of range":        {"--set", "loss.s=500"},
		"too many neighbours": {"--set", "graph.k=60"},
		"too far to measure":  {"--set", "quality.k=60"},
		"its own embedding":   {"--set", "data.path=run/embedding.npy", "--set", "data.label_column=null"},
		"its own graph":       {"--set", "graph.file=run/graph.npz"},
	} {
		if code, _, stderr := runCne(t.Context(), short(append(flags, "--force")...)...); code != 1 {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
		if got := content(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the files of the earlier run changed", name)
		}
	}
}

// A graph that is not cne's is not overwritten.
func TestTrainLeavesOthersGraphAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	if err := os.Mkdir("run", 0o777); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, "run/graph.npz", "mine")
	if code, _, stderr := runCne(t.Context(), short()...); code != 1 || !strings.Contains(stderr, "graph.npz that a run would overwrite") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if text, err := os.ReadFile("run/graph.npz"); err != nil || string(text) != "mine" {
		t.Errorf("the graph is %q (%v)", text, err)
	}
}

// Snapshots outlive a run that diverges.
func TestTrainKeepsSnapshots(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	code, _, stderr := runCne(t.Context(), short("--set", "output.snapshots=1", "--set", "train.phases=[{epochs: 3}, {epochs: 3, lr: 1e30}]", "--set", "train.epochs=6")...)
	if code != 1 || !strings.Contains(stderr, "training diverged in epoch 4") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if files := listFiles(t, "run"); !slices.Contains(files, "snapshots/epoch-0003.npy") || !slices.Contains(files, "metrics.jsonl") {
		t.Errorf("files %v", files)
	}
}

func TestTrainWarnsAboutGraphs(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	directed := &neighbors.Graph{N: 40, Indptr: []int64{0}}
	for i := range 40 {
		if i < 20 {
			directed.Indices = append(directed.Indices, int32(i+1))
		}
		directed.Indptr = append(directed.Indptr, int64(len(directed.Indices)))
	}
	if err := directed.WriteNPZ("directed.npz"); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runCne(t.Context(), short("--set", "graph.file=directed.npz")...)
	if code != 0 || !strings.Contains(stderr, "warning: graph.file holds a directed graph") || !strings.Contains(stderr, "points=19 of=40") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// graph.npz is the graph of the run, or not there.
func TestTrainLeavesNoStaleGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 80, 6)
	edges := func() any {
		t.Helper()
		g, err := neighbors.ReadNPZ(t.Context(), "run/graph.npz")
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return float64(g.Edges())
	}
	for _, tc := range []struct {
		flags []string
		there bool
	}{
		{nil, true},
		{[]string{"--set", "graph.k=9"}, true},
		{[]string{"--set", "graph.k=5", "--set", "graph.cache=false"}, false},
	} {
		if code, _, stderr := runCne(t.Context(), short(append(tc.flags, "--force")...)...); code != 0 {
			t.Fatal(stderr)
		}
		want := readMetrics(t, "run/metrics.json")["edges"]
		if !tc.there {
			want = nil
		}
		if got := edges(); got != want {
			t.Errorf("%v: graph.npz has %v edges, want %v", tc.flags, got, want)
		}
	}
}

// The figures are those of this embedding and these points.
func TestTrainMeasures(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 200, 6)
	if code, _, stderr := runCne(t.Context(), short("--set", "loss.name=nc", "--set", "data.scale=none", "--set", "quality.k=7")...); code != 0 {
		t.Fatal(stderr)
	}
	open := func(path, label string) *data.Matrix {
		t.Helper()
		set, err := data.Open(t.Context(), []string{path}, data.Options{LabelColumn: label})
		if err != nil {
			t.Fatal(err)
		}
		return set.Points
	}
	nearest := func(m *data.Matrix) []int32 {
		t.Helper()
		nb, err := neighbors.KNN(t.Context(), m, 7, neighbors.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return nb.Index
	}
	points, embedding := open("points.csv", "kind"), open("run/embedding.npy", "")
	recall, err := quality.KNNRecall(nearest(points), nearest(embedding), 7)
	if err != nil {
		t.Fatal(err)
	}
	partition, err := quality.PartitionFunction(t.Context(), embedding.X, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := neighbors.ReadNPZ(t.Context(), "run/graph.npz")
	if err != nil {
		t.Fatal(err)
	}
	heads, tails := graph.EdgeList()
	kl, err := quality.KL(t.Context(), heads, tails, embedding.X, 2, partition, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile("run/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		LogZ float64 `json:"log_z"`
		Loss float64 `json:"loss"`
	}
	all := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if err := json.Unmarshal([]byte(all[len(all)-1]), &last); err != nil {
		t.Fatal(err)
	}
	m := readMetrics(t, "run/metrics.json")
	for key, want := range map[string]float64{
		"knn_recall": recall, "partition_function": partition, "kl": kl, "z": math.Exp(last.LogZ) * 200 * 199, "loss": last.Loss, "n": 200, "epochs": 8, "seed": 0,
	} {
		if got := m[key].(float64); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %g, want %g", key, got, want)
		}
	}
}

// Each of the figures of section quality can be left out, and none needs
// another.
func TestTrainMeasuresWhatIsAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	figures := []string{"knn_recall", "spearman", "partition_function", "kl", "accuracy"}
	rows := []string{"kNN recall", "Spearman correlation", "partition function", "KL divergence", "kNN accuracy"}
	switches := []string{"recall=", "spearman=", "partition=", "kl=", "accuracy="}
	for asked := range figures {
		var flags []string
		for i, s := range switches {
			value := "false"
			switch {
			case i == asked && s == "spearman=":
				value = "50"
			case s == "spearman=":
				value = "0"
			case i == asked:
				value = "true"
			}
			flags = append(flags, "--set", "quality."+s+value)
		}
		code, stdout, stderr := runCne(t.Context(), short(append(flags, "--force")...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		m := readMetrics(t, "run/metrics.json")
		for i, figure := range figures {
			_, there := m[figure]
			if printed := strings.Contains(stdout, rows[i]); there != (i == asked) || printed != there {
				t.Errorf("%v: metrics.json has %s: %v, printed: %v", flags, figure, there, printed)
			}
		}
	}
}

func TestTrainKeepsOtherRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	if code, _, stderr := runCne(t.Context(), short()...); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := runCne(t.Context(), short("--seed", "2")...); code != 1 || !strings.Contains(stderr, "--force") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if m := readMetrics(t, "run/metrics.json"); m["seed"] != 0.0 {
		t.Errorf("the first run's metrics have seed %v", m["seed"])
	}
	if code, _, stderr := runCne(t.Context(), short("--seed", "2", "--force")...); code != 0 {
		t.Fatal(stderr)
	}
	if m := readMetrics(t, "run/metrics.json"); m["seed"] != 2.0 {
		t.Errorf("the second run's metrics have seed %v", m["seed"])
	}
}

// What a person gets who does nothing but start the program.
func TestTrainOnBuiltinData(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := runCne(t.Context(), "train", "--epochs", "2", "--set", "output.plot=false"); code != 0 {
		t.Fatal(stderr)
	}
	if m := readMetrics(t, "runs/mnist10k/metrics.json"); m["n"] != 10000.0 || m["accuracy"].(float64) < 0.3 {
		t.Errorf("%v points, accuracy %v", m["n"], m["accuracy"])
	}
}
