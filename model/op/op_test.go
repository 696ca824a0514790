package op_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/rng"
	"cne/model/op"
	"cne/model/vm"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func normals(n int, seed uint64) []float64 {
	s := rng.New(seed, rng.Init)
	x := make([]float64, n)
	for i := range x {
		x[i] = s.Normal()
	}
	return x
}

// draws returns negatives [m, b] drawn from the 2b rows, the head itself
// among them, so that distances of 0 occur.
func draws(m, b int, seed uint64) []int32 {
	s := rng.New(seed, rng.Negatives)
	x := make([]int32, m*b)
	for i := range x {
		x[i] = int32(s.IntN(2 * b))
	}
	return x
}

// The gradients of each differentiable operation with respect to all operands.
func TestGradientsByFiniteDifferences(t *testing.T) {
	ofMatrix := func(rows, cols int, apply func(x *gorgonia.Node) (*gorgonia.Node, error)) func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes) {
		return func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes) {
			x := matrixOf(g, tensor.Float64, "x", rows, cols, normals(rows*cols, 3))
			return gorgonia.Must(apply(x)), gorgonia.Nodes{x}
		}
	}
	ofLayer := func(act op.Activation, indexed bool) func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes) {
		return func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes) {
			x, w, b := layerOf(g, tensor.Float64, 5, 4, 3)
			y, err := op.Linear(x, w, b, act)
			if indexed {
				y, err = op.LinearRows(x, indexOf(g, []int32{2, 0, 2, 4, 1, 2, 3}), w, b, act)
			}
			return gorgonia.Must(y, err), gorgonia.Nodes{x, w, b}
		}
	}
	index := []int32{2, 0, 2, 4, 1, 2}
	for name, build := range map[string]func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes){
		"gather": ofMatrix(5, 3, func(x *gorgonia.Node) (*gorgonia.Node, error) { return op.Gather(x, indexOf(x.Graph(), index)) }),
		"scatter_add": ofMatrix(6, 3, func(x *gorgonia.Node) (*gorgonia.Node, error) {
			return op.ScatterAdd(x, indexOf(x.Graph(), index), matrixOf(x.Graph(), tensor.Float64, "like", 5, 3, make([]float64, 15)))
		}),
		"normalize":      ofMatrix(4, 3, op.Normalize),
		"linear":         ofLayer(op.NoActivation, false),
		"relu":           ofLayer(op.ReLUActivation, false),
		"linear of rows": ofLayer(op.NoActivation, true),
		"relu of rows":   ofLayer(op.ReLUActivation, true),
		"softmax":        ofLayer(op.SoftmaxActivation, false),
		"softmax, rows":  ofLayer(op.SoftmaxActivation, true),
		"pool": func(g *gorgonia.ExprGraph) (*gorgonia.Node, gorgonia.Nodes) {
			x := imagesOf(g, tensor.Float64, "x", normals(2*3*3*5, 1), 2, 3, 5, 3)
			return gorgonia.Must(op.GlobalAvgPool(x)), gorgonia.Nodes{x}
		},
	} {
		t.Run(name, func(t *testing.T) { byDifferences(t, build) })
	}
}

// noRuns returns a node that says that negatives are named one by one.
func noRuns(g *gorgonia.ExprGraph) *gorgonia.Node {
	return gorgonia.NewVector(g, tensor.Int32, gorgonia.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]int32{0}))))
}

// differences computes the gradient of f with respect to x, which f reads.
func differences(x []float64, f func() float64) []float64 {
	const h = 1e-5
	grad := make([]float64, len(x))
	for i, v := range x {
		x[i] = v + h
		up := f()
		x[i] = v - h
		grad[i] = (up - f()) / (2 * h)
		x[i] = v
	}
	return grad
}

// allOptions are all losses under all metrics and options.
func allOptions() map[string]op.ContrastiveOptions {
	out := map[string]op.ContrastiveOptions{}
	for _, loss := range op.Losses() {
		for _, metric := range []op.Metric{op.Euclidean, op.Cosine} {
			if loss.Info().EuclideanOnly && metric == op.Cosine {
				continue
			}
			o := op.ContrastiveOptions{Loss: loss, Metric: metric, Clamp: 1e-10}
			name := fmt.Sprintf("%v/%v", loss, metric)
			out[name] = o
			o.Mean, o.Scale = true, 0.7
			out[name+"/mean"] = o
		}
	}
	return out
}

// Deviation is the mean distance of rows, and its gradient that by finite differences; rows
// without a distance have no gradient.
func TestDeviation(t *testing.T) {
	g := gorgonia.NewGraph()
	x, y := normals(15, 1), normals(15, 2)
	copy(x[6:9], y[6:9])
	want := 0.0
	for i := 0; i < 15; i += 3 {
		want += math.Sqrt(math.Pow(x[i]-y[i], 2)+math.Pow(x[i+1]-y[i+1], 2)+math.Pow(x[i+2]-y[i+2], 2)) / 5
	}
	node := matrixOf(g, tensor.Float64, "x", 5, 3, x)
	loss := gorgonia.Must(op.Deviation(node, matrixOf(g, tensor.Float64, "y", 5, 3, y)))
	grads := gradients(t, loss, node)
	m := machines["vm"](t, g, append(gorgonia.Nodes{loss}, grads...)...)
	defer m.Close()
	evaluate := func() float64 { return evaluated(t, m, loss) }
	closeTo(t, "deviation", []float64{evaluate()}, []float64{want}, 1e-12)
	got, others := valuesOf(t, grads...)[0], differences(x, evaluate)
	if slices.ContainsFunc(got[6:9], func(v float64) bool { return v != 0 }) {
		t.Errorf("equal rows have the gradient %v", got[6:9])
	}
	closeTo(t, "gradient", slices.Concat(got[:6], got[9:]), slices.Concat(others[:6], others[9:]), 1e-7)
	if err := runOf(op.Deviation(node, matrixOf(g, tensor.Float64, "z", 3, 5, y))); err == nil || !strings.Contains(err.Error(), "two matrices of one shape") {
		t.Errorf("other shapes: %v", err)
	}
}

func TestContrastiveByFiniteDifferences(t *testing.T) {
	for name, o := range allOptions() {
		for _, size := range []struct{ b, d, m int }{{7, 2, 5}, {20, 2, 3}, {5, 3, 8}, {4, 1, 2}, {1, 2, 1}} {
			t.Run(fmt.Sprintf("%s/b%d_d%d_m%d", name, size.b, size.d, size.m), func(t *testing.T) {
				features := normals(2*size.b*size.d, 5)
				theta := []float64{-0.3}
				negatives := draws(size.m, size.b, 6)
				if o.Metric == op.Euclidean {
					// Own points have a distance of 0, where UMAP's clamp is
					// hit: differences do not see that the slope is 0 there
					// unless both sides are clamped. Move them elsewhere.
					for i, r := range negatives {
						if int(r) == i%size.b {
							negatives[i] = int32(i%size.b + size.b)
						}
					}
				}
				g := newLossGraph(t, tensor.Float64, features, size.d, negatives, size.b, theta[0], o)
				p, err := vm.Compile(nil, g.loss, g.gradFeatures, g.gradOfTheta)
				must(t, err)
				evaluate := func() float64 {
					g.let(t, features, theta[0])
					return evaluated(t, p, g.loss)
				}
				evaluate()
				grad := slices.Clone(float64sOf(t, g.gradFeatures.Value()))
				gradTheta := slices.Clone(float64sOf(t, g.gradOfTheta.Value()))
				if size.d == 1 && o.Metric == op.Cosine {
					// Rows of unit length on a line do not move.
					for i, v := range grad {
						if math.Abs(v) > 1e-12 {
							t.Errorf("gradient[%d] is %g", i, v)
						}
					}
				} else {
					closeTo(t, "gradient", grad, differences(features, evaluate), 1e-7)
				}
				closeTo(t, "gradient of theta", gradTheta, differences(theta, evaluate), 1e-7)
			})
		}
	}
}

// Heads that share stretches of rows. Gorgonia's machine gives the same numbers. What
// negatives names does not matter then.
func TestDenseByFiniteDifferences(t *testing.T) {
	for name, o := range allOptions() {
		for _, tc := range []struct {
			b, rows, d int
			runs       []int32
		}{
			{1, 2, 2, []int32{-1}},
			{5, 10, 1, []int32{-1}},
			{20, 40, 2, []int32{-1}},
			{20, 43, 3, []int32{-1}},
			{20, 40, 2, []int32{7, 3, 30}},
			{20, 40, 5, []int32{-1}},
			{20, 43, 5, []int32{7, 6, 30}},
		} {
			if tc.d == 1 && o.Metric == op.Cosine {
				continue // rows of unit length on a line do not move
			}
			t.Run(fmt.Sprintf("%s/b%d_rows%d_d%d_m%d", name, tc.b, tc.rows, tc.d, tc.runs[0]), func(t *testing.T) {
				features := normals(tc.rows*tc.d, 5)
				theta := []float64{-0.3}
				computed := func(machine string) (evaluate func() float64, found [3][]float64) {
					g := newDenseGraph(t, tensor.Float64, features, tc.d, make([]int32, tc.b), tc.runs, tc.b, theta[0], o)
					m := machines[machine](t, g.graph, g.loss, g.gradFeatures, g.gradOfTheta)
					t.Cleanup(func() { m.Close() })
					evaluate = func() float64 {
						g.let(t, features, theta[0])
						return evaluated(t, m, g.loss)
					}
					found[0] = []float64{evaluate()}
					for i, n := range []*gorgonia.Node{g.gradFeatures, g.gradOfTheta} {
						found[i+1] = slices.Clone(float64sOf(t, n.Value()))
					}
					return evaluate, found
				}
				evaluate, got := computed("vm")
				closeTo(t, "gradient", got[1], differences(features, evaluate), 1e-7)
				closeTo(t, "gradient of theta", got[2], differences(theta, evaluate), 1e-7)
				_, want := computed("tape")
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("the loss or a gradient is %v, by Gorgonia's machine %v", got[i], want[i])
					}
				}
			})
		}
	}
}

// lossAndGrad computes a loss and its gradient by this package's kernels.
func lossAndGrad(t *testing.T, dtype tensor.Dtype, features []float64, d int, negatives []int32, b int, theta float64, o op.ContrastiveOptions) (loss float64, grad []float64) {
	t.Helper()
	g := newLossGraph(t, dtype, features, d, negatives, b, theta, o)
	ran(t, g.loss, g.gradFeatures)
	return float64sOf(t, g.loss.Value())[0], float64sOf(t, g.gradFeatures.Value())
}

// float32 takes other kernels than float64 (in the plane, vector ones), and
// large batches are cut into pieces: both must agree with float64 sums.
func TestFloat32AgreesWithFloat64(t *testing.T) {
	for name, o := range allOptions() {
		for _, size := range []struct{ b, d, m int }{{1, 2, 1}, {15, 2, 5}, {16, 2, 5}, {129, 2, 5}, {1000, 2, 7}, {20000, 2, 5}, {40, 5, 3}, {300, 2, 400}} {
			t.Run(fmt.Sprintf("%s/b%d_d%d_m%d", name, size.b, size.d, size.m), func(t *testing.T) {
				features := normals(2*size.b*size.d, 7)
				for i := range features {
					features[i] = float64(float32(3 * features[i]))
				}
				negatives := draws(size.m, size.b, 8)
				loss32, grad32 := lossAndGrad(t, tensor.Float32, features, size.d, negatives, size.b, 0.2, o)
				loss64, grad64 := lossAndGrad(t, tensor.Float64, features, size.d, negatives, size.b, 0.2, o)
				closeTo(t, "loss", []float64{loss32}, []float64{loss64}, 1e-5)
				closeTo(t, "gradient", grad32, grad64, 2e-5)
			})
		}
	}
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const b, d, m = 30000, 2, 5
	features, negatives := normals(2*b*d, 9), draws(m, b, 10)
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		var wantLoss float64
		var want []float64
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			loss, grad := lossAndGrad(t, dtype, features, d, negatives, b, 0, op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10})
			if want == nil {
				wantLoss, want = loss, grad
			} else if loss != wantLoss || !slices.Equal(grad, want) {
				t.Errorf("%v on %d cores differs from one core", dtype, procs)
			}
		}
	}
}

// A head may meet its own point again, at distance 0: no NaN, no gradient.
func TestOwnPointHasNoGradient(t *testing.T) {
	for _, clamp := range []float64{1e-10, 0} {
		for _, loss := range op.Losses() {
			for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
				const b = 20
				features := make([]float64, 4*b) // all points are one
				value, grad := lossAndGrad(t, dtype, features, 2, draws(5, b, 1), b, 0, op.ContrastiveOptions{Loss: loss, Clamp: clamp})
				if math.IsNaN(value) || math.IsInf(value, 0) {
					t.Errorf("%v, clamp %g, %v: loss %g", loss, clamp, dtype, value)
				}
				for i, g := range grad {
					if g != 0 {
						t.Errorf("%v, clamp %g, %v: gradient[%d] is %g", loss, clamp, dtype, i, g)
						break
					}
				}
			}
		}
	}
}

// Where the clamp binds, the loss is the clamp's and the gradient is zero.
func TestClampBinds(t *testing.T) {
	const b, clamp = 17, 1e-4
	far := make([]float64, 4*b) // every point is far from every other
	for i := range 2 * b {
		far[2*i] = 1e6 * float64(i)
	}
	others, own := make([]int32, 5*b), make([]int32, 5*b)
	for i := range others {
		others[i], own[i] = int32((i+1)%b), int32(i%b)
	}
	limit := math.Log(1 / clamp)
	for _, tc := range []struct {
		name      string
		loss      op.Loss
		features  []float64
		negatives []int32
		theta     float64
		want      float64 // per edge
	}{
		{"UMAP, far and own point", op.UMAP, far, own, 0, 6 * limit},
		{"Neg, far", op.Neg, far, others, 0, limit},
		{"Neg, all in one place and a tiny c", op.Neg, make([]float64, 4*b), others, -30, 5 * limit},
		{"NC, far", op.NC, far, others, 0, limit},
		{"InfoNC, far: all similarities are the clamp", op.InfoNC, far, others, 0, math.Log(6)},
	} {
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			loss, grad := lossAndGrad(t, dtype, tc.features, 2, tc.negatives, b, tc.theta, op.ContrastiveOptions{Loss: tc.loss, Clamp: clamp})
			if math.Abs(loss-b*tc.want) > 1e-5*b*tc.want+1e-6 {
				t.Errorf("%s, %v: loss %g, want %g", tc.name, dtype, loss, b*tc.want)
			}
			for i, g := range grad {
				if math.Abs(g) > 1e-12 { // negatives far away still repel, by 1e-17
					t.Errorf("%s, %v: gradient[%d] is %g", tc.name, dtype, i, g)
					break
				}
			}
		}
	}
}

// A batch of one edge has no negatives: the sum over negatives drops out.
func TestNoNegatives(t *testing.T) {
	features := []float64{1, 0, 0, 2}
	for _, tc := range []struct {
		o    op.ContrastiveOptions
		want float64
	}{
		{op.ContrastiveOptions{Loss: op.Neg}, math.Log(1 + 6)},
		{op.ContrastiveOptions{Loss: op.UMAP}, math.Log(6)},
		{op.ContrastiveOptions{Loss: op.NC}, 0},
		{op.ContrastiveOptions{Loss: op.InfoNC}, 0},
		{op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine}, 0},
		{op.ContrastiveOptions{Loss: op.NC, Metric: op.Cosine}, 0},
	} {
		for dtype, x := range map[tensor.Dtype]any{tensor.Float64: features, tensor.Float32: []float32{1, 0, 0, 2}} {
			g := gorgonia.NewGraph()
			f := gorgonia.NewMatrix(g, dtype, gorgonia.WithShape(2, 2))
			n := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(1, 1))
			theta := gorgonia.NewScalar(g, dtype)
			unit := f
			if tc.o.Metric == op.Cosine {
				unit = gorgonia.Must(op.Normalize(f))
			}
			runs := noRuns(g)
			loss := gorgonia.Must(op.Contrastive(unit, n, runs, theta, tc.o))
			grads := gradients(t, loss, f)
			p, err := vm.Compile(nil, loss, grads[0])
			must(t, err)
			must(t, p.Input(f).SetValue(tensor.New(tensor.WithShape(2, 2), tensor.WithBacking(x))))
			must(t, op.Share(p.Input(n), []int32{}, 0, 1))
			must(t, op.Share(p.Input(runs), []int32{0}, 1))
			zero := gorgonia.Value(gorgonia.NewF64(0))
			if dtype == tensor.Float32 {
				zero = gorgonia.NewF32(0)
			}
			must(t, p.Input(theta).SetValue(zero))
			if err := p.RunChecked(); err != nil {
				t.Errorf("%+v: %v", tc.o, err)
			}
			if got := float64sOf(t, p.Output(loss).Value())[0]; math.Abs(got-tc.want) > 1e-6 {
				t.Errorf("%+v, %v: loss %g, want %g", tc.o, dtype, got, tc.want)
			}
		}
	}
}

// A row of zeros stays one, and has a finite gradient.
func TestNormalizeZeroRow(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("x"), gorgonia.WithValue(tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{0, 0, 3, 4}))))
	y := gorgonia.Must(op.Normalize(x))
	grads := gradients(t, gorgonia.Must(gorgonia.Sum(y)), x)
	ran(t, y, grads[0])
	closeTo(t, "unit rows", float64sOf(t, y.Value()), []float64{0, 0, 0.6, 0.8}, 1e-15)
	for i, v := range float64sOf(t, grads[0].Value()) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("gradient[%d] is %g", i, v)
		}
	}
}

// The order of the edges of a batch changes nothing but the rounding.
func TestPermutationOfEdges(t *testing.T) {
	const b, d, m = 50, 2, 4
	features, negatives := normals(2*b*d, 11), draws(m, b, 12)
	s := rng.New(1, rng.Sample)
	perm := s.Perm(b)
	permFeatures, permNegatives := make([]float64, len(features)), make([]int32, len(negatives))
	to := make([]int32, 2*b) // where a row goes
	for i, p := range perm {
		to[p], to[b+p] = int32(i), int32(b+i)
	}
	for r := range to {
		copy(permFeatures[int(to[r])*d:], features[r*d:(r+1)*d])
	}
	for j := range m {
		for i := range b {
			permNegatives[j*b+int(to[i])] = to[negatives[j*b+i]]
		}
	}
	for name, o := range allOptions() {
		loss, grad := lossAndGrad(t, tensor.Float64, features, d, negatives, b, 0.1, o)
		permLoss, permGrad := lossAndGrad(t, tensor.Float64, permFeatures, d, permNegatives, b, 0.1, o)
		closeTo(t, name+" loss", []float64{permLoss}, []float64{loss}, 1e-12)
		want := make([]float64, len(grad))
		for r := range to {
			copy(want[int(to[r])*d:], grad[r*d:(r+1)*d])
		}
		closeTo(t, name+" gradient", permGrad, want, 1e-12)
	}
}

// Sec. 4 of the paper: NC-t-SNE with a fixed Z is Neg-t-SNE with that Z̄, that
// is with c = m·Z.
func TestNCWithFixedZIsNeg(t *testing.T) {
	const b, d, m = 30, 2, 5
	features, negatives := normals(2*b*d, 13), draws(m, b, 14)
	for _, metric := range []op.Metric{op.Euclidean, op.Cosine} {
		for _, logZ := range []float64{-3, 0, 1.5} {
			nc, ncGrad := lossAndGrad(t, tensor.Float64, features, d, negatives, b, logZ, op.ContrastiveOptions{Loss: op.NC, Metric: metric, Clamp: 1e-10})
			neg, negGrad := lossAndGrad(t, tensor.Float64, features, d, negatives, b, logZ+math.Log(m), op.ContrastiveOptions{Loss: op.Neg, Metric: metric, Clamp: 1e-10})
			closeTo(t, "loss", []float64{nc}, []float64{neg}, 1e-12)
			closeTo(t, "gradient", ncGrad, negGrad, 1e-12)
		}
	}
}

// Sec. 6 of the paper: UMAP's loss is Neg-t-SNE's with c = 1 and the kernel
// 1/d² in place of 1/(1+d²).
func TestUMAPIsNegWithInverseSquareKernel(t *testing.T) {
	const b, d, m = 30, 2, 5
	features, negatives := normals(2*b*d, 15), draws(m, b, 16)
	for i, r := range negatives {
		if int(r) == i%b {
			negatives[i] = int32(b + i%b)
		}
	}
	umap, _ := lossAndGrad(t, tensor.Float64, features, d, negatives, b, 0, op.ContrastiveOptions{Loss: op.UMAP, Clamp: 1e-10})
	kernel := func(i, j int) float64 {
		x, y := features[2*i]-features[2*j], features[2*i+1]-features[2*j+1]
		return 1 / (x*x + y*y)
	}
	var neg float64
	for i := range b {
		q := kernel(i, b+i)
		neg -= math.Log(q / (q + 1))
		for j := range m {
			q := kernel(i, int(negatives[j*b+i]))
			neg -= math.Log(1 - q/(q+1))
		}
	}
	closeTo(t, "loss", []float64{umap}, []float64{neg}, 1e-12)
}

// runOf computes the result of an operation, if there is one.
func runOf(y *gorgonia.Node, err error) error {
	if err != nil {
		return err
	}
	p, err := vm.Compile(nil, y)
	if err != nil {
		return err
	}
	return p.RunAll()
}

// runDense computes a loss of 20 edges with runs.
func runDense(runs []int32) func(g *gorgonia.ExprGraph) error {
	return func(g *gorgonia.ExprGraph) error {
		const b, d = 20, 2
		x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(2*b, d))
		n := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(1, b))
		r := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(1))
		theta := gorgonia.NewScalar(g, tensor.Float64)
		y, err := op.Contrastive(x, n, r, theta, op.ContrastiveOptions{})
		if err != nil {
			return err
		}
		p, err := vm.Compile(nil, y)
		if err != nil {
			return err
		}
		if err := errors.Join(
			op.Share(p.Input(x), normals(2*b*d, 1), 2*b, d),
			op.Share(p.Input(n), []int32{}, 0, b),
			op.Share(p.Input(r), runs, len(runs)),
			op.Share(p.Input(theta), []float64{0}),
		); err != nil {
			return err
		}
		return p.Run()
	}
}

func TestBadOperands(t *testing.T) {
	with := func(o op.ContrastiveOptions) func(g *gorgonia.ExprGraph) error {
		return func(*gorgonia.ExprGraph) error {
			_, err := op.Contrastive(nil, nil, nil, nil, o)
			return err
		}
	}
	for name, tc := range map[string]struct {
		run  func(g *gorgonia.ExprGraph) error
		want string
	}{
		"UMAP with cosine": {with(op.ContrastiveOptions{Loss: op.UMAP, Metric: op.Cosine}), "loss.metric: got cosine with loss.name umap, want euclidean"},
		"clamp":            {with(op.ContrastiveOptions{Clamp: 1}), "loss.clamp: got 1, want a number of at least 0 and below 1"},
		"temperature":      {with(op.ContrastiveOptions{Temperature: 1e-40}), "temperature: got 1e-40, want"},
		"scale":            {with(op.ContrastiveOptions{Scale: 1e300}), "scale: got 1e+300, want"},
		"loss":             {with(op.ContrastiveOptions{Loss: 7}), "loss.name: got Loss(7), want neg"},
		"batch sizes": {func(g *gorgonia.ExprGraph) error {
			f := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(5, 2))
			n := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(5, 3))
			_, err := op.Contrastive(f, n, noRuns(g), gorgonia.NewScalar(g, tensor.Float64), op.ContrastiveOptions{})
			return err
		}, "want features [r,d] with r ≥ 2b"},
		"gather shapes": {func(g *gorgonia.ExprGraph) error {
			_, err := op.ScatterAdd(gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(7, 2)),
				gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(6)), gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(9, 2)))
			return err
		}, "want values [r,d]"},
		"gather index": {func(g *gorgonia.ExprGraph) error {
			x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithValue(tensor.New(tensor.WithShape(2, 2), tensor.Of(tensor.Float64))))
			i := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithValue(tensor.New(tensor.WithShape(2), tensor.WithBacking([]int32{0, 2}))))
			return runOf(op.Gather(x, i))
		}, "row 1 of the index: got 2, want 0 to 1"},
		"negative index": {func(g *gorgonia.ExprGraph) error {
			x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithValue(tensor.New(tensor.WithShape(4, 2), tensor.Of(tensor.Float64))))
			n := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithValue(tensor.New(tensor.WithShape(1, 2), tensor.WithBacking([]int32{0, -1}))))
			return runOf(op.Contrastive(x, n, noRuns(g), gorgonia.NewScalar(g, tensor.Float64, gorgonia.WithValue(0.0)), op.ContrastiveOptions{}))
		}, "negative 0 of head 1: got row -1, want 0 to 3"},
		"no runs":            {runDense(nil), "a layout [k]"},
		"runs of nothing":    {runDense([]int32{-2}), "got -2 at its beginning"},
		"too many runs":      {runDense([]int32{-1, 1, 0}), "begins with -1: got 3 numbers, want 1"},
		"no images":          {runDense([]int32{-1, 0}), "got 0 images for 20 edges, want a divisor"},
		"images of a rest":   {runDense([]int32{-1, 7}), "got 7 images for 20 edges, want a divisor"},
		"too few runs":       {runDense([]int32{3, 0}), "begins with 3: got 2 numbers, want 3"},
		"run outside":        {runDense([]int32{3, 40, 0}), "group 0: got 3 rows from row 40 on, want no more than the 40"},
		"run before all":     {runDense([]int32{3, 0, -1}), "group 1: got 3 rows from row -1 on, want no more than the 40"},
		"run round and over": {runDense([]int32{41, 0, 0}), "group 0: got 41 rows from row 0 on, want no more than the 40"},
		"run of one":         {runDense([]int32{1, 0, 0}), "got 1 at its beginning"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.run(gorgonia.NewGraph())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Gorgonia's sums have a kernel, and nothing else that it does.
func TestKernelOf(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, shape := range [][]int{{5}, {2, 3}, {2, 3, 2, 2}} {
			g := gorgonia.NewGraph()
			n := product(shape)
			a, b := imagesOf(g, dtype, "a", normals(n, 1), shape...), imagesOf(g, dtype, "b", normals(n, 2), shape...)
			for name, tc := range map[string]struct {
				node *gorgonia.Node
				want bool
			}{
				"sum":         {gorgonia.Must(gorgonia.Add(a, b)), true},
				"difference":  {gorgonia.Must(gorgonia.Sub(a, b)), false},
				"product":     {gorgonia.Must(gorgonia.HadamardProd(a, b)), false},
				"with scalar": {gorgonia.Must(gorgonia.Add(a, gorgonia.NewScalar(g, dtype, gorgonia.WithName("s")))), false},
				"total":       {gorgonia.Must(gorgonia.Sum(a)), false},
				"ours":        {gorgonia.Must(op.Normalize(imagesOf(g, dtype, "rows", normals(6, 1), 2, 3))), true},
			} {
				if k := op.KernelOf(tc.node); (k != nil) != tc.want {
					t.Errorf("%v %v: %s has kernel %v", dtype, shape, name, k)
				}
			}
		}
	}
}

// A node used twice has the sum of both gradients, and does not allocate.
func TestSumOfGradients(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		x := imagesOf(gorgonia.NewGraph(), dtype, "x", normals(3*70*80, 1), 3, 1, 70, 80)
		twice := incomingTo(t, gorgonia.Must(gorgonia.Add(gorgonia.Must(op.ChannelsLast(x)), gorgonia.Must(op.ChannelsLast(x)))), x)
		if n := steady(t, twice...); n > fewAllocations {
			t.Errorf("%v: %d allocations in 20 runs", dtype, n)
		}
		incoming := numbersOf(dtype, normals(3*70*80, 9))
		for i, got := range float64sOf(t, twice[1].Value()) {
			if want := 2 * incoming[i]; got != want {
				t.Fatalf("%v: gradient %d is %g, want %g", dtype, i, got, want)
			}
		}
	}
}
