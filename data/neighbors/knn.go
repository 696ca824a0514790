package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math"

	"cne/data"
	"cne/internal/device"
	"cne/internal/finite"
)

// Errors that those of KNN, Search and Ranks wrap.
var (
	// ErrInput means that the arguments do not fit together, that there are no
	// points, or that k is below 1.
	ErrInput = errors.New("bad input")
	// ErrTooFewPoints means that there are not k points to be neighbours.
	ErrTooFewPoints = errors.New("too few points for the number of neighbours")
	// ErrNotFinite means that a coordinate is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")
)

// Options say how neighbours are found. The zero value finds them on the CPU, and
// exactly unless there are many points.
type Options struct {
	// Search is the method. The zero value, Auto, is exact for up to 100 000 points
	// (SearchMethod.Approximates).
	Search SearchMethod
	// Seed decides what is random in an approximate search. With the same seed the
	// result is the same, bit for bit, on any number of cores.
	Seed uint64
	// Device is where an exact search compares points; nil is the CPU. The result
	// is the same to the last bit: a device finds the candidates for the nearest
	// neighbours, and the CPU ranks them. Errors are then also the device's. An
	// approximate search is the CPU's, whatever this is.
	Device *device.Device
}

// Neighbors holds the K nearest neighbours of each of N points. Those of point
// i are at positions i*K to (i+1)*K−1 of both slices, nearest first, equally
// near ones in the order of their indices.
type Neighbors struct {
	N, K int
	// Index [N, K] has the neighbours' indices, counted from 0: from KNN among
	// the N points themselves, from Search among the base points.
	Index []int32
	// Dist2 [N, K] has the squared Euclidean distances to them. KNN and Search find them;
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

// treeMaxD is the largest dimension in which the CPU searches only the tree.
// In more dimensions its boxes overlap every neighbourhood and it visits most
// points, each at a higher cost than a matrix product has.
const treeMaxD = 8

// KNN finds the k nearest other points of every point of m by Euclidean
// distance. A point is never its own neighbour, but its duplicates are, at
// distance 0. Of equally near points the one with the smaller index comes
// first. Distances are sums of squared differences in float64, and the result
// is exact with respect to them; it does not depend on GOMAXPROCS.
//
// It takes O(n²D) operations for D > 8 and about O(n log n) below; besides m
// and the result it needs a copy of m and about 16·n·(k+16) bytes. A device
// needs memory for three copies of m, two without Device.TF32 or for D ≤ 8, and 64 MiB;
// with less it is given m in parts. The approximate search needs a copy of
// m, with rows filled up to multiples of 16 values, and 8·n·(k+10) bytes, and
// until the result is made up to 200·n more.
//
// It fails if m is empty or its sizes do not fit together or if k < 1
// (ErrInput), if n ≤ k (ErrTooFewPoints), or if a value is NaN or infinite
// (ErrNotFinite). If ctx ends before the search does, the error is ctx's.
func KNN(ctx context.Context, m *data.Matrix, k int, opt Options) (*Neighbors, error) {
	if err := check(m, k); err != nil {
		return nil, err
	}
	if opt.Search.Approximates(m.N, m.D, k) {
		return approximateKNN(ctx, m, k, opt.Seed)
	}
	nb := newNeighbors(m.N, k)
	x, err := newIndex(ctx, m, k, opt)
	if err != nil {
		return nil, err
	}
	defer x.Free()
	if err := x.find(ctx, nb, m, true); err != nil {
		return nil, err
	}
	return nb, nil
}

func check(m *data.Matrix, k int) error {
	if err := checkSizes(m, "matrix"); err != nil {
		return err
	}
	switch {
	case k < 1:
		return errK(k)
	case m.N <= k:
		return fmt.Errorf("neighbors: %w: k: got %d for %d points, want at most %d", ErrTooFewPoints, k, m.N, m.N-1)
	}
	return checkFinite(m, "")
}

func errK(k int) error {
	return fmt.Errorf("neighbors: %w: k: got %d, want 1 or more", ErrInput, k)
}

// checkSizes checks the fields of a matrix against each other. What names it
// in errors.
func checkSizes(m *data.Matrix, what string) error {
	switch {
	case m == nil:
		return fmt.Errorf("neighbors: %w: %s: got nil", ErrInput, what)
	case m.N < 1 || m.D < 1:
		return fmt.Errorf("neighbors: %w: %s: got %d points of %d values, want 1 or more of each", ErrInput, what, m.N, m.D)
	case m.N > math.MaxInt32:
		return fmt.Errorf("neighbors: %w: points: got %d, want at most %d", ErrInput, m.N, math.MaxInt32)
	case len(m.X)%m.D != 0 || len(m.X)/m.D != m.N:
		return fmt.Errorf("neighbors: %w: %s: got %d values, want %d points of %d", ErrInput, what, len(m.X), m.N, m.D)
	}
	return nil
}

// checkFinite finds the first value that is NaN or infinite. What, empty or
// with a space at its end, tells which points are meant.
func checkFinite(m *data.Matrix, what string) error {
	if at := finite.First(m.X); at >= 0 {
		return fmt.Errorf("neighbors: %w: value %d of %spoint %d (both counted from 0): got %v",
			ErrNotFinite, at%m.D, what, at/m.D, m.X[at])
	}
	return nil
}

// dist2 returns the squared distance of two points, or, once it is certain to
// exceed limit, some value above limit.
//
// Every distance in this package is this sum, in this order, so that equal
// distances compare equal wherever they are computed. The conversions keep
// the compiler from fusing multiplications and additions on the processors
// that can. All partial sums only grow, rounding included, which is why a
// partial result above limit settles the matter.
func dist2(a, b []float32, limit float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 16 {
		for range 4 {
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
	for len(a) >= 4 && len(b) >= 4 {
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
