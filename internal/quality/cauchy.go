package quality

// cauchySum returns Σ 1/(1+(x−xs[j])²+(y−ys[j])²) over all j; xs and ys have
// equal length. It is the inner loop of the partition function in two
// dimensions and takes nearly all of its time.
//
// Terms are computed in single precision. At most 32 of them are added in
// single precision, too, and the rest in double precision: the terms are all
// positive, so that the relative error of the sum stays below 1e-6 even
// where every addition rounds the same way.
var cauchySum = cauchySumGo

// cauchySumGo is the portable form of cauchySum.
func cauchySumGo(x, y float32, xs, ys []float32) float64 {
	const block = 128 // four sums of 32 terms
	var total float64
	for len(xs) > 0 {
		m := min(block, len(xs))
		bx, by := xs[:m], ys[:m]
		xs, ys = xs[m:], ys[m:]
		var s0, s1, s2, s3 float32
		j := 0
		for ; j+4 <= m; j += 4 {
			s0 += cauchy(x-bx[j], y-by[j])
			s1 += cauchy(x-bx[j+1], y-by[j+1])
			s2 += cauchy(x-bx[j+2], y-by[j+2])
			s3 += cauchy(x-bx[j+3], y-by[j+3])
		}
		for ; j < m; j++ {
			s0 += cauchy(x-bx[j], y-by[j])
		}
		total += float64(s0) + float64(s1) + (float64(s2) + float64(s3))
	}
	return total
}

func cauchy(dx, dy float32) float32 { return 1 / (1 + (dx*dx + dy*dy)) }
