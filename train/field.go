package train

import (
	"math"
	"math/bits"
	"unsafe"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// leafPoints is the number of points of a leaf. They are the targets of one call of
	// simd.Field.
	leafPoints = simd.FieldTargets
	// openingAngle is the largest apparent size of a cell from another for which it counts as a
	// single mass. The apparent size is the sum of both radii divided by the distance of their
	// centres.
	openingAngle = 0.85
	// linear is a distance within which forces grow linearly, so a mass at the centre
	// has the force of all points.
	linear = 0.01
	// groupPoints is the number of points that are worth another core, whose leaves look for
	// their sources together.
	groupPoints = 8 * leafPoints
	// leavesPerPiece is the number of leaves that are worth another core.
	leavesPerPiece = 16
)

// A field computes the repulsion between all points in the plane, after Barnes and Hut
// (1986). The points are repeatedly halved into cells of near points. A cell that is small
// compared to its distance from some leaves counts as one mass at its centre. Near leaves are
// computed point by point. The result depends only on the points.
type field struct {
	order     []uint32   // the points in the order of the leaves
	masses    []float32  // [n, 3] in this order: x, y and 1, as simd.Field takes them
	cells     []cell     // cell 1 is all points, cells 2c and 2c+1 are the halves of cell c
	leafCells []int      // the cells of the leaves
	groups    []int      // the largest cells of at most groupPoints points
	totals    []float64  // by leaf: Σ q over its points and all others
	entries   [2][]entry // the points while cells are made; levels of cells take turns. The first is masses
	keys      parallel.Pool[[]uint64]
	sources   parallel.Pool[sources]
}

// A cell has size points, starting with number first.
type cell struct {
	first, size int
	x, y        float32 // the mean of its points
	radius      float32 // no point is farther from the mean
}

// An entry is a point that is sorted into cells: its position and the bits of its number.
type entry [3]float32

func (e *entry) number() uint32 { return math.Float32bits(e[2]) }

// key orders entries along an axis, and equal ones by their numbers.
func (e *entry) key(axis int) uint64 {
	return uint64(selection.Ordered(e[axis]))<<32 | uint64(e.number())
}

// newField returns the field of n points. spare, of 3n numbers or more, is overwritten while
// cells are made.
func newField(n int, spare []float32) *field {
	f := &field{order: selection.UpTo[uint32](n), masses: make([]float32, 3*n), cells: cellsOf(n)}
	for c, at := range f.cells {
		if at.size > 0 && at.size <= leafPoints {
			f.leafCells = append(f.leafCells, c)
		}
		if at.size > 0 && at.size <= groupPoints && (c == 1 || f.cells[c/2].size > groupPoints) {
			f.groups = append(f.groups, c)
		}
	}
	f.totals = make([]float64, len(f.leafCells))
	f.entries = [2][]entry{unsafe.Slice((*entry)(f.masses), n), unsafe.Slice((*entry)(spare), n)}
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

// divide makes the cells for points, and returns the sum of the leaves' radii. Points that are
// not finite leave the cells as they are.
func (f *field) divide(points []float32) (extent float64) {
	if simd.AllFinite(points) {
		for i := range f.entries[1] {
			f.entries[1][i] = entry{points[2*i], points[2*i+1], math.Float32frombits(uint32(i))}
		}
		f.divideCell(1)
	}
	return f.summarize(points)
}

// growAlone is the largest size of a cell that one core processes together with all cells
// below it.
const growAlone = 1 << 13

// divideCell divides the points of cell c among the leaves. The points of each cell stay in the
// order of their numbers, so no result depends on how they were divided before.
func (f *field) divideCell(c int) {
	at := &f.cells[c]
	first, end, level := at.first, at.first+at.size, bits.Len(uint(c))
	points, halves := f.entries[level%2][first:end], f.entries[1-level%2][first:end]
	if at.size <= leafPoints {
		for i, p := range points {
			f.order[first+i] = p.number()
		}
		return
	}
	left, right := 0, f.cells[2*c].size
	axis, low, high := widest(points)
	middle := f.quantile(points, right, axis, low, high)
	for i := range points {
		to, second := left, 0
		if points[i].key(axis) >= middle {
			to, second = right, 1
		}
		halves[to] = points[i]
		left, right = left+1-second, right+second
	}
	if at.size <= growAlone {
		f.divideCell(2 * c)
		f.divideCell(2*c + 1)
		return
	}
	parallel.For(2, 1, func(_, half, _ int) { f.divideCell(2*c + half) })
}

// widest returns the axis along which the points spread farther, and their range there.
func widest(points []entry) (axis int, low, high float32) {
	x0, y0 := points[0][0], points[0][1]
	x1, y1 := x0, y0
	for i := range points {
		x, y := points[i][0], points[i][1]
		if x < x0 {
			x0 = x
		}
		if x > x1 {
			x1 = x
		}
		if y < y0 {
			y0 = y
		}
		if y > y1 {
			y1 = y
		}
	}
	if y1-y0 > x1-x0 {
		return 1, y0, y1
	}
	return 0, x0, x1
}

// quantile returns the key of the point that k others precede along an axis, where the points
// extend from low to high. It counts the points in bins, and searches the bin of that point.
func (f *field) quantile(points []entry, k, axis int, low, high float32) uint64 {
	const bins = 64
	scale := (bins - 1) / (high - low)
	if !simd.IsFinite(scale) {
		scale = 0 // the points are equal, or nearly so
	}
	bin := func(p *entry) uint32 { return uint32(int32((p[axis]-low)*scale)) % bins }
	var counts [bins]int
	for i := range points {
		counts[bin(&points[i])]++
	}
	b := 0
	for ; counts[b] <= k; b++ {
		k -= counts[b]
	}
	keys := f.keys.Get()
	defer f.keys.Put(keys)
	*keys = (*keys)[:0]
	for i := range points {
		if bin(&points[i]) == uint32(b) {
			*keys = append(*keys, points[i].key(axis))
		}
	}
	return selection.Smallest(*keys, k+1)
}

// summarize sets the means and radii of the cells for new positions of the points, and returns
// the sum of the leaves' radii.
func (f *field) summarize(points []float32) (extent float64) {
	parallel.For(len(f.leafCells), leavesPerPiece, func(_, lo, hi int) {
		for _, c := range f.leafCells[lo:hi] {
			f.summarizeLeaf(points, &f.cells[c])
		}
	})
	for c := len(f.cells)/2 - 1; c > 0; c-- {
		if at, a, b := &f.cells[c], &f.cells[2*c], &f.cells[2*c+1]; at.size > leafPoints {
			share := float32(b.size) / float32(at.size)
			at.x, at.y = a.x+float32(share*(b.x-a.x)), a.y+float32(share*(b.y-a.y))
			at.radius = max(a.radius+distance(at, a), b.radius+distance(at, b)) * (1 + 1e-6)
		}
	}
	for _, c := range f.leafCells {
		extent += float64(f.cells[c].radius)
	}
	return extent
}

// summarizeLeaf sets the mean and radius of a leaf, and its masses.
func (f *field) summarizeLeaf(points []float32, at *cell) {
	order, masses := f.order[at.first:at.first+at.size], f.masses[3*at.first:]
	x0, y0 := points[2*order[0]], points[2*order[0]+1] // for equal points this is exactly the mean
	var sumX, sumY float32
	for i, p := range order {
		x, y := points[2*p], points[2*p+1]
		masses[3*i], masses[3*i+1], masses[3*i+2] = x, y, 1
		sumX += x - x0
		sumY += y - y0
	}
	at.x, at.y = x0+sumX/float32(at.size), y0+sumY/float32(at.size)
	at.radius = 0
	for i := range order {
		at.radius = max(at.radius, distance(at, &cell{x: masses[3*i], y: masses[3*i+1]}))
	}
}

func distance(a, b *cell) float32 {
	x, y := a.x-b.x, a.y-b.y
	return float32(math.Sqrt(float64(float32(x*x) + float32(y*y))))
}

// repel sets forces [n, 2] to Σ q²·(x−x′) over all points x′ for each point x in the
// cells, and returns Σ q over all ordered pairs of points.
func (f *field) repel(forces []float32) float64 {
	parallel.For(len(f.groups), 1, func(g, _, _ int) {
		s := f.sources.Get()
		f.repelCell(forces, s, f.groups[g], []int{1})
		f.sources.Put(s)
	})
	return selection.Sum(f.totals)
}

// sources are what acts on a cell.
type sources struct {
	far     []float32 // x, y and mass of far cells
	waiting []int     // cells that may be near to a part of the cell
	near    [][2]int  // the first point of consecutive near leaves, and the first after them
}

// repelCell sets the forces on the points of cell c, on which the sources and some cells act.
func (f *field) repelCell(forces []float32, s *sources, c int, cells []int) {
	at, far, waiting := &f.cells[c], len(s.far), len(s.waiting)
	s.near = s.near[:0]
	for _, other := range cells {
		f.meet(s, at, other)
	}
	if at.size <= leafPoints {
		f.repelLeaf(forces, s, at)
	} else {
		cells = s.waiting[waiting:]
		f.repelCell(forces, s, 2*c, cells)
		f.repelCell(forces, s, 2*c+1, cells)
	}
	s.far, s.waiting = s.far[:far], s.waiting[:waiting]
}

// meet adds what a cell does to another to the sources: a mass, or what its halves do. Cells
// that are too near wait for the parts of the other, and leaves act on a leaf point by point.
func (f *field) meet(s *sources, at *cell, other int) {
	by := &f.cells[other]
	x, y, radii := by.x-at.x, by.y-at.y, by.radius+at.radius
	squared := float32(x*x) + float32(y*y)
	switch last := len(s.near) - 1; {
	case radii*radii < openingAngle*openingAngle*squared || by.radius == 0 || radii+float32(math.Sqrt(float64(squared))) < linear:
		s.far = append(s.far, by.x, by.y, float32(by.size))
	case by.size > max(at.size, leafPoints):
		f.meet(s, at, 2*other)
		f.meet(s, at, 2*other+1)
	case at.size > leafPoints:
		s.waiting = append(s.waiting, other)
	case last >= 0 && s.near[last][1] == by.first:
		s.near[last][1] += by.size
	default:
		s.near = append(s.near, [2]int{by.first, by.first + by.size})
	}
}

// repelLeaf sets the forces of a leaf's points.
func (f *field) repelLeaf(forces []float32, s *sources, at *cell) {
	var targets [2 * leafPoints]float32
	for i := range at.size {
		m := f.masses[3*(at.first+i):]
		targets[i], targets[leafPoints+i] = m[0], m[1]
	}
	var sums [3 * leafPoints]float32
	simd.Field(&sums, &targets, s.far)
	for _, r := range s.near {
		simd.Field(&sums, &targets, f.masses[3*r[0]:3*r[1]])
	}
	total := 0.
	for i, k := range f.order[at.first : at.first+at.size] {
		total += float64(sums[i]) - 1 // without the point itself
		forces[2*k], forces[2*k+1] = sums[leafPoints+i], sums[2*leafPoints+i]
	}
	f.totals[at.first/leafPoints] = total
}
