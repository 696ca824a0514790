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
	"cne/model/vm"
)

// scaled returns x/√τ and the gradients of Σ w·x/√τ with respect to x and
// log τ.
func scaled[T op.Float](t *testing.T, x, w []T, logTemperature T) (y, dx []T, dLog T) {
	t.Helper()
	g := gorgonia.NewGraph()
	nx := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(len(x)/3, 3), gorgonia.WithName("x"))
	nw := gorgonia.NewMatrix(g, op.Dtype[T](), gorgonia.WithShape(len(x)/3, 3), gorgonia.WithName("w"))
	nt := gorgonia.NewVector(g, op.Dtype[T](), gorgonia.WithShape(1), gorgonia.WithName("t"))
	ny := gorgonia.Must(op.ScaleByTemperature(nx, nt))
	grads := weighted(t, ny, nw, nx, nt)
	p, err := vm.Compile(nil, append(gorgonia.Nodes{ny}, grads...)...)
	must(t, err)
	for _, s := range []error{
		op.Share(p.Input(nx), x, len(x)/3, 3), op.Share(p.Input(nw), w, len(w)/3, 3), op.Share(p.Input(nt), []T{logTemperature}, 1), p.Run(),
	} {
		must(t, s)
	}
	return slices.Clone(op.Data[T](p.Output(ny))), slices.Clone(op.Data[T](p.Output(grads[0]))), op.Data[T](p.Output(grads[1]))[0]
}

// The value and both gradients against their formulas and finite differences.
func TestScaleByTemperature(t *testing.T) {
	x, w := normals(12, 1), normals(12, 2)
	for _, temperature := range []float64{0.02, 0.5, 1, 7} {
		t.Run(fmt.Sprintf("τ=%g", temperature), func(t *testing.T) {
			at := []float64{math.Log(temperature)}
			y, dx, dLog := scaled(t, x, w, at[0])
			for i, v := range x {
				if want := v / math.Sqrt(temperature); math.Abs(y[i]-want) > 1e-12*(1+math.Abs(want)) {
					t.Errorf("y[%d] = %g, want %g", i, y[i], want)
				}
			}
			sum := func() (sum float64) {
				y, _, _ := scaled(t, x, w, at[0])
				for i, v := range y {
					sum += w[i] * v
				}
				return sum
			}
			closeTo(t, "gradient of x", dx, differences(x, sum), 1e-7)
			closeTo(t, "gradient of log τ", []float64{dLog}, differences(at, sum), 1e-7)
		})
	}
	y, _, _ := scaled(t, []float32{1, 2, 3}, []float32{1, 1, 1}, float32(math.Log(4)))
	if !slices.Equal(y, []float32{0.5, 1, 1.5}) {
		t.Errorf("in float32: %v", y)
	}
}

// Beyond its bounds a temperature stays there, and goes back if it is pushed.
func TestTemperBounds(t *testing.T) {
	x := []float64{1, 2, 2}
	for _, tc := range []struct {
		temperature, bound float64
		inward             float64 // the sign of w where a step leads back
	}{
		{1e-5, op.MinTemperature, 1}, {1e5, op.MaxTemperature, -1},
	} {
		// The slope is −½ Σ w·y: a step against it raises log τ if w is positive.
		for _, sign := range []float64{1, -1} {
			y, _, dLog := scaled(t, x, []float64{sign, sign, sign}, math.Log(tc.temperature))
			if want := 1 / math.Sqrt(tc.bound); math.Abs(y[0]-want) > 1e-12*want {
				t.Errorf("τ=%g: y %v, want %g first", tc.temperature, y, want)
			}
			if moves := dLog != 0; moves != (sign == tc.inward) {
				t.Errorf("τ=%g: slope %g for weights of sign %g", tc.temperature, dLog, sign)
			}
		}
	}
}

func TestTemperRefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(4, 3), gorgonia.WithName("x"))
	two := gorgonia.NewVector(g, tensor.Float64, gorgonia.WithShape(2), gorgonia.WithName("two"))
	if _, err := op.ScaleByTemperature(x, two); err == nil || !strings.Contains(err.Error(), "a vector of one number") {
		t.Errorf("error %v", err)
	}
}
