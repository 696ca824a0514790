package model

import (
	"math"

	"cne/internal/errkind"
	"cne/internal/finite"
	"cne/internal/rng"
	"cne/model/op"
)

// InitFrom returns a table [n, d] that starts at the first d columns of
// coordinates [n, width], such as principal components, all scaled by the
// factor that gives the first column the standard deviation std. Columns that
// the coordinates do not have, or that are constant, are drawn from a normal
// distribution with standard deviation std/10 000, so that points can leave
// the subspace in which they start. If the first column is constant, all are
// drawn, with standard deviation std. It fails if the coordinates are no
// matrix of that width, or not finite, and where InitNormal does.
func InitFrom[T op.Float](coordinates []float32, width, d int, std float64, seed uint64) ([]T, error) {
	if width < 1 || len(coordinates)%width != 0 {
		return nil, errkind.Errorf(ErrInput, "model: %d coordinates are no points with %d dimensions", len(coordinates), width)
	}
	n := len(coordinates) / width
	if err := checkInit[T](n, d, std); err != nil {
		return nil, err
	}
	first := deviation(coordinates, width, 0)
	if first == 0 {
		return InitNormal[T](n, d, std, seed)
	}
	table := make([]T, n*d)
	factor := std / first
	for j := range d {
		var spread float64
		if j < width {
			if spread = deviation(coordinates, width, j); !finite.Is(spread) {
				return nil, errkind.Errorf(ErrInput, "model: column %d of the starting coordinates (counted from 0) is not finite", j)
			}
		}
		if spread > 0 {
			for i := range n {
				table[i*d+j] = T(factor * float64(coordinates[i*width+j]))
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

// InitNormal returns a table [n, d] of normally distributed coordinates with
// mean 0 and standard deviation std. It fails if n or d is not positive, if
// the table has more elements than an int32 can number, or if std² is not a positive
// and finite number of type T.
func InitNormal[T op.Float](n, d int, std float64, seed uint64) ([]T, error) {
	if err := checkInit[T](n, d, std); err != nil {
		return nil, err
	}
	table := make([]T, n*d)
	s := rng.New(seed, rng.Init)
	for i := range table {
		table[i] = T(std * s.Normal())
	}
	return table, nil
}

func checkInit[T op.Float](n, d int, std float64) error {
	switch {
	case n < 1 || d < 1:
		return errkind.Errorf(ErrInput, "model: there is no table of %d points with %d dimensions", n, d)
	case d > math.MaxInt32/n:
		return errkind.Errorf(ErrInput, "model: a table of %d points with %d dimensions is too large; take fewer dimensions", n, d)
	case !(T(std*std) > 0) || math.IsInf(float64(T(std*std)), 0):
		return errkind.Errorf(ErrInput, "model: the starting coordinates cannot have a standard deviation of %g; take a number around 1", std)
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
