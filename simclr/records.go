package simclr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"cne/model/op"
	"cne/train"
)

// A Record is what Records writes of an epoch of a pretraining.
type Record struct {
	Epoch int `json:"epoch"` // from 1
	// Phase is the number of the stage, from 0; it is left out for a single stage.
	Phase int `json:"phase,omitempty"`
	// Loss is State.Loss, LR the step size.
	Loss float64 `json:"loss"`
	LR   float64 `json:"lr"`
	// Accuracy is that of a Monitor; it is left out where none was measured.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Temperature is that of the cosine similarity, and LogZ NC-t-SNE's log Z;
	// they are left out where they are not learnt.
	Temperature *float64 `json:"temperature,omitempty"`
	LogZ        *float64 `json:"log_z,omitempty"`
	// Seconds since the run began, without the hooks.
	Seconds         float64 `json:"seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
}

// Records returns a hook that writes a Record of every epoch whose number is a
// multiple of every, or of which there is an accuracy, to w as a line of JSON.
// accuracy, unless it is nil, returns what has been measured after an epoch, or
// nil; the hook of the Monitor must come before this one.
func (p *Pretraining) Records(w io.Writer, every int, accuracy func(epoch int) *float64) train.Hook {
	encoder, stages := json.NewEncoder(w), p.stages()
	return train.HookFunc(func(s *train.State) error {
		r := Record{Epoch: s.Epoch, Phase: stageOf(stages, s.Epoch-1), Loss: s.Loss, LR: s.LR, Seconds: s.Elapsed.Seconds(), ImagesPerSecond: s.EdgesPerSecond}
		if accuracy != nil {
			r.Accuracy = accuracy(s.Epoch)
		}
		if s.Epoch%max(1, every) != 0 && r.Accuracy == nil {
			return nil
		}
		if p.LearnTemperature {
			temperature := s.Model.Objective().Temperature
			r.Temperature = &temperature
		}
		if p.Loss.Loss.Info().Constant == op.LearntZ {
			r.LogZ = &s.LogZ
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("writing the record of epoch %d: %w", s.Epoch, err)
		}
		return nil
	})
}

// Accuracies returns the accuracies, by epoch, in lines that Records has written,
// and the latest of them; nil if there is none.
func Accuracies(lines []byte) (byEpoch map[int]float64, latest *float64) {
	byEpoch = map[int]float64{}
	for line := range bytes.Lines(lines) {
		var r Record
		if json.Unmarshal(line, &r) == nil && r.Accuracy != nil {
			byEpoch[r.Epoch], latest = *r.Accuracy, r.Accuracy
		}
	}
	return byEpoch, latest
}
