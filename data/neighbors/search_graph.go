package neighbors

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// The approximate search for other points walks in a graph of the base points from
// NN-descent. Each base point has edges to its nearest points, and to points that have it
// among their nearest. A query starts with its leaf in a tree, or in a few, and keeps a list of
// the nearest points seen. It follows the edges of the nearest points on the list until
// all points on the list are done. The result for a query depends only on the base.
//
// Most of the time goes into reading rows of points from memory, so the walk compares rows of
// bytes where these suffice. The points of the list are ranked in float64 at the end.

const (
	searchListLen       = 16                                  // neighbours of a base point in the descent
	searchLeaf          = 128                                 // points of a leaf at most
	searchEdges         = 16                                  // edges from a point to its nearest
	searchReverse       = 14                                  // edges to points that have it among their nearest
	searchRow           = 1 + searchEdges + searchReverse + 1 // 128 bytes
	searchAtOnce        = 4                                   // points whose edges it follows together
	searchBlock         = 64
	searchMaxCoordinate = 0x1p50 // no coordinate of a query may be larger, scaled as the base's are
	searchMinSpare      = 8      // places for candidates beyond k
	searchChunk         = 64     // points compared with one limit
	searchTrees         = 4      // trees that are kept; a query starts in one, and in one more for each searchPerTree neighbours
	searchPerTree       = 24

	// The length of the list is chosen by searches for calibratedK neighbours of up to
	// calibratedPoints base points: the least, up to mostKept, that finds calibratedShare of
	// the neighbours, or roughShare in a rough search. Bytes may miss bytesShare more than
	// float32.
	calibratedK, calibratedPoints = 15, 500
	leastRough, leastKept         = 32, 40
	mostKept                      = 160
	calibratedShare, roughShare   = 0.975, 0.955
	bytesShare                    = 0.01
	byteSlack                     = 1.5   // distances of bytes are mostly within half of it, in levels
	leastGain                     = 0.002 // of the share, for a list that is longer by a quarter
)

// A searchGraph finds base points near to queries.
type searchGraph struct {
	*pointSet
	*quantization // nil if float32 is compared
	trees         []searchTree
	// The row of p begins with the number of its edges. The points at the other ends follow.
	edges []int32 // [n, searchRow]
	kept  int     // length of the list for at most calibratedK neighbours
	works parallel.Pool[searchWork]
}

// newSearchGraph makes the graph of points and what lift made of them, or fails as kind.Need
// does.
func newSearchGraph(ctx context.Context, base, lifted *data.Matrix, opt Options) *searchGraph {
	s := descentSettingsFor(searchListLen)
	s.listLen, s.keptTrees, s.leaf = searchListLen, searchTrees, searchLeaf
	d, trees, err := descend(ctx, lifted, s, opt.Seed)
	kind.Check(err)
	d.maxNew, d.maxOld, d.maxReverse = searchEdges, searchEdges, searchReverse
	parallel.For(len(d.keys), 1<<16, func(_, lo, hi int) {
		for e := lo; e < hi; e++ {
			d.keys[e] |= marks
		}
	})
	d.sizes = nil
	d.works = parallel.Pool[descentWork]{New: d.newWork}
	kind.Got(d.findCandidates(ctx, 0, d.n, opt.Seed))
	g := &searchGraph{pointSet: d.pointSet, edges: make([]int32, d.n*searchRow)}
	memory.UseHugePages(g.edges)
	parallel.For(d.n, descentGrain, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			row := g.edges[p*searchRow:]
			row[0] = int32(copy(row[1:searchRow], d.candidates[d.starts[p]:][:d.sizes[p]]))
		}
	})
	for _, t := range trees {
		g.trees = append(g.trees, g.newSearchTree(t))
	}
	g.works.New = g.newWork
	g.calibrate(ctx, base, lifted, opt.Rough)
	return g
}

// A searchTree has the lines [nodes, width] of the splits of a tree, and where they split.
type searchTree struct {
	*forestTree
	lines []float32
	at    []float64
}

func (c *pointSet) newSearchTree(t *forestTree) searchTree {
	s := searchTree{t, make([]float32, len(t.splits)*c.width), make([]float64, len(t.splits))}
	for node, split := range t.splits {
		from, to, line := c.row(split.a), c.row(split.b), s.lines[node*c.width:][:c.width]
		for l := range line {
			line[l] = to[l] - from[l]
		}
		s.at[node] = float64(split.at) + dot(line, from)
	}
	return s
}

// dot returns the inner product of y with the first values of x.
func dot(x, y []float32) float64 {
	var sum [4]float64 // the products are exact
	x = x[:len(y)]
	for ; len(y) >= 4 && len(x) >= 4; x, y = x[4:], y[4:] {
		sum[0] += float64(float64(x[0]) * float64(y[0]))
		sum[1] += float64(float64(x[1]) * float64(y[1]))
		sum[2] += float64(float64(x[2]) * float64(y[2]))
		sum[3] += float64(float64(x[3]) * float64(y[3]))
	}
	for l, v := range y {
		sum[l] += float64(float64(x[l]) * float64(v))
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3])
}

// calibrate chooses what the search compares and how many points it keeps, by the share of
// the nearest neighbours that it finds for some of the base points themselves. It fails as
// kind.Need does.
func (g *searchGraph) calibrate(ctx context.Context, base, lifted *data.Matrix, rough bool) {
	points, k, want := min(g.n, calibratedPoints), min(g.n-1, calibratedK), calibratedShare
	g.kept = leastKept
	if rough {
		want, g.kept = roughShare, leastRough
	}
	if k == 0 {
		return
	}
	rows := make([]int, points)
	for i := range rows {
		rows[i] = int(g.index[i*g.n/points])
	}
	limits := farthest(ctx, base, rows, k, nil)
	share := func() float64 {
		nb := newNeighbors(points, k)
		nb.Dist2 = slices.Repeat([]float64{math.Inf(1)}, points*k)
		parallel.For(points, searchBlock, func(_, lo, hi int) {
			w, best := g.works.Get(), newTopK(k)
			defer g.works.Put(w)
			for i := lo; i < hi; i++ {
				query := lifted.Row(rows[i])
				if w.set(g, query) && w.search(g, w.leafOf(g, &g.trees[0]), k, g.kept, int32(i*g.n/points)) {
					w.rank(g, best, nb, i, lifted, query)
				}
			}
		})
		found := 0
		for e, d2 := range g.measure.finish(nb).Dist2 {
			found += toInt(d2 <= limits[e/k])
		}
		return float64(found) / float64(len(nb.Dist2))
	}
	found := share()
	if g.quantization = quantize(g.pointSet); g.quantization != nil {
		bytes := share()
		if bytes < found-bytesShare {
			g.quantization = nil
		} else {
			found, g.x = bytes, nil
		}
	}
	for before := -1.0; found < want && found > before+leastGain && g.kept < mostKept; {
		before, g.kept = found, min(mostKept, inEights(g.kept+g.kept/4))
		found = share()
	}
}

// inEights rounds the length of a list up to what is fastest for simd.InsertWord.
func inEights(length int) int { return (length + 7) &^ 7 }

// A quantization has rows of bytes. Their distances have nearly the order of the distances of
// points.
type quantization struct {
	stride int
	bytes  []uint8   // [n, stride]
	low    []float32 // [width]: the least value of each column
	steps  float32   // in 1
	most   float64   // bounds how far a level may be from a byte, so that squared distances stay below 2³¹
}

// quantize returns bytes for the points of a set, or nil if they have none.
func quantize(c *pointSet) *quantization {
	q := &quantization{stride: (c.width + 31) &^ 31, low: slices.Repeat([]float32{math.MaxFloat32}, c.width)}
	if c.scalar() || q.stride > simd.MaxBytes {
		return nil
	}
	high := slices.Repeat([]float32{-math.MaxFloat32}, c.width)
	for row := range slices.Chunk(c.x, c.width) {
		for l, v := range row {
			q.low[l], high[l] = min(q.low[l], v), max(high[l], v)
		}
	}
	for l, v := range high {
		q.steps = max(q.steps, v-q.low[l])
	}
	if q.steps > 0 {
		q.steps = 255 / q.steps
	}
	q.most = math.Floor(math.Sqrt(math.MaxInt32 / float64(q.stride)))
	q.bytes = make([]uint8, c.n*q.stride)
	memory.UseHugePages(q.bytes)
	parallel.For(c.n, descentGrain, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			for l, v := range c.row(int32(p)) {
				q.bytes[p*q.stride+l] = uint8(q.level(v, l))
			}
		}
	})
	return q
}

// level returns the level of a value of column l and up to 1 more: from 0 to 255 within the
// base, and beyond in the same steps.
func (q *quantization) level(v float32, l int) float64 {
	return float64(float32((v-q.low[l])*q.steps)) + 0.5
}

// A searchWork holds the buffers of one goroutine.
type searchWork struct {
	row    []float32 // the query
	levels []int16   // its bytes
	size   float32   // of the query, a set
	list   []uint64
	cols   []int32 // points that are compared next
	ahead  []int32 // points whose edges are followed next
	dist   []float32
	found  []uint64
	exact  []float64            // distances of the nearest
	never  []float32            // limits that no point is within
	met    [1 << metBits]uint32 // the points and 1, by their hashes; a later one replaces another
}

const metBits = 11

func (g *searchGraph) newWork() *searchWork {
	const most = max(allPairsPoints, searchTrees*searchLeaf, searchAtOnce*(searchEdges+searchReverse)) + 16
	return &searchWork{row: make([]float32, g.width), levels: make([]int16, (g.width+31)&^31), cols: make([]int32, most),
		dist: make([]float32, searchChunk), found: make([]uint64, 1), never: slices.Repeat([]float32{-1}, searchChunk)}
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
	return true
}

// leafOf returns the leaf of a tree that contains the query.
func (w *searchWork) leafOf(g *searchGraph, t *searchTree) span {
	s := span{1, 0, g.n}
	for s.size() > t.leaf {
		left, right := s.halves()
		if s = left; dot(t.lines[s.node/2*g.width:], w.row) > t.at[s.node/2] {
			s = right
		}
	}
	return s
}

// search makes the list of points near to the query, without self. leaf is its leaf in the
// first tree. It reports whether the query is near enough to the base for distances of bytes.
func (w *searchWork) search(g *searchGraph, leaf span, k, kept int, self int32) bool {
	if q := g.quantization; q != nil {
		for l, v := range w.row {
			level := q.level(v, l) + q.most
			if !(level >= 255 && level < q.most+q.most+1) {
				return false
			}
			w.levels[l] = int16(int32(level) - int32(q.most))
		}
	}
	if g.sizes != nil {
		w.size = sizes(w.row, g.width)[0]
	}
	clear(w.met[:])
	w.list = slices.Grow(w.list[:0], kept)[:kept]
	selection.Fill(w.list, emptyEntry)
	n := 0
	for t := range g.trees[:min(len(g.trees), 1+k/searchPerTree)] {
		if t > 0 {
			leaf = w.leafOf(g, &g.trees[t])
		}
		w.ahead = w.ahead[:0]
		for p := leaf.lo; p < leaf.hi; p++ {
			w.ahead = append(w.ahead, g.trees[t].point(p))
		}
		n = w.add(w.ahead, n)
	}
	for n > 0 {
		if g.quantization != nil {
			simd.Fetch(g.bytes, g.stride, w.cols[:n])
		} else {
			simd.Fetch(g.x, g.width, w.cols[:n])
		}
		w.compare(g, n, self)
		n = 0
		for n == 0 && len(w.upcoming()) > 0 {
			simd.Fetch(g.edges, searchRow, w.ahead)
			for _, p := range w.ahead {
				row := g.edges[int(p)*searchRow:][:searchRow]
				n = w.add(row[1:][:row[0]], n)
			}
		}
	}
	return true
}

// upcoming returns the points whose edges are followed next, and marks them as followed.
func (w *searchWork) upcoming() []int32 {
	w.ahead = w.ahead[:0]
	for e, key := range w.list {
		if key == emptyEntry || len(w.ahead) == searchAtOnce {
			break
		}
		if key&newOwn != 0 {
			w.list[e] = key &^ newOwn
			w.ahead = append(w.ahead, numberOf(key))
		}
	}
	return w.ahead
}

// add appends points to the first n columns unless they have been added, and returns the new
// length. A few are added again, which is harmless: a list has no entry twice.
func (w *searchWork) add(points []int32, n int) int {
	cols := w.cols
	for _, p := range points {
		entry := uint32(p) + 1
		at := entry * 0x9e3779b1 >> (32 - metBits)
		other := w.met[at]
		w.met[at] = entry
		cols[n] = p
		if other != entry {
			n++
		}
	}
	return n
}

// compare puts those of the first n columns on the list that are near enough, except self.
func (w *searchWork) compare(g *searchGraph, n int, self int32) {
	if g.scalar() {
		for _, p := range w.cols[:n] {
			limit := worst(w.list)
			if d := float32(g.measure.of(w.row, g.row(p), float64(limit))); d <= limit && p != self {
				insert(w.list, keyOf(d, p))
			}
		}
		return
	}
	for whole := n; whole%16 != 0; whole++ { // whole vectors
		w.cols[whole] = w.cols[0]
	}
	for lo := 0; lo < n; lo += searchChunk {
		limit := worst(w.list)
		if g.sizes != nil {
			limit = math.MaxFloat32
		}
		size := min(n-lo, searchChunk)
		cols := w.cols[lo : lo+(size+15)&^15]
		if g.quantization != nil {
			simd.NearBytes(w.dist, w.found, g.bytes, w.levels, cols, limit)
		} else {
			simd.NearRows(w.dist, w.found, g.x, w.row, cols, limit, w.never)
		}
		for set := w.found[0] & (1<<size - 1); set != 0; set &= set - 1 {
			c := bits.TrailingZeros64(set)
			d := w.dist[c]
			if g.sizes != nil {
				if g.quantization != nil {
					d /= 255 * 255
				}
				d = ofSets(d, w.size, g.sizes[cols[c]])
			}
			if cols[c] != self {
				insert(w.list, keyOf(d, cols[c]))
			}
		}
	}
}

// rank sets row i of nb to the nearest of the list, and reports whether there are enough. It
// leaves out those that bytes show to be farther than k others.
func (w *searchWork) rank(g *searchGraph, best *topK, nb *Neighbors, i int, base *data.Matrix, query []float32) bool {
	if w.list[nb.K-1] == emptyEntry {
		return false
	}
	near, limit := w.ahead[:0], uint64(emptyEntry)
	if g.quantization != nil && g.sizes == nil {
		d := math.Sqrt(float64(worst(w.list[:nb.K]))) + byteSlack
		limit = keyOf(float32(d*d), 0)
	}
	for _, key := range w.list[:min(len(w.list), nb.K+nb.K/4+searchMinSpare)] {
		if key < limit {
			near = append(near, g.index[numberOf(key)])
		}
	}
	w.ahead = near
	simd.Fetch(base.X, base.D, near)
	best.resetAll()
	w.exact = slices.Grow(w.exact[:0], len(near))[:len(near)]
	exact := g.measure == euclidean && simd.SquaredDistances(w.exact, base.X, query, near)
	for e, j := range near {
		if exact {
			best.offer(w.exact[e], j)
		} else {
			best.offer(g.measure.of(query, base.Row(int(j)), best.limit), j)
		}
	}
	best.store(nb, i)
	return true
}

// findInGraph is find with the graph. It returns the queries that the graph does not
// suffice for. Queries are visited in the order of their first leaves, so consecutive
// queries need the same points. It fails as kind.Need does.
func (x *Index) findInGraph(ctx context.Context, nb *Neighbors, queries *data.Matrix) (failed []int32) {
	g := x.graph
	type start struct {
		leaf  span
		query int
	}
	order := make([]start, queries.N)
	kind.Check(parallel.ForContext(ctx, queries.N, searchBlock, func(_, lo, hi int) {
		w := g.works.Get()
		defer g.works.Put(w)
		for i := lo; i < hi; i++ {
			order[i].query = i
			if w.set(g, queries.Row(i)) {
				order[i].leaf = w.leafOf(g, &g.trees[0])
			}
		}
	}))
	slices.SortFunc(order, func(a, b start) int { return cmp.Or(a.leaf.lo-b.leaf.lo, a.query-b.query) })
	kept := inEights(max(g.kept*max(nb.K, calibratedK)/calibratedK, nb.K+searchMinSpare))
	var mu sync.Mutex
	kind.Check(parallel.ForContext(ctx, queries.N, searchBlock, func(_, lo, hi int) {
		w := g.works.Get()
		defer g.works.Put(w)
		best := newTopK(nb.K)
		for _, s := range order[lo:hi] {
			query := queries.Row(s.query)
			if s.leaf.size() == 0 || !w.set(g, query) || !w.search(g, s.leaf, nb.K, kept, -1) || !w.rank(g, best, nb, s.query, x.base, query) {
				nb.unlimit(s.query)
				mu.Lock()
				failed = append(failed, int32(s.query))
				mu.Unlock()
			}
		}
	}))
	return failed
}
