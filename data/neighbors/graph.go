package neighbors

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// ErrInvalidGraph is wrapped by errors about graphs whose parts do not fit together, in
// memory or in a file.
var ErrInvalidGraph = errors.New("neighbors: invalid graph")

// A Graph is a directed graph without self loops, in compressed sparse rows: the tails
// of the edges with head i are
//
//	Indices[Indptr[i]:Indptr[i+1]]
//
// in ascending order. An undirected graph holds every edge in both directions;
// the sKNN graph is one.
type Graph struct {
	N       int     // number of points
	Indptr  []int64 // [N+1], from 0 to the number of directed edges
	Indices []int32 // [E], from 0 to N−1
	// Weights are the weights of the edges, in the order of Indices, each finite and above 0;
	// nil if all are equal. They matter only if edges are drawn in proportion to them
	// (train.Options.Weights).
	Weights []float32 // [E]
}

// Edges returns E, the number of directed edges.
func (g *Graph) Edges() int { return len(g.Indices) }

// Weight returns the weight of the edge at Indices[e].
func (g *Graph) Weight(e int64) float32 {
	if g.Weights == nil {
		return 1
	}
	return g.Weights[e]
}

// Tails returns the tails of the edges with head i. The slice shares the
// graph's memory.
func (g *Graph) Tails(i int) []int32 {
	return g.Indices[g.Indptr[i]:g.Indptr[i+1]:g.Indptr[i+1]]
}

// EdgeList returns the directed edges, ordered by head, then by tail: edge e goes from
// heads[e] to tails[e]. Both slices have length E, and the caller may change them.
func (g *Graph) EdgeList() (heads, tails []int32) {
	return g.Heads(), slices.Clone(g.Indices)
}

// Heads returns the heads of the edges, in the order of Indices (the tails). The slice
// has length E, and the caller may change it.
func (g *Graph) Heads() []int32 {
	heads := make([]int32, len(g.Indices))
	for i := range g.N {
		selection.Fill(heads[g.Indptr[i]:g.Indptr[i+1]], int32(i))
	}
	return heads
}

// Validate returns an error for the first violation of the rules of Graph: the length and
// order of Indptr, the bounds and order of each row, no duplicate edges, and no self
// loops. The graph need not be symmetric, nor need every point have an edge. Errors wrap
// ErrInvalidGraph; rows are counted from 0.
func (g *Graph) Validate() (err error) {
	defer kind.Catch(&err)
	kind.Expect(g != nil, ErrInvalidGraph, "got nil")
	kind.Expect(g.N >= 0 && g.N <= math.MaxInt32, ErrInvalidGraph, "N: got %d, want 0 to %d", g.N, math.MaxInt32)
	kind.Expect(len(g.Indptr)-1 == g.N, ErrInvalidGraph, "Indptr: got %d entries, want %d", len(g.Indptr), g.N+1)
	kind.Expect(g.Indptr[0] == 0, ErrInvalidGraph, "indptr: got %d first, want 0", g.Indptr[0])
	for i, end := range g.Indptr[1:] {
		if start := g.Indptr[i]; end < start {
			kind.Check(fmt.Errorf("%w: indptr: got %d, then %d at row %d (counted from 0), want no decrease", ErrInvalidGraph, start, end, i))
		}
	}
	edges := len(g.Indices)
	kind.Expect(g.Indptr[g.N] == int64(edges), ErrInvalidGraph, "indptr: got %d last, want %d, the number of indices", g.Indptr[g.N], edges)
	kind.Expect(g.Weights == nil || len(g.Weights) == edges, ErrInvalidGraph,
		"weights: got %d, want %d, one for each edge", len(g.Weights), edges)
	for e, w := range g.Weights {
		if !(w > 0) || w > math.MaxFloat32 {
			kind.Check(fmt.Errorf("%w: weight of edge %d: got %v, want a finite number above 0", ErrInvalidGraph, e, w))
		}
	}
	for i := range g.N {
		last := int32(-1)
		for _, j := range g.Tails(i) {
			if j <= last || int(j) >= g.N || int(j) == i {
				kind.Expect(j >= 0 && int(j) < g.N, ErrInvalidGraph, "row %d: got an edge to point %d, want 0 to %d", i, j, g.N-1)
				kind.Expect(int(j) != i, ErrInvalidGraph, "row %d: got an edge to itself", i)
				kind.Expect(j != last, ErrInvalidGraph, "row %d: got the edge to point %d twice", i, j)
				kind.Check(fmt.Errorf("%w: row %d: got point %d after point %d, want ascending order", ErrInvalidGraph, i, j, last))
			}
			last = j
		}
	}
	return nil
}

// Symmetric reports whether the graph has every edge in both directions. The graph must
// be valid.
func (g *Graph) Symmetric() bool {
	// Walking the edges by head visits the heads of each tail in ascending
	// order, so in a symmetric graph the reverse edge is always the next
	// one of the tail's row.
	next := slices.Clone(g.Indptr[:g.N])
	for i := range g.N {
		for _, j := range g.Tails(i) {
			if next[j] == g.Indptr[j+1] || g.Indices[next[j]] != int32(i) {
				return false
			}
			next[j]++
		}
	}
	return true
}

// Symmetrized returns the graph with every edge in both directions and without weights,
// or g itself, with its weights, if it is symmetric. The rows of g must be ascending, as
// Validate demands.
func (g *Graph) Symmetrized() *Graph {
	if g.Symmetric() {
		return g
	}
	return symmetric(g.N, unweighted(g.Tails), false)
}

// FromNeighbors makes the symmetric graph of nearest neighbours (sKNN): it has
// the edge ij, in both directions, if j is a neighbour of i or i a neighbour
// of j. The neighbours need not come from KNN and may be in any order; a neighbour
// that is listed twice makes one edge.
//
// The error wraps ErrInvalidGraph if the sizes do not fit together, or if a neighbour is
// out of range or the point itself.
func FromNeighbors(nb *Neighbors) (_ *Graph, err error) {
	defer kind.Catch(&err)
	checkNeighbors(nb)
	return symmetric(nb.N, unweighted(nb.Of), false), nil
}

// unweighted returns the argument of of symmetric for neighbours without weights.
func unweighted(of func(i int) []int32) func(i int, dst []uint64) []uint64 {
	return func(i int, dst []uint64) []uint64 {
		for _, j := range of(i) {
			dst = append(dst, uint64(j)<<32)
		}
		return dst
	}
}

// checkNeighbors fails as kind.Expect does if no graph can be made from the neighbours.
func checkNeighbors(nb *Neighbors) {
	kind.Expect(nb != nil, ErrInvalidGraph, "neighbours: got nil")
	n, k := nb.N, nb.K
	kind.Expect(n >= 0 && k >= 0 && n <= math.MaxInt32, ErrInvalidGraph, "neighbours: got %d for each of %d points", k, n)
	fits := k == 0 && len(nb.Index) == 0 || k > 0 && len(nb.Index)%k == 0 && len(nb.Index)/k == n
	kind.Expect(fits, ErrInvalidGraph, "Index: got %d entries, want %d for each of %d points", len(nb.Index), k, n)
	for e, j := range nb.Index {
		if i := e / k; j < 0 || int(j) >= n || int(j) == i {
			kind.Expect(int(j) != i, ErrInvalidGraph, "point %d (counted from 0): got itself as a neighbour", i)
			kind.Check(fmt.Errorf("%w: neighbour %d of point %d (both counted from 0): got %d, want 0 to %d", ErrInvalidGraph, e%k, i, j, n-1))
		}
	}
}

// symmetric makes the symmetric graph of n points. of appends the neighbours of a point,
// other points, to dst. The high half of each is the neighbour's index, and the low half
// the bits of the float32 strength of the edge to it. The weights of a weighted graph are
// computed from the strengths.
func symmetric(n int, of func(i int, dst []uint64) []uint64, weighted bool) *Graph {
	each := func(f func(i int, own []uint64)) {
		const grain = 2048
		parallel.For(n, grain, func(_, lo, hi int) {
			var own []uint64
			for i := lo; i < hi; i++ {
				own = of(i, own[:0])
				f(i, own)
			}
		})
	}
	// In reverse, the points that have i as a neighbour, with the strengths, end at ends[i].
	ends := make([]int64, n)
	each(func(_ int, own []uint64) {
		for _, edge := range own {
			atomic.AddInt64(&ends[edge>>32], 1)
		}
	})
	edges := int64(0)
	for i, count := range ends {
		ends[i] = edges
		edges += count
	}
	reverse := make([]uint64, edges)
	each(func(i int, own []uint64) {
		for _, edge := range own {
			at := atomic.AddInt64(&ends[edge>>32], 1) - 1
			reverse[at] = uint64(i)<<32 | edge&math.MaxUint32
		}
	})

	// The rows are merged twice: first to count their entries, so no list must grow, and then
	// into their places.
	others := func(i int) []uint64 { return reverse[ends[max(i, 1)-1]*int64(min(i, 1)) : ends[i]] }
	g := &Graph{N: n, Indptr: make([]int64, n+1)}
	each(func(i int, own []uint64) {
		slices.Sort(own)
		slices.Sort(others(i))
		union(own, others(i), func(uint64, uint64) { g.Indptr[i+1]++ })
	})
	selection.Accumulate(g.Indptr)
	g.Indices = make([]int32, g.Indptr[n])
	if weighted {
		g.Weights = make([]float32, len(g.Indices))
	}
	each(func(i int, own []uint64) {
		slices.Sort(own)
		e := g.Indptr[i]
		union(own, others(i), func(edge, back uint64) {
			g.Indices[e] = int32(max(edge, back) >> 32)
			if weighted {
				a, b := float64(math.Float32frombits(uint32(edge))), float64(math.Float32frombits(uint32(back)))
				// A weight must be above 0, even if float32 would round it to 0.
				g.Weights[e] = max(float32(a+b-float64(a*b)), math.SmallestNonzeroFloat32)
			}
			e++
		})
	})
	return g
}

// union calls f once for each index in either of two ascending rows of edges, in
// ascending order. Its arguments are the edges of both rows with this index, or 0 for a
// row without it.
func union(a, b []uint64, f func(a, b uint64)) {
	for len(a)+len(b) > 0 {
		var edge, back uint64
		at := uint64(math.MaxUint64)
		if len(a) > 0 {
			at = a[0] >> 32
		}
		if len(b) > 0 {
			at = min(at, b[0]>>32)
		}
		for ; len(a) > 0 && a[0]>>32 == at; a = a[1:] {
			edge = a[0]
		}
		for ; len(b) > 0 && b[0]>>32 == at; b = b[1:] {
			back = b[0]
		}
		f(edge, back)
	}
}

// FuzzyGraph is FromNeighbors with UMAP's weights of the edges (McInnes, Healy and
// Melville, 2018, Section 3.1). They are in (0, 1] and larger for nearer neighbours.
// Point i gives its neighbour j the strength
//
//	w(i→j) = exp(−max(0, d(i,j) − ρᵢ)/σᵢ),
//
// where ρᵢ is the smallest of its distances above 0, and σᵢ is such that its k strengths
// have the sum log₂(k+1). This equals umap-learn with n_neighbors = k+1, because that
// counts the point itself. σᵢ is at least a thousandth of the mean of its distances. The
// weight of an edge is a+b−ab of the strengths a and b of its two directions; one of them
// may be 0.
//
// Errors are as for FromNeighbors. It also fails if nb has no squared distances, or if
// one is negative, infinite or NaN.
func FuzzyGraph(nb *Neighbors) (_ *Graph, err error) {
	defer kind.Catch(&err)
	return nb.lists().fuzzy(), nil
}

// lists returns the neighbours with their distances, or fails as kind.Expect does if they are
// invalid.
func (nb *Neighbors) lists() *lists {
	checkNeighbors(nb)
	kind.Expect(len(nb.Dist2) == len(nb.Index), ErrInvalidGraph,
		"squared distances: got %d, want %d, one for each neighbour", len(nb.Dist2), len(nb.Index))
	l := &lists{index: nb.Index, dist2: nb.Dist2}
	for i := range nb.N + 1 {
		l.start = append(l.start, i*nb.K)
	}
	l.check()
	return l
}

// lists are the neighbours of points. Point i has the neighbours
// index[start[i]:start[i+1]]; points may have different numbers of them.
type lists struct {
	start []int
	index []int32
	dist2 []float64 // of index; nil if they are not known
}

// graph returns the symmetric graph, without weights.
func (l *lists) graph() *Graph {
	return symmetric(len(l.start)-1, unweighted(func(i int) []int32 { return l.index[l.start[i]:l.start[i+1]] }), false)
}

// check fails as kind.Expect does if a squared distance is invalid.
func (l *lists) check() {
	for i := range len(l.start) - 1 {
		for e, d2 := range l.dist2[l.start[i]:l.start[i+1]] {
			if !(d2 >= 0) || math.IsInf(d2, 1) {
				kind.Check(fmt.Errorf("%w: squared distance of point %d (counted from 0) to its neighbour %d: got %g, want a finite number of at least 0",
					ErrInvalidGraph, i, e, d2))
			}
		}
	}
}

// fuzzy returns the graph with UMAP's weights: see FuzzyGraph. The lists must be valid.
func (l *lists) fuzzy() *Graph {
	n := len(l.start) - 1
	given := make([]float32, len(l.index))
	const grain = 4096
	parallel.For(n, grain, func(_, lo, hi int) {
		var d, w []float64
		for i := lo; i < hi; i++ {
			d = d[:0]
			for _, d2 := range l.dist2[l.start[i]:l.start[i+1]] {
				d = append(d, math.Sqrt(d2))
			}
			w = append(w[:0], d...)
			strengths(w, d)
			for c, v := range w {
				given[l.start[i]+c] = float32(v)
			}
		}
	})
	start, index := l.start, l.index // without the distances
	memory.FreeGarbage(len(index))
	return symmetric(n, func(i int, dst []uint64) []uint64 {
		for e := start[i]; e < start[i+1]; e++ {
			dst = append(dst, uint64(index[e])<<32|uint64(math.Float32bits(given[e])))
		}
		return dst
	}, true)
}

const (
	// widestRatio bounds how much the radius of a point may differ from the median, so that
	// outliers are not lost and copies do not collapse.
	widestRatio = 4
	// farRatio bounds how much a distance may differ from the median of a point's distances.
	// A group of fewer than k points has neighbours in others, which say nothing about its
	// density.
	farRatio = 2
	// mostSpread bounds the power times the standard deviation of the radii's logarithms.
	// Above, the sparsest points, which attract each other least, are spread around the others.
	mostSpread = 1
)

// KeepDensity multiplies the weights of the edges by (rᵢrⱼ)^(−power/2), so that an
// embedding shows how dense the points are. g must have been made from nb. The radius rᵢ is
// the root mean square of the distances from point i to its neighbours; no distance counts
// for more than twice their median. The unit of radii is the median radius above 0. They are
// at least 1/4 and at most 4. Edges of sparse points attract less, and become longer before
// attraction and repulsion balance. A power of 2 gives lengths about proportional to the
// radii. A graph without weights gets weights.
//
// Where the logarithms of the radii have a standard deviation above 1/power, as in groups of
// very different spread, the power is lowered to its inverse.
//
// The error wraps ErrInvalidGraph if nb has another number of points than g, or squared
// distances that are missing, negative or not finite.
func (g *Graph) KeepDensity(nb *Neighbors, power float64) (err error) {
	defer kind.Catch(&err)
	l := nb.lists()
	kind.Expect(nb.N == g.N, ErrInvalidGraph, "neighbours: got %d points, want %d", nb.N, g.N)
	factors := make([]float64, g.N) // the mean squared distances at first
	for i := range factors {
		own := l.dist2[l.start[i]:l.start[i+1]]
		for _, d2 := range own {
			factors[i] += min(d2, farRatio*farRatio*own[nb.K/2]) / float64(nb.K)
		}
	}
	positive := slices.DeleteFunc(slices.Clone(factors), func(v float64) bool { return v == 0 })
	if len(positive) == 0 {
		return nil
	}
	slices.Sort(positive)
	median := positive[(len(positive)-1)/2]
	var sum, squares float64
	for i, v := range factors {
		v = max(1./(widestRatio*widestRatio), min(widestRatio*widestRatio, v/median))
		factors[i] = float64(elementary.Log(v) / 2)
		sum += factors[i]
		squares += float64(factors[i] * factors[i])
	}
	mean := sum / float64(g.N)
	if spread := math.Sqrt(max(0, squares/float64(g.N)-float64(mean*mean))); power*spread > mostSpread {
		power = mostSpread / spread
	}
	for i, v := range factors {
		factors[i] = elementary.Exp(-power / 2 * v)
	}
	if g.Weights == nil {
		g.Weights = slices.Repeat([]float32{1}, len(g.Indices))
	}
	for i := range g.N {
		for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
			w := float64(g.Weights[e]) * (factors[i] * factors[g.Indices[e]])
			g.Weights[e] = max(float32(w), math.SmallestNonzeroFloat32)
		}
	}
	return nil
}

const (
	// scaleSteps and scaleTolerance bound the search for σ: Newton's method takes half a
	// dozen steps to be as near.
	scaleSteps, scaleTolerance = 64, 1e-5
	// leastScale is the least σ, as a share of the mean distance.
	leastScale = 1e-3
)

// strengths sets w to UMAP's strengths of a point's neighbours at the distances d.
func strengths(w, d []float64) {
	rho, mean := math.Inf(1), 0.
	for _, v := range d {
		if v > 0 {
			rho = min(rho, v)
		}
		mean += v / float64(len(d))
	}
	target := elementary.Log2(float64(len(d) + 1))
	// The sum of the strengths grows with σ. Newton's steps begin at a σ that gives the mean
	// neighbour about the right strength, and stay within bounds.
	low, high := leastScale*mean, math.Inf(1)
	sigma := max(low, mean-rho)
	for range scaleSteps {
		sum, slope := 0., 0.
		for c, v := range d {
			beyond := max(0, v-rho)
			w[c] = elementary.Exp(-beyond / sigma)
			if beyond == 0 { // also if σ is 0 because all points coincide
				w[c] = 1
			}
			sum += w[c]
			slope += float64(w[c] * beyond)
		}
		slope /= sigma * sigma
		switch {
		case math.Abs(sum-target) < scaleTolerance, sum > target && sigma == low:
			return
		case sum > target:
			high = sigma
		default:
			low = sigma
		}
		next := sigma + (target-sum)/slope
		switch {
		case next > low && next < high:
			sigma = next
		case math.IsInf(high, 1):
			sigma *= 2
		default:
			sigma = (low + high) / 2
		}
	}
}
