package report

import (
	"context"
	"log/slog"
	"slices"

	"cne/configs"
	"cne/data/neighbors"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
)

// Nearest returns the nearest neighbours of a run's points to show on a page: as they were
// found, or else the first edges of its graph.
func Nearest(found *neighbors.Neighbors, g *neighbors.Graph) *neighbors.Neighbors {
	if found != nil {
		return found
	}
	nb := &neighbors.Neighbors{N: g.N, K: max(1, explorer.NeighborsShown(g.N))}
	nb.Index = slices.Repeat([]int32{-1}, nb.N*nb.K)
	for i := range nb.N {
		copy(nb.Of(i), g.Tails(i))
	}
	return nb
}

// keptNearest returns the nearest neighbours of the points of the run in a folder, which has
// the configuration c; nil if no file has them.
func keptNearest(ctx context.Context, folder string, c *configs.Config) *neighbors.Neighbors {
	nb := rundir.KeptNeighbors(folder, c.Graph.Cache)
	if nb != nil || c.Graph.File == nil {
		return nb
	}
	g, _, err := neighbors.ReadNearest(ctx, *c.Graph.File, c.Embed.Neighbors, false)
	if err != nil {
		return nil // the file is gone or another one
	}
	return Nearest(nil, g)
}

// AddNeighbors adds the nearest neighbours of the points that a run was trained on to its
// page; nil for none. trained are their rows on the page; nil for all that are not held out.
func AddNeighbors(log *slog.Logger, page *explorer.Page, nb *neighbors.Neighbors, trained []int) {
	if nb == nil {
		return
	}
	n := page.Views[0].Embedding.N
	if trained == nil {
		for i := range n {
			if page.HeldOut == nil || !page.HeldOut[i] {
				trained = append(trained, i)
			}
		}
	}
	k := min(nb.K, explorer.NeighborsShown(n))
	switch {
	case len(trained) != nb.N || nb.N > 0 && slices.Max(trained) >= n:
		return // of other points
	case k == 0:
		log.Info("there are too many points for their nearest neighbours on the page", "points", n)
		return
	}
	page.Neighbors = &neighbors.Neighbors{N: n, K: k, Index: slices.Repeat([]int32{-1}, n*k)}
	for i, row := range trained {
		of := page.Neighbors.Of(row)
		for r, j := range nb.Of(i)[:k] {
			if j >= 0 {
				of[r] = int32(trained[j])
			}
		}
	}
}
