package data_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
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
		{"auto, similar spreads", table(2.5, "mass", "sex"), data.ScaleAuto, matrix(2, 3, 0, 1, 0, float32(2.5)/3, 1, float32(0.5)/3), data.Scaler{Kind: data.ScaleUnit, Divisor: 3}},
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

// Columns of different quantities are standardised, whatever their names are; components,
// spectra, counts and embeddings are not.
func TestScaleByTheData(t *testing.T) {
	const n = 900
	r := rand.New(rand.NewPCG(1, 2))
	classes := func(d int) *data.Matrix { // in which columns are correlated
		m := normal(3, n, d)
		for i := range n {
			for j := range d {
				m.X[i*d+j] += float32((i % 3) * (1 + j%3))
			}
		}
		return m
	}
	scaled := func(m *data.Matrix, by func(j int) float64) *data.Matrix {
		for i, v := range m.X {
			m.X[i] = float32(float64(v) * by(i%m.D))
		}
		return m
	}
	decay := func(j int) float64 { return math.Exp(-float64(j) / 5) }
	spectra := data.NewMatrix(n, 100)
	for i := range n {
		low, high := 1+r.Float64(), 50*(1+r.Float64())
		for j := range 100 {
			peak := func(at float64) float64 { return math.Exp(-(float64(j) - at) * (float64(j) - at) / 20) }
			spectra.X[i*100+j] = float32(low*peak(20) + high*peak(60) + 0.1*r.NormFloat64())
		}
	}
	counts := scaled(normal(5, n, 40), func(j int) float64 { return math.Exp(float64(j%9) - 3) })
	for i, v := range counts.X {
		counts.X[i] = float32(math.Floor(math.Max(0, float64(v))))
	}
	named := func(m *data.Matrix, name string) *data.Matrix { // own names without one
		for j := range m.D {
			m.Columns = append(m.Columns, name+string(rune('A'+j)))
			if name != "" {
				m.Columns[j] = fmt.Sprint(name, j)
			}
		}
		return m
	}
	tails, outlier := normal(6, n, 5), normal(7, n, 5)
	for i, v := range tails.X { // Cauchy's distribution
		tails.X[i] = v / float32(r.NormFloat64())
	}
	outlier.X[5*n-1] = 1e6
	heavy := scaled(normal(11, n, 2), func(j int) float64 { return 1 + 3*float64(j) }) // a weight with a tail
	for i := 1; i < 2*n; i += 20 {
		heavy.X[i] *= 3
	}
	rare := normal(8, n, 5) // mostly 0
	for i := range n {
		rare.X[5*i] = map[bool]float32{true: 1e4}[i%20 == 0]
	}
	flags := normal(9, n, 9) // and a weight in pounds
	for i, v := range flags.X {
		flags.X[i] = map[bool]float32{true: 1}[v > 1]
		if i%9 == 4 {
			flags.X[i] = float32(math.Round(130 + 30*float64(v)))
		}
	}
	houses := normal(10, n, 6) // beds, baths, area, price: neighbours are correlated
	for i := range houses.X {
		if i%6 > 0 {
			houses.X[i] += 2 * houses.X[i-1]
		}
	}
	chain := func(growth float64) *data.Matrix { // ordered, as a spectrum
		m := normal(12, n, 12)
		for i := range m.X {
			if i%12 > 0 {
				m.X[i] += 0.9 * m.X[i-1]
			}
		}
		return scaled(m, func(j int) float64 { return math.Pow(growth, float64(j)) })
	}
	for name, tc := range map[string]struct {
		m    *data.Matrix
		want data.Scaling
	}{
		"ordered":                      {chain(2), data.ScaleUnit},
		"ordered names":                {named(chain(1.3), ""), data.ScaleUnit},
		"ordered names of 2000 sizes":  {named(chain(2), ""), data.ScaleStandard},
		"flags":                        {flags, data.ScaleStandard},
		"houses":                       {scaled(houses, func(j int) float64 { return []float64{0.9, 0.7, 300, 3e4, 0.2, 0.1}[j] }), data.ScaleStandard},
		"names, and spreads of 1 to 6": {named(scaled(classes(6), func(j int) float64 { return float64(1 + 9*j/5) }), ""), data.ScaleStandard},
		"names, and spreads of 1 to 4": {named(scaled(classes(6), func(j int) float64 { return 1 + 0.2*float64(j) }), ""), data.ScaleUnit},
		"heavy tails":                  {tails, data.ScaleUnit},
		"one far point":                {outlier, data.ScaleUnit},
		"one far point, with names":    {named(outlier.Clone(), "V"), data.ScaleUnit},
		"different middles and a tail": {named(heavy, ""), data.ScaleStandard},
		"a column that is mostly 0":    {rare, data.ScaleStandard},
		"one of 15 columns":            {scaled(classes(15), func(j int) float64 { return map[int]float64{0: 1e4}[j] + 1 }), data.ScaleStandard},
		"one, with names":              {named(scaled(classes(15), func(j int) float64 { return map[int]float64{7: 300}[j] + 1 }), "V"), data.ScaleStandard},
		"many scales":                  {named(scaled(classes(12), func(j int) float64 { return math.Pow(10, float64(j)/2) }), "f"), data.ScaleStandard},
		"falling scales":               {scaled(classes(12), decay), data.ScaleUnit},
		"very falling scales":          {scaled(classes(12), func(j int) float64 { return math.Pow(10, -float64(j)/2) }), data.ScaleStandard},
		"two columns":                  {scaled(classes(2), func(j int) float64 { return math.Pow(100, float64(j)) }), data.ScaleUnit},
		"alike":                        {classes(15), data.ScaleUnit},
		"components":                   {scaled(normal(4, n, 50), decay), data.ScaleUnit},
		"components with others":       {scaled(normal(4, n, 30), func(j int) float64 { return map[int]float64{0: 1e4, 29: 500}[j] + decay(j) }), data.ScaleStandard},
		"spectra":                      {spectra, data.ScaleUnit},
		"counts":                       {counts, data.ScaleUnit},
		"embeddings":                   {scaled(classes(384), func(j int) float64 { return map[int]float64{5: 50}[j] + 1 }), data.ScaleUnit},
	} {
		ds := &data.Dataset{Points: tc.m}
		s := need(data.FitScaler(t.Context(), ds, data.ScaleAuto))(t)
		if s.Kind != tc.want {
			t.Errorf("%s: %s, want %s", name, s.Kind, tc.want)
		}
	}
	s := need(data.FitScaler(t.Context(), &data.Dataset{Points: scaled(normal(4, n, 50), func(j int) float64 { return math.Exp(-2 * float64(j)) })}, data.ScaleAuto))(t)
	if column, share := s.Dominant(); s.Kind != data.ScaleUnit || column != 0 || share < 0.95 {
		t.Errorf("%s: column %d has %.2f of the variance", s.Kind, column, share)
	}
}

// Two values of a category are as far apart as two standard deviations of a number.
func TestScaleCategories(t *testing.T) {
	ds := &data.Dataset{
		Points:  matrix(4, 4, 10, 1, 0, 0, 30, 0, 1, 0, 10, 0, 0, 1, 30, 1, 0, 0),
		Codings: []data.Coding{{Column: "kind", Kind: data.CodingCategory, Values: []string{"a", "b", "c"}, First: 1}},
	}
	s := need(ds.Scale(t.Context(), data.ScaleAuto))(t)
	if s.Kind != data.ScaleStandard || s.SpreadRatio() != 1 {
		t.Errorf("%s, spreads differ %v-fold", s.Kind, s.SpreadRatio())
	}
	for _, pair := range [][2]int{{0, 2}, {1, 3}} {
		sum := 0.
		for j, v := range ds.Points.Row(pair[0]) {
			sum += math.Pow(float64(v-ds.Points.Row(pair[1])[j]), 2)
		}
		if math.Abs(math.Sqrt(sum)-2) > 1e-6 {
			t.Errorf("points %v have a distance of %v, want 2", pair, math.Sqrt(sum))
		}
	}
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

// LargestMagnitude takes values of either sign from all pieces, and returns NaN if there is one.
func TestLargestMagnitude(t *testing.T) {
	long := make([]float32, 1<<17+1)
	long[1<<17] = -3
	nan := float32(math.NaN())
	for _, test := range []struct {
		x    []float32
		want float32
	}{{nil, 0}, {[]float32{0, float32(math.Copysign(0, -1))}, 0}, {[]float32{1, -2, 1.5}, 2}, {long, 3},
		{[]float32{1, float32(math.Inf(-1))}, float32(math.Inf(1))}, {[]float32{1, nan, 2}, nan}} {
		if got := data.LargestMagnitude(test.x); got != test.want && !(got != got && test.want != test.want) {
			t.Errorf("of %d values: got %v, want %v", len(test.x), got, test.want)
		}
	}
}
