package main

import (
	"io"

	"github.com/spf13/cobra"

	"cne/internal/app/cli"
	"cne/internal/text"
	"cne/internal/version"
	"cne/model/op"
)

// commands lists what makes the subcommands of cne.
var commands = []func() *cobra.Command{
	configCmd,
	evaluateCmd,
	plotCmd,
	projectCmd,
	simclrCmd,
	spectrumCmd,
	sweepCmd,
	trainCmd,
	versionCmd,
}

// titlesOfLosses lists the losses.
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
		Short: "Contrastive neighbour embeddings: t-SNE, UMAP and what lies between",
		Long: `cne places points in the plane so that neighbours stay neighbours. It trains
contrastive neighbour embeddings (` + titlesOfLosses() + `)
on the k-nearest-neighbour graph of the points.

Results go to the run folder and to stdout, progress and messages to stderr.
The exit code is 0 on success, 1 on failure and 2 if the command line is wrong;
it is 141 if all is done but nobody reads stdout any longer.`,
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
	return root
}
