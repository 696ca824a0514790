package train

import (
	"math"

	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// rowsPerPiece is how many rows make it worth to wake another core.
const rowsPerPiece = 8192

// sgd is stochastic gradient descent without momentum: w ← w − lr·g, with the
// gradient g clipped element-wise. Of a sparse parameter only the rows of the
// batch are touched. Pieces of rows do not meet, since rows are distinct.
type sgd struct {
	clip float64 // ±clip; 0: no bound

	param *model.Parameter
	rows  []int32
	lr    float64
	loop  parallel.Loop
}

func newSGD(clip float64) *sgd {
	if clip == 0 {
		clip = math.Inf(1)
	}
	o := &sgd{clip: clip}
	o.loop.Body = o.piece
	return o
}

// step moves the parameters against the gradients that the model's last step
// left. rows are the batch's distinct points.
func (o *sgd) step(params []model.Parameter, rows []int32, lr float64) {
	o.lr, o.rows = lr, rows
	for i := range params {
		o.param = &params[i]
		o.loop.Run(o.param.Grad.Rows(), rowsPerPiece)
	}
}

func (o *sgd) piece(_, lo, hi int) {
	if op.Data[float64](o.param.Value) != nil {
		descend[float64](o, lo, hi)
	} else {
		descend[float32](o, lo, hi)
	}
}

// descend moves the rows of the parameter that belong to the gradient's rows
// [lo, hi).
func descend[T op.Float](o *sgd, lo, hi int) {
	value, grad, d := op.Data[T](o.param.Value), op.Data[T](o.param.Grad), o.param.Grad.Cols()
	lr, clip := T(o.lr), T(o.clip)
	if o.param.Sparse {
		simd.DescendRows(value, grad[lo*d:hi*d], d, o.rows[lo:hi], lr, clip)
	} else {
		simd.Descend(value[lo*d:hi*d], grad[lo*d:hi*d], lr, clip)
	}
}
