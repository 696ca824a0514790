package main

import (
	"context"
	"log/slog"

	"cne"
	"cne/configs"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
)

// A neighborhood is what the embeddings of a run are to preserve, with what
// identifies it.
type neighborhood struct {
	*cne.Neighborhood
	pointsKey string // identifies the data
	heldKey   string // and those that are held out; "" if there are none
	rowsKey   string // and which of more they are; "" for all
	graphKey  string // and the graph, once the run has begun
}

// prepare finds the neighborhood of the points, or takes it from the cache of an
// earlier run on the same points with the same settings. It takes the points from the
// set, and lets them go as soon as no model needs them: they may be most of the memory.
func prepare(ctx context.Context, c *configs.Config, o *cne.Options, dir *rundir.Dir, log *slog.Logger, in *inputs) (*neighborhood, error) {
	set := in.points
	n, width := set.Dims()
	k, atLeast := c.Graph.K, 0
	if c.Graph.File != nil {
		var err error
		if o.Graph, err = rundir.ReadGraph(ctx, log, &c.Graph, n); err != nil {
			return nil, err
		}
		k = 0
	}
	if c.Quality.Recall {
		atLeast = c.Quality.K
		k = max(k, atLeast)
	}
	if err := c.CheckNeighbors(n, k); err != nil {
		return nil, err
	}
	components := o.Reduces(n, width)
	h := &neighborhood{Neighborhood: &cne.Neighborhood{Input: set.Points, Stored: set.Stored, Before: in.before()}}
	set.Points, set.Stored = nil, nil
	var key string
	cache := dir.Cache(c.Graph.Cache.Folder)
	cached, err := ctxio.Await(ctx, func() (x rundir.Cached, err error) {
		if h.pointsKey, err = cache.PointsKey(ctx, h.Source()); err != nil {
			return x, err
		}
		key = rundir.CacheKey(h.pointsKey, h.Source(), o, components, k)
		if c.Graph.Cache.Keep {
			x, err = cache.Load(ctx, key, h.Neighborhood, components > 0, k, func() {
				log.Info("another run finds the neighbours; waiting for it", "cache", c.Graph.Cache.Folder)
			})
		}
		return x, err
	})
	if err != nil {
		return nil, err
	}
	defer cached.Release()
	if cached.Found {
		log.Info("principal components and neighbours come from the cache")
	}
	o.Log = log
	if err := h.Complete(ctx, o, atLeast); err != nil {
		return nil, c.ExplainPoints(err, n, components)
	}
	if c.Graph.Cache.Keep && !cached.Found && !dir.ReadOnly() {
		if err := cache.Save(key, h.Neighborhood); err != nil {
			return nil, err
		}
	}
	if h.Nearest != nil {
		h.Nearest.Dist2 = nil // what is measured takes the indices alone
	}
	h.rowsKey = in.sampled.Key()
	if err := in.keepHeld(ctx, h); err != nil {
		return nil, err
	}
	o.Start, err = in.earlier.Start(log, h.Neighborhood, in.annotations.Training(n, in.rows, in.heldRows), c.Seed)
	return h, err
}
