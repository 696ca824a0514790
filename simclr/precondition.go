package simclr

import (
	"math"

	"cne/internal/blas"
)

// maxPreconditioned is the largest width of features with a preconditioner, which takes
// time in proportion to the cube of the width: some seconds.
const maxPreconditioned = 4096

// leastVariance is added to the variance of standardised features in every direction,
// so that directions with hardly any variance do no harm.
const leastVariance = 1e-5

// A preconditioner multiplies by the inverse of a covariance matrix C = LLᵀ.
type preconditioner struct {
	d       int
	inverse []float32 // [d, d]: L⁻¹
	half    []float32 // L⁻¹·v for some vectors v
	whole   []float32
}

// newPreconditioner returns that of standardised features [n, d], to whose variance
// ridge is added.
func newPreconditioner(x []float32, n, d int, ridge float64) *preconditioner {
	c := covariance(x, n, d)
	for j := range d {
		c[j*d+j] += leastVariance + ridge
	}
	inverse := make([]float64, d*d)
	invertFactor(c, inverse, make([]float64, d*d/2), d, d)
	w := &preconditioner{d: d, inverse: make([]float32, d*d)}
	for i, v := range inverse {
		w.inverse[i] = float32(v)
	}
	return w
}

// apply multiplies count vectors of d, one after the other, by C⁻¹.
func (w *preconditioner) apply(v []float64, count int) {
	if w.half == nil {
		w.half, w.whole = make([]float32, len(v)), make([]float32, len(v))
	}
	// Scaled to size 1, so that no gradient is too small for float32.
	size := largest(v)
	if size == 0 {
		return
	}
	for i, x := range v {
		w.whole[i] = float32(x / size)
	}
	d := w.d
	blas.Gemm(false, true, count, d, d, 1, w.whole, d, w.inverse, d, 0, w.half, d)
	blas.Gemm(false, false, count, d, d, 1, w.half, d, w.inverse, d, 0, w.whole, d)
	for i, x := range w.whole {
		v[i] = float64(x) * size
	}
}

// covariance returns XᵀX/n of X [n, d], only its lower triangle.
func covariance(x []float32, n, d int) []float64 {
	const chunk, strip = 4096, 512 // rows, columns
	c := make([]float64, d*d)
	product := make([]float32, d*min(d, strip))
	for lo := 0; lo < n; lo += chunk {
		rows := min(chunk, n-lo)
		for j := 0; j < d; j += strip {
			height, width := d-j, min(strip, d-j)
			part := x[lo*d+j:]
			blas.Gemm(true, false, height, width, rows, 1, part, d, part, d, 0, product, width)
			for r := range height {
				row := c[(j+r)*d+j:]
				for i, v := range product[r*width : (r+1)*width] {
					row[i] += float64(v)
				}
			}
		}
	}
	for i := range c {
		c[i] /= float64(n)
	}
	return c
}

// invertFactor writes L⁻¹ to the lower triangle of inverse, where LLᵀ is the
// positive definite matrix [n, n] whose lower triangle a holds; a is overwritten.
// Both have rows stride apart; work has room for n²/2. A pivot that rounding has
// brought below leastVariance is replaced by it.
//
// With A in quarters, L21 = A21·L11⁻ᵀ, L22 is the factor of A22 − L21·L21ᵀ, and
// the lower left quarter of L⁻¹ is −L22⁻¹·L21·L11⁻¹.
func invertFactor(a, inverse, work []float64, n, stride int) {
	const small = 48
	if n <= small {
		invertSmallFactor(a, inverse, n, stride)
		return
	}
	top := n / 2
	rest := n - top
	a21, a22 := a[top*stride:], a[top*stride+top:]
	i21, i22 := inverse[top*stride:], inverse[top*stride+top:]
	invertFactor(a, inverse, work, top, stride)
	l21 := work[:rest*top]
	blas.Gemm(false, true, rest, top, top, 1, a21, stride, inverse, stride, 0, l21, top)
	blas.Gemm(false, true, rest, rest, top, -1, l21, top, l21, top, 1, a22, stride)
	blas.Gemm(false, false, rest, top, top, 1, l21, top, inverse, stride, 0, a21, stride)
	invertFactor(a22, i22, work, rest, stride)
	blas.Gemm(false, false, rest, top, rest, -1, i22, stride, a21, stride, 0, i21, stride)
}

// invertSmallFactor is invertFactor for few rows.
func invertSmallFactor(a, inverse []float64, n, stride int) {
	for i := range n {
		for j := range i + 1 {
			s := a[i*stride+j] - dot(a[i*stride:i*stride+j], a[j*stride:])
			if i == j {
				a[i*stride+i] = math.Sqrt(max(s, leastVariance))
			} else {
				a[i*stride+j] = s / a[j*stride+j]
			}
		}
	}
	for j := range n {
		inverse[j*stride+j] = 1 / a[j*stride+j]
		for i := j + 1; i < n; i++ {
			var s float64
			for k := j; k < i; k++ {
				s += a[i*stride+k] * inverse[k*stride+j]
			}
			inverse[i*stride+j] = -s / a[i*stride+i]
		}
	}
}
