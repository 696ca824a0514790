package neighbors

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
)

// The approximate search is NN-descent (Dong, Moses and Li, 2011). Its idea is that a
// neighbour of a neighbour is probably a neighbour.
//
// A tree of random hyperplanes brings near points near in memory. Each point has a list
// of the nearest points found so far. All pairs within the leaves of this tree, and of a
// few more trees, initialise the lists. Rounds follow. Before each round, every point
// gets a row of candidates: the points on its list, and the points whose lists it has
// recently joined (reverse). The round compares the candidates of a row with each other
// (local join). It skips pairs of old candidates, because they were compared before; a
// list marks its new entries. The rounds end when few entries are new. At the end the
// distances of the listed points are computed as in the exact search.
//
// The result depends on the seed, but not on GOMAXPROCS or the speed of the cores. Leaves
// share no points. The rows of a round are fixed before it begins. A list takes points
// that are nearer than its last entry was at the start of the round, and keeps the first
// of them in the order of (distance, number). The order of the offers does not matter: a
// point that is refused because the list has improved in the round would be dropped later.
// A list takes only nearer points, not equally near ones, so the search among duplicates
// ends, too.

// A descent holds the lists of all points.
type descent struct {
	*pointSet
	descentSettings
	// keys [n, room] are the lists, in ascending order: the bits of the squared
	// distance, then 30 bits of the point's number in the set, then the marks of a new
	// entry. Once the leaves of the first tree are compared, all lists are full.
	keys []uint64

	// The row of the point first+r begins at starts[r] of candidates and has sizes[r]
	// entries. The first newCounts[r] of them are new; a row without new ones is empty.
	first      int
	starts     []int64
	sizes      []uint32
	newCounts  []uint16
	candidates []int32 // with room for the numbers of all lists' points
	// limits [n] are the bits of the largest squared distance of a point that each list
	// accepts in this round.
	limits []uint32
	// locks guard the lists during a join: lock p modulo their number guards list p.
	locks [1 << 12]sync.Mutex

	works parallel.Pool[descentWork]
}

// descentSettings are the settings that determine time and recall.
type descentSettings struct {
	listLen          int     // entries of a list
	trees, keptTrees int     // trees, and how many of them are returned
	leaf             int     // most points of a leaf
	rounds           int     // at most
	maxNew, maxOld   int     // most new and old entries of a list that become candidates
	maxReverse       int     // most reverse candidates of a point
	delta            float64 // the rounds end below this share of new entries
}

const (
	emptyEntry = math.MaxInt64 // stands after the last of a list that is not full
	// newOwn marks an entry that has not been in the row of the list's point, newReverse
	// an entry whose point has not had the list's point in its row.
	newOwn, newReverse = 1, 2
	marks              = newOwn | newReverse
	maxPoints          = 1 << 30

	descentGrain = 128
	// allPairsPoints is the largest number of points whose pairs are all compared.
	allPairsPoints = 512
	// parts is the number of parts of the points that a round processes one after the other.
	// The rows of all points would need as much memory as the lists. Near points are mostly
	// in the same part.
	parts = 2
	// After the first round, the memory of rows has room for growth by the share
	// 1/spareRows.
	spareRows = 16
)

// descentSettingsFor returns the settings for k neighbours. On deformed images of digits,
// fewer trees or candidates and smaller leaves lose recall; more of them cost time and
// gain little.
func descentSettingsFor(k int) descentSettings {
	s := descentSettings{listLen: k + 5, trees: 6, rounds: 12, maxNew: 20, maxOld: 20, maxReverse: 25, delta: 0.01}
	s.leaf = max(128, 2*(s.listLen+1)) // so one leaf fills the lists of its points
	return s
}

// approximateKNN finds k near points of every point of m, or fails as kind.Need does.
func approximateKNN(ctx context.Context, m *data.Matrix, k int, seed uint64) *Neighbors {
	d, _, err := descend(ctx, m, descentSettingsFor(k), seed)
	kind.Check(err)
	d.starts, d.sizes, d.newCounts, d.limits = nil, nil, nil, nil
	near := d.takeNumbers()
	memory.FreeGarbage(len(near)) // for the result, about as large
	nb := newNeighbors(m.N, k)
	kind.Check(parallel.ForContext(ctx, d.n, descentGrain, func(_, lo, hi int) {
		row := newNeighbors(1, k)
		fetch := func(p int) {
			simd.Fetch(d.x, d.width, near[p*d.listLen:][:d.listLen])
			simd.Fetch(nb.Dist2, k, d.index[p:p+1])
			simd.Fetch(nb.Index, k, d.index[p:p+1])
		}
		fetch(lo)
		for p := lo; p < hi; p++ {
			if p+1 < hi {
				fetch(p + 1)
			}
			d.rank(row, m, p, near[p*d.listLen:][:d.listLen])
			first := int(d.index[p]) * k
			copy(nb.Index[first:first+k], row.Index)
			copy(nb.Dist2[first:first+k], row.Dist2)
		}
	}))
	return d.measure.finish(nb)
}

// rank sets row to the nearest of some points of p. Their order is nearly right, so
// insertion is the fastest way to sort them.
func (d *descent) rank(row *Neighbors, m *data.Matrix, p int, points []int32) {
	point, last := d.point(m, int32(p)), row.K-1
	for n, q := range points {
		limit := math.Inf(1)
		if n > last {
			limit = row.Dist2[last]
		}
		d2, i := d.measure.of(point, d.point(m, q), limit), d.index[q]
		after := func(e int) bool { return row.Dist2[e] > d2 || row.Dist2[e] == d2 && row.Index[e] > i }
		if n > last && !after(last) {
			continue
		}
		at := min(n, last)
		for ; at > 0 && after(at-1); at-- {
			row.Dist2[at], row.Index[at] = row.Dist2[at-1], row.Index[at-1]
		}
		row.Dist2[at], row.Index[at] = d2, i
	}
}

// takeNumbers returns the numbers of all lists' points, and frees the rest.
func (d *descent) takeNumbers() []int32 {
	numbers := d.candidates
	d.candidates = nil
	if len(numbers) < len(d.keys) {
		numbers = make([]int32, len(d.keys))
	}
	parallel.For(len(d.keys), 1<<16, func(_, lo, hi int) {
		for e, key := range d.keys[lo:hi] {
			numbers[lo+e] = numberOf(key)
		}
	})
	d.keys = nil
	return numbers
}

// descend returns the lists, and the first of the trees that initialised them.
func descend(ctx context.Context, m *data.Matrix, s descentSettings, seed uint64) (_ *descent, trees []*forestTree, err error) {
	defer kind.Catch(&err)
	kind.Expect(m.N <= maxPoints, ErrInput, "approximate search: got %d points, want at most %d", m.N, maxPoints)
	s.listLen = min(s.listLen, m.N-1)
	if m.N <= allPairsPoints {
		s.leaf = allPairsPoints
	}
	c := newPointSet(m)
	d := &descent{pointSet: c, descentSettings: s}
	d.works.New = d.newWork
	order := c.index
	for t := 1; ; t++ {
		g := c.newGrower(s.leaf, rng.Mix(seed)+uint64(t-1), order)
		g.grow(ctx)
		tree := g.forestTree
		if t == 1 {
			c.arrange(ctx, tree)
			d.keys = make([]uint64, c.n*s.listLen)
		}
		if len(trees) < s.keptTrees {
			trees = append(trees, tree)
		}
		d.compareLeaves(ctx, tree, t == 1)
		if t == s.trees || c.n <= s.leaf {
			break
		}
		if order = tree.order; order == nil || t <= s.keptTrees {
			order = make([]int32, c.n)
		}
	}
	c.scratch = [2][]uint32{}
	if c.n > s.leaf { // otherwise all pairs have been compared
		d.joinRounds(ctx, seed)
	}
	return d, trees, nil
}

// joinRounds runs the rounds until few entries are new. It fails as kind.Need does.
func (d *descent) joinRounds(ctx context.Context, seed uint64) {
	d.limits = make([]uint32, d.n)
	for round := range d.rounds {
		ended := 0 // parts with few new entries
		for part := range parts {
			first, last := part*d.n/parts, (part+1)*d.n/parts
			news := kind.Got(d.findCandidates(ctx, first, last, rng.Mix(seed^uint64(round))))
			if float64(news) <= d.delta*float64((last-first)*d.listLen) {
				ended++
				continue
			}
			parallel.For(d.n, 1<<14, func(_, lo, hi int) { // the limits of this round
				for p := lo; p < hi; p++ {
					d.limits[p] = math.Float32bits(below(worst(d.list(p))))
				}
			})
			kind.Check(parallel.ForContext(ctx, last-first, descentGrain, func(_, lo, hi int) {
				w := d.works.Get()
				defer d.works.Put(w)
				w.next(d, lo, hi)
				for r := lo; r < hi; r++ {
					d.join(w, r, hi)
				}
			}))
		}
		if ended == parts {
			break
		}
	}
}

// list returns the entries of p.
func (d *descent) list(p int) []uint64 { return d.keys[p*d.listLen : (p+1)*d.listLen] }

// numberOf returns the number of an entry's point in the set.
func numberOf(key uint64) int32 { return int32(uint32(key) >> 2) }

// keyOf returns the entry of point j, new, at a squared distance.
func keyOf(d2 float32, j int32) uint64 {
	return uint64(math.Float32bits(d2))<<32 | uint64(j)<<2 | marks
}

// worst returns the squared distance of the last entry of a list, or a distance above all
// others if the list has room.
func worst(list []uint64) float32 {
	last := list[len(list)-1]
	if last == emptyEntry {
		return math.MaxFloat32
	}
	return math.Float32frombits(uint32(last >> 32))
}

// below returns the largest float32 below d2, or a value below all distances.
func below(d2 float32) float32 {
	if d2 == 0 {
		return -1
	}
	return math.Float32frombits(math.Float32bits(d2) - 1)
}

// insert puts an entry into a list and drops the last one, unless it comes after the last
// or is there already. It reports whether it did.
func insert(list []uint64, key uint64) bool {
	return key < list[len(list)-1]&^marks && simd.InsertWord(list, key, marks)
}

// A descentWork holds the buffers of one goroutine.
type descentWork struct {
	cols   []int32   // the points that one is compared with
	ahead  []int32   // candidates of the next row, to prefetch
	limits []float32 // the limits of their own lists
	all    []float32 // limits that all points are within
	dist   []float32
	tiles  []uint16
	met    pairSet
	drawn  []uint64
	old    []int32
}

func (d *descent) newWork() *descentWork {
	row := min(d.listLen, d.maxNew+d.maxOld) + d.maxReverse
	most := max(d.leaf, row) + 16
	return &descentWork{cols: make([]int32, most), ahead: make([]int32, 0, most), limits: make([]float32, most),
		all: slices.Repeat([]float32{math.MaxFloat32}, most), dist: make([]float32, 4*most),
		tiles: make([]uint16, most/4), met: newPairSet(row)}
}

// comparePairs calls f for each pair of the first n columns, a before b and a below rows,
// that is within the limit of either point. It prefetches w.ahead. f may lower limits.
//
// The pairs are computed in tiles, as in a matrix product. Inner products plus squared
// lengths, ‖a‖²+‖b‖²−2ab, would save a subtraction per coordinate. But they cancel, so
// pairs within the limits would have to be compared again, and they are hardly faster
// (docs/results.md).
func (w *descentWork) comparePairs(c *pointSet, rows, n int, f func(a, b int, d2 float32)) {
	// If a tile's rows are its columns, the entries above the diagonal are the pairs.
	const above = 0b0000_1000_1100_1110
	if c.scalar() {
		for a := range rows {
			for b := a + 1; b < n; b++ {
				limit := max(w.limits[a], w.limits[b])
				if d := float32(c.measure.of(c.row(w.cols[a]), c.row(w.cols[b]), float64(limit))); d <= limit {
					f(a, b, d)
				}
			}
		}
		return
	}
	limits, whole := w.limits, n
	if c.sizes != nil {
		limits = w.all
	}
	for ; whole%4 != 0; whole++ { // whole tiles
		w.cols[whole], w.limits[whole] = w.cols[0], -1
	}
	ahead := w.ahead
	for a := 0; a < rows; a += 4 {
		tiles := w.tiles[:(whole-a)/4]
		simd.NearTiles(w.dist, tiles, c.x, c.width, (*[4]int32)(w.cols[a:]), w.cols[a:whole], (*[4]float32)(limits[a:]), limits[a:whole], ahead)
		ahead = ahead[min(len(tiles), len(ahead)):]
		tiles[0] &= above
		mine := uint16(1<<min(16, 4*(rows-a)) - 1)
		for t, set := range tiles {
			for set &= mine; set != 0; set &= set - 1 {
				pair := bits.TrailingZeros16(set)
				if b := a + 4*t + pair%4; b < n {
					d := w.dist[16*t+pair]
					if c.sizes != nil {
						d = ofSets(d, c.sizes[w.cols[a+pair/4]], c.sizes[w.cols[b]])
					}
					f(a+pair/4, b, d)
				}
			}
		}
	}
	simd.Fetch(c.x, c.width, ahead)
}

// compareLeaves compares all points of each leaf of a tree; the lists are empty before the
// first. It fails as kind.Need does.
func (d *descent) compareLeaves(ctx context.Context, t *forestTree, first bool) {
	leaves := t.leaves(d.n)
	kind.Check(parallel.ForContext(ctx, len(leaves), 1, func(_, leaf, _ int) {
		w := d.works.Get()
		defer d.works.Put(w)
		n := leaves[leaf].size()
		for c := range n {
			w.cols[c] = t.point(leaves[leaf].lo + c)
		}
		simd.Fetch(d.x, d.width, w.cols[:n])
		w.ahead = w.ahead[:0]
		if first {
			d.fillLists(w, n)
			return
		}
		simd.Fetch(d.keys, d.listLen, w.cols[:n])
		for c, p := range w.cols[:n] {
			w.limits[c] = below(worst(d.list(int(p))))
		}
		add := func(a, b int, d2 float32) {
			if d2 <= w.limits[a] {
				list := d.list(int(w.cols[a]))
				insert(list, keyOf(d2, w.cols[b]))
				w.limits[a] = below(worst(list))
			}
		}
		w.comparePairs(d.pointSet, n, n, func(a, b int, d2 float32) {
			add(a, b, d2)
			add(b, a, d2)
		})
	}))
}

// fillLists sets the lists of the first n columns to the nearest of them. This is faster
// than inserting one after the other into empty lists.
func (d *descent) fillLists(w *descentWork, n int) {
	others := n - 1 // of each
	w.drawn = slices.Grow(w.drawn[:0], n*others)[:n*others]
	for c := range n {
		w.limits[c] = math.MaxFloat32
	}
	w.comparePairs(d.pointSet, n, n, func(a, b int, d2 float32) {
		w.drawn[a*others+b-1] = keyOf(d2, w.cols[b])
		w.drawn[b*others+a] = keyOf(d2, w.cols[a])
	})
	for c, p := range w.cols[:n] {
		near := w.drawn[c*others : (c+1)*others]
		if others > d.listLen {
			selection.Smallest(near, d.listLen)
			near = near[:d.listLen]
		}
		slices.Sort(near)
		copy(d.list(int(p)), near)
	}
}

// findCandidates makes the rows of the points first to last−1 that have new candidates,
// and removes the marks of the list entries that are in them. It returns the number of new
// entries, or ctx's error if ctx is done.
func (d *descent) findCandidates(ctx context.Context, first, last int, seed uint64) (news int64, err error) {
	defer kind.Catch(&err)
	rows := last - first
	if cap(d.sizes) < rows {
		most := max((d.n+parts-1)/parts, rows)
		d.starts, d.sizes, d.newCounts = make([]int64, most+1), make([]uint32, most), make([]uint16, most)
	}
	d.first, d.starts, d.sizes, d.newCounts = first, d.starts[:rows+1], d.sizes[:rows], d.newCounts[:rows]
	clear(d.sizes)
	counts := make([]int64, parallel.Pieces(d.n, descentGrain))
	kind.Check(parallel.ForContext(ctx, d.n, descentGrain, func(piece, lo, hi int) {
		for p := lo; p < hi; p++ {
			list := d.list(p)
			if r := p - first; uint(r) < uint(rows) {
				own := 0
				for _, key := range list {
					own += int(key & newOwn)
				}
				counts[piece] += int64(own)
				d.newCounts[r] = uint16(min(own, 1))
			}
			d.eachReverse(p, func(_ int, r int) { atomic.AddUint32(&d.sizes[r], 1) })
		}
	}))
	news = selection.Sum(counts)
	own := min(d.listLen, d.maxNew+d.maxOld)
	for r, size := range d.sizes {
		if size != 0 || d.newCounts[r] != 0 {
			size += uint32(own)
		}
		d.starts[r+1] = d.starts[r] + int64(size)
	}
	if total := int(d.starts[rows]); len(d.candidates) < total {
		d.candidates = nil
		d.candidates = make([]int32, max(total+total/spareRows, len(d.keys)))
	}
	clear(d.sizes)
	kind.Check(parallel.ForContext(ctx, d.n, descentGrain, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			list := d.list(p)
			d.eachReverse(p, func(e, r int) {
				at := int64(atomic.AddUint32(&d.sizes[r], 1))
				d.candidates[d.starts[r+1]-at] = int32(p)
				list[e] &^= newReverse
			})
		}
	}))
	return news, parallel.ForContext(ctx, rows, descentGrain, func(_, lo, hi int) {
		w := d.works.Get()
		defer d.works.Put(w)
		for r := lo; r < hi; r++ {
			if d.starts[r+1] > d.starts[r] {
				d.finishRow(w, r, seed^uint64(first+r)<<32)
			} else {
				d.newCounts[r] = 0
			}
		}
	})
}

// eachReverse calls f for the nearest maxNew entries of the list of p whose points have not
// had p in their rows, if they have rows.
func (d *descent) eachReverse(p int, f func(e, r int)) {
	left := d.maxNew
	for e, key := range d.list(p) {
		if key&newReverse == 0 {
			continue
		}
		if left--; left < 0 {
			return
		}
		if r := int(numberOf(key)) - d.first; uint(r) < uint(len(d.sizes)) {
			f(e, r)
		}
	}
}

// finishRow completes row r. At its end are the reverse candidates of its point. A sample
// of them, drawn by number and not by position, comes after the new points on its own list
// and before the old ones.
func (d *descent) finishRow(w *descentWork, r int, seed uint64) {
	row := d.candidates[d.starts[r]:d.starts[r+1]]
	reverse := row[len(row)-int(d.sizes[r]):]
	list := d.list(d.first + r)
	clear(w.met.entries)
	w.met.count = 0
	w.met.reserve(len(list))
	for _, key := range list {
		w.met.add(numberOf(key))
	}
	w.drawn = w.drawn[:0]
	for _, q := range reverse {
		if !w.met.has(q) {
			w.drawn = append(w.drawn, rng.Mix(seed^uint64(q))&^(1<<32-1)|uint64(q))
		}
	}
	if len(w.drawn) > d.maxReverse {
		selection.Smallest(w.drawn, d.maxReverse)
		w.drawn = w.drawn[:d.maxReverse]
	}
	n, old := 0, w.old[:0]
	for e, key := range list {
		if key&newOwn == 0 {
			if len(old) < d.maxOld {
				old = append(old, numberOf(key))
			}
		} else if n < d.maxNew {
			row[n] = numberOf(key)
			list[e] = key &^ newOwn
			n++
		}
	}
	for _, key := range w.drawn {
		row[n] = int32(uint32(key))
		n++
	}
	w.old = old
	d.newCounts[r], d.sizes[r] = uint16(n), uint32(n+copy(row[n:], old))
	if n == 0 {
		d.sizes[r] = 0
	}
}

// next sets the candidates of row r, or none if r is not below end, and prefetches the
// data for their comparison.
func (w *descentWork) next(d *descent, r, end int) {
	w.ahead = w.ahead[:0]
	if r >= end || d.newCounts[r] == 0 {
		return
	}
	w.ahead = append(w.ahead, d.candidates[d.starts[r]:][:d.sizes[r]]...)
	simd.Fetch(d.keys, d.listLen, w.ahead)
	simd.Fetch(d.limits, 1, w.ahead)
}

// join compares the candidates of row r with each other unless both are old. Meanwhile it
// prefetches the data for row r+1, if r+1 is below end.
func (d *descent) join(w *descentWork, r, end int) {
	n := copy(w.cols, w.ahead)
	w.next(d, r+1, end)
	if n == 0 {
		return
	}
	for c, q := range w.cols[:n] {
		w.limits[c] = d.limit(q)
	}
	w.comparePairs(d.pointSet, int(d.newCounts[r]), n, func(a, b int, d2 float32) {
		one, other := w.cols[a], w.cols[b]
		if d2 <= w.limits[a] {
			w.limits[a] = d.offer(one, other, d2)
		}
		if d2 <= w.limits[b] {
			w.limits[b] = d.offer(other, one, d2)
		}
	})
}

// limit returns the largest squared distance that the list of p accepts in this round.
func (d *descent) limit(p int32) float32 {
	return math.Float32frombits(atomic.LoadUint32(&d.limits[p]))
}

// offer puts q on the list of p if it is near enough, and returns the new limit.
func (d *descent) offer(p, q int32, d2 float32) float32 {
	limit := d.limit(p)
	if d2 > limit {
		return limit
	}
	key, list := keyOf(d2, q), d.list(int(p))
	if simd.HoldsWord(list, key, marks) {
		return limit // most offered points are there already
	}
	lock := &d.locks[int(p)%len(d.locks)]
	lock.Lock()
	limit = d.limit(p)
	if insert(list, key) {
		// If the last entry is new in this round, an equal distance is near enough.
		limit = min(limit, worst(list))
		atomic.StoreUint32(&d.limits[p], math.Float32bits(limit))
	}
	lock.Unlock()
	return limit
}

// A pairSet is a set of a few among many points: a hash table.
type pairSet struct {
	entries []uint32 // the point and 1; 0 for none
	shift   int      // 32 minus the bits of an index
	count   int
}

// newPairSet returns a set with room for the given number of points. reserve enlarges it.
func newPairSet(points int) pairSet {
	log := bits.Len(uint(2 * points))
	return pairSet{entries: make([]uint32, 1<<log), shift: 32 - log}
}

// has reports whether the set has a point.
func (s *pairSet) has(p int32) bool {
	entry := uint32(p) + 1
	for at := entry * 0x9e3779b1 >> s.shift; ; at = (at + 1) & uint32(len(s.entries)-1) {
		if e := s.entries[at]; e == entry || e == 0 {
			return e != 0
		}
	}
}

// reserve enlarges the table if necessary. At least a third of it is then free after more
// further points are added.
func (s *pairSet) reserve(more int) {
	if 3*(s.count+more) <= 2*len(s.entries) {
		return
	}
	old := s.entries
	*s = newPairSet(max(len(old), s.count+more))
	for _, e := range old {
		if e != 0 {
			s.add(int32(e - 1))
		}
	}
}

// add adds a point that the set does not have. There must be room.
func (s *pairSet) add(p int32) {
	entry := uint32(p) + 1
	at := entry * 0x9e3779b1 >> s.shift
	for s.entries[at] != 0 {
		at = (at + 1) & uint32(len(s.entries)-1)
	}
	s.entries[at] = entry
	s.count++
}
