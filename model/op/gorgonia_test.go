package op_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	. "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

// inputOf returns a matrix of a graph of its own.
func inputOf(rows, cols int, values ...float64) *Node {
	return NewMatrix(NewGraph(), Float64, WithShape(rows, cols), WithName("x"), WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(values))))
}

// valueAndGradient runs Gorgonia's own machine, and returns y with the gradient of its sum
// with respect to x.
func valueAndGradient(t *testing.T, x, y *Node, err error) (value, gradient []float64) {
	t.Helper()
	must(t, err)
	grads, err := Grad(Must(Sum(y)), x)
	must(t, err)
	var v, g Value
	Read(y, &v)
	Read(grads[0], &g)
	m := NewTapeMachine(x.Graph())
	defer m.Close()
	must(t, m.RunAll())
	return v.Data().([]float64), g.Data().([]float64)
}

// docs/architecture.md lists what Gorgonia and tensor do otherwise than one would guess. A
// graph that mixes their operations with this package's meets it. If a new version fails
// here, the list is too long.
func TestGorgoniaIsAsDocumented(t *testing.T) {
	for name, f := range map[string]func(t *testing.T) (got float64, right bool){
		"the gradient of InverseSqrt": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 1, 4)
			y, err := InverseSqrt(x)
			_, g := valueAndGradient(t, x, y, err)
			return g[0], g[0] == -1./16
		},
		"the gradient of Log2": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 1, 4)
			y, err := Log2(x)
			_, g := valueAndGradient(t, x, y, err)
			return g[0], math.Abs(g[0]-1/(4*math.Ln2)) < 1e-9
		},
		"the gradient of Rectify at 0": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 1, 0)
			y, err := Rectify(x)
			_, g := valueAndGradient(t, x, y, err)
			return g[0], g[0] == 0
		},
		"the gradient of Dropout": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 100, slices.Repeat([]float64{1}, 100)...)
			y, err := Dropout(x, 0.2)
			_, g := valueAndGradient(t, x, y, err)
			most := 0.
			for _, v := range g {
				most = max(most, v)
			}
			return most, most != 5
		},
		"two Dropouts of one input": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 2, 1, 1)
			return 1, Must(Dropout(x, 0.2)) != Must(Dropout(x, 0.7))
		},
		"SoftMax and LogSoftMax of one input": func(t *testing.T) (float64, bool) {
			x := inputOf(1, 2, 1, 2)
			return 1, Must(SoftMax(x)) != Must(LogSoftMax(x))
		},
		"SoftMax of a row far below the first value": func(t *testing.T) (float64, bool) {
			x := inputOf(2, 2, 0, 0, -1000, -1001)
			y, err := SoftMax(x)
			v, _ := valueAndGradient(t, x, y, err)
			return v[2], math.Abs(v[2]-1/(1+math.Exp(-1))) < 1e-9
		},
		"the gradient of ByIndices along axis 1": func(t *testing.T) (float64, bool) {
			x := inputOf(3, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8)
			i := NewVector(x.Graph(), tensor.Int, WithShape(2), WithName("i"), WithValue(tensor.New(tensor.WithBacking([]int{2, 1}))))
			y, err := ByIndices(x, i, 1)
			_, g := valueAndGradient(t, x, y, err)
			return g[0], g[0] == 0
		},
		"the gradient of GlobalAveragePool2D": func(t *testing.T) (got float64, right bool) {
			defer func() { _ = recover() }()
			x := NewTensor(NewGraph(), Float64, 4, WithShape(1, 1, 2, 2), WithName("x"), WithInit(Ones()))
			y, err := GlobalAveragePool2D(x)
			must(t, err)
			_, err = Grad(Must(Sum(y)), x)
			return 0, err == nil
		},
		"AdaGrad's learning rate": func(t *testing.T) (float64, bool) {
			moved := func(lr float64) float64 {
				x := inputOf(1, 1, 1)
				_, err := Grad(Must(Sum(Must(Square(x)))), x)
				must(t, err)
				m := NewTapeMachine(x.Graph(), BindDualValues(x))
				defer m.Close()
				must(t, m.RunAll())
				must(t, NewAdaGradSolver(WithLearnRate(lr)).Step(NodesToValueGrads(Nodes{x})))
				return x.Value().Data().([]float64)[0]
			}
			return moved(0.5), moved(0.5) != moved(0.1)
		},
		"MatMul of a slice of columns": func(t *testing.T) (float64, bool) {
			x := tensor.New(tensor.WithShape(3, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}))
			view, err := x.Slice(nil, tensor.S(0, 2))
			must(t, err)
			p, err := tensor.MatMul(view, tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 0, 0, 1})))
			must(t, err)
			v := p.Data().([]float64)[2]
			return v, v == 4
		},
		"Exp in float32": func(t *testing.T) (float64, bool) {
			e, err := tensor.Exp(tensor.New(tensor.WithBacking([]float32{88.5, 0})))
			must(t, err)
			v := float64(e.Data().([]float32)[0])
			return v, runtime.GOARCH == "amd64" && math.Abs(v/math.Exp(88.5)-1) < 1e-5 // its assembly
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, right := f(t)
			t.Log(got)
			if right {
				t.Errorf("%s is right now: take it off the list in docs/architecture.md", name)
			}
		})
	}
}

// Views whose memory has gaps or another order, with which tensor computes wrong numbers,
// do not reach a program.
func TestViewsAreRefused(t *testing.T) {
	x := tensor.New(tensor.WithShape(3, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}))
	view, err := x.Slice(nil, tensor.S(0, 2))
	must(t, err)
	transposed := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))
	must(t, transposed.T())
	for name, v := range map[string]tensor.Tensor{"a slice of columns": view, "a transpose": transposed} {
		a, err := op.ArrayOf(make([]float64, 6), 3, 2)
		must(t, err)
		if err := a.SetValue(v.(*tensor.Dense)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
