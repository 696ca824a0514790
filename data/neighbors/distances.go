package neighbors

import (
	"cmp"
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/parallel"
)

const (
	// sampledHeads and sampledValues bound the points that AreDistances compares.
	sampledHeads, sampledValues = 200, 10_000_000
	// fewestPairs is the least number of pairs of edges that decide, if at least clearShare of
	// them agree.
	fewestPairs, clearShare = 20, 0.6
	// mostCompared is the number of edges from a point with which its others are compared.
	mostCompared = 64
)

// Reasons of AreDistances that do not come from the points.
const (
	AllEqual  = "are all equal"
	ExceedOne = "exceed 1"
)

// AreDistances reports whether the weights of a graph, as they are in a file, are distances
// instead: if the farther of two neighbours mostly has the larger one, by the Euclidean
// distances of the points (or their angles), or, where points decide nothing, if some
// exceed 1. why says which. points may be nil, and else must have as many points as g.
func AreDistances(ctx context.Context, g *Graph, points *data.Dataset, angular bool) (are bool, why string, err error) {
	defer kind.Catch(&err)
	if len(g.Weights) == 0 || slices.Max(g.Weights) == slices.Min(g.Weights) {
		return false, AllEqual, nil
	}
	if n, d := points.Dims(); n == g.N && d > 0 {
		switch share, pairs := g.concordance(ctx, points, angular); {
		case pairs >= fewestPairs && share >= clearShare:
			return true, "are larger for farther points", nil
		case pairs >= fewestPairs && share <= 1-clearShare:
			return false, "are smaller for farther points", nil
		}
	}
	if slices.Max(g.Weights) > 1 {
		return true, ExceedOne, nil
	}
	return false, "are at most 1", nil
}

// concordance returns the share of pairs of edges from one point whose weights have the
// order of their lengths, among the pairs that differ in both, of some points. It fails as
// kind.Need does.
func (g *Graph) concordance(ctx context.Context, points *data.Dataset, angular bool) (share float64, pairs int) {
	_, d := points.Dims()
	heads := min(g.N, sampledHeads, max(4, sampledValues/d*g.N/(g.N+len(g.Indices))))
	var rows []int
	for h := range heads {
		i := h * g.N / heads
		rows = append(rows, i)
		for _, j := range g.Tails(i) {
			rows = append(rows, int(j))
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	some := kind.Got(points.Take(rows))
	if some.Stored != nil {
		some.Points = kind.Got(data.Collect(ctx, some.Stored))
	}
	if angular { // points of zeros are equally far from all
		kind.Check(data.Cosine.Apply(some.Points, nil, make([]bool, len(rows))))
	}
	compare := Compare(some.Points, some.Points)
	at := func(i int) int {
		at, _ := slices.BinarySearch(rows, i)
		return at
	}
	agree := 0
	var lengths []float64
	for h := range heads {
		i := h * g.N / heads
		lengths = lengths[:0]
		for _, j := range g.Tails(i) {
			lengths = append(lengths, compare(at(i), at(int(j)), math.Inf(1)))
		}
		weights := g.Weights[g.Indptr[i]:g.Indptr[i+1]]
		for a := range lengths {
			for b := range min(a, mostCompared) {
				byWeight, byLength := cmp.Compare(weights[a], weights[b]), cmp.Compare(lengths[a], lengths[b])
				if byWeight != 0 && byLength != 0 {
					pairs++
					agree += toInt(byWeight == byLength)
				}
			}
		}
	}
	return float64(agree) / float64(max(1, pairs)), pairs
}

// findGiven sets nb to the nearest neighbours of queries that list their distances. It fails as
// kind.Need does.
func (x *Index) findGiven(ctx context.Context, nb *Neighbors, q queries) {
	kind.Check(parallel.ForContext(ctx, q.points.N, searchGrain, func(_, lo, hi int) {
		best := newTopK(nb.K)
		for i := lo; i < hi; i++ {
			best.resetAll()
			for j, d := range q.points.Row(i) {
				if !q.own || i != j {
					best.offer(max(0, float64(d)), int32(j))
				}
			}
			best.store(nb, i)
		}
	}))
}

// givenRanks is RanksOf for points that list their distances. least is 1 less their Tie.
func givenRanks(ctx context.Context, m *data.Matrix, rows []int, index []int32, k int, least float64) ([]int32, error) {
	ranks := make([]int32, len(index))
	return ranks, parallel.ForContext(ctx, len(rows), searchGrain, func(_, lo, hi int) {
		for e := lo * k; e < hi*k; e++ {
			i := rows[e/k]
			row := m.Row(i)
			ranks[e] = 1
			for l, d := range row {
				ranks[e] += int32(toInt(l != i && float64(d) < least*float64(row[index[e]])))
			}
		}
	})
}

// fromDistances makes the graph of the k nearest neighbours in the rows of g, whose weights
// are distances, with UMAP's weights if weighted is set. most is the largest number of
// neighbours in a row. It fails as kind.Need does.
func (g *Graph) fromDistances(k int, weighted bool) (_ *Graph, most int) {
	l := lists{start: []int{0}}
	for i := range g.N {
		lo := int(g.Indptr[i])
		order := make([]int, int(g.Indptr[i+1])-lo)
		for c := range order {
			order[c] = lo + c
		}
		most = max(most, len(order))
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.Weights[a], g.Weights[b]) })
		for _, e := range order[:min(k, len(order))] {
			d := float64(g.Weights[e])
			l.index, l.dist2 = append(l.index, g.Indices[e]), append(l.dist2, float64(d*d))
		}
		l.start = append(l.start, len(l.index))
	}
	if !weighted {
		return l.graph(), most
	}
	l.check()
	return l.fuzzy(), most
}
