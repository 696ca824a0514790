package quality

import (
	"fmt"

	"cne/internal/parallel"
)

// Trustworthiness returns how far the neighbours of a point in the embedding
// can be trusted to be near it in the data (Venna and Kaski, 2001),
//
//	1 − 2/(nk(2n−3k−1)) · Σ_i Σ_(j among the k nearest of i in the embedding) max(0, r(i,j)−k),
//
// where r(i,j), from 1, is the rank of j by distance from i in the data. Points that are
// equally near share the least rank. The value is 1
// if all k neighbours are among the k nearest in the data, and about 0.5 if they are
// random points.
//
// ranks is n×k: entries i·k to i·k+k−1 are the ranks r(i,j) of the neighbours
// of point i (neighbors.Ranks gives them). With the ranks of fewer than n points, a
// sample, the measure is estimated. It is defined for k < n/2.
// Errors wrap ErrInput, and ErrUndefined if k is larger or there are no points.
func Trustworthiness(ranks []int32, k, n int) (Estimate, error) {
	if k < 1 || len(ranks)%k != 0 {
		return Estimate{}, fmt.Errorf("%w: ranks: got %d, want %d for each point", ErrInput, len(ranks), k)
	}
	if 2*k >= n {
		return Estimate{}, fmt.Errorf("%w: trustworthiness of %d points: got %d neighbours, want fewer than half of the points",
			ErrUndefined, n, k)
	}
	for e, r := range ranks {
		if r < 1 || int(r) >= n {
			return Estimate{}, fmt.Errorf("%w: rank of a neighbour of point %d (counted from 0): got %d, want 1 to %d", ErrInput, e/k, r, n-1)
		}
	}
	// penalties has for each point how far its neighbours' ranks exceed k, summed.
	penalties := make([]int, len(ranks)/k)
	parallel.For(len(penalties), 1<<12, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for _, r := range ranks[i*k : (i+1)*k] {
				penalties[i] += max(0, int(r)-k)
			}
		}
	})
	return average(penalties, n, func(penalty, points float64) float64 {
		return 1 - 2*penalty/(points*float64(k)*float64(2*n-3*k-1))
	}), nil
}
