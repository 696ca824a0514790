package train

import (
	"encoding/json"
	"fmt"
	"io"
)

// A Record is what Records writes of an epoch.
type Record struct {
	Epoch int `json:"epoch"` // from 1
	Phase int `json:"phase"` // from 0
	// Loss is State.Loss, LR the step size.
	Loss float64 `json:"loss"`
	LR   float64 `json:"lr"`
	// LogZ is NC-t-SNE's log Z; it is left out for the other losses.
	LogZ *float64 `json:"log_z,omitempty"`
	// Seconds since the run began.
	Seconds        float64 `json:"seconds"`
	EdgesPerSecond float64 `json:"edges_per_second"`
}

// Records returns a hook that writes a Record of every epoch to w, as a line
// of JSON. withZ includes log Z.
func Records(w io.Writer, withZ bool) Hook {
	encoder := json.NewEncoder(w)
	return HookFunc(func(s *State) error {
		r := Record{Epoch: s.Epoch, Phase: s.Phase, Loss: s.Loss, LR: s.LR,
			Seconds: s.Elapsed.Seconds(), EdgesPerSecond: s.EdgesPerSecond}
		if withZ {
			r.LogZ = &s.LogZ
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("train: cannot write the record of epoch %d: %w", s.Epoch, err)
		}
		return nil
	})
}

// Snapshots returns a hook that hands the embedding [n, d] to save after an
// epoch. The slice is used again for the next. EveryEpochs makes it seldom.
func Snapshots(save func(epoch int, embedding []float32, d int) error) Hook {
	var embedding []float32
	return HookFunc(func(s *State) error {
		n, d := s.Model.Points()
		embedding = resize(embedding, n*d)
		if err := s.Model.EmbedTo(embedding); err != nil {
			return err
		}
		return save(s.Epoch, embedding, d)
	})
}
