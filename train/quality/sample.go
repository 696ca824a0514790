package quality

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
)

// ExactPoints is the largest number of points of which Measure counts every one. Of
// more it takes a sample (Options.Points): what looks at all pairs takes some seconds
// for as many, and a hundred times as long for ten times as many.
const ExactPoints = 100_000

// ranked is the share of a sample that trustworthiness and losses take, but at least
// fewestSampled points: ranks in the data and logarithms of all pairs take by far the
// longest.
const ranked = 1.0 / 10

// fewestSampled is the smallest sample whose standard errors mean something: they rest
// on the normal distribution of a mean.
const fewestSampled = 100

// sampleAbove is ExactPoints; tests set it lower.
var sampleAbove = ExactPoints

// Sampled returns how many of n points Measure draws for its figures; 0 means that it
// counts all of them, as it does with up to ExactPoints, and when no fewer are to be
// drawn than there are.
func (o *Options) Sampled(n int) int {
	size := o.Points
	if size == 0 {
		size = DefaultPoints
	}
	if size < 0 || n <= sampleAbove || size >= n {
		return 0
	}
	return size
}

// drawSample returns the rows of the sample of n points, nil for all, and of the sample
// of these that trustworthiness and losses take, both in ascending order.
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

// estimateMean estimates the mean of so many values from those of a sample that was
// drawn without replacement. The more of them it holds, the smaller is the error.
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
	return Estimate{mean, math.Sqrt((1 - size/float64(of)) * squares / (size * (size - 1)))}
}

// pointers returns mean and error as Figures hold them.
func (e Estimate) pointers() (mean, standardError *float64) { return &e.Mean, &e.Error }

// nearestOfSample returns the rows of the K nearest neighbours of each point of the
// sample; known are those of all points, or nil.
func (m *measurement) nearestOfSample(ctx context.Context, points *data.Matrix, known *neighbors.Neighbors) ([]int32, error) {
	index := make([]int32, 0, len(m.sample)*m.K)
	if known != nil {
		for _, i := range m.sample {
			index = append(index, known.Of(i)[:m.K]...)
		}
		return index, ctx.Err()
	}
	if points.N <= m.K {
		return nil, fewPoints(points.N, m.K)
	}
	queries := pick(points, m.sample)
	queries.Offset = points.Offset
	found, err := neighbors.Search(ctx, points, queries, m.K+1, neighbors.Options{Device: m.Device})
	if err != nil {
		return nil, err
	}
	for q, i := range m.sample {
		// The point itself is among them, unless more than K others lie at its place.
		others := 0
		for _, j := range found.Of(q) {
			if int(j) != i && others < m.K {
				index = append(index, j)
				others++
			}
		}
	}
	return index, ctx.Err()
}

// foundOfSample is nearestOfSample in the embedding, which is searched once.
func (m *measurement) foundOfSample(ctx context.Context) (index []int32, err error) {
	if m.found == nil {
		m.found, err = m.nearestOfSample(ctx, m.embedding, m.Found)
	}
	return m.found, err
}

func (m *measurement) sampleRecall(ctx context.Context) error {
	near, err := m.nearestOfSample(ctx, m.points, m.Neighbors)
	if err != nil {
		return err
	}
	found, err := m.foundOfSample(ctx)
	if err != nil {
		return err
	}
	shares := make([]float64, len(m.sample))
	err = inPieces(ctx, len(shares), 256, func(_, lo, hi int) {
		a, b := make([]int32, m.K), make([]int32, m.K)
		for q := lo; q < hi; q++ {
			copy(a, near[q*m.K:])
			copy(b, found[q*m.K:])
			shares[q] = float64(common(a, b)) / float64(m.K)
		}
	})
	if err != nil {
		return err
	}
	m.figures.KNNRecall, m.figures.KNNRecallError = estimateMean(shares, m.embedding.N).pointers()
	return nil
}

// common returns how many numbers occur in both lists, neither of which holds one
// twice. It sorts them.
func common(a, b []int32) (count int) {
	slices.Sort(a)
	slices.Sort(b)
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
			count++
		}
	}
	return count
}

// sampleSums returns for each point of the sample the sum of its similarities to all
// other points of the embedding, and from them the partition function.
func (m *measurement) sampleSums(ctx context.Context) (sums []float64, z Estimate, err error) {
	n := m.embedding.N
	if m.sums == nil {
		m.sums, err = rowSums(ctx, m.embedding, m.sample)
		if err != nil {
			m.sums = nil
			return nil, Estimate{}, err
		}
	}
	z = estimateMean(m.sums, n)
	return m.sums, Estimate{z.Mean * float64(n), z.Error * float64(n)}, nil
}

// rowSums returns Σ_(j≠i) 1/(1+‖e_i−e_j‖²) for some points i of an embedding, with
// the precision of PartitionFunction.
func rowSums(ctx context.Context, e *data.Matrix, rows []int) ([]float64, error) {
	n, d := e.N, e.D
	planes := planesOf(e.X, n, d)
	near := isNear(e.X, d)
	sums := make([]float64, len(rows))
	err := inPieces(ctx, len(rows), tileRows, func(_, first, last int) {
		work := make([]float32, tileColumns)
		for lo := 0; lo < n && ctx.Err() == nil; lo += tileColumns {
			hi := min(n, lo+tileColumns)
			for q := first; q < last; q++ {
				i := rows[q]
				x := e.Row(i)
				if i < lo || i >= hi {
					sums[q] += similarities(x, planes, n, lo, hi, near, work)
					continue
				}
				sums[q] += similarities(x, planes, n, lo, i, near, work)
				sums[q] += similarities(x, planes, n, i+1, hi, near, work)
			}
		}
	})
	return sums, err
}

// isNear tells whether simd.InverseSum2Near can take all pairs of some positions.
func isNear(e []float32, d int) bool {
	lowest, highest := slices.Min(e), slices.Max(e)
	span := float64(highest) - float64(lowest)
	return float64(d)*span*span < 1e18
}

// similarities adds up those of a position x to the points lo to hi−1, of which planes
// hold coordinate after coordinate. near is isNear of them, and work has room for as
// many numbers.
func similarities(x, planes []float32, n, lo, hi int, near bool, work []float32) (sum float64) {
	switch {
	case len(x) != 2:
	case near:
		for ; lo < hi; lo += cauchyBlock {
			end := min(hi, lo+cauchyBlock)
			sum += simd.InverseSum2Near(planes[lo:end], planes[n+lo:n+end], x[0], x[1])
		}
		return sum
	default:
		return cauchySum(x[0], x[1], planes[lo:hi], planes[n+lo:n+hi])
	}
	d2 := work[:hi-lo]
	clear(d2)
	for k, v := range x {
		simd.AddSquares(d2, planes[k*n+lo:k*n+hi], v)
	}
	for len(d2) > 0 {
		terms := min(cauchyBlock, len(d2))
		sum += simd.InverseSum(d2[:terms])
		d2 = d2[terms:]
	}
	return sum
}

// sampleDivergence estimates KL from the edges whose heads are in the sample: the mean
// of −log q over edges is a quotient of two sums over heads, and the partition function
// another sum. The error is that of the expansion of all three to first order (delta
// method), which knows how they vary together. Like all errors here it is blind to what
// few points alone decide, such as the long edges of a single outlier.
func (m *measurement) sampleDivergence(ctx context.Context) error {
	g, err := m.graph(ctx)
	if err != nil || g == nil || g.Edges() == 0 {
		return err
	}
	sums, z, err := m.sampleSums(ctx)
	if err != nil {
		return err
	}
	size := len(m.sample)
	lengths := make([]float64, size) // of each head, the sum of −log q over its edges
	err = inPieces(ctx, size, 256, func(_, lo, hi int) {
		for q := lo; q < hi; q++ {
			head := m.embedding.Row(m.sample[q])
			for _, j := range g.Tails(m.sample[q]) {
				lengths[q] += math.Log1p(squaredDistance(head, m.embedding.Row(int(j))))
			}
		}
	})
	if err != nil {
		return err
	}
	var length, edges float64
	for q, i := range m.sample {
		length += lengths[q]
		edges += float64(len(g.Tails(i)))
	}
	if edges == 0 || z.Mean == 0 {
		return nil // nothing is known of the edges, or all points are too far from each other for single precision
	}
	attraction, meanEdges, meanSum := length/edges, edges/float64(size), z.Mean/float64(m.embedding.N)
	linear := make([]float64, size)
	for q, i := range m.sample {
		linear[q] = (lengths[q]-attraction*float64(len(g.Tails(i))))/meanEdges + sums[q]/meanSum
	}
	kl := attraction + math.Log(z.Mean) - math.Log(float64(g.Edges()))
	m.figures.KL, m.figures.KLError = Estimate{kl, estimateMean(linear, m.embedding.N).Error}.pointers()
	return nil
}

// sampleAccuracy is KNNAccuracy of no more held-out points than the sample has. They are
// a sample of those that are held out; if there are no more, nothing is estimated.
func (m *measurement) sampleAccuracy(ctx context.Context, embedding *data.Matrix, classes []int32) error {
	test, known, err := drawTest(embedding, classes, AccuracyK, AccuracyTest, m.Seed)
	if err != nil {
		return err
	}
	held := len(test)
	test = test[:min(held, len(m.sample))] // in random order
	share, err := accuracy(ctx, pickClassified(embedding, classes, known), pickClassified(embedding, classes, test), AccuracyK, m.Device)
	if err != nil {
		return err
	}
	m.figures.Accuracy = &share
	if size := float64(len(test)); len(test) < held {
		standardError := math.Sqrt((1 - size/float64(held)) * share * (1 - share) / (size - 1))
		m.figures.AccuracyError = &standardError
	}
	return nil
}

func (m *measurement) sampleTrustworthiness(ctx context.Context) error {
	found, err := m.foundOfSample(ctx)
	if err != nil {
		return err
	}
	index := make([]int32, 0, len(m.ranked)*m.K)
	for _, i := range m.ranked {
		q, _ := slices.BinarySearch(m.sample, i)
		index = append(index, found[q*m.K:(q+1)*m.K]...)
	}
	ranks, err := neighbors.RanksOf(ctx, m.points, m.ranked, index, m.K)
	if err != nil {
		return err
	}
	n := float64(m.points.N)
	most := float64(m.K) * (2*n - 3*float64(m.K) - 1) // of twice the penalty of a point
	values := make([]float64, len(m.ranked))
	parallel.For(len(values), 1024, func(_, lo, hi int) {
		for q := lo; q < hi; q++ {
			penalty := 0
			for _, r := range ranks[q*m.K : (q+1)*m.K] {
				penalty += max(0, int(r)-m.K)
			}
			values[q] = 1 - 2*float64(penalty)/most
		}
	})
	m.figures.Trustworthiness, m.figures.TrustworthinessError = estimateMean(values, m.points.N).pointers()
	return nil
}

// fewPoints is the error about points without enough others.
func fewPoints(n, k int) error {
	return fmt.Errorf("%w: %d points do not have %d neighbours each; give more points or a smaller K", ErrUndefined, n, k)
}
