package initial

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
)

// grain is the number of rows that a core takes at once.
const grain = 2048

// fewGroups is a number of groups that needs no coarser level; tests change it.
var fewGroups = 1 << 15

// An EmbedFunc embeds the nodes of a weighted graph of groups of points, starting from
// the given positions. It chooses the width of the embedding. first reports whether the
// graph is the coarsest. The coarsest graph starts at principal components, other graphs
// at the positions of the previous level.
type EmbedFunc func(ctx context.Context, g *neighbors.Graph, from *data.Matrix, first bool) (*data.Matrix, error)

// Multilevel returns positions from embeddings of groups of neighbours. A few large groups
// are embedded first. This costs little and moves whole clusters at a time. Smaller groups
// then start from the positions of the larger ones, and so on. Finally each point starts
// near the position of its group. Levels are added until one has at most 32 768 groups;
// there is at least one. If groups have no edges, because each is a whole component, the
// points start at their principal components, at most dim. Components of the graph start
// side by side, as in Diffusion. Errors come from Components or
// embed, or are ctx.Err() if ctx is done.
func Multilevel(ctx context.Context, g *neighbors.Graph, points *data.Matrix, dim int, seed uint64, embed EmbedFunc) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	all := kind.Got(Components(ctx, points, dim))
	var graphs []*neighbors.Graph // of the groups, from small ones to large ones
	var groups [][]int32          // of the points of the graph before
	for (g.N > fewGroups || len(graphs) == 0) && ctx.Err() == nil {
		coarse, group := coarsen(g)
		if coarse.Edges() < 2 || 10*coarse.N > 9*g.N { // nothing to arrange, or too few nodes saved
			break
		}
		graphs, groups = append(graphs, coarse), append(groups, group)
		g = coarse
	}
	members := componentsBelow(g, groups)
	positions := kind.Got(ownComponents(ctx, points, all, members))
	setApart(positions, all, members)
	for level, group := range groups {
		positions = meansOf(positions, group, graphs[level].N)
	}
	for level, g := range slices.Backward(graphs) {
		positions = kind.Got(embed(ctx, g, positions, level == len(graphs)-1))
		positions = scatter(positions, groups[level], seed)
	}
	return positions, ctx.Err()
}

// componentsBelow returns the points of each component of a graph: its nodes or, if there
// are groups, the points in groups of groups that are its nodes.
func componentsBelow(g *neighbors.Graph, groups [][]int32) (members [][]int32) {
	g = g.Symmetrized()
	nodes := connected(g.Indptr, g.Indices)
	if len(groups) == 0 {
		return nodes
	}
	component := make([]int32, g.N)
	for c, of := range nodes {
		for _, i := range of {
			component[i] = int32(c)
		}
	}
	for _, group := range slices.Backward(groups) {
		component = selection.Pick(component, group)
	}
	start, points := membersOf(component, len(nodes))
	for c := range nodes {
		members = append(members, points[start[c]:start[c+1]])
	}
	return members
}

// meansOf returns the mean of the rows of each group.
func meansOf(x *data.Matrix, group []int32, groups int) *data.Matrix {
	sums, count := make([]float64, groups*x.D), make([]float64, groups)
	for i, c := range group {
		count[c]++
		for j, v := range x.Row(i) {
			sums[int(c)*x.D+j] += float64(v)
		}
	}
	means := data.NewMatrix(groups, x.D)
	for at, v := range sums {
		means.X[at] = float32(v / count[at/x.D])
	}
	return means
}

// scatter returns positions for the members of groups: the position of the group, moved at
// random about as far as the nearest groups are, so no two coincide.
func scatter(x *data.Matrix, group []int32, seed uint64) *data.Matrix {
	all := selection.UpTo[int32](x.N)
	_, square := x.Moments(all)
	distance := math.Sqrt(square/float64(x.N)) * elementary.Pow(float64(x.N), -1/float64(x.D))
	noise := rng.New(seed, rng.Init, uint64(x.N))
	members := data.NewMatrix(len(group), x.D)
	for i, c := range group {
		for j, v := range x.Row(int(c)) {
			members.Row(i)[j] = v + float32(distance*noise.Normal())
		}
	}
	return members
}

// coarsen returns a graph of groups of neighbours and the group of each point. The graph
// has fewer nodes but the same shape. Points are visited in order. A point forms a group
// with all its neighbours if none of them is in a group. Each remaining point then joins
// the group with the largest total weight of edges to it. In a graph of 15 nearest
// neighbours a group has about 60 points.
//
// The weights of edges between two groups add up. Edges within a group are left out. The
// result does not depend on GOMAXPROCS.
func coarsen(g *neighbors.Graph) (coarse *neighbors.Graph, group []int32) {
	group, groups := groupsOf(g)
	start, members := membersOf(group, groups)
	type rows struct {
		indices []int32
		weights []float32
	}
	pieces := make([]rows, parallel.Pieces(groups, grain))
	coarse = &neighbors.Graph{N: groups, Indptr: make([]int64, groups+1)}
	parallel.For(groups, grain, func(piece, lo, hi int) {
		r := &pieces[piece]
		var keys []uint64 // the other group of an edge, and the index of the edge
		var weights []float32
		for c := lo; c < hi; c++ {
			keys, weights = keys[:0], weights[:0]
			for _, i := range members[start[c]:start[c+1]] {
				for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
					if to := group[g.Indices[e]]; int(to) != c {
						keys = append(keys, uint64(to)<<32|uint64(len(weights)))
						weights = append(weights, g.Weight(e))
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
	selection.Accumulate(coarse.Indptr)
	coarse.Indices = make([]int32, 0, coarse.Indptr[groups])
	coarse.Weights = make([]float32, 0, coarse.Indptr[groups])
	for i := range pieces {
		coarse.Indices = append(coarse.Indices, pieces[i].indices...)
		coarse.Weights = append(coarse.Weights, pieces[i].weights...)
	}
	return coarse, group
}

// seedGroups visits points in order. Each forms a group with all its neighbours if none
// of them is in a group. It returns the group of each point (−1 for none) and the number
// of groups.
func seedGroups(ptr []int64, adj []int32) (group []int32, groups int) {
	group = slices.Repeat([]int32{-1}, len(ptr)-1)
	for i := range group {
		around := adj[ptr[i]:ptr[i+1]]
		if group[i] >= 0 || slices.ContainsFunc(around, func(j int32) bool { return group[j] >= 0 }) {
			continue
		}
		group[i] = int32(groups)
		for _, j := range around {
			group[j] = int32(groups)
		}
		groups++
	}
	return group, groups
}

// membersOf returns the points in the order of their groups, and the position of the first
// of each group.
func membersOf(group []int32, groups int) (start, members []int32) {
	start = make([]int32, groups+1)
	for _, c := range group {
		start[c+1]++
	}
	selection.Accumulate(start)
	members = make([]int32, len(group))
	next := slices.Clone(start[:groups])
	for i, c := range group {
		members[next[c]] = int32(i)
		next[c]++
	}
	return start, members
}

// groupsOf returns the group of each point, as coarsen makes them, and their number.
func groupsOf(g *neighbors.Graph) (group []int32, groups int) {
	first, groups := seedGroups(g.Indptr, g.Indices)
	group = slices.Clone(first)
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
				sums[at] += g.Weight(e)
			}
			group[i] = near[slices.Index(sums, slices.Max(sums))]
		}
	})
	return group, groups
}
