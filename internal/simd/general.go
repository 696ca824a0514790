package simd

import (
	"slices"

	"cne/internal/elementary"
	"cne/internal/rng"
)

// Pairs computes the squared distance of each pair k of row head+k of
// features and row tails[k]; features is [n, d], row after row. It is Pairs2
// for any d, without the differences, which ScatterGradient computes again.
func Pairs[T Float](d2, features []T, d, head int, tails []int32) {
	for k, t := range tails {
		h, o := row(features, d, head+k), row(features, d, int(t))
		var sum T
		for j, v := range h {
			sum += T((v - o[j]) * (v - o[j]))
		}
		d2[k] = sum
	}
}

// ScatterGradient adds the gradient of each pair to its ends: 2·g[k]·(head − tail) to
// row head+k of grad and the opposite to row tails[k].
func ScatterGradient[T Float](grad, features, g []T, d, head int, tails []int32) {
	for k, t := range tails {
		h, o := row(features, d, head+k), row(features, d, int(t))
		gh, gt := row(grad, d, head+k), row(grad, d, int(t))
		w := 2 * g[k]
		for j, v := range h {
			p := T(w * (v - o[j]))
			gh[j] += p
			gt[j] -= p
		}
	}
}

// Products computes scale times the inner product of each pair.
func Products[T Float](x, features []T, d, head int, tails []int32, scale T) {
	for k, t := range tails {
		h, o := row(features, d, head+k), row(features, d, int(t))
		var sum T
		for j, v := range h {
			sum += T(v * o[j])
		}
		x[k] = scale * sum
	}
}

// ScatterProductGradient adds the gradient of each pair's scaled inner product to its
// ends: scale·g[k]·tail to row head+k of grad and scale·g[k]·head to row
// tails[k].
func ScatterProductGradient[T Float](grad, features, g []T, d, head int, tails []int32, scale T) {
	for k, t := range tails {
		h, o := row(features, d, head+k), row(features, d, int(t))
		gh, gt := row(grad, d, head+k), row(grad, d, int(t))
		w := scale * g[k]
		for j := range h {
			// A pair of a row with itself is not excluded: read both first.
			vh, vt := h[j], o[j]
			gh[j] += T(w * vt)
			gt[j] += T(w * vh)
		}
	}
}

func row[T Float](x []T, d, i int) []T { return x[i*d : (i+1)*d : (i+1)*d] }

// LogisticPositive replaces cosines over τ x of positive pairs by the
// derivative of Neg-t-SNE's −log(q/(q+c)) = log(1+exp(θ−x)) with respect to
// them, where q = exp x and c = exp θ.
func LogisticPositive[T Float](x []T, theta T) (sum Sum) {
	for i, v := range x {
		loss, slope := softplus(float64(theta) - float64(v))
		x[i] = T(-slope)
		sum.Add(Sum{loss, slope})
	}
	return sum
}

// LogisticNegative is LogisticPositive's counterpart for negative pairs, whose
// loss is −log(1 − q/(q+c)) = log(1+exp(x−θ)).
func LogisticNegative[T Float](x []T, theta T) (sum Sum) {
	for i, v := range x {
		loss, slope := softplus(float64(v) - float64(theta))
		x[i] = T(slope)
		sum.Add(Sum{loss, -slope})
	}
	return sum
}

// softplus returns log(1+exp x) and its derivative.
func softplus(x float64) (value, slope float64) {
	if x > 0 {
		e := elementary.Exp(-x)
		return x + elementary.Log1p(e), 1 / (1 + e)
	}
	e := elementary.Exp(x)
	return elementary.Log1p(e), e / (1 + e)
}

// Softmax replaces cosines over τ by the derivatives of
// weight·log Σ exp x with respect to them and returns that loss. Head k's
// cosines are x[k], x[k+stride], x[k+2·stride], …: columns of a tile. heads is
// the number of heads, and columns, at least 1, the number of cosines of each.
func Softmax[T Float](x []T, heads, columns, stride int, weight T) (loss float64) {
	for k := range heads {
		top := x[k]
		for j := 1; j < columns; j++ {
			top = max(top, x[j*stride+k])
		}
		var total float64
		for j := range columns {
			total += elementary.Exp(float64(x[j*stride+k] - top))
		}
		loss += float64(float64(weight) * (float64(top) + elementary.Log(total)))
		for j := range columns {
			x[j*stride+k] = weight * T(elementary.Exp(float64(x[j*stride+k]-top))/total)
		}
	}
	return loss
}

// GatherRows copies rows of src, [n, d], to dst, [len(index), d]: row i of dst
// is row index[i] of src.
func GatherRows[T Float](dst, src []T, d int, index []int32) {
	if f, ok := float32s(src); ok && d == 2 && len(index) >= lanes {
		whole := len(index) - len(index)%lanes
		gatherRows2Vector(any(dst).([]float32), f, index[:whole])
		dst, index = dst[2*whole:], index[whole:]
	}
	for i, r := range index {
		copy(row(dst, d, i), row(src, d, int(r)))
	}
}

// ScatterRows adds rows of src, [len(index), d], to rows of dst, [n, d]: row i
// of src to row index[i] of dst, in the order of i.
func ScatterRows[T Float](dst, src []T, d int, index []int32) {
	if f, ok := float32s(dst); ok && d == 2 && len(index) >= lanes {
		whole := len(index) - len(index)%lanes
		scatterRows2Vector(f, any(src).([]float32), index[:whole])
		src, index = src[2*whole:], index[whole:]
	}
	for i, r := range index {
		add(row(dst, d, int(r)), row(src, d, i))
	}
}

// DrawOthers fills a column of b numbers from the next words of package rng's stream in
// the given state. Number i is uniform on 0 … 2b−1 without i; the k-th word gives numbers
// 2k and 2k+1.
func DrawOthers(column []int32, state uint64) {
	others, first := uint32(2*len(column)-1), 0
	if n := len(column); vectors() && n >= lanes {
		first = n - n%lanes
		drawOthersVector(column[:first], state, others)
	}
	const gamma = 0x9e3779b97f4a7c15
	for i := first; i < len(column); i += 2 {
		word := rng.Mix(state + uint64(i/2+1)*gamma)
		column[i] = skip(uint32(word), others, int32(i))
		if i+1 < len(column) {
			column[i+1] = skip(uint32(word>>32), others, int32(i+1))
		}
	}
}

// skip maps 32 random bits to 0 … others−1, and moves numbers from i on up by one, so that
// i itself is never drawn.
func skip(word, others uint32, i int32) int32 {
	v := int32(rng.Bounded(word, others))
	return v - (i-1-v)>>31 // the shift gives −1 where v ≥ i
}

// Variance returns the variance of column j of the rows of x, which have width elements.
func Variance(x []float32, width, j int) float64 {
	n := len(x) / width
	var sum, squares float64
	for i := range n {
		sum += float64(x[i*width+j])
	}
	mean := sum / float64(n)
	for i := range n {
		d := float64(x[i*width+j]) - mean
		squares += float64(d * d)
	}
	return squares / float64(n)
}

// IsFinite reports whether v is neither NaN nor infinite.
func IsFinite[T Float](v T) bool { return v-v == 0 } // v−v is NaN for the others

// FirstNotFinite returns the index of the first value that is NaN or infinite, or −1.
func FirstNotFinite[T Float](x []T) int {
	if AllFinite(x) {
		return -1
	}
	return slices.IndexFunc(x, func(v T) bool { return !IsFinite(v) })
}

// AllFinite reports whether all values are finite.
func AllFinite[T Float](x []T) bool {
	if f, whole := wholeVectors(x); whole > 0 {
		if maxMagnitudeVector(f) >= infinity {
			return false
		}
		x = x[whole:]
	}
	// A product with 0 is 0, or NaN if the value is not finite. The two sums need not wait
	// for each other.
	var a, b T
	for ; len(x) >= 2; x = x[2:] {
		a += x[0] * 0
		b += x[1] * 0
	}
	for _, v := range x {
		a += v * 0
	}
	return a+b == 0
}

// infinity has the bits of an infinite float32 without the sign: maxMagnitude is the largest
// of such numbers.
const infinity = 0xff00_0000
