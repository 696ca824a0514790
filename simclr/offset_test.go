package simclr_test

import (
	"slices"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/simclr"
)

// Features with an offset are classified as those without.
func TestClassifiersHeedOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	plain, offset := data.NewMatrix(120, 3), data.NewMatrix(120, 3)
	classes := make([]int32, plain.N)
	var split simclr.Split
	for i := range plain.N {
		classes[i] = int32(i % 3)
		for j := range 3 {
			plain.Row(i)[j] = float32(s.IntN(256))/64 + float32(2*((i+j)%3))
			offset.Row(i)[j] = plain.Row(i)[j] - 4
		}
		if i%4 == 0 {
			split.Test = append(split.Test, int32(i))
		} else {
			split.Train = append(split.Train, int32(i))
		}
	}
	offset.Offset = []float64{4, 4, 4}
	want, err := simclr.KNNAccuracy(t.Context(), plain, classes, split, 5, nil)
	must(t, err)
	if got, err := simclr.KNNAccuracy(t.Context(), offset, classes, split, 5, nil); err != nil || got != want {
		t.Errorf("the accuracy is %v, want %v (%v)", got, want, err)
	}
	fitted, err := simclr.FitLogistic(t.Context(), offset, classes, split.Train, 3, simclr.LogisticOptions{Penalty: 1})
	must(t, err)
	a, err := fitted.Classify(offset, split.Test)
	must(t, err)
	b, err := fitted.Classify(plain, split.Test)
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("the classes are %v, and without an offset %v (%v)", a, b, err)
	}
}
