package data_test

import (
	"fmt"
	"slices"
	"testing"

	"cne/data"
)

// imbalanced returns the points of ds that Labels.Imbalance keeps, and their rows.
func imbalanced(ds *data.Dataset, seed uint64) (kept *data.Dataset, rows []int, err error) {
	if rows, err = ds.Labels.Imbalance(seed); err == nil {
		kept, err = ds.Take(rows)
	}
	return kept, rows, err
}

func TestImbalance(t *testing.T) {
	digit := func(i int) string { return fmt.Sprint(i % 10) }
	for _, tc := range []struct {
		name  string
		n     int
		label func(int) string
		want  []int // of each class
	}{
		{"ten classes", 1000, digit, []int{100, 90, 80, 70, 60, 50, 40, 30, 20, 10}},
		{"rounded down", 990, digit, []int{99, 89, 79, 69, 59, 49, 39, 29, 19, 9}},
		{"at least one", 40, digit, []int{4, 3, 3, 2, 2, 2, 1, 1, 1, 1}},
		{"words", 30, func(i int) string { return []string{"cat", "ant", "bee"}[i%3] }, []int{10, 6, 3}},
		{"one class", 7, func(int) string { return "a" }, []int{7}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ds := numbered(tc.n, tc.label)
			kept, rows, err := imbalanced(ds, 1)
			must(t, err)
			if !slices.IsSorted(rows) || len(rows) != kept.Points.N || !kept.Bytes || kept.Name != ds.Name {
				t.Fatalf("rows %v of %+v", rows, kept)
			}
			got := make([]int, len(kept.Labels.Names))
			for i, row := range rows {
				if kept.Points.X[i] != float32(row) || kept.Origin(i) != row || i > 0 && rows[i-1] == row {
					t.Fatalf("point %d is row %v, named as row %d (origin %d)", i, kept.Points.X[i], row, kept.Origin(i))
				}
				if kept.Labels.Class[i] != ds.Labels.Class[row] {
					t.Fatalf("point %d has another class", i)
				}
				got[kept.Labels.Class[i]]++
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the classes keep %v points, want %v", got, tc.want)
			}

			_, again, _ := imbalanced(ds, 1)
			_, other, _ := imbalanced(ds, 2)
			if !slices.Equal(again, rows) || tc.n >= 990 && slices.Equal(other, rows) {
				t.Error("the seed does not decide")
			}
		})
	}
}

// What is held out of a part knows the rows of the whole, and a class that a
// split has left empty does not count.
func TestImbalanceOrigin(t *testing.T) {
	ds := numbered(200, func(i int) string { return fmt.Sprint(i % 4) })
	kept, _, err := imbalanced(ds, 1)
	must(t, err)
	train, held, _, err := kept.Split(0.2, 1)
	must(t, err)
	for _, part := range []*data.Dataset{train, held} {
		for i, v := range part.Points.X {
			if part.Origin(i) != int(v) {
				t.Fatalf("row %v is said to be row %d", v, part.Origin(i))
			}
		}
	}
	for i := range ds.Labels.Class {
		ds.Labels.Class[i] %= 2
	}
	if kept, _, err = imbalanced(ds, 1); err != nil || kept.Points.N != 150 {
		t.Errorf("%d points, %v", kept.Points.N, err)
	}
}

// Every point of a class is drawn about as often as any other.
func TestImbalanceIsFair(t *testing.T) {
	ds := numbered(40, func(i int) string { return string("ab"[i%2]) })
	drawn := make([]int, 40)
	const runs = 2000
	for seed := range uint64(runs) {
		_, rows, err := imbalanced(ds, seed)
		must(t, err)
		for _, row := range rows {
			drawn[row]++
		}
	}
	for row, n := range drawn {
		if row%2 == 0 && n != runs || row%2 == 1 && (n < runs*43/100 || n > runs*57/100) {
			t.Errorf("row %d was kept %d times of %d", row, n, runs)
		}
	}
}

func TestImbalanceRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		ds   *data.Dataset
		kind error
		want string
	}{
		"no labels":  {numbered(5, nil), data.ErrLabels, "labels: got none, want the class of each point"},
		"quantities": {numbered(5, func(i int) string { return fmt.Sprint(0.5 + float64(i)) }), data.ErrLabels, "labels: got quantities (5 distinct numbers)"},
	} {
		_, _, err := imbalanced(tc.ds, 1)
		t.Run(name, func(t *testing.T) { wantError(t, err, tc.kind, tc.want) })
	}
}
