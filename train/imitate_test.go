package train_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
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

// A network places points of a curve that it has not seen where the map has their neighbours.
func TestImitate(t *testing.T) {
	x, y := spiral(1000, 1)
	others, want := spiral(300, 2)
	calls, last := 0, 0.0
	network, err := train.Imitate(t.Context(), x, y, &train.Imitation{Seed: 1, Step: func(done, of int, loss float64) {
		calls++
		if last = loss; done != calls || of != 300 {
			t.Errorf("step %d of %d after %d calls", done, of, calls)
		}
	}})
	must(t, err)
	got := make([]float32, len(want.X))
	must(t, network.ProjectTo(got, others.X))
	var far []float32
	for i := range want.N {
		far = append(far, max(got[2*i]-want.X[2*i], want.X[2*i]-got[2*i]))
	}
	slices.Sort(far)
	if median := far[len(far)/2]; median > 0.3 || last > 0.0026 { // a network that has not learnt has 0.0028
		t.Errorf("the median distance is %v of a map 50 wide, the loss %v", median, last)
	}
}

// interrupted cancels an imitation after a step, and returns the path of its checkpoint.
func interrupted(t *testing.T, x, y *data.Matrix, seed uint64, stop int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "learning.safetensors")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := train.Imitate(ctx, x, y, &train.Imitation{
		Seed: seed,
		Step: func(done, _ int, _ float64) {
			if done == stop {
				cancel()
			}
		},
		Checkpoints: &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return path
}

// A network has the same bits on any number of cores.
func TestImitateOnAnyNumberOfCores(t *testing.T) {
	x, y := spiral(1000, 1)
	var before []byte
	for _, procs := range []int{1, 3} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		got, err := os.ReadFile(interrupted(t, x, y, 1, 25))
		must(t, err)
		if before != nil && !bytes.Equal(got, before) {
			t.Errorf("%d cores give other bits", procs)
		}
		before = got
	}
}

// A training that was interrupted, or killed after a checkpoint, goes on to the same bits.
func TestImitateResumes(t *testing.T) {
	x, y := spiral(100, 1)
	saves := 0
	whole, err := train.Imitate(t.Context(), x, y, &train.Imitation{Seed: 3, Checkpoints: &train.Checkpoints{
		Interval: 1,
		Save:     func(*train.Checkpoint) error { saves++; return nil },
	}})
	if must(t, err); saves < 290 {
		t.Errorf("got %d saves, want one before each of 300 steps", saves)
	}
	want := make([]float32, len(y.X))
	must(t, whole.ProjectTo(want, x.X))
	for _, stop := range []int{1, 150} { // a step takes all points
		from, err := train.ReadCheckpoint(interrupted(t, x, y, 3, stop))
		must(t, err)
		first := 0
		network, err := train.Imitate(t.Context(), x, y, &train.Imitation{Seed: 3, Resume: from, Step: func(done, _ int, _ float64) {
			if first == 0 {
				first = done
			}
		}})
		must(t, err)
		got := make([]float32, len(y.X))
		must(t, network.ProjectTo(got, x.X))
		if first != stop+1 || !slices.Equal(got, want) {
			t.Errorf("stopped after step %d: it goes on with step %d, to the same bits: %v", stop, first, slices.Equal(got, want))
		}
		moved := &data.Matrix{N: y.N, D: y.D, X: slices.Clone(y.X)}
		moved.X[7]++
		for name, o := range map[string]struct {
			positions *data.Matrix
			seed      uint64
		}{"another map": {moved, 3}, "another seed": {y, 4}, "fewer points": {y.Rows(0, 90), 3}} {
			_, err := train.Imitate(t.Context(), x.Rows(0, o.positions.N), o.positions, &train.Imitation{Seed: o.seed, Resume: from})
			if !errors.Is(err, train.ErrCheckpoint) {
				t.Errorf("%s: %v", name, err)
			}
		}
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
	network, err := train.Imitate(t.Context(), x, y, nil)
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
		if _, err := train.Imitate(t.Context(), c.points, c.positions, nil); !errors.Is(err, train.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An outlier does not decide where others are placed.
	x.Row(7)[2] = 1e30
	network, err := train.Imitate(t.Context(), x, y, nil)
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
	if _, err := train.Imitate(ctx, x, y, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}
