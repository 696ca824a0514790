package cne

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model/op"
	"cne/train"
)

// Spectrum makes one embedding of the points per phase in last, all from shared early
// phases. The shared phases are all of Options.Phases but the last, or else the first
// third of the epochs (train.EarlyEpochs), at Z̄ = n²/m for Neg-t-SNE and at s = 1 for
// InfoNC-t-SNE. The phases in last differ in the fields to compare, such as Spectrum or
// Negatives. Other fields are taken from the last of Options.Phases, or from Options. The
// embeddings are in the order of last.
//
// Each is what Embed gives with the shared phases and this phase as Options.Phases.
// Without a network, several embeddings are trained at once, one per core, so hooks and
// OnBatch may be called from several goroutines; they are called for the shared phases,
// too. Checkpoints and Resume must be nil; set SpectrumCheckpoints instead.
//
// If the options come from a preset, it must know that s will vary: pass Preset.Apply an
// isSet that returns true for "loss.s". The loss is then Neg-t-SNE unless it is set, and
// the preset has no phases.
//
// If ctx is done, or one of the runs fails (*SpectrumError), the others end soon. Spectrum
// then returns the embeddings as far as they were trained: the slice is nil before the
// shared phases have ended, and an embedding is nil before its own training has begun.
// Errors wrap what Embed's errors wrap.
func Spectrum(ctx context.Context, points *data.Matrix, last []Phase, o Options) (_ []*Embedding, err error) {
	defer kind.Catch(&err)
	kind.Check(checkPoints(points))
	if o.Division != nil {
		return nil, badOption("Division: got %d rows, want nil, as a spectrum trains on all points", len(o.Division.Trained))
	}
	h := kind.Got(Prepare(ctx, &data.Dataset{Points: points.Clone()}, o))
	return h.Spectrum(ctx, last, o)
}

// PhasesAt returns a phase for each position on the spectrum, for Spectrum.
func PhasesAt(at ...train.SpectrumParam) []Phase {
	phases := make([]Phase, len(at))
	for i, p := range at {
		phases[i].Spectrum = p
	}
	return phases
}

// A SpectrumError says which embedding of a spectrum failed.
type SpectrumError struct {
	// Index is the index of its phase in last, or −1 for the shared phases.
	Index int
	Err   error
}

func (e *SpectrumError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("cne: the shared phases: %v", e.Err)
	}
	return fmt.Sprintf("cne: embedding %d of the spectrum (counted from 0): %v", e.Index, e.Err)
}

// Unwrap returns Err.
func (e *SpectrumError) Unwrap() error { return e.Err }

// SpectrumCheckpoints says when the states of a spectrum's runs are saved, and supplies
// the states from which they continue. A run is identified by the index of its phase in
// last, −1 for the shared phases. The end of every run is saved, too, so no run is
// repeated.
type SpectrumCheckpoints struct {
	// Epochs and Interval are as in train.Checkpoints.
	Epochs   int
	Interval time.Duration
	// Save saves a state, as train.Checkpoints.Save does. Several goroutines call it at
	// once, for different runs.
	Save func(run int, c *train.Checkpoint) error
	// Resume returns the last saved state of a run, or nil if there is none. Resume may be
	// nil.
	Resume func(run int) (*train.Checkpoint, error)
}

// of returns the checkpoints of one run, and the state from which it continues. The state
// is nil if the run starts from the beginning.
func (c *SpectrumCheckpoints) of(run int) (keep *train.Checkpoints, from *train.Checkpoint, err error) {
	if c == nil {
		return nil, nil, nil
	}
	if c.Resume != nil {
		from, err = c.Resume(run)
	}
	if c.Save != nil {
		keep = &train.Checkpoints{Epochs: c.Epochs, Interval: c.Interval, Save: func(state *train.Checkpoint) error { return c.Save(run, state) }}
	}
	return keep, from, err
}

// SpectrumOptions returns the options of each embedding of a spectrum as a separate run,
// and the number (possibly 0) of phases that all share.
func (o Options) SpectrumOptions(last []Phase) (each []Options, shared int) {
	var early []Phase
	var end Phase
	if n := len(o.Phases); n > 0 {
		early, end = o.Phases[:n-1], o.Phases[n-1]
		end.Epochs += cmp.Or(o.Epochs, totalEpochs(o.Phases)) - totalEpochs(o.Phases)
	} else {
		epochs := o.phases()[0].Epochs
		first := Phase{Epochs: train.EarlyEpochs(epochs)}
		switch o.Loss.Info().Constant {
		case op.FixedZ:
			first.Spectrum = train.FromZBar(0)
		case op.Divisor:
			first.Spectrum = train.FromS(1)
		}
		early, end = []Phase{first}, Phase{Epochs: epochs - first.Epochs}
	}
	for _, p := range last {
		p.Epochs, p.LR, p.Negatives = cmp.Or(p.Epochs, end.Epochs), cmp.Or(p.LR, end.LR), cmp.Or(p.Negatives, end.Negatives)
		p.Schedule, p.WarmUp, p.LogZ = cmp.Or(p.Schedule, end.Schedule), cmp.Or(p.WarmUp, end.WarmUp), cmp.Or(p.LogZ, end.LogZ)
		p.Pull = cmp.Or(p.Pull, end.Pull)
		if !p.Spectrum.Given() {
			p.Spectrum = end.Spectrum
		}
		x := o
		x.EarlyExaggeration = false
		x.Phases = append(slices.Clone(early), p)
		x.Epochs = totalEpochs(x.Phases)
		if !x.pulls() {
			x.Towards = nil
		}
		each = append(each, x)
	}
	return each, len(early)
}

// Spectrum is the function Spectrum for prepared points.
func (h *Neighborhood) Spectrum(ctx context.Context, last []Phase, o Options) ([]*Embedding, error) {
	if len(last) == 0 {
		return nil, badOption("got no phases for a spectrum, want 1 or more")
	}
	if o.Checkpoints != nil || o.Resume != nil {
		return nil, badOption("got Checkpoints or Resume for a spectrum, want SpectrumCheckpoints")
	}
	each, shared := o.SpectrumOptions(last)
	for i := range each {
		if each[i].pulls() { // the workers share what is computed once
			if _, err := h.towards(ctx, &each[i]); err != nil {
				return nil, spectrumError(ctx, i, err)
			}
			break
		}
	}
	doubt(h.Graph.N, each...)
	heads, tails := h.Graph.Heads(), h.Graph.Indices
	from, err := h.early(ctx, heads, tails, each[0], shared)
	if err != nil {
		return nil, spectrumError(ctx, -1, err)
	}
	models := make([]Trainable, len(each))
	for i := range each {
		// Gorgonia's graphs are made one after the other. A state replaces the start.
		each[i].Resume = from
		if models[i], err = h.NewModel(ctx, &each[i]); err != nil {
			return nil, spectrumError(ctx, i, err)
		}
	}
	// Networks and devices keep all cores busy, and need much memory.
	atOnce := 1
	if !o.network() && o.Device.OnHost() {
		atOnce = min(len(each), runtime.GOMAXPROCS(0))
	}
	all, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan int, len(each))
	for i := range each {
		queue <- i
	}
	close(queue)
	embeddings := make([]*Embedding, len(each))
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range queue {
				if all.Err() != nil {
					return
				}
				x := each[i]
				var own *train.Checkpoint
				var err error
				if x.Checkpoints, own, err = o.SpectrumCheckpoints.of(i); own == nil {
					own = from
				}
				x.Resume = own
				if err == nil {
					embeddings[i], err = h.fitModel(all, models[i], heads, tails, &x)
				}
				if err != nil {
					cancel(&SpectrumError{i, err}) // the first is the cause
					return
				}
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return embeddings, err
	}
	return embeddings, context.Cause(all)
}

// spectrumError returns the error of an embedding, or ctx's if that has ended.
func spectrumError(ctx context.Context, i int, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &SpectrumError{i, err}
}

// early runs the shared phases and returns the state at their end, or nil if there are no
// shared phases.
func (h *Neighborhood) early(ctx context.Context, heads, tails []int32, o Options, shared int) (_ *train.Checkpoint, err error) {
	defer kind.Catch(&err)
	if shared == 0 {
		return nil, nil
	}
	o.Phases = o.Phases[:shared]
	o.Epochs = totalEpochs(o.Phases)
	if !o.pulls() {
		o.Towards = nil
	}
	keep, from, err := o.SpectrumCheckpoints.of(-1)
	kind.Check(err)
	if from != nil && from.Progress.Epochs == totalEpochs(o.Phases) {
		return from, nil
	}
	m := kind.Got(h.NewModel(ctx, &o))
	var end *train.Checkpoint
	o.Resume, o.Checkpoints = from, new(train.Checkpoints)
	if keep != nil {
		*o.Checkpoints = *keep
	}
	o.Checkpoints.Save = func(c *train.Checkpoint) (err error) {
		if keep != nil {
			if err := keep.Save(c); err != nil {
				return err
			}
		}
		end, err = c.Clone()
		return err
	}
	fit, err := h.fitOptions(ctx, &o)
	if err == nil {
		_, err = train.Fit(ctx, m, heads, tails, fit)
	}
	return end, err
}

// totalEpochs returns the sum of the phases' epochs.
func totalEpochs(phases []Phase) int {
	return selection.Sum(selection.Map(phases, func(p Phase) int { return p.Epochs }))
}
