package cne

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

const (
	// coarseEnough is up to how many groups are not put together any more.
	coarseEnough = 1 << 15
	// finerStd is the standard deviation of the first axis at which smaller groups begin
	// where larger ones have led: so that these neither meet again nor are too far from
	// each other to attract.
	finerStd = 20
)

// coarseStart returns positions to which embeddings of groups of neighbours lead: of few
// large ones first, which cost little and move whole clusters at a time, then of smaller
// ones, which start where the larger were, and so on, up to the points, which lie about
// the place of their group. The embeddings are InfoNC-t-SNE with the weights of the edges
// between groups. There are levels of groups until one has at most enough, but at least
// one; where groups have no edges, because each is a whole component, the points start at
// the principal components.
func (h *Neighborhood) coarseStart(ctx context.Context, o *Options, dim, enough int) (*data.Matrix, error) {
	positions, err := h.components(ctx, dim)
	if err != nil {
		return nil, err
	}
	var graphs []*neighbors.Graph // of the groups, from small ones to large ones
	var groups [][]int32          // of the points of the graph before
	for g := h.Graph; (g.N > enough || len(graphs) == 0) && ctx.Err() == nil; {
		coarse, group := g.Coarsen()
		if coarse.Edges() < 2 || 10*coarse.N > 9*g.N { // nothing to arrange, or hardly fewer
			break
		}
		graphs, groups = append(graphs, coarse), append(groups, group)
		positions = meansOf(positions, group, coarse.N)
		g = coarse
	}
	for level, g := range slices.Backward(graphs) {
		o.log("embedding groups of neighbours", "groups", g.N, "edges", g.Edges())
		if positions, err = h.embedGroups(ctx, o, g, positions, dim, level == len(graphs)-1); err != nil {
			return nil, err
		}
		positions = scatter(positions, groups[level], o.Seed)
	}
	return positions, ctx.Err()
}

// embedGroups returns positions for the points of a graph of groups, which start at
// others. The first level starts at principal components, the others where the level
// before was.
func (h *Neighborhood) embedGroups(ctx context.Context, o *Options, g *neighbors.Graph, from *data.Matrix, dim int, first bool) (*data.Matrix, error) {
	std, arrange := float64(finerStd), train.Phase{Epochs: 4, LR: 0.5, Negatives: 5, Place: train.AtS(1)}
	if first {
		std, arrange = 1, train.Phase{Epochs: 20, LR: 1, Negatives: 5, Place: train.AtS(1)}
	}
	part := train.Phase{Epochs: 20, LR: 8, Negatives: 500, Place: train.AtS(0)}
	table, err := model.InitFrom[float32](from.X, from.D, dim, std, o.Seed)
	if err != nil {
		return nil, err
	}
	m, err := model.NewEmbedding(table, dim, (&Options{Loss: op.InfoNC}).Objective())
	if err != nil {
		return nil, err
	}
	if _, err := train.Fit(ctx, m, g.Heads(), g.Indices, train.Options{
		Phases: []train.Phase{arrange, part}, Seed: o.Seed, Device: o.Device, Weights: g.Weights, Clip: DefaultClip,
	}); err != nil {
		return nil, err
	}
	positions := data.NewMatrix(g.N, dim)
	return positions, m.EmbedTo(positions.X)
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
