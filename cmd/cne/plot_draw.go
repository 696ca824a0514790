package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cne/data"
	"cne/internal/cli"
	"cne/internal/explorer"
	"cne/internal/figures"
	"cne/internal/plot"
	"cne/internal/rundir"
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
		p.output = filepath.Join(folder, map[bool]string{false: "animation.gif", true: "animation.html"}[p.html])
	default:
		file, err := rundir.EmbeddingFile(p.input)
		if err != nil {
			return err
		}
		p.output = data.TrimEnding(file) + map[bool]string{false: ".png", true: ".html"}[p.html]
	}
	inputs := slices.Concat(p.inputs, p.data.Labels, p.images)
	return cli.Output{Flag: "--output", Path: p.output, Runs: append(p.inputs, folder)}.Check(inputs...)
}

// draw draws an embedding, as a picture or as a page.
func (p *plotting) draw(ctx context.Context, log *slog.Logger) error {
	file, err := rundir.EmbeddingFile(p.input)
	if err != nil {
		return err
	}
	set, err := rundir.OpenEmbedding(ctx, file, p.data)
	if err != nil {
		return err
	}
	var held *data.Dataset
	if file != p.input {
		if held, err = rundir.OpenHeldOut(ctx, file, p.data); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := figures.Scatter(set.Points, set.Labels, p.plot)
	if held != nil {
		s = figures.ScatterWithHeldOut(set.Points, held.Points, set.Labels, held.Labels, p.plot)
	}
	if !p.isHTML() {
		return s.Save(p.output)
	}
	page, err := p.page(ctx, log, s, file)
	if err != nil {
		return err
	}
	return page.Save(p.output)
}

// page returns the explorer of an embedding that was read from a file.
func (p *plotting) page(ctx context.Context, log *slog.Logger, s *plot.Scatter, file string) (*explorer.Page, error) {
	name, err := filepath.Abs(p.input)
	if err != nil {
		return nil, err
	}
	name = data.TrimEnding(filepath.Base(name))
	images, err := p.givenImages(ctx, s.Embedding.N)
	if err != nil {
		return nil, err
	}
	if file == p.input {
		return figures.Page(s, name, nil, images), nil
	}
	return figures.RunPage(ctx, log, p.input, name, s, images, len(p.images) == 0)
}

// noImages is the argument of --images for a page without.
const noImages = "none"

// givenImages returns the images that --images names; nil if it names none.
func (p *plotting) givenImages(ctx context.Context, n int) (*data.Images, error) {
	if len(p.images) == 0 || slices.Equal(p.images, []string{noImages}) {
		return nil, nil
	}
	images, err := figures.OpenImages(ctx, p.images)
	if err != nil {
		return nil, fmt.Errorf("--images: %w", err)
	}
	if images.N != n {
		return nil, fmt.Errorf("--images names %d images, but the embedding has %d points; give one per point, in the same order", images.N, n)
	}
	return images, nil
}

// drawStrip draws several embeddings side by side, with one legend.
func (p *plotting) drawStrip(ctx context.Context) error {
	var sets []*data.Dataset
	titles := p.titles
	for _, input := range p.inputs {
		file, err := rundir.EmbeddingFile(input)
		if err != nil {
			return err
		}
		set, err := rundir.OpenEmbedding(ctx, file, p.data)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		sets = append(sets, set)
		if len(p.titles) == 0 {
			titles = append(titles, filepath.Base(data.TrimEnding(input)))
		}
	}
	strip := figures.Strip(sets, titles)
	strip.Columns = p.columns
	for _, panel := range strip.Panels {
		panel.PointSize = p.plot.PointSize
	}
	return strip.Save(p.output)
}

// drawMetrics draws the curves of one or more runs.
func (p *plotting) drawMetrics(ctx context.Context) error {
	runs := make([]*rundir.Records, len(p.inputs))
	for i, input := range p.inputs {
		var err error
		if runs[i], err = rundir.ReadRecords(ctx, input); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return figures.Curves(runs, p.inputs, p.plot).Save(p.output)
}

// drawAnimation makes a film of the snapshots of a run, or a page to move
// through them.
func (p *plotting) drawAnimation(ctx context.Context) error {
	film, err := figures.ReadFilm(ctx, p.input, p.data, p.isHTML())
	if err != nil {
		return err
	}
	if p.isHTML() {
		page, err := film.Page(ctx, p.plot)
		if err != nil {
			return err
		}
		return page.Save(p.output)
	}
	a := film.Animation(p.plot)
	a.FramesPerSecond, a.Follow = p.fps, p.follow
	return a.Save(p.output)
}
