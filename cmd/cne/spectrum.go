package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/internal/console"
	"cne/internal/rundir"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

func spectrumCmd() *cobra.Command {
	var places, constants, negatives, profile string
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
		Args: noArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		values, err := chosenAxis(cmd, map[string]string{"s": places, "zbar": constants, "m": negatives})
		if err != nil {
			return &usageError{cmd.CommandPath(), err}
		}
		c, _, err := fromCommand(configs.Spectrum, cmd)
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
		stop, err := startProfile(profile)
		if err != nil {
			return err
		}
		defer stop()
		r := &runState[configs.Config]{
			Reporter: console.NewReporter(cmd.ErrOrStderr(), c.Log.Format, isQuiet(cmd)),
			schema:   configs.Spectrum.WithCommand(values.command()), // as config.yaml tells it
			config:   c, force: force,
		}
		if r.device, err = openTrainingDevice(r.Log, c.Device, c.Model.DType); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.device.Close()) }()
		return (&spectrum{runState: r, axis: values, base: &training{runState: r}}).run(cmd.Context(), cmd.OutOrStdout())
	}
	addFlags(configs.Spectrum, cmd)
	flags := cmd.Flags()
	flags.StringVar(&places, "s", "", "`values` of s with commas between them, for neg and infonce: 0 is like t-SNE, 1 like UMAP")
	flags.StringVar(&constants, "zbar", "", "`values` of the normalisation constant of neg, in place of s")
	flags.StringVar(&negatives, "m", "", "`numbers` of negatives (or full), in place of s")
	flags.BoolVar(&force, "force", false, "replace the files of another run in the folder")
	flags.StringVar(&profile, "cpuprofile", "", "write a CPU profile to a `file`, for go tool pprof")
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
	axis *axis
	// base has the points and their neighbourhood, which all embeddings share.
	base         *training
	heads, tails []int32 // of the graph's edges
	stops        []*stop

	mutex sync.Mutex // of the progress
	done  int        // epochs, in all runs
	all   int
	began time.Time
}

// A stop is one of the embeddings of a spectrum.
type stop struct {
	value     float64
	config    *configs.Config
	model     trainable
	embedding *data.Matrix // aligned, in the end
	result    train.Result
	metrics   *Metrics
	// scale and disparity tell how the embedding fits the one before (see
	// quality.Align); nil for the first, and where it is not defined.
	scale, disparity *float64
}

func (s *spectrum) run(ctx context.Context, stdout io.Writer) (err error) {
	start := time.Now()
	c := s.config
	if s.base.in, err = readInputs(c); err != nil {
		return err
	}
	s.warn()
	set := s.base.in.points
	s.base.load = time.Since(start)
	s.Log.Info("read the points", "data", set.Name, "points", set.Points.N, "width", set.Points.D)
	s.base.in.logCounts(s.Log, c.Data.Genes)
	if ctx.Err() != nil {
		return errors.New("interrupted while the points were read; nothing was written")
	}
	unlock, err := s.open(inputFiles(c)...)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.check(set.Points.N, set.Points.N*max(1, c.Graph.K)); err != nil {
		return err
	}
	if s.base.near, err = prepare(ctx, c, s.dir, s.Log, s.device, set); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before training; nothing was written but what the cache holds")
		}
		return err
	}
	if err := s.check(s.base.near.graph.N, s.base.near.graph.Edges()); err != nil {
		return err
	}
	if err := s.base.begin(); err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete {
			err = errors.Join(err, s.dir.Clear())
		}
	}()
	if err := s.train(ctx); err != nil {
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
	if err := errors.Join(s.draw(f), s.dir.WriteJSON(rundir.SpectrumFigures, f)); err != nil {
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
		x := &stop{value: v}
		x.config, _ = s.axis.at(s.config, v)
		if err := configs.Train.Check(x.config); err != nil {
			return fmt.Errorf("%s: %w", s.axis.title(v), err)
		}
		options := x.config.FitOptions()
		if err := options.Check(x.config.Loss.Options(), points, edges); err != nil {
			return fmt.Errorf("%s: %w", s.axis.title(v), err)
		}
		s.stops = append(s.stops, x)
	}
	return nil
}

// train runs the shared phases, and from there all stops.
func (s *spectrum) train(ctx context.Context) error {
	s.heads, s.tails = s.base.near.graph.EdgeList()
	_, shared := s.axis.at(s.config, s.axis.values[0])
	s.all = shared
	for _, x := range s.stops {
		s.all += x.config.Train.Epochs - shared
		var err error
		// Gorgonia's graphs are made one after the other.
		if x.model, err = newModel(ctx, x.config, s.base.in, s.base.near); err != nil {
			return err
		}
	}
	s.Log.Info("training", "loss", s.config.Loss.Name, "edges", len(s.heads), "shared_epochs", shared, "embeddings", len(s.stops))
	s.began = time.Now()
	s.Progress.Start(s.all)
	defer s.Progress.Done()
	from, err := s.early(ctx)
	if err != nil {
		return err
	}
	return s.branch(ctx, from)
}

// early runs the phases that all stops share, and returns where they end; nil if
// there are none.
func (s *spectrum) early(ctx context.Context) (*train.Checkpoint, error) {
	if len(s.stops[0].config.Train.Phases) == 1 {
		return nil, nil
	}
	model, err := newModel(ctx, s.stops[0].config, s.base.in, s.base.near)
	if err != nil {
		return nil, err
	}
	options := s.stops[0].config.FitOptions()
	options.Device = s.device
	options.Phases = options.Phases[:len(options.Phases)-1]
	options.Hooks = []train.Hook{s.count()}
	var end *train.Checkpoint
	options.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) (err error) {
		end, err = c.Clone()
		return err
	}}
	if _, err := train.Fit(ctx, model, s.heads, s.tails, options); err != nil {
		return nil, s.explain(err, "the shared phase")
	}
	return end, nil
}

// branch runs the last phase of all stops. As many tables are trained at once as
// there are cores, which changes no bit of any; networks, which keep all cores
// busy and need much memory, one after the other, and so what a GPU computes.
func (s *spectrum) branch(ctx context.Context, from *train.Checkpoint) error {
	atOnce := 1
	if s.config.Model.Kind == "table" && s.device.OnHost() {
		atOnce = min(len(s.stops), runtime.GOMAXPROCS(0))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *stop, len(s.stops))
	for _, x := range s.stops {
		queue <- x
	}
	close(queue)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for x := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := s.fitStop(ctx, x, from); err != nil {
					cancel(err) // the first error is the cause
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// fitStop trains one of the embeddings to its end.
func (s *spectrum) fitStop(ctx context.Context, x *stop, from *train.Checkpoint) (err error) {
	options := x.config.FitOptions()
	options.Hooks, options.Resume, options.Device = []train.Hook{s.count()}, from, s.device
	if x.result, err = train.Fit(ctx, x.model, s.heads, s.tails, options); err != nil {
		return s.explain(err, s.axis.title(x.value))
	}
	n, d := x.model.Points()
	x.embedding = data.NewMatrix(n, d)
	err = x.model.EmbedTo(x.embedding.X)
	x.model = nil // and its memory goes
	return err
}

// explain names the stop whose training has ended with an error.
func (s *spectrum) explain(err error, where string) error {
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
			Speed: float64(s.done) * float64(len(s.heads)) / spent.Seconds(),
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
			scale, disparity, err := align(x.embedding, s.stops[i-1].embedding)
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
		t := s.at(x)
		m, err := await(ctx, func() (*Metrics, error) {
			m := t.metrics(x.embedding)
			return m, t.measure(ctx, x.embedding, m)
		})
		if err != nil {
			return err
		}
		m.Seconds = Seconds{
			Load: s.base.load.Seconds(), PCA: s.base.near.pcaTime.Seconds(), Graph: s.base.near.graphTime.Seconds(),
			Optimize: x.result.Elapsed.Seconds(), Quality: time.Since(begun).Seconds(),
		}
		m.Seconds.Total = m.Seconds.Load + m.Seconds.PCA + m.Seconds.Graph + m.Seconds.Optimize + m.Seconds.Quality
		m.PeakRSSBytes = peakRSS()
		x.metrics = m
	}
	return nil
}

// at returns a stop as the run of cne train that would end there.
func (s *spectrum) at(x *stop) *training {
	r := *s.runState
	r.schema, r.config = configs.Train, x.config
	r.dir = rundir.At(s.dir.Path(s.axis.folder(x.value)))
	x.config.Output.Dir = r.dir.Root()
	return &training{runState: &r, in: s.base.in, near: s.base.near, result: x.result}
}
