package pca

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"cne/data"
)

// drawSparse draws n sparse points of d values in classes. Each class has its own columns,
// fewer for later classes, so that classes−1 components stand out, with different
// variances.
func drawSparse(tb testing.TB, seed uint64, n, d, perRow, classes int) *data.Matrix {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	indptr, indices, values := []int{0}, []int{}, []float32{}
	for i := range n {
		class := i % classes
		own := max(1, d/classes/(1+class))
		for range perRow {
			j := r.IntN(d)
			if r.IntN(2) == 0 {
				j = class*(d/classes) + r.IntN(own)
			}
			indices, values = append(indices, j), append(values, float32(r.ExpFloat64()))
		}
		indptr = append(indptr, len(values))
	}
	return fromCSR(tb, n, d, indptr, indices, values)
}

func fromCSR(tb testing.TB, n, d int, indptr, indices []int, values []float32) *data.Matrix {
	tb.Helper()
	m, err := data.FromCSR(n, d, indptr, indices, values)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// The randomised components are the exact ones of the dense points. The variances of
// subspace iteration approach the exact ones from below, with the square of the angle
// between the subspaces. Here the components stand out, and the variances lack less than
// 10⁻⁵ after 16 products, so the sine of the angle is below √10⁻⁵.
func TestSparsePCAIsTheExact(t *testing.T) {
	for name, tc := range map[string]struct {
		n, d, perRow, classes, k int
		dominant                 float32 // factor on the first column
	}{
		"more points than columns": {2000, 300, 20, 10, 9, 1},
		"fewer":                    {200, 1000, 30, 6, 5, 1},
		"fewer, one enormous":      {200, 1000, 30, 6, 6, 3000},
		"two fewer":                {58, 60, 20, 40, 40, 1},
		"one component":            {400, 60, 8, 4, 1, 1},
		"one large column":         {2000, 300, 20, 10, 10, 300},
		"one enormous column":      {2000, 300, 20, 10, 10, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			m := drawSparse(t, 1, tc.n, tc.d, tc.perRow, tc.classes)
			for e, j := range m.CSR.Column {
				if j == 0 {
					m.CSR.Value[e] *= tc.dominant
				}
			}
			exact := need(Fit(t.Context(), need(m.Dense())(t), tc.k))(t)
			got := need(FitSparse(t.Context(), m, tc.k, 5))(t)
			if math.Abs(got.TotalVariance/exact.TotalVariance-1) > 1e-12 {
				t.Errorf("the total variance is %v, and exactly %v", got.TotalVariance, exact.TotalVariance)
			}
			for j, mean := range exact.Mean {
				if math.Abs(got.Mean[j]-mean) > 1e-12 {
					t.Fatalf("the mean of column %d is %v, and exactly %v", j, got.Mean[j], mean)
				}
			}
			for a, v := range exact.Variance {
				if got.Variance[a] > v*(1+1e-12)+1e-15*exact.Variance[0] || got.Variance[a] < v*(1-1e-5) {
					t.Errorf("variance %d is %v, and exactly %v", a, got.Variance[a], v)
				}
			}
			if s := outside(got, exact); s > 0.0032 {
				t.Errorf("an axis is %v outside of the span of the exact ones", s)
			}
		})
	}
}

// outside returns the sine of the largest angle between an axis of p and the span of q's
// axes.
func outside(p, q *PCA) float64 {
	worst := 0.
	for a := range p.K {
		axis := slices.Clone(p.Axes[a*p.D : (a+1)*p.D])
		for b := range q.K {
			other := q.Axes[b*q.D : (b+1)*q.D]
			dot := 0.
			for j, v := range other {
				dot += v * p.Axes[a*p.D+j]
			}
			for j, v := range other {
				axis[j] -= dot * v
			}
		}
		square := 0.
		for _, v := range axis {
			square += v * v
		}
		worst = max(worst, math.Sqrt(square))
	}
	return worst
}

// As many directions as there are columns span all, so that nothing is random: the
// components are exact to rounding, and those without variance are completed.
func TestSparsePCAOfFewColumns(t *testing.T) {
	narrow := drawSparse(t, 2, 50, 12, 4, 3)
	for name, m := range map[string]*data.Matrix{
		"full rank": narrow,
		"rank 1":    fromCSR(t, 4, 3, []int{0, 1, 2, 3, 3}, []int{1, 1, 1}, []float32{1, 2, 3}),
		"equal":     fromCSR(t, 3, 2, []int{0, 1, 2, 3}, []int{1, 1, 1}, []float32{0.1, 0.1, 0.1}),
		"zeros":     fromCSR(t, 3, 2, []int{0, 0, 0, 0}, nil, nil),
		"far":       fromCSR(t, 3, 2, []int{0, 2, 4, 6}, []int{0, 1, 0, 1, 0, 1}, []float32{4000, 1, 4001, 3, 4002, 2}),
	} {
		k := min(m.N, m.D)
		exact := need(Fit(t.Context(), need(m.Dense())(t), k))(t)
		got := need(FitSparse(t.Context(), m, k, 5))(t)
		for a, v := range exact.Variance {
			if math.Abs(got.Variance[a]-v) > 1e-10*exact.Variance[0] {
				t.Errorf("%s: variance %d is %v, and exactly %v", name, a, got.Variance[a], v)
			}
		}
		for a := range k {
			for b := range k {
				dot := 0.
				for j := range m.D {
					dot += got.Axes[a*m.D+j] * got.Axes[b*m.D+j]
				}
				if want := map[bool]float64{true: 1}[a == b]; math.Abs(dot-want) > 1e-12 {
					t.Errorf("%s: the product of axes %d and %d is %v", name, a, b, dot)
				}
			}
		}
	}
}

// The components have the same bits for any number of cores, and of a matrix that was
// given in another order, or with values in parts that add up exactly. Another seed gives
// nearly the same, and permuted columns permuted axes.
func TestSparsePCAProperties(t *testing.T) {
	const n, d, k = 500, 200, 4
	m := drawSparse(t, 3, n, d, 15, 5)
	fit := func(m *data.Matrix, seed uint64) *PCA {
		return need(FitSparse(t.Context(), m, k, seed))(t)
	}
	first := fit(m, 1)
	same := func(name string, p *PCA) {
		if !slices.Equal(p.Axes, first.Axes) || !slices.Equal(p.Variance, first.Variance) || !slices.Equal(p.Mean, first.Mean) {
			t.Errorf("%s: the components have other bits", name)
		}
	}
	for _, cores := range []int{1, 2} {
		before := runtime.GOMAXPROCS(cores)
		same("cores", fit(m, 1))
		a, errA := first.Transform(t.Context(), m)
		runtime.GOMAXPROCS(before)
		b, errB := first.Transform(t.Context(), m)
		if errA != nil || errB != nil || !slices.Equal(a.X, b.X) {
			t.Error("the coordinates have other bits on another number of cores")
		}
	}
	c := m.CSR
	indptr, indices, values := []int{0}, []int{}, []float32{}
	for i := range n {
		for at := c.Start[i+1] - 1; at >= c.Start[i]; at-- { // backwards, and in halves
			half := c.Value[at] / 2
			indices, values = append(indices, int(c.Column[at]), int(c.Column[at])), append(values, half, half)
		}
		indptr = append(indptr, len(values))
	}
	same("order", fit(fromCSR(t, n, d, indptr, indices, values), 1))
	if s := outside(fit(m, 2), first); s > 0.0032 {
		t.Errorf("another seed: an axis is %v outside of the span", s)
	}

	for i := range indices {
		indices[i] = (7*indices[i] + 3) % d // 7 and 200 have no common divisor
	}
	permuted := fit(fromCSR(t, n, d, indptr, indices, values), 1)
	axes := make([]float64, k*d)
	for a := range k {
		for j := range d {
			axes[a*d+j] = permuted.Axes[a*d+(7*j+3)%d]
		}
	}
	permuted.Axes = axes
	if s := outside(permuted, first); s > 0.0032 {
		t.Errorf("permuted columns: an axis is %v outside of the span", s)
	}

	// Sparse and dense points have the same coordinates.
	a, errA := first.Transform(t.Context(), m)
	b, errB := first.Transform(t.Context(), need(m.Dense())(t))
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	for i, v := range a.X {
		if math.Abs(float64(v-b.X[i])) > 1e-6 {
			t.Fatalf("coordinate %d is %v of sparse points and %v of dense ones", i, v, b.X[i])
		}
	}
}

func TestSparsePCARefuses(t *testing.T) {
	m := drawSparse(t, 1, 10, 5, 2, 2)
	wantError(t, errorOf(Fit(t.Context(), m, 2)), data.ErrSparse, "points: got sparse ones")
	wantError(t, errorOf(FitSparse(t.Context(), need(m.Dense())(t), 2, 0)), data.ErrOption, "got dense points")
	wantError(t, errorOf(FitSparse(t.Context(), m, 6, 0)), data.ErrOption, "components of 10 points of 5 values: got 6")
	wantError(t, errorOf(FitSparse(t.Context(), m.Rows(0, 1), 1, 0)), data.ErrEmpty, "want at least 2")
	m.CSR.Value[3] = float32(math.Inf(1))
	wantError(t, errorOf(FitSparse(t.Context(), m, 2, 0)), data.ErrNotFinite, "+Inf")
}

func BenchmarkSparsePCA(b *testing.B) {
	n, d := 10000, 20000
	if testing.Short() {
		n, d = 1000, 2000
	}
	m := drawSparse(b, 1, n, d, 500, 60)
	b.SetBytes(int64(8 * m.Nonzeros()))
	for b.Loop() {
		need(FitSparse(b.Context(), m, 50, 1))(b)
	}
}
