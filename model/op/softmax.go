package op

import "cne/internal/simd"

// softmax replaces the rows of x by their softmax.
func softmax[T Float](x *Array, _ []*Array, lo, hi int) {
	simd.SoftmaxRows(rowsIn[T](x, lo, hi), x.Cols())
}

// softmaxGrad is the gradient of another operation's final softmax. It takes the output y [n, d]
// and the incoming gradient g: y·(g − Σ y·g), with the sum over a row.
type softmaxGrad struct{ rowwise }

func newSoftmaxGrad() *softmaxGrad {
	return &softmaxGrad{newRowwise(softmaxGradRows[float32], softmaxGradRows[float64], "softmax_grad", matrix, matrix, matrix)}
}

func softmaxGradRows[T Float](dst *Array, in []*Array, lo, hi int) {
	for i := lo; i < hi; i++ {
		simd.SoftmaxGrad(rowsIn[T](dst, i, i+1), rowsIn[T](in[0], i, i+1), rowsIn[T](in[1], i, i+1))
	}
}
