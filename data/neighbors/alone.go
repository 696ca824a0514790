package neighbors

import (
	"slices"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/selection"
)

// Alone returns the points of m that have no column other than 0 in common with another point:
// by Cosine and Jaccard they are equally far from all others. Rows of zeros are not among
// them.
func Alone(m *data.Matrix) (rows []int32) {
	use := make([]int32, m.D)
	count := func(i int, f func(column int)) {
		if m.CSR != nil {
			columns, _ := m.CSR.Row(i)
			for _, j := range columns {
				f(int(j))
			}
			return
		}
		for j, v := range m.Row(i) {
			if v != 0 {
				f(j)
			}
		}
	}
	for i := range m.N {
		count(i, func(j int) { use[j]++ })
	}
	for i := range m.N {
		used, shared := false, false
		count(i, func(j int) { used, shared = true, shared || use[j] > 1 })
		if used && !shared {
			rows = append(rows, int32(i))
		}
	}
	return rows
}

// LayApart returns nb with other neighbours for the given rows, in ascending order: each gets
// one random other point, and is no other point's neighbour, so that the rows are spread over
// the map instead of in a cluster of their own. It returns nb if fewer than two other points
// are left.
func LayApart(nb *Neighbors, rows []int32, seed uint64) *Neighbors {
	if len(rows) == 0 {
		return nb
	}
	apart := make([]bool, nb.N)
	for _, i := range rows {
		apart[i] = true
	}
	others := selection.Where(nb.N, func(i int32) bool { return !apart[i] })
	if len(others) < 2 {
		return nb
	}
	changed := &Neighbors{N: nb.N, K: nb.K, Index: slices.Clone(nb.Index), Dist2: slices.Clone(nb.Dist2)}
	stream := rng.New(seed, rng.Rows)
	order := stream.Perm(len(others))
	for r, i := range rows {
		list := changed.Of(int(i))
		for l := range list { // one edge, named often
			list[l] = others[order[r%len(order)]]
		}
	}
	for n, i := range others {
		list := changed.Of(int(i))
		at := slices.IndexFunc(list, func(j int32) bool { return !apart[j] })
		for l, j := range list {
			switch {
			case !apart[j]:
			case at >= 0:
				list[l] = list[at]
			default:
				list[l] = others[(n+1)%len(others)]
			}
		}
	}
	return changed
}
