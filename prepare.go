package cne

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model"
)

// A Neighborhood is what an embedding preserves: points, and the neighbours of each. It is
// not safe for concurrent use.
type Neighborhood struct {
	// Scaled are the scaled points, the input of a network without Options.OnComponents.
	// Otherwise Prepare drops them to save memory, and Scaled is nil.
	Scaled *data.Matrix
	// Reduced has the points between which the graph's distances are measured: Scaled, or its
	// principal components. PCA computes these components for any points.
	Reduced *data.Matrix
	PCA     *pca.PCA
	// Nearest has the nearest neighbours of each point, at least as many as the graph and
	// Options.MinNeighbors need, without their distances. It is nil if none are needed.
	Nearest *neighbors.Neighbors
	// Recall estimates the share of the nearest neighbours that an approximate search
	// found; nil if the search was exact.
	Recall *neighbors.Recall
	// Graph is the symmetric kNN graph, or Options.Graph.
	Graph *neighbors.Graph
	// Preprocessing is what was done to the points to get Scaled; nil if nothing.
	// Embeddings keep it for new points.
	Preprocessing *model.Preprocessing

	// PCATime and GraphTime are the durations of the principal components and the graph.
	PCATime, GraphTime time.Duration
	// GraphDevice says who computed the neighbours: "cpu", or the name of Options.Device and the
	// vendor's. It is empty for what was not computed, but came from the cache or was given.
	GraphDevice string

	alone      []int32      // points that are equally far from all others
	stored     data.Source  // the scaled points if they are not in memory
	components *data.Matrix // of Reduced, [n, Dim], once computed for a pull
}

// A Cache keeps what Prepare finds for later calls with the same points.
type Cache interface {
	// If o wants principal components of h.Source (o.Reduces), Load sets h.Reduced and
	// h.PCA. If k > 0, it sets h.Nearest, with k neighbours of each point, and h.Recall. It
	// reports whether it found all of these.
	Load(ctx context.Context, h *Neighborhood, o *Options, k int) (found bool, err error)
	// Save stores the fields that Load restores. Prepare calls it if Load did not find them.
	Save(h *Neighborhood) error
}

// Prepare scales points, finds their neighbours and makes the graph. It takes the points
// out of the set and scales them in place. Their column names and Offset are kept for new
// points. With Options.Division it takes only the rows that are trained on, and leaves the
// set as it is. Embed calls it first.
//
// Points that file.Read left in their files (file.Options.StreamAbove) are streamed in
// blocks. They need not fit into memory if o reduces them to components and no network
// takes the points themselves. If a file changes before Prepare returns, the error wraps
// data.ErrChanged.
//
// Errors about points wrap ErrPoints (ErrEqualPoints if a network cannot tell them apart),
// and errors about options ErrOption. If ctx is done, Prepare returns ctx.Err().
func Prepare(ctx context.Context, set *data.Dataset, o Options) (_ *Neighborhood, err error) {
	defer kind.Catch(&err)
	n, _ := set.Dims()
	if n < 1 {
		return nil, fmt.Errorf("%w: got none, want at least 2", ErrPoints)
	}
	if set.Stored == nil {
		kind.Check(checkPoints(set.Points))
	}
	if o.Division != nil {
		kind.Check(o.Division.check(n))
		set, _ = set.Take(o.Division.Trained) // check accepts the rows
		n = len(o.Division.Trained)
	}
	kind.Check(o.Check(n))
	k := o.MinNeighbors
	if o.Graph == nil {
		k = max(k, cmp.Or(o.Neighbors, DefaultNeighbors))
	}
	o.ChooseComponents(set.Points != nil && set.Points.CSR != nil, false)
	h := kind.Got(scale(ctx, set, &o))
	kind.Check(o.chooseByContrast(ctx, h))
	found := false
	if o.Cache != nil {
		found = kind.Got(o.Cache.Load(ctx, h, &o, k))
	}
	if found {
		o.logger().Info("principal components and neighbours come from the cache")
	}
	kind.Check(h.reduce(ctx, &o))
	start := time.Now()
	kind.Check(h.findNeighbors(ctx, &o, k))
	collect(n * h.Reduced.D) // the graph gets the memory of the search
	h.GraphTime = time.Since(start)
	if o.Cache != nil && !found {
		kind.Check(o.Cache.Save(h))
	}
	start = time.Now()
	kind.Check(h.makeGraph(ctx, &o))
	h.GraphTime += time.Since(start)
	return h, ctx.Err()
}

// scale takes the points out of a set and scales them.
func scale(ctx context.Context, set *data.Dataset, o *Options) (_ *Neighborhood, err error) {
	defer kind.Catch(&err)
	_, d := set.Dims()
	if m := set.Points; m != nil && m.CSR != nil && o.GraphMetric != data.Precomputed && o.becomeDense(m.N, m.D) {
		cause := cmp.Or(o.needsDense(), "model.input: points")
		dense, err := m.Dense() // fails if memory does not suffice
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPoints, kind.Errorf(data.ErrSparse, "%s: %w, which needs dense points", cause, err))
		}
		o.logger().Info("made the sparse points dense for "+cause, "points", m.N, "width", m.D)
		set.Points = dense
	}
	if o.GraphMetric == data.Precomputed {
		if set.Stored != nil {
			set.Points, err = data.Collect(ctx, set.Stored)
			set.Stored = nil
		}
		if err == nil {
			err = set.CheckDistances()
		}
		kind.Checkf(err, "%w: %w", ErrPoints, err)
		set.Points = set.Points.Relative(nil)
	}
	before := &model.Preprocessing{Width: d, Columns: slices.Clone(set.Columns()), Codings: set.Codings, Metric: o.GraphMetric}
	scaling := cmp.Or(o.Scaling, data.ScaleAuto)
	if scaling == data.ScaleAuto && o.GraphMetric.Direct() && o.GraphMetric != data.Manhattan {
		scaling = data.ScaleUnit // these distances have no use for another
	}
	if o.GraphMetric == data.Jaccard {
		o.logger().Info("graph.metric: jaccard: each point is the set of its columns that are not 0, whatever they hold")
	}
	if before.Scaler, err = data.FitScaler(ctx, set, scaling); err == nil {
		if o.GraphMetric == data.Haversine {
			before.Scaler.Divisor = data.HaversineUnit
		}
		o.logScaling(scaling, before.Scaler, before.Columns)
		err = cmp.Or(set.ScaleBy(before.Scaler), set.Normalize(ctx, o.GraphMetric, before.Scaler))
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, data.ErrOption), errors.Is(err, data.ErrSparse):
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	h := &Neighborhood{Scaled: set.Points, stored: set.Stored, Preprocessing: before}
	set.Points, set.Stored = nil, nil
	return h, nil
}

// checkPoints refuses an invalid matrix.
func checkPoints(m *data.Matrix) error {
	if m == nil || m.N < 1 || m.D < 1 || m.CSR == nil && (len(m.X)/m.D != m.N || len(m.X)%m.D != 0) {
		return fmt.Errorf("%w: got none, or X of another length than N·D", ErrPoints)
	}
	return nil
}

// Source returns the scaled points, or nil after they are dropped.
func (h *Neighborhood) Source() data.Source {
	if h.Scaled == nil {
		return h.stored
	}
	return h.Scaled
}

// Reduces returns the number of principal components on which the graph of n points of d
// values is built; 0 means the points themselves.
func (o *Options) Reduces(n, d int) int {
	above := o.ReducesAbove()
	quick := float64(n)*float64(n)*float64(d) <= maxExactWork && n*d <= maxExactValues
	if d <= above || above == 0 || o.autoComponents() && quick && !o.OnComponents {
		return 0
	}
	return min(o.components(), n)
}

// ReducesAbove returns the width above which points may be reduced by PCA; Reduces says
// whether they are. 0 means that no points are reduced.
func (o *Options) ReducesAbove() int {
	if o.GraphMetric.Angular() && o.autoComponents() && !o.OnComponents {
		return maxAngularWidth
	}
	return o.components()
}

// ChooseComponents replaces AutoComponents for sparse points and for counts of cells. Few of
// their columns are alike, so that components hold little of the variance; they keep
// structure that the distances of the points themselves hide. Sparse points have none if
// they must be dense for other options.
func (o *Options) ChooseComponents(sparse, counts bool) {
	o.spread = o.spread || sparse || counts
	switch {
	case !o.autoComponents() || o.GraphMetric.Direct():
	case counts:
		o.Components = new(DefaultComponents)
	case sparse && o.needsDense() != "":
		o.Components = new(0)
	case sparse:
		o.Components = new(SparseComponents)
	}
}

// alike is the contrast of distances (neighbors.Contrast) above which neighbours of dense points are
// searched among components. Images have .4 to .6, counts of words .5 to .84, cells about .87.
const alike = 0.85

// chooseByContrast replaces AutoComponents for dense points whose distances are all alike, and which
// would be used as they are.
func (o *Options) chooseByContrast(ctx context.Context, h *Neighborhood) (err error) {
	defer kind.Catch(&err)
	n, d := h.Source().Dims()
	if !o.autoComponents() || o.GraphMetric.Direct() || d <= DefaultComponents || o.Reduces(n, d) > 0 {
		return nil
	}
	h.Scaled = kind.Got(data.Collect(ctx, h.Source()))
	if o.areAlike(h.Scaled) {
		o.Components, o.spread = new(DefaultComponents), true
		o.logger().Info("points are hardly nearer to their neighbours than to all others, so neighbours are searched among principal components")
	}
	return nil
}

// areAlike reports whether the distances of points are all alike, since most columns are noise. It
// is false if others have chosen the components or the neighbours, and if points are sparse or not
// in memory.
func (o *Options) areAlike(m *data.Matrix) bool {
	return o.autoComponents() && o.Graph == nil && m != nil && m.CSR == nil && neighbors.Contrast(m) > alike
}

// needsDense returns the option that sparse points do not allow, or "".
func (o *Options) needsDense() string {
	switch {
	case o.Scaling == data.ScaleStandard:
		return "data.scale: standard"
	case !o.GraphMetric.Sparse():
		return "graph.metric: " + string(o.GraphMetric)
	case o.Float64 && o.network() && !o.OnComponents:
		return "model.dtype: float64"
	}
	return ""
}

// becomeDense reports whether n sparse points of d values are made dense: without components,
// for options that need it, and for a network on more columns than a sparse layer can have.
func (o *Options) becomeDense(n, d int) bool {
	return o.Reduces(n, d) == 0 && (o.needsDense() != "" || !o.dropsScaled() && d > model.MaxSparseWidth)
}

func (o *Options) autoComponents() bool {
	return o.Components != nil && *o.Components == AutoComponents
}

// reduce fills in Reduced, unless a cache has done so, and drops the points if no network
// needs them.
func (h *Neighborhood) reduce(ctx context.Context, o *Options) (err error) {
	defer kind.Catch(&err)
	points := h.Source()
	n, d := points.Dims()
	components := o.Reduces(n, d)
	if h.Scaled == nil && (components == 0 || !o.dropsScaled()) {
		h.Scaled = kind.Got(data.Collect(ctx, h.stored))
		points = h.Scaled
	}
	if h.Scaled != nil && (o.GraphMetric == data.Cosine || o.GraphMetric == data.Jaccard) {
		if h.alone = neighbors.Alone(h.Scaled); len(h.alone) > 0 {
			o.logger().Warn("points share no column with any other, and are equally far from all; they are laid apart, next to random points", "points",
				len(h.alone), "first row", h.alone[0]+1)
		}
	}
	switch equal := kind.Got(data.AllEqual(ctx, points)); {
	case equal && o.network():
		return ErrEqualPoints
	case equal && o.Graph == nil:
		o.logger().Warn("all points are identical; the embedding is arbitrary", "points", n)
	}
	start := time.Now()
	switch {
	case components == 0:
		h.Reduced = h.Scaled
		o.GraphMetric.Mark(h.Reduced, h.Preprocessing.Scaler)
	case h.Reduced == nil:
		o.logger().Info("computing principal components", "from", d, "to", components)
		if h.Scaled != nil && h.Scaled.CSR != nil {
			h.PCA, err = pca.FitSparse(ctx, h.Scaled, components, o.Seed)
		} else {
			h.PCA, err = pca.Fit(ctx, points, components)
		}
		kind.Check(err)
		h.Reduced = kind.Got(h.PCA.Transform(ctx, points))
	}
	h.PCATime = time.Since(start)
	o.logVariance(h)
	h.stored = nil
	if o.dropsScaled() {
		h.Scaled = nil
		collect(n * d) // the search for neighbours gets the memory of the points
	}
	return nil
}

// collect collects garbage if there are so many values in it that it is worth the time.
func collect(values int) {
	if values >= 1<<21 {
		runtime.GC()
	}
}

// findNeighbors fills in Nearest, with k neighbours each, unless a cache has done so.
func (h *Neighborhood) findNeighbors(ctx context.Context, o *Options, k int) (err error) {
	if h.Nearest != nil || k == 0 {
		return nil
	}
	n, how := h.Reduced.N, o.searchOptions()
	approximate := h.Reduced.CSR == nil && o.Approximates(n, h.Reduced.D, k)
	details := []any{"points", n, "k", k}
	if o.Graph != nil {
		details = append(details, "for", "the scores")
	}
	switch {
	case approximate:
		details = append(details, "search", "approximate, on the CPU")
	case h.Reduced.CSR != nil:
		details = append(details, "search", "exact, among sparse points, on the CPU")
	}
	o.logger().Info("searching the nearest neighbours", details...)
	watch := o.Device.Watch()
	h.Nearest, err = neighbors.KNN(ctx, h.Reduced, k, how)
	h.GraphDevice = watch()
	switch {
	case errors.Is(err, neighbors.ErrNotFinite) && h.PCA != nil:
		return fmt.Errorf("%w: the principal components are too large for float32; scale the points (%w)", ErrPoints, err)
	case errors.Is(err, neighbors.ErrNotFinite):
		return fmt.Errorf("%w: %w", ErrPoints, err)
	case err == nil && approximate:
		h.Recall, err = neighbors.EstimateRecall(ctx, h.Reduced, h.Nearest, o.Seed, how)
	}
	if err == nil && approximate {
		o.logger().Info("estimated the share of the nearest that were found", "recall", h.Recall.Share, "standard error", h.Recall.StdErr)
	}
	return err
}

func (o *Options) searchOptions() neighbors.Options {
	return neighbors.Options{Search: o.Search, Seed: o.Seed, Device: o.Device}
}

// makeGraph fills in Graph, and drops the neighbours' distances.
func (h *Neighborhood) makeGraph(ctx context.Context, o *Options) (err error) {
	defer kind.Catch(&err)
	near := h.Nearest
	if near != nil { // scores need the indices only
		h.Nearest = &neighbors.Neighbors{N: near.N, K: near.K, Index: near.Index}
	}
	if h.Graph = o.Graph; h.Graph != nil {
		return nil
	}
	graphOf := selection.If(o.SampleEdges, neighbors.FuzzyGraph, neighbors.FromNeighbors)
	near, distinct, spread, err := neighbors.SpreadCopies(ctx, h.Reduced, near.Nearest(cmp.Or(o.Neighbors, DefaultNeighbors)), o.searchOptions())
	kind.Check(err)
	if spread > 0 {
		o.logger().Info("copies of few rows fill the neighbourhoods of points: these are linked to the nearest distinct rows, too", "points",
			spread, "distinct rows", distinct)
	}
	near = neighbors.LayApart(near, h.alone, o.Seed)
	if d := near.Dist2; near.K > 1 && len(d) > 0 {
		farthest := slices.Max(d)
		if equal := selection.Count(d, func(d2 float64) bool { return d2 == farthest }); farthest > 0 && 10*equal > 9*len(d) && math.Abs(neighbors.Contrast(h.Reduced)-1) < 0.02 {
			o.logger().Warn("nearly all points are equally far from each other, so the embedding is arbitrary (graph.metric)", "points", near.N)
		}
	}
	if o.Density > 0 {
		if h.Graph, err = graphOf(near); err == nil {
			err = h.Graph.KeepDensity(near, o.Density)
		}
	} else {
		h.Graph, err = graphOf(near) // its last use: the distances can be collected meanwhile
	}
	kind.Checkf(err, "%w: %w", ErrPoints, err)
	return nil
}

// dropsScaled reports whether the scaled points are dropped before neighbours are
// searched.
func (o *Options) dropsScaled() bool { return !o.network() || o.OnComponents }

// logScaling logs which scaling data.ScaleAuto chose.
func (o *Options) logScaling(wanted data.Scaling, s *data.Scaler, columns []string) {
	switch {
	case wanted != data.ScaleAuto:
	case s.Kind == data.ScaleStandard:
		why := "some of categories"
		if ratio := math.Round(s.SpreadRatio()); ratio > 1 {
			why = fmt.Sprintf("whose spreads differ %.6g-fold", ratio)
		}
		o.logger().Info(fmt.Sprintf("data.scale: standardised %d columns, %s; data.scale: unit keeps them", len(s.SD), why))
	default:
		o.logger().Info(fmt.Sprintf("data.scale: divided all values by %.6g", s.Divisor))
	}
	if column, share := s.Dominant(); column >= 0 && share > mostOfOne && len(s.Spread) > 1 && !o.GraphMetric.Angular() {
		name := fmt.Sprint(column + 1)
		if columns != nil {
			name = columns[column]
		}
		o.logger().Warn(fmt.Sprintf("column %q alone makes %.1f %% of the variance of the points; data.scale: standard gives each column the same weight", name, 100*share))
	}
}

// mostOfOne is the share of the variance above which a single column is reported.
const mostOfOne = 0.9

// enoughVariance is the share of the variance below which principal components are
// reported with a warning.
const enoughVariance = 0.6

// logVariance logs the share of the variance that the principal components hold. Distances are
// compared only where a warning depends on it.
func (o *Options) logVariance(h *Neighborhood) {
	p := h.PCA
	if o.Log == nil || p == nil || p.TotalVariance == 0 {
		return
	}
	share := selection.Sum(p.Variance) / p.TotalVariance
	message := fmt.Sprintf("the %d principal components hold %.0f %% of the variance", p.K, 100*share)
	if share < enoughVariance && !o.spread && !o.areAlike(h.Scaled) {
		if h.Scaled != nil { // or it is not known whether distances say anything
			message += "; graph.pca: 0 searches neighbours among the points themselves"
		}
		o.logger().Warn(message)
		return
	}
	o.logger().Info(message)
}

// discard logs nothing.
var discard = slog.New(slog.DiscardHandler)

// logger returns Log, or a logger that discards all.
func (o *Options) logger() *slog.Logger { return cmp.Or(o.Log, discard) }
