package quality

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"cne/data"
	"cne/data/neighbors"
)

// Numbers of points are checked wherever they come in.
func TestPointsOutOfRange(t *testing.T) {
	const n, k = 40, 2
	x := normal[float32](1, n, 2, 3)
	m := &data.Matrix{N: n, D: 2, X: x}
	good := func() []int32 {
		index := make([]int32, n*k)
		for e := range index {
			index[e] = int32((e/k + 1 + e%k) % n)
		}
		return index
	}
	list := func(index []int32) *neighbors.Neighbors {
		return &neighbors.Neighbors{N: n, K: k, Index: index, Dist2: make([]float64, n*k)}
	}
	graph := need(neighbors.FromNeighbors(list(good())))(t)
	for _, bad := range []int32{-1, n, math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 37, n*k - 1} {
			index := good()
			index[at] = bad
			broken := *graph
			broken.Indices = append([]int32(nil), graph.Indices...)
			broken.Indices[at] = bad
			for name, measure := range map[string]func() error{
				"KNNRecall":        func() error { _, err := knnRecall(index, good(), k, n); return err },
				"KNNRecall, found": func() error { _, err := knnRecall(good(), index, k, n); return err },
				"Options.Neighbors": func() error {
					_, err := Measure(t.Context(), m, m, Options{K: k, Neighbors: list(index)})
					return err
				},
				"Options.Found": func() error {
					_, err := Measure(t.Context(), m, m, Options{K: k, Found: list(index)})
					return err
				},
				"Options.Graph": func() error {
					_, err := Measure(t.Context(), m, m, Options{K: k, Graph: &broken})
					return err
				},
			} {
				if err := measure(); !errors.Is(err, ErrInput) && !errors.Is(err, neighbors.ErrInput) && !errors.Is(err, neighbors.ErrInvalidGraph) {
					t.Errorf("%s, %s: %v", name, fmt.Sprintf("%d at %d", bad, at), err)
				}
			}
		}
	}
}
