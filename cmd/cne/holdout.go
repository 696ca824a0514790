package main

import (
	"context"
	"errors"
	"time"

	"cne/data"
	"cne/internal/rundir"
	"cne/internal/version"
)

// describe completes what is saved with the model.
func (t *training) describe() (err error) {
	d := &t.embedded.Description
	d.Labels, d.Version = classNames(t.in.points.Labels), version.String()
	d.Config, err = t.configText()
	return err
}

// classNames returns the names of the classes of points, nil if their labels
// are quantities, or names of the points themselves.
func classNames(l *data.Labels) []string {
	if l == nil || !l.Categorical() {
		return nil
	}
	members := make([]int, len(l.Names))
	for _, c := range l.Class {
		members[c]++
	}
	var names []string
	for c, n := range members {
		if n > 0 {
			names = append(names, l.Names[c])
		}
	}
	if 2*len(names) > len(l.Class) {
		return nil
	}
	return names
}

// projectHeld places the points that were held out, and writes them; it returns
// nil if there are none.
func (t *training) projectHeld(ctx context.Context) (*data.Matrix, error) {
	if t.in.held == nil {
		return nil, nil
	}
	start := time.Now()
	defer func() { t.projectTime = time.Since(start) }()
	mapper, err := t.embedded.Mapper()
	if err != nil {
		return nil, err
	}
	points, err := t.heldPoints(ctx, t.embedded.Description.Preprocessing)
	if err != nil {
		return nil, err
	}
	_, d := mapper.Size()
	held := data.NewMatrix(points.N, d)
	_, err = await(ctx, func() (struct{}, error) { return struct{}{}, mapper.ProjectTo(held.X, points.X) })
	if ctx.Err() != nil {
		return nil, errors.New("interrupted while the held-out points were placed")
	}
	if err != nil {
		return nil, err
	}
	if err := t.writeEmbedding("holdout", held, t.in.held.Labels); err != nil {
		return nil, err
	}
	if t.in.heldRows == nil {
		return held, nil
	}
	return held, t.dir.WriteRows(rundir.HeldRowsFile, t.in.heldRows)
}

// heldPoints returns the points that were held out, which are scaled already,
// as p leaves them.
func (t *training) heldPoints(ctx context.Context, p *data.Preprocessing) (_ *data.Matrix, err error) {
	if p.PCA == nil {
		return t.in.held.Points, nil
	}
	if t.in.heldComponents == nil {
		t.in.heldComponents, err = p.PCA.Transform(ctx, t.in.held.Points, nil)
	}
	return t.in.heldComponents, err
}
