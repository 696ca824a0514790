package quality

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/option"
)

// The kNN classifier of Figures.Accuracy: the AccuracyK nearest of a random six sevenths
// of the points vote on each other point (10 000 of MNIST's 70 000).
const (
	AccuracyK    = 10
	AccuracyTest = 1.0 / 7
)

// Defaults of Options.
const (
	DefaultK              = 15
	DefaultSpearmanSample = 1000
	DefaultSample         = 20_000
)

// Options says what Measure measures, and how. The zero value measures all figures that
// need only the points and the embedding.
type Options struct {
	// K is the number of nearest neighbours of a point for recall and trustworthiness; 0
	// means 15.
	K int `key:"k" in:"[1,inf)"`
	// SpearmanSample is the number of points for Spearman's correlation; nil means 1000 (the
	// paper takes 5000), and 0 leaves it out.
	SpearmanSample *int `key:"spearman_sample,given" in:"0 or [3,20000]"`
	// Sample is the number of points that Measure draws, without replacement, from more than
	// ExactPoints points; nil means 20 000. 0, or a number not below the number of points,
	// means all. Recall, partition function and divergence compare the sample with all
	// points. Trustworthiness takes a tenth of it, at least 100 points. Accuracy classifies
	// at most as many held-out points as the sample has.
	Sample *int `key:"sample,given" in:"0 or [100,inf)"`
	// Skip names the metrics to leave out.
	Skip Metric

	// Labels are the labels of the points, for the accuracy. Points without a label
	// (data.Labels.Known) do not count. nil, or labels that are quantities, leave the
	// accuracy out.
	Labels *data.Labels
	// Graph is the graph of the divergence; nil means the sKNN graph of the points' K
	// nearest neighbours.
	Graph *neighbors.Graph
	// Neighbors are the nearest neighbours of each point, K or more, and Found its nearest
	// neighbours in the embedding. If nil, Measure searches for them. For a sample of points
	// of more than 8 values, the search is approximate.
	Neighbors, Found *neighbors.Neighbors

	// Seed seeds the samples (but not Spearman's, which is fixed) and the choice of
	// classified points.
	Seed uint64
	// Device searches neighbours; nil means the CPU.
	Device *Device
	// Measured, if not nil, is called after each metric with the time that it took.
	Measured func(m Metric, took time.Duration)
}

// Measure measures an embedding [n, d] of points [n, D], which may be sparse. If points is nil, it leaves out
// recall (unless Neighbors is given), correlation, trustworthiness, and, without a Graph,
// divergence.
//
// It takes O(n²) operations up to ExactPoints points; above, it uses a sample
// (Options.Sample). Give Graph or Neighbors above ExactPoints: without them, the
// divergence searches the neighbours of all points.
//
// Errors wrap ErrInput, ErrNotFinite or, if there are too few points for K neighbours
// each, ErrUndefined; or they are the device's. If ctx is done, Measure returns ctx.Err()
// and the figures measured so far.
func Measure(ctx context.Context, points, embedding *data.Matrix, o Options) (f *Figures, err error) {
	defer kind.Catch(&err)
	m := newMeasurement(points, embedding, o)
	f = &m.figures
	for _, figure := range table {
		if m.Skip&figure.Metric != 0 || !m.has(figure.Needs) {
			continue
		}
		start, before := time.Now(), m.figures
		kind.Check(ctx.Err())
		figure.measure(m, ctx)
		if o.Measured != nil && !reflect.DeepEqual(m.figures, before) {
			o.Measured(figure.Metric, time.Since(start))
		}
	}
	return f, nil
}

// A measurement is one call of Measure. Values that several figures need are computed for
// the first of them.
type measurement struct {
	Options
	points, embedding *data.Matrix // points may be nil
	sample            []int        // rows of the points that count; nil: all
	ranked            []int        // the part of sample for trustworthiness
	found             []int32      // the nearest of the sample in the embedding
	sums              []float64    // of the similarities of each sampled point to all others
	z                 *Estimate    // the partition function
	figures           Figures
}

// newMeasurement checks the arguments of Measure. It fails as kind.Need does.
func newMeasurement(points, embedding *data.Matrix, o Options) *measurement {
	checkDense(embedding, "embedding")
	n := embedding.N
	if points != nil {
		checkData(points, "data")
		kind.Expect(points.N == n, ErrInput, "data: got %d points, want %d as in the embedding", points.N, n)
	}
	o.K, o.SpearmanSample = cmp.Or(o.K, DefaultK), cmp.Or(o.SpearmanSample, new(DefaultSpearmanSample))
	if *o.SpearmanSample == 0 {
		o.Skip |= MetricSpearman
	}
	err := option.Check(o)
	kind.Expect(err == nil, ErrInput, "quality.%w", err)
	if o.Graph != nil {
		kind.Expect(o.Graph.N == n, ErrInput, "graph: got %d points, want %d as in the embedding", o.Graph.N, n)
		err = o.Graph.Validate()
	}
	err = cmp.Or(err, o.Labels.Check(n))
	kind.Expect(err == nil, ErrInput, "%w", err)
	for _, nb := range []*neighbors.Neighbors{o.Neighbors, o.Found} {
		if nb != nil {
			kind.Expect(nb.N == n && nb.K >= o.K && len(nb.Index) == n*nb.K, ErrInput,
				"known neighbours: got %d of %d points, want %d or more of %d", nb.K, nb.N, o.K, n)
		}
	}
	m := &measurement{Options: o, points: points, embedding: embedding}
	m.sample, m.ranked = o.drawSample(n)
	return m
}

// has reports whether the inputs of a figure are available.
func (m *measurement) has(needs Needs) bool {
	there := NeedsNone
	if m.points != nil {
		there |= NeedsPoints | NeedsNeighbors | NeedsGraph
	}
	if m.Neighbors != nil {
		there |= NeedsNeighbors
	}
	if m.Graph != nil {
		there |= NeedsGraph
	}
	if m.Labels != nil {
		there |= NeedsLabels
	}
	return needs&^there == 0
}

// keep stores a figure in mean, and its error in standardError if it is estimated.
func keep(e Estimate, mean, standardError **float64) {
	*mean = &e.Mean
	if !e.Exact {
		*standardError = &e.Error
	}
}

// all returns the K nearest neighbours of all points. known holds at least K neighbours,
// or nil; all stores the neighbours there if it searches for them. It fails as kind.Need does.
func (m *measurement) all(ctx context.Context, points *data.Matrix, known **neighbors.Neighbors) *neighbors.Neighbors {
	if *known == nil {
		m.checkCount(points)
		*known = kind.Got(neighbors.KNN(ctx, points, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device}))
	}
	kind.Check(ctx.Err())
	return (*known).Nearest(m.K)
}

// checkCount fails as kind.Expect does for points without enough others.
func (m *measurement) checkCount(points *data.Matrix) {
	kind.Expect(points.N > m.K, ErrUndefined, "points: got %d, want more than %d, the number of neighbours", points.N, m.K)
}

// nearest returns the rows of the K nearest neighbours of each point of the sample, or fails as
// kind.Need does.
func (m *measurement) nearest(ctx context.Context, points *data.Matrix, known **neighbors.Neighbors) []int32 {
	if m.sample == nil {
		return m.all(ctx, points, known).Index
	}
	index := make([]int32, 0, len(m.sample)*m.K)
	if *known != nil {
		for _, i := range m.sample {
			index = append(index, (*known).Of(i)[:m.K]...)
		}
		kind.Check(ctx.Err())
		return index
	}
	m.checkCount(points)
	found := kind.Got(neighbors.Search(ctx, points, points.Take(m.sample), m.K+1, neighbors.Options{Device: m.Device}))
	for q, i := range m.sample {
		// The point itself is among them, unless more than K others are identical to it.
		others := 0
		for _, j := range found.Of(q) {
			if int(j) != i && others < m.K {
				index = append(index, j)
				others++
			}
		}
	}
	kind.Check(ctx.Err())
	return index
}

// nearestInEmbedding is nearest in the embedding. It searches the embedding only once.
func (m *measurement) nearestInEmbedding(ctx context.Context) []int32 {
	if m.found == nil {
		m.found = m.nearest(ctx, m.embedding, &m.Found)
	}
	return m.found
}
