package quality

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/elementary"
	"cne/internal/kind"
)

// A Metric is a figure that Measure returns; several are joined by |.
type Metric uint

// The metrics.
const (
	MetricRecall Metric = 1 << iota
	MetricSpearman
	MetricPartition
	MetricKL
	MetricAccuracy
	MetricTrustworthiness
	MetricDensity
)

// Figures are the quality figures of an embedding. A figure that was skipped, needs
// missing input, or is undefined, is nil.
//
// Fields that end in Error are standard errors of figures estimated from a sample
// (Options.Sample): the root mean square deviation from the figure of all points. They
// are nil for exact figures. They do not include what an approximate search for
// neighbours misses (Options.Neighbors).
type Figures struct {
	Trustworthiness        *float64 `json:"trustworthiness,omitempty"` // see the function; only if K < n/2
	TrustworthinessError   *float64 `json:"trustworthiness_error,omitempty"`
	KNNRecall              *float64 `json:"knn_recall,omitempty"` // of K neighbours
	KNNRecallError         *float64 `json:"knn_recall_error,omitempty"`
	Spearman               *float64 `json:"spearman,omitempty"` // of distances
	SpearmanError          *float64 `json:"spearman_error,omitempty"`
	Density                *float64 `json:"density_correlation,omitempty"` // of the logarithms of local radii
	DensityError           *float64 `json:"density_correlation_error,omitempty"`
	PartitionFunction      *float64 `json:"partition_function,omitempty"` // from 0 to n(n−1)
	PartitionFunctionError *float64 `json:"partition_function_error,omitempty"`
	KL                     *float64 `json:"kl,omitempty"` // between graph and embedding, in nats
	KLError                *float64 `json:"kl_error,omitempty"`
	Accuracy               *float64 `json:"accuracy,omitempty"` // of a kNN classifier
	AccuracyError          *float64 `json:"accuracy_error,omitempty"`
}

// A Figure describes one of the Figures.
type Figure struct {
	Metric Metric
	// Key is the figure's name in files; its standard error has "_error" added.
	Key string
	// Option is the key of the section quality of a configuration that asks for the figure; ""
	// where only cne evaluate measures it.
	Option string
	// Title is the name for readers, and Short a shorter one, or "". Format is Printf's. Unit
	// is the unit of an axis.
	Title, Short, Format, Unit string
	// Meaning explains the figure in one or two sentences.
	Meaning string
	// Better is 1 if larger is better, −1 if smaller is, and 0 if neither is.
	Better int
	// Wide reports whether the figure may span orders of magnitude.
	Wide  bool
	Needs Needs
	// K returns the figure's number of neighbours for Options.K. It is nil if the figure does
	// not depend on neighbours.
	K func(k int) int
	// Of returns the figure and its standard error; each is nil if missing.
	Of func(f *Figures) (value, standardError *float64)

	measure func(m *measurement, ctx context.Context) // fails as kind.Need does
}

// Needs are the inputs of a figure in addition to the embedding, joined by |.
type Needs uint

const (
	NeedsPoints Needs = 1 << iota
	NeedsNeighbors
	NeedsGraph
	NeedsLabels

	NeedsNone Needs = 0
)

// table has all figures. A new figure needs a line here, its fields in Figures, and a
// method that measures it.
var table = []Figure{
	{
		Metric: MetricPartition, Key: "partition_function", Option: "partition", Title: "partition function", Format: "%.4g", Wide: true,
		Meaning: "The sum of the similarities 1/(1 + d²) of all ordered pairs of points at distance d. The closer the points are, the larger it is, up to n(n − 1); neither is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.PartitionFunction, f.PartitionFunctionError },
		measure: (*measurement).partition,
	}, {
		Metric: MetricRecall, Key: "knn_recall", Option: "recall", Title: "kNN recall", Format: "%.4f", Better: 1,
		Needs: NeedsNeighbors, K: func(k int) int { return k },
		Meaning: "The share of each point's k nearest neighbours in the data that are also among its k nearest in the embedding, on average. Where several points are equally near in the data, any of them is right. From 0 to 1, higher is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.KNNRecall, f.KNNRecallError },
		measure: (*measurement).recall,
	}, {
		Metric: MetricTrustworthiness, Key: "trustworthiness", Title: "trustworthiness", Format: "%.4f", Better: 1,
		Needs: NeedsPoints, K: func(k int) int { return k },
		Meaning: "How far neighbours in the embedding are neighbours in the data: 1 if all are, less the farther away the others are in the data. From 0 to 1, higher is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.Trustworthiness, f.TrustworthinessError },
		measure: (*measurement).trustworthiness,
	}, {
		Metric: MetricSpearman, Key: "spearman", Option: "spearman_sample", Title: "Spearman correlation", Short: "Spearman",
		Format: "%.3f", Better: 1, Needs: NeedsPoints,
		Meaning: "The rank correlation between distances in the data and in the embedding: how well near and far are kept over the whole map. From −1 to 1, higher is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.Spearman, f.SpearmanError },
		measure: (*measurement).spearman,
	}, {
		Metric: MetricDensity, Key: "density_correlation", Option: "density", Title: "density correlation", Format: "%.3f", Better: 1,
		Needs: NeedsPoints | NeedsNeighbors, K: func(k int) int { return k },
		Meaning: "The correlation between the logarithms of the local radii in the data and in the embedding: how well dense and sparse places are kept. The local radius of a point is the mean squared distance to its k nearest neighbours. From −1 to 1, higher is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.Density, f.DensityError },
		measure: (*measurement).density,
	}, {
		Metric: MetricKL, Key: "kl", Option: "kl", Title: "KL divergence", Format: "%.4g", Unit: "nats", Better: -1, Needs: NeedsGraph,
		Meaning: "How much the similarities of points in the embedding differ from the similarities in the graph, as Kullback–Leibler divergence in nats. Lower is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.KL, f.KLError },
		measure: (*measurement).divergence,
	}, {
		Metric: MetricAccuracy, Key: "accuracy", Option: "accuracy", Title: "kNN accuracy", Format: "%.4f", Better: 1,
		Needs: NeedsLabels, K: func(int) int { return AccuracyK },
		Meaning: "The share of held-out points whose class most of their nearest neighbours in the embedding have, too. From 0 to 1, higher is better.",
		Of:      func(f *Figures) (v, e *float64) { return f.Accuracy, f.AccuracyError },
		measure: (*measurement).accuracy,
	},
}

// Table returns all figures.
func Table() []Figure { return slices.Clone(table) }

// DisplayTable returns the figures of Table in the order for readers: figures of the
// embedding and its graph come last.
func DisplayTable() []Figure {
	first := slices.DeleteFunc(Table(), func(f Figure) bool { return f.OfEmbedding() })
	last := slices.DeleteFunc(Table(), func(f Figure) bool { return !f.OfEmbedding() })
	return append(first, last...)
}

// PlusMinus returns a standard error as text to follow a figure, such as " ± 0.01". For
// nil, the error of an exact figure, it returns "".
func PlusMinus(standardError *float64) string {
	if standardError == nil {
		return ""
	}
	return fmt.Sprintf(" ± %.1g", *standardError)
}

// Heading returns Short, or Title.
func (f *Figure) Heading() string { return cmp.Or(f.Short, f.Title) }

// OfEmbedding reports whether the figure needs nothing but the embedding and its graph.
func (f *Figure) OfEmbedding() bool { return f.Needs&^NeedsGraph == 0 }

// Where returns the metrics that holds selects, joined by |.
func Where(holds func(f *Figure) bool) (all Metric) {
	for i := range table {
		if holds(&table[i]) {
			all |= table[i].Metric
		}
	}
	return all
}

// OfNeighbors returns text such as " (k = 15)" for a figure about neighbours. If the
// points are principal components, it is text such as " (k = 15, of the 50 components)".
func (f *Figure) OfNeighbors(k, components int) string {
	if f.K == nil {
		return ""
	}
	if components > 0 && f.Needs&(NeedsPoints|NeedsNeighbors) != 0 {
		return fmt.Sprintf(" (k = %d, of the %d components)", f.K(k), components)
	}
	return fmt.Sprintf(" (k = %d)", f.K(k))
}

// Direction returns a comma and words that say which values are better, or "" if neither
// are.
func (f *Figure) Direction() string {
	return []string{", lower is better", "", ", higher is better"}[1+f.Better]
}

// Arrow returns Direction as an arrow after a space.
func (f *Figure) Arrow() string { return []string{" ↓", "", " ↑"}[1+f.Better] }

func (m *measurement) recall(ctx context.Context) {
	near, found := m.nearest(ctx, m.points, &m.Neighbors), m.nearestInEmbedding(ctx)
	var compare func(q, j int, limit float64) float64
	tie := 0.
	if m.points != nil {
		compare, tie = m.compare(m.points), neighbors.Tie(m.points)
	}
	e := kind.Got(fairRecall(near, found, m.K, m.embedding.N, m.embedding.N, compare, tie))
	keep(e, &m.figures.KNNRecall, &m.figures.KNNRecallError)
}

// compare returns neighbors.Compare for the points of the sample and all points.
func (m *measurement) compare(points *data.Matrix) func(q, j int, limit float64) float64 {
	all := neighbors.Compare(points, points)
	if m.sample == nil {
		return all
	}
	return func(q, j int, limit float64) float64 { return all(m.sample[q], j, limit) }
}

// density correlates the logarithms of the local radii, as densMAP does (Narayan, Berger and
// Cho, 2021), with equal weights of the K nearest. Points with K copies do not count.
func (m *measurement) density(ctx context.Context) {
	near, found := m.nearest(ctx, m.points, &m.Neighbors), m.nearestInEmbedding(ctx)
	inData, inEmbedding := m.compare(m.points), m.compare(m.embedding)
	var x, y []float64
	for q := range len(near) / m.K {
		var a, b float64
		for e := q * m.K; e < (q+1)*m.K; e++ {
			v := inData(q, int(near[e]), math.Inf(1))
			if !m.points.Metric.Squared() {
				v = float64(v * v)
			}
			a, b = a+v, b+inEmbedding(q, int(found[e]), math.Inf(1))
		}
		if a > 0 && b > 0 {
			x, y = append(x, elementary.Log(a)), append(y, elementary.Log(b))
		}
	}
	meanX, meanY := estimateMean(x, len(x)).Mean, estimateMean(y, len(y)).Mean
	var xx, yy, xy float64
	for q := range x {
		x[q], y[q] = x[q]-meanX, y[q]-meanY
		xx, yy, xy = xx+float64(x[q]*x[q]), yy+float64(y[q]*y[q]), xy+float64(x[q]*y[q])
	}
	if min(xx, yy) <= 1e-10*float64(len(x)) {
		return // all radii of one side are equal but for rounding
	}
	r := xy / math.Sqrt(xx*yy)
	for q := range x { // the influence of the point on r
		a, b := x[q]/math.Sqrt(xx), y[q]/math.Sqrt(yy)
		x[q] = float64(len(x)) * (float64(a*b) - float64(r/2*(float64(a*a)+float64(b*b))))
	}
	e := Estimate{Mean: r, Error: estimateMean(x, m.embedding.N).Error, Exact: m.sample == nil}
	keep(e, &m.figures.Density, &m.figures.DensityError)
}

func (m *measurement) spearman(ctx context.Context) {
	if m.points.N < 3 {
		return
	}
	// The same sample for every seed: samples differ more than runs.
	e, err := spearman(ctx, m.points, m.embedding, *m.SpearmanSample, 0)
	if errors.Is(err, ErrUndefined) {
		return // all distances of one side are equal
	}
	kind.Check(err)
	keep(e, &m.figures.Spearman, &m.figures.SpearmanError)
}

// sum returns the partition function, or fails as kind.Need does.
func (m *measurement) sum(ctx context.Context) Estimate {
	if m.z != nil {
		return *m.z
	}
	x, n, d := m.embedding.X, m.embedding.N, m.embedding.D
	if m.sample == nil {
		m.z = &Estimate{Mean: kind.Got(PartitionFunction(ctx, x, d)), Exact: true}
	} else {
		m.sums = kind.Got(overRows(ctx, n, m.sample, similarityTerms(x, n, d, true)))
		mean := estimateMean(m.sums, n)
		m.z = &Estimate{Mean: mean.Mean * float64(n), Error: mean.Error * float64(n)}
	}
	return *m.z
}

func (m *measurement) partition(ctx context.Context) {
	keep(m.sum(ctx), &m.figures.PartitionFunction, &m.figures.PartitionFunctionError)
}

func (m *measurement) divergence(ctx context.Context) {
	if m.Graph == nil {
		graph, err := neighbors.FromNeighbors(m.all(ctx, m.points, &m.Neighbors))
		kind.Expect(err == nil, ErrInput, "%w", err)
		m.Graph = graph
	}
	g := m.Graph
	if g.Edges() == 0 {
		return
	}
	z := m.sum(ctx)
	if z.Mean == 0 {
		return // all points are too far from each other for single precision
	}
	kl := &Estimate{Exact: true}
	if m.sample == nil {
		kl.Mean = kind.Got(klOf(ctx, g.Heads(), g.Indices, m.embedding.X, m.embedding.D, z.Mean))
	} else if kl = m.sampleDivergence(ctx, z.Mean); kl == nil {
		return
	}
	keep(*kl, &m.figures.KL, &m.figures.KLError)
}

// accuracy is the share of held-out points that a nearest-neighbour classifier in the
// embedding gets right. It holds out a share AccuracyTest of the points, 10 000 of MNIST's
// 70 000, without regard to class, and classifies at most as many as the sample has. The
// classifier knows the others.
func (m *measurement) accuracy(ctx context.Context) {
	rows, labels := m.Labels.Known()
	held := int(math.Round(AccuracyTest * float64(len(rows))))
	if held == 0 || len(rows)-held < AccuracyK || !labels.Categorical() {
		return
	}
	e := kind.Got(splitAccuracy(ctx, m.embedding.Take(rows), labels.Class, AccuracyK, held, m.Seed, len(m.sample), m.Device))
	keep(e, &m.figures.Accuracy, &m.figures.AccuracyError)
}

func (m *measurement) trustworthiness(ctx context.Context) {
	n := m.points.N
	if 2*m.K >= n {
		return
	}
	index := m.nearestInEmbedding(ctx)
	var ranks []int32
	if m.sample == nil {
		ranks = kind.Got(neighbors.Ranks(ctx, m.points, index, m.K, neighbors.Options{Device: m.Device}))
	} else {
		var some []int32
		for _, i := range m.ranked {
			q, _ := slices.BinarySearch(m.sample, i)
			some = append(some, index[q*m.K:(q+1)*m.K]...)
		}
		ranks = kind.Got(neighbors.RanksOf(ctx, m.points, m.ranked, some, m.K))
	}
	kind.Check(ctx.Err())
	keep(trustworthiness(ranks, m.K, n), &m.figures.Trustworthiness, &m.figures.TrustworthinessError)
}
