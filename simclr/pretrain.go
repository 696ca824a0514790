package simclr

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"cne/data/images"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/selection"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A Pretraining trains a ResNet on images without labels (SimCLR: Chen et al., 2020;
// Section 7 of the paper): two views of one image attract each other, and repel the views
// of other images of the batch. For the paper's values use PaperPretraining. The zero
// value is invalid: Augmentation, Negatives, Epochs and LR (or Stages with these two) have
// no defaults. Network, Views, BatchSize and LRZ do, and other fields may be zero.
//
// It is train.Fit on a graph whose edges are the images: edge i goes from view 0
// of image i, its head, to view 1, its tail, and both are drawn anew in every
// epoch. See train.Options about phases, negatives and the constants of the losses.
type Pretraining struct {
	// Augmentation says how views are drawn, and sets their size.
	Augmentation Augmentation `key:"views"`
	// Views is V, the even number of views of each image in a batch; 0 means 2. With more,
	// every view attracts all other views of its image and repels all views of the batch's
	// other images. The run then spends more time on fewer images. This pays off in short runs
	// (poly-view learning: Shidani et al., 2024; EMP-SSL: Tong et al., 2023). More than two
	// views require InfoNC, Negatives of train.Full, and the CPU.
	Views int `key:"views.count" in:"[2,1024]"`
	// Network are the widths of the network.
	Network model.ResNetOptions `key:"network"`
	// From is the initial network; it is copied. nil means a random network drawn with Seed.
	// Width and Hidden of Network must be its own, or 0. An output of another width is a new
	// one: see Stage.
	From *model.ResNet[float32]

	// Loss is the loss, whose metric is op.Cosine in SimCLR.
	Loss op.ContrastiveOptions `key:"loss"`
	// Spectrum is the position of the loss on the spectrum, for the 2n views of n images.
	Spectrum train.SpectrumParam `key:"loss"`
	// LogZ and LRZ are about NC-t-SNE's log Z: see train.Options. An LRZ of nil means 0.001; 0
	// keeps log Z.
	LogZ float64  `key:"loss.log_z" in:"[-60,60]"`
	LRZ  *float64 `key:"train.lr_z,given" in:"[0,inf)"`

	// BatchSize is b, the number of images in a batch; 0 means 1024. Their 2b views go
	// through the network together. The last batch of an epoch is left out if it is
	// incomplete.
	BatchSize int `key:"train.batch_size" in:"[2,inf)"`
	// Negatives is m, the number of negatives for each edge, for any b, or train.Full.
	// Sampling is the way to draw them.
	Negatives int            `key:"loss.negatives" in:"[1,inf)" words:"full=-1"`
	Sampling  train.Sampling `key:"loss.sampling"`

	// Epochs is the number of epochs. During the first WarmUp epochs, fewer than Epochs, the
	// learning rate rises linearly from 0 to LR, with every batch. Then Schedule lowers it.
	Epochs   int            `key:"train.epochs,null" in:"[1,inf)"`
	WarmUp   int            `key:"train.warm_up" in:"[0,inf)"`
	LR       float64        `key:"train.lr,null" in:"(0,inf)"`
	Schedule train.Schedule `key:"train.anneal" words:"cosine"`
	// Stages, if any, replace Epochs. Epochs must then be 0 or the sum of their epochs. They
	// run in order; each starts from the network of the stage before.
	Stages []Stage `key:"stages" item:"stage"`
	// Optimizer updates the parameters. Muon requires the CPU and the metric op.Cosine.
	// Momentum and WeightDecay are as in train.SGD and train.Muon. Clip bounds the gradients element-wise; 0 means no bound.
	Optimizer   Optimizer `key:"train.optimizer"`
	Momentum    float64   `key:"train.momentum" in:"[0,1)"`
	WeightDecay float64   `key:"train.weight_decay" in:"[0,inf)"`
	Clip        float64   `key:"train.clip" in:"[0,inf)"`

	// Seed seeds the initial network, the order of the images, the negatives and the views.
	Seed uint64 `key:"seed" in:"[0,inf)"`

	// Precision is the precision of the convolutions while the network is trained; its
	// representations are computed in float32. On the CPU op.BFloat16 is slow unless it is
	// Native.
	Precision op.Precision

	// Device makes the views and trains the network, which stays there; nil means the CPU.
	Device *model.Device

	// Hooks, OnBatch, Checkpoints and Resume: see train.Options. In a hook, the model of the
	// state is a *Network. The hook may use it for representations without affecting the
	// training. An edge is an image, so EdgesPerSecond counts images, each seen twice.
	Hooks       []train.Hook
	OnBatch     func(epoch, done, batches int, loss float64)
	Checkpoints *train.Checkpoints
	Resume      *train.Checkpoint
}

// PaperPretraining returns the paper's run on CIFAR-10 with 16 negatives:
// ResNet18, InfoNCE, 1024 images to a batch, 1000 epochs. Its learning rate changes with every
// batch; the paper's program changes it with every epoch, and begins with 0.
func PaperPretraining() Pretraining {
	return Pretraining{
		Augmentation: Paper(), Views: 2, BatchSize: 1024,
		Loss:      op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5, Scale: op.InfoNC.Info().Scale, Mean: true},
		Negatives: 16, Sampling: train.SamplePerHead,
		Epochs: 1000, WarmUp: 5, LR: 0.03 * 1024 / 256, Schedule: train.Cosine,
		Momentum: 0.9, WeightDecay: 5e-4, Clip: 4,
	}
}

// Check validates p for a number of images. Only Run checks that Network fits From. Errors
// wrap ErrOption and are mostly of the type *train.OptionError.
func (p *Pretraining) Check(images int) error {
	if err := p.Augmentation.Check(); err != nil {
		return err
	}
	var fault *option.Error
	b, total := p.batchSize(), TotalEpochs(p.Stages)
	const most = math.MaxInt32 / 2 // views are numbered
	views := func(other, otherGot, want string) *option.Error {
		return &option.Error{Key: "views.count", Got: fmt.Sprint(p.Views), Other: other, OtherGot: otherGot, Want: want}
	}
	switch {
	case errors.As(option.Check(p), &fault), errors.As(p.Loss.Check(), &fault):
	case total > 0 && p.Epochs != 0 && p.Epochs != total:
		fault = &option.Error{Key: "train.epochs", Got: fmt.Sprint(p.Epochs), Other: "stages",
			OtherGot: fmt.Sprintf("of %d epochs", total), Want: "null"}
	case p.views()%2 != 0:
		fault = views("", "", "an even number")
	case p.views() > 2 && p.Loss.Loss != op.InfoNC:
		fault = views("loss.name", p.Loss.Loss.Info().Word, "2")
	case p.views() > 2 && p.Negatives != train.Full:
		fault = views("loss.negatives", fmt.Sprint(p.Negatives), "2, or loss.negatives: full")
	case p.views() > 2 && !p.Device.OnHost():
		fault = views("device.name", p.Device.Name(), "2, or device.name: cpu")
	case p.Optimizer == Muon && !p.Device.OnHost():
		fault = &option.Error{Key: "train.optimizer", Got: "muon", Other: "device.name", OtherGot: p.Device.Name(), Want: "sgd, or device.name: cpu"}
	case p.Optimizer == Muon && p.Loss.Metric != op.Cosine: // it keeps the norms of weights, and so the size of a map
		fault = &option.Error{Key: "train.optimizer", Got: "muon", Other: "loss.metric", OtherGot: p.Loss.Metric.String(), Want: "sgd"}
	case p.Network.Small && p.Augmentation.WholeSize == 1:
		fault = &option.Error{Key: "views.whole_size", Got: "1", Other: "network.small", OtherGot: "true", Want: "2 or more"}
	case b > min(images, most):
		fault = &option.Error{Key: "train.batch_size", Got: fmt.Sprintf("%d for %d images", b, images), Want: "at most as many"}
	case images > most:
		fault = &option.Error{Got: fmt.Sprintf("%d images", images), Want: fmt.Sprintf("at most %d", most)}
	default:
		fault = p.checkStages(images)
	}
	if fault != nil {
		return fmt.Errorf("%w: %w", ErrOption, fault)
	}
	return nil
}

func (p *Pretraining) views() int { return cmp.Or(p.Views, 2) }

func (p *Pretraining) batchSize() int { return cmp.Or(p.BatchSize, 1024) }

// Run trains a network on the images of the given rows, or on all if rows is nil. It never
// reads their labels. When a run ends early, with one of the errors of train.Fit, the
// network keeps what it has learnt; errors that wrap ErrOption or ErrShape come without a
// network. The same seed gives the same network.
func (p *Pretraining) Run(ctx context.Context, images *images.Set, rows []int32) (_ *Network, _ train.Result, err error) {
	defer kind.Catch(&err)
	rows = p.prepare(images, rows)
	stages := p.stages()
	first := 0
	for i := range stages {
		if p.Resume != nil && p.Resume.Progress.Follows == start(stages, i) {
			first = i
		}
	}
	// For a resumed stage, the checkpoint has the results of the stages before.
	result := train.Result{Epochs: start(stages, first), LogZ: p.LogZ}
	var n *Network
	for i := first; i < len(stages); i++ {
		before := n
		if n, err = p.stage(stages, i, before, images, rows); err != nil {
			return before, result, err
		}
		options := p.options(stages[i])
		options.Images = &viewSource{Network: n}
		options.Follows = result
		if before != nil && before.Options().Out == n.Options().Out {
			options.LogZ = result.LogZ
		}
		if i == first {
			options.Resume = p.Resume
		}
		options.Hooks = ofAll(TotalEpochs(stages), p.Hooks)
		heads, tails := edges(len(rows))
		if result, err = train.Fit(ctx, n, heads, tails, options); err != nil {
			return n, result, err
		}
	}
	return n, result, nil
}

// ofAll returns hooks that see the number of epochs of all stages.
func ofAll(epochs int, hooks []train.Hook) []train.Hook {
	all := make([]train.Hook, len(hooks))
	for i, h := range hooks {
		all[i] = train.HookFunc(func(s *train.State) error {
			s.Epochs = epochs
			return h.AfterEpoch(s)
		})
	}
	return all
}

// A Stage is a part of a Pretraining with its own schedule, output and optimiser. The
// optimiser's state starts anew. t-SimCNE (Böhm, Berens and Kobak, 2023) has three stages.
// First the network learns as in SimCLR, with a high-dimensional output. Then a new
// two-dimensional output is trained. Finally the whole network is fine-tuned.
type Stage struct {
	// Epochs is the number of epochs, at least 1. WarmUp and LR default to the
	// fields of Pretraining.
	Epochs int     `key:"epochs" in:"[1,inf)"`
	LR     float64 `key:"lr,null" in:"(0,inf)"`
	WarmUp *int    `key:"warm_up" in:"[0,inf)"`
	// Out is the width of the network's output; 0 means the width of the stage before, and in
	// the first stage the width of From, or of Network. An output of another width than
	// before is a new last layer of the head, drawn by Seed.
	Out int `key:"out,null" in:"[1,65536]"`
	// Size is the width and height of a view in pixels; 0 means Augmentation.Size. Small views
	// are cheap to begin with (progressive resizing); large ones are nearer to whole images.
	Size int `key:"size,null" in:"[1,4096]"`
	// Freeze lists the parts of the network, of model.Modules, that are not learnt;
	// "backbone" is all but the head. Their parameters do not change. Normalisations among
	// them still use the statistics of the batch, and keep running ones, as PyTorch's do in
	// training when their parameters have requires_grad=False.
	Freeze []string `key:"freeze" words:"backbone conv1 bn1 layer1 layer2 layer3 layer4 fc1 fc2"`
}

// TSimCNE returns the stages of t-SimCNE for a total number of epochs, at least 3. The
// paper's program has 1500: 1000 with the network's own output, 50 that train only a new
// output of two dimensions, and 450 for the whole network. lr is the learning rate of the
// first two stages; the last takes a thousandth of it. The first and the last warm up for
// 10 epochs, or a tenth of their epochs if that is less. For a pretrained network there is
// no first stage, and epochs must be at least 2.
func TSimCNE(epochs int, lr float64, pretrained bool) []Stage {
	share := func(part, of int) int { return max(1, int(math.Round(float64(epochs)*float64(part)/float64(of)))) }
	stages := []Stage{
		{Epochs: min(share(1000, 1500), max(1, epochs-2)), LR: lr},
		{Epochs: share(50, 1500), LR: lr, Out: 2, Freeze: []string{"backbone", "fc1"}},
		{LR: thousandth(lr), Out: 2},
	}
	if pretrained {
		stages = stages[1:]
		stages[0].Epochs = share(50, 500)
	}
	last := len(stages) - 1
	stages[last].Epochs = max(1, epochs-start(stages, last))
	for i := range stages {
		warmUp := selection.If(len(stages[i].Freeze) == 0, min(10, stages[i].Epochs/10), 0)
		stages[i].WarmUp = &warmUp
	}
	return stages
}

// thousandth returns the float64 nearest to the decimal x/1000; the quotient may be off
// by a bit.
func thousandth(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x/1000, 'g', 12, 64), 64)
	if err != nil {
		return x / 1000
	}
	return y
}

// stages returns the stages, at least one, with their widths filled in.
func (p *Pretraining) stages() []Stage {
	stages := slices.Clone(p.Stages)
	if len(stages) == 0 {
		stages = []Stage{{Epochs: p.Epochs}}
	}
	out := p.Network.Out
	if out == 0 {
		out = 2 * cmp.Or(p.Network.Width, 64)
		if p.From != nil {
			out = p.From.Options().Out
		}
	}
	for i := range stages {
		s := &stages[i]
		out = cmp.Or(s.Out, out)
		s.Out, s.LR, s.WarmUp, s.Size = out, cmp.Or(s.LR, p.LR), cmp.Or(s.WarmUp, &p.WarmUp), cmp.Or(s.Size, p.Augmentation.Size)
	}
	return stages
}

// stageOf returns the stage of an epoch, both counted from 0.
func stageOf(stages []Stage, epoch int) int {
	for i, s := range stages {
		if epoch < s.Epochs {
			return i
		}
		epoch -= s.Epochs
	}
	return len(stages) - 1
}

// TotalEpochs adds up the epochs of stages.
func TotalEpochs(stages []Stage) int { return start(stages, len(stages)) }

// start returns the number of epochs before a stage.
func start(stages []Stage, stage int) int {
	return selection.Sum(selection.Map(stages[:stage], func(s Stage) int { return s.Epochs }))
}

// Work returns the work of the first epochs, for telling how long the others take: their number,
// or with Stages the sum of the squares of their views' sizes, a third of it where the network
// is frozen.
func (p *Pretraining) Work(epochs float64) (work float64) {
	for _, s := range p.Stages {
		size, part := float64(cmp.Or(s.Size, p.Augmentation.Size)), min(epochs, float64(s.Epochs))
		each := size * size
		if slices.Contains(s.Freeze, "backbone") {
			each /= 3 // gradients take twice the time of the rest
		}
		work, epochs = work+float64(part*each), epochs-part
	}
	return work + epochs
}

// checkStages checks the stages for a number of images.
func (p *Pretraining) checkStages(images int) *option.Error {
	var fault *option.Error
	stages := p.stages()
	for i, s := range stages {
		options := p.options(s)
		options.Follows.Epochs = start(stages, i)
		key := selection.If(len(p.Stages) == 0, "network.out", "out")
		frozen := s.frozen()
		switch {
		case errors.As(options.Check(p.Loss, 2*images, images), &fault):
		case errors.As(p.Loss.CheckWidth(key, s.Out), &fault):
		case frozen != nil && !slices.ContainsFunc(model.Modules, func(module string) bool { return !frozen(module) }):
			fault = &option.Error{Key: "freeze", Got: "the whole network", Want: "fc2 or another part to be learnt"}
		case p.Network.Small && s.Size == 1:
			fault = &option.Error{Key: selection.If(len(p.Stages) == 0, "views.size", "size"), Got: "1", Other: "network.small", OtherGot: "true", Want: "2 or more"}
		}
		if fault == nil {
			continue
		}
		if fault.List, fault.Item = "", ""; len(p.Stages) > 0 {
			fault.List, fault.Item = "stages", fmt.Sprintf("stage %d", i+1)
		}
		return fault
	}
	return nil
}

// frozen returns a function that reports whether the parameter with a name is frozen, or
// nil if none is.
func (s *Stage) frozen() func(name string) bool {
	if len(s.Freeze) == 0 {
		return nil
	}
	head := slices.Index(model.Modules, "fc1")
	return func(name string) bool {
		module := model.Module(name)
		i := slices.Index(model.Modules, module)
		return slices.Contains(s.Freeze, module) || slices.Contains(s.Freeze, "backbone") && 0 <= i && i < head
	}
}

// KeepsZ reports whether NC-t-SNE's log Z stays fixed.
func (p *Pretraining) KeepsZ() bool {
	return p.LRZ != nil && *p.LRZ == 0 && p.Loss.Loss.Info().Constant == op.LearntZ
}

// options returns the options of train.Fit for a stage, without the source of the views.
func (p *Pretraining) options(s Stage) train.Options {
	return train.Options{
		Phases: []train.Phase{{
			Epochs: s.Epochs, LR: s.LR, Schedule: p.Schedule, WarmUp: *s.WarmUp, Spectrum: p.Spectrum, Negatives: p.Negatives,
		}},
		BatchSize: p.batchSize(), DropLast: true, Seed: p.Seed, Sampling: p.Sampling,
		Optimizer: p.optimizer(),
		Clip:      p.Clip, LogZ: p.LogZ, FixZ: p.KeepsZ(), LRZ: *cmp.Or(p.LRZ, new(0.001)), Device: p.Device,
		Hooks: p.Hooks, OnBatch: p.OnBatch, Checkpoints: p.Checkpoints,
	}
}

// An Optimizer is an optimiser of a Pretraining.
type Optimizer int

const (
	// SGD is stochastic gradient descent with momentum (train.SGD), as in the paper.
	SGD Optimizer = iota
	// Muon is train.Muon, which needs fewer epochs. It runs on the CPU.
	Muon
)

var optimizerNames = kind.Names[Optimizer]{
	Package: "simclr", Type: "Optimizer", What: "optimiser", Err: ErrOption, Words: []string{"sgd", "muon"},
}

func (o Optimizer) String() string { return optimizerNames.String(o) }

// MarshalText implements encoding.TextMarshaler.
func (o Optimizer) MarshalText() ([]byte, error) { return optimizerNames.Text(o) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Optimizer) UnmarshalText(text []byte) error { return optimizerNames.Parse(o, text) }

// Words returns the names of the optimisers.
func (Optimizer) Words() []string { return optimizerNames.Words }

// optimizer returns a new optimiser.
func (p *Pretraining) optimizer() train.Optimizer {
	if p.Optimizer == Muon {
		return &train.Muon{Momentum: p.Momentum, WeightDecay: p.WeightDecay}
	}
	return &train.SGD{Momentum: p.Momentum, WeightDecay: p.WeightDecay}
}

// A Record is the JSON object that Records writes for an epoch of a pretraining.
type Record struct {
	Epoch int `json:"epoch"` // from 1
	// Phase is the number of the stage, from 0; it is left out for a single stage.
	Phase int `json:"phase,omitempty"`
	// Loss is State.Loss, LR the learning rate.
	Loss float64 `json:"loss"`
	LR   float64 `json:"lr"`
	// Accuracy is the accuracy that a Monitor measured; it is left out if none did.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// LogZ is NC-t-SNE's log Z; it is left out if there is none.
	LogZ *float64 `json:"log_z,omitempty"`
	// Seconds is the time since the run began, without the hooks.
	Seconds         float64 `json:"seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
}

// Records returns a hook that writes a Record to w as a line of JSON for every epoch.
// accuracy, if not nil, returns the accuracy measured after an epoch, or nil; the Monitor's
// hook must run before this one.
func (p *Pretraining) Records(w io.Writer, accuracy func(epoch int) *float64) train.Hook {
	encoder, stages := json.NewEncoder(w), p.stages()
	return train.HookFunc(func(s *train.State) error {
		r := Record{Epoch: s.Epoch, Phase: stageOf(stages, s.Epoch-1), Loss: s.Loss, LR: s.LR, Seconds: s.Elapsed.Seconds(),
			ImagesPerSecond: s.EdgesPerSecond}
		if accuracy != nil {
			r.Accuracy = accuracy(s.Epoch)
		}
		if p.Loss.Loss.Info().Constant == op.LearntZ {
			r.LogZ = &s.LogZ
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("writing the record of epoch %d: %w", s.Epoch, err)
		}
		return nil
	})
}

// Accuracies returns the accuracies by epoch from lines written by Records, and the
// latest accuracy. Without accuracies the map is empty and latest is nil.
func Accuracies(lines []byte) (byEpoch map[int]float64, latest *float64) {
	byEpoch = map[int]float64{}
	for line := range bytes.Lines(lines) {
		var r Record
		if json.Unmarshal(line, &r) == nil && r.Accuracy != nil {
			byEpoch[r.Epoch], latest = *r.Accuracy, r.Accuracy
		}
	}
	return byEpoch, latest
}
