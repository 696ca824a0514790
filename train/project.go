package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

const (
	// projectionEpochs is how often each neighbour attracts a new point.
	projectionEpochs = 100
	// projectionRows is how many points are placed at a time. A multiple of 16
	// fills the vectors of the kernels.
	projectionRows = 512
)

// A Projector places new points in an embedding that was learnt as a table. Each starts
// at the mean of its k nearest training points, weighted by their similarity
// φ = 1/(1+‖x−y‖²), and then moves against the gradient of the loss on its edges to
// them, with negatives drawn from all training points, which stay where they are. With
// fewer than 32 negatives, each point draws its own, and takes a step for each edge.
// With more, all points share them, whatever Sampling the model was trained with, and
// take a step for every four edges. A point that is one of the training points gets its
// position.
//
// It is a model.Mapper: the position of a point depends neither on other new points nor
// on GOMAXPROCS. A Projector may be used by several goroutines at once.
type Projector struct {
	epochs   int // how often each of a point's edges is used
	training model.FitInfo
	table    []float32
	n, d     int
	width    int
	points   *data.Matrix
	index    *neighbors.Index
	onDevice *deviceProjection // nil where the CPU moves the points

	idle sync.Pool // of placers
}

// NewProjector returns a projector into a table of positions [n, d] of the training
// points [n, p]. Neither is copied. The loss of a point is the sum over its edges, even
// if the model was trained with the mean over a batch. If ctx ends while the search is
// prepared, the error is ctx's.
//
// A device (nil: the CPU) finds neighbours, unless the search is approximate, and
// optimises new points if distances are Euclidean in at most four dimensions. The
// training points and the table are then in the device's memory. Positions differ from
// the CPU's only by the order of summation.
func NewProjector(ctx context.Context, on *model.Device, points *data.Matrix, table []float32, d int, training model.FitInfo) (*Projector, error) {
	if points == nil {
		return nil, kind.Errorf(ErrInput, "train: training points: got nil")
	}
	if d < 1 || len(table) != points.N*d || points.N == 0 {
		return nil, kind.Errorf(ErrInput, "train: positions: got %d coordinates for %d points in %d dimensions", len(table), points.N, d)
	}
	if training.Neighbors < 1 || training.Negatives < 1 {
		return nil, kind.Errorf(ErrInput, "train: got %d neighbours and %d negatives, want at least 1 of each", training.Neighbors, training.Negatives)
	}
	if !(training.LR > 0) || training.LR > math.MaxFloat32 || !(training.Clip >= 0) || !(math.Abs(training.LogConst) <= maxLogConst*2) {
		return nil, kind.Errorf(ErrInput, "train: got learning rate %g, gradients up to %g and a constant of exp(%g), want a finite rate above 0, a bound of at least 0 and an exponent within ±%d", training.LR, training.Clip, training.LogConst, 2*maxLogConst)
	}
	if i := simd.FirstNotFinite(table); i >= 0 {
		return nil, kind.Errorf(ErrInput, "train: coordinate %d of position %d (both counted from 0): got %v", i%d, i/d, table[i])
	}
	training.Neighbors = min(training.Neighbors, points.N)
	training.Objective.Mean = false
	p := &Projector{epochs: projectionEpochs, training: training, table: table, n: points.N, d: d, width: points.D, points: points}
	var err error
	if p.index, err = neighbors.NewIndex(ctx, points, neighbors.Options{Device: on}); err != nil {
		return nil, err
	}
	if !on.OnHost() {
		if err := p.useDevice(on); err != nil {
			return nil, err
		}
	}
	first, err := p.newPlacer()
	if err != nil {
		return nil, err
	}
	p.idle.Put(first)
	return p, nil
}

// Size implements model.Mapper.
func (p *Projector) Size() (in, out int) { return p.width, p.d }

// ProjectTo implements model.Mapper.
func (p *Projector) ProjectTo(dst, x []float32) error {
	rows := len(x) / p.width
	if len(x) != rows*p.width || len(dst) != rows*p.d {
		return kind.Errorf(ErrInput, "train: got %d values for %d results, want points of %d and %d for each", len(x), len(dst), p.width, p.d)
	}
	if rows == 0 {
		return nil
	}
	near, err := p.index.Search(context.Background(), &data.Matrix{N: rows, D: p.width, X: x}, p.training.Neighbors)
	if err != nil {
		return err
	}
	if p.onDevice != nil {
		err = p.placeOnDevice(dst, x, near)
	} else {
		failures := make([]error, parallel.Pieces(rows, projectionRows))
		parallel.For(rows, projectionRows, func(piece, lo, hi int) {
			failures[piece] = p.place(dst[lo*p.d:hi*p.d], x[lo*p.width:hi*p.width], near, lo)
		})
		err = cmp.Or(failures...)
	}
	if err == nil && !simd.AllFinite(dst) {
		err = fmt.Errorf("train: new points diverge at the model's learning rate, %g", p.training.LR)
	}
	for i := range rows {
		at := slices.IndexFunc(near.Of(i), func(j int32) bool { return slices.Equal(p.points.Row(int(j)), x[i*p.width:(i+1)*p.width]) })
		if at >= 0 {
			twin := int(near.Of(i)[at])
			copy(dst[i*p.d:(i+1)*p.d], p.table[twin*p.d:(twin+1)*p.d])
		}
	}
	return err
}

// A placer holds what one goroutine needs to place a block of points.
type placer struct {
	frozen *model.Frozen
	// each is how many edges of a point are used at a time, heads how many of the block,
	// with padding; shared means that all have the same negatives.
	each, heads int
	shared      bool
	positions   []float32 // as Frozen.Step takes them
	others      []int32   // the training points among them: tails, then negatives
	streams     []rng.Stream
	grad        []float32 // of the points
}

func (p *Projector) newPlacer() (*placer, error) {
	frozen, err := model.NewFrozen(p.d, p.training.Objective)
	if err != nil {
		return nil, err
	}
	return &placer{frozen: frozen}, nil
}

// place finds positions for one block of points, whose neighbours are in near from row
// first.
func (p *Projector) place(dst, x []float32, near *neighbors.Neighbors, first int) error {
	p.start(dst, near, first)
	w, _ := p.idle.Get().(*placer)
	if w == nil {
		var err error
		if w, err = p.newPlacer(); err != nil {
			return err
		}
	}
	defer p.idle.Put(w)
	q, m, k, d := len(dst)/p.d, p.training.Negatives, near.K, p.d
	clip := float32(bound(p.training.Clip))
	w.begin(q, m, d)
	for i := range q {
		w.streams = append(w.streams, p.streamOf(x[i*p.width:(i+1)*p.width]))
	}
	for epoch := range p.epochs {
		lr := p.learningRate(epoch)
		for edge := 0; edge < k; edge += w.each {
			some := min(w.each, k-edge)
			for i := range q {
				copy(w.others[i*w.each:], near.Index[(first+i)*k+edge:][:some])
				for e := range w.each {
					copy(w.positions[(i*w.each+e)*d:], dst[i*d:(i+1)*d])
				}
			}
			p.draw(w, m, epoch, edge)
			simd.GatherRows(w.positions[w.heads*d:], p.table, d, w.others)
			_, grad, err := w.frozen.Step(w.positions, w.heads, m, w.shared, p.training.LogConst)
			if err != nil {
				return err
			}
			clear(w.grad)
			for i := range q {
				for e := range some {
					simd.Add(w.grad[i*d:], grad[(i*w.each+e)*d:(i*w.each+e+1)*d])
				}
			}
			simd.Descend(dst, w.grad, lr, clip)
		}
	}
	return nil
}

// begin makes room for q points in d dimensions with m negatives for each edge.
func (w *placer) begin(q, m, d int) {
	// With shared negatives the edges are the four heads of the dense kernels, so that a
	// point's result does not depend on the others of its block.
	w.each, w.shared = 1, m >= runsFrom
	if w.shared {
		w.each = simd.BlockHeads
	}
	// The block is padded for the same reason.
	w.heads = (q*w.each + 15) &^ 15
	negatives := m * w.heads
	if w.shared {
		negatives = m
	}
	w.positions = resize(w.positions, (2*w.heads+negatives)*d)
	clear(w.positions[:w.heads*d])
	w.others = resize(w.others, w.heads+negatives)
	clear(w.others)
	w.grad = resize(w.grad, q*d)
	w.streams = w.streams[:0]
}

// draw draws the negatives of an epoch's edges from one on.
func (p *Projector) draw(w *placer, m, epoch, edge int) {
	if w.shared {
		stream := p.sharedStream(epoch, edge)
		for j := range m {
			w.others[w.heads+j] = int32(stream.IntN(p.n))
		}
		return
	}
	for j := range m {
		for i := range w.streams {
			w.others[(1+j)*w.heads+i] = int32(w.streams[i].IntN(p.n))
		}
	}
}

// start puts the points at the weighted mean of their neighbours.
func (p *Projector) start(dst []float32, near *neighbors.Neighbors, first int) {
	k, d := near.K, p.d
	mean := make([]float64, d)
	for i := range len(dst) / d {
		clear(mean)
		var total float64
		for j := range k {
			at := (first+i)*k + j
			weight := 1 / (1 + near.Dist2[at])
			total += weight
			for c := range mean {
				mean[c] += weight * float64(p.table[int(near.Index[at])*d+c])
			}
		}
		for c, v := range mean {
			dst[i*d+c] = float32(v / total)
		}
	}
}

// contentKey returns a hash of a point's values (FNV-1a), so that a point gets the same
// negatives wherever it is in a file.
func contentKey(x []float32) uint64 {
	key := uint64(14695981039346656037)
	for _, v := range x {
		key = (key ^ uint64(math.Float32bits(v))) * 1099511628211
	}
	return key
}

// projectionBlock is the number of threads of a block of the kernel project.
const projectionBlock = 128

// A deviceProjection is a table on a device, among which new points are moved.
type deviceProjection struct {
	device *device.Device
	table  *device.Memory // [n, d]
}

// useDevice has points moved on an accelerator, if it has a kernel for them.
func (p *Projector) useDevice(on *device.Device) error {
	const onCPU = "new points are placed on the CPU, with neighbours from the GPU, since they "
	if p.training.Objective.Metric != op.Euclidean {
		on.Note(onCPU + "are compared by their cosine")
		return nil
	}
	if p.d > 4 {
		on.Note(fmt.Sprintf("%shave %d dimensions, more than 4", onCPU, p.d))
		return nil
	}
	table, err := on.Alloc(4 * len(p.table))
	if err != nil {
		return err
	}
	p.onDevice = &deviceProjection{on, table}
	return device.Upload(on, table.Pointer(), p.table)
}

// placeOnDevice is place for all points of a call, a thread of the device for each.
func (p *Projector) placeOnDevice(dst, x []float32, near *neighbors.Neighbors) error {
	on, q, k, m := p.onDevice.device, len(dst)/p.d, near.K, p.training.Negatives
	parallel.For(q, projectionRows, func(_, lo, hi int) { p.start(dst[lo*p.d:hi*p.d], near, lo) })
	if p.epochs == 0 {
		return nil
	}
	lrs := make([]float32, p.epochs)
	for epoch := range lrs {
		lrs[epoch] = p.learningRate(epoch)
	}
	at := 1
	var keys []uint64 // states of streams: of the points, or of the steps
	if m >= runsFrom {
		at = simd.BlockHeads
		for epoch := range p.epochs {
			for edge := 0; edge < k; edge += at {
				stream := p.sharedStream(epoch, edge)
				keys = append(keys, stream.State())
			}
		}
	} else {
		keys = make([]uint64, q)
		parallel.For(q, projectionRows, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				stream := p.streamOf(x[i*p.width : (i+1)*p.width])
				keys[i] = stream.State()
			}
		})
	}
	memory, err := on.AllocPieces(4*len(dst), 4*len(near.Index), 8*len(keys), 4*len(lrs))
	if err != nil {
		return err
	}
	defer memory.Free()
	o := p.training.Objective
	flags := 0
	if o.ExcludePositive {
		flags = allOthers
	}
	kernel, args := op.KernelForWidth("project_%s", p.d,
		device.Arg(memory.At(0)), argOf(p.onDevice.table), device.Arg(memory.At(1)), device.Arg(memory.At(2)), device.Arg(memory.At(3)),
		device.Int(q), device.Int(p.n), device.Int(k), device.Int(m), device.Int(p.epochs), device.Int(at), device.F32(p.training.LogConst),
		device.Int(int(o.Loss)), device.Int(flags), device.F32(float64(1/simd.BoundOf[float32](o.Clamp).Clamp())), device.F32(cmp.Or(o.Scale, 1)),
		device.F32(bound(p.training.Clip)))
	// A kernel must not see what could not be uploaded.
	if err := cmp.Or(device.Upload(on, memory.At(0), dst), device.Upload(on, memory.At(1), near.Index), device.Upload(on, memory.At(2), keys), device.Upload(on, memory.At(3), lrs)); err != nil {
		return err
	}
	if err := on.Launch(kernel, device.Launch{Grid: parallel.Pieces(q, projectionBlock), Block: projectionBlock}, args...); err != nil {
		return err
	}
	return device.Download(on, dst, memory.At(0))
}

// allOthers is the flag of the kernels' sweeps.h.
const allOthers = 2

// learningRate returns the learning rate of an epoch.
func (p *Projector) learningRate(epoch int) float32 {
	return float32(p.training.LR * (1 - float64(epoch)/float64(p.epochs)))
}

// streamOf returns the random stream of a point's own negatives, and sharedStream the
// stream of the negatives that all points share in a step.
func (p *Projector) streamOf(x []float32) rng.Stream {
	return rng.New(p.training.Seed, rng.Projection, contentKey(x))
}
func (p *Projector) sharedStream(epoch, edge int) rng.Stream {
	return rng.New(p.training.Seed, rng.Projection, uint64(epoch), uint64(edge))
}
