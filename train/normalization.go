package train

import (
	"fmt"
	"math"

	"cne/model/op"
)

// A Normalization gives the constant of a loss at a place on the spectrum from t-SNE
// (s = 0) to UMAP (s = 1); s may be any real number (Section 5 of the paper).
//
// For Neg-t-SNE the place is a normalisation constant
//
//	Z̄ = Z_tsne^(1−s) · Z_umap^s  with  Z_tsne = 100·n and Z_umap = n²/5,
//
// for InfoNC-t-SNE the divisor ρ = 4^s of the repulsive term. (For n < 500, where
// 100·n exceeds n²/5, Neg-t-SNE's slider runs the other way round: for data as small
// as that, give Z̄.)
type Normalization struct {
	// N is the number of points.
	N int
}

// ZBar returns Neg-t-SNE's normalisation constant at s.
func (p Normalization) ZBar(s float64) float64 {
	n := float64(p.N)
	return math.Exp((1-s)*math.Log(100*n) + s*math.Log(n*n/5))
}

// Z returns NC-t-SNE's estimate of the partition function of N points,
// exp(log Z)·N(N−1). It may be infinite.
func (p Normalization) Z(logZ float64) float64 {
	n := float64(p.N)
	return math.Exp(logZ) * n * (n - 1)
}

// LogConst returns the logarithm of the loss's constant, as op.Contrastive takes it:
// of c = Z̄·m/|X| for Neg-t-SNE, where |X| = n² and m is the number of negatives of each
// head, of ρ for InfoNC-t-SNE, and 0 for the others.
func (p Normalization) LogConst(loss op.Loss, at Place, m int) float64 {
	switch constant := loss.Info().Constant; {
	case constant == op.FixedZ && at.kind == byZBar:
		return math.Log(at.value) + math.Log(float64(m)) - 2*math.Log(float64(p.N))
	case constant == op.FixedZ && at.kind == byS:
		return p.LogConst(loss, AtZBar(p.ZBar(at.value)), m)
	case constant == op.Divisor && at.kind == byS:
		return at.value * math.Log(4)
	}
	return 0
}

// A Place is a loss's place on the spectrum. The zero value leaves it open: c = 1 for
// Neg-t-SNE, which is the paper's Z̄ = |X|/m, and ρ = 1 for InfoNC-t-SNE.
type Place struct {
	kind  placeKind
	value float64
}

type placeKind int

const (
	open placeKind = iota
	byS
	byZBar
)

// AtS is the place s on the slider, for Neg-t-SNE and InfoNC-t-SNE.
func AtS(s float64) Place { return Place{byS, s} }

// AtZBar is the place with a given normalisation constant, positive, for
// Neg-t-SNE.
func AtZBar(z float64) Place { return Place{byZBar, z} }

func (p Place) String() string {
	switch p.kind {
	case byS:
		return fmt.Sprintf("s = %g", p.value)
	case byZBar:
		return fmt.Sprintf("Z̄ = %g", p.value)
	}
	return "the default"
}

// suits tells whether a loss can be at the place.
func (p Place) suits(loss op.Loss) bool {
	constant := loss.Info().Constant
	return p.kind == open || constant == op.FixedZ || constant == op.Divisor && p.kind == byS
}

// Exaggerated is the place during early exaggeration: at least s = 1. A place
// not given by s stays as it is.
func (p Place) Exaggerated() Place {
	if p.kind != byS {
		return p
	}
	return AtS(max(p.value, 1))
}
