package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"cne/data"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/train/quality"
)

// State is what a hook sees after an epoch.
type State struct {
	// Epoch counts the epochs done, from 1; Epochs is their number at the end of the run.
	Epoch, Epochs int
	// Phase counts the phases from 0.
	Phase int
	// LR is the learning rate of the epoch.
	LR float64
	// Loss is the mean loss of an edge over the epoch.
	Loss float64
	// LogZ is NC-t-SNE's log Z.
	LogZ float64
	// Elapsed is the time that the epochs have taken so far, without the hooks, and
	// EdgesPerSecond the speed of the last epoch.
	Elapsed        time.Duration
	EdgesPerSecond float64
	Model          model.Model
	// Quality has the figures that an earlier hook measured (Measure), or is nil.
	Quality *quality.Figures
}

// A Hook is called after every epoch. An error ends the run with it.
type Hook interface {
	AfterEpoch(*State) error
}

// HookFunc adapts an ordinary function to a Hook.
type HookFunc func(*State) error

// AfterEpoch implements Hook.
func (f HookFunc) AfterEpoch(s *State) error { return f(s) }

// EveryEpochs calls a hook after every n-th epoch; n below 1 counts as 1.
func EveryEpochs(n int, h Hook) Hook {
	return HookFunc(func(s *State) error {
		if s.Epoch%max(1, n) != 0 {
			return nil
		}
		return h.AfterEpoch(s)
	})
}

// A Result describes the end of a run.
type Result struct {
	// Epochs is the number of completed epochs, including the epochs of Options.Follows.
	Epochs int
	// Loss is State.Loss of the last epoch.
	Loss float64
	// LogZ is NC-t-SNE's log Z at the end.
	LogZ float64
	// Edges is the number of directed edges.
	Edges int
	// Negatives is the number of negatives of each edge in the last phase, even if the run
	// ended earlier. With b edges in a batch it is at most 2b−2, which also stands for Full
	// and All. LogConst is the logarithm of the loss's constant in that phase (see
	// op.Contrastive).
	Negatives int
	LogConst  float64
	// LR is the learning rate with which the last phase began, after retries.
	LR float64
	// Retries is the number of times that a phase began again (Options.Retries).
	Retries int
	// Elapsed is the time that the epochs took, without the hooks, including the epochs before
	// retries.
	Elapsed time.Duration
}

// A DivergedError ends a diverged run: its loss or state is no longer finite, or log Z or
// the points' distances are too large.
type DivergedError struct {
	// Epoch and Batch count from 1. Batch is 0 if the divergence was found after the epoch.
	Epoch, Batch int
	// Phase counts from 0, and Retries is the number of times that it had begun again.
	Phase, Retries int
	// LR is the learning rate of the epoch.
	LR float64
	// Cause describes the failed operation or what is too large.
	Cause error
}

func (e *DivergedError) Error() string {
	where := fmt.Sprintf("epoch %d", e.Epoch)
	if e.Batch > 0 {
		where += fmt.Sprintf(", batch %d", e.Batch)
	}
	return fmt.Sprintf("train: the run diverged in %s (%v); lower the learning rate", where, e.Cause)
}

func (e *DivergedError) Unwrap() error { return e.Cause }

// Causes of a DivergedError other than a non-finite result.
var (
	// ErrDiverging is wrapped by errors about points that are too far apart to attract each
	// other.
	ErrDiverging = errors.New("the points move ever farther apart")
	// ErrRose is wrapped by errors about a phase that ends with a higher loss than it began
	// with: its steps were too long to reach a minimum.
	ErrRose = errors.New("the loss has risen")
	// ErrLogZ is wrapped by errors about an exp(log Z) of NC-t-SNE that is too large or too
	// small. A lower LRZ may help.
	ErrLogZ = errors.New("log Z diverges")

	errNotFinite = errors.New("the loss is not finite")
)

// Fit trains a model on the directed edges heads[k] → tails[k] of a graph.
//
// When ctx is done, Fit returns ctx.Err() and the result so far after at most a few
// batches. The model keeps what it has learnt. If the last checkpoint cannot be saved, its
// error is joined to the returned one. If a hook fails or the run diverges
// (DivergedError), Fit also returns the result so far, but saves no checkpoint.
func Fit(ctx context.Context, m model.Model, heads, tails []int32, options Options) (_ Result, err error) {
	defer kind.Catch(&err)
	kind.Need(m != nil, ErrInput, "train: model: got nil")
	n, _ := m.Points()
	checkEdges(heads, tails, n)
	checkWeights(options.Weights, len(heads))
	r := kind.Got(newRun(m, n, heads, tails, options))
	err = r.trainPhases(ctx)
	if r.engine != nil {
		err = r.engine.close(err)
		r.result.LogZ = r.engine.logZ()
	}
	last := &r.Phases[len(r.Phases)-1]
	r.result.LR = last.LR
	r.result.Negatives = r.Sampling.count(last.Negatives, r.size)
	r.result.LogConst = r.logConst(last.Spectrum, r.result.Negatives, r.result.LogZ)
	return r.result, err
}

// run is a run of Fit: phases, epochs, hooks and checkpoints. The engine trains on the
// batches.
type run struct {
	*settings
	engine  engine      // nil if a retry could not make a new one
	retries []int       // of each phase
	start   *Checkpoint // the state at the start of the phase, nil without Retries

	epochState epochState
	lowestLoss float64 // the lowest loss of an epoch so far
	firstLoss  float64 // the mean loss of firstEdges edges at the start of the phase
	firstEdges int
	result     Result
	saves      saves
	pull       *pull // nil without a Pull

	coordinates []float32
}

func newRun(m model.Model, n int, heads, tails []int32, options Options) (_ *run, err error) {
	defer kind.Catch(&err)
	o := kind.Got(newSettings(m, n, len(heads), options))
	p := kind.Got(newPull(o, heads, tails))
	if o.wants(false) {
		o.list = packEdges(heads, tails)
	}
	if o.wants(true) {
		o.graph = newWholeGraph(n, heads, tails, o.Weights)
	}
	memory.FreeGarbage(len(heads)) // heads, unless the caller keeps them
	before := o.Follows
	r := &run{
		settings: o, pull: p, retries: make([]int, len(o.Phases)), saves: saves{last: time.Now()},
		result: Result{Edges: o.edges, Epochs: before.Epochs, Elapsed: before.Elapsed},
	}
	r.epochState.epoch = before.Epochs
	r.engine = kind.Got(r.newEngine())
	if o.Resume != nil {
		if err := r.restore(o.Resume); err != nil {
			return nil, r.engine.close(err)
		}
	}
	return r, nil
}

func (r *run) newEngine() (engine, error) {
	if r.Device.OnHost() {
		return newHostEngine(r.settings)
	}
	return newDeviceEngine(r.settings)
}

// trainPhases runs the rest of the phases.
func (r *run) trainPhases(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	first := r.Follows.Epochs // the first epoch of the phase
	for i := range r.Phases {
		end := first + r.Phases[i].Epochs
		kind.Check(r.keepStart(position{epoch: first}))
		for r.epochState.epoch < end {
			err := r.epoch(ctx, i, r.epochState.epoch-first)
			if diverged, ok := errors.AsType[*DivergedError](err); ok {
				err = r.beginAgain(i, diverged, err)
			}
			kind.Check(err)
		}
		first = end
	}
	// The last epoch may already have saved the run.
	return r.saveIf(r.Checkpoints != nil && !(r.saves.any && r.saves.at == r.epochState.position))
}

// epoch runs an epoch of a phase, or the rest of it, and then the hooks.
func (r *run) epoch(ctx context.Context, phase, phaseEpoch int) (err error) {
	defer kind.Catch(&err)
	e := &r.epochState
	e.Phase, e.phaseEpoch, e.spectrum = &r.Phases[phase], phaseEpoch, spectrumAt(&r.Phases[phase], phaseEpoch)
	e.clock, e.trained = time.Now(), 0
	from := e.batch
	first := from == 0 && (phaseEpoch == 0 || e.ExaggerateEarly && phaseEpoch == EarlyEpochs(e.Epochs))
	if e.LogZ != nil && phaseEpoch == 0 && from == 0 {
		kind.Check(r.engine.setLogZ(*e.LogZ))
	}
	for e.batch < r.batches {
		if err := ctx.Err(); err != nil {
			e.pause()
			return errors.Join(err, r.saveIf(r.Checkpoints != nil))
		}
		if c := r.Checkpoints; c != nil && c.Interval > 0 && time.Since(r.saves.last) >= c.Interval {
			e.pause()
			kind.Check(r.saveIf(true))
			e.clock = time.Now()
		}
		e.single = first
		kind.Check(r.engine.advance(e))
		if first {
			before := r.firstLoss
			r.firstEdges, first = min(r.edges, e.batch*r.size), false
			r.firstLoss = e.sum / float64(r.firstEdges)
			// With All negatives the loss is the same in all phases: one that scatters the points
			// does not excuse the next.
			if e.Negatives == All && (phaseEpoch > 0 || phase > 0 && r.Phases[phase-1].Negatives == All) {
				r.firstLoss = min(r.firstLoss, before)
			}
		}
		if r.OnBatch != nil {
			r.OnBatch(e.epoch+1, e.batch, r.batches, e.sum/float64(min(r.edges, e.batch*r.size)))
		}
	}
	kind.Check(r.pullPoints())
	e.pause()
	trained := max(e.trained, time.Microsecond) // Windows' clock may not have moved
	speed := float64(r.edgesPerEpoch-from*r.size) / trained.Seconds()
	r.result.Epochs++
	r.result.Loss = e.sum / float64(r.edgesPerEpoch)
	r.result.Elapsed += e.elapsed
	e.position, e.sum, e.elapsed = position{epoch: e.epoch + 1}, 0, 0
	kind.Check(r.checkSpread())
	kind.Check(r.checkLoss(phaseEpoch))
	kind.Check(r.checkFinite())
	state := State{
		Epoch: r.result.Epochs, Epochs: r.epochs, Phase: phase, LR: e.lr, Loss: r.result.Loss, LogZ: r.engine.logZ(),
		Elapsed: r.result.Elapsed, EdgesPerSecond: speed, Model: r.model,
	}
	for _, h := range r.Hooks {
		kind.Check(h.AfterEpoch(&state))
	}
	return r.saveIf(r.Checkpoints != nil && r.Checkpoints.Epochs > 0 && r.result.Epochs%r.Checkpoints.Epochs == 0)
}

// EarlyEpochs returns the number of epochs of early exaggeration in a run: a third of the
// epochs, rounded up.
func EarlyEpochs(epochs int) int { return (epochs + 2) / 3 }

// spectrumAt returns the position on the spectrum in an epoch of a phase.
func spectrumAt(p *Phase, epoch int) SpectrumParam {
	if p.ExaggerateEarly && epoch < EarlyEpochs(p.Epochs) {
		return p.Spectrum.Exaggerated()
	}
	return p.Spectrum
}

// checkSpread checks that the points are not too far apart. It is necessary because a
// clamped loss stays finite at any distance. It runs after the first epoch, and whenever
// the loss is well above its lowest value.
func (r *run) checkSpread() error {
	if r.result.Epochs == r.Follows.Epochs+1 {
		r.lowestLoss = r.result.Loss
	} else if r.result.Loss < 1.5*r.lowestLoss {
		r.lowestLoss = min(r.lowestLoss, r.result.Loss)
		return nil
	}
	limit := r.maxDistance(r.epochState.spectrum, r.Sampling.count(r.epochState.Negatives, r.size))
	if math.IsInf(limit, 1) {
		return nil // no need to compute the embedding
	}
	n, d := r.model.Points()
	r.coordinates = resize(r.coordinates, n*d)
	if err := r.model.EmbedTo(r.coordinates); err != nil {
		return err
	}
	if distance := rootMeanSquareDistance(r.coordinates, n, d); !(distance <= limit) {
		return &DivergedError{Epoch: r.result.Epochs, LR: r.epochState.lr,
			Cause: fmt.Errorf("%w: root mean square distance %.3g", ErrDiverging, distance)}
	}
	return nil
}

// checkLoss checks that a phase does not end with a loss clearly above the loss at its
// start, which steps that are short enough lower. In between the loss may rise: large rates
// rearrange the points, so that phases of a few steps are not judged. An exaggerated epoch has
// another loss, and with All negatives and ρ ≠ 1, or a pull, the steps lower something else than
// the loss.
func (r *run) checkLoss(phaseEpoch int) error {
	e, loss, steps := &r.epochState, r.result.Loss, r.epochState.Phase.Epochs*r.batches
	if e.Negatives == All {
		steps = e.Phase.Epochs
	}
	// The first losses are a sample: three standard errors, if each is as large as they vary.
	slack := max(0.1, 3/math.Sqrt(float64(r.firstEdges)))
	if r.objective.Loss != op.InfoNC && !r.learnsZ() {
		// Near negatives have large losses and clipped gradients, so that the loss is higher
		// where the points rest than where they start far apart.
		slack = max(0.5, 3*slack)
	}
	if phaseEpoch < e.Phase.Epochs-1 || steps < 10 || loss <= r.firstLoss+float64(slack*max(math.Abs(r.firstLoss), 1)) ||
		e.Pull > 0 || e.Negatives == All && r.logConst(e.spectrum, 1, 0) != 0 {
		return nil
	}
	return &DivergedError{
		Epoch: r.result.Epochs, LR: e.Phase.LR, Cause: fmt.Errorf("%w from %.4g to %.4g", ErrRose, r.firstLoss, loss),
	}
}

// checkFinite checks that all parameters and state are finite. A finite loss does not
// imply this: it depends neither on running statistics nor on the last step's result. A
// Stateful model is checked after every epoch, other models only after the last.
func (r *run) checkFinite() (err error) {
	defer kind.Catch(&err)
	if _, ok := r.model.(Stateful); !ok && r.result.Epochs < r.epochs {
		return nil
	}
	for _, a := range r.engine.arrays() {
		name, parameter := strings.CutPrefix(a.Name, parameterPrefix)
		name, state := strings.CutPrefix(name, statePrefix)
		if !parameter && !state {
			continue
		}
		v := onHost(a.Value)
		if !simd.AllFinite(op.Data[float32](v)) || !simd.AllFinite(op.Data[float64](v)) {
			return &DivergedError{Epoch: r.result.Epochs, LR: r.epochState.lr, Cause: fmt.Errorf("%s is not finite", name)}
		}
	}
	return nil
}

// maxDistance returns the distance d beyond which points no longer attract each other.
// There 1/(1+c(1+d²)) is below the clamp or, for losses without a constant c, 1/(1+d²)
// is.
func (r *run) maxDistance(at SpectrumParam, m int) float64 {
	if r.objective.Metric == op.Cosine {
		return math.Inf(1) // the lengths of the rows do not matter
	}
	if r.objective.Clamp == 0 {
		return 1e15 // the squares of such distances are still finite in float32
	}
	return 1 / math.Sqrt(r.objective.Clamp*min(1, r.constant(at, m)))
}

// constant returns c of a loss with one, and 1 for the others.
func (r *run) constant(at SpectrumParam, m int) float64 {
	switch r.objective.Loss.Info().Constant {
	case op.FixedZ:
		return elementary.Exp(r.logConst(at, m, 0))
	case op.LearntZ:
		return elementary.Exp(r.engine.logZ()) * float64(m)
	}
	return 1
}

// rootMeanSquareDistance returns the root mean square distance of two of the points
// x [n, d]; it is 0 if all are equal.
func rootMeanSquareDistance(x []float32, n, d int) float64 {
	var squares float64
	for j := range d {
		squares += simd.Variance(x[:n*d], d, j)
	}
	return math.Sqrt(2 * squares)
}

// A Record is the JSON object that Records writes for an epoch.
type Record struct {
	Epoch int `json:"epoch"` // from 1
	Phase int `json:"phase"` // from 0
	// Loss is State.Loss, LR the learning rate.
	Loss float64 `json:"loss"`
	LR   float64 `json:"lr"`
	// LogZ is NC-t-SNE's log Z, and Z = exp(log Z)·n(n−1) the partition function that it
	// estimates for the n points. Other losses leave both out; Z is also left out if it
	// overflows.
	LogZ *float64 `json:"log_z,omitempty"`
	Z    *float64 `json:"z,omitempty"`
	// Figures are the figures of the epoch, if they were measured.
	quality.Figures
	// Seconds is the time since the run began, without the hooks.
	Seconds        float64 `json:"seconds"`
	EdgesPerSecond float64 `json:"edges_per_second"`
}

// Record returns the record of an epoch. withZ includes log Z.
func (s *State) Record(withZ bool) Record {
	r := Record{Epoch: s.Epoch, Phase: s.Phase, Loss: s.Loss, LR: s.LR,
		Seconds: s.Elapsed.Seconds(), EdgesPerSecond: s.EdgesPerSecond}
	if withZ {
		points, _ := s.Model.Points()
		logZ := s.LogZ
		r.LogZ = &logZ
		if z := (Normalization{points}).Z(logZ); !math.IsInf(z, 0) { // which JSON cannot express
			r.Z = &z
		}
	}
	if s.Quality != nil {
		r.Figures = *s.Quality
	}
	return r
}

// Records returns a hook that writes a Record of every epoch to w, as a line
// of JSON. withZ includes log Z.
func Records(w io.Writer, withZ bool) Hook {
	encoder := json.NewEncoder(w)
	return HookFunc(func(s *State) error {
		if err := encoder.Encode(s.Record(withZ)); err != nil {
			return fmt.Errorf("train: writing the record of epoch %d: %w", s.Epoch, err)
		}
		return nil
	})
}

// Snapshots returns a hook that hands the embedding [n, d] to save after an epoch. save
// must not keep the slice, because it is reused. Use EveryEpochs for fewer snapshots.
func Snapshots(save func(epoch int, embedding []float32, d int) error) Hook {
	return embedded(func(s *State, embedding []float32, d int) error { return save(s.Epoch, embedding, d) })
}

// Measure returns a hook that measures the embedding whenever every epochs have passed,
// and after the last epoch. Later hooks find the figures in State.Quality. It measures
// only metrics that can be computed from the embedding and o.Graph, except the losses, and
// ignores o.Skip. Measuring every epoch makes a run several times as long, though
// State.Elapsed does not include hooks. An embedding that is not finite ends the run with
// a *DivergedError.
func Measure(every int, o quality.Options) Hook {
	o.Skip = ^quality.Where(func(f *quality.Figure) bool { return f.OfEmbedding() && f.Option != "" })
	measure := embedded(func(s *State, embedding []float32, d int) (err error) {
		// A completed epoch is measured even if the run is interrupted.
		s.Quality, err = quality.Measure(context.Background(), nil, &data.Matrix{N: len(embedding) / d, D: d, X: embedding}, o)
		if errors.Is(err, quality.ErrNotFinite) {
			return &DivergedError{Epoch: s.Epoch, LR: s.LR, Cause: err}
		}
		return err
	})
	return HookFunc(func(s *State) error {
		if s.Epoch%max(1, every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		return measure.AfterEpoch(s)
	})
}

// embedded returns a hook that calls f with the embedding [n, d].
func embedded(f func(s *State, embedding []float32, d int) error) Hook {
	var embedding []float32
	return HookFunc(func(s *State) error {
		n, d := s.Model.Points()
		embedding = resize(embedding, n*d)
		if err := s.Model.EmbedTo(embedding); err != nil {
			return err
		}
		return f(s, embedding, d)
	})
}

// A Retry is about a phase that diverged and begins again (Options.Retries).
type Retry struct {
	// Phase counts from 0, Epoch from 1: the first epoch of the phase, which comes next.
	Phase, Epoch int
	// LR is the phase's new learning rate.
	LR float64
	// Cause says how the phase ended.
	Cause *DivergedError
}

// retryFactor is the factor of a phase's learning rate when it begins again. Three retries
// cover rates that are 27 times too large.
const retryFactor = 1. / 3

// keepStart keeps the state at the start of a phase for beginAgain, if the run is there.
func (r *run) keepStart(first position) (err error) {
	if r.Retries > 0 && r.epochState.position == first {
		r.start = nil // two would need more memory
		r.start, err = r.checkpoint().Clone()
	}
	return err
}

// beginAgain returns to the start of a phase that ended with failed because it diverged, with a
// lower learning rate. It returns failed if there are no retries left.
func (r *run) beginAgain(phase int, cause *DivergedError, failed error) (err error) {
	defer kind.Catch(&err)
	if cause.Phase, cause.Retries = phase, r.retries[phase]; r.start == nil || cause.Retries >= r.Retries {
		return failed
	}
	closed := r.engine.close(nil)
	r.engine = nil
	kind.Check(closed)
	r.engine = kind.Got(r.newEngine())
	r.lowerRate(phase)
	elapsed := r.result.Elapsed
	kind.Check(r.copyFrom(r.start))
	r.result.Elapsed = elapsed
	if r.OnRetry == nil {
		return nil
	}
	return r.OnRetry(Retry{Phase: phase, Epoch: r.epochState.epoch + 1, LR: r.Phases[phase].LR, Cause: cause})
}

// lowerRate lowers the learning rate of a phase once.
func (r *run) lowerRate(phase int) {
	r.retries[phase]++
	r.Phases[phase].LR *= retryFactor
	r.result.Retries++
}
