package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"cne/data"
)

// A configError is a fault in the configuration. Its text is one sentence.
type configError struct {
	Source  string // where the value comes from, such as "run.yaml:12", "CNE_TRAIN_LR" or "--set train.lr"
	Key     string // the key, such as "train.lr"; may be "" if the fault has none
	Problem string // what is wrong with it and what is allowed
}

func (e *configError) Error() string {
	if e.Key == "" {
		return e.Source + ": " + e.Problem
	}
	return e.Source + ": " + e.Key + " " + e.Problem
}

// Origins tells for each key where its value comes from, in the words of
// configError.Source; keys at their default have defaultOrigin.
type Origins map[string]string

// defaultOrigin is the origin of values that nothing has changed.
const defaultOrigin = "default"

// A setting is a key with a value as given on the command line.
type setting struct {
	flag  string // such as "--set train.lr" or "--epochs"
	key   string
	value string
}

// sources are the places beside the defaults from which a configuration comes,
// each overriding the ones before.
type sources struct {
	file     string    // path; "" for none
	environ  []string  // NAME=value, as from os.Environ
	settings []setting // later ones override earlier ones
}

// A vocabulary is the keys of a kind of configuration.
type vocabulary struct {
	keys    []key  // in the order of the defaults' file
	command string // what takes it, such as "cne train"
	printer string // and what prints it, such as "cne config"
}

// vocabularies lists those of all commands.
func vocabularies() []*vocabulary {
	return []*vocabulary{&trainSchema.vocabulary, &spectrumSchema.vocabulary, &simclrSchema.vocabulary}
}

// A schema is a kind of configuration: how the type C, a struct with
// mapstructure tags, comes of its sources.
type schema[C any] struct {
	vocabulary
	defaults func() string // a file with all keys and their meaning
	// complete fills in what depends on other values and was left null.
	complete func(*C)
	// clashes lists what can clash, in the order in which it is reported.
	clashes func(*C) []clash
	// common returns what the configurations of all commands have.
	common func(*C) common
	// folder returns the run folder for data of one's own.
	folder func(*C) string
	// mayChange are the keys, or sections, that a run may be resumed with other
	// values of: what is written and measured of it, how often, and where its
	// data lie.
	mayChange []string
	// cannotExtend says why a run that was begun with one configuration cannot
	// go on with another, which differs from it only where it may; "" if it can.
	cannotExtend func(begun, now *C) string
}

// common is the part of a configuration that those of all commands which train
// have.
type common struct {
	dir              *string // output.dir
	epochs, logEvery int     // train.epochs and train.log_every
	checkpoint       Checkpoint
	log              Log
	device           Device
	dtype            string // of what is computed
}

// load reads all sources, lays them over each other and over the defaults, and
// checks the result. Faults of values, keys and combinations are of the type
// *configError; other errors come from reading the file.
func (s *schema[C]) load(from sources) (*C, Origins, error) {
	defaults, err := s.readDefaults()
	if err != nil {
		return nil, nil, err
	}
	file, err := s.readFile(from.file)
	if err != nil {
		return nil, nil, err
	}
	environment, err := s.readEnvironment(from.environ)
	if err != nil {
		return nil, nil, err
	}
	settings, err := s.readSettings(from.settings)
	if err != nil {
		return nil, nil, err
	}
	return s.merge(defaults, file, environment, settings)
}

// readDefaults reads the defaults.
func (s *schema[C]) readDefaults() (*layer, error) {
	defaults, err := s.readYAML("the built-in defaults", []byte(s.defaults()))
	if err != nil {
		return nil, err
	}
	for k := range defaults.origin {
		defaults.origin[k] = defaultOrigin
	}
	return defaults, nil
}

// parse reads a configuration from a text alone. The name serves in errors.
func (s *schema[C]) parse(name string, text []byte) (*C, error) {
	defaults, err := s.readDefaults()
	if err != nil {
		return nil, err
	}
	l, err := s.readYAML(name, text)
	if err != nil {
		return nil, err
	}
	c, _, err := s.merge(defaults, l)
	return c, err
}

// merge lays layers over each other, the last on top, and checks the result.
// Viper merges; its own readers of files, variables and flags stay unused
// because they pass over unknown and repeated keys, forget lines, and cannot
// tell a null from a key that is not there.
func (s *schema[C]) merge(layers ...*layer) (*C, Origins, error) {
	v := viper.New()
	origins := Origins{}
	for _, l := range layers {
		if err := v.MergeConfigMap(l.nested()); err != nil {
			return nil, nil, err
		}
		maps.Copy(origins, l.origin)
	}
	var c C
	if err := decode(v.AllSettings(), &c); err != nil {
		return nil, nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	s.complete(&c)
	if err := check(c, origins, s.clashes(&c)); err != nil {
		return nil, nil, err
	}
	if origins["output.dir"] == defaultOrigin {
		*s.common(&c).dir = s.folder(&c)
	}
	return &c, origins, nil
}

// folderFor returns the run folder for points that come from a path, such as
// runs/points for data/points.npy.
func folderFor(path string) string {
	name, isBuiltin := strings.CutPrefix(path, builtinPrefix)
	if !isBuiltin {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute // the folder . has a name too
		}
		name = data.TrimEnding(filepath.Base(path))
	}
	if name == string(filepath.Separator) {
		name = "points"
	}
	return "runs/" + name
}

// decode fills a struct with mapstructure tags from values that already have
// the types of its fields, or of what its pointers point to.
func decode(values map[string]any, target any) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: target, ErrorUnused: true})
	if err != nil {
		return err
	}
	return d.Decode(values)
}
