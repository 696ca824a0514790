package simclr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"cne/data/images"
	"cne/internal/option"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A Pretraining trains a ResNet on images without labels (SimCLR: Chen et al.,
// 2020; Section 7 of the paper): two views of one image attract each other, and
// repel those of other images of the batch. The zero value is not the paper's:
// use PaperPretraining.
//
// It is train.Fit on a graph whose edges are the images: edge i goes from view 0
// of image i, its head, to view 1, its tail, and both are drawn anew in every
// epoch. See train.Options about phases, negatives and the constants of the losses.
type Pretraining struct {
	// Augmentation says how views are drawn, and of which size.
	Augmentation Augmentation `key:"views"`
	// Network are the widths of the network.
	Network model.ResNetOptions `key:"network"`
	// From is a network to begin with, which is copied; nil begins with one that Seed
	// draws. Width and Hidden of Network must be its own, or 0. An output of another width
	// is a new one: see Stage.
	From *model.ResNet[float32]

	// Loss is the loss, whose metric is op.Cosine in SimCLR. LearnTemperature learns
	// its temperature, from Loss.Temperature on, with the learning rate of the weights.
	Loss             op.ContrastiveOptions `key:"loss"`
	LearnTemperature bool                  `key:"loss.learn_temperature"`
	// Spectrum is where the loss is on the spectrum, for the 2n views of n images.
	Spectrum train.SpectrumParam `key:"loss"`
	// LogZ, LRZ and FixZ are about NC-t-SNE's log Z: see train.Options. LRZ is nil for
	// 0.001, and 0 keeps log Z as FixZ does.
	LogZ float64  `key:"loss.log_z" in:"[-60,60]"`
	LRZ  *float64 `key:"train.lr_z,given" in:"[0,inf)"`
	FixZ bool     `key:"loss.learn_z" words:"true false"`

	// BatchSize is b, the number of images in a batch; 0 means 1024. Their 2b views go
	// through the network together. The last batch of an epoch is left out if it is
	// incomplete.
	BatchSize int `key:"train.batch_size" in:"[2,inf)"`
	// Negatives is m, the number of negatives for each head, whatever b is, or
	// train.Full; Sampling is how they are drawn.
	Negatives int            `key:"loss.negatives" in:"[1,inf)" words:"full=-1"`
	Sampling  train.Sampling `key:"loss.sampling"`

	// Epochs is the number of epochs. During the first WarmUp, fewer, the learning rate
	// rises linearly from 0 to LR, with every batch; then it is annealed.
	Epochs   int            `key:"train.epochs,null" in:"[1,inf)"`
	WarmUp   int            `key:"train.warm_up" in:"[0,inf)"`
	LR       float64        `key:"train.lr,null" in:"(0,inf)"`
	Schedule train.Schedule `key:"train.anneal" words:"cosine"`
	// Stages, unless there are none, take the place of Epochs, which may then be 0 or their
	// sum: they are run one after the other, each from the network that the one before has
	// left.
	Stages []Stage `key:"stages" item:"stage"`
	// Momentum and WeightDecay are those of train.SGD. NoNormDecay exempts the
	// normalisations and the biases from weight decay; the temperature is always
	// exempt. Clip bounds the gradients element-wise; 0 means no bound.
	Momentum    float64 `key:"train.momentum" in:"[0,1)"`
	WeightDecay float64 `key:"train.weight_decay" in:"[0,inf)"`
	NoNormDecay bool    `key:"train.decay_norms" words:"true false"`
	Clip        float64 `key:"train.clip" in:"[0,inf)"`

	// Seed draws the start of the network, the order of the images, the
	// negatives and the views.
	Seed uint64 `key:"seed" in:"[0,inf)"`

	// Precision is that of the convolutions while the network is trained; its
	// representations are computed in float32. On the CPU op.BFloat16 is slow unless it is
	// Native.
	Precision op.Precision

	// Device is where views are made, and where the network is trained and stays; nil
	// means the CPU.
	Device *model.Device

	// Hooks, OnBatch, Checkpoints and Resume are those of train.Options. In a hook, the
	// model of the state is a *Network, which may be used for representations:
	// that changes nothing. An edge is an image, so that EdgesPerSecond are
	// images, each seen twice, per second.
	Hooks       []train.Hook
	OnBatch     func(epoch, done, batches int, loss float64)
	Checkpoints *train.Checkpoints
	Resume      *train.Checkpoint
}

// PaperPretraining returns the paper's run on CIFAR-10 with 16 negatives:
// ResNet18, InfoNCE, 1024 images to a batch, 1000 epochs. Its step size goes by batch,
// that of the paper's program by epoch, the first of which has step size 0.
func PaperPretraining() Pretraining {
	return Pretraining{
		Augmentation: Paper(),
		Loss:         op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5, Scale: op.InfoNC.Info().Scale, Mean: true},
		BatchSize:    1024,
		Negatives:    16,
		Sampling:     train.SamplePerHead,
		Epochs:       1000,
		WarmUp:       5,
		LR:           0.03 * 1024 / 256,
		Schedule:     train.Cosine,
		Momentum:     0.9,
		WeightDecay:  5e-4,
		Clip:         4,
	}
}

// Check says what is wrong with the pretraining for so many images. Only widths of the
// network are left to Run, which calls Check first. Errors wrap ErrOption and are mostly of
// the type *train.OptionError.
func (p *Pretraining) Check(images int) error {
	if err := p.Augmentation.Check(); err != nil {
		return err
	}
	var fault *option.Error
	b, total := p.batchSize(), TotalEpochs(p.Stages)
	const most = math.MaxInt32 / 2 // views are numbered
	switch {
	case errors.As(option.Check(p), &fault), errors.As(p.Loss.Check(), &fault):
	case p.LearnTemperature && p.Loss.Metric != op.Cosine:
		fault = &option.Error{Key: "loss.learn_temperature", Got: "true", Other: "loss.metric", OtherGot: p.Loss.Metric.String(), Want: "false; only the cosine has a temperature"}
	case p.LearnTemperature && p.Loss.Temperature > op.MaxTemperature:
		fault = &option.Error{Key: "loss.temperature", Got: fmt.Sprint(p.Loss.Temperature), Other: "loss.learn_temperature", OtherGot: "true", Want: fmt.Sprintf("a number from 0.01 to %d", op.MaxTemperature)}
	case total > 0 && p.Epochs != 0 && p.Epochs != total:
		fault = &option.Error{Key: "train.epochs", Got: fmt.Sprint(p.Epochs), Other: "stages", OtherGot: fmt.Sprintf("of %d epochs", total), Want: "null"}
	case b > min(images, most):
		fault = &option.Error{Key: "train.batch_size", Got: fmt.Sprintf("%d for %d images", b, images), Want: "at most as many as there are"}
	case images > most:
		fault = &option.Error{Got: fmt.Sprintf("%d images", images), Want: fmt.Sprintf("at most %d", most)}
	default:
		fault = p.checkStages(images)
	}
	if fault != nil {
		return fmt.Errorf("%w: %w", ErrOption, fault)
	}
	if err := p.options(p.stages()[0]).Optimizer.Init(nil); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	return nil
}

func (p *Pretraining) batchSize() int { return cmp.Or(p.BatchSize, 1024) }

// noDecay tells which parameters have no weight decay.
func (p *Pretraining) noDecay(q *model.Parameter) bool {
	// The vectors of a ResNet are those of normalisations and the biases.
	return q.Name == model.LogTemperature || p.NoNormDecay && len(q.Value.Shape()) == 1
}

// Run trains a network on the images of the given rows, or on all if rows is
// nil. It never reads their labels. When a run ends early, with one of the
// errors of train.Fit, the network keeps what it has learnt; errors that wrap
// ErrOption or ErrShape come without a network. The same seed gives the same
// network, to the last bit, whatever GOMAXPROCS is.
func (p *Pretraining) Run(ctx context.Context, images *images.Set, rows []int32) (*Network, train.Result, error) {
	rows, err := p.prepare(images, rows)
	if err != nil {
		return nil, train.Result{}, err
	}
	stages := p.stages()
	first := 0
	for i := range stages {
		if p.Resume != nil && p.Resume.Progress.Follows == start(stages, i) {
			first = i
		}
	}
	// A stage that is resumed finds what came before it in the checkpoint.
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
