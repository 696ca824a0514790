package file

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/text"
)

// A table has columns that can be read as text.
type table interface {
	// fields returns the names of the columns, nil without, and their number.
	fields() (names []string, columns int)
	// check returns an error if column i cannot be read as text.
	check(i int) error
	// rolesFor returns the roles of the columns. It fails as kind.Need does, as scan does.
	rolesFor(o *Options) []role
	// inspector returns what finds out how column i is coded; nil for plain numbers.
	inspector(i int) *inspector
	// scan calls each with the texts of some columns for each point, until it returns an
	// error, and with what names the point in the file. NaN and missing values are "" in
	// columns of numbers, and missing ones in others. The texts are valid until each returns.
	scan(columns []int, each func(where func() string, fields []string) error)
}

// eachRow is scan for columns of n texts.
func eachRow(n int, columns [][]string, each func(where func() string, fields []string) error) {
	fields := make([]string, len(columns))
	for row := range n {
		for k, column := range columns {
			fields[k] = column[row]
		}
		kind.Check(each(func() string { return fmt.Sprintf("row %d", row+1) }, fields))
	}
}

// ReadColumns reads columns as text, such as names of points, from files with the options
// of Read. Result k is column wanted[k], with one entry per point. A column is given as in
// Options.LabelColumn, and may be in Options.Drop. For files without such a column, and
// arrays, the error wraps data.ErrOption; for pipes, and columns that are neither numbers
// nor text, data.ErrUnsupported; for text that is not UTF-8, data.ErrFormat. Other errors
// are as for Read.
func ReadColumns(ctx context.Context, paths, wanted []string, o Options) ([][]string, error) {
	columns := make([][]string, len(wanted))
	interned := make(map[string]string)
	err := eachTable(ctx, paths, wanted, o, func(t table, indices []int) {
		t.scan(indices, func(_ func() string, fields []string) error {
			for k, field := range fields {
				if !utf8.ValidString(field) {
					return notUTF8(fmt.Sprintf("column %d: ", indices[k]+1), field)
				}
				columns[k] = append(columns[k], intern(interned, field))
			}
			return nil
		})
	})
	return columns, err
}

// notUTF8 is the error for text that is not in UTF-8.
func notUTF8(where, got string) error {
	return errorf(data.ErrFormat, "%sgot %.40q, want text in UTF-8; convert the file, for instance with iconv -f LATIN1 -t UTF-8 FILE > NEW", where, got)
}

// FindColumn returns the index of a column in the last file. It reads only the heads of
// the files. Errors are as for ReadColumns.
func FindColumn(ctx context.Context, paths []string, wanted string, o Options) (int, error) {
	column := -1
	err := eachTable(ctx, paths, []string{wanted}, o, func(t table, indices []int) {
		column = indices[0]
		kind.Check(t.check(column))
	})
	return column, err
}

// eachTable calls do with the table in each file and the indices of the wanted columns.
func eachTable(ctx context.Context, paths, wanted []string, o Options, do func(t table, indices []int)) error {
	list, err := find(paths, &o)
	if err != nil {
		return err
	}
	if !list.again() {
		return errorf(data.ErrUnsupported, "%s: columns: got a pipe, want a file, which can be read again", list[0].path)
	}
	for _, from := range list {
		err := withTable(ctx, from.path, &o, func(t table) {
			kind.Need(t != nil, data.ErrOption, "column %s: got an array, which has no columns, want a table", text.Quote(wanted[0]))
			names, columns := t.fields()
			do(t, indices(wanted, columns, names))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withTable calls do with the table in a file, or with nil if the file has an array. The
// error, also that do fails with, names the file.
func withTable(ctx context.Context, path string, o *Options, do func(t table)) error {
	in, f, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer in.Close()
	return named(path, caught(func() {
		var t table
		if f.table != nil {
			t = f.table(in, o)
		}
		do(t)
	}))
}

// CheckLines returns an error for a table of several columns, in text or Parquet. It is
// for files that must have a line or value for each point.
func CheckLines(ctx context.Context, path string) error {
	return withTable(ctx, path, &Options{}, func(t table) {
		if t == nil {
			return
		}
		names, columns := t.fields()
		example := "COLUMN, by its number"
		if names != nil {
			example = "COLUMN, one of " + firstNames(names)
		}
		kind.Need(columns < 2, data.ErrFormat,
			"got a table of %d columns without the name of one, want %s:%s", columns, text.Printable(path), example)
	})
}

// SplitColumn splits the name of a column of the points: the path of a file with a line
// or value for each point, FILE:COLUMN for a column of any table, or a column of the
// points' own table. file is "" for the points' own table, and column is "" for a whole
// file.
func SplitColumn(spec string) (file, column string) {
	isFile := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	if isFile(spec) {
		return spec, ""
	}
	if at := strings.LastIndexByte(spec, ':'); at > 0 && isFile(spec[:at]) {
		return spec[:at], spec[at+1:]
	}
	return "", spec
}

// SameFile reports whether two paths lead to the same existing file.
func SameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Paths returns the specs with FILE:COLUMN replaced by FILE.
func Paths(specs []string) []string {
	paths := slices.Clone(specs)
	for i, spec := range specs {
		if path, _ := SplitColumn(spec); path != "" {
			paths[i] = path
		}
	}
	return paths
}
