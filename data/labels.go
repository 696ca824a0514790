package data

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"cne/internal/selection"
	"cne/internal/text"
)

// Labels holds one label for each point. Labels are not used for training, only for plots
// and measures of quality.
type Labels struct {
	// Class has one entry per point: the index of its label in Names.
	Class []int32
	// Names holds the distinct labels: in order of value if all are numbers,
	// in lexicographic order otherwise, or as Arrange has ordered them.
	Names []string
	// Colors has the colour of each class, 0xRRGGBB, or −1 for a default one; nil unless
	// Arrange has set them.
	Colors []int32
	// Value has the number of each point if every label is a number or a date; otherwise it
	// is nil.
	Value []float64
}

// maxExactLabel bounds the magnitudes where float64 holds every integer.
const maxExactLabel = 1 << 53

// LabelValue returns the value of a label that is a number: finite, and not so
// large that different integers would become equal. The value of a date is its year, with
// fractions.
func LabelValue(label string) (float64, bool) {
	if v, err := text.ParseFloat(label, 64); err == nil {
		return v, math.Abs(v) <= maxExactLabel
	}
	days, ok := text.ParseDays(label, text.DateClear)
	return 1970 + days/365.2425, ok && strings.IndexByte(label, ':') != 2 // no time of day
}

// NewLabels finds the classes among the labels of points, one per point. If all labels
// are numbers of at most 2⁵³ in magnitude, and not codes such as 007 and 010, equal numbers
// are one class, however they are written. Its name is the shortest form that occurs; ties go
// to the lexicographically first.
func NewLabels(labels []string) *Labels {
	value := make(map[string]float64) // of each distinct label
	numeric := true
	for _, s := range labels {
		if _, ok := value[s]; !ok {
			v, isNumber := LabelValue(s)
			numeric = numeric && isNumber
			value[strings.Clone(s)] = v
		}
	}
	distinct := slices.Sorted(maps.Keys(value))
	// Codes are digits of one length. Some begin with 0, and most occur more than once.
	numeric = numeric && len(distinct) > 0 && (len(distinct[0]) < 2 || distinct[0][0] != '0' || 2*len(distinct) > len(labels) ||
		slices.ContainsFunc(distinct, func(s string) bool { return len(s) != len(distinct[0]) || strings.Trim(s, "0123456789") != "" }))
	if numeric {
		slices.SortStableFunc(distinct, func(a, b string) int { return cmp.Or(cmp.Compare(value[a], value[b]), len(a)-len(b)) })
	}

	l := new(Labels)
	class := make(map[string]int32, len(distinct))
	for i, s := range distinct {
		if i == 0 || !numeric || value[s] != value[distinct[i-1]] {
			l.Names = append(l.Names, s)
		}
		class[s] = int32(len(l.Names) - 1)
	}
	l.Class = selection.Map(labels, func(s string) int32 { return class[s] })
	if numeric {
		l.Value = selection.Map(labels, func(s string) float64 { return value[s] })
	}
	return l
}

// Arrange puts the classes into the order of a list of names, others after them, and sets
// their colours: colors has 0xRRGGBB of each name, or is nil. It does nothing to nil labels,
// or for no names.
func (l *Labels) Arrange(names []string, colors []int32) {
	if l == nil || len(names) == 0 {
		return
	}
	order := slices.Concat(names, l.Names)
	have := make(map[string]int32, len(l.Names))
	for c, name := range l.Names {
		have[name] = int32(c)
	}
	class := make([]int32, len(l.Names))
	l.Names, l.Colors = nil, nil
	for i, name := range order {
		c, ok := have[name]
		if !ok {
			continue
		}
		delete(have, name)
		class[c] = int32(len(l.Names))
		color := int32(-1)
		if i < len(colors) {
			color = colors[i]
		}
		l.Names, l.Colors = append(l.Names, name), append(l.Colors, color)
	}
	for i, c := range l.Class {
		l.Class[i] = class[c]
	}
}

// Check returns an error wrapping ErrLabels if the number of labels is not n or a class
// has no name. Nil labels are valid.
func (l *Labels) Check(n int) error {
	if l == nil {
		return nil
	}
	if len(l.Class) != n || l.Value != nil && len(l.Value) != n {
		return errorf(ErrLabels, "labels: got %d, want %d, one for each point", len(l.Class), n)
	}
	if i := slices.IndexFunc(l.Class, func(c int32) bool { return c < 0 || int(c) >= len(l.Names) }); i >= 0 {
		return errorf(ErrLabels, "class of point %d (counted from 1): got %d, want 0 to %d", i+1, l.Class[i], len(l.Names)-1)
	}
	return nil
}

// Bounds for Categorical.
const (
	maxNumberedClasses = 50 // distinct numbers
	fewClasses         = 12 // distinct numbers that need not be consecutive
)

// Categorical reports whether the labels are names of classes, such as words, digits or
// the numbers of clusters, not quantities on a scale, such as ages or lengths.
//
// Words are classes. Dates are classes if there are at most 12, each occurring at least
// twice on average. Numbers are classes if all are whole, if each occurs at least twice
// on average, and if there are at most 12 distinct ones. Up to 50 distinct ones are also
// classes if they start at −1, 0 or 1 and cover at least half of the whole numbers in
// their range. Years, ages, and numbers that differ for every point are therefore
// quantities. Nil labels are categorical.
func (l *Labels) Categorical() bool {
	if l == nil || l.Value == nil {
		return true
	}
	distinct := len(l.Names)
	if distinct > maxNumberedClasses || 2*distinct > len(l.Value) {
		return false
	}
	_, err := text.ParseFloat(l.Names[0], 64)
	isDate := err != nil
	for _, v := range l.Value {
		if v != math.Trunc(v) && !isDate {
			return false
		}
	}
	lowest, highest := slices.Min(l.Value), slices.Max(l.Value)
	consecutive := lowest >= -1 && lowest <= 1 && highest-lowest < float64(2*distinct)
	return distinct <= fewClasses || consecutive && !isDate
}

// Dates reports whether some labels are dates.
func (l *Labels) Dates() bool {
	return l != nil && slices.ContainsFunc(l.Names, func(name string) bool { _, ok := text.ParseDays(name, text.DateClear); return ok })
}

// Known returns the points that have a label, and the labels of only these points. A
// label such as NaN, NA or an empty field of a table is missing (see text.IsMissing), and
// infinity among numbers. For a nil *Labels it returns nil, nil.
func (l *Labels) Known() (points []int, known *Labels) {
	if l == nil {
		return nil, nil
	}
	infinite := func(name string) bool { v, err := text.ParseFloat(name, 64); return err == nil && math.IsInf(v, 0) }
	numbers := l.Value == nil && !slices.ContainsFunc(l.Names, func(name string) bool {
		_, ok := LabelValue(name)
		return !ok && !infinite(name) && !text.IsMissing(name)
	})
	missing := selection.Map(l.Names, func(name string) bool { return text.IsMissing(name) || numbers && infinite(name) })
	points = selection.Where(len(l.Class), func(i int) bool { return !missing[l.Class[i]] })
	if len(points) == len(l.Class) {
		return points, l
	}
	known = NewLabels(selection.Pick(l.All(), points))
	known.follow(l)
	return points, known
}

// follow arranges the classes like those of other labels, if they are arranged.
func (l *Labels) follow(other *Labels) {
	if other != nil && other.Colors != nil {
		l.Arrange(other.Names, other.Colors)
	}
}

// OrMissing returns l, or for nil missing labels of n points.
func (l *Labels) OrMissing(n int) *Labels {
	if l != nil {
		return l
	}
	return &Labels{Class: make([]int32, n), Names: []string{""}}
}

// Take returns the labels of some points, with the same classes; nil for nil.
func (l *Labels) Take(rows []int) *Labels {
	if l == nil {
		return nil
	}
	return &Labels{Class: selection.Pick(l.Class, rows), Names: slices.Clone(l.Names), Colors: slices.Clone(l.Colors), Value: selection.Pick(l.Value, rows)}
}

// JoinLabels concatenates the labels of several sets of points; equal labels become one
// class. Nil is skipped.
func JoinLabels(sets ...*Labels) *Labels {
	all := NewLabels(slices.Concat(selection.Map(sets, (*Labels).All)...))
	for _, l := range slices.Backward(sets) { // the first one decides
		all.follow(l)
	}
	return all
}

// All returns the label of each point.
func (l *Labels) All() []string {
	if l == nil {
		return nil
	}
	return selection.Pick(l.Names, l.Class)
}

// ClassNames returns the names of the classes. It returns nil if the labels are
// quantities or names of the points themselves.
func (l *Labels) ClassNames() []string {
	if l == nil || !l.Categorical() {
		return nil
	}
	has := selection.Set(l.Class)
	classes := selection.Where(len(l.Names), func(c int32) bool { return has[c] })
	if 2*len(classes) > len(l.Class) {
		return nil
	}
	return selection.Pick(l.Names, classes)
}
