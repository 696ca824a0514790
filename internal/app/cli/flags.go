package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cne/configs"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/text"
)

// AddFlags adds the flags of a configuration to a command, whose Sources reads them.
func AddFlags[C any](s *configs.Schema[C], cmd *cobra.Command) {
	given := AddSourceFlags(s, cmd, "YAML `file` with the keys that differ from the defaults")
	flags := cmd.Flags()
	for _, f := range keyFlags {
		if !s.Has(f.key) || flags.Lookup(f.name) != nil {
			continue
		}
		flag, words := AddKeyFlag(cmd, given, f.name, f.short, f.key, f.usage), s.Words(f.key)
		if f.name == "network" {
			flag.NoOptDefVal = f.name
		} else if words != nil && flag.NoOptDefVal == "" {
			MustComplete(cmd, f.name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	MustComplete(cmd, "output", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
}

// keyFlags are the flags that set a key of a configuration, for commands whose
// configuration has it and that have no other flag of the name.
var keyFlags = []struct{ name, short, key, usage string }{
	{"labels", "", "data.labels", "`column` of the points' table, a file with a label per point, or FILE:COLUMN; repeatable"},
	{"label-column", "", "data.label_column", "`column` of the points' table with the labels, also by its number"},
	{"layer", "", "data.layer", "`layer` of a .h5ad file to read, X or raw; genome of a .h5 file"},
	{"obsm", "", "data.obsm", "`member` of obsm of a .h5ad file to read as points, such as X_pca"},
	{"names", "", "data.names", "`column` with names of the points, a file, or FILE:COLUMN"},
	{"network", "", "model.kind", "also train a `network`, which places new points"},
	{"metric", "", "graph.metric", "`distance`: euclidean, cosine, correlation, manhattan, hamming, jaccard, haversine or precomputed (distances between all points)"},
	{"preset", "", "preset", "`settings`: auto, tsne, umap, million, fast or paper"},
	{"drop-text", "", "data.drop_text", "leave out columns that are not numbers"},
	{"k", "k", "graph.k", "`number` of nearest neighbours of each point"},
	{"loss", "", "loss.name", "`loss`: neg, nc, infonc or umap"},
	{"s", "", "loss.s", "`position` between t-SNE (0) and UMAP (1)"},
	{"pull", "", "loss.pull", "`strength` of the pull towards the principal components, such as 0.15"},
	{"towards", "", "loss.towards", "`embedding` to pull towards instead, a run folder or a file"},
	{"epochs", "", "train.epochs", "`number` of epochs"},
	{"seed", "", "seed", "`seed` of all random numbers"},
	{"device", "", "device.name", "`device` to compute on: auto, cpu, cuda or cuda:1"},
	{"output", "o", "output.dir", "`folder` for the results"},
	{"html", "", "output.html", "also write a page to explore the map"},
	{"color", "", "output.html_columns", "`column` or gene that colours the page, a file, or FILE:COLUMN; repeatable"},
	{"auto-labels", "", "output.auto_labels", "label regions of the page by words of the --names"},
}

// AddSourceFlags gives a command the flags that say where its configuration comes from, and
// returns the list of settings.
func AddSourceFlags[C any](s *configs.Schema[C], cmd *cobra.Command, config string) *[]configs.Setting {
	given := new([]configs.Setting)
	flags := cmd.Flags()
	flags.StringP("config", "c", "", config)
	flags.VarP(&setFlag{settingFlag{list: given}, s}, "set", "s", "set a key of the configuration, such as train.lr=0.5; repeatable")
	MustComplete(cmd, "config", cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	MustComplete(cmd, "set", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.Completions(), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	return given
}

// AddKeyFlag gives a command a flag that sets a key: it appends to given. If the usage names
// no `value`, the flag is a switch.
func AddKeyFlag(cmd *cobra.Command, given *[]configs.Setting, name, short, key, usage string) *pflag.Flag {
	flag := cmd.Flags().VarPF(&settingFlag{name: "--" + name, key: key, list: given}, name, short, fmt.Sprintf("%s (--set %s=…)", usage, key))
	if !strings.Contains(usage, "`") {
		flag.Value, flag.NoOptDefVal = switchFlag{flag.Value}, "true"
	}
	return flag
}

// MustComplete sets how the shell completes a flag.
func MustComplete(cmd *cobra.Command, name string, f cobra.CompletionFunc) {
	// This fails only for a flag that does not exist or has a function already.
	if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
		panic(err)
	}
}

// A settingFlag is a flag that adds to a list of settings. Several flags share the list,
// to keep the order on the command line.
type settingFlag struct {
	name string // as in "--epochs"; "" for --set, whose values are key=value
	key  string
	list *[]configs.Setting
}

// Set adds a value to the list. Empty values are an error: they usually come from an
// unset shell variable.
func (f *settingFlag) Set(value string) error {
	if f.name != "" && strings.TrimSpace(value) == "" {
		return errEmpty
	}
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

// A setFlag is the flag --set. It knows the valid keys.
type setFlag struct {
	settingFlag
	keys interface {
		CheckSettings(settings []configs.Setting) error
		Has(key string) bool
	}
}

// A switchFlag is a flag for true or false; without a value it means true.
type switchFlag struct{ pflag.Value }

// Type returns the type of pflag's own switches, so the help shows no value.
func (switchFlag) Type() string { return "bool" }

// ConfigError turns an error about a value from a flag or an argument of a command into a
// usage error. It returns other errors, and nil, unchanged.
func ConfigError(cmd *cobra.Command, from configs.Sources, err error) error {
	if fault, ok := errors.AsType[*configs.Error](err); ok && slices.ContainsFunc(from.Settings, func(s configs.Setting) bool { return s.Source == fault.Source }) {
		return Usage(cmd, err)
	}
	return err
}

// Sources returns the sources of the configuration of a command with the flags of
// AddSourceFlags. Invalid flags are usage errors.
func Sources(cmd *cobra.Command) (configs.Sources, error) {
	file, set := cmd.Flags().Lookup("config").Value.String(), cmd.Flags().Lookup("set").Value.(*setFlag)
	settings := slices.Clone(*set.list)
	if form, _ := cmd.Flags().GetString(formFlag); form != "" {
		settings = append(settings, configs.Setting{Source: "--" + formFlag, Key: "log.format", Value: form})
	}
	if err := set.keys.CheckSettings(settings); err != nil {
		return configs.Sources{}, Usage(cmd, err)
	}
	return configs.Sources{File: file, Environ: os.Environ(), Settings: settings, Context: cmd.Context()}, nil
}

// AddReportFlags gives a root command, and with it all, the flags that Reporter and
// LogFormat read.
func AddReportFlags(root *cobra.Command) {
	root.PersistentFlags().String(formFlag, "", "`form` of messages and progress: text or json (--set log.format=…)")
	root.PersistentFlags().BoolP("quiet", "q", false, "no progress, and only warnings and errors")
}

// formFlag is the flag for the form of messages, text or json.
const formFlag = "log-format"

// Quiet reports whether --quiet was given to a command.
func Quiet(cmd *cobra.Command) bool {
	quiet, err := cmd.Flags().GetBool("quiet")
	return err == nil && quiet
}

// LogFormat returns the form of messages of a command without a configuration.
func LogFormat(cmd *cobra.Command) string {
	form, _ := cmd.Flags().GetString(formFlag)
	return cmp.Or(form, "text")
}

// CheckEnding returns an error unless the file that a flag or argument names has one of
// the endings. A flag that is not given names none.
func CheckEnding(flag, path string, endings ...string) error {
	if path == "" && strings.HasPrefix(flag, "--") || slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want a name that ends in %s", flag, text.Quote(path), text.Enumerate(endings))
}

// pathKey is the key that the arguments of a training command set.
const pathKey = "data.path"

// Inputs accepts a command line with the paths of the points, or without any.
func Inputs[C any](s *configs.Schema[C]) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		for _, arg := range args {
			key, _, setting := strings.Cut(arg, "=")
			_, err := os.Stat(arg)
			switch {
			case arg == "":
				return errors.New("an argument is empty")
			case setting && s.Has(key) && errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("there is no file %s; did you mean --set %s?", text.Quote(arg), text.Printable(arg))
			}
		}
		return nil
	}
}

// InputSources is Sources for a command whose arguments are the paths of the points. They
// override the environment and a file.
func InputSources(cmd *cobra.Command, args []string) (configs.Sources, error) {
	from, err := Sources(cmd)
	if err != nil || len(args) == 0 {
		return from, err
	}
	if i := slices.IndexFunc(from.Settings, func(s configs.Setting) bool { return s.Key == pathKey }); i >= 0 {
		return from, Usage(cmd, fmt.Errorf("the points: got the argument %s and %s, want one of them", text.Quote(args[0]),
			from.Settings[i].Source))
	}
	from.Settings = append(from.Settings, configs.PathsSetting("INPUT", pathKey, args))
	return from, nil
}

// An Output is a file for results that a command line names.
type Output struct {
	Flag string // its flag, such as --output
	Path string
	// Runs are the folders of the runs that it shows. Files that cne makes of a finished run
	// (rundir.Regenerable) may be replaced there.
	Runs []string
}

// Check returns an error if the file cannot be written, or would replace an input, a file
// in an input folder, or a file of a run. Inputs that do not exist are ignored. Links are
// followed.
func (o Output) Check(inputs ...string) error {
	folder := filepath.Dir(o.Path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: got %s, but there is no folder %s", o.Flag, o.Path, folder)
	}
	info, err := os.Stat(o.Path)
	exists := err == nil
	if exists && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: got %s, want a regular file", o.Flag, o.Path)
	}
	if err := o.checkRuns(exists); err != nil || !exists {
		return err
	}
	for _, input := range inputs {
		if file.SameFile(input, o.Path) {
			return fmt.Errorf("%s would be replaced by the results (%s)", input, o.Flag)
		}
		if inside, err := o.isInside(input); err != nil {
			return err
		} else if inside {
			return fmt.Errorf("%s would be replaced by the results (%s), but %s is read", o.Path, o.Flag, input)
		}
	}
	return nil
}

// checkRuns returns an error for a file of a run.
func (o Output) checkRuns(exists bool) error {
	run, name, err := rundir.RunOf(o.Path)
	if err != nil || run == "" {
		return err
	}
	shown := slices.ContainsFunc(o.Runs, func(r string) bool { return file.SameFile(r, run) })
	if rundir.Regenerable(name) && (shown || !exists) {
		return nil
	}
	return fmt.Errorf("%s: got %s, a file of the run in %s", o.Flag, o.Path, run)
}

// isInside reports whether the file lies in a folder, at any depth, that is not a run
// folder: other files may be written to run folders.
func (o Output) isInside(folder string) (bool, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return false, nil
	}
	if contents, _, err := rundir.Inspect(folder); err != nil || contents == rundir.Run {
		return false, err
	}
	path, err := filepath.EvalSymlinks(o.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	for err == nil && path != filepath.Dir(path) {
		if path = filepath.Dir(path); file.SameFile(path, folder) {
			return true, nil
		}
	}
	return false, err
}
