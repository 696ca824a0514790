package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cne/data"
	"cne/internal/finite"
	"cne/internal/text"
)

// A role is what a column of a table is for.
type role byte

const (
	roleData role = iota
	roleLabel
	roleDrop
)

// A layout is what the columns of a table are for.
type layout struct {
	names []string // of the columns, nil without a header
	roles []role   // of the columns
	place []int    // of each column with data among the values of a point
}

// A textReader reads a table in text, always one row ahead. Its values may be NaN or
// infinite.
type textReader struct {
	head
	rowReader
	layout
	rows    int  // read so far
	guessed bool // whether there is a header was guessed
	top     int  // line of the first row

	row      [][]byte // the next row, or err says why there is none
	err      error
	labels   []string // of the rows read since takeLabels
	interned map[string]string
}

// maxInterned bounds the labels that are remembered in order to share memory
// among equal ones, which does not pay where labels hardly repeat.
const maxInterned = 1 << 12

// openText begins to read points from a table in text: one point per line, with fields
// separated by commas, semicolons or tabs, which may be quoted as RFC 4180 says. See Options
// for the header, the column of labels and columns to drop; every other field must be a
// number with a decimal point. Empty lines are passed over.
func openText(in *Input, o *Options) (reader, error) {
	t, err := newRows(in, o)
	if err != nil {
		return nil, err
	}
	if t.roles, err = findRoles(len(t.row), t.names, o); err != nil {
		return nil, err
	}
	t.labeled = slices.Contains(t.roles, roleLabel)
	t.counted = t.guessed && t.names != nil && counts(t.row)
	if !slices.Contains(t.roles, roleData) {
		return nil, errorf(data.ErrEmpty, "no column is left for the points after the labels and the dropped columns; drop fewer of the %d columns", len(t.roles))
	}
	if err := t.skipNames(); err != nil {
		return nil, err
	}
	if err := t.findPlaces(&t.head, o.Columns); err != nil {
		return nil, err
	}
	return t, nil
}

// newRows begins to read the rows of a table, of which the first is the next: its
// names, if it has some, which skipNames then passes over.
func newRows(in *Input, opt *Options) (*textReader, error) {
	t := &textReader{head: head{in: in, open: true}, interned: make(map[string]string)}
	skipBOM(in)
	t.r = in.r
	t.comma = byte(opt.Separator)
	if t.comma == 0 {
		t.comma = guessSeparator(in.Peek(readBuffer))
	}
	if t.advance(); t.err == io.EOF {
		return nil, errorf(data.ErrEmpty, "there are no lines in the table; write one point on each line")
	} else if t.err != nil {
		return nil, t.err
	}
	t.top = t.first
	t.guessed = opt.Header == "" || opt.Header == HeaderAuto
	if opt.Header == HeaderPresent || t.guessed && isHeader(t.row, opt) {
		t.names = fieldNames(t.row)
	}
	return t, nil
}

// skipNames passes over the row of names, if there is one.
func (t *textReader) skipNames() error {
	if t.names == nil {
		return nil
	}
	if t.advance(); t.err == io.EOF {
		return errorf(data.ErrEmpty, "the table has a header but no points; write one point on each line below it, or set the header to none if the first line is a point")
	}
	return nil
}

// checkWidth refuses the row read last if it has another number of fields than the
// first, which has so many.
func (t *textReader) checkWidth(columns int) error {
	if len(t.row) == columns {
		return nil
	}
	advice := ""
	if t.comma == ',' && len(t.row) > columns && !slices.ContainsFunc(t.row, notDigits) {
		advice = ", and if its numbers have decimal commas, write decimal points in their place"
	}
	return errorf(data.ErrFormat, "line %d (counted from 1) has %s, but line %d has %d; give every line the same number of fields%s",
		t.first, plural(len(t.row), "field"), t.top, columns, advice)
}

// advance reads the next row.
func (t *textReader) advance() { t.row, t.err = t.next() }

// read implements reader.
func (t *textReader) read(dst []float32) (int, error) {
	filled := 0
	for ; t.err == nil && len(dst)-filled >= t.width; t.advance() {
		if err := t.checkWidth(len(t.roles)); err != nil {
			t.err = err
			break
		}
		label, err := t.parse(t.row, dst[filled:filled+t.width], t.sample.Row(t.before+t.rows))
		if err != nil {
			t.err = err
			break
		}
		if t.labeled {
			t.labels = append(t.labels, label)
		}
		filled += t.width
		t.rows++
	}
	return filled, t.err
}

// skip implements reader.
func (t *textReader) skip(rows int) (passed int, err error) {
	for ; passed < rows && t.err == nil; t.advance() {
		if err := t.checkWidth(len(t.roles)); err != nil {
			return passed, err
		}
		passed++
	}
	if passed < rows && t.err != io.EOF {
		return passed, t.err
	}
	return passed, nil
}

// takeLabels implements reader.
func (t *textReader) takeLabels() []string {
	labels := t.labels
	t.labels = nil
	return labels
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// parse puts the numbers of a row into dst and, as float64, into sampled unless that
// is nil, and returns its label, which is empty if the table has none.
func (t *textReader) parse(row [][]byte, dst []float32, sampled []float64) (label string, err error) {
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
				// What float32 has room for, float64 has.
				sampled[at], _ = text.ParseFloat(string(bytes.TrimSpace(field)), 64)
			}
		case roleLabel:
			label = t.intern(bytes.TrimSpace(field))
		}
	}
	return label, nil
}

// intern returns a string that stands for all labels equal to label.
func (t *textReader) intern(label []byte) string {
	l, ok := t.interned[string(label)]
	if !ok {
		if len(t.interned) == maxInterned {
			clear(t.interned)
		}
		l = string(label)
		t.interned[l] = l
	}
	return l
}

// parseFloat32 reads a number. Whole numbers of a few digits, of which images
// consist, take a short way.
func parseFloat32(s []byte) (float32, error) {
	if n := len(s); n > 0 && n <= 6 {
		v := 0
		for _, c := range s {
			if c < '0' || c > '9' {
				v = -1
				break
			}
			v = 10*v + int(c-'0')
		}
		if v >= 0 {
			return float32(v), nil
		}
	}
	v, err := text.ParseFloat(string(bytes.TrimSpace(s)), 32)
	return float32(v), err
}

// parseMinus reads a number and returns what it differs by from an offset.
func parseMinus(s []byte, offset float64) (float32, error) {
	number := string(bytes.TrimSpace(s))
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return float32(subtract(whole, offset)), nil
	}
	v, err := text.ParseFloat(number, 64)
	v -= offset
	if err == nil && math.Abs(v) > math.MaxFloat32 && finite.Is(v) {
		err = strconv.ErrRange
	}
	return float32(v), err
}

// describe says which field of the row read last is no number.
func (t *textReader) describe(column int, raw []byte, err error) error {
	where := fmt.Sprintf("line %d, column %d", t.first, column+1)
	if t.names != nil && t.names[column] != "" {
		where += fmt.Sprintf(" (%q)", t.names[column])
	}
	where += ", both counted from 1"
	field := string(bytes.TrimSpace(raw))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errorf(data.ErrFormat, "%s: %.40q is too large for a float32; scale the column or drop it", where, field)
	case field == "":
		return errorf(data.ErrFormat, "%s: the field is empty; fill it in, remove the line, or drop the column", where)
	}
	if point, ok := withPoint(field); ok {
		return errorf(data.ErrFormat, "%s: %.40q has a decimal comma; write all numbers with a decimal point, this one as %.40s", where, field, point)
	}
	advice := "name this column as label column or drop it"
	if t.guessed && t.names == nil && t.first == t.top {
		advice += ", or set the header to present if the line holds names"
	}
	if len(t.roles) == 1 && strings.ContainsAny(field, " |") {
		advice = "separate fields by commas, semicolons or tabs"
	}
	return errorf(data.ErrFormat, "%s: %.40q is not a number; %s", where, field, advice)
}

// withPoint returns a number with a decimal comma, and perhaps full stops between its
// thousands, as one with a decimal point; false if the field is no such number.
func withPoint(field string) (string, bool) {
	before, after, ok := strings.Cut(field, ",")
	point := strings.ReplaceAll(before, ".", "") + "." + after
	_, err := text.ParseFloat(point, 64)
	return point, ok && (err == nil || errors.Is(err, strconv.ErrRange))
}

// notDigits tells whether a field is anything but digits, perhaps with a sign, which
// are what commas leave of numbers with decimal commas.
func notDigits(field []byte) bool {
	digits := bytes.TrimLeft(bytes.TrimSpace(field), "+-")
	return len(digits) == 0 || len(bytes.Trim(digits, "0123456789")) > 0
}

// guessSeparator finds the separator in the first line, outside quotation
// marks: a tab if there is one, else a semicolon, else a comma. The comma comes
// last because it may be a decimal comma, which is then reported as such.
func guessSeparator(head []byte) byte {
	separator := byte(',')
	quoted := false
	for _, c := range bytes.TrimLeft(head, "\r\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			return separator
		case c == '\t':
			return c
		case c == ';':
			separator = c
		}
	}
	return separator
}

// isHeader tells whether the first row of a table holds names: none of its
// fields is a number, or one is a name that the options mention, or all columns that
// are wanted are there, or the fields count.
func isHeader(row [][]byte, opt *Options) bool {
	if counts(row) || len(opt.Columns) > 0 && data.MissingColumns(fieldNames(row), opt.Columns) == nil {
		return true
	}
	numbers := false
	mentioned := map[string]bool{}
	for _, name := range slices.Concat([]string{opt.LabelColumn}, opt.Only, opt.Drop, opt.Columns) {
		mentioned[name] = name != ""
	}
	for _, field := range row {
		name := text.ValidName(string(bytes.TrimSpace(field)))
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

// counts tells whether the fields of a row, three or more, count 0, 1, 2, … as the
// names of columns do that were given none.
func counts(row [][]byte) bool {
	for i, field := range row {
		if string(bytes.TrimSpace(field)) != strconv.Itoa(i) {
			return false
		}
	}
	return len(row) >= 3
}

// fieldNames returns the fields of a row as names.
func fieldNames(row [][]byte) []string {
	names := make([]string, len(row))
	for i, field := range row {
		names[i] = text.ValidName(string(bytes.TrimSpace(field)))
	}
	return names
}

// findPlaces decides where the value of each data column goes, and fills in what h says of
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
			return errorf(data.ErrOption, "the column %s was trained on, but is now the label column or to be dropped; take it out there", text.Quote(name))
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

// findRoles decides what each of the columns is for.
func findRoles(columns int, names []string, opt *Options) ([]role, error) {
	roles := make([]role, columns)
	for _, wanted := range opt.Drop {
		c, err := findColumn(wanted, columns, names)
		if err != nil {
			return nil, err
		}
		roles[c] = roleDrop
	}
	if opt.LabelColumn != "" {
		c, err := findColumn(opt.LabelColumn, columns, names)
		if err != nil {
			return nil, err
		}
		if roles[c] == roleDrop {
			return nil, errorf(data.ErrOption, "column %q is both the label column and to be dropped; take it out of one of the two", opt.LabelColumn)
		}
		roles[c] = roleLabel
	}
	if len(opt.Only) > 0 {
		only := make([]bool, columns)
		for _, wanted := range opt.Only {
			c, err := findColumn(wanted, columns, names)
			if err != nil {
				return nil, err
			}
			if roles[c] != roleData {
				return nil, errorf(data.ErrOption, "column %q is both among the columns to be taken and the label column or one to be dropped; take it out of one of the two", wanted)
			}
			only[c] = true
		}
		for c := range roles {
			if roles[c] == roleData && !only[c] {
				roles[c] = roleDrop
			}
		}
	}
	return roles, nil
}

// findColumn returns the index of the column that is called wanted, or whose
// number wanted is.
func findColumn(wanted string, columns int, names []string) (int, error) {
	found := -1
	for i, name := range names {
		if name != wanted {
			continue
		}
		if found >= 0 {
			return 0, errorf(data.ErrOption, "columns %d and %d (counted from 1) are both called %q; give the number of the one that is meant", found+1, i+1, wanted)
		}
		found = i
	}
	if found >= 0 {
		return found, nil
	}
	n, err := strconv.Atoi(wanted)
	if err != nil {
		if names == nil {
			return 0, errorf(data.ErrOption, "the column %q cannot be found, for the table has no header; give the column's number, counted from 1, or set the header to present", wanted)
		}
		shown, more := names, ""
		if len(shown) > 10 {
			shown, more = shown[:10], fmt.Sprintf(" and %d more", len(names)-10)
		}
		return 0, errorf(data.ErrOption, "there is no column %q; the columns are %q%s", wanted, shown, more)
	}
	if n < 0 {
		n += columns + 1
	}
	if n < 1 || n > columns {
		return 0, errorf(data.ErrOption, "there is no column %s; the table has %s, counted from 1, or from -1 backwards from the last", wanted, plural(columns, "column"))
	}
	return n - 1, nil
}

// textTable begins to read the columns of a table in text.
func textTable(in *Input, o *Options) (table, error) { return newRows(in, o) }

// fields implements table.
func (t *textReader) fields() (names []string, columns int) { return t.names, len(t.row) }

// check implements table: every column is text.
func (t *textReader) check(int) error { return nil }

// appendText implements table.
func (t *textReader) appendText(to [][]string, columns []int) error {
	width := len(t.row)
	if err := t.skipNames(); err != nil {
		return err
	}
	for ; t.err == nil; t.advance() {
		if err := t.checkWidth(width); err != nil {
			return err
		}
		for k, i := range columns {
			field := bytes.TrimSpace(t.row[i])
			if !utf8.Valid(field) {
				return errorf(data.ErrFormat, "line %d, column %d, both counted from 1, is not UTF-8; save the file in that encoding", t.first, i+1)
			}
			to[k] = append(to[k], t.intern(field))
		}
	}
	if t.err != io.EOF {
		return t.err
	}
	return nil
}
