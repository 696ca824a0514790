package data

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"cne/internal/text"
)

// OpenColumns reads columns as text, such as names of points, from the files from which
// Open reads points by the same paths and options: result k has what column wanted[k]
// says of each point, in their order. A column is named as Options.LabelColumn is, and
// may be one that Options.Drop has. The files must be tables in text or Parquet
// (ErrUnsupported), and can be read twice, as pipes cannot. Text that is missing in
// Parquet is empty, and so is NaN. Other errors are those of ReadCSV and ReadParquet, or
// ErrFormat for text that is not UTF-8.
func OpenColumns(ctx context.Context, paths, wanted []string, opt Options) ([][]string, error) {
	files, err := findFiles(paths, opt)
	if err != nil {
		return nil, err
	}
	if !canReadAgain(files) {
		return nil, errNoColumns(files[0].path)
	}
	columns := make([][]string, len(wanted))
	for _, f := range files {
		if err := appendColumns(ctx, columns, f.path, wanted, opt); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// CheckColumn says why OpenColumns would not find a column, as far as the heads of the files
// tell.
func CheckColumn(ctx context.Context, paths []string, wanted string, opt Options) error {
	files, err := findFiles(paths, opt)
	if err != nil {
		return err
	}
	if !canReadAgain(files) {
		return errNoColumns(files[0].path)
	}
	for _, f := range files {
		err := openTable(ctx, f.path, wanted, opt, func(r *parquetReader) error {
			_, err := r.textColumn(wanted)
			return err
		}, func(t *table) error {
			_, err := findColumn(wanted, len(t.row), t.names)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func errNoColumns(path string) error {
	return errorf(ErrUnsupported, "%s: columns are read by themselves, for which a pipe cannot be read again; give a file", path)
}

// appendColumns reads columns of one file.
func appendColumns(ctx context.Context, columns [][]string, path string, wanted []string, opt Options) error {
	return openTable(ctx, path, wanted[0], opt, func(r *parquetReader) error {
		return r.appendColumns(columns, wanted)
	}, func(t *table) error {
		return t.readColumns(columns, wanted)
	})
}

// openTable calls one of two functions with a table of either kind.
func openTable(ctx context.Context, path, wanted string, opt Options, inParquet func(*parquetReader) error, inText func(*table) error) error {
	s, format, c, err := openFile(ctx, path, false)
	if err != nil {
		return err
	}
	defer c.Close()
	switch format {
	case formatParquet:
		var r *parquetReader
		if r, err = newParquet(s); err == nil {
			err = inParquet(r)
		}
	case formatText:
		var t *table
		if t, err = newRows(s, opt); err == nil {
			err = inText(t)
		}
	default:
		err = errorf(ErrUnsupported, "this is an array, which has no column %s; give the file with its values", text.Quote(wanted))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// textColumn returns the index of a column of numbers or texts.
func (r *parquetReader) textColumn(wanted string) (int, error) {
	i, err := findColumn(wanted, len(r.names), r.names)
	if err != nil {
		return 0, err
	}
	if c := &r.file.Columns[i]; c.Kind == 0 || c.List {
		return 0, errorf(ErrUnsupported, "the column %s is %s, but numbers or texts are wanted; cast it to one of these", text.Quote(r.names[i]), c.Is)
	}
	return i, nil
}

// appendColumns appends the texts of columns.
func (r *parquetReader) appendColumns(columns [][]string, wanted []string) error {
	r.missing = true
	for k, name := range wanted {
		i, err := r.textColumn(name)
		if err != nil {
			return err
		}
		column := r.column(i)
		r.label, r.labels = &column, columns[k]
		if err := r.readLabels(r.file.Rows); err != nil {
			return parquetError(err)
		}
		columns[k] = r.takeLabels()
	}
	return nil
}

// readColumns appends the fields of columns, from the first row that is a point.
func (t *table) readColumns(columns [][]string, wanted []string) error {
	width := len(t.row)
	at := make([]int, len(wanted))
	for k, name := range wanted {
		var err error
		if at[k], err = findColumn(name, width, t.names); err != nil {
			return err
		}
	}
	if err := t.skipNames(); err != nil {
		return err
	}
	for ; t.err == nil; t.advance() {
		if err := t.checkWidth(width); err != nil {
			return err
		}
		for k, i := range at {
			field := bytes.TrimSpace(t.row[i])
			if !utf8.Valid(field) {
				return errorf(ErrFormat, "line %d, column %d, both counted from 1, is not UTF-8; save the file in that encoding", t.first, i+1)
			}
			columns[k] = append(columns[k], t.intern(field))
		}
	}
	if t.err != io.EOF {
		return t.err
	}
	return nil
}

// TableColumns returns the number of columns of a table in text, as in ReadCSV, or in
// Parquet; 1 of other files, and of text whose first line has no separator.
func TableColumns(ctx context.Context, path string) (int, error) {
	s, format, c, err := openFile(ctx, path, false)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	switch format {
	case formatText:
	case formatParquet:
		r, err := newParquet(s)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		return len(r.names), nil
	default:
		return 1, nil
	}
	t, err := newRows(s, Options{})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return len(t.row), nil
}

// OpenLines reads what a file says of each point: text with a line for each, which may be
// empty, or an array of one dimension (IDX, npy, npz), in which NaN stands for an empty
// one. heading tells that the first line may be a heading, as that of Options.Labels may.
// Errors name the file; text that is not UTF-8 gives ErrFormat, an infinite value
// ErrNotFinite.
func OpenLines(ctx context.Context, path string) (lines []string, heading bool, err error) {
	s, format, c, err := openFile(ctx, path, false)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	if format == formatText {
		lines, err = allLines(s)
		heading = looksLikeHeader(lines)
	} else {
		err = withLabelArray(s, format, func(b *arrayReader) (err error) {
			b.missing = true
			lines, err = b.readLabels()
			return err
		})
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return lines, heading, nil
}

// allLines reads the lines of text, without the space around them.
func allLines(s *byteSource) ([]string, error) {
	skipBOM(s)
	scanner := bufio.NewScanner(s.r)
	scanner.Buffer(nil, readBuffer)
	var lines []string
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if !utf8.ValidString(line) {
			return nil, errorf(ErrFormat, "line %d (counted from 1) is not UTF-8; save the file in that encoding", len(lines)+1)
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, errorf(ErrFormat, "line %d (counted from 1) has more than %d bytes; write one for each point", len(lines)+1, readBuffer)
	} else if err != nil {
		return nil, explain(err)
	}
	return lines, nil
}
