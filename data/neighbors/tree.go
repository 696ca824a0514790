package neighbors

import (
	"math"

	"cne/data"
)

// A tree is a kd-tree. Each node halves its points by number, along the side
// on which they spread most, equal coordinates by index, so that its depth is
// logarithmic whatever the points are; searches prune by the bounding boxes
// of the nodes, not by the splitting planes.
type tree struct {
	n, d   int
	x      []float32 // the points in the order of the tree
	index  []int32   // their indices
	nodes  []node
	bounds []float32 // per node its lowest, then its highest coordinates
}

// A node covers the points lo to hi−1 in the order of the tree. Its left child
// is the next node; right is 0 in a leaf.
type node struct {
	lo, hi, right int32
	minIndex      int32
}

// leafSize returns the most points of a leaf. Testing a box costs about as
// much as a distance: in many dimensions, where most tests fail to prune,
// they must be rare.
func leafSize(d int) int { return 8 + d }

func newTree(m *data.Matrix) *tree {
	t := &tree{n: m.N, d: m.D, x: make([]float32, m.N*m.D), index: make([]int32, m.N)}
	for i := range t.index {
		t.index[i] = int32(i)
	}
	keys := make([]uint64, m.N)
	t.build(m, 0, m.N, keys)
	for p, i := range t.index {
		copy(t.x[p*m.D:(p+1)*m.D], m.Row(int(i)))
	}
	return t
}

// build appends the node of the points lo to hi−1 and all below it.
func (t *tree) build(m *data.Matrix, lo, hi int, keys []uint64) {
	at := len(t.nodes)
	d := t.d
	t.nodes = append(t.nodes, node{lo: int32(lo), hi: int32(hi)})
	first := m.Row(int(t.index[lo]))
	t.bounds = append(append(t.bounds, first...), first...)
	low, high := t.bounds[2*d*at:2*d*at+d], t.bounds[2*d*at+d:]
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
	t.nodes[at].minIndex = minIndex
	if hi-lo <= leafSize(d) {
		return
	}
	widest, width := 0, -1.0
	for l := range low {
		if w := float64(high[l]) - float64(low[l]); w > width {
			widest, width = l, w
		}
	}
	keys = keys[:hi-lo]
	for p, i := range t.index[lo:hi] {
		keys[p] = uint64(ordered(m.X[int(i)*d+widest]))<<32 | uint64(uint32(i))
	}
	mid := lo + (hi-lo)/2
	selectSmallest(keys, mid-lo)
	for p, key := range keys {
		t.index[lo+p] = int32(uint32(key))
	}
	t.build(m, lo, mid, keys)
	t.nodes[at].right = int32(len(t.nodes))
	t.build(m, mid, hi, keys)
}

// ordered maps a number to an integer such that greater numbers have greater
// integers.
func ordered(v float32) uint32 {
	b := math.Float32bits(v)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// boxDist2 returns a lower bound of what dist2 gives for the point and any
// point in the node's box. It adds in dist2's order: every term is at most
// the term of such a point, and rounding keeps that order.
func (t *tree) boxDist2(point []float32, at int32) float64 {
	d := len(point)
	low := t.bounds[2*d*int(at):][:d]
	high := t.bounds[2*d*int(at)+d:][:d]
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

// search offers to best the points of node at and below that best may want,
// self excluded.
func (t *tree) search(best *topK, point []float32, self int32, at int32) {
	for {
		nd := &t.nodes[at]
		if nd.right == 0 {
			d := t.d
			x := t.x[int(nd.lo)*d : int(nd.hi)*d]
			for _, i := range t.index[nd.lo:nd.hi] {
				if i != self {
					best.offer(dist2(point, x[:d], best.limit), i)
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
