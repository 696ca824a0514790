package train

import (
	"cmp"
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/train/quality"
)

// A pull takes the steps of Phase.Pull, one after each epoch. They are implicit, so no
// strength is too large for the learning rate.
type pull struct {
	towards []float32  // Options.Towards, centred
	squares float64    // the sum of its squares
	edges   [][2]int32 // some of the graph's
}

const (
	// pullUnit is the strength of a Pull of 1 in units of the attraction: Pulls of 0 to 0.5
	// then span embeddings from the usual ones to nearly Towards.
	pullUnit = 10
	// sampledEdges is the number of edges in which the attraction is measured.
	sampledEdges = 256
)

// newPull returns the pull of a run; nil if there is none.
func newPull(s *settings, heads, tails []int32) (_ *pull, err error) {
	defer kind.Catch(&err)
	if !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Pull > 0 }) {
		return nil, nil
	}
	_, single := s.model.(*model.Embedding[float32])
	_, double := s.model.(*model.Embedding[float64])
	_, d := s.model.Points()
	kind.Need(single || double, ErrInput, "train: a pull: got %T, want positions without a network", s.model)
	kind.Need(len(s.Towards) == s.n*d && simd.AllFinite(s.Towards), ErrInput,
		"train: a pull: got %d coordinates to pull towards, want %d finite ones", len(s.Towards), s.n*d)
	towards := withoutOutliers(s.Towards, d)
	mean, squares := quality.Spread(towards, d, false)
	kind.Need(squares != 0, ErrInput, "train: a pull: got equal positions to pull towards, want different ones")
	p := &pull{towards: make([]float32, len(towards)), squares: squares}
	for i, v := range towards {
		p.towards[i] = float32(float64(v) - mean[i%d])
	}
	n := min(s.edges, sampledEdges)
	for k := range n {
		p.edges = append(p.edges, [2]int32{heads[k*s.edges/n], tails[k*s.edges/n]})
	}
	return p, nil
}

// withoutOutliers returns positions [n, d] whose coordinates end at five times the range of
// the middle 90 % of the points: otherwise a single one could set the scale of all others.
func withoutOutliers(x []float32, d int) []float32 {
	x = slices.Clone(x)
	n := len(x) / d
	column := make([]float32, n)
	for j := range d {
		for i := range column {
			column[i] = x[i*d+j]
		}
		slices.Sort(column)
		low, high := column[n/20], column[n-1-n/20]
		for i := j; i < len(x) && low < high; i += d {
			x[i] = min(max(x[i], low-2*(high-low)), high+2*(high-low))
		}
	}
	return x
}

// pullPoints takes the step after an epoch.
func (r *run) pullPoints() (err error) {
	defer kind.Catch(&err)
	if r.epochState.Pull == 0 {
		return nil
	}
	table := r.engine.arrays()[0].Value // the only parameter
	value := onHost(table)
	pullTo(r, op.Data[float32](value))
	pullTo(r, op.Data[float64](value))
	if value == table {
		return nil
	}
	return op.Copy(table, value)
}

// pullTo moves positions [n, d] towards the scaled and shifted Towards that is nearest to
// them.
func pullTo[T op.Float](r *run, x []T) {
	d := len(x) / r.n
	mean, squares := quality.Spread(x, d, false)
	if !(squares > 0) {
		return // no positions of this type, or all coincide, or the run has diverged
	}
	products := 0.
	for i, v := range x { // Towards has no mean, so that x needs none
		products += float64(float64(v) * float64(r.pull.towards[i]))
	}
	e, scale := &r.epochState, products/r.pull.squares
	step := e.lr * pullUnit * e.Pull * meanAttraction(r, x, d) / (squares / float64(r.n))
	if e.Negatives == All {
		step /= 2 * (1 - float64(r.strideOf(e).momentum)) // its gradients are a quarter of the loss's per point
	} else {
		step *= cmp.Or(r.objective.Scale, 1) * 2 * float64(r.edgesPerEpoch) / float64(r.n) / r.lossWeight(r.size)
	}
	part := step / (1 + step)
	parallel.For(r.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo * d; i < hi*d; i += d {
			for j, t := range r.pull.towards[i : i+d] {
				to := mean[j] + float64(scale*float64(t))
				x[i+j] += T(part * (to - float64(x[i+j])))
			}
		}
	})
}

// meanAttraction returns the mean derivative of an edge's loss as a positive pair with
// respect to the logarithm of its length, without the loss's Scale.
func meanAttraction[T op.Float](r *run, x []T, d int) (mean float64) {
	e, positive := &r.epochState, r.objective.Loss.Info().Positive
	c := r.constant(e.spectrum, r.Sampling.count(e.Negatives, r.size))
	for _, ends := range r.pull.edges {
		d2 := 0.
		for j := range d {
			v := float64(x[int(ends[0])*d+j]) - float64(x[int(ends[1])*d+j])
			d2 += float64(v * v)
		}
		rest, slope := d2/(1+d2), -1.
		if positive != nil {
			slope = positive(1/(1+d2), rest, c).LogQ
		}
		mean -= float64(2 * rest * slope)
	}
	return mean / float64(len(r.pull.edges))
}
