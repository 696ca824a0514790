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
	// maxBuckets is how many a byte can name.
	maxBuckets = 256
	// maxSingleLevel is the largest number of edges for which there is one level of
	// buckets. These are then four times as large as they should be; but to change
	// it would change what a seed means.
	maxSingleLevel = 1 << 23
)

// A fanout is the number of buckets that a shuffle spreads edges over, and the number
// that each of these is spread over in turn (1: it is not). Both are powers of two.
type fanout struct{ first, second int }

// fanoutOf returns the fanout for so many edges: one level of buckets, and two for more
// than 2²³ edges, with at most 65 536 buckets. Up to 5·10⁸ edges these hold 8192 or
// fewer on average; 15 259 for 10⁹ edges, and 32 768 for 2³¹.
func fanoutOf(edges int) fanout {
	f := fanout{1, 1}
	for f.first < maxBuckets && f.first*bucketSize < edges {
		f.first *= 2
	}
	if edges > maxSingleLevel {
		for f.second < maxBuckets && f.first*f.second*bucketSize < edges {
			f.second *= 2
		}
	}
	return f
}

// A shuffler draws a uniform permutation of the edges in passes that each work in cache;
// a Fisher–Yates shuffle of the whole list would access memory at random. Every edge
// goes to a bucket drawn uniformly; where there are two levels, to one of the buckets
// within it; and then every bucket is shuffled. (Rao, 1961, and Sandelius, 1962, showed
// that the result is uniform.) Each epoch starts from the order of the edge list, so
// that its own order depends on the seed and the epoch alone.
//
// The random streams have the purpose rng.Shuffle. That of the epoch chooses the buckets
// of the first level. That of the epoch and a bucket shuffles the bucket or, with two
// levels, chooses the buckets within it, each of which is shuffled by the stream of the
// epoch and both numbers.
//
// An edge takes 8 bytes in the list, and 9 more to be shuffled: 10⁹ edges take 17 GB.
type shuffler struct {
	edges  []edge
	fan    fanout
	choice []uint8 // the bucket of each edge that is being spread
	order  []edge
	bucket []edge // of the first level, while it is spread
	// start[k] is where bucket k of the first level begins. within[j] is where bucket j
	// of the second level begins in the bucket of the first that was spread last.
	// Buckets are spread and shuffled when they are needed.
	start, within []int
	shuffled      int // buckets of the last level
	seed          uint64
	epoch         uint64
}

func newShuffler(fan fanout, edges []edge, seed uint64) *shuffler {
	return &shuffler{
		edges: edges, fan: fan, seed: seed, order: make([]edge, len(edges)), choice: make([]uint8, (len(edges)+7)&^7),
		start: make([]int, fan.first+1), within: make([]int, fan.second+1),
	}
}

// begin draws the buckets of an epoch.
func (s *shuffler) begin(epoch int) {
	s.epoch, s.shuffled = uint64(epoch), 0
	s.spread(s.order, s.edges, s.start, rng.New(s.seed, rng.Shuffle, s.epoch))
}

// spread draws a bucket for each edge from the bytes of a stream, and writes the edges
// to order bucket after bucket; those of a bucket keep their order. start, which has one
// element more than there are buckets, gets where the buckets begin.
func (s *shuffler) spread(order, edges []edge, start []int, stream rng.Stream) {
	buckets := len(start) - 1
	words := s.choice[:(len(edges)+7)&^7]
	mask := uint64(buckets-1) * 0x0101010101010101
	for i := 0; i < len(words); i += 8 {
		binary.LittleEndian.PutUint64(words[i:], stream.Uint64()&mask)
	}
	choice := words[:len(edges)]
	var next [maxBuckets]int
	for _, c := range choice {
		next[c]++
	}
	at := 0
	for k := range buckets {
		start[k] = at
		at, next[k] = at+next[k], at
	}
	start[buckets] = at
	for i, c := range choice {
		order[next[c]] = edges[i]
		next[c]++
	}
}

// upTo returns the epoch's order. At least its first n edges are final.
func (s *shuffler) upTo(n int) []edge {
	for ; s.shuffled < s.fan.first*s.fan.second; s.shuffled++ {
		k, j := s.shuffled/s.fan.second, s.shuffled%s.fan.second
		first, last := s.start[k], s.start[k+1]
		if first+s.within[j] >= n {
			break
		}
		if s.fan.second == 1 {
			fisherYates(s.order[first:last], rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k)))
			continue
		}
		if j == 0 {
			s.bucket = append(s.bucket[:0], s.order[first:last]...)
			s.spread(s.order[first:last], s.bucket, s.within, rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k)))
		}
		fisherYates(s.order[first+s.within[j]:first+s.within[j+1]], rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k), uint64(j)))
	}
	return s.order
}

// fisherYates shuffles a bucket in place, with one word of the stream for two
// exchanges.
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
