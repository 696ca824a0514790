package data

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	lapack "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"

	"cne/internal/parallel"
	"cne/internal/rng"
)

// ulp is the rounding unit of float64, relative to the largest number about.
const ulp = 0x1p-52

// largestEigen returns the k largest eigenvalues of the symmetric n×n matrix
// whose upper triangle a holds, in descending order, and as many orthonormal
// eigenvectors, one after the other. Eigenvalues that rounding alone can have
// made are 0. If ctx ends before, the error is ctx's; the computation then ends
// by itself, since LAPACK cannot be interrupted, and a is still in use until then. a is
// positive semidefinite but for rounding.
//
// A device, if one is given, multiplies where nearly all of the work are products; errors are
// then also the device's.
func largestEigen(ctx context.Context, a []float64, n, k int, on *Device) (values, vectors []float64, err error) {
	// Computing few eigenvectors alone pays.
	few := n >= subspaceFrom && k <= n/8
	var v, u []float64
	if few && !on.OnHost() {
		// Here it is waited for, since its memory goes with it.
		if v, u, err = subspaceEigen(ctx, a, n, k, on); err != nil {
			return nil, nil, err
		}
		few = false
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if few {
			v, u, _ = subspaceEigen(ctx, a, n, k, nil) // the CPU has no errors
		}
		if v == nil && k <= n/4 && ctx.Err() == nil {
			v, u = someEigen(a, n, k)
		}
		if v == nil && ctx.Err() == nil {
			v, u = allEigen(a, n, k)
		}
	}()
	select {
	case <-done:
		values, vectors = v, u
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if values == nil {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("the eigenvalues of a %d×%d covariance matrix did not converge; scale the data first", n, n)
	}
	// The products lose up to farFromZero² units in the last place, the
	// eigenvalue algorithm a few per row.
	noise := max(0, values[0]) * ulp * (2*farFromZero*farFromZero + 8*float64(n))
	for i, v := range values {
		if v <= noise {
			values[i] = 0
		}
	}
	return values, vectors, nil
}

// allEigen takes the k wanted eigenvectors out of all. It returns nothing if
// the computation does not converge.
func allEigen(a []float64, n, k int) (values, vectors []float64) {
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, a), true) {
		return nil, nil
	}
	values = eigen.Values(nil) // ascending
	slices.Reverse(values)
	var all mat.Dense
	eigen.VectorsTo(&all)
	vectors = make([]float64, k*n)
	for i := range k {
		mat.Col(vectors[i*n:(i+1)*n], n-1-i, &all)
	}
	return values[:k], vectors
}

// someEigen computes all eigenvalues, which takes a tridiagonal matrix T
// orthogonally similar to a, and k eigenvectors by inverse iteration on T,
// each kept orthogonal to those before it. They are as good as those of
// allEigen, which spends most of its time on turning n vectors: every vector
// is accepted only if its residual is of the order of rounding. If one is not,
// someEigen returns nothing.
func someEigen(a []float64, n, k int) (values, vectors []float64) {
	t := newTridiagonal(a, n)
	all := slices.Clone(t.diagonal)
	var impl lapack.Implementation
	if !impl.Dsterf(n, all, slices.Clone(t.beside)) { // ascending
		return nil, nil
	}
	size := max(math.Abs(all[0]), math.Abs(all[n-1]))
	values = make([]float64, k)
	vectors = make([]float64, k*n)
	for i := range k {
		values[i] = all[n-1-i]
		if !t.inverseIteration(vectors[:(i+1)*n], values[i], size) {
			return nil, nil
		}
	}
	t.turnBack(vectors)
	return values, vectors
}

// A tridiagonal is a symmetric tridiagonal matrix T = QᵀAQ.
type tridiagonal struct {
	n        int
	diagonal []float64
	beside   []float64 // below the diagonal, and above it
	// Q is the product of the reflections I − tau·v·vᵀ, from 0 to n−2; the v
	// of reflection i is 0 up to i, 1 at i+1, and the rest is the rest of row i
	// of reflectors, n×n.
	reflectors, tau []float64
}

// newTridiagonal brings the matrix whose upper triangle a holds, and which
// stays as it is, into tridiagonal form.
func newTridiagonal(a []float64, n int) *tridiagonal {
	t := &tridiagonal{
		n: n, diagonal: make([]float64, n), beside: make([]float64, n-1),
		reflectors: make([]float64, n*n), tau: make([]float64, n-1),
	}
	lower := make([]float64, n*n)
	transpose(lower, a, n, n)
	var impl lapack.Implementation
	work := make([]float64, 1)
	impl.Dsytrd(blas.Lower, n, lower, n, t.diagonal, t.beside, t.tau, work, -1)
	work = make([]float64, int(work[0]))
	impl.Dsytrd(blas.Lower, n, lower, n, t.diagonal, t.beside, t.tau, work, len(work))
	transpose(t.reflectors, lower, n, n)
	return t
}

// transpose writes the transpose of the rows×columns matrix src.
func transpose(dst, src []float64, rows, columns int) {
	const block = 32
	for i0 := 0; i0 < rows; i0 += block {
		for j0 := 0; j0 < columns; j0 += block {
			for i := i0; i < min(rows, i0+block); i++ {
				for j := j0; j < min(columns, j0+block); j++ {
					dst[j*rows+i] = src[i*columns+j]
				}
			}
		}
	}
}

// inverseIteration makes the last of the unit vectors an eigenvector of T for
// the eigenvalue, which is exact up to rounding, orthogonal to the others. It
// reports whether it has found one; size is the norm of T.
//
// Equal and nearly equal eigenvalues need no special treatment: every step is
// followed by making v orthogonal to the vectors before, so that it converges to
// another vector of their common space.
func (t *tridiagonal) inverseIteration(vectors []float64, value, size float64) bool {
	n, before := t.n, len(vectors)/t.n-1
	v := vectors[before*n:]
	start := rng.New(uint64(before), rng.Init)
	for i := range v {
		v[i] = start.Normal()
	}
	below, diagonal, above := make([]float64, n-1), make([]float64, n), make([]float64, n-1)
	tolerance := size * ulp * float64(16+n/8)
	var impl lapack.Implementation
	for step := range 8 {
		// T − value·I is singular but for rounding. Should a pivot be exactly
		// 0, the next step moves the value by a rounding error or two.
		copy(below, t.beside)
		copy(above, t.beside)
		for i, d := range t.diagonal {
			diagonal[i] = d - (value + float64(step)*ulp*size/2)
		}
		solved := impl.Dgtsv(n, 1, below, diagonal, above, v, 1)
		if !scaleToUnit(v) {
			return false
		}
		if solved && orthogonalize(v, vectors[:before*n]) > 0 && t.residual(v, value) <= tolerance {
			return true
		}
	}
	return false
}

// residual returns the length of T·v − value·v.
func (t *tridiagonal) residual(v []float64, value float64) float64 {
	square := 0.0
	for i := range v {
		r := (t.diagonal[i] - value) * v[i]
		if i > 0 {
			r += t.beside[i-1] * v[i-1]
		}
		if i+1 < t.n {
			r += t.beside[i] * v[i+1]
		}
		square += r * r
	}
	return math.Sqrt(square)
}

// turnBack makes eigenvectors of T into those of the matrix that it came from.
func (t *tridiagonal) turnBack(vectors []float64) {
	n := t.n
	parallel.For(len(vectors)/n, 1, func(k, _, _ int) {
		v := vectors[k*n : (k+1)*n]
		for i := n - 2; i >= 0; i-- {
			reflector, rest := t.reflectors[i*n+i+2:(i+1)*n], v[i+2:]
			dot := v[i+1]
			for j, x := range reflector {
				dot += x * rest[j]
			}
			dot *= t.tau[i]
			v[i+1] -= dot
			for j, x := range reflector {
				rest[j] -= dot * x
			}
		}
	})
}

// orthogonalize makes a unit vector orthogonal to others, which are orthonormal
// and lie one after the other, and returns the length of what was left of it,
// before it is made a unit vector again. Doing it twice makes up for the
// rounding of the first time.
func orthogonalize(v, others []float64) float64 {
	length := 1.0
	for range 2 {
		for lo := 0; lo < len(others); lo += len(v) {
			other := others[lo : lo+len(v)]
			dot := 0.0
			for j, x := range v {
				dot += x * other[j]
			}
			for j := range v {
				v[j] -= dot * other[j]
			}
		}
		square := 0.0
		for _, x := range v {
			square += x * x
		}
		length *= math.Sqrt(square)
		if !scaleToUnit(v) {
			return 0
		}
	}
	return length
}

// scaleToUnit gives v the length 1; it returns false if v is zero or not
// finite.
func scaleToUnit(v []float64) bool {
	largest := 0.0
	for _, x := range v {
		largest = max(largest, math.Abs(x))
	}
	if !(largest > 0 && largest <= math.MaxFloat64) {
		return false
	}
	square := 0.0
	for _, x := range v {
		square += (x / largest) * (x / largest)
	}
	length := largest * math.Sqrt(square)
	for j := range v {
		v[j] /= length
	}
	return true
}
