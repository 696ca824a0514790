//go:build cu

package train_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
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

// New points get the positions that the CPU gives them, within what rounding makes of a
// few steps, and with the same bits in any order of threads, alone and among others.
// What a device cannot move, the CPU moves.
func TestProjectorOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	var said []string
	d.OnNote(func(sentence string) { said = append(said, sentence) })
	for name, training := range projectorOptions() {
		t.Run(name, func(t *testing.T) {
			for _, dims := range []int{1, 2, 3, 4, 5} {
				if dims == 1 && training.Objective.Metric == op.Cosine {
					continue
				}
				said = nil
				x := clustered(90, trainedWidth, 2, 4)
				here, there := newProjector(t, dims, training), newProjectorOn(t, d, dims, training)
				here.SetEpochs(4)
				there.SetEpochs(4)
				want, got := placeWith(t, here, x), placeWith(t, there, x)
				onCPU := dims > 4 || training.Objective.Metric == op.Cosine
				if told := len(said) == 1 && strings.HasPrefix(said[0], "new points are placed on the CPU, with neighbours from the GPU, since they "); told != onCPU {
					t.Errorf("%d dimensions: it says %q", dims, said)
				}
				within := 2e-3
				if onCPU {
					within = 0
				}
				for i, v := range want.X {
					if far := math.Abs(float64(got.X[i] - v)); !(far <= within) {
						t.Fatalf("%d dimensions: coordinate %d of point %d is %g, and %g on the CPU", dims, i%dims, i/dims, got.X[i], v)
					}
				}
				if dims != 2 {
					continue
				}
				for order := range uint64(3) {
					fakecuda.Order(t, order)
					if again := placeWith(t, there, x); !slices.Equal(again.X, got.X) {
						t.Errorf("in order %d the points lie elsewhere", order)
					}
				}
				for _, i := range []int{0, 31, 89} {
					if alone := placeWith(t, there, x.Rows(i, i+1)); !slices.Equal(alone.X, got.Row(i)) {
						t.Errorf("point %d lies elsewhere alone", i)
					}
				}
				there.SetEpochs(0)
				here.SetEpochs(0)
				if starts := placeWith(t, there, x); !slices.Equal(starts.X, placeWith(t, here, x).X) {
					t.Error("the points start elsewhere")
				}
			}
		})
	}
}

// With all their steps, new points come to lie where the CPU puts them, but for the few
// that lie between clusters.
func TestProjectorPlacesPointsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, name := range []string{op.Neg.String(), op.InfoNC.String(), "shared umap"} {
		training := projectorOptions()[name]
		x := clustered(60, trainedWidth, 1, 3)
		here, there := newProjector(t, 2, training), newProjectorOn(t, d, 2, training)
		if testing.Short() {
			here.SetEpochs(20)
			there.SetEpochs(20)
		}
		want, got := placeWith(t, here, x), placeWith(t, there, x)
		apart := 0
		for i := range want.N {
			a, b := want.Row(i), got.Row(i)
			if math.Hypot(float64(a[0]-b[0]), float64(a[1]-b[1])) > 0.05 {
				apart++
			}
		}
		if apart > want.N/20 {
			t.Errorf("%s: %d of %d points come to lie elsewhere", name, apart, want.N)
		}
	}
}

// Too little memory, and steps that are too large, are errors of one sentence.
func TestProjectorFailsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	training := projectorOptions()[op.Neg.String()]
	wild := training
	wild.Clip, wild.LR = 0, math.MaxFloat32
	p := newProjectorOn(t, d, 2, wild)
	x := clustered(40, trainedWidth, 1, 3)
	if err := p.ProjectTo(make([]float32, 2*x.N), x.X); err == nil || !strings.HasPrefix(err.Error(), "train: new points diverge at the model's learning rate, 3.4") {
		t.Errorf("the error is %v", err)
	}
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	used, _ := fakecuda.Usage()
	fakecuda.Memory(t, used+1000)
	full := new(device.MemoryError)
	if err := p.ProjectTo(make([]float32, 2*x.N), x.X); !errors.As(err, &full) || strings.Contains(err.Error(), "\n") {
		t.Errorf("without memory for new points the error is %v", err)
	}
	if _, err := train.NewProjector(t.Context(), d, clustered(trainedPoints, trainedWidth, 1, 1), data.NewMatrix(trainedPoints, 2).X, 2, training); !errors.As(err, &full) {
		t.Errorf("without memory for the training points the error is %v", err)
	}
	runtime.KeepAlive(p) // and its memory with it
}
