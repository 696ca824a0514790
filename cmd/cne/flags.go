package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/text"
)

// addFlags gives a command the flags from which fromCommand reads.
func addFlags[C any](s *configs.Schema[C], cmd *cobra.Command) {
	given := addSourceFlags(s, cmd, "configuration, a YAML `file` with the keys that differ from the defaults")
	flags := cmd.Flags()
	flags.Var(&settingFlag{name: "--seed", key: "seed", list: given}, "seed", "same as --set seed=`n`")
	flags.VarP(&settingFlag{name: "--output", key: "output.dir", list: given}, "output", "o", "same as --set output.dir=`folder`")
	flags.Var(&settingFlag{name: "--device", key: "device.name", list: given}, "device", "same as --set device=`name`: auto, cpu, cuda or cuda:1")
	flags.Var(&settingFlag{name: "--epochs", key: "train.epochs", list: given}, "epochs", "same as --set train.epochs=`n`")
	if s.Has("output.html") {
		flags.VarPF(&switchFlag{settingFlag{name: "--html", key: "output.html", list: given}}, "html", "", "same as --set output.html=true").NoOptDefVal = "true"
	}
	mustComplete(cmd, "output", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	mustComplete(cmd, "device", deviceCompletions)
}

// addSourceFlags gives a command those of them that say where a configuration
// comes from, and returns the list of what is set.
func addSourceFlags[C any](s *configs.Schema[C], cmd *cobra.Command, config string) *[]configs.Setting {
	given := new([]configs.Setting)
	flags := cmd.Flags()
	flags.StringP("config", "c", "", config)
	flags.VarP(&settingFlag{list: given}, "set", "s", "set a key of the configuration (repeatable), e.g. --set train.lr=0.5")
	mustComplete(cmd, "config", cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	mustComplete(cmd, "set", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.Completions(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	return given
}

// mustComplete says how the shell completes a flag.
func mustComplete(cmd *cobra.Command, name string, f cobra.CompletionFunc) {
	// This fails only for a flag that does not exist or has a function already.
	if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
		panic(err)
	}
}

// logFormat returns the form of messages of a command without a configuration.
func logFormat(cmd *cobra.Command) (string, error) {
	f := cmd.Flags().Lookup("log-format")
	if f == nil || !f.Changed {
		return "text", nil
	}
	if format := f.Value.String(); format == "text" || format == "json" {
		return format, nil
	}
	return "", &usageError{cmd.CommandPath(), fmt.Errorf("--log-format is %s, but must be text or json", text.Quote(f.Value.String()))}
}

// A settingFlag is a flag that adds to a list of settings, which it shares
// with others so that the order on the command line is kept.
type settingFlag struct {
	name string // as in "--epochs"; "" for --set, whose values are key=value
	key  string
	list *[]configs.Setting
}

// Set adds a value to the list.
func (f *settingFlag) Set(value string) error {
	s := configs.Setting{Source: f.name, Key: f.key, Value: value}
	if f.name == "" {
		var err error
		if s, err = configs.ParseSetting("--set", value); err != nil {
			return err
		}
	}
	*f.list = append(*f.list, s)
	return nil
}

// String returns "", the value of a flag that was not given.
func (f *settingFlag) String() string { return "" }

// Type returns the word that stands for the value in the help.
func (f *settingFlag) Type() string { return "key=value" }

// A switchFlag is a settingFlag for true or false, of which true needs no value.
type switchFlag struct{ settingFlag }

// Type returns that of pflag's own switches, so that the help shows no value.
func (f *switchFlag) Type() string { return "bool" }

// fromCommand returns the configuration of a command that has the flags of
// addFlags, and where each of its values comes from. The errors are those of
// Schema.Load.
func fromCommand[C any](s *configs.Schema[C], cmd *cobra.Command) (*C, configs.Origins, error) {
	from, err := configSources(cmd)
	if err != nil {
		return nil, nil, err
	}
	return s.Load(from)
}

// configSources returns where the configuration of such a command comes from.
func configSources(cmd *cobra.Command) (configs.Sources, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return configs.Sources{}, err
	}
	set, ok := cmd.Flags().Lookup("set").Value.(*settingFlag)
	if !ok {
		return configs.Sources{}, fmt.Errorf("%s has a flag --set of its own", cmd.CommandPath())
	}
	settings := slices.Clone(*set.list)
	if f := cmd.Flags().Lookup("log-format"); f != nil && f.Changed {
		settings = append(settings, configs.Setting{Source: "--log-format", Key: "log.format", Value: f.Value.String()})
	}
	return configs.Sources{File: file, Environ: os.Environ(), Settings: settings}, nil
}
