package blas

import (
	"math"
	"math/rand/v2"
	"testing"

	"cne/internal/isa"
)

// Every instruction set adds up the same sums, and touches the named rows alone.
func TestStrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const rows = 40
	normals := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	strip := normals(rows * StripWidth)
	for _, columns := range [][]int32{nil, {0}, {39}, {0, 3, 4, 17, 38, 39}} {
		values := make([]float32, len(columns))
		for i := range values {
			values[i] = float32(r.NormFloat64())
		}
		begin := [StripWidth]float64(normals(StripWidth))
		sum, spread := begin, append([]float64{}, strip...)
		for k, j := range columns {
			for i := range StripWidth {
				sum[i] += float64(values[k]) * strip[int(j)*StripWidth+i]
				spread[int(j)*StripWidth+i] += float64(values[k]) * begin[i]
			}
		}
		for _, form := range isa.Available() {
			restore := use(form)
			y, to := begin, append([]float64{}, strip...)
			SumStrip(columns, values, strip, &y)
			SpreadStrip(columns, values, to, &begin)
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
	for _, columns := range [][]int32{{-1}, {rows}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("columns %v of a strip of %d rows do not panic", columns, rows)
				}
			}()
			SumStrip(columns, []float32{1}, strip, new([StripWidth]float64))
		}()
	}
}
