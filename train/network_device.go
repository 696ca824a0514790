package train

import (
	"errors"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/model/op"
)

// maxReplayed is the largest number of edges of a replayed batch. Launching the
// operations of such small batches takes longer than computing them.
const maxReplayed = 4096

// A networkRun trains a network on small batches. The operations of a batch are captured
// once and then replayed as a whole. The device itself counts the batches, and reads each
// one's points, edges and numbers from the window's layout and control blocks. All
// batches have as many rows as endpoints. Rows beyond the distinct points are point 0. No
// edge refers to these rows, so their gradients are zero.
type networkRun struct {
	engine          *deviceEngine
	rows, local     *op.Array // [2·size], of the current batch
	control, number *op.Array // int32: its control block, and its number [1]
	// replay runs a batch with the numbers that its capture has fixed; nil until it was
	// captured.
	replay device.Replay
	fixed  fixed
	// warm is the number of negatives that memory is allocated for. A batch must have run
	// with that number first, because a capture cannot allocate.
	warm int
}

// fixed has the numbers that a capture fixes.
type fixed struct {
	rows, local, counts, control, losses device.Pointer // of the window
	negatives                            int
}

// begin allocates the arrays, or fails as kind.Need does.
func (n *networkRun) begin() {
	newArrays(n.engine.Device, tensor.Int32, 2*n.engine.size, &n.rows, &n.local)
	newArrays(n.engine.Device, tensor.Int32, controlWords, &n.control)
	newArrays(n.engine.Device, tensor.Int32, 1, &n.number)
}

// close frees the memory and the replay.
func (n *networkRun) close() error {
	free(n.rows, n.local, n.control, n.number)
	return n.fix(fixed{})
}

// fix drops the replay if it has other fixed numbers.
func (n *networkRun) fix(to fixed) error {
	if n.fixed == to {
		return nil
	}
	old := n.replay
	n.fixed, n.replay = to, nil
	if old == nil {
		return nil
	}
	return old.Close()
}

// launch submits batches [batch, end) of a window, except for a last one that is smaller,
// and returns the first that is left. The layout holds the whole window. It fails as kind.Need
// does.
func (n *networkRun) launch(e *epochState, w *batchWindow, batch, end int) int {
	r := n.engine
	if end > batch && r.edgesOf(end-1) < r.size {
		end--
	}
	if batch == end {
		return batch
	}
	kind.Check(r.Device.Fill(n.number.Pointer(), uint32(batch-w.first), 1))
	kind.Check(n.fix(fixed{w.layout.rows.Pointer(), w.layout.local.Pointer(), w.layout.counts.Pointer(),
		r.control.Pointer(), r.losses.Pointer(), e.Negatives}))
	for ; batch < end; batch++ {
		if n.replay == nil && n.warm == e.Negatives {
			n.replay = kind.Got(r.Device.Capture(n.step))
		}
		if n.replay != nil {
			kind.Check(n.replay.Run())
		} else {
			kind.Check(n.step())
		}
		n.warm = e.Negatives
	}
	return batch
}

// step trains on the next batch.
func (n *networkRun) step() (err error) {
	defer kind.Catch(&err)
	of := &n.fixed
	r, ends, counted := n.engine, n.rows.Len(), n.number.Arg()
	kind.Check(r.Device.Each("replay_begin", max(ends, controlWords), n.rows.Arg(), n.local.Arg(), n.control.Arg(), counted,
		device.Arg(of.rows), device.Arg(of.local), device.Arg(of.counts), device.Arg(of.control), device.Int(ends)))
	control := n.control.Pointer()
	kind.Check(errors.Join(r.compiled.Rows.View(n.rows, 0, ends), r.compiled.Local.View(n.local, 0, ends),
		r.sampleNegatives(of.negatives, r.size, control)))
	kind.Check(r.compiled.Step())
	kind.Check(r.Device.Launch("replay_end", device.Launch{Grid: 1, Block: 1},
		device.Arg(of.losses), r.status.Arg(), r.compiled.Loss.Arg(), counted, device.F32(r.lossWeight(r.size))))
	return r.move(n.rows, control)
}
