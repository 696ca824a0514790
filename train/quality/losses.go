package quality

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/internal/simd"
)

// A Discriminator is the classifier behind a loss that tells the edges of the
// graph from pairs drawn at random: it takes a pair at squared distance x for
// an edge with probability 1/(1+w), w = slope·x + offset. Neg, NC and UMAP make
// those of the losses.
type Discriminator struct{ slope, offset float64 }

// Neg is Neg-t-SNE's: q/(q+c) for the Cauchy similarity q = 1/(1+x), with
// c = Z̄·m/|X| for m negatives, |X| = n² and the normalisation constant Z̄
// (Damrich et al., 2023, Sec. 5); c = 1 is the paper's default, Z̄ = |X|/m.
func Neg(c float64) Discriminator { return Discriminator{c, c} }

// NC is NC-t-SNE's with m negatives and the normalisation constant z of one
// pair: (q/z)/(q/z+m) (Damrich et al., 2023, Eq. 6). z = PartitionFunction/(n(n−1))
// gives the similarities of all ordered pairs a mean of 1.
func NC(z float64, m int) Discriminator { return Neg(z * float64(m)) }

// UMAP is UMAP's: q itself, which negative sampling makes of Neg-t-SNE (Damrich et
// al., 2023, Sec. 6).
func UMAP() Discriminator { return Discriminator{1, 0} }

// ExpectedLosses returns, for each discriminator p, the loss per edge that
// training with m negatives expects when these are drawn uniformly from all
// other points,
//
//	(1/E) Σ_(ij edge) −log p(ij)  +  m/(n(n−1)) Σ_(i≠j) −log(1−p(ij)).
//
// Both sums are complete: the first over the E directed edges, the second over
// all ordered pairs. (Training draws negatives from the batch, whose points
// occur as often as they have edges; its losses differ by that.) Arguments of
// logarithms below clamp, from [0, 1), count as clamp, as in training; a clamp of
// 0 still leaves the finite bound of training's arithmetic.
//
// Edges and embedding are as for KL. On the CPU the sum over edges is computed in double
// precision; that over pairs has PartitionFunction's. Constants beyond the range
// of float32 stay on the CPU, and in double precision. Errors are KL's, or the
// device's.
func ExpectedLosses[T Float](ctx context.Context, heads, tails []int32, embedding []T, d, m int, clamp float64, discriminators []Discriminator, on *Device) ([]float64, error) {
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

// checkLoss checks what losses have.
func checkLoss(n, m int, clamp float64, discriminators []Discriminator) error {
	switch {
	case n < 2:
		return fmt.Errorf("%w: the loss of %d points has no negatives", ErrUndefined, n)
	case m < 1:
		return fmt.Errorf("%w: %d negatives per edge; 1 or more are needed", ErrInput, m)
	case !(clamp >= 0 && clamp < 1):
		return fmt.Errorf("%w: clamp %v; it is a number from 0 to below 1", ErrInput, clamp)
	}
	for _, p := range discriminators {
		if !(p.slope > 0) || math.IsInf(p.slope, 0) || !(p.offset >= 0) {
			return fmt.Errorf("%w: normalisation constant %v; it is a positive number", ErrInput, p.slope)
		}
	}
	return nil
}

// logLimit returns the largest −log of a probability that is clamped.
func logLimit(clamp float64) float64 { return -math.Log(simd.BoundOf[float64](clamp).Clamp()) }

// extreme tells whether single precision could not hold w: a diverged run has
// such constants.
func (p Discriminator) extreme() bool { return p.slope < 1e-20 || p.slope > 1e20 }

// lossesOfPairs adds up −log(1−p) over the unordered pairs for each
// discriminator.
func lossesOfPairs[T Float](ctx context.Context, e []T, n, d int, clamp float64, discriminators []Discriminator, on *Device) ([]float64, error) {
	if f, ok := any(e).([]float32); ok && !slices.ContainsFunc(discriminators, Discriminator.extreme) {
		bound := simd.BoundOf[float32](clamp)
		if !on.OnHost() && len(discriminators) > 0 {
			return devicePairs(ctx, on, f, n, d, discriminators, bound)
		}
		return overPlanes(ctx, f, n, d, len(discriminators), func(d2 []float32, sums []float64) {
			for k, p := range discriminators {
				sums[k] += simd.InverseLogSum(d2, float32(p.slope), float32(p.offset), bound)
			}
		})
	}
	limit := logLimit(clamp)
	return overDistances(ctx, e, n, d, len(discriminators), func(d2 float64, sums []float64) {
		for k, p := range discriminators {
			sums[k] += min(limit, math.Log1p(1/(p.slope*d2+p.offset)))
		}
	})
}
