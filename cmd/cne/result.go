package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// A result is an embedding of a run.
type result struct {
	*pointRun
	config   *configs.Config // of the embedding
	dir      *rundir.Dir     // where it is kept
	embedded *cne.Embedding
}

// measure measures the embedding as the configuration asks for; held are the positions of
// points that were held out, or nil.
func (r *result) measure(ctx context.Context, held *data.Matrix) (*rundir.Metrics, error) {
	m := &rundir.Metrics{
		Loss: r.embedded.Result.Loss, Epochs: r.embedded.Result.Epochs,
		N: r.near.Graph.N, Edges: r.embedded.Result.Edges, Recall: r.near.Recall,
		Seed: r.config.Embed.Seed, Version: configs.Version(),
		PointsKey: r.near.PointsKey, GraphKey: r.near.GraphKey,
	}
	if r.config.Embed.Loss.Info().Constant == op.LearntZ {
		z := train.Normalization{N: r.near.Graph.N}.Z(r.embedded.Result.LogZ)
		m.Z = &z
	}
	watch := r.device.Watch()
	figures, err := quality.Measure(ctx, r.near.Reduced, r.embedded.Positions, r.measuring())
	if err != nil {
		return nil, err
	}
	m.Figures = *figures
	if held != nil {
		m.Holdout, err = r.measureHeld(ctx, held)
	}
	m.Computing = rundir.Computing{Devices: rundir.Devices{"start": "cpu", "quality": watch()}, Notes: r.device.Notes()}
	before := rundir.ReadMetrics(r.dir.Root()).Devices // of a finished run that is completed
	m.Devices.Add("graph", cmp.Or(r.near.GraphDevice, before["graph"]))
	m.Devices.Add("optimize", cmp.Or(r.trainedOn, before["optimize"]))
	return m, err
}

// measuring returns the options of the quality measures that the configuration asks for.
func (r *result) measuring() quality.Options {
	o := r.config.Quality.Wanted()
	o.Labels, o.Graph, o.Seed, o.Device = r.in.Points.Labels, r.near.Graph, r.config.Embed.Seed, r.device
	if r.config.Quality.Recall {
		o.Neighbors = r.near.Nearest
	}
	return o
}

// measureHeld measures how the held-out points lie among the training points.
func (r *result) measureHeld(ctx context.Context, positions *data.Matrix) (*quality.HeldOutFigures, error) {
	held := quality.HeldOut{Embedding: positions, Labels: r.in.Held.Labels}
	if r.config.Quality.Recall && r.near.Nearest != nil {
		scaled, err := r.in.ScaledHeld(ctx, r.near.Preprocessing, r.near.PCA)
		if err == nil {
			held.Points, err = points.Reduce(ctx, scaled, r.near.PCA)
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := quality.MeasureHeldOut(ctx, r.near.Reduced, r.embedded.Positions, held, r.measuring())
	if err == nil && f.OtherLabels {
		r.Log.Warn("no label of the held-out points occurs among the training points; their accuracy is left out")
	}
	return f, err
}

// write writes the embedding, and the names of its points.
func (r *result) write() error {
	m := r.embedded.Positions
	names, _ := r.in.Names()
	if !r.in.Sampled() { // place writes the names of all points
		if err := r.dir.WriteNames(names); err != nil {
			return err
		}
	}
	name, _ := r.in.Files()
	return rundir.WriteEmbedding(r.dir.PositionFiles(name, r.config.Output.CSV), m, r.in.Points.Labels, names)
}

// draw makes the picture and the page, if they are asked for. held may be nil,
// and so may the metrics of a run that ended early.
func (r *result) draw(ctx context.Context, held *data.Matrix, m *rundir.Metrics) (err error) {
	defer kind.Catch(&err)
	drawn := report.Map{Positions: r.embedded.Positions, Labels: r.in.Points.Labels}
	if held != nil {
		drawn = report.WithHeldOut(drawn, held, r.in.Held.Labels)
	}
	if r.config.Output.Plot {
		kind.Check(drawn.SavePicture(r.Log, r.dir.Path("embedding.png"), cne.PictureOptions{}))
	}
	if !r.config.Output.HTML {
		return nil
	}
	// Points that were left out have no positions.
	if held != nil && r.in.PageRows() == nil {
		drawn.InputOrder(r.in.Division.Held)
	}
	page := r.page(ctx, &drawn)
	page.Title = r.in.Points.Name
	if m != nil {
		page.Facts = report.Facts(&m.Figures, m.Z)
	}
	return drawn.SavePage(r.dir.Path(rundir.PageFile), page)
}

// page returns the page of a map, with images, names, columns and neighbours of the run's
// points. There are no images of a sample of too many. They are read once, for all pages. It
// fails as kind.Need does, with ctx's error.
func (r *result) page(ctx context.Context, m *report.Map) *cne.PageOptions {
	in := r.in
	if !in.Sampled() && !in.ImagesRead {
		in.Page.Images = kind.Got(report.RunImages(ctx, r.Log, r.config, m.Positions.N, in.PageRows()))
		in.ImagesRead = true
	}
	page := in.Page
	page.Neighbors = m.Neighbors(r.Log, r.near.Nearest, nil)
	return &page
}

// report measures the embedding and writes metrics.json.
func (t *training) report(ctx context.Context, held *data.Matrix) (*rundir.Metrics, error) {
	stop := stopwatch(&t.seconds.Quality)
	t.doing = "while the quality was measured; the embedding is in " + t.dir.Path("embedding.npy")
	done := t.While("measuring the quality")
	m, err := ctxio.Await(ctx, func() (*rundir.Metrics, error) { return t.result().measure(ctx, held) })
	done()
	stop()
	if err != nil {
		return nil, err
	}
	m.Seconds = t.seconds
	m.Seconds.PCA, m.Seconds.Graph = t.near.PCATime.Seconds(), t.near.GraphTime.Seconds()
	m.Seconds.Optimize, m.Seconds.Total = t.embedded.Result.Elapsed.Seconds(), time.Since(t.start).Seconds()
	if t.from != nil {
		m.Seconds.Total += (t.from.Progress.Elapsed + t.from.Progress.ElapsedSince).Seconds()
	}
	m.PeakRSSBytes, m.Placed = memory.PeakRSS(), t.in.Rest()
	return m, t.dir.WriteJSON(rundir.MetricsFile, m)
}

// print writes the figures as a table.
func (t *training) print(w io.Writer, m *rundir.Metrics) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	optional := func(name, format string, value *float64, more ...any) {
		if value != nil {
			row(name, format, append([]any{*value}, more...)...)
		}
	}
	if t.config.Output.Plot {
		row("picture", "%s", text.Escape(t.dir.Path("embedding.png")))
	}
	if t.config.Output.HTML {
		row("page", "%s", text.Escape(t.dir.Path(rundir.PageFile)))
	}
	row("embedding", "%s", text.Escape(t.dir.Path("embedding.npy")))
	if t.in.Sampled() {
		row("placed", "%d points after training; all scores are for the points trained on", m.Placed)
	}
	different := selection.If(t.in.Different > 0, fmt.Sprintf(" (%d different)", t.in.Different), "")
	row("points", "%d%s, joined by %d directed edges", m.N, different, m.Edges)
	if m.Recall != nil {
		row("graph", "approximate neighbours: %s", m.Recall)
	}
	components := 0
	if p := t.near.PCA; p != nil {
		components = p.K
	}
	for _, f := range quality.DisplayTable() {
		if value, standardError := f.Of(&m.Figures); value != nil {
			row(f.Title, f.Format+"%s%s%s", *value, quality.PlusMinus(standardError), f.OfNeighbors(t.config.Quality.K, components), f.Direction())
		}
	}
	optional(selection.If(t.config.Embed.KeepsZ(), "fixed Z", "learnt Z"), "%.3g", m.Z)
	if h := m.Holdout; h != nil {
		row("held out", "%d points", h.N)
		optional("  kNN accuracy", "%.4f (k = %d), higher is better", h.Accuracy, quality.AccuracyK)
		optional("  kNN recall", "%.4f (k = %d), higher is better", h.KNNRecall, t.config.Quality.K)
	}
	row("loss", "%.5g per edge after %d epochs", m.Loss, m.Epochs)
	s := m.Seconds
	network := selection.If(s.Network > 0, fmt.Sprintf(", network %.1f", s.Network), "")
	row("seconds", "%.1f (load %.1f, PCA %.1f, graph %.1f, start %.1f, optimisation %.1f%s, quality %.1f)", s.Total, s.Load,
		s.PCA, s.Graph, s.Start, s.Optimize, network, s.Quality)
	row("memory", "%.0f MB at most", float64(m.PeakRSSBytes)/1e6)
	m.Computing.Rows(t.device, row)
	return table.Flush()
}

// place places the held-out points and, if asked for, the rest of a sample, and writes their
// positions. It returns the positions of the held-out points, nil if there are none.
func (t *training) place(ctx context.Context, rest bool) (held *data.Matrix, err error) {
	in := t.in
	defer stopwatch(&t.seconds.Project)()
	t.doing = "while the held-out points were placed"
	if rest {
		t.doing = "while the other points were placed; those trained on are in " + t.dir.Path(rundir.SampleName+".npy")
		held, err = in.PlaceRest(ctx, t.embedded, t.dir, t.device, t.ProgressLogger("placing the other points"))
	}
	if err == nil && held == nil && in.Held != nil {
		held, err = t.embedded.ProjectSet(ctx, in.Held, cne.Projection{})
	}
	bad := new(cne.PointError)
	switch {
	case errors.As(err, &bad) && in.Sampled():
		return nil, fmt.Errorf("%s: %s", bad.Name, bad.Fault)
	case err != nil || held == nil:
		return nil, err
	}
	_, names := in.Names()
	err = rundir.WriteEmbedding(t.dir.PositionFiles("holdout", t.config.Output.CSV), held, in.Held.Labels, names)
	if err == nil && (t.config.Data.Holdout.Share > 0 || in.PageRows() != nil) {
		err = t.dir.WriteRows(rundir.HeldRowsFile, in.Division.Held)
	}
	return held, err
}
