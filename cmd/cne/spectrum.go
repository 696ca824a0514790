package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

func spectrumCmd() *cobra.Command {
	var positions, constants, negatives, pulls string
	cmd := &cobra.Command{
		Use:   "spectrum [INPUT]...",
		Short: "Make maps at several positions between t-SNE and UMAP",
		Long: `Embed points several times, along the spectrum from t-SNE to UMAP. The
embeddings share the early phases and continue from there. At the end each is
moved, turned and reflected, but not scaled, onto the one before (only turned
and reflected if loss.metric is cosine).

The run folder, runs/spectrum-points for points.npy without --output, gets
  spectrum.png   all embeddings side by side
  curves.png     their quality, which spectrum.csv and spectrum.json list
  explorer.html  a page whose slider moves from one embedding to the next
  s=0.5, …       a folder for each embedding: positions, picture, scores, and
                 config.yaml, with which cne train --config and a new --output
                 repeat it, before it is moved and turned, with the model that
                 cne project needs

Points, configuration and --resume are as for cne train. The values come from
--s (` + op.LossesWithSpectrum() + `), --zbar (` + op.LossesWith(op.FixedZ) + `) or --m (every loss); the default is
--s ` + configs.DefaultS + `. With --pull they make a grid, with a row for each pull of the last
phase towards the principal components, and the page has two sliders.

All phases (train.phases) but the last are shared, and the last runs at each
value; a single phase shares nothing. Without phases, the first third of the
epochs is shared, at Z̄ = |X|/m for ` + op.LossesWith(op.FixedZ) + ` and s = 1 for ` + op.LossesWith(op.Divisor) + `.`,
		Example: `  cne spectrum
  cne spectrum --config configs/mnist-negtsne.yaml DIR --s -0.5,0,0.5,1,1.5
  cne spectrum points.npy --zbar 1e5,1e6,1e7 -o runs/zbar
  cne spectrum points.npy --s 0,0.5,1 --pull 0,0.05,0.15,0.5
  cne spectrum --set loss.name=nc --m 5,50,500
  cne spectrum --resume runs/zbar`,
	}
	flags := cmd.Flags() // before the flags of training, which have another --s
	flags.StringVar(&positions, "s", "", "comma-separated `values` of s ("+op.LossesWithSpectrum()+"): 0 is like t-SNE, 1 like UMAP")
	flags.StringVar(&constants, "zbar", "",
		"comma-separated `values` of the normalisation constant ("+op.LossesWith(op.FixedZ)+"), instead of s")
	flags.StringVar(&negatives, "m", "", "comma-separated `numbers` of negatives, or full, instead of s")
	flags.StringVar(&pulls, "pull", "", "comma-separated `values` of the pull towards the principal components, such as 0,0.05,0.15,0.5")
	var values *configs.SpectrumAxis
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		values, err = chosenAxis(cmd, map[string]string{"s": positions, "zbar": constants, "m": negatives})
		if err == nil && flags.Changed("pull") {
			values = cmp.Or(values, defaultAxis())
			err = values.ParsePulls(pulls)
		}
		return cli.Usage(cmd, err)
	}
	line := func() string { return cmp.Or(values, defaultAxis()).Command() }
	addTraining(configs.Spectrum, cmd, line, func(ctx context.Context, r *trainCommand[configs.Config], stdout io.Writer) error {
		s := &spectrum{pointRun: pointRun{trainCommand: r}, axis: values}
		if err := s.complete(); err != nil {
			return err
		}
		return s.run(ctx, stdout)
	})
	_ = flags.MarkHidden("network") // it is refused; the flag is there
	return cmd
}

// chosenAxis returns the axis of the one flag that is given, nil if none is.
func chosenAxis(cmd *cobra.Command, lists map[string]string) (*configs.SpectrumAxis, error) {
	var chosen *configs.SpectrumAxis
	for _, flag := range []string{"s", "zbar", "m"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		if chosen != nil {
			return nil, fmt.Errorf("--%s and --%s: got both, want one of them", chosen.Flag, flag)
		}
		var err error
		if chosen, err = configs.ParseAxis(flag, lists[flag]); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// defaultAxis returns the axis without a flag.
func defaultAxis() *configs.SpectrumAxis {
	axis, _ := configs.ParseAxis("s", configs.DefaultS) // the default has no fault
	return axis
}

// spectrum is one run of cne spectrum.
type spectrum struct {
	pointRun
	axis  *configs.SpectrumAxis
	stops []*spectrumPoint

	mutex  sync.Mutex // of what follows, and of the checkpoints
	done   int        // epochs, in all runs
	all    int
	before int // of them, in earlier processes
	began  time.Time
}

// A spectrumPoint is one of the embeddings of a spectrum.
type spectrumPoint struct {
	place    configs.SpectrumPlace
	config   *configs.Config
	embedded *cne.Embedding // aligned, in the end
	metrics  rundir.StopMetrics
}

// complete fills in the axis; a spectrum that continues has it in its folder.
func (s *spectrum) complete() (err error) {
	defer kind.Catch(&err)
	if s.resumed {
		begun := kind.Got(s.begunWith())
		if s.axis != nil && s.axis.Command() != begun.Command() {
			return fmt.Errorf("the spectrum in %s was begun with %q, not %q", s.dir.Root(), begun.Command(), s.axis.Command())
		}
		s.axis = begun
	}
	s.axis = cmp.Or(s.axis, defaultAxis())
	s.schema = configs.SpectrumAlong(s.axis)
	return s.axis.Check(s.config, s.origins)
}

// begunWith returns the axis of the spectrum in the folder.
func (s *spectrum) begunWith() (_ *configs.SpectrumAxis, err error) {
	defer kind.Catch(&err)
	line := kind.Got(s.dir.CommandLine())
	words := strings.Fields(strings.TrimPrefix(line, configs.Spectrum.Command()))
	if len(words) == 2 || len(words) == 4 {
		a, err := configs.ParseAxis(strings.TrimPrefix(words[0], "--"), words[1])
		if err == nil && len(words) == 4 {
			err = a.ParsePulls(words[3])
		}
		if err == nil && a.Command() == line {
			return a, nil
		}
	}
	return nil, fmt.Errorf("the first line of %s does not say the values of the spectrum, so it cannot be resumed", s.dir.Path(rundir.ConfigFile))
}

func (s *spectrum) run(ctx context.Context, stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	s.warn()
	kind.Check(s.read(ctx))
	kind.Check(s.makeStops())
	unlock := kind.Got(s.open())
	defer unlock()
	o := s.stops[0].config.Options()
	o.Device, s.doing = s.device, beforeTraining
	s.near = kind.Got(s.in.Prepare(ctx, &o, s.dir))
	kind.Check(s.begin())
	defer func() {
		if !s.saved {
			err = errors.Join(err, s.dir.Clear())
		}
	}()
	defer kind.Catch(&err) // before the folder is cleared
	if err := s.train(ctx, o); err != nil {
		if s.resumable {
			s.doing = fmt.Sprintf("after %d of %d epochs", s.done, s.all)
		}
		return err
	}
	s.doing = "while the quality was measured"
	kind.Check(s.measure(ctx))
	f := s.figures()
	kind.Check(s.write(f))
	s.saved = true // a failure to draw must not remove the results
	s.doing = "while the pages were made (the embeddings and their scores are in " + s.dir.Root() + ")"
	if err := errors.Join(s.draw(ctx, f), s.dir.WriteJSON(rundir.SpectrumFigures, f)); err != nil {
		return fmt.Errorf("%w (the embeddings and their scores are in %s)", err, s.dir.Root())
	}
	return s.print(stdout, f, time.Since(s.start))
}

// warn warns of keys that a spectrum ignores.
func (s *spectrum) warn() {
	o := &s.config.Output
	for _, x := range []struct {
		key  string
		used bool
	}{
		{"output.snapshots", o.Snapshots > 0},
		{"output.metrics_every", o.MetricsEvery > 0},
		{"output.tensorboard", o.TensorBoard},
		{"model.keep_data", s.config.Model.KeepData},
	} {
		if x.used {
			s.Log.Warn("cne spectrum ignores this key, which is for single runs", "key", x.key)
		}
	}
}

// makeStops makes the stops, and refuses values that are invalid for the points.
func (s *spectrum) makeStops() error {
	for _, p := range s.axis.Places() {
		x := &spectrumPoint{place: p}
		x.config, _ = s.axis.At(s.config, p)
		err := configs.Train.Check(x.config)
		if err == nil {
			err = configs.Train.CheckSize(x.config, s.in.Size(), nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.axis.Title(p), err)
		}
		s.stops = append(s.stops, x)
	}
	return nil
}

// measure fills in the figures of each stop, and aligns it to the one before, or the first of
// a row of a grid to the one above.
func (s *spectrum) measure(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	s.Log.Info("measuring the quality", "embeddings", len(s.stops))
	for i, x := range s.stops {
		if i > 0 {
			before := i - selection.If(i%len(s.axis.Values) == 0, len(s.axis.Values), 1)
			scale, disparity, err := quality.Align(x.embedded.Positions, s.stops[before].embedded.Positions,
				s.config.Embed.Metric == op.Cosine) // whose angles are seen from the origin
			switch {
			case errors.Is(err, quality.ErrUndefined):
				s.Log.Warn("all points coincide; nothing to align", "at", s.axis.Title(x.place))
			case err != nil:
				return err
			default:
				x.metrics.Scale, x.metrics.Disparity = &scale, &disparity
			}
		}
		seconds := s.seconds
		stop := stopwatch(&seconds.Quality)
		r := s.at(x)
		m := kind.Got(ctxio.Await(ctx, func() (*rundir.Metrics, error) { return r.measure(ctx, nil) }))
		stop()
		m.Seconds = seconds
		m.Seconds.PCA, m.Seconds.Graph, m.Seconds.Optimize = s.near.PCATime.Seconds(), s.near.GraphTime.Seconds(), x.embedded.Result.Elapsed.Seconds()
		m.Seconds.Total = m.Seconds.Load + m.Seconds.PCA + m.Seconds.Graph + m.Seconds.Optimize + m.Seconds.Quality
		m.PeakRSSBytes = memory.PeakRSS()
		x.metrics.Metrics = *m
	}
	return nil
}

// at returns the result of a stop.
func (s *spectrum) at(x *spectrumPoint) *result {
	dir := rundir.NewDir(s.dir.Path(s.axis.Folder(x.place)))
	x.config.Output.Dir = dir.Root() // as in its config.yaml
	return &result{&s.pointRun, x.config, dir, x.embedded}
}

// train runs the shared phases and then all embeddings, or the unfinished ones. o are the
// options of the first.
func (s *spectrum) train(ctx context.Context, o cne.Options) (err error) {
	defer kind.Catch(&err)
	_, shared := s.axis.At(s.config, s.stops[0].place)
	from := kind.Got(s.states())
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
		s.Log.Info("continuing", "epoch", s.done, "of", s.all)
	}
	s.Log.Info("training", "loss", s.config.Embed.Loss, "edges", s.near.Graph.Edges(), "shared_epochs", shared, "embeddings", len(s.stops))
	s.began, s.before = time.Now(), s.done
	s.Progress.Start(s.all)
	defer s.Progress.Done()
	o.Hooks = []train.Hook{s.count()}
	o.OnRetry = func(x train.Retry) error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.done -= x.Cause.Epoch - x.Epoch
		s.logRetry(x)
		return nil
	}
	when := s.config.Checkpoint.Options(nil)
	o.SpectrumCheckpoints = &cne.SpectrumCheckpoints{
		Epochs: when.Epochs, Interval: when.Interval, Save: s.keep,
		Resume: func(run int) (*train.Checkpoint, error) { return from[run], nil },
	}
	watch := s.device.Watch()
	embeddings, err := s.near.Spectrum(ctx, last, o)
	if s.done > s.before {
		s.trainedOn = watch()
	}
	if err != nil {
		return s.explain(err)
	}
	for i, e := range embeddings {
		s.stops[i].embedded = e
	}
	return nil
}

// folder returns the folder of a run of SpectrumCheckpoints: −1 is the run of the shared
// phases.
func (s *spectrum) folder(run int) *rundir.Dir {
	if run < 0 {
		return s.dir
	}
	return rundir.NewDir(s.dir.Path(s.axis.Folder(s.stops[run].place)))
}

// states returns the last checkpoint of each run that has begun, by its index; −1 is
// the run of the shared phases.
func (s *spectrum) states() (_ map[int]*train.Checkpoint, err error) {
	defer kind.Catch(&err)
	from := map[int]*train.Checkpoint{}
	if !s.resumed {
		return from, nil
	}
	if s.from != nil {
		from[-1] = s.from
	}
	for i := range s.stops {
		c := kind.Got(s.folder(i).LastCheckpoint())
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
