package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"cne/train"
)

// Progress reports the progress of training. Start is called first, Report after each
// epoch and within long epochs, and Done last, also after a failure.
type Progress interface {
	Start(epochs int)
	Report(e EpochReport)
	Done()
}

// An EpochReport is the progress after an epoch, or within one.
type EpochReport struct {
	Epoch  int     // epochs done, counted from 1
	Part   float64 // share of the next epoch that is done, below 1; 0 after an epoch
	Epochs int     // epochs in all
	Loss   float64 // of the epoch, as it is logged
	Unit   string  // of the speed: edges or images
	Speed  float64 // units per second
	// Accuracy is the monitor's latest value, or nil.
	Accuracy *float64
	Left     time.Duration // estimated time to the end; negative if unknown
}

// numbers returns the report without the epoch, such as
// "loss 3.4123  41.2 M edges/s  1m20s left".
func (e EpochReport) numbers() string {
	s := fmt.Sprintf("loss %.5g", e.Loss)
	if e.Accuracy != nil {
		s += fmt.Sprintf("  accuracy %.4f", *e.Accuracy)
	}
	s += fmt.Sprintf("  %s %s/s", formatCount(e.Speed), e.Unit)
	if e.Epoch < e.Epochs && e.Left >= 0 {
		s += "  " + formatDuration(e.Left) + " left"
	}
	return s
}

func (e EpochReport) count() string {
	digits := len(fmt.Sprint(e.Epochs))
	if e.Part > 0 {
		return fmt.Sprintf("epoch %*.2f/%d", digits+3, float64(e.Epoch)+e.Part, e.Epochs)
	}
	return fmt.Sprintf("epoch %*d/%d", digits, e.Epoch, e.Epochs)
}

// formatCount writes a large number with three digits and a unit prefix.
func formatCount(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		// A number that %.3g would round up to 1000 belongs to the next larger unit.
		if x >= 0.9995*unit.size {
			return fmt.Sprintf("%.3g%s", x/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g", x)
}

// redrawEvery limits how often the bar is drawn.
const redrawEvery = 100 * time.Millisecond

// barProgress keeps one line on a terminal up to date.
type barProgress struct {
	con  *console
	now  func() time.Time
	last time.Time // when the bar was drawn
}

func (p *barProgress) Start(epochs int) {
	p.draw(EpochReport{Epochs: epochs}, "")
}

func (p *barProgress) Report(e EpochReport) {
	if e.Epoch == e.Epochs || p.now().Sub(p.last) >= redrawEvery {
		p.draw(e, e.numbers())
	}
}

func (p *barProgress) Done() { p.con.endBar() }

func (p *barProgress) draw(e EpochReport, numbers string) {
	share := (float64(e.Epoch) + e.Part) / float64(max(1, e.Epochs))
	p.con.drawBar(fmt.Sprintf("%s %s %3.0f %%  %s", e.count(), bar(share, 20), 100*share, numbers))
	p.last = p.now()
}

// Without a bar, lines are written at most every printEvery, and within an epoch at most
// every printPartEvery.
const (
	printEvery     = 5 * time.Second
	printPartEvery = time.Minute
)

// lineProgress writes a line every few seconds, and one for the last epoch.
type lineProgress struct {
	w       io.Writer
	now     func() time.Time
	last    time.Time   // of the last line, or of the start
	pending EpochReport // the newest report, if it has not been written
}

func (p *lineProgress) Start(int) { p.last = p.now() }

func (p *lineProgress) Report(e EpochReport) {
	since := p.now().Sub(p.last)
	if e.Part == 0 || since >= printPartEvery {
		p.pending = e
		if since >= printEvery {
			p.print()
		}
	}
}

// Done writes the last report unless it has been written.
func (p *lineProgress) Done() {
	if p.pending.Epoch > 0 {
		p.print()
	}
}

func (p *lineProgress) print() {
	// A failure to write this is ignored.
	_, _ = fmt.Fprintf(p.w, "%s  %s\n", p.pending.count(), p.pending.numbers())
	p.pending, p.last = EpochReport{}, p.now()
}

// recordProgress logs a record for each epoch, and every minute within one.
type recordProgress struct {
	log  *slog.Logger
	now  func() time.Time
	last time.Time // of the last record
}

func (p *recordProgress) Start(epochs int) {
	p.log.Info("training starts", "epochs", epochs)
	p.last = p.now()
}

func (p *recordProgress) Report(e EpochReport) {
	what := "epoch"
	if e.Part > 0 {
		if what = "within an epoch"; p.now().Sub(p.last) < printPartEvery {
			return
		}
	}
	attrs := []any{"epoch", e.Epoch, "epochs", e.Epochs, "loss", e.Loss, e.Unit + "_per_second", e.Speed}
	if e.Accuracy != nil {
		attrs = append(attrs, "accuracy", *e.Accuracy)
	}
	if e.Left >= 0 {
		attrs = append(attrs, "seconds_left", e.Left.Seconds())
	}
	if e.Part > 0 {
		attrs = append(attrs, "part", e.Part)
	}
	p.log.Info(what, attrs...)
	p.last = p.now()
}

func (p *recordProgress) Done() { p.log.Info("training ends") }

// Work is the work of the first epochs, in any unit, such as their number if all take the same.
type Work func(epochs float64) float64

// left returns the time that the rest of all epochs takes if those between two took elapsed.
func (w Work) left(elapsed time.Duration, from, to, all float64) time.Duration {
	return time.Duration(float64(elapsed) * (w(all) - w(to)) / (w(to) - w(from)))
}

// EpochHook returns a hook that reports every epoch of a run; done epochs were over
// before this process began. unit is the unit of an epoch: edges or images. accuracy, if
// not nil, returns the monitor's latest value.
func (r *Reporter) EpochHook(unit string, done int, work Work, accuracy func() *float64) train.Hook {
	began := time.Now()
	return train.HookFunc(func(s *train.State) error {
		report := EpochReport{Epoch: s.Epoch, Epochs: s.Epochs, Loss: s.Loss, Unit: unit, Speed: s.EdgesPerSecond,
			Left: work.left(time.Since(began), float64(done), float64(s.Epoch), float64(s.Epochs))}
		if accuracy != nil {
			report.Accuracy = accuracy()
		}
		r.Progress.Report(report)
		return nil
	})
}

// OnBatch returns a function for train.Options.OnBatch that reports the progress within
// epochs, whose batches have perBatch units. For accuracy see EpochHook.
func (r *Reporter) OnBatch(unit string, epochs, perBatch int, work Work, accuracy func() *float64) func(epoch, done, batches int, loss float64) {
	began, start := time.Now(), -1 // of this process, in batches
	return func(epoch, done, batches int, loss float64) {
		at := (epoch-1)*batches + done
		if start < 0 {
			start = at - 1
		}
		if done == batches {
			return // the hook of the epoch comes next
		}
		elapsed := max(time.Since(began), time.Microsecond)
		share := func(at int) float64 { return float64(at) / float64(batches) }
		r.Progress.Report(EpochReport{Epoch: epoch - 1, Part: float64(done) / float64(batches), Epochs: epochs, Loss: loss, Unit: unit,
			Speed: float64(perBatch*(at-start)) / elapsed.Seconds(), Accuracy: accuracy(),
			Left: work.left(elapsed, share(start), share(at), float64(epochs))})
	}
}

// A console is stderr, shared by messages and the progress bar: a message
// written while a bar stands on the terminal's last line goes above the bar.
// It is safe for use by several goroutines.
type console struct {
	terminal bool       // whether a line can be overwritten
	width    func() int // columns of the terminal

	mu  sync.Mutex
	w   io.Writer
	bar string // what stands on the last line; "" if nothing does
}

// newConsole returns the console that writes to w. It overwrites lines only if w is a
// terminal that can.
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

// startOfLine moves the cursor. Blanks erase the line, because Windows' older consoles
// know no sequences for it.
const startOfLine = "\r"

// overBar returns blanks to erase the bar beyond the text that replaces it.
func (c *console) overBar(with string) string {
	return strings.Repeat(" ", max(0, utf8.RuneCountInString(c.bar)-utf8.RuneCountInString(with)))
}

// Write writes whole lines above the bar.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == "" {
		return c.w.Write(p)
	}
	if _, err := io.WriteString(c.w, startOfLine+c.overBar("")+startOfLine+string(p)+c.bar); err != nil {
		return 0, err
	}
	return len(p), nil
}

// drawBar replaces the bar by a line, cut to the width of the terminal. Failures to write
// are ignored: they must not end a run.
func (c *console) drawBar(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The last column stays free, since some terminals wrap when it fills.
	if r := []rune(line); len(r) >= c.width() {
		line = string(r[:max(0, c.width()-1)])
	}
	_, _ = io.WriteString(c.w, startOfLine+line+c.overBar(line))
	c.bar = line
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
	inside := strings.Repeat("=", filled) + ">" + strings.Repeat(" ", columns)
	return "[" + inside[:columns] + "]"
}
