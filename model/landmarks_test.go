package model_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/model"
	"cne/model/op"
)

// landmarks returns a network of m drawn landmarks of in values, in the plane.
func landmarks(t *testing.T, in, m, hidden int) *model.MLP[float32] {
	t.Helper()
	n, err := model.NewLandmarkMLP(model.Landmarks{
		Points: matrix(normals(m*in, 1), in), Positions: matrix(normals(2*m, 2), 2), Sharpness: 0.7, Hidden: hidden, Spread: 1, Seed: 3,
	})
	must(t, err)
	return n
}

func matrix(x []float64, d int) *data.Matrix { return &data.Matrix{N: len(x) / d, D: d, X: to32(x)} }

// modeOf returns where a point is whose landmarks have the weights p and positions y [m, 2]: five
// steps of mean shift from the mean, with a bandwidth whose square has 60 landmarks.
func modeOf(p []float64, y []float32) (x [2]float64) {
	m, middle, squares, far := len(p), [2]float64{}, 0.0, slices.Max(p)/100
	for k := range 2 * m {
		middle[k%2] += float64(y[k]) / float64(m)
	}
	for k := range 2 * m {
		squares += math.Pow(float64(y[k])-middle[k%2], 2)
	}
	h2 := squares / float64(2*m) * 60 / float64(m)
	for step := range 6 {
		var sum [3]float64
		for k := range m {
			w, at := max(0, p[k]-far), [3]float64{float64(y[2*k]), float64(y[2*k+1]), 1}
			if step > 0 {
				w /= math.Pow(1+(math.Pow(at[0]-x[0], 2)+math.Pow(at[1]-x[1], 2))/h2, 2)
			}
			for j := range sum {
				sum[j] += w * at[j]
			}
		}
		x = [2]float64{sum[0] / sum[2], sum[1] / sum[2]}
	}
	return x
}

// A point is placed in the denser of two groups of its landmarks, not between them.
func TestLandmarksApart(t *testing.T) {
	const m = 400
	points, positions := data.NewMatrix(m, 2), data.NewMatrix(m, 2)
	for k := range m {
		x := points.Row(k)
		x[0], x[1] = float32(k%20)/10-1, float32(k/20)/10-1
		positions.Row(k)[1] = x[1]
		if positions.Row(k)[0] = x[0]; x[0] > 0.15 {
			positions.Row(k)[0] += 10 // the map tears the points apart
		}
	}
	n, err := model.NewLandmarkMLP(model.Landmarks{Points: points, Positions: positions, Sharpness: 20, Hidden: 4, Spread: 1})
	must(t, err)
	got := make([]float32, 8)
	must(t, n.ProjectTo(got, []float32{0, 0, 0.05, 0.5, 0.25, 0.5, 0.4, 0}))
	for i, want := range []float32{0, 0, 0.05, 0.5, 10.25, 0.5, 10.4, 0} {
		if d := got[i] - want; d < -0.2 || d > 0.2 {
			t.Errorf("value %d is %v, want about %v", i, got[i], want)
		}
	}
}

// Before training, a network of landmarks places points where those are densest that have large
// weights exp(−β‖x−c‖²), and Refer changes its units.
func TestLandmarks(t *testing.T) {
	const in, m, beta = 6, 30, 0.7
	x, c, y := normals(50*in, 4), to32(normals(m*in, 1)), to32(normals(2*m, 2))
	n := landmarks(t, in, m, 20)
	want := make([]float64, 2*50)
	for i := range 50 {
		p := make([]float64, m)
		for k := range m {
			d2 := 0.0
			for j := range in {
				d2 += math.Pow(float64(float32(x[i*in+j])-c[k*in+j]), 2)
			}
			p[k] = math.Exp(-beta * d2)
		}
		at := modeOf(p, y)
		copy(want[2*i:], at[:])
	}
	got := make([]float32, len(want))
	compare := func(what string, x, want []float64) {
		t.Helper()
		must(t, n.ProjectTo(got, to32(x)))
		for i, v := range got {
			if math.Abs(float64(v)-want[i]) > 1e-4*math.Max(1, math.Abs(want[i])) {
				t.Fatalf("%s: value %d is %v, want %v", what, i, v, want[i])
			}
		}
	}
	compare("new", x, want)
	center, moved, larger := normals(in, 5), slices.Clone(x), slices.Clone(want)
	for i := range moved {
		moved[i] = 10*moved[i] + center[i%in]
	}
	for i := range larger {
		larger[i] = 3*larger[i] + []float64{100, -7}[i%2]
	}
	n.Refer(center, 10, []float64{100, -7}, 3)
	compare("referred", moved, larger)
	// The first two of three columns, moved.
	axes, mean := []float64{0, 1, 0, 1, 0, 0}, []float64{5, 6, 7}
	small := landmarks(t, 2, 20, 10)
	flat := to32(normals(2*20, 6))
	placed := make([]float32, len(flat))
	must(t, small.ProjectTo(placed, flat))
	wide := make([]float64, 0, 60)
	for i := 0; i < len(flat); i += 2 {
		wide = append(wide, float64(flat[i+1])+5, float64(flat[i])+6, 100)
	}
	after, err := small.After(axes, mean)
	must(t, err)
	got = make([]float32, len(placed))
	must(t, after.ProjectTo(got, to32(wide)))
	for i, v := range got {
		if math.Abs(float64(v-placed[i])) > 1e-4 {
			t.Fatalf("after components: value %d is %v, want %v", i, v, placed[i])
		}
	}
	if _, err := model.NewLandmarkMLP(model.Landmarks{Points: matrix(normals(8, 1), 4), Positions: matrix(normals(4, 1), 2), Sharpness: 1, Spread: 1, Hidden: 7}); !errors.Is(err, model.ErrInput) {
		t.Errorf("hidden layers that cannot pass the points: %v", err)
	}
}

// The gradients of an Imitation lower its loss.
func TestImitation(t *testing.T) {
	const in, n = 6, 20
	x, y := to32(normals(n*in, 4)), to32(normals(2*n, 5))
	m, err := model.NewImitation(landmarks(t, in, 30, 20))
	must(t, err)
	before, err := m.Step(x, y)
	must(t, err)
	for _, p := range m.Parameters() {
		for i, g := range op.Data[float32](p.Grad) {
			op.Data[float32](p.Value)[i] -= 0.001 * g
		}
	}
	if after, err := m.Step(x, y); err != nil || !(after < before) || !(before > 0.1) {
		t.Errorf("the loss went from %v to %v (%v)", before, after, err)
	}
	if _, err := m.Step(x[1:], y); !errors.Is(err, op.ErrInput) {
		t.Errorf("a point without a position: %v", err)
	}
}
