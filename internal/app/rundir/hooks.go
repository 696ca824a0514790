package rundir

import (
	"errors"
	"io"
	"time"

	"cne/train"
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
	for _, more := range []struct {
		tag   string
		value *float64
	}{
		{"log_z", r.LogZ}, {"z", r.Z}, {"partition_function", r.PartitionFunction}, {"kl", r.KL},
	} {
		if more.value != nil {
			list = append(list, scalar{more.tag, *more.value})
		}
	}
	return list
}
