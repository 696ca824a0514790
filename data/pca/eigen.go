package pca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/internal/blas"
	"cne/internal/ctxio"
	"cne/internal/eigen"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/rng"
)

const (
	// ulp is the distance from 1 to the next float64.
	ulp = 0x1p-52
	// subspaceFrom is the smallest order of a matrix for subspace iteration, which finds few
	// eigenvectors. All eigenvectors take time cubic in the order, products with few vectors
	// quadratic.
	subspaceFrom = 512
	// maxGrowth bounds how much more a filter makes the first direction of a subspace grow
	// than the last wanted one, so the last keeps six digits.
	maxGrowth = 1e10
	// highestDegree bounds the degree of a filter.
	highestDegree = 24
)

// largestEigen returns the k largest eigenvalues of a symmetric n×n matrix in descending
// order, and as many orthonormal eigenvectors, one after the other. a holds the matrix's
// upper triangle; it must be positive semidefinite up to rounding. Eigenvalues within
// rounding of 0 are 0. If ctx is done first, the error is ctx's, and a may still be in use.
func largestEigen(ctx context.Context, a []float64, n, k int) (values, vectors []float64, err error) {
	if n >= subspaceFrom && k <= n/8 {
		values, vectors, err = subspaceEigen(ctx, a, n, k)
	}
	if values == nil && err == nil {
		// eigenOf cannot be interrupted; if ctx is done, it continues in the background.
		var found [2][]float64
		found, err = ctxio.Await(ctx, func() (r [2][]float64, err error) {
			defer kind.Catch(&err)
			r[0], r[1] = eigenOf(a, n)
			return r, nil
		})
		values, vectors = found[0], found[1]
	}
	if err != nil {
		return nil, nil, err
	}
	values, vectors = values[:k], slices.Clip(vectors[:k*n])
	for i, v := range values {
		if v <= values[0]*noiseOf(n) {
			values[i] = 0
		}
	}
	return values, vectors, nil
}

// noiseOf returns the error of the eigenvalues of an n×n matrix, as a share of the
// largest eigenvalue. Products lose some units in the last place, and the eigenvalue
// algorithm loses a few per row.
func noiseOf(n int) float64 { return ulp * (256 + float64(8*float64(n))) }

// eigenOf returns all eigenvalues and eigenvectors, as package eigen does, or fails as kind.Need
// does.
func eigenOf(a []float64, n int) (values, vectors []float64) {
	values, vectors, ok := eigen.Symmetric(a, n)
	if !ok {
		kind.Check(fmt.Errorf("pca: the eigenvalues of a %d×%d covariance matrix did not converge; scale the data first", n, n))
	}
	return values, vectors
}

// subspaceEigen is largestEigen by subspace iteration, for few eigenvectors. It returns
// nil if the wanted eigenvalues are hardly larger than the others, because computing all
// eigenvectors is then as fast.
func subspaceEigen(ctx context.Context, a []float64, n, k int) (_, _ []float64, err error) {
	defer kind.Catch(&err)
	const together = 16 // columns that products compute
	width := (k + k/4 + 8 + together - 1) / together * together
	for i := range n {
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
	multiply := func(to, from []float64) {
		blas.Gemm(true, false, n, width, n, 1, a, n, from, width, 0, to, width)
		kind.Check(ctx.Err())
	}
	s := newSubspace(n, width, rng.New(uint64(n), rng.Components), multiply)
	values, converged := s.eigen(k, ulp*float64(16+n/32), 0, 16*n/width)
	if !converged {
		return nil, nil, nil
	}
	return values[:k], eigen.Transposed(s.basis, n, width)[:k*n], nil
}

// A subspace holds the approximations to the eigenvectors of the largest eigenvalues of a
// symmetric n×n matrix. Its negative eigenvalues must be rounding errors, as they are for
// covariances.
type subspace struct {
	n, width int
	// basis [n, width] holds random vectors at first. eigen turns them into the eigenvectors.
	// image is the matrix times the basis.
	basis, image, spare []float64
	multiply            func(to, from []float64) // by the matrix; it fails as kind.Need does
}

func newSubspace(n, width int, stream rng.Stream, multiply func(to, from []float64)) *subspace {
	s := &subspace{n: n, width: width, multiply: multiply}
	for _, x := range []*[]float64{&s.basis, &s.image, &s.spare} {
		*x = make([]float64, n*width)
	}
	for i := range s.basis {
		s.basis[i] = stream.Normal()
	}
	return s
}

// eigen turns the basis into the eigenvectors of the largest eigenvalues, and returns
// these eigenvalues. It uses subspace iteration with Chebyshev filters (Zhou, Saad, Tiago
// and Chelikowsky, 2006). A filter is a polynomial of the matrix that is small between 0
// and the smallest Ritz value and grows quickly beyond. Filters are applied until the
// first k residuals are within the tolerance (converged), or until the next filter would
// need more than most products in total. A residual must be at most tolerance times the
// largest eigenvalue and, if own > 0, own times its own eigenvalue, but not below
// rounding. The subspace has more directions than wanted, so repeated eigenvalues are
// found as often as they occur. It fails as multiply does.
func (s *subspace) eigen(k int, tolerance, own float64, most int) (values []float64, converged bool) {
	products := 0
	for degree := 1; ; degree = min(2*degree, highestDegree) {
		eigen.Orthonormalize(s.basis, s.n, s.width)
		s.multiply(s.image, s.basis)
		products++
		values = s.rotate()
		size := max(values[0], -values[s.width-1])
		converged = true
		for i, r := range s.residuals(values[:k]) {
			limit := tolerance * size
			if own > 0 {
				limit = min(limit, max(own*values[i], noiseOf(s.width)*size))
			}
			converged = converged && r <= limit
		}
		// Components with eigenvalues between 0 and high become small.
		high := max(values[s.width-1], size*ulp*float64(s.n))
		growth := func(value float64) float64 {
			beyond := max(0, 2*value/high-2)
			// acosh(1 + beyond)
			return elementary.Log1p(beyond + math.Sqrt(beyond*(2+beyond)))
		}
		bounded := degree
		if apart := growth(values[0]) - growth(values[k-1]); float64(degree)*apart > elementary.Log(maxGrowth) {
			bounded = max(1, int(elementary.Log(maxGrowth)/apart))
		}
		if converged || products+bounded > most {
			return values, converged
		}
		s.filter(bounded, high/2)
		products += bounded - 1
	}
}

// rotate turns the basis and its image into the best approximations of eigenvectors in
// the subspace (Rayleigh–Ritz), and returns their eigenvalues in descending order.
func (s *subspace) rotate() []float64 {
	within := make([]float64, s.width*s.width)
	blas.Gemm(true, false, s.width, s.width, s.n, 1, s.basis, s.width, s.image, s.width, 0, within, s.width)
	values, vectors := eigenOf(within, s.width)
	for _, x := range []*[]float64{&s.basis, &s.image} {
		blas.Gemm(false, true, s.n, s.width, s.width, 1, *x, s.width, vectors, s.width, 0, s.spare, s.width)
		*x, s.spare = s.spare, *x
	}
	return values
}

// residuals returns the lengths of image − value·basis of the first vectors.
func (s *subspace) residuals(values []float64) []float64 {
	squares := make([]float64, len(values))
	for i := range s.n {
		basis, image := s.basis[i*s.width:], s.image[i*s.width:]
		for c, v := range values {
			r := image[c] - float64(v*basis[c])
			squares[c] += float64(r * r)
		}
	}
	for c, v := range squares {
		squares[c] = math.Sqrt(v)
	}
	return squares
}

// filter replaces the basis by T((A−c)/c) times it, where A is the matrix and T Chebyshev's
// polynomial of a degree of at least 1: from 0 to 2c it stays between −1 and 1.
func (s *subspace) filter(degree int, c float64) {
	before, now, next := s.basis, s.image, s.spare
	for i, v := range before {
		now[i] = now[i]/c - v
	}
	for range degree - 1 {
		// T(j+1) = 2·(A−c)/c·T(j) − T(j−1)
		s.multiply(next, now)
		for i, v := range now {
			next[i] = float64(2*(next[i]/c-v)) - before[i]
		}
		before, now, next = now, next, before
	}
	s.basis, s.image, s.spare = now, before, next
}
