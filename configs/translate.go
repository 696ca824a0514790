package configs

import (
	"time"

	"cne/data"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// Here, and nowhere else, configurations become the options of the packages that
// do the work.

// Options returns how the files are read.
func (d *Data) Options() data.Options {
	o := data.Options{Labels: d.Labels, Drop: d.Drop, Header: d.Header}
	if d.LabelColumn != nil {
		o.LabelColumn = *d.LabelColumn
	}
	return o
}

// Options returns how the files are read.
func (d *ImageData) Options() data.ImageOptions {
	return data.ImageOptions{Labels: d.Labels, Size: d.Size}
}

// Options returns the loss of a batch.
func (l *Loss) Options() op.ContrastiveOptions {
	return op.ContrastiveOptions{
		Loss: l.Name, Metric: l.Metric, Temperature: l.Temperature,
		Clamp: l.Clamp, Scale: l.Factor(), Mean: l.Reduction == "mean", ExcludePositive: !l.PositiveInDenominator,
	}
}

// FitOptions returns how the model is trained, but for what happens meanwhile:
// hooks, checkpoints and the device.
func (c *Config) FitOptions() train.Options {
	o := train.Options{
		BatchSize: c.Train.BatchSize, Seed: c.Seed, Draw: c.Loss.Draw, Clip: c.Train.Clip,
		LogZ: c.Loss.LogZ, FixZ: !c.Loss.LearnZ || c.Train.LRZ == 0, LRZ: c.Train.LRZ,
		Method: c.Train.method(c.Train.WeightDecay), MethodZ: c.Train.method(0),
	}
	for _, s := range c.Stages() {
		o.Phases = append(o.Phases, train.Phase{
			Epochs: s.Epochs, LR: s.LR, Negatives: int(s.Negatives), Anneal: s.Anneal, WarmUp: s.WarmUp,
			Place: place(s.S, s.ZBar), ExaggerateEarly: c.Train.EarlyExaggeration == "third",
		})
	}
	return o
}

// method returns a new optimiser.
func (o *Optimization) method(weightDecay float64) train.Method {
	if o.Optimizer == "adam" {
		return &train.Adam{WeightDecay: weightDecay}
	}
	return &train.SGD{Momentum: o.Momentum, WeightDecay: weightDecay}
}

// place returns the place on the spectrum that s or z_bar say.
func place(s *float64, zBar *ZBar) train.Place {
	switch {
	case s != nil:
		return train.AtS(*s)
	case zBar != nil && *zBar != Uniform:
		return train.AtZBar(float64(*zBar))
	}
	return train.Place{}
}

// Options returns when the state of a run is saved, for save to do it.
func (c *Checkpoint) Options(save func(*train.Checkpoint) error) *train.Checkpoints {
	return &train.Checkpoints{Epochs: c.Epochs, Interval: time.Duration(c.Minutes * float64(time.Minute)), Save: save}
}

// Pretraining returns how the network is trained, but for what happens meanwhile:
// hooks, checkpoints and the device.
func (c *SimCLR) Pretraining() simclr.Pretraining {
	return simclr.Pretraining{
		Augmentation: c.Views.Augmentation(),
		Network:      model.ResNetOptions{Width: c.Network.Width, Hidden: c.Network.Hidden, Out: c.Network.Out},
		Loss:         c.Loss.Options(), LearnTemperature: c.Loss.LearnTemperature,
		Place: place(c.Loss.S, c.Loss.ZBar),
		LogZ:  c.Loss.LogZ, LRZ: c.Train.LRZ, FixZ: !c.Loss.LearnZ || c.Train.LRZ == 0,
		BatchSize: c.Train.BatchSize, Negatives: int(c.Loss.Negatives), Draw: c.Loss.Draw,
		Epochs: c.Train.Epochs, WarmUp: c.Train.WarmUp, LR: c.Train.LR, Anneal: c.Train.Anneal,
		Momentum: c.Train.Momentum, WeightDecay: c.Train.WeightDecay, NoNormDecay: !c.Train.DecayNorms,
		Clip: c.Train.Clip, Seed: c.Seed,
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
