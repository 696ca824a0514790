package neighbors

import (
	"slices"

	"cne/data"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// A tree is a kd-tree. Each node halves its points by number, along the dimension in
// which they spread most; ties are split by index. Its depth is therefore logarithmic for
// any points. Searches prune by the bounding boxes of the nodes, not by the splitting
// planes.
type tree struct {
	measure measure
	n, d    int
	x       []float32 // the points in the order of the tree
	index   []int32   // their indices
	nodes   []node
	bounds  []float32 // per node its lowest, then its highest coordinates

	sizes map[int]int // numbers of nodes: see sizeOf
}

// A node covers the points lo to hi−1 in the order of the tree. Its left child
// is the next node; right is 0 in a leaf.
type node struct {
	lo, hi, right int32
	minIndex      int32
}

// leafSize returns the largest number of points in a leaf. Testing a box costs about as
// much as a distance. In many dimensions most tests fail to prune, so they must be rare.
func leafSize(d int) int { return 8 + d }

func newTree(m *data.Matrix) *tree {
	t := &tree{measure: measureOf(m), n: m.N, d: m.D, x: make([]float32, m.N*m.D), sizes: map[int]int{}}
	t.index = selection.UpTo[int32](m.N)
	size := t.sizeOf(m.N)
	t.nodes, t.bounds = make([]node, size), make([]float32, 2*m.D*size)
	keys := make([]uint64, m.N)
	// Build level by level as long as there are few nodes, and then the subtree of each node.
	level := []subtree{{0, 0, m.N}}
	for len(level) > 0 && len(level) < subtrees {
		next := make([]subtree, 2*len(level))
		parallel.For(len(level), 1, func(_, i, _ int) { next[2*i], next[2*i+1] = t.split(m, level[i], keys) })
		level = slices.DeleteFunc(next, subtree.empty)
	}
	parallel.For(len(level), 1, func(_, i, _ int) { t.build(m, level[i], keys) })
	parallel.For(m.N, copiedPoints, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			copy(t.x[p*m.D:(p+1)*m.D], m.Row(int(t.index[p])))
		}
	})
	return t
}

const (
	// subtrees is the number of nodes of the level where each node, with its subtree, is built
	// by one goroutine.
	subtrees = 16
	// copiedPoints is the number of points copied in one piece.
	copiedPoints = 4096
)

// A subtree is the points lo to hi−1, in the tree's order, below the node at.
type subtree struct{ at, lo, hi int }

func (s subtree) empty() bool { return s.hi == s.lo }

// sizeOf returns the number of nodes in a tree of n points. It stores the sizes of all
// subtrees, so several goroutines can look them up.
func (t *tree) sizeOf(n int) int {
	if n <= leafSize(t.d) {
		return 1
	}
	if _, known := t.sizes[n]; !known {
		t.sizes[n] = 1 + t.sizeOf(n/2) + t.sizeOf(n-n/2)
	}
	return t.sizes[n]
}

// build makes the node of a subtree and all below it.
func (t *tree) build(m *data.Matrix, s subtree, keys []uint64) {
	if left, right := t.split(m, s, keys); !left.empty() {
		t.build(m, left, keys)
		t.build(m, right, keys)
	}
}

// split makes the node of a subtree and returns the two subtrees below it, empty ones for
// a leaf.
func (t *tree) split(m *data.Matrix, s subtree, keys []uint64) (left, right subtree) {
	at, lo, hi, d := s.at, s.lo, s.hi, t.d
	first := m.Row(int(t.index[lo]))
	low, high := t.bounds[2*d*at:2*d*at+d], t.bounds[2*d*at+d:2*d*(at+1)]
	copy(low, first)
	copy(high, first)
	minIndex := t.index[lo]
	for _, i := range t.index[lo:hi] {
		minIndex = min(minIndex, i)
		for l, v := range m.Row(int(i)) {
			if v < low[l] {
				low[l] = v
			}
			if v > high[l] {
				high[l] = v
			}
		}
	}
	t.nodes[at] = node{lo: int32(lo), hi: int32(hi), minIndex: minIndex}
	if hi-lo <= leafSize(d) {
		return subtree{}, subtree{}
	}
	mid := lo + (hi-lo)/2
	divideAlong(m, widest(low, high), t.index[lo:hi], keys[lo:hi], mid-lo)
	left = subtree{at + 1, lo, mid}
	right = subtree{left.at + t.sizeOf(mid-lo), mid, hi}
	t.nodes[at].right = int32(right.at)
	return left, right
}

// widest returns the coordinate with the greatest distance between low and high.
func widest(low, high []float32) (widest int) {
	width := -1.0
	for l := range low {
		if w := float64(high[l]) - float64(low[l]); w > width {
			widest, width = l, w
		}
	}
	return widest
}

// divideAlong puts the numbers of the points with the smallest values of a coordinate first,
// half of them; ties are in the order of the numbers. keys is scratch memory for as many.
func divideAlong(m *data.Matrix, coordinate int, index []int32, keys []uint64, half int) {
	for p, i := range index {
		keys[p] = uint64(selection.Ordered(m.X[int(i)*m.D+coordinate]))<<32 | uint64(uint32(i))
	}
	selection.Smallest(keys, half)
	for p, key := range keys {
		index[p] = int32(uint32(key))
	}
}

// boxDist2 returns a lower bound of the value for the point and any point in the node's box.
// For dist2 it adds in dist2's order: every term is at most the term of such a point, and rounding
// keeps that order.
func (t *tree) boxDist2(point []float32, at int32) float64 {
	d := len(point)
	low := t.bounds[2*d*int(at):][:d]
	high := t.bounds[2*d*int(at)+d:][:d]
	if t.measure != euclidean {
		return t.measure.bound(point, low, high)
	}
	var s [4]float64
	for l, v := range point {
		switch {
		case v < low[l]:
			g := float64(low[l]) - float64(v)
			s[l&3] += float64(g * g)
		case v > high[l]:
			g := float64(v) - float64(high[l])
			s[l&3] += float64(g * g)
		}
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// search offers to best the points below node at that best may take, except self.
func (t *tree) search(best *topK, point []float32, self int32, at int32) {
	for {
		nd := &t.nodes[at]
		if nd.right == 0 {
			d := t.d
			x := t.x[int(nd.lo)*d : int(nd.hi)*d]
			for _, i := range t.index[nd.lo:nd.hi] {
				if i != self {
					best.offer(t.measure.of(point, x[:d], best.limit), i)
				}
				x = x[d:]
			}
			return
		}
		near, far := at+1, nd.right
		dNear, dFar := t.boxDist2(point, near), t.boxDist2(point, far)
		if dFar < dNear || dFar == dNear && t.nodes[far].minIndex < t.nodes[near].minIndex {
			near, far, dNear, dFar = far, near, dFar, dNear
		}
		if !best.wants(dNear, t.nodes[near].minIndex) {
			// Far comes after near in the order of wants.
			return
		}
		t.search(best, point, self, near)
		if !best.wants(dFar, t.nodes[far].minIndex) {
			return
		}
		at = far
	}
}
