package blas

import "fmt"

// StripWidth is the number of columns of a strip.
const StripWidth = 16

// SumStrip adds to y the rows of a strip, a matrix of StripWidth columns, that the
// columns of a sparse row name, each times its value. Columns that the strip has no row
// for panic.
func SumStrip(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	checkStrip(columns, values, strip)
	if vectors() {
		sumStripVector(columns, values, strip, y)
		return
	}
	for k, j := range columns {
		v, row := float64(values[k]), (*[StripWidth]float64)(strip[int(j)*StripWidth:])
		for t, x := range row {
			y[t] += v * x
		}
	}
}

// SpreadStrip adds y, times each value of a sparse row, to the row of a strip that its
// column names. Columns that the strip has no row for panic.
func SpreadStrip(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	checkStrip(columns, values, strip)
	if vectors() {
		spreadStripVector(columns, values, strip, y)
		return
	}
	for k, j := range columns {
		v, row := float64(values[k]), (*[StripWidth]float64)(strip[int(j)*StripWidth:])
		for t, x := range y {
			row[t] += v * x
		}
	}
}

// checkStrip checks that a strip has the columns, which ascend.
func checkStrip(columns []int32, values []float32, strip []float64) {
	n := len(columns)
	if n != len(values) || n > 0 && (columns[0] < 0 || int(columns[n-1]) >= len(strip)/StripWidth) {
		panic(fmt.Sprintf("blas: %d columns with %d values do not fit a strip of %d rows", n, len(values), len(strip)/StripWidth))
	}
}
