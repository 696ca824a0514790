package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cne/model"
	"cne/model/op"
)

// Anneal says how the step size falls over a phase.
type Anneal int

const (
	// Linear lets it fall to 0: lr·(1 − t/T) in epoch t = 0 … T−1 of T.
	Linear Anneal = iota
	// Constant keeps it.
	Constant
)

// A Phase is a part of a run with a schedule of its own. The paper's early
// exaggeration with a fixed Z̄ is two phases: 250 epochs at Z̄ = |X|/m, annealed
// to 0, and then 500 at the Z̄ wanted.
type Phase struct {
	// Epochs is the number of passes over all edges, at least 1.
	Epochs int
	// LR is the step size of the phase's first epoch.
	LR     float64
	Anneal Anneal
	// Place is where on the spectrum the loss stands.
	Place Place
	// ExaggerateEarly runs the first third of the epochs at max(s, 1).
	ExaggerateEarly bool
	// Negatives is m, the number of negatives for each head, or Full.
	Negatives int
}

// Options say how a model is fitted. Phases must be given; the zero value of
// anything else has the meaning stated.
type Options struct {
	// Loss is the loss the model was built with, and Mean whether it is the
	// mean over the batch rather than the sum.
	Loss   op.Loss
	Mean   bool
	Phases []Phase
	// BatchSize is b, the number of edges in a batch; 0 means 1024. All edges
	// are taken at once if there are fewer.
	BatchSize int
	Seed      uint64
	// Clip bounds the gradients element-wise, ±Clip; 0 means no bound.
	Clip float64
	// LogZ is where NC-t-SNE's log Z starts; FixZ keeps it there. LRZ is its
	// step size, which is not annealed; 0 means 0.001.
	LogZ float64
	FixZ bool
	LRZ  float64
	// Reach is the root mean square distance of two points beyond which a run
	// has diverged: further apart than 1/√clamp, points no longer attract
	// each other. 0 means 10⁵.
	Reach float64
	// Hooks are called in order after every epoch.
	Hooks []Hook
}

// State is what a hook sees after an epoch.
type State struct {
	// Epoch counts the epochs done, from 1; Epochs is their number in all.
	Epoch, Epochs int
	// Phase counts the phases from 0.
	Phase int
	// LR is the step size of the epoch.
	LR float64
	// Loss is the mean loss of an edge over the epoch.
	Loss float64
	// LogZ is NC-t-SNE's log Z.
	LogZ float64
	// Elapsed is the time since the run began, EdgesPerSecond the speed of
	// the epoch.
	Elapsed        time.Duration
	EdgesPerSecond float64
	Model          model.Model
}

// A Hook is called after every epoch. An error ends the run with it.
type Hook interface {
	AfterEpoch(*State) error
}

// HookFunc is a function as a Hook.
type HookFunc func(*State) error

// AfterEpoch implements Hook.
func (f HookFunc) AfterEpoch(s *State) error { return f(s) }

// EveryEpochs calls a hook after every n-th epoch.
func EveryEpochs(n int, h Hook) Hook {
	return HookFunc(func(s *State) error {
		if s.Epoch%n != 0 {
			return nil
		}
		return h.AfterEpoch(s)
	})
}

// Result is how a run ended.
type Result struct {
	// Epochs is the number of epochs completed.
	Epochs int
	// Loss is State.Loss of the last epoch.
	Loss float64
	// LogZ is NC-t-SNE's log Z at the end.
	LogZ float64
	// Edges is the number of directed edges.
	Edges int
	// Elapsed is the time that the epochs took.
	Elapsed time.Duration
}

// A DivergedError ends a run whose loss or embedding is no longer finite or
// has flown apart.
type DivergedError struct {
	// Epoch and Batch count from 1; Batch is 0 if the epoch as a whole shows
	// it.
	Epoch, Batch int
	LR           float64
	// Cause names the operation, or what was seen.
	Cause error
}

func (e *DivergedError) Error() string {
	where := fmt.Sprintf("epoch %d", e.Epoch)
	if e.Batch > 0 {
		where += fmt.Sprintf(", batch %d", e.Batch)
	}
	return fmt.Sprintf("training diverged in %s: %v; lower the step size (now %g) or the spread of the starting coordinates", where, e.Cause, e.LR)
}

func (e *DivergedError) Unwrap() error { return e.Cause }

// ErrFlownApart is the cause of a divergence in which the points are so far
// apart that they no longer attract each other.
var ErrFlownApart = errors.New("train: the points have flown apart")

func (o *Options) check(edges, points int) error {
	if len(o.Phases) == 0 {
		return errors.New("train: no phases to run")
	}
	if edges == 0 {
		return errors.New("train: the graph has no edges")
	}
	if o.BatchSize < 0 || o.BatchSize == 1 {
		return fmt.Errorf("train: a batch of %d edges has no negatives; take 2 or more", o.BatchSize)
	}
	for i, p := range o.Phases {
		if p.Epochs < 1 {
			return fmt.Errorf("train: phase %d has %d epochs; take 1 or more", i+1, p.Epochs)
		}
		if !(p.LR > 0) || math.IsInf(p.LR, 0) {
			return fmt.Errorf("train: phase %d has step size %g; take a positive number", i+1, p.LR)
		}
		if p.Negatives < 1 && p.Negatives != Full {
			return fmt.Errorf("train: phase %d has %d negatives; take 1 or more, or Full", i+1, p.Negatives)
		}
		theta := Spectrum{points}.Theta(o.Loss, p.Place, 1)
		if math.IsNaN(theta) || math.IsInf(theta, 0) || math.Abs(theta) > 200 {
			return fmt.Errorf("train: phase %d has a place on the spectrum (%+v) that no floating-point number can hold", i+1, p.Place)
		}
	}
	return nil
}

// Fit trains a model on the directed edges heads[k] → tails[k] of a graph.
//
// When ctx ends, Fit returns ctx.Err() with the result so far after at most a
// few batches, and the model keeps what it has learnt. So it does when a hook
// returns an error, and when the run diverges (DivergedError).
func Fit(ctx context.Context, m model.Model, heads, tails []int32, options Options) (Result, error) {
	n, _ := m.Points()
	edges, err := packEdges(heads, tails, n)
	if err != nil {
		return Result{}, err
	}
	if err := options.check(len(edges), n); err != nil {
		return Result{}, err
	}
	f := &fit{Options: options, model: m, params: m.Parameters(), edges: len(edges), n: n}
	if f.BatchSize == 0 {
		f.BatchSize = 1024
	}
	f.BatchSize = min(f.BatchSize, len(edges))
	if f.LRZ == 0 {
		f.LRZ = 0.001
	}
	if f.Reach == 0 {
		f.Reach = 1e5
	}
	for i, p := range f.Phases {
		for t := range p.Epochs {
			f.plan = append(f.plan, epochPlan{phase: i, epoch: t})
		}
	}
	f.result = Result{LogZ: f.LogZ, Edges: len(edges)}
	batches := newFeed(edges, n, f.BatchSize, f.Seed, 0, len(f.plan))
	defer batches.close()
	err = f.run(ctx, batches)
	return f.result, err
}

// fit is a run of Fit.
type fit struct {
	Options
	model    model.Model
	params   []model.Parameter
	edges, n int
	plan     []epochPlan
	result   Result

	coordinates []float32
	least       float64 // the lowest loss of an epoch so far
}

// epochPlan says which epoch of which phase an epoch of the run is.
type epochPlan struct{ phase, epoch int }

func (f *fit) run(ctx context.Context, batches *feed) error {
	start := time.Now()
	began := start
	sgd, contrast := SGD{Clip: f.Clip}, contrast{seed: f.Seed}
	count := (f.edges + f.BatchSize - 1) / f.BatchSize
	for t, at := range f.plan {
		phase := &f.Phases[at.phase]
		lr, theta := f.schedule(phase, at.epoch)
		var sum float64
		for batch := 0; batch < count; {
			block := batches.next()
			for i := range block.batches {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				b := &block.batches[i]
				contrast.draw(b, phase.Negatives, t, batch)
				if f.Loss == op.NC {
					theta = f.result.LogZ
				}
				loss, err := f.model.Step(b, theta)
				if err != nil {
					return err
				}
				if math.IsNaN(loss) || math.IsInf(loss, 0) {
					return f.diverged(t, batch+1, lr)
				}
				if f.Mean {
					loss *= float64(b.Edges())
				}
				sum += loss
				sgd.Step(f.params, b.Rows, lr)
				if f.Loss == op.NC && !f.FixZ {
					g := f.model.DTheta()
					if f.Clip > 0 {
						g = min(max(g, -f.Clip), f.Clip)
					}
					f.result.LogZ -= f.LRZ * g
				}
				batch++
			}
			batches.recycle(block)
		}
		now := time.Now()
		f.result.Epochs = t + 1
		f.result.Loss = sum / float64(f.edges)
		f.result.Elapsed = now.Sub(start)
		if err := f.checkReach(t, lr); err != nil {
			return err
		}
		state := State{
			Epoch: t + 1, Epochs: len(f.plan), Phase: at.phase, LR: lr, Loss: f.result.Loss, LogZ: f.result.LogZ,
			Elapsed: f.result.Elapsed, EdgesPerSecond: float64(f.edges) / now.Sub(began).Seconds(), Model: f.model,
		}
		for _, h := range f.Hooks {
			if err := h.AfterEpoch(&state); err != nil {
				return err
			}
		}
		began = time.Now()
	}
	return nil
}

// schedule returns the step size and the loss's constant of an epoch.
func (f *fit) schedule(p *Phase, epoch int) (lr, theta float64) {
	lr = p.LR
	if p.Anneal == Linear {
		lr *= 1 - float64(epoch)/float64(p.Epochs)
	}
	place := p.Place
	if p.ExaggerateEarly && 3*epoch < p.Epochs {
		place = place.Exaggerated()
	}
	return lr, Spectrum{f.n}.Theta(f.Loss, place, capNegatives(p.Negatives, f.BatchSize))
}

// diverged makes the error of a batch whose loss is not finite.
func (f *fit) diverged(epoch, batch int, lr float64) error {
	cause := f.model.Diagnose()
	if cause == nil {
		cause = errors.New("train: the loss is not finite")
	}
	return &DivergedError{Epoch: epoch + 1, Batch: batch, LR: lr, Cause: cause}
}

// checkReach looks at the spread of the embedding after the first epoch and
// whenever the loss has risen well above its lowest: clamped losses stay
// finite however far the points fly.
func (f *fit) checkReach(epoch int, lr float64) error {
	if epoch == 0 {
		f.least = f.result.Loss
	} else if f.result.Loss < 1.5*f.least {
		f.least = min(f.least, f.result.Loss)
		return nil
	}
	n, d := f.model.Points()
	f.coordinates = resize(f.coordinates, n*d)
	f.model.EmbedTo(f.coordinates)
	var squares float64
	for j := range d {
		var sum, sum2 float64
		for i := range n {
			v := float64(f.coordinates[i*d+j])
			sum += v
			sum2 += v * v
		}
		mean := sum / float64(n)
		squares += sum2/float64(n) - mean*mean
	}
	if spread := math.Sqrt(2 * squares); !(spread <= f.Reach) {
		return &DivergedError{Epoch: epoch + 1, LR: lr, Cause: fmt.Errorf("%w: their root mean square distance is %.3g", ErrFlownApart, spread)}
	}
	return nil
}
