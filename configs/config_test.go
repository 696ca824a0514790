package configs

import (
	"fmt"
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
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// loadText loads a configuration file with the given text, without variables.
func loadText(t testing.TB, text string, settings ...Setting) (*Config, Origins, error) {
	t.Helper()
	return loadTextAs(t, Train, text, settings...)
}

// loadTextAs does so for a configuration of any kind.
func loadTextAs[C any](t testing.TB, s *Schema[C], text string, settings ...Setting) (_ *C, _ Origins, err error) {
	t.Helper()
	defer kind.Catch(&err)
	l := s.readYAML("run.yaml", []byte(text))
	if s.Has("preset") && l.value["preset"] == nil { // whose values are the file's, mostly
		settings = append([]Setting{{"test", "preset", "paper"}}, settings...)
	}
	return s.merge(&Sources{}, l, s.readSettings(settings))
}

func mustLoad(t testing.TB, text string, settings ...Setting) *Config {
	t.Helper()
	return loaded(loadText(t, text, settings...))(t)
}

// The struct and default.yaml must list the same keys in the same order.
func TestKeysAgree(t *testing.T) {
	inFile, _ := commentedKeys(t, defaults)
	if first := keysOf(option.Fields(reflect.TypeFor[Config]())); len(first) != len(inFile) {
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
			Temperature: 0.5, Negatives: 5, Clamp: new(1e-10), Epochs: 750, BatchSize: 1024, Optimizer: cne.SGD, LR: 1, LRZ: new(0.001), Clip: new(4.), Phases: []cne.Phase{}, Gather: true,
		},
		Device:     Device{Name: "auto", Precision: TF32},
		Output:     Output{Dir: "runs/mnist10k", CSV: true, Plot: true, HTMLColumns: []string{}},
		Data:       Data{Path: []string{"builtin:mnist10k"}, Options: file.Options{Labels: []string{}, Only: []string{}, Drop: []string{}, Categories: []string{}, Dates: []string{}, NA: []string{}, Header: file.HeaderAuto}, Missing: "auto", ZeroRows: "keep", Genes: 1000, HoldoutLabels: []string{}},
		Graph:      Graph{Cache: Cache{Keep: true}},
		Model:      Model{Kind: "table", Init: "pca"},
		Checkpoint: Checkpoint{Minutes: 5},
		Quality:    Quality{Options: quality.Options{K: 15, Sample: new(20000), SpearmanSample: new(1000)}, Recall: true, Partition: true, KL: true, Accuracy: true},
		Log:        Log{Format: "text"},
	}
	c, err := Train.Parse("default.yaml", []byte(defaults))
	must(t, err)
	_, origins, err := Train.Load(&Sources{})
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
	strict, _ := filepath.Glob("paper/*.yaml")
	if err != nil || len(paths) < 9 || len(strict) < 2 {
		t.Fatalf("found %q and %q, error %v", paths, strict, err)
	}
	paths = append(paths, strict...)
	dirs := map[string]string{}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "simclr-") || strings.HasPrefix(filepath.Base(path), "tsimcne-") {
			continue // see TestSimCLRFiles
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := loaded(Train.Load(&Sources{File: path}))(t)
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
				case name == "mnist-network.yaml":
					kind, optimizer, lr = "mlp", cne.Adam, 0.001
				case name == "mnist-tsne-quality.yaml":
					return // see TestPresets
				}
				if c.Model.Kind != kind || c.Embed.Epochs != epochs || c.Embed.Optimizer != optimizer || c.Embed.LR != lr ||
					c.Embed.BatchSize != 1024 || c.Embed.Negatives != 5 ||
					c.Embed.Schedule != train.Linear || *c.Embed.Components != 50 || c.Embed.Neighbors != 15 {
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

// The presets, for numbers of points, as their files have them.
func TestPresets(t *testing.T) {
	inTwo := func(clustered, spread int, first, last float64) []train.Phase {
		return []train.Phase{
			{Epochs: clustered, LR: first, Spectrum: train.FromS(1.), Negatives: train.All}, {Epochs: spread, LR: last, Negatives: train.All},
		}
	}
	for _, c := range []struct {
		preset string
		n, k   int
		loss   op.Loss
		want   []train.Phase
	}{
		{"auto", 20, 5, op.InfoNC, inTwo(100, 200, 1, 1)},
		{"auto", 2000, 20, op.InfoNC, inTwo(100, 200, 2, 1)},
		{"auto", 10000, 15, op.InfoNC, inTwo(100, 200, 10, 5)},
		{"auto", 20000, 15, op.InfoNC, inTwo(100, 200, 12, 10)},
		{"fast", 5000, 20, op.InfoNC, inTwo(100, 200, 5, 2.5)},
		{"fast", 10000, 15, op.InfoNC, inTwo(25, 50, 10, 5)},
		{"paper", 70000, 15, op.Neg, []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}},
		{"paper", 20, 5, op.Neg, []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}},
		{"umap", 70000, 15, op.UMAP, []train.Phase{{Epochs: 200, LR: 1, Negatives: 5}}},
		{"tsne", 70000, 15, op.InfoNC, []train.Phase{{Epochs: 20, LR: 1, Negatives: 5}, {Epochs: 180, LR: 12, Negatives: train.All}}},
		{"million", 1000000, 15, op.InfoNC, []train.Phase{
			{Epochs: 44, LR: 3, Spectrum: train.FromS(1.), Negatives: train.All, Schedule: train.Constant},
			{Epochs: 40, LR: 12, Negatives: train.All},
		}},
		{"auto", 100000, 15, op.InfoNC, []train.Phase{
			{Epochs: 44, LR: 3, Spectrum: train.FromS(1.), Negatives: train.All, Schedule: train.Constant},
			{Epochs: 100, LR: 12, Negatives: train.All},
		}},
	} {
		l, _, err := Train.Load(&Sources{Points: c.n, Settings: []Setting{{"--preset", "preset", c.preset}}})
		must(t, err)
		if got := phasesOf(l); !reflect.DeepEqual(got, c.want) || l.Embed.Neighbors != c.k || l.Embed.Loss != c.loss {
			t.Errorf("%s for %d points: k = %d, loss %v, phases %+v; want %d, %v, %+v", c.preset, c.n, l.Embed.Neighbors, l.Embed.Loss, got, c.k, c.loss, c.want)
		}
	}
}

// The preset million searches approximately where auto would not: above 100 000 points this
// depends on the device.
func TestSearchOfPresets(t *testing.T) {
	for _, c := range []struct {
		preset string
		n      int
		want   neighbors.SearchMethod
	}{
		{"auto", 70000, neighbors.Auto}, {"auto", 1000000, neighbors.Auto}, {"million", 19999, neighbors.Auto},
		{"million", 20000, neighbors.Approximate}, {"million", 100000, neighbors.Approximate}, {"million", 100001, neighbors.Auto},
	} {
		l, _, err := Train.Load(&Sources{Points: c.n, Settings: []Setting{{"--preset", "preset", c.preset}}})
		must(t, err)
		if l.Embed.Search != c.want {
			t.Errorf("%s for %d points searches neighbours by %v, want %v", c.preset, c.n, l.Embed.Search, c.want)
		}
	}
}

// What is given takes precedence over the preset, and chooses what goes with it.
func TestPresetsGiveWay(t *testing.T) {
	for text, want := range map[string]string{
		"loss: {s: 0}":                                          "neg [{500 1}]",
		"loss: {z_bar: 1e6}":                                    "neg [{500 1}]",
		"loss: {name: umap}":                                    "umap [{500 1}]",
		"loss: {negatives: 7}":                                  "nc [{20 1} {118 4}]",
		"train: {epochs: 14}":                                   "infonc [{4 10} {10 5}]",
		"train: {epochs: 1}":                                    "infonc [{1 5}]",
		"train: {lr: 2}":                                        "infonc [{100 2} {200 2}]",
		"model: {dim: 3}":                                       "nc [{20 1} {118 4}]",
		"train: {phases: [{epochs: 3, s: 1}]}":                  "neg [{3 1}]",
		"{preset: million, loss: {name: nc}}":                   "nc [{20 1} {118 4}]",
		"preset: tsne":                                          "infonc [{20 1} {180 10}]",
		"{preset: tsne, loss: {negatives: all}}":                "infonc [{20 1} {180 10}]",
		"{preset: tsne, loss: {negatives: full}}":               "infonc [{20 1} {100 16}]",
		"{preset: tsne, model: {dim: 3}}":                       "infonc [{20 1} {100 16}]",
		"{preset: tsne, loss: {metric: cosine}}":                "infonc [{20 1} {100 16}]",
		"{preset: tsne, train: {optimizer: adam}}":              "infonc [{20 1} {100 16}]",
		"{preset: tsne, train: {momentum: 0.5, lr: 2}}":         "infonc [{20 1} {100 2}]",
		"{preset: paper, loss: {name: nc}, train: {epochs: 9}}": "nc [{9 1}]",
	} {
		l, err := Train.Parse("run.yaml", []byte(text))
		must(t, err)
		var phases []string
		for _, p := range phasesOf(l) {
			phases = append(phases, fmt.Sprintf("{%d %v}", p.Epochs, p.LR))
		}
		if got := fmt.Sprint(l.Embed.Loss, " ", phases); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestEarlyExaggerationFile(t *testing.T) {
	c := loaded(Train.Load(&Sources{File: "mnist-negtsne-early-exaggeration.yaml"}))(t)
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
