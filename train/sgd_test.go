package train

import (
	"slices"
	"testing"

	"cne/model"
	"cne/model/op"
)

func array(t *testing.T, data []float64, shape ...int) *op.Array {
	t.Helper()
	a, err := op.ArrayOf(data, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSGD(t *testing.T) {
	for _, tc := range []struct {
		name   string
		clip   float64
		sparse bool
		grad   []float64
		rows   []int32
		want   []float64
	}{
		{"dense", 0, false, []float64{1, 2, 30, -40, 5, 6}, nil, []float64{-0.5, -1, -15, 20, -2.5, -3}},
		{"dense, clipped", 4, false, []float64{1, 2, 30, -40, 5, 6}, nil, []float64{-0.5, -1, -2, 2, -2, -2}},
		{"sparse", 0, true, []float64{1, 2, 30, -40}, []int32{2, 0}, []float64{-15, 20, 0, 0, -0.5, -1}},
		{"sparse, clipped", 4, true, []float64{1, 2, 30, -40}, []int32{2, 0}, []float64{-2, 2, 0, 0, -0.5, -1}},
	} {
		value := make([]float64, 6)
		newSGD(tc.clip).step([]model.Parameter{{
			Value: array(t, value, 3, 2), Grad: array(t, tc.grad, len(tc.grad)/2, 2), Sparse: tc.sparse}}, tc.rows, 0.5)
		if !slices.Equal(value, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, value, tc.want)
		}
	}
}
