package train

import (
	"errors"
	"math"

	"cne/internal/memory"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// A hostEngine trains on the CPU, in float32 or float64, a batch at a time, while
// another core prepares the next ones.
type hostEngine struct {
	*settings
	params []model.Parameter
	paramZ model.Parameter // log Z: a single float64
	z      float64         // its value

	list       []edge
	prefetcher *prefetcher // nil before the first batch
	block      *block      // the current batches, or nil
	following  *block      // the batches after them, if ready early
	next       int         // index of the next batch in block
	sampler    negativeSampler
	whole      *wholeBatch // nil without phases of All negatives
}

func newHostEngine(s *settings, edges []edge) (*hostEngine, error) {
	value, err := op.ArrayOf([]float64{s.LogZ}, 1)
	if err != nil {
		return nil, err
	}
	grad, err := op.NewArray(nil, value.Dtype(), 1)
	if err != nil {
		return nil, err
	}
	h := &hostEngine{
		settings: s, params: s.model.Parameters(), paramZ: model.Parameter{Name: logZName, Value: value, Grad: grad}, z: s.LogZ,
		list: edges, sampler: negativeSampler{seed: s.Seed, how: s.Sampling},
	}
	for _, p := range h.params {
		memory.UseHugePages(op.Data[float32](p.Value))
		memory.UseHugePages(op.Data[float64](p.Value))
	}
	if h.whole, err = newWholeBatch(s, edges); err != nil {
		return nil, err
	}
	return h, errors.Join(s.Optimizer.Init(h.params), s.OptimizerZ.Init([]model.Parameter{h.paramZ}))
}

func (h *hostEngine) logZ() float64 { return h.z }

func (h *hostEngine) setLogZ(logZ float64) error {
	op.Data[float64](h.paramZ.Value)[0], h.z = logZ, logZ
	return h.OptimizerZ.Init([]model.Parameter{h.paramZ})
}

func (h *hostEngine) arrays() []NamedArray {
	list := h.settings.arrays(h.params, h.paramZ, func(a *op.Array) *op.Array { return a })
	if h.whole != nil {
		list = append(list, NamedArray{optimizerPrefix + "velocity", h.whole.velocity}, NamedArray{optimizerPrefix + "divided", h.whole.divided})
	}
	return list
}

func (h *hostEngine) restored() (err error) {
	h.z, err = numberOf(h.paramZ.Value)
	return err
}

func (h *hostEngine) close(err error) error {
	h.stopPrefetcher()
	return err
}

func (h *hostEngine) stopPrefetcher() {
	if h.prefetcher != nil {
		h.prefetcher.close()
		h.prefetcher, h.block, h.following = nil, nil, nil
	}
}

func (h *hostEngine) advance(e *epochState) error {
	if e.Negatives == All {
		h.stopPrefetcher()
		e.lr = h.learningRate(e, 0)
		loss := h.whole.step(e)
		if !simd.IsFinite(loss) {
			return h.diverged(e, 0, errNotFinite)
		}
		e.sum, e.batch = loss*float64(h.edgesPerEpoch), h.batches
		return nil
	}
	if h.prefetcher == nil {
		_, single := h.model.(*model.Embedding[float32])
		_, double := h.model.(*model.Embedding[float64])
		h.prefetcher = newPrefetcher(h.list, h.n, single || double, &h.Options, e.position, h.sampledUntil(e.epoch))
	}
	if h.block == nil {
		h.block, h.following, h.next = h.following, nil, 0
		if h.block == nil {
			h.block = h.prefetcher.next()
		}
		if h.block.err != nil {
			return h.block.err
		}
	}
	e.lr = h.learningRate(e, e.batch)
	b := &h.block.batches[h.next]
	b.Next = h.rowsAfter()
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

// rowsAfter returns the Rows of the next batch, nil if it is not ready.
func (h *hostEngine) rowsAfter() []int32 {
	if h.next+1 < len(h.block.batches) {
		return h.block.batches[h.next+1].Rows
	}
	if h.following == nil {
		h.following = h.prefetcher.nextIfReady()
	}
	if h.following == nil || h.following.err != nil {
		return nil
	}
	return h.following.batches[0].Rows
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
