package configs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// A Sweep is many runs of one command that differ in some keys, as a YAML file
// describes them:
//
//	command: train             # or simclr pretrain
//	config: base.yaml          # that of all runs, beside this file; the defaults if it is left out
//	set: {train.epochs: 250}   # keys of all runs, on top of it
//	output: runs/mine          # the folder of the runs; runs/ and the file's name if it is left out
//	axes:                      # every combination of these values is a run
//	  loss.name: [neg, infonce]
//	  seed: [0, 1, 2]
//	runs:                      # or: these are, each with every combination of the axes
//	  - {loss.name: neg, loss.s: 0}
//
// The last of the axes changes first from one run to the next.
type Sweep struct {
	Path    string // of the file
	Command string // that carries out a run, such as "cne train"
	Config  string // path of the configuration of all runs; "" for the defaults
	Output  string // path of the folder of the runs
	Runs    []SweepRun
	Varied  []string // the keys in which runs differ by the file, in its order
}

// A SweepRun is one of the runs of a Sweep.
type SweepRun struct {
	Settings []Setting // beside the configuration of all runs
	// Values are those of all keys that have a part in what a run gives, each as a line
	// of YAML.
	Values map[string]string
}

// SweepCache is the folder in that of a sweep in which its runs share components and
// neighbours.
const SweepCache = "cache"

// sweepNeeds says what a file that describes a sweep cannot do without.
const sweepNeeds = "give axes, such as \"axes: {seed: [0, 1, 2]}\", or runs"

// mostRuns bounds how many runs a sweep may have, far above what anybody waits for.
const mostRuns = 100_000

// freeKeys are the keys and sections that take no part in what a run of a sweep gives:
// they may differ between the machines that work on it.
var freeKeys = []string{"device.name", "device.tf32", "log", "checkpoint", "output.dir", "graph.cache"}

// ReadSweep reads a file, of at most 1 MiB, that describes a sweep, and the
// configuration of each run, over which environ is laid. Faults are of the type *Error.
func ReadSweep(ctx context.Context, path string, environ []string) (*Sweep, error) {
	content, err := readLimited(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := parseSweep(path, content)
	if err != nil {
		return nil, err
	}
	from := Sources{File: s.Config, Environ: environ, Context: ctx}
	if s.Command == Pretrain.Command() {
		err = loadRuns(s, Pretrain, from)
	} else {
		err = loadRuns(s, Train, from)
	}
	if err != nil {
		return nil, err
	}
	return s, s.refuseTwins()
}

// RunDir returns the folder of a run, whose number counts from 0.
func (s *Sweep) RunDir(run int) string {
	return filepath.ToSlash(filepath.Join(s.Output, s.RunName(run)))
}

// RunName returns the name of that folder: the run's number, as long as the largest.
func (s *Sweep) RunName(run int) string {
	return fmt.Sprintf("%0*d", max(2, len(fmt.Sprint(len(s.Runs)-1))), run)
}

// Describe returns what tells a run from the others, such as "loss.name=neg seed=1".
func (s *Sweep) Describe(run int) string {
	var words []string
	for _, k := range s.Varied {
		words = append(words, k+"="+text.Shorten(s.Runs[run].Values[k]))
	}
	return strings.Join(words, " ")
}

// loadRuns fills in the values of the runs, and the settings that a sweep makes by
// itself.
func loadRuns[C any](s *Sweep, schema *Schema[C], from Sources) error {
	for i := range s.Runs {
		run := &s.Runs[i]
		if schema.Has("graph.cache") {
			run.Settings = append(run.Settings, Setting{"the sweep", "graph.cache", filepath.ToSlash(filepath.Join(s.Output, SweepCache))})
		}
		run.Settings = append(run.Settings, Setting{"the sweep", "output.dir", s.RunDir(i)})
		from.Settings = run.Settings
		c, _, err := schema.Load(from)
		if err != nil {
			return err
		}
		run.Values = map[string]string{}
		for _, k := range schema.keys {
			section, _, _ := strings.Cut(k.name, ".")
			v := value(c, k)
			if p, ok := v.(Precision); ok && p != BF16 {
				continue // tf32 is for devices alone
			}
			if !slices.Contains(freeKeys, section) && !slices.Contains(freeKeys, k.name) {
				run.Values[k.name] = line(v)
			}
		}
	}
	return nil
}

// refuseTwins refuses two runs that are the same.
func (s *Sweep) refuseTwins() error {
	first := map[string]int{}
	for i, run := range s.Runs {
		var all strings.Builder
		for _, k := range slices.Sorted(maps.Keys(run.Values)) {
			fmt.Fprintf(&all, "%s: %s\n", k, run.Values[k])
		}
		if j, twice := first[all.String()]; twice {
			return &Error{Source: s.Path, Problem: fmt.Sprintf("the runs %s (%s) and %s (%s) are the same; keep one of them", s.RunName(j), s.Describe(j), s.RunName(i), s.Describe(i))}
		}
		first[all.String()] = i
	}
	return nil
}

// parseSweep reads the text of a file that describes a sweep.
func parseSweep(path string, content []byte) (*Sweep, error) {
	root, err := parse(content)
	switch {
	case errors.Is(err, errManyDocuments):
		return nil, &Error{Source: path, Problem: "the file holds more than one YAML document; keep one, without a line ---"}
	case err != nil:
		return nil, syntaxError(path, err)
	case isNull(root):
		return nil, &Error{Source: path, Problem: "the file is empty; " + sweepNeeds}
	case root.Kind != yaml.MappingNode:
		return nil, &Error{Source: at(path, root), Problem: "a sweep has keys such as axes, but the file holds " + describe(root)}
	}
	f := sweepFile{path: path, sweep: &Sweep{Path: path, Command: Train.Command()}}
	if err := f.mapping(root, "", f.top); err != nil {
		return nil, err
	}
	return f.complete(root)
}

// A sweepFile is what is known of a file as it is read.
type sweepFile struct {
	path   string
	sweep  *Sweep
	common []Setting
	axes   [][][]Setting // of each axis its values, each as settings
	listed [][]Setting
	named  bool // output was
}

// mapping calls f for every key of a mapping; what is the name of the mapping.
func (f *sweepFile) mapping(n *yaml.Node, what string, each func(name, node *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return &Error{at(f.path, n), what, "is " + describe(n) + ", but must be a mapping of keys, such as {seed: 1}"}
	}
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], resolve(n.Content[i+1])
		if first, twice := lines[name.Value]; twice {
			return &Error{at(f.path, name), text.Printable(name.Value), fmt.Sprintf("is given twice, first in line %d; keep one of them", first)}
		}
		lines[name.Value] = name.Line
		if err := each(name, node); err != nil {
			return err
		}
	}
	return nil
}

// top reads a key of the file.
func (f *sweepFile) top(name, node *yaml.Node) error {
	s := f.sweep
	fault := func(problem string) error { return &Error{at(f.path, name), name.Value, problem} }
	word := func(allowed string) (string, error) {
		if v, ok := parseNonEmpty(node); ok {
			return v, nil
		}
		return "", fault("is " + describe(node) + ", but must be " + allowed)
	}
	var err error
	switch name.Value {
	case "command":
		v, err := word("train or simclr pretrain")
		if err != nil {
			return err
		}
		s.Command = "cne " + strings.TrimPrefix(v, "cne ")
		if s.Command != Train.Command() && s.Command != Pretrain.Command() {
			return fault("is " + describe(node) + ", but must be train or simclr pretrain")
		}
	case "config":
		if s.Config, err = word("the path of a configuration"); err == nil && !filepath.IsAbs(s.Config) {
			s.Config = filepath.Join(filepath.Dir(f.path), s.Config)
		}
	case "output":
		f.named = true
		s.Output, err = word("the path of a folder")
	case "set":
		return f.mapping(node, "set", func(name, node *yaml.Node) error {
			x, err := f.setting(name, node)
			f.common = append(f.common, x)
			return err
		})
	case "axes":
		return f.mapping(node, "axes", f.axis)
	case "runs":
		return f.list(name, node)
	default:
		known := []string{"command", "config", "set", "output", "axes", "runs"}
		problem := "is not a key of a sweep, which has " + text.Enumerate(known)
		if near := text.Nearest(name.Value, known); near != "" {
			problem = "is not a key of a sweep; did you mean " + near + "?"
		} else if Train.Has(name.Value) || Pretrain.Has(name.Value) || slices.Contains(Train.sections(), name.Value) {
			problem = "is a key of the runs; write it below set, for all, or below axes, with a list of values"
		}
		return &Error{at(f.path, name), text.Printable(name.Value), problem}
	}
	return err
}

// axis reads a key and the values that it takes.
func (f *sweepFile) axis(name, node *yaml.Node) error {
	fault := func(problem string) error {
		return &Error{at(f.path, name), "axes: " + text.Printable(name.Value), problem}
	}
	switch {
	case node.Kind != yaml.SequenceNode:
		return fault("is " + describe(node) + ", but must be a list of values, such as [0, 1, 2]")
	case len(node.Content) == 0:
		return fault("is an empty list; give at least one value, or leave the axis out")
	}
	var values [][]Setting
	for _, item := range node.Content {
		x, err := f.setting(name, resolve(item))
		if err != nil {
			return err
		}
		x.Source = at(f.path, item)
		values = append(values, []Setting{x})
	}
	f.axes = append(f.axes, values)
	f.vary(name.Value)
	return nil
}

// list reads the runs that are listed.
func (f *sweepFile) list(name, node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return &Error{at(f.path, name), "runs", "is " + describe(node) + ", but must be a list of runs, such as [{seed: 1}, {seed: 2}]"}
	}
	for i, item := range node.Content {
		var settings []Setting
		if err := f.mapping(resolve(item), fmt.Sprintf("runs: item %d", i+1), func(name, node *yaml.Node) error {
			x, err := f.setting(name, node)
			settings = append(settings, x)
			f.vary(x.Key)
			return err
		}); err != nil {
			return err
		}
		f.listed = append(f.listed, settings)
	}
	return nil
}

// vary notes that runs differ in a key.
func (f *sweepFile) vary(key string) {
	if s := f.sweep; !slices.Contains(s.Varied, key) {
		s.Varied = append(s.Varied, key)
	}
}

// setting reads a key of a run, with its section before it.
func (f *sweepFile) setting(name, node *yaml.Node) (Setting, error) {
	x := Setting{Source: at(f.path, name), Key: name.Value}
	if x.Key == "output.dir" || x.Key == "graph.cache" {
		return x, &Error{x.Source, x.Key, "is set by the sweep itself, whose runs and their cache are in its output; leave it out"}
	}
	if slices.Contains(append(Train.sections(), Pretrain.sections()...), x.Key) && node.Kind == yaml.MappingNode {
		example := x.Key + ".…"
		if len(node.Content) > 0 {
			example = x.Key + "." + node.Content[0].Value
		}
		return x, &Error{x.Source, x.Key, "is a section; write its keys with a full stop, such as " + text.Printable(example)}
	}
	if node.Kind == yaml.ScalarNode {
		x.Value = node.Value
		return x, nil
	}
	flow := *node
	flow.Style |= yaml.FlowStyle
	inOneLine, err := yaml.Marshal(&flow)
	if err != nil {
		return x, &Error{x.Source, x.Key, "is " + describe(node) + ", which cannot be written in a line"}
	}
	x.Value = strings.TrimSpace(string(inOneLine))
	return x, nil
}

// complete makes the runs.
func (f *sweepFile) complete(root *yaml.Node) (*Sweep, error) {
	s := f.sweep
	if len(f.axes) == 0 && len(f.listed) == 0 {
		return nil, &Error{Source: at(f.path, root), Problem: "the file names no runs; " + sweepNeeds}
	}
	for _, values := range f.axes {
		for _, settings := range f.listed {
			for _, x := range settings {
				if x.Key == values[0][0].Key {
					return nil, &Error{x.Source, x.Key, "is both among axes and in runs; keep it in one of them"}
				}
			}
		}
	}
	for _, x := range f.common {
		if slices.Contains(s.Varied, x.Key) {
			return nil, &Error{x.Source, x.Key, "is set for all runs, but they differ in it; keep it in one place"}
		}
	}
	all := [][]Setting{f.common}
	if len(f.listed) > 0 {
		all = product(all, f.listed)
	}
	for _, values := range f.axes {
		if len(all) > mostRuns/len(values) {
			return nil, &Error{Source: f.path, Problem: fmt.Sprintf("these are more than %d runs; make several sweeps of them", mostRuns)}
		}
		all = product(all, values)
	}
	for _, settings := range all {
		s.Runs = append(s.Runs, SweepRun{Settings: settings})
	}
	if !f.named {
		name := filepath.Base(f.path)
		s.Output = "runs/" + strings.TrimSuffix(name, filepath.Ext(name))
	}
	return s, nil
}

// product returns every one of some settings with every one of others, of which the
// latter change first.
func product(some, others [][]Setting) [][]Setting {
	var all [][]Setting
	for _, a := range some {
		for _, b := range others {
			all = append(all, slices.Concat(a, b))
		}
	}
	return all
}

// A SweepRecord is what decides about the results of the runs of a sweep: the values of
// all keys, each as a line of YAML.
type SweepRecord struct {
	Command string              `json:"command"`
	Common  map[string]string   `json:"common"` // of all runs
	Runs    []map[string]string `json:"runs"`   // of each run where they are not
}

// Record returns that of the sweep.
func (s *Sweep) Record() *SweepRecord {
	r := &SweepRecord{Command: s.Command, Common: maps.Clone(s.Runs[0].Values), Runs: make([]map[string]string, len(s.Runs))}
	for _, run := range s.Runs {
		maps.DeleteFunc(r.Common, func(k, v string) bool { return run.Values[k] != v })
	}
	for i, run := range s.Runs {
		r.Runs[i] = maps.Clone(run.Values)
		maps.DeleteFunc(r.Runs[i], func(k, _ string) bool { _, common := r.Common[k]; return common })
	}
	return r
}

// Changed says in words what has changed since an earlier record; "" if nothing has.
func (s *Sweep) Changed(before *SweepRecord) string {
	switch {
	case before.Command != s.Command:
		return fmt.Sprintf("its command was %s and is now %s", text.Quote(before.Command), text.Quote(s.Command))
	case len(before.Runs) != len(s.Runs):
		return fmt.Sprintf("it had %d runs and has now %d", len(before.Runs), len(s.Runs))
	}
	for i, run := range s.Runs {
		for _, k := range slices.Sorted(maps.Keys(run.Values)) {
			was, known := before.Runs[i][k]
			if !known {
				was, known = before.Common[k]
			}
			if now := run.Values[k]; known && was != now { // or the key is new
				return fmt.Sprintf("%s of run %s was %s and is now %s", k, s.RunName(i), text.Shorten(was), text.Shorten(now))
			}
		}
	}
	return ""
}
