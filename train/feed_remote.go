package train

import (
	"fmt"
	"math"
	"math/bits"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/rng"
	"cne/model/op"
)

const (
	// tileEdges is how many consecutive edges, or ends of edges, a block of
	// tileThreads threads works on, in the kernels that work on all of an epoch
	// or of a large batch.
	tileEdges   = 2048
	tileThreads = 256
	// maxStaged bounds the edges of a bucket that is shuffled in a block's shared
	// memory, stagedBytes for each.
	maxStaged   = 1 << 16
	stagedBytes = 2
	// staticShared is more than these kernels have of shared memory besides, in
	// bytes.
	staticShared = 4096
	// controlWords is the size of a control block in words of 32 bits.
	controlWords = 16
)

// A remoteFeed makes the batches of a run on an accelerator, the same ones as
// feed and contrast make of the same seed on the CPU. Nothing that it is asked
// for waits for the accelerator.
type remoteFeed struct {
	device *device.Device
	edges  int
	size   int // of a batch, but perhaps for the last
	fan    fanout
	// staged is for how many edges of a bucket a block has shared memory: as many
	// as there are but once in some 10¹⁵ times. For 2²³ edges, whose buckets are the
	// largest, that is 67 KiB, which every GPU has.
	staged int
	seed   uint64

	// An edge takes 24 bytes, and up to half a byte of counts: 10⁹ edges 24.5 GB.
	list, scattered, order *device.Memory // [edges] u64: as given, in buckets, of the epoch
	counts                 *device.Memory // [buckets, tiles] int32: see kernels/src/batches.c
	totals                 *device.Memory // [buckets of the first level] int32
	lists                  *device.Memory // [2, maxBuckets + 1] int32: where these lie

	// bits is the binary logarithm of the places of the hash table by which a
	// block finds the distinct points of a batch; it is 0 if no block has the
	// memory, and tables of all points serve instead.
	bits         int
	seen, slotOf *device.Memory // [points] int32
	fresh        *device.Memory // [tiles of a batch's ends] int32
}

// A remoteLayout is the ends of the edges of consecutive batches by their
// distinct points, on an accelerator, as model.Batch has them. Batches lie 2·size
// apart, of which a smaller one, and the rows of all, fill only the first.
type remoteLayout struct {
	rows, slots *op.Array // int32 [count, 2·size]
	counts      *op.Array // int32 [count]: how many distinct points there are
}

// newRemoteFeed makes a feed of batches of so many edges of a graph of n points.
func newRemoteFeed(d *device.Device, edges []edge, n, size int, seed uint64) (*remoteFeed, error) {
	return newRemoteFeedOver(fanoutOf(len(edges)), d, edges, n, size, seed)
}

// newRemoteFeedOver makes a feed that shuffles as newShufflerOver has it.
func newRemoteFeedOver(fan fanout, d *device.Device, edges []edge, n, size int, seed uint64) (f *remoteFeed, err error) {
	f = &remoteFeed{device: d, edges: len(edges), size: size, fan: fan, seed: seed}
	defer func() {
		if err != nil {
			f.close()
			f = nil
		}
	}()
	if len(edges) > math.MaxInt32 || size > math.MaxInt32/2 {
		return f, fmt.Errorf("train: an accelerator takes up to %d edges, and %d in a batch, not %d and %d", math.MaxInt32, math.MaxInt32/2, len(edges), size)
	}
	f.staged = stagedOf(len(edges), fan, d.Properties().SharedPerBlock)
	// A third of the places is empty at least, for the sake of speed.
	if f.bits = bits.Len(uint(3*size - 1)); 8<<f.bits > d.Properties().SharedPerBlock-staticShared {
		f.bits = 0
	}
	type part struct {
		to    **device.Memory
		bytes int
	}
	parts := []part{
		{&f.list, 8 * len(edges)}, {&f.scattered, 8 * len(edges)}, {&f.order, 8 * len(edges)},
		{&f.counts, 4 * max(fan.first*f.tiles(1), fan.second*f.tiles(fan.first))}, {&f.totals, 4 * fan.first}, {&f.lists, 4 * 2 * (maxBuckets + 1)},
	}
	if f.bits == 0 {
		parts = append(parts, part{&f.seen, 4 * n}, part{&f.slotOf, 4 * n}, part{&f.fresh, 4 * f.endTiles(size)})
	}
	for _, p := range parts {
		if *p.to, err = d.Alloc(p.bytes); err != nil {
			return f, err
		}
	}
	if f.bits == 0 {
		if err = d.Fill(f.seen.Pointer(), math.MaxUint32, n); err != nil {
			return f, err
		}
	}
	return f, device.Upload(d, f.list.Pointer(), edges)
}

// stagedOf returns for how many edges a block that shuffles a bucket has shared memory, if
// it can have so many bytes: the mean and eight standard deviations.
func stagedOf(edges int, fan fanout, shared int) int {
	mean := float64(edges) / float64(fan.first*fan.second)
	return min(edges, int(mean+8*math.Sqrt(mean))+1, maxStaged, (shared-staticShared)/stagedBytes)
}

// close gives the memory back.
func (f *remoteFeed) close() {
	for _, m := range []*device.Memory{f.list, f.scattered, f.order, f.counts, f.totals, f.lists, f.seen, f.slotOf, f.fresh} {
		if m != nil {
			m.Free()
		}
	}
}

func argOf(m *device.Memory) device.Arg { return device.Arg(m.Pointer()) }

// endTiles returns how many tiles the ends of b edges make.
func (f *remoteFeed) endTiles(b int) int { return (2*b + tileEdges - 1) / tileEdges }

// edgesOf returns how many edges a batch of the epoch has.
func (f *remoteFeed) edgesOf(batch int) int { return min(f.size, f.edges-batch*f.size) }

// tiles returns how many blocks work on all edges, as so many lists.
func (f *remoteFeed) tiles(lists int) int { return (f.edges+tileEdges-1)/tileEdges + lists }

// begin draws the order of an epoch's edges: see shuffler.
func (f *remoteFeed) begin(epoch int) error {
	key := device.Word(rng.New(f.seed, rng.Shuffle, uint64(epoch)).State())
	// With a second level, the order serves for the first.
	from := f.scattered
	if f.fan.second > 1 {
		from = f.order
	}
	if err := f.spread(from, f.list, 0, argOf(f.totals), 1, f.fan.first, key); err != nil {
		return err
	}
	lists := argOf(f.lists)
	if err := f.device.Launch("shuffle_lists", device.Launch{Grid: 1, Block: tileThreads}, lists, argOf(f.totals), device.Int(f.fan.first)); err != nil {
		return err
	}
	if f.fan.second > 1 {
		if err := f.spread(f.scattered, f.order, lists, 0, f.fan.first, f.fan.second, key); err != nil {
			return err
		}
	}
	return f.device.Launch("shuffle_buckets", device.Launch{Grid: f.fan.first * f.fan.second, Block: tileThreads, Shared: stagedBytes * f.staged},
		argOf(f.order), argOf(f.scattered), lists, argOf(f.counts), key, device.Int(f.fan.second), device.Int(f.tiles(f.fan.first)), device.Int(f.staged))
}

// spread distributes so many lists, or that of all edges with lists 0, over buckets.
// totals get how many edges each bucket has of all lists, unless they are 0.
func (f *remoteFeed) spread(to, from *device.Memory, lists, totals device.Arg, count, buckets int, key device.Arg) error {
	tiles, counts, edges := f.tiles(count), argOf(f.counts), device.Int(f.edges)
	if err := f.device.Launch("shuffle_count", device.Launch{Grid: tiles, Block: tileThreads},
		counts, lists, key, edges, device.Int(buckets)); err != nil {
		return err
	}
	if err := f.device.Launch("shuffle_scan", device.Launch{Grid: buckets, Block: min(1024, (tiles+31)/32*32)},
		counts, totals, device.Int(tiles)); err != nil {
		return err
	}
	return f.device.Launch("shuffle_scatter", device.Launch{Grid: tiles, Block: tileThreads},
		argOf(to), argOf(from), counts, lists, key, edges, device.Int(buckets))
}

// newRemoteLayout returns a layout that distinct fills.
func newRemoteLayout(d *device.Device) (l *remoteLayout, err error) {
	l = new(remoteLayout)
	for _, a := range []**op.Array{&l.rows, &l.slots, &l.counts} {
		if *a, err = op.NewArray(d, tensor.Int32, 0); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *remoteLayout) free() {
	l.rows.Free()
	l.slots.Free()
	l.counts.Free()
}

// batch makes rows and slots views of what a layout holds of its k-th batch, which
// has so many edges and distinct points.
func (l *remoteLayout) batch(rows, slots *op.Array, k, edges, distinct int) error {
	stride := l.rows.Cols()
	if err := rows.View(l.rows, k*stride, distinct); err != nil {
		return err
	}
	return slots.View(l.slots, k*stride, 2*edges)
}

// distinct finds the distinct points of count batches from number first of the epoch
// on: see slotter. The memory of the layout grows where it is too small.
func (f *remoteFeed) distinct(to *remoteLayout, first, count int) error {
	for _, a := range []*op.Array{to.rows, to.slots} {
		if err := a.Resize([]int{count, 2 * f.size}); err != nil {
			return err
		}
	}
	if err := to.counts.Resize([]int{count}); err != nil || count == 0 {
		return err
	}
	order, edges, size := argOf(f.order), device.Int(f.edges), device.Int(f.size)
	if f.bits > 0 {
		return f.device.Launch("distinct_small", device.Launch{Grid: count, Block: min(1024, (2*f.size+31)/32*32), Shared: 8 << f.bits},
			to.rows.Arg(), to.slots.Arg(), to.counts.Arg(), order, edges, size, device.Int(first), device.Int(f.bits))
	}
	seen, slotOf, fresh := argOf(f.seen), argOf(f.slotOf), argOf(f.fresh)
	for k := range count {
		batch, ends := device.Int(first+k), 2*f.edgesOf(first+k)
		rows, slots := device.Arg(to.rows.Pointer().At(k*2*f.size, 4)), device.Arg(to.slots.Pointer().At(k*2*f.size, 4))
		tiles := f.endTiles(f.edgesOf(first + k))
		if err := f.device.Each("distinct_see", ends, seen, order, edges, size, batch); err != nil {
			return err
		}
		if err := f.device.Launch("distinct_count", device.Launch{Grid: tiles, Block: tileThreads}, fresh, seen, order, edges, size, batch); err != nil {
			return err
		}
		if err := f.device.Launch("shuffle_scan", device.Launch{Grid: 1, Block: 1024},
			fresh, device.Arg(to.counts.Pointer().At(k, 4)), device.Int(tiles)); err != nil {
			return err
		}
		if err := f.device.Launch("distinct_number", device.Launch{Grid: tiles, Block: tileThreads},
			rows, slotOf, seen, fresh, order, edges, size, batch); err != nil {
			return err
		}
		if err := f.device.Each("distinct_slots", ends, slots, seen, slotOf, order, edges, size, batch); err != nil {
			return err
		}
	}
	return nil
}

// drawRemotely is contrast's draw on an accelerator, for the batch of b edges whose
// control block is at an address: negatives becomes [m, b], or [0, b] where there is
// nothing to name, and runs what model.Batch says. Both are int32.
func drawRemotely(d *device.Device, negatives, runs *op.Array, how Draw, m, b int, control device.Pointer) error {
	m = how.count(m, b)
	named, groups := 0, 0
	switch {
	case m == 2*b-2:
	case how.inRuns(m):
		groups = (b + op.GroupHeads - 1) / op.GroupHeads
	default:
		named = m
	}
	if err := negatives.Resize([]int{named, b}); err != nil {
		return err
	}
	if err := runs.Resize([]int{1 + groups}); err != nil {
		return err
	}
	switch {
	case groups > 0:
		return d.Launch("negatives_runs", device.Launch{Grid: 1, Block: min(1024, (groups+31)/32*32)},
			runs.Arg(), device.Arg(control), device.Int(m), device.Int(b))
	case named > 0:
		return d.Each("negatives_singly", named*((b+1)/2), negatives.Arg(), runs.Arg(), device.Arg(control), device.Int(named), device.Int(b))
	}
	return d.Fill(runs.Pointer(), math.MaxUint32, 1)
}

// putControl writes the control block of a batch to dst [controlWords], to be
// uploaded: the state of its stream of negatives, theta, and what its steps need
// to know (StepNumbers), of which those of log Z are four.
func putControl(dst []uint32, seed uint64, epoch, batch int, theta float64, numbers, numbersZ [8]float32) {
	state := rng.New(seed, rng.Negatives, uint64(epoch), uint64(batch)).State()
	dst[0], dst[1] = uint32(state), uint32(state>>32)
	dst[2], dst[3] = math.Float32bits(float32(theta)), 0
	for i, v := range numbers {
		dst[4+i] = math.Float32bits(v)
	}
	for i, v := range numbersZ[:4] {
		dst[12+i] = math.Float32bits(v)
	}
}

// controlAt returns where in blocks of an accelerator's memory the i-th block is,
// and thetaAt, numbersAt and numbersZAt where its parts are.
func controlAt(blocks device.Pointer, i int) device.Pointer { return blocks.At(i, 4*controlWords) }
func thetaAt(control device.Pointer) device.Pointer         { return control.At(2, 4) }
func numbersAt(control device.Pointer) device.Pointer       { return control.At(4, 4) }
func numbersZAt(control device.Pointer) device.Pointer      { return control.At(12, 4) }

// endBatch keeps a batch's loss [1], times a factor, as number batch of losses, and
// sets the int32 at status to 1 + batch if the loss is not finite and none before it
// was not.
func endBatch(losses *op.Array, status device.Pointer, loss *op.Array, batch int, factor float64) error {
	return losses.Device().Launch("batch_ended", device.Launch{Grid: 1, Block: 1}, losses.Arg(), device.Arg(status), loss.Arg(), device.Int(batch), device.F32(factor))
}
