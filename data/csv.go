package data

import (
	"bufio"
	"bytes"
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
	s, err := newSource(r)
	if err != nil {
		return nil, err
	}
	var b builder
	p, err := readTable("", s, &b, opt)
	if err != nil {
		return nil, err
	}
	return assemble("", &b, []part{p})
}

// A role is what a column of a table is for.
type role byte

const (
	roleData role = iota
	roleLabel
	roleDrop
)

// A table is a CSV file that is being read.
type table struct {
	rowReader
	names   []string // of the columns, nil without a header
	roles   []role   // of the columns
	guessed bool     // whether there is a header was guessed
	top     int      // line of the first row
	labels  map[string]string
}

// readTable appends the points of a table to b.
func readTable(path string, s *source, b *builder, opt Options) (part, error) {
	skipBOM(s)
	t := &table{labels: make(map[string]string)}
	t.r = s.r
	t.comma = byte(opt.Separator)
	if t.comma == 0 {
		t.comma = guessSeparator(s.head(readBuffer))
	}
	row, err := t.next()
	if err == io.EOF {
		return part{}, errorf(ErrEmpty, "there are no lines in the table; write one point on each line")
	} else if err != nil {
		return part{}, err
	}
	t.top = t.first
	t.guessed = opt.Header == "" || opt.Header == HeaderAuto
	if opt.Header == HeaderPresent || t.guessed && isHeader(row, opt) {
		t.names = make([]string, len(row))
		for i, name := range row {
			t.names[i] = string(bytes.TrimSpace(name))
		}
	}
	if t.roles, err = findRoles(len(row), t.names, opt); err != nil {
		return part{}, err
	}

	p := part{name: path}
	d := 0
	for i, r := range t.roles {
		if r == roleData {
			d++
			if t.names != nil {
				p.columns = append(p.columns, t.names[i])
			}
		}
	}
	if d == 0 {
		return part{}, errorf(ErrEmpty, "no column is left for the points after the labels and the dropped columns; drop fewer of the %d columns", len(t.roles))
	}
	if t.names != nil {
		row, err = t.next()
		if err == io.EOF {
			return part{}, errorf(ErrEmpty, "the table has a header but no points; write one point on each line below it, or set the header to none if the first line is a point")
		}
	}
	if err := b.begin(path, d); err != nil {
		return part{}, err
	}
	labelled := slices.Contains(t.roles, roleLabel)
	before := len(b.x)
	for ; err == nil; row, err = t.next() {
		if len(row) != len(t.roles) {
			return part{}, errorf(ErrFormat, "line %d (counted from 1) has %s, but line %d has %d; give every line the same number of fields",
				t.first, plural(len(row), "field"), t.top, len(t.roles))
		}
		if cap(b.x)-len(b.x) < d {
			b.reserve(max(d, s.room(len(b.x)-before)-(len(b.x)-before)))
		}
		label, err := t.parse(row, b.extend(d))
		if err != nil {
			return part{}, err
		}
		if labelled {
			p.labels = append(p.labels, label)
		}
		p.rows++
	}
	if err != io.EOF {
		return part{}, err
	}
	return p, nil
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
			if dst[at], err = parseFloat32(field); err == nil && dst[at]-dst[at] != 0 {
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

// intern returns the one string that stands for all labels equal to label.
func (t *table) intern(label []byte) string {
	l, ok := t.labels[string(label)]
	if !ok {
		l = string(label)
		t.labels[l] = l
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
	advice := "name this column as label column or drop it"
	if t.guessed && t.names == nil && t.first == t.top {
		advice += ", or set the header to present if the line holds names"
	}
	if len(t.roles) == 1 && strings.ContainsAny(field, " |") {
		advice = "separate fields by commas, semicolons or tabs"
	}
	return errorf(ErrFormat, "%s: %.40q is not a number; %s", where, field, advice)
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
	out := bufio.NewWriterSize(w, readBuffer)
	var line []byte
	for j := range m.D {
		if j > 0 {
			line = append(line, ',')
		}
		if m.D <= 3 {
			line = append(line, "xyz"[j])
		} else {
			line = strconv.AppendInt(append(line, 'x'), int64(j)+1, 10)
		}
	}
	var names []string
	if labels != nil {
		line = append(line, ",label"...)
		names = quoteAll(labels.Names)
	}
	out.Write(append(line, '\n'))
	for i := range m.N {
		line = line[:0]
		for j, v := range m.Row(i) {
			if j > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
		}
		if labels != nil {
			c := labels.Class[i]
			if c < 0 || int(c) >= len(names) {
				return errorf(ErrLabels, "the label of point %d (counted from 1) is class %d, but there are names for %d classes only; number the classes from 0", i+1, c, len(names))
			}
			line = append(append(line, ','), names[c]...)
		}
		out.Write(append(line, '\n'))
	}
	// A bufio.Writer keeps the first error and returns it here.
	return out.Flush()
}

// quoteAll puts the names in quotation marks that need them.
func quoteAll(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = name
		if name == "" || strings.ContainsAny(name, ",;\t\"\r\n") {
			quoted[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return quoted
}
