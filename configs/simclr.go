package configs

import (
	"cmp"
	"fmt"
	"slices"

	"cne/model/op"
	"cne/train"
)

// SimCLR is everything that a pretraining on images, and its evaluation, can be
// told. Its keys, their meaning and their defaults stand in
// simclr-default.yaml; a value of this type that came from a Schema holds only
// what the tags and types of its fields allow (see ruleOf).
type SimCLR struct {
	Seed       uint64            `key:"seed" in:"[0,inf)"` // below 2⁶³
	Device     Device            `key:"device"`
	Output     SimCLROutput      `key:"output"`
	Data       ImageData         `key:"data"`
	SimCLR     Protocol          `key:"simclr"`
	Model      Beginning         `key:"model"`
	Views      Views             `key:"views"`
	Network    NetworkSize       `key:"network"`
	Loss       SimCLRLoss        `key:"loss"`
	Train      ImageOptimization `key:"train"`
	Stages     []NetworkStage    `key:"stages"` // empty: one, as Train says
	Monitor    Monitor           `key:"monitor"`
	Checkpoint Checkpoint        `key:"checkpoint"`
	Evaluate   Evaluate          `key:"evaluate"`
	Log        Log               `key:"log"`
}

// Inputs returns the files and folders that a run reads, but for its configuration.
func (c *SimCLR) Inputs() []string {
	return slices.Concat(c.Data.Path, c.Data.Labels, given(c.Model.From))
}

// SimCLROutput says where results are written.
type SimCLROutput struct {
	Dir string `key:"dir" as:"nonempty"` // folder for the results
	// Of runs whose network gives positions (see Embeds): embedding.csv, embedding.png,
	// embedding.html, and the images in the latter.
	CSV        bool `key:"csv"`
	Plot       bool `key:"plot"`
	HTML       bool `key:"html"`
	HTMLImages bool `key:"html_images"`
}

// ImageData says where the images and their labels come from.
type ImageData struct {
	Path   []string `key:"path" as:"nonempty"`
	Labels []string `key:"labels"`
	Size   int      `key:"size" in:"0 or [1,4096]"` // 0: as they are
	// SkipBroken leaves out files that cannot be decoded.
	SkipBroken bool `key:"skip_broken"`
}

// Protocol says which images the network sees, and how it learns from them.
type Protocol struct {
	PretrainOn string `key:"pretrain_on" words:"all train"`
	Method     string `key:"method" words:"simclr tsimcne"`
}

// Beginning says what a network begins with.
type Beginning struct {
	From *string `key:"from" as:"nonempty"` // run folder or file; nil: what the seed draws
}

// Views says how views are drawn: see simclr.Augmentation. WholeSize may be null in a
// file, but never is in a SimCLR.
type Views struct {
	Size       int        `key:"size" in:"[1,4096]"`
	WholeSize  int        `key:"whole_size,null" in:"[1,4096]"` // Size where it was null
	MinScale   float64    `key:"min_scale" in:"(0,1]"`          // in (0, MaxScale]
	MaxScale   float64    `key:"max_scale" in:"(0,1]"`
	MinRatio   float64    `key:"min_ratio" in:"(0,inf)"` // in (0, MaxRatio]
	MaxRatio   float64    `key:"max_ratio" in:"(0,inf)"`
	Flip       float64    `key:"flip" in:"[0,1]"`
	Jitter     float64    `key:"jitter" in:"[0,1]"`
	Brightness float64    `key:"brightness" in:"[0,1e6]"`
	Contrast   float64    `key:"contrast" in:"[0,1e6]"`
	Saturation float64    `key:"saturation" in:"[0,1e6]"`
	Hue        float64    `key:"hue" in:"[0,0.5]"`
	Grey       float64    `key:"grey" in:"[0,1]"`
	Mean       [3]float64 `key:"mean" in:"[-1e6,1e6]"`
	Std        [3]float64 `key:"std" in:"[1e-6,1e6]"`
}

// NetworkSize holds the widths of the ResNet18. Hidden and Out may be null in a
// file, but never are in a SimCLR.
type NetworkSize struct {
	Width  int `key:"width" in:"[1,4096]"`
	Hidden int `key:"hidden,null" in:"[1,65536]"`
	Out    int `key:"out,null" in:"[1,65536]"`
}

// SimCLRLoss describes the contrastive loss of two views.
type SimCLRLoss struct {
	Loss             `key:",squash"`
	LearnTemperature bool `key:"learn_temperature"` // cosine
}

// ImageOptimization describes how the network is trained. Epochs and LR may be null
// in a file, but never are in a SimCLR.
type ImageOptimization struct {
	Epochs      int            `key:"epochs,null" in:"[1,inf)"` // of all stages
	BatchSize   int            `key:"batch_size" in:"[2,inf)"`  // images
	LR          float64        `key:"lr,null" in:"(0,inf)"`
	Momentum    float64        `key:"momentum" in:"[0,1)"`
	WeightDecay float64        `key:"weight_decay" in:"[0,inf)"`
	DecayNorms  bool           `key:"decay_norms"`
	LRZ         float64        `key:"lr_z" in:"[0,inf)"` // nc
	Schedule    train.Schedule `key:"anneal" words:"cosine"`
	WarmUp      int            `key:"warm_up" in:"[0,inf)"` // epochs, below Epochs
	Clip        float64        `key:"clip" in:"[0,inf)"`    // 0: none
	LogEvery    int            `key:"log_every" in:"[1,inf)"`
}

// Monitor says how a classifier watches the training.
type Monitor struct {
	Every int `key:"every" in:"[0,inf)"` // epochs; 0: never
	Test  int `key:"test" in:"[1,inf)"`  // images
	Train int `key:"train" in:"[1,inf)"` // images
}

// Evaluate says how a representation is evaluated. Split may be null in a file,
// but never is in a SimCLR.
type Evaluate struct {
	AtEnd bool     `key:"at_end"`
	Split string   `key:"split,null" words:"official stratified"`
	Test  int      `key:"test" in:"[1,inf)"` // images; stratified
	Seeds []uint64 `key:"seeds"`             // at least one, none twice; stratified
	K     int      `key:"k" in:"[1,inf)"`
}

// complete fills in what depends on other values and was left null.
func (c *SimCLR) complete() {
	c.Network.Hidden = cmp.Or(c.Network.Hidden, min(16*c.Network.Width, 65536)) // the largest that there may be
	c.Network.Out = cmp.Or(c.Network.Out, 2*c.Network.Width)
	c.Views.WholeSize = cmp.Or(c.Views.WholeSize, c.Views.Size)
	c.Train.LR = cmp.Or(c.Train.LR, 0.03*float64(c.Train.BatchSize)/256)
	if c.SimCLR.Method == tsimcne && len(c.Stages) == 0 {
		c.Stages = c.tsimcneStages()
	}
	c.Train.Epochs = cmp.Or(c.Train.Epochs, c.stageEpochs(), 1000)
	split := "stratified"
	if c.SimCLR.PretrainOn == "train" {
		split = "official"
	}
	c.Evaluate.Split = cmp.Or(c.Evaluate.Split, split)
}

// clashes lists what can clash.
func (c *SimCLR) clashes() []clash {
	v := &c.Views
	return slices.Concat(c.Loss.clashes(), c.stageClashes(), []clash{
		when(v.MinScale > v.MaxScale, "views.min_scale", "views.max_scale",
			"the former must not be larger"),
		when(v.MinRatio > v.MaxRatio, "views.min_ratio", "views.max_ratio",
			"the former must not be larger"),
		when(c.Loss.Metric == op.Cosine && c.Network.Out == 1, "network.out", "loss.metric",
			"in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean"),
		when(c.Loss.LearnTemperature && c.Loss.Metric != op.Cosine, "loss.learn_temperature", "loss.metric",
			"only the cosine similarity has a temperature, so set it to false or choose cosine"),
		when(c.Loss.LearnTemperature && c.Loss.Temperature > op.MaxTemperature, "loss.temperature", "loss.learn_temperature",
			fmt.Sprintf("a temperature is learnt from 0.01 to %d, so lower it or set loss.learn_temperature to false", op.MaxTemperature)),
		when(c.Monitor.Every > 0 && c.Monitor.Train < c.Evaluate.K, "monitor.train", "evaluate.k",
			"take at least as many images as neighbours, or set monitor.every to 0"),
	})
}
