package configs

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/selection"
	"cne/simclr"
	"cne/train"
	"cne/train/quality"
)

// Only this file converts configurations to the options of other packages.

// Reading returns the options for reading the files.
func (d *Data) Reading() file.Options {
	o := d.Options
	if column := d.ownLabels(); column != "" {
		o.LabelColumn, o.Labels = column, nil
	}
	if d.Names != "" && len(o.Only) == 0 && d.Names != o.LabelColumn && !slices.Contains(o.Drop, d.Names) {
		if path, column := file.SplitColumn(d.Names); path == "" && (len(d.Path) == 0 || !file.IsCells(d.Path[0])) { // of the points' own table
			o.Drop = append(slices.Clone(o.Drop), column)
		}
	}
	return o
}

// Rules returns how the rows of data.path are divided, without the rows that a file lists.
func (d *Data) Rules(seed uint64) cne.DivisionRules {
	return cne.DivisionRules{Imbalance: d.Imbalance != "", Holdout: d.Holdout.Share,
		Sample: max(float64(d.Sample.Number), d.Sample.Share), Seed: seed}
}

// ArrangeLabels gives labels the order and the colours that they have in a file of single
// cells.
func (d *Data) ArrangeLabels(l *data.Labels) {
	if column := d.Reading().LabelColumn; column != "" && len(d.Path) > 0 {
		l.Arrange(file.Categories(d.Path[0], column))
	} else if len(d.Labels) == 1 {
		l.Arrange(file.Categories(file.SplitColumn(d.Labels[0])))
	}
}

// ownLabels returns the column of the points' own table, or file of single cells, that
// data.labels names, or "".
func (d *Data) ownLabels() string {
	if len(d.Labels) != 1 || d.LabelColumn != "" || len(d.Path) == 0 || strings.HasPrefix(d.Path[0], file.BuiltinPrefix) {
		return ""
	}
	// The name of a file is no column of what is no table by its name, such as a pipe.
	points, isName := d.Path[0], filepath.Base(file.TrimEnding(d.Labels[0])) == d.Labels[0]
	if !file.IsTable(points) && !file.IsCells(points) && !(isName && file.MayBeTable(points)) {
		return ""
	}
	if path, column := file.SplitColumn(d.Labels[0]); path == "" || len(d.Path) == 1 && file.SameFile(path, d.Path[0]) && !slices.Contains(d.Drop, column) {
		return column
	}
	return ""
}

// FillsMissing reports whether missing values become means: also by default, if columns that
// are not numbers are left out or words for missing values are given.
func (d *Data) FillsMissing() bool {
	return d.Missing == "mean" || d.Missing == "auto" && (d.DropText || len(d.NA) > 0)
}

// LeavesOut reports whether some rows may get no position.
func (d *Data) LeavesOut() bool {
	return d.Imbalance != "" || d.Missing == "drop" || d.ZeroRows == "drop"
}

// Refuses reports whether missing values are refused.
func (d *Data) Refuses() bool { return d.Missing != "drop" && !d.FillsMissing() }

// ReadOptions returns the options for reading training or held-out points. Points stay in
// their files if the run needs only their principal components.
func (c *Config) ReadOptions(d *Data) file.Options {
	o := d.Reading()
	o.AllowMissing = !d.Refuses()
	if d.ZeroRows != "drop" && (c.Model.HasTable() || c.Embed.OnComponents) {
		o.StreamAbove = c.Embed.ReducesAbove()
	}
	return o
}

// Options returns the options of the embedding, without hooks, checkpoints and device.
func (c *Config) Options() cne.Options {
	o := c.Embed
	if c.Model.HasTable() {
		o.Hidden = nil
	} else if o.Hidden == nil {
		o.Hidden = []int{}
	}
	if c.Quality.Recall {
		o.MinNeighbors = c.Quality.K
	}
	if o.Init = cne.InitGiven; c.Model.InitPath() == "" {
		// The rule of the key allows no other words.
		_ = o.Init.UnmarshalText([]byte(c.Model.Init))
	}
	return o
}

// Wanted returns the figures to measure, with their numbers of neighbours and points.
// Figures without a key are measured only by cne evaluate.
func (q *Quality) Wanted() quality.Options {
	o := q.Options
	wanted, fields := map[string]bool{"spearman_sample": *o.SpearmanSample > 0}, reflect.ValueOf(*q)
	for i := range fields.NumField() {
		wanted[fields.Type().Field(i).Tag.Get("key")] = !fields.Field(i).IsZero()
	}
	for _, f := range quality.Table() {
		if !wanted[f.Option] {
			o.Skip |= f.Metric
		}
	}
	return o
}

// MeasureAll asks for all figures.
func (q *Quality) MeasureAll() {
	fields := reflect.ValueOf(q).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
		}
	}
	q.SpearmanSample = new(cmp.Or(*q.SpearmanSample, quality.DefaultSpearmanSample))
}

// Options returns when a run's state is saved by save.
func (c *Checkpoint) Options(save func(*train.Checkpoint) error) *train.Checkpoints {
	return &train.Checkpoints{Interval: time.Duration(c.Minutes * float64(time.Minute)), Save: save}
}

// Pretraining returns the options of the training, without the initial network, hooks,
// checkpoints and device.
func (c *SimCLR) Pretraining() simclr.Pretraining {
	p := c.Pretrain
	if p.Augmentation.WholeSize == p.Augmentation.Size {
		p.Augmentation.WholeSize = 0
	}
	p.Loss.Scale = cmp.Or(p.Loss.Scale, p.Loss.Loss.Info().Scale)
	p.Precision = c.Device.OfConvolutions()
	return p
}

// Options returns the options of the evaluation, without Progress and Device.
func (e *Evaluate) Options() *simclr.Evaluation {
	o := e.Evaluation
	if e.Split == "official" {
		o.Seeds = nil
	}
	o.Random = e.Split == "random"
	return &o
}

// On says which images the network learns from, "all" or "train". With auto these are the
// training images of a published split, or all if there is none.
func (p *Protocol) On(images *images.Set) string {
	if p.PretrainOn != "auto" {
		return p.PretrainOn
	}
	if _, err := simclr.OfficialSplit(images); err != nil {
		return "all"
	}
	return "train"
}

// Rows returns the rows of the images that the network learns from.
func (p *Protocol) Rows(images *images.Set) ([]int32, error) {
	if images.H*images.W == 1 {
		return nil, fmt.Errorf("%s: got images of a single pixel, want larger ones, or a larger data.size", images.Name)
	}
	if p.On(images) == "train" {
		split, err := simclr.OfficialSplit(images)
		if err != nil {
			return nil, fmt.Errorf("%w; or set simclr.pretrain_on to all", err)
		}
		return split.Train, nil
	}
	return selection.UpTo[int32](images.N), nil
}

// Evaluation returns how a representation is evaluated with images: by the published split
// if the network learns from its training images, unless the configuration says otherwise.
func (c *SimCLR) Evaluation(images *images.Set) *Evaluate {
	e, split := c.Evaluate, "stratified"
	if c.SimCLR.On(images) == "train" {
		split = "official"
	}
	e.Split = cmp.Or(e.Split, split)
	return &e
}

// FirstSplit returns the first split of an evaluation.
func (e *Evaluate) FirstSplit(images *images.Set) (simclr.Split, error) {
	if e.Split == "official" {
		return simclr.OfficialSplit(images)
	}
	return e.Options().Draw(images, e.Seeds[0])
}

// Explain adds to an error of an evaluation the key that fixes it.
func (e *Evaluate) Explain(err error) error {
	switch {
	case errors.Is(err, simclr.ErrLabels):
		return fmt.Errorf("%w (data.labels)", err)
	case errors.Is(err, simclr.ErrOption):
		return fmt.Errorf("%w (evaluate.k)", err)
	case errors.Is(err, simclr.ErrSplit) && e.Split == "official":
		return fmt.Errorf("%w (evaluate.split)", err)
	case errors.Is(err, simclr.ErrSplit):
		return fmt.Errorf("%w (evaluate.test)", err)
	}
	return err
}
