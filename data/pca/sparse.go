package pca

import (
	"context"
	"math"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/eigen"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
)

const (
	// oversampling is the number of directions in addition to the components. The more the
	// variance falls over them, the faster the components converge.
	oversampling = 14
	// sparseProducts bounds the products with the covariance matrix. An axis has converged
	// if its residual is at most settled times the first variance and settledOwn times its
	// own variance.
	sparseProducts, settled, settledOwn = 16, 1e-6, 1e-4
	// lanes is the number of directions that are computed at a time.
	lanes = blas.StripWidth
	// watchedRows is the number of rows computed between two checks of the context.
	watchedRows = 1 << 13
	// rowGrain is the number of points in a piece of work of Transform.
	rowGrain = 256
)

// FitSparse finds the first k principal components of sparse points by a randomised
// method, without making the points dense (Halko, Martinsson and Tropp, Finding structure
// with randomness, SIAM Review 2011, sections 4.5 and 5). Polynomials of the covariance
// matrix turn k+14 directions, drawn with seed, towards the components. This ends when
// the components have converged, or after 16 products. Fewer points than columns are the
// directions' coordinates instead.
//
// Components with a variance clearly above the left-out ones agree with Fit's to several
// digits. If variances are nearly equal, the axes are less certain. FitSparse computes in
// float64. The time of a product grows as the number of nonzero values times k. Memory
// beyond m is about 40·min(n, D)·(k+14) bytes, and 8·D·(k+32).
//
// For dense points the error wraps data.ErrOption. Other errors are as for Fit.
func FitSparse(ctx context.Context, m *data.Matrix, k int, seed uint64) (_ *PCA, err error) {
	defer kind.Catch(&err)
	kind.Check(m.Check())
	kind.Need(m.CSR != nil, data.ErrOption, "pca: got dense points, want sparse ones")
	checkComponents(m.N, m.D, k)
	kind.Check(data.CheckFinite(ctx, m))
	mean, squares := moments(m.CSR, m.D)
	pca := newPCA(k, mean)
	for _, s := range squares {
		pca.TotalVariance += s / float64(m.N-1)
	}
	f := &sparseFit{CSR: m.CSR, mean: mean, width: min(k+oversampling, m.N, m.D)}
	size, multiply := m.D, f.multiply
	if m.N < m.D {
		size, multiply = m.N, f.multiplyRows
	}
	space := newSubspace(size, f.width, rng.New(seed, rng.Components), func(to, from []float64) { kind.Check(multiply(ctx, to, from)) })
	values, _ := space.eigen(k, settled, settledOwn, sparseProducts)
	found, noise := 0, values[0]*noiseOf(f.width)
	for found < k && values[found] > noise {
		pca.Variance[found] = values[found] / float64(m.N-1)
		found++
	}
	if m.N < m.D {
		f.axes(pca.Axes, space.basis, values[:found])
	} else {
		copy(pca.Axes, eigen.Transposed(space.basis, m.D, f.width)[:found*m.D])
	}
	pca.finish(found)
	return pca, ctx.Err()
}

// moments returns the means of d columns, and the sums of squared deviations from them.
func moments(c *data.CSR, d int) (mean, squares []float64) {
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
		squares[j] += float64(v * v)
	}
	return mean, squares
}

// A sparseFit looks for the principal axes of sparse points.
type sparseFit struct {
	*data.CSR
	mean  []float64
	width int // directions
}

// multiply sets product to n−1 times the covariance of the points times basis. Both are
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
				origin[t] += float64(m * v)
			}
		}
		var sum [lanes]float64
		for first := 0; first < len(f.Start)-1 && ctx.Err() == nil; first += watchedRows {
			f.spread(to, from, first, min(len(f.Start)-1, first+watchedRows), &origin, &sum)
		}
		for j, m := range f.mean {
			for t := range hi - lo {
				product[j*f.width+lo+t] = to[j*lanes+t] - float64(m*sum[t])
			}
		}
	})
}

// combine returns the directions lo to hi−1 of basis [n, width], which combine the centred
// points, as a strip [d, lanes].
func (f *sparseFit) combine(basis []float64, lo, hi int) []float64 {
	strip := make([]float64, len(f.mean)*lanes)
	var sum [lanes]float64
	for i := range len(f.Start) - 1 {
		var y [blas.StripWidth]float64
		copy(y[:], basis[i*f.width+lo:i*f.width+hi])
		for t, v := range y {
			sum[t] += v
		}
		column, value := f.Row(i)
		blas.ScatterStrip(column, value, strip, &y)
	}
	for j, m := range f.mean {
		for t, s := range sum {
			strip[j*lanes+t] -= float64(m * s)
		}
	}
	return strip
}

// multiplyRows sets product to the inner products of the centred points, [n, n], times basis.
// Both are n×width.
func (f *sparseFit) multiplyRows(ctx context.Context, product, basis []float64) error {
	return parallel.ForContext(ctx, f.width, lanes, func(_, lo, hi int) {
		if ctx.Err() != nil {
			return
		}
		strip := f.combine(basis, lo, hi)
		var origin [lanes]float64 // the mean's coordinates
		for j, m := range f.mean {
			for t := range origin {
				origin[t] += float64(m * strip[j*lanes+t])
			}
		}
		for i := range len(f.Start) - 1 {
			var y [blas.StripWidth]float64
			column, value := f.Row(i)
			blas.SumStrip(column, value, strip, &y)
			for t := range hi - lo {
				product[i*f.width+lo+t] = y[t] - origin[t]
			}
		}
	})
}

// axes writes the axes to which the eigenvectors in basis combine the centred points; values are
// their eigenvalues.
func (f *sparseFit) axes(to, basis []float64, values []float64) {
	d := len(f.mean)
	parallel.For(len(values), lanes, func(_, lo, hi int) {
		strip := f.combine(basis, lo, hi)
		for c := lo; c < hi; c++ {
			for j := range d {
				to[c*d+j] = strip[j*lanes+c-lo] / math.Sqrt(values[c])
			}
		}
	})
}

// spread computes the coordinates of the points first to last−1, relative to origin,
// along the strip from [d, lanes]. It adds the coordinates times the points to the strip
// to [d, lanes], and the coordinates to sum.
func (f *sparseFit) spread(to, from []float64, first, last int, origin, sum *[lanes]float64) {
	for i := first; i < last; i++ {
		column, value := f.Row(i)
		var y [blas.StripWidth]float64
		blas.SumStrip(column, value, from, &y)
		for t := range y {
			y[t] -= origin[t]
			sum[t] += y[t]
		}
		blas.ScatterStrip(column, value, to, &y)
	}
}

// transformSparse is Transform of sparse points. origin are the coordinates of the mean.
func (p *PCA) transformSparse(ctx context.Context, dst *data.Matrix, c *data.CSR, origin []float64) error {
	axes := eigen.Transposed(p.Axes, p.K, p.D)
	return parallel.ForContext(ctx, dst.N, rowGrain, func(_, lo, hi int) {
		sum := make([]float64, p.K)
		for i := lo; i < hi; i++ {
			clear(sum)
			column, value := c.Row(i)
			for k, j := range column {
				v := float64(value[k])
				for a, x := range axes[int(j)*p.K:][:p.K] {
					sum[a] += float64(v * x)
				}
			}
			for a, v := range sum {
				dst.X[i*p.K+a] = float32(v - origin[a])
			}
		}
	})
}
