package train

import (
	"fmt"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model/op"
)

// A tableRun trains an embedding table on an accelerator without a graph: for
// Euclidean distances in at most four dimensions, negatives drawn singly, and plain
// SGD for the table and log Z. It does what a model.Embedding, that method and a
// contrast do on the CPU, and draws the same negatives; but log Z is of float32. All
// that it needs is in the device's memory, nothing is waited for, and nothing is
// allocated after newTableRun but for the first batch of a size.
//
// A batch's control block is 16 words of 32 bits: the state of the stream
// rng.New(seed, rng.Negatives, epoch, batch) (words 0 and 1, the low half first),
// theta (2; not read for NC-t-SNE), the step size and the bound (+∞ for none) of the
// table's gradient (4 and 5), and those of log Z's (12 and 13).
//
// Once the loss of a batch is not finite, or log Z has left ±maxTheta, status becomes
// 1 more than the batch's number, and nothing moves any more; where the loss was not
// finite, that batch has moved nothing either.
type tableRun struct {
	device              *device.Device
	table, logZ, status *op.Array
	n, d                int
	objective           op.ContrastiveOptions
	limit               device.Arg // of package simd's Bound

	// gradient [n, d] of large batches as fixed-point numbers, zero between them;
	// parts [blocks, 2] are sums of losses and derivatives.
	gradient, parts *op.Array
}

const (
	// tableBlock is the number of threads of the one block that runs through
	// small batches, and pairBlock and finishBlock those of the kernels for a large
	// one.
	tableBlock  = 1024
	pairBlock   = 256
	finishBlock = 256
	// standsBeside is how much of a block's shared memory the kernels need
	// besides what they are given.
	standsBeside = 1 << 10
)

// tableTakes tells whether a tableRun can train a table of width d with an objective.
func tableTakes(objective op.ContrastiveOptions, d int) bool {
	return objective.Metric == op.Euclidean && d >= 1 && d <= 4
}

// newTableRun returns a run for a table [n, d] (float32), of which tableTakes says that
// it can be, log Z [1] (float32), and status [1] (int32, 0), which are on a device.
// Scale and Mean of the objective are as op.Contrastive has them.
func newTableRun(d *device.Device, table, logZ, status *op.Array, objective op.ContrastiveOptions) (*tableRun, error) {
	r := &tableRun{device: d, table: table, logZ: logZ, status: status, n: table.Rows(), d: table.Cols(), objective: objective}
	if !tableTakes(objective, r.d) {
		return nil, fmt.Errorf("train: no table of %d dimensions with the %v metric is trained without a graph", r.d, objective.Metric)
	}
	if r.objective.Scale == 0 {
		r.objective.Scale = 1
	}
	r.limit = device.F32(float64(1 / simd.BoundOf[float32](objective.Clamp).Clamp()))
	return r, nil
}

// small tells whether batches of b edges are for batches: what belongs to one then fits
// in the shared memory of a block. That is so up to some 2800 edges in two dimensions.
func (r *tableRun) small(b int) bool {
	return r.shared(b) <= r.device.Properties().SharedPerBlock-standsBeside
}

// shared returns how many bytes of shared memory a small batch needs: for each
// endpoint the position and the gradient of a point, and slot and row of this batch
// and the next.
func (r *tableRun) shared(b int) int { return 2 * b * (4*r.d + 8*r.d + 4*4) }

// takes says what is wrong with m negatives in batches of b edges: where they are all
// other rows, none are drawn.
func (r *tableRun) takes(b, m int) error {
	if m < 1 || m >= 2*b-2 {
		return fmt.Errorf("train: %d negatives of heads in batches of %d edges are not drawn singly", m, b)
	}
	return nil
}

// norms returns the factors of the losses that are reported, sums over the edges, and
// of gradients.
func (r *tableRun) norms(b int) (ofLoss, ofGradient device.Arg) {
	norm := r.objective.Scale
	if r.objective.Mean {
		norm /= float64(b)
	}
	return device.F32(r.objective.Scale), device.F32(norm)
}

// positive returns 1 if InfoNC's positive pair is part of the sum of similarities.
func (r *tableRun) positive() device.Arg {
	if r.objective.ExcludePositive {
		return device.Int(0)
	}
	return device.Int(1)
}

// batches trains on consecutive small batches of b edges with m negatives for each,
// 1 ≤ m < 2b−2: as many as rows has rows. rows and slots [count, 2·size] (int32), size ≥
// b, hold the distinct points of each batch, as many of them as counts [count] (int32)
// says, and which of these its 2b endpoints are: the heads, then the tails. control
// [count, 16] are the batches' control blocks. losses [count] (float32) become the
// sums of the losses of a batch's edges, times Scale. first is the number of the first
// batch, as status has it.
func (r *tableRun) batches(rows, slots, counts *op.Array, control, losses device.Pointer, b, m, first int) error {
	if err := r.takes(b, m); err != nil {
		return err
	}
	count, stride := rows.Rows(), rows.Cols()
	if !r.small(b) || stride < 2*b || stride%2 != 0 || slots.Cols() != stride {
		return fmt.Errorf("train: batches of %d edges, for which there are %d slots, do not fit in one block of %s", b, stride, r.device.Name())
	}
	if count == 0 {
		return nil
	}
	kernel := fmt.Sprintf("table_batches_d%d", r.d)
	if r.objective.Loss == op.InfoNC {
		kernel = fmt.Sprintf("table_info_batches_d%d", r.d)
	}
	ofLoss, ofGradient := r.norms(b)
	return r.device.Launch(kernel, device.Launch{Grid: 1, Block: tableBlock, Shared: r.shared(b)},
		r.table.Arg(), r.logZ.Arg(), device.Arg(losses), r.status.Arg(), device.Arg(control), rows.Arg(), slots.Arg(), counts.Arg(),
		device.Int(stride), device.Int(b), device.Int(m), device.Int(count), device.Int(first), device.Int(int(r.objective.Loss)), r.positive(),
		r.limit, ofLoss, ofGradient)
}

// batch trains on one batch of b edges with m negatives for each, 1 ≤ m < 2b−2. edges
// are the batch's own, as type edge has them, control is its control block and loss where
// its loss goes, the sum over its edges times Scale. number is the batch's number, as
// status has it.
func (r *tableRun) batch(edges, control, loss device.Pointer, b, m, number int) error {
	if err := r.takes(b, m); err != nil {
		return err
	}
	blocks := parallel.Pieces(b, pairBlock)
	if err := r.reserve(blocks); err != nil {
		return err
	}
	ofLoss, ofGradient := r.norms(b)
	which := device.Int(int(r.objective.Loss))
	if err := r.device.Launch(fmt.Sprintf("table_pairs_%d", r.d), device.Launch{Grid: blocks, Block: pairBlock},
		r.gradient.Arg(), r.parts.Arg(), r.table.Arg(), r.logZ.Arg(), r.status.Arg(), device.Arg(control), device.Arg(edges),
		device.Int(b), device.Int(m), which, r.positive(), r.limit); err != nil {
		return err
	}
	if err := r.device.Launch("table_finish", device.Launch{Grid: 1, Block: finishBlock}, device.Arg(loss), r.logZ.Arg(), r.status.Arg(),
		r.parts.Arg(), device.Arg(control), device.Int(blocks), device.Int(1+number), which, ofLoss, ofGradient); err != nil {
		return err
	}
	return r.device.Each("table_update", r.n*r.d, r.table.Arg(), r.gradient.Arg(), r.status.Arg(), device.Arg(control), ofGradient, device.Int(r.n*r.d))
}

// reserve sees to it that there is room for what large batches of so many blocks leave.
func (r *tableRun) reserve(blocks int) (err error) {
	if r.gradient == nil {
		if r.gradient, err = op.NewArray(r.device, tensor.Int32, r.n, r.d, 2); err != nil {
			return err
		}
		if err = r.gradient.Zero(); err != nil {
			return err
		}
		if r.parts, err = op.NewArray(r.device, tensor.Float32, 0); err != nil {
			return err
		}
	}
	return r.parts.Resize([]int{blocks, 2})
}

// close gives the memory back that the run has taken.
func (r *tableRun) close() {
	for _, a := range []*op.Array{r.gradient, r.parts} {
		if a != nil {
			a.Free()
		}
	}
	r.gradient, r.parts = nil, nil
}
