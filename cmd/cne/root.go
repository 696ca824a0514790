package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cne/internal/text"
	"cne/internal/version"
)

// commands lists what makes the subcommands of cne.
var commands = []func() *cobra.Command{
	configCmd,
	evaluateCmd,
	plotCmd,
	projectCmd,
	simclrCmd,
	spectrumCmd,
	trainCmd,
	versionCmd,
}

// A usageError is a command line that cannot be carried out as written: an
// unknown command or flag, a flag's value of the wrong form, or arguments too
// few or too many.
type usageError struct {
	command string // whose help to see, such as "cne train"
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v; see \"%s --help\"", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// newRootCommand returns cne with the given subcommands, and with those that
// cobra adds: help and completion.
func newRootCommand(commands []func() *cobra.Command, stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "cne",
		Short: "Contrastive neighbour embeddings: t-SNE, UMAP and what lies between",
		Long: `cne places points in the plane so that neighbours stay neighbours. It trains
contrastive neighbour embeddings (Neg-t-SNE, NC-t-SNE, InfoNC-t-SNE and UMAP)
on the k-nearest-neighbour graph of the points.

Results go to the run folder and to stdout, progress and messages to stderr.
The exit code is 0 on success, 1 on failure and 2 if the command line is wrong.`,
		Version:       version.String(),
		Args:          knownCommand,
		RunE:          showHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("cne {{.Version}}\n")
	root.PersistentFlags().String("log-format", "", "`form` of progress and messages on stderr: text or json (same as --set log.format=…)")
	root.PersistentFlags().BoolP("quiet", "q", false, "no progress, and no messages but warnings and errors")
	for _, c := range commands {
		root.AddCommand(c())
	}
	root.SetOut(stdout) // before the next lines: completion keeps what it finds
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cmd.CommandPath(), errors.New(strings.ReplaceAll(err.Error(), "\n", " "))}
	})
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = knownTopic
		case "completion": // alone it prints its help, as cne does
			c.Args, c.RunE = knownCommand, showHelp
		}
		markUsageErrors(c)
	}
	markUsageErrors(root)
	return root
}

// markUsageErrors turns what the argument checks of a command and of its
// subcommands report into usage errors.
func markUsageErrors(c *cobra.Command) {
	if validate := c.Args; validate != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := validate(cmd, args); err != nil {
				return &usageError{cmd.CommandPath(), err}
			}
			return nil
		}
	}
	if c.HasParent() {
		for _, sub := range c.Commands() {
			markUsageErrors(sub)
		}
	}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArguments accepts a command line with flags alone.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %s", cmd.CommandPath(), text.Quote(args[0]))
	}
	return nil
}

// knownCommand is the check of a command with subcommands; it gets arguments
// only if the first of them names no subcommand.
func knownCommand(parent *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			known = append(known, c.Name())
		}
	}
	name := strings.TrimPrefix(parent.CommandPath()+" "+args[0], parent.Root().Name()+" ")
	if near := text.Nearest(args[0], known); near != "" {
		return fmt.Errorf("there is no command %s; did you mean %s?", text.Quote(name), near)
	}
	return fmt.Errorf("there is no command %s", text.Quote(name))
}

// knownTopic accepts the path of a command after "cne help".
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return knownCommand(found, rest)
	}
	return nil
}

// isQuiet tells whether --quiet was given to a command.
func isQuiet(cmd *cobra.Command) bool {
	quiet, err := cmd.Flags().GetBool("quiet")
	return err == nil && quiet
}
