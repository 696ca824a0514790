package train

import (
	"math"

	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// SGD is stochastic gradient descent without momentum: w ← w − lr·g, with the
// gradient g clipped element-wise. Of a sparse parameter only the rows of the
// batch are touched. The zero value does not clip.
type SGD struct {
	// Clip bounds the elements of a gradient, ±Clip; 0 means no bound.
	Clip float64
}

// rowsPerPiece is how many rows make it worth to wake another core.
const rowsPerPiece = 8192

// Step moves the parameters against the gradients that the model's last step
// left. rows are the batch's distinct points.
func (o SGD) Step(params []model.Parameter, rows []int32, lr float64) {
	for i := range params {
		p := &params[i]
		if op.Data[float64](p.Value) != nil {
			descend[float64](p, rows, lr, o.Clip)
		} else {
			descend[float32](p, rows, lr, o.Clip)
		}
	}
}

func descend[T op.Float](p *model.Parameter, rows []int32, lr, bound float64) {
	value, grad := op.Data[T](p.Value), op.Data[T](p.Grad)
	clip := T(bound)
	if bound == 0 {
		clip = T(math.Inf(1))
	}
	if !p.Sparse {
		simd.Descend(value, grad, T(lr), clip)
		return
	}
	d := p.Value.Cols()
	if len(rows) <= rowsPerPiece {
		simd.DescendRows(value, grad, d, rows, T(lr), clip)
		return
	}
	// Rows are distinct, so that pieces do not meet.
	parallel.For(len(rows), rowsPerPiece, func(_, lo, hi int) {
		simd.DescendRows(value, grad[lo*d:hi*d], d, rows[lo:hi], T(lr), clip)
	})
}
