package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cne"
	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
)

// explain adds the embedding to an error of its training.
func (s *spectrum) explain(err error) error {
	failed, ok := errors.AsType[*cne.SpectrumError](err)
	if !ok {
		return err
	}
	where, config := "the shared phase", s.config
	if failed.Index >= 0 {
		where, config = s.axis.Title(s.stops[failed.Index].place), s.stops[failed.Index].config
	}
	err = failed.Err
	if diverged, ok := errors.AsType[*train.DivergedError](err); ok {
		err = s.diverged(diverged, rateOf(config.Embed.Phases, diverged.Phase), "")
		s.saved = s.resumed // a diverged embedding is useless
	}
	return fmt.Errorf("%s: %w", where, err)
}

// count returns a hook that reports the progress of all runs together.
func (s *spectrum) count() train.Hook {
	return train.HookFunc(func(state *train.State) error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.done++
		spent := max(time.Since(s.began), time.Microsecond)
		s.Progress.Report(cli.EpochReport{
			Epoch: s.done, Epochs: s.all, Loss: state.Loss, Unit: "edges",
			Speed: float64(s.done-s.before) * float64(s.near.Graph.Edges()) / spent.Seconds(),
			Left:  spent / time.Duration(s.done-s.before) * time.Duration(s.all-s.done),
		})
		return nil
	})
}

// figures returns the metrics of the spectrum.
func (s *spectrum) figures() *rundir.SpectrumMetrics {
	_, shared := s.axis.At(s.config, s.stops[0].place)
	f := &rundir.SpectrumMetrics{
		Axis: s.axis.Flag, Loss: s.config.Embed.Loss.String(), N: s.near.Graph.N, Edges: s.near.Graph.Edges(), Shared: shared,
		Seed: s.config.Embed.Seed, Version: configs.Version(),
	}
	for _, x := range s.stops {
		x.metrics.Value, x.metrics.Folder = s.axis.Text(x.place.Value), s.axis.Folder(x.place)
		if s.axis.Pulls != nil {
			x.metrics.Pull = &x.place.Pull
		}
		if s.hasZBar() {
			x.metrics.ZBar = new(s.abscissa(x))
		}
		f.Stops = append(f.Stops, x.metrics)
	}
	return f
}

// write writes the embeddings and their report, except spectrum.json, which is written
// last, and config.yaml, which exists already.
func (s *spectrum) write(f *rundir.SpectrumMetrics) (err error) {
	defer kind.Catch(&err)
	for i, x := range s.stops {
		r := s.at(x)
		kind.Check(r.dir.WriteFile(rundir.ConfigFile, func(w io.Writer) error { return configs.Train.Write(w, x.config) }))
		kind.Check(r.write())
		if s.in.ListsRows() {
			kind.Check(r.dir.WriteRows(rundir.RowsFile, s.in.Division.Trained))
		}
		kind.Check(r.dir.WriteJSON(rundir.MetricsFile, f.Stops[i].Metrics))
	}
	if s.in.ListsRows() {
		kind.Check(s.dir.WriteRows(rundir.RowsFile, s.in.Division.Trained))
	}
	return s.dir.WriteFile(rundir.SpectrumTable, func(w io.Writer) error { return report.WriteSpectrumCSV(w, f) })
}

// draw makes the pictures and the explorer.
func (s *spectrum) draw(ctx context.Context, f *rundir.SpectrumMetrics) (err error) {
	defer kind.Catch(&err)
	labels := s.in.Points.Labels
	picture, across := cne.PictureOptions{}, len(s.axis.Values)
	m := report.Map{Positions: s.stops[0].embedded.Positions, Labels: labels}
	page := s.at(s.stops[0]).page(ctx, &m)
	page.Title = s.in.Points.Name + ", " + s.config.Embed.Loss.Info().Title
	page.Slider, page.Rows = s.axis.Symbol(), len(s.axis.Pulls)
	for i, x := range s.stops {
		kind.Check(s.at(x).draw(ctx, nil, &x.metrics.Metrics))
		title := s.axis.Title(x.place)
		panel := cne.PicturePanel{Title: title, Embedding: x.embedded.Positions, Labels: labels}
		if column, row, isGrid := strings.Cut(title, ", "); isGrid {
			if panel.Title, picture.Columns = "", across; i < across {
				picture.ColumnTitles = append(picture.ColumnTitles, column)
			}
			if i%across == 0 {
				picture.RowTitles = append(picture.RowTitles, row)
			}
		}
		picture.Panels = append(picture.Panels, panel)
		page.Views = append(page.Views, cne.PageView{Name: title, Embedding: x.embedded.Positions, Facts: report.SpectrumFacts(&f.Stops[i])})
	}
	kind.Check(m.SavePage(s.dir.Path(rundir.SpectrumExplorer), page))
	kind.Check(m.SavePicture(s.Log, s.dir.Path(rundir.SpectrumStrip), picture))
	if curves := report.SpectrumCurves(f, selection.Map(s.stops, s.abscissa), s.config.Quality.K); len(curves.Panels) > 0 {
		return curves.Save(s.dir.Path(rundir.SpectrumCurves))
	}
	return nil
}

// hasZBar reports whether the embeddings differ in Neg-t-SNE's normalisation constant,
// given as s or as Z̄.
func (s *spectrum) hasZBar() bool {
	return s.config.Embed.Loss.Info().Constant == op.FixedZ && s.axis.Flag != "m"
}

// abscissa returns the position of a stop in curves: Z̄ for Neg-t-SNE, as in the paper's
// figures, the actual number of negatives, or else s.
func (s *spectrum) abscissa(x *spectrumPoint) float64 {
	switch {
	case s.axis.Flag == "m":
		return float64(x.embedded.Result.Negatives)
	case s.axis.Flag == "s" && s.hasZBar():
		return train.Normalization{N: s.near.Graph.N}.ZBar(x.place.Value)
	}
	return x.place.Value
}

// print writes the figures for people.
func (s *spectrum) print(w io.Writer, f *rundir.SpectrumMetrics, took time.Duration) error {
	if err := report.PrintSpectrum(w, f, s.axis.Symbol()); err != nil {
		return err
	}
	embeddings := selection.If(len(f.Stops) > 1, fmt.Sprintf("%d embeddings", len(f.Stops)), "1 embedding")
	_, err := fmt.Fprintf(w, "\n%s of %d points in %.1f s: see %s\n", embeddings, f.N, took.Seconds(),
		text.Escape(s.dir.Path(rundir.SpectrumExplorer)))
	return err
}
