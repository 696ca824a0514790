package main

import (
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
	"cne/internal/memory"
	"cne/model/op"
	"cne/train/quality"
)

func spectrumCmd() *cobra.Command {
	var places, constants, negatives string
	cmd := &cobra.Command{
		Use:   "spectrum [INPUT]...",
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

A spectrum that was interrupted, or killed, is continued with --resume, as with cne
train, and ends as if nothing had happened.

Points and configuration are given as for cne train. Of its phases (train.phases) all but the
last are shared, so that of one alone nothing is, and the last is run at each
value. Without phases the first third of the epochs is shared, at Z̄ = |X|/m for
` + op.LossesWith(op.FixedZ) + ` and s = 1 for ` + op.LossesWith(op.Divisor) + `.
The values are given with one of --s (` + op.LossesWithSpectrum() + `), --zbar (` + op.LossesWith(op.FixedZ) + `) and --m
(every loss); without any, s is ` + configs.DefaultPlaces + `.`,
		Example: `  cne spectrum
  cne spectrum --config configs/mnist-negtsne.yaml DIR --s -0.5,0,0.5,1,1.5
  cne spectrum points.npy --zbar 1e5,1e6,1e7 -o runs/zbar
  cne spectrum --set loss.name=nc --m 5,50,500
  cne spectrum --resume runs/zbar`,
	}
	var values *configs.SpectrumAxis
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		values, err = chosenAxis(cmd, map[string]string{"s": places, "zbar": constants, "m": negatives})
		return cli.Usage(cmd, err)
	}
	addTraining(configs.Spectrum, cmd, func(ctx context.Context, r *trainCommand[configs.Config], stdout io.Writer) error {
		s := &spectrum{pointRun: pointRun{trainCommand: r}, axis: values}
		if err := s.complete(); err != nil {
			return err
		}
		return s.run(ctx, stdout)
	})
	flags := cmd.Flags()
	flags.StringVar(&places, "s", "", "`values` of s with commas between them, for "+op.LossesWithSpectrum()+": 0 is like t-SNE, 1 like UMAP")
	flags.StringVar(&constants, "zbar", "", "`values` of the normalisation constant of "+op.LossesWith(op.FixedZ)+", in place of s")
	flags.StringVar(&negatives, "m", "", "`numbers` of negatives (or full), in place of s")
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
			return nil, fmt.Errorf("--%s and --%s are both given; embeddings can differ in one of them", chosen.Flag, flag)
		}
		var err error
		if chosen, err = configs.ParseAxis(flag, lists[flag]); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// spectrum is one run of cne spectrum.
type spectrum struct {
	pointRun
	axis  *configs.SpectrumAxis
	stops []*sweepPoint

	mutex  sync.Mutex // of what follows, and of the checkpoints
	done   int        // epochs, in all runs
	all    int
	before int // of them, those of earlier processes
	began  time.Time
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

// complete fills in the axis: of a spectrum that goes on it is that in its folder.
func (s *spectrum) complete() error {
	if s.resumed {
		begun, err := s.begunWith()
		if err != nil {
			return err
		}
		if s.axis != nil && s.axis.Command() != begun.Command() {
			return fmt.Errorf("the spectrum in %s was begun with %q, not %q; leave --%s out, or begin another", s.dir.Root(), begun.Command(), s.axis.Command(), s.axis.Flag)
		}
		s.axis = begun
	}
	if s.axis == nil {
		var err error
		if s.axis, err = configs.ParseAxis("s", configs.DefaultPlaces); err != nil {
			return err
		}
	}
	s.schema = configs.SpectrumAlong(s.axis)
	return s.axis.Check(s.config, s.origins)
}

// begunWith returns the axis with which the spectrum in the folder was begun.
func (s *spectrum) begunWith() (*configs.SpectrumAxis, error) {
	line, err := s.dir.CommandLine()
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.TrimPrefix(line, configs.Spectrum.Command()))
	if len(words) == 2 {
		if a, err := configs.ParseAxis(strings.TrimPrefix(words[0], "--"), words[1]); err == nil && a.Command() == line {
			return a, nil
		}
	}
	return nil, fmt.Errorf("the first line of %s does not say at which values the spectrum was begun; begin another", s.dir.Path(rundir.ConfigFile))
}

func (s *spectrum) run(ctx context.Context, stdout io.Writer) (err error) {
	s.warn()
	if err := s.read(ctx); err != nil {
		return err
	}
	if err := s.makeStops(); err != nil {
		return err
	}
	unlock, err := s.open()
	if err != nil {
		return err
	}
	defer unlock()
	o := s.stops[0].config.Options()
	o.Device = s.device
	if err := s.prepare(ctx, &o); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer func() {
		if !s.saved {
			err = errors.Join(err, s.dir.Clear())
		}
	}()
	if err := s.train(ctx, o); err != nil {
		if ctx.Err() != nil {
			if !s.resumable {
				return errUntrained
			}
			return fmt.Errorf("interrupted after %d of %d epochs", s.done, s.all)
		}
		return err
	}
	if err := s.measure(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted while the quality was measured")
		}
		return err
	}
	f := s.figures()
	if err := s.write(f); err != nil {
		return err
	}
	s.saved = true // what cannot be drawn takes nothing away
	if err := errors.Join(s.draw(ctx, f), s.dir.WriteJSON(rundir.SpectrumFigures, f)); err != nil {
		return fmt.Errorf("%w (the embeddings and their figures are in %s)", err, s.dir.Root())
	}
	return s.print(stdout, f, time.Since(s.start))
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

// makeStops makes the stops, and refuses values at which the points cannot be embedded.
func (s *spectrum) makeStops() error {
	for _, v := range s.axis.Values {
		x := &sweepPoint{value: v}
		x.config, _ = s.axis.At(s.config, v)
		err := configs.Train.Check(x.config)
		if err == nil {
			err = configs.Train.CheckSize(x.config, s.in.size(), nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.axis.Title(v), err)
		}
		s.stops = append(s.stops, x)
	}
	return nil
}

// measure fills in what is known of each stop, and aligns it to the one before.
func (s *spectrum) measure(ctx context.Context) error {
	s.Log.Info("measuring the quality", "embeddings", len(s.stops))
	for i, x := range s.stops {
		if i > 0 {
			align := quality.Align
			if s.config.Embed.Metric == op.Cosine {
				align = quality.AlignDirections // angles are seen from the origin
			}
			scale, disparity, err := align(x.embedded.Positions, s.stops[i-1].embedded.Positions)
			switch {
			case errors.Is(err, quality.ErrUndefined):
				s.Log.Warn("all points coincide, so that there is nothing to align", "at", s.axis.Title(x.value))
			case err != nil:
				return err
			default:
				x.scale, x.disparity = &scale, &disparity
			}
		}
		begun := time.Now()
		r := s.at(x)
		m, err := ctxio.Await(ctx, func() (*rundir.Metrics, error) {
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
		m.PeakRSSBytes = memory.PeakRSS()
		x.metrics = m
	}
	return nil
}

// at returns what is kept of a stop.
func (s *spectrum) at(x *sweepPoint) *result {
	dir := rundir.NewDir(s.dir.Path(s.axis.Folder(x.value)))
	x.config.Output.Dir = dir.Root() // as its config.yaml has it
	return &result{log: s.Log, config: x.config, device: s.device, dir: dir, in: s.in, near: s.near, embedded: x.embedded}
}
