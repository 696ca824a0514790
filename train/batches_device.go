package train

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/rng"
	"cne/model/op"
)

const (
	// tileEdges is the number of consecutive edges, or ends of edges, of a block of
	// tileThreads threads in the kernels for a whole epoch or a large batch.
	tileEdges   = 2048
	tileThreads = 256
	// maxStaged bounds the edges of a bucket that is shuffled in a block's shared
	// memory; each takes stagedBytes.
	maxStaged   = 1 << 16
	stagedBytes = 2
	// staticShared is an upper bound of these kernels' static shared memory, in bytes.
	staticShared = 4096
	// controlWords is the size of a control block in words of 32 bits.
	controlWords = 16
)

// A deviceBatcher makes the batches of a run on a device. They equal the batches that a
// prefetcher makes on the CPU from the same seed. Only the upload of edges with weights waits
// for the device.
type deviceBatcher struct {
	device *device.Device
	edges  int
	size   int // of a batch; the last may be smaller
	fan    fanout
	// staged is the largest number of edges of a bucket that fits a block's shared memory.
	// About one bucket in 10¹⁵ is larger. The largest buckets, of 2²³ edges in all, need 67
	// KiB; every supported GPU has that much.
	staged int
	seed   uint64
	drawer *edgeDrawer // nil: every edge comes once

	// An edge takes 16 bytes, and up to half a byte of counts; and 8 bytes in the order.
	list, scattered *device.Memory // [edges] u64: as given, in buckets
	counts          *device.Memory // [buckets, tiles] int32: see kernels/src/batches.c
	totals          *device.Memory // [buckets of the first level] int32
	lists           *device.Memory // [2, maxBuckets + 1] int32: where these lie

	// bits is the binary logarithm of the size of the hash table that a block uses to find a
	// batch's distinct points. It is 0 if the table does not fit shared memory: tables of
	// all points are used instead.
	bits          int
	seen, localOf *device.Memory // [points] int32
	fresh         *device.Memory // [tiles of a batch's ends] int32
}

// A deviceLayout holds, on a device, the distinct points of consecutive batches and the
// local numbers of their edges' ends, as model.Batch has them. A batch takes 2·size
// places, and fills only the first of them.
type deviceLayout struct {
	rows, local *op.Array // int32 [count, 2·size]
	counts      *op.Array // int32 [count]: how many distinct points there are
}

// newDeviceBatcher returns a batcher for batches of size edges of a graph of n points.
func newDeviceBatcher(fan fanout, d *device.Device, edges []edge, n, size int, seed uint64) (_ *deviceBatcher, err error) {
	f := &deviceBatcher{device: d, edges: len(edges), size: size, fan: fan, seed: seed}
	defer kind.Undo(&err, f.close)
	if len(edges) > math.MaxInt32 || size > math.MaxInt32/2 {
		return nil, fmt.Errorf("train: edges on an accelerator: got %d in batches of %d, want at most %d and %d; device.name: cpu takes more", len(edges), size,
			math.MaxInt32, math.MaxInt32/2)
	}
	f.staged = stagedOf(len(edges), fan, d.Properties().SharedPerBlock)
	// At least a third of the hash table stays empty, for speed.
	if f.bits = bits.Len(uint(3*size - 1)); 8<<f.bits > d.Properties().SharedPerBlock-staticShared {
		f.bits = 0
	}
	type part struct {
		to    **device.Memory
		bytes int
	}
	parts := []part{
		{&f.list, 8 * len(edges)}, {&f.scattered, 8 * len(edges)},
		{&f.counts, 4 * max(fan.first*f.tiles(1), fan.second*f.tiles(fan.first))}, {&f.totals, 4 * fan.first},
		{&f.lists, 4 * 2 * (maxBuckets + 1)},
	}
	if f.bits == 0 {
		parts = append(parts, part{&f.seen, 4 * n}, part{&f.localOf, 4 * n}, part{&f.fresh, 4 * f.endTiles(size)})
	}
	for _, p := range parts {
		*p.to = kind.Got(d.Alloc(p.bytes))
	}
	if f.bits == 0 {
		kind.Check(d.Fill(f.seen.Pointer(), math.MaxUint32, n))
	}
	kind.Check(device.Upload(d, f.list.Pointer(), edges))
	return f, nil
}

// stagedOf returns the number of edges of a bucket that a block holds in shared memory:
// the mean plus eight standard deviations, or less if the device has less shared memory.
func stagedOf(edges int, fan fanout, shared int) int {
	mean := float64(edges) / float64(fan.first*fan.second)
	return min(edges, int(mean+float64(8*math.Sqrt(mean)))+1, maxStaged, (shared-staticShared)/stagedBytes)
}

// close frees the memory.
func (f *deviceBatcher) close() {
	free(f.list, f.scattered, f.counts, f.totals, f.lists, f.seen, f.localOf, f.fresh)
}

func argOf(m *device.Memory) device.Arg { return device.Arg(m.Pointer()) }

// endTiles returns the number of tiles of the ends of b edges.
func (f *deviceBatcher) endTiles(b int) int { return (2*b + tileEdges - 1) / tileEdges }

// edgesOf returns the number of edges in a batch of the epoch.
func (f *deviceBatcher) edgesOf(batch int) int { return min(f.size, f.edges-batch*f.size) }

// tiles returns the number of blocks for all edges in the given number of lists.
func (f *deviceBatcher) tiles(lists int) int { return (f.edges+tileEdges-1)/tileEdges + lists }

// newOrder allocates memory for the order of an epoch: [edges] u64.
func (f *deviceBatcher) newOrder() (*device.Memory, error) { return f.device.Alloc(8 * f.edges) }

// begin draws the order of an epoch's edges: see shuffler. If the edges have weights, the
// CPU draws them first.
func (f *deviceBatcher) begin(order *device.Memory, epoch int) (err error) {
	defer kind.Catch(&err)
	if f.drawer != nil {
		kind.Check(device.Upload(f.device, f.list.Pointer(), f.drawer.draw(epoch)))
	}
	key := device.Word(rng.New(f.seed, rng.Shuffle, uint64(epoch)).State())
	// With two levels, order temporarily holds the buckets of the first level.
	from := f.scattered
	if f.fan.second > 1 {
		from = order
	}
	f.spread(from, f.list, 0, argOf(f.totals), 1, f.fan.first, key)
	lists := argOf(f.lists)
	kind.Check(f.device.Launch("shuffle_lists", device.Launch{Grid: 1, Block: tileThreads}, lists, argOf(f.totals),
		device.Int(f.fan.first)))
	if f.fan.second > 1 {
		f.spread(f.scattered, order, lists, 0, f.fan.first, f.fan.second, key)
	}
	return f.device.Launch("shuffle_buckets", device.Launch{Grid: f.fan.first * f.fan.second, Block: tileThreads, Shared: stagedBytes * f.staged},
		argOf(order), argOf(f.scattered), lists, argOf(f.counts), key, device.Int(f.fan.second), device.Int(f.tiles(f.fan.first)),
		device.Int(f.staged))
}

// spread distributes the edges of count lists over buckets; lists = 0 stands for one
// list of all edges. totals, unless 0, gets the number of edges in each bucket. It fails as
// kind.Need does.
func (f *deviceBatcher) spread(to, from *device.Memory, lists, totals device.Arg, count, buckets int, key device.Arg) {
	d, tiles, counts, edges := f.device, f.tiles(count), argOf(f.counts), device.Int(f.edges)
	kind.Check(d.Launch("shuffle_count", device.Launch{Grid: tiles, Block: tileThreads},
		counts, lists, key, edges, device.Int(buckets)))
	kind.Check(d.Launch("shuffle_scan", device.Launch{Grid: buckets, Block: min(1024, (tiles+31)/32*32)},
		counts, totals, device.Int(tiles)))
	kind.Check(d.Launch("shuffle_scatter", device.Launch{Grid: tiles, Block: tileThreads},
		argOf(to), argOf(from), counts, lists, key, edges, device.Int(buckets)))
}

// newDeviceLayout returns a layout that distinct fills.
func newDeviceLayout(d *device.Device) *deviceLayout {
	l := new(deviceLayout)
	newArrays(d, tensor.Int32, 0, &l.rows, &l.local, &l.counts) // allocates nothing yet
	return l
}

func (l *deviceLayout) free() { free(l.rows, l.local, l.counts) }

// batch makes rows and local views of the layout's k-th batch. edges and distinct are its
// numbers of edges and distinct points.
func (l *deviceLayout) batch(rows, local *op.Array, k, edges, distinct int) error {
	stride := l.rows.Cols()
	return cmp.Or(rows.View(l.rows, k*stride, distinct), local.View(l.local, k*stride, 2*edges))
}

// part returns views of the layout's batches k to k+count−1, or fails as kind.Need does.
func (l *deviceLayout) part(k, count int) (rows, local, counts *op.Array) {
	newArrays(l.rows.Device(), tensor.Int32, 0, &rows, &local, &counts)
	stride := l.rows.Cols()
	kind.Check(rows.View(l.rows, k*stride, count, stride))
	kind.Check(local.View(l.local, k*stride, count, stride))
	kind.Check(counts.View(l.counts, k, count))
	return rows, local, counts
}

// resize gives the layout memory for count batches of size edges.
func (l *deviceLayout) resize(count, size int) error {
	return cmp.Or(l.rows.Resize([]int{count, 2 * size}), l.local.Resize([]int{count, 2 * size}), l.counts.Resize([]int{count}))
}

// distinct finds the distinct points of batches of an epoch's order, starting with number
// first, until the layout is full, as a deduper does on the CPU.
func (f *deviceBatcher) distinct(order *device.Memory, to *deviceLayout, first int) (err error) {
	defer kind.Catch(&err)
	count := to.counts.Len()
	if count == 0 {
		return nil
	}
	d, list, edges, size := f.device, argOf(order), device.Int(f.edges), device.Int(f.size)
	if f.bits > 0 {
		return d.Launch("distinct_small", device.Launch{Grid: count, Block: min(1024, (2*f.size+31)/32*32), Shared: 8 << f.bits},
			to.rows.Arg(), to.local.Arg(), to.counts.Arg(), list, edges, size, device.Int(first), device.Int(f.bits))
	}
	seen, localOf, fresh := argOf(f.seen), argOf(f.localOf), argOf(f.fresh)
	for k := range count {
		batch, ends := device.Int(first+k), 2*f.edgesOf(first+k)
		rows, local := device.Arg(to.rows.Pointer().At(k*2*f.size, 4)), device.Arg(to.local.Pointer().At(k*2*f.size, 4))
		tiles := f.endTiles(f.edgesOf(first + k))
		kind.Check(d.Each("distinct_see", ends, seen, list, edges, size, batch))
		kind.Check(d.Launch("distinct_count", device.Launch{Grid: tiles, Block: tileThreads}, fresh, seen, list, edges, size, batch))
		kind.Check(d.Launch("shuffle_scan", device.Launch{Grid: 1, Block: 1024},
			fresh, device.Arg(to.counts.Pointer().At(k, 4)), device.Int(tiles)))
		kind.Check(d.Launch("distinct_number", device.Launch{Grid: tiles, Block: tileThreads},
			rows, localOf, seen, fresh, list, edges, size, batch))
		kind.Check(d.Each("distinct_local", ends, local, seen, localOf, list, edges, size, batch))
	}
	return nil
}

// drawOnDevice is negativeSampler.draw on a device, for the batch of b edges with the
// control block at an address. negatives becomes [m, b], or [0, b] if none are listed,
// and layout as in model.Batch; both are int32.
func drawOnDevice(d *device.Device, negatives, layout *op.Array, how Sampling, m, b int, control device.Pointer) error {
	m = how.count(m, b)
	named, groups := 0, 0
	switch {
	case m == 2*b-2:
	case how.inRuns(m):
		groups = (b + op.GroupHeads - 1) / op.GroupHeads
	default:
		named = m
	}
	if err := cmp.Or(negatives.Resize([]int{named, b}), layout.Resize([]int{1 + groups})); err != nil {
		return err
	}
	switch {
	case groups > 0:
		return d.Launch("negatives_runs", device.Launch{Grid: 1, Block: min(1024, (groups+31)/32*32)},
			layout.Arg(), device.Arg(control), device.Int(m), device.Int(b))
	case named > 0:
		return d.Each("negatives_per_head", named*((b+1)/2), negatives.Arg(), layout.Arg(), device.Arg(control), device.Int(named), device.Int(b))
	}
	return d.Fill(layout.Pointer(), math.MaxUint32, 1)
}

// putControl writes a batch's control block to dst [controlWords]: the state of its
// stream of negatives, logConst, the numbers of the step, and the first four of log Z's
// step.
func putControl(dst []uint32, seed uint64, epoch, batch int, logConst float64, numbers, numbersZ stepNumbers) {
	state := rng.New(seed, rng.Negatives, uint64(epoch), uint64(batch)).State()
	dst[0], dst[1] = uint32(state), uint32(state>>32)
	dst[2], dst[3] = math.Float32bits(float32(logConst)), 0
	for i, v := range numbers {
		dst[4+i] = math.Float32bits(v)
	}
	for i, v := range numbersZ[:4] {
		dst[12+i] = math.Float32bits(v)
	}
}

// controlAt returns the address of the i-th control block; logConstAt, numbersAt and
// numbersZAt return the addresses of a block's parts.
func controlAt(blocks device.Pointer, i int) device.Pointer { return blocks.At(i, 4*controlWords) }
func logConstAt(control device.Pointer) device.Pointer      { return control.At(2, 4) }
func numbersAt(control device.Pointer) device.Pointer       { return control.At(4, 4) }
func numbersZAt(control device.Pointer) device.Pointer      { return control.At(12, 4) }

// endBatch sets losses[batch], of float32, to loss [1] times a factor. If the loss is the first that
// is not finite, it sets the int32 at status to 1 + batch.
func endBatch(losses, status device.Pointer, loss *op.Array, batch int, factor float64) error {
	return loss.Device().Launch("batch_ended", device.Launch{Grid: 1, Block: 1}, device.Arg(losses), device.Arg(status),
		loss.Arg(), device.Int(batch), device.F32(factor))
}

// A batchWindow is a range of an epoch's batches, which are prepared together: the order of
// the epoch's edges, and the distinct points of the batches. at moves the window along a
// run.
type batchWindow struct {
	batcher   *deviceBatcher
	batches   int // of an epoch
	perWindow int // the largest number of batches of the window
	// layoutFrom returns the number of the first batch of an epoch whose distinct points are
	// needed.
	layoutFrom func(epoch int) int

	epoch, first, count int // epoch is −1 for an empty window
	order               *device.Memory
	shuffled            int // the epoch that order is of; −1: none
	// layout has the distinct points of batches from number from onwards. Batches before it
	// are trained without them.
	layout *deviceLayout
	from   int
	// counts, in the program's memory, are the batches' numbers of distinct points, once
	// requested.
	counts []int32
}

// windowOf returns the number of batches in a window, given an epoch's batches and their
// size in edges.
func windowOf(batches, size int) int {
	return min(batches, windowBatches, max(1, chunkEdges/size))
}

// newBatchWindow returns an empty window, which owns the batcher.
func newBatchWindow(f *deviceBatcher, batches int, layoutFrom func(epoch int) int) (w *batchWindow, err error) {
	w = &batchWindow{batcher: f, batches: batches, perWindow: windowOf(batches, f.size), layoutFrom: layoutFrom,
		epoch: -1, shuffled: -1, layout: newDeviceLayout(f.device)}
	w.order, err = f.newOrder()
	return w, err
}

// free frees the memory.
func (w *batchWindow) free() {
	free(w.order)
	w.layout.free()
	w.batcher.close()
}

// at moves the window to a batch, unless it is there.
func (w *batchWindow) at(epoch, batch int) (err error) {
	if w.epoch == epoch && w.first <= batch && batch < w.first+w.count {
		return nil
	}
	defer kind.Catch(&err)
	w.epoch, w.first = -1, batch/w.perWindow*w.perWindow
	w.count = min(w.perWindow, w.batches-w.first)
	if w.shuffled != epoch {
		w.shuffled = -1
		kind.Check(w.batcher.begin(w.order, epoch))
		w.shuffled = epoch
	}
	end := w.first + w.count
	from := min(max(w.first, w.layoutFrom(epoch)), end)
	kind.Check(w.layOut(from, end-from))
	w.epoch = epoch
	return nil
}

// layOut finds the distinct points of count batches of the window, starting with number from.
func (w *batchWindow) layOut(from, count int) error {
	w.from, w.counts = from, nil
	if err := w.layout.resize(count, w.batcher.size); err != nil {
		return err
	}
	return w.batcher.distinct(w.order, w.layout, from)
}

// distinct returns the number of distinct points of a batch that is in the layout. The
// first call for a layout waits for its preparation.
func (w *batchWindow) distinct(batch int) (int, error) {
	if w.counts == nil {
		w.counts = make([]int32, w.layout.counts.Len())
		if err := device.Download(w.batcher.device, w.counts, w.layout.counts.Pointer()); err != nil {
			return 0, err
		}
	}
	return int(w.counts[batch-w.from]), nil
}
