package neighbors_test

import (
	"slices"
	"testing"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rng"
)

// Queries are searched where they are, whatever offset the base has.
func TestSearchRelatesOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	base, queries := data.NewMatrix(200, 2), data.NewMatrix(20, 2)
	for i := range base.X {
		base.X[i] = float32(s.IntN(4096)) / 64
	}
	copy(queries.X, base.X)
	want, err := neighbors.Search(t.Context(), base, queries, 5, neighbors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	base.Offset = []float64{1e9, -1e9}
	moved := queries.Relative([]float64{8, -4})
	moved.Offset = []float64{1e9 + 8, -1e9 - 4}
	got, err := neighbors.Search(t.Context(), base, moved, 5, neighbors.Options{})
	if err != nil || !slices.Equal(got.Index, want.Index) || !slices.Equal(got.Dist2, want.Dist2) {
		t.Errorf("the neighbours are others (%v)", err)
	}
}
