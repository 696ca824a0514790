package simd_test

import (
	"math"
	"testing"

	"cne/internal/simd"
)

func TestFinite(t *testing.T) {
	checkFinite[float32](t)
	checkFinite[float64](t)
}

func checkFinite[T simd.Float](t *testing.T) {
	t.Helper()
	bad := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1))}
	good := []T{0, T(math.Copysign(0, -1)), 1, -math.MaxFloat32, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for _, v := range good {
		if !simd.IsFinite(v) {
			t.Errorf("%v counts as not finite", v)
		}
	}
	for _, n := range []int{0, 1, 3, 4, 7, 1 << 16, 1<<16 + 1, 1<<18 + 5} {
		x := make([]T, n)
		for i := range x {
			x[i] = good[i%len(good)]
		}
		if at := simd.FirstNotFinite(x); at != -1 || !simd.AllFinite(x) {
			t.Errorf("of %d finite values, number %d is not", n, at)
		}
		for k, at := range []int{n - 1, n / 2, 0} {
			if n == 0 {
				break
			}
			x[at] = bad[k]
			if simd.IsFinite(bad[k]) || simd.AllFinite(x) || simd.FirstNotFinite(x) != at {
				t.Errorf("%v at %d of %d values is found at %d", bad[k], at, n, simd.FirstNotFinite(x))
			}
		}
	}
}
