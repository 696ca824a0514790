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
	edges     []edge
	weights   []float32
	perWeight float64   // length on the line
	before    []float64 // the weight of all edges before each piece of drawGrain
	list      []edge    // of the epoch
	seed      uint64
	u         float64

	drawing parallel.Loop
}

// drawGrain is how many edges of the line are looked at in one piece.
const drawGrain = 1 << 15

// newEdgeDrawer returns a drawer, nil if there are no weights.
func newEdgeDrawer(edges []edge, weights []float32, seed uint64) *edgeDrawer {
	if weights == nil {
		return nil
	}
	d := &edgeDrawer{edges: edges, weights: weights, list: make([]edge, len(edges)), seed: seed}
	sum := 0.
	for e, w := range weights {
		if e%drawGrain == 0 {
			d.before = append(d.before, sum)
		}
		sum += float64(w)
	}
	d.perWeight = float64(len(edges)) / sum
	// Where edges end is added up anew each time, which takes no longer than to read it.
	d.drawing.Body = func(piece, lo, hi int) {
		at, next := d.before[piece], 0
		if lo > 0 {
			next = d.taken(at)
		}
		for e, w := range d.weights[lo:hi] {
			at += float64(w)
			end := len(d.list)
			if lo+e+1 < len(d.weights) { // else rounding decided
				end = d.taken(at)
			}
			for ; next < end; next++ {
				d.list[next] = d.edges[lo+e]
			}
		}
	}
	return d
}

// taken returns how many of the points lie before the end of the edge up to which edges
// have so much weight.
func (d *edgeDrawer) taken(weight float64) int {
	end := min(weight*d.perWeight, float64(len(d.list)))
	return min(int(math.Ceil(end-d.u)), len(d.list))
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
		return errkind.Errorf(ErrInput, "train: weights: got %d, want %d, one for each edge", len(weights), edges)
	}
	for e, w := range weights {
		if !(w > 0) || w > math.MaxFloat32 {
			return errkind.Errorf(ErrInput, "train: weight of edge %d: got %v, want a finite number above 0", e, w)
		}
	}
	return nil
}
