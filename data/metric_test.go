package data_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// directions returns points of all sorts of lengths and means.
func directions(n, d int) *data.Matrix {
	m := data.NewMatrix(n, d)
	stream := rng.New(3, rng.Sample)
	for i := range n {
		scale, mean := math.Exp(10*stream.Float64()-5), 3*stream.Float64()
		for j, row := 0, m.Row(i); j < d; j++ {
			row[j] = float32(scale * (mean + stream.Float64()))
		}
	}
	return m
}

// similarity returns the cosine of two points, or with their means subtracted first
// their correlation.
func similarity(a, b []float32, centred bool) float64 {
	mean := func(x []float32) (m float64) {
		if !centred {
			return 0
		}
		for _, v := range x {
			m += float64(v) / float64(len(x))
		}
		return m
	}
	ma, mb := mean(a), mean(b)
	var ab, aa, bb float64
	for j := range a {
		x, y := float64(a[j])-ma, float64(b[j])-mb
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// The squared distance of normalised points is 2 − 2·similarity, and neither the points'
// scale nor, for the correlation, their mean changes it.
func TestNormalizeGivesSimilarities(t *testing.T) {
	for _, metric := range []data.Metric{data.Cosine, data.Correlation} {
		raw := directions(40, 7)
		ds := &data.Dataset{Points: raw.Clone()}
		must(t, ds.Normalize(t.Context(), metric, nil))
		for i := range raw.N {
			for j := range i {
				d2 := 0.
				for k, v := range ds.Points.Row(i) {
					d2 += math.Pow(float64(v)-float64(ds.Points.Row(j)[k]), 2)
				}
				if want := 2 - 2*similarity(raw.Row(i), raw.Row(j), metric == data.Correlation); math.Abs(d2-want) > 1e-5 {
					t.Fatalf("%s of points %d and %d: squared distance %v, want %v", metric, i, j, d2, want)
				}
			}
		}
		moved := raw.Clone()
		for i := range moved.N {
			for j, row := 0, moved.Row(i); j < moved.D; j++ {
				row[j] *= 4 // exactly
				if metric == data.Correlation {
					row[j] += row[j] // and a mean that differs
				}
			}
		}
		again := &data.Dataset{Points: moved}
		must(t, again.Normalize(t.Context(), metric, nil))
		for i, v := range again.Points.X {
			if math.Abs(float64(v-ds.Points.X[i])) > 1e-6 {
				t.Fatalf("%s: value %d is %v of scaled points, %v before", metric, i, v, ds.Points.X[i])
			}
		}
	}
	for _, metric := range []data.Metric{"", data.Euclidean} {
		m := directions(5, 3)
		ds := &data.Dataset{Points: m.Clone()}
		if err := ds.Normalize(t.Context(), metric, nil); err != nil || !slices.Equal(ds.Points.X, m.X) {
			t.Errorf("%q changes the points (%v)", metric, err)
		}
	}
	if err := (&data.Dataset{Points: directions(5, 3)}).Normalize(t.Context(), "taxi", nil); !errors.Is(err, data.ErrOption) {
		t.Errorf("an unknown metric gives %v", err)
	}
}

// Values that are kept relative to an offset have the direction that they had with it.
func TestNormalizeWithOffset(t *testing.T) {
	for _, scaling := range []data.Scaling{data.ScaleNone, data.ScaleUnit, data.ScaleStandard} {
		for _, metric := range []data.Metric{data.Cosine, data.Correlation} {
			whole := directions(30, 4)
			parts := whole.Clone()
			parts.Offset = []float64{3, -2, 0.5, 8}
			for i := range parts.N {
				for j, row := 0, parts.Row(i); j < parts.D; j++ {
					row[j] -= float32(parts.Offset[j])
				}
			}
			normalized := func(m *data.Matrix) []float32 {
				ds := &data.Dataset{Points: m}
				scaler, err := ds.Scale(t.Context(), scaling)
				if err == nil {
					err = ds.Normalize(t.Context(), metric, scaler)
				}
				must(t, err)
				return ds.Points.X
			}
			want, got := normalized(whole), normalized(parts)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-4 {
					t.Fatalf("%s after %s: value %d is %v relative to an offset, %v without", metric, scaling, i, got[i], want[i])
				}
			}
		}
	}
}

// The error for points without direction lists all rows; its text names the first few.
func TestNoDirection(t *testing.T) {
	for _, tt := range []struct {
		metric data.Metric
		rows   []int // that are constant
		value  float32
		want   string // "" if they are well
	}{
		{data.Cosine, []int{4}, 0, "row 5 of 20 points: got values that are all 0, want at least one other; remove these points, or use the euclidean metric"},
		{data.Cosine, []int{4, 7}, 0, "row 5 and row 8 of 20 points: "},
		{data.Cosine, []int{0, 4, 7, 9, 19}, 0, "row 1, row 5, row 8 and 2 more of 20 points: "},
		{data.Cosine, []int{4}, 7, ""},
		{data.Correlation, []int{4, 5}, 7, "row 5 and row 6 of 20 points: got values that are all equal, want some that differ; remove these points, or use the euclidean metric"},
		{data.Correlation, []int{4}, 0.1, "row 5 of 20 points: "},
		{data.Euclidean, []int{4}, 0, ""},
	} {
		m := directions(20, 6)
		for _, i := range tt.rows {
			for j, row := 0, m.Row(i); j < m.D; j++ {
				row[j] = tt.value
			}
		}
		skipped, lenient := make([]bool, m.N), m.Clone()
		must(t, tt.metric.Apply(lenient, nil, skipped))
		applied := tt.metric.Apply(m.Clone(), nil, nil)
		fitted := (&data.Dataset{Points: m}).Normalize(t.Context(), tt.metric, nil)
		for _, err := range []error{applied, fitted} {
			var e *data.DirectionError
			if tt.want == "" {
				if err != nil {
					t.Errorf("%s of rows of %v: %v", tt.metric, tt.value, err)
				}
				continue
			}
			if !errors.As(err, &e) || !errors.Is(err, data.ErrDirection) || !slices.Equal(e.Rows, tt.rows) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s of rows %v of %v: %v, want %q", tt.metric, tt.rows, tt.value, err, tt.want)
			}
		}
		for i, skip := range skipped {
			if skip != (tt.want != "" && slices.Contains(tt.rows, i)) {
				t.Errorf("%s: row %d is marked: %v", tt.metric, i, skip)
			}
			if skip && slices.ContainsFunc(lenient.Row(i), func(v float32) bool { return v != 0 }) {
				t.Errorf("%s: row %d is not made zeros", tt.metric, i)
			}
		}
	}
	// Rows are counted in the input, also where points were left out before.
	ds := &data.Dataset{Name: "x", Points: directions(50, 3)}
	clear(ds.Points.Row(17))
	train, held, _, err := ds.Split(0.5, 1)
	must(t, err)
	var e *data.DirectionError
	if err := errors.Join(train.Normalize(t.Context(), data.Cosine, nil), held.Normalize(t.Context(), data.Cosine, nil)); !errors.As(err, &e) || !slices.Equal(e.Rows, []int{17}) {
		t.Errorf("the zeros in row 17 of a split give %v", err)
	}
}
