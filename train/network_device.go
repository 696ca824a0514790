package train

import (
	"errors"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/model/op"
)

// maxReplayed bounds the edges of batches that are so small that launching their
// operations takes longer than computing them.
const maxReplayed = 4096

// A networkRun trains a network on small batches: a batch's operations are captured
// once and then replayed as a whole. The device itself counts the batches, and reads
// each one's points, edges and numbers from the chunk's layout and control blocks. All
// batches have as many rows as endpoints; rows beyond the distinct points are point 0,
// to which no edge refers, so that their gradients are zero.
type networkRun struct {
	engine          *deviceEngine
	rows, local     *op.Array // [2·size], of the current batch
	control, number *op.Array // int32: its control block, and its number [1]
	replay          device.Replay
	// of is what the replay was captured for. warm is the number of negatives with
	// which a batch has run, so that their memory is allocated: a capture cannot.
	of   replayed
	warm int
}

// A replayed holds the addresses and sizes that a capture has fixed.
type replayed struct {
	rows, local, counts, control, losses device.Pointer // of the chunk
	negatives                            int
}

func newNetworkRun(r *deviceEngine) (n *networkRun, err error) {
	n = &networkRun{engine: r}
	err = newArrays(r.Device, tensor.Int32, 2*r.size, &n.rows, &n.local)
	if err == nil {
		err = newArrays(r.Device, tensor.Int32, controlWords, &n.control)
	}
	if err == nil {
		err = newArrays(r.Device, tensor.Int32, 1, &n.number)
	}
	return n, err
}

// close frees the memory and the replay.
func (n *networkRun) close() error {
	free(n.rows, n.local, n.control, n.number)
	return n.forget()
}

func (n *networkRun) forget() error {
	if n.replay == nil {
		return nil
	}
	err := n.replay.Close()
	n.replay = nil
	return err
}

// launch submits a chunk's batches, except for a last one that is smaller, and returns
// their number. The layout holds the whole chunk.
func (n *networkRun) launch(e *epochRun, count int) (done int, err error) {
	r := n.engine
	for count > 0 && r.edgesOf(e.batch+count-1) < r.size {
		count--
	}
	if count == 0 {
		return 0, nil
	}
	if err := r.Device.Fill(n.number.Pointer(), 0, 1); err != nil {
		return 0, err
	}
	of := replayed{r.layout.rows.Pointer(), r.layout.local.Pointer(), r.layout.counts.Pointer(), r.control.Pointer(), r.losses.Pointer(), e.Negatives}
	if of != n.of {
		if err := n.forget(); err != nil {
			return 0, err
		}
		n.of = of
	}
	for ; done < count; done++ {
		if n.replay == nil && n.warm == e.Negatives {
			if n.replay, err = r.Device.Capture(func() error { return n.step(e.Negatives) }); err != nil {
				return done, err
			}
		}
		if n.replay != nil {
			err = n.replay.Run()
		} else {
			err = n.step(e.Negatives)
		}
		if err != nil {
			return done, err
		}
		n.warm = e.Negatives
	}
	return done, nil
}

// step trains on the next batch, with m negatives for each head.
func (n *networkRun) step(m int) error {
	r, ends, counted := n.engine, n.rows.Len(), n.number.Arg()
	if err := r.Device.Each("replay_begin", max(ends, controlWords), n.rows.Arg(), n.local.Arg(), n.control.Arg(), counted,
		device.Arg(n.of.rows), device.Arg(n.of.local), device.Arg(n.of.counts), device.Arg(n.of.control), device.Int(ends)); err != nil {
		return err
	}
	control := n.control.Pointer()
	if err := errors.Join(r.compiled.Rows.View(n.rows, 0, ends), r.compiled.Local.View(n.local, 0, ends), r.sampleNegatives(m, r.size, control)); err != nil {
		return err
	}
	if err := r.compiled.Step(); err != nil {
		return err
	}
	if err := r.Device.Launch("replay_end", device.Launch{Grid: 1, Block: 1},
		device.Arg(n.of.losses), r.status.Arg(), r.compiled.Loss.Arg(), counted, device.F32(r.lossWeight(r.size))); err != nil {
		return err
	}
	return r.move(n.rows, control)
}
