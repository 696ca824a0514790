package file

import (
	"slices"
	"strings"
	"unicode"

	"cne/internal/selection"
	"cne/internal/text"
)

// levels returns the names of columns that pandas writes on two lines, joined by _, and the number
// of lines of the header: two, and one with the names of the index. The second line tells columns
// apart whose names in the first repeat. It has words above numbers, or the same below each name,
// or begins as a point does not. sure says that the first line is a header; maybe reports whether
// it and the second may be one although names is nil.
func (t *textReader) levels(sure bool) (names []string, lines int, maybe bool) {
	if len(t.first) < 3 || slices.ContainsFunc(t.first[:3], func(row []string) bool { return len(row) != len(t.first[0]) }) {
		return nil, 0, false
	}
	above, level, below := fieldNames(t.first[0]), fieldNames(t.first[1]), t.first[2:]
	index := namesOnly(below[0])
	below = below[min(1, index):]
	isOwn := !slices.Contains(above[1:], above[0]) // not one of a group
	groups, all := groupsOf(above, level, isOwn)
	if len(groups) == len(all) || !allDiffer(all) {
		return nil, 0, false
	}
	isWord := func(field string) bool {
		return strings.ContainsFunc(field, unicode.IsLetter) && !isPlain(field) && !text.IsMissingNumber(field) && !t.na.has(field)
	}
	none := func(i int, is func(field string) bool) bool {
		return !slices.ContainsFunc(below, func(row []string) bool { return i < len(row) && is(strings.TrimSpace(row[i])) })
	}
	areWords := true
	for i, name := range level {
		isIn := name != "" && (i > 0 || !isOwn)
		areWords = areWords && (!isIn || isWord(name) && !none(i, isPlain) && none(i, isWord))
	}
	isEmpty := func(field string) bool { return field == "" }
	begins := isEmpty(above[0]) && isEmpty(level[0]) && none(0, isEmpty) ||
		isOwn && isWord(level[0]) && !none(0, isPlain) && none(0, isWord)
	isNew := len(below) >= fewestBelow && slices.ContainsFunc(selection.UpTo[int](len(level)), func(i int) bool {
		return none(i, func(field string) bool { return field == level[i] })
	})
	alike := areAlike(groups) && (isNew || !slices.ContainsFunc(below, func(row []string) bool {
		groups, _ := groupsOf(above, row[:min(len(row), len(above))], isOwn)
		return areAlike(groups)
	}))
	if counted, _ := counts(t.first[1], below); !areWords && !begins && index == 0 && !counted {
		if isNumbers := !slices.ContainsFunc(above, isWord); !alike || isNumbers && !sure {
			return nil, 0, alike
		}
	}
	names = slices.Clone(above)
	for i, name := range level {
		names[i] = strings.Trim(names[i]+"_"+name, "_")
	}
	if index > 0 {
		copy(names, fieldNames(t.first[2])[:index])
		return names, 3, false
	}
	if rows := (&textReader{first: below, quoted: t.quoted[2:]}); isOwn && level[0] != "" && rows.isIndex(0) {
		names[0] = "" // those of the levels
	}
	return names, 2, false
}

// groupsOf returns the fields below each name, and these with the names, without empty fields and,
// if own, the first column.
func groupsOf(names, fields []string, own bool) (groups map[string][]string, all []string) {
	groups = make(map[string][]string)
	for i := selection.If(own, 1, 0); i < len(fields); i++ {
		if field := strings.TrimSpace(fields[i]); field != "" {
			groups[names[i]] = append(groups[names[i]], field)
			all = append(all, names[i]+"\n"+field)
		}
	}
	return groups, all
}

// areAlike reports whether there are the same fields, several, in each of several groups.
func areAlike(groups map[string][]string) bool {
	var first []string
	for _, group := range groups {
		if first == nil {
			first = group
		}
		if !slices.Equal(group, first) || len(group) < 2 || !allDiffer(group) {
			return false
		}
	}
	return len(groups) > 1
}

// namesOnly returns the number of names at the beginning of a row with nothing else; 0 for another.
func namesOnly(row []string) (n int) {
	isEmpty := func(field string) bool { return strings.TrimSpace(field) == "" }
	n = max(0, slices.IndexFunc(row, isEmpty))
	if len(row) < n+2 || slices.ContainsFunc(row[:n], isPlain) || strings.TrimSpace(strings.Join(row[n:], "")) != "" {
		return 0
	}
	return n
}
