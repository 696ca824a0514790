package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/plot"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/train/quality"
)

// OpenMap reads an embedding from files, or from a run folder with its held-out points,
// and returns the files, too.
func OpenMap(ctx context.Context, inputs []string, o file.Options) (files []string, m Map, err error) {
	defer kind.Catch(&err)
	files, set, err := rundir.OpenEmbedding(ctx, inputs, o)
	kind.Check(err)
	m = Map{Positions: set.Points, Labels: set.Labels}
	if len(inputs) == 1 && files[0] != inputs[0] {
		held := kind.Got(rundir.OpenHeldOut(ctx, files[0], o))
		if held != nil {
			m = WithHeldOut(m, held.Points, held.Labels)
		}
	}
	arrange(m.Labels, inputs[0], o)
	return files, m, ctx.Err()
}

// arrange gives labels of a run folder, or from the file that options name, the order and
// the colours of the cells' file.
func arrange(l *data.Labels, folder string, o file.Options) {
	if len(o.Labels) == 0 && o.LabelColumn == "" {
		ArrangeLikeRun(l, folder)
	}
	(&configs.Data{Options: file.Options{Labels: o.Labels}}).ArrangeLabels(l)
}

// ArrangeLikeRun gives labels the order and the colours of a run's classes, if it has any.
func ArrangeLikeRun(l *data.Labels, folder string) {
	runConfig(slog.New(slog.DiscardHandler), folder, false).Data.ArrangeLabels(l)
}

// OpenPanels reads several embeddings, to be drawn side by side. Without titles, runs that
// differ in their settings are named by these, and others by their names.
func OpenPanels(ctx context.Context, inputs, titles []string, o file.Options) ([]cne.PicturePanel, error) {
	var panels []cne.PicturePanel
	if len(titles) == 0 {
		titles = titlesOf(inputs)
	}
	for i, input := range inputs {
		_, set, err := rundir.OpenEmbedding(ctx, []string{input}, o)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		arrange(set.Labels, input, o)
		panels = append(panels, cne.PicturePanel{Title: titles[i], Embedding: set.Points, Labels: set.Labels})
	}
	return panels, nil
}

// Grid arranges runs by the values of two keys, with titles such as "s = 0.5", and returns
// the runs in the order of their cells.
func Grid(o *cne.PictureOptions, inputs []string, rows, columns string) (runs []string, err error) {
	all, err := runConfigs(inputs)
	if err != nil {
		return nil, fmt.Errorf("--grid: want run folders, since the settings of runs make rows and columns: %w", err)
	}
	sorted := func(key string) (class []int32, titles []string) {
		name, values := "", make([]string, len(all))
		for i, c := range all {
			name, values[i] = configs.Train.Setting(c, key)
		}
		l := data.NewLabels(values)
		return l.Class, selection.Map(l.Names, func(value string) string { return name + " = " + value })
	}
	row, rowTitles := sorted(rows)
	column, columnTitles := sorted(columns)
	o.RowTitles, o.ColumnTitles, o.Columns = rowTitles, columnTitles, len(columnTitles)
	for cell := range len(rowTitles) * o.Columns {
		for i, input := range inputs {
			if int(row[i])*o.Columns+int(column[i]) == cell {
				runs, o.Cells = append(runs, input), append(o.Cells, cell)
			}
		}
		if n := len(runs); n > 1 && o.Cells[n-2] == cell {
			return nil, fmt.Errorf("--grid: got %s and %s with the same %s and %s, want runs that differ in these keys only", runs[n-2], runs[n-1], rows, columns)
		}
	}
	return runs, nil
}

// runConfigs returns the configurations of runs.
func runConfigs(inputs []string) (all []*configs.Config, err error) {
	for _, input := range inputs {
		c, _, err := configs.Train.Load(&configs.Sources{File: filepath.Join(input, rundir.ConfigFile)})
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// titlesOf returns a title for each input: its settings if these tell all runs apart and are
// short, or else the end of its path, or the path if others end like it.
func titlesOf(inputs []string) []string {
	const room = 50 // characters above a panel
	tooLong := func(s string) bool { return utf8.RuneCountInString(s) > room }
	if all, err := runConfigs(inputs); err == nil {
		settings := configs.Train.Differences(all)
		if !slices.ContainsFunc(settings, tooLong) && len(selection.Set(settings)) == len(inputs) {
			return settings
		}
	}
	names := selection.Map(inputs, func(input string) string {
		if at, err := filepath.Abs(input); err == nil {
			input = at // so that "." has a name
		}
		return filepath.Base(file.TrimEnding(input))
	})
	return selection.Map(selection.UpTo[int](len(inputs)), func(i int) string {
		isAlone := selection.Count(names, func(name string) bool { return name == names[i] }) == 1
		return selection.If(isAlone, names[i], filepath.Clean(inputs[i]))
	})
}

// OpenCurves reads the records of runs and returns the picture of their curves.
func OpenCurves(ctx context.Context, inputs []string, p cne.PictureOptions) (*plot.Curves, error) {
	runs := make([]*rundir.Records, len(inputs))
	for i, input := range inputs {
		var err error
		if runs[i], err = rundir.ReadRecords(ctx, input); cmp.Or(err, ctx.Err()) != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
	}
	return Curves(runs, inputs, p), nil
}

// Curves draws the curves of runs, a panel for each kind. paths are the runs' names on
// the command line; p has the title and the size. The learnt Z of NC-t-SNE is drawn with
// the partition function, because it estimates this function.
func Curves(runs []*rundir.Records, paths []string, p cne.PictureOptions) *plot.Curves {
	type part struct {
		name   string
		dashed bool
	}
	has := func(name string) bool {
		return slices.ContainsFunc(runs, func(r *rundir.Records) bool { return r.Has(name) })
	}
	c := &plot.Curves{Title: p.Title, Columns: p.Columns, Letters: p.Letters, Width: p.Width, Height: p.Height}
	names := []string{""} // of a single run
	if len(runs) > 1 {
		names = titlesOf(paths)
	}
	type panel struct {
		title, unit string
		parts       []part
		log         float64 // least ratio of the largest to the smallest value for a logarithmic axis
	}
	unit := selection.If(slices.ContainsFunc(runs, func(r *rundir.Records) bool { return r.Images }), "per image", "per edge")
	panels := []panel{{"Loss", unit, []part{{"loss", false}}, 20}}
	for _, f := range quality.Table() {
		if !f.OfEmbedding() {
			continue
		}
		next := panel{strings.ToUpper(f.Title[:1]) + f.Title[1:], f.Unit, []part{{f.Key, false}}, math.Inf(1)}
		if f.Wide {
			next.log = 5
		}
		if f.Metric == quality.MetricPartition {
			next.parts = append(next.parts, part{"z", has(f.Key)})
			switch {
			case !has(f.Key):
				next.title = "Learnt Z"
			case has("z"):
				next.title += " (dashed: learnt Z)"
			}
		}
		panels = append(panels, next)
	}
	panels = append(panels,
		panel{"kNN accuracy of the representation", fmt.Sprintf("of at most %d test images", configs.MonitorTest), []part{{"accuracy", false}}, math.Inf(1)},
		panel{"Learning rate", "", []part{{"lr", false}}, math.Inf(1)})
	for _, panel := range panels {
		drawn := plot.Panel{Title: panel.title, XLabel: "epoch", YLabel: panel.unit}
		low, high := math.Inf(1), math.Inf(-1)
		for i, r := range runs {
			for _, part := range panel.parts {
				if !r.Has(part.name) {
					continue
				}
				s := plot.Series{Name: names[i], Dashed: part.dashed}
				for at, y := range r.Curves[part.name] {
					if !math.IsNaN(y) { // a line joins what was measured
						s.X, s.Y = append(s.X, r.Epochs[at]), append(s.Y, y)
						low, high = min(low, y), max(high, y)
					}
				}
				drawn.Series = append(drawn.Series, s)
			}
		}
		if len(drawn.Series) == 0 {
			continue
		}
		drawn.LogY = low > 0 && high/low >= panel.log
		if len(runs) == 1 {
			drawn.Marks = phaseMarks(runs[0].Phases)
		}
		c.Panels = append(c.Panels, drawn)
	}
	return c
}

// phaseMarks marks where a phase begins, with names if there is room for them.
func phaseMarks(ends []float64) []plot.Mark {
	const most = 3
	var marks []plot.Mark
	for i, at := range ends {
		m := plot.Mark{X: at}
		if len(ends) <= most {
			m.Name = fmt.Sprintf("phase %d", i+2)
		}
		marks = append(marks, m)
	}
	return marks
}

// Evaluation is the output of cne evaluate.
type Evaluation struct {
	Data  string `json:"data,omitempty"`  // their name
	N     int    `json:"n"`               // points
	Edges int    `json:"edges,omitempty"` // directed
	// K is the number of neighbours for kNN recall and trustworthiness, and AccuracyK the
	// number of neighbours that vote for accuracy.
	K         int `json:"k"`
	AccuracyK int `json:"accuracy_k"`
	// Components is the number of principal components that stand for the points; 0 for the
	// points themselves.
	Components int                `json:"components,omitempty"`
	Against    string             `json:"against,omitempty"`
	Embeddings []EvaluatedFigures `json:"embeddings"` // in the order of the command line
	*neighbors.Recall
	Seconds EvaluationSeconds `json:"seconds"`
	Version string            `json:"version"`
}

// EvaluatedFigures are the figures of one embedding. Figures that cannot be measured or
// are undefined are left out.
type EvaluatedFigures struct {
	Path string `json:"path"`
	Dim  int    `json:"dim"`
	quality.Figures
	// Against are the figures that compare it with another embedding.
	Against *quality.Figures `json:"against,omitempty"`
}

// EvaluationSeconds says where the time went, in sums over the embeddings.
type EvaluationSeconds struct {
	Prepare         float64 `json:"prepare"` // reading, principal components and graph
	Figures         float64 `json:"figures"` // all but these:
	Trustworthiness float64 `json:"trustworthiness,omitempty"`
	Against         float64 `json:"against,omitempty"`
}

// Print writes the figures as a table with a column for each embedding.
func (e *Evaluation) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(f *EvaluatedFigures) string) {
		cells, some := make([]string, len(e.Embeddings)), false
		for k := range e.Embeddings {
			cells[k] = cell(&e.Embeddings[k])
			some = some || cells[k] != ""
		}
		if some {
			fmt.Fprintf(table, "%s\t%s\n", name, strings.Join(cells, "\t"))
		}
	}
	estimate := func(name string, f quality.Figure, figures func(of *EvaluatedFigures) *quality.Figures) {
		row(name, func(of *EvaluatedFigures) string {
			if figures(of) == nil {
				return ""
			}
			v, standardError := f.Of(figures(of))
			if v == nil {
				return ""
			}
			return fmt.Sprintf(f.Format, *v) + quality.PlusMinus(standardError)
		})
	}
	row("", func(f *EvaluatedFigures) string { return text.Printable(f.Path) })
	row("coordinates", func(f *EvaluatedFigures) string { return strconv.Itoa(f.Dim) })
	for _, f := range quality.DisplayTable() {
		estimate(f.Title+f.OfNeighbors(e.K, e.Components)+f.Arrow(), f, func(of *EvaluatedFigures) *quality.Figures { return &of.Figures })
	}
	for _, f := range quality.DisplayTable() {
		estimate("against "+text.Printable(e.Against)+": "+f.Heading()+f.OfNeighbors(e.K, 0), f,
			func(of *EvaluatedFigures) *quality.Figures { return of.Against })
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if e.Edges > 0 {
		if _, err := fmt.Fprintf(w, "%d points, %d directed edges\n", e.N, e.Edges); err != nil || e.Recall == nil {
			return err
		}
		_, err := fmt.Fprintf(w, "approximate neighbours: %s\n", e.Recall)
		return err
	}
	_, err := fmt.Fprintf(w, "%d points\n", e.N)
	return err
}
