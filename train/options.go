package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/model"
	"cne/model/op"
)

// A Phase is a part of a run with a schedule of its own. The paper's early
// exaggeration with a fixed Z̄ is two phases: 250 epochs at Z̄ = |X|/m, annealed
// to 0, and then 500 at the Z̄ wanted.
type Phase struct {
	// Epochs is the number of passes over all edges, at least 1.
	Epochs int `key:"train.epochs" in:"[1,inf)"`
	// LR is the learning rate at the start, before it is annealed.
	LR       float64  `key:"train.lr" in:"(0,inf)"`
	Schedule Schedule `key:"train.anneal"`
	// WarmUp is the number of epochs at the start during which the learning rate rises
	// linearly from 0 to LR. It must be below Epochs.
	WarmUp int `key:"train.warm_up" in:"[0,inf)"`
	// Spectrum is the position of the loss on the spectrum.
	Spectrum SpectrumParam `key:"loss"`
	// ExaggerateEarly runs the first third of the epochs (EarlyEpochs) at max(s, 1).
	ExaggerateEarly bool
	// Negatives is m, the number of negatives for each edge, or Full or All.
	Negatives int `key:"loss.negatives" in:"[1,inf)" words:"full=-1 all=-2"`
	// LogZ, if not nil, is NC-t-SNE's log Z when the phase begins; the state of its
	// optimiser is then reset. nil continues with the value of the phase before, or with
	// Options.LogZ in the first phase. The paper's program restarts at 0 after its early
	// phase.
	LogZ *float64 `key:"loss.log_z" in:"[-60,60]"`
	// Pull adds 10·Pull·V·Σ‖y−αt‖²/Σ‖y‖² to the mean loss of an edge, for positions y without
	// a network and t of Options.Towards, about their means. α minimises the sum, and V is the
	// mean attraction of neighbours. So a Pull means the same for every loss, n and size: 0.05
	// is as strong as all attraction if y has nothing of t. α, V and Σ‖y‖² follow the embedding;
	// a step follows every epoch, on the host. It needs the Euclidean metric and plain SGD, and
	// is not in the losses of State and Result.
	Pull float64 `key:"loss.pull" in:"[0,1e6]"`
}

// Options say how a model is fitted. Phases must be set; other fields may be zero.
type Options struct {
	Phases []Phase `key:"train.phases" item:"phase"`
	// BatchSize is b, the number of edges in a batch; 0 means 1024. If there are fewer edges,
	// all are one batch.
	BatchSize int `key:"train.batch_size" in:"[2,inf)"`
	Seed      uint64
	// Weights are the weights of the edges, finite and above 0. An epoch then draws as many
	// edges as the graph has, in proportion to their weights, as UMAP does. An edge with r
	// times the mean weight is drawn ⌊r⌋ or ⌈r⌉ times in an epoch, and r times on average.
	// nil takes every edge once.
	Weights []float32
	// DropLast leaves out the last batch of an epoch if it is smaller than the
	// others.
	DropLast bool
	// Images supplies the images of each batch (Batch.Images) to a model of images; nil for
	// other models.
	Images ImageSource
	// Device computes the run; nil means the CPU. On a device the model must have the method
	// OnDevice, as the models of package model do. Optimizer and OptimizerZ must be *SGD or
	// *Adam, and Images a DeviceImageSource. The batches are the same as on the CPU. Only a
	// few numbers per batch, and what hooks and checkpoints ask for, are copied to the device
	// or back.
	Device *model.Device
	// Sampling is the way to draw negatives.
	Sampling Sampling `key:"loss.sampling"`
	// Optimizer moves the parameters; nil means plain SGD.
	Optimizer Optimizer
	// Clip bounds the gradients element-wise, ±Clip; 0 means no bound.
	Clip float64 `key:"train.clip" in:"[0,inf)"`
	// LogZ is the initial value of NC-t-SNE's log Z, per pair of points (see
	// Normalization.Z). FixZ keeps it at this value, or at a phase's. OptimizerZ updates it;
	// nil means plain SGD. LRZ is its learning rate; 0 means 0.001. No schedule changes LRZ.
	LogZ       float64 `key:"loss.log_z" in:"[-60,60]"`
	FixZ       bool
	OptimizerZ Optimizer
	LRZ        float64 `key:"train.lr_z" in:"[0,inf)"`
	// Towards [n, d] are the positions that a Pull draws towards, such as principal components.
	Towards []float32
	// Hooks are called in order after every epoch.
	Hooks []Hook
	// OnBatch, if not nil, is called after every batch, or on a device a few times a second.
	// Its arguments are the current epoch (from 1), the number of its completed batches, the
	// number of its batches, and its mean loss per edge so far. The time of the calls is
	// included in the run's.
	OnBatch func(epoch, done, batches int, loss float64)
	// Follows is the result of an earlier run that this run continues with another model, as
	// the stages of a pretraining do; the zero value means none. Hooks and checkpoints count
	// epochs and time from the start of that run, and no random number is used twice. Phases
	// are only this run's. Only Epochs and Elapsed are read.
	Follows Result
	// Retries is how often a phase that diverges (DivergedError) begins again from its start,
	// each time at a third of its learning rate; 0 ends the run instead. OnRetry, if not nil,
	// is called each time; an error ends the run.
	Retries int `key:"train.retries" in:"[0,10]"`
	OnRetry func(Retry) error
	// Checkpoints says when the state of the run is saved; nil means never.
	Checkpoints *Checkpoints
	// Resume is the checkpoint to continue from; nil starts from the beginning. Model, edges
	// and the other options must be the same as when the run was saved, except Device,
	// Hooks, OnBatch, OnRetry and Checkpoints. The last phase may have more epochs, unless a phase has
	// ExaggerateEarly; the last phase's schedule then extends over its new number of epochs.
	Resume *Checkpoint
}

// An ImageSource supplies the images of points to a model, such as random views.
type ImageSource interface {
	// Shape returns the size of an image: channels, height, width.
	Shape() [3]int
	// ImagesTo writes the images of points to dst [len(points), channels, height, width].
	// Epochs count from 0. It is called for every batch, in order, on another goroutine and
	// ahead of the batch's step. It must not depend on anything that training changes. If it
	// returns an error, the run ends with this error.
	ImagesTo(dst []float32, points []int32, epoch int) error
}

// A DeviceImageSource makes images on a device, too.
type DeviceImageSource interface {
	ImageSource
	// ImagesOn returns a DeviceImages for a device. It is called once, before the first
	// batch.
	ImagesOn(d *model.Device) (DeviceImages, error)
}

// DeviceImages makes images on a device.
type DeviceImages interface {
	// Launch writes the images of points [r] (int32) to dst [r, channels, height, width]
	// (float32); both arrays are on the device. It may return before the device is done.
	// Epochs count from 0.
	Launch(dst, points *op.Array, epoch int) error
	// Close frees the memory on the device.
	Close()
}

// ErrInput is wrapped by errors about invalid options and words, and about edges and
// points that do not fit the model.
var ErrInput = errors.New("train: bad input")

// maxLogConst bounds the logarithms of the losses' constants. Their exponentials are
// multiplied by squared distances, and must leave room for these in float32.
const maxLogConst = 60

// An OptionError is an error about the value of an option, such as Options.Check returns.
// Key is the option's name in a configuration of cne, such as "train.warm_up", or "". If
// the option is in an entry of a list, Item is the entry, such as "phase 2", and List the
// list. Got is the value, and Want what is allowed. Other, if not "", is another option
// that does not allow the value, and OtherGot its value. The error wraps Err.
type OptionError = option.Error

// Check returns an error if the options are invalid by themselves, or for a model with
// the given objective and a graph of points points and edges directed edges. Fit calls it
// first. Errors are of the type *OptionError and wrap ErrInput.
func (o *Options) Check(objective op.ContrastiveOptions, points, edges int) error {
	fault := o.fault(objective, edges)
	total := o.Follows.Epochs
	for i := 0; fault == nil && i < len(o.Phases); i++ {
		p := &o.Phases[i]
		if p.Epochs > math.MaxInt32-total {
			fault = &OptionError{Key: "train.epochs", Got: fmt.Sprint(p.Epochs), Want: fmt.Sprintf("at most %d in all", math.MaxInt32)}
		} else {
			total += p.Epochs
			fault = o.phaseFault(p, objective, points, edges)
		}
		if fault != nil {
			fault.List, fault.Item = "train.phases", fmt.Sprintf("phase %d", i+1)
		}
	}
	if fault == nil {
		return nil
	}
	fault.Err = ErrInput
	return fault
}

// fault returns an error about the options of the whole run, or nil.
func (o *Options) fault(objective op.ContrastiveOptions, edges int) *OptionError {
	if fault, ok := errors.AsType[*OptionError](option.Check(o)); ok {
		return fault
	}
	loss, c := objective.Loss.Info(), o.Checkpoints
	learnsZ := loss.Constant == op.LearntZ
	switch {
	case len(o.Phases) == 0:
		return &OptionError{Key: "train.phases", Got: "none", Want: "1 or more"}
	case edges == 0:
		return &OptionError{Got: "a graph without edges", Want: "1 edge or more"}
	case o.LogZ != 0 && !learnsZ:
		return &OptionError{Key: "loss.log_z", Got: fmt.Sprint(o.LogZ), Other: "loss.name", OtherGot: loss.Word, Want: "0"}
	case o.FixZ && !learnsZ:
		return &OptionError{Key: "loss.learn_z", Got: "false", Other: "loss.name", OtherGot: loss.Word, Want: "true"}
	case o.Follows.Epochs < 0 || o.Follows.Elapsed < 0:
		return &OptionError{Got: fmt.Sprintf("%d epochs and %v to follow", o.Follows.Epochs, o.Follows.Elapsed), Want: "at least 0 of both"}
	case slices.Contains(o.Hooks, nil):
		return &OptionError{Got: "a hook that is nil", Want: "a function"}
	case c != nil && (c.Save == nil || c.Epochs < 0 || c.Interval < 0):
		return &OptionError{Got: fmt.Sprintf("checkpoints after %d epochs or %v", c.Epochs, c.Interval),
			Want: "at least 0 of both, and a function Save"}
	}
	if !o.Device.OnHost() {
		if err := objective.CheckOnDevice(); err != nil {
			return &OptionError{Got: err.Error(), Want: "the device cpu"}
		}
	}
	return nil
}

// phaseFault returns an error about a single phase, or nil.
func (o *Options) phaseFault(p *Phase, objective op.ContrastiveOptions, points, edges int) *OptionError {
	size, loss := o.batchSize(edges), objective.Loss.Info()
	m := o.Sampling.count(p.Negatives, size)
	s, zBar := p.Spectrum.S, p.Spectrum.ZBar
	constant := "uniform"
	if zBar != nil && *zBar != 0 {
		constant = fmt.Sprint(*zBar)
	}
	switch {
	case p.Epochs == 0:
		return &OptionError{Key: "train.epochs", Got: "0", Want: "1 or more"}
	case p.LR == 0:
		return &OptionError{Key: "train.lr", Got: "0", Want: "a number above 0"}
	case p.Negatives == 0:
		return &OptionError{Key: "loss.negatives", Got: "0", Want: "1 or more"}
	case p.Negatives == All && objective.Loss != op.InfoNC:
		return &OptionError{Key: "loss.negatives", Got: "all", Other: "loss.name", OtherGot: loss.Word,
			Want: "full, or the loss " + op.InfoNC.Info().Word}
	case p.Negatives == All && objective.Metric != op.Euclidean:
		return &OptionError{Key: "loss.negatives", Got: "all", Other: "loss.metric", OtherGot: objective.Metric.String(), Want: "full"}
	case p.Negatives == All && !o.plainSGD():
		return &OptionError{Key: "loss.negatives", Got: "all", Want: "full, or the optimizer sgd without momentum and weight decay"}
	case p.Pull > 0 && objective.Metric != op.Euclidean:
		return &OptionError{Key: "loss.pull", Got: fmt.Sprint(p.Pull), Other: "loss.metric", OtherGot: objective.Metric.String(), Want: "0"}
	case p.Pull > 0 && !o.plainSGD():
		return &OptionError{Key: "loss.pull", Got: fmt.Sprint(p.Pull), Want: "0, or the optimizer sgd without momentum and weight decay"}
	case p.WarmUp >= p.Epochs:
		return &OptionError{Key: "train.warm_up", Got: fmt.Sprint(p.WarmUp), Other: "train.epochs", OtherGot: fmt.Sprint(p.Epochs), Want: "fewer"}
	case m < 2*size-2 && !o.Sampling.inRuns(m) && m > maxNegatives/size:
		return &OptionError{Key: "loss.negatives", Got: fmt.Sprint(m), Other: "train.batch_size", OtherGot: fmt.Sprint(size),
			Want: "fewer of either, or loss.sampling: runs"}
	case s != nil && zBar != nil:
		return &OptionError{Key: "loss.z_bar", Got: constant, Other: "loss.s", OtherGot: fmt.Sprint(*s), Want: "one of them"}
	case s != nil && !loss.HasSpectrum():
		return &OptionError{Key: "loss.s", Got: fmt.Sprint(*s), Other: "loss.name", OtherGot: loss.Word,
			Want: "a loss with a spectrum: " + op.LossesWithSpectrum()}
	case zBar != nil && loss.Constant != op.FixedZ:
		return &OptionError{Key: "loss.z_bar", Got: constant, Other: "loss.name", OtherGot: loss.Word, Want: "the loss " +
			op.LossesWith(op.FixedZ)}
	case p.ExaggerateEarly && !loss.HasSpectrum():
		return &OptionError{Key: "train.early_exaggeration", Got: "true", Other: "loss.name", OtherGot: loss.Word, Want: "false"}
	case p.ExaggerateEarly && s == nil:
		return &OptionError{Key: "train.early_exaggeration", Got: "true", Other: "loss.s", OtherGot: "null", Want: "a number there, such as 0"}
	case p.LogZ != nil && loss.Constant != op.LearntZ:
		return &OptionError{Key: "loss.log_z", Got: fmt.Sprint(*p.LogZ), Other: "loss.name", OtherGot: loss.Word,
			Want: "the loss " + op.LossesWith(op.LearntZ)}
	}
	logConst, magnitude := Normalization{points}.LogConst(objective.Loss, p.Spectrum, 1), "large"
	if math.Signbit(logConst) {
		magnitude = "small"
	}
	switch {
	case math.Abs(logConst) <= maxLogConst:
		return nil
	case s != nil:
		return &OptionError{Key: "loss.s", Got: fmt.Sprint(*s), Want: "a number nearer to 0 <= s <= 1; the loss's constant is too " + magnitude}
	}
	return &OptionError{Key: "loss.z_bar", Got: constant,
		Want: "a number nearer to the square of the number of points; this is too " + magnitude}
}

// plainSGD reports whether the optimizer is SGD without momentum and weight decay.
func (o *Options) plainSGD() bool {
	sgd, ok := o.Optimizer.(*SGD)
	return o.Optimizer == nil || ok && sgd.plain()
}

// batchSize returns the number of edges in a batch; the last may have fewer.
func (o *Options) batchSize(edges int) int {
	return min(cmp.Or(o.BatchSize, 1024), edges)
}

// batches returns the number of batches in an epoch.
func (o *Options) batches(edges int) int {
	size := o.batchSize(edges)
	if o.DropLast {
		return edges / size
	}
	return (edges + size - 1) / size
}

// Schedule says how the learning rate falls over a phase of T epochs, after W epochs
// of warm-up.
type Schedule int

const (
	// Linear lowers the learning rate once per epoch, to lr·(1 − (t−W)/(T−W)) in epoch t of
	// the phase, counted from 0, as in the paper. The last epoch has lr/(T−W).
	Linear Schedule = iota
	// Constant keeps the learning rate.
	Constant
	// Cosine lowers the learning rate to 0 along half a cosine, to lr·½(1 + cos
	// π(t−W)/(T−W)), with every batch: t is fractional. The paper's program uses whole
	// epochs.
	Cosine
)

// learningRateAt returns the learning rate for a batch of an epoch, given the phase's
// epochs and an epoch's batches. In the first warmUp epochs it rises linearly from 0 with
// every batch.
func learningRateAt(a Schedule, lr float64, epoch, batch, batches, warmUp, epochs int) float64 {
	now := float64(epoch) + float64(batch)/float64(batches)
	if epoch < warmUp {
		return lr * now / float64(warmUp)
	}
	rest := float64(epochs - warmUp)
	switch a {
	case Linear:
		return lr * (1 - float64(epoch-warmUp)/rest)
	case Cosine:
		return lr * (1 + elementary.CosPi((now-float64(warmUp))/rest)) / 2
	}
	return lr
}

// A Normalization gives the constant of a loss at a position s on the spectrum from t-SNE
// (s = 0) to UMAP (s = 1). s may be any real number. It is the slider of the authors'
// later program; the paper varies Z̄ (Sec. 5).
//
// For Neg-t-SNE, s gives the normalisation constant
//
//	Z̄ = Z_tsne^(1−s) · Z_umap^s  with  Z_tsne = 100·n and Z_umap = n²/5,
//
// and for InfoNC-t-SNE the divisor ρ = 4^s of the repulsive term. For n < 70 000, the size
// of MNIST, Z_tsne is 100·n·√(n/70 000). The reason is that t-SNE's own partition function
// per point decreases as n decreases, and that the paper's 100·n would exceed Z_umap for n
// < 500.
type Normalization struct {
	// N is the number of points.
	N int
}

// ZBar returns Neg-t-SNE's normalisation constant at s.
func (p Normalization) ZBar(s float64) float64 {
	n := float64(p.N)
	zTSNE := 100 * n * math.Sqrt(min(1, n/70000))
	return elementary.Exp(float64((1-s)*elementary.Log(zTSNE)) + float64(s*elementary.Log(n*n/5)))
}

// Z returns NC-t-SNE's estimate of the partition function of N points,
// exp(log Z)·N(N−1). It may be infinite.
func (p Normalization) Z(logZ float64) float64 {
	n := float64(p.N)
	return elementary.Exp(logZ) * n * (n - 1)
}

// LogConst returns the logarithm of the loss's constant, as op.Contrastive takes it:
//   - for Neg-t-SNE log c with c = Z̄·m/|X|, where |X| = n² and m is the number of
//     negatives of each edge;
//   - for InfoNC-t-SNE log ρ;
//   - for other losses 0.
func (p Normalization) LogConst(loss op.Loss, at SpectrumParam, m int) float64 {
	logC := func(zBar float64) float64 {
		return elementary.Log(zBar) + elementary.Log(float64(m)) - float64(2*elementary.Log(float64(p.N)))
	}
	switch constant := loss.Info().Constant; {
	case constant == op.FixedZ && at.ZBar != nil && *at.ZBar != 0:
		return logC(*at.ZBar)
	case constant == op.FixedZ && at.S != nil:
		return logC(p.ZBar(*at.S))
	case constant == op.Divisor && at.S != nil:
		return *at.S * elementary.Log(4)
	}
	return 0
}

// A SpectrumParam is the position of a loss on the spectrum from t-SNE to UMAP. At most
// one of S and ZBar may be set. The zero value means c = 1 for Neg-t-SNE, the paper's Z̄ =
// |X|/m, and ρ = 1 for InfoNC-t-SNE.
type SpectrumParam struct {
	// S is the position on the slider, for Neg-t-SNE and InfoNC-t-SNE.
	S *float64 `key:"s"`
	// ZBar is a fixed normalisation constant above 0, for Neg-t-SNE, or 0 for |X|/m.
	ZBar *float64 `key:"z_bar" in:"(0,inf)" words:"uniform=0"`
}

// FromS returns the position s on the slider.
func FromS(s float64) SpectrumParam { return SpectrumParam{S: &s} }

// FromZBar returns the position with the normalisation constant z.
func FromZBar(z float64) SpectrumParam { return SpectrumParam{ZBar: &z} }

// Given reports whether S or ZBar is given.
func (p SpectrumParam) Given() bool { return p.S != nil || p.ZBar != nil }

// Exaggerated returns the position during early exaggeration: at least s = 1. A position
// that is not given by S does not change.
func (p SpectrumParam) Exaggerated() SpectrumParam {
	if p.S == nil {
		return p
	}
	return FromS(max(*p.S, 1))
}

var scheduleNames = kind.Names[Schedule]{Package: "train", Type: "Schedule", What: "schedule", Err: ErrInput,
	Words: []string{"linear", "none", "cosine"}}

func (a Schedule) String() string { return scheduleNames.String(a) }

// MarshalText implements encoding.TextMarshaler: Constant is "none".
func (a Schedule) MarshalText() ([]byte, error) { return scheduleNames.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Schedule) UnmarshalText(text []byte) error { return scheduleNames.Parse(a, text) }

// Words returns the names of all schedules; "none" comes last.
func (Schedule) Words() []string { return []string{"linear", "cosine", "none"} }
