package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/explorer"
	"cne/internal/figures"
	"cne/internal/plot"
	"cne/internal/rundir"
	"cne/internal/text"
	"cne/train/quality"
)

// The files of a report. Those of curves have the name of the key between these.
const (
	reportTable    = "report.csv"
	reportTimes    = "report-times.csv"
	reportMarkdown = "report.md"
	reportCurves   = "report-"
	reportPage     = "report.html"
)

// seedKey is the key over which figures are averaged.
const seedKey = "seed"

// mostViews bounds how many embeddings the explorer of a sweep holds: a few hundred
// kilobytes each.
const mostViews = 30

// A figure is a number that a run gave, under its name in the run's files: "accuracy",
// or "holdout.accuracy".
type figure struct {
	name  string
	value float64
}

// A finished is a run that is done.
type finished struct {
	run     int
	figures map[string]float64
}

// Report writes what the runs that are done gave: their figures in a table, averaged
// over seeds as Markdown, curves along each axis of numbers, and an explorer of their
// embeddings. It returns the names of the files.
func (s *Sweep) Report(ctx context.Context) (files []string, err error) {
	var done []finished
	var names []string // of figures, in the order of the files
	for i := range s.Runs {
		status, err := s.status(i)
		if err != nil {
			return nil, err
		}
		if !status.Done {
			continue
		}
		list, err := readFigures(s.RunDir(i))
		if err != nil {
			return nil, err
		}
		f := finished{i, map[string]float64{}}
		for _, x := range list {
			f.figures[x.name] = x.value
			if !slices.Contains(names, x.name) {
				names = append(names, x.name)
			}
		}
		done = append(done, f)
	}
	if done == nil {
		return nil, fmt.Errorf("no run of the sweep in %s is done, so that there is nothing to report", s.Output)
	}
	var figures, times []string
	for _, name := range names {
		switch {
		case takesTime(name):
			times = append(times, name)
		case name != seedKey: // which stands with what is varied, or is the same
			figures = append(figures, name)
		}
	}
	dir := rundir.At(s.Output)
	groups := s.groups(done)
	told := informative(figures, done)
	for _, x := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{reportTable, func(w io.Writer) error { return s.writeTable(w, done, figures) }},
		{reportTimes, func(w io.Writer) error { return s.writeTable(w, done, times) }},
		{reportMarkdown, func(w io.Writer) error { return s.writeMarkdown(w, groups, told) }},
	} {
		if err := dir.WriteFile(x.name, x.write); err != nil {
			return nil, err
		}
		files = append(files, x.name)
	}
	for _, key := range s.keys() {
		if curves := s.curves(key, groups, told); curves != nil {
			name := reportCurves + key + ".png"
			if err := curves.Save(dir.Path(name)); err != nil {
				return nil, err
			}
			files = append(files, name)
		}
	}
	page, err := s.page(ctx, done)
	if err != nil {
		return nil, err
	}
	if page != nil {
		if err := page.Save(dir.Path(reportPage)); err != nil {
			return nil, err
		}
		files = append(files, reportPage)
	}
	return files, nil
}

// takesTime tells whether a figure is of the machine, and not of the result.
func takesTime(name string) bool {
	return strings.HasPrefix(name, "seconds.") || strings.HasSuffix(name, ".seconds") || name == "peak_rss_bytes"
}

// readFigures returns the numbers in what a run has written at its end.
func readFigures(folder string) ([]figure, error) {
	var all []figure
	for _, name := range []string{rundir.MetricsFile, rundir.EvaluationFile} {
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the figures of a run cannot be read: %w", err)
		}
		found, err := numbersIn(json.NewDecoder(bytes.NewReader(content)), "")
		if err != nil {
			return nil, fmt.Errorf("%s is not what a run writes (%w); remove the run's folder and its status, and it is made again", path, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// numbersIn returns the numbers of the JSON value that comes next, whose name is given;
// those of lists count from 0.
func numbersIn(d *json.Decoder, name string) ([]figure, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	var all []figure
	switch token := token.(type) {
	case float64:
		all = append(all, figure{name, token})
	case json.Delim:
		for i := 0; d.More(); i++ {
			inner := strconv.Itoa(i)
			if token == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				inner = fmt.Sprint(key)
			}
			found, err := numbersIn(d, strings.TrimPrefix(name+"."+inner, "."))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		if _, err := d.Token(); err != nil { // the end of it
			return nil, err
		}
	}
	return all, nil
}

// writeTable writes a row for each run, with what it varies and what it gave.
func (s *Sweep) writeTable(w io.Writer, done []finished, names []string) error {
	table := csv.NewWriter(w)
	_ = table.Write(slices.Concat([]string{"run"}, s.Varied, names)) // Flush finds the error
	for _, f := range done {
		row := []string{s.RunName(f.run)}
		for _, k := range s.Varied {
			row = append(row, s.Runs[f.run].Values[k])
		}
		for _, name := range names {
			cell := ""
			if v, ok := f.figures[name]; ok {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			row = append(row, cell)
		}
		_ = table.Write(row)
	}
	table.Flush()
	return table.Error()
}

// keys returns what is varied but for the seed.
func (s *Sweep) keys() []string {
	return slices.DeleteFunc(slices.Clone(s.Varied), func(k string) bool { return k == seedKey })
}

// A group is the runs that differ in the seed alone.
type group struct {
	values []string // of Sweep.keys
	runs   []finished
}

// groups returns those of some runs, in the order of their first ones.
func (s *Sweep) groups(done []finished) []group {
	var all []group
	keys := s.keys()
	for _, f := range done {
		values := make([]string, len(keys))
		for i, k := range keys {
			values[i] = s.Runs[f.run].Values[k]
		}
		at := slices.IndexFunc(all, func(g group) bool { return slices.Equal(g.values, values) })
		if at < 0 {
			at = len(all)
			all = append(all, group{values: values})
		}
		all[at].runs = append(all[at].runs, f)
	}
	return all
}

// mean returns the mean of a figure, its standard deviation as that of a sample (NaN
// of one run), and in how many runs it is.
func (g *group) mean(name string) (mean, deviation float64, n int) {
	var values []float64
	for _, f := range g.runs {
		if v, ok := f.figures[name]; ok {
			values = append(values, v)
			mean += v
		}
	}
	n = len(values)
	mean /= float64(n)
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(n-1)), n
}

// informative returns the figures that are not the same in all runs, nor errors of
// others.
func informative(names []string, done []finished) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		first, some := done[0].figures[name]
		same := len(done) > 1 && !slices.ContainsFunc(done, func(f finished) bool {
			v, ok := f.figures[name]
			return ok != some || v != first
		})
		return same || strings.HasSuffix(name, "_error") || strings.HasSuffix(name, "_stderr")
	})
}

// writeMarkdown writes a row for each group.
func (s *Sweep) writeMarkdown(w io.Writer, groups []group, names []string) error {
	var b bytes.Buffer
	heading := append(s.keys(), "runs")
	heading = append(heading, names...)
	row := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	row(slices.Clone(heading))
	row(slices.Repeat([]string{"---"}, len(heading)))
	deviations := false
	for _, g := range groups {
		cells := append(slices.Clone(g.values), strconv.Itoa(len(g.runs)))
		for _, name := range names {
			mean, deviation, n := g.mean(name)
			switch {
			case n == 0:
				cells = append(cells, "")
			case n == 1:
				cells = append(cells, fmt.Sprintf("%.5g", mean))
			default:
				deviations = true
				cells = append(cells, fmt.Sprintf("%.5g ± %.2g", mean, deviation))
			}
		}
		row(cells)
	}
	if deviations {
		fmt.Fprintf(&b, "\n± is the standard deviation over the runs of a row, which differ in their seed alone.\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// curvePanels are the figures that curves show, if runs have them, and what they are
// called; others are shown only if none of these is there.
var curvePanels = []struct {
	name, label string
	logarithmic bool // over several orders of magnitude
}{
	{"partition_function", "partition function", true},
	{"knn_recall", "kNN recall", false},
	{"spearman", "Spearman correlation", false},
	{"kl", "KL divergence", false},
	{"accuracy", "kNN accuracy", false},
	{"holdout.accuracy", "kNN accuracy, held out", false},
}

// curves returns the picture of figures along a key, a line for each combination of the
// others, with the standard deviation over seeds; nil if the key has not at least two
// numbers, or nothing depends on it.
func (s *Sweep) curves(key string, groups []group, names []string) *plot.Curves {
	at := slices.Index(s.keys(), key)
	type point struct {
		x float64
		g *group
	}
	lines := map[string][]point{}
	var order []string
	different := map[float64]bool{}
	positive := true
	for i := range groups {
		g := &groups[i]
		x, err := strconv.ParseFloat(g.values[at], 64)
		if err != nil {
			continue
		}
		different[x] = true
		positive = positive && x > 0
		var others []string
		for j, k := range s.keys() {
			if j != at {
				others = append(others, k+"="+text.Shorten(g.values[j]))
			}
		}
		name := strings.Join(others, " ")
		if lines[name] == nil {
			order = append(order, name)
		}
		lines[name] = append(lines[name], point{x, g})
	}
	if len(different) < 2 {
		return nil
	}
	all := slices.Sorted(maps.Keys(different))
	logX := positive && all[len(all)-1] >= 30*all[0]
	curves := &plot.Curves{}
	for _, p := range curvePanels {
		if !slices.Contains(names, p.name) {
			continue
		}
		panel := plot.Panel{XLabel: key, YLabel: p.label, LogX: logX, LogY: p.logarithmic}
		for _, name := range order {
			points := lines[name]
			slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
			series := plot.Series{Name: name, Marker: true}
			for _, pt := range points {
				mean, deviation, n := pt.g.mean(p.name)
				if n == 0 || p.logarithmic && mean <= deviation {
					continue
				}
				series.X, series.Y = append(series.X, pt.x), append(series.Y, mean)
				series.Low, series.High = append(series.Low, mean-deviation), append(series.High, mean+deviation)
			}
			if len(series.X) > 0 {
				panel.Series = append(panel.Series, series)
			}
		}
		if len(panel.Series) > 0 {
			curves.Panels = append(curves.Panels, panel)
		}
	}
	if len(curves.Panels) == 0 {
		return nil
	}
	return curves
}

// page returns the explorer of the runs' embeddings, each turned and reflected onto the
// one before; nil if there is none, or they are of different points. Of many runs it
// shows those of each group's first seed.
func (s *Sweep) page(ctx context.Context, done []finished) (*explorer.Page, error) {
	shown := done
	if len(shown) > mostViews {
		shown = nil
		for _, g := range s.groups(done) {
			shown = append(shown, g.runs[0])
		}
		shown = shown[:min(len(shown), mostViews)]
		s.Log.Info("the explorer shows some of the embeddings", "shown", len(shown), "of", len(done))
	}
	var page *explorer.Page
	var before *data.Matrix
	key := ""
	for _, f := range shown {
		dir := s.RunDir(f.run)
		file, err := rundir.LearntFile(dir)
		if err != nil {
			return nil, nil // runs that embed nothing in the plane
		}
		set, err := rundir.OpenEmbedding(ctx, []string{file}, data.Options{})
		if err != nil {
			return nil, err
		}
		m := rundir.ReadMetrics(dir)
		if page == nil {
			key = m.PointsKey
			if page, err = figures.RunPage(ctx, s.Log, dir, filepath.Base(s.Output), figures.Scatter(set.Points, set.Labels, configs.Plot{}), nil, !s.holdsOut(f.run), figures.Wanted{}); err != nil {
				return nil, err
			}
			page.Views = nil
		} else {
			if m.PointsKey != key || set.Points.N != before.N {
				s.Log.Info("there is no explorer of all runs, since they are of different points")
				return nil, nil
			}
			if set.Points.D == before.D {
				if _, _, err := quality.Align(set.Points, before); err != nil && !errors.Is(err, quality.ErrUndefined) {
					return nil, err
				}
			}
		}
		before = set.Points
		page.Views = append(page.Views, explorer.View{Name: s.Describe(f.run), Embedding: set.Points, Facts: figures.Facts(&m.Figures, m.Z)})
	}
	if len(page.Views) > 1 {
		page.Slider = "run"
	}
	return page, nil
}

// holdsOut tells whether a run has placed points that are not in its embedding, so that
// its images would not be those of the points.
func (s *Sweep) holdsOut(run int) bool {
	for _, key := range []string{"data.holdout", "data.train_on"} {
		if v := s.Runs[run].Values[key]; v != "" && v != "null" {
			return true
		}
	}
	return false
}
