package initial

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
	group, groups := seedGroups(g.ptr, g.adj)
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
	return g.contract(joined, groups), joined
}

// contract returns the graph of groups of nodes.
func (g *graph) contract(group []int32, groups int) *graph {
	start, members := membersOf(group, groups)
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

// connected returns the nodes of each component, in the order of their first nodes, and in
// breadth-first order from the first.
func connected(ptr []int64, adj []int32) (members [][]int32) {
	seen := make([]bool, len(ptr)-1)
	queue := make([]int32, 0, len(seen))
	for i := range seen {
		if seen[i] {
			continue
		}
		first := len(queue)
		seen[i] = true
		queue = append(queue, int32(i))
		for k := first; k < len(queue); k++ {
			for _, j := range adj[ptr[queue[k]]:ptr[queue[k]+1]] {
				if !seen[j] {
					seen[j] = true
					queue = append(queue, j)
				}
			}
		}
		members = append(members, queue[first:])
	}
	return members
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
