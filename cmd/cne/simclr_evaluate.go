package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/internal/atomicfile"
	"cne/internal/rundir"
	"cne/internal/version"
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
stays as it is, and print how many of the test images each gets right: the
nearest neighbours by cosine (evaluate.k of them vote), and a multinomial
logistic regression on standardised features without penalty. With a stratified
split they are mean ± standard deviation over evaluate.seeds.

RUN is the folder of a run, whose configuration says where the images are and
how they are split; --config, the environment and --set may change that. The
result is also written to evaluation.json in the folder. RUN can also be the
file of a network alone, such as a PyTorch checkpoint of the same architecture
converted to safetensors; the configuration is then that of the flags.

With --pixels the pixels themselves are evaluated in place of a representation,
for comparison, and written to evaluation-pixels.json.`,
		Example: `  cne simclr evaluate runs/simclr-cifar10
  cne simclr evaluate runs/simclr-cifar10 --set evaluate.split=official
  cne simclr evaluate runs/simclr-cifar10 --pixels`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if output != "" {
				if err := checkEnding("--output", output, ".json"); err != nil {
					return &usageError{cmd.CommandPath(), err}
				}
				if err := checkOutput("--output", output); err != nil {
					return err
				}
			}
			t, err := openTrained(cmd, args[0], !pixels)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, t.device.Close()) }()
			e := &evaluating{reporter: t.reporter, config: t.config, device: t.device, augmentation: t.augmentation}
			if t.network != nil {
				e.encoder = t.network
			}
			if t.folder != "" {
				e.pretrainedOn = t.config.SimCLR.PretrainOn
			}
			if e.images, err = openImages(cmd.Context(), &t.config.Data, "data.path"); err != nil {
				return err
			}
			m, err := e.measure(cmd.Context())
			if err != nil {
				return err
			}
			name := rundir.EvaluationFile
			if pixels {
				name = rundir.PixelsFile
			}
			if output == "" && t.folder != "" {
				output = filepath.Join(t.folder, name)
			}
			if output != "" {
				if err := atomicfile.Write(output, func(w io.Writer) error { return encodeJSON(w, m) }); err != nil {
					return fmt.Errorf("cannot write %s: %w", output, err)
				}
			}
			return m.print(cmd.OutOrStdout())
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	addSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, in place of that of the run")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` for the result, which ends in .json (default: evaluation.json, or with --pixels evaluation-pixels.json, in the run folder)")
	cmd.Flags().BoolVar(&pixels, "pixels", false, "evaluate the pixels themselves")
	return cmd
}

// oneRun accepts a command line with one argument.
func oneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s needs one argument, the folder of a run, but got %d", cmd.CommandPath(), len(args))
}

// A trained is a network that was trained by cne simclr pretrain, or elsewhere.
type trained struct {
	*reporter
	config       *configs.SimCLR
	folder       string // of the run; "" if there is none
	device       *model.Device
	network      *model.ResNet[float32] // on the device
	augmentation simclr.Augmentation    // EvalTo prepares images for the network
}

// openTrained opens what the argument RUN of a command with addSourceFlags
// names, with its network if that is asked for.
func openTrained(cmd *cobra.Command, path string, withNetwork bool) (*trained, error) {
	from, err := configSources(cmd)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("there is no run, and no network (%w); give a run folder of %q", err, configs.Pretrain.Command())
	}
	t, file := &trained{}, path
	if info.IsDir() {
		t.folder, file = path, filepath.Join(path, rundir.ModelFile)
		if t.config, err = configOfRun(path, from); err != nil {
			return nil, err
		}
	} else if !withNetwork {
		return nil, fmt.Errorf("%s is a file, but the pixels are those of the images of a run; give a run folder of %q", path, configs.Pretrain.Command())
	} else if t.config, _, err = configs.Pretrain.Load(from); err != nil {
		return nil, err
	}
	t.reporter = newReporter(cmd.ErrOrStderr(), t.config.Log.Format, isQuiet(cmd))
	if t.device, err = openDevice(t.Log, t.config.Device); err != nil {
		return nil, err
	}
	t.augmentation = t.config.Views.Augmentation()
	if !withNetwork {
		return t, nil
	}
	saved, err := model.Load(file)
	switch {
	case errors.Is(err, os.ErrNotExist) && t.folder != "":
		return nil, fmt.Errorf("there is no %s yet, which is written when the run ends; \"%s --resume %s\" goes on", file, configs.Pretrain.Command(), path)
	case err != nil:
		return nil, err
	case saved.ResNet == nil:
		return nil, fmt.Errorf("%s holds a model of points, not one of images; give a run of %q", file, configs.Pretrain.Command())
	}
	if t.folder != "" {
		if _, err := os.Stat(filepath.Join(t.folder, rundir.MetricsFile)); errors.Is(err, os.ErrNotExist) {
			t.Log.Warn("the run has not ended; its network is what was learnt when it was interrupted", "run", t.folder)
		}
	}
	t.network = saved.ResNet
	if err := t.network.UseDevice(t.device); err != nil {
		return nil, err
	}
	if saved.Images != nil {
		t.augmentation = simclr.EvalTransform(saved.Images)
	}
	return t, nil
}

// configOfRun returns the configuration of a run that has ended, with what may
// be changed of it.
func configOfRun(folder string, from configs.Sources) (*configs.SimCLR, error) {
	path := filepath.Join(folder, rundir.ConfigFile)
	contents, command, err := rundir.Inspect(folder)
	switch {
	case err != nil:
		return nil, err
	case contents != rundir.Run:
		return nil, fmt.Errorf("the folder %s holds no config.yaml written by cne, so that there is no run in it", folder)
	case command != "" && command != configs.Pretrain.Command():
		return nil, fmt.Errorf("the run in %s is one of %q; give one of %q", folder, command, configs.Pretrain.Command())
	}
	begun, _, err := configs.Pretrain.Load(configs.Sources{File: path})
	if err != nil {
		return nil, err
	}
	if from.File == "" {
		from.File = path
	}
	c, origins, err := configs.Pretrain.Load(from)
	if err != nil {
		return nil, err
	}
	begun.Data.Size = c.Data.Size // other images may have other sizes
	if changed := configs.Pretrain.Violations(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was made with %s; leave that as it was", folder, strings.Join(changed, ", and with "))
	}
	return c, nil
}

// evaluationError adds the keys with which an error of an evaluation can be
// mended.
func evaluationError(err error, c *configs.Evaluate) error {
	switch {
	case errors.Is(err, simclr.ErrLabels):
		return fmt.Errorf("%w (data.labels)", err)
	case errors.Is(err, simclr.ErrOption):
		return fmt.Errorf("%w (evaluate.k)", err)
	case errors.Is(err, simclr.ErrSplit) && c.Split == "official":
		return fmt.Errorf("%w (evaluate.split)", err)
	case errors.Is(err, simclr.ErrSplit):
		return fmt.Errorf("%w (evaluate.test)", err)
	}
	return err
}

// evaluationSplit returns the first split of an evaluation.
func evaluationSplit(c *configs.Evaluate, images *data.Images) (simclr.Split, error) {
	if c.Split == "stratified" {
		return simclr.StratifiedSplit(images, c.Test, c.Seeds[0])
	}
	return simclr.OfficialSplit(images)
}

// evaluating is the evaluation of a network, or of pixels.
type evaluating struct {
	*reporter
	config       *configs.SimCLR
	images       *data.Images
	device       *model.Device
	encoder      simclr.Encoder // nil: the pixels are evaluated
	augmentation simclr.Augmentation
	pretrainedOn string // all or train; "" if nobody knows
}

// EvaluationMetrics is the content of evaluation.json.
type EvaluationMetrics struct {
	Images     string `json:"images"`   // their name
	Features   string `json:"features"` // representation or pixels
	Width      int    `json:"width"`    // values of each
	PretrainOn string `json:"pretrain_on,omitempty"`
	simclr.Result
	Version string `json:"version"`
}

// measure evaluates.
func (e *evaluating) measure(ctx context.Context) (*EvaluationMetrics, error) {
	options := e.config.Evaluate.Evaluation()
	if err := options.Check(e.images); err != nil {
		return nil, evaluationError(err, &e.config.Evaluate)
	}
	m := &EvaluationMetrics{Images: e.images.Name, Features: "pixels", Version: version.String()}
	var features *data.Matrix
	var err error
	if e.encoder == nil {
		features, err = simclr.Pixels(e.images, nil)
	} else {
		m.Features, m.PretrainOn = "representation", e.pretrainedOn
		if e.pretrainedOn == "train" && e.config.Evaluate.Split == "stratified" {
			e.Log.Warn("some test images of a stratified split are among the training images that the network was pretrained on; evaluate.split=official has none of them")
		}
		e.Log.Info("representing the images", "images", e.images.N)
		features, err = simclr.Features(ctx, e.encoder, &e.augmentation, e.images, nil, e.progressLogger("representing the images", logInterval))
	}
	if err != nil {
		return nil, err
	}
	m.Width = features.D
	e.Log.Info("training the classifiers", "split", e.config.Evaluate.Split, "width", features.D)
	options.Device = e.device
	options.Progress = e.progressLogger("training the classifiers", logInterval)
	m.Result, err = options.Run(ctx, features, e.images)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Splits {
		if !s.Converged {
			e.Log.Warn("the logistic regression has not reached its tolerance", "seed", s.Seed, "gradient", s.Gradient)
		}
	}
	return m, nil
}

// print writes the figures as a table.
func (m *EvaluationMetrics) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "images\t%s\n", m.Images)
	fmt.Fprintf(table, "features\t%s, %d values\n", m.Features, m.Width)
	if m.PretrainOn != "" {
		fmt.Fprintf(table, "pretrained on\t%s\n", m.PretrainOn)
	}
	fmt.Fprintf(table, "split\t%s\n", formatSplit(&m.Result))
	fmt.Fprintf(table, "kNN accuracy\t%s (k = %d)\n", formatScore(m.KNN, len(m.Splits)), m.K)
	fmt.Fprintf(table, "linear accuracy\t%s\n", formatScore(m.Linear, len(m.Splits)))
	return table.Flush()
}

// formatSplit says on which images the classifiers were trained and tested.
func formatSplit(r *simclr.Result) string {
	kind := "of the published split"
	if !r.Official {
		kind = fmt.Sprintf("stratified, seeds: %d", len(r.Splits))
	}
	return fmt.Sprintf("%d training and %d test images, %s", r.Train, r.Test, kind)
}

// formatScore writes an accuracy over so many splits, with its standard
// deviation if there are several.
func formatScore(s simclr.Score, splits int) string {
	if splits == 1 {
		return fmt.Sprintf("%.4f", s.Mean)
	}
	return fmt.Sprintf("%.4f ± %.4f", s.Mean, s.Std)
}
