package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cne/internal/selection"
	"cne/internal/text"
)

// A Reporter writes a command's messages and progress to stderr, in the configured form,
// so that neither overwrites the other.
type Reporter struct {
	Log      *slog.Logger
	Progress Progress

	interval time.Duration // between the messages of ProgressLogger
}

// newReporter returns a Reporter that writes to w. The format is text or json; a quiet
// one writes only warnings and errors.
func newReporter(w io.Writer, format string, quiet bool) *Reporter {
	con := newConsole(w)
	level := selection.If(quiet, slog.LevelWarn, slog.LevelInfo)
	var handler slog.Handler
	if format == "json" {
		handler = newJSONHandler(con, level)
	} else {
		handler = newLineHandler(con, level)
	}
	r := &Reporter{Log: slog.New(handler), interval: 10 * time.Second}
	switch {
	case quiet:
		r.Progress = &lineProgress{w: io.Discard, now: time.Now}
	case format == "json":
		r.Progress = &recordProgress{log: r.Log, now: time.Now}
	case con.terminal:
		r.Progress = &barProgress{con: con, now: time.Now}
	default:
		r.Progress = &lineProgress{w: con, now: time.Now}
	}
	return r
}

// ProgressLogger returns a function that logs how much of some work is done, at most
// every ten seconds, and not at its end.
func (r *Reporter) ProgressLogger(work string) func(done, all int) {
	last := time.Now()
	return func(done, all int) {
		if now := time.Now(); done < all && now.Sub(last) >= r.interval {
			r.Log.Info(work, "done", done, "of", all)
			last = now
		}
	}
}

// A lineHandler writes a log record as a line for people: the level unless it is Info,
// the message, and the attributes in the form of slog's own handler.
type lineHandler struct {
	slog.Handler
	to *messageWriter
}

// A messageWriter puts a message before what is written, in one call of its writer.
type messageWriter struct {
	w       io.Writer
	mu      sync.Mutex
	message string
}

func (m *messageWriter) Write(attributes []byte) (int, error) {
	if string(attributes) != "\n" {
		m.message += " "
	}
	_, err := io.WriteString(m.w, m.message+string(attributes))
	return len(attributes), err
}

func newLineHandler(w io.Writer, level slog.Level) *lineHandler {
	to := &messageWriter{w: w}
	return &lineHandler{slog.NewTextHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey):
			return slog.Attr{}
		case a.Value.Kind() == slog.KindFloat64:
			a.Value = slog.StringValue(strconv.FormatFloat(a.Value.Float64(), 'g', 5, 64))
		case a.Value.Kind() == slog.KindDuration:
			a.Value = slog.StringValue(formatDuration(a.Value.Duration()))
		default:
			a.Value = shortened(a.Value)
		}
		return a
	}}), to}
}

// Handle writes a record in a single call of the writer.
func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.message = text.Message(r.Message)
	switch {
	case r.Level >= slog.LevelError:
		h.to.message = "error: " + h.to.message
	case r.Level >= slog.LevelWarn:
		h.to.message = "warning: " + h.to.message
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attributes to every record.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{h.Handler.WithAttrs(attrs), h.to}
}

// WithGroup returns a handler that puts a name and a full stop before the keys
// of later attributes.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	return &lineHandler{h.Handler.WithGroup(name), h.to}
}

// formatDuration writes a duration for people, to the second and from an hour
// on to the minute; below a second it keeps milliseconds.
func formatDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour-time.Second/2:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// formatNote is the annotation of a root command with the log format of the command that
// runs.
const formatNote = "cne/log-format"

// NewReporter returns a Reporter for a command's stderr. ErrorFormat then returns the
// same format for the command's final error.
func NewReporter(cmd *cobra.Command, format string) *Reporter {
	root := cmd.Root()
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[formatNote] = format
	return newReporter(cmd.ErrOrStderr(), format, Quiet(cmd))
}

// ErrorFormat returns the format, text or json, of a command line's final error.
// NewReporter has set it, if the command got that far. Otherwise the command line may not
// parse, so its words are searched for the format, and then the environment.
func ErrorFormat(root *cobra.Command, args []string) string {
	if format, ok := root.Annotations[formatNote]; ok {
		return format
	}
	line := strings.Join(args, " ")
	if strings.Contains(line, "--log-format=json") || strings.Contains(line, "--log-format json") {
		return "json"
	}
	return cmp.Or(os.Getenv("CNE_LOG_FORMAT"), "text")
}

// PrintError writes a program's final error in a line: as a record's message if the
// format is json, with attributes as slog takes them, and otherwise after the program's
// name. Control characters are escaped.
func PrintError(w io.Writer, format, program, message string, attributes ...any) {
	if format == "json" {
		slog.New(newJSONHandler(w, slog.LevelInfo)).Error(message, attributes...)
		return
	}
	// A failure cannot be reported anywhere.
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, strings.TrimPrefix(text.Message(message), program+": "))
}

// newJSONHandler returns a handler that writes records as JSON and shortens long names.
func newJSONHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(text.JSONWriter{Writer: w},
		&slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case len(groups) == 0 && a.Key == slog.MessageKey:
				a.Value = slog.StringValue(text.Message(a.Value.String()))
			case a.Value.Kind() == slog.KindString || a.Value.Kind() == slog.KindAny:
				a.Value = shortened(a.Value)
			}
			return a
		}})
}

// shortened bounds the length of an attribute's value if that is a name or an error; it
// returns other values unchanged.
func shortened(v slog.Value) slog.Value {
	if v.Kind() == slog.KindString {
		return slog.StringValue(text.Shorten(v.String()))
	}
	if err, ok := v.Any().(error); ok {
		return slog.StringValue(text.ErrorMessage(err))
	}
	return v
}

// While logs what a command does if that takes more than a second. The function that it
// returns says that it is done.
func (r *Reporter) While(doing string) (done func() bool) {
	return time.AfterFunc(time.Second, func() { r.Log.Info(doing) }).Stop
}
