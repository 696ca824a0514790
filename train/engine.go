package train

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// An engine trains a model on the batches of a run, on the CPU or on a device. It
// makes the batches, draws their negatives, and holds log Z.
type engine interface {
	// advance trains on the next batch of an epoch, or on the next few, and adds
	// each to e.
	advance(e *epochState) error
	// logZ returns NC-t-SNE's log Z.
	logZ() float64
	// setLogZ starts log Z again, between two batches, with a new state of its optimiser.
	setLogZ(logZ float64) error
	// arrays returns the arrays of the run's state. They are not copies.
	arrays() []NamedArray
	// restored is called once the arrays have been written to, before the first
	// batch.
	restored() error
	// close frees the engine's memory; the model keeps its parameters. close returns err, the
	// run's error, joined with its own errors.
	close(err error) error
}

// settings holds the settings of a run that both engines share.
type settings struct {
	Options       // with their defaults filled in
	model         model.Model
	objective     op.ContrastiveOptions
	n, edges      int // points, directed edges
	size          int // of a batch
	batches       int // in an epoch
	edgesPerEpoch int // edges in these batches
	epochs        int // at the end, including the epochs of an earlier run (Follows)

	list  []edge      // nil if all phases have All negatives
	graph *wholeGraph // nil if none has
}

// newSettings checks the options of a run and fills their defaults in.
func newSettings(m model.Model, n, edges int, options Options) (_ *settings, err error) {
	defer kind.Catch(&err)
	s := &settings{Options: options, model: m, objective: m.Objective(), n: n, edges: edges}
	kind.Check(s.Check(s.objective, n, edges))
	s.Phases = slices.Clone(s.Phases) // retries change the rates
	s.LRZ = cmp.Or(s.LRZ, 0.001)
	if s.Optimizer == nil {
		s.Optimizer = new(SGD)
	}
	if s.OptimizerZ == nil {
		s.OptimizerZ = new(SGD)
	}
	kind.Need(s.Optimizer != s.OptimizerZ, ErrInput, "train: Optimizer and OptimizerZ: got one object, want two")
	s.size, s.batches = s.batchSize(edges), s.Options.batches(edges)
	s.edgesPerEpoch = min(edges, s.size*s.batches)
	s.epochs = s.Follows.Epochs
	for _, p := range s.Phases {
		s.epochs += p.Epochs
	}
	return s, nil
}

// A position is a point in a run: the numbers of completed epochs, and of completed
// batches in the next.
type position struct{ epoch, batch int }

// An epochState is the state of the current epoch.
type epochState struct {
	*Phase
	position
	phaseEpoch int // counts the epochs of the phase
	spectrum   SpectrumParam
	sum        float64 // of the losses of the batches done
	lr         float64 // of the last of them
	// single has the engine train on a single batch next. The loss at the start of a phase is
	// kept, and must not depend on the size of chunks, which depends on time.
	single bool

	clock   time.Time
	trained time.Duration // on the batches that were done here
	elapsed time.Duration // on those done before the run was resumed, too
}

// add counts a batch with the sum of its edges' losses.
func (e *epochState) add(loss float64) {
	e.sum += loss
	e.batch++
}

// pause adds the time since clock and restarts clock.
func (e *epochState) pause() {
	d := time.Since(e.clock)
	e.trained += d
	e.elapsed += d
	e.clock = time.Now()
}

// phaseOf returns the phase of an epoch of the run.
func (o *settings) phaseOf(epoch int) *Phase {
	first := o.Follows.Epochs
	for i := range o.Phases {
		if first += o.Phases[i].Epochs; epoch < first {
			return &o.Phases[i]
		}
	}
	return &o.Phases[len(o.Phases)-1]
}

// sampledUntil returns the first epoch with All negatives that is not before the given
// one, or the number of epochs if there is none.
func (o *settings) sampledUntil(epoch int) int {
	for epoch < o.epochs && o.phaseOf(epoch).Negatives != All {
		epoch++
	}
	return epoch
}

// learningRate returns the learning rate of a batch.
func (o *settings) learningRate(e *epochState, batch int) float64 {
	return learningRateAt(e.Schedule, e.LR, e.phaseEpoch, batch, o.batches, e.WarmUp, e.Epochs)
}

// edgesOf returns the number of edges in a batch of the epoch.
func (o *settings) edgesOf(batch int) int { return min(o.size, o.edges-batch*o.size) }

// lossWeight returns the factor from a batch's loss to the sum of its edges' losses.
func (o *settings) lossWeight(edges int) float64 {
	if o.objective.Mean {
		return float64(edges)
	}
	return 1
}

// hasZ reports whether the loss's constant is log Z.
func (o *settings) hasZ() bool { return o.objective.Loss.Info().Constant == op.LearntZ }

// learnsZ reports whether log Z is learnt.
func (o *settings) learnsZ() bool { return o.hasZ() && !o.FixZ }

// logConst returns the logarithm of the loss's constant for a batch with m negatives for
// each head. A small last batch has fewer negatives than asked for.
func (o *settings) logConst(at SpectrumParam, m int, logZ float64) float64 {
	if o.hasZ() {
		return logZ
	}
	return Normalization{o.n}.LogConst(o.objective.Loss, at, max(1, m))
}

// diverged returns the error of a run that diverges in a batch.
func (o *settings) diverged(e *epochState, batch int, cause error) error {
	return &DivergedError{Epoch: e.epoch + 1, Batch: batch + 1, LR: o.learningRate(e, batch), Cause: cause}
}

// arrays returns a run's parameters, log Z, the state of its model, if any, and the state
// of its optimisers. at maps an array of the model's state to the array that the engine
// uses.
func (o *settings) arrays(params []model.Parameter, paramZ model.Parameter, at func(*op.Array) *op.Array) []NamedArray {
	var list []NamedArray
	for _, p := range append(slices.Clone(params), paramZ) {
		list = append(list, NamedArray{parameterPrefix + p.Name, p.Value})
	}
	if m, ok := o.model.(Stateful); ok {
		for _, s := range m.State() {
			list = append(list, NamedArray{statePrefix + s.Name, at(s.Value)})
		}
	}
	return slices.Concat(list, prefixed(optimizerPrefix, o.Optimizer.State()), prefixed(optimizerZPrefix, o.OptimizerZ.State()))
}

// prefixed returns arrays with a prefix before their names.
func prefixed(prefix string, arrays []NamedArray) []NamedArray {
	return selection.Map(arrays, func(a NamedArray) NamedArray { return NamedArray{prefix + a.Name, a.Value} })
}

// A hostEngine trains on the CPU, in float32 or float64, a batch at a time, while
// another core prepares the next ones.
type hostEngine struct {
	*settings
	params []model.Parameter
	paramZ model.Parameter // log Z: a single float64
	z      float64         // its value

	prefetcher *prefetcher // nil before the first batch
	block      *block      // the current batches, or nil
	next       int         // index of the next batch in block
	sampler    negativeSampler
	whole      *wholeBatch // nil without phases of All negatives
}

func newHostEngine(s *settings) (_ *hostEngine, err error) {
	defer kind.Catch(&err)
	value := kind.Got(op.ArrayOf([]float64{s.LogZ}, 1))
	grad := kind.Got(op.NewArray(nil, value.Dtype(), 1))
	h := &hostEngine{
		settings: s, params: s.model.Parameters(), paramZ: model.Parameter{Name: logZName, Value: value, Grad: grad}, z: s.LogZ,
		sampler: negativeSampler{seed: s.Seed, how: s.Sampling},
	}
	for _, p := range h.params {
		memory.UseHugePages(op.Data[float32](p.Value))
		memory.UseHugePages(op.Data[float64](p.Value))
	}
	h.whole = kind.Got(newWholeBatch(s, h.params[0].Value))
	return h, errors.Join(s.Optimizer.Init(h.params), s.OptimizerZ.Init([]model.Parameter{h.paramZ}))
}

func (h *hostEngine) logZ() float64 { return h.z }

func (h *hostEngine) setLogZ(logZ float64) error {
	op.Data[float64](h.paramZ.Value)[0], h.z = logZ, logZ
	return h.OptimizerZ.Init([]model.Parameter{h.paramZ})
}

func (h *hostEngine) arrays() []NamedArray {
	list := h.settings.arrays(h.params, h.paramZ, func(a *op.Array) *op.Array { return a })
	return append(list, h.whole.arrays()...)
}

func (h *hostEngine) restored() (err error) {
	defer kind.Catch(&err)
	h.z = numberOf(h.paramZ.Value)
	return nil
}

func (h *hostEngine) close(err error) error {
	h.stopPrefetcher()
	return err
}

func (h *hostEngine) stopPrefetcher() {
	if h.prefetcher != nil {
		h.prefetcher.close()
		h.prefetcher, h.block = nil, nil
	}
}

func (h *hostEngine) advance(e *epochState) error {
	if e.Negatives == All {
		h.stopPrefetcher()
		return h.whole.advance(e)
	}
	if h.prefetcher == nil {
		_, single := h.model.(*model.Embedding[float32])
		_, double := h.model.(*model.Embedding[float64])
		h.prefetcher = newPrefetcher(h.list, h.n, single || double, &h.Options, e.position, h.sampledUntil(e.epoch))
	}
	if h.block == nil {
		h.block, h.next = h.prefetcher.next(), 0
		if h.block.err != nil {
			return h.block.err
		}
	}
	e.lr = h.learningRate(e, e.batch)
	b := &h.block.batches[h.next]
	loss, err := h.step(b, e)
	if err != nil {
		return err
	}
	e.add(loss)
	if h.next++; h.next == len(h.block.batches) {
		h.prefetcher.recycle(h.block)
		h.block = nil
	}
	return nil
}

// step trains on a batch and returns its loss, as a sum over its edges.
func (h *hostEngine) step(b *model.Batch, e *epochState) (float64, error) {
	h.sampler.draw(b, e.Negatives, e.epoch, e.batch)
	loss, err := h.model.Step(b, h.logConst(e.spectrum, h.Sampling.count(e.Negatives, b.Edges()), h.z))
	if err != nil {
		return 0, err
	}
	if !simd.IsFinite(loss) {
		cause := h.model.Diagnose()
		if cause == nil {
			cause = errNotFinite
		}
		return 0, h.diverged(e, e.batch, cause)
	}
	h.Optimizer.Step(b.Rows, e.lr, h.Clip)
	if h.learnsZ() {
		op.Data[float64](h.paramZ.Grad)[0] = h.model.DTheta()
		h.OptimizerZ.Step(nil, h.LRZ, h.Clip)
		h.z = op.Data[float64](h.paramZ.Value)[0]
		if !(math.Abs(h.z) <= maxLogConst) {
			return 0, h.diverged(e, e.batch, ErrLogZ)
		}
	}
	return loss * h.lossWeight(b.Edges()), nil
}
