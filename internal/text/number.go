package text

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

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
