package op_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

// anyShape are shapes of all numbers of dimensions but none.
var anyShape = [][]int{{1}, {37}, {5, 7}, {2, 3, 9}, {3, 2, 5, 7}}

// AddReLU and ReLU and their gradients against Gorgonia's own operations.
func TestReLUMatchesGorgonia(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, shape := range anyShape {
			for machine, newMachine := range machines {
				t.Run(fmt.Sprintf("%v/%v/%s", dtype, shape, machine), func(t *testing.T) {
					run := func(rectify, add func(a, b *gorgonia.Node) (*gorgonia.Node, error)) (all [][]float64) {
						g := gorgonia.NewGraph()
						n := product(shape)
						a, b := imagesOf(g, dtype, "a", normals(n, 1), shape...), imagesOf(g, dtype, "b", normals(n, 2), shape...)
						c := imagesOf(g, dtype, "c", normals(n, 3), shape...)
						first, err := rectify(a, b)
						if err != nil {
							t.Fatal(err)
						}
						y, err := add(first, b)
						if err != nil {
							t.Fatal(err)
						}
						loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
						grads, err := gorgonia.Grad(loss, a, b)
						if err != nil {
							t.Fatal(err)
						}
						outputs := append(gorgonia.Nodes{loss}, grads...)
						m := newMachine(t, g, outputs...)
						defer m.Close()
						if err := m.RunAll(); err != nil {
							t.Fatal(err)
						}
						for _, o := range outputs {
							all = append(all, slices.Clone(float64sOf(t, o.Value())))
						}
						return all
					}
					got := run(func(a, _ *gorgonia.Node) (*gorgonia.Node, error) { return op.ReLU(a) }, op.AddReLU)
					want := run(func(a, _ *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Rectify(a) },
						func(a, b *gorgonia.Node) (*gorgonia.Node, error) {
							return gorgonia.Rectify(gorgonia.Must(gorgonia.Add(a, b)))
						})
					for i, what := range []string{"loss", "gradient of a", "gradient of b"} {
						closeTo(t, what, got[i], want[i], 1e-6)
					}
				})
			}
		}
	}
}

func TestReLUByFiniteDifferences(t *testing.T) {
	for _, shape := range anyShape {
		for machine, newMachine := range machines {
			t.Run(fmt.Sprintf("%v/%s", shape, machine), func(t *testing.T) {
				g := gorgonia.NewGraph()
				n := product(shape)
				as, bs := normals(n, 1), normals(n, 2)
				a, b := imagesOf(g, tensor.Float64, "a", as, shape...), imagesOf(g, tensor.Float64, "b", bs, shape...)
				y := gorgonia.Must(op.AddReLU(gorgonia.Must(op.ReLU(a)), b))
				c := imagesOf(g, tensor.Float64, "c", normals(n, 3), shape...)
				loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
				grads, err := gorgonia.Grad(loss, a, b)
				if err != nil {
					t.Fatal(err)
				}
				m := newMachine(t, g, append(gorgonia.Nodes{loss}, grads...)...)
				defer m.Close()
				evaluate := func() float64 {
					m.Reset()
					if err := m.RunAll(); err != nil {
						t.Fatal(err)
					}
					return float64sOf(t, loss.Value())[0]
				}
				evaluate()
				gradA, gradB := slices.Clone(float64sOf(t, grads[0].Value())), slices.Clone(float64sOf(t, grads[1].Value()))
				closeTo(t, "gradient of a", gradA, differences(as, evaluate), 1e-8)
				closeTo(t, "gradient of b", gradB, differences(bs, evaluate), 1e-8)
			})
		}
	}
}

// A block's sum of a node and itself gets both gradients, a scalar has a ReLU
// as well, and a NaN stays in sight.
func TestReLUOfSpecialCases(t *testing.T) {
	g := gorgonia.NewGraph()
	x := vectorOf(g, tensor.Float64, "x", []float64{1, -1, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1)})
	outputs := append(gorgonia.Nodes{gorgonia.Must(op.ReLU(x))}, incomingTo(t, gorgonia.Must(op.AddReLU(x, x)), x)...)
	all := runOn(t, 1, outputs)
	in := normals(7, 9)
	for i, want := range [][]float64{
		{1, 0, 0, 0, math.NaN(), math.Inf(1), 0},
		{2, 0, 0, 0, math.NaN(), math.Inf(1), 0},
		{2 * in[0], 0, 0, 0, 0, 2 * in[5], 0},
	} {
		if !slices.EqualFunc(all[i], want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("output %d is %v, want %v", i, all[i], want)
		}
	}
	for v, want := range map[float64]float64{-2: 0, 3: 3} {
		s := gorgonia.NewScalar(gorgonia.NewGraph(), tensor.Float64, gorgonia.WithValue(v), gorgonia.WithName("s"))
		if got := runOn(t, 1, gorgonia.Nodes{gorgonia.Must(op.ReLU(s))}); got[0][0] != want {
			t.Errorf("the scalar %g becomes %g", v, got[0][0])
		}
	}
}

func TestReLUSameBitsOnAnyNumberOfCores(t *testing.T) {
	run := func(procs int) [][]float64 {
		shape := []int{3, 5, 83, 101}
		g := gorgonia.NewGraph()
		a, b := imagesOf(g, tensor.Float32, "a", normals(product(shape), 1), shape...), imagesOf(g, tensor.Float32, "b", normals(product(shape), 2), shape...)
		return runOn(t, procs, incomingTo(t, gorgonia.Must(op.AddReLU(gorgonia.Must(op.ReLU(a)), b)), a, b))
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

func TestReLURefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	a := imagesOf(g, tensor.Float64, "a", normals(24, 1), 2, 3, 2, 2)
	wide := imagesOf(g, tensor.Float64, "wide", normals(24, 1), 2, 3, 1, 4)
	five := imagesOf(g, tensor.Float64, "five", normals(24, 1), 2, 3, 2, 2, 1)
	_, err := op.AddReLU(a, wide)
	if want := "add_relu takes two arrays of one shape, not shapes [2 3 2 2] and [2 3 1 4]"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	_, err = op.ReLU(five)
	if want := "has more than 4 dimensions"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
