package train

import (
	"cmp"
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// A pull takes the steps of Phase.Pull, one after each epoch. They are implicit, so no
// strength is too large for the learning rate.
type pull struct {
	towards []float32 // Options.Towards, centred
	square  float64   // the sum of its squares
	sample  []edge
}

// pullUnit is the strength of a Pull of 1 in units of the attraction: those of 0 to 0.5 then
// span embeddings from the usual ones to nearly Towards.
const pullUnit = 10

// sampledEdges is the number of edges in which the attraction is measured.
const sampledEdges = 1024

// newPull returns the pull of a run; nil if there is none.
func newPull(s *settings, edges []edge) (*pull, error) {
	if !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Pull > 0 }) {
		return nil, nil
	}
	_, single := s.model.(*model.Embedding[float32])
	_, double := s.model.(*model.Embedding[float64])
	_, d := s.model.Points()
	switch {
	case !single && !double:
		return nil, kind.Errorf(ErrInput, "train: a pull: got %T, want positions without a network", s.model)
	case len(s.Towards) != s.n*d || !simd.AllFinite(s.Towards):
		return nil, kind.Errorf(ErrInput, "train: a pull: got %d coordinates to pull towards, want %d finite ones", len(s.Towards), s.n*d)
	}
	p := &pull{towards: make([]float32, len(s.Towards))}
	for j := range d {
		mean := columnMean(s.Towards, d, j)
		for i := j; i < len(s.Towards); i += d {
			v := float64(s.Towards[i]) - mean
			p.towards[i] = float32(v)
			p.square += float64(v * v)
		}
	}
	if p.square == 0 {
		return nil, kind.Errorf(ErrInput, "train: a pull: got equal positions to pull towards, want different ones")
	}
	for k := range min(len(edges), sampledEdges) {
		p.sample = append(p.sample, edges[k*len(edges)/min(len(edges), sampledEdges)])
	}
	return p, nil
}

func columnMean[T op.Float](x []T, d, j int) (mean float64) {
	for i := j; i < len(x); i += d {
		mean += float64(x[i])
	}
	return mean / float64(len(x)/d)
}

// pullPoints takes the step after an epoch.
func (r *run) pullPoints() error {
	if r.epochState.Pull == 0 {
		return nil
	}
	table := r.engine.arrays()[0].Value // the only parameter
	value, err := onHost(table)
	if err != nil {
		return err
	}
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
	if len(x) == 0 {
		return
	}
	d := len(x) / r.n
	var squares, products float64
	mean := make([]float64, d)
	for j := range d {
		mean[j] = columnMean(x, d, j)
		for i := j; i < len(x); i += d {
			v := float64(x[i]) - mean[j]
			squares += float64(v * v)
			products += float64(v * float64(r.pull.towards[i]))
		}
	}
	if !(squares > 0) {
		return // all points coincide, or the run has diverged
	}
	e, scale := &r.epochState, products/r.pull.square
	step := e.lr * pullUnit * e.Pull * meanAttraction(r, x, d) / (squares / float64(r.n))
	if e.Negatives == All {
		step /= 2 * (1 - wholeMomentum) // its gradients are a quarter of the loss's per point
	} else {
		step *= 2 * float64(r.edgesPerEpoch) / float64(r.n) / r.lossWeight(r.size)
	}
	part := step / (1 + step)
	parallel.For(r.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo * d; i < hi*d; i++ {
			to := mean[i%d] + float64(scale*float64(r.pull.towards[i]))
			x[i] += T(part * (to - float64(x[i])))
		}
	})
}

// meanAttraction returns the mean derivative of an edge's loss as a positive pair with
// respect to the logarithm of its length.
func meanAttraction[T op.Float](r *run, x []T, d int) (mean float64) {
	e, positive := &r.epochState, r.objective.Loss.Info().Positive
	c, factor := r.constant(e.spectrum, r.Sampling.count(e.Negatives, r.size)), cmp.Or(r.objective.Scale, 1)
	if e.Negatives == All {
		factor = 1
	}
	for _, edge := range r.pull.sample {
		a, b := x[head(edge)*d:][:d], x[tail(edge)*d:][:d]
		var d2 float64
		for j := range a {
			v := float64(a[j]) - float64(b[j])
			d2 += float64(v * v)
		}
		q, rest, slope := 1/(1+d2), d2/(1+d2), -1.
		if positive != nil {
			slope = positive(q, rest, c).LogQ
		}
		mean -= float64(2 * rest * slope)
	}
	return factor * mean / float64(len(r.pull.sample))
}
