package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// parquetFile returns the path of a file that testdata/parquet/make.mjs made.
func parquetFile(name string) string {
	return filepath.Join("testdata", "parquet", name+".parquet")
}

// parquetRow is row i of the table that most of the files hold.
func parquetRow(i int) []float32 {
	return []float32{float32(i) * 0.5, float32(float64(i) / 3), float32(i % 7), float32(-i), float32(1 - i%2)}
}

// What other programs write is read as they mean it, whole and in blocks.
func TestOpenParquet(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	kind := file.Options{LabelColumn: "kind"}
	for _, tc := range []struct {
		content string
		opt     file.Options
		columns []string // of the points; nil: without names
		values  []int    // of parquetRow
	}{
		{"duckdb-uncompressed", kind, names, []int{0, 1, 2, 3, 4}},
		{"duckdb-snappy", kind, names, []int{0, 1, 2, 3, 4}},
		{"duckdb-gzip", kind, names, []int{0, 1, 2, 3, 4}},
		{"duckdb-zstd", kind, names, []int{0, 1, 2, 3, 4}},
		{"duckdb-v2", kind, names, []int{0, 1, 2, 3, 4}},
		{"hyparquet", kind, names, []int{0, 1, 2, 3, 4}},
		{"arrow", kind, names, []int{0, 1, 2, 3, 4}},
		{"arrow-split", file.Options{}, names[:2], []int{0, 1}},
		{"arrow-half", file.Options{}, names[:1], []int{0}},
		{"arrow-list", kind, nil, []int{0, 1, 2, 3}},
		{"duckdb-array", file.Options{}, nil, []int{0, 1, 2, 3}},
		{"duckdb-array", file.Options{Only: []string{"vector"}}, nil, []int{0, 1, 2, 3}},
		{"arrow", file.Options{LabelColumn: "6", Drop: []string{"c", "-2"}}, []string{"a", "b", "d"}, []int{0, 1, 3}},
		{"arrow", file.Options{Only: []string{"d", "a"}}, []string{"d", "a"}, []int{3, 0}},
		{"arrow", file.Options{Columns: []string{"e", "a"}}, []string{"e", "a"}, []int{4, 0}},
	} {
		t.Run(tc.content, func(t *testing.T) {
			paths := []string{parquetFile(tc.content)}
			ds, err := file.Read(t.Context(), paths, tc.opt)
			if err != nil {
				t.Fatal(err)
			}
			want := data.NewMatrix(50, len(tc.values))
			for i := range want.N {
				for j, v := range tc.values {
					want.X[i*want.D+j] = parquetRow(i)[v]
				}
			}
			sameMatrix(t, ds.Points, want)
			if !slices.Equal(ds.Points.Columns, tc.columns) {
				t.Errorf("the columns are %q, want %q", ds.Points.Columns, tc.columns)
			}
			if ds.Bytes || ds.Name != tc.content {
				t.Errorf("Bytes is %v, the name %q", ds.Bytes, ds.Name)
			}
			if labeled := tc.opt.LabelColumn != ""; labeled != (ds.Labels != nil) {
				t.Fatalf("the labels are %v", ds.Labels)
			} else if labeled {
				for i, c := range ds.Labels.Class {
					if got := ds.Labels.Names[c]; got != fmt.Sprintf("k%d", i%3) {
						t.Fatalf("label %d is %q", i, got)
					}
				}
			}
			sameAsOpen(t, paths, tc.opt)
			sameAsOpen(t, append(paths, paths...), tc.opt)
			if size := file.Size(t.Context(), paths, tc.opt); size != data.SizeOf(50, want.D) {
				t.Errorf("the size is %+v", size)
			}
		})
	}
	for column, want := range map[string]string{"e": "False True", "c": "0 1 2 3 4 5 6"} {
		ds, err := file.Read(t.Context(), []string{parquetFile("arrow")}, file.Options{LabelColumn: column, Only: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ds.Labels.Names, " "); got != want {
			t.Errorf("the labels of column %s are %s", column, got)
		}
	}
	ds, err := file.Read(t.Context(), []string{parquetFile("arrow")}, file.Options{Only: []string{"c"}})
	if err != nil || !ds.Bytes {
		t.Errorf("a column of bytes: %v", err)
	}
	ds, err = file.Read(t.Context(), []string{parquetFile("duckdb-nulls")}, file.Options{Only: []string{"b"}, LabelColumn: "kind"})
	if err != nil || !slices.Equal(ds.Labels.Names, []string{"", "x"}) {
		t.Errorf("a label that is missing: %v", err)
	}
}

// Row groups follow each other.
func TestParquetGroups(t *testing.T) {
	paths := []string{parquetFile("duckdb-groups")}
	ds, err := file.Read(t.Context(), paths, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := data.NewMatrix(5000, 3)
	for i := range want.N {
		copy(want.Row(i), []float32{float32(i), float32(i * i), float32(i % 3)})
	}
	sameMatrix(t, ds.Points, want)
	sameAsOpen(t, paths, file.Options{})
}

// Null is NaN, and an empty label, where missing values are allowed.
func TestParquetMissing(t *testing.T) {
	ds := need(file.Read(t.Context(), []string{parquetFile("duckdb-nulls")}, file.Options{DropText: true, AllowMissing: true}))(t)
	for i, v := range ds.Points.X {
		if i == 14 && !math.IsNaN(float64(v)) || i != 14 && v != float32(i/2) {
			t.Errorf("value %d is %v", i, v)
		}
	}
	ds = need(file.Read(t.Context(), []string{parquetFile("duckdb-nulls")}, file.Options{Drop: []string{"kind"}, LabelColumn: "a"}))(t)
	for i, c := range ds.Labels.Class {
		if label := ds.Labels.Names[c]; label != strconv.Itoa(i) && (i != 7 || label != "") {
			t.Errorf("label %d is %q", i, label)
		}
	}
	_, err := file.Read(t.Context(), []string{parquetFile("duckdb-nulls")}, file.Options{})
	if e := new(file.TextError); !errors.As(err, &e) || !e.Missing || !e.Numbers {
		t.Errorf("the error is %+v, want missing values among other columns", err)
	}
}

// Decimals are numbers, and dates, times and UUIDs have the text that they have in CSV.
func TestParquetLogicalTypes(t *testing.T) {
	paths := []string{parquetFile("duckdb-logical"), filepath.Join("testdata", "parquet", "duckdb-logical.csv")}
	names := []string{"price", "mass", "huge", "uid", "day", "ts", "clock"}
	texts := need(file.ReadColumns(t.Context(), paths[:1], names[3:], file.Options{}))(t)
	want := need(file.ReadColumns(t.Context(), paths[1:], names[3:], file.Options{}))(t)
	for k, name := range names[3:] {
		if !slices.Equal(texts[k], want[k]) {
			t.Errorf("%s: the texts are %q, want %q", name, texts[k], want[k])
		}
	}
	numbers := file.Options{Only: names[:3], AllowMissing: true}
	got, csv := need(file.Read(t.Context(), paths[:1], numbers))(t), need(file.Read(t.Context(), paths[1:], numbers))(t)
	if !math.IsNaN(float64(got.Points.Row(3)[0])) || got.Points.N != 20 {
		t.Errorf("a missing decimal is %v", got.Points.Row(3)[0])
	}
	got.Points.FillMissing(make([]float32, 3))
	csv.Points.FillMissing(make([]float32, 3))
	if sameMatrix(t, got.Points, csv.Points); !slices.Equal(got.Points.Offset, csv.Points.Offset) {
		t.Errorf("offsets %v, from CSV %v", got.Points.Offset, csv.Points.Offset)
	}
	dates := file.Options{Only: []string{"price"}, Dates: []string{"day", "ts", "clock"}, AllowMissing: true}
	sameMatrix(t, need(file.Read(t.Context(), paths[:1], dates))(t).Points.Rows(4, 20), need(file.Read(t.Context(), paths[1:], dates))(t).Points.Rows(4, 20))
	lists := need(file.Read(t.Context(), paths[:1], file.Options{Only: []string{"pair"}, LabelColumn: "day"}))(t)
	if !slices.Equal(lists.Points.Row(3), []float32{1.5, 1.25}) || !slices.Equal(lists.Labels.Names, []string{"2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"}) {
		t.Errorf("lists of decimals: %v, labels %q", lists.Points.Row(3), lists.Labels.Names)
	}
	prefix := need(file.ReadColumns(t.Context(), []string{parquetFile("arrow-prefix")}, []string{"name"}, file.Options{}))(t)
	for i, got := range prefix[0] {
		if want := fmt.Sprintf("papers/2020/article-%d", i); got != want {
			t.Errorf("name %d is %q, want %q", i, got, want)
		}
	}
}

// Lists that are null or empty are points without values.
func TestParquetMissingLists(t *testing.T) {
	paths := []string{parquetFile("duckdb-null-lists")}
	_, err := file.Read(t.Context(), paths, file.Options{})
	wantError(t, err, data.ErrNotFinite, "row 1: column 1: got NaN")
	ds := need(file.Read(t.Context(), paths, file.Options{AllowMissing: true}))(t)
	missing := ds.Points.Missing(30)
	var rows []int
	for i := range 30 {
		if i%5 > 0 && i != 1 && i != 7 {
			rows = append(rows, i)
		}
	}
	if kept := slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return slices.Contains(missing, i) }); len(rows)+len(missing) != 30 || !slices.Equal(kept, rows) || ds.Points.Row(7)[2] != 2 {
		t.Fatalf("the rows without values are %v, want all but %v", missing, rows)
	}
	for _, i := range rows {
		if got := ds.Points.Row(i); !slices.Equal(got, []float32{float32(i), float32(i) / 2, -float32(i)}) {
			t.Errorf("row %d is %v", i, got)
		}
	}
	_, err = file.Read(t.Context(), []string{parquetFile("duckdb-all-null")}, file.Options{AllowMissing: true})
	wantError(t, err, data.ErrFormat, `columns that are not numbers: note (no values)`)
	if ds := need(file.Read(t.Context(), []string{parquetFile("duckdb-all-null")}, file.Options{DropText: true}))(t); ds.Points.D != 1 {
		t.Errorf("%d columns without the one that has no values", ds.Points.D)
	}
	some := need(file.ReadRows(t.Context(), paths, file.Options{AllowMissing: true}, []int{0, 8, 29}, 30))(t)
	if !slices.Equal(some.Points.X[3:], []float32{8, 4, -8, 29, 14.5, -29}) {
		t.Errorf("rows 8 and 29 are %v", some.Points.X[3:])
	}
}

// Bad files and options are refused in a sentence.
func TestOpenParquetErrors(t *testing.T) {
	for _, tc := range []struct {
		content string
		opt     file.Options
		kind    error
		want    string
	}{
		{"arrow", file.Options{}, data.ErrFormat, "arrow.parquet: columns that are not numbers: kind"},
		{"arrow", file.Options{Drop: []string{"f"}}, data.ErrOption, `column: got "f", want one of ["a" "b"`},
		{"arrow", file.Options{Only: []string{"a"}, Drop: []string{"a"}}, data.ErrOption, `column "a": got two uses`},
		{"arrow", file.Options{Only: []string{"a"}, LabelColumn: "a"}, data.ErrOption, `column "a": got two uses`},
		{"arrow", file.Options{Drop: []string{"1", "2", "3", "4", "5", "6"}}, data.ErrEmpty, "columns: got none left"},
		{"arrow", file.Options{Columns: []string{"a", "z"}}, data.ErrShape, "z"},
		{"duckdb-brotli", file.Options{LabelColumn: "kind"}, data.ErrUnsupported, "compression: got Brotli, want snappy, gzip or zstd"},
		{"duckdb-nulls", file.Options{LabelColumn: "kind"}, data.ErrNotFinite, `row 8: column "a": got NaN, want a finite number`},
		{"duckdb-ragged", file.Options{}, data.ErrFormat, `row 8 (counted from 1), column "v": list: got another number of values, want 3`},
		{"duckdb-null-in-list", file.Options{}, data.ErrNotFinite, `row 8: column 2: got NaN, want a finite number`},
		{"duckdb-empty", file.Options{}, data.ErrEmpty, "rows: got none"},
		{"duckdb-types", file.Options{Only: []string{"t"}}, data.ErrFormat, `columns that are not numbers: t (row 1: "2020-01-01 00:00:00", a date)`},
		{"duckdb-types", file.Options{Only: []string{"day"}}, data.ErrFormat, `columns that are not numbers: day (row 1: "2020-01-01", a date)`},
		{"duckdb-types", file.Options{Only: []string{"pair"}}, data.ErrFormat, `columns that are not numbers: pair (a structure of several columns)`},
		{"duckdb-types", file.Options{Only: []string{"nested"}}, data.ErrFormat, `columns that are not numbers: nested (a structure of several columns)`},
		{"duckdb-types", file.Options{Only: []string{"words"}}, data.ErrFormat, `columns that are not numbers: words (a list of texts)`},
		{"duckdb-types", file.Options{Only: []string{"a"}, LabelColumn: "words"}, data.ErrUnsupported, `label column "words": got a list of texts, want numbers or text`},
	} {
		_, err := file.Read(t.Context(), []string{parquetFile(tc.content)}, tc.opt)
		wantError(t, err, tc.kind, tc.want)
	}
	x := put(t, t.TempDir(), "x.npy", byteArray("(50, 1)", make([]byte, 50)...))
	_, err := file.Read(t.Context(), []string{x}, file.Options{Labels: []string{parquetFile("arrow")}})
	wantError(t, err, data.ErrFormat, "got a table of 6 columns")
	content, err := os.ReadFile(parquetFile("arrow"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Read(t.Context(), []string{put(t, t.TempDir(), "a.parquet.gz", gz(content))}, file.Options{})
	wantError(t, err, data.ErrUnsupported, "an HDF5 or Parquet file within a gzip stream")
	_, err = file.Decode(io.MultiReader(bytes.NewReader(content)), file.Options{})
	wantError(t, err, data.ErrUnsupported, "within a gzip stream, or from a pipe")
}

// A truncated file, or one with a changed byte, is refused or read, with memory in
// proportion to its size.
func TestParquetDamaged(t *testing.T) {
	for k, name := range []string{"arrow", "arrow-list", "arrow-split", "duckdb-v2", "duckdb-zstd", "duckdb-gzip", "duckdb-nulls", "duckdb-logical", "duckdb-null-lists", "arrow-prefix"} {
		content, err := os.ReadFile(parquetFile(name))
		if err != nil {
			t.Fatal(err)
		}
		for n := k % 7; n < len(content); n += 29 {
			if _, err := file.Decode(bytes.NewReader(content[:n]), file.Options{LabelColumn: "kind"}); err == nil {
				t.Fatalf("%s: %d bytes of %d are read", name, n, len(content))
			}
		}
		// Every fifth byte of a file, others of the next file: measuring takes longest.
		const apart, together = 5, 50
		for from := k % apart; from < len(content); from += together {
			if used := allocated(func() {
				for i := from; i < min(len(content), from+together); i += apart {
					changed := bytes.Clone(content)
					changed[i] ^= []byte{0x01, 0x80, 0xff}[i%3]
					readAnyParquet(t, changed)
				}
			}); used > 64<<20 {
				t.Fatalf("%s: %d bytes are allocated once each of %d bytes from %d on has been changed", name, used, together/apart, from)
			}
		}
	}
}

// readAnyParquet reads a file that may be damaged in several ways.
func readAnyParquet(t *testing.T, content []byte) {
	for _, opt := range []file.Options{{LabelColumn: "kind"}, {}} {
		ds, err := file.Decode(bytes.NewReader(content), opt)
		checkRead(t, ds, err)
	}
}

// FuzzReadParquet reads any bytes as a Parquet file.
func FuzzReadParquet(f *testing.F) {
	names, err := filepath.Glob(parquetFile("*"))
	if err != nil || len(names) == 0 {
		f.Fatal(errors.Join(err, errors.New("there are no files")))
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { readAnyParquet(t, content) })
}

// Metadata that claim 2²⁸ columns in 21 bytes take no memory for them.
func TestParquetClaims(t *testing.T) {
	footer := []byte{0x15, 2, 0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 1}
	content := append(append([]byte("PAR1"), footer...), byte(len(footer)), 0, 0, 0, 'P', 'A', 'R', '1')
	if used := allocated(func() {
		_, err := file.Decode(bytes.NewReader(content), file.Options{})
		wantError(t, err, data.ErrFormat, "metadata: got an invalid Thrift encoding")
	}); used > 1<<20 {
		t.Errorf("%d bytes are allocated", used)
	}
}
