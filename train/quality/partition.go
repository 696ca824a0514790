package quality

import (
	"context"
	"fmt"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// PartitionFunction returns
//
//	Z = Σ_(i≠j) 1/(1+‖e_i−e_j‖²)
//
// over all ordered pairs of the embedding's points. It is between 0 and n(n−1). t-SNE
// divides its similarities by Z (Damrich et al., 2023, Eq. 5). The embedding holds points
// of d coordinates, row after row; fewer than two points give 0.
//
// All n(n−1)/2 pairs are visited. For float32 the terms are computed in single precision.
// The relative error of the sum is then below 1e-6 for d = 2, and about d·1e-7 at worst
// for large d. For float64 they are computed in double precision. Errors wrap ErrInput or
// ErrNotFinite, or are ctx's.
func PartitionFunction[T Float](ctx context.Context, embedding []T, d int) (_ float64, err error) {
	defer kind.Catch(&err)
	kind.Expect(d >= 1 && len(embedding)%d == 0, ErrInput, "embedding: got %d values, want points of %d coordinates", len(embedding), d)
	if i := simd.FirstNotFinite(embedding); i >= 0 {
		kind.Check(fmt.Errorf("%w: "+notFinite, ErrNotFinite, i/d, "embedding", embedding[i], i%d))
	}
	n := len(embedding) / d
	if n < 2 {
		return 0, nil
	}
	return 2 * kind.Got(overTiles(ctx, n, similarityTerms(embedding, n, d, false))), nil
}

// klOf returns the Kullback–Leibler divergence in nats, at least 0,
//
//	KL(p ‖ q/Z) = (1/E) Σ_(ij edge) −log q_ij + log Z − log E
//
// where p is uniform on the graph's E directed edges, q_ij = 1/(1+‖e_i−e_j‖²), and
// Z is the embedding's partition function: the loss of t-SNE (Damrich et al.,
// 2023, Eq. 5) on the unweighted graph.
//
// Edge number e goes from point heads[e] to point tails[e], counted from 0;
// both directions of an edge are in the list. The embedding holds points of d
// coordinates, row after row.
func klOf[T Float](ctx context.Context, heads, tails []int32, embedding []T, d int, partition float64) (_ float64, err error) {
	defer kind.Catch(&err)
	attraction, edges := kind.Got(attractionOf(ctx, heads, tails, embedding, d)), float64(len(heads))
	return attraction/edges + elementary.Log(partition) - elementary.Log(edges), nil
}

// edgeGrain is how many edges make a piece of work.
const edgeGrain = 1 << 13

// attractionOf sums −log q over the edges of a graph.
func attractionOf[T Float](ctx context.Context, heads, tails []int32, e []T, d int) (float64, error) {
	partial := make([]float64, parallel.Pieces(len(heads), edgeGrain))
	err := parallel.ForContext(ctx, len(heads), edgeGrain, func(piece, lo, hi int) {
		var sum float64
		for k := lo; k < hi; k++ {
			i, j := int(heads[k])*d, int(tails[k])*d
			sum += elementary.Log1p(squaredDistance(e[i:i+d], e[j:j+d]))
		}
		partial[piece] = sum
	})
	return selection.Sum(partial), err
}
