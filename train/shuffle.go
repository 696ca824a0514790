package train

import (
	"encoding/binary"

	"cne/internal/rng"
)

// An edge packs head and tail so that a shuffle moves one word.
type edge uint64

func packEdge(head, tail int32) edge { return edge(uint32(head)) | edge(uint32(tail))<<32 }

func (e edge) head() int32 { return int32(uint32(e)) }

const (
	// bucketSize is about how many edges a bucket of the shuffle holds: they
	// fit the second-level cache.
	bucketSize = 8192
	maxBuckets = 256
)

// A shuffler draws a uniform permutation of the edges in two passes, each of
// which works in cache where a Fisher–Yates shuffle of the whole list would
// jump about in memory: every edge goes to a bucket drawn uniformly, and every
// bucket is shuffled. (That the result is uniform was shown by Rao, 1961, and
// Sandelius, 1962.) The order it starts from is always that of the edge list,
// so that an epoch's order depends on the seed and the epoch alone.
type shuffler struct {
	edges   []edge
	buckets int     // a power of two
	choice  []uint8 // the bucket of each edge
	order   []edge
	// start[k] is where bucket k begins; bucket k is shuffled once it is
	// needed.
	start    []int
	shuffled int
	seed     uint64
	epoch    uint64
}

func newShuffler(edges []edge, seed uint64) *shuffler {
	s := &shuffler{edges: edges, buckets: bucketsOf(len(edges)), seed: seed, order: make([]edge, len(edges))}
	s.choice = make([]uint8, (len(edges)+7)&^7)
	s.start = make([]int, s.buckets+1)
	return s
}

// bucketsOf returns how many buckets so many edges are spread over.
func bucketsOf(edges int) int {
	n := 1
	for n < maxBuckets && n*bucketSize < edges {
		n *= 2
	}
	return n
}

// begin draws the buckets of an epoch.
func (s *shuffler) begin(epoch int) {
	s.epoch, s.shuffled = uint64(epoch), 0
	stream := rng.New(s.seed, rng.Shuffle, s.epoch)
	mask := uint64(s.buckets-1) * 0x0101010101010101
	for i := 0; i < len(s.choice); i += 8 {
		binary.LittleEndian.PutUint64(s.choice[i:], stream.Uint64()&mask)
	}
	choice := s.choice[:len(s.edges)]
	var next [maxBuckets]int
	for _, c := range choice {
		next[c]++
	}
	at := 0
	for k := range s.buckets {
		s.start[k] = at
		at, next[k] = at+next[k], at
	}
	s.start[s.buckets] = at
	for i, c := range choice {
		s.order[next[c]] = s.edges[i]
		next[c]++
	}
}

// upTo returns the epoch's order, of which at least the first n edges are
// final.
func (s *shuffler) upTo(n int) []edge {
	for s.shuffled < s.buckets && s.start[s.shuffled] < n {
		k := s.shuffled
		bucket := s.order[s.start[k]:s.start[k+1]]
		fisherYates(bucket, rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k)))
		s.shuffled++
	}
	return s.order
}

// fisherYates shuffles a bucket in place. Each word of the stream serves for
// two exchanges.
func fisherYates(bucket []edge, stream rng.Stream) {
	for n := len(bucket); n > 1; n -= 2 {
		word := stream.Uint64()
		exchange(bucket[:n], uint32(word))
		exchange(bucket[:n-1], uint32(word>>32))
	}
}

// exchange swaps the last edge with one drawn from all of them.
func exchange(b []edge, random uint32) {
	if i, j := len(b)-1, int(rng.Bounded(random, uint32(len(b)))); j <= i {
		b[i], b[j] = b[j], b[i]
	}
}
