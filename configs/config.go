// Package configs has configurations of cne as YAML files, and reads such files. cne
// train --config takes them, and cne simclr pretrain those with names simclr-… and
// tsimcne-…. default.yaml and simclr-default.yaml list all keys with defaults and
// meanings. The other files set only what differs.
//
// A Schema makes a struct (Config, SimCLR) from the defaults, a file, environment
// variables and single settings; each source overrides the ones before it. It refuses
// unknown keys and invalid values with an Error, which says where the value is, what is
// wrong and what is allowed. The allowed values follow from the tags and types of the
// struct's fields, mostly options of the packages cne, simclr, data/file and data/images
// (package internal/option). These packages' checks find conflicts between keys.
package configs

import (
	_ "embed"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/option"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// Config is the configuration of cne train and cne spectrum: the library's options and
// the program's own. default.yaml lists the keys, their meaning and their defaults. A
// Config from a Schema has only values that its fields' tags and types allow (see package
// internal/option and kindsOfText). A nil pointer is null in the file, and so is the zero
// value of a field that may be null.
type Config struct {
	// Embed are the options of the library; see Options. Epochs, Optimizer and LR are never
	// the values that stand for a default.
	Embed      cne.Options `key:",squash"`
	Preset     cne.Preset  `key:"preset"`
	Device     Device      `key:"device"`
	Output     Output      `key:"output"`
	Data       Data        `key:"data"`
	Graph      Graph       `key:"graph"`
	Model      Model       `key:"model"`
	Loss       Loss        `key:"loss"`
	Checkpoint Checkpoint  `key:"checkpoint"`
	Quality    Quality     `key:"quality"`
	Log        Log         `key:"log"`
}

// Device says where a run is computed, and how precisely.
type Device struct {
	Name string `key:"name" as:"device"` // auto, cpu, cuda or cuda:n
	// Precision is the coarsest precision of products.
	Precision string `key:"precision" words:"float32 tf32 bf16"`
}

// Output says which files are written, and where.
type Output struct {
	Dir  string `key:"dir" as:"text"` // folder for the results
	CSV  bool   `key:"csv"`           // embedding.csv
	Plot bool   `key:"plot"`          // embedding.png
	HTML bool   `key:"html"`          // embedding.html
	// HTMLColumns are columns or files to colour the points of embedding.html by: see
	// file.SplitColumn.
	HTMLColumns []string `key:"html_columns" as:"columns"`
	// AutoLabels labels the regions of embedding.html by the words of the points' names.
	AutoLabels bool `key:"auto_labels"`
	Snapshots  int  `key:"snapshots" in:"[0,inf)"` // every n epochs; 0: never
	// MetricsEvery is the number of epochs from one measurement of the quality to the next;
	// 0: never.
	MetricsEvery int  `key:"metrics_every" in:"[0,inf)"`
	TensorBoard  bool `key:"tensorboard"` // event files
}

// Data says where the points and their labels come from.
type Data struct {
	Path          []string        `key:"path" as:"inputs"`
	file.Options  `key:",squash"` // see Reading
	Names         string          `key:"names,null" as:"column"` // of the points: see file.SplitColumn
	Missing       string          `key:"missing" words:"auto refuse drop mean"`
	ZeroRows      string          `key:"zero_rows" words:"keep drop"`
	Genes         int             `key:"genes" in:"[1,inf)"` // of counts
	Imbalance     string          `key:"imbalance,null" words:"linear"`
	Holdout       Holdout         `key:"holdout,null"`
	HoldoutLabels []string        `key:"holdout_labels" as:"paths"`
	Sample        Sample          `key:"sample,null"` // zero: all
}

// Holdout are the points held out of training: a share of the points, or separate files.
type Holdout struct {
	Share float64  // in (0, 1), or 0 if there are paths
	Paths []string // empty if there is a share
}

// Sample says which points a run learns from: a number or a share of them, drawn by the
// seed, or the rows in a file. The others are placed afterwards.
type Sample struct {
	Number int     // at least 2, or 0
	Share  float64 // in (0, 1], or 0
	File   string  // or ""
}

// Sampled reports whether the run learns from a sample.
func (d *Data) Sampled() bool { return d.Sample != Sample{} }

// Graph is the source of the neighbour graph, and its cache.
type Graph struct {
	File  string `key:"file,null" as:"text"` // CSR .npz instead of the kNN graph
	Cache Cache  `key:"cache,leaf"`          // of components and neighbours
}

// Cache says where principal components and neighbours are kept for later runs.
type Cache struct {
	Keep   bool
	Folder string // shared with other runs; "": the run folder
}

// Model configures the model, a table's initial positions, and what is saved.
type Model struct {
	Kind      string `key:"kind" words:"table network mlp"`
	Init      string `key:"init" as:"start"`             // a table's; see InitPath
	InitNames string `key:"init_names,null" as:"column"` // of the rows of an earlier embedding
	KeepData  bool   `key:"keep_data"`                   // for projection
}

// HasTable reports whether the positions of training points are learnt without a network.
func (m *Model) HasTable() bool { return m.Kind != "mlp" }

// InitPath returns the run folder or file of the earlier embedding that initialises a
// table, or "".
func (m *Model) InitPath() string {
	if slices.Contains(cne.InitPCA.Words(), m.Init) {
		return ""
	}
	return m.Init
}

// Loss says what the embedding is pulled towards.
type Loss struct {
	Towards string `key:"towards,null" as:"text"` // run folder or file; "": principal components
}

// Checkpoint says when the state of a run is saved.
type Checkpoint struct {
	Minutes float64 `key:"minutes" in:"[0,1e8]"` // 0: not by time
}

// Quality says which figures of the finished embedding are measured: see Options.
type Quality struct {
	quality.Options `key:",squash"`
	Recall          bool `key:"recall"`
	Partition       bool `key:"partition"`
	KL              bool `key:"kl"`
	Density         bool `key:"density"`
	Accuracy        bool `key:"accuracy"`
}

// Log is the form of messages on stderr.
type Log struct {
	Format string `key:"format" words:"text json"`
}

// DrawsPoints reports whether the training points depend on the seed.
func (c *Config) DrawsPoints() bool {
	return c.Data.Imbalance != "" || c.Data.Holdout.Share > 0 || c.Data.Sampled() && c.Data.Sample.File == ""
}

func (c *Config) common() Common {
	return Common{&c.Output.Dir, c.Embed.Epochs, c.Checkpoint, c.Log, c.Device, c.Embed.Float64, c.Data.Path, c.Inputs()}
}

// complete applies the preset for n points to keys that are not given, and fills in null
// values that depend on other values.
func (c *Config) complete(given func(key string) bool, n int) {
	if !given("quality.k") {
		c.Quality.K = max(1, min(c.Quality.K, n/4)) // any embedding keeps many of nearly all points
	}
	hidden := c.Embed.Hidden
	c.Embed = c.Preset.Apply(c.Options(), n, given).WithDefaults()
	if c.Embed.Init != cne.InitGiven {
		c.Model.Init = c.Embed.Init.String()
	}
	c.Embed.Hidden, c.Embed.MinNeighbors, c.Embed.Init = hidden, 0, 0
}

// The values of device.precision: the rounding of factors in matrix products and
// convolutions. Sums and weights are always float32.
const (
	// Float32 rounds nothing.
	Float32 = "float32"
	// TF32 rounds to 10 stored bits of mantissa on a GPU. A CPU rounds nothing.
	TF32 = "tf32"
	// BF16 rounds to 7 stored bits of mantissa in the convolutions of cne simclr, and as
	// TF32 does in all other products.
	BF16 = "bf16"
)

// RoundsToTF32 reports whether products may be rounded to TF32 on a GPU.
func (d *Device) RoundsToTF32() bool { return d.Precision == TF32 || d.Precision == BF16 }

// OfConvolutions returns the precision of the convolutions in training.
func (d *Device) OfConvolutions() op.Precision {
	if d.Precision == BF16 {
		return op.BFloat16
	}
	return op.Float32
}

// pulls reports whether a phase pulls.
func (c *Config) pulls() bool {
	return slices.ContainsFunc(c.Embed.FitOptions().Phases, func(p train.Phase) bool { return p.Pull > 0 })
}

// conflicts lists the conflicts between keys that the library does not know.
func (c *Config) conflicts() []*option.Error {
	d := &c.Data
	hasGraph, named, earlier := c.Graph.File != "", d.Names != "", c.Model.InitPath() != ""
	onGPU := c.Device.Name != "auto" && c.Device.Name != "cpu"
	return []*option.Error{
		conflictIf(c.Device.Precision == BF16, "device.precision", "model.kind", "tf32 or float32; bf16 is for cne simclr"),
		conflictIf(c.Embed.Float64 && onGPU, "model.dtype", "device.name", "float32, or the device cpu"),
		conflictIf(earlier && !c.Model.HasTable(), "model.init", "model.kind", "pca; an mlp starts with random weights"),
		conflictIf(c.Model.InitNames != "" && !earlier, "model.init_names", "model.init", "null, or an earlier embedding there"),
		conflictIf(c.Model.InitNames != "" && !named, "model.init_names", "data.names", "null, or names there"),
		conflictIf(c.Model.Kind == "network" && c.Embed.GraphMetric == data.Precomputed, "model.kind", "graph.metric", "table; a network cannot see distances"),
		conflictIf(c.Model.Kind == "network" && c.Embed.OnComponents, "model.input", "model.kind", "points"),
		conflictIf(c.Model.KeepData && c.Model.Kind != "table", "model.keep_data", "model.kind", "false"),
		conflictIf(c.Loss.Towards != "" && !c.pulls(), "loss.towards", "loss.pull", "null, or a strength there, such as 0.15"),
		conflictIf(len(d.HoldoutLabels) > 0 && len(d.Holdout.Paths) == 0, "data.holdout_labels",
			"data.holdout", "[], or paths of held-out points there"),
		conflictIf(c.Embed.Search == neighbors.Approximate && hasGraph, "graph.search", "graph.file", "auto"),
		conflictIf(c.Output.AutoLabels && c.Data.Names == "", "output.auto_labels", "data.names",
			"false, or the texts of the points there (--names)"),
	}
}

//go:embed default.yaml
var defaults string

//go:embed simclr-default.yaml
var simclrDefaults string

// Train is the configuration of cne train.
var Train = &Schema[Config]{
	keySet:     newKeySet(reflect.TypeFor[Config](), defaults, "cne train", "cne config"),
	embeddings: 1,
	dir:        func(c *Config) string { return dirFor(c.Data.Path[0]) },
	// The checkpoint identifies points, held-out points and graph by their contents; labels
	// do not affect training.
	mayChange: []string{
		"device.name", "output", "log", "quality", "checkpoint", "graph.cache",
		"data.path", "data.labels", "data.holdout_labels", "data.names",
	},
	drops: func(c *Config) []string {
		if c.Data.DropText {
			return c.Data.Drop // the column of names, if it is text
		}
		return c.Data.Reading().Drop
	},
	fixedEpochs: func(c *Config) string {
		if c.Embed.EarlyExaggeration {
			return "since its early exaggeration is a share of them"
		}
		return ""
	},
}

// Spectrum is the configuration of cne spectrum; it has the keys of cne train.
var Spectrum = func() *Schema[Config] {
	s := *Train
	s.command, s.alongSpectrum = "cne spectrum", true
	s.dir = func(c *Config) string {
		return filepath.ToSlash(filepath.Join("runs", "spectrum-"+filepath.Base(dirFor(c.Data.Path[0]))))
	}
	s.fixedEpochs = func(*Config) string { return "since its embeddings share a part of them" }
	return &s
}()

// SpectrumAlong is the configuration of a spectrum along an axis. Write notes the axis in
// the command line: "cne spectrum --s 0,1".
func SpectrumAlong(a *SpectrumAxis) *Schema[Config] {
	s := *Spectrum
	s.command = a.Command()
	s.embeddings = min(len(a.Places()), runtime.GOMAXPROCS(0))
	return &s
}

// Pretrain is the configuration of cne simclr.
var Pretrain = &Schema[SimCLR]{
	keySet: newKeySet(reflect.TypeFor[SimCLR](), simclrDefaults, "cne simclr pretrain", "cne simclr config"),
	dir: func(c *SimCLR) string {
		name := strings.TrimPrefix(dirFor(c.Data.Path[0]), "runs/")
		for _, ending := range []string{".tar", ".tgz", ".npz", ".bin"} {
			name = strings.TrimSuffix(name, ending)
		}
		return "runs/simclr-" + name
	},
	// The checkpoint identifies the images by their contents; labels do not affect training.
	mayChange: []string{"device.name", "output", "log", "monitor", "checkpoint", "evaluate", "data.path", "data.labels"},
}

// keySets are the key sets of all commands.
var keySets []*keySet

func init() { keySets = []*keySet{&Train.keySet, &Spectrum.keySet, &Pretrain.keySet} }

// dirFor returns the default folder for the results of points from a path, such as
// runs/points for data/points.npy.
func dirFor(path string) string {
	name, isBuiltin := strings.CutPrefix(path, file.BuiltinPrefix)
	if !isBuiltin {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute // the folder . has a name too
		}
		name = file.TrimEnding(filepath.Base(path))
	}
	if name == string(filepath.Separator) {
		name = "points"
	}
	return "runs/" + name
}
