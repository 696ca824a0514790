//go:build cu

package op_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model/op"
)

// halfUnit is the largest relative change of a number that is rounded to bfloat16, whose
// mantissas have eight bits.
const halfUnit = 0x1p-8

// magnitude returns the absolute values.
func magnitude(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Abs(v)
	}
	return y
}

// In bfloat16 a convolution's products are products of rounded factors, which are exact.
// Sums are float32, and each addition rounds by 2⁻²⁴ of its terms. The result and the
// images' gradient are rounded once, and so may be the weights' gradient: all are within
// these bounds of the convolution in float64, by either way.
func TestConv2dInBFloat16OnDevice(t *testing.T) {
	ways(t, func(t *testing.T, d *device.Device) {
		for _, c := range deviceConvCases {
			t.Run(c.String(), func(t *testing.T) {
				oh, ow := c.result()
				var parts [3][]float64
				var arrays []*op.Array
				for i, shape := range [3][]int{{c.n, c.h, c.w, c.c}, {c.k, c.c, c.kh, c.kw}, {c.n, oh, ow, c.k}} {
					arrays = append(arrays, filled(t, uint64(i+1), shape...))
					for _, v := range op.Data[float32](arrays[i]) {
						parts[i] = append(parts[i], float64(v))
					}
				}
				nodes, values := inputs(gorgonia.NewGraph(), arrays...)
				y := gorgonia.Must(op.Conv2d(nodes[0], nodes[1], c.stride, c.pad, op.BFloat16))
				out := append(gorgonia.Nodes{y}, weighted(t, y, nodes[2], nodes[:2]...)...)
				got := computed(t, d, values, out)
				if c.n == 0 {
					return
				}
				for i := range parts {
					parts[i] = bfloat16s(parts[i])
				}
				want := c.exactly(parts)
				sizes := c.exactly([3][]float64{magnitude(parts[0]), magnitude(parts[1]), magnitude(parts[2])})
				terms := [3]int{c.c * c.kh * c.kw, c.k * c.kh * c.kw, c.n * oh * ow}
				for i, what := range partNames {
					for k, v := range op.Data[float32](got[i]) {
						bound := halfUnit*math.Abs(want[i][k]) + 1.01*float64(terms[i]+1)*0x1p-24*sizes[i][k]
						if off := math.Abs(float64(v) - want[i][k]); !(off <= bound) {
							t.Fatalf("%s: element %d is %g, want %g: off by %.2g, where rounding makes %.2g", what, k, v, want[i][k], off, bound)
						}
					}
				}
			})
		}
	})
}

// evaluate computes a node with its operands, where values has not got them. On a device
// results are stored as ResultDtype says.
func evaluate(t *testing.T, d *device.Device, n *gorgonia.Node, values map[*gorgonia.Node]*op.Array) *op.Array {
	t.Helper()
	if a := values[n]; a != nil {
		return a
	}
	var in []*op.Array
	var stored []tensor.Dtype
	for it := n.Graph().From(n.ID()); it.Next(); {
		a := evaluate(t, d, it.Node().(*gorgonia.Node), values)
		in, stored = append(in, a), append(stored, a.Dtype())
	}
	k := op.KernelOf(n)
	shape, err := k.ResultShape(nil, in)
	must(t, err)
	dst := newArray(t, d, op.ResultDtype(d, k, n, stored), shape...)
	if d.OnHost() {
		err = k.Run(dst, in)
	} else {
		err = k.(op.Launcher).Launch(d, dst, in)
	}
	must(t, err)
	values[n] = dst
	return dst
}

// inHalves returns a copy of an array on a device in bfloat16, and has the array hold the
// same numbers.
func inHalves(t *testing.T, d *device.Device, a *op.Array) *op.Array {
	t.Helper()
	there := newArray(t, d, op.DtypeBFloat16)
	must(t, op.Copy(there, a))
	must(t, op.Copy(a, there))
	return there
}

// What is stored in bfloat16 is what the CPU computes in float32 from the same numbers,
// but for one rounding: results, and gradients of images. Those of scales and shifts, and
// means, are of float32 on both.
func TestOperationsOnHalvesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	type graph func(x, scale, shift, other *gorgonia.Node, stats *op.BatchStats) (*gorgonia.Node, error)
	for name, build := range map[string]graph{
		"batch_norm": func(x, scale, shift, _ *gorgonia.Node, stats *op.BatchStats) (*gorgonia.Node, error) {
			return op.BatchNorm(x, scale, shift, stats, op.NoActivation)
		},
		"batch_norm, ReLU": func(x, scale, shift, _ *gorgonia.Node, stats *op.BatchStats) (*gorgonia.Node, error) {
			return op.BatchNorm(x, scale, shift, stats, op.ReLUActivation)
		},
		"batch_norm, added, ReLU": func(x, scale, shift, other *gorgonia.Node, stats *op.BatchStats) (*gorgonia.Node, error) {
			return op.BatchNormAddReLU(x, scale, shift, other, stats)
		},
		"pool": func(x, _, _, _ *gorgonia.Node, _ *op.BatchStats) (*gorgonia.Node, error) { return op.GlobalAvgPool(x) },
	} {
		for _, shape := range [][]int{{2, 3, 3, 1}, {3, 5, 3, 3}, {3, 5, 3, 8}, {5, 7, 3, 257}, {9, 16, 16, 4}, {3, 17, 17, 6}, {2, 3, 5, 132}} {
			t.Run(fmt.Sprint(name, shape), func(t *testing.T) {
				c := shape[3]
				var in []*op.Array
				for i, s := range [][]int{shape, {c}, {c}, shape} {
					in = append(in, filled(t, uint64(i), s...))
				}
				there := []*op.Array{inHalves(t, d, in[0]), nil, nil, inHalves(t, d, in[3])}
				var results [2][]*op.Array
				var stats [2]*op.BatchStats
				for i, on := range []*device.Device{nil, d} {
					g, values := gorgonia.NewGraph(), map[*gorgonia.Node]*op.Array{}
					var nodes gorgonia.Nodes
					for k, a := range in {
						n := nodeOf(g, a, fmt.Sprint("in", k))
						nodes = append(nodes, n)
						values[n] = a
						if on != nil && there[k] != nil {
							values[n] = there[k]
						} else if on != nil {
							values[n] = copyTo(t, d, a)
						}
					}
					var err error
					stats[i], err = op.NewBatchStats(on, tensor.Float32, c)
					must(t, err)
					y := gorgonia.Must(build(nodes[0], nodes[1], nodes[2], nodes[3], stats[i]))
					of := filled(t, 9, y.Shape()...)
					gradient := nodeOf(g, of, "g")
					if halves := inHalves(t, d, of); on == nil {
						values[gradient] = of
					} else if values[gradient] = halves; name == "pool" {
						values[gradient] = copyTo(t, d, of)
					}
					wrt := gorgonia.Nodes{nodes[0]}
					if strings.HasPrefix(name, "batch_norm") {
						wrt = nodes[:3:3]
					}
					if strings.Contains(name, "add") {
						wrt = append(wrt, nodes[3])
					}
					for _, n := range append(gorgonia.Nodes{y}, weighted(t, y, gradient, wrt...)...) {
						results[i] = append(results[i], evaluate(t, on, n, values))
					}
				}
				for i, want := range results[0] {
					got := results[1][i]
					unit := 0.
					if got.Dtype() == op.DtypeBFloat16 {
						unit = halfUnit
					}
					if images := slices.Equal(got.Shape(), shape); images != (unit > 0) {
						t.Errorf("result %d of shape %v is stored as %v", i, got.Shape(), got.Dtype())
					}
					here, largest := onHost(t, got), 0.
					for _, v := range op.Data[float32](want) {
						largest = max(largest, math.Abs(float64(v)))
					}
					for k, v := range op.Data[float32](here) {
						w := float64(op.Data[float32](want)[k])
						if off := math.Abs(float64(v) - w); !(off <= 1.01*unit*math.Abs(w)+2e-5*largest) {
							t.Fatalf("result %d: element %d is %g, want %g", i, k, v, w)
						}
					}
				}
				compareArrays(t, "the running mean", onHost(t, stats[1].Mean), stats[0].Mean, 1e-4)
				compareArrays(t, "the running variance", onHost(t, stats[1].Var), stats[0].Var, 2e-5)
			})
		}
	}
}

// copyTo returns a copy of an array on a device.
func copyTo(t *testing.T, d *device.Device, a *op.Array) *op.Array {
	t.Helper()
	there := newArray(t, d, a.Dtype())
	must(t, op.Copy(there, a))
	return there
}

// Copies round to the nearest bfloat16, of two the even one, and widen to the same number.
// Infinities and NaN stay what they are.
func TestCopiesOfHalvesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ from, to float64 }{
		{0, 0}, {1, 1}, {-1.5, -1.5}, {1 + 0x1p-7, 1 + 0x1p-7}, {1 + 0x1p-9, 1}, {1 + 0x1p-8, 1}, {1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-7},
		{1 + 3*0x1p-8, 1 + 0x1p-6}, {-1 - 3*0x1p-8, -1 - 0x1p-6}, {inf, inf}, {-inf, -inf}, {nan, nan}, {math.MaxFloat32, inf}, {0x1p-130, 0x1p-130}, {0x1p-149, 0},
	} {
		for _, n := range []int{1, 3, 8} { // element by element, and by fours
			x, err := op.ArrayOf(slices.Repeat([]float32{float32(c.from)}, n), n)
			must(t, err)
			inHalves(t, d, x)
			for _, v := range op.Data[float32](x) {
				if float64(v) != c.to && !(math.IsNaN(c.to) && v != v) || math.Signbit(float64(v)) != math.Signbit(c.to) && c.to == c.to {
					t.Errorf("%g becomes %g, want %g", c.from, v, c.to)
				}
			}
		}
	}
	// On the device the types may differ, and shapes follow.
	x := filled(t, 1, 5, 3)
	halves := inHalves(t, d, x)
	if halves.Cap() < 15 || halves.Cap() > 16 {
		t.Errorf("15 elements have room for %d", halves.Cap())
	}
	wide := newArray(t, d, tensor.Float32)
	again := newArray(t, d, op.DtypeBFloat16)
	for _, c := range [][2]*op.Array{{wide, halves}, {again, wide}, {halves, again}} {
		must(t, op.Copy(c[0], c[1]))
	}
	compareArrays(t, "the copy", onHost(t, halves), x, 0)
	must(t, halves.Zero())
	compareArrays(t, "what was cleared", onHost(t, halves), filled(t, 1, 5, 3), math.Inf(1))
	for _, v := range op.Data[float32](onHost(t, halves)) {
		if v != 0 {
			t.Errorf("cleared, an element is %g", v)
		}
	}
	if _, err := op.NewArray(nil, op.DtypeBFloat16, 3); err == nil {
		t.Error("the CPU has an array of bfloat16")
	}
	if err := op.Copy(newArray(t, d, tensor.Int32), halves); err == nil {
		t.Error("integers are made of bfloat16")
	}
}

// Arrays of both types in one operation are refused.
func TestMixedTypesAreRefusedOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	g := gorgonia.NewGraph()
	x := filled(t, 1, 2, 3, 3, 4)
	a, b := nodeOf(g, x, "a"), nodeOf(g, x, "b")
	y := op.KernelOf(gorgonia.Must(gorgonia.Add(a, b)))
	dst, halves := copyTo(t, d, x), inHalves(t, d, x)
	err := y.(op.Launcher).Launch(d, dst, []*op.Array{halves, copyTo(t, d, x)})
	if err == nil || !strings.Contains(err.Error(), "one type") {
		t.Errorf("the error is %v", err)
	}
	// The second of two convolutions is in float32.
	in, w := nodeOf(g, x, "x"), nodeOf(g, filled(t, 2, 4, 4, 1, 1), "w")
	first := gorgonia.Must(op.Conv2d(in, w, 1, 0, op.BFloat16))
	second := gorgonia.Must(op.Conv2d(first, w, 1, 0, op.Float32))
	p := compiled(t, d, map[*gorgonia.Node]*op.Array{in: x, w: filled(t, 2, 4, 4, 1, 1)}, second)
	if err := p.Run(); err == nil || !strings.Contains(err.Error(), "got images of bfloat16") {
		t.Errorf("float32 after bfloat16: the error is %v", err)
	}
}

// A program says where a result in bfloat16 is not finite.
func TestDiagnosisOfHalvesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	g := gorgonia.NewGraph()
	x, w := filled(t, 1, 3, 4, 4, 4), filled(t, 2, 4, 4, 1, 1)
	op.Data[float32](x)[2*64+5], op.Data[float32](x)[2*64+6] = math.MaxFloat32, math.MaxFloat32
	in, weights := nodeOf(g, x, "x"), nodeOf(g, w, "w")
	y := gorgonia.Must(op.Conv2d(in, weights, 1, 0, op.BFloat16))
	p := compiled(t, d, map[*gorgonia.Node]*op.Array{in: x, weights: w}, gorgonia.Must(op.GlobalAvgPool(y)))
	if err := p.RunChecked(); err == nil || !strings.Contains(err.Error(), "conv2d") || !strings.Contains(err.Error(), "row 2") {
		t.Errorf("the error is %v", err)
	}
}

// Values of bfloat16 go from one operation to the next without a program, too, those that
// end in float32 included.
func TestTapeOfHalvesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	e := device.NewEngine(d)
	g := gorgonia.NewGraph()
	var nodes gorgonia.Nodes
	values := map[*gorgonia.Node]*op.Array{}
	var there []gorgonia.Value
	for i, a := range []*op.Array{filled(t, 1, 3, 3, 3, 5), filled(t, 2, 7, 5, 3, 3)} {
		n := nodeOf(g, a, fmt.Sprint("input ", i))
		v := tensor.New(tensor.Of(a.Dtype()), tensor.WithShape(a.Shape()...), tensor.WithEngine(e))
		var to op.Array
		must(t, to.SetValue(v))
		must(t, op.Copy(&to, a))
		values[n], nodes, there = copyTo(t, d, a), append(nodes, n), append(there, v)
	}
	y := gorgonia.Must(op.Conv2d(nodes[0], nodes[1], 1, 1, op.BFloat16))
	means := gorgonia.Must(op.GlobalAvgPool(y))
	want := onHost(t, evaluate(t, d, means, values))
	v, err := y.Op().Do(there...)
	must(t, err)
	if v.Dtype() != op.DtypeBFloat16 {
		t.Errorf("the result in bfloat16 is of %v", v.Dtype())
	}
	v, err = means.Op().Do(v)
	must(t, err)
	if v.Dtype() != tensor.Float32 {
		t.Fatalf("means are of %v", v.Dtype())
	}
	var got op.Array
	must(t, got.SetValue(v))
	compareArrays(t, "the means", onHost(t, &got), want, 0)
}

// What shares a word of memory with other halves is not cleared, which would clear these.
func TestClearedViewOfHalvesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	all := inHalves(t, d, filled(t, 1, 9))
	want := slices.Clone(op.Data[float32](onHost(t, all)))
	for _, c := range []struct {
		first, n int
		refused  bool
	}{{0, 3, true}, {4, 1, true}, {7, 2, true}, {4, 2, false}, {0, 8, false}} {
		some := newArray(t, d, op.DtypeBFloat16)
		must(t, some.View(all, c.first, c.n))
		if err := some.Zero(); (err != nil) != c.refused {
			t.Errorf("%d from %d on: the error is %v", c.n, c.first, err)
		}
		if !c.refused {
			clear(want[c.first:][:c.n])
		}
		if got := op.Data[float32](onHost(t, all)); !slices.Equal(got, want) {
			t.Errorf("with %d cleared from %d on: %v, want %v", c.n, c.first, got, want)
		}
	}
	if err := all.Zero(); err != nil { // its memory is whole words
		t.Error(err)
	}
}
