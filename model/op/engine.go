package op

import (
	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"cne/internal/blas"
)

// Accelerate makes Gorgonia's own products of float32 matrices, such as gorgonia.Mul and
// its gradients, use package internal/blas instead of gonum. It sets gorgonia.Use for the
// whole process, so call it once, before any machine runs. The operations of this package
// do not need it.
func Accelerate() { gorgonia.Use(engine{}) }

// engine is gonum's implementation of BLAS, except for products of float32 matrices.
type engine struct{ gonum.Implementation }

// Sgemm computes C = alpha·op(A)·op(B) + beta·C, as gonum's does.
func (e engine) Sgemm(tA, tB gonumblas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	transA, okA := transposed(tA)
	transB, okB := transposed(tB)
	if !okA || !okB {
		e.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) // it panics as callers expect
		return
	}
	blas.Gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// transposed reports whether t transposes, and whether t is valid. For real matrices the
// conjugate transpose is the transpose.
func transposed(t gonumblas.Transpose) (yes, ok bool) {
	switch t {
	case gonumblas.NoTrans:
		return false, true
	case gonumblas.Trans, gonumblas.ConjTrans:
		return true, true
	}
	return false, false
}
