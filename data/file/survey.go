package file

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/text"
)

// readTable is read, but looks at whole tables where their first rows do not suffice.
func readTable(ctx context.Context, list sources, o Options, wanted choice) (*data.Dataset, error) {
	again := list.again()
	if len(o.Categories) > 0 && !again {
		return nil, errorf(data.ErrUnsupported, "%s: categories: got a pipe, want a file, which can be read again", list[0].path)
	}
	surveyed := again && o.Codings == nil && (o.DropText || len(o.Categories) > 0)
	if surveyed {
		if err := survey(ctx, list, &o); err != nil {
			return nil, err
		}
	}
	ds, err := read(ctx, list, o, wanted)
	e := new(TextError)
	if !surveyed && again && (errors.As(err, new(fieldError)) || errors.As(err, &e)) {
		if fault := survey(ctx, list, &o); errors.As(fault, &e) {
			return nil, fault
		} else if fault != nil { // a later line has another fault
			return nil, err
		}
		ds, err = read(ctx, list, o, wanted)
	}
	if o.DropText && again && errors.As(err, &e) { // of columns without values, which are not text
		for _, c := range e.Columns {
			o.Drop = append(slices.Clip(o.Drop), c.Name)
		}
		ds, err = read(ctx, list, o, wanted)
	}
	return ds, err
}

// survey reads whole tables to learn how their columns become numbers, and sets the
// Codings of the options. It returns a *TextError if columns do not, unless DropText is
// set and others do.
func survey(ctx context.Context, list sources, o *Options) (err error) {
	defer kind.Catch(&err)
	var l layout
	columns, missing, categories := make(map[int]*inspector), make(map[int]bool), []int(nil)
	for _, from := range list {
		kind.Check(withTable(ctx, from.path, o, func(t table) {
			if t == nil {
				return
			}
			names, n := t.fields()
			roles := t.rolesFor(o)
			if l.roles == nil {
				l.names, l.roles = names, roles
				if r, ok := t.(*textReader); ok {
					l.top, l.heading, l.unsure = r.top, r.heading, r.unsure
				}
			}
			if n != len(l.roles) {
				return // reading returns an error
			}
			dates := indices(o.Dates, n, names)
			categories = indices(o.Categories, n, names)
			var scanned []int
			for i, r := range roles {
				s := t.inspector(i)
				if s == nil && slices.Contains(categories, i) {
					s = new(inspector)
				}
				if p, ok := t.(*parquetReader); ok && p.file.Columns[i].Null {
					missing[i] = true
				}
				if r != roleData || s == nil {
					continue
				}
				if columns[i] == nil {
					columns[i] = s
				}
				if t.check(i) == nil {
					scanned = append(scanned, i)
				}
			}
			t.scan(scanned, func(where func() string, fields []string) error {
				for k, i := range scanned {
					if fields[k] == "" || !slices.Contains(categories, i) && text.IsMissingNumber(fields[k]) {
						missing[i] = true
					} else {
						columns[i].add(fields[k], where, slices.Contains(dates, i))
					}
				}
				return ctx.Err()
			})
		}))
	}
	if l.roles == nil {
		return nil
	}
	texts := l.encode(columns, o, true)
	for _, i := range categories {
		c, n := &l.codings[i], len(columns[i].values)
		if n == 0 || n > mostValues {
			return named(list[0].path, errorf(data.ErrOption, "column %s: got %d different values or more, want 1 to %d of a category",
				text.Quote(l.nameOf(i)), n, mostValues))
		}
		c.Coding = data.Coding{Column: l.nameOf(i), Kind: data.CodingCategory, Values: slices.Sorted(maps.Keys(columns[i].values))}
		delete(texts, i)
	}
	e := new(TextError)
	err = l.textError(texts)
	if errors.As(err, &e) {
		if slices.Contains(l.roles, roleLabel) && e.Numbers {
			e.Columns = slices.DeleteFunc(e.Columns, TextColumn.areWords)
		}
		for i := range missing {
			e.Missing = e.Missing || l.roles[i] == roleData && l.codings[i].Kind != data.CodingText
			k := slices.IndexFunc(e.Columns, func(c TextColumn) bool { return c.Name == l.nameOf(i) })
			if k >= 0 {
				e.Columns[k].Missing = true
			}
		}
	}
	if err != nil && (!e.Numbers || !o.DropText && len(e.Columns) > 0 || e.WordLine() != "") {
		return named(list[0].path, err)
	}
	o.Codings = []data.Coding{}
	for _, c := range l.codings {
		if c.Kind != "" {
			o.Codings = append(o.Codings, c.Coding)
		}
	}
	return nil
}

// noValues says what a column is that has no values.
const noValues = "no values"

// checkEmpty fails with a *TextError if columns of a table have no values, and with an error
// wrapping data.ErrFormat if columns of an array have none and values may be missing, as another
// error has the row otherwise.
func (h *head) checkEmpty(m *data.Matrix, allowed bool) {
	if m == nil || m.CSR != nil {
		return
	}
	if _, _, _, missing := m.FirstNotFinite(); !missing {
		return
	}
	e, isTable := new(TextError), len(h.sources) == m.D // not the items of lists
	for j, mean := range m.FiniteMeans() {
		if e.Numbers = e.Numbers || mean == mean; mean == mean {
			continue
		}
		c := TextColumn{Name: strconv.Itoa(j + 1), Is: noValues}
		if isTable {
			c.Name = h.sources[j]
		}
		if !slices.ContainsFunc(e.Columns, func(other TextColumn) bool { return other.Name == c.Name }) {
			e.Columns = append(e.Columns, c)
		}
	}
	switch {
	case e.Columns == nil:
	case isTable:
		kind.Check(h.named(e))
	default:
		h.need(!allowed, data.ErrFormat, "got no values in column %s; leave it out", e.Columns[0].Name)
	}
}
