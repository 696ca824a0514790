package rundir

import (
	"context"
	"fmt"
	"log/slog"

	"cne/configs"
	"cne/data/neighbors"
)

// ReadGraph reads the graph.file of c, for n points, and says what a person may not
// expect of a graph of their own. It has weights only if edges are to be drawn by them.
func ReadGraph(ctx context.Context, log *slog.Logger, c *configs.Config, n int) (*neighbors.Graph, error) {
	path, weighted := *c.Graph.File, c.Embed.SampleEdges
	g, err := neighbors.ReadFile(ctx, path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graph.file cannot be used: %w", err)
	case g.N != n:
		return nil, fmt.Errorf("graph.file %s has %d points, but the data have %d; build the graph from the same points", path, g.N, n)
	case g.Edges() == 0:
		return nil, fmt.Errorf("graph.file %s has no edges, which are its entries other than 0; an embedding needs some", path)
	}
	switch {
	case weighted && g.Weights == nil:
		log.Warn("the edges of graph.file have equal weights; every edge is taken once in an epoch")
	case !weighted && g.Weights != nil:
		log.Warn("graph.file has edges of different weights, which count as equal; graph.weighted_sampling=true draws them in proportion")
		g.Weights = nil
	}
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
	return g, nil
}
