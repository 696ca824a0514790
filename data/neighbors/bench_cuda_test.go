//go:build cu

package neighbors

import (
	"fmt"
	"testing"

	"cne/internal/device/fakecuda"
)

// BenchmarkKNNOnDevice times the exact neighbours of 70 000 and of a million points of 50
// values with TF32, and of 70 000 points only in float32. Products of the default 2048 base
// points take 32 MiB, of 1024 half of that: the smaller ones may stay in more caches.
func BenchmarkKNNOnDevice(b *testing.B) {
	for _, c := range []struct {
		n     int
		tf32  bool
		block int
	}{{70_000, false, 2048}, {70_000, true, 2048}, {70_000, true, 1024}, {1_000_000, true, 2048}, {1_000_000, true, 1024}} {
		n := c.n
		if testing.Short() {
			n = max(700, n/1000)
		}
		b.Run(fmt.Sprintf("n=%d/D=50/k=15/tf32=%t/block=%d", n, c.tf32, c.block), func(b *testing.B) {
			defer func(before int) { pointBlock = before }(pointBlock)
			pointBlock = c.block
			d := fakecuda.Open(b)
			d.Unpooled, d.TF32 = false, c.tf32
			m := normal(n, 50, 1)
			search := func() {
				need(KNN(b.Context(), m, 15, Options{Search: Exact, Device: d}))(b)
			}
			search() // loads kernels and allocates memory
			b.ResetTimer()
			for range b.N {
				search()
			}
			b.StopTimer()
			// A pair takes a product and a sum for each component.
			b.ReportMetric(2*50*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()*1e-12, "TFLOP/s")
		})
	}
}
