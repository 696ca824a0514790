package data

import (
	"context"
	"math"
	"slices"

	"cne/internal/blas"
	"cne/internal/parallel"
)

const (
	// chunkValues is the number of float64 values that are held of the data
	// at a time: 8 MB.
	chunkValues = 1 << 20
	// chunkRows bounds the rows of a chunk from above, which matters for
	// narrow data only.
	chunkRows = 1 << 13
	// tile is the width of the strips of a covariance matrix whose parts left
	// of the diagonal are not computed.
	tile = 128
	// fillGrain is the number of rows that are converted in one piece.
	fillGrain = 64
	// farFromZero is the ratio of mean to standard deviation above which a
	// column is centred before products are formed. Below it, correcting them
	// afterwards costs two of float64's sixteen digits at most, and zeros,
	// which the product skips, stay zeros.
	farFromZero = 10
)

// A PCA is a set of principal components: the directions in which points vary
// most, in order, with the variance along each.
type PCA struct {
	K int `json:"k"` // number of components
	D int `json:"d"` // width of the points
	// Mean is the mean of the points, with their Offset, of length D.
	Mean []float64 `json:"mean"`
	// Axes holds K orthonormal rows of length D. The component of largest
	// magnitude of each is positive; among components that agree with it to
	// six digits, the first counts.
	Axes []float64 `json:"axes"`
	// Variance is the variance of the points along each axis (sum of squares
	// divided by n-1), in descending order, of length K.
	Variance []float64 `json:"variance"`
	// TotalVariance is the sum of the variances of all columns, in which
	// Variance has its share.
	TotalVariance float64 `json:"total_variance"`
}

// FitPCA finds the first k principal components of the points of m, exactly:
// through the eigenvectors of the covariance matrix, or, with fewer points than
// columns, of the n×n matrix of the points' inner products. Everything is
// computed in float64, or without rounding in float32 where the values are
// unscaled bytes, which is faster. Time grows as n·D·min(n,D) + min(n,D)³;
// memory beyond m is of the order of min(n,D)².
//
// A device forms the products, which take most of the time, in float64, and the
// CPU finds the eigenvectors; the results agree up to the rounding of sums.
// Beside the products the device holds 256 MiB of the points, or, if they are
// fewer than their columns, all of them. On nil, everything is the CPU's.
//
// If the points span fewer than k dimensions, the surplus axes are unit
// vectors orthogonal to all others, but otherwise arbitrary, and their
// Variance is exactly 0. A variance that float64 cannot tell from 0 counts as
// 0.
//
// k below 1 or above min(n, D) gives ErrOption, fewer than two points
// ErrEmpty, a value that is NaN or infinite ErrNotFinite (Dataset.Check says
// which), and sparse points, for which there is FitSparsePCA, ErrSparse. Errors are also
// the device's, and ctx's if it ends before.
func FitPCA(ctx context.Context, m *Matrix, k int, on *Device) (*PCA, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := checkComponents(m, k); err != nil {
		return nil, err
	}
	c := columnMoments(m)
	pca := newPCA(k, slices.Clone(c.mean))
	for j, o := range m.Offset {
		pca.Mean[j] += o
	}
	f := &pcaFit{m: m, mean: c.mean, device: on}
	for j := range m.D {
		if c.constant[j] {
			continue
		}
		pca.TotalVariance += c.squares[j] / float64(m.N-1)
		shift := 0.0
		if math.Abs(c.mean[j]) > farFromZero*c.sd(j, m.N-1) {
			shift = c.mean[j]
		}
		f.columns = append(f.columns, j)
		f.shift = append(f.shift, shift)
	}

	found := 0
	var err error
	switch width := len(f.columns); {
	case width == 0: // all points are equal
	case width <= m.N:
		found, err = f.fromCovariance(ctx, pca)
	default:
		found, err = f.fromGram(ctx, pca)
	}
	if err != nil {
		return nil, err
	}
	pca.finish(found)
	return pca, nil
}

// checkComponents says why points have no k principal components.
func checkComponents(m *Matrix, k int) error {
	if m.N < 2 {
		return errorf(ErrEmpty, "data: principal components need at least two points; there is one")
	}
	if limit := min(m.N, m.D); k < 1 || k > limit {
		return errorf(ErrOption, "data: %d principal components are asked of %d points of %d values; ask for 1 to %d", k, m.N, m.D, limit)
	}
	if row, column, v, ok := m.firstNotFinite(); ok {
		return errorf(ErrNotFinite, "data: row %d, column %d (both counted from 1) is %v; remove the row or replace the value", row+1, column+1, v)
	}
	return nil
}

// newPCA returns k axes that are still zeros.
func newPCA(k int, mean []float64) *PCA {
	return &PCA{K: k, D: len(mean), Mean: mean, Axes: make([]float64, k*len(mean)), Variance: make([]float64, k)}
}

// finish completes axes of which the first found are known.
func (p *PCA) finish(found int) {
	p.complete(found)
	for a := range p.K {
		fixSign(p.axis(a))
	}
}

// axis returns axis a, which shares memory with Axes.
func (p *PCA) axis(a int) []float64 { return p.Axes[a*p.D : (a+1)*p.D] }

// A pcaFit is what the two ways to the components have in common.
type pcaFit struct {
	m       *Matrix
	mean    []float64 // of all columns
	columns []int     // those that are not constant
	shift   []float64 // what is subtracted from each of these at first
	device  *Device
}

// fromCovariance sets the axes and variances of pca and returns how many axes
// it has found.
func (f *pcaFit) fromCovariance(ctx context.Context, pca *PCA) (int, error) {
	n, width := f.m.N, len(f.columns)
	var cov []float64
	var err error
	if !f.device.OnHost() {
		cov, err = f.deviceProducts(ctx, false)
	} else if shifted := slices.ContainsFunc(f.shift, func(s float64) bool { return s != 0 }); !shifted && areBytes(f.m.X) {
		cov, err = f.upperByteProducts(ctx)
	} else {
		cov, err = f.upperProducts(ctx, n, width, f.fillRows)
	}
	if err != nil {
		return 0, err
	}
	// Σ(x-s)(y-s') - n·(x̄-s)(ȳ-s') is the sum about the means.
	for a, ja := range f.columns {
		da := f.mean[ja] - f.shift[a]
		row := cov[a*width : (a+1)*width]
		for b := a; b < width; b++ {
			db := f.mean[f.columns[b]] - f.shift[b]
			row[b] = (row[b] - float64(n)*da*db) / float64(n-1)
		}
	}
	values, vectors, err := largestEigen(ctx, cov, width, min(pca.K, width))
	if err != nil {
		return 0, err
	}
	for a, v := range values {
		pca.Variance[a] = v
		axis := pca.axis(a)
		for b, j := range f.columns {
			axis[j] = vectors[a*width+b]
		}
	}
	return len(values), nil
}

// fromGram does what fromCovariance does for points that are fewer than their
// columns. If X is the centred data and X·Xᵀ·u = λ·u, then Xᵀ·u/√λ is an axis.
func (f *pcaFit) fromGram(ctx context.Context, pca *PCA) (int, error) {
	n, width := f.m.N, len(f.columns)
	var gram []float64
	var err error
	if f.device.OnHost() {
		gram, err = f.upperProducts(ctx, width, n, f.fillColumns)
	} else {
		gram, err = f.deviceProducts(ctx, true)
	}
	if err != nil {
		return 0, err
	}
	centerGram(gram, n)
	values, vectors, err := largestEigen(ctx, gram, n, min(pca.K, n))
	if err != nil {
		return 0, err
	}
	rank := 0
	for rank < len(values) && values[rank] > 0 {
		rank++
	}
	if rank == 0 {
		return 0, nil
	}
	// The eigenvectors as columns, largest eigenvalue first. Their components
	// add up to 0 because the data are centred; made exact, this makes good
	// for data that are not.
	u := make([]float64, n*rank)
	for a := range rank {
		vector := vectors[a*n : (a+1)*n]
		mean := 0.0
		for _, v := range vector {
			mean += v
		}
		mean /= float64(n)
		for i, v := range vector {
			u[i*rank+a] = v - mean
		}
		pca.Variance[a] = values[a] / float64(n-1)
	}
	chunk := chunkOf(n)
	buf := make([]float64, chunk*n)
	product := make([]float64, chunk*rank)
	for lo := 0; lo < width; lo += chunk {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		rows := min(chunk, width-lo)
		f.fill(buf, lo, rows, n, f.fillColumns)
		blas.Gemm(false, false, rows, rank, n, 1, buf, n, u, rank, 0, product, rank)
		for b := range rows {
			for a := range rank {
				pca.Axes[a*pca.D+f.columns[lo+b]] = product[b*rank+a]
			}
		}
	}
	// The axes of small eigenvalues have lost some of their orthogonality.
	// Orthogonalising in the order of the eigenvalues leaves the good ones as
	// they are; a direction that is nothing but noise is given up.
	found := 0
	for a := range rank {
		axis := pca.axis(a)
		if !scaleToUnit(axis) || orthogonalize(axis, pca.Axes[:found*pca.D]) < 0.5 {
			clear(axis)
			pca.Variance[a] = 0
			continue
		}
		if a != found {
			copy(pca.axis(found), axis)
			pca.Variance[found], pca.Variance[a] = pca.Variance[a], 0
			clear(axis)
		}
		found++
	}
	return found, nil
}

// chunkOf returns how many rows of a width are converted at a time.
func chunkOf(width int) int { return min(chunkRows, max(1, chunkValues/width)) }

// fill converts rows [lo, lo+rows) of an operand into buf.
func (f *pcaFit) fill(buf []float64, lo, rows, width int, fill func(dst []float64, lo, hi int)) {
	parallel.For(rows, fillGrain, func(_, from, to int) {
		fill(buf[from*width:to*width], lo+from, lo+to)
	})
}

// fillRows writes points lo to hi, without their constant columns and less
// the shift, one after the other.
func (f *pcaFit) fillRows(dst []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := f.m.Row(i)
		out := dst[(i-lo)*len(f.columns):][:len(f.columns)]
		for b, j := range f.columns {
			out[b] = float64(row[j]) - f.shift[b]
		}
	}
}

// fillColumns writes the columns lo to hi, counted without the constant ones,
// one after the other.
func (f *pcaFit) fillColumns(dst []float64, lo, hi int) {
	n := f.m.N
	for i := range n {
		row := f.m.Row(i)
		for b := lo; b < hi; b++ {
			dst[(b-lo)*n+i] = float64(row[f.columns[b]]) - f.shift[b]
		}
	}
}

// upperProducts returns the upper triangle of AᵀA, width×width, for the
// rows×width matrix A that fill writes piece by piece. What is left of the
// diagonal is unspecified.
func (f *pcaFit) upperProducts(ctx context.Context, rows, width int, fill func(dst []float64, lo, hi int)) ([]float64, error) {
	c := make([]float64, width*width)
	chunk := min(rows, chunkOf(width))
	buf := make([]float64, chunk*width)
	for lo := 0; lo < rows; lo += chunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(chunk, rows-lo)
		f.fill(buf, lo, n, width, fill)
		// One strip after the other, each from the diagonal to the right.
		// The chunks are added one by one, so that the order is fixed.
		parallel.For(width, tile, func(_, from, to int) {
			blas.Gemm(true, false, to-from, width-from, n, 1, buf[from:], width, buf[from:], width, 1, c[from*width+from:], width)
		})
	}
	return c, nil
}

// centerGram turns the upper triangle of the products of points about any
// origin into that of the products about their mean.
func centerGram(gram []float64, n int) {
	mean := make([]float64, n) // of each row
	for i := range n {
		for j := i; j < n; j++ {
			v := gram[i*n+j]
			mean[i] += v
			if j != i {
				mean[j] += v
			}
		}
	}
	all := 0.0
	for i := range n {
		mean[i] /= float64(n)
		all += mean[i]
	}
	all /= float64(n)
	for i := range n {
		for j := i; j < n; j++ {
			gram[i*n+j] += all - mean[i] - mean[j]
		}
	}
}

// complete adds orthonormal axes after the first count ones.
func (p *PCA) complete(count int) {
	if count >= p.K {
		return
	}
	// taken is the share of each unit vector that lies in the axes' span. The
	// one with the smallest share is far from it: the shares add up to the
	// number of axes, which is below D.
	taken := make([]float64, p.D)
	include := func(axis []float64) {
		for j, v := range axis {
			taken[j] += v * v
		}
	}
	for a := range count {
		include(p.axis(a))
	}
	for a := count; a < p.K; a++ {
		least := 0
		for j, t := range taken {
			if t < taken[least] {
				least = j
			}
		}
		axis := p.axis(a)
		clear(axis)
		axis[least] = 1
		orthogonalize(axis, p.Axes[:a*p.D])
		include(axis)
	}
}

// fixSign turns an axis round if its leading component is negative. Of two
// columns that share the variance evenly, the rounding of float32 data decides
// which component is the larger, so that the first of nearly equal ones counts.
func fixSign(axis []float64) {
	largest := 0.0
	for _, v := range axis {
		largest = max(largest, math.Abs(v))
	}
	for _, v := range axis {
		if math.Abs(v) < largest*(1-1e-6) {
			continue
		}
		if v < 0 {
			for j := range axis {
				axis[j] = -axis[j]
			}
		}
		return
	}
}

// Transform returns the coordinates of the points of m along the axes: an N×K
// matrix, computed on a device, or on the CPU if that is nil or the points are sparse;
// the results agree up to the rounding of sums in float64. Points of another width than D give
// ErrShape. Errors are also the device's, and ctx's if it ends before.
func (p *PCA) Transform(ctx context.Context, m *Matrix, on *Device) (*Matrix, error) {
	if err := p.checkPoints(m); err != nil {
		return nil, err
	}
	dst := NewMatrix(m.N, p.K)
	if err := p.TransformTo(ctx, dst, m, on); err != nil {
		return nil, err
	}
	return dst, nil
}

// TransformTo writes what Transform returns into dst, which must be N×K and
// not share memory with m; other shapes give ErrShape. After an error dst may
// hold some of the coordinates.
func (p *PCA) TransformTo(ctx context.Context, dst, m *Matrix, on *Device) error {
	if err := p.checkPoints(m); err != nil {
		return err
	}
	if dst == nil {
		return errorf(ErrShape, "data: there is no matrix for %d points along %d axes; make one of %[1]d×%[2]d", m.N, p.K)
	}
	if dst.N != m.N || dst.D != p.K || len(dst.X) != m.N*p.K {
		return errorf(ErrShape, "data: %d points along %d axes do not fit a matrix of %d×%d; make it %[1]d×%[2]d", m.N, p.K, dst.N, dst.D)
	}
	// The product skips zeros on its left side, so the mean is subtracted
	// afterwards, as its own coordinates.
	origin := make([]float64, p.K)
	for a := range p.K {
		for j, v := range p.axis(a) {
			mean := p.Mean[j]
			if m.Offset != nil {
				mean -= m.Offset[j]
			}
			origin[a] += v * mean
		}
	}
	if m.CSR != nil {
		return p.transformSparse(ctx, dst, m.CSR, origin)
	}
	if !on.OnHost() {
		return p.transformOnDevice(ctx, on, dst, m, origin)
	}
	axes := make([]float64, p.D*p.K)
	transpose(axes, p.Axes, p.K, p.D)
	chunk := min(m.N, chunkOf(p.D+p.K))
	x := make([]float64, chunk*p.D)
	y := make([]float64, chunk*p.K)
	for lo := 0; lo < m.N; lo += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunk, m.N-lo)
		parallel.For(n, fillGrain, func(_, from, to int) {
			for i, v := range m.X[(lo+from)*p.D : (lo+to)*p.D] {
				x[from*p.D+i] = float64(v)
			}
		})
		blas.Gemm(false, false, n, p.K, p.D, 1, x, p.D, axes, p.K, 0, y, p.K)
		for i := range n {
			for a, v := range y[i*p.K : (i+1)*p.K] {
				dst.X[(lo+i)*p.K+a] = float32(v - origin[a])
			}
		}
	}
	return nil
}

// checkPoints reports what keeps the components from being used on points.
func (p *PCA) checkPoints(m *Matrix) error {
	if err := m.checkAny(); err != nil {
		return err
	}
	return p.check(m.D)
}

// check reports what keeps the components from points of d values.
func (p *PCA) check(d int) error {
	if p.K < 1 || p.D < 1 || len(p.Mean) != p.D || len(p.Axes)/p.D != p.K || len(p.Axes)%p.D != 0 {
		return errorf(ErrShape, "data: the principal components are inconsistent: K is %d, D %d, but Mean has %d values and Axes %d; fit them again", p.K, p.D, len(p.Mean), len(p.Axes))
	}
	if d != p.D {
		return errorf(ErrShape, "data: the principal components are those of points of %d values, these have %d; transform points of the same width", p.D, d)
	}
	return nil
}
