package train

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"

	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// An edge packs head and tail into one word, to make shuffling faster.
type edge uint64

func packEdge(head, tail int32) edge { return edge(uint32(head)) | edge(uint32(tail))<<32 }

const (
	// bucketSize is the approximate number of edges in a bucket of the shuffle. They fit the
	// second-level cache.
	bucketSize = 8192
	// maxBuckets is the number of buckets that a byte can number.
	maxBuckets = 256
	// maxSingleLevel is the largest number of edges that are shuffled with one level of
	// buckets. Buckets are then four times as large as they should be, but another number
	// would change the results of every seed.
	maxSingleLevel = 1 << 23
)

// A fanout has the number of buckets of the first level of a shuffle, and the number of
// buckets into which each of these is spread in turn (1 means no second level). Both are
// powers of two.
type fanout struct{ first, second int }

// fanoutOf returns the fanout for a number of edges: one level of buckets, and two above
// 2²³ edges, with at most 65 536 buckets. Up to 5·10⁸ edges these hold 8192 or fewer on
// average; 15 259 for 10⁹ edges, and 32 768 for 2³¹.
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

const (
	// spreadEdges is the number of edges of the list that are spread over the first level's
	// buckets in one piece. It is a multiple of 8, so a piece begins with a word of the
	// stream.
	spreadEdges = 1 << 16
	// bucketsAhead is the number of buckets of the first level that are shuffled at a
	// time without a second level. With a second level, buckets are larger than a core's
	// cache, and one is shuffled per preparing core.
	bucketsAhead = 8
)

// A shuffler draws a uniform permutation of the edges in passes that each work in cache;
// a Fisher–Yates shuffle of the whole list would access memory at random. Every edge goes
// to a bucket drawn uniformly and, with two levels, to one of the buckets within it. Then
// every bucket is shuffled. (Rao, 1961, and Sandelius, 1962, showed that the result is
// uniform.) Every edge occurs once in an epoch, and every order is equally likely, up to
// the generator. Each epoch starts from the order of the edge list, so its order depends
// only on the seed and the epoch.
//
// The random streams have the purpose rng.Shuffle. The epoch's stream chooses the buckets
// of the first level. The stream of the epoch and a bucket shuffles the bucket or, with
// two levels, chooses the buckets within it; the stream of the epoch and both numbers
// shuffles each of these. The streams are counter-based, so several cores give the same
// order.
//
// An edge takes 8 bytes in the list, and 9 more to be shuffled: 10⁹ edges take 17 GB.
type shuffler struct {
	edges  []edge
	fan    fanout
	choice []uint8 // the bucket of each edge of the list
	order  []edge
	// counts has for each piece the number of its edges in each bucket, and then the position
	// of the next of them.
	counts [][maxBuckets]int
	// start[k] is the position of the first edge of bucket k of the first level.
	start    []int
	shuffled int // buckets of the first level
	seed     uint64
	epoch    uint64
	stream   rng.Stream // of the epoch

	choosing, placing, shuffling parallel.Loop
	scratch                      parallel.Pool[bucketScratch]
}

// A bucketScratch is the memory for spreading a bucket over those within it.
type bucketScratch struct {
	edges  []edge
	choice []uint8
	next   [maxBuckets]int
}

func newShuffler(fan fanout, edges []edge, seed uint64) *shuffler {
	s := &shuffler{
		edges: edges, fan: fan, seed: seed, order: make([]edge, len(edges)), choice: make([]uint8, len(edges)),
		counts: make([][maxBuckets]int, parallel.Pieces(len(edges), spreadEdges)), start: make([]int, fan.first+1),
	}
	memory.UseHugePages(s.order)
	s.choosing.Body = func(piece, lo, hi int) {
		choose(s.choice[lo:hi], &s.counts[piece], s.stream.At(uint64(lo/8)), s.fan.first)
	}
	s.placing.Body = func(piece, lo, hi int) {
		simd.ScatterWords(s.order, s.edges[lo:hi], s.choice[lo:hi], &s.counts[piece])
	}
	s.shuffling.Ahead = true
	s.shuffling.Body = func(_, lo, hi int) {
		for k := lo; k < hi; k++ {
			s.bucket(s.shuffled + k)
		}
	}
	return s
}

// begin draws the buckets of an epoch.
func (s *shuffler) begin(epoch int) {
	s.epoch, s.shuffled = uint64(epoch), 0
	s.stream = rng.New(s.seed, rng.Shuffle, s.epoch)
	s.choosing.Run(len(s.edges), spreadEdges)
	at := 0
	for k := range s.fan.first {
		s.start[k] = at
		for piece := range s.counts {
			c := &s.counts[piece][k]
			at, *c = at+*c, at
		}
	}
	s.start[s.fan.first] = at
	s.placing.Run(len(s.edges), spreadEdges)
}

// choose draws a bucket for each edge from the bytes of a stream, and counts the edges of
// each bucket.
func choose(choice []uint8, counts *[maxBuckets]int, stream rng.Stream, buckets int) {
	clear(counts[:])
	mask := uint64(buckets-1) * 0x0101010101010101
	for ; len(choice) >= 8; choice = choice[8:] {
		word := stream.Uint64() & mask
		binary.LittleEndian.PutUint64(choice, word)
		counts[uint8(word)]++
		counts[uint8(word>>8)]++
		counts[uint8(word>>16)]++
		counts[uint8(word>>24)]++
		counts[uint8(word>>32)]++
		counts[uint8(word>>40)]++
		counts[uint8(word>>48)]++
		counts[uint8(word>>56)]++
	}
	if len(choice) > 0 {
		word := stream.Uint64() & mask
		for i := range choice {
			choice[i] = uint8(word >> (8 * i))
			counts[choice[i]]++
		}
	}
}

// upTo returns the epoch's order. At least its first n edges are final.
func (s *shuffler) upTo(n int) []edge {
	ahead := bucketsAhead
	if s.fan.second > 1 {
		ahead = max(1, runtime.GOMAXPROCS(0)/2)
	}
	for s.shuffled < s.fan.first && s.start[s.shuffled] < n {
		next := min(ahead, s.fan.first-s.shuffled)
		s.shuffling.Run(next, 1)
		s.shuffled += next
	}
	return s.order
}

// bucket shuffles a bucket of the first level.
func (s *shuffler) bucket(k int) {
	bucket := s.order[s.start[k]:s.start[k+1]]
	stream := rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k))
	if s.fan.second == 1 {
		fisherYates(bucket, stream)
		return
	}
	b := s.scratch.Get()
	b.edges, b.choice = append(b.edges[:0], bucket...), resize(b.choice, len(bucket))
	choose(b.choice, &b.next, stream, s.fan.second)
	at := 0
	for j := range s.fan.second {
		at, b.next[j] = at+b.next[j], at
	}
	simd.ScatterWords(bucket, b.edges, b.choice, &b.next)
	first := 0
	for j, end := range b.next[:s.fan.second] { // the position for a bucket's next edge is now its end
		fisherYates(bucket[first:end], rng.New(s.seed, rng.Shuffle, s.epoch, uint64(k), uint64(j)))
		first = end
	}
	s.scratch.Put(b)
}

// fisherYates shuffles a bucket in place, with one word of the stream for two
// exchanges.
func fisherYates(bucket []edge, stream rng.Stream) {
	for n := len(bucket); n > 1; {
		for last := max(1, n-edgesPerPiece); n > last; n -= 2 {
			word := stream.Uint64()
			exchange(bucket[:n], uint32(word))
			exchange(bucket[:n-1], uint32(word>>32))
		}
		parallel.Yield()
	}
}

// exchange swaps the last edge with one drawn from all of them.
func exchange(b []edge, random uint32) {
	if i, j := len(b)-1, int(rng.Bounded(random, uint32(len(b)))); j <= i {
		b[i], b[j] = b[j], b[i]
	}
}

// An edgeDrawer draws the edges of an epoch in proportion to their weights: as many as
// there are, by systematic sampling. The edges are laid out on a line whose length is the
// number of edges, each with a length proportional to its weight. The points u, u+1, u+2,
// … select edges, where u is drawn uniformly from [0, 1) for each epoch. So an edge of
// length r occurs ⌊r⌋ or ⌈r⌉ times, and r times on average over epochs.
type edgeDrawer struct {
	edges     []edge
	weights   []float32
	perWeight float64   // length on the line
	before    []float64 // the weight of all edges before each piece of drawGrain
	list      []edge    // of the epoch
	drawn     int       // the epoch's number, counted from 1; 0: none
	seed      uint64
	u         float64

	drawing parallel.Loop
}

// drawGrain is the number of edges of the line in one piece.
const drawGrain = 1 << 15

// newEdgeDrawer returns a drawer, nil without weights.
func newEdgeDrawer(edges []edge, weights []float32, seed uint64) *edgeDrawer {
	if weights == nil {
		return nil
	}
	d := &edgeDrawer{edges: edges, weights: weights, list: make([]edge, len(edges)), seed: seed}
	sum := 0.
	for e, w := range weights {
		if e%drawGrain == 0 {
			d.before = append(d.before, sum)
		}
		sum += float64(w)
	}
	d.perWeight = float64(len(edges)) / sum
	// The ends of edges are summed anew each time. This takes no longer than reading stored
	// sums.
	d.drawing.Body = func(piece, lo, hi int) {
		at, next := d.before[piece], 0
		if lo > 0 {
			next = d.taken(at)
		}
		for e, w := range d.weights[lo:hi] {
			at += float64(w)
			end := len(d.list)
			if lo+e+1 < len(d.weights) { // else rounding decided
				end = d.taken(at)
			}
			for ; next < end; next++ {
				d.list[next] = d.edges[lo+e]
			}
		}
	}
	return d
}

// taken returns the number of selecting points before the given cumulative weight.
func (d *edgeDrawer) taken(weight float64) int {
	end := min(weight*d.perWeight, float64(len(d.list)))
	return min(int(math.Ceil(end-d.u)), len(d.list))
}

// draw returns the edges of an epoch, in the order of the list. They are valid until another
// epoch is drawn.
func (d *edgeDrawer) draw(epoch int) []edge {
	if d.drawn != epoch+1 {
		stream := rng.New(d.seed, rng.Draws, uint64(epoch))
		d.u, d.drawn = stream.Float64(), epoch+1
		d.drawing.Run(len(d.edges), drawGrain)
	}
	return d.list
}

// checkWeights fails as kind.Need does unless weights is nil or has one weight per edge.
func checkWeights(weights []float32, edges int) {
	kind.Need(weights == nil || len(weights) == edges, ErrInput, "train: weights: got %d, want %d, one for each edge", len(weights), edges)
	for e, w := range weights {
		if !(w > 0) || w > math.MaxFloat32 {
			kind.Fail(ErrInput, "train: weight of edge %d: got %v, want a finite number above 0", e, w)
		}
	}
}

// Full, as a number of negatives, means every endpoint of the batch's other edges, once:
// op.AllNegatives.
const Full = -1

// A Sampling is a way to draw m negatives for each edge of a batch of b edges from the
// batch's 2b endpoints (in-batch negative sampling, as in the paper's runs). m = 2b−2
// takes all endpoints of the other edges, so nothing is drawn.
type Sampling int

const (
	// SampleAuto is SampleSharedRuns for 32 negatives or more, where it is faster, and
	// SamplePerHead for fewer.
	SampleAuto Sampling = iota
	// SamplePerHead draws the negatives of each edge separately, uniformly and with
	// replacement from all endpoints except the edge's head, so its tail may be among them.
	// The paper does so.
	SamplePerHead
	// SampleSharedRuns lets every 16 consecutive edges of the batch share a run of m
	// consecutive endpoints that begins with a random one. An edge's negatives are these
	// endpoints except its head: with probability m/2b the head is in the run, and the edge
	// has m−1 negatives. All other endpoints are equally likely, as with SamplePerHead, but
	// none is repeated. With m = 1 it is SamplePerHead.
	SampleSharedRuns
)

const (
	// runsFrom is the smallest number of negatives that SampleAuto draws in runs.
	runsFrom = 32
	// maxNegatives is the largest number of negatives of a batch that heads draw separately.
	// Their row numbers take 1 GiB.
	maxNegatives = 1 << 28
)

// inRuns reports whether m negatives for each head are drawn in runs, if the batch is
// large enough.
func (s Sampling) inRuns(m int) bool {
	return s == SampleSharedRuns && m > 1 || s == SampleAuto && m >= runsFrom
}

// count returns the number of negatives of each head in a batch of b edges for the option
// m, which may be Full or All. It is at most 2b−2, all other rows.
func (s Sampling) count(m, b int) int {
	all := 2*b - 2
	if m < 0 || m > all {
		return all
	}
	return m
}

// Listed returns how many of m negatives (or Full) each edge of a batch of b edges draws
// separately; it returns 0 if edges share negatives.
func (s Sampling) Listed(m, b int) int {
	if m = s.count(m, b); m == 2*b-2 || s.inRuns(m) {
		return 0
	}
	return m
}

// A negativeSampler draws the negatives of batches, one batch at a time.
type negativeSampler struct {
	seed   uint64
	how    Sampling
	rows   []int32           // the negatives of the last batch
	layout op.NegativeLayout // or how they lie
}

// draw sets a batch's Negatives or Layout: m negatives for each head, or all other rows
// if m is Full or at least their number. They are valid until the next call.
func (s *negativeSampler) draw(to *model.Batch, m, epoch, batch int) {
	b := to.Edges()
	m = s.how.count(m, b)
	to.Negatives, to.Layout = nil, nil
	stream := rng.New(s.seed, rng.Negatives, uint64(epoch), uint64(batch))
	switch {
	case m == 2*b-2:
		s.layout = append(s.layout[:0], op.AllNegatives)
		to.Layout = s.layout
	case s.how.inRuns(m):
		s.layout = append(s.layout[:0], int32(m))
		for range parallel.Pieces(b, op.GroupHeads) {
			s.layout = append(s.layout, int32(stream.IntN(2*b)))
		}
		to.Layout = s.layout
	default:
		s.rows = resize(s.rows, m*b)
		for j := range m {
			simd.DrawOthers(s.rows[j*b:(j+1)*b], stream.At(uint64(j*((b+1)/2))).State())
		}
		to.Negatives = s.rows
	}
}

var samplingNames = kind.Names[Sampling]{Package: "train", Type: "Sampling", What: "way to draw negatives", Err: ErrInput,
	Words: []string{"auto", "singly", "runs"}}

func (s Sampling) String() string { return samplingNames.String(s) }

// MarshalText implements encoding.TextMarshaler: "auto", "singly" or "runs".
func (s Sampling) MarshalText() ([]byte, error) { return samplingNames.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sampling) UnmarshalText(text []byte) error { return samplingNames.Parse(s, text) }

// Words returns the names of all ways to draw negatives.
func (Sampling) Words() []string { return slices.Clone(samplingNames.Words) }
