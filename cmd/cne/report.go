package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cne/data"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/memory"
	"cne/internal/text"
	"cne/train/quality"
)

// report measures the embedding and writes metrics.json.
func (t *training) report(ctx context.Context, held *data.Matrix, start time.Time) (*rundir.Metrics, error) {
	measuring := time.Now()
	result := t.result()
	m := result.metrics()
	_, err := ctxio.Await(ctx, func() (struct{}, error) {
		err := result.measure(ctx, m)
		if err != nil || held == nil {
			return struct{}{}, err
		}
		m.Holdout, err = result.measureHeld(ctx, held)
		return struct{}{}, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted while the quality was measured; the embedding is in %s", t.dir.Path("embedding.npy"))
		}
		return nil, err
	}
	m.Seconds = rundir.Seconds{
		Load: t.load.Seconds(), PCA: t.near.PCATime.Seconds(), Graph: t.near.GraphTime.Seconds(), Start: t.startTime.Seconds(),
		Optimize: t.embedded.Result.Elapsed.Seconds(), Project: t.projectTime.Seconds(), Quality: time.Since(measuring).Seconds(), Total: time.Since(start).Seconds(),
	}
	if t.from != nil {
		m.Seconds.Total += (t.from.Progress.Elapsed + t.from.Progress.ElapsedSince).Seconds()
	}
	m.PeakRSSBytes = memory.PeakRSS()
	if p := t.in.sampled; p != nil {
		m.Placed, m.Seconds.Project = p.Others(), p.Took.Seconds()
	}
	return m, t.dir.WriteJSON(rundir.MetricsFile, m)
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
	estimate := func(name, format string, value, standardError *float64, more string) {
		if value != nil {
			row(name, format+"%s%s", *value, report.PlusMinus(standardError), more)
		}
	}
	ofK := func(k int) string { return fmt.Sprintf(" (k = %d)", k) }
	if t.config.Output.Plot {
		row("picture", "%s", text.Escape(t.dir.Path("embedding.png")))
	}
	if t.config.Output.HTML {
		row("page", "%s", text.Escape(t.dir.Path(rundir.PageFile)))
	}
	row("embedding", "%s", text.Escape(t.dir.Path("embedding.npy")))
	if t.in.sampled != nil {
		row("placed", "%d points by those trained on, about which the figures are", m.Placed)
	}
	row("points", "%d, joined by %d directed edges", m.N, m.Edges)
	if m.GraphRecall != nil {
		row("graph", "approximate neighbours, of which %s", m.GraphRecall)
	}
	estimate("kNN recall", "%.4f", m.KNNRecall, m.KNNRecallError, ofK(t.config.Quality.K))
	optional("Spearman correlation", "%.3f", m.Spearman)
	estimate("partition function", "%.3g", m.PartitionFunction, m.PartitionFunctionError, "")
	estimate("KL divergence", "%.4g", m.KL, m.KLError, "")
	optional(ofZ(t.config.Options().FixZ)+" Z", "%.3g", m.Z)
	estimate("kNN accuracy", "%.4f", m.Accuracy, m.AccuracyError, ofK(quality.AccuracyK))
	if h := m.Holdout; h != nil {
		row("held out", "%d points", h.N)
		optional("  kNN accuracy", "%.4f (k = %d)", h.Accuracy, quality.AccuracyK)
		optional("  kNN recall", "%.4f (k = %d)", h.KNNRecall, t.config.Quality.K)
	}
	row("loss", "%.5g per edge after %d epochs", m.Loss, m.Epochs)
	s := m.Seconds
	row("seconds", "%.1f (load %.1f, PCA %.1f, graph %.1f, start %.1f, optimisation %.1f, quality %.1f)", s.Total, s.Load, s.PCA, s.Graph, s.Start, s.Optimize, s.Quality)
	row("memory", "%.0f MB at most", float64(m.PeakRSSBytes)/1e6)
	return table.Flush()
}

// ofZ says where NC-t-SNE's Z comes from: it is learnt, or stays where it was put.
func ofZ(fixed bool) string {
	if fixed {
		return "fixed"
	}
	return "learnt"
}
