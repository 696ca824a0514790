package model

import (
	"context"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/simd"
)

// A Preprocessing has the steps from the points of a run to the input of its model, in
// order to repeat them for new points. It is saved with the model. A nil *Preprocessing
// does nothing.
type Preprocessing struct {
	// Counts turns counts into points; nil if the points were not counts. Apply does not do
	// this step.
	Counts *counts.Scaling `json:"counts,omitempty"`
	// Layer and Obsm say which matrix of a file of single cells had the points; see
	// file.Options. Apply does not do this step.
	Layer string `json:"layer,omitempty"`
	Obsm  string `json:"obsm,omitempty"`
	// Width is the number of values of a point before the other steps.
	Width int `json:"width"`
	// Columns are the names of those values, to match the values of new points by name;
	// nil without names.
	Columns []string `json:"columns,omitempty"`
	// Codings and NA say how columns of tables that are not plain numbers become numbers, and
	// which further words mean missing values. Apply does not do this step.
	Codings []data.Coding `json:"codings,omitempty"`
	NA      []string      `json:"na,omitempty"`
	// Fill, if not nil, has the means of the columns. They replace values of new points that
	// are NaN or infinite. Apply does not do this step.
	Fill []float32 `json:"fill,omitempty"`
	// Scaler scales the points; nil leaves them unchanged.
	Scaler *data.Scaler `json:"scaler,omitempty"`
	// Metric then brings every point to length 1, if it is Cosine or Correlation, and makes
	// the values of sets 0 and 1, if it is Jaccard.
	Metric data.Metric `json:"metric,omitempty"`
	// PCA then takes their principal components; nil keeps the points.
	PCA *pca.PCA `json:"pca,omitempty"`
}

// Check returns an error wrapping data.ErrShape or data.ErrOption for inconsistent values,
// which a file may have. A nil *Preprocessing is valid.
func (p *Preprocessing) Check() (err error) {
	defer kind.Catch(&err)
	if p == nil {
		return nil
	}
	kind.Need(p.Width >= 1, data.ErrShape, "model: preprocessing: got a width of %d, want at least 1", p.Width)
	if c := p.Counts; c != nil {
		kind.Check(c.Check())
		kind.Need(len(c.Genes) == p.Width, data.ErrShape, "model: preprocessing: got %d genes, want %d as the width says", len(c.Genes), p.Width)
	}
	kind.Need(p.Columns == nil || len(p.Columns) == p.Width, data.ErrShape,
		"model: preprocessing: got %d names of columns, want %d as the width says", len(p.Columns), p.Width)
	kind.Check(data.CheckCodings(p.Codings, p.Width))
	kind.Need(p.Fill == nil || len(p.Fill) == p.Width && simd.AllFinite(p.Fill), data.ErrShape,
		"model: preprocessing: got %d means of columns, want %d finite ones as the width says", len(p.Fill), p.Width)
	if p.Scaler != nil {
		kind.Check(p.Scaler.Check(p.Width))
	}
	kind.Check(p.Metric.Check())
	if p.PCA != nil {
		return p.PCA.Check(p.Width)
	}
	return nil
}

// Out returns the number of values of a point after the preprocessing. It returns 0 for
// nil, because the number is then not known.
func (p *Preprocessing) Out() int {
	if p == nil {
		return 0
	}
	if p.PCA != nil {
		return p.PCA.K
	}
	return p.Width
}

// Reading returns the options for reading new points for Apply: with the same columns,
// and with the offset of the training points.
func (p *Preprocessing) Reading(opt file.Options) file.Options {
	if p == nil {
		return opt
	}
	opt.Columns, opt.Codings, opt.NA = p.Columns, p.Codings, p.NA
	if opt.Layer == "" {
		opt.Layer, opt.Obsm = p.Layer, p.Obsm
	}
	if p.Scaler != nil {
		opt.Offset = p.Scaler.Offset
	}
	return opt
}

// Apply preprocesses points. It scales and normalises the points of m in place. It returns
// m, or a new matrix of their principal components. If the columns of m have other names or
// another order, it copies the known columns (see data.Matrix.Select). A nil *Preprocessing
// does not change m.
//
// The error wraps data.ErrShape for points of another width and data.ErrEmpty for no
// points; it is a *data.DirectionError as for data.Metric.Apply, or ctx's.
func (p *Preprocessing) Apply(ctx context.Context, m *data.Matrix) (*data.Matrix, error) {
	m, err := p.ApplyInPlace(m, nil)
	if err != nil || p == nil || p.PCA == nil {
		return m, err
	}
	return p.PCA.Transform(ctx, m)
}

// ApplyInPlace is Apply without the principal components. With skipped, which has one
// element per point, it returns no *data.DirectionError: its points become zeros and are
// marked in skipped.
func (p *Preprocessing) ApplyInPlace(m *data.Matrix, skipped []bool) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	if p == nil {
		return m, nil
	}
	kind.Check(m.Check())
	m, _, err = m.Select(p.Columns)
	kind.Check(err)
	if m.D != p.Width { // as of other calls, the arguments of Need would take memory
		kind.Fail(data.ErrShape, "model: points: got %d values each, want %d as in training", m.D, p.Width)
	}
	if p.Scaler != nil {
		kind.Check(p.Scaler.Apply(m))
	}
	return m, p.Metric.Apply(m, p.Scaler, skipped)
}
