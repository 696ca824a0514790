// Package points reads the points of a run, divides their rows, and prepares them.
package points

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

// Inputs are the data that a run reads.
type Inputs struct {
	Config *configs.Config
	log    *slog.Logger
	graph  *neighbors.Graph // of graph.file; nil without

	// Points are the training points, until Prepare takes their values, and Held the
	// held-out points or nil, both as read.
	Points, Held *data.Dataset
	Division     *cne.Division // of the n rows of data.path, and after them of data.holdout
	N            int
	infos        []fs.FileInfo // of data.path, as they were when they were read

	Different  int             // points, if fewer than nine of ten; otherwise 0
	fill       []float32       // replaces missing values; nil: nothing does
	counts     *counts.Scaling // how counts became points; nil for other data
	emptyCells int             // cells without counts

	Page       cne.PageOptions // what all pages show: names and columns, and images, once asked for
	ImagesRead bool

	Earlier *rundir.EarlierEmbedding // where the points start; nil if not at an earlier embedding
	Towards *rundir.EarlierEmbedding // where a pull is towards; nil if not an earlier embedding
}

// Sampled reports whether data.sample chooses the points to train on.
func (in *Inputs) Sampled() bool { return in.Config.Data.Sampled() }

// ListsRows reports whether the rows of the embedding are listed, since it may lack some.
func (in *Inputs) ListsRows() bool {
	return in.Config.Data.LeavesOut() || in.Config.Data.Holdout.Share > 0
}

// PageRows returns the rows of the input that are the points of a page; nil for all.
func (in *Inputs) PageRows() []int {
	if !in.Sampled() && !in.Config.Data.LeavesOut() {
		return nil
	}
	return slices.Concat(in.Division.Trained, in.Division.Held)
}

// Names returns the names of the training points and the held-out points, from data.names
// or the barcodes of cells.
func (in *Inputs) Names() (trained, held []string) {
	all := in.Page.Names
	if all != nil && in.PageRows() != nil {
		n := len(in.Division.Trained)
		return all[:n], all[n:]
	}
	return selection.Pick(all, in.Division.Trained), selection.Pick(all, in.Division.Held)
}

// Rest returns the number of points that are only placed in the end (data.sample).
func (in *Inputs) Rest() int {
	if !in.Sampled() {
		return 0
	}
	held, _ := slices.BinarySearch(in.Division.Held, in.N) // those in data.path
	return in.N - len(in.Division.Trained) - held - len(in.Division.Left)
}

// Files returns the names of the files in the run folder with the positions of the
// training points, without ending, and with their rows.
func (in *Inputs) Files() (positions, rows string) {
	if in.Sampled() {
		return rundir.SampleName, rundir.SampleRowsFile
	}
	return "embedding", rundir.RowsFile
}

// Total returns the number of the rows of the input: of data.path and the files of data.holdout.
func (in *Inputs) Total() int {
	if len(in.Config.Data.Holdout.Paths) > 0 {
		n, _ := in.Held.Dims()
		return in.N + n
	}
	return in.N
}

// Size returns the size of data.path without the rows that are left out, or of the rows that
// a file lists.
func (in *Inputs) Size() data.Size {
	d, more, nonzeros := &in.Config.Data, in.N-len(in.Division.Left)-len(in.Division.Trained), 0
	if d.Holdout.Share > 0 {
		nonzeros = in.Held.Points.Nonzeros()
	}
	if d.Sample.File != "" {
		more = 0
	}
	size := in.Points.Size(more)
	size.Nonzeros += nonzeros
	return size
}

// Read reads the points of a run, and its graph if one is given.
func Read(ctx context.Context, c *configs.Config, origins configs.Origins, log *slog.Logger) (_ *Inputs, err error) {
	defer kind.Catch(&err)
	kind.Check(c.CheckFiles())
	in := &Inputs{Config: c, log: log}
	kind.Check(in.explainTable(in.readTraining(ctx), c.Graph.File == "" && c.Model.InitPath() == ""))
	if held := c.Data.Holdout.Paths; len(held) > 0 {
		kind.Check(in.explainTable(in.readHeld(ctx, held), false))
	}
	if c.Graph.File != "" {
		n, _ := in.Points.Dims()
		in.graph = kind.Got(rundir.ReadGraph(ctx, log, c, origins, n, in.Points))
	}
	return in, nil
}

// readTraining reads data.path and divides its rows. With data.sample, only the points that
// are trained on or held out need to fit into memory. The functions below that return no
// error fail as kind.Need does.
func (in *Inputs) readTraining(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	d := &in.Config.Data
	o := in.Config.ReadOptions(d)
	o.Log = in.log
	if len(d.NA) > 0 && len(d.Labels) == 0 && slices.ContainsFunc(d.Path, func(path string) bool { return !file.MayBeTable(path) }) {
		in.log.Warn("data.na is for tables only; in arrays, numpy.nan is a missing value")
	}
	rules := d.Rules(in.Config.Embed.Seed)
	if !in.Sampled() {
		set := kind.Got(in.readPoints(ctx, d, o))
		in.N, _ = set.Dims()
		in.warnOfRowNumbers(set)
		in.fillMissing(set)
		var missing []int
		if set.Points != nil {
			missing = in.unwanted(set.Points, in.N)
		}
		in.divide(rules, set.Labels, missing)
		in.take(set, in.Division.Trained, in.Division.Held)
		return nil
	}
	if i := slices.IndexFunc(d.Path, func(path string) bool { return counts.Is(path, o) }); i >= 0 {
		return fmt.Errorf("data.sample: got counts of single cells in %s, want null; to train on fewer of them, set data.holdout to a share", d.Path[i])
	}
	in.infos = stat(d.Path)
	in.N = kind.Got(file.Count(ctx, d.Path, o))
	if d.Sample.File != "" {
		rules.Listed, err = rundir.ReadRows(ctx, d.Sample.File, in.N)
		kind.Checkf(err, "data.sample: %w", err)
	}
	var labels *data.Labels
	var missing []int
	if in.Config.Data.LeavesOut() {
		labels, missing = in.survey(ctx)
	}
	in.divide(rules, labels, missing)
	both := slices.Sorted(slices.Values(slices.Concat(in.Division.Trained, in.Division.Held)))
	set := kind.Got(file.ReadRows(ctx, d.Path, o, both, in.N))
	in.fillMissing(set)
	among := func(rows []int) []int {
		found := make([]int, len(rows))
		for k, row := range rows {
			found[k], _ = slices.BinarySearch(both, row)
		}
		return found
	}
	in.take(set, among(in.Division.Trained), among(in.Division.Held))
	return nil
}

// divide divides the rows of data.path.
func (in *Inputs) divide(rules cne.DivisionRules, labels *data.Labels, missing []int) {
	if known, _ := labels.Known(); labels != nil && len(known) < len(labels.Class) {
		in.log.Info("points without a label, such as NA, are grey and left out of the accuracy", "points", len(labels.Class)-len(known))
	}
	keys, what := "data.missing", "points with missing values"
	zeros := selection.If(in.Config.Embed.GraphMetric == data.Correlation, "points of equal values", "points of zeros")
	if d := in.Config.Data; d.Missing != "drop" {
		keys, what = "data.zero_rows", zeros
	} else if d.ZeroRows == "drop" {
		keys, what = "data.missing, data.zero_rows", what+", and "+zeros
	}
	if len(missing) == in.N {
		remedy := selection.If(in.Config.Data.Missing == "drop", "; --set data.missing=mean fills in the means of the columns", "")
		kind.Check(fmt.Errorf("%s: %s: got only %s, want others%s", keys, text.Few(in.Config.Data.Path, nil), what, remedy))
	}
	division, err := rules.Divide(in.N, labels, missing)
	kind.Check(configs.Cause(err))
	if in.Division = division; len(missing) > 0 {
		in.log.Info(keys+": left out "+what, "points", len(missing), "of", in.N)
	}
}

// unwanted returns which of the first n rows data.missing and data.zero_rows leave out.
func (in *Inputs) unwanted(m *data.Matrix, n int) (rows []int) {
	if in.Config.Data.Missing == "drop" {
		rows = m.Missing(n)
	}
	if in.Config.Data.ZeroRows == "drop" {
		rows = append(rows, m.ZeroRows(n, in.Config.Embed.GraphMetric)...)
	}
	slices.Sort(rows) // no row is in both
	return rows
}

// take takes the training points and the held-out points out of a set.
func (in *Inputs) take(set *data.Dataset, trained, held []int) {
	in.Config.Data.ArrangeLabels(set.Labels)
	in.Points = set
	if n, _ := set.Dims(); len(trained) == n {
		return
	}
	in.Points = kind.Got(set.Take(trained))
	if len(held) > 0 {
		in.Held = kind.Got(set.Take(held))
	}
}

// survey reads all points of data.path, block by block, and returns what leaves rows out: their
// labels for data.imbalance, and the rows for data.missing and data.zero_rows.
func (in *Inputs) survey(ctx context.Context) (labels *data.Labels, missing []int) {
	d, o := &in.Config.Data, in.Config.ReadOptions(&in.Config.Data)
	o.DropText = o.DropText || o.LabelColumn != "" // reading the points refuses what is not only words
	rows := kind.Got(file.Open(ctx, d.Path, o))
	defer rows.Close()
	in.log.Info("looking through all points", "points", in.N)
	var all []string
	block := data.NewMatrix(data.BlockRows(rows.Width()), rows.Width())
	for first := 0; ; {
		kind.Check(ctx.Err())
		n, err := rows.Next(block)
		if err == io.EOF {
			break
		}
		kind.Check(err)
		missing = append(missing, selection.Map(in.unwanted(block, n), func(i int) int { return first + i })...)
		all, first = append(all, rows.Labels()...), first+n
	}
	if len(o.Labels) > 0 {
		all = kind.Got(file.ReadLabels(ctx, o.Labels, in.N, o.NA))
	}
	if d.Imbalance != "" && all != nil {
		labels = data.NewLabels(all)
	}
	return labels, missing
}

// readHeld reads the files of held-out points.
func (in *Inputs) readHeld(ctx context.Context, paths []string) (err error) {
	defer kind.Catch(&err)
	d := in.Config.Data
	if column := d.Reading().LabelColumn; column != "" && len(d.HoldoutLabels) == 0 {
		d.LabelColumn = column // data.labels may be a column
		lacks := func(path string) bool {
			_, err := file.FindColumn(ctx, []string{path}, column, file.Options{Header: d.Header, LabelColumn: column})
			return errors.Is(err, data.ErrOption)
		}
		if !slices.ContainsFunc(paths, func(path string) bool { return !lacks(path) }) { // reading refuses files of both kinds
			d.LabelColumn = ""
			in.log.Warn("the held-out points have no labels: the column of the labels is missing (or give data.holdout_labels)",
				"column", column, "files", text.Few(paths, nil))
		}
	}
	d.Path, d.Labels = paths, d.HoldoutLabels
	o := in.Config.ReadOptions(&d)
	o.Columns, o.Offset, o.Codings, o.AllowMissing = in.Points.Columns(), in.Points.Offset(), in.Points.Codings, in.fill != nil
	in.Held, err = in.readPoints(ctx, &d, o)
	if errors.Is(err, data.ErrShape) {
		err = fmt.Errorf("data.holdout: %w", err)
	}
	kind.Check(err)
	if in.fill != nil {
		in.Held.Points.FillMissing(in.fill)
	}
	n, got := in.Held.Dims()
	if _, want := in.Points.Dims(); got != want {
		return fmt.Errorf("data.holdout: got points of %d values, want %d as in data.path", got, want)
	}
	for i := range n {
		in.Division.Held = append(in.Division.Held, in.N+i)
	}
	if in.Held.Points != nil && (in.Points.Points == nil || in.Points.Points.CSR == nil) {
		in.Held.Points = kind.Got(in.Held.Points.Dense())
	}
	return nil
}

// readPoints reads all points of files: of data.path first, and then of data.holdout.
func (in *Inputs) readPoints(ctx context.Context, c *configs.Data, o file.Options) (*data.Dataset, error) {
	o.Log = in.log
	if in.counts == nil && (in.Points != nil || !slices.ContainsFunc(c.Path, func(path string) bool { return counts.Is(path, o) })) {
		return file.Read(ctx, c.Path, o)
	}
	o = c.Reading()
	o.Log = in.log
	if in.counts != nil { // held-out points are scaled like the others
		o.Columns = in.counts.Names
	}
	read, err := counts.Open(ctx, c.Path, o)
	if err == nil && read.Labels != nil {
		err = file.CheckClasses(c.Path[0], read.Labels)
	}
	if errors.Is(err, data.ErrNotFinite) { // without the advice for tables
		return nil, fmt.Errorf("%v; data.missing is not for counts: mend the file", err)
	} else if err != nil {
		return nil, err
	}
	if in.counts != nil {
		set, err := in.counts.Apply(read)
		if missing := in.counts.Missing(read); missing > 0 {
			in.log.Warn("genes of training are missing in held-out cells, and are taken for zeros", "missing", missing, "of", len(in.counts.Genes))
		}
		return set, err
	}
	if in.counts, err = counts.Fit(read, c.Genes); err != nil {
		return nil, fmt.Errorf("%s: %w (data.path)", text.Few(c.Path, nil), err)
	}
	in.emptyCells = read.EmptyCells()
	return in.counts.Apply(read)
}

// fillMissing replaces missing values of points, if data.missing says so.
func (in *Inputs) fillMissing(set *data.Dataset) {
	m := set.Points
	if !in.Config.Data.FillsMissing() || m == nil || in.counts != nil {
		return
	}
	in.fill = m.FiniteMeans()
	isEmpty := func(i int) bool { return m.CSR == nil && !slices.ContainsFunc(m.Row(i), simd.IsFinite) }
	if empty := selection.Count(m.Missing(m.N), isEmpty); empty > 0 {
		in.log.Warn("data.missing: points without any value are put at the means of all columns; leave their rows out of the file", "points", empty)
	}
	if filled := m.FillMissing(in.fill); filled > 0 {
		in.log.Info("data.missing: replaced missing values by the means of their columns", "values", filled, "of", m.N*m.D)
	}
	kind.Check(set.Check())
}
