package initial

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
)

// fewGroups is up to how many groups are not put together any more.
const fewGroups = 1 << 15

// An EmbedFunc embeds the points of a weighted graph, which are groups of points, from the
// given positions, in a width of its own choice. first says that it is the coarsest graph,
// whose positions are principal components; those of the others are where the level before
// has led.
type EmbedFunc func(ctx context.Context, g *neighbors.Graph, from *data.Matrix, first bool) (*data.Matrix, error)

// Multilevel returns positions to which embeddings of groups of neighbours lead: of few
// large ones first, which cost little and move whole clusters at a time, then of smaller
// ones, which start where the larger were, and so on, up to the points, which lie about
// the position of their group. There are levels of groups until one has at most 32 768, but
// at least one; where groups have no edges, because each is a whole component, the points
// start at their principal components, at most dim. Errors are those of Components and of
// embed, and ctx's if it ends before.
func Multilevel(ctx context.Context, g *neighbors.Graph, points *data.Matrix, dim int, seed uint64, embed EmbedFunc) (*data.Matrix, error) {
	return multilevel(ctx, g, points, dim, fewGroups, seed, embed)
}

func multilevel(ctx context.Context, g *neighbors.Graph, points *data.Matrix, dim, few int, seed uint64, embed EmbedFunc) (*data.Matrix, error) {
	positions, err := Components(ctx, points, dim)
	if err != nil {
		return nil, err
	}
	var graphs []*neighbors.Graph // of the groups, from small ones to large ones
	var groups [][]int32          // of the points of the graph before
	for (g.N > few || len(graphs) == 0) && ctx.Err() == nil {
		coarse, group := coarsen(g)
		if coarse.Edges() < 2 || 10*coarse.N > 9*g.N { // nothing to arrange, or hardly fewer
			break
		}
		graphs, groups = append(graphs, coarse), append(groups, group)
		positions = meansOf(positions, group, coarse.N)
		g = coarse
	}
	for level, g := range slices.Backward(graphs) {
		if positions, err = embed(ctx, g, positions, level == len(graphs)-1); err != nil {
			return nil, err
		}
		positions = scatter(positions, groups[level], seed)
	}
	return positions, ctx.Err()
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

// scatter returns positions for the members of groups: those of the groups, moved at
// random about as far as the nearest groups are, so that no two coincide.
func scatter(x *data.Matrix, group []int32, seed uint64) *data.Matrix {
	all := make([]int32, x.N)
	for c := range all {
		all[c] = int32(c)
	}
	_, square := moments(x, all)
	distance := math.Sqrt(square/float64(x.N)) * math.Pow(float64(x.N), -1/float64(x.D))
	noise := rng.New(seed, rng.Init, uint64(x.N))
	members := data.NewMatrix(len(group), x.D)
	for i, c := range group {
		for j, v := range x.Row(int(c)) {
			members.Row(i)[j] = v + float32(distance*noise.Normal())
		}
	}
	return members
}
