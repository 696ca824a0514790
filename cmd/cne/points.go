package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/app/sampled"
	"cne/internal/ctxio"
	"cne/model"
)

// inputs is what a run reads.
type inputs struct {
	// points are those to train on, scaled; held are those kept from it, nil
	// if there are none, scaled alike.
	points, held *data.Dataset
	// heldComponents are the principal components of held, once asked for.
	heldComponents *data.Matrix
	// rows and heldRows say which rows of the input, counted from 0, points and
	// held are: rows if some were left out on purpose, heldRows if a share of
	// them was held out; nil otherwise.
	rows, heldRows []int
	// sampled has the points of which rows are trained on; nil if all are.
	sampled *sampled.Points
	// counts is how counts became points, of which emptyCells are zeros; nil if
	// the points were no counts.
	counts     *data.CountScaling
	emptyCells int
	// scaler is how they were scaled, and width how wide they were.
	scaler *data.Scaler
	metric data.Metric // by which they were then brought to length 1, if not euclidean
	width  int
	// images are those that the points are, once asked for (see pageImages).
	images     *data.Images
	imagesRead bool

	annotations *report.Annotations // in the order of a page
	earlier     *rundir.Earlier     // the embedding from which the points start; nil for none

	log *slog.Logger
}

// errReading is the error of a run that was interrupted before it had its points.
var errReading = errors.New("interrupted while the points were read; nothing was written")

// pageRows returns which rows of the input the points of a page are; nil for all.
func (in *inputs) pageRows() []int {
	if in.rows == nil {
		return nil
	}
	return slices.Concat(in.rows, in.heldRows)
}

// readInputs reads and scales the points of a run, until ctx ends.
func readInputs(ctx context.Context, c *configs.Config, log *slog.Logger) (*inputs, error) {
	return ctxio.Await(ctx, func() (*inputs, error) { return readAndScale(ctx, c, log) })
}

// readRun is readInputs for a run that begins, which says what was read: n points to
// train on.
func readRun(ctx context.Context, c *configs.Config, log *slog.Logger) (in *inputs, n int, err error) {
	if in, err = readInputs(ctx, c, log); ctx.Err() != nil {
		return nil, 0, errReading
	}
	if err != nil {
		return nil, 0, err
	}
	n, width := in.points.Dims()
	log.Info("read the points", "data", in.points.Name, "points", n, "width", width)
	in.logCounts(log, c.Data.Genes)
	if in.held != nil {
		held, _ := in.held.Dims()
		log.Info("held out", "points", held)
	}
	return in, n, nil
}

func readAndScale(ctx context.Context, c *configs.Config, log *slog.Logger) (*inputs, error) {
	if err := c.CheckFiles(); err != nil {
		return nil, err
	}
	in := &inputs{log: log}
	var err error
	switch {
	case c.Data.TrainOn != nil:
		if in.points, in.sampled, err = sampled.Open(ctx, log, c); err == nil {
			in.rows = in.sampled.Rows
		}
	case slices.ContainsFunc(c.Data.Path, data.IsCounts):
		err = in.readCounts(ctx, &c.Data)
	default:
		in.points, err = in.open(ctx, &c.Data, c.ReadOptions(&c.Data), "data.path", "data.labels")
	}
	if err != nil {
		return nil, err
	}
	_, in.width = in.points.Dims()
	if in.points.Points != nil {
		o := c.Options()
		o.Log = log
		if in.points.Points, err = o.Densify(in.points.Points); err != nil {
			return nil, fmt.Errorf("graph.pca: %w", err)
		}
	}
	if c.Data.Imbalance != nil {
		if in.points, _, err = in.points.Imbalance(c.Seed); err != nil {
			return nil, fmt.Errorf("data.imbalance: %w", err)
		}
	}
	if h := c.Data.Holdout; h != nil {
		if err := in.holdOut(ctx, c, h); err != nil {
			return nil, err
		}
	}
	if c.Data.Imbalance != nil {
		in.rows = in.points.Origins()
	}
	if in.scaler, err = in.points.Scale(ctx, c.Data.Scale); err != nil {
		return nil, blame("data.scale", err)
	}
	if err := in.points.Normalize(ctx, c.Graph.Metric, in.scaler); err != nil {
		return nil, blame("graph.metric", err)
	}
	in.metric = c.Graph.Metric
	if in.held == nil {
		return in, nil
	}
	if err := in.held.ScaleBy(in.scaler); err != nil {
		return nil, err
	}
	if err := in.held.Normalize(ctx, c.Graph.Metric, in.scaler); err != nil {
		return nil, fmt.Errorf("data.holdout: %w", blame("graph.metric", err))
	}
	return in, nil
}

// blame adds a key to an error, unless that is about a file that has changed meanwhile.
func blame(key string, err error) error {
	if errors.Is(err, data.ErrChanged) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, key)
}

// before returns what was done to the points.
func (in *inputs) before() *model.Preprocessing {
	p := &model.Preprocessing{Counts: in.counts, Width: in.width, Scaler: in.scaler, Metric: in.metric}
	if in.counts == nil { // which has the names of the genes
		p.Columns = in.points.Columns()
	}
	return p
}

// holdOut fills in held.
func (in *inputs) holdOut(ctx context.Context, c *configs.Config, h *configs.Holdout) error {
	if h.Share > 0 {
		var err error
		if in.points, in.held, _, err = in.points.Split(h.Share, c.Seed); err != nil {
			return fmt.Errorf("data.holdout: %w", err)
		}
		in.heldRows = in.held.Origins()
		return nil
	}
	d := c.Data
	d.Path, d.Labels = h.Paths, d.HoldoutLabels
	var err error
	if in.counts != nil {
		in.held, err = in.heldCounts(ctx, &d)
		return err
	}
	o := c.ReadOptions(&d)
	o.Columns, o.Offset = in.points.Columns(), in.points.Offset()
	held, err := in.open(ctx, &d, o, "data.holdout", "data.holdout_labels")
	if errors.Is(err, data.ErrShape) {
		return fmt.Errorf("data.holdout: %w", err)
	}
	if err != nil {
		return err
	}
	if _, d := held.Dims(); d != in.width {
		return fmt.Errorf("data.holdout: the points have %d values, but those of data.path have %d; give points of the same kind", d, in.width)
	}
	in.held = held
	if held.Points != nil && (in.points.Points == nil || in.points.Points.CSR == nil) {
		held.Points, err = held.Points.Dense()
	}
	return err
}

// open reads points. pathKey and labelsKey are the keys that name their files and
// those of their labels.
func (in *inputs) open(ctx context.Context, c *configs.Data, o data.Options, pathKey, labelsKey string) (*data.Dataset, error) {
	if name, ok := strings.CutPrefix(c.Path[0], configs.BuiltinPrefix); ok {
		if len(c.Path) > 1 || len(c.Labels) > 0 {
			return nil, fmt.Errorf("%s is %s, which has labels of its own and goes with no other file; leave the other paths and %s out", pathKey, c.Path[0], labelsKey)
		}
		return data.Builtin(name)
	}
	o.Log = in.log
	return data.Open(ctx, c.Path, o)
}
