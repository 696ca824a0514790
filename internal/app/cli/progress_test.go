package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// A clock is a time that a test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

// newLines returns progress in lines, and newBar as a bar.
func newLines() (*lineProgress, *clock, *bytes.Buffer) {
	b, ck := new(bytes.Buffer), new(clock)
	return &lineProgress{w: b, now: ck.now}, ck, b
}

func newBar() (*barProgress, *clock, *bytes.Buffer) {
	b, ck := new(bytes.Buffer), new(clock)
	return &barProgress{con: newTestTerminal(b, 200), now: ck.now}, ck, b
}

// says compares the output so far.
func says(t *testing.T, b fmt.Stringer, want string) {
	t.Helper()
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s\n(%q, want %q)", got, want, got, want)
	}
}

func TestLineProgress(t *testing.T) {
	p, ck, b := newLines()
	p.Start(100)
	for e := 1; e <= 100; e++ {
		ck.advance(120 * time.Millisecond) // 12 s in all
		p.Report(EpochReport{Epoch: e, Epochs: 100, Loss: 3.41234567, Unit: "edges", Speed: 41.23e6, Left: time.Duration(100-e) * 120 * time.Millisecond})
	}
	p.Done()
	p.Done() // a second one has nothing to add
	want := `epoch  42/100  loss 3.4123  41.2 M edges/s  7s left
epoch  84/100  loss 3.4123  41.2 M edges/s  2s left
epoch 100/100  loss 3.4123  41.2 M edges/s
`
	says(t, b, want)
}

// Within epochs that take long, a line comes every minute.
func TestLineProgressWithinEpochs(t *testing.T) {
	p, ck, b := newLines()
	p.Start(2)
	accuracy := 0.5
	for part := range 199 {
		ck.advance(time.Second)
		p.Report(EpochReport{Epoch: 1, Part: float64(part+1) / 200, Epochs: 20, Loss: 3, Accuracy: &accuracy, Unit: "images", Speed: 200, Left: time.Hour})
	}
	p.Report(EpochReport{Epoch: 2, Epochs: 20, Loss: 2, Unit: "images", Speed: 210, Left: -1})
	p.Done()
	want := `epoch  1.30/20  loss 3  accuracy 0.5000  200 images/s  1h0m left
epoch  1.60/20  loss 3  accuracy 0.5000  200 images/s  1h0m left
epoch  1.90/20  loss 3  accuracy 0.5000  200 images/s  1h0m left
epoch  2/20  loss 2  210 images/s
`
	says(t, b, want)
}

// drew compares how often a bar was drawn, and how.
func drew(t *testing.T, b *bytes.Buffer, times int, want map[int]string) {
	t.Helper()
	lines := strings.Split(b.String(), startOfLine)[1:]
	if len(lines) != times {
		t.Fatalf("drawn %d times, want %d", len(lines), times)
	}
	for k, line := range want {
		if lines[k] != line {
			t.Errorf("got %q, want %q", lines[k], line)
		}
	}
}

func TestBarProgressWithinEpochs(t *testing.T) {
	p, ck, b := newBar()
	p.Start(4)
	for part := range 10 {
		ck.advance(20 * time.Millisecond)
		p.Report(EpochReport{Epoch: 1, Part: float64(part+1) / 20, Epochs: 4, Loss: 2, Unit: "images", Speed: 50, Left: time.Minute})
	}
	drew(t, b, 3, map[int]string{2: "epoch 1.50/4 [=======>            ]  38 %  loss 2  50 images/s  1m0s left"})
}

// The time left depends on what the epochs take.
func TestWorkLeft(t *testing.T) {
	dear := Work(func(epochs float64) float64 { return epochs + 3*max(0, epochs-2) }) // four times as long from the third on
	for _, c := range []struct {
		from, to, all float64
		want          time.Duration
	}{{0, 1, 4, 90 * time.Second}, {0, 0.5, 2, 30 * time.Second}, {1, 3, 4, 8 * time.Second}, {3.5, 4, 4, 0}} {
		if got := dear.left(10*time.Second, c.from, c.to, c.all); got != c.want {
			t.Errorf("%v to %v of %v: %v left, want %v", c.from, c.to, c.all, got, c.want)
		}
	}
}

func TestLineProgressEndsEarly(t *testing.T) {
	p, _, b := newLines()
	p.Start(100)
	p.Done()
	says(t, b, "") // without an epoch
	p.Start(100)
	p.Report(EpochReport{Epoch: 3, Epochs: 100, Unit: "edges", Left: -1})
	p.Done()
	says(t, b, "epoch   3/100  loss 0  0 edges/s\n")
}

// newTestTerminal returns a console that takes the buffer for a terminal.
func newTestTerminal(b *bytes.Buffer, width int) *console {
	return &console{w: b, terminal: true, width: func() int { return width }}
}

func TestBarProgress(t *testing.T) {
	p, ck, b := newBar()
	p.Start(1000)
	for e := 1; e <= 1000; e++ {
		ck.advance(time.Millisecond)
		p.Report(EpochReport{Epoch: e, Epochs: 1000, Loss: 2, Unit: "edges", Speed: 1500, Left: time.Duration(1000-e) * time.Millisecond})
	}
	p.Done()
	// Once at the start, ten times a second, and not twice at the end.
	drew(t, b, 11, map[int]string{
		5:  "epoch  500/1000 [==========>         ]  50 %  loss 2  1.5 k edges/s  500ms left",
		10: "epoch 1000/1000 [====================] 100 %  loss 2  1.5 k edges/s" + strings.Repeat(" ", len("  100ms left")) + "\n",
	})
}

func TestMessagesGoAboveTheBar(t *testing.T) {
	var b bytes.Buffer
	con := newTestTerminal(&b, 80)
	con.drawBar("bar 1")
	if n, err := io.WriteString(con, "message\n"); n != len("message\n") || err != nil {
		t.Errorf("wrote %d, error %v", n, err)
	}
	con.endBar()
	con.endBar()
	if _, err := io.WriteString(con, "later\n"); err != nil {
		t.Error(err)
	}
	want := startOfLine + "bar 1" + startOfLine + "     " + startOfLine + "message\nbar 1\nlater\n"
	says(t, &b, want)
}

func TestBarIsCutToTheTerminal(t *testing.T) {
	for _, width := range []int{0, 1, 5} {
		var b bytes.Buffer
		newTestTerminal(&b, width).drawBar("äöüäöüäöü")
		line := strings.TrimPrefix(b.String(), startOfLine)
		if n := utf8.RuneCountInString(line); n != max(0, width-1) {
			t.Errorf("width %d: %d characters", width, n)
		}
	}
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{-1: "[>   ]", 0: "[>   ]", 0.5: "[==> ]", 0.99: "[===>]", 1: "[====]", 7: "[====]"} {
		if got := bar(share, 4); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
}

func TestFormatCount(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12: "12", 999: "999", 999.6: "1 k", 1234: "1.23 k", 999_900: "1 M", 41.2e6: "41.2 M", 2e9: "2 G"} {
		if got := formatCount(x); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}

// Neither a buffer nor a file is a terminal.
func TestConsoleWithoutTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, new(bytes.Buffer)} {
		if newConsole(w).terminal {
			t.Errorf("%T is taken for a terminal", w)
		}
		if _, ok := newReporter(w, "text", false).Progress.(*lineProgress); !ok {
			t.Errorf("%T gets a bar", w)
		}
	}
}

// Records tell of a long epoch once a minute, and where in it training is.
func TestRecordsWithinAnEpoch(t *testing.T) {
	var b strings.Builder
	ck := &clock{}
	p := &recordProgress{log: slog.New(slog.NewJSONHandler(&b, nil)), now: ck.now}
	p.Start(2)
	for part := range 9 {
		ck.advance(20 * time.Second)
		p.Report(EpochReport{Part: float64(part+1) / 10, Epochs: 2, Loss: 3, Unit: "images", Speed: 200, Left: time.Hour})
	}
	p.Report(EpochReport{Epoch: 1, Epochs: 2, Loss: 2, Unit: "images", Speed: 200, Left: time.Hour})
	p.Done()
	for what, want := range map[string]int{`"within an epoch"`: 3, `"part":0.3`: 1, `"part":0.9`: 1, `"part":`: 3, `"msg":"epoch"`: 1} {
		if got := strings.Count(b.String(), what); got != want {
			t.Errorf("%s stands %d times, want %d, in\n%s", what, got, want, b.String())
		}
	}
}

// Only what takes long is told.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := newReporter(&out, "text", false)
		done := r.While("reading")
		time.Sleep(999 * time.Millisecond)
		done()
		done = r.While("measuring")
		time.Sleep(time.Minute)
		done()
		if got := out.String(); got != "measuring\n" {
			t.Errorf("got %q", got)
		}
	})
}
