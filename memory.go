package cne

import (
	"cmp"

	"cne/data"
	"cne/internal/memory"
)

// A Memory is an estimate of what a run takes: how much at least, how much where nothing
// limits it, and its largest parts.
type Memory = memory.Estimate

// Memory estimates what Embed takes of points of a size, on the CPU or beside Device. It
// allocates nothing, and reads nothing.
func (o *Options) Memory(size data.Size) Memory { return o.Workload(size).Estimate() }

// Workload returns what the estimate depends on, for a run that does more than Embed.
func (o *Options) Workload(size data.Size) *memory.Points {
	n, d := size.Likely, max(1, size.Width)
	w := &memory.Points{
		N: n, Width: d, ValueBytes: 4, Nonzeros: size.Nonzeros, Components: o.Reduces(n, d), KeepsInput: !o.dropsScaled(), Neighbors: cmp.Or(o.Neighbors, DefaultNeighbors),
		Dim: cmp.Or(o.Dim, DefaultDim), Hidden: o.Hidden, NumberBytes: 4, Batch: cmp.Or(o.BatchSize, DefaultBatchSize), Device: !o.Device.OnHost(),
	}
	w.Approximate = o.Search.Approximates(n, cmp.Or(w.Components, d), w.Neighbors)
	if w.Components > 0 && !w.KeepsInput {
		w.ValueBytes = map[data.Storage]float64{data.InMemory: 4, data.AsBytes: 1}[size.Storage]
	} else if w.KeepsInput {
		w.ValueBytes = 5 // with the values that are not 0, of points such as MNIST's
	}
	if o.Float64 {
		w.NumberBytes = 8
		if w.KeepsInput {
			w.ValueBytes = 12
		}
	}
	if o.adam() {
		w.Moments = 3
	} else if o.Momentum != 0 || o.WeightDecay != 0 {
		w.Moments = 1
	}
	for _, p := range o.phases() {
		w.Listed = max(w.Listed, o.Sampling.Listed(p.Negatives, w.Batch))
	}
	return w
}
