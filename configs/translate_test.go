package configs

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// Every key of the configuration reaches the training.
func TestFitOptions(t *testing.T) {
	for _, tc := range []struct {
		yaml string
		loss op.ContrastiveOptions
		fit  train.Options
	}{
		{"{}", op.ContrastiveOptions{Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}}},
		{"{seed: 3, loss: {name: nc, log_z: -2, clamp: 0.5, scale: 3}, train: {lr_z: 0.25, clip: 0, batch_size: 7, anneal: none, lr: 0.5, epochs: 9}}",
			op.ContrastiveOptions{Loss: op.NC, Temperature: 0.5, Clamp: 0.5, Scale: 3},
			train.Options{Seed: 3, LogZ: -2, BatchSize: 7, LRZ: 0.25, Phases: []train.Phase{{Epochs: 9, LR: 0.5, Negatives: 5, Schedule: train.Constant}}}},
		{"{loss: {name: nc, learn_z: false}}", op.ContrastiveOptions{Loss: op.NC, Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, FixZ: true, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}}},
		{"{loss: {name: infonce, metric: cosine, temperature: 2, s: 0.5, negatives: full}, train: {early_exaggeration: true}}",
			op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 2, Clamp: 1e-10, Scale: 0.5},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: train.Full, Spectrum: train.FromS(0.5), ExaggerateEarly: true}}}},
		{"{loss: {s: 1}, train: {phases: [{epochs: 2, z_bar: uniform, anneal: none}, {epochs: 3, z_bar: 7, lr: 2, negatives: 4}, {epochs: 1}]}}",
			op.ContrastiveOptions{Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, Phases: []train.Phase{
				{Epochs: 2, LR: 1, Negatives: 5, Schedule: train.Constant, Spectrum: train.FromZBar(0)}, {Epochs: 3, LR: 2, Negatives: 4, Spectrum: train.FromZBar(7)}, {Epochs: 1, LR: 1, Negatives: 5, Spectrum: train.FromS(1)}}}},
		{"{loss: {name: nc, log_z: -2}, train: {phases: [{epochs: 2}, {epochs: 3, log_z: 0}]}}", op.ContrastiveOptions{Loss: op.NC, Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, LogZ: -2, Phases: []train.Phase{{Epochs: 2, LR: 1, Negatives: 5}, {Epochs: 3, LR: 1, Negatives: 5, LogZ: new(float64)}}}},
		{"{loss: {sampling: runs, negatives: 10}}", op.ContrastiveOptions{Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Sampling: train.SampleSharedRuns, Clip: 4, LRZ: 0.001, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: 10}}}},
		{"{loss: {sampling: singly}}", op.ContrastiveOptions{Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Sampling: train.SamplePerHead, Clip: 4, LRZ: 0.001, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}}},
		{"{loss: {z_bar: 7}, train: {phases: [{epochs: 3}, {epochs: 4, s: null, lr: null}, {epochs: 2, lr: 0.5, s: -1, negatives: full, warm_up: 1}]}}",
			op.ContrastiveOptions{Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, Phases: []train.Phase{
				{Epochs: 3, LR: 1, Negatives: 5, Spectrum: train.FromZBar(7)}, {Epochs: 4, LR: 1, Negatives: 5, Spectrum: train.FromZBar(7)},
				{Epochs: 2, LR: 0.5, Negatives: train.Full, Spectrum: train.FromS(-1), WarmUp: 1}}}},
		{"{loss: {name: umap}}", op.ContrastiveOptions{Loss: op.UMAP, Temperature: 0.5, Clamp: 1e-10, Scale: 1},
			train.Options{BatchSize: 1024, Clip: 4, LRZ: 0.001, Phases: []train.Phase{{Epochs: 750, LR: 1, Negatives: 5}}}},
	} {
		c := mustLoad(t, tc.yaml)
		o := c.Options()
		if got := o.Objective(); got != tc.loss {
			t.Errorf("%s: loss %+v, want %+v", tc.yaml, got, tc.loss)
		}
		tc.fit.Optimizer, tc.fit.OptimizerZ = new(train.SGD), new(train.SGD)
		if got := o.FitOptions(); !reflect.DeepEqual(got, tc.fit) {
			t.Errorf("%s: options %+v, want %+v", tc.yaml, got, tc.fit)
		}
	}
}

// The default configuration embeds as the zero value of cne.Options does.
func TestDefaultIsTheZeroValue(t *testing.T) {
	rows := make([][]float64, 80)
	for i := range rows {
		rows[i] = make([]float64, 60) // wider than the principal components
		for j := range rows[i] {
			rows[i][j] = math.Sin(float64(i*j)) + float64(i%3)
		}
	}
	points := need(data.FromRows(rows))(t)
	for yaml, zero := range map[string]cne.Options{
		"{}":                   {},
		"{model: {kind: mlp}}": {Hidden: model.DefaultHidden},
	} {
		c := mustLoad(t, yaml)
		want := need(cne.Embed(t.Context(), points, c.Options()))(t)
		got := need(cne.Embed(t.Context(), points, zero))(t)
		if !slices.Equal(got.Positions.X, want.Positions.X) || got.Result.Epochs != c.Embed.Epochs {
			t.Errorf("%s: the positions differ, after %d and %d epochs", yaml, got.Result.Epochs, c.Embed.Epochs)
		}
	}
}
