package op_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/safetensors"
	"cne/model/op"
)

// matrixOf and vectorOf make input nodes bound to values of a type.
func matrixOf(g *gorgonia.ExprGraph, dtype tensor.Dtype, name string, rows, cols int, x []float64) *gorgonia.Node {
	return gorgonia.NewMatrix(g, dtype, gorgonia.WithValue(valueOf(dtype, x, rows, cols)), gorgonia.WithName(name))
}

func vectorOf(g *gorgonia.ExprGraph, dtype tensor.Dtype, name string, x []float64) *gorgonia.Node {
	return gorgonia.NewVector(g, dtype, gorgonia.WithValue(valueOf(dtype, x, len(x))), gorgonia.WithName(name))
}

// valueOf returns a tensor that shares x if the type is float64.
func valueOf(dtype tensor.Dtype, x []float64, shape ...int) *tensor.Dense {
	if dtype == tensor.Float64 {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(y))
}

func indexOf(g *gorgonia.ExprGraph, index []int32) *gorgonia.Node {
	return gorgonia.NewVector(g, tensor.Int32, gorgonia.WithValue(tensor.New(tensor.WithShape(len(index)), tensor.WithBacking(index))), gorgonia.WithName("index"))
}

// layerOf makes n random rows, and the weights and the bias of a layer.
func layerOf(g *gorgonia.ExprGraph, dtype tensor.Dtype, n, in, out int) (x, w, b *gorgonia.Node) {
	return matrixOf(g, dtype, "x", n, in, normals(n*in, 1)), matrixOf(g, dtype, "w", out, in, normals(out*in, 2)), vectorOf(g, dtype, "b", normals(out, 3))
}

// The network of the golden file, forward and backward, as a chain of Linear.
func TestLinearMatchesGoldenMLP(t *testing.T) {
	f, err := safetensors.ReadFile("testdata/mlp_12_100_100_100_2.safetensors")
	must(t, err)
	read := func(name string) []float64 {
		x, err := f.Tensors[name].Float64s()
		must(t, err)
		return x
	}
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-9, tensor.Float32: 1e-4} {
		t.Run(dtype.String(), func(t *testing.T) {
			g := gorgonia.NewGraph()
			y := matrixOf(g, dtype, "x", 32, 12, read("x"))
			var params gorgonia.Nodes
			var names []string
			for l := range 4 {
				layer := strconv.Itoa(l)
				shape := f.Tensors[layer+".weight"].Shape
				w := matrixOf(g, dtype, layer+".weight", shape[0], shape[1], read(layer+".weight"))
				b := vectorOf(g, dtype, layer+".bias", read(layer+".bias"))
				act := op.ReLUActivation
				if l == 3 {
					act = op.NoActivation
				}
				y = gorgonia.Must(op.Linear(y, w, b, act))
				params = append(params, w, b)
				names = append(names, layer+".grad_weight", layer+".grad_bias")
			}
			gradY := matrixOf(g, dtype, "grad_y", 32, 2, read("grad_y"))
			grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{gradY}, params)
			must(t, err)
			ran(t, append(gorgonia.Nodes{y}, grads...)...)
			closeTo(t, "y", float64sOf(t, y.Value()), read("y"), tol)
			for i, name := range names {
				closeTo(t, name, float64sOf(t, grads[i].Value()), read(name), tol)
			}
		})
	}
}

// A layer of the rows that an index names is the layer of those rows gathered,
// bit for bit, and so are its gradients.
func TestLinearRowsIsLinearOfGather(t *testing.T) {
	const n, in, out = 300, 37, 19
	index := make([]int32, 700)
	for i := range index {
		index[i] = int32(i * i % n)
	}
	run := func(dtype tensor.Dtype, gathered bool) [][]float64 {
		g := gorgonia.NewGraph()
		x, w, b := layerOf(g, dtype, n, in, out)
		var y *gorgonia.Node
		var err error
		if gathered {
			y, err = op.Linear(gorgonia.Must(op.Gather(x, indexOf(g, index))), w, b, op.ReLUActivation)
		} else {
			y, err = op.LinearRows(x, indexOf(g, index), w, b, op.ReLUActivation)
		}
		must(t, err)
		c := matrixOf(g, dtype, "c", len(index), out, normals(len(index)*out, 4))
		outputs := append(gorgonia.Nodes{y}, weighted(t, y, c, x, w, b)...)
		ran(t, outputs...)
		return valuesOf(t, outputs...)
	}
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		a, b := run(dtype, true), run(dtype, false)
		for i, what := range []string{"y", "gradient of x", "gradient of w", "gradient of b"} {
			if !slices.Equal(a[i], b[i]) {
				t.Errorf("%v: %s differs", dtype, what)
			}
		}
	}
}

func TestLinearRefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	x := matrixOf(g, tensor.Float64, "x", 2, 3, normals(6, 1))
	w := matrixOf(g, tensor.Float64, "w", 4, 3, normals(12, 1))
	narrow := matrixOf(g, tensor.Float64, "narrow", 4, 2, normals(8, 1))
	b := vectorOf(g, tensor.Float64, "b", normals(4, 1))
	short := vectorOf(g, tensor.Float64, "short", normals(3, 1))
	outside := indexOf(g, []int32{0, 2})
	for name, tc := range map[string]struct {
		apply func() (*gorgonia.Node, error)
		want  string
	}{
		"width":      {func() (*gorgonia.Node, error) { return op.Linear(x, narrow, b, op.ReLUActivation) }, "linear_relu: got shapes [2 3], [4 2] and [4], want rows [n,in]"},
		"bias":       {func() (*gorgonia.Node, error) { return op.Linear(x, w, short, op.NoActivation) }, "linear: got shapes [2 3], [4 3] and [3], want rows [n,in]"},
		"activation": {func() (*gorgonia.Node, error) { return op.Linear(x, w, b, 7) }, "activation: got 7"},
		"index":      {func() (*gorgonia.Node, error) { return op.LinearRows(x, outside, w, b, op.ReLUActivation) }, "row 1 of the index: got 2, want 0 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := runOf(tc.apply())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The sparse form of a layer, on our machine and on Gorgonia's, against the
// dense one; and when there is none.
func TestLinearOfSparse(t *testing.T) {
	const n, in, out = 30, 20, 7
	x := make([]float32, n*in)
	for i, v := range normals(len(x)/5, 1) {
		x[5*i+i%4] = float32(v)
	}
	exact := make([]float64, len(x))
	for i, v := range x {
		exact[i] = float64(v)
	}
	sparse := op.NewSparse(x, in)
	if sparse == nil || op.NewSparse(slices.Repeat([]float32{1}, 20), in) != nil || op.NewSparse(x[:21], in) != nil {
		t.Fatal("the sparse form is there where it should not be, or the other way round")
	}
	index := []int32{3, 29, 3, 0, 11}
	for machine, newMachine := range machines {
		run := func(apply func(index, w, b *gorgonia.Node, g *gorgonia.ExprGraph) (*gorgonia.Node, error)) [][]float64 {
			g := gorgonia.NewGraph()
			w := matrixOf(g, tensor.Float32, "w", out, in, normals(out*in, 2))
			b := vectorOf(g, tensor.Float32, "b", normals(out, 3))
			y := gorgonia.Must(apply(indexOf(g, index), w, b, g))
			c := matrixOf(g, tensor.Float32, "c", len(index), out, normals(len(index)*out, 4))
			loss := contracted(y, c)
			outputs := append(gorgonia.Nodes{loss}, gradients(t, loss, w, b)...)
			m := newMachine(t, g, outputs...)
			defer m.Close()
			must(t, m.RunAll())
			return valuesOf(t, outputs...)
		}
		got := run(func(index, w, b *gorgonia.Node, _ *gorgonia.ExprGraph) (*gorgonia.Node, error) {
			return op.LinearOfSparse(sparse, index, w, b, op.ReLUActivation)
		})
		want := run(func(index, w, b *gorgonia.Node, g *gorgonia.ExprGraph) (*gorgonia.Node, error) {
			return op.LinearRows(matrixOf(g, tensor.Float32, "x", n, in, exact), index, w, b, op.ReLUActivation)
		})
		for i, what := range []string{"loss", "gradient of w", "gradient of b"} {
			closeTo(t, machine+": "+what, got[i], want[i], 1e-5)
		}
	}
	g := gorgonia.NewGraph()
	w, b := matrixOf(g, tensor.Float32, "w", out, in, normals(out*in, 2)), vectorOf(g, tensor.Float32, "b", normals(out, 3))
	if _, err := op.LinearOfSparse(sparse, indexOf(g, index), w, vectorOf(g, tensor.Float32, "short", normals(2, 1)), op.ReLUActivation); err == nil {
		t.Error("a bias of 2 was taken for 7 outputs")
	}
	if err := runOf(op.LinearOfSparse(sparse, indexOf(g, []int32{30}), w, b, op.ReLUActivation)); err == nil || !strings.Contains(err.Error(), "row 0 of the index: got 30, want 0 to 29") {
		t.Errorf("error %v", err)
	}
}
