package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

func trainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train [INPUT]...",
		Short: "Make a map of points",
		Long: `Make a map of points: find the nearest neighbours of each point, and place the
points so that neighbours stay neighbours. The run folder gets the positions
(embedding.npy, .csv), a picture, the model, the quality (metrics.json), and
config.yaml, which repeats the run if given with --config and a new --output.

INPUT (data.path) names one or several files or folders of points:
  arrays           .npy, .npz, IDX
  tables           CSV, TSV, Parquet
  sparse points    .npz by scipy.sparse.save_npz
  cells            .h5ad, .h5 or folder of 10x, Matrix Market (counts)
  images           the folder of MNIST, Kuzushiji-49 or Kuzushiji-MNIST
All but .npz, Parquet, .h5ad and .h5 may be compressed with gzip. Without INPUT and
data.path, the points are MNIST's 10 000 test images, which come with cne.

Without --output, the folder is named after INPUT: runs/points for points.npy.
Other settings for the same points go to runs/points-2. If only what is drawn,
measured or written differs, cne completes the folder without training, also if
--output names it. Keys that are not given then keep the values of the folder,
unless --config gives a file.

` + fmt.Sprintf(resumeHelp, "data") + " --network also\nlets a network learn the map of a finished run.",
		Example: `  cne train
  cne train points.npy --labels labels.txt --html
  cne train points.npy --s 0.5 -o runs/mine
  cne train --config configs/mnist-negtsne.yaml DIR
  cne train --set model.kind=mlp --set data.holdout=0.1
  cne train --resume runs/mine`,
	}
	addTraining(configs.Train, cmd, configs.Train.Command, func(ctx context.Context, r *trainCommand[configs.Config], stdout io.Writer) error {
		return (&training{pointRun: pointRun{trainCommand: r}}).run(ctx, stdout)
	})
	return cmd
}

// A pointRun is the common part of runs of cne train and cne spectrum.
type pointRun struct {
	*trainCommand[configs.Config]
	in      *points.Inputs
	near    *points.Prepared
	start   time.Time
	seconds rundir.Seconds // so far
}

// beforeTraining is pointRun.doing until a run is trained.
const beforeTraining = "before training; only the cache was written"

// training is one run of cne train.
type training struct {
	pointRun
	embedded *cne.Embedding
}

// result returns the results of the run so far.
func (t *training) result() *result { return &result{&t.pointRun, t.config, t.dir, t.embedded} }

func (t *training) run(ctx context.Context, stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	c := t.config
	kind.Check(t.read(ctx))
	o := c.Options()
	o.Device, o.Resume, t.doing = t.device, t.from, beforeTraining
	// Until the run begins, only the cache of an earlier run changes.
	unlock := kind.Got(t.open())
	defer unlock()
	t.near = kind.Got(t.in.Prepare(ctx, &o, t.dir))
	kind.Check(t.checkNetwork())
	stop := stopwatch(&t.seconds.Start)
	m, err := t.near.NewModel(ctx, &o)
	stop()
	kind.Check(configs.Explain(err))
	kind.Check(t.begin())
	kind.Check(t.fit(ctx, m, &o))
	if c.Model.Kind == "network" {
		kind.Check(t.learn(ctx))
	}
	kind.Check(t.save())
	kind.Check(t.dir.Remove(rundir.LearningFile))
	held := kind.Got(t.place(ctx, t.in.Sampled()))
	metrics := kind.Got(t.report(ctx, held))
	defer t.While("drawing the map")()
	t.doing = "while the page was made; the same command makes it (embedding and metrics are in " + c.Output.Dir + ")"
	if err := t.result().draw(ctx, held, metrics); err != nil {
		return fmt.Errorf("%w (embedding and metrics are in %s)", err, c.Output.Dir)
	}
	return t.print(stdout, metrics)
}

// begin claims the folder for the run on the points and their neighborhood, or checks
// that the folder belongs to this run.
func (r *pointRun) begin() error {
	c, near := r.config, r.near
	if err := r.trainCommand.begin(
		rundir.Fingerprint{Note: rundir.PointsNote, What: "points of data.path", Value: near.PointsKey},
		rundir.Fingerprint{Note: rundir.HeldNote, What: "points of data.holdout", Value: near.HeldKey},
		rundir.Fingerprint{Note: rundir.RowsNote, What: "rows of data.sample", Value: near.RowsKey},
		rundir.Fingerprint{Note: rundir.GraphNote, What: "edges of the graph", Value: near.GraphKey},
		rundir.Fingerprint{Note: rundir.TowardsNote, What: "positions of loss.towards", Value: near.TowardsKey},
	); err != nil || c.Graph.File != "" {
		return err
	}
	err := r.dir.Cache(r.Log, c.Graph.Cache).KeepGraph(near.Graph, near.GraphKey)
	if err != nil && !r.resumed { // the folder is then free for the next run
		err = errors.Join(err, r.dir.Clear())
	}
	return err
}

// fit trains the model, with its hooks. A run that ends early keeps the embedding if it
// is useful.
func (t *training) fit(ctx context.Context, m cne.Trainable, o *cne.Options) error {
	return t.withRecords(func(records io.Writer, _ []byte) (err error) {
		c := t.config
		if every := c.Output.MetricsEvery; every > 0 {
			o.Hooks = append(o.Hooks, train.Measure(every, t.result().measuring()))
		}
		record, closeRecords, err := t.dir.RecordHook(records, c.Embed.Loss.Info().Constant == op.LearntZ, c.Output.TensorBoard,
			t.epochsBefore()+1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeRecords()) }()
		o.Hooks = append(o.Hooks, record, t.EpochHook("edges", t.epochsBefore(), func(epochs float64) float64 { return epochs }, nil))
		if c.Output.Snapshots > 0 {
			o.Hooks = append(o.Hooks, train.EveryEpochs(c.Output.Snapshots, train.Snapshots(t.snapshot)))
		}
		o.Checkpoints = t.checkpoints()
		o.OnRetry = func(x train.Retry) error {
			t.logRetry(x)
			return t.dir.KeepRecords(x.Epoch - 1)
		}
		t.Log.Info("training", "loss", c.Embed.Loss, "edges", t.near.Graph.Edges(), "epochs", c.Embed.Epochs)
		if t.origins != nil && !t.origins.IsDefault("seed") && !o.Random() && c.Model.Kind != "network" && !c.DrawsPoints() && t.near.Recall == nil && t.near.Reduced.D >= o.Dim {
			t.Log.Info("the seed has no effect, since nothing is random in this run; model.init=random draws the start", "seed", o.Seed)
		}
		t.Progress.Start(c.Embed.Epochs)
		watch := t.device.Watch()
		if t.embedded, err = t.near.FitModel(ctx, m, *o); t.embedded != nil && t.embedded.Result.Epochs > t.epochsBefore() {
			t.trainedOn = watch()
		}
		t.Progress.Done()

		if err == nil {
			return nil
		}
		if diverged, ok := errors.AsType[*train.DivergedError](err); ok {
			also := ""
			switch {
			case c.Embed.WeightDecay > 0:
				also = " or train.weight_decay"
			case *c.Embed.Clamp > cne.DefaultClamp:
				also = " or loss.clamp"
			case c.Model.HasTable():
				also = " or model.init_std"
			}
			return t.diverged(diverged, rateOf(c.Embed.Phases, diverged.Phase), also)
		}
		epochs := 0
		if t.embedded != nil {
			epochs = t.embedded.Result.Epochs
		} else if !deviceFailed(err) {
			return err // it has not begun
		}
		learnt, _ := t.in.Files()
		return t.endedEarly(err, epochs, "embedding", learnt+".npy", t.keep)
	})
}

// checkNetwork refuses points that a network cannot learn before they are embedded.
func (t *training) checkNetwork() error {
	problem, x := "", t.near.Reduced
	switch {
	case t.config.Model.Kind != "network":
		return nil
	case x.CSR != nil:
		problem = fmt.Sprintf("sparse points, which it cannot see; want table, or their components (graph.pca: %d, with graph.metric euclidean or cosine)", min(100, x.D-1))
	case x.N < train.FewestToImitate:
		problem = fmt.Sprintf("%d points; want table, or at least %d", x.N, train.FewestToImitate)
	case x.Distinct() == 1:
		problem = "points that are all equal; want table"
	default:
		return nil
	}
	return &configs.Error{Source: t.origins["model.kind"], Key: "model.kind", Problem: "got network for " + problem}
}

// learn makes a network learn the map. If that is interrupted, the map is kept without a network.
func (t *training) learn(ctx context.Context) error {
	if t.hasLearnt() {
		t.Log.Info("the network has learnt the map before")
		return nil
	}
	stop, last, path := stopwatch(&t.seconds.Network), 0.0, t.dir.Path(rundir.LearningFile)
	from, err := train.ReadCheckpoint(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Log.Warn("the state of the network cannot be read; it learns from the beginning", "error", err)
	}
	if from == nil {
		t.Log.Info("a network learns the map")
	} else {
		t.Log.Info("the network goes on learning the map", "step", from.Progress.Epochs, "of", from.Progress.Total)
	}
	progress, when := t.ProgressLogger("steps of the network"), t.config.Checkpoint
	var unsaved error
	o := train.Imitation{
		Step: func(done, of int, loss float64) {
			last = loss
			progress(done, of)
		},
		Checkpoints: when.Options(func(s *train.Checkpoint) error {
			unsaved = s.WriteFile(path)
			return unsaved
		}),
		Resume: from,
	}
	if err = t.embedded.LearnNetwork(ctx, &o); errors.Is(err, train.ErrCheckpoint) { // of another version, for example
		t.Log.Warn("the state of the network cannot be used; it learns from the beginning", "error", err)
		o.Resume = nil
		err = t.embedded.LearnNetwork(ctx, &o)
	}
	stop()
	if err == nil {
		t.Log.Info("the network has learnt the map", "mean_distance", last, "unit", "the map's standard deviation", "seconds", t.seconds.Network)
		if last > 0.5 {
			t.Log.Warn("the network places points far from where the map has them; without --network (model.kind: table) new points are placed among their neighbours")
		}
		return nil
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted while a network learnt the map")
		if unsaved != nil {
			err = fmt.Errorf("%w; its state could not be saved: %w", err, unsaved)
		}
	}
	kept := t.keep()
	if t.doing = ""; kept != nil {
		return fmt.Errorf("%w; the map could not be kept: %w", err, kept)
	}
	return fmt.Errorf("%w; the map is in %s", err, t.dir.Path("embedding.npy"))
}

// hasLearnt takes the network that the run has saved, if that has learnt this map.
func (t *training) hasLearnt() bool {
	if t.from == nil || t.from.Progress.Epochs != t.embedded.Result.Epochs { // the map has changed since
		return false
	}
	saved, err := cne.Load(t.dir.Path(rundir.ModelFile))
	if err != nil || saved.Positions != nil { // a map
		return false
	}
	c, err := t.schema.Parse("the configuration in the model", []byte(saved.Description.Config))
	if err != nil || c.Embed.Epochs != t.config.Embed.Epochs {
		return false
	}
	saved.Positions, saved.Result, saved.Neighborhood = t.embedded.Positions, t.embedded.Result, t.embedded.Neighborhood
	t.embedded = saved
	return true
}

// keep saves the embedding of a run that ended early. The rest of a sample is not placed.
func (t *training) keep() (err error) {
	defer kind.Catch(&err)
	kind.Check(t.save())
	held := kind.Got(t.place(context.Background(), false))
	return t.result().draw(context.Background(), held, nil)
}

func (t *training) snapshot(epoch int, embedding []float32, d int) error {
	t.saved = true
	return t.dir.WriteFile(fmt.Sprintf("%s/epoch-%04d.npy", rundir.Snapshots, epoch), func(w io.Writer) error {
		return file.WriteNPY(w, &data.Matrix{N: len(embedding) / d, D: d, X: embedding})
	})
}

// save writes the embedding as arrays, and the model.
func (t *training) save() (err error) {
	defer kind.Catch(&err)
	e := t.embedded
	if e.Positions == nil {
		return errors.New("its positions cannot be had from the device")
	}
	kind.Check(t.result().write())
	t.saved = true
	if t.in.Sampled() || t.in.ListsRows() {
		_, name := t.in.Files()
		kind.Check(t.dir.WriteRows(name, t.in.Division.Trained))
	}
	config := kind.Got(t.configText())
	e.Description.Labels, e.Description.Version, e.Description.Config = t.in.Points.Labels.ClassNames(), configs.Version(), config
	kind.Check(e.SaveModel(t.dir.Path(rundir.ModelFile)))
	if t.config.Model.KeepData && t.config.Model.Kind == "table" {
		return model.SavePoints(t.dir.Path(rundir.PointsFile), t.near.Reduced)
	}
	return nil
}

// read reads the data of a run and checks them.
func (r *pointRun) read(ctx context.Context) (err error) {
	defer kind.Catch(&err)
	if m := r.config.Model; m.Kind != "mlp" && !slices.Equal(r.config.Embed.Hidden, model.DefaultHidden) {
		r.Log.Warn("model.hidden has no effect; only a model.kind mlp has these layers", "model.kind", m.Kind)
	}
	c := r.config
	r.start, r.doing = time.Now(), "while the points were read; nothing was written"
	kind.Check(r.refuse(ctx))
	defer stopwatch(&r.seconds.Load)()
	done := r.While("reading the points")
	in, err := points.Read(ctx, c, r.origins, r.Log)
	done()
	kind.Check(err)
	n, width := in.Points.Dims()
	r.Log.Info("read the points", "data", in.Points.Name, "points", n, "width", width)
	if m := in.Points.Points; m != nil {
		if different := m.Distinct(); different < n-n/10 {
			in.Different = different
			r.Log.Info("many points are equal", "points", n, "different", different)
		}
	}
	in.LogCounts()
	if in.MaybeCounts() {
		r.Log.Warn("all values are whole numbers, like counts, and are not normalised; give counts of cells as .h5ad, a folder of 10x or Matrix Market, and use graph.metric: cosine for counts of words")
	}
	if in.Held != nil {
		held, _ := in.Held.Dims()
		r.Log.Info("held out", "points", held)
	}
	kind.Check(r.choosePreset(n))
	kind.Check(r.checkSize(in.Size()))
	kind.Check(report.Annotate(ctx, r.Log, &in.Page, rundir.TableOf(c), report.WantedBy(c), in.Total(), in.PageRows()))
	if r.from == nil {
		in.Earlier = kind.Got(rundir.ReadEarlier(ctx, c, "model.init", c.Model.InitPath(), c.Model.InitNames))
	}
	in.Towards = kind.Got(rundir.ReadEarlier(ctx, c, "loss.towards", c.Loss.Towards, ""))
	r.in = in
	return nil
}

// choosePreset applies the preset for the number of points that were read. The heads of
// the files may not have this number.
func (r *pointRun) choosePreset(n int) error {
	if r.resumed {
		return nil
	}
	if r.given.LoadedFor() != n {
		r.given.Points = n
		c, _, err := r.schema.Load(&r.given)
		if err != nil {
			return err
		}
		c.Output.Dir = r.config.Output.Dir
		if c.Graph.File != "" { // it has its own number of neighbours
			c.Embed.Neighbors = r.config.Embed.Neighbors
		}
		*r.config = *c
	}
	if p := r.config.Preset; p.For(n) != p {
		r.Log.Info(fmt.Sprintf("preset: %s is %s for so few points", p, p.For(n)), "points", n)
	}
	return nil
}
