//go:build cu

package train_test

import (
	"math"
	"testing"

	"cne/internal/device/fakecuda"
	"cne/model/op"
	"cne/train"
)

// A pull of a run on a device is taken on the host, and moves the points as one on the CPU.
func TestPullOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	run := func(pull float64, change func(*train.Options)) []float64 {
		_, y := pulled[float32](t, op.NC, 2, 0.1, 3, func(o *train.Options) {
			o.Phases[0].Pull = pull
			change(o)
		})
		return y
	}
	want := run(0.5, func(*train.Options) {})
	got := run(0.5, func(o *train.Options) { o.Device = d })
	for i, v := range got {
		if math.Abs(v-want[i]) > 1e-3 {
			t.Fatalf("coordinate %d: got %g, want %g", i, v, want[i])
		}
	}
	towards := normal[float32](200, 2, 9)
	if squares, rest := shape(run(1e6, func(o *train.Options) { o.Device = d }), towards, 2); rest > 1e-9*squares {
		t.Errorf("a huge pull leaves %g of %g", rest, squares)
	}
}
