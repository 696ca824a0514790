// Package quality measures how well an embedding shows its data: how many neighbours it
// keeps, how near the neighbours in the embedding are in the data, how well it keeps large
// distances and dense and sparse places, and how well it separates classes.
// PartitionFunction is the sum of all similarities, and the Kullback–Leibler divergence
// compares graph and embedding. HeldOutAccuracy is about points that were placed after
// training. Align rotates one embedding onto another.
//
// Measure returns all figures for the matrices of points and embedding in one call.
// MeasureHeldOut returns the figures of held-out points.
//
// Results are exact for the given points or for a random sample that depends on the seed.
// They have the same bits regardless of GOMAXPROCS. Above ExactPoints, Measure estimates
// all-pairs figures from a sample, with standard errors. The sample's nearest neighbours
// among points of more than 8 values are then approximate, unless they are given. Nearest
// neighbours and ranks come from package data/neighbors. Sums over all pairs or all edges
// run on an accelerator if one is given, in an order that depends only on sizes.
//
// Slow functions return the context's error when it is done. Errors about the arguments
// wrap ErrInput, ErrNotFinite or ErrUndefined.
package quality

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"cne/data"
	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
)

// ErrInput is wrapped by errors about sizes, indices and parameters that do
// not fit together.
var ErrInput = errors.New("quality: bad input")

// ErrNotFinite is wrapped by errors about coordinates that are NaN or infinite; a diverged
// run makes such embeddings.
var ErrNotFinite = errors.New("quality: coordinate is not finite")

// ErrUndefined is wrapped by errors about valid inputs whose metric is undefined, such as
// the correlation with an embedding whose points all coincide.
var ErrUndefined = errors.New("quality: metric is undefined")

// A Device computes figures; model.OpenDevice opens one. nil means the CPU.
type Device = device.Device

// Float is the type of an embedding's coordinates.
type Float interface{ float32 | float64 }

// checkData fails as kind.Expect does unless all coordinates of some points, which may be
// sparse, are finite. what names them in errors.
func checkData(m *data.Matrix, what string) { check(m, m.Check(), what) }

// checkDense is checkData for points that may not be sparse.
func checkDense(m *data.Matrix, what string) { check(m, data.CheckDense(m), what) }

// check is checkData for points with an error of their sizes.
func check(m *data.Matrix, err error, what string) {
	kind.Expect(err == nil, ErrInput, "%s: %w", what, err)
	i, j, v, bad := m.FirstNotFinite()
	kind.Expect(!bad, ErrNotFinite, notFinite, i, what, v, j)
}

const notFinite = "point %d of the %s (counted from 0): got %v as coordinate %d"

// ExactPoints is the largest number of points that Measure measures exactly. Above, it
// uses a sample (Options.Sample). Figures over all pairs take some seconds at this
// number, and a hundred times as long for ten times as many points.
const ExactPoints = 100_000

// An Estimate is a figure, and, if not Exact, its standard error: the root mean square
// deviation of such estimates from the exact value.
type Estimate struct {
	Mean, Error float64
	Exact       bool
}

// ranked is the share of a sample that trustworthiness takes, but at least fewestSampled
// points: ranks in the data take by far the longest.
const ranked = 1.0 / 10

// fewestSampled is the smallest sample with meaningful standard errors: they assume that
// a mean is normally distributed.
const fewestSampled = 100

// sampleAbove is ExactPoints; tests set it lower.
var sampleAbove = ExactPoints

// Sampled returns the size of the sample that Measure draws from n points. 0 means that
// Measure uses all points: n is at most ExactPoints, or Sample is not below n.
func (o *Options) Sampled(n int) int {
	size := *cmp.Or(o.Sample, new(DefaultSample))
	if n <= sampleAbove || size >= n {
		return 0
	}
	return size
}

// drawSample returns the rows of the sample of n points, or nil for all points, and the
// part of the sample for trustworthiness. Both are in ascending order.
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
	mean, squares := selection.Sum(values)/size, 0.
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	return Estimate{Mean: mean, Error: math.Sqrt((1 - size/float64(of)) * squares / (size * (size - 1)))}
}

// average returns f of the sum of counts and the number of points that have them, or, if
// there are more points, the mean of f of each, estimated.
func average(counts []int, points int, f func(count, points float64) float64) Estimate {
	if len(counts) < points {
		return estimateMean(selection.Map(counts, func(count int) float64 { return f(float64(count), 1) }), points)
	}
	return Estimate{Mean: f(float64(selection.Sum(counts)), float64(len(counts))), Exact: true}
}

// isNear reports whether simd.InverseSum2Near can take all pairs of some positions.
func isNear(e []float32, d int) bool {
	lowest, highest := slices.Min(e), slices.Max(e)
	span := float64(highest) - float64(lowest)
	return float64(d)*span*span < 1e18
}

// sampleDivergence estimates KL from the edges whose heads are in the sample: the mean of
// −log q over edges is a quotient of two sums over heads, and the partition function z
// another sum. The error is the first-order error of all three (delta method), including
// their covariances. Like all errors here it misses the effect of few points, such as the
// long edges of a single outlier. It returns nil if none of the points has an edge, and fails
// as kind.Need does.
func (m *measurement) sampleDivergence(ctx context.Context, z float64) *Estimate {
	// The sum of −log q over the edges whose head a point is, and the number of these edges.
	lengths, edges := make([]float64, len(m.sample)), make([]float64, len(m.sample))
	kind.Check(parallel.ForContext(ctx, len(m.sample), 64, func(_, lo, hi int) {
		for q := lo; q < hi; q++ {
			head, tails := m.embedding.Row(m.sample[q]), m.Graph.Tails(m.sample[q])
			edges[q] = float64(len(tails))
			for _, j := range tails {
				lengths[q] += elementary.Log1p(squaredDistance(head, m.embedding.Row(int(j))))
			}
		}
	}))
	length, count := selection.Sum(lengths), selection.Sum(edges)
	if count == 0 {
		return nil
	}
	attraction, meanEdges, meanSum := length/count, count/float64(len(edges)), z/float64(m.embedding.N)
	linear := make([]float64, len(edges))
	for q, e := range edges {
		linear[q] = (lengths[q]-float64(attraction*e))/meanEdges + m.sums[q]/meanSum
	}
	kl := attraction + elementary.Log(z) - elementary.Log(float64(m.Graph.Edges()))
	return &Estimate{Mean: kl, Error: estimateMean(linear, m.embedding.N).Error}
}
