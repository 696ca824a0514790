package configs

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"cne/internal/option"
	"cne/internal/text"
)

// A key is a leaf of a configuration with its rule.
type key struct {
	name  string // as in "train.epochs"
	rule  rule
	null  bool  // whether null stands for the zero value
	index []int // of its field in the struct
}

// keysOf returns the keys of a struct, and of the structs in it, in the order of
// the fields.
func keysOf(t reflect.Type) []key {
	var keys []key
	for _, f := range option.Fields(t) {
		keys = append(keys, key{f.Key, ruleOf(f), f.Null, f.Index})
	}
	return keys
}

// orderedKeys returns the keys of a struct in the order of a file of defaults, and then
// those that it does not have.
func orderedKeys(t reflect.Type, file string) []key {
	place := map[string]int{}
	section := ""
	for line := range strings.Lines(file) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case !ok || strings.HasPrefix(name, "#"):
		case !strings.HasPrefix(line, " ") && value == "":
			section = name + "."
		case strings.HasPrefix(line, " "):
			place[section+name] = len(place) + 1
		default:
			place[name] = len(place) + 1
		}
	}
	keys := keysOf(t)
	at := func(k key) int { return cmp.Or(place[k.name], math.MaxInt) }
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(at(a), at(b)) })
	return keys
}

// value returns the value of the key in a struct; nil stands for null.
func (k *key) value(of reflect.Value) any {
	v := of.FieldByIndex(k.index)
	if v.IsZero() && (k.null || v.Kind() == reflect.Pointer) {
		return nil
	}
	return reflect.Indirect(v).Interface()
}

// node returns the node that stands for a value of the key in YAML.
func (k *key) node(v any) (*yaml.Node, error) {
	if v != nil && k.rule.write != nil {
		v = k.rule.write(v)
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
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// names returns the names of keys, in their order.
func names(keys []key) []string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = k.name
	}
	return s
}

// A keySet is the keys of a kind of configuration.
type keySet struct {
	keys    []key  // in the order of the defaults' file
	command string // what takes it, such as "cne train"
	printer string // and what prints it, such as "cne config"
	// meanings returns what each key means, in a few words.
	meanings func() map[string]string
}

// Has tells whether there is a key of a name.
func (s *keySet) Has(key string) bool {
	_, ok := find(s.keys, key)
	return ok
}

// Completions returns what a shell may offer to who types a setting: all keys,
// and the words that are their values, as "key=" and "key=word".
func (s *keySet) Completions() []string {
	var offers []string
	for _, k := range s.keys {
		offers = append(offers, k.name+"=")
		for _, w := range k.rule.words {
			offers = append(offers, k.name+"="+w)
		}
	}
	return offers
}

// sections returns the names of the sections, in their order.
func (s *keySet) sections() []string {
	var names []string
	for _, k := range s.keys {
		if section, _, ok := strings.Cut(k.name, "."); ok {
			names = append(names, section)
		}
	}
	return slices.Compact(names)
}

// firstKey returns the first key of a section.
func (s *keySet) firstKey(section string) string {
	i := slices.IndexFunc(s.keys, func(k key) bool { return strings.HasPrefix(k.name, section+".") })
	return s.keys[i].name
}

// shorthands are the sections in whose place a single value may be given, with the
// keys that it is then of: device: cuda.
var shorthands = map[string]string{"device": "device.name"}

// fullName returns the key that a name stands for, which may be a shorthand.
func (s *keySet) fullName(name string) string {
	if k, ok := shorthands[name]; ok && s.Has(k) {
		return k
	}
	return name
}

// unknownKey says that there is no such key, and what may have been meant: a
// key of another command, or one that is written alike.
func (s *keySet) unknownKey(source, k string) *Error {
	problem := fmt.Sprintf("unknown key; %q lists all keys", s.printer)
	if other := s.otherCommand(k); other != "" {
		problem = fmt.Sprintf("a key of %q, but this is a configuration of %q", other, s.command)
	} else if near := s.near(k); near != "" {
		problem = "unknown key; did you mean " + near + "?"
	}
	return &Error{source, text.Printable(k), problem}
}

// near returns the key that is written most like an unknown one; "" if none is. Where
// that is a key of another section, it may be of another meaning: it comes with its
// meaning, and so do the keys of the same name in further sections.
func (s *keySet) near(k string) string {
	nearest := text.Nearest(k, append(names(s.keys), s.sections()...))
	section, _, dotted := strings.Cut(k, ".")
	found, name, _ := strings.Cut(nearest, ".")
	if !dotted || name == "" || section == found || !slices.Contains(s.sections(), section) {
		return nearest
	}
	var alike []string
	for _, known := range s.keys {
		if strings.HasSuffix(known.name, "."+name) {
			alike = append(alike, fmt.Sprintf("%s (%s)", known.name, s.meanings()[known.name]))
		}
	}
	return strings.Join(alike, " or ")
}

// meaningsIn returns the meanings of the keys: what their comments in a file of defaults
// say first.
func meaningsIn(file *string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		meanings := map[string]string{}
		var document yaml.Node
		if yaml.Unmarshal([]byte(*file), &document) != nil {
			return meanings // reading the defaults says what is wrong
		}
		var collect func(prefix string, n *yaml.Node)
		collect = func(prefix string, n *yaml.Node) {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				if value.Kind == yaml.MappingNode {
					collect(prefix+key.Value+".", value)
					continue
				}
				meaning := strings.TrimPrefix(key.HeadComment, "# ")
				if end := strings.IndexAny(meaning, ".,:;("); end >= 0 {
					meaning = meaning[:end]
				}
				meanings[prefix+key.Value] = strings.TrimSpace(meaning)
			}
		}
		collect("", document.Content[0])
		return meanings
	})
}

// otherCommand returns the command other than this one that has a key or a
// section of a name; "" if there is none.
func (s *keySet) otherCommand(name string) string {
	for _, other := range keySets() {
		if other != s && (other.Has(name) || slices.Contains(other.sections(), name)) {
			return other.command
		}
	}
	return ""
}
