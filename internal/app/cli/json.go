package cli

import (
	"fmt"
	"io"
	"log/slog"

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
// shortened.
func newJSONHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(text.JSONWriter{Writer: w}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
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
