package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"cne/configs"
	"cne/internal/app/rundir"
	"cne/internal/plot"
	"cne/train/quality"
)

// Curves draws the curves of runs, those of one kind in one panel. The paths are
// those by which the runs were named. The learnt Z of NC-t-SNE stands beside the
// partition function, which it estimates.
func Curves(runs []*rundir.Records, paths []string, p configs.Plot) *plot.Curves {
	type part struct {
		name   string
		dashed bool
	}
	has := func(name string) bool {
		return slices.ContainsFunc(runs, func(r *rundir.Records) bool { return r.Has(name) })
	}
	c := &plot.Curves{Title: p.Title, Width: p.WidthCM / centimetres, Height: p.HeightCM / centimetres}
	names := runNames(paths)
	type panel struct {
		title, unit string
		parts       []part
		log         float64 // ratio of the largest to the smallest value from which on the axis is logarithmic
	}
	panels := []panel{{"Loss", "per edge", []part{{"loss", false}}, 20}}
	for _, f := range quality.Table() {
		if !f.OfEmbedding() {
			continue
		}
		next := panel{capitalised(f.Title), f.Unit, []part{{f.Key, false}}, math.Inf(1)}
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
	for _, panel := range append(panels, panel{"Accuracy", "", []part{{"accuracy", false}}, math.Inf(1)}) {
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

// capitalised returns a title with a capital letter.
func capitalised(title string) string { return strings.ToUpper(title[:1]) + title[1:] }

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

// runNames names each run by the end of its path, or by all of it if that would
// give two the same name. A single run needs none.
func runNames(paths []string) []string {
	names := make([]string, len(paths))
	if len(paths) == 1 {
		return names
	}
	short := make([]string, len(paths))
	for i, path := range paths {
		if at, err := filepath.Abs(path); err == nil {
			path = at
		}
		short[i] = filepath.Base(path)
	}
	for i, name := range short {
		names[i] = name
		if slices.Contains(short[:i], name) || slices.Contains(short[i+1:], name) {
			names[i] = filepath.Clean(paths[i])
		}
	}
	return names
}
