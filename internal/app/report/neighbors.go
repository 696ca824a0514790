package report

import (
	"log/slog"
	"slices"

	"cne/data/neighbors"
	"cne/internal/explorer"
)

// AddNeighbors adds the nearest neighbours of the points that a run was trained on to its
// page; nil for none. rows are the rows of these points on the page; nil for all that are
// not held out.
func AddNeighbors(log *slog.Logger, page *explorer.Page, nb *neighbors.Neighbors, rows []int) {
	n := page.Views[0].Embedding.N
	if rows == nil {
		for i := range n {
			if page.HeldOut == nil || !page.HeldOut[i] {
				rows = append(rows, i)
			}
		}
	}
	if nb == nil || nb.N != len(rows) || slices.Max(rows) >= n {
		return // none, or of other points
	}
	k := min(nb.K, explorer.NeighborsShown(n))
	if k == 0 {
		log.Info("there are too many points to show their nearest neighbours on the page", "points", n)
		return
	}
	page.Neighbors = &neighbors.Neighbors{N: n, K: k, Index: slices.Repeat([]int32{-1}, n*k)}
	for i, row := range rows {
		for r, j := range nb.Of(i)[:k] {
			page.Neighbors.Index[k*row+r] = int32(rows[j])
		}
	}
}
