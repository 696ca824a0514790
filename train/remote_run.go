package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/model"
	"cne/model/op"
	"cne/model/vm"
)

// Images writes what a model of images is to see of a batch, on an accelerator.
type Images interface {
	// Launch writes the images [r, 3, H, W] of a batch whose points are rows [r]
	// to dst, both on the device. Epochs count from 0.
	Launch(dst, rows *op.Array, epoch int) error
	// Shape returns the last three dimensions.
	Shape() [3]int
	// Close gives their memory on the device back.
	Close()
}

const (
	// chunkTime is about how long the batches take that are given to the device
	// at once: what is then waited for is little compared with that, and no
	// interruption has to wait for long.
	chunkTime = 150 * time.Millisecond
	// chunkEdges bounds their edges, whose distinct points are found ahead.
	chunkEdges = 1 << 22
	// firstChunk is their number before it is known how long they take.
	firstChunk = 4
)

// A remote is what a run on an accelerator has besides a fit. The batches of an
// epoch go to the device in chunks. Whatever depends on the batch (which edges,
// which negatives, the step size) is in the device's memory by then; the program
// waits for the losses of a chunk, and for nothing in between.
type remote struct {
	*fit
	replica *model.DeviceModel
	method  Remote
	methodZ Remote // nil where no log Z is learnt
	images  Images // nil where the model takes none

	table   *tableRun   // nil where there is no table, or a graph has to train it
	network *networkRun // nil where batches are large, or there is no network of points

	feed     *remoteFeed
	layout   *remoteLayout
	found    int // the batch of the chunk that is the layout's first
	shuffled int // the epoch whose order the feed has; −1: none
	chunk    int // batches

	logZ            model.Parameter // [1]
	control, status *op.Array       // [chunk, controlWords], [1]; int32
	losses          *op.Array       // [chunk]
	// Of the batch at hand, and views of the layout for it:
	negatives, runs, views, rows *op.Array

	// What goes to the device, or comes from it, for a chunk.
	countsHere, lossesHere, statusHere *op.Array
}

// newRemote moves a run that has not begun to its device.
func newRemote(f *fit) (r *remote, err error) {
	m, ok := f.model.(interface {
		OnDevice(*model.Device) (*model.DeviceModel, error)
	})
	if !ok {
		return nil, fmt.Errorf("train: a model of type %T cannot be computed on %s; take the device cpu", f.model, f.Device.Name())
	}
	r = &remote{fit: f, shuffled: -1, chunk: firstChunk}
	r.method, ok = f.Method.(Remote)
	methodZ, okZ := f.MethodZ.(Remote)
	if !ok || !okZ {
		return nil, fmt.Errorf("train: methods of types %T and %T do not work on %s; take the device cpu", f.Method, f.MethodZ, f.Device.Name())
	}
	if f.Prepare != nil && f.PrepareOn == nil {
		return nil, fmt.Errorf("train: the batches are prepared on the CPU, so that the run cannot be computed on %s; take the device cpu", f.Device.Name())
	}
	if f.objective.Loss == op.NC && !f.FixZ {
		r.methodZ = methodZ
	}
	defer func() {
		if err != nil {
			err = r.closeAfter(err)
			r = nil
		}
	}()
	if r.replica, err = m.OnDevice(f.Device); err != nil {
		return r, err
	}
	if f.PrepareOn != nil {
		if r.images, err = f.PrepareOn(f.Device); err != nil {
			return r, err
		}
	}
	for _, a := range []struct {
		there, here **op.Array
		dtype       tensor.Dtype
	}{
		{&r.control, nil, tensor.Int32}, {&r.status, &r.statusHere, tensor.Int32}, {&r.losses, &r.lossesHere, tensor.Float32},
		{nil, &r.countsHere, tensor.Int32}, {&r.logZ.Value, nil, tensor.Float32}, {&r.views, nil, tensor.Float32},
		{&r.negatives, nil, tensor.Int32}, {&r.runs, nil, tensor.Int32}, {&r.rows, nil, tensor.Int32},
	} {
		if a.there != nil {
			if *a.there, err = op.NewArray(f.Device, a.dtype, 1); err != nil {
				return r, err
			}
		}
		if a.here != nil {
			if *a.here, err = op.NewArray(nil, a.dtype, 1); err != nil {
				return r, err
			}
		}
	}
	if err := r.status.Zero(); err != nil {
		return r, err
	}
	r.logZ.Name, r.logZ.Grad = f.logZ.Name, r.replica.DTheta
	if err := f.Method.Init(r.replica.Parameters()); err != nil {
		return r, err
	}
	if err := f.MethodZ.Init([]model.Parameter{r.logZ}); err != nil {
		return r, err
	}
	if err := copyArray(r.logZ.Value, f.logZ.Value); err != nil {
		return r, err
	}
	if table := r.plainTable(); table != nil {
		r.table, err = newTableRun(f.Device, table, r.logZ.Value, r.status, f.objective)
	} else if r.replica.Rows != nil && !r.replica.Parameters()[0].Sparse && f.size <= maxReplayed {
		r.network, err = newNetworkRun(r)
	}
	return r, err
}

// plainTable returns the table of the model, if that is one which needs no graph to be
// trained; else nil.
func (r *remote) plainTable() *op.Array {
	params := r.replica.Parameters()
	if _, ok := r.fit.model.(*model.Embedding[float32]); !ok || !tableTakes(r.objective, params[0].Value.Cols()) {
		return nil
	}
	method, ok := r.Method.(*SGD)
	if !ok || !method.plain() {
		return nil
	}
	if method, ok := r.MethodZ.(*SGD); r.methodZ != nil && (!ok || !method.plain()) {
		return nil
	}
	return params[0].Value
}

// begin gives the device the edges.
func (r *remote) begin(edges []edge) (err error) {
	if r.feed, err = newRemoteFeed(r.Device, edges, r.n, r.size, r.Seed); err != nil {
		return err
	}
	r.layout, err = newRemoteLayout(r.Device)
	return err
}

// closeAfter gives the memory back after a run that has ended with an error, or nil;
// the model then has what was learnt. It returns that error with what then goes wrong,
// unless the device has failed before: nothing can be had from it then.
func (r *remote) closeAfter(err error) error {
	failed := r.close()
	if errors.Is(err, device.ErrLost) {
		return err
	}
	return errors.Join(err, failed)
}

func (r *remote) close() error {
	var failed error
	if r.replica != nil {
		failed = r.replica.Close()
	}
	if r.images != nil {
		r.images.Close()
	}
	if r.feed != nil {
		r.feed.close()
	}
	if r.layout != nil {
		r.layout.free()
	}
	if r.table != nil {
		r.table.close()
	}
	if r.network != nil {
		failed = errors.Join(failed, r.network.close())
	}
	for _, a := range []*op.Array{r.control, r.status, r.losses, r.logZ.Value, r.views, r.negatives, r.runs, r.rows} {
		if a != nil {
			a.Free()
		}
	}
	return failed
}

// run runs the batches that are left of an epoch.
func (r *remote) run(ctx context.Context, t *term) error {
	if r.shuffled != r.at.epoch {
		if err := r.feed.begin(r.at.epoch); err != nil {
			return err
		}
		r.shuffled = r.at.epoch
	}
	for r.at.batch < r.batches {
		if err := ctx.Err(); err != nil {
			return r.interrupted(t, err)
		}
		if err := r.saveInTime(t); err != nil {
			return err
		}
		begun := time.Now()
		count := min(r.chunk, r.batches-r.at.batch, max(1, chunkEdges/r.size))
		if err := r.batchesOf(t, count); err != nil {
			return err
		}
		if r.Watch != nil {
			r.Watch(r.at.epoch+1, r.at.batch, r.batches, r.sum/float64(r.edgesDone()))
		}
		switch took := time.Since(begun); {
		case took < chunkTime/2 && count == r.chunk:
			r.chunk *= 2
		case took > 2*chunkTime:
			r.chunk = max(1, r.chunk/2)
		}
	}
	return nil
}

// batchesOf trains on the next batches of an epoch.
func (r *remote) batchesOf(t *term, count int) error {
	if err := r.putControls(t, count); err != nil {
		return err
	}
	if err := r.losses.Resize([]int{count}); err != nil {
		return err
	}
	r.replica.MarkStale()
	if err := r.launch(t, count); err != nil {
		return err
	}
	if err := op.Copy(r.lossesHere, r.losses); err != nil {
		return err
	}
	if err := op.Copy(r.statusHere, r.status); err != nil {
		return err
	}
	if r.methodZ != nil {
		logZ, err := numberOf(r.logZ.Value)
		if err != nil {
			return err
		}
		r.result.LogZ = logZ
	}
	if failed := op.Data[int32](r.statusHere)[0]; failed != 0 {
		return r.diverged(t, int(failed)-1)
	}
	if !(math.Abs(r.result.LogZ) <= maxTheta) {
		return r.divergedIn(t, count-1, ErrLogZ)
	}
	for _, loss := range op.Data[float32](r.lossesHere) {
		r.sum += float64(loss)
	}
	r.at.batch += count
	return nil
}

// launch gives the device the next batches, of which each leaves the sum of its
// edges' losses.
func (r *remote) launch(t *term, count int) error {
	done := 0
	if r.table != nil {
		var err error
		if done, err = r.launchTable(t, count); err != nil || done == count {
			return err
		}
	}
	if err := r.find(done, count); err != nil {
		return err
	}
	if r.network != nil {
		var err error
		if done, err = r.network.launch(t, count); err != nil {
			return err
		}
	}
	for i := done; i < count; i++ {
		if err := r.step(t, i); err != nil {
			return err
		}
	}
	return nil
}

// launchTable is launch for as many of the batches as a table needs no graph for: all
// whose negatives are drawn singly. It returns how many these are.
func (r *remote) launchTable(t *term, count int) (done int, err error) {
	if m := r.Draw.count(t.Negatives, r.size); r.Draw.inRuns(m) {
		return 0, nil
	}
	// Batches of one size go together; the last of an epoch may be smaller.
	for done < count {
		b := r.feed.edgesOf(r.at.batch + done)
		m := r.Draw.count(t.Negatives, b)
		if r.table.takes(b, m) != nil {
			break
		}
		next := done + 1
		for next < count && r.feed.edgesOf(r.at.batch+next) == b {
			next++
		}
		control, losses := controlAt(r.control.Pointer(), done), r.losses.Pointer().At(done, 4)
		if r.table.small(b) {
			if err := r.feed.distinct(r.layout, r.at.batch+done, next-done); err != nil {
				return done, err
			}
			if err := r.table.batches(r.layout.rows, r.layout.slots, r.layout.counts, control, losses, b, m, done); err != nil {
				return done, err
			}
			done = next
			continue
		}
		for ; done < next; done++ {
			edges := r.feed.order.Pointer().At((r.at.batch+done)*r.size, 8)
			if err := r.table.batch(edges, controlAt(r.control.Pointer(), done), r.losses.Pointer().At(done, 4), b, m, done); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// find finds the distinct points of the batches [from, to) of a chunk, and waits until
// their numbers are known.
func (r *remote) find(from, to int) error {
	if err := r.feed.distinct(r.layout, r.at.batch+from, to-from); err != nil {
		return err
	}
	r.found = from
	return op.Copy(r.countsHere, r.layout.counts)
}

// putControls uploads what the device has to know of each batch.
func (r *remote) putControls(t *term, count int) error {
	words := make([]uint32, count*controlWords)
	for i := range count {
		batch := r.at.batch + i
		t.lr = r.stepSize(t, batch)
		var theta float64
		if r.objective.Loss != op.NC {
			theta = r.theta(t.place, r.Draw.count(t.Negatives, r.feed.edgesOf(batch)))
		}
		numbers := r.method.Numbers(t.lr, r.Clip)
		var numbersZ StepNumbers
		if r.methodZ != nil {
			numbersZ = r.methodZ.Numbers(r.LRZ, r.Clip)
		}
		putControl(words[i*controlWords:(i+1)*controlWords], r.Seed, r.at.epoch, batch, theta, numbers, numbersZ)
	}
	if err := r.control.Resize([]int{count, controlWords}); err != nil {
		return err
	}
	return device.Upload(r.Device, r.control.Pointer(), words)
}

// prepare gives the replica the i-th batch of a chunk, and returns the address of
// its control block.
func (r *remote) prepare(t *term, i int) (device.Pointer, error) {
	edges, distinct := r.feed.edgesOf(r.at.batch+i), int(op.Data[int32](r.countsHere)[i-r.found])
	control := controlAt(r.control.Pointer(), i)
	if err := r.layout.batch(r.rows, r.replica.Local, i-r.found, edges, distinct); err != nil {
		return 0, err
	}
	if r.replica.Rows != nil {
		if err := r.replica.Rows.View(r.rows, 0, distinct); err != nil {
			return 0, err
		}
	}
	if err := r.contrastWith(t.Negatives, edges, control); err != nil || r.images == nil {
		return control, err
	}
	shape := r.images.Shape()
	if err := r.views.Resize([]int{distinct, shape[0], shape[1], shape[2]}); err != nil {
		return 0, err
	}
	if err := r.images.Launch(r.views, r.rows, r.at.epoch); err != nil {
		return 0, err
	}
	return control, r.replica.Images.View(r.views, 0, r.views.Shape()...)
}

// contrastWith draws m negatives for the heads of a batch of b edges, for the replica,
// and gives it the loss's constant.
func (r *remote) contrastWith(m, b int, control device.Pointer) error {
	if err := drawRemotely(r.Device, r.negatives, r.runs, r.Draw, m, b, control); err != nil {
		return err
	}
	theta := thetaAt(control)
	if r.objective.Loss == op.NC {
		theta = r.logZ.Value.Pointer()
	}
	return errors.Join(
		r.replica.Negatives.View(r.negatives, 0, r.negatives.Shape()...),
		r.replica.Runs.View(r.runs, 0, r.runs.Shape()...),
		r.replica.Theta.Point(r.Device, theta),
	)
}

// step trains on the i-th batch of a chunk.
func (r *remote) step(t *term, i int) error {
	control, err := r.prepare(t, i)
	if err != nil {
		return err
	}
	if err := r.replica.Step(); err != nil {
		return err
	}
	if err := endBatch(r.losses, r.status.Pointer(), r.replica.Loss, i, r.share(r.feed.edgesOf(r.at.batch+i))); err != nil {
		return err
	}
	return r.move(r.rows, control)
}

// share returns over how many of a batch's edges its loss is a mean, 1 if it is a sum.
func (r *remote) share(edges int) float64 {
	if r.objective.Mean {
		return float64(edges)
	}
	return 1
}

// move takes the steps against the gradients of a batch.
func (r *remote) move(rows *op.Array, control device.Pointer) error {
	status := r.status.Pointer()
	if err := r.method.Launch(r.Device, rows, numbersAt(control), status); err != nil || r.methodZ == nil {
		return err
	}
	return r.methodZ.Launch(r.Device, rows, numbersZAt(control), status)
}

// diverged returns the error of a run that ends with the i-th batch of a chunk. Nothing
// has moved since.
func (r *remote) diverged(t *term, i int) error {
	if !(math.Abs(r.result.LogZ) <= maxTheta) {
		return r.divergedIn(t, i, ErrLogZ)
	}
	err := r.find(i, i+1)
	if err == nil {
		_, err = r.prepare(t, i)
	}
	if err == nil {
		err = r.replica.Step()
	}
	if err == nil {
		err = r.replica.Diagnose()
	}
	cause := new(vm.NonFiniteError)
	switch {
	case errors.Is(err, device.ErrLost):
		return err
	case errors.As(err, &cause):
		return r.divergedIn(t, i, err)
	}
	return r.divergedIn(t, i, errors.New("the loss is not finite"))
}

// divergedIn is the error of a run that diverges in the i-th batch of a chunk.
func (r *remote) divergedIn(t *term, i int, cause error) error {
	batch := r.at.batch + i
	return &DivergedError{Epoch: r.at.epoch + 1, Batch: batch + 1, LR: r.stepSize(t, batch), Cause: cause}
}
