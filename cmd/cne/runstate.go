package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"

	"cne/model"
	"cne/train"
)

// A runState is what runs of all commands that train have in common: their
// configuration, their folder, and whether they begin or go on. C is the type
// of the configuration.
type runState[C any] struct {
	*talker
	schema *schema[C]
	config *C
	force  bool

	device  *model.Device // where the run is computed
	dir     *runDir
	resumed bool
	from    *train.Checkpoint // where the run goes on; nil: at its beginning
	notes   map[string]string // of its checkpoints
	saved   bool              // there is something in the run folder that is worth keeping
	canGoOn bool              // there is a checkpoint from which the run can be resumed
}

// startProfile has a CPU profile written to a file, if it is not "", until stop
// is called.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// addTraining makes a command train: it gets the flags of all that do, and
// calls run with its configuration.
func (s *schema[C]) addTraining(cmd *cobra.Command, run func(ctx context.Context, r *runState[C], stdout io.Writer) error) {
	r := &runState[C]{schema: s}
	var profile, resume string
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if cmd.Flags().Changed("resume") {
			if r.force {
				return &usageError{cmd.CommandPath(), errors.New("--resume goes on with a run and --force replaces it; give one of them")}
			}
			unlock, err := r.reopen(cmd, resume)
			if err != nil {
				return err
			}
			defer unlock()
		} else {
			c, _, err := s.fromCommand(cmd)
			if err != nil {
				return err
			}
			r.config = c
		}
		stop, err := startProfile(profile)
		if err != nil {
			return err
		}
		defer stop()
		r.talker = newTalker(cmd.ErrOrStderr(), r.common().log.Format, isQuiet(cmd))
		if r.device, err = openTrainingDevice(r.Log, r.common().device, r.common().dtype); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.device.Close()) }()
		err = run(cmd.Context(), r, cmd.OutOrStdout())
		if err != nil && r.canGoOn {
			err = fmt.Errorf("%w; \"%s --resume %s\" goes on", err, s.command, r.dir.path)
		}
		return err
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVar(&r.force, "force", false, "replace the files of another run in the run folder")
	cmd.Flags().StringVar(&resume, "resume", "", "continue the run in a `folder`")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile to a `file`, for go tool pprof")
}

func (r *runState[C]) common() common { return r.schema.common(r.config) }

// open opens the folder of a run that begins, which must not hold one of the
// inputs among the files to be replaced; the folder of one that goes on is
// open. No other process opens it until unlock is called.
func (r *runState[C]) open(inputs ...string) (unlock func(), err error) {
	if r.resumed {
		return func() {}, nil
	}
	if r.dir, err = openRunDir(*r.common().dir, r.force, inputs...); err != nil {
		return nil, err
	}
	return r.dir.lock()
}

// An identity is what a checkpoint notes of the data of its run.
type identity struct {
	note  string // its key
	what  string // in words
	value string // "" if there is nothing
}

// begin makes the folder that of this run, or checks that it is.
func (r *runState[C]) begin(identities ...identity) error {
	config, err := r.configText()
	if err != nil {
		return err
	}
	r.notes = map[string]string{configNote: config}
	for _, x := range identities {
		if x.value != "" {
			r.notes[x.note] = x.value
		}
		if r.from != nil && r.from.Notes[x.note] != x.value {
			return fmt.Errorf("the %s are not those that the run was begun with; a run can only be resumed on the same data", x.what)
		}
	}
	if err := r.dir.removeStale(); err != nil {
		return err
	}
	if r.resumed {
		err = r.beginAgain()
	} else {
		err = r.dir.begin()
	}
	if err != nil {
		return err
	}
	return r.dir.WriteFile("config.yaml", func(w io.Writer) error { return r.schema.write(w, r.config) })
}

// configText returns the configuration as it is kept with the model and with
// the state of the run, of which it is no property where they are written.
func (r *runState[C]) configText() (string, error) {
	c := *r.config
	*r.schema.common(&c).dir = r.schema.folder(&c)
	var text bytes.Buffer
	err := r.schema.write(&text, &c)
	return text.String(), err
}

// beginAgain prepares the folder of a run that goes on: what is damaged, and
// what will be of an earlier state than the model, goes.
func (r *runState[C]) beginAgain() error {
	r.saved = true // whatever happens, the folder is not cleared
	if r.from == nil {
		r.Log.Warn("there is no checkpoint in the run folder; the run begins again")
	} else {
		r.canGoOn = true
	}
	for _, path := range r.dir.damaged {
		r.Log.Warn("a checkpoint is damaged; going on from the one before", "file", path)
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("cannot remove the damaged checkpoint: %w", err)
		}
	}
	if r.from != nil && r.from.Progress.Epochs == r.common().epochs {
		return nil
	}
	return r.dir.remove(lateFiles)
}

// checkpoints returns when and how the state of the run is saved.
func (r *runState[C]) checkpoints() *train.Checkpoints {
	c := r.common().checkpoint
	return &train.Checkpoints{
		Epochs: c.Epochs, Interval: time.Duration(c.Minutes * float64(time.Minute)),
		Save: func(s *train.Checkpoint) error {
			s.Notes = r.notes
			if err := r.dir.keepCheckpoint(s); err != nil {
				return err
			}
			r.saved, r.canGoOn = true, true
			return nil
		},
	}
}

// withRecords opens metrics.jsonl for the training that f does, which gets the
// records of the run so far, too. A run that leaves nothing behind frees the
// folder for the next.
func (r *runState[C]) withRecords(f func(w io.Writer, before []byte) error) (err error) {
	records, before, err := r.openRecords()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, records.Close())
		if err != nil && !r.saved {
			err = errors.Join(err, r.dir.clear())
		}
	}()
	if r.from != nil {
		r.Log.Info("going on", "epoch", r.from.Progress.Epochs, "batch", r.from.Progress.Batches)
	}
	return f(records, before)
}

// progress returns a hook that tells the progress of the run, in epochs whose
// units are edges, or images. Before it is told, a report goes through all of
// more.
func (r *runState[C]) progress(unit string, more ...func(*train.State, *EpochReport)) train.Hook {
	began, done := time.Now(), 0
	if r.from != nil {
		done = r.from.Progress.Epochs
	}
	return train.HookFunc(func(s *train.State) error {
		perEpoch := time.Since(began) / time.Duration(s.Epoch-done)
		report := EpochReport{Epoch: s.Epoch, Epochs: s.Epochs, Loss: s.Loss, Unit: unit, Speed: s.EdgesPerSecond,
			Left: time.Duration(s.Epochs-s.Epoch) * perEpoch}
		for _, f := range more {
			f(s, &report)
		}
		r.Progress.Epoch(report)
		return nil
	})
}

// watch returns a function for train.Options.Watch that tells the progress
// within the epochs of the run, whose batches have so many units. Before it is
// told, a report goes through more.
func (r *runState[C]) watch(unit string, perBatch int, more func(*EpochReport)) func(epoch, done, batches int, loss float64) {
	began, start := time.Now(), -1 // of this process, in batches
	return func(epoch, done, batches int, loss float64) {
		at := (epoch-1)*batches + done
		if start < 0 {
			start = at - 1
		}
		if done == batches {
			return // Progress.Epoch comes next
		}
		epochs, elapsed := r.common().epochs, time.Since(began)
		each := elapsed / time.Duration(at-start)
		report := EpochReport{Epoch: epoch - 1, Part: float64(done) / float64(batches), Epochs: epochs, Loss: loss, Unit: unit,
			Speed: float64(perBatch*(at-start)) / elapsed.Seconds(), Left: time.Duration(epochs*batches-at) * each}
		more(&report)
		r.Progress.Part(report)
	}
}

// diverged says what to do about a run that has diverged.
func (r *runState[C]) diverged(err *train.DivergedError, also string) error {
	r.canGoOn = false // to the same end
	key := fmt.Sprintf("train.lr (%g in that epoch)%s", err.LR, also)
	if errors.Is(err, train.ErrLogZ) {
		key = "train.lr_z"
	}
	return fmt.Errorf("training diverged in epoch %d (%w); lower %s", err.Epoch, err.Cause, key)
}

// openRecords opens metrics.jsonl. Of a run that goes on it keeps the records
// up to where that is, and no part of a line; it returns them.
func (r *runState[C]) openRecords() (f *os.File, kept []byte, err error) {
	path := r.dir.Path(recordsFile)
	if r.from != nil {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("cannot read the metrics so far: %w", err)
		}
		kept = recordsUpTo(old, r.from.Progress.Epochs)
		if have, want := bytes.Count(kept, []byte("\n")), r.from.Progress.Epochs/r.common().logEvery; have < want {
			r.Log.Warn("metrics.jsonl lacks records of the run so far", "records", have, "of", want)
		}
		if err := r.dir.WriteFile(recordsFile, func(w io.Writer) error {
			_, err := w.Write(kept)
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if r.from == nil {
		flags |= os.O_TRUNC
	}
	if f, err = os.OpenFile(path, flags, 0o666); err != nil {
		return nil, nil, fmt.Errorf("cannot write the metrics: %w", err)
	}
	return f, kept, nil
}

// recordsUpTo returns the lines of metrics.jsonl up to an epoch.
func recordsUpTo(lines []byte, epoch int) []byte {
	var kept []byte
	for line := range bytes.Lines(lines) {
		var r struct {
			Epoch int `json:"epoch"`
		}
		if json.Unmarshal(line, &r) == nil && r.Epoch <= epoch && bytes.HasSuffix(line, []byte("\n")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// writeJSON writes a value to a file of the folder.
func (d *runDir) writeJSON(name string, v any) error {
	return d.WriteFile(name, func(w io.Writer) error { return encodeJSON(w, v) })
}
