package op

import (
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
)

// minNorm is the least norm that Normalize divides by, as in PyTorch's normalize.
const minNorm = 1e-12

// Normalize returns the rows of x [n, d] scaled to unit length. A row whose
// norm is below 1e-12 is divided by 1e-12.
func Normalize(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&normalize{base{name: "normalize", arity: 1, typ: hm.NewFnType(matrix, matrix)}}, x)
}

type normalize struct{ base }

func (o *normalize) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 {
		return nil, kind.Errorf(ErrInput, "op: normalize: got shape %v, want a matrix", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *normalize) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		normalizeRows(dst.f64, in[0].f64, dst.shape[1])
	} else {
		normalizeRows(dst.f32, in[0].f32, dst.shape[1])
	}
	return nil
}

// Launch implements Launcher.
func (o *normalize) Launch(d *Device, dst *Array, in []*Array) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("normalize_rows", rows<<lanes, dst.Arg(), in[0].Arg(), device.F32(minNorm),
		device.Int(rows), device.Int(cols), device.Int(lanes))
}

func (o *normalize) DiffWRT(int) []bool { return []bool{true} }

func (o *normalize) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(&normalizeGrad{base{name: "normalize_grad", arity: 3, typ: hm.NewFnType(matrix, matrix, matrix, matrix)}},
		in[0], out, grad)
	return gorgonia.Nodes{n}, err
}

// normalizeGrad is (g − y·(y·g))/‖x‖, row by row. Its inputs are x, the normalised y and
// the incoming gradient g.
type normalizeGrad struct{ base }

func (o *normalizeGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *normalizeGrad) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		normalizeGradRows(dst.f64, in[0].f64, in[1].f64, in[2].f64, dst.shape[1])
	} else {
		normalizeGradRows(dst.f32, in[0].f32, in[1].f32, in[2].f32, dst.shape[1])
	}
	return nil
}

// Launch implements Launcher.
func (o *normalizeGrad) Launch(d *Device, dst *Array, in []*Array) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("normalize_grad", rows<<lanes, dst.Arg(), in[0].Arg(), in[1].Arg(), in[2].Arg(), device.F32(minNorm),
		device.Int(rows), device.Int(cols), device.Int(lanes))
}

func norm[T Float](x []T) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum)
}

func normalizeRows[T Float](dst, x []T, d int) {
	for i := 0; i < len(x); i += d {
		f := T(1 / max(norm(x[i:i+d]), minNorm))
		for j, v := range x[i : i+d] {
			dst[i+j] = f * v
		}
	}
}

func normalizeGradRows[T Float](dst, x, y, g []T, d int) {
	for i := 0; i < len(x); i += d {
		length := norm(x[i : i+d])
		var along T
		if length >= minNorm { // below it the divisor is constant
			for j, v := range y[i : i+d] {
				along += T(v * g[i+j])
			}
		}
		f := T(1 / max(length, minNorm))
		for j, v := range y[i : i+d] {
			dst[i+j] = f * (g[i+j] - T(along*v))
		}
	}
}
