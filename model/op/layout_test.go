package op_test

import (
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

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
