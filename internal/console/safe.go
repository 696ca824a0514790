package console

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"unicode/utf8"

	"cne/internal/text"
)

// PrintError writes the error with which a program ends, in a line: as the message of
// a record if the format is json, and behind the program's name otherwise. Whatever
// stands in it, nothing of it controls the terminal.
func PrintError(w io.Writer, format, program, message string) {
	if format == "json" {
		slog.New(newJSONHandler(w, slog.LevelInfo)).Error(message)
		return
	}
	// There is nobody left to be told that this failed.
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, text.Message(message))
}

// newJSONHandler returns a handler that writes records as JSON, in which long names are
// shortened, and nothing controls the terminal on which it may be looked at.
func newJSONHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(NewSafeWriter(w), &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) == 0 && a.Key == slog.MessageKey:
			a.Value = slog.StringValue(text.Message(a.Value.String()))
		case a.Value.Kind() == slog.KindString || a.Value.Kind() == slog.KindAny:
			a.Value = shortened(a.Value)
		}
		return a
	}})
}

// shortened returns the value of an attribute that is a name or an error, of bounded
// length; others as they are.
func shortened(v slog.Value) slog.Value {
	if v.Kind() == slog.KindString {
		return slog.StringValue(text.Shorten(v.String()))
	}
	if err, ok := v.Any().(error); ok {
		return slog.StringValue(text.ErrorMessage(err))
	}
	return v
}

// A SafeWriter passes text on with what must not reach a terminal written as \u001b,
// and bytes that are not UTF-8 as \xff; line feeds and tabs stay. What it makes of JSON
// means the same, and so does YAML that has such characters in double quotes.
type SafeWriter struct {
	w    io.Writer
	rest []byte // the begin of a character whose end is not there yet
}

// NewSafeWriter returns a SafeWriter to w.
func NewSafeWriter(w io.Writer) *SafeWriter { return &SafeWriter{w: w} }

// Write writes p but for a last character that is not whole. The error is that of the
// underlying writer.
func (s *SafeWriter) Write(p []byte) (int, error) {
	whole := p
	if len(s.rest) > 0 {
		whole = slices.Concat(s.rest, p)
	}
	end := len(whole)
	for k := 1; k < utf8.UTFMax && k <= len(whole); k++ {
		if c := whole[len(whole)-k]; utf8.RuneStart(c) {
			if !utf8.FullRune(whole[len(whole)-k:]) {
				end = len(whole) - k
			}
			break
		}
	}
	s.rest = slices.Clone(whole[end:])
	if err := s.pass(whole[:end]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the begin of a character that has had no end.
func (s *SafeWriter) Flush() error {
	rest := s.rest
	s.rest = nil
	return s.pass(rest)
}

func (s *SafeWriter) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := s.w.Write(escapeLines(p))
	return err
}

// escapeLines escapes what a SafeWriter escapes; the result is the argument if there is
// nothing of the kind.
func escapeLines(p []byte) []byte {
	var out []byte // nil as long as it would be p[:i]
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRune(p[i:])
		broken := r == utf8.RuneError && size == 1
		unsafe := r != '\n' && r != '\t' && text.Unsafe(r)
		if out == nil && (broken || unsafe) {
			out = slices.Clone(p[:i])
		}
		switch {
		case broken:
			out = fmt.Appendf(out, `\x%02x`, p[i])
		case unsafe:
			out = fmt.Appendf(out, `\u%04x`, r)
		case out != nil:
			out = append(out, p[i:i+size]...)
		}
		i += size
	}
	if out == nil {
		return p
	}
	return out
}
