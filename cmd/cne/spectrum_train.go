package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cne"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/train"
)

// train runs the shared phases, and from there all embeddings, or what is left of
// them. o are the options of the first.
func (s *spectrum) train(ctx context.Context, o cne.Options) error {
	_, shared := s.axis.At(s.config, s.axis.Values[0])
	from, err := s.states()
	if err != nil {
		return err
	}
	s.all = shared
	if c := from[-1]; c != nil {
		s.done = c.Progress.Epochs
	}
	var last []cne.Phase
	for i, x := range s.stops {
		s.all += x.config.Embed.Epochs - shared
		if c := from[i]; c != nil {
			s.done += c.Progress.Epochs - shared
		}
		phases := x.config.Options().Phases
		last = append(last, phases[len(phases)-1])
	}
	if s.from != nil {
		s.Log.Info("going on", "epoch", s.done, "of", s.all)
	}
	s.Log.Info("training", "loss", s.config.Embed.Loss, "edges", s.near.Graph.Edges(), "shared_epochs", shared, "embeddings", len(s.stops))
	s.began, s.before = time.Now(), s.done
	s.Progress.Start(s.all)
	defer s.Progress.Done()
	o.Hooks = []train.Hook{s.count()}
	when := s.config.Checkpoint.Options(nil)
	o.SpectrumCheckpoints = &cne.SpectrumCheckpoints{
		Epochs: when.Epochs, Interval: when.Interval, Save: s.keep,
		Resume: func(run int) (*train.Checkpoint, error) { return from[run], nil },
	}
	embeddings, err := s.near.Spectrum(ctx, last, o)
	if err != nil {
		return s.explain(err)
	}
	for i, e := range embeddings {
		s.stops[i].embedded = e
	}
	return nil
}

// folder returns the folder of a run as SpectrumCheckpoints knows it: −1 is that of
// the shared phases.
func (s *spectrum) folder(run int) *rundir.Dir {
	if run < 0 {
		return s.dir
	}
	return rundir.NewDir(s.dir.Path(s.axis.Folder(s.stops[run].value)))
}

// states returns the last checkpoint of each run that has begun, by its index; −1 is
// that of the shared phases.
func (s *spectrum) states() (map[int]*train.Checkpoint, error) {
	from := map[int]*train.Checkpoint{}
	if !s.resumed {
		return from, nil
	}
	if s.from != nil {
		from[-1] = s.from
	}
	for i := range s.stops {
		c, err := s.folder(i).LastCheckpoint()
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		for note, value := range s.notes {
			if note != rundir.ConfigNote && c.Notes[note] != value {
				return nil, fmt.Errorf("%s holds a checkpoint of other data; remove it", s.folder(i).Root())
			}
		}
		from[i], s.resumable = c, true
	}
	return from, nil
}

// keep writes a checkpoint of a run.
func (s *spectrum) keep(run int, c *train.Checkpoint) error {
	c.Notes = s.notes
	if err := s.folder(run).KeepCheckpoint(c); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.saved, s.resumable = true, true
	return nil
}

// explain names the embedding whose training has ended with an error.
func (s *spectrum) explain(err error) error {
	var failed *cne.SpectrumError
	if !errors.As(err, &failed) {
		return err
	}
	where := "the shared phase"
	if failed.Index >= 0 {
		where = s.axis.Title(s.stops[failed.Index].value)
	}
	err = failed.Err
	var diverged *train.DivergedError
	if errors.As(err, &diverged) {
		err = s.diverged(diverged, "")
		s.saved = s.resumed // what has diverged is worth nothing
	}
	return fmt.Errorf("%s: %w", where, err)
}

// count returns a hook that tells the progress of all runs together.
func (s *spectrum) count() train.Hook {
	return train.HookFunc(func(state *train.State) error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.done++
		spent := time.Since(s.began)
		s.Progress.Report(cli.EpochReport{
			Epoch: s.done, Epochs: s.all, Loss: state.Loss, Unit: "edges",
			Speed: float64(s.done-s.before) * float64(s.near.Graph.Edges()) / spent.Seconds(),
			Left:  spent / time.Duration(s.done-s.before) * time.Duration(s.all-s.done),
		})
		return nil
	})
}
