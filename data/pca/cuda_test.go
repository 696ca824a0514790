//go:build cu

package pca

import (
	"errors"
	"testing"

	"cne/data"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

func TestFitPCAOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	testFit(t, d)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestPCAOnDeviceRefuses(t *testing.T) {
	d := fakecuda.Open(t)
	p, err := Fit(t.Context(), spread(normal(1, 30, 4)), 2, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Transform(t.Context(), normal(1, 5, 3), d); !errors.Is(err, data.ErrShape) {
		t.Errorf("points of another width give %v", err)
	}
	if _, err := Fit(t.Context(), normal(1, 30, 4), 5, d); !errors.Is(err, data.ErrOption) {
		t.Errorf("five components of four columns give %v", err)
	}
	fakecuda.Memory(t, 1000)
	var full *device.MemoryError
	if _, err := Fit(t.Context(), normal(1, 30, 4), 2, d); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
}
