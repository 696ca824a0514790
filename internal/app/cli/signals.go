package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// sameSignal is the time after the first signal during which further signals count as the
// same. Some programs send one to a process and one to its group. If the parent was a
// thread of another program, the kernel sends one for every thread that ends.
const sameSignal = 500 * time.Millisecond

// UntilSignal returns a context that ends with the first signal that asks the program to
// end. A second signal, more than half a second later, is not caught and ends the program
// at once. Signals that were ignored when the program began stay ignored: nohup ignores
// SIGHUP, and shells without job control ignore SIGINT for what they start in the
// background.
//
// With CNE_UNTIL_EOF=1 in the environment, the context also ends with stdin. If a program
// that holds the other end of the pipe ends in any way, this program ends, too.
func UntilSignal(parent context.Context) context.Context {
	asked := []os.Signal{syscall.SIGTERM} // never empty, which would stand for all signals
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			asked = append(asked, s)
		}
	}
	ctx, stop := signal.NotifyContext(parent, asked...)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	if os.Getenv("CNE_UNTIL_EOF") == "1" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	return ctx
}

// SurvivePipes makes writes to stdout or stderr fail with EPIPE once their reader has
// gone, instead of ending the program in the middle of a run.
func SurvivePipes() {
	// Child processes inherit an ignored signal, but not a caught one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// noReader is the number of Windows' ERROR_NO_DATA, a write to a pipe without a reader.
const noReader = syscall.Errno(232)

// A ResultWriter is stdout. It remembers failures to write, and whether the reader has
// gone, since not all writers, such as the help, check for errors.
type ResultWriter struct {
	io.Writer
	Gone bool  // as a write has shown
	Err  error // of the first write that failed
}

// Write writes to stdout.
func (r *ResultWriter) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if runtime.GOOS == "windows" && errors.Is(err, noReader) {
		err = syscall.EPIPE
	}
	if errors.Is(err, syscall.EPIPE) {
		r.Gone = true
	}
	r.Err = cmp.Or(r.Err, err)
	return n, err
}
