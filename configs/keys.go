package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// A key is a leaf of a configuration with its rule.
type key struct {
	name  string // as in "train.epochs"
	rule  rule
	index []int // of its field in the struct
}

// keysOf returns the keys of a struct, and of the structs in it, in the order of
// the fields. A field's tag key holds its name, behind which ",null" allows null
// (as a pointer does by itself), ",squash" if it is a struct whose keys are those of
// the struct around it, or ",leaf" if it is one without keys. The other tags are about
// the rule.
func keysOf(t reflect.Type) []key {
	var keys []key
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("key"), ",")
		if f.Type.Kind() != reflect.Struct || option == "leaf" {
			r := ruleOf(f.Type, f.Tag)
			if option == "null" {
				r = orNull(r)
			}
			keys = append(keys, key{name, r, []int{i}})
			continue
		}
		if option != "squash" {
			name += "."
		}
		for _, k := range keysOf(f.Type) {
			keys = append(keys, key{name + k.name, k.rule, append([]int{i}, k.index...)})
		}
	}
	return keys
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

// inFull returns the key that a name stands for, which may be a shorthand.
func (s *keySet) inFull(name string) string {
	if k, ok := shorthands[name]; ok && s.Has(k) {
		return k
	}
	return name
}

// unknownKey says that there is no such key, and what may have been meant: a
// key of another command, or one that is written alike.
func (s *keySet) unknownKey(source, k string) *Error {
	problem := fmt.Sprintf("is not a key; %q lists all keys", s.printer)
	if other := s.otherCommand(k); other != "" {
		problem = fmt.Sprintf("is a key of %q, but this is a configuration of %q", other, s.command)
	} else if near := s.near(k); near != "" {
		problem = "is not a key; did you mean " + near + "?"
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
