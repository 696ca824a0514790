//go:build cu

package op_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
	"cne/model/op"
	"cne/model/vm"
)

// onBoth runs a graph on the CPU and on a device and compares all outputs. build makes
// the graph, and returns its inputs' values and its outputs. within is the largest
// difference allowed, relative to the largest element of the CPU's result.
func onBoth(t *testing.T, d *device.Device, within float64, build func(g *gorgonia.ExprGraph) (in map[*gorgonia.Node]*op.Array, out gorgonia.Nodes)) {
	t.Helper()
	var results [2][]*op.Array
	for i, dev := range []*device.Device{device.CPU(), d} {
		in, out := build(gorgonia.NewGraph())
		results[i] = computed(t, dev, in, out)
	}
	for i, want := range results[0] {
		compareArrays(t, fmt.Sprintf("output %d", i), results[1][i], want, within)
	}
}

// compiled returns a program for a device that has its inputs.
func compiled(t testing.TB, on *device.Device, in map[*gorgonia.Node]*op.Array, out ...*gorgonia.Node) *vm.Program {
	t.Helper()
	p, err := vm.Compile(on, out...)
	must(t, err)
	for n, a := range in {
		if input := p.Input(n); input != nil {
			must(t, op.Copy(input, a))
		}
	}
	return p
}

// inputs adds inputs with the shapes of arrays to a graph.
func inputs(g *gorgonia.ExprGraph, arrays ...*op.Array) (nodes gorgonia.Nodes, values map[*gorgonia.Node]*op.Array) {
	values = map[*gorgonia.Node]*op.Array{}
	for i, a := range arrays {
		n := nodeOf(g, a, fmt.Sprint("in", i))
		nodes, values[n] = append(nodes, n), a
	}
	return nodes, values
}

func newArray(t testing.TB, on *device.Device, dtype tensor.Dtype, shape ...int) *op.Array {
	t.Helper()
	a, err := op.NewArray(on, dtype, shape...)
	must(t, err)
	return a
}

// onHost returns a copy of an array of floats in the program's memory, in float32.
func onHost(t *testing.T, a *op.Array) *op.Array {
	t.Helper()
	here := newArray(t, nil, tensor.Float32)
	must(t, op.Copy(here, a))
	return here
}

// computed runs a graph on a device and returns its outputs.
func computed(t *testing.T, on *device.Device, in map[*gorgonia.Node]*op.Array, out gorgonia.Nodes) (results []*op.Array) {
	t.Helper()
	p := compiled(t, on, in, out...)
	// Twice, since what an operation keeps from one run must not show in the next.
	for range 2 {
		must(t, p.Run())
	}
	for _, o := range out {
		results = append(results, onHost(t, p.Output(o)))
	}
	must(t, p.Close())
	return results
}

func compareArrays(t *testing.T, what string, got, want *op.Array, within float64) {
	t.Helper()
	if fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) {
		t.Errorf("%s has shape %v, want %v", what, got.Shape(), want.Shape())
		return
	}
	largest := 0.
	for _, v := range op.Data[float32](want) {
		largest = max(largest, math.Abs(float64(v)))
	}
	for k, v := range op.Data[float32](got) {
		if w := op.Data[float32](want)[k]; !(math.Abs(float64(v-w)) <= within*max(largest, 1e-30)) {
			t.Errorf("%s: element %d is %g, want %g (the largest is %g)", what, k, v, w, largest)
			return
		}
	}
}

// filled returns an array of normally distributed numbers.
func filled(t testing.TB, seed uint64, shape ...int) *op.Array {
	t.Helper()
	a := newArray(t, nil, tensor.Float32, shape...)
	s := rng.New(seed, rng.Init)
	for i := range op.Data[float32](a) {
		op.Data[float32](a)[i] = float32(s.Normal())
	}
	return a
}

// nodeOf adds an input with the shape of an array to a graph.
func nodeOf(g *gorgonia.ExprGraph, a *op.Array, name string) *gorgonia.Node {
	return gorgonia.NewTensor(g, a.Dtype(), len(a.Shape()), gorgonia.WithShape(a.Shape()...), gorgonia.WithName(name))
}

func TestSumOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, n := range []int{1, 5, 300} {
		a, b := filled(t, 1, n, 3), filled(t, 2, n, 3)
		onBoth(t, d, 0, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
			x, y := nodeOf(g, a, "x"), nodeOf(g, b, "y")
			return map[*gorgonia.Node]*op.Array{x: a, y: b}, gorgonia.Nodes{gorgonia.Must(gorgonia.Add(x, y))}
		})
	}
}
