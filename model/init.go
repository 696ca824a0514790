package model

import (
	"math"

	"cne/internal/rng"
	"cne/model/op"
)

// InitFrom returns a table [n, d] that starts at the first d columns of
// coordinates [n, width], such as principal components, all scaled by the
// factor that gives the first column the standard deviation std. Columns that
// the coordinates do not have, or that are constant, are drawn from a normal
// distribution with standard deviation std/10 000, so that points can leave
// the subspace in which they start. If the first column is constant, all are
// drawn, with standard deviation std.
func InitFrom[T op.Float](coordinates []float32, width, d int, std float64, seed uint64) []T {
	n := len(coordinates) / width
	table := make([]T, n*d)
	first := deviation(coordinates, width, 0)
	if first == 0 {
		return InitNormal[T](n, d, std, seed)
	}
	factor := std / first
	for j := range d {
		if j < width && deviation(coordinates, width, j) > 0 {
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
	return table
}

// InitNormal returns a table [n, d] of normally distributed coordinates with
// mean 0 and standard deviation std.
func InitNormal[T op.Float](n, d int, std float64, seed uint64) []T {
	table := make([]T, n*d)
	s := rng.New(seed, rng.Init)
	for i := range table {
		table[i] = T(std * s.Normal())
	}
	return table
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
