package configs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/viper"

	"cne"
	"cne/data"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
)

// An Error is a fault in a configuration. Its text is one sentence.
type Error struct {
	// Source says where the value comes from, such as "run.yaml:12", "CNE_TRAIN_LR" or "--set
	// train.lr"; it may be "" in one that was made by hand.
	Source  string
	Key     string // the key, such as "train.lr"; may be "" if the fault has none
	Problem string // what is wrong with it and what is allowed
}

func (e *Error) Error() string {
	message := e.Problem
	if e.Key != "" {
		message = e.Key + ": " + message
	}
	if e.Source != "" {
		message = e.Source + ": " + message
	}
	return message
}

// Origins tells for each key where its value comes from, in the words of
// Error.Source.
type Origins map[string]string

// defaultOrigin is the origin of values that nothing has changed.
const defaultOrigin = "default"

// IsDefault reports whether a key has its default.
func (o Origins) IsDefault(key string) bool { return o[key] == defaultOrigin }

// A Setting is a single key with a value, as text.
type Setting struct {
	Source string // where it is given, as in Error.Source
	Key    string
	Value  string
}

// ParseSetting reads a setting of the form key=value. The source is the name
// before it, such as "--set".
func ParseSetting(source, setting string) (Setting, error) {
	k, v, ok := strings.Cut(setting, "=")
	k = strings.TrimSpace(k)
	first, _, _ := strings.Cut(k, ",")
	if _, err := text.Decimal(first); !ok && err == nil {
		return Setting{}, errors.New("it must have the form key=value; the position on the spectrum is --s, with two dashes")
	}
	if !ok || k == "" {
		return Setting{}, errors.New("it must have the form key=value")
	}
	return Setting{Source: source + " " + text.Printable(k), Key: k, Value: v}, nil
}

// PathsSetting sets a key to a list of paths.
func PathsSetting(source, key string, paths []string) Setting {
	quoted := selection.Map(paths, func(path string) string { // invalid UTF-8 will be refused
		return selection.If(utf8.ValidString(path), strconv.QuoteToASCII(path), path) // YAML has the same escapes
	})
	return Setting{source, key, "[" + strings.Join(quoted, ", ") + "]"}
}

// Sources are the sources of a configuration. Each overrides the ones before it and the
// defaults.
type Sources struct {
	File     string    // path; "" for none
	Environ  []string  // NAME=value, as from os.Environ
	Settings []Setting // later ones override earlier ones
	// Points is the number of training points, for the preset; 0 means the number in the
	// heads of the files.
	Points int

	layers []*layer // of the file, the environment and the settings, once they were read
	read   string   // the file of the layers
	points int      // the number of training points that Load took

	// Context, if not nil, ends the reading of the file, which may be a pipe.
	Context context.Context
}

// A configuration is the interface of all commands' structs.
type configuration interface {
	// complete fills in null values that depend on other values, and a preset's values for n
	// points that are not given.
	complete(given func(key string) bool, n int)
	// conflicts lists the conflicts between keys that the library does not know; nil
	// entries are ignored.
	conflicts() []*option.Error
	// CheckSize returns an error for values that are invalid for data of a size.
	CheckSize(size data.Size) error
	// dataSize returns the size of the data as far as known before they are read, and
	// memory estimates the memory of several runs at a time on data of a size.
	dataSize(ctx context.Context) data.Size
	// points returns the likely number of training points.
	points(ctx context.Context) int
	memory(size data.Size, on *model.Device, runs int) cne.Memory
	// checkColumns is Schema.CheckColumns, and common Schema.Common.
	checkColumns(ctx context.Context, started bool) error
	common() Common
}

// of returns c as a configuration.
func of[C any](c *C) configuration { return any(c).(configuration) }

// A Schema is a kind of configuration: it makes the struct C from its sources.
type Schema[C any] struct {
	keySet
	// dir returns the default folder for results.
	dir func(*C) string
	// embeddings is the number of embeddings that are trained at a time.
	embeddings int
	// alongSpectrum reports whether a flag gives the positions on the spectrum.
	alongSpectrum bool
	// mayChange are the keys, or sections, that may change when a run is resumed: what is
	// written and measured, how often, and the paths of the data.
	mayChange []string
	// drops, if not nil, returns the columns of the table that are not values of points.
	drops func(*C) []string
	// fixedEpochs, if not nil, returns why a run must not get more epochs than at its
	// beginning; "" if it may.
	fixedEpochs func(*C) string
}

// Common has the keys of all commands that train.
type Common struct {
	Dir          *string // output.dir, to be read and set
	Epochs       int     // train.epochs
	Checkpoint   Checkpoint
	Log          Log
	Device       Device
	Float64      bool     // computed in float64
	Path, Inputs []string // data.path, and all files and folders that are read
}

// Common returns the common part of a configuration.
func (s *Schema[C]) Common(c *C) Common { return of(c).common() }

// Command returns the command that takes the configuration, such as "cne train".
func (s *Schema[C]) Command() string { return s.command }

// DefaultDir returns the default output.dir, which is named after the data.
func (s *Schema[C]) DefaultDir(c *C) string { return s.dir(c) }

// Load reads all sources, each overriding the ones before it and the defaults, and checks
// the result. Faults of values, keys and combinations are of the type *Error; other
// errors come from reading the file.
func (s *Schema[C]) Load(from *Sources) (*C, Origins, error) {
	if err := s.read(from); err != nil {
		return nil, nil, err
	}
	return s.merge(from, from.layers...)
}

// CheckSettings checks each setting by itself. Errors are of the type *Error.
func (s *Schema[C]) CheckSettings(settings []Setting) (err error) {
	defer kind.Catch(&err)
	s.readSettings(settings)
	return nil
}

// Parse reads a configuration from only the text of a file. name is for errors, which are
// Load's.
func (s *Schema[C]) Parse(name string, text []byte) (c *C, err error) {
	defer kind.Catch(&err)
	c, _, err = s.merge(&Sources{}, s.readYAML(name, text))
	return c, err
}

// Check returns an *Error if valid values contradict each other, in a configuration that
// was changed since it was loaded.
func (s *Schema[C]) Check(c *C) error { return s.check(c, Origins{}) }

// DataSize returns the size of a run's data, as far as known before they are read.
func (s *Schema[C]) DataSize(ctx context.Context, c *C) data.Size { return of(c).dataSize(ctx) }

// CheckColumns refuses missing files and columns with names, labels or colours of the
// points, and, unless the run has started, a missing earlier embedding. It reads only the
// heads of files, and nothing from pipes; if the points are missing, it does not check
// columns.
func (s *Schema[C]) CheckColumns(ctx context.Context, c *C, started bool) error {
	return of(c).checkColumns(ctx, started)
}

// CheckSize refuses values that are invalid for data of a size. The origins may be nil.
// Errors are of the type *Error.
func (s *Schema[C]) CheckSize(c *C, size data.Size, origins Origins) error {
	return located(of(c).CheckSize(size), origins)
}

// check returns an *Error if valid values contradict each other, or are invalid for data
// of any size.
func (s *Schema[C]) check(c *C, origins Origins) error {
	for _, e := range of(c).conflicts() {
		if e != nil && !(s.alongSpectrum && e.Key == "loss.towards") { // --pull may give the pull
			e.Got = s.inline(c, e.Key)
			if e.Other != "" {
				e.OtherGot = s.inline(c, e.Other)
			}
			return located(e, origins)
		}
	}
	return s.CheckSize(c, AnySize, origins)
}

// inline returns the value of a key of a configuration as a line of YAML.
func (s *Schema[C]) inline(c *C, name string) string {
	k, _ := find(s.keys, name) // conflicts name keys that exist
	return k.inline(k.value(reflect.ValueOf(c).Elem()))
}

// conflictIf returns a conflict with the value of another key if found, else nil. want
// describes the allowed values.
func conflictIf(found bool, key, other, want string) *option.Error {
	if !found {
		return nil
	}
	return &option.Error{Key: key, Other: other, Want: want}
}

// located converts an *option.Error to an *Error, which says where the values come from.
// It returns other errors unchanged.
func located(err error, origins Origins) error {
	fault, ok := errors.AsType[*option.Error](err)
	if !ok {
		return err
	}
	// A phase of the preset has too few epochs.
	if fault.List == "train.phases" && origins.IsDefault(fault.List) && !origins.IsDefault(fault.Key) {
		fault.List, fault.Item, fault.Other = "", "", ""
		fault.Want += " than " + fault.OtherGot + ", the epochs of a phase of the preset"
	}
	source, other := origins[cmp.Or(fault.List, fault.Key)], origins[fault.OtherName()]
	note, otherNote := "", ""
	switch {
	case source == defaultOrigin && (other == "" || source == other):
		source = ""
	case other == "" || source == other:
	case source == defaultOrigin: // the fault shows where something was set
		note, source = " ("+source+")", other
	default:
		otherNote = " (" + other + ")"
	}
	return &Error{source, strings.TrimSuffix(fault.Name(), ": "), fault.Problem(note, otherNote)}
}

// Explain converts an error about options to one that names the key and not the package.
// It returns other errors unchanged.
func Explain(err error) error { return located(err, nil) }

// merge lays layers over the defaults and over each other, the last on top, and checks
// the result. Viper merges. Its own readers of files, variables and flags are not used,
// because they ignore unknown and repeated keys, lose line numbers, and do not
// distinguish null from a missing key.
func (s *Schema[C]) merge(from *Sources, layers ...*layer) (_ *C, _ Origins, err error) {
	defer kind.Catch(&err)
	values, origins := viper.New(), Origins{}
	for _, l := range append([]*layer{s.base}, layers...) {
		kind.Check(values.MergeConfigMap(l.value))
		maps.Copy(origins, l.origin)
	}
	var c C
	for _, k := range s.keys {
		assign(reflect.ValueOf(&c).Elem().FieldByIndex(k.Index), values.Get(k.Key))
	}
	n := from.Points
	if n == 0 {
		n = of(&c).points(cmp.Or(from.Context, context.Background()))
	}
	from.points = n
	of(&c).complete(func(key string) bool {
		if key == "loss.s" {
			return s.alongSpectrum || values.Get(key) != nil
		}
		return !origins.IsDefault(key)
	}, n)
	kind.Check(s.check(&c, origins))
	if origins.IsDefault("output.dir") {
		*s.Common(&c).Dir = s.dir(&c)
	}
	return &c, origins, nil
}

// A Difference is a key with different values in two configurations.
type Difference struct {
	Key           string
	First, Second string // the values, each as a line of YAML
	// MayChange reports whether a run begun with the first value may continue with the
	// second.
	MayChange bool
}

// Compare returns the differences of two configurations, in the order of the
// keys.
func (s *Schema[C]) Compare(first, second *C) []Difference {
	var list []Difference
	for _, k := range s.keys {
		a, b := k.value(reflect.ValueOf(first).Elem()), k.value(reflect.ValueOf(second).Elem())
		if !reflect.DeepEqual(a, b) {
			list = append(list, Difference{k.Key, k.inline(a), k.inline(b), s.changeable(k.Key, a, b)})
		}
	}
	return list
}

// Differences describes each of several configurations by the keys that tell them apart,
// without those about files, such as "s = 0.5, seed = 1". The loss is the first, because
// others follow from it, and the seed the last. What follows from keys before is left out.
func (s *Schema[C]) Differences(all []*C) []string {
	different := func(list []string) int { return len(slices.Compact(slices.Sorted(slices.Values(list)))) }
	texts, rank := make([]string, len(all)), map[string]int{"loss.name": -1, "seed": 1}
	for _, k := range slices.SortedStableFunc(slices.Values(s.keys), func(a, b key) int { return rank[a.Key] - rank[b.Key] }) {
		if aboutResults.MatchString(k.Key) || freeKeys.MatchString(k.Key) {
			continue
		}
		more := slices.Clone(texts)
		for i, c := range all {
			if more[i] != "" {
				more[i] += ", "
			}
			name, value := s.Setting(c, k.Key)
			more[i] += name + " = " + value
		}
		if different(more) > different(texts) {
			texts = more
		}
	}
	return texts
}

// Setting returns a key and its value in a configuration for a title, such as s and 0.5.
func (s *Schema[C]) Setting(c *C, key string) (name, value string) {
	name = strings.TrimSuffix(key, ".name")
	return name[strings.LastIndexByte(name, '.')+1:], strings.TrimSuffix(s.inline(c, key), ".0")
}

// aboutResults matches the keys about results of a trained model.
var aboutResults = regexp.MustCompile(`^(output\.(dir|csv|plot|html.*)|(quality|log|checkpoint|evaluate)\..*|graph\.cache|data\.(labels|holdout_labels|names))$`)

// SameEmbedding reports whether two configurations differ only in what is drawn, measured
// or written of the same model.
func (s *Schema[C]) SameEmbedding(a, b *C) bool {
	return !slices.ContainsFunc(s.Compare(a, b), func(d Difference) bool { return !aboutResults.MatchString(d.Key) }) &&
		(s.drops == nil || slices.Equal(s.drops(a), s.drops(b))) // data.names may be a column of the points' table
}

// LockedChanges lists the changes, such as "train.lr 1.0, not 2.0 (--set train.lr)", that
// a run begun with one configuration must not make to continue with another. origins are
// the origins of now.
func (s *Schema[C]) LockedChanges(begun, now *C, origins Origins) []string {
	var list []string
	for _, d := range s.Compare(begun, now) {
		if !d.MayChange {
			list = append(list, fmt.Sprintf("%s %s, not %s (%s)", d.Key, d.First, d.Second, origins[d.Key]))
		}
	}
	return list
}

// WhyNotLonger says why a run that was begun with one configuration cannot continue
// with another, although there are no LockedChanges; "" if it can.
func (s *Schema[C]) WhyNotLonger(begun, now *C) string {
	epochs := s.Common(begun).Epochs
	if s.fixedEpochs == nil || s.Common(now).Epochs <= epochs || s.fixedEpochs(now) == "" {
		return ""
	}
	return fmt.Sprintf("cannot be given more epochs than %d, %s", epochs, s.fixedEpochs(now))
}

// changeable reports whether the value of a key may change. Files may have moved, but a
// share of the points is not a file; epochs may be added.
func (s *Schema[C]) changeable(key string, before, now any) bool {
	section, _, _ := strings.Cut(key, ".")
	switch key {
	case "device.precision": // the precision of convolutions must not change
		return before != BF16 && now != BF16
	case "train.epochs":
		a, okA := before.(int)
		b, okB := now.(int)
		return okA && okB && b > a
	case "graph.file", "model.init_names", "loss.towards":
		return before != nil && now != nil
	case "model.init": // the file may have moved
		return !slices.Contains(cne.InitPCA.Words(), before.(string)) && !slices.Contains(cne.InitPCA.Words(), now.(string))
	case "model.kind": // a network can learn a finished map
		return before == "table" && now == "network"
	case "data.holdout":
		a, okA := before.(Holdout)
		b, okB := now.(Holdout)
		return okA && okB && a.Share == b.Share
	case "data.sample":
		a, okA := before.(Sample)
		b, okB := now.(Sample)
		return okA && okB && a.File != "" && b.File != ""
	}
	return slices.Contains(s.mayChange, key) || slices.Contains(s.mayChange, section)
}
