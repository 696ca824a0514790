package file

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cne/data"
	"cne/internal/simd"
	"cne/internal/text"
)

// A role is the use of a column of a table.
type role byte

const (
	roleData role = iota
	roleLabel
	roleDrop
)

// A layout has the roles of a table's columns.
type layout struct {
	names []string // of the columns, nil without a header
	roles []role   // of the columns
	place []int    // for each column with data, its position in a point
}

// A textReader reads a table in text, always one row ahead. Values may be NaN or
// infinite.
type textReader struct {
	head
	layout
	csv     *csv.Reader
	limit   rowLimit
	rows    int        // read or skipped so far
	wide    int        // fields of each row
	guessed bool       // Header was HeaderAuto
	top     int        // line of the first row
	first   [][]string // some of the first rows after the header
	texts   error      // that columns are text; returned by read

	row      []string // the next row, or nil with the reason in err
	err      error
	interned map[string]string
}

// maxInterned bounds the number of labels that are remembered to let equal labels share
// memory. This does not pay off if labels hardly repeat.
const maxInterned = 1 << 12

// openText begins to read points from a table in text: one point per line, with fields
// separated by commas, semicolons or tabs. Fields may be quoted as in RFC 4180. See
// Options for the header, the column of labels and columns to drop. Every other field
// must be a number with a decimal point. Empty lines are skipped.
func openText(in *Input, o *Options) (reader, error) {
	t, err := newRows(in, o)
	if err != nil {
		return nil, err
	}
	_, columns := t.fields()
	if t.roles, err = findRoles(columns, t.names, o); err != nil {
		return nil, err
	}
	t.labeled = slices.Contains(t.roles, roleLabel)
	if t.indexed = columns > 1 && t.names != nil && t.names[0] == "" && t.roles[0] == roleData && len(o.Only) == 0 && !slices.Contains(o.Columns, "") && t.isIndex(); t.indexed {
		t.roles[0] = roleDrop
	}
	if o.DropText {
		t.left = t.dropText(t.isText)
	}
	if !slices.Contains(t.roles, roleData) {
		return nil, errorf(data.ErrEmpty, "columns: got none left of %d for the points, want at least one; leave fewer out", len(t.roles))
	}
	if err := t.checkRows(); err != nil {
		return nil, err
	}
	if err := t.findPlaces(&t.head, o.Columns); err != nil {
		return nil, err
	}
	if texts := t.dropText(t.isText); texts != nil {
		t.texts = &TextError{texts}
	}
	return t, nil
}

// maxRow bounds the length of a row of a table in bytes, so a file without line ends, or
// with an unclosed quotation mark, does not fill the memory.
const maxRow = 1 << 26

// A rowLimit refuses rows that are too long.
type rowLimit struct {
	r io.Reader
	n int // bytes read for this row
}

func (l *rowLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.n += n; l.n > maxRow {
		err = errorf(data.ErrFormat, "row: got more than %d MiB, want one point on each line", maxRow>>20)
	}
	return n, err
}

// A lineError is about a line, counted from 1.
type lineError struct {
	line int
	error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.error) }
func (e *lineError) Unwrap() error { return e.error }

// newRows returns a reader of a table's rows after the header, if any.
func newRows(in *Input, opt *Options) (*textReader, error) {
	skipBOM(in)
	t := &textReader{head: head{in: in, open: true, lines: new(data.Lines)}, interned: make(map[string]string)}
	t.limit.r = in
	t.csv = csv.NewReader(bufio.NewReaderSize(&t.limit, readBuffer))
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	top := in.Peek(readBuffer)
	if t.csv.Comma = opt.Separator; t.csv.Comma == 0 {
		t.csv.Comma = guessSeparator(top)
	}
	if len(top) == readBuffer {
		top = top[:bytes.LastIndexByte(top, '\n')+1]
	}
	r := csv.NewReader(bytes.NewReader(top))
	r.Comma, r.FieldsPerRecord = t.csv.Comma, -1
	t.first, _ = r.ReadAll()
	if t.advance(); t.err == io.EOF {
		return nil, errorf(data.ErrEmpty, "table: got no lines, want a point on each line")
	} else if t.err != nil {
		return nil, t.err
	}
	t.top = t.line()
	t.guessed = opt.Header == "" || opt.Header == HeaderAuto
	if opt.Header == HeaderPresent || t.guessed && isHeader(t.row, opt) {
		t.names, t.counted = fieldNames(t.row), t.guessed && counts(t.row)
		t.first = t.first[min(1, len(t.first)):]
		t.advance()
	}
	if len(t.first) == 0 && t.err == nil { // the rows are long
		t.first = [][]string{slices.Clone(t.row)}
	}
	if t.names != nil && len(t.row) == len(t.names)+1 && t.isIndex() { // R's row names have no heading
		t.names = slices.Insert(t.names, 0, "")
	}
	_, t.wide = t.fields()
	t.checkWidth()
	return t, nil
}

// isIndex reports whether the first column may be the row numbers or names that pandas and R
// write: text, or whole numbers that do not repeat.
func (t *textReader) isIndex() bool {
	seen := map[string]bool{}
	for _, row := range t.first {
		if _, err := strconv.ParseUint(row[0], 10, 64); err != nil || seen[row[0]] {
			return t.isText(0)
		}
		seen[row[0]] = true
	}
	return len(seen) > 0
}

// isText reports whether a column holds text in the first rows: fields that are not empty
// and not numbers.
func (t *textReader) isText(column int) bool {
	found := false
	for _, row := range t.first {
		if column >= len(row) || isMissing(row[column]) {
			continue
		}
		field := strings.TrimSpace(row[column])
		_, err := text.ParseFloat(field, 64)
		_, decimal := withPoint(field)
		if decimal || err == nil || errors.Is(err, strconv.ErrRange) || strings.Trim(strings.TrimLeft(field, "+-"), "0123456789.,") == "" {
			return false
		}
		found = true
	}
	return found
}

// isMissing reports whether a field means a missing value.
func isMissing(field string) bool {
	return slices.Contains([]string{"", "na", "n/a", "nan", "null", "none"}, strings.ToLower(strings.TrimSpace(field)))
}

// checkRows returns an error for a table with only a row of names.
func (t *textReader) checkRows() error {
	if t.err == io.EOF {
		return errorf(data.ErrEmpty, "points: got only a header, want at least one point; set the header to no if the first line is a point "+headerKeys)
	}
	return nil
}

// checkWidth sets an error if the last row has another number of fields.
func (t *textReader) checkWidth() {
	if t.err != nil || len(t.row) == t.wide {
		return
	}
	advice := ""
	if t.csv.Comma == ',' && len(t.row) > t.wide && !slices.ContainsFunc(t.row, notDigits) {
		advice = "; do its numbers have decimal commas instead of points?"
	}
	t.err = &lineError{t.line(), errorf(data.ErrFormat, "fields: got %d, want %d as in line %d%s", len(t.row), t.wide, t.top, advice)}
}

// advance reads the next row.
func (t *textReader) advance() {
	t.limit.n = 0
	t.row, t.err = t.csv.Read()
	if bad := new(csv.ParseError); errors.As(t.err, &bad) {
		t.err = &lineError{bad.StartLine, errorf(data.ErrFormat, "quotation marks: %w; put a field that has any in quotation marks and double those inside", bad.Err)}
	}
	if t.wide > 0 {
		t.checkWidth()
	}
}

// count counts the next row.
func (t *textReader) count() {
	t.lines.Add(t.rows, t.line())
	t.rows++
}

// line returns the line where the next row begins, counted from 1.
func (t *textReader) line() int {
	line, _ := t.csv.FieldPos(0)
	return line
}

// read implements reader.
func (t *textReader) read(dst []float32) (int, error) {
	t.err = cmp.Or(t.texts, t.err)
	filled := 0
	for ; t.err == nil && len(dst)-filled >= t.width; t.advance() {
		label, err := t.parse(t.row, dst[filled:filled+t.width], t.sample.Row(t.before+t.rows))
		if err != nil {
			t.err = err
			break
		}
		if t.labeled {
			t.labels = append(t.labels, label)
		}
		filled += t.width
		t.count()
	}
	return filled, t.err
}

// skip implements reader.
func (t *textReader) skip(rows int) (passed int, err error) {
	for ; passed < rows && t.err == nil; t.advance() {
		passed++
		t.count()
	}
	if passed < rows && t.err != io.EOF {
		return passed, t.err
	}
	return passed, nil
}

// parse puts the numbers of a row into dst and, as float64, into sampled unless that is
// nil. It returns the label of the row, or "" if the table has none.
func (t *textReader) parse(row []string, dst []float32, sampled []float64) (label string, err error) {
	for i, field := range row {
		switch t.roles[i] {
		case roleData:
			at := t.place[i]
			if t.offset != nil && t.offset[at] != 0 {
				dst[at], err = parseMinus(field, t.offset[at])
			} else {
				dst[at], err = parseFloat32(field)
			}
			if err != nil {
				return "", t.describe(i, field, err)
			}
			if sampled != nil {
				// A number that float32 can hold fits float64, too.
				sampled[at], _ = parseFloat(field, 64)
			}
		case roleLabel:
			label = t.intern(strings.TrimSpace(field))
		}
	}
	return label, nil
}

// intern returns one string for all labels equal to label. The string does not keep the
// row in memory.
func (t *textReader) intern(label string) string {
	l, ok := t.interned[label]
	if !ok {
		if len(t.interned) == maxInterned {
			clear(t.interned)
		}
		l = strings.Clone(label)
		t.interned[l] = l
	}
	return l
}

// parseFloat32 parses a number. Integers of a few digits, as in images, have a fast path.
func parseFloat32(s string) (float32, error) {
	if n := len(s); n > 0 && n <= 6 && strings.Trim(s, "0123456789") == "" {
		v := 0
		for _, c := range []byte(s) {
			v = 10*v + int(c-'0')
		}
		return float32(v), nil
	}
	v, err := parseFloat(s, 32)
	return float32(v), err
}

// parseFloat parses a number. It returns NaN for a missing one.
func parseFloat(s string, bits int) (float64, error) {
	v, err := text.ParseFloat(strings.TrimSpace(s), bits)
	if err != nil && isMissing(s) {
		return math.NaN(), nil
	}
	return v, err
}

// parseMinus parses a number and returns the number minus an offset.
func parseMinus(s string, offset float64) (float32, error) {
	number := strings.TrimSpace(s)
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return float32(subtract(whole, offset)), nil
	}
	v, err := parseFloat(number, 64)
	v -= offset
	if err == nil && math.Abs(v) > math.MaxFloat32 && simd.IsFinite(v) {
		err = strconv.ErrRange
	}
	return float32(v), err
}

// describe returns the error for a field of the last row that is not a number.
func (t *textReader) describe(column int, field string, err error) error {
	where := fmt.Sprintf("column %d", column+1)
	if t.names != nil && t.names[column] != "" {
		where = "column " + strconv.Quote(t.names[column])
	}
	field = strings.TrimSpace(field)
	want := "a number"
	point, isNumber := withPoint(field)
	switch {
	case errors.Is(err, strconv.ErrRange):
		want = "a number that float32 can hold"
	case isNumber:
		want = fmt.Sprintf("a number with a decimal point (%.40s)", point)
	case len(t.roles) == 1 && strings.ContainsAny(field, " |"):
		want = "fields separated by commas, semicolons or tabs"
	case t.guessed && t.names == nil && t.line() == t.top:
		want = "a number; if the line holds names, set the header to yes " + headerKeys
	case field != "" && !strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		want = "a number, or an empty field for a missing value"
	case field != "":
		want = "a number; is this the label column, or one to drop?"
	}
	return &lineError{t.line(), errorf(data.ErrFormat, "%s: got %.40q, want %s", where, field, want)}
}

// withPoint converts a number with a decimal comma, and optional full stops between
// thousands, to one with a decimal point. It returns false if the field is not such a
// number.
func withPoint(field string) (string, bool) {
	before, after, ok := strings.Cut(field, ",")
	point := strings.ReplaceAll(before, ".", "") + "." + after
	_, err := text.ParseFloat(point, 64)
	return point, ok && (err == nil || errors.Is(err, strconv.ErrRange))
}

// notDigits reports whether a field is not just digits with an optional sign. Splitting
// numbers with decimal commas at commas leaves such digits.
func notDigits(field string) bool {
	digits := strings.TrimLeft(strings.TrimSpace(field), "+-")
	return digits == "" || strings.Trim(digits, "0123456789") != ""
}

// guessSeparator returns the separator in the first line, outside quotation marks: a tab
// if there is one, otherwise a semicolon if there is one, otherwise a comma. The comma is
// last because it may be a decimal comma. It is then reported as such.
func guessSeparator(head []byte) rune {
	separator := ','
	quoted := false
	for _, c := range bytes.TrimLeft(head, "\r\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			return separator
		case c == '\t':
			return '\t'
		case c == ';':
			separator = ';'
		}
	}
	return separator
}

// isHeader reports whether the first row of a table holds names. This is so if none of
// its fields is a number, if the options name one of them, if all wanted columns are
// there, or if the fields count (see counts).
func isHeader(row []string, opt *Options) bool {
	if counts(row) || len(opt.Columns) > 0 && data.MissingColumns(fieldNames(row), opt.Columns) == nil {
		return true
	}
	numbers := false
	mentioned := map[string]bool{}
	for _, name := range slices.Concat([]string{opt.LabelColumn}, opt.Only, opt.Drop, opt.Columns) {
		mentioned[name] = name != ""
	}
	for _, field := range row {
		name := text.ValidName(strings.TrimSpace(field))
		if _, err := text.ParseFloat(name, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			numbers = true
			continue
		}
		if mentioned[name] {
			return true
		}
	}
	return !numbers
}

// counts reports whether three or more fields of a row count 0, 1, 2, …, the default
// names of columns. After an empty field, which pandas writes for its index, fewer
// suffice.
func counts(row []string) bool {
	least := 3
	if strings.TrimSpace(row[0]) == "" {
		row, least = row[1:], 1
	}
	for i, field := range row {
		if strings.TrimSpace(field) != strconv.Itoa(i) {
			return false
		}
	}
	return len(row) >= least
}

// fieldNames returns the fields of a row as names.
func fieldNames(row []string) []string {
	names := make([]string, len(row))
	for i, field := range row {
		names[i] = text.ValidName(strings.TrimSpace(field))
	}
	return names
}

// findPlaces sets the position of each data column in a point, and the fields of h about
// columns. wanted is Options.Columns.
func (l *layout) findPlaces(h *head, wanted []string) error {
	l.place = make([]int, len(l.roles))
	var at []int // the data columns
	for i, r := range l.roles {
		if r != roleData {
			continue
		}
		l.place[i] = len(at)
		at = append(at, i)
		if l.names != nil {
			h.columns = append(h.columns, l.names[i])
		}
	}
	h.width = len(at)
	if len(wanted) == 0 || l.names == nil || slices.Equal(h.columns, wanted) {
		return nil
	}
	for i, r := range l.roles {
		if name := l.names[i]; r != roleData && slices.Contains(wanted, name) {
			return errorf(data.ErrOption, "column %s: got a label or dropped column, want a value, as in training", text.Quote(name))
		}
	}
	from, left, err := data.MatchColumns(wanted, h.columns)
	if err != nil {
		return err
	}
	for _, i := range at {
		l.roles[i] = roleDrop
	}
	for place, k := range from {
		l.place[at[k]], l.roles[at[k]] = place, roleData
	}
	h.width, h.columns, h.left = len(wanted), wanted, left
	return nil
}

// A TextError reports columns of a table that are not numbers. It wraps data.ErrFormat.
type TextError struct {
	Columns []string // names, or numbers counted from 1
}

func (e *TextError) Error() string {
	return "columns that are not numbers: " + strings.Join(e.Columns, ", ")
}

// Unwrap returns data.ErrFormat.
func (e *TextError) Unwrap() error { return data.ErrFormat }

// dropText drops the data columns that are text, and returns their names or numbers. If
// all are text, it drops none, because reading then returns a clearer error.
func (l *layout) dropText(isText func(column int) bool) (dropped []string) {
	roles := slices.Clone(l.roles)
	for i, r := range roles {
		if r == roleData && isText(i) {
			name := strconv.Itoa(i + 1)
			if l.names != nil {
				name = cmp.Or(l.names[i], name)
			}
			roles[i], dropped = roleDrop, append(dropped, name)
		}
	}
	if !slices.Contains(roles, roleData) {
		return nil
	}
	l.roles = roles
	return dropped
}

// findRoles returns the role of each column.
func findRoles(columns int, names []string, o *Options) ([]role, error) {
	const roleOnly = roleDrop + 1 // one of Only, so far
	roles := make([]role, columns)
	var first error
	set := func(to role, list ...string) {
		for _, wanted := range list {
			c, err := findColumn(wanted, columns, names)
			if err == nil && roles[c] != roleData && roles[c] != to {
				err = errorf(data.ErrOption, "column %q: got two uses, want one: as the label, as a value, or dropped", wanted)
			}
			if err == nil {
				roles[c] = to
			}
			first = cmp.Or(first, err)
		}
	}
	set(roleDrop, o.Drop...)
	if o.LabelColumn != "" {
		set(roleLabel, o.LabelColumn)
	}
	set(roleOnly, o.Only...)
	for c, is := range roles {
		switch {
		case is == roleOnly:
			roles[c] = roleData
		case is == roleData && len(o.Only) > 0:
			roles[c] = roleDrop
		}
	}
	return roles, first
}

// findColumn returns the index of the column with the name or number wanted.
func findColumn(wanted string, columns int, names []string) (int, error) {
	found := -1
	for i, name := range names {
		if name != wanted {
			continue
		}
		if found >= 0 {
			return 0, errorf(data.ErrOption, "column %q: got columns %d and %d (counted from 1), want one, by its number", wanted, found+1, i+1)
		}
		found = i
	}
	if found >= 0 {
		return found, nil
	}
	n, err := strconv.Atoi(wanted)
	if err != nil {
		if names == nil {
			return 0, errorf(data.ErrOption, "column %q: got a table without header, want a column's number, counted from 1, or the header yes "+headerKeys, wanted)
		}
		return 0, errorf(data.ErrOption, "column: got %q, want one of %s", wanted, firstNames(names))
	}
	if n < 0 {
		n += columns + 1
	}
	if n < 1 || n > columns {
		return 0, errorf(data.ErrOption, "column: got %s, want 1 to %d, or -1 to -%[2]d from the last", wanted, columns)
	}
	return n - 1, nil
}

// firstNames lists the names of columns, at most ten.
func firstNames(names []string) string {
	if len(names) > 10 {
		return fmt.Sprintf("%q and %d more", names[:10], len(names)-10)
	}
	return fmt.Sprintf("%q", names)
}

// textTable begins to read the columns of a table in text.
func textTable(in *Input, o *Options) (table, error) { return newRows(in, o) }

// fields implements table.
func (t *textReader) fields() (names []string, columns int) {
	return t.names, cmp.Or(len(t.names), len(t.row))
}

// check implements table: every column is text.
func (t *textReader) check(int) error { return nil }

// appendText implements table.
func (t *textReader) appendText(to [][]string, columns []int) error {
	if err := t.checkRows(); err != nil {
		return err
	}
	for ; t.err == nil; t.advance() {
		for k, i := range columns {
			field := strings.TrimSpace(t.row[i])
			if !utf8.ValidString(field) {
				return &lineError{t.line(), errorf(data.ErrFormat, "column %d: got %.40q, want text in UTF-8", i+1, field)}
			}
			to[k] = append(to[k], t.intern(field))
		}
	}
	if t.err != io.EOF {
		return t.err
	}
	return nil
}
