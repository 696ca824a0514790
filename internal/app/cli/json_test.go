package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"cne/internal/text"
)

// nasty is a name with characters that control a terminal.
const nasty = "a\x1b[31m\x07\r\n\u009b2J\x7f\u2028\u202e\x9bz"

// checkLines checks the number of lines, and that nothing in them controls a terminal.
func checkLines(t *testing.T, got string, lines int) {
	t.Helper()
	if strings.Count(got, "\n") != lines || !strings.HasSuffix(got, "\n") {
		t.Errorf("not %d lines: %q", lines, got)
	}
	if strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), text.Unsafe) || strings.Contains(got, "\x9bz") {
		t.Errorf("unsafe: %q", got)
	}
}

func TestPrintError(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, message := range []string{"plain", "cne: of the library", "no file " + nasty, "no file " + long + "; name another"} {
		var b bytes.Buffer
		PrintError(&b, "text", "cne", message)
		checkLines(t, b.String(), 1)
		if b.Len() > 400 || !strings.HasPrefix(b.String(), "cne: ") || strings.Contains(b.String(), "cne: cne: ") {
			t.Errorf("text: got %s", b.String())
		}
		b.Reset()
		PrintError(&b, "json", "cne", message)
		checkLines(t, b.String(), 1)
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal(b.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		if record.Level != "ERROR" || record.Time == "" || record.Msg != text.Message(message) {
			t.Errorf("json: got %s", b.String())
		}
	}
}

// Names in records, as message and value, control nothing, and are short.
func TestNastyNamesInRecords(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log := newReporter(&b, format, false).Log
		log.Info("read "+nasty, "file", nasty, "error", errors.New(nasty))
		log.With("file", nasty).WithGroup("group").Warn("read", "file", strings.Repeat("x", 100_000))
		checkLines(t, b.String(), 2)
		if b.Len() > 1500 {
			t.Errorf("%s: %d bytes", format, b.Len())
		}
		for line := range strings.Lines(b.String()) {
			if format == "json" && !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
	}
}
