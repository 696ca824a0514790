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

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFitPCAOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	testFitPCA(t, d)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

// Sizes around those of tiles and slices, compared with the CPU.
func TestPCAOnDeviceAgrees(t *testing.T) {
	d := fakecuda.Open(t)
	for _, size := range []struct{ n, d, k int }{{600, 63, 5}, {513, 65, 65}, {70, 129, 66}, {33, 300, 2}, {2, 1, 1}} {
		m := spread(normal(3, size.n, size.d))
		want, err := data.FitPCA(t.Context(), m, size.k, nil)
		must(t, err)
		got, err := data.FitPCA(t.Context(), m, size.k, d)
		must(t, err)
		for a := range want.Variance {
			if math.Abs(got.Variance[a]-want.Variance[a]) > 1e-12*want.Variance[0] {
				t.Errorf("%v: variance %d is %g, want %g", size, a, got.Variance[a], want.Variance[a])
			}
		}
		here, err := want.Transform(t.Context(), m, nil)
		must(t, err)
		there, err := want.Transform(t.Context(), m, d)
		must(t, err)
		for i, v := range here.X {
			if math.Abs(float64(there.X[i]-v)) > 1e-6*(1+math.Abs(float64(v))) {
				t.Fatalf("%v: coordinate %d is %g, want %g", size, i, there.X[i], v)
			}
		}
	}
}

func TestPCAOnDeviceRefuses(t *testing.T) {
	d := fakecuda.Open(t)
	p, err := data.FitPCA(t.Context(), spread(normal(1, 30, 4)), 2, d)
	must(t, err)
	if _, err := p.Transform(t.Context(), normal(1, 5, 3), d); !errors.Is(err, data.ErrShape) {
		t.Errorf("points of another width give %v", err)
	}
	if _, err := data.FitPCA(t.Context(), normal(1, 30, 4), 5, d); !errors.Is(err, data.ErrOption) {
		t.Errorf("five components of four columns give %v", err)
	}
	fakecuda.Memory(t, 1000)
	var full *device.MemoryError
	if _, err := data.FitPCA(t.Context(), normal(1, 30, 4), 2, d); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
}
