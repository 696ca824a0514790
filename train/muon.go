package train

import (
	"math"
	"slices"

	"cne/internal/blas"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// Muon is the optimiser of Jordan et al. (2024). It is for networks that normalise what their
// layers compute, so that the size of weights does not matter. A parameter of two or more
// dimensions, [r, c, …], is a matrix W of r rows. With G its clipped gradient and k the smaller
// of its sides:
//
//	B ← Momentum·B + G
//	W ← √k·W/‖W‖ − lr·orth(G + Momentum·B)
//
// orth(X) is a matrix with the singular vectors of X and singular values near 1, so its norm is
// about √k, and lr is the length of a step relative to W. Thus all directions of the gradient
// are followed, not only the strongest. Other parameters and those with sparse gradients move as
// with SGD at 10·lr, since their steps are not relative.
type Muon struct {
	// Momentum is in [0, 1]. WeightDecay, at least 0, is only for parameters that are not
	// matrices.
	Momentum, WeightDecay float64

	others   SGD
	matrices stepper
	clip     float64
	ahead    any // a []T: G + Momentum·B of a matrix
	work     any // a []T for orthogonalise
}

// Init implements Optimizer.
func (o *Muon) Init(params []model.Parameter) error {
	var matrices, others []model.Parameter
	for _, p := range params {
		if !p.Sparse && len(p.Value.Shape()) > 1 {
			matrices = append(matrices, p)
		} else {
			others = append(others, p)
		}
	}
	o.others = SGD{Momentum: o.Momentum, WeightDecay: o.WeightDecay}
	if err := o.others.Init(others); err != nil {
		return err
	}
	return o.matrices.restart(matrices, false, o.piece, "muon.momentum")
}

// Step implements Optimizer.
func (o *Muon) Step(rows []int32, lr, clip float64) {
	o.others.Step(rows, 10*lr, clip)
	o.clip = bound(clip)
	for i := range o.matrices.targets {
		t := &o.matrices.targets[i]
		o.matrices.t = t
		if op.Data[float64](t.Value) != nil {
			turn[float64](o, t, lr)
		} else {
			turn[float32](o, t, lr)
		}
	}
}

// State implements Optimizer.
func (o *Muon) State() []NamedArray { return slices.Concat(o.others.State(), o.matrices.State()) }

// piece updates the elements [lo, hi) of a matrix's B and of what is ahead.
func (o *Muon) piece(_, lo, hi int) {
	if op.Data[float64](o.matrices.t.Value) != nil {
		accumulate[float64](o, lo, hi)
	} else {
		accumulate[float32](o, lo, hi)
	}
}

func accumulate[T op.Float](o *Muon, lo, hi int) {
	t := o.matrices.t
	grad, b, ahead := op.Data[T](t.Grad)[lo:hi], op.Data[T](t.memory[0])[lo:hi], o.ahead.([]T)[lo:hi]
	clip, keep := T(o.clip), T(o.Momentum)
	for i, g := range grad {
		g = max(-clip, min(g, clip)) // NaN stays NaN
		b[i] = T(keep*b[i]) + g      // not fused: the same bits on all processors
		ahead[i] = T(keep*b[i]) + g
	}
}

// grown returns a slice of n elements, the old one if it is long enough.
func grown[T op.Float](old any, n int) []T {
	s, _ := old.([]T)
	return slices.Grow(s[:0], n)[:n]
}

// turn moves a matrix.
func turn[T op.Float](o *Muon, t *target, lr float64) {
	w := op.Data[T](t.Value)
	r, c := t.Value.Rows(), t.Value.Cols()
	k := min(r, c)
	b, work := grown[T](o.ahead, r*c), grown[T](o.work, 4*k*k)
	o.ahead, o.work = b, work
	o.matrices.loop.Run(r*c, elementsPerPiece)
	gram, q := work[:k*k], work[k*k:2*k*k]
	wide := r <= c
	blas.Gemm(!wide, wide, k, k, max(r, c), 1, b, c, b, c, 0, gram, k)
	var trace, squares float64 // ‖b‖² and ‖W‖²
	for i := range k {
		trace += float64(gram[i*k+i])
	}
	if trace < 1e-30 {
		return // there was no gradient
	}
	for _, x := range w {
		squares += float64(float64(x) * float64(x)) // not fused, as above
	}
	keep := 1.
	if squares > 0 {
		keep = math.Sqrt(float64(k) / squares)
	}
	simd.Scale(gram, T(1/trace))
	orthogonalise(k, gram, q, work[2*k*k:3*k*k], work[3*k*k:4*k*k])
	step := T(-lr / math.Sqrt(trace))
	if wide {
		blas.Gemm(false, false, r, c, k, step, q, k, b, c, T(keep), w, c)
	} else {
		blas.Gemm(false, false, r, c, k, step, b, c, q, k, T(keep), w, c)
	}
}

// orthogonalise writes to q a k×k matrix Q for which Q·B has singular values near 1, where gram
// is B·Bᵀ with a trace of 1. It iterates B ← P·B with P = αI + β·BBᵀ + γ·(BBᵀ)², in Jordan's
// coefficients, on the k×k matrices alone: BBᵀ becomes P·BBᵀ·P, and Q is the product of all P.
func orthogonalise[T op.Float](k int, gram, q, p, other []T) {
	const steps = 5
	product := func(alpha T, x, y []T, beta T, to []T) {
		blas.Gemm(false, false, k, k, k, alpha, x, k, y, k, beta, to, k)
	}
	for step := range steps {
		copy(p, gram)
		product(2.0315, gram, gram, -4.7750, p)
		for i := range k {
			p[i*k+i] += 3.4445
		}
		if step == 0 {
			copy(q, p)
		} else {
			product(1, p, q, 0, other)
			copy(q, other)
		}
		if step < steps-1 {
			product(1, p, gram, 0, other)
			product(1, other, p, 0, gram)
		}
	}
}
