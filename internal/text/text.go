// Package text writes names and values into messages of one line, and finds the
// name that a misspelt one means.
package text

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cne/internal/selection"
)

// Limits of what is shown, in characters.
const (
	nameLimit    = 200  // of a name or value
	messageLimit = 2000 // of a whole message
)

// Quote puts text in quotes, and shortens it if it is long.
func Quote(s string) string { return strconv.Quote(Shorten(s)) }

// Printable returns a name as it stands, or in quotes if it holds characters
// that have no place in a line. A long one is shortened.
func Printable(name string) string {
	short := Shorten(name)
	if q := strconv.Quote(short); q[1:len(q)-1] != short {
		return q
	}
	return short
}

// Shorten puts an ellipsis instead of the middle of a name of more than 200
// characters, so that it has 200.
func Shorten(s string) string { return elide(s, nameLimit) }

// elide replaces the middle of a text of more than limit characters by an ellipsis.
func elide(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	head, tail := 0, len(s)
	for i := range limit - 1 {
		if i%2 == 0 {
			_, size := utf8.DecodeRuneInString(s[head:])
			head += size
		} else {
			_, size := utf8.DecodeLastRuneInString(s[:tail])
			tail -= size
		}
	}
	return s[:head] + "…" + s[tail:]
}

// Unsafe reports whether a character must not reach a terminal, or a line, as it is:
// control characters, line and paragraph separators, and those that change the
// direction of the text around them.
func Unsafe(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// Escape writes unsafe characters as Go's string literals do, such as \n and \u202e,
// and bytes that are not UTF-8 as \xff. All else stays as it is.
func Escape(s string) string { return escape(s, Unsafe) }

// escape writes bytes that are not UTF-8, and unsafe characters, as Escape does.
func escape(s string, unsafe func(rune) bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafe(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Message makes one line of a message: it escapes unsafe characters, and cuts out the
// middle of words and of quoted texts beyond 200 characters, such as long paths, and of
// the whole if it is still very long. The end of a message has the advice, and stays. Quoted
// command lines and programs, which are there to be copied, are words rather than one text.
func Message(s string) string {
	s = Escape(s)
	if len(s) <= nameLimit {
		return s
	}
	var b strings.Builder
	for s != "" {
		quoted, err := strconv.QuotedPrefix(s)
		end := len(quoted)
		if err != nil || s[0] != '"' || strings.HasSuffix(b.String(), " -c ") || strings.HasPrefix(s, `"cne `) {
			if end = strings.IndexAny(s[1:], ` "`) + 1; end == 0 {
				end = len(s)
			}
		}
		b.WriteString(Shorten(s[:end]))
		s = s[end:]
	}
	return elide(b.String(), messageLimit)
}

// ErrorMessage returns the Message of an error. Joined errors are separated by "; ".
func ErrorMessage(err error) string { return Message(flatten(err)) }

// flatten returns the text of an error with "; " between joined ones.
func flatten(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err.Error()
	}
	parts := joined.Unwrap()
	if strings.Join(selection.Map(parts, error.Error), "\n") != err.Error() { // several %w of fmt.Errorf
		return err.Error()
	}
	return strings.Join(selection.Map(parts, flatten), "; ")
}

// Enumerate joins words as in "a, b or c".
func Enumerate(words []string) string { return Join(words, "or") }

// Join joins words as in "a, b and c", with the given word before the last.
func Join(words []string, before string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + before + " " + words[last]
}

// Few writes names for a message, the first three of many, each as write does; nil leaves
// them as they are.
func Few(names []string, write func(string) string) string { return List(names, 3, write) }

// List is Few for another number of names.
func List(names []string, most int, write func(string) string) string {
	few := names[:min(len(names), most)]
	if write != nil {
		few = selection.Map(few, write)
	}
	list := strings.Join(few, ", ")
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// A JSONWriter escapes Unsafe characters in the JSON texts that are written to it, a
// whole text at a time. Their meaning stays the same.
type JSONWriter struct{ io.Writer }

// Write implements io.Writer.
func (w JSONWriter) Write(b []byte) (int, error) {
	var out []byte
	for _, r := range string(b) { // a JSON text has no invalid UTF-8
		if r == '\n' || !Unsafe(r) {
			out = utf8.AppendRune(out, r)
		} else { // none is above 0xffff
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	if _, err := w.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Nearest returns the known name that is most likely meant by an unknown one,
// or "" if none is near. Names are dotted keys, words or environment
// variables. A key that only lacks or mistakes its section counts as near.
func Nearest(unknown string, known []string) string {
	if len(unknown) > 100 {
		return ""
	}
	want := strings.ToLower(unknown)
	best, bestScore := "", 2+len(leaf(want))/4
	for _, k := range known {
		score := min(editDistance(want, strings.ToLower(k)), editDistance(leaf(want), leaf(strings.ToLower(k)))+1)
		if score < bestScore {
			best, bestScore = k, score
		}
	}
	return best
}

// leaf returns the part of a dotted key after its last dot.
func leaf(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbouring characters that turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := selection.UpTo[int](len(t) + 1) // distances of s[:i] to every t[:j]
	var previous, beforeThat []int
	for i := 1; i <= len(s); i++ {
		beforeThat, previous = previous, row
		row = make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			replace := previous[j-1]
			if s[i-1] != t[j-1] {
				replace++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], beforeThat[j-2]+1)
			}
		}
	}
	return row[len(t)]
}

var decimal = regexp.MustCompile(`^[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][-+]?\d+)?$`)

// Decimal parses a number in decimal digits. Zeros may precede it, and underscores may
// group its digits: 010 is ten, whatever YAML and programming languages make of it. The
// error is strconv.ErrSyntax, also for hexadecimal and infinite numbers, or ErrRange.
func Decimal(s string) (float64, error) {
	if !decimal.MatchString(s) {
		return 0, strconv.ErrSyntax
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil {
		return 0, strconv.ErrRange
	}
	return v, nil
}

// Whole is Decimal for whole numbers, which may also be written as 1.0 or 1e3.
func Whole(s string) (int64, error) {
	v, err := Decimal(s)
	whole, fault := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	switch {
	case err != nil:
		return 0, err
	case fault == nil:
		return whole, nil
	case v != math.Trunc(v):
		return 0, strconv.ErrSyntax
	case math.Abs(v) >= 1<<63:
		return 0, strconv.ErrRange
	}
	return int64(v), nil
}

// ParseFloat is strconv.ParseFloat without the forms that only programming
// languages have: 1_2 is a name rather than 12, and so is 0x10. A minus may be the
// typographic one (U+2212).
func ParseFloat(s string, bits int) (float64, error) {
	if strings.ContainsAny(s, "_xX") {
		return 0, strconv.ErrSyntax
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil && strings.Contains(s, "−") {
		return strconv.ParseFloat(strings.ReplaceAll(s, "−", "-"), bits)
	}
	return v, err
}

// ValidName returns the name of a column or gene as text that every format can keep:
// bytes that are not UTF-8, such as Latin-1's, are written as \xf6.
func ValidName(name string) string {
	return escape(name, func(rune) bool { return false })
}

// DateOrder is an order of the parts of a date that could be read in several ways.
type DateOrder int

// Orders of dates.
const (
	DateClear    DateOrder = iota // 2024-12-31, 31.12.2024, 31 Dec 2024, or only a time
	DateMonthDay                  // 12/31/2024
	DateDayMonth                  // 31/12/2024
)

var (
	dayLayouts = [...][]string{
		DateClear:    {"2006-1-2", "2006/1/2", "2.1.2006", "2-Jan-2006", "2 Jan 2006", "Jan 2, 2006", "2 January 2006", "January 2, 2006", ""},
		DateMonthDay: {"1/2/2006", "1-2-2006", "1/2/06"},
		DateDayMonth: {"2/1/2006", "2-1-2006", "2/1/06"},
	}
	clockLayouts = []string{"", "15:04", "15:04:05", "3:04 PM", "3:04:05 PM"} // fractions of seconds are read, too
	zoneLayouts  = []string{"", "Z07:00", "Z07", "Z0700", " Z07:00", " UTC"}
)

// ParseDays returns the days of a date, time of day, or both: since 1970 if there is a
// date, in UTC. ok is false for another text.
func ParseDays(s string, order DateOrder) (days float64, ok bool) {
	if len(s) < 4 || len(s) > 40 || !strings.ContainsAny(s, "0123456789") || !strings.ContainsAny(s, "-/.: ") {
		return 0, false
	}
	if at := strings.IndexByte(s, 'T'); at > 0 && at < len(s)-1 && s[at-1] <= '9' && s[at+1] <= '9' {
		s = s[:at] + " " + s[at+1:]
	}
	hasClock := strings.Contains(s, ":")
	for _, day := range dayLayouts[order] {
		for _, clock := range clockLayouts {
			if (clock != "") != hasClock || day == "" && !hasClock {
				continue
			}
			for _, zone := range zoneLayouts {
				if zone != "" && (clock == "" || day == "") {
					continue
				}
				t, err := time.Parse(strings.TrimSpace(day+" "+clock)+zone, s)
				if err != nil {
					continue
				}
				from := selection.If(day == "", time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0))
				const perDay = 24 * 60 * 60
				return (float64(t.Unix()-from.Unix()) + float64(t.Nanosecond())/1e9) / perDay, true
			}
		}
	}
	return 0, false
}

// IsDate reports whether a text is a date, in any order.
func IsDate(s string) bool {
	return slices.ContainsFunc([]DateOrder{DateClear, DateMonthDay, DateDayMonth},
		func(o DateOrder) bool { _, ok := ParseDays(s, o); return ok })
}

// missing are the words that spreadsheets, R, pandas, NumPy and databases write for a
// missing value.
var missing = []string{"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "-NaN", "-nan", "NaT", "None", "null", "NULL", "Null", "<NA>",
	"<na>", "pd.NA", "pd.NaT", "np.nan", "NA_character_", "(null)", `\N`}

// IsMissing reports whether a text, without the space around it, is a word for a missing
// value. Words are compared as programs write them: none and na, in small letters, may be
// a class.
func IsMissing(s string) bool { return slices.Contains(missing, strings.TrimSpace(s)) }

// IsMissingNumber is IsMissing among numbers, with letters in any case.
func IsMissingNumber(s string) bool {
	s = strings.TrimSpace(s)
	return slices.ContainsFunc(missing, func(word string) bool { return strings.EqualFold(word, s) })
}
