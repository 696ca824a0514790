package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"cne/data"
	"cne/internal/explorer"
	"cne/internal/figures"
	"cne/internal/plot"
	"cne/internal/rundir"
	"cne/internal/version"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// report measures the embedding and writes metrics.json.
func (t *training) report(ctx context.Context, held *data.Matrix, start time.Time) (*rundir.Metrics, error) {
	measuring := time.Now()
	embedding := t.embedded.Positions
	m := t.metrics()
	_, err := await(ctx, func() (struct{}, error) {
		err := t.measure(ctx, embedding, m)
		if err != nil || held == nil {
			return struct{}{}, err
		}
		m.Holdout, err = t.measureHeld(ctx, embedding, held)
		return struct{}{}, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted while the quality was measured; the embedding is in %s", t.dir.Path("embedding.npy"))
		}
		return nil, err
	}
	m.Seconds = rundir.Seconds{
		Load: t.load.Seconds(), PCA: t.near.PCATime.Seconds(), Graph: t.near.GraphTime.Seconds(),
		Optimize: t.embedded.Result.Elapsed.Seconds(), Project: t.projectTime.Seconds(), Quality: time.Since(measuring).Seconds(), Total: time.Since(start).Seconds(),
	}
	if t.from != nil {
		m.Seconds.Total += (t.from.Progress.Elapsed + t.from.Progress.ElapsedSince).Seconds()
	}
	m.PeakRSSBytes = peakRSS()
	return m, t.dir.WriteJSON(rundir.MetricsFile, m)
}

// metrics returns what training tells of the embedding.
func (t *training) metrics() *rundir.Metrics {
	m := &rundir.Metrics{
		Loss: t.embedded.Result.Loss, N: t.near.Graph.N, Edges: t.embedded.Result.Edges, Epochs: t.embedded.Result.Epochs,
		Device: nameOf(t.device), Seed: t.config.Seed, Version: version.String(),
		PointsKey: t.near.pointsKey, GraphKey: rundir.GraphKey(t.near.Graph),
	}
	if t.config.Loss.Name == op.NC {
		z := train.Normalization{N: t.near.Graph.N}.Z(t.embedded.Result.LogZ)
		m.Z = &z
	}
	return m
}

// measuring returns what the configuration asks for, and what it is measured by.
func (t *training) measuring() quality.Options {
	q := &t.config.Quality
	o := quality.Options{
		K: q.K, Sample: q.Spearman, Labels: t.in.points.Labels, Graph: t.near.Graph, Seed: t.config.Seed, Device: t.device,
		Skip: quality.MetricTrustworthiness | quality.MetricLosses,
	}
	for _, x := range []struct {
		metric quality.Metric
		wanted bool
	}{
		{quality.MetricRecall, q.Recall},
		{quality.MetricSpearman, q.Spearman > 0},
		{quality.MetricPartition, q.Partition},
		{quality.MetricKL, q.KL},
		{quality.MetricAccuracy, q.Accuracy},
	} {
		if !x.wanted {
			o.Skip |= x.metric
		}
	}
	if q.Recall {
		o.Neighbors = t.near.Nearest
	}
	return o
}

// measure fills in what the configuration asks for.
func (t *training) measure(ctx context.Context, embedding *data.Matrix, m *rundir.Metrics) error {
	figures, err := quality.Measure(ctx, t.near.Points, embedding, t.measuring())
	if err == nil {
		m.Figures = *figures
	}
	return err
}

// measureHeld measures how the held-out points lie among the training points.
func (t *training) measureHeld(ctx context.Context, embedding, positions *data.Matrix) (*quality.HeldOutFigures, error) {
	held := quality.HeldOut{Embedding: positions, Labels: t.in.held.Labels}
	if t.config.Quality.Recall && t.near.Nearest != nil {
		var err error
		if held.Points, err = t.heldPoints(ctx, &data.Preprocessing{PCA: t.near.PCA}); err != nil {
			return nil, err
		}
	}
	f, err := quality.MeasureHeldOut(ctx, t.near.Points, embedding, held, t.measuring())
	if err == nil && f.OtherLabels {
		t.Log.Warn("no label of the held-out points occurs among the training points; their accuracy is left out")
	}
	return f, err
}

// print writes the figures as a table.
func (t *training) print(w io.Writer, m *rundir.Metrics) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	optional := func(name, format string, value *float64, more ...any) {
		if value != nil {
			row(name, format, append([]any{*value}, more...)...)
		}
	}
	if t.config.Output.Plot {
		row("picture", "%s", t.dir.Path("embedding.png"))
	}
	if t.config.Output.HTML {
		row("page", "%s", t.dir.Path(rundir.PageFile))
	}
	row("embedding", "%s", t.dir.Path("embedding.npy"))
	row("points", "%d, joined by %d directed edges", m.N, m.Edges)
	optional("kNN recall", "%.4f (k = %d)", m.KNNRecall, t.config.Quality.K)
	optional("Spearman correlation", "%.3f", m.Spearman)
	optional("partition function", "%.3g", m.PartitionFunction)
	optional("KL divergence", "%.4g", m.KL)
	optional("learnt Z", "%.3g", m.Z)
	optional("kNN accuracy", "%.4f (k = %d)", m.Accuracy, quality.AccuracyK)
	if h := m.Holdout; h != nil {
		row("held out", "%d points", h.N)
		optional("  kNN accuracy", "%.4f (k = %d)", h.Accuracy, quality.AccuracyK)
		optional("  kNN recall", "%.4f (k = %d)", h.KNNRecall, t.config.Quality.K)
	}
	row("loss", "%.5g per edge after %d epochs", m.Loss, m.Epochs)
	s := m.Seconds
	row("seconds", "%.1f (load %.1f, PCA %.1f, graph %.1f, optimisation %.1f, quality %.1f)", s.Total, s.Load, s.PCA, s.Graph, s.Optimize, s.Quality)
	row("memory", "%.0f MB at most", float64(m.PeakRSSBytes)/1e6)
	return table.Flush()
}

// drawHTML makes the explorer of a run, if one is asked for. m is nil for a run that
// was interrupted.
func (t *training) drawHTML(ctx context.Context, s *plot.Scatter, m *rundir.Metrics) error {
	if !t.config.Output.HTML {
		return nil
	}
	// With data.imbalance there are no places for the points that were left out.
	if t.in.rows == nil && t.in.heldRows != nil {
		figures.InputOrder(s, t.in.heldRows)
	}
	var facts []explorer.Fact
	if m != nil {
		facts = figures.Facts(&m.Figures, m.Z)
	}
	return figures.Page(s, t.in.points.Name, facts, t.pageImages(ctx, s.Embedding.N)).Save(t.dir.Path(rundir.PageFile))
}

// pageImages returns the images of the run's n points for a page, nil if there
// are none or none are asked for. They are read once, for all pages.
func (t *training) pageImages(ctx context.Context, n int) *data.Images {
	in := t.in
	if t.config.Output.HTMLImages && !in.imagesRead {
		rows := in.rows
		if rows != nil {
			rows = slices.Concat(rows, in.heldRows)
		}
		in.images, in.imagesRead = figures.RunImages(ctx, t.Log, t.config, n, rows), true
	}
	return in.images
}
