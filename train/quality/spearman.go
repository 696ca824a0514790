package quality

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
)

// spearman returns the rank correlation, from −1 to 1, between the distances of points in
// the data x (n×D; by their Metric) and in the embedding y (n×d). It takes all pairs of min(n,
// sample) points, drawn with the seed and without replacement; its standard error includes
// that the pairs of a point go together. x may be sparse. Equal distances share the mean of
// their ranks. Distances are rounded to five digits: rounding errors must not order pairs that
// are equally far.
//
// It takes up to 32 bytes of memory per pair. The error wraps ErrUndefined if all distances of
// one side are equal, as in a collapsed embedding, or is ctx's.
func spearman(ctx context.Context, x, y *data.Matrix, sample int, seed uint64) (_ Estimate, err error) {
	defer kind.Catch(&err)
	a, b := sampled(x, y, sample, seed)
	keys := [2][]uint32{kind.Got(allDistances(ctx, a)), kind.Got(allDistances(ctx, b))}
	var sides [2]ranking
	parallel.For(2, 1, func(side, _, _ int) { sides[side] = rank(keys[side]) })
	e, ok := correlate(sides[0], sides[1], a.N, x.N)
	kind.Expect(ok, ErrUndefined, "rank correlation: all distances are equal in the data or in the embedding")
	return e, ctx.Err()
}

// sampled returns the points that are drawn.
func sampled(x, y *data.Matrix, sample int, seed uint64) (a, b *data.Matrix) {
	n := x.N
	if sample >= n {
		return x, y
	}
	stream := rng.New(seed, rng.Sample)
	chosen := stream.Perm(n)[:sample]
	a, b = x.Take(chosen), y.Take(chosen)
	for i := 0; x.Metric == data.Precomputed && i < sample; i++ { // the distances from these points come first
		copy(a.Row(i), selection.Pick(a.Row(i), chosen))
	}
	return a, b
}

// allDistances returns a key for each of the pairs (0,1), (0,2), …, (1,2), … of points:
// whole numbers in the order of the distances, which are rounded to 18 binary digits after the
// first.
func allDistances(ctx context.Context, points *data.Matrix) ([]uint32, error) {
	n := points.N
	var write func(i int, values []float64) // sets the values of the points behind i to their distances from it
	switch {
	case points.CSR != nil || points.Metric.Direct():
		write = neighbors.Distances(points)
	case points.D <= narrow:
		write = func(i int, values []float64) {
			for j := i + 1; j < n; j++ {
				values[j] = squaredDistance(points.Row(i), points.Row(j))
			}
		}
	default:
		write = wideDistances(points)
	}
	keys := make([]uint32, n*(n-1)/2)
	return keys, parallel.ForContext(ctx, n, 16, func(_, first, last int) {
		values := make([]float64, n)
		for i := first; i < last; i++ {
			write(i, values)
			for k, v := range values[i+1:] {
				keys[i*(2*n-i-1)/2+k] = uint32((math.Float64bits(v) + 1<<33) >> 34)
			}
		}
	})
}

// narrow is the largest width where distances in double precision cost little.
const narrow = 8

// wideDistances writes squared distances, as allDistances wants them, in single precision, of
// points scaled by a power of two. Distances so small that their squares leave its range are
// computed in double precision.
func wideDistances(points *data.Matrix) func(i int, values []float64) {
	const vector, smallest = 16, 0x1p-100
	n, d := points.N, points.D
	most := max(slices.Max(points.X), -slices.Min(points.X), math.SmallestNonzeroFloat32)
	scale := math.Ldexp(1, -math.Ilogb(float64(most)))
	x := make([]float32, len(points.X))
	for i, v := range points.X {
		x[i] = float32(float64(v) * scale)
	}
	all := make([]int32, n+vector)
	for i := range all {
		all[i] = int32(min(i, n-1))
	}
	type work struct {
		single []float32
		found  []uint64
	}
	pool := parallel.Pool[work]{New: func() *work { return &work{make([]float32, n+vector), make([]uint64, n/64+1)} }}
	never := make([]float32, n+vector)
	return func(i int, values []float64) {
		w := pool.Get()
		defer pool.Put(w)
		cols := all[i+1:][:(n-i-1+vector-1)/vector*vector]
		simd.NearRows(w.single, w.found, x, x[i*d:(i+1)*d], cols, -1, never)
		for j := i + 1; j < n; j++ {
			if values[j] = float64(w.single[j-i-1]); values[j] < smallest {
				values[j] = squaredDistance(points.Row(i), points.Row(j)) * scale * scale
			}
		}
	}
}

// A ranking has twice the rank of each distance, from 1, and the distances in ascending
// order. Equal distances share the mean of their ranks.
type ranking struct{ twice, order []uint32 }

// rank ranks distances by their keys, whose memory it takes.
func rank(keys []uint32) ranking {
	order := selection.UpTo[uint32](len(keys))
	least, most := slices.Min(keys), slices.Max(keys)
	const digits, mask = 11, 1<<11 - 1
	sorted, from := make([]uint32, len(keys)), make([]uint32, len(keys))
	for done := 0; done < bits.Len32(most-least); done += digits {
		var next [mask + 2]int
		for _, k := range keys {
			next[(k-least)>>done&mask+1]++
		}
		selection.Accumulate(next[:])
		for i, k := range keys {
			to := &next[(k-least)>>done&mask]
			sorted[*to], from[*to] = k, order[i]
			*to++
		}
		keys, sorted, order, from = sorted, keys, from, order
	}
	r := ranking{from, order}
	for lo := 0; lo < len(keys); {
		hi := lo + 1
		for hi < len(keys) && keys[hi] == keys[lo] {
			hi++
		}
		for _, p := range order[lo:hi] {
			r.twice[p] = uint32(lo + hi + 1)
		}
		lo = hi
	}
	return r
}

// centred returns twice the rank of a pair about the mean of all ranks.
func (r ranking) centred(p uint32) float64 {
	return float64(int64(r.twice[p]) - int64(len(r.twice)+1))
}

// addAbove adds to each pair the sum of the other ranks, centred, of the pairs whose
// distances are larger; equal ones count half.
func (r ranking) addAbove(to []float64, other ranking) {
	above := 0.
	for hi := len(r.order); hi > 0; {
		lo, equal := hi, 0.
		for ; lo > 0 && r.twice[r.order[lo-1]] == r.twice[r.order[hi-1]]; lo-- {
			equal += other.centred(r.order[lo-1])
		}
		for _, p := range r.order[lo:hi] {
			to[p] += above + float64(equal/2)
		}
		above += equal
		hi = lo
	}
}

// correlate correlates the distances of n points, a sample of a population of size of. ok is
// false if the correlation is not defined. The standard error is of first order: the
// influence of a pair is that of its own ranks on the sum of their products, and that of its
// distances on the ranks of all other pairs; the influence of a point is the mean of its
// pairs'.
func correlate(x, y ranking, n, of int) (e Estimate, ok bool) {
	influence := make([]float64, len(x.twice))
	var xx, yy, xy float64
	for p := range influence {
		a, b := x.centred(uint32(p)), y.centred(uint32(p))
		xx, yy, xy = xx+float64(a*a), yy+float64(b*b), xy+float64(a*b)
		influence[p] = a * b / 2
	}
	if xx == 0 || yy == 0 {
		return e, false
	}
	scale := math.Sqrt(xx * yy)
	e = Estimate{Mean: xy / scale, Exact: n == of}
	if e.Exact {
		return e, true
	}
	x.addAbove(influence, y)
	y.addAbove(influence, x)
	points, p := make([]float64, n), 0
	for i := range points {
		for j := i + 1; j < n; j++ {
			v := float64(influence[p] * (float64(n) / scale))
			points[i], points[j] = points[i]+v, points[j]+v
			p++
		}
	}
	e.Error = 2 * estimateMean(points, of).Error
	return e, true
}
