package data

import (
	"slices"

	"cne/internal/text"
)

// MissingColumns returns the names of wanted that names lacks, nil if it has all.
func MissingColumns(names, wanted []string) []string {
	have := make(map[string]bool, len(names))
	for _, name := range names {
		have[name] = true
	}
	var none []string
	for _, name := range wanted {
		if !have[name] {
			none = append(none, name)
		}
	}
	return none
}

// MatchColumns finds columns by name: from has for each that is wanted the index of the one
// that has its name, and left the names of those that are not wanted. A name that is
// missing, or that several columns share, gives ErrShape.
func MatchColumns(wanted, names []string) (from []int, left []string, err error) {
	if none := MissingColumns(names, wanted); none != nil {
		return nil, nil, errorf(ErrShape, "of the %d columns that were trained on, %d are missing: %s; there are %s: give points of the same kind, or the names that the columns had",
			len(wanted), len(none), text.Few(none, text.Quote), text.Few(names, text.Quote))
	}
	at := make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := at[name]; twice && slices.Contains(wanted, name) {
			return nil, nil, errorf(ErrShape, "several columns are called %s, which was trained on, so that the columns cannot be told apart; give columns names of their own, or in the order of training", text.Quote(name))
		}
		at[name] = i
	}
	for _, name := range wanted {
		i, ok := at[name]
		if !ok {
			return nil, nil, errorf(ErrShape, "several of the columns that were trained on are called %s, so that they cannot be told apart; give columns in the order of training", text.Quote(name))
		}
		delete(at, name)
		from = append(from, i)
	}
	for _, name := range names {
		if _, unwanted := at[name]; unwanted {
			left = append(left, name)
		}
	}
	return from, left, nil
}

// Select returns the points with the columns of these names, in their order, and
// the names of the columns that it leaves out. Columns without names, or for none
// that are wanted, are taken as they are, and so m itself is returned; else values
// are copied. A name that is missing, or that several columns share, gives ErrShape.
func (m *Matrix) Select(columns []string) (selected *Matrix, left []string, err error) {
	if len(columns) == 0 || m.Columns == nil || slices.Equal(m.Columns, columns) {
		return m, nil, nil
	}
	if err := m.Check(); err != nil {
		return nil, nil, err
	}
	from, left, err := MatchColumns(columns, m.Columns)
	if err != nil {
		return nil, nil, err
	}
	if m.CSR != nil {
		return &Matrix{N: m.N, D: len(from), CSR: m.CSR.SelectColumns(from, m.D), Columns: slices.Clone(columns)}, left, nil
	}
	selected = NewMatrix(m.N, len(from))
	selected.Columns = slices.Clone(columns)
	if m.Offset != nil {
		for _, j := range from {
			selected.Offset = append(selected.Offset, m.Offset[j])
		}
	}
	for i := range m.N {
		row := m.Row(i)
		for k, j := range from {
			selected.X[i*selected.D+k] = row[j]
		}
	}
	return selected, left, nil
}
