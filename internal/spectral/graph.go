package spectral

import (
	"math"
	"slices"

	"cne/internal/parallel"
)

// A graph is a symmetric weighted graph in compressed sparse rows: the neighbours of node i
// are adj[ptr[i]:ptr[i+1]].
type graph struct {
	ptr    []int64
	adj    []int32
	weight []float64 // of each entry of adj; nil: 1
	loop   []float64 // weight of each node's edge to itself; nil: 0
	root   []float64 // square root of each node's degree, which counts its loop
	under  []float64 // 1/root
}

func newGraph(ptr []int64, adj []int32, weight, loop []float64) *graph {
	g := &graph{ptr: ptr, adj: adj, weight: weight, loop: loop, root: make([]float64, len(ptr)-1), under: make([]float64, len(ptr)-1)}
	for i := range g.root {
		degree := float64(ptr[i+1] - ptr[i])
		if weight != nil {
			degree = 0
			for _, w := range weight[ptr[i]:ptr[i+1]] {
				degree += w
			}
		}
		if loop != nil {
			degree += loop[i]
		}
		g.root[i] = math.Sqrt(degree)
		g.under[i] = 1 / g.root[i]
	}
	return g
}

func (g *graph) n() int { return len(g.root) }

// grain is how many rows a core takes at once.
const grain = 2048

// multiply sets y to M·x for x of m columns, where M is the graph's matrix of weights
// between D^(−1/2) on both sides, whose eigenvalues lie in [−1, 1].
func (g *graph) multiply(y, x []float64, m int) {
	parallel.For(g.n(), grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := y[i*m : (i+1)*m : (i+1)*m]
			clear(row)
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				j := int(g.adj[e])
				f := g.under[j]
				if g.weight != nil {
					f *= g.weight[e]
				}
				for k, v := range x[j*m : (j+1)*m : (j+1)*m] {
					row[k] += f * v
				}
			}
			f := g.under[i]
			own := 0.0
			if g.loop != nil {
				own = g.loop[i] * f * f
			}
			for k, v := range x[i*m : (i+1)*m] {
				row[k] = row[k]*f + own*v
			}
		}
	})
}

// walk sets y to D^(−1)·A·x for x of m columns: the mean of each node's neighbours.
func (g *graph) walk(y, x []float64, m int) {
	parallel.For(g.n(), grain, func(_, lo, hi int) {
		if m == planeColumns && g.weight == nil && g.loop == nil {
			g.walkPlane(y, x, lo, hi)
			return
		}
		for i := lo; i < hi; i++ {
			row := y[i*m : (i+1)*m : (i+1)*m]
			clear(row)
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				j, f := int(g.adj[e]), 1.
				if g.weight != nil {
					f = g.weight[e]
				}
				for k, v := range x[j*m : (j+1)*m : (j+1)*m] {
					row[k] += f * v
				}
			}
			f, own := g.under[i]*g.under[i], 0.
			if g.loop != nil {
				own = g.loop[i]
			}
			for k, v := range x[i*m : (i+1)*m] {
				row[k] = (row[k] + own*v) * f
			}
		}
	})
}

// planeColumns is the number of columns for two eigenmaps.
const planeColumns = 2 + extra

// walkPlane is walk of rows lo to hi−1 for two eigenmaps of a graph without weights, which
// is the one that takes longest.
func (g *graph) walkPlane(y, x []float64, lo, hi int) {
	for i := lo; i < hi; i++ {
		var a, b, c, d, e, f float64
		for _, j := range g.adj[g.ptr[i]:g.ptr[i+1]] {
			v := (*[planeColumns]float64)(x[int(j)*planeColumns:])
			a, b, c, d, e, f = a+v[0], b+v[1], c+v[2], d+v[3], e+v[4], f+v[5]
		}
		w := g.under[i] * g.under[i]
		*(*[planeColumns]float64)(y[i*planeColumns:]) = [planeColumns]float64{a * w, b * w, c * w, d * w, e * w, f * w}
	}
}

// coarsen puts neighbours together: a node with all its neighbours, where none of them has
// been taken; what is left joins the neighbour to which its edge weighs most. It returns
// the graph of the groups, between which edges add up, and the group of each node.
func (g *graph) coarsen() (*graph, []int32) {
	group := slices.Repeat([]int32{-1}, g.n())
	groups := int32(0)
	for i := range group {
		around := g.adj[g.ptr[i]:g.ptr[i+1]]
		if group[i] >= 0 || slices.ContainsFunc(around, func(j int32) bool { return group[j] >= 0 }) {
			continue
		}
		group[i] = groups
		for _, j := range around {
			group[j] = groups
		}
		groups++
	}
	joined := slices.Clone(group)
	for i := range joined {
		if joined[i] >= 0 {
			continue
		}
		heaviest := -1.
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			w := 1.
			if g.weight != nil {
				w = g.weight[e]
			}
			if c := group[g.adj[e]]; c >= 0 && w > heaviest {
				heaviest, joined[i] = w, c
			}
		}
	}
	return g.contract(joined, int(groups)), joined
}

// contract returns the graph of groups of nodes.
func (g *graph) contract(group []int32, groups int) *graph {
	// The nodes by their groups.
	start := make([]int32, groups+1)
	for _, c := range group {
		start[c+1]++
	}
	for c := range groups {
		start[c+1] += start[c]
	}
	members, next := make([]int32, len(group)), slices.Clone(start[:groups])
	for i, c := range group {
		members[next[c]] = int32(i)
		next[c]++
	}
	ptr, loop := make([]int64, 1, groups+1), make([]float64, groups)
	var adj []int32
	var weight []float64
	at := slices.Repeat([]int64{-1}, groups) // where a group's edge stands in the present row
	for c := range groups {
		first := int64(len(adj))
		for _, i := range members[start[c]:start[c+1]] {
			if g.loop != nil {
				loop[c] += g.loop[i]
			}
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				w := 1.
				if g.weight != nil {
					w = g.weight[e]
				}
				to := group[g.adj[e]]
				switch {
				case int(to) == c:
					loop[c] += w
				case at[to] >= first:
					weight[at[to]] += w
				default:
					at[to] = int64(len(adj))
					adj, weight = append(adj, to), append(weight, w)
				}
			}
		}
		ptr = append(ptr, int64(len(adj)))
	}
	return newGraph(ptr, adj, weight, loop)
}

// Symmetric returns a graph, whose rows are ascending, with each edge in both directions: as
// it is, if it is so already.
func Symmetric(ptr []int64, adj []int32) ([]int64, []int32) {
	n := len(ptr) - 1
	back := make([]int64, n+1)
	for _, j := range adj {
		back[j+1]++
	}
	for i := range n {
		back[i+1] += back[i]
	}
	from, next := make([]int32, len(adj)), slices.Clone(back[:n])
	for i := range n {
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			from[next[j]] = int32(i)
			next[j]++
		}
	}
	if slices.Equal(back, ptr) && slices.Equal(from, adj) {
		return ptr, adj
	}
	both, ends := make([]int64, 1, n+1), make([]int32, 0, len(adj))
	for i := range n {
		row := slices.Concat(adj[ptr[i]:ptr[i+1]], from[back[i]:back[i+1]])
		slices.Sort(row)
		ends = append(ends, slices.Compact(row)...)
		both = append(both, int64(len(ends)))
	}
	return both, ends
}

// components returns the component of each node, numbered in the order of their first
// nodes, and the nodes of each, in breadth-first order from its first.
func components(ptr []int64, adj []int32) (of []int32, members [][]int32) {
	of = slices.Repeat([]int32{-1}, len(ptr)-1)
	queue := make([]int32, 0, len(of))
	for i := range of {
		if of[i] >= 0 {
			continue
		}
		first, c := len(queue), int32(len(members))
		of[i] = c
		queue = append(queue, int32(i))
		for k := first; k < len(queue); k++ {
			for _, j := range adj[ptr[queue[k]]:ptr[queue[k]+1]] {
				if of[j] < 0 {
					of[j] = c
					queue = append(queue, j)
				}
			}
		}
		members = append(members, queue[first:])
	}
	return of, members
}

// part returns the graph of the given nodes alone, which are whole components and numbered
// in their order, so that those that are near each other are read together. place gets
// their numbers.
func part(ptr []int64, adj, nodes, place []int32) *graph {
	for k, i := range nodes {
		place[i] = int32(k)
	}
	edges := int64(0)
	for _, i := range nodes {
		edges += ptr[i+1] - ptr[i]
	}
	own, ends := make([]int64, 1, len(nodes)+1), make([]int32, 0, edges)
	for _, i := range nodes {
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			ends = append(ends, place[j])
		}
		own = append(own, int64(len(ends)))
	}
	return newGraph(own, ends, nil, nil)
}
