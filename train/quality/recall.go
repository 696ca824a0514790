package quality

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
)

// fairRecall returns the mean share of a point's k nearest neighbours in the embedding that
// are among its k nearest in the data, from 0 to 1. Both lists have k neighbours of each
// point, without the point itself, as numbers from 0 to points−1; the nearest in the data
// come first. For held-out points, neighbours are training points. If there are fewer points
// than of, they are a sample of a population of size of, and the recall is estimated.
// compare, if not nil, is neighbors.Compare for points of the lists, and tie is
// neighbors.Tie. Where several points are as near as the k-th, any of them counts as one of
// the k nearest.
func fairRecall(inData, inEmbedding []int32, k, points, of int, compare func(q, j int, limit float64) float64,
	tie float64) (_ Estimate, err error) {
	defer kind.Catch(&err)
	hits := make([]int, len(inData)/k)
	kind.Expect(len(hits) > 0, ErrUndefined, "recall: got no points")
	for _, list := range [][]int32{inData, inEmbedding} {
		for e, j := range list {
			if j < 0 || int(j) >= points {
				kind.Check(fmt.Errorf("%w: neighbour of point %d (counted from 0): got %d, want 0 to %d", ErrInput, e/k, j, points-1))
			}
		}
	}
	parallel.For(len(hits), 1<<13, func(_, lo, hi int) {
		// The point that has an entry as a neighbour in the data, plus 1; negative once it is
		// found in the embedding.
		owner := make([]int32, points)
		var others []int32
		for i := lo; i < hi; i++ {
			for _, j := range inData[i*k : (i+1)*k] {
				owner[j] = int32(i) + 1
			}
			others = others[:0]
			for _, j := range inEmbedding[i*k : (i+1)*k] {
				switch owner[j] {
				case int32(i) + 1:
					hits[i]++
					owner[j] = -int32(i) - 1 // a neighbour that is listed twice counts once
				case -int32(i) - 1:
				default:
					others = append(others, j)
				}
			}
			if compare != nil && len(others) > 0 {
				distance := func(j int32, limit float64) float64 { return compare(i, int(j), limit) }
				hits[i] += tied(inData[i*k:(i+1)*k], others, distance, func(j int32) bool { return owner[j] < 0 }, tie)
			}
		}
	})
	return average(hits, of, func(count, points float64) float64 { return count / (points * float64(k)) }), nil
}

// tied returns how many of the others are as near as the farthest of the nearest points, and
// so replace points at this distance that are not found.
func tied(nearest, others []int32, distance func(j int32, limit float64) float64, found func(j int32) bool, tie float64) (count int) {
	farthest := distance(nearest[len(nearest)-1], math.Inf(1))
	low, high := farthest*(1-tie), farthest*(1+tie)
	for _, j := range others {
		if d := distance(j, high); d >= low && d <= high {
			count++
		}
	}
	if count == 0 {
		return 0
	}
	open := 0
	for _, j := range slices.Backward(nearest) {
		if distance(j, math.Inf(1)) < low {
			break
		}
		if !found(j) {
			open++
		}
	}
	return min(count, open)
}

// splitAccuracy is accuracy for held points, which are drawn, or for at most most of them,
// if most is not 0, with the others as known points.
func splitAccuracy(ctx context.Context, embedding *data.Matrix, classes []int32, k, held int, seed uint64, most int,
	on *Device) (_ Estimate, err error) {
	defer kind.Catch(&err)
	stream := rng.New(seed, rng.Split)
	order := stream.Perm(len(classes))
	test, known := order[:held], order[held:]
	slices.Sort(known)
	if most > 0 {
		test = test[:min(held, most)] // in random order
	}
	pick := func(rows []int) classified { return classified{embedding.Take(rows), selection.Pick(classes, rows)} }
	share := accuracy(ctx, pick(known), pick(test), k, on)
	e := Estimate{Mean: share, Exact: len(test) == held}
	if size := float64(len(test)); !e.Exact {
		e.Error = math.Sqrt((1 - size/float64(held)) * share * (1 - share) / (size - 1))
	}
	return e, nil
}

// classified are points with known classes.
type classified struct {
	*data.Matrix
	class []int32
}

// check fails as kind.Expect does unless the points are finite and have a class each.
func (c classified) check(what string) {
	checkDense(c.Matrix, what)
	kind.Expect(len(c.class) == c.N, ErrInput, "classes: got %d, want one for each of the %d points of the %s", len(c.class), c.N, what)
}

// HeldOutAccuracy returns the share, from 0 to 1, of held-out points that a
// k-nearest-neighbour classifier gets right. The classifier knows the training points.
// trainClasses[i] is the class of training point i, any number, and heldClasses[i] the class
// of held-out point i. A held-out point counts as wrong if no training point has its class.
//
// Neighbours are exact (neighbors.Search); ties go to the lower row. The class with the
// most neighbours wins. Among classes with equally many, the class with the nearest
// member wins.
//
// Errors wrap ErrInput or ErrNotFinite, ErrUndefined if there are no held-out points, or are
// the context's or the device's.
func HeldOutAccuracy(ctx context.Context, train *data.Matrix, trainClasses []int32, held *data.Matrix, heldClasses []int32,
	k int, on *Device) (_ float64, err error) {
	defer kind.Catch(&err)
	kind.Expect(held == nil || held.N > 0, ErrUndefined, "accuracy: got no points")
	known, tests := classified{train, trainClasses}, classified{held, heldClasses}
	known.check("training points' embedding")
	tests.check("held-out points' embedding")
	kind.Expect(held.D == train.D, ErrInput, "held-out points: got %d coordinates, want %d as of the training points", held.D, train.D)
	kind.Expect(k >= 1 && k <= train.N, ErrInput, "neighbours: got %d, want 1 to %d, the number of training points", k, train.N)
	return accuracy(ctx, known, tests, k, on), nil
}

// accuracy returns the share of the tests that get their class by a vote of their k
// nearest among the known points, or fails as kind.Need does.
func accuracy(ctx context.Context, known, tests classified, k int, on *Device) float64 {
	found, err := neighbors.Search(ctx, known.Matrix, tests.Matrix, k, neighbors.Options{Search: neighbors.Exact, Device: on})
	kind.Check(cmp.Or(ctx.Err(), err))
	right := 0
	for i, class := range tests.class {
		if vote(found.Of(i), known.class) == class {
			right++
		}
	}
	return float64(right) / float64(tests.N)
}

// vote returns the most frequent class among rows. Rows are in order of distance; ties go
// to the class met first.
func vote(rows []int32, class []int32) int32 {
	var winner int32
	best := 0
	for i, r := range rows {
		count := 0
		for _, s := range rows[i:] {
			if class[s] == class[r] {
				count++
			}
		}
		if count > best { // a class's count is complete where it is met first
			best, winner = count, class[r]
		}
	}
	return winner
}

// trustworthiness returns how far the neighbours of a point in the embedding
// can be trusted to be near it in the data (Venna and Kaski, 2001),
//
//	1 − 2/(nk(2n−3k−1)) · Σ_i Σ_(j among the k nearest of i in the embedding) max(0, r(i,j)−k),
//
// where r(i,j), from 1, is the rank of j by distance from i in the data. Points that are
// equally near share the least rank. The value is 1
// if all k neighbours are among the k nearest in the data, and about 0.5 if they are
// random points.
//
// ranks is n×k: entries i·k to i·k+k−1 are the ranks r(i,j) of the neighbours
// of point i (neighbors.Ranks gives them). With the ranks of fewer than n points, a
// sample, the measure is estimated. It is defined for k < n/2.
func trustworthiness(ranks []int32, k, n int) Estimate {
	penalties := make([]int, len(ranks)/k)
	parallel.For(len(penalties), 1<<12, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for _, r := range ranks[i*k : (i+1)*k] {
				penalties[i] += max(0, int(r)-k)
			}
		}
	})
	return average(penalties, n, func(penalty, points float64) float64 {
		return 1 - 2*penalty/(points*float64(k)*float64(2*n-3*k-1))
	})
}
