package neighbors

import (
	"math"
	"slices"

	"cne/internal/parallel"
)

// Coarsen puts neighbours together, so that a graph has fewer points but the same shape:
// it returns the graph of groups of points, and the group of each point. A point, in the
// order of points, makes a group of itself and all its neighbours if none of them is in
// one. All that are left then join the group in which their neighbours weigh most. In a
// graph of 15 nearest neighbours a group has some 60 points.
//
// Between groups the magnitudes of the weights of edges add up, by which edges are drawn,
// or 1 for each where the graph has none; edges within a group are left out. The result does not depend on GOMAXPROCS.
func (g *Graph) Coarsen() (coarse *Graph, group []int32) {
	group, groups := g.groups()
	// The points by their groups.
	start := make([]int32, groups+1)
	for _, c := range group {
		start[c+1]++
	}
	for c := range groups {
		start[c+1] += start[c]
	}
	members, next := make([]int32, g.N), slices.Clone(start[:groups])
	for i, c := range group {
		members[next[c]] = int32(i)
		next[c]++
	}
	const grain = 2048
	type rows struct {
		indices []int32
		weights []float32
	}
	pieces := make([]rows, parallel.Pieces(groups, grain))
	coarse = &Graph{N: groups, Indptr: make([]int64, groups+1)}
	parallel.For(groups, grain, func(piece, lo, hi int) {
		r := &pieces[piece]
		var keys []uint64 // the other group of an edge, and which of the edges it is
		var weights []float32
		for c := lo; c < hi; c++ {
			keys, weights = keys[:0], weights[:0]
			for _, i := range members[start[c]:start[c+1]] {
				for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
					if to := group[g.Indices[e]]; int(to) != c {
						keys = append(keys, uint64(to)<<32|uint64(len(weights)))
						weights = append(weights, g.magnitude(e))
					}
				}
			}
			slices.Sort(keys)
			first := len(r.indices)
			for _, key := range keys {
				to, w := int32(key>>32), weights[uint32(key)]
				if last := len(r.indices) - 1; last >= first && r.indices[last] == to {
					r.weights[last] += w
					continue
				}
				r.indices, r.weights = append(r.indices, to), append(r.weights, w)
			}
			coarse.Indptr[c+1] = int64(len(r.indices) - first)
		}
	})
	for c := range groups {
		coarse.Indptr[c+1] += coarse.Indptr[c]
	}
	coarse.Indices = make([]int32, 0, coarse.Indptr[groups])
	coarse.Weights = make([]float32, 0, coarse.Indptr[groups])
	for i := range pieces {
		coarse.Indices = append(coarse.Indices, pieces[i].indices...)
		coarse.Weights = append(coarse.Weights, pieces[i].weights...)
	}
	return coarse, group
}

// groups returns the group of each point, as Coarsen makes them, and their number.
func (g *Graph) groups() (group []int32, groups int) {
	first := slices.Repeat([]int32{-1}, g.N)
	for i := range first {
		taken := func(j int32) bool { return first[j] >= 0 }
		if first[i] >= 0 || slices.ContainsFunc(g.Tails(i), taken) {
			continue
		}
		first[i] = int32(groups)
		for _, j := range g.Tails(i) {
			first[j] = int32(groups)
		}
		groups++
	}
	group = slices.Clone(first)
	const grain = 4096
	parallel.For(g.N, grain, func(_, lo, hi int) {
		var near []int32 // groups of the neighbours
		var sums []float32
		for i := lo; i < hi; i++ {
			if first[i] >= 0 {
				continue
			}
			near, sums = near[:0], sums[:0]
			for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
				c := first[g.Indices[e]]
				if c < 0 {
					continue
				}
				at := slices.Index(near, c)
				if at < 0 {
					at = len(near)
					near, sums = append(near, c), append(sums, 0)
				}
				sums[at] += g.magnitude(e)
			}
			heaviest := 0
			for at, sum := range sums {
				if sum > sums[heaviest] {
					heaviest = at
				}
			}
			group[i] = near[heaviest]
		}
	})
	return group, groups
}

// weight returns that of an edge.
func (g *Graph) weight(e int64) float32 {
	if g.Weights == nil {
		return 1
	}
	return g.Weights[e]
}

// magnitude returns that of an edge's weight.
func (g *Graph) magnitude(e int64) float32 { return float32(math.Abs(float64(g.weight(e)))) }
