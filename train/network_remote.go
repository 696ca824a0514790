package train

import (
	"errors"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/model/op"
)

// maxReplayed is up to how many edges batches are so small that to ask for each of
// their operations takes longer than to compute them.
const maxReplayed = 4096

// A networkRun trains a network on small batches: what a batch asks of the accelerator
// is captured once, and then asked for again as a whole. Which batch it is the device
// counts by itself, and takes the batch's points, edges and numbers from the layout and
// the control blocks of the chunk. All batches have as many rows as endpoints, of which
// those beyond the distinct points are point 0: no edge refers to them, so that their
// gradients are zero.
type networkRun struct {
	*remote
	rows, slots     *op.Array // [2·size] of the batch at hand
	control, number *op.Array // [controlWords] of it, [1]; int32
	replay          device.Replay
	// of is what the replay was captured for, and begun with how many negatives a
	// batch was trained on, so that there is memory for the next.
	of    replayed
	begun int
}

// A replayed is what is the same for all batches of a replay.
type replayed struct {
	rows, slots, counts, control, losses device.Pointer // of the chunk
	negatives                            int
}

func newNetworkRun(r *remote) (n *networkRun, err error) {
	n = &networkRun{remote: r}
	for _, a := range []struct {
		to   **op.Array
		size int
	}{{&n.rows, 2 * r.size}, {&n.slots, 2 * r.size}, {&n.control, controlWords}, {&n.number, 1}} {
		if *a.to, err = op.NewArray(r.Device, tensor.Int32, a.size); err != nil {
			return n, err
		}
	}
	return n, nil
}

// close gives the memory back.
func (n *networkRun) close() error {
	for _, a := range []*op.Array{n.rows, n.slots, n.control, n.number} {
		if a != nil {
			a.Free()
		}
	}
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

// launch gives the device those of a chunk's batches that are not smaller than the
// others, and returns how many these are. The layout holds the whole chunk.
func (n *networkRun) launch(t *term, count int) (done int, err error) {
	for count > 0 && n.feed.edgesOf(n.at.batch+count-1) < n.size {
		count--
	}
	if count == 0 {
		return 0, nil
	}
	if err := n.Device.Fill(n.number.Pointer(), 0, 1); err != nil {
		return 0, err
	}
	of := replayed{n.layout.rows.Pointer(), n.layout.slots.Pointer(), n.layout.counts.Pointer(), n.remote.control.Pointer(), n.losses.Pointer(), t.Negatives}
	if of != n.of {
		if err := n.forget(); err != nil {
			return 0, err
		}
		n.of = of
	}
	for ; done < count; done++ {
		if n.replay == nil && n.begun == t.Negatives {
			if n.replay, err = n.Device.Capture(func() error { return n.step(t) }); err != nil {
				return done, err
			}
		}
		if n.replay != nil {
			err = n.replay.Run()
		} else {
			err = n.step(t)
		}
		if err != nil {
			return done, err
		}
		n.begun = t.Negatives
	}
	return done, nil
}

// step trains on the batch that is next.
func (n *networkRun) step(t *term) error {
	ends := 2 * n.size
	counted := n.number.Arg()
	if err := n.Device.Each("replay_begin", max(ends, controlWords), n.rows.Arg(), n.slots.Arg(), n.control.Arg(), counted,
		device.Arg(n.of.rows), device.Arg(n.of.slots), device.Arg(n.of.counts), device.Arg(n.of.control), device.Int(ends)); err != nil {
		return err
	}
	control := n.control.Pointer()
	if err := errors.Join(n.replica.Rows.View(n.rows, 0, ends), n.replica.Local.View(n.slots, 0, ends), n.contrastWith(t.Negatives, n.size, control)); err != nil {
		return err
	}
	if err := n.replica.Step(); err != nil {
		return err
	}
	if err := n.Device.Launch("replay_end", device.Launch{Grid: 1, Block: 1},
		device.Arg(n.of.losses), n.status.Arg(), n.replica.Loss.Arg(), counted, device.F32(n.share(n.size))); err != nil {
		return err
	}
	return n.move(n.rows, control)
}
