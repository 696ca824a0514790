package model_test

import (
	"testing"

	"cne/model"
)

// A network of the default size on as many points as MNIST has.
func BenchmarkProject(b *testing.B) {
	const n, in, out = 70000, 784, 2
	network, err := model.NewMLP[float32](in, nil, out, 1)
	if err != nil {
		b.Fatal(err)
	}
	x, dst := make([]float32, n*in), make([]float32, n*out)
	for i := range x {
		x[i] = float32(i%256) / 255
	}
	b.ResetTimer()
	for range b.N {
		if err := network.ProjectTo(dst, x); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "points/s")
}
