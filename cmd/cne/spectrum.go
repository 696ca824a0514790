package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/internal/cli"
	"cne/internal/console"
	"cne/internal/rundir"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

func spectrumCmd() *cobra.Command {
	var places, constants, negatives string
	var force bool
	cmd := &cobra.Command{
		Use:   "spectrum",
		Short: "Embed points at several places between t-SNE and UMAP",
		Long: `Embed points several times, along the spectrum from t-SNE to UMAP, and show what
is gained and lost on the way. The embeddings share an early phase and go on
from there, each moved, turned and reflected (but not scaled) onto its
neighbour, or only turned and reflected if loss.metric is cosine.

The folder gets spectrum.png with all of them side by side, curves.png with
their quality, the same figures as spectrum.csv and spectrum.json, and
explorer.html, in which a slider moves from one embedding to the next. Each
embedding has a folder of its own, such as "s=0.5", with its positions and
the configuration with which cne train makes it again, up to where it lies and
how it is turned.

The configuration is that of cne train. Of its phases (train.phases) all but the
last are shared, so that of one alone nothing is, and the last is run at each
value. Without phases the first third of the epochs is shared, at Z̄ = |X|/m for
neg and s = 1 for infonce.
The values are given with one of --s (neg and infonce), --zbar (neg) and --m
(every loss); without any, s is ` + defaultPlaces + `.`,
		Example: `  cne spectrum
  cne spectrum --config configs/mnist-negtsne.yaml --set data.path=DIR --s -0.5,0,0.5,1,1.5
  cne spectrum --set data.path=points.npy --zbar 1e5,1e6,1e7 -o runs/zbar
  cne spectrum --set loss.name=nc --m 5,50,500`,
		Args: cli.NoArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		values, err := chosenAxis(cmd, map[string]string{"s": places, "zbar": constants, "m": negatives})
		if err != nil {
			return cli.Usage(cmd, err)
		}
		c, _, err := cli.Config(configs.Spectrum, cmd)
		if err != nil {
			return err
		}
		if values == nil {
			if values, err = parseAxis("s", defaultPlaces); err != nil {
				return err
			}
		}
		if err := values.suits(c); err != nil {
			return err
		}
		stop, err := cli.Profile(cmd)
		if err != nil {
			return err
		}
		defer stop()
		r := &runState[configs.Config]{
			Reporter: cli.Reporter(cmd, c.Log.Format),
			schema:   configs.Spectrum.WithCommand(values.command()), // as config.yaml tells it
			config:   c, force: force,
		}
		if r.device, err = openTrainingDevice(r.Log, c.Device, c.Model.DType); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.device.Close()) }()
		return (&spectrum{runState: r, axis: values}).run(cmd.Context(), cmd.OutOrStdout())
	}
	cli.AddFlags(configs.Spectrum, cmd)
	flags := cmd.Flags()
	flags.StringVar(&places, "s", "", "`values` of s with commas between them, for neg and infonce: 0 is like t-SNE, 1 like UMAP")
	flags.StringVar(&constants, "zbar", "", "`values` of the normalisation constant of neg, in place of s")
	flags.StringVar(&negatives, "m", "", "`numbers` of negatives (or full), in place of s")
	flags.BoolVar(&force, "force", false, "replace the files of another run in the folder")
	cli.AddProfileFlag(cmd)
	return cmd
}

// chosenAxis returns the axis of the one flag that is given, nil if none is.
func chosenAxis(cmd *cobra.Command, lists map[string]string) (*axis, error) {
	var chosen *axis
	for _, flag := range []string{"s", "zbar", "m"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		if chosen != nil {
			return nil, fmt.Errorf("--%s and --%s are both given; embeddings can differ in one of them", chosen.flag, flag)
		}
		var err error
		if chosen, err = parseAxis(flag, lists[flag]); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// spectrum is one run of cne spectrum.
type spectrum struct {
	*runState[configs.Config]
	axis  *axis
	in    *inputs
	near  *neighborhood
	load  time.Duration
	stops []*sweepPoint

	mutex sync.Mutex // of the progress
	done  int        // epochs, in all runs
	all   int
	began time.Time
}

// A sweepPoint is one of the embeddings of a spectrum.
type sweepPoint struct {
	value    float64
	config   *configs.Config
	embedded *cne.Embedding // aligned, in the end
	metrics  *rundir.Metrics
	// scale and disparity tell how the embedding fits the one before (see
	// quality.Align); nil for the first, and where it is not defined.
	scale, disparity *float64
}

func (s *spectrum) run(ctx context.Context, stdout io.Writer) (err error) {
	start := time.Now()
	c := s.config
	together := configs.MemoryOptions{Embeddings: len(s.axis.values)}
	if err := s.refuse(ctx, together, c.InputFiles()...); err != nil {
		return err
	}
	if s.in, err = readInputs(ctx, c); err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted while the points were read; nothing was written")
	}
	s.warn()
	set := s.in.points
	s.load = time.Since(start)
	s.Log.Info("read the points", "data", set.Name, "points", set.Points.N, "width", set.Points.D)
	s.in.logCounts(s.Log, c.Data.Genes)
	if err := checkRead(s.runState, s.in, together); err != nil {
		return err
	}
	unlock, err := s.open(c.InputFiles()...)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.check(set.Points.N, set.Points.N*max(1, c.Graph.K)); err != nil {
		return err
	}
	o := s.stops[0].config.Options()
	o.Device = s.device
	if s.near, err = prepare(ctx, c, &o, s.dir, s.Log, s.in); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before training; nothing was written but what the cache holds")
		}
		return err
	}
	if err := s.check(s.near.Graph.N, s.near.Graph.Edges()); err != nil {
		return err
	}
	if err := beginRun(s.runState, s.in, s.near); err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete {
			err = errors.Join(err, s.dir.Clear())
		}
	}()
	if err := s.train(ctx, o); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %d of %d epochs; nothing was written but what the cache holds", s.done, s.all)
		}
		return err
	}
	if err := s.measure(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted while the quality was measured; nothing was written but what the cache holds")
		}
		return err
	}
	f := s.figures()
	if err := s.write(f); err != nil {
		return err
	}
	complete = true // what cannot be drawn takes nothing away
	if err := errors.Join(s.draw(ctx, f), s.dir.WriteJSON(rundir.SpectrumFigures, f)); err != nil {
		return fmt.Errorf("%w (the embeddings and their figures are in %s)", err, s.dir.Root())
	}
	return s.print(stdout, f, time.Since(start))
}

// warn tells of keys that a spectrum has no use for.
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
			s.Log.Warn("cne spectrum writes nothing for this key, which is about single runs", "key", x.key)
		}
	}
}

// check makes the stops and finds out whether a graph of so many points and
// edges can be embedded at all of them.
func (s *spectrum) check(points, edges int) error {
	s.stops = nil
	for _, v := range s.axis.values {
		x := &sweepPoint{value: v}
		x.config, _ = s.axis.at(s.config, v)
		if err := configs.Train.Check(x.config); err != nil {
			return fmt.Errorf("%s: %w", s.axis.title(v), err)
		}
		o := x.config.Options()
		if err := x.config.CheckOptions(&o, points, edges); err != nil {
			return fmt.Errorf("%s: %w", s.axis.title(v), err)
		}
		s.stops = append(s.stops, x)
	}
	return nil
}

// train runs the shared phases, and from there all embeddings. o are the options of
// the first.
func (s *spectrum) train(ctx context.Context, o cne.Options) error {
	_, shared := s.axis.at(s.config, s.axis.values[0])
	s.all = shared
	var last []train.Phase
	for _, x := range s.stops {
		s.all += x.config.Train.Epochs - shared
		phases := x.config.Options().Phases
		last = append(last, phases[len(phases)-1])
	}
	s.Log.Info("training", "loss", s.config.Loss.Name, "edges", s.near.Graph.Edges(), "shared_epochs", shared, "embeddings", len(s.stops))
	s.began = time.Now()
	s.Progress.Start(s.all)
	defer s.Progress.Done()
	o.Hooks = []train.Hook{s.count()}
	embeddings, err := s.near.Spectrum(ctx, last, o)
	if err != nil {
		return s.explain(err)
	}
	for i, e := range embeddings {
		s.stops[i].embedded = e
	}
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
		where = s.axis.title(s.stops[failed.Index].value)
	}
	err = failed.Err
	var diverged *train.DivergedError
	if errors.As(err, &diverged) {
		err = s.diverged(diverged, "")
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
		s.Progress.Epoch(console.EpochReport{
			Epoch: s.done, Epochs: s.all, Loss: state.Loss, Unit: "edges",
			Speed: float64(s.done) * float64(s.near.Graph.Edges()) / spent.Seconds(),
			Left:  spent / time.Duration(s.done) * time.Duration(s.all-s.done),
		})
		return nil
	})
}

// measure fills in what is known of each stop, and aligns it to the one before.
func (s *spectrum) measure(ctx context.Context) error {
	s.Log.Info("measuring the quality", "embeddings", len(s.stops))
	for i, x := range s.stops {
		if i > 0 {
			align := quality.Align
			if s.config.Loss.Metric == op.Cosine {
				align = quality.AlignDirections // angles are seen from the origin
			}
			scale, disparity, err := align(x.embedded.Positions, s.stops[i-1].embedded.Positions)
			switch {
			case errors.Is(err, quality.ErrUndefined):
				s.Log.Warn("all points coincide, so that there is nothing to align", "at", s.axis.title(x.value))
			case err != nil:
				return err
			default:
				x.scale, x.disparity = &scale, &disparity
			}
		}
		begun := time.Now()
		r := s.at(x)
		m, err := await(ctx, func() (*rundir.Metrics, error) {
			m := r.metrics()
			return m, r.measure(ctx, m)
		})
		if err != nil {
			return err
		}
		m.Seconds = rundir.Seconds{
			Load: s.load.Seconds(), PCA: s.near.PCATime.Seconds(), Graph: s.near.GraphTime.Seconds(),
			Optimize: x.embedded.Result.Elapsed.Seconds(), Quality: time.Since(begun).Seconds(),
		}
		m.Seconds.Total = m.Seconds.Load + m.Seconds.PCA + m.Seconds.Graph + m.Seconds.Optimize + m.Seconds.Quality
		m.PeakRSSBytes = peakRSS()
		x.metrics = m
	}
	return nil
}

// at returns what is kept of a stop.
func (s *spectrum) at(x *sweepPoint) *result {
	dir := rundir.At(s.dir.Path(s.axis.folder(x.value)))
	x.config.Output.Dir = dir.Root() // as its config.yaml has it
	return &result{log: s.Log, config: x.config, device: s.device, dir: dir, in: s.in, near: s.near, embedded: x.embedded}
}
