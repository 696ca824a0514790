package pca

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	lapack "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"

	"cne/internal/blas"
	"cne/internal/device"
	"cne/internal/rng"
)

const (
	// ulp is the rounding unit of float64, relative to the largest number about.
	ulp = 0x1p-52
	// subspaceFrom is the order of matrices from which on few eigenvectors come from a
	// subspace: LAPACK takes time as the cube of the order, and products as its square.
	subspaceFrom = 512
	// farthest bounds by what factor a filter makes the first direction of a subspace grow
	// beyond the last that is wanted: what is left of the last then keeps six digits.
	farthest = 1e10
	// highestDegree bounds the degree of a filter.
	highestDegree = 24
)

// largestEigen returns the k largest eigenvalues of the symmetric n×n matrix
// whose upper triangle a holds, in descending order, and as many orthonormal
// eigenvectors, one after the other. Eigenvalues that rounding alone can have
// made are 0. If ctx ends before, the error is ctx's, and a may still be in use. a is
// positive semidefinite but for rounding.
//
// A device, if given, computes the products of subspace iteration; errors are then also the
// device's.
func largestEigen(ctx context.Context, a []float64, n, k int, on *device.Device) (values, vectors []float64, err error) {
	if n >= subspaceFrom && k <= n/8 {
		values, vectors, err = subspaceEigen(ctx, a, n, k, on)
	}
	if values == nil && err == nil {
		values, vectors, err = allEigen(ctx, a, n, k)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, v := range values {
		if v <= values[0]*noiseOf(n) {
			values[i] = 0
		}
	}
	return values, vectors, nil
}

// noiseOf returns what share of the largest eigenvalue of an n×n matrix rounding may make:
// products lose some units in the last place, the eigenvalue algorithm a few per row.
func noiseOf(n int) float64 { return ulp * (256 + 8*float64(n)) }

// allEigen takes the k wanted eigenvectors out of all. LAPACK cannot be interrupted, but is
// not waited for if ctx ends.
func allEigen(ctx context.Context, a []float64, n, k int) (values, vectors []float64, err error) {
	var eigen mat.EigenSym
	done := make(chan bool, 1)
	go func() { done <- eigen.Factorize(mat.NewSymDense(n, a), true) }()
	select {
	case converged := <-done:
		if !converged {
			return nil, nil, fmt.Errorf("pca: the eigenvalues of a %d×%d covariance matrix did not converge; scale the data first", n, n)
		}
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	values = eigen.Values(nil) // ascending
	slices.Reverse(values)
	var all mat.Dense
	eigen.VectorsTo(&all)
	vectors = make([]float64, k*n)
	for i := range k {
		mat.Col(vectors[i*n:(i+1)*n], n-1-i, &all)
	}
	return values[:k], vectors, nil
}

// subspaceEigen is largestEigen in a subspace, for few eigenvectors. It returns nothing if
// those that are wanted are hardly larger than those that are not, so that LAPACK takes no
// longer. On a device, the products of the matrix are computed there, if it has room for it.
func subspaceEigen(ctx context.Context, a []float64, n, k int, on *device.Device) (values, vectors []float64, err error) {
	const strip = 16 // columns that products compute together
	width := (k + k/4 + 8 + strip - 1) / strip * strip
	for i := range n {
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
	multiply := func(to, from []float64) error {
		blas.Gemm(true, false, n, width, n, 1, a, n, from, width, 0, to, width)
		return ctx.Err()
	}
	if !on.OnHost() {
		m, err := newDeviceMatrix(on, a, n, width)
		var full *device.MemoryError
		switch {
		case errors.As(err, &full):
			on.Note(fmt.Sprintf("the eigenvectors of the principal components are found by the CPU, since %v", err))
		case err != nil:
			return nil, nil, err
		default:
			defer m.memory.Free()
			multiply = m.multiply
		}
	}
	s := newSubspace(n, width, rng.New(uint64(n), rng.Components), multiply)
	values, converged, err := s.eigen(ctx, k, ulp*float64(16+n/32), 0, 16*n/width)
	if !converged {
		return nil, nil, err
	}
	return values[:k], transposed(s.basis, n, width)[:k*n], nil
}

// A subspace is where the eigenvectors of the largest eigenvalues of a symmetric n×n matrix
// are looked for. Eigenvalues below 0 must be no more than rounding, as those of covariances
// are.
type subspace struct {
	n, width int
	// basis are random vectors at first, which eigen turns to the eigenvectors, and image is
	// the matrix times them; n×width.
	basis, image, spare []float64
	multiply            func(to, from []float64) error // by the matrix
}

func newSubspace(n, width int, stream rng.Stream, multiply func(to, from []float64) error) *subspace {
	s := &subspace{n: n, width: width, multiply: multiply}
	for _, x := range []*[]float64{&s.basis, &s.image, &s.spare} {
		*x = make([]float64, n*width)
	}
	for i := range s.basis {
		s.basis[i] = stream.Normal()
	}
	return s
}

// eigen turns the basis to the eigenvectors of the largest eigenvalues, which it returns, by
// subspace iteration with Chebyshev filters (Zhou, Saad, Tiago and Chelikowsky, 2006): a
// polynomial of the matrix, which is small between 0 and the smallest Ritz value and grows
// quickly beyond it, turns the basis towards them until all first k residuals are within the
// tolerance, or another filter would need more than most products in all. A residual must
// be at most tolerance times the largest eigenvalue and, if own > 0, own times its
// eigenvalue, but not below rounding. The subspace has more directions than are wanted, so
// repeated eigenvalues are found as often as they occur.
func (s *subspace) eigen(ctx context.Context, k int, tolerance, own float64, most int) (values []float64, converged bool, err error) {
	products := 0
	for degree := 1; ; degree = min(2*degree, highestDegree) {
		orthonormalize(s.basis, s.n, s.width)
		if err := s.multiply(s.image, s.basis); err != nil {
			return nil, false, err
		}
		products++
		if values, err = s.rotate(ctx); err != nil {
			return nil, false, err
		}
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
		growth := func(value float64) float64 { return math.Acosh(max(1, 2*value/high-1)) }
		bounded := degree
		if apart := growth(values[0]) - growth(values[k-1]); float64(degree)*apart > math.Log(farthest) {
			bounded = max(1, int(math.Log(farthest)/apart))
		}
		if converged || products+bounded > most {
			return values, converged, nil
		}
		if err := s.filter(bounded, high/2); err != nil {
			return nil, false, err
		}
		products += bounded - 1
	}
}

// rotate turns the basis, and its image, so that it consists of the best approximations to
// eigenvectors that there are in the subspace, and returns their eigenvalues in descending
// order (Rayleigh and Ritz).
func (s *subspace) rotate(ctx context.Context) ([]float64, error) {
	within := make([]float64, s.width*s.width)
	blas.Gemm(true, false, s.width, s.width, s.n, 1, s.basis, s.width, s.image, s.width, 0, within, s.width)
	values, vectors, err := allEigen(ctx, within, s.width, s.width)
	if err != nil {
		return nil, err
	}
	for _, x := range []*[]float64{&s.basis, &s.image} {
		blas.Gemm(false, true, s.n, s.width, s.width, 1, *x, s.width, vectors, s.width, 0, s.spare, s.width)
		*x, s.spare = s.spare, *x
	}
	return values, nil
}

// residuals returns the lengths of image − value·basis of the first vectors.
func (s *subspace) residuals(values []float64) []float64 {
	squares := make([]float64, len(values))
	for i := range s.n {
		basis, image := s.basis[i*s.width:], s.image[i*s.width:]
		for c, v := range values {
			r := image[c] - v*basis[c]
			squares[c] += r * r
		}
	}
	for c, v := range squares {
		squares[c] = math.Sqrt(v)
	}
	return squares
}

// filter replaces the basis by T((A−c)/c) times it, where A is the matrix and T Chebyshev's
// polynomial of a degree of at least 1: from 0 to 2c it stays between −1 and 1.
func (s *subspace) filter(degree int, c float64) error {
	before, now, next := s.basis, s.image, s.spare
	for i, v := range before {
		now[i] = now[i]/c - v
	}
	for range degree - 1 {
		// T(j+1) = 2·(A−c)/c·T(j) − T(j−1)
		if err := s.multiply(next, now); err != nil {
			return err
		}
		for i, v := range now {
			next[i] = 2*(next[i]/c-v) - before[i]
		}
		before, now, next = now, next, before
	}
	s.basis, s.image, s.spare = now, before, next
	return nil
}

// orthonormalize replaces the columns of the n×width matrix x by orthonormal ones of the
// same span, or of a larger one if they are dependent. It returns the length of what was new
// in each column.
func orthonormalize(x []float64, n, width int) (lengths []float64) {
	var impl lapack.Implementation
	tau, work := make([]float64, width), make([]float64, 1)
	impl.Dgeqrf(n, width, x, width, tau, work, -1)
	work = make([]float64, int(work[0]))
	impl.Dgeqrf(n, width, x, width, tau, work, len(work))
	for i := range width {
		lengths = append(lengths, math.Abs(x[i*width+i]))
	}
	impl.Dorgqr(n, width, width, x, width, tau, work, len(work))
	return lengths
}

// transposed returns the transpose of a rows×columns matrix.
func transposed(x []float64, rows, columns int) []float64 {
	const block = 32
	y := make([]float64, len(x))
	for i0 := 0; i0 < rows; i0 += block {
		for j0 := 0; j0 < columns; j0 += block {
			for i := i0; i < min(rows, i0+block); i++ {
				for j := j0; j < min(columns, j0+block); j++ {
					y[j*rows+i] = x[i*columns+j]
				}
			}
		}
	}
	return y
}

// productSlices is into how many slices a device cuts the sums of a product of a matrix with
// a subspace, to keep all multiprocessors busy.
const productSlices = 4

// A deviceMatrix is a symmetric matrix on a device that multiplies the vectors of a subspace.
type deviceMatrix struct {
	device   *device.Device
	n, width int
	memory   device.Pieces // the matrix [n, n], vectors [n, width], and slices of a product [productSlices, n, width]
}

// newDeviceMatrix uploads a matrix, both of whose triangles are given.
func newDeviceMatrix(d *device.Device, matrix []float64, n, width int) (*deviceMatrix, error) {
	memory, err := d.AllocPieces(len(matrix)*8, n*width*8, productSlices*n*width*8)
	if err != nil {
		return nil, err
	}
	if err := device.Upload(d, memory.At(0), matrix); err != nil {
		memory.Free()
		return nil, err
	}
	return &deviceMatrix{d, n, width, memory}, nil
}

// multiply sets to to the matrix times from.
func (m *deviceMatrix) multiply(to, from []float64) error {
	tiles := (m.n + deviceTile - 1) / deviceTile * ((m.width + deviceTile - 1) / deviceTile)
	return cmp.Or(
		device.Upload(m.device, m.memory.At(1), from),
		m.device.Launch("components_multiply", device.Launch{Grid: tiles * productSlices, Block: deviceThreads},
			device.Arg(m.memory.At(2)), device.Arg(m.memory.At(0)), device.Arg(m.memory.At(1)), device.Int(m.n), device.Int(m.width), device.Int(productSlices)),
		m.device.Each("components_add_slices", len(to), device.Arg(m.memory.At(2)), device.Int(productSlices), device.Int(len(to))),
		device.Download(m.device, to, m.memory.At(2)),
	)
}
