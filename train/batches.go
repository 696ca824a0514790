package train

import (
	"fmt"

	"cne/internal/rng"
	"cne/model"
)

// Full, as a number of negatives, stands for every row of the batch but the
// head and its tail, once.
const Full = -1

const (
	// blockEdges is about how many edges are prepared between two hand-offs
	// from the goroutine that prepares batches to the one that trains.
	blockEdges = 32768
	// blockNegatives bounds the negatives of a block, where there are many.
	blockNegatives = 1 << 20
	// blocksAhead is how far the preparation may run ahead. It covers the
	// pause in which the next epoch's edges are spread over the buckets.
	blocksAhead = 8
)

// Batches prepares the batches of a run on a goroutine of its own, ahead of
// the training: it shuffles the edges, draws the negatives and finds the
// distinct points of each batch. It belongs to one run of Fit.
type Batches struct {
	edges []edge
	n     int
	size  int
	seed  uint64

	shuffle *shuffler
	slotOf  []int32 // per point: its slot in the batch at hand, or −1

	ready chan *block
	spare chan *block
	stop  chan struct{}
	done  chan struct{}
}

// A block is a run of prepared batches of one epoch.
type block struct {
	epoch   int
	batches []model.Batch
}

// newBatches returns the batches of the given size for a graph of n points.
// plan holds the number of negatives (or Full) for each epoch from first on;
// there are as many epochs as it has entries.
func newBatches(edges []edge, n, size int, seed uint64, first int, plan []int) *Batches {
	b := &Batches{
		edges: edges, n: n, size: size, seed: seed,
		shuffle: newShuffler(edges, seed), slotOf: make([]int32, n),
		ready: make(chan *block, blocksAhead), spare: make(chan *block, blocksAhead+2),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for i := range b.slotOf {
		b.slotOf[i] = -1
	}
	for range cap(b.spare) {
		b.spare <- new(block)
	}
	go b.prepare(first, plan)
	return b
}

// next returns the next block, nil after the last; the caller gives it back to
// recycle once it is done with it.
func (b *Batches) next() *block { return <-b.ready }

func (b *Batches) recycle(k *block) { b.spare <- k }

// close ends the preparation and waits for its goroutine.
func (b *Batches) close() {
	close(b.stop)
	<-b.done
}

func (b *Batches) prepare(first int, plan []int) {
	defer close(b.done)
	defer close(b.ready)
	for i, m := range plan {
		epoch := first + i
		b.shuffle.begin(epoch)
		count := (len(b.edges) + b.size - 1) / b.size
		perBlock := max(1, min(blockEdges/b.size, blockNegatives/max(1, capNegatives(m, b.size)*b.size)))
		for batch := 0; batch < count; batch += perBlock {
			var k *block
			select {
			case k = <-b.spare:
			case <-b.stop:
				return
			}
			k.epoch = epoch
			end := min(count, batch+perBlock)
			k.batches = resize(k.batches, end-batch)
			for j := range k.batches {
				lo := (batch + j) * b.size
				hi := min(len(b.edges), lo+b.size)
				b.fill(&k.batches[j], b.shuffle.upTo(hi)[lo:hi], m, epoch, batch+j)
			}
			select {
			case b.ready <- k:
			case <-b.stop:
				return
			}
		}
	}
}

// fill makes a batch of edges.
func (b *Batches) fill(to *model.Batch, edges []edge, m, epoch, batch int) {
	n := len(edges)
	to.Slots = resize(to.Slots, 2*n)
	to.Rows = resize(to.Rows, 2*n+1)
	heads, tails := to.Slots[:n], to.Slots[n:2*n]
	used := int32(0)
	for i, e := range edges {
		heads[i], used = b.slot(to.Rows, e.head(), used)
	}
	for i, e := range edges {
		tails[i], used = b.slot(to.Rows, e.tail(), used)
	}
	to.Rows = to.Rows[:used]
	for _, r := range to.Rows {
		b.slotOf[r] = -1
	}
	drawNegatives(to, m, rng.New(b.seed, rng.Negatives, uint64(epoch), uint64(batch)))
}

// slot returns the slot of a point in the batch, giving it the next free one
// if it has none, and the number of slots then in use. Without a branch: in
// large batches every other point has been seen before, unpredictably.
func (b *Batches) slot(rows []int32, point, used int32) (slot, nowUsed int32) {
	slot = b.slotOf[point]
	fresh := slot >> 31 // −1 if the point has no slot, else 0
	slot = slot&^fresh | used&fresh
	rows[used] = point // overwritten by the next fresh point if this is none
	b.slotOf[point] = slot
	return slot, used - fresh
}

// capNegatives returns how many negatives each head of a batch of b edges
// gets when m (or Full) are asked for: at most all other rows of the batch but
// the head's own tail.
func capNegatives(m, b int) int {
	if most := 2*b - 2; m == Full || m > most {
		return most
	}
	return m
}

// drawNegatives draws m negatives for each head of a batch, uniformly and with
// replacement from the 2b−1 other rows (the head's own tail may come up), or
// takes every row but the head and its tail once if m is Full or at least
// their number, 2b−2. (In-batch negative sampling: Section 3 of the paper.)
func drawNegatives(to *model.Batch, m int, stream rng.Stream) {
	b := to.Edges()
	capped := capNegatives(m, b)
	to.Negatives = resize(to.Negatives, capped*b)
	if capped == 2*b-2 {
		for j := range capped {
			column := to.Negatives[j*b : (j+1)*b]
			for i := range column {
				r := j
				if r >= i {
					r++
				}
				if r >= b+i {
					r++
				}
				column[i] = int32(r)
			}
		}
		return
	}
	drawOthers(to.Negatives, b, stream)
}

// drawOthers fills columns of b numbers each: number i of a column is uniform
// on 0 … 2b−1 without i.
func drawOthers(to []int32, b int, stream rng.Stream) {
	others := uint32(2*b - 1)
	for len(to) > 0 {
		column := to[:b]
		to = to[b:]
		i := 0
		for ; i+1 < b; i += 2 {
			bits := stream.Uint64()
			column[i] = skip(rng.Bounded(uint32(bits), others), int32(i))
			column[i+1] = skip(rng.Bounded(uint32(bits>>32), others), int32(i+1))
		}
		if i < b {
			column[i] = skip(rng.Bounded(uint32(stream.Uint64()), others), int32(i))
		}
	}
}

// skip moves r ≥ i up by one, so that i itself is never met.
func skip(r uint32, i int32) int32 {
	v := int32(r)
	return v - (i-1-v)>>31 // (i−1−v)>>31 is −1 where v ≥ i
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
