//go:build cu

package model

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device/fakecuda"
	"cne/internal/rng"
	"cne/model/op"
	"cne/model/vm"
)

// draw returns an array of normally distributed numbers.
func draw(t *testing.T, seed uint64, shape ...int) *op.Array {
	t.Helper()
	a, err := op.NewArray(nil, tensor.Float32, shape...)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Copy(here, got); err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			if err := net.UseDevice(d); err != nil {
				t.Fatal(err)
			}
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
				h, _, nodes, err := net.graphOn(on, x, op.Float32)
				if err != nil {
					t.Fatal(err)
				}
				grads, err := gorgonia.Backpropagate(gorgonia.Nodes{h}, gorgonia.Nodes{of}, nodes[:len(parameters)])
				if err != nil {
					t.Fatal(err)
				}
				outputs[i] = append(gorgonia.Nodes{h}, grads...)
				if programs[i], err = vm.Compile(on.where(), outputs[i]...); err != nil {
					t.Fatal(err)
				}
				if err := net.shareOn(on, programs[i], nodes); err != nil {
					t.Fatal(err)
				}
				for n, a := range map[*gorgonia.Node]*op.Array{x: images, of: weights} {
					if err := op.Copy(programs[i].Input(n), a); err != nil {
						t.Fatal(err)
					}
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
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
			}
			run(programs[0])
			run(programs[1])
			check("training")
			captured, err := d.Capture(programs[1].Run)
			if err != nil {
				t.Fatal(err)
			}
			run(programs[0])
			run(captured)
			check("captured")
			if err := captured.Close(); err != nil {
				t.Fatal(err)
			}

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
