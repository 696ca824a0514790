package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cne"
	"cne/configs"
	"cne/data/neighbors"
	"cne/internal/ctxio"
	"cne/internal/rundir"
	"cne/internal/text"
)

// A neighborhood is what the embeddings of a run are to preserve, with what
// identifies it.
type neighborhood struct {
	*cne.Neighborhood
	pointsKey string // identifies the data
	graphKey  string // and the graph, once the run has begun
}

// prepare finds the neighborhood of the points, or takes it from the cache of an
// earlier run on the same points with the same settings. It takes the points from the
// set, and lets them go as soon as no model needs them: they may be most of the memory.
func prepare(ctx context.Context, c *configs.Config, o *cne.Options, dir *rundir.Dir, log *slog.Logger, in *inputs) (*neighborhood, error) {
	set := in.points
	n := set.Points.N
	k, atLeast := c.Graph.K, 0
	if c.Graph.File != nil {
		var err error
		if o.Graph, err = rundir.ReadGraph(ctx, log, *c.Graph.File, n); err != nil {
			return nil, err
		}
		k = 0
	}
	if c.Quality.Recall {
		atLeast = c.Quality.K
		k = max(k, atLeast)
	}
	if n < 2 {
		if c.Data.Holdout != nil {
			return nil, errors.New("data.holdout leaves a single point, which has no neighbours; hold fewer out, or give more points")
		}
		return nil, errors.New("there is a single point, which has no neighbours; give more points")
	}
	if n <= k {
		if c.Data.Holdout != nil {
			return nil, fmt.Errorf("the %d points that data.holdout leaves do not have %d neighbours each; hold fewer out, or set graph.k and quality.k below %d", n, k, n)
		}
		return nil, fmt.Errorf("%d points do not have %d neighbours each; give more points, or set graph.k and quality.k below %d", n, k, n)
	}

	components := o.Reduces(n, set.Points.D)
	h := &neighborhood{Neighborhood: &cne.Neighborhood{Input: set.Points, Before: in.before()}}
	set.Points = nil
	var key string
	cached, err := ctxio.Await(ctx, func() (bool, error) {
		h.pointsKey = rundir.PointsKey(h.Input)
		key = fmt.Sprintf("%s, %d components, %d neighbours", h.pointsKey, components, k)
		if o.Graph == nil && o.Search.Approximates(n, cmp.Or(components, h.Input.D), k) {
			key += fmt.Sprintf(", approximate, seed %d", o.Seed)
		}
		return c.Graph.Cache && dir.LoadCache(key, h.Neighborhood, components > 0, k), nil
	})
	if err != nil {
		return nil, err
	}
	if cached {
		log.Info("principal components and neighbours are those of the last run in this folder")
	}
	o.Log = log
	if err := h.Complete(ctx, o, atLeast); err != nil {
		if errors.Is(err, neighbors.ErrNotFinite) && components > 0 {
			return nil, errors.New("the principal components are too large for float32; set data.scale to standard or unit")
		}
		if errors.Is(err, cne.ErrEqualPoints) {
			return nil, fmt.Errorf("%s: all %d points are equal, and a network places equal points at one position; give points that differ", text.Few(c.Data.Path, nil), n)
		}
		return nil, err
	}
	if c.Graph.Cache && !cached && !dir.ReadOnly() {
		if err := dir.SaveCache(key, h.Neighborhood); err != nil {
			return nil, err
		}
	}
	o.Start, err = in.earlier.Start(log, h.Neighborhood, in.annotations.Training(n, in.rows, in.heldRows), c.Seed)
	return h, err
}
