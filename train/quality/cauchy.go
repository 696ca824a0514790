package quality

import "cne/internal/simd"

// cauchyBlock is the number of terms that are added in single precision: 32 for
// each of 16 lanes.
const cauchyBlock = 512

// cauchySum returns Σ 1/(1+(x−xs[j])²+(y−ys[j])²) over all j; xs and ys have
// equal length. It is the inner loop of the partition function in two
// dimensions and takes nearly all of its time.
//
// Terms are computed in single precision. The vector forms add up to 32 of
// them in each lane in single precision, and the rest is added in double
// precision: the terms are all positive, so that the relative error of the sum
// stays below 1e-6 even where every addition rounds the same way.
func cauchySum(x, y float32, xs, ys []float32) float64 {
	var total float64
	for len(xs) > 0 {
		m := min(cauchyBlock, len(xs))
		total += simd.InverseSum2(xs[:m], ys[:m], x, y)
		xs, ys = xs[m:], ys[m:]
	}
	return total
}
