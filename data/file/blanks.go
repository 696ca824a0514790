package file

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"strconv"

	"cne/internal/selection"
	"cne/internal/text"
)

// blanks reads text whose fields are separated by blanks, as fields separated by tabs. It
// leaves out blanks around a line, and lines before the first row: comments, and the sizes
// that word2vec writes. Fields in quotation marks keep their blanks.
type blanks struct {
	in         *bufio.Reader
	skip       int // lines before the first row
	line, left []byte
}

// newBlanks returns a reader of in, which skips lines.
func newBlanks(in io.Reader, skip int) *blanks {
	return &blanks{in: bufio.NewReaderSize(in, readBuffer), skip: skip}
}

// findBlanks reports whether the fields of a text, which begins with the lines of top, are
// separated by blanks: all rows have as many, after a header at most one more. Two of the last row,
// or of most rows, are also numbers, missing or in quotation marks, or the rows are a column with
// names (areNamed). skip is the number of lines before the first row.
func findBlanks(top []byte) (skip int, ok bool) {
	var rows [][]string
	lines := bytes.Split(bytes.TrimRight(top, "\r\n"), []byte("\n"))
	all := make([][]string, len(lines))
	width, numeric := 0, false
	for i, line := range lines {
		r := csv.NewReader(bytes.NewReader(appendTabbed(nil, line)))
		r.Comma, r.LazyQuotes = '\t', true
		if all[i], _ = r.Read(); len(all[i]) > 0 && !isMarked(all[i][0]) {
			width, numeric = len(all[i]), isPlain(all[i][0])
		}
	}
	numbers, values := 0, 0
	for i, row := range all {
		if len(row) == 0 || isMarked(row[0]) && (width > 0 && len(row) != width || numeric || len(rows) == 0 && numbersIn(row) < 2) {
			if len(rows) == 0 {
				skip = i + 1
			}
			continue
		}
		numbers += numbersIn(row)
		values += numbersIn(row) + selection.Count(row, text.IsMissing) + bytes.Count(lines[i], []byte(`"`))/2
		if rows = append(rows, row); len(rows) == 2 && len(rows[0]) == 2 && numbersIn(rows[0]) == 2 &&
			rows[0][1] == strconv.Itoa(len(row)-1) && numbersIn(row) < len(row) {
			skip, rows = i, rows[1:]
		}
	}
	for i, row := range rows {
		if n := len(rows[len(rows)-1]); len(row) != n && (i > 0 || len(row) != n-1) {
			return 0, false
		}
	}
	isTable := len(rows) > 1 && numbers > 0 && (values >= 2*(len(rows)-1) || areNamed(rows))
	return skip, len(rows) > 0 && (isTable || numbersIn(rows[len(rows)-1]) > 1)
}

// areNamed reports whether the first row has one field, the name of a column, and all others have
// two: a name that differs from all others, and a number, which may be missing.
func areNamed(rows [][]string) bool {
	isNamed := func(row []string) bool { return len(row) == 2 && (isPlain(row[1]) || text.IsMissing(row[1])) }
	names := selection.Map(rows[1:], func(row []string) string { return row[0] })
	return len(rows) > 2 && len(rows[0]) == 1 && selection.Count(rows[1:], isNamed) == len(names) && allDiffer(names)
}

// numbersIn returns how many fields are numbers.
func numbersIn(row []string) int {
	return selection.Count(row, func(field string) bool { _, err := text.ParseFloat(field, 64); return err == nil })
}

func (b *blanks) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		err := bufio.ErrBufferFull
		for b.line = b.line[:0]; err == bufio.ErrBufferFull && len(b.line) <= maxRow; {
			var part []byte
			part, err = b.in.ReadSlice('\n')
			b.line = append(b.line, part...)
		}
		if err != nil && (err != io.EOF || len(b.line) == 0) {
			return 0, err
		}
		if b.skip--; b.skip < 0 {
			b.left = appendTabbed(b.left[:0], bytes.TrimRight(b.line, "\n"))
		}
		b.left = append(b.left, '\n')
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// appendTabbed appends the fields of a line, separated by tabs. A quotation mark that is not
// closed is part of a word.
func appendTabbed(to, line []byte) []byte {
	line = bytes.Trim(line, " \r")
	for first := true; len(line) > 0; first = false {
		if !first {
			to = append(to, '\t')
		}
		end := bytes.IndexByte(line, ' ')
		if end < 0 {
			end = len(line)
		}
		field := line[:end]
		if line[0] == '"' {
			// R writes a quotation mark in a text as \".
			closed := bytes.Index(append(bytes.ReplaceAll(line[1:], []byte(`\"`), []byte(`""`)), ' '), []byte(`" `))
			if closed > 0 || closed == 0 && end == 2 {
				end = closed + 2
				field = line[1 : end-1]
			}
			field = bytes.ReplaceAll(bytes.ReplaceAll(field, []byte(`\"`), []byte(`"`)), []byte(`"`), []byte(`""`))
			field = append(append([]byte{'"'}, field...), '"')
		}
		to, line = append(to, field...), bytes.TrimLeft(line[end:], " ")
	}
	return to
}
