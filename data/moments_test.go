package data_test

import (
	"slices"
	"testing"

	"cne/data"
)

func TestMoments(t *testing.T) {
	m := &data.Matrix{N: 4, D: 2, X: []float32{1, 2, 9, 9, 3, 6, 9, 9}}
	mean, square := m.Moments([]int32{0, 2})
	if !slices.Equal(mean, []float64{2, 4}) || square != 10 {
		t.Errorf("got %v and %v, want the mean 2, 4 and the sum 10", mean, square)
	}
}
