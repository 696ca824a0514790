package data

import (
	"context"
	"math"

	lapack "gonum.org/v1/gonum/lapack/gonum"

	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/rng"
)

const (
	// oversampling is how many directions more than components are followed: the first
	// ones then converge as fast as the variance falls to that of the last.
	oversampling = 14
	// maxRounds bounds the rounds of the power iteration, and settled is the relative
	// change of a variance below which another one is not worth it.
	maxRounds, settled = 16, 1e-6
	// lanes is the number of directions that are computed at a time.
	lanes = blas.StripWidth
	// watchedRows is how many rows are computed between two looks at the context.
	watchedRows = 1 << 13
)

// FitSparsePCA finds the first k principal components of sparse points by a randomised
// method (Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review
// 2011, sections 4.5 and 5), without making them dense: k+14 directions, drawn at random
// by seed, are multiplied by the covariance matrix and made orthonormal again, until the
// variances along the first k of the best axes in their span change by less than one in
// 10⁶, or 16 times. The points' mean is subtracted from the products, not from the
// points. The covariance is shifted by a multiple of the unit matrix that the least of
// the variances allows, which makes convergence faster (Feng et al., Fast randomized PCA
// for sparse data, 2018).
//
// Components along which the points vary clearly more than along those that are left out
// are the exact ones to several digits. Of those with nearly equal variances the span is
// less certain, and so it is in the points. All is computed in float64. A round takes
// time as nnz·k; memory beyond m is about 32·D·(k+14) bytes.
//
// The rest is as FitPCA has it.
func FitSparsePCA(ctx context.Context, m *Matrix, k int, seed uint64) (*PCA, error) {
	if err := m.checkAny(); err != nil {
		return nil, err
	}
	if m.CSR == nil {
		return nil, errorf(ErrOption, "data: the points are dense; FitPCA finds their principal components")
	}
	if err := checkComponents(m.N, m.D, k); err != nil {
		return nil, err
	}
	if err := checkFinite(ctx, m, notFiniteAt); err != nil {
		return nil, err
	}
	mean, squares := m.CSR.moments(m.D)
	pca := newPCA(k, mean)
	for _, s := range squares {
		pca.TotalVariance += s / float64(m.N-1)
	}
	f := &sparseFit{CSR: m.CSR, mean: mean, width: min(k+oversampling, m.N, m.D)}
	found, err := f.run(ctx, pca, seed)
	if err != nil {
		return nil, err
	}
	pca.finish(found)
	return pca, nil
}

// moments returns the means of d columns, and the sums of squared deviations from them.
func (c *CSR) moments(d int) (mean, squares []float64) {
	mean, squares = make([]float64, d), make([]float64, d)
	n := len(c.Start) - 1
	held := make([]int, d)
	for k, j := range c.Column {
		mean[j] += float64(c.Value[k])
		held[j]++
	}
	for j := range mean {
		mean[j] /= float64(n)
		squares[j] = float64(n-held[j]) * mean[j] * mean[j]
	}
	for k, j := range c.Column {
		v := float64(c.Value[k]) - mean[j]
		squares[j] += v * v
	}
	return mean, squares
}

// A sparseFit looks for the principal axes of sparse points.
type sparseFit struct {
	*CSR
	mean  []float64
	width int // directions
}

// run sets the axes and variances of pca and returns how many axes it has found.
func (f *sparseFit) run(ctx context.Context, pca *PCA, seed uint64) (int, error) {
	d, width := len(f.mean), f.width
	basis, product := make([]float64, d*width), make([]float64, d*width)
	stream := rng.New(seed, rng.Components)
	for i := range basis {
		basis[i] = stream.Normal()
	}
	within := make([]float64, width*width)
	var before []float64
	shift := 0.
	for round := 1; ; round++ {
		orthonormalize(basis, d, width)
		if err := f.multiply(ctx, product, basis); err != nil {
			return 0, err
		}
		// The covariance within the span of the basis has the best axes in it as
		// eigenvectors.
		blas.Gemm(true, false, width, width, d, 1, basis, width, product, width, 0, within, width)
		values, vectors, err := largestEigen(ctx, within, width, width, nil)
		if err != nil {
			return 0, err
		}
		if round == maxRounds || unchanged(before, values[:pca.K]) {
			return f.axes(pca, basis, values, vectors), nil
		}
		before = append(before[:0], values[:pca.K]...)
		// A shift of half of the least eigenvalue that matters leaves those beyond it the
		// smallest in magnitude.
		shift = max(shift, (shift+values[width-1])/2)
		shift = min(shift, values[width-1]/2)
		for i, v := range basis {
			product[i] -= shift * v
		}
		basis, product = product, basis
	}
}

// unchanged tells whether variances have settled.
func unchanged(before, values []float64) bool {
	if before == nil {
		return false
	}
	for i, v := range values {
		if math.Abs(v-before[i]) > settled*v {
			return false
		}
	}
	return true
}

// axes sets the axes of pca to those that the eigenvectors name in a basis, and returns
// how many have a variance.
func (f *sparseFit) axes(pca *PCA, basis, values, vectors []float64) int {
	d, found := len(f.mean), 0
	for found < pca.K && values[found] > 0 {
		pca.Variance[found] = values[found] / float64(len(f.Start)-2)
		found++
	}
	blas.Gemm(false, true, found, d, f.width, 1, vectors, f.width, basis, f.width, 0, pca.Axes, d)
	return found
}

// orthonormalize replaces the columns of the d×width matrix x by orthonormal ones of the
// same span, or of a larger one if they are dependent.
func orthonormalize(x []float64, d, width int) {
	var impl lapack.Implementation
	tau := make([]float64, width)
	work := make([]float64, 1)
	impl.Dgeqrf(d, width, x, width, tau, work, -1)
	work = make([]float64, int(work[0]))
	impl.Dgeqrf(d, width, x, width, tau, work, len(work))
	impl.Dorgqr(d, width, width, x, width, tau, work, len(work))
}

// multiply sets product to n−1 times the covariance of the points times basis, both
// d×width.
func (f *sparseFit) multiply(ctx context.Context, product, basis []float64) error {
	d := len(f.mean)
	return parallel.ForContext(ctx, f.width, lanes, func(_, lo, hi int) {
		// A strip of the basis and one of the product stay in the second-level cache.
		from, to := make([]float64, d*lanes), make([]float64, d*lanes)
		var origin [lanes]float64 // the mean's coordinates
		for j, m := range f.mean {
			strip := (*[lanes]float64)(from[j*lanes:])
			copy(strip[:hi-lo], basis[j*f.width+lo:j*f.width+hi])
			for t, v := range strip {
				origin[t] += m * v
			}
		}
		var sum [lanes]float64
		for first := 0; first < len(f.Start)-1 && ctx.Err() == nil; first += watchedRows {
			f.spread(to, from, first, min(len(f.Start)-1, first+watchedRows), &origin, &sum)
		}
		for j, m := range f.mean {
			for t := range hi - lo {
				product[j*f.width+lo+t] = to[j*lanes+t] - m*sum[t]
			}
		}
	})
}

// spread adds to the strip to, [d, lanes], the coordinates along the strip from of the
// points first to last−1 about the origin, times these points. It adds the coordinates
// to sum.
func (f *sparseFit) spread(to, from []float64, first, last int, origin, sum *[lanes]float64) {
	for i := first; i < last; i++ {
		column, value := f.row(i)
		var y [blas.StripWidth]float64
		blas.SumStrip(column, value, from, &y)
		for t := range y {
			y[t] -= origin[t]
			sum[t] += y[t]
		}
		blas.SpreadStrip(column, value, to, &y)
	}
}

// transformSparse is TransformTo of sparse points.
func (p *PCA) transformSparse(ctx context.Context, dst *Matrix, c *CSR, origin []float64) error {
	axes := make([]float64, p.D*p.K)
	transpose(axes, p.Axes, p.K, p.D)
	return parallel.ForContext(ctx, dst.N, csrGrain, func(_, lo, hi int) {
		sum := make([]float64, p.K)
		for i := lo; i < hi; i++ {
			clear(sum)
			column, value := c.row(i)
			for k, j := range column {
				v := float64(value[k])
				for a, x := range axes[int(j)*p.K:][:p.K] {
					sum[a] += v * x
				}
			}
			for a, v := range sum {
				dst.X[i*p.K+a] = float32(v - origin[a])
			}
		}
	})
}
