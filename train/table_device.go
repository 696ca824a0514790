package train

import (
	"cmp"
	"fmt"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/parallel"
	"cne/internal/simd"
	"cne/model/op"
)

// A tableRun trains an embedding table on a device without a Gorgonia graph: with
// Euclidean distances in at most four dimensions, negatives that each head draws on its
// own, and plain SGD for the table and log Z. It does what a model.Embedding, SGD and a
// negativeSampler do on the CPU, with the same negatives, but log Z is a float32. It
// never waits for the device, and allocates nothing after the first batch of a size.
//
// A batch's control block (putControl) is 16 words of 32 bits. Used are the state of
// the stream rng.New(seed, rng.Negatives, epoch, batch) (words 0 and 1, the low half
// first), logConst (2, not for NC-t-SNE), step size and bound (+∞ for none) of the
// table's gradient (4 and 5), and those of log Z's (12 and 13).
//
// When the loss of a batch is not finite, or log Z leaves ±maxLogConst, status becomes
// 1 + the batch's number. From then on nothing moves; if the loss was not finite, that
// batch has moved nothing either.
type tableRun struct {
	device              *device.Device
	table, logZ, status *op.Array
	n, d                int
	objective           op.ContrastiveOptions
	positive            device.Arg // 1 if InfoNC's positive pair is part of the sum of similarities
	limit               device.Arg // the reciprocal of package simd's clamp

	// gradient [n, d] is that of a large batch in fixed-point numbers, zero between
	// batches; parts [blocks, 2] are sums of losses and of derivatives.
	gradient, parts *op.Array
}

const (
	// tableBlock is the number of threads of the one block that trains on small
	// batches; pairBlock and finishBlock are those of the kernels for a large one.
	tableBlock  = 1024
	pairBlock   = 256
	finishBlock = 256
	// reservedShared is the shared memory, in bytes, that the kernels need besides
	// what they are given.
	reservedShared = 1 << 10
)

// tableTakes tells whether a tableRun can train a table of width d with an objective.
func tableTakes(objective op.ContrastiveOptions, d int) bool {
	return objective.Metric == op.Euclidean && d >= 1 && d <= 4
}

// newTableRun returns a run for a table [n, d] (float32) that tableTakes accepts, log Z
// [1] (float32), and status [1] (int32, 0), which are on a device.
func newTableRun(d *device.Device, table, logZ, status *op.Array, objective op.ContrastiveOptions) (*tableRun, error) {
	r := &tableRun{device: d, table: table, logZ: logZ, status: status, n: table.Rows(), d: table.Cols(), objective: objective, positive: device.Int(1)}
	if !tableTakes(objective, r.d) {
		return nil, fmt.Errorf("train: no table of %d dimensions with the %v metric is trained without a graph", r.d, objective.Metric)
	}
	if objective.ExcludePositive {
		r.positive = device.Int(0)
	}
	r.objective.Scale = cmp.Or(objective.Scale, 1)
	r.limit = device.F32(float64(1 / simd.BoundOf[float32](objective.Clamp).Clamp()))
	return r, nil
}

// small tells whether the data of a batch of b edges fit the shared memory of a block,
// so that method batches takes it: up to some 2800 edges in two dimensions.
func (r *tableRun) small(b int) bool {
	return r.shared(b) <= r.device.Properties().SharedPerBlock-reservedShared
}

// shared returns the bytes of shared memory that a small batch needs: for each endpoint
// the position and the gradient of a point, and local number and row in this batch and
// the next.
func (r *tableRun) shared(b int) int { return 2 * b * (4*r.d + 8*r.d + 4*4) }

// takes returns an error unless heads in batches of b edges each draw m negatives; with
// m = 2b−2, which are all other rows, they draw none.
func (r *tableRun) takes(b, m int) error {
	if m < 1 || m >= 2*b-2 {
		return fmt.Errorf("train: %d negatives of heads in batches of %d edges are not drawn singly", m, b)
	}
	return nil
}

// norms returns the factors of the reported losses, which are sums over the edges, and
// of the gradients.
func (r *tableRun) norms(b int) (ofLoss, ofGradient device.Arg) {
	norm := r.objective.Scale
	if r.objective.Mean {
		norm /= float64(b)
	}
	return device.F32(r.objective.Scale), device.F32(norm)
}

// batches trains on consecutive small batches of b edges with m negatives each, 1 ≤ m <
// 2b−2. rows, local [count, 2·size] (int32, size ≥ b) and counts [count] (int32) are
// those of a deviceLayout, and control [count, 16] the batches' control blocks. losses
// [count] (float32) become the sums of the losses of a batch's edges, times Scale. first
// is the number of the first batch in status.
func (r *tableRun) batches(rows, local, counts *op.Array, control, losses device.Pointer, b, m, first int) error {
	if err := r.takes(b, m); err != nil {
		return err
	}
	count, stride := rows.Rows(), rows.Cols()
	if !r.small(b) || stride < 2*b || stride%2 != 0 || local.Cols() != stride {
		return fmt.Errorf("train: batches of %d edges, with room for %d ends, do not fit in one block of %s", b, stride, r.device.Name())
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
		r.table.Arg(), r.logZ.Arg(), device.Arg(losses), r.status.Arg(), device.Arg(control), rows.Arg(), local.Arg(), counts.Arg(),
		device.Int(stride), device.Int(b), device.Int(m), device.Int(count), device.Int(first), device.Int(int(r.objective.Loss)), r.positive,
		r.limit, ofLoss, ofGradient)
}

// batch trains on one batch of b edges with m negatives each, 1 ≤ m < 2b−2. edges is the
// address of these (type edge), control that of its control block, and loss that of its
// loss, the sum over its edges times Scale. number is the batch's number in status.
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
		device.Int(b), device.Int(m), which, r.positive, r.limit); err != nil {
		return err
	}
	if err := r.device.Launch("table_finish", device.Launch{Grid: 1, Block: finishBlock}, device.Arg(loss), r.logZ.Arg(), r.status.Arg(),
		r.parts.Arg(), device.Arg(control), device.Int(blocks), device.Int(1+number), which, ofLoss, ofGradient); err != nil {
		return err
	}
	return r.device.Each("table_update", r.n*r.d, r.table.Arg(), r.gradient.Arg(), r.status.Arg(), device.Arg(control), ofGradient, device.Int(r.n*r.d))
}

// reserve allocates what large batches of so many blocks need.
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

// close frees the run's own memory.
func (r *tableRun) close() {
	free(r.gradient, r.parts)
}
