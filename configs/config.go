package configs

import (
	"cmp"
	"math"
	"slices"

	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/model/op"
	"cne/train"
)

// Config is everything that cne train and cne spectrum can be told. Its keys,
// their meaning and their defaults stand in default.yaml; a value of this type
// that came from a Schema holds only what the tags and types of its fields allow
// (see ruleOf). A nil pointer is the null of the file.
type Config struct {
	Seed       uint64       `key:"seed" in:"[0,inf)"` // below 2⁶³
	Device     Device       `key:"device"`
	Output     Output       `key:"output"`
	Data       Data         `key:"data"`
	Graph      Graph        `key:"graph"`
	Model      Model        `key:"model"`
	Loss       Loss         `key:"loss"`
	Train      Optimization `key:"train"`
	Checkpoint Checkpoint   `key:"checkpoint"`
	Quality    Quality      `key:"quality"`
	Plot       Plot         `key:"plot"`
	Log        Log          `key:"log"`
}

// Device says where a run is computed.
type Device struct {
	Name string `key:"name" as:"device"` // auto, cpu, cuda or cuda:n
	// Precision is the coarsest that products may have.
	Precision Precision `key:"precision"`
}

// Output says what is written, and where.
type Output struct {
	Dir string `key:"dir" as:"nonempty"` // folder for the results
	CSV bool   `key:"csv"`               // embedding.csv
	// Parquet asks for embedding.parquet.
	Parquet bool `key:"parquet"`
	Plot    bool `key:"plot"` // embedding.png
	HTML    bool `key:"html"` // embedding.html
	// HTMLImages puts the images of the points into embedding.html.
	HTMLImages bool `key:"html_images"`
	// HTMLColumns are columns or files by which the points of embedding.html can be
	// coloured: see SplitColumn.
	HTMLColumns []string `key:"html_columns" as:"columns"`
	Snapshots   int      `key:"snapshots" in:"[0,inf)"` // every n epochs; 0: never
	// MetricsEvery is after how many epochs the quality is measured; 0: never.
	MetricsEvery int  `key:"metrics_every" in:"[0,inf)"`
	TensorBoard  bool `key:"tensorboard"` // event files
}

// Data says where the points and their labels come from.
type Data struct {
	Path          []string     `key:"path" as:"nonempty"`
	Labels        []string     `key:"labels"`
	LabelColumn   *string      `key:"label_column" as:"column"` // name, or number counted from 1
	Names         *string      `key:"names" as:"column"`        // of the points: see SplitColumn
	Columns       []string     `key:"columns" as:"columns"`     // names or numbers; empty: all
	Drop          []string     `key:"drop" as:"columns"`        // names or numbers
	Header        file.Header  `key:"header"`
	Genes         int          `key:"genes" in:"[1,inf)"` // of counts
	Imbalance     *string      `key:"imbalance" words:"linear"`
	Holdout       *Holdout     `key:"holdout"`
	HoldoutLabels []string     `key:"holdout_labels"`
	TrainOn       *TrainOn     `key:"sample"` // nil: all
	Scale         data.Scaling `key:"scale"`
}

// Holdout says which points are kept from training: a share of them, or those
// of files of their own.
type Holdout struct {
	Share float64  // in (0, 1), or 0 if there are paths
	Paths []string // empty if there is a share
}

// TrainOn says which points a run learns from, to place the others by what it has learnt:
// a number or a share of them, drawn by the seed, or the rows in a file.
type TrainOn struct {
	Number int     // at least 2, or 0
	Share  float64 // in (0, 1], or 0
	File   string  // or ""
}

// Of returns how many of n points that are. Of those in a file it returns all, which the
// size of the data counts alone (Config.dataSize).
func (t *TrainOn) Of(n int) int {
	switch {
	case t == nil || t.File != "":
		return n
	case t.Number > 0:
		return min(n, t.Number)
	}
	return max(1, int(math.Round(t.Share*float64(n))))
}

// Graph describes the neighbour graph.
type Graph struct {
	K      int                    `key:"k" in:"[1,inf)"`
	Metric data.Metric            `key:"metric"`             // of points
	PCA    int                    `key:"pca" in:"[0,inf)"`   // principal components; 0: none
	Search neighbors.SearchMethod `key:"search"`             // how neighbours are found
	File   *string                `key:"file" as:"nonempty"` // CSR .npz in place of the kNN graph
	// WeightedSampling draws edges by their weights.
	WeightedSampling bool  `key:"weighted_sampling"`
	Cache            Cache `key:"cache,leaf"` // of components and neighbours
}

// Cache says where principal components and neighbours are kept for later runs.
type Cache struct {
	Keep   bool
	Folder string // shared with other runs; "": the run folder
}

// Model describes what maps a point to its position.
type Model struct {
	Kind      string  `key:"kind" words:"table mlp"`
	Hidden    []int   `key:"hidden" in:"[1,65536]"`    // mlp
	Input     string  `key:"input" words:"points pca"` // mlp
	Dim       int     `key:"dim" in:"[1,65536]"`
	DType     string  `key:"dtype" words:"float32 float64"`
	Init      string  `key:"init" as:"start"`            // table; see InitPath
	InitNames *string `key:"init_names" as:"column"`     // of the rows of an earlier embedding
	InitStd   float64 `key:"init_std" in:"[1e-20,1e18]"` // table
	KeepData  bool    `key:"keep_data"`                  // for projection
}

// Loss describes the contrastive loss.
type Loss struct {
	Name                  op.Loss        `key:"name"`
	Metric                op.Metric      `key:"metric"`
	Temperature           float64        `key:"temperature" in:"[0.01,1e6]"` // cosine
	Negatives             Negatives      `key:"negatives"`
	Sampling              train.Sampling `key:"sampling"`
	S                     *float64       `key:"s"`                       // losses with HasSpectrum
	ZBar                  *ZBar          `key:"z_bar"`                   // losses with op.FixedZ
	Scale                 *float64       `key:"scale" in:"[1e-30,1e30]"` // see Factor
	Clamp                 float64        `key:"clamp" in:"[0,1)"`
	Reduction             string         `key:"reduction" words:"sum mean"`
	PositiveInDenominator bool           `key:"positive_in_denominator"` // losses with PerHead
	LearnZ                bool           `key:"learn_z"`                 // losses with op.LearntZ
	LogZ                  float64        `key:"log_z" in:"[-60,60]"`     // losses with op.LearntZ
}

// Factor returns what the loss is multiplied by: Scale, or if it is not given the loss's
// own factor.
func (l *Loss) Factor() float64 {
	if l.Scale != nil {
		return *l.Scale
	}
	return l.Name.Info().Scale
}

// inits are the words of model.init.
var inits = []string{"pca", "spectral", "multilevel", "random"}

// InitPath returns the run folder or file with the earlier embedding from which a table
// starts; "" if it starts at none.
func (m *Model) InitPath() string {
	if slices.Contains(inits, m.Init) {
		return ""
	}
	return m.Init
}

// Inputs returns the files and folders that a run reads, but for its configuration.
func (c *Config) Inputs() []string {
	inputs := slices.Concat(c.Data.Path, c.Data.Labels, c.Data.HoldoutLabels)
	if c.Data.Holdout != nil {
		inputs = append(inputs, c.Data.Holdout.Paths...)
	}
	if c.Graph.File != nil {
		inputs = append(inputs, *c.Graph.File)
	}
	if t := c.Data.TrainOn; t != nil && t.File != "" {
		inputs = append(inputs, t.File)
	}
	if path := c.Model.InitPath(); path != "" {
		inputs = append(inputs, path)
	}
	for _, spec := range slices.Concat(c.Output.HTMLColumns, given(c.Data.Names), given(c.Model.InitNames)) {
		if file, _ := SplitColumn(spec); file != "" {
			inputs = append(inputs, file)
		}
	}
	return inputs
}

// given returns the text of a key as a list: empty for null.
func given(s *string) []string {
	if s == nil {
		return nil
	}
	return []string{*s}
}

// Optimization describes how the parameters are moved. Epochs, Optimizer and LR
// may be null in a file, but never are in a Config.
type Optimization struct {
	Epochs            int            `key:"epochs,null" in:"[1,inf)"` // of the whole run
	BatchSize         int            `key:"batch_size" in:"[2,inf)"`  // edges
	Optimizer         string         `key:"optimizer,null" words:"sgd adam"`
	LR                float64        `key:"lr,null" in:"(0,inf)"`
	Momentum          float64        `key:"momentum" in:"[0,1)"` // sgd
	WeightDecay       float64        `key:"weight_decay" in:"[0,inf)"`
	LRZ               float64        `key:"lr_z" in:"[0,inf)"` // nc
	Schedule          train.Schedule `key:"anneal"`
	WarmUp            int            `key:"warm_up" in:"[0,inf)"` // epochs, below Epochs
	Clip              float64        `key:"clip" in:"[0,inf)"`    // 0: none
	EarlyExaggeration bool           `key:"early_exaggeration"`
	Phases            []Phase        `key:"phases"` // see Config.Stages
	LogEvery          int            `key:"log_every" in:"[1,inf)"`
}

// Checkpoint says when the state of a run is saved.
type Checkpoint struct {
	Minutes float64 `key:"minutes" in:"[0,1e8]"` // 0: not by time
	Epochs  int     `key:"epochs" in:"[0,inf)"`  // 0: not by epoch
}

// Quality says what is measured on the finished embedding.
type Quality struct {
	K         int  `key:"k" in:"[1,inf)"`
	Points    int  `key:"sample" in:"0 or [100,inf)"`          // drawn of more than quality.ExactPoints; 0: all
	Recall    bool `key:"recall"`                              // kNN recall
	Spearman  int  `key:"spearman_sample" in:"0 or [3,20000]"` // points sampled; 0: off
	Partition bool `key:"partition"`
	KL        bool `key:"kl"` // Kullback–Leibler divergence
	Accuracy  bool `key:"accuracy"`
}

// Plot describes the picture of the embedding.
type Plot struct {
	PointSize float64 `key:"point_size" in:"[0,100]"` // diameter in 1/72 inch; 0: chosen from n
	Title     string  `key:"title"`
	Names     bool    `key:"names"`                       // of classes, at their points
	WidthCM   float64 `key:"width_cm" in:"0 or [2,100]"`  // 0: chosen
	HeightCM  float64 `key:"height_cm" in:"0 or [2,100]"` // 0: chosen
}

// Log says how the program talks on stderr.
type Log struct {
	Format string `key:"format" words:"text json"`
}

// Negatives is a number of negative samples per edge, m: at least 1, or Full.
type Negatives int

// Full stands for the word full: every row of the batch but the edge's own two.
const Full Negatives = train.Full

// ZBar is a fixed normalisation constant of Neg-t-SNE, Z̄: above 0, or Uniform.
type ZBar float64

// Uniform stands for the word uniform: Z̄ = |X|/m, for which c = Z̄·m/|X| is 1
// whatever the numbers of points and negatives are.
const Uniform ZBar = -1

// A Phase is one entry of train.phases as it stands in the file: what is nil
// is inherited from the sections loss and train, but for LogZ. S and ZBar are
// alternatives; a phase that gives one of them inherits neither.
type Phase struct {
	Epochs    int             `key:"epochs" in:"[1,inf)"`
	LR        *float64        `key:"lr" in:"(0,inf)"`
	S         *float64        `key:"s"`
	ZBar      *ZBar           `key:"z_bar"`
	Negatives *Negatives      `key:"negatives"`
	Schedule  *train.Schedule `key:"anneal"`
	WarmUp    *int            `key:"warm_up" in:"[0,inf)"`
	LogZ      *float64        `key:"log_z" in:"[-60,60]"` // nc; nil: the phase before decides, or Loss.LogZ
}

// TotalEpochs adds up the epochs of phases.
func TotalEpochs(phases []Phase) int {
	n := 0
	for _, p := range phases {
		n += p.Epochs
	}
	return n
}

// A Stage is a phase with all that it inherits filled in.
type Stage struct {
	Epochs    int      // at least 1
	LR        float64  // at the stage's first epoch
	S         *float64 // at most one of S and ZBar is given
	ZBar      *ZBar
	Negatives Negatives
	Schedule  train.Schedule
	WarmUp    int
	LogZ      *float64 // where log Z starts again; nil: it goes on
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
		Schedule:  c.Train.Schedule,
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
		st.Schedule = *cmp.Or(p.Schedule, &st.Schedule)
		st.WarmUp = *cmp.Or(p.WarmUp, &st.WarmUp)
		st.LogZ = p.LogZ
		stages[i] = st
	}
	return stages
}

// DrawsPoints tells whether the seed decides which points a run trains on.
func (c *Config) DrawsPoints() bool {
	return c.Data.Imbalance != nil || c.Data.Holdout != nil && c.Data.Holdout.Share > 0 || c.Data.TrainOn != nil && c.Data.TrainOn.File == ""
}

// complete fills in what depends on other values and was left null.
func (c *Config) complete() {
	epochs, optimizer, lr := 750, "sgd", 1.0
	if c.Model.Kind != "table" {
		epochs, optimizer = 50, "adam"
	}
	c.Train.Epochs = cmp.Or(c.Train.Epochs, TotalEpochs(c.Train.Phases), epochs)
	c.Train.Optimizer = cmp.Or(c.Train.Optimizer, optimizer)
	if c.Train.Optimizer == "adam" {
		lr = 0.001
	}
	c.Train.LR = cmp.Or(c.Train.LR, lr)
}
