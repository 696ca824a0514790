package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cne/internal/text"
)

// nasty is what nobody wants to see of a name on a terminal.
const nasty = "a\x1b[31m\x07\r\n\u009b2J\x7f\u2028\u202e\x9bz"

// checkLines checks that text has so many lines and nothing that controls a terminal.
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
	for _, message := range []string{"plain", "no file " + nasty, "no file " + long + "; name another"} {
		var b bytes.Buffer
		PrintError(&b, "text", "cne", message)
		checkLines(t, b.String(), 1)
		if b.Len() > 400 || !strings.HasPrefix(b.String(), "cne: ") {
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

// Names in records, as message, key and value, control nothing, and are short.
func TestNastyNamesInRecords(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log := NewReporter(&b, format, false).Log
		log.Info("read "+nasty, "file", nasty, nasty, 1, "error", errors.New(nasty))
		log.With("file", nasty).WithGroup(nasty).Warn("read", "file", strings.Repeat("x", 100_000))
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

// What a value means in JSON is not changed by making it safe.
func TestSafeWriterKeepsJSON(t *testing.T) {
	want := strings.ToValidUTF8(nasty, "\ufffd") + "ü🧬"
	line, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := NewSafeWriter(&b).Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	checkLines(t, b.String(), 1)
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want {
		t.Errorf("got %q, error %v, of %s", got, err, b.String())
	}
}

// Characters may come in pieces; what is no character in the end is escaped.
func TestSafeWriterInPieces(t *testing.T) {
	const in, want = "tab\tü🧬\x1b[0m \xc3(\xf0\x9f\x9f\n\xe2\x80\xae \xf0\x9f", "tab\tü🧬\\u001b[0m \\xc3(\\xf0\\x9f\\x9f\n\\u202e \\xf0\\x9f"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in))} {
		var b bytes.Buffer
		s := NewSafeWriter(&b)
		// Hidden methods make Copy hand over what the reader gives.
		if _, err := io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{r}); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got %q", name, b.String())
		}
	}
}

func TestSafeWriterFails(t *testing.T) {
	r, w := io.Pipe()
	broken := errors.New("broken")
	if err := r.CloseWithError(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSafeWriter(w).Write([]byte("x")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
