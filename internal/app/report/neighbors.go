package report

import (
	"log/slog"
	"slices"

	"cne/data/neighbors"
	"cne/internal/explorer"
)

// Neighbors returns the nearest neighbours that the page of a map shows, of those of the
// points that a run was trained on; nil for none. rows are the rows of these points in the
// map; nil for all that are not held out.
func (m *Map) Neighbors(log *slog.Logger, nb *neighbors.Neighbors, rows []int) *neighbors.Neighbors {
	n := m.Positions.N
	if rows == nil {
		for i := range n {
			if m.HeldOut == nil || !m.HeldOut[i] {
				rows = append(rows, i)
			}
		}
	}
	if nb == nil || nb.N != len(rows) || slices.Max(rows) >= n {
		return nil // none, or of other points
	}
	k := min(nb.K, explorer.NeighborsShown(n))
	if k == 0 {
		log.Info("there are too many points to show their nearest neighbours on the page", "points", n)
		return nil
	}
	all := &neighbors.Neighbors{N: n, K: k, Index: slices.Repeat([]int32{-1}, n*k)}
	for i, row := range rows {
		for r, j := range nb.Of(i)[:k] {
			all.Index[k*row+r] = int32(rows[j])
		}
	}
	return all
}
