package eigen_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"testing"

	lapack "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"

	"cne/internal/eigen"
	"cne/internal/rng"
)

func normal(n int, index uint64) []float64 {
	s := rng.New(3, rng.Sample, index)
	x := make([]float64, n)
	for i := range x {
		x[i] = s.Normal()
	}
	return x
}

// symmetric returns Q·diag(values)·Qᵀ for a random orthogonal Q. Its lower triangle is filled
// with NaN, since only the upper one may be read.
func symmetric(values []float64) []float64 {
	n := len(values)
	q, a := normal(n*n, uint64(n)), make([]float64, n*n)
	eigen.Orthonormalize(q, n, n)
	for i := range n {
		for j := range n {
			a[i*n+j] = math.NaN()
			if j >= i {
				a[i*n+j] = 0
				for k, v := range values {
					a[i*n+j] += q[i*n+k] * v * q[j*n+k]
				}
			}
		}
	}
	return a
}

// orthonormal returns the largest error of the scalar products of k vectors of length n that
// should be orthonormal.
func orthonormal(x []float64, k, n int) (worst float64) {
	for i := range k {
		for j := range k {
			sum := 0.
			if i == j {
				sum = -1
			}
			for l := range n {
				sum += x[i*n+l] * x[j*n+l]
			}
			worst = max(worst, math.Abs(sum)) // NaN if one is
		}
	}
	return worst
}

func TestSymmetric(t *testing.T) {
	spread := func(n int, of func(i int) float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = of(i)
		}
		return v
	}
	for name, values := range map[string][]float64{
		"one":       {-3},
		"two":       {2, -5},
		"three":     {1, 1, 4},
		"negative":  spread(40, func(i int) float64 { return float64(i - 20) }),
		"repeated":  spread(60, func(i int) float64 { return float64(i / 20) }),
		"zero":      make([]float64, 30),
		"low rank":  spread(70, func(i int) float64 { return float64(max(0, i-66)) }),
		"graded":    spread(50, func(i int) float64 { return math.Pow(10, -float64(i)) }),
		"clustered": spread(90, func(i int) float64 { return 1 + 1e-14*float64(i) }),
		"many":      spread(150, func(i int) float64 { return math.Sqrt(float64(i)) }),
	} {
		for _, scale := range []float64{1, 1e-290, 1e290} {
			n := len(values)
			a := symmetric(values)
			for i := range a {
				a[i] *= scale
			}
			given := slices.Clone(a)
			got, vectors, ok := eigen.Symmetric(a, n)
			if !ok {
				t.Fatalf("%s: not found", name)
			}
			if e := orthonormal(vectors, n, n); !(e < 1e-13) {
				t.Errorf("%s·%g: vectors are orthonormal up to %g", name, scale, e)
			}
			want := slices.Sorted(slices.Values(values))
			slices.Reverse(want)
			size := max(math.Abs(want[0]), math.Abs(want[n-1]))
			for k, v := range got {
				if !(math.Abs(v/scale-want[k]) <= 1e-13*size) {
					t.Errorf("%s·%g: eigenvalue %d is %g, want %g", name, scale, k, v/scale, want[k])
				}
				for i := range n {
					sum := -v / scale * vectors[k*n+i]
					for j := range n {
						sum += given[min(i, j)*n+max(i, j)] / scale * vectors[k*n+j]
					}
					if !(math.Abs(sum) <= 1e-13*size) {
						t.Fatalf("%s·%g: a·v − λ·v is %g at %d of vector %d", name, scale, sum, i, k)
					}
				}
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if _, _, ok := eigen.Symmetric([]float64{1, bad, 0, 1}, 2); ok {
			t.Errorf("eigenvalues of a matrix with %g", bad)
		}
	}
	if values, _, ok := eigen.Symmetric([]float64{math.MaxFloat64, math.MaxFloat64, 0, math.MaxFloat64}, 2); ok {
		t.Errorf("eigenvalues that overflow: %g", values)
	}
}

// Matrices of low rank and of graded columns leave rounding errors that shrink along the diagonal
// of the tridiagonal matrix. An off-diagonal element must not be compared only with them.
func TestSymmetricOfGradedRounding(t *testing.T) {
	covariance := func(n int, column func(row, j int) float64) []float64 {
		const rows = 300
		a := make([]float64, n*n)
		for r := range rows {
			for i := range n {
				for j := i; j < n; j++ {
					a[i*n+j] += column(r, i) * column(r, j) / rows
				}
			}
		}
		return a
	}
	noise := normal(300*100, 9)
	adjacency := func(n int, joined func(i, j int) bool) []float64 { // divided by √(degrees)
		a, degrees := make([]float64, n*n), make([]float64, n)
		for i := range n {
			for j := range n {
				if i < j && joined(i, j) || j < i && joined(j, i) {
					a[i*n+j] = 1
					degrees[i]++
				}
			}
		}
		for i := range n {
			for j := range n {
				a[i*n+j] /= math.Sqrt(degrees[i] * degrees[j])
			}
		}
		return a
	}
	for name, c := range map[string]struct {
		n int
		a []float64
	}{
		"one-hot":  {60, covariance(60, func(r, j int) float64 { return float64((r%3 + j) % 3 / 2) })},
		"integers": {50, covariance(50, func(r, j int) float64 { return float64(r%7*(j%5) + r%4*(j%3)) })},
		"many integers": {256, covariance(256, func(r, j int) float64 {
			return float64(r%7*(j%5) + r%4*(j%3))
		})},
		"bipartite":  {100, adjacency(100, func(i, j int) bool { return i < 50 && j >= 50 })},
		"hubs":       {80, adjacency(80, func(i, j int) bool { return i < 4 && (j%4 == i || j < 4) })},
		"ascending":  {100, covariance(100, func(r, j int) float64 { return noise[r*100+j] * math.Pow(0.1, float64(99-j)) })},
		"descending": {100, covariance(100, func(r, j int) float64 { return noise[r*100+j] * math.Pow(0.1, float64(j)) })},
	} {
		given := slices.Clone(c.a)
		values, vectors, ok := eigen.Symmetric(c.a, c.n)
		if !ok {
			t.Errorf("%s: not found", name)
			continue
		}
		size := max(values[0], -values[c.n-1])
		if e := orthonormal(vectors, c.n, c.n); !(e < 1e-13) {
			t.Errorf("%s: vectors are orthonormal up to %g", name, e)
		}
		worst := 0.
		for k, v := range values {
			for i := range c.n {
				sum := -v * vectors[k*c.n+i]
				for j := range c.n {
					sum += given[min(i, j)*c.n+max(i, j)] * vectors[k*c.n+j]
				}
				worst = max(worst, math.Abs(sum))
			}
		}
		if !(worst <= 1e-13*size) {
			t.Errorf("%s: a·v − λ·v is %g, where the largest eigenvalue is %g", name, worst, size)
		}
	}
}

func TestOrthonormalize(t *testing.T) {
	const n, width = 50, 9
	for _, scale := range []float64{1, 1e-300, 1e300} {
		x := normal(n*width, 1)
		for i := range n {
			row := x[i*width : (i+1)*width]
			row[3], row[5], row[6] = row[0]-2*row[1], 0, row[2] // dependent
			row[7] *= 1e-8
			for j := range row {
				row[j] *= scale
			}
		}
		given := slices.Clone(x)
		lengths := eigen.Orthonormalize(x, n, width)
		q := eigen.Transposed(x, n, width)
		if e := orthonormal(q, width, n); !(e < 1e-14) {
			t.Errorf("%g: orthonormal up to %g", scale, e)
		}
		for j, l := range lengths {
			if dependent := j == 3 || j == 5 || j == 6; dependent != (l < 1e-12*scale) {
				t.Errorf("%g: column %d is %g away from the span of the columns before", scale, j, l)
			}
			// A column is a combination of the orthonormal ones up to it.
			rest := make([]float64, n)
			for i := range n {
				rest[i] = given[i*width+j] / scale
			}
			for k := range j + 1 {
				along := 0.
				for i := range n {
					along += given[i*width+j] / scale * q[k*n+i]
				}
				for i := range n {
					rest[i] -= along * q[k*n+i]
				}
			}
			for _, r := range rest {
				if !(math.Abs(r) < 1e-13) {
					t.Fatalf("%g: column %d is not in the span: %g", scale, j, r)
				}
			}
		}
	}
}

func TestPolar(t *testing.T) {
	for _, d := range []int{1, 2, 3, 10} {
		for rank := range d + 1 {
			for _, scale := range []float64{1, 1e-200, 1e200} {
				left, right, a := normal(d*d, 1), normal(d*d, 2), make([]float64, d*d)
				for i := range d {
					for j := range d {
						for k := range rank {
							a[i*d+j] += scale * left[i*d+k] * right[k*d+j]
						}
					}
				}
				given := slices.Clone(a)
				turn, trace, ok := eigen.Polar(a, d)
				if e := orthonormal(turn, d, d); !ok || !(e < 1e-13) {
					t.Errorf("d %d, rank %d: orthonormal up to %g", d, rank, e)
				}
				var svd mat.SVD
				svd.Factorize(mat.NewDense(d, d, slices.Clone(given)), mat.SVDNone)
				want, reached := 0., 0.
				for _, s := range svd.Values(nil) {
					want += s / scale
				}
				for i, v := range given {
					reached += v / scale * turn[i]
				}
				if !(math.Abs(trace/scale-want) <= 1e-12*want) || !(math.Abs(reached-want) <= 1e-12*want) {
					t.Errorf("d %d, rank %d, %g: trace %g, reached %g, want %g", d, rank, scale, trace/scale, reached, want)
				}
			}
		}
	}
	if _, _, ok := eigen.Polar([]float64{math.NaN()}, 1); ok {
		t.Error("NaN is accepted")
	}
}

// The bits are the same on every architecture, and for every number of cores.
func TestBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 3} {
		runtime.GOMAXPROCS(cores)
		hash := fnv.New64a()
		add := func(x ...float64) {
			for _, v := range x {
				fmt.Fprintf(hash, "%x ", math.Float64bits(v))
			}
		}
		values, vectors, _ := eigen.Symmetric(normal(210*210, 5), 210)
		add(values...)
		add(vectors...)
		x := normal(5000*20, 6)
		add(eigen.Orthonormalize(x, 5000, 20)...)
		add(x...)
		turn, trace, _ := eigen.Polar(normal(36, 7), 6)
		add(turn...)
		add(trace)
		if got, want := hash.Sum64(), uint64(0x35322d5c456019dd); got != want {
			t.Errorf("%d cores: the hash of the results is %#x, want %#x", cores, got, want)
		}
	}
}

func BenchmarkSymmetric(b *testing.B) {
	for _, n := range []int{100, 500, 784, 2000} {
		x := normal(n*n, 1)
		b.Run(fmt.Sprintf("%d/here", n), func(b *testing.B) {
			for range b.N {
				eigen.Symmetric(slices.Clone(x), n)
			}
		})
		b.Run(fmt.Sprintf("%d/gonum", n), func(b *testing.B) {
			for range b.N {
				var all mat.EigenSym
				all.Factorize(mat.NewSymDense(n, slices.Clone(x)), true)
			}
		})
	}
}

func BenchmarkOrthonormalize(b *testing.B) {
	const width = 72
	for _, n := range []int{784, 30000} {
		x := normal(n*width, 1)
		b.Run(fmt.Sprintf("%d/here", n), func(b *testing.B) {
			for range b.N {
				eigen.Orthonormalize(slices.Clone(x), n, width)
			}
		})
		b.Run(fmt.Sprintf("%d/gonum", n), func(b *testing.B) {
			for range b.N {
				var impl lapack.Implementation
				x, tau, work := slices.Clone(x), make([]float64, width), make([]float64, 64*width)
				impl.Dgeqrf(n, width, x, width, tau, work, len(work))
				impl.Dorgqr(n, width, width, x, width, tau, work, len(work))
			}
		})
	}
}
