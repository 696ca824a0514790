package main

import (
	"context"
	"log/slog"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/internal/version"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// A result is an embedding with what it was made from and what it is measured by.
type result struct {
	log      *slog.Logger
	config   *configs.Config
	device   *model.Device // which measures it
	dir      *rundir.Dir   // where it is kept
	in       *inputs
	near     *neighborhood
	embedded *cne.Embedding
}

// metrics returns what training tells of the embedding.
func (r *result) metrics() *rundir.Metrics {
	m := &rundir.Metrics{
		Loss: r.embedded.Result.Loss, N: r.near.Graph.N, Edges: r.embedded.Result.Edges, GraphRecall: rundir.RecallOf(r.near.Neighborhood), Epochs: r.embedded.Result.Epochs,
		Device: nameOf(r.device), Seed: r.config.Seed, Version: version.String(),
		PointsKey: r.near.pointsKey, GraphKey: r.near.graphKey,
	}
	if r.config.Loss.Name.Info().Constant == op.LearntZ {
		z := train.Normalization{N: r.near.Graph.N}.Z(r.embedded.Result.LogZ)
		m.Z = &z
	}
	return m
}

// measuring returns what the configuration asks for, and what it is measured by.
func (r *result) measuring() quality.Options {
	o := r.config.Quality.Options()
	o.Labels, o.Graph, o.Seed, o.Device = r.in.points.Labels, r.near.Graph, r.config.Seed, r.device
	if r.config.Quality.Recall {
		o.Neighbors = r.near.Nearest
	}
	return o
}

// measure fills in what the configuration asks for.
func (r *result) measure(ctx context.Context, m *rundir.Metrics) error {
	figures, err := quality.Measure(ctx, r.near.Points, r.embedded.Positions, r.measuring())
	if err == nil {
		m.Figures = *figures
	}
	return err
}

// measureHeld measures how the held-out points lie among the training points.
func (r *result) measureHeld(ctx context.Context, positions *data.Matrix) (*quality.HeldOutFigures, error) {
	held := quality.HeldOut{Embedding: positions, Labels: r.in.held.Labels}
	if r.config.Quality.Recall && r.near.Nearest != nil {
		var err error
		if held.Points, err = r.in.heldPoints(ctx, r.near.PCA); err != nil {
			return nil, err
		}
	}
	f, err := quality.MeasureHeldOut(ctx, r.near.Points, r.embedded.Positions, held, r.measuring())
	if err == nil && f.OtherLabels {
		r.log.Warn("no label of the held-out points occurs among the training points; their accuracy is left out")
	}
	return f, err
}

// write writes the embedding, and the names of its points.
func (r *result) write() error {
	m := r.embedded.Positions
	names := r.in.annotations.Training(m.N, r.in.rows, r.in.heldRows)
	if r.in.sampled == nil { // which has those of all points
		if err := r.dir.WriteNames(names); err != nil {
			return err
		}
	}
	if names == nil {
		names = r.in.points.Names
	}
	return r.dir.WriteEmbedding(&r.config.Output, r.in.sampled.Learnt(), m, r.in.points.Labels, names)
}

// draw makes the picture and the page, if they are asked for. held may be nil,
// and so may the metrics of a run that ended early.
func (r *result) draw(ctx context.Context, held *data.Matrix, m *rundir.Metrics) error {
	s := report.Scatter(r.embedded.Positions, r.in.points.Labels, r.config.Plot)
	if held != nil {
		s = report.ScatterWithHeldOut(r.embedded.Positions, held, r.in.points.Labels, r.in.held.Labels, r.config.Plot)
	}
	if r.config.Output.Plot {
		if err := s.Save(r.dir.Path("embedding.png")); err != nil {
			return err
		}
	}
	return r.drawHTML(ctx, s, m)
}

// drawHTML makes the explorer of a run, if one is asked for. m is nil for a run that
// was interrupted.
func (r *result) drawHTML(ctx context.Context, s *plot.Scatter, m *rundir.Metrics) error {
	if !r.config.Output.HTML {
		return nil
	}
	// With data.imbalance there are no places for the points that were left out.
	if r.in.rows == nil && r.in.heldRows != nil {
		report.InputOrder(s, r.in.heldRows)
	}
	var facts []explorer.Fact
	if m != nil {
		facts = report.Facts(&m.Figures, m.Z)
	}
	page := report.Page(s, r.in.points.Name, facts, r.pageImages(ctx, s.Embedding.N))
	r.in.annotations.AddTo(page)
	return page.Save(r.dir.Path(rundir.PageFile))
}

// pageImages returns the images of the run's n points for a page, nil if there
// are none or none are asked for, or they are some of too many. They are read once, for all pages.
func (r *result) pageImages(ctx context.Context, n int) *data.Images {
	in := r.in
	if r.config.Output.HTMLImages && in.sampled == nil && !in.imagesRead {
		in.images, in.imagesRead = report.RunImages(ctx, r.log, r.config, n, in.pageRows()), true
	}
	return in.images
}
