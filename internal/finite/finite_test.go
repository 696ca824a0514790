package finite_test

import (
	"math"
	"testing"

	"cne/internal/finite"
)

func TestFirst(t *testing.T) {
	check[float32](t)
	check[float64](t)
}

func check[T finite.Float](t *testing.T) {
	t.Helper()
	bad := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1))}
	good := []T{0, T(math.Copysign(0, -1)), 1, -math.MaxFloat32, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for _, v := range good {
		if !finite.Is(v) {
			t.Errorf("%v counts as not finite", v)
		}
	}
	for _, n := range []int{0, 1, 3, 4, 7, 1 << 16, 1<<16 + 1, 1<<18 + 5} {
		x := make([]T, n)
		for i := range x {
			x[i] = good[i%len(good)]
		}
		if at := finite.First(x); at != -1 || !finite.All(x) {
			t.Errorf("of %d finite values, number %d is not", n, at)
		}
		for k, at := range []int{n - 1, n / 2, 0} {
			if n == 0 {
				break
			}
			x[at] = bad[k]
			if finite.Is(bad[k]) || finite.All(x) || finite.First(x) != at {
				t.Errorf("%v at %d of %d values is found at %d", bad[k], at, n, finite.First(x))
			}
		}
	}
}
