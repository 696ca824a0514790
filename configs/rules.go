package configs

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/device"
	"cne/internal/text"
)

// A rule says which values a key may have and turns the YAML node of one into
// the Go value that the struct holds.
type rule struct {
	// read returns the value, or a problem.
	read func(n *yaml.Node) (any, *problem)
	// text says how to read a value that comes from the environment or a
	// flag, where nobody expects to have to quote a title or a path.
	text textForm
	// null allows null, for which read is not called.
	null bool
	// words are the values that shell completion offers.
	words []string
}

// textForm is the form of a value given outside a file.
type textForm int

const (
	asYAML textForm = iota // the value is YAML
	asText                 // the value is taken as it stands, unless it begins with a quote
	asList                 // YAML if it begins with a bracket, else a list of the one text
)

// A problem is the part of an error that a rule knows: the predicate of its
// sentence, and for a part of the value which part and where.
type problem struct {
	part string     // such as "lr of phase 2"; "" for the whole value
	at   *yaml.Node // where in the file; nil for the whole value
	text string     // such as "is -1, but must be a number above 0"
	hint string     // what else helps, such as "did you mean adam?"; "" for nothing
}

// A word is a type whose values have names. A field of such a type takes what
// its UnmarshalText does.
type word interface {
	encoding.TextUnmarshaler
	Words() []string // for people to choose from
}

// ruleOf returns the rule of a field, which its type implies together with one of
// the tags
//
//	in:"[1,inf)"      the range of a number, or of the numbers of a list
//	words:"sum mean"  the words that a string may be; those of a type that has
//	                  words of its own which people are told first
//	as:"nonempty"     what else a string, or a list of strings, has to be:
//	                  nonempty, device, start, column, columns or modules
//
// A pointer takes null, too. Where there is no rule it panics, since the fault is the
// struct's.
func ruleOf(t reflect.Type, tag reflect.StructTag) rule {
	if t.Kind() == reflect.Pointer {
		return orNull(ruleOf(t.Elem(), tag))
	}
	in, words, as := tag.Get("in"), strings.Fields(tag.Get("words")), tag.Get("as")
	if w, ok := reflect.New(t).Interface().(word); ok {
		rest := slices.DeleteFunc(w.Words(), func(s string) bool { return slices.Contains(words, s) })
		return oneOf(append(words, rest...), func(s string) (any, error) {
			v := reflect.New(t)
			err := v.Interface().(word).UnmarshalText([]byte(s))
			return v.Elem().Interface(), err
		})
	}
	switch reflect.Zero(t).Interface().(type) {
	case bool:
		return boolean()
	case int:
		return whole(in, math.MaxInt32)
	case uint64:
		return whole(in, math.MaxInt64)
	case float64:
		return number(in)
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
			r := textOf(parseNonEmpty, "pca, spectral, multilevel, random, or the path of a run folder or a file", quoteHint)
			r.words = inits
			return r
		case as == "column":
			return textOf(parseColumn, "the name of a column, or its number (1 is the first, -1 the last)", nil)
		case as == "":
			return textOf(parseText, "text", quoteHint)
		}
	case []string:
		switch as {
		case "nonempty":
			return nonEmptyList()
		case "columns":
			return columns()
		case "modules":
			return modules()
		case "":
			return list()
		}
	case []int:
		return wholes(parseInterval(in))
	case []uint64:
		return seeds()
	case [3]float64:
		return colours(parseInterval(in))
	case Negatives:
		return negatives()
	case ZBar:
		return zBar()
	case Holdout:
		return holdout()
	case TrainOn:
		return trainOn()
	case Cache:
		return cache()
	case []Phase:
		return phases()
	case []NetworkStage:
		return networkStages()
	}
	panic(fmt.Sprintf("configs: there is no rule for a key of the type %v with the tags %s", t, tag))
}

// value applies the rule to a node, null included.
func (r rule) value(n *yaml.Node) (any, *problem) {
	n = resolve(n)
	if r.null && isNull(n) {
		return nil, nil
	}
	return r.read(n)
}

// orNull allows null besides what r allows.
func orNull(r rule) rule {
	read := r.read
	r.null = true
	r.read = func(n *yaml.Node) (any, *problem) {
		v, p := read(n)
		if p != nil && p.part == "" {
			p.text += ", or null"
		}
		return v, p
	}
	return r
}

// wrong is the problem of a value that is not what a key allows.
func wrong(n *yaml.Node, allowed string) *problem {
	return &problem{text: "is " + describe(n) + ", but must be " + allowed}
}

func boolean() rule {
	return rule{words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *problem) {
		var b bool
		if !isScalar(n, "!!bool") || n.Decode(&b) != nil {
			return nil, wrong(n, "true or false")
		}
		return b, nil
	}}
}

// An interval is a range of real numbers.
type interval struct {
	lo, hi         float64 // may be infinite
	openLo, openHi bool    // whether these do not belong to it
	loText, hiText string  // as they were written
}

// parseInterval reads an interval as mathematicians write it, such as "[0,1)";
// "" is all real numbers.
func parseInterval(s string) interval {
	if s == "" {
		s = "(-inf,inf)"
	}
	lo, hi, _ := strings.Cut(s[1:len(s)-1], ",")
	in := interval{openLo: s[0] == '(', openHi: s[len(s)-1] == ')', loText: lo, hiText: hi}
	var err1, err2 error
	in.lo, err1 = strconv.ParseFloat(lo, 64)
	in.hi, err2 = strconv.ParseFloat(hi, 64)
	if err1 != nil || err2 != nil || in.lo > in.hi {
		panic(fmt.Sprintf("configs: %q is no interval", s))
	}
	return in
}

func (in *interval) contains(x float64) bool {
	return (x > in.lo || x == in.lo && !in.openLo) && (x < in.hi || x == in.hi && !in.openHi)
}

// String describes the interval's numbers.
func (in *interval) String() string {
	switch {
	case math.IsInf(in.lo, -1):
		return "a number"
	case math.IsInf(in.hi, 1) && in.openLo:
		return "a number above " + in.loText
	case math.IsInf(in.hi, 1):
		return "a number of at least " + in.loText
	case in.openLo:
		return "a number above " + in.loText + " and at most " + in.hiText
	case in.openHi:
		return "a number of at least " + in.loText + " and below " + in.hiText
	}
	return "a number from " + in.loText + " to " + in.hiText
}

// number allows the numbers of an interval, before which "0 or " may stand.
func number(interval string) rule {
	rest, orZero := strings.CutPrefix(interval, orZeroPrefix)
	in := parseInterval(rest)
	allowed := in.String()
	if orZero {
		allowed = "0 or " + allowed
	}
	return rule{read: func(n *yaml.Node) (any, *problem) {
		x, ok := parseNumber(n)
		if !ok || !in.contains(x) && !(orZero && x == 0) {
			return nil, wrong(n, allowed)
		}
		return x, nil
	}}
}

// orZeroPrefix, before an interval, allows 0 as well.
const orZeroPrefix = "0 or "

// parseNumber reads a finite number.
func parseNumber(n *yaml.Node) (float64, bool) {
	var x float64
	if !isScalar(n, "!!float") && !isScalar(n, "!!int") || n.Decode(&x) != nil {
		return 0, false
	}
	return x, !math.IsNaN(x) && !math.IsInf(x, 0)
}

// whole allows the whole numbers of a closed interval, and none above what the
// field can hold, also in the form of a decimal fraction or a power (1e3). Before
// the interval may stand "0 or ", which allows 0 too.
func whole(in string, largest int64) rule {
	rest, orZero := strings.CutPrefix(in, orZeroPrefix)
	i := parseInterval(rest)
	lo, hi := int64(i.lo), largest
	if !math.IsInf(i.hi, 1) {
		hi = int64(i.hi)
	}
	return rule{read: func(n *yaml.Node) (any, *problem) {
		v, ok := parseWhole(n)
		if orZero {
			if ok && (v == 0 || v >= lo && v <= hi) {
				return v, nil
			}
			return nil, wrong(n, fmt.Sprintf("0 or a whole number from %d to %d", lo, hi))
		}
		if x, isNumber := parseNumber(n); ok && v > hi || !ok && isNumber && x >= 1<<63 {
			return nil, wrong(n, fmt.Sprintf("at most %d", hi))
		}
		if !ok || v < lo {
			return nil, wrong(n, fmt.Sprintf("a whole number of at least %d", lo))
		}
		return v, nil
	}}
}

func parseWhole(n *yaml.Node) (int64, bool) {
	var v int64
	if isScalar(n, "!!int") && n.Decode(&v) == nil {
		return v, true
	}
	if x, ok := parseNumber(n); ok && x == math.Trunc(x) && math.Abs(x) < 1<<63 {
		return int64(x), true
	}
	return 0, false
}

// oneOf allows what parse takes: some words, or without it the words themselves.
func oneOf(words []string, parse func(string) (any, error)) rule {
	return rule{words: words, read: func(n *yaml.Node) (any, *problem) {
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

func negatives() rule {
	return rule{words: []string{"full"}, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") && n.Value == "full" {
			return Full, nil
		}
		v, ok := parseWhole(n)
		if !ok || v < 1 || v > math.MaxInt32 {
			return nil, wrong(n, fmt.Sprintf("a whole number from 1 to %d, or full", math.MaxInt32))
		}
		return Negatives(v), nil
	}}
}

func zBar() rule {
	return rule{words: []string{"uniform"}, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") && n.Value == "uniform" {
			return Uniform, nil
		}
		x, ok := parseNumber(n)
		if !ok || x <= 0 {
			return nil, wrong(n, "a number above 0, or uniform")
		}
		return ZBar(x), nil
	}}
}

// textOf allows text that parse takes, which allowed describes; hint, unless it is nil,
// may have one for a value.
func textOf(parse func(*yaml.Node) (string, bool), allowed string, hint func(*yaml.Node) string) rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *problem) {
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

func parseText(n *yaml.Node) (string, bool) { return n.Value, isScalar(n, "!!str") }

func parseDevice(n *yaml.Node) (string, bool) {
	return n.Value, isScalar(n, "!!str") && device.CheckName(n.Value) == nil
}

func parseNonEmpty(n *yaml.Node) (string, bool) {
	return n.Value, isScalar(n, "!!str") && n.Value != ""
}

// quoteHint says how to make text of a number, a date or a truth value.
func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !isNull(n) && n.ShortTag() != "!!str" {
		return "quote it: " + text.Quote(n.Value)
	}
	return ""
}
