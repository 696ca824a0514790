package train

import (
	"fmt"
	"math"

	"cne/model"
)

const (
	// blockEdges is about how many edges are prepared between two hand-offs
	// from the goroutine that prepares batches to the one that trains.
	blockEdges = 32768
	// blocksAhead is how far the preparation may run ahead. It covers the
	// pause in which the next epoch's edges are spread over the buckets. Where
	// a block is one large batch, fewer are kept.
	blocksAhead = 8
)

// A feed prepares the batches of a run on a goroutine of its own, ahead of the
// training: it shuffles the edges, finds the distinct points of each batch, and
// lets Options.Prepare do the rest.
// (The negatives are drawn where they are used: that takes less time than to
// hand them from one core to another.)
type feed struct {
	edges   []edge
	size    int                                          // of a batch, but perhaps for the last
	batches int                                          // in an epoch
	extra   func(b *model.Batch, epoch, batch int) error // Options.Prepare

	shuffle *shuffler
	slots   slotter

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
	err     error // of Options.Prepare: nothing comes after this block
}

// newFeed starts to prepare the batches that options ask for of a graph of n
// points, from a position up to the epoch end.
func newFeed(edges []edge, n int, options *Options, from position, end int) *feed {
	size := options.batchSize(len(edges))
	ahead, perBlock := max(1, min(blocksAhead, blocksAhead*blockEdges/size)), max(1, blockEdges/size)
	if options.Prepare != nil {
		ahead, perBlock = 1, 1 // what it adds to a batch may be large
	}
	f := &feed{
		edges: edges, size: size, batches: options.batches(len(edges)), extra: options.Prepare,
		shuffle: newShuffler(edges, options.Seed), slots: newSlotter(n),
		ready: make(chan *block, ahead), spare: make(chan *block, ahead+2),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range cap(f.spare) {
		f.spare <- new(block)
	}
	go f.prepare(from, end, perBlock)
	return f
}

// next returns the next block, nil after the last; the caller gives it back to
// recycle once it is done with it.
func (f *feed) next() *block { return <-f.ready }

func (f *feed) recycle(b *block) { f.spare <- b }

// close ends the preparation and waits for its goroutine.
func (f *feed) close() {
	close(f.stop)
	<-f.done
}

func (f *feed) prepare(from position, end, perBlock int) {
	defer close(f.done)
	defer close(f.ready)
	first := from.batch
	for epoch := from.epoch; epoch < end; epoch++ {
		f.shuffle.begin(epoch)
		for batch := first; batch < f.batches; batch += perBlock {
			var b *block
			select {
			case b = <-f.spare:
			case <-f.stop:
				return
			}
			b.epoch, b.first = epoch, batch
			b.batches = resize(b.batches, min(f.batches, batch+perBlock)-batch)
			for j := range b.batches {
				lo := (batch + j) * f.size
				hi := min(len(f.edges), lo+f.size)
				f.slots.fill(&b.batches[j], f.shuffle.upTo(hi)[lo:hi])
				if f.extra != nil && b.err == nil {
					b.err = f.extra(&b.batches[j], epoch, batch+j)
				}
			}
			select {
			case f.ready <- b:
			case <-f.stop:
				return
			}
			if b.err != nil {
				return
			}
		}
		first = 0
	}
}

// A slotter numbers the distinct points of a batch.
type slotter struct {
	// seen[p] − base is the slot of point p in the batch at hand, if that is
	// not negative. The base moves on past the slots of a batch for the next,
	// so that nothing has to be wiped.
	seen []int32
	base int32
}

func newSlotter(n int) slotter { return slotter{seen: make([]int32, n), base: 1} }

// fill sets a batch's Rows and Local to the ends of its edges.
func (s *slotter) fill(to *model.Batch, edges []edge) {
	n := len(edges)
	if int(s.base) > math.MaxInt32-2*n {
		clear(s.seen)
		s.base = 1
	}
	to.Local = resize(to.Local, 2*n)
	to.Rows = resize(to.Rows, 2*n+1)
	used := s.number(to.Local[:n], to.Rows, edges, 0, 0)
	used = s.number(to.Local[n:], to.Rows, edges, 32, used)
	to.Rows = to.Rows[:used]
	s.base += int32(used)
}

// number finds the slots of one end of the edges, the one that begins at the
// given bit, and returns how many slots are in use after that. There is no
// branch on whether a point has been seen: in large batches every other one
// has, unpredictably.
func (s *slotter) number(slots, rows []int32, edges []edge, bit int, used int) int {
	seen, base, next := s.seen, s.base, int32(used)
	slots = slots[:len(edges)]
	for i, e := range edges {
		point := uint32(e >> bit)
		slot := seen[point] - base
		fresh := slot >> 31 // −1 if the point has no slot yet, else 0
		slot = slot&^fresh | next&fresh
		seen[point] = slot + base
		rows[next] = int32(point) // the next fresh point overwrites it if this is none
		slots[i] = slot
		next -= fresh
	}
	return int(next)
}

func resize[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	grown := make([]E, n)
	copy(grown, s[:cap(s)])
	return grown
}

// packEdges checks a list of directed edges and packs it.
func packEdges(heads, tails []int32, n int) ([]edge, error) {
	if len(heads) != len(tails) {
		return nil, fmt.Errorf("train: %d heads but %d tails of edges", len(heads), len(tails))
	}
	edges := make([]edge, len(heads))
	for i, h := range heads {
		t := tails[i]
		if h < 0 || int(h) >= n || t < 0 || int(t) >= n || h == t {
			return nil, fmt.Errorf("train: edge %d goes from point %d to point %d; there are %d points, and an edge joins two of them", i, h, t, n)
		}
		edges[i] = packEdge(h, t)
	}
	return edges, nil
}
