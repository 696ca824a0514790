package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"cne/data"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/selection"
)

// Kinds of errors of KNN, Search and Ranks, for errors.Is.
var (
	// ErrInput is wrapped by errors about arguments that do not fit together, about no
	// points, and about k below 1.
	ErrInput = errors.New("neighbors: bad input")
	// ErrTooFewPoints is wrapped by errors about fewer than k possible neighbours.
	ErrTooFewPoints = errors.New("neighbors: too few points for the number of neighbours")
	// ErrNotFinite is wrapped by errors about coordinates that are NaN or infinite.
	ErrNotFinite = errors.New("neighbors: not a finite number")
)

// Options are the options of a search. The zero value searches on the CPU, exactly
// unless there are many points.
type Options struct {
	// Search is the method. The zero value, Auto, is exact for up to 100 000 points, and on
	// a device for some two million (SearchMethod.Approximates).
	Search SearchMethod
	// Seed is the seed of an approximate search.
	Seed uint64
	// Rough makes an approximate Index search in two thirds of the time; it then misses a few
	// more neighbours in a hundred.
	Rough bool
	// Device compares the points of an exact search; nil means the CPU. The result is bit for
	// bit the same: a device finds candidates for the nearest neighbours, and the CPU ranks
	// them. Errors may then also come from the device. An approximate search always runs on
	// the CPU.
	Device *device.Device
}

// Neighbors holds the K nearest neighbours of each of N points. The neighbours of point i
// are at positions i*K to (i+1)*K−1 of both slices, nearest first, ties in the order of
// their indices.
type Neighbors struct {
	N, K int
	// Index [N, K] has the neighbours' indices, counted from 0: from KNN among
	// the N points themselves, from Search among the base points.
	Index []int32
	// Dist2 [N, K] has the squared distances to them: by the points' Metric, and for
	// Haversine straight through a sphere of radius 1. KNN and Search find them;
	// set Dist2 to nil to free two thirds of the memory if only the indices are needed.
	Dist2 []float64
}

// Of returns the indices of point i's neighbours, nearest first. The slice
// shares the memory of Index.
func (nb *Neighbors) Of(i int) []int32 { return nb.Index[i*nb.K : (i+1)*nb.K : (i+1)*nb.K] }

// Nearest returns the k nearest of the neighbours of each point: nb itself if
// k ≥ K, else a copy, with none if k ≤ 0.
func (nb *Neighbors) Nearest(k int) *Neighbors {
	if k >= nb.K {
		return nb
	}
	k = max(k, 0)
	first := newNeighbors(nb.N, k)
	for i := range nb.N {
		copy(first.Index[i*k:(i+1)*k], nb.Index[i*nb.K:])
		if nb.Dist2 != nil {
			copy(first.Dist2[i*k:(i+1)*k], nb.Dist2[i*nb.K:])
		}
	}
	if nb.Dist2 == nil {
		first.Dist2 = nil
	}
	return first
}

func newNeighbors(n, k int) *Neighbors {
	return &Neighbors{N: n, K: k, Index: make([]int32, n*k), Dist2: make([]float64, n*k)}
}

// treeMaxD is the largest number of dimensions where the CPU searches only the tree. In
// more dimensions its boxes overlap every neighbourhood, and it visits most points, at a
// higher cost per point than a matrix product.
const treeMaxD = 8

// KNN finds the k nearest other points of every point of m, by its Metric. A point
// is never its own neighbour, but its duplicates are, at distance 0. Ties are in the order
// of the indices. Distances are sums of squared differences in float64, and the result is
// exact with respect to them unless the search is approximate (Options.Search), as it is
// by default for many points.
//
// The exact search takes O(n²D) operations for D > 8 and about O(n log n) below; in
// addition to m and the result it needs a copy of m and about 16·n·(k+16) bytes. A device
// needs memory for three copies of m (two without Device.TF32 or for D ≤ 8) and 64 MiB.
// With less memory it gets m in parts. The approximate search needs a copy of m, with rows
// padded to multiples of 16 values, 8·n·(k+10) bytes, and up to 200·n further bytes before
// the result is made.
//
// Sparse points take about n² operations, and m² for each column that m points have, except
// the most frequent columns; memory for another copy of m, 8 bytes for each column, and 8·n
// for each processor. They become dense if a fifth of their values is not 0 and memory allows.
//
// The error wraps ErrInput if m is empty, if its sizes do not fit together or if k < 1;
// ErrTooFewPoints if n ≤ k; and ErrNotFinite if a value is NaN or infinite. If ctx is done
// first, the error is ctx's.
func KNN(ctx context.Context, m *data.Matrix, k int, opt Options) (_ *Neighbors, err error) {
	defer kind.Catch(&err)
	checkSizes(m, "matrix")
	checkK(k)
	kind.Expect(m.N > k, ErrTooFewPoints, "k: got %d for %d points, want at most %d", k, m.N, m.N-1)
	checkFinite(m, "")
	opt.Device = deviceFor(opt.Device, m)
	if m.Metric != data.Precomputed && m.CSR == nil && opt.Search.Approximates(opt.Device, m.N, m.D, k) {
		defer runtime.GC() // the caller's next arrays get the memory of the search
		return approximateKNN(ctx, lift(m), k, opt.Seed), nil
	}
	nb := newNeighbors(m.N, k)
	x := newIndex(ctx, m, k, opt)
	defer x.Free()
	x.find(ctx, nb, queries{points: x.base, own: true})
	return x.measure.finish(nb), nil
}

func checkK(k int) { kind.Expect(k >= 1, ErrInput, "k: got %d, want 1 or more", k) }

// checkSizes fails as kind.Expect does unless the fields of a matrix fit each other. what names
// the matrix in errors.
func checkSizes(m *data.Matrix, what string) {
	kind.Expect(m != nil, ErrInput, "%s: got nil", what)
	kind.Expect(m.N >= 1 && m.D >= 1, ErrInput, "%s: got %d points of %d values, want 1 or more of each", what, m.N, m.D)
	kind.Expect(m.N <= math.MaxInt32, ErrInput, "points: got %d, want at most %d", m.N, math.MaxInt32)
	if m.CSR != nil {
		err := m.Check()
		if !m.Metric.Sparse() {
			err = data.CheckDense(m)
		}
		kind.Expect(err == nil, ErrInput, "%s: %w", what, err)
		return
	}
	kind.Expect(len(m.X)%m.D == 0 && len(m.X)/m.D == m.N, ErrInput, "%s: got %d values, want %d points of %d", what, len(m.X), m.N, m.D)
	kind.Expect(m.Metric != data.Precomputed || what == "query matrix" || m.D == m.N, ErrInput,
		"%s: got %d×%d distances, want a square matrix", what, m.N, m.D)
	kind.Expect(m.Metric != data.Haversine || m.D == 2, ErrInput, "%s: got %d values for a latitude and a longitude, want 2", what, m.D)
}

// checkFinite fails as kind.Expect does for the first value that is NaN or infinite. what, empty
// or with a space at its end, names the points.
func checkFinite(m *data.Matrix, what string) {
	row, column, v, found := m.FirstNotFinite()
	kind.Expect(!found, ErrNotFinite, "value %d of %spoint %d (both counted from 0): got %v", column, what, row, v)
}

// dist2 returns the squared distance of two points, or some value above limit if the
// distance exceeds limit.
//
// Every distance in this package is this sum, in this order, so equal distances compare
// equal wherever they are computed. The conversions keep the compiler from fusing
// multiplications and additions on the processors that can. Partial sums only grow, even
// with rounding, so a partial sum above limit suffices.
func dist2(a, b []float32, limit float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 {
		for range min(4, len(a)/4) {
			d0 := float64(a[0]) - float64(b[0])
			d1 := float64(a[1]) - float64(b[1])
			d2 := float64(a[2]) - float64(b[2])
			d3 := float64(a[3]) - float64(b[3])
			s0 += float64(d0 * d0)
			s1 += float64(d1 * d1)
			s2 += float64(d2 * d2)
			s3 += float64(d3 * d3)
			a, b = a[4:], b[4:]
		}
		if s := (s0 + s1) + (s2 + s3); s > limit {
			return s
		}
	}
	b = b[:len(a)]
	if len(a) > 0 {
		d := float64(a[0]) - float64(b[0])
		s0 += float64(d * d)
	}
	if len(a) > 1 {
		d := float64(a[1]) - float64(b[1])
		s1 += float64(d * d)
	}
	if len(a) > 2 {
		d := float64(a[2]) - float64(b[2])
		s2 += float64(d * d)
	}
	return (s0 + s1) + (s2 + s3)
}

// A SearchMethod is a way to find neighbours.
type SearchMethod int

const (
	// Auto is Approximate if that saves seconds (see Approximates), and otherwise Exact.
	Auto SearchMethod = iota
	// Exact finds the nearest points.
	Exact
	// Approximate finds points that are nearly all among the nearest, in a time that
	// grows little faster than their number. EstimateRecall estimates the share.
	Approximate
)

var searchMethods = kind.Names[SearchMethod]{Package: "neighbors", Type: "SearchMethod", What: "search for neighbours",
	Words: []string{"auto", "exact", "approximate"}}

// String returns "auto", "exact" or "approximate".
func (s SearchMethod) String() string { return searchMethods.String(s) }

// MarshalText implements encoding.TextMarshaler by the word of String. An invalid value
// is an error.
func (s SearchMethod) MarshalText() ([]byte, error) { return searchMethods.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler. A text that is not one of Words is
// an error.
func (s *SearchMethod) UnmarshalText(text []byte) error { return searchMethods.Parse(s, text) }

// Words returns the words of all methods.
func (SearchMethod) Words() []string { return searchMethods.Words }

// The time per point of an approximate search grows with k, and of an exact one with
// n·(D+12). Both are equally fast if n·(D+12)/k is 90 000 for D = 10 and k = 5, 54 000
// for 10 and 15, 180 000 for 50 and 15, 103 000 for 50 and 100, and a million for 784 and
// 15. Up to 100 000 points the exact search takes only seconds, and Auto uses it.
// (autoPoints is a variable for tests.)
var autoPoints = 100_000

const autoPerNeighbor = 100_000

// An H100 takes an estimated 5·10⁻¹⁵·(D+500) s for a pair of points, since it writes and
// reads their product in the time of 500 multiplications: 3 s for a million points of 50
// values. The approximate search takes some 7.5·10⁻⁹·k·(D+100) s for a point on two cores
// (17 s for k = 15), by the ratios above. Auto uses the device as long as it is faster than
// six cores: for k = 15 up to 2 million points of 50 values, or 5 million of 784. A device's
// memory sets no limit: copying points in parts takes little of the time of such a search.
const (
	deviceOverhead      = 500 // per pair, in multiplications
	approximateOverhead = 100 // per comparison
	devicePerNeighbor   = 500_000
)

// Approximates reports whether the method finds the k nearest of n dense points of d values
// approximately. Auto does if there are more than 100 000 points, of more than 8 values (in
// fewer dimensions a tree finds the nearest as fast), and n·(d+12) is above 100 000·k on the
// CPU, and n·(d+500) above 500 000·k·(d+100) on a device.
func (s SearchMethod) Approximates(on *device.Device, n, d, k int) bool {
	if s != Auto || n <= autoPoints || d <= treeMaxD {
		return s == Approximate
	}
	points, width, neighbors := float64(n), float64(d), float64(k)
	if on.OnHost() {
		return points*(width+12) > autoPerNeighbor*neighbors
	}
	return points*(width+deviceOverhead) > devicePerNeighbor*neighbors*(width+approximateOverhead)
}

// A Recall is the share of the nearest neighbours that a search has found, as
// estimated from some of the points.
type Recall struct {
	// Share is between 0 and 1, and StdErr is its standard error.
	Share  float64 `json:"graph_recall"`
	StdErr float64 `json:"graph_recall_stderr"`
}

// String returns text such as "0.9868 ± 0.0012 are among the nearest".
func (r *Recall) String() string {
	return fmt.Sprintf("%.4f ± %.4f are among the nearest", r.Share, r.StdErr)
}

// recallPoints is the number of points that EstimateRecall takes.
const recallPoints = 1000

// recallBlock is the number of points that EstimateRecall searches at a time.
const recallBlock = 1 << 17

// EstimateRecall estimates the share of the nearest neighbours in nb, a result of KNN for
// m. It compares 1000 points drawn with the seed, or all points if there are fewer. A
// neighbour counts if it is not farther than the K-th nearest, so it does not matter
// which of several equally near points were found. It takes O(nD) operations for each
// point and about as much memory as 131 072 of them.
//
// The error wraps ErrInput if nb does not fit m, and data.ErrSparse for sparse points, among
// which KNN is exact. Other errors are as for Search. If ctx is
// done first, the error is ctx's.
func EstimateRecall(ctx context.Context, m *data.Matrix, nb *Neighbors, seed uint64, opt Options) (_ *Recall, err error) {
	defer kind.Catch(&err)
	checkSizes(m, "matrix")
	err = data.CheckDense(m)
	kind.Expect(err == nil, ErrInput, "matrix: %w", err)
	fits := nb != nil && nb.N == m.N && nb.K >= 1 && nb.K < m.N && len(nb.Dist2) == nb.N*nb.K
	kind.Expect(fits, ErrInput, "neighbours: got inconsistent sizes, want the neighbours of %d points", m.N)
	count := min(recallPoints, m.N)
	stream := rng.New(seed, rng.Sample, recallPoints)
	rows := stream.Choose(m.N, count)
	limits := farthest(ctx, m, rows, nb.K, opt.Device)
	var sum, squares float64
	for r, i := range rows {
		found := selection.Count(nb.Dist2[i*nb.K:(i+1)*nb.K], func(d2 float64) bool { return d2 <= limits[r] })
		share := float64(found) / float64(nb.K)
		sum, squares = sum+share, squares+float64(share*share)
	}
	c := float64(count)
	r := &Recall{Share: sum / c}
	if count > 1 && count < m.N {
		variance := max(0, squares-sum*sum/c) / (c - 1)
		r.StdErr = math.Sqrt(variance / c * (1 - c/float64(m.N)))
	}
	return r, nil
}

// farthest returns the squared distances to the k-th nearest others of some rows of m. It takes
// about as much memory as recallBlock points. It fails as kind.Need does.
func farthest(ctx context.Context, m *data.Matrix, rows []int, k int, on *device.Device) []float64 {
	k++ // One of the nearest is the point itself, or a duplicate.
	best := make([]*topK, len(rows))
	for r := range best {
		best[r] = newTopK(k)
		best[r].resetAll()
	}
	// A search of all points at once would need a copy of them.
	queries, block := m.Take(rows), max(k, recallBlock)
	for lo, hi := 0, 0; lo < m.N; lo = hi {
		if hi = lo + block; hi+block > m.N {
			hi = m.N
		}
		nearest := kind.Got(Search(ctx, m.Rows(lo, hi), queries, k, Options{Search: Exact, Device: on}))
		for e, d2 := range nearest.Dist2 {
			best[e/k].offer(d2, int32(lo)+nearest.Index[e])
		}
	}
	limits := make([]float64, len(rows))
	for r, b := range best {
		limits[r] = b.limit
	}
	return limits
}
