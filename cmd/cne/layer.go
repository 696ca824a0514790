package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxConfigSize is far above what a configuration needs, in bytes.
const maxConfigSize = 1 << 20

// envPrefix begins the environment variables that are read.
const envPrefix = "CNE_"

// debugVariable makes a crash print its stack.
const debugVariable = envPrefix + "DEBUG"

// otherVariables begin like those of the configuration without being among
// them: of cobra's shell completion, of the driver of GPUs (docs/gpu.md), and of
// scripts/cuda-sdk.
var otherVariables = []string{
	debugVariable, envPrefix + "ACTIVE_HELP", envPrefix + "COMPLETION_DESCRIPTIONS",
	envPrefix + "LIBCUDA", envPrefix + "LIBCUBLAS", envPrefix + "LIBCUDNN",
	envPrefix + "CUDA_SDK", envPrefix + "DEBIAN_MIRROR",
}

// shorthands are the sections in whose place a single value may be given, with the
// keys that it is then of: device: cuda.
var shorthands = map[string]string{"device": "device.name"}

// written returns the key that a name stands for, which may be a shorthand.
func (v *vocabulary) written(name string) string {
	if k, ok := shorthands[name]; ok && slices.Contains(names(v.keys), k) {
		return k
	}
	return name
}

// A layer is what one source sets.
type layer struct {
	value  map[string]any    // by key; in the types that the rules return
	origin map[string]string // by key
}

func newLayer() *layer { return &layer{map[string]any{}, map[string]string{}} }

// nested returns the values with a map for each section.
func (l *layer) nested() map[string]any {
	m := map[string]any{}
	for k, v := range l.value {
		section, name, ok := strings.Cut(k, ".")
		if !ok {
			m[k] = v
			continue
		}
		inner, ok := m[section].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[section] = inner
		}
		inner[name] = v
	}
	return m
}

// readFile reads a configuration file; without a path it returns an empty
// layer.
func (v *vocabulary) readFile(path string) (*layer, error) {
	if path == "" {
		return newLayer(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	if len(text) > maxConfigSize {
		return nil, &configError{Source: path, Problem: fmt.Sprintf("a configuration has at most %d bytes, and this file has more; give the YAML file", maxConfigSize)}
	}
	return v.readYAML(path, text)
}

// readYAML reads the text of a configuration file. The path serves in errors.
func (v *vocabulary) readYAML(path string, text []byte) (*layer, error) {
	l := newLayer()
	root, err := parse(text)
	switch {
	case errors.Is(err, errManyDocuments):
		return nil, &configError{Source: path, Problem: "the file holds more than one YAML document; keep one, without a line ---"}
	case err != nil:
		return nil, syntaxError(path, err)
	case isNull(root):
		return l, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, &configError{Source: at(path, root), Problem: "the file must hold keys and values, such as seed: 1, but holds " + describe(root)}
	}
	if err := v.addMapping(l, path, root, ""); err != nil {
		return nil, err
	}
	return l, nil
}

// errManyDocuments is the error of parse for text with several documents.
var errManyDocuments = errors.New("more than one YAML document")

// parse returns the root of the one YAML document in a text, a null if there
// is nothing in it.
func parse(text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := dec.Decode(&document); errors.Is(err, io.EOF) {
		return scalar("!!null", "null"), nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); err == nil {
		return nil, errManyDocuments
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return resolve(document.Content[0]), nil
}

// syntaxError makes a sentence of an error of the YAML parser.
func syntaxError(path string, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if line, what, ok := strings.Cut(rest, ": "); ok {
			path, message = path+":"+line, what
		}
	}
	return &configError{Source: path, Problem: "this is not valid YAML: " + strings.ReplaceAll(message, "\n", " ")}
}

// addMapping reads a mapping whose keys begin with prefix, the whole file or a
// section of it, into a layer.
func (v *vocabulary) addMapping(l *layer, path string, n *yaml.Node, prefix string) error {
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], resolve(n.Content[i+1])
		k := prefix + name.Value
		if first, twice := lines[k]; twice {
			return &configError{at(path, name), k, fmt.Sprintf("is given twice, first in line %d; keep one of them", first)}
		}
		lines[k] = name.Line

		if prefix == "" && slices.Contains(sections(v.keys), k) {
			if isNull(node) {
				continue
			}
			if short := v.written(k); short != k && node.Kind == yaml.ScalarNode {
				if err := v.add(l, path, name, node, short); err != nil {
					return err
				}
				continue
			}
			if node.Kind != yaml.MappingNode {
				return &configError{at(path, name), k, fmt.Sprintf("is %s, but must be a section with keys such as %s", describe(node), v.firstKey(k))}
			}
			if err := v.addMapping(l, path, node, k+"."); err != nil {
				return err
			}
			continue
		}
		if section, rest, dotted := strings.Cut(name.Value, "."); dotted && slices.Contains(names(v.keys), k) {
			return &configError{at(path, name), k, fmt.Sprintf("is a key of the section %s; write \"%s: {%s: …}\"", section, section, rest)}
		}
		if err := v.add(l, path, name, node, k); err != nil {
			return err
		}
	}
	return nil
}

// add reads the value of a key, which stands under a name, into a layer.
func (v *vocabulary) add(l *layer, path string, name, node *yaml.Node, k string) error {
	r, ok := findRule(v.keys, k)
	if !ok {
		return v.unknownKey(at(path, name), k)
	}
	value, p := r.value(node)
	if p != nil {
		where := name
		if p.at != nil {
			where = p.at
		}
		return p.error(at(path, where), k)
	}
	l.value[k], l.origin[k] = value, at(path, name)
	return nil
}

// at returns the source of a node in a file.
func at(path string, n *yaml.Node) string { return fmt.Sprintf("%s:%d", path, n.Line) }

// error completes the problem to a configError.
func (p *problem) error(source, key string) *configError {
	if p.part != "" {
		key += ": " + p.part
	}
	return &configError{source, key, p.text}
}

// unknownKey says that there is no such key, and what may have been meant: a
// key of another command, or one that is written alike.
func (v *vocabulary) unknownKey(source, k string) *configError {
	problem := fmt.Sprintf("is not a key; %q lists all keys", v.printer)
	if other := v.stranger(k); other != "" {
		problem = fmt.Sprintf("is a key of %q, but this is a configuration of %q", other, v.command)
	} else if near := suggest(k, append(names(v.keys), sections(v.keys)...)); near != "" {
		problem = "is not a key; did you mean " + near + "?"
	}
	return &configError{source, printable(k), problem}
}

// stranger returns the command other than this one that has a key or a section
// of a name; "" if there is none.
func (v *vocabulary) stranger(name string) string {
	for _, other := range vocabularies() {
		if other != v && (slices.Contains(names(other.keys), name) || slices.Contains(sections(other.keys), name)) {
			return other.command
		}
	}
	return ""
}

// firstKey returns the first key of a section.
func (v *vocabulary) firstKey(section string) string {
	i := slices.IndexFunc(v.keys, func(k key) bool { return strings.HasPrefix(k.name, section+".") })
	return v.keys[i].name
}

// variable returns the environment variable of a key: CNE_TRAIN_EPOCHS for
// train.epochs.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// readEnvironment reads the variables whose names begin with envPrefix. A
// variable that is set to nothing counts as not set; those of other commands'
// keys are passed over.
func (v *vocabulary) readEnvironment(environ []string) (*layer, error) {
	byVariable := map[string]string{}
	var variables, others []string
	for _, k := range v.keys {
		byVariable[variable(k.name)] = k.name
		variables = append(variables, variable(k.name))
	}
	for short, k := range shorthands {
		if v.written(short) == k {
			byVariable[variable(short)] = k
		}
	}
	for _, other := range vocabularies() {
		for _, k := range other.keys {
			others = append(others, variable(k.name))
		}
		for short := range shorthands {
			others = append(others, variable(short))
		}
	}
	l := newLayer()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || slices.Contains(otherVariables, name) {
			continue
		}
		k, ok := byVariable[name]
		if !ok && slices.Contains(others, name) {
			continue
		}
		if !ok {
			problem := fmt.Sprintf("no key has this variable; unset it, or see %q for the keys", v.printer)
			if near := suggest(name, variables); near != "" {
				problem = "no key has this variable; did you mean " + near + "?"
			}
			return nil, &configError{Source: printable(name), Problem: problem}
		}
		if err := v.addText(l, name, k, value); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// readSettings reads values from the command line; the last of several for one
// key counts.
func (v *vocabulary) readSettings(settings []setting) (*layer, error) {
	l := newLayer()
	for _, s := range settings {
		if err := v.addText(l, s.flag, s.key, s.value); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// addText sets a key of a layer to a value given as text.
func (v *vocabulary) addText(l *layer, source, k, value string) error {
	k = v.written(k)
	r, ok := findRule(v.keys, k)
	if !ok {
		if slices.Contains(sections(v.keys), k) {
			return &configError{source, k, "is a section; set one of its keys, such as " + v.firstKey(k)}
		}
		return v.unknownKey(source, k)
	}
	if !utf8.ValidString(value) {
		return &configError{source, k, fmt.Sprintf("is %s, which is not text in UTF-8, the only encoding that a configuration can hold", quote(value))}
	}
	n, err := textNode(r, value)
	if err != nil {
		return &configError{source, k, fmt.Sprintf("is %s, which is not valid YAML", quote(value))}
	}
	x, p := r.value(n)
	if p != nil {
		return p.error(source, k)
	}
	l.value[k], l.origin[k] = x, source
	return nil
}

// textNode turns text from outside a file into the node that would stand in
// one. YAML decides what it is, except that text and paths are taken as they
// stand.
func textNode(r rule, value string) (*yaml.Node, error) {
	trimmed := strings.TrimSpace(value)
	literal := scalar("!!str", value)
	switch {
	case r.null && (trimmed == "" || trimmed == "null" || trimmed == "~"):
		return scalar("!!null", "null"), nil
	case r.text == asText && !strings.HasPrefix(trimmed, `"`) && !strings.HasPrefix(trimmed, "'"):
		return literal, nil
	case r.text == asList && trimmed == "":
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}, nil
	case r.text == asList && !strings.HasPrefix(trimmed, "["):
		return literal, nil
	}
	n, err := parse([]byte(value))
	if err != nil && r.text == asText { // it begins with a quotation
		return literal, nil
	}
	return n, err
}
