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

// AddDistances gives the bits of Go's arithmetic.
func TestAddDistances(t *testing.T) {
	forms(t, func(t *testing.T) {
		s := rng.New(1, rng.Sample)
		for _, n := range lengths {
			for _, by := range [][2]float32{{1, math.MaxFloat32}, {0.25, math.MaxFloat32}, {math.MaxFloat32, 1}} {
				dst, xs := make([]float32, n), make([]float32, n)
				for i := range xs {
					dst[i], xs[i] = float32(s.Normal()), []float32{float32(s.Normal()), 0.5, 0, 3e38}[s.IntN(4)]
				}
				got := append([]float32(nil), dst...)
				AddDistances(got, xs, 0.5, by[0], by[1])
				for i, x := range xs {
					want := dst[i] + float32(math.Min(float64(float32(math.Abs(float64(0.5-x)))*by[0]), float64(by[1])))
					if math.Float32bits(got[i]) != math.Float32bits(want) {
						t.Errorf("%d of %d: %v to 0.5, times %v: %v, want %v", i, n, x, by, got[i], want)
					}
				}
			}
		}
	})
}
