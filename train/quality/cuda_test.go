//go:build cu

package quality

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
)

// scattered returns n points around a few centres, some of them twice.
func scattered(n, d int) *data.Matrix {
	m, s := data.NewMatrix(n, d), rng.New(uint64(n), rng.Init)
	for i := range n {
		for l := range m.Row(i) {
			m.Row(i)[l] = float32(s.Normal() + 8*float64(i%5))
		}
		if i%7 == 6 {
			copy(m.Row(i), m.Row(i-1))
		}
	}
	return m
}

// onBoth compares what f computes on the CPU and on a device, relative to the CPU's
// and, if absolute, to 1 where that is less; 0: the same bits. The device computes the
// same again.
func onBoth(t *testing.T, what string, d *device.Device, within, absolute float64, f func(d *device.Device) ([]float64, error)) {
	t.Helper()
	want, err := f(nil)
	must(t, err)
	got, err := f(d)
	must(t, err)
	for k, w := range want {
		if !(math.Abs(got[k]-w) <= within*(absolute+math.Abs(w))) {
			t.Errorf("%s: figure %d is %v, want %v", what, k, got[k], w)
		}
	}
	if again, err := f(d); err != nil || !slices.Equal(again, got) {
		t.Errorf("%s: the figures are %v, then %v (%v)", what, got, again, err)
	}
}

// one makes a list of one figure.
func one(v float64, err error) ([]float64, error) { return []float64{v}, err }

func TestAccuracyOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, size := range []struct{ n, d int }{{40, 2}, {300, 2}, {300, 12}} {
		m := scattered(size.n, size.d)
		class := make([]int32, size.n)
		for i := range class {
			class[i] = int32(i * i % 5 * (i % 3))
		}
		onBoth(t, fmt.Sprint("accuracy of ", size), d, 0, 0, func(d *device.Device) ([]float64, error) {
			return one(knnAccuracy(t.Context(), m, class, 7, 0.3, 1, d))
		})
		half := size.n / 2
		onBoth(t, fmt.Sprint("held-out accuracy of ", size), d, 0, 0, func(d *device.Device) ([]float64, error) {
			return one(HeldOutAccuracy(t.Context(), m.Rows(0, half), class[:half], m.Rows(half, size.n), class[half:], 3, d))
		})
	}
}

func TestRefusalsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	m := scattered(5, 2)
	if _, err := HeldOutAccuracy(t.Context(), m, make([]int32, 5), scattered(3, 3), make([]int32, 3), 1, d); !errors.Is(err, ErrInput) {
		t.Errorf("points of another width give %v", err)
	}
	fakecuda.Memory(t, 100)
	var full *device.MemoryError
	m = scattered(300, 2)
	if _, err := HeldOutAccuracy(t.Context(), m, make([]int32, 300), m, make([]int32, 300), 1, d); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}
