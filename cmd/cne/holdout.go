package main

import (
	"context"
	"errors"
	"time"

	"cne/data"
	"cne/data/pca"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/version"
)

// describe completes what is saved with the model.
func (t *training) describe() (err error) {
	d := &t.embedded.Description
	d.Labels, d.Version = t.in.points.Labels.ClassNames(), version.String()
	d.Config, err = t.configText()
	return err
}

// projectHeld places the points that were held out, and writes them; it returns
// nil if there are none.
func (t *training) projectHeld(ctx context.Context) (*data.Matrix, error) {
	if t.in.held == nil {
		return nil, nil
	}
	start := time.Now()
	defer func() { t.projectTime = time.Since(start) }()
	points, err := t.in.heldPoints(ctx, t.embedded.Description.Preprocessing.PCA)
	if err != nil {
		return nil, err
	}
	held := data.NewMatrix(points.N, t.embedded.Dim())
	_, err = ctxio.Await(ctx, func() (struct{}, error) { return struct{}{}, t.embedded.ProjectPrepared(ctx, held, points) })
	if ctx.Err() != nil {
		return nil, errors.New("interrupted while the held-out points were placed")
	}
	if err != nil {
		return nil, err
	}
	names := t.in.annotations.HeldOut(t.near.Graph.N, t.in.rows, t.in.heldRows)
	if names == nil {
		names = t.in.held.Names
	}
	if err := t.dir.WriteEmbedding(&t.config.Output, "holdout", held, t.in.held.Labels, names); err != nil {
		return nil, err
	}
	if t.in.heldRows == nil {
		return held, nil
	}
	return held, t.dir.WriteRows(rundir.HeldRowsFile, t.in.heldRows)
}

// keepHeld finds what the run needs of the points that were held out as long as they can
// be read: files are left alone once it has begun.
func (in *inputs) keepHeld(ctx context.Context, near *neighborhood) (err error) {
	if in.held == nil {
		return nil
	}
	if near.heldKey, err = rundir.PointsKey(ctx, in.held.Source()); err != nil || in.held.Stored == nil {
		return err
	}
	_, err = in.heldPoints(ctx, near.PCA)
	in.held.Stored = nil
	return err
}

// heldPoints returns the points that were held out, which are scaled already, as
// their principal components if there are any.
func (in *inputs) heldPoints(ctx context.Context, components *pca.PCA) (_ *data.Matrix, err error) {
	if components == nil {
		return in.held.Points, nil
	}
	if in.heldComponents == nil {
		in.heldComponents, err = components.Transform(ctx, in.held.Source(), nil)
	}
	return in.heldComponents, err
}
