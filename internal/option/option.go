// Package option reads the tags of structs of options, which say how to read
// configurations and check values, and has the errors of these checks.
//
// The tag key holds the name of a field in a configuration, such as "train.clip". After
// it, ",null" allows null, and the field is then zero. A pointer also allows null, unless
// ",given" says that a configuration always gives the value. The fields of a struct have
// its key and a full stop before their names, or nothing with ",squash"; with ",leaf" or
// ",null" a struct has no fields of its own. A field with ",library" is checked, but configurations
// do not have it. The other tags are
//
//	in:"[1,inf)"     the range of a number, or of the numbers of a list
//	words:"a=-1"     words that stand for numbers outside the range
//	words:"no yes"   the words that a string may be; of a bool, those for false and true
//	item:"phase"     what an entry of a list of structs is called
//	as:"paths"       what a text is, for package configs
package option

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cne/internal/selection"
	"cne/internal/text"
)

// A word is a value of an enumeration.
type word interface{ Words() []string }

// A Field is a field with a key.
type Field struct {
	Key    string
	Null   bool // the key may be null, and the field is then zero
	Only   bool // only the library has the field
	Type   reflect.Type
	As     string // the tag as
	Item   string // the tag item
	Index  []int  // as reflect.Value.FieldByIndex takes it
	Range  Range  // of a number, or of the numbers of a list
	Values []WordValue
	// Words are the words that the value may be. Of an enumeration, those of its tag come
	// first.
	Words []string
	// Fields are the fields of the structs of a list.
	Fields []Field
}

// known has the fields of the structs that were asked for.
var known sync.Map

// Fields returns the fields of a struct that have keys, and of the structs in it, in their
// order. They must not be changed. It panics if a tag is wrong.
func Fields(t reflect.Type) []Field {
	if fields, ok := known.Load(t); ok {
		return fields.([]Field)
	}
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("key"), ",")
		switch {
		case name == "" && option == "":
			continue
		case f.Type.Kind() != reflect.Struct || option == "leaf" || option == "null":
			fields = append(fields, newField(name, option, f))
			continue
		case option != "squash":
			name += "."
		}
		for _, x := range Fields(f.Type) {
			x.Key, x.Index = name+x.Key, append([]int{i}, x.Index...)
			fields = append(fields, x)
		}
	}
	known.Store(t, fields)
	return fields
}

// newField reads the tags of a field.
func newField(name, option string, f reflect.StructField) Field {
	pointer := f.Type.Kind() == reflect.Pointer
	x := Field{
		Key: name, Null: option == "null" || pointer && option != "given", Only: option == "library", Type: f.Type,
		As: f.Tag.Get("as"), Item: f.Tag.Get("item"), Index: f.Index, Range: ParseRange(f.Tag.Get("in")),
	}
	for s := range strings.FieldsSeq(f.Tag.Get("words")) {
		s, number, isNumber := strings.Cut(s, "=")
		x.Words = append(x.Words, s)
		if v, err := strconv.ParseFloat(number, 64); isNumber && err == nil {
			x.Values = append(x.Values, WordValue{s, v})
		}
	}
	if pointer {
		x.Type = f.Type.Elem()
	}
	if w, ok := reflect.Zero(x.Type).Interface().(word); ok {
		for _, s := range w.Words() {
			if !slices.Contains(x.Words, s) {
				x.Words = append(x.Words, s)
			}
		}
	} else if x.Type.Kind() == reflect.Slice && x.Type.Elem().Kind() == reflect.Struct {
		x.Fields = Fields(x.Type.Elem())
	}
	return x
}

// Check returns an *Error for the first value of a struct that is not in the range of its
// field, or in its enumeration. A field that is 0, nil or empty stands for its default, and is in range.
func Check(options any) error {
	v := reflect.Indirect(reflect.ValueOf(options))
	for _, f := range Fields(v.Type()) {
		x := v.FieldByIndex(f.Index)
		if x.IsZero() {
			continue
		}
		if e := f.check(reflect.Indirect(x)); e != nil {
			if e.Key == "" {
				e.Key = f.Key
			} else {
				e.List = f.Key
			}
			return e
		}
	}
	return nil
}

// check is Check of a single value.
func (f *Field) check(x reflect.Value) *Error {
	if w, ok := x.Interface().(word); ok {
		valid := slices.Contains(w.Words(), x.String())
		if m, ok := w.(encoding.TextMarshaler); ok {
			_, err := m.MarshalText()
			valid = err == nil
		}
		if valid {
			return nil
		}
		return &Error{Got: fmt.Sprint(w), Want: text.Enumerate(w.Words())}
	}
	number, whole := 0., false
	switch x.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range x.Len() {
			item := x.Index(i)
			if f.Fields == nil {
				if e := f.check(item); e != nil {
					return e
				}
			} else if e, ok := Check(item.Interface()).(*Error); ok {
				e.Item = fmt.Sprintf("%s %d", f.Item, i+1)
				return e
			}
		}
		return nil
	case reflect.Float32, reflect.Float64:
		number = x.Float()
	case reflect.Int:
		number, whole = float64(x.Int()), true
	case reflect.String:
		if f.Words != nil && !slices.Contains(f.Words, x.String()) {
			return &Error{Got: strconv.Quote(x.String()), Want: text.Enumerate(f.Words)}
		}
		return nil
	default:
		return nil
	}
	if f.Range.Contains(number) || slices.ContainsFunc(f.Values, func(w WordValue) bool { return w.Value == number }) {
		return nil
	}
	want := f.Range.Text(whole)
	for _, w := range f.Values {
		want += fmt.Sprintf(" or %v (%s)", w.Value, w.Word)
	}
	return &Error{Got: fmt.Sprint(x.Interface()), Want: want}
}

// Want describes the numbers that a configuration may give the field, or an item of it.
func (f *Field) Want() string {
	t := f.Type
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	want := f.Range.Text(t.Kind() != reflect.Float64)
	for _, w := range f.Values {
		want += ", or " + w.Word
	}
	return want
}

// A WordValue is a word that stands for a number.
type WordValue struct {
	Word  string
	Value float64
}

// A Range is a range of numbers.
type Range struct {
	Low, High      float64 // may be infinite
	openLo, openHi bool    // whether these do not belong to it
	orZero         bool    // whether 0 does in any case
	loText, hiText string  // as they were written
}

// ParseRange reads an interval as mathematicians write it, such as "[0,1)". "0 or " may
// stand before it; "" is all real numbers. It panics if s is none of these.
func ParseRange(s string) Range {
	rest, orZero := strings.CutPrefix(s, "0 or ")
	if rest == "" {
		rest = "(-inf,inf)"
	}
	lo, hi, _ := strings.Cut(rest[1:len(rest)-1], ",")
	r := Range{openLo: rest[0] == '(', openHi: rest[len(rest)-1] == ')', orZero: orZero, loText: lo, hiText: hi}
	var err1, err2 error
	r.Low, err1 = strconv.ParseFloat(lo, 64)
	r.High, err2 = strconv.ParseFloat(hi, 64)
	if err1 != nil || err2 != nil || r.Low > r.High {
		panic(fmt.Sprintf("option: got %q, want a range", s))
	}
	return r
}

// Contains reports whether x is finite and in the range.
func (r Range) Contains(x float64) bool {
	return !math.IsInf(x, 0) && (r.orZero && x == 0 || (x > r.Low || x == r.Low && !r.openLo) && (x < r.High || x == r.High && !r.openHi))
}

// Text describes the numbers of the range; only whole ones if whole is set.
func (r Range) Text(whole bool) string {
	s := selection.If(whole, "a whole number", "a number")
	if r.orZero {
		s = "0 or " + s
	}
	switch {
	case math.IsInf(r.Low, -1):
		return s
	case math.IsInf(r.High, 1) && r.openLo:
		return s + " above " + r.loText
	case math.IsInf(r.High, 1):
		return s + " of at least " + r.loText
	case r.openLo:
		return s + " above " + r.loText + " and at most " + r.hiText
	case r.openHi:
		return s + " of at least " + r.loText + " and below " + r.hiText
	}
	return s + " from " + r.loText + " to " + r.hiText
}

// An Error is about the value of an option.
type Error struct {
	// Key is the option's name in a configuration, such as "train.warm_up"; "" if the
	// fault has none.
	Key string
	// Item, if not "", is the entry of a list that has the option, such as "phase 2", and
	// List is the name of the list.
	Item, List string
	// Got is the value, and Want what is allowed, in words.
	Got, Want string
	// Other, if not "", is the option that does not allow the value, and OtherGot its value.
	Other, OtherGot string
	// Err is the error of the package whose option it is; errors.Is finds it.
	Err error
}

// Error returns the name of the option, what it is and what is allowed.
func (e *Error) Error() string { return e.Name() + e.Problem("", "") }

// Name returns the name of the option with the item that has it.
func (e *Error) Name() string {
	name := e.Key
	if e.Item != "" {
		name = name[strings.LastIndexByte(name, '.')+1:] + " of " + e.Item
	}
	if e.List != "" {
		name = e.List + ": " + name
	}
	if name != "" {
		name += ": "
	}
	return name
}

// OtherName returns the name of the other option. It is relative to the item if items
// have this option.
func (e *Error) OtherName() string {
	if e.Item != "" && (e.Other == "train.epochs" || e.Other == "loss.s") {
		return e.Other[strings.LastIndexByte(e.Other, '.')+1:]
	}
	return e.Other
}

// Problem returns the message without the name. The notes follow the value and the other
// option's value.
func (e *Error) Problem(note, otherNote string) string {
	s := "got " + e.Got + note
	if e.Other != "" {
		s += " with " + e.OtherName() + " " + e.OtherGot + otherNote
	}
	return s + ", want " + e.Want
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// InBoth returns the error of check for high if check also fails for low, for the same
// reason: it then fails for all numbers between.
func InBoth(check func(n int) error, low, high int) error {
	last := check(high)
	if last == nil || low == high {
		return last
	}
	a, b := new(Error), new(Error)
	if first := check(low); first == nil || errors.As(first, &a) && errors.As(last, &b) &&
		(a.Key != b.Key || a.Item != b.Item || a.Want != b.Want) {
		return nil
	}
	return last
}
