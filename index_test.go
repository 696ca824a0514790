package cne_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/data/neighbors"
)

// A graph of one's own is checked before anything is computed with it.
func TestGraphOutOfRange(t *testing.T) {
	const n = 64
	points := data.NewMatrix(n, 3)
	ring := &neighbors.Graph{N: n, Indptr: make([]int64, n+1)}
	for i := range n {
		points.Row(i)[i%3] = float32(i)
		ring.Indices = append(ring.Indices, int32((i+1)%n))
		ring.Indptr[i+1] = int64(i + 1)
	}
	embed(t, points, cne.Options{Graph: ring, Epochs: 1})
	for _, bad := range []int32{-1, n, math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 40, n - 1} {
			broken := *ring
			broken.Indices = slices.Clone(ring.Indices)
			broken.Indices[at] = bad
			if _, err := cne.Embed(t.Context(), points, cne.Options{Graph: &broken, Epochs: 1}); !errors.Is(err, neighbors.ErrInvalidGraph) {
				t.Errorf("%d at %d: %v", bad, at, err)
			}
		}
	}
}
