package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"cne/configs"
	"cne/internal/explorer"
	"cne/internal/figures"
	"cne/internal/plot"
	"cne/internal/rundir"
	"cne/internal/version"
	"cne/model/op"
	"cne/train"
)

// SpectrumMetrics is the content of spectrum.json.
type SpectrumMetrics struct {
	Axis    string        `json:"axis"` // s, zbar or m
	Loss    string        `json:"loss"`
	N       int           `json:"n"`
	Edges   int           `json:"edges"`
	Shared  int           `json:"shared_epochs"`
	Seed    uint64        `json:"seed"`
	Version string        `json:"version"`
	Stops   []StopMetrics `json:"embeddings"` // by ascending value
}

// StopMetrics says how good one of the embeddings of a spectrum is.
type StopMetrics struct {
	Value string `json:"value"` // of the axis
	// ZBar is Neg-t-SNE's normalisation constant there, however it was given.
	ZBar *float64 `json:"z_bar,omitempty"`
	// Scale is the factor by which the embedding would have to be stretched to
	// fit the one before best, and Disparity what would then be left of it,
	// from 0 to 1.
	Scale     *float64 `json:"scale_to_previous,omitempty"`
	Disparity *float64 `json:"disparity_to_previous,omitempty"`
	Folder    string   `json:"folder"`
	Metrics
}

// figures returns what is known of the spectrum.
func (s *spectrum) figures() *SpectrumMetrics {
	_, shared := s.axis.at(s.config, s.axis.values[0])
	f := &SpectrumMetrics{
		Axis: s.axis.flag, Loss: s.config.Loss.Name.String(), N: s.base.near.Graph.N, Edges: s.base.near.Graph.Edges(), Shared: shared,
		Seed: s.config.Seed, Version: version.String(),
	}
	for _, x := range s.stops {
		m := StopMetrics{Value: s.axis.text(x.value), Scale: x.scale, Disparity: x.disparity, Folder: s.axis.folder(x.value), Metrics: *x.metrics}
		if s.hasZBar() {
			z := s.abscissa(x)
			m.ZBar = &z
		}
		f.Stops = append(f.Stops, m)
	}
	return f
}

// lossTitles are the names of the losses for people.
var lossTitles = map[op.Loss]string{op.Neg: "Neg-t-SNE", op.NC: "NC-t-SNE", op.InfoNC: "InfoNC-t-SNE", op.UMAP: "UMAP's loss"}

// write writes the embeddings and their figures. spectrum.json, which comes when
// all else is there, and config.yaml, which is there already, are not among it.
func (s *spectrum) write(f *SpectrumMetrics) error {
	labels, rows := s.base.in.points.Labels, s.base.in.rows
	for i, x := range s.stops {
		t := s.at(x)
		if err := t.dir.WriteFile(rundir.ConfigFile, func(w io.Writer) error { return configs.Train.Write(w, x.config) }); err != nil {
			return err
		}
		if err := t.writeEmbedding("embedding", x.embedded.Positions, labels); err != nil {
			return err
		}
		if rows != nil {
			if err := t.writeRows(rundir.RowsFile, rows); err != nil {
				return err
			}
		}
		if err := t.dir.WriteJSON(rundir.MetricsFile, f.Stops[i].Metrics); err != nil {
			return err
		}
	}
	if rows != nil {
		if err := s.base.writeRows(rundir.RowsFile, rows); err != nil {
			return err
		}
	}
	return s.dir.WriteFile(rundir.SpectrumTable, f.writeCSV)
}

// draw makes the pictures and the explorer.
func (s *spectrum) draw(ctx context.Context, f *SpectrumMetrics) error {
	labels := s.base.in.points.Labels
	strip := &plot.Strip{}
	page := &explorer.Page{
		Title:  cmp.Or(s.config.Plot.Title, s.base.in.points.Name+", "+lossTitles[s.config.Loss.Name]),
		Slider: s.axis.symbol(),
	}
	for i, x := range s.stops {
		if err := s.at(x).draw(ctx, x.embedded.Positions, nil, x.metrics); err != nil {
			return err
		}
		panel := figures.Scatter(x.embedded.Positions, labels, configs.Plot{Title: s.axis.title(x.value), PointSize: s.config.Plot.PointSize})
		strip.Panels = append(strip.Panels, panel)
		page.Classes, page.ClassNames, page.Values = panel.Classes, panel.ClassNames, panel.Values
		page.Views = append(page.Views, explorer.View{Name: s.axis.title(x.value), Embedding: x.embedded.Positions, Facts: f.Stops[i].facts()})
	}
	page.Images = s.base.pageImages(ctx, f.N)
	if err := page.Save(s.dir.Path(rundir.SpectrumExplorer)); err != nil {
		return err
	}
	if err := strip.Save(s.dir.Path(rundir.SpectrumStrip)); err != nil {
		return err
	}
	if curves := s.curves(f); len(curves.Panels) > 0 {
		return curves.Save(s.dir.Path(rundir.SpectrumCurves))
	}
	return nil
}

// hasZBar tells whether the embeddings differ in Neg-t-SNE's normalisation
// constant, however it is given.
func (s *spectrum) hasZBar() bool { return s.config.Loss.Name == op.Neg && s.axis.flag != "m" }

// abscissa returns the place of a stop in curves: Z̄ for Neg-t-SNE, as in the
// paper's figures, the number of negatives that there were, or else s.
func (s *spectrum) abscissa(x *sweepPoint) float64 {
	switch {
	case s.axis.flag == "m":
		return float64(x.embedded.Result.Negatives)
	case s.axis.flag == "s" && s.hasZBar():
		return train.Normalization{N: s.base.near.Graph.N}.ZBar(x.value)
	}
	return x.value
}

// curves returns the picture of what was measured along the spectrum, as in
// Figures 1i and S4 of the paper.
func (s *spectrum) curves(f *SpectrumMetrics) *plot.Curves {
	label, logarithmic := "s", false
	var marks []plot.Mark
	at := make([]float64, len(s.stops))
	for i, x := range s.stops {
		at[i] = s.abscissa(x)
	}
	switch {
	case s.hasZBar():
		label, logarithmic = "Z̄", true
		// The ends of the slider, where they are among the values.
		for end, name := range []string{"s = 0", "s = 1"} {
			if z := (train.Normalization{N: f.N}).ZBar(float64(end)); z >= slices.Min(at) && z <= slices.Max(at) { // which fall with s for few points
				marks = append(marks, plot.Mark{X: z, Name: name})
			}
		}
	case s.axis.flag == "m":
		label, logarithmic = "m", true
	}
	curves := &plot.Curves{}
	for _, p := range []struct {
		name   string // in stopFigures
		axis   string
		orders bool // over several orders of magnitude
	}{
		{"partition_function", "partition function", true},
		{"knn_recall", fmt.Sprintf("kNN recall (k = %d)", s.config.Quality.K), false},
		{"spearman", "Spearman correlation", false},
		{"kl", "KL divergence", false},
	} {
		k := slices.IndexFunc(stopFigures, func(g figure) bool { return g.name == p.name })
		y := make([]float64, len(f.Stops))
		some := false
		for i := range f.Stops {
			y[i] = math.NaN()
			if v := stopFigures[k].value(&f.Stops[i]); v != nil && (*v > 0 || !p.orders) {
				y[i], some = *v, true
			}
		}
		if !some {
			continue
		}
		panel := plot.Panel{XLabel: label, YLabel: p.axis, LogX: logarithmic, LogY: p.orders, Marks: marks,
			Series: []plot.Series{{X: at, Y: y, Marker: true}}}
		if s.hasZBar() {
			panel.Series[0].Name = "embedding" // beside the other in the legend
		}
		if p.orders && s.hasZBar() {
			panel.Series = append(panel.Series, plot.Series{Name: "equal to Z̄", X: at, Y: at, Dashed: true})
		}
		curves.Panels = append(curves.Panels, panel)
	}
	return curves
}

// A figure is what a table of a spectrum shows of each embedding.
type figure struct {
	name, heading string // in files and for people
	format        string // for people
	value         func(*StopMetrics) *float64
}

// stopFigures are the figures of a spectrum, but for the value itself.
var stopFigures = []figure{
	{"z_bar", "Z̄", "%.3g", func(m *StopMetrics) *float64 { return m.ZBar }},
	{"partition_function", "partition function", "%.3g", func(m *StopMetrics) *float64 { return m.PartitionFunction }},
	{"z", "learnt Z", "%.3g", func(m *StopMetrics) *float64 { return m.Z }},
	{"knn_recall", "kNN recall", "%.4f", func(m *StopMetrics) *float64 { return m.KNNRecall }},
	{"spearman", "Spearman", "%.3f", func(m *StopMetrics) *float64 { return m.Spearman }},
	{"kl", "KL", "%.4g", func(m *StopMetrics) *float64 { return m.KL }},
	{"accuracy", "kNN accuracy", "%.4f", func(m *StopMetrics) *float64 { return m.Accuracy }},
	{"loss", "loss per edge", "%.5g", func(m *StopMetrics) *float64 { return &m.Loss }},
	{"scale_to_previous", "scale to previous", "%.3g", func(m *StopMetrics) *float64 { return m.Scale }},
	{"seconds", "seconds", "%.1f", func(m *StopMetrics) *float64 { return &m.Seconds.Optimize }},
}

// facts returns the figures of a stop for the explorer.
func (m *StopMetrics) facts() []explorer.Fact {
	facts := figures.Facts(&m.Figures, m.Z)
	if m.ZBar != nil {
		facts = append([]explorer.Fact{figures.RoundedFact("Z̄", *m.ZBar)}, facts...)
	}
	return facts
}

// columns returns those of the figures that at least one of the stops has, and
// that are not the value itself.
func (f *SpectrumMetrics) columns() []figure {
	var there []figure
	for _, c := range stopFigures {
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

// writeCSV writes the figures as a table, with all their digits.
func (f *SpectrumMetrics) writeCSV(w io.Writer) error {
	columns := f.columns()
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

// print writes the figures for people.
func (s *spectrum) print(w io.Writer, f *SpectrumMetrics, took time.Duration) error {
	columns := f.columns()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\t", s.axis.symbol())
	for _, c := range columns {
		fmt.Fprintf(table, "%s\t", c.heading)
	}
	fmt.Fprintln(table)
	for i := range f.Stops {
		fmt.Fprintf(table, "%s\t", f.Stops[i].Value)
		for _, c := range columns {
			if v := c.value(&f.Stops[i]); v != nil && !math.IsNaN(*v) {
				fmt.Fprintf(table, c.format, *v)
			}
			fmt.Fprint(table, "\t")
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	places := "1 place"
	if len(f.Stops) > 1 {
		places = fmt.Sprintf("%d places", len(f.Stops))
	}
	_, err := fmt.Fprintf(w, "\n%d points at %s in %.1f s: see %s\n", f.N, places, took.Seconds(), s.dir.Path(rundir.SpectrumExplorer))
	return err
}
