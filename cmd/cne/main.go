// Command cne trains contrastive neighbour embeddings.
//
// The package has the program's commands, with their flags and what they print. Package
// configs reads configurations. internal/app/rundir keeps run folders, and
// internal/app/report draws them. internal/app/cli has the flags and reports that
// commands share. Go programs use the module's other packages, which know neither YAML
// nor flags.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"cne/internal/app/cli"
	"cne/internal/text"
	"cne/model/op"
)

// debugVariable is the environment variable that makes a crash print its stack.
const debugVariable = "CNE_DEBUG"

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// exitPipe is the exit code when the reader of stdout has gone: 128 plus the number
	// of SIGPIPE, as shells report it.
	exitPipe = 141
)

func main() {
	cli.SurvivePipes()
	op.Accelerate()
	os.Exit(run(cli.UntilSignal(context.Background()), commands, os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out a command line and returns the exit code. A failure becomes one line on
// stderr. If the reader of stdout has gone, only the exit code says so.
func run(ctx context.Context, commands []func() *cobra.Command, args []string, stdout, stderr io.Writer) (code int) {
	out := &cli.ResultWriter{Writer: stdout}
	root := newRootCommand(commands, out, stderr)
	report := func(message string, attributes ...any) {
		cli.PrintError(stderr, cli.ErrorFormat(root, args), "cne", message, attributes...)
	}
	defer func() {
		if r := recover(); r != nil {
			report(fmt.Sprintf("internal error: %v; please report it as a bug, with the command line and the output of \"cne version\" (%s=1 shows where it happened)", r, debugVariable))
			if os.Getenv(debugVariable) == "1" {
				_, _ = stderr.Write(debug.Stack())
			}
			code = exitFailure
		}
	}()
	root.SetArgs(args)
	err := cmp.Or(root.ExecuteContext(ctx), out.Err)
	if err == nil {
		return exitOK
	}
	if out.Gone && errors.Is(err, syscall.EPIPE) {
		return exitPipe
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	var attributes []any
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		attributes = []any{"errno", int(errno)} // lets programs raise the matching exception
	}
	report(text.ErrorMessage(err), attributes...)
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
