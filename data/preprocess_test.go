package data_test

import (
	"encoding/json"
	"slices"
	"testing"

	"cne/data"
)

// What was done to the points of a run is done to new ones with the same bits,
// also after it has been written and read as JSON.
func TestPreprocessing(t *testing.T) {
	for _, kind := range []data.Scaling{data.ScaleNone, data.ScaleUnit, data.ScaleStandard} {
		for _, components := range []int{0, 3} {
			set := &data.Dataset{Points: normal(1, 50, 7)}
			raw := slices.Clone(set.Points.X)
			scaler := need(set.Scale(t.Context(), kind))(t)
			p := &data.Preprocessing{Width: 7, Scaler: scaler}
			want := set.Points
			if components > 0 {
				p.PCA = need(data.FitPCA(t.Context(), set.Points, components, nil))(t)
				want = need(p.PCA.Transform(t.Context(), set.Points, nil))(t)
			}
			text := need(json.Marshal(p))(t)
			var read data.Preprocessing
			must(t, json.Unmarshal(text, &read))
			must(t, read.Check())
			got := need(read.Apply(t.Context(), &data.Matrix{N: 50, D: 7, X: slices.Clone(raw)}, nil))(t)
			if got.D != read.Out() || !slices.Equal(got.X, want.X) {
				t.Errorf("%s, %d components: other points", kind, components)
			}
			// A block of one row gives the row's bits.
			one, err := read.Apply(t.Context(), &data.Matrix{N: 1, D: 7, X: slices.Clone(raw[7*9 : 7*10])}, nil)
			if err != nil || !slices.Equal(one.X, want.Row(9)) {
				t.Errorf("%s, %d components: row 9 alone is %v, among others %v (%v)", kind, components, one.X, want.Row(9), err)
			}
		}
	}
}

func TestPreprocessingRefuses(t *testing.T) {
	pca := &data.PCA{K: 1, D: 3, Mean: make([]float64, 3), Axes: make([]float64, 3)}
	for name, tc := range map[string]struct {
		p    data.Preprocessing
		kind error
		want string
	}{
		"no width":     {data.Preprocessing{}, data.ErrShape, "points of 0 values"},
		"scaler":       {data.Preprocessing{Width: 2, Scaler: &data.Scaler{Kind: data.ScaleUnit}}, data.ErrOption, "divides by 0"},
		"scaler width": {data.Preprocessing{Width: 2, Scaler: &data.Scaler{Kind: data.ScaleStandard, Mean: []float64{1}, SD: []float64{1}}}, data.ErrShape, "points of 1 values"},
		"PCA width":    {data.Preprocessing{Width: 2, PCA: pca}, data.ErrShape, "points of 3 values"},
		"broken PCA":   {data.Preprocessing{Width: 3, PCA: &data.PCA{K: 2, D: 3, Mean: make([]float64, 3), Axes: make([]float64, 3)}}, data.ErrShape, "inconsistent"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, tc.p.Check(), tc.kind, tc.want) })
	}
	p := data.Preprocessing{Width: 3, PCA: pca}
	wantError(t, errorOf(p.Apply(t.Context(), data.NewMatrix(2, 4), nil)), data.ErrShape, "the points have 4 values, but the model was trained on points of 3")
	wantError(t, errorOf(p.Apply(t.Context(), nil, nil)), data.ErrEmpty, "there is no matrix")
}
