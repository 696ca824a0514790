package blas

import (
	"fmt"
	"math"
	"slices"

	"cne/internal/selection"
	"cne/internal/simd"
)

// A Float is an element of a matrix.
type Float interface{ float32 | float64 }

// Gemm computes C = alpha·op(A)·op(B) + beta·C for row-major matrices, where
// op is transposition if transA or transB is set: op(A) is m×k, op(B) k×n and
// C m×n; lda, ldb and ldc are the distances between rows as stored. C must
// not overlap A or B. If beta is 0, C is not read. Lengths and strides that do
// not hold the matrices panic.
func Gemm[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	multiply(newProduct(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
}

// GemmSerial is Gemm on the calling goroutine only, for goroutines that each
// compute products of their own. It gives the same bits as Gemm.
func GemmSerial[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	p := newProduct(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	p.alone = true
	multiply(p)
}

// newProduct checks the operands of Gemm and returns the product.
func newProduct[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) product[T] {
	checkSizes(m, n, k)
	return product[T]{m: m, n: n, k: k, alpha: alpha, beta: beta,
		a: newOperand(a, lda, m, k, transA), b: newOperand(b, ldb, k, n, transB), c: newOperand(c, ldc, m, n, false),
		floor: T(math.Inf(-1))}
}

// Linear computes a layer of a network, Y = act(X·Wᵀ + bias), where Y is m×n, the weights
// W are n×k and the bias has n elements, or is nil; with relu, negative sums become 0 and
// NaN stays NaN. Row i of X is row rows[i] of x as stored, or row i itself if rows is
// nil. ldx, ldw and ldy are the distances between rows as stored. Y must not overlap the
// others.
//
// The bits of a row of Y do not depend on the other rows. Lengths, strides and row
// numbers that do not fit panic.
func Linear[T Float](m, n, k int, x []T, ldx int, rows []int32, w []T, ldw int, bias []T, relu bool, y []T, ldy int) {
	checkSizes(m, n, k)
	if bias != nil && len(bias) != n {
		panic(fmt.Sprintf("blas: a bias of %d elements for %d columns", len(bias), n))
	}
	p := product[T]{m: m, n: n, k: k, alpha: 1,
		a: newRows(x, ldx, m, k, rows), b: newOperand(w, ldw, k, n, true), c: newOperand(y, ldy, m, n, false),
		bias: bias, floor: T(math.Inf(-1))}
	if relu {
		p.floor = 0
	}
	multiply(p)
}

// LinearGrad computes the gradient of a layer's weights, dW = Gᵀ·X, where dW
// is n×k and the gradient G of the layer's sums m×n. Row i of X is row rows[i]
// of x as stored, or row i itself if rows is nil. ldg, ldx and lddw are the
// distances between rows as stored. dW must not overlap the others. Lengths,
// strides and row numbers that do not fit panic.
func LinearGrad[T Float](m, n, k int, g []T, ldg int, x []T, ldx int, rows []int32, dw []T, lddw int) {
	checkSizes(m, n, k)
	multiply(product[T]{m: n, n: k, k: m, alpha: 1,
		a: newOperand(g, ldg, n, m, true), b: newRows(x, ldx, m, k, rows), c: newOperand(dw, lddw, n, k, false),
		floor: T(math.Inf(-1))})
}

func checkSizes(m, n, k int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("blas: a product of %d×%d and %d×%d", m, k, k, n))
	}
}

// A product is max(floor, alpha·op(A)·op(B) + beta·C + bias), to be written to
// C. The maximum of a floor and NaN is NaN here.
type product[T Float] struct {
	m, n, k     int
	alpha, beta T
	a, b, c     operand[T]
	bias        []T // nil for none
	floor       T
	alone       bool // on the calling goroutine
	panels      []T  // op(B) as the inner loops read it; nil to pack it
}

// An operand is a matrix op(X) as stored.
type operand[T Float] struct {
	data  []T
	ld    int     // from row to row as stored
	trans bool    // op is transposition
	rows  []int32 // if not nil, the stored row for each row; not with trans
}

// newOperand checks that data holds op(X) of rows×cols and returns it.
func newOperand[T Float](data []T, ld, rows, cols int, trans bool) operand[T] {
	height, width := rows, cols
	if trans {
		height, width = cols, rows
	}
	checkMatrix(len(data), ld, height, width)
	return operand[T]{data: data, ld: ld, trans: trans}
}

// newRows checks that data holds the numbered rows, or the first m ones if
// numbers is nil, and returns them.
func newRows[T Float](data []T, ld, m, width int, numbers []int32) operand[T] {
	if numbers == nil {
		return newOperand(data, ld, m, width, false)
	}
	if len(numbers) != m {
		panic(fmt.Sprintf("blas: %d row numbers for %d rows", len(numbers), m))
	}
	least, most := int32(0), int32(-1)
	for _, r := range numbers {
		least, most = min(least, r), max(most, r)
	}
	if least < 0 {
		panic(fmt.Sprintf("blas: rows: got %d, want a row of x", least))
	}
	checkMatrix(len(data), ld, int(most)+1, width)
	return operand[T]{data: data, ld: ld, rows: numbers}
}

// checkMatrix panics unless length elements hold a matrix.
func checkMatrix(length, ld, height, width int) {
	if ld < max(1, width) {
		panic(fmt.Sprintf("blas: a matrix of %d×%d cannot have rows %d apart", height, width, ld))
	}
	if height > 0 && width > 0 && (length < width || height > 1 && ld > (length-width)/(height-1)) {
		panic(fmt.Sprintf("blas: %d elements do not hold a matrix of %d×%d with rows %d apart", length, height, width, ld))
	}
}

// row returns where row i begins as stored.
func (o *operand[T]) row(i int) int {
	if o.rows != nil {
		i = int(o.rows[i])
	}
	return i * o.ld
}

// multiply computes a product.
func multiply[T Float](p product[T]) {
	if p.m == 0 || p.n == 0 {
		return
	}
	if p.alpha == 0 {
		p.k = 0 // A and B are not read
	}
	switch p := any(&p).(type) {
	case *product[float32]:
		multiplySingle(p)
	case *product[float64]:
		multiplyDoubles(p, inUse())
	}
}

// resize returns x with n elements, whatever they are.
func resize(x []float32, n int) []float32 { return slices.Grow(x[:0], n)[:n] }

func ceil(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceil(a, b) * b }

// current is the instruction set in use: the best, except in tests.
var current = simd.Best()

// inUse returns the inner loops in use.
func inUse() *kernels { return kernelsOf(current) }

// ones and zeros: a mask of n columns begins n words before the zeros.
var ones = func() (m [64]uint32) {
	selection.Fill(m[:32], 0xffffffff)
	return m
}()

// mask returns a mask whose first n words, n ≤ 32, are set.
func mask(n int) *uint32 { return &ones[32-n] }

// The inner loops: for a tile of a certain size, the same with prefetching, packing rows of a
// certain width, transposing 8 rows, loops over the elements of a sparse row, and for a tile
// in pairs. See the stubs of assembly.
type (
	tileFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32,
		floor float32, mask *uint32, number int)
	aheadFunc func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32,
		floor float32, mask *uint32, next *uintptr, lines int)
	copyFunc      func(dst *float32, dstStride int, src *float32, srcStride int, numbers *int32, k int, mask *uint32, number int)
	transposeFunc func(dst *float32, dstStride int, src *float32, srcStride, k int)
	sumFunc       func(n int, col *uint16, val *float32, w *float32, stride int, bias *float32, floor float32, y *float32,
		mask *uint32, nextCol *uint16, nextVal *float32, number int)
	spreadFunc func(n int, col *uint16, val *float32, grad *float32, mask *uint32, dw *float32, stride int, nextCol *uint16,
		nextVal *float32, number int)
	stripFunc func(n int, col *int32, val *float32, strip *float64, y *float64)
	pairsFunc func(k int, a *uint32, rowStride, stepStride int, b *uint32, c *float32, ldc, add, number int)
	wholeFunc func(k int, a *uint32, lda int, b *uint32, scale float32, c *float32, ldc, number int)
	amxFunc   func(config *byte, strips, k int, a *uint32, lda int, b *uint32, c *float32, ldc, add, number int)
)

// kernels are the inner loops of an instruction set. All but amx compute the
// same bits.
type kernels struct {
	height  int      // the rows of the highest tile; lower ones are there too
	panel   int      // the columns of the widest tile
	tile    tileFunc // by tileNumber
	masked  bool     // they use masks; others take all columns
	doubles doubleKernel

	// What is nil is done in Go.
	ahead              aheadFunc // the largest tile
	copy               copyFunc  // by copyNumber
	transpose          transposeFunc
	lanes              int        // of a vector of a sparse row's outputs
	sum                sumFunc    // by vectors − 1
	spread             spreadFunc // by vectors − 1
	sumStrip, addStrip stripFunc
	pairs              pairsFunc // by tileNumber
	amx                amxFunc   // by amxProduct.strips
	whole              wholeFunc // by rows − 1, of panel columns
}

// copyNumber returns the number of the kernel for rows of a width class: the widest is 0.
func (k *kernels) copyNumber(class int) int { return classOf(k.panel) - class }

// tileNumber returns the number of the kernel for tiles of a width class.
func (k *kernels) tileNumber(rows, class int) int { return k.copyNumber(class)*k.height + rows - 1 }

// classOf returns the width class of the narrowest tile for some columns:
// tiles of class c have 8<<c columns.
func classOf(columns int) int {
	switch {
	case columns > 16:
		return 2
	case columns > 8:
		return 1
	}
	return 0
}
