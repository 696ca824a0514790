package configs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/option"
	"cne/internal/selection"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// SimCLR is the configuration of a pretraining on images, and of its evaluation: see
// Config. simclr-default.yaml lists its keys.
type SimCLR struct {
	// Pretrain are the options of the library; see Pretraining. Widths, Epochs and LR are
	// never the values that stand for a default.
	Pretrain   simclr.Pretraining `key:",squash"`
	Device     Device             `key:"device"`
	Output     SimCLROutput       `key:"output"`
	Data       ImageData          `key:"data"`
	SimCLR     Protocol           `key:"simclr"`
	Model      Beginning          `key:"model"`
	Monitor    Monitor            `key:"monitor"`
	Checkpoint Checkpoint         `key:"checkpoint"`
	Evaluate   Evaluate           `key:"evaluate"`
	Log        Log                `key:"log"`
}

// Inputs returns the files and folders that a run reads, except its configuration.
func (c *SimCLR) Inputs() []string {
	return slices.Concat(c.Data.Path, file.Paths(c.Data.Labels), given(c.Model.From))
}

// SimCLROutput says where results are written.
type SimCLROutput struct {
	Dir string `key:"dir" as:"text"` // folder for the results
	// For runs whose network gives positions (see Embeds): embedding.csv, embedding.png,
	// embedding.html and its images.
	CSV  bool `key:"csv"`
	Plot bool `key:"plot"`
	HTML bool `key:"html"`
}

// ImageData says where the images and their labels come from.
type ImageData struct {
	Path           []string `key:"path" as:"inputs"`
	images.Options `key:",squash"`
}

// Protocol says which images the network sees, and how it learns from them.
type Protocol struct {
	PretrainOn string `key:"pretrain_on" words:"auto all train"`
	Method     string `key:"method" words:"simclr tsimcne"`
}

// Beginning says how a network is initialised.
type Beginning struct {
	From string `key:"from,null" as:"text"` // run folder or file; "": random weights
}

// Monitor says how a classifier watches the training.
type Monitor struct {
	Every int `key:"every" in:"[0,inf)"` // epochs; 0: never
}

// MonitorTest is the number of images that the monitor classifies, and MonitorTrain the
// number among which it searches their neighbours.
const MonitorTest, MonitorTrain = 2000, 10000

// Evaluate says how a representation is evaluated. Split is "" if the images decide: see
// SimCLR.Evaluation.
type Evaluate struct {
	AtEnd             bool   `key:"at_end"`
	Split             string `key:"split,null" words:"official stratified random"`
	simclr.Evaluation `key:",squash"`
}

func (c *SimCLR) common() Common {
	return Common{&c.Output.Dir, c.Pretrain.Epochs, c.Checkpoint, c.Log, c.Device, false, c.Data.Path, c.Inputs()}
}

func (c *SimCLR) dataSize(ctx context.Context) data.Size {
	return images.Size(ctx, c.Data.Path, c.Data.Options)
}

func (c *SimCLR) checkColumns(_ context.Context, started bool) error {
	if started {
		return nil
	}
	return checkFiles("model.from", given(c.Model.From))
}

// complete fills in null values that depend on other values.
func (c *SimCLR) complete(given func(key string) bool, _ int) {
	p := &c.Pretrain
	paper := simclr.Paper()
	p.Augmentation.MinRatio, p.Augmentation.MaxRatio = paper.MinRatio, paper.MaxRatio
	p.Augmentation.Mean, p.Augmentation.Std, p.Loss.Mean = paper.Mean, paper.Std, true
	p.Network.Hidden = cmp.Or(p.Network.Hidden, min(16*p.Network.Width, 65536)) // the largest allowed
	p.Network.Out = cmp.Or(p.Network.Out, 2*p.Network.Width)
	p.Augmentation.WholeSize = cmp.Or(p.Augmentation.WholeSize, p.Augmentation.Size)
	p.LR = cmp.Or(p.LR, selection.If(p.Optimizer == simclr.Muon, 0.03, 0.03*float64(p.BatchSize)/256))
	if c.SimCLR.Method == tsimcne {
		c.applyTSimCNE(given)
	}
	p.Epochs = cmp.Or(p.Epochs, simclr.TotalEpochs(p.Stages), 1000)
	if !given("train.warm_up") { // at most a quarter of the training, or of a stage without its own
		for i := range p.Stages {
			if s := &p.Stages[i]; s.WarmUp == nil && p.WarmUp > s.Epochs/4 {
				s.WarmUp = new(s.Epochs / 4)
			}
		}
		if len(p.Stages) == 0 {
			p.WarmUp = min(p.WarmUp, p.Epochs/4)
		}
	}
	if c.SimCLR.PretrainOn != "auto" {
		c.Evaluate = *c.Evaluation(nil)
	}
}

// tsimcne is the word of simclr.method for t-SimCNE.
const tsimcne = "tsimcne"

// applyTSimCNE fills in what t-SimCNE has instead of the defaults: InfoNCE over all views
// of the batch with the Cauchy kernel, and stages.
func (c *SimCLR) applyTSimCNE(given func(key string) bool) {
	p := &c.Pretrain
	if !given("loss.metric") {
		p.Loss.Metric = op.Euclidean
	}
	if !given("loss.negatives") {
		p.Negatives = train.Full
	}
	if !given("loss.scale") {
		p.Loss.Scale = 1
	}
	if len(p.Stages) > 0 {
		return
	}
	if !given("train.warm_up") {
		p.WarmUp = 10
	}
	p.Stages = c.tsimcneStages()
}

// tsimcneStages returns the stages of t-SimCNE as they would stand in a file.
func (c *SimCLR) tsimcneStages() []simclr.Stage {
	pretrained := c.Model.From != ""
	epochs := selection.If(pretrained, 500, 1500)
	stages := simclr.TSimCNE(cmp.Or(c.Pretrain.Epochs, epochs), c.Pretrain.LR, pretrained)
	for i := range stages {
		if s := &stages[i]; *s.WarmUp > 0 {
			s.WarmUp = new(min(c.Pretrain.WarmUp, s.Epochs/10))
		}
	}
	return stages
}

// Out returns the final width of the network's output.
func (c *SimCLR) Out() int {
	out := c.Pretrain.Network.Out
	for _, s := range c.Pretrain.Stages {
		out = cmp.Or(s.Out, out)
	}
	return out
}

// Embeds reports whether the run gives positions of the images that can be drawn: an
// output of up to three dimensions with Euclidean distances.
func (c *SimCLR) Embeds() bool { return c.Pretrain.Loss.Metric == op.Euclidean && c.Out() <= 3 }

// conflicts lists the conflicts between keys that the library does not know.
func (c *SimCLR) conflicts() []*option.Error {
	p, least := &c.Pretrain, 3
	if c.Model.From != "" {
		least = 2
	}
	ofMethod := c.SimCLR.Method == tsimcne
	return []*option.Error{
		conflictIf(ofMethod && p.Loss.Metric != op.Euclidean, "loss.metric", "simclr.method", "euclidean"),
		conflictIf(ofMethod && p.Epochs < least && p.Epochs != simclr.TotalEpochs(p.Stages), "train.epochs", "simclr.method",
			fmt.Sprintf("at least %d, one for each stage", least)),
	}
}

// CheckSize refuses values that are invalid for images of a size, as far as it is known.
func (c *SimCLR) CheckSize(size data.Size) error {
	p := c.Pretraining()
	if err := option.InBoth(p.Check, min(max(size.Low, p.BatchSize), size.High, math.MaxInt32/2),
		min(size.High, math.MaxInt32/2)); err != nil {
		return err
	}
	e := &c.Evaluate
	if e.Split == "official" || !e.AtEnd && c.Monitor.Every == 0 {
		return nil
	}
	switch left := size.High - e.TestOf(size.High); {
	case left <= 0:
		return &option.Error{Key: "evaluate.test", Got: fmt.Sprint(e.Test),
			Want: fmt.Sprintf("fewer than the images (%d), or evaluate.at_end: false and monitor.every: 0", size.High)}
	case e.K > left:
		return &option.Error{Key: "evaluate.k", Got: fmt.Sprint(e.K),
			Want: fmt.Sprintf("at most the images that evaluate.test leaves (%d)", left)}
	}
	return nil
}

// points returns 0: SimCLR has no presets that depend on the number of images.
func (c *SimCLR) points(context.Context) int { return 0 }
