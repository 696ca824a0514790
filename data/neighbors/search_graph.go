package neighbors

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"cne/data"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// The approximate search for other points walks in a graph of the base points from
// NN-descent. Each base point has edges to its nearest points, and to points that have it
// among their nearest. A query starts with its leaves in a few trees, and keeps a list of
// the nearest points seen. It follows the edges of the nearest points on the list until
// all points on the list are done. The result for a query depends only on the base.

const (
	searchListLen       = 16                                  // neighbours of a base point in the descent
	searchLeaf          = 128                                 // points of a leaf at most
	searchEdges         = 16                                  // edges from a point to its nearest
	searchReverse       = 14                                  // edges to points that have it among their nearest
	searchRow           = 1 + searchEdges + searchReverse + 1 // 128 bytes
	searchTrees         = 4                                   // trees that are kept; a query starts in two, and in one more for each searchPerTree neighbours
	searchPerTree       = 24
	searchKept          = 34 // points that it keeps at least; half of them in a rough search
	searchAtOnce        = 4  // points whose edges it follows together
	searchBlock         = 64
	searchMaxCoordinate = 0x1p50 // no coordinate of a query may be larger, scaled as the base's are
	searchMinSpare      = 8      // places for candidates beyond k
)

// A searchGraph finds base points near to queries.
type searchGraph struct {
	*pointSet
	trees []*forestTree
	// The row of p begins with the number of its edges. The points at the other ends follow.
	edges []int32 // [n, searchRow]
	rough bool
	works parallel.Pool[searchWork]
}

// newSearchGraph makes the graph.
func newSearchGraph(ctx context.Context, base *data.Matrix, opt Options) (*searchGraph, error) {
	s := descentSettingsFor(searchListLen)
	s.listLen, s.keptTrees, s.leaf = searchListLen, searchTrees, searchLeaf
	d, trees, err := descend(ctx, base, s, opt.Seed)
	if err != nil {
		return nil, err
	}
	d.maxNew, d.maxOld, d.maxReverse = searchEdges, searchEdges, searchReverse
	parallel.For(len(d.keys), 1<<16, func(_, lo, hi int) {
		for e := lo; e < hi; e++ {
			d.keys[e] |= marks
		}
	})
	d.sizes = nil
	d.works = parallel.Pool[descentWork]{New: d.newWork}
	if _, err := d.findCandidates(ctx, 0, d.n, opt.Seed); err != nil {
		return nil, err
	}
	g := &searchGraph{pointSet: d.pointSet, trees: trees, edges: make([]int32, d.n*searchRow), rough: opt.Rough}
	parallel.For(d.n, descentGrain, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			row := g.edges[p*searchRow:]
			row[0] = int32(copy(row[1:searchRow], d.candidates[d.starts[p]:][:d.sizes[p]]))
		}
	})
	g.works.New = func() *searchWork {
		most := max(s.leaf*searchTrees, searchAtOnce*(searchEdges+searchReverse)) + 16
		return &searchWork{descentWork: descentWork{cols: make([]int32, most), dist: make([]float32, most), met: newPairSet(1000)},
			found: make([]uint64, (most+63)/64),
			never: slices.Repeat([]float32{-1}, most), row: make([]float32, g.width),
			along: make([]float32, g.width), one: make([]int32, 16), projection: make([]float32, 16)}
	}
	return g, nil
}

// A searchWork holds the buffers of one goroutine.
type searchWork struct {
	descentWork
	row, along []float32 // the query; the line of a split
	found      []uint64
	never      []float32 // limits that no point is within
	one        []int32
	projection []float32
	list       []uint64
	size       float32 // of the query, a set
}

// set sets the query and reports whether it is near enough to the base for distances in
// float32.
func (w *searchWork) set(g *searchGraph, query []float32) bool {
	for l, v := range query {
		w.row[l] = v * g.scale
		if !(math.Abs(float64(w.row[l])) <= searchMaxCoordinate) {
			return false
		}
	}
	if g.sizes != nil {
		w.size = sizes(w.row, g.width)[0]
	}
	return true
}

// leafOf returns the leaf of a tree that contains the query.
func (w *searchWork) leafOf(g *searchGraph, t *forestTree) span {
	s := span{1, 0, g.n}
	for s.size() > t.leaf {
		split := t.splits[s.node]
		from := g.row(split.a)
		for l, v := range g.row(split.b) {
			w.along[l] = v - from[l]
		}
		simd.ProjectRows(w.projection, w.row, from, w.along, w.one)
		left, right := s.halves()
		if s = left; w.projection[0] > split.at {
			s = right
		}
	}
	return s
}

// upcoming returns the points whose edges are followed next unless nearer ones are found.
func (w *searchWork) upcoming() []int32 {
	w.ahead = w.ahead[:0]
	for _, key := range w.list {
		if key == emptyEntry || len(w.ahead) == searchAtOnce {
			break
		}
		if key&newOwn != 0 {
			w.ahead = append(w.ahead, numberOf(key))
		}
	}
	return w.ahead
}

// compare calls f for each of the first n columns that is not farther from the query than
// limit.
func (w *searchWork) compare(c *pointSet, n int, limit float32, f func(b int, d2 float32)) {
	whole, within := n, limit
	if c.scalar() {
		for b, p := range w.cols[:n] {
			if d := float32(c.measure.of(w.row, c.row(p), float64(limit))); d <= limit {
				f(b, d)
			}
		}
		return
	}
	if c.sizes != nil {
		within = math.MaxFloat32
	}
	for ; whole%16 != 0; whole++ { // whole vectors
		w.cols[whole] = w.cols[0]
	}
	simd.NearRows(w.dist, w.found, c.x, w.row, w.cols[:whole], within, w.never)
	for word := range (whole + 63) / 64 {
		for set := w.found[word]; set != 0; set &= set - 1 {
			if b := 64*word + bits.TrailingZeros64(set); b < n {
				d := w.dist[b]
				if c.sizes != nil {
					d = ofSets(d, w.size, c.sizes[w.cols[b]])
				}
				if d <= limit {
					f(b, d)
				}
			}
		}
	}
}

// search sets row i of nb to base points near query i, and reports whether it
// could.
func (g *searchGraph) search(w *searchWork, best *topK, nb *Neighbors, i int, base *data.Matrix, query []float32) bool {
	if !w.set(g, query) {
		return false
	}
	w.met.clear()
	kept := max(searchKept, nb.K+nb.K/2)
	if g.rough {
		kept = max(searchKept/2, nb.K+nb.K/2)
	}
	w.list = slices.Grow(w.list[:0], kept)[:kept]
	for e := range w.list {
		w.list[e] = emptyEntry
	}
	n := 0
	for _, t := range g.trees[:min(len(g.trees), 2+nb.K/searchPerTree)] {
		s := w.leafOf(g, t)
		w.met.reserve(s.size())
		for p := s.lo; p < s.hi; p++ {
			q := int32(p)
			if t.order != nil {
				q = t.order[p]
			}
			if !w.met.add(q) {
				w.cols[n] = q
				n++
			}
		}
	}
	for n > 0 {
		simd.Fetch(g.edges, searchRow, w.upcoming())
		w.compare(g.pointSet, n, worst(w.list), func(b int, d2 float32) {
			insert(w.list, keyOf(d2, w.cols[b]))
		})
		n = 0
		followed := 0
		for e, key := range w.list {
			if key == emptyEntry || followed == searchAtOnce {
				break
			}
			if key&newOwn != 0 {
				w.list[e] = key &^ newOwn
				row := g.edges[int(numberOf(key))*searchRow:][:searchRow]
				n = w.met.absent(w.cols, n, row[1:][:row[0]])
				followed++
			}
			// Edges that lead to nothing new do not count.
			if n == 0 {
				followed = 0
			}
		}
	}
	if w.list[nb.K-1] == emptyEntry {
		return false
	}
	best.resetAll()
	for _, key := range w.list[:min(len(w.list), nb.K+searchMinSpare)] {
		if key != emptyEntry {
			q := numberOf(key)
			best.offer(g.measure.of(query, g.point(base, q), best.limit), g.index[q])
		}
	}
	best.store(nb, i)
	return true
}

// findInGraph is find with the graph. It returns the queries that the graph does not
// suffice for. Queries are visited in the order of their first leaves, so consecutive
// queries need the same points.
func (x *Index) findInGraph(ctx context.Context, nb *Neighbors, queries *data.Matrix) (failed []int32, err error) {
	g := x.graph
	order := make([]uint64, queries.N)
	err = parallel.ForContext(ctx, queries.N, searchBlock, func(_, lo, hi int) {
		w := g.works.Get()
		defer g.works.Put(w)
		for i := lo; i < hi; i++ {
			leaf := 0
			if w.set(g, queries.Row(i)) {
				leaf = w.leafOf(g, g.trees[0]).lo
			}
			order[i] = uint64(leaf)<<32 | uint64(i)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(order)
	var mu sync.Mutex
	err = parallel.ForContext(ctx, queries.N, searchBlock, func(_, lo, hi int) {
		w := g.works.Get()
		defer g.works.Put(w)
		best := newTopK(nb.K)
		for _, key := range order[lo:hi] {
			i := int(uint32(key))
			if !g.search(w, best, nb, i, x.base, queries.Row(i)) {
				nb.unlimit(i)
				mu.Lock()
				failed = append(failed, int32(i))
				mu.Unlock()
			}
		}
	})
	return failed, err
}
