package simd

import (
	"cne/internal/elementary"
)

// A Float is a type that the loops compute with.
type Float interface{ float32 | float64 }

// A Sum has the sums of the pointwise kernels over pairs.
type Sum struct {
	// Loss is the loss of the pairs.
	Loss float64
	// DTheta is its derivative with respect to the logarithm of the
	// normalisation constant.
	DTheta float64
}

// Add adds t to s.
func (s *Sum) Add(t Sum) {
	s.Loss += t.Loss
	s.DTheta += t.DTheta
}

func pairs2[T Float](d2, dx, dy, features []T, head int, tails []int32) {
	heads := features[2*head : 2*(head+len(tails))]
	for k, t := range tails {
		x := heads[2*k] - features[2*t]
		y := heads[2*k+1] - features[2*t+1]
		dx[k], dy[k], d2[k] = x, y, FMA(y, y, T(x*x))
	}
}

func scatterGradient2[T Float](grad, hx, hy, g, dx, dy []T, tails []int32) {
	for k, t := range tails {
		px, py := T(2*g[k]*dx[k]), T(2*g[k]*dy[k])
		hx[k] += px
		hy[k] += py
		grad[2*t] -= px
		grad[2*t+1] -= py
	}
}

func negPositive[T Float](x []T, c T, bound Bound[T]) (sum Sum) {
	for i, d2 := range x {
		cu := T(c * (1 + d2))
		v := 1 + cu
		if v > bound.limit {
			x[i] = 0
			sum.Loss += bound.log
			continue
		}
		x[i] = c / v
		sum.Loss += elementary.Log1p(float64(cu))
		sum.DTheta += float64(cu / v)
	}
	return sum
}

func negNegative[T Float](x []T, c T, bound Bound[T]) (sum Sum) {
	for i, d2 := range x {
		q := 1 / (1 + d2)
		r := q / c
		v := 1 + r
		if v > bound.limit {
			x[i] = 0
			sum.Loss += bound.log
			continue
		}
		share := r / v
		x[i] = 0 - T(q*share)
		sum.Loss += elementary.Log1p(float64(r))
		sum.DTheta -= float64(share)
	}
	return sum
}

func umapPositive[T Float](x []T, bound Bound[T]) (loss float64) {
	for i, d2 := range x {
		u := 1 + d2
		if u > bound.limit {
			x[i] = 0
			loss += bound.log
			continue
		}
		x[i] = 1 / u
		loss += elementary.Log1p(float64(d2))
	}
	return loss
}

func umapNegative[T Float](x []T, bound Bound[T]) (loss float64) {
	for i, d2 := range x {
		r := 1 / d2
		if 1+r > bound.limit {
			x[i] = 0
			loss += bound.log
			continue
		}
		x[i] = -r / (1 + d2)
		loss += elementary.Log1p(float64(r))
	}
	return loss
}

func similarities[T Float](x, total []T, clamp T) {
	for i, d2 := range x {
		q := max(clamp, 1/(1+d2))
		x[i] = q
		total[i] += q
	}
}

func logTotals[T Float](total []T, weight T) (sum float64) {
	for i, t := range total {
		sum += elementary.Log(float64(t))
		total[i] = weight / t
	}
	return float64(sum * float64(weight))
}

func infoncPositive[T Float](q, share []T, clamp T) (loss float64) {
	for i, v := range q {
		loss -= elementary.Log(float64(v))
		if v <= clamp {
			q[i] = 0
			continue
		}
		q[i] = FMA(-v, T(share[i]*v), v)
	}
	return loss
}

func infoncNegative[T Float](q, share []T, clamp T) {
	for i, v := range q {
		if v <= clamp {
			q[i] = 0
			continue
		}
		q[i] = FMA(-v, T(v*share[i]), 0)
	}
}

func add[T Float](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

func scale[T Float](x []T, f T) {
	for i := range x {
		x[i] *= f
	}
}

func divide[T Float](x []T, by T) {
	for i := range x {
		x[i] /= by
	}
}

func addPlane[T Float](dst, xs, ys []T) {
	for i, x := range xs {
		dst[2*i] += x
		dst[2*i+1] += ys[i]
	}
}

func maxUint32(x []int32) (m uint32) {
	for _, v := range x {
		m = max(m, uint32(v))
	}
	return m
}

func inverseSum2[T Float](xs, ys []T, x, y T) (sum float64) {
	for i, xi := range xs {
		dx, dy := x-xi, y-ys[i]
		sum += float64(1 / (1 + (T(dx*dx) + T(dy*dy))))
	}
	return sum
}

func addSquares[T Float](dst, xs []T, x T) {
	for i, xi := range xs {
		dst[i] = FMA(x-xi, x-xi, dst[i])
	}
}

func addDistances(dst, xs []float32, x, scale, most float32) {
	for i, xi := range xs {
		dst[i] += min(max(x-xi, xi-x)*scale, most)
	}
}

func inverseSum[T Float](d2 []T) (sum float64) {
	for _, v := range d2 {
		sum += float64(1 / (1 + v))
	}
	return sum
}

func countBelow[T Float](counts []int32, x, limits []T) {
	for k, limit := range limits {
		for _, v := range x {
			if v < limit {
				counts[k]++
			}
		}
	}
}

func maskPositive[T Float](dst, y, g []T) {
	for i, v := range y {
		if v > 0 {
			dst[i] = g[i]
		} else {
			dst[i] = 0
		}
	}
}

func columnSums[T Float](dst, x []T, d int) {
	for ; len(x) >= d; x = x[d:] {
		add(dst, x[:d])
	}
}
