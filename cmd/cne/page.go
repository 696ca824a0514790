package main

import (
	"slices"

	"cne/data"
	"cne/internal/explorer"
	"cne/internal/figures"
	"cne/internal/plot"
	"cne/internal/rundir"
)

// drawHTML makes the explorer of a run, if one is asked for. m is nil for a run that
// was interrupted.
func (t *training) drawHTML(s *plot.Scatter, m *rundir.Metrics) error {
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
	return figures.Page(s, t.in.points.Name, facts, t.pageImages(s.Embedding.N)).Save(t.dir.Path(rundir.PageFile))
}

// pageImages returns the images of the run's n points for a page, nil if there
// are none or none are asked for. They are read once, for all pages.
func (t *training) pageImages(n int) *data.Images {
	in := t.in
	if t.config.Output.HTMLImages && !in.imagesRead {
		rows := in.rows
		if rows != nil {
			rows = slices.Concat(rows, in.heldRows)
		}
		in.images, in.imagesRead = figures.RunImages(t.Log, t.config, n, rows), true
	}
	return in.images
}
