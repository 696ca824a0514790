package blas

import (
	"math"

	"cne/internal/simd"
)

// Panels is the form of a matrix [k, n] that is the right factor of a product on
// one goroutine and need not be packed for it: panels of columns lie one after
// the other, and in a panel row after row. The code that computes the matrix can
// write it in this form from the start.
type Panels struct {
	k, n  int
	width int // of all panels but the last, which may be narrower
}

// NewPanels returns the form of a matrix of k rows and n columns of T.
func NewPanels[T Float](k, n int) Panels {
	if k < 0 || n < 0 {
		panic("blas: a matrix of negative size")
	}
	if _, single := any(T(0)).(float32); single && n%16 == 0 {
		return Panels{k, n, inUse().panel}
	}
	return Panels{k, n, max(1, n)}
}

// NewPairPanels returns the form of a matrix of k rows of pairs and n columns for
// MultiplyPairs. Panels have a multiple of 16 columns if n is a multiple of 16.
func NewPairPanels(k, n int) Panels {
	p := NewPanels[float32](k, n)
	if !BFloat16() {
		p.width = max(1, n)
	}
	return p
}

// Len returns the number of elements.
func (p Panels) Len() int { return p.k * p.n }

// At returns the index of column j in the first row, and the distance to the
// next row.
func (p Panels) At(j int) (at, stride int) {
	first := j - j%p.width
	return first*p.k + j - first, min(p.width, p.n-first)
}

// Run returns the number of columns from column j on that lie next to each other.
func (p Panels) Run(j int) int { return min(p.width-j%p.width, p.n-j) }

// MultiplyPanels computes C = A·B + beta·C on the calling goroutine, for A of m
// rows whose element (i, l) is a[i·rowStride+l·stepStride], B in the form of p,
// and C with rows ldc apart. One of the strides is 1. C is not read if beta is 0.
func MultiplyPanels[T Float](p Panels, m int, a []T, rowStride, stepStride int, b []T, beta T, c []T, ldc int) {
	if m == 0 || p.n == 0 {
		return
	}
	if rowStride != 1 && stepStride != 1 || len(b) < p.Len() || ldc < p.n || len(c) < (m-1)*ldc+p.n ||
		p.k > 0 && len(a) < (m-1)*rowStride+(p.k-1)*stepStride+1 {
		panic("blas: the factors of a product with panels do not fit")
	}
	if p.n%16 == 0 {
		if a, ok := any(a).([]float32); ok && p.k > 0 {
			multiplyPanels(p, m, a, rowStride, stepStride, any(b).([]float32), any(beta).(float32), any(c).([]float32), ldc)
			return
		}
	}
	if stepStride == 1 {
		GemmSerial(false, false, m, p.n, p.k, 1, a, max(rowStride, p.k), b, p.n, beta, c, ldc)
	} else {
		GemmSerial(true, false, m, p.n, p.k, 1, a, stepStride, b, p.n, beta, c, ldc)
	}
}

func multiplyPanels(p Panels, m int, a []float32, rowStride, stepStride int, b []float32, beta float32, c []float32, ldc int) {
	kernels := inUse()
	floor := float32(math.Inf(-1))
	for j := 0; j < p.n; j += p.width {
		width := min(p.width, p.n-j)
		class, columns := classOf(width), mask(width)
		for i := 0; i < m; i += kernels.height {
			rows := min(kernels.height, m-i)
			kernels.tile(p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, 1, beta, nil,
				floor, columns, kernels.tileNumber(rows, class))
		}
	}
}

// Products of bfloat16, the upper half of a float32: 7 stored bits of mantissa, the
// exponent and the sign. Factors are stored in pairs, two consecutive steps of the product
// in a word, the first in its lower half.
//
// A step of a sum is as the instruction VDPBF16PS computes it: the product of the upper
// halves is added, the sum rounded to float32, then the product of the lower halves.
// Products are not rounded. Sums are rounded to nearest, ties to even. Subnormal factors
// and sums count as 0. The portable form gives the same bits, except for the kind of NaN.

// BFloat16 reports whether the inner loops of MultiplyPairs are used.
func BFloat16() bool { return current == simd.AVX512 && simd.BFloat16() }

// MultiplyPairs computes C = A·B, or C = A·B + C if add is set, on the calling goroutine,
// for factors in pairs: A has m rows whose pair (i, l) is a[i·rowStride+l·stepStride],
// and B has the form of p, which counts pairs. C has rows ldc apart. One of the strides
// is 1. C is only read if add is set.
func MultiplyPairs(p Panels, m int, a []uint32, rowStride, stepStride int, b []uint32, add bool, c []float32, ldc int) {
	if m == 0 || p.n == 0 {
		return
	}
	if rowStride != 1 && stepStride != 1 || len(b) < p.Len() || ldc < p.n || len(c) < (m-1)*ldc+p.n ||
		p.k > 0 && len(a) < (m-1)*rowStride+(p.k-1)*stepStride+1 {
		panic("blas: the factors of a product in pairs do not fit")
	}
	if kernels := inUse(); kernels.pairs != nil && BFloat16() && p.k > 0 && p.n%16 == 0 && p.width == kernels.panel {
		adds := 0
		if add {
			adds = 1
		}
		for j := 0; j < p.n; j += p.width {
			width := min(p.width, p.n-j)
			for i := 0; i < m; i += kernels.height {
				number := kernels.tileNumber(min(kernels.height, m-i), classOf(width))
				kernels.pairs(p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, adds, number)
			}
		}
		return
	}
	for j := range p.n {
		at, stride := p.At(j)
		for i := range m {
			sum := float32(0)
			for l := range p.k {
				sum = addPair(sum, a[i*rowStride+l*stepStride], b[at+l*stride])
			}
			if add {
				sum += c[i*ldc+j]
			}
			c[i*ldc+j] = sum
		}
	}
}

// addPair adds the two products of a pair to a sum.
func addPair(sum float32, a, b uint32) float32 {
	const upper = 0xffff0000
	return addProduct(addProduct(sum, a&upper, b&upper), a<<16, b<<16)
}

// addProduct adds the product of two numbers, given by their bits.
func addProduct(sum float32, a, b uint32) float32 {
	// The product of 8 by 8 bits is exact in float64. If its sum with 24 bits is not exact,
	// one is so much smaller than the other that rounding twice does no harm.
	x := float64(normal(math.Float32frombits(a)))*float64(normal(math.Float32frombits(b))) + float64(normal(sum))
	// A sum is subnormal if it is so after rounding to 24 bits.
	const scale = 1 << 64
	if s := float32(x * scale); s > -0x1p-62 && s < 0x1p-62 {
		return float32(math.Copysign(0, x))
	}
	return float32(x)
}

// normal returns x, or 0 with its sign if it is subnormal.
func normal(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & 0x80000000)
	}
	return x
}
