package quality

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/internal/simd"
)

// sampleLosses estimates ExpectedLosses from as many points as trustworthiness takes: of
// the sum over edges from those whose heads they are, and of that over pairs from theirs
// with all other points. The errors take the constants of the discriminators as given,
// and otherwise are those of sampleDivergence. It returns nil if none of the points has an
// edge.
func (m *measurement) sampleLosses(ctx context.Context, discriminators []Discriminator) ([]Estimate, error) {
	g, n := m.Graph, m.embedding.N
	negatives, clamp := m.Losses.Negatives, m.Losses.Clamp
	if err := checkLoss(n, negatives, clamp); err != nil {
		return nil, err
	}
	if err := checkDiscriminators(discriminators); err != nil {
		return nil, err
	}
	repulsion, err := rowLosses(ctx, m.embedding, m.ranked, clamp, discriminators)
	if err != nil {
		return nil, err
	}
	size := len(m.ranked)
	limit := logLimit(clamp)
	attraction := make([][]float64, size)
	edges := make([]float64, size)
	err = inPieces(ctx, size, 64, func(_, lo, hi int) {
		for q := lo; q < hi; q++ {
			attraction[q] = make([]float64, len(discriminators))
			head, tails := m.embedding.Row(m.ranked[q]), g.Tails(m.ranked[q])
			edges[q] = float64(len(tails))
			for _, j := range tails {
				d2 := squaredDistance(head, m.embedding.Row(int(j)))
				for k, p := range discriminators {
					attraction[q][k] += min(limit, math.Log1p(p.slope*d2+p.offset))
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var sum float64
	for _, e := range edges {
		sum += e
	}
	if sum == 0 {
		return nil, nil // nothing is known of the edges
	}
	meanEdges := sum / float64(size)
	losses := make([]Estimate, len(discriminators))
	linear := make([]float64, size)
	for k := range discriminators {
		var perEdge, perPair float64
		for q := range size {
			perEdge += attraction[q][k] / sum
			perPair += repulsion[q][k] / float64(size) / float64(n-1)
		}
		for q := range size {
			linear[q] = (attraction[q][k]-perEdge*edges[q])/meanEdges + float64(negatives)*repulsion[q][k]/float64(n-1)
		}
		losses[k] = Estimate{perEdge + float64(negatives)*perPair, estimateMean(linear, n).Error}
	}
	return losses, nil
}

// rowLosses returns for each of some points of an embedding the sums of −log(1−p) over
// its pairs with all others, for each discriminator, with the precision of
// ExpectedLosses.
func rowLosses(ctx context.Context, e *data.Matrix, rows []int, clamp float64, discriminators []Discriminator) ([][]float64, error) {
	n := e.N
	planes := planesOf(e.X, n, e.D)
	single := !slices.ContainsFunc(discriminators, Discriminator.extreme)
	bound, limit := simd.BoundOf[float32](clamp), logLimit(clamp)
	sums := make([][]float64, len(rows))
	err := inPieces(ctx, len(rows), 8, func(_, first, last int) {
		d2 := make([]float32, cauchyBlock)
		for q := first; q < last; q++ {
			sums[q] = make([]float64, len(discriminators))
			i := rows[q]
			x := e.Row(i)
			for _, part := range [2][2]int{{0, i}, {i + 1, n}} {
				for lo := part[0]; lo < part[1]; lo += cauchyBlock {
					hi := min(part[1], lo+cauchyBlock)
					if !single {
						for j := lo; j < hi; j++ {
							exact := squaredDistance(x, e.Row(j))
							for k, p := range discriminators {
								sums[q][k] += min(limit, math.Log1p(1/(p.slope*exact+p.offset)))
							}
						}
						continue
					}
					block := d2[:hi-lo]
					clear(block)
					for k, v := range x {
						simd.AddSquares(block, planes[k*n+lo:k*n+hi], v)
					}
					for k, p := range discriminators {
						sums[q][k] += simd.InverseLogSum(block, float32(p.slope), float32(p.offset), bound)
					}
				}
			}
		}
	})
	return sums, err
}
