package initial

import (
	"context"
	"errors"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/eigen"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// MostEigenmaps is the largest number of eigenmaps that Eigenmaps returns.
const MostEigenmaps = 64

// Eigenmaps returns the first Laplacian eigenmaps of a graph, at most dim and at most
// MostEigenmaps (Belkin and Niyogi, 2003). They are the functions f on the nodes of a
// component with L·f = λ·D·f for the smallest λ except 0. D is the diagonal matrix of
// degrees, A the adjacency matrix, and L = D − A. Edges count in both directions, and
// weights are ignored. If the graph has several components, each has its own eigenmaps, and
// they lie side by side as in Diffusion. Errors come from Components, say that the
// eigenvectors did not converge, or are ctx.Err() if ctx is done.
//
// For a small graph all eigenvectors are computed. A larger graph is coarsened repeatedly
// by grouping neighbours. The eigenvectors of the coarsest graph are then carried back
// level by level. Each level improves them by Chebyshev-filtered subspace iteration
// (Zhou, Saad, Tiago and Chelikowsky, 2006). The wanted functions are smooth, so they are
// nearly right on the coarser graph. A polynomial of low degree removes the rough error
// that carrying them back adds. The weights of edges between groups add up, and so do
// degrees, so the problem is the same on each level.
func Eigenmaps(ctx context.Context, g *neighbors.Graph, points *data.Matrix, dim int) (*data.Matrix, error) {
	maps, members, err := eigenmaps(ctx, g, min(dim, MostEigenmaps))
	if err != nil || len(members) < 2 {
		return maps, err
	}
	components, err := Components(ctx, points, dim)
	if err != nil {
		return nil, err
	}
	setApart(maps, components, members)
	return maps, nil
}

// eigenmaps returns the first d eigenmaps of each component of a graph, and the nodes of
// each. The eigenmaps of a component of s nodes are orthogonal in the scalar product with
// weights D, and have the same length. If s − 1 < d, further columns are 0.
func eigenmaps(ctx context.Context, g *neighbors.Graph, d int) (maps *data.Matrix, members [][]int32, err error) {
	g = g.Symmetrized()
	maps = data.NewMatrix(g.N, d)
	members = connected(g.Indptr, g.Indices)
	index := make([]int32, g.N)
	for _, nodes := range members {
		if len(nodes) == 1 {
			continue
		}
		g := part(g.Indptr, g.Indices, nodes, index)
		k := min(d, len(nodes)-1)
		u, err := solve(ctx, g, k, smallest)
		if err != nil {
			return nil, nil, err
		}
		width := len(u) / g.n()
		for j := range k {
			sign := signOf(u, g.root, width, j)
			for row, i := range nodes {
				maps.Row(int(i))[j] = float32(sign * u[row*width+j] / g.root[row])
			}
		}
	}
	return maps, members, nil
}

// signOf returns the sign that makes the largest value of a function positive.
func signOf(u, root []float64, width, j int) float64 {
	largest := 0.
	for i := range root {
		if v := u[i*width+j] / root[i]; math.Abs(v) > math.Abs(largest) {
			largest = v
		}
	}
	return math.Copysign(1, largest)
}

// extra is the number of vectors computed in addition to the wanted ones. They make the
// wanted ones converge faster.
const extra = 4

// smallest is the number of nodes above which a graph is coarsened.
const smallest = 256

// errEigen is the error if eigenvalues are not found.
var errEigen = errors.New("initial: the eigenvectors of the graph did not converge")

// solve returns the first k eigenvectors but the constant one of a connected graph in the
// first columns of u [n, k or more]: eigenvectors of M = D^(−1/2)·A·D^(−1/2) for its
// largest eigenvalues.
func solve(ctx context.Context, g *graph, k, smallest int) (u []float64, err error) {
	width := min(k+extra, g.n()-1)
	if g.n() <= max(smallest, 4*width) {
		return dense(g, width)
	}
	coarse, group := g.coarsen()
	if 10*coarse.n() <= 9*g.n() && coarse.n() > 2*width { // it gets smaller, but not too small
		if u, err = solve(ctx, coarse, k, smallest); err != nil {
			return nil, err
		}
	}
	s := solver{g: g, k: k, m: width}
	s.carry(u, coarse, group)
	if err := s.improve(ctx); err != nil {
		return nil, err
	}
	return s.x, nil
}

// dense computes all eigenvectors of M, and returns the eigenvectors of the largest
// eigenvalues except the first.
func dense(g *graph, width int) ([]float64, error) {
	n := g.n()
	a := make([]float64, n*n) // the upper triangle
	for i := range n {
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			if j := int(g.adj[e]); j > i {
				a[i*n+j] = g.weightOf(e) / (g.root[i] * g.root[j])
			}
		}
		a[i*n+i] = g.loop[i] / (g.root[i] * g.root[i])
	}
	_, vectors, ok := eigen.Symmetric(a, n)
	if !ok {
		return nil, errEigen
	}
	return eigen.Transposed(vectors[n:(1+width)*n], width, n), nil
}

// A solver improves eigenvectors of a graph.
type solver struct {
	g       *graph
	k, m    int       // wanted, and computed
	x, y, z []float64 // [n, m]; x are the vectors
	values  []float64 // eigenvalues of the vectors
}

// carry sets x from the vectors u of the graph of groups: each node gets the value of its
// group. Columns that u does not have are random.
func (s *solver) carry(u []float64, coarse *graph, group []int32) {
	s.x = make([]float64, s.g.n()*s.m)
	random := rng.New(0, rng.Init, uint64(s.g.n()))
	width := len(u) / coarse.n()
	for i, c := range group {
		for j := range s.m {
			v := random.Normal()
			if j < width {
				v = u[int(c)*width+j] / coarse.root[c] * s.g.root[i]
			}
			s.x[i*s.m+j] = v
		}
	}
}

const (
	degree    = 16   // of the polynomial
	tolerance = 1e-6 // of the residual of a unit vector
	// work is the number of edges times columns that a graph may cost, within bounds on
	// the number of steps.
	work                = 2e9
	fewSteps, manySteps = 2, 200
)

// improve iterates until x are eigenvectors up to the tolerance, or as often as is
// reasonable for the size of the graph.
func (s *solver) improve(ctx context.Context) error {
	s.y, s.z = make([]float64, len(s.x)), make([]float64, len(s.x))
	if err := s.project(); err != nil {
		return err
	}
	steps := min(max(int(work/(float64(len(s.g.adj))*float64(s.m)*degree)), fewSteps), manySteps)
	for range steps {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.residual() <= tolerance {
			break
		}
		s.filter(s.values[s.m-1])
		if err := s.project(); err != nil {
			return err
		}
	}
	return nil
}

// filter applies the polynomial that is small on [−1, bound] and grows fastest above.
func (s *solver) filter(bound float64) {
	bound = min(max(bound, -0.9), 1-1e-9)
	e, c := (bound+1)/2, float64((bound-1)/2)
	first := e / (1 - c)
	sigma := first
	// D^(−1)·A does to D^(−1/2)·x what M does to x, and needs no degrees of neighbours.
	s.scale(s.g.under)
	s.g.walk(s.y, s.x, s.m)
	s.combine(s.y, s.y, s.x, nil, sigma/e, -c*sigma/e, 0)
	for range degree - 1 {
		next := 1 / (2/first - sigma)
		s.g.walk(s.z, s.y, s.m)
		s.combine(s.x, s.z, s.y, s.x, 2*next/e, -2*c*next/e, -sigma*next)
		s.x, s.y = s.y, s.x
		sigma = next
	}
	s.x, s.y = s.y, s.x
	s.scale(s.g.root)
}

// scale multiplies each row of x by a number.
func (s *solver) scale(by []float64) {
	parallel.For(s.g.n(), grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range s.x[i*s.m : (i+1)*s.m] {
				s.x[i*s.m+j] *= by[i]
			}
		}
	})
}

// combine sets out to fa·a + fb·b + fc·c, where c may be nil.
func (s *solver) combine(out, a, b, c []float64, fa, fb, fc float64) {
	parallel.For(len(out), grain*s.m, func(_, lo, hi int) {
		if c == nil {
			for i := lo; i < hi; i++ {
				out[i] = float64(fa*a[i]) + float64(fb*b[i])
			}
			return
		}
		for i := lo; i < hi; i++ {
			out[i] = float64(fa*a[i]) + float64(fb*b[i]) + float64(fc*c[i])
		}
	})
}

// project makes x orthogonal to the constant function and orthonormal, and then replaces
// them by the Ritz vectors of M in their span, with the largest eigenvalues first. It
// leaves M·x in y.
func (s *solver) project() error {
	s.leaveConstant()
	if err := s.orthonormalize(); err != nil {
		return err
	}
	s.g.multiply(s.y, s.x, s.m)
	values, vectors, ok := eigen.Symmetric(s.products(s.x, s.y), s.m)
	if !ok {
		return errEigen
	}
	s.values = values
	t := eigen.Transposed(vectors, s.m, s.m)
	s.turn(s.x, t)
	s.turn(s.y, t)
	return nil
}

// leaveConstant makes x orthogonal to the first eigenvector of M, the roots of the
// degrees.
func (s *solver) leaveConstant() {
	sums := s.sum(s.m+1, func(i int, to []float64) {
		r := s.g.root[i]
		for j, v := range s.x[i*s.m : (i+1)*s.m] {
			to[j] += float64(r * v)
		}
		to[s.m] += float64(r * r)
	})
	for j := range s.m {
		sums[j] /= sums[s.m]
	}
	parallel.For(s.g.n(), grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range s.m {
				s.x[i*s.m+j] -= float64(sums[j] * s.g.root[i])
			}
		}
	})
}

// orthonormalize makes the columns of x orthonormal, by the eigenvectors of their scalar
// products; columns that depend on the others become random, and the next steps improve
// them.
func (s *solver) orthonormalize() error {
	for range 3 {
		values, vectors, ok := eigen.Symmetric(s.products(s.x, s.x), s.m)
		if !ok {
			return errEigen
		}
		kept := 0
		for j, v := range values {
			row, factor := vectors[j*s.m:(j+1)*s.m], 0.
			if v > 1e-20*values[0] {
				kept, factor = j+1, 1/math.Sqrt(v)
			}
			for i := range row {
				row[i] *= factor
			}
		}
		s.turn(s.x, eigen.Transposed(vectors, s.m, s.m))
		if kept == s.m && values[s.m-1] > 1e-8*values[0] {
			return nil
		}
		random := rng.New(1, rng.Init, uint64(s.g.n()))
		scale := 1 / math.Sqrt(float64(s.g.n()))
		for i := range s.g.n() {
			for j := kept; j < s.m; j++ {
				s.x[i*s.m+j] = scale * random.Normal()
			}
		}
		if kept < s.m {
			s.leaveConstant()
		}
	}
	return nil
}

// turn multiplies the rows of x by a matrix [m, m].
func (s *solver) turn(x, t []float64) {
	m := s.m
	parallel.For(s.g.n(), grain, func(_, lo, hi int) {
		row := make([]float64, m)
		for i := lo; i < hi; i++ {
			clear(row)
			for k, v := range x[i*m : (i+1)*m] {
				for j, f := range t[k*m : (k+1)*m] {
					row[j] += float64(f * v)
				}
			}
			copy(x[i*m:], row)
		}
	})
}

// products returns the upper triangle of the scalar products of the columns of a with the
// columns of b. They are symmetric except for rounding.
func (s *solver) products(a, b []float64) []float64 {
	m := s.m
	return s.sum(m*m, func(i int, to []float64) {
		right := b[i*m : (i+1)*m]
		for j, v := range a[i*m : (i+1)*m] {
			row := to[j*m : (j+1)*m]
			for k := j; k < m; k++ {
				row[k] += float64(v * right[k])
			}
		}
	})
}

// residual returns the largest length of M·x − λ·x among the wanted vectors.
func (s *solver) residual() float64 {
	squares := s.sum(s.k, func(i int, to []float64) {
		for j := range to {
			r := s.y[i*s.m+j] - float64(s.values[j]*s.x[i*s.m+j])
			to[j] += float64(r * r)
		}
	})
	return math.Sqrt(slices.Max(squares))
}

// sum adds up a term for each node, in an order that depends only on sizes.
func (s *solver) sum(width int, add func(i int, to []float64)) []float64 {
	n := s.g.n()
	parts := make([]float64, parallel.Pieces(n, grain)*width)
	parallel.For(n, grain, func(piece, lo, hi int) {
		to := parts[piece*width : (piece+1)*width]
		for i := lo; i < hi; i++ {
			add(i, to)
		}
	})
	out := parts[:width:width]
	for at := width; at < len(parts); at += width {
		for j, v := range parts[at : at+width] {
			out[j] += v
		}
	}
	return out
}

// A graph is a symmetric weighted graph in compressed sparse rows: the neighbours of node i
// are adj[ptr[i]:ptr[i+1]].
type graph struct {
	ptr    []int64
	adj    []int32
	weight []float64 // of each entry of adj; nil: 1
	loop   []float64 // weight of each node's edge to itself
	root   []float64 // square root of each node's degree, which counts its loop
	under  []float64 // 1/root
}

func newGraph(ptr []int64, adj []int32, weight, loop []float64) *graph {
	g := &graph{ptr: ptr, adj: adj, weight: weight, loop: loop, root: make([]float64, len(ptr)-1), under: make([]float64, len(ptr)-1)}
	for i := range g.root {
		degree := 0.
		for e := ptr[i]; e < ptr[i+1]; e++ {
			degree += g.weightOf(e)
		}
		g.root[i] = math.Sqrt(degree + loop[i])
		g.under[i] = 1 / g.root[i]
	}
	return g
}

func (g *graph) n() int { return len(g.root) }

// weightOf returns the weight of an entry of adj.
func (g *graph) weightOf(e int64) float64 {
	if g.weight == nil {
		return 1
	}
	return g.weight[e]
}

// grain is the number of rows that a core takes at once.
const grain = 2048

// multiply sets y to M·x for x of m columns, where M is D^(−1/2)·W·D^(−1/2) with the
// graph's weights W. Its eigenvalues are in [−1, 1].
func (g *graph) multiply(y, x []float64, m int) {
	parallel.For(g.n(), grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := y[i*m : (i+1)*m : (i+1)*m]
			clear(row)
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				j := int(g.adj[e])
				f := g.under[j] * g.weightOf(e)
				for k, v := range x[j*m : (j+1)*m : (j+1)*m] {
					row[k] += float64(f * v)
				}
			}
			f := g.under[i]
			own := g.loop[i] * f * f
			for k, v := range x[i*m : (i+1)*m] {
				row[k] = float64(row[k]*f) + float64(own*v)
			}
		}
	})
}

// walk sets y to D^(−1)·A·x for x of m columns: the mean of each node's neighbours.
func (g *graph) walk(y, x []float64, m int) {
	parallel.For(g.n(), grain, func(_, lo, hi int) {
		if m == planeColumns && g.weight == nil {
			g.walkPlane(y, x, lo, hi)
			return
		}
		for i := lo; i < hi; i++ {
			row := y[i*m : (i+1)*m : (i+1)*m]
			clear(row)
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				j, f := int(g.adj[e]), g.weightOf(e)
				for k, v := range x[j*m : (j+1)*m : (j+1)*m] {
					row[k] += float64(f * v)
				}
			}
			f, own := g.under[i]*g.under[i], g.loop[i]
			for k, v := range x[i*m : (i+1)*m] {
				row[k] = (row[k] + float64(own*v)) * f
			}
		}
	})
}

// planeColumns is the number of columns for two eigenmaps.
const planeColumns = 2 + extra

// walkPlane is walk of rows lo to hi−1 for two eigenmaps of a graph without weights and
// loops, the slowest case.
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

// coarsen groups neighbours. A node forms a group with all its neighbours if none of them
// is in a group. Each remaining node then joins the group of the neighbour with the
// largest edge weight. coarsen returns the graph of the groups, with the sums of the
// weights between them, and the group of each node.
func (g *graph) coarsen() (*graph, []int32) {
	group, groups := seedGroups(g.ptr, g.adj)
	joined := slices.Clone(group)
	for i := range joined {
		if joined[i] >= 0 {
			continue
		}
		heaviest := -1.
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			w := g.weightOf(e)
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
			loop[c] += g.loop[i]
			for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
				w := g.weightOf(e)
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

// connected returns the nodes of each component, in breadth-first order from its first
// node. Components are in the order of their first nodes.
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

// part returns the graph of only the given nodes. The nodes make up whole components.
// They are numbered in their order, so nodes near each other are near in memory. index
// gets their numbers.
func part(ptr []int64, adj, nodes, index []int32) *graph {
	for k, i := range nodes {
		index[i] = int32(k)
	}
	edges := int64(0)
	for _, i := range nodes {
		edges += ptr[i+1] - ptr[i]
	}
	own, ends := make([]int64, 1, len(nodes)+1), make([]int32, 0, edges)
	for _, i := range nodes {
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			ends = append(ends, index[j])
		}
		own = append(own, int64(len(ends)))
	}
	return newGraph(own, ends, nil, make([]float64, len(nodes)))
}
