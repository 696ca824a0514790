package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Difference is a key of which two configurations have different values.
type Difference struct {
	Key           string
	First, Second string // the values, each as a line of YAML
	// MayChange tells whether a run that was begun with the first value may go
	// on with the second.
	MayChange bool
}

// Compare returns the differences of two configurations, in the order of the
// keys.
func (s *Schema[C]) Compare(first, second *C) []Difference {
	var list []Difference
	for _, k := range s.keys {
		if a, b := value(first, k), value(second, k); !reflect.DeepEqual(a, b) {
			list = append(list, Difference{k.name, inline(a), inline(b), s.changeable(k.name, a, b)})
		}
	}
	return list
}

// Violations lists in words, such as "train.lr 1.0, not 2.0 (--set train.lr)",
// what a run that was begun with one configuration must not go on with in
// another. The origins are those of the latter.
func (s *Schema[C]) Violations(begun, now *C, origins Origins) []string {
	var list []string
	for _, d := range s.Compare(begun, now) {
		if !d.MayChange {
			list = append(list, fmt.Sprintf("%s %s, not %s (%s)", d.Key, d.First, d.Second, origins[d.Key]))
		}
	}
	return list
}

// CannotExtend says why a run that was begun with one configuration cannot go on
// with another of which there are no Violations; "" if it can.
func (s *Schema[C]) CannotExtend(begun, now *C) string { return s.cannotExtend(begun, now) }

// changeable tells whether the value of a key may become another. Files may
// have moved, but a share of the points is not a file; epochs may be added.
func (s *Schema[C]) changeable(key string, before, now any) bool {
	section, _, _ := strings.Cut(key, ".")
	switch key {
	case "train.epochs":
		a, okA := before.(int)
		b, okB := now.(int)
		return okA && okB && b > a
	case "graph.file":
		return before != nil && now != nil
	case "data.holdout":
		a, okA := before.(Holdout)
		b, okB := now.(Holdout)
		return okA && okB && a.Share == b.Share
	}
	return slices.Contains(s.mayChange, key) || slices.Contains(s.mayChange, section)
}
