// Package cli has the common parts of the program's command lines: usage errors, flags
// for the sources of a configuration, and checks of the files that flags name.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cne/internal/text"
)

// A UsageError is a command line that cannot be carried out as written: an
// unknown command or flag, a flag's value of the wrong form, or arguments too
// few or too many.
type UsageError struct {
	command string // whose help to see, such as "cne train"
	err     error
}

// Usage makes an error one of the usage of a command; nil stays nil.
func Usage(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{cmd.CommandPath(), err}
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%v; see \"%s --help\"", e.err, e.command)
}

func (e *UsageError) Unwrap() error { return e.err }

// Complete adds cobra's help and completion to a root command with its subcommands, and
// turns errors of flags and arguments into usage errors.
func Complete(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(cmd, explain(err))
	})
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = knownTopic
		case "completion": // without arguments it prints its help, as the root does
			c.Args, c.RunE = KnownCommand, ShowHelp
		}
		markUsageErrors(c)
	}
	markUsageErrors(root)
}

// allowedValues says what the values of a type of flag are.
var allowedValues = map[string]string{"bool": "true or false", "int": "a whole number", "float64": "a number"}

// explain rewrites an error about the value of a flag in plain words; other errors are
// returned unchanged.
func explain(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	allowed, known := allowedValues[flag.Value.Type()]
	switch {
	case errors.Is(invalid, errEmpty):
		return fmt.Errorf("--%s %w", flag.Name, errEmpty)
	case outOfRange(flag.Value.Type(), invalid.GetValue()):
		return fmt.Errorf("--%s: got %s, which is too large", flag.Name, text.Printable(invalid.GetValue()))
	case known:
		return fmt.Errorf("--%s: got %s, want %s", flag.Name, text.Quote(invalid.GetValue()), allowed)
	}
	return err
}

// outOfRange reports whether a flag's value is a number out of the range of its type.
// pflag's error does not say so.
func outOfRange(kind, value string) bool {
	var err error
	switch kind {
	case "int":
		_, err = strconv.ParseInt(value, 0, strconv.IntSize)
	case "float64":
		_, err = strconv.ParseFloat(value, 64)
	}
	return errors.Is(err, strconv.ErrRange)
}

// markUsageErrors turns errors about the arguments and empty flags of a command and its
// subcommands into usage errors.
func markUsageErrors(c *cobra.Command) {
	validate := c.Args
	if validate == nil {
		validate = cobra.ArbitraryArgs
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := noEmptyFlag(cmd)
		if err == nil {
			err = validate(cmd, args)
		}
		return Usage(cmd, err)
	}
	if c.HasParent() {
		for _, sub := range c.Commands() {
			markUsageErrors(sub)
		}
	}
}

// errEmpty is the error of a flag with an empty value.
var errEmpty = errors.New("is empty; give it a value, or leave it out")

// emptyNote is the annotation of a flag that may be empty.
const emptyNote = "cne/may-be-empty"

// MayBeEmpty says of a flag that an empty value means something.
func MayBeEmpty(cmd *cobra.Command, name string) {
	// This fails only for a flag that does not exist.
	if err := cmd.Flags().SetAnnotation(name, emptyNote, nil); err != nil {
		panic(err)
	}
}

// noEmptyFlag refuses empty flag values: they usually come from an unset shell variable.
func noEmptyFlag(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, may := f.Annotations[emptyNote]; may || err != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" {
			return
		}
		if slices.Contains(values, "") {
			err = fmt.Errorf("--%s %w", f.Name, errEmpty)
		}
	})
	return err
}

// ShowHelp runs a command that only has subcommands.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// NoArguments accepts a command line with flags only.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: got argument %s, want none", cmd.CommandPath(), text.Quote(args[0]))
	}
	return nil
}

// ExactlyOne accepts a command line with one argument, which what describes.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%s: got %d arguments, want one, %s", cmd.CommandPath(), len(args), what)
	}
}

// KnownCommand is the check of a command with subcommands; it gets arguments
// only if the first of them names no subcommand.
func KnownCommand(parent *cobra.Command, args []string) error {
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
		return KnownCommand(found, rest)
	}
	return nil
}
