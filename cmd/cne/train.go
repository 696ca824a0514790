package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cne/data"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

func trainCmd() *cobra.Command {
	var force bool
	var profile string
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Embed points in the plane",
		Long: `Read points, build the graph of their nearest neighbours, and place them so
that neighbours stay neighbours. Everything goes to the run folder: the
embedding (.npy and .csv), a picture, the quality (metrics.json) and the
configuration that gives the same run again.

Without a configuration it embeds MNIST's 10 000 test images, which are part of
the program.`,
		Example: `  cne train
  cne train --config configs/mnist-negtsne.yaml --set data.path=DIR
  cne train --set data.path=points.npy --set loss.s=0.5 -o runs/mine`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			if profile != "" {
				f, err := os.Create(profile)
				if err != nil {
					return fmt.Errorf("cannot write the profile: %w", err)
				}
				defer f.Close()
				if err := pprof.StartCPUProfile(f); err != nil {
					return err
				}
				defer pprof.StopCPUProfile()
			}
			t := &training{config: c, force: force, talker: newTalker(cmd.ErrOrStderr(), c.Log.Format, isQuiet(cmd))}
			return t.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	addConfigFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace the files of another run in the run folder")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile to a `file`, for go tool pprof")
	return cmd
}

// training is one run of cne train.
type training struct {
	config *Config
	force  bool
	*talker

	dir    *runDir
	labels *data.Labels
	near   *neighbourhood
	model  model.Model
	result train.Result
	load   time.Duration
	saved  bool // there is an embedding, or a snapshot of one, in the run folder
}

func (t *training) run(ctx context.Context, stdout io.Writer) error {
	start := time.Now()
	c := t.config
	set, err := readData(c)
	if err != nil {
		return err
	}
	t.labels = set.Labels
	t.load = time.Since(start)
	t.Log.Info("read the points", "data", set.Name, "points", set.Points.N, "width", set.Points.D)
	if ctx.Err() != nil {
		return errors.New("interrupted while the points were read; nothing was written")
	}
	// Until the new run can begin, nothing of an earlier one is touched but
	// the cache.
	if t.dir, err = openRunDir(c.Output.Dir, t.force, inputs(c)...); err != nil {
		return err
	}
	options := fitOptions(c)
	if err := options.Check(lossOptions(&c.Loss), set.Points.N, set.Points.N*max(1, c.Graph.K)); err != nil {
		return err
	}
	if t.near, err = prepare(ctx, c, t.dir, t.Log, set); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before training; nothing was written but what the cache holds")
		}
		return err
	}
	if c.Model.DType == "float64" {
		t.model, err = newModel[float64](c, t.near.points)
	} else {
		t.model, err = newModel[float32](c, t.near.points)
	}
	if err != nil {
		return err
	}
	if err := options.Check(t.model.Objective(), t.near.graph.N, t.near.graph.Edges()); err != nil {
		return err
	}
	if err := t.begin(); err != nil {
		return err
	}
	if err := t.fit(ctx, options); err != nil {
		return err
	}
	embedding, err := t.save()
	if err != nil {
		return err
	}
	metrics, err := t.report(ctx, embedding, start)
	if err != nil {
		return err
	}
	if err := t.draw(embedding); err != nil {
		return fmt.Errorf("%w (embedding and metrics are in %s)", err, c.Output.Dir)
	}
	return t.print(stdout, metrics)
}

// inputs returns the files that a run reads, but for its configuration.
func inputs(c *Config) []string {
	files := append(slices.Clone(c.Data.Path), c.Data.Labels...)
	if c.Graph.File != nil {
		files = append(files, *c.Graph.File)
	}
	return files
}

// begin makes the folder that of this run.
func (t *training) begin() error {
	if err := t.dir.begin(); err != nil {
		return err
	}
	if err := t.dir.WriteFile("config.yaml", t.config.WriteYAML); err != nil {
		return err
	}
	if t.config.Graph.Cache && t.config.Graph.File == nil {
		return t.near.graph.WriteNPZ(t.dir.Path(graphFile))
	}
	return nil
}

// newModel returns an embedding table at its start.
func newModel[T op.Float](c *Config, points *data.Matrix) (model.Model, error) {
	table, err := startingTable[T](c, points)
	if err != nil {
		return nil, err
	}
	return model.NewEmbedding(table, c.Model.Dim, lossOptions(&c.Loss))
}

func startingTable[T op.Float](c *Config, points *data.Matrix) ([]T, error) {
	if c.Model.Init == "random" {
		return model.InitNormal[T](points.N, c.Model.Dim, c.Model.InitStd, c.Seed)
	}
	components, err := leadingComponents(points, c.Model.Dim)
	if err != nil {
		return nil, err
	}
	return model.InitFrom[T](components.X, components.D, c.Model.Dim, c.Model.InitStd, c.Seed)
}

// leadingComponents returns the first d principal components of the points, or
// as many as there are. Points that are principal components already come out
// as they are.
func leadingComponents(points *data.Matrix, d int) (*data.Matrix, error) {
	pca, err := data.FitPCA(points, min(d, points.D, points.N))
	if err != nil {
		return nil, err
	}
	return pca.Transform(points)
}

// lossNames and metricNames are the words of the configuration.
var (
	lossNames   = map[string]op.Loss{"neg": op.Neg, "nc": op.NC, "infonce": op.InfoNC, "umap": op.UMAP}
	metricNames = map[string]op.Metric{"euclidean": op.Euclidean, "cosine": op.Cosine}
)

func lossOptions(l *Loss) op.ContrastiveOptions {
	return op.ContrastiveOptions{
		Loss: lossNames[l.Name], Metric: metricNames[l.Metric], Temperature: l.Temperature,
		Clamp: l.Clamp, Scale: l.Factor(), Mean: l.Reduction == "mean", ExcludePositive: !l.PositiveInDenominator,
	}
}

// fit trains the model, with its hooks. A run that ends early keeps the
// embedding as far as it makes sense; one that leaves nothing behind frees the
// folder for the next.
func (t *training) fit(ctx context.Context, o train.Options) (err error) {
	c := t.config
	records, err := os.Create(t.dir.Path("metrics.jsonl"))
	if err != nil {
		return fmt.Errorf("cannot write the metrics: %w", err)
	}
	defer func() {
		err = errors.Join(err, records.Close())
		if err != nil && !t.saved {
			err = errors.Join(err, t.dir.clear())
		}
	}()
	o.Hooks = []train.Hook{
		train.EveryEpochs(c.Train.LogEvery, train.Records(records, c.Loss.Name == "nc")),
		train.HookFunc(func(s *train.State) error {
			perEpoch := s.Elapsed / time.Duration(s.Epoch)
			t.Progress.Epoch(EpochReport{Epoch: s.Epoch, Epochs: s.Epochs, Loss: s.Loss, Speed: s.EdgesPerSecond,
				Left: time.Duration(s.Epochs-s.Epoch) * perEpoch})
			return nil
		}),
	}
	if c.Output.Snapshots > 0 {
		o.Hooks = append(o.Hooks, train.EveryEpochs(c.Output.Snapshots, train.Snapshots(t.snapshot)))
	}
	heads, tails := t.near.graph.EdgeList()
	t.Log.Info("training", "loss", c.Loss.Name, "edges", len(heads), "epochs", c.Train.Epochs)
	t.Progress.Start(c.Train.Epochs)
	t.result, err = train.Fit(ctx, t.model, heads, tails, o)
	t.Progress.Done()

	var diverged *train.DivergedError
	switch {
	case errors.As(err, &diverged):
		key := fmt.Sprintf("train.lr (%g in that epoch) or model.init_std", diverged.LR)
		if errors.Is(err, train.ErrLogZ) {
			key = "train.lr_z"
		}
		return fmt.Errorf("training diverged in epoch %d (%w); lower %s", diverged.Epoch, diverged.Cause, key)
	case errors.Is(err, context.Canceled):
		return t.keep(errors.New("interrupted"))
	case err != nil:
		return t.keep(err)
	}
	return nil
}

// keep saves the embedding of a run that ended early for the given reason, and
// adds what was kept to it.
func (t *training) keep(reason error) error {
	ended := fmt.Sprintf("%v after epoch %d of %d", reason, t.result.Epochs, t.config.Train.Epochs)
	embedding, err := t.save()
	if err == nil {
		err = t.draw(embedding)
	}
	switch {
	case !t.saved:
		return fmt.Errorf("%s; the embedding could not be kept: %w", ended, err)
	case err != nil:
		return fmt.Errorf("%s; the embedding so far is in %s, but %w", ended, t.dir.Path("embedding.npy"), err)
	}
	return fmt.Errorf("%s; the embedding so far is in %s", ended, t.dir.Path("embedding.npy"))
}

// fitOptions translates the configuration.
func fitOptions(c *Config) train.Options {
	o := train.Options{
		BatchSize: c.Train.BatchSize, Seed: c.Seed, Clip: c.Train.Clip,
		LogZ: c.Loss.LogZ, FixZ: !c.Loss.LearnZ || c.Train.LRZ == 0, LRZ: c.Train.LRZ,
	}
	for _, s := range c.Stages() {
		p := train.Phase{Epochs: s.Epochs, LR: s.LR, Negatives: int(s.Negatives),
			ExaggerateEarly: c.Train.EarlyExaggeration == "third"}
		if s.Anneal == "none" {
			p.Anneal = train.Constant
		}
		switch {
		case s.S != nil:
			p.Place = train.AtS(*s.S)
		case s.ZBar != nil && *s.ZBar != Uniform:
			p.Place = train.AtZBar(float64(*s.ZBar))
		}
		o.Phases = append(o.Phases, p)
	}
	return o
}

func (t *training) snapshot(epoch int, embedding []float32, d int) error {
	name := fmt.Sprintf("snapshots/epoch-%04d.npy", epoch)
	t.saved = true
	return t.dir.WriteFile(name, func(w io.Writer) error {
		return data.WriteNPY(w, &data.Matrix{N: len(embedding) / d, D: d, X: embedding})
	})
}

// save writes the embedding as arrays.
func (t *training) save() (*data.Matrix, error) {
	n, d := t.model.Points()
	m := data.NewMatrix(n, d)
	t.model.EmbedTo(m.X)
	if err := t.dir.WriteFile("embedding.npy", func(w io.Writer) error { return data.WriteNPY(w, m) }); err != nil {
		return nil, err
	}
	t.saved = true
	if t.config.Output.CSV {
		if err := t.dir.WriteFile("embedding.csv", func(w io.Writer) error { return data.WriteCSV(w, m, t.labels) }); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// draw makes the picture, if one is asked for.
func (t *training) draw(embedding *data.Matrix) error {
	if !t.config.Output.Plot {
		return nil
	}
	return scatterOf(embedding, t.labels, t.config.Plot).Save(t.dir.Path("embedding.png"))
}
