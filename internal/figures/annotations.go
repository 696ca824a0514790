package figures

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/explorer"
	"cne/internal/text"
)

// Annotations are what is known of the points of an embedding beside their values and
// labels: what a page shows of them. A nil *Annotations has nothing.
type Annotations struct {
	Names   []string          // one for each point; nil for none
	Columns []explorer.Column // by which the points can be coloured
}

// Wanted says which annotations are to be read. Each is the path of a file with a line or
// value for each point, FILE:COLUMN for a column of any table, or a column of the table of
// the points by its name or number.
type Wanted struct {
	Names   string   // "" for none
	Columns []string // empty for none
	// NamesFrom and ColumnsFrom are the flags or keys that say so, for messages.
	NamesFrom, ColumnsFrom string
}

// A Table is where the columns of points are.
type Table struct {
	Paths   []string // those of the points, and behind them of those held out
	Options data.Options
}

// TableOf returns the table that a run reads its points from.
func TableOf(c *configs.Config) Table {
	t := Table{Paths: c.Data.Path, Options: c.Data.Options()}
	t.Options.Labels = nil
	if c.Data.Holdout != nil {
		t.Paths = slices.Concat(t.Paths, c.Data.Holdout.Paths)
	}
	return t
}

// mostClasses is how many different texts a column may have that colours points.
const mostClasses = 4096

// ReadAnnotations reads what is wanted of n points: of the given rows of the input, or of
// all for nil. It returns nil if nothing is wanted.
func ReadAnnotations(ctx context.Context, log *slog.Logger, from Table, w Wanted, n int, rows []int) (*Annotations, error) {
	if w.Names == "" && len(w.Columns) == 0 {
		return nil, nil
	}
	r := annotationReader{ctx: ctx, from: from, n: n, rows: rows}
	a := &Annotations{}
	if w.Names != "" {
		_, names, err := r.read(w.Names)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.NamesFrom, err)
		}
		a.Names = names
	}
	for i, spec := range w.Columns {
		if slices.Contains(w.Columns[:i], spec) {
			return nil, fmt.Errorf("%s: %s is given twice; give each column once", w.ColumnsFrom, text.Quote(spec))
		}
		name, values, err := r.read(spec)
		if err == nil {
			err = a.addColumn(log, name, values)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.ColumnsFrom, err)
		}
	}
	return a, nil
}

// addColumn adds a column by which points can be coloured.
func (a *Annotations) addColumn(log *slog.Logger, name string, values []string) error {
	labels := data.NewLabels(values)
	points, known := labels.Known()
	if len(points) == 0 {
		return fmt.Errorf("%s has no value for any point; leave it out", text.Quote(name))
	}
	if missing := len(values) - len(points); missing > 0 {
		log.Info("points without a value are grey", "column", name, "points", missing)
	}
	if known.Value == nil {
		if err := checkWords(name, values, known); err != nil {
			return err
		}
	}
	c := explorer.Column{Name: name}
	c.Classes, c.ClassNames, c.Values = colours(labels, len(values))
	if c.Classes != nil && len(c.ClassNames) > mostClasses {
		return fmt.Errorf("%s has %d different texts, which no colours can tell apart; at most %d are, and names of the points are for --names or data.names", text.Quote(name), len(c.ClassNames), mostClasses)
	}
	a.Columns = append(a.Columns, c)
	return nil
}

// checkWords refuses an infinite value among texts that are numbers but for such.
func checkWords(name string, values []string, known *data.Labels) error {
	infinite := ""
	for _, s := range known.Names {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil // words
		}
		if math.IsInf(v, 0) {
			infinite = s
		}
	}
	if infinite == "" {
		return nil
	}
	return fmt.Errorf("%s is %s for point %d (counted from 1), which has no place on a scale of colours; replace the value or leave it empty",
		text.Quote(name), infinite, slices.Index(values, infinite)+1)
}

// AddTo puts annotations on a page of the same points.
func (a *Annotations) AddTo(p *explorer.Page) {
	if a == nil {
		return
	}
	p.Names, p.Columns = a.Names, a.Columns
}

// An annotationReader reads what is said of points.
type annotationReader struct {
	ctx  context.Context
	from Table
	n    int
	rows []int
}

// read returns what is said of each point, and what that is called.
func (r *annotationReader) read(spec string) (name string, values []string, err error) {
	if isFile(spec) {
		values, err = r.file(spec)
		return filepath.Base(data.TrimEnding(spec)), values, err
	}
	from, column, where := r.from, spec, "the table of the points"
	if at := strings.LastIndexByte(spec, ':'); at > 0 && isFile(spec[:at]) {
		where, column = spec[:at], spec[at+1:]
		from = Table{Paths: []string{where}, Options: data.Options{LabelColumn: column}}
	}
	if len(from.Paths) == 0 || strings.HasPrefix(from.Paths[0], configs.BuiltinPrefix) {
		return "", nil, fmt.Errorf("there is no file %s, and the points come from no table with columns; name a file with a line for each point, or a column of any table as FILE:COLUMN", text.Quote(spec))
	}
	columns, err := data.OpenColumns(r.ctx, from.Paths, []string{column}, from.Options)
	if err != nil {
		return "", nil, fmt.Errorf("%s is no file, and is not found as a column: %w", text.Quote(spec), err)
	}
	values, err = r.take(columns[0], where)
	return column, values, err
}

// file returns the lines or values of a file.
func (r *annotationReader) file(path string) ([]string, error) {
	if e := strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz"))); e == ".csv" || e == ".tsv" {
		columns, err := data.TableColumns(r.ctx, path)
		if err != nil {
			return nil, err
		}
		if columns > 1 {
			return nil, fmt.Errorf("%s is a table of %d columns; name one of them as %s:COLUMN", text.Quote(path), columns, text.Printable(path))
		}
	}
	lines, heading, err := data.OpenLines(r.ctx, path)
	if err != nil {
		return nil, err
	}
	// Of rows of an input whose length is not known, none can be told to be a heading.
	if heading && r.rows == nil && len(lines)-1 == r.n {
		lines = lines[1:]
	}
	return r.take(lines, path)
}

// fits tells whether so many values are those of the points.
func (r *annotationReader) fits(values int) bool {
	if r.rows == nil {
		return values == r.n
	}
	return len(r.rows) > 0 && values > slices.Max(r.rows)
}

// take returns those of the values that the points have.
func (r *annotationReader) take(values []string, where string) ([]string, error) {
	switch {
	case r.fits(len(values)) && r.rows == nil:
		return values, nil
	case r.fits(len(values)):
		taken := make([]string, len(r.rows))
		for k, i := range r.rows {
			taken[k] = values[i]
		}
		return taken, nil
	}
	return nil, fmt.Errorf("%s has %d rows for %d points; give one for each point, in their order", text.Quote(where), len(values), r.n)
}

// isFile tells whether there is a file at a path, which may be no regular one.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
