package quality

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/simd"
	"cne/model/op"
)

// A Discriminator is the classifier of a loss that is a sum over pairs: it distinguishes
// the graph's edges from random pairs.
type Discriminator struct {
	Loss op.Loss
	// C is the constant of a loss that has one: Z̄·m/|X| of Neg-t-SNE for m negatives and
	// |X| = n², or z·m of NC-t-SNE for the normalisation constant z of one pair.
	// z = PartitionFunction/(n(n−1)) gives the similarities of all ordered pairs a mean of 1.
	C float64
}

// similarity is the discriminator whose positive loss is −log q.
var similarity = Discriminator{Loss: op.UMAP, C: 1}

// odds returns op.LossInfo.Odds for the constant.
func (p Discriminator) odds() (slope, offset float64, ok bool) {
	odds := p.Loss.Info().Odds
	if odds == nil {
		return 0, 0, false
	}
	slope, offset = odds(p.C)
	return slope, offset, true
}

// single reports whether the loss can be computed in single precision; the constants of a
// diverged run may be too large.
func (p Discriminator) single() bool {
	slope, _, ok := p.odds()
	return ok && slope >= 1e-20 && slope <= 1e20
}

// terms returns the losses of a positive and of a negative pair at a squared distance.
func (p Discriminator) terms() (positive, negative func(d2 float64) float64) {
	if slope, offset, ok := p.odds(); ok {
		return func(d2 float64) float64 { return elementary.Log1p(float64(slope*d2) + offset) },
			func(d2 float64) float64 { return elementary.Log1p(1 / (float64(slope*d2) + offset)) }
	}
	of := func(loss func(q, rest, c float64) op.PairLoss) func(float64) float64 {
		return func(d2 float64) float64 { return loss(1/(1+d2), d2/(1+d2), p.C).Loss }
	}
	info := p.Loss.Info()
	return of(info.Positive), of(info.Negative)
}

// ExpectedLosses returns, for each discriminator, the loss per edge that
// training with m negatives expects when these are drawn uniformly from all
// other points,
//
//	(1/E) Σ_(ij edge) −log p(ij)  +  m/(n(n−1)) Σ_(i≠j) −log(1−p(ij)),
//
// where p is the probability that the discriminator gives a pair to be an edge. Both sums
// are complete: the first over the E directed edges, the second over all ordered pairs.
// (The losses of training differ: they draw negatives from the batch, where points occur
// as often as they have edges.) As in training, arguments of logarithms below clamp,
// 0 ≤ clamp < 1, count as clamp. At 0 the finite bound of training's arithmetic remains.
//
// Edges and embedding are as for KL. On the CPU the sum over edges is computed in double
// precision, the sum over pairs in PartitionFunction's. If a constant exceeds the range
// of float32, everything is computed on the CPU in double precision. Errors are as for
// KL, or the device's.
func ExpectedLosses[T Float](ctx context.Context, heads, tails []int32, embedding []T, d, m int, clamp float64,
	discriminators []Discriminator, on *Device) ([]float64, error) {
	n, err := points(embedding, d, "embedding")
	if err != nil {
		return nil, err
	}
	if err := checkEdges(heads, tails, n, "loss on"); err != nil {
		return nil, err
	}
	if err := checkLoss(n, m, clamp, discriminators); err != nil {
		return nil, err
	}
	sums, err := lossesOfPairs(ctx, embedding, n, d, clamp, discriminators, on)
	if err != nil {
		return nil, err
	}
	limit := logLimit(clamp)
	losses := make([]float64, len(discriminators))
	for k, p := range discriminators {
		attraction, err := attractionOf(ctx, on, heads, tails, embedding, d, p, limit)
		if err != nil {
			return nil, err
		}
		pairs := float64(n) * float64(n-1) / 2
		losses[k] = attraction/float64(len(heads)) + float64(m)*sums[k]/pairs
	}
	return losses, nil
}

// checkLoss checks the arguments of the losses.
func checkLoss(n, m int, clamp float64, discriminators []Discriminator) error {
	switch {
	case n < 2:
		return fmt.Errorf("%w: loss: got %d points, want 2 or more", ErrUndefined, n)
	case m < 1:
		return fmt.Errorf("%w: negatives per edge: got %d, want 1 or more", ErrInput, m)
	case !(clamp >= 0 && clamp < 1):
		return fmt.Errorf("%w: clamp: got %v, want a number in [0, 1)", ErrInput, clamp)
	}
	for _, p := range discriminators {
		switch info := p.Loss.Info(); {
		case info.Positive == nil:
			return fmt.Errorf("%w: loss: got %v, want a sum over pairs", ErrInput, p.Loss)
		case info.Constant != op.NoConstant && (!(p.C > 0) || math.IsInf(p.C, 0)):
			return fmt.Errorf("%w: normalisation constant: got %v, want a positive number", ErrInput, p.C)
		}
	}
	return nil
}

// logLimit returns the largest −log of a probability that is clamped.
func logLimit(clamp float64) float64 { return -elementary.Log(simd.BoundOf[float64](clamp).Clamp()) }

// lossesOfPairs adds up −log(1−p) over the unordered pairs for each
// discriminator.
func lossesOfPairs[T Float](ctx context.Context, e []T, n, d int, clamp float64, discriminators []Discriminator,
	on *Device) ([]float64, error) {
	if f, ok := any(e).([]float32); ok && !on.OnHost() && allSingle(discriminators) && len(discriminators) > 0 {
		return devicePairs(ctx, on, f, n, d, discriminators, simd.BoundOf[float32](clamp))
	}
	return overTiles(ctx, n, len(discriminators), repulsionTerms(e, n, d, clamp, discriminators))
}

func allSingle(discriminators []Discriminator) bool {
	return !slices.ContainsFunc(discriminators, func(p Discriminator) bool { return !p.single() })
}

// repulsionTerms are the losses −log(1−p) of negative pairs, for each discriminator.
func repulsionTerms[T Float](e []T, n, d int, clamp float64, discriminators []Discriminator) pairTerms {
	if f, ok := any(e).([]float32); ok && allSingle(discriminators) {
		bound, linear := simd.BoundOf[float32](clamp), make([][2]float32, len(discriminators))
		for k, p := range discriminators {
			slope, offset, _ := p.odds()
			linear[k] = [2]float32{float32(slope), float32(offset)}
		}
		return blockTerms(f, n, d, func(d2 []float32, sums []float64) {
			for k, p := range linear {
				sums[k] += simd.InverseLogSum(d2, p[0], p[1], bound)
			}
		})
	}
	limit, negatives := logLimit(clamp), make([]func(float64) float64, len(discriminators))
	for k, p := range discriminators {
		_, negatives[k] = p.terms()
	}
	return exactTerms(e, d, func(d2 float64, sums []float64) {
		for k, loss := range negatives {
			sums[k] += min(limit, loss(d2))
		}
	})
}
