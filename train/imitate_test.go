package train_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/train"
)

// spiral returns points in six dimensions on a curve, and their positions along a line: a map
// that no linear function gives.
func spiral(n int, seed uint64) (x, y *data.Matrix) {
	s := rng.New(seed, rng.Sample)
	x, y = data.NewMatrix(n, 6), data.NewMatrix(n, 2)
	for i := range n {
		at := s.Float64()
		for j := range 6 {
			v := at
			for range j {
				v = 3.9 * v * (1 - v) // each column folds the one before
			}
			x.Row(i)[j] = float32(v + 0.001*s.Normal())
		}
		y.Row(i)[0], y.Row(i)[1] = float32(100+50*at), float32(-7)
	}
	return x, y
}

// A network places points of a curve that it has not seen where the map has their neighbours,
// with the same bits on any number of cores.
func TestImitate(t *testing.T) {
	x, y := spiral(2000, 1)
	others, want := spiral(300, 2)
	var before []float32
	for _, procs := range []int{1, 3} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			calls, last := 0, 0.0
			network, err := train.Imitate(t.Context(), x, y, 1, func(done, of int, loss float64) {
				calls++
				if last = loss; done != calls || of != 300 {
					t.Errorf("step %d of %d after %d calls", done, of, calls)
				}
			})
			must(t, err)
			got := make([]float32, len(want.X))
			must(t, network.ProjectTo(got, others.X))
			var far []float32
			for i := range want.N {
				far = append(far, max(got[2*i]-want.X[2*i], want.X[2*i]-got[2*i]))
			}
			slices.Sort(far)
			if median := far[len(far)/2]; median > 0.3 || last > 0.05 {
				t.Errorf("the median distance is %v of a map 50 wide, the loss %v", median, last)
			}
			if before != nil && !slices.Equal(got, before) {
				t.Errorf("%d cores give other bits", procs)
			}
			before = got
		}()
	}
}

// Copies take no landmarks from the few points that differ.
func TestImitateCopies(t *testing.T) {
	for _, n := range []int{300, 4000} { // of 4000, the scale is found from the even ones
		testImitateCopies(t, n)
	}
}

func testImitateCopies(t *testing.T, n int) {
	x, y := data.NewMatrix(n, 2), data.NewMatrix(n, 2)
	for i := range 3 {
		x.Row(100*i + 1)[0], y.Row(100*i + 1)[1] = float32(i+1), float32(10*i+10)
	}
	network, err := train.Imitate(t.Context(), x, y, 1, nil)
	must(t, err)
	got := make([]float32, len(y.X))
	must(t, network.ProjectTo(got, x.X))
	for _, i := range []int{0, 101, 201} {
		if d := got[2*i+1] - y.Row(i)[1]; d < -1 || d > 1 {
			t.Errorf("point %d: got %v, want about %v", i, got[2*i+1], y.Row(i)[1])
		}
	}
}

func TestImitateRefuses(t *testing.T) {
	x, y := spiral(50, 1)
	for name, c := range map[string]struct{ points, positions *data.Matrix }{
		"few":             {x.Rows(0, 5), y.Rows(0, 5)},
		"equal points":    {data.NewMatrix(50, 6), y},
		"equal positions": {x, data.NewMatrix(50, 2)},
		"sparse":          {x.Sparse(), y},
	} {
		if _, err := train.Imitate(t.Context(), c.points, c.positions, 1, nil); !errors.Is(err, train.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An outlier does not decide where others are placed.
	x.Row(7)[2] = 1e30
	network, err := train.Imitate(t.Context(), x, y, 1, nil)
	must(t, err)
	got := make([]float32, len(y.X))
	must(t, network.ProjectTo(got, x.X))
	var far []float32
	for i := range y.N {
		far = append(far, max(got[2*i]-y.X[2*i], y.X[2*i]-got[2*i]))
	}
	if slices.Sort(far); !(far[25] < 2) {
		t.Errorf("with an outlier, half of the points are farther than %v from where they should be", far[25])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := train.Imitate(ctx, x, y, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}
