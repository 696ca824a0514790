package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cne/configs"
)

// loadText loads a configuration file with the given text, without variables.
func loadText(t testing.TB, text string, settings ...setting) (*Config, Origins, error) {
	t.Helper()
	return loadTextAs(t, trainSchema, text, settings...)
}

// loadTextAs does so for a configuration of any kind.
func loadTextAs[C any](t testing.TB, s *schema[C], text string, settings ...setting) (*C, Origins, error) {
	t.Helper()
	l, err := s.readYAML("run.yaml", []byte(text))
	if err != nil {
		return nil, nil, err
	}
	defaults, err := s.readDefaults()
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.readSettings(settings)
	if err != nil {
		return nil, nil, err
	}
	return s.merge(defaults, l, set)
}

func mustLoad(t testing.TB, text string, settings ...setting) *Config {
	t.Helper()
	c, _, err := loadText(t, text, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ptr[T any](v T) *T { return &v }

// The struct, the rules and default.yaml must list the same keys in the same
// order.
func TestKeysAgree(t *testing.T) {
	var inStruct []string
	for k := range fields(Config{}) {
		inStruct = append(inStruct, k)
	}
	if want := names(trainKeys); !slices.Equal(inStruct, want) {
		t.Errorf("Config has the keys\n%q, the rules\n%q", inStruct, want)
	}
	var inPhase []string
	for k := range fields(Phase{}) {
		inPhase = append(inPhase, k)
	}
	if want := names(phaseKeys); !slices.Equal(inPhase, want) {
		t.Errorf("Phase has the keys %q, its rules %q", inPhase, want)
	}
	inFile, _ := commentedKeys(t, configs.Default())
	if want := names(trainKeys); !slices.Equal(inFile, want) {
		t.Errorf("default.yaml has the keys\n%q, the rules\n%q", inFile, want)
	}
}

// commentedKeys returns the keys of a file in their order, and those without a
// comment of their own.
func commentedKeys(t *testing.T, text string) (all, bare []string) {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		for i := 0; i < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if v.Kind == yaml.MappingNode {
				walk(v, k.Value+".")
				continue
			}
			all = append(all, prefix+k.Value)
			if k.HeadComment == "" {
				bare = append(bare, prefix+k.Value)
			}
		}
	}
	walk(document.Content[0], "")
	return all, bare
}

func TestVariablesAreUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for _, v := range vocabularies() {
		for _, k := range names(v.keys) {
			if other, there := seen[variable(k)]; there && other != k {
				t.Errorf("%s and %s both have the variable %s", k, other, variable(k))
			}
			seen[variable(k)] = k
		}
	}
}

func TestDefaults(t *testing.T) {
	want := &Config{
		Device:     Device{Name: "auto", TF32: true},
		Output:     Output{Dir: "runs/mnist10k", CSV: true, Plot: true, HTMLImages: true},
		Data:       Data{Path: []string{"builtin:mnist10k"}, Labels: []string{}, Drop: []string{}, Header: "auto", Genes: 1000, HoldoutLabels: []string{}, Scale: "unit"},
		Graph:      Graph{K: 15, PCA: 50, Cache: true},
		Model:      Model{Kind: "table", Hidden: []int{100, 100, 100}, Input: "points", Dim: 2, DType: "float32", Init: "pca", InitStd: 1},
		Loss:       Loss{Name: "neg", Metric: "euclidean", Temperature: 0.5, Negatives: 5, Draw: "auto", Clamp: 1e-10, Reduction: "sum", PositiveInDenominator: true, LearnZ: true},
		Train:      Train{Epochs: 750, BatchSize: 1024, Optimizer: "sgd", LR: 1, LRZ: 0.001, Anneal: "linear", Clip: 4, EarlyExaggeration: "none", Phases: []Phase{}, LogEvery: 1},
		Checkpoint: Checkpoint{Minutes: 5},
		Quality:    Quality{K: 15, Recall: true, Spearman: 5000, Partition: true, KL: true, Accuracy: true},
		Log:        Log{Format: "text"},
	}
	c, origins, err := trainSchema.load(sources{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v, want\n%+v", c, want)
	}
	for _, k := range names(trainKeys) {
		if origins[k] != defaultOrigin {
			t.Errorf("the origin of %s is %q", k, origins[k])
		}
	}
}

func TestConfigFiles(t *testing.T) {
	const folder = "../../configs"
	paths, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(paths) < 9 {
		t.Fatalf("found %q, error %v", paths, err)
	}
	dirs := map[string]string{}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "simclr-") {
			continue // see TestSimCLRConfigFiles
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, _, err := trainSchema.load(sources{file: path})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, bare := commentedKeys(t, string(text)); len(bare) > 0 {
				t.Errorf("keys without a comment: %q", bare)
			}
			name := filepath.Base(path)
			if other, twice := dirs[c.Output.Dir]; twice && name != "mnist10k.yaml" {
				t.Errorf("%s has the same output.dir", other)
			}
			dirs[c.Output.Dir] = name
			if strings.HasPrefix(name, "mnist-") {
				kind, epochs, optimizer, lr := "table", 750, "sgd", 1.
				switch {
				case strings.HasPrefix(name, "mnist-parametric-"):
					kind, epochs, optimizer, lr = "mlp", 50, "adam", 0.001
				case name == "mnist-tsne-quality.yaml":
					epochs = 120 // our own
				}
				if c.Model.Kind != kind || c.Train.Epochs != epochs || c.Train.Optimizer != optimizer || c.Train.LR != lr ||
					c.Train.BatchSize != 1024 || c.Loss.Negatives != 5 ||
					c.Train.Anneal != "linear" || c.Graph.PCA != 50 || c.Graph.K != 15 || c.Loss.Reduction != "sum" {
					t.Errorf("not the paper's settings: %+v", c)
				}
			}
		})
	}
}

func TestTSNEQualityFile(t *testing.T) {
	c, _, err := trainSchema.load(sources{file: "../../configs/mnist-tsne-quality.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Stage{
		{Epochs: 20, LR: 1, Negatives: 5, Anneal: "linear"},
		{Epochs: 100, LR: 16, Negatives: Full, Anneal: "linear"},
	}
	if got := c.Stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEarlyExaggerationFile(t *testing.T) {
	c, _, err := trainSchema.load(sources{file: "../../configs/mnist-negtsne-early-exaggeration.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Stage{
		{Epochs: 250, LR: 1, ZBar: ptr(Uniform), Negatives: 5, Anneal: "linear"},
		{Epochs: 500, LR: 1, S: ptr(0.0), Negatives: 5, Anneal: "linear"},
	}
	if got := c.Stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStages(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []Stage
	}{
		{"no phases", "loss: {s: 0.5, negatives: full}\ntrain: {epochs: 3, lr: 2, anneal: none}",
			[]Stage{{Epochs: 3, LR: 2, S: ptr(0.5), Negatives: Full, Anneal: "none"}}},
		{"all inherited", "loss: {z_bar: 7}\ntrain: {phases: [{epochs: 3}, {epochs: 4, s: null, lr: null}]}",
			[]Stage{{Epochs: 3, LR: 1, ZBar: ptr(ZBar(7)), Negatives: 5, Anneal: "linear"}, {Epochs: 4, LR: 1, ZBar: ptr(ZBar(7)), Negatives: 5, Anneal: "linear"}}},
		{"nothing inherited", "loss: {z_bar: 7}\ntrain: {phases: [{epochs: 3, lr: 0.5, s: -1, negatives: full, anneal: none}]}",
			[]Stage{{Epochs: 3, LR: 0.5, S: ptr(-1.0), Negatives: Full, Anneal: "none"}}},
		{"z_bar replaces s", "loss: {s: 0.5}\ntrain: {phases: [{epochs: 3, z_bar: uniform}]}",
			[]Stage{{Epochs: 3, LR: 1, ZBar: ptr(Uniform), Negatives: 5, Anneal: "linear"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := mustLoad(t, tc.text)
			got := c.Stages()
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			sum := 0
			for _, s := range got {
				sum += s.Epochs
			}
			if c.Train.Epochs != sum {
				t.Errorf("train.epochs is %d, the stages have %d", c.Train.Epochs, sum)
			}
		})
	}
}

// What is left null depends on the model and the optimiser.
func TestDefaultsByModel(t *testing.T) {
	for text, want := range map[string]Train{
		"":                         {Epochs: 750, Optimizer: "sgd", LR: 1},
		"model: {kind: mlp}":       {Epochs: 50, Optimizer: "adam", LR: 0.001},
		"train: {optimizer: adam}": {Epochs: 750, Optimizer: "adam", LR: 0.001},
		"model: {kind: mlp}\ntrain: {optimizer: sgd}":                     {Epochs: 50, Optimizer: "sgd", LR: 1},
		"model: {kind: mlp}\ntrain: {lr: 0.1, epochs: 3}":                 {Epochs: 3, Optimizer: "adam", LR: 0.1},
		"model: {kind: mlp}\ntrain: {phases: [{epochs: 3}, {epochs: 4}]}": {Epochs: 7, Optimizer: "adam", LR: 0.001},
	} {
		c := mustLoad(t, text).Train
		if got := (Train{Epochs: c.Epochs, Optimizer: c.Optimizer, LR: c.LR}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestLossFactor(t *testing.T) {
	for text, want := range map[string]float64{
		"loss: {name: neg}":                  1,
		"loss: {name: umap}":                 1,
		"loss: {name: infonce}":              0.5,
		"loss: {name: infonce, scale: 1}":    1,
		"loss: {name: infonc-tsne}":          0.5,
		"loss: {name: neg-tsne, scale: 2.5}": 2.5,
	} {
		if got := mustLoad(t, text).Loss.Factor(); got != want {
			t.Errorf("%s: factor %g, want %g", text, got, want)
		}
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"defaults":   "",
		"full":       "loss: {name: nc, negatives: full, learn_z: false, log_z: -3.25, scale: 1e-3}",
		"uniform":    "loss: {z_bar: uniform, clamp: 0}",
		"z_bar":      "loss: {z_bar: 1e12}",
		"text":       "output: {dir: \"yes\"}\nplot: {title: \"a: b # c\\nsecond line\"}\ngraph: {file: '~'}\ndata: {path: ['-', '1', 'x y'], label_column: 3, drop: ['null', 7, \"a,b\"]}",
		"phases":     "train: {phases: [{epochs: 2, lr: 1e-10, negatives: full}, {epochs: 3, s: -1.5, anneal: none}, {epochs: 1, z_bar: 3}]}",
		"network":    "model: {kind: mlp, hidden: [3, 4], input: pca}\ntrain: {weight_decay: 1e-4, anneal: cosine, warm_up: 2}\ncheckpoint: {epochs: 3}",
		"linear":     "model: {kind: mlp, hidden: []}\ntrain: {optimizer: sgd, momentum: 0.9}",
		"a share":    "data: {holdout: 0.25}",
		"imbalance":  "data: {imbalance: linear}",
		"held files": "data: {holdout: [a.npy, '0.5.npy'], holdout_labels: b.txt}",
		"large seed": "seed: 9223372036854775807",
		"aliases":    "graph: {k: &k 30}\nquality: {k: *k}\nlog: {format: json}",
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, text)
			again := mustLoad(t, writeYAML(t, c))
			if !reflect.DeepEqual(c, again) {
				t.Errorf("got\n%+v, want\n%+v", again, c)
			}
		})
	}
}

func writeYAML(t testing.TB, c *Config) string {
	t.Helper()
	return writeYAMLAs(t, trainSchema, c)
}

func writeYAMLAs[C any](t testing.TB, s *schema[C], c *C) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// But for its first paragraph, and for what was null and depends on the model,
// what is written for the defaults is default.yaml, comments and empty lines
// included.
func TestWriteYAMLKeepsComments(t *testing.T) {
	_, want, _ := strings.Cut(configs.Default(), "\n\n")
	want = strings.NewReplacer("epochs: null", "epochs: 750", "optimizer: null", "optimizer: sgd", " lr: null", " lr: 1.0").Replace(want)
	header, got, _ := strings.Cut(writeYAML(t, mustLoad(t, "")), "\n\n")
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	if !strings.HasPrefix(header, configHeader+Version()) {
		t.Errorf("header %q", header)
	}
}

func TestPrecedence(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "run.yaml", "# a comment\nseed: 1\nloss:\n  s: 0.25\ntrain:\n  lr: 2\n  epochs: 10\n  batch_size: 64\n")
	c, origins, err := trainSchema.load(sources{
		file:    "run.yaml",
		environ: []string{"HOME=/", "CNE_TRAIN_EPOCHS=20", "CNE_TRAIN_BATCH_SIZE=128", "CNE_TRAIN_LR=", "CNE_DEBUG=1", "CNE_LIBCUDA=/x.so", "CNE_CUDA_SDK=/x"},
		settings: []setting{
			{"--set train.batch_size", "train.batch_size", "256"},
			{"--set loss.s", "loss.s", "null"},
			{"--seed", "seed", "5"},
			{"--set seed", "seed", "6"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Seed != 6 || c.Train.LR != 2 || c.Train.Epochs != 20 || c.Train.BatchSize != 256 || c.Loss.S != nil || c.Graph.K != 15 {
		t.Errorf("got %+v", c)
	}
	for k, want := range map[string]string{
		"seed":             "--set seed",
		"train.lr":         "run.yaml:6",
		"train.epochs":     "CNE_TRAIN_EPOCHS",
		"train.batch_size": "--set train.batch_size",
		"loss.s":           "--set loss.s",
		"graph.k":          "default",
	} {
		if origins[k] != want {
			t.Errorf("the origin of %s is %q, want %q", k, origins[k], want)
		}
	}
}

// A value in place of the section device is the device's name, wherever it is given.
func TestDeviceInShort(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "short.yaml", "device: cuda:1\n")
	writeTestFile(t, "long.yaml", "device:\n  name: cuda\n  tf32: false\n")
	for name, tc := range map[string]struct {
		from   sources
		want   Device
		origin string
	}{
		"a file":                 {sources{file: "short.yaml"}, Device{"cuda:1", true}, "short.yaml:1"},
		"a section":              {sources{file: "long.yaml"}, Device{"cuda", false}, "long.yaml:2"},
		"the environment":        {sources{file: "long.yaml", environ: []string{"CNE_DEVICE=cpu"}}, Device{"cpu", false}, "CNE_DEVICE"},
		"the whole key there":    {sources{environ: []string{"CNE_DEVICE_NAME=cpu"}}, Device{"cpu", true}, "CNE_DEVICE_NAME"},
		"the command line":       {sources{file: "short.yaml", settings: []setting{{"--set device", "device", "auto"}}}, Device{"auto", true}, "--set device"},
		"a flag after the short": {sources{settings: []setting{{"--set device", "device", "cuda"}, {"--device", "device.name", "cpu"}}}, Device{"cpu", true}, "--device"},
	} {
		c, origins, err := trainSchema.load(tc.from)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Device != tc.want || origins["device.name"] != tc.origin {
			t.Errorf("%s: %+v from %q, want %+v from %q", name, c.Device, origins["device.name"], tc.want, tc.origin)
		}
		s, _, err := simclrSchema.load(tc.from)
		if err != nil || s.Device != tc.want {
			t.Errorf("%s, of cne simclr: %+v (%v)", name, s, err)
		}
	}
}

func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Values from the environment and from flags are text that takes the type of
// the key.
func TestTextValues(t *testing.T) {
	for _, tc := range []struct {
		key, value string
		want       any
	}{
		{"seed", "0x10", uint64(16)},
		{"seed", "1e18", uint64(1e18)},
		{"train.epochs", "1e3", 1000},
		{"train.epochs", " 12.0 ", 12},
		{"train.lr", "1e-3", 0.001},
		{"output.csv", "false", false},
		{"output.dir", "2024-01-01", "2024-01-01"},
		{"output.dir", "a: b", "a: b"},
		{"output.dir", "null", "null"},
		{"plot.title", `"quoted # text"`, "quoted # text"},
		{"plot.title", `"Cells" of the retina`, `"Cells" of the retina`},
		{"plot.title", "", ""},
		{"graph.file", "g.npz", "g.npz"},
		{"graph.file", "null", nil},
		{"graph.file", "", nil},
		{"data.label_column", "-1", "-1"},
		{"data.label_column", "cell type", "cell type"},
		{"data.path", `C:\data\[1].csv`, []string{`C:\data\[1].csv`}},
		{"data.path", "[a.npy, 'b c.npy']", []string{"a.npy", "b c.npy"}},
		{"data.drop", "[id, 3]", []string{"id", "3"}},
		{"data.labels", "", []string{}},
		{"loss.negatives", "full", Full},
		{"loss.negatives", "16", Negatives(16)},
		{"loss.z_bar", "uniform", Uniform},
		{"loss.z_bar", "1e6", ZBar(1e6)},
		{"loss.s", "~", nil},
		{"loss.name", "nc-tsne", "nc"},
		{"data.header", "no", "no"},
		{"data.imbalance", "linear", "linear"},
		{"train.phases", "[{epochs: 2, z_bar: uniform}, {epochs: 3}]", []Phase{{Epochs: 2, ZBar: ptr(Uniform)}, {Epochs: 3}}},
	} {
		c, err := loadSetting(t, tc.key, tc.value)
		if err != nil {
			t.Errorf("%s=%s: %v", tc.key, tc.value, err)
		} else if got := lookup(*c, tc.key); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s=%s: got %#v, want %#v", tc.key, tc.value, got, tc.want)
		}
		c, _, err = trainSchema.load(sources{environ: []string{variable(tc.key) + "=" + tc.value}})
		if tc.value == "" {
			continue // counts as not set in the environment
		}
		if err != nil {
			t.Errorf("%s=%s: %v", variable(tc.key), tc.value, err)
		} else if got := lookup(*c, tc.key); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s=%s: got %#v, want %#v", variable(tc.key), tc.value, got, tc.want)
		}
	}
}

func loadSetting(t testing.TB, k, value string) (*Config, error) {
	t.Helper()
	var given []setting
	if err := (&settingFlag{list: &given}).Set(k + "=" + value); err != nil {
		t.Fatal(err)
	}
	c, _, err := loadText(t, "", given...)
	return c, err
}

func TestMissingFile(t *testing.T) {
	_, _, err := trainSchema.load(sources{file: "no/such.yaml"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "no/such.yaml") {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	if _, _, err := trainSchema.load(sources{file: dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder: got %v", err)
	}
}

func TestHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.yaml")
	writeTestFile(t, path, strings.Repeat("#", maxConfigSize+1))
	var ce *configError
	if _, _, err := trainSchema.load(sources{file: path}); !errors.As(err, &ce) || ce.Source != path {
		t.Errorf("got %v", err)
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add(configs.Default())
	for _, tc := range badFiles {
		f.Add(tc.text)
	}
	f.Add("loss: {z_bar: uniform}\ntrain: {phases: [{epochs: 2, lr: 1e-10}, {epochs: 3, s: -1.5}]}")
	f.Add("\"a\\nb\": 1")
	f.Add("a: &a [*a]\ntrain: {phases: &p [*p]}")
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := loadText(t, text)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again := mustLoad(t, writeYAML(t, c)); !reflect.DeepEqual(c, again) {
			t.Errorf("got\n%+v, want\n%+v", again, c)
		}
	})
}

func FuzzSetting(f *testing.F) {
	for _, tc := range badSettings {
		f.Add(tc.key + "=" + tc.value)
	}
	f.Add("train.phases=[{epochs: 1}]")
	f.Add("data.path=[a, b]")
	f.Add("plot.title='x'")
	f.Fuzz(func(t *testing.T, text string) {
		var given []setting
		if err := (&settingFlag{list: &given}).Set(text); err != nil {
			return
		}
		c, _, err := loadText(t, "", given...)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again := mustLoad(t, writeYAML(t, c)); !reflect.DeepEqual(c, again) {
			t.Errorf("got\n%+v, want\n%+v", again, c)
		}
	})
}

// checkSentence checks what all errors of a configuration have in common.
func checkSentence(t *testing.T, err error) {
	t.Helper()
	var ce *configError
	if !errors.As(err, &ce) {
		t.Errorf("not a configError: %v", err)
		return
	}
	if ce.Source == "" || ce.Problem == "" || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
		t.Errorf("not one sentence with its source: %q", err)
	}
}

// Points of one's own do not go to the folder of the built-in ones.
func TestDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		settings []setting
		want     string
	}{
		{nil, "runs/mnist10k"},
		{[]setting{{"--set", "data.path", "builtin:mnist10k"}}, "runs/mnist10k"},
		{[]setting{{"--set", "data.path", "some/points.csv.gz"}}, "runs/points"},
		{[]setting{{"--set", "data.path", "['a-0.5', 'b.npy']"}}, "runs/a-0.5"},
		{[]setting{{"--set", "data.path", "/"}}, "runs/points"},
		{[]setting{{"--set", "data.path", "points.npy"}, {"--output", "output.dir", "here"}}, "here"},
		{[]setting{{"--set", "data.path", "points.npy"}, {"--output", "output.dir", "runs/mnist10k"}}, "runs/mnist10k"},
	} {
		c, _, err := trainSchema.load(sources{settings: tc.settings})
		if err != nil {
			t.Fatal(err)
		}
		if c.Output.Dir != tc.want {
			t.Errorf("%v: folder %s, want %s", tc.settings, c.Output.Dir, tc.want)
		}
	}
}
