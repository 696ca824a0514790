package main

import (
	"math"
	"slices"
	"strings"

	"cne/configs"
	"cne/simclr"
)

// simclrSchema is the configuration of cne simclr.
var simclrSchema = &schema[SimCLRConfig]{
	vocabulary: vocabulary{keys: simclrKeys, command: "cne simclr pretrain", printer: "cne simclr config"},
	defaults:   configs.SimCLRDefault,
	complete:   (*SimCLRConfig).complete,
	clashes:    (*SimCLRConfig).clashes,
	common: func(c *SimCLRConfig) common {
		return common{&c.Output.Dir, c.Train.Epochs, c.Train.LogEvery, c.Checkpoint, c.Log, c.Device, "float32"}
	},
	folder: func(c *SimCLRConfig) string {
		name := strings.TrimPrefix(folderFor(c.Data.Path[0]), "runs/")
		for _, ending := range []string{".tar", ".tgz", ".npz", ".bin"} {
			name = strings.TrimSuffix(name, ending)
		}
		return "runs/simclr-" + name
	},
	// The checkpoint knows the images by their contents; labels take no part
	// in training.
	mayChange:    []string{"device", "output", "log", "monitor", "checkpoint", "evaluate", "train.log_every", "data.path", "data.labels"},
	cannotExtend: func(_, _ *SimCLRConfig) string { return "" },
}

// simclrKeys lists the keys of cne simclr in the order of simclr-default.yaml.
var simclrKeys = slices.Concat([]key{
	{"seed", wholeUpTo(0, math.MaxInt64)},
}, deviceKeys, []key{
	{"output.dir", nonEmptyText()},

	{"data.path", nonEmptyList()},
	{"data.labels", list()},
	{"data.size", zeroOr(1, maxImageSize)},

	{"simclr.pretrain_on", oneOf("all", "train")},

	{"views.size", wholeUpTo(1, maxImageSize)},
	{"views.min_scale", number(area)},
	{"views.max_scale", number(area)},
	{"views.min_ratio", number(above0)},
	{"views.max_ratio", number(above0)},
	{"views.flip", number(share)},
	{"views.jitter", number(share)},
	{"views.brightness", number(change)},
	{"views.contrast", number(change)},
	{"views.saturation", number(change)},
	{"views.hue", number(halfCircle)},
	{"views.grey", number(share)},
	{"views.mean", colours(offset)},
	{"views.std", colours(spread)},

	{"network.width", wholeUpTo(1, 4096)},
	{"network.hidden", orNull(wholeUpTo(1, maxWidth))},
	{"network.out", orNull(wholeUpTo(1, maxWidth))},
}, lossKeys, []key{
	{"loss.learn_temperature", boolean()},

	{"train.epochs", whole(1)},
	{"train.batch_size", whole(2)},
	{"train.lr", orNull(number(above0))},
	{"train.momentum", number(below1)},
	{"train.weight_decay", number(from0)},
	{"train.decay_norms", boolean()},
	{"train.lr_z", number(from0)},
	{"train.anneal", oneOf("cosine", "linear", "none")},
	{"train.warm_up", whole(0)},
	{"train.clip", number(from0)},
	{"train.log_every", whole(1)},

	{"monitor.every", whole(0)},
	{"monitor.test", whole(1)},
	{"monitor.train", whole(1)},

	{"checkpoint.minutes", number(from0)},
	{"checkpoint.epochs", whole(0)},

	{"evaluate.at_end", boolean()},
	{"evaluate.split", orNull(oneOf("official", "stratified"))},
	{"evaluate.test", whole(1)},
	{"evaluate.seeds", seedList()},
	{"evaluate.k", whole(1)},

	{"log.format", oneOf("text", "json")},
})

// maxImageSize bounds the sides of images and views, in pixels.
const maxImageSize = 4096

var (
	area       = interval{"a number above 0 and at most 1", func(x float64) bool { return x > 0 && x <= 1 }}
	change     = interval{"a number from 0 to 1e6", func(x float64) bool { return x >= 0 && x <= 1e6 }}
	halfCircle = interval{"a number from 0 to 0.5", func(x float64) bool { return x >= 0 && x <= 0.5 }}
	offset     = interval{"a number from -1e6 to 1e6", func(x float64) bool { return math.Abs(x) <= 1e6 }}
	spread     = interval{"a number from 1e-6 to 1e6", func(x float64) bool { return x >= 1e-6 && x <= 1e6 }}
)

// SimCLRConfig is everything a pretraining on images, and its evaluation, can
// be told. Its keys, their meaning and their defaults stand in
// configs/simclr-default.yaml; a value of this type that came from simclrSchema
// holds only what the rules of this package allow.
type SimCLRConfig struct {
	Seed       uint64       `mapstructure:"seed"` // below 2⁶³
	Device     Device       `mapstructure:"device"`
	Output     SimCLROutput `mapstructure:"output"`
	Data       ImageData    `mapstructure:"data"`
	SimCLR     Protocol     `mapstructure:"simclr"`
	Views      Views        `mapstructure:"views"`
	Network    NetworkSize  `mapstructure:"network"`
	Loss       SimCLRLoss   `mapstructure:"loss"`
	Train      Pretrain     `mapstructure:"train"`
	Monitor    Monitor      `mapstructure:"monitor"`
	Checkpoint Checkpoint   `mapstructure:"checkpoint"`
	Evaluate   Evaluate     `mapstructure:"evaluate"`
	Log        Log          `mapstructure:"log"`
}

// SimCLROutput says where results are written.
type SimCLROutput struct {
	Dir string `mapstructure:"dir"` // run folder, never empty
}

// ImageData says where the images and their labels come from.
type ImageData struct {
	Path   []string `mapstructure:"path"`   // at least one
	Labels []string `mapstructure:"labels"` // may be empty
	Size   int      `mapstructure:"size"`   // 0: as they are
}

// Protocol says which images the network sees.
type Protocol struct {
	PretrainOn string `mapstructure:"pretrain_on"` // all or train
}

// Views says how views are drawn: see simclr.Augmentation.
type Views struct {
	Size       int        `mapstructure:"size"`
	MinScale   float64    `mapstructure:"min_scale"` // in (0, MaxScale]
	MaxScale   float64    `mapstructure:"max_scale"` // at most 1
	MinRatio   float64    `mapstructure:"min_ratio"` // in (0, MaxRatio]
	MaxRatio   float64    `mapstructure:"max_ratio"`
	Flip       float64    `mapstructure:"flip"`
	Jitter     float64    `mapstructure:"jitter"`
	Brightness float64    `mapstructure:"brightness"`
	Contrast   float64    `mapstructure:"contrast"`
	Saturation float64    `mapstructure:"saturation"`
	Hue        float64    `mapstructure:"hue"`
	Grey       float64    `mapstructure:"grey"`
	Mean       [3]float64 `mapstructure:"mean"`
	Std        [3]float64 `mapstructure:"std"`
}

// augmentation translates the configuration.
func (v *Views) augmentation() simclr.Augmentation {
	a := simclr.Augmentation{
		Size:     v.Size,
		MinScale: v.MinScale, MaxScale: v.MaxScale, MinRatio: v.MinRatio, MaxRatio: v.MaxRatio,
		Flip:   v.Flip,
		Jitter: v.Jitter, Brightness: v.Brightness, Contrast: v.Contrast, Saturation: v.Saturation, Hue: v.Hue,
		Grey: v.Grey,
	}
	for c := range 3 {
		a.Mean[c], a.Std[c] = float32(v.Mean[c]), float32(v.Std[c])
	}
	return a
}

// NetworkSize holds the widths of the ResNet18. Hidden and Out may be null in a
// file, but never are in a SimCLRConfig.
type NetworkSize struct {
	Width  int `mapstructure:"width"`
	Hidden int `mapstructure:"hidden"`
	Out    int `mapstructure:"out"`
}

// SimCLRLoss describes the contrastive loss of two views.
type SimCLRLoss struct {
	Loss             `mapstructure:",squash"`
	LearnTemperature bool `mapstructure:"learn_temperature"` // cosine
}

// Pretrain describes the optimisation. LR may be null in a file, but never is in
// a SimCLRConfig.
type Pretrain struct {
	Epochs      int     `mapstructure:"epochs"`       // at least 1
	BatchSize   int     `mapstructure:"batch_size"`   // images, at least 2
	LR          float64 `mapstructure:"lr"`           // above 0
	Momentum    float64 `mapstructure:"momentum"`     // in [0, 1)
	WeightDecay float64 `mapstructure:"weight_decay"` // at least 0
	DecayNorms  bool    `mapstructure:"decay_norms"`
	LRZ         float64 `mapstructure:"lr_z"`    // at least 0; nc
	Anneal      string  `mapstructure:"anneal"`  // cosine, linear or none
	WarmUp      int     `mapstructure:"warm_up"` // epochs, below Epochs
	Clip        float64 `mapstructure:"clip"`    // 0: none
	LogEvery    int     `mapstructure:"log_every"`
}

// Monitor says how a classifier watches the training.
type Monitor struct {
	Every int `mapstructure:"every"` // epochs; 0: never
	Test  int `mapstructure:"test"`  // images
	Train int `mapstructure:"train"` // images
}

// Evaluate says how a representation is evaluated. Split may be null in a file,
// but never is in a SimCLRConfig.
type Evaluate struct {
	AtEnd bool     `mapstructure:"at_end"`
	Split string   `mapstructure:"split"` // official or stratified
	Test  int      `mapstructure:"test"`  // images; stratified
	Seeds []uint64 `mapstructure:"seeds"` // at least one, none twice; stratified
	K     int      `mapstructure:"k"`
}

// complete fills in what depends on other values and was left null.
func (c *SimCLRConfig) complete() {
	if c.Network.Hidden == 0 {
		c.Network.Hidden = min(16*c.Network.Width, maxWidth)
	}
	if c.Network.Out == 0 {
		c.Network.Out = 2 * c.Network.Width
	}
	if c.Train.LR == 0 {
		c.Train.LR = 0.03 * float64(c.Train.BatchSize) / 256
	}
	if c.Evaluate.Split == "" {
		c.Evaluate.Split = "stratified"
		if c.SimCLR.PretrainOn == "train" {
			c.Evaluate.Split = "official"
		}
	}
}

// clashes lists what can clash.
func (c *SimCLRConfig) clashes() []clash {
	v := &c.Views
	return append(c.Loss.clashes(), []clash{
		{
			found: v.MinScale > v.MaxScale,
			key:   "views.min_scale", value: v.MinScale, other: "views.max_scale",
			remedy: "the former must not be larger",
		},
		{
			found: v.MinRatio > v.MaxRatio,
			key:   "views.min_ratio", value: v.MinRatio, other: "views.max_ratio",
			remedy: "the former must not be larger",
		},
		{
			found: c.Loss.Metric == "cosine" && c.Network.Out == 1,
			key:   "network.out", value: c.Network.Out, other: "loss.metric",
			remedy: "in one dimension a cosine is 1 or -1, so take at least 2 dimensions or the metric euclidean",
		},
		{
			found: c.Loss.LearnTemperature && c.Loss.Metric != "cosine",
			key:   "loss.learn_temperature", value: c.Loss.LearnTemperature, other: "loss.metric",
			remedy: "only the cosine similarity has a temperature, so set it to false or choose cosine",
		},
		{
			found: c.Train.WarmUp >= c.Train.Epochs,
			key:   "train.warm_up", value: c.Train.WarmUp, other: "train.epochs",
			remedy: "take fewer epochs to warm up than there are",
		},
		{
			found: c.Monitor.Every > 0 && c.Monitor.Train < c.Evaluate.K,
			key:   "monitor.train", value: c.Monitor.Train, other: "evaluate.k",
			remedy: "take at least as many images as neighbours, or set monitor.every to 0",
		},
	}...)
}
