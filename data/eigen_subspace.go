package data

import (
	"context"
	"errors"
	"fmt"
	"math"

	"cne/internal/blas"
	"cne/internal/device"
	"cne/internal/rng"
)

const (
	// subspaceFrom is the order of matrices from which on few eigenvectors come from
	// subspaceEigen: a tridiagonal form takes time as the cube of the order, and products as
	// its square.
	subspaceFrom = 512
	// farthest bounds by what factor a filter makes the first direction of a subspace grow
	// beyond the last that is wanted: what is left of the last then keeps six digits.
	farthest = 1e10
	// highestDegree bounds the degree of a filter, and mostRounds how many there are.
	highestDegree, mostRounds = 24, 60
	// orthogonal is how far the products of orthonormal vectors may be from 0 and 1.
	orthogonal = 2e-14
	// orthogonalRounds bounds how often vectors are made orthonormal until they are.
	orthogonalRounds = 8
)

// subspaceEigen computes the k largest eigenvalues of the symmetric n×n matrix whose upper
// triangle a holds, and their eigenvectors, by subspace iteration with Chebyshev filters
// (Zhou, Saad, Tiago and Chelikowsky, 2006). Eigenvalues below 0 must be no more than
// rounding, as those of covariances are. Nearly all of the work are products of a with
// somewhat more than k vectors, which all cores share, where a tridiagonal form is made
// on one.
//
// The subspace has random directions at first. A polynomial of the matrix, which is small
// between 0 and the least eigenvalue that is in sight and grows quickly beyond, turns them
// towards the eigenvectors of the largest ones, again and again, until the residual of each
// wanted eigenvector is of the order of rounding, as someEigen demands it. As there are more
// directions than are wanted, none of the largest eigenvalues can be missed, be they as
// often the same as they like.
//
// It returns nothing if that would take longer than someEigen does, because the eigenvalues
// that are wanted are hardly larger than those that are not, or if ctx ends. On a device, the
// products of the matrix are computed there, if it has room for it; errors are the device's.
func subspaceEigen(ctx context.Context, a []float64, n, k int, on *Device) (values, vectors []float64, err error) {
	s, err := newSubspace(a, n, k, on)
	if s == nil {
		return nil, nil, err
	}
	defer s.free()
	return s.eigen(ctx, k)
}

// newSubspace returns a random subspace, orthonormal, in which k eigenvectors can be found;
// nothing if there is none.
func newSubspace(a []float64, n, k int, on *Device) (*subspace, error) {
	const strip = 16 // columns that products compute together
	width := (k + k/4 + 8 + strip - 1) / strip * strip
	s := &subspace{n: n, width: width, matrix: mirrored(a, n), stream: rng.New(uint64(n), rng.Components)}
	for _, x := range []*[]float64{&s.basis, &s.image, &s.spare} {
		*x = make([]float64, n*width)
	}
	for i := range s.basis {
		s.basis[i] = s.stream.Normal()
	}
	if !s.orthonormalize() {
		return nil, nil
	}
	if on.OnHost() {
		return s, nil
	}
	var full *device.MemoryError
	var err error
	s.device, err = newDeviceMatrix(on, s.matrix, n, width)
	if errors.As(err, &full) {
		on.Say(fmt.Sprintf("the eigenvectors of the principal components are found by the CPU, since %v", err))
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// free gives back what is on a device.
func (s *subspace) free() {
	if s.device != nil {
		s.device.free()
	}
}

// eigen turns the subspace to the k largest eigenvalues: see subspaceEigen.
func (s *subspace) eigen(ctx context.Context, k int) (values, vectors []float64, err error) {
	n, width := s.n, s.width
	most := 8 * n / width // products, which then take as long as a tridiagonal form
	for round := range mostRounds {
		if ctx.Err() != nil {
			return nil, nil, nil
		}
		if err := s.project(); err != nil {
			return nil, nil, err
		}
		values = s.rotate()
		if values == nil {
			return nil, nil, nil
		}
		size := max(values[0], -values[width-1])
		tolerance := size * ulp * float64(16+n/32)
		worst := s.residual(values[:k])
		if worst <= tolerance {
			return values[:k], s.first(k), nil
		}
		// Between 0 and high all shall become small.
		high := max(values[width-1], size*ulp*float64(n))
		growth := func(value float64) float64 { return math.Acosh(max(1, 2*value/high-1)) }
		first, last := growth(values[0]), growth(values[k-1])
		degree := min(1<<min(round, 10), highestDegree)
		if apart := first - last; float64(degree)*apart > math.Log(farthest) {
			degree = max(1, int(math.Log(farthest)/apart))
		}
		if left := math.Log(worst/tolerance) / last; round > 3 && !(float64(s.products)+left <= float64(most)) {
			return nil, nil, nil
		}
		if err := s.filter(degree, high/2); err != nil {
			return nil, nil, err
		}
		if !s.orthonormalize() {
			return nil, nil, nil
		}
	}
	return nil, nil, nil
}

// A subspace is spanned by orthonormal vectors of length n, the columns of basis, n×width.
type subspace struct {
	n, width            int
	matrix              []float64 // n×n, both triangles
	basis, image, spare []float64 // image is the matrix times the basis
	products            int       // of the matrix with as many vectors
	stream              rng.Stream
	device              *deviceMatrix // multiplies; nil: the CPU does
}

// mirrored returns a symmetric matrix whose upper triangle is given.
func mirrored(upper []float64, n int) []float64 {
	a := make([]float64, n*n)
	transpose(a, upper, n, n)
	for i := range n {
		copy(a[i*n+i:(i+1)*n], upper[i*n+i:(i+1)*n])
	}
	return a
}

// multiply sets to to alpha times the matrix times from.
func (s *subspace) multiply(to, from []float64, alpha float64) {
	blas.Gemm(true, false, s.n, s.width, s.n, alpha, s.matrix, s.n, from, s.width, 0, to, s.width)
}

// project computes the image of the basis.
func (s *subspace) project() error {
	s.products++
	if s.device != nil {
		return s.device.project(s.image, s.basis)
	}
	s.multiply(s.image, s.basis, 1)
	return nil
}

// rotate turns the basis, and its image, so that it consists of the best approximations to
// eigenvectors that there are in the subspace, and returns their eigenvalues in descending
// order (Rayleigh and Ritz); nothing if they cannot be computed.
func (s *subspace) rotate() []float64 {
	within := make([]float64, s.width*s.width)
	blas.Gemm(true, false, s.width, s.width, s.n, 1, s.basis, s.width, s.image, s.width, 0, within, s.width)
	for i := range s.width {
		for j := range i {
			within[j*s.width+i] = (within[i*s.width+j] + within[j*s.width+i]) / 2
		}
	}
	values, vectors := allEigen(within, s.width, s.width)
	if values == nil {
		return nil
	}
	turn := make([]float64, s.width*s.width)
	transpose(turn, vectors, s.width, s.width)
	for _, x := range []*[]float64{&s.basis, &s.image} {
		s.combine(*x, turn)
		*x, s.spare = s.spare, *x
	}
	return values
}

// combine sets spare to x times a width×width matrix.
func (s *subspace) combine(x, by []float64) {
	blas.Gemm(false, false, s.n, s.width, s.width, 1, x, s.width, by, s.width, 0, s.spare, s.width)
}

// residual returns the largest length of image − value·basis, of the first vectors.
func (s *subspace) residual(values []float64) float64 {
	squares := make([]float64, len(values))
	for i := range s.n {
		basis, image := s.basis[i*s.width:], s.image[i*s.width:]
		for c, v := range values {
			r := image[c] - v*basis[c]
			squares[c] += r * r
		}
	}
	worst := 0.
	for _, v := range squares {
		if !(v <= worst) { // also if it is no number
			worst = v
		}
	}
	return math.Sqrt(worst)
}

// first returns the first vectors of the basis, one after the other.
func (s *subspace) first(k int) []float64 {
	all := make([]float64, s.width*s.n)
	transpose(all, s.basis, s.n, s.width)
	return all[:k*s.n]
}

// filter replaces the basis by T((A−c)/c) times it, where A is the matrix and T Chebyshev's
// polynomial of a degree of at least 1: from 0 to 2c it stays between −1 and 1.
func (s *subspace) filter(degree int, c float64) error {
	before, now, next := s.basis, s.image, s.spare
	for i, v := range before {
		now[i] = now[i]/c - v
	}
	s.products += degree - 1
	if s.device != nil {
		s.basis, s.image = now, before
		return s.device.filter(before, now, degree, c)
	}
	for range degree - 1 {
		// T(j+1) = 2·(A−c)/c·T(j) − T(j−1)
		s.multiply(next, now, 2/c)
		for i, v := range now {
			next[i] -= 2*v + before[i]
		}
		before, now, next = now, next, before
	}
	s.basis, s.image, s.spare = now, before, next
	return nil
}

// orthonormalize makes the basis orthonormal without changing its span, by Cholesky's
// decomposition of its products, again and again, shifted where they do not suffice for it
// (Fukaya et al., 2020). It reports whether it has come to an end.
func (s *subspace) orthonormalize() bool {
	n, width := s.n, s.width
	s.scaleColumns()
	products := make([]float64, width*width)
	for range orthogonalRounds {
		blas.Gemm(true, false, width, width, n, 1, s.basis, width, s.basis, width, 0, products, width)
		off := 0.
		for i := range width {
			for j := range width {
				d := products[i*width+j]
				if i == j {
					d--
				}
				if !(math.Abs(d) <= off) {
					off = math.Abs(d)
				}
			}
		}
		if off <= orthogonal {
			return true
		}
		inverse := inverseCholesky(products, width, 11*ulp*float64(n*width+width*width))
		if inverse == nil {
			return false
		}
		s.combine(s.basis, inverse)
		s.basis, s.spare = s.spare, s.basis
	}
	return false
}

// scaleColumns gives each vector of the basis the length 1, and takes a random one in place
// of one that is 0 or not finite.
func (s *subspace) scaleColumns() {
	column := make([]float64, s.n)
	for c := range s.width {
		for i := range column {
			column[i] = s.basis[i*s.width+c]
		}
		for !scaleToUnit(column) {
			for i := range column {
				column[i] = s.stream.Normal()
			}
		}
		for i, v := range column {
			s.basis[i*s.width+c] = v
		}
	}
}

// inverseCholesky returns the inverse of R, where RᵀR is a symmetric n×n matrix of 1 on the
// diagonal, about, to whose diagonal the shift is added if it is not positive definite
// without; nothing if it is not even then.
func inverseCholesky(a []float64, n int, shift float64) []float64 {
	r := make([]float64, n*n)
	decompose := func(shift float64) bool {
		for i := range n {
			row := r[i*n : (i+1)*n]
			copy(row[i:], a[i*n+i:(i+1)*n])
			row[i] += shift
			for l := range i {
				f := r[l*n+i]
				for j, v := range r[l*n+i : (l+1)*n] {
					row[i+j] -= f * v
				}
			}
			if !(row[i] > shift/2+ulp) {
				return false
			}
			scale := 1 / math.Sqrt(row[i])
			for j := i; j < n; j++ {
				row[j] *= scale
			}
		}
		return true
	}
	if !decompose(0) && !decompose(shift) {
		return nil
	}
	// The rows of the inverse X from X·R = I: x(j) = (δ(j) − Σ x(l)·r(l,j)) / r(j,j).
	inverse := make([]float64, n*n)
	for i := range n {
		x := inverse[i*n : (i+1)*n]
		x[i] = 1
		for l := i; l < n; l++ {
			x[l] /= r[l*n+l]
			f := x[l]
			for j := l + 1; j < n; j++ {
				x[j] -= f * r[l*n+j]
			}
		}
	}
	return inverse
}
