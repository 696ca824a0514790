package data_test

import (
	"slices"
	"testing"

	"cne/data"
)

func TestZeroRows(t *testing.T) {
	dense := &data.Matrix{N: 3, D: 2, X: []float32{0, 1, 0, 0, -1, 0}}
	sparse, err := data.FromCSR(3, 2, []int{0, 1, 1, 2}, []int{1, 0}, []float32{1, -1})
	if err != nil {
		t.Fatal(err)
	}
	moved := &data.Matrix{N: 3, D: 2, X: []float32{-5, 1, -5, 0, 0, 0}, Offset: []float64{5, 0}} // 5 was subtracted
	for _, m := range []*data.Matrix{dense, sparse, moved} {
		if rows := m.ZeroRows(3, data.Cosine); !slices.Equal(rows, []int{1}) {
			t.Errorf("rows of zeros: got %v, want 1", rows)
		}
	}
	dense.X[0] = 1
	moved.X[0], moved.X[1] = -3, 2
	for _, m := range []*data.Matrix{dense, moved} {
		if rows := m.ZeroRows(3, data.Correlation); !slices.Equal(rows, []int{0, 1}) {
			t.Errorf("rows of equal values: got %v, want 0 and 1", rows)
		}
	}
}
