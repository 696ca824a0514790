// Command cne trains contrastive neighbour embeddings.
//
// The package holds what only a program needs: its commands, each with its flags, the
// packages that it calls, and what it prints. Configurations are read by package
// configs; run folders are kept by internal/rundir and drawn by internal/figures; flags
// that commands share are in internal/cli, messages and progress in internal/console.
// What a Go programmer may want to call lives in the module's other packages, which
// know neither YAML nor flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"cne/internal/cli"
	"cne/internal/start"
	"cne/model/op"
)

// debugVariable is the environment variable that makes a crash print its stack.
const debugVariable = "CNE_DEBUG"

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	if err := start.Check(); err != nil {
		fmt.Fprintln(os.Stderr, "cne:", err)
		os.Exit(exitFailure)
	}
	op.Accelerate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal asks the command to finish; a second one, no longer
	// caught, ends the program.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, commands, os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out a command line and returns the exit code. A failure becomes
// one line on stderr.
func run(ctx context.Context, commands []func() *cobra.Command, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(stderr, "cne: internal error: %v; please report it as a bug, with the command line and the output of \"cne version\" (%s=1 shows where it happened)\n", r, debugVariable)
			if os.Getenv(debugVariable) == "1" {
				_, _ = stderr.Write(debug.Stack())
			}
			code = exitFailure
		}
	}()
	root := newRootCommand(commands, stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	fmt.Fprintln(stderr, "cne:", err)
	var usage *cli.UsageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
