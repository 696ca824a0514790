package file_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// Labels come from a file of their own or from a column of a table.
func TestReadLabels(t *testing.T) {
	for _, tc := range []struct{ content, column, want string }{
		{"a\nb\na\n", "", "aba"},
		{"kind\na\nb\na\n", "", "aba"},
		{"id,kind\n1,a\n2,\n3,c\n", ":kind", "ac"},
		{"kind\n?\nb\n-1.0\n", "", "b"},
		{"id,kind\n1,a\n2,?\n3,-1\n", ":kind", "a"},
		{"1,a\n2,b\n3,c\n", ":-1", "abc"},
		{"\"kind\"\n\"a\"\n\" b\"\n\"\"\n", "", "ab"}, // R and pandas
		{"\"\"\r\n\"a, b\"\r\n\"\"\r\n\r\n", "", "a, b"},
		{"\"a \"\"b\"\"\"\n\"c\" or \"d\"\n\"\n", "", `a "b""c" or "d""`},
		{"x, y\nx, y\nz, y\n", "", "x, yx, yz, y"}, // lines of a few points may have commas
	} {
		path := put(t, t.TempDir(), "l:1.txt", []byte(tc.content)) + tc.column
		labels, err := file.ReadLabels(t.Context(), []string{path}, 3, []string{"?", "-1"})
		if err != nil || strings.Join(labels, "") != tc.want {
			t.Errorf("%q%s: got %q, %v", tc.content, tc.column, labels, err)
		}
	}
}

// Labels that name points, and whole lines of tables, are refused.
func TestLabelsThatAreNames(t *testing.T) {
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, line(i))
		}
		return b.String()
	}
	for _, tc := range []struct {
		name string // of the file, and a column of it
		n    int
		line func(i int) string
		want string // in the error; "" for none
	}{
		{"l.txt", 60, func(i int) string { return fmt.Sprint("p", i) }, "l.txt: labels: got a different text for most of the 60 points"},
		{"l.txt", 49, func(i int) string { return fmt.Sprint("p", i) }, ""},
		{"l.txt", 60, func(i int) string { return fmt.Sprint("p", i/2) }, ""},
		{"l.txt", 60, func(i int) string { return fmt.Sprint(0.1 * float64(i)) }, ""},
		{"l.txt", 60, func(i int) string { return []string{"nan", fmt.Sprint(i)}[i%2] }, ""},
		{"l.txt", 60, func(i int) string { return []string{"T cell, CD4", "T cell, CD8"}[i%2] }, ""},
		{"l.txt", 60, func(i int) string { return fmt.Sprintf("p%d\t1", i) }, "a table of 2 columns"},
		{"l.txt:2", 60, func(i int) string { return fmt.Sprintf("p%d\t1", i) }, ""},
		{"l.csv", 3, func(i int) string { return fmt.Sprintf("p%d;1", i) }, "a table of 2 columns"},
		{"l.csv", 3, func(i int) string { return fmt.Sprint("p", i) }, ""},
		{"l.csv:1", 60, func(i int) string { return fmt.Sprintf("p%d;1", i) }, "got a different text"},
		{"l.csv:3", 60, func(i int) string { return fmt.Sprintf("p%d;1", i) }, "column: got 3, want 1 to 2"},
	} {
		name, column, _ := strings.Cut(tc.name, ":")
		path := put(t, t.TempDir(), name, []byte(lines(tc.n, tc.line)))
		if column != "" {
			path += ":" + column
		}
		labels, err := file.ReadLabels(t.Context(), []string{path}, tc.n, nil)
		switch {
		case tc.want == "" && (err != nil || len(labels) != tc.n):
			t.Errorf("%s of %q, …: %d labels, %v", tc.name, tc.line(0), len(labels), err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s of %q, …: got the error %v, want %q", tc.name, tc.line(0), err, tc.want)
		}
	}
	table := put(t, t.TempDir(), "x.csv", []byte(lines(60, func(i int) string { return fmt.Sprintf("p%d,%d,%d", i, i%3, i) })))
	if _, err := file.Read(t.Context(), []string{table}, file.Options{LabelColumn: "1"}); !errors.Is(err, data.ErrLabels) {
		t.Errorf("a column of names: %v", err)
	}
	ds := need(file.Read(t.Context(), []string{table}, file.Options{LabelColumn: "2", Drop: []string{"1"}}))(t)
	if !slices.Equal(ds.Labels.Names, []string{"0", "1", "2"}) {
		t.Errorf("the classes are %q", ds.Labels.Names)
	}
}
