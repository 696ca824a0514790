package op

import (
	"math"

	"cne/internal/simd"
)

// Slopes computes the forces on a new point among fixed points: the derivatives of the
// loss of its edges with respect to squared distances. With the cosine metric rows must
// have unit length. Each goroutine needs its own Slopes.
type Slopes struct {
	pairLoss[float32]
	m     float32
	slope float32 // of the cosine over τ, with the cosine metric
}

// NewSlopes returns Slopes for the loss with the given options, m negatives of each edge,
// and the logarithm theta of the loss's constant. It ignores Scale and Mean.
func NewSlopes(options ContrastiveOptions, m int, theta float64) (*Slopes, error) {
	o, err := newContrastive(options)
	if err != nil {
		return nil, err
	}
	s := &Slopes{pairLoss: newPairLoss[float32](o.options), m: float32(m), slope: float32(-0.5 / o.options.Temperature)}
	s.setTheta(theta, m)
	return s, nil
}

// Of replaces squared distances of a point by the derivatives of the loss of its k edges.
// The first k elements of tails are the distances from the tails; the rest fills whole
// vectors and becomes 0. The distances from some negatives represent the m negatives of
// each edge.
func (s *Slopes) Of(tails []float32, k int, negatives []float32) {
	for j := k; j < len(tails); j++ {
		tails[j] = tails[0]
	}
	cosine := s.options.Metric == Cosine
	if cosine {
		s.cosines(tails)
		s.cosines(negatives)
	}
	share := s.m / float32(len(negatives))
	switch {
	case !s.perHead:
		s.kernels.positive(tails, s.c, s.bound)
		s.kernels.row(negatives, s.c, s.bound)
		simd.Scale(negatives, share*float32(k))
	case cosine:
		top := simd.RowMax(tails, simd.RowMax(negatives, negatives[0]))
		simd.RowExp(tails, top)
		shares := s.perEdge(tails[:k], float32(share*float32(simd.RowExp(negatives, top))),
			func(q, share float32) float32 { return float32(q*share) - 1 })
		simd.Scale(negatives, share*shares)
	default:
		simd.RowSimilarities(tails, s.clamp)
		shares := s.perEdge(tails[:k], float32(share*float32(simd.RowSimilarities(negatives, s.clamp))), func(q, share float32) float32 {
			if q <= s.clamp {
				return 0
			}
			return q - float32(q*(q*share))
		})
		simd.RowInfoNC(negatives, share*shares, s.clamp)
	}
	if cosine {
		simd.Scale(tails, s.slope)
		simd.Scale(negatives, s.slope)
	}
	clear(tails[k:])
}

// cosines replaces squared distances of rows of unit length by cosines over τ.
func (s *Slopes) cosines(x []float32) {
	for j, d2 := range x {
		x[j] = float32(s.slope*d2) - float32(2*s.slope)
	}
}

// perEdge replaces the similarities q of tails by InfoNC's derivatives, which slope
// returns. total is the sum of the negatives' similarities. perEdge returns the sum of
// the edges' shares 1/(ρ·total).
func (s *Slopes) perEdge(q []float32, total float32, slope func(q, share float32) float32) (shares float32) {
	for j, own := range q {
		share := s.weight / max(total+own, math.SmallestNonzeroFloat32)
		shares += share
		q[j] = slope(own, share)
	}
	return shares
}
