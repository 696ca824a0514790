package data_test

import (
	"slices"
	"testing"

	"cne/data"
)

func TestSelect(t *testing.T) {
	m := matrix(2, 3, 1, 2, 3, 4, 5, 6)
	if same, left, err := m.Select([]string{"a"}); same != m || left != nil || err != nil {
		t.Error("points without names are not taken as they are", left, err)
	}
	m.Columns, m.Offset = []string{"a", "b", "c"}, []float64{10, 20, 30}
	for _, as := range [][]string{nil, {"a", "b", "c"}} {
		if same, left, err := m.Select(as); same != m || left != nil || err != nil {
			t.Error("the points are not taken as they are", as, left, err)
		}
	}
	got, left, err := m.Select([]string{"c", "a"})
	if err != nil || !slices.Equal(left, []string{"b"}) {
		t.Fatal(left, err)
	}
	sameMatrix(t, got, matrix(2, 2, 3, 1, 6, 4))
	if got.At(1, 0) != 36 || got.At(1, 1) != 14 || !slices.Equal(got.Columns, []string{"c", "a"}) {
		t.Errorf("selected %+v", got)
	}
	_, _, err = m.Select([]string{"c", "d"})
	wantError(t, err, data.ErrShape, `want the 2 of training; missing: "d"`)
	m.Columns = m.Columns[:2]
	_, _, err = m.Select([]string{"a"})
	wantError(t, err, data.ErrShape, "2 names of columns")
}
