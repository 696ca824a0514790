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
	"cne/internal/text"
)

// ReadLabels reads the labels of n points from files, as Read does for Options.Labels.
func ReadLabels(ctx context.Context, paths []string, n int) ([]string, error) {
	var all, counts []string
	files, headings := make([][]string, len(paths)), make([]bool, len(paths))
	total, headed := 0, 0
	for i, path := range paths {
		var err error
		if files[i], headings[i], err = readLabels(ctx, path); err != nil {
			return nil, err
		}
		total += len(files[i])
		if headings[i] {
			headed++
		}
		counts = append(counts, fmt.Sprintf("%s: %d", path, len(files[i])))
	}
	drop := total != n && total-headed == n
	if total != n && !drop {
		return nil, miscounted(total, n, counts...)
	}
	for i, labels := range files {
		if drop && headings[i] {
			labels = labels[1:]
		}
		all = append(all, labels...)
	}
	return all, checkClasses(text.Few(paths, text.Printable), data.NewLabels(all))
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
	ending := strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))
	return slices.Contains([]string{".csv", ".tsv", ".parquet"}, ending)
}

// MayBeTable reports whether a path can be that of a table: it is no folder, and its name is
// not that of an array.
func MayBeTable(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return false
	}
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	return !slices.ContainsFunc(formats, func(f format) bool {
		return f.table == nil && slices.ContainsFunc(f.endings, func(ending string) bool { return strings.HasSuffix(name, ending) })
	})
}

// looksLikeTable reports whether most lines differ, and each has as many fields as the first.
func looksLikeTable(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	separator := string(guessSeparator([]byte(lines[0])))
	fields := strings.Count(lines[0], separator)
	return fields > 0 && checkClasses("", data.NewLabels(lines)) != nil &&
		!slices.ContainsFunc(lines, func(line string) bool { return strings.Count(line, separator) != fields })
}

// checkClasses returns an error if labels are rather names of points: there are many
// points, and most have a unique text.
func checkClasses(from string, labels *data.Labels) error {
	n := len(labels.Class)
	if n < fewestNamed || labels.Value != nil || 2*len(slices.DeleteFunc(slices.Clone(labels.Names), isNumber)) <= n {
		return nil
	}
	return errorf(data.ErrLabels, "%s: labels: got a different text for most of the %d points, want classes or numbers, or data.names (--names)", from, n)
}

// fewestNamed is the least number of points whose labels checkClasses refuses.
const fewestNamed = 50

// miscounted is the error for a number of labels other than the number of points; counts
// lists the numbers per file.
func miscounted(labels, points int, counts ...string) error {
	in := ""
	if len(counts) > 0 {
		in = " (" + strings.Join(counts, ", ") + ")"
	}
	return errorf(data.ErrLabels, "labels: got %d%s, want %d, one for each point", labels, in, points)
}

// ReadLines reads one line per point from a text file or from an array of one dimension
// (IDX, npy, npz). Lines may be empty, and NaN becomes an empty line. heading reports
// whether the first line may be a heading, as for Options.Labels. Errors name the file.
// They wrap data.ErrFormat for text that is not UTF-8, and data.ErrNotFinite for an
// infinite value.
func ReadLines(ctx context.Context, path string) (lines []string, heading bool, err error) {
	return readItems(ctx, path, true)
}

// readItems is ReadLines if items may be missing, and otherwise reads labels.
func readItems(ctx context.Context, path string, missing bool) (items []string, heading bool, err error) {
	in, f, err := openFile(ctx, path)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	if f.labels == nil && f.magic == "" {
		items, err = readTextLines(in, missing)
		return items, looksLikeHeader(items), named(path, err)
	}
	err = caught(func() {
		array := f.openLabels(in)
		array.missing = missing
		items = kind.Got(array.allLabels())
	})
	return items, false, named(path, err)
}

// openLabels begins to read a file that is an array of labels.
func (f *format) openLabels(in *Input) *arrayReader {
	kind.Need(f.labels != nil, data.ErrUnsupported, "labels: got a table, want an array of one dimension")
	return f.labels(in)
}

// readTextLines reads text with one item on each line, without the space around it. Empty
// lines at the end are items only if names may be missing there.
func readTextLines(in *Input, missing bool) ([]string, error) {
	skipBOM(in)
	from := io.Reader(in.r)
	if hasReturns(in.Peek(readBuffer)) {
		from = lineEnds{from}
	}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, readBuffer)
	var lines []string
	for line := 1; scanner.Scan(); line++ {
		item := strings.TrimSpace(scanner.Text())
		if !utf8.ValidString(item) {
			return nil, &lineError{line, notUTF8("", item)}
		}
		lines = append(lines, item)
	}
	for !missing && len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &lineError{len(lines) + 1, errorf(data.ErrFormat, "got more than %d bytes, want one item on each line", readBuffer)}
	} else if err != nil {
		return nil, explain(err)
	}
	return lines, nil
}

// looksLikeHeader reports whether the first label may be a heading: it occurs nowhere else,
// and is a number only if no other one is.
func looksLikeHeader(labels []string) bool {
	if len(labels) < 2 || slices.Contains(labels[1:], labels[0]) {
		return false
	}
	return !isNumber(labels[0]) || !slices.ContainsFunc(labels[1:], isNumber)
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
