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

func add[T Float](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

func inverseSum2[T Float](xs, ys []T, x, y T) (sum float64) {
	for i, xi := range xs {
		dx, dy := x-xi, y-ys[i]
		sum += float64(1 / (1 + (T(dx*dx) + T(dy*dy))))
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

func columnSums[T Float](dst, x []T, d int) {
	for ; len(x) >= d; x = x[d:] {
		add(dst, x[:d])
	}
}
