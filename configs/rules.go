package configs

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne"
	"cne/internal/device"
	"cne/internal/option"
	"cne/internal/selection"
	"cne/internal/text"
)

// A rule reads the YAML of a key's values: package option knows which are allowed.
type rule struct {
	// read returns the value, or why it is invalid.
	read func(n *yaml.Node) (any, *invalid)
	// text says how to read a value from the environment or a flag, where titles and
	// paths need no quotes.
	text textForm
	// words are the values that shell completion offers.
	words []string
}

// textForm is the form of a value given outside a file.
type textForm int

const (
	asYAML    textForm = iota // the value is YAML
	asText                    // the value is taken as it stands, unless it begins with a quote
	asList                    // YAML if it begins with a bracket, else texts with commas between them
	asNumbers                 // YAML, without brackets around numbers with commas between them
)

// An invalid describes an invalid value: what is wrong, and where.
type invalid struct {
	part string     // such as "lr of phase 2"; "" for the whole value
	at   *yaml.Node // where in the file; nil for the whole value
	text string     // such as "got -1, want a number above 0"
	hint string     // further advice, such as "did you mean adam?"; "" for none
}

// A shaped value has a YAML form of its own.
type shaped interface {
	rule() rule
	plain() any // the value as YAML writes it
}

// kindsOfText are the values of the tag as, which says what a text, or a list of texts, is.
var kindsOfText = map[string]string{
	"text":    "text that is not empty",
	"device":  "auto, cpu, cuda, or cuda:1 for the second GPU",
	"start":   strings.Join(cne.InitPCA.Words(), ", ") + ", or the path of a run folder or a file",
	"column":  "the name of a column, or its number (1 is the first, -1 the last)",
	"columns": "the name or number of a column, or a list of them",
	"words":   "a word or a number, or a list of them",
	"paths":   "a path or a list of paths",
	"inputs":  "a path or a list of at least one path",
}

// ruleOf returns the rule of a field. It panics if there is none, because the struct is
// then wrong.
func ruleOf(f option.Field) rule {
	allowed := kindsOfText[f.As]
	switch v := reflect.New(f.Type).Interface().(type) {
	case shaped:
		return v.rule()
	case encoding.TextUnmarshaler:
		return oneOf(f.Words, func(s string) (any, bool) {
			v := reflect.New(f.Type)
			err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
			return v.Elem().Interface(), err == nil
		})
	case *bool:
		return boolean(f.Words)
	case *int, *uint64, *float64:
		return rule{read: number(f), words: f.Words}
	case *[]int:
		allowed := fmt.Sprintf("a list of whole numbers from %v to %v, such as [100, 100]", f.Range.Low, f.Range.High)
		return rule{text: asNumbers, read: items("", func(item *yaml.Node, _ []int) (int, *invalid) {
			v, ok := parseWhole(item)
			if !ok || !f.Range.Contains(float64(v)) {
				return 0, wrong(item, allowed)
			}
			return int(v), nil
		})}
	case *[]uint64:
		return seeds()
	case *string:
		switch {
		case f.Words != nil:
			return oneOf(f.Words, func(s string) (any, bool) { return s, slices.Contains(f.Words, s) })
		case allowed != "":
			r := rule{text: asText, read: func(n *yaml.Node) (any, *invalid) {
				if s, ok := parseText(n); ok && s != "" && (f.As != "device" || device.CheckName(s) == nil) {
					return s, nil
				}
				return nil, wrongText(n, allowed)
			}}
			if f.As == "device" {
				r.words = []string{"auto", "cpu", "cuda"}
			} else if f.As == "start" {
				r.words = cne.InitPCA.Words()
			}
			return r
		}
	case *[]string:
		if f.Words != nil {
			allowed = text.Enumerate(f.Words) + ", or a list of them"
		}
		if allowed != "" {
			return textList(allowed, f.Words, f.As == "inputs")
		}
	default:
		if f.Fields != nil {
			return rule{read: entries(f)}
		}
	}
	panic(fmt.Sprintf("configs: there is no rule for %s of the type %v with as:%q", f.Key, f.Type, f.As))
}

// read applies the key's rule to a node, null included.
func (k *key) read(n *yaml.Node) (any, *invalid) {
	n = resolve(n)
	if k.Null && isNull(n) {
		return nil, nil
	}
	v, p := k.rule.read(n)
	if k.Null && p != nil && p.part == "" {
		p.text += ", or null"
	}
	return v, p
}

// wrong describes a value that its key does not allow.
func wrong(n *yaml.Node, allowed string) *invalid {
	p := &invalid{text: "got " + describe(n) + ", want " + allowed}
	if _, err := text.Decimal(n.Value); err != nil && isScalar(n, "!!int") {
		p.hint = "write numbers in decimal digits"
	}
	return p
}

// wrongText is wrong where text is allowed, with how to make text of a truth value.
func wrongText(n *yaml.Node, allowed string) *invalid {
	p := &invalid{text: "got " + describe(n) + ", want " + allowed}
	if isScalar(n, "!!bool") {
		p.hint = "quote it: " + text.Quote(n.Value)
	}
	return p
}

// boolean allows true and false, or the words for false and true.
func boolean(words []string) rule {
	inverted := slices.Equal(words, []string{"true", "false"})
	if len(words) > 0 && !inverted {
		return oneOf(words, func(s string) (any, bool) { return s == words[1], slices.Contains(words, s) })
	}
	return rule{words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *invalid) {
		var b bool
		if !isScalar(n, "!!bool") || n.Decode(&b) != nil {
			return nil, wrong(n, "true or false")
		}
		return b != inverted, nil
	}}
}

// isNumber reports whether YAML takes a node for a number.
func isNumber(n *yaml.Node) bool { return isScalar(n, "!!float") || isScalar(n, "!!int") }

// parseNumber reads a finite number in decimal digits. YAML would read 010 as 8.
func parseNumber(n *yaml.Node) (float64, bool) {
	x, err := text.Decimal(n.Value)
	return x, isNumber(n) && err == nil
}

// parseWhole reads a whole number.
func parseWhole(n *yaml.Node) (int64, bool) {
	v, err := text.Whole(n.Value)
	return v, isNumber(n) && err == nil
}

// number allows the numbers of a field's range, and the words for other numbers.
func number(f option.Field) func(n *yaml.Node) (any, *invalid) {
	largest := map[reflect.Kind]int64{reflect.Int: math.MaxInt32, reflect.Uint64: math.MaxInt64}[f.Type.Kind()]
	return func(n *yaml.Node) (any, *invalid) {
		for _, w := range f.Values {
			if isScalar(n, "!!str") && n.Value == w.Word {
				return w.Value, nil
			}
		}
		x, ok := parseNumber(n)
		v, whole := parseWhole(n)
		switch {
		case whole && largest > 0 && v > largest, largest > 0 && !whole && x >= 1<<63:
			p := wrong(n, fmt.Sprintf("at most %d", largest))
			for _, w := range f.Values {
				p.text += ", or " + w.Word
			}
			return nil, p
		case !ok || !f.Range.Contains(x) || largest > 0 && !whole:
			return nil, wrong(n, f.Want())
		case largest > 0:
			return v, nil
		}
		return x, nil
	}
}

// oneOf allows the words that parse takes.
func oneOf(words []string, parse func(string) (any, bool)) rule {
	return rule{words: words, read: func(n *yaml.Node) (any, *invalid) {
		p := wrong(n, text.Enumerate(words))
		if !isScalar(n, "!!str") {
			return nil, p
		}
		if v, ok := parse(n.Value); ok {
			return v, nil
		}
		if near := text.Nearest(n.Value, words); near != "" {
			p.hint = "did you mean " + near + "?"
		}
		return nil, p
	}}
}

// parseText reads text. What YAML takes for a number or a date is text as it stands: 010
// is a name.
func parseText(n *yaml.Node) (string, bool) {
	return n.Value, isScalar(n, "!!str") || isNumber(n) || isScalar(n, "!!timestamp")
}

// items returns a function that reads a list, or a single item instead. A problem with an
// item of a list has the item's number. If some is not "", the list must not be empty, and
// some says what is allowed.
func items[T any](some string, read func(item *yaml.Node, before []T) (T, *invalid)) func(n *yaml.Node) (any, *invalid) {
	return func(n *yaml.Node) (any, *invalid) {
		if some != "" && n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			return nil, wrong(n, some)
		}
		list := []T{}
		for i, node := range itemsOf(n) {
			v, p := read(resolve(node), list)
			if p != nil {
				if n.Kind == yaml.SequenceNode {
					p.part, p.at = fmt.Sprintf("item %d", i+1), node
				}
				return nil, p
			}
			list = append(list, v)
		}
		return list, nil
	}
}

// textList allows a list of texts, of the words if there are any; some excludes the empty
// list.
func textList(allowed string, words []string, some bool) rule {
	itemAllowed := selection.If(some, kindsOfText["paths"], allowed)
	atLeastOne := selection.If(some, allowed, "")
	return rule{text: asList, words: words, read: items(atLeastOne, func(item *yaml.Node, _ []string) (string, *invalid) {
		s, ok := parseText(item)
		if !ok || s == "" || words != nil && !slices.Contains(words, s) {
			return "", wrongText(item, itemAllowed)
		}
		return s, nil
	})}
}

// seeds allows a list of different whole numbers of at least 0, or one such
// number.
func seeds() rule {
	const allowed = "a whole number of at least 0 or a list of them, such as [0, 1, 2]"
	return rule{text: asNumbers, read: items(allowed, func(item *yaml.Node, before []uint64) (uint64, *invalid) {
		v, ok := parseWhole(item)
		switch {
		case !ok || v < 0:
			return 0, wrong(item, allowed)
		case slices.Contains(before, uint64(v)):
			return 0, &invalid{text: "got " + describe(item) + " twice, want each seed once"}
		}
		return uint64(v), nil
	})}
}

// rule allows a share, or a path or a list of paths.
func (*Holdout) rule() rule {
	paths := textList(kindsOfText["inputs"], nil, true)
	return rule{text: asList, read: func(n *yaml.Node) (any, *invalid) {
		x, err := text.Decimal(n.Value) // outside a file it is text
		switch {
		case x > 0 && x < 1:
			return Holdout{Share: x}, nil
		case err == nil:
			return nil, wrong(n, "a share between 0 and 1, a path or a list of paths")
		}
		v, p := paths.read(n)
		if p != nil {
			return nil, p
		}
		return Holdout{Paths: v.([]string)}, nil
	}}
}

func (h Holdout) plain() any {
	if len(h.Paths) == 0 {
		return h.Share
	}
	return h.Paths
}

// rule allows a number or share of points, or the path of a file.
func (*Sample) rule() rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *invalid) {
		x, err := text.Decimal(n.Value) // outside a file it is text
		path, isText := parseText(n)
		switch {
		case x > 0 && x <= 1:
			return Sample{Share: x}, nil
		case x >= 2 && x <= math.MaxInt32 && x == math.Trunc(x):
			return Sample{Number: int(x)}, nil
		case isText && path != "" && err != nil:
			return Sample{File: path}, nil
		}
		return nil, wrong(n, "a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows")
	}}
}

func (s Sample) plain() any {
	switch {
	case s.File != "":
		return s.File
	case s.Number > 0:
		return s.Number
	}
	return s.Share
}

// rule allows a truth value, or the path of a folder. Outside a file both are text.
func (*Cache) rule() rule {
	const allowed = "true, false or a folder"
	return rule{text: asText, words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *invalid) {
		folder, ok := parseText(n)
		switch word := strings.ToLower(n.Value); {
		case n.Kind != yaml.ScalarNode || word == "" || isNull(n):
			return nil, wrong(n, allowed)
		case word == "true", word == "false":
			return Cache{Keep: word == "true"}, nil
		case slices.Contains([]string{"yes", "no", "on", "off", "0", "1"}, word):
			p := wrong(n, allowed)
			p.hint = "a folder of that name is ./" + folder
			return nil, p
		case !ok:
			return nil, wrongText(n, allowed)
		}
		return Cache{Keep: true, Folder: folder}, nil
	}}
}

func (c Cache) plain() any {
	if c.Folder == "" {
		return c.Keep
	}
	return c.Folder
}

// entries allows a list of mappings with the keys of the structs of a list.
func entries(f option.Field) func(n *yaml.Node) (any, *invalid) {
	keys := keysOf(f.Fields)
	return func(n *yaml.Node) (any, *invalid) {
		if n.Kind != yaml.SequenceNode {
			return nil, wrong(n, fmt.Sprintf("a list of %ss, such as [{%s: 5}]", f.Item, keys[0].Key))
		}
		list := reflect.MakeSlice(f.Type, len(n.Content), len(n.Content))
		for i, node := range n.Content {
			if p := readEntry(resolve(node), keys, list.Index(i)); p != nil {
				of := fmt.Sprintf("%s %d", f.Item, i+1)
				if p.part != "" {
					of = p.part + " of " + of
				}
				p.part = of
				if p.at == nil {
					p.at = node
				}
				return nil, p
			}
		}
		return list.Interface(), nil
	}
}

// readEntry reads one entry of a list of mappings. The part that a fault names is a key of
// the entry.
func readEntry(n *yaml.Node, keys []key, entry reflect.Value) *invalid {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "a mapping with the keys "+text.Enumerate(names(keys)))
	}
	given := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], n.Content[i+1]
		k, ok := find(keys, name.Value)
		switch {
		case !ok:
			return &invalid{at: name, text: fmt.Sprintf("got the unknown key %s, want %s", text.Quote(name.Value), text.Enumerate(names(keys)))}
		case given[k.Key]:
			return &invalid{part: k.Key, at: name, text: "given twice"}
		}
		given[k.Key] = true
		v, p := k.read(node)
		if p != nil {
			if p.part != "" {
				p.part += " of "
			}
			p.part, p.at = p.part+k.Key, node
			return p
		}
		assign(entry.FieldByIndex(k.Index), v)
	}
	return nil
}
