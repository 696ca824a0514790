//go:build cu

package pca

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/device/fakecuda"
)

// BenchmarkEigenOnDevice times the eigenvectors of 50 components of 3072 values (colour
// images of 32×32).
func BenchmarkEigenOnDevice(b *testing.B) {
	n, k := 3072, 50
	if testing.Short() {
		n, k = 520, 8
	}
	b.Run(fmt.Sprintf("n=%d/k=%d", n, k), func(b *testing.B) {
		d := fakecuda.Open(b)
		d.Unpooled = false
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Pow(1+float64(i), -1.5)
		}
		a := symmetric(1, values)
		find := func() {
			if _, _, err := largestEigen(b.Context(), a, n, k, d); err != nil {
				b.Fatal(err)
			}
		}
		find() // loads kernels and allocates memory
		b.ResetTimer()
		for range b.N {
			find()
		}
	})
}
