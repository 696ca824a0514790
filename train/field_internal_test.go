package train

import (
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// fields have points to compute forces of, by size of the embedding, and how far off they may be.
var fields = []struct {
	n    int
	size float64
	tol  float64
}{{1, 1, 1e-6}, {2, 1, 1e-6}, {33, 1, 1e-5}, {1000, 0.01, 1e-4}, {1000, 30, 0.005}, {8000, 100, 0.005}, {3000, 1e5, 0.02}}

// fieldPoints returns points, some of them equal, and where they are after small moves.
func fieldPoints(n int, size float64) (before, after []float32) {
	s := rng.New(uint64(n), rng.Sample)
	before = make([]float32, 2*n)
	for i := range before {
		before[i] = float32(size * s.Normal())
	}
	for i := range n / 20 {
		copy(before[2*i:2*i+2], before[n:])
	}
	after = slices.Clone(before)
	for i := range after {
		after[i] += float32(0.01 * size * s.Normal())
	}
	return before, after
}

// checkForces compares Σ q²·(x−x′) over all points x′ for each x, and Σ q over all ordered pairs,
// with sums in float64.
func checkForces(t *testing.T, size, tol float64, points, forces []float32, total float64) {
	t.Helper()
	n := len(points) / 2
	var wantTotal, off, all float64
	for i := range n {
		var x, y float64
		for j := range n {
			dx, dy := float64(points[2*i]-points[2*j]), float64(points[2*i+1]-points[2*j+1])
			q := 1 / (1 + dx*dx + dy*dy)
			if i != j {
				wantTotal += q
			}
			x += q * q * dx
			y += q * q * dy
		}
		off += math.Pow(x-float64(forces[2*i]), 2) + math.Pow(y-float64(forces[2*i+1]), 2)
		all += x*x + y*y
	}
	t.Logf("%d points of size %g: forces off by %.2g, total by %.2g", n, size, math.Sqrt(off/all), total/wantTotal-1)
	if !(math.Sqrt(off) <= tol*math.Sqrt(all)) || !(math.Abs(total-wantTotal) <= tol*wantTotal) {
		t.Errorf("%d points of size %g: forces are off by %g of %g, the total is %g, want %g", n, size, math.Sqrt(off), math.Sqrt(all), total, wantTotal)
	}
}

// The repulsion is the sum over all pairs, within the error of far cells, after points have
// moved since the cells were made.
func TestFieldIsAllPairs(t *testing.T) {
	for _, tc := range fields {
		before, points := fieldPoints(tc.n, tc.size)
		forces := make([]float32, len(points))
		f := newField(tc.n, make([]float32, 3*tc.n))
		f.divide(before)
		f.summarize(points)
		checkForces(t, tc.size, tc.tol, points, forces, f.repel(forces))
	}
}

// Equal points are one mass: they are not computed pair by pair, which would take minutes.
func TestFieldOfEqualPoints(t *testing.T) {
	const n = 1 << 20
	points, forces := make([]float32, 2*n), make([]float32, 2*n)
	for i := range n {
		points[2*i], points[2*i+1] = 0.1, -3.7
	}
	f := newField(n, make([]float32, 3*n))
	f.divide(points)
	if total := f.repel(forces); math.Abs(total/n/(n-1)-1) > 1e-6 || slices.ContainsFunc(forces, func(f float32) bool { return f != 0 }) {
		t.Errorf("Σ q is %g, want %d, or forces are not 0", total, n*(n-1))
	}
}

// countingForces counts how often cells are made.
type countingForces struct {
	forces
	divisions int
}

func (c *countingForces) divide(at *op.Array) float64 {
	c.divisions++
	return c.forces.divide(at)
}

// Cells of coincident points are not made again for each step, and forces between points that
// are not finite are not computed, which would take all pairs.
func TestForcesOfOddPoints(t *testing.T) {
	const n = 3000
	m, err := model.NewEmbedding(slices.Repeat([]float32{0.1, -3.7}, n), 2, op.ContrastiveOptions{Loss: op.InfoNC})
	must(t, err)
	s := &settings{model: m, n: n, edges: 1, graph: newWholeGraph(n, []int32{0}, []int32{1}, nil)}
	w, err := newWholeBatch(s, m.Parameters()[0].Value)
	must(t, err)
	host := w.forces.(*hostForces)
	counted := &countingForces{forces: host}
	w.forces = counted
	for range 3 {
		w.follow()
	}
	if _, z := w.forces.evaluate(); z != n*(n-1) || counted.divisions != 1 {
		t.Errorf("coincident points: Σ q is %g, want %d; cells were made %d times, want 1", z, n*(n-1), counted.divisions)
	}
	m.Table()[2000] = float32(math.Inf(1))
	host.repelled[0] = 7
	w.follow()
	if _, z := w.forces.evaluate(); !math.IsNaN(z) || host.repelled[0] != 7 {
		t.Errorf("an infinite coordinate: Σ q is %g, force %g, want NaN and none", z, host.repelled[0])
	}
}

// If the gradient is constant, steps at ρ = 1 lead to x + μ·v, where x and v are the position and
// velocity in equations 3 and 4 of Sutskever et al. (2013). Other steps lead to x.
func TestStride(t *testing.T) {
	m, err := model.NewEmbedding(make([]float32, 4), 2, op.ContrastiveOptions{Loss: op.InfoNC})
	must(t, err)
	s := &settings{model: m, n: 2, edges: 1, objective: m.Objective(), graph: newWholeGraph(2, []int32{0}, []int32{1}, nil)}
	w, err := newWholeBatch(s, m.Parameters()[0].Value)
	must(t, err)
	host := w.forces.(*hostForces)
	for exaggeration, mu := range map[float64]float64{0: 0.95, 1: 0.9, 0.5: 0.9, -1: 0.9} {
		e := &epochState{lr: 0.1, spectrum: FromS(exaggeration)}
		clear(m.Table())
		must(t, w.velocity.Zero())
		host.attracted[0], host.own[0] = 3, 2
		x, velocity := 0., 0.
		for step := range 5 {
			host.move(s.strideOf(e), 0)
			velocity = mu*velocity - 0.1*3/2
			x += velocity
			want := x
			if exaggeration == 0 {
				want += mu * velocity
			}
			if got := float64(m.Table()[0]); math.Abs(got-want) > 1e-5 {
				t.Errorf("s = %g: step %d leads to %g, want %g", exaggeration, step, got, want)
			}
		}
	}
}
