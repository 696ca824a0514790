//go:build cu

package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device/fakecuda"
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

// draw returns an array of normally distributed numbers.
func draw(t *testing.T, seed uint64, shape ...int) *op.Array {
	t.Helper()
	a, err := op.NewArray(nil, tensor.Float32, shape...)
	must(t, err)
	s := rng.New(seed, rng.Init)
	for i := range op.Data[float32](a) {
		op.Data[float32](a)[i] = float32(s.Normal())
	}
	return a
}

// near compares arrays, wherever they are, relative to the largest element.
func near(t *testing.T, what string, got, want *op.Array, within float64) {
	t.Helper()
	here, err := op.NewArray(nil, tensor.Float32)
	must(t, err)
	must(t, op.Copy(here, got))
	largest := 0.
	for _, v := range op.Data[float32](want) {
		largest = max(largest, math.Abs(float64(v)))
	}
	if fmt.Sprint(here.Shape()) != fmt.Sprint(want.Shape()) {
		t.Fatalf("%s has shape %v, want %v", what, here.Shape(), want.Shape())
	}
	for i, v := range op.Data[float32](here) {
		if w := op.Data[float32](want)[i]; !(math.Abs(float64(v-w)) <= within*largest) {
			t.Errorf("%s: element %d is %g, want %g (the largest is %g)", what, i, v, w, largest)
			return
		}
	}
}

// Representations, gradients and running statistics are the CPU's, in training and
// evaluation, and in a replay.
func TestResNetOnDevice(t *testing.T) {
	for name, cuDNN := range map[string]bool{"cuDNN": true, "patches": false} {
		t.Run(name, func(t *testing.T) {
			fakecuda.Convolutions(t, cuDNN)
			d := fakecuda.Open(t)
			net, err := NewResNet[float32](ResNetOptions{Width: 4}, 1)
			must(t, err)
			must(t, net.UseDevice(d))
			images := draw(t, 1, 6, 3, 16, 16)
			weights := draw(t, 2, 6, net.Width())
			// The last parameters are the head's, which the representation does not need.
			parameters := net.Parameters()[:len(net.Parameters())-4]

			var programs [2]*vm.Program
			var outputs [2]gorgonia.Nodes
			for i, on := range []*deviceParams{nil, net.onDevice} {
				g := gorgonia.NewGraph()
				x := gorgonia.NewTensor(g, tensor.Float32, 4, gorgonia.WithShape(images.Shape()...), gorgonia.WithName("x"))
				of := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(weights.Shape()...), gorgonia.WithName("of"))
				h, _, nodes := net.graph(on, x, op.Float32)
				grads, err := gorgonia.Backpropagate(gorgonia.Nodes{h}, gorgonia.Nodes{of}, nodes[:len(parameters)])
				must(t, err)
				outputs[i] = append(gorgonia.Nodes{h}, grads...)
				programs[i], err = vm.Compile(on.where(), outputs[i]...)
				must(t, err)
				on.share(programs[i], nodes, net.parameters)
				for n, a := range map[*gorgonia.Node]*op.Array{x: images, of: weights} {
					must(t, op.Copy(programs[i].Input(n), a))
				}
			}
			check := func(what string) {
				t.Helper()
				for k, o := range outputs[0] {
					name := "h"
					if k > 0 {
						name = parameters[k-1].Name
					}
					near(t, what+": "+name, programs[1].Output(outputs[1][k]), programs[0].Output(o), 2e-5)
				}
			}
			run := func(p interface{ Run() error }) {
				t.Helper()
				must(t, p.Run())
			}
			run(programs[0])
			run(programs[1])
			check("training")
			captured, err := d.Capture(programs[1].Run)
			must(t, err)
			run(programs[0])
			run(captured)
			check("captured")
			must(t, captured.Close())

			for _, b := range net.norms {
				near(t, b.name+".running_mean", net.onDevice.stats[b.stats].Mean, b.stats.Mean, 1e-4)
				near(t, b.name+".running_var", net.onDevice.stats[b.stats].Var, b.stats.Var, 1e-4)
			}
			net.Evaluate(true)
			run(programs[0])
			run(programs[1])
			check("evaluation")
		})
	}
}

// A step in bfloat16 differs from one in float32 by what rounding makes of it: no more,
// all in all, than one of the CPU does, and no layer's gradients by twice as much. The
// CPU rounds only the factors of products but, in Winograd's method, after transforms
// that make errors larger. A replay has the same bits.
func TestResNetInBFloat16OnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	net, err := NewResNet[float32](ResNetOptions{Width: 16}, 1)
	must(t, err)
	images, weights := draw(t, 1, 12, 3, 16, 16), draw(t, 2, 12, 128)
	parameters := net.Parameters()[:len(net.Parameters())-4] // without the head
	step := func(on *Device, precision op.Precision) (results [][]float32) {
		t.Helper()
		must(t, net.UseDevice(on))
		x := gorgonia.NewTensor(gorgonia.NewGraph(), tensor.Float32, 4, gorgonia.WithShape(images.Shape()...), gorgonia.WithName("x"))
		of := gorgonia.NewMatrix(x.Graph(), tensor.Float32, gorgonia.WithShape(weights.Shape()...), gorgonia.WithName("of"))
		h, _, nodes := net.graph(net.onDevice, x, precision)
		outputs, err := gorgonia.Backpropagate(gorgonia.Nodes{h}, gorgonia.Nodes{of}, nodes[:len(parameters)])
		must(t, err)
		outputs = append(outputs, h)
		p, err := vm.Compile(net.onDevice.where(), outputs...)
		must(t, err)
		net.onDevice.share(p, nodes, net.parameters)
		for n, a := range map[*gorgonia.Node]*op.Array{x: images, of: weights} {
			must(t, op.Copy(p.Input(n), a))
		}
		read := func() (all [][]float32) {
			for _, o := range outputs {
				here, err := op.NewArray(nil, tensor.Float32)
				must(t, err)
				must(t, op.Copy(here, p.Output(o)))
				all = append(all, op.Data[float32](here))
			}
			return all
		}
		must(t, p.Run())
		results = read()
		if !on.OnHost() {
			captured, err := on.Capture(p.Run)
			must(t, err)
			must(t, captured.Run())
			for k, again := range read() {
				if !slices.Equal(again, results[k]) {
					t.Errorf("replayed, output %d has other bits", k)
				}
			}
			must(t, captured.Close())
		}
		return results
	}
	exact, here, there := step(nil, op.Float32), step(nil, op.BFloat16), step(d, op.BFloat16)
	off := func(got, want []float32) float64 {
		var far, size float64
		for i, w := range want {
			far += float64(got[i]-w) * float64(got[i]-w)
			size += float64(w) * float64(w)
		}
		return math.Sqrt(far / size)
	}
	logs := 0. // Σ log of the device's error as a share of the CPU's
	for k, want := range exact {
		name := "the representation"
		if k < len(parameters) {
			name = parameters[k].Name
		}
		device, cpu := off(there[k], want), off(here[k], want)
		logs += math.Log(device / cpu)
		if !(device <= 2*cpu) || device == 0 {
			t.Errorf("%s is off by %.2g of its size in bfloat16, and by %.2g on the CPU", name, device, cpu)
		}
	}
	if share := math.Exp(logs / float64(len(exact))); !(share <= 1) {
		t.Errorf("errors are %.2g times the CPU's", share)
	} else {
		t.Logf("errors are %.2g times the CPU's", share)
	}
}
