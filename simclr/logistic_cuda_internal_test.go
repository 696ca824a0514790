//go:build cu

package simclr

import (
	"math"
	"testing"

	"cne/internal/device/fakecuda"
	"cne/internal/rng"
)

// The objective and its gradient are the CPU's, near the start and far from it.
func TestObjectiveOnDevice(t *testing.T) {
	dev := fakecuda.Open(t)
	for _, size := range []struct{ n, d, k int }{{7, 1, 2}, {257, 5, 3}, {1100, 140, 11}} {
		x, class := blobs(size.n, size.d, size.k)
		for _, scale := range []float64{0, 0.1, 20} {
			o := &objective{n: size.n, d: size.d, k: size.k, x: x, class: class, penalty: 0.3}
			o.prepare()
			s := rng.New(3, rng.Sample)
			theta := make([]float64, size.k*(size.d+1))
			for i := range theta {
				theta[i] = scale * s.Normal()
			}
			want, got := make([]float64, len(theta)), make([]float64, len(theta))
			loss, err := o.evaluate(theta, want)
			must(t, err)
			o.onDevice, err = newDeviceObjective(dev, o)
			must(t, err)
			for range 2 {
				there, err := o.evaluate(theta, got)
				must(t, err)
				if math.Abs(there-loss) > 1e-6*loss {
					t.Errorf("%v, scale %v: the objective is %v, want %v", size, scale, there, loss)
				}
				for i, w := range want {
					if math.Abs(got[i]-w) > 1e-6*(1+math.Abs(w)) {
						t.Fatalf("%v, scale %v: derivative %d is %v, want %v", size, scale, i, got[i], w)
					}
				}
			}
			o.onDevice.memory.Free()
		}
	}
	if used, _ := dev.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}
