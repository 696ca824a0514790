package file_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"cne/data"
)

// Rows are drawn uniformly without replacement, in ascending order, and depend only on the
// seed.
func TestDrawRows(t *testing.T) {
	const n, count, seeds = 20, 5, 4000
	times := make([]int, n)
	for seed := range uint64(seeds) {
		rows, err := data.DrawRows(n, count, seed)
		if err != nil || len(rows) != count || data.CheckRows(rows, n) != nil {
			t.Fatal(rows, err)
		}
		for _, i := range rows {
			times[i]++
		}
	}
	want := float64(seeds) * count / n
	for i, got := range times {
		if math.Abs(float64(got)-want) > 5*math.Sqrt(want*(1-float64(count)/n)) {
			t.Errorf("row %d was drawn %d times, and should be %g times", i, got, want)
		}
	}
	if rows, err := data.DrawRows(n, n, 1); err != nil || len(rows) != n {
		t.Error(rows, err)
	}
	for _, count := range []int{0, -1, n + 1} {
		if _, err := data.DrawRows(n, count, 1); !errors.Is(err, data.ErrOption) {
			t.Errorf("%d of %d: %v", count, n, err)
		}
	}
	if got, err := data.DrawRows(1000, 4, 7); err != nil || !slices.Equal(got, rowsOfSeed7) {
		t.Errorf("the rows of seed 7 are %v now", got)
	}
}

// rowsOfSeed7 are 4 of 1000 rows: what a seed means does not change.
var rowsOfSeed7 = []int{356, 398, 412, 720}
