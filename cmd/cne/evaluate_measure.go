package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cne/configs"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/train/quality"
)

// stopwatch returns a function that adds the time since then to a sum.
func stopwatch(sum *float64) func() {
	start := time.Now()
	return func() { *sum += time.Since(start).Seconds() }
}

// evaluate measures all embeddings.
func (a *evaluationRun) evaluate(ctx context.Context) (_ *report.Evaluation, err error) {
	defer kind.Catch(&err)
	e := &report.Evaluation{AccuracyK: quality.AccuracyK, Against: a.against, Version: configs.Version()}
	stop := stopwatch(&e.Seconds.Prepare)
	embeddings := [][]string{a.inputs}
	if !a.join {
		embeddings = slices.Collect(slices.Chunk(a.inputs, 1))
	}
	var all []*candidate
	for _, paths := range embeddings {
		all = append(all, kind.Got(a.openCandidate(ctx, paths...)))
	}
	var other *candidate
	compared := all
	if a.against != "" {
		other = kind.Got(a.openCandidate(ctx, a.against))
		compared = append(slices.Clone(all), other)
	}
	e.N = all[0].positions.N
	for _, s := range compared[1:] {
		if s.positions.N != e.N {
			return nil, fmt.Errorf("%s: got %d points, want %[4]d as in %[3]s", s.file, s.positions.N, all[0].file, e.N)
		}
	}
	if e.N < 2 {
		return nil, fmt.Errorf("%s: got 1 point, want 2 or more", all[0].file)
	}
	if a.origins.IsDefault("quality.k") {
		a.config.Quality.K = max(1, min(a.config.Quality.K, e.N/4)) // as for data of so many points
	}
	e.K = a.config.Quality.K
	y := kind.Got(a.prepare(ctx, e, all[0]))
	stop()

	if y.Sampled(e.N) > 0 {
		compared = nil // only the sample's neighbours are needed; measuring finds them
	}
	for _, s := range compared {
		s.found = kind.Got(neighbors.KNN(ctx, s.positions, e.K, neighbors.Options{Search: neighbors.Exact, Device: a.device}))
	}
	for _, s := range all {
		a.Log.Info("measuring", "embedding", s.path)
		f, err := a.measure(ctx, e, s, other, y)
		kind.Checkf(err, "%s: %w", s.file, err)
		e.Embeddings = append(e.Embeddings, *f)
	}
	return e, nil
}

// A reference is the data that embeddings are measured by.
type reference struct {
	points *data.Matrix // the points between which distances are measured; nil if unknown
	quality.Options
}

// prepare reads the data, if known, and makes the reference for the embeddings; first is
// one of them.
func (a *evaluationRun) prepare(ctx context.Context, e *report.Evaluation, first *candidate) (_ *reference, err error) {
	defer kind.Catch(&err)
	y := &reference{Options: a.config.Quality.Wanted()}
	y.Skip, y.Seed, y.Device = 0, a.config.Embed.Seed, a.device
	size := data.Size{Low: e.N, High: e.N}
	if a.dataKnown {
		size = configs.Train.DataSize(ctx, a.config)
	}
	checkK := func(low, high int) { // other numbers of points have a clearer error
		if low == e.N && high == e.N && e.N <= e.K {
			kind.Check(fmt.Errorf("quality.k: got %d, want fewer than the %d points of %s", e.K, e.N, first.file))
		}
	}
	checkK(size.Low, size.High)
	if !a.dataKnown {
		if a.config.Graph.File == "" {
			return y, nil
		}
		y.Graph = kind.Got(rundir.ReadGraph(ctx, a.Log, a.config, a.origins, e.N, nil))
		e.Edges = y.Graph.Edges()
		return y, nil
	}
	kind.Check(a.config.CheckMeasuring(a.device, size))
	in, err := points.Read(ctx, a.config, a.origins, a.Log)
	if a.folder != "" {
		err = rundir.Moved(err, "--data, --labels and --set name files")
	}
	kind.Check(err)
	kind.Check(a.config.CheckMeasuring(a.device, in.Size()))
	if n, _ := in.Points.Dims(); n != e.N {
		left := ""
		if a.config.Data.Holdout.Share > 0 {
			left = " without the held-out points"
		}
		if in.Sampled() {
			left = " with data.sample"
		}
		return nil, fmt.Errorf("%s: got %d points, want %[4]d as in the data %[3]s%[5]s, or other data (--data)",
			first.file, e.N, strings.Join(a.config.Data.Path, ", "), n, left)
	}
	checkK(e.N, e.N)
	e.Data, in.Held = in.Points.Name, nil
	o := a.config.Options()
	in.ChooseComponents(&o)
	if components := o.Reduces(in.Points.Dims()); components > 0 {
		o.Components = &components // they depend on the network
	}
	o.Hidden, o.OnComponents, o.Device = nil, false, a.device // no network needs the points themselves
	near := kind.Got(in.Prepare(ctx, &o, rundir.OpenReadOnly(a.folder)))
	kind.Check(a.checkTrainedOn(near.PointsKey, ""))
	y.points, y.Neighbors, y.Graph, y.Labels = near.Reduced, near.Nearest, near.Graph, in.Points.Labels
	e.Edges = y.Graph.Edges()
	if e.Recall = near.Recall; near.PCA != nil {
		e.Components = near.PCA.K
	}
	if a.config.Graph.File == "" {
		return y, nil
	}
	return y, a.checkTrainedOn("", near.GraphKey)
}

// measure measures one embedding.
func (a *evaluationRun) measure(ctx context.Context, e *report.Evaluation, s, other *candidate,
	y *reference) (_ *report.EvaluatedFigures, err error) {
	defer kind.Catch(&err)
	f := &report.EvaluatedFigures{Path: s.path, Dim: s.positions.D}
	o := y.Options
	o.Labels, o.Found = cmp.Or(o.Labels, s.labels), s.found
	o.Measured = func(m quality.Metric, took time.Duration) {
		sum := selection.If(m == quality.MetricTrustworthiness, &e.Seconds.Trustworthiness, &e.Seconds.Figures)
		*sum += took.Seconds()
	}
	f.Figures = *kind.Got(quality.Measure(ctx, y.points, s.positions, o))
	if n := s.positions.N; n > 5*o.K && f.KNNRecall != nil && *f.KNNRecall < 1.5*float64(o.K)/float64(n) {
		a.Log.Warn("an embedding keeps hardly more neighbours than chance; its rows must have the order of the data", "embedding", s.path)
	}
	if other != nil {
		defer stopwatch(&e.Seconds.Against)()
		// The other embedding replaces the data.
		f.Against = kind.Got(quality.Measure(ctx, other.positions, s.positions, quality.Options{
			K: o.K, SpearmanSample: o.SpearmanSample, Sample: o.Sample, Seed: o.Seed, Device: o.Device, Neighbors: other.found, Found: s.found,
			Skip: ^quality.Where(func(f *quality.Figure) bool {
				return f.Option != "" && f.Needs&(quality.NeedsPoints|quality.NeedsNeighbors) != 0
			}),
		}))
	}
	return f, nil
}
