package quality

import (
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

// PartitionFunction returns Σ 1/(1+‖e_i−e_j‖²) over all ordered pairs i≠j of
// the embedding's points, the constant Z that t-SNE divides its similarities
// by (Damrich et al., 2023, eq. 3). The embedding holds points of d
// coordinates, row after row; fewer than two points give 0.
//
// All n(n−1)/2 pairs are visited. For float32 the terms are computed in single
// precision, with a relative error of the sum below 1e-6 for d=2, and of about
// d·1e-7 at worst for large d; for float64 in double precision. Errors wrap
// ErrInput or ErrNotFinite.
func PartitionFunction[T Float](embedding []T, d int) (float64, error) {
	n, err := points(embedding, d, "embedding")
	if err != nil {
		return 0, err
	}
	if e, ok := any(embedding).([]float32); ok {
		if d == 2 {
			return 2 * pairSum2(e), nil
		}
		return 2 * pairSumPlanes(e, n, d), nil
	}
	return 2 * pairSum(embedding, n, d), nil
}

// pairSum adds 1/(1+‖e_i−e_j‖²) over the unordered pairs.
func pairSum[T Float](e []T, n, d int) float64 {
	return overTiles(n, 1, func(i, lo, hi int, _ []float32, sums []float64) {
		a := e[i*d : (i+1)*d]
		var sum float64
		for j := lo; j < hi; j++ {
			sum += 1 / (1 + squaredDistance(a, e[j*d:(j+1)*d]))
		}
		sums[0] += sum
	})[0]
}

// pairSum2 is pairSum for planar float32 points.
func pairSum2(e []float32) float64 {
	n := len(e) / 2
	xs, ys := make([]float32, n), make([]float32, n)
	for i := range xs {
		xs[i], ys[i] = e[2*i], e[2*i+1]
	}
	return overTiles(n, 1, func(i, lo, hi int, _ []float32, sums []float64) {
		sums[0] += cauchySum(xs[i], ys[i], xs[lo:hi], ys[lo:hi])
	})[0]
}

// pairSumPlanes is pairSum for float32 points, coordinate by coordinate.
func pairSumPlanes(e []float32, n, d int) float64 {
	return overPlanes(e, n, d, 1, func(d2 []float32, sums []float64) { sums[0] += simd.InverseSum(d2) })[0]
}

// overPlanes calls add with the squared distances of the pairs i < j < n of
// float32 points, cauchyBlock at most at a time, and returns what it adds to
// sums.
func overPlanes(e []float32, n, d, sums int, add func(d2 []float32, sums []float64)) []float64 {
	planes := planesOf(e, n, d)
	return overTiles(n, sums, func(i, lo, hi int, d2 []float32, sums []float64) {
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
func overTiles(n, sums int, row func(i, lo, hi int, work []float32, sums []float64)) []float64 {
	partial := make([][]float64, parallel.Pieces(n, tileRows))
	parallel.For(n, tileRows, func(piece, first, last int) {
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
	return total
}

// squaredDistance is computed in double precision, so that exact ties and
// small differences survive.
func squaredDistance[T Float](a, b []T) float64 {
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

// KL returns the Kullback–Leibler divergence KL(p ‖ q/Z) in nats, where p is
// uniform on the graph's directed edges, q_ij = 1/(1+‖e_i−e_j‖²), and Z is the
// embedding's partition function: the loss of t-SNE (Damrich et al., 2023,
// eq. 2) on the unweighted graph.
//
// Edge number e goes from point heads[e] to point tails[e], counted from 0;
// both directions of an edge are in the list. The embedding holds points of d
// coordinates, row after row, and partition is PartitionFunction of it.
// Errors wrap ErrInput or ErrNotFinite, and ErrUndefined if there are no
// edges.
func KL[T Float](heads, tails []int32, embedding []T, d int, partition float64) (float64, error) {
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
	attraction := overEdges(heads, tails, embedding, d, func(d2 float64) float64 { return math.Log1p(d2) }) // −log q
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

// overEdges adds up a function of the squared distances of the edges.
func overEdges[T Float](heads, tails []int32, e []T, d int, f func(d2 float64) float64) float64 {
	partial := make([]float64, parallel.Pieces(len(heads), edgeGrain))
	parallel.For(len(heads), edgeGrain, func(piece, lo, hi int) {
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
	return sum
}
