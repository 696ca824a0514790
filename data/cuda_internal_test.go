//go:build cu

package data

import (
	"math"
	"testing"

	"cne/internal/device/fakecuda"
	"cne/internal/rng"
)

// More points than are on the device at a time.
func TestPCAOnDeviceInChunks(t *testing.T) {
	d := fakecuda.Open(t)
	before := deviceBytes
	deviceBytes = 4 * 5 * 300
	defer func() { deviceBytes = before }()
	m, s := NewMatrix(1000, 5), rng.New(1, rng.Init)
	for i := range m.X {
		m.X[i] = float32(s.Normal() * float64(1+i%5))
	}
	want, err := FitPCA(t.Context(), m, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FitPCA(t.Context(), m, 3, d)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range want.Axes {
		if math.Abs(got.Axes[i]-v) > 1e-12 {
			t.Errorf("component %d of the axes is %g, want %g", i, got.Axes[i], v)
		}
	}
	y, err := want.Transform(t.Context(), m, d)
	if err != nil {
		t.Fatal(err)
	}
	here, err := want.Transform(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range here.X {
		if math.Abs(float64(y.X[i]-v)) > 1e-6*(1+math.Abs(float64(v))) {
			t.Fatalf("coordinate %d is %g, want %g", i, y.X[i], v)
		}
	}
}

func TestPCAContextOnDevice(t *testing.T) { testPCAContext(t, fakecuda.Open(t)) }
