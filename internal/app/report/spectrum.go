package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"cne"
	"cne/internal/app/rundir"
	"cne/internal/plot"
	"cne/internal/selection"
	"cne/train"
	"cne/train/quality"
)

// SpectrumCurves returns the curves of the figures along a spectrum, as in Figures 1i and
// S4 of the paper. at has the positions of the embeddings on the abscissa: Z̄ for
// Neg-t-SNE, or else s or the number of negatives. k is the number of neighbours of the
// recall.
func SpectrumCurves(f *rundir.SpectrumMetrics, at []float64, k int) *plot.Curves {
	label, logarithmic := "s", false
	var marks []plot.Mark
	hasZBar := f.Stops[0].ZBar != nil
	switch {
	case hasZBar:
		label, logarithmic = "Z̄", true
		// The ends of the slider, if they are among the values.
		for end, name := range []string{"s = 0", "s = 1"} {
			if z := (train.Normalization{N: f.N}).ZBar(float64(end)); z >= slices.Min(at) && z <= slices.Max(at) { // Z̄ falls with s for few points
				marks = append(marks, plot.Mark{X: z, Name: name})
			}
		}
	case f.Axis == "m":
		label, logarithmic = "m", true
	}
	curves := &plot.Curves{}
	for _, p := range quality.Table() {
		if p.Needs&quality.NeedsLabels != 0 {
			continue // not in the paper's figures
		}
		y := make([]float64, len(f.Stops))
		some := false
		for i := range f.Stops {
			y[i] = math.NaN()
			if v, _ := p.Of(&f.Stops[i].Figures); v != nil && (*v > 0 || !p.Wide) {
				y[i], some = *v, true
			}
		}
		if !some {
			continue
		}
		panel := plot.Panel{XLabel: label, YLabel: p.Title + p.OfNeighbors(k, 0), LogX: logarithmic, LogY: p.Wide, Marks: marks,
			Series: series(f, at, y)}
		if p.Wide && hasZBar {
			panel.Series = append(panel.Series, plot.Series{Name: "equal to Z̄", X: at, Y: at, Dashed: true})
		}
		curves.Panels = append(curves.Panels, panel)
	}
	return curves
}

// series returns the curves of a figure, one for each pull.
func series(f *rundir.SpectrumMetrics, at, y []float64) (all []plot.Series) {
	for i := range f.Stops {
		if pull := f.Stops[i].Pull; i == 0 || pull != nil && *pull != *f.Stops[i-1].Pull {
			all = append(all, plot.Series{Marker: true})
			if pull != nil {
				all[len(all)-1].Name = fmt.Sprintf("pull = %g", *pull)
			} else if f.Stops[0].ZBar != nil {
				all[0].Name = "embedding" // next to the other in the legend
			}
		}
		last := &all[len(all)-1]
		last.X, last.Y = append(last.X, at[i]), append(last.Y, y[i])
	}
	return all
}

// A column is a column of a spectrum's table, with a row per embedding.
type column struct {
	name, heading string                                                    // in files and for people
	format        string                                                    // for people
	of            func(*rundir.StopMetrics) (value, standardError *float64) // nil if there is none
}

// someIn reports whether some of the embeddings have a value in the column.
func (c *column) someIn(f *rundir.SpectrumMetrics) bool {
	return slices.ContainsFunc(f.Stops, func(m rundir.StopMetrics) bool { v, _ := c.of(&m); return v != nil })
}

// columns returns the figures that at least one of the embeddings has, except the value
// itself.
func columns(f *rundir.SpectrumMetrics) []column {
	of := func(name, heading, format string, value func(*rundir.StopMetrics) *float64) column {
		return column{name, heading, format, func(m *rundir.StopMetrics) (v, e *float64) { return value(m), nil }}
	}
	all := []column{
		of("pull", "pull", "%g", func(m *rundir.StopMetrics) *float64 { return m.Pull }),
		of("z_bar", "Z̄", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.ZBar }),
	}
	for _, f := range quality.Table() {
		all = append(all, column{f.Key, f.Heading() + f.Arrow(), f.Format,
			func(m *rundir.StopMetrics) (v, e *float64) { return f.Of(&m.Figures) }})
		if f.Metric == quality.MetricPartition {
			all = append(all, of("z", "learnt Z", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.Z }))
		}
	}
	all = append(all,
		of("loss", "loss per edge", "%.5g", func(m *rundir.StopMetrics) *float64 { return &m.Loss }),
		of("scale_to_previous", "scale to previous", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.Scale }),
		of("seconds", "seconds", "%.1f", func(m *rundir.StopMetrics) *float64 { return &m.Seconds.Optimize }),
	)
	return slices.DeleteFunc(all, func(c column) bool { return c.name == "z_bar" && f.Axis == "zbar" || !c.someIn(f) })
}

// SpectrumFacts returns the figures of one of the embeddings for the explorer.
func SpectrumFacts(m *rundir.StopMetrics) []cne.Fact {
	facts := Facts(&m.Figures, m.Z)
	if m.ZBar != nil {
		facts = append(facts, roundedFact("Z̄", *m.ZBar, "The normalisation constant of Neg-t-SNE for this embedding. The larger it is, the more attraction prevails, and the more compact are the clusters."))
	}
	return facts
}

// WriteSpectrumCSV writes the figures, with standard errors if there are any. It leaves
// out the times, so a spectrum gives the same bytes each time.
func WriteSpectrumCSV(w io.Writer, f *rundir.SpectrumMetrics) error {
	var all []column
	for _, c := range columns(f) {
		if c.name != "seconds" {
			all = append(all, c)
		}
		e := column{name: c.name + "_error", of: func(m *rundir.StopMetrics) (v, e *float64) { _, v = c.of(m); return v, nil }}
		if e.someIn(f) {
			all = append(all, e)
		}
	}
	table := csv.NewWriter(w)
	row := append([]string{f.Axis}, selection.Map(all, func(c column) string { return c.name })...)
	_ = table.Write(row) // Flush finds the error
	for i := range f.Stops {
		row = append(row[:0], f.Stops[i].Value)
		for _, c := range all {
			text := ""
			if v, _ := c.of(&f.Stops[i]); v != nil {
				text = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			row = append(row, text)
		}
		_ = table.Write(row)
	}
	table.Flush()
	return table.Error()
}

// PrintSpectrum writes the figures as a table; symbol is the name of the values.
func PrintSpectrum(w io.Writer, f *rundir.SpectrumMetrics, symbol string) error {
	columns := columns(f)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\t", symbol)
	for _, c := range columns {
		fmt.Fprintf(table, "%s\t", c.heading)
	}
	fmt.Fprintln(table)
	for i := range f.Stops {
		fmt.Fprintf(table, "%s\t", f.Stops[i].Value)
		for _, c := range columns {
			if v, standardError := c.of(&f.Stops[i]); v != nil && !math.IsNaN(*v) {
				fmt.Fprintf(table, c.format+"%s", *v, quality.PlusMinus(standardError))
			}
			fmt.Fprint(table, "\t")
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
