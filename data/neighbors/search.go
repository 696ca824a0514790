package neighbors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// An Index finds the nearest of a fixed set of base points for any query points. It
// prepares the base once, for many blocks of queries. Several goroutines may use an Index
// at once.
type Index struct {
	base          *data.Matrix // lifted
	measure       measure
	width         int            // of queries
	offset        []float64      // of queries
	candidates    candidates     // nil if only the tree is searched
	maxK          int            // the most neighbours that have candidates
	normalization *normalization // of the candidates
	graph         *searchGraph   // nil if the search is exact
	sparse        *sparseIndex   // nil for a dense base
	tree          func() *tree   // makes it at the first call
}

// NewIndex prepares the base points for searching; they must not change while the index
// is in use. It takes about as much memory as the points, and twice as much once a search
// has needed the tree. With AMX or AVX2 searches may keep another copy. A device keeps three copies
// of the base until Free (two without Device.TF32 or in up to 8 dimensions), and needs
// 64 MiB more for a search. With less memory each search copies the base in parts. An
// approximate index first finds near points of the base. This takes as long as KNN, and pays
// off for tens of thousands of queries or more. It takes 144 bytes a point and some 1.5
// bytes a value, or 5.5 where bytes are too coarse for the values. A sparse base takes as
// much memory as for KNN.
//
// The error wraps ErrInput if base is empty or its sizes do not fit together, and
// ErrNotFinite if a value is NaN or infinite. If ctx is done first, the error is ctx's.
func NewIndex(ctx context.Context, base *data.Matrix, opt Options) (_ *Index, err error) {
	defer kind.Catch(&err)
	checkSizes(base, "base")
	checkFinite(base, "base ")
	opt.Device = deviceFor(opt.Device, base)
	if base.Metric != data.Precomputed && base.CSR == nil && opt.Search.Approximates(opt.Device, base.N, base.D, searchListLen) {
		x := newTreeIndex(base)
		x.graph = newSearchGraph(ctx, base, x.base, opt)
		return x, nil
	}
	return newIndex(ctx, base, 1, opt), nil
}

// newTreeIndex returns an index without candidates or graph.
func newTreeIndex(base *data.Matrix) *Index {
	lifted := lift(base)
	k := measureOf(lifted)
	return &Index{base: lifted, measure: k, width: base.D, offset: base.Offset, tree: sync.OnceValue(func() *tree { return newTree(lifted) })}
}

// newIndex returns an exact index of usable points for searches of k or more
// neighbours. It fails as kind.Need does.
func newIndex(ctx context.Context, base *data.Matrix, k int, opt Options) *Index {
	x := newTreeIndex(unlessFilled(base))
	base = x.base
	switch on := opt.Device; {
	case base.CSR != nil:
		x.sparse = newSparseIndex(base, true)
	case tooFew(base.N, k), x.measure == given:
	case !on.OnHost() && k <= deviceMaxK:
		b := kind.Got(newDeviceBlocks(ctx, on, base))
		x.candidates, x.normalization, x.maxK = b, &b.normalization, deviceMaxK
	case base.D > treeMaxD || x.measure == jaccard:
		order := nearby(base)
		x.maxK = math.MaxInt
		if c := newCoarseFirst(ctx, base, order, max(k, 15)); c != nil {
			x.candidates, x.normalization = c, &c.coarse.normalization
		} else {
			p := newPanels(base, order)
			x.candidates, x.normalization = p, &p.normalization
		}
	}
	if err := ctx.Err(); err != nil {
		x.Free()
		kind.Check(err)
	}
	return x
}

// Free frees the memory of the index on a device, if any. The index must not be used any
// more.
func (x *Index) Free() {
	if x.candidates != nil {
		x.candidates.free()
	}
}

// Search finds the k nearest base points of every query point, by the Metric of base, and
// is exact or approximate as KNN is. Use NewIndex for a base that is searched more than
// once.
func Search(ctx context.Context, base, queries *data.Matrix, k int, opt Options) (_ *Neighbors, err error) {
	defer kind.Catch(&err)
	x := kind.Got(NewIndex(ctx, base, opt))
	defer x.Free()
	return x.Search(ctx, queries, k)
}

// Search finds the k nearest base points of every query point, by the Metric of the base. A
// base point that equals the query is a neighbour at distance 0. Among equally near
// points, the point with the smaller index comes first. Unless the index is approximate,
// the result is exact with respect to sums of squared differences in float64. The result
// for a query does not depend on the other queries.
//
// The error wraps ErrInput if there are no points, if their sizes do not fit together, if
// they have another width than the base, or if k < 1. It wraps ErrTooFewPoints if the base
// has fewer than k points, and ErrNotFinite if a value is NaN or infinite. If ctx is done
// first, the error is ctx's.
func (x *Index) Search(ctx context.Context, points *data.Matrix, k int) (_ *Neighbors, err error) {
	defer kind.Catch(&err)
	checkSizes(points, "query matrix")
	kind.Expect(points.D == x.width, ErrInput, "query points: got %d values each, want %d", points.D, x.width)
	checkK(k)
	kind.Expect(k <= x.base.N, ErrTooFewPoints, "k: got %d, want at most %d, the number of base points", k, x.base.N)
	checkFinite(points, "query ")
	if x.sparse == nil {
		if points, err = points.Dense(); err != nil {
			return nil, fmt.Errorf("neighbors: query matrix: %w", err)
		}
	}
	nb, relative := newNeighbors(points.N, k), *points.Relative(x.offset)
	relative.Metric = x.base.Metric
	x.find(ctx, nb, queries{points: lift(&relative)})
	return x.measure.finish(nb), nil
}

// The exact search re-ranks candidates in float64, checks that no other point can be
// nearer, and searches a tree where the check fails.
//
// A source of candidates finds, for each query, a few base points that are probably its
// nearest, and a threshold that all others exceed. The candidates are ranked in float64.
// The threshold and a bound on the rounding errors prove that no other base point can be
// nearer. If the proof fails, candidates of low precision are computed again, and then a
// tree is searched.

// slack is the number of candidates that a source keeps beyond k. The last candidate has
// to be farther than the k-th neighbour by more than the rounding error, typically 10⁻⁴
// of its distance.
const slack = 16

// aboveAll is above every s of points that can be candidates of each other; s ≤ 2D for
// coordinates up to 1. As a threshold it means that no other base point can be nearer.
const aboveAll = 0x1p100

// candidates is a source of candidates among base points. Several goroutines
// may use one at once.
type candidates interface {
	// find finds candidates for searches of k neighbours of the queries. It
	// calls rank for each block of queries, lo to hi−1 with lo a multiple of
	// blockSize, perhaps for several blocks at once, and returns once all
	// these calls have.
	find(ctx context.Context, q queries, k int, rank rerank) error
	// free frees memory that Go's garbage collector does not manage.
	free()
}

// queries are points whose neighbours are wanted: all, or the given rows, whose
// candidates of low precision did not suffice.
type queries struct {
	points *data.Matrix
	rows   []int32
	own    bool // they are the base points; a point is not its own candidate
}

func (q *queries) count() int {
	if q.rows != nil {
		return len(q.rows)
	}
	return q.points.N
}

// number returns the number of query i among the points.
func (q *queries) number(i int) int {
	if q.rows != nil {
		return int(q.rows[i])
	}
	return i
}

// numbers returns the numbers of queries lo to hi−1 among the points.
func (q *queries) numbers(lo, hi int) []int32 {
	numbers := make([]int32, hi-lo)
	for r := range numbers {
		numbers[r] = int32(q.number(lo + r))
	}
	return numbers
}

// block returns queries lo to hi−1.
func (q *queries) block(lo, hi int) *data.Matrix {
	if q.rows == nil {
		return q.points.Rows(lo, hi)
	}
	return q.points.Take(selection.As[int](q.rows[lo:hi]))
}

// A rerank ranks the candidates of queries lo to hi−1. The candidates are valid until it
// returns. It returns the number of queries that need candidates of full precision.
type rerank func(lo, hi int, s *candidateLists) (again int)

// candidateLists are the candidates of some queries.
type candidateLists struct {
	stride       int       // room for keys, per query
	keys         []uint64  // [queries, room]: the bits of s in float32, then the index of the base point
	count        []int32   // [queries]: number of keys
	threshold    []uint32  // [queries]: the bits of an s below which all base points are candidates
	dist2        []float64 // [queries, room]: the squared distances to them; nil if they are not known
	norm         []float64
	order        []int32    // the points whose candidates these are; nil for the queries as they are
	bound        errorBound // of s
	lowPrecision bool       // whether the source can do better
	own          bool       // whether queries may be among their candidates, which are no neighbours of themselves
}

// of returns the candidates of query r of the block, its threshold and ‖z‖.
func (s *candidateLists) of(r int) (keys []uint64, threshold float32, norm float64) {
	return s.keys[r*s.stride : r*s.stride+int(s.count[r])], math.Float32frombits(s.threshold[r]), s.norm[r]
}

// farQuery bounds the norm of queries that have candidates. z ≤ 2⁴⁰ keeps s below
// aboveAll, and far from overflow. For queries farther from the base, on its own scale,
// the tree is searched.
const farQuery = 0x1p40

// far reports whether a query of this norm is beyond farQuery.
func far(norm float64) bool { return !(norm <= farQuery) }

// tooFew reports whether n points are too few for a search of k neighbours to profit
// from candidates.
func tooFew(n, k int) bool { return n/4-slack < k }

// find sets nb to the nearest neighbours of all queries, or fails as kind.Need does.
func (x *Index) find(ctx context.Context, nb *Neighbors, q queries) {
	var rows []int32 // to be searched in the tree
	switch {
	case x.measure == given:
		x.findGiven(ctx, nb, q)
	case x.sparse != nil:
		x.sparse.find(ctx, nb, q)
	case x.graph != nil:
		rows = x.findInGraph(ctx, nb, q.points)
	case x.candidates == nil || nb.K > x.maxK || tooFew(x.base.N, nb.K):
		if q.own {
			rows = x.tree().index // in the tree's order, consecutive searches visit the same nodes
		} else {
			rows = q.numbers(0, q.points.N)
		}
		for i := range rows {
			nb.unlimit(i)
		}
	default:
		rows = x.findAmongCandidates(ctx, nb, q)
	}
	kind.Check(ctx.Err())
	if len(rows) > 0 {
		x.tree() // is made by all cores
		kind.Check(parallel.ForContext(ctx, len(rows), searchGrain, func(_, lo, hi int) { x.improve(nb, q, rows[lo:hi]) }))
	}
}

// findAmongCandidates is find by ranking candidates. It returns the queries whose
// candidates do not suffice, or fails as kind.Need does.
func (x *Index) findAmongCandidates(ctx context.Context, nb *Neighbors, q queries) (rows []int32) {
	for {
		pieces := parallel.Pieces(q.count(), blockSize)
		unproved := [2][][]int32{make([][]int32, pieces), make([][]int32, pieces)} // of full and of low precision
		kind.Check(x.candidates.find(ctx, q, nb.K, func(lo, hi int, s *candidateLists) (again int) {
			parallel.For(hi-lo, blockSize, func(piece, from, to int) {
				if ctx.Err() != nil {
					return // find reports it
				}
				best := newTopK(nb.K)
				for r := from; r < to; r++ {
					i := q.number(lo + r)
					if s.order != nil {
						i = int(s.order[lo+r])
					}
					if x.rank(best, nb, i, q.points.Row(i), s, r) {
						continue
					}
					coarse := selection.If(s.lowPrecision && !far(s.norm[r]), 1, 0)
					list := &unproved[coarse][lo/blockSize+piece]
					*list = append(*list, int32(i))
				}
			})
			for piece := range parallel.Pieces(hi-lo, blockSize) {
				again += len(unproved[1][lo/blockSize+piece])
			}
			return again
		}))
		rows = append(rows, slices.Concat(unproved[0]...)...)
		if q.rows = slices.Concat(unproved[1]...); len(q.rows) == 0 {
			return rows
		}
	}
}

// rank sets row i of nb to the nearest of the candidates of query r of a block,
// and reports whether they are certainly the nearest of all base points.
func (x *Index) rank(best *topK, nb *Neighbors, i int, query []float32, s *candidateLists, r int) bool {
	keys, threshold, norm := s.of(r)
	if far(norm) {
		nb.unlimit(i)
		return false
	}
	best.resetAll()
	for c, key := range keys {
		j := int32(uint32(key))
		if s.own && int(j) == i {
			continue
		}
		if s.dist2 != nil {
			best.offer(s.dist2[r*s.stride+c], j)
		} else {
			best.offer(x.measure.of(query, x.base.Row(int(j)), best.limit), j)
		}
	}
	proved := threshold == aboveAll || x.normalization.ordered(norm)
	if !proved {
		if x.measure == jaccard {
			threshold = math.Nextafter32(threshold, 0) // without ties
		}
		proved = s.bound.certain(float64(threshold), x.normalization.radius(best.limit), norm, x.normalization.maxNorm)
	}
	best.store(nb, i)
	return proved
}

// unlimit makes improve search for row i of nb without a limit.
func (nb *Neighbors) unlimit(i int) { nb.Dist2[(i+1)*nb.K-1] = math.Inf(1) }

// searchGrain is the number of queries that are searched in a tree in one
// piece.
const searchGrain = 16

// improve sets some rows of nb by searching the tree. The last neighbour of a row limits
// the search.
func (x *Index) improve(nb *Neighbors, q queries, rows []int32) {
	t, best := x.tree(), newTopK(nb.K)
	for _, row := range rows {
		self := selection.If(q.own, row, -1) // -1 is no point
		i := int(row)
		last := (i+1)*nb.K - 1
		best.reset(nb.Dist2[last], nb.Index[last]+1) // the last may be a neighbour itself
		t.search(best, q.points.Row(i), self, 0)
		best.store(nb, i)
	}
}

// topK collects the k smallest of the (distance, index) pairs that it is offered,
// in lexicographic order, as a binary heap with the largest on top.
type topK struct {
	k     int
	dist2 []float64
	index []int32
	// Only pairs before (limit, limitIndex) are taken.
	limit      float64
	limitIndex int32
}

func newTopK(k int) *topK {
	return &topK{k: k, dist2: make([]float64, 0, k), index: make([]int32, 0, k)}
}

// reset empties the collection. From then on only pairs before (limit, limitIndex) are
// taken.
func (t *topK) reset(limit float64, limitIndex int32) {
	t.dist2, t.index = t.dist2[:0], t.index[:0]
	t.limit, t.limitIndex = limit, limitIndex
}

// resetAll empties the collection and sets no limit.
func (t *topK) resetAll() { t.reset(math.Inf(1), 0) }

// wants reports whether a pair would be taken.
func (t *topK) wants(d float64, i int32) bool {
	return d < t.limit || d == t.limit && i < t.limitIndex
}

// after reports whether entry a comes after entry b.
func (t *topK) after(a, b int) bool {
	return t.dist2[a] > t.dist2[b] || t.dist2[a] == t.dist2[b] && t.index[a] > t.index[b]
}

func (t *topK) swap(a, b int) {
	t.dist2[a], t.dist2[b] = t.dist2[b], t.dist2[a]
	t.index[a], t.index[b] = t.index[b], t.index[a]
}

// offer takes the pair if it is among the k smallest so far.
func (t *topK) offer(d float64, i int32) {
	if !t.wants(d, i) {
		return
	}
	if c := len(t.index); c < t.k {
		t.dist2, t.index = append(t.dist2, d), append(t.index, i)
		for c > 0 && t.after(c, (c-1)/2) {
			t.swap(c, (c-1)/2)
			c = (c - 1) / 2
		}
		if len(t.index) < t.k {
			return
		}
	} else {
		t.dist2[0], t.index[0] = d, i
		t.sink(t.k)
	}
	t.limit, t.limitIndex = t.dist2[0], t.index[0]
}

// sink moves the top entry down to its place among the first n.
func (t *topK) sink(n int) {
	for at := 0; ; {
		child := 2*at + 1
		if child >= n {
			return
		}
		if child+1 < n && t.after(child+1, child) {
			child++
		}
		if !t.after(child, at) {
			return
		}
		t.swap(at, child)
		at = child
	}
}

// store sorts the pairs and writes them as row i. There must be k pairs. The collection
// must be reset before it is used again.
func (t *topK) store(nb *Neighbors, i int) {
	for n := len(t.index) - 1; n > 0; n-- {
		t.swap(0, n)
		t.sink(n)
	}
	copy(nb.Index[i*nb.K:(i+1)*nb.K], t.index)
	copy(nb.Dist2[i*nb.K:(i+1)*nb.K], t.dist2)
}
