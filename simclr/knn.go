package simclr

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/parallel"
	"cne/model"
)

// KNNAccuracy returns the accuracy, from 0 to 1, of a k-nearest-neighbour classifier on
// the test images. Row i of features is image i, classes[i] its class. The nearest
// training images are those with the largest cosine, of equals the first in split.Train.
// Every neighbour has one vote; of classes with equally many, the lower number wins, as
// in scikit-learn. Features that are all zero have the cosine 0 with all others, so that
// the first k in split.Train are the nearest of such a test image.
//
// The search is exact for the features scaled to unit length in float32, and the
// result is the same for any GOMAXPROCS and on any device; a nil one is the CPU. Errors
// wrap ErrOption, ErrShape, ErrLabels, ErrSplit or ErrFeatures, or are those of ctx or of
// the device.
func KNNAccuracy(ctx context.Context, features *data.Matrix, classes []int32, split Split, k int, on *model.Device) (float64, error) {
	if err := checkFeatures(features, classes); err != nil {
		return 0, err
	}
	if err := cmp.Or(split.checkRows(features.N), checkNeighbors(k, split)); err != nil {
		return 0, err
	}
	features = features.Relative(nil) // directions are those from the origin
	base := directions(features, split.Train, true)
	index, err := neighbors.NewIndex(ctx, base, neighbors.Options{Search: neighbors.Exact, Device: on})
	if err != nil {
		return 0, err
	}
	defer index.Free()
	first := make([]int32, k) // equally near to a query without a direction are all
	for i := range first {
		first[i] = int32(i)
	}
	right := 0
	const queries = 4096
	for lo := 0; lo < len(split.Test); lo += queries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		test := split.Test[lo:min(lo+queries, len(split.Test))]
		to := directions(features, test, false)
		nb, err := index.Search(ctx, to, k)
		if err != nil {
			return 0, err
		}
		votes := map[int32]int{}
		for i, row := range test {
			clear(votes)
			nearest := nb.Of(i)
			if !slices.ContainsFunc(to.Row(i), func(v float32) bool { return v != 0 }) {
				nearest = first // the distances differ only by rounding
			}
			for _, j := range nearest {
				votes[classes[split.Train[j]]]++
			}
			if winner(votes) == classes[row] {
				right++
			}
		}
	}
	return float64(right) / float64(len(split.Test)), nil
}

// defaultK is the number of neighbours that vote.
const defaultK = 15

// checkNeighbors returns an error unless the split has k training images.
func checkNeighbors(k int, split Split) error {
	if k < 1 {
		return fmt.Errorf("%w: neighbours: got %d, want 1 or more", ErrOption, k)
	}
	if k > len(split.Train) {
		return fmt.Errorf("%w: neighbours: got %d, want at most %d, the number of training images", ErrOption, k, len(split.Train))
	}
	return nil
}

// winner returns the class with most votes, of several the lowest.
func winner(votes map[int32]int) int32 {
	best := int32(-1)
	for class, n := range votes {
		if best < 0 || n > votes[best] || n == votes[best] && class < best {
			best = class
		}
	}
	return best
}

// directions returns the given rows scaled to unit length. One more column is 1 for the
// rows of the base that are zero, and 0 for all others: the squared distance of a query
// to any point of the base is then 2 − 2·cosine, or 1 but for rounding if the query is
// zero.
func directions(features *data.Matrix, rows []int32, base bool) *data.Matrix {
	d := features.D
	m := data.NewMatrix(len(rows), d+1)
	parallel.For(len(rows), max(1, 1<<16/d), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := features.Row(int(rows[i])), m.Row(i)
			var square float64
			for _, v := range from {
				square += float64(v) * float64(v)
			}
			if square == 0 {
				if base {
					to[d] = 1
				}
				continue
			}
			scale := 1 / math.Sqrt(square)
			for j, v := range from {
				to[j] = float32(float64(v) * scale)
			}
		}
	})
	return m
}
