package data

import (
	"slices"

	"cne/internal/simd"
)

// DropMissing returns the points whose values are all finite, and records their rows. It
// returns ds itself if it drops nothing. Values that sparse points leave out are 0. It
// never drops Stored points: file.Read stores only points whose values are all finite. If
// all points would be dropped, the error wraps ErrEmpty.
func (ds *Dataset) DropMissing() (*Dataset, error) {
	if ds.Points == nil {
		return ds, nil
	}
	rows := slices.DeleteFunc(upTo[int](ds.Points.N), func(i int) bool {
		if c := ds.Points.CSR; c != nil {
			_, values := c.Row(i)
			return !simd.AllFinite(values)
		}
		return !simd.AllFinite(ds.Points.Row(i))
	})
	switch len(rows) {
	case ds.Points.N:
		return ds, nil
	case 0:
		return nil, errorf(ErrEmpty, "points: got none without a missing value, want at least one")
	}
	return ds.take(rows), nil
}

// FillMissing replaces values of m that are NaN or infinite, and returns their number.
// fill has the replacement for each column.
func (m *Matrix) FillMissing(fill []float32) (filled int) {
	x := m.held()
	for i, v := range x {
		if !simd.IsFinite(v) {
			x[i] = fill[m.column(i)]
			filled++
		}
	}
	if m.CSR != nil && filled > 0 {
		m.CSR.Tidy() // some may be 0 now
	}
	return filled
}

// FiniteMeans returns the mean of the finite values of each column, among them the zeros
// that sparse points leave out. It is NaN for a column without finite values.
func (m *Matrix) FiniteMeans() []float32 {
	sum, count, mean := make([]float64, m.D), make([]float64, m.D), make([]float32, m.D)
	for j := range count {
		count[j] = float64(m.N)
	}
	for i, v := range m.held() {
		if j := m.column(i); simd.IsFinite(v) {
			sum[j] += float64(v)
		} else {
			count[j]--
		}
	}
	for j := range mean {
		mean[j] = float32(sum[j] / count[j])
	}
	return mean
}
