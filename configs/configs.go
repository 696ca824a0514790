// Package configs has configurations of cne as YAML files, and reads such files. cne
// train --config takes them, and cne simclr pretrain those with names simclr-… and
// tsimcne-…. default.yaml and simclr-default.yaml list all keys with defaults and
// meanings. The other files set only what differs.
//
// A Schema makes a struct (Config, SimCLR) from the defaults, a file, environment
// variables and single settings; each source overrides the ones before it. It refuses
// unknown keys and invalid values with an Error, which says where the value is, what is
// wrong and what is allowed. The allowed values follow from the tags and types of the
// struct's fields, mostly options of the packages cne and simclr (package
// internal/option). These packages' checks find conflicts between keys.
package configs

import (
	_ "embed"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"cne/data/file"
	"cne/simclr"
)

//go:embed default.yaml
var defaults string

//go:embed simclr-default.yaml
var simclrDefaults string

// Train is the configuration of cne train.
var Train = &Schema[Config]{
	keySet:     newKeySet(reflect.TypeFor[Config](), defaults, "cne train", "cne config"),
	embeddings: 1,
	dir:        func(c *Config) string { return dirFor(c.Data.Path[0]) },
	// The checkpoint identifies points, held-out points and graph by their contents; labels
	// do not affect training.
	mayChange: []string{
		"device.name", "output", "log", "quality", "checkpoint", "graph.cache",
		"data.path", "data.labels", "data.holdout_labels", "data.names",
	},
	drops: func(c *Config) []string {
		if c.Data.DropText {
			return c.Data.Drop // the column of names, if it is text
		}
		return c.Data.Options().Drop
	},
	fixedEpochs: func(c *Config) string {
		if c.Embed.EarlyExaggeration {
			return "since its early exaggeration is a share of them"
		}
		return ""
	},
}

// Spectrum is the configuration of cne spectrum; it has the keys of cne train.
var Spectrum = func() *Schema[Config] {
	s := *Train
	s.command, s.alongSpectrum = "cne spectrum", true
	s.dir = func(c *Config) string {
		return filepath.ToSlash(filepath.Join("runs", "spectrum-"+filepath.Base(dirFor(c.Data.Path[0]))))
	}
	s.fixedEpochs = func(*Config) string { return "since its embeddings share a part of them" }
	return &s
}()

// SpectrumAlong is the configuration of a spectrum along an axis. Write notes the axis in
// the command line: "cne spectrum --s 0,1".
func SpectrumAlong(a *SpectrumAxis) *Schema[Config] {
	s := *Spectrum
	s.command = a.Command()
	s.embeddings = min(len(a.Values), runtime.GOMAXPROCS(0))
	return &s
}

// Pretrain is the configuration of cne simclr.
var Pretrain = &Schema[SimCLR]{
	keySet: newKeySet(reflect.TypeFor[SimCLR](), simclrDefaults, "cne simclr pretrain", "cne simclr config"),
	preset: func(value func(key string) any) (text, source string) {
		if value("simclr.method") == tsimcne {
			text = tsimcnePreset
			if stages, _ := value("stages").([]simclr.Stage); len(stages) == 0 {
				text += tsimcneWarmUp
			}
			return text, "simclr.method=" + tsimcne
		}
		return "", ""
	},
	dir: func(c *SimCLR) string {
		name := strings.TrimPrefix(dirFor(c.Data.Path[0]), "runs/")
		for _, ending := range []string{".tar", ".tgz", ".npz", ".bin"} {
			name = strings.TrimSuffix(name, ending)
		}
		return "runs/simclr-" + name
	},
	// The checkpoint identifies the images by their contents; labels do not affect training.
	mayChange: []string{"device.name", "output", "log", "monitor", "checkpoint", "evaluate", "data.path", "data.labels"},
}

// keySets are the key sets of all commands.
var keySets []*keySet

func init() { keySets = []*keySet{&Train.keySet, &Spectrum.keySet, &Pretrain.keySet} }

// BuiltinPrefix begins the name of a data set that is embedded in the program.
const BuiltinPrefix = "builtin:"

// dirFor returns the default folder for the results of points from a path, such as
// runs/points for data/points.npy.
func dirFor(path string) string {
	name, isBuiltin := strings.CutPrefix(path, BuiltinPrefix)
	if !isBuiltin {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute // the folder . has a name too
		}
		name = file.TrimEnding(filepath.Base(path))
	}
	if name == string(filepath.Separator) {
		name = "points"
	}
	return "runs/" + name
}
