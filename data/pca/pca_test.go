package pca

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"cne/data"
	"cne/data/file"
	"cne/internal/rng"
)

// dot multiplies two rows.
func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func axis(p *PCA, a int) []float64 { return p.Axes[a*p.D : (a+1)*p.D] }

// centered returns the points less their mean.
func centered(m *data.Matrix) (*mat.Dense, []float64) {
	mean := make([]float64, m.D)
	for j := range mean {
		for i := range m.N {
			mean[j] += float64(m.Row(i)[j])
		}
		mean[j] /= float64(m.N)
	}
	x := mat.NewDense(m.N, m.D, nil)
	for i := range m.N {
		for j, v := range m.Row(i) {
			x.Set(i, j, float64(v)-mean[j])
		}
	}
	return x, mean
}

// spread gives the columns of m different scales and mixes them a little.
func spread(m *data.Matrix) *data.Matrix {
	for i := range m.N {
		row := m.Row(i)
		for j := range row {
			row[j] = row[j]*float32(1+m.D-j) + 0.5*row[(j+1)%m.D]
		}
	}
	return m
}

// checkPCA compares with the singular values and vectors of the centred
// points and checks what holds of every PCA. rank is how many of the axes have
// a variance.
func checkPCA(t *testing.T, m *data.Matrix, p *PCA, rank int, tol float64) {
	t.Helper()
	x, mean := centered(m)
	var svd mat.SVD
	if !svd.Factorize(x, mat.SVDThin) {
		t.Fatal("the reference does not converge")
	}
	singular := svd.Values(nil)
	var v mat.Dense
	svd.VTo(&v)
	total := 0.0
	for _, s := range singular {
		total += s * s / float64(m.N-1)
	}
	if math.Abs(p.TotalVariance-total) > tol*total {
		t.Errorf("the total variance is %g, want %g", p.TotalVariance, total)
	}
	for j, want := range mean {
		if math.Abs(p.Mean[j]-want) > tol*(1+math.Abs(want)) {
			t.Errorf("mean %d is %g, want %g", j, p.Mean[j], want)
		}
	}
	for a := range p.K {
		got, want := p.Variance[a], singular[a]*singular[a]/float64(m.N-1)
		if a >= rank {
			want = 0
			if got != 0 {
				t.Errorf("variance %d is %g, want exactly 0", a, got)
			}
		}
		if math.Abs(got-want) > tol*p.Variance[0] {
			t.Errorf("variance %d is %g, want %g", a, got, want)
		}
		for b := range a + 1 {
			want := 0.0
			if a == b {
				want = 1
			}
			if got := dot(axis(p, a), axis(p, b)); math.Abs(got-want) > 1e-12 {
				t.Errorf("the product of axes %d and %d is %g, want %g", a, b, got, want)
			}
		}
		largest := slices.MaxFunc(axis(p, a), func(x, y float64) int {
			if math.Abs(x) < math.Abs(y) {
				return -1
			}
			return 1
		})
		if largest <= 0 {
			t.Errorf("the largest component of axis %d is %g, want it positive", a, largest)
		}
		if a < rank {
			reference := make([]float64, m.D)
			for j := range reference {
				reference[j] = v.At(j, a)
			}
			if got := math.Abs(dot(axis(p, a), reference)); math.Abs(got-1) > tol {
				t.Errorf("axis %d agrees to %g with the reference", a, got)
			}
		}
	}
}

func TestFit(t *testing.T) {
	offset := func(m *data.Matrix, by float32) *data.Matrix {
		for i := range m.X {
			m.X[i] += by
		}
		return m
	}
	times := func(m *data.Matrix, by float32) *data.Matrix {
		for i := range m.X {
			m.X[i] *= by
		}
		return m
	}
	constant := func(m *data.Matrix, columns ...int) *data.Matrix {
		for i := range m.N {
			for _, j := range columns {
				m.Row(i)[j] = 0.1 * float32(j)
			}
		}
		return m
	}
	lowRank := func(n, d, rank int) *data.Matrix {
		m := data.NewMatrix(n, d)
		a, b := normal(11, n, rank), normal(12, rank, d)
		for i := range n {
			for j := range d {
				for r := range rank {
					// Small whole numbers, so that no rounding adds to the rank.
					m.X[i*d+j] += float32(math.Round(float64(4*a.X[i*rank+r]))) * float32(math.Round(float64(4*b.X[r*d+j])))
				}
			}
		}
		return m
	}
	sparse := func(n, d int) *data.Matrix {
		m := spread(normal(13, n, d))
		for i := range m.X {
			if i%5 != 0 {
				m.X[i] = 0
			}
		}
		return m
	}
	for _, tc := range []struct {
		name    string
		m       *data.Matrix
		k, rank int
		tol     float64
	}{
		{"tall", spread(normal(1, 300, 8)), 8, 8, 1e-10},
		{"tall, some axes", spread(normal(1, 300, 20)), 5, 5, 1e-10},
		{"several chunks", spread(normal(2, 9000, 6)), 6, 6, 1e-10},
		{"wider than a tile", spread(normal(3, 400, 150)), 40, 40, 1e-9},
		{"sparse", sparse(500, 12), 12, 12, 1e-10},
		{"wide", spread(normal(4, 12, 100)), 11, 11, 1e-9},
		{"wide, as many axes as points", spread(normal(4, 12, 100)), 12, 11, 1e-9},
		{"square", spread(normal(5, 20, 20)), 20, 19, 1e-9},
		{"one column", normal(6, 50, 1), 1, 1, 1e-10},
		{"two points", spread(normal(7, 2, 9)), 2, 1, 1e-10},
		{"low rank", lowRank(60, 10, 3), 7, 3, 1e-10},
		{"low rank, wide", lowRank(10, 60, 3), 7, 3, 1e-10},
		{"constant columns", constant(spread(normal(8, 100, 9)), 0, 3, 8), 6, 6, 1e-10},
		{"constant columns, more axes than others", constant(spread(normal(8, 100, 9)), 0, 3, 8), 9, 6, 1e-10},
		{"constant columns, wide", constant(spread(normal(8, 10, 40)), 0, 3, 39), 10, 9, 1e-9},
		{"far from zero", offset(normal(9, 2000, 4), 1e6), 4, 4, 1e-9},
		{"far from zero, wide", offset(spread(normal(9, 10, 40)), 1e6), 8, 8, 1e-9},
		{"just not far from zero", offset(spread(normal(9, 500, 4)), 9), 4, 4, 1e-10},
		{"tiny", times(spread(normal(10, 200, 5)), 1e-30), 5, 5, 1e-9},
		{"huge", times(spread(normal(10, 200, 5)), 1e30), 5, 5, 1e-9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := need(Fit(t.Context(), tc.m, tc.k))(t)
			if p.K != tc.k || p.D != tc.m.D || len(p.Axes) != tc.k*p.D || len(p.Variance) != tc.k {
				t.Fatalf("the result has K %d, D %d, %d values in Axes and %d in Variance", p.K, p.D, len(p.Axes), len(p.Variance))
			}
			checkPCA(t, tc.m, p, tc.rank, tc.tol)
			checkTransform(t, tc.m, p)
		})
	}
}

// checkTransform compares the coordinates with those computed one by one, and
// with the variances.
func checkTransform(t *testing.T, m *data.Matrix, p *PCA) {
	t.Helper()
	y := need(p.Transform(t.Context(), m))(t)
	size := math.Sqrt(p.TotalVariance)
	diff := make([]float64, m.D)
	sums := make([]float64, p.K)
	for i := range m.N {
		for j, v := range m.Row(i) {
			diff[j] = float64(v) - p.Mean[j]
		}
		for a := range p.K {
			got, want := float64(y.Row(i)[a]), dot(diff, axis(p, a))
			if math.Abs(got-want) > 1e-6*(math.Abs(want)+size) {
				t.Fatalf("coordinate %d of point %d is %g, want %g", a, i, got, want)
			}
			sums[a] += got * got
		}
	}
	for a, s := range sums {
		if got := s / float64(m.N-1); math.Abs(got-p.Variance[a]) > 1e-5*p.TotalVariance {
			t.Errorf("the coordinates along axis %d have variance %g, want %g", a, got, p.Variance[a])
		}
	}
}

// TestPCAReconstruction checks that all axes together lose nothing.
func TestPCAReconstruction(t *testing.T) {
	m := spread(normal(1, 40, 6))
	p := need(Fit(t.Context(), m, 6))(t)
	y := need(p.Transform(t.Context(), m))(t)
	for i := range m.N {
		for j, want := range m.Row(i) {
			got := p.Mean[j]
			for a := range p.K {
				got += float64(y.Row(i)[a]) * axis(p, a)[j]
			}
			if math.Abs(got-float64(want)) > 1e-5 {
				t.Fatalf("value %d of point %d comes back as %g, want %g", j, i, got, want)
			}
		}
	}
}

func TestPCAEqualPoints(t *testing.T) {
	m := data.NewMatrix(5, 3)
	for i := range m.X {
		m.X[i] = 7
	}
	p := need(Fit(t.Context(), m, 3))(t)
	if want := []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}; !slices.Equal(p.Axes, want) || !slices.Equal(p.Variance, make([]float64, 3)) || p.TotalVariance != 0 {
		t.Errorf("the axes are %v, the variances %v", p.Axes, p.Variance)
	}
	sameMatrix(t, need(p.Transform(t.Context(), m))(t), data.NewMatrix(5, 3))
}

// TestPCAProperties checks what changes of the points do to the axes.
func TestPCAProperties(t *testing.T) {
	for _, shape := range [][2]int{{200, 10}, {10, 200}} {
		n, d := shape[0], shape[1]
		m := spread(normal(21, n, d))
		const k = 4
		fit := func(m *data.Matrix) *PCA {
			return need(Fit(t.Context(), m, k))(t)
		}
		base := fit(m)
		near := func(what string, p *PCA, variance float64) {
			t.Helper()
			for i, v := range p.Axes {
				if math.Abs(v-base.Axes[i]) > 1e-9 {
					t.Errorf("%d×%d, %s: value %d of the axes is %g, want %g", n, d, what, i, v, base.Axes[i])
				}
			}
			for a, v := range p.Variance {
				if want := variance * base.Variance[a]; math.Abs(v-want) > 1e-9*want {
					t.Errorf("%d×%d, %s: variance %d is %g, want %g", n, d, what, a, v, want)
				}
			}
		}

		permuted := data.NewMatrix(n, d)
		s := rng.New(5, rng.Shuffle)
		for i, from := range s.Perm(n) {
			copy(permuted.Row(i), m.Row(from))
		}
		near("rows permuted", fit(permuted), 1)

		scaled := data.NewMatrix(n, d)
		for i, v := range m.X {
			scaled.X[i] = 8 * v
		}
		near("values times 8", fit(scaled), 64)

		if n > d {
			twice := matrix(2*n, d, append(slices.Clone(m.X), m.X...)...)
			near("every point twice", fit(twice), 2*float64(n-1)/float64(2*n-1))
		}
	}
}

// TestPCASign checks the sign where two components are equally large.
func TestPCASign(t *testing.T) {
	m := matrix(4, 2, 1, -1, -1, 1, 2, -2, -2, 2)
	for i := range m.N { // a little along the other diagonal
		m.Row(i)[0] += 0.1 * float32(i%2)
		m.Row(i)[1] += 0.1 * float32(i%2)
	}
	ds := &data.Dataset{Points: m}
	need(ds.Scale(t.Context(), data.ScaleStandard))(t)
	p := need(Fit(t.Context(), m, 2))(t)
	h := math.Sqrt(0.5)
	for i, want := range []float64{h, -h, h, h} {
		if math.Abs(p.Axes[i]-want) > 1e-6 {
			t.Errorf("the axes are %v", p.Axes)
			break
		}
	}
}

func TestPCABits(t *testing.T) {
	for _, m := range []*data.Matrix{spread(normal(31, 6000, 190)), spread(normal(32, 150, 9000))} {
		var first *PCA
		var coordinates *data.Matrix
		withProcs(t, func(t *testing.T, procs int) {
			p := need(Fit(t.Context(), m, 10))(t)
			y := need(p.Transform(t.Context(), m))(t)
			if first == nil {
				first, coordinates = p, y
			}
			if !slices.Equal(p.Axes, first.Axes) || !slices.Equal(p.Variance, first.Variance) || !slices.Equal(p.Mean, first.Mean) || p.TotalVariance != first.TotalVariance {
				t.Errorf("with GOMAXPROCS %d the bits differ", procs)
			}
			sameMatrix(t, y, coordinates)
		})
	}
}

// After Whiten the coordinates are uncorrelated, and their variances are v/(v + 0.1·m), however
// different the variances v with the mean m are. Points that are all equal stay so.
func TestWhiten(t *testing.T) {
	m := spread(normal(5, 300, 7))
	p := need(Fit(t.Context(), m, 7))(t)
	var mean float64
	for _, v := range p.Variance {
		mean += v / 7
	}
	p.Whiten()
	x := need(p.Transform(t.Context(), m))(t)
	again := need(Fit(t.Context(), x, 7))(t)
	for a, v := range p.Variance {
		if want := v / (v + 0.1*mean); math.Abs(again.Variance[a]-want) > 1e-5*want || again.Axes[a*7+a] < 0.999 {
			t.Errorf("along axis %d: a variance of %v, want %v; axis %v", a, again.Variance[a], want, axis(again, a))
		}
	}
	equal := need(Fit(t.Context(), data.NewMatrix(9, 3), 2))(t)
	before := slices.Clone(equal.Axes)
	if equal.Whiten(); !slices.Equal(equal.Axes, before) {
		t.Errorf("axes of equal points: %v", equal.Axes)
	}
}

func TestPCAErrors(t *testing.T) {
	m := normal(1, 5, 3)
	inf := normal(1, 5, 3)
	inf.X[7] = float32(math.Inf(1))
	for _, tc := range []struct {
		name string
		m    *data.Matrix
		k    int
		kind error
		want string
	}{
		{"no axes", m, 0, data.ErrOption, "components of 5 points of 3 values: got 0, want 1 to 3"},
		{"more axes than columns", m, 4, data.ErrOption, "want 1 to 3"},
		{"more axes than points", normal(1, 3, 9), 4, data.ErrOption, "want 1 to 3"},
		{"one point", normal(1, 1, 3), 1, data.ErrEmpty, "got 1 points, want at least 2"},
		{"no matrix", nil, 1, data.ErrEmpty, "matrix: got nil"},
		{"no points", data.NewMatrix(0, 3), 1, data.ErrEmpty, "matrix: got 0×3"},
		{"inconsistent", &data.Matrix{N: 3, D: 3, X: make([]float32, 8)}, 1, data.ErrShape, "matrix of 3×3: got 8 values"},
		{"infinity", inf, 1, data.ErrNotFinite, "row 3: column 2: got +Inf"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, errorOf(Fit(t.Context(), tc.m, tc.k)), tc.kind, tc.want) })
	}

	p := need(Fit(t.Context(), m, 2))(t)
	wantError(t, errorOf(p.Transform(t.Context(), normal(1, 2, 4))), data.ErrShape, "got 4 values each, want 3")
	wantError(t, errorOf(p.Transform(t.Context(), nil)), data.ErrEmpty, "matrix: got nil")
	p.Axes = p.Axes[:5]
	wantError(t, errorOf(p.Transform(t.Context(), m)), data.ErrShape, "2 components of width 3: got 3 values in Mean and 5 in Axes, want 3 and 6")
}

func BenchmarkFit(b *testing.B) {
	ds := need(file.Builtin("mnist10k"))(b)
	for b.Loop() {
		need(Fit(b.Context(), ds.Points, 50))(b)
	}
}

func BenchmarkTransform(b *testing.B) {
	ds := need(file.Builtin("mnist10k"))(b)
	pca := need(Fit(b.Context(), ds.Points, 50))(b)
	for b.Loop() {
		need(pca.Transform(b.Context(), ds.Points))(b)
	}
}
