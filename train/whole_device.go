package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/model/op"
)

// deviceForces are the forces on a device.
type deviceForces struct {
	*wholeBatch
	device *device.Device
	count  int // of cells, and of places for them
	leaves int
	memory device.Pieces
	// The arrays of kernels/src/field.c; lists are two. sums [2, n] are those of field_repel and
	// field_attract, and before that the leaves' radii; totals are two float64.
	cells, firsts, sizes, rights, leafCells, order, places, sums, totals device.Pointer
	firstEdges, ends, shares, ownShares, attracted, repelled             device.Pointer
	lists, spare, halves, counts                                         device.Pointer
}

const (
	// upperCells is the number of threads that summarize a level of so many cells, and all
	// above it, in one block.
	upperCells = 1024
	// pointsPerTile, digits and coordinatePasses are those of kernels/src/field.c.
	pointsPerTile    = 2048
	digits           = 16
	coordinatePasses = 8
)

func newDeviceForces(w *wholeBatch) (_ *deviceForces, err error) {
	n, edges, cells := w.n, len(w.tails), cellsOf(w.n)
	f := &deviceForces{wholeBatch: w, device: w.points.Device(), count: len(cells), leaves: parallel.Pieces(n, leafPoints)}
	defer kind.Undo(&err, f.close)
	if edges > math.MaxInt32 {
		return nil, fmt.Errorf("train: edges on an accelerator: got %d, want at most %d; device.name: cpu takes more", edges, math.MaxInt32)
	}
	parts := []struct {
		to    *device.Pointer
		bytes int
	}{
		{&f.cells, 16 * f.count}, {&f.firsts, 4 * f.count}, {&f.sizes, 4 * f.count}, {&f.rights, 4 * f.count}, {&f.leafCells, 4 * f.leaves},
		{&f.order, 4 * n}, {&f.places, 8 * leafPoints * f.leaves}, {&f.sums, 8 * n}, {&f.totals, 16},
		{&f.firstEdges, 4 * (n + 1)}, {&f.ends, 4 * edges}, {&f.shares, 4 * edges}, {&f.ownShares, 4 * n},
		{&f.attracted, 8 * n}, {&f.repelled, 8 * n},
		{&f.lists, 8 * n}, {&f.spare, 8 * n}, {&f.halves, 4 * n}, {&f.counts, 4 * 2 * digits * parallel.Pieces(n, pointsPerTile)},
	}
	for _, p := range parts {
		m := kind.Got(f.device.Alloc(p.bytes))
		f.memory, *p.to = append(f.memory, m), m.Pointer()
	}
	kind.Check(f.upload(cells))
	return f, nil
}

func (f *deviceForces) close() { f.memory.Free() }

// upload copies what no step changes to the device.
func (f *deviceForces) upload(cells []cell) error {
	masses, firsts, sizes, rights := make([][4]float32, f.count), make([]int32, f.count), make([]int32, f.count), make([]int32, f.count)
	leaves, before := make([]int32, f.leaves), 0
	for c, at := range cells {
		if c&(c-1) == 0 { // the first of its level
			before = 0
		}
		masses[c][3], firsts[c], sizes[c], rights[c] = float32(at.size), int32(at.first), int32(at.size), int32(before)
		switch {
		case at.size > leafPoints:
			before += at.size - leftSize(at.size)
		case at.size > 0:
			leaves[at.first/leafPoints] = int32(c)
		}
	}
	starts, weights := selection.As[int32](f.starts), f.weights
	if weights == nil {
		weights = slices.Repeat(ones[:1], len(f.tails))
	}
	return errors.Join(
		device.Upload(f.device, f.cells, masses), device.Upload(f.device, f.firsts, firsts), device.Upload(f.device, f.sizes, sizes),
		device.Upload(f.device, f.rights, rights), device.Upload(f.device, f.leafCells, leaves),
		device.Upload(f.device, f.firstEdges, starts), device.Upload(f.device, f.ends, f.tails), device.Upload(f.device, f.shares, weights),
		device.Upload(f.device, f.ownShares, f.own))
}

func (f *deviceForces) arrange(at *op.Array) { f.divide(at) }

// divide makes the same cells as field.divide, but by lists that are sorted: see
// kernels/src/field.c.
func (f *deviceForces) divide(at *op.Array) (extent float64) {
	for pass := range coordinatePasses {
		f.distribute(at, pass, 0)
	}
	for level := 1; level < f.count/2; level *= 2 {
		kind.Check(f.device.Each("field_halve", f.n, device.Arg(f.halves), device.Arg(f.lists), at.Arg(), device.Arg(f.firsts),
			device.Arg(f.sizes), device.Arg(f.leafCells), device.Int(level), device.Int(f.n)))
		f.distribute(at, coordinatePasses, level)
	}
	kind.Check(f.device.Each("field_order", 32*f.leaves, device.Arg(f.order), device.Arg(f.lists), device.Int(f.n)))
	return f.summarizeAt(at)
}

// distribute distributes the lists of points in a pass.
func (f *deviceForces) distribute(at *op.Array, pass, level int) {
	tiles := parallel.Pieces(f.n, pointsPerTile)
	each := device.Launch{Grid: 2 * tiles, Block: 256}
	counts, lists, halves, n := device.Arg(f.counts), device.Arg(f.lists), device.Arg(f.halves), device.Int(f.n)
	kind.Check(f.device.Launch("field_count", each, counts, lists, at.Arg(), halves, device.Int(pass), n))
	kind.Check(f.device.Launch("shuffle_scan", device.Launch{Grid: 2, Block: 1024}, counts, 0, device.Int(digits*tiles)))
	to := device.Arg(f.spare)
	f.lists, f.spare = f.spare, f.lists
	kind.Check(f.device.Launch("field_scatter", each, to, lists, counts, at.Arg(), halves, device.Arg(f.firsts), device.Arg(f.sizes),
		device.Arg(f.rights), device.Arg(f.leafCells), device.Int(pass), device.Int(level), n))
}

func (f *deviceForces) summarize() (extent float64) { return f.summarizeAt(f.points) }

func (f *deviceForces) summarizeAt(at *op.Array) (extent float64) {
	kind.Check(f.device.Each("field_leaves", 32*f.leaves, device.Arg(f.cells), device.Arg(f.places), device.Arg(f.sums), at.Arg(),
		device.Arg(f.order), device.Arg(f.leafCells), device.Int(f.n), device.Int(f.leaves)))
	level := f.count / 4 // the deepest that has more than leaves
	for ; level > upperCells; level /= 2 {
		f.summarizeLevels(level/upperCells, level, level)
	}
	f.summarizeLevels(1, 1, level)
	return f.total(1, f.leaves)[0]
}

// summarizeLevels summarizes the cells low to 2·high−1.
func (f *deviceForces) summarizeLevels(blocks, low, high int) {
	kind.Check(f.device.Launch("field_cells", device.Launch{Grid: blocks, Block: upperCells}, device.Arg(f.cells), device.Int(low), device.Int(high)))
}

// total returns the sums of one or two rows of n sums.
func (f *deviceForces) total(rows, n int) (totals [2]float64) {
	kind.Check(f.device.Launch("field_totals", device.Launch{Grid: rows, Block: 1024}, device.Arg(f.totals), device.Arg(f.sums), device.Int(n)))
	kind.Check(device.Download(f.device, totals[:rows], f.totals))
	return totals
}

func (f *deviceForces) evaluate() (attraction, z float64) {
	kind.Check(f.device.Each("field_repel", f.n, device.Arg(f.repelled), device.Arg(f.sums), device.Arg(f.cells), device.Arg(f.firsts),
		device.Arg(f.places), device.Arg(f.order), device.Arg(f.leafCells), device.F32(openingAngle), device.F32(linear), device.Int(f.n)))
	kind.Check(f.device.Each("field_attract", 32*f.n, device.Arg(f.attracted), device.Arg(f.sums.At(f.n, 4)), f.points.Arg(),
		device.Arg(f.firstEdges), device.Arg(f.ends), device.Arg(f.shares), device.Int(f.n)))
	totals := f.total(2, f.n)
	return totals[1], totals[0]
}

func (f *deviceForces) scale(factor float32) {
	kind.Check(f.device.Each("field_scale", 2*f.n, f.points.Arg(), device.F32(float64(factor)), device.Int(2*f.n)))
}

func (f *deviceForces) move(s stride, repulsion float32) {
	ahead := float32(0)
	if s.nesterov {
		ahead = s.momentum
	}
	kind.Check(f.device.Each("field_move", 2*f.n, f.points.Arg(), f.velocity.Arg(), device.Arg(f.attracted), device.Arg(f.repelled),
		device.Arg(f.ownShares), device.F32(float64(s.momentum)), device.F32(float64(ahead)), device.F32(float64(s.lr)),
		device.F32(float64(s.clip)), device.F32(float64(repulsion)), device.Int(2*f.n)))
}
