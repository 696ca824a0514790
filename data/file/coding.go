package file

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cne/data"
	"cne/internal/selection"
	"cne/internal/text"
)

// A coded column is a column of a table with the coding of its fields.
type coded struct {
	data.Coding
	width   int            // numbers of a field
	na      marks          // of a missing value
	index   map[string]int // of the values of a category
	unknown string         // the first value that is not among them
}

// groups are numbers with separators between thousands.
var groups = map[data.CodingKind]*regexp.Regexp{
	data.CodingPoint: regexp.MustCompile(`^[+−-]?([1-9]\d{0,2}(,\d{3})+|[1-9]\d{0,2}([ \x{a0}\x{202f}'’]\d{3})+|\d+)?(\.\d*)?([eE][+−-]?\d+)?$`),
	data.CodingComma: regexp.MustCompile(`^[+−-]?([1-9]\d{0,2}(\.\d{3})+|[1-9]\d{0,2}([ \x{a0}\x{202f}'’]\d{3})+|\d+)?(,\d*)?([eE][+−-]?\d+)?$`),
}

// dateOrders are the orders of the kinds of dates.
var dateOrders = map[data.CodingKind]text.DateOrder{data.CodingDate: text.DateClear, data.CodingMonthDay: text.DateMonthDay,
	data.CodingDayMonth: text.DateDayMonth}

func isDate(kind data.CodingKind) bool { _, ok := dateOrders[kind]; return ok }

// plain returns a field, which is not missing, as a plain number. ok is false if it is not
// of the kind.
func plain(kind data.CodingKind, field string) (number string, ok bool) {
	switch {
	case kind == "":
		_, err := text.ParseFloat(field, 64)
		return field, err == nil || errors.Is(err, strconv.ErrRange)
	case kind == data.CodingTruth:
		isTrue := strings.EqualFold(field, "true")
		return selection.If(isTrue, "1", "0"), isTrue || strings.EqualFold(field, "false")
	case isDate(kind):
		days, ok := text.ParseDays(field, dateOrders[kind])
		return strconv.FormatFloat(days, 'g', -1, 64), ok
	case groups[kind] != nil && groups[kind].MatchString(field):
		number = strings.Map(func(r rune) rune {
			switch {
			case r == ',' && kind == data.CodingComma, r == '.' && kind == data.CodingPoint:
				return '.'
			case r >= '0' && r <= '9', strings.ContainsRune("+-−eE", r):
				return r
			}
			return -1
		}, field)
		return plain("", number)
	}
	return "", false
}

// vector returns the numbers of a list such as [1, 2], {1,2} or [1 2]; nil if the field is
// none. null and nan are missing.
func vector(field string) (numbers []float64) {
	n := len(field)
	if n < 2 || field[:1]+field[n-1:] != "[]" && field[:1]+field[n-1:] != "{}" {
		return nil
	}
	for _, item := range strings.FieldsFunc(field[1:n-1], func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		v, err := parseFloat(item, 64)
		if err != nil {
			return nil
		}
		numbers = append(numbers, v)
	}
	return numbers
}

// wanted says what fields of a kind are.
var wanted = map[data.CodingKind]string{data.CodingTruth: "true or false", data.CodingDate: "a date",
	data.CodingMonthDay: "a date", data.CodingDayMonth: "a date"}

// put writes the numbers of a field, NaN for a missing one. A value that is not among the
// known ones of a category is all 0.
func (c *coded) put(dst []float64, field string) error {
	value, known := c.index[field]
	switch clear(dst); {
	case text.IsMissing(field), c.Kind != data.CodingCategory && text.IsMissingNumber(field):
		selection.Fill(dst, math.NaN())
	case c.Kind == data.CodingCategory && known:
		dst[value] = 1
	case c.Kind == data.CodingCategory:
		c.unknown = cmp.Or(c.unknown, field)
	case c.Kind == data.CodingVector:
		if numbers := vector(field); copy(dst, numbers) < len(dst) || len(numbers) > len(dst) {
			return errorf(data.ErrFormat, "column %s: got %.40q with %d numbers, want a list of %d, as in the rows before",
				text.Quote(c.Column), field, len(numbers), len(dst))
		}
	default:
		number, ok := plain(c.Kind, field)
		if dst[0], _ = text.ParseFloat(number, 64); !ok {
			return fieldError{errorf(data.ErrFormat, "column %s: got %.40q, want %s, as in the rows before", text.Quote(c.Column),
				field, cmp.Or(wanted[c.Kind], "a number"))}
		}
	}
	if c.na.numbers != nil && (c.Kind == data.CodingVector || groups[c.Kind] != nil) {
		for k, v := range dst {
			if slices.Contains(c.na.numbers, float32(v)) {
				dst[k] = math.NaN()
			}
		}
	}
	return nil
}

// write puts the numbers of a field into a point, relative to an offset, and into sampled
// unless that is nil. numbers is memory for them.
func (c *coded) write(dst []float32, offset, sampled, numbers []float64, field string) error {
	numbers = numbers[:c.width]
	if err := c.put(numbers, field); err != nil {
		return err
	}
	if sampled != nil {
		copy(sampled[c.First:], numbers)
	}
	for k, v := range numbers {
		if offset != nil {
			v -= offset[c.First+k]
		}
		dst[c.First+k] = float32(v)
	}
	return nil
}

// outputs returns the names of the numbers of a field of a column with a name.
func (c *coded) outputs(name string) []string {
	if c.Kind != data.CodingCategory {
		return slices.Repeat([]string{name}, c.width)
	}
	return selection.Map(c.Values, func(value string) string { return name + "=" + value })
}

// codingKinds are the kinds that a column may have by its fields, the preferred ones first.
var codingKinds = [...]data.CodingKind{"", data.CodingTruth, data.CodingPoint, data.CodingComma, data.CodingVector,
	data.CodingDate, data.CodingMonthDay, data.CodingDayMonth}

const (
	// mostValues bounds the values of a category, and mostCounted the different fields of a
	// column that are counted.
	mostValues, mostCounted = 1000, 10000
	mostOdd                 = 3
)

// An inspector finds out how a column is coded.
type inspector struct {
	// fields that are not missing, numbers of the first vector, and fields with a full stop
	seen, width, dotted int
	hits                [len(codingKinds)]int
	odd                 [len(codingKinds)][]TextField // some different fields that are not of the kind
	values              map[string]bool
	semicolons          bool   // they separate the fields, as where numbers have decimal commas
	none                string // what the column is if not even its text can be numbers
}

// A TextField is a field of a column that is not a number, in a row or line.
type TextField struct {
	Text  string
	Where string
}

// add looks at a field; dates reports whether dates are numbers.
func (s *inspector) add(field string, where func() string, dates bool) {
	if s.seen++; s.values == nil {
		s.values = make(map[string]bool)
	}
	s.dotted += min(1, strings.Count(field, "."))
	if len(s.values) < mostCounted && !s.values[field] {
		s.values[strings.Clone(field)] = true
	}
	_, isPlain := plain("", field)
	for k, kind := range codingKinds {
		ok := false
		switch {
		case kind == "":
			ok = isPlain
		case kind == data.CodingVector:
			numbers := vector(field)
			s.width = cmp.Or(s.width, len(numbers))
			ok = numbers != nil && len(numbers) == s.width
		case isPlain && kind == data.CodingComma && !strings.Contains(field, "."), isPlain && kind == data.CodingPoint: // the usual case
			ok = strings.ContainsAny(field, "0123456789")
		case !isDate(kind) || dates:
			_, ok = plain(kind, field)
		}
		if ok {
			s.hits[k]++
		} else if odd := s.odd[k]; len(odd) <= mostOdd && !slices.ContainsFunc(odd, func(f TextField) bool { return f.Text == field }) {
			s.odd[k] = append(odd, TextField{strings.Clone(field), where()})
		}
	}
}

// kind returns the kind of a column: the wanted one if it has only such fields. swapped
// prefers decimal commas where a field such as 1,234 may also have one between thousands.
// ok is false for a column that is not numbers; most is then the kind of most fields.
func (s *inspector) kind(wanted data.CodingKind, swapped bool) (most data.CodingKind, ok bool) {
	order := slices.Clone(codingKinds[:])
	if swapped {
		order[2], order[3] = order[3], order[2]
	}
	best := -1
	for _, kind := range append([]data.CodingKind{wanted}, order...) {
		k := slices.Index(codingKinds[:], kind)
		if k >= 0 && s.hits[k] == s.seen && (kind != data.CodingVector || s.seen > 0) {
			return kind, true
		}
		if k >= 0 && (best < 0 || s.hits[k] > s.hits[best]) {
			best = k
		}
	}
	return codingKinds[best], false
}

// A TextColumn is a column of a table that is not numbers.
type TextColumn struct {
	Name   string
	Fields []TextField // examples
	// Seen is the number of fields that are not missing, and Odd of those that are no numbers.
	// Values is the number of different ones, or some large number.
	Seen, Odd, Values int
	Missing           bool // some fields are
	// Number reports whether the other fields are numbers.
	Number bool
	Is     string // what the column is, if it cannot be numbers or text; or empty
}

var unit = regexp.MustCompile(`^[+-]?[\d.,]+\s*[\pL%°$€£/²³]+$|^[$€£]\s*[\d.,]+`)

// IsText reports whether the column can be labels or names: it is text.
func (c *TextColumn) IsText() bool {
	return len(c.Fields) > 0 && !c.Number && !c.IsDate() && utf8.ValidString(c.Fields[0].Text)
}

// AreNames reports whether the column may hold names of points.
func (c *TextColumn) AreNames() bool {
	return c.IsText() && !c.AreClasses() && !c.HasUnit()
}

// HasUnit reports whether the column has a number with a unit.
func (c TextColumn) HasUnit() bool { return len(c.Fields) > 0 && unit.MatchString(c.Fields[0].Text) }

// AreClasses reports whether the values are few enough for classes, as labels must be.
func (c *TextColumn) AreClasses() bool {
	return c.Values > 1 && c.Values < mostCounted && (c.Seen < fewestNamed || 2*c.Values <= c.Seen)
}

// IsDate reports whether the column may hold dates.
func (c *TextColumn) IsDate() bool { return len(c.Fields) > 0 && text.IsDate(c.Fields[0].Text) }

// areWords reports whether no value is, or may be, a number.
func (c TextColumn) areWords() bool {
	return (c.IsText() || c.IsDate()) && !c.Number && !c.HasUnit()
}

// String names the column with an example and the reason.
func (c TextColumn) String() string {
	if len(c.Fields) == 0 {
		return fmt.Sprintf("%s (%s)", text.Printable(c.Name), c.Is)
	}
	example, reason := c.Fields[0].Text, ""
	switch {
	case c.Is != "":
		reason = ", " + c.Is
	case c.IsDate():
		reason = ", a date"
	case c.Number:
		reason = " among numbers"
	case c.HasUnit():
		reason = ", a number with a unit"
	case vector(example) != nil:
		reason = ", a list of another length than the others"
	case !utf8.ValidString(example):
		reason = ", not UTF-8; iconv -f LATIN1 -t UTF-8 FILE > NEW converts the file"
	}
	length := selection.If(strings.ContainsFunc(example, unicode.IsControl), 10, 40) // escapes are long
	return fmt.Sprintf("%s (%s: %.*q%s)", text.Printable(c.Name), c.Fields[0].Where, length, example, reason)
}

// A TextError reports the columns of a table that are not numbers. It wraps data.ErrFormat.
type TextError struct {
	Columns []TextColumn
	// Numbers reports whether there are other columns, which are numbers.
	Numbers bool
	// Missing reports whether other columns lack values.
	Missing bool
	// Unsure reports whether the first row, though taken for a point, may be a header.
	Unsure bool
	top    int // line of the table's first row, if it is text
	// heading is the last of the lines below that have no numbers, though some are in later ones.
	heading int
}

func (e *TextError) Error() string {
	return "columns that are not numbers: " + strings.Join(selection.Map(e.Columns, TextColumn.String), ", ")
}

// Unwrap returns data.ErrFormat.
func (e *TextError) Unwrap() error { return data.ErrFormat }

// WordLine returns one of the first lines, such as of units or names, or more that follow each
// other, if they have the only words of two or more columns of numbers, and else "".
func (e *TextError) WordLine() string {
	first, last, odd := math.MaxInt, 0, 0
	for _, c := range e.Columns {
		if !c.Number {
			continue
		}
		odd++
		for _, f := range c.Fields {
			at := 0
			if _, err := fmt.Sscanf(f.Where, "line %d", &at); err != nil || at >= e.top+3 || !strings.ContainsFunc(f.Text, unicode.IsLetter) {
				return ""
			}
			first, last = min(first, at), max(last, at)
		}
	}
	switch last = max(last, e.heading); {
	case odd < 2:
		return ""
	case first < last:
		return fmt.Sprintf("lines %d to %d", first, last)
	}
	return fmt.Sprintf("line %d", last)
}

// OddLine returns the line that has the only words among numbers, as a sum below a table has, and
// else "".
func (e *TextError) OddLine() (line string) {
	for _, c := range e.Columns {
		if len(c.Fields) == 0 { // no values
			continue
		}
		if !c.Number || c.Odd != 1 || line != "" && c.Fields[0].Where != line {
			return ""
		}
		line = c.Fields[0].Where
	}
	return line
}

// encode sets the codings of the columns with data, by their first fields or what Options
// says of them, and returns the columns that are not numbers; of the first fields, only if
// none is one, as then reading finds it.
func (l *layout) encode(columns map[int]*inspector, o *Options, all bool) (texts map[int]TextColumn) {
	texts = make(map[int]TextColumn)
	l.codings, l.repeated = make([]coded, len(l.roles)), make(map[string]bool, len(l.names))
	for _, name := range l.names {
		_, l.repeated[name] = l.repeated[name]
	}
	semicolons, points, commas := false, false, false // points and commas that can only be decimal
	for _, s := range columns {
		point, comma := s.hits[2] == s.seen, s.hits[3] == s.seen
		points, commas, semicolons = points || point && !comma, commas || comma && !point, semicolons || s.semicolons
	}
	commas = commas && !points
	na := newMarks(o.NA)
	for i := range l.codings {
		c, s := &l.codings[i], columns[i]
		c.Coding, c.width, c.na = data.CodingOf(o.Codings, l.nameOf(i)), 1, na
		switch {
		case c.Kind == data.CodingCategory:
			c.width, c.index = len(c.Values), make(map[string]int)
			for k, v := range c.Values {
				c.index[v] = k
			}
			continue
		case c.Kind == data.CodingText:
			continue
		case s == nil:
			c.Kind = ""
			continue
		}
		if mixed := s.semicolons && s.dotted >= fewestBelow && s.dotted < s.seen; o.Codings == nil && (commas || mixed && !points) {
			c.Kind = data.CodingComma // the points of 1.234 are then between thousands, as beside 850
		}
		kind, ok := s.kind(c.Kind, commas || semicolons && !points)
		if all && s.seen == 0 && s.none == "" {
			s.none, ok = noValues, false
		}
		if s.none == "" && (ok || !all && s.hits[slices.Index(codingKinds[:], kind)] > 0) {
			if c.Kind = kind; kind == data.CodingVector {
				c.width = s.width
			}
			continue
		}
		c.Kind = data.CodingText
		k := slices.Index(codingKinds[:], kind)
		texts[i] = TextColumn{Name: l.nameOf(i), Fields: s.odd[k], Seen: s.seen, Odd: s.seen - s.hits[k], Values: len(s.values), Number: s.hits[k] > 0,
			Is: cmp.Or(s.none, selection.If(slices.Contains(o.Dates, l.nameOf(i)), "not a date such as 2024-12-31, 31.12.2024 or 12/31/2024", ""))}
	}
	return texts
}

// nameOf returns the name of a column, or its number, counted from 1, if it has none or others
// have the same.
func (l *layout) nameOf(i int) string {
	if l.names != nil && l.names[i] != "" && !l.repeated[l.names[i]] {
		return l.names[i]
	}
	return l.numberOf(i)
}

// numberOf returns the number of a column, counted from 1, or from the end if it is the name of
// a column.
func (l *layout) numberOf(i int) string {
	number := strconv.Itoa(i + 1)
	if _, taken := l.repeated[number]; taken || l.repeated == nil && slices.Contains(l.names, number) {
		return strconv.Itoa(i - len(l.names))
	}
	return number
}
