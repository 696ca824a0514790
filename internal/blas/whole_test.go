package blas

import (
	"math"
	"testing"

	"cne/internal/rng"
)

// Products of whole numbers are exact, whatever sums are on the way, in all sizes of tiles and
// forms of panels, and stay within C.
func TestWholeNumbersAreExact(t *testing.T) {
	forms(t, func(t *testing.T) {
		s := rng.New(1, rng.Sample)
		for _, n := range []int{1, 16, 32, 37} {
			for m := 1; m <= 13; m++ {
				for _, k := range []int{0, 1, 2, 33} {
					testWhole(t, m, n, k, &s)
				}
			}
		}
	})
}

func testWhole(t *testing.T, m, n, k int, s *rng.Stream) {
	t.Helper()
	form, lda, ldc := NewPanels[float32](k, n), k+2, n+3
	a, b, c := make([]uint32, m*lda), make([]uint32, form.Len()), make([]float32, m*ldc)
	for _, x := range [][]uint32{a, b} {
		for i := range x {
			if x[i] = uint32(s.Uint64()); i%3 == 0 {
				x[i] = 0x7fff8000 // the greatest and the least
			}
		}
	}
	for i := range c {
		c[i] = float32(math.Inf(1))
	}
	const scale = 0x1p-20
	MultiplyWhole(form, m, a, lda, b, scale, c, ldc)
	for i := range m {
		for j := range n {
			at, stride := form.At(j)
			sum := int64(0)
			for l := range k {
				x, y := a[i*lda+l], b[at+l*stride]
				sum += int64(int16(x))*int64(int16(y)) + int64(int16(x>>16))*int64(int16(y>>16))
			}
			if want := float32(int32(sum)) * scale; c[i*ldc+j] != want { // modulo 2³²
				t.Fatalf("%d×%d, %d pairs: element %d,%d is %v, want %v", m, n, k, i, j, c[i*ldc+j], want)
			}
		}
		for j := n; j < ldc; j++ {
			if !math.IsInf(float64(c[i*ldc+j]), 1) {
				t.Fatalf("%d×%d, %d pairs: what follows row %d has been written", m, n, k, i)
			}
		}
	}
}

func BenchmarkMultiplyWhole(b *testing.B) {
	const m, n, k = 256, 256, 27
	form := NewPanels[float32](k, n)
	x, y, z := make([]uint32, m*k), make([]uint32, form.Len()), make([]float32, m*n)
	for b.Loop() {
		MultiplyWhole(form, m, x, k, y, 1, z, n)
	}
	b.ReportMetric(4*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
}
