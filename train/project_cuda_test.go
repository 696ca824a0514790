//go:build cu

package train_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// newProjectorOn is newProjector for a device.
func newProjectorOn(t testing.TB, on *device.Device, d int, training model.FitInfo) *train.Projector {
	t.Helper()
	p, err := train.NewProjector(t.Context(), on, clustered(trainedPoints, trainedWidth, 1, 1), clustered(trainedPoints, d, 0.5, 2).X, d, training)
	must(t, err)
	return p
}

// New points get the CPU's positions, bit for bit: the GPU only finds neighbours.
func TestProjectorOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for name, training := range projectorOptions() {
		x := clustered(90, trainedWidth, 2, 4)
		want := placeWith(t, newProjector(t, 2, training), x)
		for order := range uint64(3) {
			fakecuda.Order(t, order)
			if got := placeWith(t, newProjectorOn(t, d, 2, training), x); !slices.Equal(got.X, want.X) {
				t.Errorf("%s: in order %d the points lie elsewhere", name, order)
			}
		}
	}
}

// Too little memory is an error of one sentence.
func TestProjectorFailsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	training := projectorOptions()[op.Neg.String()]
	p := newProjectorOn(t, d, 2, training)
	x := clustered(40, trainedWidth, 1, 3)
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	used, _ := fakecuda.Usage()
	fakecuda.Memory(t, used+1000)
	full := new(device.MemoryError)
	if err := p.ProjectTo(make([]float32, 2*x.N), x.X); !errors.As(err, &full) || strings.Contains(err.Error(), "\n") {
		t.Errorf("without memory for new points the error is %v", err)
	}
	runtime.KeepAlive(p) // and its memory with it
}
