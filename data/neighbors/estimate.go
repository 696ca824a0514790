package neighbors

import (
	"context"
	"fmt"
	"math"

	"cne/data"
	"cne/internal/rng"
)

// A Recall is the share of the nearest neighbours that a search has found, as
// estimated from some of the points.
type Recall struct {
	// Share is between 0 and 1, StdErr its standard error.
	Share, StdErr float64
	// Points is the number of points whose nearest neighbours were compared.
	Points int
}

// recallPoints is how many points EstimateRecall takes.
const recallPoints = 1000

// EstimateRecall compares the neighbours that KNN has found of 1000 points of m,
// or of all if there are not more, drawn by the seed, with their nearest. A found
// point counts if it is at most as far as the farthest of as many nearest ones;
// of equally near points it does not matter which were found. It takes O(nD)
// operations for each of the points and about as much memory as m has. On a device
// it needs what Search needs there.
//
// It fails if nb are not the neighbours of m's points (ErrInput), and as Search
// does. If ctx ends before, the error is ctx's.
func EstimateRecall(ctx context.Context, m *data.Matrix, nb *Neighbors, seed uint64, opt Options) (*Recall, error) {
	if err := checkSizes(m, "matrix"); err != nil {
		return nil, err
	}
	if nb == nil || nb.N != m.N || nb.K < 1 || nb.K >= m.N || len(nb.Dist2) != nb.N*nb.K {
		return nil, fmt.Errorf("neighbors: %w: neighbours: want those of all %d points", ErrInput, m.N)
	}
	stream := rng.New(seed, rng.Sample, recallPoints)
	count := min(recallPoints, m.N)
	sample := data.NewMatrix(count, m.D)
	rows := make([]int, 0, count)
	for i := 0; len(rows) < count; i++ { // each set of rows is as likely
		if stream.IntN(m.N-i) < count-len(rows) {
			copy(sample.Row(len(rows)), m.Row(i))
			rows = append(rows, i)
		}
	}
	// One of the nearest is the point itself, or as near as it.
	nearest, err := Search(ctx, m, sample, nb.K+1, Options{Search: Exact, Device: opt.Device})
	if err != nil {
		return nil, err
	}
	var sum, squares float64
	for r, i := range rows {
		limit := nearest.Dist2[r*nearest.K+nb.K]
		found := 0
		for _, d2 := range nb.Dist2[i*nb.K : (i+1)*nb.K] {
			if d2 <= limit {
				found++
			}
		}
		share := float64(found) / float64(nb.K)
		sum, squares = sum+share, squares+share*share
	}
	c := float64(count)
	r := &Recall{Share: sum / c, Points: count}
	if count > 1 && count < m.N {
		variance := max(0, squares-sum*sum/c) / (c - 1)
		r.StdErr = math.Sqrt(variance / c * (1 - c/float64(m.N)))
	}
	return r, nil
}
