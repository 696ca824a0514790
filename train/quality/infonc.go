package quality

import (
	"context"
	"fmt"
	"math"

	"cne/internal/elementary"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// An Estimate is a figure, and, if not Exact, its standard error: the root mean square
// deviation of such estimates from the exact value.
type Estimate struct {
	Mean, Error float64
	Exact       bool
}

const (
	// infoNCWork bounds how many similarities ExpectedInfoNC computes in the end: some
	// seconds of work.
	infoNCWork = 1 << 28
	// fewestEdges is the least number of sampled edges, even if they need more work.
	fewestEdges = 32
	// manyNegatives is the smallest number of negatives per other point where an expansion
	// around the mean replaces the draws.
	manyNegatives = 100
)

// ExpectedInfoNC estimates the loss per edge of InfoNC-t-SNE with m negatives,
// drawn uniformly from the points other than the edge's head,
//
//	(1/E) Σ_(ij edge) −log q(ij) + (1/ρ)·E log(q(ij) + q(ij₁) + … + q(ijₘ))
//
// (Damrich et al., 2023, Eq. 4; ρ = 1 there). The expectation has no closed form. It is
// estimated by the mean over several draws (draws, at least 2) of m negatives for each
// edge, and the error is the standard error of this estimate. The draws depend on the
// seed. Similarities below clamp count as clamp.
//
// If this needs more than about 3·10⁸ similarities, only 2 draws are made. If necessary
// they are made only for a sample of at least 32 edges; the error then includes the
// variance of the sample. For m ≥ 100(n−1) no negatives are drawn: their sum hardly
// varies, and the expectation is expanded around the mean of the sum, to within 1e-5.
// Edges are then sampled only above 16 384 points.
//
// Edges, embedding and errors are as for KL. A device, nil for the CPU, uses the same
// draws, and its result agrees with the CPU's to 1e-6. Embeddings of float64, and
// expansions around the mean, stay on the CPU.
func ExpectedInfoNC[T Float](ctx context.Context, heads, tails []int32, embedding []T, d, m int, rho, clamp float64,
	draws int, seed uint64, on *Device) (Estimate, error) {
	return expectedInfoNC(ctx, on, heads, tails, embedding, d, m, rho, clamp, draws, seed, infoNCWork)
}

// expectedInfoNC is ExpectedInfoNC with a bound of its work.
func expectedInfoNC[T Float](ctx context.Context, on *Device, heads, tails []int32, embedding []T, d, m int,
	rho, clamp float64, draws int, seed uint64, work int) (Estimate, error) {
	n, err := points(embedding, d, "embedding")
	if err != nil {
		return Estimate{}, err
	}
	if err := checkEdges(heads, tails, n, "loss on"); err != nil {
		return Estimate{}, err
	}
	if err := checkLoss(n, m, clamp, nil); err != nil {
		return Estimate{}, err
	}
	if !(rho > 0) || math.IsInf(rho, 0) || draws < 2 {
		return Estimate{}, fmt.Errorf("%w: ρ and draws per edge: got %v and %d, want a positive number and 2 or more", ErrInput, rho, draws)
	}
	f := &infoNC[T]{heads: heads, tails: tails, embedding: embedding, n: n, d: d, m: m, draws: draws, clamp: clamp, seed: seed, on: on}
	if m/manyNegatives >= n-1 {
		f.draws = 1
		f.moments = make([]moments, n)
		if n <= work/n { // moments of all heads are affordable
			err := parallel.ForContext(ctx, n, max(1, infoNCGrain/n), func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					f.moments[i] = f.momentsOf(int32(i))
				}
			})
			if err != nil {
				return Estimate{}, err
			}
			return f.overAllEdges(ctx, rho)
		}
		return f.overDrawnEdges(ctx, rho, work/n)
	}
	if edges := work / m; len(heads) > edges/draws {
		f.draws = 2
		if edges /= 2; len(heads) > edges {
			return f.overDrawnEdges(ctx, rho, edges)
		}
	}
	return f.overAllEdges(ctx, rho)
}

// infoNCGrain is about how many similarities make a piece of work.
const infoNCGrain = 1 << 24

// infoNC is one call of ExpectedInfoNC.
type infoNC[T Float] struct {
	heads, tails []int32
	embedding    []T
	n, d, m      int
	draws        int
	clamp        float64
	seed         uint64
	on           *Device
	// moments are the moments of each head, computed when needed; or nil if negatives are
	// drawn.
	moments []moments
}

// grain returns the number of edges in a piece of work.
func (f *infoNC[T]) grain() int {
	cost := f.draws * min(f.m, infoNCGrain)
	if f.moments != nil {
		cost = f.n
	}
	return min(edgeGrain, max(1, infoNCGrain/cost))
}

func (f *infoNC[T]) similarity(i, j int32) float64 {
	a, b := int(i)*f.d, int(j)*f.d
	return max(f.clamp, 1/(1+squaredDistance(f.embedding[a:a+f.d], f.embedding[b:b+f.d])))
}

// overAllEdges is the mean over all edges.
func (f *infoNC[T]) overAllEdges(ctx context.Context, rho float64) (Estimate, error) {
	means, variances, err := f.logTotals(ctx, f.heads, f.tails)
	if err != nil {
		return Estimate{}, err
	}
	var loss, variance float64
	for lo, grain := 0, f.grain(); lo < len(means); lo += grain {
		var ofLoss, ofVariance float64
		for e := lo; e < min(len(means), lo+grain); e++ {
			ofLoss += means[e]/rho - elementary.Log(f.similarity(f.heads[e], f.tails[e]))
			ofVariance += variances[e]
		}
		loss += ofLoss
		variance += ofVariance
	}
	edges := float64(len(f.heads))
	return Estimate{Mean: loss / edges, Error: math.Sqrt(variance) / rho / edges}, nil
}

// overDrawnEdges returns the mean over a sample of edges; the part without negatives is
// the mean over all edges.
func (f *infoNC[T]) overDrawnEdges(ctx context.Context, rho float64, edges int) (Estimate, error) {
	edges = max(edges, fewestEdges)
	order := rng.New(f.seed, rng.Sample)
	heads, tails := make([]int32, edges), make([]int32, edges)
	for k := range heads {
		e := order.IntN(len(f.heads))
		heads[k], tails[k] = f.heads[e], f.tails[e]
	}
	values, _, err := f.logTotals(ctx, heads, tails)
	if err != nil {
		return Estimate{}, err
	}
	attraction, err := attractionOf(ctx, f.on, f.heads, f.tails, f.embedding, f.d, similarity, -elementary.Log(f.clamp))
	if err != nil {
		return Estimate{}, err
	}
	var mean, squares float64
	for k, v := range values {
		before := v - mean
		mean += before / float64(k+1)
		squares += float64(before * (v - mean))
	}
	return Estimate{
		Mean:  attraction/float64(len(f.heads)) + mean/rho,
		Error: math.Sqrt(squares/float64(edges-1)/float64(edges)) / rho,
	}, nil
}

// logTotals returns logTotal for each of some edges, computed on a device if possible.
func (f *infoNC[T]) logTotals(ctx context.Context, heads, tails []int32) (means, variances []float64, err error) {
	stream := rng.New(f.seed, rng.Negatives)
	if single, ok := any(f.embedding).([]float32); ok && !f.on.OnHost() && f.moments == nil && f.m <= math.MaxInt32 {
		return deviceLogTotals(ctx, f.on, heads, tails, single, f.d, f.m, f.draws, f.clamp, stream.State())
	}
	means, variances = make([]float64, len(heads)), make([]float64, len(heads))
	return means, variances, parallel.ForContext(ctx, len(heads), f.grain(), func(_, lo, hi int) {
		random := stream.At(uint64(lo) * uint64(f.draws) * uint64(f.m))
		for k := lo; k < hi; k++ {
			means[k], variances[k] = f.logTotal(heads[k], tails[k], &random)
		}
	})
}

// logTotal returns the mean of the logarithm of an edge's similarities over draws of its
// negatives, and the variance of that mean.
func (f *infoNC[T]) logTotal(i, tail int32, random *rng.Stream) (mean, variance float64) {
	positive := f.similarity(i, tail)
	if f.moments != nil {
		s := f.moments[i]
		if s.count == 0 {
			s = f.momentsOf(i)
		}
		return s.expectedLog(positive, float64(f.m)), 0
	}
	var squares float64 // Welford's running mean and sum of squares
	for r := range f.draws {
		total := positive
		for range f.m {
			j := int32(random.IntN(f.n - 1))
			if j >= i {
				j++
			}
			total += f.similarity(i, j)
		}
		v := elementary.Log(total)
		before := v - mean
		mean += before / float64(r+1)
		squares += float64(before * (v - mean))
	}
	return mean, squares / float64(f.draws-1) / float64(f.draws)
}

// moments are the mean of some numbers and their central moments of second to fourth
// order.
type moments struct {
	count                       int
	mean, second, third, fourth float64
}

// momentsOf returns the moments of the similarities of a point to all others.
func (f *infoNC[T]) momentsOf(i int32) moments {
	s := moments{count: f.n - 1}
	for j := range int32(f.n) {
		if j != i {
			s.mean += f.similarity(i, j)
		}
	}
	count := float64(s.count)
	s.mean /= count
	for j := range int32(f.n) {
		if j != i {
			x := f.similarity(i, j) - s.mean
			s.second += x * x / count
			s.third += x * x * x / count
			s.fourth += x * x * x * x / count
		}
	}
	return s
}

// expectedLog returns the expectation of log(a + x₁ + … + xₘ) for m of the numbers, drawn
// with replacement, by its expansion around the mean of the sum up to fourth order.
// Numbers that are not negative have a second moment of at most count·mean², and so on,
// so the remainder is of the order of (count/m)³.
func (s *moments) expectedLog(a, m float64) float64 {
	total := a + float64(m*s.mean)
	// Divide twice, because powers of small totals would underflow to 0.
	second := m * (s.second / total / total)
	third := m * (s.third / total / total / total)
	fourth := float64(m*((s.fourth-float64(3*s.second*s.second))/total/total/total/total)) + float64(3*second*second)
	return elementary.Log(total) - float64(second/2) + third/3 - float64(fourth/4)
}
