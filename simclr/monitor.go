package simclr

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"cne/data/images"
	"cne/train"
)

// A Monitor measures KNNAccuracy on some of the images every few epochs of a
// pretraining. It does not change the run.
type Monitor struct {
	Images *images.Set
	// Split has the images to measure on, such as a Sample.
	Split Split
	// Augmentation prepares the images, as in Features.
	Augmentation *Augmentation
	// K is the number of neighbours that vote; 0 means 15.
	K int
	// Every is the number of epochs from one measurement to the next; below 1
	// counts as 1. The last epoch is always measured.
	Every int
	// Report is called with each accuracy, from 0 to 1, and the number of epochs done. Its
	// error ends the run.
	Report func(epoch int, accuracy float64) error
}

// Hook returns the hook for a run whose State.Model is an Encoder. It checks the images
// and the options before training; errors wrap ErrOption, ErrShape, ErrLabels or ErrSplit.
// A measurement stops when ctx is done.
func (m *Monitor) Hook(ctx context.Context) (train.Hook, error) {
	k := cmp.Or(m.K, defaultK)
	if err := cmp.Or(checkImages(m.Images), m.Augmentation.Check(), checkLabels(m.Images)); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.Split.checkRows(m.Images.N), checkNeighbors(k, m.Split)); err != nil {
		return nil, err
	}
	// Only the images of the split have features; they are numbered anew.
	rows := slices.Concat(m.Split.Train, m.Split.Test)
	classes := make([]int32, len(rows))
	for i, row := range rows {
		classes[i] = m.Images.Labels.Class[row]
	}
	numbers := allRows(len(rows))
	split := Split{Train: numbers[:len(m.Split.Train)], Test: numbers[len(m.Split.Train):]}
	return train.HookFunc(func(s *train.State) error {
		if s.Epoch%max(1, m.Every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		encoder, ok := s.Model.(Encoder)
		if !ok {
			return fmt.Errorf("%w: model: got a %T, want one of images", ErrOption, s.Model)
		}
		features, err := Features(ctx, encoder, m.Augmentation, m.Images, rows, nil)
		if err != nil {
			return err
		}
		accuracy, err := KNNAccuracy(ctx, features, classes, split, k, nil)
		if err != nil {
			return err
		}
		return m.Report(s.Epoch, accuracy)
	}), nil
}
