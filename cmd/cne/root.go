package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/text"
	"cne/internal/version"
	"cne/model/op"
)

// commands are the functions that make cne's subcommands.
var commands = []func() *cobra.Command{
	configCmd, evaluateCmd, exportCmd, plotCmd, projectCmd, simclrCmd, spectrumCmd, sweepCmd, trainCmd, versionCmd,
}

// titlesOfLosses lists the titles of the losses.
func titlesOfLosses() string {
	var titles []string
	for _, l := range op.Losses() {
		titles = append(titles, l.Info().Title)
	}
	return text.Join(titles, "and")
}

// newRootCommand returns cne with the given subcommands, and with those that
// cobra adds: help and completion.
func newRootCommand(commands []func() *cobra.Command, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "cne",
		Short: "Draw maps of high-dimensional data: t-SNE, UMAP and all between them",
		Long: `cne draws maps of high-dimensional data: similar points lie close together, as
in t-SNE, UMAP and everything between them. It trains contrastive neighbour
embeddings (` + titlesOfLosses() + `) on the
k-nearest-neighbour graph of the points.

Results go to the run folder and to stdout, progress and messages to stderr. The
exit code is 0 on success, 1 on failure, and 2 if the command line is wrong. It
is 141 if the command succeeded, but the reader of stdout has gone.`,
		Version:       version.String(),
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
	cli.ExpandPatterns(root)
	return root
}

func configCmd() *cobra.Command {
	return printCmd(configs.Train, &cobra.Command{
		Use:   "config",
		Short: "Print or check the configuration of a run",
		Long: `Print the configuration of a run as YAML: every key with its meaning and its
value. The value comes from the defaults, the file of --config, the environment
(CNE_TRAIN_EPOCHS is train.epochs) or the flags; the last of these that has the
key counts.`,
		Example: `  cne config > my.yaml
  cne config --config my.yaml --set loss.s=0.5 --set train.phases='[{epochs: 10}]'
  cne config --config my.yaml --check`,
	})
}

// printCmd makes a command print configurations.
func printCmd[C any](s *configs.Schema[C], cmd *cobra.Command) *cobra.Command {
	var checkOnly bool
	cmd.Args = cli.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, origins, err := cli.Config(s, cmd)
		if err != nil {
			return err
		}
		if checkOnly {
			report, err := s.Report(cmd.Context(), c, origins)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), report)
			}
			return err
		}
		var yaml bytes.Buffer
		if err := s.Write(&yaml, c); err != nil {
			return err
		}
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
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "cne %s (%s, %s/%s)\n", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
