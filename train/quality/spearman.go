package quality

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"cne/data"
	"cne/internal/rng"
)

// maxSample keeps the number of pairs below 2³¹, where twice a rank still
// fits 32 bits.
const maxSample = 1 << 16

// Spearman returns the rank correlation, from −1 to 1, between the Euclidean
// distances of points in the data x (n×D) and in the embedding y (n×d): over
// all pairs of min(n, sample) points, which the seed draws without
// replacement. The paper takes 5000 points. Equal distances share the mean of
// their ranks, and the value is exact up to the rounding of the distances to
// float64. It is the same on every device: an accelerator computes the distances,
// and the CPU ranks them.
//
// It takes 16 bytes of memory per pair, and 8 on an accelerator; sample is at most
// 65 536. Errors wrap ErrInput or ErrNotFinite, and ErrUndefined if all distances
// of one side are equal, as in a collapsed embedding, or are the context's or the
// device's.
func Spearman(ctx context.Context, x, y *data.Matrix, sample int, seed uint64, on *Device) (float64, error) {
	a, b, err := sampled(x, y, sample, seed)
	if err != nil {
		return 0, err
	}
	if on.OnHost() {
		return spearman(ctx, a, x.D, b, y.D)
	}
	return correlate(ctx, len(a)/x.D, func(out []uint64) error { return deviceDistances(on, out, a, x.D) },
		func(out []uint64) error { return deviceDistances(on, out, b, y.D) })
}

// sampled checks the arguments of Spearman and returns the points that are drawn.
func sampled(x, y *data.Matrix, sample int, seed uint64) (a, b []float32, err error) {
	n, err := rows(x, "data")
	if err != nil {
		return nil, nil, err
	}
	m, err := rows(y, "embedding")
	if err != nil {
		return nil, nil, err
	}
	if n != m {
		return nil, nil, fmt.Errorf("%w: the data have %d points, the embedding has %d", ErrInput, n, m)
	}
	if min(n, sample) < 3 || min(n, sample) > maxSample {
		return nil, nil, fmt.Errorf("%w: a sample of %d from %d points; 3 to %d are needed", ErrInput, sample, n, maxSample)
	}
	a, b = x.X, y.X
	if sample < n {
		stream := rng.New(seed, rng.Sample)
		chosen := stream.Perm(n)[:sample]
		a, b = gather(a, x.D, chosen), gather(b, y.D, chosen)
	}
	return a, b, nil
}

// gather copies rows of width d.
func gather(x []float32, d int, rows []int) []float32 {
	out := make([]float32, 0, len(rows)*d)
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

// correlate correlates the distances of all pairs of n points, which inData and
// inEmbedding write as distances does.
func correlate(ctx context.Context, n int, inData, inEmbedding func(out []uint64) error) (float64, error) {
	pairs := n * (n - 1) / 2
	s := newSorter(pairs)

	// Twice the rank is a whole number, and the mean of all of them pairs+1:
	// what is summed below are exact integers.
	ranks := make([]uint32, pairs)
	if err := inData(s.keys); err != nil {
		return 0, err
	}
	if err := s.sort(ctx); err != nil {
		return 0, err
	}
	var xx, yy, xy int128
	s.ties(func(lo, hi int) {
		twice := int64(lo + 1 + hi)
		for _, pair := range s.index[lo:hi] {
			ranks[pair] = uint32(twice)
			xx.add((twice - int64(pairs+1)) * (twice - int64(pairs+1)))
		}
	})

	if err := inEmbedding(s.keys); err != nil {
		return 0, err
	}
	if err := s.sort(ctx); err != nil {
		return 0, err
	}
	s.ties(func(lo, hi int) {
		centred := int64(lo+1+hi) - int64(pairs+1)
		for _, pair := range s.index[lo:hi] {
			yy.add(centred * centred)
			xy.add(centred * (int64(ranks[pair]) - int64(pairs+1)))
		}
	})
	if xx == (int128{}) || yy == (int128{}) {
		return 0, fmt.Errorf("%w: all distances are equal in the data or in the embedding, so that they have no rank correlation", ErrUndefined)
	}
	return xy.float() / math.Sqrt(xx.float()*yy.float()), nil
}

// distances fills out with the bits of the squared distances of the pairs
// (0,1), (0,2), …, (1,2), …: integers in the same order as the distances.
func distances[T Float](ctx context.Context, out []uint64, x []T, n, d int) error {
	return inPieces(ctx, n, 16, func(_, first, last int) {
		a := make([]float64, d)
		for i := first; i < last; i++ {
			for k, v := range x[i*d : (i+1)*d] {
				a[k] = float64(v)
			}
			row := out[i*(2*n-i-1)/2:]
			for j := i + 1; j < n; j++ {
				row[j-i-1] = math.Float64bits(squaredDistanceTo(a, x[j*d:(j+1)*d]))
			}
		}
	})
}

// squaredDistanceTo is squaredDistance with one side converted beforehand,
// which takes a third off its time at 50 coordinates.
func squaredDistanceTo[T Float](a []float64, b []T) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	k := 0
	for ; k+4 <= len(a); k += 4 {
		d0 := a[k] - float64(b[k])
		d1 := a[k+1] - float64(b[k+1])
		d2 := a[k+2] - float64(b[k+2])
		d3 := a[k+3] - float64(b[k+3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	for ; k < len(a); k++ {
		d := a[k] - float64(b[k])
		s0 += float64(d * d)
	}
	return s0 + s1 + (s2 + s3)
}

// A sorter sorts keys and remembers where each stood.
type sorter struct {
	keys  []uint64
	index []uint32 // former place of keys[i], after sort
}

func newSorter(n int) *sorter {
	return &sorter{make([]uint64, n), make([]uint32, n)}
}

// sort sorts the keys, unless ctx ends before.
func (s *sorter) sort(ctx context.Context) error {
	for i := range s.index {
		s.index[i] = uint32(i)
	}
	bounds := partition(s.keys, s.index)
	return inPieces(ctx, len(bounds)-1, 8, func(_, first, last int) {
		for b := first; b < last; b++ {
			radixSort(s.keys[bounds[b]:bounds[b+1]], s.index[bounds[b]:bounds[b+1]])
		}
	})
}

// ties calls group for each longest range [lo, hi) of equal sorted keys.
func (s *sorter) ties(group func(lo, hi int)) {
	for lo := 0; lo < len(s.keys); {
		hi := lo + 1
		for hi < len(s.keys) && s.keys[hi] == s.keys[lo] {
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

// partition moves the keys in place into up to 2¹¹ buckets of equal width
// between the smallest and the largest key ("American flag sort") and returns
// the buckets' bounds. Keys that are all equal make no bucket. The width
// follows from the keys themselves because distances fill a small part of the
// floating-point numbers: fixed digits would sort nothing in the first pass.
func partition(keys []uint64, index []uint32) (bounds []int) {
	if len(keys) == 0 {
		return []int{0}
	}
	smallest, largest := keys[0], keys[0]
	for _, k := range keys {
		smallest, largest = min(smallest, k), max(largest, k)
	}
	if smallest == largest {
		return []int{0}
	}
	digits := min(11, max(1, bits.Len(uint(len(keys)))-3))
	shift := max(0, bits.Len64(largest-smallest)-digits)
	bounds = make([]int, (largest-smallest)>>shift+2)
	for _, k := range keys {
		bounds[(k-smallest)>>shift+1]++
	}
	for b := 1; b < len(bounds); b++ {
		bounds[b] += bounds[b-1]
	}
	next := append([]int(nil), bounds[:len(bounds)-1]...)
	for b := range next {
		for next[b] < bounds[b+1] {
			k, x := keys[next[b]], index[next[b]]
			for {
				home := int((k - smallest) >> shift)
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

func (s int128) float() float64 {
	if s.high < 0 { // the two terms would cancel
		low, borrow := bits.Sub64(0, s.low, 0)
		return -(float64(-s.high-int64(borrow))*0x1p64 + float64(low))
	}
	return float64(s.high)*0x1p64 + float64(s.low)
}
