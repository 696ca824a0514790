package file_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	return put(t, t.TempDir(), name, []byte(content))
}

func TestOpenColumns(t *testing.T) {
	const table = "name,x,kind,y\n\"a,<b>\",1,cat,2\n\n,3,dog,4\nZoë,5, cat ,6\n"
	opt := file.Options{Drop: []string{"name"}, LabelColumn: "kind"}
	for name, tc := range map[string]struct {
		paths []string
		opt   file.Options
	}{
		"as points are read": {[]string{writeFile(t, "t.csv", table)}, opt},
		"compressed":         {[]string{writeFile(t, "t.csv.gz", string(gz([]byte(table))))}, opt},
		"two files":          {[]string{writeFile(t, "a.csv", table[:31]), writeFile(t, "b.csv", "name,x,kind,y\n"+table[31:])}, opt},
		"without labels":     {[]string{writeFile(t, "t.csv", table)}, file.Options{}},
	} {
		got, err := file.ReadColumns(context.Background(), tc.paths, []string{"name", "3", "-1"}, tc.opt)
		want := [][]string{{"a,<b>", "", "Zoë"}, {"cat", "dog", "cat"}, {"2", "4", "6"}}
		if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, tc := range map[string]struct {
		name, content, column string
		kind                  error
		text                  string
	}{
		"missing":     {"t.csv", table, "nme", data.ErrOption, `column: got "nme"`},
		"twice":       {"t.csv", "a,a,b\n1,2,3\n", "a", data.ErrOption, "columns 1 and 2"},
		"short row":   {"t.csv", "a,b\n1,2\n3\n", "a", data.ErrFormat, ":3: fields: got 1"},
		"not UTF-8":   {"t.csv", "a,b\nx,\xff\n", "b", data.ErrFormat, ":2: column 2: got"},
		"only a head": {"t.csv", "a,b\n", "a", data.ErrEmpty, "got only a header"},
		"empty":       {"t.csv", "", "a", data.ErrEmpty, "empty"},
		"an array":    {"t.npy", string(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", 1, 2, 3, 4)), "a", data.ErrOption, "got an array"},
	} {
		path := writeFile(t, tc.name, tc.content)
		_, err := file.ReadColumns(context.Background(), []string{path}, []string{tc.column}, file.Options{})
		if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.text) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Columns of Parquet files are read as in text files, and numbers as text.
func TestOpenParquetColumns(t *testing.T) {
	columns := need(file.ReadColumns(t.Context(), []string{parquetFile("arrow"), parquetFile("duckdb-gzip")}, []string{"kind", "a", "c"}, file.Options{Drop: []string{"kind"}}))(t)
	for k, want := range []func(i int) string{
		func(i int) string { return fmt.Sprintf("k%d", i%3) },
		func(i int) string { return fmt.Sprint(parquetRow(i)[0]) },
		func(i int) string { return fmt.Sprint(i % 7) },
	} {
		if len(columns[k]) != 100 {
			t.Fatalf("column %d has %d values", k, len(columns[k]))
		}
		for i, got := range columns[k] {
			if got != want(i%50) {
				t.Fatalf("column %d has %q in row %d, want %q", k, got, i, want(i%50))
			}
		}
	}
	wantError(t, file.CheckLines(t.Context(), parquetFile("arrow")), data.ErrFormat, "got a table of 6 columns without the name of one, want "+parquetFile("arrow")+`:COLUMN, one of ["`)
	for _, tc := range []struct {
		content, column string
		kind            error
		text            string
	}{
		{"arrow", "nme", data.ErrOption, `column: got "nme"`},
		{"arrow-list", "1", data.ErrUnsupported, "want numbers or text"},
		{"duckdb-brotli", "1", data.ErrUnsupported, "Brotli"},
	} {
		_, err := file.ReadColumns(t.Context(), []string{parquetFile(tc.content)}, []string{tc.column}, file.Options{})
		if !errors.Is(err, tc.kind) || !strings.Contains(fmt.Sprint(err), tc.text) || !strings.Contains(fmt.Sprint(err), parquetFile(tc.content)) {
			t.Errorf("%s: %v", tc.content, err)
		}
	}
}

func TestOpenLines(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		lines   []string
		heading bool
	}{
		"text":          {"a\n\n b \r\nc", []string{"a", "", "b", "c"}, true},
		"no heading":    {"a\nb\na\n", []string{"a", "b", "a"}, false},
		"heading":       {"age\n1\n2\n", []string{"age", "1", "2"}, true},
		"times":         {"2024-01-05 12:30\n2024-01-06 9:15\n", []string{"2024-01-05 12:30", "2024-01-06 9:15"}, false},
		"hours":         {"20240105 12:30 13:45\n20240106 9:15 9:30\n", []string{"20240105 12:30 13:45", "20240106 9:15 9:30"}, true},
		"ratios":        {"2 3:1 b\n2 1:2.5 c\n", []string{"2 3:1 b", "2 1:2.5 c"}, true},
		"a mark":        {"\ufeff1\n2\n", []string{"1", "2"}, false},
		"values":        {string(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 0, 0, 0xc0, 0x3f, 0, 0, 0xc0, 0x7f)), []string{"1.5", ""}, false},
		"whole numbers": {string(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n", 7, 8)), []string{"7", "8"}, false},
	} {
		got, heading, err := file.ReadLines(context.Background(), writeFile(t, "x", tc.content))
		if err != nil || !slices.Equal(got, tc.lines) || heading != tc.heading {
			t.Errorf("%s: %q, %v, %v", name, got, heading, err)
		}
	}
	for name, tc := range map[string]struct {
		content string
		kind    error
		text    string
	}{
		"not UTF-8": {"a\nb\xff\n", data.ErrFormat, ":2: got \"b\\xff\", want text in UTF-8"},
		"infinite":  {string(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 0, 0, 0x80, 0x7f)), data.ErrNotFinite, "label 1"},
		"truncated": {string(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }\n", 0, 0, 0x80, 0x7f)), data.ErrFormat, "truncated"},
		"points":    {string(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", 1, 2, 3, 4)), data.ErrLabels, "dimension"},
	} {
		path := writeFile(t, "x", tc.content)
		if _, _, err := file.ReadLines(context.Background(), path); err == nil || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a table holds, a column has a text for each point that ReadCSV finds.
func FuzzOpenColumns(f *testing.F) {
	f.Add("a,b\n1,2\n3,4\n", "b")
	f.Add("a,\"b\n\"\n1,2\n", "1")
	f.Add("1;2\n\n3;4\n", "-1")
	f.Add("x\n\xff", "x")
	f.Fuzz(func(t *testing.T, content, column string) {
		path := writeFile(t, "t.csv", content)
		columns, err := file.ReadColumns(context.Background(), []string{path}, []string{column}, file.Options{})
		if err != nil {
			return
		}
		points, err := file.Read(context.Background(), []string{path}, file.Options{})
		if err == nil && points.Points.N != len(columns[0]) {
			t.Errorf("%d texts for %d points", len(columns[0]), points.Points.N)
		}
	})
}

// Whatever a file of a line for each point holds, an error names it, and a heading is above
// something.
func FuzzOpenLines(f *testing.F) {
	f.Add("name\na\n b \r\n\n")
	f.Add("\xef\xbb\xbfa\n\xff")
	f.Add(string(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0x80, 0x7f)))
	f.Add(string(npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", 'a', 0, 0, 0)))
	f.Add("\x1f\x8b\x08\x00")
	f.Fuzz(func(t *testing.T, content string) {
		path := writeFile(t, "names", content)
		lines, heading, err := file.ReadLines(context.Background(), path)
		switch {
		case err != nil && !strings.Contains(err.Error(), path):
			t.Errorf("an error without the file: %v", err)
		case err == nil && heading && len(lines) < 2:
			t.Errorf("of %q, one is a heading", lines)
		}
	})
}
