package quality

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"cne/data"
	"cne/data/neighbors"
)

// The kNN classifier behind Figures.Accuracy: the AccuracyK nearest of a random six
// sevenths of the points vote on each of the rest, of MNIST 10 000 of 70 000.
const (
	AccuracyK    = 10
	AccuracyTest = 1.0 / 7
)

// What the zero values of Options stand for. The paper takes as many points for
// Spearman's correlation, and as many negatives.
const (
	DefaultK         = 15
	DefaultSample    = 5000
	DefaultPoints    = 20_000
	DefaultNegatives = 5
)

// A Metric is a figure that Measure gives; several are joined by |.
type Metric uint

// The metrics, in the order in which Measure computes them.
const (
	MetricRecall Metric = 1 << iota
	MetricSpearman
	MetricPartition
	MetricKL
	MetricAccuracy
	MetricTrustworthiness
	MetricLosses
)

// Options says what Measure measures, and how. The zero value measures all that
// the points and the embedding alone allow.
type Options struct {
	// K is how many nearest neighbours of a point recall and trustworthiness are
	// about; 0 means 15.
	K int
	// Sample is how many points Spearman's correlation is taken of; 0 means 5000.
	Sample int
	// Points is how many points are drawn, without replacement, where there are more
	// than ExactPoints: recall, partition function and divergence are then estimated
	// from these points against all, trustworthiness and losses from a tenth of them
	// (but 100 at least), and accuracy from as many of those held out. At least 100; 0 means 20 000,
	// a negative number all points, and so does one that is no smaller than theirs.
	Points int
	// Losses has the constants of the expected losses.
	Losses LossOptions
	// Skip names the metrics to leave out.
	Skip Metric

	// Labels are those of the points, for the accuracy, which looks at the points
	// that have one (data.Labels.Known). It is left out for nil and for labels that
	// are quantities.
	Labels *data.Labels
	// Graph is what the divergence and the losses are about. nil stands for the
	// sKNN graph of the points' K nearest neighbours.
	Graph *neighbors.Graph
	// Neighbors are the nearest of each point, K or more, and Found those in the
	// embedding, where they are known; nil has them searched for.
	Neighbors, Found *neighbors.Neighbors

	// Seed decides what is drawn: the samples, the points that are classified, and
	// the negatives of InfoNC-t-SNE.
	Seed uint64
	// Device computes what looks at all pairs of points; nil is the CPU. Of a sample of
	// Points, it searches the neighbours alone.
	Device *Device
	// Measured, if not nil, is called when a metric has been measured, with the
	// time that it took.
	Measured func(m Metric, took time.Duration)
}

// LossOptions are the constants of the expected losses.
type LossOptions struct {
	// Negatives is the number of negatives per edge; 0 means 5.
	Negatives int
	// ZBar is the normalisation constant Z̄ of a further loss of Neg-t-SNE; 0
	// leaves it out.
	ZBar float64
	// LearntZ is the constant that NC-t-SNE has learnt, times n(n−1), for a further
	// loss of NC-t-SNE; 0 leaves it out.
	LearntZ float64
	// Rho is InfoNC-t-SNE's ρ; 0 means 1.
	Rho float64
	// Clamp bounds the arguments of logarithms from below, 0 ≤ Clamp < 1. At 0 a
	// bound remains that keeps the arithmetic finite.
	Clamp float64
}

// Figures say how good an embedding is. What was skipped, cannot be measured for
// want of something, or is not defined, is nil.
//
// The fields that end in Error are the standard errors of figures that are estimated
// from a sample of Options.Points: how far they lie, in the root mean square, from what
// all points would give. Of an exact figure they are nil.
type Figures struct {
	Trustworthiness        *float64 `json:"trustworthiness,omitempty"` // see the function; only if K < n/2
	TrustworthinessError   *float64 `json:"trustworthiness_error,omitempty"`
	KNNRecall              *float64 `json:"knn_recall,omitempty"` // of K neighbours
	KNNRecallError         *float64 `json:"knn_recall_error,omitempty"`
	Spearman               *float64 `json:"spearman,omitempty"`           // of distances
	PartitionFunction      *float64 `json:"partition_function,omitempty"` // from 0 to n(n−1)
	PartitionFunctionError *float64 `json:"partition_function_error,omitempty"`
	KL                     *float64 `json:"kl,omitempty"` // between graph and embedding, in nats
	KLError                *float64 `json:"kl_error,omitempty"`
	Accuracy               *float64 `json:"accuracy,omitempty"` // of a kNN classifier
	AccuracyError          *float64 `json:"accuracy_error,omitempty"`
	Losses                 *Losses  `json:"losses,omitempty"`
}

// Losses are what training on the graph expects per edge (ExpectedLosses,
// ExpectedInfoNC).
type Losses struct {
	Neg          float64  `json:"neg"` // with c = 1
	NegError     *float64 `json:"neg_error,omitempty"`
	NegZBar      *float64 `json:"neg_z_bar,omitempty"` // with LossOptions.ZBar
	NegZBarError *float64 `json:"neg_z_bar_error,omitempty"`
	NC           *float64 `json:"nc,omitempty"` // with the partition function as its constant
	NCError      *float64 `json:"nc_error,omitempty"`
	// LearntZ is LossOptions.LearntZ, and NCLearntZ the loss with it.
	LearntZ        *float64 `json:"learnt_z,omitempty"`
	NCLearntZ      *float64 `json:"nc_learnt_z,omitempty"`
	NCLearntZError *float64 `json:"nc_learnt_z_error,omitempty"`
	InfoNC         float64  `json:"infonc"`       // with LossOptions.Rho
	InfoNCError    float64  `json:"infonc_error"` // its standard error
	UMAP           float64  `json:"umap"`
	UMAPError      *float64 `json:"umap_error,omitempty"`
}

// Measure measures an embedding [n, d] of points [n, D]. What is about the points
// is left out if they are nil: recall (unless their Neighbors are known),
// correlation, trustworthiness, and, without a Graph, divergence and losses.
//
// It takes O(n²) operations for up to ExactPoints points. Of more, a sample is drawn
// (Options.Points). Errors wrap ErrInput or ErrNotFinite, and ErrUndefined if there are
// too few points for K neighbours each, or are the device's. If ctx ends, they are its
// error, and the figures measured until then are returned with it.
func Measure(ctx context.Context, points, embedding *data.Matrix, o Options) (*Figures, error) {
	m, err := newMeasurement(points, embedding, o)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct {
		metric  Metric
		measure func(ctx context.Context) error
	}{
		{MetricRecall, m.recall},
		{MetricSpearman, m.spearman},
		{MetricPartition, m.partition},
		{MetricKL, m.divergence},
		{MetricAccuracy, m.accuracy},
		{MetricTrustworthiness, m.trustworthiness},
		{MetricLosses, m.losses},
	} {
		if o.Skip&step.metric != 0 {
			continue
		}
		start, before := time.Now(), m.figures
		err := ctx.Err()
		if err == nil {
			err = step.measure(ctx)
		}
		if err != nil {
			return &m.figures, err
		}
		if o.Measured != nil && m.figures != before {
			o.Measured(step.metric, time.Since(start))
		}
	}
	return &m.figures, nil
}

// A measurement is one call of Measure. What several figures need is computed when
// the first of them is.
type measurement struct {
	Options
	points, embedding *data.Matrix // points may be nil
	sample            []int        // rows of the points that count; nil: all
	ranked            []int        // those of them that trustworthiness and losses are about
	found             []int32      // the nearest of the sample in the embedding
	sums              []float64    // of the sample, those of the similarities to all others
	z                 *Estimate    // the partition function
	figures           Figures
}

func newMeasurement(points, embedding *data.Matrix, o Options) (*measurement, error) {
	n, err := rows(embedding, "embedding")
	if err != nil {
		return nil, err
	}
	if points != nil {
		if of, err := rows(points, "data"); err != nil {
			return nil, err
		} else if of != n {
			return nil, fmt.Errorf("%w: the data have %d points, the embedding has %d", ErrInput, of, n)
		}
	}
	if o.K == 0 {
		o.K = DefaultK
	}
	if o.Sample == 0 {
		o.Sample = DefaultSample
	}
	if o.Losses.Negatives == 0 {
		o.Losses.Negatives = DefaultNegatives
	}
	if o.Losses.Rho == 0 {
		o.Losses.Rho = 1
	}
	switch {
	case o.K < 1:
		return nil, fmt.Errorf("%w: %d neighbours; give a number from 1", ErrInput, o.K)
	case o.Points > 0 && o.Points < fewestSampled:
		return nil, fmt.Errorf("%w: a sample of %d points; give %d or more, 0 for %d or a negative number for all", ErrInput, o.Points, fewestSampled, DefaultPoints)
	case o.Graph != nil && o.Graph.N != n:
		return nil, fmt.Errorf("%w: the graph has %d points, the embedding has %d", ErrInput, o.Graph.N, n)
	}
	if o.Graph != nil {
		if err := o.Graph.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
	}
	if err := o.Labels.Check(n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	for _, nb := range []*neighbors.Neighbors{o.Neighbors, o.Found} {
		if nb != nil && (nb.N != n || nb.K < o.K || len(nb.Index) != n*nb.K) {
			return nil, fmt.Errorf("%w: the neighbours known are %d of %d points; %d or more of %d points are needed", ErrInput, nb.K, nb.N, o.K, n)
		}
	}
	m := &measurement{Options: o, points: points, embedding: embedding}
	m.sample, m.ranked = o.drawSample(n)
	return m, nil
}

// keep keeps a figure, with its error if it comes from a sample.
func (m *measurement) keep(e Estimate, mean, standardError **float64) {
	*mean = &e.Mean
	if m.sample != nil {
		*standardError = &e.Error
	}
}

// average returns f of the sum of counts and the number of points that have them, or, of a
// sample, the mean of f of each, estimated.
func (m *measurement) average(counts []int, f func(count, points float64) float64) Estimate {
	if m.sample != nil {
		values := make([]float64, len(counts))
		for q, c := range counts {
			values[q] = f(float64(c), 1)
		}
		return estimateMean(values, m.embedding.N)
	}
	sum := 0
	for _, c := range counts {
		sum += c
	}
	return Estimate{Mean: f(float64(sum), float64(len(counts)))}
}

// all returns the K nearest neighbours of all points. known are more of them, or
// nil; the search remembers what it finds there.
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

// fewPoints is the error about points without enough others.
func fewPoints(n, k int) error {
	return fmt.Errorf("%w: %d points do not have %d neighbours each; give more points or a smaller K", ErrUndefined, n, k)
}

// nearestInEmbedding is nearest in the embedding, which is searched once.
func (m *measurement) nearestInEmbedding(ctx context.Context) (index []int32, err error) {
	if m.found == nil {
		m.found, err = m.nearest(ctx, m.embedding, &m.Found)
	}
	return m.found, err
}

func (m *measurement) recall(ctx context.Context) error {
	if m.points == nil && m.Neighbors == nil {
		return nil
	}
	near, err := m.nearest(ctx, m.points, &m.Neighbors)
	if err != nil {
		return err
	}
	found, err := m.nearestInEmbedding(ctx)
	if err != nil {
		return err
	}
	hits, err := hitsOf(near, found, m.K, m.embedding.N)
	if err != nil {
		return err
	}
	share := m.average(hits, func(count, points float64) float64 { return count / (points * float64(m.K)) })
	m.keep(share, &m.figures.KNNRecall, &m.figures.KNNRecallError)
	return nil
}

// set returns a function that keeps a figure, unless there is an error.
func set(to **float64) func(v float64, err error) error {
	return func(v float64, err error) error {
		if err == nil {
			*to = &v
		}
		return err
	}
}

func (m *measurement) spearman(ctx context.Context) error {
	if m.points == nil || m.points.N < 3 {
		return nil
	}
	err := set(&m.figures.Spearman)(Spearman(ctx, m.points, m.embedding, m.Sample, m.Seed, m.Device))
	if errors.Is(err, ErrUndefined) {
		return nil // all distances of one side are equal
	}
	return err
}

// sum returns the partition function.
func (m *measurement) sum(ctx context.Context) (z Estimate, err error) {
	if m.z != nil {
		return *m.z, nil
	}
	if m.sample == nil {
		z.Mean, err = PartitionFunction(ctx, m.embedding.X, m.embedding.D, m.Device)
	} else if m.sums, err = rowSums(ctx, m.embedding, m.sample); err == nil {
		n := m.embedding.N
		mean := estimateMean(m.sums, n)
		z = Estimate{mean.Mean * float64(n), mean.Error * float64(n)}
	}
	if err == nil {
		m.z = &z
	}
	return z, err
}

func (m *measurement) partition(ctx context.Context) error {
	z, err := m.sum(ctx)
	if err == nil {
		m.keep(z, &m.figures.PartitionFunction, &m.figures.PartitionFunctionError)
	}
	return err
}

// graph returns the graph; there may be none, and it may have no edges.
func (m *measurement) graph(ctx context.Context) (*neighbors.Graph, error) {
	if m.Graph == nil && m.points != nil {
		near, err := m.all(ctx, m.points, &m.Neighbors)
		if err != nil {
			return nil, err
		}
		if m.Graph, err = neighbors.FromNeighbors(near); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
	}
	return m.Graph, nil
}

func (m *measurement) divergence(ctx context.Context) error {
	g, err := m.graph(ctx)
	if err != nil || g == nil || g.Edges() == 0 {
		return err
	}
	z, err := m.sum(ctx)
	if err != nil || z.Mean == 0 {
		return err // 0 where all points are too far from each other for single precision
	}
	if m.sample == nil {
		heads, tails := g.EdgeList()
		return set(&m.figures.KL)(KL(ctx, heads, tails, m.embedding.X, m.embedding.D, z.Mean, m.Device))
	}
	kl, err := m.sampleDivergence(ctx, z.Mean)
	if err == nil && kl != nil {
		m.keep(*kl, &m.figures.KL, &m.figures.KLError)
	}
	return err
}

// accuracy is KNNAccuracy of no more held-out points than the sample has. These are then
// a sample of those that are held out; if there are no more, nothing is estimated.
func (m *measurement) accuracy(ctx context.Context) error {
	rows, labels := m.Labels.Known()
	count := int(AccuracyTest * float64(len(rows)))
	if count == 0 || len(rows)-count <= AccuracyK || !labels.Categorical() {
		return nil
	}
	embedding := pick(m.embedding, rows)
	test, known, err := drawTest(embedding, labels.Class, AccuracyK, AccuracyTest, m.Seed)
	if err != nil {
		return err
	}
	held := len(test)
	if m.sample != nil {
		test = test[:min(held, len(m.sample))] // in random order
	}
	share, err := accuracy(ctx, pickClassified(embedding, labels.Class, known), pickClassified(embedding, labels.Class, test), AccuracyK, m.Device)
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

func (m *measurement) trustworthiness(ctx context.Context) error {
	if m.points == nil || 2*m.K >= m.points.N {
		return nil
	}
	index, err := m.nearestInEmbedding(ctx)
	if err != nil {
		return err
	}
	var ranks []int32
	if m.sample == nil {
		ranks, err = neighbors.Ranks(ctx, m.points, index, m.K, neighbors.Options{Device: m.Device})
	} else {
		var some []int32
		for _, i := range m.ranked {
			q, _ := slices.BinarySearch(m.sample, i)
			some = append(some, index[q*m.K:(q+1)*m.K]...)
		}
		ranks, err = neighbors.RanksOf(ctx, m.points, m.ranked, some, m.K)
	}
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	trust := m.average(penaltiesOf(ranks, m.K), func(count, points float64) float64 { return trustworthiness(count, points, m.points.N, m.K) })
	m.keep(trust, &m.figures.Trustworthiness, &m.figures.TrustworthinessError)
	return nil
}

// The loss of InfoNC-t-SNE is estimated from about infoNCPairs negatives over
// all edges, but from no more than infoNCDraws sets of them for one edge.
const (
	infoNCPairs = 1 << 24
	infoNCDraws = 1000
)

func (m *measurement) losses(ctx context.Context) error {
	g, err := m.graph(ctx)
	if err != nil || g == nil || g.Edges() == 0 || m.embedding.N < 2 {
		return err
	}
	z, err := m.sum(ctx)
	if err != nil {
		return err
	}
	var l Losses
	o, n := m.Losses, float64(m.embedding.N)
	var discriminators []Discriminator
	var into [][2]**float64 // a loss and its error
	add := func(d Discriminator, loss, standardError **float64) {
		discriminators, into = append(discriminators, d), append(into, [2]**float64{loss, standardError})
	}
	var neg, umap *float64
	add(Neg(1), &neg, &l.NegError)
	add(UMAP(), &umap, &l.UMAPError)
	if o.ZBar != 0 {
		add(Neg(o.ZBar*float64(o.Negatives)/(n*n)), &l.NegZBar, &l.NegZBarError)
	}
	if z.Mean > 0 {
		add(NC(z.Mean/(n*(n-1)), o.Negatives), &l.NC, &l.NCError)
	}
	if o.LearntZ != 0 {
		l.LearntZ = &o.LearntZ
		add(NC(o.LearntZ/(n*(n-1)), o.Negatives), &l.NCLearntZ, &l.NCLearntZError)
	}
	heads, tails := g.EdgeList()
	var estimates []Estimate
	if m.sample == nil {
		var values []float64
		values, err = ExpectedLosses(ctx, heads, tails, m.embedding.X, m.embedding.D, o.Negatives, o.Clamp, discriminators, m.Device)
		for _, v := range values {
			estimates = append(estimates, Estimate{Mean: v})
		}
	} else {
		estimates, err = m.sampleLosses(ctx, discriminators)
	}
	if err != nil || estimates == nil {
		return err
	}
	for k, e := range estimates {
		m.keep(e, into[k][0], into[k][1])
	}
	l.Neg, l.UMAP = *neg, *umap
	draws := min(infoNCDraws, max(2, infoNCPairs/len(heads)/o.Negatives))
	estimate, err := ExpectedInfoNC(ctx, heads, tails, m.embedding.X, m.embedding.D, o.Negatives, o.Rho, o.Clamp, draws, m.Seed, m.Device)
	if err != nil {
		return err
	}
	l.InfoNC, l.InfoNCError = estimate.Mean, estimate.Error
	m.figures.Losses = &l
	return nil
}

// HeldOut are points that a model has placed without having been trained on them.
type HeldOut struct {
	Points    *data.Matrix // as the training points; nil leaves the recall out
	Embedding *data.Matrix // their positions
	Labels    *data.Labels // nil leaves the accuracy out
}

// HeldOutFigures say how well held-out points lie among the training points. What
// cannot be measured or is not defined is nil.
type HeldOutFigures struct {
	N int `json:"n"` // held-out points
	// Accuracy is that of a kNN classifier (AccuracyK) of the training points'
	// positions.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// KNNRecall is the share of a point's K nearest training points that are
	// among the nearest in the embedding.
	KNNRecall *float64 `json:"knn_recall,omitempty"`
	// OtherLabels tells that the accuracy is left out because no label of the
	// held-out points occurs among the training points.
	OtherLabels bool `json:"-"`
}

// MeasureHeldOut measures how held-out points lie in an embedding [n, d] of
// training points [n, D], which may be nil. Of the options it takes K, Labels (of
// the training points), Device and Skip. Errors are Measure's.
func MeasureHeldOut(ctx context.Context, points, embedding *data.Matrix, held HeldOut, o Options) (*HeldOutFigures, error) {
	m, err := newMeasurement(points, embedding, o)
	if err != nil {
		return nil, err
	}
	n, err := rows(held.Embedding, "held-out points' embedding")
	if err != nil {
		return nil, err
	}
	if err := held.Labels.Check(n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	if held.Points != nil {
		if _, err := rows(held.Points, "held-out points"); err != nil {
			return nil, err
		}
	}
	f := &HeldOutFigures{N: n}
	if points != nil && held.Points != nil && o.Skip&MetricRecall == 0 {
		if err := m.heldOutRecall(ctx, held, f); err != nil {
			return f, err
		}
	}
	if m.Labels == nil || held.Labels == nil || o.Skip&MetricAccuracy != 0 {
		return f, ctx.Err()
	}
	return f, m.heldOutAccuracy(ctx, held, f)
}

func (m *measurement) heldOutRecall(ctx context.Context, held HeldOut, f *HeldOutFigures) error {
	switch {
	case held.Points.D != m.points.D || held.Embedding.D != m.embedding.D:
		return fmt.Errorf("%w: held-out points of %d values at positions of %d, training points of %d at positions of %d", ErrInput, held.Points.D, held.Embedding.D, m.points.D, m.embedding.D)
	case m.points.N < m.K:
		return fmt.Errorf("%w: among %d training points there are no %d neighbours", ErrUndefined, m.points.N, m.K)
	}
	near, err := neighbors.Search(ctx, m.points, held.Points, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := neighbors.Search(ctx, m.embedding, held.Embedding, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
	if err != nil {
		return err
	}
	return set(&f.KNNRecall)(KNNRecall(near.Index, found.Index, m.K, m.embedding.N))
}

func (m *measurement) heldOutAccuracy(ctx context.Context, held HeldOut, f *HeldOutFigures) error {
	if _, known := m.Labels.Known(); !known.Categorical() {
		return nil
	}
	rows, known := data.JoinLabels(m.Labels, held.Labels).Known()
	// The training points come first.
	n := len(m.Labels.Class)
	first, _ := slices.BinarySearch(rows, n)
	tests := slices.Clone(rows[first:])
	for k := range tests {
		tests[k] -= n
	}
	train := classified{pick(m.embedding, rows[:first]), known.Class[:first]}
	test := classified{pick(held.Embedding, tests), known.Class[first:]}
	if train.N < AccuracyK || test.N == 0 {
		return nil
	}
	if !slices.ContainsFunc(test.class, func(c int32) bool { return slices.Contains(train.class, c) }) {
		f.OtherLabels = true
		return nil
	}
	return set(&f.Accuracy)(HeldOutAccuracy(ctx, train.Matrix, train.class, test.Matrix, test.class, AccuracyK, m.Device))
}
