package neighbors

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// Processors with AMX multiply bfloat16 ten times as fast as float32, and those with AVX2 pairs
// of whole numbers of 16 bits twice as fast. Rounded points still prove most neighbours, by a
// wider bound, and only the queries where they do not are compared in float32.
//
// Coordinates of bfloat16 are multiplied exactly, and their h is the sum of three numbers of
// bfloat16. So with (z, h₁, h₂, h₃, 1, 1, 1) for the rows of a product and (−z, 1, 1, 1, h₁, h₂,
// h₃) for its columns, the product is s.
//
// Whole numbers are z divided by a unit, the least power of two for which no point has a norm
// above 2¹⁵−1. So products and h, whose half is dropped if it is odd, are exact below 2³¹. With
// h = 2¹⁴a+b, (z, a, b, 2¹⁴, 1) and (−z, 2¹⁴, 1, a, b) have the product s. A query of a larger norm
// has zeros only, so all its s are 0 and prove nothing.

// roundedPanels are the panels of rounded points.
type roundedPanels struct {
	unit   float64 // of whole numbers; 0 for bfloat16
	width  int     // of a row, in pairs
	form   blas.Panels
	left   []uint32 // [blocks, blockSize, width]
	right  []uint32 // [blocks] of the form
	change float64  // what fill returned, at most
}

// newRoundedPanels rounds to whole numbers, or else to bfloat16.
func newRoundedPanels(m *data.Matrix, order []int32, whole bool) *panels {
	const tile = 16
	p := panelsFor(m, order)
	q := &roundedPanels{width: parallel.Pieces((p.d+1)/2+3, tile) * tile}
	q.form = blas.NewPairPanels(q.width, blockSize)
	if whole {
		q.unit, q.width = p.unit(m), (p.d+1)/2+2
		q.form = blas.NewPanels[float32](q.width, blockSize)
	}
	q.left, q.right = make([]uint32, p.blocks*q.size()), make([]uint32, p.blocks*q.size())
	p.rounded = q
	q.change = p.fillAll(m)
	p.bound = q.bound(p.d, q.change)
	p.maxNorm += float64(2 * q.change * selection.If(whole, 1, p.maxNorm)) // points were in this ball before, too
	return p
}

// mostWhole is the largest norm of points as whole numbers.
const mostWhole = 1<<15 - 1

// unit returns the unit of whole numbers.
func (p *panels) unit(m *data.Matrix) float64 {
	norms := make([]float64, p.blocks)
	parallel.For(m.N, blockSize, func(b, lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := 0.0
			for l, v := range m.Row(i) {
				z := p.exact(v, l)
				sum += float64(z * z)
			}
			norms[b] = max(norms[b], sum)
		}
	})
	rounding := float64(math.Sqrt(float64(p.d))/2) + 1
	_, exp := math.Frexp(math.Sqrt(slices.Max(norms)) / (mostWhole - rounding))
	return math.Ldexp(1, exp)
}

// bound returns the bound on products if points of D values were moved by at most the given
// change.
func (q *roundedPanels) bound(d int, change float64) errorBound {
	if q.unit == 0 {
		return newRoundedBound(d, change)
	}
	// s is off by at most a unit² for the halves of two h, and a share of 2⁻²⁴. The last term is
	// more than what float64 rounds.
	return errorBound{relative: 0x1p-23, product: q.unit * q.unit, distance: 2*change + float64(q.unit/(1<<20))}
}

// size is the number of pairs in a panel.
func (q *roundedPanels) size() int { return blockSize * q.width }

// of returns the rows of a block.
func (q *roundedPanels) of(block int) []uint32 { return q.left[block*q.size() : (block+1)*q.size()] }

// fill is panels.fill. The distances by which whole numbers move points are not divided by
// norms.
func (q *roundedPanels) fill(p *panels, to panel, block int, m *data.Matrix, norm []float64) (change float64) {
	write, negative := q.writeBFloat16, func(pair uint32) uint32 { return pair ^ 0x80008000 } // both signs
	if q.unit > 0 {
		write, negative = q.writeWhole, func(pair uint32) uint32 { return wholePair(-int16(pair), -int16(pair>>16)) }
	}
	z, pairs := make([]float32, 2*q.width), (p.d+1)/2
	for c := range blockSize {
		var x []float32
		if c < m.N {
			x = m.Row(c)
		}
		row := to.pairs[c*q.width:][:q.width]
		last, a, moved := write(p, z, row, x)
		if c < m.N {
			norm[c], change = a, max(change, moved)
		}
		if block == ofQueries {
			continue
		}
		at, stride := q.form.At(c)
		right := q.right[block*q.size()+at:]
		for l, pair := range row[:pairs] {
			right[l*stride] = negative(pair)
		}
		for l, pair := range last[:min(len(last), q.width-pairs)] {
			right[(pairs+l)*stride] = pair
		}
	}
	return change
}

// writeBFloat16 writes a row of a point, or of none if x is nil. It returns what follows the
// coordinates in the point's column, its norm, and how far it was moved, divided by the norm.
func (q *roundedPanels) writeBFloat16(p *panels, z []float32, row []uint32, x []float32) (last [3]uint32, norm, moved float64) {
	h := float32(2 * aboveAll)
	if clear(z); x != nil {
		h, norm, moved = p.round(z, x)
	}
	first := simd.RoundBFloat16(h)
	second := simd.RoundBFloat16(h - first)
	third := h - first - second
	simd.PairUp(row, z)
	copy(row[(p.d+1)/2:], []uint32{simd.Pair(first, second), simd.Pair(third, 1), simd.Pair(1, 1)})
	return [...]uint32{simd.Pair(1, 1), simd.Pair(1, first), simd.Pair(second, third)}, norm, moved
}

// round writes the rounded coordinates of a point to z. It returns their h and norm, and how far
// the point was moved, divided by the norm.
func (p *panels) round(z, x []float32) (h float32, norm, moved float64) {
	sum, change := 0.0, 0.0
	for l, v := range x {
		exact := p.transform(v, l)
		z[l] = simd.RoundBFloat16(exact)
		sum += float64(float64(z[l]) * float64(z[l]))
		if z[l] != 0 { // the bound includes what becomes 0, which is subnormal
			by := float64(exact) - float64(z[l])
			change += float64(by * by)
		}
	}
	norm = math.Sqrt(sum)
	switch {
	case far(norm):
		clear(z)
		return 2 * aboveAll, norm, 0
	case sum == 0:
		return 0, 0, 0
	}
	return float32(sum / 2), norm, math.Sqrt(change / sum)
}

// writeWhole is writeBFloat16 for whole numbers.
func (q *roundedPanels) writeWhole(p *panels, z []float32, row []uint32, x []float32) (last [3]uint32, norm, moved float64) {
	clear(row)
	if x == nil {
		return last, 0, 0
	}
	sum, change := 0.0, 0.0
	for l, v := range x {
		exact := p.exact(v, l) / q.unit
		whole := math.RoundToEven(exact)
		z[l] = float32(whole)
		by := exact - whole
		sum, change = sum+float64(whole*whole), change+float64(by*by)
	}
	if norm = q.unit * math.Sqrt(sum); sum > mostWhole*mostWhole {
		return last, norm, 0
	}
	pairs := (p.d + 1) / 2
	for l := range pairs {
		row[l] = wholePair(int16(z[2*l]), int16(z[2*l+1]))
	}
	h := int(sum / 2)
	parts, factors := wholePair(int16(h>>14), int16(h&(1<<14-1))), wholePair(1<<14, 1)
	row[pairs], row[pairs+1] = parts, factors
	return [3]uint32{factors, parts}, norm, q.unit * math.Sqrt(change)
}

// wholePair returns a pair of whole numbers.
func wholePair(first, second int16) uint32 { return uint32(uint16(first)) | uint32(uint16(second))<<16 }

// multiply is panels.multiply.
func (q *roundedPanels) multiply(p *panels, w *workspace, left []uint32, rows, blockJ int) {
	right := q.right[blockJ*q.size():][:q.size()]
	if q.unit == 0 {
		blas.MultiplyPairs(q.form, rows, left, q.width, 1, right, false, w.products, blockSize)
		return
	}
	blas.MultiplyWhole(q.form, rows, left, q.width, right, float32(q.unit*q.unit), w.products, blockSize)
	for points, r := p.rows(blockJ), 0; points < blockSize && r < rows; r++ {
		selection.Fill(w.products[r*blockSize+points:(r+1)*blockSize], 2*aboveAll)
	}
}

// coarseFirst are the candidates of rounded points and, for queries where these prove too
// little, of the points themselves.
type coarseFirst struct {
	coarse *panels
	fine   func() *panels // made at the first call
}

// newCoarseFirst returns nil if the processor has no fast products of rounded points, or if these
// would not prove enough in searches for k neighbours.
func newCoarseFirst(ctx context.Context, m *data.Matrix, order []int32, k int) *coarseFirst {
	const leastPoints = 1 << 14
	whole := blas.WholeNumbers()
	if !whole && !(simd.AMX() && blas.BFloat16()) || m.N < leastPoints || measureOf(m) != euclidean {
		return nil
	}
	p := newRoundedPanels(m, order, whole)
	if p.proved(ctx, m, k) < 0.95 {
		runtime.GC() // the points themselves get the memory of the rounded points
		return nil
	}
	return &coarseFirst{p, sync.OnceValue(func() *panels { return newPanels(m, order) })}
}

// proved returns for which share of a sample of the points candidates prove the neighbours.
func (p *panels) proved(ctx context.Context, m *data.Matrix, k int) float64 {
	const sample = 2 * blockSize
	rows := selection.UpTo[int32](sample)
	for i := range rows {
		rows[i] = int32(int64(i) * int64(m.N) / sample)
	}
	var proved atomic.Int64
	_ = p.find(ctx, queries{points: m, rows: rows, own: true}, k, func(lo, hi int, s *candidateLists) int { // fails if ctx is done
		for r := range hi - lo {
			keys, threshold, norm := s.of(r)
			last := math.Float32frombits(uint32(selection.Smallest(keys, k+1) >> 32)) // the first is the point itself
			if s.bound.certain(float64(threshold), math.Sqrt(2*float64(last)), norm, p.maxNorm) {
				proved.Add(1)
			}
		}
		return 0
	})
	return float64(proved.Load()) / sample
}

// find implements candidates. The base points are queries only once, in KNN. If it then needs
// the points themselves, they get the memory of the rounded points.
func (c *coarseFirst) find(ctx context.Context, q queries, k int, rank rerank) error {
	if q.rows == nil {
		return c.coarse.find(ctx, q, k, rank)
	}
	if q.own {
		c.coarse.rounded = nil
		runtime.GC()
	}
	return c.fine().find(ctx, q, k, rank)
}

// free implements candidates.
func (c *coarseFirst) free() {}
