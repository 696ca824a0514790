package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/train"
)

// SpectrumCurves returns the picture of what was measured along a spectrum, as in
// Figures 1i and S4 of the paper. The embeddings have these places on the abscissa: Z̄
// for Neg-t-SNE, or else s or the number of negatives; k is that of the recall.
func SpectrumCurves(f *rundir.SpectrumMetrics, at []float64, k int) *plot.Curves {
	label, logarithmic := "s", false
	var marks []plot.Mark
	hasZBar := f.Stops[0].ZBar != nil
	switch {
	case hasZBar:
		label, logarithmic = "Z̄", true
		// The ends of the slider, where they are among the values.
		for end, name := range []string{"s = 0", "s = 1"} {
			if z := (train.Normalization{N: f.N}).ZBar(float64(end)); z >= slices.Min(at) && z <= slices.Max(at) { // which fall with s for few points
				marks = append(marks, plot.Mark{X: z, Name: name})
			}
		}
	case f.Axis == "m":
		label, logarithmic = "m", true
	}
	curves := &plot.Curves{}
	for _, p := range []struct {
		name   string // in spectrumColumns
		axis   string
		orders bool // over several orders of magnitude
	}{
		{"partition_function", "partition function", true},
		{"knn_recall", fmt.Sprintf("kNN recall (k = %d)", k), false},
		{"spearman", "Spearman correlation", false},
		{"kl", "KL divergence", false},
	} {
		n := slices.IndexFunc(spectrumColumns, func(c column) bool { return c.name == p.name })
		y := make([]float64, len(f.Stops))
		some := false
		for i := range f.Stops {
			y[i] = math.NaN()
			if v := spectrumColumns[n].value(&f.Stops[i]); v != nil && (*v > 0 || !p.orders) {
				y[i], some = *v, true
			}
		}
		if !some {
			continue
		}
		panel := plot.Panel{XLabel: label, YLabel: p.axis, LogX: logarithmic, LogY: p.orders, Marks: marks,
			Series: []plot.Series{{X: at, Y: y, Marker: true}}}
		if hasZBar {
			panel.Series[0].Name = "embedding" // beside the other in the legend
		}
		if p.orders && hasZBar {
			panel.Series = append(panel.Series, plot.Series{Name: "equal to Z̄", X: at, Y: at, Dashed: true})
		}
		curves.Panels = append(curves.Panels, panel)
	}
	return curves
}

// A column is what a table of a spectrum shows of each embedding.
type column struct {
	name, heading string // in files and for people
	format        string // for people
	value         func(*rundir.StopMetrics) *float64
	err           func(*rundir.StopMetrics) *float64 // its standard error; nil where there is none
}

// plusMinus returns what follows the figure of an embedding.
func (c *column) plusMinus(m *rundir.StopMetrics) string {
	if c.err == nil {
		return ""
	}
	return PlusMinus(c.err(m))
}

// spectrumColumns are the figures of a spectrum, but for the value itself.
var spectrumColumns = []column{
	{"z_bar", "Z̄", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.ZBar }, nil},
	{"partition_function", "partition function", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.PartitionFunction },
		func(m *rundir.StopMetrics) *float64 { return m.PartitionFunctionError }},
	{"z", "learnt Z", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.Z }, nil},
	{"knn_recall", "kNN recall", "%.4f", func(m *rundir.StopMetrics) *float64 { return m.KNNRecall },
		func(m *rundir.StopMetrics) *float64 { return m.KNNRecallError }},
	{"spearman", "Spearman", "%.3f", func(m *rundir.StopMetrics) *float64 { return m.Spearman }, nil},
	{"kl", "KL", "%.4g", func(m *rundir.StopMetrics) *float64 { return m.KL },
		func(m *rundir.StopMetrics) *float64 { return m.KLError }},
	{"accuracy", "kNN accuracy", "%.4f", func(m *rundir.StopMetrics) *float64 { return m.Accuracy },
		func(m *rundir.StopMetrics) *float64 { return m.AccuracyError }},
	{"loss", "loss per edge", "%.5g", func(m *rundir.StopMetrics) *float64 { return &m.Loss }, nil},
	{"scale_to_previous", "scale to previous", "%.3g", func(m *rundir.StopMetrics) *float64 { return m.Scale }, nil},
	{"seconds", "seconds", "%.1f", func(m *rundir.StopMetrics) *float64 { return &m.Seconds.Optimize }, nil},
}

// SpectrumFacts returns the figures of one of the embeddings for the explorer.
func SpectrumFacts(m *rundir.StopMetrics) []explorer.Fact {
	facts := Facts(&m.Figures, m.Z)
	if m.ZBar != nil {
		facts = append([]explorer.Fact{roundedFact("Z̄", *m.ZBar)}, facts...)
	}
	return facts
}

// columns returns those of the figures that at least one of the embeddings has, and
// that are not the value itself.
func columns(f *rundir.SpectrumMetrics) []column {
	var there []column
	for _, c := range spectrumColumns {
		if c.name == "z_bar" && f.Axis == "zbar" {
			continue
		}
		for i := range f.Stops {
			if c.value(&f.Stops[i]) != nil {
				there = append(there, c)
				break
			}
		}
	}
	return there
}

// withErrors returns columns with those of their standard errors, where there are some.
func withErrors(f *rundir.SpectrumMetrics, columns []column) []column {
	var all []column
	for _, c := range columns {
		all = append(all, c)
		if c.err != nil && slices.ContainsFunc(f.Stops, func(m rundir.StopMetrics) bool { return c.err(&m) != nil }) {
			all = append(all, column{name: c.name + "_error", value: c.err})
		}
	}
	return all
}

// WriteSpectrumCSV writes the figures but for the times, so that a spectrum gives the
// same bytes each time.
func WriteSpectrumCSV(w io.Writer, f *rundir.SpectrumMetrics) error {
	return writeColumns(w, f, withErrors(f, slices.DeleteFunc(columns(f), func(c column) bool { return c.name == "seconds" })))
}

// timeColumns are the times of a spectrum's embeddings.
var timeColumns = []column{
	{name: "optimize_seconds", value: func(m *rundir.StopMetrics) *float64 { return &m.Seconds.Optimize }},
	{name: "quality_seconds", value: func(m *rundir.StopMetrics) *float64 { return &m.Seconds.Quality }},
}

// WriteSpectrumTimes writes how long each embedding took.
func WriteSpectrumTimes(w io.Writer, f *rundir.SpectrumMetrics) error {
	return writeColumns(w, f, timeColumns)
}

// writeColumns writes a table with a row for each embedding.
func writeColumns(w io.Writer, f *rundir.SpectrumMetrics, columns []column) error {
	table := csv.NewWriter(w)
	row := []string{f.Axis}
	for _, c := range columns {
		row = append(row, c.name)
	}
	_ = table.Write(row) // Flush finds the error
	for i := range f.Stops {
		row = append(row[:0], f.Stops[i].Value)
		for _, c := range columns {
			text := ""
			if v := c.value(&f.Stops[i]); v != nil {
				text = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			row = append(row, text)
		}
		_ = table.Write(row)
	}
	table.Flush()
	return table.Error()
}

// PrintSpectrum writes the figures for people; symbol is what the values are called.
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
			if v := c.value(&f.Stops[i]); v != nil && !math.IsNaN(*v) {
				fmt.Fprintf(table, c.format+"%s", *v, c.plusMinus(&f.Stops[i]))
			}
			fmt.Fprint(table, "\t")
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
