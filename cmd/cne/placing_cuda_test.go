//go:build cu

package main

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/internal/device/fakecuda"
	"cne/model"
)

// A table places points on a device that it is given, and on the CPU again afterwards.
func TestTablePlacesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	points := data.NewMatrix(600, 3)
	for i := range points.X {
		points.X[i] = float32((i*7919)%101) / 10
	}
	o := cne.Options{Epochs: 30, Neighbors: 5}
	e, err := cne.Embed(t.Context(), points, o)
	must(t, err)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must(t, e.Save(path))
	e, err = cne.Load(path)
	must(t, err)
	place := func(on *model.Device) []float32 {
		t.Helper()
		must(t, e.UseDevice(on))
		before, _ := d.Operations()
		placed, err := e.Project(t.Context(), points)
		must(t, err)
		if after, _ := d.Operations(); after > before != (on != nil) {
			t.Errorf("the device was asked for %d operations", after-before)
		}
		return placed.X
	}
	want, got := place(nil), place(d)
	for i := range points.N {
		if far := math.Hypot(float64(got[2*i]-want[2*i]), float64(got[2*i+1]-want[2*i+1])); far > 0.05 {
			t.Errorf("point %d lies at %v, and at %v on the CPU", i, got[2*i:2*i+2], want[2*i:2*i+2])
		}
	}
	if again := place(nil); !slices.Equal(again, want) {
		t.Error("the CPU places points elsewhere after the device")
	}

	// A model trained on a sample places the other points on the run's device.
	o.Division = new(cne.Division)
	for i := 0; i < points.N; i += 2 {
		o.Division.Trained = append(o.Division.Trained, i)
	}
	here, err := cne.Embed(t.Context(), points, o)
	must(t, err)
	o.Device = d
	there, err := cne.Embed(t.Context(), points, o)
	must(t, err)
	if here.Positions.N != points.N || there.Positions.N != points.N {
		t.Errorf("%d and %d points have positions", here.Positions.N, there.Positions.N)
	}
	if _, err := there.Project(t.Context(), points); err != nil {
		t.Error(err)
	}
}
