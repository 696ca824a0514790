package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cne/configs"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/internal/text"
	"cne/internal/version"
	"cne/model/op"
	"cne/train"
)

// figures returns what is known of the spectrum.
func (s *spectrum) figures() *rundir.SpectrumMetrics {
	_, shared := s.axis.At(s.config, s.axis.Values[0])
	f := &rundir.SpectrumMetrics{
		Axis: s.axis.Flag, Loss: s.config.Embed.Loss.String(), N: s.near.Graph.N, Edges: s.near.Graph.Edges(), Shared: shared,
		Seed: s.config.Embed.Seed, Version: version.String(),
	}
	for _, x := range s.stops {
		m := rundir.StopMetrics{Value: s.axis.Text(x.value), Scale: x.scale, Disparity: x.disparity, Folder: s.axis.Folder(x.value), Metrics: *x.metrics}
		if s.hasZBar() {
			z := s.abscissa(x)
			m.ZBar = &z
		}
		f.Stops = append(f.Stops, m)
	}
	return f
}

// write writes the embeddings and their report. spectrum.json, which comes when
// all else is there, and config.yaml, which is there already, are not among it.
func (s *spectrum) write(f *rundir.SpectrumMetrics) error {
	rows := s.in.rows
	for i, x := range s.stops {
		r := s.at(x)
		if err := r.dir.WriteFile(rundir.ConfigFile, func(w io.Writer) error { return configs.Train.Write(w, x.config) }); err != nil {
			return err
		}
		if err := r.write(); err != nil {
			return err
		}
		if rows != nil {
			if err := r.dir.WriteRows(rundir.RowsFile, rows); err != nil {
				return err
			}
		}
		if err := r.dir.WriteJSON(rundir.MetricsFile, f.Stops[i].Metrics); err != nil {
			return err
		}
	}
	if rows != nil {
		if err := s.dir.WriteRows(rundir.RowsFile, rows); err != nil {
			return err
		}
	}
	return errors.Join(
		s.dir.WriteFile(rundir.SpectrumTable, func(w io.Writer) error { return report.WriteSpectrumCSV(w, f) }),
		s.dir.WriteFile(rundir.SpectrumTimes, func(w io.Writer) error { return report.WriteSpectrumTimes(w, f) }),
	)
}

// draw makes the pictures and the explorer.
func (s *spectrum) draw(ctx context.Context, f *rundir.SpectrumMetrics) error {
	labels := s.in.points.Labels
	strip := &plot.Strip{}
	page := &explorer.Page{
		Title:  cmp.Or(s.config.Plot.Title, s.in.points.Name+", "+s.config.Embed.Loss.Info().Title),
		Slider: s.axis.Symbol(),
	}
	for i, x := range s.stops {
		if err := s.at(x).draw(ctx, nil, x.metrics); err != nil {
			return err
		}
		panel := report.Scatter(x.embedded.Positions, labels, configs.Plot{Title: s.axis.Title(x.value), PointSize: s.config.Plot.PointSize, Names: s.config.Plot.Names})
		strip.Panels = append(strip.Panels, panel)
		page.Classes, page.ClassNames, page.Values = panel.Classes, panel.ClassNames, panel.Values
		page.Views = append(page.Views, explorer.View{Name: s.axis.Title(x.value), Embedding: x.embedded.Positions, Facts: report.SpectrumFacts(&f.Stops[i])})
	}
	s.in.annotations.AddTo(page)
	page.Images = s.at(s.stops[0]).pageImages(ctx, f.N)
	if err := page.Save(s.dir.Path(rundir.SpectrumExplorer)); err != nil {
		return err
	}
	if err := strip.Save(s.dir.Path(rundir.SpectrumStrip)); err != nil {
		return err
	}
	at := make([]float64, len(s.stops))
	for i, x := range s.stops {
		at[i] = s.abscissa(x)
	}
	if curves := report.SpectrumCurves(f, at, s.config.Quality.K); len(curves.Panels) > 0 {
		return curves.Save(s.dir.Path(rundir.SpectrumCurves))
	}
	return nil
}

// hasZBar tells whether the embeddings differ in Neg-t-SNE's normalisation
// constant, however it is given.
func (s *spectrum) hasZBar() bool {
	return s.config.Embed.Loss.Info().Constant == op.FixedZ && s.axis.Flag != "m"
}

// abscissa returns the place of a stop in curves: Z̄ for Neg-t-SNE, as in the
// paper's figures, the number of negatives that there were, or else s.
func (s *spectrum) abscissa(x *sweepPoint) float64 {
	switch {
	case s.axis.Flag == "m":
		return float64(x.embedded.Result.Negatives)
	case s.axis.Flag == "s" && s.hasZBar():
		return train.Normalization{N: s.near.Graph.N}.ZBar(x.value)
	}
	return x.value
}

// print writes the figures for people.
func (s *spectrum) print(w io.Writer, f *rundir.SpectrumMetrics, took time.Duration) error {
	if err := report.PrintSpectrum(w, f, s.axis.Symbol()); err != nil {
		return err
	}
	places := "1 place"
	if len(f.Stops) > 1 {
		places = fmt.Sprintf("%d places", len(f.Stops))
	}
	_, err := fmt.Fprintf(w, "\n%d points at %s in %.1f s: see %s\n", f.N, places, took.Seconds(), text.Escape(s.dir.Path(rundir.SpectrumExplorer)))
	return err
}
