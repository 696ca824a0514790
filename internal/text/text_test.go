package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for name, want := range map[string]string{
		"short":                  "short",
		strings.Repeat("ü", 200): strings.Repeat("ü", 200),
		"begin" + strings.Repeat("ü", 1000) + "end.npy": "begin" + strings.Repeat("ü", 95) + "…" + strings.Repeat("ü", 92) + "end.npy",
		strings.Repeat("\xff", 201):                     strings.Repeat("\xff", 100) + "…" + strings.Repeat("\xff", 99),
	} {
		if got := Shorten(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"":                          "",
		"Größe – 尺寸 🧬 \ufffd":       "Größe – 尺寸 🧬 \ufffd",
		"a\tb\r\nc":                 `a\tb\r\nc`,
		"\x1b[31mred\x07":           `\x1b[31mred\a`,
		"\u009b31m \u0085 \x7f":     `\u009b31m \u0085 \x7f`,
		"a\u2028b\u2029":            `a\u2028b\u2029`,
		"\u202etxt.npy\u202c\u200f": `\u202etxt.npy\u202c\u200f`,
		"\xff\ufffd\x9b":            "\\xff\ufffd\\x9b",
	} {
		if got := Escape(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

// Whatever names a message holds, it is one line of bounded length, and what to do
// stands at its end.
func TestMessage(t *testing.T) {
	const advice = ": no such file; name another with data.path"
	for _, name := range []string{
		"points.npy",
		strings.Repeat("x", 100_000),
		strings.Repeat("a b ", 25_000),
		strings.Repeat("\n", 100_000),
		strings.Repeat("\x1b[2J", 500),
		strings.Repeat("\u202e ", 5000),
		strings.Repeat("\xff", 5000),
	} {
		got := Message("open " + name + advice)
		if strings.ContainsFunc(got, Unsafe) || !utf8.ValidString(got) {
			t.Errorf("%.20q: unsafe: %q", name, got)
		}
		if n := utf8.RuneCountInString(got); n > messageLimit {
			t.Errorf("%.20q: %d characters", name, n)
		}
		if !strings.HasPrefix(got, "open ") || !strings.HasSuffix(got, advice) {
			t.Errorf("%.20q: its ends are lost: %s", name, got)
		}
		if len(name) > 4*nameLimit && !strings.Contains(name, " ") && utf8.RuneCountInString(got) > nameLimit+len("open "+advice) {
			t.Errorf("%.20q: the name is not shortened: %s", name, got)
		}
	}
}

// Command lines can be copied from messages, even with long paths.
func TestMessageKeepsCommands(t *testing.T) {
	path := strings.Repeat("/a folder", 15) + "/points"
	for _, message := range []string{
		fmt.Sprintf(`the file is JSON; convert it with python3 -c "import json; load('%s'); save('%s.csv')"`, path, path),
		fmt.Sprintf(`interrupted; "cne train --resume '%s' %s" continues`, path, strings.Repeat("--set a.b=c ", 12)),
	} {
		if got := Message(message); got != message {
			t.Errorf("got %s, want %s", got, message)
		}
	}
}

// Text in quotes is one name, including its spaces.
func TestQuotedNamesInMessages(t *testing.T) {
	words := strings.Repeat("a b\" ", 1000)
	got := Message(fmt.Sprintf("there is no column %q, but %q and \"%s", words, "c", words))
	want := "there is no column " + Shorten(strconv.Quote(words)) + ", but \"c\" and \""
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
	if n := utf8.RuneCountInString(got); n > messageLimit {
		t.Errorf("%d characters", n)
	}
}

func TestErrorMessage(t *testing.T) {
	a, b, c := errors.New("first"), errors.New("sec\nond"), errors.New("third")
	for want, err := range map[string]error{
		`sec\nond`:                  b,
		`first; sec\nond; third`:    errors.Join(errors.Join(a, b), c),
		`third for first, sec\nond`: fmt.Errorf("%w for %w, %w", c, a, b),
	} {
		if got := ErrorMessage(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestJSONWriter(t *testing.T) {
	for _, s := range []string{"plain", "two\nlines", "\x1b[31mred", "C1 \u009b", "bidi \u202e", "a tag \U000e0001", "Z̄ and 😀"} {
		var b bytes.Buffer
		if err := json.NewEncoder(JSONWriter{&b}).Encode(s); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != s {
			t.Errorf("%q means %q (%v)", b.String(), got, err)
		}
		if strings.ContainsFunc(strings.TrimSpace(b.String()), Unsafe) {
			t.Errorf("%q controls a terminal", b.String())
		}
	}
}
