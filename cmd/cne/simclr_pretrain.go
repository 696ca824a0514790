package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/data/images"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

func simclrPretrainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pretrain [INPUT]...",
		Short: "Train a network on images without labels",
		Long: `Train a network to represent images, and evaluate it. The run folder gets the
network (model.safetensors, with PyTorch's names for its weights), the scores
of each epoch (metrics.jsonl) and of the end (metrics.json, evaluation.json),
and config.yaml, which repeats the run if given with --config and a new
--output.

With simclr.method=tsimcne, or stages of your own, the network ends in the
plane. The run folder then also has the positions of all images (embedding.npy,
.csv), a picture, and a page to explore them (embedding.html).

INPUT (data.path) names one or several files or folders of images.

Training never reads labels. They serve to monitor it (monitor.every) and to
evaluate the network (evaluate.at_end); without labels both are left out.

` + fmt.Sprintf(resumeHelp, "images") + " Runs of\nt-SimCNE keep their epochs.",
		Example: `  cne simclr pretrain --config configs/simclr-cifar10.yaml
  cne simclr pretrain --config configs/simclr-cifar10.yaml --set loss.negatives=2 -o runs/m2
  cne simclr pretrain photos --set simclr.method=tsimcne --set data.size=64 --set data.skip_broken=true
  cne simclr pretrain --resume runs/m2`,
	}
	addTraining(configs.Pretrain, cmd, configs.Pretrain.Command,
		func(ctx context.Context, r *trainCommand[configs.SimCLR], stdout io.Writer) error {
			return (&pretraining{trainCommand: r}).run(ctx, stdout)
		})
	return cmd
}

// fewImages is a number of images that is too small to learn only from them: a pretrained
// network is far better.
const fewImages = 10000

// pretraining is one run of cne simclr pretrain.
type pretraining struct {
	*trainCommand[configs.SimCLR]

	images   *images.Set
	rows     []int32           // that are trained on
	protocol *configs.Evaluate // that of the configuration, for these images
	options  simclr.Pretraining
	network  *simclr.Network
	result   train.Result
	watched  simclr.Split    // the images of the monitor
	accuracy map[int]float64 // by epoch
	latest   *float64        // the last of them, for the progress
	load     time.Duration
}

func (p *pretraining) run(ctx context.Context, stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	start := time.Now()
	c := p.config
	kind.Check(p.refuse(ctx))
	p.options = c.Pretraining()
	if p.from == nil { // it has all of the network
		kind.Check(rundir.BeginWith(p.Log, c, &p.options))
	}
	p.images = kind.Got(openImages(ctx, p.Reporter, &c.Data, "data.path"))
	// Memory used for reading many images is returned before training.
	if len(p.images.Pixels) >= 64<<20 {
		debug.FreeOSMemory()
	}
	p.load = time.Since(start)
	p.Log.Info("read the images", "data", p.images.Name, "images", p.images.N, "width", p.images.W, "height", p.images.H)
	p.rows = kind.Got(c.SimCLR.Rows(p.images))
	p.protocol = c.Evaluation(p.images)
	split := c.Evaluate.Split
	c.Evaluate.Split = p.protocol.Split // which is known by now
	err = p.checkSize(data.SizeOf(len(p.rows), 3*p.images.W*p.images.H))
	c.Evaluate.Split = split
	kind.Check(err)
	if n := len(p.rows); n < fewImages && p.from == nil && c.Model.From == "" {
		p.Log.Warn("a network learns little from so few images; features of a pretrained network, saved as .npy, make a better map (docs/guide.md, Photographs)", "images", n)
	}
	l := p.images.Labels
	if isOne := l != nil && len(l.Names) == 1 && l.Value == nil; (l == nil || isOne) && (c.Evaluate.AtEnd || c.Monitor.Every > 0) {
		c.Evaluate.AtEnd, c.Monitor.Every = false, 0
		have := selection.If(isOne, "all images have the same label", "the images have no labels")
		p.Log.Info(have + ", so nothing is evaluated; use a folder per class, or data.labels")
	}
	kind.Check(p.options.Check(len(p.rows)))
	if c.Evaluate.AtEnd {
		err = p.protocol.Options().Check(p.images)
		kind.Checkf(err, "%w; or set evaluate.at_end to false", p.protocol.Explain(err))
	}
	monitor, err := p.monitor(ctx)
	kind.Checkf(err, "%w; or set monitor.every to 0", p.protocol.Explain(err))
	unlock := kind.Got(p.open())
	defer unlock()
	finished := rundir.ReadMetrics(p.dir.Root()).Epochs // 0 unless the run is resumed after its end
	kind.Check(p.begin(rundir.Fingerprint{Note: rundir.PointsNote, What: "images of data.path", Value: rundir.ImagesKey(p.images, p.rows)}))
	const low = 0.8 // of the epochs; a cosine is at a tenth of the learning rate then
	if all := c.Pretrain.Epochs; p.from != nil && finished < all && float64(finished) >= low*float64(all) && c.Pretrain.Schedule != train.Constant {
		p.Log.Info("the learning rate is nearly 0 by now, so little will change; a new run with as many epochs learns more",
			"epochs", finished, "of", all)
	}
	kind.Check(p.fit(ctx, monitor))
	kind.Check(p.save())
	return p.print(stdout, kind.Got(p.report(ctx, start)))
}

// monitor returns the hook that monitors the training, or nil.
func (p *pretraining) monitor(ctx context.Context) (_ train.Hook, err error) {
	defer kind.Catch(&err)
	c := p.config
	if c.Monitor.Every == 0 {
		return nil, nil
	}
	split := kind.Got(p.protocol.FirstSplit(p.images))
	p.watched = kind.Got(split.Sample(p.images, max(configs.MonitorTrain, c.Evaluate.K), configs.MonitorTest, c.Pretrain.Seed))
	m := &simclr.Monitor{
		Images: p.images, Split: p.watched, Augmentation: &p.options.Augmentation, K: c.Evaluate.K, Every: c.Monitor.Every,
		Report: func(epoch int, accuracy float64) error {
			p.accuracy[epoch], p.latest = accuracy, &accuracy
			return nil
		},
	}
	// An interruption waits for the measurement: its epoch is over, and a later checkpoint
	// needs the accuracy in the records.
	return m.Hook(context.WithoutCancel(ctx))
}

// measured returns the monitor's accuracy after an epoch, nil if it did not measure.
func (p *pretraining) measured(epoch int) *float64 {
	if a, ok := p.accuracy[epoch]; ok {
		return &a
	}
	return nil
}

// fit trains the network, with its hooks. A run that ends early keeps the network if it
// is useful.
func (p *pretraining) fit(ctx context.Context, monitor train.Hook) error {
	return p.withRecords(func(records io.Writer, before []byte) (err error) {
		c := p.config
		p.accuracy, p.latest = simclr.Accuracies(before)
		latest := func() *float64 { return p.latest }
		if monitor != nil {
			p.options.Hooks = append(p.options.Hooks, monitor)
		}
		p.options.Hooks = append(p.options.Hooks,
			p.options.Records(records, p.measured),
			p.EpochHook("images", p.epochsBefore(), c.Pretrain.Work, latest))
		p.options.OnBatch = p.OnBatch("images", c.Pretrain.Epochs, c.Pretrain.BatchSize, c.Pretrain.Work, latest)
		p.options.Resume, p.options.Checkpoints, p.options.Device = p.from, p.checkpoints(), p.device
		p.Log.Info("training", "loss", c.Pretrain.Loss.Loss, "images", len(p.rows), "epochs", c.Pretrain.Epochs)
		p.Progress.Start(c.Pretrain.Epochs)
		watch := p.device.Watch()
		if p.network, p.result, err = p.options.Run(ctx, p.images, p.rows); p.result.Epochs > p.epochsBefore() {
			p.trainedOn = watch()
		}
		p.Progress.Done()

		if p.network == nil || err == nil {
			return err
		}
		if diverged, ok := errors.AsType[*train.DivergedError](err); ok {
			return p.diverged(diverged, "train.lr", "")
		}
		return p.endedEarly(err, p.result.Epochs, "network", rundir.ModelFile, p.save)
	})
}

// save writes the network.
func (p *pretraining) save() error {
	config, err := p.configText()
	if err != nil {
		return err
	}
	c := p.config
	p.saved = true
	return p.network.Save(p.dir.Path(rundir.ModelFile), &model.Description{
		Images: p.options.Augmentation.Input(),
		Training: model.FitInfo{
			Objective: p.network.Objective(), LogConst: p.result.LogConst, Negatives: p.result.Negatives, Neighbors: 1,
			LR: c.Pretrain.LR, Clip: c.Pretrain.Clip, Seed: c.Pretrain.Seed,
		},
		Config: config, Version: configs.Version(),
	})
}

// PretrainMetrics is the content of the metrics.json of a pretraining. What was
// not asked for, or is not learnt, is left out.
type PretrainMetrics struct {
	Plane *simclr.Score `json:"knn_plane,omitempty"` // of the positions
	KNN   *simclr.Score `json:"knn,omitempty"`
	// Whitened is the accuracy of kNN after whitening; nil if features were not whitened.
	Whitened *simclr.Score `json:"knn_whitened,omitempty"`
	Linear   *simclr.Score `json:"linear,omitempty"`
	Split    string        `json:"split,omitempty"`   // of these: official, stratified or random
	Monitor  *float64      `json:"monitor,omitempty"` // accuracy after the last epoch
	Loss     float64       `json:"loss"`              // of the last epoch, per image
	LogZ     *float64      `json:"log_z,omitempty"`

	Images     int    `json:"images"`      // trained on
	PretrainOn string `json:"pretrain_on"` // all or train
	Negatives  int    `json:"negatives"`

	Epochs       int             `json:"epochs"`
	Seconds      PretrainSeconds `json:"seconds"`
	PeakRSSBytes int64           `json:"peak_rss_bytes"`
	rundir.Computing
	Seed    uint64 `json:"seed"`
	Version string `json:"version"`

	evaluation *EvaluationMetrics // nil if there was none
}

// PretrainSeconds has the times of a pretraining. For a resumed run, Optimize and Total
// include earlier processes; the others count only the last process.
type PretrainSeconds struct {
	Load     float64 `json:"load"`
	Optimize float64 `json:"optimize"`
	Evaluate float64 `json:"evaluate"`
	Total    float64 `json:"total"`
}

// report evaluates the network and writes metrics.json.
func (p *pretraining) report(ctx context.Context, start time.Time) (_ *PretrainMetrics, err error) {
	defer kind.Catch(&err)
	c := p.config
	measuring, watch := time.Now(), p.device.Watch()
	m := &PretrainMetrics{
		Monitor: p.measured(p.result.Epochs), Loss: p.result.Loss, Images: len(p.rows), PretrainOn: c.SimCLR.On(p.images),
		Negatives: p.result.Negatives, Epochs: p.result.Epochs, Seed: c.Pretrain.Seed, Version: configs.Version(),
	}
	if c.Pretrain.Loss.Loss.Info().Constant == op.LearntZ {
		m.LogZ = &p.result.LogZ
	}
	if c.Evaluate.AtEnd {
		r := &representation{
			Reporter: p.Reporter, config: c, device: p.device, encoder: p.network,
			augmentation: p.options.Augmentation, pretrainedOn: c.SimCLR.PretrainOn,
		}
		p.doing = "while the network was evaluated; it is in " + p.dir.Path(rundir.ModelFile)
		found, err := r.evaluate(ctx, p.images)
		kind.Checkf(err, "%w (the network is in %s)", err, p.dir.Path(rundir.ModelFile))
		kind.Check(p.dir.WriteJSON(rundir.EvaluationFile, found))
		m.KNN, m.Linear, m.Split, m.evaluation = &found.KNN, &found.Linear, p.protocol.Split, found
		if found.IsWhitened {
			m.Whitened = &found.Whitened
		}
	}
	if c.Embeds() {
		p.doing = "while the images were placed; the network is in " + p.dir.Path(rundir.ModelFile)
		placed := report.Placed{Images: p.images, Trained: p.rows, Device: p.device}
		m.Plane, err = placed.Write(ctx, p.Log, p.dir, c, p.network.ResNet, p.ProgressLogger("placing the images"))
		kind.Checkf(err, "%w (the network is in %s)", err, p.dir.Path(rundir.ModelFile))
	}
	m.Seconds = PretrainSeconds{
		Load: p.load.Seconds(), Optimize: p.result.Elapsed.Seconds(),
		Evaluate: time.Since(measuring).Seconds(), Total: time.Since(start).Seconds(),
	}
	if p.from != nil {
		m.Seconds.Total += (p.from.Progress.Elapsed + p.from.Progress.ElapsedSince).Seconds()
	}
	m.PeakRSSBytes = memory.PeakRSS()
	m.Computing = rundir.Computing{Devices: rundir.Devices{}, Notes: p.device.Notes()}
	before := rundir.ReadMetrics(p.dir.Root()).Devices // of a finished run that is completed
	m.Devices.Add("optimize", cmp.Or(p.trainedOn, before["optimize"]))
	if c.Evaluate.AtEnd || c.Embeds() {
		m.Devices.Add("evaluate", watch())
	}
	return m, p.dir.WriteJSON(rundir.MetricsFile, m)
}

// print writes the figures as a table.
func (p *pretraining) print(w io.Writer, m *PretrainMetrics) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	row("network", "%s", text.Escape(p.dir.Path(rundir.ModelFile)))
	if p.config.Embeds() {
		row("embedding", "%s", text.Escape(p.dir.Path("embedding.npy")))
	}
	row("images", "%d (%s), %d negatives each", m.Images, m.PretrainOn, m.Negatives)
	if e := m.evaluation; e != nil {
		e.rows(row)
		if m.Plane != nil {
			row("kNN accuracy in the plane", "%s (k = %d)", formatScore(*m.Plane, len(e.Splits)), e.K)
		}
	} else if m.Monitor != nil {
		row("monitor", "%.4f (kNN accuracy of %d images among %d, k = %d)", *m.Monitor, len(p.watched.Test), len(p.watched.Train),
			p.config.Evaluate.K)
	}
	if m.LogZ != nil {
		row(selection.If(p.config.Pretrain.KeepsZ(), "fixed log Z", "learnt log Z"), "%.4g", *m.LogZ)
	}
	row("loss", "%.5g per image after %d epochs", m.Loss, m.Epochs)
	s := m.Seconds
	row("seconds", "%.1f (load %.1f, optimisation %.1f, evaluation %.1f)", s.Total, s.Load, s.Optimize, s.Evaluate)
	row("memory", "%.0f MB at most", float64(m.PeakRSSBytes)/1e6)
	m.Computing.Rows(p.device, row)
	return table.Flush()
}
