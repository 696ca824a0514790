package data_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"cne/data"
)

// A Matrix is one of gonum's.
var _ mat.Matrix = (*data.Matrix)(nil)

func TestMatrixIsGonums(t *testing.T) {
	m := &data.Matrix{N: 2, D: 3, X: []float32{1, 2, 3, 4, 5, 6}}
	var product mat.Dense
	product.Mul(m, m.T())
	if want := mat.NewDense(2, 2, []float64{14, 32, 32, 77}); !mat.Equal(&product, want) {
		t.Errorf("m·mᵀ is\n%v", mat.Formatted(&product))
	}
	for _, at := range [][2]int{{2, 0}, {-1, 0}, {0, 3}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("there is a value at %v", at)
				}
			}()
			m.At(at[0], at[1])
		}()
	}
}

func TestFromRowsAndMat(t *testing.T) {
	want := &data.Matrix{N: 2, D: 3, X: []float32{1, 2, 3, 4, 5, 0.1}}
	rows := [][]float64{{1, 2, 3}, {4, 5, 0.1}}
	dense := mat.NewDense(2, 3, slices.Concat(rows...))
	padded := mat.NewDense(4, 5, nil)
	padded.Slice(1, 3, 1, 4).(*mat.Dense).Copy(dense)
	for name, make := range map[string]func() (*data.Matrix, error){
		"rows":       func() (*data.Matrix, error) { return data.FromRows(rows) },
		"dense":      func() (*data.Matrix, error) { return data.FromMat(dense) },
		"part":       func() (*data.Matrix, error) { return data.FromMat(padded.Slice(1, 3, 1, 4)) },
		"transposed": func() (*data.Matrix, error) { return data.FromMat(mat.DenseCopyOf(dense.T()).T()) },
		"own":        func() (*data.Matrix, error) { return data.FromMat(want) },
	} {
		got, err := make()
		if err != nil || got == want || got.N != want.N || got.D != want.D || !slices.Equal(got.X, want.X) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestFromMemoryRefuses(t *testing.T) {
	rows := func(r ...[]float64) error {
		_, err := data.FromRows(r)
		return err
	}
	of := func(m mat.Matrix) error {
		_, err := data.FromMat(m)
		return err
	}
	for name, tc := range map[string]struct {
		err, is error
		want    string
	}{
		"no rows":      {rows(), data.ErrEmpty, "rows: got none"},
		"no values":    {rows(nil, nil), data.ErrEmpty, "without values"},
		"ragged":       {rows([]float64{1, 2}, []float64{1}), data.ErrShape, "values of row 2 (counted from 1): got 1, want 2"},
		"NaN":          {rows([]float64{1, 2}, []float64{1, math.NaN()}), data.ErrNotFinite, "row 2: column 2: got NaN"},
		"too large":    {rows([]float64{1e300}), data.ErrNotFinite, "got +Inf, want a finite number of at most 3.4e38 (float32)"},
		"no matrix":    {of(nil), data.ErrEmpty, "matrix: got nil"},
		"nil matrix":   {of((*mat.Dense)(nil)), data.ErrEmpty, "matrix: got nil"},
		"empty matrix": {of(&mat.Dense{}), data.ErrEmpty, "matrix: got 0×0"},
		"infinite":     {of(mat.NewDense(1, 1, []float64{math.Inf(-1)})), data.ErrNotFinite, "-Inf"},
		"broken":       {of(&data.Matrix{N: 2, D: 2, X: make([]float32, 3)}), data.ErrShape, "data: matrix of 2×2: got 3 values"},
	} {
		if !errors.Is(tc.err, tc.is) || !strings.HasPrefix(tc.err.Error(), "data: ") || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, tc.err, tc.want)
		}
	}
}

func TestLabelsOfSeveralSets(t *testing.T) {
	ages := data.NewLabels([]string{"31", "", "7", "NaN"})
	points, known := ages.Known()
	if !slices.Equal(points, []int{0, 2}) || known.Value == nil || known.Value[0] != 31 {
		t.Errorf("points %v have the labels %+v", points, known)
	}
	if points, known := (*data.Labels)(nil).Known(); points != nil || known != nil {
		t.Errorf("no labels: %v, %v", points, known)
	}
	all := data.JoinLabels(ages, nil, data.NewLabels([]string{"cat", "7"}))
	if !slices.Equal(all.Class, []int32{1, 0, 2, 3, 4, 2}) || len(all.Names) != 5 {
		t.Errorf("%+v", all)
	}
	for name, tc := range map[string]struct {
		l  *data.Labels
		ok bool
	}{
		"none":       {nil, true},
		"fitting":    {data.NewLabels([]string{"a", "b"}), true},
		"too few":    {data.NewLabels([]string{"a"}), false},
		"no name":    {&data.Labels{Class: []int32{0, 1}, Names: []string{"a"}}, false},
		"negative":   {&data.Labels{Class: []int32{0, -1}, Names: []string{"a"}}, false},
		"too few of": {&data.Labels{Class: []int32{0, 0}, Names: []string{"1"}, Value: []float64{1}}, false},
	} {
		if err := tc.l.Check(2); (err == nil) != tc.ok || err != nil && !errors.Is(err, data.ErrLabels) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
