package train

import (
	"cmp"
	"time"

	"cne/internal/errkind"
	"cne/model"
	"cne/model/op"
)

// An engine trains a model on the batches of a run, on the CPU or on a device. It
// makes the batches, draws their negatives, and holds log Z.
type engine interface {
	// advance trains on the next batch of an epoch, or on the next few, and adds
	// each to e.
	advance(e *epochRun) error
	// logZ returns NC-t-SNE's log Z.
	logZ() float64
	// setLogZ starts log Z again, between two batches, with a new state of its optimiser.
	setLogZ(logZ float64) error
	// arrays returns the arrays of the run's state, in the memory in which they are
	// used.
	arrays() []NamedArray
	// restored is called once the arrays have been written to, before the first
	// batch.
	restored() error
	// close frees what the engine holds; the model keeps what was learnt. It
	// returns err, with which the run has ended, and what went wrong besides.
	close(err error) error
}

// A job holds the settings of a run that both engines share.
type job struct {
	Options   // with their defaults filled in
	model     model.Model
	objective op.ContrastiveOptions
	n, edges  int // points, directed edges
	size      int // of a batch
	batches   int // in an epoch
	taken     int // edges that these hold
	epochs    int // at the end, those of the run that it follows included
}

// newJob checks the options of a run and fills their defaults in.
func newJob(m model.Model, n, edges int, options Options) (*job, error) {
	j := &job{Options: options, model: m, objective: m.Objective(), n: n, edges: edges}
	if err := j.Check(j.objective, n, edges); err != nil {
		return nil, err
	}
	j.LRZ = cmp.Or(j.LRZ, 0.001)
	if j.Optimizer == nil {
		j.Optimizer = new(SGD)
	}
	if j.OptimizerZ == nil {
		j.OptimizerZ = new(SGD)
	}
	if j.Optimizer == j.OptimizerZ {
		return nil, errkind.Errorf(ErrInput, "train: Optimizer and OptimizerZ: got one object, want two")
	}
	j.size, j.batches = j.batchSize(edges), j.Options.batches(edges)
	j.taken = min(edges, j.size*j.batches)
	j.epochs = j.Follows.Epochs
	for _, p := range j.Phases {
		j.epochs += p.Epochs
	}
	return j, nil
}

// A position is a point in a run: so many epochs, and batches of the next epoch,
// are done.
type position struct{ epoch, batch int }

// An epochRun is an epoch at work, of which some batches are done.
type epochRun struct {
	*Phase
	position
	ofPhase  int // counts the epochs of the phase
	spectrum SpectrumParam
	sum      float64 // of the losses of the batches done
	lr       float64 // of the last of them

	clock   time.Time
	spent   time.Duration // on the batches that were done here
	elapsed time.Duration // on those done before the run was resumed, too
}

// add counts a batch with the sum of its edges' losses.
func (e *epochRun) add(loss float64) {
	e.sum += loss
	e.batch++
}

// pause counts the time since clock, which then begins again.
func (e *epochRun) pause() {
	d := time.Since(e.clock)
	e.spent += d
	e.elapsed += d
	e.clock = time.Now()
}

// phaseOf returns the phase of an epoch of the run.
func (j *job) phaseOf(epoch int) *Phase {
	first := j.Follows.Epochs
	for i := range j.Phases {
		if first += j.Phases[i].Epochs; epoch < first {
			return &j.Phases[i]
		}
	}
	return &j.Phases[len(j.Phases)-1]
}

// stepSize returns that of a batch.
func (j *job) stepSize(e *epochRun, batch int) float64 {
	return scheduled(e.Schedule, e.LR, e.ofPhase, batch, j.batches, e.WarmUp, e.Epochs)
}

// edgesOf returns how many edges a batch of the epoch has.
func (j *job) edgesOf(batch int) int { return min(j.size, j.edges-batch*j.size) }

// lossWeight returns what a batch's loss is multiplied by for the sum of its edges'
// losses.
func (j *job) lossWeight(edges int) float64 {
	if j.objective.Mean {
		return float64(edges)
	}
	return 1
}

// hasZ reports whether the loss's constant is log Z.
func (j *job) hasZ() bool { return j.objective.Loss.Info().Constant == op.LearntZ }

// learnsZ reports whether log Z is learnt.
func (j *job) learnsZ() bool { return j.hasZ() && !j.FixZ }

// logConst returns the logarithm of the loss's constant for a batch with m
// negatives for each head: fewer, in a small last batch, than asked for.
func (j *job) logConst(at SpectrumParam, m int, logZ float64) float64 {
	if j.hasZ() {
		return logZ
	}
	return Normalization{j.n}.LogConst(j.objective.Loss, at, max(1, m))
}

// diverged returns the error of a run that diverges in a batch.
func (j *job) diverged(e *epochRun, batch int, cause error) error {
	return &DivergedError{Epoch: e.epoch + 1, Batch: batch + 1, LR: j.stepSize(e, batch), Cause: cause}
}

// arrays returns a run's parameters, log Z, the state of its optimisers and, if it has
// one, that of its model: at says where an engine keeps an array of the latter.
func (j *job) arrays(params []model.Parameter, paramZ model.Parameter, at func(*op.Array) *op.Array) []NamedArray {
	var list []NamedArray
	for _, p := range params {
		list = append(list, NamedArray{parameterPrefix + p.Name, p.Value})
	}
	list = append(list, NamedArray{parameterPrefix + paramZ.Name, paramZ.Value})
	if m, ok := j.model.(Stateful); ok {
		for _, s := range m.State() {
			list = append(list, NamedArray{statePrefix + s.Name, at(s.Value)})
		}
	}
	for _, s := range j.Optimizer.State() {
		list = append(list, NamedArray{optimizerPrefix + s.Name, s.Value})
	}
	for _, s := range j.OptimizerZ.State() {
		list = append(list, NamedArray{methodZPrefix + s.Name, s.Value})
	}
	return list
}
