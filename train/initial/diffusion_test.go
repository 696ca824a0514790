package initial

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
)

// edges makes the rows of a graph of edges, each in both directions.
func edges(n int, pairs [][2]int) *neighbors.Graph {
	rows := make([][]int32, n)
	for _, p := range pairs {
		rows[p[0]] = append(rows[p[0]], int32(p[1]))
		rows[p[1]] = append(rows[p[1]], int32(p[0]))
	}
	g := &neighbors.Graph{N: n, Indptr: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		g.Indices = append(g.Indices, slices.Compact(row)...)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// graphOf returns the graph of the k nearest neighbours of points.
func graphOf(t *testing.T, points *data.Matrix, k int) *neighbors.Graph {
	t.Helper()
	nb := need(neighbors.KNN(t.Context(), points, k, neighbors.Options{}))(t)
	return need(neighbors.FromNeighbors(nb))(t)
}

// strangers returns how many points have a point of another component as the nearest one in
// an embedding.
func strangers(t *testing.T, x *data.Matrix, members [][]int32) (count int) {
	t.Helper()
	component := make([]int, x.N)
	for c, nodes := range members {
		for _, i := range nodes {
			component[i] = c
		}
	}
	nb := need(neighbors.KNN(t.Context(), x, 1, neighbors.Options{}))(t)
	for i := range x.N {
		if component[nb.Of(i)[0]] != component[i] {
			count++
		}
	}
	return count
}

// linkedRings returns rings of m points in planes that take turns; each is linked with the
// one before. Point i is of ring i/m.
func linkedRings(m, rings int, step float64) *data.Matrix {
	points := data.NewMatrix(m*rings, 3)
	for i := range points.N {
		ring, turn := i/m, 2*math.Pi*float64(i%m)/float64(m)
		row := points.Row(i)
		row[0] = float32(step*float64(ring) + math.Cos(turn))
		row[1+ring%2] = float32(math.Sin(turn))
	}
	return points
}

// Linked rings are loops side by side, whose points are in order.
func TestRings(t *testing.T) {
	for _, c := range []struct {
		m, rings int
		step     float64
	}{{300, 2, 1}, {1000, 2, 0.7}, {250, 5, 1.3}} {
		points := linkedRings(c.m, c.rings, c.step)
		g := graphOf(t, points, 10)
		groupsUpTo(t, 40)
		for name, start := range map[string]func() (*data.Matrix, error){
			"diffusion": func() (*data.Matrix, error) { return Diffusion(t.Context(), g, points, 2) },
			"multilevel": func() (*data.Matrix, error) {
				return Multilevel(t.Context(), g, points, 2, 0, func(_ context.Context, _ *neighbors.Graph, from *data.Matrix, _ bool) (*data.Matrix, error) {
					return from, nil
				})
			},
		} {
			x := need(start())(t)
			members := connected(g.Indptr, g.Indices)
			if len(members) != c.rings {
				t.Fatalf("%v: %d components", c, len(members))
			}
			s := strangers(t, x, members)
			if name == "multilevel" { // it scatters the points of each group
				if s > x.N/20 {
					t.Errorf("%v: %s: %d points lie next to another ring", c, name, s)
				}
				continue
			}
			if s > 0 {
				t.Errorf("%v: %s: %d points lie next to another ring", c, name, s)
			}
			for ring, nodes := range members {
				mean, _ := x.Moments(nodes)
				turned := 0.
				for k := range c.m {
					a, b := x.Row(ring*c.m+k), x.Row(ring*c.m+(k+1)%c.m)
					ax, ay, bx, by := float64(a[0])-mean[0], float64(a[1])-mean[1], float64(b[0])-mean[0], float64(b[1])-mean[1]
					turned += math.Atan2(ax*by-ay*bx, ax*bx+ay*by)
				}
				if math.Abs(math.Abs(turned)-2*math.Pi) > 1e-3 {
					t.Errorf("%v: %s: ring %d turns by %.3f", c, name, ring, turned)
				}
			}
		}
	}
}

// Components lie apart, however many and unequal they are, and points within them differ.
func TestManyComponents(t *testing.T) {
	for name, size := range map[string]func(c int) int{
		"thousands": func(c int) int { return 2 + c%16 }, "single points": func(c int) int { return 1 + c%2 },
		"one is large": func(c int) int { return max(3, 3000-1499*c) }, "powers": func(c int) int { return 2 << (c % 12) },
	} {
		var pairs [][2]int
		n := 0
		s := rng.New(1, rng.Init)
		points := data.NewMatrix(40000, 5)
		for c := 0; n < 20000; c++ {
			middle := [5]float64{s.Normal(), s.Normal(), s.Normal()} // they overlap
			for i := range size(c) {
				for j, m := range middle {
					points.Row(n + i)[j] = float32(m + s.Normal())
				}
				if i > 0 {
					pairs = append(pairs, [2]int{n + i - 1, n + i}, [2]int{n + i/2, n + i})
				}
			}
			n += size(c)
		}
		points = points.Rows(0, n)
		g := edges(n, slices.DeleteFunc(pairs, func(p [2]int) bool { return p[0] == p[1] }))
		x := need(Diffusion(t.Context(), g, points, 2))(t)
		members := connected(g.Indptr, g.Indices)
		type box struct{ lo, hi [2]float32 }
		boxes := make([]box, len(members))
		places := map[[2]float32]bool{}
		for c, nodes := range members {
			inf := float32(math.Inf(1))
			boxes[c] = box{[2]float32{inf, inf}, [2]float32{-inf, -inf}}
			for _, i := range nodes {
				row := x.Row(int(i))
				places[[2]float32(row)] = true
				for j, v := range row {
					boxes[c].lo[j], boxes[c].hi[j] = min(boxes[c].lo[j], v), max(boxes[c].hi[j], v)
				}
			}
		}
		if len(places) != n {
			t.Errorf("%s: %d points are in %d places", name, n, len(places))
		}
		slices.SortFunc(boxes, func(a, b box) int { return int(math.Copysign(1, float64(a.lo[0]-b.lo[0]))) })
		overlapping := 0
		for i, a := range boxes {
			for _, b := range boxes[i+1:] {
				if b.lo[0] > a.hi[0] {
					break
				}
				if a.lo[1] <= b.hi[1] && b.lo[1] <= a.hi[1] {
					overlapping++
				}
			}
		}
		if overlapping*100 > len(members) { // small ones may, next to large ones
			t.Errorf("%s: %d pairs of %d components overlap", name, overlapping, len(members))
		}
	}
}

// Averages over neighbours bring classes together, and leave them where their principal
// components are.
func TestDiffusion(t *testing.T) {
	const n, classes = 1200, 6
	points := normal(n, 20, 1)
	for i := range n {
		points.Row(i)[0] += float32(2 * (i % classes))
		points.Row(i)[1] += float32(i % classes % 2 * 2)
	}
	g := graphOf(t, points, 15)
	if c := len(connected(g.Indptr, g.Indices)); c != 1 {
		t.Fatalf("%d components", c)
	}
	class := make([]int32, n)
	for i := range class {
		class[i] = int32(i % classes)
	}
	// share returns the share of the variance that is within classes.
	share := func(x *data.Matrix) float64 {
		start, members := membersOf(class, classes)
		within := 0.
		for c := range classes {
			_, square := x.Moments(members[start[c]:start[c+1]])
			within += square
		}
		_, all := x.Moments(members)
		return within / all
	}
	components := need(Components(t.Context(), points, 2))(t)
	x := need(Diffusion(t.Context(), g, points, 2))(t)
	if before, after := share(components), share(x); after > before*2/3 {
		t.Errorf("%.3f of the variance is within classes, and %.3f of the principal components'", after, before)
	}
	means, were := meansOf(x, class, classes), meansOf(components, class, classes)
	for i := range classes {
		for j := range i {
			if (means.Row(i)[0] < means.Row(j)[0]) != (were.Row(i)[0] < were.Row(j)[0]) {
				t.Errorf("classes %d and %d have changed sides", i, j)
			}
		}
	}
	procs := runtime.GOMAXPROCS(1)
	again, err := Diffusion(t.Context(), g, points, 2)
	runtime.GOMAXPROCS(procs)
	if err != nil || !slices.Equal(again.X, x.X) {
		t.Errorf("other bits on one core (%v)", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Diffusion(ctx, g, points, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
