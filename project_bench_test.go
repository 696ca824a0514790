package cne_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"cne"
	"cne/data"
	"cne/internal/rng"
	"cne/model"
)

// pixels returns n points of 784 bytes, four of five 0 as in MNIST.
func pixels(n int) *data.Matrix {
	s := rng.New(5, rng.Sample)
	m := data.NewMatrix(n, 784)
	for i := range m.X {
		m.X[i] = float32(max(0, s.IntN(1280)-1024))
	}
	return m
}

// paperNetwork returns a loaded network 784-100-100-100-2 of drawn weights.
func paperNetwork(t testing.TB) *cne.Embedding {
	t.Helper()
	n, err := model.NewMLP[float32](784, nil, 2, 1)
	must(t, err)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must(t, n.Save(path, &model.Description{Preprocessing: &model.Preprocessing{Width: 784, Scaler: &data.Scaler{Kind: data.ScaleUnit, Divisor: 255}}}))
	e, err := cne.Load(path)
	must(t, err)
	return e
}

func BenchmarkProject(b *testing.B) {
	e := paperNetwork(b)
	for _, n := range []int{1, 32, 1000, 1024, 20_000} {
		x := pixels(n)
		b.Run(fmt.Sprintf("points=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Project(b.Context(), x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	e := paperNetwork(b)
	path := filepath.Join(b.TempDir(), "model.safetensors")
	must(b, e.Save(path))
	for b.Loop() {
		if _, err := cne.Load(path); err != nil {
			b.Fatal(err)
		}
	}
}
