package quality

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/parallel"
	"cne/internal/rng"
)

// maxSample keeps the number of pairs below 2³¹, where twice a rank still
// fits 32 bits.
const maxSample = 1 << 16

// Spearman returns the rank correlation, from −1 to 1, between the distances of points in
// the data x (n×D; by their Metric) and in the embedding y (n×d). It takes all pairs of min(n,
// sample) points, drawn with the seed and without replacement. The paper takes 5000
// points. x may be sparse. Equal distances share the mean of their ranks, and the value is exact up to the
// rounding of the distances to float64. It is the same on every device: an accelerator
// computes the distances, and the CPU ranks them.
//
// It takes 16 bytes of memory per pair, up to 12 more where most distances are nearly
// equal, and 8 on an accelerator; sample is at most 65 536. Errors wrap ErrInput,
// ErrNotFinite or, if all distances of one side are equal, as in a collapsed embedding,
// ErrUndefined; or they are ctx's or the device's.
func Spearman(ctx context.Context, x, y *data.Matrix, sample int, seed uint64, on *Device) (float64, error) {
	a, b, err := sampled(x, y, sample, seed)
	if err != nil {
		return 0, err
	}
	n := a.N
	if x.CSR != nil || x.Metric.Direct() {
		return correlate(ctx, n, func(out []uint64) error { return allDistances(ctx, out, a) },
			func(out []uint64) error { return distances(ctx, out, b, n, y.D) })
	}
	if on.OnHost() {
		return spearman(ctx, a.X, x.D, b, y.D)
	}
	return correlate(ctx, n, func(out []uint64) error { return deviceDistances(on, out, a.X, x.D) },
		func(out []uint64) error { return deviceDistances(on, out, b, y.D) })
}

// allDistances is the function distances for points that are sparse, or compared by their
// Metric.
func allDistances(ctx context.Context, out []uint64, points *data.Matrix) error {
	n := points.N
	var from func(i int, values []float64)
	if points.CSR != nil {
		from = neighbors.Distances(points)
	} else {
		compare := neighbors.Compare(points, points)
		from = func(i int, values []float64) {
			for j := i + 1; j < n; j++ {
				values[j] = compare(i, j)
			}
		}
	}
	return parallel.ForContext(ctx, n, 16, func(_, first, last int) {
		values := make([]float64, n)
		for i := first; i < last; i++ {
			from(i, values)
			for j := i + 1; j < n; j++ {
				out[i*(2*n-i-1)/2+j-i-1] = math.Float64bits(values[j])
			}
		}
	})
}

// sampled checks the arguments of Spearman and returns the points that are drawn.
func sampled(x, y *data.Matrix, sample int, seed uint64) (a *data.Matrix, b []float32, err error) {
	n, err := inData(x, "data")
	if err != nil {
		return nil, nil, err
	}
	m, err := rows(y, "embedding")
	if err != nil {
		return nil, nil, err
	}
	if n != m {
		return nil, nil, fmt.Errorf("%w: data: got %d points, want %d as in the embedding", ErrInput, n, m)
	}
	if min(n, sample) < 3 || min(n, sample) > maxSample {
		return nil, nil, fmt.Errorf("%w: sample: got %d of %d points, want 3 to %d", ErrInput, sample, n, maxSample)
	}
	a, b = x, y.X
	if sample < n {
		stream := rng.New(seed, rng.Sample)
		chosen := stream.Perm(n)[:sample]
		a, b = x.Take(chosen), gather(b, y.D, chosen)
		for i := 0; x.Metric == data.Precomputed && i < sample; i++ { // the distances from these points come first
			copy(a.Row(i), gather(a.Row(i), 1, chosen))
		}
	}
	return a, b, nil
}

// gather copies rows of width d.
func gather[T any](x []T, d int, rows []int) []T {
	out := make([]T, 0, len(rows)*d)
	for _, i := range rows {
		out = append(out, x[i*d:(i+1)*d]...)
	}
	return out
}

// spearman correlates the distances of all pairs; a and b hold equally many
// points of da and db coordinates.
func spearman[T Float](ctx context.Context, a []T, da int, b []T, db int) (float64, error) {
	n := len(a) / da
	return correlate(ctx, n, func(out []uint64) error { return distances(ctx, out, a, n, da) },
		func(out []uint64) error { return distances(ctx, out, b, n, db) })
}

// correlate correlates the distances of all pairs of n points. inData and inEmbedding
// write the distances, as the function distances does.
func correlate(ctx context.Context, n int, inData, inEmbedding func(out []uint64) error) (float64, error) {
	pairs := n * (n - 1) / 2
	s := newSorter(pairs)

	// Twice a rank is a whole number, and their mean is pairs+1: all sums below are of
	// exact integers.
	ranks, mean := make([]uint32, pairs), int64(pairs+1)
	if err := inData(s.keys); err != nil {
		return 0, err
	}
	data, err := s.rank(ctx, func(to *rankSums, twice int64, group []uint32) {
		for _, pair := range group {
			ranks[pair] = uint32(twice)
		}
		to.squares.addTimes((twice-mean)*(twice-mean), len(group))
	})
	if err != nil {
		return 0, err
	}
	if err := inEmbedding(s.keys); err != nil {
		return 0, err
	}
	embedding, err := s.rank(ctx, func(to *rankSums, twice int64, group []uint32) {
		for _, pair := range group {
			to.products.add((twice - mean) * (int64(ranks[pair]) - mean))
		}
		to.squares.addTimes((twice-mean)*(twice-mean), len(group))
	})
	if err != nil {
		return 0, err
	}
	xx, yy, xy := data.squares, embedding.squares, embedding.products
	if xx == (int128{}) || yy == (int128{}) {
		return 0, fmt.Errorf("%w: rank correlation: all distances are equal in the data or in the embedding", ErrUndefined)
	}
	return xy.float() / math.Sqrt(xx.float()*yy.float()), nil
}

// distances fills out with the bits of the squared distances of the pairs
// (0,1), (0,2), …, (1,2), …: integers in the same order as the distances.
func distances[T Float](ctx context.Context, out []uint64, x []T, n, d int) error {
	return parallel.ForContext(ctx, n, 16, func(_, first, last int) {
		a := make([]float64, d) // a row, converted once, which takes a third off the time
		for i := first; i < last; i++ {
			for k, v := range x[i*d : (i+1)*d] {
				a[k] = float64(v)
			}
			row := out[i*(2*n-i-1)/2:]
			for j := i + 1; j < n; j++ {
				row[j-i-1] = math.Float64bits(squaredDistance(a, x[j*d:(j+1)*d]))
			}
		}
	})
}

// A sorter sorts keys and remembers their positions. It cuts them into pieces, spreads
// each piece over buckets, and then gathers and sorts each bucket, so all cores work
// in their caches.
type sorter struct {
	keys  []uint64
	index []uint32 // former place of keys[i]

	spread
	bounds  [][]uint32 // of each piece: where its buckets begin
	scratch parallel.Pool[bucket]
}

const (
	// sortedKeys is the number of keys spread in one piece. They and their positions fit a
	// second-level cache.
	sortedKeys = 1 << 16
	// sortedBuckets is the number of buckets gathered in one piece.
	sortedBuckets = 8
	// sampledKeys is the number of keys that the width of the buckets is estimated from. The
	// outermost of them on either side are ignored.
	sampledKeys, outermost = 1 << 12, 1 << 4
)

// A spread maps a key to its bucket. Buckets after the first have the same width, a power
// of two, from a least key; keys beyond the last bucket belong to it.
type spread struct {
	least   uint64
	shift   int
	buckets int
}

func (s *spread) of(key uint64) int {
	if key <= s.least {
		return 0
	}
	return int(min((key-s.least)>>s.shift, uint64(s.buckets-1)))
}

// A bucket has the keys of one bucket from all pieces.
type bucket struct {
	keys  []uint64
	index []uint32
}

// rankSums are sums over ranks about their mean, times four.
type rankSums struct{ squares, products int128 }

func newSorter(n int) *sorter {
	s := &sorter{keys: make([]uint64, n), index: make([]uint32, n)}
	s.bounds = make([][]uint32, parallel.Pieces(n, sortedKeys))
	return s
}

// rank sorts the keys piece by piece and calls group for each set of equal keys, from
// several goroutines. group gets the positions of the keys and twice the mean of their
// ranks, from 1. Each goroutine adds to its own sums; rank returns all sums. It stops when
// ctx is done.
func (s *sorter) rank(ctx context.Context, group func(to *rankSums, twice int64, places []uint32)) (rankSums, error) {
	if len(s.keys) == 0 {
		return rankSums{}, nil
	}
	s.choose()
	if err := parallel.ForContext(ctx, len(s.keys), sortedKeys, func(piece, lo, hi int) {
		for i := lo; i < hi; i++ {
			s.index[i] = uint32(i)
		}
		s.bounds[piece] = s.scatter(s.keys[lo:hi], s.index[lo:hi], s.bounds[piece])
	}); err != nil {
		return rankSums{}, err
	}
	first := make([]int, s.buckets+1) // how many keys are in buckets before
	for b := range s.buckets {
		first[b+1] = first[b]
		for _, bounds := range s.bounds {
			first[b+1] += int(bounds[b+1] - bounds[b])
		}
	}
	sums := make([]rankSums, parallel.Pieces(s.buckets, sortedBuckets))
	if err := parallel.ForContext(ctx, s.buckets, sortedBuckets, func(task, lo, hi int) {
		at := s.scratch.Get()
		defer s.scratch.Put(at)
		var sum rankSums // sums of two pieces share a cache line
		for b := lo; b < hi; b++ {
			s.gather(at, b)
			radixSort(at.keys, at.index)
			at.ties(func(from, to int) {
				group(&sum, int64(2*first[b]+from+1+to), at.index[from:to])
			})
		}
		sums[task] = sum
	}); err != nil {
		return rankSums{}, err
	}
	var all rankSums
	for i := range sums {
		all.squares.plus(sums[i].squares)
		all.products.plus(sums[i].products)
	}
	return all, nil
}

// choose chooses the buckets. They suit distances: except for a few very large or small
// ones, these fill a small part of the range of floating-point numbers.
func (s *sorter) choose() {
	step := max(1, len(s.keys)/sampledKeys)
	sample := make([]uint64, 0, sampledKeys+1)
	for i := 0; i < len(s.keys); i += step {
		sample = append(sample, s.keys[i])
	}
	slices.Sort(sample)
	out := min(outermost, (len(sample)-1)/2)
	least, largest := sample[out], sample[len(sample)-1-out]
	digits := min(11, max(1, bits.Len(uint(len(s.keys)))-3))
	s.least, s.shift = least, max(0, bits.Len64(largest-least)-digits)
	s.buckets = int((largest-least)>>s.shift) + 1
}

// gather collects a bucket from all pieces.
func (s *sorter) gather(to *bucket, b int) {
	to.keys, to.index = to.keys[:0], to.index[:0]
	for piece, bounds := range s.bounds {
		lo, hi := piece*sortedKeys+int(bounds[b]), piece*sortedKeys+int(bounds[b+1])
		to.keys, to.index = append(to.keys, s.keys[lo:hi]...), append(to.index, s.index[lo:hi]...)
	}
}

// ties calls group for each maximal range [lo, hi) of equal keys. The keys must be
// sorted.
func (b *bucket) ties(group func(lo, hi int)) {
	for lo := 0; lo < len(b.keys); {
		hi := lo + 1
		for hi < len(b.keys) && b.keys[hi] == b.keys[lo] {
			hi++
		}
		group(lo, hi)
		lo = hi
	}
}

func radixSort(keys []uint64, index []uint32) {
	if len(keys) <= 48 {
		for i := 1; i < len(keys); i++ {
			k, x := keys[i], index[i]
			j := i
			for ; j > 0 && keys[j-1] > k; j-- {
				keys[j], index[j] = keys[j-1], index[j-1]
			}
			keys[j], index[j] = k, x
		}
		return
	}
	bounds := partition(keys, index)
	for b := range len(bounds) - 1 {
		if bounds[b+1]-bounds[b] > 1 {
			radixSort(keys[bounds[b]:bounds[b+1]], index[bounds[b]:bounds[b+1]])
		}
	}
}

// partition moves the keys in place into up to 2¹¹ buckets of equal width between the
// smallest and the largest key and returns the buckets' bounds. If all keys are equal,
// there is no bucket. The width depends on the keys because distances fill a small part
// of the range of floating-point numbers. Fixed digits would sort nothing in the first
// pass.
func partition(keys []uint64, index []uint32) (bounds []uint32) {
	smallest, largest := slices.Min(keys), slices.Max(keys)
	if smallest == largest {
		return []uint32{0}
	}
	digits := min(11, max(1, bits.Len(uint(len(keys)))-3))
	shift := max(0, bits.Len64(largest-smallest)-digits)
	to := spread{smallest, shift, int((largest-smallest)>>shift) + 1}
	return to.scatter(keys, index, nil)
}

// scatter moves keys, with their places, in place into the buckets ("American flag
// sort"). It returns the buckets' bounds, in the memory of bounds if that suffices.
func (s *spread) scatter(keys []uint64, index, bounds []uint32) []uint32 {
	bounds = append(bounds[:0], make([]uint32, s.buckets+1)...)
	for _, k := range keys {
		bounds[s.of(k)+1]++
	}
	for b := 1; b < len(bounds); b++ {
		bounds[b] += bounds[b-1]
	}
	next := slices.Clone(bounds[:s.buckets])
	for b := range next {
		for next[b] < bounds[b+1] {
			k, x := keys[next[b]], index[next[b]]
			for {
				home := s.of(k)
				to := next[home]
				next[home]++
				if home == b {
					keys[to], index[to] = k, x
					break
				}
				keys[to], k = k, keys[to]
				index[to], x = x, index[to]
			}
		}
	}
	return bounds
}

// int128 is a signed sum that does not overflow and does not depend on the
// order of its terms.
type int128 struct {
	high int64
	low  uint64
}

func (s *int128) add(x int64) {
	low, carry := bits.Add64(s.low, uint64(x), 0)
	s.low = low
	s.high += x>>63 + int64(carry)
}

// addTimes adds x·times.
func (s *int128) addTimes(x int64, times int) {
	for range times {
		s.add(x)
	}
}

// plus adds another sum.
func (s *int128) plus(x int128) {
	low, carry := bits.Add64(s.low, x.low, 0)
	s.low = low
	s.high += x.high + int64(carry)
}

func (s int128) float() float64 {
	if s.high < 0 { // the two terms would cancel
		low, borrow := bits.Sub64(0, s.low, 0)
		return -(float64(float64(-s.high-int64(borrow))*0x1p64) + float64(low))
	}
	return float64(float64(s.high)*0x1p64) + float64(s.low)
}
