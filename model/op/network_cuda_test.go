//go:build cu

package op_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
	"cne/model/op"
	"cne/model/vm"
)

// drawnRows returns so many numbers of n rows, with repetitions.
func drawnRows(t *testing.T, seed uint64, count, n int) *op.Array {
	t.Helper()
	s := rng.New(seed, rng.Sample)
	rows := make([]int32, count)
	for i := range rows {
		rows[i] = int32(s.IntN(n))
	}
	a, err := op.ArrayOf(rows, count)
	must(t, err)
	return a
}

// gradientsOnBoth compares an operation's result and its gradients with respect to its
// first inputs on the CPU and a device.
func gradientsOnBoth(t *testing.T, d *device.Device, within float64, apply func(in gorgonia.Nodes) (*gorgonia.Node, error), gradients int, arrays ...*op.Array) {
	t.Helper()
	onBoth(t, d, within, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
		in, values := inputs(g, arrays...)
		y := gorgonia.Must(apply(in))
		grad := filled(t, 99, y.Shape()...)
		gradNode := nodeOf(g, grad, "grad")
		values[gradNode] = grad
		return values, append(gorgonia.Nodes{y}, weighted(t, y, gradNode, in[:gradients]...)...)
	})
}

func TestGatherOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, s := range []struct{ n, rows, cols int }{{1, 1, 1}, {5, 31, 2}, {7, 257, 3}, {300, 33, 100}, {40, 2100, 2}, {9, 0, 2}, {300, 5100, 2}, {5001, 40, 1}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			index := drawnRows(t, 3, s.rows, s.n)
			gradientsOnBoth(t, d, 1e-6, func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.Gather(in[0], in[1]) }, 1,
				filled(t, 1, s.n, s.cols), index)
			// The gradient of ScatterAdd is Gather.
			gradientsOnBoth(t, d, 1e-6, func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.ScatterAdd(in[0], in[1], in[2]) }, 1,
				filled(t, 1, s.rows, s.cols), index, filled(t, 2, s.n, s.cols))
		})
	}
}

// Sums of rows are precise for elements of any size, and NaN and infinities show.
func TestScatterAddOfAnySizeOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	index, like := drawnRows(t, 3, 100, 7), filled(t, 2, 7, 2)
	for _, scale := range []float64{1e-38, 1e-12, 1, 1e10, 1e36, math.Inf(1), math.NaN()} {
		x := filled(t, 1, 100, 2)
		for i, v := range op.Data[float32](x) {
			op.Data[float32](x)[i] = v * float32(scale)
		}
		in := []*op.Array{copyTo(t, d, x), copyTo(t, d, index), copyTo(t, d, like)}
		g := gorgonia.NewGraph()
		n := gorgonia.Must(op.ScatterAdd(nodeOf(g, x, "x"), nodeOf(g, index, "index"), nodeOf(g, like, "like")))
		want, got, there := filled(t, 9, 7, 2), filled(t, 9, 7, 2), in[2]
		must(t, op.KernelOf(n).Run(want, []*op.Array{x, index, like}))
		must(t, op.KernelOf(n).(op.Launcher).Launch(d, there, in))
		must(t, op.Copy(got, there))
		if finite := scale*0 == 0; finite {
			compareArrays(t, fmt.Sprintf("scale %g", scale), got, want, 1e-6)
		} else if !math.IsNaN(float64(op.Data[float32](got)[0])) {
			t.Errorf("the sum of %g is %g", scale, op.Data[float32](got)[0])
		}
	}
}

// layers are sizes of layers: odd ones, narrow, empty, and some that take several
// blocks.
var layers = []struct{ points, rows, in, out int }{
	{1, 1, 1, 1}, {40, 31, 5, 2}, {40, 33, 100, 2}, {20, 257, 33, 7}, {300, 300, 17, 4}, {50, 40, 64, 33}, {3, 0, 4, 5}, {3, 0, 4, 2}, {600, 2500, 3, 3}, {700, 600, 40, 1},
}

// With TF32, products of layers and convolutions, and their gradients, are off by the
// rounding of their operands: each product of two by twice that. So the bound of an
// element is that, times the element that the CPU computes of the operands' absolute
// values.
func TestTF32OnDevice(t *testing.T) {
	cases := map[string]graphOf{}
	for _, s := range layers {
		if s.out <= 4 || s.rows == 0 {
			continue // narrow layers have kernels of their own, without TF32
		}
		cases[fmt.Sprint("layer ", s)] = func(t *testing.T, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
			in, values := inputs(g, filled(t, 1, s.rows, s.in), filled(t, 2, s.out, s.in), filled(t, 3, s.out), filled(t, 4, s.rows, s.out))
			y := gorgonia.Must(op.Linear(in[0], in[1], in[2], op.NoActivation))
			return values, append(gorgonia.Nodes{y}, weighted(t, y, in[3], in[:3]...)...)
		}
	}
	for _, c := range []convCase{{2, 16, 8, 8, 32, 3, 3, 1, 1}, {5, 8, 7, 5, 16, 1, 1, 2, 0}, {3, 4, 9, 7, 5, 3, 3, 1, 1}} {
		cases["convolution "+c.String()] = func(t *testing.T, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
			return c.convolved(t, g)
		}
	}
	ways(t, func(t *testing.T, d *device.Device) {
		fakecuda.TF32(t, d, func(t *testing.T, unit float64) { compareTF32(t, d, unit, cases) })
	})
}

// A graphOf adds an operation with its gradients to a graph, and returns inputs and
// outputs.
type graphOf = func(t *testing.T, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes)

// compareTF32 compares the device's outputs, with operands off by a relative unit, with
// the CPU's.
func compareTF32(t *testing.T, d *device.Device, unit float64, cases map[string]graphOf) {
	t.Helper()
	for name, build := range cases {
		t.Run(name, func(t *testing.T) {
			compute := func(on *device.Device, absolute bool) []*op.Array {
				in, out := build(t, gorgonia.NewGraph())
				for _, a := range in {
					for i, v := range op.Data[float32](a) {
						if absolute {
							op.Data[float32](a)[i] = max(v, -v)
						}
					}
				}
				return computed(t, on, in, out)
			}
			want, size := compute(device.CPU(), false), compute(device.CPU(), true)
			rounded := false
			for k, got := range compute(d, false) {
				for i, v := range op.Data[float32](got) {
					most, w := float64(op.Data[float32](size[k])[i]), op.Data[float32](want[k])[i]
					far := math.Abs(float64(v - w))
					// The error of float32 sums is less than 2⁻¹⁶.
					if !(far <= (2*unit+unit*unit+0x1p-16)*most) {
						t.Fatalf("output %d: element %d is %g, want %g; what it is the sum of are %g together", k, i, v, w, most)
					}
					rounded = rounded || far > unit/16*most
				}
			}
			if fakecuda.InUse() && !rounded {
				t.Error("nothing was rounded to TF32")
			}
		})
	}
}

func TestLinearOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, s := range layers {
		for _, act := range []op.Activation{op.NoActivation, op.ReLUActivation} {
			t.Run(fmt.Sprint(s, act), func(t *testing.T) {
				w, b := filled(t, 2, s.out, s.in), filled(t, 3, s.out)
				gradientsOnBoth(t, d, 2e-5, func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.Linear(in[0], in[1], in[2], act) }, 3,
					filled(t, 1, s.rows, s.in), w, b)
				gradientsOnBoth(t, d, 2e-5, func(in gorgonia.Nodes) (*gorgonia.Node, error) {
					return op.LinearRows(in[0], in[3], in[1], in[2], act)
				}, 3, filled(t, 1, s.points, s.in), w, b, drawnRows(t, 4, s.rows, s.points))
			})
		}
	}
}

func TestLinearOfSparseOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, s := range layers[1:] {
		for _, act := range []op.Activation{op.NoActivation, op.ReLUActivation} {
			t.Run(fmt.Sprint(s, act), func(t *testing.T) {
				x := slices.Clone(op.Data[float32](filled(t, 1, s.points, s.in)))
				for i, v := range x {
					if math.Abs(float64(v)) < 1.1 || i < s.in {
						x[i] = 0
					}
				}
				points := op.NewSparse(x, s.in)
				if points == nil {
					t.Skip("not sparse")
				}
				gradientsOnBoth(t, d, 2e-5, func(in gorgonia.Nodes) (*gorgonia.Node, error) {
					return op.LinearOfSparse(points, in[2], in[0], in[1], act)
				}, 2, filled(t, 2, s.out, s.in), filled(t, 3, s.out), drawnRows(t, 4, s.rows, s.points))
			})
		}
	}
}

// More elements than a block of rows holds take several products.
func TestLinearByBlocksOnDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	d := fakecuda.Open(t)
	const points, in, out = 6, 3000, 5
	gradientsOnBoth(t, d, 1e-4, func(in gorgonia.Nodes) (*gorgonia.Node, error) {
		return op.LinearRows(in[2], in[3], in[0], in[1], op.ReLUActivation)
	}, 2, filled(t, 2, out, in), filled(t, 3, out), filled(t, 1, points, in), drawnRows(t, 4, 2900, points))
}

// Gradients of the bias are sums of columns, tall ones in parts.
func TestColumnSumsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, s := range [][2]int{{1, 1}, {257, 1}, {9000, 2}, {2000, 100}, {3, 1000}, {40, 33}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			gradientsOnBoth(t, d, 1e-5, func(in gorgonia.Nodes) (*gorgonia.Node, error) {
				return op.Linear(in[1], in[2], in[0], op.NoActivation)
			}, 1,
				filled(t, 1, s[1]), filled(t, 2, s[0], 1), filled(t, 3, s[1], 1))
		})
	}
}

func TestNormalizeOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	normalise := func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.Normalize(in[0]) }
	// The gradient of a single coordinate is 0, but for rounding.
	one := filled(t, 1, 3, 1)
	onBoth(t, d, 1e-6, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
		in := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 1), gorgonia.WithName("x"))
		return map[*gorgonia.Node]*op.Array{in: one}, gorgonia.Nodes{gorgonia.Must(normalise(gorgonia.Nodes{in}))}
	})
	for _, shape := range [][]int{{1, 2}, {31, 2}, {257, 3}, {33, 128}, {5, 33}, {0, 4}} {
		x := filled(t, 1, shape...)
		gradientsOnBoth(t, d, 1e-5, normalise, 1, x)
		if shape[0] > 1 {
			clear(op.Data[float32](x)[shape[1] : 2*shape[1]]) // a row without a direction
			gradientsOnBoth(t, d, 1e-5, normalise, 1, x)
		}
	}
}

// Gorgonia's own machine passes values on a device from one operation to the next.
func TestTapeMachineOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	e := device.NewEngine(d)
	x, w, b, index := filled(t, 1, 9, 6), filled(t, 2, 5, 6), filled(t, 3, 5), drawnRows(t, 4, 12, 9)
	grad := filled(t, 5, 12, 5)
	var results [2][]*op.Array
	for i := range results {
		g := gorgonia.NewGraph()
		var in gorgonia.Nodes
		for k, a := range []*op.Array{x, w, b, index, grad} {
			n := nodeOf(g, a, fmt.Sprint("input ", k))
			v := a.Value()
			if i == 1 {
				there := tensor.New(tensor.Of(a.Dtype()), tensor.WithShape(a.Shape()...), tensor.WithEngine(e))
				var to op.Array
				must(t, to.SetValue(there))
				must(t, op.Copy(&to, a))
				v = there
			}
			must(t, gorgonia.Let(n, v))
			in = append(in, n)
		}
		y := gorgonia.Must(op.Normalize(gorgonia.Must(op.LinearRows(in[0], in[3], in[1], in[2], op.ReLUActivation))))
		grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, in[4:], in[:3])
		must(t, err)
		var options []gorgonia.VMOpt
		if i == 1 {
			options = append(options, gorgonia.WithEngine(e))
		}
		m := gorgonia.NewTapeMachine(g, options...)
		for range 2 { // its registers are used again
			must(t, m.RunAll())
			m.Reset()
		}
		for _, n := range append(gorgonia.Nodes{y}, grads...) {
			here := newArray(t, nil, tensor.Float32)
			must(t, here.CopyValue(n.Value()))
			results[i] = append(results[i], here)
		}
		must(t, m.Close())
	}
	for i, want := range results[0] {
		compareArrays(t, fmt.Sprintf("result %d", i), results[1][i], want, 1e-5)
	}
}

// After its first run, a network's step allocates nothing and never waits, so that it
// can be captured and replayed.
func TestNetworkOnDeviceIsCaptured(t *testing.T) {
	d := fakecuda.Open(t)
	in, values := inputs(gorgonia.NewGraph(), filled(t, 1, 50, 9), drawnRows(t, 4, 70, 50), filled(t, 2, 8, 9), filled(t, 6, 8),
		filled(t, 3, 2, 8), filled(t, 7, 2), drawnRows(t, 5, 200, 70), filled(t, 8, 200, 2))
	hidden := gorgonia.Must(op.LinearRows(in[0], in[1], in[2], in[3], op.ReLUActivation))
	y := gorgonia.Must(op.Gather(gorgonia.Must(op.Linear(hidden, in[4], in[5], op.NoActivation)), in[6]))
	grads := weighted(t, y, in[7], in[2], in[4])
	p := compiled(t, d, values, grads...)
	must(t, p.Run())
	want := onHost(t, p.Output(grads[0]))
	replay, err := d.Capture(p.Run)
	must(t, err)
	must(t, p.Output(grads[0]).Zero())
	must(t, replay.Run())
	compareArrays(t, "done again", onHost(t, p.Output(grads[0])), want, 0)
	must(t, replay.Close())
}

// Batches may differ in size: what operations keep for one size must not show in the
// next.
func TestBatchesOfAnySizeOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	x, w, b := filled(t, 1, 30, 6), filled(t, 2, 3, 6), filled(t, 3, 3)
	var programs [2]*vm.Program
	var nodes [2]gorgonia.Nodes // inputs that differ, outputs
	for i, on := range []*device.Device{d, device.CPU()} {
		g := gorgonia.NewGraph()
		points, weights, bias := nodeOf(g, x, "x"), nodeOf(g, w, "w"), nodeOf(g, b, "b")
		rows, grad := nodeOf(g, drawnRows(t, 4, 5, 30), "rows"), nodeOf(g, filled(t, 5, 5, 3), "grad")
		y := gorgonia.Must(op.LinearRows(points, rows, weights, bias, op.ReLUActivation))
		grads := weighted(t, y, grad, points, weights, bias)
		programs[i] = compiled(t, on, map[*gorgonia.Node]*op.Array{points: x, weights: w, bias: b}, grads...)
		nodes[i] = append(gorgonia.Nodes{rows, grad}, grads...)
	}
	for _, size := range []int{5, 9000, 40, 0, 4097, 9001} {
		rows, grad := drawnRows(t, uint64(size), size, 30), filled(t, uint64(size), size, 3)
		var results [2][]*op.Array
		for i, p := range programs {
			for k, a := range []*op.Array{rows, grad} {
				must(t, op.Copy(p.Input(nodes[i][k]), a))
			}
			must(t, p.Run())
			for _, n := range nodes[i][2:] {
				results[i] = append(results[i], onHost(t, p.Output(n)))
			}
		}
		for k, want := range results[1] {
			compareArrays(t, fmt.Sprintf("%d rows, gradient %d", size, k), results[0][k], want, 2e-5)
		}
	}
}
