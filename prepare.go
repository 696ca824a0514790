package cne

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cne/data"
	"cne/data/neighbors"
)

// A Neighborhood is what an embedding is to preserve: points, and which of them are
// neighbours.
type Neighborhood struct {
	// Input are the points as they were scaled. A network sees them, unless
	// Options.OnComponents says otherwise; where none does, Prepare and Complete let
	// go of them, for they may be most of the memory, and Input is nil.
	Input *data.Matrix
	// Points is the space in which neighbours are near: Input, or its principal
	// components, which PCA then gives of any points.
	Points *data.Matrix
	PCA    *data.PCA
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
	Before *data.Preprocessing

	// PCATime and GraphTime are what the principal components and the graph took.
	PCATime, GraphTime time.Duration

	maps *data.Matrix // those of spectralStart, once they were asked for
}

// Prepare scales points, finds their neighbours and makes the graph, as the options
// say. It does not change the points. The names of their columns, and their Offset,
// are kept for new points. Embed does it first.
func Prepare(ctx context.Context, points *data.Matrix, o Options) (*Neighborhood, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	if err := o.Check(points.N); err != nil {
		return nil, err
	}
	set := &data.Dataset{Points: points.Clone()}
	scaler, err := set.Scale(orElse(o.Scaling, data.ScaleUnit))
	switch {
	case errors.Is(err, data.ErrOption):
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	if err := set.Normalize(o.GraphMetric, scaler); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	h := &Neighborhood{Input: set.Points, Before: &data.Preprocessing{
		Width: points.D, Columns: slices.Clone(points.Columns), Scaler: scaler, Metric: o.GraphMetric,
	}}
	if err := h.Complete(ctx, &o, 0); err != nil {
		return nil, err
	}
	return h, nil
}

// checkPoints refuses what is no matrix of points.
func checkPoints(m *data.Matrix) error {
	if m == nil || m.N < 1 || m.D < 1 || len(m.X)/m.D != m.N || len(m.X)%m.D != 0 {
		return fmt.Errorf("%w: there are none, or N·D is not the length of X", ErrPoints)
	}
	return nil
}

// Complete finds what is nil of Points, Nearest and Graph, given Input and Before; what
// is there already, such as what an earlier run has found, is taken as it is. Nearest
// gets at least so many neighbours, which a measure of quality may want more of than
// the graph; if it is there already, it must have as many. When ctx ends, so does
// Complete, with ctx.Err().
func (h *Neighborhood) Complete(ctx context.Context, o *Options, atLeast int) error {
	from := h.Points
	if from == nil {
		from = h.Input
	}
	if err := checkPoints(from); err != nil {
		return err
	}
	n := from.N
	if err := o.checkGraph(n); err != nil {
		return err
	}
	if o.Graph != nil {
		h.Graph = o.Graph
	}
	k := atLeast
	if h.Graph == nil {
		k = max(k, orElse(o.Neighbors, DefaultNeighbors))
	}
	if n <= max(k, 1) {
		return fmt.Errorf("%w: %d points do not have %d neighbours each; give more points, or ask for fewer neighbours", ErrPoints, n, max(k, 1))
	}
	if nb := h.Nearest; nb != nil && (nb.N != n || nb.K < k) {
		return fmt.Errorf("%w: there are %d neighbours of %d points, but %d of %d are needed", ErrPoints, nb.K, nb.N, k, n)
	}
	if err := h.checkEqual(o); err != nil {
		return err
	}
	if h.Points == nil {
		if err := h.reduce(ctx, o); err != nil {
			return err
		}
	}
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
		if h.Graph, err = neighbors.FromNeighbors(h.Nearest.Nearest(orElse(o.Neighbors, DefaultNeighbors))); err != nil {
			return fmt.Errorf("%w: %w", ErrPoints, err)
		}
	}
	return ctx.Err()
}

// checkEqual refuses points for a network that are all equal, and warns of those whose
// neighbours are to be found.
func (h *Neighborhood) checkEqual(o *Options) error {
	x, d := h.Input.X, h.Input.D
	if !slices.Equal(x[d:], x[:len(x)-d]) { // each point and the next
		return nil
	}
	if o.network() {
		return ErrEqualPoints
	}
	if h.Graph == nil && o.Log != nil {
		o.Log.Warn("all points are equal, so that each is as near as any other and chance decides where they lie", "points", h.Input.N)
	}
	return nil
}

// Reduces returns how many principal components the graph is built on for n points
// of d values; 0 means the points themselves.
func (o *Options) Reduces(n, d int) int {
	if c := orElse(o.Components, DefaultComponents); c > 0 && c < d {
		return min(c, n)
	}
	return 0
}

// reduce fills in Points.
func (h *Neighborhood) reduce(ctx context.Context, o *Options) (err error) {
	start := time.Now()
	defer func() { h.PCATime = time.Since(start) }()
	h.Points = h.Input
	components := o.Reduces(h.Input.N, h.Input.D)
	if components == 0 {
		return nil
	}
	o.log("computing principal components", "from", h.Input.D, "to", components)
	if h.PCA, err = data.FitPCA(ctx, h.Input, components, o.Device); err != nil {
		return err
	}
	h.Points, err = h.PCA.Transform(ctx, h.Input, o.Device)
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
