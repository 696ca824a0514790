// Package text writes names and values into messages of one line, and finds the
// name that is meant by one that is written wrongly.
package text

import (
	"strconv"
	"strings"
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

// Shorten cuts text that is too long for a message, and puts an ellipsis behind
// it.
func Shorten(s string) string {
	const limit = 60 // bytes
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Enumerate joins words as in "a, b or c".
func Enumerate(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
