package train

import (
	"math"

	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// An edgeDrawer draws the edges of an epoch in proportion to their weights: as many as
// there are, by systematic sampling. The edges lie one after the other on a line on
// which each has a length in proportion to its weight, and whose whole is the number of
// edges; those are taken on which the points u, u+1, u+2, … lie, where u is drawn
// uniformly from [0, 1) for each epoch. So an edge whose share of the weight is that of
// r edges comes ⌊r⌋ or ⌈r⌉ times, and r times on average over epochs.
type edgeDrawer struct {
	edges []edge
	ends  []float64 // where an edge ends on the line; that of the last is len(edges)
	list  []edge    // of the epoch
	seed  uint64
	u     float64

	drawing parallel.Loop
}

// drawGrain is how many edges of the line are looked at in one piece.
const drawGrain = 1 << 15

// newEdgeDrawer returns a drawer, nil if there are no weights.
func newEdgeDrawer(edges []edge, weights []float32, seed uint64) *edgeDrawer {
	if weights == nil {
		return nil
	}
	d := &edgeDrawer{edges: edges, ends: make([]float64, len(edges)), list: make([]edge, len(edges)), seed: seed}
	sum := 0.
	for _, w := range weights {
		sum += float64(w)
	}
	perWeight, at := float64(len(edges))/sum, 0.
	for e, w := range weights {
		at += float64(w)
		d.ends[e] = min(at*perWeight, float64(len(edges)))
	}
	d.ends[len(edges)-1] = float64(len(edges))
	d.drawing.Body = func(_, lo, hi int) {
		next := 0
		if lo > 0 {
			next = d.taken(lo - 1)
		}
		for e := lo; e < hi; e++ {
			for end := d.taken(e); next < end; next++ {
				d.list[next] = d.edges[e]
			}
		}
	}
	return d
}

// taken returns how many of the points lie before the end of an edge.
func (d *edgeDrawer) taken(e int) int {
	return min(int(math.Ceil(d.ends[e]-d.u)), len(d.list))
}

// draw returns the edges of an epoch, in the order of the list. They are valid until it
// is called again.
func (d *edgeDrawer) draw(epoch int) []edge {
	stream := rng.New(d.seed, rng.Draws, uint64(epoch))
	d.u = stream.Float64()
	d.drawing.Run(len(d.edges), drawGrain)
	return d.list
}

// checkWeights returns an error unless there are weights for so many edges, or none.
func checkWeights(weights []float32, edges int) error {
	if weights == nil {
		return nil
	}
	if len(weights) != edges {
		return errkind.Errorf(ErrInput, "train: %d weights for %d edges; give one for each, or none", len(weights), edges)
	}
	for e, w := range weights {
		if !(w > 0) || w > math.MaxFloat32 {
			return errkind.Errorf(ErrInput, "train: edge %d has the weight %v; weights must be finite and above 0", e, w)
		}
	}
	return nil
}
