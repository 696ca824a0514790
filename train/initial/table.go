// Package initial computes initial positions for training a non-parametric embedding:
// principal components, also averaged over neighbours, embeddings of groups of points, an
// earlier embedding, or random numbers. Results have the same bits regardless of
// GOMAXPROCS.
package initial

import (
	"context"
	"errors"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/simd"
)

// Components returns the first principal components of points, at most dim. Points that
// are principal components already change only by rounding. Errors come from pca.Fit, and for
// sparse points from pca.FitSparse.
func Components(ctx context.Context, points *data.Matrix, dim int) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	if points.CSR == nil {
		return kind.Got(pca.Fit(ctx, points, min(dim, points.D, points.N))).Transform(ctx, points)
	}
	points = points.Used()
	return kind.Got(pca.FitSparse(ctx, points, min(dim, points.D, points.N), 0)).Transform(ctx, points)
}

// Table returns positions [n, d]: the first d columns of coordinates, such as principal
// components. All columns are scaled by one factor that gives the first column the
// standard deviation std. Missing or constant columns are drawn from a normal distribution
// with standard deviation std/10 000, so points can leave the subspace of the others. If
// the first column is constant, all columns are drawn, with standard deviation std. Errors
// wrap ErrInput. They occur if coordinates is not a dense matrix or not finite, or for the
// reasons given at Random.
func Table[T float32 | float64](coordinates *data.Matrix, d int, std float64, seed uint64) (_ []T, err error) {
	defer kind.Catch(&err)
	err = data.CheckDense(coordinates)
	kind.Need(err == nil, ErrInput, "initial: coordinates: %w", err)
	n, width := coordinates.N, coordinates.D
	checkTable[T](n, d, std)
	first := deviation(coordinates.X, width, 0)
	if first == 0 {
		return Random[T](n, d, std, seed)
	}
	table := make([]T, n*d)
	factor := std / first
	for j := range d {
		var spread float64
		if j < width {
			if spread = deviation(coordinates.X, width, j); !simd.IsFinite(spread) {
				return nil, kind.Errorf(ErrInput, "initial: coordinates: column %d (counted from 0): got NaN or infinity, want finite numbers", j)
			}
		}
		if spread > 0 {
			for i := range n {
				table[i*d+j] = T(factor * float64(coordinates.X[i*width+j]))
			}
			continue
		}
		s := rng.New(seed, rng.Init, uint64(j))
		for i := range n {
			table[i*d+j] = T(1e-4 * std * s.Normal())
		}
	}
	return table, nil
}

// Random returns positions [n, d]: normally distributed coordinates with mean 0 and
// standard deviation std. The error wraps ErrInput if n or d is below 1, if n·d exceeds
// the range of int32, or if the square of std is not positive and finite in type T.
func Random[T float32 | float64](n, d int, std float64, seed uint64) (_ []T, err error) {
	defer kind.Catch(&err)
	checkTable[T](n, d, std)
	table := make([]T, n*d)
	s := rng.New(seed, rng.Init)
	for i := range table {
		table[i] = T(std * s.Normal())
	}
	return table, nil
}

// checkTable fails as kind.Need does for invalid arguments of Random.
func checkTable[T float32 | float64](n, d int, std float64) {
	kind.Need(n >= 1 && d >= 1, ErrInput, "initial: table: got %d points of width %d, want at least 1 of each", n, d)
	kind.Need(d <= math.MaxInt32/n, ErrInput, "initial: table: got %d points of width %d, want at most %d numbers", n, d, math.MaxInt32)
	square := float64(T(std * std))
	kind.Need(square > 0 && !math.IsInf(square, 0), ErrInput,
		"initial: standard deviation: got %g, want a positive number whose square is finite", std)
}

// deviation returns the standard deviation of column j.
func deviation(x []float32, width, j int) float64 { return math.Sqrt(simd.Variance(x, width, j)) }

// ErrInput is wrapped by errors about invalid arguments.
var ErrInput = errors.New("initial: bad input")

// FromEarlier returns positions for the points of a graph. Points in an earlier embedding
// [m, d] keep their positions. rows[i] is the row of point i in the earlier embedding, or
// −1 for a new point. If rows is nil, the rows of the earlier embedding are the first
// points. A new point starts at the mean of its graph neighbours that have positions. If
// none has, it waits until its neighbours get positions. Points that no path connects to
// earlier points start at random around the mean of all. New points are moved at random
// by a ten-thousandth of the earlier spread, so no two coincide. Errors wrap ErrInput.
func FromEarlier(g *neighbors.Graph, earlier *data.Matrix, rows []int, seed uint64) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	err = data.CheckDense(earlier)
	kind.Need(err == nil, ErrInput, "initial: earlier embedding: %w", err)
	n, d := g.N, earlier.D
	if rows == nil {
		kind.Need(earlier.N <= n, ErrInput,
			"initial: earlier embedding: got %d points, want at most %d unless their rows are given", earlier.N, n)
		rows = slices.Repeat([]int{-1}, n)
		for i := range earlier.N {
			rows[i] = i
		}
	}
	kind.Need(len(rows) == n, ErrInput, "initial: rows: got %d, want %d, one for each point", len(rows), n)
	from := earlier.Relative(nil)
	start := data.NewMatrix(n, d)
	placed := make([]bool, n)
	var front []int32
	for i, row := range rows {
		switch {
		case row >= earlier.N || row < -1:
			return nil, kind.Errorf(ErrInput, "initial: row of point %d: got %d, want -1 to %d", i, row, earlier.N-1)
		case row >= 0:
			copy(start.Row(i), from.Row(row))
			placed[i] = true
			front = append(front, int32(i))
		}
	}
	kind.Need(len(front) != 0, ErrInput, "initial: rows: got no point of the earlier embedding, want one or more")
	middle, square := start.Moments(front)
	spread := math.Sqrt(square / float64(len(front)*d))
	if spread == 0 {
		spread = 1 // they are identical
	}
	noise := rng.New(seed, rng.Init)
	both := g.Symmetrized()
	for len(front) > 0 {
		front = placeNext(both, start, placed, front)
		for _, i := range front {
			for j := range d {
				start.Row(int(i))[j] += float32(1e-4 * spread * noise.Normal())
			}
		}
	}
	for i := range n {
		if placed[i] {
			continue
		}
		for j := range d {
			start.Row(i)[j] = float32(middle[j] + float64(spread*noise.Normal()))
		}
	}
	return start, nil
}

// placeNext gives positions to the neighbours of the last points that have none yet: each
// gets the mean of its neighbours that had one before. It returns them in ascending order.
func placeNext(g *neighbors.Graph, start *data.Matrix, placed []bool, last []int32) []int32 {
	var next []int32
	for _, i := range last {
		for _, j := range g.Tails(int(i)) {
			if !placed[j] {
				next = append(next, j)
			}
		}
	}
	slices.Sort(next)
	next = slices.Compact(next)
	sum := make([]float64, start.D)
	for _, i := range next {
		clear(sum)
		count := 0.
		for _, j := range g.Tails(int(i)) {
			if placed[j] {
				count++
				for k, v := range start.Row(int(j)) {
					sum[k] += float64(v)
				}
			}
		}
		for k, v := range sum {
			start.Row(int(i))[k] = float32(v / count)
		}
	}
	for _, i := range next {
		placed[i] = true
	}
	return next
}
