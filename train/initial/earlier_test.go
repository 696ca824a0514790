package initial

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/neighbors"
)

// path returns the graph of n points in a row, each with an edge to the next, except where
// a new row begins.
func path(n int, begin ...int) *neighbors.Graph {
	var pairs [][2]int
	for i := 1; i < n; i++ {
		if !slices.Contains(begin, i) {
			pairs = append(pairs, [2]int{i - 1, i})
		}
	}
	return edges(n, pairs)
}

func TestFromEarlier(t *testing.T) {
	g := path(9, 7)
	earlier := &data.Matrix{N: 3, D: 2, X: []float32{0, 0, 10, 4, 20, 8}}
	start, err := FromEarlier(g, earlier, []int{2, -1, 0, -1, -1, -1, 1, -1, -1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	near := func(i int, x, y float64) {
		t.Helper()
		row := start.Row(i)
		if math.Hypot(float64(row[0])-x, float64(row[1])-y) > 0.02 {
			t.Errorf("point %d is at %v, want %v, %v", i, row, x, y)
		}
	}
	for i, row := range map[int]int{0: 2, 2: 0, 6: 1} {
		if !slices.Equal(start.Row(i), earlier.Row(row)) {
			t.Errorf("point %d has moved to %v", i, start.Row(i))
		}
	}
	near(1, 10, 4) // between 0 and 2
	near(3, 0, 0)  // beside 2
	near(5, 10, 4) // beside 6
	near(4, 5, 2)  // between these
	if slices.Equal(start.Row(1), []float32{10, 4}) {
		t.Error("a new point lies on others")
	}
	for i := 7; i < 9; i++ { // no way leads there
		if row := start.Row(i); math.Hypot(float64(row[0])-10, float64(row[1])-4) > 60 || row[0] != row[0] {
			t.Errorf("point %d is at %v", i, row)
		}
	}
	again, err := FromEarlier(g, earlier, []int{2, -1, 0, -1, -1, -1, 1, -1, -1}, 1)
	if err != nil || !slices.Equal(again.X, start.X) {
		t.Errorf("the second time it is another (%v)", err)
	}
	if first, err := FromEarlier(g, earlier, nil, 1); err != nil || !slices.Equal(first.X[:6], earlier.X) {
		t.Errorf("the first points are at %v (%v)", first, err)
	}
	far := &data.Matrix{N: 1, D: 2, X: []float32{1, 2}, Offset: []float64{1, 0}}
	if got, err := FromEarlier(g, far, nil, 1); err != nil || !slices.Equal(got.X[:2], []float32{2, 2}) {
		t.Errorf("with an offset: %v, %v", got, err)
	}
	for name, tc := range map[string]struct {
		earlier *data.Matrix
		rows    []int
		text    string
	}{
		"too many":    {data.NewMatrix(10, 2), nil, "got 10 points, want at most 9"},
		"other rows":  {earlier, []int{0}, "rows: got 1, want 9"},
		"no such row": {earlier, slices.Repeat([]int{3}, 9), "got 3, want -1 to 2"},
		"none":        {earlier, slices.Repeat([]int{-1}, 9), "got no point of the earlier embedding"},
		"empty":       {&data.Matrix{D: 2}, nil, "matrix: got 0×2"},
		"sparse":      {&data.Matrix{N: 9, D: 2, CSR: &data.CSR{Start: make([]int, 10)}}, nil, "sparse"},
	} {
		if _, err := FromEarlier(g, tc.earlier, tc.rows, 1); !errors.Is(err, ErrInput) || !strings.Contains(fmt.Sprint(err), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
