package data

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ReadCSV reads points from a table in text: one point per line, with fields
// separated by commas, semicolons or tabs, which may be quoted as RFC 4180
// says; plain or compressed with gzip. See Options for the header, the column
// of labels and columns to drop; every other field must be a number with a
// decimal point. Empty lines are passed over. The dataset has no name.
//
// Errors name the line and the column, both counted from 1. A line of another
// length, or a field that is no number, gives ErrFormat; a column that is not
// there ErrOption; a table without points ErrEmpty.
func ReadCSV(r io.Reader, opt Options) (*Dataset, error) {
	opt.Labels = nil
	if err := opt.check(); err != nil {
		return nil, err
	}
	s, err := newByteSource(context.Background(), r)
	if err != nil {
		return nil, err
	}
	var st stream
	if err := st.beginTable(s, opt); err != nil {
		return nil, err
	}
	return assembleOne(&st)
}

// A role is what a column of a table is for.
type role byte

const (
	roleData role = iota
	roleLabel
	roleDrop
)

// A table is a CSV file that is being read, always one row ahead.
type table struct {
	rowReader
	s       *byteSource
	names   []string // of the columns, nil without a header
	roles   []role   // of the columns
	width   int      // number of data columns
	columns []string // names of the data columns, nil without a header
	labeled bool     // there is a label column
	guessed bool     // whether there is a header was guessed
	top     int      // line of the first row
	lenient bool     // values that are not finite are no errors

	row      [][]byte // the next row, or err says why there is none
	err      error
	labels   []string // of the rows read since takeLabels
	interned map[string]string
}

// maxInterned bounds the labels that are remembered in order to share memory
// among equal ones, which does not pay where labels hardly repeat.
const maxInterned = 1 << 12

// newTable reads the head of a table.
func newTable(s *byteSource, opt Options) (*table, error) {
	skipBOM(s)
	t := &table{s: s, interned: make(map[string]string)}
	t.r = s.r
	t.comma = byte(opt.Separator)
	if t.comma == 0 {
		t.comma = guessSeparator(s.head(readBuffer))
	}
	if t.advance(); t.err == io.EOF {
		return nil, errorf(ErrEmpty, "there are no lines in the table; write one point on each line")
	} else if t.err != nil {
		return nil, t.err
	}
	t.top = t.first
	t.guessed = opt.Header == "" || opt.Header == HeaderAuto
	if opt.Header == HeaderPresent || t.guessed && isHeader(t.row, opt) {
		t.names = make([]string, len(t.row))
		for i, name := range t.row {
			t.names[i] = string(bytes.TrimSpace(name))
		}
	}
	var err error
	if t.roles, err = findRoles(len(t.row), t.names, opt); err != nil {
		return nil, err
	}
	t.labeled = slices.Contains(t.roles, roleLabel)
	for i, r := range t.roles {
		if r == roleData {
			t.width++
			if t.names != nil {
				t.columns = append(t.columns, t.names[i])
			}
		}
	}
	if t.width == 0 {
		return nil, errorf(ErrEmpty, "no column is left for the points after the labels and the dropped columns; drop fewer of the %d columns", len(t.roles))
	}
	if t.names != nil {
		if t.advance(); t.err == io.EOF {
			return nil, errorf(ErrEmpty, "the table has a header but no points; write one point on each line below it, or set the header to none if the first line is a point")
		}
	}
	return t, nil
}

// advance reads the next row.
func (t *table) advance() { t.row, t.err = t.next() }

// read implements valueReader.
func (t *table) read(dst []float32) (int, error) {
	filled := 0
	for ; t.err == nil && len(dst)-filled >= t.width; t.advance() {
		if len(t.row) != len(t.roles) {
			advice := ""
			if t.comma == ',' && len(t.row) > len(t.roles) && !slices.ContainsFunc(t.row, notDigits) {
				advice = ", and if its numbers have decimal commas, write decimal points in their place"
			}
			t.err = errorf(ErrFormat, "line %d (counted from 1) has %s, but line %d has %d; give every line the same number of fields%s",
				t.first, plural(len(t.row), "field"), t.top, len(t.roles), advice)
			break
		}
		label, err := t.parse(t.row, dst[filled:filled+t.width])
		if err != nil {
			t.err = err
			break
		}
		if t.labeled {
			t.labels = append(t.labels, label)
		}
		filled += t.width
	}
	return filled, t.err
}

// step implements valueReader.
func (t *table) step() int {
	if t.err != nil {
		return 0
	}
	return t.width
}

// room implements valueReader.
func (t *table) room(done int) int { return max(t.width, t.s.room(done)-done) }

// takeLabels implements valueReader.
func (t *table) takeLabels() []string {
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

// parse puts the numbers of a row into dst and returns its label, which is
// empty if the table has none.
func (t *table) parse(row [][]byte, dst []float32) (label string, err error) {
	at := 0
	for i, field := range row {
		switch t.roles[i] {
		case roleData:
			if dst[at], err = parseFloat32(field); err == nil && !t.lenient && dst[at]-dst[at] != 0 {
				err = ErrNotFinite
			}
			if err != nil {
				return "", t.describe(i, field, err)
			}
			at++
		case roleLabel:
			label = t.intern(bytes.TrimSpace(field))
		}
	}
	return label, nil
}

// intern returns a string that stands for all labels equal to label.
func (t *table) intern(label []byte) string {
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
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(s)), 32)
	return float32(v), err
}

// describe says which field of the row read last is no number.
func (t *table) describe(column int, raw []byte, err error) error {
	where := fmt.Sprintf("line %d, column %d", t.first, column+1)
	if t.names != nil && t.names[column] != "" {
		where += fmt.Sprintf(" (%q)", t.names[column])
	}
	where += ", both counted from 1"
	field := string(bytes.TrimSpace(raw))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errorf(ErrFormat, "%s: %.40q is too large for a float32; scale the column or drop it", where, field)
	case errors.Is(err, ErrNotFinite):
		return errorf(ErrNotFinite, "%s: %.40q is not finite; remove the line or replace the value", where, field)
	case field == "":
		return errorf(ErrFormat, "%s: the field is empty; fill it in, remove the line, or drop the column", where)
	}
	if point, ok := withPoint(field); ok {
		return errorf(ErrFormat, "%s: %.40q has a decimal comma; write all numbers with a decimal point, this one as %.40s", where, field, point)
	}
	advice := "name this column as label column or drop it"
	if t.guessed && t.names == nil && t.first == t.top {
		advice += ", or set the header to present if the line holds names"
	}
	if len(t.roles) == 1 && strings.ContainsAny(field, " |") {
		advice = "separate fields by commas, semicolons or tabs"
	}
	return errorf(ErrFormat, "%s: %.40q is not a number; %s", where, field, advice)
}

// withPoint returns a number with a decimal comma, and perhaps full stops between its
// thousands, as one with a decimal point; false if the field is no such number.
func withPoint(field string) (string, bool) {
	before, after, ok := strings.Cut(field, ",")
	point := strings.ReplaceAll(before, ".", "") + "." + after
	_, err := strconv.ParseFloat(point, 64)
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
// fields is a number, or one is a name that the options mention, or they count
// 0, 1, 2, … as the names of columns do that were given none.
func isHeader(row [][]byte, opt Options) bool {
	numbers, counting := false, len(row) >= 3
	for i, field := range row {
		counting = counting && string(bytes.TrimSpace(field)) == strconv.Itoa(i)
	}
	if counting {
		return true
	}
	for _, field := range row {
		name := string(bytes.TrimSpace(field))
		if _, err := strconv.ParseFloat(name, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			numbers = true
			continue
		}
		for _, wanted := range append([]string{opt.LabelColumn}, opt.Drop...) {
			if wanted != "" && wanted == name {
				return true
			}
		}
	}
	return !numbers
}

// findRoles decides what each of the columns is for.
func findRoles(columns int, names []string, opt Options) ([]role, error) {
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
			return nil, errorf(ErrOption, "column %q is both the label column and to be dropped; take it out of one of the two", opt.LabelColumn)
		}
		roles[c] = roleLabel
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
			return 0, errorf(ErrOption, "columns %d and %d (counted from 1) are both called %q; give the number of the one that is meant", found+1, i+1, wanted)
		}
		found = i
	}
	if found >= 0 {
		return found, nil
	}
	n, err := strconv.Atoi(wanted)
	if err != nil {
		if names == nil {
			return 0, errorf(ErrOption, "the column %q cannot be found, for the table has no header; give the column's number, counted from 1, or set the header to present", wanted)
		}
		shown, more := names, ""
		if len(shown) > 10 {
			shown, more = shown[:10], fmt.Sprintf(" and %d more", len(names)-10)
		}
		return 0, errorf(ErrOption, "there is no column %q; the columns are %q%s", wanted, shown, more)
	}
	if n < 0 {
		n += columns + 1
	}
	if n < 1 || n > columns {
		return 0, errorf(ErrOption, "there is no column %s; the table has %s, counted from 1, or from -1 backwards from the last", wanted, plural(columns, "column"))
	}
	return n - 1, nil
}

// WriteCSV writes points as a table with a header: columns x, y and z for up
// to three values per point and x1, x2, … for more, and a last column called
// label if labels is not nil. Numbers are written with as many digits as it
// takes to read the same float32 again. The error is that of w, or ErrLabels
// or ErrShape if the arguments contradict each other.
func WriteCSV(w io.Writer, m *Matrix, labels *Labels) error {
	if err := m.check(); err != nil {
		return err
	}
	if labels != nil && len(labels.Class) != m.N {
		return errorf(ErrLabels, "there are %d labels for %d points; give one label per point", len(labels.Class), m.N)
	}
	out, err := NewCSVWriter(w, m.D, labels != nil)
	if err != nil {
		return err
	}
	for i := range m.N {
		label := ""
		if labels != nil {
			c := labels.Class[i]
			if c < 0 || int(c) >= len(labels.Names) {
				return errorf(ErrLabels, "the label of point %d (counted from 1) is class %d, but there are names for %d classes only; number the classes from 0", i+1, c, len(labels.Names))
			}
			label = labels.Names[c]
		}
		out.writeRow(m.Row(i), label)
	}
	return out.Close()
}

// A CSVWriter writes a table as WriteCSV does, block by block.
type CSVWriter struct {
	out     *bufio.Writer
	d       int
	labeled bool
	line    []byte
}

// NewCSVWriter begins a table of points of d values, with a column of labels
// if labelled. A d below 1 gives ErrShape.
func NewCSVWriter(w io.Writer, d int, labeled bool) (*CSVWriter, error) {
	if d < 1 {
		return nil, errorf(ErrShape, "a table of points of %d values cannot be written; a point needs at least one", d)
	}
	c := &CSVWriter{out: bufio.NewWriterSize(w, readBuffer), d: d, labeled: labeled}
	line := c.line
	for j := range d {
		if j > 0 {
			line = append(line, ',')
		}
		if d <= 3 {
			line = append(line, "xyz"[j])
		} else {
			line = strconv.AppendInt(append(line, 'x'), int64(j)+1, 10)
		}
	}
	if labeled {
		line = append(line, ",label"...)
	}
	c.line = append(line, '\n')
	_, err := c.out.Write(c.line)
	return c, err
}

// Write adds the rows of m with their labels, which are nil for a table
// without. Rows of another width give ErrShape, no rows ErrEmpty, and labels
// that are not one per row, or not wanted, ErrLabels; other errors are those
// of the underlying writer, and last.
func (c *CSVWriter) Write(m *Matrix, labels []string) error {
	if err := m.checkWidth(c.d); err != nil {
		return err
	}
	switch {
	case c.labeled && len(labels) != m.N:
		return errorf(ErrLabels, "there are %d labels for %d points; give one label per point", len(labels), m.N)
	case !c.labeled && labels != nil:
		return errorf(ErrLabels, "the points have labels, but the table was begun without a column for them; begin it with one")
	}
	for i := range m.N {
		label := ""
		if c.labeled {
			label = labels[i]
		}
		c.writeRow(m.Row(i), label)
	}
	// Without new bytes, Write returns the error of earlier ones.
	_, err := c.out.Write(nil)
	return err
}

// writeRow writes a row; errors are kept by the buffer.
func (c *CSVWriter) writeRow(row []float32, label string) {
	line := c.line[:0]
	for j, v := range row {
		if j > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
	}
	if c.labeled {
		line = appendField(append(line, ','), label)
	}
	c.line = append(line, '\n')
	c.out.Write(c.line)
}

// Close writes what is left in the buffer. It does not close the underlying
// writer.
func (c *CSVWriter) Close() error { return c.out.Flush() }

// appendField appends a field, in quotation marks if it needs them.
func appendField(line []byte, field string) []byte {
	if field == "" || strings.ContainsAny(field, ",;\t\"\r\n") {
		field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
	}
	return append(line, field...)
}
