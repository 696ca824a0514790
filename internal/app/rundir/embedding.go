package rundir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
	"cne/simclr"
)

// EmbeddingFile returns the path of a file unchanged. For a run folder it returns the
// path of its embedding: the table with the labels, or otherwise the array.
func EmbeddingFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the embedding cannot be read: %w", err)
	}
	if !info.IsDir() {
		return path, nil
	}
	for _, name := range []string{"embedding.csv", "embedding.npy"} {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the embedding cannot be read: %w", err)
		}
	}
	return "", cmp.Or(RefuseSpectrum(path),
		fmt.Errorf("%s: got a folder without embedding.csv or embedding.npy, want a finished run, or a file", path))
}

// TrainedFile returns the array with the positions of only the training points of a run,
// which is read faster than a table, or else the run's folder.
func TrainedFile(folder string) string {
	for _, name := range []string{SampleName, "embedding"} {
		if file := filepath.Join(folder, name+".npy"); exists(file) {
			return file
		}
	}
	return folder
}

// RefuseSpectrum returns an error if a folder holds a spectrum, because it has several
// embeddings. It names one of them.
func RefuseSpectrum(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, SpectrumFigures))
	var f struct {
		Embeddings []struct {
			Folder string `json:"folder"`
		} `json:"embeddings"`
	}
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Embeddings) == 0 {
		return nil
	}
	return fmt.Errorf("%s: got a spectrum, want one of its embeddings, such as %s", folder, filepath.Join(folder, f.Embeddings[0].Folder))
}

// RefuseStop returns an error if a folder holds an embedding of a spectrum, which is no run.
func RefuseStop(folder string) error {
	at, err := filepath.Abs(folder)
	if err != nil || RefuseSpectrum(filepath.Dir(at)) == nil {
		return nil
	}
	return fmt.Errorf("%s: got an embedding of a spectrum, want a run; \"cne train --config %s --output %s-again\" starts one",
		folder, filepath.Join(folder, ConfigFile), filepath.Base(filepath.Dir(at)))
}

// PositionFiles returns the files for positions of the given name, an array and also a
// table with csv.
func (d *Dir) PositionFiles(name string, csv bool) []string {
	names := positionFiles(name)
	if !csv {
		names = names[:1]
	}
	return selection.Map(names, d.Path)
}

// WriteEmbedding is WritePositions for positions in memory; labels, and the names of the
// points, may be nil.
func WriteEmbedding(paths []string, m *data.Matrix, labels *data.Labels, names []string) error {
	return WritePositions(paths, m.D, labels != nil, names != nil, func(write PositionWriter) error {
		return write(m, labels.All(), names)
	})
}

// A PositionWriter writes the positions of consecutive points, and their labels and names.
type PositionWriter func(positions *data.Matrix, labels, names []string) error

// WritePositions has run write positions in d dimensions to files that end in .npy or
// .csv, each complete or not at all. It makes their folder.
func WritePositions(paths []string, d int, labeled, named bool, run func(write PositionWriter) error) error {
	if len(paths) == 0 {
		return run(func(*data.Matrix, []string, []string) error { return nil })
	}
	failed := func(err error) error {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", paths[0], err)
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil { // someone may have removed it
		return failed(err)
	}
	var placed error
	err := atomicfile.WriteSeek(paths[0], func(w io.WriteSeeker) (err error) {
		defer kind.Catch(&err)
		var write PositionWriter
		var end func() error
		if strings.EqualFold(filepath.Ext(paths[0]), ".csv") {
			table := kind.Got(file.NewCSVWriter(w, d, labeled, named))
			write, end = table.Write, table.Close
		} else {
			array := kind.Got(file.NewNPYWriter(w, d))
			write, end = func(m *data.Matrix, _, _ []string) error { return array.Write(m) }, array.Close
		}
		placed = WritePositions(paths[1:], d, labeled, named, func(others PositionWriter) error {
			return run(func(m *data.Matrix, labels, names []string) error {
				if err := failed(write(m, labels, names)); err != nil {
					return err
				}
				return others(m, labels, names)
			})
		})
		if placed != nil {
			return placed
		}
		return end()
	})
	return cmp.Or(placed, failed(err))
}

// OpenEmbedding reads an embedding from the EmbeddingFile of each path, one below the other,
// and returns these files, too. In a table, a column file.LabelColumn is never a coordinate:
// it gives the labels unless o has others. Nor is a column file.NameColumn, nor others if some
// have the names of coordinates.
func OpenEmbedding(ctx context.Context, paths []string, o file.Options) (files []string, set *data.Dataset, err error) {
	files = make([]string, len(paths))
	for i, path := range paths {
		if files[i], err = EmbeddingFile(path); err != nil {
			return nil, nil, err
		}
	}
	o.Embedding = true
	set, err = file.Read(ctx, files, o)
	switch {
	case errors.Is(err, data.ErrNotFinite):
		err = fmt.Errorf("%w; leave this point out, and its row of other files", err)
	case err == nil && set.Points.N < 4 && set.Points.D > 3:
		err = fmt.Errorf("%s: got %d points of %d coordinates, want a row for each point (m.T)", files[0], set.Points.N, set.Points.D)
	case err == nil && set.Points.CSR != nil:
		err = fmt.Errorf("%s: got sparse points, want an embedding with a value for each coordinate (m.toarray())", files[0])
	}
	if err == nil && len(o.Only) == 0 {
		if columns := coordinates(set.Points.Columns); columns != nil {
			set.Points, _, err = set.Points.Select(columns)
		}
	}
	return files, set, err
}

// coordinate matches the names of coordinates: x, x1, UMAP_1, X_umap-0, tsne_x.
var coordinate = regexp.MustCompile(`(?i)^(|((x_)?(umap|t-?sne|pacmap|trimap|phate|mds|pca?|dim|dimension|coord|coordinate|comp|component|axis|emb|embedding)|x)[ ._-]*)([xyz]|\d{1,4})$`)

// coordinates returns the names of coordinates among a map's columns: two or more that begin
// equally and end in x, y and z, or numbers. It returns nil if there are none or several such series.
func coordinates(columns []string) (names []string) {
	series := make(map[string][]string)
	for _, name := range columns {
		m := coordinate.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		isLetter := strings.Contains("xyzXYZ", m[5])
		if key := strings.ToLower(m[1]) + selection.If(isLetter, " x", ""); key != "" {
			series[key] = append(series[key], name)
		}
	}
	for _, list := range series {
		switch {
		case len(list) < 2:
		case names != nil:
			return nil
		default:
			names = list
		}
	}
	return names
}

// OpenHeldOut reads the positions of a run's held-out points from the file next to its
// embedding; it returns nil if there are none.
func OpenHeldOut(ctx context.Context, embedding string, o file.Options) (set *data.Dataset, err error) {
	path := filepath.Join(filepath.Dir(embedding), "holdout"+filepath.Ext(embedding))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	o.Labels = nil // they are for the embedding
	_, set, err = OpenEmbedding(ctx, []string{path}, o)
	return set, err
}

// WriteRows writes the rows of some points in the input, counted from 0, for ReadRows.
func (d *Dir) WriteRows(name string, rows []int) error {
	return d.WriteFile(name, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "row")
		for _, i := range rows {
			_, err = fmt.Fprintln(w, i) // the buffered writer keeps its first error
		}
		return err
	})
}

// ReadRows reads row numbers of an input of n rows, from 0 and ascending, from an array
// or a file with one per line after an optional heading. It returns nil if the file does
// not exist.
func ReadRows(ctx context.Context, path string, n int) (_ []int, err error) {
	defer kind.Catch(&err)
	lines, heading, err := file.ReadLines(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	kind.Check(err)
	first := 0
	if heading {
		if _, err := strconv.Atoi(lines[0]); err != nil {
			first = 1
		}
	}
	rows := make([]int, len(lines)-first)
	for i, line := range lines[first:] {
		if rows[i], err = strconv.Atoi(line); err != nil {
			return nil, fmt.Errorf("%s: line %d: got %s, want a row of the input, from 0", path, first+i+1, text.Quote(line))
		}
	}
	return rows, kind.Named(path, data.CheckRows(rows, n))
}

// LoadImageNetwork loads the network of a run of cne simclr pretrain, or the file of
// one, and warns if the run has not ended.
func LoadImageNetwork(log *slog.Logger, path string) (*model.Saved, error) {
	file, command := path, configs.Pretrain.Command()
	info, err := os.Stat(path)
	isRun := err == nil && info.IsDir()
	if isRun {
		file = filepath.Join(path, ModelFile)
	}
	saved, err := model.Load(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isRun && !exists(filepath.Join(path, ConfigFile)):
		return nil, fmt.Errorf("%s: got a folder without a run, want a run of %q, or the file of a network", path, command)
	case errors.Is(err, fs.ErrNotExist) && isRun:
		return nil, fmt.Errorf("there is no %s before the run ends; \"%s --resume %s\" continues", file, command, path)
	case err != nil:
		return nil, err
	case saved.ResNet == nil:
		return nil, fmt.Errorf("%s: got a model of points, want a network of %q", file, command)
	}
	if isRun && !exists(filepath.Join(path, MetricsFile)) {
		log.Warn("the run has not ended; its network is the one at the interruption", "run", path)
	}
	return saved, nil
}

// BeginWith sets a pretraining's initial network, if its configuration names one. The
// network's widths must be the configured ones.
func BeginWith(log *slog.Logger, c *configs.SimCLR, p *simclr.Pretraining) error {
	if c.Model.From == "" {
		return nil
	}
	path := c.Model.From
	saved, err := LoadImageNetwork(log, path)
	if err != nil {
		return fmt.Errorf("%w (model.from)", err)
	}
	has := saved.ResNet.Options()
	if n := c.Pretrain.Network; has.Small != n.Small || has.Width != n.Width || has.Hidden != n.Hidden {
		return fmt.Errorf("network.small, network.width and network.hidden: got %t, %d and %d, want %t, %d and %d as in model.from (%s)",
			n.Small, n.Width, n.Hidden, has.Small, has.Width, has.Hidden, path)
	}
	if in := saved.Images; in != nil { // the values that it was trained on
		before := simclr.EvalTransform(in)
		p.Augmentation.Mean, p.Augmentation.Std = before.Mean, before.Std
	}
	first := cmp.Or(p.Network.Out, has.Out) // the output's width in the beginning
	if len(p.Stages) > 0 {
		first = cmp.Or(p.Stages[0].Out, first)
	}
	if first != has.Out {
		log.Info("the network of model.from gets a new last layer", "outputs", has.Out, "new", first)
	}
	p.From = saved.ResNet
	return nil
}
