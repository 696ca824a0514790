package model

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/model/op"
)

// A Frozen model computes the forces on new points in an embedding whose other points
// no longer move. Its graph is
//
//	heads, tails, negatives → (Normalize) → Contrastive
//
// where only the heads are new points.
type Frozen struct {
	d, edges, negatives int
	shared              bool

	batch             batchProgram[float32]
	positions         *op.Array
	indexOf, layoutOf []int32
}

// NewFrozen returns a model for positions in d dimensions.
func NewFrozen(d int, options op.ContrastiveOptions) (*Frozen, error) {
	if d < 1 {
		return nil, kind.Errorf(ErrInput, "model: dimensions: got %d, want 1 or more", d)
	}
	f := &Frozen{d: d, batch: batchProgram[float32]{byEnds: true}}
	g := gorgonia.NewGraph()
	all := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, d), gorgonia.WithName("positions"))
	if err := f.batch.compile(nil, g, nil, all, nil, gorgonia.Nodes{all}, options); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	f.positions = f.batch.program.Input(all)
	return f, nil
}

// Step takes the positions of q heads, of their q tails and of m negatives for
// each head, [q(2+m), d], negative j of head i in row 2q + j·q + i, or of m
// negatives that all heads share, [2q+m, d]; and the logarithm of the loss's
// constant. It returns the loss and its gradient with respect to the heads,
// [q, d], which the next Step overwrites.
func (f *Frozen) Step(positions []float32, q, m int, shared bool, theta float64) (float64, []float32, error) {
	rows := q * (2 + m)
	if shared {
		rows = 2*q + m
	}
	if q < 1 || m < 1 || len(positions) != rows*f.d {
		return 0, nil, kind.Errorf(ErrInput, "model: positions: got %d values of %d heads, their tails and %d negatives, want %d", len(positions), q, m, rows*f.d)
	}
	if f.edges != q || f.negatives != m || f.shared != shared {
		f.edges, f.negatives, f.shared = q, m, shared
		f.indexOf, f.layoutOf = f.indexOf[:0], append(f.layoutOf[:0], op.ListedNegatives)
		if shared {
			f.layoutOf[0] = int32(m)
			for head := 0; head < q; head += op.GroupHeads {
				// The negatives come after the ends of the others' edges.
				own := min(op.GroupHeads, q-head)
				f.layoutOf = append(f.layoutOf, int32(2*(q-own)))
			}
		} else {
			for i := range q * m {
				f.indexOf = append(f.indexOf, int32(2*q+i))
			}
		}
	}
	b := &f.batch
	b.thetaValue[0] = float32(theta)
	err := errors.Join(
		op.Share(f.positions, positions, rows, f.d),
		op.Share(b.negatives, f.indexOf, len(f.indexOf)/q, q),
		op.Share(b.layout, f.layoutOf, len(f.layoutOf)),
	)
	if err == nil {
		err = b.program.Run()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("model: %w", err)
	}
	return float64(op.Data[float32](b.loss)[0]), op.Data[float32](b.grads[0])[:q*f.d], nil
}
