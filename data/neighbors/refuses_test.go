package neighbors

import (
	"errors"
	"math"
	"strings"
	"testing"

	"cne/data"
)

// Points, queries, numbers of neighbours and rows are checked before anything is searched.
func TestRefuses(t *testing.T) {
	five, wide, nan := data.NewMatrix(5, 3), data.NewMatrix(3000, 12), math.NaN()
	with := func(m *data.Matrix, at int, v float64) *data.Matrix {
		m = m.Clone()
		m.X[at] = float32(v)
		return m
	}
	knn := func(m *data.Matrix, k int) error { return errorOf(KNN(t.Context(), m, k, Options{})) }
	nearly := func(m *data.Matrix, k int) error {
		return errorOf(KNN(t.Context(), m, k, Options{Search: Approximate}))
	}
	search := func(base, queries *data.Matrix, k int) error {
		return errorOf(Search(t.Context(), base, queries, k, Options{}))
	}
	four := normal(4, 2, 1)
	sparse := func(metric data.Metric, v float64) *data.Matrix { // two points, the first of zeros
		return &data.Matrix{N: 2, D: 2, Metric: metric, CSR: &data.CSR{Start: []int{0, 0, 1}, Column: []int32{1}, Value: []float32{float32(v)}}}
	}
	ranks := func(m *data.Matrix, k int, index ...int32) error {
		return errorOf(Ranks(t.Context(), m, index, k, Options{}))
	}
	rows := func(k int, rows []int, index ...int32) error {
		return errorOf(RanksOf(t.Context(), five, rows, index, k))
	}
	for name, tc := range map[string]struct {
		err  error
		want string
		is   error
	}{
		"no matrix":                  {knn(nil, 1), "matrix: got nil", ErrInput},
		"no points":                  {knn(&data.Matrix{D: 3}, 1), "matrix: got 0 points of 3 values, want 1 or more of each", ErrInput},
		"no values":                  {knn(&data.Matrix{N: 3}, 1), "matrix: got 3 points of 0 values, want 1 or more of each", ErrInput},
		"negative":                   {knn(&data.Matrix{N: -1, D: -3, X: make([]float32, 3)}, 1), "matrix: got -1 points of -3 values, want 1 or more of each", ErrInput},
		"too many points":            {knn(&data.Matrix{N: math.MaxInt, D: 2}, 1), "points: got 9223372036854775807, want at most 2147483647", ErrInput},
		"short":                      {knn(&data.Matrix{N: 3, D: 2, X: make([]float32, 5)}, 1), "matrix: got 5 values, want 3 points of 2", ErrInput},
		"sizes that overflow":        {knn(&data.Matrix{N: 1 << 30, D: math.MaxInt}, 1), "matrix: got 0 values, want 1073741824 points of 9223372036854775807", ErrInput},
		"sparse: a sphere":           {knn(sparse(data.Haversine, 3), 1), "matrix: points: got sparse ones", data.ErrSparse},
		"sparse: distances":          {knn(sparse(data.Precomputed, 3), 1), "matrix: points: got sparse ones", data.ErrSparse},
		"sparse: NaN":                {knn(sparse("", nan), 1), "value 1 of point 1 (both counted from 0): got NaN", ErrNotFinite},
		"sparse: a column beyond":    {knn(&data.Matrix{N: 2, D: 1, CSR: sparse("", 3).CSR}, 1), "matrix: data: sparse matrix of 2×1: the columns of row 1", data.ErrShape},
		"sparse: recall":             {errorOf(EstimateRecall(t.Context(), sparse("", 3), exactly(t, sparse("", 3), 1), 1, Options{})), "matrix: points: got sparse ones", data.ErrSparse},
		"a sphere":                   {knn(&data.Matrix{N: 3, D: 3, X: make([]float32, 9), Metric: data.Haversine}, 1), "matrix: got 3 values for a latitude and a longitude, want 2", ErrInput},
		"k = 0":                      {knn(five, 0), "k: got 0, want 1 or more", ErrInput},
		"k = n":                      {knn(five, 5), "k: got 5 for 5 points, want at most 4", ErrTooFewPoints},
		"NaN":                        {knn(with(five, 7, nan), 2), "value 1 of point 2 (both counted from 0): got NaN", ErrNotFinite},
		"infinite":                   {knn(with(five, 14, math.Inf(-1)), 2), "value 2 of point 4 (both counted from 0): got -Inf", ErrNotFinite},
		"approximate: NaN":           {nearly(with(wide, 5000, nan), 5), "value 8 of point 416 (both counted from 0): got NaN", ErrNotFinite},
		"approximate: k = n":         {nearly(five, 5), "k: got 5 for 5 points, want at most 4", ErrTooFewPoints},
		"approximate: k = 0":         {nearly(five, 0), "k: got 0, want 1 or more", ErrInput},
		"neighbours of other points": {errorOf(EstimateRecall(t.Context(), normal(10, 3, 1), exactly(t, normal(11, 3, 1), 2), 1, Options{})), "", ErrInput},

		"search: no base":           {search(nil, five, 1), "base: got nil", ErrInput},
		"search: no queries":        {search(five, nil, 1), "query matrix: got nil", ErrInput},
		"search: empty base":        {search(data.NewMatrix(0, 3), five, 1), "base: got 0 points of 3 values, want 1 or more of each", ErrInput},
		"search: empty queries":     {search(five, data.NewMatrix(0, 3), 1), "query matrix: got 0 points of 3 values, want 1 or more of each", ErrInput},
		"search: short queries":     {search(five, &data.Matrix{N: 3, D: 3, X: make([]float32, 5)}, 1), "query matrix: got 5 values, want 3 points of 3", ErrInput},
		"search: widths":            {search(five, data.NewMatrix(5, 2), 1), "query points: got 2 values each, want 3", ErrInput},
		"search: k = 0":             {search(five, five, 0), "k: got 0, want 1 or more", ErrInput},
		"search: k > n":             {search(five, five, 6), "k: got 6, want at most 5, the number of base points", ErrTooFewPoints},
		"search: NaN in the base":   {search(with(five, 7, nan), five, 2), "value 1 of base point 2 (both counted from 0): got NaN", ErrNotFinite},
		"search: an infinite query": {search(five, with(five, 14, math.Inf(-1)), 2), "value 2 of query point 4 (both counted from 0): got -Inf", ErrNotFinite},

		"ranks: no points":                 {ranks(nil, 1), "matrix: got nil", ErrInput},
		"ranks: no k":                      {ranks(four, 0), "k: got 0, want 1 or more", ErrInput},
		"ranks: too few indices":           {ranks(four, 1, 1, 2, 3), "indices: got 3, want 1 for each of 4 points", ErrInput},
		"ranks: too many indices":          {ranks(four, 1, 1, 0, 0, 0, 1), "indices: got 5, want 1 for each of 4 points", ErrInput},
		"ranks: a point that is not there": {ranks(four, 1, 1, 2, 3, 4), "point to rank for point 3: got 4, want another from 0 to 3", ErrInput},
		"ranks: negative":                  {ranks(four, 1, 1, -1, 3, 0), "point to rank for point 1: got -1, want another from 0 to 3", ErrInput},
		"ranks: itself":                    {ranks(four, 1, 1, 2, 2, 0), "point to rank for point 2: got 2, want another from 0 to 3", ErrInput},
		"ranks: NaN":                       {ranks(with(four, 3, nan), 1, 1, 2, 3, 0), "value 1 of point 1 (both counted from 0): got NaN", ErrNotFinite},

		"rows: none":            {rows(1, nil), "", ErrInput},
		"rows: no neighbours":   {rows(0, []int{1}), "", ErrInput},
		"rows: too few indices": {rows(1, []int{1, 2}, 3), "", ErrInput},
		"rows: a negative row":  {rows(1, []int{-1}, 3), "", ErrInput},
		"rows: a row beyond":    {rows(1, []int{5}, 3), "", ErrInput},
		"rows: itself":          {rows(1, []int{4}, 4), "", ErrInput},
		"rows: a point beyond":  {rows(1, []int{4}, 5), "", ErrInput},
	} {
		if tc.err == nil || !strings.HasPrefix(tc.err.Error(), "neighbors: ") || !strings.Contains(tc.err.Error(), tc.want) || !errors.Is(tc.err, tc.is) {
			t.Errorf("%s: %v, want %q, which is %v", name, tc.err, tc.want, tc.is)
		}
	}
}
