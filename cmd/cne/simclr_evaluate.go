package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/data/images"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/model"
	"cne/simclr"
)

func simclrEvaluateCmd() *cobra.Command {
	var output string
	var pixels bool
	cmd := &cobra.Command{
		Use:   "evaluate RUN",
		Short: "Measure how good a representation of images is",
		Long: `Train two simple classifiers on the representation of images by a network, which
stays as it is, and print their accuracy on the test images: a vote of the
evaluate.k nearest neighbours by cosine, and multinomial logistic regression on
standardised features without penalty. With a drawn split, the accuracies are
mean ± standard deviation over evaluate.seeds.

If there are more training images than features have values, at most 2048, the
vote is counted a second time, after whitening: features are divided by their
standard deviation along each of the training images' principal axes.

RUN is a run folder. Its configuration names the images and their split;
--config, the environment and --set may change both. The result also goes to
evaluation.json in the folder. RUN can also be the file of a network, such as a
PyTorch checkpoint of the same architecture converted to safetensors; the
configuration then comes from --config, the environment and --set.

--pixels evaluates the pixels instead of a representation, for comparison, and
writes evaluation-pixels.json.`,
		Example: `  cne simclr evaluate runs/simclr-cifar10
  cne simclr evaluate runs/simclr-cifar10 --set evaluate.split=official
  cne simclr evaluate runs/simclr-cifar10 --pixels`,
		Args: cli.Exactly(1, "one, the folder of a run"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t := new(representation)
			defer func() { err = errors.Join(err, t.device.Close()) }()
			defer kind.Catch(&err)
			kind.Check(cli.Usage(cmd, cli.CheckEnding("--output", output, ".json")))
			kind.Check(t.open(cmd, args[0], pixels))
			name := selection.If(pixels, rundir.PixelsFile, rundir.EvaluationFile)
			if output == "" && t.folder != "" {
				output = filepath.Join(t.folder, name)
			}
			if output != "" {
				inputs := append(t.config.Inputs(), args[0])
				kind.Check((cli.Output{Flag: "--output", Path: output, Runs: []string{t.folder}}).Check(inputs...))
			}
			images, err := openImages(cmd.Context(), t.Reporter, &t.config.Data, "data.path")
			if t.folder != "" {
				err = rundir.Moved(err, "--set names files")
			}
			kind.Check(err)
			kind.Check(t.checkTrainedOn(images))
			use := memory.Images{Evaluated: images.N}
			if pixels {
				use.Pixels = images.H * images.W * images.C
			}
			kind.Check(t.checkMemory(use))
			m := kind.Got(t.evaluate(cmd.Context(), images))
			if output != "" {
				kind.Check(rundir.WriteFile(output, func(w io.Writer) error { return rundir.EncodeJSON(w, m) }))
			}
			return m.print(cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "YAML `file` to use instead of the configuration of the run")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` for the result, .json (default: in the run folder)")
	cmd.Flags().BoolVar(&pixels, "pixels", false, "evaluate the pixels instead of a representation")
	return cmd
}

// A representation is a network that was trained by cne simclr pretrain, or
// elsewhere, or the pixels of images themselves.
type representation struct {
	*cli.Reporter
	config       *configs.SimCLR
	folder       string // of the run; "" if there is none
	asTrained    bool   // its images are the run's, by its configuration
	pretrainedOn string // simclr.pretrain_on; "" if it says nothing about these images
	device       *model.Device
	encoder      simclr.Encoder         // on the device; nil for pixels
	network      *model.ResNet[float32] // if it was read; nil for pixels
	augmentation simclr.Augmentation    // EvalBatchTo prepares images for the network
	head, whiten bool                   // place images, or whiten their representations
}

// open opens the run that the argument RUN names, with its network unless the pixels are
// wanted.
func (r *representation) open(cmd *cobra.Command, path string, pixels bool) (err error) {
	defer kind.Catch(&err)
	from := kind.Got(cli.Sources(cmd))
	info, err := os.Stat(path)
	kind.Checkf(err, "got no run and no network (%w), want a run of %q", err, configs.Pretrain.Command())
	resized := true // to the configuration's size, instead of the network's own
	switch {
	case info.IsDir():
		look := func(begun, now *configs.SimCLR) {
			own := slices.Equal(begun.Data.Path, now.Data.Path)
			r.asTrained = own && begun.Data.Size == now.Data.Size
			if own || begun.SimCLR.PretrainOn != "auto" {
				r.pretrainedOn = begun.SimCLR.PretrainOn
			}
			begun.Data.Size = now.Data.Size // other images may have another size
			begun.Pretrain.Augmentation.WholeSize = now.Pretrain.Augmentation.WholeSize
			begun.Device.Precision = now.Device.Precision // finished networks are never computed in bf16
			if own {
				now.Data.Path = rundir.LocatePaths(path, now.Data.Path)
			}
			if slices.Equal(begun.Data.Labels, now.Data.Labels) {
				now.Data.Labels = rundir.LocatePaths(path, now.Data.Labels)
			}
		}
		if r.config, err = rundir.ConfigOf(configs.Pretrain, path, from, look); err != nil {
			return cli.ConfigError(cmd, from, err)
		}
		r.folder = path
	case pixels:
		return fmt.Errorf("%s: got a file, want a run of %q, for the pixels of its images", path, configs.Pretrain.Command())
	default:
		var origins configs.Origins
		if r.config, origins, err = configs.Pretrain.Load(&from); err != nil {
			return cli.ConfigError(cmd, from, err)
		}
		resized = !origins.IsDefault("views.whole_size")
	}
	r.Reporter = cli.NewReporter(cmd, r.config.Log.Format)
	r.device = kind.Got(openDevice(r.Log, r.config.Device))
	r.augmentation = r.config.Pretraining().Augmentation
	if pixels {
		return nil
	}
	saved := kind.Got(ctxio.Await(cmd.Context(), func() (*model.Saved, error) { return rundir.LoadImageNetwork(r.Log, path) }))
	kind.Check(saved.ResNet.UseDevice(r.device))
	if saved.Images != nil {
		r.augmentation = simclr.EvalTransform(saved.Images)
		if resized {
			r.augmentation.Size = r.config.Pretrain.Augmentation.WholeSize
		}
	}
	r.encoder, r.network = saved.ResNet, saved.ResNet
	return nil
}

// checkTrainedOn returns an error for other images than the run was trained on, unless
// others are given.
func (r *representation) checkTrainedOn(images *images.Set) error {
	trained, _ := rundir.DataKeys(r.folder)
	if !r.asTrained || trained == "" {
		return nil
	}
	rows, err := r.config.SimCLR.Rows(images)
	if err != nil {
		return err
	}
	if rundir.ImagesKey(images, rows) != trained {
		return fmt.Errorf("the images of data.path (%s) are not those that the run in %s was trained on; --set data.path=… names others",
			strings.Join(r.config.Data.Path, ", "), r.folder)
	}
	return nil
}

// checkMemory returns an error if memory does not suffice to use images that are in it.
func (r *representation) checkMemory(use memory.Images) error {
	if r.network != nil {
		o := r.network.Options()
		use.Width, use.Hidden, use.Out = (r.network.Width()+7)/8, o.Hidden, o.Out
	}
	use.Whole, use.Device = r.augmentation.Input().Size, !r.device.OnHost()
	return configs.CheckImages(use)
}

// features represents images.
func (r *representation) features(ctx context.Context, images *images.Set) (*data.Matrix, error) {
	const work = "representing the images"
	r.Log.Info(work, "images", images.N)
	return simclr.Features(ctx, r.encoder, &r.augmentation, images, nil, r.ProgressLogger(work))
}

// EvaluationMetrics is the content of evaluation.json.
type EvaluationMetrics struct {
	Images     string `json:"images"`   // their name
	Features   string `json:"features"` // representation or pixels
	Width      int    `json:"width"`    // values of each
	PretrainOn string `json:"pretrain_on,omitempty"`
	WholeSize  int    `json:"whole_size,omitempty"` // of the images that were represented, in pixels a side
	simclr.Result
	Version string `json:"version"`
}

// evaluate measures how good a representation of images is.
func (r *representation) evaluate(ctx context.Context, images *images.Set) (_ *EvaluationMetrics, err error) {
	defer kind.Catch(&err)
	c := r.config.Evaluation(images)
	options := c.Options()
	kind.Check(c.Explain(options.Check(images)))
	m := &EvaluationMetrics{Images: images.Name, Features: "pixels", Version: configs.Version()}
	var features *data.Matrix
	if r.encoder == nil {
		features = kind.Got(simclr.Pixels(images, nil))
	} else {
		m.Features, m.WholeSize = "representation", r.augmentation.Input().Size
		if r.pretrainedOn != "" {
			m.PretrainOn = (&configs.Protocol{PretrainOn: r.pretrainedOn}).On(images)
		}
		if m.PretrainOn == "train" && c.Split != "official" {
			r.Log.Warn("some test images of a drawn split are among the training images that the network was pretrained on; evaluate.split=official has none of them")
		}
		features = kind.Got(r.features(ctx, images))
	}
	m.Width = features.D
	r.Log.Info("training the classifiers", "split", c.Split, "width", features.D)
	options.Device = r.device
	options.Progress = r.ProgressLogger("training the classifiers")
	m.Result = kind.Got(options.Run(ctx, features, images))
	for _, s := range m.Splits {
		if !s.Converged {
			r.Log.Warn("the logistic regression has not reached its tolerance", "seed", s.Seed, "gradient", s.Gradient)
		}
	}
	return m, nil
}

// print writes the figures as a table.
func (m *EvaluationMetrics) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "images\t%s\n", text.Escape(m.Images))
	at := selection.If(m.WholeSize > 0, fmt.Sprintf(", of images at %d×%d pixels", m.WholeSize, m.WholeSize), "")
	fmt.Fprintf(table, "features\t%s, %d values%s\n", m.Features, m.Width, at)
	if m.PretrainOn != "" {
		fmt.Fprintf(table, "pretrained on\t%s\n", m.PretrainOn)
	}
	m.rows(func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) })
	return table.Flush()
}

// rows adds the split and the accuracies to a table.
func (m *EvaluationMetrics) rows(row func(name, format string, values ...any)) {
	row("split", "%s", formatSplit(&m.Result))
	row("kNN accuracy", "%s (k = %d)", formatScore(m.KNN, len(m.Splits)), m.K)
	if m.IsWhitened {
		row("after whitening", "%s (k = %d)", formatScore(m.Whitened, len(m.Splits)), m.K)
	}
	row("linear accuracy", "%s", formatScore(m.Linear, len(m.Splits)))
}

// formatSplit describes the images that the classifiers were trained and tested on.
func formatSplit(r *simclr.Result) string {
	kind := "of the published split"
	switch {
	case r.Random:
		kind = fmt.Sprintf("random, seeds: %d", len(r.Splits))
	case !r.Official:
		kind = fmt.Sprintf("stratified, seeds: %d", len(r.Splits))
	}
	return fmt.Sprintf("%d training and %d test images, %s", r.Train, r.Test, kind)
}

// formatScore formats an accuracy over splits, with its standard deviation if there are
// several.
func formatScore(s simclr.Score, splits int) string {
	if splits == 1 {
		return fmt.Sprintf("%.4f", s.Mean)
	}
	return fmt.Sprintf("%.4f ± %.4f", s.Mean, s.Std)
}
