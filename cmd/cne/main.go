// Command cne trains contrastive neighbour embeddings.
//
// The package has the program's commands, with their flags and what they print. Package
// configs reads configurations. internal/app/rundir keeps run folders, and
// internal/app/report draws them. internal/app/cli has the flags and reports that
// commands share. Go programs use the module's other packages, which know neither YAML
// nor flags.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/kind"
	"cne/internal/selection"
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
	if runtime.GOOS == "windows" {
		args = cli.Expand(args)
	}
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
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		attributes = []any{"errno", int(errno)} // lets programs raise the matching exception
	}
	report(text.ErrorMessage(err), attributes...)
	if _, ok := errors.AsType[*cli.UsageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// commands are the functions that make cne's subcommands.
var commands = []func() *cobra.Command{
	configCmd, evaluateCmd, exportCmd, plotCmd, projectCmd, simclrCmd, spectrumCmd, sweepCmd, trainCmd, versionCmd,
}

// newRootCommand returns cne with the given subcommands, and with those that
// cobra adds: help and completion.
func newRootCommand(commands []func() *cobra.Command, stdout, stderr io.Writer) *cobra.Command {
	losses := selection.Map(op.Losses(), func(l op.Loss) string { return l.Info().Title })
	root := &cobra.Command{
		Use:   "cne",
		Short: "Draw maps of high-dimensional data: t-SNE, UMAP and all between them",
		Long: `cne draws maps of high-dimensional data: similar points lie close together, as
in t-SNE, UMAP and everything between them. It trains contrastive neighbour
embeddings (` + text.Join(losses, "and") + `) on the
k-nearest-neighbour graph of the points.

Results go to the run folder and to stdout, progress and messages to stderr. The
exit code is 0 on success, 1 on failure, and 2 if the command line is wrong. It
is 141 if the command succeeded, but the reader of stdout has gone.`,
		Version:       configs.Version(),
		Args:          cli.KnownCommand,
		RunE:          cli.ShowHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("cne {{.Version}}\n")
	cli.AddReportFlags(root)
	for _, c := range commands {
		root.AddCommand(c())
	}
	root.SetOut(stdout) // before the next lines: completion keeps what it finds
	root.SetErr(stderr)
	cli.Complete(root)
	return root
}

func configCmd() *cobra.Command {
	return printCmd(configs.Train, "cne config", "loss.s=0.5 --set train.phases='[{epochs: 10}]'")
}

// printCmd returns the command, with the given line, that prints configurations. setting is
// an example.
func printCmd[C any](s *configs.Schema[C], line, setting string) *cobra.Command {
	var checkOnly bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: fmt.Sprintf("Print or check the configuration of %q", s.Command()),
		Long: fmt.Sprintf(`Print the configuration of %q as YAML: every key with its
meaning and its value. The value comes from the defaults, the file of --config,
the environment (CNE_TRAIN_EPOCHS is train.epochs) or the flags; the last of
these that has the key counts.`, s.Command()),
		Example: strings.NewReplacer("LINE", line, "SETTING", setting).Replace(`  LINE > my.yaml
  LINE --config my.yaml --set SETTING
  LINE --config my.yaml --check`),
		Args: cli.NoArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		defer kind.Catch(&err)
		from := kind.Got(cli.Sources(cmd))
		c, origins, err := s.Load(&from)
		kind.Check(cli.ConfigError(cmd, from, err))
		if checkOnly {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), kind.Got(s.Report(cmd.Context(), c, origins)))
			return err
		}
		var yaml bytes.Buffer
		kind.Check(s.Write(&yaml, c))
		_, err = cmd.OutOrStdout().Write(yaml.Bytes())
		return err
	}
	cli.AddFlags(s, cmd)
	cmd.Flags().BoolVar(&checkOnly, "check", false, "check the configuration and its files, and estimate the memory of a run")
	return cmd
}

func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "cne %s (%s, %s/%s)\n", configs.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
