package train

import (
	"math"
	"runtime"
	"slices"
	"time"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/model"
)

const (
	// blockEdges is the approximate number of edges in a block. Prepared batches are handed
	// to the training goroutine in blocks.
	blockEdges = 32768
	// smallBlock is blockEdges if the edges are shuffled in two levels. Blocks cannot bridge
	// the pause between epochs then, and small blocks leave more of the caches to the
	// positions.
	smallBlock = 8192
	// blocksAhead is the largest number of blocks prepared ahead. It bridges the pause while
	// the next epoch's edges are spread over the buckets. There are fewer if a block is one
	// large batch.
	blocksAhead = 8
	// edgesPerPiece is the approximate number of edges of a block that a core prepares before
	// it yields to the training.
	edgesPerPiece = 1024
	// When the preparation is far ahead, it checks after firstLook whether it may continue,
	// and then doubles the time each time, up to lastLook. It is late by at most the time
	// that it has waited. This is less than the time for training on a block.
	firstLook, lastLook = 50 * time.Microsecond, 10 * time.Millisecond
)

// A prefetcher prepares the batches of a run on a goroutine of its own, ahead of the
// training. It shuffles the edges and finds the distinct points of each batch. If the
// model takes images, it also has them drawn. (Negatives are drawn where they are used:
// that takes less time than handing them from one core to another.)
type prefetcher struct {
	edges   []edge
	size    int         // of a batch; the last may be smaller
	batches int         // in an epoch
	images  ImageSource // nil if the model takes none

	drawer   *edgeDrawer // nil: every edge comes once
	shuffle  *shuffler
	dedupers parallel.Pool[deduper]
	order    []edge // of the epoch, as far as the block at work needs it
	block    *block // at work
	filling  parallel.Loop

	ready chan *block
	spare chan *block
	stop  chan struct{}
	done  chan struct{}
}

// A block is a run of prepared batches of one epoch.
type block struct {
	epoch   int
	first   int // the number of its first batch in the epoch
	batches []model.Batch
	err     error // error of the images; this block is the last
}

// newPrefetcher starts to prepare the batches that options ask for of a graph of n points,
// from a position up to the epoch end. Batches for a model.Embedding (table) are given by
// their endpoints (fewRepeats) if that is faster.
func newPrefetcher(edges []edge, n int, table bool, options *Options, from position, end int) *prefetcher {
	size := options.batchSize(len(edges))
	byEnds := table && fewRepeats(n, size)
	inBlock := selection.If(len(edges) > maxSingleLevel, smallBlock, blockEdges)
	ahead, perBlock := max(1, min(blocksAhead, blocksAhead*inBlock/size)), max(1, inBlock/size)
	if options.Images != nil {
		ahead, perBlock = 1, 1 // the images of a batch may be large
	}
	p := &prefetcher{
		edges: edges, size: size, batches: options.batches(len(edges)), images: options.Images,
		drawer:   newEdgeDrawer(edges, options.Weights, options.Seed),
		shuffle:  newShuffler(fanoutOf(len(edges)), edges, options.Seed),
		dedupers: parallel.Pool[deduper]{New: func() *deduper { return newDeduper(n, byEnds) }},
		ready:    make(chan *block, ahead), spare: make(chan *block, ahead+2),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	p.filling.Ahead = true
	for range cap(p.spare) {
		p.spare <- new(block)
	}
	p.filling.Body = func(_, lo, hi int) {
		d := p.dedupers.Get()
		for j := lo; j < hi; j++ {
			first := (p.block.first + j) * size
			to, edges := &p.block.batches[j], p.order[first:min(len(edges), first+size)]
			if byEnds {
				d.fillEnds(to, edges)
			} else {
				d.fill(to, edges)
			}
		}
		p.dedupers.Put(d)
		parallel.Yield()
	}
	go p.prepare(from, end, perBlock)
	return p
}

// next returns the next block, nil after the last. The caller hands it to recycle when
// done with it.
func (p *prefetcher) next() *block { return <-p.ready }

func (p *prefetcher) recycle(b *block) { p.spare <- b }

// close ends the preparation and waits for its goroutine.
func (p *prefetcher) close() {
	close(p.stop)
	<-p.done
}

func (p *prefetcher) prepare(from position, end, perBlock int) {
	defer close(p.done)
	defer close(p.ready)
	first := from.batch
	for epoch := from.epoch; epoch < end; epoch++ {
		if p.drawer != nil {
			p.shuffle.edges = p.drawer.draw(epoch)
		}
		p.shuffle.begin(epoch)
		for batch := first; batch < p.batches; batch += perBlock {
			b := p.unused()
			if b == nil {
				return
			}
			b.epoch, b.first = epoch, batch
			b.batches = resize(b.batches, min(p.batches, batch+perBlock)-batch)
			p.block, p.order = b, p.shuffle.upTo(min(len(p.edges), (batch+len(b.batches))*p.size))
			p.filling.Run(len(b.batches), max(1, edgesPerPiece/p.size))
			for j := range b.batches {
				if p.images != nil && b.err == nil {
					b.err = draw(p.images, &b.batches[j], epoch)
				}
			}
			select {
			case p.ready <- b:
			case <-p.stop:
				return
			}
			if b.err != nil {
				return
			}
		}
		first = 0
	}
}

// unused waits for a block that can be filled; nil if the preparation must stop. It
// polls, because a channel would wake it on the training goroutine's processor, where it
// would have to wait while another processor is idle.
func (p *prefetcher) unused() *block {
	for wait := firstLook; runtime.GOMAXPROCS(0) > 1; wait = min(2*wait, lastLook) {
		select {
		case b := <-p.spare:
			return b
		case <-p.stop:
			return nil
		default:
			time.Sleep(wait)
		}
	}
	select {
	case b := <-p.spare:
		return b
	case <-p.stop:
		return nil
	}
}

// draw sets a batch's Images.
func draw(source ImageSource, to *model.Batch, epoch int) error {
	shape := source.Shape()
	to.Images = resize(to.Images, len(to.Rows)*shape[0]*shape[1]*shape[2])
	return source.ImagesTo(to.Images, to.Rows, epoch)
}

// A deduper numbers the distinct points of a batch from 0, or finds those that occur again.
type deduper struct {
	// seen[p] − base is the number of point p within the batch at hand, if that
	// is not negative. Every batch raises the base above the numbers in use, so
	// nothing has to be cleared in between.
	seen []int32
	base int32
	// For batches by their endpoints, mark replaces seen, with a bit for each point of the
	// current batch. It fits the caches. repeated are the points that occur again, in order,
	// and firsts their first endpoints.
	mark     []uint64
	repeated []int32
	firsts   []int32
}

// maxRepeats is the largest expected number of repeated points, for random edges, of a
// batch that is given by its endpoints.
const maxRepeats = 64

// fewRepeats reports whether batches of size edges between n points are given by their
// endpoints if they are for a model.Embedding. Two cores must not write gradient rows of
// the same point, even if one row is 0. Such a batch must therefore be one piece of an
// Optimizer's step.
func fewRepeats(n, size int) bool {
	return 2*size <= rowsPerPiece && 2*size <= n && 2*size*size <= maxRepeats*n
}

// newDeduper returns a deduper for batches of a graph of n points, by their endpoints or not.
func newDeduper(n int, byEnds bool) *deduper {
	if byEnds {
		return &deduper{mark: make([]uint64, (n+63)/64)}
	}
	return &deduper{seen: make([]int32, n), base: 1}
}

// fill sets a batch's Rows and Local to the ends of its edges. It needs seen.
func (d *deduper) fill(to *model.Batch, edges []edge) {
	n := len(edges)
	if int(d.base) > math.MaxInt32-2*n {
		clear(d.seen)
		d.base = 1
	}
	to.Local = resize(to.Local, 2*n)
	to.Rows = resize(to.Rows, 2*n+1)
	used := d.number(to.Local[:n], to.Rows, edges, 0, 0)
	used = d.number(to.Local[n:], to.Rows, edges, 32, used)
	to.Rows = to.Rows[:used]
	d.base += int32(used)
}

// number numbers the points at one end of the edges: the end that begins at the given
// bit. It returns the number of numbers in use afterwards. It does not branch on whether
// a point has been seen, because in large batches the processor cannot predict this
// branch.
func (d *deduper) number(local, rows []int32, edges []edge, bit int, used int) int {
	seen, base, next := d.seen, d.base, int32(used)
	local = local[:len(edges)]
	for i, e := range edges {
		point := uint32(e >> bit)
		k := seen[point] - base
		fresh := k >> 31 // −1 if the point has no number yet, else 0
		k = k&^fresh | next&fresh
		seen[point] = k + base
		rows[next] = int32(point) // unless it is fresh, the next fresh point overwrites it
		local[i] = k
		next -= fresh
	}
	return int(next)
}

// fillEnds sets a batch's Rows and Repeats to the ends of its edges. It needs mark.
func (d *deduper) fillEnds(to *model.Batch, edges []edge) {
	n := len(edges)
	to.Rows, to.Repeats = resize(to.Rows, 2*n), to.Repeats[:0]
	d.repeated = d.repeated[:0]
	d.markEnds(to.Rows[:n], edges, 0)
	d.markEnds(to.Rows[n:], edges, 32)
	for _, point := range to.Rows {
		d.mark[uint32(point)>>6] = 0
	}
	if len(d.repeated) == 0 {
		return
	}
	slices.Sort(d.repeated)
	d.repeated = slices.Compact(d.repeated)
	d.firsts = resize(d.firsts, len(d.repeated))
	for k, point := range d.repeated {
		d.mark[uint32(point)>>6] |= 1 << (uint32(point) & 63)
		d.firsts[k] = -1
	}
	for i, point := range to.Rows {
		if d.mark[uint32(point)>>6]>>(uint32(point)&63)&1 == 0 {
			continue
		}
		k, _ := slices.BinarySearch(d.repeated, point)
		if first := d.firsts[k]; first >= 0 {
			to.Repeats = append(to.Repeats, model.Repeat{First: first, Again: int32(i)})
		} else {
			d.firsts[k] = int32(i)
		}
	}
	for _, point := range d.repeated {
		d.mark[uint32(point)>>6] = 0
	}
}

// markEnds sets rows to the points at one end of the edges, and marks them.
func (d *deduper) markEnds(rows []int32, edges []edge, bit int) {
	rows = rows[:len(edges)]
	for i, e := range edges {
		point := uint32(e >> bit)
		rows[i] = int32(point)
		word, mask := &d.mark[point>>6], uint64(1)<<(point&63)
		if *word&mask != 0 {
			d.repeated = append(d.repeated, int32(point))
		}
		*word |= mask
	}
}

func resize[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	grown := make([]E, n)
	copy(grown, s[:cap(s)])
	return grown
}

// checkEdges checks a list of directed edges between n points. It fails as kind.Need does.
func checkEdges(heads, tails []int32, n int) {
	kind.Need(len(heads) == len(tails), ErrInput, "train: edges: got %d heads and %d tails, want as many of both", len(heads), len(tails))
	for i, h := range heads {
		if t := tails[i]; h < 0 || int(h) >= n || t < 0 || int(t) >= n || h == t {
			kind.Fail(ErrInput, "train: edge %d: got points %d and %d, want two different ones below %d", i, h, t, n)
		}
	}
}

func packEdges(heads, tails []int32) []edge {
	edges := make([]edge, len(heads))
	for i, h := range heads {
		edges[i] = packEdge(h, tails[i])
	}
	return edges
}
