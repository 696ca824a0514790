package train

import (
	"math"
	"slices"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// leafPoints is the number of points of a leaf. They are the targets of one call of
	// simd.Field.
	leafPoints = simd.FieldTargets
	// openingAngle is the largest apparent size of a cell from a leaf that counts as a single
	// mass. The apparent size is the sum of both radii divided by the distance of their
	// centres.
	openingAngle = 0.7
	// linear is a distance within which forces grow linearly, so a mass at the centre
	// has the force of all points.
	linear = 0.01
	// leavesPerPiece is the number of leaves that are worth another core.
	leavesPerPiece = 16
)

// A field computes the repulsion between all points in the plane, after Barnes and Hut
// (1986). The points are repeatedly halved into cells of near points. A cell that is small
// compared to its distance from a leaf counts as one mass at its centre. Near leaves are
// computed point by point. The result depends only on the points.
type field struct {
	leaves int
	order  []uint32  // the points in the order of the leaves
	masses []float32 // [n, 3] in this order: x, y and 1, as simd.Field takes them
	cells  []cell    // cell 1 is all points, cells 2c and 2c+1 are the halves of cell c
	totals []float64 // by leaf: Σ q over its points and all others
	byY    []uint32  // while cells are made: their points in the order of y, as order has them by x
	spare  [2][]uint32
	halves []uint8 // by point: which half of its cell it is in
	pools  parallel.Pool[[]float32]
}

// A cell has size points, starting with number first.
type cell struct {
	first, size int
	x, y        float32 // the mean of its points
	radius      float32 // no point is farther from the mean
}

func newField(n int) *field {
	f := &field{leaves: parallel.Pieces(n, leafPoints), order: make([]uint32, n), masses: make([]float32, 3*n), cells: cellsOf(n)}
	f.totals, f.byY, f.halves = make([]float64, f.leaves), make([]uint32, n), make([]uint8, n)
	f.spare = [2][]uint32{make([]uint32, n), make([]uint32, n)}
	f.pools.New = func() *[]float32 { return new([]float32) }
	return f
}

// cellsOf returns the cells of n points, with their points' places, which depend only on n.
func cellsOf(n int) []cell {
	count := 2
	for size := n; size > leafPoints; size = leftSize(size) {
		count *= 2
	}
	cells := make([]cell, count)
	cells[1].size = n
	for c := range count / 2 {
		if all := cells[c]; all.size > leafPoints {
			left := leftSize(all.size)
			cells[2*c], cells[2*c+1] = cell{first: all.first, size: left}, cell{first: all.first + left, size: all.size - left}
		}
	}
	return cells
}

// leftSize returns the size of the first half of a cell: all leaves but the last are full.
func leftSize(size int) int {
	leaves := (size + leafPoints - 1) / leafPoints
	return (leaves + 1) / 2 * leafPoints
}

// divide makes the cells for points, and returns the sum of the leaves' radii.
func (f *field) divide(points []float32) (extent float64) {
	parallel.For(2, 1, func(_, c, _ int) { sortBy([2][]uint32{f.order, f.byY}[c], f.spare[c], points, c) })
	f.divideCell(points, 1)
	return f.summarize(points, 1)
}

// repel sets forces [n, 2] to Σ q²·(x−x′) over all points x′ for each point x in the
// cells, and returns Σ q over all ordered pairs of points.
func (f *field) repel(forces []float32) float64 {
	parallel.For(f.leaves, leavesPerPiece, func(_, lo, hi int) {
		sources := f.pools.Get()
		for leaf := lo; leaf < hi; leaf++ {
			*sources = f.repelLeaf(forces, leaf, (*sources)[:0])
		}
		f.pools.Put(sources)
	})
	return selection.Sum(f.totals)
}

// growAlone is the largest size of a cell that one core processes together with all cells
// below it.
const growAlone = 1 << 13

// below calls do for both halves of cell c, and returns what do returns. Most cells are small:
// for these it allocates nothing.
func (f *field) below(points []float32, c int, do func(f *field, points []float32, c int) float64) (left, right float64) {
	if f.cells[c].size <= growAlone {
		return do(f, points, 2*c), do(f, points, 2*c+1)
	}
	var sums [2]float64
	parallel.For(2, 1, func(_, half, _ int) { sums[half] = do(f, points, 2*c+half) })
	return sums[0], sums[1]
}

// sortBy sets to to the points in the order of coordinate c, and of their numbers where it is
// equal, by three distributions over 11 bits. An odd number of them ends in to.
func sortBy(to, spare []uint32, points []float32, c int) {
	const bits, passes = 11, 3
	var next [passes][1 << bits]uint32
	digit := func(p uint32, pass int) uint32 {
		return selection.Ordered(points[2*p+uint32(c)]) >> (bits * pass) & (1<<bits - 1)
	}
	for p := range uint32(len(to)) {
		for pass := range passes {
			next[pass][digit(p, pass)]++
		}
		spare[p] = p
	}
	for pass := range passes {
		at := uint32(0)
		for d, count := range next[pass] {
			next[pass][d] = at
			at += count
		}
		for _, p := range spare {
			d := digit(p, pass)
			to[next[pass][d]] = p
			next[pass][d]++
		}
		to, spare = spare, to
	}
}

// divideCell divides the points of cell c among the leaves. The points of a leaf are sorted by
// number, so no result depends on their order before. It returns 0, as below wants.
func (f *field) divideCell(points []float32, c int) float64 {
	at := &f.cells[c]
	first, end := at.first, at.first+at.size
	if at.size <= leafPoints {
		slices.Sort(f.order[first:end])
		return 0
	}
	by, other := f.order[first:end], f.byY[first:end]
	across, up := points[2*by[len(by)-1]]-points[2*by[0]], points[2*other[len(by)-1]+1]-points[2*other[0]+1]
	if up > across { // the points are halved where they spread farther
		by, other = other, by
	}
	left := f.cells[2*c].size
	for i, p := range by {
		f.halves[p] = 0
		if i >= left {
			f.halves[p] = 1
		}
	}
	second, left, right := f.spare[0][first:end], 0, 0
	for _, p := range other {
		half := int(f.halves[p])
		other[left], second[right] = p, p
		left, right = left+1-half, right+half
	}
	copy(other[left:], second[:right])
	f.below(points, c, (*field).divideCell)
	return 0
}

// summarize sets the mean and radius of cell c and of all below it, and returns the sum of the
// radii of the leaves.
func (f *field) summarize(points []float32, c int) float64 {
	at := &f.cells[c]
	if at.size <= leafPoints {
		f.summarizeLeaf(points, at)
		return float64(at.radius)
	}
	left, right := f.below(points, c, (*field).summarize)
	a, b := &f.cells[2*c], &f.cells[2*c+1]
	share := float32(b.size) / float32(at.size)
	at.x, at.y = a.x+float32(share*(b.x-a.x)), a.y+float32(share*(b.y-a.y))
	at.radius = max(a.radius+distance(at, a), b.radius+distance(at, b)) * (1 + 1e-6)
	return left + right
}

// summarizeLeaf sets the mean and radius of a leaf, and its masses.
func (f *field) summarizeLeaf(points []float32, at *cell) {
	order := f.order[at.first : at.first+at.size]
	x0, y0 := points[2*order[0]], points[2*order[0]+1] // for equal points this is exactly the mean
	var sumX, sumY float32
	for i, p := range order {
		x, y := points[2*p], points[2*p+1]
		copy(f.masses[3*(at.first+i):], []float32{x, y, 1})
		sumX += x - x0
		sumY += y - y0
	}
	at.x, at.y = x0+sumX/float32(at.size), y0+sumY/float32(at.size)
	at.radius = 0
	for i := range order {
		m := f.masses[3*(at.first+i):]
		at.radius = max(at.radius, distance(at, &cell{x: m[0], y: m[1]}))
	}
}

func distance(a, b *cell) float32 {
	x, y := a.x-b.x, a.y-b.y
	return float32(math.Sqrt(float64(float32(x*x) + float32(y*y))))
}

// repelLeaf sets the forces of a leaf's points. It returns sources, for reuse of its
// memory.
func (f *field) repelLeaf(forces []float32, leaf int, sources []float32) []float32 {
	c := 1
	for f.cells[c].size > leafPoints {
		c *= 2
		if leaf*leafPoints >= f.cells[c+1].first {
			c++
		}
	}
	at := &f.cells[c]
	sources = f.meet(sources, at, 1)
	var targets [2 * leafPoints]float32
	for i := range at.size {
		m := f.masses[3*(at.first+i):]
		targets[i], targets[leafPoints+i] = m[0], m[1]
	}
	var sums [3 * leafPoints]float32
	simd.Field(&sums, &targets, sources)
	total := 0.
	for i, k := range f.order[at.first : at.first+at.size] {
		total += float64(sums[i]) - 1 // without the point itself
		forces[2*k], forces[2*k+1] = sums[leafPoints+i], sums[2*leafPoints+i]
	}
	f.totals[leaf] = total
	return sources
}

// meet appends the sources of cell c for a leaf: a mass, points, or the sources of its
// halves.
func (f *field) meet(sources []float32, leaf *cell, c int) []float32 {
	at := &f.cells[c]
	apart, radii := distance(at, leaf), at.radius+leaf.radius
	if at.radius == 0 || radii < openingAngle*apart || radii+apart < linear {
		return append(sources, at.x, at.y, float32(at.size))
	}
	if at.size <= leafPoints {
		return append(sources, f.masses[3*at.first:3*(at.first+at.size)]...)
	}
	return f.meet(f.meet(sources, leaf, 2*c), leaf, 2*c+1)
}
