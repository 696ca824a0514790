package text

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
	switch {
	case err != nil:
		return 0, err
	case v != math.Trunc(v):
		return 0, strconv.ErrSyntax
	}
	whole, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err == nil {
		return whole, nil
	}
	if math.Abs(v) >= 1<<63 {
		return 0, strconv.ErrRange
	}
	return int64(v), nil
}

// ParseFloat is strconv.ParseFloat without the forms that only programming
// languages have: 1_2 is a name rather than 12, and so is 0x10.
func ParseFloat(s string, bits int) (float64, error) {
	if strings.ContainsAny(s, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, bits)
}

// ValidName returns the name of a column or gene as text that every format can keep:
// bytes that are not UTF-8, such as Latin-1's, are written as \xf6.
func ValidName(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		_, size := utf8.DecodeRuneInString(name)
		if part := name[:size]; utf8.ValidString(part) {
			b.WriteString(part)
		} else {
			const hex = "0123456789abcdef"
			b.WriteString(`\x` + string(hex[name[0]>>4]) + string(hex[name[0]&15]))
		}
		name = name[size:]
	}
	return b.String()
}
