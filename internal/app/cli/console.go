package cli

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A console is stderr, shared by messages and the progress bar: a message
// written while a bar stands on the terminal's last line goes above the bar.
// It is safe for use by several goroutines.
type console struct {
	terminal bool       // whether a line can be drawn over
	width    func() int // columns of the terminal

	mu  sync.Mutex
	w   io.Writer
	bar string // what stands on the last line; "" if nothing does
}

// newConsole returns the console that writes to w. It draws over lines only if
// w is a terminal that can.
func newConsole(w io.Writer) *console {
	c := &console{w: w, width: func() int { return 80 }}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return c
	}
	c.terminal = true
	c.width = func() int {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
		return 80
	}
	return c
}

// Control sequences of terminals.
const (
	startOfLine = "\r"
	eraseLine   = "\x1b[K"
)

// Write writes whole lines above the bar.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == "" {
		return c.w.Write(p)
	}
	if _, err := io.WriteString(c.w, startOfLine+eraseLine+string(p)+c.bar); err != nil {
		return 0, err
	}
	return len(p), nil
}

// drawBar puts a line in the place of the bar, cut to the width of the
// terminal. Failures to write are ignored: a run need not end because nobody
// sees its progress.
func (c *console) drawBar(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The last column stays free, since some terminals wrap when it fills.
	if r := []rune(line); len(r) >= c.width() {
		line = string(r[:max(0, c.width()-1)])
	}
	c.bar = line
	_, _ = io.WriteString(c.w, startOfLine+line+eraseLine)
}

// endBar leaves the bar where it is and moves to the next line.
func (c *console) endBar() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != "" {
		c.bar = ""
		_, _ = io.WriteString(c.w, "\n")
	}
}

// bar draws a bar of the given number of columns, filled up to a share
// between 0 and 1.
func bar(share float64, columns int) string {
	filled := int(min(1, max(0, share)) * float64(columns))
	if filled == columns {
		return "[" + strings.Repeat("=", columns) + "]"
	}
	return "[" + strings.Repeat("=", filled) + ">" + strings.Repeat(" ", columns-filled-1) + "]"
}
