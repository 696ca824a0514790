// Package cli has the common parts of the program's command lines: usage errors, flags
// for the sources of a configuration, and checks of the files that flags name.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cne/internal/text"
)

// A UsageError is an invalid command line: an unknown command or flag, a flag's value of
// the wrong form, or too few or too many arguments.
type UsageError struct {
	command string // whose help to see, such as "cne train"
	err     error
}

// Usage turns an error into a usage error of a command; nil stays nil.
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
		return Usage(cmd, explain(cmd, err))
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

// allowedValues describes the values of the types of flags.
var allowedValues = map[string]string{"bool": "true or false", "int": "a whole number", "float64": "a number",
	"length": "a length of at most 100 cm, such as 18cm, 180mm or 7in"}

// A Length is a flag for a length of at most 100 cm, in inches. Without a unit, it takes cm.
type Length float64

// Set parses a number with a unit.
func (l *Length) Set(s string) error {
	number, cm := strings.TrimSuffix(s, "cm"), 1.
	for unit, size := range map[string]float64{"mm": 0.1, "in": 2.54} {
		if before, ok := strings.CutSuffix(s, unit); ok {
			number, cm = before, size
		}
	}
	v, err := text.Decimal(strings.TrimSpace(number))
	if *l = Length(v * cm / 2.54); err == nil && !(v >= 0 && v*cm <= 100) {
		err = errors.New("out of range")
	}
	return err
}

// String returns "", since there is no default.
func (*Length) String() string { return "" }

// Type is the word for the values in messages.
func (*Length) Type() string { return "length" }

// explain rewrites an error about a flag of a command or its value in plain words; other
// errors are returned unchanged.
func explain(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return explainUnknown(cmd, unknown)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	allowed, known := allowedValues[flag.Value.Type()]
	switch {
	case errors.Is(invalid, errEmpty):
		return fmt.Errorf("--%s %w", flag.Name, errEmpty)
	case errors.Is(invalid, strconv.ErrRange):
		return fmt.Errorf("--%s: got %s, which is too large", flag.Name, text.Printable(invalid.GetValue()))
	case known:
		return fmt.Errorf("--%s: got %s, want %s", flag.Name, text.Quote(invalid.GetValue()), allowed)
	}
	return err
}

// peers are flags of other programs, with the key that cne has instead, its meaning and
// an example; or, without a key, with what cne does.
var peers = []struct{ flags, key, what, example string }{
	{"perplexity n-neighbors n-neighbours neighbors neighbours nn", "graph.k", "the number of neighbours", "-k 15"},
	{"n-epochs n-iter max-iter iterations n-iterations", "train.epochs", "the number of epochs", "--epochs 500"},
	{"min-dist spread exaggeration a b", "loss.s", "the position between t-SNE (0) and UMAP (1)", "--s 0.5"},
	{"early-exaggeration", "train.early_exaggeration", "whether it is used", "--set train.early_exaggeration=true"},
	{"learning-rate lr eta initial-alpha", "train.lr", "the learning rate", "--set train.lr=1"},
	{"n-components dims no-dims dim", "model.dim", "the number of dimensions of the map", "--set model.dim=2"},
	{"init initialization", "model.init", "the initial positions", "--set model.init=pca"},
	{"random-state random-seed", "seed", "which decides all random numbers", "--seed 1"},
	{"negative-sample-rate negatives n-noise", "loss.negatives", "the number of negative samples", "--set loss.negatives=5"},
	{"batch-size", "train.batch_size", "the number of edges in a batch", "--set train.batch_size=1024"},
	{"standardize standardise normalize normalise scale", "data.scale", "the scaling of the points", "--set data.scale=standard"},
	{"target y", "data.labels", "the labels", "--labels labels.txt"},
	{"colour hover", "output.html_columns", "the columns that colour the page", "--color age"},
	{"gpu cuda", "device.name", "where a run is computed", "--device cuda"},
	{"n-jobs threads n-threads num-threads workers", "", "uses all cores, or as many as GOMAXPROCS in the environment says", ""},
}

// explainUnknown returns the error for a flag that a command lacks: with the key for a
// flag of peers, or else with the most similar flag.
func explainUnknown(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name, dashes := unknown.GetSpecifiedName(), "--"
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		name, dashes = letters, "-"
	}
	flag := "unknown flag " + text.Printable(dashes+name)
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	var set *setFlag
	if f := cmd.Flags().Lookup("set"); f != nil {
		set, _ = f.Value.(*setFlag)
	}
	for _, p := range peers {
		switch {
		case set == nil || !slices.Contains(strings.Fields(p.flags), name):
		case p.key == "":
			return fmt.Errorf("%s; cne %s", flag, p.what)
		case set.keys.Has(p.key):
			return fmt.Errorf("%s; cne has %s, %s: %s", flag, p.key, p.what, p.example)
		}
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	if near := text.Nearest(name, flags); near != "" && len(name) > 1 {
		return fmt.Errorf("%s; did you mean --%s?", flag, near)
	}
	return errors.New(flag)
}

// A numberFlag is a flag for a number, which it reads as the configuration does. pflag reads
// 010 as 8.
type numberFlag struct{ pflag.Value }

// Set parses a number in decimal digits.
func (f numberFlag) Set(s string) error {
	if f.Type() == "float64" {
		v, err := text.Decimal(s)
		return cmp.Or(err, f.Value.Set(strconv.FormatFloat(v, 'g', -1, 64)))
	}
	v, err := text.Whole(s)
	return cmp.Or(err, f.Value.Set(strconv.FormatInt(v, 10)))
}

// markUsageErrors turns errors about the arguments and empty flags of a command and its
// subcommands into usage errors, and makes the help of their switches plain.
func markUsageErrors(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "bool":
				f.Value = switchFlag{f.Value} // the help then shows no =true|false
			case "int", "float64":
				f.Value = numberFlag{f.Value}
			}
		})
	}
	validate := c.Args
	if validate == nil {
		validate = cobra.ArbitraryArgs
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := checkFlags(cmd)
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
var errEmpty = errors.New("is empty")

// MayBeEmpty is the annotation of a flag whose empty value is valid.
const MayBeEmpty = "cne/may-be-empty"

// checkFlags returns an error for empty flag values, which usually come from an unset shell
// variable, and for an unknown form of messages.
func checkFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, may := f.Annotations[MayBeEmpty]; may || err != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" {
			return
		}
		if slices.Contains(values, "") || len(values) == 0 {
			err = fmt.Errorf("--%s %w", f.Name, errEmpty)
		} else if f.Name == formFlag && values[0] != "text" && values[0] != "json" {
			err = fmt.Errorf("--%s: got %s, want text or json", f.Name, text.Quote(values[0]))
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

// AtLeastOne accepts a command line with arguments. what describes the first.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("%s needs an argument: %s", cmd.CommandPath(), what)
	}
}

// Exactly accepts a command line with n arguments. what describes them, such as "two, a run
// and the images".
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%s: got %d arguments, want %s", cmd.CommandPath(), len(args), what)
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
	return KnownCommand(found, rest)
}

// Expand replaces arguments that are patterns, such as runs\*, by the files that match. A
// pattern without matches stays. Shells do it, but not on Windows.
func Expand(args []string) (expanded []string) {
	for _, a := range args {
		found, _ := filepath.Glob(a)
		if len(found) == 0 || !strings.ContainsAny(a, "*?") {
			found = []string{a}
		}
		expanded = append(expanded, found...)
	}
	return expanded
}
