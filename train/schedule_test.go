package train

import (
	"math"
	"testing"
)

func TestScheduled(t *testing.T) {
	for _, tc := range []struct {
		anneal                                Schedule
		epoch, batch, batches, warmUp, epochs int
		want                                  float64
	}{
		{Linear, 0, 0, 4, 0, 10, 2},
		{Linear, 0, 3, 4, 0, 10, 2},
		{Linear, 5, 2, 4, 0, 10, 1},
		{Linear, 9, 3, 4, 0, 10, 0.2},
		{Constant, 9, 3, 4, 0, 10, 2},
		{Cosine, 0, 0, 4, 0, 10, 2},
		{Cosine, 5, 0, 4, 0, 10, 1},
		{Cosine, 2, 2, 4, 0, 10, 1 + math.Cos(math.Pi/4)},
		{Linear, 0, 0, 4, 2, 10, 0},
		{Linear, 1, 0, 4, 2, 10, 1},
		{Constant, 1, 2, 4, 2, 10, 1.5},
		{Linear, 2, 0, 4, 2, 10, 2},
		{Linear, 6, 0, 4, 2, 10, 1},
		{Cosine, 2, 0, 4, 2, 10, 2},
		{Cosine, 6, 0, 4, 2, 10, 1},
	} {
		if got := learningRateAt(tc.anneal, 2, tc.epoch, tc.batch, tc.batches, tc.warmUp, tc.epochs); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%+v: learning rate %g", tc, got)
		}
	}
}

// A learning rate rises in the warm-up and never after it, without a jump between.
func TestScheduledIsMonotone(t *testing.T) {
	const batches, warmUp, epochs = 7, 3, 12
	for _, a := range []Schedule{Linear, Constant, Cosine} {
		last := -1.
		for i := range batches * epochs {
			lr := learningRateAt(a, 1, i/batches, i%batches, batches, warmUp, epochs)
			if rising := i <= warmUp*batches; rising && lr <= last || !rising && lr > last {
				t.Errorf("schedule %d: %g after %g in batch %d", a, lr, last, i)
			}
			if lr < 0 || lr > 1 {
				t.Errorf("schedule %d: learning rate %g", a, lr)
			}
			last = lr
		}
	}
}
