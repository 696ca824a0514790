package neighbors

import (
	"context"
	"fmt"
	"math"
	"sync"

	"cne/data"
)

// An Index finds the nearest of a fixed set of base points to any query
// points. What the search needs of the base is prepared once, so that queries
// can come in many blocks. Several goroutines may use an Index at once.
type Index struct {
	base       *data.Matrix
	candidates candidates   // nil where only the tree is searched
	maxK       int          // the most neighbours that have candidates
	frame      *frame       // of the candidates' s
	graph      *walkGraph   // nil where the search is exact
	tree       func() *tree // made when it is first needed
}

// NewIndex prepares the base points for searching; they must not change while
// the index is in use. It takes about as much memory as the points, and as
// much again once a search has needed the tree. A device keeps three copies of the
// base until Free, two without Device.TF32 or in up to 8 dimensions, and needs 64 MiB more for a search; with
// less memory it is given the base in parts by each search. An approximate index finds
// near points of the base first, which takes as long as KNN does; it pays from
// some ten thousands of queries on.
//
// It fails if base is empty or its sizes do not fit together (ErrInput), or if
// a value is NaN or infinite (ErrNotFinite). If ctx ends before, the error is
// ctx's.
func NewIndex(ctx context.Context, base *data.Matrix, opt Options) (*Index, error) {
	if err := checkSizes(base, "base"); err != nil {
		return nil, err
	}
	if err := checkFinite(base, "base "); err != nil {
		return nil, err
	}
	if opt.Search.Approximates(base.N, base.D, walkRoom) {
		x := newTreeIndex(base)
		var err error
		if x.graph, err = newWalkGraph(ctx, base, opt.Seed); err != nil {
			return nil, err
		}
		return x, nil
	}
	return newIndex(ctx, base, 1, opt)
}

// newTreeIndex returns an index without candidates or graph.
func newTreeIndex(base *data.Matrix) *Index {
	return &Index{base: base, tree: sync.OnceValue(func() *tree { return newTree(base) })}
}

// newIndex returns an exact index of usable points for searches of k or more
// neighbours.
func newIndex(ctx context.Context, base *data.Matrix, k int, opt Options) (*Index, error) {
	x := newTreeIndex(base)
	switch on := opt.Device; {
	case tooFew(base.N, k):
	case !on.OnHost() && k <= deviceMaxK:
		b, err := newDeviceBlocks(ctx, on, base)
		if err != nil {
			return nil, err
		}
		x.candidates, x.frame, x.maxK = b, &b.frame, deviceMaxK
	case base.D > treeMaxD:
		p := newPanels(base)
		x.candidates, x.frame, x.maxK = p, &p.frame, math.MaxInt
	}
	if err := ctx.Err(); err != nil {
		x.Free()
		return nil, err
	}
	return x, nil
}

// Free gives a device's memory back, if the index has some. The index must not
// be used any more.
func (x *Index) Free() {
	if x.candidates != nil {
		x.candidates.free()
	}
}

// Search finds the k nearest base points of every query point by Euclidean
// distance, in the way and with the exactness of KNN; see NewIndex for a base
// that is searched more than once.
func Search(ctx context.Context, base, queries *data.Matrix, k int, opt Options) (*Neighbors, error) {
	x, err := NewIndex(ctx, base, opt)
	if err != nil {
		return nil, err
	}
	defer x.Free()
	return x.Search(ctx, queries, k)
}

// Search finds the k nearest base points of every query point by Euclidean
// distance. A base point that equals the query is a neighbour like all others,
// at distance 0; of equally near points the one with the smaller index comes
// first. Unless the index is approximate, the result is exact with respect to sums
// of squared differences in float64; that of a query depends neither on the other
// queries nor on GOMAXPROCS.
//
// It fails if queries is empty, if its sizes do not fit together or its points
// have another width than the base's, or if k < 1 (all ErrInput), if the base
// has fewer than k points (ErrTooFewPoints), or if a value is NaN or infinite
// (ErrNotFinite). If ctx ends before the search does, the error is ctx's.
func (x *Index) Search(ctx context.Context, queries *data.Matrix, k int) (*Neighbors, error) {
	if err := checkSizes(queries, "query matrix"); err != nil {
		return nil, err
	}
	switch {
	case queries.D != x.base.D:
		return nil, fmt.Errorf("neighbors: %w: query points: got %d values each, want %d",
			ErrInput, queries.D, x.base.D)
	case k < 1:
		return nil, errK(k)
	case k > x.base.N:
		return nil, fmt.Errorf("neighbors: %w: k: got %d, want at most %d, the number of base points", ErrTooFewPoints, k, x.base.N)
	}
	if err := checkFinite(queries, "query "); err != nil {
		return nil, err
	}
	queries = queries.Relative(x.base.Offset)
	nb := newNeighbors(queries.N, k)
	if err := x.find(ctx, nb, queries, false); err != nil {
		return nil, err
	}
	return nb, nil
}
