package data_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"cne/data"
)

func TestScale(t *testing.T) {
	pixels := func() *data.Dataset { return &data.Dataset{Points: matrix(2, 2, 0, 51, 102, 204), Bytes: true} }
	plain := func() *data.Dataset { return &data.Dataset{Points: matrix(2, 2, 0, -4, 1, 2)} }
	table := func(largest float32, first, last string) *data.Dataset {
		m := matrix(2, 3, 0, 3, 0, largest, 3, 0.5)
		m.Columns = []string{first, "x3", last}
		return &data.Dataset{Points: m}
	}
	for _, tc := range []struct {
		name string
		ds   *data.Dataset
		kind data.Scaling
		want *data.Matrix
		fit  data.Scaler
	}{
		{"none", plain(), data.ScaleNone, matrix(2, 2, 0, -4, 1, 2), data.Scaler{Kind: data.ScaleNone}},
		{"unit", plain(), data.ScaleUnit, matrix(2, 2, 0, -1, 0.25, 0.5), data.Scaler{Kind: data.ScaleUnit, Divisor: 4}},
		{"unit, bytes", pixels(), data.ScaleUnit, matrix(2, 2, 0, 0.2, 0.4, 0.8), data.Scaler{Kind: data.ScaleUnit, Divisor: 255}},
		{"unit, zeros", &data.Dataset{Points: matrix(1, 2, 0, 0)}, data.ScaleUnit, matrix(1, 2, 0, 0), data.Scaler{Kind: data.ScaleUnit, Divisor: 1}},
		{"standard", plain(), data.ScaleStandard, matrix(2, 2, -1, -1, 1, 1), data.Scaler{Kind: data.ScaleStandard, Mean: []float64{0.5, -1}, SD: []float64{0.5, 3}}},
		{"standard, constant column", &data.Dataset{Points: matrix(2, 2, 0.1, 1, 0.1, 3)}, data.ScaleStandard, matrix(2, 2, 0, -1, 0, 1), data.Scaler{Kind: data.ScaleStandard, Mean: []float64{float64(float32(0.1)), 2}, SD: []float64{0, 1}}},
		{"auto", plain(), data.ScaleAuto, matrix(2, 2, 0, -1, 0.25, 0.5), data.Scaler{Kind: data.ScaleUnit, Divisor: 4}},
		{"auto, bytes", pixels(), data.ScaleAuto, matrix(2, 2, 0, 0.2, 0.4, 0.8), data.Scaler{Kind: data.ScaleUnit, Divisor: 255}},
		{"auto, wide spreads", table(-5.5, "mass", "sex"), data.ScaleAuto, matrix(2, 3, 1, 0, -1, -1, 0, 1), data.Scaler{Kind: data.ScaleStandard, Mean: []float64{-2.75, 3, 0.25}, SD: []float64{2.75, 0, 0.25}}},
		{"auto, similar spreads", table(5, "mass", "sex"), data.ScaleAuto, matrix(2, 3, 0, 0.6, 0, 1, 0.6, 0.1), data.Scaler{Kind: data.ScaleUnit, Divisor: 5}},
		{"auto, one quantity", table(-6, "x1", "x20"), data.ScaleAuto, matrix(2, 3, 0, 0.5, 0, -1, 0.5, float32(0.5)/6), data.Scaler{Kind: data.ScaleUnit, Divisor: 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			again := slices.Clone(tc.ds.Points.X)
			s := need(tc.ds.Scale(t.Context(), tc.kind))(t)
			sameMatrix(t, tc.ds.Points, tc.want)
			if s.Kind != tc.fit.Kind || s.Divisor != tc.fit.Divisor || !slices.Equal(s.Mean, tc.fit.Mean) || !slices.Equal(s.SD, tc.fit.SD) {
				t.Errorf("the scaler is %+v, want %+v", *s, tc.fit)
			}
			// Saved and loaded, the scaler does the same again.
			text := need(json.Marshal(s))(t)
			var loaded data.Scaler
			must(t, json.Unmarshal(text, &loaded))
			m := matrix(tc.want.N, tc.want.D, again...)
			must(t, loaded.Apply(m))
			sameMatrix(t, m, tc.want)
		})
	}

	ds := pixels()
	for range 2 {
		need(ds.Scale(t.Context(), data.ScaleUnit))(t)
	}
	if ds.Bytes || ds.Points.X[3] != 1 {
		t.Errorf("scaled twice, Bytes is %v and the largest value %v, want false and 1", ds.Bytes, ds.Points.X[3])
	}
}

// TestScaleStandardMoments checks mean and standard deviation, far from zero
// too, and that the bits do not depend on GOMAXPROCS.
func TestScaleStandardMoments(t *testing.T) {
	const n, d = 3000, 5
	var first *data.Matrix
	withProcs(t, func(t *testing.T, procs int) {
		m := normal(7, n, d)
		for i := range n {
			row := m.Row(i)
			row[1] = 1e6 + row[1]
			row[2] *= 1e-30
			row[3] *= 1e30
			row[4] = 3
		}
		ds := &data.Dataset{Points: m}
		need(ds.Scale(t.Context(), data.ScaleStandard))(t)
		for j := range d {
			var sum, square float64
			for i := range n {
				v := float64(m.Row(i)[j])
				sum += v
				square += v * v
			}
			want := 1.0
			if j == 4 {
				want = 0
			}
			if mean, sd := sum/n, math.Sqrt(square/n); math.Abs(mean) > 1e-7 || math.Abs(sd-want) > 1e-6 {
				t.Errorf("column %d has mean %g and standard deviation %g, want 0 and %g", j, mean, sd, want)
			}
		}
		if first == nil {
			first = m
		}
		sameMatrix(t, m, first)
	})
}

func TestScaleErrors(t *testing.T) {
	ds := &data.Dataset{Points: matrix(1, 2, 1, 2)}
	wantError(t, errorOf(ds.Scale(t.Context(), "minmax")), data.ErrOption, `scaling: got "minmax", want none, unit or standard`)
	wantError(t, errorOf((&data.Dataset{Points: matrix(1, 1, float32(math.NaN()))}).Scale(t.Context(), data.ScaleUnit)), data.ErrNotFinite, "row 1: column 1")
	for _, tc := range []struct {
		s    data.Scaler
		kind error
		want string
	}{
		{data.Scaler{Kind: data.ScaleUnit}, data.ErrOption, "divisor of the scaler: got 0"},
		{data.Scaler{Kind: data.ScaleStandard, Mean: []float64{1}, SD: []float64{1}}, data.ErrShape, "values per point: got 2, want 1"},
		{data.Scaler{}, data.ErrOption, `scaling: got ""`},
		{data.Scaler{Kind: data.ScaleAuto}, data.ErrOption, `scaling: got "auto", want none, unit or standard`},
	} {
		wantError(t, tc.s.Apply(ds.Points), tc.kind, tc.want)
	}
}
