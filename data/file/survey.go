package file

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"cne/data"
	"cne/internal/text"
)

// readTable is read, but looks at whole tables where their first rows do not suffice.
func readTable(ctx context.Context, list sources, o Options, wanted *choice) (*data.Dataset, error) {
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
	if !surveyed && again && (errors.As(err, new(fieldError)) || errors.As(err, new(*TextError))) {
		if fault := survey(ctx, list, &o); fault != nil {
			e := new(TextError)
			switch isField := errors.As(err, new(fieldError)); {
			case !errors.As(fault, &e): // a later line has another fault
				return nil, err
			case isField && len(e.Columns) == 1 && e.Columns[0].Fields != nil:
				e.only, fault = err, e
			}
			return nil, fault
		}
		ds, err = read(ctx, list, o, wanted)
	}
	if empty := new(EmptyError); errors.As(err, &empty) && o.DropText && again {
		if o.Log != nil {
			o.Log.Info("columns without values are left out", "file", list[0].path, "columns", text.Few(empty.Columns, text.Printable))
		}
		o.Drop = slices.Concat(o.Drop, empty.Columns)
		ds, err = read(ctx, list, o, wanted)
	}
	return ds, err
}

// survey reads whole tables to learn how their columns become numbers, and sets the
// Codings of the options. It returns a *TextError if columns do not, unless DropText is
// set and others do.
func survey(ctx context.Context, list sources, o *Options) error {
	var l layout
	columns, missing, categories := make(map[int]*inspector), make(map[int]bool), []int(nil)
	for _, from := range list {
		err := withTable(ctx, from.path, o, func(t table) error {
			if t == nil {
				return nil
			}
			names, n := t.fields()
			roles, err := t.rolesFor(o)
			if err != nil {
				return err
			}
			if l.roles == nil {
				l.names, l.roles = names, roles
			}
			if n != len(l.roles) {
				return nil // reading returns an error
			}
			dates, err := indices(o.Dates, n, names)
			if err == nil {
				categories, err = indices(o.Categories, n, names)
			}
			if err != nil {
				return err
			}
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
			return t.scan(scanned, func(where func() string, fields []string) error {
				for k, i := range scanned {
					if fields[k] == "" || !slices.Contains(categories, i) && text.IsMissingNumber(fields[k]) {
						missing[i] = true
					} else {
						columns[i].add(fields[k], where, slices.Contains(dates, i))
					}
				}
				return ctx.Err()
			})
		})
		if err != nil {
			return err
		}
	}
	if l.roles == nil {
		return nil
	}
	texts := l.encode(columns, o, true)
	for _, i := range categories {
		c, n := &l.codings[i], len(columns[i].values)
		if n == 0 || n > mostValues {
			return named(list[0].path, errorf(data.ErrOption, "column %s: got %d different values or more, want 1 to %d of a category", text.Quote(l.nameOf(i)), n, mostValues))
		}
		c.Coding = data.Coding{Column: l.nameOf(i), Kind: data.CodingCategory, Values: slices.Sorted(maps.Keys(columns[i].values))}
		delete(texts, i)
	}
	e := new(TextError)
	if err := l.textError(texts); err != nil && !(o.DropText && errors.As(err, &e) && e.Numbers) {
		if errors.As(err, &e) {
			for i := range missing {
				e.Missing = e.Missing || l.roles[i] == roleData && l.codings[i].Kind != data.CodingText
				k := slices.IndexFunc(e.Columns, func(c TextColumn) bool { return c.Name == l.nameOf(i) })
				if k >= 0 {
					e.Columns[k].Missing = true
				}
			}
		}
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

// An EmptyError reports columns without values. It wraps data.ErrNotFinite.
type EmptyError struct {
	Columns []string // names, or numbers counted from 1
	Table   bool     // columns of a table, and not of an array
}

func (e *EmptyError) Error() string {
	return "got no values in column " + text.Few(e.Columns, text.Quote)
}

// Unwrap returns data.ErrNotFinite.
func (e *EmptyError) Unwrap() error { return data.ErrNotFinite }

// checkEmpty returns an *EmptyError if columns of dense points have no values; of an array
// only if values may be missing, as another error has the row otherwise.
func (h *head) checkEmpty(m *data.Matrix, allowed bool) error {
	if m == nil || m.CSR != nil {
		return nil
	}
	if _, _, _, missing := m.FirstNotFinite(); !missing {
		return nil
	}
	e := &EmptyError{Table: len(h.sources) == m.D} // not the items of lists
	for j, mean := range m.FiniteMeans() {
		name := strconv.Itoa(j + 1)
		if e.Table {
			name = h.sources[j]
		}
		if mean != mean && !slices.Contains(e.Columns, name) {
			e.Columns = append(e.Columns, name)
		}
	}
	if e.Columns == nil || !e.Table && !allowed {
		return nil
	}
	return h.named(e)
}
