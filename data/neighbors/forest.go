package neighbors

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
)

// A pointSet holds the points of an approximate search as its kernels read them. Its
// order keeps near points near in memory. A power of two scales the points, so squares do
// not overflow.
type pointSet struct {
	n, width int
	scale    float32
	x        []float32   // [n, width]
	index    []int32     // [n]: which of the caller's points each is
	scratch  [2][]uint32 // [n] each, for growing trees
	measure  measure
	sizes    []float32 // [n], of sets, for jaccard
}

// row returns point p.
func (c *pointSet) row(p int32) []float32 {
	return c.x[int(p)*c.width : (int(p)+1)*c.width]
}

// point returns the unscaled point p. Unless the set is scaled, it is the set's own row,
// which is near the rows of near points in memory; otherwise it is a row of m.
func (c *pointSet) point(m *data.Matrix, p int32) []float32 {
	if c.scale == 1 {
		return c.row(p)
	}
	return m.Row(int(c.index[p]))
}

// largestScaled bounds the coordinates of a set, so the sum of a million squares
// of differences is finite.
const largestScaled = 0x1p40

// scaleOf returns a power of two that scales the largest coordinate to below
// largestScaled, or 1 if squares neither overflow nor underflow anyway. Squares of
// coordinates down to 10⁻³⁰ of the largest do not underflow.
func scaleOf(m *data.Matrix) float32 {
	most := data.LargestMagnitude(m.X)
	if most == 0 || most > 0x1p-30 && most < largestScaled {
		return 1
	}
	_, exp := math.Frexp(float64(most) / largestScaled)
	return float32(math.Ldexp(1, max(-126, min(126, -exp))))
}

// newPointSet returns the set of the points of m, in their order.
func newPointSet(m *data.Matrix) *pointSet {
	c := &pointSet{n: m.N, width: m.D, x: m.X, index: make([]int32, m.N), scale: scaleOf(m), measure: measureOf(m)}
	c.scratch = [2][]uint32{make([]uint32, c.n), make([]uint32, c.n)}
	if c.scale != 1 {
		c.x = slices.Clone(m.X)
		simd.Scale(c.x, c.scale)
	}
	return c
}

// arrange copies the points in the order of the first tree. The tree then numbers them in this
// order. It fails as kind.Need does.
func (c *pointSet) arrange(ctx context.Context, t *forestTree) {
	from := c.x
	c.x = make([]float32, c.n*c.width)
	rank := make([]int32, c.n)
	kind.Check(parallel.ForContext(ctx, c.n, growChunk, func(_, lo, hi int) {
		simd.Fetch(from, c.width, c.index[lo:hi])
		for p := lo; p < hi; p++ {
			i := c.index[p]
			rank[i] = int32(p)
			copy(c.row(int32(p)), from[int(i)*c.width:])
		}
	}))
	for s := range t.splits {
		t.splits[s].a, t.splits[s].b = rank[t.splits[s].a], rank[t.splits[s].b]
	}
	t.order = nil
	if c.measure == jaccard {
		c.sizes = sizes(c.x, c.width)
	}
}

// newGrower returns the grower of a tree of the points, whose order is written to order.
func (c *pointSet) newGrower(leaf int, seed uint64, order []int32) *grower {
	g := &grower{forestTree: &forestTree{leaf: leaf, order: order}, x: c.x, width: c.width, seed: seed, keys: c.scratch[0], scratch: c.scratch[1]}
	g.works.New = func() *growerWork {
		return &growerWork{from: make([]float32, g.width), along: make([]float32, g.width), keys: make([]float32, growChunk)}
	}
	return g
}

// A forestTree halves points repeatedly, each time at the median along the line through
// two of them, until at most leaf points are together. The halves of the points lo to
// hi−1 are lo to (lo+hi+1)/2−1 and the rest, so the leaves follow from the number of
// points. Node 1 is the root, and 2s and 2s+1 are the halves of node s.
type forestTree struct {
	leaf   int
	order  []int32 // the points; nil for 0, 1, …
	splits []split // [nodes]
}

// point returns a point by its number in the order.
func (t *forestTree) point(p int) int32 {
	if t.order == nil {
		return int32(p)
	}
	return t.order[p]
}

// A split sends the points up to a position along the line from a to b to the left.
type split struct {
	a, b int32
	at   float32
}

// leaves returns the leaves of a tree of n points.
func (t *forestTree) leaves(n int) []span {
	spans := []span{{1, 0, n}}
	for spans[0].size() > t.leaf {
		spans = halved(spans, t.leaf)
	}
	return spans
}

// A span is the points lo to hi−1, in the tree's order, of a node.
type span struct{ node, lo, hi int }

func (s span) size() int { return s.hi - s.lo }

func (s span) halves() (left, right span) {
	mid := s.lo + (s.hi-s.lo+1)/2
	return span{2 * s.node, s.lo, mid}, span{2*s.node + 1, mid, s.hi}
}

// halved returns the halves of the spans of more than leaf points, and the other spans.
// The first is always one of the largest.
func halved(spans []span, leaf int) []span {
	next := make([]span, 0, 2*len(spans))
	for _, s := range spans {
		if s.size() <= leaf {
			next = append(next, s)
			continue
		}
		left, right := s.halves()
		next = append(next, left, right)
	}
	return next
}

const (
	// growChunk is the number of points projected at a time.
	growChunk = 256
	// growAlone is the largest size of a node that one goroutine splits together with all
	// nodes below it.
	growAlone = 1 << 13
	// growPiece is the number of points of a larger node that one goroutine projects.
	growPiece = 1 << 12
)

// A grower makes a tree.
type grower struct {
	*forestTree
	x       []float32 // the points
	width   int
	seed    uint64
	keys    []uint32 // positions of the points along their node's line, mapped by selection.Ordered
	scratch []uint32
	works   parallel.Pool[growerWork]
}

// A growerWork holds the buffers of one goroutine.
type growerWork struct {
	from, along []float32
	keys        []float32
	some        [growChunk]int32
}

// grow makes the tree, or fails as kind.Need does.
func (g *grower) grow(ctx context.Context) {
	n := len(g.order)
	for i := range g.order {
		g.order[i] = int32(i)
	}
	nodes := 1
	for size := n; size > g.leaf; size = (size + 1) / 2 {
		nodes *= 2
	}
	g.splits = make([]split, nodes)
	spans := []span{{1, 0, n}}
	for spans[0].size() > max(growAlone, g.leaf) {
		var pieces []span
		for _, s := range spans {
			g.choose(s)
			for lo := s.lo; lo < s.hi; lo += growPiece {
				pieces = append(pieces, span{s.node, lo, min(s.hi, lo+growPiece)})
			}
		}
		kind.Check(parallel.ForContext(ctx, len(pieces), 1, func(_, p, _ int) { g.projectSpan(pieces[p]) }))
		kind.Check(parallel.ForContext(ctx, len(spans), 1, func(_, s, _ int) { g.halve(spans[s]) }))
		spans = halved(spans, g.leaf)
	}
	kind.Check(parallel.ForContext(ctx, len(spans), 1, func(_, s, _ int) { g.below(spans[s]) }))
}

// below splits a node and all below it.
func (g *grower) below(s span) {
	if s.size() <= g.leaf {
		return
	}
	g.choose(s)
	g.projectSpan(s)
	g.halve(s)
	left, right := s.halves()
	g.below(left)
	g.below(right)
}

// copyRow sets dst to point p.
func (g *grower) copyRow(dst []float32, p int32) { copy(dst, g.x[int(p)*g.width:]) }

// choose draws the two points of a split, if possible two that differ.
func (g *grower) choose(s span) {
	w := g.works.Get()
	defer g.works.Put(w)
	stream := rng.New(g.seed, rng.Forest, uint64(s.node))
	a := stream.IntN(s.size())
	g.copyRow(w.from, g.order[s.lo+a])
	for range 8 {
		b := stream.IntN(s.size() - 1)
		if b >= a {
			b++
		}
		g.splits[s.node] = split{a: g.order[s.lo+a], b: g.order[s.lo+b]}
		g.copyRow(w.along, g.order[s.lo+b])
		if !slices.Equal(w.from, w.along) {
			return
		}
	}
}

// projectSpan sets the keys of some points of a node: their positions along its line.
func (g *grower) projectSpan(s span) {
	w := g.works.Get()
	defer g.works.Put(w)
	g.copyRow(w.from, g.splits[s.node].a)
	g.copyRow(w.along, g.splits[s.node].b)
	for l, v := range w.from {
		w.along[l] -= v
	}
	for lo := s.lo; lo < s.hi; lo += growChunk {
		rows := g.order[lo:min(s.hi, lo+growChunk)]
		whole := copy(w.some[:], rows)
		for ; whole%16 != 0; whole++ {
			w.some[whole] = rows[0]
		}
		simd.ProjectRows(w.keys, g.x, w.from, w.along, w.some[:whole])
		for r := range rows {
			g.keys[lo+r] = selection.Ordered(w.keys[r])
		}
	}
}

// halve moves the points of a node into its halves and keeps their order within each half;
// near points stay near in memory.
func (g *grower) halve(s span) {
	left, _ := s.halves()
	keys, scratch, order := g.keys[s.lo:s.hi], g.scratch[s.lo:s.hi], g.order[s.lo:s.hi]
	copy(scratch, keys)
	middle := selection.Smallest(scratch, left.size())
	g.splits[s.node].at = unordered(middle)
	rest, ties := left.size(), 0 // how many points at the median go to the left, and how many there are
	for _, key := range keys {
		if key < middle {
			rest--
		} else if key == middle {
			ties++
		}
	}
	// Left points can be written to the array that is read: they only move down. Which points at
	// the median go left differs between trees.
	stream := rng.New(g.seed, rng.Forest, uint64(s.node), 1)
	turn := stream.IntN(ties)
	down, others := 0, scratch[:0]
	for r, p := range order {
		key := keys[r]
		toLeft := key < middle
		if key == middle {
			toLeft = turn < rest
			if turn++; turn == ties {
				turn = 0
			}
		}
		if toLeft {
			order[down] = p
			down++
		} else {
			others = append(others, uint32(p))
		}
	}
	for r, p := range others {
		order[down+r] = int32(p)
	}
}

// unordered is the inverse of selection.Ordered.
func unordered(b uint32) float32 {
	if b>>31 != 0 {
		return math.Float32frombits(b &^ (1 << 31))
	}
	return math.Float32frombits(^b)
}
