package op_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/parallel"
	"cne/model/op"
	"cne/model/vm"
)

// imagesOf makes an input node of any shape bound to values of a type.
func imagesOf(g *gorgonia.ExprGraph, dtype tensor.Dtype, name string, x []float64, shape ...int) *gorgonia.Node {
	return gorgonia.NewTensor(g, dtype, len(shape), gorgonia.WithValue(valueOf(dtype, x, shape...)), gorgonia.WithName(name))
}

// product returns the number of elements of a shape.
func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// stats returns new statistics, which these tests can do without an error.
func stats(t testing.TB, dtype tensor.Dtype, channels int) *op.BatchStats {
	t.Helper()
	s, err := op.NewBatchStats(nil, dtype, channels)
	must(t, err)
	return s
}

// A statistic or a value of an array, as float64.
func numbers(a *op.Array) []float64 {
	if x := op.Data[float64](a); a.Dtype() == tensor.Float64 {
		return slices.Clone(x)
	}
	var out []float64
	for _, v := range op.Data[float32](a) {
		out = append(out, float64(v))
	}
	return out
}

// A normGraph is a BatchNorm with its gradients, of Σ y·c with random c.
type normGraph struct {
	graph            *gorgonia.ExprGraph
	stats            *op.BatchStats
	xs, scales       []float64
	shifts, cs       []float64
	y, loss          *gorgonia.Node
	grads            gorgonia.Nodes
	x, scale, shift  *gorgonia.Node
	c                *gorgonia.Node
	outputs          gorgonia.Nodes
	channels, values int // values per channel
	shape            []int
}

// run computes all outputs of the images as they are now.
func (n *normGraph) run(t *testing.T) {
	t.Helper()
	must(t, gorgonia.Let(n.x, valueOf(n.x.Dtype(), n.xs, n.shape...)))
	ran(t, n.outputs...)
}

// newNormInputs has only the inputs.
func newNormInputs(t testing.TB, dtype tensor.Dtype, shape ...int) *normGraph {
	t.Helper()
	c := shape[3]
	n := &normGraph{graph: gorgonia.NewGraph(), stats: stats(t, dtype, c), channels: c, values: product(shape) / c, shape: shape,
		xs: normals(product(shape), 1), scales: normals(c, 2), shifts: normals(c, 3), cs: normals(product(shape), 4)}
	for i := range n.xs { // means and variances that are not 0 and 1
		k := float64(i % c)
		n.xs[i] = (1+k/3)*n.xs[i] + 2 - k
	}
	for k := range c {
		if dtype == tensor.Float64 {
			op.Data[float64](n.stats.Mean)[k], op.Data[float64](n.stats.Var)[k] = 0.3*float64(k), 0.7+float64(k)
		} else {
			op.Data[float32](n.stats.Mean)[k], op.Data[float32](n.stats.Var)[k] = 0.3*float32(k), 0.7+float32(k)
		}
	}
	n.x = imagesOf(n.graph, dtype, "x", n.xs, shape...)
	n.scale, n.shift = vectorOf(n.graph, dtype, "scale", n.scales), vectorOf(n.graph, dtype, "shift", n.shifts)
	n.c = imagesOf(n.graph, dtype, "c", n.cs, shape...)
	return n
}

func newNormGraph(t testing.TB, dtype tensor.Dtype, shape ...int) *normGraph {
	t.Helper()
	return newActiveNormGraph(t, dtype, op.NoActivation, shape...)
}

func newActiveNormGraph(t testing.TB, dtype tensor.Dtype, act op.Activation, shape ...int) *normGraph {
	t.Helper()
	n := newNormInputs(t, dtype, shape...)
	n.y = gorgonia.Must(op.BatchNorm(n.x, n.scale, n.shift, n.stats, act))
	n.loss = contracted(n.y, n.c)
	n.grads = gradients(t, n.loss, n.x, n.scale, n.shift)
	n.outputs = append(gorgonia.Nodes{n.loss, n.y}, n.grads...)
	return n
}

// normShapes are odd ones, one image, one channel, one pixel, and channels that
// are more than a vector.
var normShapes = [][]int{{3, 3, 5, 2}, {1, 2, 3, 3}, {5, 1, 3, 1}, {4, 1, 1, 3}, {2, 3, 2, 19}, {1, 1, 2, 1}}

func TestBatchNormByFiniteDifferences(t *testing.T) {
	for _, shape := range normShapes {
		for mode := range 4 {
			for machine, newMachine := range machines {
				evaluate, act := mode&1 != 0, op.Activation(mode>>1)
				t.Run(fmt.Sprintf("%v/evaluate=%v/activation=%d/%s", shape, evaluate, act, machine), func(t *testing.T) {
					n := newActiveNormGraph(t, tensor.Float64, act, shape...)
					n.stats.Evaluate = evaluate
					m := newMachine(t, n.graph, append(gorgonia.Nodes{n.loss}, n.grads...)...)
					defer m.Close()
					evaluateLoss := func() float64 { return evaluated(t, m, n.loss) }
					evaluateLoss()
					grads := valuesOf(t, n.grads...)
					for i, p := range []struct {
						name string
						data []float64
					}{{"x", n.xs}, {"scale", n.scales}, {"shift", n.shifts}} {
						want := differences(p.data, evaluateLoss)
						tol := 1e-7
						if n.values == 2 && i == 0 && !evaluate {
							tol = 1e-3 // two values lie at ±1 whatever they are: their gradient is nearly 0
						}
						closeTo(t, "gradient of "+p.name, grads[i], want, tol)
					}
				})
			}
		}
	}
}

// direct computes a batch normalisation from its definition, and the moments of
// the channels with the unbiased variance.
func (n *normGraph) direct(shape []int) (y, mean, variance []float64) {
	y, mean, variance = make([]float64, len(n.xs)), make([]float64, n.channels), make([]float64, n.channels)
	for i, v := range n.xs {
		mean[i%n.channels] += v / float64(n.values)
	}
	for i, v := range n.xs {
		d := v - mean[i%n.channels]
		variance[i%n.channels] += d * d / float64(n.values-1)
	}
	for i, v := range n.xs {
		k := i % n.channels
		biased := variance[k] * float64(n.values-1) / float64(n.values)
		y[i] = n.scales[k]*(v-mean[k])/math.Sqrt(biased+1e-5) + n.shifts[k]
	}
	return y, mean, variance
}

// The output and the running statistics over several runs, on both machines,
// and in float32 far from 0 as well.
func TestBatchNormAgainstDefinition(t *testing.T) {
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 2e-6} {
		for _, shape := range append(slices.Clone(normShapes), []int{3, 4, 4, 32}, []int{2, 8, 8, 3}, []int{2, 10, 13, 48}, []int{3, 20, 20, 16}) {
			for machine, newMachine := range machines {
				t.Run(fmt.Sprintf("%v/%v/%s", dtype, shape, machine), func(t *testing.T) {
					act := op.Activation(shape[0] % 2)
					n := newActiveNormGraph(t, dtype, act, shape...)
					m := newMachine(t, n.graph, n.outputs...)
					defer m.Close()
					wantMean, wantVar := numbers(n.stats.Mean), numbers(n.stats.Var)
					for range 3 {
						y, mean, variance := n.direct(shape)
						for i, v := range y {
							if act == op.ReLUActivation {
								y[i] = max(0, v)
							}
						}
						for k := range mean {
							wantMean[k] = 0.9*wantMean[k] + 0.1*mean[k]
							wantVar[k] = 0.9*wantVar[k] + 0.1*variance[k]
						}
						m.Reset()
						must(t, m.RunAll())
						if machine == "vm" { // the other keeps no values within a graph
							closeTo(t, "y", float64sOf(t, n.y.Value()), y, tol)
						}
						closeTo(t, "running mean", numbers(n.stats.Mean), wantMean, tol)
						closeTo(t, "running variance", numbers(n.stats.Var), wantVar, tol)
						for i := range n.xs {
							n.xs[i] = float64(float32(1.5*n.xs[i] + 1))
						}
						must(t, gorgonia.Let(n.x, valueOf(dtype, n.xs, shape...)))
					}
				})
			}
		}
	}
}

// Evaluation uses the running statistics and does not change them.
func TestBatchNormEvaluation(t *testing.T) {
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 2e-6} {
		shape := []int{3, 3, 7, 18}
		n := newNormGraph(t, dtype, shape...)
		n.stats.Evaluate = true
		mean, variance := numbers(n.stats.Mean), numbers(n.stats.Var)
		p, err := vm.Compile(nil, n.outputs...)
		must(t, err)
		for range 2 {
			must(t, p.RunAll())
		}
		want, wantGrad := make([]float64, len(n.xs)), make([]float64, len(n.xs))
		for i, v := range n.xs {
			k := i % 18
			f := n.scales[k] / math.Sqrt(variance[k]+1e-5)
			want[i], wantGrad[i] = f*(v-mean[k])+n.shifts[k], f*n.cs[i]
		}
		closeTo(t, "y", float64sOf(t, n.y.Value()), want, tol)
		closeTo(t, "gradient", float64sOf(t, n.grads[0].Value()), wantGrad, tol)
		if !slices.Equal(numbers(n.stats.Mean), mean) || !slices.Equal(numbers(n.stats.Var), variance) {
			t.Errorf("%v: evaluation has changed the statistics to %v and %v", dtype, numbers(n.stats.Mean), numbers(n.stats.Var))
		}
		// One image of one pixel is enough for it.
		one := newNormGraph(t, dtype, 1, 1, 1, 2)
		one.stats.Evaluate = true
		q, err := vm.Compile(nil, one.outputs...)
		must(t, err)
		if err := q.RunAll(); err != nil {
			t.Errorf("%v: %v", dtype, err)
		}
	}
}

// float32 against float64, both rounded alike at the start, with channels far
// from 0 compared with their spread.
func TestBatchNormSingleMatchesDouble(t *testing.T) {
	for _, tc := range []struct {
		offset, tol float64
	}{{0, 2e-6}, {1000, 2e-6}, {-1e6, 5e-6}} {
		shape := []int{7, 9, 11, 21}
		var got [2][][]float64
		var running [2][2][]float64
		for i, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			n := newNormGraph(t, dtype, shape...)
			for j := range n.xs {
				n.xs[j] = float64(float32(n.xs[j] + tc.offset))
			}
			for _, x := range [][]float64{n.scales, n.shifts, n.cs} {
				for j := range x {
					x[j] = float64(float32(x[j]))
				}
			}
			n.run(t)
			got[i] = valuesOf(t, n.outputs[1:]...)
			running[i] = [2][]float64{numbers(n.stats.Mean), numbers(n.stats.Var)}
		}
		for j, what := range []string{"y", "gradient of x", "gradient of scale", "gradient of shift"} {
			closeTo(t, fmt.Sprintf("%s at %g", what, tc.offset), got[0][j], got[1][j], tc.tol)
		}
		for j, what := range []string{"running mean", "running variance"} {
			closeTo(t, fmt.Sprintf("%s at %g", what, tc.offset), running[0][j], running[1][j], 1e-6)
		}
	}
}

// A channel of one value, far from 0, becomes its shift.
func TestBatchNormOfConstants(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		n := newNormGraph(t, dtype, 2, 4, 5, 3)
		for i := range n.xs {
			n.xs[i] = []float64{1e6 + 1, -123456.7, 0}[i%3]
		}
		n.run(t)
		want := make([]float64, len(n.xs))
		for i := range want {
			want[i] = n.shifts[i%3]
		}
		closeTo(t, dtype.String(), float64sOf(t, n.y.Value()), want, 1e-7)
	}
}

// Two layers with the same inputs are two, each with statistics of its own.
func TestTwoBatchNormsOfOneInput(t *testing.T) {
	for machine, newMachine := range machines {
		t.Run(machine, func(t *testing.T) {
			shape := []int{3, 3, 5, 2}
			n := newNormInputs(t, tensor.Float64, shape...)
			second := stats(t, tensor.Float64, 2)
			second.Evaluate = true // of means 0 and variances 1
			y := gorgonia.Must(op.BatchNorm(n.x, n.scale, n.shift, n.stats, op.NoActivation))
			z := gorgonia.Must(op.BatchNorm(n.x, n.scale, n.shift, second, op.NoActivation))
			sum := contracted(gorgonia.Must(gorgonia.Add(y, z)), n.c)
			grads := gradients(t, sum, n.shift, n.scale)
			m := newMachine(t, n.graph, sum, grads[0], grads[1])
			defer m.Close()
			must(t, m.RunAll())
			first, _, _ := n.direct(shape)
			var want float64
			wantScale, wantShift := make([]float64, 2), make([]float64, 2)
			for i, v := range n.xs {
				k := i % 2
				unit := v / math.Sqrt(1+1e-5)
				want += n.cs[i] * (first[i] + n.scales[k]*unit + n.shifts[k])
				wantScale[k] += n.cs[i] * ((first[i]-n.shifts[k])/n.scales[k] + unit)
				wantShift[k] += 2 * n.cs[i]
			}
			closeTo(t, "sum", float64sOf(t, sum.Value()), []float64{want}, 1e-12)
			closeTo(t, "gradient of shift", float64sOf(t, grads[0].Value()), wantShift, 1e-12)
			closeTo(t, "gradient of scale", float64sOf(t, grads[1].Value()), wantScale, 1e-12)
			if !slices.Equal(numbers(second.Mean), []float64{0, 0}) || slices.Equal(numbers(n.stats.Mean), []float64{0, 0.3}) {
				t.Errorf("the running means are %v and %v", numbers(n.stats.Mean), numbers(second.Mean))
			}
		})
	}
}

// A NaN shows in all of its channel and nowhere else.
func TestBatchNormKeepsNaN(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, at := range []int{0, 3, 17, 18*40 + 5} { // the pivot, inside a vector, and in a tail
			shape := []int{3, 5, 5, 18}
			n := newNormGraph(t, dtype, shape...)
			n.xs[at%len(n.xs)] = math.NaN()
			n.run(t)
			bad := at % 18
			for _, o := range []*gorgonia.Node{n.y, n.grads[0]} {
				for i, v := range float64sOf(t, o.Value()) {
					if math.IsNaN(v) != (i%18 == bad) {
						t.Fatalf("%v, a NaN at %d: element %d of %v is %g", dtype, at, i, o, v)
					}
				}
			}
			for k := range 18 {
				for _, s := range []float64{numbers(n.stats.Mean)[k], numbers(n.stats.Var)[k], float64sOf(t, n.grads[1].Value())[k]} {
					if math.IsNaN(s) != (k == bad) {
						t.Errorf("%v, a NaN at %d: a statistic of channel %d is %g", dtype, at, k, s)
					}
				}
			}
		}
	}
}

// runOn computes all outputs on a number of processors.
func runOn(t *testing.T, procs int, outputs gorgonia.Nodes) [][]float64 {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	ran(t, outputs...)
	return valuesOf(t, outputs...)
}

func TestLayersHaveTheSameBitsOnAnyNumberOfCores(t *testing.T) {
	for name, run := range map[string]func(procs int) [][]float64{
		"BatchNorm": func(procs int) [][]float64 {
			n := newNormGraph(t, tensor.Float32, 16, 30, 31, 19)
			return append(runOn(t, procs, n.outputs[1:]), numbers(n.stats.Mean), numbers(n.stats.Var))
		},
		"GlobalAvgPool": func(procs int) [][]float64 {
			x := imagesOf(gorgonia.NewGraph(), tensor.Float32, "x", normals(16*9*30*31, 1), 16, 30, 31, 9)
			return runOn(t, procs, incomingTo(t, gorgonia.Must(op.GlobalAvgPool(x)), x))
		},
		"Linear": func(procs int) [][]float64 {
			x, w, b := layerOf(gorgonia.NewGraph(), tensor.Float32, 5000, 64, 50)
			return runOn(t, procs, incomingTo(t, gorgonia.Must(op.Linear(x, w, b, op.ReLUActivation)), x, w, b))
		},
	} {
		want := run(1)
		for _, procs := range []int{2, 7} {
			for i, got := range run(procs) {
				if !slices.Equal(got, want[i]) {
					t.Errorf("%s: output %d differs on %d cores", name, i, procs)
				}
			}
		}
	}
}

// fewAllocations may be made in 20 runs: a worker or two may be new.
const fewAllocations = 10

// steady tells how many allocations 20 runs of a program make, after a first.
func steady(t *testing.T, outputs ...*gorgonia.Node) uint64 {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	p := ran(t, outputs...)
	// The least of several series: on a busy machine the runtime allocates now
	// and then, but what a run needs is needed in every series.
	least := uint64(math.MaxUint64)
	for range 5 {
		if least <= fewAllocations {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			must(t, p.Run())
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// incomingTo differentiates y with respect to inputs, for a gradient that is an
// input.
func incomingTo(t testing.TB, y *gorgonia.Node, inputs ...*gorgonia.Node) gorgonia.Nodes {
	t.Helper()
	g := imagesOf(y.Graph(), y.Dtype(), "incoming", normals(y.Shape().TotalSize(), 9), y.Shape()...)
	return append(gorgonia.Nodes{y}, weighted(t, y, g, inputs...)...)
}

// BatchNormAddReLU gives, to the bit, what BatchNorm and Gorgonia's ReLU of a sum give: the result, all gradients and the running statistics.
func TestBatchNormAddReLU(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, shape := range append(slices.Clone(normShapes), []int{3, 20, 20, 32}) {
			for _, evaluate := range []bool{false, true} {
				var results [2][][]float64
				for i := range results {
					g := gorgonia.NewGraph()
					x, residual := imagesOf(g, dtype, "x", normals(product(shape), 1), shape...), imagesOf(g, dtype, "residual", normals(product(shape), 2), shape...)
					scale, shift := vectorOf(g, dtype, "scale", normals(shape[3], 3)), vectorOf(g, dtype, "shift", normals(shape[3], 4))
					s := stats(t, dtype, shape[3])
					s.Evaluate = evaluate
					var y *gorgonia.Node
					if i == 0 {
						y = gorgonia.Must(gorgonia.Rectify(gorgonia.Must(gorgonia.Add(gorgonia.Must(op.BatchNorm(x, scale, shift, s, op.NoActivation)), residual))))
					} else {
						y = gorgonia.Must(op.BatchNormAddReLU(x, scale, shift, residual, s))
					}
					results[i] = append(runOn(t, 2, incomingTo(t, y, x, scale, shift, residual)), numbers(s.Mean), numbers(s.Var))
				}
				for k, want := range results[0] {
					if !slices.Equal(results[1][k], want) {
						t.Errorf("%v, %v, evaluate %t: array %d is %v, want %v", dtype, shape, evaluate, k, results[1][k], want)
					}
				}
			}
		}
	}
}

func TestImageOperationsDoNotAllocate(t *testing.T) {
	for name, outputs := range map[string]func(t *testing.T, x *gorgonia.Node) gorgonia.Nodes{
		"BatchNorm": func(t *testing.T, x *gorgonia.Node) gorgonia.Nodes {
			scale, shift := vectorOf(x.Graph(), x.Dtype(), "scale", normals(8, 2)), vectorOf(x.Graph(), x.Dtype(), "shift", normals(8, 3))
			return incomingTo(t, gorgonia.Must(op.BatchNorm(x, scale, shift, stats(t, x.Dtype(), 8), op.ReLUActivation)), x, scale, shift)
		},
		"BatchNormAddReLU": func(t *testing.T, x *gorgonia.Node) gorgonia.Nodes {
			scale, shift := vectorOf(x.Graph(), x.Dtype(), "scale", normals(8, 2)), vectorOf(x.Graph(), x.Dtype(), "shift", normals(8, 3))
			b := imagesOf(x.Graph(), x.Dtype(), "b", normals(x.Shape().TotalSize(), 4), x.Shape()...)
			return incomingTo(t, gorgonia.Must(op.BatchNormAddReLU(x, scale, shift, b, stats(t, x.Dtype(), 8))), x, scale, shift, b)
		},
		"GlobalAvgPool": func(t *testing.T, x *gorgonia.Node) gorgonia.Nodes {
			return incomingTo(t, gorgonia.Must(op.GlobalAvgPool(x)), x)
		},
	} {
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			g := gorgonia.NewGraph()
			x := imagesOf(g, dtype, "x", normals(16*8*32*33, 1), 16, 32, 33, 8)
			if n := steady(t, outputs(t, x)...); n > fewAllocations {
				t.Errorf("%s of %v: %d allocations in 20 runs", name, dtype, n)
			}
		}
	}
}

func TestBatchNormRefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	x := imagesOf(g, tensor.Float64, "x", normals(24, 1), 2, 2, 2, 3)
	pixel := imagesOf(g, tensor.Float64, "pixel", normals(3, 1), 1, 1, 1, 3)
	empty, none := imagesOf(g, tensor.Float64, "empty", nil, 2, 2, 2, 0), vectorOf(g, tensor.Float64, "none", nil)
	three, four := vectorOf(g, tensor.Float64, "three", normals(3, 1)), vectorOf(g, tensor.Float64, "four", normals(4, 1))
	for name, tc := range map[string]struct {
		apply func() error
		want  string
	}{
		"no statistics": {func() error { return runOf(op.BatchNorm(x, three, three, nil, op.NoActivation)) }, "want some of NewBatchStats"},
		"scale": {func() error { return runOf(op.BatchNorm(x, four, three, stats(t, tensor.Float64, 3), op.NoActivation)) },
			"batch_norm: got shapes [2 2 2 3], [4] and [3], want images [n,h,w,c]"},
		"no channel": {func() error {
			return runOf(op.BatchNorm(empty, none, none, stats(t, tensor.Float64, 0), op.NoActivation))
		},
			"got shapes [2 2 2 0], [0] and [0], want images [n,h,w,c] of one channel or more"},
		"shift": {func() error { return runOf(op.BatchNorm(x, three, four, stats(t, tensor.Float64, 3), op.NoActivation)) }, "got shapes [2 2 2 3], [3] and [4]"},
		"channels": {func() error {
			return runOf(op.BatchNorm(x, three, three, stats(t, tensor.Float64, 4), op.NoActivation))
		}, "got statistics of shapes [4] and [4], want a number for each of 3 channels"},
		"type": {func() error {
			return runOf(op.BatchNorm(x, three, three, stats(t, tensor.Float32, 3), op.NoActivation))
		}, "got statistics of float32 and float32, want float64"},
		"added": {func() error { return runOf(op.BatchNormAddReLU(x, three, three, pixel, stats(t, tensor.Float64, 3))) },
			"batch_norm_add_relu: got shapes [2 2 2 3] and [1 1 1 3], want images and others of their shape"},
		"one value": {func() error {
			return runOf(op.BatchNorm(pixel, three, three, stats(t, tensor.Float64, 3), op.NoActivation))
		}, "got 1 values of a channel in images of shape [1 1 1 3], want 2"},
		"activation": {func() error {
			return runOf(op.BatchNorm(x, three, three, stats(t, tensor.Float64, 3), op.Activation(7)))
		}, "activation: got 7"},
		"type of it": {func() error { _, err := op.NewBatchStats(nil, tensor.Int32, 3); return err }, "batch statistics: got type int32"},
		"size of it": {func() error { _, err := op.NewBatchStats(nil, tensor.Float32, -3); return err }, "negative dimension"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.apply(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// BenchmarkImages times both passes of each operation on the largest and the
// smallest images of a ResNet18 and, for comparison, what a copy on all cores
// takes. MB/s counts each array that is read or written once.
func BenchmarkImages(b *testing.B) {
	for _, shape := range [][]int{{128, 32, 32, 64}, {128, 4, 4, 512}} {
		n := product(shape)
		xs := normals(n, 1)
		b.Run(fmt.Sprintf("%v/copy", shape), func(b *testing.B) {
			src := valueOf(tensor.Float32, xs, shape...).Data().([]float32)
			dst := make([]float32, n)
			b.SetBytes(int64(2 * 4 * n))
			for b.Loop() {
				parallel.For(n, 1<<16, func(_, lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
			}
		})
		for _, c := range []struct {
			name   string
			arrays int // in both passes
			apply  func(x *gorgonia.Node) (*gorgonia.Node, gorgonia.Nodes)
		}{
			{"BatchNorm", 2 + 3, func(x *gorgonia.Node) (*gorgonia.Node, gorgonia.Nodes) {
				scale, shift := vectorOf(x.Graph(), x.Dtype(), "scale", normals(shape[3], 2)), vectorOf(x.Graph(), x.Dtype(), "shift", normals(shape[3], 3))
				return gorgonia.Must(op.BatchNorm(x, scale, shift, stats(b, x.Dtype(), shape[3]), op.ReLUActivation)), gorgonia.Nodes{x, scale, shift}
			}},
			{"GlobalAvgPool", 1 + 1, func(x *gorgonia.Node) (*gorgonia.Node, gorgonia.Nodes) {
				return gorgonia.Must(op.GlobalAvgPool(x)), gorgonia.Nodes{x}
			}},
		} {
			for _, pass := range []string{"forward", "both"} {
				b.Run(fmt.Sprintf("%v/%s/%s", shape, c.name, pass), func(b *testing.B) {
					y, inputs := c.apply(imagesOf(gorgonia.NewGraph(), tensor.Float32, "x", xs, shape...))
					outputs, arrays := gorgonia.Nodes{y}, c.arrays/2
					if pass == "both" {
						outputs, arrays = incomingTo(b, y, inputs...), c.arrays
					}
					p := ran(b, outputs...)
					b.SetBytes(int64(4 * n * arrays))
					b.ReportAllocs()
					for b.Loop() {
						must(b, p.Run())
					}
				})
			}
		}
	}
}
