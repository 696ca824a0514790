package train_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// optimizers are all optimisers with several options.
var optimizers = map[string]func() train.Optimizer{
	"sgd":               func() train.Optimizer { return new(train.SGD) },
	"sgd, momentum":     func() train.Optimizer { return &train.SGD{Momentum: 0.9} },
	"sgd, both":         func() train.Optimizer { return &train.SGD{Momentum: 0.8, WeightDecay: 1e-3} },
	"sgd, weight decay": func() train.Optimizer { return &train.SGD{WeightDecay: 0.01} },
	"adam":              func() train.Optimizer { return new(train.Adam) },
	"adam, decay":       func() train.Optimizer { return &train.Adam{WeightDecay: 0.1} },
}

func arrayOf[T op.Float](t testing.TB, values []T, shape ...int) *op.Array {
	t.Helper()
	a, err := op.ArrayOf(values, shape...)
	must(t, err)
	return a
}

func initOptimizer(t testing.TB, m train.Optimizer, params ...model.Parameter) {
	t.Helper()
	must(t, m.Init(params))
}

// The trajectories that PyTorch's optimisers take down wᵀAw/2.
func TestGoldenTrajectories(t *testing.T) {
	for name, tc := range map[string]struct {
		optimizer func() train.Optimizer
		lr        float64
	}{
		"sgd":             {func() train.Optimizer { return new(train.SGD) }, 0.02},
		"sgd_momentum_wd": {func() train.Optimizer { return &train.SGD{Momentum: 0.9, WeightDecay: 5e-4} }, 0.02},
		"sgd_wd":          {func() train.Optimizer { return &train.SGD{WeightDecay: 0.1} }, 0.02},
		"adam":            {func() train.Optimizer { return new(train.Adam) }, 0.01},
		"adam_wd":         {func() train.Optimizer { return &train.Adam{WeightDecay: 0.01} }, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := safetensors.ReadFile("testdata/optim_" + name + ".safetensors")
			must(t, err)
			a, errA := f.Tensors["A"].Float64s()
			want, errT := f.Tensors["trajectory"].Float64s()
			if errA != nil || errT != nil {
				t.Fatal(errA, errT)
			}
			followTrajectory[float64](t, tc.optimizer(), tc.lr, a, want, 1e-9)
			followTrajectory[float32](t, tc.optimizer(), tc.lr, a, want, 1e-4)
		})
	}
}

func followTrajectory[T op.Float](t *testing.T, m train.Optimizer, lr float64, a, want []float64, tol float64) {
	t.Helper()
	const d = 6
	w, g := make([]T, d), make([]T, d)
	for i := range w {
		w[i] = T(want[i])
	}
	initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, d), Grad: arrayOf(t, g, d)})
	for step := 1; step < len(want)/d; step++ {
		for i := range g {
			g[i] = 0
			for j := range w {
				g[i] += T(a[i*d+j]) * w[j]
			}
		}
		m.Step(nil, lr, 0)
		for i, v := range w {
			if x := want[step*d+i]; math.Abs(float64(v)-x) > tol*(1+math.Abs(x)) {
				t.Fatalf("step %d, element %d: %g, want %g", step, i, v, x)
			}
		}
	}
}

// noise fills values with normal numbers.
func noise[T op.Float](values []T, seed uint64) {
	s := rng.New(seed, rng.Sample)
	for i := range values {
		values[i] = T(s.Normal())
	}
}

// A sparse gradient moves a parameter as the dense one does that has zeros in
// its place, for every optimiser.
func TestSparseIsDenseWithZeros(t *testing.T) {
	const n, d = 50, 3
	for name, optimizer := range optimizers {
		t.Run(name, func(t *testing.T) {
			for _, clip := range []float64{0, 0.5} {
				sparse, dense := make([]float32, n*d), make([]float32, n*d)
				noise(sparse, 1)
				copy(dense, sparse)
				rows := []int32{7, 0, 49, 23}
				grad, full := make([]float32, len(rows)*d), make([]float32, n*d)
				a, b := optimizer(), optimizer()
				initOptimizer(t, a, model.Parameter{Name: "w", Value: arrayOf(t, sparse, n, d), Grad: arrayOf(t, grad, len(rows), d), Sparse: true})
				initOptimizer(t, b, model.Parameter{Name: "w", Value: arrayOf(t, dense, n, d), Grad: arrayOf(t, full, n, d)})
				for step := range 5 {
					noise(grad, uint64(step))
					clear(full)
					simd.ScatterRows(full, grad, d, rows)
					a.Step(rows, 0.1, clip)
					b.Step(rows, 0.1, clip)
					if !slices.Equal(sparse, dense) {
						t.Fatalf("clip %g, step %d: sparse and dense part", clip, step)
					}
					rows[step%4] = int32(10 + step)
				}
			}
		})
	}
}

// An optimiser whose state is copied into a fresh one goes on with the same bits.
func TestStateIsAllThereIs(t *testing.T) {
	const n = 37
	for name, optimizer := range optimizers {
		t.Run(name, func(t *testing.T) {
			a, b := optimizer(), optimizer()
			wa, wb, g := make([]float64, n), make([]float64, n), make([]float64, n)
			noise(wa, 1)
			initOptimizer(t, a, model.Parameter{Name: "w", Value: arrayOf(t, wa, n), Grad: arrayOf(t, g, n)})
			for step := range 4 {
				noise(g, uint64(step))
				a.Step(nil, 0.1, 4)
			}
			copy(wb, wa)
			initOptimizer(t, b, model.Parameter{Name: "w", Value: arrayOf(t, wb, n), Grad: arrayOf(t, g, n)})
			from, to := a.State(), b.State()
			if len(from) != len(to) {
				t.Fatalf("%d and %d arrays", len(from), len(to))
			}
			seen := map[string]bool{}
			for i := range from {
				if from[i].Name != to[i].Name || seen[from[i].Name] {
					t.Errorf("array %d is called %q and %q", i, from[i].Name, to[i].Name)
				}
				seen[from[i].Name] = true
				copy(op.Data[float64](to[i].Value), op.Data[float64](from[i].Value))
				copy(op.Data[int32](to[i].Value), op.Data[int32](from[i].Value))
			}
			for step := range 4 {
				noise(g, uint64(10+step))
				a.Step(nil, 0.1, 4)
				b.Step(nil, 0.1, 4)
			}
			if !slices.Equal(wa, wb) {
				t.Error("the two part")
			}
			// Init forgets.
			initOptimizer(t, a, model.Parameter{Name: "w", Value: arrayOf(t, wa, n), Grad: arrayOf(t, g, n)})
			for _, s := range a.State() {
				for _, v := range op.Data[float64](s.Value) {
					if v != 0 {
						t.Fatalf("%s is not forgotten", s.Name)
					}
				}
			}
		})
	}
}

// A large parameter moves with the same bits on any number of cores, and
// nothing is allocated.
func TestStepOnAnyNumberOfCores(t *testing.T) {
	const n = 100_003
	for name, optimizer := range optimizers {
		t.Run(name, func(t *testing.T) {
			run := func(procs int) []float32 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				w, g := make([]float32, n), make([]float32, n)
				noise(w, 1)
				noise(g, 2)
				m := optimizer()
				initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, n), Grad: arrayOf(t, g, n)})
				for range 3 {
					m.Step(nil, 0.1, 1)
				}
				return w
			}
			want := run(1)
			for _, procs := range []int{2, 7} {
				if !slices.Equal(run(procs), want) {
					t.Errorf("other bits on %d cores", procs)
				}
			}
			w, g := make([]float32, 64), make([]float32, 64)
			m := optimizer()
			initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, 32, 2), Grad: arrayOf(t, g[:8], 4, 2), Sparse: true})
			rows := []int32{3, 1, 30, 9}
			if allocs := testing.AllocsPerRun(10, func() { m.Step(rows, 0.1, 1) }); allocs != 0 {
				t.Errorf("%g allocations", allocs)
			}
		})
	}
}

// The gradient is clipped before the weight decay is added, and a gradient
// that is not a number is not hidden by the clip.
func TestClip(t *testing.T) {
	w := []float64{2, 2, 2}
	g := []float64{100, -100, math.NaN()}
	m := &train.SGD{WeightDecay: 0.5}
	initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, 3), Grad: arrayOf(t, g, 3)})
	m.Step(nil, 0.1, 4)
	if math.Abs(w[0]-(2-0.1*(4+1))) > 1e-15 || math.Abs(w[1]-(2-0.1*(-4+1))) > 1e-15 || !math.IsNaN(w[2]) {
		t.Errorf("moved to %v", w)
	}
}

func TestInitRefusesOptions(t *testing.T) {
	for want, m := range map[string]train.Optimizer{
		"momentum: got -1,":      &train.SGD{Momentum: -1},
		"weight decay: got -1,":  &train.SGD{WeightDecay: -1},
		"weight decay: got NaN,": &train.Adam{WeightDecay: math.NaN()},
		"momentum: got 2,":       &train.Muon{Momentum: 2},
	} {
		if err := m.Init(nil); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "train: ") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Rows that are not the gradient's would be written outside the table.
func TestStepRefusesOtherRows(t *testing.T) {
	for name, rows := range map[string][]int32{"beyond": {0, 5}, "negative": {-1, 0}, "too few": {1}} {
		for optimizer, m := range optimizers {
			m := m()
			initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, make([]float32, 10), 5, 2), Grad: arrayOf(t, make([]float32, 4), 2, 2), Sparse: true})
			func() {
				defer func() {
					if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "rows of w, which has 5") {
						t.Errorf("%s, rows %s: %v", optimizer, name, r)
					}
				}()
				m.Step(rows, 0.1, 0)
			}()
		}
	}
}

func BenchmarkMethods(b *testing.B) {
	for _, name := range []string{"sgd", "sgd, momentum", "adam"} {
		for _, n := range []int{98_000, 11_000_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				w, errW := op.ArrayOf(make([]float32, n), n)
				g, errG := op.ArrayOf(make([]float32, n), n)
				m := optimizers[name]()
				if errW != nil || errG != nil || m.Init([]model.Parameter{{Name: "w", Value: w, Grad: g}}) != nil {
					b.Fatal("no optimizer")
				}
				b.SetBytes(int64(4 * n))
				for range b.N {
					m.Step(nil, 1e-3, 4)
				}
			})
		}
	}
}
