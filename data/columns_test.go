package data_test

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// logged returns a logger and what it was told.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

// Columns are found by their names, wherever they stand; Open and Blocks agree.
func TestColumnsByName(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name, file string
		opt        data.Options
		log        string // what is said; "" for nothing
	}{
		{"same order", "a,b,c\n1,2,3\n4,5,6\n", data.Options{}, ""},
		{"another order", "c,a,b\n3,1,2\n6,4,5\n", data.Options{}, ""},
		{"more columns", "id,c,kind,a,b\n7,3,x,1,2\n8,6,y,4,5\n", data.Options{}, `columns="id, kind"`},
		{"labels", "kind,b,a,c\nx,2,1,3\ny,5,4,6\n", data.Options{LabelColumn: "kind"}, ""},
		{"dropped", "id,b,a,c\nx,2,1,3\ny,5,4,6\n", data.Options{Drop: []string{"id"}}, ""},
		{"an unwanted name twice", "id,b,id,a,c\nx,2,x,1,3\ny,5,y,4,6\n", data.Options{}, `columns="id, id"`},
		{"no names", "1,2,3\n4,5,6\n", data.Options{}, "have no names"},
		{"names are refused", "1,2,3\n4,5,6\n", data.Options{Header: data.HeaderNone}, "have no names"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := put(t, dir, "x.csv", []byte(tc.file))
			var log *bytes.Buffer
			opt := tc.opt
			opt.Columns = []string{"a", "b", "c"}
			opt.Log, log = logged()
			ds := need(data.Open(t.Context(), []string{path}, opt))(t)
			sameMatrix(t, ds.Points, matrix(2, 3, 1, 2, 3, 4, 5, 6))
			if named := tc.log != "have no names"; named != slices.Equal(ds.Points.Columns, opt.Columns) {
				t.Errorf("the columns are called %q", ds.Points.Columns)
			}
			if !strings.Contains(log.String(), tc.log) || strings.Count(log.String(), "\n") != min(len(tc.log), 1) {
				t.Errorf("the log says %q, want %q", log, tc.log)
			}
			blocks := need(data.OpenBlocks(t.Context(), []string{path}, opt))(t)
			defer blocks.Close()
			block := data.NewMatrix(2, blocks.D())
			if n, err := blocks.Next(block); n != 2 || err != nil && err != io.EOF {
				t.Fatal(n, err)
			}
			sameMatrix(t, block, ds.Points)
			if !slices.Equal(block.Columns, ds.Points.Columns) {
				t.Errorf("the columns of the block are called %q", block.Columns)
			}
		})
	}
}

// Names that are numbers make a header where all that are wanted are there, and columns in
// the order of training need no names of their own.
func TestColumnsOfNumbersAndInOrder(t *testing.T) {
	sameMatrix(t, need(data.ReadCSV(strings.NewReader("2,0,1\n30,10,20\n"), data.Options{Columns: []string{"0", "1", "2"}}))(t).Points, matrix(1, 3, 10, 20, 30))
	sameMatrix(t, need(data.ReadCSV(strings.NewReader("a,b,a\n1,2,3\n"), data.Options{Columns: []string{"a", "b", "a"}}))(t).Points, matrix(1, 3, 1, 2, 3))
}

func TestColumnsErrors(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		opt        data.Options
		kind       error
		want       string
	}{
		{"one is missing", "a,c\n1,2\n", data.Options{Columns: []string{"a", "b"}}, data.ErrShape, `of the 2 columns that were trained on, 1 are missing: "b"; there are "a", "c"`},
		{"other names", "v,w,x,y,z\n1,2,3,4,5\n", data.Options{Columns: []string{"a", "b", "c", "d", "e"}}, data.ErrShape, `5 are missing: "a", "b", "c" and 2 more; there are "v", "w", "x" and 2 more`},
		{"a name twice", "a,b,a\n1,2,3\n", data.Options{Columns: []string{"b", "a"}}, data.ErrShape, `several columns are called "a"`},
		{"trained on twice", "b,a\n1,2\n", data.Options{Columns: []string{"a", "a", "b"}}, data.ErrShape, `several of the columns that were trained on are called "a"`},
		{"as label", "a,b,c\n1,2,3\n", data.Options{Columns: []string{"a", "b"}, LabelColumn: "b"}, data.ErrOption, `the column "b" was trained on`},
		{"dropped", "a,b,c\n1,2,3\n", data.Options{Columns: []string{"a", "b"}, Drop: []string{"2"}}, data.ErrOption, `the column "b" was trained on`},
		{"another width than the offset", "1,2,3\n", data.Options{Offset: []float64{1, 2}}, data.ErrShape, "the points have 3 values, but those that were trained on have 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantError(t, errorOf(data.ReadCSV(strings.NewReader(tc.file), tc.opt)), tc.kind, tc.want)
			path := put(t, t.TempDir(), "x.csv", []byte(tc.file))
			wantError(t, errorOf(data.OpenBlocks(t.Context(), []string{path}, tc.opt)), tc.kind, tc.want)
		})
	}
}

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
	wantError(t, err, data.ErrShape, `1 are missing: "d"`)
	m.Columns = m.Columns[:2]
	_, _, err = m.Select([]string{"a"})
	wantError(t, err, data.ErrShape, "2 names of columns")
}

// A first line that counts is taken for names, and that is said.
func TestCountingHeaderIsLogged(t *testing.T) {
	for file, said := range map[string]bool{"0,1,2\n5,6,7\n": true, "a,b,c\n5,6,7\n": false, "5,6,7\n0,1,2\n": false} {
		log, text := logged()
		need(data.ReadCSV(strings.NewReader(file), data.Options{Log: log}))(t)
		if strings.Contains(text.String(), "is taken for column names") != said {
			t.Errorf("of %q the log says %q", file, text)
		}
	}
	log, text := logged()
	if _, err := data.ReadCSV(strings.NewReader("0,1,2\n5,6,7\n"), data.Options{Log: log, Header: data.HeaderPresent}); err != nil || text.Len() > 0 {
		t.Errorf("what was said before is said again: %q, %v", text, err)
	}
}
