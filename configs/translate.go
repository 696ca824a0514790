package configs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"cne"
	"cne/data/file"
	"cne/data/images"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
	"cne/train/quality"
)

// Here, and nowhere else, configurations become the options of the packages that
// do the work.

// Options returns how the files are read.
func (d *Data) Options() file.Options {
	o := file.Options{Labels: d.Labels, Only: d.Columns, Drop: d.Drop, Header: d.Header}
	if d.LabelColumn != nil {
		o.LabelColumn = *d.LabelColumn
	}
	return o
}

// ReadOptions returns how files of points are read, those of Data or such as are held
// out: points of which the run needs the principal components alone stay in their files.
func (c *Config) ReadOptions(d *Data) file.Options {
	o := d.Options()
	if c.Model.Kind == "table" || c.Model.Input == "pca" {
		o.StreamAbove = c.Graph.PCA
	}
	return o
}

// Options returns how the files are read.
func (d *ImageData) Options() images.Options {
	return images.Options{Labels: d.Labels, Size: d.Size, SkipBroken: d.SkipBroken}
}

// Options returns the loss of a batch.
func (l *Loss) Options() op.ContrastiveOptions {
	return op.ContrastiveOptions{
		Loss: l.Name, Metric: l.Metric, Temperature: l.Temperature,
		Clamp: l.Clamp, Scale: l.Factor(), Mean: l.Reduction == "mean", ExcludePositive: !l.PositiveInDenominator,
	}
}

// Options returns how the points of a run are embedded, but for what happens
// meanwhile and where: hooks, checkpoints and the device. The phases are complete.
func (c *Config) Options() cne.Options {
	l, t := &c.Loss, &c.Train
	o := cne.Options{
		Scaling: c.Data.Scale, GraphMetric: c.Graph.Metric, Components: &c.Graph.PCA, Neighbors: c.Graph.K, Search: c.Graph.Search, SampleEdges: c.Graph.WeightedSampling,
		OnComponents: c.Model.Input == "pca", Dim: c.Model.Dim, Float64: c.Model.DType == "float64",
		InitStd: c.Model.InitStd,
		Loss:    l.Name, Metric: l.Metric, Temperature: l.Temperature, Sampling: l.Sampling, Scale: l.Factor(), Clamp: &l.Clamp,
		Mean: l.Reduction == "mean", ExcludePositive: !l.PositiveInDenominator, LogZ: l.LogZ, FixZ: !l.LearnZ,
		BatchSize: t.BatchSize, Momentum: t.Momentum, WeightDecay: t.WeightDecay,
		LRZ: &t.LRZ, Clip: &t.Clip, Seed: c.Seed,
	}
	if c.Model.Kind != "table" {
		o.Hidden = append([]int{}, c.Model.Hidden...) // an empty list is no nil
	}
	o.Init = cne.InitGiven
	if c.Model.InitPath() == "" && o.Init.UnmarshalText([]byte(c.Model.Init)) != nil {
		o.Init = cne.InitMultilevel
	}
	o.Optimizer = map[string]cne.Optimizer{"sgd": cne.SGD, "adam": cne.Adam}[t.Optimizer]
	o.Epochs, o.LR, o.Negatives, o.Schedule, o.WarmUp = t.Epochs, t.LR, int(l.Negatives), t.Schedule, t.WarmUp
	o.Spectrum, o.EarlyExaggeration = place(l.S, l.ZBar), t.EarlyExaggeration
	for _, p := range t.Phases {
		x := cne.Phase{Epochs: p.Epochs, Spectrum: place(p.S, p.ZBar), Schedule: p.Schedule, WarmUp: p.WarmUp, LogZ: p.LogZ}
		if p.LR != nil {
			x.LR = *p.LR
		}
		if p.Negatives != nil {
			x.Negatives = int(*p.Negatives)
		}
		o.Phases = append(o.Phases, x)
	}
	return o
}

// Options returns what is to be measured, and of how many neighbours and points.
// What has no key here is left to cne evaluate.
func (q *Quality) Options() quality.Options {
	o := quality.Options{K: q.K, Sample: q.Spearman, Points: cmp.Or(q.Points, -1), Skip: quality.MetricLosses}
	wanted, fields := map[string]bool{}, reflect.ValueOf(*q)
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
	q.Spearman = cmp.Or(q.Spearman, quality.DefaultSample)
}

// place returns where on the spectrum s or z_bar say.
func place(s *float64, zBar *ZBar) train.SpectrumParam {
	if zBar != nil && *zBar == Uniform {
		return train.FromZBar(0)
	}
	return train.SpectrumParam{S: s, ZBar: (*float64)(zBar)}
}

// Options returns when the state of a run is saved, for save to do it.
func (c *Checkpoint) Options(save func(*train.Checkpoint) error) *train.Checkpoints {
	return &train.Checkpoints{Epochs: c.Epochs, Interval: time.Duration(c.Minutes * float64(time.Minute)), Save: save}
}

// Pretraining returns how the network is trained, but for what it begins with, and for
// what happens meanwhile: hooks, checkpoints and the device.
func (c *SimCLR) Pretraining() simclr.Pretraining {
	return simclr.Pretraining{
		Augmentation: c.Views.Augmentation(),
		Network:      model.ResNetOptions{Width: c.Network.Width, Hidden: c.Network.Hidden, Out: c.Network.Out},
		Loss:         c.Loss.Options(), LearnTemperature: c.Loss.LearnTemperature,
		Spectrum: place(c.Loss.S, c.Loss.ZBar),
		LogZ:     c.Loss.LogZ, LRZ: c.Train.LRZ, FixZ: !c.Loss.LearnZ || c.Train.LRZ == 0,
		BatchSize: c.Train.BatchSize, Negatives: int(c.Loss.Negatives), Sampling: c.Loss.Sampling,
		Epochs: c.Train.Epochs, WarmUp: c.Train.WarmUp, LR: c.Train.LR, Schedule: c.Train.Schedule, Stages: c.stages(),
		Momentum: c.Train.Momentum, WeightDecay: c.Train.WeightDecay, NoNormDecay: !c.Train.DecayNorms,
		Clip: c.Train.Clip, Seed: c.Seed, Precision: c.Device.OfConvolutions(),
	}
}

// Augmentation returns how views are drawn.
func (v *Views) Augmentation() simclr.Augmentation {
	a := simclr.Augmentation{
		Size:     v.Size,
		MinScale: v.MinScale, MaxScale: v.MaxScale, MinRatio: v.MinRatio, MaxRatio: v.MaxRatio,
		Flip:   v.Flip,
		Jitter: v.Jitter, Brightness: v.Brightness, Contrast: v.Contrast, Saturation: v.Saturation, Hue: v.Hue,
		Gray: v.Grey,
	}
	if v.WholeSize != v.Size {
		a.WholeSize = v.WholeSize
	}
	for c := range 3 {
		a.Mean[c], a.Std[c] = float32(v.Mean[c]), float32(v.Std[c])
	}
	return a
}

// Evaluation returns how a representation is evaluated, but for what happens
// meanwhile.
func (e *Evaluate) Evaluation() *simclr.Evaluation {
	o := &simclr.Evaluation{K: e.K, Test: e.Test}
	if e.Split == "stratified" {
		o.Seeds = e.Seeds
	}
	return o
}

// Rows returns the rows of the images that a network sees.
func (p *Protocol) Rows(images *images.Set) ([]int32, error) {
	if images.H*images.W == 1 {
		return nil, fmt.Errorf("%s: the images have a single pixel each, from which nothing can be learnt; give larger ones, or raise data.size", images.Name)
	}
	if p.PretrainOn == "train" {
		split, err := simclr.OfficialSplit(images)
		if err != nil {
			return nil, fmt.Errorf("%w; or set simclr.pretrain_on to all", err)
		}
		return split.Train, nil
	}
	rows := make([]int32, images.N)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows, nil
}

// FirstSplit returns the first split of an evaluation.
func (e *Evaluate) FirstSplit(images *images.Set) (simclr.Split, error) {
	if e.Split == "stratified" {
		return simclr.StratifiedSplit(images, e.Test, e.Seeds[0])
	}
	return simclr.OfficialSplit(images)
}

// Explain adds to an error of an evaluation the key with which it can be mended.
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
