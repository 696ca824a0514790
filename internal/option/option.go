// Package option reads the tags of structs of options, which say how to read
// configurations and check values, and has the errors of these checks.
//
// The tag key holds the name of a field in a configuration, such as "train.clip". After
// it, ",null" allows null, and the field is then zero. A pointer also allows null, unless
// ",given" says that a configuration always gives the value. The fields of a struct have
// its key and a full stop before their names, or nothing with ",squash"; with ",leaf" a
// struct has no fields of its own. A field with ",library" is checked, but configurations
// do not have it. The other tags are
//
//	in:"[1,inf)"     the range of a number, or of the numbers of a list
//	words:"a=-1"     words that stand for numbers outside the range
//	words:"no yes"   the words that a string may be; of a bool, those for false and true
//	item:"phase"     what an entry of a list of structs is called
package option

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cne/internal/text"
)

// A word is a value of an enumeration.
type word interface{ Words() []string }

// A Field is a field with a key.
type Field struct {
	Key   string
	Null  bool // the key may be null, and the field is then zero
	Only  bool // only the library has the field
	Type  reflect.Type
	Tag   reflect.StructTag
	Index []int // as reflect.Value.FieldByIndex takes it
}

// Fields returns the fields of a struct that have keys, and of the structs in it, in their
// order.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("key"), ",")
		switch {
		case name == "" && option == "":
			continue
		case f.Type.Kind() != reflect.Struct || option == "leaf":
			fields = append(fields, Field{name, option == "null" || f.Type.Kind() == reflect.Pointer && option != "given", option == "library", f.Type, f.Tag, []int{i}})
			continue
		case option != "squash":
			name += "."
		}
		for _, x := range Fields(f.Type) {
			x.Key, x.Index = name+x.Key, append([]int{i}, x.Index...)
			fields = append(fields, x)
		}
	}
	return fields
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
		if e := check(x, f.Tag); e != nil {
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
func check(x reflect.Value, tag reflect.StructTag) *Error {
	if w, ok := x.Interface().(word); ok {
		valid := slices.Contains(w.Words(), x.String())
		if m, ok := w.(encoding.TextMarshaler); ok {
			_, err := m.MarshalText()
			valid = err == nil
		}
		if !valid {
			return &Error{Got: fmt.Sprint(w), Want: text.Enumerate(w.Words())}
		}
		return nil
	}
	if words := tag.Get("words"); x.Kind() == reflect.String && words != "" {
		if list := strings.Fields(words); !slices.Contains(list, x.String()) {
			return &Error{Got: strconv.Quote(x.String()), Want: text.Enumerate(list)}
		}
		return nil
	}
	number, isNumber := 0., true
	switch x.Kind() {
	case reflect.Pointer:
		return check(x.Elem(), tag)
	case reflect.Slice, reflect.Array:
		for i := range x.Len() {
			item := x.Index(i)
			if item.Kind() != reflect.Struct {
				if e := check(item, tag); e != nil {
					return e
				}
			} else if e, ok := Check(item.Interface()).(*Error); ok {
				e.Item = fmt.Sprintf("%s %d", tag.Get("item"), i+1)
				return e
			}
		}
		return nil
	case reflect.Float32, reflect.Float64:
		number = x.Float()
	case reflect.Int:
		number = float64(x.Int())
	default:
		isNumber = false
	}
	in, words := tag.Get("in"), WordValues(tag.Get("words"))
	if !isNumber || in == "" && isFinite(number) {
		return nil
	}
	r := ParseRange(in)
	for _, w := range words {
		if number == w.Value {
			return nil
		}
	}
	if r.Contains(number) && isFinite(number) {
		return nil
	}
	want := r.Text(x.Kind() == reflect.Int)
	for _, w := range words {
		want += fmt.Sprintf(" or %v (%s)", w.Value, w.Word)
	}
	return &Error{Got: fmt.Sprint(x.Interface()), Want: want}
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// A WordValue is a word that stands for a number.
type WordValue struct {
	Word  string
	Value float64
}

// WordValues returns the words of a tag that stand for numbers.
func WordValues(tag string) []WordValue {
	var list []WordValue
	for s := range strings.FieldsSeq(tag) {
		word, number, ok := strings.Cut(s, "=")
		if v, err := strconv.ParseFloat(number, 64); ok && err == nil {
			list = append(list, WordValue{word, v})
		}
	}
	return list
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

// Contains reports whether x is in the range.
func (r Range) Contains(x float64) bool {
	return r.orZero && x == 0 || (x > r.Low || x == r.Low && !r.openLo) && (x < r.High || x == r.High && !r.openHi)
}

// Text describes the numbers of the range; only whole ones if whole is set.
func (r Range) Text(whole bool) string {
	s := "a number"
	if whole {
		s = "a whole number"
	}
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
