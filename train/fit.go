package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cne/internal/finite"
	"cne/model"
	"cne/model/op"
)

// A Phase is a part of a run with a schedule of its own. The paper's early
// exaggeration with a fixed Z̄ is two phases: 250 epochs at Z̄ = |X|/m, annealed
// to 0, and then 500 at the Z̄ wanted.
type Phase struct {
	// Epochs is the number of passes over all edges, at least 1.
	Epochs int
	// LR is the step size from which it is annealed.
	LR     float64
	Anneal Anneal
	// WarmUp is for how many epochs, fewer than Epochs, the step size first
	// rises linearly from 0 to LR.
	WarmUp int
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
	Phases []Phase
	// BatchSize is b, the number of edges in a batch; 0 means 1024. All edges
	// are taken at once if there are fewer.
	BatchSize int
	Seed      uint64
	// DropLast leaves the last batch of an epoch out if it would be smaller
	// than the others.
	DropLast bool
	// Prepare, if there is one, completes every batch, whose Rows and Local are
	// set, with what the model needs besides (Batch.Images). It is called
	// ahead of the batch's step, in order and on another goroutine, so that it
	// may depend on nothing that training changes. What it sets comes back with
	// a later batch, for its memory to be used again. Epochs and batches count
	// from 0. An error ends the run with it.
	Prepare func(b *model.Batch, epoch, batch int) error
	// Device is where the run is computed; nil means the CPU. On an accelerator the
	// model must have OnDevice, as those of package model do, and Method and MethodZ Remotes; the batches are
	// the same as on the CPU, and nothing goes to the device or comes back from it
	// but a few numbers per batch, and what hooks and checkpoints ask for.
	Device *model.Device
	// PrepareOn, where there is a Prepare, returns what does its work on an
	// accelerator.
	PrepareOn func(*model.Device) (Images, error)
	// Draw is how negatives are drawn.
	Draw Draw
	// Method moves the parameters; nil means plain SGD.
	Method Method
	// Clip bounds the gradients element-wise, ±Clip; 0 means no bound.
	Clip float64
	// LogZ is where NC-t-SNE's log Z starts; FixZ keeps it there. MethodZ
	// moves it; nil means plain SGD. LRZ is its step size, which is not
	// annealed; 0 means 0.001.
	LogZ    float64
	FixZ    bool
	MethodZ Method
	LRZ     float64
	// Hooks are called in order after every epoch.
	Hooks []Hook
	// Watch, unless it is nil, is called after every batch with the number of
	// the epoch at hand, counted from 1, the number of its batches that are done
	// and that of all, and the mean loss of their edges. It takes time from the
	// run. On an accelerator it is called a few times a second.
	Watch func(epoch, done, batches int, loss float64)
	// Checkpoints says when the state of the run is saved; nil means never.
	Checkpoints *Checkpoints
	// Resume is where to go on; nil means from the beginning. Model, edges
	// and the other options must be those of the run that was saved, but for
	// Hooks, Watch, Checkpoints and a larger number of epochs in the last phase, whose
	// schedule is from then on that of the longer run; a phase that exaggerates
	// early cannot become longer.
	Resume *Checkpoint
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
	// Elapsed is the time that the epochs took so far, without the hooks, and
	// EdgesPerSecond the speed of the last.
	Elapsed        time.Duration
	EdgesPerSecond float64
	Model          model.Model
	// Quality is what a hook before this one has measured (Measure); nil if
	// there was none.
	Quality *Quality
}

// A Hook is called after every epoch. An error ends the run with it.
type Hook interface {
	AfterEpoch(*State) error
}

// HookFunc is a function as a Hook.
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
	// Negatives is the number of negatives of each edge in the last phase, and
	// Theta the logarithm of the loss's constant there (see op.Contrastive),
	// also if the run ended before.
	Negatives int
	Theta     float64
	// Elapsed is the time that the epochs took, without the hooks.
	Elapsed time.Duration
}

// A DivergedError ends a run whose loss or embedding is no longer finite or
// has flown apart.
type DivergedError struct {
	// Epoch and Batch count from 1; Batch is 0 if the epoch as a whole shows
	// it.
	Epoch, Batch int
	// LR is the step size of the epoch.
	LR float64
	// Cause names the operation, or what was seen.
	Cause error
}

func (e *DivergedError) Error() string {
	where := fmt.Sprintf("epoch %d", e.Epoch)
	if e.Batch > 0 {
		where += fmt.Sprintf(", batch %d", e.Batch)
	}
	return fmt.Sprintf("train: the run diverged in %s (%v); lower the step size", where, e.Cause)
}

func (e *DivergedError) Unwrap() error { return e.Cause }

// Causes of a divergence that no single operation shows.
var (
	// ErrFlownApart: the points are so far apart that they no longer attract
	// each other.
	ErrFlownApart = errors.New("the points have flown apart")
	// ErrLogZ: NC-t-SNE's log Z has left the range in which exp log Z is a
	// number. LRZ is the step size to lower.
	ErrLogZ = errors.New("log Z has run away")
)

// maxTheta bounds the logarithms of the losses' constants: what their
// exponentials are multiplied by leaves some room below float32's limits.
const maxTheta = 60

// Check says what is wrong with the options for a model with the given
// objective and a graph with the given numbers of points and directed edges.
// Fit calls it first.
func (o *Options) Check(objective op.ContrastiveOptions, points, edges int) error {
	if len(o.Phases) == 0 {
		return errors.New("train: no phases to run")
	}
	if o.Draw < DrawAuto || o.Draw > DrawRuns {
		return fmt.Errorf("train: there is no way %d to draw negatives; take DrawAuto, DrawSingly or DrawRuns", int(o.Draw))
	}
	if edges == 0 {
		return errors.New("train: the graph has no edges")
	}
	if o.BatchSize < 0 || o.BatchSize == 1 {
		return fmt.Errorf("train: a batch of %d edges has no negatives; take 2 or more", o.BatchSize)
	}
	if !(o.Clip >= 0) || !(o.LRZ >= 0) || math.IsInf(o.LRZ, 0) {
		return fmt.Errorf("train: neither the bound of gradients, %g, nor the step size of log Z, %g, may be negative or no number", o.Clip, o.LRZ)
	}
	if !(math.Abs(o.LogZ) <= maxTheta) {
		return fmt.Errorf("train: log Z cannot start at %g; take a number between −%d and %d", o.LogZ, maxTheta, maxTheta)
	}
	total := 0
	for i, p := range o.Phases {
		if p.Epochs < 1 || p.Epochs > math.MaxInt32-total {
			return fmt.Errorf("train: phase %d has %d epochs; take 1 or more, and no more than fit a run", i+1, p.Epochs)
		}
		total += p.Epochs
		if !(p.LR > 0) || math.IsInf(p.LR, 0) {
			return fmt.Errorf("train: phase %d has step size %g; take a positive number", i+1, p.LR)
		}
		if p.Anneal < Linear || p.Anneal > Cosine {
			return fmt.Errorf("train: phase %d has the unknown schedule %d; take Linear, Constant or Cosine", i+1, int(p.Anneal))
		}
		if p.WarmUp < 0 || p.WarmUp >= p.Epochs {
			return fmt.Errorf("train: phase %d warms up for %d of its %d epochs; take fewer, and at least 0", i+1, p.WarmUp, p.Epochs)
		}
		if p.Negatives < 1 && p.Negatives != Full {
			return fmt.Errorf("train: phase %d has %d negatives; take 1 or more, or Full", i+1, p.Negatives)
		}
		size := o.batchSize(edges)
		if m := o.Draw.count(p.Negatives, size); m < 2*size-2 && !o.Draw.inRuns(m) && m > maxNegatives/size {
			return fmt.Errorf("train: phase %d has %d negatives for each of the %d edges of a batch, more than fit in memory if each head draws its own; take fewer of either, or draw them in runs", i+1, m, size)
		}
		if !p.Place.suits(objective.Loss) {
			return fmt.Errorf("train: phase %d stands at %v, but the loss %v is not on that spectrum", i+1, p.Place, objective.Loss)
		}
		theta := Spectrum{points}.Theta(objective.Loss, p.Place, 1)
		if !(math.Abs(theta) <= maxTheta) {
			return fmt.Errorf("train: phase %d stands at %v, too far out on the spectrum for floating-point numbers; take a place nearer to 0 <= s <= 1", i+1, p.Place)
		}
	}
	return nil
}

// batchSize returns the number of edges in a batch, but for the last.
func (o *Options) batchSize(edges int) int {
	size := o.BatchSize
	if size == 0 {
		size = 1024
	}
	return min(size, edges)
}

// batches returns the number of batches in an epoch.
func (o *Options) batches(edges int) int {
	size := o.batchSize(edges)
	if o.DropLast {
		return edges / size
	}
	return (edges + size - 1) / size
}

// Fit trains a model on the directed edges heads[k] → tails[k] of a graph.
//
// When ctx ends, Fit returns ctx.Err() with the result so far after at most a
// few batches, and the model keeps what it has learnt; a checkpoint that then
// cannot be saved is joined to the error. So it does when a hook
// returns an error, and when the run diverges (DivergedError).
func Fit(ctx context.Context, m model.Model, heads, tails []int32, options Options) (Result, error) {
	n, _ := m.Points()
	edges, err := packEdges(heads, tails, n)
	if err != nil {
		return Result{}, err
	}
	f, err := newFit(m, n, len(edges), options)
	if err != nil {
		return Result{}, err
	}
	if f.Device.OnHost() {
		f.feed = newFeed(edges, n, &f.Options, f.at, f.epochs)
		defer f.feed.close()
		f.runner = f.host
	} else {
		f.runner = f.remote.run
		if err := f.remote.begin(edges); err != nil {
			return f.result, f.remote.closeAfter(err)
		}
	}
	err = f.run(ctx)
	if f.remote != nil {
		err = f.remote.closeAfter(err)
	}
	last := &f.Phases[len(f.Phases)-1]
	f.result.Negatives = f.Draw.count(last.Negatives, f.size)
	f.result.Theta = f.theta(last.Place, f.result.Negatives)
	return f.result, err
}

// run runs what is left of the phases.
func (f *fit) run(ctx context.Context) error {
	first := 0 // epoch of the phase
	for i := range f.Phases {
		end := first + f.Phases[i].Epochs
		for f.at.epoch < end {
			if err := f.epoch(ctx, i, f.at.epoch-first); err != nil {
				return err
			}
		}
		first = end
	}
	return f.saveAtEnd()
}

// A position is a point in a run: that many epochs, and batches of the next
// epoch, are done.
type position struct{ epoch, batch int }

// fit is a run of Fit.
type fit struct {
	Options
	model     model.Model
	objective op.ContrastiveOptions
	params    []model.Parameter
	logZ      model.Parameter // a single float64
	edges, n  int
	size      int // of a batch
	batches   int // in an epoch
	taken     int // edges that they hold
	epochs    int // in all

	// runner runs the batches that are left of the epoch at hand.
	runner   func(ctx context.Context, t *term) error
	feed     *feed // on the CPU
	contrast contrast
	remote   *remote // nil on the CPU

	at      position
	sum     float64       // loss of the batches of the epoch at hand
	elapsed time.Duration // of that epoch, before the run was resumed
	least   float64       // the lowest loss of an epoch so far
	result  Result
	saves   saves

	coordinates []float32
}

func newFit(m model.Model, n, edges int, options Options) (*fit, error) {
	f := &fit{Options: options, model: m, objective: m.Objective(), params: m.Parameters(), edges: edges, n: n}
	if err := f.Check(f.objective, n, edges); err != nil {
		return nil, err
	}
	f.size, f.batches = f.batchSize(edges), f.Options.batches(edges)
	f.taken = min(edges, f.size*f.batches)
	if f.LRZ == 0 {
		f.LRZ = 0.001
	}
	if f.Method == nil {
		f.Method = new(SGD)
	}
	if f.MethodZ == nil {
		f.MethodZ = new(SGD)
	}
	if f.Method == f.MethodZ {
		return nil, errors.New("train: Method and MethodZ are one; each needs a state of its own")
	}
	for _, p := range f.Phases {
		f.epochs += p.Epochs
	}
	f.contrast = contrast{seed: f.Seed, how: f.Draw}
	value, err := op.ArrayOf([]float64{f.LogZ}, 1)
	if err != nil {
		return nil, err
	}
	grad, err := op.NewArray(nil, value.Dtype(), 1)
	if err != nil {
		return nil, err
	}
	f.logZ = model.Parameter{Name: logZName, Value: value, Grad: grad}
	if f.Device.OnHost() {
		err = errors.Join(f.Method.Init(f.params), f.MethodZ.Init([]model.Parameter{f.logZ}))
	} else {
		f.remote, err = newRemote(f)
	}
	if err != nil {
		return nil, err
	}
	f.result = Result{LogZ: f.LogZ, Edges: edges}
	f.saves.last = time.Now()
	if f.Resume != nil {
		if err := f.restore(f.Resume); err != nil {
			return nil, f.giveUp(err)
		}
	}
	return f, nil
}

// giveUp frees what a run that does not begin has on a device, and returns the
// error.
func (f *fit) giveUp(err error) error {
	if f.remote != nil {
		err = f.remote.closeAfter(err)
	}
	return err
}

// A term is an epoch of a phase, or what is left of it, with its clock.
type term struct {
	*Phase
	epoch int // of the phase
	place Place
	lr    float64 // of the last batch
	clock time.Time
	spent time.Duration
}

// pause adds the time since clock, which then begins again.
func (f *fit) pause(t *term) {
	d := time.Since(t.clock)
	t.spent += d
	f.elapsed += d
	t.clock = time.Now()
}

// interrupted ends a run whose context has ended: it saves its state.
func (f *fit) interrupted(t *term, err error) error {
	f.pause(t)
	return errors.Join(err, f.saveIf(f.Checkpoints != nil))
}

// saveInTime saves the state between two batches, if that is due.
func (f *fit) saveInTime(t *term) error {
	if !f.saves.due(f.Checkpoints) {
		return nil
	}
	f.pause(t)
	err := f.saveIf(true)
	t.clock = time.Now()
	return err
}

// edgesDone returns how many edges the batches of the epoch that are done have.
func (f *fit) edgesDone() int { return min(f.edges, f.at.batch*f.size) }

// stepSize returns that of a batch.
func (f *fit) stepSize(t *term, batch int) float64 {
	return scheduled(t.Anneal, t.LR, t.epoch, batch, f.batches, t.WarmUp, t.Epochs)
}

// host runs the batches that are left of an epoch on the CPU.
func (f *fit) host(ctx context.Context, t *term) error {
	for f.at.batch < f.batches {
		block := f.feed.next()
		if block.err != nil {
			return block.err
		}
		for i := range block.batches {
			if err := ctx.Err(); err != nil {
				return f.interrupted(t, err)
			}
			if err := f.saveInTime(t); err != nil {
				return err
			}
			t.lr = f.stepSize(t, f.at.batch)
			loss, err := f.step(&block.batches[i], t.Negatives, t.place, t.lr)
			if err != nil {
				return err
			}
			f.sum += loss
			f.at.batch++
			if f.Watch != nil {
				f.Watch(f.at.epoch+1, f.at.batch, f.batches, f.sum/float64(f.edgesDone()))
			}
		}
		f.feed.recycle(block)
	}
	return nil
}

// epoch runs an epoch of a phase, or what is left of it, and the hooks after
// it.
func (f *fit) epoch(ctx context.Context, phase, epoch int) error {
	t := &term{Phase: &f.Phases[phase], epoch: epoch, place: placeAt(&f.Phases[phase], epoch), clock: time.Now()}
	from := f.at.batch
	if err := f.runner(ctx, t); err != nil {
		return err
	}
	f.pause(t)
	speed := float64(f.taken-from*f.size) / t.spent.Seconds()
	f.result.Epochs++
	f.result.Loss = f.sum / float64(f.taken)
	f.result.Elapsed += f.elapsed
	f.at, f.sum, f.elapsed = position{epoch: f.at.epoch + 1}, 0, 0
	if err := f.checkReach(t.place, t.Negatives, t.lr); err != nil {
		return err
	}
	state := State{
		Epoch: f.result.Epochs, Epochs: f.epochs, Phase: phase, LR: t.lr, Loss: f.result.Loss, LogZ: f.result.LogZ,
		Elapsed: f.result.Elapsed, EdgesPerSecond: speed, Model: f.model,
	}
	for _, h := range f.Hooks {
		if err := h.AfterEpoch(&state); err != nil {
			return err
		}
	}
	return f.saveIf(f.Checkpoints.after(f.result.Epochs))
}

// step trains on a batch and returns its loss, as a sum over its edges.
func (f *fit) step(b *model.Batch, m int, place Place, lr float64) (float64, error) {
	f.contrast.draw(b, m, f.at.epoch, f.at.batch)
	theta := f.theta(place, f.Draw.count(m, b.Edges()))
	loss, err := f.model.Step(b, theta)
	if err != nil {
		return 0, err
	}
	if !finite.Is(loss) {
		cause := f.model.Diagnose()
		if cause == nil {
			cause = errors.New("the loss is not finite")
		}
		return 0, &DivergedError{Epoch: f.at.epoch + 1, Batch: f.at.batch + 1, LR: lr, Cause: cause}
	}
	f.Method.Step(b.Rows, lr, f.Clip)
	if f.objective.Loss == op.NC && !f.FixZ {
		op.Data[float64](f.logZ.Grad)[0] = f.model.DTheta()
		f.MethodZ.Step(nil, f.LRZ, f.Clip)
		f.result.LogZ = op.Data[float64](f.logZ.Value)[0]
		if !(math.Abs(f.result.LogZ) <= maxTheta) {
			return 0, &DivergedError{Epoch: f.at.epoch + 1, Batch: f.at.batch + 1, LR: lr, Cause: ErrLogZ}
		}
	}
	if f.objective.Mean {
		loss *= float64(b.Edges())
	}
	return loss, nil
}

// theta returns the logarithm of the loss's constant for a batch with m
// negatives for each head: fewer, in a small last batch, than asked for.
func (f *fit) theta(place Place, m int) float64 {
	if f.objective.Loss == op.NC {
		return f.result.LogZ
	}
	return Spectrum{f.n}.Theta(f.objective.Loss, place, max(1, m))
}

// placeAt returns the place on the spectrum of an epoch of a phase.
func placeAt(p *Phase, epoch int) Place {
	if p.ExaggerateEarly && 3*epoch < p.Epochs {
		return p.Place.Exaggerated()
	}
	return p.Place
}

// checkReach looks at the spread of the embedding after the first epoch and
// whenever the loss has risen well above its lowest: clamped losses stay
// finite however far the points fly.
func (f *fit) checkReach(place Place, m int, lr float64) error {
	if f.result.Epochs == 1 {
		f.least = f.result.Loss
	} else if f.result.Loss < 1.5*f.least {
		f.least = min(f.least, f.result.Loss)
		return nil
	}
	reach := f.reach(place, f.Draw.count(m, f.size))
	if math.IsInf(reach, 1) {
		return nil // and no embedding has to be computed
	}
	spread, err := f.spread()
	if err != nil {
		return err
	}
	if !(spread <= reach) {
		return &DivergedError{Epoch: f.result.Epochs, LR: lr, Cause: fmt.Errorf("%w: their root mean square distance is %.3g", ErrFlownApart, spread)}
	}
	return nil
}

// reach returns the distance beyond which the clamp leaves points without
// attraction: where 1/(1+c(1+d²)) or, without a constant c, 1/(1+d²) is below
// it.
func (f *fit) reach(place Place, m int) float64 {
	if f.objective.Metric == op.Cosine {
		return math.Inf(1) // the length of a row plays no part
	}
	if f.objective.Clamp == 0 {
		return 1e15 // the squares of such distances are still finite in float32
	}
	c := 1.
	switch f.objective.Loss {
	case op.Neg:
		c = math.Exp(f.theta(place, m))
	case op.NC:
		c = math.Exp(f.result.LogZ) * float64(m)
	}
	return 1 / math.Sqrt(f.objective.Clamp*min(1, c))
}

// spread returns the root mean square distance of two points.
func (f *fit) spread() (float64, error) {
	n, d := f.model.Points()
	f.coordinates = resize(f.coordinates, n*d)
	if err := f.model.EmbedTo(f.coordinates); err != nil {
		return 0, err
	}
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
	return math.Sqrt(2 * squares), nil
}
