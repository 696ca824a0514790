package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cne/data"
	"cne/data/file"
	"cne/model/op"
	"cne/train"
)

// loadText loads a configuration file with the given text, without variables.
func loadText(t testing.TB, text string, settings ...Setting) (*Config, Origins, error) {
	t.Helper()
	return loadTextAs(t, Train, text, settings...)
}

// loadTextAs does so for a configuration of any kind.
func loadTextAs[C any](t testing.TB, s *Schema[C], text string, settings ...Setting) (*C, Origins, error) {
	t.Helper()
	l, err := s.readYAML("run.yaml", []byte(text))
	if err != nil {
		return nil, nil, err
	}
	set, err := s.readSettings(settings)
	if err != nil {
		return nil, nil, err
	}
	return s.merge(l, set)
}

func mustLoad(t testing.TB, text string, settings ...Setting) *Config {
	t.Helper()
	return loaded(loadText(t, text, settings...))(t)
}

func ptr[T any](v T) *T { return &v }

// The struct and default.yaml must list the same keys in the same order.
func TestKeysAgree(t *testing.T) {
	inFile, _ := commentedKeys(t, defaults)
	if want := names(Train.keys); !slices.Equal(inFile, want) {
		t.Errorf("default.yaml has the keys\n%q, Config\n%q", inFile, want)
	}
}

// commentedKeys returns the keys of a file in their order, and those without a
// comment of their own.
func commentedKeys(t *testing.T, text string) (all, bare []string) {
	t.Helper()
	var document yaml.Node
	must(t, yaml.Unmarshal([]byte(text), &document))
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

func TestDefaults(t *testing.T) {
	want := &Config{
		Device:     Device{Name: "auto", Precision: TF32},
		Output:     Output{Dir: "runs/mnist10k", CSV: true, Plot: true, HTMLImages: true, HTMLColumns: []string{}},
		Data:       Data{Path: []string{"builtin:mnist10k"}, Labels: []string{}, Columns: []string{}, Drop: []string{}, Header: file.HeaderAuto, Genes: 1000, HoldoutLabels: []string{}, Scale: data.ScaleUnit},
		Graph:      Graph{K: 15, Metric: data.Euclidean, PCA: 50, Cache: Cache{Keep: true}},
		Model:      Model{Kind: "table", Hidden: []int{100, 100, 100}, Input: "points", Dim: 2, DType: "float32", Init: "pca", InitStd: 1},
		Loss:       Loss{Name: op.Neg, Metric: op.Euclidean, Temperature: 0.5, Negatives: 5, Sampling: train.SampleAuto, Clamp: 1e-10, Reduction: "sum", PositiveInDenominator: true, LearnZ: true},
		Train:      Optimization{Epochs: 750, BatchSize: 1024, Optimizer: "sgd", LR: 1, LRZ: 0.001, Schedule: train.Linear, Clip: 4, Phases: []Phase{}, LogEvery: 1},
		Checkpoint: Checkpoint{Minutes: 5},
		Quality:    Quality{K: 15, Points: 20000, Recall: true, Spearman: 5000, Partition: true, KL: true, Accuracy: true},
		Log:        Log{Format: "text"},
	}
	c, origins, err := Train.Load(Sources{})
	must(t, err)
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v, want\n%+v", c, want)
	}
	for _, k := range names(Train.keys) {
		if origins[k] != defaultOrigin {
			t.Errorf("the origin of %s is %q", k, origins[k])
		}
	}
}

func TestConfigFiles(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil || len(paths) < 9 {
		t.Fatalf("found %q, error %v", paths, err)
	}
	dirs := map[string]string{}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "simclr-") || strings.HasPrefix(filepath.Base(path), "tsimcne-") {
			continue // see TestSimCLRFiles
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := loaded(Train.Load(Sources{File: path}))(t)
			text := need(os.ReadFile(path))(t)
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
					c.Train.Schedule != train.Linear || c.Graph.PCA != 50 || c.Graph.K != 15 || c.Loss.Reduction != "sum" {
					t.Errorf("not the paper's Settings: %+v", c)
				}
			}
		})
	}
}

func TestTSNEQualityFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "mnist-tsne-quality.yaml"}))(t)
	want := []Stage{
		{Epochs: 20, LR: 1, Negatives: 5, Schedule: train.Linear},
		{Epochs: 100, LR: 16, Negatives: Full, Schedule: train.Linear},
	}
	if got := c.Stages(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMillionFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "million.yaml"}))(t)
	want := []Stage{
		{Epochs: 4, LR: 0.5, S: ptr(1.), Negatives: 5, Schedule: train.Linear},
		{Epochs: 14, LR: 8, S: ptr(0.), Negatives: 500, Schedule: train.Linear},
		{Epochs: 5, LR: 0.5, S: ptr(4.), Negatives: 50, Schedule: train.Linear},
	}
	if got := c.Stages(); !reflect.DeepEqual(got, want) || c.Quality.Points >= 1_000_000 {
		t.Errorf("got %+v, want %+v, and quality from a sample, not of %d points", got, want, c.Quality.Points)
	}
}

func TestEarlyExaggerationFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "mnist-negtsne-early-exaggeration.yaml"}))(t)
	want := []Stage{
		{Epochs: 250, LR: 1, ZBar: ptr(Uniform), Negatives: 5, Schedule: train.Linear},
		{Epochs: 500, LR: 1, S: ptr(0.0), Negatives: 5, Schedule: train.Linear},
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
			[]Stage{{Epochs: 3, LR: 2, S: ptr(0.5), Negatives: Full, Schedule: train.Constant}}},
		{"all inherited", "loss: {z_bar: 7}\ntrain: {phases: [{epochs: 3}, {epochs: 4, s: null, lr: null}]}",
			[]Stage{{Epochs: 3, LR: 1, ZBar: ptr(ZBar(7)), Negatives: 5, Schedule: train.Linear}, {Epochs: 4, LR: 1, ZBar: ptr(ZBar(7)), Negatives: 5, Schedule: train.Linear}}},
		{"nothing inherited", "loss: {z_bar: 7}\ntrain: {phases: [{epochs: 3, lr: 0.5, s: -1, negatives: full, anneal: none}]}",
			[]Stage{{Epochs: 3, LR: 0.5, S: ptr(-1.0), Negatives: Full, Schedule: train.Constant}}},
		{"z_bar replaces s", "loss: {s: 0.5}\ntrain: {phases: [{epochs: 3, z_bar: uniform}]}",
			[]Stage{{Epochs: 3, LR: 1, ZBar: ptr(Uniform), Negatives: 5, Schedule: train.Linear}}},
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
	for text, want := range map[string]Optimization{
		"":                         {Epochs: 750, Optimizer: "sgd", LR: 1},
		"model: {kind: mlp}":       {Epochs: 50, Optimizer: "adam", LR: 0.001},
		"train: {optimizer: adam}": {Epochs: 750, Optimizer: "adam", LR: 0.001},
		"model: {kind: mlp}\ntrain: {optimizer: sgd}":                     {Epochs: 50, Optimizer: "sgd", LR: 1},
		"model: {kind: mlp}\ntrain: {lr: 0.1, epochs: 3}":                 {Epochs: 3, Optimizer: "adam", LR: 0.1},
		"model: {kind: mlp}\ntrain: {phases: [{epochs: 3}, {epochs: 4}]}": {Epochs: 7, Optimizer: "adam", LR: 0.001},
	} {
		c := mustLoad(t, text).Train
		if got := (Optimization{Epochs: c.Epochs, Optimizer: c.Optimizer, LR: c.LR}); !reflect.DeepEqual(got, want) {
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
