package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/text"
	"cne/model"
	"cne/train"
)

// resumeHelp is what the help of these commands says of --resume.
const resumeHelp = `--resume continues a run that was interrupted or killed, with the same result as
without the interruption. The configuration is the one in the folder. --config,
the environment and other flags may change only what is measured and written,
where the %s are (relative paths count from the current folder), and the
number of epochs, to a larger one, over which the learning rate is then
annealed.`

// A trainCommand is the common part of all commands that train: their configuration,
// their folder, and whether they begin or continue. C is the type of the configuration.
type trainCommand[C any] struct {
	*cli.Reporter
	schema  *configs.Schema[C]
	config  *C
	origins configs.Origins // of its values; nil for a resumed run
	given   configs.Sources
	force   bool
	again   bool // completes the folder of a finished run that is the same

	device    *model.Device // where the run is computed, as far as it can
	trainedOn string        // what trained in this process (Device.Watch); "" if nothing did
	dir       *rundir.Dir
	resumed   bool
	from      *train.Checkpoint // where the run continues; nil at its beginning
	notes     map[string]string // of its checkpoints
	saved     bool              // there is something in the run folder that is worth keeping
	// doing completes the error "interrupted …"; "" where errors say it themselves.
	doing     string
	resumable bool // there is a checkpoint
}

// A runTraining does the work of a command that trains.
type runTraining[C any] func(ctx context.Context, r *trainCommand[C], stdout io.Writer) error

// addTraining makes a command train: it adds the arguments and flags of all commands that
// do, and calls run with the configuration. line returns the command line that the folder
// notes.
func addTraining[C any](s *configs.Schema[C], cmd *cobra.Command, line func() string, run runTraining[C]) {
	r := &trainCommand[C]{schema: s}
	var resume string
	cmd.Args = cli.Inputs(s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.resumed = cmd.Flags().Changed("resume"); r.resumed && r.force {
			return cli.Usage(cmd, errors.New("--resume and --force: got both, want one of them"))
		}
		given, err := cli.InputSources(cmd, args)
		if err != nil {
			return err
		}
		return cli.ConfigError(cmd, given, r.execute(cmd, given, resume, line(), run))
	}
	cli.AddFlags(s, cmd)
	cmd.Flags().BoolVar(&r.force, "force", false, "replace another run in the run folder")
	cmd.Flags().StringVar(&resume, "resume", "", "continue the run in this `folder`")
}

// execute calls run with the device and the configuration: from given, or from the folder
// of a run that is resumed. line is the command line of a new run.
func (r *trainCommand[C]) execute(cmd *cobra.Command, given configs.Sources, resume, line string, run runTraining[C]) (err error) {
	defer func() { err = errors.Join(err, r.device.Close()) }()
	defer kind.Catch(&err)
	var folder string // by default
	if !r.resumed {
		r.config, r.origins, err = r.schema.Load(&given)
		kind.Check(err)
		folder = *r.common().Dir
		if named := !r.origins.IsDefault("output.dir"); !r.force {
			r.again = kind.Got(rundir.Another(r.schema, r.config, &given, line, named))
		}
		resume = *r.common().Dir
	}
	if r.resumed = r.resumed || r.again; r.resumed {
		var unlock func()
		r.dir, r.config, r.from, unlock, err = rundir.Resume(r.schema, resume, given)
		kind.Check(err)
		defer unlock()
	}
	r.given = given
	r.Reporter = cli.NewReporter(cmd, r.common().Log.Format)
	switch {
	case r.again:
		r.Log.Info("this run is finished; its files are made again, without training", "folder", resume)
	case !r.resumed && resume != folder:
		r.Log.Info("there is a run with other settings; this one has a folder of its own", "folder", resume)
	}
	r.device = kind.Got(openTrainingDevice(r.Log, r.common().Device, r.common().Float64))
	command := r.schema.Command() // without the words that run may add
	err = run(cmd.Context(), r, cmd.OutOrStdout())
	if err != nil && r.doing != "" && cmd.Context().Err() != nil {
		err = errors.New("interrupted " + r.doing)
	}
	switch {
	case r.resumed && !r.again && errors.Is(err, fs.ErrNotExist):
		return rundir.Moved(err, "--set names files")
	case err != nil && r.resumable:
		return fmt.Errorf("%w; \"%s --resume %s\" continues", err, command, r.dir.Root())
	}
	return err
}

func (r *trainCommand[C]) common() configs.Common { return r.schema.Common(r.config) }

// refuse checks a new run's folder and data as far as possible before the data are read,
// which may take long. It changes nothing.
func (r *trainCommand[C]) refuse(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	if !r.resumed {
		kind.Check(rundir.Check(*r.common().Dir, r.force, r.common().Inputs...))
	}
	kind.Check(r.schema.CheckColumns(ctx, r.config, r.from != nil))
	return r.checkSize(r.schema.DataSize(ctx, r.config))
}

// checkSize returns an error if the run is impossible with data of a size, or takes too
// much memory.
func (r *trainCommand[C]) checkSize(size data.Size) error {
	err := r.schema.CheckSize(r.config, size, nil)
	if err == nil {
		err = r.schema.CheckMemory(r.config, size, r.device, nil)
	}
	if err != nil {
		return fmt.Errorf("%w (data.path: %s)", err, text.Few(r.common().Path, text.Printable))
	}
	return nil
}

// open opens the folder of a new run; none of the files that it replaces may be an input.
// The folder of a resumed run is open already. It stays locked until unlock is called.
func (r *trainCommand[C]) open() (unlock func(), err error) {
	defer kind.Catch(&err)
	if r.resumed {
		return func() {}, nil
	}
	r.dir = kind.Got(rundir.Open(*r.common().Dir, r.force, r.common().Inputs...))
	release := kind.Got(r.dir.Lock())
	return func() {
		r.dir.RemoveEmpty()
		release()
	}, nil
}

// begin claims the folder for this run, or checks that it belongs to it.
func (r *trainCommand[C]) begin(data ...rundir.Fingerprint) (err error) {
	defer kind.Catch(&err)
	config := kind.Got(r.configText())
	if r.notes, err = rundir.Notes(r.from, config, data...); err != nil && r.again {
		return fmt.Errorf("%s: %w; --output takes another folder, --force replaces the run", r.dir.Root(), err)
	}
	kind.Check(err)
	write := rundir.ConfigWriter(func(w io.Writer) error { return r.schema.Write(w, r.config) })
	if r.resumed {
		r.saved = true // from now on the folder is kept
		r.resumable = r.from != nil
		kind.Check(r.dir.BeginAgain(r.Log, r.from, r.common().Epochs))
		return r.dir.WriteFile(rundir.ConfigFile, write)
	}
	return r.dir.Begin(write)
}

// configText returns the configuration as saved with the model and the checkpoints, with
// the default output folder.
func (r *trainCommand[C]) configText() (string, error) {
	c := *r.config
	*r.schema.Common(&c).Dir = r.schema.DefaultDir(&c)
	var text bytes.Buffer
	err := r.schema.Write(&text, &c)
	return text.String(), err
}

// checkpoints returns when and how the state of the run is saved.
func (r *trainCommand[C]) checkpoints() *train.Checkpoints {
	when := r.common().Checkpoint
	return when.Options(func(s *train.Checkpoint) error {
		s.Notes = r.notes
		if err := r.dir.KeepCheckpoint(s); err != nil {
			return err
		}
		r.saved, r.resumable = true, true
		return nil
	})
}

// withRecords opens metrics.jsonl and calls f, which trains, with it and the records so
// far. If nothing was saved, it clears the folder for the next run.
func (r *trainCommand[C]) withRecords(f func(w io.Writer, before []byte) error) (err error) {
	r.doing = "" // see endedEarly
	records, before, err := r.dir.OpenRecords(r.Log, r.from)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, records.Close())
		if err != nil && !r.saved {
			err = errors.Join(err, r.dir.Clear())
		}
	}()
	if r.from != nil {
		r.Log.Info("continuing", "epoch", r.from.Progress.Epochs, "batch", r.from.Progress.Batches)
	}
	return f(records, before)
}

// epochsBefore returns how many epochs were over before this process began.
func (r *trainCommand[C]) epochsBefore() int {
	if r.from == nil {
		return 0
	}
	return r.from.Progress.Epochs
}

// diverged returns the error of a diverged run. rate is the key of the learning rate, and
// also a second key to lower.
func (r *trainCommand[C]) diverged(err *train.DivergedError, rate, also string) error {
	r.resumable = false // it would diverge again
	key, again := fmt.Sprintf("%s (%g in that epoch)%s", rate, err.LR, also), ""
	switch {
	case errors.Is(err, train.ErrLogZ):
		key = "train.lr_z"
	case errors.Is(err, train.ErrRose):
		key = fmt.Sprintf("%s (%g when the phase began)", rate, err.LR)
	}
	if err.Retries > 0 {
		again = fmt.Sprintf(" with ever lower rates, %d times", err.Retries+1)
	}
	return fmt.Errorf("training diverged in epoch %d%s (%w); lower %s", err.Epoch, again, err.Cause, key)
}

// rateOf returns the key of a phase's learning rate.
func rateOf(phases []cne.Phase, phase int) string {
	if phase < len(phases) && phases[phase].LR != 0 {
		return fmt.Sprintf("lr in phase %d of train.phases", phase+1)
	}
	return "train.lr"
}

// logRetry logs that a phase begins again.
func (r *trainCommand[C]) logRetry(x train.Retry) {
	r.Log.Warn(fmt.Sprintf("phase %d diverged in epoch %d (%v), and begins again with a lower learning rate", x.Phase+1,
		x.Cause.Epoch, x.Cause.Cause), "epoch", x.Epoch, "lr", x.LR)
}

// endedEarly returns the error of a run whose training ended with err after the given
// epochs. save keeps the result so far, which what and file describe, unless the training
// diverged or the device failed.
func (r *trainCommand[C]) endedEarly(err error, epochs int, what, file string, save func() error) error {
	switch {
	case deviceFailed(err):
		return fmt.Errorf("%w (after epoch %d of %d)", err, epochs, r.common().Epochs)
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	ended := fmt.Sprintf("%v after epoch %d of %d", err, epochs, r.common().Epochs)
	err = save()
	if r.doing = ""; err != nil {
		return fmt.Errorf("%s; the %s so far could not be kept: %w", ended, what, err)
	}
	return fmt.Errorf("%s; the %s so far is in %s", ended, what, r.dir.Path(file))
}

// openDevice opens the device for measuring or for a finished model, and logs which it is
// unless it is the CPU.
func openDevice(log *slog.Logger, c configs.Device) (*model.Device, error) {
	d, err := model.OpenDevice(c.Name)
	if err != nil {
		return nil, err
	}
	d.TF32 = c.RoundsToTF32()
	if !d.OnHost() {
		log.Info(d.Reason())
		d.OnNote(func(sentence string) { log.Info(sentence) })
	}
	return d, nil
}

// openTrainingDevice opens the device for training, and logs which it is and why. It logs
// a CPU only if an accelerator might be expected. float64 is computed only on the CPU.
func openTrainingDevice(log *slog.Logger, c configs.Device, float64 bool) (*model.Device, error) {
	why, quiet := "", c.Name == "auto" && !device.DriverInstalled()
	if float64 && c.Name == "auto" {
		c.Name, why = "cpu", "computing on the CPU, since model.dtype is float64"
	}
	d, err := openDevice(log, c)
	if err == nil && d.OnHost() && !c.OfConvolutions().Native() {
		return nil, errors.New("device.precision: got bf16, want float32 on a processor without AVX512-BF16")
	}
	if err == nil && d.OnHost() && !quiet {
		log.Info(cmp.Or(why, d.Reason()))
	}
	return d, err
}

// deviceFailed reports whether an error is about a device that failed, has too little
// memory, or lacks a library. There may then be nothing to save.
func deviceFailed(err error) bool {
	full := new(device.MemoryError)
	return errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrUnavailable) || errors.As(err, &full)
}
