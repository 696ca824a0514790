// Package blas is the one seam through which matrix products go: PCA, the kNN
// graph and the models call it, and nothing else multiplies matrices. The
// products are gonum's, spread over the cores by rows of the result, so that
// the bits of a result do not depend on GOMAXPROCS.
package blas

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"cne/internal/parallel"
)

// rowsPerPiece is the height of the block of the result that one goroutine
// computes: high enough to amortise the hand-off, low enough for two cores to
// share matrices of a few hundred rows.
const rowsPerPiece = 128

var serial gonum.Implementation

// A Float is an element of a matrix.
type Float interface{ float32 | float64 }

// Gemm computes C = alpha·op(A)·op(B) + beta·C for row-major matrices, where
// op is transposition if transA or transB is set: op(A) is m×k, op(B) k×n and
// C m×n; lda, ldb and ldc are the distances between rows as stored. C must
// not overlap A or B.
func Gemm[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	parallel.For(m, rowsPerPiece, func(_, lo, hi int) {
		offset := lo * lda
		if transA {
			offset = lo
		}
		if k == 0 {
			offset = 0
		}
		product(transOf(transA), transOf(transB), hi-lo, n, k, alpha, a[offset:], lda, b, ldb, beta, c[lo*ldc:], ldc)
	})
}

func transOf(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

func product[T Float](ta, tb blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	switch a := any(a).(type) {
	case []float32:
		serial.Sgemm(ta, tb, m, n, k, float32(alpha), a, lda, any(b).([]float32), ldb, float32(beta), any(c).([]float32), ldc)
	case []float64:
		serial.Dgemm(ta, tb, m, n, k, float64(alpha), a, lda, any(b).([]float64), ldb, float64(beta), any(c).([]float64), ldc)
	}
}
