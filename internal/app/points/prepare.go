package points

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/pca"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/text"
	"cne/model"
)

// rowsKey identifies the training points among all points; "" without data.sample.
func (in *Inputs) rowsKey() string {
	if !in.Sampled() {
		return ""
	}
	hash := sha256.New()
	for _, row := range in.Division.Trained {
		_ = binary.Write(hash, binary.LittleEndian, int64(row)) // a hash never fails
	}
	return fmt.Sprintf("%d of %d, %x", len(in.Division.Trained), in.N, hash.Sum(nil)[:16])
}

// manyColumns is the least number of columns where sparse whole numbers are taken for
// counts.
const manyColumns = 1000

// MaybeCounts reports whether the points look like counts that nothing has normalized.
func (in *Inputs) MaybeCounts() bool {
	m := in.Points.Points
	if m == nil || m.CSR == nil || m.D < manyColumns || in.Config.Embed.GraphMetric == data.Cosine || in.Config.Embed.GraphMetric.Direct() {
		return false
	}
	values := m.CSR.Value
	return len(values) > 0 && slices.Max(values) > 1 &&
		!slices.ContainsFunc(values, func(v float32) bool { return v < 0 || v != float32(int64(v)) })
}

// LogCounts logs what became of the counts.
func (in *Inputs) LogCounts() {
	if in.counts == nil {
		return
	}
	kept, wanted := len(in.counts.Genes), min(in.Config.Data.Genes, in.counts.Total)
	in.log.Info("made points from the counts", "genes", kept, "of", in.counts.Total, "median_library_size", in.counts.LibrarySize)
	if kept < wanted {
		in.log.Warn("fewer genes vary enough than data.genes asks for", "genes", kept, "wanted", wanted)
	}
	if in.emptyCells > 0 {
		in.log.Warn("cells without counts are zeros", "cells", in.emptyCells)
	}
}

// Prepared is the neighbourhood that the embeddings of a run preserve, with the keys that
// identify it.
type Prepared struct {
	*cne.Neighborhood
	PointsKey, HeldKey, RowsKey, GraphKey, TowardsKey string // "" if there are none, or for all rows
}

// ChooseComponents is cne.Options.ChooseComponents for the points as they were read.
func (in *Inputs) ChooseComponents(o *cne.Options) {
	o.ChooseComponents(in.Points.Points != nil && in.Points.Points.CSR != nil, in.counts != nil)
}

// Prepare finds the neighbours of the points, which it takes from the inputs, or reads
// them from the cache of an earlier run on the same points with the same settings.
func (in *Inputs) Prepare(ctx context.Context, o *cne.Options, dir *rundir.Dir) (_ *Prepared, err error) {
	defer kind.Catch(&err)
	c := in.Config
	n, width := in.Points.Dims()
	cache := dir.Cache(in.log, c.Graph.Cache)
	defer cache.Release()
	o.Log, o.Cache, o.Graph = in.log, cache, in.graph
	if in.counts != nil && o.Scaling == data.ScaleAuto { // the columns are one quantity
		o.Scaling = data.ScaleUnit
	}
	in.ChooseComponents(o)
	h, err := cne.Prepare(ctx, in.Points, *o)
	if err != nil {
		return nil, c.ExplainPoints(err, n, o.Reduces(n, width))
	}
	h.Preprocessing.Fill, h.Preprocessing.NA = in.fill, c.Data.NA
	of := c.Data.Reading()
	if of.Layer+of.Obsm == "" && in.counts == nil && file.IsCells(c.Data.Path[0]) {
		of.Layer = "X" // also if new cells have counts
	}
	h.Preprocessing.Layer, h.Preprocessing.Obsm = of.Layer, of.Obsm
	if in.counts != nil { // they have the names of the genes
		h.Preprocessing.Counts, h.Preprocessing.Columns = in.counts, nil
	}
	p := &Prepared{Neighborhood: h, PointsKey: cache.PointsKey, RowsKey: in.rowsKey(), GraphKey: rundir.GraphKey(h.Graph)}
	if in.Held != nil {
		held := kind.Got(in.ScaledHeld(ctx, h.Preprocessing, h.PCA))
		p.HeldKey = kind.Got(rundir.PointsKey(ctx, held.Source()))
	}
	names, _ := in.Names()
	o.Start = kind.Got(in.Earlier.Start(in.log, h, names, in.Division, in.N, c.Embed.Seed))
	if o.Towards = kind.Got(in.Towards.Start(in.log, h, names, in.Division, in.N, c.Embed.Seed)); o.Towards != nil {
		p.TowardsKey = kind.Got(rundir.PointsKey(ctx, o.Towards))
	}
	return p, nil
}

// ScaledHeld returns the held-out points, scaled like the points of a run with these
// components.
func (in *Inputs) ScaledHeld(ctx context.Context, before *model.Preprocessing, components *pca.PCA) (*data.Dataset, error) {
	set := *in.Held
	if set.Points != nil {
		set.Points = set.Points.Clone()
	}
	err := scaleLike(ctx, &set, before, components)
	if errors.Is(err, data.ErrDirection) {
		return nil, fmt.Errorf("data.holdout: %w (graph.metric)", err)
	}
	return &set, err
}

// scaleLike scales points in place like the points of a run with these components.
func scaleLike(ctx context.Context, set *data.Dataset, before *model.Preprocessing, components *pca.PCA) (err error) {
	defer kind.Catch(&err)
	if components == nil && set.Points != nil && set.Points.CSR != nil &&
		(before.Scaler.Kind == data.ScaleStandard || !before.Metric.Sparse()) {
		set.Points = kind.Got(set.Points.Dense())
	}
	kind.Check(set.ScaleBy(before.Scaler))
	return set.Normalize(ctx, before.Metric, before.Scaler)
}

// Reduce returns the components of scaled points, or the points themselves.
func Reduce(ctx context.Context, scaled *data.Dataset, components *pca.PCA) (*data.Matrix, error) {
	if components == nil {
		return data.Collect(ctx, scaled.Source())
	}
	return components.Transform(ctx, scaled.Source())
}

// ReadAgain reads the training points of the run in a folder, by its configuration, and
// prepares them as the run did. Other points are an error.
func ReadAgain(ctx context.Context, log *slog.Logger, folder string, before *model.Preprocessing) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	if before == nil || before.Scaler == nil {
		return nil, errors.New("the model does not say how they were prepared")
	}
	c, origins, err := configs.Train.Load(&configs.Sources{File: filepath.Join(folder, rundir.ConfigFile), Context: ctx})
	kind.Check(err)
	rundir.LocateInputs(folder, c, origins)
	d := &c.Data
	d.Holdout.Paths, d.HoldoutLabels = nil, nil // other files than the points'
	// A name that is no column is of a file, which may be gone. Labels in a file choose no columns.
	has := func(column string) bool {
		_, err := file.FindColumn(ctx, d.Path, column, file.Options{Header: d.Header})
		return column != "" && err == nil
	}
	if d.Holdout.Share == 0 && d.Imbalance == "" && !has(d.Reading().LabelColumn) {
		d.Labels = nil
	}
	if d.Names != "" && !has(d.Names) {
		d.Names = ""
	}
	c.Graph.File = ""
	log.Info("reading the training points again", "data", text.Few(d.Path, nil))
	in := kind.Got(Read(ctx, c, origins, slog.New(slog.DiscardHandler))) // training has logged it
	kind.Check(scaleLike(ctx, in.Points, before, before.PCA))
	key := kind.Got(rundir.PointsKey(ctx, in.Points.Source()))
	if trained, _ := rundir.DataKeys(folder); key != trained {
		return nil, fmt.Errorf("the points of %s are not those that the run was trained on, by its metrics.json", text.Few(d.Path, nil))
	}
	return Reduce(ctx, in.Points, before.PCA)
}
