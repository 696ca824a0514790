package neighbors

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// Processors with AMX multiply bfloat16 ten times as fast as float32. Points rounded to
// bfloat16 still prove most neighbours, by a wider bound, and only the queries where they do
// not are compared in float32. Rounded coordinates are multiplied exactly, and their h is the
// sum of three numbers of bfloat16. So with (z, h₁, h₂, h₃, 1, 1, 1) for the rows of a product
// and (−z, 1, 1, 1, h₁, h₂, h₃) for its columns, the product is s.

// roundedPanels are the panels of rounded points.
type roundedPanels struct {
	width  int // of a row, in pairs: a multiple of a tile's
	form   blas.Panels
	left   []uint32 // [blocks, blockSize, width]
	right  []uint32 // [blocks] of the form
	change float64  // what fill returned, at most
}

func newRoundedPanels(m *data.Matrix, order []int32) *panels {
	const tile = 16
	p := panelsFor(m, order)
	width := parallel.Pieces((p.d+1)/2+3, tile) * tile
	q := &roundedPanels{width: width, form: blas.NewPairPanels(width, blockSize)}
	q.left, q.right = make([]uint32, p.blocks*q.size()), make([]uint32, p.blocks*q.size())
	p.rounded = q
	q.change = p.fillAll(m)
	p.bound = newRoundedBound(p.d, q.change)
	p.maxNorm *= 1 + 2*q.change // before they were rounded, points were in the same ball, too
	return p
}

// size is the number of pairs in a panel.
func (q *roundedPanels) size() int { return blockSize * q.width }

// of returns the rows of a block.
func (q *roundedPanels) of(block int) []uint32 { return q.left[block*q.size() : (block+1)*q.size()] }

// fill is panels.fill.
func (q *roundedPanels) fill(p *panels, to panel, block int, m *data.Matrix, norm []float64) (change float64) {
	z := make([]float32, 2*q.width)
	for c := range blockSize {
		clear(z)
		h := float32(2 * aboveAll)
		if c < m.N {
			var moved float64
			h, norm[c], moved = p.round(z, m.Row(c))
			change = max(change, moved)
		}
		first := simd.RoundBFloat16(h)
		second := simd.RoundBFloat16(h - first)
		third := h - first - second
		pairs, row := (p.d+1)/2, to.pairs[c*q.width:][:q.width]
		simd.PairUp(row, z)
		copy(row[pairs:], []uint32{simd.Pair(first, second), simd.Pair(third, 1), simd.Pair(1, 1)})
		if block == ofQueries {
			continue
		}
		at, stride := q.form.At(c)
		right := q.right[block*q.size()+at:]
		for l := range pairs {
			right[l*stride] = row[l] ^ 0x80008000 // both signs
		}
		for l, pair := range [...]uint32{simd.Pair(1, 1), simd.Pair(1, first), simd.Pair(second, third)} {
			right[(pairs+l)*stride] = pair
		}
	}
	return change
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

// multiply is panels.multiply.
func (q *roundedPanels) multiply(w *workspace, left []uint32, rows, blockJ int) {
	blas.MultiplyPairs(q.form, rows, left, q.width, 1, q.right[blockJ*q.size():][:q.size()], false, w.products, blockSize)
}

// coarseFirst are the candidates of rounded points and, for queries where these prove too
// little, of the points themselves.
type coarseFirst struct {
	coarse *panels
	fine   func() *panels // made at the first call
}

// newCoarseFirst returns nil if the processor has no AMX, or if rounded points would not prove
// enough in searches for k neighbours.
func newCoarseFirst(ctx context.Context, m *data.Matrix, order []int32, k int) *coarseFirst {
	const leastPoints = 1 << 14
	if !simd.AMX() || !blas.BFloat16() || m.N < leastPoints || measureOf(m) != euclidean {
		return nil
	}
	p := newRoundedPanels(m, order)
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
