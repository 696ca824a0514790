package configs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
)

// A Sweep is a set of runs of one command that differ in some keys, as a YAML file
// describes them:
//
//	command: train             # or simclr pretrain
//	config: base.yaml          # of all runs, relative to this file; without it the defaults
//	set: {train.epochs: 250}   # keys of all runs, on top of it
//	output: runs/mine          # the folder of the runs; without it runs/ and the file's name
//	axes:                      # every combination of these values is a run
//	  loss.name: [neg, infonce]
//	  seed: [0, 1, 2]
//	runs:                      # or these are, each with every combination of the axes
//	  - {loss.name: neg, loss.s: 0}
//
// The last of the axes changes first from one run to the next. Axes override runs, and
// runs override set.
type Sweep struct {
	Path    string // of the file
	Command string // that executes a run, such as "cne train"
	Config  string // path of the configuration of all runs; "" for the defaults
	Output  string // path of the folder of the runs
	Runs    [][]Setting
	Varied  []string // the keys that differ between runs, in the order of the file

	common       []Setting      // of all runs
	listed, axes [][][]Setting  // the listed runs, as a single item, and the values of each axis
	configs      map[string]int // the run of each configuration
}

// mostRuns bounds the number of runs of a sweep, far above what is useful.
const mostRuns = 100_000

// ReadSweep reads a file, of at most 1 MiB, that describes a sweep, and checks the
// configuration of each run with the variables of environ. It returns an *Error if the
// output is not the folder of a sweep, if two runs are equal, or if a run was begun with
// another configuration.
func ReadSweep(ctx context.Context, path string, environ []string) (_ *Sweep, err error) {
	defer kind.Catch(&err)
	s := parseSweep(path, readLimited(ctx, path))
	s.checkOutput()
	for run, settings := range s.Runs {
		from := &Sources{File: s.Config, Environ: environ, Settings: settings, Context: ctx}
		if s.Command == Pretrain.Command() {
			checkRun(s, Pretrain, run, from)
		} else {
			checkRun(s, Train, run, from)
		}
	}
	return s, nil
}

// A folder with a lock or a mark of a sweep belongs to the sweep, whatever else it holds.
var (
	markNames   = regexp.MustCompile(`^\d\d+\.(lock|done)$`)
	ownNames    = regexp.MustCompile(`^(\d\d+(\.done)?|cache)$`)
	besideNames = regexp.MustCompile(`^(cache|report(-by-seed)?\.csv)$`)
)

// WithoutMarks returns paths without what a sweep keeps next to the folders of its runs, so
// that "sweep/*" names these, or all if nothing else is left.
func WithoutMarks(paths []string) []string {
	marked := map[string]bool{} // folders of sweeps
	for _, path := range paths {
		marked[filepath.Dir(path)] = marked[filepath.Dir(path)] || markNames.MatchString(filepath.Base(path))
	}
	runs := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		name := filepath.Base(path)
		return marked[filepath.Dir(path)] && (markNames.MatchString(name) || besideNames.MatchString(name))
	})
	if len(runs) == 0 {
		return paths
	}
	return runs
}

// checkOutput refuses a folder for the runs that is not a sweep's.
func (s *Sweep) checkOutput() {
	entries, err := os.ReadDir(s.Output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		refuse(s.Path, "output", "got %s, want a folder (%v)", text.Quote(s.Output), err)
	}
	isOther := func(e fs.DirEntry) bool { return !ownNames.MatchString(e.Name()) }
	isMark := func(e fs.DirEntry) bool { return markNames.MatchString(e.Name()) }
	if i := slices.IndexFunc(entries, isOther); i >= 0 && !slices.ContainsFunc(entries, isMark) {
		refuse(s.Path, "output", "got %s, which holds %s, want a new folder or a sweep's", s.Output, text.Quote(entries[i].Name()))
	}
}

// freeKeys may differ between machines.
var freeKeys = regexp.MustCompile(`^(device|log|checkpoint|output\.dir|graph\.cache)(\.|$)`)

// checkRun fails for a run that is invalid, equal to another, or was begun otherwise.
func checkRun[C any](s *Sweep, schema *Schema[C], run int, from *Sources) {
	now, _, err := schema.Load(from)
	kind.Check(err)
	*schema.Common(now).Dir = ""
	all := fmt.Sprint(schema.Compare(new(C), now))
	if first, twice := s.configs[all]; twice {
		refuse(s.Path, "", "the runs %s (%s) and %s (%s) are equal", s.RunName(first), s.Describe(first), s.RunName(run), s.Describe(run))
	}
	s.configs[all] = run
	begun, _, err := schema.Load(&Sources{File: s.RunDir(run) + "/config.yaml"})
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	kind.Check(err)
	for _, d := range schema.Compare(begun, now) {
		if !d.MayChange || !freeKeys.MatchString(d.Key) {
			refuse(s.Path, d.Key, "got %s for run %s in %s, want %s as before, or another output", d.Second, s.RunName(run), s.Output, d.First)
		}
	}
}

// RunDir returns the folder of a run; runs are numbered from 0.
func (s *Sweep) RunDir(run int) string { return s.Output + "/" + s.RunName(run) }

// RunName returns the name of a run's folder: its number, zero-padded to the width of the
// largest.
func (s *Sweep) RunName(run int) string {
	return fmt.Sprintf("%0*d", max(2, len(fmt.Sprint(len(s.Runs)-1))), run)
}

// Values returns the keys that the file sets for a run, with their values.
func (s *Sweep) Values(run int) map[string]string {
	values := map[string]string{}
	for _, x := range s.Runs[run] {
		values[x.Key] = x.Value
	}
	return values
}

// Describe returns the varied keys that a run sets, such as "loss.name=neg seed=1".
func (s *Sweep) Describe(run int) string {
	var words []string
	for _, k := range s.Varied {
		if v, ok := s.Values(run)[k]; ok { // listed runs may set other keys
			words = append(words, k+"="+text.Shorten(v))
		}
	}
	return cmp.Or(strings.Join(words, " "), "no key")
}

// parseSweep reads the text of a file that describes a sweep. It fails as kind.Need does,
// like the functions below that return no error.
func parseSweep(path string, content []byte) *Sweep {
	root, name := parseFile(path, content), filepath.Base(path)
	s := &Sweep{Path: path, Command: "train", Output: "runs/" + strings.TrimSuffix(name, filepath.Ext(name)), configs: map[string]int{}}
	if !isNull(root) {
		s.mapping(root, "the file", s.key)
	}
	if s.Config != "" && !filepath.IsAbs(s.Config) {
		s.Config = filepath.Join(filepath.Dir(path), s.Config)
	}
	s.Command = "cne " + strings.TrimPrefix(s.Command, "cne ")
	if s.Command != Train.Command() && s.Command != Pretrain.Command() {
		refuse(path, "command", "got %s, want train or simclr pretrain", text.Quote(s.Command))
	}
	s.Runs = [][]Setting{s.common}
	for _, values := range append(s.listed, s.axes...) {
		if len(s.Runs)*len(values) > mostRuns {
			refuse(path, "", "got more than %d runs, want at most as many; make several sweeps", mostRuns)
		}
		var all [][]Setting
		for _, a := range s.Runs {
			for _, b := range values {
				rest := slices.DeleteFunc(slices.Clone(a), func(x Setting) bool {
					return slices.ContainsFunc(b, func(over Setting) bool { return over.Key == x.Key })
				})
				all = append(all, append(rest, b...))
			}
		}
		s.Runs = all
		for _, x := range slices.Concat(values...) {
			if !slices.Contains(s.Varied, x.Key) {
				s.Varied = append(s.Varied, x.Key)
			}
		}
	}
	if len(s.Runs) == 0 || s.Varied == nil {
		refuse(path, "", `got no runs, want axes, such as "axes: {seed: [0, 1, 2]}", or runs`)
	}
	for i := range s.Runs {
		if s.Command == Train.Command() {
			s.Runs[i] = append(s.Runs[i], Setting{path, "graph.cache", s.Output + "/cache"})
		}
		s.Runs[i] = append(s.Runs[i], Setting{path, "output.dir", s.RunDir(i)})
	}
	return s
}

// mapping calls each for every key of a mapping named what.
func (s *Sweep) mapping(n *yaml.Node, what string, each func(name, node *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		refuse(lineOf(s.Path, n), what, "got %s, want a mapping of keys, such as {seed: 1}", describe(n))
	}
	eachKey(s.Path, "", n, each)
}

// values reads the items of a list, or a single item.
func values(node *yaml.Node, read func(item *yaml.Node) []Setting) [][]Setting {
	return selection.Map(itemsOf(node), func(item *yaml.Node) []Setting { return read(resolve(item)) })
}

// key reads a key of the file.
func (s *Sweep) key(name, node *yaml.Node) {
	switch name.Value {
	case "set":
		s.common = s.settings(node)
	case "runs":
		s.listed = [][][]Setting{values(node, s.settings)}
	case "axes":
		s.mapping(node, "axes", func(name, node *yaml.Node) {
			s.axes = append(s.axes, values(node, func(item *yaml.Node) []Setting {
				x := s.setting(name, item)
				x.Source = lineOf(s.Path, item)
				return []Setting{x}
			}))
		})
	default:
		field := map[string]*string{"command": &s.Command, "config": &s.Config, "output": &s.Output}[name.Value]
		if field == nil {
			refuse(lineOf(s.Path, name), text.Printable(name.Value),
				"unknown key, want command, config, set, output, axes or runs; keys of runs go below set or axes")
		}
		var ok bool
		if *field, ok = parseText(node); !ok || *field == "" {
			refuse(lineOf(s.Path, name), name.Value, "got %s, want text", describe(node))
		}
	}
}

// settings reads the keys of a run.
func (s *Sweep) settings(node *yaml.Node) (all []Setting) {
	s.mapping(node, "a run", func(name, node *yaml.Node) { all = append(all, s.setting(name, node)) })
	return all
}

// setting reads a key of a run and its value, which becomes a line of YAML.
func (s *Sweep) setting(name, node *yaml.Node) Setting {
	x := Setting{lineOf(s.Path, name), name.Value, node.Value}
	if x.Key == "output.dir" || x.Key == "graph.cache" {
		refuse(x.Source, x.Key, "set by the sweep itself; leave it out")
	}
	if node.Kind != yaml.ScalarNode {
		x.Value = kind.Got(flow(*node))
	}
	return x
}

// A SpectrumAxis is the quantity that varies along a spectrum, with its values. With Pulls,
// it is the horizontal axis of a grid.
type SpectrumAxis struct {
	Flag   string    // s, zbar or m
	Values []float64 // ascending; +Inf is all negatives of the batch
	Pulls  []float64 // ascending, of loss.pull; nil for a single row with the configuration's
}

// A SpectrumPlace is a place of a grid.
type SpectrumPlace struct{ Value, Pull float64 }

// Places returns the places of the grid, row by row.
func (a *SpectrumAxis) Places() (all []SpectrumPlace) {
	across := len(a.Values)
	for i := range across * max(1, len(a.Pulls)) {
		all = append(all, SpectrumPlace{Value: a.Values[i%across]})
		if a.Pulls != nil {
			all[i].Pull = a.Pulls[i/across]
		}
	}
	return all
}

// DefaultS are the default values of s: a little beyond both ends.
const DefaultS = "-0.5,0,0.5,1,1.5"

// largestS bounds the magnitude of s, so no constant overflows.
const largestS = 100

// fullBatch is the word for all negatives of the batch.
const fullBatch = "full"

// ParseAxis reads the values of a flag, a list with commas between them.
func ParseAxis(flag, list string) (*SpectrumAxis, error) {
	values, err := parseValues(flag, list)
	return &SpectrumAxis{Flag: flag, Values: values}, err
}

// ParsePulls reads the values of the flag --pull.
func (a *SpectrumAxis) ParsePulls(list string) (err error) {
	a.Pulls, err = parseValues("pull", list)
	return err
}

// parseValues reads a list of different numbers, and sorts it.
func parseValues(flag, list string) (values []float64, err error) {
	whole := flag == "m"
	in := option.ParseRange(map[string]string{"s": fmt.Sprintf("[-%d,%d]", largestS, largestS), "zbar": "(0,inf)",
		"m": "[1,2147483647]", "pull": "[0,1e6]"}[flag])
	want := in.Text(whole)
	if whole {
		want += ", or " + fullBatch
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		v, err := text.Decimal(item)
		v += 0 // so that -0 is 0
		if whole && item == fullBatch {
			v = math.Inf(1)
		} else if err != nil || !in.Contains(v) || whole && v != math.Trunc(v) {
			return nil, fmt.Errorf("--%s: got %s, want %s", flag, text.Quote(item), want)
		}
		if slices.Contains(values, v) {
			return nil, fmt.Errorf("--%s: got %s twice, want each value once", flag, item)
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return values, nil
}

// Symbol returns the name of the values in figures.
func (a *SpectrumAxis) Symbol() string {
	if a.Flag == "zbar" {
		return "Z̄"
	}
	return a.Flag
}

// Text returns a value in the form that ParseAxis reads.
func (a *SpectrumAxis) Text(v float64) string {
	if math.IsInf(v, 1) {
		return fullBatch
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Title returns a place for people, such as "Z̄ = 8.13e6", or "s = 0, pull = 0.15" of a grid.
func (a *SpectrumAxis) Title(p SpectrumPlace) string {
	title := a.Symbol() + " = " + strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(a.Text(p.Value))
	if a.Pulls != nil {
		title += ", pull = " + a.Text(p.Pull)
	}
	return title
}

// Folder returns the name of the folder of a place.
func (a *SpectrumAxis) Folder(p SpectrumPlace) string {
	folder := a.Flag + "=" + a.Text(p.Value)
	if a.Pulls != nil {
		folder += ",pull=" + a.Text(p.Pull)
	}
	return folder
}

// Command returns the command that makes the spectrum.
func (a *SpectrumAxis) Command() string {
	list := func(values []float64) string { return strings.Join(selection.Map(values, a.Text), ",") }
	if a.Pulls == nil {
		return "cne spectrum --" + a.Flag + " " + list(a.Values)
	}
	return "cne spectrum --" + a.Flag + " " + list(a.Values) + " --pull " + list(a.Pulls)
}

// Check returns an *Error if the axis does not fit a configuration.
func (a *SpectrumAxis) Check(c *Config, origins Origins) error {
	fault := func(key, got, want string) error {
		return located(&option.Error{Key: key, Got: got, Want: want}, origins)
	}
	loss, epochs := c.Embed.Loss.Info(), c.Embed.Epochs
	shared := train.EarlyEpochs(epochs)
	whole := len(c.Embed.Phases) == 0
	switch {
	case a.Flag == "s" && !loss.HasSpectrum():
		return fault("loss.name", loss.Word+" with --s", "a loss with a spectrum: "+op.LossesWithSpectrum()+"; --m compares numbers of negatives")
	case a.Flag == "zbar" && loss.Constant != op.FixedZ:
		return fault("loss.name", loss.Word+" with --zbar", op.LossesWith(op.FixedZ)+"; --m compares numbers of negatives")
	case c.Model.Kind == "network":
		return fault("model.kind", "network with cne spectrum", "table or mlp")
	case c.Data.Holdout.Share > 0 || len(c.Data.Holdout.Paths) > 0:
		return fault("data.holdout", "held-out points with cne spectrum", "null")
	case c.Data.Sampled():
		return fault("data.sample", "a sample with cne spectrum", "null")
	case c.Loss.Towards != "" && !c.pulls() && slices.Max(append(a.Pulls, 0)) == 0:
		return fault("loss.towards", c.Loss.Towards+" without a pull", "null, or values above 0 for --pull")
	case whole && epochs < 2:
		return fault("train.epochs", "1", "2 or more")
	case whole && c.Embed.WarmUp >= shared:
		return fault("train.warm_up", fmt.Sprint(c.Embed.WarmUp), fmt.Sprintf("fewer than the first third of train.epochs (%d)", shared))
	}
	return nil
}

// At returns the configuration of the run that ends at a place, and the number of its
// epochs that it shares with the runs at other places.
func (a *SpectrumAxis) At(c *Config, p SpectrumPlace) (at *Config, shared int) {
	var last cne.Phase
	if a.Pulls != nil {
		last.Pull = &p.Pull
	}
	v := p.Value
	switch a.Flag {
	case "s":
		last.Spectrum = train.FromS(v)
	case "zbar":
		last.Spectrum = train.FromZBar(v)
	case "m":
		last.Negatives = train.Full
		if !math.IsInf(v, 1) {
			last.Negatives = int(v)
		}
	}
	each, phases := c.Embed.SpectrumOptions([]cne.Phase{last})
	x := *c
	if x.Embed = each[0]; !x.pulls() {
		x.Loss.Towards = ""
	}
	for _, p := range x.Embed.Phases[:phases] {
		shared += p.Epochs
	}
	return &x, shared
}
