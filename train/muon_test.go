package train_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A step changes a matrix by lr times one with the singular vectors of the gradient, whose
// singular values are near 1 although the gradient's are 1 to 100 (Jordan et al.: from 0.7 to
// 1.2), and keeps the rest of the matrix at √k/‖W‖ of what it was.
func TestMuonOrthogonalises(t *testing.T) {
	for _, shape := range [][]int{{7, 20}, {20, 7}, {6, 6}, {8, 3, 2, 2}, {1, 9}} {
		testMuonStep[float64](t, shape, 1e-9)
		testMuonStep[float32](t, shape, 1e-3)
	}
}

func testMuonStep[T op.Float](t *testing.T, shape []int, tol float64) {
	t.Helper()
	const lr = 0.1
	value := arrayOf(t, make([]T, product(shape)), shape...)
	r, c := value.Rows(), value.Cols()
	k := min(r, c)
	w := op.Data[T](value)
	noise(w, 1)
	before := slices.Clone(w)
	g := make([]T, r*c)
	noise(g, 2)
	u, v, sigma := svd(t, r, c, g)
	for i := range sigma { // 100 to 1
		sigma[i] = math.Pow(10, 2-2*float64(i)/math.Max(1, float64(k-1)))
	}
	var gradient mat.Dense
	gradient.Product(u, mat.NewDiagDense(k, sigma), v.T())
	for i := range g {
		g[i] = T(gradient.At(i/c, i%c))
	}
	m := new(train.Muon)
	initOptimizer(t, m, model.Parameter{Name: "w", Value: value, Grad: arrayOf(t, g, shape...)})
	m.Step(nil, lr, 0)

	var squares float64
	for _, x := range before {
		squares += float64(x) * float64(x)
	}
	step := mat.NewDense(r, c, nil)
	for i := range w {
		step.Set(i/c, i%c, (float64(before[i])*math.Sqrt(float64(k)/squares)-float64(w[i]))/lr)
	}
	var among mat.Dense // the step in terms of the gradient's singular vectors
	among.Product(u.T(), step, v)
	for i := range k {
		for j := range k {
			x := among.At(i, j)
			if i == j && (x < 0.6 || x > 1.3) || i != j && math.Abs(x) > tol {
				t.Errorf("%v, %T: a step of %g between the singular vectors %d and %d", shape, g, x, i, j)
			}
		}
	}
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// svd returns the singular vectors and values of a matrix.
func svd[T op.Float](t *testing.T, r, c int, x []T) (u, v *mat.Dense, values []float64) {
	t.Helper()
	a := mat.NewDense(r, c, nil)
	for i, x := range x {
		a.Set(i/c, i%c, float64(x))
	}
	var f mat.SVD
	if !f.Factorize(a, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	u, v = new(mat.Dense), new(mat.Dense)
	f.UTo(u)
	f.VTo(v)
	return u, v, f.Values(nil)
}

// Matrices without a gradient stay; with one, they keep their norm but for the steps, and their
// bits do not depend on the number of cores. The size of gradients does not matter.
func TestMuonSteps(t *testing.T) {
	const r, c = 150, 900
	run := func(procs int, scale float32) []float32 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		w, g := make([]float32, r*c), make([]float32, r*c)
		noise(w, 1)
		m := &train.Muon{Momentum: 0.9}
		initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, r, c), Grad: arrayOf(t, g, r, c)})
		before := slices.Clone(w)
		m.Step(nil, 0.1, 4)
		if !slices.Equal(w, before) {
			t.Error("a step without a gradient")
		}
		for step := range 3 {
			noise(g, uint64(2+step))
			for i := range g {
				g[i] *= scale
			}
			m.Step(nil, 0.1, 1e10)
		}
		var squares float64
		for _, x := range w {
			squares += float64(x) * float64(x)
		}
		if norm := math.Sqrt(squares / r); norm < 0.8 || norm > 1.2 {
			t.Errorf("a norm of %g·√r", norm)
		}
		return w
	}
	want := run(1, 1)
	if !slices.Equal(run(2, 1), want) || !slices.Equal(run(7, 1), want) {
		t.Error("other bits on other cores")
	}
	for i, x := range run(2, 1<<10) {
		if math.Abs(float64(x-want[i])) > 1e-5 {
			t.Fatalf("element %d: %g with large gradients, %g with small ones", i, x, want[i])
		}
	}
}

// Parameters that are no matrices move as with SGD at ten times the learning rate, and so do
// those with sparse gradients. The state is all there is.
func TestMuonState(t *testing.T) {
	type copyOf struct{ matrix, bias, table, matrixGrad, biasGrad, tableGrad []float64 }
	rows := []int32{3, 1}
	begin := func(o train.Optimizer, from *copyOf) *copyOf {
		c := &copyOf{make([]float64, 6), make([]float64, 3), make([]float64, 8), make([]float64, 6), make([]float64, 3), make([]float64, 4)}
		noise(c.matrix, 1)
		noise(c.bias, 2)
		if from != nil {
			copy(c.matrix, from.matrix)
			copy(c.bias, from.bias)
			copy(c.table, from.table)
		}
		initOptimizer(t, o,
			model.Parameter{Name: "matrix", Value: arrayOf(t, c.matrix, 2, 3), Grad: arrayOf(t, c.matrixGrad, 2, 3)},
			model.Parameter{Name: "bias", Value: arrayOf(t, c.bias, 3), Grad: arrayOf(t, c.biasGrad, 3)},
			model.Parameter{Name: "table", Value: arrayOf(t, c.table, 4, 2), Grad: arrayOf(t, c.tableGrad, 2, 2), Sparse: true})
		return c
	}
	step := func(o train.Optimizer, c *copyOf, seed uint64, lr float64) {
		noise(c.matrixGrad, seed)
		noise(c.biasGrad, seed+1)
		noise(c.tableGrad, seed+2)
		o.Step(rows, lr, 1)
	}
	muon, sgd := &train.Muon{Momentum: 0.9, WeightDecay: 0.1}, &train.SGD{Momentum: 0.9, WeightDecay: 0.1}
	a, b := begin(muon, nil), begin(sgd, nil)
	for seed := range uint64(3) {
		step(muon, a, 10*seed, 0.01)
		step(sgd, b, 10*seed, 10*0.01)
	}
	if !slices.Equal(a.bias, b.bias) || !slices.Equal(a.table, b.table) || slices.Equal(a.matrix, b.matrix) {
		t.Error("not the others move as with SGD")
	}
	again := &train.Muon{Momentum: 0.9, WeightDecay: 0.1}
	c := begin(again, a)
	to := again.State()
	for i, s := range muon.State() {
		if s.Name != to[i].Name {
			t.Errorf("array %d is called %q and %q", i, s.Name, to[i].Name)
		}
		copy(op.Data[float64](to[i].Value), op.Data[float64](s.Value))
	}
	step(muon, a, 50, 0.01)
	step(again, c, 50, 0.01)
	if !slices.Equal(a.matrix, c.matrix) || !slices.Equal(a.bias, c.bias) || !slices.Equal(a.table, c.table) {
		t.Error("the two part")
	}
}

// A gradient that is not finite is not hidden.
func TestMuonKeepsNaN(t *testing.T) {
	w, g := []float64{1, 2, 3, 4}, []float64{1, 1, math.NaN(), 1}
	m := new(train.Muon)
	initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, 2, 2), Grad: arrayOf(t, g, 2, 2)})
	m.Step(nil, 0.1, 4)
	if !slices.ContainsFunc(w, math.IsNaN) {
		t.Errorf("moved to %v", w)
	}
}

// Momentum is Nesterov's: the second step is along G₂ + μ·B with B = μ·G₁ + G₂ and clipped
// gradients G.
func TestMuonLooksAhead(t *testing.T) {
	const n, mu, lr, clip = 12, 0.9, 0.1, 0.5
	w, g := make([]float64, n), make([]float64, n)
	noise(w, 1)
	m := &train.Muon{Momentum: mu}
	initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, w, 3, 4), Grad: arrayOf(t, g, 3, 4)})
	noise(g, 2)
	first := slices.Clone(g)
	m.Step(nil, lr, clip)
	want, along := slices.Clone(w), make([]float64, n)
	noise(g, 3)
	clipped := func(x float64) float64 { return max(-clip, min(x, clip)) }
	for i := range g {
		along[i] = clipped(g[i]) + mu*(mu*clipped(first[i])+clipped(g[i]))
	}
	once := new(train.Muon)
	initOptimizer(t, once, model.Parameter{Name: "w", Value: arrayOf(t, want, 3, 4), Grad: arrayOf(t, along, 3, 4)})
	m.Step(nil, lr, clip)
	once.Step(nil, lr, 0)
	for i := range w {
		if math.Abs(w[i]-want[i]) > 1e-12 {
			t.Fatalf("element %d: %g, want %g", i, w[i], want[i])
		}
	}
}

func BenchmarkMuon(b *testing.B) {
	for _, shape := range [][]int{{64, 576}, {256, 2304}, {512, 256}} {
		b.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(b *testing.B) {
			n := product(shape)
			w, g := make([]float32, n), make([]float32, n)
			noise(w, 1)
			noise(g, 2)
			m := &train.Muon{Momentum: 0.9}
			initOptimizer(b, m, model.Parameter{Name: "w", Value: arrayOf(b, w, shape...), Grad: arrayOf(b, g, shape...)})
			b.ReportAllocs()
			for range b.N {
				m.Step(nil, 0.01, 4)
			}
		})
	}
}
