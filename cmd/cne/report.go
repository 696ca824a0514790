package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cne/data"
	"cne/internal/rundir"
	"cne/internal/version"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// Metrics is the content of metrics.json: how good an embedding is, and what
// it took. What was not asked for, or is not defined for the run, is left out.
type Metrics struct {
	quality.Figures
	// Holdout is about the points that were held out.
	Holdout *quality.HeldOutFigures `json:"holdout,omitempty"`
	// Z is NC-t-SNE's learnt constant times n(n−1), to compare with the
	// partition function.
	Z     *float64 `json:"z,omitempty"`
	Loss  float64  `json:"loss"` // of the last epoch, per edge
	N     int      `json:"n"`
	Edges int      `json:"edges"` // directed

	Epochs       int     `json:"epochs"`
	Seconds      Seconds `json:"seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Device       string  `json:"device"` // on which it was trained, at the end
	Seed         uint64  `json:"seed"`
	Version      string  `json:"version"`
}

// Seconds says where the time of a run went. PCA and Graph are next to nothing
// when they come from the cache. Of a run that was resumed, Optimize and Total
// count the epochs before that, and the others the last process alone.
type Seconds struct {
	Load     float64 `json:"load"`
	PCA      float64 `json:"pca"`
	Graph    float64 `json:"graph"`
	Optimize float64 `json:"optimize"`
	Project  float64 `json:"project,omitempty"` // of held-out points
	Quality  float64 `json:"quality"`
	Total    float64 `json:"total"`
}

// report measures the embedding and writes metrics.json.
func (t *training) report(ctx context.Context, held *data.Matrix, start time.Time) (*Metrics, error) {
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
	m.Seconds = Seconds{
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
func (t *training) metrics() *Metrics {
	m := &Metrics{
		Loss: t.embedded.Result.Loss, N: t.near.Graph.N, Edges: t.embedded.Result.Edges, Epochs: t.embedded.Result.Epochs,
		Device: nameOf(t.device), Seed: t.config.Seed, Version: version.String(),
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
func (t *training) measure(ctx context.Context, embedding *data.Matrix, m *Metrics) error {
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
func (t *training) print(w io.Writer, m *Metrics) error {
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
