package points

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/data/file"
	"cne/internal/text"
)

// fewestNumbered and fewestAscending are the least numbers of points where a column that
// counts them, without or with gaps, is no coincidence.
const fewestNumbered, fewestAscending = 5, 20

// warnOfRowNumbers warns of columns that count the points: whole numbers that ascend, most of
// them different, or that are nearly all numbers of a range, in any order.
func (in *Inputs) warnOfRowNumbers(set *data.Dataset) {
	m := set.Points
	if m == nil || m.CSR != nil || m.N < fewestNumbered {
		return
	}
	for j, name := range m.Columns {
		low, high, last, ascending, changes, i := m.At(0, j), m.At(0, j), m.At(0, j), true, 0, 0
		for ; i < m.N; i++ {
			v := m.At(i, j)
			if v != math.Trunc(v) {
				break
			}
			if v != last {
				changes++
			}
			low, high, ascending, last = min(low, v), max(high, v), ascending && v >= last, v
		}
		if i < m.N {
			continue
		}
		seen, count := make(map[float64]bool), 0
		for i := 0; i < m.N && high-low < 1.25*float64(m.N); i++ {
			seen[m.At(i, j)] = true
		}
		count = len(seen)
		gapless := changes == m.N-1 && ascending && high-low == float64(m.N-1)
		if gapless || m.N >= fewestAscending && (ascending && 2*changes >= m.N || 10*count >= 9*m.N) {
			in.log.Warn(fmt.Sprintf("column %s counts the rows and is part of all distances; %s leaves it out", text.Quote(name), setting("data.drop", name)))
		}
	}
}

// advise returns flags for columns that are not numbers: the one with the fewest values is
// the label, others with few are categories, signs among numbers mean missing values.
func (in *Inputs) advise(columns []file.TextColumn) (advice []string) {
	d := &in.Config.Data
	label := -1
	for i, c := range columns {
		if d.LabelColumn == nil && len(d.Labels) == 0 && !c.Number && !c.IsDate() && c.Values > 1 && (label < 0 || c.Values < columns[label].Values) {
			label = i
		}
	}
	lists := []struct {
		key       string
		set, more []string
	}{{"data.categories", d.Categories, nil}, {"data.dates", d.Dates, nil}, {"data.na", d.NA, nil}, {"data.drop", d.Drop, nil}}
	for i, c := range columns {
		of, items := &lists[3], []string{c.Name}
		switch {
		case i == label:
			advice = append(advice, setting("data.label_column", c.Name))
			continue
		case c.Number && len(c.Fields) <= mostSigns:
			of, items = &lists[2], nil
			for _, f := range c.Fields {
				if !slices.Contains(of.more, f.Text) {
					items = append(items, f.Text)
				}
			}
		case c.IsDate():
			of = &lists[1]
		case !c.Number && c.Values > 1 && c.Values <= mostCategories:
			of = &lists[0]
		}
		of.more = append(of.more, items...)
	}
	for _, l := range lists {
		if len(l.more) > 0 {
			advice = append(advice, setting(l.key, slices.Concat(l.set, l.more)...))
		}
	}
	return advice
}

// mostCategories is the largest number of values of a column that is suggested as a
// category, and mostSigns that of words among numbers that are suggested as missing values.
const mostCategories, mostSigns = 20, 2

// setting returns the flag that sets a key, for a shell. Several values, or one that is not
// a plain item, are a list.
func setting(key string, values ...string) string {
	value := strings.Join(values, ",")
	if strings.ContainsAny(strings.Join(values, ""), ",\"[]?*&!|>%@`#:") || slices.Contains(values, "-") {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = strconv.Quote(v)
		}
		return "--set '" + key + "=[" + strings.Join(quoted, ",") + "]'"
	}
	s := key + "=" + text.Escape(value)
	if strings.ContainsAny(s, " ()[]{}*?&|;<>$!#'\"\\`~") {
		s = strconv.Quote(s)
	}
	return "--set " + s
}

// explainTable adds to an error of reading a table the keys that help. drops reports
// whether points may be left out.
func (in *Inputs) explainTable(err error, drops bool) error {
	d, table, empty := &in.Config.Data, new(file.TextError), new(file.EmptyError)
	switch {
	case errors.As(err, &table):
		advice, fill := in.advise(table.Columns), " --set data.missing=mean"
		lacking := d.Missing == "refuse" && (table.Missing || slices.ContainsFunc(advice, func(s string) bool { return strings.Contains(s, "data.na=") }))
		other := map[bool]string{true: fill}[d.Missing == "refuse" && table.Missing]
		return fmt.Errorf("%w; for instance %s%s, or --drop-text%s", err, strings.Join(advice, " "), map[bool]string{true: fill}[lacking], other)
	case errors.As(err, &empty):
		if !empty.Table || len(d.Columns) > 0 {
			return fmt.Errorf("%w; leave it out", err)
		}
		return fmt.Errorf("%w; %s, or --drop-text", err, setting("data.drop", slices.Concat(d.Drop, empty.Columns)...))
	case errors.Is(err, data.ErrNotFinite) && d.Missing != "mean":
		remedy := "--set data.missing=mean fills in the means of the columns"
		if drops && d.Missing == "refuse" {
			remedy = "--set data.missing=drop leaves such rows out, mean fills in the means of the columns"
		}
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}
