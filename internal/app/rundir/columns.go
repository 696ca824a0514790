package rundir

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

// A Table is where the columns of points are.
type Table struct {
	Paths   []string // files of the points, and after them of held-out points
	Options file.Options
	// Barcodes are the files with the names of the cells; nil for none.
	Barcodes []string
}

// TableOf returns the table that a run reads its points from.
func TableOf(c *configs.Config) Table {
	t := Table{Paths: slices.Concat(c.Data.Path, c.Data.Holdout.Paths), Options: c.Data.Reading()}
	t.Options.Labels = nil
	t.Barcodes = counts.Barcodes(t.Paths)
	return t
}

// ReadColumn reads a value for each of the n rows of the input from a file or column (see
// file.SplitColumn), or only for the given rows if rows is not nil; n may then be 0
// for unknown. name is the column's name.
func ReadColumn(ctx context.Context, from Table, spec string, n int, rows []int) (name string, values []string, err error) {
	path, column := file.SplitColumn(spec)
	if column == "" { // a file with a line or value for each row
		lines, heading, err := file.ReadLines(ctx, path)
		if file.IsTable(path) {
			err = cmp.Or(file.CheckLines(ctx, path), err)
		}
		if err != nil {
			return "", nil, err
		}
		if heading && len(lines)-1 == n {
			lines = lines[1:]
		}
		for i, line := range lines {
			if text.IsMissing(line) {
				lines[i] = ""
			}
		}
		values, err = take(lines, path, n, rows)
		return filepath.Base(file.TrimEnding(path)), values, err
	}
	if path != "" {
		from = Table{Paths: []string{path}, Options: file.Options{LabelColumn: column, NA: from.Options.NA}}
	}
	if len(from.Paths) == 0 || strings.HasPrefix(from.Paths[0], file.BuiltinPrefix) {
		return "", nil, configs.NoColumnsError(spec)
	}
	if first := from.Paths[0]; counts.Is(first, from.Options) && !file.IsCells(first) {
		var c *counts.Matrix
		if c, err = counts.Open(ctx, from.Paths, file.Options{}); err == nil {
			values, err = c.Gene(column)
		}
	} else {
		var columns [][]string
		if columns, err = file.ReadColumns(ctx, from.Paths, []string{column}, from.Options); err == nil {
			values = columns[0]
		}
	}
	switch {
	case path == "" && errors.Is(err, data.ErrOption):
		return "", nil, fmt.Errorf("%s is neither a file nor a column: %w", text.Quote(spec), err)
	case path == "":
		err = Moved(err, PlotData)
	}
	if err == nil {
		values, err = take(values, cmp.Or(path, "the table of the points"), n, rows)
	}
	return column, values, err
}

// take returns the values of the given rows, or all: see ReadColumn.
func take(values []string, where string, n int, rows []int) ([]string, error) {
	switch {
	case rows == nil && len(values) == n:
		return values, nil
	case rows == nil, n > 0 && len(values) != n, len(rows) == 0, len(values) <= slices.Max(rows):
		return nil, fmt.Errorf("%s: got %d rows for %d points, want one for each, in their order", text.Quote(where), len(values), n)
	}
	return selection.Pick(values, rows), nil
}

// ReadNames reads the names of the points from a file or column, or for "" the names of
// the cells: see ReadColumn. It returns nil if there are none.
func (t Table) ReadNames(ctx context.Context, spec string, n int, rows []int) (names []string, err error) {
	switch {
	case spec != "":
		_, names, err = ReadColumn(ctx, t, spec, n, rows)
	case t.Barcodes != nil:
		if names, err = counts.ReadBarcodes(ctx, t.Barcodes, t.Options); err != nil {
			return nil, Moved(err, PlotData)
		}
		names, err = take(names, t.Barcodes[0], n, rows)
	}
	return names, err
}

// PlotData is how cne plot gets the points of a run.
const PlotData = "cne plot --data names points"

// Moved adds the remedy to an error for missing inputs of a run, such as "--set names files".
func Moved(err error, remedy string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; %s that have moved", err, remedy)
	}
	return err
}

// WriteNames writes the names of the points, for later runs that start from the embedding;
// nothing for nil.
func (d *Dir) WriteNames(names []string) error {
	if names == nil {
		return nil
	}
	return d.WriteFile(NamesFile, func(w io.Writer) error {
		table := csv.NewWriter(w)
		_ = table.Write([]string{nameColumn, "row"}) // Flush finds the error
		for row, name := range names {
			_ = table.Write([]string{name, strconv.Itoa(row)})
		}
		table.Flush()
		return table.Error()
	})
}

const nameColumn = "name"

// ReadNames reads the names of n points that WriteNames wrote to a run folder; nil
// without a file.
func ReadNames(ctx context.Context, folder string, n int) ([]string, error) {
	path := filepath.Join(folder, NamesFile)
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	_, names, err := ReadColumn(ctx, Table{}, path+":"+nameColumn, n, nil)
	return names, err
}

// An EarlierEmbedding is an earlier embedding that another starts from or is pulled towards.
type EarlierEmbedding struct {
	Positions *data.Matrix
	key, path string   // of the configuration
	names     []string // of its points; nil if they have none
	drawn     bool     // the points to train on are drawn, or listed
	held      []int    // the rows that its run held out, if these were drawn
}

// ReadEarlier reads the earlier embedding of a key, or returns nil without a path. names is
// the column with the names of its rows; "" means the names of its run.
func ReadEarlier(ctx context.Context, c *configs.Config, key, path, names string) (_ *EarlierEmbedding, err error) {
	defer kind.Catch(&err)
	if path == "" {
		return nil, nil
	}
	e := &EarlierEmbedding{key: key, path: path, drawn: c.DrawsPoints() || c.Data.Sampled()}
	found, set, err := OpenEmbedding(ctx, []string{path}, file.Options{})
	if err == nil && found[0] != path {
		e.held, err = ReadRows(ctx, filepath.Join(path, HeldRowsFile), math.MaxInt32)
	}
	if err == nil && set.Points.N > 1 && set.Points.Distinct() == 1 { // nothing would move them apart
		err = fmt.Errorf("%s: got equal positions, want different ones", text.Quote(path))
	}
	kind.Checkf(err, "%s: %w", key, err)
	e.Positions = set.Points
	if d := set.Points.D; d != c.Embed.Dim {
		return nil, fmt.Errorf("%s: %s: got %d coordinates, want %d as in model.dim", key, text.Quote(path), d, c.Embed.Dim)
	}
	switch {
	case c.Data.Names == "" && TableOf(c).Barcodes == nil:
		return e, nil
	case names != "":
		_, e.names, err = ReadColumn(ctx, Table{Paths: found}, names, e.Positions.N, nil)
		kind.Checkf(err, "%s_names: %w", key, err)
	default:
		e.names, err = ReadNames(ctx, path, e.Positions.N)
		kind.Checkf(err, "%s: %w", key, err)
	}
	return e, nil
}

// Start returns positions of a neighborhood's points, those of total rows that a division
// trains on; new points are near their neighbours. names are the names of the points, or nil.
// It returns nil without an earlier embedding.
func (e *EarlierEmbedding) Start(log *slog.Logger, h *cne.Neighborhood, names []string, d *cne.Division, total int, seed uint64) (*data.Matrix, error) {
	if e == nil {
		return nil, nil
	}
	n := h.Graph.N
	rows, err := e.rows(names, d, total)
	if err != nil {
		return nil, err
	}
	known := e.Positions.N
	if rows != nil {
		known = len(slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return row < 0 }))
	}
	log.Info("an earlier embedding has positions for "+e.key, "embedding", e.path, "points in it", known, "new points", n-known)
	return h.StartFrom(e.Positions, rows, seed)
}

// rows returns which row of the earlier embedding each point has, or −1: by their
// names, if both have some; by their rows, if it has all rows of the data; or nil if its rows
// are the points, or the first of points that are not drawn.
func (e *EarlierEmbedding) rows(names []string, d *cne.Division, total int) ([]int, error) {
	n := len(d.Trained)
	if e.names == nil || names == nil {
		got, exact := e.Positions.N, e.drawn || e.held != nil
		others, want := "", fmt.Sprintf("at most %d", n)
		if exact {
			want = fmt.Sprintf("%d (one per row of the data) or %d (one per row that is trained on)", total, n)
		}
		switch {
		case got == total && n < total:
			return d.Trained, nil
		case e.held != nil && !slices.Equal(e.held, d.Held):
			others = " and other held-out rows"
		case got == n || got < n && !exact:
			return nil, nil
		}
		return nil, fmt.Errorf("%s: %s: got %d points%s, want %s, or names of both (data.names) to match them",
			e.key, text.Quote(e.path), got, others, want)
	}
	at := make(map[string]int, len(e.names))
	for row, name := range e.names {
		if name == "" {
			continue
		}
		if first, twice := at[name]; twice {
			return nil, fmt.Errorf("%s: %s: got the name %s in rows %d and %d, want each name once", e.key, text.Quote(e.path),
				text.Quote(name), first+1, row+1)
		}
		at[name] = row
	}
	rows, taken := make([]int, n), make(map[int]int)
	for i, name := range names {
		row, ok := at[name]
		if !ok {
			rows[i] = -1
			continue
		}
		if first, twice := taken[row]; twice {
			return nil, fmt.Errorf("data.names: got the name %s for points %d and %d, want each name of the earlier embedding once",
				text.Quote(name), first+1, i+1)
		}
		rows[i], taken[row] = row, i
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("data.names: got no name that is in %s, want names such as %s", text.Quote(e.path), text.Quote(e.names[0]))
	}
	return rows, nil
}
