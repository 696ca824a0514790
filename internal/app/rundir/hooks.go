package rundir

import (
	"errors"
	"io"
	"time"

	"cne/train"
	"cne/train/quality"
)

// RecordHook returns a hook that writes the records of a run to w, and to a
// TensorBoard file in the folder if that is asked for, whose first epoch is first:
// after every so many epochs, and after those whose quality was measured. withZ
// includes log Z. Call done after training.
func (d *Dir) RecordHook(w io.Writer, every int, withZ, tensorBoard bool, first int) (hook train.Hook, done func() error, err error) {
	records := train.Records(w, withZ)
	if !tensorBoard {
		return everyOrMeasured(every, records), func() error { return nil }, nil
	}
	f, err := d.CreateEvents(time.Now())
	if err != nil {
		return nil, nil, err
	}
	events, err := newEventWriter(f, time.Now(), first)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	both := train.HookFunc(func(s *train.State) error {
		if err := records.AfterEpoch(s); err != nil {
			return err
		}
		return events.write(time.Now(), s.Epoch, scalars(s.Record(withZ)))
	})
	return everyOrMeasured(every, both), f.Close, nil
}

// everyOrMeasured calls a hook after every n-th epoch, and after those whose
// quality was measured.
func everyOrMeasured(n int, h train.Hook) train.Hook {
	every := train.EveryEpochs(n, h)
	return train.HookFunc(func(s *train.State) error {
		if s.Quality != nil {
			return h.AfterEpoch(s)
		}
		return every.AfterEpoch(s)
	})
}

// scalars returns the curves of TensorBoard, which have the names that
// metrics.jsonl uses.
func scalars(r train.Record) []scalar {
	list := []scalar{{"loss", r.Loss}, {"lr", r.LR}, {"edges_per_second", r.EdgesPerSecond}}
	add := func(tag string, value *float64) {
		if value != nil {
			list = append(list, scalar{tag, *value})
		}
	}
	add("log_z", r.LogZ)
	add("z", r.Z)
	for _, f := range quality.Table() {
		value, _ := f.Of(&r.Figures)
		add(f.Key, value)
	}
	return list
}
