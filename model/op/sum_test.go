package op_test

import (
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

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
		if n := steady(t, twice...); n > 10 {
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
