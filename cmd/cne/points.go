package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/text"
)

// inputs is what a run reads.
type inputs struct {
	// points are trained on, until prepare takes their values; held are kept from it, nil
	// if there are none. Both are as they were read.
	points, held *data.Dataset
	// rows and heldRows say which rows of the input, counted from 0, points and
	// held are: rows if some were left out on purpose, heldRows if a share of
	// them was held out; nil otherwise.
	rows, heldRows []int
	sample         *sample // has all points, if only rows are trained on
	// counts is how counts became points, of which emptyCells are zeros; nil if
	// the points were no counts.
	counts     *counts.Scaling
	emptyCells int
	// images are those that the points are, once asked for (see pageImages).
	images     *images.Set
	imagesRead bool

	annotations *report.Annotations   // in the order of a page
	earlier     *rundir.InitEmbedding // the embedding from which the points start; nil for none

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

// readRun reads the points of a run that begins, and what else is known of them, and says
// why the run cannot be made of them; n of them are trained on.
func (r *trainCommand[C]) readRun(ctx context.Context, c *configs.Config) (in *inputs, n int, err error) {
	if in, err = readInputs(ctx, c, r.Log); err == nil {
		n, err = r.checkRead(ctx, c, in)
	}
	if ctx.Err() != nil {
		err = errReading
	}
	return in, n, err
}

func (r *trainCommand[C]) checkRead(ctx context.Context, c *configs.Config, in *inputs) (n int, err error) {
	n, width := in.points.Dims()
	r.Log.Info("read the points", "data", in.points.Name, "points", n, "width", width)
	in.logCounts(c.Data.Genes)
	all := n
	if in.held != nil {
		held, _ := in.held.Dims()
		r.Log.Info("held out", "points", held)
		all += held
	}
	if err := r.checkSize(in.size()); err != nil {
		return n, err
	}
	if err := report.Check(in.points, in.held, c); err != nil {
		return n, err
	}
	if in.annotations, err = report.ReadAnnotations(ctx, r.Log, rundir.TableOf(c), report.WantedBy(c), all, in.pageRows()); err == nil && r.from == nil {
		in.earlier, err = rundir.ReadInitEmbedding(ctx, c)
	}
	return n, err
}

// size returns that of what was read, before some were held out.
func (in *inputs) size() data.Size {
	size := in.points.Size(len(in.heldRows))
	if in.sample != nil {
		size = in.points.Size(in.sample.uncounted())
	}
	if len(in.heldRows) > 0 {
		size.Nonzeros += in.held.Points.Nonzeros()
	}
	return size
}

// readInputs reads the points of a run.
func readInputs(ctx context.Context, c *configs.Config, log *slog.Logger) (in *inputs, err error) {
	if err := c.CheckFiles(); err != nil {
		return nil, err
	}
	in = &inputs{log: log}
	if c.Data.TrainOn != nil {
		if in.points, in.sample, err = readSample(ctx, log, c); err == nil {
			in.rows = in.sample.rows
		}
		return in, err
	}
	if in.points, err = in.read(ctx, &c.Data, c.ReadOptions(&c.Data), "data.path", "data.labels"); err != nil {
		return nil, err
	}
	if c.Data.Imbalance != nil {
		if in.points, _, err = in.points.Imbalance(c.Embed.Seed); err != nil {
			return nil, fmt.Errorf("data.imbalance: %w", err)
		}
	}
	if h := c.Data.Holdout; h != nil && h.Share > 0 {
		if in.points, in.held, _, err = in.points.Split(h.Share, c.Embed.Seed); err != nil {
			return nil, fmt.Errorf("data.holdout: %w", err)
		}
		in.heldRows = in.held.Origins()
	} else if h != nil {
		if err := in.readHeld(ctx, c, h); err != nil {
			return nil, err
		}
	}
	if c.Data.Imbalance != nil {
		in.rows = in.points.Origins()
	}
	return in, nil
}

// readHeld reads the files of points that are held out.
func (in *inputs) readHeld(ctx context.Context, c *configs.Config, h *configs.Holdout) (err error) {
	d := c.Data
	d.Path, d.Labels = h.Paths, d.HoldoutLabels
	o := c.ReadOptions(&d)
	o.Columns, o.Offset = in.points.Columns(), in.points.Offset()
	in.held, err = in.read(ctx, &d, o, "data.holdout", "data.holdout_labels")
	if errors.Is(err, data.ErrShape) {
		return fmt.Errorf("data.holdout: %w", err)
	}
	if err != nil {
		return err
	}
	_, got := in.held.Dims()
	if _, want := in.points.Dims(); got != want {
		return fmt.Errorf("data.holdout: got points of %d values, want %d as in data.path", got, want)
	}
	if in.held.Points != nil && (in.points.Points == nil || in.points.Points.CSR == nil) {
		in.held.Points, err = in.held.Points.Dense()
	}
	return err
}

// read reads points. pathKey and labelsKey are the keys that name their files and
// those of their labels.
func (in *inputs) read(ctx context.Context, c *configs.Data, o file.Options, pathKey, labelsKey string) (*data.Dataset, error) {
	o.Log = in.log
	name, builtin := strings.CutPrefix(c.Path[0], configs.BuiltinPrefix)
	switch {
	case in.counts != nil || slices.ContainsFunc(c.Path, counts.Is) && pathKey == "data.path":
		return in.readCounts(ctx, c)
	case builtin && (len(c.Path) > 1 || len(c.Labels) > 0):
		return nil, fmt.Errorf("%s: %s has labels of its own and goes with no other file; leave the other paths and %s out", pathKey, c.Path[0], labelsKey)
	case builtin:
		return file.Builtin(name)
	}
	return file.Read(ctx, c.Path, o)
}

// readCounts reads counts of single-cell sequencing and makes points of them: those that
// are held out as those to train on have become.
func (in *inputs) readCounts(ctx context.Context, c *configs.Data) (*data.Dataset, error) {
	o := c.Options()
	o.Log = in.log
	if in.counts != nil {
		o.Columns = in.counts.Names
	}
	read, err := counts.Open(ctx, c.Path, o)
	if err != nil {
		return nil, err
	}
	if in.counts != nil {
		set, err := in.counts.Apply(read)
		if err != nil {
			return nil, fmt.Errorf("data.holdout: %w", err)
		}
		return set, nil
	}
	if in.counts, err = counts.Fit(read, c.Genes); err != nil {
		return nil, fmt.Errorf("%s: %w (data.path)", text.Few(c.Path, nil), err)
	}
	in.emptyCells = read.EmptyCells()
	return in.counts.Apply(read)
}

// logCounts says what became of the counts.
func (in *inputs) logCounts(wanted int) {
	if in.counts == nil {
		return
	}
	kept := len(in.counts.Genes)
	in.log.Info("made points of the counts", "genes", kept, "of", in.counts.Total, "median_library_size", in.counts.LibrarySize)
	if kept < wanted {
		in.log.Warn("fewer genes vary enough than data.genes asks for", "genes", kept, "wanted", wanted)
	}
	if in.emptyCells > 0 {
		in.log.Warn("cells without counts have become zeros", "cells", in.emptyCells)
	}
}

// prepared is what the embeddings of a run are to preserve, with what identifies it.
type prepared struct {
	*cne.Neighborhood
	pointsKey string // identifies the points
	heldKey   string // and those that are held out; "" if there are none
	rowsKey   string // and which of more they are; "" for all
	graphKey  string // and the graph
}

// prepare finds the neighbours of the points, which it takes from the inputs, or takes them
// from the cache of an earlier run on the same points with the same settings.
func prepare(ctx context.Context, c *configs.Config, o *cne.Options, dir *rundir.Dir, in *inputs) (*prepared, error) {
	n, width := in.points.Dims()
	if c.Graph.File != nil {
		var err error
		if o.Graph, err = rundir.ReadGraph(ctx, in.log, c, n); err != nil {
			return nil, err
		}
	}
	cache := dir.Cache(in.log, c.Graph.Cache)
	defer cache.Release()
	o.Log, o.Cache = in.log, cache
	h, err := cne.Prepare(ctx, in.points, *o)
	if err != nil {
		return nil, c.ExplainPoints(err, n, o.Reduces(n, width))
	}
	if in.counts != nil { // which has the names of the genes
		h.Preprocessing.Counts, h.Preprocessing.Columns = in.counts, nil
	}
	if h.Nearest != nil {
		h.Nearest.Dist2 = nil // what is measured takes the indices only
	}
	p := &prepared{Neighborhood: h, pointsKey: cache.PointsKey, rowsKey: in.sample.key(), graphKey: rundir.GraphKey(h.Graph)}
	if in.held != nil {
		held, err := in.scaledHeld(ctx, h)
		if err != nil {
			return nil, err
		}
		if p.heldKey, err = rundir.PointsKey(ctx, held.Source()); err != nil {
			return nil, err
		}
	}
	names, _ := in.annotations.Split(n, in.rows, in.heldRows)
	o.Start, err = in.earlier.Start(in.log, h, names, c.Embed.Seed)
	return p, err
}

// scaledHeld returns the points that were held out as those of a neighborhood were scaled.
func (in *inputs) scaledHeld(ctx context.Context, h *cne.Neighborhood) (_ *data.Dataset, err error) {
	set := *in.held
	switch {
	case set.Points == nil:
	case h.PCA == nil && set.Points.CSR != nil:
		set.Points, err = set.Points.Dense()
	default:
		set.Points = set.Points.Clone()
	}
	if err == nil {
		err = set.ScaleBy(h.Preprocessing.Scaler)
	}
	if err == nil {
		err = set.Normalize(ctx, h.Preprocessing.Metric, h.Preprocessing.Scaler)
	}
	if errors.Is(err, data.ErrDirection) {
		return nil, fmt.Errorf("data.holdout: %w (graph.metric)", err)
	}
	return &set, err
}
