package cne

import (
	"cmp"

	"cne/data"
	"cne/internal/memory"
)

// A Memory is an estimate of what a run takes: how much at least, how much where nothing
// limits it, and its largest parts.
type Memory = memory.Estimate

// A MemoryLimit is how many more bytes this process may take, and what says so.
type MemoryLimit = memory.Limit

// A Workload is what the memory of a run depends on.
type Workload = memory.Points

// AvailableMemory returns the tightest limit that the system sets to this process's
// memory; ok is false where it tells of none.
func AvailableMemory() (limit MemoryLimit, ok bool) { return memory.Available() }

// Memory estimates what Embed takes of points of a size, on the CPU or beside Device. It
// allocates nothing, and reads nothing.
func (o *Options) Memory(size data.Size) Memory {
	w := o.Workload(size)
	return w.Estimate()
}

// Workload is what the memory of Embed depends on, for an estimate of a run that does more.
func (o *Options) Workload(size data.Size) Workload {
	n, d := size.Likely, max(1, size.Width)
	w := Workload{
		N: n, Width: d, ValueBytes: 4, Nonzeros: size.Nonzeros, Components: o.Reduces(n, d), Neighbors: orElse(o.Neighbors, DefaultNeighbors),
		Weighted: o.SampleEdges, Dim: orElse(o.Dim, DefaultDim), Hidden: o.Hidden, OnComponents: o.OnComponents, NumberBytes: 4,
		Batch: orElse(o.BatchSize, DefaultBatchSize), Device: !o.Device.OnHost(),
	}
	if w.Components > 0 && o.releasesInput() {
		w.ValueBytes = map[data.Storage]float64{data.InMemory: 4, data.AsBytes: 1}[size.Storage]
	}
	w.Approximate = o.Search.Approximates(n, cmp.Or(w.Components, d), w.Neighbors)
	if o.Graph != nil {
		w.Neighbors, w.Edges = 0, o.Graph.Edges()
	}
	if o.Float64 {
		w.NumberBytes = 8
	}
	switch {
	case o.adam() && o.network():
		w.Moments = 2
	case o.adam():
		w.Moments = 3 // and the gradient of the whole table
	case o.Momentum != 0 || o.WeightDecay != 0:
		w.Moments = 1
	}
	for _, p := range o.phases() {
		w.Listed = max(w.Listed, o.Sampling.Listed(p.Negatives, w.Batch))
	}
	return w
}
