package neighbors

import (
	"slices"
	"testing"

	"cne/data"
)

// days returns points with one of d columns set, and the row of each.
func days(copies []int) (*data.Matrix, []int) {
	var rows []int
	for day, n := range copies {
		rows = append(rows, slices.Repeat([]int{day}, n)...)
	}
	m := data.NewMatrix(len(rows), len(copies))
	for i, day := range rows {
		m.Row(i)[day] = 1
	}
	return m, rows
}

// Points whose neighbours are all copies are linked to the nearest other rows, too.
func TestSpreadCopies(t *testing.T) {
	for name, c := range map[string]struct {
		copies         []int
		k, own, points int
	}{
		"weekdays":            {slices.Repeat([]int{40}, 7), 15, 12, 280},
		"two rows":            {[]int{50, 50}, 15, 12, 100},
		"few copies":          {slices.Repeat([]int{11}, 30), 15, 10, 330},
		"one row with copies": {append([]int{100}, slices.Repeat([]int{1}, 90)...), 6, 5, 100},
		"no copies":           {slices.Repeat([]int{1}, 50), 5, 0, 0},
		"one row":             {[]int{30}, 5, 5, 0},
		"too few others":      {[]int{30, 1}, 15, 15, 1},
	} {
		m, rows := days(c.copies)
		nb := need(KNN(t.Context(), m, c.k, Options{}))(t)
		got, distinct, points, err := SpreadCopies(t.Context(), m, nb, Options{})
		if err != nil || points < c.points || (points > 0) != (distinct == len(c.copies)) || (points == 0) != (got == nb) {
			t.Errorf("%s: %d points and %d rows, %v; want %d points", name, points, distinct, err, c.points)
			continue
		}
		reached := map[[2]int]bool{}
		for i := range got.N {
			own := 0
			for l, j := range got.Of(i) {
				if d2 := float64(2 * toInt(rows[i] != rows[j])); got.Dist2[i*c.k+l] != d2 {
					t.Fatalf("%s: squared distance of points %d and %d: %v", name, i, j, got.Dist2[i*c.k+l])
				}
				own += toInt(rows[i] == rows[j])
				reached[[2]int{rows[i], rows[j]}] = true
			}
			if sorted := slices.Sorted(slices.Values(got.Of(i))); len(slices.Compact(sorted)) != c.k || slices.Contains(sorted, int32(i)) {
				t.Fatalf("%s: point %d has the neighbours %v", name, i, got.Of(i))
			}
			if c.points == m.N && own != c.own {
				t.Fatalf("%s: %d neighbours of point %d are its copies, want %d", name, own, i, c.own)
			}
		}
		if name == "weekdays" && len(reached) != 49 {
			t.Errorf("%s: %d pairs of rows are linked, want 49", name, len(reached))
		}
	}
}

func TestSteps(t *testing.T) {
	for n := 2; n < 100; n++ {
		seen := map[int]bool{}
		for s := range n - 1 {
			if v := step(s, n); v < 1 || v >= n || seen[v] {
				t.Fatalf("step %d of %d is %d", s, n-1, v)
			} else {
				seen[v] = true
			}
		}
	}
}
