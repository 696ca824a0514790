package data

import (
	"context"
	"math"
	"slices"
	"sync/atomic"

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

// FitPCA finds the first k principal components of points, exactly:
// through the eigenvectors of the covariance matrix, or, with fewer points than
// columns, of the n×n matrix of the points' inner products. Everything is
// computed in float64, or without rounding in float32 where the values are
// unscaled bytes, which is faster. Time grows as n·D·min(n,D) + min(n,D)³;
// memory beyond the points is of the order of min(n,D)². It goes through the points
// three to five times, a few at a time, unless they are fewer than their columns: then
// all must be in memory, and are read into it.
//
// A device forms the products, which take most of the time, in float64, and, where few
// eigenvectors of wide points are wanted, those of which these come; the results agree up to
// the rounding of sums. Beside the products the device holds 256 MiB of the points, or, if they are
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
func FitPCA(ctx context.Context, points Source, k int, on *Device) (*PCA, error) {
	if err := checkSource(points); err != nil {
		return nil, err
	}
	n, d := points.Dims()
	if err := checkComponents(n, d, k); err != nil {
		return nil, err
	}
	if err := checkFinite(ctx, points, notFiniteAt); err != nil {
		return nil, err
	}

	c, err := columnMoments(ctx, points)
	if err != nil {
		return nil, err
	}
	pca := newPCA(k, slices.Clone(c.mean))
	for j, o := range points.Block(0).Offset {
		pca.Mean[j] += o
	}
	f := &pcaFit{points: points, n: n, d: d, mean: c.mean, device: on}
	for j := range d {
		if c.constant[j] {
			continue
		}
		pca.TotalVariance += c.squares[j] / float64(n-1)
		shift := 0.0
		if math.Abs(c.mean[j]) > farFromZero*c.sd(j, n-1) {
			shift = c.mean[j]
		}
		f.columns = append(f.columns, j)
		f.shift = append(f.shift, shift)
	}

	found := 0
	switch width := len(f.columns); {
	case width == 0: // all points are equal
	case width <= n:
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

// checkComponents says why n points of d values have no k principal components.
func checkComponents(n, d, k int) error {
	if n < 2 {
		return errorf(ErrEmpty, "data: principal components need at least two points; there is one")
	}
	if limit := min(n, d); k < 1 || k > limit {
		return errorf(ErrOption, "data: %d principal components are asked of %d points of %d values; ask for 1 to %d", k, n, d, limit)
	}
	return nil
}

// notFiniteAt is the error for a value, of points of which nothing more is known.
func notFiniteAt(row, column int, v float32) error {
	return errorf(ErrNotFinite, "data: row %d, column %d (both counted from 1) is %v; remove the row or replace the value", row+1, column+1, v)
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
	points  Source
	n, d    int
	mean    []float64 // of all columns
	columns []int     // those that are not constant
	shift   []float64 // what is subtracted from each of these at first
	device  *Device
}

// fromCovariance sets the axes and variances of pca and returns how many axes
// it has found.
func (f *pcaFit) fromCovariance(ctx context.Context, pca *PCA) (int, error) {
	n, width := f.n, len(f.columns)
	cov, err := f.columnProducts(ctx)
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
	values, vectors, err := largestEigen(ctx, cov, width, min(pca.K, width), f.device)
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

// columnProducts returns the upper triangle of the products of the columns.
func (f *pcaFit) columnProducts(ctx context.Context) ([]float64, error) {
	if !f.device.OnHost() {
		return f.deviceProducts(ctx, false)
	}
	if !slices.ContainsFunc(f.shift, func(s float64) bool { return s != 0 }) {
		bytes, err := areBytes(ctx, f.points)
		if err != nil {
			return nil, err
		}
		if bytes {
			return f.upperByteProducts(ctx)
		}
	}
	width := len(f.columns)
	products := newProducts(f.n, width)
	err := f.points.Each(ctx, products.chunk, func(_ int, block *Matrix) error {
		products.add(block.N, func(dst []float64, lo, hi int) { f.fillRows(dst, block.Rows(lo, hi)) })
		return nil
	})
	return products.sum, err
}

// rowProducts returns the upper triangle of the products of the points, which must be in
// memory.
func (f *pcaFit) rowProducts(ctx context.Context, m *Matrix) ([]float64, error) {
	if !f.device.OnHost() {
		return f.deviceProducts(ctx, true)
	}
	width := len(f.columns)
	products := newProducts(width, f.n)
	for lo := 0; lo < width; lo += products.chunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		products.add(min(products.chunk, width-lo), func(dst []float64, from, to int) { f.fillColumns(dst, m, lo+from, lo+to) })
	}
	return products.sum, nil
}

// fromGram does what fromCovariance does for points that are fewer than their
// columns. If X is the centred data and X·Xᵀ·u = λ·u, then Xᵀ·u/√λ is an axis.
func (f *pcaFit) fromGram(ctx context.Context, pca *PCA) (int, error) {
	n, width := f.n, len(f.columns)
	m, err := Collect(ctx, f.points)
	if err != nil {
		return 0, err
	}
	f.points = m
	gram, err := f.rowProducts(ctx, m)
	if err != nil {
		return 0, err
	}
	centerGram(gram, n)
	values, vectors, err := largestEigen(ctx, gram, n, min(pca.K, n), f.device)
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
		fill(buf, rows, n, func(dst []float64, from, to int) { f.fillColumns(dst, m, lo+from, lo+to) })
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

// fill has rows of a width converted into buf, in pieces.
func fill(buf []float64, rows, width int, convert func(dst []float64, lo, hi int)) {
	parallel.For(rows, fillGrain, func(_, from, to int) {
		convert(buf[from*width:to*width], from, to)
	})
}

// fillRows writes points, without their constant columns and less the shift, one after
// the other.
func (f *pcaFit) fillRows(dst []float64, points *Matrix) {
	for i := range points.N {
		row := points.Row(i)
		out := dst[i*len(f.columns):][:len(f.columns)]
		for b, j := range f.columns {
			out[b] = float64(row[j]) - f.shift[b]
		}
	}
}

// fillColumns writes the columns lo to hi, counted without the constant ones,
// one after the other.
func (f *pcaFit) fillColumns(dst []float64, m *Matrix, lo, hi int) {
	n := m.N
	for i := range n {
		row := m.Row(i)
		for b := lo; b < hi; b++ {
			dst[(b-lo)*n+i] = float64(row[f.columns[b]]) - f.shift[b]
		}
	}
}

// products adds up the upper triangle of AᵀA, width×width, for a rows×width matrix A
// that comes chunk by chunk. What is left of the diagonal is unspecified.
type products struct {
	width, chunk int
	sum          []float64
	buf          []float64 // of a chunk
}

func newProducts(rows, width int) *products {
	chunk := min(rows, chunkOf(width))
	return &products{width: width, chunk: chunk, sum: make([]float64, width*width), buf: make([]float64, chunk*width)}
}

// add adds the products of the next n rows, which convert writes piece by piece.
func (p *products) add(n int, convert func(dst []float64, lo, hi int)) {
	fill(p.buf, n, p.width, convert)
	multiply := blas.GemmAlone[float64]
	if mostlyZeros(p.buf[:n*p.width]) {
		multiply = blas.GemmSkipping
	}
	// One strip after the other, each from the diagonal to the right.
	// The chunks are added one by one, so that the order is fixed.
	parallel.For(p.width, tile, func(_, from, to int) {
		multiply(true, false, to-from, p.width-from, n, 1, p.buf[from:], p.width, p.buf[from:], p.width, 1, p.sum[from*p.width+from:], p.width)
	})
}

// mostlyZeros tells whether no more than a third of the values are others than 0: products
// that pass over zeros are then the faster ones.
func mostlyZeros(x []float64) bool {
	var others atomic.Int64
	parallel.For(len(x), checkGrain, func(_, lo, hi int) {
		count := 0
		for _, v := range x[lo:hi] {
			if v != 0 {
				count++
			}
		}
		others.Add(int64(count))
	})
	return 3*others.Load() <= int64(len(x))
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

// Transform returns the coordinates of points along the axes: an N×K
// matrix, computed on a device, or on the CPU if that is nil or the points are sparse;
// the results agree up to the rounding of sums in float64. Points of another width than D
// give
// ErrShape. Errors are also the device's, and ctx's if it ends before.
func (p *PCA) Transform(ctx context.Context, points Source, on *Device) (*Matrix, error) {
	if err := p.checkPoints(points); err != nil {
		return nil, err
	}
	n, _ := points.Dims()
	dst := NewMatrix(n, p.K)
	if err := p.TransformTo(ctx, dst, points, on); err != nil {
		return nil, err
	}
	return dst, nil
}

// TransformTo writes what Transform returns into dst, which must be N×K and
// not share memory with the points; other shapes give ErrShape. After an error dst may
// hold some of the coordinates.
func (p *PCA) TransformTo(ctx context.Context, dst *Matrix, points Source, on *Device) error {
	if err := p.checkPoints(points); err != nil {
		return err
	}
	n, _ := points.Dims()
	if dst == nil {
		return errorf(ErrShape, "data: there is no matrix for %d points along %d axes; make one of %[1]d×%[2]d", n, p.K)
	}
	if dst.N != n || dst.D != p.K || len(dst.X) != n*p.K {
		return errorf(ErrShape, "data: %d points along %d axes do not fit a matrix of %d×%d; make it %[1]d×%[2]d", n, p.K, dst.N, dst.D)
	}
	// The product skips zeros on its left side, so the mean is subtracted
	// afterwards, as its own coordinates.
	origin := make([]float64, p.K)
	offset := points.Block(0).Offset
	for a := range p.K {
		for j, v := range p.axis(a) {
			mean := p.Mean[j]
			if offset != nil {
				mean -= offset[j]
			}
			origin[a] += v * mean
		}
	}
	if m, ok := points.(*Matrix); ok && m.CSR != nil {
		return p.transformSparse(ctx, dst, m.CSR, origin)
	}
	if !on.OnHost() {
		return p.transformOnDevice(ctx, on, dst, points, origin)
	}
	axes := make([]float64, p.D*p.K)
	transpose(axes, p.Axes, p.K, p.D)
	chunk := min(n, chunkOf(p.D+p.K))
	x := make([]float64, chunk*p.D)
	y := make([]float64, chunk*p.K)
	return points.Each(ctx, chunk, func(lo int, block *Matrix) error {
		n := block.N
		parallel.For(n, fillGrain, func(_, from, to int) {
			for i, v := range block.X[from*p.D : to*p.D] {
				x[from*p.D+i] = float64(v)
			}
		})
		blas.Gemm(false, false, n, p.K, p.D, 1, x, p.D, axes, p.K, 0, y, p.K)
		for i := range n {
			for a, v := range y[i*p.K : (i+1)*p.K] {
				dst.X[(lo+i)*p.K+a] = float32(v - origin[a])
			}
		}
		return nil
	})
}

// checkPoints reports what keeps the components from being used on points.
func (p *PCA) checkPoints(points Source) error {
	if err := checkAnySource(points); err != nil {
		return err
	}
	_, d := points.Dims()
	return p.check(d)
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
