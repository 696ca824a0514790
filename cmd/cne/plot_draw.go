package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cne/data"
	"cne/internal/app/cli"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/internal/plot"
)

// chooseOutput fills in the output, if it is not given, and checks it.
func (p *plotting) chooseOutput() error {
	folder := p.input // of the run, if it is one
	info, err := os.Stat(p.input)
	if err == nil && !info.IsDir() {
		folder = filepath.Dir(p.input)
	}
	switch {
	case p.output != "":
	case err != nil:
		return nil // reading it says what is wrong
	case p.metrics:
		p.output = filepath.Join(folder, "curves.png")
	case p.animate:
		p.output = filepath.Join(folder, "animation.gif")
	default:
		file, err := rundir.EmbeddingFile(p.input)
		if err != nil {
			return err
		}
		p.output = data.TrimEnding(file) + map[bool]string{false: ".png", true: ".html"}[p.html]
	}
	inputs := slices.Concat(p.inputs, p.data.Labels, p.images, p.wanted.Files())
	return cli.Output{Flag: "--output", Path: p.output, Runs: append(p.inputs, folder)}.Check(inputs...)
}

// draw draws an embedding, as a picture or as a page.
func (p *plotting) draw(ctx context.Context, log *slog.Logger) error {
	inputs := []string{p.input}
	if p.join {
		inputs = p.inputs
	}
	files, s, err := report.OpenScatter(ctx, inputs, p.data, p.plot)
	if err != nil {
		return err
	}
	if !p.isHTML() {
		return s.Save(p.output)
	}
	page, err := p.page(ctx, log, s, files)
	if err != nil {
		return err
	}
	return page.Save(p.output)
}

// page returns the explorer of an embedding that was read from files.
func (p *plotting) page(ctx context.Context, log *slog.Logger, s *plot.Scatter, files []string) (*explorer.Page, error) {
	name, err := filepath.Abs(p.input)
	if err != nil {
		return nil, err
	}
	name = data.TrimEnding(filepath.Base(name))
	var images *data.Images
	if len(p.images) > 0 && !slices.Equal(p.images, []string{noImages}) {
		if images, err = report.GivenImages(ctx, p.images, s.Embedding.N); err != nil {
			return nil, err
		}
	}
	if p.join && len(p.inputs) > 1 || files[0] == p.input {
		return report.FilePage(ctx, log, files, name, s, images, p.wanted, p.data)
	}
	return report.RunPage(ctx, log, p.input, name, s, images, len(p.images) == 0, p.wanted)
}

// noImages is the argument of --images for a page without.
const noImages = "none"

// drawStrip draws several embeddings side by side, with one legend.
func (p *plotting) drawStrip(ctx context.Context) error {
	strip, err := report.OpenStrip(ctx, p.inputs, p.titles, p.data, p.plot)
	if err != nil {
		return err
	}
	strip.Columns = p.columns
	return strip.Save(p.output)
}

// drawMetrics draws the curves of one or more runs.
func (p *plotting) drawMetrics(ctx context.Context) error {
	curves, err := report.OpenCurves(ctx, p.inputs, p.plot)
	if err != nil {
		return err
	}
	return curves.Save(p.output)
}

// drawAnimation makes a film of the snapshots of a run.
func (p *plotting) drawAnimation(ctx context.Context) error {
	film, err := report.ReadFilm(ctx, p.input, p.data)
	if err != nil {
		return err
	}
	a := film.Animation(p.plot)
	a.FramesPerSecond, a.Follow = p.fps, p.follow
	return a.Save(p.output)
}
