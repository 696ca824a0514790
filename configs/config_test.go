package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/train"
	"cne/train/quality"
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
	return s.merge(Sources{}, l, set)
}

func mustLoad(t testing.TB, text string, settings ...Setting) *Config {
	t.Helper()
	return loaded(loadText(t, text, settings...))(t)
}

// The struct and default.yaml must list the same keys in the same order.
func TestKeysAgree(t *testing.T) {
	inFile, _ := commentedKeys(t, defaults)
	if first := keysOf(reflect.TypeFor[Config]()); len(first) != len(inFile) {
		t.Errorf("%d keys, but %d in the file", len(first), len(inFile))
	}
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
		Embed: cne.Options{
			Scaling: data.ScaleAuto, GraphMetric: data.Euclidean, Components: new(cne.AutoComponents), Neighbors: 15, Hidden: []int{100, 100, 100}, Dim: 2, InitStd: 1,
			Temperature: 0.5, Negatives: 5, Clamp: new(1e-10), Epochs: 750, BatchSize: 1024, Optimizer: cne.SGD, LR: 1, LRZ: new(0.001), Clip: new(4.), Phases: []cne.Phase{},
		},
		Device:     Device{Name: "auto", Precision: TF32},
		Output:     Output{Dir: "runs/mnist10k", CSV: true, Plot: true, HTMLImages: true, HTMLColumns: []string{}},
		Data:       Data{Path: []string{"builtin:mnist10k"}, Labels: []string{}, Columns: []string{}, Drop: []string{}, Missing: "refuse", Header: file.HeaderAuto, Genes: 1000, HoldoutLabels: []string{}},
		Graph:      Graph{Cache: Cache{Keep: true}},
		Model:      Model{Kind: "table", Init: "pca"},
		Train:      Training{LogEvery: 1},
		Checkpoint: Checkpoint{Minutes: 5},
		Quality:    Quality{Options: quality.Options{K: 15, Sample: new(20000), SpearmanSample: new(5000)}, Recall: true, Partition: true, KL: true, Accuracy: true},
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
				kind, epochs, optimizer, lr := "table", 750, cne.SGD, 1.
				switch {
				case strings.HasPrefix(name, "mnist-parametric-"):
					kind, epochs, optimizer, lr = "mlp", 50, cne.Adam, 0.001
				case name == "mnist-tsne-quality.yaml":
					epochs = 120 // our own
				}
				if c.Model.Kind != kind || c.Embed.Epochs != epochs || c.Embed.Optimizer != optimizer || c.Embed.LR != lr ||
					c.Embed.BatchSize != 1024 || c.Embed.Negatives != 5 ||
					c.Embed.Schedule != train.Linear || *c.Embed.Components != 50 || c.Embed.Neighbors != 15 || c.Embed.Mean {
					t.Errorf("not the paper's Settings: %+v", c)
				}
			}
		})
	}
}

// phasesOf returns the phases of a run.
func phasesOf(c *Config) []train.Phase {
	o := c.Options()
	return o.FitOptions().Phases
}

func TestTSNEQualityFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "mnist-tsne-quality.yaml"}))(t)
	want := []train.Phase{
		{Epochs: 20, LR: 1, Negatives: 5, Schedule: train.Linear},
		{Epochs: 100, LR: 16, Negatives: train.Full, Schedule: train.Linear},
	}
	if got := phasesOf(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMillionFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "million.yaml"}))(t)
	want := []train.Phase{
		{Epochs: 4, LR: 0.5, Spectrum: train.FromS(1.), Negatives: 5, Schedule: train.Linear},
		{Epochs: 14, LR: 8, Spectrum: train.FromS(0.), Negatives: 500, Schedule: train.Linear},
		{Epochs: 5, LR: 0.5, Spectrum: train.FromS(4.), Negatives: 50, Schedule: train.Linear},
	}
	if got := phasesOf(c); !reflect.DeepEqual(got, want) || *c.Quality.Sample >= 1_000_000 {
		t.Errorf("got %+v, want %+v, and quality from a sample, not of %d points", got, want, *c.Quality.Sample)
	}
}

func TestEarlyExaggerationFile(t *testing.T) {
	c := loaded(Train.Load(Sources{File: "mnist-negtsne-early-exaggeration.yaml"}))(t)
	want := []train.Phase{
		{Epochs: 250, LR: 1, Spectrum: train.FromZBar(0), Negatives: 5, Schedule: train.Linear},
		{Epochs: 500, LR: 1, Spectrum: train.FromS(0.0), Negatives: 5, Schedule: train.Linear},
	}
	if got := phasesOf(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Null values take defaults that depend on the model and the optimiser.
func TestDefaultsByModel(t *testing.T) {
	for text, want := range map[string]cne.Options{
		"":                         {Epochs: 750, Optimizer: cne.SGD, LR: 1},
		"model: {kind: mlp}":       {Epochs: 50, Optimizer: cne.Adam, LR: 0.001},
		"train: {optimizer: adam}": {Epochs: 750, Optimizer: cne.Adam, LR: 0.001},
		"model: {kind: mlp}\ntrain: {optimizer: sgd}":                     {Epochs: 50, Optimizer: cne.SGD, LR: 1},
		"model: {kind: mlp}\ntrain: {lr: 0.1, epochs: 3}":                 {Epochs: 3, Optimizer: cne.Adam, LR: 0.1},
		"model: {kind: mlp}\ntrain: {phases: [{epochs: 3}, {epochs: 4}]}": {Epochs: 7, Optimizer: cne.Adam, LR: 0.001},
	} {
		if got := mustLoad(t, text).Embed; got.Epochs != want.Epochs || got.Optimizer != want.Optimizer || got.LR != want.LR {
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
		o := mustLoad(t, text).Options()
		if got := o.Objective().Scale; got != want {
			t.Errorf("%s: factor %g, want %g", text, got, want)
		}
	}
}
