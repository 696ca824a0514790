package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/internal/device"
	"cne/model/op"
)

// deviceForces are the forces on a device. The CPU brings the points into the order of cells,
// which is seldom necessary.
type deviceForces struct {
	*wholeBatch
	device *device.Device
	field  *field
	memory device.Pieces
	// The arrays of kernels/src/field.c. sums [2, n] are those of field_repel and field_attract,
	// and before that the leaves' radii; totals are two float64.
	cells, firsts, leaves, order, places, sums, totals        device.Pointer
	firstEdges, tails, shares, ownShares, attracted, repelled device.Pointer
}

// upperCells is the number of threads that summarize a level of so many cells, and all above
// it, in one block.
const upperCells = 1024

func newDeviceForces(w *wholeBatch) (f *deviceForces, err error) {
	f = &deviceForces{wholeBatch: w, device: w.points.Device(), field: newField(w.n)}
	n, edges, cells := w.n, len(w.edges), len(f.field.cells)
	if edges > math.MaxInt32 {
		return f, fmt.Errorf("train: edges on an accelerator: got %d, want at most %d", edges, math.MaxInt32)
	}
	if f.memory, err = f.device.AllocPieces(16*cells, 4*cells, 4*f.field.leaves, 4*n, 8*leafPoints*f.field.leaves, 8*n, 16,
		4*(n+1), 4*edges, 4*edges, 4*n, 8*n, 8*n); err != nil {
		return f, err
	}
	for i, p := range []*device.Pointer{&f.cells, &f.firsts, &f.leaves, &f.order, &f.places, &f.sums, &f.totals,
		&f.firstEdges, &f.tails, &f.shares, &f.ownShares, &f.attracted, &f.repelled} {
		*p = f.memory.At(i)
	}
	return f, f.upload()
}

func (f *deviceForces) close() { f.memory.Free() }

// upload copies what no step changes to the device.
func (f *deviceForces) upload() error {
	cells, firsts, leaves := make([][4]float32, len(f.field.cells)), make([]int32, len(f.field.cells)), make([]int32, f.field.leaves)
	for c, cell := range f.field.cells {
		cells[c][3], firsts[c] = float32(cell.size), int32(cell.first)
		if 0 < cell.size && cell.size <= leafPoints {
			leaves[cell.first/leafPoints] = int32(c)
		}
	}
	starts, tails, weights := make([]int32, f.n+1), make([]int32, len(f.edges)), f.weights
	for i, first := range f.starts {
		starts[i] = int32(first)
	}
	for k, e := range f.edges {
		tails[k] = int32(tail(e))
	}
	if weights == nil {
		weights = slices.Repeat(ones[:1], len(f.edges))
	}
	return errors.Join(
		device.Upload(f.device, f.cells, cells), device.Upload(f.device, f.firsts, firsts), device.Upload(f.device, f.leaves, leaves),
		device.Upload(f.device, f.firstEdges, starts), device.Upload(f.device, f.tails, tails), device.Upload(f.device, f.shares, weights),
		device.Upload(f.device, f.ownShares, f.own))
}

func (f *deviceForces) divide(at *op.Array) (extent float64, err error) {
	positions, err := hostCopy(at)
	if err != nil {
		return 0, err
	}
	f.field.divideCell(op.Data[float32](positions), 1)
	order := make([]int32, f.n)
	for i, k := range f.field.keys {
		order[i] = int32(k)
	}
	if err := device.Upload(f.device, f.order, order); err != nil {
		return 0, err
	}
	return f.summarizeAt(at)
}

func (f *deviceForces) summarize() (extent float64, err error) { return f.summarizeAt(f.points) }

func (f *deviceForces) summarizeAt(at *op.Array) (extent float64, err error) {
	leaves := f.field.leaves
	if err := f.device.Each("field_leaves", 32*leaves, device.Arg(f.cells), device.Arg(f.places), device.Arg(f.sums), at.Arg(),
		device.Arg(f.order), device.Arg(f.leaves), device.Int(f.n), device.Int(leaves)); err != nil {
		return 0, err
	}
	level := len(f.field.cells) / 4 // the deepest that has more than leaves
	for ; level > upperCells; level /= 2 {
		if err := f.summarizeLevels(level/upperCells, level, level); err != nil {
			return 0, err
		}
	}
	if err := f.summarizeLevels(1, 1, level); err != nil {
		return 0, err
	}
	totals, err := f.total(1, leaves)
	return totals[0], err
}

// summarizeLevels summarizes the cells low to 2·high−1.
func (f *deviceForces) summarizeLevels(blocks, low, high int) error {
	return f.device.Launch("field_cells", device.Launch{Grid: blocks, Block: upperCells}, device.Arg(f.cells), device.Int(low), device.Int(high))
}

// total returns the sums of one or two rows of n sums.
func (f *deviceForces) total(rows, n int) (totals [2]float64, err error) {
	if err := f.device.Launch("field_totals", device.Launch{Grid: rows, Block: 1024}, device.Arg(f.totals), device.Arg(f.sums), device.Int(n)); err != nil {
		return totals, err
	}
	return totals, device.Download(f.device, totals[:rows], f.totals)
}

func (f *deviceForces) evaluate() (attraction, z float64, err error) {
	if err := f.device.Each("field_repel", f.n, device.Arg(f.repelled), device.Arg(f.sums), device.Arg(f.cells), device.Arg(f.firsts),
		device.Arg(f.places), device.Arg(f.order), device.Arg(f.leaves), device.F32(openingAngle), device.F32(linear), device.Int(f.n)); err != nil {
		return 0, 0, err
	}
	if err := f.device.Each("field_attract", 32*f.n, device.Arg(f.attracted), device.Arg(f.sums.At(f.n, 4)), f.points.Arg(),
		device.Arg(f.firstEdges), device.Arg(f.tails), device.Arg(f.shares), device.Int(f.n)); err != nil {
		return 0, 0, err
	}
	totals, err := f.total(2, f.n)
	return totals[1], totals[0], err
}

func (f *deviceForces) scale(factor float32) error {
	return f.device.Each("field_scale", 2*f.n, f.points.Arg(), device.F32(float64(factor)), device.Int(2*f.n))
}

func (f *deviceForces) move(lr, clip, repulsion float32) error {
	return f.device.Each("field_move", 2*f.n, f.points.Arg(), f.velocity.Arg(), device.Arg(f.attracted), device.Arg(f.repelled),
		device.Arg(f.ownShares), device.F32(wholeMomentum), device.F32(float64(lr)), device.F32(float64(clip)), device.F32(float64(repulsion)),
		device.Int(2*f.n))
}
