package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cne"
	"cne/configs"
	"cne/data/neighbors"
	"cne/internal/rundir"
)

// readGraph reads graph.file, for n points.
func readGraph(ctx context.Context, path string, n int) (*neighbors.Graph, error) {
	g, err := neighbors.ReadNPZ(ctx, path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graph.file cannot be used: %w", err)
	case g.N != n:
		return nil, fmt.Errorf("graph.file %s has %d points, but the data have %d; build the graph from the same points", path, g.N, n)
	case g.Edges() == 0:
		return nil, fmt.Errorf("graph.file %s has no edges; an embedding needs some", path)
	}
	return g, nil
}

// warnAboutGraph says what a person may not expect of a graph of their own.
func warnAboutGraph(log *slog.Logger, g *neighbors.Graph) {
	if !g.Symmetric() {
		log.Warn("graph.file holds a directed graph, and its edges are used as they are; in Python, g.maximum(g.T) makes it symmetric")
	}
	touched := make([]bool, g.N)
	for i := range g.N {
		for _, j := range g.Tails(i) {
			touched[i], touched[j] = true, true
		}
	}
	alone := 0
	for _, t := range touched {
		if !t {
			alone++
		}
	}
	if alone > 0 {
		log.Warn("points without an edge in graph.file stay where they start", "points", alone, "of", g.N)
	}
}

// A neighborhood is what the embeddings of a run are to preserve, with what
// identifies it.
type neighborhood struct {
	*cne.Neighborhood
	pointsKey string // identifies the data
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
		if o.Graph, err = readGraph(ctx, *c.Graph.File, n); err != nil {
			return nil, err
		}
		warnAboutGraph(log, o.Graph)
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
	cached, err := await(ctx, func() (bool, error) {
		h.pointsKey = rundir.PointsKey(h.Input)
		key = fmt.Sprintf("%s, %d components, %d neighbours", h.pointsKey, components, k)
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
		return nil, err
	}
	if c.Graph.Cache && !cached && !dir.ReadOnly() {
		return h, dir.SaveCache(key, h.Neighborhood)
	}
	return h, nil
}

// await returns what f does, or ctx's error as soon as ctx ends: f then goes
// on behind the scenes until the program ends, which is soon. A panic of f is
// raised again on the calling goroutine.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value    T
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
