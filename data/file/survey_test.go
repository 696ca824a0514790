package file_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// Whole tables say how columns become numbers, where their first rows do not suffice, and
// all that do not are named at once.
func TestReadSurveysTables(t *testing.T) {
	long := strings.Repeat("\"1,234\",5,,x\n", 9000) // more than is looked at first
	first := put(t, t.TempDir(), "a.csv", []byte("sum,n,none,word\n"+long+"\"12,5\",-,,y\n7,6,,x\n"))
	other := put(t, t.TempDir(), "b.csv", []byte("sum,n,none,word\n\"1,234\",5 kg,,x\n"))

	_, err := file.Read(t.Context(), []string{first, other}, file.Options{})
	wantError(t, err, data.ErrFormat, `a.csv: columns that are not numbers: n (line 9002: "-" among numbers), none (no values), word (line 2: "x")`)
	var log bytes.Buffer
	ds := need(file.Read(t.Context(), []string{first, other}, file.Options{DropText: true, Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	if !slices.Equal(ds.Points.Columns, []string{"sum"}) || ds.Points.N != 9003 || ds.Points.X[0] != 1.234 || ds.Points.X[9000] != 12.5 || ds.Points.X[9002] != 1.234 {
		t.Errorf("%d points of %q: %v, %v, %v", ds.Points.N, ds.Points.Columns, ds.Points.X[0], ds.Points.X[9000], ds.Points.X[9002])
	}
	for _, want := range []string{`columns="n, none, word"`, "read numbers with decimal commas"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log has not once %q:\n%s", want, log.String())
		}
	}
	ds = need(file.Read(t.Context(), []string{first}, file.Options{NA: []string{"-"}, Drop: []string{"none", "word"}, AllowMissing: true}))(t)
	if v := ds.Points.Row(9000); !math.IsNaN(float64(v[1])) || v[0] != 12.5 {
		t.Errorf("row 9000 is %v", v)
	}
	_, err = file.Read(t.Context(), []string{first}, file.Options{Drop: []string{"n", "word"}})
	wantError(t, err, data.ErrFormat, `columns that are not numbers: none (no values)`)
}

// Where no column is numbers, leaving out text leaves nothing.
func TestSurveyFindsNoNumbers(t *testing.T) {
	for content, want := range map[string]string{
		"x,y\nm,kg\n1,2\n":  `a.csv: columns that are not numbers: x (line 2: "m" among numbers), y (line 2: "kg" among numbers)`,
		"Title\nx,y\n1,2\n": "a.csv:2: fields: got 2, want 1 as in line 1; remove lines before the table",
	} {
		_, err := file.Read(t.Context(), []string{put(t, t.TempDir(), "a.csv", []byte(content))}, file.Options{DropText: true})
		wantError(t, err, data.ErrFormat, want)
	}
}

// Row names are no column, and a column has one use.
func TestSurveyLeavesRowNames(t *testing.T) {
	path := put(t, t.TempDir(), "r.csv", []byte("\"\",a,b\nMazda,1,x\nFiat,2,y\n"))
	_, err := file.Read(t.Context(), []string{path}, file.Options{})
	wantError(t, err, data.ErrFormat, `r.csv: columns that are not numbers: b (line 2: "x")`)
	ds := need(file.Read(t.Context(), []string{path}, file.Options{Categories: []string{"b"}}))(t)
	if !slices.Equal(ds.Points.Columns, []string{"a", "b=x", "b=y"}) {
		t.Errorf("the columns are %q", ds.Points.Columns)
	}
	for _, opt := range []file.Options{{Categories: []string{"b"}, LabelColumn: "b"}, {Categories: []string{"b"}, Dates: []string{"b"}}, {Categories: []string{"b"}, Drop: []string{"b"}}, {Dates: []string{"a"}, Drop: []string{"a"}}} {
		_, err := file.Read(t.Context(), []string{path}, opt)
		wantError(t, err, data.ErrOption, "got two uses, want one")
	}
}

// Categories have a column for each value, in their order, in text and in Parquet, and the
// same for new points.
func TestReadCategories(t *testing.T) {
	opt := file.Options{Only: []string{"a"}, Categories: []string{"kind"}}
	for _, path := range []string{
		parquetFile("arrow"),
		put(t, t.TempDir(), "a.csv", []byte("kind,a\nk0,0\nk1,0.5\nk2,1\nk0,1.5\n")),
	} {
		ds := need(file.Read(t.Context(), []string{path}, opt))(t)
		order := []string{"a", "kind=k0", "kind=k1", "kind=k2"}
		at := func(name string) int { return slices.Index(ds.Points.Columns, name) }
		if got := slices.Sorted(slices.Values(ds.Points.Columns)); !slices.Equal(got, order) {
			t.Fatalf("%s: the columns are %q", path, ds.Points.Columns)
		}
		for i := range min(4, ds.Points.N) {
			row := ds.Points.Row(i)
			if row[at("a")] != float32(i)/2 || row[at("kind=k0")] != b2f(i%3 == 0) || row[at("kind=k1")] != b2f(i%3 == 1) || row[at("kind=k2")] != b2f(i%3 == 2) {
				t.Errorf("%s: row %d is %v", path, i, row)
			}
		}
		var log bytes.Buffer
		rows := need(file.Open(t.Context(), []string{put(t, t.TempDir(), "new.csv", []byte("a,kind,z\n1,k2,9\n2,new,9\n3,,9\n"))},
			file.Options{Columns: ds.Points.Columns, Codings: ds.Codings, Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		block := data.NewMatrix(3, 4)
		need(rows.Next(block))(t)
		need(rows.Skip(1))(t)
		if k := at("kind=k2"); block.Row(0)[k] != 1 || block.Row(1)[k] != 0 || !math.IsNaN(float64(block.Row(2)[k])) || block.Row(1)[at("a")] != 2 {
			t.Errorf("new points: %v", block.X)
		}
		if strings.Count(log.String(), "values that training did not have") != 1 {
			t.Errorf("the log is\n%s", log.String())
		}
		must(t, rows.Close())
	}
	many := "id,a\n" + strings.Repeat("x,1\n", 3)
	for i := range 1001 {
		many += strings.Repeat("y", 1+i%40) + string(rune('a'+i%26)) + strings.Repeat("z", i/40) + ",1\n"
	}
	_, err := file.Read(t.Context(), []string{put(t, t.TempDir(), "many.csv", []byte(many))}, file.Options{Categories: []string{"id"}})
	wantError(t, err, data.ErrOption, `column "id": got `)
	_, err = file.Read(t.Context(), []string{put(t, t.TempDir(), "many.csv", []byte(many))}, file.Options{Categories: []string{"idd"}})
	wantError(t, err, data.ErrOption, `column: got "idd"`)
}

func b2f(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// Words and numbers for missing values apply to Parquet, too.
func TestParquetNA(t *testing.T) {
	ds := need(file.Read(t.Context(), []string{parquetFile("arrow")}, file.Options{Only: []string{"a", "d"}, NA: []string{"-7", "2.5"}, AllowMissing: true}))(t)
	for i := range ds.Points.N {
		row := ds.Points.Row(i)
		if (i == 5) != math.IsNaN(float64(row[0])) || (i == 7) != math.IsNaN(float64(row[1])) {
			t.Errorf("row %d is %v", i, row)
		}
	}
}

// A number among the words for missing values stands for every way to write it.
func TestNumbersForMissing(t *testing.T) {
	nan := float32(math.NaN())
	for _, tc := range []struct {
		content string
		opt     file.Options
		want    []float32
	}{
		{"a\n-999\n -999.0\n-9.99e2\n−999.00\n-998.5\n7\n", file.Options{}, []float32{nan, nan, nan, nan, -998.5, 7}},
		{"a,b\n1,-999.0\n2,-999\n3,u\n", file.Options{Only: []string{"b"}, Categories: []string{"b"}}, []float32{nan, nan, 1}},
		{"a;b\n-999,0;1\n2,5;1\n-999,00;2\n", file.Options{Only: []string{"a"}}, []float32{nan, 2.5, nan}},
		{"a\n\"[1, -999.0]\"\n\"[-999, 2]\"\n", file.Options{}, []float32{1, nan, nan, 2}},
		{"a\n1700000000.25\n1700000000.5\n-999.0\n", file.Options{Offset: []float64{1.7e9}}, []float32{.25, .5, nan}},
		{"a\n-3.4028234663852886e+38\n-3.40282347E38\n1e20\n5\n", file.Options{NA: []string{"-3.4028235e+38", "1.0000000200408773e+20"}}, []float32{nan, nan, nan, 5}},
	} {
		o := tc.opt
		if o.AllowMissing = true; o.NA == nil {
			o.NA = []string{"-999", "-"}
		}
		ds := need(file.Read(t.Context(), []string{writeFile(t, "t.csv", tc.content)}, o))(t)
		if got := ds.Points.X; fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%q: got %v, want %v", tc.content, got, tc.want)
		}
	}
	labels := writeFile(t, "t.csv", "a,kind\n1,-999.0\n2,x\n3,-999\n")
	ds := need(file.Read(t.Context(), []string{labels}, file.Options{NA: []string{"-999"}, LabelColumn: "kind"}))(t)
	if !slices.Equal(ds.Labels.Names, []string{"", "x"}) {
		t.Errorf("got the classes %q, want x and none", ds.Labels.Names)
	}
	lists := need(file.Read(t.Context(), []string{parquetFile("arrow-list")}, file.Options{LabelColumn: "kind", NA: []string{"5e-1", "-1"}, AllowMissing: true}))(t)
	if row := lists.Points.Row(1); row[0] == row[0] || row[3] == row[3] || row[1] != row[1] {
		t.Errorf("got the list %v, want its first and last value missing", row)
	}
}
