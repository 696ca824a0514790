package data_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/data/file"
)

// numbered returns n labelled points with one value, their row.
func numbered(n int, label func(i int) string) *data.Dataset {
	ds := &data.Dataset{Name: "numbered", Points: data.NewMatrix(n, 1), Bytes: true}
	for i := range n {
		ds.Points.X[i] = float32(i)
	}
	if label != nil {
		labels := make([]string, n)
		for i := range labels {
			labels[i] = label(i)
		}
		ds.Labels = data.NewLabels(labels)
	}
	return ds
}

// Names of points are split with them; names of columns are kept.
func TestNames(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte("x,y,kind\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n"))
	ds := need(file.Read(t.Context(), []string{path}, file.Options{LabelColumn: "kind"}))(t)
	if !slices.Equal(ds.Points.Columns, []string{"x", "y"}) || ds.Names != nil {
		t.Fatalf("the columns are %q, the names %q", ds.Points.Columns, ds.Names)
	}
	ds.Names = []string{"one", "two", "three", "four"}
	train, held, rows, err := ds.Split(0.5, 1)
	must(t, err)
	for i, row := range rows {
		if held.Names[i] != ds.Names[row] {
			t.Errorf("row %d is called %s", row, held.Names[i])
		}
	}
	if len(train.Names) != 2 || !slices.Equal(held.Points.Columns, ds.Points.Columns) {
		t.Errorf("the names are %q, the columns %q", train.Names, held.Points.Columns)
	}
	ds.Names = ds.Names[:3]
	wantError(t, ds.Check(), data.ErrShape, "names: got 3, want 4, one for each point")
	ds.Names, ds.Points.Columns = nil, []string{"x"}
	wantError(t, ds.Check(), data.ErrShape, "matrix of 4×2: got 1 names of columns and 0 offsets")
}

// Points that lack a value are found, or get the means.
func TestMissing(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	set := func() *data.Dataset {
		ds := &data.Dataset{Points: matrix(4, 2, 1, nan, 2, 4, inf, 6, 6, 8), Labels: data.NewLabels([]string{"a", "b", "c", "d"}), Names: []string{"w", "x", "y", "z"}}
		ds.Points.Columns = []string{"one", "two"}
		return ds
	}
	wantError(t, set().Check(), data.ErrNotFinite, `row 1: column "two": got NaN, want a finite number (float32); 2 of 4 rows have missing or infinite values`)
	if missing := set().Points.Missing(4); !slices.Equal(missing, []int{0, 2}) {
		t.Errorf("values are missing in %v", missing)
	}
	if missing := set().Points.Missing(2); !slices.Equal(missing, []int{0}) {
		t.Errorf("of the first two rows, values are missing in %v", missing)
	}
	sparse := &data.Dataset{Points: &data.Matrix{N: 3, D: 2, CSR: &data.CSR{Start: []int{0, 1, 2, 2}, Column: []int32{1, 0}, Value: []float32{5, nan}}}}
	if missing := sparse.Points.Missing(3); !slices.Equal(missing, []int{1}) {
		t.Errorf("values of sparse points are missing in %v", missing)
	}
	sparse.Points.CSR = &data.CSR{Start: []int{0, 2, 4, 5}, Column: []int32{0, 1, 0, 1, 1}, Value: []float32{6, 1, nan, 2, inf}}
	if means := sparse.Points.FiniteMeans(); !slices.Equal(means, []float32{3, 1.5}) || sparse.Points.FillMissing(means) != 2 || sparse.Check() != nil || !slices.Equal(sparse.Points.CSR.Value, []float32{6, 1, 3, 2, 1.5}) {
		t.Errorf("the means of sparse points are %v, the values then %v", means, sparse.Points.CSR.Value)
	}
	sparse.Points.CSR = &data.CSR{Start: []int{0, 1, 2, 3}, Column: []int32{0, 0, 0}, Value: []float32{1, nan, -1}}
	if filled := sparse.Points.FillMissing(sparse.Points.FiniteMeans()); filled != 1 || !slices.Equal(sparse.Points.CSR.Value, []float32{1, -1}) {
		t.Errorf("a mean of 0 leaves %v", sparse.Points.CSR.Value)
	}
	m := set().Points
	means := m.FiniteMeans()
	if filled := m.FillMissing(means); filled != 2 || !slices.Equal(means, []float32{3, 6}) {
		t.Errorf("%d values are filled with the means %v", filled, means)
	}
	sameMatrix(t, m, &data.Matrix{N: 4, D: 2, X: []float32{1, 6, 2, 4, 3, 6, 6, 8}, Columns: []string{"one", "two"}})
	none := &data.Dataset{Points: matrix(1, 2, 1, nan)}
	if mean := none.Points.FiniteMeans(); mean[0] != 1 || !math.IsNaN(float64(mean[1])) {
		t.Errorf("the means are %v", mean)
	}
}

func TestSplit(t *testing.T) {
	classes := func(i int) string { return string("aaaaaabbbc"[i%10]) }
	quantity := func(i int) string { return fmt.Sprint(0.5 + float64(i)) }
	for _, tc := range []struct {
		name  string
		n     int
		label func(int) string
		share float64
		held  int
	}{
		{"no labels", 1000, nil, 0.1, 100},
		{"rounded", 1000, nil, 1. / 7, 143},
		{"classes", 1000, classes, 0.1, 100},
		{"classes, share that does not divide them", 1003, classes, 1. / 3, 334},
		{"a class for each", 10, func(i int) string { return fmt.Sprint("c", i) }, 0.3, 3},
		{"one class", 10, func(int) string { return "a" }, 0.25, 3},
		{"quantities", 1000, quantity, 0.1, 100},
		{"at least one", 10, nil, 0.001, 1},
		{"at most all but one", 10, classes, 0.999, 9},
		{"two points", 2, nil, 0.5, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ds := numbered(tc.n, tc.label)
			train, held, rows, err := ds.Split(tc.share, 1)
			must(t, err)
			if len(rows) != tc.held || held.Points.N != tc.held || train.Points.N != tc.n-tc.held {
				t.Fatalf("%d rows are held out, %d kept, want %d and %d", held.Points.N, train.Points.N, tc.held, tc.n-tc.held)
			}
			for i, row := range rows {
				if held.Points.X[i] != float32(row) {
					t.Fatalf("held-out point %d is row %v, want %d", i, held.Points.X[i], row)
				}
			}
			all := slices.Concat(train.Points.X, held.Points.X)
			slices.Sort(all)
			if !slices.Equal(all, ds.Points.X) {
				t.Error("points are lost or occur twice")
			}
			for _, part := range []*data.Dataset{train, held} {
				must(t, part.Check())
				if part.Name != ds.Name || !part.Bytes || !slices.IsSorted(part.Points.X) {
					t.Errorf("the name is %q, Bytes is %v, the rows are %v", part.Name, part.Bytes, part.Points.X)
				}
				if ds.Labels == nil {
					continue
				}
				if !slices.Equal(part.Labels.Names, ds.Labels.Names) || (part.Labels.Value == nil) != (ds.Labels.Value == nil) {
					t.Errorf("the labels are %+v", part.Labels)
				}
				for i, v := range part.Points.X {
					if part.Labels.Class[i] != ds.Labels.Class[int(v)] || ds.Labels.Value != nil && part.Labels.Value[i] != ds.Labels.Value[int(v)] {
						t.Fatalf("point %v has the label of another", v)
					}
				}
			}
			if ds.Labels != nil && ds.Labels.Categorical() {
				size, taken := make([]int, len(ds.Labels.Names)), make([]int, len(ds.Labels.Names))
				for _, c := range ds.Labels.Class {
					size[c]++
				}
				for _, c := range held.Labels.Class {
					taken[c]++
				}
				for c := range size {
					if want := float64(size[c]) * float64(tc.held) / float64(tc.n); math.Abs(float64(taken[c])-want) >= 1 {
						t.Errorf("%d of the %d points of class %d are held out, want about %.1f", taken[c], size[c], c, want)
					}
				}
			}

			_, _, again, _ := ds.Split(tc.share, 1)
			if !slices.Equal(again, rows) {
				t.Error("the same seed holds out other rows")
			}
			if _, _, other, _ := ds.Split(tc.share, 2); tc.held >= 100 && slices.Equal(other, rows) {
				t.Error("another seed holds out the same rows")
			}
		})
	}
}

// Every row is as likely as any other to be held out.
func TestSplitIsUniform(t *testing.T) {
	const n, draws = 20, 4000
	for _, label := range []func(int) string{nil, func(i int) string { return string("ab"[i%2]) }} {
		ds := numbered(n, label)
		count := make([]int, n)
		for seed := range uint64(draws) {
			_, _, rows, err := ds.Split(0.2, seed)
			must(t, err)
			for _, row := range rows {
				count[row]++
			}
		}
		for row, c := range count {
			// 0.2·4000, give or take five standard deviations.
			if math.Abs(float64(c)-800) > 127 {
				t.Errorf("row %d is held out %d times of %d, want about 800", row, c, draws)
			}
		}
	}
}

func TestSplitKeepsRowNames(t *testing.T) {
	folder := t.TempDir()
	a := put(t, folder, "a.csv", []byte("1\n2\n3\n"))
	b := put(t, folder, "b.csv", []byte("4\n5\n"))
	ds := need(file.Read(t.Context(), []string{a, b}, file.Options{}))(t)
	train, held, rows, err := ds.Split(0.4, 3)
	must(t, err)
	name := func(row int) string {
		if row < 3 {
			return fmt.Sprintf("%s:%d", a, row+1)
		}
		return fmt.Sprintf("%s:%d", b, row-2)
	}
	held.Points.X[1] = float32(math.NaN())
	wantError(t, held.Check(), data.ErrNotFinite, name(rows[1])+": column 1")
	first := int(train.Points.X[0]) - 1
	_, inner, innerRows, err := train.Split(0.5, 1) // and through a second split
	must(t, err)
	want := int(train.Points.X[innerRows[0]]) - 1
	inner.Points.X[0] = float32(math.Inf(1))
	wantError(t, inner.Check(), data.ErrNotFinite, name(want))
	train.Points.X[0] = float32(math.NaN())
	wantError(t, train.Check(), data.ErrNotFinite, name(first))
}

func TestSplitErrors(t *testing.T) {
	ds := numbered(10, nil)
	for _, share := range []float64{0, 1, -0.5, 1.5, math.NaN(), math.Inf(1)} {
		_, _, _, err := ds.Split(share, 1)
		wantError(t, err, data.ErrOption, fmt.Sprintf("share of the points to hold out: got %v", share))
	}
	_, _, _, err := numbered(1, nil).Split(0.5, 1)
	wantError(t, err, data.ErrEmpty, "points to split: got 1")
	_, _, _, err = (&data.Dataset{}).Split(0.5, 1)
	wantError(t, err, data.ErrEmpty, "points: got none, want at least one")
}

// Labels.Split gives every class its share of any rows, in their order.
func TestLabelsSplit(t *testing.T) {
	labels := make([]string, 200)
	for i := range labels {
		labels[i] = fmt.Sprint(float64(i%4) + 0.5) // numbers, yet classes
	}
	l := data.NewLabels(labels)
	var some []int32 // descending, without the rows below 50; class 3 is rare
	for i := int32(199); i >= 50; i-- {
		if i%4 != 3 || i < 70 {
			some = append(some, i)
		}
	}
	for _, tc := range []struct {
		name  string
		rows  []int32
		count int
		sizes [4]int // of the held-out part
	}{
		{"all", nil, 40, [4]int{10, 10, 10, 10}},
		{"all but one", nil, 199, [4]int{}},
		{"some", some, len(some) / 2, [4]int{}},
	} {
		rest, held, err := l.Split(tc.rows, tc.count, 1)
		must(t, err)
		rows := tc.rows
		if rows == nil {
			for i := range int32(200) {
				rows = append(rows, i)
			}
		}
		if len(held) != tc.count || len(rest)+len(held) != len(rows) {
			t.Errorf("%s: %d and %d of %d", tc.name, len(rest), len(held), len(rows))
		}
		size, taken := [4]int{}, [4]int{}
		for _, r := range rows {
			size[l.Class[r]]++
		}
		for _, r := range held {
			taken[l.Class[r]]++
		}
		for c := range size {
			if share := float64(size[c]*tc.count) / float64(len(rows)); math.Abs(float64(taken[c])-share) >= 1 {
				t.Errorf("%s: class %d gave %d of %d, its share is %.2f", tc.name, c, taken[c], size[c], share)
			}
		}
		if tc.sizes != [4]int{} && taken != tc.sizes {
			t.Errorf("%s: the classes gave %v, want %v", tc.name, taken, tc.sizes)
		}
		at := [2]int{}
		for _, r := range rows { // both parts are in the order of rows
			for p, part := range [2][]int32{rest, held} {
				if at[p] < len(part) && part[at[p]] == r {
					at[p]++
				}
			}
		}
		if at != [2]int{len(rest), len(held)} {
			t.Errorf("%s: the parts are not in the order of the rows", tc.name)
		}
	}

	for _, tc := range []struct {
		name  string
		l     *data.Labels
		rows  []int32
		count int
		kind  error
	}{
		{"none", l, nil, 0, data.ErrOption},
		{"all", l, nil, 200, data.ErrOption},
		{"no rows", l, []int32{}, 1, data.ErrEmpty},
		{"twice", l, []int32{1, 2, 1}, 1, data.ErrLabels},
		{"no such row", l, []int32{1, 200}, 1, data.ErrLabels},
		{"negative row", l, []int32{1, -1}, 1, data.ErrLabels},
		{"class without a name", &data.Labels{Class: []int32{0, 1}, Names: []string{"a"}}, nil, 1, data.ErrLabels},
	} {
		if _, _, err := tc.l.Split(tc.rows, tc.count, 1); !errors.Is(err, tc.kind) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// Lines stay right for the last rows of a text with an empty line after each row, and take
// no more memory than others.
func TestLinesForgetTheFirst(t *testing.T) {
	lines := new(data.Lines)
	const rows = 1 << 17
	for i := range rows {
		lines.Add(i, 2*i+1)
	}
	parts := []data.Part{{Name: "a.csv", Rows: rows, Lines: lines}}
	for row, want := range map[int]string{0: "a.csv: row 1", rows - 1: "a.csv:262143", rows - 1<<15: "a.csv:196609"} {
		if got := data.RowName(parts, false, row); got != want {
			t.Errorf("row %d is called %s, want %s", row, got, want)
		}
	}
}
