package configs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"cne/data/file"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

// maxConfigSize is far above what a configuration needs, in bytes.
const maxConfigSize = 1 << 20

// envPrefix begins the environment variables that are read.
const envPrefix = "CNE_"

// otherVariables have the prefix of the configuration's variables but other uses: crash
// reports, shell completion, the GPU driver (docs/gpu.md) and scripts/cuda-sdk.
var otherVariables = []string{
	envPrefix + "DEBUG", envPrefix + "UNTIL_EOF", envPrefix + "ACTIVE_HELP", envPrefix + "COMPLETION_DESCRIPTIONS",
	envPrefix + "LIBCUDA", envPrefix + "LIBCUBLAS", envPrefix + "LIBCUDNN",
	envPrefix + "CUDA_SDK", envPrefix + "DEBIAN_MIRROR",
}

// A layer has the values that one source sets.
type layer struct {
	value  map[string]any    // by key; in the types that the rules return
	origin map[string]string // by key
}

func newLayer() *layer { return &layer{value: map[string]any{}, origin: map[string]string{}} }

// read reads all sources but the defaults, unless it has read them before: a pipe can be
// read only once.
func (s *keySet) read(from *Sources) (err error) {
	defer kind.Catch(&err)
	if from.layers != nil && from.read == from.File {
		return nil
	}
	file, written := newLayer(), false
	if from.File != "" {
		content := readLimited(cmp.Or(from.Context, context.Background()), from.File)
		file, written = s.readYAML(from.File, content), bytes.HasPrefix(content, []byte(Header))
	}
	environment, settings := s.readEnvironment(from.Environ), s.readSettings(from.Settings)
	if preset := settings.value["preset"]; written && preset != nil && preset != file.value["preset"] {
		refuse(settings.origin["preset"], "preset", "got %v with the whole configuration %s, want none, or a file of only what differs from a preset",
			preset, text.Quote(from.File))
	}
	from.layers, from.read = []*layer{file, environment, settings}, from.File
	return nil
}

// LoadedFor returns the number of training points with which Load took a preset's values.
func (from *Sources) LoadedFor() int { return from.points }

// refuse fails, as kind.Need does, with an *Error. So do the functions below that return
// no error.
func refuse(source, key, format string, args ...any) {
	kind.Check(&Error{source, key, fmt.Sprintf(format, args...)})
}

// readLimited reads a file that is no larger than any configuration.
func readLimited(ctx context.Context, path string) []byte {
	f, err := ctxio.Open(ctx, path)
	var content []byte
	if err == nil {
		defer f.Close()
		content, err = io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	}
	kind.Checkf(err, "cannot read the configuration: %w", err)
	if len(content) > maxConfigSize {
		refuse(path, "", "got more than %d bytes, want a YAML file", maxConfigSize)
	}
	return content
}

// readYAML reads the text of a configuration file. path is for errors.
func (s *keySet) readYAML(path string, content []byte) *layer {
	l := newLayer()
	root := parseFile(path, content)
	if root.Kind != yaml.MappingNode && !isNull(root) {
		refuse(lineOf(path, root), "", "got %s, want keys and values, such as seed: 1", describe(root))
	}
	s.addMapping(l, path, root, "")
	return l
}

// parse returns the root of the only YAML document in a text, a null if it is empty.
func parse(content []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := dec.Decode(&document); errors.Is(err, io.EOF) {
		return scalar("!!null", "null"), nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); err == nil {
		return nil, errors.New("got several documents, want one, without a line ---")
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return resolve(document.Content[0]), nil
}

// parseFile is parse for the text of a file.
func parseFile(path string, content []byte) *yaml.Node {
	root, err := parse(content)
	if err != nil {
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if rest, ok := strings.CutPrefix(message, "line "); ok {
			if line, what, ok := strings.Cut(rest, ": "); ok {
				path, message = path+":"+line, what
			}
		}
		refuse(path, "", "invalid YAML: %s", strings.ReplaceAll(message, "\n", " "))
	}
	return root
}

// addMapping reads a mapping whose keys begin with prefix, the whole file or a
// section of it, into a layer.
func (s *keySet) addMapping(l *layer, path string, n *yaml.Node, prefix string) {
	eachKey(path, prefix, n, func(name, node *yaml.Node) {
		k, line := prefix+name.Value, lineOf(path, name)
		isSection, short := prefix == "" && slices.Contains(s.sections(), k), fullName(k)
		section, rest, dotted := strings.Cut(name.Value, ".")
		switch {
		case isSection && isNull(node):
		case isSection && short != k && node.Kind == yaml.ScalarNode:
			s.set(l, path, short, node, line)
		case isSection && node.Kind != yaml.MappingNode:
			refuse(line, k, "got %s, want a section with keys such as %s", describe(node), s.firstKey(k))
		case isSection:
			s.addMapping(l, path, node, k+".")
		case dotted && s.Has(k):
			refuse(line, k, "a key of the section %s; write \"%[1]s: {%s: …}\"", section, rest)
		default:
			s.set(l, path, k, node, line)
		}
	})
}

// eachKey calls each for every key of a mapping and its value; prefix precedes the keys'
// names.
func eachKey(path, prefix string, n *yaml.Node, each func(name, node *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		if first, twice := lines[name.Value]; twice {
			refuse(lineOf(path, name), text.Printable(prefix+name.Value), "given twice, first in line %d", first)
		}
		lines[name.Value] = name.Line
		each(name, resolve(n.Content[i+1]))
	}
}

// set checks the value of a key and sets it in a layer. source is the value's source, and
// path its file, or "".
func (s *keySet) set(l *layer, path, k string, node *yaml.Node, source string) {
	kind.Check(s.CheckKey(source, k))
	known, _ := find(s.keys, k)
	value, p := known.read(node)
	if p == nil {
		l.value[k], l.origin[k] = value, source
		return
	}
	if p.at != nil && path != "" {
		source = lineOf(path, p.at)
	}
	if p.part != "" {
		k += ": " + p.part
	}
	if p.hint != "" {
		p.text += "; " + p.hint
	}
	refuse(source, k, "%s", p.text)
}

// lineOf returns the source of a node in a file.
func lineOf(path string, n *yaml.Node) string { return fmt.Sprintf("%s:%d", path, n.Line) }

// variable returns the environment variable of a key: CNE_TRAIN_EPOCHS for
// train.epochs.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// named returns the key of a variable.
func (s *keySet) named(name string) (string, bool) {
	for _, k := range append(names(s.keys), shorthand) {
		if variable(k) == name {
			return fullName(k), true
		}
	}
	return "", false
}

// readEnvironment reads the variables whose names begin with envPrefix. Empty variables
// count as not set; keys of other commands are ignored.
func (s *keySet) readEnvironment(environ []string) *layer {
	l := newLayer()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || slices.Contains(otherVariables, name) {
			continue
		}
		k, known := s.named(name)
		if !known && slices.ContainsFunc(keySets, func(other *keySet) bool { _, known := other.named(name); return known }) {
			continue
		}
		if !known {
			problem := fmt.Sprintf("unknown variable; %q lists all keys", s.printer)
			if near := text.Nearest(name, selection.Map(names(s.keys), variable)); near != "" {
				problem = "unknown variable; did you mean " + near + "?"
			}
			refuse(text.Printable(name), "", "%s", problem)
		}
		s.addText(l, name, k, value)
	}
	return l
}

// readSettings reads single settings. If several set one key, the last one counts, but
// lists of texts are joined.
func (s *keySet) readSettings(settings []Setting) *layer {
	l := newLayer()
	for _, x := range settings {
		k := fullName(x.Key)
		before, more := l.value[k].([]string)
		s.addText(l, x.Source, k, x.Value)
		if added, ok := l.value[k].([]string); ok && more {
			l.value[k] = slices.Concat(before, added)
		}
	}
	return l
}

// addText sets a key of a layer to a value given as text.
func (s *keySet) addText(l *layer, source, k, value string) {
	k = fullName(k)
	n := scalar("!!str", value)
	known, ok := find(s.keys, k)
	switch {
	case !ok && slices.Contains(s.sections(), k):
		refuse(source, k, "got a section, want one of its keys, such as %s", s.firstKey(k))
	case ok && !utf8.ValidString(value):
		refuse(source, k, "got %s, want text in UTF-8", text.Quote(value))
	case ok:
		var err error
		if n, err = textNode(known, value); err != nil {
			refuse(source, k, "got %s, want valid YAML", text.Quote(value))
		}
	}
	s.set(l, "", k, n, source)
}

// textNode turns text from outside a file into the node that a file would have. YAML
// decides its type, except that text and paths are taken unchanged.
func textNode(k key, value string) (*yaml.Node, error) {
	trimmed := strings.TrimSpace(value)
	literal := scalar("!!str", value)
	switch {
	case k.Null && (trimmed == "null" || trimmed == "~"):
		return scalar("!!null", "null"), nil
	case (k.rule.text == asYAML || k.rule.text == asNumbers) && trimmed == "": // YAML would read null
		return literal, nil
	case k.rule.text == asText && !strings.HasPrefix(trimmed, `"`) && !strings.HasPrefix(trimmed, "'"):
		return literal, nil
	case k.rule.text == asList && trimmed == "":
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}, nil
	case k.rule.text == asList && !strings.HasPrefix(trimmed, "["):
		return splitText(value), nil
	case k.rule.text == asNumbers && strings.Contains(value, ",") && !strings.HasPrefix(trimmed, "["):
		value = "[" + value + "]"
	}
	n, err := parse([]byte(value))
	if err != nil && k.rule.text == asText { // it begins with a quotation mark
		return literal, nil
	}
	return n, err
}

// splitText splits a text at its commas into a list. It returns the text itself if it has
// none, or names a file or folder.
func splitText(value string) *yaml.Node {
	path, _ := file.SplitColumn(value)
	if _, err := os.Stat(value); path != "" || err == nil || !strings.Contains(value, ",") {
		return scalar("!!str", value)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for item := range strings.SplitSeq(value, ",") {
		list.Content = append(list.Content, scalar("!!str", strings.TrimSpace(item)))
	}
	return list
}
