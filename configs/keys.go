package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/option"
	"cne/internal/selection"
	"cne/internal/text"
)

// A key is a leaf of a configuration with its rule.
type key struct {
	option.Field
	rule    rule
	above   string // the lines above it in the file of defaults, with its comment
	meaning string // in a few words: the start of the comment
}

// keysOf returns the keys of fields, in their order.
func keysOf(fields []option.Field) []key {
	var keys []key
	for _, f := range fields {
		if !f.Only {
			keys = append(keys, key{Field: f, rule: ruleOf(f)})
		}
	}
	return keys
}

// newKeySet returns the keys of a struct in the order of the file of defaults, with its
// comments and values. The file has a paragraph about itself, and a line for each key.
// command takes the keys, and printer prints them.
func newKeySet(t reflect.Type, defaults, command, printer string) keySet {
	all, s := keysOf(option.Fields(t)), keySet{command: command, printer: printer}
	_, lines, _ := strings.Cut(defaults, "\n\n")
	above, comment, section := "", "", ""
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "" || name[0] == '#':
			above, comment = above+line, cmp.Or(comment, strings.TrimPrefix(name, "# "))
		case value == "":
			section, above, comment = name+".", above+line, ""
		default:
			k, _ := find(all, selection.If(line[0] == ' ', section+name, name))
			k.above, k.meaning = above, strings.TrimSpace(comment[:strings.IndexAny(comment+".", ".,;(")])
			s.keys, above, comment = append(s.keys, k), "", ""
		}
	}
	s.base = s.readYAML(command, []byte(defaults)) // a fault is one of this program, and panics
	for k := range s.base.origin {
		s.base.origin[k] = defaultOrigin
	}
	return s
}

// value returns the value of the key in a struct; nil stands for null.
func (k *key) value(of reflect.Value) any {
	v := of.FieldByIndex(k.Index)
	if v.IsZero() && (k.Null || v.Kind() == reflect.Pointer) {
		return nil
	}
	return reflect.Indirect(v).Interface()
}

// node returns a value of the key as a YAML node.
func (k *key) node(v any) *yaml.Node {
	if b, ok := v.(bool); ok && k.Words != nil { // the words for false and true
		return &yaml.Node{Kind: yaml.ScalarNode, Value: selection.If(b, k.Words[1], k.Words[0])}
	}
	for _, w := range k.Values {
		if fmt.Sprint(v) == fmt.Sprint(w.Value) {
			return scalar("!!str", w.Word)
		}
	}
	if k.Fields != nil {
		return entryNodes(reflect.ValueOf(v), keysOf(k.Fields))
	}
	return valueNode(v)
}

// assign sets a field to a value that a rule has read.
func assign(field reflect.Value, v any) {
	switch {
	case v == nil:
		field.SetZero()
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		assign(field.Elem(), v)
	default:
		field.Set(reflect.ValueOf(v).Convert(field.Type()))
	}
}

// find returns the key of a name.
func find(keys []key, name string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.Key == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// names returns the names of keys, in their order.
func names(keys []key) []string { return selection.Map(keys, func(k key) string { return k.Key }) }

// A keySet is the keys of a kind of configuration.
type keySet struct {
	keys    []key  // in the order of the defaults' file
	command string // that takes it, such as "cne train"
	printer string // that prints it, such as "cne config"
	base    *layer // the defaults
}

// Has reports whether a key exists.
func (s *keySet) Has(key string) bool {
	_, ok := find(s.keys, key)
	return ok
}

// Completions returns a shell's completions of a setting: all keys as "key=" and their
// words as "key=word".
func (s *keySet) Completions() []string {
	var offers []string
	for _, k := range s.keys {
		offers = append(offers, k.Key+"=")
		for _, w := range k.rule.words {
			offers = append(offers, k.Key+"="+w)
		}
	}
	return offers
}

// Words returns the words that a key may have, if they are known.
func (s *keySet) Words(key string) []string {
	k, _ := find(s.keys, key)
	return k.rule.words
}

// sections returns the names of the sections, in their order.
func (s *keySet) sections() []string {
	var names []string
	for _, k := range s.keys {
		if section, _, ok := strings.Cut(k.Key, "."); ok {
			names = append(names, section)
		}
	}
	return slices.Compact(names)
}

// firstKey returns the first key of a section.
func (s *keySet) firstKey(section string) string {
	i := slices.IndexFunc(s.keys, func(k key) bool { return strings.HasPrefix(k.Key, section+".") })
	return s.keys[i].Key
}

// shorthand is a section that may have a single value, such as device: cuda.
const shorthand = "device"

// fullName returns the key of a name, which may be the shorthand.
func fullName(name string) string {
	if name == shorthand {
		return "device.name"
	}
	return name
}

// CheckKey returns an *Error for an unknown key, with a hint: a key of another command, or a
// similar one.
func (s *keySet) CheckKey(source, k string) error {
	if s.Has(k) {
		return nil
	}
	problem := fmt.Sprintf("unknown key; %q lists all keys", s.printer)
	if other := s.otherCommand(k); other != "" {
		problem = fmt.Sprintf("a key of %q, not of %q", other, s.command)
	} else if near := s.near(k); near != "" {
		problem = "unknown key; did you mean " + near + "?"
	}
	return &Error{source, text.Printable(k), problem}
}

// near returns the key or section most similar to an unknown key, or "". A similar key of
// another section may have another meaning: near then returns the keys of all sections
// with the same name, with their meanings.
func (s *keySet) near(k string) string {
	nearest := text.Nearest(k, append(names(s.keys), s.sections()...))
	section, _, dotted := strings.Cut(k, ".")
	found, name, _ := strings.Cut(nearest, ".")
	if !dotted || name == "" || section == found || !slices.Contains(s.sections(), section) {
		return nearest
	}
	var alike []string
	for _, known := range s.keys {
		if strings.HasSuffix(known.Key, "."+name) {
			alike = append(alike, fmt.Sprintf("%s (%s)", known.Key, known.meaning))
		}
	}
	return strings.Join(alike, " or ")
}

// otherCommand returns another command with a key or section of this name, or "".
func (s *keySet) otherCommand(name string) string {
	for _, other := range keySets {
		if other != s && (other.Has(name) || slices.Contains(other.sections(), name)) {
			return other.command
		}
	}
	return ""
}
