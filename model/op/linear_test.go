package op_test

import (
	"runtime"
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

// Linear's gradients with respect to all operands, contracted with random
// weights, against central differences, on our machine and on Gorgonia's.
func TestLinearByFiniteDifferences(t *testing.T) {
	index := []int32{2, 0, 2, 4, 1, 2, 3}
	for name, tc := range map[string]struct {
		act     op.Activation
		indexed bool
	}{
		"linear":         {op.NoActivation, false},
		"relu":           {op.ReLUActivation, false},
		"linear of rows": {op.NoActivation, true},
		"relu of rows":   {op.ReLUActivation, true},
	} {
		for machine, newMachine := range machines {
			t.Run(name+"/"+machine, func(t *testing.T) {
				const n, in, out = 5, 4, 3
				g := gorgonia.NewGraph()
				xs, ws, bs := normals(n*in, 1), normals(out*in, 2), normals(out, 3)
				x := matrixOf(g, tensor.Float64, "x", n, in, xs)
				w := matrixOf(g, tensor.Float64, "w", out, in, ws)
				b := vectorOf(g, tensor.Float64, "b", bs)
				var y *gorgonia.Node
				var err error
				if tc.indexed {
					y, err = op.LinearRows(x, indexOf(g, index), w, b, tc.act)
				} else {
					y, err = op.Linear(x, w, b, tc.act)
				}
				must(t, err)
				c := matrixOf(g, tensor.Float64, "c", y.Shape()[0], out, normals(y.Shape().TotalSize(), 4))
				loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
				grads, err := gorgonia.Grad(loss, x, w, b)
				must(t, err)
				m := newMachine(t, g, append(gorgonia.Nodes{loss}, grads...)...)
				defer m.Close()
				evaluate := func() float64 {
					m.Reset()
					must(t, m.RunAll())
					return float64sOf(t, loss.Value())[0]
				}
				evaluate()
				for i, p := range []struct {
					name string
					data []float64
				}{{"x", xs}, {"w", ws}, {"b", bs}} {
					grad := slices.Clone(float64sOf(t, grads[i].Value()))
					closeTo(t, "gradient of "+p.name, grad, differences(p.data, evaluate), 1e-8)
					evaluate()
				}
			})
		}
	}
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
				y, err = op.Linear(y, w, b, act)
				must(t, err)
				params = append(params, w, b)
				names = append(names, layer+".grad_weight", layer+".grad_bias")
			}
			gradY := matrixOf(g, dtype, "grad_y", 32, 2, read("grad_y"))
			grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{gradY}, params)
			must(t, err)
			p, err := vm.Compile(nil, append(gorgonia.Nodes{y}, grads...)...)
			must(t, err)
			must(t, p.RunAll())
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
		x := matrixOf(g, dtype, "x", n, in, normals(n*in, 1))
		w := matrixOf(g, dtype, "w", out, in, normals(out*in, 2))
		b := vectorOf(g, dtype, "b", normals(out, 3))
		var y *gorgonia.Node
		var err error
		if gathered {
			y, err = op.Linear(gorgonia.Must(op.Gather(x, indexOf(g, index))), w, b, op.ReLUActivation)
		} else {
			y, err = op.LinearRows(x, indexOf(g, index), w, b, op.ReLUActivation)
		}
		must(t, err)
		c := matrixOf(g, dtype, "c", len(index), out, normals(len(index)*out, 4))
		grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{c}, gorgonia.Nodes{x, w, b})
		must(t, err)
		outputs := append(gorgonia.Nodes{y}, grads...)
		p, err := vm.Compile(nil, outputs...)
		must(t, err)
		must(t, p.RunAll())
		var all [][]float64
		for _, o := range outputs {
			all = append(all, slices.Clone(float64sOf(t, o.Value())))
		}
		return all
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

func TestLinearSameBitsOnAnyNumberOfCores(t *testing.T) {
	const n, in, out = 5000, 64, 50
	run := func(procs int) [][]float64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		g := gorgonia.NewGraph()
		x := matrixOf(g, tensor.Float32, "x", n, in, normals(n*in, 1))
		w := matrixOf(g, tensor.Float32, "w", out, in, normals(out*in, 2))
		b := vectorOf(g, tensor.Float32, "b", normals(out, 3))
		y := gorgonia.Must(op.Linear(x, w, b, op.ReLUActivation))
		grads, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{incoming(g, y)}, gorgonia.Nodes{x, w, b})
		must(t, err)
		p, err := vm.Compile(nil, append(gorgonia.Nodes{y}, grads...)...)
		must(t, err)
		must(t, p.RunAll())
		var all [][]float64
		for _, o := range append(gorgonia.Nodes{y}, grads...) {
			all = append(all, slices.Clone(float64sOf(t, o.Value())))
		}
		return all
	}
	want := run(1)
	for _, procs := range []int{2, 7} {
		for i, got := range run(procs) {
			if !slices.Equal(got, want[i]) {
				t.Errorf("output %d differs on %d cores", i, procs)
			}
		}
	}
}

// incoming is an incoming gradient of y's shape.
func incoming(g *gorgonia.ExprGraph, y *gorgonia.Node) *gorgonia.Node {
	return matrixOf(g, y.Dtype(), "g", y.Shape()[0], y.Shape()[1], normals(y.Shape().TotalSize(), 9))
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
		"width":      {func() (*gorgonia.Node, error) { return op.Linear(x, narrow, b, op.ReLUActivation) }, "linear_relu takes rows [n,in]"},
		"bias":       {func() (*gorgonia.Node, error) { return op.Linear(x, w, short, op.NoActivation) }, "linear takes rows [n,in]"},
		"activation": {func() (*gorgonia.Node, error) { return op.Linear(x, w, b, 7) }, "no activation 7"},
		"index": {func() (*gorgonia.Node, error) {
			y, err := op.LinearRows(x, outside, w, b, op.ReLUActivation)
			if err != nil {
				return nil, err
			}
			p, err := vm.Compile(nil, y)
			if err != nil {
				return nil, err
			}
			return nil, p.RunAll()
		}, "row 1 of the index is 2, but there are 2 points"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.apply()
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
			y, err := apply(indexOf(g, index), w, b, g)
			must(t, err)
			c := matrixOf(g, tensor.Float32, "c", len(index), out, normals(len(index)*out, 4))
			loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
			grads, err := gorgonia.Grad(loss, w, b)
			must(t, err)
			outputs := append(gorgonia.Nodes{loss}, grads...)
			m := newMachine(t, g, outputs...)
			defer m.Close()
			must(t, m.RunAll())
			var all [][]float64
			for _, o := range outputs {
				all = append(all, slices.Clone(float64sOf(t, o.Value())))
			}
			return all
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
	y, err := op.LinearOfSparse(sparse, indexOf(g, []int32{30}), w, b, op.ReLUActivation)
	must(t, err)
	p, err := vm.Compile(nil, y)
	must(t, err)
	if err := p.RunAll(); err == nil || !strings.Contains(err.Error(), "row 0 of the index is 30, but there are 30 points") {
		t.Errorf("error %v", err)
	}
}
