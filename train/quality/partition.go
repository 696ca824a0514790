package quality

import (
	"context"
	"fmt"
	"math"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// Tiles of the pairwise loops: rows per piece of work, and columns that are
// visited for each of those rows before the next columns are, so that they
// stay in the first-level cache.
const (
	tileRows    = 64
	tileColumns = 1024
)

// PartitionFunction returns
//
//	Z = Σ_(i≠j) 1/(1+‖e_i−e_j‖²)
//
// over all ordered pairs of the embedding's points, from 0 to n(n−1): the constant
// that t-SNE divides its similarities by (Damrich et al., 2023, Eq. 5). The
// embedding holds points of d coordinates, row after row; fewer than two points
// give 0.
//
// All n(n−1)/2 pairs are visited. For float32 the terms are computed in single
// precision, with a relative error of the sum below 1e-6 for d=2, and of about
// d·1e-7 at worst for large d; for float64 in double precision, and on the CPU
// whatever the device is. A device's result agrees with the CPU's to 1e-6.
// Errors wrap ErrInput or ErrNotFinite, or are the context's or the device's.
func PartitionFunction[T Float](ctx context.Context, embedding []T, d int, on *Device) (float64, error) {
	n, err := points(embedding, d, "embedding")
	if err != nil || n < 2 {
		return 0, err
	}
	var sum []float64
	switch e, single := any(embedding).([]float32); {
	case !single:
		sum, err = overDistances(ctx, embedding, n, d, 1, func(d2 float64, sums []float64) { sums[0] += 1 / (1 + d2) })
	case !on.OnHost():
		sum, err = devicePairs(ctx, on, e, n, d, nil, simd.Bound[float32]{})
	case d == 2:
		sum, err = planarSum(ctx, e)
	default:
		sum, err = overPlanes(ctx, e, n, d, 1, func(d2 []float32, sums []float64) { sums[0] += simd.InverseSum(d2) })
	}
	if err != nil {
		return 0, err
	}
	return 2 * sum[0], nil
}

// overDistances calls add with the squared distance of each unordered pair, in double precision,
// and returns what it adds to sums.
func overDistances[T Float](ctx context.Context, e []T, n, d, sums int, add func(d2 float64, sums []float64)) ([]float64, error) {
	return overTiles(ctx, n, sums, func(i, lo, hi int, _ []float32, sums []float64) {
		a := e[i*d : (i+1)*d]
		for j := lo; j < hi; j++ {
			add(squaredDistance(a, e[j*d:(j+1)*d]), sums)
		}
	})
}

// planarSum adds 1/(1+‖e_i−e_j‖²) over the unordered pairs of planar float32 points.
func planarSum(ctx context.Context, e []float32) ([]float64, error) {
	n := len(e) / 2
	planes := planesOf(e, n, 2)
	return overTiles(ctx, n, 1, func(i, lo, hi int, _ []float32, sums []float64) {
		sums[0] += cauchySum(e[2*i], e[2*i+1], planes[lo:hi], planes[n+lo:n+hi])
	})
}

// overPlanes calls add with the squared distances of the pairs i < j < n of
// float32 points, cauchyBlock at most at a time, and returns what it adds to
// sums.
func overPlanes(ctx context.Context, e []float32, n, d, sums int, add func(d2 []float32, sums []float64)) ([]float64, error) {
	planes := planesOf(e, n, d)
	return overTiles(ctx, n, sums, func(i, lo, hi int, d2 []float32, sums []float64) {
		clear(d2)
		for k, x := range e[i*d : (i+1)*d] {
			simd.AddSquares(d2, planes[k*n+lo:k*n+hi], x)
		}
		for len(d2) > 0 {
			m := min(cauchyBlock, len(d2))
			add(d2[:m], sums)
			d2 = d2[m:]
		}
	})
}

// planesOf returns points coordinate after coordinate.
func planesOf(e []float32, n, d int) []float32 {
	planes := make([]float32, len(e))
	for i := range n {
		for k, v := range e[i*d : (i+1)*d] {
			planes[k*n+i] = v
		}
	}
	return planes
}

// overTiles calls row with ranges that cover the pairs i < j < n once,
// lo ≤ j < hi, and returns what it adds to sums, so many numbers. work has
// hi−lo elements, of any content.
func overTiles(ctx context.Context, n, sums int, row func(i, lo, hi int, work []float32, sums []float64)) ([]float64, error) {
	partial := make([][]float64, parallel.Pieces(n, tileRows))
	err := inPieces(ctx, n, tileRows, func(piece, first, last int) {
		own := make([]float64, sums)
		work := make([]float32, tileColumns)
		for lo := first; lo < n; lo += tileColumns {
			hi := min(n, lo+tileColumns)
			for i := first; i < last && i+1 < hi; i++ {
				from := max(lo, i+1)
				row(i, from, hi, work[:hi-from], own)
			}
		}
		partial[piece] = own
	})
	total := make([]float64, sums)
	for _, p := range partial {
		for k, v := range p {
			total[k] += v
		}
	}
	return total, err
}

// squaredDistance is computed in double precision, so that exact ties and
// small differences survive.
func squaredDistance[A, B Float](a []A, b []B) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	k := 0
	for ; k+4 <= len(a); k += 4 {
		d0 := float64(a[k]) - float64(b[k])
		d1 := float64(a[k+1]) - float64(b[k+1])
		d2 := float64(a[k+2]) - float64(b[k+2])
		d3 := float64(a[k+3]) - float64(b[k+3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	for ; k < len(a); k++ {
		d := float64(a[k]) - float64(b[k])
		s0 += float64(d * d)
	}
	return s0 + s1 + (s2 + s3)
}

// KL returns the Kullback–Leibler divergence in nats, at least 0,
//
//	KL(p ‖ q/Z) = (1/E) Σ_(ij edge) −log q_ij + log Z − log E
//
// where p is uniform on the graph's E directed edges, q_ij = 1/(1+‖e_i−e_j‖²), and
// Z is the embedding's partition function: the loss of t-SNE (Damrich et al.,
// 2023, Eq. 5) on the unweighted graph.
//
// Edge number e goes from point heads[e] to point tails[e], counted from 0;
// both directions of an edge are in the list. The embedding holds points of d
// coordinates, row after row, and partition is PartitionFunction of it.
// Errors wrap ErrInput or ErrNotFinite, and ErrUndefined if there are no
// edges, or are the context's.
//
// On a device, nil for the CPU, the result agrees to 1e-6 with the CPU's, and errors may be the
// device's. Embeddings of float64 stay on the CPU.
func KL[T Float](ctx context.Context, heads, tails []int32, embedding []T, d int, partition float64, on *Device) (float64, error) {
	n, err := points(embedding, d, "embedding")
	if err != nil {
		return 0, err
	}
	if err := checkEdges(heads, tails, n, "divergence from"); err != nil {
		return 0, err
	}
	if !(partition > 0) || math.IsInf(partition, 0) {
		return 0, fmt.Errorf("%w: partition function %v; it is a positive number", ErrInput, partition)
	}
	attraction, err := attractionOf(ctx, on, heads, tails, embedding, d, UMAP(), math.Inf(1)) // −log q
	if err != nil {
		return 0, err
	}
	edges := float64(len(heads))
	return attraction/edges + math.Log(partition) - math.Log(edges), nil
}

// checkEdges checks a list of edges of n points. What ends in a preposition.
func checkEdges(heads, tails []int32, n int, what string) error {
	if len(heads) != len(tails) {
		return fmt.Errorf("%w: %d heads and %d tails of edges", ErrInput, len(heads), len(tails))
	}
	if len(heads) == 0 {
		return fmt.Errorf("%w: the %s a graph without edges", ErrUndefined, what)
	}
	for e := range heads {
		if i, j := heads[e], tails[e]; i < 0 || int(i) >= n || j < 0 || int(j) >= n {
			return fmt.Errorf("%w: edge %d (counted from 0) joins points %d and %d, but the embedding has points 0 to %d", ErrInput, e, i, j, n-1)
		}
	}
	return nil
}

// edgeGrain is how many edges make a piece of work.
const edgeGrain = 1 << 13

// attractionOf sums −log p, at most limit, over the edges of a graph, for a discriminator
// p, on a device where it can.
func attractionOf[T Float](ctx context.Context, on *Device, heads, tails []int32, e []T, d int, p Discriminator, limit float64) (float64, error) {
	if single, ok := any(e).([]float32); ok && !on.OnHost() && !p.extreme() {
		sum, err := deviceOverEdges(ctx, on, heads, tails, single, d, p.slope, p.offset, limit)
		if err != nil || !math.IsInf(sum, 0) && !math.IsNaN(sum) {
			return sum, err
		}
		// Squares of such distances are too large for single precision.
	}
	return overEdges(ctx, heads, tails, e, d, func(d2 float64) float64 { return min(limit, math.Log1p(p.slope*d2+p.offset)) })
}

// overEdges adds up a function of the squared distances of the edges.
func overEdges[T Float](ctx context.Context, heads, tails []int32, e []T, d int, f func(d2 float64) float64) (float64, error) {
	partial := make([]float64, parallel.Pieces(len(heads), edgeGrain))
	err := inPieces(ctx, len(heads), edgeGrain, func(piece, lo, hi int) {
		var sum float64
		for k := lo; k < hi; k++ {
			i, j := int(heads[k])*d, int(tails[k])*d
			sum += f(squaredDistance(e[i:i+d], e[j:j+d]))
		}
		partial[piece] = sum
	})
	var sum float64
	for _, p := range partial {
		sum += p
	}
	return sum, err
}
