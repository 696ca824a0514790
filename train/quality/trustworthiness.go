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
// where r(i,j), from 1, is the rank of j by distance from i in the data: 1 if
// all k neighbours are among the k nearest there, about 0.5 if they are any
// points.
//
// ranks is n×k: entries i·k to i·k+k−1 are the ranks r(i,j) of the neighbours
// of point i (neighbors.Ranks gives them). The measure is defined for k < n/2.
// Errors wrap ErrInput, and ErrUndefined if k is larger or there are no points.
func Trustworthiness(ranks []int32, k int) (float64, error) {
	if k < 1 || len(ranks)%k != 0 {
		return 0, fmt.Errorf("%w: %d ranks are not a list of %d for each point", ErrInput, len(ranks), k)
	}
	n := len(ranks) / k
	if 2*k >= n {
		return 0, fmt.Errorf("%w: the trustworthiness of %d neighbours among %d points; they must be fewer than half of the points", ErrUndefined, k, n)
	}
	for e, r := range ranks {
		if r < 1 || int(r) >= n {
			return 0, fmt.Errorf("%w: point %d (counted from 0) has a neighbour of rank %d; ranks among %d points are 1 to %d", ErrInput, e/k, r, n, n-1)
		}
	}
	const grain = 1 << 16
	penalties := make([]int64, parallel.Pieces(len(ranks), grain))
	parallel.For(len(ranks), grain, func(piece, lo, hi int) {
		for _, r := range ranks[lo:hi] {
			penalties[piece] += max(0, int64(r)-int64(k))
		}
	})
	var penalty int64
	for _, p := range penalties {
		penalty += p
	}
	return 1 - 2*float64(penalty)/(float64(n)*float64(k)*float64(2*n-3*k-1)), nil
}
