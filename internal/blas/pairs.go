package blas

import (
	"math"
	"unsafe"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// Products of bfloat16, the upper half of a float32: 7 stored bits of mantissa, the
// exponent and the sign. Factors are stored in pairs, two consecutive steps of the product
// in a word, the first in its lower half.
//
// A step of a sum is as the instruction VDPBF16PS computes it: the product of the upper
// halves is added, the sum rounded to float32, then the product of the lower halves.
// Products are not rounded. Sums are rounded to nearest, ties to even. Subnormal factors
// and sums count as 0. The portable form gives the same bits, except for the kind of NaN.
//
// TDPBF16PS, of AMX, is ten times as fast and adds up in another order: in each tile of 16
// pairs the products of lower halves have a sum, and those of upper halves another; the sum of
// both is added to that of the tiles before.

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
		if kernels.amx != nil && simd.AMX() {
			multiplyTiles(kernels.amx, p, m, a, rowStride, stepStride, b, add, c, ldc)
			return
		}
		adds := selection.If(add, 1, 0)
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

// WholeNumbers reports whether the inner loops of MultiplyWhole are used.
func WholeNumbers() bool { return inUse().whole != nil }

// MultiplyWhole computes C = scale·A·B on the calling goroutine, for factors in pairs of whole
// numbers from −32 768 to 32 767, two consecutive steps in a word, the first in its lower
// half: pair (i, l) of A is a[i·lda+l], B has the form p from NewPanels[float32], which counts
// pairs, and C has rows ldc apart. Sums are exact if they are less than 2³¹, whatever they are
// on the way. They are rounded to float32, and then multiplied.
func MultiplyWhole(p Panels, m int, a []uint32, lda int, b []uint32, scale float32, c []float32, ldc int) {
	if m == 0 || p.n == 0 {
		return
	}
	if len(a) < (m-1)*lda+p.k || len(b) < p.Len() || ldc < p.n || len(c) < (m-1)*ldc+p.n {
		panic("blas: the factors of a product of whole numbers do not fit")
	}
	kernels := inUse()
	for j := 0; j < p.n; j += p.width {
		if kernels.whole != nil && p.k > 0 && p.width == kernels.panel && p.n-j >= p.width {
			for i := 0; i < m; i += kernels.height {
				kernels.whole(p.k, &a[i*lda], 4*lda, &b[j*p.k], scale, &c[i*ldc+j], 4*ldc, min(kernels.height, m-i)-1)
			}
			continue
		}
		for col := j; col < min(j+p.width, p.n); col++ {
			at, stride := p.At(col)
			for i := range m {
				sum := int32(0)
				for l := range p.k {
					x, y := a[i*lda+l], b[at+l*stride]
					sum += int32(int16(x))*int32(int16(y)) + int32(int16(x>>16))*int32(int16(y>>16))
				}
				c[i*ldc+col] = float32(sum) * scale
			}
		}
	}
}

// tileSteps is the number of rows of a tile, and of pairs in each of them.
const tileSteps = 16

// An amxProduct has what a product by AMX needs beside its factors.
type amxProduct struct {
	run amxFunc // by (rows − 1)·2 + columns − 1 of tiles side by side
	// config says how many rows the tiles have, and how many bytes are in each.
	config struct {
		palette, start uint8
		_              [14]uint8
		bytes          [16]uint16
		rows           [16]uint8
	}
	rows, steps int                                       // of config
	a           [2 * tileSteps * (maxDepth + gap)]float32 // some rows of A, if they are not stored as rows
}

var amxProducts = parallel.Pool[amxProduct]{}

// An amxBlock is the product of some rows of A and a panel of B.
type amxBlock struct {
	rows, width int // of C
	a, b        *uint32
	lda, ldc    int
	c           *float32
	add         bool
}

// multiplyTiles is MultiplyPairs by AMX.
func multiplyTiles(run amxFunc, p Panels, m int, a []uint32, rowStride, stepStride int, b []uint32, add bool, c []float32, ldc int) {
	q := amxProducts.Get()
	defer amxProducts.Put(q)
	q.run = run
	depth, strip := p.k, m
	if stepStride != 1 {
		depth, strip = min(p.k, maxDepth), 2*tileSteps
	}
	for l := 0; l < p.k; l += depth {
		steps := min(depth, p.k-l)
		for i := 0; i < m; i += strip {
			x := amxBlock{rows: min(strip, m-i), a: &a[i*rowStride+l*stepStride], lda: rowStride, ldc: ldc, add: add || l > 0}
			if stepStride != 1 {
				x.lda = maxDepth + gap
				transpose(q.a[:], x.lda, floats(a[l*stepStride+i:]), stepStride, steps, x.rows)
				x.a = (*uint32)(unsafe.Pointer(&q.a[0]))
			}
			for j := 0; j < p.n; j += p.width {
				x.width = min(p.width, p.n-j)
				x.b, x.c = &b[j*p.k+l*x.width], &c[i*ldc+j]
				q.block(x, steps)
			}
		}
	}
}

// floats returns the same bits as numbers.
func floats(x []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// block computes a block: first the steps that fill tiles, then the others.
func (q *amxProduct) block(x amxBlock, steps int) {
	whole, rest := steps/tileSteps, steps%tileSteps
	if whole > 0 {
		q.strips(x, tileSteps, whole)
		x.add = true
	}
	if rest > 0 {
		x.a, x.b = offset(x.a, whole*tileSteps), offset(x.b, whole*tileSteps*x.width)
		q.strips(x, rest, 1)
	}
}

// strips multiplies by tiles of so many steps: strips of two tiles of rows, then those that are
// left.
func (q *amxProduct) strips(x amxBlock, steps, tiles int) {
	const high = 2 * tileSteps
	columns, add := x.width/tileSteps, selection.If(x.add, 1, 0)
	run := func(strips, rows int) {
		q.shape(rows, steps)
		number := selection.If(rows > tileSteps, 2, 0) + columns - 1
		q.run((*byte)(unsafe.Pointer(&q.config)), strips, tiles, x.a, 4*x.lda, x.b, x.c, 4*x.ldc, add, number)
	}
	whole, rest := x.rows/high, x.rows%high
	if whole > 0 {
		run(whole, high)
	}
	if rest > 0 {
		x.a, x.c = offset(x.a, whole*high*x.lda), offset(x.c, whole*high*x.ldc)
		run(1, rest)
	}
}

// shape sets the sizes of tiles for up to 32 rows of A and C, and up to 16 steps. Tiles 0 to 3
// are C, two beside each other; 4 and 5 are A; 6 and 7 are B.
func (q *amxProduct) shape(rows, steps int) {
	if q.rows == rows && q.steps == steps {
		return
	}
	q.rows, q.steps = rows, steps
	upper, lower := uint8(min(rows, tileSteps)), uint8(max(0, rows-tileSteps))
	depth, full := uint8(steps), uint16(4*tileSteps)
	inA := uint16(4 * steps)
	q.config.palette = 1
	q.config.rows = [16]uint8{upper, upper, lower, lower, upper, lower, depth, depth}
	q.config.bytes = [16]uint16{full, full, full, full, inA, inA, full, full}
	if lower == 0 { // these are not used
		for _, tile := range [...]int{2, 3, 5} {
			q.config.bytes[tile] = 0
		}
	}
}

// offset returns the address of an element.
func offset[T any](p *T, elements int) *T { return at(p, elements*int(unsafe.Sizeof(*p))) }

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
