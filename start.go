package cne

import (
	"cmp"
	"context"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
)

// StartFrom returns positions for InitGiven (Options.Start) from an earlier embedding [m,
// d], so the new embedding resembles it. rows[i] is the row of point i in earlier, or −1
// if the point is new. If rows is nil, the first m points are those of earlier. New points
// start near their neighbours: see initial.FromEarlier. Errors wrap ErrOption.
func (h *Neighborhood) StartFrom(earlier *data.Matrix, rows []int, seed uint64) (*data.Matrix, error) {
	if h == nil || h.Graph == nil {
		return nil, badOption("got no graph to start from, want one of Prepare")
	}
	start, err := initial.FromEarlier(h.Graph, earlier, rows, seed)
	if err != nil {
		return nil, badOption("%v", err)
	}
	return start, nil
}

// finerStd is the standard deviation of the first axis to which the positions of larger
// groups are scaled before smaller groups start from them. It is wide enough to keep
// groups apart, and narrow enough for attraction to act across them.
const finerStd = 20

// embedGroups returns the function that embeds groups of points for InitMultilevel. It
// uses InfoNC-t-SNE with the weights of the edges between groups.
func embedGroups(o *Options, dim int) initial.EmbedFunc {
	return func(ctx context.Context, g *neighbors.Graph, from *data.Matrix, first bool) (*data.Matrix, error) {
		o.log("embedding groups of neighbours", "groups", g.N, "edges", g.Edges())
		std, arrange := float64(finerStd), train.Phase{Epochs: 4, LR: 0.5, Negatives: 5, Spectrum: train.FromS(1)}
		if first {
			std, arrange = 1, train.Phase{Epochs: 5, LR: 1, Negatives: 5, Spectrum: train.FromS(1)}
		}
		part := train.Phase{Epochs: 10, LR: 8, Negatives: 100, Spectrum: train.FromS(0)}
		table, err := initial.Table[float32](from, dim, std, o.Seed)
		if err != nil {
			return nil, err
		}
		m, err := model.NewEmbedding(table, dim, (&Options{Loss: op.InfoNC}).Objective())
		if err != nil {
			return nil, err
		}
		if _, err := train.Fit(ctx, m, g.Heads(), g.Indices, train.Options{
			Phases: []train.Phase{arrange, part}, Seed: o.Seed, Device: o.Device, Weights: g.Weights, Clip: DefaultClip,
			Retries: DefaultRetries, OnRetry: func(x train.Retry) error {
				o.log("groups diverged, and begin again with a lower learning rate", "lr", x.LR)
				return nil
			},
		}); err != nil {
			return nil, err
		}
		positions := data.NewMatrix(g.N, dim)
		return positions, m.EmbedTo(positions.X)
	}
}

// startingTable returns the initial positions of a non-parametric embedding.
func startingTable[T op.Float](ctx context.Context, h *Neighborhood, o *Options, dim int) ([]T, error) {
	std := cmp.Or(o.InitStd, 1)
	var coordinates *data.Matrix
	var err error
	switch {
	case o.Init == InitRandom || o.Resume != nil: // a resumed state replaces any start
		return initial.Random[T](h.Reduced.N, dim, std, o.Seed)
	case o.Init == InitGiven && o.Start == nil:
		return nil, badOption("got InitGiven without Start")
	case o.Init == InitGiven:
		start := o.Start.Relative(nil)
		return slices.Clone(convert[T](start.X)), nil
	case o.Init == InitSpectral:
		o.log("computing the initial positions", "from", "eigenvectors")
		if h.maps == nil || h.maps.D != min(dim, initial.MostEigenmaps) { // computed once for a spectrum
			o.log("computing Laplacian eigenmaps", "points", h.Graph.N)
			if h.maps, err = initial.Eigenmaps(ctx, h.Graph, h.Reduced, dim); err != nil {
				return nil, err
			}
		}
		coordinates = h.maps
	case o.Init == InitDiffusion:
		o.log("computing the initial positions", "from", "principal components and the graph")
		coordinates, err = initial.Diffusion(ctx, h.Graph, h.Reduced, dim)
	case o.Init == InitMultilevel:
		o.log("computing the initial positions", "from", "groups of neighbours")
		coordinates, err = initial.Multilevel(ctx, h.Graph, h.Reduced, dim, o.Seed, embedGroups(o, dim))
	default:
		coordinates, err = initial.Components(ctx, h.Reduced, dim)
	}
	if err != nil {
		return nil, err
	}
	return initial.Table[T](coordinates, dim, std, o.Seed)
}
