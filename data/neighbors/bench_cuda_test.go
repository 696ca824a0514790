//go:build cu

package neighbors

import (
	"fmt"
	"testing"

	"cne/internal/device/fakecuda"
	"cne/internal/device/roofline"
)

// BenchmarkKNNOnDevice times the exact neighbours of as many points as MNIST has, of 50
// principal components.
func BenchmarkKNNOnDevice(b *testing.B) {
	n := 70000
	if testing.Short() {
		n = 700
	}
	b.Run(fmt.Sprintf("n=%d/D=50/k=15", n), func(b *testing.B) {
		d := fakecuda.Open(b)
		d.Unpooled = false
		m := normal(n, 50, 1)
		search := func() {
			if _, err := KNN(b.Context(), m, 15, Options{Device: d}); err != nil {
				b.Fatal(err)
			}
		}
		search() // loads kernels and allocates memory
		meter := roofline.Start(d)
		b.ResetTimer()
		for range b.N {
			search()
		}
		b.StopTimer()
		meter.Report(b, b.N, roofline.Distances(n, 50)...)
		// A pair takes a product and a sum for each component.
		b.ReportMetric(2*50*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()*1e-12, "TFLOP/s")
	})
}
