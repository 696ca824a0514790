package report

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/text"
)

// Wanted says which annotations are to be read. Each is the path of a file with a line or
// value for each point, FILE:COLUMN for a column of any table, or a column of the table of
// the points by its name or number.
type Wanted struct {
	Names   string   // "" for none
	Columns []string // empty for none
	// AutoLabels asks for labels made of the names, including the names that a page has
	// without Names.
	AutoLabels bool
	// MayLackNames and MayLackColumns leave out names and columns that cannot be read, with a
	// warning instead of an error: the page of a finished run is better without them than
	// missing.
	MayLackNames, MayLackColumns bool
	// Data, if not empty, is where the data of a run are now.
	Data []string
	// NamesFrom and ColumnsFrom are the flags or keys that say so, for messages.
	NamesFrom, ColumnsFrom string
}

// WantedBy returns which annotations a run has.
func WantedBy(c *configs.Config) Wanted {
	return Wanted{Names: c.Data.Names, Columns: c.Output.HTMLColumns, AutoLabels: c.Output.AutoLabels,
		MayLackColumns: true, NamesFrom: "data.names", ColumnsFrom: "output.html_columns"}
}

// orOf returns what w wants, and else what a run has.
func (w Wanted) orOf(c *configs.Config) Wanted {
	own := WantedBy(c)
	own.AutoLabels, own.MayLackNames = own.AutoLabels || w.AutoLabels, w.Names == ""
	if w.Names != "" {
		own.Names, own.NamesFrom = w.Names, w.NamesFrom
	}
	if len(w.Columns) > 0 {
		own.Columns, own.ColumnsFrom, own.MayLackColumns = w.Columns, w.ColumnsFrom, false
	}
	return own
}

// mostClasses is the largest number of different texts in a column that colours points.
const mostClasses = 4096

// Annotate gives a page the wanted annotations: it reads names and columns of the n rows of
// the input, or only of the given rows if rows is not nil; n may then be 0 for unknown. Cells
// are named by their barcodes, unless other names are wanted. It warns of columns that cannot
// colour points, and leaves them out.
func Annotate(ctx context.Context, log *slog.Logger, page *cne.PageOptions, from rundir.Table, w Wanted, n int, rows []int) (err error) {
	page.AutoLabels = w.AutoLabels
	if page.Names, err = from.ReadNames(ctx, w.Names, n, rows); err != nil {
		err = fmt.Errorf("%s: %w", w.NamesFrom, err)
		if !w.MayLackNames || ctx.Err() != nil {
			return err
		}
		log.Warn("the names of the points are left out of the page", "reason", err)
	}
	for i, spec := range w.Columns {
		if slices.Contains(w.Columns[:i], spec) {
			return fmt.Errorf("%s: got %s twice, want each column once", w.ColumnsFrom, text.Quote(spec))
		}
		name, values, err := rundir.ReadColumn(ctx, from, spec, n, rows)
		if err != nil && !w.MayLackColumns {
			return fmt.Errorf("%s: %w", w.ColumnsFrom, err)
		}
		if err == nil {
			path, column := file.SplitColumn(spec)
			if path == "" && len(from.Paths) > 0 {
				path = from.Paths[0]
			}
			labels := data.NewLabels(values)
			labels.Arrange(file.Categories(path, column))
			err = addColumn(log, page, name, labels)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			log.Warn(text.ErrorMessage(fmt.Errorf("%s: %w; the page leaves it out", w.ColumnsFrom, err)))
		}
	}
	return nil
}

// addColumn adds a column to colour points by.
func addColumn(log *slog.Logger, page *cne.PageOptions, name string, labels *data.Labels) error {
	points, known := labels.Known()
	if len(points) == 0 {
		return fmt.Errorf("%s: got no value for any point", text.Quote(name))
	}
	if missing := len(labels.Class) - len(points); missing > 0 {
		log.Info("points without a value are grey", "column", name, "points", missing)
	}
	if known.Categorical() && len(known.Names) > mostClasses {
		return fmt.Errorf("%s: got %d different texts, want at most %d to tell their colours apart; names of points go to --names or data.names", text.Quote(name), len(known.Names), mostClasses)
	}
	page.Columns = append(page.Columns, cne.PageColumn{Name: name, Labels: labels})
	return nil
}
