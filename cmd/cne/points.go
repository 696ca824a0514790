package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/text"
	"cne/model"
)

// inputs are the data that a run reads.
type inputs struct {
	config *configs.Config
	log    *slog.Logger
	graph  *neighbors.Graph // of graph.file; nil without

	// points are the training points, until prepare takes their values, and held the
	// held-out points or nil, both as read.
	points, held *data.Dataset
	// rows are the rows of points in data.path, counted from 0; nil for all that are not held
	// out. heldRows are the rows of held, in data.path or, if rows is not nil, after them in
	// the files of data.holdout; otherwise nil for these files.
	rows, heldRows []int
	// n is the number of points of data.path, and rest the number of points that are only
	// placed in the end (data.sample).
	n, rest int
	builtin *data.Dataset // all points of data.path, with data.sample; nil for files
	infos   []fs.FileInfo // of data.path, as they were when they were read

	different  int             // points, if fewer than nine of ten; otherwise 0
	fill       []float32       // replaces missing values; nil: nothing does
	counts     *counts.Scaling // how counts became points; nil for other data
	emptyCells int             // cells without counts

	images     *images.Set // of the points, once asked for (see pageImages)
	imagesRead bool

	annotations *report.Annotations   // in the order of a page
	earlier     *rundir.InitEmbedding // where the points start; nil if not at an earlier embedding
}

// errReading is the error of a run that was interrupted before it had its points.
var errReading = errors.New("interrupted while the points were read; nothing was written")

// sampled reports whether data.sample chooses the points to train on.
func (in *inputs) sampled() bool { return in.config.Data.Sample != nil }

// pageRows returns the rows of the input that are the points of a page; nil for all.
func (in *inputs) pageRows() []int {
	if in.rows == nil {
		return nil
	}
	return slices.Concat(in.rows, in.heldRows)
}

// names returns the names of the training points and the held-out points, from data.names
// or the barcodes of cells.
func (in *inputs) names() (trained, held []string) {
	n, _ := in.held.Dims()
	return in.annotations.Split(n, in.rows, in.heldRows)
}

// files returns the names of the files in the run folder with the positions of the
// training points, without ending, and with their rows.
func (in *inputs) files() (positions, rows string) {
	if in.sampled() {
		return rundir.SampleName, rundir.SampleRowsFile
	}
	return "embedding", rundir.RowsFile
}

// total returns the number of the rows of the input: of data.path and the files of data.holdout.
func (in *inputs) total() int {
	if h := in.config.Data.Holdout; h != nil && h.Share == 0 {
		n, _ := in.held.Dims()
		return in.n + n
	}
	return in.n
}

// read reads the data of a run and checks them.
func (r *pointRun) read(ctx context.Context) (err error) {
	c := r.config
	r.start = time.Now()
	if err := r.refuse(ctx); err != nil {
		return err
	}
	defer func() {
		r.load = time.Since(r.start)
		if ctx.Err() != nil {
			err = errReading
		}
	}()
	in, err := readInputs(ctx, c, r.origins, r.Log)
	if err != nil {
		return err
	}
	n, width := in.points.Dims()
	r.Log.Info("read the points", "data", in.points.Name, "points", n, "width", width)
	if m := in.points.Points; m != nil {
		if different := m.Distinct(); different < n-n/10 {
			in.different = different
			r.Log.Info("many points are equal, and a map cannot keep which of equal neighbours are the nearest", "points", n, "different", different)
		}
	}
	in.logCounts()
	if in.maybeCounts() {
		r.Log.Warn("all values are whole numbers, like counts, and are not normalised; give counts of cells as a folder of 10x or as Matrix Market (scripts/h5ad2npy writes one), and use graph.metric: cosine for counts of words")
	}
	if in.held != nil {
		held, _ := in.held.Dims()
		r.Log.Info("held out", "points", held)
	}
	if err := r.choosePreset(n); err != nil {
		return err
	}
	if err := r.checkSize(in.size()); err != nil {
		return err
	}
	if in.annotations, err = report.ReadAnnotations(ctx, r.Log, rundir.TableOf(c), report.WantedBy(c), in.total(), in.pageRows()); err != nil {
		return err
	}
	if r.from == nil {
		in.earlier, err = rundir.ReadInitEmbedding(ctx, c)
	}
	r.in = in
	return err
}

// choosePreset applies the preset for the number of points that were read. The heads of
// the files may not have this number.
func (r *pointRun) choosePreset(n int) error {
	if r.resumed {
		return nil
	}
	if r.given.LoadedFor() != n {
		r.given.Points = n
		c, _, err := r.schema.Load(&r.given)
		if err != nil {
			return err
		}
		c.Output.Dir = r.config.Output.Dir
		if c.Graph.File != nil { // it has its own number of neighbours
			c.Embed.Neighbors = r.config.Embed.Neighbors
		}
		*r.config = *c
	}
	if p := r.config.Preset; p.For(n) != p {
		r.Log.Info(fmt.Sprintf("preset: %s is %s for so few points", p, p.For(n)), "points", n)
	}
	return nil
}

// size returns the size of data.path, or of the rows that a file lists.
func (in *inputs) size() data.Size {
	d, more, nonzeros := &in.config.Data, in.rest, 0
	if d.Holdout != nil && d.Holdout.Share > 0 {
		more, nonzeros = more+len(in.heldRows), in.held.Points.Nonzeros()
	}
	if in.sampled() && d.Sample.File != "" {
		more = 0
	}
	size := in.points.Size(more)
	size.Nonzeros += nonzeros
	return size
}

// readInputs reads the points of a run, and its graph if one is given.
func readInputs(ctx context.Context, c *configs.Config, origins configs.Origins, log *slog.Logger) (in *inputs, err error) {
	if err := c.CheckFiles(); err != nil {
		return nil, err
	}
	in = &inputs{config: c, log: log}
	d, h := &c.Data, c.Data.Holdout
	if in.sampled() {
		err = in.readSample(ctx)
	} else if in.points, err = in.readPoints(ctx, d, c.ReadOptions(d)); err == nil {
		in.n, _ = in.points.Dims()
		in.warnOfRowNumbers()
		in.points, err = in.treatMissing(in.points)
	}
	if err != nil {
		return nil, in.explainTable(err, !in.sampled() && c.Graph.File == nil && c.Model.InitPath() == "")
	}
	if d.Imbalance != nil {
		if in.points, _, err = in.points.Imbalance(c.Embed.Seed); err != nil {
			return nil, fmt.Errorf("data.imbalance: %w", err)
		}
	}
	if h != nil && h.Share > 0 && in.held == nil {
		if in.points, in.held, _, err = in.points.Split(h.Share, c.Embed.Seed); err != nil {
			return nil, fmt.Errorf("data.holdout: %w", err)
		}
	}
	if in.held != nil {
		in.heldRows = in.held.Origins()
	}
	if in.sampled() || d.Imbalance != nil || d.Missing == "drop" {
		in.rows = in.points.Origins()
	}
	if h != nil && h.Share == 0 {
		err = in.explainTable(in.readHeld(ctx, h), false)
	}
	if err == nil && c.Graph.File != nil {
		n, _ := in.points.Dims()
		in.graph, err = rundir.ReadGraph(ctx, log, c, !origins.IsDefault("graph.k"), n)
	}
	return in, err
}

// readHeld reads the files of held-out points.
func (in *inputs) readHeld(ctx context.Context, h *configs.Holdout) (err error) {
	d := in.config.Data
	d.Path, d.Labels = h.Paths, d.HoldoutLabels
	o := in.config.ReadOptions(&d)
	o.Columns, o.Offset, o.Codings, o.AllowMissing = in.points.Columns(), in.points.Offset(), in.points.Codings, in.fill != nil
	if in.held, err = in.readPoints(ctx, &d, o); err == nil && in.fill != nil {
		in.held.Points.FillMissing(in.fill)
	}
	if errors.Is(err, data.ErrShape) {
		return fmt.Errorf("data.holdout: %w", err)
	}
	if err != nil {
		return err
	}
	n, got := in.held.Dims()
	if _, want := in.points.Dims(); got != want {
		return fmt.Errorf("data.holdout: got points of %d values, want %d as in data.path", got, want)
	}
	for i := 0; i < n && in.rows != nil; i++ {
		in.heldRows = append(in.heldRows, in.n+i)
	}
	if in.held.Points != nil && (in.points.Points == nil || in.points.Points.CSR == nil) {
		in.held.Points, err = in.held.Points.Dense()
	}
	return err
}

// readPoints reads all points of files: of data.path first, and then of data.holdout.
func (in *inputs) readPoints(ctx context.Context, c *configs.Data, o file.Options) (*data.Dataset, error) {
	o.Log = in.log
	pathKey, labelsKey := "data.path", "data.labels"
	if in.points != nil {
		pathKey, labelsKey = "data.holdout", "data.holdout_labels"
	}
	name, builtin := strings.CutPrefix(c.Path[0], configs.BuiltinPrefix)
	if in.counts == nil && (in.points != nil || !slices.ContainsFunc(c.Path, counts.Is)) {
		switch {
		case !builtin:
			return file.Read(ctx, c.Path, o)
		case len(c.Path) > 1 || len(c.Labels) > 0:
			return nil, fmt.Errorf("%s: %s has labels of its own, want no other path and no %s", pathKey, c.Path[0], labelsKey)
		}
		return file.Builtin(name)
	}
	o = c.Options()
	o.Log = in.log
	if in.counts != nil { // held-out points are scaled like the others
		o.Columns = in.counts.Names
	}
	read, err := counts.Open(ctx, c.Path, o)
	if err != nil {
		return nil, err
	}
	if in.counts != nil {
		set, err := in.counts.Apply(read)
		if err != nil {
			err = fmt.Errorf("data.holdout: %w", err)
		}
		return set, err
	}
	if in.counts, err = counts.Fit(read, c.Genes); err != nil {
		return nil, fmt.Errorf("%s: %w (data.path)", text.Few(c.Path, nil), err)
	}
	in.emptyCells = read.EmptyCells()
	return in.counts.Apply(read)
}

// treatMissing applies data.missing to points of data.path that lack values.
func (in *inputs) treatMissing(set *data.Dataset) (*data.Dataset, error) {
	m, what := set.Points, in.config.Data.Missing
	if what == "refuse" || m == nil || in.counts != nil {
		return set, nil
	}
	if what == "mean" {
		in.fill = m.FiniteMeans()
		in.log.Info("data.missing: replaced missing values by the means of their columns", "values", m.FillMissing(in.fill), "of", m.N*m.D)
		return set, set.Check()
	}
	set, err := set.DropMissing()
	if err != nil {
		return nil, fmt.Errorf("data.missing: %w", err)
	}
	in.log.Info("data.missing: left out points with missing values", "points", m.N-set.Points.N, "of", m.N)
	return set, nil
}

// fewestNumbered and fewestAscending are the least numbers of points where a column that
// counts them, without or with gaps, is no coincidence.
const fewestNumbered, fewestAscending = 5, 20

// warnOfRowNumbers warns of columns that count the points: whole numbers that ascend, most of
// them different, or that are nearly all numbers of a range, in any order.
func (in *inputs) warnOfRowNumbers() {
	m := in.points.Points
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
func (in *inputs) advise(columns []file.TextColumn) (advice []string) {
	d := &in.config.Data
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
func (in *inputs) explainTable(err error, drops bool) error {
	d, table, empty := &in.config.Data, new(file.TextError), new(file.EmptyError)
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

// readSample reads the points that data.sample chooses, and the held-out points of
// data.path. Only these need to fit into memory.
func (in *inputs) readSample(ctx context.Context) (err error) {
	d := &in.config.Data
	if i := slices.IndexFunc(d.Path, counts.Is); i >= 0 {
		return fmt.Errorf("data.sample: got counts of single cells in %s, want null; to train on fewer of them, set data.holdout to a share", d.Path[i])
	}
	o := in.config.ReadOptions(d)
	o.Log = in.log
	if strings.HasPrefix(d.Path[0], configs.BuiltinPrefix) {
		if in.builtin, err = in.readPoints(ctx, d, o); err == nil {
			in.n, _ = in.builtin.Dims()
		}
	} else if in.infos, err = stat(d.Path); err == nil {
		in.n, err = file.Count(ctx, d.Path, o)
	}
	var rows []int
	if err == nil && d.Sample.File != "" {
		if rows, err = rundir.ReadRows(ctx, d.Sample.File, in.n); err != nil {
			err = fmt.Errorf("data.sample: %w", err)
		}
	}
	if err != nil {
		return err
	}
	rows, held, err := in.chooseRows(rows)
	if err != nil {
		return err
	}
	in.rest = in.n - len(rows) - len(held)
	both := slices.Sorted(slices.Values(slices.Concat(rows, held)))
	set := in.builtin
	if set != nil {
		set, err = set.Take(both)
	} else {
		set, err = file.ReadRows(ctx, d.Path, o, both, in.n)
	}
	if err == nil {
		set, err = in.treatMissing(set)
	}
	in.points = set
	if err != nil || len(held) == 0 {
		return err
	}
	among := func(rows []int) []int {
		at := make([]int, len(rows))
		for k, row := range rows {
			at[k], _ = slices.BinarySearch(both, row)
		}
		return at
	}
	if in.points, err = set.Take(among(rows)); err == nil {
		in.held, err = set.Take(among(held))
	}
	return err
}

// chooseRows returns the training rows and the held-out rows of data.path. The held-out
// rows are drawn first, then the sample of the others, unless a file lists it.
func (in *inputs) chooseRows(listed []int) (rows, held []int, err error) {
	t, seed := in.config.Data.Sample, in.config.Embed.Seed
	var rest []int32
	_, count := in.config.Data.Divide(in.n)
	if count > 0 {
		var drawn []int32
		one := &data.Labels{Class: make([]int32, in.n), Names: []string{""}}
		if rest, drawn, err = one.Split(nil, count, seed); err != nil {
			return nil, nil, fmt.Errorf("data.holdout: %w", err)
		}
		for _, row := range drawn {
			held = append(held, int(row))
		}
	}
	if t.File == "" {
		n := in.n - count
		if t.Number > n {
			return nil, nil, fmt.Errorf("data.sample: got %d, want at most the number of points (%d)", t.Number, n)
		}
		rows, err = data.DrawRows(n, t.Of(n), seed)
		for k, i := range rows {
			if count > 0 {
				rows[k] = int(rest[i])
			}
		}
		return rows, held, err
	}
	rows = slices.DeleteFunc(listed, func(row int) bool { _, out := slices.BinarySearch(held, row); return out })
	if len(rows) == 0 {
		return nil, nil, fmt.Errorf("data.sample: %s: all its rows are held out (data.holdout)", t.File)
	}
	return rows, held, nil
}

// rowsKey identifies the training points among all points; "" without data.sample.
func (in *inputs) rowsKey() string {
	if !in.sampled() {
		return ""
	}
	hash := sha256.New()
	for _, row := range in.rows {
		_ = binary.Write(hash, binary.LittleEndian, int64(row)) // a hash never fails
	}
	return fmt.Sprintf("%d of %d, %x", len(in.rows), in.n, hash.Sum(nil)[:16])
}

func stat(paths []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return nil, fmt.Errorf("data.path: %w", err)
		}
	}
	return infos, nil
}

// manyColumns is the least number of columns where sparse whole numbers are taken for
// counts.
const manyColumns = 1000

// maybeCounts reports whether the points look like counts that nothing has normalized.
func (in *inputs) maybeCounts() bool {
	m := in.points.Points
	if m == nil || m.CSR == nil || m.D < manyColumns || in.config.Embed.GraphMetric == data.Cosine || in.config.Embed.GraphMetric.Direct() {
		return false
	}
	values := m.CSR.Value
	return len(values) > 0 && slices.Max(values) > 1 && !slices.ContainsFunc(values, func(v float32) bool { return v < 0 || v != float32(int64(v)) })
}

// logCounts logs what became of the counts.
func (in *inputs) logCounts() {
	if in.counts == nil {
		return
	}
	kept, wanted := len(in.counts.Genes), in.config.Data.Genes
	in.log.Info("made points from the counts", "genes", kept, "of", in.counts.Total, "median_library_size", in.counts.LibrarySize)
	if kept < wanted {
		in.log.Warn("fewer genes vary enough than data.genes asks for", "genes", kept, "wanted", wanted)
	}
	if in.emptyCells > 0 {
		in.log.Warn("cells without counts are zeros", "cells", in.emptyCells)
	}
}

// prepared is the neighbourhood that the embeddings of a run preserve, with the keys that
// identify it.
type prepared struct {
	*cne.Neighborhood
	pointsKey, heldKey, rowsKey, graphKey string // "" if there are none, or for all rows
}

// prepare finds the neighbours of the points, which it takes from the inputs, or reads
// them from the cache of an earlier run on the same points with the same settings.
func (in *inputs) prepare(ctx context.Context, o *cne.Options, dir *rundir.Dir) (*prepared, error) {
	c := in.config
	n, width := in.points.Dims()
	cache := dir.Cache(in.log, c.Graph.Cache)
	defer cache.Release()
	o.Log, o.Cache, o.Graph = in.log, cache, in.graph
	if in.counts != nil && o.Scaling == data.ScaleAuto { // the columns are one quantity
		o.Scaling = data.ScaleUnit
	}
	o.ChooseComponents(in.points.Points != nil && in.points.Points.CSR != nil, in.counts != nil)
	h, err := cne.Prepare(ctx, in.points, *o)
	if err != nil {
		return nil, c.ExplainPoints(err, n, o.Reduces(n, width))
	}
	h.Preprocessing.Fill, h.Preprocessing.NA = in.fill, c.Data.NA
	if in.counts != nil { // they have the names of the genes
		h.Preprocessing.Counts, h.Preprocessing.Columns = in.counts, nil
	}
	if h.Nearest != nil {
		h.Nearest.Dist2 = nil // quality needs only the indices
	}
	p := &prepared{Neighborhood: h, pointsKey: cache.PointsKey, rowsKey: in.rowsKey(), graphKey: rundir.GraphKey(h.Graph)}
	if in.held != nil {
		held, err := in.scaledHeld(ctx, h.Preprocessing, h.PCA)
		if err != nil {
			return nil, err
		}
		if p.heldKey, err = rundir.PointsKey(ctx, held.Source()); err != nil {
			return nil, err
		}
	}
	names, _ := in.names()
	o.Start, err = in.earlier.Start(in.log, h, names, c.Embed.Seed)
	return p, err
}

// scaledHeld returns the held-out points, scaled like the points of a run with these
// components.
func (in *inputs) scaledHeld(ctx context.Context, before *model.Preprocessing, components *pca.PCA) (*data.Dataset, error) {
	set := *in.held
	if set.Points != nil {
		set.Points = set.Points.Clone()
	}
	err := scaleLike(ctx, &set, before, components)
	if errors.Is(err, data.ErrDirection) {
		return nil, fmt.Errorf("data.holdout: %w (graph.metric)", err)
	}
	return &set, err
}

// scaleLike scales points in place like the points of a run with these components.
func scaleLike(ctx context.Context, set *data.Dataset, before *model.Preprocessing, components *pca.PCA) (err error) {
	if components == nil && set.Points != nil && set.Points.CSR != nil {
		set.Points, err = set.Points.Dense()
	}
	if err == nil {
		err = set.ScaleBy(before.Scaler)
	}
	if err == nil {
		err = set.Normalize(ctx, before.Metric, before.Scaler)
	}
	return err
}

// reduce returns the components of scaled points, or the points themselves.
func reduce(ctx context.Context, scaled *data.Dataset, components *pca.PCA, on *model.Device) (*data.Matrix, error) {
	if components == nil {
		return data.Collect(ctx, scaled.Source())
	}
	return components.Transform(ctx, scaled.Source(), on)
}

// readAgain reads the training points of the run in a folder, by its configuration, and
// prepares them as the run did. Other points are an error.
func readAgain(ctx context.Context, log *slog.Logger, folder string, before *model.Preprocessing, on *model.Device) (*data.Matrix, error) {
	if before == nil || before.Scaler == nil {
		return nil, errors.New("the model does not say how they were prepared")
	}
	c, origins, err := configs.Train.Load(&configs.Sources{File: filepath.Join(folder, rundir.ConfigFile), Context: ctx})
	if err != nil {
		return nil, err
	}
	rundir.LocateInputs(folder, c, origins)
	d := &c.Data
	if d.Holdout != nil && d.Holdout.Share == 0 { // other files than the points'
		d.Holdout, d.HoldoutLabels = nil, nil
	}
	if d.Holdout == nil && d.Imbalance == nil { // labels choose no points
		d.Labels = nil
	}
	c.Graph.File = nil
	log.Info("reading the training points again", "data", text.Few(d.Path, nil))
	in, err := readInputs(ctx, c, origins, log)
	if err == nil {
		err = scaleLike(ctx, in.points, before, before.PCA)
	}
	if err != nil {
		return nil, err
	}
	key, err := rundir.PointsKey(ctx, in.points.Source())
	if trained, _ := rundir.DataKeys(folder); err == nil && key != trained {
		err = fmt.Errorf("the points of %s are not those that the run was trained on, by its metrics.json", text.Few(d.Path, nil))
	}
	if err != nil {
		return nil, err
	}
	return reduce(ctx, in.points, before.PCA, on)
}
