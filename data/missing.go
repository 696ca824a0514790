package data

import (
	"slices"

	"cne/internal/simd"
)

// DropMissing returns the points without a value that is NaN or infinite, with the rows that
// they are: ds itself if that is all of them, or if they are sparse or Stored. No such point
// gives ErrEmpty.
func (ds *Dataset) DropMissing() (*Dataset, error) {
	if ds.Points == nil || ds.Points.CSR != nil {
		return ds, nil
	}
	rows := slices.DeleteFunc(upTo[int](ds.Points.N), func(i int) bool { return !simd.AllFinite(ds.Points.Row(i)) })
	switch len(rows) {
	case ds.Points.N:
		return ds, nil
	case 0:
		return nil, errorf(ErrEmpty, "points: got none without a missing value, want at least one")
	}
	return ds.take(rows), nil
}

// FillMissing replaces the values of m, dense points, that are NaN or infinite by fill, which
// has a value for each column, and returns how many there were.
func (m *Matrix) FillMissing(fill []float32) (filled int) {
	for i, v := range m.X {
		if !simd.IsFinite(v) {
			m.X[i] = fill[i%m.D]
			filled++
		}
	}
	return filled
}

// FiniteMeans returns the means of the columns of dense points over their finite values; NaN
// for a column without any.
func (m *Matrix) FiniteMeans() []float32 {
	sum, count, mean := make([]float64, m.D), make([]float64, m.D), make([]float32, m.D)
	for i, v := range m.X {
		if simd.IsFinite(v) {
			sum[i%m.D] += float64(v)
			count[i%m.D]++
		}
	}
	for j := range mean {
		mean[j] = float32(sum[j] / count[j])
	}
	return mean
}
