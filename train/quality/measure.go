package quality

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"cne/data"
	"cne/data/neighbors"
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
	// Device searches neighbours and, without a sample, computes the figures over all pairs of
	// points; nil means the CPU.
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
func Measure(ctx context.Context, points, embedding *data.Matrix, o Options) (*Figures, error) {
	m, err := newMeasurement(points, embedding, o)
	if err != nil {
		return nil, err
	}
	for _, figure := range table {
		if m.Skip&figure.Metric != 0 || !m.has(figure.Needs) {
			continue
		}
		start, before := time.Now(), m.figures
		err := ctx.Err()
		if err == nil {
			err = figure.measure(m, ctx)
		}
		if err != nil {
			return &m.figures, err
		}
		if o.Measured != nil && !reflect.DeepEqual(m.figures, before) {
			o.Measured(figure.Metric, time.Since(start))
		}
	}
	return &m.figures, nil
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

func newMeasurement(points, embedding *data.Matrix, o Options) (*measurement, error) {
	n, err := rows(embedding, "embedding")
	if err != nil {
		return nil, err
	}
	if points != nil {
		if of, err := inData(points, "data"); err != nil {
			return nil, err
		} else if of != n {
			return nil, fmt.Errorf("%w: data: got %d points, want %d as in the embedding", ErrInput, of, n)
		}
	}
	o.K, o.SpearmanSample = cmp.Or(o.K, DefaultK), cmp.Or(o.SpearmanSample, new(DefaultSpearmanSample))
	if *o.SpearmanSample == 0 {
		o.Skip |= MetricSpearman
	}
	if err := option.Check(o); err != nil {
		return nil, fmt.Errorf("%w: quality.%w", ErrInput, err)
	}
	if o.Graph != nil {
		if o.Graph.N != n {
			return nil, fmt.Errorf("%w: graph: got %d points, want %d as in the embedding", ErrInput, o.Graph.N, n)
		}
		if err := o.Graph.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
	}
	if err := o.Labels.Check(n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	for _, nb := range []*neighbors.Neighbors{o.Neighbors, o.Found} {
		if nb != nil && (nb.N != n || nb.K < o.K || len(nb.Index) != n*nb.K) {
			return nil, fmt.Errorf("%w: known neighbours: got %d of %d points, want %d or more of %d", ErrInput, nb.K, nb.N, o.K, n)
		}
	}
	m := &measurement{Options: o, points: points, embedding: embedding}
	m.sample, m.ranked = o.drawSample(n)
	return m, nil
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
func keep(e Estimate, err error, mean, standardError **float64) error {
	if err == nil {
		*mean = &e.Mean
		if !e.Exact {
			*standardError = &e.Error
		}
	}
	return err
}

// all returns the K nearest neighbours of all points. known holds at least K neighbours,
// or nil; all stores the neighbours there if it searches for them.
func (m *measurement) all(ctx context.Context, points *data.Matrix, known **neighbors.Neighbors) (*neighbors.Neighbors, error) {
	if *known == nil {
		if points.N <= m.K {
			return nil, fewPoints(points.N, m.K)
		}
		found, err := neighbors.KNN(ctx, points, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
		if err != nil {
			return nil, err
		}
		*known = found
	}
	return (*known).Nearest(m.K), ctx.Err()
}

// nearest returns the rows of the K nearest neighbours of each point of the sample.
func (m *measurement) nearest(ctx context.Context, points *data.Matrix, known **neighbors.Neighbors) ([]int32, error) {
	if m.sample == nil {
		nb, err := m.all(ctx, points, known)
		if err != nil {
			return nil, err
		}
		return nb.Index, nil
	}
	index := make([]int32, 0, len(m.sample)*m.K)
	if *known != nil {
		for _, i := range m.sample {
			index = append(index, (*known).Of(i)[:m.K]...)
		}
		return index, ctx.Err()
	}
	if points.N <= m.K {
		return nil, fewPoints(points.N, m.K)
	}
	found, err := neighbors.Search(ctx, points, points.Take(m.sample), m.K+1, neighbors.Options{Device: m.Device})
	if err != nil {
		return nil, err
	}
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
	return index, ctx.Err()
}

// fewPoints is the error about points without enough others.
func fewPoints(n, k int) error {
	return fmt.Errorf("%w: points: got %d, want more than %d, the number of neighbours", ErrUndefined, n, k)
}

// nearestInEmbedding is nearest in the embedding. It searches the embedding only once.
func (m *measurement) nearestInEmbedding(ctx context.Context) (index []int32, err error) {
	if m.found == nil {
		m.found, err = m.nearest(ctx, m.embedding, &m.Found)
	}
	return m.found, err
}
