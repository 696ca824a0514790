package train

import (
	"cmp"
	"errors"
	"fmt"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model/op"
)

// A tableRun trains table, the positions of a model.Embedding, on a device without a
// Gorgonia graph. It supports Euclidean distances in at most four dimensions, negatives
// drawn for each head separately, and plain SGD for the table and log Z. Its steps equal
// the steps of model.Embedding, SGD and negativeSampler on the CPU, with the same
// negatives, but log Z is a float32. It never waits for the device, and allocates nothing
// after the first batch of a size.
//
// It uses these words of a batch's control block (putControl): 0 and 1, the state of the
// stream rng.New(seed, rng.Negatives, epoch, batch), low half first; 2, logConst, except
// for NC-t-SNE; 4 and 5, the table's learning rate and clip bound (+∞ for none); 12 and
// 13, the same for log Z.
//
// When a batch's loss is not finite, or log Z leaves ±maxLogConst, status becomes 1 + the
// batch's number, and no later batch changes anything. A batch whose loss is not finite
// changes nothing either.
type tableRun struct {
	device              *device.Device
	table, logZ, status *op.Array
	n, d                int
	objective           op.ContrastiveOptions
	limit               device.Arg // 1/clamp

	// gradient [n, d] is a large batch's, in fixed point and zero between batches;
	// parts [blocks, 2] are sums of losses and of derivatives.
	gradient, parts *op.Array

	// single is the reason why one block, instead of a cluster, trains small batches; "" if a
	// cluster can. noted is the last note to the device about it.
	single, noted string
}

const (
	// tableBlock is the number of threads if one block trains small batches, and clusterBlock
	// the number in each of a cluster's clusterBlocks blocks. pairBlock and finishBlock are
	// for the kernels for large batches.
	tableBlock    = 1024
	clusterBlocks = 8
	clusterBlock  = 256
	pairBlock     = 256
	finishBlock   = 256
	// reservedShared is an upper bound of the kernels' static shared memory, in bytes.
	reservedShared = 1 << 10
)

// tableTakes reports whether a tableRun can train positions of width d with an objective.
func tableTakes(objective op.ContrastiveOptions, d int) bool {
	return objective.Metric == op.Euclidean && d >= 1 && d <= 4
}

// newTableRun returns a run for arrays on a device: positions [n, d] (float32) that
// tableTakes accepts, log Z [1] (float32), and status [1] (int32, 0).
func newTableRun(d *device.Device, table, logZ, status *op.Array, objective op.ContrastiveOptions) *tableRun {
	r := &tableRun{device: d, table: table, logZ: logZ, status: status, n: table.Rows(), d: table.Cols(), objective: objective}
	r.objective.Scale = cmp.Or(objective.Scale, 1)
	r.limit = device.F32(float64(1 / simd.BoundOf[float32](objective.Clamp).Clamp()))
	if !d.Properties().Clusters {
		r.single = "this GPU has no clusters of blocks"
	}
	return r
}

// small reports whether the method batches can train on batches of b edges. It has
// kernels for two and three dimensions. The data of a batch must fit a block's shared
// memory: up to about 2800 edges in two dimensions.
func (r *tableRun) small(b int) bool {
	return op.HasOwnKernels(r.d) && r.shared(b) <= r.device.Properties().SharedPerBlock-reservedShared
}

// shared returns the shared memory for a small batch, in bytes: for each endpoint a
// point's position and gradient, and local numbers and rows for this batch and the
// next.
func (r *tableRun) shared(b int) int { return 2 * b * (4*r.d + 8*r.d + 4*4) }

// sharedOfCluster is shared for each block of a cluster: it has the gradient of two
// batches, and no positions.
func (r *tableRun) sharedOfCluster(b int) int { return 2 * b * (2*8*r.d + 4*4) }

// whySingle returns the reason why one block trains small batches of b edges; "" if a
// cluster trains them.
func (r *tableRun) whySingle(b int) string {
	if need, most := r.sharedOfCluster(b), r.device.Properties().SharedPerBlock-reservedShared; r.single == "" && need > most {
		return fmt.Sprintf("a cluster's blocks would need %s of shared memory each and have %s", memory.Bytes(int64(need)),
			memory.Bytes(int64(most)))
	}
	return r.single
}

// takes reports whether heads in batches of b edges can draw m negatives each: at least one,
// and fewer than all other rows.
func (r *tableRun) takes(b, m int) bool { return m >= 1 && m < 2*b-2 }

// norms returns the factors of the gradients and of the reported losses. Losses are sums
// over the edges.
func (r *tableRun) norms(b int) (ofLoss, ofGradient device.Arg) {
	norm := r.objective.Scale
	if r.objective.Mean {
		norm /= float64(b)
	}
	return device.F32(r.objective.Scale), device.F32(norm)
}

// batches trains on consecutive small batches of b edges, by a cluster of blocks if the
// device has them and otherwise by one block, with the same results. small must accept b,
// and takes must accept b and m, the number of negatives of each head. rows, local
// [count, 2·size] (int32, size ≥ b) and counts [count] (int32) are parts of a
// deviceLayout. control [count, 16] has the control blocks. losses [count] (float32)
// become the sums of the batches' losses over their edges, times Scale. first is the
// first batch's number for status.
func (r *tableRun) batches(rows, local, counts *op.Array, control, losses device.Pointer, b, m, first int) error {
	count, stride := rows.Rows(), rows.Cols()
	names := selection.If(r.objective.Loss.Info().PerHead,
		[]string{"table_info_batches_d%d", "table_info_cluster_d%d"}, []string{"table_batches_d%d", "table_cluster_d%d"})
	ofLoss, ofGradient := r.norms(b)
	launch := func(name string, l device.Launch) error {
		return r.device.Launch(fmt.Sprintf(name, r.d), l,
			r.table.Arg(), r.logZ.Arg(), device.Arg(losses), r.status.Arg(), device.Arg(control), rows.Arg(), local.Arg(), counts.Arg(),
			device.Int(stride), device.Int(b), device.Int(m), device.Int(count), device.Int(first), device.Int(int(r.objective.Loss)),
			r.limit, ofLoss, ofGradient)
	}
	if r.whySingle(b) == "" {
		err := launch(names[1], device.Launch{Grid: clusterBlocks, Block: clusterBlock, Shared: r.sharedOfCluster(b)})
		if err == nil || errors.Is(err, device.ErrLost) {
			return err
		}
		// Nothing has run: on a part of a GPU, too few multiprocessors may be free together.
		r.single = fmt.Sprintf("a cluster does not start (%v)", err)
	}
	if why := r.whySingle(b); why != r.noted {
		r.device.Note("small batches of the table are trained by one block, on one multiprocessor, since " + why)
		r.noted = why
	}
	return launch(names[0], device.Launch{Grid: 1, Block: tableBlock, Shared: r.shared(b)})
}

// batch trains on one batch of b edges with m negatives each. takes must accept b and m.
// edges, control and loss are the addresses of its edges (type edge), its control block,
// and its loss, the sum over the edges times Scale. number is its number for status.
func (r *tableRun) batch(edges, control, loss device.Pointer, b, m, number int) (err error) {
	defer kind.Catch(&err)
	blocks := parallel.Pieces(b, pairBlock)
	kind.Check(r.reserve(blocks))
	ofLoss, ofGradient := r.norms(b)
	which := device.Int(int(r.objective.Loss))
	kernel, args := op.KernelForWidth("table_pairs_%s", r.d,
		r.gradient.Arg(), r.parts.Arg(), r.table.Arg(), r.logZ.Arg(), r.status.Arg(), device.Arg(control), device.Arg(edges),
		device.Int(b), device.Int(m), which, r.limit)
	kind.Check(r.device.Launch(kernel, device.Launch{Grid: blocks, Block: pairBlock}, args...))
	kind.Check(r.device.Launch("table_finish", device.Launch{Grid: 1, Block: finishBlock}, device.Arg(loss), r.logZ.Arg(), r.status.Arg(),
		r.parts.Arg(), device.Arg(control), device.Int(blocks), device.Int(1+number), which, ofLoss, ofGradient))
	return r.device.Each("table_update", r.n*r.d, r.table.Arg(), r.gradient.Arg(), r.status.Arg(), device.Arg(control),
		ofGradient, device.Int(r.n*r.d))
}

// reserve allocates the memory for large batches of the given number of blocks.
func (r *tableRun) reserve(blocks int) (err error) {
	defer kind.Catch(&err)
	if r.gradient == nil {
		r.gradient = kind.Got(op.NewArray(r.device, tensor.Int32, r.n, r.d, 2))
		kind.Check(r.gradient.Zero())
		r.parts = kind.Got(op.NewArray(r.device, tensor.Float32, 0))
	}
	return r.parts.Resize([]int{blocks, 2})
}

// close frees the run's own memory.
func (r *tableRun) close() {
	free(r.gradient, r.parts)
}
