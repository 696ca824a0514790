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

// The means over the pixels with their gradient against Gorgonia's own reshaping
// and product.
func TestGlobalAvgPoolMatchesGorgonia(t *testing.T) {
	for dtype, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-13, tensor.Float32: 1e-6} {
		for _, shape := range append(slices.Clone(normShapes), []int{2, 4, 4, 16}, []int{3, 7, 9, 21}) {
			for machine, newMachine := range machines {
				t.Run(fmt.Sprintf("%v/%v/%s", dtype, shape, machine), func(t *testing.T) {
					images, size, channels := shape[0], shape[1]*shape[2], shape[3]
					run := func(pool func(x *gorgonia.Node) *gorgonia.Node) (all [][]float64) {
						g := gorgonia.NewGraph()
						x := imagesOf(g, dtype, "x", normals(images*size*channels, 1), shape...)
						c := imagesOf(g, dtype, "c", normals(images*channels, 2), images, channels)
						loss := contracted(pool(x), c)
						grads := gradients(t, loss, x)
						m := newMachine(t, g, loss, grads[0])
						defer m.Close()
						must(t, m.RunAll())
						return valuesOf(t, loss, grads[0])
					}
					got := run(func(x *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(op.GlobalAvgPool(x)) })
					want := run(func(x *gorgonia.Node) *gorgonia.Node {
						weights := make([]float64, size*channels*channels)
						for i := range size * channels {
							weights[i*channels+i%channels] = 1 / float64(size)
						}
						rows := gorgonia.Must(gorgonia.Reshape(x, tensor.Shape{images, size * channels}))
						return gorgonia.Must(gorgonia.Mul(rows, imagesOf(x.Graph(), dtype, "weights", weights, size*channels, channels)))
					})
					closeTo(t, "loss", got[0], want[0], tol)
					closeTo(t, "gradient", got[1], want[1], tol)
				})
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
	empty := gorgonia.NewTensor(g, tensor.Float64, 4, gorgonia.WithShape(2, 0, 4, 3), gorgonia.WithName("empty"))
	_, err := op.GlobalAvgPool(empty)
	if want := "global_avg_pool: got shape [2 0 4 3], want images [n,h,w,c] of one pixel or more"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// Each pixel's channels come together, and the gradient goes the way back.
func TestChannelsLast(t *testing.T) {
	const n, c, h, w = 2, 3, 4, 5
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for machine, newMachine := range machines {
			x := imagesOf(gorgonia.NewGraph(), dtype, "x", normals(n*c*h*w, 1), n, c, h, w)
			outputs := incomingTo(t, gorgonia.Must(op.ChannelsLast(x)), x)
			m := newMachine(t, x.Graph(), outputs...)
			must(t, m.RunAll())
			first, last := float64sOf(t, x.Value()), float64sOf(t, outputs[0].Value())
			grad, incoming := float64sOf(t, outputs[1].Value()), numbersOf(dtype, normals(n*c*h*w, 9))
			if !slices.Equal(outputs[0].Shape(), tensor.Shape{n, h, w, c}) || !slices.Equal(outputs[1].Shape(), tensor.Shape{n, c, h, w}) {
				t.Errorf("%s: shapes %v and %v", machine, outputs[0].Shape(), outputs[1].Shape())
			}
			for i := range first {
				image, channel, pixel := i/(c*h*w), i/(h*w)%c, i%(h*w)
				j := (image*h*w+pixel)*c + channel
				if last[j] != first[i] || grad[i] != incoming[j] {
					t.Fatalf("%s: element %d is %g, its gradient %g; want %g and %g", machine, i, last[j], grad[i], first[i], incoming[j])
				}
			}
			m.Close()
		}
	}
	rows := imagesOf(gorgonia.NewGraph(), tensor.Float64, "rows", normals(6, 1), 2, 3)
	if _, err := op.ChannelsLast(rows); err == nil || strings.Contains(err.Error(), "panic") {
		t.Errorf("of a matrix: error %v", err)
	}
}

// numbersOf returns numbers as they are rounded to a type.
func numbersOf(dtype tensor.Dtype, x []float64) []float64 {
	if dtype == tensor.Float32 {
		for i, v := range x {
			x[i] = float64(float32(v))
		}
	}
	return x
}
