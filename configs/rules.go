package configs

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne"
	"cne/internal/device"
	"cne/internal/option"
	"cne/internal/text"
)

// A rule says which values a key may have, and converts between a value's YAML node and
// the Go value that the struct holds.
type rule struct {
	// read returns the value, or why it is invalid.
	read func(n *yaml.Node) (any, *invalid)
	// write returns a value as it is written in YAML; nil: unchanged.
	write func(v any) any
	// text says how to read a value from the environment or a flag, where titles and
	// paths need no quotes.
	text textForm
	// null allows null; read is then not called.
	null bool
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

// A word is a type whose values have names. A field of such a type takes the texts that
// its UnmarshalText takes.
type word interface {
	encoding.TextUnmarshaler
	Words() []string // for people to choose from
}

// ruleOf returns the rule that a field's type and tags imply: see package option. There is
// one more tag:
//
//	as:"nonempty"  what else a string, or a list of strings, has to be:
//	               nonempty, device, start, column or columns
//
// The words in words:"…" of an enumeration come first in messages. ruleOf panics if there
// is no rule, because the struct is then wrong.
func ruleOf(f option.Field) rule {
	t, tag := f.Type, f.Tag
	if t.Kind() == reflect.Pointer {
		f.Type = t.Elem()
		return ruleOf(f)
	}
	if f.Null {
		f.Null = false
		r := ruleOf(f)
		r.null = true
		return r
	}
	in, words, values, as := tag.Get("in"), strings.Fields(tag.Get("words")), option.WordValues(tag.Get("words")), tag.Get("as")
	if w, ok := reflect.New(t).Interface().(word); ok {
		rest := slices.DeleteFunc(w.Words(), func(s string) bool { return slices.Contains(words, s) })
		return oneOf(append(words, rest...), func(s string) (any, error) {
			v := reflect.New(t)
			err := v.Interface().(word).UnmarshalText([]byte(s))
			return v.Elem().Interface(), err
		})
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return entries(t, tag.Get("item"))
	}
	switch reflect.Zero(t).Interface().(type) {
	case bool:
		return boolean(words)
	case int:
		return orWord(whole(in, math.MaxInt32), values)
	case uint64:
		return whole(in, math.MaxInt64)
	case float64:
		return orWord(number(in), values)
	case string:
		switch {
		case len(words) > 0:
			return oneOf(words, nil)
		case as == "nonempty":
			return textOf(parseNonEmpty, "text that is not empty", quoteHint)
		case as == "device":
			r := textOf(parseDevice, "auto, cpu, cuda, or cuda:1 for the second GPU", nil)
			r.words = []string{"auto", "cpu", "cuda"}
			return r
		case as == "start":
			r := textOf(parseNonEmpty, startWords, quoteHint)
			r.words = cne.InitPCA.Words()
			return r
		case as == "column":
			return textOf(parseNonEmpty, "the name of a column, or its number (1 is the first, -1 the last)", quoteHint)
		case as == "":
			return textOf(parseText, "text", quoteHint)
		}
	case []string:
		switch {
		case len(words) > 0:
			r := textList(func(n *yaml.Node) (string, bool) {
				return n.Value, isScalar(n, "!!str") && slices.Contains(words, n.Value)
			}, text.Enumerate(words)+", or a list of them")
			r.words = words
			return r
		case as == "nonempty":
			return nonEmptyList()
		case as == "columns":
			return textList(parseNonEmpty, "the name or number of a column, or a list of them")
		case as == "":
			return list()
		}
	case []int:
		return wholes(option.ParseRange(in))
	case []uint64:
		return seeds()
	case [3]float32:
		return colours(option.ParseRange(in))
	case Holdout:
		return holdout()
	case TrainOn:
		return trainOn()
	case Cache:
		return cache()
	}
	panic(fmt.Sprintf("configs: there is no rule for a key of the type %v with the tags %s", t, tag))
}

// startWords describes the values of model.init.
var startWords = strings.Join(cne.InitPCA.Words(), ", ") + ", or the path of a run folder or a file"

// value applies the rule to a node, null included.
func (r rule) value(n *yaml.Node) (any, *invalid) {
	n = resolve(n)
	if r.null && isNull(n) {
		return nil, nil
	}
	v, p := r.read(n)
	if r.null && p != nil && p.part == "" {
		p.text += ", or null"
	}
	return v, p
}

// orWord allows words that stand for numbers, in addition to r.
func orWord(r rule, values []option.WordValue) rule {
	read := r.read
	for _, w := range values {
		r.words = append(r.words, w.Word)
	}
	r.read = func(n *yaml.Node) (any, *invalid) {
		for _, w := range values {
			if isScalar(n, "!!str") && n.Value == w.Word {
				return w.Value, nil
			}
		}
		v, p := read(n)
		for _, w := range r.words {
			if p != nil {
				p.text += ", or " + w
			}
		}
		return v, p
	}
	r.write = func(v any) any {
		for _, w := range values {
			if fmt.Sprint(v) == fmt.Sprint(w.Value) {
				return w.Word
			}
		}
		return v
	}
	return r
}

// wrong describes a value that its key does not allow.
func wrong(n *yaml.Node, allowed string) *invalid {
	p := &invalid{text: "got " + describe(n) + ", want " + allowed}
	if _, err := text.Decimal(n.Value); err != nil && isScalar(n, "!!int") {
		p.hint = "write numbers in decimal digits"
	}
	return p
}

// boolean allows true and false, or the words for false and true.
func boolean(words []string) rule {
	inverted := slices.Equal(words, []string{"true", "false"})
	if len(words) > 0 && !inverted {
		r := oneOf(words, func(s string) (any, error) {
			i := slices.Index(words, s)
			if i < 0 {
				return nil, errors.New("none of the words")
			}
			return i == 1, nil
		})
		r.write = func(v any) any {
			if v.(bool) {
				return words[1]
			}
			return words[0]
		}
		return r
	}
	return rule{words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *invalid) {
		var b bool
		if !isScalar(n, "!!bool") || n.Decode(&b) != nil {
			return nil, wrong(n, "true or false")
		}
		return b != inverted, nil
	}, write: func(v any) any { return v.(bool) != inverted }}
}

// number allows the numbers of a range.
func number(in string) rule {
	r := option.ParseRange(in)
	return rule{read: func(n *yaml.Node) (any, *invalid) {
		x, ok := parseNumber(n)
		if !ok || !r.Contains(x) {
			return nil, wrong(n, r.Text(false))
		}
		return x, nil
	}}
}

// isNumber reports whether YAML takes a node for a number.
func isNumber(n *yaml.Node) bool { return isScalar(n, "!!float") || isScalar(n, "!!int") }

// parseNumber reads a finite number in decimal digits. YAML would read 010 as 8.
func parseNumber(n *yaml.Node) (float64, bool) {
	x, err := text.Decimal(n.Value)
	return x, isNumber(n) && err == nil
}

// whole allows the whole numbers of a range up to the field's largest, also written as
// 1.0 or 1e3.
func whole(in string, largest int64) rule {
	r := option.ParseRange(in)
	return rule{read: func(n *yaml.Node) (any, *invalid) {
		v, ok := parseWhole(n)
		switch x, _ := parseNumber(n); {
		case ok && v > largest || !ok && x >= 1<<63:
			return nil, wrong(n, fmt.Sprintf("at most %d", largest))
		case !ok || !r.Contains(float64(v)):
			return nil, wrong(n, r.Text(true))
		}
		return v, nil
	}}
}

func parseWhole(n *yaml.Node) (int64, bool) {
	v, err := text.Whole(n.Value)
	return v, isNumber(n) && err == nil
}

// oneOf allows the words that parse takes, or without parse the words themselves.
func oneOf(words []string, parse func(string) (any, error)) rule {
	return rule{words: words, read: func(n *yaml.Node) (any, *invalid) {
		allowed := text.Enumerate(words)
		if !isScalar(n, "!!str") {
			return nil, wrong(n, allowed)
		}
		if parse == nil {
			if slices.Contains(words, n.Value) {
				return n.Value, nil
			}
		} else if v, err := parse(n.Value); err == nil {
			return v, nil
		}
		p := wrong(n, allowed)
		if near := text.Nearest(n.Value, words); near != "" {
			p.hint = "did you mean " + near + "?"
		}
		return nil, p
	}}
}

// textOf allows text that parse accepts, which allowed describes; hint, if not nil, may
// return a hint for a value.
func textOf(parse func(*yaml.Node) (string, bool), allowed string, hint func(*yaml.Node) string) rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *invalid) {
		if s, ok := parse(n); ok {
			return s, nil
		}
		p := wrong(n, allowed)
		if hint != nil {
			p.hint = hint(n)
		}
		return nil, p
	}}
}

// parseText reads text. What YAML takes for a number or a date is text as it stands: 010
// is a name.
func parseText(n *yaml.Node) (string, bool) {
	return n.Value, isScalar(n, "!!str") || isNumber(n) || isScalar(n, "!!timestamp")
}

func parseDevice(n *yaml.Node) (string, bool) {
	return n.Value, isScalar(n, "!!str") && device.CheckName(n.Value) == nil
}

func parseNonEmpty(n *yaml.Node) (string, bool) {
	s, ok := parseText(n)
	return s, ok && s != ""
}

// quoteHint says how to make text of a truth value.
func quoteHint(n *yaml.Node) string {
	if isScalar(n, "!!bool") {
		return "quote it: " + text.Quote(n.Value)
	}
	return ""
}
