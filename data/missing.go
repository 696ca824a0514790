package data

import (
	"slices"

	"cne/internal/simd"
)

// Missing returns the first n rows with values that are NaN or infinite. Values that sparse
// points leave out are 0.
func (m *Matrix) Missing(n int) (rows []int) {
	for i := range n {
		var values []float32
		if m.CSR != nil {
			_, values = m.CSR.Row(i)
		} else {
			values = m.Row(i)
		}
		if !simd.AllFinite(values) {
			rows = append(rows, i)
		}
	}
	return rows
}

// ZeroRows returns the first n rows whose values are all 0, such as documents without words.
func (m *Matrix) ZeroRows(n int) (rows []int) {
	for i := range n {
		zero := true
		if m.CSR != nil {
			_, values := m.CSR.Row(i)
			zero = !slices.ContainsFunc(values, func(v float32) bool { return v != 0 })
		} else {
			for j, v := range m.Row(i) {
				zero = zero && (m.Offset == nil && v == 0 || m.Offset != nil && float64(v) == -m.Offset[j])
			}
		}
		if zero {
			rows = append(rows, i)
		}
	}
	return rows
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
