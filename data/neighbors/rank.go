package neighbors

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// Ranks returns the ranks of other points by their distance from each point of m: 1 for
// the nearest of all n−1 others, n−1 for the farthest. Equally near points (see Tie) share the
// least of their ranks.
//
// index [n, k] has, for each point i, k other points to be ranked, counted from 0, in any
// order, such as Index of the Neighbors in an embedding. The result has the same layout.
// It is exact with respect to distances computed in float64.
//
// It takes O(n²(D+k)) operations (for small k twice as many as KNN) and 8k kilobytes of
// memory per processor. A device needs memory for two copies of m and 64 MiB.
//
// The error wraps ErrInput if m is empty, if its sizes do not fit together or if index
// does not fit m, and ErrNotFinite if a value is NaN or infinite. If ctx is done first,
// the error is ctx's.
func Ranks(ctx context.Context, m *data.Matrix, index []int32, k int, opt Options) (_ []int32, err error) {
	defer kind.Catch(&err)
	checkSizes(m, "matrix")
	all := selection.UpTo[int](m.N)
	if deviceFor(opt.Device, m).OnHost() {
		return RanksOf(ctx, m, all, index, k)
	}
	checkRanks(m, all, index, k)
	return ranksOnDevice(ctx, opt.Device, m, index, k)
}

// RanksOf is Ranks for some of the points, one or more, with the given rows: entries
// q·k to q·k+k−1 of index and of the result are about point rows[q]. It takes O(rn(D+k))
// operations for r rows, on the CPU.
//
// Errors are as for Ranks. The error also wraps ErrInput if rows is empty or has a row
// that m does not have.
func RanksOf(ctx context.Context, m *data.Matrix, rows []int, index []int32, k int) (_ []int32, err error) {
	defer kind.Catch(&err)
	checkRanks(m, rows, index, k)
	least := 1 - Tie(m)
	if m.Metric == data.Precomputed {
		return givenRanks(ctx, m, rows, index, k, least)
	}
	if m = unlessFilled(m); m.CSR != nil {
		return sparseRanks(ctx, m, rows, index, k, least)
	}
	m = lift(m)
	r := &ranking{m: m, least: least, panels: newPanels(m, selection.UpTo[int32](m.N)), rows: rows, index: index, k: k, ranks: make([]int32, len(index))}
	r.norms = make([]float64, r.panels.blocks)
	for b := range r.norms {
		r.norms[b] = slices.Max(r.panels.norm[b*blockSize : b*blockSize+r.panels.rows(b)])
	}
	pool := parallel.Pool[rankWork]{New: r.newWork}
	kind.Check(parallel.ForContext(ctx, len(rows), blockSize, func(_, first, last int) {
		w := pool.Get()
		r.rank(ctx, first, last, w)
		pool.Put(w)
	}))
	return r.ranks, nil
}

// checkRanks fails as kind.Expect does for invalid arguments of RanksOf.
func checkRanks(m *data.Matrix, rows []int, index []int32, k int) {
	checkSizes(m, "matrix")
	checkK(k)
	n := len(rows)
	kind.Expect(n > 0, ErrInput, "rows: got none")
	kind.Expect(len(index)/k == n && len(index)%k == 0, ErrInput, "indices: got %d, want %d for each of %d points", len(index), k, n)
	for e, j := range index {
		i := rows[e/k]
		if i < 0 || i >= m.N || j < 0 || int(j) >= m.N || int(j) == i {
			kind.Expect(i >= 0 && i < m.N, ErrInput, "row: got %d, want 0 to %d", i, m.N-1)
			kind.Check(fmt.Errorf("%w: point to rank for point %d: got %d, want another from 0 to %d", ErrInput, i, j, m.N-1))
		}
	}
	checkFinite(m, "")
}

// A ranking counts, for each point i and each j to be ranked, the points nearer to i than
// j is. The products of blocks.go decide nearly all of them. If rounding could decide,
// the distance is computed in float64. Each pair of points is multiplied twice, once for
// each of them.
type ranking struct {
	m      *data.Matrix
	panels *panels
	norms  []float64 // the largest norm in each block
	least  float64   // the share of a distance below which another is smaller
	rows   []int     // the points i
	index  []int32
	k      int
	ranks  []int32
}

// A target is a point to be ranked by its distance from another.
type target struct {
	dist2  float64 // from the other; points nearer than this are
	r      float64 // the distance on the scale of the products
	nearer int32   // points found nearer so far
}

// A rankWork holds one goroutine's buffers for ranking the points of a block.
type rankWork struct {
	*workspace
	panel   panel     // of the points of the block
	norm    []float64 // of these
	targets []target  // k for each point of the block
	// These are for the k targets of one point. A point with a product below lo is certainly
	// nearer, and a point with a product of at least hi certainly is not. counts are the
	// numbers of products of a block below each of these limits.
	limits, lo, hi []float32
	counts         []int32
}

func (r *ranking) newWork() *rankWork {
	limits := make([]float32, (2*r.k+3)/4*4) // CountBelow takes four at a time
	return &rankWork{
		workspace: r.panels.newWorkspace(), panel: r.panels.newPanel(), norm: make([]float64, blockSize),
		targets: make([]target, blockSize*r.k),
		limits:  limits, lo: limits[:r.k], hi: limits[r.k : 2*r.k], counts: make([]int32, len(limits)),
	}
}

// rank ranks the targets of the points of a block, from first to last−1.
func (r *ranking) rank(ctx context.Context, first, last int, w *rankWork) {
	p, rows := r.panels, last-first
	p.fill(w.panel, ofQueries, r.m.Take(r.rows[first:last]), w.norm)
	for c := range rows {
		point := r.m.Row(r.rows[first+c])
		for l, j := range r.index[(first+c)*r.k : (first+c+1)*r.k] {
			d2 := p.measure.of(point, r.m.Row(int(j)), math.Inf(1))
			w.targets[c*r.k+l] = target{dist2: d2 * r.least, r: p.radius(d2 * r.least)}
		}
	}
	for other := range p.blocks {
		if ctx.Err() != nil {
			return
		}
		p.multiply(w.workspace, w.panel, rows, other)
		products := w.products
		for c := range rows {
			row := products[c*blockSize : (c+1)*blockSize]
			i := r.rows[first+c]
			if other == i/blockSize { // no point is nearer to itself
				row[i%blockSize] = 2 * aboveAll
			}
			targets := w.targets[c*r.k : (c+1)*r.k]
			for l, a := range targets {
				w.lo[l], w.hi[l] = p.bound.between(a.r, w.norm[c]+r.norms[other])
			}
			r.count(i, targets, w, other*blockSize, row[:p.rows(other)])
		}
	}
	for e, a := range w.targets[:rows*r.k] {
		r.ranks[first*r.k+e] = 1 + a.nearer
	}
}

// count counts which of the points first, first+1, … are nearer to point i than
// its targets are, by their products with it.
func (r *ranking) count(i int, targets []target, w *rankWork, first int, products []float32) {
	clear(w.counts)
	simd.CountBelow(w.counts, products, w.limits)
	for l := range targets {
		a := &targets[l]
		a.nearer += w.counts[l]
		if w.counts[r.k+l] == w.counts[l] {
			continue
		}
		for c, s := range products {
			if s < w.lo[l] || !(s < w.hi[l]) {
				continue
			}
			j := first + c
			if d2 := r.panels.measure.of(r.m.Row(i), r.m.Row(j), math.Inf(1)); d2 < a.dist2 {
				a.nearer++
			}
		}
	}
}

// ranksOnDevice is Ranks on a device, for checked arguments.
func ranksOnDevice(ctx context.Context, d *device.Device, m *data.Matrix, index []int32, k int) (_ []int32, err error) {
	defer kind.Catch(&err)
	base := normalizeOnDevice(d, m)
	base.all = kind.Got(base.newSegment(m.N, false, single))
	defer base.free()
	base.loadAll(ctx)
	stride := min(columns(m.N), pointBlock)
	bounds := base.boundsOf(stride)
	rows := min(m.N, queryBlock)
	memory := kind.Got(d.AllocPieces(rows*stride*4, len(m.X)*4, m.N*8, len(bounds)*8, rows*k*4, rows*k*4, rows*k*8))
	defer memory.Free()
	products, points, norms, bound, targets, ranks, dist2 := memory.At(0), memory.At(1), memory.At(2), memory.At(3), memory.At(4), memory.At(5), memory.At(6)
	kind.Check(cmp.Or(device.Upload(d, points, m.X), device.Upload(d, norms, base.norm), device.Upload(d, bound, bounds)))
	all, limits := make([]int32, len(index)), make([]float64, rows*k)
	least := 1 - Tie(m)
	for lo := 0; lo < m.N; lo += rows {
		n := min(rows, m.N-lo)
		kind.Check(cmp.Or(ctx.Err(), device.Upload(d, targets, index[lo*k:(lo+n)*k]), d.Zero(ranks, n*k*4)))
		kind.Check(d.Each("neighbors_distances", n*k, device.Arg(dist2), device.Arg(points), device.Arg(targets),
			device.Int(lo), device.Int(m.D), device.Int(k), device.Int(n)))
		kind.Check(device.Download(d, limits[:n*k], dist2))
		for e := range limits {
			limits[e] *= least
		}
		// The kernel counts points at the distance itself if they come before the target. None
		// come before point 0.
		kind.Check(cmp.Or(device.Upload(d, dist2, limits[:n*k]), d.Zero(targets, n*k*4)))
		q := deviceQueries{z: base.all.z[single].At(lo*base.width, 4), h: base.all.h[single].At(lo, 4), n: n}
		l := device.Launch{Grid: (n + maxWarps - 1) / maxWarps, Block: maxWarps * warp, Shared: maxWarps * countTile * 4}
		base.multiply(single, q, base.all, products, stride, func(first, columns int) {
			kind.Check(d.Launch("neighbors_count", l, device.Arg(ranks), device.Arg(products), device.Arg(base.all.h[single].At(first, 4)),
				device.Arg(q.h), device.Arg(norms), device.Arg(bound.At(first/stride*boundWidth, 8)), device.Arg(points), device.Int(m.D),
				device.Arg(targets), device.Arg(dist2), device.Int(n), device.Int(lo), device.Int(first), device.Int(columns),
				device.Int(stride), device.Int(k)))
		})
		kind.Check(device.Download(d, all[lo*k:(lo+n)*k], ranks))
	}
	for e := range all {
		all[e]++
	}
	return all, nil
}

const (
	countTile  = 128 // floats of shared memory for a warp of neighbors_count
	boundWidth = 6   // numbers of a block in boundsOf
)

// boundsOf returns the arguments of the kernel neighbors_count for each block of stride
// base points: the largest norm, and the bounds of the products' errors.
func (b *deviceBlocks) boundsOf(stride int) []float64 {
	e := newErrorBound(b.d) // of products, in few dimensions too
	var bounds []float64
	for norms := range slices.Chunk(b.norm, stride) {
		bounds = append(bounds, slices.Max(norms), e.gamma, e.shift, e.product, e.distance, b.scale)
	}
	return bounds
}
