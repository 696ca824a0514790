package neighbors

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// This file finds candidates by products of blocks, on the CPU.
//
// Once points are normalized, one product of matrices in float32 gives half the
// squared distance of each pair of points of two blocks,
//
//	s(i,j) = ‖zᵢ−zⱼ‖²/2 = hᵢ + hⱼ − zᵢ·zⱼ,   h = ‖z‖²/2,
//
// with the norms as two more terms of the inner product. The k+slack nearest by s are the
// candidates of a query. If the base points themselves are the queries, one product
// serves both blocks, because s is symmetric.
//
// blockSize is the number of points of a block. A block of products takes 256 KiB and
// fits in the second-level cache of current processors.
const blockSize = 256

// panels holds the moved and scaled points, a panel per block. In float32 that is a row of h, a
// row of ones, and a row per coordinate, of blockSize columns. Seen as columns of matrices A for
// the rows of a product and B for its columns, with (h, 1, z) in A and (−1, −h, z) in B, the
// product is −AᵀB. Rounded panels are described in rounded.go.
type panels struct {
	normalization
	blocks  int
	order   []int32 // the points in the order of the panels
	x       []float32
	rounded *roundedPanels
}

// A panel has the points of a block in one of the two forms.
type panel struct {
	x     []float32 // (2+D)×blockSize
	pairs []uint32  // of rounded points: blockSize rows
}

func newPanels(m *data.Matrix, order []int32) *panels {
	p := panelsFor(m, order)
	p.x = make([]float32, p.blocks*p.size())
	p.fillAll(m)
	return p
}

func panelsFor(m *data.Matrix, order []int32) *panels {
	p := &panels{normalization: newNormalization(m, newErrorBound(m.D)), blocks: parallel.Pieces(m.N, blockSize), order: order}
	p.normalizeFor(m)
	return p
}

// fillAll fills all panels, and returns the largest of fill's results.
func (p *panels) fillAll(m *data.Matrix) (change float64) {
	changes := make([]float64, p.blocks)
	parallel.For(m.N, blockSize, func(b, lo, hi int) {
		changes[b] = p.fill(p.of(b), b, m.Take(selection.As[int](p.order[lo:hi])), p.norm[lo:hi])
	})
	p.maxNorm = slices.Max(p.norm)
	return slices.Max(changes)
}

// nearby orders the points so that a block has points near each other, and the next block mostly
// has points near these. It halves the points again and again, each time along the coordinate
// where a sample of them spreads most.
func nearby(m *data.Matrix) []int32 {
	order, keys := selection.UpTo[int32](m.N), make([]uint64, m.N)
	var divide func(lo, hi int)
	divide = func(lo, hi int) {
		half := parallel.Pieces(hi-lo, blockSize) / 2 * blockSize
		if half == 0 {
			return
		}
		low, high := slices.Clone(m.Row(int(order[lo]))), slices.Clone(m.Row(int(order[lo])))
		for p := lo; p < hi; p += max(1, (hi-lo)/64) {
			for l, v := range m.Row(int(order[p])) {
				low[l], high[l] = min(low[l], v), max(high[l], v)
			}
		}
		divideAlong(m, widest(low, high), order[lo:hi], keys[lo:hi], half)
		divide(lo, lo+half)
		divide(lo+half, hi)
	}
	divide(0, m.N)
	return order
}

// ofQueries says that a panel is not of a block of the points.
const ofQueries = -1

// fill moves and scales up to blockSize points into a panel, and sets their norms. block is
// ofQueries for points that are not the base. Queries that are too far have no candidates: they
// become zeros with a huge h. Rounding (rounded.go) moves points. The result is the largest such
// distance, divided by the norm of the point.
func (p *panels) fill(to panel, block int, m *data.Matrix, norm []float64) (change float64) {
	if p.rounded != nil {
		return p.rounded.fill(p, to, block, m, norm)
	}
	h, ones, z := to.x[:blockSize], to.x[blockSize:2*blockSize], to.x[2*blockSize:]
	for c := range blockSize {
		h[c], ones[c] = 2*aboveAll, 1
	}
	for c := range m.N {
		sum := 0.0
		for l, v := range m.Row(c) {
			zl := p.transform(v, l)
			z[l*blockSize+c] = zl
			sum += float64(float64(zl) * float64(zl))
		}
		h[c], norm[c] = float32(sum/2), math.Sqrt(sum)
		switch p.measure {
		case manhattan:
			h[c] = 0
		case mismatches:
			h[c], norm[c] = 0, 0
		case twoValued:
			for l := range p.d {
				if zl := z[l*blockSize+c]; zl != 0 && zl != 1 {
					norm[c] = math.Inf(1)
				}
			}
		}
		if far(norm[c]) {
			h[c] = 2 * aboveAll
			for l := range p.d {
				z[l*blockSize+c] = 0
			}
		}
	}
	return 0
}

// size is the number of floats in a panel.
func (p *panels) size() int { return (2 + p.d) * blockSize }

// of returns the panel of a block.
func (p *panels) of(block int) panel {
	if p.rounded != nil {
		return panel{pairs: p.rounded.of(block)}
	}
	return panel{x: p.x[block*p.size() : (block+1)*p.size()]}
}

// newPanel returns a panel for queries.
func (p *panels) newPanel() panel {
	if p.rounded != nil {
		return panel{pairs: make([]uint32, p.rounded.size())}
	}
	return panel{x: make([]float32, p.size())}
}

// rows returns the number of points in a block.
func (p *panels) rows(block int) int { return min(blockSize, p.n-block*blockSize) }

// A workspace holds one goroutine's buffers for multiplying two blocks.
type workspace struct {
	b        []float32
	products []float32
}

func (p *panels) newWorkspace() *workspace {
	w := &workspace{products: make([]float32, blockSize*blockSize)}
	if p.rounded == nil {
		w.b = make([]float32, p.size())
	}
	return w
}

// multiply computes s for the first points of a panel (rows of w.products) and the
// points of block J (columns).
func (p *panels) multiply(w *workspace, panel panel, rows, blockJ int) {
	if p.rounded != nil {
		p.rounded.multiply(p, w, panel.pairs, rows, blockJ)
		return
	}
	if p.measure == manhattan || p.measure == mismatches {
		p.addUp(w.products, panel.x, rows, blockJ)
		return
	}
	copy(w.b, p.of(blockJ).x)
	for c, h := range w.b[:blockSize] {
		w.b[c], w.b[blockSize+c] = -1, -h
	}
	blas.Gemm(true, false, rows, blockSize, 2+p.d,
		-1, panel.x, blockSize, w.b, blockSize, 0, w.products, blockSize)
	if p.measure == jaccard {
		p.divide(w.products, panel.x, rows, blockJ)
	}
}

// free implements candidates.
func (p *panels) free() {}

// A collector keeps, for each query, the base points with the smallest s that it was
// offered so far.
type collector struct {
	candidateLists
	keep int // the least number of candidates that are kept
	// last has the last key of each list, if points at the threshold are still wanted, since
	// those of smaller numbers come first; or is nil.
	last []uint64
}

func newCollector(n, k int, ties bool) *collector {
	keep := k + slack
	c := &collector{keep: keep}
	if ties {
		c.last = make([]uint64, n)
	}
	c.stride, c.count = keep+min(keep, 128), make([]int32, n)
	c.keys = make([]uint64, n*c.stride)
	c.threshold = make([]uint32, parallel.Pieces(n, blockSize)*blockSize) // of whole blocks
	c.reset()
	return c
}

// reset forgets all candidates.
func (c *collector) reset() {
	clear(c.count)
	selection.Fill(c.threshold, math.Float32bits(aboveAll))
	selection.Fill(c.last, math.MaxUint64)
}

// push adds point j with the bits of s to the candidates of point i. When the list is
// full, it drops all but the best keep candidates, and lowers the threshold.
func (c *collector) push(i int, s uint32, j int32) {
	keys, key := c.keys[i*c.stride:(i+1)*c.stride], uint64(s)<<32|uint64(j)
	if c.last != nil && key > c.last[i] {
		return
	}
	keys[c.count[i]] = key
	c.count[i]++
	if int(c.count[i]) == c.stride {
		last := selection.Smallest(keys, c.keep)
		c.threshold[i] = uint32(last >> 32)
		if c.last != nil {
			c.last[i] = last
			c.threshold[i]++
		}
		c.count[i] = int32(c.keep)
	}
}

// noThresholds are the thresholds of columns that need no candidates. These are base
// points if other points are the queries, and the columns of a block multiplied by
// itself. There each pair occurs twice and is taken from its row.
var noThresholds [blockSize]uint32

// columns returns the thresholds of a block's points.
func (c *collector) columns(block int) []uint32 { return c.threshold[block*blockSize:][:blockSize] }

// scan pushes the products of two blocks that are below the threshold of their row's point
// or of their column's. order has the numbers of the points. Only rounding can make a product
// negative. Its magnitude is then at least as near to the exact s, because that is not
// negative.
func (c *collector) scan(products []float32, columns []uint32, order []int32, blockI, blockJ, rows int) {
	var found [blockSize / 64]uint64
	for r := range rows {
		i, row := blockI*blockSize+r, products[r*blockSize:][:blockSize]
		simd.MarkBelow(row, columns, c.threshold[i], found[:])
		for w, word := range found {
			for ; word != 0; word &= word - 1 {
				col := 64*w + bits.TrailingZeros64(word)
				s, j := math.Float32bits(row[col])&^(1<<31), blockJ*blockSize+col
				if s < c.threshold[i] {
					c.push(i, s, order[j])
				}
				if s < columns[col] {
					c.push(j, s, order[i])
				}
			}
		}
	}
}

// join is find if the queries are the base points.
//
// Near blocks meet first, so that thresholds soon pass over most pairs. A pair of blocks
// changes the candidates of both. So no block occurs twice in a round, whose pairs the cores
// share.
func (p *panels) join(ctx context.Context, k int, rank rerank) error {
	c := newCollector(p.n, k, p.measure > manhattan)
	pool := parallel.Pool[workspace]{New: p.newWorkspace}
	meet := func(blockI, blockJ int) {
		if ctx.Err() != nil {
			return
		}
		w := pool.Get()
		rows := p.rows(blockI)
		p.multiply(w, p.of(blockI), rows, blockJ)
		columns := c.columns(blockJ)
		if blockI == blockJ {
			columns = noThresholds[:]
			for r := range rows { // no point is its own candidate
				w.products[r*blockSize+r] = 2 * aboveAll
			}
		}
		c.scan(w.products, columns, p.order, blockI, blockJ, rows)
		pool.Put(w)
	}
	parallel.For(p.blocks, 1, func(_, b, _ int) { meet(b, b) })

	for gap := 1; gap < p.blocks && ctx.Err() == nil; gap++ {
		for side := range 2 {
			parallel.For(p.blocks/2+gap, 1, func(_, g, _ int) {
				if a := game(gap, side, g); a+gap < p.blocks {
					meet(a, a+gap)
				}
			})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.norm, c.bound, c.order, c.lowPrecision = p.norm, p.bound, p.order, p.rounded != nil
	rank(0, p.n, &c.candidateLists)
	return nil
}

// game returns the first block of pair g, from 0, of blocks that are a gap apart. Pairs of the
// same side, 0 or 1, have no block in common.
func game(gap, side, g int) int { return (2*(g/gap)+side)*gap + g%gap }

// A queryWork holds one goroutine's buffers for finding candidates of a block of queries.
type queryWork struct {
	*workspace
	*collector
	panel panel
}

// find implements candidates. The cores share the blocks of queries.
func (p *panels) find(ctx context.Context, q queries, k int, rank rerank) error {
	if q.own && q.rows == nil {
		return p.join(ctx, k, rank)
	}
	pool := parallel.Pool[queryWork]{New: func() *queryWork {
		s := &queryWork{p.newWorkspace(), newCollector(blockSize, k, p.measure > manhattan), p.newPanel()}
		s.norm, s.bound, s.lowPrecision = make([]float64, blockSize), p.bound, p.rounded != nil
		return s
	}}
	return parallel.ForContext(ctx, q.count(), blockSize, func(_, lo, hi int) {
		s := pool.Get()
		defer pool.Put(s)
		rows := hi - lo
		if change := p.fill(s.panel, ofQueries, q.block(lo, hi), s.norm); p.rounded != nil {
			s.bound = p.rounded.bound(p.d, max(change, p.rounded.change))
		}
		s.reset()
		s.own = q.own
		for block := range p.blocks {
			if ctx.Err() != nil {
				return
			}
			p.multiply(s.workspace, s.panel, rows, block)
			s.scan(s.products, noThresholds[:], p.order, 0, block, rows)
		}
		rank(lo, hi, &s.candidateLists)
	})
}

// A normalization is the coordinate system for the search among base points: moved to their
// mean and scaled by a power of two such that no coordinate exceeds 1.
type normalization struct {
	n, d    int
	mean    []float64 // of the points
	scale   float64   // z = scale·(x − mean)
	factor  float64   // of the measure's values: √(factor·value) is the distance that s stands for
	measure measure
	norm    []float64 // ‖z‖ per point
	maxNorm float64
	bound   errorBound // of the s that are computed from z
}

// newNormalization returns the normalization of points, with norms still to be set.
func newNormalization(m *data.Matrix, bound errorBound) normalization {
	n, d := m.N, m.D
	f := normalization{n: n, d: d, norm: make([]float64, n), bound: bound}
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
	_, exp := math.Frexp(slices.Max(largest))
	f.scale = math.Ldexp(1, -exp)
	f.factor = f.scale * f.scale
	return f
}

// exact moves and scales coordinate l of a point.
func (nm *normalization) exact(v float32, l int) float64 { return (float64(v) - nm.mean[l]) * nm.scale }

// transform rounds what exact returns.
func (nm *normalization) transform(v float32, l int) float32 { return float32(nm.exact(v, l)) }

// radius returns the distance that s stands for, for a value of the measure.
func (nm *normalization) radius(value float64) float64 { return math.Sqrt(nm.factor * value) }

// An errorBound bounds the difference between the computed s and the distances
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
// In few dimensions a device computes s from differences instead
// (newDifferenceBound): the difference of two coordinates is off by at most a
// share u of itself, its square by 3u, and the sum by D·u more. So s is off by
// γs at most, with D+4 for K, however far the points are from the mean.
type errorBound struct {
	gamma, relative, shift, product, distance float64
}

func newErrorBound(d int) errorBound {
	const u = 0x1p-24
	terms := float64(d + 2)
	e := errorBound{
		gamma: math.Inf(1),
		// The norms a are float64 sums, and the bounds below are computed in float64. An
		// additional thousandth covers their rounding many times.
		shift:    1.001 * u,
		product:  terms * 0x1p-124,
		distance: terms * 0x1p-124,
	}
	if ku := float64((terms + 4) * u); ku < 0.5 {
		e.gamma = 1.001 * ku / (1 - ku)
	}
	return e
}

// newRoundedBound is newErrorBound for points whose coordinates were rounded before their norms
// and products were computed: on a device to TF32's 10 stored bits of mantissa, with AMX to
// bfloat16. The rounding moved each point by at most the share change of its norm, less
// what was subnormal.
//
// Tensor cores multiply such numbers exactly, whether they truncate or round further
// digits. The error of s comes from the truncated sums: a step adds a few products,
// shifts each to the exponent of the largest and drops the bits below the last one (Fasi,
// Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, 2021). A step
// that adds m products to the sum errs by at most 2(m+2)u of the sum of all magnitudes,
// and K/m steps by 2(1+2/m)Ku, where m ≥ 4. The sum of magnitudes is at most aᵢaⱼ ≤
// (aᵢ+aⱼ)²/4, half of newErrorBound's, so twice its γ would suffice. Four times its γ
// allows for m = 1. AMX rounds each sum to nearest, and its K = D+6 terms need newErrorBound's γ.
func newRoundedBound(d int, change float64) errorBound {
	e := newErrorBound(d)
	e.shift += float64(1.001 * change)
	if e.gamma = 4 * e.gamma * (1 + change) * (1 + change); e.gamma > 1 {
		e.gamma = math.Inf(1)
	}
	e.product, e.distance = 2*e.product, 2*e.distance // rounding also moves subnormal numbers
	return e
}

// roundTF32 returns the number with ten digits after the point that is nearest to v, as the
// kernel neighbors_round does.
func roundTF32(v float32) float32 {
	return math.Float32frombits((math.Float32bits(v) + 0x1000) &^ 0x1fff)
}

// newDifferenceBound is newErrorBound for sums of squared differences.
func newDifferenceBound(d int) errorBound {
	e := newErrorBound(d)
	e.gamma, e.relative = 0, e.gamma
	return e
}

// certain reports whether every point whose product with a point of norm a is at least s
// is farther from that point than r (s and r on the scale of z). No point has a norm
// above maxNorm.
//
// From s follows ‖xᵢ−xⱼ‖ ≥ √(2s − γ(a+b)²) − u(a+b), less the effects of underflow. This
// bound is weak for a point of large norm b. But such a point is far anyway: ‖xᵢ−xⱼ‖ ≥ b
// − a − u(a+b). So the first bound is used only for norms b where the second does not
// exceed r.
func (e errorBound) certain(s, r, a, maxNorm float64) bool {
	r = float64(r*(1+1e-9)) + e.distance // the float64 distance that r is from is rounded, too
	b := min(maxNorm, (1+1e-9)*(float64((1+e.shift)*a)+r)/(1-e.shift))
	w := a + b
	return math.Sqrt(max(0, float64(2*(s-e.product)*(1-e.relative))-float64(e.gamma*w*w)))-float64(e.shift*w) > r
}

// between solves the bound of certain for s: for two points whose norms add up to at most
// w, their distance is certainly below r if s < lo, and certainly not if s ≥ hi. r was
// itself computed in float64.
func (e errorBound) between(r, w float64) (lo, hi float32) {
	const underflow = 0x1p-126
	ulps := e.relative + 0x1p-22 // more than the limits' own rounding
	margin := float64(e.gamma*w*w/2) + e.product + underflow
	shift := float64(e.shift*w) + e.distance
	least, most := max(0, float64(r*(1-1e-9))-shift), float64(r*(1+1e-9))+shift
	below, above := float64(least*least/2)-margin, float64(most*most/2)+margin
	return float32(below - float64(ulps*math.Abs(below))), float32(above + float64(ulps*above))
}
