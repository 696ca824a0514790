package console

import (
	"time"

	"cne/train"
)

// EpochHook returns a hook that reports every epoch of a run, of which done were
// over before this process began. unit is what an epoch consists of: edges or
// images. accuracy, unless it is nil, returns what was measured last.
func (r *Reporter) EpochHook(unit string, done int, accuracy func() *float64) train.Hook {
	began := time.Now()
	return train.HookFunc(func(s *train.State) error {
		perEpoch := time.Since(began) / time.Duration(s.Epoch-done)
		report := EpochReport{Epoch: s.Epoch, Epochs: s.Epochs, Loss: s.Loss, Unit: unit, Speed: s.EdgesPerSecond,
			Left: time.Duration(s.Epochs-s.Epoch) * perEpoch}
		if accuracy != nil {
			report.Accuracy = accuracy()
		}
		r.Progress.Epoch(report)
		return nil
	})
}

// BatchWatch returns a function for train.Options.Watch that reports the progress
// within the epochs of a run, each of whose batches has so many units. accuracy is
// that of EpochHook.
func (r *Reporter) BatchWatch(unit string, epochs, perBatch int, accuracy func() *float64) func(epoch, done, batches int, loss float64) {
	began, start := time.Now(), -1 // of this process, in batches
	return func(epoch, done, batches int, loss float64) {
		at := (epoch-1)*batches + done
		if start < 0 {
			start = at - 1
		}
		if done == batches {
			return // the hook of the epoch comes next
		}
		elapsed := time.Since(began)
		each := elapsed / time.Duration(at-start)
		r.Progress.Part(EpochReport{Epoch: epoch - 1, Part: float64(done) / float64(batches), Epochs: epochs, Loss: loss, Unit: unit,
			Speed: float64(perBatch*(at-start)) / elapsed.Seconds(), Accuracy: accuracy(), Left: time.Duration(epochs*batches-at) * each})
	}
}
