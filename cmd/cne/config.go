package main

import (
	"cmp"
	"fmt"

	"cne/configs"
)

// trainSchema is the configuration of cne train.
var trainSchema = &schema[Config]{
	vocabulary: vocabulary{keys: trainKeys, command: "cne train", printer: "cne config"},
	defaults:   configs.Default,
	complete:   (*Config).complete,
	clashes:    trainClashes,
	common: func(c *Config) common {
		return common{&c.Output.Dir, c.Train.Epochs, c.Train.LogEvery, c.Checkpoint, c.Log, c.Device, c.Model.DType}
	},
	folder: func(c *Config) string { return folderFor(c.Data.Path[0]) },
	// The checkpoint knows the points, those held out and the graph by their
	// contents; labels take no part in training.
	mayChange: []string{
		"device", "output", "plot", "log", "quality", "checkpoint", "train.log_every",
		"data.path", "data.labels", "data.holdout_labels",
	},
	cannotExtend: func(begun, now *Config) string {
		if now.Train.Epochs > begun.Train.Epochs && now.Train.EarlyExaggeration != "none" {
			return fmt.Sprintf("cannot be given more epochs than %d, since its early exaggeration is a share of them", begun.Train.Epochs)
		}
		return ""
	},
}

// Config is everything a run can be told. Its keys, their meaning and their
// defaults stand in configs/default.yaml; a value of this type that came from
// trainSchema holds only what the rules of this package allow. A nil pointer is
// the null of the file.
type Config struct {
	Seed       uint64     `mapstructure:"seed"` // below 2⁶³
	Device     Device     `mapstructure:"device"`
	Output     Output     `mapstructure:"output"`
	Data       Data       `mapstructure:"data"`
	Graph      Graph      `mapstructure:"graph"`
	Model      Model      `mapstructure:"model"`
	Loss       Loss       `mapstructure:"loss"`
	Train      Train      `mapstructure:"train"`
	Checkpoint Checkpoint `mapstructure:"checkpoint"`
	Quality    Quality    `mapstructure:"quality"`
	Plot       Plot       `mapstructure:"plot"`
	Log        Log        `mapstructure:"log"`
}

// Device says where a run is computed.
type Device struct {
	Name string `mapstructure:"name"` // auto, cpu, cuda or cuda:n
	TF32 bool   `mapstructure:"tf32"` // in an accelerator's matrix products
}

// Output says what is written, and where.
type Output struct {
	Dir  string `mapstructure:"dir"`  // run folder, never empty
	CSV  bool   `mapstructure:"csv"`  // embedding.csv
	Plot bool   `mapstructure:"plot"` // embedding.png
	HTML bool   `mapstructure:"html"` // embedding.html
	// HTMLImages puts the images of the points into embedding.html.
	HTMLImages bool `mapstructure:"html_images"`
	Snapshots  int  `mapstructure:"snapshots"` // every n epochs; 0: never
	// MetricsEvery is after how many epochs the quality is measured; 0: never.
	MetricsEvery int  `mapstructure:"metrics_every"`
	TensorBoard  bool `mapstructure:"tensorboard"` // event files
}

// Data says where the points and their labels come from.
type Data struct {
	Path          []string `mapstructure:"path"`         // at least one
	Labels        []string `mapstructure:"labels"`       // may be empty
	LabelColumn   *string  `mapstructure:"label_column"` // name, or number counted from 1
	Drop          []string `mapstructure:"drop"`         // names or numbers
	Header        string   `mapstructure:"header"`       // auto, yes or no
	Genes         int      `mapstructure:"genes"`        // at least 1; counts
	Imbalance     *string  `mapstructure:"imbalance"`    // linear
	Holdout       *Holdout `mapstructure:"holdout"`
	HoldoutLabels []string `mapstructure:"holdout_labels"` // may be empty
	Scale         string   `mapstructure:"scale"`          // none, unit or standard
}

// Holdout says which points are kept from training: a share of them, or those
// of files of their own.
type Holdout struct {
	Share float64  // in (0, 1), or 0 if there are paths
	Paths []string // empty if there is a share
}

// Graph describes the neighbour graph.
type Graph struct {
	K     int     `mapstructure:"k"`     // at least 1
	PCA   int     `mapstructure:"pca"`   // principal components; 0: none
	File  *string `mapstructure:"file"`  // CSR .npz in place of the kNN graph
	Cache bool    `mapstructure:"cache"` // keep it in the run folder
}

// Model describes what maps a point to its position.
type Model struct {
	Kind     string  `mapstructure:"kind"`      // table or mlp
	Hidden   []int   `mapstructure:"hidden"`    // each at least 1; mlp
	Input    string  `mapstructure:"input"`     // points or pca; mlp
	Dim      int     `mapstructure:"dim"`       // at least 1
	DType    string  `mapstructure:"dtype"`     // float32 or float64
	Init     string  `mapstructure:"init"`      // pca or random; table
	InitStd  float64 `mapstructure:"init_std"`  // above 0; table
	KeepData bool    `mapstructure:"keep_data"` // for projection
}

// seesPoints tells whether the model is computed of the points themselves, not
// of what the graph is built on.
func (m *Model) seesPoints() bool { return m.Kind != "table" && m.Input == "points" }

// Loss describes the contrastive loss.
type Loss struct {
	Name                  string    `mapstructure:"name"`        // neg, nc, infonce or umap
	Metric                string    `mapstructure:"metric"`      // euclidean or cosine
	Temperature           float64   `mapstructure:"temperature"` // above 0; cosine
	Negatives             Negatives `mapstructure:"negatives"`
	Draw                  string    `mapstructure:"draw"`  // auto, singly or runs
	S                     *float64  `mapstructure:"s"`     // neg and infonce
	ZBar                  *ZBar     `mapstructure:"z_bar"` // neg
	Scale                 *float64  `mapstructure:"scale"` // above 0; see Factor
	Clamp                 float64   `mapstructure:"clamp"` // in [0, 1)
	Reduction             string    `mapstructure:"reduction"`
	PositiveInDenominator bool      `mapstructure:"positive_in_denominator"` // infonce
	LearnZ                bool      `mapstructure:"learn_z"`                 // nc
	LogZ                  float64   `mapstructure:"log_z"`                   // nc
}

// Factor returns what the loss is multiplied by: Scale if it is given, and
// otherwise 0.5 for InfoNC-t-SNE, as in the paper's runs, and 1 for the others.
func (l *Loss) Factor() float64 {
	switch {
	case l.Scale != nil:
		return *l.Scale
	case l.Name == "infonce":
		return 0.5
	default:
		return 1
	}
}

// hasSpectrum tells whether the loss has places from t-SNE to UMAP.
func (l *Loss) hasSpectrum() bool { return l.Name == "neg" || l.Name == "infonce" }

// Train describes the optimisation. Epochs, Optimizer and LR may be null in a
// file, but never are in a Config.
type Train struct {
	Epochs            int     `mapstructure:"epochs"`       // of the whole run, at least 1
	BatchSize         int     `mapstructure:"batch_size"`   // edges, at least 2
	Optimizer         string  `mapstructure:"optimizer"`    // sgd or adam
	LR                float64 `mapstructure:"lr"`           // above 0
	Momentum          float64 `mapstructure:"momentum"`     // in [0, 1); sgd
	WeightDecay       float64 `mapstructure:"weight_decay"` // at least 0
	LRZ               float64 `mapstructure:"lr_z"`         // at least 0; nc
	Anneal            string  `mapstructure:"anneal"`       // linear, cosine or none
	WarmUp            int     `mapstructure:"warm_up"`      // epochs, below Epochs
	Clip              float64 `mapstructure:"clip"`         // 0: none
	EarlyExaggeration string  `mapstructure:"early_exaggeration"`
	Phases            []Phase `mapstructure:"phases"` // see Config.Stages
	LogEvery          int     `mapstructure:"log_every"`
}

// Checkpoint says when the state of a run is saved.
type Checkpoint struct {
	Minutes float64 `mapstructure:"minutes"` // 0: not by time
	Epochs  int     `mapstructure:"epochs"`  // 0: not by epoch
}

// Quality says what is measured on the finished embedding.
type Quality struct {
	K         int  `mapstructure:"k"`        // at least 1
	Recall    bool `mapstructure:"recall"`   // kNN recall
	Spearman  int  `mapstructure:"spearman"` // points sampled; 0: off
	Partition bool `mapstructure:"partition"`
	KL        bool `mapstructure:"kl"` // Kullback–Leibler divergence
	Accuracy  bool `mapstructure:"accuracy"`
}

// Plot describes the picture of the embedding.
type Plot struct {
	PointSize float64 `mapstructure:"point_size"` // diameter in 1/72 inch, at most 100; 0: chosen from n
	Title     string  `mapstructure:"title"`
	WidthCM   float64 `mapstructure:"width_cm"`  // in [0, 100]; 0: chosen
	HeightCM  float64 `mapstructure:"height_cm"` // in [0, 100]; 0: chosen
}

// Log says how the program talks on stderr.
type Log struct {
	Format string `mapstructure:"format"` // text or json
}

// Negatives is a number of negative samples per edge, m: at least 1, or Full.
type Negatives int

// Full stands for the word full: every row of the batch but the edge's own two.
const Full Negatives = -1

// ZBar is a fixed normalisation constant of Neg-t-SNE, Z̄: above 0, or Uniform.
type ZBar float64

// Uniform stands for the word uniform: Z̄ = |X|/m, for which c = Z̄·m/|X| is 1
// whatever the numbers of points and negatives are.
const Uniform ZBar = -1

// A Phase is one entry of train.phases as it stands in the file: what is nil
// is inherited from the sections loss and train. S and ZBar are alternatives;
// a phase that gives one of them inherits neither.
type Phase struct {
	Epochs    int        `mapstructure:"epochs"` // at least 1
	LR        *float64   `mapstructure:"lr"`
	S         *float64   `mapstructure:"s"`
	ZBar      *ZBar      `mapstructure:"z_bar"`
	Negatives *Negatives `mapstructure:"negatives"`
	Anneal    *string    `mapstructure:"anneal"`
	WarmUp    *int       `mapstructure:"warm_up"`
}

// A Stage is a phase with all that it inherits filled in.
type Stage struct {
	Epochs    int      // at least 1
	LR        float64  // at the stage's first epoch
	S         *float64 // at most one of S and ZBar is given
	ZBar      *ZBar
	Negatives Negatives
	Anneal    string // linear, cosine or none
	WarmUp    int
}

// Stages returns what train runs one after the other: a stage per phase, or a
// single one when there are no phases. The epochs of all stages add up to
// Train.Epochs. Early exaggeration is not a stage, since the learning rate
// does not start again after it.
func (c *Config) Stages() []Stage {
	whole := Stage{
		Epochs:    c.Train.Epochs,
		LR:        c.Train.LR,
		S:         c.Loss.S,
		ZBar:      c.Loss.ZBar,
		Negatives: c.Loss.Negatives,
		Anneal:    c.Train.Anneal,
		WarmUp:    c.Train.WarmUp,
	}
	if len(c.Train.Phases) == 0 {
		return []Stage{whole}
	}
	stages := make([]Stage, len(c.Train.Phases))
	for i, p := range c.Train.Phases {
		st := whole
		st.Epochs = p.Epochs
		st.LR = *cmp.Or(p.LR, &st.LR)
		if p.S != nil || p.ZBar != nil {
			st.S, st.ZBar = p.S, p.ZBar
		}
		st.Negatives = *cmp.Or(p.Negatives, &st.Negatives)
		st.Anneal = *cmp.Or(p.Anneal, &st.Anneal)
		st.WarmUp = *cmp.Or(p.WarmUp, &st.WarmUp)
		stages[i] = st
	}
	return stages
}

// complete fills in what depends on other values and was left null.
func (c *Config) complete() {
	network := c.Model.Kind != "table"
	if c.Train.Epochs == 0 {
		c.Train.Epochs = totalEpochs(c.Train.Phases)
	}
	if c.Train.Epochs == 0 {
		c.Train.Epochs = 750
		if network {
			c.Train.Epochs = 50
		}
	}
	if c.Train.Optimizer == "" {
		c.Train.Optimizer = "sgd"
		if network {
			c.Train.Optimizer = "adam"
		}
	}
	if c.Train.LR == 0 {
		c.Train.LR = 1
		if c.Train.Optimizer == "adam" {
			c.Train.LR = 0.001
		}
	}
}
