package quality

import (
	"context"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// tileRows is the number of rows in a piece of work. tileColumns is the number of columns
	// visited for all these rows before the next columns are. They stay in the first-level
	// cache.
	tileRows    = 64
	tileColumns = 1024
	// sumBlock is the number of terms that are added in single precision: 32 for each of 16
	// lanes. The rest is added in double precision. The terms are all positive, so
	// the relative error of the sum stays below 1e-6 even where every addition rounds the
	// same way.
	sumBlock = 512
)

// A pairTerms adds up terms of the pairs of point i and the points lo to hi−1. i must not
// be among these points. work has at least sumBlock elements.
type pairTerms func(i, lo, hi int, work []float32) float64

// overTiles returns the sum over the pairs i < j < n.
func overTiles(ctx context.Context, n int, of pairTerms) (total float64, err error) {
	partial := make([]float64, parallel.Pieces(n, tileRows))
	err = parallel.ForContext(ctx, n, tileRows, func(piece, first, last int) {
		work := make([]float32, sumBlock)
		for lo := first; lo < n; lo += tileColumns {
			hi := min(n, lo+tileColumns)
			for i := first; i < last && i+1 < hi; i++ {
				partial[piece] += of(i, max(lo, i+1), hi, work)
			}
		}
	})
	return selection.Sum(partial), err
}

// overRows returns for each row of rows the sum over its pairs with all other points of n.
func overRows(ctx context.Context, n int, rows []int, of pairTerms) ([]float64, error) {
	sums := make([]float64, len(rows))
	err := parallel.ForContext(ctx, len(rows), tileRows, func(_, first, last int) {
		work := make([]float32, sumBlock)
		for lo := 0; lo < n && ctx.Err() == nil; lo += tileColumns {
			hi := min(n, lo+tileColumns)
			for q := first; q < last; q++ {
				i := rows[q]
				sums[q] += of(i, lo, max(lo, min(hi, i)), work)
				sums[q] += of(i, min(hi, max(lo, i+1)), hi, work)
			}
		}
	})
	return sums, err
}

// similarityTerms are the Cauchy similarities 1/(1+x) of squared distances x. near allows
// a faster form with other rounding; no distance may be too large for it (isNear).
func similarityTerms[T Float](e []T, n, d int, near bool) pairTerms {
	f, single := any(e).([]float32)
	if !single {
		return func(i, lo, hi int, _ []float32) (sum float64) {
			a := e[i*d : (i+1)*d]
			for j := lo; j < hi; j++ {
				sum += 1 / (1 + squaredDistance(a, e[j*d:(j+1)*d]))
			}
			return sum
		}
	}
	planes := make([]float32, len(f)) // the points, coordinate after coordinate
	simd.Planes(planes, n, f, d)
	if d != 2 {
		return func(i, lo, hi int, work []float32) (sum float64) {
			for ; lo < hi; lo += sumBlock {
				end := min(hi, lo+sumBlock)
				d2 := work[:end-lo]
				clear(d2)
				for k, x := range f[i*d : (i+1)*d] {
					simd.AddSquares(d2, planes[k*n+lo:k*n+end], x)
				}
				sum += simd.InverseSum(d2)
			}
			return sum
		}
	}
	inverseSum := selection.If(near && isNear(f, d), simd.InverseSum2Near[float32], simd.InverseSum2[float32])
	return func(i, lo, hi int, _ []float32) (sum float64) {
		x, y := f[2*i], f[2*i+1]
		for ; lo < hi; lo += sumBlock {
			end := min(hi, lo+sumBlock)
			sum += inverseSum(planes[lo:end], planes[n+lo:n+end], x, y)
		}
		return sum
	}
}

// squaredDistance is computed in double precision, so exact ties and
// small differences survive.
func squaredDistance[A, B Float](a []A, b []B) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	k := 0
	for ; k+4 <= len(a); k += 4 {
		d0 := float64(a[k]) - float64(b[k])
		d1 := float64(a[k+1]) - float64(b[k+1])
		d2 := float64(a[k+2]) - float64(b[k+2])
		d3 := float64(a[k+3]) - float64(b[k+3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	for ; k < len(a); k++ {
		d := float64(a[k]) - float64(b[k])
		s0 += float64(d * d)
	}
	return s0 + s1 + (s2 + s3)
}
