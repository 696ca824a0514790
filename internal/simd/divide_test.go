package simd

import (
	"math"
	"testing"

	"cne/internal/rng"
)

// Divide gives the bits of Go's division.
func TestDivide(t *testing.T) {
	forms(t, func(t *testing.T) {
		s := rng.New(1, rng.Sample)
		for _, n := range lengths {
			for _, by := range []float32{255, 0.3, 1e-38, -7, 3e38} {
				x := make([]float32, n)
				for i := range x {
					x[i] = []float32{float32(100 * s.Normal()), 0, float32(s.IntN(256)), 1e-40, 3e38, float32(math.NaN()), float32(math.Inf(1))}[s.IntN(7)]
				}
				y := append([]float32(nil), x...)
				Divide(y, by)
				for i, v := range x {
					if math.Float32bits(y[i]) != math.Float32bits(v/by) && v == v {
						t.Errorf("%d of %d: %v by %v is %v, want %v", i, n, v, by, y[i], v/by)
					}
				}
			}
		}
	})
}
