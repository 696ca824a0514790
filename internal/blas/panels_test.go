package blas

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/rng"
)

// The product is Gemm's, whatever the form of B and the strides of A.
func TestMultiplyPanels(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, m := range []int{0, 1, 5, 12, 31} {
			for _, n := range []int{0, 3, 16, 32, 48, 80} {
				for _, k := range []int{0, 1, 7, 40} {
					for _, trans := range []bool{false, true} {
						for _, beta := range []float32{0, 1, 0.5} {
							testPanels(t, m, n, k, trans, beta)
						}
					}
				}
			}
		}
	})
}

func testPanels(t *testing.T, m, n, k int, trans bool, beta float32) {
	s := rng.New(1, rng.Sample)
	rows, cols := m, k
	if trans {
		rows, cols = k, m
	}
	lda, ldc := max(1, cols)+3, n+2
	a, b, c := stored(rows, cols, lda, &s), stored(k, n, n, &s), stored(m, n, ldc, &s)
	want, scale := naive(trans, false, m, n, k, 1, a, lda, b, max(1, n), beta, c, ldc)
	form := NewPanels[float32](k, n)
	panels, seen := make([]float32, form.Len()), 0
	for j := 0; j < n; j += form.Run(j) {
		at, stride := form.At(j)
		for l := range k {
			seen += copy(panels[at+l*stride:][:form.Run(j)], b[l*n+j:])
		}
	}
	if seen != k*n {
		t.Fatalf("%d of %d×%d elements have a place", seen, k, n)
	}
	if beta == 0 {
		for i := range c {
			c[i] = float32(math.NaN())
		}
	}
	rowStride, stepStride := lda, 1
	if trans {
		rowStride, stepStride = 1, lda
	}
	MultiplyPanels(form, m, a, rowStride, stepStride, panels, beta, c, ldc)
	for i := range m {
		for j := range n {
			if d := math.Abs(float64(c[i*ldc+j]) - want[i*n+j]); !(d <= 1e-6*(1+scale[i*n+j])) {
				t.Fatalf("%s: element %d,%d is %g, want %g", fmt.Sprint(m, n, k, trans, beta), i, j, c[i*ldc+j], want[i*n+j])
			}
		}
	}
}
