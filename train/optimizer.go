package train

import (
	"cmp"
	"fmt"
	"math"

	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// An Optimizer moves parameters against their gradients. *SGD and *Adam are optimisers, the
// only ones that also work on a device.
type Optimizer interface {
	// Init makes a new state for parameters. The arrays of it that have the shape of
	// a parameter are on the parameter's device. It returns an error if the optimiser's
	// options have no meaning.
	Init(params []model.Parameter) error
	// Step takes a step of size lr against the gradients of the model's last step,
	// whose elements are first clipped to ±clip (0: no bound). rows are the batch's
	// Rows, to which the rows of a sparse gradient belong. Where they are 8192 or
	// fewer, a point may come more than once: its gradient is then in the first of
	// its rows, and the others are 0.
	Step(rows []int32, lr, clip float64)
	// State returns what the optimiser remembers from one step to the next. The
	// arrays are the optimiser's own: writing to them changes its state, which is how
	// a checkpoint is restored.
	State() []NamedArray
}

// A NamedArray is an array of a run's state under a name that no other array of it
// has.
type NamedArray struct {
	Name  string
	Value *op.Array
}

const (
	// rowsPerPiece and elementsPerPiece are the numbers of rows, and of elements of
	// a dense parameter, for which it pays to use another core.
	rowsPerPiece     = 8192
	elementsPerPiece = 1 << 13
)

// A target is a parameter as an optimiser sees it.
type target struct {
	model.Parameter
	// dense is the gradient of the whole parameter if Grad is sparse but the optimiser
	// moves all rows; it is zero between two steps.
	dense *op.Array
	// memory are the arrays of the optimiser's state for it, of the same shape.
	memory []*op.Array
}

// newTargets returns targets for parameters, with an array of state under each name;
// whole says that rows without a gradient move, too.
func newTargets(params []model.Parameter, whole bool, names ...string) ([]target, []NamedArray, error) {
	var targets []target
	var state []NamedArray
	for _, p := range params {
		t := target{Parameter: p}
		for _, name := range names {
			a, err := zerosLike(p.Value)
			if err != nil {
				return nil, nil, err
			}
			t.memory = append(t.memory, a)
			state = append(state, NamedArray{name + "." + p.Name, a})
		}
		if p.Sparse && whole {
			var err error
			if t.dense, err = zerosLike(p.Value); err != nil {
				return nil, nil, err
			}
		}
		targets = append(targets, t)
	}
	return targets, state, nil
}

// zerosLike returns an array of zeros of the type, shape and device of another.
func zerosLike(a *op.Array) (*op.Array, error) {
	zeros, err := op.NewArray(a.Device(), a.Dtype(), a.Shape()...)
	if err == nil {
		err = zeros.Zero()
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return zeros, nil
}

// checkRows panics if the rows are not those of a sparse gradient: the kernels write
// to them unchecked.
func (t *target) checkRows(rows []int32) {
	if n := t.Value.Rows(); t.Sparse && (len(rows) != t.Grad.Rows() || len(rows) > 0 && simd.MaxUint32(rows) >= uint32(n)) {
		panic(fmt.Sprintf("train: %d rows of %s, which has %d, for a gradient of %d", len(rows), t.Name, n, t.Grad.Rows()))
	}
}

// gradient returns the gradient of the whole parameter.
func (t *target) gradient(rows []int32) *op.Array {
	if t.dense == nil {
		return t.Grad
	}
	d := t.Grad.Cols()
	if g := op.Data[float64](t.dense); g != nil {
		simd.ScatterRows(g, op.Data[float64](t.Grad), d, rows)
	} else {
		simd.ScatterRows(op.Data[float32](t.dense), op.Data[float32](t.Grad), d, rows)
	}
	return t.dense
}

// forget makes the dense gradient zero again.
func (t *target) forget(rows []int32) {
	if t.dense == nil {
		return
	}
	d := t.Grad.Cols()
	for _, r := range rows {
		at := int(r) * d
		if g := op.Data[float64](t.dense); g != nil {
			clear(g[at : at+d])
		} else {
			clear(op.Data[float32](t.dense)[at : at+d])
		}
	}
}

// bound returns the clip as the kernels take it.
func bound(clip float64) float64 { return cmp.Or(clip, math.Inf(1)) }
