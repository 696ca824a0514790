package train

import (
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

const (
	// chunkTime is about how long a chunk of batches takes: long enough for the wait at
	// its end not to matter, short enough to react to interrupts.
	chunkTime = 150 * time.Millisecond
	// chunkEdges bounds the edges of a chunk, all of whose distinct points are found
	// before its first step.
	chunkEdges = 1 << 22
	// firstChunk is the number of batches in the first chunk, before it is known how
	// long a batch takes.
	firstChunk = 4
)

// A deviceEngine trains on a device, in float32. It submits the batches of an epoch in
// chunks, with all that tells one batch from another (edges, negatives, step size) in
// the device's memory, so that the program waits only for the losses at the end of a
// chunk.
type deviceEngine struct {
	*job
	compiled *model.DeviceModel // the model on the device
	method   deviceMethod
	methodZ  deviceMethod // nil if log Z is not learnt
	images   DeviceImages // nil if the model takes none

	table   *tableRun   // nil unless the model is a table that needs no graph
	network *networkRun // nil unless the model is a network with small batches

	batcher  *deviceBatcher
	layout   *deviceLayout
	found    int // the number, in the chunk, of the first batch in the layout
	shuffled int // the epoch for which the batcher has shuffled; −1: none
	chunk    int // the number of batches in the next chunk

	paramZ          model.Parameter // log Z: [1]
	z               float64         // its value after the last chunk
	control, status *op.Array       // [chunk, controlWords], [1]; int32
	losses          *op.Array       // [chunk]
	// Of the current batch; rows is a view of the layout.
	negatives, runs, views, rows *op.Array

	// Copies, in the program's memory, of what a chunk leaves.
	countsHere, lossesHere, statusHere *op.Array
}

// newDeviceEngine returns an engine with the model copied to the job's device.
func newDeviceEngine(j *job, edges []edge) (r *deviceEngine, err error) {
	m, ok := j.model.(interface {
		OnDevice(*model.Device) (*model.DeviceModel, error)
	})
	if !ok {
		return nil, fmt.Errorf("train: a model of type %T cannot be computed on %s; take the device cpu", j.model, j.Device.Name())
	}
	r = &deviceEngine{job: j, z: j.LogZ, shuffled: -1, chunk: firstChunk}
	r.method, ok = j.Method.(deviceMethod)
	methodZ, okZ := j.MethodZ.(deviceMethod)
	if !ok || !okZ {
		return nil, fmt.Errorf("train: methods of types %T and %T do not work on %s; take the device cpu", j.Method, j.MethodZ, j.Device.Name())
	}
	source, ok := j.Images.(DeviceImageSource)
	if j.Images != nil && !ok {
		return nil, fmt.Errorf("train: the batches are prepared on the CPU, so that the run cannot be computed on %s; take the device cpu", j.Device.Name())
	}
	if j.learnsZ() {
		r.methodZ = methodZ
	}
	defer func() {
		if err != nil {
			err = r.close(err)
			r = nil
		}
	}()
	if r.compiled, err = m.OnDevice(j.Device); err != nil {
		return r, err
	}
	if source != nil {
		images, err := source.ImagesOn(j.Device)
		if err != nil {
			return r, err
		}
		r.images = images
	}
	if err := newArrays(j.Device, tensor.Int32, 1, &r.control, &r.status, &r.negatives, &r.runs, &r.rows); err != nil {
		return r, err
	}
	if err := newArrays(j.Device, tensor.Float32, 1, &r.losses, &r.paramZ.Value, &r.views); err != nil {
		return r, err
	}
	if err := newArrays(nil, tensor.Int32, 1, &r.countsHere, &r.statusHere); err != nil {
		return r, err
	}
	if err := newArrays(nil, tensor.Float32, 1, &r.lossesHere); err != nil {
		return r, err
	}
	if err := r.status.Zero(); err != nil {
		return r, err
	}
	r.paramZ.Name, r.paramZ.Grad = logZName, r.compiled.DTheta
	if err := j.Method.Init(r.compiled.Parameters()); err != nil {
		return r, err
	}
	if err := j.MethodZ.Init([]model.Parameter{r.paramZ}); err != nil {
		return r, err
	}
	if err := r.setLogZ(j.LogZ); err != nil {
		return r, err
	}
	if table := r.plainTable(); table != nil {
		r.table, err = newTableRun(j.Device, table, r.paramZ.Value, r.status, j.objective)
	} else if r.compiled.Rows != nil && !r.compiled.Parameters()[0].Sparse && j.size <= maxReplayed {
		r.network, err = newNetworkRun(r)
	}
	if err != nil {
		return r, err
	}
	if r.batcher, err = newDeviceBatcher(fanoutOf(len(edges)), j.Device, edges, j.n, j.size, j.Seed); err != nil {
		return r, err
	}
	r.batcher.drawer = newEdgeDrawer(edges, j.Weights, j.Seed)
	r.layout, err = newDeviceLayout(j.Device)
	return r, err
}

// plainTable returns the model's table if it can be trained without a graph, else nil.
func (r *deviceEngine) plainTable() *op.Array {
	params := r.compiled.Parameters()
	plain := func(m Method) bool { sgd, ok := m.(*SGD); return ok && sgd.plain() }
	_, ok := r.job.model.(*model.Embedding[float32])
	if !ok || !tableTakes(r.objective, params[0].Value.Cols()) || !plain(r.Method) || r.methodZ != nil && !plain(r.MethodZ) {
		return nil
	}
	return params[0].Value
}

func (r *deviceEngine) logZ() float64 { return r.z }

func (r *deviceEngine) setLogZ(logZ float64) error {
	if err := device.Upload(r.Device, r.paramZ.Value.Pointer(), []float32{float32(logZ)}); err != nil {
		return err
	}
	r.z = logZ
	// Recorded steps know the arrays of the state by their addresses.
	for _, s := range r.MethodZ.State() {
		if err := s.Value.Zero(); err != nil {
			return err
		}
	}
	return nil
}

func (r *deviceEngine) arrays() []NamedArray {
	return r.job.arrays(r.compiled.Parameters(), r.paramZ, r.compiled.Copy)
}

func (r *deviceEngine) restored() (err error) {
	r.compiled.MarkStale()
	r.z, err = numberOf(r.paramZ.Value)
	return err
}

// close frees the memory on the device. If the device was lost (ErrLost), freeing fails
// too, so that err alone is returned.
func (r *deviceEngine) close(err error) error {
	var failed error
	if r.compiled != nil {
		failed = r.compiled.Close()
	}
	if r.images != nil {
		r.images.Close()
	}
	if r.batcher != nil {
		r.batcher.close()
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
	free(r.control, r.status, r.losses, r.paramZ.Value, r.views, r.negatives, r.runs, r.rows)
	if errors.Is(err, device.ErrLost) {
		return err
	}
	return errors.Join(err, failed)
}

// newArrays allocates arrays of size elements on a device.
func newArrays(d *device.Device, dtype tensor.Dtype, size int, to ...**op.Array) (err error) {
	for _, a := range to {
		if *a, err = op.NewArray(d, dtype, size); err != nil {
			return err
		}
	}
	return nil
}

// free frees those arrays, or pieces of device memory, that are not nil.
func free[T interface {
	comparable
	Free()
}](list ...T) {
	var none T
	for _, m := range list {
		if m != none {
			m.Free()
		}
	}
}

// advance trains on a chunk of batches.
func (r *deviceEngine) advance(e *epochRun) error {
	if r.shuffled != e.epoch {
		if err := r.batcher.begin(e.epoch); err != nil {
			return err
		}
		r.shuffled = e.epoch
	}
	begun := time.Now()
	count := min(r.chunk, r.batches-e.batch, max(1, chunkEdges/r.size))
	if err := r.train(e, count); err != nil {
		return err
	}
	switch took := time.Since(begun); {
	case took < chunkTime/2 && count == r.chunk:
		r.chunk *= 2
	case took > 2*chunkTime:
		r.chunk = max(1, r.chunk/2)
	}
	return nil
}

// train trains on the next count batches of an epoch, and waits for their losses.
func (r *deviceEngine) train(e *epochRun, count int) error {
	if err := r.putControls(e, count); err != nil {
		return err
	}
	if err := r.losses.Resize([]int{count}); err != nil {
		return err
	}
	r.compiled.MarkStale()
	if err := r.launch(e, count); err != nil {
		return err
	}
	if err := op.Copy(r.lossesHere, r.losses); err != nil {
		return err
	}
	if err := op.Copy(r.statusHere, r.status); err != nil {
		return err
	}
	if r.methodZ != nil {
		z, err := numberOf(r.paramZ.Value)
		if err != nil {
			return err
		}
		r.z = z
	}
	if failed := op.Data[int32](r.statusHere)[0]; failed != 0 {
		return r.divergedAt(e, int(failed)-1)
	}
	if !(math.Abs(r.z) <= maxLogConst) {
		return r.diverged(e, e.batch+count-1, ErrLogZ)
	}
	for _, loss := range op.Data[float32](r.lossesHere) {
		e.add(float64(loss))
	}
	return nil
}

// launch submits the next count batches, each of which leaves the sum of its edges'
// losses.
func (r *deviceEngine) launch(e *epochRun, count int) (err error) {
	done := 0
	if r.table != nil {
		if done, err = r.launchTable(e, count); err != nil || done == count {
			return err
		}
	}
	if err := r.find(e, done, count); err != nil {
		return err
	}
	if r.network != nil {
		if done, err = r.network.launch(e, count); err != nil {
			return err
		}
	}
	for i := done; i < count; i++ {
		if err := r.step(e, i); err != nil {
			return err
		}
	}
	return nil
}

// launchTable is launch for the first batches of a chunk that tableRun can take: those
// whose heads draw negatives of their own. It returns their number.
func (r *deviceEngine) launchTable(e *epochRun, count int) (done int, err error) {
	if m := r.Sampling.count(e.Negatives, r.size); r.Sampling.inRuns(m) {
		return 0, nil
	}
	// Batches of one size are launched together; an epoch's last may be smaller.
	for done < count {
		b := r.edgesOf(e.batch + done)
		m := r.Sampling.count(e.Negatives, b)
		if r.table.takes(b, m) != nil {
			break
		}
		next := done + 1
		for next < count && r.edgesOf(e.batch+next) == b {
			next++
		}
		control, losses := controlAt(r.control.Pointer(), done), r.losses.Pointer().At(done, 4)
		if r.table.small(b) {
			if err := r.batcher.distinct(r.layout, e.batch+done, next-done); err != nil {
				return done, err
			}
			if err := r.table.batches(r.layout.rows, r.layout.local, r.layout.counts, control, losses, b, m, done); err != nil {
				return done, err
			}
			done = next
			continue
		}
		for ; done < next; done++ {
			edges := r.batcher.order.Pointer().At((e.batch+done)*r.size, 8)
			if err := r.table.batch(edges, controlAt(r.control.Pointer(), done), r.losses.Pointer().At(done, 4), b, m, done); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// find finds the distinct points of batches [from, to) of a chunk, and waits for their
// numbers.
func (r *deviceEngine) find(e *epochRun, from, to int) error {
	if err := r.batcher.distinct(r.layout, e.batch+from, to-from); err != nil {
		return err
	}
	r.found = from
	return op.Copy(r.countsHere, r.layout.counts)
}

// putControls uploads the control blocks of the next batches.
func (r *deviceEngine) putControls(e *epochRun, count int) error {
	words := make([]uint32, count*controlWords)
	for i := range count {
		batch := e.batch + i
		e.lr = r.stepSize(e, batch)
		var logConst float64
		if r.objective.Loss != op.NC {
			logConst = r.logConst(e.place, r.Sampling.count(e.Negatives, r.edgesOf(batch)), 0)
		}
		numbers := r.method.numbers(e.lr, r.Clip)
		var numbersZ stepNumbers
		if r.methodZ != nil {
			numbersZ = r.methodZ.numbers(r.LRZ, r.Clip)
		}
		putControl(words[i*controlWords:(i+1)*controlWords], r.Seed, e.epoch, batch, logConst, numbers, numbersZ)
	}
	if err := r.control.Resize([]int{count, controlWords}); err != nil {
		return err
	}
	return device.Upload(r.Device, r.control.Pointer(), words)
}

// prepare binds the model's inputs to the i-th batch of a chunk, and returns the
// address of its control block.
func (r *deviceEngine) prepare(e *epochRun, i int) (device.Pointer, error) {
	edges, distinct := r.edgesOf(e.batch+i), int(op.Data[int32](r.countsHere)[i-r.found])
	control := controlAt(r.control.Pointer(), i)
	if err := r.layout.batch(r.rows, r.compiled.Local, i-r.found, edges, distinct); err != nil {
		return 0, err
	}
	if r.compiled.Rows != nil {
		if err := r.compiled.Rows.View(r.rows, 0, distinct); err != nil {
			return 0, err
		}
	}
	if err := r.sampleNegatives(e.Negatives, edges, control); err != nil || r.images == nil {
		return control, err
	}
	shape := r.Images.Shape()
	if err := r.views.Resize([]int{distinct, shape[0], shape[1], shape[2]}); err != nil {
		return 0, err
	}
	if err := r.images.Launch(r.views, r.rows, e.epoch); err != nil {
		return 0, err
	}
	return control, r.compiled.Images.View(r.views, 0, r.views.Shape()...)
}

// sampleNegatives draws m negatives for each head of a batch of b edges, and binds them
// and the loss's constant to the model's inputs.
func (r *deviceEngine) sampleNegatives(m, b int, control device.Pointer) error {
	if err := drawOnDevice(r.Device, r.negatives, r.runs, r.Sampling, m, b, control); err != nil {
		return err
	}
	logConst := logConstAt(control)
	if r.objective.Loss == op.NC {
		logConst = r.paramZ.Value.Pointer()
	}
	return errors.Join(
		r.compiled.Negatives.View(r.negatives, 0, r.negatives.Shape()...),
		r.compiled.Runs.View(r.runs, 0, r.runs.Shape()...),
		r.compiled.Theta.Point(r.Device, logConst),
	)
}

// step trains on the i-th batch of a chunk.
func (r *deviceEngine) step(e *epochRun, i int) error {
	control, err := r.prepare(e, i)
	if err != nil {
		return err
	}
	if err := r.compiled.Step(); err != nil {
		return err
	}
	if err := endBatch(r.losses, r.status.Pointer(), r.compiled.Loss, i, r.lossWeight(r.edgesOf(e.batch+i))); err != nil {
		return err
	}
	return r.move(r.rows, control)
}

// move takes the optimisers' steps for a batch.
func (r *deviceEngine) move(rows *op.Array, control device.Pointer) error {
	status := r.status.Pointer()
	if err := r.method.launch(r.Device, rows, numbersAt(control), status); err != nil || r.methodZ == nil {
		return err
	}
	return r.methodZ.launch(r.Device, rows, numbersZAt(control), status)
}

// divergedAt returns the error of a run that diverged in the i-th batch of a chunk,
// which it computes again: nothing has moved since.
func (r *deviceEngine) divergedAt(e *epochRun, i int) error {
	if !(math.Abs(r.z) <= maxLogConst) {
		return r.diverged(e, e.batch+i, ErrLogZ)
	}
	err := r.find(e, i, i+1)
	if err == nil {
		_, err = r.prepare(e, i)
	}
	if err == nil {
		err = r.compiled.Step()
	}
	if err == nil {
		err = r.compiled.Diagnose()
	}
	if errors.Is(err, device.ErrLost) {
		return err
	}
	if !errors.As(err, new(*vm.NonFiniteError)) {
		err = errNotFinite
	}
	return r.diverged(e, e.batch+i, err)
}
