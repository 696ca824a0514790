package file_test

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
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
		name, content string
		opt           file.Options
		log           string // what is said; "" for nothing
	}{
		{"same order", "a,b,c\n1,2,3\n4,5,6\n", file.Options{}, ""},
		{"another order", "c,a,b\n3,1,2\n6,4,5\n", file.Options{}, ""},
		{"more columns", "id,c,kind,a,b\n7,3,x,1,2\n8,6,y,4,5\n", file.Options{}, `columns="id, kind"`},
		{"labels", "kind,b,a,c\nx,2,1,3\ny,5,4,6\n", file.Options{LabelColumn: "kind"}, ""},
		{"dropped", "id,b,a,c\nx,2,1,3\ny,5,4,6\n", file.Options{Drop: []string{"id"}}, ""},
		{"an unwanted name twice", "id,b,id,a,c\nx,2,x,1,3\ny,5,y,4,6\n", file.Options{}, `columns="id, id"`},
		{"no names", "1,2,3\n4,5,6\n", file.Options{}, "have no names"},
		{"names are refused", "1,2,3\n4,5,6\n", file.Options{Header: file.HeaderNone}, "have no names"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := put(t, dir, "x.csv", []byte(tc.content))
			var log *bytes.Buffer
			opt := tc.opt
			opt.Columns = []string{"a", "b", "c"}
			opt.Log, log = logged()
			ds := need(file.Read(t.Context(), []string{path}, opt))(t)
			sameMatrix(t, ds.Points, matrix(2, 3, 1, 2, 3, 4, 5, 6))
			if named := tc.log != "have no names"; named != slices.Equal(ds.Points.Columns, opt.Columns) {
				t.Errorf("the columns are called %q", ds.Points.Columns)
			}
			if !strings.Contains(log.String(), tc.log) || strings.Count(log.String(), "\n") != min(len(tc.log), 1) {
				t.Errorf("the log says %q, want %q", log, tc.log)
			}
			blocks := need(file.Open(t.Context(), []string{path}, opt))(t)
			defer blocks.Close()
			block := data.NewMatrix(2, blocks.Width())
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
	sameMatrix(t, need(file.Decode(strings.NewReader("2,0,1\n30,10,20\n"), file.Options{Columns: []string{"0", "1", "2"}}))(t).Points, matrix(1, 3, 10, 20, 30))
	sameMatrix(t, need(file.Decode(strings.NewReader("a,b,a\n1,2,3\n"), file.Options{Columns: []string{"a", "b", "a"}}))(t).Points, matrix(1, 3, 1, 2, 3))
}

func TestColumnsErrors(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		opt           file.Options
		kind          error
		want          string
	}{
		{"one is missing", "a,c\n1,2\n", file.Options{Columns: []string{"a", "b"}}, data.ErrShape, `got "a", "c", want the 2 of training; missing: "b"`},
		{"other names", "v,w,x,y,z\n1,2,3,4,5\n", file.Options{Columns: []string{"a", "b", "c", "d", "e"}}, data.ErrShape, `columns: got "v", "w", "x" and 2 more, want the 5 of training; missing: "a", "b", "c" and 2 more`},
		{"a name twice", "a,b,a\n1,2,3\n", file.Options{Columns: []string{"b", "a"}}, data.ErrShape, `columns: got 2 called "a", want 1 as in training`},
		{"trained on twice", "b,a\n1,2\n", file.Options{Columns: []string{"a", "a", "b"}}, data.ErrShape, `columns: got 1 called "a", want 2 as in training`},
		{"as label", "a,b,c\n1,2,3\n", file.Options{Columns: []string{"a", "b"}, LabelColumn: "b"}, data.ErrOption, `column "b": got a label or dropped column`},
		{"dropped", "a,b,c\n1,2,3\n", file.Options{Columns: []string{"a", "b"}, Drop: []string{"2"}}, data.ErrOption, `column "b": got a label or dropped column`},
		{"another width than the offset", "1,2,3\n", file.Options{Offset: []float64{1, 2}}, data.ErrShape, "values per point: got 3, want 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantError(t, errorOf(file.Decode(strings.NewReader(tc.content), tc.opt)), tc.kind, tc.want)
			path := put(t, t.TempDir(), "x.csv", []byte(tc.content))
			wantError(t, errorOf(file.Open(t.Context(), []string{path}, tc.opt)), tc.kind, tc.want)
		})
	}
}

// A first line that counts is taken for names, and that is said.
func TestCountingHeaderIsLogged(t *testing.T) {
	for content, said := range map[string]bool{"0,1,2\n5,6,7\n": true, "a,b,c\n5,6,7\n": false, "5,6,7\n0,1,2\n": false} {
		log, text := logged()
		need(file.Decode(strings.NewReader(content), file.Options{Log: log}))(t)
		if strings.Contains(text.String(), "are taken for column names") != said {
			t.Errorf("of %q the log says %q", content, text)
		}
	}
	log, text := logged()
	if _, err := file.Decode(strings.NewReader("0,1,2\n5,6,7\n"), file.Options{Log: log, Header: file.HeaderPresent}); err != nil || text.Len() > 0 {
		t.Errorf("what was said before is said again: %q, %v", text, err)
	}
}

// All columns that were not trained on are named, also if they are text.
func TestColumnsLeftOut(t *testing.T) {
	log, text := logged()
	o := file.Options{Columns: []string{"y", "x"}, Codings: []data.Coding{{Column: "note", Kind: data.CodingText}}, Log: log}
	for content, want := range map[string]string{"x,note,y\n1,a,2\n": "columns=note", "x,note,y,z\n1,a,2,3\n": `columns="note, z"`} {
		text.Reset()
		need(file.Decode(strings.NewReader(content), o))(t)
		if !strings.Contains(text.String(), "columns that were not trained on are left out") || !strings.Contains(text.String(), want) {
			t.Errorf("%q: got %q, want %s", content, text.String(), want)
		}
	}
}

// What codes say goes where the names of new points want it, also if their columns
// have another order.
func TestCodedColumnsInOrder(t *testing.T) {
	const training, others = "x,is,y\n1,true,10\n2,false,20\n3,true,30\n", "is,y,x\ntrue,10,1\nfalse,20,2\ntrue,30,3\n"
	want := need(file.Decode(strings.NewReader(training), file.Options{}))(t)
	got := need(file.Decode(strings.NewReader(others), file.Options{Columns: want.Points.Columns, Codings: want.Codings}))(t)
	if !slices.Equal(got.Points.X, want.Points.X) {
		t.Errorf("got %v, want %v", got.Points.X, want.Points.X)
	}
	if !slices.Equal(got.Codings[0].Values, want.Codings[0].Values) || got.Codings[0].First != 1 {
		t.Errorf("the codings are %+v, want %+v", got.Codings, want.Codings)
	}
}

// The names of arrays and counts are none of tables, in any case of their letters.
func TestMayBeTable(t *testing.T) {
	for path, want := range map[string]bool{"x.csv": true, "x.GZ": true, "x.npy": false, "x.npy.gz": false, "x.NPY.GZ": false, "folder/x.mtx.Gz": false} {
		if file.MayBeTable(path) != want {
			t.Errorf("%s may be a table: got %v, want %v", path, !want, want)
		}
	}
}

// A first column without a name, or the words of word vectors, may be a category.
func TestIndexAsCategory(t *testing.T) {
	for _, content := range []string{",x,y\nb,0.1,2\na,3,4\nb,5,6\n", "b 0.1 2\na 3 4\nb 5 6\n"} {
		path := put(t, t.TempDir(), "t.csv", []byte(content))
		ds := need(file.Read(t.Context(), []string{path}, file.Options{Categories: []string{"1"}}))(t)
		want := matrix(3, 4, 0, 1, 0.1, 2, 1, 0, 3, 4, 0, 1, 5, 6)
		sameMatrix(t, ds.Points, want)
		again := need(file.Read(t.Context(), []string{path}, file.Options{Codings: ds.Codings, Columns: ds.Points.Columns}))(t)
		sameMatrix(t, again.Points, want)
	}
}
