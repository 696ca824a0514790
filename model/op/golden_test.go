package op_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/safetensors"
	"cne/model/op"
	"cne/model/vm"
)

// A golden file holds a loss and its gradients in float64, with what they were
// computed from.
type golden struct {
	loss          op.Loss
	metric        op.Metric
	features      []float64
	b, d, m       int
	negatives     []int32 // [m, b]
	theta         float64
	temperature   float64
	clamp         float64
	wantLoss      float64
	wantGrad      []float64
	wantGradTheta float64 // NC only
}

func readGolden(t *testing.T, path string) golden {
	t.Helper()
	f, err := safetensors.ReadFile(path)
	must(t, err)
	floats := func(name string) []float64 {
		x, err := f.Tensors[name].Float64s()
		must(t, err)
		return x
	}
	number := func(key string) float64 {
		x, err := strconv.ParseFloat(f.Metadata[key], 64)
		must(t, err)
		return x
	}
	shape := f.Tensors["tails"].Shape
	tails := make([]int64, shape[0]*shape[1])
	must(t, safetensors.Copy(tails, f.Tensors["tails"]))
	g := golden{
		features: floats("features"), b: shape[0], d: f.Tensors["features"].Shape[1], m: shape[1] - 1,
		temperature: number("temperature"), clamp: number("clamp_low"),
		wantLoss: floats("loss")[0], wantGrad: floats("grad_features"),
	}
	g.loss = map[string]op.Loss{"neg": op.Neg, "nce": op.NC, "infonce": op.InfoNC, "umap": op.UMAP}[f.Metadata["mode"]]
	g.metric = map[string]op.Metric{"euclidean": op.Euclidean, "cosine": op.Cosine}[f.Metadata["metric"]]
	g.theta = math.Log(number("spec"))
	if g.loss == op.NC {
		g.theta = floats("log_z")[0]
		g.wantGradTheta = floats("grad_log_z")[0]
	}
	g.negatives = make([]int32, g.m*g.b)
	for i := range g.b {
		if tails[i*shape[1]] != int64(g.b+i) {
			t.Fatalf("%s: the positive of head %d is row %d", path, i, tails[i*shape[1]])
		}
		for j := range g.m {
			g.negatives[j*g.b+i] = int32(tails[i*shape[1]+1+j])
		}
	}
	return g
}

// A lossGraph is Contrastive as a Gorgonia graph with its gradients.
type lossGraph struct {
	graph                            *gorgonia.ExprGraph
	features, negatives, runs, theta *gorgonia.Node
	loss, gradFeatures, gradOfTheta  *gorgonia.Node
	dtype                            tensor.Dtype
	featureData, thetaData           gorgonia.Value
	negsData, runsData               gorgonia.Value
}

func newLossGraph(t *testing.T, dtype tensor.Dtype, features []float64, d int, negatives []int32, b int, theta float64, o op.ContrastiveOptions) *lossGraph {
	t.Helper()
	return newDenseGraph(t, dtype, features, d, negatives, []int32{0}, b, theta, o)
}

// newDenseGraph is newLossGraph with runs.
func newDenseGraph(t *testing.T, dtype tensor.Dtype, features []float64, d int, negatives, runs []int32, b int, theta float64, o op.ContrastiveOptions) *lossGraph {
	t.Helper()
	g := &lossGraph{graph: gorgonia.NewGraph(), dtype: dtype}
	m := len(negatives) / b
	g.features = gorgonia.NewMatrix(g.graph, dtype, gorgonia.WithShape(len(features)/d, d), gorgonia.WithName("features"))
	g.negatives = gorgonia.NewMatrix(g.graph, tensor.Int32, gorgonia.WithShape(m, b), gorgonia.WithName("negatives"))
	g.runs = gorgonia.NewVector(g.graph, tensor.Int32, gorgonia.WithShape(len(runs)), gorgonia.WithName("runs"))
	g.theta = gorgonia.NewScalar(g.graph, dtype, gorgonia.WithName("theta"))
	f := g.features
	if o.Metric == op.Cosine {
		f = gorgonia.Must(op.Normalize(f))
	}
	g.loss = gorgonia.Must(op.Contrastive(f, g.negatives, g.runs, g.theta, o))
	grads := gradients(t, g.loss, g.features, g.theta)
	g.gradFeatures, g.gradOfTheta = grads[0], grads[1]
	g.negsData = tensor.New(tensor.WithShape(m, b), tensor.WithBacking(negatives))
	g.runsData = tensor.New(tensor.WithShape(len(runs)), tensor.WithBacking(runs))
	g.let(t, features, theta)
	return g
}

// let binds the inputs' values.
func (g *lossGraph) let(t *testing.T, features []float64, theta float64) {
	t.Helper()
	g.featureData = valueOf(g.dtype, slices.Clone(features), g.features.Shape()...)
	g.thetaData = gorgonia.NewF64(theta)
	if g.dtype == tensor.Float32 {
		g.thetaData = gorgonia.NewF32(float32(theta))
	}
	for n, v := range map[*gorgonia.Node]gorgonia.Value{g.features: g.featureData, g.negatives: g.negsData, g.runs: g.runsData, g.theta: g.thetaData} {
		must(t, gorgonia.Let(n, v))
	}
}

// ran returns a program that has computed some outputs.
func ran(t testing.TB, outputs ...*gorgonia.Node) *vm.Program {
	t.Helper()
	p, err := vm.Compile(nil, outputs...)
	must(t, err)
	must(t, p.RunAll())
	return p
}

// gradients returns the gradients of a loss with respect to inputs.
func gradients(t testing.TB, loss *gorgonia.Node, inputs ...*gorgonia.Node) gorgonia.Nodes {
	t.Helper()
	grads, err := gorgonia.Grad(loss, inputs...)
	must(t, err)
	return grads
}

// weighted returns the gradients with respect to inputs of a weighted sum of y's
// elements.
func weighted(t testing.TB, y *gorgonia.Node, weights *gorgonia.Node, inputs ...*gorgonia.Node) gorgonia.Nodes {
	t.Helper()
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{weights}, inputs)
	must(t, err)
	return grads
}

// contracted returns Σ y·c.
func contracted(y, c *gorgonia.Node) *gorgonia.Node {
	return gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
}

// valuesOf returns copies of the values of nodes.
func valuesOf(t *testing.T, nodes ...*gorgonia.Node) (all [][]float64) {
	t.Helper()
	for _, n := range nodes {
		all = append(all, slices.Clone(float64sOf(t, n.Value())))
	}
	return all
}

// evaluated runs a machine and returns the loss.
func evaluated(t *testing.T, m gorgonia.VM, loss *gorgonia.Node) float64 {
	t.Helper()
	m.Reset()
	must(t, m.RunAll())
	return float64sOf(t, loss.Value())[0]
}

// byDifferences compares the gradients of Σ y·c for random c with central differences, on
// our machine and on Gorgonia's. The inputs share their values with their nodes.
func byDifferences(t *testing.T, build func(g *gorgonia.ExprGraph) (y *gorgonia.Node, inputs gorgonia.Nodes)) {
	t.Helper()
	for machine, newMachine := range machines {
		t.Run(machine, func(t *testing.T) {
			g := gorgonia.NewGraph()
			y, inputs := build(g)
			loss := contracted(y, imagesOf(g, tensor.Float64, "c", normals(y.Shape().TotalSize(), 4), y.Shape()...))
			grads := gradients(t, loss, inputs...)
			m := newMachine(t, g, append(gorgonia.Nodes{loss}, grads...)...)
			defer m.Close()
			evaluate := func() float64 { return evaluated(t, m, loss) }
			evaluate()
			for i, got := range valuesOf(t, grads...) {
				data := inputs[i].Value().Data().([]float64)
				closeTo(t, "gradient of "+inputs[i].Name(), got, differences(data, evaluate), 1e-8)
			}
		})
	}
}

// machines are the executors every op must give the same results under.
var machines = map[string]func(t *testing.T, g *gorgonia.ExprGraph, outputs ...*gorgonia.Node) gorgonia.VM{
	"vm": func(t *testing.T, _ *gorgonia.ExprGraph, outputs ...*gorgonia.Node) gorgonia.VM {
		p, err := vm.Compile(nil, outputs...)
		must(t, err)
		return p
	},
	"tape": func(_ *testing.T, g *gorgonia.ExprGraph, _ ...*gorgonia.Node) gorgonia.VM {
		return gorgonia.NewTapeMachine(g)
	},
}

// float64sOf returns a value's numbers.
func float64sOf(t *testing.T, v gorgonia.Value) []float64 {
	t.Helper()
	switch d := v.Data().(type) {
	case float64:
		return []float64{d}
	case float32:
		return []float64{float64(d)}
	case []float64:
		return d
	case []float32:
		out := make([]float64, len(d))
		for i, v := range d {
			out[i] = float64(v)
		}
		return out
	}
	t.Fatalf("a value of type %T", v.Data())
	return nil
}

// closeTo compares with a tolerance relative to the largest wanted number.
func closeTo(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 1e-30
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= tol*scale) {
			t.Errorf("%s[%d] = %.15g, want %.15g", what, i, got[i], w)
			return
		}
	}
}

func TestContrastiveMatchesGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/loss_*.safetensors")
	if err != nil || len(files) != 22 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, path := range files {
		for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-9, tensor.Float32: 1e-4} {
			for machine, newMachine := range machines {
				name := fmt.Sprintf("%s/%v/%s", strings.TrimSuffix(filepath.Base(path), ".safetensors"), dtype, machine)
				t.Run(name, func(t *testing.T) {
					g := readGolden(t, path)
					graph := newLossGraph(t, dtype, g.features, g.d, g.negatives, g.b, g.theta,
						op.ContrastiveOptions{Loss: g.loss, Metric: g.metric, Temperature: g.temperature, Clamp: g.clamp})
					m := newMachine(t, graph.graph, graph.loss, graph.gradFeatures, graph.gradOfTheta)
					defer m.Close()
					must(t, m.RunAll())
					closeTo(t, "loss", float64sOf(t, graph.loss.Value()), []float64{g.wantLoss}, tol)
					closeTo(t, "gradient", float64sOf(t, graph.gradFeatures.Value()), g.wantGrad, tol)
					if g.loss == op.NC {
						closeTo(t, "gradient of log Z", float64sOf(t, graph.gradOfTheta.Value()), []float64{g.wantGradTheta}, tol)
					}
				})
			}
		}
	}
}
