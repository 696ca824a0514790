package blas

import (
	"math"
	"testing"
)

// Every instruction set adds up the same sums, and touches only the named rows.
func TestStrips(t *testing.T) {
	const rows = 40
	strip := normals[float64](rows*StripWidth, 1)
	for _, columns := range [][]int32{nil, {0}, {39}, {0, 3, 4, 17, 38, 39}} {
		values := normals[float32](len(columns), 2)
		begin := [StripWidth]float64(normals[float64](StripWidth, 3))
		sum, spread := begin, append([]float64{}, strip...)
		for k, j := range columns {
			for i := range StripWidth {
				sum[i] += float64(values[k]) * strip[int(j)*StripWidth+i]
				spread[int(j)*StripWidth+i] += float64(values[k]) * begin[i]
			}
		}
		for _, form := range sets() {
			restore := use(form)
			y, to := begin, append([]float64{}, strip...)
			SumStrip(columns, values, strip, &y)
			ScatterStrip(columns, values, to, &begin)
			for i, v := range sum {
				if math.Abs(y[i]-v) > 1e-12 {
					t.Fatalf("%v: %v: sum %d is %v, want %v", form, columns, i, y[i], v)
				}
			}
			for i, v := range spread {
				if math.Abs(to[i]-v) > 1e-12 {
					t.Fatalf("%v: %v: element %d of the strip is %v, want %v", form, columns, i, to[i], v)
				}
			}
			restore()
		}
	}
}
