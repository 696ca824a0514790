package neighbors

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"cne/data"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// Ranks returns the rank of other points by their distance from each point of
// m: 1 for the nearest of all n−1 others, n−1 for the farthest, equally near
// ones ranked in the order of their indices, as KNN has them.
//
// index is n×k: entries i·k to i·k+k−1 are the points, counted from 0, whose
// ranks are asked for about point i, in any order and not i itself; Index of
// the Neighbors in an embedding tells where they are in the data. The result
// is laid out in the same way. It is exact with respect to distances computed
// in float64 and does not depend on GOMAXPROCS.
//
// It takes O(n²(D+k)) operations, for few neighbours twice what KNN takes, and 8
// kilobytes of memory for each of k and processor. It fails if m is empty or its
// sizes do not fit together, if index does not fit m, or if a value is NaN or
// infinite (ErrNotFinite).
func Ranks(m *data.Matrix, index []int32, k int) ([]int32, error) {
	if err := checkRanks(m, index, k); err != nil {
		return nil, err
	}
	r := &ranking{m: m, panels: newPanels(m), bound: newErrorBound(m.D), index: index, k: k, ranks: make([]int32, len(index))}
	r.norms = make([]float64, r.panels.blocks)
	for b := range r.norms {
		r.norms[b] = slices.Max(r.panels.norm[b*blockSize : b*blockSize+r.panels.rows(b)])
	}
	pool := sync.Pool{New: func() any { return r.newWork() }}
	parallel.For(r.panels.blocks, 1, func(_, block, _ int) {
		w := pool.Get().(*rankWork)
		r.rank(block, w)
		pool.Put(w)
	})
	return r.ranks, nil
}

func checkRanks(m *data.Matrix, index []int32, k int) error {
	if err := checkSizes(m, "matrix"); err != nil {
		return err
	}
	if k < 1 || len(index)/k != m.N || len(index)%k != 0 {
		return fmt.Errorf("neighbors: %d indices are not %d for each of %d points", len(index), k, m.N)
	}
	for e, j := range index {
		if j < 0 || int(j) >= m.N || int(j) == e/k {
			return fmt.Errorf("neighbors: point %d is asked for the rank of %d; give other points from 0 to %d", e/k, j, m.N-1)
		}
	}
	return checkFinite(m, "")
}

// A ranking counts, for each point i and each j that is asked for, the points
// nearer to i than j is. Nearly all are told by the products of the blocked
// search (blocks.go), of which each pair of points is computed from both sides;
// those so near the distance of j that the rounding of the product could decide
// are measured in float64.
type ranking struct {
	m      *data.Matrix
	panels *panels
	bound  errorBound
	norms  []float64 // the largest norm in each block
	index  []int32
	k      int
	ranks  []int32
}

// An asked is a point whose rank is asked for by another.
type asked struct {
	j      int32
	dist2  float64 // from the other
	r      float64 // the distance on the scale of the products
	nearer int32   // points found nearer so far
}

// A rankWork is what one goroutine needs to rank the points of a block.
type rankWork struct {
	*workspace
	asked []asked // k for each point of the block
	// Of the k asked of one point: a product below lo tells a point that is
	// certainly nearer, one not below hi a point that is certainly not. counts
	// are the products of a block below each of these.
	limits, lo, hi []float32
	counts         []int32
}

func (r *ranking) newWork() *rankWork {
	limits := make([]float32, (2*r.k+3)/4*4) // CountBelow takes four at a time
	return &rankWork{
		workspace: r.panels.newWorkspace(), asked: make([]asked, blockSize*r.k),
		limits: limits, lo: limits[:r.k], hi: limits[r.k : 2*r.k], counts: make([]int32, len(limits)),
	}
}

// rank ranks the points that the points of a block ask for.
func (r *ranking) rank(block int, w *rankWork) {
	p := r.panels
	rows, first := p.rows(block), block*blockSize
	for c := range rows {
		point := r.m.Row(first + c)
		for l, j := range r.index[(first+c)*r.k : (first+c+1)*r.k] {
			d2 := dist2(point, r.m.Row(int(j)), math.Inf(1))
			w.asked[c*r.k+l] = asked{j: j, dist2: d2, r: p.scale * math.Sqrt(d2)}
		}
	}
	for other := range p.blocks {
		p.multiply(w.workspace, p.of(block), rows, other)
		products := floats(w.products)
		for c := range rows {
			row := products[c*blockSize : (c+1)*blockSize]
			if other == block { // no point is nearer to itself
				row[c] = 2 * beyond
			}
			list := w.asked[c*r.k : (c+1)*r.k]
			for l, a := range list {
				w.lo[l], w.hi[l] = r.bound.products(a.r, p.norm[first+c]+r.norms[other])
			}
			r.count(first+c, list, w, other*blockSize, row[:p.rows(other)])
		}
	}
	for e, a := range w.asked[:rows*r.k] {
		r.ranks[first*r.k+e] = 1 + a.nearer
	}
}

// products returns the limits, as those of rankWork, between which two points
// whose norms add up to at most w may be as far from each other as r, a distance
// that was itself computed in float64: what is said about errorBound, seen from
// the distance.
func (e errorBound) products(r, w float64) (lo, hi float32) {
	const ulps, underflow = 0x1p-22, 0x1p-126 // more than the limits' own rounding
	slack := e.gamma*w*w/2 + e.product + underflow
	shift := e.shift*w + e.distance
	least, most := max(0, r*(1-1e-9)-shift), r*(1+1e-9)+shift
	below, above := least*least/2-slack, most*most/2+slack
	return float32(below - ulps*math.Abs(below)), float32(above + ulps*above)
}

// count counts the points first, first+1, … for those that point i asks for, by
// their products with it.
func (r *ranking) count(i int, list []asked, w *rankWork, first int, products []float32) {
	clear(w.counts)
	simd.CountBelow(w.counts, products, w.limits)
	for l := range list {
		a := &list[l]
		a.nearer += w.counts[l]
		if w.counts[r.k+l] == w.counts[l] {
			continue
		}
		for c, s := range products {
			if s < w.lo[l] || !(s < w.hi[l]) {
				continue
			}
			j := first + c
			if d2 := dist2(r.m.Row(i), r.m.Row(j), math.Inf(1)); d2 < a.dist2 || d2 == a.dist2 && j < int(a.j) {
				a.nearer++
			}
		}
	}
}
