package cne

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/pca"
	"cne/internal/rng"
	"cne/internal/spectral"
	"cne/model"
	"cne/model/op"
)

// StartFrom returns positions for Options.Start at which points stay that an earlier
// embedding [m, d] has, so that the new one lies like it: rows[i] is the row of the earlier
// embedding that point i has, or −1 for a point that it does not have; nil means that its
// rows are the first of the points. A point that is new starts at the mean of its
// neighbours in the graph that have a place, a point without such when its neighbours have
// got theirs in that way, and one with no way to any at random about the middle. New points
// are moved by a ten-thousandth of the earlier spread at random, so that no two coincide.
// Errors wrap ErrOption.
func (h *Neighborhood) StartFrom(earlier *data.Matrix, rows []int, seed uint64) (*data.Matrix, error) {
	if h == nil || h.Graph == nil {
		return nil, badOption("a start without a graph; Prepare or Complete makes it")
	}
	if err := checkPoints(earlier); err != nil || earlier.CSR != nil {
		return nil, badOption("an earlier embedding without positions, or with sparse ones")
	}
	n, d := h.Graph.N, earlier.D
	if rows == nil {
		if earlier.N > n {
			return nil, badOption("an earlier embedding of %d points for %d; say which of its rows the points have", earlier.N, n)
		}
		rows = slices.Repeat([]int{-1}, n)
		for i := range earlier.N {
			rows[i] = i
		}
	}
	if len(rows) != n {
		return nil, badOption("%d rows for %d points", len(rows), n)
	}
	from := earlier.Relative(nil)
	start := data.NewMatrix(n, d)
	placed := make([]bool, n)
	var front []int32
	for i, row := range rows {
		switch {
		case row >= earlier.N || row < -1:
			return nil, badOption("row %d of an earlier embedding of %d points", row, earlier.N)
		case row >= 0:
			copy(start.Row(i), from.Row(row))
			placed[i] = true
			front = append(front, int32(i))
		}
	}
	if len(front) == 0 {
		return nil, badOption("an earlier embedding that has none of the points")
	}
	middle, square := moments(start, front)
	spread := math.Sqrt(square / float64(len(front)*d))
	if spread == 0 {
		spread = 1 // they coincide
	}
	noise := rng.New(seed, rng.Init)
	around := h.neighborsOf()
	for len(front) > 0 {
		front = h.placeNext(start, placed, front, around)
		for _, i := range front {
			for j := range d {
				start.Row(int(i))[j] += float32(1e-4 * spread * noise.Normal())
			}
		}
	}
	for i := range n {
		if placed[i] {
			continue
		}
		for j := range d {
			start.Row(i)[j] = float32(middle[j] + spread*noise.Normal())
		}
	}
	return start, nil
}

// neighborsOf returns the graph's neighbours of points, in both directions if its edges are
// in one alone.
func (h *Neighborhood) neighborsOf() func(i int32) []int32 {
	ptr, adj := spectral.Symmetric(h.Graph.Indptr, h.Graph.Indices)
	return func(i int32) []int32 { return adj[ptr[i]:ptr[i+1]] }
}

// placeNext places the neighbours of those placed last that have no place yet, each at the
// mean of its neighbours that had one before, and returns them in ascending order.
func (h *Neighborhood) placeNext(start *data.Matrix, placed []bool, last []int32, around func(int32) []int32) []int32 {
	var next []int32
	for _, i := range last {
		for _, j := range around(i) {
			if !placed[j] {
				next = append(next, j)
			}
		}
	}
	slices.Sort(next)
	next = slices.Compact(next)
	sum := make([]float64, start.D)
	for _, i := range next {
		clear(sum)
		count := 0.
		for _, j := range around(i) {
			if placed[j] {
				count++
				for k, v := range start.Row(int(j)) {
					sum[k] += float64(v)
				}
			}
		}
		for k, v := range sum {
			start.Row(int(i))[k] = float32(v / count)
		}
	}
	for _, i := range next {
		placed[i] = true
	}
	return next
}

// moments returns the mean of some rows, and the sum of their squared distances from it.
func moments(m *data.Matrix, rows []int32) (mean []float64, square float64) {
	mean = make([]float64, m.D)
	for _, i := range rows {
		for j, v := range m.Row(int(i)) {
			mean[j] += float64(v) / float64(len(rows))
		}
	}
	for _, i := range rows {
		for j, v := range m.Row(int(i)) {
			square += (float64(v) - mean[j]) * (float64(v) - mean[j])
		}
	}
	return mean, square
}

// components returns the first principal components of the points, at most dim.
func (h *Neighborhood) components(ctx context.Context, dim int) (*data.Matrix, error) {
	// Points that are principal components already come out as they are.
	pca, err := pca.Fit(ctx, h.Points, min(dim, h.Points.D, h.Points.N), nil)
	if err != nil {
		return nil, err
	}
	return pca.Transform(ctx, h.Points, nil)
}

// spectralStart returns the first eigenmaps of the graph. In a graph of several components
// each has its own, about the middle of its principal components and as large as these.
// They are found once, for all embeddings of a spectrum.
func (h *Neighborhood) spectralStart(ctx context.Context, o *Options, dim int) (*data.Matrix, error) {
	if h.maps != nil && h.maps.D == min(dim, spectral.Most) {
		return h.maps, nil
	}
	maps, err := h.eigenmaps(ctx, o, dim)
	if err == nil {
		h.maps = maps
	}
	return maps, err
}

func (h *Neighborhood) eigenmaps(ctx context.Context, o *Options, dim int) (*data.Matrix, error) {
	o.log("computing Laplacian eigenmaps", "points", h.Graph.N)
	m, err := spectral.Eigenmaps(ctx, h.Graph.Indptr, h.Graph.Indices, min(dim, spectral.Most))
	if err != nil {
		return nil, err
	}
	maps := &data.Matrix{N: h.Graph.N, D: min(dim, spectral.Most), X: m.X}
	if len(m.Sizes) < 2 {
		return maps, nil
	}
	pca, err := h.components(ctx, dim)
	if err != nil {
		return nil, err
	}
	members := make([][]int32, len(m.Sizes))
	for i, c := range m.Component {
		members[c] = append(members[c], int32(i))
	}
	for _, rows := range members {
		middle, is := moments(pca, rows)
		mean, was := moments(maps, rows)
		factor := 0.
		if was > 0 {
			factor = math.Sqrt(is / was)
		}
		for _, i := range rows {
			row := maps.Row(int(i))
			for j, v := range row {
				at := factor * (float64(v) - mean[j])
				if j < len(middle) {
					at += middle[j]
				}
				row[j] = float32(at)
			}
		}
	}
	return maps, nil
}

// startingTable returns the positions from which a table begins.
func startingTable[T op.Float](ctx context.Context, h *Neighborhood, o *Options, dim int) ([]T, error) {
	std := orElse(o.StartStd, 1)
	var coordinates *data.Matrix
	var err error
	switch {
	case o.Start != nil:
		start := o.Start.Relative(nil)
		return slices.Clone(convert[T](start.X)), nil
	case o.RandomStart || o.Resume != nil: // which replaces any start
		return model.InitNormal[T](h.Points.N, dim, std, o.Seed)
	case o.SpectralStart:
		o.log("finding where to start", "from", "eigenvectors")
		coordinates, err = h.spectralStart(ctx, o, dim)
	case o.CoarseStart:
		o.log("finding where to start", "from", "groups of neighbours")
		coordinates, err = h.coarseStart(ctx, o, dim, coarseEnough)
	default:
		coordinates, err = h.components(ctx, dim)
	}
	if err != nil {
		return nil, err
	}
	return model.InitFrom[T](coordinates.X, coordinates.D, dim, std, o.Seed)
}
