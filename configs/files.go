package configs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/internal/text"
)

// A keyFiles is the files that a key names.
type keyFiles struct {
	key   string
	paths []string
}

// files returns the files with points, labels, rows and a graph.
func (c *Config) files() []keyFiles {
	var held, rows []string
	if c.Data.Holdout != nil {
		held = c.Data.Holdout.Paths
	}
	if t := c.Data.Sample; t != nil && t.File != "" {
		rows = []string{t.File}
	}
	labels := file.Paths(c.Data.Labels)
	if c.Data.cellLabels() != "" {
		labels = nil
	}
	return []keyFiles{
		{"data.labels", labels},
		{"data.holdout", held},
		{"data.holdout_labels", file.Paths(c.Data.HoldoutLabels)},
		{"data.sample", rows},
		{"graph.file", given(c.Graph.File)},
		{"data.path", c.Data.Path},
	}
}

// Inputs returns the files and folders that a run reads, except its configuration.
func (c *Config) Inputs() []string {
	var inputs []string
	for _, f := range c.files() {
		inputs = append(inputs, f.paths...)
	}
	if path := c.Model.InitPath(); path != "" {
		inputs = append(inputs, path)
	}
	return file.Paths(slices.Concat(inputs, c.Output.HTMLColumns, given(c.Data.Names), given(c.Model.InitNames)))
}

// given returns the text of a key as a list: empty for null.
func given(s *string) []string {
	if s == nil {
		return nil
	}
	return []string{*s}
}

// CheckFiles returns an error, with the key, for the first file that is missing or cannot
// be opened. It reads none.
func (c *Config) CheckFiles() error {
	for _, f := range c.files() {
		err := f.check()
		if errors.Is(err, fs.ErrNotExist) && f.key == "data.labels" {
			err = fmt.Errorf("%w; a column of the points' own table is data.label_column", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckInit returns an error if the earlier embedding to start from is missing.
func (m *Model) CheckInit() error {
	path := m.InitPath()
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("model.init: got %s, want %s (%w)", text.Quote(path), kindsOfText["start"], err)
	}
	return nil
}

// checkColumns is Schema.CheckColumns.
func (c *Config) checkColumns(ctx context.Context, started bool) error {
	points := c.Data.Path
	if c.Data.Holdout != nil {
		points = slices.Concat(points, c.Data.Holdout.Paths)
	}
	o := c.Data.Options()
	o.Labels = nil
	check := func(key string, specs, paths []string, o file.Options) error {
		for _, spec := range specs {
			if err := checkColumn(ctx, spec, paths, o); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	}
	err := cmp.Or(
		check("data.names", given(c.Data.Names), points, o),
		check("data.labels", slices.Concat(c.Data.Labels, c.Data.HoldoutLabels), nil, o),
		check("output.html_columns", c.Output.HTMLColumns, points, o))
	if err == nil && !started {
		err = c.Model.CheckInit()
	}
	if err != nil || started || c.Model.InitNames == nil {
		return err
	}
	var earlier []string
	if info, err := os.Stat(c.Model.InitPath()); err == nil && !info.IsDir() {
		earlier = []string{c.Model.InitPath()}
	}
	if path, _ := file.SplitColumn(*c.Model.InitNames); path == "" && earlier == nil {
		return nil // a table in the run folder
	}
	return check("model.init_names", given(c.Model.InitNames), earlier, file.Options{})
}

// checkColumn returns an error if spec names a missing file or column (see
// file.SplitColumn). It reads only the heads of files. A column without a file is a
// column of points, and is checked if their files exist. Nil points have no table.
func checkColumn(ctx context.Context, spec string, points []string, o file.Options) error {
	path, column := file.SplitColumn(spec)
	switch {
	case column == "":
		return readable(path)
	case path == "" && points == nil:
		return nil // CheckFiles reports a file that is missing
	case path != "":
		_, err := file.FindColumn(ctx, []string{path}, column, file.Options{LabelColumn: column})
		return err
	case len(points) == 0 || strings.HasPrefix(points[0], BuiltinPrefix):
		return NoColumnsError(spec)
	case slices.ContainsFunc(points, func(path string) bool { _, err := os.Stat(path); return err != nil }):
		return nil
	case counts.Is(points[0], o) && !file.IsCells(points[0]):
		return nil // a gene; reading reports one that is missing
	}
	_, err := file.FindColumn(ctx, points, column, o)
	if errors.Is(err, data.ErrOption) {
		err = fmt.Errorf("%s is neither a file nor a column: %w", text.Quote(spec), err)
	}
	return err
}

// NoColumnsError is the error for a column of points that come from no table.
func NoColumnsError(spec string) error {
	return fmt.Errorf("there is no file %s, and the points have no columns; want a file with a line for each point, or FILE:COLUMN", text.Quote(spec))
}

// check returns an error for the first file that is missing or cannot be opened.
func (f keyFiles) check() error {
	if len(f.paths) > 0 && strings.HasPrefix(f.paths[0], BuiltinPrefix) {
		return nil
	}
	for _, path := range f.paths {
		if err := readable(path); err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
	}
	return nil
}

// readable returns an error if a file cannot be opened. If it is not regular, such as a
// pipe, readable only checks that it exists, because opening it could consume data.
func readable(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// CheckFiles returns an error for the first file that is missing or cannot be opened. key
// is the images' key, such as data.path.
func (d *ImageData) CheckFiles(key string) error {
	if err := (keyFiles{"data.labels", file.Paths(d.Labels)}).check(); err != nil {
		return err
	}
	return keyFiles{key, d.Path}.check()
}
