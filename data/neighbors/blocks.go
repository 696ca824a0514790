package neighbors

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/parallel"
)

// The blocked search.
//
// The points are moved to their mean and scaled by a power of two such that
// no coordinate exceeds 1. For each pair of blocks of points, one product of
// matrices in float32 gives half the squared distance of each pair of points,
//
//	s(i,j) = ‖zᵢ−zⱼ‖²/2 = hᵢ + hⱼ − zᵢ·zⱼ,   h = ‖z‖²/2,
//
// with the norms as two more terms of the inner product. Since s is
// symmetric, a product serves the rows of both blocks. For each point the
// k+slack nearest by s are kept, and ranked in float64 in the end.
//
// blockSize is the number of points of a block: a block of products takes
// 256 KiB, which fits in the second-level cache of current processors.
const (
	blockSize  = 256
	groupSize  = 8                     // products tested at a time
	blockWidth = blockSize / groupSize // groups in a row of a block
)

// slack is how many candidates are kept beyond k. The distance of the last
// one has to exceed that of the k-th neighbour by more than the rounding
// error, typically 10⁻⁴ of it.
const slack = 16

// beyond bounds every product: s ≤ 2D for coordinates up to 1. It is the
// threshold of a point whose candidates have not been cut yet. The columns
// that fill up the last block have twice that as h, and are never candidates.
const beyond = 0x1p100

// A group is groupSize float32 products, or thresholds, seen as pairs in
// 64-bit words. They are tested a word at a time: the bits of non-negative
// floats order as integers do, and with the sign bits set in a word of
// products (guard), subtracting a word of thresholds leaves a sign bit set
// just where the magnitude of the product is not below the threshold.
//
// A product can be negative only by rounding; to take its magnitude brings it
// no farther from s, which is not negative.
type group [groupSize / 2]uint64

const guard = 1<<63 | 1<<31

// floats views groups as the floats in them.
func floats(g []group) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(g))), groupSize*len(g))
}

// magnitudes views groups as the bits of the floats in them.
func magnitudes(g []group) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(g))), groupSize*len(g))
}

// A frame is the mean of points and the scale on which they are searched.
type frame struct {
	n, d    int
	mean    []float64 // of the points
	scale   float64   // z = scale·(x − mean)
	norm    []float64 // ‖z‖ per point
	maxNorm float64
}

// newFrame returns the frame of points, without their norms.
func newFrame(m *data.Matrix) frame {
	n, d := m.N, m.D
	f := frame{n: n, d: d, norm: make([]float64, n)}
	blocks := parallel.Pieces(n, blockSize)
	sums := make([]float64, blocks*d)
	parallel.For(n, blockSize, func(b, lo, hi int) {
		sum := sums[b*d : (b+1)*d]
		for i := lo; i < hi; i++ {
			for l, v := range m.Row(i) {
				sum[l] += float64(v)
			}
		}
	})
	f.mean = sums[:d:d]
	for b := 1; b < blocks; b++ {
		for l, s := range sums[b*d : (b+1)*d] {
			f.mean[l] += s
		}
	}
	for l := range f.mean {
		f.mean[l] /= float64(n)
	}

	largest := make([]float64, blocks)
	parallel.For(n, blockSize, func(b, lo, hi int) {
		for i := lo; i < hi; i++ {
			for l, v := range m.Row(i) {
				largest[b] = max(largest[b], math.Abs(float64(v)-f.mean[l]))
			}
		}
	})
	width := 0.0
	for _, v := range largest {
		width = max(width, v)
	}
	_, exp := math.Frexp(width)
	f.scale = math.Ldexp(1, -exp)
	return f
}

// move moves and scales coordinate l of a point.
func (f *frame) move(v float32, l int) float32 {
	return float32((float64(v) - f.mean[l]) * f.scale)
}

// setMaxNorm sets the largest of the norms.
func (f *frame) setMaxNorm() {
	for _, a := range f.norm {
		f.maxNorm = max(f.maxNorm, a)
	}
}

// panels holds the moved and scaled points, a panel of (2+D)×blockSize per
// block: a row of h, a row of ones, and a row per coordinate. Seen as columns
// of matrices A for the rows of a product and B for its columns, with
// (h, 1, z) in A and (−1, −h, z) in B, the product is −AᵀB.
type panels struct {
	frame
	blocks int
	x      []float32
}

func newPanels(m *data.Matrix) *panels {
	p := &panels{frame: newFrame(m), blocks: parallel.Pieces(m.N, blockSize)}
	p.x = make([]float32, p.blocks*p.size())
	parallel.For(m.N, blockSize, func(b, lo, hi int) {
		p.fill(p.of(b), m.Rows(lo, hi), p.norm[lo:hi])
	})
	p.setMaxNorm()
	return p
}

// fill moves and scales up to blockSize points into a panel, and sets their
// norms.
func (p *panels) fill(panel []float32, m *data.Matrix, norm []float64) {
	h, ones, z := panel[:blockSize], panel[blockSize:2*blockSize], panel[2*blockSize:]
	for c := range blockSize {
		h[c], ones[c] = 2*beyond, 1
	}
	for c := range m.N {
		sum := 0.0
		for l, v := range m.Row(c) {
			zl := p.move(v, l)
			z[l*blockSize+c] = zl
			sum += float64(zl) * float64(zl)
		}
		h[c] = float32(sum / 2)
		norm[c] = math.Sqrt(sum)
	}
}

// size is the number of floats in a panel.
func (p *panels) size() int { return (2 + p.d) * blockSize }

// of returns the panel of a block.
func (p *panels) of(block int) []float32 { return p.x[block*p.size() : (block+1)*p.size()] }

// rows returns the number of points in a block.
func (p *panels) rows(block int) int { return min(blockSize, p.n-block*blockSize) }

// A workspace is what one goroutine needs to multiply two blocks.
type workspace struct {
	b        []float32
	products []group
}

func (p *panels) newWorkspace() *workspace {
	return &workspace{b: make([]float32, p.size()), products: make([]group, blockSize*blockWidth)}
}

// multiply computes s for the first points of a panel (rows of w.products)
// and those of block J (columns).
func (p *panels) multiply(w *workspace, panel []float32, rows, blockJ int) {
	copy(w.b, p.of(blockJ))
	for c, h := range w.b[:blockSize] {
		w.b[c], w.b[blockSize+c] = -1, -h
	}
	blas.Gemm(true, false, rows, blockSize, 2+p.d,
		-1, panel, blockSize, w.b, blockSize, 0, floats(w.products), blockSize)
}

// candidates holds, for each point, the other points with the smallest s of
// all that were offered so far.
type candidates struct {
	keep  int      // how many are kept at least
	room  int      // how many there is room for
	keys  []uint64 // [n, room]: the bits of s, then the index
	count []int32
	// Points with s from the threshold on are not wanted any more. There is
	// one threshold per point, and room for whole blocks.
	thresholds []group
	threshold  []uint32 // the same, as bits
}

func newCandidates(n, k int) *candidates {
	keep := k + slack
	c := &candidates{keep: keep, room: keep + min(keep, 128), count: make([]int32, n)}
	c.keys = make([]uint64, n*c.room)
	c.thresholds = make([]group, parallel.Pieces(n, blockSize)*blockWidth)
	c.threshold = magnitudes(c.thresholds)
	c.reset()
	return c
}

// reset forgets all candidates.
func (c *candidates) reset() {
	clear(c.count)
	for i := range c.threshold {
		c.threshold[i] = math.Float32bits(beyond)
	}
}

// of returns the candidates of point i, and its threshold.
func (c *candidates) of(i int) (keys []uint64, threshold float32) {
	return c.keys[i*c.room : i*c.room+int(c.count[i])], math.Float32frombits(c.threshold[i])
}

// push adds point j with the bits of s to the candidates of point i, and cuts
// them down to keep, lowering the threshold, when there is no more room.
func (c *candidates) push(i int, s uint32, j int) {
	keys := c.keys[i*c.room : (i+1)*c.room]
	keys[c.count[i]] = uint64(s)<<32 | uint64(j)
	c.count[i]++
	if int(c.count[i]) == c.room {
		c.threshold[i] = uint32(selectSmallest(keys, c.keep) >> 32)
		c.count[i] = int32(c.keep)
	}
}

// noThresholds is what columns are tested against that want no candidates:
// those of a block meeting itself, where each pair occurs twice and is dealt
// with by its row, and those of a block that is searched for others.
var noThresholds [blockWidth]group

// columns returns the thresholds of a block's points.
func (c *candidates) columns(block int) *[blockWidth]group {
	return (*[blockWidth]group)(c.thresholds[block*blockWidth:])
}

// scan pushes the products of two blocks that are below the threshold of
// their row's point or of their column's.
func (c *candidates) scan(products []group, columns *[blockWidth]group, blockI, blockJ, rows int) {
	bits := magnitudes(products)
	columnBits := magnitudes(columns[:])
	for r := range rows {
		i := blockI*blockSize + r
		row := (*[blockWidth]group)(products[r*blockWidth:])
		t := uint64(c.threshold[i])
		t |= t << 32
		for g := range row {
			p, q := &row[g], &columns[g]
			p0, p1, p2, p3 := p[0]|guard, p[1]|guard, p[2]|guard, p[3]|guard
			if (p0-t)&(p0-q[0])&(p1-t)&(p1-q[1])&(p2-t)&(p2-q[2])&(p3-t)&(p3-q[3])&guard == guard {
				continue
			}
			for e := range groupSize {
				col := g*groupSize + e
				s := bits[r*blockSize+col] &^ (1 << 31)
				j := blockJ*blockSize + col
				if s < c.threshold[i] {
					c.push(i, s, j)
				}
				if s < columnBits[col] {
					c.push(j, s, i)
				}
			}
			t = uint64(c.threshold[i])
			t |= t << 32
		}
	}
}

// find offers every pair of points to the candidates of both.
//
// Two blocks are multiplied at a time, and both change: so the pairs of
// different blocks are arranged in rounds in which no block occurs twice, as
// the games of a tournament are, and a round is shared out among the cores.
func (c *candidates) find(p *panels) {
	pool := sync.Pool{New: func() any { return p.newWorkspace() }}
	meet := func(blockI, blockJ int) {
		w := pool.Get().(*workspace)
		rows := p.rows(blockI)
		p.multiply(w, p.of(blockI), rows, blockJ)
		columns := c.columns(blockJ)
		if blockI == blockJ {
			columns = &noThresholds
			products := floats(w.products)
			for r := range rows { // no point is its own candidate
				products[r*blockSize+r] = 2 * beyond
			}
		}
		c.scan(w.products, columns, blockI, blockJ, rows)
		pool.Put(w)
	}
	parallel.For(p.blocks, 1, func(_, b, _ int) { meet(b, b) })

	// An odd number of blocks is made even by one that is not there.
	players := p.blocks + p.blocks%2
	for round := range players - 1 {
		parallel.For(players/2, 1, func(_, g, _ int) {
			if a, b := game(players, round, g); b < p.blocks {
				meet(a, b)
			}
		})
	}
}

// game returns game g, from 0 to players/2−1, of a round, from 0 to players−2,
// of a tournament of an even number of players in which everyone meets
// everyone else once, and no one plays twice in a round; a < b.
func game(players, round, g int) (a, b int) {
	// All but the last sit in a circle. The last meets the one whose place has
	// the round's number, and those at equal distances to both sides of that
	// place meet each other.
	circle := players - 1
	if g == 0 {
		return round, circle
	}
	a, b = (round+g)%circle, (round-g+circle)%circle
	return min(a, b), max(a, b)
}

// An errorBound bounds the difference between the products and the distances
// they stand for. With u = 2⁻²⁴, the rounding of float32, K = D+2 the length
// of the inner products and a = ‖z‖ of the rounded z:
//
//   - An inner product of K terms is off by at most γ = Ku/(1−Ku) times the
//     sum of its terms' magnitudes, in whatever order it is added up and
//     whether or not multiplications and additions are fused (Higham,
//     Accuracy and Stability of Numerical Algorithms, section 3.1). Here that
//     sum is at most hᵢ+hⱼ+aᵢaⱼ = (aᵢ+aⱼ)²/2. The rounding of h adds u(hᵢ+hⱼ).
//     Together: less than γ(aᵢ+aⱼ)²/2, with K+4 for K.
//   - The z are themselves rounded, which moves each point by at most ua, and
//     hence changes a distance by at most u(aᵢ+aⱼ).
//   - Underflow adds at most 2⁻¹²⁶ per term to each, or to a coordinate.
//
// In few dimensions an accelerator computes s from differences instead
// (newDifferenceBound): that of two coordinates is off by at most u of itself, its
// square by 3u at most, and the sum by D more. So s is off by γs at most, with D+4
// for K, and not by more the farther the points are from the mean.
type errorBound struct {
	gamma, relative, shift, product, distance float64
}

func newErrorBound(d int) errorBound {
	const u = 0x1p-24
	terms := float64(d + 2)
	e := errorBound{
		gamma: math.Inf(1),
		// The norms a are float64 sums and the bounds below are computed in
		// float64: a thousandth more covers their own rounding many times.
		shift:    1.001 * u,
		product:  terms * 0x1p-124,
		distance: terms * 0x1p-124,
	}
	if ku := (terms + 4) * u; ku < 0.5 {
		e.gamma = 1.001 * ku / (1 - ku)
	}
	return e
}

// newDifferenceBound is newErrorBound for sums of squared differences.
func newDifferenceBound(d int) errorBound {
	e := newErrorBound(d)
	e.gamma, e.relative = 0, e.gamma
	return e
}

// certain reports whether every point j whose product with a point of norm a
// is at least s lies farther from that point than r (both on the scale of z).
// No point has a norm above maxNorm.
//
// From the product, ‖xᵢ−xⱼ‖ ≥ √(2s − γ(a+b)²) − u(a+b) less the effects of
// underflow, which is useless for a point of large norm b. But such a point
// is far anyway: ‖xᵢ−xⱼ‖ ≥ b − a − u(a+b). So the first has to be used only
// up to the b from which the second exceeds r.
func (e errorBound) certain(s, r, a, maxNorm float64) bool {
	r = r*(1+1e-9) + e.distance // the float64 distance that r is from is rounded, too
	b := min(maxNorm, (1+1e-9)*((1+e.shift)*a+r)/(1-e.shift))
	w := a + b
	return math.Sqrt(max(0, 2*(s-e.product)*(1-e.relative)-e.gamma*w*w))-e.shift*w > r
}

// rank offers to best, emptied before, the candidates of a point of norm a,
// and reports whether it is certain that the k nearest of all points of m are
// among them.
func (f *frame) rank(best *topK, point []float32, m *data.Matrix, keys []uint64, threshold float32, a float64, bound errorBound) bool {
	best.resetAll()
	for _, key := range keys {
		j := int32(uint32(key))
		best.offer(dist2(point, m.Row(int(j)), best.limit), j)
	}
	r := f.scale * math.Sqrt(best.limit)
	return threshold == beyond || bound.certain(float64(threshold), r, a, f.maxNorm)
}

// searchGrain is the number of points that are searched in a tree in one
// piece.
const searchGrain = 16

// knnBlocked is KNN by block products for checked arguments. It also returns
// the number of points whose candidates could not be proved complete, and
// that were searched in a tree.
func knnBlocked(m *data.Matrix, k int) (nb *Neighbors, searched int) {
	p := newPanels(m)
	c := newCandidates(m.N, k)
	c.find(p)

	nb = newNeighbors(m.N, k)
	bound := newErrorBound(m.D)
	const grain = 256
	open := make([][]int32, parallel.Pieces(m.N, grain))
	parallel.For(m.N, grain, func(piece, lo, hi int) {
		best := newTopK(k)
		for i := lo; i < hi; i++ {
			keys, threshold := c.of(i)
			if !p.rank(best, m.Row(i), m, keys, threshold, p.norm[i], bound) {
				open[piece] = append(open[piece], int32(i))
			}
			best.store(nb, i)
		}
	})

	return nb, improveAll(nb, func() *tree { return newTree(m) }, m, open, true)
}

// improveAll replaces the rows of nb that are open, of which there are some in
// each piece, by what a search of the tree finds for these queries. Own says that
// the queries are the points of the tree. It returns the number of rows.
func improveAll(nb *Neighbors, tree func() *tree, queries *data.Matrix, open [][]int32, own bool) int {
	rows := slices.Concat(open...)
	if len(rows) == 0 {
		return 0
	}
	t := tree()
	parallel.For(len(rows), searchGrain, func(_, lo, hi int) {
		best := newTopK(nb.K)
		for _, i := range rows[lo:hi] {
			self := int32(nobody)
			if own {
				self = i
			}
			t.improve(best, nb, int(i), queries.Row(int(i)), self)
		}
	})
	return len(rows)
}
