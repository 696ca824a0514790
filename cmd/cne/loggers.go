package main

import (
	"context"
	"errors"
	"io"
	"time"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/tensorboard"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// loggers returns the hooks that measure the epochs and record them, every
// train.log_every epochs and whenever the quality was measured. They are to be
// closed.
func (t *training) loggers(records io.Writer) (hooks []train.Hook, done func() error, err error) {
	c := t.config
	withZ := c.Loss.Name == op.NC
	if every := c.Output.MetricsEvery; every > 0 {
		hooks = append(hooks, measureEvery(every, t.device, t.near.graph))
	}
	hooks = append(hooks, recorded(c.Train.LogEvery, train.Records(records, withZ)))
	if !c.Output.TensorBoard {
		return hooks, func() error { return nil }, nil
	}
	f, err := t.dir.CreateEvents(time.Now())
	if err != nil {
		return nil, nil, err
	}
	events, err := tensorboard.NewWriter(f, time.Now(), t.epochsBefore()+1)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	board := train.HookFunc(func(s *train.State) error {
		return events.Write(time.Now(), s.Epoch, scalars(s.Record(withZ)))
	})
	return append(hooks, recorded(c.Train.LogEvery, board)), f.Close, nil
}

// measureEvery returns a hook that measures partition function and divergence
// after every so many epochs, and after the last.
func measureEvery(every int, on *model.Device, graph *neighbors.Graph) train.Hook {
	measure := train.Measure(func(epoch int, embedding []float32, d int) (train.Quality, error) {
		// An epoch that has ended is measured even if the run is interrupted.
		f, err := quality.Measure(context.Background(), nil, &data.Matrix{N: len(embedding) / d, D: d, X: embedding},
			quality.Options{Graph: graph, Device: on, Skip: ^(quality.MetricPartition | quality.MetricKL)})
		if err != nil {
			return train.Quality{}, err
		}
		return train.Quality{PartitionFunction: f.PartitionFunction, KL: f.KL}, nil
	})
	return train.HookFunc(func(s *train.State) error {
		if s.Epoch%every != 0 && s.Epoch != s.Epochs {
			return nil
		}
		err := measure.AfterEpoch(s)
		if errors.Is(err, quality.ErrNotFinite) {
			return &train.DivergedError{Epoch: s.Epoch, LR: s.LR, Cause: err}
		}
		return err
	})
}

// recorded calls a hook after every n-th epoch, and after those whose quality
// was measured.
func recorded(n int, h train.Hook) train.Hook {
	seldom := train.EveryEpochs(n, h)
	return train.HookFunc(func(s *train.State) error {
		if s.Quality != nil {
			return h.AfterEpoch(s)
		}
		return seldom.AfterEpoch(s)
	})
}

// scalars returns the curves of TensorBoard, which have the names that
// metrics.jsonl uses.
func scalars(r train.Record) []tensorboard.Scalar {
	list := []tensorboard.Scalar{{Tag: "loss", Value: r.Loss}, {Tag: "lr", Value: r.LR}, {Tag: "edges_per_second", Value: r.EdgesPerSecond}}
	for _, more := range []struct {
		tag   string
		value *float64
	}{
		{"log_z", r.LogZ}, {"z", r.Z}, {"partition_function", r.PartitionFunction}, {"kl", r.KL},
	} {
		if more.value != nil {
			list = append(list, tensorboard.Scalar{Tag: more.tag, Value: *more.value})
		}
	}
	return list
}
