package quality

import (
	"context"
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// ExactPoints is the largest number of points that Measure measures exactly. Above, it
// uses a sample (Options.Sample). Figures over all pairs take some seconds at this
// number, and a hundred times as long for ten times as many points.
const ExactPoints = 100_000

// ranked is the share of a sample that trustworthiness and losses take, but at least
// fewestSampled points: ranks in the data and logarithms of all pairs take by far the
// longest.
const ranked = 1.0 / 10

// fewestSampled is the smallest sample with meaningful standard errors: they assume that
// a mean is normally distributed.
const fewestSampled = 100

// sampleAbove is ExactPoints; tests set it lower.
var sampleAbove = ExactPoints

// Sampled returns the size of the sample that Measure draws from n points. 0 means that
// Measure uses all points: n is at most ExactPoints, or Sample is not below n.
func (o *Options) Sampled(n int) int {
	size := DefaultSample
	if o.Sample != nil {
		size = *o.Sample
	}
	if n <= sampleAbove || size >= n {
		return 0
	}
	return size
}

// drawSample returns the rows of the sample of n points, or nil for all points, and the
// part of the sample for trustworthiness and losses. Both are in ascending order.
func (o *Options) drawSample(n int) (all, some []int) {
	size := o.Sampled(n)
	if size == 0 {
		return nil, nil
	}
	stream := rng.New(o.Seed, rng.Rows)
	order := stream.Perm(n)
	all = slices.Clone(order[:size])
	some = slices.Clone(order[:max(fewestSampled, int(ranked*float64(size)))])
	slices.Sort(all)
	slices.Sort(some)
	return all, some
}

// estimateMean estimates the mean of a population of size of from a sample drawn
// without replacement. The error falls to 0 as the sample grows to the population.
func estimateMean(values []float64, of int) Estimate {
	size := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / size
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	return Estimate{Mean: mean, Error: math.Sqrt((1 - size/float64(of)) * squares / (size * (size - 1)))}
}

// average returns f of the sum of counts and the number of points that have them, or, if
// there are more points, the mean of f of each, estimated.
func average(counts []int, points int, f func(count, points float64) float64) Estimate {
	if len(counts) < points {
		values := make([]float64, len(counts))
		for q, c := range counts {
			values[q] = f(float64(c), 1)
		}
		return estimateMean(values, points)
	}
	sum := 0
	for _, c := range counts {
		sum += c
	}
	return Estimate{Mean: f(float64(sum), float64(len(counts))), Exact: true}
}

// isNear reports whether simd.InverseSum2Near can take all pairs of some positions.
func isNear(e []float32, d int) bool {
	lowest, highest := slices.Min(e), slices.Max(e)
	span := float64(highest) - float64(lowest)
	return float64(d)*span*span < 1e18
}

// edgeSums returns, for some points and for each discriminator, the sum of −log p, at
// most limit, over the edges whose head the point is. It also returns the number of these
// edges.
func (m *measurement) edgeSums(ctx context.Context, rows []int, discriminators []Discriminator,
	limit float64) (sums [][]float64, edges []float64, err error) {
	sums, edges = make([][]float64, len(rows)), make([]float64, len(rows))
	positives := make([]func(float64) float64, len(discriminators))
	for k, p := range discriminators {
		positives[k], _ = p.terms()
	}
	err = parallel.ForContext(ctx, len(rows), 64, func(_, lo, hi int) {
		for q := lo; q < hi; q++ {
			sums[q] = make([]float64, len(discriminators))
			head, tails := m.embedding.Row(rows[q]), m.Graph.Tails(rows[q])
			edges[q] = float64(len(tails))
			for _, j := range tails {
				d2 := squaredDistance(head, m.embedding.Row(int(j)))
				for k, loss := range positives {
					sums[q][k] += min(limit, loss(d2))
				}
			}
		}
	})
	return sums, edges, err
}

// sampleDivergence estimates KL from the edges whose heads are in the sample: the mean of
// −log q over edges is a quotient of two sums over heads, and the partition function z
// another sum. The error is the first-order error of all three (delta method), including
// their covariances. Like all errors here it misses the effect of few points, such as the
// long edges of a single outlier. It returns nil if none of the points has an edge.
func (m *measurement) sampleDivergence(ctx context.Context, z float64) (*Estimate, error) {
	lengths, edges, err := m.edgeSums(ctx, m.sample, []Discriminator{similarity}, math.Inf(1))
	if err != nil {
		return nil, err
	}
	var length, count float64
	for q, e := range edges {
		length += lengths[q][0]
		count += e
	}
	if count == 0 {
		return nil, nil
	}
	attraction, meanEdges, meanSum := length/count, count/float64(len(edges)), z/float64(m.embedding.N)
	linear := make([]float64, len(edges))
	for q, e := range edges {
		linear[q] = (lengths[q][0]-float64(attraction*e))/meanEdges + m.sums[q][0]/meanSum
	}
	kl := attraction + elementary.Log(z) - elementary.Log(float64(m.Graph.Edges()))
	return &Estimate{Mean: kl, Error: estimateMean(linear, m.embedding.N).Error}, nil
}

// expectedLosses is ExpectedLosses, exactly or from the sample. It returns nil if none of the
// sample has an edge.
func (m *measurement) expectedLosses(ctx context.Context, heads, tails []int32, discriminators []Discriminator) ([]Estimate, error) {
	if m.sample != nil {
		return m.sampleLosses(ctx, discriminators)
	}
	values, err := ExpectedLosses(ctx, heads, tails, m.embedding.X, m.embedding.D, m.Losses.Negatives, m.Losses.Clamp,
		discriminators, m.Device)
	estimates := make([]Estimate, len(values))
	for k, v := range values {
		estimates[k] = Estimate{Mean: v, Exact: true}
	}
	return estimates, err
}

// sampleLosses estimates ExpectedLosses from trustworthiness's sample of points: the sum
// over edges from the edges that start at these points, and the sum over pairs from their
// pairs with all other points. The errors take the constants of the discriminators as
// given, and are otherwise computed as in sampleDivergence. It returns nil if none of the
// points has an edge.
func (m *measurement) sampleLosses(ctx context.Context, discriminators []Discriminator) ([]Estimate, error) {
	n, negatives, clamp := m.embedding.N, float64(m.Losses.Negatives), m.Losses.Clamp
	if err := checkLoss(n, m.Losses.Negatives, clamp, discriminators); err != nil {
		return nil, err
	}
	repulsion, err := overRows(ctx, n, m.ranked, 8, n, len(discriminators),
		repulsionTerms(m.embedding.X, n, m.embedding.D, clamp, discriminators))
	if err != nil {
		return nil, err
	}
	attraction, edges, err := m.edgeSums(ctx, m.ranked, discriminators, logLimit(clamp))
	if err != nil {
		return nil, err
	}
	var count float64
	for _, e := range edges {
		count += e
	}
	if count == 0 {
		return nil, nil
	}
	size := float64(len(edges))
	losses := make([]Estimate, len(discriminators))
	linear := make([]float64, len(edges))
	for k := range discriminators {
		var perEdge, perPair float64
		for q := range edges {
			perEdge += attraction[q][k] / count
			perPair += repulsion[q][k] / size / float64(n-1)
		}
		for q, e := range edges {
			linear[q] = (attraction[q][k]-float64(perEdge*e))/(count/size) + negatives*repulsion[q][k]/float64(n-1)
		}
		losses[k] = Estimate{Mean: perEdge + float64(negatives*perPair), Error: estimateMean(linear, n).Error}
	}
	return losses, nil
}
