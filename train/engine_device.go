package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model"
	"cne/model/op"
	"cne/model/vm"
)

const (
	// chunkTime is about how long a chunk of batches takes: long enough for the wait at
	// its end not to matter, short enough to react to interrupts.
	chunkTime = 150 * time.Millisecond
	// chunkEdges bounds the edges of a window and so of a chunk: all distinct points of a
	// window are found before its first step.
	chunkEdges = 1 << 22
	// windowBatches bounds the batches of a window: their control blocks take 4 MiB.
	windowBatches = 1 << 16
	// firstChunk is the number of batches in the first chunk, when the time of a batch is not
	// yet known.
	firstChunk = 4
)

// A deviceEngine trains on a device, in float32. It submits the batches of an epoch in
// chunks. All that differs between batches (edges, negatives, learning rate) is in the
// device's memory. The program therefore waits only for the losses at the end of a chunk,
// which is an epoch if that takes no longer than chunkTime, but for a phase's first batch.
type deviceEngine struct {
	*settings
	compiled   *model.DeviceModel // the model on the device
	optimizer  deviceOptimizer
	optimizerZ deviceOptimizer // nil if log Z is not learnt
	images     DeviceImages    // nil if the model takes none

	table   *tableRun   // nil unless the model is an Embedding that needs no graph
	network *networkRun // nil unless the model is a network with small batches

	window *batchWindow // nil before the first sampled batch
	chunk  int          // the number of batches in the next chunk
	whole  *wholeBatch  // nil without phases of All negatives
	// controlled is the window whose control blocks are on the device: its epoch and its
	// first batch.
	controlled [2]int

	// report is what comes back from a chunk in one copy: the status, log Z, and the
	// losses of the window's batches so far.
	report  *op.Array       // [reportHead + batches of a window]
	control *op.Array       // [batches of a window, controlWords] int32
	status  *op.Array       // [1] int32: 0, or the number (from 1, in the window) of the first batch that failed
	losses  *op.Array       // [batches of a window]
	paramZ  model.Parameter // log Z: [1]
	z       float64         // its value after the last chunk
	// Arrays of the current batch; rows is a view of the layout.
	negatives, layout, views, rows *op.Array

	reportHere []uint32
}

// reportHead is the number of words of a report before its losses.
const reportHead = 2

// newDeviceEngine returns an engine with the model copied to its device.
func newDeviceEngine(s *settings) (_ *deviceEngine, err error) {
	defer kind.Catch(&err)
	m, ok := s.model.(interface {
		OnDevice(*model.Device) (*model.DeviceModel, error)
	})
	if !ok {
		return nil, fmt.Errorf("train: model: got a %T, which does not run on %s", s.model, s.Device.Name())
	}
	r := &deviceEngine{settings: s, z: s.LogZ, chunk: firstChunk}
	r.optimizer, ok = s.Optimizer.(deviceOptimizer)
	optimizerZ, okZ := s.OptimizerZ.(deviceOptimizer)
	if !ok || !okZ {
		return nil, fmt.Errorf("train: optimisers: got a %T and a %T, which do not run on %s", s.Optimizer, s.OptimizerZ, s.Device.Name())
	}
	source, ok := s.Images.(DeviceImageSource)
	if s.Images != nil && !ok {
		return nil, fmt.Errorf("train: images: got a source on the CPU, want one on %s", s.Device.Name())
	}
	if s.learnsZ() {
		r.optimizerZ = optimizerZ
	}
	defer kind.Undo(&err, func() { err = r.close(err) })
	r.compiled = kind.Got(m.OnDevice(s.Device))
	if source != nil {
		r.images = kind.Got(source.ImagesOn(s.Device))
	}
	window := windowOf(s.batches, s.size)
	newArrays(s.Device, tensor.Int32, 1, &r.negatives, &r.layout, &r.rows)
	newArrays(s.Device, tensor.Int32, window*controlWords, &r.control)
	newArrays(s.Device, tensor.Float32, 1, &r.views)
	r.newReport(window)
	r.paramZ.Name, r.paramZ.Grad = logZName, r.compiled.DTheta
	kind.Check(s.Optimizer.Init(r.compiled.Parameters()))
	kind.Check(s.OptimizerZ.Init([]model.Parameter{r.paramZ}))
	kind.Check(r.setLogZ(s.LogZ))
	if table := r.plainTable(); table != nil {
		r.table = newTableRun(s.Device, table, r.paramZ.Value, r.status, s.objective)
	} else if r.compiled.Rows != nil && !r.compiled.Parameters()[0].Sparse && s.size <= maxReplayed {
		r.network = &networkRun{engine: r} // close frees its memory even if it fails
		r.network.begin()
	}
	r.whole = kind.Got(newWholeBatch(s, r.compiled.Parameters()[0].Value))
	return r, nil
}

// startBatches prepares for sampled batches.
func (r *deviceEngine) startBatches() error {
	r.controlled = [2]int{-1, 0}
	f, err := newDeviceBatcher(fanoutOf(len(r.list)), r.Device, r.list, r.n, r.size, r.Seed)
	if err != nil {
		return err
	}
	f.drawer = newEdgeDrawer(r.list, r.Weights, r.Seed)
	r.window, err = newBatchWindow(f, r.batches, r.layoutFrom)
	return err
}

// stopBatches frees the memory of sampled batches.
func (r *deviceEngine) stopBatches() {
	if r.window != nil {
		r.window.free()
		r.window = nil
	}
}

// newReport allocates the report for windows of the given number of batches. The status,
// log Z and the losses are views of it. It fails as kind.Need does.
func (r *deviceEngine) newReport(window int) {
	newArrays(r.Device, tensor.Float32, reportHead+window, &r.report)
	newArrays(r.Device, tensor.Float32, 0, &r.losses, &r.paramZ.Value)
	newArrays(r.Device, tensor.Int32, 0, &r.status)
	r.reportHere = make([]uint32, reportHead+window)
	kind.Check(r.report.Zero())
	kind.Check(r.status.Point(r.Device, r.report.Pointer(), 1))
	kind.Check(r.paramZ.Value.View(r.report, 1, 1))
	kind.Check(r.losses.View(r.report, reportHead, window))
}

// layoutFrom returns the first batch of an epoch whose distinct points are needed. Large
// batches of a model.Embedding do not need them.
func (r *deviceEngine) layoutFrom(epoch int) int {
	batch := 0
	for m := r.phaseOf(epoch).Negatives; batch < r.batches && r.takesEdges(r.edgesOf(batch), m); {
		// All batches but the last are alike.
		if batch++; batch < r.batches-1 {
			batch = r.batches - 1
		}
	}
	return batch
}

// takesEdges reports whether batches of b edges with m negatives per head are trained
// without their distinct points.
func (r *deviceEngine) takesEdges(b, m int) bool {
	return r.table != nil && !r.Sampling.inRuns(r.Sampling.count(m, r.size)) && !r.table.small(b) && r.table.takes(b, r.Sampling.count(m, b))
}

// plainTable returns the positions of an Embedding if it can be trained without a graph,
// else nil.
func (r *deviceEngine) plainTable() *op.Array {
	params := r.compiled.Parameters()
	plain := func(m Optimizer) bool { sgd, ok := m.(*SGD); return ok && sgd.plain() }
	_, ok := r.settings.model.(*model.Embedding[float32])
	if !ok || !tableTakes(r.objective, params[0].Value.Cols()) || !plain(r.Optimizer) || r.optimizerZ != nil && !plain(r.OptimizerZ) {
		return nil
	}
	return params[0].Value
}

func (r *deviceEngine) logZ() float64 { return r.z }

func (r *deviceEngine) setLogZ(logZ float64) (err error) {
	defer kind.Catch(&err)
	kind.Check(device.Upload(r.Device, r.paramZ.Value.Pointer(), []float32{float32(logZ)}))
	r.z = logZ
	// Recorded steps contain the addresses of the arrays of the state.
	for _, s := range r.OptimizerZ.State() {
		kind.Check(s.Value.Zero())
	}
	return nil
}

func (r *deviceEngine) arrays() []NamedArray {
	return append(r.settings.arrays(r.compiled.Parameters(), r.paramZ, r.compiled.Copy), r.whole.arrays()...)
}

func (r *deviceEngine) restored() (err error) {
	defer kind.Catch(&err)
	r.compiled.MarkStale()
	r.z = numberOf(r.paramZ.Value)
	return nil
}

// close frees the memory on the device. If the device was lost (ErrLost), freeing fails
// too, and only err is returned.
func (r *deviceEngine) close(err error) error {
	var failed error
	if r.compiled != nil {
		failed = r.compiled.Close()
	}
	if r.images != nil {
		r.images.Close()
	}
	r.stopBatches()
	r.whole.close()
	if r.table != nil {
		r.table.close()
	}
	if r.network != nil {
		failed = errors.Join(failed, r.network.close())
	}
	free(r.control, r.report, r.views, r.negatives, r.layout, r.rows)
	if errors.Is(err, device.ErrLost) {
		return err
	}
	return errors.Join(err, failed)
}

// newArrays allocates arrays of size elements on a device, or fails as kind.Need does.
func newArrays(d *device.Device, dtype tensor.Dtype, size int, to ...**op.Array) {
	for _, a := range to {
		*a = kind.Got(op.NewArray(d, dtype, size))
	}
}

// free frees arrays or pieces of device memory, and skips nil.
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

// advance trains on a chunk of batches of one window, or takes a step with All negatives.
func (r *deviceEngine) advance(e *epochState) (err error) {
	defer kind.Catch(&err)
	if e.Negatives == All {
		r.compiled.MarkStale()
		r.stopBatches()
		return r.whole.advance(e)
	}
	if r.window == nil {
		kind.Check(r.startBatches())
	}
	begun := time.Now()
	w := r.window
	kind.Check(w.at(e.epoch, e.batch))
	count := selection.If(e.single, 1, min(r.chunk, w.first+w.count-e.batch))
	kind.Check(r.train(e, w, count))
	switch took := time.Since(begun); {
	case took < chunkTime/2 && count == r.chunk:
		r.chunk *= 2
	case took > 2*chunkTime:
		r.chunk = max(1, r.chunk/2)
	}
	return nil
}

// train trains on the next count batches of a window, and waits for their losses.
func (r *deviceEngine) train(e *epochState, w *batchWindow, count int) (err error) {
	defer kind.Catch(&err)
	kind.Check(r.putControls(e, w))
	r.compiled.MarkStale()
	r.launch(e, w, e.batch, e.batch+count)
	if d := w.batcher.drawer; d != nil && e.batch+count == w.batches {
		d.draw(e.epoch + 1) // while the device trains
	}
	done := e.batch - w.first
	report := r.reportHere[:reportHead+done+count]
	kind.Check(device.Download(r.Device, report, r.report.Pointer()))
	if r.optimizerZ != nil {
		r.z = float64(math.Float32frombits(report[1]))
	}
	if failed := int(report[0]); failed != 0 {
		return r.divergedAt(e, w, w.first+failed-1)
	}
	if !(math.Abs(r.z) <= maxLogConst) {
		return r.diverged(e, e.batch+count-1, ErrLogZ)
	}
	r.optimizer.took(count)
	if r.optimizerZ != nil {
		r.optimizerZ.took(count)
	}
	e.lr = r.learningRate(e, e.batch+count-1)
	for _, loss := range report[reportHead+done:] {
		e.add(float64(math.Float32frombits(loss)))
	}
	return nil
}

// launch submits batches [batch, end) of a window. Each writes the sum of its edges'
// losses. It fails as kind.Need does.
func (r *deviceEngine) launch(e *epochState, w *batchWindow, batch, end int) {
	if r.table != nil {
		batch = r.launchTable(e, w, batch, end)
	}
	if r.network != nil {
		batch = r.network.launch(e, w, batch, end)
	}
	for ; batch < end; batch++ {
		r.step(e, w, batch)
	}
}

// lossAt returns the address of a batch's loss.
func (r *deviceEngine) lossAt(w *batchWindow, batch int) device.Pointer {
	return r.losses.Pointer().At(batch-w.first, 4)
}

// controlOf returns the address of a batch's control block.
func (r *deviceEngine) controlOf(w *batchWindow, batch int) device.Pointer {
	return controlAt(r.control.Pointer(), batch-w.first)
}

// launchTable is launch for the first batches of [batch, end) that a tableRun can train,
// whose heads draw their own negatives. It returns the first batch that remains.
func (r *deviceEngine) launchTable(e *epochState, w *batchWindow, batch, end int) int {
	if m := r.Sampling.count(e.Negatives, r.size); r.Sampling.inRuns(m) {
		return batch
	}
	// Batches of one size are launched together; an epoch's last may be smaller.
	for batch < end {
		b := r.edgesOf(batch)
		m := r.Sampling.count(e.Negatives, b)
		if !r.table.takes(b, m) {
			break
		}
		next := batch + 1
		for next < end && r.edgesOf(next) == b {
			next++
		}
		if r.table.small(b) {
			rows, local, counts := w.layout.part(batch-w.from, next-batch)
			kind.Check(r.table.batches(rows, local, counts, r.controlOf(w, batch), r.lossAt(w, batch), b, m, batch-w.first))
			batch = next
			continue
		}
		for ; batch < next; batch++ {
			edges := w.order.Pointer().At(batch*r.size, 8)
			kind.Check(r.table.batch(edges, r.controlOf(w, batch), r.lossAt(w, batch), b, m, batch-w.first))
		}
	}
	return batch
}

// putControls uploads the control blocks of a window's batches, unless they are there.
func (r *deviceEngine) putControls(e *epochState, w *batchWindow) error {
	if r.controlled == [2]int{w.epoch, w.first} {
		return nil
	}
	words := make([]uint32, w.count*controlWords)
	for i := range w.count {
		batch := w.first + i
		var logConst float64
		if !r.hasZ() {
			logConst = r.logConst(e.spectrum, r.Sampling.count(e.Negatives, r.edgesOf(batch)), 0)
		}
		ahead := batch - e.batch + 1 // at most 0 for batches before the one that a run resumes with
		numbers := r.optimizer.numbers(ahead, r.learningRate(e, batch), r.Clip)
		var numbersZ stepNumbers
		if r.optimizerZ != nil {
			numbersZ = r.optimizerZ.numbers(ahead, r.LRZ, r.Clip)
		}
		putControl(words[i*controlWords:(i+1)*controlWords], r.Seed, e.epoch, batch, logConst, numbers, numbersZ)
	}
	r.controlled = [2]int{w.epoch, w.first}
	return device.Upload(r.Device, r.control.Pointer(), words)
}

// prepare binds the model's inputs to a batch of a window, with its control block.
func (r *deviceEngine) prepare(e *epochState, w *batchWindow, batch int, control device.Pointer) (err error) {
	defer kind.Catch(&err)
	edges := r.edgesOf(batch)
	distinct := kind.Got(w.distinct(batch))
	kind.Check(w.layout.batch(r.rows, r.compiled.Local, batch-w.from, edges, distinct))
	if r.compiled.Rows != nil {
		kind.Check(r.compiled.Rows.View(r.rows, 0, distinct))
	}
	kind.Check(r.sampleNegatives(e.Negatives, edges, control))
	if r.images == nil {
		return nil
	}
	shape := r.Images.Shape()
	kind.Check(r.views.Resize([]int{distinct, shape[0], shape[1], shape[2]}))
	return cmp.Or(r.images.Launch(r.views, r.rows, e.epoch), r.compiled.Images.View(r.views, 0, r.views.Shape()...))
}

// sampleNegatives draws m negatives for each head of a batch of b edges, and binds them
// and the loss's constant to the model's inputs.
func (r *deviceEngine) sampleNegatives(m, b int, control device.Pointer) error {
	if err := drawOnDevice(r.Device, r.negatives, r.layout, r.Sampling, m, b, control); err != nil {
		return err
	}
	logConst := logConstAt(control)
	if r.hasZ() {
		logConst = r.paramZ.Value.Pointer()
	}
	return errors.Join(
		r.compiled.Negatives.View(r.negatives, 0, r.negatives.Shape()...),
		r.compiled.Layout.View(r.layout, 0, r.layout.Shape()...),
		r.compiled.Theta.Point(r.Device, logConst),
	)
}

// step trains on a batch of a window.
func (r *deviceEngine) step(e *epochState, w *batchWindow, batch int) {
	control := r.controlOf(w, batch)
	kind.Check(r.prepare(e, w, batch, control))
	kind.Check(r.compiled.Step())
	kind.Check(endBatch(r.losses.Pointer(), r.status.Pointer(), r.compiled.Loss, batch-w.first, r.lossWeight(r.edgesOf(batch))))
	kind.Check(r.move(r.rows, control))
}

// move makes the optimisers take a step for a batch.
func (r *deviceEngine) move(rows *op.Array, control device.Pointer) error {
	status := r.status.Pointer()
	if err := r.optimizer.launch(r.Device, rows, numbersAt(control), status); err != nil || r.optimizerZ == nil {
		return err
	}
	return r.optimizerZ.launch(r.Device, rows, numbersZAt(control), status)
}

// divergedAt returns the error of a run that diverged in a batch of a window. It computes
// the batch again to find the cause: no parameter has changed since.
func (r *deviceEngine) divergedAt(e *epochState, w *batchWindow, batch int) error {
	if !(math.Abs(r.z) <= maxLogConst) {
		return r.diverged(e, batch, ErrLogZ)
	}
	control := r.controlOf(w, batch)
	err := w.layOut(batch, 1) // its distinct points may be missing
	if err == nil {
		err = r.prepare(e, w, batch, control)
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
	return r.diverged(e, batch, err)
}
