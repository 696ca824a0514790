package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/model"
	"cne/model/op"
)

// A Phase is a part of a run with a schedule of its own. The paper's early
// exaggeration with a fixed Z̄ is two phases: 250 epochs at Z̄ = |X|/m, annealed
// to 0, and then 500 at the Z̄ wanted.
type Phase struct {
	// Epochs is the number of passes over all edges, at least 1.
	Epochs int
	// LR is the step size at the start, before it is annealed.
	LR       float64
	Schedule Schedule
	// WarmUp is the number of epochs, fewer than Epochs, in which the step size
	// first rises linearly from 0 to LR.
	WarmUp int
	// Spectrum is where the loss is on the spectrum.
	Spectrum SpectrumParam
	// ExaggerateEarly runs the first third of the epochs (EarlyEpochs) at max(s, 1).
	ExaggerateEarly bool
	// Negatives is m, the number of negatives for each head, or Full.
	Negatives int
	// LogZ is where NC-t-SNE's log Z starts again when the phase begins, with what its
	// optimiser remembers forgotten. nil carries it over from the phase before, or, in the
	// first one, starts at Options.LogZ. The paper's program starts again at 0 after
	// its early phase.
	LogZ *float64
}

// Options say how a model is fitted. Phases must be given; anything else may be
// left at its zero value.
type Options struct {
	Phases []Phase
	// BatchSize is b, the number of edges in a batch; 0 means 1024. All edges
	// are taken at once if there are fewer.
	BatchSize int
	Seed      uint64
	// Weights are those of the edges, finite and above 0. An epoch then draws as many
	// edges as there are, each in proportion to its weight: one that has the share of r
	// edges comes ⌊r⌋ or ⌈r⌉ times, and r times on average over epochs. That is how
	// UMAP heeds its graph's weights. nil takes every edge once.
	Weights []float32
	// DropLast leaves out the last batch of an epoch if it is smaller than the
	// others.
	DropLast bool
	// Images gives a model of images what it sees of each batch (Batch.Images);
	// nil for other models.
	Images ImageSource
	// Device is where the run is computed; nil means the CPU. On a device the model
	// must have OnDevice, as those of package model do; Optimizer and OptimizerZ must be
	// *SGD or *Adam, and Images a DeviceImageSource. The batches are the same as on
	// the CPU. All that is copied to the device or back are a few numbers per batch,
	// and what hooks and checkpoints ask for.
	Device *model.Device
	// Sampling is how negatives are drawn.
	Sampling Sampling
	// Optimizer moves the parameters; nil means plain SGD.
	Optimizer Optimizer
	// Clip bounds the gradients element-wise, ±Clip; 0 means no bound.
	Clip float64
	// LogZ is where NC-t-SNE's log Z starts, counted per pair of points (see
	// Normalization.Z); FixZ keeps it there, or where a phase says. OptimizerZ moves it; nil
	// means plain SGD. LRZ is its step size, which is not annealed; 0 means 0.001.
	LogZ       float64
	FixZ       bool
	OptimizerZ Optimizer
	LRZ        float64
	// Hooks are called in order after every epoch.
	Hooks []Hook
	// OnBatch, unless it is nil, is called after every batch, or on a device a few
	// times a second, with the number of the current epoch (from 1), the number of
	// its batches that are done, the number of all, and the mean loss of an edge so
	// far. Its time counts as the run's.
	OnBatch func(epoch, done, batches int, loss float64)
	// Follows is how an earlier run ended that this one takes further with another
	// model, as the stages of a pretraining do; the zero value is none. Epochs and time
	// count on from it, for hooks and checkpoints, and so that no random number is drawn
	// twice. Phases are those of this run only. Only Epochs and Elapsed are read.
	Follows Result
	// Checkpoints says when the state of the run is saved; nil means never.
	Checkpoints *Checkpoints
	// Resume is the checkpoint to continue from; nil starts from the beginning. Model,
	// edges and the other options must be those of the run that was saved, but for
	// Hooks, OnBatch and Checkpoints. The last phase may have more epochs, over which
	// its step size is then annealed, unless a phase exaggerates early.
	Resume *Checkpoint
}

// An ImageSource gives a model of images what it sees of points, such as views of
// them that are drawn at random.
type ImageSource interface {
	// Shape returns the size of an image: channels, height, width.
	Shape() [3]int
	// ImagesTo writes the images of points to dst [len(points), channels, height,
	// width]. Epochs count from 0. It is called for every batch, in order, ahead of
	// the batch's step and on another goroutine: it may depend on nothing that
	// training changes. An error ends the run with it.
	ImagesTo(dst []float32, points []int32, epoch int) error
}

// A DeviceImageSource makes images on a device, too.
type DeviceImageSource interface {
	ImageSource
	// ImagesOn returns what makes them there. It is called once, before the first
	// batch.
	ImagesOn(d *model.Device) (DeviceImages, error)
}

// DeviceImages makes images on a device.
type DeviceImages interface {
	// Launch writes the images of points [r] (int32) to dst [r, channels, height,
	// width] (float32); both arrays are on the device. It need not wait until that
	// has been done. Epochs count from 0.
	Launch(dst, points *op.Array, epoch int) error
	// Close frees their memory on the device.
	Close()
}

// ErrInput is wrapped by errors about options and words without a meaning, and about
// edges and points whose numbers do not fit the model.
var ErrInput = errors.New("train: bad input")

// maxLogConst bounds the logarithms of the losses' constants. Their exponentials are
// multiplied by squared distances, and must leave room for these in float32.
const maxLogConst = 60

// An OptionError is an error of Options.Check.
type OptionError struct {
	// Field is that of Options, or of one of its Phases, which is to blame; "" if the
	// graph is.
	Field string
	// Phase is the number of the phase, from 0, whose field it is; −1 for a field of
	// Options.
	Phase   int
	problem string
}

func (e *OptionError) Error() string {
	if e.Phase < 0 {
		return "train: " + e.problem
	}
	return fmt.Sprintf("train: phase %d %s", e.Phase+1, e.problem)
}

// Unwrap returns ErrInput.
func (e *OptionError) Unwrap() error { return ErrInput }

// Problem returns what is wrong, and what to do, as a predicate for a field of a phase,
// and as a sentence for others.
func (e *OptionError) Problem() string { return e.problem }

// Check returns an error if the options have no meaning, or none for a model with
// the given objective and a graph with so many points and directed edges. Fit calls
// it first. Errors are of the type *OptionError.
func (o *Options) Check(objective op.ContrastiveOptions, points, edges int) error {
	wrong := func(field, format string, args ...any) error {
		return &OptionError{field, -1, fmt.Sprintf(format, args...)}
	}
	switch {
	case len(o.Phases) == 0:
		return wrong("Phases", "no phases to run")
	case o.Sampling < SampleAuto || o.Sampling > SampleSharedRuns:
		return wrong("Sampling", "there is no way %d to draw negatives; take SampleAuto, SamplePerHead or SampleSharedRuns", int(o.Sampling))
	case edges == 0:
		return wrong("", "the graph has no edges")
	case o.BatchSize < 0 || o.BatchSize == 1:
		return wrong("BatchSize", "a batch of %d edges has no negatives; take 2 or more", o.BatchSize)
	case !(o.Clip >= 0):
		return wrong("Clip", "the bound of gradients, %g, may not be negative or no number", o.Clip)
	case !(o.LRZ >= 0) || math.IsInf(o.LRZ, 0):
		return wrong("LRZ", "the step size of log Z, %g, may not be negative or no number", o.LRZ)
	case !(math.Abs(o.LogZ) <= maxLogConst):
		return wrong("LogZ", "log Z cannot start at %g; take a number between −%d and %d", o.LogZ, maxLogConst, maxLogConst)
	case o.Follows.Epochs < 0 || o.Follows.Elapsed < 0:
		return wrong("Follows", "a run of %d epochs and %v cannot be followed; give numbers of at least 0", o.Follows.Epochs, o.Follows.Elapsed)
	case slices.Contains(o.Hooks, nil):
		return wrong("Hooks", "one of the hooks is nil; leave it out")
	}
	if !o.Device.OnHost() {
		if err := objective.CheckOnDevice(); err != nil {
			return wrong("Device", "%v", err)
		}
	}
	if c := o.Checkpoints; c != nil && (c.Save == nil || c.Epochs < 0 || c.Interval < 0) {
		return wrong("Checkpoints", "checkpoints after every %d epochs or %v; give a Save, and numbers of at least 0", c.Epochs, c.Interval)
	}
	total := o.Follows.Epochs
	for i := range o.Phases {
		p := &o.Phases[i]
		if p.Epochs < 1 || p.Epochs > math.MaxInt32-total {
			return &OptionError{"Epochs", i, fmt.Sprintf("has %d epochs; take 1 or more, and no more than fit a run", p.Epochs)}
		}
		total += p.Epochs
		if field, problem := o.phaseProblem(p, objective, points, edges); problem != "" {
			return &OptionError{field, i, problem}
		}
	}
	return nil
}

// phaseProblem is the part of Check about a single phase: the field that is to blame,
// and what is wrong with it, "" if nothing is.
func (o *Options) phaseProblem(p *Phase, objective op.ContrastiveOptions, points, edges int) (field, problem string) {
	size := o.batchSize(edges)
	m := o.Sampling.count(p.Negatives, size)
	switch {
	case !(p.LR > 0) || math.IsInf(p.LR, 0):
		return "LR", fmt.Sprintf("has step size %g; take a positive number", p.LR)
	case p.Schedule < Linear || p.Schedule > Cosine:
		return "Schedule", fmt.Sprintf("has the unknown schedule %d; take Linear, Constant or Cosine", int(p.Schedule))
	case p.WarmUp < 0 || p.WarmUp >= p.Epochs:
		return "WarmUp", fmt.Sprintf("warms up for %d of its %d epochs; take fewer, and at least 0", p.WarmUp, p.Epochs)
	case p.Negatives < 1 && p.Negatives != Full:
		return "Negatives", fmt.Sprintf("has %d negatives; take 1 or more, or Full", p.Negatives)
	case m < 2*size-2 && !o.Sampling.inRuns(m) && m > maxNegatives/size:
		return "Negatives", fmt.Sprintf("has %d negatives for each of the %d edges of a batch, more than fit in memory if each head draws its own; take fewer of either, or draw them in runs", m, size)
	case p.Spectrum.S != nil && p.Spectrum.ZBar != nil:
		return "Spectrum", "has both s and Z̄; take one of them"
	case p.Spectrum.S != nil && !objective.Loss.Info().HasSpectrum():
		return "Spectrum", fmt.Sprintf("stands at %v, but the loss %v is not on that spectrum", p.Spectrum, objective.Loss)
	case p.Spectrum.ZBar != nil && objective.Loss.Info().Constant != op.FixedZ:
		return "Spectrum", fmt.Sprintf("stands at %v, but the loss %v is not on that spectrum", p.Spectrum, objective.Loss)
	case p.LogZ != nil && objective.Loss.Info().Constant != op.LearntZ:
		return "LogZ", fmt.Sprintf("starts log Z again, but the loss %v has none; leave it out", objective.Loss)
	case p.LogZ != nil && !(math.Abs(*p.LogZ) <= maxLogConst):
		return "LogZ", fmt.Sprintf("starts log Z at %g; take a number between −%d and %d", *p.LogZ, maxLogConst, maxLogConst)
	}
	logConst := Normalization{points}.LogConst(objective.Loss, p.Spectrum, 1)
	if !(math.Abs(logConst) <= maxLogConst) {
		return "Spectrum", fmt.Sprintf("stands at %v, too far out on the spectrum for floating-point numbers; take a place nearer to 0 <= s <= 1", p.Spectrum)
	}
	return "", ""
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
