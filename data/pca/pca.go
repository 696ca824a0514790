// Package pca finds the principal components of points (package data). Fit finds them
// exactly, and FitSparse finds them for sparse points by a randomised method. Results have
// the same bits regardless of GOMAXPROCS.
package pca

import (
	"context"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/eigen"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// tile is the width of the strips of a covariance matrix. The part of a strip left
	// of the diagonal is not computed.
	tile = 128
	// fillGrain is the number of rows converted in one piece.
	fillGrain = 64
)

// A PCA is a set of principal components: the directions of largest variance, in order,
// with the variance along each.
type PCA struct {
	K int `json:"k"` // number of components
	D int `json:"d"` // width of the points
	// Mean is the mean of the points, with their Offset, of length D.
	Mean []float64 `json:"mean,omitempty"`
	// Axes holds K orthonormal rows of length D. The component of largest
	// magnitude of each is positive; among components that agree with it to
	// six digits, the first counts.
	Axes []float64 `json:"axes,omitempty"`
	// Variance is the variance of the points along each axis (sum of squares
	// divided by n-1), in descending order, of length K.
	Variance []float64 `json:"variance,omitempty"`
	// TotalVariance is the sum of the variances of all columns of the points.
	TotalVariance float64 `json:"total_variance"`
}

// Fit finds the first k principal components of points exactly. It computes the
// eigenvectors of the covariance matrix or, with fewer points than columns, of the n×n
// matrix of the points' inner products, in float64. Time grows as n·D·min(n,D) +
// min(n,D)³, and memory beyond the points as min(n,D)². Fit reads the points twice, a
// block at a time. If there are fewer points than columns, it reads them into memory.
//
// Points that have only whole numbers from −256 to 256, or only such numbers divided by 255,
// take less time. For the products, the rounding of the quotients to float32 is undone. If
// Fit notices late that there are other values, it reads the points up to four times.
//
// If the points span fewer than k dimensions, the surplus axes are arbitrary unit
// vectors orthogonal to all others, and their Variance is exactly 0. A variance that
// float64 cannot tell from 0 counts as 0.
//
// The error wraps data.ErrOption for k below 1 or above min(n, D), data.ErrEmpty for fewer
// than two points, data.ErrNotFinite for a value that is NaN or infinite, or
// data.ErrSparse for sparse points (see FitSparse), or it is ctx's.
func Fit(ctx context.Context, points data.Source, k int) (_ *PCA, err error) {
	defer kind.Catch(&err)
	kind.Check(data.CheckDense(points))
	n, d := points.Dims()
	checkComponents(n, d, k)
	mean, constant, err := data.ColumnMeans(ctx, points)
	kind.Check(err)
	if simd.FirstNotFinite(mean) >= 0 { // sums of finite float32 values are finite
		kind.Check(data.CheckFinite(ctx, points))
	}
	f := &pcaFit{points: points, n: n, pairs: blas.BFloat16()}
	for j, m := range mean {
		if !constant[j] {
			f.columns = append(f.columns, int32(j))
			f.mean = append(f.mean, m)
		}
	}
	pca := newPCA(k, mean)
	for j, o := range points.Block(0).Offset {
		pca.Mean[j] += o
	}
	found := 0
	if len(f.columns) > 0 { // otherwise all points are equal
		found = f.fit(ctx, pca)
	}
	pca.finish(found)
	return pca, nil
}

// checkComponents fails as kind.Need does unless n points of d values have k principal
// components.
func checkComponents(n, d, k int) {
	kind.Need(n >= 2, data.ErrEmpty, "pca: got %d points, want at least 2", n)
	limit := min(n, d)
	kind.Need(k >= 1 && k <= limit, data.ErrOption, "pca: components of %d points of %d values: got %d, want 1 to %d", n, d, k, limit)
}

// newPCA returns k axes that are still zeros.
func newPCA(k int, mean []float64) *PCA {
	return &PCA{K: k, D: len(mean), Mean: mean, Axes: make([]float64, k*len(mean)), Variance: make([]float64, k)}
}

// finish completes the axes after the first found ones. The Householder reflections that
// orthonormalise the first ones turn unit vectors into the others.
func (p *PCA) finish(found int) {
	if found < p.K {
		columns := eigen.Transposed(p.Axes, p.K, p.D)
		eigen.Orthonormalize(columns, p.D, p.K)
		p.Axes = eigen.Transposed(columns, p.D, p.K)
	}
	for a := range p.K {
		fixSign(p.Axes[a*p.D : (a+1)*p.D])
	}
}

// A pcaFit looks for the principal axes of points.
type pcaFit struct {
	points  data.Source
	n       int
	columns []int32   // the columns that are not constant
	mean    []float64 // of these columns
	pairs   bool      // whether there are products of bfloat16; results do not depend on it
}

// fit sets the axes and variances of pca and returns how many axes it has found. With the
// centred points X, the axes are the eigenvectors of XᵀX. If XXᵀ is smaller, they come
// from its eigenvectors: if XXᵀ·u = λ·u, then Xᵀ·u/√λ is an axis. It fails as kind.Need does.
func (f *pcaFit) fit(ctx context.Context, pca *PCA) (found int) {
	width, order := len(f.columns), len(f.columns)
	wide := width > f.n
	if wide {
		order, f.points = f.n, kind.Got(data.Collect(ctx, f.points))
	}
	products := f.products(ctx, order, wide)
	for i := range order {
		pca.TotalVariance += products[i*order+i] / float64(f.n-1)
	}
	values, vectors, err := largestEigen(ctx, products, order, min(pca.K, order))
	kind.Check(err)
	for found < len(values) && values[found] > 0 {
		found++
	}
	if wide && found > 0 {
		vectors, found = f.across(ctx, values[:found], vectors)
	}
	for a, v := range values[:found] {
		pca.Variance[a] = v / float64(f.n-1)
		for b, j := range f.columns {
			pca.Axes[a*pca.D+int(j)] = vectors[a*width+b]
		}
	}
	return found
}

// products returns the upper triangle of XᵀX or, if wide, of XXᵀ, for the centred points X.
// The values left of the diagonal are unspecified. It fails as kind.Need does.
func (f *pcaFit) products(ctx context.Context, order int, wide bool) []float64 {
	for _, unit := range selection.If(wide, nil, []float32{1, 255}) {
		if products, ok := f.wholeProducts(ctx, unit); ok {
			return products
		}
	}
	sum := make([]float64, order*order)
	f.chunks(ctx, wide, func(_, rows int, x []float64) {
		// Compute one strip after the other, each from the diagonal to the right. The chunks are
		// added one by one, so the order is fixed.
		parallel.For(order, tile, func(_, from, to int) {
			blas.GemmSerial(true, false, to-from, order-from, rows, 1, x[from:], order, x[from:], order, 1, sum[from*order+from:], order)
		})
	})
	return sum
}

// chunks calls each with consecutive rows of X or, if across, of Xᵀ, and with the number of
// the first row. For Xᵀ the points must be in memory. It fails as kind.Need does.
func (f *pcaFit) chunks(ctx context.Context, across bool, each func(lo, rows int, x []float64)) {
	width := len(f.columns)
	if !across {
		chunk := min(f.n, data.BlockRows(width))
		x := make([]float64, chunk*width)
		kind.Check(f.points.Each(ctx, chunk, func(lo int, block *data.Matrix) error {
			parallel.For(block.N, fillGrain, func(_, from, to int) {
				for i := from; i < to; i++ {
					row, out := block.Row(i), x[i*width:(i+1)*width]
					for b, j := range f.columns {
						out[b] = float64(row[j]) - f.mean[b]
					}
				}
			})
			each(lo, block.N, x)
			return nil
		}))
		return
	}
	m := f.points.(*data.Matrix)
	chunk := min(width, data.BlockRows(f.n))
	x := make([]float64, chunk*f.n)
	for lo := 0; lo < width; lo += chunk {
		kind.Check(ctx.Err())
		rows := min(chunk, width-lo)
		parallel.For(rows, fillGrain, func(_, from, to int) {
			for i := range f.n {
				row := m.Row(i)
				for b := from; b < to; b++ {
					x[b*f.n+i] = float64(row[f.columns[lo+b]]) - f.mean[lo+b]
				}
			}
		})
		each(lo, rows, x)
	}
}

// across returns the axes for eigenvectors of XXᵀ, and how many of them are above rounding
// noise. It fails as kind.Need does.
func (f *pcaFit) across(ctx context.Context, values, vectors []float64) (axes []float64, found int) {
	width, count := len(f.columns), len(values)
	u := eigen.Transposed(vectors[:count*f.n], count, f.n)
	columns := make([]float64, width*count)
	f.chunks(ctx, true, func(lo, rows int, x []float64) {
		blas.Gemm(false, false, rows, count, f.n, 1, x, f.n, u, count, 0, columns[lo*count:], count)
	})
	// The axes of small eigenvalues have lost some of their orthogonality. Made orthonormal
	// in the order of the eigenvalues, the good ones stay as they are.
	lengths := eigen.Orthonormalize(columns, width, count)
	for found < count && lengths[found] > math.Sqrt(values[found])/2 {
		found++
	}
	return eigen.Transposed(columns, width, count), found
}

// fixSign negates an axis if its leading component is negative. The leading component is
// the first one that is nearly the largest. If it were just the largest, rounding would
// decide between columns of equal variance.
func fixSign(axis []float64) {
	largest := floats.Norm(axis, math.Inf(1))
	leading := slices.IndexFunc(axis, func(v float64) bool { return math.Abs(v) >= largest*(1-1e-6) })
	if leading >= 0 && axis[leading] < 0 {
		floats.Scale(-1, axis)
	}
}

// Transform returns the coordinates of points along the axes: an N×K matrix. The error wraps
// data.ErrShape for points of another width than D, or is ctx's.
func (p *PCA) Transform(ctx context.Context, points data.Source) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	kind.Check(data.CheckPoints(points))
	n, d := points.Dims()
	kind.Check(p.Check(d))
	dst := data.NewMatrix(n, p.K)
	origin := p.origin(points.Block(0).Offset)
	if m, ok := points.(*data.Matrix); ok && m.CSR != nil {
		err = p.transformSparse(ctx, dst, m.CSR, origin)
	} else {
		t := p.transform(origin)
		err = points.Each(ctx, 0, func(lo int, block *data.Matrix) error {
			return parallel.ForContext(ctx, block.N, fillGrain, func(_, from, to int) {
				t.To(dst.X[(lo+from)*p.K:(lo+to)*p.K], block.X[from*p.D:to*p.D])
			})
		})
	}
	kind.Check(err)
	return dst, nil
}

// origin returns the coordinates of the mean for points with an offset. They are subtracted
// after the products, so zeros of sparse points can be skipped.
func (p *PCA) origin(offset []float64) []float64 {
	origin, mean := make([]float64, p.K), slices.Clone(p.Mean)
	for j, o := range offset {
		mean[j] -= o
	}
	for a := range p.K {
		for j, v := range p.Axes[a*p.D : (a+1)*p.D] {
			origin[a] += float64(v * mean[j])
		}
	}
	return origin
}

// A Transformer is Transform for dense points without an offset, made ready for many calls
// with few points. Any number of goroutines may use it at once.
type Transformer struct {
	chain  *blas.Chain[float64]
	spaces sync.Pool // of *[]float64
}

// Transformer returns the transformer. The components must be valid: see Check.
func (p *PCA) Transformer() *Transformer { return p.transform(p.origin(nil)) }

func (p *PCA) transform(origin []float64) *Transformer {
	floats.Scale(-1, origin)
	return &Transformer{
		chain: blas.NewChain([]int{p.D, p.K}, func(int) ([]float64, []float64, blas.Activation) {
			return p.Axes, origin, blas.NoActivation
		}),
		spaces: sync.Pool{New: func() any { return new([]float64) }},
	}
}

// To writes the coordinates [n, K] of points x [n, D] to dst, on the calling goroutine.
func (t *Transformer) To(dst, x []float32) {
	space := t.spaces.Get().(*[]float64)
	defer t.spaces.Put(space)
	*space = slices.Grow((*space)[:0], len(x)+len(dst))[:len(x)+len(dst)]
	from, to := (*space)[:len(x)], (*space)[len(x):]
	selection.Convert(from, x)
	t.chain.Run(to, from)
	selection.Convert(dst, to)
}

// whitenFloor is the share of the mean variance that Whiten adds to all variances.
const whitenFloor = 0.1

// Whiten divides Axes by √(v + 0.1·m), where v is the variance along an axis and m the mean of
// all Variance, so that coordinates have nearly equal variances. Representations of networks,
// where a few directions dominate, gain by it. Without m, directions of mere noise would
// count as much as others. Variance stays what it was.
func (p *PCA) Whiten() {
	floor := whitenFloor * selection.Sum(p.Variance) / float64(p.K)
	for a, v := range p.Variance {
		if v+floor > 0 { // otherwise all points are equal
			floats.Scale(1/math.Sqrt(v+floor), p.Axes[a*p.D:(a+1)*p.D])
		}
	}
}

// Check returns an error wrapping data.ErrShape unless the components fit each other and
// points of d values. It is for components from a file.
func (p *PCA) Check(d int) (err error) {
	defer kind.Catch(&err)
	kind.Need(p.K >= 1 && p.D >= 1 && len(p.Mean) == p.D && len(p.Axes)/p.D == p.K && len(p.Axes)%p.D == 0, data.ErrShape,
		"pca: %d components of width %d: got %d values in Mean and %d in Axes, want %[2]d and %[5]d", p.K, p.D, len(p.Mean), len(p.Axes), p.K*p.D)
	kind.Need(d == p.D, data.ErrShape, "pca: points: got %d values each, want %d as when the components were fitted", d, p.D)
	return nil
}
