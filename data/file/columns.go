package file

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
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
func eachTable(ctx context.Context, paths, wanted []string, o Options, do func(t table, indices []int)) (err error) {
	defer kind.Catch(&err)
	list := kind.Got(find(paths, &o))
	kind.Need(list.again(), data.ErrUnsupported, "%s: columns: got a pipe, want a file, which can be read again", list[0].path)
	for _, from := range list {
		kind.Check(withTable(ctx, from.path, &o, func(t table) {
			kind.Need(t != nil, data.ErrOption, "column %s: got an array, which has no columns, want a table", text.Quote(wanted[0]))
			names, columns := t.fields()
			do(t, indices(wanted, columns, names))
		}))
	}
	return nil
}

// withTable calls do with the table in a file, or with nil if the file has an array. The
// error, also that do fails with, names the file.
func withTable(ctx context.Context, path string, o *Options, do func(t table)) error {
	in, f, err := source{path: path}.input(ctx)
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
		example := selection.If(names != nil, "COLUMN, one of "+firstNames(names), "COLUMN, by its number")
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

// ReadLabels reads the labels of n points from files, as Read does for Options.Labels. na are
// Options.NA.
func ReadLabels(ctx context.Context, paths []string, n int, na []string) (_ []string, err error) {
	defer kind.Catch(&err)
	var all, counts []string
	var headings []int // their places in all
	for _, path := range paths {
		labels, heading, err := readLabels(ctx, path)
		kind.Check(err)
		if heading {
			headings = append(headings, len(all))
		}
		all = append(all, labels...)
		counts = append(counts, fmt.Sprintf("%s: %d", path, len(labels)))
	}
	if total := len(all); total != n {
		if total-len(headings) != n {
			return nil, miscounted(total, n, counts...)
		}
		for _, at := range slices.Backward(headings) {
			all = slices.Delete(all, at, at+1)
		}
	}
	missing := newMarks(na)
	for i, label := range all {
		if missing.has(label) {
			all[i] = ""
		}
	}
	return all, CheckClasses(text.Few(paths, text.Printable), data.NewLabels(all))
}

// readLabels reads the labels in one file, or in the column of a table.
func readLabels(ctx context.Context, spec string) (labels []string, heading bool, err error) {
	path, column := SplitColumn(spec)
	if path != "" && column != "" {
		columns, err := ReadColumns(ctx, []string{path}, []string{column}, Options{LabelColumn: column})
		return columns[0], false, err
	}
	if labels, heading, err = readItems(ctx, spec, false); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("labels: %w; want a file with a label for each point, or FILE:COLUMN", err)
	}
	if IsTable(spec) || looksLikeTable(labels) {
		err = cmp.Or(CheckLines(ctx, spec), err)
	}
	return labels, heading, err
}

// IsTable reports whether a file has the name of a table in text or Parquet.
func IsTable(path string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".parquet"}, strings.ToLower(filepath.Ext(unpackedName(path))))
}

// MayBeTable reports whether a path can be that of a table: it is no folder, and its name is
// not that of an array.
func MayBeTable(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return false
	}
	return !slices.ContainsFunc(formats, func(f format) bool { return f.table == nil && f.hasEnding(strings.ToLower(path)) })
}

// looksLikeTable reports whether most lines differ, and each has as many fields as the first.
func looksLikeTable(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	separator := string(guessSeparator([]byte(lines[0])))
	fields := strings.Count(lines[0], separator)
	return fields > 0 && CheckClasses("", data.NewLabels(lines)) != nil &&
		!slices.ContainsFunc(lines, func(line string) bool { return strings.Count(line, separator) != fields })
}

// CheckClasses returns an error if labels are rather names of points: there are many
// points, and most have a unique text. It names the file they are from.
func CheckClasses(from string, labels *data.Labels) error {
	n := len(labels.Class)
	if n < fewestNamed || labels.Value != nil || 2*len(slices.DeleteFunc(slices.Clone(labels.Names), isNumber)) <= n {
		return nil
	}
	return errorf(data.ErrLabels, "%s: labels: got a different text for most of the %d points, want classes or numbers, or data.names (--names)", from, n)
}

// fewestNamed is the least number of points whose labels CheckClasses refuses.
const fewestNamed = 50

// miscounted is the error for a number of labels other than the number of points; counts
// lists the numbers per file.
func miscounted(labels, points int, counts ...string) error {
	in := selection.If(len(counts) > 0, " ("+strings.Join(counts, ", ")+")", "")
	return errorf(data.ErrLabels, "labels: got %d%s, want %d, one for each point", labels, in, points)
}

// ReadLines reads one line per point from a text file or from an array of one dimension
// (IDX, npy, npz). Lines may be empty, and NaN becomes an empty line. heading reports
// whether the first line may be a heading, as for Options.Labels. Errors name the file.
// They wrap data.ErrFormat for text that is not UTF-8, and for an infinite value.
func ReadLines(ctx context.Context, path string) (lines []string, heading bool, err error) {
	return readItems(ctx, path, true)
}

// readItems is ReadLines if items may be missing, and otherwise reads labels.
func readItems(ctx context.Context, path string, missing bool) (items []string, heading bool, err error) {
	in, f, err := source{path: path}.input(ctx)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	if f.labels == nil && f.magic == "" {
		items, err = readTextLines(in, missing)
		return items, looksLikeHeader(items), named(path, err)
	}
	err = caught(func() {
		kind.Need(f.labels != nil, data.ErrUnsupported, "labels: got a table, want an array of one dimension")
		items = kind.Got(f.labels(in).allLabels())
	})
	return items, false, named(path, err)
}

// readTextLines reads text with one item on each line, without the space and the quotation
// marks around it. Empty lines at the end are items only if names may be missing there.
func readTextLines(in *Input, missing bool) ([]string, error) {
	skipBOM(in)
	from := io.Reader(in.r)
	if hasReturns(in.Peek(readBuffer)) {
		from = lineEnds{from}
	}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, readBuffer)
	var lines []string
	last := 0 // lines up to the last one that is not empty
	for line := 1; scanner.Scan(); line++ {
		item := strings.TrimSpace(scanner.Text())
		if missing || item != "" {
			last = line
		}
		item = unquote(item)
		if !utf8.ValidString(item) {
			return nil, &lineError{line, notUTF8("", item)}
		}
		lines = append(lines, item)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &lineError{len(lines) + 1, errorf(data.ErrFormat, "got more than %d bytes, want one item on each line", readBuffer)}
	} else if err != nil {
		return nil, explain(err)
	}
	return lines[:last], nil
}

// unquote returns an item without the quotation marks around it, as a table has fields: inside,
// each is doubled.
func unquote(item string) string {
	n := len(item)
	if n < 2 || item[0] != '"' || item[n-1] != '"' || strings.Contains(strings.ReplaceAll(item[1:n-1], `""`, ""), `"`) {
		return item
	}
	return strings.TrimSpace(strings.ReplaceAll(item[1:n-1], `""`, `"`))
}

// looksLikeHeader reports whether the first label may be a heading: it occurs nowhere else,
// and is a number only if no other one is.
func looksLikeHeader(labels []string) bool {
	return len(labels) > 1 && !slices.Contains(labels[1:], labels[0]) && (!isNumber(labels[0]) || !slices.ContainsFunc(labels[1:], isNumber))
}

func isNumber(label string) bool {
	_, ok := data.LabelValue(label)
	return ok
}

// skipBOM skips the byte order mark that some programs write before UTF-8 text.
func skipBOM(in *Input) {
	const mark = "\ufeff"
	if string(in.Peek(len(mark))) == mark {
		in.r.Discard(len(mark)) // cannot fail, the bytes are there
	}
}
