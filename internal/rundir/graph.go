package rundir

import (
	"context"
	"fmt"
	"log/slog"

	"cne/data/neighbors"
)

// ReadGraph reads graph.file, for n points, and says what a person may not expect of a
// graph of their own.
func ReadGraph(ctx context.Context, log *slog.Logger, path string, n int) (*neighbors.Graph, error) {
	g, err := neighbors.ReadFile(ctx, path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graph.file cannot be used: %w", err)
	case g.N != n:
		return nil, fmt.Errorf("graph.file %s has %d points, but the data have %d; build the graph from the same points", path, g.N, n)
	case g.Edges() == 0:
		return nil, fmt.Errorf("graph.file %s has no edges, which are its entries other than 0; an embedding needs some", path)
	}
	if g.Weighted {
		log.Warn("graph.file has edges of different weights, which count as equal")
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
