package quality

import (
	"context"
	"errors"

	"cne/data"
	"cne/train"
)

// Hook returns a hook of train.Fit that measures partition function and, with a
// Graph, divergence after every so many epochs, and after the last, for the hooks
// after it (train.State.Quality). Of the options, Graph, Points, Seed and
// Device count. An
// embedding that is not finite ends the run with a *train.DivergedError.
func Hook(every int, o Options) train.Hook {
	o.Skip = ^(MetricPartition | MetricKL)
	measure := train.Measure(func(_ int, embedding []float32, d int) (train.Quality, error) {
		// An epoch that has ended is measured even if the run is interrupted.
		f, err := Measure(context.Background(), nil, &data.Matrix{N: len(embedding) / d, D: d, X: embedding}, o)
		if err != nil {
			return train.Quality{}, err
		}
		return train.Quality{PartitionFunction: f.PartitionFunction, KL: f.KL}, nil
	})
	return train.HookFunc(func(s *train.State) error {
		if s.Epoch%max(1, every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		err := measure.AfterEpoch(s)
		if errors.Is(err, ErrNotFinite) {
			return &train.DivergedError{Epoch: s.Epoch, LR: s.LR, Cause: err}
		}
		return err
	})
}
