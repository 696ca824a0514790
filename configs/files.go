package configs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"cne"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/text"
)

// EachInput calls f for each key that names files, folders or columns of files to read, and
// sets the key to the paths that f returns.
func (c *Config) EachInput(f func(key string, paths []string) []string) {
	one := func(key string, path *string) {
		if *path != "" {
			*path = f(key, []string{*path})[0]
		}
	}
	d := &c.Data
	d.Labels = f("data.labels", d.Labels)
	d.Holdout.Paths = f("data.holdout", d.Holdout.Paths)
	d.HoldoutLabels = f("data.holdout_labels", d.HoldoutLabels)
	one("data.sample", &d.Sample.File)
	one("graph.file", &c.Graph.File)
	d.Path = f("data.path", d.Path)
	one("data.names", &d.Names)
	c.Output.HTMLColumns = f("output.html_columns", c.Output.HTMLColumns)
	one("model.init_names", &c.Model.InitNames)
	one("loss.towards", &c.Loss.Towards)
	if path := c.Model.InitPath(); path != "" {
		c.Model.Init = f("model.init", []string{path})[0]
	}
}

// Inputs returns the files and folders that a run reads, except its configuration.
func (c *Config) Inputs() (inputs []string) {
	read := *c
	read.EachInput(func(_ string, paths []string) []string {
		inputs = append(inputs, file.Paths(paths)...)
		return paths
	})
	return inputs
}

// given returns the text of a key as a list: empty for null.
func given(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// CheckFiles returns an error, with the key, for the first file with points, labels, rows or a
// graph that is missing or cannot be opened. It reads none.
func (c *Config) CheckFiles() (err error) {
	defer kind.Catch(&err)
	read := *c
	read.EachInput(func(key string, paths []string) []string {
		switch {
		case key == "data.labels" && c.Data.ownLabels() == "":
			err := checkFiles(key, file.Paths(paths))
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; a column of the points' own table is data.label_column", err)
			}
			kind.Check(err)
		case key == "data.holdout_labels":
			kind.Check(checkFiles(key, file.Paths(paths)))
		case slices.Contains([]string{"data.holdout", "data.sample", "graph.file", "data.path"}, key):
			kind.Check(checkFiles(key, paths))
		}
		return paths
	})
	return nil
}

// checkColumns is Schema.CheckColumns.
func (c *Config) checkColumns(ctx context.Context, started bool) (err error) {
	defer kind.Catch(&err)
	points := slices.Concat(c.Data.Path, c.Data.Holdout.Paths)
	o := c.Data.Reading()
	o.Labels = nil
	var own []string // the training points, if they have the labels and can be read twice
	if c.Data.ownLabels() != "" && !slices.ContainsFunc(c.Data.Path, isPipe) {
		own = c.Data.Path
	}
	check := func(key string, specs, paths []string, o file.Options) {
		for _, spec := range specs {
			err := checkColumn(ctx, spec, paths, o)
			kind.Checkf(err, "%s: %w", key, err)
		}
	}
	check("data.names", given(c.Data.Names), points, o)
	check("data.labels", c.Data.Labels, own, o)
	check("data.holdout_labels", c.Data.HoldoutLabels, nil, o)
	check("output.html_columns", c.Output.HTMLColumns, points, o)
	if started {
		return nil
	}
	kind.Check(checkFiles("loss.towards", given(c.Loss.Towards)))
	init := c.Model.InitPath()
	if init == "" {
		return nil
	}
	info, err := os.Stat(init)
	kind.Checkf(err, "model.init: got %s, want %s (%w)", text.Quote(init), kindsOfText["start"], err)
	var earlier []string // of a run folder it is a table in it
	if !info.IsDir() {
		earlier = []string{init}
	}
	check("model.init_names", given(c.Model.InitNames), earlier, file.Options{})
	return nil
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
	case len(points) == 0 || strings.HasPrefix(points[0], file.BuiltinPrefix):
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

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// NoColumnsError is the error for a column of points that come from no table.
func NoColumnsError(spec string) error {
	return fmt.Errorf("there is no file %s, and the points have no columns; want a file with a line for each point, or FILE:COLUMN", text.Quote(spec))
}

// checkFiles returns an error for the first file of a key that is missing or cannot be
// opened.
func checkFiles(key string, paths []string) error {
	for _, path := range paths {
		if err := readable(path); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// readable returns an error if a file cannot be opened. If it is not regular, such as a
// pipe, readable only checks that it exists, because opening it could consume data.
func readable(path string) error {
	info, err := file.Stat(path)
	if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(path, file.BuiltinPrefix) {
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
	return cmp.Or(checkFiles("data.labels", file.Paths(d.Labels)), checkFiles(key, d.Path))
}

// AnySize is the size of unknown data.
var AnySize = data.Size{Low: 2, High: math.MaxInt32, Likely: 2}

// dataSize returns the size of the points of data.path, as far as known.
func (c *Config) dataSize(ctx context.Context) data.Size {
	d := &c.Data
	return d.Sample.listed(ctx, file.Size(ctx, d.Path, c.ReadOptions(d)))
}

// unknownPoints is the number of points for a preset if no file has their number.
const unknownPoints = 10000

func (c *Config) points(ctx context.Context) int {
	size := c.dataSize(ctx)
	if !size.Known() { // a table: counting its rows is faster than reading them
		n, err := file.Count(ctx, c.Data.Path, c.Data.Reading())
		if err == nil {
			size.Likely = n
		} else if size.High == AnySize.High {
			return unknownPoints
		}
	}
	n, _ := c.Data.Divide(size.Likely)
	return max(1, n)
}

// listed returns the size of the points whose rows a file lists, or the size of all
// points without such a file.
func (t Sample) listed(ctx context.Context, size data.Size) data.Size {
	if t.File == "" {
		return size
	}
	lines, heading, err := file.ReadLines(ctx, t.File)
	n := len(lines)
	if heading {
		n--
	}
	if err != nil || n < 1 || n > size.High { // reading explains it best
		size.Low, size.Likely = min(2, size.Low), min(2, size.Low)
		return size
	}
	size.Low, size.High, size.Likely = n, n, n
	return size
}

// CheckSize refuses values that are invalid for data of a size, as far as it is known.
func (c *Config) CheckSize(size data.Size) error {
	_, held := c.Data.Divide(size.High)
	if t := c.Data.Sample; t.Number > size.High-held {
		return &option.Error{Key: "data.sample", Got: fmt.Sprint(t.Number),
			Want: fmt.Sprintf("at most the number of points (%d)", size.High-held)}
	}
	size.Low, _ = c.Data.Divide(size.Low)
	size.High, _ = c.Data.Divide(size.High)
	if size.High == 1 {
		return fmt.Errorf("%s: points: got one, want at least two", text.Few(c.Data.Path, nil))
	}
	o := c.Options()
	if c.Graph.File != "" {
		o.Neighbors = 1 // any graph will do
	}
	return o.CheckSize(size)
}

// ExplainPoints adds the key or the files to an error of preparing n points with
// components principal components; it returns other errors unchanged.
func (c *Config) ExplainPoints(err error, n, components int) error {
	if _, ok := errors.AsType[*option.Error](err); ok {
		return Explain(err)
	}
	switch {
	case errors.Is(err, neighbors.ErrNotFinite) && components > 0:
		return errors.New("the principal components are too large for float32; set data.scale to standard or unit")
	case errors.Is(err, cne.ErrEqualPoints):
		return fmt.Errorf("%s: got %d equal points with model.kind %s, want points that differ", text.Few(c.Data.Path, nil), n, c.Model.Kind)
	}
	err = Cause(err)
	switch {
	case errors.Is(err, data.ErrSparse):
		return fmt.Errorf("graph.pca: %w", err)
	case errors.Is(err, data.ErrShape):
		return fmt.Errorf("%s: graph.%w", text.Few(c.Data.Path, nil), err)
	case errors.Is(err, data.ErrDirection):
		if without, ok := errors.AsType[*data.DirectionError](err); ok && without.Metric != data.Haversine && c.Data.ZeroRows != "drop" {
			return fmt.Errorf("%w (graph.metric); --set data.zero_rows=drop leaves them out", err)
		}
		return fmt.Errorf("%w (graph.metric)", err)
	}
	return err
}

// Cause returns the cause of an error of the library, without its kind; other errors are
// unchanged.
func Cause(err error) error {
	if kinds, ok := err.(interface{ Unwrap() []error }); ok && (errors.Is(err, cne.ErrPoints) || errors.Is(err, cne.ErrOption)) {
		return kinds.Unwrap()[1]
	}
	return err
}

// Divide returns the numbers of training and held-out points among n points of data.path.
// If a file lists the rows, n counts only these.
func (d *Data) Divide(n int) (trained, held int) {
	trained, held = d.Rules(0).Count(n)
	if d.Sample.File != "" {
		trained = n
	}
	return trained, held
}
