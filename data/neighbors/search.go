package neighbors

import (
	"fmt"
	"math"
	"sync"

	"cne/data"
	"cne/internal/parallel"
)

// An Index finds the nearest of a fixed set of base points to any query
// points. What the search needs of the base is prepared once, so that queries
// can come in many blocks. An Index may be used by several goroutines at once.
type Index struct {
	base   *data.Matrix
	panels *panels     // nil in few dimensions, where the tree is searched
	remote *remoteBase // of an index on an accelerator, which has no panels
	frame  *frame      // of either
	bound  errorBound
	tree   func() *tree // made when it is needed first
}

// NewIndex prepares the base points for searching; they must not change while
// the index is in use. It takes about as much memory as the points, and as
// much again once a search has needed the tree.
//
// It fails if base is empty or its sizes do not fit together, or if a value
// is NaN or infinite (ErrNotFinite).
func NewIndex(base *data.Matrix) (*Index, error) {
	x, err := newIndex(base)
	if err != nil {
		return nil, err
	}
	if base.D > treeMaxD {
		x.panels, x.bound = newPanels(base), newErrorBound(base.D)
		x.frame = &x.panels.frame
	}
	return x, nil
}

// newIndex returns an index that knows the tree alone.
func newIndex(base *data.Matrix) (*Index, error) {
	if err := checkSizes(base, "base"); err != nil {
		return nil, err
	}
	if err := checkFinite(base, "base "); err != nil {
		return nil, err
	}
	return &Index{base: base, tree: sync.OnceValue(func() *tree { return newTree(base) })}, nil
}

// Search finds the k nearest base points of every query point by Euclidean
// distance, in the way and with the exactness of KNN; see NewIndex for a base
// that is searched more than once.
func Search(base, queries *data.Matrix, k int) (*Neighbors, error) {
	x, err := NewIndex(base)
	if err != nil {
		return nil, err
	}
	return x.Search(queries, k)
}

// Search finds the k nearest base points of every query point by Euclidean
// distance. A base point that equals the query is a neighbour like all others,
// at distance 0; of equally near points the one with the smaller index comes
// first. The result is exact with respect to sums of squared differences in
// float64, and so that of a query depends neither on the other queries nor on
// GOMAXPROCS.
//
// It fails if queries is empty, if its sizes do not fit together or its points
// have another width than the base's, if k < 1, if the base has fewer than k
// points (ErrTooFewPoints), or if a value is NaN or infinite (ErrNotFinite).
func (x *Index) Search(queries *data.Matrix, k int) (*Neighbors, error) {
	if err := checkSizes(queries, "query matrix"); err != nil {
		return nil, err
	}
	switch {
	case queries.D != x.base.D:
		return nil, fmt.Errorf("neighbors: the query points have %d values, the base points %d; search with points of the same width", queries.D, x.base.D)
	case k < 1:
		return nil, errK(k)
	case k > x.base.N:
		return nil, fmt.Errorf("neighbors: %w: among %d base points there are no %d neighbours; set k to at most %[2]d or give more points",
			ErrTooFewPoints, x.base.N, k)
	}
	if err := checkFinite(queries, "query "); err != nil {
		return nil, err
	}
	nb := newNeighbors(queries.N, k)
	if x.remote != nil && remotely(x.remote.device, x.base.N, k) {
		if _, err := x.searchRemote(nb, queries); err != nil {
			return nil, err
		}
		return nb, nil
	}
	// As in KNN, few candidates have to be ranked out of many points.
	if x.panels == nil || x.base.N/4 < k+slack {
		t := x.tree()
		parallel.For(queries.N, searchGrain, func(_, lo, hi int) {
			best := newTopK(k)
			for i := lo; i < hi; i++ {
				best.resetAll()
				t.search(best, queries.Row(i), nobody, 0)
				best.store(nb, i)
			}
		})
		return nb, nil
	}
	x.searchBlocked(nb, queries)
	return nb, nil
}

// nobody is the point to exclude when there is none.
const nobody = -1

// farQuery bounds the norm of queries whose products are computed: z ≤ 2⁴⁰
// keeps them below beyond, and far from overflow. Queries that are farther
// from the base, on its own scale, are searched in the tree.
const farQuery = 0x1p40

// far tells whether a query of that norm is so far.
func far(norm float64) bool { return !(norm <= farQuery) }

// settle ranks the candidates of query i, of that norm, and reports whether it is
// certain that row i of nb then has its neighbours.
func (x *Index) settle(best *topK, nb *Neighbors, i int, query []float32, keys []uint64, threshold float32, norm float64) bool {
	if far(norm) {
		// Without candidates, nothing limits the search of the tree.
		nb.Dist2[(i+1)*nb.K-1] = math.Inf(1)
		return false
	}
	certain := x.frame.rank(best, query, x.base, keys, threshold, norm, x.bound)
	best.store(nb, i)
	return certain
}

// A searcher is what one goroutine needs to search for a block of queries.
type searcher struct {
	*workspace
	panel      []float32
	norm       []float64
	candidates *candidates
	best       *topK
}

// searchBlocked is Search by block products for checked arguments. It returns
// the number of queries that were searched in the tree.
func (x *Index) searchBlocked(nb *Neighbors, queries *data.Matrix) (searched int) {
	p := x.panels
	pool := sync.Pool{New: func() any {
		return &searcher{
			workspace: p.newWorkspace(), panel: make([]float32, p.size()), norm: make([]float64, blockSize),
			candidates: newCandidates(blockSize, nb.K), best: newTopK(nb.K),
		}
	}}
	open := make([][]int32, parallel.Pieces(queries.N, blockSize))
	parallel.For(queries.N, blockSize, func(piece, lo, hi int) {
		s := pool.Get().(*searcher)
		defer pool.Put(s)
		rows := hi - lo
		p.fill(s.panel, queries.Rows(lo, hi), s.norm)
		for r := range rows {
			if far(s.norm[r]) {
				s.panel[r] = 2 * beyond
				for l := range p.d {
					s.panel[(2+l)*blockSize+r] = 0
				}
			}
		}
		s.candidates.reset()
		for block := range p.blocks {
			p.multiply(s.workspace, s.panel, rows, block)
			s.candidates.scan(s.products, &noThresholds, 0, block, rows)
		}
		for r := range rows {
			keys, threshold := s.candidates.of(r)
			if !x.settle(s.best, nb, lo+r, queries.Row(lo+r), keys, threshold, s.norm[r]) {
				open[piece] = append(open[piece], int32(lo+r))
			}
		}
	})
	return improveAll(nb, x.tree, queries, open, false)
}
