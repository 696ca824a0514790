package pca

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"cne/internal/rng"
)

// symmetric returns an n×n matrix with these eigenvalues, and random axes made
// of as many reflections.
func symmetric(seed uint64, values []float64) []float64 {
	n := len(values)
	a := make([]float64, n*n)
	for i, v := range values {
		a[i*n+i] = v
	}
	s := rng.New(seed, rng.Init)
	v, av := make([]float64, n), make([]float64, n)
	for range 3 {
		for i := range v {
			v[i] = s.Normal()
		}
		floats.Scale(1/floats.Norm(v, 2), v)
		// (I−2vvᵀ)·A·(I−2vvᵀ)
		vav := 0.0
		for i := range n {
			av[i] = 0
			for j := range n {
				av[i] += a[i*n+j] * v[j]
			}
			vav += v[i] * av[i]
		}
		for i := range n {
			for j := range n {
				a[i*n+j] += 4*vav*v[i]*v[j] - 2*(v[i]*av[j]+av[i]*v[j])
			}
		}
	}
	return a
}

// checkEigen checks the largest eigenvalues of a matrix against wanted, all its
// eigenvalues, and that the vectors are orthonormal eigenvectors of its upper triangle.
func checkEigen(t *testing.T, name string, a, wanted, values, vectors []float64) {
	t.Helper()
	n := len(wanted)
	tolerance := 1e-13 * wanted[0] * math.Sqrt(float64(n))
	full := mat.NewSymDense(n, a)
	for i, v := range values {
		if math.Abs(v-wanted[i]) > tolerance {
			t.Errorf("%s: eigenvalue %d is %g, want %g", name, i, v, wanted[i])
		}
		x := vectors[i*n : (i+1)*n]
		var residual mat.VecDense
		residual.MulVec(full, mat.NewVecDense(n, x))
		floats.AddScaled(residual.RawVector().Data, -v, x)
		if r := mat.Norm(&residual, math.Inf(1)); !(r <= tolerance) {
			t.Fatalf("%s: vector %d has a residual of %g", name, i, r)
		}
		for j := range i + 1 {
			dot, want := floats.Dot(vectors[j*n:(j+1)*n], x), 0.0
			if i == j {
				want = 1
			}
			if math.Abs(dot-want) > 1e-13 {
				t.Fatalf("%s: the product of vectors %d and %d is %g", name, i, j, dot)
			}
		}
	}
}

// Subspace iteration finds the eigenvectors, whatever the eigenvalues are, or gives up where
// those that are wanted are hardly larger than others.
func TestSubspaceEigen(t *testing.T) {
	series := func(n int, f func(i int) float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = f(i)
		}
		return values
	}
	for _, tc := range []struct {
		name    string
		values  []float64 // descending
		k       int
		givesUp bool
	}{
		{"apart", series(520, func(i int) float64 { return float64(520 - i) }), 10, false},
		{"falling fast", series(520, func(i int) float64 { return math.Pow(2, float64(-i)) }), 30, false},
		{"falling very fast", series(520, func(i int) float64 { return math.Pow(100, float64(-i)) }), 30, false},
		{"falling like images", series(784, func(i int) float64 { return math.Pow(1+float64(i), -1.3) }), 50, false},
		{"falling slowly", series(600, func(i int) float64 { return 1 / math.Sqrt(1+float64(i)) }), 50, false},
		{"all equal", series(520, func(int) float64 { return 3 }), 10, false},
		{"more equal than there are directions", series(600, func(i int) float64 { return float64(2 - i/300) }), 20, true},
		{"pairs", series(520, func(i int) float64 { return float64(260 - i/2) }), 20, false},
		{"clusters", series(540, func(i int) float64 { return float64(9-i/60) + 1e-13*float64(-i) }), 22, true},
		{"a cluster that ends beyond what is wanted", series(540, func(i int) float64 { return math.Pow(2, float64(-(i / 12))) }), 30, false},
		{"nearly equal", series(520, func(i int) float64 { return 1 - 1e-9*float64(i) }), 15, true},
		{"low rank", series(520, func(i int) float64 { return max(0, float64(5-i)) }), 20, false},
		{"low rank, far apart", series(520, func(i int) float64 { return max(0, 1+1e8*float64(4-i)) }), 20, false},
		{"one value", series(520, func(i int) float64 { return max(0, 1-float64(i)) }), 10, false},
		{"all zero", series(520, func(int) float64 { return 0 }), 4, false},
		{"large", series(520, func(i int) float64 { return 1e70 / float64(1+i) }), 16, false},
		{"small", series(520, func(i int) float64 { return 1e-80 / float64(1+i) }), 16, false},
		{"an eighth is wanted", series(800, func(i int) float64 { return math.Exp(-0.01 * float64(i)) }), 100, false},
	} {
		n := len(tc.values)
		a := symmetric(7, tc.values)
		for i := range n {
			for j := range i {
				a[i*n+j] = math.NaN() // must not be read
			}
		}
		values, vectors, err := subspaceEigen(t.Context(), a, n, tc.k)
		switch {
		case err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case values == nil && !tc.givesUp:
			t.Errorf("%s: no eigenvectors", tc.name)
		case values != nil:
			checkEigen(t, tc.name, a, tc.values, values, vectors)
		}
	}
}

// Eigenvectors of large matrices are the same, bit for bit, on any number of cores.
func TestLargestEigenOnCores(t *testing.T) {
	const n, k = 600, 40
	wanted := make([]float64, n)
	for i := range wanted {
		wanted[i] = 1 / float64(1+i)
	}
	a := symmetric(3, wanted)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []float64
	for _, procs := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(procs)
		values, vectors, err := largestEigen(t.Context(), a, n, k)
		if err != nil {
			t.Fatal(err)
		}
		checkEigen(t, fmt.Sprint(procs, " cores"), a, wanted, values, vectors)
		if first == nil {
			first = vectors
		}
		if !slices.Equal(first, vectors) {
			t.Errorf("%d cores give other bits than one", procs)
		}
	}
}
