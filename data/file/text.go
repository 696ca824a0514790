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
	"unicode/utf8"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
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
	names    []string        // of the columns, nil without a header
	roles    []role          // of the columns
	position []int           // for each column with data, its first position in a point
	codings  []coded         // of the columns
	top      int             // line of the first row of text
	heading  int             // TextError.heading
	unsure   bool            // head.doubtful
	repeated map[string]bool // whether several columns have a name
}

// A textReader reads a table in text, always one row ahead. Values may be NaN or
// infinite.
type textReader struct {
	head
	layout
	csv     *csv.Reader
	notes   int // lines before the table
	limit   rowLimit
	rows    int        // read or skipped so far
	wide    int        // fields of each row
	usual   int        // fields of the last of the first rows
	guessed bool       // Header was HeaderAuto
	first   [][]string // some of the first rows after the header
	quoted  [][]bool   // which of their fields are in quotation marks

	firstLines []int     // where they begin
	single     string    // the first line, if nothing separates fields in it
	blanks     bool      // they separate the fields
	texts      error     // that columns are text; returned by read
	na         marks     // of a missing value
	coded      []float64 // numbers of a field

	row      []string // the next row, or nil with the reason in err
	err      error
	interned map[string]string
}

// openText begins to read points from a table in text: one point per line, with fields
// separated by commas, semicolons, tabs, | or blanks. Fields may be quoted as in RFC 4180. See
// Options for the header, the column of labels and columns to drop. Every other field
// must be a number with a decimal point. Empty lines are skipped.
func openText(in *Input, o *Options) reader {
	t := newRows(in, o)
	t.roles = t.rolesFor(o)
	t.checkRows()
	t.labeled = slices.Contains(t.roles, roleLabel)
	t.texts = t.settle(t, &t.head, o, func(i int, add func(field string, where func() string)) {
		for k, row := range t.first {
			if i < len(row) && !t.na.has(row[i]) {
				add(strings.TrimSpace(row[i]), func() string { return fmt.Sprintf("line %d", t.firstLines[k]) })
			}
		}
	})
	t.coded = make([]float64, t.width)
	return t
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
	if l.n += n; l.n > maxRow || err == bufio.ErrBufferFull {
		err = errorf(data.ErrFormat, "row: got more than %d MiB, want one point on each line", maxRow>>20)
	}
	return n, err
}

// hasReturns reports whether lines end with a carriage return only, as on old systems.
func hasReturns(top []byte) bool {
	return bytes.IndexByte(top, '\r') >= 0 && bytes.IndexByte(top, '\n') < 0
}

// lineEnds reads text whose lines end with a carriage return only.
type lineEnds struct{ io.Reader }

func (r lineEnds) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
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
func newRows(in *Input, opt *Options) *textReader {
	skipBOM(in)
	t := &textReader{head: head{in: in, open: true, lines: new(data.Lines)}, na: newMarks(opt.NA), interned: make(map[string]string)}
	t.limit.r = in
	t.csv = csv.NewReader(bufio.NewReaderSize(&t.limit, readBuffer))
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	t.csv.Comma = t.skipNotes()
	top, size := in.Peek(readBuffer), readBuffer
	if bytes.Count(top, []byte("\n"))+bytes.Count(top, []byte("\r")) <= fewestBelow { // the rows may be long
		size = longBuffer
		in.r = bufio.NewReaderSize(in.r, size)
		top = in.Peek(size)
	}
	if hasReturns(top) {
		t.limit.r, top = lineEnds{in}, bytes.ReplaceAll(top, []byte("\r"), []byte("\n"))
	}
	if end := bytes.LastIndexByte(top, '\n'); len(top) == size && end >= 0 {
		top = top[:end+1]
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(top, "\r\n"), []byte("\n"))
	for rest := top; isMarked(string(line)) && len(rest) > 0; {
		line, rest, _ = bytes.Cut(bytes.TrimLeft(rest, "\r\n"), []byte("\n"))
	}
	if guessSeparator(line) == 0 {
		t.single = string(bytes.TrimSpace(line))
	}
	// The first word of word vectors may be a comma.
	word, values, _ := strings.Cut(string(line), " ")
	isWord := word != "" && strings.Trim(word, separators) == "" && !strings.ContainsAny(values, separators)
	if below := separatorBelow(top); t.csv.Comma == 0 && t.single != "" && below != 0 {
		t.csv.Comma, t.single = below, ""
	}
	if t.csv.Comma == 0 {
		t.csv.Comma = cmp.Or(guessSeparator(top), ',')
	}
	skip := 0
	if t.single != "" || isWord {
		skip, t.blanks = findBlanks(top)
	}
	if len(top) == size { // without the end of a line
		top = nil
	}
	if t.blanks {
		top, _ = io.ReadAll(newBlanks(bytes.NewReader(top), skip))
		t.limit.r, t.csv.Comma, t.csv.LazyQuotes, t.single = newBlanks(t.limit.r, skip), '\t', true, ""
	}
	t.findFirst(top)
	t.advance()
	kind.Need(t.err != io.EOF, data.ErrEmpty, "table: got no lines, want a point on each line")
	kind.Check(t.err)
	t.top = t.line()
	t.guessed = opt.Header == "" || opt.Header == HeaderAuto
	if t.guessed {
		t.counted, t.doubtful = t.numbered()
		t.unsure = t.doubtful
	}
	if short := t.isShort(); opt.Header == HeaderPresent || t.counted != "" || t.guessed && t.isHeader(opt) {
		t.names, t.doubtful, t.unsure = fieldNames(t.row), false, false
		below := min(1, len(t.first))
		t.first, t.firstLines, t.quoted = t.first[below:], t.firstLines[below:], t.quoted[below:]
		t.advance()
		if len(t.row) == len(t.names)+1 && (short || t.isIndex(0)) { // R's row names have no heading
			t.names = slices.Insert(t.names, 0, "")
		}
	}
	if len(t.first) == 0 && t.err == nil { // the rows are long
		t.first, t.firstLines, t.quoted = [][]string{slices.Clone(t.row)}, []int{t.line()}, [][]bool{make([]bool, len(t.row))}
	}
	if k := slices.IndexFunc(t.first, func(row []string) bool { return numbersIn(row) > 0 }); k > 0 && k < 3 {
		t.heading = t.firstLines[k-1]
	}
	_, t.wide = t.fields()
	t.checkWidth()
	return t
}

// findFirst sets the first rows, out of whole lines.
func (t *textReader) findFirst(top []byte) {
	lines := bytes.Split(top, []byte("\n"))
	reader := func(top []byte) *csv.Reader {
		r := csv.NewReader(bytes.NewReader(top))
		r.Comma, r.Comment, r.FieldsPerRecord, r.LazyQuotes = t.csv.Comma, t.csv.Comment, -1, t.blanks
		return r
	}
	numeric := false
	for _, line := range slices.Backward(lines) {
		if row, err := reader(line).Read(); err == nil && !isMarked(row[0]) {
			t.usual, numeric = len(row), isPlain(row[0])
			break
		}
	}
	if numeric && !isMarked(string(bytes.TrimLeft(top, "\r\n"))) {
		t.csv.Comment = selection.If(bytes.Contains(top, []byte("\n%")), '%', '#')
	}
	r := reader(top)
	for row, err := r.Read(); err == nil; row, err = r.Read() {
		if len(t.first) > 0 && t.isNote(row) {
			continue
		}
		quoted := make([]bool, len(row))
		for i := range row {
			line, column := r.FieldPos(i)
			quoted[i] = bytes.HasPrefix(lines[line-1][column-1:], []byte(`"`))
		}
		line, _ := r.FieldPos(0)
		t.first, t.firstLines, t.quoted = append(t.first, row), append(t.firstLines, line+t.notes), append(t.quoted, quoted)
	}
}

// isNote reports whether a row is a comment among rows whose first fields may begin as comments do.
func (t *textReader) isNote(row []string) bool {
	return t.usual > 0 && len(row) != t.usual && isMarked(row[0])
}

// isMarked reports whether a line begins as comments do.
func isMarked(line string) bool { return line != "" && strings.Contains("#%", line[:1]) }

// numbered says why the first row, which has numbers, holds names; why is "" if it does not.
// doubtful reports whether it may.
func (t *textReader) numbered() (why string, doubtful bool) {
	if len(t.first) < 2 || !slices.ContainsFunc(t.row, isPlain) {
		counted, doubtful := counts(t.row, nil)
		return selection.If(counted, following, ""), doubtful
	}
	below := t.first[1:]
	isEmpty := func(row []string) bool { return strings.TrimSpace(row[0]) == "" }
	unnamed := isEmpty(t.row) && !slices.ContainsFunc(below, isEmpty)
	names := t.row[max(0, slices.IndexFunc(t.row, func(field string) bool { return strings.TrimSpace(field) != "" })):]
	counted, doubtful := counts(t.row, below)
	switch {
	case !slices.Contains(t.quoted[0], false) && hasBare(below, t.quoted[1:], 0):
		why = "the first line is in quotation marks, unlike numbers below, and is"
	case t.isShort():
		why = "the first line is one field shorter than the others, and is"
	case unnamed && allDiffer(names):
		why = "the first line begins with an empty field, unlike the others, and is"
	case counted:
		why = following
	}
	return why, doubtful || unnamed
}

// following is why counts takes numbers for names.
const following = "the numbers in the first line follow each other, and are"

// isShort reports whether the first row lacks the heading of the first column, of row names.
func (t *textReader) isShort() bool {
	return len(t.first) > 2 && len(t.row) > 1 &&
		!slices.ContainsFunc(t.first[1:], func(row []string) bool { return len(row) != len(t.row)+1 }) &&
		allDiffer(selection.Map(t.first[1:], func(row []string) string { return row[0] }))
}

// allDiffer reports whether no text repeats.
func allDiffer(texts []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(texts)))) == len(texts)
}

// isPlain reports whether a field is a number.
func isPlain(field string) bool { _, ok := plain("", strings.TrimSpace(field)); return ok }

// hasBare reports whether a column of rows, from the given one on, has numbers and nothing in
// quotation marks.
func hasBare(rows [][]string, quoted [][]bool, from int) bool {
	for i := from; i < len(rows[0]); i++ {
		hasMark := slices.ContainsFunc(quoted, func(row []bool) bool { return i < len(row) && row[i] })
		if !hasMark && slices.ContainsFunc(rows, func(row []string) bool { return i < len(row) && isPlain(row[i]) }) {
			return true
		}
	}
	return false
}

// rolesFor implements table. First columns without names that isIndex are dropped, and so
// are the words before word vectors, unless options say how the column becomes numbers.
func (t *textReader) rolesFor(o *Options) []role {
	_, columns := t.fields()
	roles := findRoles(columns, t.names, o)
	t.indexed, t.unnamed = 0, nil
	words := columns > 2 && t.names == nil && t.blanks && slices.ContainsFunc(t.first, func(row []string) bool { return numbersIn(row[:1]) == 0 })
	coded := indices(slices.Concat(o.Categories, o.Dates), columns, t.names)
	for i := 0; i < columns-1 && len(o.Only) == 0 && (words && i == 0 || t.names != nil && t.names[i] == ""); i++ {
		name := t.numberOf(i)
		trained := slices.Contains(o.Columns, "") || slices.Contains(o.Columns, name)
		switch {
		case roles[i] != roleData || slices.Contains(coded, i) || data.CodingOf(o.Codings, name).Kind != "":
		case words || !trained && t.isIndex(i):
			roles[i] = roleDrop
			t.indexed++
		case len(o.Columns) == 0:
			t.unnamed = append(t.unnamed, name)
		}
	}
	return roles
}

// isIndex reports whether a column may be the row numbers or names that pandas and R write:
// text, different texts that are mostly no numbers, whole numbers that do not repeat, many
// numbers that rise or fall, or what is in quotation marks although numbers are not.
func (t *textReader) isIndex(i int) bool {
	fields := selection.Map(t.first, func(row []string) string { return row[i] })
	isWhole := func(field string) bool { _, err := strconv.ParseUint(field, 10, 64); return err == nil }
	numbers, n := selection.Count(fields, isPlain), len(fields)
	switch {
	case n == 0 || numbers == 0:
		return n > 0
	case len(t.names) == 1 && t.csv.Comma == ',' && !areSorted(fields): // digits before a decimal comma
		return false
	case selection.Count(t.quoted, func(row []bool) bool { return row[i] }) == n && hasBare(t.first, t.quoted, i+1):
		return true
	case 2*numbers < n || selection.Count(fields, isWhole) == n:
		return allDiffer(fields)
	}
	return numbers == n && n >= 2*fewestBelow && areSorted(fields)
}

// checkRows fails for a table with only a row of names.
func (t *textReader) checkRows() {
	kind.Need(t.err != io.EOF, data.ErrEmpty, "points: got only a header, want at least one point; "+
		"set the header to no if the first line is a point "+headerKeys)
}

// checkWidth sets an error if the last row has another number of fields.
func (t *textReader) checkWidth() {
	if t.err != nil || len(t.row) == t.wide {
		return
	}
	advice := ""
	if t.csv.Comma == ',' && len(t.row) > t.wide && !slices.ContainsFunc(t.row, notDigits) {
		advice = "; do its numbers have decimal commas instead of points?"
	} else if t.wide == 1 || t.rows <= 1 && len(t.row) > t.wide+1 {
		advice = "; remove lines before the table"
	}
	t.err = &lineError{t.line(), errorf(data.ErrFormat, "fields: got %d, want %d as in line %d%s", len(t.row), t.wide, t.top, advice)}
}

// advance reads the next row.
func (t *textReader) advance() {
	t.limit.n = 0
	for t.row, t.err = t.csv.Read(); t.err == nil && t.top > 0 && t.isNote(t.row); t.row, t.err = t.csv.Read() {
		t.limit.n = 0
	}
	if bad, ok := errors.AsType[*csv.ParseError](t.err); ok && t.single != "" {
		t.err = &lineError{bad.StartLine + t.notes, notSeparated(t.single)}
	} else if ok {
		err := errorf(data.ErrFormat, "quotation marks: %w; put a field that has any in quotation marks and double those inside", bad.Err)
		t.err = &lineError{bad.StartLine + t.notes, err}
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
	return line + t.notes
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
	if passed < rows {
		return passed, t.err
	}
	return passed, nil
}

// parse puts the numbers of a row into dst and, as float64, into sampled unless that is
// nil. It returns the label of the row, or "" if the table has none.
func (t *textReader) parse(row []string, dst []float32, sampled []float64) (label string, err error) {
	for i, field := range row {
		isPlain := t.roles[i] == roleData && t.codings[i].Kind == "" && t.offset == nil // dst is compared, which is faster
		if t.na.words != nil && (isPlain && slices.Contains(t.na.words, strings.TrimSpace(field)) || !isPlain && t.na.has(field)) {
			field = ""
		}
		switch t.roles[i] {
		case roleData:
			k, c := t.position[i], &t.codings[i]
			if c.Kind != "" {
				if err := c.write(dst, t.offset, sampled, t.coded, strings.TrimSpace(field)); err != nil {
					return "", &lineError{t.line(), err}
				}
				continue
			}
			if t.offset != nil && t.offset[k] != 0 {
				dst[k], err = parseMinus(field, t.offset[k])
			} else {
				dst[k], err = parseFloat32(field)
			}
			if err != nil {
				return "", t.describe(i, field, err)
			}
			if isPlain && t.na.numbers != nil && slices.Contains(t.na.numbers, dst[k]) {
				field, dst[k] = "", float32(math.NaN())
			}
			if sampled != nil {
				// A number that float32 can hold fits float64, too.
				sampled[k], _ = parseFloat(field, 64)
			}
		case roleLabel:
			label = intern(t.interned, strings.TrimSpace(field))
			if !utf8.ValidString(label) {
				return "", &lineError{t.line(), notUTF8(fmt.Sprintf("column %d: ", i+1), label)}
			}
		}
	}
	return label, nil
}

// maxInterned bounds the number of texts that are remembered to let equal texts share
// memory. This does not pay off if they hardly repeat.
const maxInterned = 1 << 12

// intern returns one string for all texts equal to s. The string does not keep a row in
// memory.
func intern(known map[string]string, s string) string {
	l, ok := known[s]
	if !ok {
		if len(known) == maxInterned {
			clear(known)
		}
		l = strings.Clone(s)
		known[l] = l
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
	if err != nil && text.IsMissingNumber(s) {
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

// A fieldError reports a field that is not a number.
type fieldError struct{ error }

func (e fieldError) Unwrap() error { return e.error }

// describe returns the error for a field of the last row that is not a number.
func (t *textReader) describe(column int, field string, err error) error {
	where := fmt.Sprintf("column %d", column+1)
	if t.names != nil && t.names[column] != "" {
		where = "column " + strconv.Quote(t.names[column])
	}
	want := "a number"
	switch {
	case errors.Is(err, strconv.ErrRange):
		want = "a number that float32 can hold; if it stands for a missing value, name it in data.na"
	case t.guessed && t.names == nil && t.line() == t.top:
		want = "a number; if the line holds names, set the header to yes " + headerKeys
	}
	fault := errorf(data.ErrFormat, "%s: got %.40q, want %s", where, strings.TrimSpace(field), want)
	if t.names == nil && t.line() == t.top { // names?
		return &lineError{t.line(), fault}
	}
	return &lineError{t.line(), fieldError{fault}}
}

// notDigits reports whether a field is not just digits with an optional sign. Splitting
// numbers with decimal commas at commas leaves such digits.
func notDigits(field string) bool {
	digits := strings.TrimLeft(strings.TrimSpace(field), "+-")
	return digits == "" || strings.Trim(digits, "0123456789") != ""
}

// separators are the characters between fields, the preferred ones last. The comma may be a
// decimal comma; it is then reported as such.
const separators = "|,;\t"

// guessSeparator returns the preferred separator in the first line, outside quotation marks,
// or 0.
func guessSeparator(head []byte) rune {
	best, quoted := -1, false
	for _, c := range bytes.TrimLeft(head, "\r\n") {
		if c == '\n' && !quoted {
			break
		}
		if quoted = quoted != (c == '"'); !quoted {
			best = max(best, strings.IndexByte(separators, c))
		}
	}
	if best < 0 {
		return 0
	}
	return rune(separators[best])
}

// separatorBelow returns the preferred separator in the lines below the first, or 0 if it is not
// the same in all of them.
func separatorBelow(top []byte) (separator rune) {
	_, below, _ := bytes.Cut(bytes.TrimSpace(top), []byte("\n"))
	for line := range bytes.Lines(below) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		next := guessSeparator(line)
		if next == 0 || separator != 0 && next != separator {
			return 0
		}
		separator = next
	}
	return separator
}

// skipNotes skips the lines before a table, and counts them: sep=; of Excel, whose separator
// it returns, and comments, which begin with # or %. The last comment that has as many fields as
// the first row may be the header.
func (t *textReader) skipNotes() (separator rune) {
	top := t.in.Peek(readBuffer)
	lines := bytes.FieldsFunc(top, func(c rune) bool { return c == '\n' || c == '\r' })
	skip := func() {
		end := len(top) - len(bytes.TrimLeft(top[bytes.Index(top, lines[0])+len(lines[0]):], "\r\n"))
		t.notes += max(1, bytes.Count(top[:end], []byte("\n")))
		t.in.r.Discard(end) // cannot fail, the bytes are there
		top, lines = top[end:], lines[1:]
	}
	if len(lines) > 1 && len(lines[0]) == len("sep=;") && bytes.HasPrefix(lines[0], []byte("sep=")) &&
		strings.IndexByte(separators, lines[0][4]) >= 0 {
		separator = rune(lines[0][4])
		skip()
	}
	isRow := func(line []byte) bool { return !isMarked(string(line)) }
	table := slices.IndexFunc(lines, isRow)
	split := func(k int) []string {
		return strings.Split(string(lines[k]), string(cmp.Or(guessSeparator(lines[table]), ',')))
	}
	fits := func(k int) bool { return len(split(k)) == len(split(table)) }
	again := func() bool {
		return slices.ContainsFunc(selection.UpTo[int](table)[1:], fits) && isPlain(split(table)[0])
	}
	isNamed := func() bool { // by the first line without
		next := slices.IndexFunc(lines[table+1:], isRow)
		return next >= 0 && numbersIn(split(table)) == 0 && numbersIn(split(table+1+next)) > 0
	}
	for ; table > 0 && (!fits(0) || again() || isNamed()); table-- {
		skip()
	}
	return separator
}

// isHeader reports whether the first row of a table holds names. This is so if none of
// its fields is a number, or as values below are coded, if the options name one of them, or if
// all wanted columns are there.
func (t *textReader) isHeader(opt *Options) bool {
	names := fieldNames(t.row)
	if len(opt.Columns) > 0 && len(data.MissingColumns(names, opt.Columns)) == 0 {
		return true
	}
	mentioned := map[string]bool{LabelColumn: opt.Embedding, NameColumn: opt.Embedding}
	for _, name := range slices.Concat([]string{opt.LabelColumn}, opt.Only, opt.Drop, opt.Columns) {
		mentioned[name] = name != ""
	}
	for _, name := range names {
		if mentioned[name] && !isPlain(name) {
			return true
		}
	}
	for i, name := range names {
		if isPlain(name) || t.isCoded(i, name) {
			return false
		}
	}
	return true
}

// isCoded reports whether a field is coded as others of its column among the first rows, which
// are no plain numbers: with a decimal comma, as a list, or as true or false.
func (t *textReader) isCoded(i int, field string) bool {
	for _, kind := range codingKinds[1:5] {
		is := func(field string) bool {
			_, ok := plain(kind, field)
			return ok || kind == data.CodingVector && vector(field) != nil
		}
		if is(field) && slices.ContainsFunc(t.first[min(1, len(t.first)):], func(row []string) bool {
			return i < len(row) && !isPlain(row[i]) && is(strings.TrimSpace(row[i]))
		}) {
			return true
		}
	}
	return false
}

// counts reports whether the numbers in a first row are names, and its words are none of the
// rows below. Three or more that count 0, 1, 2, … are the default names of columns; fewer
// suffice after an empty field, which pandas writes for its index, or if no number below them
// is whole. So are whole numbers that are otherwise evenly spaced, as years are, if no number
// below is whole (as 3 is and 3.0 is not) or few are and these are no such numbers or many, or,
// beside words, none is like them or they are many. Where most rows below are evenly spaced, the
// first is one of them. doubtful reports whether they may be names although names is false: three or
// more numbers beside words, or five, are evenly spaced; or three or more rise or fall, outside the
// ranges of the numbers below, and most rows below do neither.
func counts(row []string, below [][]string) (names, doubtful bool) {
	from, least := 0, 3
	if strings.TrimSpace(row[0]) == "" {
		from, least = 1, 1
	}
	run, even := evenly(row)
	words, numbers, wholes, others := from > 0, 0, 0, 0
	few, isEven := len(below) < fewestBelow, func(r []string) bool { run, even := evenly(r); return even && len(run) > 2 }
	growing := !few && 2*selection.Count(below, isEven) > len(below)
	alike, unlike := few || growing, !few
	for i := from; i < len(row); i++ {
		field, low, high := strings.TrimSpace(row[i]), math.Inf(1), math.Inf(-1)
		v, isWhole := plainWhole(field)
		isValue := func(kind data.CodingKind) bool { _, ok := plain(kind, field); return ok } // such as a date
		x, isNumber := float64(v), isWhole || isValue("")
		if !isWhole && isNumber {
			x, _ = parseFloat(field, 64)
			even = false
		} else if !isNumber && (slices.ContainsFunc(codingKinds[:], isValue) || text.IsMissingNumber(field)) {
			return false, false
		}
		for _, other := range below {
			s := strings.TrimSpace(other[min(i, len(other)-1)])
			if y, err := parseFloat(s, 64); err == nil && y == y {
				low, high, others = min(low, y), max(high, y), others+1
				if _, w := plainWhole(s); w && isWhole {
					wholes++
				}
			} else if !isNumber && s == field {
				return false, false
			}
		}
		between := isNumber && low <= x && x <= high
		words, alike, unlike = words || !isNumber, alike || len(run) < 5 && between, unlike && !between
		numbers += selection.If(isNumber, 1, 0)
	}
	doubtful = unlike && numbers > 2 && areSorted(row) && 2*selection.Count(below, areSorted) <= len(below)
	if !even {
		return false, doubtful
	}
	n, whole := len(run), len(below) == 0 || wholes > 0
	isDefault := run[0] == 0 && run[n-1] == n-1 && !growing && (n >= least || n == 2 && !whole)
	aboveFractions := n >= least && (!whole || n > 2 && others > 0 && 4*wholes <= others && !growing && (n > 4 || unlike))
	besideWords := n > 2 && words && !alike
	return isDefault || aboveFractions || besideWords, doubtful || n > 2 && (words || n > 4 && !few) && !growing
}

// areSorted reports whether the numbers among some fields rise, or fall.
func areSorted(fields []string) bool {
	v := selection.Map(slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return !isPlain(field) }),
		func(field string) float64 { v, _ := parseFloat(field, 64); return v })
	rising, falling := true, true
	for i := 1; i < len(v); i++ {
		rising, falling = rising && v[i] > v[i-1], falling && v[i] < v[i-1]
	}
	return rising || falling
}

// evenly returns the whole numbers of a row, and reports whether each is larger by the same than
// the one before.
func evenly(row []string) (run []int, even bool) {
	for _, field := range row {
		if v, ok := plainWhole(strings.TrimSpace(field)); ok {
			run = append(run, v)
		}
	}
	for i, v := range run {
		if v != run[0]+i*max(1, run[min(1, len(run)-1)]-run[0]) {
			return run, false
		}
	}
	return run, len(run) > 0
}

// plainWhole returns the whole number that a field is, written as usual.
func plainWhole(field string) (v int, ok bool) {
	v, err := strconv.Atoi(field)
	return v, err == nil && strconv.Itoa(v) == field
}

// fewestBelow is the least number of rows that say which numbers are like them.
const fewestBelow = 5

// fieldNames returns the fields of a row as names.
func fieldNames(row []string) []string {
	return selection.Map(row, func(field string) string { return text.ValidName(strings.TrimSpace(field)) })
}

// settle finds out how the columns with data of a table become numbers, and their positions
// in a point. first calls add with the first fields of a column. It returns the error for the
// columns that are not numbers.
func (l *layout) settle(t table, h *head, o *Options, first func(i int, add func(field string, where func() string))) error {
	dates := indices(slices.Concat(o.Dates, columnsOf(o.Codings, isDate)), len(l.roles), l.names)
	inspectors := make(map[int]*inspector)
	for i, r := range l.roles {
		s := t.inspector(i)
		if r != roleData || s == nil {
			continue
		}
		inspectors[i] = s
		first(i, func(field string, where func() string) {
			if !text.IsMissingNumber(field) {
				s.add(field, where, slices.Contains(dates, i))
			}
		})
	}
	texts := l.encode(inspectors, o, false)
	l.leaveText(h, o, texts)
	l.findPositions(h, o)
	return l.textError(texts)
}

// findPositions sets the first position of each data column in a point, and the fields of h
// about columns. The columns of Options.Only come first, in their order.
func (l *layout) findPositions(h *head, o *Options) {
	l.position = make([]int, len(l.roles))
	order := append(indices(o.Only, len(l.roles), l.names), selection.UpTo[int](len(l.roles))...)
	placed := make([]bool, len(l.roles))
	var of []int // the column of each number of a point
	for _, i := range order {
		if l.roles[i] != roleData || placed[i] {
			continue
		}
		placed[i] = true
		c := &l.codings[i]
		l.position[i], c.First = len(of), len(of)
		of = append(of, slices.Repeat([]int{i}, c.width)...)
		h.sources = append(h.sources, slices.Repeat([]string{l.nameOf(i)}, c.width)...)
		if l.names != nil {
			h.columns = append(h.columns, c.outputs(cmp.Or(l.names[i], l.nameOf(i)))...)
		}
	}
	h.width, h.coded = len(of), l.codings
	for i, c := range l.codings {
		if c.Kind == data.CodingVector && l.roles[i] == roleData {
			h.columns = nil
			return
		}
	}
	if len(o.Columns) > 0 && l.names != nil && !slices.Equal(h.columns, o.Columns) {
		l.match(h, o.Columns, of)
	}
	for i := range l.codings {
		if c := &l.codings[i]; c.Kind != "" && (l.roles[i] == roleData || c.Kind == data.CodingText) {
			c.First = l.position[i]
			h.used = append(h.used, c.Coding)
		}
	}
}

// match finds the positions of the wanted numbers by their names. of has the column of each
// number.
func (l *layout) match(h *head, wanted []string, of []int) {
	for i, r := range l.roles {
		if name := l.names[i]; r != roleData && slices.Contains(wanted, name) {
			kind.Fail(data.ErrOption, "column %s: got a label or dropped column, want a value, as in training", text.Quote(name))
		}
	}
	from, left, err := data.MatchColumns(wanted, h.columns)
	kind.Check(err)
	first := slices.Clone(l.position)
	for _, i := range of {
		l.roles[i] = roleDrop
	}
	for to, k := range from {
		if i := of[k]; k == first[i] { // the others of a category follow
			l.position[i], l.roles[i] = to, roleData
		}
	}
	h.width, h.columns, h.left = len(wanted), wanted, append(h.left, left...)
}

// leaveText drops the columns that are no numbers by Options or, with DropText, by their
// fields, and all others if one has lists. It fails if nothing is left.
func (l *layout) leaveText(h *head, o *Options, texts map[int]TextColumn) {
	isList := func(i int) bool { return l.roles[i] == roleData && l.codings[i].Kind == data.CodingVector }
	lists := selection.Map(selection.Where(len(l.roles), isList), l.nameOf)
	oneList(lists, 1)
	roles, left := slices.Clone(l.roles), []string(nil)
	for i, r := range roles {
		_, found := texts[i]
		if r == roleData && (l.codings[i].Kind == data.CodingText && (!found || o.DropText) ||
			len(lists) > 0 && !isList(i)) {
			roles[i], left = roleDrop, append(left, l.nameOf(i))
		}
	}
	kind.Need(slices.Contains(l.roles, roleData), data.ErrEmpty,
		"columns: got none left of %d for the points, want at least one; leave fewer out", len(l.roles))
	if slices.Contains(roles, roleData) { // reading otherwise returns a clearer error
		l.roles, h.left = roles, append(h.left, left...)
	}
}

// oneList fails for several columns of lists, or for one and other wanted columns.
func oneList(names []string, wanted int) {
	kind.Need(len(names) == 0 || len(names) == 1 && wanted <= 1, data.ErrOption,
		"columns of lists: got %s, want one; name it as the column to take (data.columns)", text.Few(names, text.Quote))
}

func notSeparated(line string) error {
	return errorf(data.ErrFormat, "fields: got %.40q, want fields separated by commas, semicolons, tabs, | or blanks", line)
}

// textError returns the error for the columns with data that are not numbers, or nil.
func (l *layout) textError(texts map[int]TextColumn) error {
	e := &TextError{Unsure: l.unsure, top: l.top, heading: l.heading}
	for i, r := range l.roles {
		if c, ok := texts[i]; ok && r == roleData {
			e.Columns = append(e.Columns, c)
		}
		e.Numbers = e.Numbers || r == roleData && l.codings[i].Kind != data.CodingText
	}
	if e.Columns == nil {
		return nil
	}
	if of := e.Columns[0].Fields; len(l.roles) == 1 && len(of) > 0 {
		items := strings.Fields(of[0].Text)
		number, isLine := strings.CutPrefix(of[0].Where, "line ")
		switch {
		case len(items) < 2:
		case vector("["+of[0].Text+"]") != nil:
			return notSeparated(of[0].Text)
		case isLine && isPlain(items[len(items)-1]):
			line, _ := strconv.Atoi(number)
			return &lineError{line, errorf(data.ErrFormat, "fields: got %.40q, want names with blanks in quotation marks, or fields separated by commas, semicolons or tabs", of[0].Text)}
		}
	}
	return e
}

// columnsOf returns the columns whose fields are of some kinds.
func columnsOf(codings []data.Coding, is func(kind data.CodingKind) bool) (columns []string) {
	for _, c := range codings {
		if is(c.Kind) {
			columns = append(columns, c.Column)
		}
	}
	return columns
}

// indices returns the indices of columns that are there.
func indices(wanted []string, columns int, names []string) []int {
	return selection.Map(wanted, func(name string) int { return findColumn(name, columns, names) })
}

// findRoles returns the role of each column.
func findRoles(columns int, names []string, o *Options) []role {
	const roleOnly = roleDrop + 1 // one of Only, so far
	roles := make([]role, columns)
	set := func(to role, list ...string) {
		for _, wanted := range list {
			c := findColumn(wanted, columns, names)
			droppedLabels := roles[c] == roleDrop && to == roleLabel
			kind.Need(roles[c] == roleData || roles[c] == to || droppedLabels, data.ErrOption,
				"column %q: got two uses, want one: as the label, as a value, or dropped", wanted)
			roles[c] = to
		}
	}
	set(roleDrop, o.Drop...)
	if o.LabelColumn != "" {
		set(roleLabel, o.LabelColumn)
	}
	for c, name := range names {
		switch {
		case !o.Embedding || roles[c] != roleData:
		case name == LabelColumn && o.LabelColumn == "" && len(o.Labels) == 0:
			roles[c] = roleLabel
		case name == LabelColumn || name == NameColumn:
			roles[c] = roleDrop
		}
	}
	set(roleOnly, o.Only...)
	set(selection.If(len(o.Only) > 0, roleOnly, roleData), slices.Concat(o.Categories, o.Dates)...)
	for _, name := range o.Dates {
		kind.Need(!slices.Contains(o.Categories, name), data.ErrOption, "column %q: got two uses, want one: as a category or as a date", name)
	}
	for c, is := range roles {
		switch {
		case is == roleOnly:
			roles[c] = roleData
		case is == roleData && len(o.Only) > 0:
			roles[c] = roleDrop
		}
	}
	return roles
}

// findColumn returns the index of the column with the name or number wanted.
func findColumn(wanted string, columns int, names []string) int {
	if i := slices.Index(names, wanted); i >= 0 {
		again := slices.Index(names[i+1:], wanted)
		kind.Need(again < 0, data.ErrOption, "column %q: got columns %d and %d (counted from 1), want one, by its number", wanted, i+1, i+again+2)
		return i
	}
	n, err := strconv.Atoi(wanted)
	isNumber := err == nil && strconv.Itoa(n) == wanted // 010 is a name
	kind.Need(isNumber || names != nil, data.ErrOption,
		"column %q: got a table without header, want a column's number, counted from 1, or the header yes "+headerKeys, wanted)
	kind.Need(isNumber, data.ErrOption, "column: got %q, want one of %s", wanted, firstNames(names))
	if n < 0 {
		n += columns + 1
	}
	kind.Need(n >= 1 && n <= columns, data.ErrOption, "column: got %s, want 1 to %d, or -1 to -%[2]d from the last", wanted, columns)
	return n - 1
}

// firstNames lists the names of columns, at most ten.
func firstNames(names []string) string {
	if len(names) > 10 {
		return fmt.Sprintf("%q and %d more", names[:10], len(names)-10)
	}
	return fmt.Sprintf("%q", names)
}

// textTable begins to read the columns of a table in text.
func textTable(in *Input, o *Options) table { return newRows(in, o) }

// fields implements table.
func (t *textReader) fields() (names []string, columns int) {
	return t.names, cmp.Or(len(t.names), len(t.row))
}

// check implements table: every column is text.
func (t *textReader) check(int) error { return nil }

// inspector implements table.
func (t *textReader) inspector(int) *inspector {
	return &inspector{semicolons: t.csv.Comma == ';'}
}

// scan implements table.
func (t *textReader) scan(columns []int, each func(where func() string, fields []string) error) {
	t.checkRows()
	fields := make([]string, len(columns))
	for ; t.err == nil; t.advance() {
		for k, i := range columns {
			if fields[k] = strings.TrimSpace(t.row[i]); text.IsMissing(fields[k]) || t.na.has(fields[k]) {
				fields[k] = ""
			}
		}
		if err := each(func() string { return fmt.Sprintf("line %d", t.line()) }, fields); err != nil {
			kind.Check(&lineError{t.line(), err})
		}
	}
	if t.err != io.EOF {
		kind.Check(t.err)
	}
}
