package op

import (
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
)

// Deviation returns the mean Euclidean distance of the rows of x [r, d] from those of targets
// [r, d], a scalar. It is differentiated with respect to x only. The derivative of a distance of
// 0 is 0.
func Deviation(x, targets *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&deviation{newBase("deviation", matrix, matrix, real)}, x, targets)
}

type deviation struct{ base }

func (o *deviation) ResultShape(dst []int, in []*Array) ([]int, error) {
	if x, t := in[0], in[1]; x.dims != 2 || !slices.Equal(x.Shape(), t.Shape()) {
		return nil, kind.Errorf(ErrInput, "op: %s: got shapes %v and %v, want two matrices of one shape", o.name, x.Shape(), t.Shape())
	}
	return dst, nil
}

func (o *deviation) Run(dst *Array, in []*Array) error {
	if d := in[0].shape[1]; dst.dtype == tensor.Float64 {
		dst.f64[0] = deviationOf(in[0].f64, in[1].f64, d)
	} else {
		dst.f32[0] = deviationOf(in[0].f32, in[1].f32, d)
	}
	return nil
}

func deviationOf[T Float](x, targets []T, d int) T {
	sum := 0.0
	for i := 0; i < len(x); i += d {
		sum += distance(x[i:i+d], targets[i:i+d])
	}
	return T(sum * float64(d) / float64(max(1, len(x))))
}

func distance[T Float](x, y []T) float64 {
	sum := 0.0
	for j, v := range x {
		diff := float64(v) - float64(y[j])
		sum += float64(diff * diff)
	}
	return math.Sqrt(sum)
}

func (o *deviation) DiffWRT(int) []bool { return []bool{true, false} }

func (o *deviation) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := apply(&deviationGrad{newRowwise(deviationGradOf[float32], deviationGradOf[float64], "deviation_grad",
		matrix, matrix, real, matrix)}, in[0], in[1], grad)
	return gorgonia.Nodes{dx, nil}, err
}

// deviationGrad is the gradient of a deviation with respect to x, from x, targets and its
// gradient.
type deviationGrad struct{ rowwise }

func deviationGradOf[T Float](to *Array, in []*Array, lo, hi int) {
	dst, x, targets, d := rowsIn[T](to, lo, hi), rowsIn[T](in[0], lo, hi), rowsIn[T](in[1], lo, hi), to.Cols()
	each := float64(Data[T](in[2])[0]) * float64(d) / float64(max(1, to.Len()))
	for i := 0; i < len(x); i += d {
		scale := 0.0
		if far := distance(x[i:i+d], targets[i:i+d]); far > 0 {
			scale = each / far
		}
		for j := i; j < i+d; j++ {
			dst[j] = T((float64(x[j]) - float64(targets[j])) * scale)
		}
	}
}
