package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"cne/data"
	"cne/train/quality"
)

// A Record is what Records writes of an epoch.
type Record struct {
	Epoch int `json:"epoch"` // from 1
	Phase int `json:"phase"` // from 0
	// Loss is State.Loss, LR the step size.
	Loss float64 `json:"loss"`
	LR   float64 `json:"lr"`
	// LogZ is NC-t-SNE's log Z, and Z = exp(log Z)·n(n−1) the partition function
	// that it estimates for the n points. They are left out for the other losses,
	// and Z if it overflows.
	LogZ *float64 `json:"log_z,omitempty"`
	Z    *float64 `json:"z,omitempty"`
	// Figures are those of the epoch, if they were measured.
	quality.Figures
	// Seconds since the run began, without the hooks.
	Seconds        float64 `json:"seconds"`
	EdgesPerSecond float64 `json:"edges_per_second"`
}

// Record returns the record of an epoch. withZ includes log Z.
func (s *State) Record(withZ bool) Record {
	r := Record{Epoch: s.Epoch, Phase: s.Phase, Loss: s.Loss, LR: s.LR,
		Seconds: s.Elapsed.Seconds(), EdgesPerSecond: s.EdgesPerSecond}
	if withZ {
		points, _ := s.Model.Points()
		logZ := s.LogZ
		r.LogZ = &logZ
		if z := (Normalization{points}).Z(logZ); !math.IsInf(z, 0) { // which JSON cannot express
			r.Z = &z
		}
	}
	if s.Quality != nil {
		r.Figures = *s.Quality
	}
	return r
}

// Records returns a hook that writes a Record of every epoch to w, as a line
// of JSON. withZ includes log Z.
func Records(w io.Writer, withZ bool) Hook {
	encoder := json.NewEncoder(w)
	return HookFunc(func(s *State) error {
		if err := encoder.Encode(s.Record(withZ)); err != nil {
			return fmt.Errorf("train: writing the record of epoch %d: %w", s.Epoch, err)
		}
		return nil
	})
}

// Snapshots returns a hook that hands the embedding [n, d] to save after an epoch. The
// slice is reused for the next. Use EveryEpochs for fewer snapshots.
func Snapshots(save func(epoch int, embedding []float32, d int) error) Hook {
	return embedded(func(s *State, embedding []float32, d int) error { return save(s.Epoch, embedding, d) })
}

// Measure returns a hook that measures the embedding after every so many epochs, and
// after the last, for the hooks after it (State.Quality): all figures that need nothing
// else but the Graph of the options, of which Points, Seed and Device count as well. At a
// second for each epoch, runs take several times as long, though State.Elapsed does not
// include hooks. An embedding that is not finite ends the run with a *DivergedError.
func Measure(every int, o quality.Options) Hook {
	o.Skip = ^quality.Where(func(f *quality.Figure) bool { return f.OfEmbedding() && f.Option != "" })
	measure := embedded(func(s *State, embedding []float32, d int) (err error) {
		// An epoch that has ended is measured even if the run is interrupted.
		s.Quality, err = quality.Measure(context.Background(), nil, &data.Matrix{N: len(embedding) / d, D: d, X: embedding}, o)
		if errors.Is(err, quality.ErrNotFinite) {
			return &DivergedError{Epoch: s.Epoch, LR: s.LR, Cause: err}
		}
		return err
	})
	return HookFunc(func(s *State) error {
		if s.Epoch%max(1, every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		return measure.AfterEpoch(s)
	})
}

// embedded returns a hook that calls f with the embedding [n, d].
func embedded(f func(s *State, embedding []float32, d int) error) Hook {
	var embedding []float32
	return HookFunc(func(s *State) error {
		n, d := s.Model.Points()
		embedding = resize(embedding, n*d)
		if err := s.Model.EmbedTo(embedding); err != nil {
			return err
		}
		return f(s, embedding, d)
	})
}
