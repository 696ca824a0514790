//go:build cu

package data_test

import (
	"errors"
	"math"
	"testing"

	"cne/data"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

func TestFitPCAOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	testFitPCA(t, func(m *data.Matrix, k int) (*data.PCA, error) { return data.FitPCAOn(d, m, k) },
		func(p *data.PCA, m *data.Matrix) (*data.Matrix, error) { return p.TransformOn(d, m) })
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

// Sizes about the edges of tiles, and slices of rows, against the CPU.
func TestPCAOnDeviceAgrees(t *testing.T) {
	d := fakecuda.Open(t)
	for _, size := range []struct{ n, d, k int }{{600, 63, 5}, {513, 65, 65}, {70, 129, 66}, {33, 300, 2}, {2, 1, 1}} {
		m := spread(normal(3, size.n, size.d))
		want, err := data.FitPCA(m, size.k)
		if err != nil {
			t.Fatal(err)
		}
		got, err := data.FitPCAOn(d, m, size.k)
		if err != nil {
			t.Fatal(err)
		}
		for a := range want.Variance {
			if math.Abs(got.Variance[a]-want.Variance[a]) > 1e-12*want.Variance[0] {
				t.Errorf("%v: variance %d is %g, want %g", size, a, got.Variance[a], want.Variance[a])
			}
		}
		here, err := want.Transform(m)
		if err != nil {
			t.Fatal(err)
		}
		there, err := want.TransformOn(d, m)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range here.X {
			if math.Abs(float64(there.X[i]-v)) > 1e-6*(1+math.Abs(float64(v))) {
				t.Fatalf("%v: coordinate %d is %g, want %g", size, i, there.X[i], v)
			}
		}
	}
}

func TestPCAOnDeviceRefuses(t *testing.T) {
	d := fakecuda.Open(t)
	p, err := data.FitPCAOn(d, spread(normal(1, 30, 4)), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.TransformOn(d, normal(1, 5, 3)); !errors.Is(err, data.ErrShape) {
		t.Errorf("points of another width give %v", err)
	}
	if _, err := data.FitPCAOn(d, normal(1, 30, 4), 5); !errors.Is(err, data.ErrOption) {
		t.Errorf("five components of four columns give %v", err)
	}
	fakecuda.Memory(t, 1000)
	var full *device.MemoryError
	if _, err := data.FitPCAOn(d, normal(1, 30, 4), 2); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
}
