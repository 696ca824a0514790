package op_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

// The means of planes with their gradient against Gorgonia's own reshaping,
// product and sums.
func TestGlobalAvgPoolMatchesGorgonia(t *testing.T) {
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-13, tensor.Float32: 1e-6} {
		for _, shape := range append(slices.Clone(normShapes), []int{2, 3, 4, 4}, []int{3, 2, 7, 9}) {
			for machine, newMachine := range machines {
				t.Run(fmt.Sprintf("%v/%v/%s", dtype, shape, machine), func(t *testing.T) {
					planes, size := shape[0]*shape[1], shape[2]*shape[3]
					run := func(pool func(x *gorgonia.Node) *gorgonia.Node) (all [][]float64) {
						g := gorgonia.NewGraph()
						x := imagesOf(g, dtype, "x", normals(planes*size, 1), shape...)
						y := gorgonia.Must(gorgonia.Reshape(pool(x), tensor.Shape{planes, 1}))
						c := imagesOf(g, dtype, "c", normals(planes, 2), planes, 1)
						loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(y, c))))
						grads, err := gorgonia.Grad(loss, x)
						if err != nil {
							t.Fatal(err)
						}
						m := newMachine(t, g, loss, grads[0])
						defer m.Close()
						if err := m.RunAll(); err != nil {
							t.Fatal(err)
						}
						return [][]float64{slices.Clone(float64sOf(t, loss.Value())), slices.Clone(float64sOf(t, grads[0].Value()))}
					}
					got := run(func(x *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(op.GlobalAvgPool(x)) })
					want := run(func(x *gorgonia.Node) *gorgonia.Node {
						weights := make([]float64, size)
						for i := range weights {
							weights[i] = 1 / float64(size)
						}
						rows := gorgonia.Must(gorgonia.Reshape(x, tensor.Shape{planes, size}))
						return gorgonia.Must(gorgonia.Mul(rows, imagesOf(x.Graph(), dtype, "weights", weights, size, 1)))
					})
					closeTo(t, "loss", got[0], want[0], tol)
					closeTo(t, "gradient", got[1], want[1], tol)
				})
			}
		}
	}
}

func TestGlobalAvgPoolByFiniteDifferences(t *testing.T) {
	for machine, newMachine := range machines {
		t.Run(machine, func(t *testing.T) {
			g := gorgonia.NewGraph()
			xs := normals(2*3*3*5, 1)
			x := imagesOf(g, tensor.Float64, "x", xs, 2, 3, 3, 5)
			c := imagesOf(g, tensor.Float64, "c", normals(6, 2), 2, 3)
			loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(gorgonia.Must(op.GlobalAvgPool(x)), c))))
			grads, err := gorgonia.Grad(loss, x)
			if err != nil {
				t.Fatal(err)
			}
			m := newMachine(t, g, loss, grads[0])
			defer m.Close()
			evaluate := func() float64 {
				m.Reset()
				if err := m.RunAll(); err != nil {
					t.Fatal(err)
				}
				return float64sOf(t, loss.Value())[0]
			}
			evaluate()
			grad := slices.Clone(float64sOf(t, grads[0].Value()))
			closeTo(t, "gradient", grad, differences(xs, evaluate), 1e-8)
		})
	}
}

func TestGlobalAvgPoolSameBitsOnAnyNumberOfCores(t *testing.T) {
	run := func(procs int) [][]float64 {
		x := imagesOf(gorgonia.NewGraph(), tensor.Float32, "x", normals(16*9*30*31, 1), 16, 9, 30, 31)
		return runOn(t, procs, incomingTo(t, gorgonia.Must(op.GlobalAvgPool(x)), x))
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

func TestGlobalAvgPoolRefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	rows := imagesOf(g, tensor.Float64, "rows", normals(6, 1), 2, 3)
	if _, err := op.GlobalAvgPool(rows); err == nil {
		t.Error("a matrix was taken for images")
	}
	empty := gorgonia.NewTensor(g, tensor.Float64, 4, gorgonia.WithShape(2, 3, 0, 4), gorgonia.WithName("empty"))
	_, err := op.GlobalAvgPool(empty)
	if want := "global_avg_pool takes images [n,c,h,w] of one pixel or more, not shape [2 3 0 4]"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
