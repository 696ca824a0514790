package cne

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/model"
)

// A Neighborhood is what an embedding is to preserve: points, and which of them are
// neighbours.
type Neighborhood struct {
	// Input are the points as they were scaled. A network sees them, unless
	// Options.OnComponents says otherwise; where none does, Prepare and Complete let
	// go of them, for they may be most of the memory, and Input is nil.
	Input *data.Matrix
	// Stored has the same points where they are not in memory (data.Dataset.Stored); then
	// Input is nil, unless the points themselves turn out to be needed. Prepare and
	// Complete let go of it, too.
	Stored data.Source
	// Points is the space in which neighbours are near: Input, or its principal
	// components, which PCA then gives of any points.
	Points *data.Matrix
	PCA    *pca.PCA
	// Nearest has the nearest neighbours of each point, as many as the graph needs
	// or more; nil if the graph is the caller's own.
	Nearest *neighbors.Neighbors
	// Recall is an estimate of the share of the nearest that an approximate search
	// has found; nil if the search was exact.
	Recall *neighbors.Recall
	// Graph is the symmetric kNN graph, or the caller's own.
	Graph *neighbors.Graph
	// Before is what was done to the points before they became Input; nil if
	// nothing was. Embeddings keep it for new points.
	Before *model.Preprocessing

	// PCATime and GraphTime are what the principal components and the graph took.
	PCATime, GraphTime time.Duration

	maps *data.Matrix // eigenmaps of Graph, once they were asked for
}

// Prepare scales points, finds their neighbours and makes the graph, as the options
// say. It does not change the points. The names of their columns, and their Offset,
// are kept for new points. Embed does it first.
func Prepare(ctx context.Context, points *data.Matrix, o Options) (*Neighborhood, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	return PrepareSet(ctx, &data.Dataset{Points: points.Clone()}, o)
}

// PrepareSet is Prepare for the points of a set, which it takes from there and scales in
// place. Those that data.Open has left in their files, as data.Options.BlocksAbove says,
// are gone through a block at a time, so that there may be more of them than memory holds
// where o.Components is below their width and a table is trained; the files must stay the
// same until PrepareSet returns, or the error is data.ErrChanged.
func PrepareSet(ctx context.Context, set *data.Dataset, o Options) (*Neighborhood, error) {
	n, d := set.Dims()
	if n < 1 || d < 1 {
		return nil, fmt.Errorf("%w: there are none", ErrPoints)
	}
	if err := o.Check(n); err != nil {
		return nil, err
	}
	if set.Points != nil {
		dense, err := o.Densify(set.Points)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPoints, err)
		}
		set.Points = dense
	}
	columns := set.Columns()
	scaler, err := set.Scale(ctx, cmp.Or(o.Scaling, data.ScaleUnit))
	if err == nil {
		err = set.Normalize(ctx, o.GraphMetric, scaler)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, data.ErrOption), errors.Is(err, data.ErrSparse):
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	default:
		return nil, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	h := &Neighborhood{Input: set.Points, Stored: set.Stored, Before: &model.Preprocessing{
		Width: d, Columns: slices.Clone(columns), Scaler: scaler, Metric: o.GraphMetric,
	}}
	set.Points, set.Stored = nil, nil
	if err := h.Complete(ctx, &o, 0); err != nil {
		return nil, err
	}
	return h, nil
}

// checkPoints refuses what is no matrix of points.
func checkPoints(m *data.Matrix) error {
	if m == nil || m.N < 1 || m.D < 1 || m.CSR == nil && (len(m.X)/m.D != m.N || len(m.X)%m.D != 0) {
		return fmt.Errorf("%w: there are none, or N·D is not the length of X", ErrPoints)
	}
	return nil
}

// Source returns the points as they were scaled, Input or Stored; nil if they were let
// go of.
func (h *Neighborhood) Source() data.Source {
	if h.Input == nil {
		return h.Stored
	}
	return h.Input
}

// Densify returns the points as a run takes them before they are scaled: sparse points from
// which no principal components are to be taken become dense, which may take more memory
// than there is (data.ErrSparse); others stay as they are.
func (o *Options) Densify(points *data.Matrix) (*data.Matrix, error) {
	if points.CSR == nil || o.Reduces(points.N, points.D) > 0 {
		return points, nil
	}
	dense, err := points.Dense()
	if err == nil {
		o.log("made the sparse points dense, since no principal components are taken", "points", points.N, "width", points.D)
	}
	return dense, err
}

// Complete finds what is nil of Points, Nearest and Graph, given Input, or Stored, and
// Before; what is there already, such as what an earlier run has found, is taken as it
// is. Nearest gets at least so many neighbours, which a measure of quality may want more
// of than the graph; if it is there already, it must have as many. When ctx ends, so does
// Complete, with ctx.Err().
func (h *Neighborhood) Complete(ctx context.Context, o *Options, atLeast int) error {
	n, err := h.size()
	if err != nil {
		return err
	}
	if err := o.checkGraph(n); err != nil {
		return err
	}
	if o.Graph != nil {
		h.Graph = o.Graph
	}
	k := atLeast
	if h.Graph == nil {
		k = max(k, cmp.Or(o.Neighbors, DefaultNeighbors))
	}
	if n <= max(k, 1) {
		return fmt.Errorf("%w: %d points do not have %d neighbours each; give more points, or ask for fewer neighbours", ErrPoints, n, max(k, 1))
	}
	if nb := h.Nearest; nb != nil && (nb.N != n || nb.K < k) {
		return fmt.Errorf("%w: there are %d neighbours of %d points, but %d of %d are needed", ErrPoints, nb.K, nb.N, k, n)
	}
	if err := h.collect(ctx, o); err != nil {
		return err
	}
	if err := h.checkEqual(ctx, o); err != nil {
		return err
	}
	if h.Points == nil {
		if err := h.reduce(ctx, o); err != nil {
			return err
		}
	}
	h.Stored = nil
	if o.releasesInput() {
		h.Input = nil // the search for neighbours needs the memory more
	}
	start := time.Now()
	defer func() { h.GraphTime = time.Since(start) }()
	if h.Nearest == nil && k > 0 {
		search, how := neighbors.Options{Search: o.Search, Seed: o.Seed, Device: o.Device}, []any{"points", n, "k", k}
		approximate := o.Search.Approximates(n, h.Points.D, k)
		if approximate {
			how = append(how, "search", "approximate, on the CPU")
		}
		o.log("searching the nearest neighbours", how...)
		var err error
		h.Nearest, err = neighbors.KNN(ctx, h.Points, k, search)
		if errors.Is(err, neighbors.ErrNotFinite) && h.PCA != nil {
			return fmt.Errorf("%w: the principal components are too large for float32; scale the points (%w)", ErrPoints, err)
		}
		if errors.Is(err, neighbors.ErrNotFinite) {
			return fmt.Errorf("%w: %w", ErrPoints, err)
		}
		if err != nil {
			return err
		}
		if approximate {
			if h.Recall, err = neighbors.EstimateRecall(ctx, h.Points, h.Nearest, o.Seed, search); err != nil {
				return err
			}
			o.log("estimated the share of the nearest that were found", "recall", h.Recall.Share, "standard error", h.Recall.StdErr)
		}
	}
	if h.Graph == nil {
		var err error
		graphOf := neighbors.FromNeighbors
		if o.SampleEdges {
			graphOf = neighbors.FuzzyGraph
		}
		if h.Graph, err = graphOf(h.Nearest.Nearest(cmp.Or(o.Neighbors, DefaultNeighbors))); err != nil {
			return fmt.Errorf("%w: %w", ErrPoints, err)
		}
	}
	return ctx.Err()
}

// size returns the number of the points, if they are some.
func (h *Neighborhood) size() (n int, err error) {
	from := h.Points
	if from == nil {
		from = h.Input
	}
	if from == nil && h.Stored != nil {
		n, _ = h.Stored.Dims()
		return n, nil
	}
	if err := checkPoints(from); err != nil {
		return 0, err
	}
	return from.N, nil
}

// collect reads stored points into memory if they themselves are needed.
func (h *Neighborhood) collect(ctx context.Context, o *Options) (err error) {
	if h.Stored == nil || h.Input != nil {
		return nil
	}
	if n, d := h.Stored.Dims(); o.Reduces(n, d) == 0 || !o.releasesInput() {
		h.Input, err = data.Collect(ctx, h.Stored)
	}
	return err
}

// checkEqual refuses points for a network that are all equal, and warns of those whose
// neighbours are to be found.
func (h *Neighborhood) checkEqual(ctx context.Context, o *Options) error {
	points := h.Source()
	if points == nil {
		return nil
	}
	equal, err := data.AllEqual(ctx, points)
	if err != nil || !equal {
		return err
	}
	if o.network() {
		return ErrEqualPoints
	}
	if n, _ := points.Dims(); h.Graph == nil && o.Log != nil {
		o.Log.Warn("all points are equal, so that each is as near as any other and chance decides where they lie", "points", n)
	}
	return nil
}

// Reduces returns how many principal components the graph is built on for n points
// of d values; 0 means the points themselves.
func (o *Options) Reduces(n, d int) int {
	if c := o.components(); c > 0 && c < d {
		return min(c, n)
	}
	return 0
}

// reduce fills in Points.
func (h *Neighborhood) reduce(ctx context.Context, o *Options) (err error) {
	start := time.Now()
	defer func() { h.PCATime = time.Since(start) }()
	points := h.Source()
	n, d := points.Dims()
	components := o.Reduces(n, d)
	if components == 0 {
		h.Points = h.Input
		return nil
	}
	o.log("computing principal components", "from", d, "to", components)
	if h.Input != nil && h.Input.CSR != nil {
		h.PCA, err = pca.FitSparse(ctx, h.Input, components, o.Seed)
	} else {
		h.PCA, err = pca.Fit(ctx, points, components, o.Device)
	}
	if err != nil {
		return err
	}
	h.Points, err = h.PCA.Transform(ctx, points, o.Device)
	return err
}

// releasesInput tells whether nothing needs the input once neighbours are to be
// looked for: its n·D values may be most of the memory.
func (o *Options) releasesInput() bool { return !o.network() || o.OnComponents }

// log notes what takes long.
func (o *Options) log(message string, args ...any) {
	if o.Log != nil {
		o.Log.Info(message, args...)
	}
}
