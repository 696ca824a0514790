package quality_test

import (
	"math"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/train/quality"
)

// Embeddings far from zero are aligned where they are.
func TestAlignRelatesOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	near, far := data.NewMatrix(100, 2), data.NewMatrix(100, 2)
	for i := range near.X {
		near.X[i] = float32(s.IntN(4096)) / 64
		far.X[i] = near.X[i] - 32
	}
	far.Offset = []float64{32, 32}
	for name, align := range map[string]func(a, b *data.Matrix) (float64, float64, error){"Align": quality.Align, "AlignDirections": quality.AlignDirections} {
		moved := far.Clone()
		scale, disparity, err := align(moved, near)
		if err != nil || math.Abs(scale-1) > 1e-6 || disparity > 1e-6 || moved.Offset != nil {
			t.Errorf("%s: scale %v, disparity %v, offset %v, %v", name, scale, disparity, moved.Offset, err)
		}
		for i, v := range moved.X {
			if math.Abs(float64(v-near.X[i])) > 1e-4 {
				t.Fatalf("%s: coordinate %d is %v, want %v", name, i, v, near.X[i])
			}
		}
		if scale, disparity, err := align(near.Clone(), far); err != nil || math.Abs(scale-1) > 1e-6 || disparity > 1e-6 {
			t.Errorf("%s to one with an offset: scale %v, disparity %v, %v", name, scale, disparity, err)
		}
	}
}
