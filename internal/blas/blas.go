package blas

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"cne/internal/isa"
	"cne/internal/parallel"
)

// rowsPerPiece is the height of the block of the result that one goroutine
// computes with gonum: high enough to amortise the hand-off, low enough for
// two cores to share matrices of a few hundred rows.
const rowsPerPiece = 128

var serial gonum.Implementation

// current is the instruction set in use: the best, except in tests.
var current = isa.Best()

func vectors() bool { return current != isa.Portable }

// A Float is an element of a matrix.
type Float interface{ float32 | float64 }

// Gemm computes C = alpha·op(A)·op(B) + beta·C for row-major matrices, where
// op is transposition if transA or transB is set: op(A) is m×k, op(B) k×n and
// C m×n; lda, ldb and ldc are the distances between rows as stored. C must
// not overlap A or B. If beta is 0, C is not read. Lengths and strides that do
// not hold the matrices panic.
func Gemm[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("blas: a product of %d×%d and %d×%d", m, k, k, n))
	}
	if a, ok := any(a).([]float32); ok && vectors() {
		p := product{m: m, n: n, k: k, alpha: float32(alpha), beta: float32(beta),
			a: newOperand(a, lda, m, k, transA), b: newOperand(any(b).([]float32), ldb, k, n, transB), transB: transB,
			c: newOperand(any(c).([]float32), ldc, m, n, false)}
		p.run()
		return
	}
	if k == 0 && m > 0 && n > 0 { // gonum does not take matrices without elements
		scale(m, n, beta, c, ldc)
		return
	}
	parallel.For(m, rowsPerPiece, func(_, lo, hi int) {
		offset := lo * lda
		if transA {
			offset = lo
		}
		gonumGemm(transOf(transA), transOf(transB), hi-lo, n, k, alpha, a[offset:], lda, b, ldb, beta, c[lo*ldc:], ldc)
	})
}

func transOf(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

func gonumGemm[T Float](ta, tb blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	switch a := any(a).(type) {
	case []float32:
		serial.Sgemm(ta, tb, m, n, k, float32(alpha), a, lda, any(b).([]float32), ldb, float32(beta), any(c).([]float32), ldc)
	case []float64:
		serial.Dgemm(ta, tb, m, n, k, float64(alpha), a, lda, any(b).([]float64), ldb, float64(beta), any(c).([]float64), ldc)
	}
}

// scale multiplies an m×n matrix by beta; if that is 0, it is not read.
func scale[T Float](m, n int, beta T, c []T, ldc int) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
		}
		for j := range row {
			row[j] *= beta
		}
	}
}
