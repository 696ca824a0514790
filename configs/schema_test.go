package configs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cne"
	"cne/data/file"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
)

func TestPrecedence(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "run.yaml", "# a comment\nseed: 1\nloss:\n  s: 0.25\ntrain:\n  lr: 2\n  epochs: 10\n  batch_size: 64\n")
	c, origins, err := Train.Load(&Sources{
		File:    "run.yaml",
		Environ: []string{"HOME=/", "CNE_TRAIN_EPOCHS=20", "CNE_TRAIN_BATCH_SIZE=128", "CNE_TRAIN_LR=", "CNE_DEBUG=1", "CNE_LIBCUDA=/x.so", "CNE_CUDA_SDK=/x"},
		Settings: []Setting{
			{"--set train.batch_size", "train.batch_size", "256"},
			{"--set loss.s", "loss.s", "null"},
			{"--seed", "seed", "5"},
			{"--set seed", "seed", "6"},
		},
	})
	must(t, err)
	if c.Embed.Seed != 6 || c.Embed.LR != 2 || c.Embed.Epochs != 20 || c.Embed.BatchSize != 256 || c.Embed.Spectrum.S != nil || c.Embed.Neighbors != 15 {
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

// A value instead of the section device is the device's name, from any source.
func TestDeviceInShort(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "short.yaml", "device: cuda:1\n")
	writeTestFile(t, "long.yaml", "device:\n  name: cuda\n  precision: float32\n")
	for name, tc := range map[string]struct {
		from   Sources
		want   Device
		origin string
	}{
		"a file":                 {Sources{File: "short.yaml"}, Device{Name: "cuda:1", Precision: TF32}, "short.yaml:1"},
		"a section":              {Sources{File: "long.yaml"}, Device{Name: "cuda", Precision: Float32}, "long.yaml:2"},
		"the environment":        {Sources{File: "long.yaml", Environ: []string{"CNE_DEVICE=cpu"}}, Device{Name: "cpu", Precision: Float32}, "CNE_DEVICE"},
		"the whole key there":    {Sources{Environ: []string{"CNE_DEVICE_NAME=cpu"}}, Device{Name: "cpu", Precision: TF32}, "CNE_DEVICE_NAME"},
		"the command line":       {Sources{File: "short.yaml", Settings: []Setting{{"--set device", "device", "auto"}}}, Device{Name: "auto", Precision: TF32}, "--set device"},
		"a flag after the short": {Sources{Settings: []Setting{{"--set device", "device", "cuda"}, {"--device", "device.name", "cpu"}}}, Device{Name: "cpu", Precision: TF32}, "--device"},
	} {
		c, origins, err := Train.Load(&tc.from)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Device != tc.want || origins["device.name"] != tc.origin {
			t.Errorf("%s: %+v from %q, want %+v from %q", name, c.Device, origins["device.name"], tc.want, tc.origin)
		}
		s, _, err := Pretrain.Load(&tc.from)
		if err != nil || s.Device != tc.want {
			t.Errorf("%s, of cne simclr: %+v (%v)", name, s, err)
		}
	}
}

// Values from the environment and from flags are text that takes the type of
// the key.
func TestTextValues(t *testing.T) {
	for _, tc := range []struct {
		key, value string
		want       any
	}{
		{"seed", "1e18", uint64(1e18)},
		{"train.epochs", "1e3", 1000},
		{"train.epochs", " 12.0 ", 12},
		{"train.lr", "1e-3", 0.001},
		{"output.csv", "false", false},
		{"output.dir", "2024-01-01", "2024-01-01"},
		{"output.dir", "a: b", "a: b"},
		{"output.dir", "null", "null"},
		{"output.dir", `"quoted # text"`, "quoted # text"},
		{"output.dir", `"Cells" of the retina`, `"Cells" of the retina`},
		{"graph.file", "g.npz", "g.npz"},
		{"graph.file", "null", nil},
		{"data.label_column", "-1", "-1"},
		{"data.label_column", "cell type", "cell type"},
		{"data.path", `C:\data\[1].csv`, []string{`C:\data\[1].csv`}},
		{"data.path", "[a.npy, 'b c.npy']", []string{"a.npy", "b c.npy"}},
		{"data.drop", "[id, 3]", []string{"id", "3"}},
		{"data.drop", "sex, island", []string{"sex", "island"}},
		{"data.drop", `["a,b"]`, []string{"a,b"}},
		{"data.holdout", "a.npy,b.npy", Holdout{Paths: []string{"a.npy", "b.npy"}}},
		{"model.hidden", "100,50", []int{100, 50}},
		{"model.hidden", "[100, 50]", []int{100, 50}},
		{"data.columns", "vector", []string{"vector"}},
		{"data.labels", "", []string{}},
		{"loss.negatives", "full", train.Full},
		{"loss.negatives", "16", 16},
		{"loss.z_bar", "uniform", 0.},
		{"loss.z_bar", "1e6", 1e6},
		{"loss.s", "~", nil},
		{"loss.name", "nc-tsne", op.NC},
		{"data.header", "no", file.HeaderNone},
		{"data.imbalance", "linear", "linear"},
		{"train.phases", "[{epochs: 2, z_bar: uniform}, {epochs: 3}]", []cne.Phase{{Epochs: 2, Spectrum: train.FromZBar(0)}, {Epochs: 3}}},
	} {
		c, err := loadSetting(t, tc.key, tc.value)
		if err != nil {
			t.Errorf("%s=%s: %v", tc.key, tc.value, err)
		} else if got := valueOf(c, tc.key); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s=%s: got %#v, want %#v", tc.key, tc.value, got, tc.want)
		}
		c, _, err = Train.Load(&Sources{Environ: []string{variable(tc.key) + "=" + tc.value}})
		if tc.value == "" {
			continue // counts as not set in the environment
		}
		if err != nil {
			t.Errorf("%s=%s: %v", variable(tc.key), tc.value, err)
		} else if got := valueOf(c, tc.key); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s=%s: got %#v, want %#v", variable(tc.key), tc.value, got, tc.want)
		}
	}
}

// A number that is not written as a plain decimal is decimal where numbers stand and a name
// where names stand, wherever it is given.
func TestZeroPadded(t *testing.T) {
	for _, x := range []struct {
		keys, value string
		want        any
	}{
		{"seed", "010", uint64(10)}, {"seed", "08", uint64(8)}, {"seed", "1_1", uint64(11)}, {"seed", "+007", uint64(7)},
		{"train.epochs graph.k train.batch_size quality.sample loss.negatives graph.pca", "0100", 100},
		{"train.epochs graph.k data.genes", "1e3", 1000},
		{"train.lr train.clip loss.s loss.z_bar", "010", 10.}, {"train.lr", "00.5", 0.5}, {"train.lr", "08.5e1", 85.},
		{"model.hidden", "[010, 08, 1_1]", []int{10, 8, 11}}, {"model.hidden", "0010", []int{10}},
		{"train.phases", "[{epochs: 010}, {epochs: 08, lr: 00.5}]", []cne.Phase{{Epochs: 10}, {Epochs: 8, LR: 0.5}}},
		{"data.sample", "0100", Sample{Number: 100}}, {"data.sample", "00.5", Sample{Share: 0.5}}, {"data.sample", "0x10", Sample{File: "0x10"}},
		{"data.holdout", "00.5", Holdout{Share: 0.5}}, {"data.holdout", "[010, 0x10]", Holdout{Paths: []string{"010", "0x10"}}},
		{"data.columns data.drop data.categories data.dates data.na output.html_columns data.path data.labels", "[age, 010, 08, 1_1, 0x10, 0b1, 1e3, 1.50, -0, 7, -1, 0, 2024-01-01]",
			[]string{"age", "010", "08", "1_1", "0x10", "0b1", "1e3", "1.50", "-0", "7", "-1", "0", "2024-01-01"}},
		{"data.columns data.drop", "010", []string{"010"}},
		{"data.label_column data.names graph.file output.dir", "010", "010"},
		{"data.label_column data.names graph.file output.dir", "1e3", "1e3"},
		{"data.label_column data.names graph.file output.dir", "0x1_0", "0x1_0"},
		{"data.label_column data.names", "-2", "-2"},
		{"graph.cache", "010", Cache{Keep: true, Folder: "010"}},
	} {
		for k := range strings.FieldsSeq(x.keys) {
			line := k + ": " + x.value
			if section, key, ok := strings.Cut(k, "."); ok {
				line = section + ": {" + key + ": " + x.value + "}"
			}
			for source, load := range map[string]func() (*Config, error){
				"a file": func() (*Config, error) { c, _, err := loadText(t, line); return c, err },
				"--set":  func() (*Config, error) { return loadSetting(t, k, x.value) },
				"a flag": func() (*Config, error) { c, _, err := loadText(t, "", Setting{"--flag", k, x.value}); return c, err },
				"the variable": func() (*Config, error) {
					c, _, err := Train.Load(&Sources{Environ: []string{variable(k) + "=" + x.value}})
					return c, err
				},
			} {
				c, err := load()
				if err != nil {
					t.Errorf("%s in %s: %v", line, source, err)
				} else if got := valueOf(c, k); !reflect.DeepEqual(got, x.want) {
					t.Errorf("%s in %s: got %#v, want %#v", line, source, got, x.want)
				} else if again := mustLoad(t, writeYAMLAs(t, Train, c)); !reflect.DeepEqual(again, c) {
					t.Errorf("%s is not what is written", line)
				}
			}
		}
	}
}

// Lists of texts add up over the settings, where files whose names have commas stay whole;
// of everything else the last counts.
func TestSettingsAddUp(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "a,b.csv", "x,kind\n")
	for _, tc := range []struct {
		key  string
		want any
		set  []string
	}{
		{"data.drop", []string{"sex", "island", "id"}, []string{"sex,island", "id"}},
		{"data.drop", []string{"sex", "island"}, []string{"[sex]", "[island]"}},
		{"data.drop", []string{"sex"}, []string{"[]", "sex"}},
		{"data.path", []string{"a,b.csv"}, []string{"a,b.csv"}},
		{"data.path", []string{"c", "d.csv", "a,b.csv"}, []string{"c,d.csv", "a,b.csv"}},
		{"data.labels", []string{"a,b.csv:kind"}, []string{"a,b.csv:kind"}},
		{"model.hidden", []int{50}, []string{"100,100", "50"}},
		{"data.holdout", Holdout{Share: 0.2}, []string{"x.npy", "0.2"}},
		{"loss.s", 0.5, []string{"0", "0.5"}},
	} {
		var settings []Setting
		for _, value := range tc.set {
			settings = append(settings, Setting{"--set " + tc.key, tc.key, value})
		}
		c, _, err := Train.Load(&Sources{Settings: settings, Environ: []string{"CNE_DATA_DROP=other"}})
		if err != nil {
			t.Errorf("%s=%q: %v", tc.key, tc.set, err)
		} else if got := valueOf(c, tc.key); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s=%q: got %#v, want %#v", tc.key, tc.set, got, tc.want)
		}
	}
}

// valueOf returns the value of a key.
func valueOf(c *Config, name string) any {
	k, _ := find(Train.keys, name)
	return k.value(reflect.ValueOf(c).Elem())
}

func TestMissingFile(t *testing.T) {
	_, _, err := Train.Load(&Sources{File: "no/such.yaml"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "no/such.yaml") {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	if _, _, err := Train.Load(&Sources{File: dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder: got %v", err)
	}
}

func TestHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.yaml")
	writeTestFile(t, path, strings.Repeat("#", maxConfigSize+1))
	var ce *Error
	if _, _, err := Train.Load(&Sources{File: path}); !errors.As(err, &ce) || ce.Source != path {
		t.Errorf("got %v", err)
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add(defaults)
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
	f.Add("output.dir='x'")
	f.Fuzz(func(t *testing.T, text string) {
		given, err := ParseSetting("--set", text)
		if err != nil {
			return
		}
		c, _, err := loadText(t, "", given)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again := mustLoad(t, writeYAML(t, c)); !reflect.DeepEqual(c, again) {
			t.Errorf("got\n%+v, want\n%+v", again, c)
		}
	})
}

// Points of one's own do not go to the folder of the built-in ones.
func TestDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct {
		settings []Setting
		want     string
	}{
		{nil, "runs/mnist10k"},
		{[]Setting{{"--set", "data.path", "builtin:mnist10k"}}, "runs/mnist10k"},
		{[]Setting{{"--set", "data.path", "some/points.csv.gz"}}, "runs/points"},
		{[]Setting{{"--set", "data.path", "['a-0.5', 'b.npy']"}}, "runs/a-0.5"},
		{[]Setting{{"--set", "data.path", "/"}}, "runs/points"},
		{[]Setting{{"--set", "data.path", "points.npy"}, {"--output", "output.dir", "here"}}, "here"},
		{[]Setting{{"--set", "data.path", "points.npy"}, {"--output", "output.dir", "runs/mnist10k"}}, "runs/mnist10k"},
	} {
		c := loaded(Train.Load(&Sources{Settings: tc.settings}))(t)
		if c.Output.Dir != tc.want {
			t.Errorf("%v: folder %s, want %s", tc.settings, c.Output.Dir, tc.want)
		}
	}
}

func TestVariablesAreUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for _, v := range keySets {
		for _, k := range names(v.keys) {
			if other, there := seen[variable(k)]; there && other != k {
				t.Errorf("%s and %s both have the variable %s", k, other, variable(k))
			}
			seen[variable(k)] = k
		}
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"defaults":   "",
		"full":       "loss: {name: nc, negatives: full, learn_z: false, log_z: -3.25, scale: 1e-3}",
		"uniform":    "loss: {z_bar: uniform, clamp: 0}",
		"z_bar":      "loss: {z_bar: 1e12}",
		"text":       "output: {dir: \"yes: b # c\\nsecond line\"}\ngraph: {file: '~'}\ndata: {path: ['-', '1', 'x y'], label_column: 3, drop: ['null', 7, \"a,b\"]}",
		"phases":     "train: {phases: [{epochs: 2, lr: 1e-10, negatives: full}, {epochs: 3, s: -1.5, anneal: none}, {epochs: 1, z_bar: 3}]}",
		"log Z":      "loss: {name: nc}\ntrain: {phases: [{epochs: 2}, {epochs: 3, log_z: 0}]}",
		"network":    "model: {kind: mlp, hidden: [3, 4], input: pca}\ntrain: {weight_decay: 1e-4, anneal: cosine, warm_up: 2}\ncheckpoint: {minutes: 3}",
		"linear":     "model: {kind: mlp, hidden: []}\ntrain: {optimizer: sgd, momentum: 0.9}",
		"a sample":   "data: {sample: 1000}",
		"its share":  "data: {sample: 0.5}",
		"its rows":   "data: {sample: './0.5'}",
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

// The file written for the defaults equals default.yaml, with comments and empty lines,
// except for its first paragraph and null values that depend on the model.
func TestWriteYAMLKeepsComments(t *testing.T) {
	_, want, _ := strings.Cut(defaults, "\n\n")
	want = strings.NewReplacer("preset: auto", "preset: paper", "pca: auto", "pca: 50", "epochs: null", "epochs: 750", "optimizer: null", "optimizer: sgd", " lr: null", " lr: 1.0").Replace(want)
	header, got, _ := strings.Cut(writeYAML(t, mustLoad(t, "")), "\n\n")
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	if !strings.HasPrefix(header, Header+Version()) {
		t.Errorf("header %q", header)
	}
}

func loadSetting(t testing.TB, k, value string) (*Config, error) {
	t.Helper()
	given := need(ParseSetting("--set", k+"="+value))(t)
	c, _, err := loadText(t, "", given)
	return c, err
}

// checkSentence checks what all errors of a configuration have in common.
func checkSentence(t *testing.T, err error) {
	t.Helper()
	var ce *Error
	if !errors.As(err, &ce) {
		t.Errorf("not an Error: %v", err)
		return
	}
	if ce.Source == "" || ce.Problem == "" || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
		t.Errorf("not one sentence with its source: %q", err)
	}
}

func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o666))
}

func writeYAML(t testing.TB, c *Config) string {
	t.Helper()
	return writeYAMLAs(t, Train, c)
}

func writeYAMLAs[C any](t testing.TB, s *Schema[C], c *C) string {
	t.Helper()
	var b bytes.Buffer
	must(t, s.Write(&b, c))
	return b.String()
}

func TestNearestKey(t *testing.T) {
	for unknown, want := range map[string]string{
		"train.epoch":               "train.epochs",
		"trian.epochs":              "train.epochs",
		"data.batch_size":           "train.batch_size",
		"epochs":                    "train.epochs",
		"quality.k":                 "quality.k",
		"LOSS.NAME":                 "loss.name",
		"loss.temperatur":           "loss.temperature",
		"something.else":            "",
		"train.epochs.nae":          "",
		string(make([]byte, 1<<20)): "",
	} {
		if got := text.Nearest(unknown, names(Train.keys)); got != want {
			t.Errorf("%q: %q, want %q", text.Shorten(unknown), got, want)
		}
	}
}
