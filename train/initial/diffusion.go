package initial

import (
	"cmp"
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/train/quality"
)

const (
	// diffusionSteps is the number of times that neighbours are averaged.
	diffusionSteps = 30
	// ownShare is the share of a point's own principal components in each average. Without
	// it, the points of a small component would meet.
	ownShare = 0.05
	// boxShare is how far components move from their means to their boxes, from 0 to 1, and
	// how much of its box a component fills.
	boxShare = 1. / 3
)

// Diffusion returns the first principal components of points, at most dim, averaged over
// neighbours in a graph many times. Points of a class come together, and the arrangement
// of classes remains. Edges count in both directions, and weights are ignored. If the
// graph has several components, each has its own principal components, and they lie side
// by side, in the arrangement of the principal components of all points. Errors come from
// Components, or are ctx.Err() if ctx is done.
func Diffusion(ctx context.Context, g *neighbors.Graph, points *data.Matrix, dim int) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	all := kind.Got(Components(ctx, points, dim))
	g = g.Symmetrized()
	members := connected(g.Indptr, g.Indices)
	x := kind.Got(ownComponents(ctx, points, all, members))
	mean, next := selection.As[float64](x.X), make([]float64, len(x.X))
	for range diffusionSteps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		neighborMeans(g, next, mean, x.D)
		for i, v := range x.X {
			mean[i] = float64(ownShare*float64(v)) + float64((1-ownShare)*next[i])
		}
	}
	selection.Convert(x.X, mean)
	setApart(x, all, members)
	return x, nil
}

// neighborMeans sets y to the means of x, of m columns, over each node of a symmetric graph
// and its neighbours.
func neighborMeans(g *neighbors.Graph, y, x []float64, m int) {
	parallel.For(g.N, grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row, tails := y[i*m:(i+1)*m:(i+1)*m], g.Tails(i)
			clear(row)
			for _, j := range tails {
				for k, v := range x[int(j)*m : (int(j)+1)*m] {
					row[k] += v
				}
			}
			root := 1 / math.Sqrt(float64(len(tails)+1))
			share := float64(root * root)
			for k, v := range x[i*m : (i+1)*m] {
				row[k] = (row[k] + v) * share
			}
		}
	})
}

// ownComponents returns the principal components of each component of a graph, aligned
// with the principal components of all points. members are the points of each component.
func ownComponents(ctx context.Context, points, all *data.Matrix, members [][]int32) (*data.Matrix, error) {
	x := all.Clone()
	for _, nodes := range members {
		if len(members) == 1 || len(nodes) <= x.D { // it is all, or spans fewer dimensions
			continue
		}
		rows := selection.As[int](nodes)
		own, err := Components(ctx, points.Take(rows), x.D)
		if err != nil {
			return nil, err
		}
		if _, _, err := quality.Align(own, all.Take(rows), false); err != nil {
			continue // the points are identical
		}
		for k, i := range rows {
			copy(x.Row(i), own.Row(k))
		}
	}
	return x, nil
}

// setApart moves the components of a graph, so that none overlaps another. Space is cut
// into boxes, one for each component, in the order of the means of the components in at,
// and as large as its number of points. A component lies between its mean and the middle
// of its box, scaled to fill its share of the box.
func setApart(x, at *data.Matrix, members [][]int32) {
	if len(members) == 1 {
		return
	}
	means, order := make([][]float64, len(members)), make([]int, len(members))
	centre, spread := make([]float64, x.D), 0.
	for c, nodes := range members {
		order[c], means[c] = c, make([]float64, x.D)
		mean, _ := at.Moments(nodes)
		copy(means[c], mean)
		for j, v := range mean[:min(x.D, at.D)] {
			centre[j] += float64(v*float64(len(nodes))) / float64(x.N)
		}
	}
	for c, nodes := range members {
		for j := range means[c] {
			means[c][j] -= centre[j]
			spread += float64(float64(means[c][j]*means[c][j]) * float64(len(nodes)))
		}
	}
	side := math.Sqrt(12 * spread / float64(x.N*x.D)) // a box of this side has this spread
	if side == 0 {
		side = 1
	}
	place := func(c int, lo, hi []float64) {
		narrowest := math.Inf(1)
		for j := range lo {
			narrowest = min(narrowest, hi[j]-lo[j])
		}
		mean, square := x.Moments(members[c])
		factor := 0.
		if square > 0 {
			// Nearly all points are within two standard deviations. A thin box holds few points.
			factor = boxShare * side * max(narrowest, 1e-3) / 4 / math.Sqrt(square/float64(len(members[c])))
		}
		for _, i := range members[c] {
			for j, v := range x.Row(int(i)) {
				middle := float64((1-boxShare)*means[c][j]) + float64(boxShare*side*(float64((lo[j]+hi[j])/2)-0.5))
				x.Row(int(i))[j] = float32(middle + float64(factor*(float64(v)-mean[j])))
			}
		}
	}
	var cut func(order []int, lo, hi []float64)
	cut = func(order []int, lo, hi []float64) {
		if len(order) == 1 {
			place(order[0], lo, hi)
			return
		}
		j := 0 // the longest side
		for k := range lo {
			if hi[k]-lo[k] > hi[j]-lo[j] {
				j = k
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[a][j], means[b][j]) })
		total := 0
		for _, c := range order {
			total += len(members[c])
		}
		first, count := len(members[order[0]]), 1                                 // the points and components of the first half
		for count < len(order)-1 && 2*first+len(members[order[count]]) <= total { // no less even with the next
			first += len(members[order[count]])
			count++
		}
		left, right := lo[j], hi[j]
		hi[j] = left + (right-left)*float64(first)/float64(total)
		cut(order[:count], lo, hi)
		lo[j], hi[j] = hi[j], right
		cut(order[count:], lo, hi)
		lo[j] = left
	}
	cut(order, make([]float64, x.D), slices.Repeat([]float64{1}, x.D))
}
