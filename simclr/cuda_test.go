//go:build cu

package simclr_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/simclr"
)

func TestEvaluationOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	f, classes, split := probes(t)
	x := goldenPoints(t, f, "logreg_X")
	clear(x.Row(3))
	for _, k := range []int{1, 15, 200} {
		got, err := simclr.KNNAccuracy(t.Context(), x, classes, split, k, d)
		must(t, err)
		if want := knnNaive(x, classes, split, k); got != want {
			t.Errorf("k=%d: accuracy %v, want %v", k, got, want)
		}
	}

	images := labelled(600, 4)
	features, err := simclr.Pixels(images, nil)
	must(t, err)
	here := simclr.Evaluation{K: 5, Seeds: []uint64{1}, Test: 100}
	there := here
	there.Device = d
	want, err := here.Run(t.Context(), features, images)
	must(t, err)
	got, err := there.Run(t.Context(), features, images)
	must(t, err)
	if got.KNN != want.KNN || math.Abs(got.Linear.Mean-want.Linear.Mean) > 0.011 || !got.Splits[0].Converged {
		t.Errorf("%+v, want %+v", got, want)
	}
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := there.Run(ctx, features, images); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, the evaluation says %v", err)
	}
	fakecuda.Memory(t, 1000)
	var full *device.MemoryError
	if _, err := there.Run(t.Context(), features, images); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
}
