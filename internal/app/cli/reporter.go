package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"cne/internal/text"
)

// A Reporter is how a command reports on stderr: messages and progress, in the
// form that the configuration asks for and without getting into each other's
// way.
type Reporter struct {
	Log      *slog.Logger
	Progress Progress

	interval time.Duration // between the messages of ProgressLogger
}

// newReporter returns a Reporter that writes to w. The format is text or json; a
// quiet one gives warnings and errors only, and no progress.
func newReporter(w io.Writer, format string, quiet bool) *Reporter {
	con := newConsole(w)
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	var handler slog.Handler
	if format == "json" {
		handler = newJSONHandler(con, level)
	} else {
		handler = &lineHandler{w: con, level: level}
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

// ProgressLogger returns a function that logs how much of some work is done, at
// most every ten seconds and not when all of it is.
func (r *Reporter) ProgressLogger(work string) func(done, all int) {
	last := time.Now()
	return func(done, all int) {
		if now := time.Now(); done < all && now.Sub(last) >= r.interval {
			r.Log.Info(work, "done", done, "of", all)
			last = now
		}
	}
}

// A lineHandler writes a log record as a line for people: the level unless it
// is the ordinary one, the message, and key=value for the attributes.
type lineHandler struct {
	w      io.Writer
	level  slog.Level
	attrs  string // attributes of WithAttrs, written out
	prefix string // groups, each with a full stop behind it
}

// Enabled tells whether records of a level are written.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle writes a record in a single call of the writer.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if r.Level != slog.LevelInfo {
		b.WriteString(levelName(r.Level) + ": ")
	}
	b.WriteString(text.Message(r.Message))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs returns a handler that adds attributes to every record.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		writeAttr(&b, h.prefix, a)
	}
	with := *h
	with.attrs = b.String()
	return &with
}

// WithGroup returns a handler that puts a name and a full stop before the keys
// of later attributes.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	with := *h
	if name != "" {
		with.prefix += name + "."
	}
	return &with
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "note"
	default:
		return "debug"
	}
}

func writeAttr(b *strings.Builder, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			writeAttr(b, prefix, inner)
		}
		return
	}
	if a.Key == "" { // slog's convention for an attribute to leave out
		return
	}
	var s string
	switch v.Kind() {
	case slog.KindFloat64:
		s = strconv.FormatFloat(v.Float64(), 'g', 5, 64)
	case slog.KindDuration:
		s = formatDuration(v.Duration())
	default:
		s = shortened(v).String()
	}
	if s == "" || strings.ContainsAny(s, ` ="`) || text.Escape(s) != s {
		s = strconv.Quote(s)
	}
	fmt.Fprintf(b, " %s=%s", text.Escape(prefix+a.Key), s)
}

// formatDuration writes a duration for people, to the second and from an hour
// on to the minute; below a second it keeps milliseconds.
func formatDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour-time.Second/2:
		s := int(d.Round(time.Second).Seconds())
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	default:
		m := int(d.Round(time.Minute).Minutes())
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
}
