package quality

import (
	"math"
	"testing"
)

// With many negatives the expansion gives what draws give.
func TestManyNegatives(t *testing.T) {
	for _, spread := range []float64{0.1, 3, 100} {
		const n = 8
		x := normal[float64](4, n, 2, spread)
		heads, tails := symmetric(nearestNaive(x, 2, 3), 3)
		for _, rho := range []float64{1, 3} {
			const m = manyNegatives * (n - 1)
			got := need(ExpectedInfoNC(t.Context(), heads, tails, x, 2, m, rho, 1e-10, 2, 1, nil))(t)
			// One negative less is drawn.
			want := need(expectedInfoNC(t.Context(), nil, heads, tails, x, 2, m-1, rho, 1e-10, 300, 1, math.MaxInt))(t)
			if got.Error != 0 || want.Error == 0 {
				t.Errorf("errors of %g of the expansion and %g of draws", got.Error, want.Error)
			}
			one := math.Log(float64(m)/(m-1)) / rho
			if difference := math.Abs(got.Mean - one - want.Mean); difference > 4*want.Error+2e-5 {
				t.Errorf("spread %g, ρ = %g: %.8f with one negative more than %.8f ± %.1g", spread, rho, got.Mean, want.Mean, want.Error)
			}
		}
	}
	// Similarities whose fourth powers are no numbers above 0.
	far := []float64{0, 1e30, -1e45, 1e50}
	got, err := ExpectedInfoNC(t.Context(), []int32{0, 1}, []int32{1, 0}, far, 1, 1000, 1, 0, 2, 1, nil)
	if err != nil || math.IsNaN(got.Mean) || math.IsInf(got.Mean, 0) {
		t.Errorf("%v, %v", got, err)
	}
}

// Work beyond the bound is replaced by a larger standard error, which says how far the
// estimate is off.
func TestBoundedWork(t *testing.T) {
	const n, repetitions = 300, 100
	x := normal[float32](2, n, 2, 5)
	heads, tails := symmetric(nearestNaive(x, 2, 5), 5)
	for name, tc := range map[string]struct{ m, work int }{
		"fewer draws":           {7, 2 * 7 * len(heads)},
		"drawn edges":           {7, 2 * 7 * 100},
		"the fewest edges":      {50, 1},
		"edges, many negatives": {manyNegatives * n, 100 * n},
	} {
		full := need(expectedInfoNC(t.Context(), nil, heads, tails, x, 2, tc.m, 1, 1e-10, 100, 1, math.MaxInt))(t)
		var sum, squares, claimed float64
		for r := range repetitions {
			e := need(expectedInfoNC(t.Context(), nil, heads, tails, x, 2, tc.m, 1, 1e-10, 100, uint64(r), tc.work))(t)
			sum += e.Mean - full.Mean
			squares += (e.Mean - full.Mean) * (e.Mean - full.Mean)
			claimed += e.Error / repetitions
		}
		spread := math.Sqrt(squares / repetitions)
		if !(claimed > full.Error) || !(math.Abs(claimed/spread-1) < 0.3) {
			t.Errorf("%s: the error is said to be %g, and is %g; without a bound it is %g", name, claimed, spread, full.Error)
		}
		if mean := sum / repetitions; math.Abs(mean) > 4*spread/math.Sqrt(repetitions)+3*full.Error {
			t.Errorf("%s: off by %g on average", name, mean)
		}
	}
	sameBits(t, "drawn edges", func() (float64, error) {
		e, err := expectedInfoNC(t.Context(), nil, heads, tails, x, 2, 7, 1, 1e-10, 100, 3, 20000)
		return e.Mean + e.Error, err
	})
}

// However many negatives there are, the losses are finite, and take no more than the work that is allowed.
func TestLossesOfAnyNumberOfNegatives(t *testing.T) {
	const work = infoNCWork / 16 // not to wait for the whole
	for _, tc := range []struct{ n, m int }{
		{150, 1<<31 - 2},
		{2, math.MaxInt32},
		{3000, 299_899}, // the most that are drawn
		{15_000, 1_000_000_000},
	} {
		x := normal[float32](2, tc.n, 2, 5)
		heads, tails := make([]int32, tc.n), make([]int32, tc.n)
		for i := range tc.n {
			heads[i], tails[i] = int32(i), int32((i+1)%tc.n)
		}
		e, err := expectedInfoNC(t.Context(), nil, heads, tails, x, 2, tc.m, 1, 1e-10, 2, 1, work)
		if err != nil || !(e.Error < 1) || math.IsNaN(e.Mean) || math.IsInf(e.Mean, 0) {
			t.Errorf("%d points, %d negatives: %v, %v", tc.n, tc.m, e, err)
		}
	}
}
