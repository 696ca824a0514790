package initial

import (
	"context"
	"math"

	"cne/data"
	"cne/data/pca"
	"cne/internal/errkind"
	"cne/internal/finite"
	"cne/internal/rng"
)

// Components returns the first principal components of points, at most dim. Points that
// are principal components already come out as they are. Errors are those of pca.Fit.
func Components(ctx context.Context, points *data.Matrix, dim int) (*data.Matrix, error) {
	components, err := pca.Fit(ctx, points, min(dim, points.D, points.N), nil)
	if err != nil {
		return nil, err
	}
	return components.Transform(ctx, points, nil)
}

// Table returns a table [n, d] that starts at the first d columns of coordinates, such as
// principal components, all scaled by the factor that gives the first column the standard
// deviation std. Columns that the coordinates do not have, or that are constant, are drawn
// from a normal distribution with standard deviation std/10 000, so that points can leave
// the subspace in which they start. If the first column is constant, all are drawn, with
// standard deviation std. Coordinates that are no dense matrix, or not finite, and what
// Random refuses give ErrInput.
func Table[T float32 | float64](coordinates *data.Matrix, d int, std float64, seed uint64) ([]T, error) {
	if err := data.CheckDense(coordinates); err != nil {
		return nil, errkind.Errorf(ErrInput, "initial: coordinates: %w", err)
	}
	n, width := coordinates.N, coordinates.D
	if err := checkTable[T](n, d, std); err != nil {
		return nil, err
	}
	first := deviation(coordinates.X, width, 0)
	if first == 0 {
		return Random[T](n, d, std, seed)
	}
	table := make([]T, n*d)
	factor := std / first
	for j := range d {
		var spread float64
		if j < width {
			if spread = deviation(coordinates.X, width, j); !finite.Is(spread) {
				return nil, errkind.Errorf(ErrInput, "initial: coordinates: column %d (counted from 0) is not finite", j)
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

// Random returns a table [n, d] of normally distributed coordinates with
// mean 0 and standard deviation std. n or d below 1, a
// table of more elements than an int32 can number, and an std whose square is no positive
// and finite number of type T give ErrInput.
func Random[T float32 | float64](n, d int, std float64, seed uint64) ([]T, error) {
	if err := checkTable[T](n, d, std); err != nil {
		return nil, err
	}
	table := make([]T, n*d)
	s := rng.New(seed, rng.Init)
	for i := range table {
		table[i] = T(std * s.Normal())
	}
	return table, nil
}

func checkTable[T float32 | float64](n, d int, std float64) error {
	switch {
	case n < 1 || d < 1:
		return errkind.Errorf(ErrInput, "initial: table: got %d points of width %d, want at least 1 of each", n, d)
	case d > math.MaxInt32/n:
		return errkind.Errorf(ErrInput, "initial: table: got %d points of width %d, want at most %d numbers", n, d, math.MaxInt32)
	case !(T(std*std) > 0) || math.IsInf(float64(T(std*std)), 0):
		return errkind.Errorf(ErrInput, "initial: standard deviation: got %g, want a number around 1", std)
	}
	return nil
}

// deviation returns the standard deviation of column j.
func deviation(x []float32, width, j int) float64 {
	n := len(x) / width
	var sum, sum2 float64
	for i := range n {
		sum += float64(x[i*width+j])
	}
	mean := sum / float64(n)
	for i := range n {
		d := float64(x[i*width+j]) - mean
		sum2 += d * d
	}
	return math.Sqrt(sum2 / float64(n))
}
